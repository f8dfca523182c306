"""Routes improved by removing strings of neighbouring customers and inserting them again.

One compiled slice does many destroy-and-repair steps on a whole plan: strings of adjacent routes
are cut out (slack induction by string removals, Christiaens and Vanden Berghe 2020), their
customers are inserted greedily with blinks, and the step is kept by the annealing rule or undone
from a log. A step looks only at the neighbours of what it moves, so its cost does not depend on the
number of customers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from drhg.compiled import distance, kernel, random_below, random_float
from drhg.hypergraph import Index, Rules, plan_of
from drhg.problem import Floats, Ints, Solution

REMOVED = 10.0  # customers removed by a step, on average
LONGEST = 10.0  # string that is removed from one route, at most
BLINK = 0.01  # probability that an insertion position is overlooked
NEAREST = 40  # neighbours next to which a customer may be inserted


class Routes(NamedTuple):
    """A plan as linked lists, changed in place by kernels. The depot ends every list."""

    next: Index  # (n,)
    prev: Index  # (n,)
    route: Index  # (n,): route of each customer, -1 while it is in none
    first: Index  # (R,): first customer of each route, the depot if it is empty
    last: Index  # (R,)
    load: Ints  # (R,)
    length: Floats  # (R,): depot to depot, service included; kept only if there is a limit
    stops: Index  # (R,): customers
    missing: Ints  # (n,): how often a customer was left out by a step, for scarce fleets; at the
    # depot: the route from which on to look for an empty one, so that slices compose

    def take_over(self, other: Routes) -> None:
        """Become the same plan as another one of the same instance."""
        arrays: Iterable[tuple[Any, Any]] = zip(self, other, strict=True)
        for mine, theirs in arrays:
            mine[:] = theirs


def routes_of(rules: Rules, solution: Solution) -> Routes:
    """Linked lists for a solution; customers that it leaves out are in no route."""
    slots = min(rules.vehicles, rules.n, 2 * len(solution.routes) + 20)
    state = Routes(
        next=np.full(rules.n, rules.depot, np.int32),
        prev=np.full(rules.n, rules.depot, np.int32),
        route=np.full(rules.n, -1, np.int32),
        first=np.full(slots, rules.depot, np.int32),
        last=np.full(slots, rules.depot, np.int32),
        load=np.zeros(slots, np.int64),
        length=np.zeros(slots, np.float64),
        stops=np.zeros(slots, np.int32),
        missing=np.zeros(rules.n, np.int64),
    )
    for r, route in enumerate(solution.routes):
        state.first[r], state.last[r], state.stops[r] = route[0], route[-1], len(route)
        state.next[route[:-1]], state.prev[route[1:]] = route[1:], route[:-1]
        state.route[route] = r
        state.load[r] = rules.demand[route].sum()
    plan = plan_of(rules, solution)
    state.length[: plan.n_routes] = plan.length[plan.last] - plan.length[plan.first]
    return state


def solution_of_routes(next: Index, first: Index, depot: int) -> Solution:
    """The linked lists as a solution again."""
    customers, ends = _flatten(next, first, depot)
    return Solution(np.split(customers, ends[:-1]))


@kernel
def _flatten(next, first, depot):
    customers = np.empty(len(next), np.int64)
    ends = np.empty(len(first), np.int64)
    w = 0
    for r in range(len(first)):
        node = first[r]
        while node != depot:
            customers[w] = node
            w += 1
            node = next[node]
        ends[r] = w
    return customers[:w].copy(), ends


@kernel
def _take_out(rules, plan, node):
    """Remove a customer from its route; returns the saving."""
    r = plan.route[node]
    a, b = plan.prev[node], plan.next[node]
    if a == rules.depot:
        plan.first[r] = b
    else:
        plan.next[a] = b
    if b == rules.depot:
        plan.last[r] = a
    else:
        plan.prev[b] = a
    gain = (
        distance(rules.space, a, node)
        + distance(rules.space, node, b)
        - distance(rules.space, a, b)
    )
    plan.route[node] = -1
    plan.load[r] -= rules.demand[node]
    plan.length[r] -= gain + rules.service
    plan.stops[r] -= 1
    return gain


@kernel
def _put_in(rules, plan, node, r, a):
    """Insert a customer into route r after `a` (the depot: at its start); returns the cost."""
    b = plan.first[r] if a == rules.depot else plan.next[a]
    plan.prev[node], plan.next[node] = a, b
    if a == rules.depot:
        plan.first[r] = node
    else:
        plan.next[a] = node
    if b == rules.depot:
        plan.last[r] = node
    else:
        plan.prev[b] = node
    extra = (
        distance(rules.space, a, node)
        + distance(rules.space, node, b)
        - distance(rules.space, a, b)
    )
    plan.route[node] = r
    plan.load[r] += rules.demand[node]
    plan.length[r] += extra + rules.service
    plan.stops[r] += 1
    return extra


@kernel
def _best_place(rules, plan, neighbours, node, empty, state):
    """Cheapest allowed place of a customer: (cost, route, customer before it); route -1 if none.

    Looks beside its nearest customers and at an empty route; at every place only if none is found.
    """
    best = np.inf
    best_route = -1
    best_after = rules.depot
    room = rules.capacity - rules.demand[node]
    slack = rules.max_length - rules.service
    if empty >= 0:
        out = distance(rules.space, rules.depot, node)
        if 2.0 * out <= slack:
            best, best_route = 2.0 * out, empty
    for i in range(min(NEAREST, neighbours.shape[1])):
        near = neighbours[node, i]
        r = plan.route[near]
        if r < 0 or plan.load[r] > room:
            continue
        there = distance(rules.space, near, node)
        for side in range(2):
            other = plan.prev[near] if side == 0 else plan.next[near]
            extra = there + distance(rules.space, other, node) - distance(rules.space, near, other)
            if extra < best and plan.length[r] + extra <= slack and random_float(state) >= BLINK:
                best, best_route = extra, r
                best_after = other if side == 0 else near
    if best_route >= 0:
        return best, best_route, best_after
    for r in range(len(plan.first)):
        if plan.stops[r] == 0 or plan.load[r] > room:
            continue
        a = rules.depot
        b = plan.first[r]
        while True:
            extra = (
                distance(rules.space, a, node)
                + distance(rules.space, node, b)
                - distance(rules.space, a, b)
            )
            if extra < best and plan.length[r] + extra <= slack:
                best, best_route, best_after = extra, r, a
            if b == rules.depot:
                break
            a = b
            b = plan.next[b]
    return best, best_route, best_after


@kernel
def _remove_strings(rules, plan, neighbours, mean_size, seed, state, stamp, mark, out, log):
    """Cut strings out of routes near the seed; returns (customers removed, saving)."""
    n_out = 0
    saving = 0.0
    limit = min(LONGEST, mean_size)
    strings = int(1.0 + random_float(state) * (4.0 * REMOVED / (1.0 + limit) - 1.0))
    done = 0
    for i in range(-1, neighbours.shape[1]):
        node = seed if i < 0 else neighbours[seed, i]
        r = plan.route[node]
        if r < 0 or mark[r] == stamp:
            continue
        mark[r] = stamp
        longest = min(float(plan.stops[r]), limit)
        size = int(1.0 + random_float(state) * longest)
        size = min(size, plan.stops[r])
        # half of the time a string is cut with a piece in its middle spared
        spared = 0
        if size > 1 and size < plan.stops[r] and random_float(state) < 0.5:
            spared = 1
            while size + spared < plan.stops[r] and random_float(state) < BLINK:
                spared += 1
        total = size + spared
        ahead = random_below(state, total)  # the string starts so many places before the node
        start = node
        for _ in range(ahead):
            if plan.prev[start] == rules.depot:
                break
            start = plan.prev[start]
        # shift it back if it would run over the end of the route
        tail = start
        reach = 1
        while reach < total and plan.next[tail] != rules.depot:
            tail = plan.next[tail]
            reach += 1
        while reach < total and plan.prev[start] != rules.depot:
            start = plan.prev[start]
            reach += 1
        keep_from = 1 + random_below(state, size - 1) if spared > 0 and size > 1 else total
        node = start
        for j in range(reach):
            after = plan.next[node]
            if not (keep_from <= j < keep_from + spared):
                log[n_out, 0] = node
                log[n_out, 1] = r
                log[n_out, 2] = plan.prev[node]
                out[n_out] = node
                n_out += 1
                saving += _take_out(
                    rules, plan, node,
                )  # fmt: skip
            node = after
        done += 1
        if done >= strings:
            break
    return n_out, saving


@kernel
def _sort_for_insertion(rules, out, n_out, state, key):
    """Order the customers: at random, by demand, far first or near first (weights 4 4 2 1)."""
    draw = random_below(state, 11)
    for i in range(n_out):
        node = out[i]
        if draw < 4:
            key[i] = random_float(state)
        elif draw < 8:
            key[i] = -rules.demand[node]
        elif draw < 10:
            key[i] = -distance(rules.space, rules.depot, node)
        else:
            key[i] = distance(rules.space, rules.depot, node)
    for i in range(1, n_out):
        value, node = key[i], out[i]
        j = i
        while j > 0 and key[j - 1] > value:
            key[j], out[j] = key[j - 1], out[j - 1]
            j -= 1
        key[j], out[j] = value, node


@kernel
def string_slice(
    rules,
    customers,
    neighbours,
    plan,
    cost,
    best_cost,
    best_next,
    best_first,
    temperature,
    cooling,
    steps,
    state,
):
    """`steps` times: remove strings, insert, accept by annealing or undo. In place.

    Returns (cost, best cost, temperature). The best plan is copied to best_next and
    best_first whenever it is beaten. While customers are in no route, a step is kept if those it
    leaves out have been left out less often than those left out before.
    """
    n_customers = len(customers)
    if n_customers == 0:
        return cost, best_cost, temperature
    slots = len(plan.first)
    room = n_customers + 8
    out = np.empty(room, np.int64)
    key = np.empty(room, np.float64)
    log = np.empty((room, 3), np.int64)
    mark = np.zeros(slots, np.int64)
    absent = np.empty(room, np.int64)
    n_absent = 0
    for i in range(n_customers):
        if plan.route[customers[i]] < 0:
            absent[n_absent] = customers[i]
            n_absent += 1
    used = 0
    for r in range(slots):
        used += 1 if plan.stops[r] > 0 else 0
    empty = plan.missing[rules.depot]
    for step in range(1, steps + 1):
        mean_size = (n_customers - n_absent) / max(1, used)
        seed = customers[random_below(state, n_customers)]
        n_removed, saving = _remove_strings(
            rules, plan,
            neighbours, mean_size, seed, state, step, mark, out, log,
        )  # fmt: skip
        delta = -saving
        n_out = n_removed
        used_before = used
        for i in range(n_removed):  # routes that lost their last customer, each counted once
            r = log[i, 1]
            if plan.stops[r] == 0 and (i + 1 == n_removed or log[i + 1, 1] != r):
                used -= 1
        before = 0
        for i in range(n_absent):
            out[n_out] = absent[i]
            before += plan.missing[absent[i]]
            n_out += 1
        _sort_for_insertion(rules, out, n_out, state, key)
        n_put = 0
        n_left = 0
        after = 0
        for i in range(n_out):
            node = out[i]
            tries = 0
            while tries < slots and plan.stops[empty] > 0:  # the next empty route, if there is one
                empty = empty + 1 if empty + 1 < slots else 0
                tries += 1
            _, r, a = _best_place(
                rules, plan,
                neighbours, node, empty if plan.stops[empty] == 0 else -1, state,
            )  # fmt: skip
            if r < 0:
                n_left += 1
                after += plan.missing[node]
            else:
                delta += _put_in(
                    rules, plan, node, r, a,
                )  # fmt: skip
                used += 1 if plan.stops[r] == 1 else 0
                key[n_put] = node
                n_put += 1
        if n_left == 0 and n_absent == 0:
            keep = delta < -temperature * np.log(1.0 - random_float(state)) + 1e-12
        elif n_left == 0:
            keep = True
        else:
            keep = n_absent > 0 and after <= before
        for i in range(n_removed if keep else 0):  # without triangles a shorter string is longer
            r = log[i, 1]
            if plan.stops[r] > 0 and plan.length[r] > rules.max_length * (1.0 + 1e-10):
                keep = False
        if n_left > 0:
            w = 0
            for i in range(n_out):
                if plan.route[out[i]] < 0:
                    plan.missing[out[i]] += 1
                    if keep:
                        absent[w] = out[i]
                        w += 1
        if keep:
            cost += delta
            n_absent = n_left
            absent[:n_absent].sort()  # as a new slice would list them
            if n_absent == 0 and cost < best_cost - 1e-9:
                best_cost = cost
                best_next[:] = plan.next
                best_first[:] = plan.first
        else:
            used = used_before
            for i in range(n_put - 1, -1, -1):
                _take_out(
                    rules, plan, int(key[i]),
                )  # fmt: skip
            for i in range(n_removed - 1, -1, -1):
                _put_in(
                    rules, plan,
                    log[i, 0], log[i, 1], log[i, 2],
                )  # fmt: skip
        temperature *= cooling
    plan.missing[rules.depot] = empty
    return cost, best_cost, temperature

"""Routes improved by removing strings of neighbouring customers and inserting them again.

One compiled slice does many destroy-and-repair steps: strings of adjacent routes are cut out (slack
induction by string removals, Christiaens and Vanden Berghe 2020), their customers are inserted
greedily with blinks, and the step is kept by the annealing rule or undone from a log.

A slice works on a *part* of a plan: some of its routes, copied into arrays of their own. Customers
are numbered anew, route by route, and every route has a depot of its own that closes it to a ring,
so that no place in a route is special. Parts that share no route can be worked on at the same time,
and what a step costs depends on neither the part nor the plan.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from drhg.compiled import Space, distance, kernel, random_below, random_float
from drhg.hypergraph import Index, Rules
from drhg.problem import Floats, Ints, Solution

REMOVED = 10.0  # customers removed by a step, on average
LONGEST = 10.0  # string that is removed from one route, at most
BLINK = 0.01  # probability that an insertion position is overlooked
NEAREST = 40  # neighbours next to which a customer may be inserted


class Ground(NamedTuple):
    """What does not change in a part: places 0 .. m - 1 are customers, the rest are depots."""

    space: Space  # of the instance, for metrics that are not plain distances in the plane
    node: Ints  # (N,): the instance's number of each place
    points: Floats  # (N, 2)
    demand: Ints  # (N,)
    near: Index  # (m, k): nearest customers of the part, nearest first, then -1
    far: Floats  # (m, k): their distances
    capacity: int
    max_length: float
    service: float


class Routes(NamedTuple):
    """The routes of a part as rings, changed in place; route r goes through depot m + r."""

    next: Index  # (N,)
    prev: Index  # (N,)
    step: Floats  # (N,): distance to the next place
    route: Index  # (N,): route of each place, -1 for a customer in none
    load: Ints  # (R,)
    length: Floats  # (R,): depot to depot, service included
    stops: Index  # (R,): customers
    spare: Index  # (R + 1,): a stack of the empty routes; last, how many they are
    missing: Ints  # (m,): how often a customer was left out by a step, for scarce fleets


class Part(NamedTuple):
    """Routes to work on, and the best that was made of them."""

    ground: Ground
    plan: Routes
    best: Index  # (N,): `next` of the best plan


def solution_of_lists(order: Index, ends: Index) -> Solution:
    """Routes laid end to end as a solution."""
    return Solution(np.split(order.astype(np.int64), ends[:-1]))


def part_of(
    rules: Rules, near: Index, order: Index, ends: Index, chosen: Index, absent: Ints, spare: int,
    local: Index,
) -> Part:  # fmt: skip
    """Copy the chosen ones of the routes (laid end to end) and `absent` customers into a part.

    `spare` empty routes are added; `local` is scratch, (n,) and -1 everywhere.
    """
    ground, plan = _lay_out(rules, near, order, ends, chosen, absent, spare, local)
    return Part(Ground(*ground), Routes(*plan), plan[0].copy())


def lists_of(part: Part, best: bool) -> tuple[Index, Index]:
    """The part's routes, present or best, laid end to end in the instance's numbers."""
    order, ends = _flatten(part.ground.node, part.best if best else part.plan.next, part.plan.load)
    return order, ends


@kernel
def _flatten(node, next, load):
    slots = len(load)
    m = len(node) - slots
    order = np.empty(m, np.int32)
    ends = np.empty(slots, np.int32)
    w = 0
    used = 0
    for r in range(slots):
        here = next[m + r]
        if here == m + r:
            continue
        while here != m + r:
            order[w] = node[here]
            w += 1
            here = next[here]
        ends[used] = w
        used += 1
    return order[:w].copy(), ends[:used].copy()


@kernel
def merge_lists(order, ends, taken, parts_order, parts_ends):
    """The routes that are not taken, then those of the parts."""
    kept = 0
    routes = 0
    begin = 0
    for r in range(len(ends)):
        if not taken[r]:
            kept += ends[r] - begin
            routes += 1
        begin = ends[r]
    new_order = np.empty(kept + len(parts_order), np.int32)
    new_ends = np.empty(routes + len(parts_ends), np.int32)
    w = 0
    routes = 0
    begin = 0
    for r in range(len(ends)):
        if not taken[r]:
            for p in range(begin, ends[r]):
                new_order[w] = order[p]
                w += 1
            new_ends[routes] = w
            routes += 1
        begin = ends[r]
    new_order[w:] = parts_order
    new_ends[routes:] = w + parts_ends
    return new_order, new_ends


@kernel
def _lay_out(rules, near, order, ends, chosen, absent, spare, local):
    m = len(absent)
    for c in range(len(chosen)):
        r = chosen[c]
        m += ends[r] - (ends[r - 1] if r > 0 else 0)
    slots = len(chosen) + spare
    size = m + slots
    node = np.full(size, rules.depot, np.int64)
    points = np.empty((size, 2), np.float64)
    demand = np.zeros(size, np.int64)
    next = np.empty(size, np.int32)
    prev = np.empty(size, np.int32)
    step = np.zeros(size, np.float64)
    route = np.full(size, -1, np.int32)
    load = np.zeros(slots, np.int64)
    length = np.zeros(slots, np.float64)
    stops = np.zeros(slots, np.int32)
    empty = np.empty(slots + 1, np.int32)
    w = 0
    for c in range(len(chosen)):
        r = chosen[c]
        last = m + c
        for p in range(ends[r - 1] if r > 0 else 0, ends[r]):
            node[w] = order[p]
            local[order[p]] = w
            route[w] = c
            load[c] += rules.demand[order[p]]
            length[c] += rules.service
            next[last], prev[w] = w, last
            stops[c] += 1
            last = w
            w += 1
        next[last], prev[m + c] = m + c, last
    for c in range(slots):
        route[m + c] = c
        if c >= len(chosen):
            next[m + c] = prev[m + c] = m + c
    for i in range(len(absent)):
        node[w] = absent[i]
        local[absent[i]] = w
        next[w] = prev[w] = w
        w += 1
    for i in range(size):
        points[i, 0] = rules.space.points[node[i], 0]
        points[i, 1] = rules.space.points[node[i], 1]
        if i < m:
            demand[i] = rules.demand[node[i]]
    n_empty = 0
    for c in range(slots - 1, -1, -1):
        if stops[c] == 0:
            empty[n_empty] = c
            n_empty += 1
    empty[slots] = n_empty
    width = min(NEAREST, near.shape[1])
    beside = np.full((m, width), -1, np.int32)
    far = np.full((m, width), np.inf, np.float64)
    for i in range(m):
        k = 0
        for j in range(near.shape[1]):
            other = local[near[node[i], j]]
            if other >= 0:
                beside[i, k] = other
                far[i, k] = distance(rules.space, node[i], node[other])
                k += 1
                if k == width:
                    break
    for i in range(m):
        local[node[i]] = -1
    for i in range(size):
        if route[i] >= 0:
            step[i] = distance(rules.space, node[i], node[next[i]])
            length[route[i]] += step[i]
    ground = (
        rules.space,
        node,
        points,
        demand,
        beside,
        far,
        rules.capacity,
        rules.max_length,
        rules.service,
    )
    plan = (next, prev, step, route, load, length, stops, empty, np.zeros(m, np.int64))
    return ground, plan


@kernel
def _gap(ground, i, j):
    """Distance of two places; from their own coordinates if that is all it takes."""
    if ground.space.metric > 1:
        return distance(ground.space, ground.node[i], ground.node[j])
    dx = ground.points[i, 0] - ground.points[j, 0]
    dy = ground.points[i, 1] - ground.points[j, 1]
    d = np.sqrt(dx * dx + dy * dy)
    return d if ground.space.metric == 0 else np.floor(d + 0.5)


@kernel
def _take_out(ground, plan, node, between):
    """Remove a customer, given the distance between its neighbours."""
    r = plan.route[node]
    a, b = plan.prev[node], plan.next[node]
    gain = plan.step[a] + plan.step[node] - between
    plan.next[a], plan.prev[b] = b, a
    plan.step[a] = between
    plan.route[node] = -1
    plan.load[r] -= ground.demand[node]
    plan.length[r] -= gain + ground.service
    plan.stops[r] -= 1
    if plan.stops[r] == 0:
        top = len(plan.spare) - 1
        plan.spare[plan.spare[top]] = r
        plan.spare[top] += 1
    return gain


@kernel
def _put_in(ground, plan, node, r, a, before, behind):
    """Insert a customer into route r after place `a`, given its distances to both neighbours."""
    b = plan.next[a]
    extra = before + behind - plan.step[a]
    plan.prev[node], plan.next[node] = a, b
    plan.next[a] = plan.prev[b] = node
    plan.step[a], plan.step[node] = before, behind
    plan.route[node] = r
    plan.load[r] += ground.demand[node]
    plan.length[r] += extra + ground.service
    plan.stops[r] += 1
    if plan.stops[r] == 1:
        plan.spare[len(plan.spare) - 1] -= 1
    return extra


@kernel
def _best_place(ground, plan, node, touched, n_touched, state):
    """Cheapest allowed place of a customer: (its cost, the place before it or -1 if none).

    Looks beside its nearest customers, at the ends of the routes that were touched and at an empty
    route; everywhere only if none is found. A place whose cost cannot be lower, by the triangle
    inequality, is passed over at once.
    """
    m = len(ground.near)
    best = np.inf
    after = -1
    room = ground.capacity - ground.demand[node]
    limited = ground.max_length < np.inf
    slack = ground.max_length - ground.service
    n_spare = plan.spare[len(plan.spare) - 1]
    if n_spare > 0:
        depot = m + plan.spare[n_spare - 1]
        out = 2.0 * _gap(ground, depot, node)
        if out <= slack:
            best, after = out, depot
    for i in range(ground.near.shape[1]):
        beside = ground.near[node, i]
        if beside < 0:
            break
        r = plan.route[beside]
        if r < 0 or plan.load[r] > room:
            continue
        there = ground.far[node, i]
        longest = there - 0.5 * best
        edge = plan.step[beside]
        if edge > longest:
            extra = there + _gap(ground, plan.next[beside], node) - edge
            if extra < best and (not limited or plan.length[r] + extra <= slack):
                if random_float(state) >= BLINK:
                    best, after = extra, beside
                    longest = there - 0.5 * best
        other = plan.prev[beside]
        edge = plan.step[other]
        if edge > longest:
            extra = there + _gap(ground, other, node) - edge
            if extra < best and (not limited or plan.length[r] + extra <= slack):
                if random_float(state) >= BLINK:
                    best, after = extra, other
    for i in range(n_touched):
        r = touched[i]
        if plan.load[r] > room or plan.stops[r] == 0:
            continue
        depot = m + r
        there = _gap(ground, depot, node)
        for side in range(2):
            a = depot if side == 0 else plan.prev[depot]
            b = plan.next[depot] if side == 0 else a
            extra = there + _gap(ground, b, node) - plan.step[a]
            if extra < best and plan.length[r] + extra <= slack and random_float(state) >= BLINK:
                best, after = extra, a
    if after >= 0:
        return best, after
    for r in range(len(plan.load)):
        if plan.stops[r] == 0 or plan.load[r] > room:
            continue
        a = m + r
        while True:
            b = plan.next[a]
            extra = _gap(ground, a, node) + _gap(ground, node, b) - plan.step[a]
            if extra < best and plan.length[r] + extra <= slack:
                best, after = extra, a
            if b == m + r:
                break
            a = b
    return best, after


@kernel
def _remove_strings(ground, plan, mean_size, removed, seed, state, stamp, mark, touched, out, log, was):
    """Cut strings out of routes near the seed; returns (customers removed, routes, saving).

    The log keeps who was taken from which route and from behind whom, and both distances there.
    """
    m = len(ground.near)
    n_out = 0
    saving = 0.0
    limit = min(LONGEST, mean_size)
    strings = int(1.0 + random_float(state) * (4.0 * removed / (1.0 + limit) - 1.0))
    done = 0
    for i in range(-1, ground.near.shape[1]):
        node = seed if i < 0 else ground.near[seed, i]
        if node < 0:
            break
        r = plan.route[node]
        if r < 0 or mark[r] == stamp:
            continue
        mark[r] = stamp
        stops = plan.stops[r]
        longest = min(float(stops), limit)
        size = min(int(1.0 + random_float(state) * longest), stops)
        # half of the time a string is cut with a piece in its middle spared
        spared = 0
        if size > 1 and size < stops and random_float(state) < 0.5:
            spared = 1
            while size + spared < stops and random_float(state) < BLINK:
                spared += 1
        total = size + spared
        start = node
        for _ in range(random_below(state, total)):  # so many places before the node
            if plan.prev[start] >= m:
                break
            start = plan.prev[start]
        # shift it back if it would run over the end of the route
        tail = start
        reach = 1
        while reach < total and plan.next[tail] < m:
            tail = plan.next[tail]
            reach += 1
        while reach < total and plan.prev[start] < m:
            start = plan.prev[start]
            reach += 1
        keep_from = 1 + random_below(state, size - 1) if spared > 0 else total
        node = start
        for j in range(reach):
            after = plan.next[node]
            if not (keep_from <= j < keep_from + spared):
                before = plan.prev[node]
                log[n_out, 0], log[n_out, 1], log[n_out, 2] = node, r, before
                was[n_out, 0], was[n_out, 1] = plan.step[before], plan.step[node]
                out[n_out] = node
                n_out += 1
                saving += _take_out(
                    ground, plan, node,
                    _gap(ground, before, after),
                )  # fmt: skip
            node = after
        touched[done] = r
        done += 1
        if done >= strings:
            break
    return n_out, done, saving


@kernel
def _sort_for_insertion(ground, out, n_out, state, key):
    """Order the customers: at random, by demand, far first or near first (weights 4 4 2 1)."""
    draw = random_below(state, 11)
    depot = len(ground.near)
    for i in range(n_out):
        node = out[i]
        if draw < 4:
            key[i] = random_float(state)
        elif draw < 8:
            key[i] = -ground.demand[node]
        elif draw < 10:
            key[i] = -_gap(ground, depot, node)
        else:
            key[i] = _gap(ground, depot, node)
    for i in range(1, n_out):
        value, node = key[i], out[i]
        j = i
        while j > 0 and key[j - 1] > value:
            key[j], out[j] = key[j - 1], out[j - 1]
            j -= 1
        key[j], out[j] = value, node


@kernel
def string_slice(ground, plan, best, temperature, removed, steps, state):
    """`steps` times: remove strings, insert, accept by annealing or undo. In place.

    Returns (change of cost, the same for the best plan, customers that the best leaves out). Fewer
    customers left out are better at any cost; while there are some, a step is kept if those it
    leaves out have been left out less often than those left out before.
    """
    m = len(ground.near)
    slots = len(plan.load)
    cost = 0.0
    best_cost = 0.0
    if m == 0:
        return cost, best_cost, 0
    room = m + 8
    out = np.empty(room, np.int32)
    put = np.empty(room, np.int32)
    key = np.empty(room, np.float64)
    log = np.empty((room, 3), np.int32)
    was = np.empty((room, 2), np.float64)
    mark = np.zeros(slots, np.int64)
    touched = np.empty(slots, np.int32)
    absent = np.empty(room, np.int32)
    n_absent = 0
    for i in range(m):
        if plan.route[i] < 0:
            absent[n_absent] = i
            n_absent += 1
    best_absent = n_absent
    for step in range(1, steps + 1):
        mean_size = (m - n_absent) / max(1, slots - plan.spare[slots])
        n_removed, n_touched, saving = _remove_strings(
            ground, plan,
            mean_size, removed, random_below(state, m), state, step, mark, touched, out, log, was,
        )  # fmt: skip
        threshold = -temperature * np.log(1.0 - random_float(state)) + 1e-12
        delta = -saving
        n_out = n_removed
        before = 0
        for i in range(n_absent):
            out[n_out] = absent[i]
            before += plan.missing[absent[i]]
            n_out += 1
        _sort_for_insertion(ground, out, n_out, state, key)
        n_put = 0
        n_left = 0
        after = 0
        for i in range(n_out):
            node = out[i]
            extra, a = _best_place(ground, plan, node, touched, n_touched, state)
            if a < 0:
                n_left += 1
                after += plan.missing[node]
            else:
                delta += _put_in(
                    ground, plan, node, plan.route[a], a,
                    _gap(ground, a, node), _gap(ground, node, plan.next[a]),
                )  # fmt: skip
                put[n_put] = node
                n_put += 1
            if n_absent == 0 and (n_left > 0 or delta > threshold):
                break  # what is still to come costs something, too
        if n_left == 0 and n_absent == 0:
            keep = delta < threshold
        elif n_left == 0:
            keep = True
        else:
            keep = n_absent > 0 and after <= before
        if keep and ground.max_length < np.inf:  # without triangles a shorter string is longer
            for i in range(n_touched):
                r = touched[i]
                if plan.stops[r] > 0 and plan.length[r] > ground.max_length * (1.0 + 1e-10):
                    keep = False
        if n_left > 0 and n_absent > 0:
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
            absent[:n_absent].sort()
            if n_absent < best_absent or (n_absent == best_absent and cost < best_cost - 1e-9):
                best_cost, best_absent = cost, n_absent
                best[:] = plan.next
        else:
            for i in range(n_put - 1, -1, -1):
                node = put[i]
                a, b = plan.prev[node], plan.next[node]
                _take_out(
                    ground, plan, node,
                    _gap(ground, a, b),
                )  # fmt: skip
            for i in range(n_removed - 1, -1, -1):
                _put_in(
                    ground, plan,
                    log[i, 0], log[i, 1], log[i, 2], was[i, 0], was[i, 1],
                )  # fmt: skip
    return cost, best_cost, best_absent

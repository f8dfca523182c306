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
import numpy.typing as npt

from drhg.compiled import (
    EXPLICIT,
    Space,
    copy_into,
    distance,
    inlined,
    kernel,
    random_below,
    random_float,
    sort_first,
)
from drhg.hypergraph import Index, Rules
from drhg.problem import Floats, Ints, Solution

REMOVED = 10.0  # customers removed by a step, on average
LONGEST = 10.0  # string that is removed from one route, at most
BLINK = 0.01  # probability that an insertion position is overlooked
NEAREST = 40  # neighbours next to which a customer may be inserted


class Ground(NamedTuple):
    """What does not change in a part: places 0 .. m - 1 are customers, the rest are depots."""

    space: Space
    node: Ints  # (N,): the instance's number of each place
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
    """Routes to work on, and the best that a slice made of them."""

    ground: Ground
    plan: Routes
    best: Index  # (N,): `next` of the best plan that the last slice has seen


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
    m = len(absent) + int(np.diff(ends, prepend=0)[chosen].sum())
    slots = len(chosen) + spare
    size, width = m + slots, min(NEAREST, near.shape[1])
    explicit = rules.space.metric == EXPLICIT
    ground = Ground(
        Space(
            rules.space.metric,
            np.empty((size, 2)),
            np.empty((size, size) if explicit else (0, 0)),
        ),
        np.full(size, rules.depot, np.int64),
        np.zeros(size, np.int64),
        np.full((m, width), -1, np.int32),
        np.full((m, width), np.inf),
        rules.capacity,
        rules.max_length,
        rules.service,
    )
    plan = Routes(
        next=np.empty(size, np.int32), prev=np.empty(size, np.int32), step=np.zeros(size),
        route=np.full(size, -1, np.int32), load=np.zeros(slots, np.int64), length=np.zeros(slots),
        stops=np.zeros(slots, np.int32), spare=np.zeros(slots + 1, np.int32),
        missing=np.zeros(m, np.int64),
    )  # fmt: skip
    _lay_out(rules, near, order, ends, chosen, absent, local, ground, plan)
    return Part(ground, plan, plan.next.copy())


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
    for i in range(len(parts_order)):
        new_order[w + i] = parts_order[i]
    for r in range(len(parts_ends)):
        new_ends[routes + r] = w + parts_ends[r]
    return new_order, new_ends


@kernel
def _lay_out(rules, near, order, ends, chosen, absent, local, ground, plan):
    """Fill the arrays of a part, which come with their first values."""
    node, demand, beside, far = ground.node, ground.demand, ground.near, ground.far
    points, matrix = ground.space.points, ground.space.matrix
    next, prev, step, route, load, length, stops, empty, _ = plan
    m, width = beside.shape
    slots = len(load)
    size = m + slots
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
    if rules.space.metric == EXPLICIT:
        for i in range(size):
            for j in range(size):
                matrix[i, j] = rules.space.matrix[node[i], node[j]]


# The helpers below take arrays instead of `Ground` and `Routes`, and are compiled into the slice:
# every array that is looked up in a tuple inside a loop would be counted in and out of use.


@inlined
def _take_out(service, demand, next, prev, step, route, load, length, stops, spare, node, between):
    """Remove a customer, given the distance between its neighbours; returns the saving."""
    r = route[node]
    a, b = prev[node], next[node]
    gain = step[a] + step[node] - between
    next[a], prev[b] = b, a
    step[a] = between
    route[node] = -1
    load[r] -= demand[node]
    length[r] -= gain + service
    stops[r] -= 1
    if stops[r] == 0:
        top = len(spare) - 1
        spare[spare[top]] = r
        spare[top] += 1
    return gain


@inlined
def _put_in(
    service, demand, next, prev, step, route, load, length, stops, spare, node, a, before, behind
):
    """Insert a customer after place `a`, given its distances to both neighbours."""
    r = route[a]
    b = next[a]
    extra = before + behind - step[a]
    prev[node], next[node] = a, b
    next[a] = prev[b] = node
    step[a], step[node] = before, behind
    route[node] = r
    load[r] += demand[node]
    length[r] += extra + service
    stops[r] += 1
    if stops[r] == 1:
        spare[len(spare) - 1] -= 1
    return extra


@inlined
def _best_place(
    space, near, far, room, slack, next, prev, step, route, load, length, stops, spare,
    node, touched, n_touched, state,
):  # fmt: skip
    """Cheapest allowed place of a customer: the place before it, or -1 if there is none.

    Looks beside its nearest customers, at the ends of the routes that were touched and at an empty
    route; everywhere only if none is found. A place whose cost cannot be lower, by the triangle
    inequality, is passed over at once.
    """
    m = len(near)
    best = np.inf
    after = -1
    n_spare = spare[len(spare) - 1]
    if n_spare > 0:
        depot = m + spare[n_spare - 1]
        out = 2.0 * distance(space, depot, node)
        if out <= slack:
            best, after = out, depot
    for i in range(near.shape[1]):
        beside = near[node, i]
        if beside < 0:
            break
        r = route[beside]
        if r < 0 or load[r] > room:
            continue
        there = far[node, i]
        edge = step[beside]
        if edge > there - 0.5 * best:
            extra = there + distance(space, next[beside], node) - edge
            if extra < best and length[r] + extra <= slack and random_float(state) >= BLINK:
                best, after = extra, beside
        other = prev[beside]
        edge = step[other]
        if edge > there - 0.5 * best:
            extra = there + distance(space, other, node) - edge
            if extra < best and length[r] + extra <= slack and random_float(state) >= BLINK:
                best, after = extra, other
    for i in range(n_touched):
        r = touched[i]
        if load[r] > room or stops[r] == 0:
            continue
        depot = m + r
        there = distance(space, depot, node)
        for side in range(2):
            a = depot if side == 0 else prev[depot]
            b = next[depot] if side == 0 else a
            extra = there + distance(space, b, node) - step[a]
            if extra < best and length[r] + extra <= slack and random_float(state) >= BLINK:
                best, after = extra, a
    if after < 0:
        for r in range(len(load)):
            if stops[r] == 0 or load[r] > room:
                continue
            a = m + r
            while True:
                b = next[a]
                extra = distance(space, a, node) + distance(space, node, b) - step[a]
                if extra < best and length[r] + extra <= slack:
                    best, after = extra, a
                if b == m + r:
                    break
                a = b
    return after


@inlined
def _choose_string(m, next, prev, route, stops, limit, node, state):
    """A string around a customer: (its first, how many to walk, where to spare how many)."""
    there = stops[route[node]]
    size = min(int(1.0 + random_float(state) * min(float(there), limit)), there)
    # half of the time a string is cut with a piece in its middle spared
    spared = 0
    if size > 1 and size < there and random_float(state) < 0.5:
        spared = 1
        while size + spared < there and random_float(state) < BLINK:
            spared += 1
    total = size + spared
    start = node
    for _ in range(random_below(state, total)):  # so many places before the node
        if prev[start] >= m:
            break
        start = prev[start]
    # shift it back if it would run over the end of the route
    tail = start
    reach = 1
    while reach < total and next[tail] < m:
        tail = next[tail]
        reach += 1
    while reach < total and prev[start] < m:
        start = prev[start]
        reach += 1
    keep_from = 1 + random_below(state, size - 1) if spared > 0 else total
    return start, reach, keep_from, spared


@inlined
def _sort_for_insertion(space, m, demand, out, n_out, state, key):
    """Order the customers: at random, by demand, far first or near first (weights 4 4 2 1)."""
    draw = random_below(state, 11)
    for i in range(n_out):
        node = out[i]
        if draw < 4:
            key[i] = random_float(state)
        elif draw < 8:
            key[i] = -demand[node]
        elif draw < 10:
            key[i] = -distance(space, m, node)
        else:
            key[i] = distance(space, m, node)
    for i in range(1, n_out):
        value, node = key[i], out[i]
        j = i
        while j > 0 and key[j - 1] > value:
            key[j], out[j] = key[j - 1], out[j - 1]
            j -= 1
        key[j], out[j] = value, node


class Scratch(NamedTuple):
    """Arrays of one slice only, allocated by NumPy: numba would compile a second longer."""

    out: Index  # (m + 8,) the customers taken out, in the order in which they are put back
    put: Index  # those put back so far
    key: Floats  # by which they are ordered
    log: Index  # (m + 8, 2) who was taken from behind whom
    was: Floats  # the distances there
    absent: Index  # customers in no route
    mark: Ints  # (slots,) the last turn in which a route was touched
    touched: Index  # (slots + 1,) the routes touched in this turn


def string_slice(
    ground: Ground, plan: Routes, best: Index, temperature: float, removed: float, steps: int,
    state: npt.NDArray[np.uint64],
) -> tuple[float, float, int]:  # fmt: skip
    """`steps` times: remove strings, insert, accept by annealing or undo. In place.

    Returns (change of cost, the same for the best plan of this slice, customers that it leaves
    out). Fewer customers left out are better at any cost; while there are some, a step is kept if
    those it leaves out have been left out less often than those left out before.
    """
    room, slots = len(ground.near) + 8, len(plan.load)
    scratch = Scratch(
        out=np.empty(room, np.int32), put=np.empty(room, np.int32), key=np.empty(room),
        log=np.empty((room, 2), np.int32), was=np.empty((room, 2)),
        absent=np.empty(room, np.int32), mark=np.zeros(slots, np.int64),
        touched=np.empty(slots + 1, np.int32),
    )  # fmt: skip
    found: tuple[float, float, int] = _slice(
        ground, plan, best, temperature, removed, steps, state, scratch
    )
    return found


@kernel
def _slice(ground, plan, best, temperature, removed, steps, state, scratch):
    space, _, demand, near, far, capacity, max_length, service = ground
    out, put, key, log, was, absent, mark, touched = scratch
    next, prev, step, route, load, length, stops, spare, missing = plan
    m = len(near)
    slots = len(load)
    slack = max_length - service
    cost = 0.0
    best_cost = 0.0
    n_absent = 0
    for i in range(m):
        if route[i] < 0:
            absent[n_absent] = i
            n_absent += 1
    best_absent = n_absent
    copy_into(next, best)
    for turn in range(1, (steps if m > 0 else 0) + 1):
        # destroy: strings out of the routes around a random customer
        seed = random_below(state, m)
        limit = min(LONGEST, (m - n_absent) / max(1, slots - spare[slots]))
        strings = int(1.0 + random_float(state) * (4.0 * removed / (1.0 + limit) - 1.0))
        n_removed = 0
        n_touched = 0
        delta = 0.0
        for i in range(-1, near.shape[1]):
            node = seed if i < 0 else near[seed, i]
            if node < 0 or n_touched >= strings:
                break
            r = route[node]
            if r < 0 or mark[r] == turn:
                continue
            mark[r] = turn
            touched[n_touched] = r
            n_touched += 1
            node, reach, keep_from, spared = _choose_string(
                m, next, prev, route, stops, limit, node, state
            )
            for j in range(reach):
                behind = next[node]
                if not (keep_from <= j < keep_from + spared):
                    before = prev[node]
                    log[n_removed, 0], log[n_removed, 1] = node, before
                    was[n_removed, 0], was[n_removed, 1] = step[before], step[node]
                    out[n_removed] = node
                    n_removed += 1
                    delta -= _take_out(
                        service, demand, next, prev, step, route, load, length, stops, spare,
                        node, distance(space, before, behind),
                    )  # fmt: skip
                node = behind
        # repair: one by one to the cheapest place
        n_out = n_removed
        count_before = 0
        for i in range(n_absent):
            out[n_out] = absent[i]
            count_before += missing[absent[i]]
            n_out += 1
        _sort_for_insertion(space, m, demand, out, n_out, state, key)
        threshold = -temperature * np.log(1.0 - random_float(state)) + 1e-12
        n_put = 0
        n_left = 0
        count = 0
        for i in range(n_out):
            node = out[i]
            a = _best_place(
                space, near, far, capacity - demand[node], slack, next, prev, step, route, load,
                length, stops, spare, node, touched, n_touched, state,
            )  # fmt: skip
            if a < 0:
                n_left += 1
                count += missing[node]
            else:
                delta += _put_in(
                    service, demand, next, prev, step, route, load, length, stops, spare,
                    node, a, distance(space, a, node), distance(space, node, next[a]),
                )  # fmt: skip
                put[n_put] = node
                n_put += 1
            if n_absent == 0 and (n_left > 0 or delta > threshold):
                break  # what is still to come costs something, too
        # accept?
        if n_left == 0:
            keep = n_absent > 0 or delta < threshold
        else:
            keep = n_absent > 0 and count <= count_before
        if keep and max_length < np.inf:  # without triangles a shorter string is longer
            for i in range(n_touched):
                r = touched[i]
                if stops[r] > 0 and length[r] > max_length * (1.0 + 1e-10):
                    keep = False
        if n_left > 0 and n_absent > 0:
            w = 0
            for i in range(n_out):
                if route[out[i]] < 0:
                    missing[out[i]] += 1
                    if keep:
                        absent[w] = out[i]
                        w += 1
        if keep:
            cost += delta
            n_absent = n_left
            sort_first(absent, n_absent)
            if n_absent < best_absent or (n_absent == best_absent and cost < best_cost - 1e-9):
                best_cost, best_absent = cost, n_absent
                copy_into(next, best)
        else:
            for i in range(n_put - 1, -1, -1):
                node = put[i]
                _take_out(
                    service, demand, next, prev, step, route, load, length, stops, spare,
                    node, distance(space, prev[node], next[node]),
                )  # fmt: skip
            for i in range(n_removed - 1, -1, -1):
                _put_in(
                    service, demand, next, prev, step, route, load, length, stops, spare,
                    log[i, 0], log[i, 1], was[i, 0], was[i, 1],
                )  # fmt: skip
    return cost, best_cost, best_absent

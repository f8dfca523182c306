"""Ruin and recreate: slack induction by string removals (Christiaens and Vanden Berghe 2020).

A compiled slice of annealing does many steps on a part of a plan: strings of adjacent routes are
removed, their customers are inserted greedily with blinks, and the step is kept by the annealing
rule or undone from a log.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from drhg.hypergraph.plan import Index
from drhg.kernels.arrays import copy_into, sort_first
from drhg.kernels.jit import inlined, kernel
from drhg.kernels.random import random_below, random_float
from drhg.kernels.space import distance
from drhg.problem import Floats, Ints
from drhg.problem.tolerances import GAIN, SEARCH_SLACK, TIE
from drhg.search.routes.params import RuinParams
from drhg.search.routes.parts import Part


class Ruin(NamedTuple):
    """The parameters of a step in the form kernels take (see `RuinParams`)."""

    average_removed: float
    longest_string: float
    split_probability: float
    split_growth: float
    blink_rate: float
    random_order: int
    heavy_first: int
    far_first: int
    near_first: int


class Scratch(NamedTuple):
    """Arrays of one slice only, allocated by NumPy: numba would compile a second longer."""

    out: Index  # (m + 8,) the customers taken out, in the order in which they are put back
    put: Index  # those put back so far
    key: Floats  # by which they are ordered
    log: Index  # (m + 8, 2) who was taken from behind whom
    was: Floats  # the distances there
    absent: Index  # customers in no route
    mark: Ints  # (slots,) the last step in which a route was touched
    touched: Index  # (slots + 1,) the routes touched in this step


def anneal(
    part: Part, params: RuinParams, temperature: float, steps: int, state: npt.NDArray[np.uint64]
) -> tuple[float, float, int]:
    """`steps` times: remove strings, insert, accept by annealing or undo. In place.

    Returns (change of cost, the same for the best routes of this slice, customers that they leave
    out). Fewer customers left out are better at any cost; while there are some, a step is kept if
    those it leaves out have been left out less often than those left out before (SISR's absence
    counters).
    """
    room, slots = len(part.problem.near) + 8, len(part.routes.load)
    scratch = Scratch(
        out=np.empty(room, np.int32), put=np.empty(room, np.int32), key=np.empty(room),
        log=np.empty((room, 2), np.int32), was=np.empty((room, 2)),
        absent=np.empty(room, np.int32), mark=np.zeros(slots, np.int64),
        touched=np.empty(slots + 1, np.int32),
    )  # fmt: skip
    ruin = Ruin(
        params.average_removed, params.longest_string, params.split_probability,
        params.split_growth, params.blink_rate, params.random_order, params.heavy_first,
        params.far_first, params.near_first,
    )  # fmt: skip
    found: tuple[float, float, int] = _anneal(part, ruin, temperature, steps, state, scratch)
    return found


@kernel
def _anneal(part, ruin, temperature, steps, state, scratch):
    problem, routes, best = part
    space, near, max_length = problem.space, problem.near, problem.max_length
    out, put, key, log, was, absent, mark, touched = scratch
    next, prev, leg, route, _, length, stops, empty, absences = routes
    m = len(near)
    slots = len(stops)
    cost = 0.0
    best_cost = 0.0
    n_absent = 0
    for i in range(m):
        if route[i] < 0:
            absent[n_absent] = i
            n_absent += 1
    best_absent = n_absent
    copy_into(next, best)
    for step in range(1, (steps if m > 0 else 0) + 1):
        # ruin: strings out of the routes around a random customer
        seed = random_below(state, m)
        limit = min(ruin.longest_string, (m - n_absent) / max(1, slots - empty[slots]))
        most = 4.0 * ruin.average_removed / (1.0 + limit) - 1.0
        strings = int(1.0 + random_float(state) * most)
        n_removed = 0
        n_touched = 0
        delta = 0.0
        for i in range(-1, near.shape[1]):
            node = seed if i < 0 else near[seed, i]
            if node < 0 or n_touched >= strings:
                break
            r = route[node]
            if r < 0 or mark[r] == step:
                continue
            mark[r] = step
            touched[n_touched] = r
            n_touched += 1
            node, reach, spare_from, spared = _choose_string(m, routes, ruin, limit, node, state)
            for j in range(reach):
                behind = next[node]
                if not (spare_from <= j < spare_from + spared):
                    before = prev[node]
                    log[n_removed, 0], log[n_removed, 1] = node, before
                    was[n_removed, 0], was[n_removed, 1] = leg[before], leg[node]
                    out[n_removed] = node
                    n_removed += 1
                    delta -= _take_out(problem, routes, node, distance(space, before, behind))
                node = behind
        # recreate: one by one to the cheapest place
        n_out = n_removed
        count_before = 0
        for i in range(n_absent):
            out[n_out] = absent[i]
            count_before += absences[absent[i]]
            n_out += 1
        _sort_for_insertion(problem, ruin, out, n_out, key, state)
        threshold = -temperature * np.log(1.0 - random_float(state)) + TIE
        n_put = 0
        n_left = 0
        count = 0
        for i in range(n_out):
            node = out[i]
            a = _best_place(problem, routes, ruin.blink_rate, node, touched, n_touched, state)
            if a < 0:
                n_left += 1
                count += absences[node]
            else:
                before, behind = distance(space, a, node), distance(space, node, next[a])
                delta += _put_in(problem, routes, node, a, before, behind)
                put[n_put] = node
                n_put += 1
            if n_absent == 0 and (n_left > 0 or delta > threshold):
                break  # what is still to come costs something, too
        # accept?
        if n_left == 0:
            keep = n_absent > 0 or delta < threshold
        else:
            keep = n_absent > 0 and count <= count_before
        if keep and max_length < np.inf:  # fewer stops may be a longer way
            for i in range(n_touched):
                r = touched[i]
                if stops[r] > 0 and length[r] > max_length * (1.0 + SEARCH_SLACK):
                    keep = False
        if n_left > 0 and n_absent > 0:
            w = 0
            for i in range(n_out):
                if route[out[i]] < 0:
                    absences[out[i]] += 1
                    if keep:
                        absent[w] = out[i]
                        w += 1
        if keep:
            cost += delta
            n_absent = n_left
            sort_first(absent, n_absent)
            if n_absent < best_absent or (n_absent == best_absent and cost < best_cost - GAIN):
                best_cost, best_absent = cost, n_absent
                copy_into(next, best)
        else:
            for i in range(n_put - 1, -1, -1):
                node = put[i]
                _take_out(problem, routes, node, distance(space, prev[node], next[node]))
            for i in range(n_removed - 1, -1, -1):
                _put_in(problem, routes, log[i, 0], log[i, 1], was[i, 0], was[i, 1])
    return cost, best_cost, best_absent


@inlined
def _take_out(problem, routes, node, between):
    """Remove a customer, given the distance between its neighbours; returns the saving."""
    next, prev, leg, route, load, length, stops, empty, _ = routes
    r = route[node]
    a, b = prev[node], next[node]
    gain = leg[a] + leg[node] - between
    next[a], prev[b] = b, a
    leg[a] = between
    route[node] = -1
    load[r] -= problem.demand[node]
    length[r] -= gain + problem.service
    stops[r] -= 1
    if stops[r] == 0:
        top = len(empty) - 1
        empty[empty[top]] = r
        empty[top] += 1
    return gain


@inlined
def _put_in(problem, routes, node, a, before, behind):
    """Insert a customer after place `a`, given its distances to both neighbours."""
    next, prev, leg, route, load, length, stops, empty, _ = routes
    r = route[a]
    b = next[a]
    extra = before + behind - leg[a]
    prev[node], next[node] = a, b
    next[a] = prev[b] = node
    leg[a], leg[node] = before, behind
    route[node] = r
    load[r] += problem.demand[node]
    length[r] += extra + problem.service
    stops[r] += 1
    if stops[r] == 1:
        empty[len(empty) - 1] -= 1
    return extra


@inlined
def _best_place(problem, routes, blink_rate, node, touched, n_touched, state):
    """Cheapest allowed place of a customer: the place before it, or -1 if there is none.

    Looks beside its nearest customers, at the ends of the routes that were touched and at an empty
    route; everywhere only if none is found. A place whose cost cannot be lower, by the triangle
    inequality, is passed over at once.
    """
    space, near, far = problem.space, problem.near, problem.far
    next, prev, leg, route, load, length, stops, empty, _ = routes
    room = problem.capacity - problem.demand[node]
    slack = problem.max_length - problem.service
    m = len(near)
    best = np.inf
    after = -1
    n_empty = empty[len(empty) - 1]
    if n_empty > 0:
        depot = m + empty[n_empty - 1]
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
        edge = leg[beside]
        if edge > there - 0.5 * best:
            extra = there + distance(space, next[beside], node) - edge
            if extra < best and length[r] + extra <= slack and random_float(state) >= blink_rate:
                best, after = extra, beside
        other = prev[beside]
        edge = leg[other]
        if edge > there - 0.5 * best:
            extra = there + distance(space, other, node) - edge
            if extra < best and length[r] + extra <= slack and random_float(state) >= blink_rate:
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
            extra = there + distance(space, b, node) - leg[a]
            if extra < best and length[r] + extra <= slack and random_float(state) >= blink_rate:
                best, after = extra, a
    if after < 0:
        for r in range(len(load)):
            if stops[r] == 0 or load[r] > room:
                continue
            a = m + r
            while True:
                b = next[a]
                extra = distance(space, a, node) + distance(space, node, b) - leg[a]
                if extra < best and length[r] + extra <= slack:
                    best, after = extra, a
                if b == m + r:
                    break
                a = b
    return after


@inlined
def _choose_string(m, routes, ruin, limit, node, state):
    """A string around a customer: (its first, how many to walk, where to spare how many)."""
    next, prev = routes.next, routes.prev
    there = routes.stops[routes.route[node]]
    size = min(int(1.0 + random_float(state) * min(float(there), limit)), there)
    # sometimes a string is cut with a piece in its middle spared
    spared = 0
    if size > 1 and size < there and random_float(state) < ruin.split_probability:
        spared = 1
        while size + spared < there and random_float(state) < ruin.split_growth:
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
    spare_from = 1 + random_below(state, size - 1) if spared > 0 else total
    return start, reach, spare_from, spared


@inlined
def _sort_for_insertion(problem, ruin, out, n_out, key, state):
    """Order the customers at random, by demand, far first or near first."""
    space, demand, m = problem.space, problem.demand, len(problem.near)
    heavy = ruin.random_order
    far = heavy + ruin.heavy_first
    near = far + ruin.far_first
    draw = random_below(state, near + ruin.near_first)
    for i in range(n_out):
        node = out[i]
        if draw < heavy:
            key[i] = random_float(state)
        elif draw < far:
            key[i] = -demand[node]
        elif draw < near:
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

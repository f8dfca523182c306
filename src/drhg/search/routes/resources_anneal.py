"""Ruin and recreate over pieces with resources: windows, shifts, releases, one-way distances.

The same search as `ruin_recreate`, SISR (Christiaens and Vanden Berghe 2020), for everything that
routes over plain customers do not know. All limits are hard: a plan on the way keeps every one of
them, so a place is judged by what the route before it and behind it needs, in constant time.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from drhg.hypergraph.plan import Index
from drhg.kernels.arrays import copy_into, sort_first
from drhg.kernels.jit import kernel
from drhg.kernels.random import random_below, random_float
from drhg.problem import Floats, Ints
from drhg.problem.tolerances import GAIN, TIE
from drhg.search.routes.params import PieceRuinParams
from drhg.search.routes.piece_kinds import exchange_vehicles, other_vehicle
from drhg.search.routes.piece_places import best_place, keeps_limits
from drhg.search.routes.pieces import (
    PiecePart,
    drive,
    lent,
    time_back,
    time_front,
    time_route,
    way,
)


class Ruin(NamedTuple):
    """The parameters of a step in the form kernels take (see `PieceRuinParams`)."""

    average_removed: float
    longest_string: float
    split_probability: float
    split_growth: float
    blink_rate: float
    orders: Floats  # (7,): sums of the weights of the orders of insertion
    change_vehicle: float  # 0 where all vehicles are alike, or locks tell them apart
    skip_type: float  # likewise


class Scratch(NamedTuple):
    """Arrays of one slice only, allocated by NumPy: numba would compile a second longer."""

    out: Index  # (m + 8,) the pieces taken out, in the order in which they are put back
    put: Index  # those put back so far
    key: Floats  # by which they are ordered
    log: Index  # (m + 8, 2) who was taken from behind whom
    was: Floats  # the distances there
    absent: Index  # pieces in no route
    mark: Ints  # (slots,) the last step in which a route lost pieces
    changed: Ints  # (slots,) the last step in which its times were set back
    touched: Index  # (slots + 2,) the routes that lost pieces in this step


def anneal(
    part: PiecePart, params: PieceRuinParams, temperature: float, steps: int,
    state: npt.NDArray[np.uint64],
) -> tuple[float, float, int]:  # fmt: skip
    """`steps` times: remove strings, insert, accept by annealing or undo. In place.

    Returns (change of cost, the same for the best routes of this slice, pieces that they leave
    out). Fewer pieces left out are better at any cost; while there are some, a step is kept if
    those it leaves out have been left out less often than those left out before (SISR's absence
    counters).
    """
    room, slots = len(part.problem.near) + 8, len(part.routes.load)
    scratch = Scratch(
        out=np.empty(room, np.int32), put=np.empty(room, np.int32), key=np.empty(room),
        log=np.empty((room, 2), np.int32), was=np.empty((room, 2)),
        absent=np.empty(room, np.int32), mark=np.zeros(slots, np.int64),
        changed=np.zeros(slots, np.int64), touched=np.empty(slots + 2, np.int32),
    )  # fmt: skip
    weights = [params.random_order, params.heavy_first, params.far_first, params.near_first]
    if part.problem.timed:
        weights += [params.narrow_first, params.early_first, params.late_first]
    stops = part.routes.stops
    longest = min(params.longest_string, stops.sum() / max(1, np.count_nonzero(stops)))
    differ = len(part.routes.empty) > 1 and len(part.problem.allowed) == 0
    ruin = Ruin(
        max(params.average_removed, params.strings * longest), params.longest_string,
        params.split_probability, params.split_growth, params.blink_rate,
        np.cumsum(weights, dtype=np.float64),
        params.change_vehicle if differ else 0.0, params.skip_type if differ else 0.0,
    )  # fmt: skip
    found: tuple[float, float, int] = _anneal(part, ruin, temperature, steps, state, scratch)
    return found


@partial(kernel, _nrt=False)
def _anneal(part, ruin, temperature, steps, state, scratch):
    problem, routes, best = part
    near, timed = problem.near, problem.timed
    out, put, key, log, was, absent, mark, changed, touched = scratch
    next, prev, leg, route = routes.next, routes.prev, routes.leg, routes.route
    stops, absences = routes.stops, routes.absences
    m = len(near)
    slots = len(stops)
    cost = 0.0
    best_cost = 0.0
    n_absent = 0
    for i in range(m):
        if route[i] < 0:
            absent[n_absent] = i
            n_absent += 1
    used = 0
    for r in range(slots):
        used += stops[r] > 0
    best_absent = n_absent
    copy_into(next, best)
    for step in range(1, (steps if m > 0 else 0) + 1):
        # ruin: strings out of the routes around a random piece
        seed = random_below(state, m)
        limit = min(ruin.longest_string, (m - n_absent) / max(1, used))
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
                there = next[node]
                if not (spare_from <= j < spare_from + spared):
                    a = prev[node]
                    log[n_removed, 0], log[n_removed, 1] = node, a
                    was[n_removed, 0], was[n_removed, 1] = leg[a], leg[node]
                    out[n_removed] = node
                    n_removed += 1
                    delta -= _take_out(problem, routes, node, way_or_none(problem, a, there))
                node = there
            if stops[r] == 0:
                used -= 1
            if timed:
                time_route(problem, routes, r)
        one = other = -1
        if ruin.change_vehicle > 0.0 and random_float(state) < ruin.change_vehicle:
            change, one, other = other_vehicle(problem, routes, touched, n_touched, state)
            delta += change
            if one >= 0:
                touched[n_touched] = other
                n_touched += 1
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
            a = best_place(problem, routes, ruin, node, touched, n_touched, state)
            if a < 0:
                n_left += 1
                count += absences[node]
            else:
                r = route[a]
                used += stops[r] == 0
                delta += _put_in(
                    problem, routes, node, a, way(problem, a, node), way(problem, node, next[a])
                )
                put[n_put] = node
                n_put += 1
                if timed:
                    _time_insertion(problem, routes, node)
            if n_absent == 0 and (n_left > 0 or delta > threshold):
                break  # what is still to come costs something, too
        # accept?
        if n_left == 0:
            keep = n_absent > 0 or delta < threshold
        else:
            keep = n_absent > 0 and count <= count_before
        if keep:  # a route of fewer stops may be longer
            for i in range(n_touched):
                keep = keep and keeps_limits(problem, routes, touched[i])
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
                r = route[node]
                a, b = prev[node], next[node]
                _take_out(problem, routes, node, way_or_none(problem, a, b))
                used -= stops[r] == 0
                put[i] = r
            if one >= 0:
                exchange_vehicles(problem, routes, other, one)
            for i in range(n_removed - 1, -1, -1):
                used += stops[route[log[i, 1]]] == 0
                _put_in(problem, routes, log[i, 0], log[i, 1], was[i, 0], was[i, 1])
            if timed:
                for i in range(n_touched + n_put):
                    r = touched[i] if i < n_touched else put[i - n_touched]
                    if changed[r] != step:
                        changed[r] = step
                        time_route(problem, routes, r)
    return cost, best_cost, best_absent


@lent
def way_or_none(problem, a, b):
    """The way between two places; none in a route that has become empty."""
    return 0.0 if a == b else way(problem, a, b)


@lent
def _time_insertion(problem, routes, node):
    """Bring the times of the route around a piece just inserted up to date."""
    if problem.ranged:
        time_route(problem, routes, routes.route[node])
        return
    a, b = routes.prev[node], routes.next[node]
    routes.ready[node] = problem.duration[node] + max(
        problem.opens[node], routes.ready[a] + drive(problem, a, node, routes.leg[a])
    )
    last = routes.due[b] - drive(problem, node, b, routes.leg[node]) - problem.duration[node]
    routes.due[node] = min(problem.shut[node], last)
    time_front(problem, routes, node, True)
    time_back(problem, routes, node, True)


@lent
def _take_out(problem, routes, node, between):
    """Remove a piece, given the distance between its neighbours; returns the saving."""
    next, prev, leg, empty = routes.next, routes.prev, routes.leg, routes.empty
    r = routes.route[node]
    a, b = prev[node], next[node]
    gain = leg[a] + leg[node] - between
    next[a], prev[b] = b, a
    leg[a] = between
    routes.route[node] = -1
    routes.load[r] -= problem.load[node]
    routes.length[r] -= gain + problem.length[node]
    routes.stops[r] -= 1
    if routes.stops[r] == 0:
        kind, top = problem.kind[r], empty.shape[1] - 1
        empty[kind, empty[kind, top]] = r
        empty[kind, top] += 1
        gain += problem.fixed[r]
    return gain


@lent
def _put_in(problem, routes, node, a, before, behind):
    """Insert a piece after place `a`, given its distances to both neighbours; returns the cost."""
    next, prev, leg, empty = routes.next, routes.prev, routes.leg, routes.empty
    r = routes.route[a]
    b = next[a]
    extra = before + behind - leg[a]
    prev[node], next[node] = a, b
    next[a] = prev[b] = node
    leg[a], leg[node] = before, behind
    routes.route[node] = r
    routes.load[r] += problem.load[node]
    routes.length[r] += extra + problem.length[node]
    routes.stops[r] += 1
    if routes.stops[r] == 1:  # it is the last of its stack: see `_empty_route`
        kind, top = problem.kind[r], empty.shape[1] - 1
        empty[kind, top] -= 1
        extra += problem.fixed[r]
    return extra


@lent  # `ruin_recreate` has the same, compiled for arrays of its own
def _choose_string(m, routes, ruin, limit, node, state):
    """A string around a piece: (its first, how many to walk, where to spare how many)."""
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


@lent
def _sort_for_insertion(problem, ruin, out, n_out, key, state):
    """Order the pieces at random, by load, by distance to a depot, or by their windows."""
    orders, spread = ruin.orders, problem.spread
    draw = random_float(state) * orders[-1]
    order = 0
    while draw >= orders[order]:
        order += 1
    for i in range(n_out):
        node = out[i]
        if order == 0:
            key[i] = random_float(state)
        elif order == 1:
            key[i] = -problem.load[node]
        elif order == 2:
            key[i] = -spread[0, node]
        elif order == 3:
            key[i] = spread[0, node]
        elif order == 4:
            key[i] = spread[1, node]
        elif order == 5:
            key[i] = problem.opens[node]
        else:
            key[i] = -problem.closes[node]
    for i in range(1, n_out):
        value, node = key[i], out[i]
        j = i
        while j > 0 and key[j - 1] > value:
            key[j], out[j] = key[j - 1], out[j - 1]
            j -= 1
        key[j], out[j] = value, node

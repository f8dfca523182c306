"""What every stop's place costs, and where else it could stand: exact, by trying every place."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from drhg.hypergraph.plan import Flags, Index
from drhg.kernels.jit import inner, kernel
from drhg.kernels.space import Space, distance
from drhg.problem import Floats, Ints, Solution
from drhg.problem.resources import Resources
from drhg.search.routes.pieces import join

OVERLOAD, TOO_LONG, NO_VEHICLE, LOCKED, LATE, TOO_SLOW = 1, 2, 4, 8, 16, 32  # what is in the way


class Terms(NamedTuple):
    """An instance as explaining sees it; what is put into a plan may be a chain, which has the row
    of its first node."""

    space: Space
    times: Floats  # (n, n): durations of ways; (0, 0) if they equal distances
    fixed: Index  # (n, 2): nodes joined to this one by a fixed edge, -1 for none
    tail: Index  # (n,): last node
    load: Ints  # (n,)
    length: Floats  # (n,): of the way inside, and service if that counts against a length limit
    duration: Floats  # (n,)
    opens: Floats  # (n,)
    closes: Floats  # (n,): with allowance for rounding, as all limits here
    release: Floats  # (n,): its vehicle leaves no earlier; -inf if it need not wait
    depot: int  # -1 for a TSP
    start: int  # of a path, -1 if any node may be first
    end: int
    returns: bool
    symmetric: bool
    timed: bool  # whether it matters when a stop is served
    capacity: int
    max_length: float
    max_duration: float
    vehicles: int


class Layout(NamedTuple):
    """Routes laid end to end; route r has the gaps begins[r] + r .. begins[r + 1] + r."""

    order: Index  # (N,): stops
    begins: Index  # (R + 1,): where each route begins in the order
    load: Ints  # (R,)
    length: Floats  # (R,): service included
    leg: Floats  # (N + R,): the distance that each gap bridges
    closed: Flags  # (N + R,): gaps in which nothing may be put
    stuck: Flags  # (n,): nodes that may not be moved
    barred: Flags  # (n, R + 1) or (0, 0): nodes that may not be in a route; last, in a new one


class Places(NamedTuple):
    """For some stops: what leaving out saves, the best place elsewhere, the best if all could be.

    A place is a route (the number of routes for a new one, -1 for none) and the position in the
    order before which the stop would stand.
    """

    saving: Floats
    cost: Floats  # of the best place that keeps all limits; inf if there is none
    route: Index
    before: Index
    any_cost: Floats  # of the best place, limits or not
    any_route: Index
    any_before: Index
    broken: Index  # the limits that it breaks, a sum of the constants above


def layout_of(terms: Terms, solution: Solution) -> Layout:
    """Routes as a layout in which nothing is locked but fixed edges and the ends of a path."""
    order = np.concatenate([np.zeros(0, np.int64), *solution.routes]).astype(np.int32)
    begins = np.cumsum([0] + [len(route) for route in solution.routes]).astype(np.int32)
    count = len(begins) - 1
    stuck = np.any(terms.fixed >= 0, axis=1, keepdims=False)
    stuck[[node for node in (terms.start, terms.end) if node >= 0]] = True
    layout = Layout(
        order, begins, np.zeros(count, np.int64), np.zeros(count), np.zeros(len(order) + count),
        np.zeros(len(order) + count, np.bool_), stuck, np.zeros((0, 0), np.bool_),
    )  # fmt: skip
    _measure(terms, layout)
    return layout


@kernel
def _measure(terms, layout):
    space, depot, returns, fixed = terms.space, terms.depot, terms.returns, terms.fixed
    order, begins, load, length, leg, closed, _, _ = layout
    for r in range(len(load)):
        first, end = begins[r], begins[r + 1]
        for p in range(first, end):
            node = order[p]
            before = order[p - 1] if p > first else (depot if depot >= 0 else order[end - 1])
            load[r] += terms.load[node]
            length[r] += terms.length[node]
            if p == first and depot < 0 and not returns:
                continue  # a path has nobody before its first node
            leg[p + r] = distance(space, before, node)
            length[r] += leg[p + r]
            if fixed[node, 0] == before or fixed[node, 1] == before:
                closed[p + r] = True
                if p == first:
                    closed[end + r] = True  # the same edge of a tour
        if depot >= 0 and returns and end > first:
            leg[end + r] = distance(space, order[end - 1], depot)
            length[r] += leg[end + r]
        if terms.start >= 0:
            closed[first + r] = True
        if terms.end >= 0:
            closed[end + r] = True


def flaws_of(terms: Terms, layout: Layout) -> Index:
    """The limits that each route breaks by itself, a sum of the constants above."""
    flaws = np.zeros(len(layout.load), np.int32)
    _flaws(terms, layout, flaws)
    return flaws


@kernel
def _flaws(terms, layout, flaws):
    for r in range(len(flaws)):
        if layout.load[r] > terms.capacity:
            flaws[r] |= OVERLOAD
        if layout.length[r] > terms.max_length:
            flaws[r] |= TOO_LONG
        if terms.timed:
            flaws[r] |= _out_of_time(terms, layout, r, -1, -1, -1)


def places_of(terms: Terms, layout: Layout, stops: Index, where: Index) -> Places:
    """The places of some stops that stand at these positions of the order, or at -1: nowhere."""
    n = len(stops)
    found = Places(
        np.zeros(n), np.full(n, np.inf), np.full(n, -1, np.int32), np.full(n, -1, np.int32),
        np.full(n, np.inf), np.full(n, -1, np.int32), np.full(n, -1, np.int32),
        np.zeros(n, np.int32),
    )  # fmt: skip
    _places(terms, layout, stops.astype(np.int32), where.astype(np.int32), found)
    return found


@kernel
def _places(terms, layout, stops, where, found):
    space, depot, tail = terms.space, terms.depot, terms.tail
    order, begins, load, length, leg, closed, stuck, barred = layout
    saving, cost, route, before, any_cost, any_route, any_before, broken = found
    n_routes = len(load)
    tour = depot < 0 and terms.returns
    for i in range(len(stops)):
        node, at = stops[i], where[i]
        last, inside = tail[node], terms.length[node]
        own = -1
        if at >= 0:
            own = 0
            while begins[own + 1] <= at:
                own += 1
            saving[i] = _saving(terms, layout, own, at)
        # what holds it where it is
        held = LOCKED if stuck[node] and at >= 0 else 0
        # what is wrong with the route that it leaves, which may be worse if ways are odd
        away = held
        if own >= 0 and length[own] - saving[i] - inside > terms.max_length:
            away |= TOO_LONG
        if own >= 0 and terms.timed:
            away |= _out_of_time(terms, layout, own, -1, -1, at)
        out = distance(space, depot, node) if depot >= 0 else 0.0
        back = distance(space, last, depot) if depot >= 0 and terms.returns else 0.0
        for r in range(n_routes):
            first, end = begins[r], begins[r + 1]
            if end == first:
                continue
            wrong = held if r == own else away
            slack = terms.max_length - length[r]
            if r == own:
                slack += saving[i]
            else:
                slack -= inside
                if load[r] + terms.load[node] > terms.capacity:
                    wrong |= OVERLOAD
                if len(barred) > 0 and barred[node, r]:
                    wrong |= LOCKED
            left = distance(space, order[end - 1], node) if tour else out
            # a tour has no gap behind its last stop other than the one before its first
            for p in range(first, end if tour else end + 1):
                right = distance(space, last, order[p]) if p < end else back
                extra = left + right - leg[p + r]
                if p < end:
                    both = terms.symmetric and last == node
                    left = right if both else distance(space, order[p], node)
                if extra >= cost[i] and extra >= any_cost[i]:
                    continue
                if r == own and (p == at or p == at + 1 or (tour and p == first and at == end - 1)):
                    continue  # beside itself is where it stands
                flaws = wrong
                if extra > slack:
                    flaws |= TOO_LONG
                if closed[p + r]:
                    flaws |= LOCKED
                if terms.timed and (extra < any_cost[i] or flaws == 0):
                    flaws |= _out_of_time(terms, layout, r, node, p, at if r == own else -1)
                if extra < any_cost[i]:
                    any_cost[i], any_route[i], any_before[i] = extra, r, p
                    broken[i] = flaws
                if flaws == 0 and extra < cost[i]:
                    cost[i], route[i], before[i] = extra, r, p
        alone = own >= 0 and begins[own + 1] - begins[own] == 1
        if depot >= 0 and not alone:
            extra = out + back
            flaws = away
            if extra + inside > terms.max_length:
                flaws |= TOO_LONG
            if n_routes >= terms.vehicles:
                flaws |= NO_VEHICLE
            if len(barred) > 0 and barred[node, n_routes]:
                flaws |= LOCKED
            if terms.timed:
                flaws |= _out_of_time(terms, layout, -1, node, 0, -1)
            if extra < any_cost[i]:
                any_cost[i], any_route[i], any_before[i] = extra, n_routes, len(order)
                broken[i] = flaws
            if flaws == 0 and extra < cost[i]:
                cost[i], route[i], before[i] = extra, n_routes, len(order)


@inner
def _saving(terms, layout, own, at):
    """What a route would be shorter without the stop at a position."""
    space, depot, order = terms.space, terms.depot, layout.order
    first, end = layout.begins[own], layout.begins[own + 1]
    node = order[at]
    a = order[at - 1] if at > first else (depot if depot >= 0 else order[end - 1])
    b = order[at + 1] if at + 1 < end else (depot if depot >= 0 else order[first])
    no_front = at == first and depot < 0 and not terms.returns
    no_rear = at + 1 == end and not terms.returns
    saved = 0.0
    if not no_front:
        saved += distance(space, a, node)
    if not no_rear:
        saved += distance(space, node, b)
    if not (no_front or no_rear):
        saved -= distance(space, a, b)
    return saved


@inner
def _out_of_time(terms, layout, r, node, before, without):
    """The limits of time that a route breaks with a node before one position and without another.

    Route -1 is a new one; no node, or no position, is -1. The route is walked stop by stop.
    """
    order, depot = layout.order, terms.depot
    first = layout.begins[r] if r >= 0 else 0
    end = layout.begins[r + 1] if r >= 0 else 0
    leaves, gone = terms.opens[depot], terms.closes[depot]
    if node >= 0:
        leaves = max(leaves, terms.release[node])
    for p in range(first, end):
        if p != without:
            leaves = max(leaves, terms.release[order[p]])
    flaws = LATE if leaves > gone else 0
    whole = Resources(0.0, 0.0, 0.0, 0.0, leaves, max(leaves, gone))
    here = depot
    for p in range(first, end + 1):
        if p == before and node >= 0:
            whole = _joined(terms, whole, here, node)
            here = terms.tail[node]
        if p < end and p != without:
            whole = _joined(terms, whole, here, order[p])
            here = order[p]
    if terms.returns and here != depot:
        home = Resources(0.0, 0.0, 0.0, 0.0, terms.opens[depot], gone)
        whole = join(whole, home, 0.0, _time(terms, here, depot))
    if whole.time_warp > 0.0:
        flaws |= LATE
    if whole.duration - whole.time_warp > terms.max_duration:
        flaws |= TOO_SLOW
    return flaws


@inner
def _joined(terms, whole, here, node):
    opens, closes = terms.opens[node], terms.closes[node]
    stop = Resources(0.0, 0.0, terms.duration[node], 0.0, opens, closes)
    return join(whole, stop, 0.0, _time(terms, here, node))


@inner
def _time(terms, a, b):
    if len(terms.times) == 0:
        return distance(terms.space, a, b)
    return terms.times[a, b]

"""Places for a piece in the routes of a part: what each costs, and whether it keeps all limits."""

from __future__ import annotations

import numpy as np

from drhg.kernels.random import random_float
from drhg.problem.tolerances import SEARCH_SLACK
from drhg.search.routes.pieces import alone, before, behind, drive, join, lent, way


@lent
def keeps_limits(problem, routes, r):
    """Whether a route keeps its limits; capacities are kept at any time."""
    m = len(problem.node)
    if routes.stops[r] == 0:
        return True
    if routes.length[r] > problem.max_length[r] * (1.0 + SEARCH_SLACK):
        return False
    if not problem.timed:
        return True
    depot = m + r
    first = routes.next[depot]
    way = drive(problem, depot, first, routes.leg[depot])
    if routes.ready[depot] + way > routes.due[first]:
        return False
    if not problem.ranged:
        return True
    whole = join(before(routes, depot), behind(routes, first), 0.0, way)
    return _in_range(problem, routes, r, whole, -np.inf)


@lent
def _in_range(problem, routes, r, whole, release):
    """Whether a route's duration is allowed and it can wait for the last release."""
    return (
        whole.duration <= problem.max_duration[r]
        and max(routes.release[r], release) <= whole.latest
    )


@lent
def _fits_range(problem, routes, a, node, b, there, back):
    """Whether a route with a piece between two places keeps its range, given the times."""
    r = routes.route[a]
    front = join(before(routes, a), alone(problem, node), 0.0, there)
    whole = join(front, behind(routes, b), 0.0, back)
    return _in_range(problem, routes, r, whole, problem.release[node])


@lent
def _fits(problem, routes, a, node, b, there, back):
    """Whether a piece between two places, so far away, keeps all times."""
    if not problem.timed:
        return True
    there, back = drive(problem, a, node, there), drive(problem, node, b, back)
    begin = max(problem.opens[node], routes.ready[a] + there)
    if begin > problem.shut[node]:
        return False
    if begin + problem.duration[node] + back > routes.due[b]:
        return False
    return not problem.ranged or _fits_range(problem, routes, a, node, b, there, back)


@lent
def best_place(problem, routes, ruin, node, touched, n_touched, state):
    """Cheapest allowed place of a piece: the place before it, or -1 if there is none.

    Looks beside its likeliest neighbours, at the ends of the routes that were touched and at an
    empty route of each kind; everywhere only if none is found. A place whose cost cannot be lower
    is passed over at once.
    """
    near, load, length, stops = problem.near, routes.load, routes.length, routes.stops
    next, prev, leg, route = routes.next, routes.prev, routes.leg, routes.route
    need, own, bound = problem.load[node], problem.length[node], problem.bound
    m = len(near)
    blink_rate = ruin.blink_rate
    best, after = _empty_route(problem, routes, ruin.skip_type, node, state)
    for i in range(near.shape[1]):
        beside = near[node, i]
        if beside < 0:
            break
        r = route[beside]
        if r < 0 or load[r] + need > problem.capacity[r]:
            continue
        if len(problem.allowed) > 0 and not problem.allowed[node, problem.kind[r]]:
            continue
        slack = problem.max_length[r] - own - length[r]
        there = problem.before[node, i]
        edge = leg[beside]
        if edge > there - bound * best:
            b = next[beside]
            back = way(problem, node, b)
            extra = there + back - edge
            if (
                extra < best
                and extra <= slack
                and _fits(problem, routes, beside, node, b, there, back)
                and random_float(state) >= blink_rate
            ):
                best, after = extra, beside
        a = prev[beside]
        edge = leg[a]
        back = problem.behind[node, i]
        if edge > back - bound * best:
            there = way(problem, a, node)
            extra = there + back - edge
            if (
                extra < best
                and extra <= slack
                and _fits(problem, routes, a, node, beside, there, back)
                and random_float(state) >= blink_rate
            ):
                best, after = extra, a
    for i in range(n_touched):
        r = touched[i]
        if load[r] + need > problem.capacity[r] or stops[r] == 0:
            continue
        if len(problem.allowed) > 0 and not problem.allowed[node, problem.kind[r]]:
            continue
        slack = problem.max_length[r] - own - length[r]
        for side in range(2):
            a = m + r if side == 0 else prev[m + r]
            b = next[a]
            there, back = way(problem, a, node), way(problem, node, b)
            extra = there + back - leg[a]
            if (
                extra < best
                and extra <= slack
                and _fits(problem, routes, a, node, b, there, back)
                and random_float(state) >= blink_rate
            ):
                best, after = extra, a
    if after < 0:
        after = _place_anywhere(problem, routes, node)
    return after


@lent
def _empty_route(problem, routes, skip_type, node, state):
    """The cost of a piece in the cheapest empty route, and the depot there; or (inf, -1).

    Types of vehicles are skipped at random: the cheapest for one piece is not for the route.
    """
    empty = routes.empty
    m, top = len(problem.node), empty.shape[1] - 1
    best = np.inf
    after = -1
    for kind in range(len(empty)):
        if empty[kind, top] == 0:
            continue
        if len(problem.allowed) > 0 and not problem.allowed[node, kind]:
            continue
        r = empty[kind, empty[kind, top] - 1]
        if problem.load[node] > problem.capacity[r]:
            continue
        if skip_type > 0.0 and random_float(state) < skip_type:
            continue
        there, back = way(problem, m + r, node), way(problem, node, m + r)
        extra = there + back
        if (
            extra + problem.fixed[r] < best
            and extra + problem.length[node] <= problem.max_length[r]
            and _fits(problem, routes, m + r, node, m + r, there, back)
        ):
            best, after = extra + problem.fixed[r], m + r
    return best, after


@lent
def _place_anywhere(problem, routes, node):
    """The cheapest allowed place of a piece in all routes that are not empty, or -1."""
    next, leg = routes.next, routes.leg
    m = len(problem.node)
    best = np.inf
    after = -1
    for r in range(len(routes.load)):
        if routes.stops[r] == 0 or routes.load[r] + problem.load[node] > problem.capacity[r]:
            continue
        if len(problem.allowed) > 0 and not problem.allowed[node, problem.kind[r]]:
            continue
        slack = problem.max_length[r] - problem.length[node] - routes.length[r]
        a = m + r
        while True:
            b = next[a]
            there, back = way(problem, a, node), way(problem, node, b)
            extra = there + back - leg[a]
            if extra < best and extra <= slack and _fits(problem, routes, a, node, b, there, back):
                best, after = extra, a
            if b == m + r:
                break
            a = b
    return after

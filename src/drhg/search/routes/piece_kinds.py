"""Routes that change their vehicle, for another kind or with one another."""

from __future__ import annotations

from drhg.kernels.random import random_below
from drhg.search.routes.piece_places import keeps_limits
from drhg.search.routes.pieces import lent, time_route, way


@lent
def other_vehicle(problem, routes, touched, n_touched, state):
    """Have a touched route change its vehicle with an empty or a touched one of another kind.

    Returns (the change of cost, one, other), or (0, -1, -1) if what was drawn cannot change.
    """
    if n_touched == 0:
        return 0.0, -1, -1
    load, capacity = routes.load, problem.capacity
    r = touched[random_below(state, n_touched)]
    kind, top = random_below(state, len(routes.empty)), routes.empty.shape[1] - 1
    if routes.stops[r] == 0 or kind == problem.kind[r]:
        return 0.0, -1, -1
    q = -1
    if routes.empty[kind, top] > 0:
        q = routes.empty[kind, routes.empty[kind, top] - 1]
    else:
        for i in range(n_touched):
            if problem.kind[touched[i]] == kind:
                q = touched[i]
    if q < 0 or load[r] > capacity[q] or load[q] > capacity[r]:
        return 0.0, -1, -1
    change = exchange_vehicles(problem, routes, r, q)
    if keeps_limits(problem, routes, r) and keeps_limits(problem, routes, q):
        return change, r, q
    exchange_vehicles(problem, routes, q, r)
    return 0.0, -1, -1


@lent
def exchange_vehicles(problem, routes, r, q):
    """Exchange the vehicles of two routes; with q and r it is undone. Returns the change of cost.

    The first is not empty; the second may be, if it is the last in the stack of its kind.
    """
    next, prev, leg, empty = routes.next, routes.prev, routes.leg, routes.empty
    load, length, stops, kind = routes.load, routes.length, routes.stops, problem.kind
    top = empty.shape[1] - 1
    m = len(problem.node)
    change = 0.0
    if stops[q] == 0:
        empty[kind[q], top] -= 1
        empty[kind[r], empty[kind[r], top]] = r
        empty[kind[r], top] += 1
        change = problem.fixed[q] - problem.fixed[r]
    first, last = next[m + r], prev[m + r]
    other_first, other_last = next[m + q], prev[m + q]
    outer = leg[m + r] + leg[last]
    other_outer = leg[m + q] + leg[other_last]
    there = _drive(problem, routes, q, first, last)
    here = _drive(problem, routes, r, other_first, other_last)
    load[r], load[q] = load[q], load[r]
    stops[r], stops[q] = stops[q], stops[r]
    length[r], length[q] = length[q] - other_outer + here, length[r] - outer + there
    if problem.timed:
        time_route(problem, routes, r)
        time_route(problem, routes, q)
    return change + here + there - outer - other_outer


@lent
def _drive(problem, routes, r, first, last):
    """Have the vehicle of a route visit a sequence; returns its ways from and to the depot."""
    next, prev, leg, route = routes.next, routes.prev, routes.leg, routes.route
    m = len(problem.node)
    depot = m + r
    if first >= m:  # nobody
        next[depot] = prev[depot] = depot
        leg[depot] = 0.0
        return 0.0
    next[depot], prev[first] = first, depot
    next[last], prev[depot] = depot, last
    leg[depot], leg[last] = way(problem, depot, first), way(problem, last, depot)
    here = first
    while here < m:
        route[here] = r
        here = next[here]
    return leg[depot] + leg[last]

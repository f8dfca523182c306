"""SWAP* (Vidal 2022): two customers of two routes exchange routes, each to its best place there."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from drhg.hypergraph.plan import Index
from drhg.kernels.jit import inlined, inner
from drhg.problem import Floats, Ints
from drhg.problem.tolerances import PENALISED_GAIN
from drhg.search.routes.moves import move_behind
from drhg.search.routes.params import RouteMoveParams
from drhg.search.routes.penalties import penalty


class SwapStar(NamedTuple):
    """What is known of places in other routes."""

    neighbours: int  # nearest customers of which one must be in the other route
    meeting: npt.NDArray[np.bool_]  # (slots, slots) whether such customers exist
    found: Ints  # (slots, m) when the cheapest places in a route for a customer were found
    place: Index  # (slots, m, places) the places before them, -1 for none
    cost: Floats  # (slots, m, places) what insertion there costs
    removal: Floats  # (m,) what taking a customer out costs


def swap_star_of(customers: int, slots: int, params: RouteMoveParams) -> SwapStar:
    """Nothing is known yet."""
    places = slots, customers, params.swap_star_places
    return SwapStar(
        params.swap_star_neighbours, np.zeros((slots, slots), np.bool_),
        np.full((slots, customers), -1, np.int64), np.empty(places, np.int32), np.empty(places),
        np.empty(customers),
    )  # fmt: skip


@inner
def find_meeting(problem, routes, swaps):
    """Note which routes have a customer with one of another route among its nearest."""
    near, route, meeting = problem.near, routes.route, swaps.meeting
    meeting[:] = False
    for u in range(len(near)):
        for c in range(min(near.shape[1], swaps.neighbours)):
            if near[u, c] >= 0:
                meeting[route[u], route[near[u, c]]] = True


@inlined
def join_meeting(swaps, a, b):
    """After an exchange of customers, both routes may meet all that either of them met."""
    meeting = swaps.meeting
    for r in range(len(meeting)):
        meeting[a, r] = meeting[b, r] = meeting[a, r] or meeting[b, r]
        meeting[r, a] = meeting[r, b] = meeting[r, a] or meeting[r, b]


@inner
def _candidates(problem, routes, swaps, a, b, listed):
    """The customers of route a that have one of route b among their nearest; how many."""
    near, next, route, m = problem.near, routes.next, routes.route, len(problem.demand)
    count = 0
    here = next[m + a]
    while here < m:
        for c in range(min(near.shape[1], swaps.neighbours)):
            v = near[here, c]
            if v < 0:
                break
            if route[v] == b:
                listed[count] = here
                count += 1
                break
        here = next[here]
    return count


@inlined
def _find_places(problem, routes, changed, moves, swaps, u, r):
    """Remember the cheapest places for u in route r."""
    matrix, m, next, leg = problem.matrix, len(problem.demand), routes.next, routes.leg
    found, place, cost = swaps.found, swaps.place, swaps.cost
    places = place.shape[2]
    if found[r, u] >= changed[r]:
        return
    found[r, u] = moves
    for i in range(places):
        place[r, u, i] = -1
        cost[r, u, i] = np.inf
    here = m + r
    to_here = matrix[u, m]
    while True:
        after = next[here]
        to_after = matrix[u, min(after, m)]
        added = to_here + to_after - leg[here]
        to_here = to_after
        if added < cost[r, u, places - 1]:
            i = places - 1
            while i > 0 and cost[r, u, i - 1] > added:
                cost[r, u, i] = cost[r, u, i - 1]
                place[r, u, i] = place[r, u, i - 1]
                i -= 1
            cost[r, u, i] = added
            place[r, u, i] = here
        here = after
        if here >= m:
            break


@inlined
def _cheapest_place(problem, routes, swaps, u, v, r):
    """The cheapest place for u in route r once v has left it: (cost, place before it)."""
    matrix, m, next, prev = problem.matrix, len(problem.demand), routes.next, routes.prev
    place, cost = swaps.place, swaps.cost
    a, b = min(prev[v], m), min(next[v], m)
    best = matrix[u, a] + matrix[u, b] - matrix[a, b]
    at = prev[v]
    for i in range(place.shape[2]):
        here = place[r, u, i]
        if here < 0:
            break
        if here != v and next[here] != v:
            if cost[r, u, i] < best:
                best = cost[r, u, i]
                at = here
            break
    return best, at


@inner
def swap_star(problem, penalties, routes, changed, moves, swaps, a, b, listed, other):
    """Make the best exchange of two customers of two routes, or relocation of one; whether it paid.

    Both go to their best places in the other route, not into each other's. `changed` is the last
    move that changed each route; `listed` and `other` are scratch.
    """
    matrix, demand, limits = problem.matrix, problem.demand, problem.limits
    next, prev, leg, m = routes.next, routes.prev, routes.leg, len(problem.demand)
    load, length = routes.load, routes.length
    place, cost, removal = swaps.place, swaps.cost, swaps.removal
    ours = listed[: _candidates(problem, routes, swaps, a, b, listed)]
    theirs = other[: _candidates(problem, routes, swaps, b, a, other)]
    paid = routes.penalty[a] + routes.penalty[b]
    best = -PENALISED_GAIN
    best_u, best_v, best_at, best_back = -1, -1, -1, -1
    for side in range(2):
        r, s, mine = (a, b, ours) if side == 0 else (b, a, theirs)
        for u in mine:
            _find_places(problem, routes, changed, moves, swaps, u, s)
            p, n = min(prev[u], m), min(next[u], m)
            removal[u] = matrix[p, n] - leg[prev[u]] - leg[u]
            added = cost[s, u, 0]
            change = removal[u] + added - paid
            if change < best:
                change += penalty(
                    limits, penalties, load[r] - demand[u], length[r] + removal[u] - limits.service
                )
                change += penalty(
                    limits, penalties, load[s] + demand[u], length[s] + added + limits.service
                )
                if change < best:
                    best = change
                    best_u, best_v, best_at, best_back = u, -1, place[s, u, 0], -1
    for u in ours:
        for v in theirs:
            if removal[u] + removal[v] - paid >= best:
                continue
            shift = demand[u] - demand[v]
            over = penalties.load * max(0.0, load[a] - shift - limits.load)
            over += penalties.load * max(0.0, load[b] + shift - limits.load) - paid
            if over + removal[u] + removal[v] >= best:
                continue
            in_u, at = _cheapest_place(problem, routes, swaps, u, v, b)
            if over + removal[u] + removal[v] + in_u >= best:  # v's place costs nothing at best
                continue
            in_v, back = _cheapest_place(problem, routes, swaps, v, u, a)
            change = removal[u] + in_u + removal[v] + in_v
            if change + over < best:
                change += penalty(limits, penalties, load[a] - shift, length[a] + removal[u] + in_v)
                change += penalty(limits, penalties, load[b] + shift, length[b] + removal[v] + in_u)
                change -= paid
                if change < best:
                    best = change
                    best_u, best_v, best_at, best_back = u, v, at, back
    if best_u < 0:
        return False
    # a place before which the other one stands is behind that one's predecessor then
    move_behind(routes, best_u, best_at)
    if best_v >= 0:
        move_behind(routes, best_v, best_back)
    return True

"""Moves of the local search on whole routes, those of HGS: what each is worth, and making it.

A move brings a customer u beside a customer v, which is usually one of its nearest; x and y follow
them. Routes are rings through a depot of their own: route r through m + r.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from drhg.hypergraph.plan import Index
from drhg.kernels.jit import inlined, inner
from drhg.problem import Floats
from drhg.problem.tolerances import PENALISED_GAIN
from drhg.search.routes.penalties import penalty

NO_MOVE = 0
RELOCATE = 1  # u behind v
RELOCATE_PAIR = 2  # u and x behind v
RELOCATE_PAIR_REVERSED = 3  # x and u behind v
SWAP = 4  # u for v
SWAP_PAIR_WITH_ONE = 5  # u and x for v
SWAP_PAIRS = 6  # u and x for v and y
TWO_OPT = 7  # the way from x to v is reversed
TWO_OPT_STAR_REVERSED = 8  # u is joined to v, x to y; what follows u goes backwards into v's route
TWO_OPT_STAR = 9  # u is joined to y, v to x: the routes exchange their ends


class RouteState(NamedTuple):
    """The routes during a local search, and what is known of them; changed in place."""

    next: Index  # (m + slots,) customers, then the depots of the routes
    prev: Index
    route: Index
    place: Index  # in its route, from 1
    load_to: Floats  # from the depot up to here
    length_to: Floats
    leg: Floats  # distance to the next
    load: Floats  # (slots,)
    length: Floats
    stops: Index
    penalty: Floats  # what a route pays for exceeding its limits
    links: Index  # (m, 2) neighbours in the route, as last counted
    moved: Index  # (m + slots,) the last move that changed them; depots are all the same


def route_state(customers: int, slots: int) -> RouteState:
    """Allocated by NumPy: numba would take two seconds longer to compile a kernel that does it."""
    size, i4 = customers + slots, np.int32
    return RouteState(
        next=np.empty(size, i4), prev=np.empty(size, i4), route=np.empty(size, i4),
        place=np.zeros(size, i4), load_to=np.zeros(size), length_to=np.zeros(size),
        leg=np.zeros(size), load=np.zeros(slots), length=np.zeros(slots),
        stops=np.zeros(slots, i4), penalty=np.zeros(slots),
        links=np.full((customers, 2), -1, i4), moved=np.zeros(size, i4),
    )  # fmt: skip


@inner
def update_route(problem, penalties, routes, r, moves):
    """Walk along a route and note what it is, and who has other neighbours since this move."""
    matrix, demand, limits = problem.matrix, problem.demand, problem.limits
    (
        next, _, route, place, load_to, length_to, leg, load, length, stops, paid, links, moved
    ) = routes  # fmt: skip
    m = len(demand)
    last = m + r
    so_far, way, count = 0.0, 0.0, 0
    here = next[last]
    while here < m:
        leg[last] = matrix[min(last, m), here]
        count += 1
        so_far += demand[here]
        way += leg[last] + limits.service
        route[here] = r
        place[here] = count
        load_to[here] = so_far
        length_to[here] = way
        if links[here, 0] != last or links[here, 1] != next[here]:
            links[here, 0], links[here, 1] = last, next[here]
            moved[here] = moves
        last = here
        here = next[here]
    leg[last] = matrix[min(last, m), m]
    load[r], length[r], stops[r] = so_far, way + leg[last], count
    paid[r] = penalty(limits, penalties, load[r], length[r])


@inlined
def move_behind(routes, u, v):
    """Take u out of its route and put it behind v."""
    next, prev = routes.next, routes.prev
    next[prev[u]] = next[u]
    prev[next[u]] = prev[u]
    y = next[v]
    next[v] = u
    prev[u] = v
    next[u] = y
    prev[y] = u


@inlined
def _swap(routes, u, v):
    """u and v, which are not neighbours, take each other's place."""
    next, prev = routes.next, routes.prev
    pu, x, pv, y = prev[u], next[u], prev[v], next[v]
    next[pu], prev[x] = v, v
    next[pv], prev[y] = u, u
    next[v], prev[v] = x, pu
    next[u], prev[u] = y, pv


@inlined
def link_route(routes, depot, listed, count):
    """A route through these customers."""
    next, prev = routes.next, routes.prev
    last = depot
    for i in range(count):
        next[last] = listed[i]
        prev[listed[i]] = last
        last = listed[i]
    next[last] = depot
    prev[depot] = last


class MoveContext(NamedTuple):
    """Where a customer stands: who is around it, and the distances there."""

    p: int  # before it, the depot as m
    x: int  # behind it, a depot as it is
    xx: int  # behind that, the depot as m
    mx: int  # x, the depot as m
    px: float  # what closes the gap if it leaves
    pxx: float  # or it and the next
    pu: float
    ux: float
    xxx: float  # from x to xx


@inlined
def context_of(problem, routes, u):
    """The context of a customer at present."""
    matrix, leg = problem.matrix, routes.leg
    next, prev = routes.next, routes.prev
    m = len(problem.demand)
    p, x = prev[u], next[u]
    mp, mx = min(p, m), min(x, m)
    xx = min(next[x], m) if x < m else m
    return MoveContext(
        mp, x, xx, mx, matrix[mp, mx], matrix[mp, xx], leg[p], leg[u], leg[x] if x < m else 0.0
    )


@inlined
def _pays(limits, penalties, apart, paid, change, load_u, length_u, load_v, length_v):
    """Whether a move is worth it: the change of all lengths, and what both routes are then.

    `paid` are their present penalties. Within one route only lengths count.
    """
    if not apart:
        return change < -PENALISED_GAIN
    if change >= paid - PENALISED_GAIN:
        return False
    after = penalty(limits, penalties, load_u, length_u)
    after += penalty(limits, penalties, load_v, length_v)
    return change + after - paid < -PENALISED_GAIN


@inlined
def first_that_pays(problem, penalties, routes, u, v, context):
    """The first move that brings u beside v and pays, or NO_MOVE; and the least that any of those
    before it adds to all lengths, wherever u and v are.

    Distances are looked up in the rows of u and its neighbours, which stay at hand while v changes.
    """
    matrix, demand, limits = problem.matrix, problem.demand, problem.limits
    next, prev, route, place, leg = routes.next, routes.prev, routes.route, routes.place, routes.leg
    load_to, length_to, load, length = routes.load_to, routes.length_to, routes.load, routes.length
    m = len(demand)
    ru, rv = route[u], route[v]
    service = limits.service
    p, x, xx, mx, px, pxx, pu, ux, x_xx = context
    y = next[v]
    mv, my = min(v, m), min(y, m)
    apart = ru != rv
    paid = routes.penalty[ru] + routes.penalty[rv]
    load_u, load_v, way_u, way_v = load[ru], load[rv], length[ru], length[rv]
    du = demand[u]
    vy, uv, uy = leg[v], matrix[u, mv], matrix[u, my]
    xv, xy = matrix[mx, mv], matrix[mx, my]
    lowest = np.inf
    if y != u:
        gain_u = px - pu - ux
        gain_v = uv + uy - vy
        lowest = min(lowest, gain_u + gain_v)
        if _pays(
            limits, penalties, apart, paid, gain_u + gain_v,
            load_u - du, way_u + gain_u - service, load_v + du, way_v + gain_v + service,
        ):  # fmt: skip
            return RELOCATE, lowest
    two = du
    if x < m:
        two += demand[x]
        if y != u and v != x:
            gain_u = pxx - pu - x_xx
            straight = uv + xy - vy
            turned = xv + uy - vy
            gain_v = min(straight, turned)
            moved = ux + 2.0 * service
            lowest = min(lowest, gain_u + gain_v)
            if _pays(
                limits, penalties, apart, paid, gain_u + gain_v,
                load_u - two, way_u + gain_u - moved, load_v + two, way_v + gain_v + moved,
            ):  # fmt: skip
                kind = RELOCATE_PAIR if straight <= turned else RELOCATE_PAIR_REVERSED
                return kind, lowest
    if v < m:
        pv = prev[v]
        pv_v = leg[pv]
        pv_u = matrix[u, min(pv, m)]
        p_v = matrix[p, v]
        dv = demand[v]
        if u < v and u != pv and u != y:
            gain_u = p_v + xv - pu - ux
            gain_v = pv_u + uy - pv_v - vy
            lowest = min(lowest, gain_u + gain_v)
            if _pays(
                limits, penalties, apart, paid, gain_u + gain_v,
                load_u + dv - du, way_u + gain_u, load_v + du - dv, way_v + gain_v,
            ):  # fmt: skip
                return SWAP, lowest
        if x < m:
            if u != pv and x != pv and u != y:
                gain_u = p_v + matrix[xx, v] - pu - x_xx
                gain_v = pv_u + xy - pv_v - vy
                moved = ux + service
                lowest = min(lowest, gain_u + gain_v)
                if _pays(
                    limits, penalties, apart, paid, gain_u + gain_v,
                    load_u + dv - two, way_u + gain_u - moved,
                    load_v + two - dv, way_v + gain_v + moved,
                ):  # fmt: skip
                    return SWAP_PAIR_WITH_ONE, lowest
            if y < m and u < v and y != prev[u] and u != y and x != v and v != next[x]:
                gain_u = p_v + matrix[xx, y] - pu - x_xx
                gain_v = pv_u + matrix[x, min(next[y], m)] - pv_v - leg[y]
                shift = dv + demand[y] - two
                lowest = min(lowest, gain_u + gain_v)
                if _pays(
                    limits, penalties, apart, paid, gain_u + gain_v,
                    load_u + shift, way_u + gain_u + vy - ux,
                    load_v - shift, way_v + gain_v + ux - vy,
                ):  # fmt: skip
                    return SWAP_PAIRS, lowest
    turned = uv + xy - ux - vy
    straight = uy + xv - ux - vy
    lowest = min(lowest, turned, straight)
    if not apart:
        forward = place[u] < place[v] and x != v
        return TWO_OPT if forward and turned < -PENALISED_GAIN else NO_MOVE, lowest
    loads, ways = load_u + load_v, way_u + way_v
    if v < m or y < m:
        front, way = load_to[u] + load_to[v], length_to[u] + uv + length_to[v]
        if _pays(
            limits, penalties, apart, paid, turned, front, way, loads - front, ways + turned - way
        ):
            return TWO_OPT_STAR_REVERSED, lowest
    front = load_to[u] + load_v - load_to[v]
    way = length_to[u] + uy + way_v - length_to[v] - vy
    if _pays(
        limits, penalties, apart, paid, straight, front, way, loads - front, ways + straight - way
    ):
        return TWO_OPT_STAR, lowest
    return NO_MOVE, lowest


@inner
def make_move(routes, kind, u, v, listed, other):
    """Make a move; `listed` and `other` are scratch."""
    next, prev = routes.next, routes.prev
    x, y = next[u], next[v]
    if kind == RELOCATE:
        move_behind(routes, u, v)
    elif kind == RELOCATE_PAIR:
        move_behind(routes, u, v)
        move_behind(routes, x, u)
    elif kind == RELOCATE_PAIR_REVERSED:
        move_behind(routes, x, v)
        move_behind(routes, u, x)
    elif kind == SWAP:
        _swap(routes, u, v)
    elif kind == SWAP_PAIR_WITH_ONE:
        _swap(routes, u, v)
        move_behind(routes, x, u)
    elif kind == SWAP_PAIRS:
        _swap(routes, u, v)
        _swap(routes, x, y)
    elif kind == TWO_OPT:
        here, last = v, u
        while here != u:
            before = prev[here]
            next[last] = here
            prev[here] = last
            last, here = here, before
        next[last] = y
        prev[y] = last
    else:
        _two_opt_star(routes, u, v, kind == TWO_OPT_STAR_REVERSED, listed, other)


@inlined
def _two_opt_star(routes, u, v, reverse, listed, other):
    """Join the ends of two routes anew: behind u comes v and the way before it, or the rest of v's
    route."""
    next, prev, m = routes.next, routes.prev, len(routes.links)
    ru, rv = routes.route[u], routes.route[v]
    a = 0
    b = 0
    here = next[m + ru]
    stop = next[u]
    while here != stop:
        listed[a] = here
        a += 1
        here = next[here]
    if reverse:
        here = v
        while here < m:
            listed[a] = here
            a += 1
            here = prev[here]
        here = prev[m + ru]
        while here != u:
            other[b] = here
            b += 1
            here = prev[here]
        here = next[v]
    else:
        here = next[v]
        while here < m:
            listed[a] = here
            a += 1
            here = next[here]
        here = next[m + rv]
        stop = next[v]
        while here != stop and here < m:
            other[b] = here
            b += 1
            here = next[here]
        here = next[u]
    while here < m:
        other[b] = here
        b += 1
        here = next[here]
    link_route(routes, m + ru, listed, a)
    link_route(routes, m + rv, other, b)

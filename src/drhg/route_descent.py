"""Plans improved by moves between whole routes, where too much load is allowed at a price.

A descent tears a customer (or a pair, or the rest of a route) out and puts it beside one of its
nearest neighbours, or trades it, as long as that pays; at the end pairs of routes trade customers
that both find their best places (SWAP*). Loads and lengths beyond the limits cost so much per unit,
because the way to a better plan often leads past them. The moves and `split` follow the hybrid
genetic search of Vidal (2022).

Customers are numbered 0 .. m - 1 here, and distances are a matrix whose last row is the depot's:
this is for plans of a few hundred customers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from drhg.compiled import inlined, inner, kernel, random_below, stable_order
from drhg.hypergraph import Index
from drhg.problem import Floats, Ints

PLACES = 3  # cheapest places in a route that are remembered for a customer
MEET = 8  # nearest customers of which one must be in the other route, for one to go there
TINY = 1e-7  # what is less is no gain
LOOSE = 1e-10  # by which share a length may be beyond its limit, for rounding


class Bounds(NamedTuple):
    """What a route may carry, and how far it may go with so much service per customer."""

    load: float
    length: float
    service: float


class Land(NamedTuple):
    """What does not change: distances, demands, neighbours and limits."""

    matrix: Floats  # (m + 1, m + 1): the depot is the last
    demand: Floats  # (m,)
    near: Index  # (m, k): nearest customers, and those that one is nearest to; then -1
    bounds: Bounds


class Price(NamedTuple):
    """What a unit beyond a limit costs."""

    load: float
    length: float


@kernel
def split(land, order, slots, price):
    """Cut a sequence of customers into at most `slots` routes at the least cost: their ends.

    No route may have more than one and a half loads, unless there is no other way.
    """
    ends = _split(land, order, slots, price, 1.5 * land.bounds.load)
    if len(ends) == 0:
        ends = _split(land, order, slots, price, np.inf)
    return ends


@inner
def _split(land, order, slots, price, most):
    matrix, demand, bounds, service = land.matrix, land.demand, land.bounds, land.bounds.service
    m = len(order)
    depot = m
    # any number of routes at first: often it is small enough
    lowest = np.full((1, m + 1), np.inf)
    came = np.zeros((1, m + 1), np.int32)
    lowest[0, 0] = 0.0
    for fleet in range(2):
        rows = 1 if fleet == 0 else slots
        if fleet == 1:
            lowest = np.full((slots + 1, m + 1), np.inf)
            came = np.zeros((slots + 1, m + 1), np.int32)
            lowest[0, 0] = 0.0
        for row in range(rows):
            into = row + fleet
            for i in range(m):
                if lowest[row, i] == np.inf:
                    continue
                load = 0.0
                length = 0.0
                for j in range(i, m):
                    node = order[j]
                    load += demand[node]
                    if load > most and j > i:
                        break
                    before = depot if j == i else order[j - 1]
                    length += matrix[before, node] + service
                    out = length + matrix[node, depot]
                    total = lowest[row, i] + out + _excess(bounds, price, load, out)
                    if total < lowest[into, j + 1]:
                        lowest[into, j + 1] = total
                        came[into, j + 1] = i
        if fleet == 0:
            count = 0
            j = m
            while j > 0:
                j = came[0, j]
                count += 1
            if count <= slots:
                ends = np.empty(count, np.int32)
                j = m
                for r in range(count - 1, -1, -1):
                    ends[r] = j
                    j = came[0, j]
                return ends
    count = 0
    for row in range(1, slots + 1):
        if lowest[row, m] < lowest[count, m]:
            count = row
    if lowest[count, m] == np.inf:
        return np.empty(0, np.int32)
    ends = np.empty(count, np.int32)
    j = m
    for r in range(count, 0, -1):
        ends[r - 1] = j
        j = came[r, j]
    return ends


@inner
def _excess(bounds, price, load, length):
    """What a route costs for being beyond its limits."""
    extra = 0.0
    if load > bounds.load:
        extra = price.load * (load - bounds.load)
    if length > bounds.length * (1.0 + LOOSE):
        extra += price.length * (length - bounds.length)
    return extra


@inner
def _recount(
    matrix, demand, bounds, price, m, next, route, place, load_to, length_to, leap, load, length,
    stops, extra, links, moved, moves, r,
):  # fmt: skip
    """Walk along a route and note what it is, and who has other neighbours since this move."""
    last = m + r
    so_far, way, count = 0.0, 0.0, 0
    here = next[last]
    while here < m:
        leap[last] = matrix[min(last, m), here]
        count += 1
        so_far += demand[here]
        way += leap[last] + bounds.service
        route[here] = r
        place[here] = count
        load_to[here] = so_far
        length_to[here] = way
        if links[here, 0] != last or links[here, 1] != next[here]:
            links[here, 0], links[here, 1] = last, next[here]
            moved[here] = moves
        last = here
        here = next[here]
    leap[last] = matrix[min(last, m), m]
    load[r], length[r], stops[r] = so_far, way + leap[last], count
    extra[r] = _excess(bounds, price, load[r], length[r])


@inlined
def _move_behind(next, prev, u, v):
    """Take u out of its route and put it behind v."""
    next[prev[u]] = next[u]
    prev[next[u]] = prev[u]
    y = next[v]
    next[v] = u
    prev[u] = v
    next[u] = y
    prev[y] = u


@inlined
def _trade(next, prev, u, v):
    """u and v, which are not neighbours, take each other's place."""
    pu, x, pv, y = prev[u], next[u], prev[v], next[v]
    next[pu], prev[x] = v, v
    next[pv], prev[y] = u, u
    next[v], prev[v] = x, pu
    next[u], prev[u] = y, pv


@inlined
def _relink(next, prev, depot, listed, count):
    """A route through these customers."""
    last = depot
    for i in range(count):
        next[last] = listed[i]
        prev[listed[i]] = last
        last = listed[i]
    next[last] = depot
    prev[depot] = last


class Descent(NamedTuple):
    """The routes during a descent, and what is known of them; arrays of one descent only.

    Allocated by NumPy: numba would take two seconds longer to compile a kernel that does it.
    """

    next: Index  # (m + slots,) customers, then the depots of the routes
    prev: Index
    route: Index
    place: Index  # in its route, from 1
    load_to: Floats  # up to here, from the depot on
    length_to: Floats
    leap: Floats  # to the next
    load: Floats  # (slots,)
    length: Floats
    stops: Index
    extra: Floats  # what a route pays for being beyond its limits
    changed: Ints  # the last move that changed it
    links: Index  # (m, 2) neighbours in the route, as last counted
    moved: Index  # (m + slots,) the last move that changed them; depots are all the same
    # what moves of a pair add to all lengths, at least, and when that was found: as long as both
    # have the same neighbours it holds, and only what is beyond the limits can make a move pay
    least: Floats  # (m, k)
    known: Index
    queue: Index  # (m,) the customers in the order in which they are looked at
    tested: Ints  # the last move before a customer was
    paired: Ints  # (slots, slots) the last move before two routes were looked at together
    listed: Index  # (m,) scratch
    other: Index
    meeting: npt.NDArray[np.bool_]  # (slots, slots) see `_meet`
    when: Ints  # (slots, m) cheapest places per route and customer: when they were found,
    where: Index  # (slots, m, PLACES)
    costs: Floats  # and at which cost
    saved: Floats  # (m,) by taking a customer out


def descend(
    land: Land, order: Index, ends: Index, slots: int, price: Price, settled: Ints,
    state: npt.NDArray[np.uint64],
) -> tuple[Index, Index]:  # fmt: skip
    """The routes (laid end to end) after all moves that pay: (order, ends of `slots` routes).

    Customers are taken in random order; a pair is looked at again only after one of its routes has
    changed, and for the first time only if their routes have no bit of `settled` in common
    (see `settled_in`).
    """
    m = len(order)
    size, near = m + slots, land.near.shape
    i4, i8 = np.int32, np.int64
    descent = Descent(
        next=np.empty(size, i4), prev=np.empty(size, i4), route=np.empty(size, i4),
        place=np.zeros(size, i4), load_to=np.zeros(size), length_to=np.zeros(size),
        leap=np.zeros(size), load=np.zeros(slots), length=np.zeros(slots),
        stops=np.zeros(slots, i4), extra=np.zeros(slots), changed=np.zeros(slots, i8),
        links=np.full((m, 2), -1, i4), moved=np.zeros(size, i4),
        least=np.empty(near), known=np.full(near, -1, i4),
        queue=np.arange(m, dtype=i4), tested=np.full(m, -1, i8),
        paired=np.full((slots, slots), -1, i8), listed=np.empty(m, i4), other=np.empty(m, i4),
        meeting=np.zeros((slots, slots), np.bool_), when=np.full((slots, m), -1, i8),
        where=np.empty((slots, m, PLACES), i4), costs=np.empty((slots, m, PLACES)),
        saved=np.empty(m),
    )  # fmt: skip
    found, found_ends = np.empty(m, np.int32), np.empty(slots, np.int32)
    _descend(land, order, ends, price, settled, state, descent, found, found_ends)
    return found, found_ends


@kernel
def _descend(land, order, ends, price, settled, state, descent, found, found_ends):
    matrix, demand, near, bounds = land.matrix, land.demand, land.near, land.bounds
    (
        next, prev, route, place, load_to, length_to, leap, load, length, stops, extra, changed,
        links, moved, least, known, queue, tested, paired, listed, other, meeting,
        when, where, costs, saved,
    ) = descent  # fmt: skip
    sketch = when, where, costs, saved
    m = len(order)
    slots = len(load)
    w = 0
    for r in range(slots):
        route[m + r] = r
        end = ends[r] if r < len(ends) else w
        _relink(next, prev, m + r, order[w:end], end - w)
        w = max(w, end)
        _recount(
            matrix, demand, bounds, price, m, next, route, place, load_to,
            length_to, leap, load, length, stops, extra, links, moved, 0, r,
        )  # fmt: skip
    vacant = _vacant(stops)
    moves = 0
    turn = 0
    searching = True
    while searching:
        searching = turn == 0  # an empty route is looked at in the second turn
        if turn <= 1:  # afterwards the same order will do
            for i in range(m - 1, 0, -1):
                j = random_below(state, i + 1)
                queue[i], queue[j] = queue[j], queue[i]
        for q in range(m):
            u = queue[q]
            since = tested[u]
            tested[u] = moves
            spot = _spot(matrix, m, next, prev, leap, u)
            for c in range(near.shape[1] + 1):
                to_empty = c == near.shape[1]  # not in the first turn
                v = near[u, c] if not to_empty else m + vacant if turn > 0 and vacant >= 0 else -1
                if v < 0:
                    continue
                latest = max(changed[route[u]], changed[route[v]])
                if turn > to_empty and latest <= since:
                    continue
                if latest == 0 and not to_empty and settled[route[u]] & settled[route[v]]:
                    continue
                for side in range(2):
                    if side == 1:  # to the front of the neighbour's route
                        v = prev[v]
                        if to_empty or v < m:
                            break
                    ru, rv = route[u], route[v]
                    if v < m:
                        lately = max(moved[u], moved[v], moved[spot.x], moved[next[v]])
                        if lately <= known[u, c] and least[u, c] >= extra[ru] + extra[rv] - TINY:
                            continue
                    kind, lowest = _first_that_pays(
                        matrix, demand, bounds, price, m, next, prev, place, load_to, length_to,
                        leap, load, length, extra, ru, rv, u, v, spot,
                    )  # fmt: skip
                    if kind == 0:
                        if v < m:
                            least[u, c], known[u, c] = lowest, moves
                        continue
                    x, y = next[u], next[v]
                    if kind == 1:
                        _move_behind(next, prev, u, v)
                    elif kind == 2:
                        _move_behind(next, prev, u, v)
                        _move_behind(next, prev, x, u)
                    elif kind == 3:
                        _move_behind(next, prev, x, v)
                        _move_behind(next, prev, u, x)
                    elif kind == 4:
                        _trade(next, prev, u, v)
                    elif kind == 5:
                        _trade(next, prev, u, v)
                        _move_behind(next, prev, x, u)
                    elif kind == 6:
                        _trade(next, prev, u, v)
                        _trade(next, prev, x, y)
                    elif kind == 7:  # the way from x to v backwards
                        here, last = v, u
                        while here != u:
                            before = prev[here]
                            next[last] = here
                            prev[here] = last
                            last, here = here, before
                        next[last] = y
                        prev[y] = last
                    else:
                        _cross(m, next, prev, u, v, ru, rv, kind == 8, listed, other)
                    moves += 1
                    searching = True
                    for r in (ru, rv):
                        _recount(
                            matrix, demand, bounds, price, m, next, route, place, load_to,
                            length_to, leap, load, length, stops, extra, links, moved, moves, r,
                        )  # fmt: skip
                        changed[r] = moves
                    spot = _spot(matrix, m, next, prev, leap, u)
                    vacant = _vacant(stops)
        if turn > 0:
            _meet(near, m, route, meeting)
            for a in range(slots):
                for b in range(a + 1, slots):
                    latest = max(changed[a], changed[b])
                    if latest <= paired[a, b] or not (meeting[a, b] or meeting[b, a]):
                        continue
                    if latest == 0 and settled[a] & settled[b]:
                        continue
                    paired[a, b] = moves
                    ours = _beside(near, m, next, route, a, b, listed)
                    theirs = _beside(near, m, next, route, b, a, other)
                    if _trade_best(
                        matrix, demand, bounds, price, m, next, prev, leap, load, length,
                        extra, changed, moves, sketch, a, b, listed[:ours], other[:theirs],
                    ):  # fmt: skip
                        moves += 1
                        searching = True
                        for r in (a, b):
                            _recount(
                                matrix, demand, bounds, price, m, next, route, place, load_to,
                                length_to, leap, load, length, stops, extra, links, moved, moves, r,
                            )  # fmt: skip
                            changed[r] = moves
                        for r in range(slots):  # whom one has met, both may meet
                            meeting[a, r] = meeting[b, r] = meeting[a, r] or meeting[b, r]
                            meeting[r, a] = meeting[r, b] = meeting[r, a] or meeting[r, b]
            vacant = _vacant(stops)
        turn += 1
    w = 0
    for r in range(slots):
        here = next[m + r]
        while here < m:
            found[w] = here
            w += 1
            here = next[here]
        found_ends[r] = w


@inlined
def _pays(bounds, price, apart, kept, change, load_u, length_u, load_v, length_v):
    """Whether a move is worth it: the change of all lengths, and what both routes are then.

    `kept` is what they pay now for being beyond their limits. Within one route only lengths count.
    """
    if not apart:
        return change < -TINY
    if change >= kept - TINY:
        return False
    change += _excess(bounds, price, load_u, length_u) + _excess(bounds, price, load_v, length_v)
    return change - kept < -TINY


class Spot(NamedTuple):
    """Where a customer stands: who is around it, and the edges there."""

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
def _spot(matrix, m, next, prev, leap, u):
    p, x = prev[u], next[u]
    mp, mx = min(p, m), min(x, m)
    xx = min(next[x], m) if x < m else m
    return Spot(
        mp, x, xx, mx, matrix[mp, mx], matrix[mp, xx], leap[p], leap[u], leap[x] if x < m else 0.0
    )


@inlined
def _first_that_pays(
    matrix, demand, bounds, price, m, next, prev, place, load_to, length_to, leap, load, length,
    extra, ru, rv, u, v, spot,
):  # fmt: skip
    """The first move that brings u beside v and pays: its number, or 0; and the least that any of
    those before it adds to all lengths, wherever u and v are.

    1 u behind v; 2 u and the next behind v; 3 the same turned round; 4 u for v; 5 u and the next
    for v; 6 u and the next for v and the next; 7 the way between them backwards; 8 and 9 the rests
    of their routes joined anew, turned round and not.

    Distances are looked up in the rows of u and its neighbours, which stay at hand while v changes.
    """
    service = bounds.service
    p, x, xx, mx, px, pxx, pu, ux, x_xx = spot
    y = next[v]
    mv, my = min(v, m), min(y, m)
    apart = ru != rv
    kept = extra[ru] + extra[rv]
    load_u, load_v, way_u, way_v = load[ru], load[rv], length[ru], length[rv]
    du = demand[u]
    vy, uv, uy = leap[v], matrix[u, mv], matrix[u, my]
    xv, xy = matrix[mx, mv], matrix[mx, my]
    lowest = np.inf
    if y != u:
        gain_u = px - pu - ux
        gain_v = uv + uy - vy
        lowest = min(lowest, gain_u + gain_v)
        if _pays(
            bounds, price, apart, kept, gain_u + gain_v,
            load_u - du, way_u + gain_u - service, load_v + du, way_v + gain_v + service,
        ):  # fmt: skip
            return 1, lowest
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
                bounds, price, apart, kept, gain_u + gain_v,
                load_u - two, way_u + gain_u - moved, load_v + two, way_v + gain_v + moved,
            ):  # fmt: skip
                return 2 if straight <= turned else 3, lowest
    if v < m:
        pv = prev[v]
        pv_v = leap[pv]
        pv_u = matrix[u, min(pv, m)]
        p_v = matrix[p, v]
        dv = demand[v]
        if u < v and u != pv and u != y:
            gain_u = p_v + xv - pu - ux
            gain_v = pv_u + uy - pv_v - vy
            lowest = min(lowest, gain_u + gain_v)
            if _pays(
                bounds, price, apart, kept, gain_u + gain_v,
                load_u + dv - du, way_u + gain_u, load_v + du - dv, way_v + gain_v,
            ):  # fmt: skip
                return 4, lowest
        if x < m:
            if u != pv and x != pv and u != y:
                gain_u = p_v + matrix[xx, v] - pu - x_xx
                gain_v = pv_u + xy - pv_v - vy
                moved = ux + service
                lowest = min(lowest, gain_u + gain_v)
                if _pays(
                    bounds, price, apart, kept, gain_u + gain_v,
                    load_u + dv - two, way_u + gain_u - moved,
                    load_v + two - dv, way_v + gain_v + moved,
                ):  # fmt: skip
                    return 5, lowest
            if y < m and u < v and y != prev[u] and u != y and x != v and v != next[x]:
                gain_u = p_v + matrix[xx, y] - pu - x_xx
                gain_v = pv_u + matrix[x, min(next[y], m)] - pv_v - leap[y]
                shift = dv + demand[y] - two
                lowest = min(lowest, gain_u + gain_v)
                if _pays(
                    bounds, price, apart, kept, gain_u + gain_v,
                    load_u + shift, way_u + gain_u + vy - ux,
                    load_v - shift, way_v + gain_v + ux - vy,
                ):  # fmt: skip
                    return 6, lowest
    turned = uv + xy - ux - vy
    straight = uy + xv - ux - vy
    lowest = min(lowest, turned, straight)
    if not apart:
        return 7 if place[u] < place[v] and x != v and turned < -TINY else 0, lowest
    loads, ways = load_u + load_v, way_u + way_v
    if v < m or y < m:
        front, way = load_to[u] + load_to[v], length_to[u] + uv + length_to[v]
        if _pays(
            bounds, price, apart, kept, turned, front, way, loads - front, ways + turned - way
        ):
            return 8, lowest
    front = load_to[u] + load_v - load_to[v]
    way = length_to[u] + uy + way_v - length_to[v] - vy
    if _pays(
        bounds, price, apart, kept, straight, front, way, loads - front, ways + straight - way
    ):
        return 9, lowest
    return 0, lowest


@inlined
def _cross(m, next, prev, u, v, ru, rv, turned, listed, other):
    """Join the rests of two routes anew: behind u comes v and the way before it, or the rest of v's
    route."""
    a = 0
    b = 0
    here = next[m + ru]
    stop = next[u]
    while here != stop:
        listed[a] = here
        a += 1
        here = next[here]
    if turned:
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
    _relink(next, prev, m + ru, listed, a)
    _relink(next, prev, m + rv, other, b)


@inlined
def _vacant(stops):
    """The first empty route, or -1."""
    for r in range(len(stops)):
        if stops[r] == 0:
            return r
    return -1


@inlined
def _meet(near, m, route, meeting):
    """Which routes have a customer with one of another route among its nearest."""
    meeting[:] = False
    for u in range(m):
        for c in range(min(near.shape[1], MEET)):
            if near[u, c] >= 0:
                meeting[route[u], route[near[u, c]]] = True


@inlined
def _beside(near, m, next, route, a, b, listed):
    """The customers of route a that have one of route b among their nearest; how many."""
    count = 0
    here = next[m + a]
    while here < m:
        for c in range(min(near.shape[1], MEET)):
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
def _look(matrix, m, next, leap, changed, moves, when, where, costs, u, r):
    """Remember the cheapest places for u in route r."""
    if when[r, u] >= changed[r]:
        return
    when[r, u] = moves
    for i in range(PLACES):
        where[r, u, i] = -1
        costs[r, u, i] = np.inf
    here = m + r
    to_here = matrix[u, m]
    while True:
        after = next[here]
        to_after = matrix[u, min(after, m)]
        added = to_here + to_after - leap[here]
        to_here = to_after
        if added < costs[r, u, PLACES - 1]:
            i = PLACES - 1
            while i > 0 and costs[r, u, i - 1] > added:
                costs[r, u, i] = costs[r, u, i - 1]
                where[r, u, i] = where[r, u, i - 1]
                i -= 1
            costs[r, u, i] = added
            where[r, u, i] = here
        here = after
        if here >= m:
            break


@inlined
def _cheapest(matrix, m, next, prev, where, costs, u, v, r):
    """The cheapest place for u in route r once v has left it: (cost, place before it)."""
    a, b = min(prev[v], m), min(next[v], m)
    best = matrix[u, a] + matrix[u, b] - matrix[a, b]
    at = prev[v]
    for i in range(PLACES):
        here = where[r, u, i]
        if here < 0:
            break
        if here != v and next[here] != v:
            if costs[r, u, i] < best:
                best = costs[r, u, i]
                at = here
            break
    return best, at


@inlined
def _trade_best(
    matrix, demand, bounds, price, m, next, prev, leap, load, length, extra, changed, moves, sketch,
    a, b, ours, theirs,
):  # fmt: skip
    """The best trade of a customer of each of two routes, or move of one; whether it paid.

    Both go to their best places in the other route, not into each other's (SWAP*).
    """
    service = bounds.service
    when, where, costs, out = sketch
    kept = extra[a] + extra[b]
    best = -TINY
    best_u, best_v, best_at, best_back = -1, -1, -1, -1
    for side in range(2):
        r, s, mine = (a, b, ours) if side == 0 else (b, a, theirs)
        for u in mine:
            _look(matrix, m, next, leap, changed, moves, when, where, costs, u, s)
            p, n = min(prev[u], m), min(next[u], m)
            out[u] = matrix[p, n] - leap[prev[u]] - leap[u]
            added = costs[s, u, 0]
            change = out[u] + added - kept
            if change < best:
                change += _excess(bounds, price, load[r] - demand[u], length[r] + out[u] - service)
                change += _excess(bounds, price, load[s] + demand[u], length[s] + added + service)
                if change < best:
                    best = change
                    best_u, best_v, best_at, best_back = u, -1, where[s, u, 0], -1
    for u in ours:
        for v in theirs:
            if out[u] + out[v] - kept >= best:
                continue
            shift = demand[u] - demand[v]
            over = price.load * max(0.0, load[a] - shift - bounds.load)
            over += price.load * max(0.0, load[b] + shift - bounds.load) - kept
            if over + out[u] + out[v] >= best:
                continue
            in_u, at = _cheapest(matrix, m, next, prev, where, costs, u, v, b)
            if over + out[u] + out[v] + in_u >= best:  # v's place costs nothing at best
                continue
            in_v, back = _cheapest(matrix, m, next, prev, where, costs, v, u, a)
            change = out[u] + in_u + out[v] + in_v
            if change + over < best:
                change += _excess(bounds, price, load[a] - shift, length[a] + out[u] + in_v)
                change += _excess(bounds, price, load[b] + shift, length[b] + out[v] + in_u)
                change -= kept
                if change < best:
                    best = change
                    best_u, best_v, best_at, best_back = u, v, at, back
    if best_u < 0:
        return False
    # a place before which the other one stands is behind that one's predecessor then
    _move_behind(next, prev, best_u, best_at)
    if best_v >= 0:
        _move_behind(next, prev, best_v, best_back)
    return True


@kernel
def crossed(first, second, state):
    """A sequence that keeps a stretch of the first and takes the rest as the second goes on."""
    m = len(first)
    begin, end = random_below(state, m), random_below(state, m)
    child = np.empty(m, np.int32)
    taken = np.zeros(m, np.bool_)
    i = begin
    while True:
        child[i] = first[i]
        taken[first[i]] = True
        if i == end:
            break
        i = (i + 1) % m
    w = (end + 1) % m
    for i in range(m):
        node = second[(end + 1 + i) % m]
        if not taken[node]:
            child[w] = node
            w = (w + 1) % m
    return child


@kernel
def in_circle(points, order, ends):
    """The routes by the direction in which their middle lies; empty ones are left out."""
    routes = len(ends)
    angle = np.empty(routes, np.float64)
    w = 0
    for r in range(routes):
        x, y = 0.0, 0.0
        for i in range(w, ends[r]):
            x += points[order[i], 0]
            y += points[order[i], 1]
        angle[r] = np.arctan2(y, x) if ends[r] > w else np.inf
        w = ends[r]
    found = np.empty(len(order), np.int32)
    found_ends = np.empty(routes, np.int32)
    w = 0
    used = 0
    for r in stable_order(angle):
        for i in range(ends[r - 1] if r > 0 else 0, ends[r]):
            found[w] = order[i]
            w += 1
        if angle[r] < np.inf:
            found_ends[used] = w
            used += 1
    return found, found_ends[:used].copy()


@kernel
def measure(land, order, ends):
    """(length of all routes, load beyond the limit, length beyond the limit)."""
    total, overload, overlength = 0.0, 0.0, 0.0
    bounds = land.bounds
    m = len(order)
    w = 0
    for r in range(len(ends)):
        load, length = 0.0, 0.0
        last = m
        for i in range(w, ends[r]):
            load += land.demand[order[i]]
            length += land.matrix[last, order[i]]
            last = order[i]
        length += land.matrix[last, m]
        total += length
        length += bounds.service * (ends[r] - w)
        overload += max(0.0, load - bounds.load)
        if length > bounds.length * (1.0 + LOOSE):
            overlength += length - bounds.length
        w = ends[r]
    return total, overload, overlength


@kernel
def links(order, ends):
    """Who comes after and before each customer; -1 is the depot."""
    after = np.empty(len(order), np.int32)
    before = np.empty(len(order), np.int32)
    w = 0
    for r in range(len(ends)):
        last = -1
        for i in range(w, ends[r]):
            before[order[i]] = last
            if last >= 0:
                after[last] = order[i]
            last = order[i]
        if last >= 0:
            after[last] = -1
        w = ends[r]
    return after, before


@kernel
def settled_in(order, ends, slots, after, before):
    """Which plans have each route: bit i of a route is plan i (a row of `after` and `before`).

    Where no move pays in these plans, none pays between two routes that are in the same one.
    """
    settled = np.zeros(slots, np.int64)
    for i in range(len(after)):
        w = 0
        for r in range(len(ends)):
            same = True
            last = -1
            for j in range(w, ends[r]):
                node = order[j]
                behind = order[j + 1] if j + 1 < ends[r] else -1
                if before[i, node] != last or after[i, node] != behind:
                    same = False
                    break
                last = node
            if same:
                settled[r] |= 1 << i
            w = ends[r]
    return settled


@kernel
def within_bounds(land, order, ends, slots):
    """1 for every route that keeps its limits, else 0."""
    bounds = land.bounds
    within = np.zeros(slots, np.int64)
    m = len(order)
    w = 0
    for r in range(len(ends)):
        load, length = 0.0, bounds.service * (ends[r] - w)
        last = m
        for i in range(w, ends[r]):
            load += land.demand[order[i]]
            length += land.matrix[last, order[i]]
            last = order[i]
        within[r] = _excess(bounds, Price(1.0, 1.0), load, length + land.matrix[last, m]) == 0.0
        w = ends[r]
    return within


@kernel
def broken_pairs(after, before, row):
    """The share of customers whose neighbours in one row's plan are others in every row's."""
    rows, m = after.shape
    apart = np.empty(rows, np.float64)
    for i in range(rows):
        broken = 0
        for j in range(m):
            a, b, c = after[row, j], after[i, j], before[i, j]
            broken += a != b and a != c
            broken += before[row, j] < 0 and b >= 0 and c >= 0
        apart[i] = broken / max(1, m)
    return apart


def land_of(matrix: Floats, demand: Ints, near: Index, bounds: Bounds) -> Land:
    """Distances with the depot last, demands, nearest customers (-1 for none), and limits.

    Neighbours are made mutual: who is near me, I am near to.
    """
    m, k = near.shape
    one = np.repeat(np.arange(m), k)
    two = near.ravel()
    one, two = one[two >= 0], two[two >= 0]
    pairs = np.unique(np.concatenate((one * m + two, two * m + one)))
    one, two = pairs // m, pairs % m
    ranked = np.lexsort((two, matrix[one, two], one))
    one, two = one[ranked], two[ranked]
    count = np.bincount(one, minlength=m)
    both = np.full((m, int(count.max(initial=0))), -1, np.int32)
    both[one, np.arange(len(one)) - np.repeat(np.cumsum(count) - count, count)] = two
    return Land(matrix, demand.astype(np.float64), both, bounds)

"""Routes that keep limits: a long order is cut, and customers are fitted into a given fleet."""

from __future__ import annotations

import numpy as np

from drhg.problem import Floats, Instance, Ints, Metric, Solution
from drhg.problem.tolerances import START_SLACK


def none_left_out() -> Ints:
    return np.zeros(0, dtype=np.int64)


def length_limit(instance: Instance) -> float:
    limit = np.inf if instance.max_distance is None else instance.max_distance * (1.0 + START_SLACK)
    return float(limit)


def reachable(instance: Instance, customers: Ints) -> tuple[Ints, Ints]:
    """Those a vehicle can visit and return within the length limit, and those it cannot."""
    home = instance.distance(instance.depot, customers)
    alone = 2.0 * home + instance.common_service <= length_limit(instance)
    return customers[alone], customers[~alone]


def cut_routes(instance: Instance, order: Ints, bounds: Ints | None = None) -> list[Ints]:
    """Consecutive routes, each as long as capacity and length limit allow; none crosses a bound."""
    assert instance.demand is not None
    assert instance.capacity is not None
    n, limit = len(order), length_limit(instance)
    if n == 0:
        return []
    total = np.concatenate(([0], np.cumsum(instance.demand[order])))
    home = instance.distance(instance.depot, order)
    along = np.concatenate(([0.0], np.cumsum(instance.distance(order[:-1], order[1:]))))
    along += instance.common_service * np.arange(1, n + 1)
    stops = np.array([n]) if bounds is None else np.append(bounds[1:], n)
    routes, begin, stop = [], 0, 0
    while begin < n:
        if stops[stop] <= begin:
            stop += 1
            continue
        end = int(np.searchsorted(total, total[begin] + instance.capacity, side="right")) - 1
        end = min(end, int(stops[stop]))
        if np.isfinite(limit):
            end = _cut_length(home, along, begin, end, limit - instance.common_service)
        routes.append(order[begin:end])
        begin = end
    return routes


def _cut_length(home: Floats, along: Floats, begin: int, end: int, limit: float) -> int:
    """The largest end such that every route begin .. e with e up to it keeps the limit."""
    width = 32
    while True:
        last = min(end, begin + width)
        part = home[begin] + along[begin:last] - along[begin] + home[begin:last]
        long = part > limit
        if long.any():
            return begin + max(1, int(np.argmax(long)))
        if last == end:
            return end
        width *= 2


def _angles(instance: Instance, customers: Ints) -> Floats:
    """Directions seen from the depot."""
    points = instance.plane
    assert points is not None
    offset = points[customers] - points[instance.depot]
    return np.asarray(np.arctan2(offset[:, 1], offset[:, 0]))


def sector_bounds(instance: Instance, customers: Ints, start: float) -> tuple[Ints, Ints]:
    """The customers by angle from `start` on, and where each capacity-full sector begins."""
    assert instance.demand is not None
    assert instance.capacity is not None
    turn = (_angles(instance, customers) - start) % (2.0 * np.pi)
    order = customers[np.argsort(turn, kind="stable")]
    total = np.concatenate(([0], np.cumsum(instance.demand[order])))
    bounds, begin = [], 0
    while begin < len(order):
        bounds.append(begin)
        full = total[begin] + instance.capacity
        begin = int(np.searchsorted(total, full, side="right")) - 1
    return order, np.array(bounds, dtype=np.int64)


def sectors(instance: Instance, curve: Ints, start: float) -> list[Ints]:
    """Sectors around the depot, the customers of each in the order they have in `curve`."""
    order, bounds = sector_bounds(instance, curve, start)
    sector = np.zeros(len(order), dtype=np.int64)
    sector[bounds[1:]] = 1
    place = np.empty(instance.n, dtype=np.int64)
    place[curve] = np.arange(len(curve))
    return cut_routes(instance, order[np.lexsort((place[order], np.cumsum(sector)))], bounds)


def routes_cost(instance: Instance, routes: list[Ints]) -> float:
    """Length of a plan."""
    path = _strung(instance, routes)
    return float(np.sum(instance.distance(path[:-1], path[1:])))


def _strung(instance: Instance, routes: list[Ints]) -> Ints:
    """All routes in one line, the depot before, between and behind them."""
    depot = np.array([instance.depot])
    return np.concatenate([depot, *(part for route in routes for part in (route, depot))])


def as_plan(instance: Instance, routes: list[Ints], left: Ints) -> tuple[Solution, Ints]:
    """A start's answer: the routes brought down to the fleet, and who is left over."""
    fleet = instance.vehicles
    if instance.metric is Metric.EXPLICIT and len(left):  # a detour may be shorter than the way
        routes, left = _fit(instance, routes, left)
    if fleet is not None and len(routes) > fleet:
        assert instance.demand is not None
        load = np.array([instance.demand[route].sum() for route in routes])
        fullest = np.argsort(-load, kind="stable")
        loose = np.concatenate([routes[r] for r in fullest[fleet:]])
        served = np.concatenate(routes)
        routes, loose = _fit(instance, [routes[r] for r in np.sort(fullest[:fleet])], loose)
        if len(loose) and instance.max_distance is None:  # pack anew, for the room alone
            packed, out = _fit(instance, [none_left_out()] * fleet, served, tightest=True)
            if len(out) < len(loose):
                routes, loose = packed, out
        left = np.concatenate((left, loose))
    return Solution(routes), np.sort(left)


def _fit(
    instance: Instance, routes: list[Ints], loose: Ints, tightest: bool = False
) -> tuple[list[Ints], Ints]:
    """Put loose customers into the routes, the largest first, each at its cheapest feasible place.

    With `tightest` only the route that is left with the least room is tried (best fit decreasing).
    Where no route has room, customers are exchanged until one has (not under a length limit).
    Returns the routes and who still does not fit.
    """
    assert instance.demand is not None
    assert instance.capacity is not None
    demand, limit = instance.demand, length_limit(instance)
    routes = list(routes)
    room = np.array([instance.capacity - demand[route].sum() for route in routes], dtype=np.int64)
    left = []
    for customer in loose[np.argsort(-demand[loose], kind="stable")]:
        open_to = np.flatnonzero(room >= demand[customer])
        if tightest and len(open_to):
            open_to = open_to[[int(np.argmin(room[open_to]))]]
        if not len(open_to) and np.isinf(limit):
            made = _make_room(routes, room, demand, int(demand[customer]))
            open_to = np.array([] if made is None else [made], dtype=np.int64)
        place = _cheapest_place(instance, [routes[r] for r in open_to], customer, limit)
        if place is None:
            left.append(customer)
            continue
        r = open_to[place[0]]
        routes[r] = np.insert(routes[r], place[1], customer)
        room[r] -= demand[customer]
    return routes, np.array(left, dtype=np.int64)


def _cheapest_place(
    instance: Instance, routes: list[Ints], customer: int, limit: float
) -> tuple[int, int] | None:
    """The route and the position in it that lengthen the plan least, within the length limit."""
    if not routes:
        return None
    path = _strung(instance, routes)
    edges = instance.distance(path[:-1], path[1:])
    legs = instance.distance(path, customer)
    extra = legs[:-1] + legs[1:] - edges
    sizes = np.array([len(route) + 1 for route in routes])  # edges, the two at the depot included
    begins = np.cumsum(sizes) - sizes
    if np.isfinite(limit):
        service = instance.common_service
        length = np.add.reduceat(edges, begins) + service * (sizes - 1)
        extra = np.where(np.repeat(length, sizes) + extra + service <= limit, extra, np.inf)
    at = int(np.argmin(extra))
    if not np.isfinite(extra[at]):
        return None
    r = int(np.searchsorted(begins, at, side="right")) - 1
    return r, at - int(begins[r])


def _make_room(routes: list[Ints], room: Ints, demand: Ints, wanted: int) -> int | None:
    """Exchange customers (or move one) so that one route has the wanted room; the route, or None.

    The roomiest route gives a customer to, or swaps with, whichever route lets it gain just
    enough, or else most; every step gains at least one unit, so it ends.
    """
    if int(room.sum()) < wanted:
        return None
    target = int(np.argmax(room))
    while room[target] < wanted:
        need = wanted - int(room[target])
        best: tuple[int, int, int, int] | None = None  # gain, other route, given, taken (-1: none)
        mine = routes[target]
        for r in np.flatnonzero(room > 0).tolist():
            if r == target:
                continue
            theirs = np.concatenate((demand[routes[r]], [0]))  # the last: nothing comes back
            gain = demand[mine][:, None] - theirs[None, :]  # (given, taken)
            gain = np.where((gain > 0) & (gain <= room[r]), gain, 0)
            enough = gain >= need
            most = int(gain.max())
            score = np.where(enough, 2 * most - gain + 1, gain)  # just enough beats the most
            i, j = np.unravel_index(int(np.argmax(score)), score.shape)
            value = int(gain[i, j])
            if value > 0 and (best is None or _better(value, best[0], need)):
                best = (value, r, int(i), int(j) if j < len(routes[r]) else -1)
        if best is None:
            return None
        value, r, given_at, taken_at = best
        given = mine[given_at]
        if taken_at >= 0:
            theirs = routes[r]
            taken = theirs[taken_at : taken_at + 1]
            routes[target] = np.concatenate((mine[:given_at], taken, mine[given_at + 1 :]))
            routes[r] = np.concatenate((theirs[:taken_at], [given], theirs[taken_at + 1 :]))
        else:
            routes[target] = np.delete(mine, given_at)
            routes[r] = np.append(routes[r], given)
        room[target] += value
        room[r] -= value
    return target


def _better(gain: int, than: int, need: int) -> bool:
    """Whether a gain is the better one: the smallest that is enough, else the largest."""
    if than >= need:
        return need <= gain < than
    return gain > than

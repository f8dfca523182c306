"""The slow, obvious version of what the package computes fast: plain Python, one pair at a time.

Written from the definitions, without looking at the package's arrays; only the types of an instance
(`metric`, `xy`, `matrix`, `demand`, ...) are taken from it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

from drhg.problem import Instance, Metric


def nint(x: float) -> int:
    """TSPLIB's rounding: halves go up (and not to the even neighbour)."""
    return math.floor(x + 0.5)


def _geo_radians(degrees_minutes: float) -> float:
    degrees = int(degrees_minutes)  # truncates
    minutes = degrees_minutes - degrees
    return 3.141592 * (degrees + 5.0 * minutes / 3.0) / 180.0


def distance(instance: Instance, i: int, j: int) -> float:
    """The distance of two nodes, as TSPLIB's documentation defines it."""
    if instance.metric is Metric.EXPLICIT:
        assert instance.matrix is not None
        return float(instance.matrix[i][j])
    if i == j:
        return 0.0
    assert instance.xy is not None
    (xi, yi), (xj, yj) = instance.xy[i].tolist(), instance.xy[j].tolist()
    dx, dy = xi - xj, yi - yj
    euclid = math.sqrt(dx * dx + dy * dy)
    match instance.metric:
        case Metric.EXACT:
            return euclid
        case Metric.EUC_2D:
            return nint(euclid)
        case Metric.CEIL_2D:
            return math.ceil(euclid)
        case Metric.MAN_2D:
            return nint(abs(dx) + abs(dy))
        case Metric.MAX_2D:
            return max(nint(abs(dx)), nint(abs(dy)))
        case Metric.ATT:
            r = math.sqrt((dx * dx + dy * dy) / 10.0)
            return nint(r) + 1 if nint(r) < r else nint(r)
        case Metric.GEO:
            lat_i, lon_i = _geo_radians(xi), _geo_radians(yi)
            lat_j, lon_j = _geo_radians(xj), _geo_radians(yj)
            q1 = math.cos(lon_i - lon_j)
            q2 = math.cos(lat_i - lat_j)
            q3 = math.cos(lat_i + lat_j)
            cosine = 0.5 * ((1.0 + q1) * q2 - (1.0 - q1) * q3)
            return int(6378.388 * math.acos(max(-1.0, min(1.0, cosine))) + 1.0)
    raise AssertionError(instance.metric)


def route_length(instance: Instance, route: Sequence[int]) -> float:
    """Length of one route: closed for a TSP, from and to the depot for a CVRP."""
    stops = [instance.depot, *route] if instance.is_cvrp else list(route)
    return sum(distance(instance, a, b) for a, b in zip(stops, stops[1:] + stops[:1], strict=True))


def cost(instance: Instance, routes: Sequence[Sequence[int]]) -> float:
    """Total length of a solution."""
    return sum(route_length(instance, route) for route in routes)


def best_tour(instance: Instance) -> tuple[float, list[int]]:
    """A shortest tour among all (n - 1)! of them that keep the fixed edges; for n <= 9."""
    n, best = instance.n, (math.inf, [0])
    for rest in itertools.permutations(range(1, n)):
        tour = [0, *rest]
        edges = {frozenset(e) for e in zip(tour, tour[1:] + tour[:1], strict=True)}
        if all(frozenset(e) in edges for e in instance.fixed_edges):
            best = min(best, (cost(instance, [tour]), tour))
    return best


def partitions(items: Sequence[int]) -> Iterator[list[list[int]]]:
    """Every way to split the items into non-empty groups."""
    if not items:
        yield []
        return
    for groups in partitions(items[1:]):
        yield [[items[0]], *groups]
        for g in range(len(groups)):
            yield [*groups[:g], [items[0], *groups[g]], *groups[g + 1 :]]


def best_plan(instance: Instance) -> tuple[float, list[list[int]]]:
    """A cheapest plan among all partitions and orders; for up to 7 customers. Cost inf if none."""
    demand, capacity = instance.demand, instance.capacity
    assert demand is not None
    assert capacity is not None
    orders: dict[tuple[int, ...], tuple[float, list[int]]] = {}

    def best_route(group: tuple[int, ...]) -> tuple[float, list[int]]:
        if group not in orders:
            orders[group] = min(
                (route_length(instance, order), list(order))
                for order in itertools.permutations(group)
            )
        return orders[group]

    best: tuple[float, list[list[int]]] = (math.inf, [])
    for groups in partitions([i for i in range(instance.n) if i != instance.depot]):
        if instance.vehicles is not None and len(groups) > instance.vehicles:
            continue
        if any(sum(int(demand[i]) for i in group) > capacity for group in groups):
            continue
        routes = [best_route(tuple(group)) for group in groups]
        limit = math.inf if instance.max_distance is None else instance.max_distance
        if any(c + instance.service_time * len(r) > limit * (1 + 1e-9) for c, r in routes):
            continue
        best = min(best, (sum(c for c, _ in routes), [r for _, r in routes]))
    return best

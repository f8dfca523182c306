"""The slow, obvious version of what the package computes fast: plain Python, one pair at a time.

Written from the definitions, without looking at the package's arrays; only the types of an instance
(`metric`, `xy`, `matrix`, `demand`, ...) are taken from it.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from drhg.problem import Instance, Locks, Metric, Solution, cvrp, tsp, vrp


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
        case Metric.TRUNC1:
            return math.floor(10 * euclid) / 10
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
        case Metric.HAVERSINE:  # the angle from cross and dot product, not from haversines
            p, q = _on_ball(xi, yi), _on_ball(xj, yj)
            cross = [p[k - 2] * q[k - 1] - p[k - 1] * q[k - 2] for k in range(3)]
            dot = sum(a * b for a, b in zip(p, q, strict=True))
            return 6371008.8 * math.atan2(math.hypot(*cross), dot)
    raise AssertionError(instance.metric)


def _on_ball(latitude: float, longitude: float) -> tuple[float, float, float]:
    lat, lon = math.radians(latitude), math.radians(longitude)
    return math.cos(lat) * math.cos(lon), math.cos(lat) * math.sin(lon), math.sin(lat)


def route_length(instance: Instance, route: Sequence[int]) -> float:
    """Length of one route: closed for a TSP, from and to the depot for a CVRP."""
    stops = [instance.depot, *route] if instance.is_cvrp else list(route)
    back = stops[:1] if instance.returns else []
    return sum(distance(instance, a, b) for a, b in itertools.pairwise(stops + back))


def walk(instance: Instance, route: Sequence[int], leave: float) -> list[tuple[int, float, float]]:
    """Where a vehicle is that leaves the depot at this time: node, arrival, start of service."""
    stops = [*route, instance.depot] if instance.returns else list(route)
    found, node, clock = [], instance.depot, leave
    for following in stops:
        clock += service(instance, node) + travel_time(instance, node, following)
        found.append((following, clock, max(clock, window(instance, following)[0])))
        node, clock = following, found[-1][2]
    return found


def service(instance: Instance, node: int) -> float:
    if node == instance.depot:
        return 0.0
    if isinstance(instance.service_time, float):
        return instance.service_time
    return float(instance.service_time[node])


def travel_time(instance: Instance, i: int, j: int) -> float:
    return distance(instance, i, j) if instance.durations is None else instance.durations[i][j]


def window(instance: Instance, node: int) -> tuple[float, float]:
    return (0.0, math.inf) if instance.windows is None else tuple(instance.windows[node])


def best_departure(instance: Instance, route: Sequence[int]) -> tuple[float, float, float]:
    """Lateness, duration and departure of a route: the least in this order, at a whole time.

    All times of the instance must be whole, and the depot's window finite.
    """
    opens, closes = window(instance, instance.depot)
    released = [0.0 if instance.release is None else instance.release[i] for i in route]
    found = []
    for leave in range(int(max([opens, *released])), int(closes) + 1):
        stops = walk(instance, route, leave)
        late = sum(max(0.0, begin - window(instance, i)[1]) for i, _, begin in stops)
        end = stops[-1][2] + service(instance, stops[-1][0])
        found.append((late, end - leave, float(leave)))
    return min(found)


def breaks_time(instance: Instance, route: Sequence[int]) -> bool:
    """Whether a route is late somewhere or takes too long."""
    late, duration, _ = best_departure(instance, route)
    return late > 0.0 or (instance.max_duration is not None and duration > instance.max_duration)


def random_windows(rng: np.random.Generator, n: int) -> Instance:
    """An instance of whole numbers with every kind of time, in which all can be served alone."""
    matrix, durations = rng.integers(1, 30, (2, n, n)).astype(float)
    np.fill_diagonal(durations, 0.0)
    services = rng.integers(0, 9, n) * (np.arange(n) > 0)
    opened = int(rng.integers(0, 20))
    release = rng.integers(0, 40, n) * (np.arange(n) > 0) * int(rng.integers(2))
    reached = np.maximum(opened, release) + durations[0]
    done = reached + services + durations[:, 0]
    horizon = int(done.max()) + int(rng.integers(0, 150))
    closes = rng.integers(reached, horizon - services - durations[:, 0] + 1)
    opens = np.maximum(0, closes - rng.integers(0, 60, n))
    windows = np.stack([opens, closes], axis=1).astype(float)
    windows[0] = opened, horizon
    return vrp(
        matrix=matrix,
        durations=durations,
        demand=rng.integers(0, 9, n) * (np.arange(n) > 0),
        capacity=int(rng.integers(9, 60)),
        windows=windows,
        service_time=services,
        release=release if release.any() else None,
        max_duration=float(rng.integers(100, 300)) if rng.integers(2) else None,
        returns=bool(rng.integers(2)),
    )


def random_timed_plan(rng: np.random.Generator, n: int) -> tuple[Instance, list[list[int]]]:
    """An instance with every kind of time, and a plan of it that keeps all limits."""
    instance = random_windows(rng, n)
    assert instance.demand is not None
    routes: list[list[int]] = []
    for node in (1 + rng.permutation(n - 1)).tolist():
        places = [(r, p) for r, route in enumerate(routes) for p in range(len(route) + 1)]
        rng.shuffle(places)
        for r, p in places:
            longer = [*routes[r][:p], node, *routes[r][p:]]
            load = instance.demand[longer].sum()
            if load <= instance.capacity and not breaks_time(instance, longer):
                routes[r] = longer
                break
        else:
            routes.append([node])
    if rng.random() < 0.5:
        longest = max(
            route_length(instance, r) + sum(service(instance, i) for i in r) for r in routes
        )
        instance = dataclasses.replace(instance, max_distance=longest + float(rng.integers(20)))
    if rng.random() < 0.5:
        instance = dataclasses.replace(instance, vehicles=len(routes) + int(rng.integers(2)))
    return instance, routes


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


def best_order(instance: Instance) -> float:
    """The cost of a cheapest tour or path, directed or not, among all n! orders; for n <= 7."""
    found = math.inf
    for order in itertools.permutations(range(instance.n)):
        wrong_start = instance.start is not None and order[0] != instance.start
        wrong_end = instance.end is not None and order[-1] != instance.end
        legs = list(itertools.pairwise(order))
        closing = [(order[-1], order[0])] if instance.returns else []
        edges = {frozenset(leg) for leg in legs + closing}
        kept = all(frozenset(edge) in edges for edge in instance.fixed_edges)
        if kept and not wrong_start and not wrong_end:
            found = min(found, route_length(instance, order))
    return found


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


# --- solutions cut into items ---------------------------------------------------------------------


def laid_out(instance: Instance, routes: Sequence[Sequence[int]]) -> list[int]:
    """One cyclic order of all nodes; the routes of a CVRP with the depot at both ends of each."""
    if not instance.is_cvrp:
        return list(routes[0])
    return [i for route in routes for i in (instance.depot, *route, instance.depot)]


def cuttable(instance: Instance, line: Sequence[int]) -> list[int]:
    """Positions whose edge to the next may go: no fixed edge, no join of two routes."""
    fixed = {frozenset(edge) for edge in instance.fixed_edges}
    after = [*line[1:], *line[:1]]
    return [
        p
        for p, (a, b) in enumerate(zip(line, after, strict=True))
        if frozenset((a, b)) not in fixed and not (instance.is_cvrp and a == b == instance.depot)
    ]


def cut_around(
    instance: Instance, routes: Sequence[Sequence[int]], destroyed: Sequence[int], depot_edges: str
) -> set[int]:
    """Which edges go when these nodes are destroyed."""
    line, gone = laid_out(instance, routes), set(destroyed)
    lost = set()
    for p in cuttable(instance, line):
        a, b = line[p], line[(p + 1) % len(line)]
        ends = instance.is_cvrp and instance.depot in (a, b)
        route = next((r for r in routes if a in r or b in r), ())
        if (
            a in gone
            or b in gone
            or (ends and depot_edges == "all")
            or (ends and depot_edges == "touched" and gone & set(route))
        ):
            lost.add(p)
    return lost


def free_nodes(instance: Instance, line: Sequence[int], cut: set[int]) -> set[int]:
    """The nodes of the reduced graph: every customer or city that lost an edge."""
    n = len(line)
    loose = {line[p] for p in cut} | {line[(p + 1) % n] for p in cut}
    return loose - {instance.depot} if instance.is_cvrp else loose


@dataclasses.dataclass(frozen=True)
class Item:
    """What stays together; `stub` says where it still hangs on the depot."""

    at: tuple[int, ...]  # positions of its customers, in the order of the solution
    stub: str = ""  # "", "head" (depot before them) or "tail"
    first: bool = False  # of its route

    @property
    def ends(self) -> list[int]:
        """Positions of its free ends."""
        if self.stub:
            return [self.at[-1] if self.stub == "head" else self.at[0]]
        return [self.at[0]] if len(self.at) == 1 else [self.at[0], self.at[-1]]


def items_of(instance: Instance, line: Sequence[int], cut: set[int]) -> list[Item]:
    """The intact pieces of everything that was touched, in the order of the solution."""
    n = len(line)
    if not instance.is_cvrp:
        if not cut:
            return []
        start = min(cut) + 1
        found: list[list[int]] = [[]]
        for i in range(n):
            p = (start + i) % n
            found[-1].append(p)
            if p in cut and i + 1 < n:
                found.append([])
        return [Item(tuple(run)) for run in found]
    items = []
    for stretch in stretches(instance, line):
        if not cut & set(stretch):
            continue
        pieces: list[list[int]] = [[]]
        for p in stretch:
            pieces[-1].append(p)
            if p in cut:
                pieces.append([])
        first = True
        for piece in pieces:
            inner = tuple(p for p in piece if line[p] != instance.depot)
            if inner:
                stub = "head" if line[piece[0]] == instance.depot else ""
                stub = "tail" if line[piece[-1]] == instance.depot else stub
                items.append(Item(inner, stub, first))
                first = False
    return items


def stretches(instance: Instance, line: Sequence[int]) -> list[list[int]]:
    """The positions of each route, both its depots among them."""
    found: list[list[int]] = []
    inside = False
    for p, node in enumerate(line):
        if node == instance.depot and not inside:
            found.append([])
        found[-1].append(p)
        inside = inside != (node == instance.depot)
    return found


def item_load(instance: Instance, line: Sequence[int], item: Item) -> int:
    """Demand of an item."""
    assert instance.demand is not None
    return sum(int(instance.demand[line[p]]) for p in item.at)


def item_length(instance: Instance, line: Sequence[int], item: Item) -> float:
    """Length of an item, its depot edge and the service at its customers included."""
    nodes = [line[p] for p in item.at]
    if item.stub == "head":
        nodes = [instance.depot, *nodes]
    if item.stub == "tail":
        nodes = [*nodes, instance.depot]
    steps = sum(distance(instance, a, b) for a, b in itertools.pairwise(nodes))
    return steps + instance.service_time * len(item.at)


def rebuilt(
    instance: Instance,
    line: Sequence[int],
    cut: set[int],
    order: Sequence[int],
    via: Sequence[bool],
) -> list[list[int]] | None:
    """The routes that a repair describes, or None if it describes none."""
    items = items_of(instance, line, cut)
    entries = [(item, end) for item in items for end in item.ends]
    if sorted(order) != list(range(len(entries))):
        return None
    if not (instance.is_cvrp or cut):
        return [list(line)]
    routes = [
        [line[p] for p in stretch[1:-1]]
        for stretch in (stretches(instance, line) if instance.is_cvrp else [])
        if not cut & set(stretch)
    ]
    is_open, i = False, 0
    if not instance.is_cvrp:
        routes, is_open = [[]], True
    while i < len(order):
        item, end = entries[order[i]]
        through_depot = instance.is_cvrp and bool(via[i])
        if not (is_open or through_depot):
            return None
        nodes = [line[p] for p in item.at]
        if end != item.at[0]:
            nodes = nodes[::-1]  # now it runs away from the end that is entered
        if len(item.ends) == 2:
            i += 1
            if i == len(order) or entries[order[i]][0] != item or (instance.is_cvrp and via[i]):
                return None
        if through_depot:
            routes.append([])
            is_open = True
        if item.stub and through_depot:
            nodes = nodes[::-1]
        routes[-1] += nodes
        if item.stub and not through_depot:
            is_open = False
        i += 1
    return routes


def allowed(instance: Instance, routes: Sequence[Sequence[int]], limit: float | None) -> bool:
    """Whether routes keep capacity, fleet and a length limit."""
    assert instance.demand is not None
    assert instance.capacity is not None
    return (
        all(sum(int(instance.demand[i]) for i in r) <= instance.capacity for r in routes)
        and (instance.vehicles is None or len(routes) <= instance.vehicles)
        and all(
            limit is None or route_length(instance, r) + instance.service_time * len(r) <= limit
            for r in routes
        )
    )


def undirected(routes: Sequence[Sequence[int]]) -> frozenset[tuple[int, ...]]:
    """A plan without the order of its routes and without their directions."""
    return frozenset(min(tuple(r), tuple(reversed(r))) for r in routes)


def all_plans(customers: Sequence[int]) -> set[frozenset[tuple[int, ...]]]:
    """Every set of routes through all customers."""
    return {
        undirected(choice)
        for groups in partitions(list(customers))
        for choice in itertools.product(*(itertools.permutations(group) for group in groups))
    }


def edges_of(instance: Instance, routes: Iterable[Sequence[int]]) -> Counter[frozenset[int]]:
    """The edges of a solution, with how often: a route of one customer has its edge twice."""
    stops = [
        [instance.depot, *route, instance.depot] if instance.is_cvrp else [*route, route[0]]
        for route in routes
    ]
    return Counter(frozenset(edge) for s in stops for edge in itertools.pairwise(s))


def features(
    points: Sequence[Sequence[float]],
    instance: Instance,
    line: Sequence[int],
    items: Sequence[Item],
) -> list[list[float]]:
    """Equations 1-5 after GLOP's transform: to the origin, long side on x, that side 1 long."""
    ends = [line[p] for item in items for p in item.ends]
    if not ends:
        return []
    low = [min(points[i][c] for i in ends) for c in (0, 1)]
    high = [max(points[i][c] for i in ends) for c in (0, 1)]
    wide, tall = high[0] - low[0], high[1] - low[1]

    def seen(node: int) -> list[float]:
        x, y = points[node][0] - low[0], points[node][1] - low[1]
        if tall > wide:
            x, y = y, x
        side = max(wide, tall)
        return [x / side, y / side] if side > 0 else [x, y]

    rows = []
    for item in items:
        for end in item.ends:
            others = [instance.depot] if item.stub else [line[p] for p in item.ends if p != end]
            other = others[0] if others else line[end]
            row = [*seen(line[end]), *seen(other), float(bool(others))]
            if instance.is_cvrp:
                assert instance.capacity is not None
                row.append(item_load(instance, line, item) / instance.capacity)
            rows.append(row)
    return rows


def closeness(instance: Instance, i: int, j: int) -> float:
    """What nearness sorts by: the distance before it is rounded (chord of the globe for GEO)."""
    if instance.metric in (Metric.EXPLICIT, Metric.HAVERSINE):
        return distance(instance, i, j)
    assert instance.xy is not None
    (xi, yi), (xj, yj) = instance.xy[i].tolist(), instance.xy[j].tolist()
    match instance.metric:
        case Metric.MAN_2D:
            return abs(xi - xj) + abs(yi - yj)
        case Metric.MAX_2D:
            return max(abs(xi - xj), abs(yi - yj))
        case Metric.GEO:
            ball = []
            for x, y in ((xi, yi), (xj, yj)):
                lat, lon = _geo_radians(x), _geo_radians(y)
                ball.append(
                    (math.cos(lat) * math.cos(lon), math.cos(lat) * math.sin(lon), math.sin(lat))
                )
            return math.dist(*ball)
    return math.hypot(xi - xj, yi - yj)


def candidates(
    instance: Instance, i: int, wide: Sequence[int], beside: Sequence[int], k: int
) -> list[int]:
    """Whom node i may want beside it: of `wide`, nearest first, the first of every quadrant and the
    nearest, in half of k places; then those of `beside`, then the nearest again."""
    if instance.metric in (Metric.GEO, Metric.EXPLICIT) or len(wide) <= k:
        return list(wide[:k])
    quadrants: dict[tuple[bool, bool], int] = {}
    for j in wide:
        east, north = instance.plane[j] - instance.plane[i]
        quadrants.setdefault((bool(east > 0), bool(north > 0)), j)
    firsts = [j for j in wide if j in quadrants.values()]
    around = [*firsts, *(j for j in wide if j not in firsts)][: (k + 1) // 2]
    wanted = list(dict.fromkeys([*around, *beside, *wide]))[:k]
    return sorted(wanted, key=lambda j: distance(instance, i, j))


def delaunay_edges(xy: np.ndarray) -> set[frozenset[int]]:
    """Pairs on the rim of a circle through three points that has none inside; all different."""
    found = set()
    for three in itertools.combinations(range(len(xy)), 3):
        (bx, by), (cx, cy) = (xy[j] - xy[three[0]] for j in three[1:])
        turn = 2 * (bx * cy - by * cx)
        if abs(turn) < 1e-12:
            continue
        ux = (cy * (bx * bx + by * by) - by * (cx * cx + cy * cy)) / turn
        uy = (bx * (cx * cx + cy * cy) - cx * (bx * bx + by * by)) / turn
        far = np.hypot(*(xy - xy[three[0]] - (ux, uy)).T)
        if (far >= np.hypot(ux, uy) * (1 - 1e-9)).all():
            found |= {frozenset(pair) for pair in itertools.combinations(three, 2)}
    return found


# --- instances to try things on -------------------------------------------------------------------

SHAPES = ("random", "equal", "collinear", "grid", "twins")


def degrees_and_minutes(xy: np.ndarray) -> np.ndarray:
    """Decimal degrees in about as the metric GEO wants them: minutes stay well below 60."""
    return np.trunc(xy) + 0.59 * (xy - np.trunc(xy))


def random_points(
    rng: np.random.Generator, n: int, shape: str, metric: Metric = Metric.EXACT
) -> np.ndarray:
    """Random, coinciding, collinear, on a small grid with many ties, or each point thrice."""
    if metric is Metric.GEO:
        return degrees_and_minutes(random_points(rng, n, shape))
    if shape == "equal":
        return np.full((n, 2), 3.25)
    if shape == "collinear":
        return np.outer(rng.random(n), [30.0, 40.0])
    if shape == "grid":
        return rng.integers(0, 5, size=(n, 2)).astype(float)
    xy = rng.random((n, 2)) * 85.0
    return xy[rng.integers(0, max(1, n // 3), size=n)] if shape == "twins" else xy


def differences(
    instance: Instance, ours: Sequence[Sequence[int]], theirs: Sequence[Sequence[int]]
) -> dict[frozenset[frozenset[int]], tuple[Counter[frozenset[int]], float]]:
    """Components of the edges that only one solution has, which share no node but the depot.

    By their nodes' pairs that are ours: those that are theirs, and what the exchange would cost.
    """
    both = [edges_of(instance, routes) for routes in (ours, theirs)]
    gone, new = both[0] - both[1], both[1] - both[0]
    groups: list[set[int]] = []
    for edge in {*gone, *new}:
        nodes = set(edge) - ({instance.depot} if instance.is_cvrp else set())
        for group in [group for group in groups if group & nodes]:
            nodes |= group
            groups.remove(group)
        groups.append(nodes)
    found = {}
    for group in groups:
        out, back = (
            Counter({edge: times for edge, times in which.items() if edge & group})
            for which in (gone, new)
        )
        lengths = [
            sum(times * distance(instance, *_ends(edge)) for edge, times in which.items())
            for which in (out, back)
        ]
        found[frozenset(out)] = back, lengths[1] - lengths[0]
    return found


def _ends(edge: frozenset[int]) -> tuple[int, int]:
    low, *high = sorted(edge)
    return low, high[0] if high else low


def connected(instance: Instance, edges: Counter[frozenset[int]]) -> bool:
    """Whether all nodes of these edges hang together; routes do at the depot."""
    nodes = set().union(*edges) if edges else set()
    reached = {instance.depot if instance.is_cvrp else min(nodes)} if nodes else set()
    while more := {n for edge in edges if edge & reached for n in edge} - reached:
        reached |= more
    return reached >= nodes


def random_matrix(rng: np.random.Generator, n: int) -> np.ndarray:
    """Symmetric, whole numbers or quarters, with no regard for triangles."""
    half = np.triu(rng.integers(0, 20, size=(n, n)), 1)
    return (half + half.T) / (1 if rng.random() < 0.5 else 4)


def random_tour(
    rng: np.random.Generator, n: int, shape: str, metric: Metric, fixed: float = 0.0
) -> tuple[Instance, list[int]]:
    """A TSP and a tour of it; that share of the tour's edges is fixed."""
    tour = rng.permutation(n).tolist()
    pairs = zip(tour, tour[1:] + tour[:1], strict=True)
    edges = [(a, b) for a, b in pairs if a != b and rng.random() < fixed]
    if metric is Metric.EXPLICIT:
        return tsp(matrix=random_matrix(rng, n), fixed_edges=edges), tour
    return tsp(random_points(rng, n, shape, metric), metric=metric, fixed_edges=edges), tour


def random_plan(
    rng: np.random.Generator,
    customers: int,
    shape: str,
    metric: Metric,
    *,
    limit: bool = False,
    fleet: bool = False,
) -> tuple[Instance, list[list[int]]]:
    """A CVRP and a valid plan of it, which may be tight in capacity, length and fleet."""
    n = customers + 1
    depot = int(rng.integers(n))
    demand = rng.integers(0, 10, size=n)
    demand[depot] = 0
    matrix = random_matrix(rng, n) if metric is Metric.EXPLICIT else None
    xy = None if metric is Metric.EXPLICIT else random_points(rng, n, shape, metric)
    order = rng.permutation([i for i in range(n) if i != depot]).tolist()
    share = rng.choice([0.1, 0.4, 0.8])
    routes: list[list[int]] = []
    for node in order:
        if not routes or rng.random() < share:
            routes.append([])
        routes[-1].append(int(node))
    loads = [int(demand[r].sum()) for r in routes]
    capacity = max(1, *loads, int(demand.max())) + int(rng.choice([0, 0, 3, 50]))
    settings = {"matrix": matrix, "depot": depot, "metric": metric}
    service = float(rng.choice([0.0, 2.5]))
    free = cvrp(xy, demand, capacity, **settings)
    if limit:
        longest = max((route_length(free, r) + service * len(r) for r in routes), default=0.0)
        settings |= {"max_distance": longest * rng.choice([1.0, 1.2]), "service_time": service}
    if fleet:
        settings["vehicles"] = max(1, len(routes)) + int(rng.choice([0, 1]))
    return cvrp(xy, demand, capacity, **settings), routes


def neighbour_repairs(
    partner: list[int], order: list[int], via: list[bool]
) -> Iterator[tuple[list[int], list[bool]]]:
    """All repairs of routes one move away: a piece relocated, pieces swapped, tails exchanged.

    A route is a list of pieces, a piece a list of its nodes in the order of the visit.
    """
    routes: list[list[list[int]]] = []
    i = 0
    while i < len(order):
        u = order[i]
        wide = partner[u] >= 0 and partner[u] != u
        if via[i]:
            routes.append([])
        routes[-1].append([u, partner[u]] if wide else [u])
        i += 2 if wide else 1

    def free(piece: list[int]) -> bool:
        return partner[piece[0]] >= 0

    def flat(routes: list[list[list[int]]]) -> tuple[list[int], list[bool]]:
        nodes = [u for route in routes for piece in route for u in piece]
        depots = [
            p == 0 and i == 0
            for route in routes
            for p, piece in enumerate(route)
            for i in range(len(piece))
        ]
        return nodes, depots

    places = [(r, p) for r, route in enumerate(routes) for p in range(len(route))]
    for r, p in places:
        piece = routes[r][p]
        if not free(piece):
            continue
        rest = [route[:] for route in routes]
        del rest[r][p]
        for turned in (piece, piece[::-1]):
            yield flat([*rest, [turned]])
            for s, route in enumerate(rest):
                for g in range(len(route) + 1):
                    if g == 0 and route and not free(route[0]) and len(route) > 1:
                        continue  # before a stub that starts its route
                    if g == len(route) > 1 and not free(route[-1]):
                        continue
                    if len(route) == 1 and not free(route[0]) and g == 0:
                        continue
                    new = [other[:] for other in rest]
                    new[s].insert(g, turned)
                    yield flat(new)
        for s, q in places:
            if (s, q) > (r, p) and free(routes[s][q]):
                new = [other[:] for other in routes]
                new[r][p], new[s][q] = routes[s][q], piece
                if s != r or q > p + 1:
                    yield flat(new)
    for r, one in enumerate(routes):
        for two in routes[r + 1 :]:
            for g in range(1, len(one)):
                for h in range(1, len(two)):
                    rest = [route for route in routes if route is not one and route is not two]
                    yield flat([*rest, one[:g] + two[h:], two[:h] + one[g:]])


def penalised(problem: Any, routes: Sequence[Sequence[int]], penalties: Any) -> float:
    """The cost of routes of a `PenalisedProblem`, with penalties for exceeding the limits."""
    depot, limits = len(problem.demand), problem.limits
    total = 0.0
    for route in routes:
        stops = [depot, *route, depot]
        length = sum(problem.matrix[a, b] for a, b in itertools.pairwise(stops))
        total += length
        load = sum(problem.demand[i] for i in route)
        total += penalties.load * max(0.0, load - limits.load)
        beyond = length + limits.service * len(route) - limits.length
        if beyond > 1e-10 * limits.length:
            total += penalties.length * beyond
    return float(total)


def splits(order: Sequence[int], most: int) -> Iterator[list[list[int]]]:
    """All ways to cut a sequence into at most so many routes."""
    for count in range(most):
        for cuts in itertools.combinations(range(1, len(order)), count):
            ends = [0, *cuts, len(order)]
            yield [list(order[a:b]) for a, b in itertools.pairwise(ends)]


def route_moves(routes: Sequence[Sequence[int]], u: int, v: int) -> Iterator[list[list[int]]]:
    """Plans in which one or two customers from u on are behind v, or swapped with those from v on,
    or in which both routes are joined anew behind u and v (2-opt, 2-opt*).

    Two that are behind v already are not reversed there: that is a 2-opt.
    """
    plan = [list(route) for route in routes]
    at = {node: (r, i) for r, route in enumerate(plan) for i, node in enumerate(route)}
    (r, i), (s, j) = at[u], at[v]
    for size in (1, 2):
        piece = plan[r][i : i + size]
        if len(piece) == size and v not in piece:
            without = [[x for x in route if x not in piece] for route in plan]
            p = without[s].index(v)
            for turned in (piece,) if r == s and p + 1 == i else (piece, piece[::-1]):
                yield [
                    route[: p + 1] + turned + route[p + 1 :] if q == s else route
                    for q, route in enumerate(without)
                ]
            for width in (1, 2):
                other = plan[s][j : j + width]
                if width > size or len(other) < width or set(piece) & set(other):
                    continue
                if r == s and (i + size == j or j + width == i):
                    continue  # neighbours
                first, second = tuple(piece), tuple(other)
                traded = []
                for route in plan:
                    line: list[int] = []
                    k = 0
                    while k < len(route):
                        if tuple(route[k : k + size]) == first:
                            line += other
                            k += size
                        elif tuple(route[k : k + width]) == second:
                            line += piece
                            k += width
                        else:
                            line.append(route[k])
                            k += 1
                    traded.append(line)
                yield traded
    a, b = plan[r], plan[s]
    if r == s:
        if i < j:
            turned_way = [*a[: i + 1], *a[i + 1 : j + 1][::-1], *a[j + 1 :]]
            yield [turned_way if q == r else route for q, route in enumerate(plan)]
        return
    for one, two in (
        (a[: i + 1] + b[: j + 1][::-1], a[i + 1 :][::-1] + b[j + 1 :]),
        (a[: i + 1] + b[j + 1 :], b[: j + 1] + a[i + 1 :]),
    ):
        yield [one if q == r else two if q == s else route for q, route in enumerate(plan)]


def route_trades(
    routes: Sequence[Sequence[int]],
    first: int,
    second: int,
    ours: Sequence[int],
    theirs: Sequence[int],
) -> Iterator[list[list[int]]]:
    """Plans in which one of `ours` is anywhere in the second route, and perhaps one of `theirs`
    anywhere in the first."""
    for u in ours:
        for v in (None, *theirs):
            a = [x for x in routes[first] if x != u]
            b = [x for x in routes[second] if x != v]
            for j in range(len(b) + 1):
                for i in range(len(a) + 1 if v is not None else 1):
                    plan = [list(route) for route in routes]
                    plan[first] = a if v is None else [*a[:i], v, *a[i:]]
                    plan[second] = [*b[:j], u, *b[j:]]
                    yield plan


def broken_pairs(routes: list[list[int]], others: list[list[int]]) -> float:
    """The share of customers that are followed by somebody who is no neighbour of theirs in the
    other plan, or begin a route and are not next to the depot there (each counts)."""

    def neighbours(plan: list[list[int]], customer: int) -> tuple[int, int]:
        (route,) = [route for route in plan if customer in route]
        at = [-1, *route, -1].index(customer)
        return [-1, *route, -1][at - 1], [-1, *route, -1][at + 1]

    everybody = [customer for route in routes for customer in route]
    broken = 0
    for customer in everybody:
        before, after = neighbours(routes, customer)
        broken += after not in neighbours(others, customer)
        broken += before == -1 and -1 not in neighbours(others, customer)
    return broken / len(everybody)


def tile(rows: int, vectors: int) -> Callable[..., None]:
    """What `products._tile` makes as vector instructions: c (+)= a b, of blocks."""
    width = np.arange(16 * vectors)

    def product(a: Any, i: int, b: Any, j: int, c: Any, n: int, add: bool) -> None:
        flat = np.reshape(c.data, -1, copy=False)
        right = b.data.ravel()[b.at + j + b.row * np.arange(n)[:, None] + width]
        for r in range(i, i + rows):
            left = a.data.ravel()[a.at + r * a.row + a.column * np.arange(n)]
            place = c.at + r * c.row + j + width
            flat[place] = left @ right + (flat[place] if add else np.float32(0))

    return product


def exponentials(s: Any, at: int, vectors: int) -> np.float32:
    """What `products._exponentials` is: exp(number - largest) in place, and their sum."""
    part = np.reshape(s, -1, copy=False)[at : at + 16 * vectors]
    part[:] = np.exp(part - part.max())
    return part.sum(dtype=np.float32)


def driven(stops: Sequence[Any], times: Sequence[float], start: float) -> tuple[float, float]:
    """Duration and time warp of a walk along stops whose service begins in their windows.

    `times` are the ways between them. The first service begins at `start`; whoever is late goes
    back in time to the end of the window.
    """
    now, spent, warp = start, 0.0, 0.0
    for i, stop in enumerate(stops):
        if i > 0:
            now += times[i - 1]
            spent += times[i - 1]
        waiting = max(0.0, stop.earliest - now)
        late = max(0.0, now - stop.latest)
        now += waiting - late + stop.duration
        spent += waiting + stop.duration
        warp += late
    return spent, warp


# --- locks ----------------------------------------------------------------------------------------


def random_locks(
    rng: np.random.Generator, instance: Instance, routes: Sequence[Sequence[int]], share: float
) -> tuple[Instance, Solution]:
    """The same problem with locks that this plan keeps, and the plan with its vehicles."""
    fleet = instance.vehicles or len(routes) + 2
    vehicles = rng.permutation(np.arange(1, fleet + 1))[: len(routes)].tolist()
    driven, frozen = {}, {}
    pinned, forbidden, together, edges = [], [], [], []
    for vehicle, route in zip(vehicles, routes, strict=True):
        dice = rng.random()
        if dice < 0.3 * share:
            frozen[vehicle] = list(route)
            continue
        if dice < 0.6 * share:
            driven[vehicle] = list(route[: int(rng.integers(1, len(route) + 1))])
        pinned += [(i, vehicle) for i in route if rng.random() < 0.3 * share]
        others = [v for v in range(1, fleet + 1) if v != vehicle]
        forbidden += [
            (i, int(rng.choice(others))) for i in route if others and rng.random() < 0.5 * share
        ]
        if len(route) > 1 and rng.random() < share:
            count = int(rng.integers(2, len(route) + 1))
            together.append(rng.choice(list(route), count, replace=False).tolist())
        if rng.random() < 0.7 or not instance.symmetric:
            continue
        edges += [pair for pair in itertools.pairwise(route) if rng.random() < share]
    locks = Locks(
        driven=driven, frozen=frozen, pinned=pinned, forbidden=forbidden, together=together
    )
    locked = dataclasses.replace(instance, locks=locks, fixed_edges=tuple(edges))
    return locked, Solution(routes, vehicles)


def locks_broken(instance: Instance, solution: Solution) -> bool:
    """Whether a plan breaks a lock or a fixed edge, one by one."""
    locks = instance.locks or Locks()
    routes = [route.tolist() for route in solution.routes]
    beside = {frozenset(pair) for route in routes for pair in itertools.pairwise(route)}
    if any(frozenset(edge) not in beside for edge in instance.fixed_edges):
        return True
    for group in locks.together:
        if not any(set(group) <= set(route) for route in routes):
            return True
    if locks.vehicles == 0:
        return False
    if solution.vehicles is None:
        return True
    by = dict(zip(solution.vehicles, routes, strict=True))
    return (
        max(by, default=0) > (instance.vehicles or max(by, default=0))
        or any(by.get(v, [])[: len(path)] != list(path) for v, path in locks.driven)
        or any(by.get(v, []) != list(path) for v, path in locks.frozen)
        or any(i not in by.get(v, []) for i, v in locks.pinned)
        or any(i in by.get(v, []) for i, v in locks.forbidden)
    )


# --- the network of edges -------------------------------------------------------------------------


def survey(
    xy: Any, paths: Sequence[tuple[int, int]], load: Any, depot: Any, capacity: int, fleet: int
) -> tuple[list[list[float]], Any, list[int]]:
    """What the network of edges sees: inputs of all tokens, distances, other ends.

    `paths` are pairs of ends, -1 for the depot; `load` is of paths; `depot` is None for tours.
    """
    ends = sorted({u for path in paths for u in path if u >= 0})
    path_of = {u: path for path in paths for u in path if u >= 0}
    loads = {u: load[i] for i, path in enumerate(paths) for u in path if u >= 0}

    def away(u: int, v: int) -> float:
        return math.dist(xy[u], xy[v])

    def other(u: int) -> int:
        a, b = path_of[u]
        return b if u == a else a

    strangers = {u: sorted((away(u, v), v) for v in ends if v not in path_of[u]) for u in ends}
    least = [found[0][0] if found else 0.0 for found in strangers.values()]
    unit = max(1e-4, sum(least) / len(ends))
    middle = np.mean([xy[u] for u in ends], axis=0)
    rows = []
    for u in ends:
        mate = other(u) if other(u) >= 0 else u
        (x, y), length = np.subtract(xy[mate], xy[u]), away(u, mate)
        row = [*(2 * np.subtract(xy[u], middle)), 2 * x, 2 * y, 2 * length]
        row += [math.log1p(length / unit), float(other(u) != u), math.log(unit)]
        five = strangers[u][:5]
        offsets = [np.subtract(xy[v], xy[u]) / unit for _, v in five]
        row += [float(np.clip(z, -6, 6)) for offset in offsets for z in offset]
        row += [0.0] * (2 * (5 - len(five)))
        row += [min(6.0, d / unit) for d, _ in five] + [6.0] * (5 - len(five))
        rows.append(row)
    apart = np.array([[away(u, v) / unit for v in ends] for u in ends])
    mates = [ends.index(other(u)) if other(u) >= 0 else i for i, u in enumerate(ends)]
    if depot is None:
        return rows, apart, mates
    need = sum(load) / capacity
    spare = fleet - need
    stubs = sum(-1 in path for path in paths)
    common = [math.log1p(need), math.log1p(stubs), math.log1p(max(0, fleet))]
    common += [min(1, max(-1, spare)), min(1, max(-1, 10 * spare))]
    for u, row in zip(ends, rows, strict=True):
        way = np.subtract(depot, xy[u])
        far = float(np.hypot(*way))
        factor = math.log1p(far) / far if far > 1e-6 else 1.0
        row += [loads[u] / capacity, float(other(u) < 0), 0.0, *(way * factor), far * factor]
        row += common
    rows.append([0.0] * 23 + [0.0, 0.0, 1.0, 0.0, 0.0, 0.0, *common])
    return rows, np.pad(apart, (0, 1)), [*mates, len(ends)]


def joined(paths: list[list[int]], u: int, v: int) -> list[list[int]]:
    """Paths as lists of nodes, after the ends u and v became neighbours."""
    first = next(path for path in paths if u in (path[0], path[-1]))
    second = next(path for path in paths if v in (path[0], path[-1]))
    assert first is not second
    a = first if first[-1] == u else first[::-1]
    b = second if second[0] == v else second[::-1]
    return [path for path in paths if path is not first and path is not second] + [a + b]

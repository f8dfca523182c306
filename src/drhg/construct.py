"""Starts: a first solution for the search, from nothing (the paper's Section 5: random insertion
for the TSP, sweep for the CVRP; greedy edges, savings and a space-filling curve beside them).

A start maps an instance and a seed to a solution and the customers it could not place under the
fleet or length limit (none otherwise, and never for a TSP). `space_filling` is plain NumPy, so it
answers before anything is compiled; the others import their kernels when they are called.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from drhg.errors import DrhgError
from drhg.problem import Floats, Instance, Ints, Metric, Solution

Start: TypeAlias = Callable[[Instance, int], tuple[Solution, Ints]]
Near: TypeAlias = Callable[[Ints, Ints, int], Ints]

SLACK = 5e-10  # relative tolerance of length limits, half of what the checker allows
ALL_PAIRS = 512  # up to so many path ends (or customers), every pair is a candidate edge
GREEDY_NEIGHBOURS = 8
SAVINGS_PAIRS = 10_000_000  # candidate pairs that savings may sort, at most
SAVINGS_NEIGHBOURS = 100
SCANNED = 1_500  # random insertion tries every edge up to here, then only those of near nodes
INSERTION_NEIGHBOURS = 16
LARGEST_SWEEP_ROUTE = 5_000  # nearest neighbour is quadratic in a route; larger ones follow a curve


def construct(instance: Instance, name: str, seed: int = 0) -> tuple[Solution, Ints]:
    """A first solution by the start of that name, and the customers it leaves out.

    >>> import drhg
    >>> from drhg.construct import construct
    >>> solution, unplaced = construct(drhg.tsp([[0, 0], [2, 0], [1, 0]]), "space-filling")
    >>> sorted(solution.tour.tolist()), unplaced.tolist()
    ([0, 1, 2], [])
    """
    known = starts_for(instance)
    if name not in known:
        why = "does not apply to" if name in STARTS else "is not a start for"
        raise DrhgError(f"{name!r} {why} {instance.name}; known here: {', '.join(known)}")
    return STARTS[name](instance, seed)


def starts_for(instance: Instance) -> list[str]:
    """Names of the starts that apply to this instance."""
    if not instance.is_cvrp:
        return ["greedy", "insertion", "space-filling"]
    sweep_too = ["sweep"] if instance.xy is not None else []  # angles need coordinates
    return ["insertion", "savings", "space-filling", *sweep_too]


# --- without compilation -----------------------------------------------------------------------


def space_filling(instance: Instance, seed: int = 0) -> tuple[Solution, Ints]:
    """Nodes in the order of a Hilbert curve; a bare matrix keeps the order of its rows.

    For a CVRP the curve is cut into routes where one is full; sectors around the depot, each in
    the curve's order, are the other candidate, and the cheaper plan is returned. Deterministic:
    the seed is not used.
    """
    del seed
    curve = _curve(instance)
    if not instance.is_cvrp:
        return Solution([_with_fixed_paths(instance, curve)]), _nobody()
    near, far = _reachable(instance, curve[curve != instance.depot])
    plans = [_cut(instance, near)]
    if instance.xy is not None and len(near):
        plans.append(_sectors(instance, near, 0.0))
    return _plan(instance, min(plans, key=lambda routes: _cost(instance, routes)), far)


def hilbert_order(points: Floats, bits: int = 20) -> Ints:
    """The points' order along a Hilbert curve over their bounding square, 2^bits cells wide."""
    shifted = points - points.min(axis=0)
    span = float(shifted.max(initial=0.0)) or 1.0
    cells = (shifted / span * (2**bits - 1)).astype(np.int64)
    x, y = cells[:, 0], cells[:, 1]
    key = np.zeros(len(points), dtype=np.int64)
    for bit in range(bits - 1, -1, -1):
        right, up = (x >> bit) & 1, (y >> bit) & 1
        key = (key << 2) | ((3 * right) ^ up)
        # lower quadrants are transposed, the right one of them mirrored as well
        mirror = -(right & (1 - up))  # all bits set where mirrored
        x, y = x ^ mirror, y ^ mirror
        swap = (x ^ y) & (up - 1)
        x, y = x ^ swap, y ^ swap
    return np.argsort(key, kind="stable")


def _curve(instance: Instance) -> Ints:
    """All nodes in an order that keeps neighbours together as well as it can be had for free."""
    points = instance.xy if instance._radians is None else instance._radians
    return np.arange(instance.n) if points is None else hilbert_order(points)


def _with_fixed_paths(instance: Instance, order: Ints) -> Ints:
    """The order with every path of fixed edges pulled together where its first node stands."""
    if not instance.fixed_edges:
        return order
    beside: dict[int, list[int]] = {}
    for a, b in instance.fixed_edges:
        beside.setdefault(a, []).append(b)
        beside.setdefault(b, []).append(a)
    tour: list[int] = []
    done: set[int] = set()
    ends = [i for i in order.tolist() if len(beside.get(i, ())) < 2]
    for first in ends or order.tolist():  # no ends: the fixed edges are the whole tour
        here: int | None = first
        while here is not None and here not in done:
            done.add(here)
            tour.append(here)
            here = next((j for j in beside.get(here, ()) if j not in done), None)
    return np.array(tour, dtype=np.int64)


# --- routes: cutting a long order, limits, fleet ------------------------------------------------


def _limit(instance: Instance) -> float:
    limit = np.inf if instance.max_distance is None else instance.max_distance * (1.0 + SLACK)
    return float(limit)


def _reachable(instance: Instance, customers: Ints) -> tuple[Ints, Ints]:
    """Those a vehicle can visit and return within the length limit, and those it cannot."""
    home = instance.distance(instance.depot, customers)
    alone = 2.0 * home + instance.service_time <= _limit(instance)
    return customers[alone], customers[~alone]


def _cut(instance: Instance, order: Ints, bounds: Ints | None = None) -> list[Ints]:
    """Consecutive routes, each as long as capacity and length limit allow; none crosses a bound."""
    assert instance.demand is not None
    assert instance.capacity is not None
    n, limit = len(order), _limit(instance)
    if n == 0:
        return []
    total = np.concatenate(([0], np.cumsum(instance.demand[order])))
    home = instance.distance(instance.depot, order)
    along = np.concatenate(([0.0], np.cumsum(instance.distance(order[:-1], order[1:]))))
    along += instance.service_time * np.arange(1, n + 1)
    stops = np.array([n]) if bounds is None else np.append(bounds[1:], n)
    routes, begin, stop = [], 0, 0
    while begin < n:
        if stops[stop] <= begin:
            stop += 1
            continue
        end = int(np.searchsorted(total, total[begin] + instance.capacity, side="right")) - 1
        end = min(end, int(stops[stop]))
        if np.isfinite(limit):
            end = _cut_length(home, along, begin, end, limit - instance.service_time)
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
    assert instance.xy is not None
    offset = instance.xy[customers] - instance.xy[instance.depot]
    return np.asarray(np.arctan2(offset[:, 1], offset[:, 0]))


def _sector_bounds(instance: Instance, customers: Ints, start: float) -> tuple[Ints, Ints]:
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


def _sectors(instance: Instance, curve: Ints, start: float) -> list[Ints]:
    """Sectors around the depot, the customers of each in the order they have in `curve`."""
    order, bounds = _sector_bounds(instance, curve, start)
    sector = np.zeros(len(order), dtype=np.int64)
    sector[bounds[1:]] = 1
    place = np.empty(instance.n, dtype=np.int64)
    place[curve] = np.arange(len(curve))
    return _cut(instance, order[np.lexsort((place[order], np.cumsum(sector)))], bounds)


def _cost(instance: Instance, routes: list[Ints]) -> float:
    """Length of a plan."""
    path = _strung(instance, routes)
    return float(np.sum(instance.distance(path[:-1], path[1:])))


def _strung(instance: Instance, routes: list[Ints]) -> Ints:
    """All routes in one line, the depot before, between and behind them."""
    depot = np.array([instance.depot])
    return np.concatenate([depot, *(part for route in routes for part in (route, depot))])


def _plan(instance: Instance, routes: list[Ints], left: Ints) -> tuple[Solution, Ints]:
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
            packed, out = _fit(instance, [_nobody()] * fleet, served, tightest=True)
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
    demand, limit = instance.demand, _limit(instance)
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
        service = instance.service_time
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


# --- compiled -----------------------------------------------------------------------------------


def _near_finder(instance: Instance, seed: int) -> Near:
    """A function (among, of, k) -> the k nearest of `among` for each of `of`, as places in `among`.

    A node may be its own neighbour. Coordinates are shaken by a billionth of their extent:
    k-d trees cannot split coinciding points and would become quadratic.
    """
    if instance.metric is Metric.EXPLICIT:
        matrix = instance.matrix
        assert matrix is not None

        def by_matrix(among: Ints, of: Ints, k: int) -> Ints:
            k = min(k, len(among))
            found = np.empty((len(of), k), dtype=np.int64)
            for begin in range(0, len(of), 256):
                block = matrix[np.ix_(of[begin : begin + 256], among)]
                found[begin : begin + 256] = np.argpartition(block, k - 1, axis=1)[:, :k]
            return found

        return by_matrix

    from scipy.spatial import cKDTree

    assert instance.xy is not None
    points = instance.xy
    if instance._radians is not None:  # on the globe, straight lines through it sort the same way
        lat, lon = instance._radians.T
        points = np.stack((np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)), 1)
    points = points - points.min(axis=0)
    extent = float(points.max(initial=0.0)) or 1.0
    points = points + 1e-9 * extent * np.random.default_rng(seed).random(points.shape)
    norm = {Metric.MAN_2D: 1.0, Metric.MAX_2D: np.inf}.get(instance.metric, 2.0)

    def by_tree(among: Ints, of: Ints, k: int) -> Ints:
        k = min(k, len(among))
        tree = cKDTree(points[among])
        found = tree.query(points[of], k=np.arange(1, k + 1), p=norm)[1]
        return np.asarray(found, dtype=np.int64)

    return by_tree


def _pairs(nodes: Ints, near: Near, k: int, all_pairs: bool) -> tuple[Ints, Ints]:
    """Candidate edges between nodes: all of them, or those to k near ones; each once."""
    from drhg import construct_kernels as kernels

    if all_pairs:
        heads, feet = np.triu_indices(len(nodes), 1)
    else:
        heads, feet = kernels.candidate_pairs(near(nodes, nodes, k))
    return nodes[heads], nodes[feet]


def _fixed_links(instance: Instance) -> tuple[Ints, Ints]:
    """Links and tails (see `construct_kernels`): paths of fixed edges, all other nodes alone."""
    from drhg import construct_kernels as kernels

    links = np.full((instance.n, 2), -1, dtype=np.int64)
    tail = np.arange(instance.n)
    if instance.fixed_edges:
        edges = np.array(instance.fixed_edges, dtype=np.int64)
        kernels.join_edges(links, tail, edges[:, 0].copy(), edges[:, 1].copy())
    return links, tail


def greedy(instance: Instance, seed: int = 0) -> tuple[Solution, Ints]:
    """Greedy edges: the shortest edge that still fits, again and again (TSP).

    Candidates are the edges to the nearest nodes; the paths they leave are joined the same way by
    their ends, round by round, until few enough are left to try every pair. The seed only
    breaks ties between equally near neighbours.
    """
    from drhg import construct_kernels as kernels

    links, tail = _fixed_links(instance)
    curve = _curve(instance)  # neighbours in memory: a third faster at a million nodes
    near = _near_finder(instance, seed)
    ends, stuck = curve[links[curve, 1] < 0], False
    while np.count_nonzero(ends <= tail[ends]) > 1:
        everything = len(ends) <= (8_000 if stuck else ALL_PAIRS)
        heads, feet = _pairs(ends, near, GREEDY_NEIGHBOURS + 1, everything)
        order = np.argsort(instance.distance(heads, feet), kind="stable")
        kernels.join_edges(links, tail, heads[order], feet[order])
        before, ends = len(ends), ends[links[ends, 1] < 0]
        stuck = 4 * len(ends) > 3 * before  # a hub that is everyone's neighbour
    if len(ends):  # one path is left: close it
        a, b = ends[0], tail[ends[0]]
        links[a, int(links[a, 0] >= 0)] = b
        links[b, int(links[b, 0] >= 0)] = a
    return Solution([kernels.walk(links)]), _nobody()


def shaken_greedy(instance: Instance, near: Ints) -> Callable[[np.random.Generator], Ints]:
    """A maker of tours by greedy edges whose lengths are made up to twice as long at random.

    Candidates are the edges along neighbour lists; the paths they leave are strung along a Hilbert
    curve, for a bare matrix at random. Quick, and different every time, but longer than `greedy`.
    """
    from drhg import construct_kernels as kernels

    heads, feet = kernels.candidate_pairs(near.astype(np.int64))
    lengths = instance.distance(heads, feet)
    fixed = _fixed_links(instance)

    def make(rng: np.random.Generator) -> Ints:
        links, tail = fixed[0].copy(), fixed[1].copy()
        order = np.argsort(lengths * (1.0 + rng.random(len(heads))))
        kernels.join_edges(links, tail, heads[order], feet[order])
        ends = np.flatnonzero(links[:, 1] < 0)
        ends = rng.permutation(ends[ends <= tail[ends]])  # one end of every path
        if instance.xy is not None:
            ends = ends[hilbert_order(instance.xy[ends])]
        made: Ints = kernels.walk_paths(links, ends)
        return made

    return make


def insertion(instance: Instance, seed: int = 0) -> tuple[Solution, Ints]:
    """Random insertion: nodes in random order, each where it costs least (Section 5, Table 1).

    Above a few thousand nodes only the places next to near nodes are tried. In a CVRP the first
    customers open as many routes as are needed at least; for the others a place must have room, and
    without one a new route is opened.
    """
    from drhg import construct_kernels as kernels
    from drhg.compiled import space_of

    rng = np.random.default_rng(seed)
    space = space_of(instance)
    if not instance.is_cvrp:
        links, tail = _fixed_links(instance)
        locked = links >= 0
        ends = np.flatnonzero(links[:, 1] < 0)
        order = rng.permutation(ends[ends <= tail[ends]])  # every piece by one of its ends
        for begin, end, near in _batches(instance, order, seed):
            kernels.insert_pieces(space, links, locked, tail, order, begin, end, near)
        return Solution([kernels.walk(links)]), _nobody()

    assert instance.demand is not None
    assert instance.capacity is not None
    n, depot = instance.n, instance.depot
    links = np.full((n, 2), -1, dtype=np.int64)
    route = np.full(n, -1, dtype=np.int64)
    load, length = np.zeros(n, dtype=np.int64), np.zeros(n)
    customers, far = _reachable(instance, np.delete(np.arange(n), depot))
    order = rng.permutation(customers)
    opening = -(-int(instance.demand.sum()) // instance.capacity)  # no plan has fewer routes
    limits = (instance.demand.copy(), instance.capacity, _limit(instance), instance.service_time)
    for begin, end, near in _batches(instance, order, seed):
        kernels.insert_customers(
            space, depot, *limits, opening, links, route, load, length, order, begin, end, near
        )
    return _plan(instance, _routes(links, depot), far)


def _batches(instance: Instance, order: Ints, seed: int) -> list[tuple[int, int, Ints]]:
    """Random insertion in batches (begin, end, near nodes of each): all at once, or by doubling.

    The neighbours are sought among all nodes up to the end of the batch; at least half of them, on
    average, are in the tour when their turn comes, whatever the size of the instance.
    """
    count = len(order)
    nobody = np.zeros((0, 0), dtype=np.int64)
    if count <= SCANNED or instance.metric is Metric.EXPLICIT:
        return [(0, count, nobody)]
    finder = _near_finder(instance, seed)
    batches, begin = [(0, SCANNED // 2, nobody)], SCANNED // 2
    while begin < count:
        end = min(2 * begin, count)
        near = finder(order[:end], order[begin:end], INSERTION_NEIGHBOURS + 1)
        batches.append((begin, end, order[near]))
        begin = end
    return batches


def _routes(links: Ints, depot: int) -> list[Ints]:
    from drhg import construct_kernels as kernels

    order, begins = kernels.walk_routes(links, depot)
    return np.split(order, begins[1:]) if len(begins) else []


def sweep(instance: Instance, seed: int = 0) -> tuple[Solution, Ints]:
    """Sectors around the depot, each filled to capacity, the nearest customer next (Section 5).

    The seed draws the angle at which the first sector begins.
    """
    from drhg import construct_kernels as kernels
    from drhg.compiled import space_of

    start = float(np.random.default_rng(seed).uniform(0.0, 2.0 * np.pi))
    customers, far = _reachable(instance, np.delete(np.arange(instance.n), instance.depot))
    order, bounds = _sector_bounds(instance, customers, start)
    if np.diff(np.append(bounds, len(order))).max(initial=0) > LARGEST_SWEEP_ROUTE:
        curve = _curve(instance)
        return _plan(instance, _sectors(instance, curve[np.isin(curve, customers)], start), far)
    kernels.nearest_first(space_of(instance), instance.depot, order, bounds)
    return _plan(instance, _cut(instance, order, bounds), far)


def savings(instance: Instance, seed: int = 0) -> tuple[Solution, Ints]:
    """Clarke and Wright's parallel savings over pairs of near customers (CVRP).

    When nothing more can be joined among near pairs, the ends of the routes look again among
    themselves. The seed only breaks ties between equally near neighbours.
    """
    from drhg import construct_kernels as kernels

    assert instance.demand is not None
    assert instance.capacity is not None
    n, depot, limit = instance.n, instance.depot, _limit(instance)
    curve = _curve(instance)
    ends, far = _reachable(instance, curve[curve != depot])
    home = instance.distance(depot, np.arange(n))
    links, tail = np.full((n, 2), -1, dtype=np.int64), np.arange(n)
    load, length = instance.demand.copy(), 2.0 * home + instance.service_time
    near = _near_finder(instance, seed)
    while len(ends) > 1:
        everything = len(ends) <= 2 * ALL_PAIRS
        k = min(SAVINGS_NEIGHBOURS, max(10, SAVINGS_PAIRS // len(ends)))
        heads, feet = _pairs(ends, near, k + 1, everything)
        gain = home[heads] + home[feet] - instance.distance(heads, feet)
        heads, feet, gain = (part[gain > 0.0] for part in (heads, feet, gain))
        order = np.argsort(-gain, kind="stable")
        merged = kernels.merge_routes(
            links, tail, load, length, heads[order], feet[order], gain[order],
            instance.capacity, limit,
        )  # fmt: skip
        if everything or not merged:
            break
        ends = ends[links[ends, 1] < 0]
    links[links < 0] = depot
    links[far] = -1
    return _plan(instance, _routes(links, depot), far)


def _nobody() -> Ints:
    return np.zeros(0, dtype=np.int64)


STARTS: dict[str, Start] = {
    "greedy": greedy,
    "insertion": insertion,
    "savings": savings,
    "space-filling": space_filling,
    "sweep": sweep,
}


def rehearse(problem: str, name: str) -> None:
    """Use every kernel of a start once, to have them compiled or loaded."""
    from drhg.generate import uniform_cvrp, uniform_tsp

    make = uniform_tsp if problem == "tsp" else uniform_cvrp
    construct(make(3 * ALL_PAIRS, seed=0), name, 0)

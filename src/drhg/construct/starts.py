"""First solutions: greedy edges, savings, random insertion, sweep, a space-filling curve."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from drhg.construct.curves import along_curve, hilbert_order, space_filling
from drhg.construct.fleet import (
    as_plan,
    cut_routes,
    length_limit,
    none_left_out,
    reachable,
    sector_bounds,
    sectors,
)
from drhg.construct.params import USUAL, StartParams
from drhg.construct.paths import as_tour, cut
from drhg.errors import DrhgError
from drhg.problem import Instance, Ints, Metric, Solution, on_sphere, resolve
from drhg.problem.tolerances import APART

Start: TypeAlias = Callable[[Instance, int, StartParams], tuple[Solution, Ints]]
Near: TypeAlias = Callable[[Ints, Ints, int], Ints]


def construct(
    instance: Instance, name: str, seed: int = 0, params: StartParams = USUAL
) -> tuple[Solution, Ints]:
    """A first solution by the start of that name, and the customers it leaves out.

    >>> import drhg
    >>> from drhg.construct.starts import construct
    >>> solution, unplaced = construct(drhg.tsp([[0, 0], [2, 0], [1, 0]]), "space-filling")
    >>> sorted(solution.tour.tolist()), unplaced.tolist()
    ([0, 1, 2], [])
    """
    known = starts_for(instance)
    if name not in known:
        why = "does not apply to" if name in STARTS else "is not a start for"
        raise DrhgError(f"{name!r} {why} {instance.name}; known here: {', '.join(known)}")
    if instance.returns or instance.is_cvrp:
        return STARTS[name](instance, seed, params)
    tour, unplaced = STARTS[name](as_tour(instance), seed, params)
    return Solution([cut(instance, tour.tour)]), unplaced


def quickest_start(instance: Instance) -> str:
    """The name of the start that takes no time."""
    return "alone" if instance.is_cvrp and instance.rich else "space-filling"


def starts_for(instance: Instance) -> list[str]:
    """Names of the starts that apply to this instance."""
    if not instance.is_cvrp:
        return ["greedy", "insertion", "space-filling"]
    if instance.rich:
        return ["alone"]
    sweep_too = ["sweep"] if instance.xy is not None else []  # angles need coordinates
    return ["insertion", "savings", "space-filling", *sweep_too]


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
        points = on_sphere(instance._radians)
    points = points - points.min(axis=0)
    extent = float(points.max(initial=0.0)) or 1.0
    points = points + APART * extent * np.random.default_rng(seed).random(points.shape)
    norm = {Metric.MAN_2D: 1.0, Metric.MAX_2D: np.inf}.get(instance.metric, 2.0)

    def by_tree(among: Ints, of: Ints, k: int) -> Ints:
        k = min(k, len(among))
        tree = cKDTree(points[among])
        found = tree.query(points[of], k=np.arange(1, k + 1), p=norm)[1]
        return np.asarray(found, dtype=np.int64)

    return by_tree


def _pairs(nodes: Ints, near: Near, k: int, all_pairs: bool) -> tuple[Ints, Ints]:
    """Candidate edges between nodes: all of them, or those to k near ones; each once."""
    from drhg.construct import kernels

    if all_pairs:
        heads, feet = np.triu_indices(len(nodes), 1)
    else:
        heads, feet = kernels.candidate_pairs(near(nodes, nodes, k))
    return nodes[heads], nodes[feet]


def _fixed_links(instance: Instance) -> tuple[Ints, Ints]:
    """Links and tails (see `kernels`): paths of fixed edges, all other nodes alone."""
    from drhg.construct import kernels

    links = np.full((instance.n, 2), -1, dtype=np.int64)
    tail = np.arange(instance.n)
    if instance.fixed_edges:
        edges = np.array(instance.fixed_edges, dtype=np.int64)
        kernels.join_edges(links, tail, edges[:, 0].copy(), edges[:, 1].copy())
    return links, tail


def greedy(instance: Instance, seed: int = 0, params: StartParams = USUAL) -> tuple[Solution, Ints]:
    """Greedy edges: the shortest edge that still fits, again and again (TSP).

    Candidates are the edges to the nearest nodes; the paths they leave are joined the same way by
    their ends, round by round, until few enough are left to try every pair. The seed only
    breaks ties between equally near neighbours.
    """
    from drhg.construct import kernels

    links, tail = _fixed_links(instance)
    curve = along_curve(instance)  # neighbours in memory: a third faster at a million nodes
    near = _near_finder(instance, seed)
    ends, stuck = curve[links[curve, 1] < 0], False
    while np.count_nonzero(ends <= tail[ends]) > 1:
        everything = len(ends) <= (params.all_pairs_if_stuck if stuck else params.all_pairs)
        heads, feet = _pairs(ends, near, params.greedy_neighbours + 1, everything)
        order = np.argsort(instance.distance(heads, feet), kind="stable")
        kernels.join_edges(links, tail, heads[order], feet[order])
        before, ends = len(ends), ends[links[ends, 1] < 0]
        stuck = 4 * len(ends) > 3 * before  # a hub that is everyone's neighbour
    if len(ends):  # one path is left: close it
        a, b = ends[0], tail[ends[0]]
        links[a, int(links[a, 0] >= 0)] = b
        links[b, int(links[b, 0] >= 0)] = a
    return Solution([kernels.walk(links)]), none_left_out()


def shaken_greedy(instance: Instance, near: Ints) -> Callable[[np.random.Generator], Ints]:
    """A maker of tours by greedy edges whose lengths are made up to twice as long at random.

    Candidates are the edges along neighbour lists; the paths they leave are strung along a Hilbert
    curve, for a bare matrix at random. Quick, and different every time, but longer than `greedy`.
    """
    from drhg.construct import kernels

    heads, feet = kernels.candidate_pairs(near)
    lengths = instance.distance(heads, feet)
    fixed = _fixed_links(instance)

    def make(rng: np.random.Generator) -> Ints:
        links, tail = fixed[0].copy(), fixed[1].copy()
        order = np.argsort(lengths * (1.0 + rng.random(len(heads))))
        kernels.join_edges(links, tail, heads[order], feet[order])
        ends = np.flatnonzero(links[:, 1] < 0)
        ends = rng.permutation(ends[ends <= tail[ends]])  # one end of every path
        points = instance.plane
        if points is not None:
            ends = ends[hilbert_order(points[ends])]
        made: Ints = kernels.walk_paths(links, ends)
        return made

    return make


def insertion(
    instance: Instance, seed: int = 0, params: StartParams = USUAL
) -> tuple[Solution, Ints]:
    """Random insertion: nodes in random order, each where it costs least (Section 5, Table 1).

    Above a few thousand nodes only places next to near nodes are tried. In a CVRP the first
    customers open as many routes as are needed at least; for the others a place must have room, and
    without one a new route is opened.
    """
    from drhg.construct import kernels
    from drhg.kernels.space import space_of

    rng = np.random.default_rng(seed)
    space = space_of(instance)
    if not instance.is_cvrp:
        links, tail = _fixed_links(instance)
        locked = links >= 0
        ends = np.flatnonzero(links[:, 1] < 0)
        order = rng.permutation(ends[ends <= tail[ends]])  # every piece by one of its ends
        for begin, end, near in _batches(instance, order, seed, params):
            kernels.insert_pieces(space, links, locked, tail, order, begin, end, near)
        return Solution([kernels.walk(links)]), none_left_out()

    assert instance.demand is not None
    assert instance.capacity is not None
    n, depot = instance.n, instance.depot
    plan = kernels.Plan(
        links=np.full((n, 2), -1, dtype=np.int64),
        route=np.full(n, -1, dtype=np.int64),
        load=np.zeros(n, dtype=np.int64),
        length=np.zeros(n),
    )
    customers, far = reachable(instance, np.delete(np.arange(n), depot))
    order = rng.permutation(customers)
    opening = -(-int(instance.demand.sum()) // instance.capacity)  # no plan has fewer routes
    limits = kernels.Limits(
        depot,
        instance.demand.copy(),
        instance.capacity,
        length_limit(instance),
        instance.common_service,
    )
    samples = params.insertion_samples
    for begin, end, near in _batches(instance, order, seed, params):
        kernels.insert_customers(space, limits, plan, order, begin, end, near, opening, samples)
    return as_plan(instance, _routes(plan.links, depot), far)


def _batches(
    instance: Instance, order: Ints, seed: int, params: StartParams
) -> list[tuple[int, int, Ints]]:
    """Random insertion in batches (begin, end, near nodes of each): all at once, or by doubling.

    The neighbours are sought among all nodes up to the end of the batch; at least half of them, on
    average, are in the tour when their turn comes, whatever the size of the instance.
    """
    count = len(order)
    none = np.zeros((0, 0), dtype=np.int64)
    if count <= params.insertion_scan or instance.metric is Metric.EXPLICIT:
        return [(0, count, none)]
    finder = _near_finder(instance, seed)
    half = params.insertion_scan // 2
    batches, begin = [(0, half, none)], half
    while begin < count:
        end = min(2 * begin, count)
        near = finder(order[:end], order[begin:end], params.insertion_neighbours + 1)
        batches.append((begin, end, order[near]))
        begin = end
    return batches


def _routes(links: Ints, depot: int) -> list[Ints]:
    from drhg.construct import kernels

    order, begins = kernels.walk_routes(links, depot)
    return np.split(order, begins[1:]) if len(begins) else []


def sweep(instance: Instance, seed: int = 0, params: StartParams = USUAL) -> tuple[Solution, Ints]:
    """Sectors around the depot, each filled to capacity, the nearest customer next (Section 5).

    The seed draws the angle at which the first sector begins.
    """
    from drhg.construct import kernels
    from drhg.kernels.space import space_of

    start = float(np.random.default_rng(seed).uniform(0.0, 2.0 * np.pi))
    customers, far = reachable(instance, np.delete(np.arange(instance.n), instance.depot))
    order, bounds = sector_bounds(instance, customers, start)
    if np.diff(np.append(bounds, len(order))).max(initial=0) > params.longest_sweep_route:
        curve = along_curve(instance)
        return as_plan(instance, sectors(instance, curve[np.isin(curve, customers)], start), far)
    kernels.nearest_first(space_of(instance), instance.depot, order, bounds)
    return as_plan(instance, cut_routes(instance, order, bounds), far)


def savings(
    instance: Instance, seed: int = 0, params: StartParams = USUAL
) -> tuple[Solution, Ints]:
    """Clarke and Wright's parallel savings over pairs of near customers (CVRP).

    When nothing more can be joined among near pairs, the ends of the routes look again among
    themselves. The seed only breaks ties between equally near neighbours.
    """
    from drhg.construct import kernels

    assert instance.demand is not None
    assert instance.capacity is not None
    n, depot, limit = instance.n, instance.depot, length_limit(instance)
    curve = along_curve(instance)
    ends, far = reachable(instance, curve[curve != depot])
    home = instance.distance(depot, np.arange(n))
    links, tail = np.full((n, 2), -1, dtype=np.int64), np.arange(n)
    load, length = instance.demand.copy(), 2.0 * home + instance.common_service
    near = _near_finder(instance, seed)
    while len(ends) > 1:
        everything = len(ends) <= 2 * params.all_pairs
        affordable = max(params.least_savings_neighbours, params.savings_pairs // len(ends))
        k = min(params.savings_neighbours, affordable)
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
    return as_plan(instance, _routes(links, depot), far)


def alone(instance: Instance, seed: int = 0, params: StartParams = USUAL) -> tuple[Solution, Ints]:
    """Every customer in a route of its own, as long as there are vehicles (for time windows)."""
    del seed, params
    customers = instance.customers
    if instance.locks is not None or instance.fixed_edges:
        return _begun(instance, customers)
    if instance.fleet is not None:  # the search finds vehicles for all
        return Solution([]), customers
    vehicles = len(customers) if instance.vehicles is None else instance.vehicles
    return Solution(list(customers[:vehicles, None])), customers[vehicles:]


def _begun(instance: Instance, customers: Ints) -> tuple[Solution, Ints]:
    """Of a problem with locks no more than the routes that are driven or frozen."""
    found = resolve(instance)
    routes = (*found.driven.items(), *found.frozen.items())
    named = instance.locks is not None and instance.locks.vehicles > 0
    plan = Solution([path for _, path in routes], [v for v, _ in routes] if named else None)
    return plan, np.setdiff1d(customers, [node for _, path in routes for node in path])


STARTS: dict[str, Start] = {
    "alone": alone,
    "greedy": greedy,
    "insertion": insertion,
    "savings": savings,
    "space-filling": space_filling,
    "sweep": sweep,
}


def rehearse(problem: str, name: str) -> None:
    """Use every kernel of a start once, to have them compiled or loaded."""
    from drhg.problem.generate import as_matrix, uniform_cvrp, uniform_tsp

    make = uniform_tsp if problem == "tsp" else uniform_cvrp
    if name in ("greedy", "savings"):  # a matrix does without scipy
        construct(as_matrix(make(20, seed=0)), name, 0)
        _pairs(np.arange(4), lambda among, of, k: np.zeros((len(of), k), np.int64), 2, False)
    else:  # large enough for lists of neighbours
        construct(make(3 * USUAL.all_pairs, seed=0), name, 0)

"""Solvers from other packages as repairers, and two repairers in sequence.

The reduced graph of a region is a small TSP or CVRP in which some edges, the hyper-edges, must be
used. Any solver that takes a matrix of whole numbers can be made to use them: they cost nothing,
and other edges at their ends a large amount more. What comes back is looked at: an answer that
lost a hyper-edge, breaks a limit or is longer than what was there is dropped.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from importlib import import_module
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from drhg.compiled import distance, kernel
from drhg.errors import DrhgError
from drhg.hypergraph import EVERYWHERE, OK, Graphs, Index, Repaired, Rules, present, walk
from drhg.problem import Floats, Ints
from drhg.repair import Repair

log = logging.getLogger("drhg")

LARGEST = 65_535  # whole numbers that every one of the solvers of tours takes
FORCE = 20_000  # what an edge of a tour costs more for not being a hyper-edge
SCALE = 4.0  # times the longest edge of the present tour, distances are cut off
FINE = 1_000_000  # the longest distance between customers as a whole number: far below 1e-4 is lost
HYGESE_MOST = 50_000.0  # distances and demands that hygese takes are below twice this
SMALLEST = 5  # nodes from which on a solver is asked; hygese does not come back from two
TOUR_SECONDS, ROUTES_SECONDS = 0.1, 0.3  # per reduced graph

Matrix = npt.NDArray[np.int64]
Routes: TypeAlias = list[list[int]]


@dataclass(frozen=True)
class Small:
    """What a solver is given: a tour through all places, or routes from place 0 to the others."""

    matrix: Matrix
    demand: Ints | None = None  # (N,); None for a tour
    capacity: int = 0
    vehicles: int | None = None
    lengths: Matrix | None = None  # what counts for `longest`, if that is not the matrix
    service: Ints | None = None  # (N,), the same
    longest: int = 0  # that a route may be, if lengths are given
    xy: Floats | None = None
    start: Sequence[Sequence[int]] | None = None  # routes to improve


Prepare: TypeAlias = Callable[[Small, float, int, int], Callable[[], Routes]]
"""From the problem, seconds, a seed and threads to a call that solves it."""


def _fast_tsp(small: Small, seconds: float, seed: int, threads: int) -> Callable[[], Routes]:
    import fast_tsp

    matrix = small.matrix.astype(np.uint16)  # no seed; its answers vary a little from run to run
    return lambda: [fast_tsp.find_tour(matrix, seconds, max_threads=threads)]


def _elkai(small: Small, seconds: float, seed: int, threads: int) -> Callable[[], Routes]:
    """LKH; free for academic use only. It knows no time limit: one run."""
    import elkai

    matrix = elkai.DistanceMatrix(small.matrix.tolist())
    return lambda: [matrix.solve_tsp(runs=1)[:-1]]


def _ortools(small: Small, seconds: float, seed: int, threads: int) -> Callable[[], Routes]:
    from ortools.constraint_solver import pywrapcp, routing_enums_pb2

    n, fleet = len(small.matrix), 1
    if small.demand is not None:
        full = -(-int(small.demand.sum()) // small.capacity)
        fleet = small.vehicles or min(n - 1, full + max(5, full // 4))  # spare ones cost nothing
    manager = pywrapcp.RoutingIndexManager(n, fleet, 0)
    model = pywrapcp.RoutingModel(manager)
    model.SetArcCostEvaluatorOfAllVehicles(model.RegisterTransitMatrix(small.matrix.tolist()))
    if small.demand is not None:
        carried = model.RegisterUnaryTransitVector(small.demand.tolist())
        limits = [small.capacity] * fleet
        model.AddDimensionWithVehicleCapacity(carried, 0, limits, True, "load")
    parameters = pywrapcp.DefaultRoutingSearchParameters()
    first, meta = (
        routing_enums_pb2.FirstSolutionStrategy,
        routing_enums_pb2.LocalSearchMetaheuristic,
    )
    tour, routes = first.PATH_CHEAPEST_ARC, first.SAVINGS
    parameters.first_solution_strategy = tour if small.demand is None else routes
    parameters.local_search_metaheuristic = meta.GUIDED_LOCAL_SEARCH
    parameters.time_limit.FromMilliseconds(max(1, int(1000 * seconds)))

    def run() -> Routes:
        found = model.SolveWithParameters(parameters)
        if found is None:
            raise DrhgError("found no solution in time")
        answer = []
        for vehicle in range(fleet):
            index, route = model.Start(vehicle), []
            while not model.IsEnd(index):
                route.append(manager.IndexToNode(index))
                index = found.Value(model.NextVar(index))
            answer.append(route if small.demand is None else route[1:])
        return answer

    return run


def _pyvrp(small: Small, seconds: float, seed: int, threads: int) -> Callable[[], Routes]:
    pyvrp: Any = import_module("pyvrp")

    n = len(small.matrix)
    assert small.demand is not None
    points = np.zeros((n, 2)) if small.xy is None else small.xy
    demand = small.demand.tolist()
    service = [0] * n if small.service is None else small.service.tolist()
    lengths, limit = np.zeros_like(small.matrix), {}
    if small.lengths is not None:
        lengths, limit = small.lengths, {"shift_duration": small.longest}
    data = pyvrp.ProblemData(
        locations=[pyvrp.Location(float(x), float(y)) for x, y in points],
        clients=[
            pyvrp.Client(i, delivery=[demand[i]], service_duration=service[i]) for i in range(1, n)
        ],
        depots=[pyvrp.Depot(0)],
        vehicle_types=[pyvrp.VehicleType(small.vehicles or n - 1, [small.capacity], **limit)],
        distance_matrices=[small.matrix],
        duration_matrices=[lengths],
    )
    start = None
    if small.start is not None:  # clients count from 0, without the depot
        start = pyvrp.Solution(data, [[i - 1 for i in route] for route in small.start])

    def run() -> Routes:
        limit = pyvrp.stop.MaxRuntime(seconds)
        best = pyvrp.solve(data, limit, seed=seed, display=False, initial_solution=start).best
        if not best.is_feasible():
            raise DrhgError("found no feasible solution in time")
        return [[visit.idx + 1 for visit in route if visit.is_client()] for route in best.routes()]

    return run


def _hygese(small: Small, seconds: float, seed: int, threads: int) -> Callable[[], Routes]:
    """Knows neither a start nor lengths other than its matrix: a limit of length is not passed.

    What it refuses ends the process, so numbers are brought into the range that it takes.
    """
    import hygese

    assert small.demand is not None
    points = np.zeros((len(small.matrix), 2)) if small.xy is None else small.xy
    x, y = (points - points.min(axis=0)).T
    longest, heaviest = int(small.matrix.max()), int(small.demand.max())
    if len(small.matrix) < SMALLEST or longest < 1 or heaviest < 1:
        raise DrhgError("nothing to search")
    weight = min(1.0, HYGESE_MOST / heaviest)
    data = {
        "x_coordinates": x,
        "y_coordinates": y,
        "distance_matrix": small.matrix * min(1.0, HYGESE_MOST / longest),
        "demands": small.demand * weight,
        "vehicle_capacity": small.capacity * weight,
        "depot": 0,
    }
    if small.vehicles is not None:
        data["num_vehicles"] = small.vehicles
    parameters = hygese.AlgorithmParameters(timeLimit=seconds, seed=seed, nbIter=2**31 - 1)
    solver = hygese.Solver(parameters=parameters, verbose=False)
    return lambda: [list(route) for route in solver.solve_cvrp(data).routes]


class Solver(NamedTuple):
    prepare: Prepare
    tours: bool
    routes: bool
    fleet: bool = True  # whether it can be told of a scarce fleet: hygese ends the process


SOLVERS = {
    "fast_tsp": Solver(_fast_tsp, True, False),
    "pyvrp": Solver(_pyvrp, False, True),
    "hygese": Solver(_hygese, False, True, False),
    "ortools": Solver(_ortools, True, True),
    "elkai": Solver(_elkai, True, False),
}


def usual(routes: bool) -> str:
    """The solver that is asked if none is named."""
    return "pyvrp" if routes else "fast_tsp"


class LibraryRepair:
    """Let a solver from another package reconnect every reduced graph, of a tour or of routes.

    A call lasts `seconds` per graph (by default 0.1 for a tour, 0.3 for routes), so results depend
    on the machine's speed and are not the same every time, unlike those of the other repairers.
    With a limited fleet a region keeps its number of routes.

    >>> from drhg.library import LibraryRepair
    >>> repair = LibraryRepair("fast_tsp", seconds=0.1)
    """

    def __init__(
        self, solver: str = "fast_tsp", seconds: float | None = None, threads: int = 1
    ) -> None:
        if solver not in SOLVERS:
            raise DrhgError(f"unknown library {solver!r}; known: {', '.join(SOLVERS)}")
        try:
            import_module(solver)
        except ImportError:
            raise DrhgError(f"{solver} is not installed: pip install {solver}") from None
        self.name, self.solver = solver, SOLVERS[solver]
        self.seconds, self.threads = seconds, threads

    def __call__(self, rules: Rules, graphs: Graphs, rng: np.random.Generator) -> Repaired:
        routes = rules.depot >= 0
        if not (self.solver.routes if routes else self.solver.tours):
            fit = ", ".join(n for n, s in SOLVERS.items() if (s.routes if routes else s.tours))
            raise DrhgError(f"{self.name} does not solve {'routes' if routes else 'tours'}: {fit}")
        answer, before = present(graphs), present(graphs)
        for row in range(len(graphs)):
            if graphs.size[row] >= SMALLEST:
                (self._routes if routes else self._tour)(rules, graphs, row, rng, answer)
        verdict, total, used = walk(rules, graphs, answer)
        worse = (verdict != OK) | (total > walk(rules, graphs, before)[1])
        if rules.vehicles < EVERYWHERE:
            worse |= used > graphs.n_routes
        answer.order[worse], answer.via[worse] = before.order[worse], before.via[worse]
        return answer

    def _solved(self, small: Small, rng: np.random.Generator) -> Routes:
        """Its answer; none, with a warning, if it fails: that is no reason to fail ourselves."""
        usual_seconds = TOUR_SECONDS if small.demand is None else ROUTES_SECONDS
        seconds = usual_seconds if self.seconds is None else self.seconds
        seed = int(rng.integers(2**31 - 1))
        try:
            return self.solver.prepare(small, seconds, seed, self.threads)()
        except Exception as error:
            log.warning("%s failed: %s: %s", self.name, type(error).__name__, error)
            return []

    def _tour(
        self, rules: Rules, graphs: Graphs, row: int, rng: np.random.Generator, answer: Repaired
    ) -> None:
        m = int(graphs.size[row])
        shuffled = rng.permutation(m)  # solvers start differently then
        back = np.empty(m, np.int32)
        back[shuffled] = np.arange(m, dtype=np.int32)
        node, partner = graphs.node[row, shuffled], back[graphs.partner[row, shuffled]]
        longest = _longest(rules.space, graphs.node[row, :m], graphs.partner[row, :m])
        matrix = _matrix(rules.space, node, partner, SCALE * longest)
        found = self._solved(Small(matrix), rng)
        order = _with_hyper_edges(np.asarray(found[0] if found else []), partner)
        if order is not None:
            answer.order[row, :m] = shuffled[order]

    def _routes(
        self, rules: Rules, graphs: Graphs, row: int, rng: np.random.Generator, answer: Repaired
    ) -> None:
        m = int(graphs.size[row])
        small, mate = _small_routes(rules, graphs, row)
        if not self.solver.fleet:
            small = replace(small, vehicles=None)
        found = _with_stubs(self._solved(small, rng), mate, m)
        if found is not None:
            answer.order[row, :m], answer.via[row, :m] = found


def _small_routes(rules: Rules, graphs: Graphs, row: int) -> tuple[Small, Ints]:
    """A reduced graph of routes as a CVRP, and the place that must be beside each, or -1.

    Place 0 is the depot, 1 to m are the nodes. A stub gets one more place, at the depot, on the
    way from its free end. The load of a hyper-edge is at its first end.
    """
    m = int(graphs.size[row])
    partner, load, length = graphs.partner[row, :m], graphs.load[row, :m], graphs.length[row, :m]
    own = np.arange(m)
    stubs = np.flatnonzero(partner < 0)
    outer = 1 + m + np.arange(len(stubs))  # places of stubs at the depot
    n = 1 + m + len(stubs)
    node = np.full(n, rules.depot)
    node[1 : m + 1] = graphs.node[row, :m]
    mate = np.full(n, -1)
    wide = np.flatnonzero((partner >= 0) & (partner != own))
    mate[1 + wide] = 1 + partner[wide]
    mate[1 + stubs], mate[outer] = outer, 1 + stubs
    demand = np.zeros(n, np.int64)
    demand[1 : m + 1] = np.where((partner < 0) | (partner >= own), load, 0)

    far = _between(rules.space, node)
    top = max(float(far[:, 1:].max(initial=0.0)), 1e-300)
    scale = 1.0 if (far == np.rint(far)).all() and top < FINE else FINE / top
    matrix = np.rint(far * scale).astype(np.int64)
    force = 4 * int(matrix.max()) + 2
    weight = np.zeros(n, np.int64)  # of all edges at a place but the one that must be used
    weight[mate >= 0], weight[outer] = force // 2, force
    matrix += weight[:, None] + weight[None, :]
    held = np.flatnonzero(mate >= 0)
    matrix[held, mate[held]] = 0
    matrix[outer, 0] = matrix[0, outer] = 0
    np.fill_diagonal(matrix, 0)

    limits: dict[str, Any] = {}
    if rules.max_length < np.inf:  # rounded in its favour: the caller judges
        lengths = np.floor(far * scale).astype(np.int64)
        inside = np.concatenate(([0], length, length[stubs]))
        lengths[held, mate[held]] = np.floor(inside[np.minimum(held, mate[held])] * scale)
        alone = np.zeros(n)
        alone[1 : m + 1] = np.where(partner == own, length, 0.0)
        limits["lengths"], limits["longest"] = lengths, int(np.ceil(rules.max_length * scale))
        limits["service"] = np.floor(alone * scale).astype(np.int64)
    if rules.vehicles < EVERYWHERE:
        limits["vehicles"] = int(graphs.n_routes[row])
    start: Routes = []
    for u in range(m):
        if graphs.via[row, u]:
            start.append([])
        stub = [int(mate[1 + u])] if partner[u] < 0 else []
        start[-1].extend([*stub, 1 + u] if graphs.via[row, u] else [1 + u, *stub])
    xy = rules.space.points[node]
    return Small(matrix, demand, rules.capacity, xy=xy, start=start, **limits), mate


def _with_stubs(
    routes: Routes, mate: Ints, m: int
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]] | None:
    """The answer as order and depots; None if it is not a whole one with all hyper-edges."""
    order: list[int] = []
    via: list[bool] = []
    for route in routes:
        for i, place in enumerate(route):
            if not 1 <= place < len(mate):
                return None
            beside = route[max(0, i - 1) : i + 2]
            if mate[place] >= 0 and mate[place] not in beside:
                return None
            if place > m and 0 < i < len(route) - 1:  # the depot in the middle of a route
                return None
        inner = [place - 1 for place in route if place <= m]
        order.extend(inner)
        via.extend(i == 0 for i in range(len(inner)))
    if sorted(order) != list(range(m)):
        return None
    return np.array(order, np.int32), np.array(via, np.bool_)


@kernel
def _between(space, node):
    """All distances between nodes."""
    n = len(node)
    far = np.zeros((n, n), np.float64)
    for i in range(n):
        for j in range(i):
            far[i, j] = far[j, i] = distance(space, node[i], node[j])
    return far


@kernel
def _longest(space, node, partner):
    """The longest edge that the present order has between items."""
    m = len(node)
    longest = 0.0
    for i in range(m):
        j = i + 1 if i + 1 < m else 0
        if partner[i] != j:
            longest = max(longest, distance(space, node[i], node[j]))
    return longest


@kernel
def _matrix(space, node, partner, far):
    """Whole numbers up to LARGEST: 0 along hyper-edges, FORCE and the scaled length elsewhere."""
    m = len(node)
    scale = (LARGEST - FORCE) / far if far > 0.0 else 0.0
    matrix = np.zeros((m, m), np.int64)
    for i in range(m):
        for j in range(i):
            if partner[i] != j:
                d = min(distance(space, node[i], node[j]), far)
                matrix[i, j] = matrix[j, i] = FORCE + np.int64(d * scale)
    return matrix


def _with_hyper_edges(order: npt.NDArray[Any], partner: Index) -> Index | None:
    """The order turned so that no hyper-edge straddles its end; None if it is no such order."""
    m = len(partner)
    if order.shape != (m,) or not np.array_equal(np.sort(order), np.arange(m)):
        return None
    place = np.empty(m, np.int64)
    place[order] = np.arange(m)
    wide = np.flatnonzero(partner != np.arange(m))
    apart = (place[wide] - place[partner[wide]]) % m
    if not np.isin(apart, (1, m - 1)).all():
        return None
    straddles = partner[order[-1]] == order[0] and order[-1] != order[0]
    return np.roll(order, 1 if straddles else 0).astype(np.int32)


class Polished:
    """One repairer after another: the second starts from what the first has made.

    >>> from drhg.repair import InsertionRepair, LocalSearchRepair
    >>> repair = Polished(InsertionRepair(), LocalSearchRepair())
    """

    def __init__(self, first: Repair, second: Repair) -> None:
        self.first, self.second = first, second

    def __call__(self, rules: Rules, graphs: Graphs, rng: np.random.Generator) -> Repaired:
        made = self.first(rules, graphs, rng)
        broken = walk(rules, graphs, made)[0] != OK
        if broken.any():  # nothing to start from: what was there
            before = present(graphs)
            made = Repaired(
                np.where(broken[:, None], before.order, made.order),
                np.where(broken[:, None], before.via, made.via),
            )
        again = self.second(rules, reordered(graphs, made), rng)
        inside = again.order >= 0
        order = np.take_along_axis(made.order, np.where(inside, again.order, 0), axis=1)
        return Repaired(np.where(inside, order, np.int32(-1)), again.via)


def reordered(graphs: Graphs, made: Repaired) -> Graphs:
    """The same reduced graphs with their nodes in the order of a repair, as if it were present."""
    order = made.order
    inside = order >= 0
    index = np.where(inside, order, 0)
    place = np.zeros_like(order)
    np.put_along_axis(
        place, np.where(inside, order, np.arange(order.shape[1])[None, :]),
        np.broadcast_to(np.arange(order.shape[1], dtype=order.dtype), order.shape), axis=1,
    )  # fmt: skip
    rows = {
        f.name: np.take_along_axis(getattr(graphs, f.name), index, axis=1)
        for f in fields(graphs)
        if getattr(graphs, f.name).ndim == 2
    }
    partner = np.take_along_axis(place, np.maximum(rows["partner"], 0), axis=1)
    rows["partner"] = np.where(rows["partner"] >= 0, partner, np.int32(-1))
    rows["node"] = np.where(inside, rows["node"], np.int32(-1))
    return replace(graphs, **rows | {"via": made.via})

"""Solvers from other packages, each behind the same call: a small problem in whole numbers.

Nothing here needs compiled code; the packages are imported when they are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from drhg.errors import DrhgError
from drhg.problem import Floats, Ints

LONGEST_DISTANCE = 1_000_000  # distances are scaled up to this: what is lost is far below 1e-4
HYGESE_LARGEST = 50_000.0  # distances and demands that hygese takes are below twice this
SMALLEST = 5  # nodes from which on a solver is asked; hygese does not come back from two

Matrix = npt.NDArray[np.int64]
Routes: TypeAlias = list[list[int]]


@dataclass(frozen=True)
class SmallProblem:
    """What a solver is given: a tour through all places, or routes from place 0 to the others."""

    matrix: Matrix
    demand: Ints | None = None  # (N,); None for a tour
    capacity: int = 0
    vehicles: int | None = None
    lengths: Matrix | None = None  # what counts for `max_length`, if that is not the matrix
    service: Ints | None = None  # (N,), the same; counts for windows, too
    max_length: int = 0  # of a route, if lengths are given
    times: Matrix | None = None  # how long ways take, if there are time windows
    windows: Matrix | None = None  # (N, 2), when service begins; place 0's is the horizon
    xy: Floats | None = None
    start: Sequence[Sequence[int]] | None = None  # routes to improve


Prepare: TypeAlias = Callable[[SmallProblem, float, int, int], Callable[[], Routes]]
"""From the problem, seconds, a seed and threads to a call that solves it."""


def prepare_fast_tsp(
    problem: SmallProblem, seconds: float, seed: int, threads: int
) -> Callable[[], Routes]:
    import fast_tsp

    matrix = problem.matrix.astype(np.uint16)  # no seed; its answers vary a little from run to run
    return lambda: [fast_tsp.find_tour(matrix, seconds, max_threads=threads)]


def prepare_elkai(
    problem: SmallProblem, seconds: float, seed: int, threads: int
) -> Callable[[], Routes]:
    """LKH; free for academic use only. It knows no time limit: one run."""
    import elkai

    matrix = elkai.DistanceMatrix(problem.matrix.tolist())
    return lambda: [matrix.solve_tsp(runs=1)[:-1]]


def prepare_ortools(
    problem: SmallProblem, seconds: float, seed: int, threads: int
) -> Callable[[], Routes]:
    from ortools.constraint_solver import pywrapcp, routing_enums_pb2

    n, fleet = len(problem.matrix), 1
    if problem.demand is not None:
        full = -(-int(problem.demand.sum()) // problem.capacity)
        most = full + max(5, full // 4) if problem.windows is None else 2 * full + 10
        fleet = problem.vehicles or min(n - 1, most)  # spare ones cost nothing
    manager = pywrapcp.RoutingIndexManager(n, fleet, 0)
    model = pywrapcp.RoutingModel(manager)
    model.SetArcCostEvaluatorOfAllVehicles(model.RegisterTransitMatrix(problem.matrix.tolist()))
    if problem.demand is not None:
        carried = model.RegisterUnaryTransitVector(problem.demand.tolist())
        limits = [problem.capacity] * fleet
        model.AddDimensionWithVehicleCapacity(carried, 0, limits, True, "load")
    if problem.windows is not None:
        _add_times(manager, model, problem, fleet)
    parameters = pywrapcp.DefaultRoutingSearchParameters()
    first, meta = (
        routing_enums_pb2.FirstSolutionStrategy,
        routing_enums_pb2.LocalSearchMetaheuristic,
    )
    tour, routes = first.PATH_CHEAPEST_ARC, first.SAVINGS
    if problem.windows is not None:
        routes = first.PARALLEL_CHEAPEST_INSERTION
    parameters.first_solution_strategy = tour if problem.demand is None else routes
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
            answer.append(route if problem.demand is None else route[1:])
        return answer

    return run


def _add_times(manager: Any, model: Any, problem: SmallProblem, fleet: int) -> None:
    """Time windows for OR-Tools: a vehicle may wait as long as it likes."""
    assert problem.windows is not None
    assert problem.times is not None
    service = np.zeros(len(problem.matrix), np.int64) if problem.service is None else (
        problem.service
    )  # fmt: skip
    taken = model.RegisterTransitMatrix((problem.times + service[:, None]).tolist())
    horizon = int(problem.windows[0, 1])
    model.AddDimension(taken, horizon, horizon, False, "time")
    time = model.GetDimensionOrDie("time")
    for node, (opens, closes) in enumerate(problem.windows.tolist()):
        if node > 0:
            time.CumulVar(manager.NodeToIndex(node)).SetRange(opens, min(closes, horizon))
    for vehicle in range(fleet):
        time.CumulVar(model.Start(vehicle)).SetRange(int(problem.windows[0, 0]), horizon)


def prepare_pyvrp(
    problem: SmallProblem, seconds: float, seed: int, threads: int
) -> Callable[[], Routes]:
    pyvrp: Any = import_module("pyvrp")

    n = len(problem.matrix)
    tour = problem.demand is None
    points = np.zeros((n, 2)) if problem.xy is None else problem.xy
    demand = [0] * n if problem.demand is None else problem.demand.tolist()
    fleet = 1 if tour else problem.vehicles or n - 1
    service = [0] * n if problem.service is None else problem.service.tolist()
    lengths, limit = np.zeros_like(problem.matrix), {}
    windows: list[dict[str, int]] = [{}] * n
    if problem.lengths is not None:
        lengths, limit = problem.lengths, {"shift_duration": problem.max_length}
    if problem.windows is not None and problem.times is not None:
        lengths = problem.times
        windows = [{"tw_early": a, "tw_late": b} for a, b in problem.windows.tolist()]
        limit = windows[0]
    data = pyvrp.ProblemData(
        locations=[pyvrp.Location(float(x), float(y)) for x, y in points],
        clients=[
            pyvrp.Client(i, delivery=[demand[i]], service_duration=service[i], **windows[i])
            for i in range(1, n)
        ],
        depots=[pyvrp.Depot(0)],
        vehicle_types=[pyvrp.VehicleType(fleet, [problem.capacity], **limit)],
        distance_matrices=[problem.matrix],
        duration_matrices=[lengths],
    )
    start = None
    if problem.start is not None:  # clients count from 0, without the depot
        start = pyvrp.Solution(data, [[i - 1 for i in route] for route in problem.start])

    def run() -> Routes:
        limit = pyvrp.stop.MaxRuntime(seconds)
        best = pyvrp.solve(data, limit, seed=seed, display=False, initial_solution=start).best
        if not best.is_feasible():
            raise DrhgError("found no feasible solution in time")
        found = [[visit.idx + 1 for visit in route if visit.is_client()] for route in best.routes()]
        return [[0, *found[0]]] if tour else found

    return run


def prepare_hygese(
    problem: SmallProblem, seconds: float, seed: int, threads: int
) -> Callable[[], Routes]:
    """Knows neither a start nor lengths other than its matrix: a limit of length is not passed.

    What it refuses ends the process, so numbers are brought into the range that it takes.
    """
    import hygese

    assert problem.demand is not None
    points = np.zeros((len(problem.matrix), 2)) if problem.xy is None else problem.xy
    x, y = (points - points.min(axis=0)).T
    longest, heaviest = int(problem.matrix.max()), int(problem.demand.max())
    if len(problem.matrix) < SMALLEST or longest < 1 or heaviest < 1:
        raise DrhgError("nothing to search")
    weight = min(1.0, HYGESE_LARGEST / heaviest)
    data = {
        "x_coordinates": x,
        "y_coordinates": y,
        "distance_matrix": problem.matrix * min(1.0, HYGESE_LARGEST / longest),
        "demands": problem.demand * weight,
        "vehicle_capacity": problem.capacity * weight,
        "depot": 0,
    }
    if problem.vehicles is not None:
        data["num_vehicles"] = problem.vehicles
    parameters = hygese.AlgorithmParameters(timeLimit=seconds, seed=seed, nbIter=2**31 - 1)
    solver = hygese.Solver(parameters=parameters, verbose=False)
    return lambda: [list(route) for route in solver.solve_cvrp(data).routes]


class Solver(NamedTuple):
    prepare: Prepare
    tours: bool
    routes: bool
    fleet: bool = True  # whether it can be told of a scarce fleet: hygese ends the process


SOLVERS = {
    "fast_tsp": Solver(prepare_fast_tsp, True, False),
    "pyvrp": Solver(prepare_pyvrp, False, True),
    "hygese": Solver(prepare_hygese, False, True, False),
    "ortools": Solver(prepare_ortools, True, True),
    "elkai": Solver(prepare_elkai, True, False),
}


def usual_solver(routes: bool) -> str:
    """The solver that is asked if none is named."""
    return "pyvrp" if routes else "fast_tsp"

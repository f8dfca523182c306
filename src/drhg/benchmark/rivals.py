"""Other solvers, each in a process of its own, with the same wall clock and the same cores.

An adapter turns an instance into what the package wants and returns a call without arguments: only
that call is timed, so a rival pays neither for our conversion nor for its import. A rival that
uses one core runs once per core, with different seeds at the same time, and its best answer
counts. Whatever comes back is checked and costed by us.
"""

from __future__ import annotations

import importlib.util
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from multiprocessing import connection, get_context
from typing import Any, TypeAlias

import numpy as np

from drhg.benchmark.rows import FAILED, LATE, OK
from drhg.errors import DrhgError, SolutionError
from drhg.problem import Cost, Instance, Ints, Metric, Solution, check, cost

Routes: TypeAlias = list[list[int]]
Prepare: TypeAlias = Callable[[Instance, float, int, int], Callable[[], Routes]]

LARGEST_FAST_TSP = 65_535  # distances of fast_tsp are 16 bits wide
SCALE = 10_000  # unrounded distances become whole numbers so fine
PREPARE_SECONDS = 120.0  # to import and convert, before the clock runs


@dataclass(frozen=True)
class Rival:
    """An adapter and what one has to know about the package behind it."""

    name: str
    package: str  # what is imported
    prepare: Prepare
    tours: bool = False
    routes: bool = False
    threads: bool = False  # it uses several cores by itself
    seeded: bool = False
    most: int = 12_000  # nodes, beyond which its matrix does not fit a usual machine
    licence: str = ""  # said in tables where it matters

    @property
    def installed(self) -> bool:
        return importlib.util.find_spec(self.package) is not None

    def unfit(self, instance: Instance) -> str | None:
        """Why it cannot take part, or None."""
        if not (self.routes if instance.is_cvrp else self.tours):
            return f"does not solve a {instance.problem.upper()}"
        if instance.n > self.most:
            return f"takes at most {self.most:,} nodes"
        if instance.fixed_edges:
            return "knows no fixed edges"
        if instance.max_distance is not None or instance.vehicles is not None:
            return "its adapter passes on no limit of fleet or length"
        if instance.n < 4:
            return "there is nothing to search"
        return None


@dataclass(frozen=True)
class Outcome:
    """What came of a job, ours or a rival's."""

    status: str
    solution: Solution | None = None
    cost: Cost | None = None
    seconds: float | None = None
    iterations: int | None = None
    error: str = ""


# --- adapters ------------------------------------------------------------------------------------


def distances(instance: Instance, largest: int | None = None) -> Ints:
    """The matrix in whole numbers: exact for rounded metrics unless `largest` forbids it."""
    i = np.arange(instance.n)
    matrix = np.empty((instance.n, instance.n), np.int64)
    top = max(float(np.max(instance.distance(i, k), initial=0)) for k in range(instance.n))
    scale = 1.0 if instance.integral else float(SCALE)
    if largest is not None and (top * scale > largest or not instance.integral):
        scale = largest / max(top, 1e-300)
    for k in range(instance.n):  # row by row: memory
        matrix[k] = np.rint(instance.distance(i, k) * scale)
    return matrix


def _fast_tsp(instance: Instance, seconds: float, seed: int, threads: int) -> Callable[[], Routes]:
    import fast_tsp

    matrix = distances(instance, LARGEST_FAST_TSP).astype(np.uint16)
    return lambda: [
        fast_tsp.find_tour(matrix, duration_seconds=seconds, max_threads=threads)
    ]  # no seed; its answers vary a little from run to run


def _elkai(instance: Instance, seconds: float, seed: int, threads: int) -> Callable[[], Routes]:
    import elkai

    matrix = elkai.DistanceMatrix(distances(instance).tolist())
    return lambda: [matrix.solve_tsp(runs=1)[:-1]]  # knows no time limit


def _ortools(instance: Instance, seconds: float, seed: int, threads: int) -> Callable[[], Routes]:
    from ortools.constraint_solver import pywrapcp, routing_enums_pb2

    matrix = distances(instance)
    fleet, depot = 1, instance.depot
    if instance.demand is not None:
        assert instance.capacity is not None
        full = -(-int(instance.demand.sum()) // instance.capacity)
        fleet = min(instance.n - 1, full + max(5, full // 4))  # spare ones cost nothing
    manager = pywrapcp.RoutingIndexManager(instance.n, fleet, depot)
    model = pywrapcp.RoutingModel(manager)
    model.SetArcCostEvaluatorOfAllVehicles(model.RegisterTransitMatrix(matrix.tolist()))
    if instance.demand is not None:
        carried = model.RegisterUnaryTransitVector(instance.demand.tolist())
        limits = [instance.capacity] * fleet
        model.AddDimensionWithVehicleCapacity(carried, 0, limits, True, "load")
    parameters = pywrapcp.DefaultRoutingSearchParameters()
    first, meta = (
        routing_enums_pb2.FirstSolutionStrategy,
        routing_enums_pb2.LocalSearchMetaheuristic,
    )
    savings, insertion = first.SAVINGS, first.PATH_CHEAPEST_ARC
    parameters.first_solution_strategy = savings if instance.is_cvrp else insertion
    parameters.local_search_metaheuristic = meta.GUIDED_LOCAL_SEARCH
    parameters.time_limit.FromMilliseconds(max(1, int(1000 * seconds)))

    def run() -> Routes:
        found = model.SolveWithParameters(parameters)
        if found is None:
            raise DrhgError("found no solution in time")
        routes = []
        for vehicle in range(fleet):
            index, route = model.Start(vehicle), []
            while not model.IsEnd(index):
                route.append(manager.IndexToNode(index))
                index = found.Value(model.NextVar(index))
            routes.append(route[1:] if instance.is_cvrp else route)
        return routes

    return run


def _pyvrp(instance: Instance, seconds: float, seed: int, threads: int) -> Callable[[], Routes]:
    pyvrp: Any = import_module("pyvrp")

    order = _depot_first(instance)
    matrix = distances(instance)[np.ix_(order, order)]
    assert instance.demand is not None
    points = np.zeros((instance.n, 2)) if instance.xy is None else instance.xy[order]
    demand = instance.demand[order].tolist()
    data = pyvrp.ProblemData(
        locations=[pyvrp.Location(float(x), float(y)) for x, y in points],
        clients=[pyvrp.Client(i, delivery=[demand[i]]) for i in range(1, instance.n)],
        depots=[pyvrp.Depot(0)],
        vehicle_types=[pyvrp.VehicleType(instance.n - 1, [instance.capacity])],
        distance_matrices=[matrix],
        duration_matrices=[np.zeros_like(matrix)],
    )

    def run() -> Routes:
        best = pyvrp.solve(data, pyvrp.stop.MaxRuntime(seconds), seed=seed, display=False).best
        if not best.is_feasible():
            raise DrhgError("found no feasible solution in time")
        # the index of a client, counted from 0 without the depot
        return [
            [int(order[visit.idx + 1]) for visit in route if visit.is_client()]
            for route in best.routes()
        ]

    return run


def _hygese(instance: Instance, seconds: float, seed: int, threads: int) -> Callable[[], Routes]:
    import hygese

    order = _depot_first(instance)
    assert instance.demand is not None
    points = np.zeros((instance.n, 2)) if instance.xy is None else instance.xy[order]
    points = points - points.min(axis=0)
    matrix = distances(instance)[np.ix_(order, order)].astype(np.float64)
    parameters = hygese.AlgorithmParameters(timeLimit=seconds, seed=seed, nbIter=10**9)
    solver = hygese.Solver(parameters=parameters, verbose=False)
    data = {
        "x_coordinates": points[:, 0],
        "y_coordinates": points[:, 1],
        "distance_matrix": matrix,
        "demands": instance.demand[order],
        "vehicle_capacity": instance.capacity,
        "depot": 0,
    }
    return lambda: [[int(order[i]) for i in r] for r in solver.solve_cvrp(data).routes]


def _depot_first(instance: Instance) -> Ints:
    customers = np.delete(np.arange(instance.n), instance.depot)
    return np.concatenate(([instance.depot], customers))


RIVALS = {
    rival.name: rival
    for rival in (
        Rival("fast_tsp", "fast_tsp", _fast_tsp, tours=True, threads=True),
        Rival("ortools", "ortools", _ortools, tours=True, routes=True, most=5_000),
        Rival("pyvrp", "pyvrp", _pyvrp, routes=True, seeded=True),
        Rival("hygese", "hygese", _hygese, routes=True, seeded=True),
        Rival("elkai", "elkai", _elkai, tours=True, most=3_000, licence="academic use only"),
    )
}


def chosen(names: str) -> tuple[list[Rival], list[str]]:
    """The rivals of a comma-separated list that are installed, and those that are not."""
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    unknown = [name for name in wanted if name not in RIVALS]
    if unknown:
        raise DrhgError(f"unknown rival {unknown[0]!r}; known: {', '.join(RIVALS)}")
    here = [RIVALS[name] for name in dict.fromkeys(wanted) if RIVALS[name].installed]
    return here, [name for name in wanted if not RIVALS[name].installed]


# --- the guard -----------------------------------------------------------------------------------


def run_guarded(
    rival: Rival,
    instance: Instance,
    seconds: float,
    seed: int = 0,
    threads: int = 1,
    wait: float | None = None,
) -> Outcome:
    """Run a rival so that nothing it does can harm the benchmark; its best valid answer.

    It is ended `wait` seconds after its limit (hygese, for one, counts seconds of the processor).
    """
    reason = rival.unfit(instance)
    if reason is not None:
        return Outcome("skipped", error=reason)
    copies = threads if rival.seeded and not rival.threads else 1
    wait = max(2.0, 0.5 * seconds) if wait is None else wait
    outcomes = _race(rival, instance, seconds, [seed + i for i in range(copies)], threads, wait)
    valid = [outcome for outcome in outcomes if outcome.cost is not None]
    if not valid:
        return min(outcomes, key=lambda outcome: FAILED.index(outcome.status))
    return min(valid, key=lambda outcome: (outcome.cost, outcome.seconds))


def _race(
    rival: Rival, instance: Instance, seconds: float, seeds: list[int], threads: int, wait: float
) -> list[Outcome]:
    context = get_context("spawn")
    children: list[Any] = []
    pipes: list[connection.Connection] = []
    try:
        for seed in seeds:
            near, far = context.Pipe(duplex=False)
            inner = threads if rival.threads else 1
            arguments = (far, rival.prepare, instance, seconds, seed, inner)
            child = context.Process(target=_child, args=arguments)
            child.start()
            far.close()
            children.append(child)
            pipes.append(near)
        return [
            _await(child, pipe, instance, seconds, wait)
            for child, pipe in zip(children, pipes, strict=True)
        ]
    finally:
        for child in children:
            child.kill()
            child.join()
        for pipe in pipes:
            pipe.close()


def _child(
    pipe: connection.Connection,
    prepare: Prepare,
    instance: Instance,
    seconds: float,
    seed: int,
    threads: int,
) -> None:
    """In the rival's process: silence it, convert, say that the clock runs, answer in JSON."""
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    try:
        run = prepare(instance, seconds, seed, threads)
        pipe.send_bytes(b"ready")
        began = time.perf_counter()
        routes = run()
        spent = time.perf_counter() - began
        pipe.send_bytes(json.dumps({"routes": routes, "seconds": spent}, default=_plain).encode())
    except BaseException as error:  # whatever it is, the row should say it
        pipe.send_bytes(json.dumps({"error": f"{type(error).__name__}: {error}"[:300]}).encode())


def _plain(value: Any) -> Any:
    """NumPy's numbers and arrays are fine answers too."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return repr(value)


def allowed(seconds: float) -> float:
    """When an answer still counts as in time, theirs and ours."""
    return seconds + max(0.1, 0.1 * seconds)


def _await(
    child: Any, pipe: connection.Connection, instance: Instance, seconds: float, wait: float
) -> Outcome:
    try:
        if not pipe.poll(PREPARE_SECONDS):
            return Outcome("hung", error=f"not ready after {PREPARE_SECONDS:g} s")
        message = pipe.recv_bytes()
        if message == b"ready":
            if not pipe.poll(seconds + wait):
                reason = f"no answer {wait:g} s after its limit of {seconds:g} s"
                return Outcome("hung", error=reason)
            message = pipe.recv_bytes()
    except (EOFError, OSError):
        child.join(5)
        return Outcome("crashed", error=f"its process ended with code {child.exitcode}")
    return judged(message, instance, seconds)


def judged(message: bytes, instance: Instance, seconds: float) -> Outcome:
    """An outcome from what a rival sent, trusted in nothing."""
    try:
        answer = json.loads(message)
        if "error" in answer:
            return Outcome("crashed", error=str(answer["error"]))
        spent = float(answer["seconds"])
        routes = [_whole(route) for route in answer["routes"]]
        solution = Solution(routes)
    except (ValueError, TypeError, KeyError, OverflowError, SolutionError) as error:
        return Outcome("garbage", error=f"{type(error).__name__}: {error}"[:300])
    found = check(instance, solution)
    if found:
        more = f" and {len(found) - 1} more" if len(found) > 1 else ""
        return Outcome("invalid", seconds=spent, error=found[0] + more)
    status = OK if spent <= allowed(seconds) else LATE
    return Outcome(status, solution, cost(instance, solution), spent)


def _whole(route: Any) -> Ints:
    if not isinstance(route, list) or any(type(i) is not int for i in route):
        raise TypeError("a route is a list of node numbers")
    return np.array(route, dtype=np.int64)


def unrounded(instance: Instance, solution: Solution) -> float | None:
    """The paper's measure of library instances: the same solution with unrounded distances."""
    if instance.metric not in (Metric.EUC_2D, Metric.CEIL_2D):
        return None
    from dataclasses import replace

    return float(cost(replace(instance, metric=Metric.EXACT), solution))

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
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import connection, get_context
from typing import Any, TypeAlias

import numpy as np

from drhg.benchmark.rows import FAILED, LATE, OK
from drhg.errors import DrhgError, SolutionError
from drhg.problem import Cost, Instance, Ints, Metric, Solution, check, cost, not_known
from drhg.repair.solvers import SmallProblem

Routes: TypeAlias = list[list[int]]
Prepare: TypeAlias = Callable[[Instance, float, int, int], Callable[[], Routes]]

LARGEST_FAST_TSP = 65_535  # distances of fast_tsp are 16 bits wide
LATEST = 1e9  # where no window of the depot ends the day
WINDOWS = ("asymmetric", "durations", "services", "windows")
SCALE = 10_000  # unrounded distances become whole numbers so fine


@dataclass(frozen=True)
class Rival:
    """A solver from another package: its adapter, and what it can do."""

    name: str
    package: str  # what is imported
    prepare: Prepare
    tours: bool = False
    directed: bool = False  # of tours only those whose distances depend on the direction
    routes: bool = False
    threads: bool = False  # it uses several cores by itself
    seeded: bool = False
    most: int = 12_000  # nodes, beyond which its matrix does not fit a usual machine
    licence: str = ""  # said in tables where it matters
    known: tuple[str, ...] = ()  # the variants that its adapter passes on, see `problem.variants`
    prepare_seconds: float = 120.0  # that it may take to import and convert, before the clock runs

    @property
    def installed(self) -> bool:
        return importlib.util.find_spec(self.package) is not None

    def solves(self, instance: Instance) -> bool:
        """Whether it is a solver of such problems at all."""
        if instance.is_cvrp:
            return self.routes
        return self.tours or (self.directed and not instance.symmetric)

    def unfit(self, instance: Instance) -> str | None:
        """Why this rival cannot solve the instance, or None."""
        if not self.solves(instance):
            return f"does not solve a {instance.problem.upper()}"
        if instance.n > self.most:
            return f"takes at most {self.most:,} nodes"
        if why := not_known("its adapter", instance, self.known):
            return why
        if instance.fixed_edges:
            return "knows no fixed edges"
        if instance.max_distance is not None or instance.vehicles is not None:
            return "its adapter passes on no limit of fleet or length"
        if instance.n < 4:
            return "there is nothing to search"
        return None


@dataclass(frozen=True)
class Outcome:
    """The result of a job, by drhg or by a rival."""

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
        matrix[k] = np.rint(instance.distance(k, i) * scale)
    return matrix


def _prepared(
    name: str, largest: int | None, instance: Instance, seconds: float, seed: int, threads: int
) -> Callable[[], Routes]:
    """Prepare a library for an instance; its answer comes back in the instance's node numbers."""
    from drhg.repair.solvers import SOLVERS

    order = _depot_first(instance) if instance.is_cvrp else np.arange(instance.n)
    small = _with_times(
        instance,
        order,
        SmallProblem(
            distances(instance, largest)[np.ix_(order, order)],
            None if instance.demand is None else instance.demand[order],
            instance.capacity or 0,
            instance.vehicles,
            xy=None if instance.xy is None else instance.xy[order],
        ),
    )
    run = SOLVERS[name].prepare(small, seconds, seed, threads)
    return lambda: [[int(order[i]) for i in route] for route in run()]


def _with_times(instance: Instance, order: Ints, small: SmallProblem) -> SmallProblem:
    """The same with windows, service and travel times, in whole numbers as fine as distances."""
    if instance.windows is None:
        return small
    scale = 1.0 if instance.integral else float(SCALE)
    nodes = np.arange(instance.n)
    times = np.stack([instance.travel_time(k, nodes) for k in nodes])
    latest = instance.closes[instance.depot]  # a window without an end closes with the depot
    windows = np.minimum(instance.windows, latest if np.isfinite(latest) else LATEST)
    return replace(
        small,
        times=np.rint(times * scale).astype(np.int64)[np.ix_(order, order)],
        windows=np.rint(windows * scale).astype(np.int64)[order],
        service=np.rint(instance.services * scale).astype(np.int64)[order],
    )


def _adapter(name: str, largest: int | None = None) -> Prepare:
    return partial(_prepared, name, largest)


def _depot_first(instance: Instance) -> Ints:
    customers = np.delete(np.arange(instance.n), instance.depot)
    return np.concatenate(([instance.depot], customers))


RIVALS = {
    rival.name: rival
    for rival in (
        Rival(
            "fast_tsp", "fast_tsp", _adapter("fast_tsp", LARGEST_FAST_TSP), tours=True, threads=True
        ),
        Rival(
            "ortools",
            "ortools",
            _adapter("ortools"),
            tours=True,
            routes=True,
            most=5_000,
            known=WINDOWS,
        ),
        Rival(
            "pyvrp",
            "pyvrp",
            _adapter("pyvrp"),
            directed=True,
            routes=True,
            seeded=True,
            known=WINDOWS,
        ),
        Rival("hygese", "hygese", _adapter("hygese"), routes=True, seeded=True),
        Rival(
            "elkai",
            "elkai",
            _adapter("elkai"),
            tours=True,
            most=3_000,
            licence="academic use only",
            known=("asymmetric",),
        ),
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
    """Run a rival in processes of its own, where it can do no harm; returns its best valid answer.

    A rival that has not answered `wait` seconds after its limit is killed. Some patience is needed:
    hygese, for one, counts processor time.
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
            _await(rival, child, pipe, instance, seconds, wait)
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
    """In the rival's process: silence it, convert the instance, report ready, solve, send JSON."""
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
    """Accept NumPy's numbers and arrays in an answer."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return repr(value)


def allowed(seconds: float) -> float:
    """The latest second at which an answer counts as in time, for rivals and for drhg."""
    return seconds + max(0.1, 0.1 * seconds)


def _await(
    rival: Rival,
    child: Any,
    pipe: connection.Connection,
    instance: Instance,
    seconds: float,
    wait: float,
) -> Outcome:
    try:
        if not pipe.poll(rival.prepare_seconds):
            return Outcome("hung", error=f"not ready after {rival.prepare_seconds:g} s")
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
    """Check everything in a rival's message and turn it into an outcome."""
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
    return float(cost(replace(instance, metric=Metric.EXACT), solution))

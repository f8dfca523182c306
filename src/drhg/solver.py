"""`solve`: from an instance to a checked solution, within limits, whatever happens on the way.

The first solution needs no compilation. Imports, compilation and the search run in a worker thread;
the calling thread watches limits and signals and always has a solution to return.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from drhg.construct import construct
from drhg.criteria import Accept, Limits, Progress, improve
from drhg.errors import DrhgError, ModelError
from drhg.problem import Cost, Instance, Metric, Solution, check, cost, validated

if TYPE_CHECKING:
    from drhg.repair import Repair
    from drhg.search import Destroy, Snapshot

log = logging.getLogger("drhg")

REPAIRS = ("auto", "local", "insertion", "neural")
DEFAULT_SECONDS = 10.0
SLICE_SECONDS = 0.03  # how long compiled code runs before Python looks
TRIVIAL = 3  # tours of so many nodes are all the same


@dataclass(frozen=True)
class TracePoint:
    """When a new best was found."""

    seconds: float
    iterations: int
    cost: Cost


@dataclass(frozen=True)
class Result:
    """What `solve` returns; the solution has passed the checker unless the status is infeasible."""

    instance: Instance
    solution: Solution
    cost: Cost
    status: str  # target, time, iterations, no_improve, interrupted or infeasible
    seconds: float
    iterations: int
    seed: int
    repair: str
    trace: tuple[TracePoint, ...]
    unplaced: tuple[int, ...] = ()  # customers left out, if infeasible


OnImprove = Callable[[TracePoint, Solution], None]


class _Board:
    """Where the worker leaves its best and reads that it should stop."""

    def __init__(self, instance: Instance, limits: Limits, on_improve: OnImprove | None) -> None:
        self.began = time.perf_counter()
        self.instance, self.limits, self.on_improve = instance, limits, on_improve
        self.best: Solution | None = None
        self.cost: float = np.inf  # of the best; inf while customers are left out
        self.trace: list[TracePoint] = []
        self.iterations = self.improved_at = 0
        self.status: str | None = None
        self.error: BaseException | None = None
        self.stop = False  # set under the lock: nothing is offered or reported after it
        self.lock = threading.Lock()
        self.finished = threading.Event()

    def progress(self) -> Progress:
        seconds = time.perf_counter() - self.began
        return Progress(seconds, self.iterations, self.iterations - self.improved_at, self.cost)

    def offer(self, found: float, solution: Callable[[], Solution]) -> None:
        """Take a solution as the best if it is better (or the first at all).

        Of equally good ones the last is kept: which one was found first depends on how often
        Python looks, where the search ends does not.
        """
        slack = 1e-9 * max(1.0, abs(self.cost)) if self.cost < np.inf else 0.0
        if self.best is not None and not found <= self.cost + slack:
            return
        best = solution()
        better = self.best is None or found < self.cost - slack
        exact = cost(self.instance, best) if better and found < np.inf else None
        with self.lock:
            if self.stop:
                return
            self.best = best
            if better:
                self.cost, self.improved_at = found, self.iterations
            if exact is not None:
                self.cost = float(exact)
                now = time.perf_counter() - self.began
                self.trace.append(TracePoint(now, self.iterations, exact))
                if self.on_improve is not None:
                    self.on_improve(self.trace[-1], best)


def solve(
    instance: Instance,
    *,
    time_limit: float | None = None,
    max_iters: int | None = None,
    no_improve: int | None = None,
    target: float | None = None,
    seed: int = 0,
    init: str | Solution = "auto",
    repair: str | Repair = "auto",
    destroy: Destroy | None = None,
    accept: Accept | None = None,
    on_improve: OnImprove | None = None,
    should_stop: Callable[[], bool] | None = None,
    threads: int | None = None,
) -> Result:
    """Solve an instance; without any limit for ten seconds.

    `repair` is a name (see `REPAIRS`) or any callable that reconnects reduced graphs; `destroy` and
    `accept` replace the parts of the region search of the same name. The same seed, threads and
    `max_iters` give the same solution. `on_improve` is called from a worker thread.

    >>> import drhg
    >>> drhg.solve(drhg.tsp([[0, 0], [0, 1], [1, 1], [1, 0]]), max_iters=10).cost
    4.0
    """
    for name, value in (
        ("time_limit", time_limit),
        ("max_iters", max_iters),
        ("no_improve", no_improve),
    ):
        if value is not None and not value >= 0:
            raise DrhgError(f"{name} must be at least 0, not {value}")
    if isinstance(repair, str) and repair not in REPAIRS:
        raise DrhgError(f"unknown repair {repair!r}; known: {', '.join(REPAIRS)}")
    if repair == "neural" and (instance.is_cvrp or instance.metric is Metric.EXPLICIT):
        raise ModelError("the network in the box repairs tours of nodes with coordinates only")
    if time_limit is None and max_iters is None and no_improve is None and target is None:
        time_limit = DEFAULT_SECONDS
    limits = Limits(time_limit, max_iters, no_improve, target)
    board = _Board(instance, limits, on_improve)
    if threads is None:
        threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    threads = max(1, threads)

    if isinstance(init, Solution):
        start, unplaced = validated(instance, init), np.zeros(0, np.int64)
    else:
        start, unplaced = construct(instance, "space-filling", seed)
    board.offer(np.inf if len(unplaced) else float(cost(instance, start)), lambda: start)
    if _worth_searching(instance):
        search = (init, repair, destroy, accept or improve, seed, threads)
        worker = threading.Thread(target=_work, args=(board, *search), daemon=True)
        worker.start()
        _watch(board, should_stop)
    else:
        board.status = "target" if target is not None and board.cost <= target else "iterations"
    if board.error is not None:
        raise board.error
    return _result(board, seed, repair if isinstance(repair, str) else type(repair).__name__)


def _worth_searching(instance: Instance) -> bool:
    return instance.n > (2 if instance.is_cvrp else TRIVIAL)


def _watch(board: _Board, should_stop: Callable[[], bool] | None) -> None:
    """Wait for the worker, but no longer than limits and signals allow; never lose the best."""
    try:
        while not board.finished.wait(0.005):
            if should_stop is not None and should_stop():
                board.status = "interrupted"
                break
            if board.limits.time_limit is not None:
                left = board.limits.time_limit - (time.perf_counter() - board.began)
                if left <= 0:
                    board.status = board.status or "time"
                    break
    except KeyboardInterrupt:
        board.status = "interrupted"
    with board.lock:
        board.stop = True


def _result(board: _Board, seed: int, repair: str) -> Result:
    assert board.best is not None
    assert board.status is not None
    instance, solution = board.instance, board.best
    seconds = time.perf_counter() - board.began
    visited = np.zeros(instance.n, dtype=bool)
    for route in solution.routes:
        visited[route] = True
    if instance.is_cvrp:
        visited[instance.depot] = True
    unplaced = tuple(int(i) for i in np.flatnonzero(~visited))
    status = board.status
    if unplaced:
        status = "infeasible"
    elif found := check(instance, solution):
        raise AssertionError(f"the solver broke a rule, please report it: {found[:3]}")
    return Result(
        instance, solution, cost(instance, solution), status, seconds,
        board.iterations, seed, repair, tuple(board.trace), unplaced,
    )  # fmt: skip


def _work(board: _Board, *search: Any) -> None:
    """The worker: search until a limit is reached, leaving every improvement on the board."""
    try:
        for snapshot in _search(board, *search):
            if board.stop:
                return
            board.iterations += snapshot.iterations
            board.offer(snapshot.cost, snapshot.solution)
            status = board.limits(board.progress())
            if status is not None:
                board.status = board.status or status
                return
    except Exception as error:
        board.error = error
    finally:
        board.finished.set()


def _search(
    board: _Board,
    init: str | Solution,
    repair: str | Repair,
    destroy: Destroy | None,
    accept: Accept,
    seed: int,
    threads: int,
) -> Iterator[Snapshot]:
    """Build a better start, then run the search that the repairer belongs to."""
    from drhg import route_search, search
    from drhg.compiled import is_cold

    if is_cold():
        log.info("compiling for the first time, about 15 s; kept for later runs")

    instance = board.instance
    by_region = repair != "auto"
    if isinstance(init, Solution):
        start = init
    else:
        name = init if init != "auto" else _default_start(instance, by_region)
        start, unplaced = construct(instance, name, seed)
        known = np.inf if len(unplaced) else float(cost(instance, start))
        yield search.Snapshot(0, known, lambda: start)
    task = search.task_of(instance, start, seed, threads)
    pace = _Pace(board)
    max_iters = board.limits.max_iters

    def elapsed() -> float:
        return board.limits.elapsed(board.progress())

    if by_region and board.cost == np.inf:  # only the string search can place who is left out
        for snapshot in route_search.strings(task, elapsed, max_iters):
            yield snapshot
            if snapshot.cost < np.inf:
                break
        task = replace(task, start=snapshot.solution())
    if by_region:
        repairer = _repairer(repair, threads) if isinstance(repair, str) else repair
        cut = destroy or search.nearest_cluster()
        yield from search.regions(task, repairer, cut, accept, pace, elapsed)
    elif instance.is_cvrp:
        yield from route_search.strings(task, elapsed, max_iters)
    else:
        yield from search.kicks(task, pace)


def _repairer(name: str, threads: int) -> Repair:
    """The repairer of a name; `neural` is the network in the box, run without torch."""
    from drhg import neural, repair, weights

    if name == "neural":
        path, sha256 = weights.shipped("economy")
        model = neural.load_compiled(str(path), sha256=sha256, threads=threads)
        return neural.NeuralRepair(model)
    return repair.InsertionRepair() if name == "insertion" else repair.LocalSearchRepair()


def _default_start(instance: Instance, by_region: bool) -> str:
    """The paper's starts for its own loop, better ones for the compiled searches."""
    if instance.is_cvrp:
        return "sweep" if by_region and instance.xy is not None else "savings"
    return "insertion" if by_region else "greedy"


class _Pace:
    """How many iterations the next slice may have: about SLICE_SECONDS, and never too many."""

    def __init__(self, board: _Board) -> None:
        self.board = board
        self.size = 1
        self.last = (time.perf_counter(), board.iterations)

    def __call__(self) -> int:
        now, done = time.perf_counter(), self.board.iterations
        spent, iterations = now - self.last[0], done - self.last[1]
        if iterations > 0:
            rate = iterations / max(spent, 1e-6)
            self.size = int(max(1, min(2 * self.size, rate * SLICE_SECONDS)))
        self.last = (now, done)
        if self.board.limits.max_iters is not None:
            return max(1, min(self.size, self.board.limits.max_iters - done))
        return self.size

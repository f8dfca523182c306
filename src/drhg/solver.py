"""`solve`: from an instance to a checked solution, within limits, whatever happens on the way.

The first solution needs no compilation. Imports, compilation and the search run in a worker thread;
the calling thread watches limits and signals and always has a solution to return. The worker is no
daemon: Python waits for it at its end, because a compiler that is cut off there aborts the process.
"""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from drhg import weights
from drhg.construct import construct
from drhg.criteria import Accept, Limits, Progress, improve
from drhg.errors import DrhgError, ModelError
from drhg.problem import Cost, Instance, Metric, Solution, check, cost, validated

if TYPE_CHECKING:
    from drhg import neural
    from drhg.destroy import Destroy
    from drhg.neural import NeuralRepair
    from drhg.repair import Repair
    from drhg.search import Snapshot

log = logging.getLogger("drhg")

REPAIRS = ("auto", "local", "insertion", "library", "neural", "hybrid")
NETWORK = ("neural", "hybrid")  # those of them that use one
LIBRARY_K = 200, 800  # nodes destroyed for a solver from another package
ROUTES_K = 80, 160  # customers of whole routes for one
DESTROYS = ("auto", "cluster", "covering", "strings", "routes", "adaptive")
DEPOT_EDGES = ("adjacent", "touched", "all")
CENTRES = ("uniform", "grid")
DEVICES = ("auto", "cpu", "cuda")
DEFAULT_SECONDS = 10.0
SLICE_SECONDS = 0.03  # how long compiled code runs before Python looks
LOOKS = 4.0  # times as long as a look takes, at least
SHARE = 16  # of the iterations done, a slice has one in so many at most if no time is limited
GRID_ITERS = 1000  # the grid of centres has sqrt(T) cells per side; this is T without a limit
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
    status: str  # target, time, iterations, no_improve, interrupted, memory or infeasible
    seconds: float
    iterations: int
    seed: int
    repair: str
    trace: tuple[TracePoint, ...]
    unplaced: tuple[int, ...] = ()  # customers left out, if infeasible


OnImprove = Callable[[TracePoint, Solution], None]


@dataclass(frozen=True)
class RegionOptions:
    """Options of the region search: what is cut, which library, then those of the network."""

    k: tuple[int, int] | None = None
    centres: str = "uniform"
    destroy: str = "auto"
    depot_edges: str = "adjacent"
    library: str = "auto"
    model: str = "auto"
    alternatives: int = 1
    sample: bool = False
    device: str = "auto"

    def check(self, repair: str | Repair, destroy: Destroy | None) -> None:
        """Refuse what is wrong, and what the chosen search would not use."""
        if self.centres not in CENTRES:
            raise DrhgError(f"unknown centres {self.centres!r}; known: {', '.join(CENTRES)}")
        if self.destroy not in DESTROYS:
            raise DrhgError(f"unknown destroy {self.destroy!r}; known: {', '.join(DESTROYS)}")
        if self.depot_edges not in DEPOT_EDGES:
            known = ", ".join(DEPOT_EDGES)
            raise DrhgError(f"unknown depot-edges {self.depot_edges!r}; known: {known}")
        if self.device not in DEVICES:
            raise DrhgError(f"unknown device {self.device!r}; known: {', '.join(DEVICES)}")
        if self.alternatives < 1:
            raise DrhgError(f"alternatives must be at least 1, not {self.alternatives}")
        if self.k is not None and not 1 <= self.k[0] <= self.k[1]:
            raise DrhgError(f"k must be two numbers, 1 <= low <= high, not {self.k}")
        given = [f.name for f in fields(self) if getattr(self, f.name) != f.default]
        cuts = [name for name in given if name in ("k", "centres", "destroy", "depot_edges")]
        if cuts and destroy is not None:
            raise DrhgError(f"{cuts[0]} is for the built-in destroy, and one is given")
        if cuts and repair == "auto":
            raise DrhgError(f"{cuts[0]} is for a search by regions: name a repair other than auto")
        if self.centres == "grid" and self.destroy not in ("auto", "cluster"):
            raise DrhgError(f"centres is for destroy 'cluster', not {self.destroy!r}")
        if self.library != "auto" and repair != "library":
            raise DrhgError("library is for repair 'library' only")
        if set(given) - {*cuts, "library"} and repair not in NETWORK:
            name = next(name for name in given if name not in (*cuts, "library"))
            raise DrhgError(f"{name} is for repair 'neural' and 'hybrid' only")


class _Board:
    """Where the worker leaves its best and reads that it should stop."""

    def __init__(self, instance: Instance, limits: Limits, on_improve: OnImprove | None) -> None:
        self.began = time.perf_counter()
        self.instance, self.limits, self.on_improve = instance, limits, on_improve
        self.best: Solution | None = None
        self.cost: float = np.inf  # of the best; inf while customers are left out
        self.trace: list[TracePoint] = []
        self.iterations = self.improved_at = 0
        self.telling = 0.0  # seconds spent on looking at what the search has
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
    destroy: str | Destroy = "auto",
    accept: Accept | None = None,
    k: tuple[int, int] | None = None,
    centres: str = "uniform",
    depot_edges: str = "adjacent",
    library: str = "auto",
    model: str = "auto",
    alternatives: int = 1,
    sample: bool = False,
    device: str = "auto",
    on_improve: OnImprove | None = None,
    should_stop: Callable[[], bool] | None = None,
    threads: int | None = None,
) -> Result:
    """Solve an instance; without any limit for ten seconds.

    `repair` is a name (see `REPAIRS`) or any callable that reconnects reduced graphs; any but
    `auto` runs the region search, whose parts `destroy` and `accept` may be replaced. `k` is the
    range of destroyed nodes (by default the model card's, or 20 to 100), `centres` where they are:
    around a random node (`uniform`) or the paper's `grid`. `destroy` may also be a name (see
    `DESTROYS`), of routes `depot_edges` says which go beside those of destroyed customers. With
    repair `library` a `library` may be named. With repair `neural`: `model` is a name
    in the box or a file, `sample` draws decisions instead of taking the best, and the shortest of
    so many `alternatives` counts as one iteration.

    The same seed, threads and `max_iters` give the same solution, and without a time limit the
    same trace but for its seconds. `on_improve` is called from a worker thread.

    >>> import drhg
    >>> drhg.solve(drhg.tsp([[0, 0], [0, 1], [1, 1], [1, 0]]), max_iters=10).cost
    4.0
    """
    limits = _limits(time_limit, max_iters, no_improve, target)
    named, own = (destroy, None) if isinstance(destroy, str) else ("auto", destroy)
    options = RegionOptions(
        k, centres, named, depot_edges, library, model, alternatives, sample, device
    )
    _check([instance], repair, own, options)
    board = _Board(instance, limits, on_improve)
    threads = _threads(threads)
    _begin(board, init, seed)
    if _worth_searching(instance):
        search = (init, repair, own, accept or improve, options, seed, threads)
        threading.Thread(target=_work, args=(board, *search)).start()
        _watch([board], should_stop)
    else:
        board.status = "target" if target is not None and board.cost <= target else "iterations"
    if board.error is not None:
        raise board.error
    return _result(board, seed, repair if isinstance(repair, str) else type(repair).__name__)


def solve_many(
    instances: Sequence[Instance],
    *,
    time_limit: float | None = None,
    max_iters: int | None = None,
    no_improve: int | None = None,
    target: float | None = None,
    seed: int = 0,
    init: str = "auto",
    repair: str | NeuralRepair = "neural",
    destroy: str = "auto",
    accept: Accept | None = None,
    k: tuple[int, int] | None = None,
    centres: str = "uniform",
    depot_edges: str = "adjacent",
    model: str = "auto",
    alternatives: int = 1,
    sample: bool = False,
    device: str = "auto",
    on_improve: Callable[[int, TracePoint, Solution], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
    threads: int | None = None,
) -> list[Result]:
    """Solve several instances side by side with the network, one batch per iteration.

    The arguments are those of `solve`; limits are per instance, and time passes for all at once.
    Each instance takes the steps that `solve` would take (unless decisions are sampled).
    `on_improve` is told which instance it is about, counted from 0.

    >>> import drhg
    >>> found = drhg.solve_many([drhg.uniform_tsp(20, seed=s) for s in range(3)], max_iters=5)
    >>> [result.iterations for result in found]
    [5, 5, 5]
    """
    limits = _limits(time_limit, max_iters, no_improve, target)
    options = RegionOptions(
        k, centres, destroy, depot_edges, "auto", model, alternatives, sample, device
    )
    if repair == "auto" or (repair in REPAIRS and repair != "neural"):
        raise DrhgError("several instances as one batch need repair 'neural'")
    _check(instances, repair, None, options)
    if len({instance.is_cvrp for instance in instances}) > 1:
        raise DrhgError("one batch is of one problem: tours and routes do not mix")
    boards = []
    for i, instance in enumerate(instances):
        tell = None if on_improve is None else partial(on_improve, i)
        boards.append(_Board(instance, limits, tell))
        _begin(boards[-1], init, seed)
        if not _worth_searching(instance):
            boards[-1].status = limits(boards[-1].progress()) or "iterations"
    live = [board for board in boards if board.status is None]
    if live:
        search = (init, repair, accept or improve, options, seed, _threads(threads))
        threading.Thread(target=_work_together, args=(live, *search)).start()
        _watch(live, should_stop)
        if live[0].error is not None:
            raise live[0].error
    name = repair if isinstance(repair, str) else type(repair).__name__
    return [_result(board, seed, name) for board in boards]


def _limits(
    time_limit: float | None, max_iters: int | None, no_improve: int | None, target: float | None
) -> Limits:
    for name, value in (
        ("time_limit", time_limit),
        ("max_iters", max_iters),
        ("no_improve", no_improve),
    ):
        if value is not None and not value >= 0:
            raise DrhgError(f"{name} must be at least 0, not {value}")
    if target is not None and math.isnan(target):
        raise DrhgError("nan is not a cost to reach (target)")
    if time_limit is None and max_iters is None and no_improve is None and target is None:
        time_limit = DEFAULT_SECONDS
    return Limits(time_limit, max_iters, no_improve, target)


def _check(
    instances: Sequence[Instance],
    repair: str | Repair,
    destroy: Destroy | None,
    options: RegionOptions,
) -> None:
    """Refuse what cannot work before any time is spent on it."""
    if isinstance(repair, str) and repair not in REPAIRS:
        raise DrhgError(f"unknown repair {repair!r}; known: {', '.join(REPAIRS)}")
    options.check(repair, destroy)
    if not all(i.is_cvrp for i in instances):
        if options.destroy not in ("auto", "cluster", "covering"):
            raise DrhgError(f"destroy {options.destroy!r} is for routes")
        if options.depot_edges != "adjacent":
            raise DrhgError("depot_edges is for routes")
    if repair in NETWORK:
        found = None if options.model == "auto" else weights.load(options.model)
        for instance in instances:
            if instance.metric is Metric.EXPLICIT:
                raise ModelError("a network needs coordinates; this instance is a bare matrix")
            if found is None:
                weights.fitting(instance.n, instance.is_cvrp)
            elif found.config.routes != instance.is_cvrp:
                kind = "routes (CVRP)" if found.config.routes else "tours (TSP)"
                raise ModelError(f"these weights repair {kind} only", file=found.name)
    if options.centres == "grid" and not all(i.metric.planar for i in instances):
        raise DrhgError("a grid of centres needs coordinates of the plane")


def _threads(wanted: int | None) -> int:
    if wanted is None:
        wanted = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    return max(1, wanted)


def _begin(board: _Board, init: str | Solution, seed: int) -> None:
    """Something to return from the first moment on: the given start, or a space-filling curve."""
    if isinstance(init, Solution):
        start, unplaced = validated(board.instance, init), np.zeros(0, np.int64)
    else:
        start, unplaced = construct(board.instance, "space-filling", seed)
    known = np.inf if len(unplaced) else float(cost(board.instance, start))
    board.offer(known, lambda: start)


def _worth_searching(instance: Instance) -> bool:
    return instance.n > (2 if instance.is_cvrp else TRIVIAL)


def _watch(boards: Sequence[_Board], should_stop: Callable[[], bool] | None) -> None:
    """Wait for the worker, but no longer than limits and signals allow; never lose the best."""
    status, first = "", boards[0]  # one worker, one clock
    try:
        while not first.finished.wait(0.005):
            if should_stop is not None and should_stop():
                status = "interrupted"
                break
            if first.limits.time_limit is not None:
                left = first.limits.time_limit - (time.perf_counter() - first.began)
                if left <= 0:
                    status = "time"
                    break
    except KeyboardInterrupt:
        status = "interrupted"
    finally:
        for board in boards:
            with board.lock:
                board.stop = True
                if status == "interrupted" or board.status is None:
                    board.status = status or None


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
            began = time.perf_counter()
            board.offer(snapshot.cost, snapshot.solution)
            board.telling += time.perf_counter() - began
            status = board.limits(board.progress())
            if status is not None:
                board.status = board.status or status
                return
    except MemoryError:
        _out_of_memory([board])
    except Exception as error:
        board.error = error
    finally:
        board.finished.set()


def _work_together(boards: Sequence[_Board], *search: Any) -> None:
    """The worker of several instances: an instance that reached a limit leaves the batch."""
    try:
        for snapshots in _search_together(boards, *search):
            for i, snapshot in snapshots:
                board = boards[i]
                if board.stop:
                    return
                board.iterations += snapshot.iterations
                board.offer(snapshot.cost, snapshot.solution)
                board.status = board.status or board.limits(board.progress())
    except MemoryError:
        _out_of_memory(boards)
    except Exception as error:
        boards[0].error = error
    finally:
        boards[0].finished.set()


def _out_of_memory(boards: Sequence[_Board]) -> None:
    log.warning("out of memory: this is the best so far")
    for board in boards:
        board.status = board.status or "memory"


def _search_together(
    boards: Sequence[_Board],
    init: str,
    repair: str | NeuralRepair,
    accept: Accept,
    options: RegionOptions,
    seed: int,
    threads: int,
) -> Iterator[list[tuple[int, Snapshot]]]:
    from drhg import search

    _say_if_cold()
    tasks = []
    for i, board in enumerate(boards):
        start, snapshot = _started(board.instance, init, seed, True)
        yield [(i, snapshot)]
        tasks.append(search.task_of(board.instance, start, seed, threads))
    largest = max((board.instance for board in boards), key=lambda instance: instance.n)
    repairer, k = _repairer(repair, largest, options, threads)

    def elapsed() -> float:
        return boards[0].limits.elapsed(boards[0].progress())

    def running() -> list[int]:
        return [i for i, board in enumerate(boards) if board.status is None]

    cut = _destroy(options, repair, largest.is_cvrp, k, boards[0].limits)
    yield from search.regions_together(tasks, repairer, cut, accept, elapsed, running)


def _search(
    board: _Board,
    init: str | Solution,
    repair: str | Repair,
    destroy: Destroy | None,
    accept: Accept,
    options: RegionOptions,
    seed: int,
    threads: int,
) -> Iterator[Snapshot]:
    """Build a better start, then run the search that the repairer belongs to."""
    from drhg import route_search, search

    _say_if_cold()
    instance = board.instance
    by_region = repair != "auto"
    if isinstance(init, Solution):
        start = init
    else:
        start, snapshot = _started(instance, init, seed, by_region)
        yield snapshot
    task = search.task_of(instance, start, seed, threads)
    pace = _Pace(board)
    max_iters = board.limits.max_iters

    def elapsed() -> float:
        return board.limits.elapsed(board.progress())

    if by_region and board.cost == np.inf:  # only the string search can place who is left out
        for snapshot in route_search.routes(task, elapsed, max_iters):
            yield snapshot
            if snapshot.cost < np.inf:
                break
        task = replace(task, start=snapshot.solution())
    if by_region:
        repairer, k = _repairer(repair, instance, options, threads)
        cut = destroy or _destroy(options, repair, instance.is_cvrp, k, board.limits)
        yield from search.regions(task, repairer, cut, accept, pace, elapsed)
    elif instance.is_cvrp:
        yield from route_search.routes(task, elapsed, max_iters)
    else:
        yield from search.tours(task, pace, elapsed)


def _say_if_cold() -> None:
    from drhg.compiled import is_cold

    if is_cold():
        log.info("compiling for the first time, about 15 s; kept for later runs")


def _started(
    instance: Instance, init: str, seed: int, by_region: bool
) -> tuple[Solution, Snapshot]:
    """The start of a name, and what to put on the board."""
    from drhg.search import Snapshot

    name = init if init != "auto" else _default_start(instance, by_region)
    start, unplaced = construct(instance, name, seed)
    known = np.inf if len(unplaced) else float(cost(instance, start))
    return start, Snapshot(0, known, lambda: start)


def _repairer(
    repair: str | Repair, instance: Instance, options: RegionOptions, threads: int
) -> tuple[Any, tuple[int, int]]:
    """The repairer of a name, and how many nodes to destroy for it."""
    from drhg import neural
    from drhg.library import LibraryRepair, Polished, usual
    from drhg.repair import InsertionRepair, LocalSearchRepair

    if repair == "library":
        name = usual(instance.is_cvrp) if options.library == "auto" else options.library
        return LibraryRepair(name, threads=threads), ROUTES_K if instance.is_cvrp else LIBRARY_K
    if repair == "hybrid":
        network, k = _repairer("neural", instance, options, threads)
        return Polished(network, LocalSearchRepair()), k
    if repair == "neural":
        name = options.model
        if name == "auto":
            name = weights.fitting(instance.n, instance.is_cvrp)
        found = weights.load(name)
        model = _network(found, options.device, threads)
        greedy, times = not options.sample, options.alternatives
        repairer = neural.NeuralRepair(model, greedy=greedy, alternatives=times)
        return neural.Guarded(repairer, LocalSearchRepair()), found.k
    known: dict[Any, Any] = {"insertion": InsertionRepair, "local": LocalSearchRepair}
    return known[repair]() if isinstance(repair, str) else repair, weights.K


def _network(found: weights.Weights, device: str, threads: int) -> neural.Scorer:
    """Compiled code where there is some, which needs no torch; else torch, on the device asked."""
    from drhg import neural

    network = None if device == "cuda" else neural.compiled(found.config, found.tensors, threads)
    if network is not None:
        return network
    try:
        from drhg import model
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "torch":
            raise
        raise ModelError(
            "these weights, on this device, need torch: pip install 'drhg[neural]'",
            file=str(found.path),
        ) from None
    return model.filled(found.config, found.tensors, device, threads)


def _destroy(
    options: RegionOptions, repair: str | Repair, routes: bool, k: tuple[int, int], limits: Limits
) -> Destroy:
    """The destroy of a name; by default the paper's, k nodes around a centre.

    A library is slow: of routes it gets whole ones, of a tour what was left alone for longest.
    """
    from drhg import destroy

    name, low_high, edges = options.destroy, options.k or k, options.depot_edges
    if name == "auto":
        name = "cluster"
        if repair == "library" and options.centres == "uniform":
            name = "routes" if routes else "covering"
    side = 0
    if options.centres == "grid":
        side = max(1, round(math.sqrt(limits.max_iters or GRID_ITERS)))
    cluster = destroy.nearest_cluster(*low_high, depot_edges=edges, grid=side)
    if name == "cluster":
        return cluster
    if name == "covering":
        return destroy.Covering(*low_high, depot_edges=edges)
    strings = destroy.adjacent_strings(*low_high, depot_edges=edges)
    whole = destroy.neighbouring_routes(*low_high)
    known: dict[str, Destroy] = {"strings": strings, "routes": whole}
    return destroy.adaptive(cluster, strings, whole) if name == "adaptive" else known[name]


def _default_start(instance: Instance, by_region: bool) -> str:
    """The paper's starts for its own loop, better ones for the compiled searches."""
    if instance.is_cvrp:
        return "sweep" if by_region and instance.xy is not None else "savings"
    return "insertion" if by_region else "greedy"


class _Pace:
    """How many iterations the next slice may have: never more than can be left.

    With a time limit it lasts about SLICE_SECONDS, and longer than looking at a solution, which
    takes time in proportion to its size. Without one nothing looks at the clock, so that traces
    repeat: a slice is what the search calls a moment, or less in the beginning, for repairs are
    of any speed.
    """

    def __init__(self, board: _Board) -> None:
        self.board = board
        self.size = 1
        self.last = (time.perf_counter(), board.iterations, board.telling)

    def __call__(self, moment: int) -> int:
        if self.board.limits.time_limit is not None:
            self._measure()
        else:
            self.size = max(1, min(moment, self.board.iterations // SHARE))
        left = self.board.limits.left(self.board.progress())
        return self.size if left is None else max(1, min(self.size, left))

    def _measure(self) -> None:
        present = (time.perf_counter(), self.board.iterations, self.board.telling)
        spent, iterations, telling = (a - b for a, b in zip(present, self.last, strict=True))
        if iterations > 0:
            rate = iterations / max(spent - telling, 1e-6)
            wanted = rate * max(SLICE_SECONDS, LOOKS * telling)
            self.size = int(max(1, min(2 * self.size, wanted)))
        self.last = present

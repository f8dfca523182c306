"""`solve`: from an instance to a checked solution, within limits, whatever happens on the way.

The first solution needs no compilation. Imports, kernels and the search belong to a worker thread;
the calling thread watches limits and signals and always has a solution to return. The clock of a
time limit starts when the kernels are ready. The worker is no daemon: Python waits for it at its
end, because a compiler that is cut off there aborts the process.
"""

from __future__ import annotations

import json
import logging
import math
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from drhg import methods, precompile
from drhg.construct import construct, starts_for
from drhg.criteria import Accept, Limits, Progress, improve
from drhg.errors import DrhgError, SolutionError
from drhg.io import PathLike, solution_row
from drhg.methods import RegionOptions
from drhg.problem import (
    Cost,
    Instance,
    Solution,
    an_instance,
    check,
    cost,
    shown,
    validated,
    whole_number,
)
from drhg.workers import cores

if TYPE_CHECKING:
    from drhg.destroy import Destroy
    from drhg.neural import NeuralRepair
    from drhg.repair import Repair
    from drhg.search import Snapshot

log = logging.getLogger("drhg")

DEFAULT_SECONDS = 10.0
SLICE_SECONDS = 0.03  # how long compiled code runs before Python looks
LOOKS = 4.0  # times as long as a look takes, at least
SHARE = 16  # of the iterations done, a slice has one in so many at most if no time is limited
TRIVIAL = 3  # tours of so many nodes are all the same
HEARTBEAT = 0.5  # seconds between two calls of `on_progress`
GRACE = 0.2  # seconds that callbacks have after the end for what they have not been told yet


@dataclass(frozen=True)
class TracePoint:
    """When a new best was found."""

    seconds: float  # since the clock started, which is when the kernels were ready
    iterations: int
    cost: Cost


@dataclass(frozen=True)
class Result:
    """What `solve` returns.

    The solution has passed the checker, unless the status is `infeasible` or `no_search`: then
    customers are left out. `no_search` says that there was no search that could have placed them.

    >>> import drhg
    >>> drhg.solve(drhg.tsp([[0, 0], [0, 1], [1, 0]], name="three"), max_iters=9).summary()
    'three: cost 3.41421, 3 nodes, 0.0 s, 0 iterations, ended by iterations'
    """

    instance: Instance
    solution: Solution
    cost: Cost
    status: str  # target, time, iterations, no_improve, interrupted, memory, infeasible, no_search
    seconds: float  # of the search, from the moment when the kernels were ready
    iterations: int
    seed: int
    repair: str
    trace: tuple[TracePoint, ...]
    unplaced: tuple[int, ...] = ()  # customers left out, counted from 0
    compile_seconds: float = 0.0  # before the search: loading kernels, or compiling them
    warnings: tuple[str, ...] = ()  # what a reader of the result should know

    def to_dict(self, file: PathLike | None = None) -> dict[str, Any]:
        """Everything but the trace, as the command line prints it; `file` is the instance's."""
        row = solution_row(self.instance, self.solution, self.cost, file=file)
        return row | {
            "status": self.status,
            "seconds": round(self.seconds, 3),
            "compile_seconds": round(self.compile_seconds, 3),
            "iterations": self.iterations,
            "seed": self.seed,
            "method": self.repair,
            "unplaced": list(self.unplaced),
            "warnings": list(self.warnings),
        }

    def to_json(self, file: PathLike | None = None) -> str:
        """`to_dict` as one line of JSON, which `drhg check`, `plot` and `solve -i` can read."""
        return json.dumps(self.to_dict(file))

    def summary(self) -> str:
        """One line for people."""
        routes = f"{len(self.solution.routes)} routes, " if self.instance.is_cvrp else ""
        left = f", {len(self.unplaced)} customers left out" if self.unplaced else ""
        shown = f"{self.cost:,}" if isinstance(self.cost, int) else f"{self.cost:g}"
        return (
            f"{self.instance.name}: cost {shown}, {routes}{self.instance.n:,} nodes, "
            f"{self.seconds:.1f} s, {self.iterations:,} iterations, ended by {self.status}{left}"
        )


OnImprove = Callable[[TracePoint, Solution], None]
OnProgress = Callable[[Progress], None]


class Incumbent:
    """The best solution so far: where the worker leaves it and reads that it should stop."""

    def __init__(self, instance: Instance, limits: Limits) -> None:
        self.called = time.perf_counter()
        self.clock: float | None = None  # when the kernels were ready
        self.instance, self.limits = instance, limits
        self.best: Solution | None = None
        self.cost: float = np.inf  # of the best; inf while customers are left out
        self.trace: list[TracePoint] = []
        self.iterations = self.improved_at = 0
        self.looking = 0.0  # seconds spent on looking at what the search has
        self.status: str | None = None
        self.error: BaseException | None = None
        self.warnings: list[str] = []
        self.stop = False  # set under the lock: nothing is offered after it
        self.lock = threading.Lock()
        self.finished = threading.Event()
        self.callbacks: _Callbacks | None = None

    def start_clock(self) -> None:
        self.clock = time.perf_counter()

    @property
    def seconds(self) -> float:
        return 0.0 if self.clock is None else time.perf_counter() - self.clock

    def progress(self) -> Progress:
        since = self.iterations - self.improved_at
        return Progress(self.seconds, self.iterations, since, self.cost)

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
                self.trace.append(TracePoint(self.seconds, self.iterations, exact))
                if self.callbacks is not None:
                    self.callbacks.queue.put((self.trace[-1], best))


class _Callbacks:
    """Calls the user's functions from a thread of their own, so that they never delay a limit."""

    def __init__(
        self, incumbent: Incumbent, on_improve: OnImprove | None, on_progress: OnProgress | None
    ) -> None:
        self.queue: queue.SimpleQueue[tuple[TracePoint, Solution] | None] = queue.SimpleQueue()
        self._incumbent, self._on_improve, self._on_progress = incumbent, on_improve, on_progress
        self._closed = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        beat = time.monotonic() + HEARTBEAT
        try:
            while True:
                try:
                    news = self.queue.get(timeout=max(0.0, beat - time.monotonic()))
                except queue.Empty:
                    beat += HEARTBEAT
                    if self._on_progress is not None and not self._closed:
                        self._on_progress(self._incumbent.progress())
                    continue
                if news is None or self._closed:
                    return
                if self._on_improve is not None:
                    self._on_improve(*news)
        except BaseException as error:
            self._incumbent.error = error

    def close(self) -> None:
        """Tell what is still to be told if that is quick, and nothing later."""
        self.queue.put(None)
        self._thread.join(GRACE)
        self._closed = True


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
    model: str | os.PathLike[str] = "auto",
    alternatives: int = 1,
    sample: bool = False,
    device: str = "auto",
    on_improve: OnImprove | None = None,
    on_progress: OnProgress | None = None,
    should_stop: Callable[[], bool] | None = None,
    threads: int | None = None,
) -> Result:
    """Solve an instance; without any limit for ten seconds.

    The clock of `time_limit` starts when the kernels that the search needs are loaded. The first
    call ever compiles them, which takes some seconds; `drhg.warmup` does it ahead of time, and
    `Result.compile_seconds` says how long it took.

    `repair` is a name (see `drhg.methods.REPAIRS`) or any callable that reconnects reduced graphs;
    any but `auto` runs the region search, whose parts `destroy` and `accept` may be replaced. `k`
    is the range of destroyed nodes (by default the model card's, or 20 to 100), `centres` where
    they are: around a random node (`uniform`) or the paper's `grid`. `destroy` may also be a name
    (see `drhg.methods.DESTROYS`), of routes `depot_edges` says which go beside those of destroyed
    customers. With repair `library` a `library` may be named. With repair `neural`: `model` is a
    name in the box or a file, `sample` draws decisions instead of taking the best, and the shortest
    of so many `alternatives` counts as one iteration.

    The same seed, threads and `max_iters` give the same solution, and without a time limit the
    same trace but for its seconds. `on_improve` is called for every new best, `on_progress` every
    half second, both from a thread of their own: however long they take, the search ends in time.

    >>> import drhg
    >>> drhg.solve(drhg.tsp([[0, 0], [0, 1], [1, 1], [1, 0]]), max_iters=10).cost
    4.0
    """
    an_instance(instance)
    limits = _limits(time_limit, max_iters, no_improve, target)
    model = os.fspath(model) if isinstance(model, os.PathLike) else model
    named, own = (destroy, None) if isinstance(destroy, str) else ("auto", destroy)
    options = RegionOptions(
        k, centres, named, depot_edges, library, model, alternatives, sample, device
    )
    seed, threads = whole_number("seed", seed, 0), _threads(threads)
    _check_calls(
        destroy=own, accept=accept, on_improve=on_improve, on_progress=on_progress,
        should_stop=should_stop,
    )  # fmt: skip
    _check_start(instance, init)
    methods.refuse_nonsense([instance], repair, own, options)
    incumbent = Incumbent(instance, limits)
    if on_improve is not None or on_progress is not None:
        incumbent.callbacks = _Callbacks(incumbent, on_improve, on_progress)
    try:
        _begin(incumbent, init, seed)
        if _worth_searching(incumbent):
            search = (init, repair, own, accept or improve, options, seed, threads)
            threading.Thread(target=_work, args=(incumbent, *search)).start()
            _watch([incumbent], should_stop)
    finally:
        if incumbent.callbacks is not None:
            incumbent.callbacks.close()
    if incumbent.error is not None:
        raise incumbent.error
    return _result(incumbent, seed, _name_of(repair))


def solve_many(
    instances: Sequence[Instance],
    *,
    time_limit: float | None = None,
    max_iters: int | None = None,
    no_improve: int | None = None,
    target: float | None = None,
    seed: int = 0,
    init: str = "auto",
    repair: str | Repair = "auto",
    destroy: str = "auto",
    accept: Accept | None = None,
    k: tuple[int, int] | None = None,
    centres: str = "uniform",
    depot_edges: str = "adjacent",
    model: str | os.PathLike[str] = "auto",
    alternatives: int = 1,
    sample: bool = False,
    device: str = "auto",
    on_improve: Callable[[int, TracePoint, Solution], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
    threads: int | None = None,
) -> list[Result]:
    """Solve several instances side by side, each on one of the threads (by default all cores).

    The arguments are those of `solve`, limits are per instance, and each result is what `solve`
    finds with `threads=1`. With repair `neural` all instances go on together instead, as one batch
    per iteration for the network: time passes for all at once, and each still takes the steps that
    it would take alone (unless decisions are sampled). `on_improve` is also told which instance it
    is about, counted from 0.

    >>> import drhg
    >>> found = drhg.solve_many([drhg.uniform_tsp(20, seed=s) for s in range(3)], max_iters=5)
    >>> [result.iterations for result in found]
    [5, 5, 5]
    """
    try:
        instances = list(instances)
    except TypeError:
        raise DrhgError(f"instances must be a list of them, not {shown(instances)}") from None
    for i, instance in enumerate(instances):
        an_instance(instance, f"instances[{i}]")
        _check_start(instance, init)
    limits = _limits(time_limit, max_iters, no_improve, target)
    seed, threads = whole_number("seed", seed, 0), _threads(threads)
    _check_calls(accept=accept, on_improve=on_improve, should_stop=should_stop)
    model = os.fspath(model) if isinstance(model, os.PathLike) else model
    options = RegionOptions(
        k, centres, destroy, depot_edges, "auto", model, alternatives, sample, device
    )
    methods.refuse_nonsense(instances, repair, None, options)
    if repair == "neural" or hasattr(repair, "together"):
        if len({instance.is_cvrp for instance in instances}) > 1:
            raise DrhgError("instances: tours and routes do not mix in one batch")
        how = (init, repair, accept or improve, options, seed, threads)
        return _solve_batch(instances, limits, on_improve, should_stop, how)
    given = {
        "time_limit": time_limit, "max_iters": max_iters, "no_improve": no_improve,
        "target": target, "seed": seed, "init": init, "repair": repair, "destroy": destroy,
        "accept": accept, "k": k, "centres": centres, "depot_edges": depot_edges, "model": model,
        "alternatives": alternatives, "sample": sample, "device": device,
    }  # fmt: skip
    return _solve_side_by_side(instances, given, on_improve, should_stop, threads)


def _solve_side_by_side(
    instances: Sequence[Instance],
    given: dict[str, Any],
    on_improve: Callable[[int, TracePoint, Solution], None] | None,
    should_stop: Callable[[], bool] | None,
    threads: int,
) -> list[Result]:
    """Every thread solves one instance after the other."""
    stopping = threading.Event()

    def one(i: int) -> Result:
        tell = None if on_improve is None else partial(on_improve, i)
        return solve(instances[i], threads=1, on_improve=tell, should_stop=stopping.is_set, **given)

    with ThreadPoolExecutor(threads) as pool:
        jobs = [pool.submit(one, i) for i in range(len(instances))]
        try:
            while not all(job.done() for job in jobs):
                time.sleep(0.005)
                if should_stop is not None and should_stop():
                    stopping.set()
        except KeyboardInterrupt:
            stopping.set()
        return [job.result() for job in jobs]


def _solve_batch(
    instances: Sequence[Instance],
    limits: Limits,
    on_improve: Callable[[int, TracePoint, Solution], None] | None,
    should_stop: Callable[[], bool] | None,
    how: tuple[str, str | Repair, Accept, RegionOptions, int, int],
) -> list[Result]:
    """All instances together, one batch per iteration for the network."""
    init, repair, _, _, seed, _ = how
    incumbents = []
    try:
        for i, instance in enumerate(instances):
            incumbent = Incumbent(instance, limits)
            incumbents.append(incumbent)
            if on_improve is not None:
                incumbent.callbacks = _Callbacks(incumbent, partial(on_improve, i), None)
            _begin(incumbent, init, seed)
        live = [incumbent for incumbent in incumbents if _worth_searching(incumbent)]
        if live:
            threading.Thread(target=_work_together, args=(live, *how)).start()
            _watch(live, should_stop)
    finally:
        for incumbent in incumbents:
            if incumbent.callbacks is not None:
                incumbent.callbacks.close()
    for incumbent in incumbents:
        if incumbent.error is not None:
            raise incumbent.error
    return [_result(incumbent, seed, _name_of(repair)) for incumbent in incumbents]


# --- arguments ----------------------------------------------------------------------------------


def _limits(
    time_limit: float | None, max_iters: int | None, no_improve: int | None, target: float | None
) -> Limits:
    time_limit, target = _number("time_limit", time_limit), _number("target", target)
    if time_limit is not None and time_limit < 0:
        raise DrhgError(f"time_limit must be at least 0, not {time_limit}")
    if max_iters is not None:
        max_iters = whole_number("max_iters", max_iters, 0)
    if no_improve is not None:
        no_improve = whole_number("no_improve", no_improve, 0)
    if time_limit is None and max_iters is None and no_improve is None and target is None:
        time_limit = DEFAULT_SECONDS
    return Limits(time_limit, max_iters, no_improve, target)


def _number(name: str, given: Any) -> float | None:
    """The argument as a float, which may be infinite, or an error that names it."""
    if given is None:
        return None
    is_real = isinstance(given, Real) and not isinstance(given, bool)
    try:
        number = float(given) if is_real else math.nan
    except OverflowError:
        number = math.nan
    if math.isnan(number):
        raise DrhgError(f"{name} must be a number, not {shown(given)}")
    return number


def _threads(wanted: int | None) -> int:
    return cores() if wanted is None else whole_number("threads", wanted, 1)


def _check_calls(**functions: Any) -> None:
    for name, function in functions.items():
        if function is not None and not callable(function):
            raise DrhgError(f"{name} must be a function, not {shown(function)}")


def _check_start(instance: Instance, init: str | Solution) -> None:
    if isinstance(init, Solution):
        try:
            validated(instance, init)
        except SolutionError as error:
            raise SolutionError(f"init is no solution of {instance.name}: {error.reason}") from None
        return
    if not isinstance(init, str):
        raise DrhgError(
            f"init must be the name of a start or a Solution, such as drhg.Solution([[0, 2, 1]]), "
            f"not {shown(init)}"
        )
    known = ["auto", *starts_for(instance)]
    if init not in known:
        raise DrhgError(f"init: {init!r} is no start of {instance.name}; known: {', '.join(known)}")


def _name_of(repair: str | Repair) -> str:
    return repair if isinstance(repair, str) else type(repair).__name__


# --- the calling thread -------------------------------------------------------------------------


def _begin(incumbent: Incumbent, init: str | Solution, seed: int) -> None:
    """Something to return from the first moment on: the given start, or a space-filling curve."""
    if isinstance(init, Solution):
        start, unplaced = init, np.zeros(0, np.int64)
    else:
        start, unplaced = construct(incumbent.instance, "space-filling", seed)
    known = np.inf if len(unplaced) else float(cost(incumbent.instance, start))
    incumbent.offer(known, lambda: start)


def _worth_searching(incumbent: Incumbent) -> bool:
    """Whether there is anything to find and time to find it; if not, the status says why."""
    instance, limits = incumbent.instance, incumbent.limits
    if limits.time_limit == 0:
        incumbent.status = limits(incumbent.progress()) or "time"
    elif instance.n <= (2 if instance.is_cvrp else TRIVIAL):
        incumbent.status = limits(incumbent.progress()) or "iterations"
    return incumbent.status is None


def _watch(incumbents: Sequence[Incumbent], should_stop: Callable[[], bool] | None) -> None:
    """Wait for the worker, but no longer than limits and signals allow; never lose the best."""
    status, first = "", incumbents[0]  # one worker, one clock
    limit = first.limits.time_limit
    try:
        while not first.finished.wait(0.005):
            if should_stop is not None and should_stop():
                status = "interrupted"
                break
            if limit is not None and first.seconds >= limit:
                status = "time"
                break
            if any(incumbent.error is not None for incumbent in incumbents):
                break
    except KeyboardInterrupt:
        status = "interrupted"
    finally:
        for incumbent in incumbents:
            with incumbent.lock:
                incumbent.stop = True
                if status == "interrupted" or incumbent.status is None:
                    incumbent.status = status or None


def _result(incumbent: Incumbent, seed: int, repair: str) -> Result:
    assert incumbent.best is not None
    assert incumbent.status is not None
    instance, solution = incumbent.instance, incumbent.best
    started = time.perf_counter() if incumbent.clock is None else incumbent.clock
    visited = np.zeros(instance.n, dtype=bool)
    for route in solution.routes:
        visited[route] = True
    if instance.is_cvrp:
        visited[instance.depot] = True
    unplaced = tuple(int(i) for i in np.flatnonzero(~visited))
    status, warnings = incumbent.status, list(incumbent.warnings)
    if unplaced:
        status = "infeasible" if incumbent.iterations > 0 else "no_search"
    elif found := check(instance, solution):
        raise AssertionError(f"the solver broke a rule, please report it: {found[:3]}")
    if incumbent.iterations == 0 and instance.n > TRIVIAL and status != "target":
        why = {
            "time": "the time limit was over before the first iteration ended",
            "iterations": "no iterations were allowed",
            "interrupted": "it was interrupted before",
        }.get(incumbent.status, incumbent.status)
        warnings.append(f"no search took place ({why}): this is only a first solution")
    return Result(
        instance, solution, cost(instance, solution), status, incumbent.seconds,
        incumbent.iterations, seed, repair, tuple(incumbent.trace), unplaced,
        started - incumbent.called, tuple(warnings),
    )  # fmt: skip


# --- the worker ---------------------------------------------------------------------------------


def _prepare(incumbents: Sequence[Incumbent], parts: Sequence[precompile.Part]) -> None:
    """Load the kernels, then start the clock."""

    def stopped() -> bool:
        return all(incumbent.stop for incumbent in incumbents)

    failure = precompile.prepare(parts, stopped)
    for incumbent in incumbents:
        if failure is not None and not stopped():
            incumbent.warnings.append(f"{failure}; part of the search's time went to that")
        incumbent.start_clock()


def _work(incumbent: Incumbent, *search: Any) -> None:
    """The worker: search until a limit is reached, leaving every improvement with the incumbent."""
    try:
        for snapshot in _search(incumbent, *search):
            if incumbent.stop:
                return
            incumbent.iterations += snapshot.iterations
            began = time.perf_counter()
            incumbent.offer(snapshot.cost, snapshot.solution)
            incumbent.looking += time.perf_counter() - began
            status = incumbent.limits(incumbent.progress())
            if status is not None:
                incumbent.status = incumbent.status or status
                return
    except MemoryError:
        _out_of_memory([incumbent])
    except Exception as error:
        incumbent.error = error
    finally:
        incumbent.finished.set()


def _work_together(incumbents: Sequence[Incumbent], *search: Any) -> None:
    """The worker of several instances: an instance that reached a limit leaves the batch."""
    try:
        for snapshots in _search_together(incumbents, *search):
            for i, snapshot in snapshots:
                incumbent = incumbents[i]
                if incumbent.stop:
                    return
                incumbent.iterations += snapshot.iterations
                incumbent.offer(snapshot.cost, snapshot.solution)
                incumbent.status = incumbent.status or incumbent.limits(incumbent.progress())
    except MemoryError:
        _out_of_memory(incumbents)
    except Exception as error:
        incumbents[0].error = error
    finally:
        incumbents[0].finished.set()


def _out_of_memory(incumbents: Sequence[Incumbent]) -> None:
    log.warning("out of memory: this is the best so far")
    for incumbent in incumbents:
        incumbent.status = incumbent.status or "memory"


def _search_together(
    incumbents: Sequence[Incumbent],
    init: str,
    repair: str | NeuralRepair,
    accept: Accept,
    options: RegionOptions,
    seed: int,
    threads: int,
) -> Iterator[list[tuple[int, Snapshot]]]:
    from drhg import search

    largest = max((incumbent.instance for incumbent in incumbents), key=lambda inst: inst.n)
    _prepare(incumbents, methods.parts_of(largest, repair, init, options))
    tasks = []
    for i, incumbent in enumerate(incumbents):
        start, snapshot = _started(incumbent.instance, init, seed, True)
        yield [(i, snapshot)]
        tasks.append(search.task_of(incumbent.instance, start, seed, threads))
    repairer, k = methods.repairer_of(repair, largest, options, threads)
    first = incumbents[0]

    def elapsed() -> float:
        return first.limits.elapsed(first.progress())

    def running() -> list[int]:
        return [i for i, incumbent in enumerate(incumbents) if incumbent.status is None]

    cut = methods.destroy_of(options, repair, largest.is_cvrp, k, first.limits)
    yield from search.regions_together(tasks, repairer, cut, accept, elapsed, running)


def _search(
    incumbent: Incumbent,
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

    instance = incumbent.instance
    _prepare([incumbent], methods.parts_of(instance, repair, init, options))
    by_region = repair != "auto"
    if isinstance(init, Solution):
        start = init
    else:
        start, snapshot = _started(instance, init, seed, by_region)
        yield snapshot
    task = search.task_of(instance, start, seed, threads)
    pace = _Pace(incumbent)
    max_iters = incumbent.limits.max_iters

    def elapsed() -> float:
        return incumbent.limits.elapsed(incumbent.progress())

    if by_region and incumbent.cost == np.inf:  # ruin and recreate can place who is left out
        for snapshot in route_search.routes(task, elapsed, max_iters):
            yield snapshot
            if snapshot.cost < np.inf:
                break
        task = replace(task, start=snapshot.solution())
    if by_region:
        repairer, k = methods.repairer_of(repair, instance, options, threads)
        cut = destroy
        if cut is None:
            cut = methods.destroy_of(options, repair, instance.is_cvrp, k, incumbent.limits)
        yield from search.regions(task, repairer, cut, accept, pace, elapsed)
    elif instance.is_cvrp:
        yield from route_search.routes(task, elapsed, max_iters)
    else:
        yield from search.tours(task, pace, elapsed)


def _started(
    instance: Instance, init: str, seed: int, by_region: bool
) -> tuple[Solution, Snapshot]:
    """The start of a name, and what to offer of it."""
    from drhg.search import Snapshot

    name = init if init != "auto" else methods.default_start(instance, by_region)
    start, unplaced = construct(instance, name, seed)
    known = np.inf if len(unplaced) else float(cost(instance, start))
    return start, Snapshot(0, known, lambda: start)


class _Pace:
    """How many iterations the next slice may have: never more than can be left.

    With a time limit it lasts about SLICE_SECONDS, and longer than looking at a solution, which
    takes time in proportion to its size. Without one nothing looks at the clock, so that traces
    repeat: a slice is what the search calls a moment, or less in the beginning, for repairs are
    of any speed.
    """

    def __init__(self, incumbent: Incumbent) -> None:
        self.incumbent = incumbent
        self.size = 1
        self.last = (time.perf_counter(), incumbent.iterations, incumbent.looking)

    def __call__(self, moment: int) -> int:
        if self.incumbent.limits.time_limit is not None:
            self._measure()
        else:
            self.size = max(1, min(moment, self.incumbent.iterations // SHARE))
        left = self.incumbent.limits.left(self.incumbent.progress())
        return self.size if left is None else max(1, min(self.size, left))

    def _measure(self) -> None:
        present = (time.perf_counter(), self.incumbent.iterations, self.incumbent.looking)
        spent, iterations, looking = (a - b for a, b in zip(present, self.last, strict=True))
        if iterations > 0:
            rate = iterations / max(spent - looking, 1e-6)
            wanted = rate * max(SLICE_SECONDS, LOOKS * looking)
            self.size = int(max(1, min(2 * self.size, wanted)))
        self.last = present

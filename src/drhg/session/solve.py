"""One solve, or many: limits, signals, the result."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from typing import TypeAlias

import numpy as np

from drhg.construct.starts import construct, quickest_start
from drhg.errors import DrhgError
from drhg.parallel import Cluster, cores
from drhg.problem import Instance, Solution, an_instance, check, cost, shown, whole_number
from drhg.search.criteria import Limits
from drhg.search.regions import Regions
from drhg.search.strategy import Strategy
from drhg.session.incumbent import Callbacks, Incumbent, OnImprove, OnProgress
from drhg.session.methods import Method, name_of, strategy_of
from drhg.session.options import check_calls, check_start, limits_of, threads_of
from drhg.session.pace import Pace
from drhg.session.result import Result, TracePoint
from drhg.session.worker import Search, work

TRIVIAL = 3  # all tours of so many nodes are the same, if they have no direction and return
PACE = Pace()

OnImproveOf: TypeAlias = Callable[[int, TracePoint, Solution], None]
ShouldStop: TypeAlias = Callable[[], bool]


def solve(
    instance: Instance,
    *,
    time_limit: float | None = None,
    max_iters: int | None = None,
    no_improve: int | None = None,
    target: float | None = None,
    seed: int = 0,
    start: str | Solution = "auto",
    method: Method = "auto",
    threads: int | None = None,
    on_improve: OnImprove | None = None,
    on_progress: OnProgress | None = None,
    should_stop: ShouldStop | None = None,
    ray: str | None = None,
    pace: Pace = PACE,
) -> Result:
    """Solve an instance; without any limit for ten seconds.

    time_limit: seconds. The clock starts when the kernels that the search needs are loaded: the
        first call ever compiles them, which `drhg.warmup` does ahead of time.
    max_iters, no_improve: iterations in all, and in a row without a better solution.
    target: a cost at which to stop.
    start: the name of a first solution, or a `Solution` to go on from.
    method: "auto" (`Tours` for a TSP, `Routes` for a CVRP), "neural", "paper", "local",
        "insertion", "library", "hybrid", or a strategy with parameters of your own, such as
        `Regions(destroy=Cluster(k=(20, 60)), repair=Neural(alternatives=2))`.
    threads: by default all cores.
    on_improve, on_progress: called for every new best, and every half second, both from a thread of
        their own: however long they take, the search ends in time.
    should_stop: asked again and again; once it says True, the best solution so far is returned.
    ray: the address of a Ray cluster, or "local" for one of `threads` workers on this machine: its
        workers share one large instance, as parts of a plan or regions of a tour.
    pace: how often the session looks at the search.

    The same seed, threads and `max_iters` give the same solution, and without a time limit the
    same trace but for its seconds.

    >>> import drhg
    >>> drhg.solve(drhg.tsp([[0, 0], [0, 1], [1, 1], [1, 0]]), max_iters=10).cost
    4.0
    """
    an_instance(instance)
    limits = limits_of(time_limit, max_iters, no_improve, target)
    seed, threads = whole_number("seed", seed, 0), threads_of(threads)
    check_calls(on_improve=on_improve, on_progress=on_progress, should_stop=should_stop)
    check_start(instance, start)
    strategy = strategy_of(method, instance)
    incumbent = Incumbent(instance, _ending(limits, strategy, pace), pace)
    tell = ([on_improve], on_progress, should_stop)
    if ray is None:
        return _run([incumbent], Search(strategy, start, seed, threads), name_of(method), *tell)[0]
    with closing(_cluster(ray, strategy, instance, threads)) as cluster:
        search = Search(strategy, start, seed, cluster.workers, cluster)
        return _run([incumbent], search, name_of(method), *tell)[0]


def solve_many(
    instances: Sequence[Instance],
    *,
    time_limit: float | None = None,
    max_iters: int | None = None,
    no_improve: int | None = None,
    target: float | None = None,
    seed: int = 0,
    start: str = "auto",
    method: Method = "auto",
    threads: int | None = None,
    jobs: int | None = None,
    on_improve: OnImproveOf | None = None,
    should_stop: ShouldStop | None = None,
    pace: Pace = PACE,
) -> list[Result]:
    """Solve several instances side by side; each result is what `solve` finds with `threads=1`.

    The arguments are those of `solve`, limits are per instance. `jobs` instances are solved at a
    time, each with `threads` threads of its own (by default one); by default there are as many jobs
    as cores. With a network, jobs are not solved in threads of their own but go on together, one
    batch per iteration: by default all instances, on all cores. Time then passes for all at once.
    `on_improve` is also told which instance it is about, counted from 0.

    >>> import drhg
    >>> found = drhg.solve_many([drhg.uniform_tsp(20, seed=s) for s in range(3)], max_iters=5)
    >>> [result.iterations for result in found]
    [5, 5, 5]
    """
    try:
        instances = list(instances)
    except TypeError:
        raise DrhgError(f"instances must be a list of them, not {shown(instances)}") from None
    limits = limits_of(time_limit, max_iters, no_improve, target)
    seed = whole_number("seed", seed, 0)
    threads = None if threads is None else whole_number("threads", threads, 1)
    jobs = None if jobs is None else whole_number("jobs", jobs, 1)
    check_calls(on_improve=on_improve, should_stop=should_stop)
    for i, instance in enumerate(instances):
        an_instance(instance, f"instances[{i}]")
        check_start(instance, start)
    strategies = [strategy_of(method, instance) for instance in instances]
    groups = _groups(instances, strategies, jobs)
    if all(_together(strategy) for strategy in strategies):
        each, at_once = threads or cores(), 1
    else:
        each, at_once = threads or 1, jobs or cores()
    stopping = threading.Event()

    def one(group: Sequence[int]) -> list[Result]:
        strategy = strategies[group[0]]
        tell = [None if on_improve is None else partial(on_improve, i) for i in group]
        incumbents = [Incumbent(instances[i], _ending(limits, strategy, pace), pace) for i in group]
        search = Search(strategy, start, seed, each)
        return _run(incumbents, search, name_of(method), tell, None, stopping.is_set)

    with ThreadPoolExecutor(at_once) as pool:
        running = [pool.submit(one, group) for group in groups]
        try:
            while not all(job.done() for job in running):
                time.sleep(pace.poll)
                if should_stop is not None and should_stop():
                    stopping.set()
        except BaseException as error:
            stopping.set()
            if not isinstance(error, KeyboardInterrupt):
                raise
        found = [job.result() for job in running]
    places = {i: (g, at) for g, group in enumerate(groups) for at, i in enumerate(group)}
    return [found[g][at] for g, at in (places[i] for i in range(len(instances)))]


def _together(strategy: Strategy) -> bool:
    return isinstance(strategy, Regions) and strategy.batches


def _groups(
    instances: Sequence[Instance], strategies: Sequence[Strategy], jobs: int | None
) -> list[list[int]]:
    """The instances of each session: batches of `jobs` with the same strategy, or each alone."""
    kinds: list[list[int]] = []
    for i, (instance, strategy) in enumerate(zip(instances, strategies, strict=True)):
        for kind in kinds:
            same = instance.is_cvrp == instances[kind[0]].is_cvrp
            if same and strategy == strategies[kind[0]]:
                kind.append(i)
                break
        else:
            kinds.append([i])
    groups: list[list[int]] = []
    for kind in kinds:
        batch = (jobs or len(kind)) if _together(strategies[kind[0]]) else 1
        groups += [kind[a : a + batch] for a in range(0, len(kind), batch)]
    return groups


# --- the calling thread -------------------------------------------------------------------------


def _ending(limits: Limits, strategy: Strategy, pace: Pace) -> Limits:
    """The limits, or if there are none those that are usual for the strategy."""
    if limits != Limits():
        return limits
    iterations = getattr(strategy, "iterations", None)
    return Limits(pace.default_seconds) if iterations is None else Limits(max_iters=iterations)


def _cluster(address: str, strategy: Strategy, instance: Instance, workers: int) -> Cluster:
    """The cluster of that address, if the strategy can use one for this instance."""
    why = strategy.spreads(instance) if hasattr(strategy, "spreads") else "this method does not"
    if why is not None:
        raise DrhgError(f"ray: {why}, and this instance has {instance.n} nodes")
    return Cluster(address, workers)


def _run(
    incumbents: Sequence[Incumbent],
    search: Search,
    method: str,
    on_improve: Sequence[OnImprove | None],
    on_progress: OnProgress | None,
    should_stop: ShouldStop | None,
) -> list[Result]:
    """One session: a thread searches for all incumbents, this one waits."""
    try:
        for incumbent, tell in zip(incumbents, on_improve, strict=True):
            if tell is not None or on_progress is not None:
                incumbent.callbacks = Callbacks(incumbent, tell, on_progress)
            _begin(incumbent, search)
        live = [incumbent for incumbent in incumbents if _worth_searching(incumbent)]
        if live:
            worker = threading.Thread(target=work, args=(live, search))
            worker.start()
            _watch(live, should_stop)
            if search.cluster is not None:
                search.cluster.cancel()
                worker.join()
    finally:
        for incumbent in incumbents:
            if incumbent.callbacks is not None:
                incumbent.callbacks.close()
    for incumbent in incumbents:
        if incumbent.error is not None:
            raise incumbent.error
    return [_result(incumbent, search.seed, method) for incumbent in incumbents]


def _begin(incumbent: Incumbent, search: Search) -> None:
    """Something to return from the first moment on: the given start, or the quickest."""
    start, unplaced = search.start, np.zeros(0, np.int64)
    if not isinstance(start, Solution):
        start, unplaced = construct(
            incumbent.instance, quickest_start(incumbent.instance), search.seed
        )
    known = np.inf if len(unplaced) else float(cost(incumbent.instance, start))
    incumbent.offer(known, lambda: start)


def _worth_searching(incumbent: Incumbent) -> bool:
    """Whether there is anything to find and time to find it; if not, the status says why."""
    instance, limits = incumbent.instance, incumbent.limits
    if limits.time_limit == 0:
        incumbent.status = limits.reached(incumbent.progress()) or "time"
    elif _is_trivial(instance):
        incumbent.status = limits.reached(incumbent.progress()) or "iterations"
    return incumbent.status is None


def _is_trivial(instance: Instance) -> bool:
    """Whether there is only one solution."""
    if instance.is_cvrp:
        return instance.n <= 2 and instance.fleet is None
    if instance.rich:
        return instance.n == 1 or (instance.n == 2 and (instance.symmetric or instance.returns))
    return instance.n <= TRIVIAL


def _watch(incumbents: Sequence[Incumbent], should_stop: ShouldStop | None) -> None:
    """Wait for the worker, but no longer than limits and signals allow; never lose the best."""
    status, first = "", incumbents[0]  # one worker, one clock
    limit = first.limits.time_limit
    try:
        while not first.finished.wait(first.pace.poll):
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


def _result(incumbent: Incumbent, seed: int, method: str) -> Result:
    assert incumbent.best is not None
    assert incumbent.status is not None
    instance, solution = incumbent.instance, incumbent.best
    started = time.perf_counter() if incumbent.clock is None else incumbent.clock
    visited = np.zeros(instance.n, dtype=bool)
    for route in solution.routes:
        visited[route] = True
    if instance.is_cvrp:
        visited[instance.depots] = True
    unplaced = tuple(int(i) for i in np.flatnonzero(~visited))
    status, warnings = incumbent.status, list(incumbent.warnings)
    if unplaced:
        status = "infeasible" if incumbent.iterations > 0 else "no_search"
    elif found := check(instance, solution):
        raise AssertionError(f"the solver broke a rule, please report it: {found[:3]}")
    if incumbent.iterations == 0 and not _is_trivial(instance) and status != "target":
        why = {
            "time": "the time limit was over before the first iteration ended",
            "iterations": "no iterations were allowed",
            "interrupted": "it was interrupted before",
        }.get(incumbent.status, incumbent.status)
        warnings.append(f"no search took place ({why}): this is only a first solution")
    return Result(
        instance, solution, cost(instance, solution), status, incumbent.seconds,
        incumbent.iterations, seed, method, tuple(incumbent.trace), unplaced,
        started - incumbent.called, tuple(warnings),
    )  # fmt: skip

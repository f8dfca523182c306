"""The thread that searches: one instance, or several as one batch."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from drhg.construct.starts import construct
from drhg.kernels import warmup
from drhg.parallel import Cluster
from drhg.problem import Solution, cost
from drhg.search.regions import Regions
from drhg.search.strategy import Snapshot, Strategy, Task, task_of
from drhg.session.incumbent import Incumbent
from drhg.session.methods import parts_of
from drhg.session.pace import SessionBudget

log = logging.getLogger("drhg")


@dataclass(frozen=True)
class Search:
    """What is asked of a session, the same for each of its instances."""

    strategy: Strategy
    start: str | Solution
    seed: int
    threads: int
    cluster: Cluster | None = None


def work(incumbents: Sequence[Incumbent], search: Search) -> None:
    """Search until every instance has reached a limit; improvements are left with its incumbent."""
    try:
        for i, snapshot in _snapshots(incumbents, search):
            incumbent = incumbents[i]
            if incumbent.stop:
                return
            incumbent.iterations += snapshot.iterations
            began = time.perf_counter()
            incumbent.offer(snapshot.cost, snapshot.solution)
            incumbent.looking += time.perf_counter() - began
            reached = incumbent.limits.reached(incumbent.progress())
            incumbent.status = incumbent.status or reached
            if reached is not None and not _running(incumbents):
                return
    except MemoryError:
        log.warning("out of memory: this is the best so far")
        for incumbent in incumbents:
            incumbent.status = incumbent.status or "memory"
    except Exception as error:
        incumbents[0].error = error
    finally:
        incumbents[0].finished.set()


def _running(incumbents: Sequence[Incumbent]) -> list[int]:
    """The instances that are still to be improved."""
    return [i for i, incumbent in enumerate(incumbents) if incumbent.status is None]


def _snapshots(incumbents: Sequence[Incumbent], search: Search) -> Iterator[tuple[int, Snapshot]]:
    """Build the starts, then run the strategy; each snapshot with its instance's number."""
    strategy = search.strategy
    _prepare(incumbents, search)
    tasks: list[Task] = []
    for i, incumbent in enumerate(incumbents):
        start = search.start
        if not isinstance(start, Solution):
            start, snapshot = _started(incumbent, search)
            yield i, snapshot
        tasks.append(
            task_of(incumbent.instance, start, search.seed, search.threads, search.cluster)
        )
    budgets = [SessionBudget(incumbent) for incumbent in incumbents]
    if len(tasks) == 1:
        for snapshot in strategy.run(tasks[0], budgets[0]):
            yield 0, snapshot
    else:
        assert isinstance(strategy, Regions)
        for snapshots in strategy.run_together(tasks, budgets, lambda: _running(incumbents)):
            yield from snapshots


def _prepare(incumbents: Sequence[Incumbent], search: Search) -> None:
    """Load the kernels, then start the clock."""

    def stopped() -> bool:
        return all(incumbent.stop for incumbent in incumbents)

    largest = max((incumbent.instance for incumbent in incumbents), key=lambda inst: inst.n)
    start = None if isinstance(search.start, Solution) else search.start
    if start == "auto":
        start = search.strategy.usual_start(largest)
    failure = warmup.prepare(parts_of(search.strategy, largest, start), stopped)
    for incumbent in incumbents:
        if failure is not None and not stopped():
            incumbent.warnings.append(f"{failure}; part of the search's time went to that")
        incumbent.start_clock()


def _started(incumbent: Incumbent, search: Search) -> tuple[Solution, Snapshot]:
    """The start of a name, and what to offer of it."""
    instance, name = incumbent.instance, str(search.start)
    if name == "auto":
        name = search.strategy.usual_start(instance)
    start, unplaced = construct(instance, name, search.seed)
    known = np.inf if len(unplaced) else float(cost(instance, start))
    return start, Snapshot(0, known, lambda: start)

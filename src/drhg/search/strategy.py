"""What every strategy shares: its task, its budget, its snapshots."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from drhg.construct.curves import along_curve
from drhg.problem import Instance, Ints, Solution, not_known

if TYPE_CHECKING:
    from drhg.hypergraph.nearness import Nearness
    from drhg.hypergraph.plan import Rules
    from drhg.kernels.warmup import Part
    from drhg.parallel import Cluster


@dataclass(frozen=True)
class Snapshot:
    """What a search has after a slice."""

    iterations: int  # done in this slice
    cost: float  # of the best solution so far; inf while customers are left out
    solution: Callable[[], Solution]  # that solution, built when asked for


@dataclass(frozen=True)
class Task:
    """A search's problem: the instance in the forms that kernels need, and where to start."""

    instance: Instance
    rules: Rules
    nearness: Nearness
    start: Solution
    seed: int
    threads: int
    cluster: Cluster | None = None  # whose workers do the work of threads


def task_of(
    instance: Instance, start: Solution, seed: int, threads: int, cluster: Cluster | None = None
) -> Task:
    from drhg.hypergraph.nearness import Nearness
    from drhg.hypergraph.plan import rules_of

    return Task(instance, rules_of(instance), Nearness(instance), start, seed, threads, cluster)


@dataclass
class Budget:
    """How much of a search is over, and how much it may do before its next snapshot.

    This one is for tests and rehearsals, with fixed answers; a session's follows its limits.
    """

    max_iters: int | None = None  # iterations in all, if they are limited
    share: float | None = None
    each: int | None = None

    def fraction(self) -> float | None:
        """The share of the search that is over, 0 to 1; None if its end is not known."""
        return self.share

    def slice(self, usual: int, least: int = 1) -> int:
        """Iterations to do before yielding again; `usual` ones take some hundredths of a second.

        Not fewer than `least`, unless the search ends before.
        """
        return usual if self.each is None else self.each


class Strategy(Protocol):
    """A way to solve an instance: a generator that improves a solution and never looks at a clock.

    A strategy of your own is a subclass with a method `run`; the other methods have defaults.
    Strategies are immutable, so that one can solve many instances at the same time.
    """

    def run(self, task: Task, budget: Budget) -> Iterator[Snapshot]:
        """Improve the start of the task for ever; yields after every slice of the budget."""
        raise NotImplementedError

    def supports(self, instance: Instance) -> str | None:
        """Why this instance cannot be solved in this way, or None if it can.

        By default that is all beyond a symmetric TSP or CVRP with closed routes.
        """
        return not_known(type(self).__name__, instance)

    def spreads(self, instance: Instance) -> str | None:
        """Why the workers of a cluster cannot share the search for this instance, or None."""
        return f"{type(self).__name__} does not share one instance among the workers of a cluster"

    def parts(self, instance: Instance) -> list[Part]:
        """The kernels to compile before the clock of a time limit starts."""
        return []

    def usual_start(self, instance: Instance) -> str:
        """The name of the first solution to start from if none is given."""
        if instance.is_cvrp:
            return "alone" if instance.rich else "savings"
        return "greedy"


def renumbered(instance: Instance) -> tuple[Instance, Ints]:
    """The same TSP with nodes numbered along a Hilbert curve, and the old number of every node.

    What is close then lies close in memory, which large tours need more than anything else.
    """
    assert instance.xy is not None
    old = along_curve(instance)
    new = np.empty_like(old)
    new[old] = np.arange(len(old))
    fixed = tuple((int(new[a]), int(new[b])) for a, b in instance.fixed_edges)
    return replace(instance, xy=instance.xy[old], fixed_edges=fixed, names=None), old


class InThisThread(Executor):
    """A pool of no threads: what it is given is done at once, in the thread of the caller."""

    def submit(self, work: Callable[..., Any], /, *args: Any, **options: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(work(*args, **options))
        return done

"""The paper's loop: destroy a region, repair it, keep what is accepted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from drhg.destroy import operators
from drhg.destroy.operators import Adaptive, Cluster, Covering, DestroyOperator
from drhg.errors import DrhgError
from drhg.kernels import warmup
from drhg.problem import Instance, not_known, shown, whole_number
from drhg.search import repairers
from drhg.search.criteria import Accept, Improve
from drhg.search.repairers import Hybrid, Insertion, LocalSearch, Neural
from drhg.search.strategy import Budget, Snapshot, Strategy, Task, task_of
from drhg.search.walks import Sharing, WalkSearch, rehearse_exchange

if TYPE_CHECKING:
    from drhg.hypergraph.judge import Repaired
    from drhg.kernels.warmup import Part
    from drhg.repair.protocol import Repair
    from drhg.search.repairers import RepairOperator
    from drhg.search.walk import Region, Walk


@dataclass(frozen=True)
class Regions(Strategy):
    """Destroy a region, reduce it to a hyper-graph, repair that, judge, accept, restore.

    destroy: what to cut, a destroy operator; by default the one that suits the repair.
    repair: what reconnects the reduced graph, a repair operator.
    accept: which repaired solutions to go on from.
    regions_per_step: regions that are destroyed in the same solution and repaired as one batch,
        which keeps all threads of a network busy. Each is one iteration. What no longer fits once
        another region of the step was accepted is dropped.
    walks: solutions that go on side by side, at most; they share the iterations.
    sharing: what the walks have in common.
    iterations: of a solve for which no limit is given; None: it ends by time.
    nodes_per_look: an iteration more between two looks at the search for so many nodes, because
        the time that a look takes grows with their number. Counts only if no time limit is given.

    >>> import drhg
    >>> drhg.Regions(destroy=drhg.Cluster(k=(20, 60)), repair=drhg.LocalSearch()).accept
    Improve()
    """

    destroy: DestroyOperator | None = None
    repair: RepairOperator = field(default_factory=LocalSearch)
    accept: Accept = field(default_factory=Improve)
    regions_per_step: int = 1
    walks: int = 1
    sharing: Sharing = field(default_factory=Sharing)
    iterations: int | None = None
    nodes_per_look: int = 500

    def __post_init__(self) -> None:
        if self.destroy is not None and not operators.usable(self.destroy):
            raise DrhgError(
                f"destroy must be a destroy operator, such as Cluster(), or a function, not "
                f"{shown(self.destroy)}"
            )
        repairers.check_repair("repair", self.repair)
        if not callable(self.accept) or isinstance(self.accept, type):
            raise DrhgError(
                f"accept must be Improve(), Anneal() or a function, not {shown(self.accept)}"
            )
        if self.iterations is not None:
            whole_number("iterations", self.iterations, 0)
        whole_number("regions_per_step", self.regions_per_step, 1)
        whole_number("walks", self.walks, 1)
        if not isinstance(self.sharing, Sharing):
            raise DrhgError(f"sharing must be Sharing(...), not {shown(self.sharing)}")
        whole_number("nodes_per_look", self.nodes_per_look, 1)

    @property
    def batches(self) -> bool:
        """Whether several instances can go on together, one batch per iteration."""
        return repairers.batches(self.repair)

    def supports(self, instance: Instance) -> str | None:
        if why := not_known("Regions", instance):
            return f"{why}; use method auto"
        return operators.supports(self.destroy, instance) or repairers.supports(
            self.repair, instance
        )

    def usual_start(self, instance: Instance) -> str:
        """The paper's starts."""
        if instance.is_cvrp:
            return "savings" if instance.xy is None else "sweep"
        return "insertion"

    def parts(self, instance: Instance) -> list[Part]:
        limited = instance.is_cvrp and (instance.vehicles or instance.max_distance)
        placing = [warmup.ANNEALING] if limited else []  # customers that a start leaves out
        return placing + repairers.parts(self.repair, instance)

    def run(self, task: Task, budget: Budget) -> Iterator[Snapshot]:
        for snapshots in self.run_together([task], [budget], lambda: [0]):
            yield from (snapshot for _, snapshot in snapshots)

    def run_together(
        self,
        tasks: Sequence[Task],
        budgets: Sequence[Budget],
        running: Callable[[], Sequence[int]],
    ) -> Iterator[list[tuple[int, Snapshot]]]:
        """Improve several instances side by side; each iteration is one batch for the repair.

        Every instance has its own random numbers, so it takes the steps that it would take alone.
        `running` says which are still to be improved.
        """
        largest = max(tasks, key=lambda task: task.instance.n)
        repair = repairers.begun(self.repair, largest.instance, largest.threads)
        searches = []
        for i, (task, budget) in enumerate(zip(tasks, budgets, strict=True)):
            for snapshot in _placed(task, budget):
                yield [(i, snapshot)]
                task = replace(task, start=snapshot.solution())
            destroy = self.destroy or repairers.usual_destroy(self.repair, task.instance)
            walks = self.walks, self.regions_per_step, self.sharing
            searches.append(WalkSearch(task, budget, destroy, self.accept, *walks))
        step = self.walks * self.regions_per_step
        usual = step * (1 + largest.instance.n // self.nodes_per_look)
        while left := [searches[i] for i in running()]:
            iterations = min(search.budget.slice(usual, step) for search in left)
            iterations -= iterations % step if iterations > step else 0
            for done in range(0, iterations, step):
                count = min(step, iterations - done)
                asked = [one for search in left for one in search.destroyed(count)]
                answers = _repaired(repair, asked)
                for (walk, region), answer in zip(asked, answers, strict=True):
                    walk.take(region, answer)
                for search in left:
                    search.share()
            yield [(searches.index(search), search.snapshot(iterations)) for search in left]


def _placed(task: Task, budget: Budget) -> Iterator[Snapshot]:
    """Have ruin and recreate place the customers that a start leaves out."""
    placed = sum(len(route) for route in task.start.routes)
    if placed < len(task.nearness.nodes):
        from drhg.search.routes.strategy import Routes

        for snapshot in Routes().run(task, budget):
            yield snapshot
            if snapshot.cost < np.inf:
                return


def _repaired(repair: Repair, asked: Sequence[tuple[Walk, Region]]) -> list[Repaired]:
    """The repaired graphs of all regions, as one batch if the repair can do that."""
    calls = [(walk.task.rules, region.graphs, walk.rng) for walk, region in asked]
    together = getattr(repair, "together", None)
    if together is None:
        return [repair(*call) for call in calls]
    answers: list[Repaired] = together(calls)
    return answers


def rehearse(problem: str, repair: str, model: str) -> None:
    """A few steps of the loop on a tiny instance, to have its kernels compiled or loaded."""
    from drhg.construct.starts import construct
    from drhg.problem import generate
    from drhg.search.walk import Walk

    make = generate.uniform_tsp if problem == "tsp" else generate.uniform_cvrp
    instance = make(40, seed=0)
    start, _ = construct(instance, "space-filling", 0)
    task, budget = task_of(instance, start, 0, 1), Budget(1, share=0.5, each=3)
    known: dict[str, RepairOperator] = {
        "insertion": Insertion(), "local": LocalSearch(), "neural": Neural(model),
        "hybrid": Hybrid(Neural(model)),
    }  # fmt: skip
    k = (5, 15)
    cuts: list[DestroyOperator] = [Cluster(k), Covering(k) if problem == "tsp" else Adaptive()]
    for destroy in cuts:
        next(Regions(destroy, known[repair]).run(task, budget))
    if repair == "neural":
        rehearse_exchange(Walk(task, budget, Cluster(k), Improve()))

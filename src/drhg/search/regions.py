"""The paper's loop: destroy a region, repair it, keep what is accepted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from drhg.destroy import operators
from drhg.destroy.operators import Adaptive, Cluster, Covering, DestroyOperator
from drhg.errors import DrhgError
from drhg.kernels import warmup
from drhg.problem import Instance, cost, not_known, shown, whole_number
from drhg.problem.tolerances import GAIN
from drhg.search import repairers
from drhg.search.criteria import Accept, Improve, Moment
from drhg.search.repairers import Hybrid, Insertion, LocalSearch, Neural
from drhg.search.strategy import Budget, Snapshot, Strategy, Task, task_of

if TYPE_CHECKING:
    from drhg.destroy.operators import Destroy
    from drhg.hypergraph.judge import Repaired
    from drhg.hypergraph.plan import Index, Plan, Rules
    from drhg.hypergraph.reduce import Graphs
    from drhg.kernels.warmup import Part
    from drhg.repair.protocol import Repair
    from drhg.search.repairers import RepairOperator


@dataclass(frozen=True)
class Regions(Strategy):
    """Destroy a region, reduce it to a hyper-graph, repair that, judge, accept, restore.

    destroy: what to cut, a destroy operator; by default the one that suits the repair.
    repair: what reconnects the reduced graph, a repair operator.
    accept: which repaired solutions to go on from.
    regions_per_step: regions that are destroyed in the same solution and repaired as one batch,
        which keeps all threads of a network busy. Each is one iteration. What no longer fits once
        another region of the step was accepted is dropped.
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
        destroy = self.destroy or repairers.usual_destroy(self.repair, largest.instance)
        searches = []
        for i, (task, budget) in enumerate(zip(tasks, budgets, strict=True)):
            for snapshot in _placed(task, budget):
                yield [(i, snapshot)]
                task = replace(task, start=snapshot.solution())
            searches.append(RegionSearch(task, budget, destroy, self.accept, self.regions_per_step))
        usual = self.regions_per_step * (1 + largest.instance.n // self.nodes_per_look)
        while left := [searches[i] for i in running()]:
            iterations = min(search.budget.slice(usual) for search in left)
            for done in range(0, iterations, self.regions_per_step):
                count = min(self.regions_per_step, iterations - done)
                asked = [(search, region) for search in left for region in search.destroyed(count)]
                answers = _repaired(repair, asked)
                for (search, region), answer in zip(asked, answers, strict=True):
                    search.take(region, answer)
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


def _repaired(repair: Repair, asked: Sequence[tuple[RegionSearch, Region]]) -> list[Repaired]:
    """The repaired graphs of all regions, as one batch if the repair can do that."""
    calls = [(search.task.rules, region.graphs, search.rng) for search, region in asked]
    together = getattr(repair, "together", None)
    if together is None:
        return [repair(*call) for call in calls]
    answers: list[Repaired] = together(calls)
    return answers


class Region(NamedTuple):
    """A destroyed region of a plan."""

    changes: int  # repairs that were accepted before it was destroyed
    edges: Index  # (2, K): the nodes of the edges that are cut, for a tour
    n_cuts: Index  # (1,): how many there are
    graphs: Graphs  # the reduced graph, a batch of one
    destroy: Destroy


class RegionSearch:
    """The state of the loop on one instance: the current solution, and the best so far."""

    def __init__(
        self,
        task: Task,
        budget: Budget,
        destroy: DestroyOperator,
        accept: Accept,
        regions_per_step: int = 1,
    ) -> None:
        from drhg.hypergraph.plan import plan_of

        self.task, self.budget, self.accept = task, budget, accept
        # one for each region of a step, because they are told what came of their last call
        self.destroys = [
            operators.fresh(destroy, budget.max_iters) for _ in range(regions_per_step)
        ]
        self.rng = np.random.default_rng(task.seed)
        self.changes = 0  # repairs accepted so far
        self.plan = self.best = plan_of(task.rules, task.start)
        self.cost = self.best_cost = float(cost(task.instance, task.start))

    def destroyed(self, count: int) -> list[Region]:
        """Some regions of the current solution, which may overlap."""
        from drhg.hypergraph.reduce import reduce

        rules, plan, regions = self.task.rules, self.plan, []
        for destroy in self.destroys[:count]:
            cuts, n_cuts = destroy(rules, plan, self.task.nearness, self.rng)
            places = cuts[0, : n_cuts[0]]
            edges = np.stack((plan.order[places], plan.order[(places + 1) % len(plan.order)]))
            graphs = reduce(rules, plan, cuts, n_cuts)
            regions.append(Region(self.changes, edges, n_cuts, graphs, destroy))
        return regions

    def take(self, region: Region, repaired: Repaired) -> None:
        """Judge a repair, and go on from it if it is accepted."""
        change = self._accepted(region, repaired)
        learn: Callable[[float], None] | None = getattr(region.destroy, "learn", None)
        if learn is not None:
            learn(-change)

    def _accepted(self, region: Region, repaired: Repaired) -> float:
        """The change of cost; 0 if the repair was not accepted."""
        from drhg.hypergraph.judge import judge
        from drhg.hypergraph.restore import restore_in_place

        rules, graphs = self.task.rules, region.graphs
        if self.changes > region.changes:  # another region of this step was accepted
            moved = _moved(rules, self.plan, region, repaired)
            if moved is None:
                return 0.0
            graphs, repaired = moved
        good, changes = judge(rules, self.plan, graphs, repaired)
        row = int(np.argmin(changes))
        change = float(changes[row])
        if not good[row] or not self.accept(change, self._moment(), self.rng):
            return 0.0
        if change > 0 and self.plan is self.best:  # keep the best before leaving it
            self.plan = self.plan._replace(order=self.plan.order.copy(), pos=self.plan.pos.copy())
        self.plan = restore_in_place(rules, self.plan, graphs, row, repaired)
        self.changes += 1
        self.cost += change
        if self.cost < self.best_cost - GAIN:
            self.best_cost, self.best = self.cost, self.plan
        return change

    def _moment(self) -> Moment:
        edges = len(self.plan.order) - self.plan.n_routes  # the depot is at both ends of a route
        return Moment(self.budget.fraction(), self.cost / edges)

    def snapshot(self, iterations: int) -> Snapshot:
        from drhg.hypergraph.plan import solution_of

        solution = partial(solution_of, self.task.rules, self.best)
        return Snapshot(iterations, self.best_cost, solution)


def _moved(
    rules: Rules, plan: Plan, region: Region, repaired: Repaired
) -> tuple[Graphs, Repaired] | None:
    """A region and its repair in a tour that has changed elsewhere, or None if it no longer fits.

    The same edges are cut again; what the repair is now worth, or whether it still makes one tour,
    is for the judge to say.
    """
    from drhg.hypergraph.judge import Repaired
    from drhg.hypergraph.reduce import reduce

    if rules.depot >= 0:
        return None
    n = rules.n
    heads, tails = region.edges
    at, to = plan.pos[heads], plan.pos[tails]
    forward, backward = (to - at) % n == 1, (at - to) % n == 1
    if not (forward | backward).all():  # an edge of the region is gone
        return None
    cuts = np.sort(np.where(forward, at, to)).astype(np.int32)[None, :]
    graphs = reduce(rules, plan, cuts, region.n_cuts)
    size = int(graphs.size[0])
    if size != int(region.graphs.size[0]):
        return None
    by_node = np.argsort(graphs.node[0, :size])
    nodes = region.graphs.node[0, repaired.order[0, :size]]
    places = by_node[np.searchsorted(graphs.node[0, :size], nodes, sorter=by_node)]
    order = np.full_like(graphs.node, -1)
    order[0, :size] = places
    return graphs, Repaired(order, np.zeros(order.shape, np.bool_))


def rehearse(problem: str, repair: str, model: str) -> None:
    """A few steps of the loop on a tiny instance, to have its kernels compiled or loaded."""
    from drhg.construct.starts import construct
    from drhg.problem import generate

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

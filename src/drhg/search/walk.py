"""One walk of the search by regions: what is destroyed, judged, accepted and restored."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from drhg.destroy import operators
from drhg.destroy.operators import DestroyOperator
from drhg.problem import cost
from drhg.problem.tolerances import GAIN
from drhg.search.criteria import Accept, Moment
from drhg.search.strategy import Budget, Task

if TYPE_CHECKING:
    from drhg.destroy.operators import Destroy
    from drhg.hypergraph.judge import Repaired
    from drhg.hypergraph.plan import Index, Plan, Rules
    from drhg.hypergraph.reduce import Graphs


class Region(NamedTuple):
    """A destroyed region of a plan."""

    changes: int  # repairs that were accepted before it was destroyed
    edges: Index  # (2, K): the nodes of the edges that are cut, for a tour
    n_cuts: Index  # (1,): how many there are
    graphs: Graphs  # the reduced graph, a batch of one
    destroy: Destroy | None  # what cut it, if it learns


class Walk:
    """The state of the loop: the current solution, and the best so far."""

    def __init__(
        self,
        task: Task,
        budget: Budget,
        destroy: DestroyOperator,
        accept: Accept,
        regions_per_step: int = 1,
        seed: Any = None,
    ) -> None:
        from drhg.hypergraph.plan import plan_of

        self.task, self.budget, self.accept = task, budget, accept
        # one for each region of a step, because they are told what came of their last call
        self.destroys = [
            operators.fresh(destroy, budget.max_iters) for _ in range(regions_per_step)
        ]
        self.rng = np.random.default_rng(task.seed if seed is None else seed)
        self.changes = 0  # repairs accepted so far
        self.plan = self.best = plan_of(task.rules, task.start)
        self.cost = self.best_cost = float(cost(task.instance, task.start))

    def destroyed(self, count: int) -> list[Region]:
        """Some regions of the current solution, which may overlap."""
        regions = []
        for destroy in self.destroys[:count]:
            cuts, n_cuts = destroy(self.task.rules, self.plan, self.task.nearness, self.rng)
            regions.append(self.region(cuts, n_cuts, destroy))
        return regions

    def region(self, cuts: Index, n_cuts: Index, destroy: Destroy | None = None) -> Region:
        """What these cuts leave of the current solution."""
        from drhg.hypergraph.reduce import reduce

        plan = self.plan
        places = cuts[0, : n_cuts[0]]
        edges = np.stack((plan.order[places], plan.order[(places + 1) % len(plan.order)]))
        graphs = reduce(self.task.rules, plan, cuts, n_cuts)
        return Region(self.changes, edges, n_cuts, graphs, destroy)

    def take(self, region: Region, repaired: Repaired) -> None:
        """Judge a repair, and go on from it if it is accepted."""
        change = self._accepted(region, repaired)
        learn: Callable[[float], None] | None = getattr(region.destroy, "learn", None)
        if learn is not None:
            learn(-change)

    def _accepted(self, region: Region, repaired: Repaired) -> float:
        """The change of cost; 0 if the repair was not accepted."""
        from drhg.hypergraph.judge import judge

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
        self.go_on(graphs, row, repaired, change)
        return change

    def go_on(self, graphs: Graphs, row: int, repaired: Repaired, change: float) -> None:
        """Go on from a repaired graph, which the judge has seen."""
        from drhg.hypergraph.restore import restore_in_place

        if change > 0 and self.plan is self.best:  # keep the best before leaving it
            self.plan = copied(self.plan)
        self.plan = restore_in_place(self.task.rules, self.plan, graphs, row, repaired)
        self.changes += 1
        self.cost += change
        if self.cost < self.best_cost - GAIN:
            self.best_cost, self.best = self.cost, self.plan

    def jump(self, plan: Plan, cost: float) -> None:
        """Go on from another plan, which must be this walk's own."""
        self.plan, self.cost = plan, cost
        self.changes += 1
        if cost < self.best_cost - GAIN:
            self.best_cost, self.best = cost, plan

    def _moment(self) -> Moment:
        edges = len(self.plan.order) - self.plan.n_routes  # the depot is at both ends of a route
        return Moment(self.budget.fraction(), self.cost / edges)


def copied(plan: Plan) -> Plan:
    """A plan that is restored in place can be left alone by a copy."""
    return plan._replace(order=plan.order.copy(), pos=plan.pos.copy())


def found_again(plan: Plan, edges: Index) -> Index | None:
    """The cuts of these edges (2, K) in a tour that has changed since, or None if one is gone."""
    n = len(plan.order)
    at, to = plan.pos[edges[0]], plan.pos[edges[1]]
    forward, backward = (to - at) % n == 1, (at - to) % n == 1
    if not (forward | backward).all():
        return None
    cuts: Index = np.sort(np.where(forward, at, to)).astype(np.int32)[None, :]
    return cuts


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
    cuts = found_again(plan, region.edges)
    if cuts is None:  # an edge of the region is gone
        return None
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

"""Several walks of the search by regions on one instance, and what they have in common."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from drhg.destroy.operators import DestroyOperator
from drhg.problem.parameters import Parameters, number
from drhg.problem.tolerances import GAIN
from drhg.search.criteria import Accept
from drhg.search.strategy import Budget, Snapshot, Task
from drhg.search.walk import Region, Walk, copied, found_again

if TYPE_CHECKING:
    from drhg.hypergraph.differ import Differences
    from drhg.hypergraph.plan import Index, Plan


@dataclass(frozen=True)
class Sharing(Parameters):
    """What the walks on one instance have in common: a best solution, put together from all."""

    every: int = number(0, 0)
    """Steps after which the best takes over, part by part, what a walk has better; 0 for never."""
    rounds: int = number(0, 0)
    """The search is cut into so many rounds; after each all walks go on from the best."""
    disagree: float = number(0.0, 0.0, 1.0)
    """Share of the regions in which exactly the edges are cut that another walk does not have."""
    most: int = number(100, 8)
    """Nodes of such a region, about, at most."""
    least: float = number(0.0, 0.0)
    """Iterations per node that each walk must get: with a smaller budget there are fewer walks."""
    wait: float = number(0.05, 0.0, 1.0)
    """Share of a time limit after which it is known how many iterations it allows; until then there
    are as many walks as there may be, and then the best of them go on."""


class WalkSearch:
    """The walks on one instance, and the best that they have found together."""

    def __init__(
        self,
        task: Task,
        budget: Budget,
        destroy: DestroyOperator,
        accept: Accept,
        walks: int = 1,
        regions_per_step: int = 1,
        sharing: Sharing | None = None,
    ) -> None:
        self.task, self.budget, self.sharing = task, budget, sharing or Sharing()
        self.most, self.at_once = walks, walks * regions_per_step
        self.operators = destroy, accept
        self.common = Walk(task, budget, destroy, accept, 0) if self.sharing.every else None
        self.turn = self.steps = self.round = self.done = 0
        self.walks: list[Walk] = []
        known = self._affordable()
        self.settled = known is not None
        self._grow(known or self.most)

    def _affordable(self) -> int | None:
        """How many walks the budget is enough for; None if that is not known yet."""
        least, total = self.sharing.least * self.task.instance.n, self.budget.max_iters
        over = self.budget.fraction()
        if least <= 0.0 or (total is None and over is None):
            return self.most
        expected = float(total or 0)
        if total is None:
            assert over is not None
            if over < self.sharing.wait or over <= 0.0:
                return None
            expected = self.done / over
        return max(1, min(self.most, int(expected / least)))

    def _grow(self, count: int) -> None:
        """Begin so many walks."""
        task, seed = self.task, self.task.seed
        for i in range(count):
            own = [seed, i] if i else seed
            self.walks.append(Walk(task, self.budget, *self.operators, self.at_once, own))

    def destroyed(self, count: int) -> list[tuple[Walk, Region]]:
        """So many regions, of one walk after the other."""
        self.done += count
        turns = [(self.turn + i) % len(self.walks) for i in range(count)]
        self.turn = (self.turn + count) % len(self.walks)
        counts = np.bincount(turns, minlength=len(self.walks)).tolist()
        return [
            (walk, region)
            for walk, times in zip(self.walks, counts, strict=True)
            for region in self._regions(walk, times)
        ]

    def _regions(self, walk: Walk, count: int) -> Iterator[Region]:
        if self.sharing.disagree > 0.0 and len(self.walks) > 1:
            for _ in range(int(walk.rng.binomial(count, self.sharing.disagree))):
                region = self._disagreement(walk)
                if region is None:
                    break
                yield region
                count -= 1
        yield from walk.destroyed(count)

    def _disagreement(self, walk: Walk) -> Region | None:
        """Where a walk differs from another one, around a random such place."""
        from drhg.hypergraph.differ import differences

        others = [other for other in self.walks if other is not walk]
        other = others[int(walk.rng.integers(len(others)))]
        found = differences(self.task.rules, walk.plan, other.plan)
        if len(found) == 0:
            return None
        cuts = self._near(walk, found)
        return walk.region(cuts[None, :], np.array([len(cuts)], np.int32))

    def _near(self, walk: Walk, found: Differences) -> Index:
        """The cuts of a random component and of those nearest to it."""
        nodes = walk.plan.order[found.cuts[found.begin[:-1]]]
        points = self.task.rules.space.points[nodes]
        away = points - points[int(walk.rng.integers(len(found)))]
        near = np.argsort((away**2).sum(axis=1), kind="stable")
        sizes = np.cumsum(2 * np.diff(found.begin)[near])
        few = near[: max(1, int(np.searchsorted(sizes, self.sharing.most, side="right")))]
        cuts: Index = np.sort(np.concatenate([found.of(int(component)) for component in few]))
        return cuts

    def share(self) -> None:
        """After a step: the best takes what walks have better; after a round they go on from it."""
        self.steps += 1
        if not self.settled and (known := self._affordable()) is not None:
            self.settled = True
            self.walks = sorted(self.walks, key=lambda walk: walk.best_cost)[:known]
            self.turn = 0
        if self.common is None or self.steps % self.sharing.every:
            return
        for walk in self.walks:
            if walk.best_cost < self.common.cost - GAIN:
                before = self.common.plan
                self.common.jump(copied(walk.best), walk.best_cost)
                adopt(self.common, before)
            adopt(self.common, walk.plan)
        over = self.budget.fraction()
        if over is not None and int(over * self.sharing.rounds) > self.round:
            self.round = int(over * self.sharing.rounds)
            for walk in self.walks:
                walk.jump(copied(self.common.plan), self.common.cost)

    def snapshot(self, iterations: int) -> Snapshot:
        from drhg.hypergraph.plan import solution_of

        known = self.walks if self.common is None else [*self.walks, self.common]
        best = min(known, key=lambda walk: walk.best_cost)
        solution = partial(solution_of, self.task.rules, best.best)
        return Snapshot(iterations, best.best_cost, solution)


def adopt(walk: Walk, other: Plan) -> None:
    """Let a walk have what another plan has better, each part in which they differ on its own."""
    from drhg.hypergraph.differ import differences

    rules = walk.task.rules
    found = differences(rules, walk.plan, other)
    better = [int(one) for one in np.argsort(found.change) if found.change[one] < -GAIN]
    if rules.depot < 0:
        order = walk.plan.order
        parts = [found.of(component) for component in better]
        edges = [np.stack((order[cuts], order[(cuts + 1) % len(order)])) for cuts in parts]
        for one in edges:  # an exchange moves the others, but leaves their edges alone
            cuts_now = found_again(walk.plan, one)
            if cuts_now is not None:
                _exchanged(walk, cuts_now[0], other)
        return
    while any(_exchanged(walk, found.of(component), other) for component in better):
        found = differences(rules, walk.plan, other)  # of routes all positions are new
        better = [int(one) for one in np.argsort(found.change) if found.change[one] < -GAIN]


def _exchanged(walk: Walk, cuts: Index, other: Plan) -> bool:
    """Give a walk the other plan's edges instead of these, if that is a better solution."""
    from drhg.hypergraph.differ import as_in
    from drhg.hypergraph.judge import judge
    from drhg.hypergraph.reduce import reduce

    rules = walk.task.rules
    graphs = reduce(rules, walk.plan, cuts[None, :], np.array([len(cuts)], np.int32))
    repaired = as_in(rules, walk.plan, graphs, other)
    if repaired is None:
        return False
    good, change = judge(rules, walk.plan, graphs, repaired)
    if not good[0] or change[0] > -GAIN:
        return False
    walk.go_on(graphs, 0, repaired, float(change[0]))
    return True


def rehearse_exchange(walk: Walk) -> None:
    """Use once what walks need to compare themselves."""
    from drhg.hypergraph.differ import as_in, differences

    differences(walk.task.rules, walk.plan, walk.plan)
    as_in(walk.task.rules, walk.plan, walk.destroyed(1)[0].graphs, walk.plan)

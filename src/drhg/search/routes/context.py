"""What the loops of the search for routes share: the task, plans as lists, parts, snapshots."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from drhg.hypergraph.plan import Index
from drhg.local_search.candidates import neighbour_lists
from drhg.problem import Ints, Solution, cost
from drhg.search.routes.parts import Part, lists_of, merge_lists, part_of, solution_of_lists
from drhg.search.routes.ruin_recreate import anneal
from drhg.search.strategy import Snapshot, Task

if TYPE_CHECKING:
    from drhg.search.routes.strategy import Routes


NO_KINDS = np.zeros(0, np.int32)


class RouteLists(NamedTuple):
    """A plan that may be incomplete: its routes laid end to end, and who is in none."""

    order: Index
    ends: Index  # (R,): where each route ends in the order
    absent: Ints
    cost: float
    kinds: Index = NO_KINDS  # (R,): of vehicles, if they differ

    @property
    def rank(self) -> tuple[int, float]:
        """Fewer customers left out are better at any cost."""
        return len(self.absent), self.cost

    @property
    def customers(self) -> int:
        return len(self.order) + len(self.absent)

    @property
    def solution(self) -> Solution:
        return solution_of_lists(self.order, self.ends)


class Annealed(Protocol):
    """What annealing needs to know of plans: how to take parts of them and put them back."""

    @property
    def task(self) -> Task: ...

    @property
    def params(self) -> Routes: ...

    @property
    def scale(self) -> float:
        """Unit of temperatures."""

    def part(self, plan: RouteLists, chosen: Index, absent: Ints, parts: int) -> Any:
        """Some routes as one of so many parts, which share what is left of the fleet."""

    def anneal(
        self, part: Any, temperature: float, steps: int, state: npt.NDArray[np.uint64]
    ) -> tuple[float, float, int]:
        """Change a part; returns (change of cost, that of the best, customers it leaves out)."""

    @property
    def annealer(self) -> Callable[..., tuple[float, float, int]]:
        """`anneal` as a function of its own, which can travel without the context."""

    def plan_of(self, part: Any, cost: float, best: bool) -> RouteLists:
        """The plan that is one part, as it is or the best that the last slice has seen."""

    def merged(
        self, plan: RouteLists, chosen: list[Index], parts: list[Any], cost: float, best: bool
    ) -> RouteLists:
        """The plan with its chosen routes replaced by those of the parts."""


def whole_part(context: Annealed, plan: RouteLists) -> Any:
    """All routes, and all who are in none, as one part."""
    return context.part(plan, np.arange(len(plan.ends), dtype=np.int32), plan.absent, 1)


@dataclass(frozen=True)
class SearchContext:
    """What all threads know of a task."""

    task: Task
    params: Routes
    near: Index  # (n, k)
    scale: float  # unit of temperatures
    scratch: Index  # of `part_of`

    def plan(self, start: Solution) -> RouteLists:
        """Where the search begins."""
        return route_lists(self.task, start.routes)

    def snapshot(self, iterations: int, best: RouteLists) -> Snapshot:
        return snapshot(iterations, best)

    def part(self, plan: RouteLists, chosen: Index, absent: Ints, parts: int) -> Part:
        rules, annealing = self.task.rules, self.params.annealing
        wanted = annealing.spare_routes + int(annealing.spare_share * len(plan.ends))
        spare = min(rules.vehicles - len(plan.ends), wanted, rules.n)
        return part_of(
            rules, self.near, self.params.ruin.neighbours, plan.order, plan.ends, chosen, absent,
            max(0, spare) // parts, self.scratch,
        )  # fmt: skip

    def anneal(
        self, part: Part, temperature: float, steps: int, state: npt.NDArray[np.uint64]
    ) -> tuple[float, float, int]:
        return anneal(part, self.params.ruin, temperature, steps, state)

    @property
    def annealer(self) -> Callable[..., tuple[float, float, int]]:
        return partial(anneal, params=self.params.ruin)

    def plan_of(self, part: Part, cost: float, best: bool) -> RouteLists:
        order, ends = lists_of(part, best)
        return RouteLists(order, ends, np.setdiff1d(self.task.nearness.nodes, order), cost)

    def merged(
        self, plan: RouteLists, chosen: list[Index], parts: list[Part], cost: float, best: bool
    ) -> RouteLists:
        return with_parts(plan, chosen, [lists_of(part, best) for part in parts], cost)


def search_context(task: Task, params: Routes) -> SearchContext:
    """Neighbour lists, and the mean distance to a near neighbour as the unit of temperatures."""
    width = params.ruin.neighbours + params.ruin.spare_neighbours
    near = neighbour_lists(task.instance, task.nearness, width)
    nodes = task.nearness.nodes
    scale = 0.0
    if near.shape[1] > 0:
        close = near[nodes, min(params.annealing.scale_neighbour, near.shape[1]) - 1]
        scale = float(np.mean(task.instance.distance(nodes, close)))
    if scale == 0.0:  # a single customer, or many at a few places
        scale = float(cost(task.instance, task.start)) / task.instance.n
    return SearchContext(task, params, near, scale, np.full(task.instance.n, -1, np.int32))


def route_lists(task: Task, routes: Sequence[Ints]) -> RouteLists:
    """A plan's routes as lists."""
    order = np.concatenate([np.zeros(0, np.int64), *routes]).astype(np.int32)
    ends = np.cumsum([len(route) for route in routes]).astype(np.int32)
    absent = np.setdiff1d(task.nearness.nodes, order)
    return RouteLists(order, ends, absent, float(cost(task.instance, Solution(routes))))


def snapshot(iterations: int, best: RouteLists) -> Snapshot:
    """The best plan after so many iterations more."""
    known = np.inf if len(best.absent) else best.cost
    return Snapshot(iterations, known, partial(solution_of_lists, best.order, best.ends))


def with_parts(
    plan: RouteLists, chosen: list[Index], parts: list[tuple[Index, Index]], cost: float
) -> RouteLists:
    """The plan with its chosen routes replaced by those of the parts."""
    taken = np.zeros(len(plan.ends), np.bool_)
    taken[np.concatenate(chosen)] = True
    order, ends = plan.order, plan.ends
    for part in parts:
        order, ends = merge_lists(order, ends, taken, *part)
        taken = np.zeros(len(ends), np.bool_)
    return RouteLists(order, ends, plan.absent, cost)

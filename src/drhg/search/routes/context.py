"""What the loops of the search for routes share: the task, plans as lists, snapshots."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from drhg.hypergraph.plan import Index
from drhg.local_search.candidates import neighbour_lists
from drhg.problem import Ints, Solution, cost
from drhg.search.routes.parts import Part, lists_of, merge_lists, part_of, solution_of_lists
from drhg.search.strategy import Snapshot, Task

if TYPE_CHECKING:
    from drhg.search.routes.strategy import Routes


class RouteLists(NamedTuple):
    """A plan that may be incomplete: its routes laid end to end, and who is in none."""

    order: Index
    ends: Index  # (R,): where each route ends in the order
    absent: Ints
    cost: float

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


class SearchContext(NamedTuple):
    """What all threads know of a task."""

    task: Task
    params: Routes
    near: Index  # (n, k)
    scale: float  # unit of temperatures
    scratch: Index  # of `part_of`


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


def whole_part(context: SearchContext, plan: RouteLists) -> Part:
    """All routes, and all who are in none, as one part."""
    everything = np.arange(len(plan.ends), dtype=np.int32)
    return part_of_routes(context, plan, everything, plan.absent, 1)


def part_of_routes(
    context: SearchContext, plan: RouteLists, chosen: Index, absent: Ints, parts: int
) -> Part:
    """Some routes as one of so many parts, which share what is left of the fleet."""
    rules, annealing = context.task.rules, context.params.annealing
    wanted = annealing.spare_routes + int(annealing.spare_share * len(plan.ends))
    spare = min(rules.vehicles - len(plan.ends), wanted, rules.n)
    return part_of(
        rules, context.near, context.params.ruin.neighbours, plan.order, plan.ends, chosen, absent,
        max(0, spare) // parts, context.scratch,
    )  # fmt: skip


def lists_of_part(context: SearchContext, part: Part, cost: float, best: bool) -> RouteLists:
    """The plan that is one part, as it is or the best that the last slice has seen."""
    order, ends = lists_of(part, best)
    return RouteLists(order, ends, np.setdiff1d(context.task.nearness.nodes, order), cost)


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

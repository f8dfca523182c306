"""What all searches for tours work on: a task with its candidate lists, and a tour as arrays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from drhg.hypergraph.plan import Index
from drhg.local_search.candidates import candidate_lists, neighbour_lists
from drhg.local_search.kopt import MoveContext, descend, move_context
from drhg.local_search.params import MoveParams
from drhg.problem import Ints, Solution, cost
from drhg.search.strategy import Snapshot, Task, renumbered, task_of


class Tour(NamedTuple):
    """A tour that kernels change in place."""

    order: Index  # (n,) nodes in tour order
    pos: Index  # (n,) the position of every node

    def copy(self) -> Tour:
        return Tour(self.order.copy(), self.pos.copy())

    def become(self, other: Tour) -> None:
        self.order[:], self.pos[:] = other


def tour_of(order: Ints) -> Tour:
    """A tour from its nodes in order."""
    pos = np.empty(len(order), np.int32)
    pos[order] = np.arange(len(order), dtype=np.int32)
    return Tour(order.astype(np.int32), pos)


@dataclass(frozen=True)
class Subject:
    """A task together with what k-opt moves need."""

    task: Task
    moves: MoveParams
    context: MoveContext

    def local_optimum(self, order: Ints) -> Tour:
        """The tour that a descent from this one ends at."""
        tour = tour_of(order)
        descend(self.context, *tour)
        return tour


def subject_of(
    task: Task, moves: MoveParams, quick: bool = False, near: Index | None = None
) -> Subject:
    """Prepare a task, and candidate lists if none are given; `quick` ones are the nearest nodes."""
    if near is None and quick:
        near = neighbour_lists(task.instance, task.nearness, moves.candidates)
    elif near is None:
        near = candidate_lists(task.instance, task.nearness, moves)
    return Subject(task, moves, move_context(task.rules, near, moves))


def snapshot_of(task: Task, iterations: int, order: Index) -> Snapshot:
    """A copy of a tour, with its cost."""
    kept = Solution([order.astype(np.int64)])
    return Snapshot(iterations, float(cost(task.instance, kept)), lambda: kept)


def along_a_curve(task: Task) -> tuple[Task, Ints]:
    """The same task with nodes renumbered along a curve, and the old number of every node."""
    instance, old = renumbered(task.instance)
    start = Solution([np.argsort(old)[task.start.tour]])
    return task_of(instance, start, task.seed, task.threads, task.cluster), old


def numbered_back(found: Snapshot, old: Ints) -> Snapshot:
    """A snapshot of a renumbered task in the numbers of the original one."""
    return replace(found, solution=partial(_in_old_numbers, found, old))


def _in_old_numbers(found: Snapshot, old: Ints) -> Solution:
    return Solution([old[found.solution().tour]])

"""Use every kernel of the search for routes once on a tiny plan, to have it compiled or loaded."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from drhg.kernels.random import random_float, random_state
from drhg.problem import Solution
from drhg.problem.generate import as_matrix, x_cvrp
from drhg.search.routes.annealing import anneal_copies, anneal_together
from drhg.search.routes.context import route_lists, search_context
from drhg.search.routes.genetic import Genetic
from drhg.search.routes.local_search import local_search
from drhg.search.routes.piece_context import piece_context
from drhg.search.routes.population import Population
from drhg.search.routes.schedule import AnnealingSchedule
from drhg.search.routes.sequences import order_crossover, within_limits
from drhg.search.routes.split import split
from drhg.search.routes.strategy import Routes
from drhg.search.strategy import Budget, InThisThread, Task, task_of


def _task() -> Task:
    instance = as_matrix(x_cvrp(20, seed=0))
    start = Solution([np.array([node]) for node in range(1, instance.n)])
    return task_of(instance, start, 0, 1)


def rehearse_annealing() -> None:
    """Ruin and recreate, on a whole plan and on parts of it."""
    task, method = _task(), Routes()
    context = search_context(task, method)
    plan = route_lists(task, task.start.routes)
    schedule = AnnealingSchedule(
        Budget(10, share=0.5), 1.0, 1, task.instance.n, method.annealing, method.sizes.part_steps
    )
    next(anneal_copies(context, plan, InThisThread(), schedule))
    next(anneal_together(context, plan, InThisThread(), schedule))


def rehearse_pieces() -> None:
    """The same for pieces with resources."""
    instance = as_matrix(x_cvrp(20, seed=0))
    assert instance.matrix is not None
    instance = replace(
        instance, durations=instance.matrix.astype(np.float64), max_duration=1e6,
        windows=np.full((instance.n, 2), (0.0, 1e6)),
    )  # fmt: skip
    task = task_of(instance, Solution([np.arange(1, instance.n)[:3]]), 0, 1)
    method = Routes()
    context = piece_context(task, method)
    plan = context.plan(task.start)
    schedule = AnnealingSchedule(
        Budget(10, share=0.5), 1.0, 1, instance.n, method.annealing, method.sizes.part_steps
    )
    plan = next(anneal_copies(context, plan, InThisThread(), schedule))
    next(anneal_together(context, plan, InThisThread(), schedule))


def rehearse_population() -> None:
    """The genetic search but for its local search."""
    genetic, state = _genetic(), random_state(0)
    one = genetic.start()
    order = order_crossover(one.order, one.order, state)
    ends = split(genetic.problem, order, genetic.slots, genetic.penalties, 1.5)
    genetic._inherited(order, ends, (one, one))
    within_limits(genetic.problem, one.order, one.ends, genetic.slots)
    Population(2, len(genetic.nodes), genetic.penalties, genetic.params).add(one)
    random_float(state)


def rehearse_local_search() -> None:
    """The local search of the genetic search."""
    genetic = _genetic()
    order = np.arange(len(genetic.nodes), dtype=np.int32)
    settled = np.zeros(genetic.slots, np.int64)
    local_search(
        genetic.problem, order, order + np.int32(1), genetic.slots, genetic.penalties, settled,
        genetic.moves, random_state(0),
    )  # fmt: skip


def _genetic() -> Genetic:
    method = Routes()
    return Genetic(_task(), method.genetic, method.moves)

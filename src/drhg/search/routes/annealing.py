"""Simulated annealing of plans by ruin and recreate, on all threads."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor

import numpy as np

from drhg.kernels.random import random_state
from drhg.search.routes.context import Annealed, RouteLists, whole_part
from drhg.search.routes.route_groups import route_groups
from drhg.search.routes.schedule import AnnealingSchedule


def anneal_copies(
    context: Annealed, plan: RouteLists, pool: Executor, schedule: AnnealingSchedule
) -> Iterator[RouteLists]:
    """Every thread anneals a copy of the plan, several times if there is time; yields the best."""
    task, best = context.task, plan
    states = [random_state(task.seed, i) for i in range(task.threads)]
    costs = [plan.cost for _ in states]
    parts = [whole_part(context, plan) for _ in states]
    present = 0
    while True:
        schedule.divide()
        if schedule.anneal > present and not len(best.absent):
            present = schedule.anneal
            costs = [plan.cost for _ in states]
            parts = [whole_part(context, plan) for _ in states]
        temperature = context.scale * schedule.temperature()
        steps = schedule.steps(task.threads)
        jobs = [
            pool.submit(context.anneal, part, temperature, steps, state)
            for part, state in zip(parts, states, strict=True)
        ]
        for i, job in enumerate(jobs):
            change, lowest, left = job.result()
            if (left, costs[i] + lowest) <= best.rank:
                best = context.plan_of(parts[i], costs[i] + lowest, best=True)
            costs[i] += change
        schedule.count(steps * task.threads)
        yield best


def anneal_together(
    context: Annealed, plan: RouteLists, pool: Executor, schedule: AnnealingSchedule
) -> Iterator[RouteLists]:
    """All threads anneal one plan, each other routes of it in every slice; yields the best."""
    task, best = context.task, plan
    rng = np.random.default_rng([task.seed, 2])
    nobody = np.zeros(0, np.int64)
    while True:
        chosen = route_groups(task, plan, rng, context.params.sizes.part_customers)
        parts = [context.part(plan, group, nobody, len(chosen)) for group in chosen]
        temperature = context.scale * schedule.temperature()
        steps = schedule.steps(len(parts))
        stream = task.threads * (schedule.slices + 1)
        jobs = [
            pool.submit(
                context.anneal, part, temperature, steps, random_state(task.seed, stream + i)
            )
            for i, part in enumerate(parts)
        ]
        changes = [job.result() for job in jobs]
        # the best of every part together make the best plan of this slice
        low = plan.cost + sum(change[1] for change in changes)
        if low <= best.cost:
            best = context.merged(plan, chosen, parts, low, best=True)
        total = plan.cost + sum(change[0] for change in changes)
        plan = context.merged(plan, chosen, parts, total, best=False)
        schedule.count(steps * len(parts))
        yield best

"""Simulated annealing of plans by ruin and recreate, on all threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from drhg.hypergraph.plan import Index
from drhg.kernels.random import random_state
from drhg.search.routes.context import Annealed, RouteLists, whole_part
from drhg.search.routes.route_groups import route_groups
from drhg.search.routes.schedule import AnnealingSchedule

if TYPE_CHECKING:
    from drhg.parallel import Cluster
    from drhg.search.routes.route_pool import RoutePool


def complete(
    context: Annealed, plan: RouteLists, pool: Executor, schedule: AnnealingSchedule
) -> Iterator[RouteLists]:
    """Anneal a plan that leaves customers out as a whole, until every customer has a route."""
    if len(plan.absent):
        for better in anneal_copies(context, plan, pool, schedule):
            yield better
            if not len(better.absent):
                break


def improve(
    context: Annealed, plan: RouteLists, pool: Executor, schedule: AnnealingSchedule,
    seen: RoutePool | None = None,
) -> Iterator[RouteLists]:  # fmt: skip
    """Anneal copies of a small plan, or a large one together; yields the best, for ever."""
    if plan.customers <= context.params.sizes.copies:
        yield from anneal_copies(context, plan, pool, schedule, seen)
    else:
        yield from anneal_together(context, plan, pool, schedule)


def anneal_copies(
    context: Annealed, plan: RouteLists, pool: Executor, schedule: AnnealingSchedule,
    seen: RoutePool | None = None,
) -> Iterator[RouteLists]:  # fmt: skip
    """Every thread anneals a copy of the plan, several times if there is time; yields the best.

    Near the end of each anneal the routes that were seen are put together to a better plan.
    """
    task, best = context.task, plan
    states = [random_state(task.seed, i) for i in range(task.threads)]
    costs = [plan.cost for _ in states]
    parts = [whole_part(context, plan) for _ in states]
    present = combined = 0
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
            if seen is not None:
                seen.add(context.plan_of(parts[i], costs[i], best=False))
        schedule.count(steps * task.threads)
        if seen is not None:
            near_ends = int(schedule.position + 1.0 - seen.params.begin)
            if near_ends > combined and not len(best.absent):
                better = seen.cheapest(best)
                if better is not best:
                    best = better
                    costs = [best.cost for _ in states]
                    parts = [whole_part(context, best) for _ in states]
            combined = near_ends
        yield best


def anneal_together(
    context: Annealed, plan: RouteLists, pool: Executor, schedule: AnnealingSchedule
) -> Iterator[RouteLists]:
    """All threads anneal one plan, each other routes of it in every slice; yields the best.

    On a cluster its workers take the place of threads.
    """
    task, best = context.task, plan
    rng = np.random.default_rng([task.seed, 2])
    none_absent = np.zeros(0, np.int64)
    while True:
        chosen = route_groups(task, plan, rng, context.params.sizes.part_customers)
        parts = [context.part(plan, group, none_absent, len(chosen)) for group in chosen]
        temperature = context.scale * schedule.temperature()
        steps = schedule.steps(len(parts))
        stream = task.threads * (schedule.slices + 1)
        states = [random_state(task.seed, stream + i) for i in range(len(parts))]
        if task.cluster is None:
            jobs = [
                pool.submit(context.anneal, part, temperature, steps, state)
                for part, state in zip(parts, states, strict=True)
            ]
            changes = [job.result() for job in jobs]
        else:
            changes = _anneal_far_away(task.cluster, context, parts, temperature, steps, states)
        # the best of every part together make the best plan of this slice
        low = plan.cost + sum(change[1] for change in changes)
        if low <= best.cost:
            best = context.merged(plan, chosen, parts, low, best=True)
        total = plan.cost + sum(change[0] for change in changes)
        plan = context.merged(plan, chosen, parts, total, best=False)
        schedule.count(steps * len(parts))
        yield best


def _anneal_far_away(
    cluster: Cluster, context: Annealed, parts: list[Any], temperature: float, steps: int,
    states: list[npt.NDArray[np.uint64]],
) -> list[tuple[float, float, int]]:  # fmt: skip
    """What threads do to parts, done by workers; a part that is lost stays as it was."""
    jobs = [
        cluster.submit(annealed, context.annealer, part, temperature, steps, state)
        for part, state in zip(parts, states, strict=True)
    ]
    changes = []
    for i, job in enumerate(jobs):
        change, routes, best = job() or ((0.0, 0.0, 0), parts[i].routes, parts[i].best)
        parts[i] = parts[i]._replace(routes=routes, best=best)
        changes.append(change)
    return changes


def annealed(
    anneal: Callable[..., Any], part: Any, temperature: float, steps: int,
    state: npt.NDArray[np.uint64],
) -> tuple[Any, Any, Index]:  # fmt: skip
    """On a worker: the changes of cost, and what has changed of the part."""
    return anneal(part, temperature=temperature, steps=steps, state=state), part.routes, part.best

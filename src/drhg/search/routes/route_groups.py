"""Groups of neighbouring routes, one for every thread."""

from __future__ import annotations

import numpy as np

from drhg.hypergraph.plan import Flags, Index
from drhg.search.routes.context import RouteLists
from drhg.search.strategy import Task


def route_groups(task: Task, plan: RouteLists, rng: np.random.Generator, most: int) -> list[Index]:
    """Routes for every thread: those around a random customer, none twice; or simply the rest.

    A group has no more than about `most` customers.
    """
    n = len(plan.order)
    target = min(most, -(-n // task.threads))
    routes = np.arange(len(plan.ends), dtype=np.int32)
    sizes = np.diff(plan.ends, prepend=0)
    free = np.ones(len(routes), np.bool_)
    chosen: list[Index] = []
    for i in range(task.threads):
        left = routes[free]
        if len(left) == 0:
            break
        if i == task.threads - 1 and sizes[left].sum() <= most:
            chosen.append(left)
            break
        at = rng.integers(plan.ends[left] - sizes[left], plan.ends[left])
        seed = plan.order[at[rng.choice(len(left), p=sizes[left] / sizes[left].sum())]]
        chosen.append(_around(task, plan, seed, target, free))
        free[chosen[-1]] = False
    return chosen


def _around(task: Task, plan: RouteLists, seed: int, target: int, free: Flags) -> Index:
    """Free routes around a customer, nearest first: so many that they have `target` customers."""
    sizes = np.diff(plan.ends, prepend=0)
    route = np.full(task.instance.n, -1, np.int32)
    route[plan.order] = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
    near = route[task.nearness.around([seed], target)[0]]
    near = near[free[near]]
    ranked: Index = near[np.sort(np.unique(near, return_index=True)[1])]
    enough = int(np.searchsorted(np.cumsum(sizes[ranked]), target)) + 1
    return ranked[:enough]

"""The searches: each is a generator that works in slices and yields what it has after each one.

`regions` is the paper's loop, in Python, with any repairer. `kicks` and `strings` do many
destroy-and-repair steps per slice in compiled code. None of them looks at the clock: the length of
a slice decides when Python looks, never what is done, so results follow from seed and counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

import numpy as np

from drhg.compiled import random_state
from drhg.criteria import Accept
from drhg.hypergraph import (
    Index,
    Nearness,
    Plan,
    Rules,
    destroy_nearest,
    judge,
    plan_of,
    reduce,
    restore_in_place,
    rules_of,
    solution_of,
)
from drhg.local_search import (
    BREADTH,
    DEPTH,
    REACH,
    descend,
    improve_region,
    kick_and_settle,
    neighbour_lists,
)
from drhg.problem import Instance, Metric, Solution, cost
from drhg.repair import Repair

REGION = 10_000  # nodes of a large tour that are worked on at a time
SPLIT = 3_000  # from so many nodes on, threads share one tour instead of each having its own
WINDOW = 10_000  # positions up to which a destroyed cluster may spread along the tour
ROUND = 0.1  # kicks per node and visit of a region
WHOLE = 200_000  # up to here the whole tour is settled at once
SYNC = 20  # kicks per node after which threads with tours of their own take over the best


@dataclass(frozen=True)
class Snapshot:
    """What a search has after a slice."""

    iterations: int  # done in this slice
    cost: float  # of the best solution so far; inf while customers are left out
    solution: Callable[[], Solution]  # that solution, built when asked for


@dataclass(frozen=True)
class Task:
    """A search's problem: the instance in the forms that kernels need, and where to start."""

    instance: Instance
    rules: Rules
    nearness: Nearness
    start: Solution
    seed: int
    threads: int


def task_of(instance: Instance, start: Solution, seed: int, threads: int) -> Task:
    return Task(instance, rules_of(instance), Nearness(instance), start, seed, threads)


Slice: TypeAlias = Callable[[], int]
"""How many iterations to do before yielding again; what is left at most."""

Elapsed: TypeAlias = Callable[[], float]
"""The share of the search that is over, 0 to 1."""

Destroy: TypeAlias = Callable[[Rules, Plan, Nearness, np.random.Generator], tuple[Index, Index]]
"""Choose what to cut: rows of cut positions and how many each has."""


def nearest_cluster(low: int = 20, high: int = 100, depot_edges: str = "adjacent") -> Destroy:
    """Destroy k nodes nearest to a random node, k uniform in [low, high] (paper, "Testing")."""

    def destroy(
        rules: Rules, plan: Plan, nearness: Nearness, rng: np.random.Generator
    ) -> tuple[Index, Index]:
        top = min(high, len(nearness.nodes))
        k = int(rng.integers(min(low, top), top + 1))
        ranked = nearness.around(rng.choice(nearness.nodes, size=1), k)
        return destroy_nearest(rules, plan, ranked, k, depot_edges=depot_edges, reach=WINDOW)

    return destroy


def regions(
    task: Task, repair: Repair, destroy: Destroy, accept: Accept, slice: Slice, elapsed: Elapsed
) -> Iterator[Snapshot]:
    """Destroy a region, reduce it to a hyper-graph, repair that, judge, accept, restore."""
    rng = np.random.default_rng(task.seed)
    rules = task.rules
    plan = best = plan_of(rules, task.start)
    current = lowest = float(cost(task.instance, task.start))
    while True:
        todo = slice()
        for _ in range(todo):
            graphs = reduce(rules, plan, *destroy(rules, plan, task.nearness, rng))
            repaired = repair(rules, graphs, rng)
            good, change = judge(rules, plan, graphs, repaired)
            row = int(np.argmin(change))
            if good[row] and accept(float(change[row]), elapsed(), rng):
                if change[row] > 0 and plan is best:  # keep the best before leaving it
                    plan = replace(plan, order=plan.order.copy(), pos=plan.pos.copy())
                plan = restore_in_place(rules, plan, graphs, row, repaired)
                current += float(change[row])
                if current < lowest - 1e-9:
                    lowest, best = current, plan
        yield Snapshot(todo, lowest, partial(solution_of, rules, best))


def kicks(task: Task, slice: Slice) -> Iterator[Snapshot]:
    """k-opt local search and kicks on the whole tour, or on regions of a large one."""
    n = task.instance.n
    near = neighbour_lists(task.instance, task.nearness)
    tour = task.start.tour.astype(np.int32)
    pos = np.empty(n, np.int32)
    pos[tour] = np.arange(n, dtype=np.int32)
    how = (task.rules.space, task.rules.fixed, near, BREADTH, DEPTH)
    if n <= WHOLE:
        descend(*how, tour, pos)
        yield _tour(task, 0, tour)
    shared = task.instance.metric is not Metric.EXPLICIT and n >= SPLIT
    with ThreadPoolExecutor(task.threads) as pool:
        if shared and (task.threads > 1 or n > REGION):
            yield from _kick_regions(task, how, tour, pos, pool)
        else:
            yield from _kick_copies(task, how, tour, pos, pool, slice)


def _tour(task: Task, iterations: int, tour: Index) -> Snapshot:
    kept = Solution([tour.astype(np.int64)])
    return Snapshot(iterations, float(cost(task.instance, kept)), lambda: kept)


def _kick_copies(
    task: Task,
    how: tuple[object, ...],
    tour: Index,
    pos: Index,
    pool: ThreadPoolExecutor,
    slice: Slice,
) -> Iterator[Snapshot]:
    """Every thread kicks a tour of its own; now and then all go on from the best."""
    copies = [(tour.copy(), pos.copy(), random_state(task.seed, i)) for i in range(task.threads)]
    until_sync = SYNC * task.instance.n
    while True:
        each = max(1, min(-(-slice() // task.threads), until_sync))
        work = [pool.submit(kick_and_settle, *how, *copy, each, REACH) for copy in copies]
        for job in work:
            job.result()
        # by exact costs, not by sums of gains, whose last digits depend on the slices
        tours = [_tour(task, each * task.threads, copy[0]) for copy in copies]
        best = min(range(task.threads), key=lambda i: tours[i].cost)
        yield tours[best]
        until_sync -= each
        if until_sync == 0:
            until_sync = SYNC * task.instance.n
            for i in range(task.threads):
                copies[i][0][:], copies[i][1][:] = copies[best][0], copies[best][1]


def _kick_regions(
    task: Task, how: tuple[object, ...], tour: Index, pos: Index, pool: ThreadPoolExecutor
) -> Iterator[Snapshot]:
    """All threads work on one tour: each has a stretch of it, and in that one region at a time.

    What happens in different stretches always fits together. Their boundaries move every round.
    """
    n, threads = len(tour), task.threads
    rng = np.random.default_rng([task.seed, 1])
    scratch = [np.zeros(n, np.int32) for _ in range(threads)]
    sizes = np.diff(np.linspace(0, n, threads + 1).astype(np.int64))
    for round_ in range(2**31):
        starts = np.mod(int(rng.integers(n)) + np.cumsum(sizes) - sizes, n)
        for turn in range(max(1, n // (REGION * threads * 4))):
            jobs, done = [], 0
            for i in range(threads):
                members = _region(task, tour, int(starts[i]), int(sizes[i]), rng)
                todo = int(len(members) * ROUND)
                state = random_state(task.seed, 2 + (round_ * n + turn) * threads + i)
                where = (int(starts[i]), int(sizes[i]), members, scratch[i], state, todo, REACH)
                jobs.append(pool.submit(improve_region, *how, tour, pos, *where))
                done += todo
            if sum(job.result() for job in jobs) > 0:
                yield _tour(task, done, tour)


def _region(task: Task, tour: Index, start: int, size: int, rng: np.random.Generator) -> Index:
    """All nodes of a stretch if they are few, else those around one of them."""
    n = len(tour)
    if size <= REGION:
        return np.take(tour, start + np.arange(size), mode="wrap")
    centre = tour[(start + int(rng.integers(size))) % n]
    around: Index = task.nearness.around([centre], REGION)[0]
    return around

"""The searches: each is a generator that works in slices and yields what it has after each one.

`regions` is the paper's loop, in Python, with any repairer. `kicks` and `strings` do many
destroy-and-repair steps per slice in compiled code. None of them looks at the clock: the length of
a slice decides when Python looks, never what is done, so results follow from seed and counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from drhg import strings as string_removal
from drhg.compiled import random_state
from drhg.criteria import Accept
from drhg.hypergraph import (
    Graphs,
    Index,
    Nearness,
    Plan,
    Repaired,
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

if TYPE_CHECKING:
    from drhg.neural import NeuralRepair

REGION = 10_000  # nodes of a large tour that are worked on at a time
SPLIT = 3_000  # from so many nodes on, threads share one tour instead of each having its own
WINDOW = 10_000  # positions up to which a destroyed cluster may spread along the tour
ROUND = 0.1  # kicks per node and visit of a region
WHOLE = 200_000  # up to here the whole tour is settled at once
SYNC = 20  # kicks per node after which threads with tours of their own take over the best
HOT, COLD = 0.3, 0.01  # temperatures of the string search, in mean edge lengths
EXCHANGES = 10  # times that string searches on several threads take over the best plan


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


def nearest_cluster(
    low: int = 20, high: int = 100, depot_edges: str = "adjacent", grid: int = 0
) -> Destroy:
    """Destroy k nodes nearest to a centre, k uniform in [low, high] (paper, "Testing").

    The centre is a random node, or with `grid` a random cell's middle in a grid of so many cells
    per side over the instance (the paper's choice for tours, with grid = sqrt(T)).
    """

    def destroy(
        rules: Rules, plan: Plan, nearness: Nearness, rng: np.random.Generator
    ) -> tuple[Index, Index]:
        top = min(high, len(nearness.nodes))
        k = int(rng.integers(min(low, top), top + 1))
        if grid > 0:
            centre = nearness.corner + (rng.integers(grid, size=2) + 0.5) / grid * nearness.extent
            ranked = nearness.around_points(centre[None, :], k)
        else:
            ranked = nearness.around(rng.choice(nearness.nodes, size=1), k)
        return destroy_nearest(rules, plan, ranked, k, depot_edges=depot_edges, reach=WINDOW)

    return destroy


class _Walk:
    """The state of the paper's loop on one instance: where it is, and the best it has seen."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.rng = np.random.default_rng(task.seed)
        self.plan = self.best = plan_of(task.rules, task.start)
        self.current = self.lowest = float(cost(task.instance, task.start))

    def destroyed(self, destroy: Destroy) -> Graphs:
        rules = self.task.rules
        return reduce(rules, self.plan, *destroy(rules, self.plan, self.task.nearness, self.rng))

    def take(self, graphs: Graphs, repaired: Repaired, accept: Accept, elapsed: float) -> None:
        """Judge a repair, and go there if it is accepted."""
        rules = self.task.rules
        good, change = judge(rules, self.plan, graphs, repaired)
        row = int(np.argmin(change))
        if not good[row] or not accept(float(change[row]), elapsed, self.rng):
            return
        if change[row] > 0 and self.plan is self.best:  # keep the best before leaving it
            self.plan = replace(self.plan, order=self.plan.order.copy(), pos=self.plan.pos.copy())
        self.plan = restore_in_place(rules, self.plan, graphs, row, repaired)
        self.current += float(change[row])
        if self.current < self.lowest - 1e-9:
            self.lowest, self.best = self.current, self.plan

    def snapshot(self, iterations: int) -> Snapshot:
        return Snapshot(iterations, self.lowest, partial(solution_of, self.task.rules, self.best))


def regions(
    task: Task, repair: Repair, destroy: Destroy, accept: Accept, slice: Slice, elapsed: Elapsed
) -> Iterator[Snapshot]:
    """Destroy a region, reduce it to a hyper-graph, repair that, judge, accept, restore."""
    walk = _Walk(task)
    while True:
        todo = slice()
        for _ in range(todo):
            graphs = walk.destroyed(destroy)
            walk.take(graphs, repair(task.rules, graphs, walk.rng), accept, elapsed())
        yield walk.snapshot(todo)


def regions_together(
    tasks: Sequence[Task],
    repair: NeuralRepair,
    destroy: Destroy,
    accept: Accept,
    elapsed: Elapsed,
    running: Callable[[], Sequence[int]],
) -> Iterator[list[tuple[int, Snapshot]]]:
    """The same on several instances side by side; each iteration is one batch for the network.

    Every instance has its own random numbers, so it takes the steps that it would take alone.
    `running` says which are still to be improved.
    """
    walks = [_Walk(task) for task in tasks]
    while left := running():
        graphs = [walks[i].destroyed(destroy) for i in left]
        asked = [
            (walks[i].task.rules, graph, walks[i].rng)
            for i, graph in zip(left, graphs, strict=True)
        ]
        answers = zip(left, graphs, repair.together(asked), strict=True)
        over = elapsed()
        for i, graph, repaired in answers:
            walks[i].take(graph, repaired, accept, over)
        yield [(i, walks[i].snapshot(1)) for i in left]


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


def strings(
    task: Task, slice: Slice, elapsed: Elapsed, max_iters: int | None
) -> Iterator[Snapshot]:
    """String removal and insertion under annealing, one chain per thread, on a whole plan."""
    instance, rules, threads = task.instance, task.rules, task.threads
    near = neighbour_lists(instance, task.nearness, 100)
    plans = [string_removal.routes_of(rules, task.start) for _ in range(threads)]
    states = [random_state(task.seed, i) for i in range(threads)]
    bests = [(plan.next.copy(), plan.first.copy()) for plan in plans]
    now = float(cost(instance, task.start))
    complete = bool((plans[0].route[task.nearness.nodes] >= 0).all())
    hot = HOT * now / max(1, instance.n + len(task.start.routes))
    chains = [(now, now if complete else np.inf, hot)] * threads  # cost, lowest cost, temperature
    # With an iteration limit the temperature falls with every step, else with the clock.
    cooling = 1.0 if max_iters is None else (COLD / HOT) ** (threads / max(1, max_iters))
    period = None if max_iters is None else max(1, max_iters // (EXCHANGES * threads))

    def run(i: int, steps: int) -> tuple[float, float, float]:
        current, lowest, heat = chains[i]
        result: tuple[float, float, float] = string_removal.string_slice(
            rules, task.nearness.nodes, near, plans[i],
            current, lowest, *bests[i], heat, cooling, steps, states[i],
        )  # fmt: skip
        return result

    steps = exchanges = 0
    with ThreadPoolExecutor(threads) as pool:
        while True:
            each = max(1, slice() // threads)
            if period is None:
                over = elapsed()
                due = over * EXCHANGES >= exchanges + 1
                chains = [(c, lowest, hot * (COLD / HOT) ** over) for c, lowest, _ in chains]
            else:
                each = min(each, period - steps % period)
                due = (steps + each) % period == 0
            chains = list(pool.map(run, range(threads), [each] * threads))
            steps += each
            best = min(range(threads), key=lambda i: chains[i][1])
            arrays = (bests[best][0].copy(), bests[best][1].copy(), rules.depot)
            found = partial(string_removal.solution_of_routes, *arrays)
            yield Snapshot(each * threads, chains[best][1], found)
            if due and threads > 1:
                exchanges += 1
                source = min(range(threads), key=lambda i: chains[i][0])
                for plan in plans:
                    plan.take_over(plans[source])
                chains = [(chains[source][0], lowest, heat) for _, lowest, heat in chains]

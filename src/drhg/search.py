"""The searches: each is a generator that works in slices and yields what it has after each one.

`regions` is the paper's loop, in Python, with any repairer. `tours` does many destroy-and-repair
steps per slice in compiled code, as `route_search` does for routes. None of them looks at the
clock: the length of a slice decides when Python looks, never what is done, so results follow from
seed and counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from drhg import assembly, precompile
from drhg.compiled import random_state
from drhg.construct import hilbert_order, shaken_greedy
from drhg.criteria import Accept
from drhg.destroy import Destroy
from drhg.generate import uniform_tsp
from drhg.hypergraph import (
    Graphs,
    Index,
    Nearness,
    Repaired,
    Rules,
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
    candidate_lists,
    descend,
    improve_region,
    kick_and_settle,
    neighbour_lists,
)
from drhg.problem import Instance, Ints, Metric, Solution, cost
from drhg.repair import Repair

if TYPE_CHECKING:
    from drhg.neural import NeuralRepair

REGION = 10_000  # nodes of a large tour that are worked on at a time
SPLIT = 3_000  # from so many nodes on, threads share one tour instead of each having its own
ROUND = 0.1  # kicks per node and visit of a region
WHOLE = 200_000  # up to here the whole tour is settled at once
BREED = 8  # nodes from which on a population of tours is bred, if the time is enough
FIRST = 8, 32  # tours of the first population; the next are as large as the time left allows
COURSE = 0.4, 0.3  # a first population takes the time of making 0.4 n^0.3 times as many tours
GROWTH = 5  # times as many at most
CROWD = 6_000_000  # nodes of a population at most, over all its tours
FINISH = 0.85  # share of the search after which only the shortest tour counts, not diversity
STALE = 10  # generations that must bring something
LOOK = 500  # nodes for which the loop on regions takes one more step between two looks
PAIRS = 20_000  # nodes of pairs that a thread breeds between two looks
KICKS = 5_000  # of a thread between two looks
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


def renumbered(instance: Instance) -> tuple[Instance, Ints]:
    """The same TSP with nodes numbered along a Hilbert curve, and the old number of every node.

    What is close then lies close in memory, which large tours need more than anything else.
    """
    assert instance.xy is not None
    old = hilbert_order(instance.xy)
    new = np.empty_like(old)
    new[old] = np.arange(len(old))
    fixed = tuple((int(new[a]), int(new[b])) for a, b in instance.fixed_edges)
    return replace(instance, xy=instance.xy[old], fixed_edges=fixed), old


def task_of(instance: Instance, start: Solution, seed: int, threads: int) -> Task:
    return Task(instance, rules_of(instance), Nearness(instance), start, seed, threads)


Slice: TypeAlias = Callable[[int], int]
"""How many iterations to do before yielding again, what is left at most; given how many take a
moment, some hundredths or tenths of a second."""

Elapsed: TypeAlias = Callable[[], float]
"""The share of the search that is over, 0 to 1."""


class Here(Executor):
    """Runs what it is given at once, in the caller's thread."""

    def submit(self, work: Callable[..., Any], /, *args: Any, **options: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(work(*args, **options))
        return done


class _Walk:
    """The state of the paper's loop on one instance: where it is, and the best it has seen."""

    def __init__(self, task: Task, destroy: Destroy) -> None:
        self.task = task
        # what an operator learns here is nothing to another search
        self.destroy = deepcopy(destroy) if hasattr(destroy, "learn") else destroy
        self.learn: Callable[[float], None] | None = getattr(self.destroy, "learn", None)
        self.rng = np.random.default_rng(task.seed)
        self.plan = self.best = plan_of(task.rules, task.start)
        self.current = self.lowest = float(cost(task.instance, task.start))

    def destroyed(self) -> Graphs:
        rules, nearness = self.task.rules, self.task.nearness
        return reduce(rules, self.plan, *self.destroy(rules, self.plan, nearness, self.rng))

    def take(self, graphs: Graphs, repaired: Repaired, accept: Accept, elapsed: float) -> None:
        """Judge a repair, and go there if it is accepted."""
        rules = self.task.rules
        good, change = judge(rules, self.plan, graphs, repaired)
        row = int(np.argmin(change))
        taken = bool(good[row]) and accept(float(change[row]), elapsed, self.rng)
        if self.learn is not None:
            self.learn(-float(change[row]) if taken else 0.0)
        if not taken:
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
    walk = _Walk(task, destroy)
    while True:
        todo = slice(1 + task.instance.n // LOOK)
        for _ in range(todo):
            graphs = walk.destroyed()
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
    walks = [_Walk(task, destroy) for task in tasks]
    while left := running():
        graphs = [walks[i].destroyed() for i in left]
        asked = [
            (walks[i].task.rules, graph, walks[i].rng)
            for i, graph in zip(left, graphs, strict=True)
        ]
        answers = zip(left, graphs, repair.together(asked), strict=True)
        over = elapsed()
        for i, graph, repaired in answers:
            walks[i].take(graph, repaired, accept, over)
        yield [(i, walks[i].snapshot(1)) for i in left]


def tours(task: Task, slice: Slice, elapsed: Elapsed) -> Iterator[Snapshot]:
    """Breed a population of tours, or kick one large tour; large ones with nodes renumbered."""
    if task.instance.n < SPLIT or task.instance.metric is Metric.EXPLICIT:
        yield from _tours(task, slice, elapsed)
        return
    instance, old = renumbered(task.instance)
    start = Solution([np.argsort(old)[task.start.tour]])
    for found in _tours(task_of(instance, start, task.seed, task.threads), slice, elapsed):
        yield replace(found, solution=partial(_numbered_back, found.solution, old))


def _numbered_back(solution: Callable[[], Solution], old: Ints) -> Solution:
    return Solution([old[solution().tour]])


def _tours(task: Task, slice: Slice, elapsed: Elapsed) -> Iterator[Snapshot]:
    n = task.instance.n
    lists = candidate_lists if n <= WHOLE else neighbour_lists
    near = lists(task.instance, task.nearness)
    tour = task.start.tour.astype(np.int32)
    pos = np.empty(n, np.int32)
    pos[tour] = np.arange(n, dtype=np.int32)
    how = (task.rules.space, task.rules.fixed, near, BREADTH, DEPTH)
    if n <= WHOLE:
        descend(*how, tour, pos)
        best = _tour(task, 0, tour)
        yield best
    shared = task.instance.metric is not Metric.EXPLICIT and n >= SPLIT
    with ThreadPoolExecutor(task.threads) as pool:
        if BREED <= n <= WHOLE:
            found = best
            for found in _breed(task, how, best, pool, slice, elapsed):
                yield found
            tour[:] = found.solution().tour  # if it gave up
            pos[tour] = np.arange(n, dtype=np.int32)
        if shared and (task.threads > 1 or n > REGION):
            yield from _kick_regions(task, how, tour, pos, pool)
        else:
            yield from _kick_copies(task, how, tour, pos, pool, slice)


def _tour(task: Task, iterations: int, tour: Index) -> Snapshot:
    kept = Solution([tour.astype(np.int64)])
    return Snapshot(iterations, float(cost(task.instance, kept)), lambda: kept)


class _Herd:
    """A population of locally optimal tours and their costs."""

    def __init__(self, task: Task, how: tuple[Any, ...], size: int) -> None:
        self.task, self.how = task, how
        self.population = assembly.population_of(size, how[2])
        self.costs = np.full(size, np.inf)

    def settle(
        self, row: int, make: Callable[[np.random.Generator], Ints], rng: np.random.Generator
    ) -> None:
        """Make a tour, improve it to a local optimum and put it in."""
        order = make(rng)
        tour, pos = order.astype(np.int32), np.empty(len(order), np.int32)
        pos[tour] = np.arange(len(order), dtype=np.int32)
        descend(*self.how, tour, pos)
        self.admit(row, tour)

    def admit(self, row: int, tour: Index) -> None:
        """Put a tour in as it is."""
        assembly.admit(self.population, row, tour)
        self.costs[row] = cost(self.task.instance, Solution([tour.astype(np.int64)]))

    def breed(self, fathers: Ints, mothers: Ints, *how: object) -> None:
        """Let pairs have children, see `assembly.breed`."""
        self.costs[fathers] -= assembly.breed(
            *self.how[:3], self.population, fathers, mothers, *how
        )

    def snapshot(self, iterations: int, best: Snapshot) -> Snapshot:
        """The best of these and one from before."""
        row = int(np.argmin(self.costs))
        if not self.costs[row] < best.cost - 1e-9:
            return replace(best, iterations=iterations)
        kept = Solution([self.population.tours[row].astype(np.int64)])
        return Snapshot(iterations, float(self.costs[row]), lambda: kept)


def _breed(
    task: Task,
    how: tuple[Any, ...],
    best: Snapshot,
    pool: Executor,
    slice: Slice,
    elapsed: Elapsed,
) -> Iterator[Snapshot]:
    """Populations of locally optimal tours, each bred until nothing comes of it any more.

    The start is one of the first, and the best of those before joins each that is through. An
    iteration is a tour made or a pair bred. Every thread has its own part of a generation, so
    that nothing depends on how often Python looks.
    """
    n, threads = task.instance.n, task.threads
    rng = np.random.default_rng([task.seed, 2])
    states = [random_state(task.seed, 1 + i) for i in range(threads)]
    make = shaken_greedy(task.instance, how[2])
    given = best.solution().tour
    makes: list[Callable[[np.random.Generator], Ints]] = [lambda _: given]
    size = first = max(FIRST[0], min(FIRST[1], 160_000 // n))
    course = COURSE[0] * n ** COURSE[1] * first
    while True:
        makes += [make] * (size - len(makes))
        begun = elapsed()
        herd = _Herd(task, how, size)
        for begin in range(0, size, threads):
            rows = range(begin, min(begin + threads, size))
            chances = rng.spawn(len(rows))
            list(pool.map(herd.settle, rows, makes[begin : rows.stop], chances))
            best = herd.snapshot(len(rows), best)
            yield best
            if size == first and (elapsed() - begun) * course > rows.stop:
                return  # the time given will not do
        makes = []
        history = [(float(herd.costs.mean()), best.cost)]
        while True:
            stale = len(history) > STALE and not _moving(history)
            last = FINISH < elapsed() < 1.0  # 1 all along if the end is not known
            if (last or stale) and best.cost < herd.costs.min() - 1e-9:
                herd.admit(int(np.argmax(herd.costs)), best.solution().tour.astype(np.int32))
                history = history[-1:]
            elif stale:
                break
            assembly.count_shares(how[2], herd.population)
            parts = np.array_split(rng.permutation(size), min(threads, size))
            guests = herd.population.links[[part[0] for part in parts]]
            done = 0
            while done < len(parts[0]):
                each = max(1, -(-slice(max(1, PAIRS // n) * threads) // len(parts)))
                jobs = []
                for i, part in enumerate(parts):
                    fathers = part[done : done + each]
                    guest = -1 - (i + 1) % len(parts)  # the first of the next part, as it was
                    mothers = np.append(part, guest)[done + 1 :][: len(fathers)]
                    what = (guests, assembly.KIDS, not last, states[i])
                    jobs.append(pool.submit(herd.breed, fathers, mothers, *what))
                for job in jobs:
                    job.result()
                best = herd.snapshot(min(each, len(parts[0]) - done) * len(parts), best)
                done += each
                yield best
            history.append((float(herd.costs.mean()), best.cost))
        now = elapsed()
        grow = 0.6 * (1 - now) / (now - begun) if now > begun else 2.0
        size = max(first, min(int(size * min(grow, GROWTH)), CROWD // n))


def _moving(history: list[tuple[float, float]]) -> bool:
    """Whether the mean or the best of a population has fallen in the last generations."""
    mean, best = history[-1 - STALE]
    return history[-1][1] < best - 1e-9 or history[-1][0] < mean * (1 - 1e-4)


def _kick_copies(
    task: Task,
    how: tuple[Any, ...],
    tour: Index,
    pos: Index,
    pool: Executor,
    slice: Slice,
) -> Iterator[Snapshot]:
    """Every thread kicks a tour of its own; now and then all go on from the best."""
    copies = [(tour.copy(), pos.copy(), random_state(task.seed, i)) for i in range(task.threads)]
    until_sync = SYNC * task.instance.n
    while True:
        each = max(1, min(-(-slice(KICKS * task.threads) // task.threads), until_sync))
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
    task: Task, how: tuple[Any, ...], tour: Index, pos: Index, pool: Executor
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
            for job in jobs:
                job.result()
            yield _tour(task, done, tour)


def _region(task: Task, tour: Index, start: int, size: int, rng: np.random.Generator) -> Index:
    """All nodes of a stretch if they are few, else those around one of them."""
    n = len(tour)
    if size <= REGION:
        return np.take(tour, start + np.arange(size), mode="wrap")
    centre = tour[(start + int(rng.integers(size))) % n]
    around: Index = task.nearness.around([centre], REGION)[0]
    return around


def parts(instance: Instance) -> list[precompile.Part]:
    """The kernels that the search for a tour of this instance may need."""
    needed = [precompile.MOVES]
    if BREED <= instance.n <= WHOLE:
        needed.append(precompile.POPULATION)
    if instance.n >= SPLIT and instance.metric is not Metric.EXPLICIT:
        needed.append(precompile.REGIONS)
    return needed


def _rehearsal(n: int) -> tuple[Task, tuple[Any, ...], Index, Index]:
    """A tiny task, and what the searches for tours make of it first."""
    instance = uniform_tsp(n, seed=0)
    task = task_of(instance, Solution([np.arange(n)]), 0, 1)
    near = candidate_lists(instance, task.nearness)
    tour = np.arange(n, dtype=np.int32)
    return task, (task.rules.space, task.rules.fixed, near, BREADTH, DEPTH), tour, tour.copy()


def rehearse_moves() -> None:
    """Use every kernel of k-opt moves on a whole tour once, to have them compiled or loaded."""
    task, how, tour, pos = _rehearsal(20)
    descend(*how, tour, pos)
    next(_kick_copies(task, how, tour, pos, Here(), lambda moment: 2))


def rehearse_regions() -> None:
    """Use every kernel of k-opt moves on regions of a large tour once."""
    next(_kick_regions(*_rehearsal(20), Here()))


def rehearse_population() -> None:
    """Use every kernel of edge assembly once."""
    task, how, _, _ = _rehearsal(20)
    make, rng = shaken_greedy(task.instance, how[2]), np.random.default_rng(0)
    herd = _Herd(task, how, 2)
    for row in range(2):
        herd.admit(row, make(rng).astype(np.int32))
    assembly.count_shares(how[2], herd.population)
    fathers, mothers = np.array([0]), np.array([1])
    guests = herd.population.links[[0]]
    herd.breed(fathers, mothers, guests, assembly.KIDS, True, random_state(0))

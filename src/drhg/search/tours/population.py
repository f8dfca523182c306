"""A population of tours, crossed by edge assembly."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from itertools import repeat
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from drhg.construct.starts import shaken_greedy
from drhg.hypergraph.plan import Index
from drhg.kernels.random import random_state
from drhg.local_search.kopt import kick_and_improve, workspace_of
from drhg.problem import Ints, Solution, cost
from drhg.problem.tolerances import GAIN
from drhg.search.strategy import Budget, Snapshot
from drhg.search.tours.edge_assembly import (
    Crossing,
    Pairs,
    count_edges,
    cross,
    crossing_of,
    population_of,
    set_tour,
)
from drhg.search.tours.params import PopulationParams
from drhg.search.tours.tour import Subject

Maker: TypeAlias = Callable[[np.random.Generator], Ints]


class CrossingThread(NamedTuple):
    """What a thread that crosses tours has for itself."""

    crossing: Crossing
    state: npt.NDArray[np.uint64]


class TourPopulation:
    """Locally optimal tours and their costs."""

    def __init__(self, subject: Subject, size: int) -> None:
        self.subject = subject
        self.arrays = population_of(size, subject.context.near)
        self.costs = np.full(size, np.inf)

    def set_tour(self, row: int, order: Index) -> None:
        """Put a tour in as it is."""
        set_tour(self.arrays, row, order)
        self.costs[row] = cost(self.subject.task.instance, Solution([order.astype(np.int64)]))

    def make_tour(self, row: int, make: Maker, kicks: int, rng: np.random.Generator) -> None:
        """Make a tour, improve it to a local optimum, kick that, and put it in."""
        subject = self.subject
        tour = subject.local_optimum(make(rng))
        how = (random_state(int(rng.integers(2**63))), kicks, subject.moves.longest_kick)
        kick_and_improve(subject.context, *tour, workspace_of(len(tour.order)), *how)
        self.set_tour(row, tour.order)

    def make_tours(
        self, makers: Sequence[Maker], kicks: int, rng: np.random.Generator, pool: Executor
    ) -> Iterator[int]:
        """Fill all rows, as many at a time as there are threads; yields how many were filled."""
        threads = self.subject.task.threads
        for begin in range(0, len(makers), threads):
            some = makers[begin : begin + threads]
            rows = range(begin, begin + len(some))
            list(pool.map(self.make_tour, rows, some, repeat(kicks), rng.spawn(len(some))))
            yield len(some)

    def keep(self, size: int) -> None:
        """Do without the rows from `size` on."""
        old, self.arrays = self.arrays, population_of(size, self.subject.context.near)
        self.arrays = self.arrays._replace(
            orders=old.orders[:size], poses=old.poses[:size], links=old.links[:size]
        )
        self.costs = self.costs[:size]

    def cross(self, pairs: Pairs, crossing: Crossing, *how: object) -> None:
        """Let tours take edges of others, see `edge_assembly.cross`."""
        cross(self.subject.context, self.arrays, crossing, pairs, *how)
        self.costs[pairs.first] -= pairs.gains

    def generation(
        self,
        params: PopulationParams,
        diverse: bool,
        rng: np.random.Generator,
        threads: Sequence[CrossingThread],
        pool: Executor,
        budget: Budget,
    ) -> Iterator[int]:
        """Cross every tour with the next one in random order; yields how many pairs were crossed.

        Every thread has a part of the order for itself, so that nothing depends on the slices.
        """
        size, n = self.arrays.orders.shape
        count_edges(self.subject.context.near, self.arrays)
        parts = np.array_split(rng.permutation(size), min(len(threads), size))
        guests = self.arrays.links[[part[0] for part in parts]]  # these change before their turn
        usual = max(1, params.nodes_per_slice // n) * len(threads)
        done = 0
        while done < len(parts[0]):
            each = max(1, -(-budget.slice(usual) // len(parts)))
            jobs = []
            for i, part in enumerate(parts):
                first = part[done : done + each]
                guest = -1 - (i + 1) % len(parts)
                second = np.append(part, guest)[done + 1 :][: len(first)]
                pairs = Pairs(first, second, guests, np.empty(len(first)))
                how = (threads[i].crossing, params.children, diverse, threads[i].state)
                jobs.append(pool.submit(self.cross, pairs, *how))
            for job in jobs:
                job.result()
            yield min(each, len(parts[0]) - done) * len(parts)
            done += each

    def best_of(self, iterations: int, best: Snapshot) -> Snapshot:
        """The shortest of these tours and one from before."""
        row = int(np.argmin(self.costs))
        if not self.costs[row] < best.cost - GAIN:
            return replace(best, iterations=iterations)
        kept = Solution([self.arrays.orders[row].astype(np.int64)])
        return Snapshot(iterations, float(self.costs[row]), lambda: kept)


def evolve(
    subject: Subject, best: Snapshot, params: PopulationParams, pool: Executor, budget: Budget
) -> Iterator[Snapshot]:
    """One population after the other, each until it brings nothing more; ends if time is short.

    The start is in the first population; the best tour so far joins each that has come to its end.
    How long a population takes is seen when its first tours have been made.
    An iteration is a tour made or a pair crossed.
    """
    task = subject.task
    n = task.instance.n
    rng = np.random.default_rng([task.seed, 2])
    threads = [
        CrossingThread(crossing_of(n), random_state(task.seed, 1 + i)) for i in range(task.threads)
    ]
    make = shaken_greedy(task.instance, subject.context.near.astype(np.int64))
    start = best.solution().tour
    size = params.first_size(n)
    makers: list[Maker] = [lambda _: start, *[make] * (size - 1)]
    kicks = int(params.kicks_per_node * n)
    while True:
        begun = budget.fraction() or 0.0
        population = TourPopulation(subject, size)
        made = 0
        for count in population.make_tours(makers, kicks, rng, pool):
            made += count
            best = population.best_of(count, best)
            yield best
            used = (budget.fraction() or 0.0) - begun
            affordable = params.affordable(n, 1.0 - begun, made, used)
            if affordable < params.smallest:
                return
            if affordable < made + 1:
                population.keep(made)
                break
        progress = Progress(params, population, best)
        while True:
            diverse = (budget.fraction() or 0.0) <= params.greedy_from
            stagnates = progress.stagnates()
            if (stagnates or not diverse) and best.cost < population.costs.min() - GAIN:
                worst = int(np.argmax(population.costs))
                population.set_tour(worst, best.solution().tour.astype(np.int32))
                progress.restart()
            elif stagnates:
                break
            for count in population.generation(params, diverse, rng, threads, pool, budget):
                best = population.best_of(count, best)
                yield best
            progress.note(population, best)
        size = params.next_size(n, size, begun, budget.fraction() or 0.0)
        makers = [make] * size


class Progress:
    """The mean and the best of a population, generation by generation."""

    def __init__(
        self, params: PopulationParams, population: TourPopulation, best: Snapshot
    ) -> None:
        self.params = params
        self.history: list[tuple[float, float]] = []
        self.note(population, best)

    def note(self, population: TourPopulation, best: Snapshot) -> None:
        self.history.append((float(population.costs.mean()), best.cost))

    def restart(self) -> None:
        """Count the generations anew."""
        self.history = self.history[-1:]

    def stagnates(self) -> bool:
        """Whether neither has become less within the number of generations allowed for that."""
        patience = self.params.patience
        if len(self.history) <= patience:
            return False
        mean, best = self.history[-1 - patience]
        now_mean, now_best = self.history[-1]
        least = self.params.least_progress
        return not (now_best < best - GAIN or now_mean < mean * (1 - least))

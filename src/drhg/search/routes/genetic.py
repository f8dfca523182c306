"""Hybrid genetic search (Vidal 2022) for small plans.

A child keeps a stretch of one parent's sequence of customers and takes the rest in the order of the
other; cut into routes at the least cost, it is improved by a local search that may exceed limits at
a penalty. Most of its routes are those of a parent, in which no move paid, so the local search
looks only at what is new.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Executor, Future
from functools import partial
from itertools import zip_longest
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from drhg.hypergraph.plan import Index
from drhg.kernels.random import random_float, random_state
from drhg.local_search.candidates import neighbour_lists
from drhg.problem import Floats, Ints, Solution
from drhg.problem.tolerances import GAIN
from drhg.search.routes.local_search import local_search
from drhg.search.routes.params import GeneticParams, RouteMoveParams
from drhg.search.routes.parts import solution_of_lists
from drhg.search.routes.penalties import Penalties, RouteLimits, penalised_problem
from drhg.search.routes.population import Individual, Population
from drhg.search.routes.sequences import (
    inherited,
    measure,
    neighbours_of,
    order_crossover,
    sorted_by_angle,
    within_limits,
)
from drhg.search.routes.split import split
from drhg.search.strategy import Snapshot, Task

Parents: TypeAlias = tuple[Individual, Individual] | None  # None for a random child
Family: TypeAlias = list[Individual]  # a child, and perhaps the same child repaired


def genetic_search(
    task: Task, params: GeneticParams, moves: RouteMoveParams, pool: Executor, max_iters: int | None
) -> Iterator[Snapshot]:
    """Generations of children, on all threads at once; never ends by itself.

    A population that brings nothing better any more is followed by a larger one, which the best
    individual of those before joins once it is at its end, too. A child counts as one iteration per
    customer: each is moved, or tried to be, at least once.
    """
    genetic = Genetic(task, params, moves)
    batches = Batches(genetic, pool, max_iters)
    best = start = genetic.start()
    size = params.population_size
    while True:
        population = Population(size, len(genetic.nodes), genetic.penalties, params)
        if best is start:
            population.add(start)
        patience = params.patience * size
        low, stale = np.inf, 0  # the population's best cost, and how many children came after it
        batches.begin(params.initial_children * size)
        while batches.waiting or stale < patience:
            while len(batches.waiting) < 2 and stale < patience:
                batches.ask(population)
            families = batches.take()
            for family in families:
                stale += 1
                population.count(family[0])
                for one in family:
                    population.add(one)
                    if one.feasible and one.cost < low - GAIN:
                        low, stale = one.cost, 0
                        best = min(best, one, key=lambda other: other.cost)
            if stale >= patience and low > best.cost:
                population.add(best)
                low, stale = best.cost, 0
            count = batches.iterations(len(families))
            yield Snapshot(count, best.cost, partial(genetic.solution, best))
        size = min(params.growth * size, params.largest_population)


class Batches:
    """Batches of children: while one is looked at, the threads are busy with the next."""

    def __init__(self, genetic: Genetic, pool: Executor, max_iters: int | None) -> None:
        task = genetic.task
        self.genetic, self.pool, self.threads = genetic, pool, task.threads
        self.rng = np.random.default_rng([task.seed, 4])
        self.waiting: deque[list[Future[list[Family]]]] = deque()
        self.per_child = len(genetic.nodes)  # iterations
        self.left = max_iters
        self.most = None if max_iters is None else -(-max_iters // self.per_child)  # children
        self.asked = 0
        self.initial = 0.0  # the first child that has parents

    def begin(self, initial: float) -> None:
        """A new population: so many children come from random sequences."""
        self.initial = self.asked + initial

    def ask(self, population: Population) -> None:
        """Have all threads make a batch; of fewer children if iterations end with it."""
        count = self.genetic.params.batch * self.threads
        count = count if self.most is None else min(count, self.most - self.asked)
        random = self.asked < self.initial
        parents = [None if random else population.parents(self.rng) for _ in range(count)]
        self.waiting.append(
            [
                self.pool.submit(
                    self.genetic.children, parents[i :: self.threads], population.penalties,
                    self.asked + i,
                )
                for i in range(self.threads)
            ]
        )  # fmt: skip
        self.asked += count

    def take(self) -> list[Family]:
        """The oldest batch, in the order in which its children were asked for."""
        made = [job.result() for job in self.waiting.popleft()]
        return [family for turn in zip_longest(*made) for family in turn if family is not None]

    def iterations(self, children: int) -> int:
        """How many iterations so many children are, of those that are left."""
        count = children * self.per_child
        if self.left is not None:
            count = min(count, self.left)
            self.left -= count
        return count


class Genetic:
    """Makes individuals for one task; the customers are numbered 0 .. m - 1."""

    def __init__(self, task: Task, params: GeneticParams, moves: RouteMoveParams) -> None:
        rules, instance = task.rules, task.instance
        self.task, self.params, self.moves = task, params, moves
        self.nodes = task.nearness.nodes
        m = len(self.nodes)
        local = np.full(instance.n, -1, np.int32)
        local[self.nodes] = np.arange(m, dtype=np.int32)
        self.local = local
        near = neighbour_lists(instance, task.nearness, moves.neighbours)[self.nodes]
        places = np.append(self.nodes, rules.depot)
        matrix = instance.distance(places[:, None], places[None, :]).astype(np.float64)
        demand = rules.demand[self.nodes]
        limits = RouteLimits(float(rules.capacity), rules.max_length, rules.service)
        self.problem = penalised_problem(matrix, demand, local[near], limits)
        full = -(-int(demand.sum()) // max(1, rules.capacity))  # vehicles
        # lengths or large demands may need more routes than all demand together does
        fleet = max(int(params.fleet_factor * full), len(task.start.routes)) + params.fleet_margin
        self.slots = max(1, min(rules.vehicles, fleet, m))
        plane = np.zeros((instance.n, 2)) if instance.plane is None else instance.plane
        self.points: Floats = np.ascontiguousarray(plane[self.nodes] - plane[rules.depot])
        top = float(demand.max(initial=1)) or 1.0
        self.penalties = Penalties(float(matrix.max()) / top, 1.0)
        self.long_routes = params.has_long_routes(m, len(task.start.routes))

    def start(self) -> Individual:
        """The task's start as it is."""
        routes = [self.local[route] for route in self.task.start.routes]
        order = np.concatenate(routes).astype(np.int32)
        ends = np.cumsum([len(route) for route in routes]).astype(np.int32)
        return self.individual(order, ends, local_optimum=False)

    def individual(self, order: Index, ends: Index, local_optimum: bool = True) -> Individual:
        """Routes as an individual: round the depot, so that a stretch of it is a sector."""
        order, ends = sorted_by_angle(self.points, order, ends)
        cost, load, length = measure(self.problem, order, ends)
        after, before = neighbours_of(order, ends)
        return Individual(order, ends, cost, (load, length), after, before, local_optimum)

    def solution(self, one: Individual) -> Solution:
        return solution_of_lists(self.nodes[one.order].astype(np.int32), one.ends)

    def children(self, pairs: list[Parents], penalties: Penalties, stream: int) -> list[Family]:
        """Several children, each with a random stream of its own."""
        threads = self.task.threads
        return [self.child(pair, penalties, stream + i * threads) for i, pair in enumerate(pairs)]

    def child(self, parents: Parents, penalties: Penalties, stream: int) -> Family:
        """A child of two parents, or a random one; if it is infeasible, perhaps also repaired."""
        state = random_state(self.task.seed, stream)
        penalties = self._own_penalties(penalties, state)
        if parents is None:
            rng = np.random.default_rng([self.task.seed, stream])
            order = rng.permutation(len(self.nodes)).astype(np.int32)
        else:
            order = order_crossover(parents[0].order, parents[1].order, state)
        ends = split(self.problem, order, self.slots, penalties, self.params.split_overload)
        settled = self._inherited(order, ends, parents)
        child = self._improved(order, ends, penalties, settled, state)
        if child.feasible or random_float(state) >= self.params.repair_probability:
            return [child]
        factor = self.params.repair_penalty_factor
        penalties = Penalties(penalties.load * factor, penalties.length * factor)
        # at higher penalties nothing pays between routes that keep their limits, either
        settled = within_limits(self.problem, child.order, child.ends, self.slots)
        repaired = self._improved(child.order, child.ends, penalties, settled, state)
        return [child, repaired] if repaired.feasible else [child]

    def _own_penalties(self, penalties: Penalties, state: npt.NDArray[np.uint64]) -> Penalties:
        """Some children, or all, have their own penalties: plans just beyond a limit and plans that
        keep it are both looked for."""
        factor = 1.0
        if not self.long_routes or random_float(state) < self.params.own_price_share:
            factor = self.params.price_spread ** (2.0 * random_float(state) - 1.0)
        return Penalties(factor * penalties.load, factor * penalties.length)

    def _inherited(self, order: Index, ends: Index, parents: Parents) -> Ints:
        """Which routes of a child are its parents', so that they need not be tested together."""
        m = len(order)
        optima = [one for one in parents or () if one.local_optimum]
        after = np.array([one.after for one in optima], np.int32).reshape(-1, m)
        before = np.array([one.before for one in optima], np.int32).reshape(-1, m)
        found: Ints = inherited(order, ends, self.slots, after, before)
        return found

    def _improved(
        self, order: Index, ends: Index, penalties: Penalties, settled: Ints,
        state: npt.NDArray[np.uint64],
    ) -> Individual:  # fmt: skip
        found = local_search(
            self.problem, order, ends, self.slots, penalties, settled, self.moves, state
        )
        return self.individual(*found)

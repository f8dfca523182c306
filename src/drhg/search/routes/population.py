"""The population of the genetic search (HGS): survivors, penalties, parents."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from dataclasses import dataclass

import numpy as np

from drhg.hypergraph.plan import Index
from drhg.problem import Floats
from drhg.search.routes.params import GeneticParams
from drhg.search.routes.penalties import Penalties
from drhg.search.routes.sequences import broken_pairs


@dataclass(frozen=True, eq=False)
class Individual:
    """A plan in the population: its routes laid end to end, and what it costs."""

    order: Index  # (m,)
    ends: Index  # (R,): no route is empty
    cost: float
    excess: tuple[float, float]  # load and length beyond the limits
    after: Index  # (m,): the next customer, -1 for the depot
    before: Index
    local_optimum: bool  # no move pays (at the penalties of its time)

    @property
    def feasible(self) -> bool:
        return self.excess == (0.0, 0.0)

    def penalised(self, penalties: Penalties) -> float:
        """The cost with penalties."""
        return self.cost + penalties.load * self.excess[0] + penalties.length * self.excess[1]


class SubPopulation:
    """Individuals by rising penalised cost, and how far they are from each other."""

    def __init__(self, size: int, customers: int, params: GeneticParams) -> None:
        self.size, self.params = size, params
        self.individuals: list[Individual] = []
        self._most = (1.0 + params.generation_size) * size
        rows = int(self._most) + 2
        self._rows: list[int] = []  # of each individual in the arrays below
        self._free = list(range(rows))
        self._after = np.zeros((rows, customers), np.int32)
        self._before = np.zeros((rows, customers), np.int32)
        self._distance: Floats = np.full((rows, rows), np.inf)
        self._fitness: Floats | None = None

    def add(self, one: Individual, penalties: Penalties) -> None:
        """Add an individual; with a generation more than its size, select the survivors."""
        row = self._free.pop()
        self._after[row], self._before[row] = one.after, one.before
        far = broken_pairs(self._after, self._before, row)
        self._distance[row] = self._distance[:, row] = far
        self._distance[row, row] = np.inf
        at = bisect_left(
            self.individuals, one.penalised(penalties), key=lambda other: other.penalised(penalties)
        )
        self.individuals.insert(at, one)
        self._rows.insert(at, row)
        self._fitness = None
        if len(self.individuals) > self._most:
            while len(self.individuals) > self.size:
                self._drop_worst()

    def sort(self, penalties: Penalties) -> None:
        """After the penalties have changed."""
        costs = [one.penalised(penalties) for one in self.individuals]
        ranked = np.argsort(costs, kind="stable")
        self.individuals = [self.individuals[i] for i in ranked]
        self._rows = [self._rows[i] for i in ranked]
        self._fitness = None

    @property
    def distances(self) -> Floats:
        """Broken-pairs distances: the share of customers with other neighbours; inf to itself."""
        return self._distance[np.ix_(self._rows, self._rows)]

    def _drop_worst(self) -> None:
        clone = self.distances.min(axis=1) == 0.0
        worth = self.fitness + 1e3 * clone  # clones go first: fitness is less than 2
        worst = 1 + int(np.argmax(worth[1:]))  # never the best
        del self.individuals[worst]
        self._free.append(self._rows.pop(worst))
        self._fitness = None

    @property
    def fitness(self) -> Floats:
        """The biased fitness, lower is better: the rank by cost, and that by diversity."""
        if self._fitness is None:
            size = len(self.individuals)
            if size == 1:
                self._fitness = np.zeros(1)
            else:
                closest = min(self.params.closest, size - 1)
                nearest = np.partition(self.distances, closest - 1, axis=1)[:, :closest]
                rank = np.empty(size)
                rank[np.argsort(-nearest.mean(axis=1), kind="stable")] = np.arange(size)
                weight = max(0.0, 1.0 - self.params.elite / size)
                self._fitness = (np.arange(size) + weight * rank) / (size - 1)
        return self._fitness


class Population:
    """Feasible and infeasible individuals, and the penalties that the latter pay."""

    def __init__(
        self, size: int, customers: int, penalties: Penalties, params: GeneticParams
    ) -> None:
        self.params = params
        self.penalties = self._first = penalties
        self.feasible = SubPopulation(size, customers, params)
        self.infeasible = SubPopulation(size, customers, params)
        assumed, interval = [True] * params.assumed_feasible, params.penalty_interval
        self._kept = deque(assumed, interval), deque(assumed, interval)  # load, length
        self._children = 0

    def add(self, one: Individual) -> None:
        (self.feasible if one.feasible else self.infeasible).add(one, self.penalties)

    def count(self, child: Individual) -> None:
        """Note which limits a child keeps, and adapt the penalties now and then."""
        for kept, excess in zip(self._kept, child.excess, strict=True):
            kept.append(excess == 0.0)
        self._children += 1
        if self._children % self.params.penalty_interval == 0:
            shares = (sum(kept) / len(kept) for kept in self._kept)
            self.penalties = Penalties(*map(self._adapted, shares, self.penalties, self._first))
            self.infeasible.sort(self.penalties)

    def _adapted(self, share: float, penalty: float, first: float) -> float:
        """A penalty, given the share of children that keep its limit."""
        params, factor = self.params, 1.0
        if share < params.target_feasible - params.target_tolerance:
            factor = params.penalty_increase
        elif share > params.target_feasible + params.target_tolerance:
            factor = params.penalty_decrease
        highest, lowest = params.highest_penalty * first, params.lowest_penalty * first
        return min(highest, max(lowest, penalty * factor))

    def parents(self, rng: np.random.Generator) -> tuple[Individual, Individual]:
        return self._tournament(rng), self._tournament(rng)

    def _tournament(self, rng: np.random.Generator) -> Individual:
        """The fitter one of two."""
        feasible, infeasible = self.feasible, self.infeasible
        picks: list[tuple[float, Individual]] = []
        count = len(feasible.individuals)
        for i in rng.integers(count + len(infeasible.individuals), size=2).tolist():
            group, j = (feasible, i) if i < count else (infeasible, i - count)
            picks.append((float(group.fitness[j]), group.individuals[j]))
        return picks[0][1] if picks[0][0] < picks[1][0] else picks[1][1]

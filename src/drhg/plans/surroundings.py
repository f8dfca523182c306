"""A few neighbouring routes of a plan as a problem of their own, and their repair."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from drhg.hypergraph import Nearness
from drhg.problem import Floats, Instance, Ints, Metric, Solution, cost
from drhg.problem.parameters import Parameters, number
from drhg.problem.tolerances import GAIN, NOT_ZERO
from drhg.search.routes.params import AnnealingParams, RouteSizes
from drhg.search.routes.strategy import Routes
from drhg.search.strategy import Budget, task_of

Lists: TypeAlias = list[list[int]]  # routes


@dataclass(frozen=True)
class ReplanParams(Parameters):
    """How far around a change a plan is searched, and how long.

    >>> ReplanParams(customers=0)
    Traceback (most recent call last):
    ...
    drhg.errors.InstanceError: customers must be a whole number of at least 1, not 0
    """

    customers: int = number(120, 1)
    """Customers of the routes around a change, at most but for the route of the change itself."""
    most_customers: int = number(1000, 1)
    """The same if there is more time than that takes."""
    steps: int = number(1000, 0)
    """Steps of ruin and recreate around a change, if no time is given."""
    slices: int = number(10, 1)
    """Temperatures of the annealing ..."""
    first_temperature: float = number(0.03, 0.0)
    """... of which the first is so many times the root of the steps per customer (see
    `AnnealingParams`): less than when a plan is made, as this one is good but for its change."""


class Clock(Budget):
    """A budget that ends after some iterations or at a moment, whichever is given."""

    def __init__(self, steps: int | None, seconds: float | None, slices: int) -> None:
        super().__init__(steps)
        self.done = 0
        self._slices = slices
        self._begin = time.perf_counter()
        self._seconds = seconds

    def fraction(self) -> float | None:
        if self._seconds is not None:
            return min(1.0, (time.perf_counter() - self._begin) / max(NOT_ZERO, self._seconds))
        assert self.max_iters is not None
        return min(1.0, self.done / max(1, self.max_iters))

    @property
    def over(self) -> bool:
        return (self.fraction() or 0.0) >= 1.0


def routes_around(
    nearness: Nearness, routes: Lists, route_of: Ints, seed: int, customers: int
) -> list[int]:
    """The routes around a customer, nearest first, with about so many customers."""
    near = nearness.around([seed], customers)[0]
    chosen: list[int] = [int(route_of[seed])] if route_of[seed] >= 0 else []
    total = sum(len(routes[r]) for r in chosen)
    for r in route_of[near].tolist():
        if r >= 0 and r not in chosen:
            total += len(routes[r])
            if total > customers and len(chosen) > 1:
                break
            chosen.append(r)
    return chosen


@dataclass(frozen=True)
class Familiar:
    """The old plan: what it costs if a customer gets another vehicle or predecessor."""

    price: float
    before: Ints  # (n,): the old predecessor, the depot for the first, -1 for new customers
    vehicle: Ints  # (n,): the old one, 0 for new customers

    def changed(self, routes: Sequence[Sequence[int]], vehicles: Sequence[int], depot: int) -> int:
        """Customers of some routes who have another vehicle or predecessor than they had."""
        count = 0
        for vehicle, route in zip(vehicles, routes, strict=True):
            here = np.asarray(route, np.int64)
            before = np.concatenate(([depot], here[:-1])) if len(here) else here
            known = self.vehicle[here] > 0
            other = (self.vehicle[here] != vehicle) | (self.before[here] != before)
            count += int((known & other).sum())
        return count


@dataclass
class Surroundings:
    """Some routes, with those who are to join them, as a problem of their own."""

    whole: Instance
    routes: Lists
    absent: list[int]
    spare: int  # vehicles that may be added
    familiar: Familiar
    nodes: Ints = field(init=False)

    def __post_init__(self) -> None:
        inside = [node for route in self.routes for node in route] + self.absent
        self.nodes = np.array([self.whole.depot, *inside], np.int64)

    def instance(self) -> Instance:
        """The problem; with a price, what is not as it was costs more."""
        whole, nodes = self.whole, self.nodes
        limited = whole.vehicles is not None
        small = replace(
            whole,
            xy=None if whole.xy is None else whole.xy[nodes],
            matrix=None if whole.matrix is None else whole.matrix[np.ix_(nodes, nodes)],
            demand=None if whole.demand is None else whole.demand[nodes],
            depot=0,
            vehicles=len(self.routes) + self.spare if limited else None,
            names=None,
            comment="",
        )
        if self.familiar.price == 0.0 or whole.max_distance is not None:
            return small  # a longer way would count against the limit
        return replace(
            small, metric=Metric.EXPLICIT, xy=None, degrees=False, matrix=self._priced(small)
        )

    def _priced(self, small: Instance) -> Floats:
        """Distances, and on top the price of every customer who loses its predecessor by a leg."""
        count = np.arange(small.n)
        before, price = self.familiar.before[self.nodes], self.familiar.price
        known = self.familiar.vehicle[self.nodes] > 0
        known[0] = False
        kept = before[:, None] == self.nodes[None, :]  # row's old predecessor is the column
        extra = 0.5 * price * known[:, None] * ~(kept | kept.T)
        matrix = np.asarray(small.distance(count[:, None], count[None, :]), np.float64)
        matrix = matrix + extra + extra.T
        np.fill_diagonal(matrix, 0.0)
        return np.asarray(matrix)

    def improved(
        self, params: ReplanParams, steps: int | None, seconds: float | None, seed: int
    ) -> tuple[Lists, list[int]]:
        """The routes after ruin and recreate, and who is still in none."""
        small = self.instance()
        local = {int(node): i for i, node in enumerate(self.nodes)}
        start = Solution([[local[node] for node in route] for route in self.routes])
        clock = Clock(steps, seconds, params.slices)
        part_steps = max(1, -(-(steps or 2000) // params.slices))
        sizes = RouteSizes(
            genetic=0, genetic_long=0, copies=len(self.nodes), subproblems=0, part_steps=part_steps
        )
        best, low, left = start, np.inf, len(self.absent)
        known = float(cost(small, start))
        annealing = AnnealingParams(first_temperature=params.first_temperature)
        search = Routes(sizes=sizes, annealing=annealing)
        for found in search.run(task_of(small, start, seed, 1), clock):
            clock.done += found.iterations
            if found.cost < low - GAIN and (left or found.cost < known - GAIN):
                best, low, left = found.solution(), found.cost, 0
            if clock.over:
                if left:  # the plan with fewest left out, if not all have found a place
                    best = found.solution()
                break
        routes = [self.nodes[route].tolist() for route in best.routes]
        on_board = {node for route in routes for node in route}
        return routes, [node for node in self.nodes[1:].tolist() if node not in on_board]

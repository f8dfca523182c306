"""A few neighbouring routes of a plan as a problem of their own, and their repair."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, TypeAlias

import numpy as np

from drhg.errors import InstanceError
from drhg.hypergraph import Nearness
from drhg.plans.changes import Inherited
from drhg.problem import Floats, Instance, Ints, Locks, Metric, Solution, cost
from drhg.problem.parameters import Parameters, number
from drhg.problem.tolerances import GAIN, NOT_ZERO
from drhg.search.routes.params import AnnealingParams, PieceParams, RouteSizes, rich_annealing
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

    def slice(self, usual: int, least: int = 1) -> int:
        if self.max_iters is None:
            return usual
        return max(least, min(usual, self.max_iters - self.done))

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
    before: Ints  # (n,): the old predecessor, the depot for the first, -1 if there was none
    vehicle: Ints  # (n,): the old one, 0 for new customers
    depot: int  # -1 for a tour, whose first stop has the last before it, or a path: then -2

    def changed(self, routes: Sequence[Sequence[int]], vehicles: Sequence[int]) -> list[int]:
        """Customers of some routes who have another vehicle or predecessor than they had."""
        sizes = [len(route) for route in routes]
        here = np.fromiter(chain.from_iterable(routes), np.int64, sum(sizes))
        before, begins = np.roll(here, 1), np.cumsum([0, *sizes])[:-1]
        if self.depot != -1:
            before[begins[np.array(sizes) > 0]] = max(-1, self.depot)
        known = self.vehicle[here] > 0
        other = self.vehicle[here] != np.repeat(vehicles, sizes)
        found: list[int] = here[known & (other | (self.before[here] != before))].tolist()
        return found


def familiar_with(instance: Instance, left: Inherited, price: float) -> Familiar:
    """What is left of an old plan, as something to keep."""
    before, vehicle = np.full(instance.n, -1, np.int64), np.zeros(instance.n, np.int64)
    depot = instance.depot if instance.is_cvrp else -1 if instance.returns else -2
    for driver, route in zip(left.vehicles, left.routes, strict=True):
        if len(route):
            first = route[-1] if depot == -1 else max(-1, depot)
            before[route] = np.concatenate(([first], route[:-1]))
            vehicle[route] = driver
    return Familiar(price, before, vehicle, depot)


@dataclass
class Surroundings:
    """Some routes, with those who are to join them, as a problem of their own."""

    whole: Instance
    routes: Lists
    vehicles: list[int]  # of the routes
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
        local = {int(node): i for i, node in enumerate(nodes)}
        limited = whole.vehicles is not None
        used = sum(1 for route in self.routes if route)
        services = whole.service_time
        small = replace(
            whole,
            xy=_rows(whole.xy, nodes),
            matrix=_square(whole.matrix, nodes),
            durations=_square(whole.durations, nodes),
            demand=_rows(whole.demand, nodes),
            windows=_rows(whole.windows, nodes),
            release=_rows(whole.release, nodes),
            service_time=services[nodes] if isinstance(services, np.ndarray) else services,
            depot=0,
            vehicles=used + self.spare if limited else None,
            fixed_edges=tuple(
                (local[a], local[b]) for a, b in whole.fixed_edges if a in local and b in local
            ),
            locks=self._locks(local),
            names=None,
            comment="",
        )
        if self.familiar.price == 0.0 or whole.max_distance is not None:
            return small  # a longer way would count against the limit
        matrix = self._priced(small)
        durations = small.durations
        if durations is None and (whole.windows is not None or whole.max_duration is not None):
            durations = distances_of(small)
        return replace(
            small, metric=Metric.EXPLICIT, xy=None, degrees=False, matrix=matrix,
            durations=durations,
        )  # fmt: skip

    def _locks(self, local: dict[int, int]) -> Locks | None:
        """The locks of these nodes and vehicles, numbered as here; none of other vehicles."""
        if self.whole.locks is None:
            return None
        locks = self.whole.locks.renumbered(local)
        number = {vehicle: i for i, vehicle in enumerate(self.vehicles, start=1)}
        return Locks(
            driven=tuple((number[v], path) for v, path in locks.driven if v in number),
            pinned=tuple((node, number[v]) for node, v in locks.pinned if v in number),
            forbidden=tuple((node, number[v]) for node, v in locks.forbidden if v in number),
            together=locks.together,
        )

    def _priced(self, small: Instance) -> Floats:
        """Distances, and on top the price of every customer who loses its predecessor by a leg.

        Where ways have a direction, all of the price is on the leg that leads to the customer.
        """
        before, price = self.familiar.before[self.nodes], self.familiar.price
        known = self.familiar.vehicle[self.nodes] > 0
        known[0] = False
        kept = before[:, None] == self.nodes[None, :]  # row's old predecessor is the column
        if small.rich and not small.fixed_edges:
            extra = price * (known[:, None] & ~kept).T
        else:
            extra = half_prices(self.familiar, self.nodes)
        matrix: Floats = distances_of(small) + extra
        np.fill_diagonal(matrix, 0.0)
        return matrix

    def improved(
        self, params: ReplanParams, steps: int | None, seconds: float | None, seed: int
    ) -> tuple[Lists, list[int], list[int]]:
        """The routes after ruin and recreate, their vehicles, and who is still in none.

        A vehicle is 0 where no lock says that it must be a special one.
        """
        try:
            small = self.instance()
        except InstanceError:  # those who are to join are too many for these vehicles
            return self.routes, [0] * len(self.routes), self.absent
        local = {int(node): i for i, node in enumerate(self.nodes)}
        named = small.locks is not None and small.locks.vehicles > 0
        start = Solution(
            [[local[node] for node in route] for route in self.routes],
            range(1, len(self.routes) + 1) if named else None,
        )
        clock = Clock(steps, seconds, params.slices)
        best, low, left = start, np.inf, len(self.absent)
        known = float(cost(small, start))
        search = self._search(params, steps)
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
        absent = [node for node in self.nodes[1:].tolist() if node not in on_board]
        return routes, self._drivers(small, best), absent

    def _search(self, params: ReplanParams, steps: int | None) -> Routes:
        part_steps = max(1, -(-(steps or 2000) // params.slices))
        sizes = RouteSizes(
            genetic=0, genetic_long=0, copies=len(self.nodes), subproblems=0, part_steps=part_steps
        )
        first = params.first_temperature
        return Routes(
            sizes=sizes,
            annealing=AnnealingParams(first_temperature=first),
            piece_annealing=replace(rich_annealing(), first_temperature=first),
            pieces=PieceParams(locked_walks=1),
        )

    def _drivers(self, small: Instance, found: Solution) -> list[int]:
        if small.locks is None or found.vehicles is None:
            return [0] * len(found.routes)
        locks = small.locks
        named = {vehicle for vehicle, _ in locks.driven}
        named |= {vehicle for _, vehicle in (*locks.pinned, *locks.forbidden)}
        return [self.vehicles[v - 1] if v in named else 0 for v in found.vehicles]


def half_prices(familiar: Familiar, nodes: Ints) -> Floats:
    """The price of every customer who loses its predecessor, half of it on either leg."""
    kept = familiar.before[nodes][:, None] == nodes[None, :]
    known = familiar.vehicle[nodes] > 0
    half = 0.5 * familiar.price * known[:, None] * ~(kept | kept.T)
    return np.asarray(half + half.T, np.float64)


def each_around(
    seeds: list[int],
    improve: Callable[..., set[int]],
    shared: float | None,
    end: float | None,
) -> list[int]:
    """Improve around every seed that lies in no surroundings before, until it is too late.

    Time until the moment `shared` is divided evenly. Returns the seeds that were needed.
    """
    done: set[int] = set()
    used: list[int] = []
    for count, node in enumerate(seeds):
        if node in done or (end is not None and time.perf_counter() >= end):
            continue
        seconds = None
        if shared is not None:
            left = sum(one not in done for one in seeds[count:])
            seconds = (shared - time.perf_counter()) / left
        done |= improve(node, seconds=seconds)
        used.append(node)
    return used


def _rows(values: Any, nodes: Ints) -> Any:
    return None if values is None else values[nodes]


def _square(values: Any, nodes: Ints) -> Any:
    return None if values is None else values[np.ix_(nodes, nodes)]


def distances_of(instance: Instance) -> Floats:
    """All distances of a small instance."""
    count = np.arange(instance.n)
    return np.array(instance.distance(count[:, None], count[None, :]), np.float64)

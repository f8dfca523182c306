"""A plan after a change: only the surroundings of what has changed are destroyed and repaired."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from drhg.errors import InstanceError
from drhg.files.json import solution_row
from drhg.files.paths import PathLike
from drhg.files.registry import write_solution
from drhg.kernels import warmup
from drhg.plans.changes import Changes, Inherited, inherited
from drhg.plans.surroundings import (
    Familiar,
    Lists,
    ReplanParams,
    Surroundings,
    routes_around,
)
from drhg.problem import (
    Cost,
    Instance,
    Ints,
    Solution,
    a_solution,
    an_instance,
    check,
    cost,
    not_known,
    real_number,
    shown,
    whole_number,
)
from drhg.problem.tolerances import GAIN, START_SLACK


@dataclass(frozen=True)
class Replanned:
    """What `replan` returns; the plan has passed the checker, unless customers are left out."""

    instance: Instance
    solution: Solution  # with the vehicles of the old plan
    cost: Cost
    changes: Changes
    changed_routes: tuple[int, ...]  # vehicles whose routes differ from the old plan's
    untouched: tuple[int, ...]  # vehicles whose routes are as they were
    moved: tuple[int, ...]  # customers with another vehicle or predecessor than before
    unplaced: tuple[int, ...]
    seconds: float

    def to_dict(self, file: PathLike | None = None) -> dict[str, Any]:
        """Everything as plain values, as the command line prints it; `file` is the instance's."""
        return solution_row(self.instance, self.solution, self.cost, file=file) | {
            "added": list(self.changes.added),
            "removed": list(self.changes.removed),
            "relocated": list(self.changes.moved),
            "demand": list(self.changes.demand),
            "lost": list(self.changes.lost),
            "changed_routes": list(self.changed_routes),
            "untouched_routes": list(self.untouched),
            "moved": list(self.moved),
            "unplaced": list(self.unplaced),
            "seconds": round(self.seconds, 4),
        }

    def save(self, path: PathLike) -> None:
        """Write the plan as the file's ending says; one that leaves customers out is refused."""
        if self.unplaced:
            raise InstanceError(
                f"{len(self.unplaced)} customers are left out: nothing written", file=str(path)
            )
        write_solution(path, self.instance, self.solution, self.cost)

    def summary(self) -> str:
        """One line for people."""
        shown_cost = f"{self.cost:,}" if isinstance(self.cost, int) else f"{self.cost:g}"
        left = f", {len(self.unplaced)} customers left out" if self.unplaced else ""
        return (
            f"{self.changes.summary()}: cost {shown_cost}, {len(self.changed_routes)} of "
            f"{len(self.solution.routes)} routes changed, {len(self.moved)} customers with another "
            f"vehicle or predecessor, {self.seconds:.3f} s{left}"
        )


def replan(
    old: Solution,
    instance: Instance,
    *,
    old_instance: Instance | None = None,
    old_names: Sequence[str] | None = None,
    lost: Iterable[int] = (),
    stability: float = 0.0,
    time_limit: float | None = None,
    seed: int = 0,
    params: ReplanParams | None = None,
) -> Replanned:
    """A plan for a new instance that is the old plan but for the surroundings of what has changed.

    Nodes are matched by names if both instances have them (or `old_names` are given), else by
    numbers. Stops may be added, removed, moved, or have another demand; the last two are noticed
    if the old instance is given. Where stops leave, routes close up; who is new, or no longer fits,
    goes to its cheapest place, and the routes around every change are improved by ruin and
    recreate. All other routes stay as they are.

    lost: vehicles of the old plan (by default numbered as its routes, from 1) that are gone.
    stability: the price, in units of the cost, of every customer whose vehicle or predecessor
        changes.
    time_limit: seconds to improve the surroundings; by default a tenth of a second or so.

    >>> import drhg
    >>> xy = [[0, 0], [0, 1], [0, 2], [9, 0], [9, 1]]
    >>> old = drhg.Solution([[1], [3]])
    >>> new = drhg.replan(old, drhg.cvrp(xy, [0, 1, 1, 1, 1], 2))
    >>> [route.tolist() for route in new.solution.routes], new.moved
    ([[1, 2], [3, 4]], ())
    """
    an_instance(instance)
    a_solution(old, "old")
    if not instance.is_cvrp:
        raise InstanceError("replan is for routes, and this is a TSP; solve it with start=old tour")
    if why := not_known("replan", instance):
        raise InstanceError(f"{why}; solve with the old plan as start")
    stability = real_number("stability", stability, 0.0)
    if time_limit is not None:
        time_limit = real_number("time_limit", time_limit, 0.0)
    seed = whole_number("seed", seed, 0)
    if params is not None and not isinstance(params, ReplanParams):
        raise InstanceError(f"params must be ReplanParams, not {shown(params)}")
    warmup.prepare([warmup.EXPLAINING, warmup.ANNEALING], limit=np.inf)
    began = time.perf_counter()
    left = inherited(old, instance, old_instance, lost, old_names)
    work = _Replanning(instance, old, left, stability, params or ReplanParams())
    seeds = work.make_room()
    changed = left.changes
    seeds = [*changed.added, *changed.moved, *changed.demand, *seeds]
    seeds += _beside_the_gaps(old, left.routes, left.torn)
    work.insert()
    seeds = [node for node in dict.fromkeys(seeds) if node != instance.depot]
    work.improve(seeds, time_limit, seed)
    return work.result(left.changes, began)


def _beside_the_gaps(old: Solution, routes: Sequence[Ints], torn: Iterable[int]) -> list[int]:
    """A customer of each route that has lost some."""
    return [
        int(routes[r][len(routes[r]) // 2])
        for r in sorted(torn)
        if 0 < len(routes[r]) < len(old.routes[r])
    ]


class _Replanning:
    """A plan that is being changed: route by route, each with its vehicle."""

    def __init__(
        self, instance: Instance, old: Solution, left: Inherited, price: float, params: ReplanParams
    ) -> None:
        from drhg.hypergraph import Nearness, rules_of

        routes, vehicles = left.routes, left.vehicles
        self.instance, self.params = instance, params
        self.lost = set(left.changes.lost)
        self.rules, self.nearness = rules_of(instance), Nearness(instance)
        self.routes: Lists = [route.tolist() for route in routes]
        self.vehicles = list(vehicles)
        self.old = [
            [] if len(was) > len(route) else list(route)
            for route, was in zip(self.routes, old.routes, strict=True)
        ]  # a route that lost a stop is another one
        self.absent: list[int] = []
        before, vehicle = np.full(instance.n, -1, np.int64), np.zeros(instance.n, np.int64)
        for number, route in zip(vehicles, routes, strict=True):
            if len(route):
                before[route] = np.concatenate(([instance.depot], route[:-1]))
                vehicle[route] = number
        self.familiar = Familiar(price, before, vehicle)
        homeless = np.ones(instance.n, bool)
        homeless[instance.depot] = False
        for route in routes:
            homeless[route] = False
        self._homeless = np.flatnonzero(homeless).tolist()

    def make_room(self) -> list[int]:
        """Take out who no longer fits: of routes too full or long, and of routes too many."""
        instance, demand = self.instance, self.instance.demand
        assert demand is not None
        seeds: list[int] = []
        if instance.vehicles is not None:
            used = [r for r, route in enumerate(self.routes) if route]
            used.sort(key=lambda r: (int(demand[self.routes[r]].sum()), r))
            for r in used[: max(0, len(used) - instance.vehicles)]:
                self._homeless += self.routes[r]
                seeds += self.routes[r]
                self.routes[r] = []
        for route in self.routes:
            while route and not self._fits(route):
                node = route[int(np.argmax(self._savings(route)))]
                route.remove(node)
                self._homeless.append(node)
                seeds.append(node)
        return seeds

    def _fits(self, route: list[int]) -> bool:
        instance = self.instance
        assert instance.demand is not None
        assert instance.capacity is not None
        if int(instance.demand[route].sum()) > instance.capacity:
            return False
        if instance.max_distance is None:
            return True
        stops = np.array([instance.depot, *route, instance.depot])
        length = float(np.sum(instance.distance(stops[:-1], stops[1:])))
        length += float(instance.services[route].sum())
        return length <= instance.max_distance * (1 + START_SLACK)

    def _savings(self, route: list[int]) -> Any:
        stops = np.array([self.instance.depot, *route, self.instance.depot])
        a, b, c = stops[:-2], stops[1:-1], stops[2:]
        far = self.instance.distance
        return far(a, b) + far(b, c) - far(a, c)

    def insert(self) -> None:
        """Put everybody who is in no route at the cheapest place, those of large demand first."""
        from drhg.plans.places import layout_of, places_of

        demand = self.instance.demand
        assert demand is not None
        for node in sorted(self._homeless, key=lambda i: (-int(demand[i]), i)):
            used = [r for r, route in enumerate(self.routes) if route]
            layout = layout_of(self.rules, Solution([self.routes[r] for r in used]))
            found = places_of(
                self.rules, layout, np.array([node], np.int32), np.full(1, -1, np.int32)
            )
            at = int(found.route[0])
            if at < 0:
                self.absent.append(node)
            elif at == len(used):
                self._add_route([node])
            else:
                place = int(found.before[0]) - int(layout.begins[at])
                self.routes[used[at]].insert(place, node)

    def _add_route(self, route: list[int]) -> None:
        """A route for the first vehicle that has none and is not lost."""
        for r, vehicle in enumerate(self.vehicles):
            if not self.routes[r] and vehicle not in self.lost:
                self.routes[r] = route
                return
        number = 1
        while number in self.lost or number in self.vehicles:
            number += 1
        self.routes.append(route)
        self.old.append([])
        self.vehicles.append(number)

    def improve(self, seeds: list[int], time_limit: float | None, seed: int) -> None:
        """Ruin and recreate around every seed; then, if there is time, farther around."""
        end = None if time_limit is None else time.perf_counter() + time_limit
        around = self._each_around(seeds, self.params.customers, seed, None, end)
        for node in list(self.absent):  # farther around who has found no place
            if node in self.absent:
                self._improve_around(node, self.params.most_customers, None, seed)
        if end is not None:
            self._each_around(around, self.params.most_customers, seed + 1, end, end)

    def _each_around(
        self, seeds: list[int], customers: int, seed: int, shared: float | None, end: float | None
    ) -> list[int]:
        """Improve around every seed that lies in no surroundings before, until it is too late.

        Time that is `shared` is divided evenly. Returns the seeds that were needed.
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
            done |= self._improve_around(node, customers, seconds, seed)
            used.append(node)
        return used

    def _improve_around(
        self, node: int, customers: int, seconds: float | None, seed: int
    ) -> set[int]:
        """Improve the routes around a customer; returns who belongs to them."""
        params = self.params
        route_of = np.full(self.instance.n, -1, np.int64)
        for r, route in enumerate(self.routes):
            route_of[route] = r
        chosen = routes_around(self.nearness, self.routes, route_of, node, customers)
        part = [self.routes[r] for r in chosen]
        near = set(self.nearness.around([node], customers)[0].tolist()) | {node}
        absent = [one for one in self.absent if one in near]
        used = sum(1 for route in self.routes if route)
        most = self.instance.vehicles
        spare = 0 if most is None else max(0, most - used)
        sub = Surroundings(self.instance, part, absent, spare, self.familiar)
        before = self._price(part, [self.vehicles[r] for r in chosen])
        steps = None if seconds is not None else params.steps
        if steps == 0:
            return set(sub.nodes.tolist())
        routes, left = sub.improved(params, steps, seconds, seed)
        vehicles = self._drivers(routes, chosen)
        routes = [self._turned(route, v) for route, v in zip(routes, vehicles, strict=True)]
        fewer = len(left) < len(absent)
        if fewer or (len(left) == len(absent) and self._price(routes, vehicles) < before - GAIN):
            self._replace(chosen, routes, vehicles)
            self.absent = [one for one in self.absent if one not in near] + left
        return set(sub.nodes.tolist())

    def _price(self, routes: Lists, vehicles: Sequence[int]) -> float:
        """The cost of some routes, with the price of what is no longer as it was."""
        total = float(cost(self.instance, Solution(routes)))
        if self.familiar.price:
            changed = self.familiar.changed(routes, vehicles, self.instance.depot)
            total += self.familiar.price * changed
        return total

    def _drivers(self, routes: Lists, chosen: list[int]) -> list[int]:
        """A vehicle for every route: who drove most of its customers, none twice."""
        own = [self.vehicles[r] for r in chosen]
        old = self.familiar.vehicle
        shares = [
            (-int((old[route] == vehicle).sum()), i, k)
            for i, route in enumerate(routes)
            for k, vehicle in enumerate(own)
        ]
        drivers, taken = [0] * len(routes), set[int]()
        for _, i, k in sorted(shares):
            if not drivers[i] and k not in taken:
                drivers[i] = own[k]
                taken.add(k)
        number = 1
        busy = {v for v, route in zip(self.vehicles, self.routes, strict=True) if route} | set(own)
        for i, driver in enumerate(drivers):
            while not driver:
                if number not in busy and number not in self.lost:
                    drivers[i] = driver = number
                    busy.add(number)
                number += 1
        return drivers

    def _turned(self, route: list[int], vehicle: int) -> list[int]:
        """The route in the direction in which more customers keep their predecessors."""
        there, back = (
            self.familiar.changed([way], [vehicle], self.instance.depot)
            for way in (route, route[::-1])
        )
        return route[::-1] if back < there else route

    def _replace(self, chosen: list[int], routes: Lists, vehicles: list[int]) -> None:
        for r in chosen:
            self.routes[r] = []
        for route, vehicle in zip(routes, vehicles, strict=True):
            if vehicle in self.vehicles:
                self.routes[self.vehicles.index(vehicle)] = route
            else:
                self.routes.append(route)
                self.old.append([])
                self.vehicles.append(vehicle)

    def result(self, changes: Changes, began: float) -> Replanned:
        """The new plan, checked, and what is other than before."""
        instance = self.instance
        self.routes = [
            route if route == old else self._turned(route, vehicle)
            for vehicle, route, old in zip(self.vehicles, self.routes, self.old, strict=True)
        ]
        solution = Solution(self.routes, self.vehicles)
        if not self.absent and (found := check(instance, solution)):
            raise AssertionError(f"the new plan breaks a rule, please report it: {found[:3]}")
        same = [
            vehicle
            for vehicle, route, old in zip(self.vehicles, self.routes, self.old, strict=True)
            if route and route == old
        ]
        driven = [v for v, route in zip(self.vehicles, self.routes, strict=True) if route]
        moved: list[int] = []
        for vehicle, route in zip(self.vehicles, self.routes, strict=True):
            for before, node in zip([instance.depot, *route], route, strict=False):
                known = self.familiar.vehicle[node] > 0
                if known and (
                    self.familiar.vehicle[node] != vehicle or self.familiar.before[node] != before
                ):
                    moved.append(node)
        total = cost(instance, solution)
        return Replanned(
            instance, solution, total, changes,
            tuple(v for v in driven if v not in set(same)), tuple(same), tuple(sorted(moved)),
            tuple(sorted(self.absent)), time.perf_counter() - began,
        )  # fmt: skip

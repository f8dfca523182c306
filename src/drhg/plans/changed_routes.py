"""Routes after a change: who leaves, who comes, and the surroundings that are repaired."""

from __future__ import annotations

import time
from collections.abc import Container, Sequence
from functools import partial
from itertools import chain as end_to_end

import numpy as np

from drhg.errors import DrhgError, InstanceError
from drhg.hypergraph import Nearness
from drhg.plans.changes import Inherited
from drhg.plans.held import Held, with_locks
from drhg.plans.places import Layout, flaws_of, layout_of, places_of
from drhg.plans.surroundings import (
    Lists,
    ReplanParams,
    Surroundings,
    each_around,
    familiar_with,
    routes_around,
)
from drhg.plans.terms import terms_of, with_chain
from drhg.problem import Floats, Instance, Solution, cost
from drhg.problem.locks import Chain
from drhg.problem.tolerances import GAIN, START_SLACK


class ChangedRoutes:
    """A plan that is being changed: route by route, each with its vehicle."""

    def __init__(
        self, instance: Instance, old: Solution, left: Inherited, price: float, params: ReplanParams
    ) -> None:
        self.instance, self.params = instance, params
        self.lost = set(left.changes.lost)
        self.terms, self.nearness = terms_of(instance), Nearness(instance)
        self.routes: Lists = [route.tolist() for route in left.routes]
        self.vehicles = list(left.vehicles)
        self.old = [
            [] if len(was) > len(route) else list(route)
            for route, was in zip(self.routes, old.routes, strict=True)
        ]  # a route that lost a stop is another one
        self.absent: list[int] = []
        self.familiar = familiar_with(instance, left, price)
        self.held: Held | None = None
        if instance.locks is not None or instance.fixed_edges:
            self.held = Held(instance)
        self._named = instance.locks is not None and instance.locks.vehicles > 0
        homeless = np.ones(instance.n, bool)
        homeless[[instance.depot, *end_to_end(*self.routes)]] = False
        self._homeless = np.flatnonzero(homeless).tolist()

    # --- who leaves -----------------------------------------------------------------------------

    def keep_locks(self) -> list[int]:
        """Begin routes as they were driven or frozen, and take out who is locked elsewhere."""
        if self.held is None:
            return []
        self._refuse_lost(self.held)
        was = [list(route) for route in self.routes]
        found = self.held.found
        begun = found.driven | found.frozen
        for route in self.routes:
            route[:] = [node for node in route if node not in self.held.begun]
        for vehicle, path in begun.items():
            r = self._route_of(vehicle)
            if vehicle in found.frozen:
                self._homeless += self.routes[r]
                self.routes[r] = []
            self.routes[r][:0] = path
        self._homeless = [node for node in self._homeless if node not in self.held.begun]
        if self._named:
            self._renumber(self.held)
        routes = dict(zip(self.vehicles, self.routes, strict=True))
        seeds: list[int] = []
        for node in self.held.broken(routes):
            seeds += self._take_out(node)
        changed = [r for r, route in enumerate(was) if self.routes[r] != route]
        return seeds + [self.routes[r][-1] for r in changed if self.routes[r]]

    def _refuse_lost(self, held: Held) -> None:
        found = held.found
        needed = {*found.driven, *found.frozen} | {one.vehicle for one in found.chains}
        for vehicle in sorted(self.lost & needed):
            raise InstanceError(f"vehicle {vehicle} is lost, but locks say what it does")

    def _renumber(self, held: Held) -> None:
        """Vehicles of higher numbers than there are any more hand their routes to idle ones."""
        most = self.instance.vehicles
        for r, vehicle in enumerate(self.vehicles):
            if most is None or vehicle <= most:
                continue
            number = self._idle_vehicle(self.routes[r])
            if number and number not in self.vehicles:
                self.vehicles[r] = number
            elif number:
                self.routes[self.vehicles.index(number)] = self.routes[r]
                self.routes[r] = []
            else:
                self._homeless += self.routes[r]
                self.routes[r] = []

    def _route_of(self, vehicle: int) -> int:
        """The place of a vehicle's route in the lists, which may be empty."""
        if vehicle not in self.vehicles:
            self.routes.append([])
            self.old.append([])
            self.vehicles.append(vehicle)
        return self.vehicles.index(vehicle)

    def _unit(self, node: int) -> list[Chain]:
        """The chains that can only leave together with a customer."""
        if self.held is None or node not in self.held.chains:
            return [Chain((node,))]
        return self.held.unit(node)

    def _take_out(self, node: int) -> list[int]:
        """Take a customer out, with all that must be where it is; returns who that was."""
        leaving = {one for part in self._unit(node) for one in part.nodes} - set(self._homeless)
        for route in self.routes:
            if not leaving.isdisjoint(route):
                route[:] = [one for one in route if one not in leaving]
        self._homeless += sorted(leaving)
        return sorted(leaving)

    def make_room(self) -> list[int]:
        """Take out who no longer fits: of routes too full, long or late, and of routes too many."""
        instance, demand = self.instance, self.instance.demand
        assert demand is not None
        begun = frozenset[int]() if self.held is None else self.held.begun
        seeds: list[int] = []
        if instance.vehicles is not None:
            used = [r for r, route in enumerate(self.routes) if route]
            used.sort(key=lambda r: (self.routes[r][0] in begun, demand[self.routes[r]].sum(), r))
            for r in used[: max(0, len(used) - instance.vehicles)]:
                self._homeless += self.routes[r]
                seeds += self.routes[r]
                self.routes[r] = []
        terms = terms_of(instance, START_SLACK)
        driven = [r for r, route in enumerate(self.routes) if route]
        flaws = flaws_of(terms, layout_of(terms, Solution([self.routes[r] for r in driven])))
        for r in (driven[i] for i in np.flatnonzero(flaws)):
            route = self.routes[r]
            while any(node not in begun for node in route):
                if not flaws_of(terms, layout_of(terms, Solution([route])))[0]:
                    break
                saved = self._savings(route)
                saved[[node in begun for node in route]] = -np.inf
                seeds += self._take_out(route[int(np.argmax(saved))])
        return seeds

    def _savings(self, route: list[int]) -> Floats:
        stops = np.array([self.instance.depot, *route, self.instance.depot])
        a, b, c = stops[:-2], stops[1:-1], stops[2:]
        far = self.instance.distance
        saved: Floats = far(a, b) + far(b, c) - far(a, c)
        return saved

    # --- who comes ------------------------------------------------------------------------------

    def insert(self) -> None:
        """Put everybody who is in no route at the cheapest place, those of large demand first."""
        demand = self.instance.demand
        assert demand is not None
        waiting = sorted(dict.fromkeys(self._homeless), key=lambda i: (-int(demand[i]), i))
        done: set[int] = set()
        for node in waiting:
            if node in done:
                continue
            unit = self._unit(node)
            nodes = [one for part in unit for one in part.nodes]
            done.update(nodes)
            placed = self._insert(node) if len(nodes) == 1 else self._insert_unit(unit)
            if not placed:
                self.absent += nodes

    def _insert(self, node: int) -> bool:
        """Put a customer at the cheapest place of all."""
        used, layout = self._layout()
        found = places_of(self.terms, layout, np.array([node], np.int32), np.full(1, -1, np.int32))
        at = int(found.route[0])
        if at == len(used):
            return self._add_route([node])
        if at >= 0:
            place = int(found.before[0]) - int(layout.begins[at])
            self.routes[used[at]].insert(place, node)
        return at >= 0

    def _layout(self) -> tuple[list[int], Layout]:
        """The routes that visit anybody, laid end to end, with what is locked."""
        used = [r for r, route in enumerate(self.routes) if route]
        solution = Solution([self.routes[r] for r in used], [self.vehicles[r] for r in used])
        layout = layout_of(self.terms, solution)
        if self.held is not None:
            layout = with_locks(self.instance, solution, layout, self.held.found)
        return used, layout

    def _insert_unit(self, unit: list[Chain]) -> bool:
        """Put chains that belong together into the route where they cost least."""
        assert self.held is not None
        nodes = [node for part in unit for node in part.nodes]
        used, layout = self._layout()
        best: tuple[float, int, list[int]] = (np.inf, -1, [])
        for i, r in enumerate(used):
            if self.held.may(self.vehicles[r], nodes):
                gaps = slice(layout.begins[i] + i, layout.begins[i + 1] + i + 1)
                more, route = self._with_unit(self.routes[r], layout.closed[gaps].tolist(), unit)
                best = min(best, (more, r, route))
        if self.instance.vehicles is None or len(used) < self.instance.vehicles:
            more, route = self._with_unit([], [], unit)
            best = min(best, (more, len(self.routes), route))
        more, r, route = best
        if not np.isfinite(more):
            return False
        if r == len(self.routes):
            return self._add_route(route)
        self.routes[r] = route
        return True

    def _with_unit(
        self, route: list[int], closed: list[bool], unit: list[Chain]
    ) -> tuple[float, list[int]]:
        """A route with some chains, each at its cheapest place, and what they cost; inf if it
        cannot take them. `closed` are the gaps in which nothing may be put."""
        total, route, closed = 0.0, list(route), closed or [False]
        for part in unit:
            best: tuple[float, int, list[int]] = (np.inf, 0, [])
            for path in {part.nodes, part.nodes[::-1]}:
                best = min(best, (*self._best_gap(route, closed, path), list(path)))
            more, at, path_there = best
            if not np.isfinite(more):
                return np.inf, []
            total += more
            route[at:at] = path_there
            closed[at : at + 1] = [False, *[True] * (len(path_there) - 1), False]
        return total, route

    def _best_gap(
        self, route: list[int], closed: list[bool], path: tuple[int, ...]
    ) -> tuple[float, int]:
        """What it costs to put a chain into a route as it is, and where."""
        terms = self.terms
        if len(path) > 1:
            try:
                terms = with_chain(terms, self.instance, path)
            except DrhgError:  # in this direction somebody would be served too late
                return np.inf, 0
        layout = layout_of(terms, Solution([route]))
        if route:
            barred = np.zeros((self.instance.n, 2), np.bool_)
            barred[:, 1] = True  # no route of its own
            layout = layout._replace(closed=np.array(closed), barred=barred)
        head = np.array([path[0]], np.int32)
        found = places_of(terms, layout, head, np.full(1, -1, np.int32))
        return float(found.cost[0]), int(found.before[0])

    def _add_route(self, route: list[int]) -> bool:
        """A route for the first vehicle that has none, is not lost, and may drive it."""
        number = self._idle_vehicle(route)
        if number:
            self.routes[self._route_of(number)] = route
        return number > 0

    def _idle_vehicle(self, route: list[int], but: Container[int] = ()) -> int:
        """A vehicle without a route that may drive this one, 0 if there is none."""
        used = {v for v, one in zip(self.vehicles, self.routes, strict=True) if one}
        most = len(self.vehicles) + len(self.lost) + 2
        if self._named:
            assert self.instance.locks is not None
            most += self.instance.locks.vehicles
            most = min(most, self.instance.vehicles or most)
        for number in (*self.vehicles, *range(1, most + 1)):
            busy = number in used or number in self.lost or number in but
            if busy or (self._named and number > most):
                continue
            if self.held is None or self.held.may(number, route):
                return int(number)
        return 0

    # --- the surroundings -----------------------------------------------------------------------

    def improve(self, seeds: list[int], time_limit: float | None, seed: int) -> None:
        """Ruin and recreate around every seed; then, if there is time, farther around."""
        end = None if time_limit is None else time.perf_counter() + time_limit
        params = self.params

        def look(node: int, customers: int, seconds: float | None, seed: int = seed) -> set[int]:
            return self._improve_around(node, customers, seconds, seed)

        around = each_around(seeds, partial(look, customers=params.customers), None, end)
        for node in list(self.absent):  # farther around who has found no place
            if node in self.absent:
                look(node, params.most_customers, None)
        if end is not None:
            farther = partial(look, customers=params.most_customers, seed=seed + 1)
            each_around(around, farther, end, end)

    def _improve_around(
        self, node: int, customers: int, seconds: float | None, seed: int
    ) -> set[int]:
        """Improve the routes around a customer; returns who belongs to them."""
        params = self.params
        near = set(self.nearness.around([node], customers)[0].tolist()) | {node}
        absent = self._joining([one for one in self.absent if one in near])
        route_of = np.full(self.instance.n, -1, np.int64)
        frozen = {} if self.held is None else self.held.found.frozen
        for r, route in enumerate(self.routes):
            if self.vehicles[r] not in frozen:
                route_of[route] = r
        chosen = routes_around(self.nearness, self.routes, route_of, node, customers)
        if self.held is not None:
            wanted = [self.held.wants(one) for one in absent]
            chosen = list(dict.fromkeys([*chosen, *(self._route_of(v) for v in wanted if v)]))
        part = [self.routes[r] for r in chosen]
        used = sum(1 for route in self.routes if route)
        most = self.instance.vehicles
        spare = 0 if most is None else max(0, most - used)
        own = [self.vehicles[r] for r in chosen]
        sub = Surroundings(self.instance, part, own, absent, spare, self.familiar)
        before = self._price(part, own)
        steps = None if seconds is not None else params.steps
        if steps == 0 or len(sub.nodes) < 2:
            return set(sub.nodes.tolist())
        routes, tied, left = sub.improved(params, steps, seconds, seed)
        vehicles = self._drivers(routes, tied, own)
        routes = [self._turned(route, v) for route, v in zip(routes, vehicles, strict=True)]
        fewer = len(left) < len(absent)
        better = len(left) == len(absent) and self._price(routes, vehicles) < before - GAIN
        if all(vehicles) and (fewer or better):
            for r in chosen:
                self.routes[r] = []
            for route, vehicle in zip(routes, vehicles, strict=True):
                self.routes[self._route_of(vehicle)] = route
            self.absent = [one for one in self.absent if one not in absent] + left
        return set(sub.nodes.tolist())

    def _joining(self, absent: list[int]) -> list[int]:
        """With these all who must come along."""
        units = [part.nodes for one in absent for part in self._unit(one)]
        return list(dict.fromkeys(end_to_end(*units)))

    def _price(self, routes: Lists, vehicles: Sequence[int]) -> float:
        """The cost of some routes, with the price of what is no longer as it was."""
        total = float(cost(self.instance, Solution(routes)))
        if self.familiar.price:
            total += self.familiar.price * len(self.familiar.changed(routes, vehicles))
        return total

    def _drivers(self, routes: Lists, tied: list[int], own: list[int]) -> list[int]:
        """A vehicle for every route: who is tied to it, else who drove most of its customers.

        0 where there is none.
        """
        old = self.familiar.vehicle
        shares = [
            (-int((old[route] == vehicle).sum()), i, vehicle)
            for i, route in enumerate(routes)
            for vehicle in own
        ]
        drivers, taken = list(tied), set(tied)
        for _, i, vehicle in sorted(shares):
            free = not drivers[i] and vehicle not in taken
            if free and (self.held is None or self.held.may(vehicle, routes[i])):
                drivers[i] = vehicle
                taken.add(vehicle)
        for i, driver in enumerate(drivers):
            if not driver:
                drivers[i] = self._idle_vehicle(routes[i], taken)
                taken.add(drivers[i])
        return drivers

    def _turned(self, route: list[int], vehicle: int) -> list[int]:
        """The route in the direction in which more customers keep their predecessors."""
        if self.instance.rich:
            return route  # it may be for one direction only
        there, back = (len(self.familiar.changed([way], [vehicle])) for way in (route, route[::-1]))
        return route[::-1] if back < there else route

    def settle(self) -> None:
        """Give changed routes the direction that is more familiar."""
        self.routes = [
            route if route == old else self._turned(route, vehicle)
            for vehicle, route, old in zip(self.vehicles, self.routes, self.old, strict=True)
        ]

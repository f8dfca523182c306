"""Locks as a layout knows them: stops that stay, gaps that are closed, routes that are barred;
and plans that are made to keep them."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from drhg.plans.places import Layout
from drhg.problem import Instance, Resolved, Solution, resolve
from drhg.problem.locks import Chain


def with_locks(
    instance: Instance, solution: Solution, layout: Layout, found: Resolved | None = None
) -> Layout:
    """The layout of a plan with all that the instance's locks hold in place."""
    found = found or resolve(instance)
    stuck, closed = layout.stuck.copy(), layout.closed.copy()
    count = len(solution.routes)
    vehicles = solution.vehicles or tuple(range(1, count + 1))
    members: dict[int, int] = {}
    for chain in found.chains:
        members[chain.group] = members.get(chain.group, 0) + 1
    for chain in found.chains:
        if len(chain.nodes) > 1 or (chain.group >= 0 and members[chain.group] > 1):
            stuck[list(chain.nodes)] = True  # it would have to move with others
    after = {a: b for path in found.driven.values() for a, b in pairwise(path)}
    begins = {path[0] for path in found.driven.values()}
    for path in (*found.driven.values(), *found.frozen.values()):
        stuck[list(path)] = True
    for r, (vehicle, route) in enumerate(zip(vehicles, solution.routes, strict=True)):
        first = int(layout.begins[r]) + r
        if vehicle in found.frozen:
            closed[first : first + len(route) + 1] = True
        elif int(route[0]) in begins:
            closed[first] = True
            for p, (a, b) in enumerate(pairwise(route.tolist()), start=1):
                closed[first + p] |= after.get(a) == b
    barred = np.zeros((instance.n, count + 1), np.bool_)
    idle = set(range(1, (instance.vehicles or 0) + 1)) - set(vehicles)
    free, limited = [node for one in found.chains for node in one.nodes], instance.vehicles
    for r, vehicle in enumerate(vehicles):
        if vehicle in found.frozen:
            barred[free, r] = True
    barred[free, count] = limited is not None and not idle - found.frozen.keys()
    for chain in found.chains:
        if not chain.vehicle and chain.barred <= found.frozen.keys():
            continue  # as all others
        nodes = list(chain.nodes)
        for r, vehicle in enumerate(vehicles):
            other = chain.vehicle and vehicle != chain.vehicle
            barred[nodes, r] = bool(other) or vehicle in chain.barred
        if chain.vehicle:
            barred[nodes, count] = chain.vehicle in vehicles
        elif limited is not None:
            barred[nodes, count] = not idle - chain.barred
    return layout._replace(stuck=stuck, closed=closed, barred=barred)


@dataclass
class Held:
    """What the locks of an instance say of each customer."""

    instance: Instance
    found: Resolved = field(init=False)
    chains: dict[int, Chain] = field(init=False, default_factory=dict)  # by customer
    begun: frozenset[int] = field(init=False)  # customers who are driven or frozen
    _groups: dict[int, list[Chain]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.found = resolve(self.instance)
        for chain in self.found.chains:
            self.chains.update(dict.fromkeys(chain.nodes, chain))
            if chain.group >= 0:
                self._groups.setdefault(chain.group, []).append(chain)
        routes = (*self.found.driven.values(), *self.found.frozen.values())
        self.begun = frozenset(node for path in routes for node in path)

    def unit(self, node: int) -> list[Chain]:
        """The chains that must be on one vehicle with a customer, its own among them."""
        chain = self.chains[node]
        return self._groups.get(chain.group, [chain])

    def may(self, vehicle: int, route: list[int]) -> bool:
        """Whether a vehicle may visit some customers, as far as locks tell."""
        if vehicle in self.found.frozen:
            return False
        chains = [self.chains[node] for node in route if node in self.chains]
        return all(
            vehicle not in chain.barred and chain.vehicle in (0, vehicle) for chain in chains
        )

    def wants(self, node: int) -> int:
        """The vehicle that must visit a customer, 0 if none must."""
        return self.chains[node].vehicle if node in self.chains else 0

    def broken(self, routes: dict[int, list[int]]) -> list[int]:
        """Free customers who are not where locks have them, one of each chain at least.

        `routes` are those of the vehicles, driven and frozen ones as they must be.
        """
        vehicle_of = {node: v for v, route in routes.items() for node in route}
        place = {node: at for route in routes.values() for at, node in enumerate(route)}
        wrong = []
        for chain in self.found.chains:
            on_board = [node for node in chain.nodes if node in vehicle_of]
            if not on_board:
                continue
            vehicle = vehicle_of[on_board[0]]
            steps = {place[b] - place[a] for a, b in pairwise(on_board)}
            whole = len(on_board) == len(chain.nodes) and len(steps) < 2 and steps <= {1, -1}
            whole &= all(vehicle_of[node] == vehicle for node in on_board)
            if not whole or not self.may(vehicle, on_board):
                wrong.append(on_board[0])
        for chains in self._groups.values():
            drivers = [vehicle_of.get(chain.nodes[0]) for chain in chains]
            if len(set(drivers)) > 1:
                wrong += [c.nodes[0] for c in chains if c.nodes[0] in vehicle_of]
        return wrong

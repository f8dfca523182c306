"""Locks as a layout knows them: stops that stay, gaps that are closed, routes that are barred."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from drhg.plans.places import Layout
from drhg.problem import Instance, Solution, resolve


def with_locks(instance: Instance, solution: Solution, layout: Layout) -> Layout:
    """The layout of a plan with all that the instance's locks hold in place."""
    found = resolve(instance)
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
    for chain in found.chains:
        nodes = list(chain.nodes)
        for r, vehicle in enumerate(vehicles):
            other = chain.vehicle and vehicle != chain.vehicle
            barred[nodes, r] = bool(other) or vehicle in chain.barred
        if chain.vehicle:
            barred[nodes, count] = chain.vehicle in vehicles
        elif instance.vehicles is not None:
            barred[nodes, count] = not idle - chain.barred
    return layout._replace(stuck=stuck, closed=closed, barred=barred)

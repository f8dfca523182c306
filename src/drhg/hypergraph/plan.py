"""A solution as one cyclic order of nodes, and the rules that it must keep."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from drhg.kernels.jit import kernel
from drhg.kernels.space import Space, distance, space_of
from drhg.problem import Floats, Instance, Ints, Solution

Index: TypeAlias = npt.NDArray[np.int32]
Flags: TypeAlias = npt.NDArray[np.bool_]

EVERYWHERE = 2**31 - 1


class Rules(NamedTuple):
    """The instance as kernels see it: distances, fixed edges, demand and limits."""

    space: Space
    fixed: Index  # (n, 2): nodes joined to this one by a fixed edge, -1 for none
    depot: int  # -1 for a TSP
    demand: Ints  # (n,), zeros for a TSP
    capacity: int
    max_length: float  # of a route, service included; inf if there is no limit
    service: float
    vehicles: int

    @property
    def n(self) -> int:
        return len(self.fixed)


def rules_of(instance: Instance) -> Rules:
    """Everything about an instance that steers a repair."""
    fixed = np.full((instance.n, 2), -1, dtype=np.int32)
    for a, b in instance.fixed_edges:
        fixed[a, int(fixed[a, 0] >= 0)] = b
        fixed[b, int(fixed[b, 0] >= 0)] = a
    return Rules(
        space=space_of(instance),
        fixed=fixed,
        depot=instance.depot if instance.is_cvrp else -1,
        demand=np.zeros(instance.n, np.int64)
        if instance.demand is None
        else instance.demand.copy(),
        capacity=1 if instance.capacity is None else instance.capacity,
        max_length=np.inf if instance.max_distance is None else instance.max_distance,
        service=instance.common_service,
        vehicles=2**31 - 1 if instance.vehicles is None else instance.vehicles,
    )


class Plan(NamedTuple):
    """A solution as one cyclic order, with what is needed to look things up in it."""

    order: Index  # (N,): nodes; for routes with the depot at both ends of each
    pos: Index  # (n,): position of each node, -1 for the depot
    route: Index  # (N,): number of the route at each position, (0,) for a TSP
    first: Index  # (R,): position of each route's first depot, (0,) for a TSP
    last: Index  # (R,): position of its last
    load: Ints  # (N + 1,): demand of all positions before, (0,) for a TSP
    length: Floats  # (N + 1,): the same for length and service, but anew for every route

    @property
    def n_routes(self) -> int:
        return len(self.first)


def plan_of(rules: Rules, solution: Solution) -> Plan:
    """Lay a valid solution out as one cyclic order."""
    if rules.depot < 0:
        order = solution.tour.astype(np.int32)
    else:
        end = np.array([rules.depot], dtype=np.int64)
        parts = [part for route in solution.routes for part in (end, route, end)]
        order = np.concatenate(parts or [end[:0]]).astype(np.int32)
    return indexed(rules, order)


def indexed(rules: Rules, order: Index) -> Plan:
    pos = np.full(rules.n, -1, dtype=np.int32)
    if rules.depot < 0:
        pos[order] = np.arange(len(order), dtype=np.int32)
        none = np.zeros(0, dtype=np.int32)
        return Plan(order, pos, none, none, none, np.zeros(0, np.int64), np.zeros(0))
    return Plan(order, pos, *_index_routes(rules, order, pos))


@kernel
def _index_routes(rules, order, pos):
    space, depot, demand = rules.space, rules.depot, rules.demand
    n = len(order)
    route = np.empty(n, np.int32)
    first = np.empty(n // 2, np.int32)
    last = np.empty(n // 2, np.int32)
    load = np.zeros(n + 1, np.int64)
    length = np.zeros(n + 1, np.float64)
    r = -1
    inside = False
    for p in range(n):
        node = order[p]
        if node == depot:
            if inside:
                last[r] = p
            else:
                r += 1
                first[r] = p
                length[p] = 0.0  # one sum over all routes would lose digits
            inside = not inside
        else:
            pos[node] = p
        route[p] = r
        load[p + 1] = load[p] + demand[node]
        if p + 1 < n:
            step = distance(space, node, order[p + 1])
            length[p + 1] = length[p] + step + (0.0 if node == depot else rules.service)
    return route, first[: r + 1].copy(), last[: r + 1].copy(), load, length


def solution_of(rules: Rules, plan: Plan) -> Solution:
    """The plan as routes again; empty routes vanish."""
    if rules.depot < 0:
        return Solution([plan.order.astype(np.int64)])
    bounds = zip(plan.first.tolist(), plan.last.tolist(), strict=True)
    return Solution([plan.order[a + 1 : b].astype(np.int64) for a, b in bounds])


OK, NOT_A_REPAIR, OVERLOAD, TOO_LONG = 0, 1, 2, 3

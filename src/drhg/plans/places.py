"""What every stop's place costs, and where else it could stand: exact, by trying every place."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from drhg.hypergraph.plan import Flags, Index, Rules
from drhg.kernels.jit import kernel
from drhg.kernels.space import distance
from drhg.problem import Floats, Ints, Solution
from drhg.problem.tolerances import SEARCH_SLACK

OVERLOAD, TOO_LONG, NO_VEHICLE, LOCKED = 1, 2, 4, 8  # why a place is not allowed


class Layout(NamedTuple):
    """Routes laid end to end; route r has the gaps begins[r] + r .. begins[r + 1] + r."""

    order: Index  # (N,): stops
    begins: Index  # (R + 1,): where each route begins in the order
    load: Ints  # (R,)
    length: Floats  # (R,): service included
    leg: Floats  # (N + R,): the distance that each gap bridges
    closed: Flags  # (N + R,): gaps in which nothing may be put
    stuck: Flags  # (n,): nodes that may not be moved
    barred: Flags  # (n, R + 1) or (0, 0): nodes that may not be in a route; last, in a new one


class Places(NamedTuple):
    """For some stops: what leaving out saves, the best place elsewhere, the best if all could be.

    A place is a route (the number of routes for a new one, -1 for none) and the position in the
    order before which the stop would stand.
    """

    saving: Floats
    cost: Floats  # of the best place that keeps all limits; inf if there is none
    route: Index
    before: Index
    any_cost: Floats  # of the best place, limits or not
    any_route: Index
    any_before: Index
    broken: Index  # the limits that it breaks, a sum of the constants above


def layout_of(rules: Rules, solution: Solution) -> Layout:
    """Routes as a layout in which nothing is locked but fixed edges."""
    order = np.concatenate([np.zeros(0, np.int64), *solution.routes]).astype(np.int32)
    begins = np.cumsum([0] + [len(route) for route in solution.routes]).astype(np.int32)
    count = len(begins) - 1
    layout = Layout(
        order, begins, np.zeros(count, np.int64), np.zeros(count), np.zeros(len(order) + count),
        np.zeros(len(order) + count, np.bool_), np.any(rules.fixed >= 0, axis=1, keepdims=False),
        np.zeros((0, 0), np.bool_),
    )  # fmt: skip
    _measure(rules, layout)
    return layout


@kernel
def _measure(rules, layout):
    space, depot, demand, fixed = rules.space, rules.depot, rules.demand, rules.fixed
    order, begins, load, length, leg, closed, _, _ = layout
    for r in range(len(load)):
        first, end = begins[r], begins[r + 1]
        for p in range(first, end):
            node = order[p]
            before = order[p - 1] if p > first else (depot if depot >= 0 else order[end - 1])
            load[r] += demand[node]
            leg[p + r] = distance(space, before, node)
            length[r] += leg[p + r] + rules.service
            if fixed[node, 0] == before or fixed[node, 1] == before:
                closed[p + r] = True
                if p == first:
                    closed[end + r] = True  # the same edge of a tour
        if depot >= 0 and end > first:
            leg[end + r] = distance(space, order[end - 1], depot)
            length[r] += leg[end + r]


def places_of(rules: Rules, layout: Layout, stops: Index, where: Index) -> Places:
    """The places of some stops that stand at these positions of the order, or at -1: nowhere."""
    n = len(stops)
    found = Places(
        np.zeros(n), np.full(n, np.inf), np.full(n, -1, np.int32), np.full(n, -1, np.int32),
        np.full(n, np.inf), np.full(n, -1, np.int32), np.full(n, -1, np.int32),
        np.zeros(n, np.int32),
    )  # fmt: skip
    longest = rules.max_length * (1.0 + SEARCH_SLACK)
    _places(rules, longest, layout, stops.astype(np.int32), where.astype(np.int32), found)
    return found


@kernel
def _places(rules, max_length, layout, stops, where, found):
    space, depot, demand, service = rules.space, rules.depot, rules.demand, rules.service
    order, begins, load, length, leg, closed, stuck, barred = layout
    saving, cost, route, before, any_cost, any_route, any_before, broken = found
    n_routes = len(load)
    for i in range(len(stops)):
        node, at = stops[i], where[i]
        own = -1
        if at >= 0:
            own = 0
            while begins[own + 1] <= at:
                own += 1
            first, end = begins[own], begins[own + 1]
            a = order[at - 1] if at > first else (depot if depot >= 0 else order[end - 1])
            b = order[at + 1] if at + 1 < end else (depot if depot >= 0 else order[first])
            saving[i] = distance(space, a, node) + distance(space, node, b) - distance(space, a, b)
        # what holds it where it is
        held = LOCKED if stuck[node] and at >= 0 else 0
        # without the triangle inequality, the route that it leaves may become too long
        away = held
        if own >= 0 and length[own] - saving[i] - service > max_length:
            away |= TOO_LONG
        to_depot = distance(space, depot, node) if depot >= 0 else 0.0
        for r in range(n_routes):
            first, end = begins[r], begins[r + 1]
            if end == first:
                continue
            wrong = held if r == own else away
            slack = max_length - length[r]
            if r == own:
                slack += saving[i]
            else:
                slack -= service
                if load[r] + demand[node] > rules.capacity:
                    wrong |= OVERLOAD
                if len(barred) > 0 and barred[node, r]:
                    wrong |= LOCKED
            left = to_depot if depot >= 0 else distance(space, order[end - 1], node)
            # a tour has no gap behind its last stop other than the one before its first
            for p in range(first, end + 1 if depot >= 0 else end):
                right = distance(space, node, order[p]) if p < end else to_depot
                extra = left + right - leg[p + r]
                left = right
                if extra >= cost[i] and extra >= any_cost[i]:
                    continue
                if r == own and (
                    p == at or p == at + 1 or (depot < 0 and p == first and at == end - 1)
                ):
                    continue  # beside itself is where it stands
                flaws = wrong
                if extra > slack:
                    flaws |= TOO_LONG
                if closed[p + r]:
                    flaws |= LOCKED
                if extra < any_cost[i]:
                    any_cost[i], any_route[i], any_before[i] = extra, r, p
                    broken[i] = flaws
                if flaws == 0 and extra < cost[i]:
                    cost[i], route[i], before[i] = extra, r, p
        alone = own >= 0 and begins[own + 1] - begins[own] == 1
        if depot >= 0 and not alone:
            extra = 2.0 * to_depot
            flaws = away
            if extra + service > max_length:
                flaws |= TOO_LONG
            if n_routes >= rules.vehicles:
                flaws |= NO_VEHICLE
            if len(barred) > 0 and barred[node, n_routes]:
                flaws |= LOCKED
            if extra < any_cost[i]:
                any_cost[i], any_route[i], any_before[i] = extra, n_routes, len(order)
                broken[i] = flaws
            if flaws == 0 and extra < cost[i]:
                cost[i], route[i], before[i] = extra, n_routes, len(order)

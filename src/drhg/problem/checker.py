"""What a solution costs and which rules it breaks; shares no code with any search."""

from __future__ import annotations

from typing import Any

import numpy as np

from drhg.errors import SolutionError
from drhg.problem.arguments import Cost, Floats, Ints, from_zero
from drhg.problem.fleet import depots_of_routes, kinds_of, kinds_of_routes, vehicle_called
from drhg.problem.instance import Instance, an_instance
from drhg.problem.metrics import Metric
from drhg.problem.solution import Solution, a_solution
from drhg.problem.timetable import RouteSchedule, schedule
from drhg.problem.tolerances import CHECK_SLACK
from drhg.problem.variants import beyond


def _end_to_end(solution: Solution) -> tuple[Ints, Ints]:
    """All routes in one array, and where each begins: plans have thousands of short routes."""
    sizes = [len(route) for route in solution.routes]
    begins = np.cumsum([0, *sizes], dtype=np.int64)[:-1]
    return np.concatenate([np.zeros(0, np.int64), *solution.routes]), begins


def _route_lengths(instance: Instance, solution: Solution) -> Floats:
    """Length of each route: with the ways from and to the depot, or back to a tour's first node.

    What does not return ends at its last node.
    """
    order, begins = _end_to_end(solution)
    if not len(order):
        return np.zeros(0)
    if instance.is_cvrp:
        order = np.insert(order, begins, depots_of_routes(instance, solution))
        begins = begins + np.arange(len(begins))
    after = np.roll(order, -1)
    lasts = np.append(begins[1:], len(order)) - 1
    after[lasts] = order[begins] if instance.returns else order[lasts]
    return np.add.reduceat(np.asarray(instance.distance(order, after), np.float64), begins)


def cost(instance: Instance, solution: Solution) -> Cost:
    """Total length, recomputed from scratch; an `int` for rounded metrics.

    With vehicles that have a fixed cost, that of every one that drives is added.

    >>> import drhg
    >>> square = drhg.tsp([[0, 0], [0, 1], [1, 1], [1, 0]])
    >>> drhg.cost(square, drhg.Solution([[0, 1, 2, 3]]))
    4.0
    """
    if unknown := _unknown_nodes(an_instance(instance), a_solution(solution)):
        raise SolutionError(unknown[0])
    total = float(_route_lengths(instance, solution).sum())
    if instance.metric is Metric.TRUNC1:
        total = round(total, 1)
    if instance.fleet is not None:
        total += float(kinds_of(instance).fixed[kinds_of_routes(instance, solution)].sum())
    return round(total) if instance.integral else total


def check(instance: Instance, solution: Solution) -> list[str]:
    """Every violation of the instance's rules, in words; empty means the solution is valid.

    Nodes count from 0; `files.messages.in_file_numbers` makes of it what a file's reader expects.

    >>> import drhg
    >>> drhg.check(drhg.tsp([[0, 0], [0, 1], [1, 1]]), drhg.Solution([[0, 1]]))
    ['node 2 (counted from 0) is not visited']
    """
    unknown = _unknown_nodes(an_instance(instance), a_solution(solution))
    n, found = instance.n, list(unknown)
    order, _ = _end_to_end(solution)
    visits = np.bincount(order[(order >= 0) & (order < n)], minlength=n)
    if instance.is_cvrp:
        for depot in instance.depots[visits[instance.depots] > 0]:
            found.append(f"the depot, {instance.called(depot)}, stands inside a route")
        visits[instance.depots] = 1
    elif len(solution.routes) != 1:
        found.append(f"a tour is one route, not {len(solution.routes)}")
    found += [f"{instance.called(i)} is not visited" for i in np.flatnonzero(visits == 0)]
    found += [
        f"{instance.called(i)} is visited {visits[i]} times" for i in np.flatnonzero(visits > 1)
    ]
    if unknown:
        return found
    if instance.demand is not None and instance.capacity is not None:
        found += _route_violations(instance, solution) + _broken_locks(instance, solution)
    else:
        found += _wrong_ends(instance, solution) + _lost_fixed_edges(instance, solution)
    return found


def _unknown_nodes(instance: Instance, solution: Solution) -> list[str]:
    order, begins = _end_to_end(solution)
    outside = np.flatnonzero((order < 0) | (order >= instance.n))
    routes = np.searchsorted(begins, outside, side="right")
    return [
        f"route {r} names {from_zero(order[at])}, which does not exist"
        for at, r in zip(outside, routes, strict=True)
    ]


def _route_violations(instance: Instance, solution: Solution) -> list[str]:
    assert instance.demand is not None
    found, scale, routes = [], instance.demand_scale, solution.routes
    try:
        kind = kinds_of_routes(instance, solution)
    except SolutionError as error:
        return [error.reason]
    kinds = kinds_of(instance)
    order, begins = _end_to_end(solution)
    loads = np.add.reduceat(instance.demand[order], begins) if len(begins) else begins
    for r in np.flatnonzero(loads > kinds.capacity[kind]):
        load, capacity = int(loads[r]) / scale, kinds.capacity[kind[r]] / scale
        found.append(f"{_route(instance, solution, r)} carries {load:g}, capacity is {capacity:g}")
    longest = kinds.max_distance[kind]
    if np.isfinite(longest).any():
        served = np.add.reduceat(instance.services[order], begins) if len(begins) else np.zeros(0)
        lengths = _route_lengths(instance, solution) + served
        for r in np.flatnonzero(lengths > longest * (1 + CHECK_SLACK)):
            allowed = f"allowed is {longest[r]:g}"
            found.append(f"{_route(instance, solution, r)} is {lengths[r]:g} long, {allowed}")
    if instance.vehicles is not None and len(routes) > instance.vehicles:
        found.append(f"{len(routes)} routes, but only {instance.vehicles} vehicles")
    if instance.windows is not None or kinds.timed:
        for i, route in enumerate(schedule(instance, solution)):
            shift = (kinds.closes[kind[i]], kinds.max_duration[kind[i]])
            found += _late(instance, _route(instance, solution, i), route, *shift)
    return found


def _route(instance: Instance, solution: Solution, r: int | np.integer[Any]) -> str:
    """How messages speak of a route: with its vehicle, where that matters."""
    if instance.fleet is None or solution.vehicles is None:
        return f"route {r + 1}"
    return f"route {r + 1} of vehicle {vehicle_called(instance, solution.vehicles[r])}"


def _late(
    instance: Instance, name: str, route: RouteSchedule, back: float, longest: float
) -> list[str]:
    """Where a route is too late, and whether it takes too long."""
    found, closes = [], instance.closes[route.nodes]
    depot = route.nodes[0]
    closes[route.nodes == depot] = back
    for k in np.flatnonzero(beyond(route.begin, closes)):
        at, limit = f"{route.begin[k]:g}", f"{closes[k]:g}"
        if at == limit:
            at, limit = repr(float(route.begin[k])), repr(float(closes[k]))
        if k == 0:
            found.append(f"{name} leaves the depot at {at}, it closes at {limit}")
        elif route.nodes[k] == depot:
            found.append(f"{name} is back at {at}, the depot closes at {limit}")
        else:
            node = instance.called(route.nodes[k])
            found.append(f"{name} reaches {node} at {at}, its window closes at {limit}")
    if beyond(np.array(route.duration), longest):
        found.append(f"{name} takes {route.duration:g}, allowed is {longest:g}")
    return found


def _wrong_ends(instance: Instance, solution: Solution) -> list[str]:
    """Whether a path begins and ends elsewhere than it must."""
    found = []
    for word, node, place in (("start", instance.start, 0), ("end", instance.end, -1)):
        for route in solution.routes:
            if node is not None and route[place] != node:
                there = instance.called(route[place])
                found.append(f"the path must {word} at {instance.called(node)}, not at {there}")
    return found


def _broken_locks(instance: Instance, solution: Solution) -> list[str]:
    """Fixed edges of routes that are missing, and what else was locked and is not so."""
    found, locks = _lost_fixed_edges(instance, solution), instance.locks
    if locks is None:
        return found
    number = {int(node): r for r, route in enumerate(solution.routes) for node in route}
    for group in locks.together:
        apart = [i for i in group if number.get(i) != number.get(group[0])]
        if apart:
            found.append(f"{instance.called(group[0], apart[0])} must stay together")
    if not locks.vehicles:
        return found
    if solution.vehicles is None:
        return [*found, "locks name vehicles, but the plan does not say who drives which route"]
    if instance.vehicles is not None and max(solution.vehicles, default=0) > instance.vehicles:
        last = max(solution.vehicles)
        found.append(f"vehicle {last} drives, but there are only {instance.vehicles}")
    driver = {node: solution.vehicles[r] for node, r in number.items()}
    route_of = dict(zip(solution.vehicles, solution.routes, strict=True))
    nothing = np.zeros(0, np.int64)
    for vehicle, path in locks.driven:
        begun = route_of.get(vehicle, nothing)[: len(path)]
        if begun.tolist() != list(path):
            found.append(f"the route of vehicle {vehicle} does not begin as it was driven")
    for vehicle, path in locks.frozen:
        if route_of.get(vehicle, nothing).tolist() != list(path):
            found.append(f"the frozen route of vehicle {vehicle} has changed")
    for node, vehicle in locks.pinned:
        if driver.get(node) != vehicle:
            found.append(f"{instance.called(node)} is not visited by vehicle {vehicle}")
    for node, vehicle in locks.forbidden:
        if driver.get(node) == vehicle:
            found.append(f"{instance.called(node)} is visited by vehicle {vehicle}, which it bars")
    return found


def _lost_fixed_edges(instance: Instance, solution: Solution) -> list[str]:
    if not instance.fixed_edges:
        return []
    present = set()
    for route in solution.routes:
        after = np.roll(route, -1) if instance.returns and not instance.is_cvrp else route[1:]
        for a, b in zip(route.tolist(), after.tolist(), strict=False):
            present.add((min(a, b), max(a, b)))
    return [
        f"the fixed edge of {instance.called(a, b)} is missing"
        for a, b in instance.fixed_edges
        if (a, b) not in present
    ]


def validated(instance: Instance, solution: Solution) -> Solution:
    """The same solution, or a `SolutionError` that names what is wrong with it."""
    found = check(instance, solution)
    if found:
        more = f" (and {len(found) - 5} more)" if len(found) > 5 else ""
        raise SolutionError("; ".join(found[:5]) + more)
    return solution

"""Solutions as tables: what every route carries, how long it is, and its stops one by one."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from io import StringIO
from types import MappingProxyType
from typing import Any

import numpy as np

from drhg.errors import SolutionError
from drhg.files.messages import errors_as, fail, quoted
from drhg.files.tables import Table, parse_table
from drhg.files.times import clock
from drhg.problem import (
    Floats,
    Instance,
    Metric,
    Solution,
    schedule,
    vehicle_called,
    vehicle_numbers,
)


@dataclass(frozen=True)
class Stop:
    """A stop of a route, and what the vehicle has done when it is served."""

    route: int  # from 1
    position: int  # in the route, from 1
    node: int
    name: str  # the node's number from 0 if it has none
    load: float  # so far, this stop's included; of a TSP 0
    distance: float  # from the depot, or the first stop of a tour, to here
    arrival: float | None = None  # where times are known


@dataclass(frozen=True)
class RouteRow:
    """A route in one line."""

    route: int  # from 1
    stops: int
    load: float
    distance: float  # back to the depot, or the first stop, included, unless routes are open
    first: str
    last: str
    duration: float | None = None  # travel, service and waiting, where times are known
    vehicle: str | None = None  # its name or number, where it matters which one drives


def name_of_node(instance: Instance, node: int) -> str:
    return str(node) if instance.names is None else instance.names[node]


def positions(instance: Instance) -> tuple[Floats, bool] | None:
    """Where nodes are: (longitude, latitude) and True, or (x, y) and False; None if unknown."""
    if instance.xy is None:
        return None
    if instance.degrees:
        return np.asarray(instance.xy[:, ::-1]), True
    if instance.metric is Metric.GEO:
        assert instance._radians is not None
        return np.asarray(np.degrees(instance._radians)[:, ::-1]), True
    return instance.xy, False


def knows_times(instance: Instance) -> bool:
    """Whether a plan of this instance has times of its own, other than distances."""
    given = (instance.durations, instance.windows, instance.release, instance.max_duration)
    timed = any(one.shift or one.max_duration is not None for one in instance.fleet or ())
    return instance.is_cvrp and (timed or any(one is not None for one in given))


def shown_time(instance: Instance, time: float) -> float | str:
    """A time for people: h:mm:ss where it is in seconds, as on the globe, else a number."""
    return clock(time) if instance.degrees else round(time, 6)


def stops_of(instance: Instance, solution: Solution) -> Iterator[Stop]:
    """All stops, route after route, in the order in which they are visited."""
    first = int(instance.is_cvrp)  # behind the depot
    timed = knows_times(instance)
    for number, walked in enumerate(schedule(instance, solution), start=1):
        for place, node in enumerate(solution.routes[number - 1].tolist()):
            at = place + first
            yield Stop(
                number, place + 1, node, name_of_node(instance, node),
                float(walked.load[at]), float(walked.distance[at]),
                float(walked.arrival[at]) if timed else None,
            )  # fmt: skip


def route_rows(instance: Instance, solution: Solution) -> list[RouteRow]:
    """What each route carries, how long it is and how long it takes."""
    rows = []
    timed = knows_times(instance)
    walks = schedule(instance, solution)
    for number, (route, walked) in enumerate(zip(solution.routes, walks, strict=True), start=1):
        ends = [name_of_node(instance, int(route[at])) for at in (0, -1)]
        duration = walked.duration if timed else None
        load = float(walked.load[-1])
        length = float(walked.distance[-1])
        driver = None
        if solution.vehicles is not None:
            driver = vehicle_called(instance, solution.vehicles[number - 1])
        row = RouteRow(number, len(route), load, length, ends[0], ends[1], duration, driver)
        rows.append(row)
    return rows


def stop_table(instance: Instance, solution: Solution) -> dict[str, list[Any]]:
    """The columns of a table with one row per stop; coordinates and loads where there are any."""
    stops = list(stops_of(instance, solution))
    drivers = [vehicle_called(instance, vehicle) for vehicle in solution.vehicles or ()]
    table: dict[str, list[Any]] = {
        "route": [stop.route for stop in stops],
        **(
            {}
            if solution.vehicles is None
            else {
                "vehicle": [drivers[stop.route - 1] for stop in stops],
            }
        ),
        "position": [stop.position for stop in stops],
        "node" if instance.names is None else "name": [stop.name for stop in stops],
    }
    nodes = [stop.node for stop in stops]
    if instance.xy is not None:
        axes = ("lat", "lon") if instance.degrees else ("x", "y")
        table |= dict(zip(axes, instance.xy[nodes].T.tolist(), strict=True))
    if instance.demand is not None:
        table["demand"] = (instance.demand[nodes] / instance.demand_scale).tolist()
        table["load"] = [stop.load for stop in stops]
    digits = 0 if instance.integral else 6
    table["distance"] = [round(stop.distance, digits) for stop in stops]
    if knows_times(instance):
        table["arrival"] = [shown_time(instance, stop.arrival or 0.0) for stop in stops]
    return table


def format_routes(instance: Instance, solution: Solution) -> str:
    """A solution as CSV, one row per stop; `parse_routes` gives back the same solution."""
    table = stop_table(instance, solution)
    out = StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table)
    writer.writerows(zip(*(map(_short, column) for column in table.values()), strict=True))
    return out.getvalue()


def _short(value: Any) -> str:
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)


def parse_routes(data: bytes, instance: Instance, *, file: str | None = None) -> Solution:
    """The solution of a CSV with columns route, position and name (or node), in any order of rows.

    Other columns are not looked at. Nodes are checked to exist; `problem.check` does more.
    """
    with errors_as(SolutionError, file):
        table = parse_table(data)
        place = {heading.casefold(): i for i, heading in enumerate(table.header)}
        who = "name" if "name" in place else "node"
        missing = [one for one in ("route", "position", who) if one not in place]
        if missing:
            fail(f"no column {quoted(missing[0])}; needed: route, position, and name or node", 1)
        numbers = [_whole(table, place[key]) for key in ("route", "position")]
        nodes = _nodes(table, place[who], who, instance)
        seen: dict[tuple[int, int], int] = {}
        for where, line in zip(zip(*numbers, strict=True), table.lines, strict=True):
            if seen.setdefault(where, line) != line:
                fail(f"position {where[1]} of route {where[0]} is also on line {seen[where]}", line)
        routes: dict[int, list[int]] = {}
        for at in sorted(range(len(table)), key=lambda row: (numbers[0][row], numbers[1][row])):
            routes.setdefault(numbers[0][at], []).append(nodes[at])
        known = vehicle_numbers(instance)
        drivers = _vehicles(table, place.get("vehicle"), numbers[0], known)
        return Solution(list(routes.values()), drivers)


def parse_named_plan(data: bytes, *, file: str | None = None) -> tuple[Solution, tuple[str, ...]]:
    """The routes of a CSV and the names in it, whatever the instance: nodes are places of names."""
    with errors_as(SolutionError, file):
        table = parse_table(data)
        place = {heading.casefold(): i for i, heading in enumerate(table.header)}
        missing = [one for one in ("route", "position", "name") if one not in place]
        if missing:
            fail(f"no column {quoted(missing[0])}; needed: route, position and name", 1)
        names = tuple(cell.strip() for cell in table.columns[place["name"]])
        first: dict[str, int] = {}
        for name, line in zip(names, table.lines, strict=True):
            if first.setdefault(name, line) != line:
                fail(f"{quoted(name)} is also on line {first[name]}", line)
        route, position = (_whole(table, place[key]) for key in ("route", "position"))
        routes: dict[int, list[int]] = {}
        for at in sorted(range(len(table)), key=lambda row: (route[row], position[row])):
            routes.setdefault(route[at], []).append(at)
        drivers = _vehicles(table, place.get("vehicle"), route)
        return Solution(list(routes.values()), drivers), names


def _vehicles(
    table: Table, at: int | None, routes: list[int], known: Mapping[str, int] = MappingProxyType({})
) -> list[int] | None:
    """Who drives each route, if a column says so: the same on all its rows."""
    if at is None:
        return None
    driver: dict[int, int] = {}
    cells = tuple(str(known.get(cell.strip(), cell)) for cell in table.columns[at])
    named = replace(table, columns=(*table.columns[:at], cells, *table.columns[at + 1 :]))
    for route, vehicle, line in zip(routes, _whole(named, at), table.lines, strict=True):
        if driver.setdefault(route, vehicle) != vehicle:
            fail(f"route {route} is driven by vehicle {driver[route]} elsewhere", line)
    return [driver[route] for route in sorted(driver)]


def _whole(table: Table, at: int) -> list[int]:
    found = []
    for cell, line in zip(table.columns[at], table.lines, strict=True):
        text = cell.strip()
        if not (text.isascii() and text.isdigit() and len(text) < 10):
            fail(f"column {quoted(table.header[at])}: {quoted(text)} is no whole number", line)
        found.append(int(text))
    return found


def _nodes(table: Table, at: int, who: str, instance: Instance) -> list[int]:
    """The nodes in a column of names, or of numbers from 0."""
    if who == "node" or instance.names is None:
        found = _whole(table, at)
        for node, line in zip(found, table.lines, strict=True):
            if node >= instance.n:
                fail(f"node {node} is not one of 0 .. {instance.n - 1}", line)
        return found
    numbers: Mapping[str, int] = {name: i for i, name in enumerate(instance.names)}
    for cell, line in zip(table.columns[at], table.lines, strict=True):
        if cell.strip() not in numbers:
            fail(f"column 'name': the instance has no stop {quoted(cell.strip())}", line)
    return [numbers[cell.strip()] for cell in table.columns[at]]

"""A solution as one HTML page: a map to move around in, and a table of the routes.

The page asks for nothing from any network, unless its reader turns the street map on.
"""

from __future__ import annotations

import html
import json
from importlib import resources
from typing import Any

import numpy as np

from drhg.files.messages import fail
from drhg.files.routes import positions, route_rows, shown_time, stops_of
from drhg.problem import (
    Cost,
    Floats,
    Instance,
    Metric,
    Solution,
    depots_of_routes,
    kinds_of,
    kinds_of_routes,
)


def format_map(
    instance: Instance, solution: Solution, cost: Cost, explained: dict[str, Any] | None = None
) -> str:
    """The page, whole in itself; the script in it draws what `_facts` says.

    `explained` has what `drhg.Explanation.map_facts` knows of the stops.
    """
    whole = _facts(instance, solution, cost) | {"explained": explained}
    facts = json.dumps(whole, ensure_ascii=False, separators=(",", ":"))
    page = resources.files("drhg.files").joinpath("map.html").read_text(encoding="utf-8")
    head, middle, tail = page.partition("$DATA")
    title = html.escape(f"{instance.name}: {len(solution.routes)} routes")
    return head.replace("$TITLE", title) + facts.replace("<", "\\u003c") + tail if middle else page


def coordinates_of(instance: Instance) -> tuple[Floats, bool]:
    """Where the nodes are and whether that is on the globe, or an error where nobody knows."""
    found = positions(instance)
    if found is None:
        fail(f"{instance.name} has distances but no coordinates to draw")
    return found


def _facts(instance: Instance, solution: Solution, cost: Cost) -> dict[str, Any]:
    spots, globe = coordinates_of(instance)
    digits = 6 if globe else max(0, 6 - _magnitude(float(np.ptp(spots))))
    ends = [[], []] if not len(spots) else np.round(spots, digits).T.tolist()
    scale = instance.demand_scale
    places = max(0, 5 - _magnitude(float(cost)))
    rows = route_rows(instance, solution)
    homes = depots_of_routes(instance, solution).tolist() if instance.is_cvrp else []
    differ = instance.fleet is not None
    room = (
        kinds_of(instance).capacity[kinds_of_routes(instance, solution)] / scale if differ else ()
    )
    routes: list[dict[str, Any]] = [
        {
            "nodes": route.tolist(), "load": [], "distance": [], "length": round(row.distance, 3),
            **_timed(instance, row.duration),
        }
        for route, row in zip(solution.routes, rows, strict=True)
    ]  # fmt: skip
    for about, home in zip(routes, homes, strict=False):
        about["depot"] = home
    for about, capacity in zip(routes, room, strict=False):
        about["capacity"] = float(capacity)
    for stop in stops_of(instance, solution):
        about = routes[stop.route - 1]
        about["load"].append(round(stop.load, 6))
        about["distance"].append(round(stop.distance, places))
        if stop.arrival is not None:
            about["arrival"].append(_time(instance, stop.arrival))
    return {
        "name": instance.name,
        "cost": cost,
        "metres": instance.metric is Metric.HAVERSINE,
        "globe": globe,
        "x": ends[0],
        "y": ends[1],
        "names": instance.names,
        "depots": instance.depots.tolist() if instance.is_cvrp else [],
        "returns": instance.returns,
        "demand": None if instance.demand is None else (instance.demand / scale).tolist(),
        "capacity": None if instance.capacity is None or differ else instance.capacity / scale,
        "routes": routes,
        "vehicles": solution.vehicles and [row.vehicle for row in rows],
    }


def _timed(instance: Instance, duration: float | None) -> dict[str, Any]:
    return {} if duration is None else {"arrival": [], "time": _time(instance, duration)}


def _time(instance: Instance, time: float) -> str:
    shown = shown_time(instance, time)
    return shown if isinstance(shown, str) else f"{shown:,.6g}"


def _magnitude(value: float) -> int:
    """The power of ten of a number: 3 of 1234, 0 of nothing."""
    return int(np.floor(np.log10(value))) if value > 0 else 0

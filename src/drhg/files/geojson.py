"""GeoJSON (RFC 7946): stops as points, routes as lines; latitude and longitude only."""

from __future__ import annotations

import itertools
import json
from typing import Any

from drhg.errors import InstanceError, SolutionError
from drhg.files.json import instance_from_fields, load_json, to_json
from drhg.files.messages import errors_as, fail, quoted
from drhg.files.routes import name_of_node, positions, route_rows, stops_of
from drhg.files.sections import plain
from drhg.problem import (
    Cost,
    Instance,
    Metric,
    Solution,
    depots_of_routes,
    vehicle_called,
    whole_demands,
)

_LIMITS = ("capacity", "vehicles", "max_distance", "comment")
_MORE = (  # fields of the JSON format that say what else is asked
    "service_time", "durations", "windows", "release", "max_duration", "returns", "start", "end",
    "fixed_edges", "locks", "fleet",
)  # fmt: skip


def _point(lonlat: list[float], properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "Feature",
        "geometry": {"type": "Point", "coordinates": lonlat},
        "properties": properties,
    }


def degrees_of(instance: Instance) -> list[list[float]]:
    """Longitude and latitude of every node, or an error where there are none."""
    found = positions(instance)
    if found is None or not found[1]:
        fail("GeoJSON is for latitude and longitude, which this instance does not have")
    spots: list[list[float]] = found[0].tolist()
    return spots


def _stop(instance: Instance, node: int) -> dict[str, Any]:
    row: dict[str, Any] = {"name": name_of_node(instance, node), "node": node}
    if instance.demand is not None:
        if node in instance.depots:
            return row | {"kind": "depot"}
        row["demand"] = instance.demand[node].item() / instance.demand_scale
    return row | {"kind": "stop"}


def instance_to_geojson(instance: Instance) -> str:
    """Stops as points, from which `instance_from_geojson` gives back the same instance."""
    if instance.metric is not Metric.HAVERSINE:
        fail(f"a GeoJSON instance has great-circle distances, this one {instance.metric.name}")
    spots = degrees_of(instance)
    scale = instance.demand_scale
    facts = {name: getattr(instance, name) for name in _LIMITS if getattr(instance, name)}
    more = json.loads(to_json(instance))
    facts |= {name: more[name] for name in _MORE if more.get(name) not in (None, [], 0.0)}
    if instance.fleet is not None:
        del facts["vehicles"]
    if instance.capacity is not None:
        facts["capacity"] = instance.capacity / scale
    found = {
        "type": "FeatureCollection",
        "name": instance.name,
        "drhg": {"named": instance.names is not None, **facts},
        "features": [_point(spots[i], _stop(instance, i)) for i in range(instance.n)],
    }
    return json.dumps(found, ensure_ascii=False) + "\n"


def instance_from_geojson(data: bytes, *, file: str | None = None) -> Instance:
    """The points of a FeatureCollection as stops: with demands and a capacity, or a TSP.

    Properties `name` and `demand` are read; the depot is the point of kind "depot", or the first.
    """
    with errors_as(InstanceError, file):
        found = load_json(plain(data))
        if not isinstance(found, dict) or found.get("type") != "FeatureCollection":
            fail("the GeoJSON is no FeatureCollection")
        facts = found.get("drhg") or {}
        features = found.get("features")
        if not isinstance(facts, dict) or not isinstance(features, list):
            fail("the GeoJSON has no list of features")
        points = [one for one in features if _is_point(one)]
        if not points:
            fail("the GeoJSON has no point")
        xy = []
        for number, one in enumerate(points, start=1):
            spot = one["geometry"].get("coordinates")
            if not (isinstance(spot, list) and len(spot) in (2, 3) and all(map(_is_real, spot))):
                fail(f"point {number}: its coordinates are not longitude and latitude")
            xy.append([float(spot[1]), float(spot[0])])
        about = [one.get("properties") or {} for one in points]
        if not all(isinstance(one, dict) for one in about):
            fail("the properties of a point are an object")
        names = None
        if facts.get("named", True) and all("name" in one for one in about):
            names = [str(one["name"]) for one in about]
        name = found.get("name") if isinstance(found.get("name"), str) else "stops"
        fields: dict[str, Any] = {"format": "drhg-instance", "metric": "HAVERSINE", "name": name}
        fields |= {"names": names, "xy": xy}
        fields |= {key: facts[key] for key in (*_LIMITS, *_MORE) if key in facts}
        demands = [one.get("demand") for one in about]
        home = next((i for i, one in enumerate(about) if one.get("kind") == "depot"), None)
        if "capacity" in facts or any(demand is not None for demand in demands):
            if not _is_real(facts.get("capacity")):
                fail('stops with demands need {"drhg": {"capacity": ...}} beside the features')
            for number, demand in enumerate(demands, start=1):
                if demand is not None and not _is_real(demand):
                    fail(f"point {number}: the demand {quoted(str(demand))} is no number")
            whole, most, scale = whole_demands(
                [demand or 0 for demand in demands], facts["capacity"], _loads(facts.get("fleet"))
            )
            fields |= {"demand": whole.tolist(), "capacity": most, "demand_scale": scale,
                       "depot": home or 0}  # fmt: skip
        return instance_from_fields(fields)


def _loads(fleet: Any) -> list[float]:
    """The capacities in a list of types of vehicles; what else is wrong with it is told later."""
    rows = [row for row in fleet if isinstance(row, dict)] if isinstance(fleet, list) else []
    return [row["capacity"] for row in rows if _is_real(row.get("capacity"))]


def solution_from_geojson(data: bytes, instance: Instance, *, file: str | None = None) -> Solution:
    """The solution in the points that `solution_to_geojson` writes: by their route and position."""
    with errors_as(SolutionError, file):
        found = load_json(plain(data))
        features = found.get("features") if isinstance(found, dict) else None
        if not isinstance(features, list):
            fail("the GeoJSON has no list of features")
        numbers = {name_of_node(instance, node): node for node in range(instance.n)}
        key = "node" if instance.names is None else "name"
        routes: dict[int, dict[int, int]] = {}
        drivers: dict[int, int] = {}
        for number, one in enumerate(filter(_is_point, features), start=1):
            about = one.get("properties")
            if not isinstance(about, dict) or "route" not in about:
                continue
            route, position = _count(about.get("route")), _count(about.get("position"))
            if route is None or position is None:
                fail(f"point {number}: route and position must be whole numbers from 1")
            node = numbers.get(str(about.get(key)))
            if node is None:
                fail(f"point {number}: the instance has no stop {quoted(str(about.get(key)))}")
            vehicle = _count(about.get("vehicle")) or 0
            if drivers.setdefault(route, vehicle) != vehicle:
                fail(f"point {number}: route {route} has another vehicle elsewhere")
            stops = routes.setdefault(route, {})
            if position in stops:
                fail(f"point {number}: position {position} of route {route} is taken")
            stops[position] = node
        if not routes:
            fail("no point has a route: this GeoJSON is no solution")
        ordered = [[stops[p] for p in sorted(stops)] for _, stops in sorted(routes.items())]
        named = [drivers[route] for route in sorted(routes)]
        return Solution(ordered, named if all(named) else None)


def _is_point(feature: Any) -> bool:
    geometry = feature.get("geometry") if isinstance(feature, dict) else None
    return isinstance(geometry, dict) and geometry.get("type") == "Point"


def _count(value: Any) -> int | None:
    """A number that counts from 1, or nothing if it is none."""
    return value if type(value) is int and 0 < value < 10**9 else None


def _is_real(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) < 1e15


def solution_to_geojson(instance: Instance, solution: Solution, cost: Cost) -> dict[str, Any]:
    """Routes as lines with their load, length and stops; then the stops, with where they come.

    A line that crosses the date line is cut there into two, as the standard asks.
    """
    spots = degrees_of(instance)
    features: list[dict[str, Any]] = []
    depots = depots_of_routes(instance, solution) if instance.is_cvrp else None
    for row, route in zip(route_rows(instance, solution), solution.routes, strict=True):
        nodes = route.tolist()
        ends = [] if depots is None else [int(depots[row.route - 1])]
        path = [*ends, *nodes, *((ends or nodes[:1]) if instance.returns else [])]
        lines = _cut_at_date_line([spots[node] for node in path])
        about: dict[str, Any] = {"kind": "route", "route": row.route, "stops": row.stops}
        if solution.vehicles is not None:
            about |= _vehicle(instance, solution.vehicles[row.route - 1])
        if instance.is_cvrp:
            about["load"] = row.load
        geometry = (
            {"type": "LineString", "coordinates": lines[0]}
            if len(lines) == 1
            else {"type": "MultiLineString", "coordinates": lines}
        )
        about["distance"] = row.distance
        if row.duration is not None:
            about["duration"] = row.duration
        features.append({"type": "Feature", "geometry": geometry, "properties": about})
    if instance.is_cvrp:
        for depot in instance.depots.tolist():
            features.append(_point(spots[depot], _stop(instance, depot)))
    for stop in stops_of(instance, solution):
        about = _stop(instance, stop.node) | {"route": stop.route, "position": stop.position}
        if solution.vehicles is not None:
            about |= _vehicle(instance, solution.vehicles[stop.route - 1])
        if instance.is_cvrp:
            about["load"] = stop.load
        about["distance"] = stop.distance
        if stop.arrival is not None:
            about["arrival"] = stop.arrival
        features.append(_point(spots[stop.node], about))
    return {
        "type": "FeatureCollection", "name": instance.name, "cost": cost, "features": features
    }  # fmt: skip


def _vehicle(instance: Instance, vehicle: int) -> dict[str, Any]:
    """The number of a vehicle, and its name if it has one."""
    name = vehicle_called(instance, vehicle)
    return {"vehicle": vehicle} | ({} if name == str(vehicle) else {"vehicle_name": name})


def _cut_at_date_line(path: list[list[float]]) -> list[list[list[float]]]:
    """A path as pieces none of which jumps from one edge of the map to the other."""
    pieces = [[path[0]]]
    for here, there in itertools.pairwise(path):
        if abs(there[0] - here[0]) > 180:
            edge = 180.0 if here[0] > 0 else -180.0
            ahead = there[0] + 2 * edge  # where it would be without the jump
            share = (edge - here[0]) / (ahead - here[0])
            latitude = here[1] + share * (there[1] - here[1])
            pieces[-1].append([edge, latitude])
            pieces.append([[-edge, latitude]])
        pieces[-1].append(there)
    return pieces

"""JSON: instances and solutions."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, TypeAlias

import numpy as np

from drhg import problem
from drhg.errors import InstanceError, SolutionError
from drhg.files.messages import errors_as, fail, name_of, quoted
from drhg.files.paths import PathLike
from drhg.files.sections import plain
from drhg.problem import Cost, Instance, Locks, Metric, Solution, VehicleType


def to_json(instance: Instance) -> str:
    """An instance as JSON; nodes count from 0."""
    fields = {name: getattr(instance, name) for name in _JSON_FIELDS}
    fields["metric"] = instance.metric.name
    if instance.windows is not None:
        fields["windows"] = [[a, b if b < np.inf else None] for a, b in instance.windows.tolist()]
    if instance.locks is not None:
        fields["locks"] = asdict(instance.locks)
    if instance.fleet is not None:
        del fields["vehicles"], fields["capacity"], fields["depot"]  # the fleet says it
        fields["fleet"] = list(map(_type_fields, instance.fleet))
    for name, usual in _WHEN_GIVEN.items():
        if fields[name] is usual:
            del fields[name]
    lists = {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in fields.items()}
    return json.dumps({"format": "drhg-instance", **lists}) + "\n"


def from_json(text: str | bytes, *, file: str | None = None) -> Instance:
    """The instance that `to_json` wrote."""
    with errors_as(InstanceError, file):
        return instance_from_fields(load_json(plain(text)))


def instance_from_fields(given: Any, *, file: str | None = None) -> Instance:
    """The instance of JSON that has been read already."""
    with errors_as(InstanceError, file):
        fields = dict(given) if isinstance(given, dict) else given
        if not isinstance(fields, dict) or fields.pop("format", None) != "drhg-instance":
            fail('the JSON is not an object with "format": "drhg-instance"')
        for name, value in fields.items():
            if name not in _JSON_FIELDS:
                fail(f"unknown field {quoted(name)}")
            if not (_JSON_FIELDS[name](value) or (value is None and name in _OPTIONAL)):
                fail(f"{name} has a wrong value: {quoted(json.dumps(value))}")
        fields["metric"] = Metric[fields.get("metric", "EXACT")]
        if fields.get("windows") is not None:
            fields["windows"] = [[a, np.inf if b is None else b] for a, b in fields["windows"]]
        for name, kind in _ARRAYS.items():
            if isinstance(fields.get(name), list):
                fields[name] = np.array(fields[name], dtype=kind)
        if fields.get("locks") is not None:
            fields["locks"] = Locks(**fields["locks"])
        if fields.get("fleet") is not None:
            fields["fleet"] = tuple(map(_type_of, fields["fleet"]))
        return Instance(**fields)


def _type_fields(one: VehicleType) -> dict[str, Any]:
    """What a type of vehicles says; the end of a shift may be missing."""
    found = {name: value for name, value in asdict(one).items() if value not in (None, "")}
    if one.shift is not None:
        found["shift"] = [one.shift[0], one.shift[1] if one.shift[1] < np.inf else None]
    return found


def _type_of(row: dict[str, Any]) -> VehicleType:
    if row.get("shift") is not None:
        start, end = row["shift"]
        row = row | {"shift": (start, np.inf if end is None else end)}
    return VehicleType(**row)


def solution_row(
    instance: Instance,
    solution: Solution,
    cost: Cost | None = None,
    *,
    file: PathLike | None = None,
) -> dict[str, Any]:
    """A solution as an object of JSON: the one form that all commands print, write and read.

    `file` is the instance's; `cost` is recomputed unless given. Nodes count from 0; where they have
    names, "names" lists these in the same order.

    >>> import drhg
    >>> square = drhg.tsp([[0, 0], [0, 1], [1, 1], [1, 0]], name="square")
    >>> solution_row(square, drhg.Solution([[0, 1, 2, 3]]))  # doctest: +NORMALIZE_WHITESPACE
    {'file': None, 'name': 'square', 'problem': 'tsp', 'n': 4, 'cost': 4.0, 'tour': [0, 1, 2, 3]}
    """
    row: dict[str, Any] = {
        "file": None if file is None else name_of(file, "file"),
        "name": instance.name,
        "problem": instance.problem,
        "n": instance.n,
        "cost": problem.cost(instance, solution) if cost is None else cost,
    }
    routes = [route.tolist() for route in solution.routes]
    if solution.vehicles is not None:
        row["vehicles"] = list(solution.vehicles)
    row |= {"routes": routes} if instance.is_cvrp else {"tour": solution.tour.tolist()}
    if instance.names is not None:
        named = [[instance.names[node] for node in route] for route in routes]
        row["names"] = named if instance.is_cvrp else named[0]
    return row


def solution_from_json(
    text: str | bytes,
    instance: Instance,
    *,
    file: str | None = None,
    instance_file: PathLike | None = None,
) -> Solution:
    """The solution in a JSON object such as `solution_row` makes, alone or one of many lines.

    Of many lines it is the one whose "file" is the instance's, or else whose "name" is. Nodes are
    checked to exist, `problem.check` does more.
    """
    with errors_as(SolutionError, file):
        rows = _solution_rows(plain(text))
        line, row = rows[0] if len(rows) == 1 else _fitting_row(rows, instance, instance_file)
        return Solution(_routes_of(row, line, instance), _vehicles_of(row, line))


def solution_from_fields(given: Any, instance: Instance, *, file: str | None = None) -> Solution:
    """The solution of a JSON object that has been read already."""
    with errors_as(SolutionError, file):
        if not isinstance(given, dict):
            fail("a solution in JSON is an object")
        return Solution(_routes_of(given, None, instance), _vehicles_of(given, None))


_Row: TypeAlias = tuple[int | None, dict[str, Any]]  # an object, and its line if it is one of many


def _solution_rows(data: bytes) -> list[_Row]:
    lines = [(i, line) for i, line in enumerate(data.split(b"\n"), start=1) if line.strip()]
    rows: list[tuple[int | None, Any]]
    if len(lines) > 1 and lines[0][1].strip()[-1:] + lines[1][1].strip()[:1] == b"}{":
        rows = [(number, load_json(line, number)) for number, line in lines]
    else:
        rows = [(None, load_json(data))]
    for line, row in rows:
        if not isinstance(row, dict):
            fail("a solution in JSON is an object", line)
    return rows


def _fitting_row(rows: Sequence[_Row], instance: Instance, instance_file: PathLike | None) -> _Row:
    def fit(row: dict[str, Any]) -> int:
        file = row.get("file")
        if instance_file is not None and isinstance(file, str):
            ours = os.fspath(instance_file)
            if os.path.abspath(file) == os.path.abspath(ours):
                return 3
            if os.path.basename(file) == os.path.basename(ours):
                return 2
        return int(row.get("name") == instance.name)

    fits = [fit(row) for _, row in rows]
    best = [row for row, how in zip(rows, fits, strict=True) if how == max(fits)]
    asked = f"{instance.name!r}" + ("" if instance_file is None else f" ({instance_file})")
    if max(fits) == 0:
        fail(f"none of its {len(rows)} solutions is of {asked}, by file or name")
    if len(best) > 1:
        numbers = f"{best[0][0]} and {best[1][0]}"
        fail(f"lines {numbers} are both solutions of {asked}: keep one of them", best[1][0])
    return best[0]


def _routes_of(row: dict[str, Any], line: int | None, instance: Instance) -> list[list[int]]:
    if ("tour" in row) == ("routes" in row):
        fail('a solution in JSON has either "tour" or "routes"', line)
    for name, ours in (("problem", instance.problem), ("n", instance.n)):
        if row.get(name, ours) != ours:
            given = quoted(json.dumps(row[name]))
            fail(f'the solution has "{name}": {given}, but the instance {ours!r}', line)
    if not _is_real(row.get("cost") or 0):
        fail("cost must be a number", line)
    key = "tour" if "tour" in row else "routes"
    if key == "tour" and instance.is_cvrp:
        fail("a tour is for a TSP, but the instance is a CVRP", line)
    routes = [row["tour"]] if key == "tour" else row["routes"]
    if not _is_list(routes, lambda r: _is_list(r, lambda i: _is_whole(i) and 0 <= i < instance.n)):
        what = "a list" if key == "tour" else "lists"
        fail(f"{key} must be {what} of the nodes 0 .. {instance.n - 1} (counted from 0)", line)
    return routes


def _vehicles_of(row: dict[str, Any], line: int | None) -> list[int] | None:
    """The vehicles of the routes, if they are told; JSON of instances may have a number there."""
    vehicles = row.get("vehicles")
    if vehicles is None or "routes" not in row:
        return None
    if not _is_path(vehicles) or len(vehicles) != len(row["routes"]):
        fail("vehicles must be a list with one number per route", line)
    return list(vehicles)


def load_json(data: bytes, line: int = 1) -> Any:
    """What a JSON text says that begins at this line; no field of an object may occur twice."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) != len(pairs):
            raise ValueError("a field occurs twice")
        return dict(pairs)

    try:
        return json.loads(data, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        fail(f"not JSON: {error.msg}", error.lineno + line - 1)
    except (ValueError, RecursionError) as error:
        fail(f"not usable JSON: {error}", line if line > 1 else None)


def _is_whole(value: Any) -> bool:
    return type(value) is int and abs(value) < 2**62  # not isinstance: a bool is no number here


def _is_real(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) < 1e300  # neither nan nor infinite


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_list(value: Any, check: Callable[[Any], bool]) -> bool:
    return isinstance(value, list) and all(map(check, value))


def _is_rows(value: Any, width: int, check: Callable[[Any], bool]) -> bool:
    return _is_list(value, lambda row: _is_list(row, check) and len(row) == width)


def _is_path(value: Any) -> bool:
    return _is_list(value, _is_whole)


def _is_route(value: Any) -> bool:
    """A vehicle and what it visits."""
    return (
        isinstance(value, list) and len(value) == 2 and _is_whole(value[0]) and _is_path(value[1])
    )


_LOCKS: dict[str, Callable[[Any], bool]] = {
    "driven": lambda v: _is_list(v, _is_route),
    "frozen": lambda v: _is_list(v, _is_route),
    "pinned": lambda v: _is_rows(v, 2, _is_whole),
    "forbidden": lambda v: _is_rows(v, 2, _is_whole),
    "together": lambda v: _is_list(v, _is_path),
}
_TYPE: dict[str, Callable[[Any], bool]] = {
    "name": _is_text,
    "count": _is_whole,
    "capacity": _is_real,
    "fixed_cost": _is_real,
    "depot": _is_whole,
    "shift": lambda v: (
        isinstance(v, list) and len(v) == 2 and _is_real(v[0]) and (v[1] is None or _is_real(v[1]))
    ),
    "max_distance": _is_real,
    "max_duration": _is_real,
}


def _is_type(value: Any) -> bool:
    """A type of vehicles."""
    return (
        isinstance(value, dict)
        and value.keys() <= _TYPE.keys()
        and all(cell is None or _TYPE[name](cell) for name, cell in value.items())
    )


_JSON_FIELDS: dict[str, Callable[[Any], bool]] = {
    "name": _is_text,
    "metric": lambda v: _is_text(v) and v in Metric.__members__,
    "xy": lambda v: v != [] and _is_rows(v, 2, _is_real),
    "matrix": lambda v: isinstance(v, list) and v != [] and _is_rows(v, len(v), _is_real),
    "demand": lambda v: _is_list(v, _is_whole),
    "capacity": _is_whole,
    "demand_scale": _is_whole,
    "depot": _is_whole,
    "vehicles": _is_whole,
    "max_distance": _is_real,
    "service_time": lambda v: _is_real(v) or _is_list(v, _is_real),
    "fixed_edges": lambda v: _is_rows(v, 2, _is_whole),
    "comment": _is_text,
    "names": lambda v: _is_list(v, _is_text),
    "degrees": lambda v: isinstance(v, bool),
    "durations": lambda v: isinstance(v, list) and v != [] and _is_rows(v, len(v), _is_real),
    "windows": lambda v: _is_rows(v, 2, lambda time: time is None or _is_real(time)),
    "release": lambda v: _is_list(v, _is_real),
    "max_duration": _is_real,
    "returns": lambda v: isinstance(v, bool),
    "start": _is_whole,
    "end": _is_whole,
    "locks": lambda v: (
        isinstance(v, dict)
        and v.keys() <= _LOCKS.keys()
        and all(_LOCKS[name](value) for name, value in v.items())
    ),
    "fleet": lambda v: _is_list(v, _is_type),
}
_ARRAYS: dict[str, type | None] = {
    "xy": np.float64, "matrix": None, "demand": np.int64, "service_time": np.float64,
    "durations": np.float64, "windows": np.float64, "release": np.float64,
}  # fmt: skip
_WHEN_GIVEN: dict[str, object] = {  # left out where there is nothing to say
    "names": None, "degrees": False, "durations": None, "windows": None, "release": None,
    "max_duration": None, "returns": True, "start": None, "end": None, "locks": None, "fleet": None,
}  # fmt: skip
_OPTIONAL = {"xy", "matrix", "demand", "capacity", "vehicles", "max_distance"} | {
    name for name, usual in _WHEN_GIVEN.items() if usual is None
}

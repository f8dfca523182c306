"""Files by their names: which reader and which writer."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from dataclasses import dataclass

from drhg import problem
from drhg.errors import DrhgError, InstanceError, SolutionError
from drhg.files.atomic import atomic_write
from drhg.files.cvrplib import format_sol, parse_sol
from drhg.files.geojson import (
    degrees_of,
    instance_from_geojson,
    instance_to_geojson,
    solution_from_geojson,
    solution_to_geojson,
)
from drhg.files.json import from_json, solution_from_json, solution_row, to_json
from drhg.files.map import coordinates_of, format_map
from drhg.files.messages import errors_as, fail, name_of
from drhg.files.paths import STANDARD, PathLike, suffix
from drhg.files.routes import format_routes, parse_routes
from drhg.files.solomon import format_solomon, looks_like_solomon, parse_solomon
from drhg.files.stops import format_stops, looks_like_stops, parse_stops
from drhg.files.streams import read_bytes, write_out
from drhg.files.tsplib import format_instance, format_tour, parse, parse_tour
from drhg.problem import Cost, Instance, Solution

BOTH = ("tsp", "cvrp")


@dataclass(frozen=True)
class InstanceFormat:
    """How instances come from and go to files of a kind; None where they do not."""

    what: str
    read: Callable[[bytes, str], Instance] | None = None  # the content, the file's name
    write: Callable[[Instance], str] | None = None
    problems: tuple[str, ...] = BOTH  # that can be written


@dataclass(frozen=True)
class SolutionFormat:
    """The same for solutions; the file named last is the instance's, if it is known."""

    what: str
    read: Callable[[bytes, Instance, str, PathLike | None], Solution] | None = None
    write: Callable[[Instance, Solution, Cost, PathLike | None], str] | None = None
    problems: tuple[str, ...] = BOTH
    needs: Callable[[Instance], object] | None = None  # raises where an instance lacks something


def _tour(
    instance: Instance, solution: Solution, cost: Cost, instance_file: PathLike | None
) -> str:
    return format_tour(instance, solution, cost)


def _sol(instance: Instance, solution: Solution, cost: Cost, instance_file: PathLike | None) -> str:
    return format_sol(instance, solution, cost)


def _row(instance: Instance, solution: Solution, cost: Cost, instance_file: PathLike | None) -> str:
    return json.dumps(solution_row(instance, solution, cost, file=instance_file)) + "\n"


def _lines(
    instance: Instance, solution: Solution, cost: Cost, instance_file: PathLike | None
) -> str:
    return json.dumps(solution_to_geojson(instance, solution, cost), ensure_ascii=False) + "\n"


def _table(
    instance: Instance, solution: Solution, cost: Cost, instance_file: PathLike | None
) -> str:
    return format_routes(instance, solution)


def _map(instance: Instance, solution: Solution, cost: Cost, instance_file: PathLike | None) -> str:
    return format_map(instance, solution, cost)


INSTANCES: dict[str, InstanceFormat] = {
    ".tsp": InstanceFormat("TSPLIB", lambda d, f: parse(d, file=f), format_instance, ("tsp",)),
    ".vrp": InstanceFormat("VRPLIB", lambda d, f: parse(d, file=f), format_instance, ("cvrp",)),
    ".json": InstanceFormat("JSON", lambda d, f: from_json(d, file=f), to_json),
    ".csv": InstanceFormat("a table of stops", lambda d, f: parse_stops(d, file=f), format_stops),
    ".geojson": InstanceFormat(
        "GeoJSON points", lambda d, f: instance_from_geojson(d, file=f), instance_to_geojson
    ),
    ".atsp": InstanceFormat("TSPLIB", lambda d, f: parse(d, file=f), format_instance, ("tsp",)),
    ".txt": InstanceFormat(
        "Solomon's text", lambda d, f: parse_solomon(d, file=f), format_solomon, ("cvrp",)
    ),
}
SOLUTIONS: dict[str, SolutionFormat] = {
    ".tour": SolutionFormat(
        "TSPLIB tour", lambda d, i, f, _: parse_tour(d, i, file=f), _tour, ("tsp",)
    ),
    ".sol": SolutionFormat(
        "CVRPLIB routes", lambda d, i, f, _: parse_sol(d, i, file=f), _sol, ("cvrp",)
    ),
    ".json": SolutionFormat(
        "JSON", lambda d, i, f, of: solution_from_json(d, i, file=f, instance_file=of), _row
    ),
    ".jsonl": SolutionFormat(
        "JSON Lines", lambda d, i, f, of: solution_from_json(d, i, file=f, instance_file=of)
    ),
    ".csv": SolutionFormat(
        "a table of routes", lambda d, i, f, _: parse_routes(d, i, file=f), _table
    ),
    ".geojson": SolutionFormat(
        "GeoJSON lines",
        lambda d, i, f, _: solution_from_geojson(d, i, file=f),
        _lines,
        needs=degrees_of,
    ),
    ".html": SolutionFormat("a map", write=_map, needs=coordinates_of),
}


def written_as(
    formats: dict[str, InstanceFormat] | dict[str, SolutionFormat], kind: str
) -> tuple[str, ...]:
    """The suffixes that files of a problem, "tsp" or "cvrp", may be written with."""
    return tuple(s for s, one in formats.items() if one.write is not None and kind in one.problems)


def kinds_for(instance: Instance) -> tuple[str, ...]:
    """The suffixes of files that solutions of this instance can go to.

    >>> import drhg
    >>> kinds_for(drhg.tsp([[0, 0], [0, 3], [4, 3]]))
    ('.tour', '.json', '.csv', '.html')
    """
    return tuple(s for s in written_as(SOLUTIONS, instance.family) if _has_what(s, instance))


def _has_what(suffix: str, instance: Instance) -> bool:
    """Whether an instance has what a solution's file of this kind needs."""
    needs = SOLUTIONS[suffix].needs
    try:
        return needs is None or needs(instance) is not None
    except DrhgError:
        return False


def check_solution_file(path: PathLike, instance: Instance) -> None:
    """Raise why the solutions of this instance cannot go to a file of this name, if they cannot."""
    known = written_as(SOLUTIONS, instance.family)
    with errors_as(SolutionError, name_of(path)):
        if suffix(path) not in known:
            fail(
                f"a solution of this {instance.problem.upper()} goes to a file that ends in "
                f"{', '.join(known[:-1])} or {known[-1]} (perhaps with .gz)"
            )
        needs = SOLUTIONS[suffix(path)].needs
        if needs is not None:
            needs(instance)


def read(path: PathLike) -> Instance:
    """Read an instance: TSPLIB, VRPLIB, Solomon's text, JSON as `write_instance` has it, a table.

    A table of stops (.csv) may need more than its columns say: `read_table` takes it. The path may
    be "-" (standard input), and end in .gz.
    """
    with errors_as(InstanceError, None):
        name = name_of(path)
    file = "standard input" if name == STANDARD else name
    with errors_as(InstanceError, file):
        data = read_bytes(name)
    return instance_of_bytes(data, file, suffix(name))


def instance_of_bytes(data: bytes, file: str, named: str = "") -> Instance:
    """The instance in the content of a file, whose suffix may tell what it is."""
    known = INSTANCES[kind_of_instance(data, named)]
    assert known.read is not None
    return known.read(data, file)


def kind_of_instance(data: bytes, named: str) -> str:
    """What an instance is: its name may tell, but TSPLIB text has many names."""
    if named in INSTANCES and named not in (".tsp", ".vrp", ".atsp", ".txt"):
        return named
    if looks_like_solomon(data):
        return ".txt"
    return ".json" if _begins_json(data) else ".csv" if looks_like_stops(data) else ".tsp"


def read_solution(
    path: PathLike, instance: Instance, *, instance_file: PathLike | None = None
) -> Solution:
    """Read a solution of `instance` from .tour, .sol, .csv, .json, .jsonl or .geojson, also .gz.

    From "-", standard input, it is recognised by what it says. If it holds many solutions in JSON
    Lines, `instance_file` helps to choose among them. Syntax and node numbers are checked here;
    whether it is valid, `drhg.check` tells.
    """
    with errors_as(SolutionError, None):
        name = name_of(path)
        instance_file = None if instance_file is None else name_of(instance_file, "instance_file")
    problem.an_instance(instance)
    file = "standard input" if name == STANDARD else name
    with errors_as(SolutionError, file):
        readable = [kind for kind, known in SOLUTIONS.items() if known.read is not None]
        kind = None if name == STANDARD else _suffix(name, *readable)
        data = read_bytes(name)
    known = SOLUTIONS[kind or _kind_of(data, instance)]
    assert known.read is not None
    return known.read(data, instance, file, instance_file)


def solution_of_bytes(data: bytes, instance: Instance, file: str) -> Solution:
    """The solution in the content of a file, recognised by what it says."""
    known = SOLUTIONS[_kind_of(data, instance)]
    assert known.read is not None
    return known.read(data, instance, file, None)


def _kind_of(data: bytes, instance: Instance) -> str:
    """What a solution without a file name is."""
    if _begins_json(data):
        return ".json"
    if re.match(rb"\s*(route|cost)\b", data, re.IGNORECASE):
        return ".sol"
    return ".tour" if b"TOUR_SECTION" in data or not instance.is_cvrp else ".sol"


def _begins_json(data: bytes) -> bool:
    return data[:64].removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{")


def write_instance(path: PathLike, instance: Instance) -> None:
    """Write an instance as .tsp or .vrp (whichever it is) or .json; `read` gives back the same.

    With time windows also as .txt, the text of Solomon's and of Gehring and Homberger's sets.

    Or as .geojson (great-circle distances only) or as .csv (the stops alone, without limits).

    The path may be "-" (standard output, as .tsp or .vrp), and end in .gz.
    """
    with errors_as(InstanceError, None):
        name = name_of(path)
    problem.an_instance(instance)
    with errors_as(InstanceError, name):
        write = INSTANCES[_suffix(name, *written_as(INSTANCES, instance.family))].write
        assert write is not None
        text = write(instance)
    _write(name, text)


def write_solution(
    path: PathLike,
    instance: Instance,
    solution: Solution,
    cost: Cost | None = None,
    *,
    instance_file: PathLike | None = None,
) -> None:
    """Write a solution as .tour (TSP), .sol (CVRP) or .json; `cost` is recomputed unless given.

    The path may be "-" (standard output, as .tour or .sol), and end in .gz. JSON says which
    `instance_file` it is about.
    """
    with errors_as(SolutionError, None):
        name = name_of(path)
        instance_file = None if instance_file is None else name_of(instance_file, "instance_file")
    problem.an_instance(instance)
    problem.a_solution(solution)
    if cost is not None:
        problem.real_number("cost", cost)
    with errors_as(SolutionError, "standard output" if name == STANDARD else name):
        write = SOLUTIONS[_suffix(name, *written_as(SOLUTIONS, instance.family))].write
        assert write is not None
        cost = problem.cost(instance, solution) if cost is None else cost
        text = write(instance, solution, cost, instance_file)
    _write(name, text)


def _suffix(name: str, *allowed: str) -> str:
    """The suffix of a file, or the first one allowed for standard output."""
    if name == STANDARD:
        return allowed[0]
    if suffix(name) not in allowed:
        fail(f"the file's name must end in {' or '.join(allowed)} here (or that and .gz)")
    return suffix(name)


def _write(name: str, text: str) -> None:
    data = text.encode("utf-8", "replace")
    if name == STANDARD:
        with errors_as(DrhgError, "standard output"):
            write_out(data)
    else:
        packed = gzip.compress(data, mtime=0) if name.lower().endswith(".gz") else data
        atomic_write(name, packed)

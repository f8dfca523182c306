"""The files that several commands read: an instance, and a solution of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from drhg.cli.shell import blaming, option
from drhg.cli.targets import STANDARD
from drhg.errors import DrhgError

if TYPE_CHECKING:
    from drhg.problem import Instance, Solution

InstanceFile: TypeAlias = Annotated[
    Path,
    typer.Argument(metavar="INSTANCE",
                   help="A TSPLIB, CVRPLIB, JSON or GeoJSON file or a table of stops (.csv), "
                        "perhaps .gz; - is standard input."),
]  # fmt: skip
SolutionFile: TypeAlias = Annotated[
    Path,
    typer.Argument(metavar="SOLUTION",
                   help="A tour (.tour), routes (.sol, .csv, .geojson) or what "
                        "`drhg solve -f json` printed, perhaps .gz; - is standard input."),
]  # fmt: skip


TABLE = "A table of stops (.csv)"
Capacity: TypeAlias = Annotated[
    float | None,
    option(TABLE, "--capacity", min=0, metavar="LOAD", help="What a vehicle carries."),
]
MaxDistance: TypeAlias = Annotated[
    float | None,
    option(TABLE, "--max-distance", min=0, metavar="LENGTH",
           help="The longest route, service included; metres for latitudes and longitudes."),
]  # fmt: skip
Depot: TypeAlias = Annotated[
    str | None,
    option(TABLE, "--depot", metavar="NAME", help="The stop where routes begin; else the first."),
]
Columns: TypeAlias = Annotated[
    str | None,
    option(TABLE, "--columns", metavar="name=HEADING,...",
           help="Which headings mean name, lat, lon, x, y, demand, service, earliest, latest, "
                "release, vehicle or together."),
]  # fmt: skip
Matrix: TypeAlias = Annotated[
    Path | None,
    option(TABLE, "--matrix", metavar="FILE", help="The distances of all stops (.csv or .npy)."),
]
Durations: TypeAlias = Annotated[
    Path | None,
    option(TABLE, "--durations", metavar="FILE", help="The travel times of all stops, likewise."),
]
Speed: TypeAlias = Annotated[
    float | None,
    option(TABLE, "--speed", min=0, metavar="KM/H", help="Travel times in seconds, at this speed."),
]
MaxDuration: TypeAlias = Annotated[
    str | None,
    option(TABLE, "--max-duration", metavar="TIME",
           help="The longest time on the road, service and waiting included: 8:30, or a number."),
]  # fmt: skip
Open: TypeAlias = Annotated[
    bool, option(TABLE, "--open", help="Routes end at their last stop; a tour is a path.")
]
Fleet: TypeAlias = Annotated[
    int | None,
    typer.Option("--vehicles", min=1, metavar="K",
                 help="At most so many routes (CVRP), whatever the file says."),
]  # fmt: skip
FleetTable: TypeAlias = Annotated[
    Path | None,
    option(TABLE, "--fleet", metavar="FILE",
           help="A table of vehicles (.csv), a row per type: name, count, capacity, fixed cost, "
                "depot, start, end, max distance, max duration."),
]  # fmt: skip


def table_options(
    capacity: float | None = None,
    max_distance: float | None = None,
    depot: str | None = None,
    columns: str | None = None,
    matrix: Path | None = None,
    durations: Path | None = None,
    speed: float | None = None,
    max_duration: str | None = None,
    open: bool = False,
    fleet: Path | None = None,
) -> dict[str, Any]:
    """What was said about a table, as keyword arguments of `drhg.read_table`."""
    given = {
        "capacity": capacity, "max_distance": max_distance, "depot": depot, "matrix": matrix,
        "columns": columns_of(columns), "durations": durations, "speed": speed,
        "max_duration": _time(max_duration), "returns": False if open else None,
        "fleet": fleet,
    }  # fmt: skip
    return {name: value for name, value in given.items() if value is not None}


def _time(text: str | None) -> float | None:
    from drhg.files.times import seconds_of

    found = None if text is None else seconds_of(text)
    if text is not None and found is None:
        raise typer.BadParameter(
            f"{text!r} is neither a number nor a time like 8:30.", param_hint="--max-duration"
        )
    return found


def columns_of(columns: str | None) -> dict[str, str] | None:
    """What --columns says: a heading for each meaning."""
    if columns is None:
        return None
    pairs = [part.partition("=") for part in columns.split(",")]
    if not all(meaning.strip() and equals and heading for meaning, equals, heading in pairs):
        raise typer.BadParameter(
            f"{columns!r} is not name=HEADING,demand=HEADING,...", param_hint="--columns"
        )
    return {meaning.strip(): heading.strip() for meaning, _, heading in pairs}


def read_instance(path: Path, table: dict[str, Any]) -> Instance:
    """An instance; a table of stops with what the command line says about it."""
    from drhg.files.paths import suffix
    from drhg.files.registry import INSTANCES, read
    from drhg.files.stops import read_table

    if not table:
        return read(path)
    if suffix(path) in INSTANCES and suffix(path) != ".csv":
        words = {"returns": "open"}
        options = ", ".join(f"--{words.get(name, name).replace('_', '-')}" for name in table)
        raise DrhgError(f"{options}: only for a table of stops (.csv)", file=str(path))
    return read_table(path, **table)


def with_fleet(instance: Instance, vehicles: int | None, path: Path) -> Instance:
    """The instance with at most so many routes, if that was said."""
    if vehicles is None:
        return instance
    if not instance.is_cvrp:
        raise DrhgError("--vehicles is for a CVRP, and this is a TSP", file=str(path))
    with blaming(path):
        return replace(instance, vehicles=vehicles)


def read_both(
    instance: Path, solution: Path | None, table: dict[str, Any] | None = None
) -> tuple[Instance, Solution | None]:
    """An instance and, if it is named, a solution of it, each blamed for its own errors."""
    from drhg.files.registry import read_solution

    if instance == solution == STANDARD:
        raise typer.BadParameter("standard input (-) can be read only once.")
    with blaming(instance):
        task = read_instance(instance, table or {})
    if solution is None:
        return task, None
    with blaming(solution):
        return task, read_solution(solution, task, instance_file=instance)

"""Tables of stops: from a spreadsheet, or a DataFrame, to an instance, and back.

Columns are found by their names, in English and German, whatever the case, and may be named
explicitly. All that is wrong with a table is told at once.
"""

from __future__ import annotations

import csv
import difflib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import Any

import numpy as np

from drhg.errors import InstanceError
from drhg.files.fleets import SYNONYMS as FLEET
from drhg.files.fleets import UNSUPPORTED as NO_FLEET
from drhg.files.fleets import fleet_of
from drhg.files.matrices import Matrix, fitted, read_matrix
from drhg.files.messages import errors_as, fail, name_of, quoted, refuse_variants
from drhg.files.paths import STANDARD, PathLike, stem
from drhg.files.streams import read_bytes
from drhg.files.tables import (
    Problems,
    Table,
    has_decimal_commas,
    numbers,
    parse_table,
)
from drhg.files.ties import SYNONYMS as TIES
from drhg.files.ties import columns_of_locks, locks_of
from drhg.files.times import SYNONYMS as TIMES
from drhg.files.times import Times, columns_of_times, times_of
from drhg.problem import (
    Floats,
    Instance,
    Metric,
    VehicleType,
    real_number,
    shown,
    whole_demands,
    whole_number,
)

MOST_WITH_SPEED = 5000  # stops, whose travel times take 200 MB

# Of several columns that fit a meaning the one whose word stands first is taken for names, and
# none for numbers: which of two is meant, only the user knows.
SYNONYMS: dict[str, tuple[str, ...]] = {
    "name": (
        "name", "id", "stop", "customer", "label", "site", "node", "stopname", "stopid",
        "customerid", "kunde", "kundenname", "bezeichnung", "nr",
    ),
    "lat": ("lat", "latitude", "breite", "breitengrad"),
    "lon": ("lon", "lng", "long", "longitude", "länge", "laenge", "längengrad", "laengengrad"),
    "x": ("x", "xcoord", "xkoordinate", "easting", "rechtswert", "ostwert"),
    "y": ("y", "ycoord", "ykoordinate", "northing", "hochwert", "nordwert"),
    "demand": ("demand", "amount", "quantity", "qty", "units", "weight", "menge", "bedarf"),
    **TIMES,
    **TIES,
}  # fmt: skip
UNSUPPORTED: dict[str, tuple[str, ...]] = {
    "stops that stay where an old plan has them": ("locked", "fixed", "frozen", "gesperrt"),
    "both ends of a window in one column (give earliest and latest)": (
        "timewindow", "timewindows", "window", "zeitfenster",
    ),
    "pickups": ("pickup", "pickupdemand", "abholung"),
}  # fmt: skip


def read_table(
    source: PathLike | Any,
    *,
    columns: Mapping[str, str] | None = None,
    capacity: float | None = None,
    vehicles: int | None = None,
    max_distance: float | None = None,
    max_duration: float | None = None,
    returns: bool = True,
    depot: str | None = None,
    matrix: PathLike | None = None,
    durations: PathLike | None = None,
    speed: float | None = None,
    fleet: PathLike | Any | None = None,
    name: str | None = None,
) -> Instance:
    """An instance from a table of stops: CSV, perhaps .gz, or a DataFrame of pandas or Polars.

    Its columns are name (or id), lat and lon (decimal degrees: distances are great circles in
    metres) or x and y (straight lines), demand, and times: service, earliest, latest, release.
    `columns` maps those meanings to other headings, as in `{"name": "Kunde", "demand": "Menge"}`.
    With demands it is a CVRP: give the `capacity`; the `depot` is a stop's name, by default the
    first row. `matrix` and `durations` are files (.csv or .npy) with the distances and travel times
    of all rows; travel times may follow from a `speed` in km/h instead. `max_distance`,
    `max_duration` and `returns` are as in `drhg.vrp`.

    `fleet` is another table, with a row for each type of vehicles: name, count, capacity, fixed
    cost, depot (the name of a stop), start and end of its shift, max distance, max duration. All
    columns may be missing; an empty cell is what `drhg.VehicleType` has by default.
    """
    name_given = name
    types, fleet_file = (None, None) if fleet is None else _fleet_table(fleet)
    with errors_as(InstanceError, None):
        if _is_frame(source):
            file, name = None, "stops"
            table = _of_frame(source)
        else:
            path = name_of(source, "source")
            file = "standard input" if path == STANDARD else path
            name = "stdin" if path == STANDARD else stem(path)
    with errors_as(InstanceError, file):
        if file is not None:
            table = parse_table(read_bytes(path), forgiving=True)
        return instance_of(
            table, name=name_given or name, columns=columns,
            matrix=None if matrix is None else read_matrix(matrix),
            durations=None if durations is None else read_matrix(durations),
            fleet=types, fleet_file=fleet_file,
            capacity=capacity, vehicles=vehicles, max_distance=max_distance,
            max_duration=max_duration, returns=returns, depot=depot, speed=speed,
        )  # fmt: skip


def parse_stops(data: bytes, *, file: str | None = None) -> Instance:
    """The instance of a table that needs no more than its columns, named after its file."""
    with errors_as(InstanceError, file):
        table = parse_table(data, forgiving=True)
        return instance_of(table, name="stops" if file is None else stem(file))


def read_places(path: PathLike, *, columns: Mapping[str, str] | None = None) -> Instance:
    """The names and places of a table of stops as a TSP.

    What else the table holds is not looked at.
    """
    with errors_as(InstanceError, None):
        file = name_of(path)
    with errors_as(InstanceError, file):
        table = parse_table(read_bytes(file), forgiving=True)
        problems = Problems(table.counted, list(table.left_out))
        at = _columns(table, columns or {}, problems)
        xy, degrees = _coordinates(table, at, problems)
        names = _names(table, at, problems)
        problems.raise_any()
        metric = Metric.HAVERSINE if degrees else Metric.EXACT
        return Instance(name=stem(file), metric=metric, xy=xy, names=names)


def format_stops(instance: Instance) -> str:
    """The stops of an instance as CSV, the depot first; limits of the vehicles have no place in it.

    `read_table` with the same limits gives back the same problem, but for the numbers of its nodes
    where the depot was not the first. Rounded distances cannot be told from the table and are
    refused, and so is a matrix.
    """
    refuse_variants(
        instance, "a table of stops",
        ("services", "windows", "release", "max_duration", "open", "locks"),
    )  # fmt: skip
    if instance.xy is None or instance.metric not in (Metric.EXACT, Metric.HAVERSINE):
        fail(
            f"a table of stops has great circles or straight lines, not distances of type "
            f"{instance.metric.name}"
        )
    order = np.arange(instance.n)
    order = np.concatenate((order[[instance.depot]], np.delete(order, instance.depot)))
    table: dict[str, list[str]] = {}
    if instance.names is not None:
        table["name"] = [instance.names[node] for node in order]
    axes = ("lat", "lon") if instance.degrees else ("x", "y")
    for axis, values in zip(axes, instance.xy[order].T.tolist(), strict=True):
        table[axis] = list(map(repr, values))
    if instance.demand is not None:
        load = (instance.demand[order] / instance.demand_scale).tolist()
        table["demand"] = [repr(one).removesuffix(".0") for one in load]
        table |= columns_of_times(
            instance.services[order],
            None if instance.windows is None else instance.windows[order],
            None if instance.release is None else instance.release[order],
        )
    table |= {
        what: [cells[node] for node in order] for what, cells in columns_of_locks(instance).items()
    }
    out = StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table)
    writer.writerows(zip(*table.values(), strict=True))
    return out.getvalue()


def looks_like_stops(data: bytes) -> bool:
    """Whether text begins with a row that names columns of coordinates."""
    head = data[:4096].decode("utf-8-sig", "replace").splitlines()
    if not head:
        return False
    keys = {_key(cell) for cell in re.split(r'[,;\t|"]+', head[0])}
    return any(
        all(keys & set(SYNONYMS[meaning]) for meaning in pair)
        for pair in (("lat", "lon"), ("x", "y"))
    )


@dataclass(frozen=True)
class Limits:
    """What a table of stops does not say; None: no limit, or the first row, or no such thing."""

    capacity: float | None = None
    vehicles: int | None = None
    max_distance: float | None = None
    max_duration: float | None = None
    returns: bool = True
    depot: str | None = None
    speed: float | None = None  # km/h

    def __post_init__(self) -> None:
        if self.capacity is not None:
            real_number("capacity", self.capacity, 0.0)
        if self.vehicles is not None:
            whole_number("vehicles", self.vehicles, 1)
        if self.max_duration is not None:
            real_number("max_duration", self.max_duration, 0.0)
        if self.speed is not None and not real_number("speed", self.speed, 0.0) > 0.0:
            raise InstanceError(f"speed must be positive, not {shown(self.speed)}")


def instance_of(
    table: Table,
    *,
    name: str,
    columns: Mapping[str, str] | None = None,
    matrix: Matrix | None = None,
    durations: Matrix | None = None,
    fleet: Table | None = None,
    fleet_file: str | None = None,
    **limits: Any,
) -> Instance:
    """What a table of stops asks, within `Limits`."""
    limit = Limits(**limits)
    problems = Problems(table.counted, list(table.left_out))
    at = _columns(table, columns or {}, problems)
    _refuse_unsupported(table, at, problems)
    if not len(table):
        problems.raise_any()
        fail("there is a header, but no stop below it", table.headed or None)
    if matrix is not None and not {"lat", "x"} & at.keys():
        xy, degrees = None, False
    else:
        xy, degrees = _coordinates(table, at, problems)
    names = _names(table, at, problems)
    home = _depot(table, names, limit.depot, problems)
    types = None if fleet is None else _fleet(fleet, fleet_file, names, home)
    homes = [home] if types is None else [one.depot for one in types if one.depot is not None]
    homes = [row for row in dict.fromkeys(homes) if 0 <= row < len(table)]
    times = times_of(table, at, homes, problems)
    loads = [one.capacity for one in types or () if one.capacity is not None]
    most = max([*([] if limit.capacity is None else [limit.capacity]), *loads], default=None)
    hours = any(one.shift or one.max_duration is not None for one in types or ())
    timed = times.pressing or limit.max_duration is not None or hours
    routes = "demand" in at or most is not None or timed or types is not None
    free = timed or types is not None  # something else may limit a route
    demand = _demand(table, at, homes, most, free, problems) if routes else None
    locks = locks_of(table, at, routes, problems)
    if not routes:
        _refuse_limits(table, limit, times, problems)
    if timed and degrees and matrix is None and durations is None and limit.speed is None:
        problems.note(
            "times on the road are needed for what the table asks: give durations (--durations), "
            "or a speed in km/h (--speed)"
        )
    if limit.speed is not None and durations is not None:
        problems.note("durations and a speed: give one of them")
    if limit.speed is not None and (not degrees or len(table) > MOST_WITH_SPEED):
        problems.note(f"a speed is for latitudes and longitudes of up to {MOST_WITH_SPEED:,} stops")
    problems.raise_any()
    plain = Metric.HAVERSINE if degrees else Metric.EXACT
    given: dict[str, Any] = {"returns": limit.returns}
    if demand is not None:
        usual = limit.capacity if most is not None else 1
        whole, room, scale = whole_demands(demand, usual, loads)
        given |= {
            "demand": whole, "capacity": room, "demand_scale": scale, "depot": home,
            "fleet": types, "vehicles": limit.vehicles, "max_distance": limit.max_distance,
            "max_duration": limit.max_duration, "service_time": times.service or 0.0,
            "windows": times.windows, "release": times.release, "locks": locks,
        }  # fmt: skip
        if durations is not None:
            given["durations"] = fitted(durations, len(table), names)
        elif limit.speed is not None:
            given["durations"] = _at_speed(limit.speed, Instance(metric=plain, xy=xy))
    return Instance(
        name=name, metric=plain if matrix is None else Metric.EXPLICIT, xy=xy, names=names,
        degrees=degrees, matrix=None if matrix is None else fitted(matrix, len(table), names),
        **given,
    )  # fmt: skip


def _fleet_table(source: Any) -> tuple[Table, str | None]:
    """A table of vehicles, and its file if it has one."""
    if _is_frame(source):
        return _of_frame(source), None
    with errors_as(InstanceError, None):
        file = name_of(source, "fleet")
    with errors_as(InstanceError, file):
        return parse_table(read_bytes(file), forgiving=True), file


def _fleet(
    table: Table, file: str | None, names: tuple[str, ...] | None, home: int
) -> tuple[VehicleType, ...]:
    """The types in a table of vehicles; what is wrong with them is blamed on their file."""
    with errors_as(InstanceError, file):
        problems = Problems(table.counted)
        at = _columns(table, {}, problems, FLEET)
        _refuse_unsupported(table, at, problems, NO_FLEET)
        problems.raise_any()
        return fleet_of(table, at, names, home)


def _at_speed(speed: float, places: Instance) -> Floats:
    """Seconds from everywhere to everywhere at a speed in km/h."""
    every = np.arange(places.n)
    return np.asarray(places.distance(every[:, None], every[None, :])) * 3.6 / speed


def _refuse_limits(table: Table, limit: Limits, times: Times, problems: Problems) -> None:
    """A tour has no vehicles."""
    if limit.depot is not None:
        problems.note("a depot is for stops with a demand, and these have none")
    if limit.vehicles is not None or limit.max_distance is not None:
        problems.note(f"vehicles and their limits need a column of demands; {_found(table)}")
    if times.service is not None:
        problems.note("service times are for stops with demands, and these have none")


def _key(heading: str) -> str:
    """A heading without case, units in brackets, blanks and signs: 'Lat. (deg)' is 'lat'."""
    return re.sub(r"[\W_]", "", re.sub(r"\(.*?\)|\[.*?\]", "", heading).casefold())


def _found(table: Table) -> str:
    return f"the columns are {', '.join(map(quoted, table.header))}"


def _columns(
    table: Table,
    wanted: Mapping[str, str],
    problems: Problems,
    synonyms: Mapping[str, tuple[str, ...]] = SYNONYMS,
) -> dict[str, int]:
    """Where each meaning stands: where the user says, else where a heading says so."""
    at: dict[str, int] = {}
    for meaning, heading in dict(wanted).items():
        if meaning not in SYNONYMS:
            problems.note(f"columns: {shown(meaning)} is no meaning; known: {', '.join(SYNONYMS)}")
        elif heading not in table.header:
            reason = f"there is no column {quoted(str(heading))}{_meant(heading, table.header)}"
            problems.note(f"{reason}; {_found(table)}", table.headed)
        else:
            at[meaning] = table.header.index(heading)
    keys = [_key(heading) for heading in table.header]
    for meaning, words in synonyms.items():
        if meaning in at:
            continue
        fits = [i for i, key in enumerate(keys) if key in words and i not in at.values()]
        fits.sort(key=lambda i: words.index(keys[i]))
        if len(fits) > 1 and meaning != "name":
            both = " and ".join(quoted(table.header[i]) for i in fits[:2])
            problems.note(
                f"the columns {both} may both be {meaning}: say which, {meaning}=HEADING",
                table.headed,
            )
        if fits:
            at[meaning] = fits[0]
    if {"lat", "lon"} <= at.keys():
        at = {meaning: i for meaning, i in at.items() if meaning not in "xy"}
    return at


def _meant(word: str, known: Sequence[str]) -> str:
    """A hint at the name that was meant, perhaps: one that is spelt alike, or longer."""
    told = str(word).strip().casefold()
    alike = difflib.get_close_matches(str(word), known, 1)
    longer = [one for one in known if told and told in one.casefold()]
    best = [*alike, *longer]
    return f" (did you mean {best[0]!r}?)" if best else ""


def _refuse_unsupported(
    table: Table,
    at: Mapping[str, int],
    problems: Problems,
    unsupported: Mapping[str, tuple[str, ...]] = UNSUPPORTED,
) -> None:
    """A plan that left out a wish in silence would be a wrong plan."""
    for i, heading in enumerate(table.header):
        what = next((w for w, words in unsupported.items() if _key(heading) in words), None)
        cell = next((r for r, cell in enumerate(table.columns[i]) if cell.strip()), None)
        if what is not None and cell is not None and i not in at.values():
            problems.add(
                table.lines[cell], heading,
                f"{what} are not supported; empty the column, or rename it if it means something "
                "else",
            )  # fmt: skip


def _coordinates(table: Table, at: Mapping[str, int], problems: Problems) -> tuple[Floats, bool]:
    """Points as (latitude, longitude), or as (x, y)."""
    degrees = {"lat", "lon"} <= at.keys()
    pair = ("lat", "lon") if degrees else ("x", "y")
    if not set(pair) <= at.keys():
        problems.note(
            f"no columns of coordinates (lat and lon, or x and y); {_found(table)}; map them, as "
            "in lat=HEADING",
            table.headed,
        )
        return np.zeros((len(table), 2)), False
    commas = has_decimal_commas(table, [at[m] for m in (*pair, "demand", "service") if m in at])
    xy = np.array([numbers(table, at[axis], commas, problems) for axis in pair]).T
    if degrees:
        for axis, most, what in ((0, 90, "latitude"), (1, 180, "longitude")):
            for i in np.flatnonzero(np.abs(xy[:, axis]) > most).tolist():
                reason = f"{xy[i, axis]:g} is no {what} (-{most} .. {most})"
                problems.add(table.lines[i], table.header[at[pair[axis]]], reason)
    return xy, degrees


def _names(table: Table, at: Mapping[str, int], problems: Problems) -> tuple[str, ...] | None:
    if "name" not in at:
        return None
    names = tuple(cell.strip() for cell in table.columns[at["name"]])
    heading, seen = table.header[at["name"]], dict[str, int]()
    for name, line in zip(names, table.lines, strict=True):
        if not name:
            problems.add(line, heading, "the cell is empty")
        elif seen.setdefault(name, line) != line:
            where = f"{table.counted} {seen[name]}"
            problems.add(line, heading, f"{quoted(name)} is also on {where}; names must differ")
    return names


def _depot(
    table: Table, names: tuple[str, ...] | None, depot: str | None, problems: Problems
) -> int:
    """The row of the depot, -1 if there is none of its name."""
    if depot is None:
        return 0
    if names is None:
        problems.note(f"the depot {shown(depot)} is sought by name, but no column has names")
    elif depot not in names:
        problems.note(f"no stop is called {shown(depot)}{_meant(depot, names)}")
    else:
        return names.index(depot)
    return -1


def _demand(
    table: Table,
    at: Mapping[str, int],
    homes: Sequence[int],
    capacity: float | None,
    free: bool,
    problems: Problems,
) -> list[float] | None:
    if "demand" not in at and capacity is None and free:
        return [0.0] * len(table)
    if "demand" not in at:
        problems.note(
            f"a capacity, but no column of demands; {_found(table)}; map it: demand=HEADING"
        )
        return None
    heading = table.header[at["demand"]]
    if capacity is None:
        problems.note(
            f"column {quoted(heading)} has demands, but the vehicles no capacity: give capacity "
            "(--capacity)"
        )
        capacity = math.inf
    commas = has_decimal_commas(table, [i for meaning, i in at.items() if meaning != "name"])
    blank = Problems()
    demand = numbers(table, at["demand"], commas, blank)
    for home in homes:
        if table.columns[at["demand"]][home].strip():
            continue
        demand[home], own = 0.0, table.lines[home]
        blank.found = [problem for problem in blank.found if problem[0] != own]
    problems.found += blank.found
    for i, (value, line) in enumerate(zip(demand, table.lines, strict=True)):
        if i in homes and value > 0:
            problems.add(line, heading, f"the depot has a demand ({value:g}); it must be 0")
        elif value < 0:
            problems.add(line, heading, f"{value:g} is negative")
        elif value > capacity:
            problems.add(line, heading, f"{value:g} is more than the capacity {capacity:g}")
    return demand


# --- DataFrames -----------------------------------------------------------------------------------


def _is_frame(source: Any) -> bool:
    """Whether something is a DataFrame of pandas or Polars, neither of which is imported here."""
    return hasattr(source, "columns") and (
        hasattr(source, "itertuples") or hasattr(source, "get_columns")
    )


def _of_frame(frame: Any) -> Table:
    """The cells of a DataFrame as text; what is missing becomes blank."""
    header = tuple(str(heading).strip() for heading in frame.columns)
    columns = (
        frame.get_columns()
        if hasattr(frame, "get_columns")
        else [frame.iloc[:, i] for i in range(len(header))]
    )
    cells = tuple(tuple(_cells(column.to_list())) for column in columns)
    return Table(header, cells, tuple(range(1, len(frame) + 1)), None, "row")


def _cells(values: list[Any]) -> Iterator[str]:
    for value in values:
        missing = value is None or value != value or str(value) == "<NA>"
        yield "" if missing else str(value)

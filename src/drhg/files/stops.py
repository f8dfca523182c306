"""Tables of stops: from a spreadsheet, or a DataFrame, to an instance, and back.

Columns are found by their names, in English and German, whatever the case, and may be named
explicitly. All that is wrong with a table is told at once.
"""

from __future__ import annotations

import csv
import difflib
import re
from collections.abc import Iterator, Mapping
from io import BytesIO, StringIO
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from drhg.errors import InstanceError
from drhg.files.messages import errors_as, fail, name_of, quoted
from drhg.files.paths import STANDARD, PathLike, stem, suffix
from drhg.files.streams import read_bytes
from drhg.files.tables import (
    Problems,
    Table,
    has_decimal_commas,
    is_number,
    numbers,
    parse_rows,
    parse_table,
)
from drhg.problem import Floats, Instance, Metric, real_number, shown, whole_demand, whole_number

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
    "service": ("service", "servicetime", "serviceduration", "servicezeit", "standzeit"),
}  # fmt: skip
UNSUPPORTED: dict[str, tuple[str, ...]] = {
    "stops tied to vehicles": ("vehicle", "vehicleid", "fahrzeug", "locked", "fixed", "gesperrt"),
    "time windows": (
        "ready", "readytime", "due", "duedate", "duetime", "earliest", "latest", "twstart",
        "twend", "timewindow", "windowstart", "windowend", "opens", "closes", "zeitfenster",
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
    depot: str | None = None,
    matrix: PathLike | None = None,
    name: str | None = None,
) -> Instance:
    """An instance from a table of stops: a CSV file, perhaps .gz, or a pandas DataFrame.

    Its columns are name (or id), lat and lon (decimal degrees: distances are great circles in
    metres) or x and y (straight lines), demand and service; `columns` maps those meanings to other
    headings, as in `{"name": "Kunde", "demand": "Menge"}`. With demands it is a CVRP: give the
    `capacity`; the `depot` is a stop's name, by default the first row. `matrix` is a file (.csv or
    .npy) with the distances of all rows.
    """
    name_given = name
    with errors_as(InstanceError, None):
        if hasattr(source, "columns") and hasattr(source, "itertuples"):
            file, name = None, "stops"
            table = _of_frame(source)
        else:
            path = name_of(source, "source")
            file = "standard input" if path == STANDARD else path
            name = "stdin" if path == STANDARD else stem(path)
    with errors_as(InstanceError, file):
        if file is not None:
            table = parse_table(read_bytes(path))
        far = None if matrix is None else read_matrix(matrix)
        return instance_of(
            table, name=name_given or name, columns=columns, capacity=capacity,
            vehicles=vehicles, max_distance=max_distance, depot=depot, matrix=far,
        )  # fmt: skip


def parse_stops(data: bytes, *, file: str | None = None) -> Instance:
    """The instance of a table that needs no more than its columns, named after its file."""
    with errors_as(InstanceError, file):
        return instance_of(parse_table(data), name="stops" if file is None else stem(file))


def format_stops(instance: Instance) -> str:
    """The stops of an instance as CSV, the depot first; limits of the vehicles have no place in it.

    `read_table` with the same limits gives back the same problem, but for the numbers of its nodes
    where the depot was not the first. Rounded distances cannot be told from the table and are
    refused, and so is a matrix.
    """
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
        if instance.service_time:
            table["service"] = ["0", *[repr(instance.service_time)] * (instance.n - 1)]
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


def instance_of(
    table: Table,
    *,
    name: str,
    columns: Mapping[str, str] | None = None,
    capacity: float | None = None,
    vehicles: int | None = None,
    max_distance: float | None = None,
    depot: str | None = None,
    matrix: Distances | None = None,
) -> Instance:
    """What a table of stops asks."""
    if capacity is not None:
        real_number("capacity", capacity, 0.0)
    if vehicles is not None:
        whole_number("vehicles", vehicles, 1)
    at = _columns(table, columns or {})
    _refuse_unsupported(table, at)
    if not len(table):
        fail("there is a header, but no stop below it", 1 if table.counted == "line" else None)
    problems = Problems(table.counted)
    if matrix is not None and not {"lat", "x"} & at.keys():
        xy, degrees = None, False
    else:
        xy, degrees = _coordinates(table, at, problems)
    names = _names(table, at, problems)
    routes = "demand" in at or capacity is not None
    home = _depot(table, names, depot) if routes else 0
    demand = _demand(table, at, home, capacity, problems) if routes else None
    service = _service(table, at, home, routes, problems)
    problems.raise_any()
    if depot is not None and not routes:
        fail("a depot is for stops with a demand, and these have none")
    if not routes and (vehicles is not None or max_distance is not None):
        fail(f"vehicles and their limits need a column of demands; {_found(table)}")
    if matrix is not None:
        metric = Metric.EXPLICIT
    else:
        metric = Metric.HAVERSINE if degrees else Metric.EXACT
    given: dict[str, Any] = {}
    if demand is not None and capacity is not None:
        whole, most, scale = whole_demand(demand, capacity)
        given = {
            "demand": whole, "capacity": most, "demand_scale": scale, "depot": home,
            "vehicles": vehicles, "max_distance": max_distance, "service_time": service,
        }  # fmt: skip
    return Instance(
        name=name, metric=metric, xy=xy, names=names, degrees=degrees,
        matrix=None if matrix is None else _fitted(matrix, len(table), names), **given,
    )  # fmt: skip


def _key(heading: str) -> str:
    """A heading without case, units in brackets, blanks and signs: 'Lat. (deg)' is 'lat'."""
    return re.sub(r"[\W_]", "", re.sub(r"\(.*?\)|\[.*?\]", "", heading).casefold())


def _found(table: Table) -> str:
    return f"the columns are {', '.join(map(quoted, table.header))}"


def _columns(table: Table, wanted: Mapping[str, str]) -> dict[str, int]:
    """Where each meaning stands: where the user says, else where a heading says so."""
    at: dict[str, int] = {}
    for meaning, heading in dict(wanted).items():
        if meaning not in SYNONYMS:
            fail(f"columns: {shown(meaning)} is no meaning; known: {', '.join(SYNONYMS)}")
        if heading not in table.header:
            close = difflib.get_close_matches(str(heading), table.header, 1)
            hint = f" (did you mean {quoted(close[0])}?)" if close else ""
            fail(f"there is no column {quoted(str(heading))}{hint}; {_found(table)}")
        at[meaning] = table.header.index(heading)
    keys = [_key(heading) for heading in table.header]
    for meaning, words in SYNONYMS.items():
        if meaning in at:
            continue
        fits = [i for i, key in enumerate(keys) if key in words and i not in at.values()]
        fits.sort(key=lambda i: words.index(keys[i]))
        if len(fits) > 1 and meaning != "name":
            both = " and ".join(quoted(table.header[i]) for i in fits[:2])
            fail(f"the columns {both} may both be {meaning}: say which, {meaning}=HEADING")
        if fits:
            at[meaning] = fits[0]
    if {"lat", "lon"} <= at.keys():
        at = {meaning: i for meaning, i in at.items() if meaning not in "xy"}
    return at


def _refuse_unsupported(table: Table, at: Mapping[str, int]) -> None:
    """A plan that left out a wish in silence would be a wrong plan."""
    for i, heading in enumerate(table.header):
        what = next((w for w, words in UNSUPPORTED.items() if _key(heading) in words), None)
        cell = next((r for r, cell in enumerate(table.columns[i]) if cell.strip()), None)
        if what is not None and cell is not None and i not in at.values():
            line = table.lines[cell] if table.counted == "line" else None
            fail(
                f"column {quoted(heading)}: {what} are not supported; empty the column, or rename "
                "it if it means something else",
                line,
            )


def _coordinates(table: Table, at: Mapping[str, int], problems: Problems) -> tuple[Floats, bool]:
    """Points as (latitude, longitude), or as (x, y)."""
    degrees = {"lat", "lon"} <= at.keys()
    pair = ("lat", "lon") if degrees else ("x", "y")
    if not set(pair) <= at.keys():
        fail(
            f"no columns of coordinates (lat and lon, or x and y); {_found(table)}; map them, as "
            "in lat=HEADING",
            1 if table.counted == "line" else None,
        )
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


def _depot(table: Table, names: tuple[str, ...] | None, depot: str | None) -> int:
    """The row of the depot."""
    if depot is None:
        return 0
    if names is None:
        fail(f"the depot {shown(depot)} is sought by name, but no column has names")
    if depot not in names:
        close = difflib.get_close_matches(str(depot), names, 1)
        fail(
            f"no stop is called {shown(depot)}"
            + (f" (did you mean {quoted(close[0])}?)" if close else "")
        )
    return names.index(depot)


def _demand(
    table: Table, at: Mapping[str, int], home: int, capacity: float | None, problems: Problems
) -> list[float]:
    if "demand" not in at:
        fail(f"a capacity, but no column of demands; {_found(table)}; map it: demand=HEADING")
    heading = table.header[at["demand"]]
    if capacity is None:
        fail(
            f"column {quoted(heading)} has demands, but the vehicles no capacity: give capacity "
            "(--capacity)"
        )
    commas = has_decimal_commas(table, [i for meaning, i in at.items() if meaning != "name"])
    blank = Problems()
    demand = numbers(table, at["demand"], commas, blank)
    own = table.lines[home]
    if not table.columns[at["demand"]][home].strip():
        demand[home] = 0.0
        blank.found = [problem for problem in blank.found if problem[0] != own]
    problems.found += blank.found
    for i, (value, line) in enumerate(zip(demand, table.lines, strict=True)):
        if i == home and value > 0:
            problems.add(line, heading, f"the depot has a demand ({value:g}); it must be 0")
        elif value < 0:
            problems.add(line, heading, f"{value:g} is negative")
        elif value > capacity:
            problems.add(line, heading, f"{value:g} is more than the capacity {capacity:g}")
    return demand


def _service(
    table: Table, at: Mapping[str, int], home: int, routes: bool, problems: Problems
) -> float:
    """The service time, which all stops must share."""
    if "service" not in at:
        return 0.0
    commas = has_decimal_commas(table, [i for meaning, i in at.items() if meaning != "name"])
    heading, cells = table.header[at["service"]], table.columns[at["service"]]
    if not any(map(str.strip, cells)):
        return 0.0
    found = numbers(table, at["service"], commas, problems, blank=0.0)
    stops = [(v, line) for i, (v, line) in enumerate(zip(found, table.lines, strict=True))
             if not (routes and i == home)]  # fmt: skip
    for value, line in stops:
        if value < 0:
            problems.add(line, heading, f"{value:g} is negative")
    if len({value for value, _ in stops if value == value}) > 1:
        first = stops[0]
        value, line = next(stop for stop in stops if stop[0] != first[0])
        problems.add(
            line, heading,
            f"{value:g}, but {first[0]:g} on {table.counted} {first[1]}: all stops must have the "
            "same service time (times of their own are not supported)",
        )  # fmt: skip
    if stops and stops[0][0] > 0 and not routes:
        problems.add(stops[0][1], heading, "service times are for stops with demands")
    return stops[0][0] if stops else 0.0


# --- distances ------------------------------------------------------------------------------------

Distances: TypeAlias = tuple[npt.NDArray[Any], tuple[str, ...] | None, str]


def read_matrix(path: PathLike) -> Distances:
    """A matrix of distances from a .npy file or a CSV, with the names in its header, if any."""
    with errors_as(InstanceError, None):
        name = name_of(path, "matrix")
    with errors_as(InstanceError, name):
        if suffix(name) == ".npy":
            try:
                with open(name, "rb") as stream:
                    found = np.load(BytesIO(stream.read()), allow_pickle=False)
            except OSError as error:
                fail(f"cannot be read: {error.strerror or error}")
            except ValueError as error:
                fail(f"not a matrix of numbers: {error}")
            names = None
        else:
            found, names = _matrix_of_rows(read_bytes(name))
        if found.ndim != 2 or found.shape[0] != found.shape[1]:
            fail(f"a matrix of distances is square, this one has the shape {found.shape}")
        if found.dtype.kind not in "iuf":
            fail("not a matrix of numbers")
        _refuse_asymmetric(found, names)
    return found, names, name


def _matrix_of_rows(data: bytes) -> tuple[npt.NDArray[Any], tuple[str, ...] | None]:
    rows, lines, delimiter = parse_rows(data)
    if not rows:
        fail("the file is empty", 1)
    names = None
    if not is_number(rows[0][-1]):  # a header, and perhaps names before each row
        names = tuple(cell.strip() for cell in rows[0])
        rows, lines = rows[1:], lines[1:]
        if rows and len(names) == len(rows) + 1:
            names = names[1:]
            for i, (row, line) in enumerate(zip(rows, lines, strict=True)):
                if row[0].strip() != names[i]:
                    fail(
                        f"row {quoted(row[0])} stands where column {quoted(names[i])} is due", line
                    )
            rows = [row[1:] for row in rows]
    commas = delimiter != ","
    values = []
    for row, line in zip(rows, lines, strict=True):
        if len(row) != len(rows):
            fail(f"{len(row)} distances, but {len(rows)} rows: a matrix is square", line)
        wrong = next((cell for cell in row if not is_number(cell)), None)
        if wrong is not None or (not commas and any("," in cell for cell in row)):
            fail(f"{quoted(wrong or next(c for c in row if ',' in c))} is no number", line)
        values.append([float(cell.replace(",", ".")) for cell in row])
    return np.array(values), names


def _refuse_asymmetric(found: npt.NDArray[Any], names: tuple[str, ...] | None) -> None:
    differ = np.abs(found - found.T) > 1e-9 * np.maximum(np.abs(found), np.abs(found.T))
    if differ.any():
        i, j = np.argwhere(differ)[0].tolist()
        pair = (names[i], names[j]) if names else (f"row {i + 1}", f"row {j + 1}")
        fail(
            f"{found[i, j]:g} from {pair[0]} to {pair[1]}, but {found[j, i]:g} back: distances "
            "that depend on the direction are not supported; give the mean of both"
        )


def _fitted(matrix: Distances, n: int, names: tuple[str, ...] | None) -> npt.NDArray[Any]:
    """The distances in the order of the stops: by names if both have them, else row by row."""
    found, headings, file = matrix
    with errors_as(InstanceError, file):
        if headings is None or names is None:
            if len(found) != n:
                fail(f"{len(found)} rows of distances for {n} stops")
            return found
        missing = [name for name in names if name not in headings]
        if missing:
            fail(f"no row of distances for the stop {quoted(missing[0])}")
        place = {heading: i for i, heading in enumerate(headings)}
        order = np.array([place[name] for name in names])
        fitted: npt.NDArray[Any] = found[np.ix_(order, order)]
        return fitted


# --- DataFrames -----------------------------------------------------------------------------------


def _of_frame(frame: Any) -> Table:
    """The cells of a DataFrame as text; what is missing becomes blank."""
    header = tuple(str(heading).strip() for heading in frame.columns)
    columns = tuple(tuple(_cells(frame.iloc[:, i].tolist())) for i in range(len(header)))
    return Table(header, columns, tuple(range(1, len(frame) + 1)), None, "row")


def _cells(values: list[Any]) -> Iterator[str]:
    for value in values:
        missing = value is None or value != value or str(value) == "<NA>"
        yield "" if missing else str(value)

"""TSPLIB text: instances and tours."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, NoReturn

import numpy as np

from drhg import problem
from drhg.errors import InstanceError, SolutionError
from drhg.files.messages import (
    NO_TEXT,
    errors_as,
    fail,
    first,
    in_file_numbers,
    one_line,
    quoted,
    refuse_variants,
)
from drhg.problem import Cost, Floats, Instance, Ints, Metric, Solution
from drhg.problem.arguments import LARGEST_EXACT
from drhg.problem.fields import ROUNDING_NOISE

_CVRP_KEYWORDS = {"CAPACITY", "VEHICLES", "DISTANCE", "SERVICE_TIME"}
_TIME_SECTIONS = {"TIME_WINDOW_SECTION", "SERVICE_TIME_SECTION"}
_CVRP_SECTIONS = {"DEMAND_SECTION", "DEPOT_SECTION"}
_KEYWORDS = _CVRP_KEYWORDS | {
    "NAME", "COMMENT", "TYPE", "DIMENSION", "EDGE_WEIGHT_TYPE", "EDGE_WEIGHT_FORMAT",
    "NODE_COORD_TYPE", "DISPLAY_DATA_TYPE",
}  # fmt: skip
_SECTIONS = _CVRP_SECTIONS | _TIME_SECTIONS | {
    "NODE_COORD_SECTION", "DISPLAY_DATA_SECTION", "EDGE_WEIGHT_SECTION", "FIXED_EDGES_SECTION",
    "TOUR_SECTION",
}  # fmt: skip
_ENDED_BY_MINUS_1 = {"FIXED_EDGES_SECTION", "DEPOT_SECTION", "TOUR_SECTION"}

# The half of the matrix that is written row by row, and the first diagonal in it. One half read by
# columns is the other half read by rows.
_HALVES: dict[str, tuple[Callable[..., Any], int]] = {
    "UPPER_ROW": (np.triu_indices, 1), "LOWER_COL": (np.triu_indices, 1),
    "LOWER_ROW": (np.tril_indices, -1), "UPPER_COL": (np.tril_indices, -1),
    "UPPER_DIAG_ROW": (np.triu_indices, 0), "LOWER_DIAG_COL": (np.triu_indices, 0),
    "LOWER_DIAG_ROW": (np.tril_indices, 0), "UPPER_DIAG_COL": (np.tril_indices, 0),
}  # fmt: skip

# Written with distances that are not rounded, and left out when read: it is about the file.
UNROUNDED = "Distances are not rounded. EXACT is a keyword of drhg, which other programs may refuse"

# A word in an error of `Instance`, and the part of the file it is about; the first match counts.
_BLAME = (
    ("window", "TIME_WINDOW_SECTION"), ("service_time", "SERVICE_TIME_SECTION"),
    ("vehicles", "VEHICLES"), ("demand", "DEMAND_SECTION"), ("capacity", "CAPACITY"),
    ("fixed edge", "FIXED_EDGES_SECTION"), ("max_distance", "DISTANCE"),
    ("service_time", "SERVICE_TIME"), ("distance", "EDGE_WEIGHT_SECTION"),
    ("", "NODE_COORD_SECTION"),
)  # fmt: skip

_KEY_LINE = re.compile(rb"([A-Za-z_][A-Za-z0-9_]*)[ \t]*(:?)[ \t]*(.*)")
_NEXT_KEY = re.compile(rb"\n[ \t]*[A-Za-z_]")
_TOKEN = re.compile(rb"[^ \t\n]+")
# nothing is tried twice (++ keeps what it took): refusing a long word takes one pass
NUMBER = re.compile(r"[+-]?([0-9]++(\.[0-9]*+)?|\.[0-9]++)([eE][+-]?[0-9]++)?")
WHOLE = re.compile(r"[+-]?[0-9]{1,18}")


# --- TSPLIB text: from bytes to keywords and sections ---------------------------------------------


@dataclass
class _Document:
    """A TSPLIB text taken apart: keyword values and section bodies, each with its line."""

    values: dict[str, str] = field(default_factory=dict)
    comments: list[str] = field(default_factory=list)
    bodies: dict[str, bytes] = field(default_factory=dict)  # each starts with its line break
    lines: dict[str, int] = field(default_factory=dict)
    last_line: int = 1

    @property
    def n(self) -> int:
        return int(self.values["DIMENSION"])

    def require(self, *keys: str) -> None:
        for key in keys:
            if key not in self.lines:
                fail(f"{key} is missing", self.last_line)

    def refuse(self, keys: set[str], where: str) -> None:
        for key in sorted(keys & self.lines.keys(), key=lambda key: self.lines[key]):
            fail(f"{key} does not belong in {where}", self.lines[key])

    def line_at(self, section: str, offset: int | None = None) -> int:
        """The line of an offset in a section's body; by default of its end."""
        body = self.bodies[section]
        offset = len(body.rstrip()) if offset is None else offset
        return self.lines[section] + body.count(b"\n", 0, offset)


def plain(text: str | bytes) -> bytes:
    """UTF-8 bytes with '\\n' line ends; refuses what is not text."""
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    try:
        data.decode()
        bad = data.find(b"\0")
    except UnicodeDecodeError as error:
        bad = error.start
    if bad >= 0:
        fail(NO_TEXT, data.count(b"\n", 0, bad) + 1)
    data = data.removeprefix(b"\xef\xbb\xbf")
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if not data.strip():
        fail("the file is empty", 1)
    return data


def _scan(text: str | bytes, types: tuple[str, ...]) -> _Document:
    """Split a TSPLIB text of one of the given TYPEs into keywords and sections."""
    data, doc = plain(text), _Document()
    at, line, ended = 0, 1, False
    while at < len(data):
        end = data.find(b"\n", at)
        end = len(data) if end < 0 else end
        content = data[at:end].strip(b" \t")
        if content:
            doc.last_line = line
            match = _KEY_LINE.fullmatch(content)
            key, colon, value = (part.decode() for part in match.groups()) if match else ("",) * 3
            if ended:
                fail(f"text after EOF: {quoted(content.decode())}", line)
            elif key == "EOF" and not value:
                ended = True
            elif key in _SECTIONS and not value:
                end = _add_section(doc, key, line, data, end)
                line = doc.last_line
            elif key in _KEYWORDS and colon:
                _add_keyword(doc, key, value, line, types, len(data))
            else:
                fail(f"unknown keyword or misplaced text {quoted(content.decode())}", line)
        at, line = end + 1, line + 1
    if not (ended or data.endswith(b"\n") or list(doc.lines)[-1] in _ENDED_BY_MINUS_1):
        fail("cut short: neither EOF nor a line break ends the last line", doc.last_line)
    doc.require("TYPE")
    return doc


def _add_section(doc: _Document, key: str, line: int, data: bytes, start: int) -> int:
    """Store the section whose header line ends at `start`; returns where its body ends."""
    if key in doc.lines:
        fail(f"{key} occurs twice", line)
    if key != "TOUR_SECTION" and "DIMENSION" not in doc.lines:
        fail(f"{key} comes before DIMENSION", line)
    following = _NEXT_KEY.search(data, start)
    body = data[start : following.start()] if following else data[start:].rstrip()
    doc.lines[key], doc.bodies[key] = line, body
    doc.last_line = line + body.count(b"\n")
    return start + len(body)


def _add_keyword(
    doc: _Document, key: str, value: str, line: int, types: tuple[str, ...], size: int
) -> None:
    if key == "COMMENT":
        doc.lines.setdefault(key, line)
        doc.comments.append(value)
        return
    if key in doc.lines:
        fail(f"{key} occurs twice", line)
    doc.lines[key], doc.values[key] = line, value
    if key == "TYPE":
        # some TSPLIB files append the author: 'TSP (M.~Hofmeister)'
        if value.endswith(")"):
            doc.values[key] = value.partition("(")[0].rstrip(" \t")
        if doc.values[key] not in types:
            fail(f"TYPE {quoted(value)} is not solved here, only {' or '.join(types)}", line)
    if key == "DIMENSION":
        n = _header_whole(doc, key)
        if n < 1:
            fail("DIMENSION must be at least 1", line)
        if n > size:  # before anything of that size is allocated
            fail(f"DIMENSION {n} is more than a text of {size} bytes can hold", line)


def _header_whole(doc: _Document, key: str) -> int:
    if not WHOLE.fullmatch(doc.values[key]):
        fail(f"{key} {quoted(doc.values[key])} is not a whole number", doc.lines[key])
    return int(doc.values[key])


def _header_number(doc: _Document, key: str) -> float:
    text = doc.values[key]
    if not NUMBER.fullmatch(text) or not np.isfinite(float(text)):
        fail(f"{key} {quoted(text)} is not a number", doc.lines[key])
    return float(text)


# --- TSPLIB text: the numbers of a section --------------------------------------------------------


def _numbers(doc: _Document, key: str) -> tuple[Floats, Ints]:
    """All numbers of a section, and the offset in its body where each one starts."""
    body = doc.bodies[key]
    if not body.translate(None, b"0123456789+-.eE \t\n"):
        blank = np.frombuffer(body, dtype=np.uint8) <= ord(" ")
        starts = np.flatnonzero(blank[:-1] & ~blank[1:]) + 1
        values = _fast_floats(body)
        if values is not None and len(values) == len(starts) and np.isfinite(values).all():
            return values, starts
    floats, offsets = [], []  # slow, but it knows the culprit
    for token in _TOKEN.finditer(body):
        word = token[0].decode()
        if not NUMBER.fullmatch(word) or not np.isfinite(float(word)):
            reason = f"{quoted(word)} in {key} is not a number, or too large"
            fail(reason, doc.line_at(key, token.start()))
        floats.append(float(word))
        offsets.append(token.start())
    return np.array(floats, dtype=np.float64), np.array(offsets, dtype=np.int64)


def _fast_floats(body: bytes) -> Floats | None:
    """What numpy reads from a text of digits, signs, dots and 'e', if it reads all of it.

    At what is no number numpy raises (from 2.4 on) or stops with a warning; the nan at the end
    tells that it read on, and the caller counts. Rounding is that of `float`.
    """
    try:
        values = np.fromstring(body + b" nan", dtype=np.float64, sep=" ")
    except (ValueError, DeprecationWarning):
        return None
    return values[:-1] if len(values) and np.isnan(values[-1]) else None


def _table(doc: _Document, key: str, width: int) -> Floats:
    """A section with one line per node, 'id value ...', as values (n, width) in node order."""
    values, starts = _numbers(doc, key)

    def fail_at(token: int, reason: str) -> NoReturn:
        fail(f"{reason} in {key}", doc.line_at(key, int(starts[token])))

    if len(starts):
        is_break = np.frombuffer(doc.bodies[key], dtype=np.uint8) == ord("\n")
        last = np.logical_or.reduceat(is_break, starts)  # a line break before the next number?
        last[-1] = True
        ends = np.flatnonzero(last)
        lengths = np.diff(ends, prepend=-1)
        if (row := first(lengths != width + 1)) is not None:
            reason = f"expected a node and {width} number(s), found {lengths[row]} number(s)"
            fail_at(int(ends[row]), reason)
    rows = values.reshape(-1, width + 1)
    index = _indices(doc, key, rows[:, 0], starts[:: width + 1])
    place = np.full(doc.n, -1, dtype=np.int64)  # the first row of each node
    place[index[::-1]] = np.arange(len(index))[::-1]
    if (row := first(place[index] != np.arange(len(index)))) is not None:
        fail_at(row * (width + 1), f"node {index[row] + 1} occurs twice")
    if (node := first(place < 0)) is not None:
        fail(f"node {node + 1} of {doc.n} (DIMENSION) is missing in {key}", doc.line_at(key))
    return rows[place, 1:]


def _indices(doc: _Document, key: str, ids: Floats, starts: Ints) -> Ints:
    """File's node numbers 1 .. n as indices from 0; `starts` are their offsets."""
    if (i := first((ids < 1) | (ids > doc.n) | (ids != np.floor(ids)))) is not None:
        reason = f"node {ids[i]:.15g} in {key} is not one of 1 .. {doc.n} (DIMENSION)"
        fail(reason, doc.line_at(key, int(starts[i])))
    return ids.astype(np.int64) - 1


def _node_list(doc: _Document, key: str) -> tuple[Ints, bool]:
    """Indices of a list of nodes that -1 ends, and whether the -1 is there."""
    values, starts = _numbers(doc, key)
    end = first(values == -1)
    count = len(values) if end is None else end
    if (extra := first(values[count:] != -1)) is not None:
        line = doc.line_at(key, int(starts[count + extra]))
        fail(f"a number after the -1 that ends {key}", line)
    return _indices(doc, key, values[:count], starts), end is not None


# --- TSPLIB text: from sections to an instance ----------------------------------------------------


def parse(text: str | bytes, *, file: str | None = None) -> Instance:
    """The instance that a TSPLIB or CVRPLIB text describes; `file` is only named in errors.

    >>> from drhg.files import parse
    >>> parse("TYPE: TSP\\nDIMENSION: 2\\nEDGE_WEIGHT_TYPE: EUC_2D\\n"
    ...       "NODE_COORD_SECTION\\n1 0 0\\n2 3 4\\nEOF").distance(0, 1)
    5.0
    """
    with errors_as(InstanceError, file):
        doc = _scan(text, ("TSP", "CVRP", "VRPTW"))
        doc.require("DIMENSION", "EDGE_WEIGHT_TYPE")
        doc.refuse({"TOUR_SECTION"}, "an instance")
        is_cvrp = doc.values["TYPE"] != "TSP"
        if doc.values["TYPE"] == "VRPTW":
            doc.require("TIME_WINDOW_SECTION")
        else:
            doc.refuse(_TIME_SECTIONS, f"a {doc.values['TYPE']}")
        if is_cvrp:
            doc.require("CAPACITY", "DEMAND_SECTION", "DEPOT_SECTION")
        else:
            doc.refuse(_CVRP_KEYWORDS | _CVRP_SECTIONS, "a TSP")
        try:
            return Instance(
                name=doc.values.get("NAME", Instance.name),
                comment="\n".join(line for line in doc.comments if line != UNROUNDED),
                fixed_edges=_fixed_edges(doc),
                **_geometry(doc),
                **(_vehicles(doc) if is_cvrp else {}),
            )
        except InstanceError as error:  # of problem.py, which knows no lines
            reason = in_file_numbers(error.reason, ".tsp")
            fail(reason, _blamed(doc, reason))


def _geometry(doc: _Document) -> dict[str, Any]:
    """The fields that define distances."""
    kind = _one_of(doc, "EDGE_WEIGHT_TYPE", {metric.name for metric in Metric})
    layout = _one_of(doc, "EDGE_WEIGHT_FORMAT", {"FUNCTION", "FULL_MATRIX", *_HALVES})
    coordinates = _one_of(doc, "NODE_COORD_TYPE", {"TWOD_COORDS", "NO_COORDS"})
    _one_of(doc, "DISPLAY_DATA_TYPE", {"COORD_DISPLAY", "TWOD_DISPLAY", "NO_DISPLAY"})
    if coordinates == "NO_COORDS":
        doc.refuse({"NODE_COORD_SECTION"}, "an instance with NO_COORDS")
    display = (
        _table(doc, "DISPLAY_DATA_SECTION", 2) if "DISPLAY_DATA_SECTION" in doc.lines else None
    )
    xy = _table(doc, "NODE_COORD_SECTION", 2) if "NODE_COORD_SECTION" in doc.lines else display
    if kind == "EXPLICIT":
        return {"metric": Metric.EXPLICIT, "matrix": _matrix(doc, layout), "xy": xy}
    doc.refuse({"EDGE_WEIGHT_SECTION"}, f"an instance with {kind} distances")
    if layout not in ("", "FUNCTION"):
        doc.refuse({"EDGE_WEIGHT_FORMAT"}, f"an instance with {kind} distances")
    doc.require("NODE_COORD_SECTION")
    return {"metric": Metric[kind], "xy": xy}


def _one_of(doc: _Document, key: str, known: set[str]) -> str:
    """The value of a keyword that has a few known values; '' if it is absent."""
    value = doc.values.get(key, "")
    if key in doc.lines and value not in known:
        reason = f"{key} {quoted(value)} is not known; known: {', '.join(sorted(known))}"
        fail(reason, doc.lines[key])
    return value


def _matrix(doc: _Document, layout: str) -> Floats:
    key, n = "EDGE_WEIGHT_SECTION", doc.n
    doc.require("EDGE_WEIGHT_FORMAT", key)
    if layout == "FUNCTION":
        doc.refuse({"EDGE_WEIGHT_FORMAT"}, "an EXPLICIT instance if it is FUNCTION")
    half, diagonal = _HALVES.get(layout, (None, 0))
    needed = n * n if half is None else n * (n + 1) // 2 - (n if diagonal else 0)
    values, starts = _numbers(doc, key)
    if len(values) != needed:  # before anything of that size is allocated
        line = doc.line_at(key, int(starts[needed]) if len(values) > needed else None)
        fail(f"{key} has {len(values)} numbers, {layout} of {n} nodes needs {needed}", line)
    if half is None:
        return _full_matrix(doc, values.reshape(n, n))
    matrix = np.zeros((n, n))
    rows, columns = half(n, diagonal)
    matrix[rows, columns] = matrix[columns, rows] = values
    return matrix


def _full_matrix(doc: _Document, matrix: Floats) -> Floats:
    """A matrix as it stands; that of a TSP is symmetric by definition."""
    differ = (matrix != matrix.T) & ~np.isclose(matrix, matrix.T, rtol=ROUNDING_NOISE, atol=0.0)
    if doc.values["TYPE"] == "TSP" and differ.any():
        i, j = (np.argwhere(differ)[0] + 1).tolist()
        fail(
            f"the distance matrix is not symmetric (nodes {i} and {j} of the file)",
            doc.lines["EDGE_WEIGHT_SECTION"],
        )
    return matrix


def _fixed_edges(doc: _Document) -> tuple[tuple[int, int], ...]:
    key = "FIXED_EDGES_SECTION"
    if key not in doc.lines:
        return ()
    nodes, ended = _node_list(doc, key)
    if not ended or len(nodes) % 2:
        fail(f"{key} must be pairs of nodes, then -1", doc.line_at(key))
    return tuple((a, b) for a, b in nodes.reshape(-1, 2).tolist())


def _vehicles(doc: _Document) -> dict[str, Any]:
    """The fields that make a CVRP."""
    depots, ended = _node_list(doc, "DEPOT_SECTION")
    if not ended or len(depots) != 1:
        reason = f"DEPOT_SECTION must be one depot, then -1; it names {len(depots)}"
        fail(reason + ("" if ended else " and has no -1"), doc.line_at("DEPOT_SECTION"))
    values = _table(doc, "DEMAND_SECTION", 1)[:, 0]
    whole = (values == np.floor(values)) & (np.abs(values) < LARGEST_EXACT)
    exact = values.astype(np.int64) if whole.all() else values  # the quick way through whole_demand
    demand, capacity, scale = problem.whole_demand(exact, _header_number(doc, "CAPACITY"))
    fields: dict[str, Any] = {"demand": demand, "capacity": capacity, "demand_scale": scale}
    fields["depot"] = int(depots[0])
    if "VEHICLES" in doc.lines:
        fields["vehicles"] = _header_whole(doc, "VEHICLES")
    for name, key in (("max_distance", "DISTANCE"), ("service_time", "SERVICE_TIME")):
        if key in doc.lines:
            fields[name] = _header_number(doc, key)
    return fields | _times(doc)


def _times(doc: _Document) -> dict[str, Any]:
    """The fields of a VRPTW: windows, and service times if every node has one of its own."""
    fields: dict[str, Any] = {}
    if "TIME_WINDOW_SECTION" in doc.lines:
        fields["windows"] = _table(doc, "TIME_WINDOW_SECTION", 2)
    if "SERVICE_TIME_SECTION" in doc.lines:
        doc.refuse({"SERVICE_TIME"}, "an instance with a SERVICE_TIME_SECTION")
        fields["service_time"] = _table(doc, "SERVICE_TIME_SECTION", 1)[:, 0]
    return fields


def _blamed(doc: _Document, reason: str) -> int:
    """The line that an error of `Instance` is about, as far as its words tell."""
    key = next((k for word, k in _BLAME if word in reason and k in doc.lines), None)
    if key is None:
        return doc.last_line
    width = {
        "DEMAND_SECTION": 2, "NODE_COORD_SECTION": 3, "TIME_WINDOW_SECTION": 3,
        "SERVICE_TIME_SECTION": 2,
    }.get(key)  # fmt: skip
    node = re.search(r"\bnode ([0-9]+) of the file", reason)
    if node is None or width is None:
        return doc.lines[key]
    values, starts = _numbers(doc, key)
    row = first(values[::width] == int(node[1])) or 0
    return doc.line_at(key, int(starts[row * width]))


# --- tours and route plans ------------------------------------------------------------------------


def parse_tour(text: str | bytes, instance: Instance, *, file: str | None = None) -> Solution:
    """The tour of a TSPLIB TOUR text; nodes are checked to exist, `problem.check` does the rest."""
    with errors_as(SolutionError, file):
        doc = _scan(text, ("TOUR",))
        if instance.is_cvrp:
            fail("a tour is for a TSP, but the instance is a CVRP", 1)
        doc.require("TOUR_SECTION")
        doc.refuse(_SECTIONS - {"TOUR_SECTION"}, "a tour")
        doc.values.setdefault("DIMENSION", str(instance.n))
        if doc.n != instance.n:
            reason = f"DIMENSION is {doc.n}, but the instance has {instance.n} nodes"
            fail(reason, doc.lines["DIMENSION"])
        nodes, _ = _node_list(doc, "TOUR_SECTION")
        if len(nodes) != instance.n:
            line = doc.line_at("TOUR_SECTION")
            fail(f"TOUR_SECTION has {len(nodes)} nodes, the instance {instance.n}", line)
        return Solution([nodes])


def format_tour(instance: Instance, solution: Solution, cost: Cost | None = None) -> str:
    """A tour as TSPLIB TOUR text; `cost` is recomputed unless given."""
    shown = problem.cost(instance, solution) if cost is None else cost
    head = f"NAME: {one_line(instance.name)}\nCOMMENT: length {shown}\nTYPE: TOUR\n"
    nodes = "\n".join(map(str, (solution.tour + 1).tolist()))
    return f"{head}DIMENSION: {len(solution.tour)}\nTOUR_SECTION\n{nodes}\n-1\nEOF\n"


# --- instances as text ----------------------------------------------------------------------------


def format_instance(instance: Instance) -> str:
    """An instance as TSPLIB or CVRPLIB text, from which `parse` gives back the same instance.

    Only the nodes' names and the meaning of coordinates beside a matrix have no place in it.
    """
    timed = instance.windows is not None and bool(np.isfinite(instance.windows).all())
    refuse_variants(
        instance, "this kind of file", ("fixed", "windows", "services") if timed else ("fixed",)
    )
    explicit, scale = instance.matrix is not None, instance.demand_scale
    out = [f"NAME: {one_line(instance.name)}"]
    if instance.comment:
        out += [f"COMMENT: {one_line(line)}" for line in instance.comment.split("\n")]
    out += [f"COMMENT: {UNROUNDED}"] if instance.metric is Metric.EXACT else []
    out += [f"TYPE: {instance.problem.upper()}", f"DIMENSION: {instance.n}"]
    out += [f"EDGE_WEIGHT_TYPE: {instance.metric.name}"]
    out += ["EDGE_WEIGHT_FORMAT: LOWER_DIAG_ROW"] if explicit else []
    out += ["DISPLAY_DATA_TYPE: TWOD_DISPLAY"] if explicit and instance.xy is not None else []
    if instance.capacity is not None:
        out.append(f"CAPACITY: {_decimal(instance.capacity, scale)}")
    if instance.vehicles is not None:
        out.append(f"VEHICLES: {instance.vehicles}")
    if instance.max_distance is not None:
        out.append(f"DISTANCE: {_shortest(instance.max_distance)}")
    if instance.common_service > 0.0:  # not if they differ
        out.append(f"SERVICE_TIME: {_shortest(instance.common_service)}")
    if instance.fixed_edges:
        out += ["FIXED_EDGES_SECTION", *(f"{a + 1} {b + 1}" for a, b in instance.fixed_edges), "-1"]
    if instance.matrix is not None:
        rows = enumerate(instance.matrix.tolist(), start=1)
        out += ["EDGE_WEIGHT_SECTION", *(" ".join(map(_shortest, row[:i])) for i, row in rows)]
    if instance.xy is not None:
        points = enumerate(instance.xy.tolist(), start=1)
        out.append("DISPLAY_DATA_SECTION" if explicit else "NODE_COORD_SECTION")
        out += [f"{i} {_shortest(x)} {_shortest(y)}" for i, (x, y) in points]
    if instance.demand is not None:
        demands = enumerate(instance.demand.tolist(), start=1)
        out += ["DEMAND_SECTION", *(f"{i} {_decimal(d, scale)}" for i, d in demands)]
        out += ["DEPOT_SECTION", str(instance.depot + 1), "-1"]
    if instance.windows is not None:
        windows = enumerate(instance.windows.tolist(), start=1)
        out.append("TIME_WINDOW_SECTION")
        out += [f"{i} {_shortest(a)} {_shortest(b)}" for i, (a, b) in windows]
    if isinstance(instance.service_time, np.ndarray):
        services = enumerate(instance.service_time.tolist(), start=1)
        out += ["SERVICE_TIME_SECTION", *(f"{i} {_shortest(time)}" for i, time in services)]
    return "\n".join([*out, "EOF", ""])


def _shortest(value: float) -> str:
    """The shortest text that reads back as the same number."""
    return repr(value).removesuffix(".0")


def _decimal(value: int, scale: int) -> str:
    return f"{Decimal(value) / scale:f}"

"""Files: TSPLIB and CVRPLIB text, tours, route plans, JSON; read strictly, written atomically.

`parse`, `parse_tour`, `parse_sol`, the JSON functions and `format_*` are pure. Whatever is wrong
with a file becomes an `InstanceError` or `SolutionError` that names the file and the line, and
counts nodes as the file does. A path may be "-", which is standard input or output, and may end
in .gz.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import re
import secrets
import stat
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from drhg import problem
from drhg.errors import DrhgError, InstanceError, SolutionError
from drhg.problem import Cost, Floats, Instance, Ints, Metric, Solution

PathLike: TypeAlias = str | os.PathLike[str]

LARGEST_FILE = 2 * 10**9  # bytes, of a compressed file also of what is in it
STANDARD = "-"  # the path of standard input and output
_NO_TEXT = "not a text file (NUL or not UTF-8)"
_PIECE = 1 << 20  # bytes that are looked at first

_CVRP_KEYWORDS = {"CAPACITY", "VEHICLES", "DISTANCE", "SERVICE_TIME"}
_CVRP_SECTIONS = {"DEMAND_SECTION", "DEPOT_SECTION"}
_KEYWORDS = _CVRP_KEYWORDS | {
    "NAME", "COMMENT", "TYPE", "DIMENSION", "EDGE_WEIGHT_TYPE", "EDGE_WEIGHT_FORMAT",
    "NODE_COORD_TYPE", "DISPLAY_DATA_TYPE",
}  # fmt: skip
_SECTIONS = _CVRP_SECTIONS | {
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
_BLAME = {
    "vehicles": "VEHICLES", "demand": "DEMAND_SECTION", "capacity": "CAPACITY",
    "fixed edge": "FIXED_EDGES_SECTION", "max_distance": "DISTANCE", "service_time": "SERVICE_TIME",
    "distance": "EDGE_WEIGHT_SECTION", "": "NODE_COORD_SECTION",
}  # fmt: skip

_KEY_LINE = re.compile(rb"([A-Za-z_][A-Za-z0-9_]*)[ \t]*(:?)[ \t]*(.*)")
_NEXT_KEY = re.compile(rb"\n[ \t]*[A-Za-z_]")
_TOKEN = re.compile(rb"[^ \t\n]+")
# nothing is tried twice (++ keeps what it took): refusing a long word takes one pass
_NUMBER = re.compile(r"[+-]?([0-9]++(\.[0-9]*+)?|\.[0-9]++)([eE][+-]?[0-9]++)?")
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
_ROUTE = re.compile(r"Route[ \t]*#([0-9]{1,9})[ \t]*:(.*)")
_COST = re.compile(r"[Cc]ost[ \t]*:?[ \t]*(.*)")
_FROM_ZERO = re.compile(r"(nodes?) (-?[0-9]+(?:(?:, | and )-?[0-9]+)*) \(counted from 0\)")


# --- errors ---------------------------------------------------------------------------------------


def _fail(reason: str, line: int | None = None) -> NoReturn:
    raise DrhgError(reason, line=line)


@contextlib.contextmanager
def _errors_as(kind: type[DrhgError], file: str | None) -> Iterator[None]:
    """Give every error inside its public type and the name of the file."""
    try:
        yield
    except DrhgError as error:
        raise kind(error.reason, file=file, line=error.line) from None


def in_file_numbers(message: str, path: PathLike) -> str:
    """A message of `drhg.check` or of an error, with nodes named as this file counts them.

    >>> in_file_numbers("node 4 (counted from 0) is not visited", "berlin52.tour")
    'node 5 of the file is not visited'
    >>> in_file_numbers("node 4 (counted from 0) is not visited", "A-n32-k5.sol")
    'node 4 as .sol files count (5 in a .vrp file) is not visited'
    """
    name = os.fspath(path)
    if name == STANDARD or suffix(name) in (".json", ".jsonl"):
        return message
    plain = suffix(name) != ".sol"

    def renamed(match: re.Match[str]) -> str:
        from_one = re.sub("-?[0-9]+", lambda number: str(int(number[0]) + 1), match[2])
        if plain:
            return f"{match[1]} {from_one} of the file"
        return f"{match[1]} {match[2]} as .sol files count ({from_one} in a .vrp file)"

    return _FROM_ZERO.sub(renamed, message)


def _quoted(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")


def _first(mask: npt.NDArray[np.bool_]) -> int | None:
    """Index of the first True."""
    return int(np.argmax(mask)) if mask.any() else None


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
                _fail(f"{key} is missing", self.last_line)

    def refuse(self, keys: set[str], where: str) -> None:
        for key in sorted(keys & self.lines.keys(), key=lambda key: self.lines[key]):
            _fail(f"{key} does not belong in {where}", self.lines[key])

    def line_at(self, section: str, offset: int | None = None) -> int:
        """The line of an offset in a section's body; by default of its end."""
        body = self.bodies[section]
        offset = len(body.rstrip()) if offset is None else offset
        return self.lines[section] + body.count(b"\n", 0, offset)


def _plain(text: str | bytes) -> bytes:
    """UTF-8 bytes with '\\n' line ends; refuses what is not text."""
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    try:
        data.decode()
        bad = data.find(b"\0")
    except UnicodeDecodeError as error:
        bad = error.start
    if bad >= 0:
        _fail(_NO_TEXT, data.count(b"\n", 0, bad) + 1)
    data = data.removeprefix(b"\xef\xbb\xbf")
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if not data.strip():
        _fail("the file is empty", 1)
    return data


def _scan(text: str | bytes, types: tuple[str, ...]) -> _Document:
    """Split a TSPLIB text of one of the given TYPEs into keywords and sections."""
    data, doc = _plain(text), _Document()
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
                _fail(f"text after EOF: {_quoted(content.decode())}", line)
            elif key == "EOF" and not value:
                ended = True
            elif key in _SECTIONS and not value:
                end = _add_section(doc, key, line, data, end)
                line = doc.last_line
            elif key in _KEYWORDS and colon:
                _add_keyword(doc, key, value, line, types, len(data))
            else:
                _fail(f"unknown keyword or misplaced text {_quoted(content.decode())}", line)
        at, line = end + 1, line + 1
    if not (ended or data.endswith(b"\n") or list(doc.lines)[-1] in _ENDED_BY_MINUS_1):
        _fail("cut short: neither EOF nor a line break ends the last line", doc.last_line)
    doc.require("TYPE")
    return doc


def _add_section(doc: _Document, key: str, line: int, data: bytes, start: int) -> int:
    """Store the section whose header line ends at `start`; returns where its body ends."""
    if key in doc.lines:
        _fail(f"{key} occurs twice", line)
    if key != "TOUR_SECTION" and "DIMENSION" not in doc.lines:
        _fail(f"{key} comes before DIMENSION", line)
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
        _fail(f"{key} occurs twice", line)
    doc.lines[key], doc.values[key] = line, value
    if key == "TYPE":
        # some TSPLIB files append the author: 'TSP (M.~Hofmeister)'
        if value.endswith(")"):
            doc.values[key] = value.partition("(")[0].rstrip(" \t")
        if doc.values[key] not in types:
            _fail(f"TYPE {_quoted(value)} is not solved here, only {' or '.join(types)}", line)
    if key == "DIMENSION":
        n = _header_whole(doc, key)
        if n < 1:
            _fail("DIMENSION must be at least 1", line)
        if n > size:  # before anything of that size is allocated
            _fail(f"DIMENSION {n} is more than a text of {size} bytes can hold", line)


def _header_whole(doc: _Document, key: str) -> int:
    if not _WHOLE.fullmatch(doc.values[key]):
        _fail(f"{key} {_quoted(doc.values[key])} is not a whole number", doc.lines[key])
    return int(doc.values[key])


def _header_number(doc: _Document, key: str) -> float:
    text = doc.values[key]
    if not _NUMBER.fullmatch(text) or not np.isfinite(float(text)):
        _fail(f"{key} {_quoted(text)} is not a number", doc.lines[key])
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
        if not _NUMBER.fullmatch(word) or not np.isfinite(float(word)):
            reason = f"{_quoted(word)} in {key} is not a number, or too large"
            _fail(reason, doc.line_at(key, token.start()))
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

    def fail(token: int, reason: str) -> NoReturn:
        _fail(f"{reason} in {key}", doc.line_at(key, int(starts[token])))

    if len(starts):
        is_break = np.frombuffer(doc.bodies[key], dtype=np.uint8) == ord("\n")
        last = np.logical_or.reduceat(is_break, starts)  # a line break before the next number?
        last[-1] = True
        ends = np.flatnonzero(last)
        lengths = np.diff(ends, prepend=-1)
        if (row := _first(lengths != width + 1)) is not None:
            reason = f"expected a node and {width} number(s), found {lengths[row]} number(s)"
            fail(int(ends[row]), reason)
    rows = values.reshape(-1, width + 1)
    index = _indices(doc, key, rows[:, 0], starts[:: width + 1])
    place = np.full(doc.n, -1, dtype=np.int64)  # the first row of each node
    place[index[::-1]] = np.arange(len(index))[::-1]
    if (row := _first(place[index] != np.arange(len(index)))) is not None:
        fail(row * (width + 1), f"node {index[row] + 1} occurs twice")
    if (node := _first(place < 0)) is not None:
        _fail(f"node {node + 1} of {doc.n} (DIMENSION) is missing in {key}", doc.line_at(key))
    return rows[place, 1:]


def _indices(doc: _Document, key: str, ids: Floats, starts: Ints) -> Ints:
    """File's node numbers 1 .. n as indices from 0; `starts` are their offsets."""
    if (i := _first((ids < 1) | (ids > doc.n) | (ids != np.floor(ids)))) is not None:
        reason = f"node {ids[i]:.15g} in {key} is not one of 1 .. {doc.n} (DIMENSION)"
        _fail(reason, doc.line_at(key, int(starts[i])))
    return ids.astype(np.int64) - 1


def _node_list(doc: _Document, key: str) -> tuple[Ints, bool]:
    """Indices of a list of nodes that -1 ends, and whether the -1 is there."""
    values, starts = _numbers(doc, key)
    end = _first(values == -1)
    count = len(values) if end is None else end
    if (extra := _first(values[count:] != -1)) is not None:
        line = doc.line_at(key, int(starts[count + extra]))
        _fail(f"a number after the -1 that ends {key}", line)
    return _indices(doc, key, values[:count], starts), end is not None


# --- TSPLIB text: from sections to an instance ----------------------------------------------------


def parse(text: str | bytes, *, file: str | None = None) -> Instance:
    """The instance that a TSPLIB or CVRPLIB text describes; `file` is only named in errors.

    >>> from drhg.io import parse
    >>> parse("TYPE: TSP\\nDIMENSION: 2\\nEDGE_WEIGHT_TYPE: EUC_2D\\n"
    ...       "NODE_COORD_SECTION\\n1 0 0\\n2 3 4\\nEOF").distance(0, 1)
    5.0
    """
    with _errors_as(InstanceError, file):
        doc = _scan(text, ("TSP", "CVRP"))
        doc.require("DIMENSION", "EDGE_WEIGHT_TYPE")
        doc.refuse({"TOUR_SECTION"}, "an instance")
        is_cvrp = doc.values["TYPE"] == "CVRP"
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
            _fail(reason, _blamed(doc, reason))


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
        reason = f"{key} {_quoted(value)} is not known; known: {', '.join(sorted(known))}"
        _fail(reason, doc.lines[key])
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
        _fail(f"{key} has {len(values)} numbers, {layout} of {n} nodes needs {needed}", line)
    if half is None:
        return values.reshape(n, n)
    matrix = np.zeros((n, n))
    rows, columns = half(n, diagonal)
    matrix[rows, columns] = matrix[columns, rows] = values
    return matrix


def _fixed_edges(doc: _Document) -> tuple[tuple[int, int], ...]:
    key = "FIXED_EDGES_SECTION"
    if key not in doc.lines:
        return ()
    nodes, ended = _node_list(doc, key)
    if not ended or len(nodes) % 2:
        _fail(f"{key} must be pairs of nodes, then -1", doc.line_at(key))
    return tuple((a, b) for a, b in nodes.reshape(-1, 2).tolist())


def _vehicles(doc: _Document) -> dict[str, Any]:
    """The fields that make a CVRP."""
    depots, ended = _node_list(doc, "DEPOT_SECTION")
    if not ended or len(depots) != 1:
        reason = f"DEPOT_SECTION must be one depot, then -1; it names {len(depots)}"
        _fail(reason + ("" if ended else " and has no -1"), doc.line_at("DEPOT_SECTION"))
    values = _table(doc, "DEMAND_SECTION", 1)[:, 0]
    whole = (values == np.floor(values)) & (np.abs(values) < problem.LARGEST_EXACT)
    exact = values.astype(np.int64) if whole.all() else values  # the quick way through whole_demand
    demand, capacity, scale = problem.whole_demand(exact, _header_number(doc, "CAPACITY"))
    fields: dict[str, Any] = {"demand": demand, "capacity": capacity, "demand_scale": scale}
    fields["depot"] = int(depots[0])
    if "VEHICLES" in doc.lines:
        fields["vehicles"] = _header_whole(doc, "VEHICLES")
    for name, key in (("max_distance", "DISTANCE"), ("service_time", "SERVICE_TIME")):
        if key in doc.lines:
            fields[name] = _header_number(doc, key)
    return fields


def _blamed(doc: _Document, reason: str) -> int:
    """The line that an error of `Instance` is about, as far as its words tell."""
    key = next((k for word, k in _BLAME.items() if word in reason and k in doc.lines), None)
    if key is None:
        return doc.last_line
    width = {"DEMAND_SECTION": 2, "NODE_COORD_SECTION": 3}.get(key)
    node = re.search(r"\bnode ([0-9]+) of the file", reason)
    if node is None or width is None:
        return doc.lines[key]
    values, starts = _numbers(doc, key)
    row = _first(values[::width] == int(node[1])) or 0
    return doc.line_at(key, int(starts[row * width]))


# --- tours and route plans ------------------------------------------------------------------------


def parse_tour(text: str | bytes, instance: Instance, *, file: str | None = None) -> Solution:
    """The tour of a TSPLIB TOUR text; nodes are checked to exist, `problem.check` does the rest."""
    with _errors_as(SolutionError, file):
        doc = _scan(text, ("TOUR",))
        if instance.is_cvrp:
            _fail("a tour is for a TSP, but the instance is a CVRP", 1)
        doc.require("TOUR_SECTION")
        doc.refuse(_SECTIONS - {"TOUR_SECTION"}, "a tour")
        doc.values.setdefault("DIMENSION", str(instance.n))
        if doc.n != instance.n:
            reason = f"DIMENSION is {doc.n}, but the instance has {instance.n} nodes"
            _fail(reason, doc.lines["DIMENSION"])
        nodes, _ = _node_list(doc, "TOUR_SECTION")
        if len(nodes) != instance.n:
            line = doc.line_at("TOUR_SECTION")
            _fail(f"TOUR_SECTION has {len(nodes)} nodes, the instance {instance.n}", line)
        return Solution([nodes])


def parse_sol(text: str | bytes, instance: Instance, *, file: str | None = None) -> Solution:
    """The routes of a CVRPLIB .sol text ('Route #1: 3 1', 'Cost 12'); nodes count from 0."""
    routes: list[list[int]] = []
    ended = False
    with _errors_as(SolutionError, file):
        lines = _plain(text).decode().split("\n")
        if not instance.is_cvrp:
            _fail("a .sol file is for a CVRP, but the instance is a TSP", 1)
        for number, line in enumerate((line.strip(" \t") for line in lines), start=1):
            route, cost = _ROUTE.fullmatch(line), _COST.fullmatch(line)
            if ended and line:
                _fail(f"text after the cost: {_quoted(line)}", number)
            elif route:
                if int(route[1]) != len(routes) + 1:
                    _fail(f"route {int(route[1])} where route {len(routes) + 1} is due", number)
                routes.append([_sol_node(word, instance.n, number) for word in route[2].split()])
            elif cost and _NUMBER.fullmatch(cost[1]):
                ended = True
            elif line:
                _fail(f"neither 'Route #{len(routes) + 1}: ...' nor 'Cost ...'", number)
    return Solution(routes)


def _sol_node(word: str, n: int, line: int) -> int:
    if not _WHOLE.fullmatch(word) or not 0 <= int(word) < n:
        _fail(f"{_quoted(word)} is not one of the nodes 0 .. {n - 1} (as .sol files count)", line)
    return int(word)


def format_tour(instance: Instance, solution: Solution, cost: Cost | None = None) -> str:
    """A tour as TSPLIB TOUR text; `cost` is recomputed unless given."""
    shown = problem.cost(instance, solution) if cost is None else cost
    head = f"NAME: {_one_line(instance.name)}\nCOMMENT: length {shown}\nTYPE: TOUR\n"
    nodes = "\n".join(map(str, (solution.tour + 1).tolist()))
    return f"{head}DIMENSION: {len(solution.tour)}\nTOUR_SECTION\n{nodes}\n-1\nEOF\n"


def format_sol(instance: Instance, solution: Solution, cost: Cost | None = None) -> str:
    """Routes as CVRPLIB .sol text; `cost` is recomputed unless given."""
    shown = problem.cost(instance, solution) if cost is None else cost
    routes = (" ".join(map(str, route.tolist())) for route in solution.routes)
    rows = [f"Route #{r}: {route}\n" for r, route in enumerate(routes, start=1)]
    return "".join(rows) + f"Cost {shown}\n"


# --- instances as text ----------------------------------------------------------------------------


def format_instance(instance: Instance) -> str:
    """An instance as TSPLIB or CVRPLIB text, from which `parse` gives back the same instance."""
    explicit, scale = instance.matrix is not None, instance.demand_scale
    out = [f"NAME: {_one_line(instance.name)}"]
    if instance.comment:
        out += [f"COMMENT: {_one_line(line)}" for line in instance.comment.split("\n")]
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
    if instance.service_time:
        out.append(f"SERVICE_TIME: {_shortest(instance.service_time)}")
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
    return "\n".join([*out, "EOF", ""])


def _one_line(text: str) -> str:
    return re.sub(r"[\0\r\n]", " ", text).strip(" \t")


def _shortest(value: float) -> str:
    """The shortest text that reads back as the same number."""
    return repr(value).removesuffix(".0")


def _decimal(value: int, scale: int) -> str:
    return f"{Decimal(value) / scale:f}"


# --- JSON -----------------------------------------------------------------------------------------


def to_json(instance: Instance) -> str:
    """An instance as JSON; nodes count from 0."""
    fields = {name: getattr(instance, name) for name in _JSON_FIELDS}
    fields["metric"] = instance.metric.name
    lists = {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in fields.items()}
    return json.dumps({"format": "drhg-instance", **lists}) + "\n"


def from_json(text: str | bytes, *, file: str | None = None) -> Instance:
    """The instance that `to_json` wrote."""
    with _errors_as(InstanceError, file):
        fields = _load_json(_plain(text))
        if not isinstance(fields, dict) or fields.pop("format", None) != "drhg-instance":
            _fail('the JSON is not an object with "format": "drhg-instance"')
        for name, value in fields.items():
            if name not in _JSON_FIELDS:
                _fail(f"unknown field {_quoted(name)}")
            if not (_JSON_FIELDS[name](value) or (value is None and name in _OPTIONAL)):
                _fail(f"{name} has a wrong value: {_quoted(json.dumps(value))}")
        fields["metric"] = Metric[fields.get("metric", "EXACT")]
        for name, kind in (("xy", np.float64), ("matrix", None), ("demand", np.int64)):
            if fields.get(name) is not None:
                fields[name] = np.array(fields[name], dtype=kind)
        return Instance(**fields)


def solution_row(
    instance: Instance,
    solution: Solution,
    cost: Cost | None = None,
    *,
    file: PathLike | None = None,
) -> dict[str, Any]:
    """A solution as an object of JSON: the one form that all commands print, write and read.

    `file` is the instance's; `cost` is recomputed unless given. Nodes count from 0.

    >>> import drhg
    >>> square = drhg.tsp([[0, 0], [0, 1], [1, 1], [1, 0]], name="square")
    >>> solution_row(square, drhg.Solution([[0, 1, 2, 3]]))  # doctest: +NORMALIZE_WHITESPACE
    {'file': None, 'name': 'square', 'problem': 'tsp', 'n': 4, 'cost': 4.0, 'tour': [0, 1, 2, 3]}
    """
    row: dict[str, Any] = {
        "file": None if file is None else _name_of(file, "file"),
        "name": instance.name,
        "problem": instance.problem,
        "n": instance.n,
        "cost": problem.cost(instance, solution) if cost is None else cost,
    }
    if instance.is_cvrp:
        return row | {"routes": [route.tolist() for route in solution.routes]}
    return row | {"tour": solution.tour.tolist()}


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
    with _errors_as(SolutionError, file):
        rows = _solution_rows(_plain(text))
        line, row = rows[0] if len(rows) == 1 else _fitting_row(rows, instance, instance_file)
        return Solution(_routes_of(row, line, instance))


_Row: TypeAlias = tuple[int | None, dict[str, Any]]  # an object, and its line if it is one of many


def _solution_rows(data: bytes) -> list[_Row]:
    lines = [(i, line) for i, line in enumerate(data.split(b"\n"), start=1) if line.strip()]
    rows: list[tuple[int | None, Any]]
    if len(lines) > 1 and lines[0][1].strip()[-1:] + lines[1][1].strip()[:1] == b"}{":
        rows = [(number, _load_json(line, number)) for number, line in lines]
    else:
        rows = [(None, _load_json(data))]
    for line, row in rows:
        if not isinstance(row, dict):
            _fail("a solution in JSON is an object", line)
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
        _fail(f"none of its {len(rows)} solutions is of {asked}, by file or name")
    if len(best) > 1:
        numbers = f"{best[0][0]} and {best[1][0]}"
        _fail(f"lines {numbers} are both solutions of {asked}: keep one of them", best[1][0])
    return best[0]


def _routes_of(row: dict[str, Any], line: int | None, instance: Instance) -> list[list[int]]:
    if ("tour" in row) == ("routes" in row):
        _fail('a solution in JSON has either "tour" or "routes"', line)
    for name, ours in (("problem", instance.problem), ("n", instance.n)):
        if row.get(name, ours) != ours:
            given = _quoted(json.dumps(row[name]))
            _fail(f'the solution has "{name}": {given}, but the instance {ours!r}', line)
    if not _is_real(row.get("cost") or 0):
        _fail("cost must be a number", line)
    key = "tour" if "tour" in row else "routes"
    if key == "tour" and instance.is_cvrp:
        _fail("a tour is for a TSP, but the instance is a CVRP", line)
    routes = [row["tour"]] if key == "tour" else row["routes"]
    if not _is_list(routes, lambda r: _is_list(r, lambda i: _is_whole(i) and 0 <= i < instance.n)):
        what = "a list" if key == "tour" else "lists"
        _fail(f"{key} must be {what} of the nodes 0 .. {instance.n - 1} (counted from 0)", line)
    return routes


def _load_json(data: bytes, line: int = 1) -> Any:
    """What a JSON text says that begins at this line; no field of an object may occur twice."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) != len(pairs):
            raise ValueError("a field occurs twice")
        return dict(pairs)

    try:
        return json.loads(data, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        _fail(f"not JSON: {error.msg}", error.lineno + line - 1)
    except (ValueError, RecursionError) as error:
        _fail(f"not usable JSON: {error}", line if line > 1 else None)


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
    "service_time": _is_real,
    "fixed_edges": lambda v: _is_rows(v, 2, _is_whole),
    "comment": _is_text,
}
_OPTIONAL = {"xy", "matrix", "demand", "capacity", "vehicles", "max_distance"}


# --- files ----------------------------------------------------------------------------------------


def suffix(path: PathLike) -> str:
    """What the name of a file ends in, in lower case and without .gz: '.tsp' of 'a280.tsp.gz'."""
    return Path(os.fspath(path).lower().removesuffix(".gz")).suffix


def stem(path: PathLike) -> str:
    """The name of a file without folder, .gz and suffix: 'a280' of 'x/a280.tsp.gz'."""
    name = os.path.basename(os.fspath(path))
    return Path(name[:-3] if name.lower().endswith(".gz") else name).stem


def read(path: PathLike) -> Instance:
    """Read an instance: TSPLIB or CVRPLIB text, or JSON as `write_instance` writes it.

    The path may be "-" (standard input), and end in .gz.
    """
    with _errors_as(InstanceError, None):
        name = _name_of(path)
    file = "standard input" if name == STANDARD else name
    with _errors_as(InstanceError, file):
        data = _read_bytes(name)
    is_json = suffix(name) == ".json" or _begins_json(data)
    return from_json(data, file=file) if is_json else parse(data, file=file)


def read_solution(
    path: PathLike, instance: Instance, *, instance_file: PathLike | None = None
) -> Solution:
    """Read a solution of `instance` from a .tour, .sol, .json or .jsonl file, also with .gz.

    From "-", standard input, it is recognised by what it says. If it holds many solutions in JSON
    Lines, `instance_file` helps to choose among them. Syntax and node numbers are checked here;
    whether it is valid, `drhg.check` tells.
    """
    with _errors_as(SolutionError, None):
        name = _name_of(path)
        instance_file = None if instance_file is None else _name_of(instance_file, "instance_file")
    problem.an_instance(instance)
    file = "standard input" if name == STANDARD else name
    with _errors_as(SolutionError, file):
        known = (".tour", ".sol", ".json", ".jsonl")
        kind = None if name == STANDARD else _suffix(name, *known)
        data = _read_bytes(name)
    kind = kind or _kind_of(data, instance)
    if kind == ".tour":
        return parse_tour(data, instance, file=file)
    if kind == ".sol":
        return parse_sol(data, instance, file=file)
    return solution_from_json(data, instance, file=file, instance_file=instance_file)


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

    The path may be "-" (standard output, as .tsp or .vrp), and end in .gz.
    """
    with _errors_as(InstanceError, None):
        name = _name_of(path)
    problem.an_instance(instance)
    with _errors_as(InstanceError, name):
        kind = _suffix(name, ".vrp" if instance.is_cvrp else ".tsp", ".json")
    _write(name, to_json(instance) if kind == ".json" else format_instance(instance))


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
    with _errors_as(SolutionError, None):
        name = _name_of(path)
        instance_file = None if instance_file is None else _name_of(instance_file, "instance_file")
    problem.an_instance(instance)
    problem.a_solution(solution)
    if cost is not None:
        problem.real_number("cost", cost)
    with _errors_as(SolutionError, "standard output" if name == STANDARD else name):
        kind = _suffix(name, ".sol" if instance.is_cvrp else ".tour", ".json")
        cost = problem.cost(instance, solution) if cost is None else cost
        if kind == ".json":
            text = json.dumps(solution_row(instance, solution, cost, file=instance_file)) + "\n"
        else:
            text = (format_sol if instance.is_cvrp else format_tour)(instance, solution, cost)
    _write(name, text)


def _name_of(path: Any, argument: str = "path") -> str:
    try:
        name = os.fspath(path)
    except TypeError:
        name = None
    if not (isinstance(name, str) and name):
        _fail(f"{argument} must be the name of a file, not {problem.shown(path)}")
    return name


def _suffix(name: str, *allowed: str) -> str:
    """The suffix of a file, or the first one allowed for standard output."""
    if name == STANDARD:
        return allowed[0]
    if suffix(name) not in allowed:
        _fail(f"the file's name must end in {' or '.join(allowed)} here (or that and .gz)")
    return suffix(name)


def _write(name: str, text: str) -> None:
    data = text.encode("utf-8", "replace")
    if name == STANDARD:
        with _errors_as(DrhgError, "standard output"):
            _write_out(data)
    else:
        packed = gzip.compress(data, mtime=0) if name.lower().endswith(".gz") else data
        atomic_write(name, packed)


def _write_out(data: bytes) -> None:
    try:
        if hasattr(sys.stdout, "buffer"):
            sys.stdout.flush()
            sys.stdout.buffer.write(data)
        else:  # somebody collects the text
            sys.stdout.write(data.decode())
        sys.stdout.flush()
    except (OSError, ValueError, AttributeError) as error:  # full, closed, or none at all
        _fail(f"cannot be written: {_system_reason(error)}")


def _read_bytes(name: str) -> bytes:
    try:
        if name == STANDARD:
            data = _standard_input()
            return _text_of(BytesIO(data), packed=data.startswith(b"\x1f\x8b"))
        # without O_NONBLOCK, opening a FIFO would wait for its writer
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        descriptor = os.open(name, flags)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                _fail("not a regular file")
            if status.st_size > LARGEST_FILE:
                _fail(f"larger than {LARGEST_FILE} bytes")
            with open(descriptor, "rb", closefd=False) as stream:
                return _text_of(stream, packed=name.lower().endswith(".gz"))
        finally:
            os.close(descriptor)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        _fail(f"cannot be read: {_system_reason(error)}")


def _standard_input() -> bytes:
    if sys.stdin is None:
        _fail("there is none")
    if not hasattr(sys.stdin, "buffer"):  # somebody gives a text
        return sys.stdin.read().encode("utf-8", "surrogatepass")
    data = sys.stdin.buffer.read(LARGEST_FILE + 1)
    if len(data) > LARGEST_FILE:
        _fail(f"larger than {LARGEST_FILE} bytes")
    return data


def _text_of(stream: BinaryIO, packed: bool) -> bytes:
    """All bytes of a stream, unpacked; what is too large or no text is never kept as a whole."""
    if not packed:
        _refuse_nul(stream)
        return stream.read()
    try:
        with gzip.GzipFile(fileobj=stream) as inside:
            _refuse_nul(inside)
            return inside.read()
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        _fail(f"not a whole .gz file: {error}")


def _refuse_nul(stream: BinaryIO | gzip.GzipFile) -> None:
    """Look for NULs piece by piece and rewind: a large file that is no text is not kept."""
    line, size = 1, 0
    while piece := stream.read(_PIECE):
        at = piece.find(b"\0")
        if at >= 0:
            _fail(_NO_TEXT, line + piece.count(b"\n", 0, at))
        line += piece.count(b"\n")
        size += len(piece)
        if size > LARGEST_FILE:
            _fail(f"larger than {LARGEST_FILE} bytes when unpacked")
    stream.seek(0)


def atomic_write(path: PathLike, content: str | bytes) -> None:
    """Replace a file as a whole or not at all: readers see the old content or the new."""
    data = content.encode("utf-8", "replace") if isinstance(content, str) else content
    with _errors_as(DrhgError, os.fspath(path)):
        try:
            _replace(os.path.realpath(path), data)  # through a symlink, as a plain write would
        except (OSError, ValueError) as error:
            _fail(f"cannot be written: {_system_reason(error)}")


def _replace(target: str, data: bytes) -> None:
    mode = os.stat(target).st_mode if os.path.exists(target) else None
    if mode is not None and not stat.S_ISREG(mode):
        _fail("cannot be written: not a regular file")
    part = os.path.join(os.path.dirname(target), f".drhg-{secrets.token_hex(8)}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    descriptor = os.open(part, flags, 0o666)  # less the umask, as for any new file
    try:
        with open(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(descriptor)
        if mode is not None:
            os.chmod(part, stat.S_IMODE(mode))
        os.replace(part, target)
    except BaseException:
        os.unlink(part)
        raise


def _system_reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)

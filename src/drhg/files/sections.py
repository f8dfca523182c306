"""TSPLIB text taken apart: keywords, sections, and the numbers in them, each with its line."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NoReturn

import numpy as np

from drhg.files.messages import NO_TEXT, fail, first, quoted
from drhg.problem import Floats, Ints

ROUTE_KEYWORDS = {
    "CAPACITY", "VEHICLES", "DISTANCE", "SERVICE_TIME", "VEHICLES_MAX_DURATION",
    "VEHICLES_FIXED_COST",
}  # fmt: skip
ROUTE_SECTIONS = {
    "DEMAND_SECTION", "DEPOT_SECTION", "TIME_WINDOW_SECTION", "SERVICE_TIME_SECTION",
    "RELEASE_TIME_SECTION", "CAPACITY_SECTION", "VEHICLES_DEPOT_SECTION",
    "VEHICLES_FIXED_COST_SECTION", "VEHICLES_MAX_DURATION_SECTION",
}  # fmt: skip
_KEYWORDS = ROUTE_KEYWORDS | {
    "NAME", "COMMENT", "TYPE", "DIMENSION", "EDGE_WEIGHT_TYPE", "EDGE_WEIGHT_FORMAT",
    "NODE_COORD_TYPE", "DISPLAY_DATA_TYPE",
}  # fmt: skip
SECTIONS = ROUTE_SECTIONS | {
    "NODE_COORD_SECTION", "DISPLAY_DATA_SECTION", "EDGE_WEIGHT_SECTION", "FIXED_EDGES_SECTION",
    "TOUR_SECTION",
}  # fmt: skip
_ENDED_BY_MINUS_1 = {"FIXED_EDGES_SECTION", "DEPOT_SECTION", "TOUR_SECTION"}

_KEY_LINE = re.compile(rb"([A-Za-z_][A-Za-z0-9_]*)[ \t]*(:?)[ \t]*(.*)")
_NEXT_KEY = re.compile(rb"\n[ \t]*[A-Za-z_]")
_TOKEN = re.compile(rb"[^ \t\n]+")
# nothing is tried twice (++ keeps what it took): refusing a long word takes one pass
NUMBER = re.compile(r"[+-]?([0-9]++(\.[0-9]*+)?|\.[0-9]++)([eE][+-]?[0-9]++)?")
WHOLE = re.compile(r"[+-]?[0-9]{1,18}")


@dataclass
class Document:
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


def scan(text: str | bytes, types: tuple[str, ...]) -> Document:
    """Split a TSPLIB text of one of the given TYPEs into keywords and sections."""
    data, doc = plain(text), Document()
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
            elif key in SECTIONS and not value:
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


def _add_section(doc: Document, key: str, line: int, data: bytes, start: int) -> int:
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
    doc: Document, key: str, value: str, line: int, types: tuple[str, ...], size: int
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
        n = header_whole(doc, key)
        if n < 1:
            fail("DIMENSION must be at least 1", line)
        if n > size:  # before anything of that size is allocated
            fail(f"DIMENSION {n} is more than a text of {size} bytes can hold", line)


def header_whole(doc: Document, key: str) -> int:
    if not WHOLE.fullmatch(doc.values[key]):
        fail(f"{key} {quoted(doc.values[key])} is not a whole number", doc.lines[key])
    return int(doc.values[key])


def header_number(doc: Document, key: str) -> float:
    text = doc.values[key]
    if not NUMBER.fullmatch(text) or not np.isfinite(float(text)):
        fail(f"{key} {quoted(text)} is not a number", doc.lines[key])
    return float(text)


# --- the numbers of a section ---------------------------------------------------------------------


def section_numbers(doc: Document, key: str) -> tuple[Floats, Ints]:
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


def table(doc: Document, key: str, width: int, vehicles: int | None = None) -> Floats:
    """A section with one line per node, 'id value ...', as values (n, width) in node order.

    Or with one line per vehicle, if there are so many.
    """
    what, count, source = "node", doc.n, "DIMENSION"
    if vehicles is not None:
        what, count, source = "vehicle", vehicles, "VEHICLES"
    values, starts = section_numbers(doc, key)

    def fail_at(token: int, reason: str) -> NoReturn:
        fail(f"{reason} in {key}", doc.line_at(key, int(starts[token])))

    if len(starts):
        is_break = np.frombuffer(doc.bodies[key], dtype=np.uint8) == ord("\n")
        last = np.logical_or.reduceat(is_break, starts)  # a line break before the next number?
        last[-1] = True
        ends = np.flatnonzero(last)
        lengths = np.diff(ends, prepend=-1)
        if (row := first(lengths != width + 1)) is not None:
            reason = f"expected a {what} and {width} number(s), found {lengths[row]} number(s)"
            fail_at(int(ends[row]), reason)
    rows = values.reshape(-1, width + 1)
    if vehicles is not None and len(rows) != vehicles:  # before anything of that size is allocated
        fail(f"{key} has {len(rows)} rows, VEHICLES is {vehicles}", doc.line_at(key))
    index = _indices(doc, key, rows[:, 0], starts[:: width + 1], vehicles)
    place = np.full(count, -1, dtype=np.int64)  # the first row of each node
    place[index[::-1]] = np.arange(len(index))[::-1]
    if (row := first(place[index] != np.arange(len(index)))) is not None:
        fail_at(row * (width + 1), f"{what} {index[row] + 1} occurs twice")
    if (node := first(place < 0)) is not None:
        fail(f"{what} {node + 1} of {count} ({source}) is missing in {key}", doc.line_at(key))
    return rows[place, 1:]


def _indices(
    doc: Document, key: str, ids: Floats, starts: Ints, vehicles: int | None = None
) -> Ints:
    """Numbers 1 .. n of nodes, or vehicles, as indices from 0; `starts` are their offsets."""
    what, most, source = "node", doc.n, "DIMENSION"
    if vehicles is not None:
        what, most, source = "vehicle", vehicles, "VEHICLES"
    if (i := first((ids < 1) | (ids > most) | (ids != np.floor(ids)))) is not None:
        reason = f"{what} {ids[i]:.15g} in {key} is not one of 1 .. {most} ({source})"
        fail(reason, doc.line_at(key, int(starts[i])))
    return ids.astype(np.int64) - 1


def node_list(doc: Document, key: str) -> tuple[Ints, bool]:
    """Indices of a list of nodes that -1 ends, and whether the -1 is there."""
    values, starts = section_numbers(doc, key)
    end = first(values == -1)
    count = len(values) if end is None else end
    if (extra := first(values[count:] != -1)) is not None:
        line = doc.line_at(key, int(starts[count + extra]))
        fail(f"a number after the -1 that ends {key}", line)
    return _indices(doc, key, values[:count], starts), end is not None

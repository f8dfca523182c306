"""Delimited text as a table: the delimiter, quotes, decimal commas, and where every cell stands."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from io import StringIO

from drhg.files.messages import NO_TEXT, fail, quoted

DELIMITERS = ",;\t|"
MOST_PROBLEMS = 20  # told at once; a longer list would hide them
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
_EXCEL_HINT = re.compile(r"sep=(.)\r?\n", re.IGNORECASE)


@dataclass(frozen=True)
class Table:
    """Rows of cells under a header; `lines` says where each row stands in its file."""

    header: tuple[str, ...]
    columns: tuple[tuple[str, ...], ...]  # one per heading, each with a cell per row
    lines: tuple[int, ...]
    delimiter: str | None  # None: the cells never were text
    counted: str = "line"  # what `lines` count
    headed: int = 0  # the line of the header, 0 if there is none
    left_out: tuple[tuple[int, str], ...] = ()  # rows that did not fit: where, and why

    def __len__(self) -> int:
        return len(self.lines)


@dataclass
class Problems:
    """Everything that is wrong with a table, to be told at once."""

    counted: str = "line"
    found: list[tuple[int, str]] = field(default_factory=list)  # line 0: the table as a whole

    def add(self, line: int, column: str, reason: str) -> None:
        self.found.append((line, f"column {quoted(column)}: {reason}"))

    def note(self, reason: str, line: int = 0) -> None:
        """Something that is about no one column."""
        self.found.append((line, reason))

    def raise_any(self) -> None:
        """Raise one error that lists the first twenty, in the order of the file."""
        if not self.found:
            return
        found = sorted(self.found, key=lambda problem: problem[0])
        if len(found) == 1 and self.counted == "line":
            fail(found[0][1], found[0][0] or None)
        told = [
            f"{self.counted} {line}, {reason}" if line else reason
            for line, reason in found[:MOST_PROBLEMS]
        ]
        if len(found) == 1:
            fail(told[0])
        more = len(found) - len(told)
        told += [f"and {more} more"] if more else []
        fail("\n".join([f"{len(found)} problems:", *told]))


def parse_table(data: bytes, *, forgiving: bool = False) -> Table:
    """A table from text with a header; blank rows are skipped, everything else must fit.

    A forgiving one leaves rows out that do not fit, and says which.
    """
    rows, lines, delimiter = parse_rows(data)
    if not rows:
        fail("the file is empty; its first row must name the columns", 1)
    header = tuple(cell.strip() for cell in rows[0])
    if any(is_number(cell) for cell in header):
        fail("the first row must name the columns, such as name,lat,lon,demand", lines[0])
    wrong = Problems()
    fits = []
    for at, (row, line) in enumerate(zip(rows, lines, strict=True)):
        if len(row) < len(header) or any(map(str.strip, row[len(header) :])):
            wrong.note(f"{len(row)} cells, but the header names {len(header)} columns", line)
        elif at:
            fits.append(at)
    if not forgiving:
        wrong.raise_any()
    columns = tuple(zip(*(rows[at][: len(header)] for at in fits), strict=True))
    placed = tuple(lines[at] for at in fits)
    return Table(
        header, columns or ((),) * len(header), placed, delimiter, headed=lines[0],
        left_out=tuple(wrong.found),
    )  # fmt: skip


def parse_rows(data: bytes) -> tuple[list[list[str]], list[int], str]:
    """The rows of delimited text that are not blank, the line where each begins, the delimiter."""
    text = decoded(data)
    hint = _EXCEL_HINT.match(text)
    skipped = 0
    if hint:
        text, skipped = text[hint.end() :], 1
    delimiter = hint[1] if hint else delimiter_of(text)
    rows, lines, line = [], [], 1 + skipped
    reader = csv.reader(StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        for row in reader:
            if any(map(str.strip, row)):
                rows.append(row)
                lines.append(line)
            line = reader.line_num + 1 + skipped
    except csv.Error as error:
        fail(f"not a table of cells: {error}", line)
    return rows, lines, delimiter


def decoded(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        fail(f"{NO_TEXT}; save it as CSV in UTF-8", line)


def delimiter_of(text: str) -> str:
    """What separates the cells of the header: the candidate that stands most often in it."""
    head = next((line for line in text.splitlines() if line.strip()), "")
    outside = "".join(head.split('"')[::2])
    return max(DELIMITERS, key=outside.count)  # of equally many the first, the comma


def is_number(cell: str) -> bool:
    return _NUMBER.fullmatch(cell.strip().replace(",", ".")) is not None


def has_decimal_commas(table: Table, wanted: Sequence[int]) -> bool:
    """Whether numbers in these columns are written 12,5: as most that have decimals are."""
    if table.delimiter in (",", None):
        return False
    cells = [cell for at in wanted for cell in table.columns[at]]
    return sum("," in cell for cell in cells) > sum("." in cell for cell in cells)


def numbers(
    table: Table, at: int, commas: bool, problems: Problems, blank: float | None = None
) -> list[float]:
    """A column as numbers; blank cells count as `blank`, or are problems if that is None."""
    found, name = [], table.header[at]
    for cell, line in zip(table.columns[at], table.lines, strict=True):
        text = cell.strip()
        plain = text.replace(",", ".") if commas else text
        value = float("nan")
        if _NUMBER.fullmatch(plain) and not (commas and "." in text):
            value = float(plain)
            if abs(value) == float("inf"):
                problems.add(line, name, f"{quoted(text)} is too large")
        elif not text:
            if blank is None:
                problems.add(line, name, "the cell is empty")
            else:
                value = blank
        else:
            problems.add(line, name, _no_number(text, table, commas))
        found.append(value)
    return found


def _no_number(text: str, table: Table, commas: bool) -> str:
    if commas and "." in text:
        return f"{quoted(text)} is no number: this file has decimal commas"
    if not commas and _NUMBER.fullmatch(text.replace(",", ".")):
        why = "commas separate its cells" if table.delimiter == "," else "it has decimal points"
        return f"{quoted(text)} is no number in this file ({why}); write {text.replace(',', '.')}"
    return f"{quoted(text)} is no number"

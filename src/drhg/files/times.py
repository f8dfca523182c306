"""Times in tables of stops: numbers or clock times, when a stop may be served and for how long."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from drhg.files.messages import quoted
from drhg.files.tables import Problems, Table, has_decimal_commas, is_number
from drhg.problem import Floats

SYNONYMS: dict[str, tuple[str, ...]] = {
    "service": ("service", "servicetime", "serviceduration", "servicezeit", "standzeit"),
    "earliest": (
        "earliest", "ready", "readytime", "twstart", "windowstart", "opens", "open", "from",
        "frühestens", "von", "ab",
    ),
    "latest": (
        "latest", "due", "duetime", "duedate", "twend", "windowend", "closes", "close", "until",
        "spätestens", "bis",
    ),
    "release": ("release", "releasetime", "available", "verfügbar"),
}  # fmt: skip
_CLOCK = re.compile(r"([0-9]{1,3}):([0-5][0-9])(?::([0-5][0-9]))?")
_UNIT = re.compile(r"[(\[]\s*(\w+)\s*[)\]]")
_SECONDS = {
    **dict.fromkeys(("s", "sec", "seconds", "sekunden"), 1.0),
    **dict.fromkeys(("min", "mins", "minutes", "minuten"), 60.0),
    **dict.fromkeys(("h", "hours", "stunden"), 3600.0),
}


@dataclass(frozen=True)
class Times:
    """What the columns of times say; nothing where there are none."""

    service: list[float] | None = None
    windows: Floats | None = None  # (n, 2), infinite where a cell is empty
    release: list[float] | None = None

    @property
    def pressing(self) -> bool:
        """Whether it matters when a stop is reached."""
        return self.windows is not None or self.release is not None


def times_of(
    table: Table, at: Mapping[str, int], homes: Sequence[int], problems: Problems
) -> Times:
    """The times in the columns of a table; `homes` are the rows of the depots."""
    commas = has_decimal_commas(table, [i for meaning, i in at.items() if meaning != "name"])
    found: dict[str, list[float]] = {}
    blanks = {"service": 0.0, "earliest": 0.0, "latest": np.inf, "release": 0.0}
    for meaning, blank in blanks.items():
        if meaning in at and any(map(str.strip, table.columns[at[meaning]])):
            found[meaning] = times_in(table, at[meaning], commas, blank, problems)
    for meaning in ("service", "release"):
        for home in homes if meaning in found else ():
            found[meaning][home] = 0.0  # the depot serves nobody and waits for nothing
    windows = None
    if found.keys() & {"earliest", "latest"}:
        first = found.get("earliest", [0.0] * len(table))
        last = found.get("latest", [np.inf] * len(table))
        windows = np.array([first, last]).T
        heading = table.header[at["latest" if "latest" in found else "earliest"]]
        for i in np.flatnonzero(windows[:, 0] > windows[:, 1]).tolist():
            problems.add(
                table.lines[i], heading,
                f"it closes at {windows[i, 1]:g}, before it opens at {windows[i, 0]:g}",
            )  # fmt: skip
    return Times(found.get("service"), windows, found.get("release"))


def columns_of_times(services: Any, windows: Any, release: Any) -> dict[str, list[str]]:
    """The columns that `times_of` reads, with as many digits as the numbers have."""
    table: dict[str, list[str]] = {}
    if services is not None and services.any():
        table["service"] = [_short(value) for value in services.tolist()]
    if windows is not None:
        table["earliest"] = [_short(value) for value in windows[:, 0].tolist()]
        last = windows[:, 1].tolist()
        table["latest"] = [_short(value) if value < np.inf else "" for value in last]
    if release is not None:
        table["release"] = [_short(value) for value in release.tolist()]
    return table


def seconds_of(text: str, factor: float = 1.0) -> float | None:
    """A time like 8:30 in seconds, or a number times a factor; None if it is neither.

    >>> seconds_of("8:30"), seconds_of("7.5", 60), seconds_of("soon")
    (30600.0, 450.0, None)
    """
    on_clock = _CLOCK.fullmatch(text.strip())
    if on_clock:
        hours, minutes, seconds = (int(part or 0) for part in on_clock.groups())
        return 3600.0 * hours + 60.0 * minutes + seconds
    return float(text) * factor if is_number(text) and "," not in text else None


def clock(seconds: float) -> str:
    """Seconds as h:mm:ss, rounded.

    >>> clock(30599.7)
    '8:30:00'
    """
    whole = round(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"


def _short(value: float) -> str:
    return repr(value).removesuffix(".0")


def times_in(table: Table, at: int, commas: bool, blank: float, problems: Problems) -> list[float]:
    """A column as times; a blank cell is `blank`."""
    heading = table.header[at]
    unit = _UNIT.search(heading.casefold())
    factor = _SECONDS.get(unit[1], 1.0) if unit else 1.0
    found = []
    for cell, line in zip(table.columns[at], table.lines, strict=True):
        text = cell.strip()
        plain = text.replace(",", ".") if commas else text
        value = seconds_of(plain, factor) if text else blank
        if value is None:
            problems.add(line, heading, f"{quoted(text)} is neither a number nor a time like 8:30")
            value = blank
        elif value < 0:
            problems.add(line, heading, f"{value:g} is negative")
        elif text and value == np.inf:
            problems.add(line, heading, f"{quoted(text)} is too large")
        found.append(value)
    return found

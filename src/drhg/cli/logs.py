"""Reading back what `drhg solve --trace` and `drhg train` wrote."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING

from drhg.errors import DrhgError

if TYPE_CHECKING:
    from drhg.session.result import TracePoint


def read_trace(path: Path) -> dict[str, list[TracePoint]]:
    """The runs in a file that `drhg solve --trace` wrote, by instance or else by file name."""
    from drhg.session.result import TracePoint

    runs: dict[str, list[TracePoint]] = {}
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line)
            point = TracePoint(float(row["seconds"]), int(row["iterations"]), row["cost"] + 0)
            if not math.isfinite(point.seconds + point.cost):
                raise ValueError
        except (ValueError, TypeError, KeyError):
            raise DrhgError("not a line of a trace", file=str(path), line=number) from None
        runs.setdefault(str(row.get("name", path.stem)), []).append(point)
    if not runs:
        raise DrhgError("the trace is empty", file=str(path))
    return runs


def read_log(path: Path) -> list[dict[str, float]]:
    """The lines that `drhg train` wrote to a log."""
    rows: list[dict[str, float]] = []
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    for number, line in enumerate(lines, start=1):
        try:
            row = {str(key): float(value) for key, value in json.loads(line).items()}
            if not {"step", "decisions", "loss"} <= set(row):
                raise ValueError
        except (ValueError, TypeError, AttributeError):
            raise DrhgError("not a line of a training log", file=str(path), line=number) from None
        rows.append(row)
    if not rows:
        raise DrhgError("the log is empty", file=str(path))
    return rows

"""Results that others published. They stand beside ours and were not measured here."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path

FILE = Path(__file__).parent / "published.csv"


@cache
def published() -> tuple[dict[str, str], ...]:
    """Rows with table, set, solver, objective, gap, seconds and source; empty where not given."""
    with open(FILE, newline="", encoding="utf-8") as file:
        return tuple(csv.DictReader(file))

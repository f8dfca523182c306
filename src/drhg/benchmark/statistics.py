"""Statistics of many rows: means, spreads, the rank-sum test."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from drhg.benchmark.references import BEST_RIVAL, HERE, Reference
from drhg.benchmark.rivals import RIVALS
from drhg.benchmark.rows import LATE, OK, Row

START = "start"  # the limit of a first solution: none


def mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else math.nan


def spread(values: Sequence[float]) -> float:
    """The sample standard deviation."""
    if len(values) < 2:
        return math.nan
    middle = mean(values)
    return math.sqrt(math.fsum((v - middle) ** 2 for v in values) / (len(values) - 1))


def rank_sum(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Two-sided p-value of the rank-sum test (Wilcoxon, Mann and Whitney), as in the paper.

    The chance of gaps so far apart if both solvers were the same; nan for fewer than three.
    """
    if min(len(ours), len(theirs)) < 3:
        return math.nan
    if set(ours) == set(theirs) and len(set(ours)) == 1:
        return 1.0
    from scipy.stats import mannwhitneyu

    return float(mannwhitneyu(ours, theirs, alternative="two-sided").pvalue)


@dataclass
class Line:
    """The rows of one solver under one limit on one set."""

    set: str
    solver: str
    limit: str
    rows: list[Row] = field(default_factory=list)

    @property
    def ours(self) -> bool:
        return self.solver.split()[0] == "drhg"

    @property
    def valid(self) -> list[Row]:
        return [row for row in self.rows if row["status"] in (OK, LATE)]

    @property
    def marked(self) -> list[Row]:
        return [row for row in self.rows if row["status"] != OK]

    def values(self, name: str) -> list[float]:
        return [row[name] for row in self.valid if row.get(name) is not None]

    def non_optimal(self, tolerance: float) -> int:
        """How many rows are more than `tolerance` percent above their reference."""
        return sum(gap > tolerance for gap in self.values("gap"))

    @property
    def kinds(self) -> list[str]:
        return sorted({row["reference_kind"] for row in self.valid if row["reference_kind"]})


def paired(ours: Line, theirs: Line, name: str = "gap") -> tuple[list[float], list[float]]:
    """The values of both lines on the instances that both solved."""
    a = {row["instance"]: row[name] for row in ours.valid if row.get(name) is not None}
    b = {row["instance"]: row[name] for row in theirs.valid if row.get(name) is not None}
    common = [instance for instance in a if instance in b]
    return [a[i] for i in common], [b[i] for i in common]


def verdict(ours: Sequence[float], theirs: Sequence[float]) -> str:
    """+ if our mean gap is lower, - if it is higher, = if neither."""
    if not ours:
        return ""
    difference = mean(ours) - mean(theirs)
    return "=" if abs(difference) < 1e-6 else "+" if difference < 0 else "-"


def with_references(rows: Iterable[Row]) -> list[Row]:
    """Fill in references and gaps; no cost of drhg is measured against costs of drhg alone.

    A long run of a rival is no proof: where any row is better, that row is the reference of all.
    Without a long run the best row of a rival is, and without one of those there is no gap.
    """
    rows = [dict(row) for row in rows]
    published = {
        row["instance"]: Reference(row["reference"], row["reference_kind"])
        for row in rows
        if row["reference_kind"] not in (HERE, None)
    }
    measured = {row["instance"] for row in rows if row["reference_kind"] == HERE}
    costs: dict[str, list[float]] = {}
    for row in rows:
        if row["instance"] in measured or row["solver"] in RIVALS:
            found = [v for v in (row["cost"], row["reference"]) if v is not None]
            costs.setdefault(row["instance"], []).extend(found)
    for row in rows:
        name = row["instance"]
        known = published.get(name)
        if known is None and costs.get(name):
            known = Reference(min(costs[name]), HERE if name in measured else BEST_RIVAL)
        row["reference"] = None if known is None else known.cost
        row["reference_kind"] = None if known is None else known.kind
        row["gap"] = None if known is None or row["cost"] is None else known.gap(row["cost"])
    return rows


def lines_of(rows: Iterable[Row], total: str | None = None) -> list[Line]:
    """Rows grouped by set, solver and limit, in the order they came; `total` adds a set of all."""
    found: dict[tuple[str, str, str], Line] = {}
    for row in rows:
        for name in (row["set"], *([] if total is None else [total])):
            key = (name, row["solver"], row["limit"])
            found.setdefault(key, Line(*key)).rows.append(row)
    return list(found.values())


def counterpart(line: Line, lines: Sequence[Line]) -> Line | None:
    """The line of drhg to compare this one with: same set and limit (any limit for a start)."""
    if line.ours:
        return None
    here = [other for other in lines if other.ours and other.set == line.set]
    same = [other for other in here if line.limit in (other.limit, START)]
    return same[0] if same else None

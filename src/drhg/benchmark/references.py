"""What a cost is compared with: a reference, and what kind of reference it is.

Library instances have proven or best known costs. Uniform tours of up to 5,000 nodes, and plans
without a published cost, are compared with the best of long runs of other solvers, which are kept
in `references.json`; larger tours with the expected length of an optimal tour. Where none of these
exists, the best row of a rival is the reference, never a row of ours.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from drhg.benchmark.rivals import RIVALS, Outcome, run_guarded, unrounded
from drhg.benchmark.rows import Row
from drhg.errors import DrhgError
from drhg.parallel import spread
from drhg.problem import Instance, check

PACKAGED = Path(__file__).parent / "references.json"
LARGEST_MEASURED = 5_000  # nodes; beyond, long runs are too long
# linhp318.tsp, which calls itself lin318: 41,345 is the shortest path between the ends of its
# fixed edge, and that edge adds 3,869
WITH_FIXED_EDGE = {"lin318": 45_214.0}

OPTIMAL, BEST_KNOWN, HERE, LKH3, EXPECTED, BEST_RIVAL = (
    "optimal",
    "best known",
    "best known here",
    "LKH3",
    "expected",
    "best rival",
)


@dataclass(frozen=True)
class Reference:
    cost: float
    kind: str  # one of the six above

    def gap(self, cost: float) -> float:
        """In percent."""
        return round(100.0 * (cost / self.cost - 1.0), 9)  # sums differ in their last digits


def expected_optimum(n: int, area: float = 1.0) -> float:
    """Mean length of an optimal tour of n uniform points in a square.

    >>> round(expected_optimum(10_000), 2)  # LKH's mean on the paper's set is 71.78
    71.81
    """
    return 0.7124 * math.sqrt(n * area) * (1 + 0.8 / math.sqrt(n))


class References:
    """All known references: in the package, in a data folder, in files of earlier runs."""

    def __init__(self, data: Path | None = None, *more: Path) -> None:
        self._data = data
        self._cached: dict[str, dict[str, Any]] = {}
        for path in (PACKAGED, *more):
            for name, entry in _read_cache(path).items():
                known = self._cached.get(name)
                if known is None or entry["cost"] < known["cost"]:
                    self._cached[name] = entry

    @cached_property
    def _library(self) -> dict[str, Reference]:
        found = {}
        for folder, kind in (("tsplib", OPTIMAL), ("atsp", OPTIMAL), ("cvrplib", BEST_KNOWN)):
            for row in _table(self._data, f"{folder}/solutions.csv"):
                found[row["name"]] = Reference(float(row["best_known"]), kind)
        if self._data is not None:
            for path in sorted((self._data / "vrptw").glob("*.sol")):
                *_, best = path.read_text(encoding="utf-8").split()  # the line of the cost is last
                found[path.stem] = Reference(float(best), BEST_KNOWN)
        for row in _table(self._data, "cvrp_lkh_costs.csv"):
            name = f"paper-cvrp{row['n']}-{row['index']}"
            found[name] = Reference(float(row["lkh3_cost"]), LKH3)
        return found

    def of(self, instance: Instance) -> Reference | None:
        if instance.fixed_edges:
            best = WITH_FIXED_EDGE.get(instance.name)
            return None if best is None else Reference(best, OPTIMAL)
        if instance.name in self._library:
            return self._library[instance.name]
        if instance.name in self._cached:
            return Reference(self._cached[instance.name]["cost"], HERE)
        uniform = instance.name.startswith(("our-tsp", "paper-tsp", "uniform-tsp"))
        if uniform and instance.n > LARGEST_MEASURED:
            return Reference(expected_optimum(instance.n), EXPECTED)
        return None

    def completed(self, row: Row) -> Row:
        """The row; one without a reference gets that of a long run made since."""
        if row["reference"] is not None or row["instance"] not in self._cached:
            return row
        known = Reference(self._cached[row["instance"]]["cost"], HERE)
        gap = None if row["cost"] is None else known.gap(row["cost"])
        return row | {"reference": known.cost, "reference_kind": known.kind, "gap": gap}

    def unrounded(self, instance: Instance) -> Reference | None:
        """The paper's: tours against the whole optimum, plans against the unrounded best known.

        None for metrics that have no unrounded form, and where the published plan is faulty.
        """
        known = self.of(instance)
        if known is None or instance.metric.name not in ("EUC_2D", "CEIL_2D"):
            return None
        if not instance.is_cvrp:
            return known
        from drhg.files.registry import read_solution

        folder = instance.name.split("-")[0]
        path = None if self._data is None else self._data / "cvrplib" / folder
        if path is None or not (path / f"{instance.name}.sol").exists():
            return None
        try:
            best = read_solution(path / f"{instance.name}.sol", instance)
            if check(instance, best):
                return None
        except DrhgError:
            return None
        cost = unrounded(instance, best)
        return None if cost is None else Reference(cost, BEST_KNOWN)


def _table(data: Path | None, name: str) -> Iterable[dict[str, str]]:
    if data is None or not (data / name).exists():
        return []
    with open(data / name, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _read_cache(path: Path) -> dict[str, dict[str, Any]]:
    if not path.exists():
        return {}
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
        return {name: {**e, "cost": float(e["cost"])} for name, e in entries.items()}
    except OSError as error:
        raise DrhgError(f"cannot be read: {error.strerror}", file=str(path)) from None
    except (ValueError, TypeError, KeyError, AttributeError):
        raise DrhgError("not a file of references", file=str(path)) from None


# --- long runs -----------------------------------------------------------------------------------


def long_seconds(instance: Instance) -> float:
    """How long a reference run lasts: 1 s for TSP100, 200 s for TSP5000, 20 s for CVRP100."""
    if instance.is_cvrp:
        return max(20.0, 0.2 * instance.n)
    return float(max(1.0, (instance.n / 100) ** 1.35))


def measure(
    instances: list[Instance],
    path: Path,
    *,
    seconds: float | None = None,
    workers: int = 1,
    say: Callable[[str], None] = lambda text: None,
) -> int:
    """Run fast_tsp or hygese for long, keep every better cost; returns the number of failures."""
    from drhg.files.atomic import atomic_write

    kept = _read_cache(path)
    failed = 0
    tasks = [(i, long_seconds(i) if seconds is None else seconds) for i in instances]
    for done in spread(_long_run, tasks, workers=workers):
        instance, spent = tasks[done.index]
        outcome = done.value
        if done.error is not None or outcome.cost is None:
            failed += 1
            say(f"{instance.name}: {done.error or outcome.status + ': ' + outcome.error}")
            continue
        by = _labeller(instance)
        say(f"{instance.name}: {outcome.cost:.6g} by {by} in {outcome.seconds:.1f} s")
        if instance.name not in kept or outcome.cost < kept[instance.name]["cost"]:
            kept[instance.name] = {"cost": outcome.cost, "by": by, "seconds": spent}
            ordered = dict(sorted(kept.items(), key=lambda item: _natural(item[0])))
            lines = [f"{json.dumps(n)}: {json.dumps(e)}" for n, e in ordered.items()]
            atomic_write(path, ("{\n" + ",\n".join(lines) + "\n}\n").encode())
    return failed


def _natural(name: str) -> tuple[str, int]:
    head, _, tail = name.rpartition("-")
    return (head, int(tail)) if tail.isdigit() else (name, 0)


def _labeller(instance: Instance) -> str:
    return "hygese" if instance.is_cvrp else "fast_tsp"


def _long_run(task: tuple[Instance, float]) -> Outcome:
    instance, seconds = task
    rival = RIVALS[_labeller(instance)]
    if not rival.installed:
        return Outcome("skipped", error=f"{rival.package} is not installed")
    return run_guarded(rival, instance, seconds, wait=20 * seconds)

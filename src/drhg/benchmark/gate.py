"""The gate: a small fixed set, fixed iterations, and a baseline not to fall behind.

Only iterations count, so a slow or busy machine gives the same verdict. References are the best of
long runs; they are kept with the baseline in `benchmarks/gate.json`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from drhg.benchmark.jobs import Job, Solver, run_job
from drhg.benchmark.references import HERE, Reference
from drhg.benchmark.rivals import RIVALS, run_guarded
from drhg.benchmark.rows import OK, Row
from drhg.benchmark.statistics import mean
from drhg.errors import DrhgError
from drhg.problem import Instance

BASELINE = Path("benchmarks/gate.json")


@dataclass(frozen=True)
class Case:
    make: Callable[[], Instance]
    iterations: int
    method: str = "auto"


def cases() -> list[Case]:
    """Every way of searching, on both problems; one thread, since threads change the result."""
    from drhg.problem import generate as g

    return [
        *(Case(partial(g.uniform_tsp, 200, s), 3_000) for s in range(6)),
        *(Case(partial(g.clustered_tsp, 500, s), 10_000) for s in range(2)),
        *(Case(partial(g.uniform_cvrp, 50, s), 20_000) for s in range(6)),
        *(Case(partial(g.x_cvrp, 100, s), 30_000) for s in range(2)),
        *(Case(partial(g.uniform_tsp, 100, s), 300, "local") for s in range(4)),
        *(Case(partial(g.uniform_cvrp, 50, s), 300, "local") for s in range(2)),
        *(Case(partial(g.uniform_tsp, 100, s), 100, "neural") for s in range(2)),
    ]


def name_of(case: Case, instance: Instance) -> str:
    return instance.name if case.method == "auto" else f"{instance.name} {case.method}"


def measure(known: dict[str, float]) -> Iterator[tuple[str, Row]]:
    """Each case's name and row; `known` are the references."""
    for case in cases():
        instance = case.make()
        name = name_of(case, instance)
        solver = Solver("drhg", max_iters=case.iterations, method=case.method)
        best = known.get(instance.name)
        reference = None if best is None else Reference(best, HERE)
        yield name, run_job(Job("gate", "gate", instance, solver, reference))


def read_baseline(path: Path = BASELINE) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        baseline: dict[str, Any] = {"mean_gap": float(found["mean_gap"])}
        for part in ("gaps", "references"):
            baseline[part] = {str(name): float(value) for name, value in found[part].items()}
        return baseline
    except OSError as error:
        reason = f"no baseline of the gate: {error.strerror}"
    except KeyError as error:
        reason = f"no baseline of the gate: it has no {error.args[0]}"
    except (ValueError, TypeError, AttributeError):
        reason = "no baseline of the gate: `drhg bench gate --update` writes one"
    raise DrhgError(reason, file=str(path))


def gaps_of(rows: dict[str, Row]) -> dict[str, float]:
    return {name: row["gap"] for name, row in rows.items() if row["gap"] is not None}


def verdict(rows: dict[str, Row], baseline: dict[str, Any], allowed: float = 0.1) -> list[str]:
    """Why the gate stays shut; empty if it opens. `allowed` points of mean gap are no change."""
    wrong = [
        f"{name}: {row['status']}: {row.get('error', '')}"
        for name, row in rows.items()
        if row["status"] != OK
    ]
    gaps = gaps_of(rows)
    unknown = set(baseline["gaps"]) ^ set(gaps)
    if unknown and not wrong:
        wrong.append(f"other cases than the baseline's: {', '.join(sorted(unknown)[:3])}")
    average = mean(list(gaps.values()))
    if not average <= baseline["mean_gap"] + allowed:
        worst = sorted(gaps, key=lambda name: baseline["gaps"].get(name, 0.0) - gaps[name])[:3]
        shown = ", ".join(f"{n} {baseline['gaps'].get(n, 0):.2f} -> {gaps[n]:.2f}" for n in worst)
        wrong.append(
            f"mean gap {average:.3f} %, more than {allowed} points worse than the baseline's "
            f"{baseline['mean_gap']:.3f} % (most: {shown})"
        )
    return wrong


def references(known: dict[str, float], seconds: float) -> Iterator[tuple[str, float]]:
    """Long runs of other solvers on the cases that have no reference yet."""
    for case in cases():
        instance = case.make()
        if instance.name not in known:
            rival = RIVALS["hygese" if instance.is_cvrp else "fast_tsp"]
            outcome = run_guarded(rival, instance, seconds, threads=2, wait=20 * seconds)
            if outcome.cost is None:
                raise DrhgError(f"{instance.name}: {rival.name}: {outcome.status} {outcome.error}")
            known[instance.name] = float(outcome.cost)
            yield instance.name, known[instance.name]


def new_baseline(known: dict[str, float], rows: dict[str, Row]) -> str:
    """The text of `gate.json` for these rows: what they found is a reference, too, if better."""
    best: dict[str, float] = {}
    for row in rows.values():
        name = row["instance"]
        best[name] = min(best.get(name, known[name]), float(row["cost"]))
    gaps = {n: Reference(best[row["instance"]], HERE).gap(row["cost"]) for n, row in rows.items()}
    kept = {"mean_gap": mean(list(gaps.values())), "gaps": gaps, "references": best}
    return json.dumps(kept, indent=1) + "\n"

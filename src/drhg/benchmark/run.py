"""Running a suite: every job that has no row yet, on this machine or on many."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from drhg.benchmark.jobs import Job, Solver, row_of, run_job
from drhg.benchmark.references import References
from drhg.benchmark.rivals import Outcome
from drhg.benchmark.rows import FAILED, Row, RowFile, key_of, provenance, read_rows
from drhg.benchmark.suites import Choice, Suite
from drhg.errors import DrhgError
from drhg.parallel import spread

Say = Callable[[str], None]


@dataclass(frozen=True)
class Ran:
    """What a run did."""

    path: Path
    new: int
    before: int  # rows that were there already
    failed: int  # of the new ones


def known_references(choice: Choice, folder: Path) -> References:
    data = choice.data or (Path(os.environ["DRHG_DATA"]) if os.environ.get("DRHG_DATA") else None)
    return References(data, folder / "references.json")


def run_suite(
    suite: Suite,
    choice: Choice,
    folder: Path,
    *,
    workers: int = 1,
    ray: str | None = None,
    fresh: bool = False,
    say: Say = lambda text: None,
) -> Ran:
    """Run the jobs of a suite that have no row yet; every row is on disk before the next begins."""
    path = folder / f"{suite.name}.jsonl"
    jobs = suite.jobs(choice, known_references(choice, folder))
    rows = read_rows([path]) if path.exists() else []
    have = {key_of(row): row for row in rows}
    todo = [job for job in jobs if fresh or job.key not in have]
    kept = [have[job.key] for job in jobs if job.key in have and not fresh]
    _announce(suite, jobs, todo, kept, max(1, workers), say)
    failed = 0
    with RowFile(path) as file, closing(
        spread(run_job, todo, workers=workers, ray=ray, cores=choice.threads)
    ) as ends:  # fmt: skip
        for count, done in enumerate(ends, start=1):
            job = todo[done.index]
            row = done.value
            if done.error is not None:
                row = row_of(job, Outcome("crashed", error=str(done.error)))
            file.add(row)
            failed += row["status"] in FAILED
            say(f"{count}/{len(todo)} {described(row)}")
    return Ran(path, len(todo), len(kept), failed)


def _announce(
    suite: Suite, jobs: list[Job], todo: list[Job], kept: list[Row], workers: int, say: Say
) -> None:
    seconds = sum(job.solver.time_limit or 0.0 for job in todo) / workers
    about = f", at least {seconds / 60:.0f} min" if seconds >= 60 else ""
    say(f"{suite.name}: {len(todo)} of {len(jobs)} rows to make{about}")
    others = {str(row.get("commit")) for row in kept} - {str(provenance()["commit"])}
    if others:
        say(f"{suite.name}: kept rows of other commits ({', '.join(sorted(others))}); "
            "--fresh makes them again")  # fmt: skip
    bare = {job.instance.name for job in todo if job.reference is None}
    if bare:
        say(f"{suite.name}: {len(bare)} instances have no reference: their gaps stay blank, "
            f"unless rivals run, too; `drhg bench references {suite.name}` finds references by "
            "long runs of rivals")  # fmt: skip


def described(row: Row) -> str:
    """A row as one line of text."""
    head = f"{row['set']} {row['instance']} {row['solver']}"
    if row["cost"] is None:
        return f"{head}: {row['status']}: {row.get('error', '')}"
    gap = "" if row["gap"] is None else f", gap {round(row['gap'], 3) + 0.0:.3f} %"
    mark = "" if row["status"] == "ok" else f" ({row['status']})"
    return f"{head}: {row['cost']:.7g}{gap}, {row['seconds']:.2f} s{mark}"


def repeat(row: Row, suite: Suite, choice: Choice) -> Row:
    """Run a row again exactly as it was; only rows with a number of iterations can be repeated."""
    if row["max_iters"] is None and row["config"].get("time_limit") is not None:
        raise DrhgError(f"{row['instance']} ran for a time, which no second run repeats exactly")
    for part in suite.parts:
        if part.name == row["set"]:
            instance = part.find(row["instance"], choice)
            if instance is not None:
                return run_job(Job(suite.name, part.name, instance, _solver(row)))
    raise DrhgError(f"{suite.name} has no instance {row['instance']} any more")


def _solver(row: Row) -> Solver:
    """The solver of a row."""
    config = dict(row["config"])
    weights = config.pop("weights", None)
    changes = tuple(config.pop("changes", {}).items())
    solver = Solver(
        config.pop("solver"), **config, changes=changes, model=row.get("model"), limit=row["limit"]
    )
    if solver.config.get("weights") != weights:
        raise DrhgError(f"{row['instance']} ran with other weights ({weights})")
    return solver

"""A job is one instance and one solver; running it makes a row."""

from __future__ import annotations

import hashlib
import resource
import time
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from drhg.benchmark.references import OPTIMAL, Reference
from drhg.benchmark.rivals import RIVALS, Outcome, allowed, run_guarded, unrounded
from drhg.benchmark.rows import LATE, OK, Row, digest, now, provenance
from drhg.errors import DrhgError
from drhg.problem import Instance, check, cost

if TYPE_CHECKING:
    from drhg.session.configure import Configured

STARTS = {"random insertion": "insertion", "sweep": "sweep"}  # the paper's names and ours
NETWORK = ("neural", "paper", "hybrid")  # the methods that use one


@dataclass(frozen=True)
class Solver:
    """A solver with everything it is told; equal settings give equal configuration hashes."""

    name: str  # drhg, a start of the paper, or a rival
    time_limit: float | None = None
    max_iters: int | None = None
    seed: int = 0
    threads: int = 1
    method: str = "auto"  # of drhg
    changes: tuple[tuple[str, str], ...] = ()  # parameters of the method, as given to --set
    model: str | None = None  # weights, by name or file; None leaves the choice to the method
    limit: str = ""  # the limit in words, for tables

    @property
    def label(self) -> str:
        """What tables call it."""
        if self.name != "drhg":
            return self.name
        parts = [] if self.method == "auto" else [self.method]
        parts += [] if self.model is None else [Path(self.model).stem]
        for name, value in self.changes:
            parts.append(f"{name.rpartition('.')[2]} {value.replace(',', '-')}")
        return " ".join(["drhg", *parts])

    @property
    def config(self) -> Row:
        """What decides the result, as JSON. Our options leave the rows of rivals as they are."""
        found: Row = {"solver": self.name, "seed": self.seed}
        if self.name in STARTS:
            return found
        found |= {"time_limit": self.time_limit, "threads": self.threads}
        if self.name in RIVALS:
            return found
        found |= {"max_iters": self.max_iters, "method": self.method}
        return found | {"changes": dict(self.changes), "weights": weights_hash(self)}


@dataclass(frozen=True)
class Job:
    suite: str
    set: str  # the column or line of the paper's table
    instance: Instance
    solver: Solver
    reference: Reference | None = None
    unrounded: Reference | None = None  # where the paper measured without rounding

    @property
    def key(self) -> tuple[str, str, str]:
        return self.suite, self.instance.name, digest(self.solver.config)


@cache
def _file_hash(path: str) -> str:
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError as error:
        raise DrhgError(f"cannot read weights: {error.strerror}", file=path) from None


def weights_hash(solver: Solver) -> str | None:
    """What identifies the weights that the solver may use; None if it uses no network."""
    if solver.name != "drhg" or solver.method not in NETWORK:
        return None
    from drhg.network.weights import manifest

    shipped = {name: str(entry["sha256"]) for name, entry in manifest().items()}
    if solver.model is None:
        return digest(shipped)
    return (shipped.get(solver.model) or _file_hash(solver.model))[:12]


def run_job(job: Job) -> Row:
    """Run a job, check its answer and describe both in a row."""
    try:
        outcome = _outcome(job.instance, job.solver, job.reference)
    except DrhgError as error:
        outcome = Outcome("skipped", error=str(error))
    except Exception as error:
        outcome = Outcome("crashed", error=f"{type(error).__name__}: {error}"[:300])
    return row_of(job, outcome)


def row_of(job: Job, outcome: Outcome) -> Row:
    instance, solver, found = job.instance, job.solver, outcome.solution
    row: Row = {
        "suite": job.suite, "set": job.set, "instance": instance.name, "n": instance.n,
        "solver": solver.label, "limit": solver.limit, "status": outcome.status,
        "cost": outcome.cost, "gap": None, "reference": None, "reference_kind": None,
        "seconds": None if outcome.seconds is None else round(outcome.seconds, 4),
        "iterations": outcome.iterations, "seed": solver.seed, "threads": solver.threads,
        "time_limit": solver.time_limit, "max_iters": solver.max_iters,
        "config": solver.config, "config_hash": digest(solver.config), "model": solver.model,
        "weights_hash": weights_hash(solver), "when": now(), **provenance(),
    }  # fmt: skip
    if instance.is_cvrp and found is not None:
        row["routes"] = len(found.routes)
    if solver.name == "drhg":  # rivals have processes of their own
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        row["peak_memory_mb"] = round(peak / 1024)  # of this process so far
    if job.reference is not None:
        row |= {"reference": job.reference.cost, "reference_kind": job.reference.kind}
        if outcome.cost is not None:
            row["gap"] = job.reference.gap(outcome.cost)
    if found is not None and (length := unrounded(instance, found)) is not None:
        row["unrounded"] = length
        if job.unrounded is not None:
            row["unrounded_gap"] = job.unrounded.gap(length)
    if outcome.error:
        row["error"] = outcome.error
    return row


def _outcome(instance: Instance, solver: Solver, known: Reference | None = None) -> Outcome:
    if solver.name in RIVALS:
        assert solver.time_limit is not None
        rival = RIVALS[solver.name]
        return run_guarded(rival, instance, solver.time_limit, solver.seed, solver.threads)
    if solver.name in STARTS:
        return _start(instance, solver)
    _warm_up(instance.is_cvrp, replace(solver, time_limit=None, max_iters=5, seed=0, limit=""))
    proven = known is not None and known.kind == OPTIMAL
    return _solve(instance, solver, known.cost if known is not None and proven else None)


def _start(instance: Instance, solver: Solver) -> Outcome:
    from drhg.construct.starts import construct

    name = STARTS[solver.name]
    construct(instance, name, solver.seed)  # compiled now, timed below
    began = time.perf_counter()
    solution, unplaced = construct(instance, name, solver.seed)
    seconds = time.perf_counter() - began
    if len(unplaced):
        return Outcome("invalid", seconds=seconds, error=f"{len(unplaced)} customers left out")
    return _checked(instance, Outcome(OK, solution, seconds=seconds))


def _solve(instance: Instance, solver: Solver, target: float | None) -> Outcome:
    """Run drhg; a cost that is proven optimal ends the search."""
    from drhg.session.solve import solve

    result = solve(
        instance,
        time_limit=solver.time_limit,
        max_iters=solver.max_iters,
        target=target,
        seed=solver.seed,
        threads=solver.threads,
        method=_method(solver),
    )
    if result.status == "infeasible":
        left = f"{len(result.unplaced)} customers left out"
        return Outcome("invalid", seconds=result.seconds, error=left)
    status = OK
    if solver.time_limit is not None and result.seconds > allowed(solver.time_limit):
        status = LATE
    ended = Outcome(status, result.solution, None, result.seconds, result.iterations)
    return _checked(instance, ended)


def _method(solver: Solver) -> Configured:
    """The method with its changed parameters."""
    from drhg.session.configure import configured, merged

    settings = merged({}, [f"{name}={value}" for name, value in solver.changes])
    if solver.model is not None:
        repair = settings.setdefault("repair", {})
        network = repair.setdefault("first", {}) if solver.method == "hybrid" else repair
        network["model"] = solver.model
    return configured(solver.method, settings)


def _checked(instance: Instance, outcome: Outcome) -> Outcome:
    """Our own answers are trusted no more than a rival's."""
    assert outcome.solution is not None
    found = check(instance, outcome.solution)
    if found:
        return Outcome("invalid", seconds=outcome.seconds, error=found[0])
    return replace(outcome, cost=cost(instance, outcome.solution))


@cache
def _warm_up(is_cvrp: bool, solver: Solver) -> None:
    """Import once what a method needs, on a small instance: no row is charged for it.

    Kernels need no such care, because `solve` loads them before its clock starts.
    """
    from drhg.problem.generate import uniform_cvrp, uniform_tsp

    plain = replace(solver, changes=())
    _solve(uniform_cvrp(50, seed=0) if is_cvrp else uniform_tsp(50, seed=0), plain, None)

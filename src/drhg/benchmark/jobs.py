"""A job is an instance and a method; running it makes a row."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from drhg.benchmark.references import OPTIMAL, Reference
from drhg.benchmark.rivals import RIVALS, Outcome, allowed, run_guarded, unrounded
from drhg.benchmark.rows import LATE, OK, Row, digest, now, provenance
from drhg.errors import DrhgError
from drhg.problem import Instance, check, cost

STARTS = {"random insertion": "insertion", "sweep": "sweep"}  # the paper's names and ours
WARM_ITERATIONS = 200  # enough to compile whatever a search needs


@dataclass(frozen=True)
class Method:
    """A solver and all that it is told; the same method gives the same configuration hash."""

    solver: str  # drhg, a start of the paper, or a rival
    time_limit: float | None = None
    max_iters: int | None = None
    seed: int = 0
    threads: int = 1
    repair: str = "auto"
    degree: tuple[int, int] | None = None  # nodes destroyed at a time; None is the solver's choice
    net: str | None = None  # a file of weights, instead of those in the box
    limit: str = ""  # the rule behind the limit, for tables

    @property
    def label(self) -> str:
        """How tables call it."""
        if self.solver != "drhg":
            return self.solver
        parts = [] if self.repair == "auto" else [self.repair]
        parts += [] if self.net is None else [Path(self.net).stem]
        parts += [] if self.degree is None else [f"k {self.degree[0]}-{self.degree[1]}"]
        return " ".join(["drhg", *parts])

    @property
    def config(self) -> Row:
        """What decides the result, as JSON; a rival knows nothing of our options."""
        found: Row = {"solver": self.solver, "seed": self.seed}
        if self.solver in STARTS:
            return found
        found |= {"time_limit": self.time_limit, "threads": self.threads}
        if self.solver in RIVALS:
            return found
        found |= {"max_iters": self.max_iters, "repair": self.repair, "degree": self.degree}
        return found | {"weights": weights_hash(self)}


@dataclass(frozen=True)
class Job:
    suite: str
    set: str  # the column or line of the paper's table
    instance: Instance
    method: Method
    reference: Reference | None = None
    unrounded: Reference | None = None  # where the paper measured without rounding

    @property
    def key(self) -> tuple[str, str, str]:
        return self.suite, self.instance.name, digest(self.method.config)


@cache
def _file_hash(path: str) -> str:
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError as error:
        raise DrhgError(f"cannot read weights: {error.strerror}", file=path) from None


def weights_hash(method: Method) -> str | None:
    """What identifies the weights that may have taken part; None if none can have."""
    if method.net is not None:
        return _file_hash(method.net)[:12]
    from drhg.methods import NETWORK
    from drhg.weights import manifest

    if method.solver != "drhg" or method.repair not in NETWORK:
        return None
    return digest({name: entry["sha256"] for name, entry in manifest().items()})


def run_job(job: Job) -> Row:
    """Run a job, check its answer, and say everything about it."""
    instance, method = job.instance, job.method
    try:
        outcome = _outcome(instance, method, job.reference)
    except DrhgError as error:
        outcome = Outcome("skipped", error=str(error))
    except Exception as error:
        outcome = Outcome("crashed", error=f"{type(error).__name__}: {error}"[:300])
    return row_of(job, outcome)


def row_of(job: Job, outcome: Outcome) -> Row:
    instance, method, found = job.instance, job.method, outcome.solution
    row: Row = {
        "suite": job.suite, "set": job.set, "instance": instance.name, "n": instance.n,
        "solver": method.label, "limit": method.limit, "status": outcome.status,
        "cost": outcome.cost, "gap": None, "reference": None, "reference_kind": None,
        "seconds": None if outcome.seconds is None else round(outcome.seconds, 4),
        "iterations": outcome.iterations, "seed": method.seed, "threads": method.threads,
        "time_limit": method.time_limit, "max_iters": method.max_iters,
        "config": method.config, "config_hash": digest(method.config),
        "weights_hash": weights_hash(method), "when": now(), **provenance(),
    }  # fmt: skip
    if instance.is_cvrp and found is not None:
        row["routes"] = len(found.routes)
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


def _outcome(instance: Instance, method: Method, known: Reference | None = None) -> Outcome:
    if method.solver in RIVALS:
        assert method.time_limit is not None
        rival = RIVALS[method.solver]
        return run_guarded(rival, instance, method.time_limit, method.seed, method.threads)
    if method.solver in STARTS:
        return _start(instance, method)
    _warm_up(instance, method)
    proven = known is not None and known.kind == OPTIMAL
    return _solve(instance, method, known.cost if known is not None and proven else None)


def _start(instance: Instance, method: Method) -> Outcome:
    from drhg.construct import construct

    name = STARTS[method.solver]
    construct(instance, name, method.seed)  # compiled now, timed below
    began = time.perf_counter()
    solution, unplaced = construct(instance, name, method.seed)
    seconds = time.perf_counter() - began
    if len(unplaced):
        return Outcome("invalid", seconds=seconds, error=f"{len(unplaced)} customers left out")
    return _checked(instance, Outcome(OK, solution, seconds=seconds))


def _solve(instance: Instance, method: Method, target: float | None) -> Outcome:
    """Our solver; what is proven optimal is not searched any further."""
    from drhg.destroy import nearest_cluster
    from drhg.solver import solve

    destroy = "auto" if method.degree is None else nearest_cluster(*method.degree)
    result = solve(
        instance,
        time_limit=method.time_limit,
        max_iters=method.max_iters,
        target=target,
        seed=method.seed,
        repair=method.repair if method.net is None else _network(method.net, method.threads),
        destroy=destroy,
        threads=method.threads,
    )
    if result.status == "infeasible":
        left = f"{len(result.unplaced)} customers left out"
        return Outcome("invalid", seconds=result.seconds, error=left)
    status = OK
    if method.time_limit is not None and result.seconds > allowed(method.time_limit):
        status = LATE
    ended = Outcome(status, result.solution, None, result.seconds, result.iterations)
    return _checked(instance, ended)


def _checked(instance: Instance, outcome: Outcome) -> Outcome:
    """Our own answers get no more trust than a rival's."""
    assert outcome.solution is not None
    found = check(instance, outcome.solution)
    if found:
        return Outcome("invalid", seconds=outcome.seconds, error=found[0])
    return replace(outcome, cost=cost(instance, outcome.solution))


@cache
def _network(path: str, threads: int) -> Any:
    from drhg.neural import NeuralRepair, load_compiled

    return NeuralRepair(load_compiled(path, threads=threads))


_WARM: set[tuple[object, ...]] = set()


def _warm_up(instance: Instance, method: Method) -> None:
    """Compile, or load from the cache, all that this kind of instance needs, before the clock."""
    kind = (
        instance.is_cvrp,
        instance.metric,
        instance.n,
        method.repair,
        method.net,
        method.threads,
    )
    if kind not in _WARM:
        _solve(instance, replace(method, time_limit=None, max_iters=WARM_ITERATIONS), None)
        _WARM.add(kind)

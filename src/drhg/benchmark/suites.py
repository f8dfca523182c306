"""The suites: which instances, for how long, and beside whom. One per table of the paper.

`--quick` is a fixed subset with the same limits, so a full run takes over its rows.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from drhg.benchmark import TITLES
from drhg.benchmark.jobs import Job, Method
from drhg.benchmark.published import published
from drhg.benchmark.references import References
from drhg.benchmark.rivals import RIVALS, Rival
from drhg.errors import DrhgError
from drhg.problem import Instance

NETS = Path("benchmarks/nets")
SIZES_TRAINED = ((30, 70), (20, 80), (10, 90))  # Table 8, reduced nodes of TSP100
DEGREES = ((20, 100), (20, 200), (20, 500), (20, 1000))  # Table 9
EQUAL_TIMES: tuple[float, ...] = (0.1, 1.0, 5.0, 20.0)


@dataclass(frozen=True)
class Choice:
    """What the caller varies; None leaves it to the suite."""

    quick: bool = False
    instances: int | None = None  # per set
    only: tuple[str, ...] = ()  # names of sets or instances
    data: Path | None = None
    nets: Path = NETS
    repairs: tuple[str, ...] = ()
    time_limit: float | None = None
    max_iters: int | None = None
    seed: int = 0
    threads: int = 1
    rivals: tuple[Rival, ...] | None = None  # None means those that the suite names

    def where(self) -> Path:
        """The folder with TSPLIB and CVRPLIB."""
        named = self.data or (
            Path(os.environ["DRHG_DATA"]) if os.environ.get("DRHG_DATA") else None
        )
        if named is None:
            raise DrhgError(
                "this suite reads files: name the folder that holds tsplib/ and cvrplib/ with "
                "--data or $DRHG_DATA"
            )
        if not named.is_dir():
            raise DrhgError("this folder does not exist", file=str(named))
        return named


@dataclass(frozen=True)
class Part:
    """A set of instances: a column of Table 1, a line of Table 5."""

    name: str
    load: Callable[[Choice], list[Instance]]  # all of them, or as many as `instances` says
    full: int | None = None  # how many; None is all
    quick: int | tuple[str, ...] = 1  # the first so many, or these
    seconds: Callable[[Instance], float] = lambda instance: 10.0
    rule: str = "10 s"  # the same in words

    def chosen(self, choice: Choice) -> list[Instance]:
        count = choice.instances
        if count is None:
            count = self.quick if choice.quick and isinstance(self.quick, int) else self.full
        elif self.full is not None:
            count = min(count, self.full)
        found = self.load(replace(choice, instances=count))
        named = [instance for instance in found if instance.name in choice.only]
        if choice.only and (named or self.name not in choice.only):
            return named
        if choice.quick and isinstance(self.quick, tuple):
            found = [instance for instance in found if instance.name in self.quick]
        return found if count is None else found[:count]

    def find(self, name: str, choice: Choice) -> Instance | None:
        """One instance of this part by its name."""
        tail = name.rpartition("-")[2]
        count = int(tail) + 1 if self.full is not None and tail.isdigit() else None
        return next(
            (i for i in self.load(replace(choice, instances=count)) if i.name == name), None
        )


@dataclass(frozen=True)
class Suite:
    name: str
    parts: tuple[Part, ...]
    methods: Callable[[Choice, Instance, Part], Iterable[Method]]
    rivals: tuple[str, ...] = ()  # that run unless others are named
    notes: tuple[str, ...] = field(default=())

    @property
    def title(self) -> str:
        return TITLES[self.name].rstrip(".")

    def instances(self, choice: Choice) -> list[tuple[Part, Instance]]:
        found = [(part, instance) for part in self.parts for instance in part.chosen(choice)]
        if not found:
            asked = f" called {', '.join(choice.only)}" if choice.only else ""
            names = ", ".join(sorted(part.name for part in self.parts))
            raise DrhgError(f"{self.name} has no instances{asked}; sets: {names}")
        return found

    def jobs(self, choice: Choice, references: References) -> list[Job]:
        found = []
        for part, instance in self.instances(choice):
            known, exact = references.of(instance), references.unrounded(instance)
            for method in self.methods(choice, instance, part):
                found.append(Job(self.name, part.name, instance, method, known, exact))
        return list({job.key: job for job in found}.values())

    def against(self, choice: Choice) -> tuple[Rival, ...]:
        if choice.rivals is not None:
            return choice.rivals
        return tuple(RIVALS[name] for name in self.rivals if RIVALS[name].installed)


# --- methods -------------------------------------------------------------------------------------


def _limited(choice: Choice, instance: Instance, part: Part) -> Method:
    """Our solver under the limits of the part, or those of the caller."""
    limit = part.seconds(instance) if choice.time_limit is None else choice.time_limit
    rule = part.rule if choice.time_limit is None else f"{choice.time_limit:g} s"
    if choice.max_iters is not None:
        rule = f"{choice.max_iters:,} iterations"
    return Method(
        "drhg",
        time_limit=limit if choice.max_iters is None else choice.time_limit,
        max_iters=choice.max_iters,
        seed=choice.seed,
        threads=choice.threads,
        limit=rule,
    )


def _rivals(
    suite: str, choice: Choice, instance: Instance, seconds: float, rule: str
) -> list[Method]:
    able = [
        rival
        for rival in SUITES[suite].against(choice)
        if (rival.routes if instance.is_cvrp else rival.tours)
    ]
    ours = Method("drhg", seconds, seed=choice.seed, threads=choice.threads, limit=rule)
    return [replace(ours, solver=rival.name) for rival in able]


def _table(suite: str, start: str) -> Callable[[Choice, Instance, Part], list[Method]]:
    """The paper's start, our solver in each variant asked for, the rivals."""

    def methods(choice: Choice, instance: Instance, part: Part) -> list[Method]:
        ours = _limited(choice, instance, part)
        found = [] if instance.xy is None else [Method(start, seed=choice.seed, limit="start")]
        found += [replace(ours, repair=repair) for repair in choice.repairs or ("auto",)]
        seconds = part.seconds(instance) if choice.time_limit is None else choice.time_limit
        rule = part.rule if choice.time_limit is None else f"{choice.time_limit:g} s"
        return found + _rivals(suite, choice, instance, seconds, rule)

    return methods


def _equal_times(choice: Choice, instance: Instance, part: Part) -> list[Method]:
    found = []
    times: tuple[float, ...] = EQUAL_TIMES
    if choice.time_limit is not None:
        times = (choice.time_limit,)
    if choice.quick and not instance.name.endswith("-0"):
        times = times[:3]  # the longest on one instance only
    for seconds in times:
        timed = replace(choice, time_limit=seconds, max_iters=None)
        ours = _limited(timed, instance, part)
        found += [replace(ours, repair=repair) for repair in choice.repairs or ("auto",)]
        found += _rivals("equal-time", choice, instance, seconds, f"{seconds:g} s")
    return found


def _only_ours(suite: str) -> Callable[[Choice, Instance, Part], list[Method]]:
    def methods(choice: Choice, instance: Instance, part: Part) -> list[Method]:
        ours = _limited(choice, instance, part)
        found = [replace(ours, repair=repair) for repair in choice.repairs or ("auto",)]
        seconds = part.seconds(instance) if choice.time_limit is None else choice.time_limit
        return found + _rivals(suite, choice, instance, seconds, part.rule)

    return methods


def _iterated(choice: Choice) -> Choice:
    """These tables count iterations (the paper's T is 1000), unless seconds are asked for."""
    if choice.time_limit is not None or choice.max_iters is not None:
        return choice
    return replace(choice, max_iters=200 if choice.quick else 1000)


def net_file(folder: Path, low: int, high: int) -> Path:
    return folder / f"size-{low}-{high}.safetensors"


def _train_sizes(choice: Choice, instance: Instance, part: Part) -> list[Method]:
    missing = [
        f"size-{low}-{high}"
        for low, high in SIZES_TRAINED
        if not net_file(choice.nets, low, high).exists()
    ]
    if missing:
        raise DrhgError(
            f"the networks {', '.join(missing)} are not in {choice.nets}; docs/benchmarks.md says "
            f"how they are made, by `drhg train configs/{missing[0]}.toml` first of all"
        )
    ours = _limited(_iterated(choice), instance, part)
    top = min(200, instance.n)
    return [
        replace(ours, repair="neural", net=str(net_file(choice.nets, low, high)), degree=(20, top))
        for low, high in SIZES_TRAINED
    ]


def _degrees(choice: Choice, instance: Instance, part: Part) -> list[Method]:
    ours = _limited(_iterated(choice), instance, part)
    return [
        replace(ours, repair=repair, degree=degree)
        for repair in choice.repairs or ("neural",)
        for degree in DEGREES
        if degree[1] <= instance.n
    ]


# --- instances -----------------------------------------------------------------------------------


def _uniform_tsp(n: int) -> Callable[[Choice], list[Instance]]:
    def load(choice: Choice) -> list[Instance]:
        from drhg.generate import paper_tsp, paper_tsp5000

        count = choice.instances or 1
        return paper_tsp5000(min(count, 128)) if n == 5000 else paper_tsp(n, count)

    return load


def _uniform_cvrp(n: int) -> Callable[[Choice], list[Instance]]:
    def load(choice: Choice) -> list[Instance]:
        from drhg.generate import paper_cvrp

        return paper_cvrp(n, min(choice.instances or 1, 10_000 if n == 100 else 128))

    return load


def _part(name: str, load: Callable[[Choice], list[Instance]], full: int, quick: int,
          seconds: float) -> Part:  # fmt: skip
    return Part(name, load, full, quick, lambda instance: seconds, f"{seconds:g} s")


def _tsp_part(n: int, full: int, quick: int, seconds: float) -> Part:
    shown = f"{n // 1000}K" if n >= 1000 else str(n)
    return _part(f"TSP{shown}", _uniform_tsp(n), full, quick, seconds)


def _cvrp_part(n: int, full: int, quick: int, seconds: float) -> Part:
    shown = f"{n // 1000}K" if n >= 1000 else str(n)
    return _part(f"CVRP{shown}", _uniform_cvrp(n), full, quick, seconds)


@cache
def paper_tsplib() -> tuple[str, ...]:
    """The 77 instances of Tables 6 and 7 (without linhp318, whose fixed edge they ignore)."""
    names = {row["set"] for row in published() if row["table"] == "tsplib-instances"}
    return tuple(sorted(names - {"linhp318"}))


def _tsplib(low: int, high: int) -> Callable[[Choice], list[Instance]]:
    def load(choice: Choice) -> list[Instance]:
        from drhg.io import read

        folder = choice.where() / "tsplib"
        found = []
        for name in paper_tsplib():
            digits = int("".join(c for c in name if c.isdigit()))
            if low <= digits < high:  # TSPLIB's names end with the number of nodes
                found.append(read(folder / f"{name}.tsp"))
        return sorted(found, key=lambda instance: (instance.n, instance.name))

    return load


def _tsplib_part(name: str, low: int, high: int, quick: tuple[str, ...]) -> Part:
    return Part(
        name,
        _tsplib(low, high),
        quick=quick,
        seconds=lambda instance: min(60.0, instance.n / 20 + 1),
        rule="min(60, n/20 + 1) s",
    )


def _cvrplib_part(name: str, *quick: str) -> Part:
    def load(choice: Choice) -> list[Instance]:
        from drhg.io import read

        files = sorted((choice.where() / "cvrplib" / name).glob("*.vrp"))
        found = [read(path) for path in files]
        kept = [instance for instance in found if instance.metric.name != "EXPLICIT"]
        return sorted(kept, key=lambda instance: (instance.n, instance.name))

    return Part(name, load, quick=quick, seconds=lambda instance: instance.n / 10, rule="n/10 s")


TSP_PARTS = (
    _tsp_part(100, 10_000, 10, 1.0),
    _tsp_part(200, 128, 6, 2.0),
    _tsp_part(500, 128, 5, 5.0),
    _tsp_part(1000, 128, 3, 10.0),
    _tsp_part(5000, 128, 1, 30.0),
    _tsp_part(10_000, 16, 1, 60.0),
)

SUITES = {
    suite.name: suite
    for suite in (
        Suite("tsp", TSP_PARTS, _table("tsp", "random insertion"),
              notes=("TSP5K is the paper's set; the others are sets of our own from the same "
                     "distribution, because the paper's cannot be rebuilt from a seed.",)),
        Suite("equal-time",
              tuple(_tsp_part(n, 128, 5, 0.0) for n in (100, 200, 500)), _equal_times,
              rivals=("fast_tsp", "ortools", "elkai")),
        Suite("cvrp",
              (_cvrp_part(100, 10_000, 6, 3.0), _cvrp_part(200, 128, 5, 8.0),
               _cvrp_part(500, 128, 3, 20.0), _cvrp_part(1000, 128, 2, 30.0)),
              _table("cvrp", "sweep"),
              notes=("The paper's own sets. Gaps of CVRP200 and CVRP500 are against LKH3's cost "
                     "of the same instance, as in the paper; the others against long runs of "
                     "HGS, which is 0.5 to 2.2 % below LKH3.",)),
        Suite("tsplib",
              (_tsplib_part("<100", 0, 100, ("berlin52", "rat99")),
               _tsplib_part("100-200", 100, 200, ("kroA100", "ch150", "d198")),
               _tsplib_part("200-500", 200, 500, ("tsp225", "a280", "lin318")),
               _tsplib_part("500-1k", 500, 1000, ("u574", "d657")),
               _tsplib_part(">1k", 1000, 10**9, ("d1291",))),
              _table("tsplib", "random insertion"),
              notes=("Gaps are in TSPLIB's own rounded metric. Beside it stands the paper's: the "
                     "unrounded length of the same tour over the whole optimum.",)),
        Suite("cvrplib",
              (_cvrplib_part("A", "A-n32-k5", "A-n80-k10"), _cvrplib_part("B", "B-n78-k10"),
               _cvrplib_part("E", "E-n101-k8"), _cvrplib_part("F", "F-n135-k7"),
               _cvrplib_part("M", "M-n151-k12"), _cvrplib_part("P", "P-n101-k4"),
               _cvrplib_part("X", "X-n101-k25", "X-n200-k36", "X-n303-k21", "X-n502-k39")),
              _table("cvrplib", "sweep"),
              notes=("Gaps are in CVRPLIB's rounded metric, against the best known cost. Beside "
                     "it stands the paper's: unrounded against unrounded, for the same plans. "
                     "The fleet is free; set E is without its two files that hold a matrix.",)),
        Suite("train-size",
              tuple(replace(part, full=min(part.full or 1, 16), quick=quick)
                    for part, quick in zip(TSP_PARTS, (16, 8, 4, 2, 1, 0), strict=True)),
              _train_sizes,
              notes=("Small networks trained with equal budgets, each with k in [20, 200].",)),
        Suite("destroy-degree",
              tuple(replace(part, full=min(part.full or 1, 16), quick=quick)
                    for part, quick in zip(TSP_PARTS, (16, 8, 4, 2, 1, 1), strict=True)),
              _degrees),
        Suite("non-optimal",
              (_tsp_part(100, 10_000, 200, 0.5),), _only_ours("non-optimal"),
              notes=("Non-optimal means more than 0.0001 % above the best length known here; the "
                     "references are long runs, not proofs.",)),
    )
}  # fmt: skip

"""The suites: which instances, for how long, beside which solvers. One per table of the paper, and
some of our own.

`--quick` is a fixed subset with the same limits, so that a full run keeps its rows.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TypeAlias

from drhg.benchmark import TITLES
from drhg.benchmark.jobs import NETWORK, Job, Solver
from drhg.benchmark.published import published
from drhg.benchmark.references import References
from drhg.benchmark.rivals import RIVALS, Rival
from drhg.errors import DrhgError
from drhg.problem import Instance, Metric

NETS = Path("benchmarks/nets")


@dataclass(frozen=True)
class Choice:
    """What the caller decides; None leaves it to the suite."""

    quick: bool = False
    instances: int | None = None  # per set
    only: tuple[str, ...] = ()  # names of sets, groups or instances
    data: Path | None = None
    nets: Path = NETS
    methods: tuple[str, ...] = ()
    changes: tuple[tuple[str, str], ...] = ()  # parameters of these methods
    model: str | None = None  # weights for the methods that use a network
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
    groups: tuple[tuple[str, tuple[str, ...]], ...] = ()  # named subsets, for --only

    def chosen(self, choice: Choice) -> list[Instance]:
        count = choice.instances
        if count is None:
            count = self.quick if choice.quick and isinstance(self.quick, int) else self.full
        elif self.full is not None:
            count = min(count, self.full)
        found = self.load(replace(choice, instances=count))
        groups = dict(self.groups)
        wanted = {name for asked in choice.only for name in groups.get(asked, (asked,))}
        named = [instance for instance in found if instance.name in wanted]
        if choice.only and (named or self.name not in choice.only):
            return named
        if choice.quick and isinstance(self.quick, tuple):
            found = [instance for instance in found if instance.name in self.quick]
        return found if count is None else found[:count]

    def find(self, name: str, choice: Choice) -> Instance | None:
        """One instance of this part by its name."""
        tail = name.rpartition("-")[2].removeprefix("s")
        count = int(tail) + 1 if self.full is not None and tail.isdigit() else None
        return next(
            (i for i in self.load(replace(choice, instances=count)) if i.name == name), None
        )

    @property
    def paper_seconds(self) -> float | None:
        """The wall clock per instance of the paper's own run on this set, if it is published."""
        for row in published():
            if row["set"] == self.name and row["solver"] == "DRHG (T=1000)" and row["seconds"]:
                return float(row["seconds"])
        return None


@dataclass(frozen=True)
class Limit:
    """When a solver must stop, and the same in words."""

    rule: str
    seconds: float | None = None
    iterations: int | None = None


def limit_of(seconds: float) -> Limit:
    return Limit(f"{seconds:g} s", seconds)


def limit_of_iterations(iterations: int, seconds: float | None = None) -> Limit:
    return Limit(f"{iterations:,} iterations", seconds, iterations)


@dataclass(frozen=True)
class Variant:
    """A method of drhg with some of its parameters changed."""

    method: str = "auto"
    changes: tuple[tuple[str, str], ...] = ()
    model: str | None = None
    threads: int | None = None  # instead of the caller's


Variants: TypeAlias = Callable[[Choice, Instance], list[Variant]]


def asked(choice: Choice, instance: Instance, default: str = "auto") -> list[Variant]:
    """The methods that the caller named."""
    return [
        Variant(method, choice.changes, choice.model if method in NETWORK else None)
        for method in choice.methods or (default,)
    ]


@dataclass(frozen=True)
class Suite:
    name: str
    parts: tuple[Part, ...]
    variants: Variants = asked
    start: str | None = None  # the paper's first solution, as a row of its own
    times: tuple[float, ...] = ()  # seconds, instead of those of the parts
    iterations: tuple[int, int] | None = None  # in full and with --quick, instead of seconds
    rivals: tuple[str, ...] = ()  # that run unless others are named
    alone: bool = False  # whether rivals have nothing to say here
    tolerance: float = 1e-4  # percent above the reference that still count as optimal
    notes: tuple[str, ...] = field(default=())

    @property
    def title(self) -> str:
        return TITLES[self.name].rstrip(".")

    def instances(self, choice: Choice) -> list[tuple[Part, Instance]]:
        found = [(part, instance) for part in self.parts for instance in part.chosen(choice)]
        if not found:
            named = f" called {', '.join(choice.only)}" if choice.only else ""
            names = ", ".join(sorted(part.name for part in self.parts))
            raise DrhgError(f"{self.name} has no instances{named}; sets: {names}")
        return found

    def jobs(self, choice: Choice, references: References) -> list[Job]:
        found = []
        for part, instance in self.instances(choice):
            known, exact = references.of(instance), references.unrounded(instance)
            for solver in self.solvers(choice, instance, part):
                found.append(Job(self.name, part.name, instance, solver, known, exact))
        return list({job.key: job for job in found}.values())

    def solvers(self, choice: Choice, instance: Instance, part: Part) -> list[Solver]:
        """The paper's start, drhg by every method asked for, and the rivals."""
        found = []
        if self.start is not None and instance.xy is not None:
            found.append(Solver(self.start, seed=choice.seed, limit="start"))
        for limit in self._limits(choice, instance, part):
            for variant in self.variants(choice, instance):
                own = self._own_limit(choice, variant, part) or limit
                found.append(_solver("drhg", choice, own, variant))
            if limit.iterations is not None:  # rivals count seconds
                limit = Limit(part.rule, part.seconds(instance))
                limit = limit if choice.time_limit is None else limit_of(choice.time_limit)
            for rival in self.against(choice):
                if rival.solves(instance):
                    found.append(_solver(rival.name, choice, limit, Variant()))
        return found

    def _limits(self, choice: Choice, instance: Instance, part: Part) -> list[Limit]:
        if choice.max_iters is not None:
            return [limit_of_iterations(choice.max_iters, choice.time_limit)]
        if choice.time_limit is not None:
            return [limit_of(choice.time_limit)]
        if self.iterations is not None:
            return [limit_of_iterations(self.iterations[choice.quick])]
        if self.times:
            short = choice.quick and not instance.name.endswith("-0")
            times = self.times[:-1] if short else self.times  # the longest on one instance only
            return [limit_of(seconds) for seconds in times]
        return [Limit(part.rule, part.seconds(instance))]

    def _own_limit(self, choice: Choice, variant: Variant, part: Part) -> Limit | None:
        """The paper's T for `paper`, the paper's wall clock for `neural`, unless told otherwise."""
        if choice.max_iters is not None or choice.time_limit is not None:
            return None
        if self.iterations is not None or self.times:
            return None
        if variant.method == "paper":
            return limit_of_iterations(1000)
        if variant.method == "neural" and part.paper_seconds is not None:
            return limit_of(part.paper_seconds)
        return None

    def against(self, choice: Choice) -> tuple[Rival, ...]:
        if self.alone:
            return ()
        if choice.rivals is not None:
            return choice.rivals
        return tuple(RIVALS[name] for name in self.rivals if RIVALS[name].installed)


def _solver(name: str, choice: Choice, limit: Limit, variant: Variant) -> Solver:
    return Solver(
        name, limit.seconds, limit.iterations, choice.seed, variant.threads or choice.threads,
        variant.method, variant.changes, variant.model, limit.rule,
    )  # fmt: skip


# --- variants ------------------------------------------------------------------------------------


def net_file(folder: Path, low: int, high: int) -> Path:
    return folder / f"size-{low}-{high}.safetensors"


def trained_on(*sizes: tuple[int, int]) -> Variants:
    """Networks that learnt from graphs of these sizes."""

    def variants(choice: Choice, instance: Instance) -> list[Variant]:
        files = {size: net_file(choice.nets, *size) for size in sizes}
        missing = [file.stem for file in files.values() if not file.exists()]
        if missing:
            raise DrhgError(
                f"the networks {', '.join(missing)} are not in {choice.nets}; docs/benchmarks.md "
                f"says how they are made, by `drhg train configs/{missing[0]}.toml` first of all"
            )
        k = ("destroy.k", f"20,{min(200, instance.n)}")
        return [Variant("neural", (k,), str(file)) for file in files.values()]

    return variants


def destroying(*degrees: tuple[int, int]) -> Variants:
    """Every method asked for, with so many nodes destroyed at a time."""

    def variants(choice: Choice, instance: Instance) -> list[Variant]:
        return [
            replace(variant, changes=(*variant.changes, ("destroy.k", f"{low},{high}")))
            for variant in asked(choice, instance, "neural")
            for low, high in degrees
            if high <= instance.n
        ]

    return variants


def compared(*ours: Variant) -> Variants:
    """These ways to search, or the methods that the caller names."""

    def variants(choice: Choice, instance: Instance) -> list[Variant]:
        return asked(choice, instance) if choice.methods else list(ours)

    return variants


# --- instances -----------------------------------------------------------------------------------


def _uniform_tsp(n: int) -> Callable[[Choice], list[Instance]]:
    def load(choice: Choice) -> list[Instance]:
        from drhg.problem.generate import paper_tsp, paper_tsp5000

        count = choice.instances or 1
        return paper_tsp5000(min(count, 128)) if n == 5000 else paper_tsp(n, count)

    return load


def _uniform_cvrp(n: int) -> Callable[[Choice], list[Instance]]:
    def load(choice: Choice) -> list[Instance]:
        from drhg.problem.generate import paper_cvrp

        return paper_cvrp(n, min(choice.instances or 1, 10_000 if n == 100 else 128))

    return load


def _seeded(kind: str, n: int) -> Callable[[Choice], list[Instance]]:
    """Instances of a generator with the seeds 0, 1, ..."""

    def load(choice: Choice) -> list[Instance]:
        from drhg.problem import generate

        makers: dict[str, Callable[[int], Instance]] = {
            "uniform": lambda seed: generate.uniform_tsp(n, seed=seed),
            "clustered": lambda seed: generate.clustered_tsp(
                n, seed=seed, clusters=5, name=f"five-clusters{n}-s{seed}"
            ),
            "routes": lambda seed: generate.uniform_cvrp(n, seed=seed),
        }
        return [makers[kind](seed) for seed in range(choice.instances or 1)]

    return load


def _part(name: str, load: Callable[[Choice], list[Instance]], full: int, quick: int,
          seconds: float) -> Part:  # fmt: skip
    return Part(name, load, full, quick, lambda instance: seconds, f"{seconds:g} s")


def _shown(n: int) -> str:
    return f"{n // 1_000_000}M" if n >= 1_000_000 else f"{n // 1000}K" if n >= 1000 else str(n)


def _tsp_part(n: int, full: int, quick: int, seconds: float) -> Part:
    return _part(f"TSP{_shown(n)}", _uniform_tsp(n), full, quick, seconds)


def _cvrp_part(n: int, full: int, quick: int, seconds: float) -> Part:
    return _part(f"CVRP{_shown(n)}", _uniform_cvrp(n), full, quick, seconds)


def _sized(kind: str, n: int, full: int, quick: int, seconds: float) -> Part:
    return _part(f"{kind} {_shown(n)}", _seeded(kind, n), full, quick, seconds)


@cache
def paper_tsplib() -> tuple[str, ...]:
    """The 77 instances of Tables 6 and 7 (without linhp318, whose fixed edge they ignore)."""
    names = {row["set"] for row in published() if row["table"] == "tsplib-instances"}
    return tuple(sorted(names - {"linhp318"}))


def _tsplib(low: int, high: int) -> Callable[[Choice], list[Instance]]:
    def load(choice: Choice) -> list[Instance]:
        from drhg.files.registry import read

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


X20 = (
    "X-n106-k14", "X-n129-k18", "X-n153-k22", "X-n190-k8", "X-n214-k11", "X-n256-k16",
    "X-n284-k15", "X-n317-k53", "X-n344-k43", "X-n393-k38", "X-n439-k37", "X-n491-k59",
    "X-n524-k153", "X-n573-k30", "X-n627-k43", "X-n701-k44", "X-n783-k48", "X-n856-k95",
    "X-n936-k151", "X-n979-k58",
)  # fmt: skip


def _cvrplib(name: str, fleet: bool = False) -> Callable[[Choice], list[Instance]]:
    def load(choice: Choice) -> list[Instance]:
        from drhg.files.registry import read

        files = sorted((choice.where() / "cvrplib" / name).glob("*.vrp"))
        found = [read(path) for path in files]
        if fleet:  # as many vehicles as the names say and the best known plans use
            found = [replace(i, vehicles=int(i.name.rpartition("-k")[2])) for i in found]
        else:
            found = [instance for instance in found if instance.metric.name != "EXPLICIT"]
        return sorted(found, key=lambda instance: (instance.n, instance.name))

    return load


def _atsp() -> Part:
    """TSPLIB's tours whose distances depend on the direction, all with proven optima."""

    def load(choice: Choice) -> list[Instance]:
        from drhg.files.registry import read

        found = [read(path) for path in sorted((choice.where() / "atsp").glob("*.atsp"))]
        return sorted(found, key=lambda instance: (instance.n, instance.name))

    return Part(
        "ATSP",
        load,
        quick=("br17", "ftv64", "kro124p", "rbg323"),
        seconds=lambda instance: min(20.0, instance.n / 10),
        rule="min(20, n/10) s",
    )


def _cvrplib_part(name: str, *quick: str, **groups: tuple[str, ...]) -> Part:
    return Part(
        name,
        _cvrplib(name),
        quick=quick,
        seconds=lambda instance: instance.n / 10,
        rule="n/10 s",
        groups=tuple(groups.items()),
    )


def _fleet_part(name: str, *quick: str) -> Part:
    return Part(name, _cvrplib(name, fleet=True), None, quick, lambda instance: 5.0, "5 s")


TSP_PARTS = (
    _tsp_part(100, 10_000, 10, 1.0),
    _tsp_part(200, 128, 6, 2.0),
    _tsp_part(500, 128, 5, 5.0),
    _tsp_part(1000, 128, 3, 10.0),
    _tsp_part(5000, 128, 1, 30.0),
    _tsp_part(10_000, 16, 1, 60.0),
)


def _few_tours(*quick: int) -> tuple[Part, ...]:
    return tuple(
        replace(part, full=min(part.full or 1, 16), quick=count)
        for part, count in zip(TSP_PARTS, quick, strict=True)
    )


def _chosen_cvrplib(*names: str) -> Part:
    def load(choice: Choice) -> list[Instance]:
        return [instance for instance in _cvrplib("X")(choice) if instance.name in names]

    return Part("X", load, quick=names[:2], seconds=lambda instance: 10.0, rule="10 s")


WINDOWS10 = tuple(
    f"{kind}_10_{number}"
    for kind, number in (("C1", 3), ("C1", 9), ("C2", 7), ("C2", 9), ("R1", 1), ("R1", 5),
                         ("R2", 1), ("R2", 7), ("RC1", 3), ("RC2", 7))
)  # fmt: skip


def _windows(n: int) -> Part:
    """Two instances of each of Solomon's kinds, of our own generator."""

    def load(choice: Choice) -> list[Instance]:
        from drhg.problem.generate_windows import LAWS, windows_vrp

        return [windows_vrp(kind, n, seed) for seed in range(2) for kind in LAWS]

    quick = tuple(f"{kind}-{n}-s0" for kind in ("R1", "C2", "RC2"))
    return Part(f"VRPTW{n}", load, None, quick, lambda instance: 10.0, "10 s")


def _gehring_homberger() -> Part:
    """Instances of 1,000 customers; distances are cut to a tenth, and vehicles are free."""

    def load(choice: Choice) -> list[Instance]:
        from drhg.files.registry import read

        found = [read(choice.where() / "vrptw" / f"{name}.vrp") for name in WINDOWS10]
        return [replace(one, metric=Metric.TRUNC1, vehicles=None) for one in found]

    return Part("VRPTW1K", load, None, ("R1_10_5", "C2_10_9"), lambda instance: 60.0, "60 s")


SUITES = {
    suite.name: suite
    for suite in (
        Suite("tsp", TSP_PARTS, start="random insertion",
              notes=("TSP5K is the paper's set; the others are sets of our own from the same "
                     "distribution, because the paper's cannot be rebuilt from a seed.",)),
        Suite("equal-time", tuple(_tsp_part(n, 128, 5, 0.0) for n in (100, 200, 500)),
              times=(0.1, 1.0, 5.0, 20.0), rivals=("fast_tsp", "ortools", "elkai")),
        Suite("short-times",
              tuple(replace(part, full=quick, quick=quick)
                    for part, quick in zip(TSP_PARTS[:5], (10, 8, 5, 3, 1), strict=True)),
              times=(0.1, 0.3, 1.0), rivals=("fast_tsp",),
              notes=("The clock of drhg starts when its kernels are loaded, that of fast_tsp when "
                     "it has its matrix.",)),
        Suite("cvrp",
              (_cvrp_part(100, 10_000, 6, 3.0), _cvrp_part(200, 128, 5, 8.0),
               _cvrp_part(500, 128, 3, 20.0), _cvrp_part(1000, 128, 2, 30.0)),
              start="sweep",
              notes=("The paper's own sets. Gaps of CVRP200 and CVRP500 are against LKH3's cost "
                     "of the same instance, as in the paper; the others against long runs of "
                     "HGS, which is 0.5 to 2.2 % below LKH3.",)),
        Suite("tsplib",
              (_tsplib_part("<100", 0, 100, ("berlin52", "rat99")),
               _tsplib_part("100-200", 100, 200, ("kroA100", "ch150", "d198")),
               _tsplib_part("200-500", 200, 500, ("tsp225", "a280", "lin318")),
               _tsplib_part("500-1k", 500, 1000, ("u574", "d657")),
               _tsplib_part(">1k", 1000, 10**9, ("d1291",))),
              start="random insertion",
              notes=("Gaps are in TSPLIB's own rounded metric. Beside it stands the paper's: the "
                     "unrounded length of the same tour over the whole optimum.",)),
        Suite("atsp", (_atsp(),), rivals=("pyvrp", "ortools", "elkai"),
              notes=("All 19 instances of TSPLIB whose distances depend on the direction. PyVRP "
                     "has one vehicle without a limit.",)),
        Suite("cvrplib",
              (_cvrplib_part("A", "A-n32-k5", "A-n80-k10"), _cvrplib_part("B", "B-n78-k10"),
               _cvrplib_part("E", "E-n101-k8"), _cvrplib_part("F", "F-n135-k7"),
               _cvrplib_part("M", "M-n151-k12"), _cvrplib_part("P", "P-n101-k4"),
               _cvrplib_part("X", "X-n101-k25", "X-n200-k36", "X-n303-k21", "X-n502-k39",
                             X20=X20)),
              start="sweep",
              notes=("Gaps are in CVRPLIB's rounded metric, against the best known cost. Beside "
                     "it stands the paper's: unrounded against unrounded, for the same plans. "
                     "The fleet is free; set E is without its two files that hold a matrix.",)),
        Suite("train-size", _few_tours(16, 8, 4, 2, 1, 0),
              trained_on((30, 70), (20, 80), (10, 90)), iterations=(1000, 200), alone=True,
              notes=("Small networks trained with equal budgets, each with k in [20, 200].",)),
        Suite("destroy-degree", _few_tours(16, 8, 4, 2, 1, 1),
              destroying((20, 100), (20, 200), (20, 500), (20, 1000)), iterations=(1000, 200),
              alone=True),
        Suite("non-optimal", (_tsp_part(100, 10_000, 200, 0.5),),
              notes=("Non-optimal means more than 0.0001 % above the best length known here; the "
                     "references are long runs, not proofs.",)),
        Suite("sizes",
              (_sized("uniform", 100, 8, 8, 1.0), _sized("uniform", 200, 8, 8, 1.0),
               _sized("uniform", 500, 8, 8, 2.0), _sized("uniform", 1000, 8, 4, 5.0),
               _sized("uniform", 5000, 8, 1, 30.0), _sized("uniform", 10_000, 8, 1, 60.0),
               _sized("uniform", 100_000, 1, 0, 180.0),
               _sized("uniform", 1_000_000, 1, 0, 600.0),
               _sized("routes", 5000, 1, 0, 120.0), _sized("routes", 10_000, 1, 0, 120.0)),
              notes=("The generators' instances with the seeds 0, 1, ... (`drhg generate`).",)),
        Suite("fleet",
              (_fleet_part("A", "A-n32-k5"), _fleet_part("B", "B-n78-k10"),
               _fleet_part("E", "E-n101-k8"), _fleet_part("F", "F-n135-k7"),
               _fleet_part("M", "M-n200-k16"), _fleet_part("P", "P-n55-k8")),
              notes=("As many vehicles as the name of the instance says.",)),
        Suite("vrptw", (_windows(100), _windows(200), _gehring_homberger()),
              notes=("Time windows. VRPTW100 and VRPTW200 are of our own generator; VRPTW1K are "
                     "ten instances of Gehring and Homberger with best known plans. Distances "
                     "are cut to a tenth (the DIMACS rule), and only they count.",)),
        Suite("tour-methods",
              (_sized("uniform", 1000, 4, 2, 5.0), _sized("clustered", 1000, 4, 2, 5.0)),
              compared(
                  Variant(), Variant(threads=1),
                  Variant(changes=(("population.greedy_from", "0.0"),)),
                  Variant(changes=(("sizes.population_from", "1000000000"),)),
                  Variant("library"),
                  Variant("library", (("destroy", "cluster"),)), Variant("local"),
                  Variant("neural"), Variant("hybrid")),
              notes=("Every way to search for a tour, with the same time. With greedy_from 0.0 "
                     "children are chosen by length alone; with population_from out of reach "
                     "there is no population, only kicks.",)),
        Suite("route-methods",
              (_chosen_cvrplib("X-n200-k36", "X-n303-k21", "X-n502-k39", "X-n701-k44"),),
              compared(
                  Variant(), Variant("library"), Variant("library", (("destroy", "cluster"),)),
                  Variant("library", (("repair.name", "hygese"),)), Variant("local"),
                  Variant("local", (("destroy.depot_edges", "all"),)),
                  *(Variant("local", (("destroy", name),))
                    for name in ("strings", "routes", "adaptive")),
                  Variant("insertion"), Variant("insertion", (("destroy", "strings"),)),
                  Variant("neural"), Variant("hybrid")),
              notes=("Every way to search for routes, with the same time.",)),
    )
}  # fmt: skip

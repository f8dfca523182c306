"""The command line: `drhg solve | check | generate | plot | label | train | models`.

Results go to stdout, everything else to stderr. Nothing heavy is imported before a command needs
it, and the signal handler stands before that, so an interrupt at any moment ends cleanly.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeAlias

import typer

from drhg.benchmark.commands import app as bench
from drhg.cli.shell import (
    BAD_INPUT,
    INFEASIBLE,
    OK,
    SOME_FAILED,
    STOP,
    USAGE,
    Format,
    Interrupted,
    blaming,
    option,
)
from drhg.cli.training import app as training_commands
from drhg.errors import DrhgError
from drhg.help_pages import App, epilog
from drhg.report import Report, Trace, View, read_log, read_trace, say

if TYPE_CHECKING:
    from drhg.problem import Instance, Solution
    from drhg.solver import Result, TracePoint

PICTURES = (".png", ".pdf", ".svg")

UsageError: type[Exception] = typer.BadParameter.__mro__[1]


class Kind(StrEnum):
    uniform_tsp = "uniform-tsp"
    clustered_tsp = "clustered-tsp"
    uniform_cvrp = "uniform-cvrp"
    x_cvrp = "x-cvrp"


EXIT_CODES = (
    "Exit codes:\n"
    "  0  all went well\n"
    "  1  some of several instances failed, or a result could not be written\n"
    "  2  the command line is wrong\n"
    "  3  an instance or a solution is not valid\n"
    "  4  no feasible solution was found; the customers left out are named\n"
    "  5  no search took place (time was up before it began), and the first plan\n"
    "     leaves customers out\n"
    "  130, 143  interrupted (Ctrl-C, SIGTERM), with the best solution written"
)

app = App(
    name="drhg",
    help="Solve travelling salesman (TSP) and capacitated vehicle routing problems (CVRP) "
    "by destroy and repair on hyper-graphs.",
    epilog=epilog(
        [
            ("drhg generate uniform-tsp -n 1000 -o cities.tsp", "make a problem"),
            ("drhg solve cities.tsp -t 10 -o cities.tour", "solve it"),
            ("drhg check cities.tsp cities.tour", "verify the answer"),
            ("drhg plot cities.tsp cities.tour -o cities.png", "look at it"),
            ("drhg models", "the networks in the box"),
        ],
        EXIT_CODES,
    ),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(bench)


def main() -> NoReturn:
    """Entry point: runs the command line and leaves without waiting for compiling threads."""
    STOP.install()
    code = _run()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:  # the reader is gone
            code = code or SOME_FAILED
    os._exit(code)


def _run() -> int:
    try:
        return app(standalone_mode=False) or OK
    except Interrupted:
        return STOP.exit_code
    except Exception as error:
        if STOP.raised:  # on its way up Python wrapped it, as it does around `__set_name__`
            return STOP.exit_code
        if os.environ.get("DRHG_DEBUG") and not isinstance(error, (UsageError, BrokenPipeError)):
            raise
        return _explain(error)


def _explain(error: Exception) -> int:
    """One line on stderr, and the exit code."""
    if isinstance(error, UsageError):
        message = error.format_message() if hasattr(error, "format_message") else str(error)
        if message:  # else no command at all: the help has been shown
            context = getattr(error, "ctx", None)
            path = context.command_path if context is not None else "drhg"
            say(f"{message} Try '{path} --help'." if message.endswith(".") else message)
        return USAGE
    if isinstance(error, BrokenPipeError):
        return SOME_FAILED
    if isinstance(error, DrhgError):
        say(str(error))
        return BAD_INPUT
    say(f"unexpected {type(error).__name__}: {error} (DRHG_DEBUG=1 shows where)")
    return SOME_FAILED


def _version(wanted: bool) -> None:
    if wanted:
        from drhg import __version__

        print(f"drhg {__version__}")
        raise typer.Exit


@app.callback()
def _top(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


# --- options ------------------------------------------------------------------------------------


STOPPING, SEARCH, OUTPUT = "When to stop", "How to search", "What to write"
REGIONS = "With any --repair but auto"

InstanceFile: TypeAlias = Annotated[
    Path,
    typer.Argument(metavar="INSTANCE",
                   help="A TSPLIB, CVRPLIB or JSON file, perhaps .gz; - is standard input."),
]  # fmt: skip
SolutionFile: TypeAlias = Annotated[
    Path,
    typer.Argument(metavar="SOLUTION",
                   help="A tour (.tour), routes (.sol) or what `drhg solve -f json` printed, "
                        "perhaps .gz; - is standard input."),
]  # fmt: skip
TimeLimit: TypeAlias = Annotated[
    float | None,
    option(STOPPING, "-t", "--time-limit", min=0, metavar="SECONDS",
           help="Stop after so many seconds per instance."),
]  # fmt: skip
MaxIters: TypeAlias = Annotated[
    int | None,
    option(STOPPING, "-n", "--max-iters", min=0, metavar="ITERS",
           help="Stop after so many iterations."),
]  # fmt: skip
NoImprove: TypeAlias = Annotated[
    int | None,
    option(STOPPING, "--no-improve", min=1, metavar="ITERS",
           help="Stop after so many iterations without a better solution."),
]  # fmt: skip
Target: TypeAlias = Annotated[
    float | None, option(STOPPING, "--target", metavar="COST", help="Stop at this cost or below.")
]
Seed: TypeAlias = Annotated[
    int, option(SEARCH, "-s", "--seed", min=0, metavar="N", help="Seed of all random choices.")
]
Init: TypeAlias = Annotated[
    str,
    option(SEARCH, "-i", "--init", metavar="NAME|FILE",
           help="Start: auto, insertion, sweep, savings, space-filling, greedy, "
           "or a file with a tour or routes."),
]  # fmt: skip
RepairName: TypeAlias = Annotated[
    str,
    option(SEARCH, "--repair", metavar="NAME",
           help="What reconnects the destroyed part: auto, local, insertion, library, neural, "
                "hybrid. (library: fast_tsp, pyvrp for routes; hybrid: neural, then local)"),
]  # fmt: skip
KRange: TypeAlias = Annotated[
    str | None,
    option(REGIONS, "--k", metavar="LOW,HIGH",
           help="Destroy so many nodes at a time; by default what suits the weights."),
]  # fmt: skip
Centres: TypeAlias = Annotated[
    str,
    option(REGIONS, "--centres", metavar="uniform|grid",
           help="Around a random node, or around cells of the paper's grid."),
]  # fmt: skip
DestroyName: TypeAlias = Annotated[
    str,
    option(REGIONS, "--destroy", metavar="NAME",
           help="What is cut: auto, cluster (the paper's), covering (where nothing was done for "
                "longest), and of routes strings, routes (whole ones), adaptive (by gains)."),
]  # fmt: skip
DepotEdges: TypeAlias = Annotated[
    str,
    option(REGIONS, "--depot-edges", metavar="adjacent|touched|all",
           help="Cut the depot edges beside destroyed customers, of their routes, or all (the "
                "paper's)."),
]  # fmt: skip
Library: TypeAlias = Annotated[
    str,
    option(REGIONS, "--library", metavar="NAME",
           help="Which package: fast_tsp, elkai (tours), pyvrp, hygese (routes), ortools (both). "
                "(library)"),
]  # fmt: skip
Model: TypeAlias = Annotated[
    str,
    option(REGIONS, "--model", metavar="NAME|FILE",
           help="Weights: auto, a name that `drhg models` lists, or a file. (neural)"),
]  # fmt: skip
Alternatives: TypeAlias = Annotated[
    int,
    option(REGIONS, "--alternatives", min=1, metavar="A",
           help="Repair each part A times, keep the shortest; one iteration. (neural)"),
]  # fmt: skip
Sample: TypeAlias = Annotated[
    bool, option(REGIONS, "--sample", help="Draw decisions instead of taking the best. (neural)")
]
Device: TypeAlias = Annotated[
    str,
    option(REGIONS, "--device", metavar="auto|cpu|cuda", help="Where the network runs. (neural)"),
]
Batch: TypeAlias = Annotated[
    bool,
    option(REGIONS, "--batch",
           help="All instances side by side, one batch per iteration. (neural)"),
]  # fmt: skip
Vehicles: TypeAlias = Annotated[
    int | None,
    option(SEARCH, "--vehicles", min=1, metavar="K",
           help="At most so many routes (CVRP), whatever the file says."),
]  # fmt: skip
Threads: TypeAlias = Annotated[
    int | None,
    option(
        SEARCH, "--threads", min=1, metavar="N", help="Number of threads; by default all cores."
    ),
]
Jobs: TypeAlias = Annotated[
    int | None,
    option(SEARCH, "-j", "--jobs", min=1, metavar="N",
           help="Solve so many instances at a time, each in a process of its own."),
]  # fmt: skip
RayAddress: TypeAlias = Annotated[
    str | None,
    option(SEARCH, "--ray", metavar="ADDRESS|local",
            help="Solve the instances on a Ray cluster, side by side (extra `ray`)."),
]  # fmt: skip
Output: TypeAlias = Annotated[
    Path | None,
    option(OUTPUT, "-o", "--output", metavar="OUT",
           help="Write the solution to this file; with several instances, a folder."),
]  # fmt: skip
TraceFile: TypeAlias = Annotated[
    Path | None,
    option(OUTPUT, "--trace", metavar="FILE",
           help="Write one JSON line per improvement, as it happens."),
]  # fmt: skip
Picture: TypeAlias = Annotated[
    Path | None,
    option(OUTPUT, "--plot", metavar="PNG",
           help="Draw the solution; with several instances, into a folder."),
]  # fmt: skip
Printed: TypeAlias = Annotated[
    Format,
    option(OUTPUT, "-f", "--format", metavar="table|json", help="How to print the results."),
]
Quiet: TypeAlias = Annotated[
    bool, option(OUTPUT, "-q", "--quiet", help="No progress, only errors.")
]


# --- solve --------------------------------------------------------------------------------------


Job: TypeAlias = tuple[Path, Path | None, Path | None]
"""An instance's file, and where its solution and its picture go."""

Codes: TypeAlias = list[int]


@dataclass(frozen=True)
class SolveOptions:
    """What `drhg solve` was asked to do, the same for every file."""

    search: dict[str, Any]  # keyword arguments of `drhg.solve`
    init: str
    vehicles: int | None
    output: Path | None
    trace: Path | None
    plot: Path | None
    format: Format
    quiet: bool
    batch: bool


@app.command(
    epilog=epilog(
        [
            ("drhg solve berlin52.tsp", "ten seconds, result as a table"),
            ("drhg solve X-n101-k25.vrp -t 60 -o best.sol", "one minute, routes to a file"),
            ("drhg solve a280.tsp -n 5000 -s 7", "the same result every time"),
            ("drhg solve a280.tsp -t 60 -i best.tour", "go on from a known tour"),
            ("drhg solve *.vrp -t 30 -o plans/ -f json", "many files, one JSON line each"),
            ("drhg solve *.vrp -t 30 -o plans/ -j 8", "the same, eight at a time"),
            ("drhg solve *.vrp -t 30 -o plans/ --ray local", "the same on a Ray cluster"),
            ("drhg solve a280.tsp --repair neural -n 1000", "the paper's loop and a network"),
            ("drhg solve *.tsp --repair neural --batch", "the same, as one batch"),
        ],
        "Without any limit the search runs for ten seconds. The first limit that is met ends it.\n"
        "Ctrl-C ends it too: the best solution so far is checked, written and reported.\n"
        "The same seed, iterations and threads give the same result.",
    )
)
def solve(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE",
                       help="Instances: TSPLIB, CVRPLIB or JSON files, perhaps .gz; - is standard "
                            "input."),
    ],
    time_limit: TimeLimit = None,
    max_iters: MaxIters = None,
    no_improve: NoImprove = None,
    target: Target = None,
    seed: Seed = 0,
    init: Init = "auto",
    repair: RepairName = "auto",
    vehicles: Vehicles = None,
    threads: Threads = None,
    jobs: Jobs = None,
    ray: RayAddress = None,
    k: KRange = None,
    centres: Centres = "uniform",
    destroy: DestroyName = "auto",
    depot_edges: DepotEdges = "adjacent",
    library: Library = "auto",
    model: Model = "auto",
    alternatives: Alternatives = 1,
    sample: Sample = False,
    device: Device = "auto",
    batch: Batch = False,
    output: Output = None,
    trace: TraceFile = None,
    plot: Picture = None,
    format: Printed = Format.table,
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """Solve one or more instances and report the best solutions found."""
    _known_names(init, repair)
    regions = {
        "k": _range(k), "centres": centres, "destroy": destroy, "depot_edges": depot_edges,
        "library": library, "model": model, "alternatives": alternatives,
        "sample": sample, "device": device,
    }  # fmt: skip
    _known_options(repair, regions, batch, init)
    if target is not None and math.isnan(target):
        raise typer.BadParameter("nan is not a cost.", param_hint="--target")
    search = {
        "time_limit": time_limit, "max_iters": max_iters, "no_improve": no_improve,
        "target": target, "seed": seed, "repair": repair, "threads": threads, **regions,
    }  # fmt: skip
    options = SolveOptions(search, init, vehicles, output, trace, plot, format, quiet, batch)
    away = "--ray" if ray is not None else "--jobs" if jobs is not None and jobs > 1 else None
    if away and trace is not None:
        raise typer.BadParameter(f"--trace follows one search at a time, not with {away}.")
    if away and batch:
        raise typer.BadParameter(f"--batch and {away} are two ways to solve many: choose one.")
    if away is None:
        raise typer.Exit(_solve_all(files, options))
    raise typer.Exit(_solve_away(files, options, ray, jobs))


def _known_names(init: str, repair: str) -> None:
    """Refuse unknown names before any file is read."""
    from drhg.solver import REPAIRS

    if repair not in REPAIRS:
        known = ", ".join(REPAIRS)
        raise typer.BadParameter(f"{repair!r} is not one of: {known}.", param_hint="--repair")
    if init not in _starts() and not Path(init).exists():
        known = ", ".join(_starts())
        raise typer.BadParameter(
            f"{init!r} is neither a start ({known}) nor a file.", param_hint="--init"
        )


def _range(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    try:
        low, high = (int(part) for part in text.split(","))
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not LOW,HIGH.", param_hint="--k") from None
    return low, high


def _known_options(repair: str, regions: dict[str, Any], batch: bool, init: str) -> None:
    """Refuse what the chosen search would not use, as the solver does, but before reading files."""
    from drhg.solver import RegionOptions

    try:
        RegionOptions(**regions).check(repair, None)
    except DrhgError as error:
        raise typer.BadParameter(
            f"--{error.reason.replace('depot_edges', 'depot-edges')}."
        ) from None
    if batch and repair != "neural":
        raise typer.BadParameter("--batch is for --repair neural only.")
    if batch and init not in _starts():
        raise typer.BadParameter("--batch starts from scratch, not from a file (--init).")


def _starts() -> tuple[str, ...]:
    from drhg.construct import STARTS

    return ("auto", *(name for name in STARTS if name != "auto"))


def _solve_all(files: Sequence[Path], options: SolveOptions) -> int:
    several = len(files) > 1
    outputs = _destinations(files, options.output, several, None)
    pictures = _destinations(files, options.plot, several, ".png")
    report = Report(options.format is Format.json)
    try:
        opened = Trace(options.trace, several)
    except OSError as error:
        raise typer.BadParameter(f"cannot write {options.trace}: {error.strerror}.") from None
    jobs = list(zip(files, outputs, pictures, strict=True))
    solve = _solve_batch if options.batch else _solve_each
    with opened as trace:
        codes = solve(jobs, options, report, trace)
    report.close()
    return _exit_code(codes)


def _solve_away(
    files: Sequence[Path], options: SolveOptions, address: str | None, workers: int | None
) -> int:
    """Solve all files side by side, in processes or on a Ray cluster; reported as they end."""
    from drhg.workers import spread

    outputs = _destinations(files, options.output, len(files) > 1, None)
    pictures = _destinations(files, options.plot, len(files) > 1, ".png")
    report = Report(options.format is Format.json)
    codes, jobs, tasks = [], [], []
    for path, output, picture in zip(files, outputs, pictures, strict=True):
        try:
            with blaming(path):
                instance = _read_instance(path, options.vehicles)
                start = _start(options.init, instance)
                jobs.append((path, _fitting(output, path, instance), picture))
                tasks.append((instance, start, options.search))
        except typer.Exit as failure:
            codes.append(failure.exit_code)
    cores = options.search["threads"] or 1
    workers = workers or max(1, (os.cpu_count() or 1) // cores)
    where: dict[str, Any] = {
        "workers": workers,
        "ray": address,
        "cores": cores,
        "stopped": STOP.requested,
    }
    patience = STOP.patient() if address is None else nullcontext()  # a cluster is not waited for
    with patience, closing(spread(_solve_task, tasks, **where)) as ends:
        for done in ends:
            path, output, picture = jobs[done.index]
            try:
                with blaming(path):
                    if done.error is not None:
                        raise done.error
                _deliver(path, done.value, output, picture, report)
                codes.append(OK)
            except typer.Exit as failure:
                codes.append(failure.exit_code)
    report.close()
    return _exit_code(codes)


def _solve_task(task: tuple[Instance, str | Solution, dict[str, Any]]) -> Result:
    """On a worker: one instance, on as many threads as it was given cores."""
    from drhg import solver

    instance, start, search = task
    return solver.solve(instance, init=start, **search | {"threads": search["threads"] or 1})


def _exit_code(codes: Sequence[int]) -> int:
    """Of several instances: theirs if they agree, else that some failed."""
    if STOP.requested():
        return STOP.exit_code
    failed = set(codes) - {OK}
    if not failed:
        return OK
    if OK in codes:
        return SOME_FAILED
    return failed.pop() if len(failed) == 1 else BAD_INPUT


def _destinations(
    files: Sequence[Path], out: Path | None, several: bool, suffix: str | None
) -> list[Path | None]:
    """Where the result of each file goes; `suffix` None means that the problem decides."""
    if out is None:
        return [None] * len(files)
    if several and out.exists() and not out.is_dir():
        raise typer.BadParameter(f"{out} is a file; several instances need a folder.")
    folder = out if several or out.is_dir() else out.parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise typer.BadParameter(f"cannot make the folder {folder}: {error.strerror}.") from None
    if not os.access(folder, os.W_OK):
        raise typer.BadParameter(f"cannot write to the folder {folder}.")
    if folder is not out:
        if suffix is not None and out.suffix.lower() not in PICTURES:
            raise typer.BadParameter(f"{out} is no picture; it may end in {', '.join(PICTURES)}.")
        return [out]
    stems = [path.stem for path in files]
    twice = sorted({stem for stem in stems if stems.count(stem) > 1})
    if twice:
        raise typer.BadParameter(f"two instances are called {twice[0]!r}: they would collide.")
    return [folder if suffix is None else folder / f"{stem}{suffix}" for stem in stems]


def _solve_each(jobs: Sequence[Job], options: SolveOptions, report: Report, trace: Trace) -> Codes:
    """One instance after the other; the exit code of each."""
    codes = []
    for path, output, picture in jobs:
        try:
            with blaming(path):
                instance = _read_instance(path, options.vehicles)
                start = _start(options.init, instance)
                output = _fitting(output, path, instance)
            with STOP.patient():
                with blaming(path):
                    result = _search(instance, start, options, trace)
                _deliver(path, result, output, picture, report)
            codes.append(OK)
        except typer.Exit as failure:
            codes.append(failure.exit_code)
        except Interrupted:
            pass
        if STOP.requested():
            break
    return codes


def _solve_batch(jobs: Sequence[Job], options: SolveOptions, report: Report, trace: Trace) -> Codes:
    """All instances side by side; the exit code of each."""
    codes = []
    read: list[tuple[Path, Instance, Path | None, Path | None]] = []
    for path, output, picture in jobs:
        try:
            with blaming(path):
                instance = _read_instance(path, options.vehicles)
                read.append((path, instance, _fitting(output, path, instance), picture))
        except typer.Exit as failure:
            codes.append(failure.exit_code)
    if not read:
        return codes
    with STOP.patient():
        try:
            with blaming(read[0][0]):
                results = _search_together([instance for _, instance, _, _ in read], options, trace)
        except typer.Exit as failure:
            return [*codes, failure.exit_code]
        for (path, _, output, picture), result in zip(read, results, strict=True):
            try:
                _deliver(path, result, output, picture, report)
                codes.append(OK)
            except typer.Exit as failure:
                codes.append(failure.exit_code)
    return codes


def _deliver(
    path: Path, result: Result, output: Path | None, picture: Path | None, report: Report
) -> None:
    """Write and report a result, each even if the other fails; `typer.Exit` tells what did."""
    if result.status == "infeasible":
        say(f"{path}: {_left_out(result)}")
        report.add(result)
        raise typer.Exit(INFEASIBLE)
    try:
        with blaming(path, SOME_FAILED):
            _save(result, output, picture)
    finally:
        report.add(result)


def _read_instance(path: Path, vehicles: int | None) -> Instance:
    from drhg.io import read

    instance = read(path)
    if vehicles is None:
        return instance
    if not instance.is_cvrp:
        raise DrhgError("--vehicles is for a CVRP, and this is a TSP", file=str(path))
    return replace(instance, vehicles=vehicles)


def _start(init: str, instance: Instance) -> str | Solution:
    """The name of a start, or the warm start read from a file and found valid."""
    if init in _starts():
        return init
    from drhg.io import read_solution
    from drhg.problem import validated

    try:
        return validated(instance, read_solution(init, instance))
    except DrhgError as error:
        raise type(error)(error.reason, file=error.file or init, line=error.line) from None


def _search(
    instance: Instance, start: str | Solution, options: SolveOptions, trace: Trace
) -> Result:
    from drhg import solver

    view = View(instance.name, options.search["time_limit"], options.quiet)

    def on_improve(point: TracePoint, solution: Solution) -> None:
        trace.add(point, instance.name)
        view.improved(point)

    with view:
        return solver.solve(
            instance, init=start, on_improve=on_improve, should_stop=STOP.requested,
            **options.search,
        )  # fmt: skip


def _search_together(
    instances: Sequence[Instance], options: SolveOptions, trace: Trace
) -> list[Result]:
    from drhg import solver

    name = f"mean of {len(instances)}"
    view = View(name, options.search["time_limit"], options.quiet)
    costs: dict[int, float] = {}

    def on_improve(i: int, point: TracePoint, solution: Solution) -> None:
        trace.add(point, instances[i].name)
        costs[i] = point.cost
        if len(costs) == len(instances):
            view.improved(replace(point, cost=sum(costs.values()) / len(costs)))

    with view:
        return solver.solve_many(
            instances, init=options.init, on_improve=on_improve, should_stop=STOP.requested,
            **{name: given for name, given in options.search.items() if name != "library"},
        )  # fmt: skip


def _left_out(result: Result) -> str:
    """Names the customers no route could take, numbered as in the file."""
    nodes = [str(node + 1) for node in result.unplaced]
    shown = ", ".join(nodes[:20]) + (f" and {len(nodes) - 20} more" if len(nodes) > 20 else "")
    return f"no feasible solution found; left out: {shown}"


def _fitting(output: Path | None, path: Path, instance: Instance) -> Path | None:
    """The file to write, its name completed or, before any time is spent, refused."""
    if output is None:
        return None
    suffix = ".sol" if instance.is_cvrp else ".tour"
    if output.is_dir():
        return output / f"{path.stem}{suffix}"
    if not output.suffix:
        return output.with_name(output.name + suffix)
    if output.suffix.lower() not in (suffix, ".json"):
        kind = instance.problem.upper()
        reason = f"a solution of this {kind} goes to a file that ends in {suffix} or .json"
        raise DrhgError(reason, file=str(output))
    return output


def _save(result: Result, output: Path | None, picture: Path | None) -> None:
    if output is not None:
        from drhg.io import write_solution

        write_solution(output, result.instance, result.solution, result.cost)
    if picture is not None and STOP.requested():
        say(f"{picture}: not drawn, interrupted")
    elif picture is not None:
        from drhg.plotting import save_solution

        save_solution(picture, result.instance, result.solution)


# --- check, generate, plot ----------------------------------------------------------------------


@app.command(
    epilog=epilog(
        [
            ("drhg check berlin52.tsp berlin52.tour", "cost, or every violation"),
            ("drhg check A-n32-k5.vrp plan.sol -f json", "the same for programs"),
        ]
    )
)
def check(
    instance: InstanceFile,
    solution: SolutionFile,
    format: Annotated[
        Format,
        typer.Option("-f", "--format", metavar="table|json", help="How to print the verdict."),
    ] = Format.table,
) -> None:
    """Check a solution against its instance: its cost, or everything that is wrong with it."""
    from drhg import problem

    task, answer = _read_both(instance, solution)
    assert answer is not None
    found = problem.check(task, answer)
    broken = any("does not exist" in violation for violation in found)
    cost = None if broken else problem.cost(task, answer)
    if format is Format.json:
        row = {"name": task.name, "problem": task.problem, "n": task.n, "cost": cost}
        print(json.dumps(row | {"valid": not found, "violations": found}))
    elif not found:
        routes = f" in {len(answer.routes)} routes" if task.is_cvrp else ""
        print(f"{task.name}: valid, cost {cost}{routes}")
    for violation in found:
        say(f"{solution}: {violation}")
    raise typer.Exit(BAD_INPUT if found else OK)


def _read_both(instance: Path, solution: Path | None) -> tuple[Instance, Solution | None]:
    from drhg.io import read, read_solution

    with blaming(instance):
        task = read(instance)
    if solution is None:
        return task, None
    with blaming(solution):
        return task, read_solution(solution, task)


@app.command(
    epilog=epilog(
        [
            ("drhg generate uniform-tsp -n 1000 -s 1 -o cities.tsp", "a thousand random cities"),
            ("drhg generate x-cvrp -n 200 -c 10 -o bench/", "ten plans with seeds 0 to 9"),
            ("drhg generate uniform-cvrp -o - | drhg solve -", "through a pipe"),
        ],
        "Files have whole coordinates from 0 to 1,000,000 (x-cvrp: to 1,000) and rounded distances "
        "(EUC_2D). With --unrounded they have the unit square and distances of type EXACT, which "
        "only drhg reads.",
    )
)
def generate(
    kind: Annotated[Kind, typer.Argument(metavar="KIND", help=f"One of {', '.join(Kind)}.")],
    n: Annotated[
        int, typer.Option("-n", "--nodes", min=1, metavar="N", help="Cities, or customers.")
    ] = 100,
    seed: Annotated[
        int, typer.Option("-s", "--seed", min=0, metavar="N", help="The (first) seed.")
    ] = 0,
    count: Annotated[
        int,
        typer.Option("-c", "--count", min=1, metavar="N", help="How many, with seeds counting up."),
    ] = 1,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="OUT", help="File to write; a folder for many."),
    ] = None,
    unrounded: Annotated[
        bool, typer.Option("--unrounded", help="Unit square, distances not rounded.")
    ] = False,
) -> None:
    """Make random instances; the same kind, size and seed always give the same file."""
    from drhg import generate as generators
    from drhg import io

    if unrounded and kind is Kind.x_cvrp:
        raise typer.BadParameter("x-cvrp is on a grid of whole numbers.", param_hint="--unrounded")
    if count > 1 and str(output) == io.STANDARD:
        raise typer.BadParameter("standard output takes one instance.", param_hint="--count")
    make: Callable[[int, int], Instance] = getattr(generators, kind.value.replace("-", "_"))
    folder = output if output is not None and (count > 1 or output.is_dir()) else None
    with blaming(output or Path(".")):
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
        for s in range(seed, seed + count):
            instance = make(n, s) if unrounded else generators.rounded(make(n, s))
            suffix = ".vrp" if instance.is_cvrp else ".tsp"
            path = (folder or Path()) / f"{kind.value}-n{n}-s{s}{suffix}"
            if output is not None and folder is None:
                path = output
            if str(path) == io.STANDARD:
                io.write_instance(path, instance)
            else:
                io.write_instance(path, replace(instance, name=io.stem(path)))
                print(path)


@app.command(
    epilog=epilog(
        [
            ("drhg plot berlin52.tsp -o cities.png", "the nodes alone"),
            ("drhg plot berlin52.tsp berlin52.tour -o tour.pdf", "with a tour, as PDF"),
            ("drhg plot berlin52.tsp --film -o film.png", "one step of destroy and repair"),
            ("drhg plot berlin52.tsp --animate -t 5 -o run.gif", "watch five seconds of search"),
            ("drhg plot --trace run.jsonl -o cost.png", "what `drhg solve --trace` wrote"),
            ("drhg plot --training run/log.jsonl -o curve.png", "what `drhg train` wrote"),
        ]
    )
)
def plot(
    instance: Annotated[
        Path | None,
        typer.Argument(metavar="INSTANCE", help="As for `drhg check`.", show_default=False),
    ] = None,
    solution: Annotated[
        Path | None,
        typer.Argument(metavar="SOLUTION", help="As for `drhg check`.", show_default=False),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="PNG",
                     help="Picture to write (.png, .pdf, .svg, or .gif); by default NAME.png."),
    ] = None,
    title: Annotated[
        str | None, typer.Option("--title", metavar="TEXT", help="Instead of name and cost.")
    ] = None,
    film: Annotated[
        bool, typer.Option("--film", help="Five pictures: a step of destroy and repair.")
    ] = False,
    animate: Annotated[
        bool, typer.Option("--animate", help="Solve, and film the search as a GIF.")
    ] = False,
    time_limit: Annotated[
        float, typer.Option("-t", "--time-limit", min=0, metavar="SECONDS", help="To animate.")
    ] = 5.0,
    seed: Annotated[
        int, typer.Option("-s", "--seed", min=0, metavar="N", help="Of a film.")
    ] = 0,
    trace: Annotated[
        list[Path] | None,
        typer.Option("--trace", metavar="FILE", help="Cost over time, of one or more runs."),
    ] = None,
    training: Annotated[
        list[Path] | None,
        typer.Option("--training", metavar="FILE", help="Curves of one or more training runs."),
    ] = None,
) -> None:  # fmt: skip
    """Draw an instance, a solution, a step of the search, a whole search or its cost over time."""
    sources = (instance is not None) + bool(trace) + bool(training)
    if sources != 1 or film + animate + bool(trace) + bool(training) > 1:
        raise typer.BadParameter(
            "one of: an instance (with --film or --animate), --trace, or --training."
        )
    from drhg import plotting

    if training:
        picture = output or training[0].with_suffix(".png")
        logs: dict[str, list[dict[str, float]]] = {}
        for path in training:
            with blaming(path):
                logs[path.parent.name or path.stem] = read_log(path)
        with blaming(picture):
            plotting.save_training(picture, logs, title or "")
    elif trace:
        picture = output or trace[0].with_suffix(".png")
        runs: dict[str, list[TracePoint]] = {}
        for path in trace:
            with blaming(path):
                for name, run in read_trace(path).items():
                    runs[f"{path.stem}: {name}" if name in runs else name] = run
        with blaming(picture):
            plotting.save_convergence(picture, runs, title or "")
    else:
        assert instance is not None
        task, answer = _read_both(instance, solution)
        picture = output or Path(f"{instance.stem}.{'gif' if animate else 'png'}")
        with blaming(picture):
            if film:
                plotting.film_strip(picture, task, answer, seed=seed)
            elif animate:
                with STOP.patient():
                    asked = STOP.requested
                    frames = plotting.watch(task, answer, time_limit, seed, should_stop=asked)
                    plotting.save_animation(picture, task, frames)
            else:
                plotting.save_solution(picture, task, answer, title)
    print(picture)
    raise typer.Exit(STOP.exit_code)


app.add_typer(training_commands)

"""The command line: `drhg solve | check | generate | plot | label | train | models | warmup`.

Results go to stdout, everything else to stderr. Nothing heavy is imported before a command needs
it, and the signal handler stands before that, so an interrupt at any moment ends cleanly.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeAlias

import typer

from drhg.benchmark.commands import app as bench
from drhg.cli.shell import (
    BAD_INPUT,
    INFEASIBLE,
    NO_SEARCH,
    OK,
    SOME_FAILED,
    STOP,
    USAGE,
    Format,
    Interrupted,
    blaming,
    option,
)
from drhg.cli.targets import (
    PICTURES,
    STANDARD,
    Destination,
    apart,
    is_folder,
    name_of,
    pictures,
    solutions,
    try_file,
)
from drhg.cli.training import app as training_commands
from drhg.cli.warming import app as warming_commands
from drhg.errors import DrhgError
from drhg.help_pages import App, epilog
from drhg.report import Report, Tally, Trace, View, read_log, read_trace, say

if TYPE_CHECKING:
    from drhg.problem import Instance, Solution
    from drhg.solver import Result, TracePoint

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
    "  5  no search took place (say, time was up before it began), and the first\n"
    "     plan leaves customers out\n"
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
        context: Any = getattr(error, "ctx", None)
        if type(error).__name__ == "NoArgsIsHelpError":  # no command at all
            typer.echo(context.get_help(), err=True)
            return USAGE
        message = error.format_message() if hasattr(error, "format_message") else str(error)
        path = context.command_path if context is not None else "drhg"
        say(f"{message} Try '{path} --help'." if message.endswith(".") else message)
        return USAGE
    if isinstance(error, BrokenPipeError):
        return SOME_FAILED
    if isinstance(error, OSError) and error.filename is not None:
        say(f"{error.filename}: {error.strerror}")
        return BAD_INPUT
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


Codes: TypeAlias = list[int]


@dataclass(frozen=True)
class Job:
    """An instance's file, its place among all, and where its solution and its picture go."""

    place: int
    path: Path
    target: Destination | None
    picture: Path | None


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
    _known_streams(files, options)
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
    from drhg.methods import REPAIRS

    if repair not in REPAIRS:
        known = ", ".join(REPAIRS)
        raise typer.BadParameter(f"{repair!r} is not one of: {known}.", param_hint="--repair")
    if init not in (*_starts(), str(STANDARD)) and not Path(init).exists():
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
    from drhg.methods import RegionOptions

    try:
        RegionOptions(**regions).check(repair, None)
    except DrhgError as error:
        reason = error.reason.replace("depot_edges", "depot-edges")
        is_option = reason.split()[0].replace("-", "_") in regions
        raise typer.BadParameter(f"{'--' * is_option}{reason}.") from None
    if batch and repair != "neural":
        raise typer.BadParameter("--batch is for --repair neural only.")
    if batch and init not in _starts():
        raise typer.BadParameter("--batch starts from scratch, not from a file (--init).")


def _starts() -> tuple[str, ...]:
    from drhg.construct import STARTS

    return ("auto", *(name for name in STARTS if name != "auto"))


def _known_streams(files: Sequence[Path], options: SolveOptions) -> None:
    """Refuse two uses of standard input or output, and to write over what is read."""
    if [*files, Path(options.init)].count(STANDARD) > 1:
        raise typer.BadParameter("standard input (-) can be read only once.")
    if options.init == str(STANDARD) and len(files) > 1:
        raise typer.BadParameter("-i - is for one instance.")
    if options.output == STANDARD and options.format is Format.json:
        raise typer.BadParameter("-o - and -f json both write to standard output: choose one.")
    if STANDARD in (options.trace, options.plot):
        raise typer.BadParameter("only a solution (-o) goes to standard output (-).")
    written = {"--output": options.output, "--plot": options.plot, "--trace": options.trace}
    apart({path: "an instance" for path in files}, written)
    apart({Path(options.init): "the start (--init)"}, {"--trace": options.trace})


def _jobs(files: Sequence[Path], options: SolveOptions) -> list[Job]:
    """All files with where their results go, which has been tried."""
    targets = solutions(files, options.output)
    drawn = pictures(files, options.plot)
    return [Job(*job) for job in zip(range(len(files)), files, targets, drawn, strict=True)]


def _report(options: SolveOptions) -> Report:
    if options.output != STANDARD:
        return Report(options.format is Format.json)
    return Report(False, silent=options.quiet, stderr=True)


def _solve_all(files: Sequence[Path], options: SolveOptions) -> int:
    jobs = _jobs(files, options)
    report = _report(options)
    try:
        if options.trace is not None:
            options.trace.parent.mkdir(parents=True, exist_ok=True)
        opened = Trace(options.trace, len(files) > 1)
    except OSError as error:
        raise typer.BadParameter(f"cannot write {options.trace}: {error.strerror}.") from None
    solve = _solve_batch if options.batch else _solve_each
    with opened as trace:
        codes = solve(jobs, options, report, trace)
    report.close()
    return _exit_code(codes)


def _solve_away(
    files: Sequence[Path], options: SolveOptions, address: str | None, workers: int | None
) -> int:
    """Solve all files side by side, in processes or on a Ray cluster; reported in their order."""
    from drhg.workers import spread

    report = _report(options)
    codes: Codes = []
    jobs: list[tuple[Job, Path | None]] = []
    tasks = []
    for job in _jobs(files, options):
        with _failing_alone(job, codes, report):
            instance, start, output = _prepared(job, options)
            jobs.append((job, output))
            tasks.append((instance, start, options.search))
    cores = options.search["threads"] or 1
    workers = workers or max(1, (os.cpu_count() or 1) // cores)
    ends = spread(
        _solve_task, tasks, workers=workers, ray=address, cores=cores, stopped=STOP.requested
    )
    in_the_way = options.format is Format.json and sys.stdout.isatty()  # rows on the same terminal
    tally = Tally(len(tasks), options.quiet, live=not in_the_way)
    with STOP.patient(), closing(ends), tally:
        for done in ends:
            job, output = jobs[done.index]
            tally.ended(job.path, done.value)
            with _failing_alone(job, codes, report):
                with blaming(job.path):
                    if done.error is not None:
                        raise _expected(done.error)
                _deliver(job, done.value, output, report)
                codes.append(OK)
    report.close()
    return _exit_code(codes)


def _expected(error: Exception) -> Exception:
    """An error of one task, as one that does not end the others."""
    if isinstance(error, (DrhgError, OSError)):
        return error
    return DrhgError(f"unexpected error: {error}")


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


@contextmanager
def _failing_alone(job: Job, codes: Codes, report: Report) -> Iterator[None]:
    """A job that fails has an exit code and no result, and the others go on."""
    try:
        yield
    except typer.Exit as failure:
        codes.append(failure.exit_code)
        report.add(job.place, job.path, None)


def _prepared(job: Job, options: SolveOptions) -> tuple[Instance, str | Solution, Path | None]:
    """What a job needs: its instance, the start of its search, and the file to write."""
    with blaming(job.path):
        instance = _read_instance(job.path, options.vehicles)
        start = _start(options.init, instance, job.path)
        return instance, start, None if job.target is None else job.target.of(instance)


def _solve_each(jobs: Sequence[Job], options: SolveOptions, report: Report, trace: Trace) -> Codes:
    """One instance after the other; the exit code of each."""
    codes: Codes = []
    for job in jobs:
        with suppress(Interrupted), _failing_alone(job, codes, report):
            instance, start, output = _prepared(job, options)
            with STOP.patient():
                with blaming(job.path):
                    result = _search(instance, start, options, trace)
                _deliver(job, result, output, report)
            codes.append(OK)
        if STOP.requested():
            break
    return codes


def _solve_batch(jobs: Sequence[Job], options: SolveOptions, report: Report, trace: Trace) -> Codes:
    """All instances side by side; the exit code of each."""
    codes: Codes = []
    read: list[tuple[Job, Instance, Path | None]] = []
    for job in jobs:
        with _failing_alone(job, codes, report):
            instance, _, output = _prepared(job, options)
            read.append((job, instance, output))
    if not read:
        return codes
    with STOP.patient():
        try:
            with blaming(read[0][0].path):
                results = _search_together([instance for _, instance, _ in read], options, trace)
        except typer.Exit as failure:
            return [*codes, failure.exit_code]
        for (job, _, output), result in zip(read, results, strict=True):
            with _failing_alone(job, codes, report):
                _deliver(job, result, output, report)
                codes.append(OK)
    return codes


def _deliver(job: Job, result: Result, output: Path | None, report: Report) -> None:
    """Write and report a result, each even if the other fails; `typer.Exit` tells what did."""
    if not STOP.requested():  # who interrupts knows that the search was short
        for warning in result.warnings:
            say(f"{job.path}: {warning}")
    code = {"infeasible": INFEASIBLE, "no_search": NO_SEARCH}.get(result.status)
    try:
        if code is not None:
            say(f"{job.path}: {_left_out(result, job.path)}")
            raise typer.Exit(code)
        with blaming(job.path, SOME_FAILED):
            _save(result, job.path, output, job.picture)
    finally:
        report.add(job.place, job.path, result)


def _left_out(result: Result, path: Path) -> str:
    """Names the customers that no route could take."""
    from drhg.io import in_file_numbers
    from drhg.problem import from_zero

    shown, more = result.unplaced[:20], len(result.unplaced) - 20
    searched = result.status == "infeasible"
    reason = "no feasible solution found" if searched else "the first plan is not feasible"
    nodes = in_file_numbers(from_zero(*shown), path) + (f" and {more} more" if more > 0 else "")
    return f"{reason}; left out: {nodes}"


def _read_instance(path: Path, vehicles: int | None) -> Instance:
    from drhg.io import read

    instance = read(path)
    if vehicles is None:
        return instance
    if not instance.is_cvrp:
        raise DrhgError("--vehicles is for a CVRP, and this is a TSP", file=str(path))
    return replace(instance, vehicles=vehicles)


def _start(init: str, instance: Instance, path: Path) -> str | Solution:
    """The name of a start, or the warm start read from a file and found valid."""
    if init in _starts():
        return init
    from drhg.io import in_file_numbers, read_solution
    from drhg.problem import validated

    found = read_solution(init, instance, instance_file=path)
    try:
        return validated(instance, found)
    except DrhgError as error:
        raise type(error)(in_file_numbers(error.reason, init), file=init) from None


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


def _save(result: Result, path: Path, output: Path | None, picture: Path | None) -> None:
    for target in (output, picture):
        if target is not None:
            target.parent.mkdir(parents=True, exist_ok=True)
    if output is not None:
        from drhg.io import write_solution

        write_solution(output, result.instance, result.solution, result.cost, instance_file=path)
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
    from drhg.io import in_file_numbers

    task, answer = _read_both(instance, solution)
    assert answer is not None
    found = problem.check(task, answer)
    broken = any("does not exist" in violation for violation in found)
    cost = None if broken else problem.cost(task, answer)
    if format is Format.json:
        row: dict[str, Any] = {"file": str(instance), "solution": str(solution), "name": task.name}
        row |= {"problem": task.problem, "n": task.n, "cost": cost}
        print(json.dumps(row | {"valid": not found, "violations": found}))
    elif not found:
        routes = f" in {len(answer.routes)} routes" if task.is_cvrp else ""
        print(f"{task.name}: valid, cost {cost}{routes}")
    for violation in found:
        say(f"{solution}: {in_file_numbers(violation, solution)}")
    raise typer.Exit(BAD_INPUT if found else OK)


def _read_both(instance: Path, solution: Path | None) -> tuple[Instance, Solution | None]:
    from drhg.io import read, read_solution

    if instance == solution == STANDARD:
        raise typer.BadParameter("standard input (-) can be read only once.")
    with blaming(instance):
        task = read(instance)
    if solution is None:
        return task, None
    with blaming(solution):
        return task, read_solution(solution, task, instance_file=instance)


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
    known = (".tsp", ".vrp", ".json")
    many = output is not None and is_folder(count, output, "--output", known)
    folder = output if many else None
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
    picture = output or _picture_name(instance, [*(trace or ()), *(training or ())], animate)
    _known_picture(picture, (".gif",) if animate else PICTURES)
    from drhg import plotting

    if training:
        logs: dict[str, list[dict[str, float]]] = {}
        for path in training:
            with blaming(path):
                logs[path.parent.name or path.stem] = read_log(path)
        with blaming(_with_folder(picture)):
            plotting.save_training(picture, logs, title or "")
    elif trace:
        runs: dict[str, list[TracePoint]] = {}
        for path in trace:
            with blaming(path):
                for name, run in read_trace(path).items():
                    runs[f"{path.stem}: {name}" if name in runs else name] = run
        with blaming(_with_folder(picture)):
            plotting.save_convergence(picture, runs, title or "")
    else:
        assert instance is not None
        task, answer = _read_both(instance, solution)
        with blaming(_with_folder(picture)):
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


def _picture_name(instance: Path | None, logs: Sequence[Path], animate: bool) -> Path:
    """By default a picture is called after what it shows."""
    if instance is None:
        return logs[0].with_suffix(".png")
    return Path(f"{name_of(instance)}{'.gif' if animate else '.png'}")


def _known_picture(picture: Path, suffixes: Sequence[str]) -> None:
    """Refuse a picture that cannot be written before any time is spent on it."""
    with blaming(picture):
        if picture.suffix.lower() not in suffixes:
            reason = f"the name of this picture must end in {' or '.join(suffixes)}"
            raise DrhgError(reason, file=str(picture))
    try_file(picture, "--output")


def _with_folder(picture: Path) -> Path:
    picture.parent.mkdir(parents=True, exist_ok=True)
    return picture


app.add_typer(training_commands)
app.add_typer(warming_commands)

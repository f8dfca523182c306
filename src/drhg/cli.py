"""The command line: `drhg solve | check | generate | plot`.

Results go to stdout, everything else to stderr. Nothing heavy is imported before a command needs
it, and the signal handler stands before that, so an interrupt at any moment ends cleanly.
"""

from __future__ import annotations

import json
import math
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeAlias

import typer

from drhg.benchmark.commands import app as bench
from drhg.errors import DrhgError
from drhg.report import Report, Trace, View, read_trace, say

if TYPE_CHECKING:
    from drhg.problem import Instance, Solution
    from drhg.solver import Result, TracePoint

OK, SOME_FAILED, USAGE, BAD_INPUT, INFEASIBLE = 0, 1, 2, 3, 4
PICTURES = (".png", ".pdf", ".svg")

UsageError: type[Exception] = typer.BadParameter.__mro__[1]


class Interrupted(BaseException):
    """A signal came while there was no solution yet to save."""


class Stop:
    """The first SIGINT or SIGTERM asks to stop, the second one ends the process on the spot.

    While a solver runs (`patient`), the request is a flag that the solver reads; anywhere else it
    is raised as `Interrupted`, because there is nothing to wait for.
    """

    def __init__(self) -> None:
        self.signum = 0
        self._patient = False

    def install(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._handle)

    def _handle(self, signum: int, frame: FrameType | None) -> None:
        if self.signum:
            if sys.stderr.isatty():
                os.write(2, b"\x1b[?25h\n")  # a live display may have hidden the cursor
            os._exit(128 + signum)
        self.signum = signum
        if not self._patient:
            raise Interrupted

    def requested(self) -> bool:
        return self.signum != 0

    @property
    def exit_code(self) -> int:
        return 128 + self.signum if self.signum else OK

    @contextmanager
    def patient(self) -> Iterator[None]:
        """Finish what is inside, even when a signal arrives meanwhile."""
        self._patient = True
        try:
            yield
        finally:
            self._patient = False


STOP = Stop()


class Format(StrEnum):
    table = "table"
    json = "json"


class Kind(StrEnum):
    uniform_tsp = "uniform-tsp"
    clustered_tsp = "clustered-tsp"
    uniform_cvrp = "uniform-cvrp"
    x_cvrp = "x-cvrp"


def _epilog(examples: Sequence[tuple[str, str]], note: str = "") -> str:
    width = max(len(command) for command, _ in examples)
    lines = [
        f"  [cyan]{c}[/cyan]{' ' * (width - len(c))}   [dim]{what}[/dim]" for c, what in examples
    ]
    return "\n".join(["[bold]Examples[/bold]", *lines, *(["", note] if note else [])])


EXIT_CODES = (
    "[bold]Exit codes[/bold]\n"
    "  0  all went well\n"
    "  1  some of several instances failed, or a result could not be written\n"
    "  2  the command line is wrong\n"
    "  3  an instance or a solution is not valid\n"
    "  4  no feasible solution was found; the customers left out are named\n"
    "  130, 143  interrupted (Ctrl-C, SIGTERM), with the best solution written"
)

app = typer.Typer(
    name="drhg",
    help="Solve travelling salesman (TSP) and capacitated vehicle routing problems (CVRP) "
    "by destroy and repair on hyper-graphs.",
    epilog=_epilog(
        [
            ("drhg generate uniform-tsp -n 1000 -o cities.tsp", "make a problem"),
            ("drhg solve cities.tsp -t 10 -o cities.tour", "solve it"),
            ("drhg check cities.tsp cities.tour", "verify the answer"),
            ("drhg plot cities.tsp cities.tour -o cities.png", "look at it"),
        ],
        EXIT_CODES,
    ),
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
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
    except UsageError as error:
        message = error.format_message() if hasattr(error, "format_message") else str(error)
        if not message:  # no command at all: the help has been shown
            return USAGE
        context = getattr(error, "ctx", None)
        path = context.command_path if context is not None else "drhg"
        say(f"{message} Try '{path} --help'." if message.endswith(".") else message)
        return USAGE
    except BrokenPipeError:
        return SOME_FAILED
    except DrhgError as error:
        if os.environ.get("DRHG_DEBUG"):
            raise
        say(str(error))
        return BAD_INPUT
    except Exception as error:
        if os.environ.get("DRHG_DEBUG"):
            raise
        say(f"unexpected {type(error).__name__}: {error} (DRHG_DEBUG=1 shows where)")
        return SOME_FAILED


@contextmanager
def _blaming(path: Path, code: int = BAD_INPUT) -> Iterator[None]:
    """The one way out of an expected error: a line `file:line: reason`, and an exit code."""
    try:
        yield
    except (DrhgError, OSError) as error:
        if os.environ.get("DRHG_DEBUG"):
            raise
        if isinstance(error, OSError):
            say(f"{error.filename or path}: {error.strerror or error}")
        elif error.file is not None:
            say(str(error))
        else:
            line = "" if error.line is None else f"{error.line}: "
            say(f"{path}: {line}{error.reason}")
        raise typer.Exit(code) from None


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


def _option(panel: str | None, *names: str, help: str, **more: Any) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=panel, **more)


STOPPING, SEARCH, OUTPUT = "When to stop", "How to search", "What to write"

InstanceFile: TypeAlias = Annotated[Path, typer.Argument(help="A TSPLIB or CVRPLIB file.")]
SolutionFile: TypeAlias = Annotated[Path, typer.Argument(help="A tour (.tour) or routes (.sol).")]
TimeLimit: TypeAlias = Annotated[
    float | None,
    _option(STOPPING, "-t", "--time-limit", min=0, metavar="SECONDS",
            help="Stop after so many seconds per instance."),
]  # fmt: skip
MaxIters: TypeAlias = Annotated[
    int | None,
    _option(STOPPING, "-n", "--max-iters", min=0, metavar="ITERS",
            help="Stop after so many iterations."),
]  # fmt: skip
NoImprove: TypeAlias = Annotated[
    int | None,
    _option(STOPPING, "--no-improve", min=1, metavar="ITERS",
            help="Stop after so many iterations without a better solution."),
]  # fmt: skip
Target: TypeAlias = Annotated[
    float | None, _option(STOPPING, "--target", metavar="COST", help="Stop at this cost or below.")
]
Seed: TypeAlias = Annotated[
    int, _option(SEARCH, "-s", "--seed", min=0, help="Seed of all random choices.")
]
Init: TypeAlias = Annotated[
    str,
    _option(SEARCH, "-i", "--init", metavar="NAME|FILE",
            help="Start: auto, insertion, sweep, savings, space-filling, greedy, "
            "or a file with a tour or routes."),
]  # fmt: skip
RepairName: TypeAlias = Annotated[
    str,
    _option(SEARCH, "--repair", metavar="NAME",
            help="What reconnects the destroyed part: auto, local, insertion, neural."),
]  # fmt: skip
Vehicles: TypeAlias = Annotated[
    int | None,
    _option(SEARCH, "--vehicles", min=1, metavar="K",
            help="At most so many routes (CVRP), whatever the file says."),
]  # fmt: skip
Threads: TypeAlias = Annotated[
    int | None, _option(SEARCH, "--threads", min=1, metavar="N", help="Number of threads.")
]
RayAddress: TypeAlias = Annotated[
    str | None,
    _option(SEARCH, "--ray", metavar="ADDRESS|local",
            help="Solve the instances on a Ray cluster, side by side (extra `ray`)."),
]  # fmt: skip
Output: TypeAlias = Annotated[
    Path | None,
    _option(OUTPUT, "-o", "--output", metavar="OUT",
            help="Write the solution to this file; with several instances, a folder."),
]  # fmt: skip
TraceFile: TypeAlias = Annotated[
    Path | None,
    _option(OUTPUT, "--trace", metavar="FILE",
            help="Write one JSON line per improvement, as it happens."),
]  # fmt: skip
Picture: TypeAlias = Annotated[
    Path | None,
    _option(OUTPUT, "--plot", metavar="PNG",
            help="Draw the solution; with several instances, into a folder."),
]  # fmt: skip
Printed: TypeAlias = Annotated[
    Format, _option(OUTPUT, "-f", "--format", help="How to print the results.")
]
Quiet: TypeAlias = Annotated[
    bool, _option(OUTPUT, "-q", "--quiet", help="No progress, only errors.")
]


# --- solve --------------------------------------------------------------------------------------


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


@app.command(
    epilog=_epilog(
        [
            ("drhg solve berlin52.tsp", "ten seconds, result as a table"),
            ("drhg solve X-n101-k25.vrp -t 60 -o best.sol", "one minute, routes to a file"),
            ("drhg solve a280.tsp -n 5000 -s 7", "the same result every time"),
            ("drhg solve a280.tsp -t 60 -i best.tour", "go on from a known tour"),
            ("drhg solve *.vrp -t 30 -o plans/ -f json", "many files, one JSON line each"),
            ("drhg solve *.vrp -t 30 -o plans/ --ray local", "the same, side by side on Ray"),
        ],
        "Without any limit the search runs for ten seconds. The first limit that is met ends it.\n"
        "Ctrl-C ends it too: the best solution so far is checked, written and reported.\n"
        "The same seed, iterations and threads give the same result.",
    )
)
def solve(
    files: Annotated[list[Path], typer.Argument(help="Instances: TSPLIB or CVRPLIB files.")],
    time_limit: TimeLimit = None,
    max_iters: MaxIters = None,
    no_improve: NoImprove = None,
    target: Target = None,
    seed: Seed = 0,
    init: Init = "auto",
    repair: RepairName = "auto",
    vehicles: Vehicles = None,
    threads: Threads = None,
    ray: RayAddress = None,
    output: Output = None,
    trace: TraceFile = None,
    plot: Picture = None,
    format: Printed = Format.table,
    quiet: Quiet = False,
) -> None:
    """Solve one or more instances and report the best solutions found."""
    _known_names(init, repair)
    if target is not None and math.isnan(target):
        raise typer.BadParameter("nan is not a cost.", param_hint="--target")
    search = {
        "time_limit": time_limit, "max_iters": max_iters, "no_improve": no_improve,
        "target": target, "seed": seed, "repair": repair, "threads": threads,
    }  # fmt: skip
    options = SolveOptions(search, init, vehicles, output, trace, plot, format, quiet)
    if ray is not None and trace is not None:
        raise typer.BadParameter("--trace follows a search on this machine, not on a cluster.")
    raise typer.Exit(
        _solve_all(files, options) if ray is None else _solve_away(files, options, ray)
    )


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
    codes = []
    with opened as trace:
        for path, output, picture in zip(files, outputs, pictures, strict=True):
            try:
                _solve_one(path, output, picture, options, report, trace)
                codes.append(OK)
            except typer.Exit as failure:
                codes.append(failure.exit_code)
            except Interrupted:
                pass
            if STOP.requested():
                break
    report.close()
    return _exit_code(codes)


def _solve_away(files: Sequence[Path], options: SolveOptions, address: str) -> int:
    """Solve all files side by side on a Ray cluster; whoever is done first is reported first."""
    from drhg.workers import spread

    outputs = _destinations(files, options.output, len(files) > 1, None)
    pictures = _destinations(files, options.plot, len(files) > 1, ".png")
    report = Report(options.format is Format.json)
    codes, jobs, tasks = [], [], []
    for path, output, picture in zip(files, outputs, pictures, strict=True):
        try:
            with _blaming(path):
                instance = _read_instance(path, options.vehicles)
                start = _start(options.init, instance)
                jobs.append((path, _fitting(output, path, instance), picture))
                tasks.append((instance, start, options.search))
        except typer.Exit as failure:
            codes.append(failure.exit_code)
    cores = options.search["threads"] or 1
    workers = max(1, (os.cpu_count() or 1) // cores)
    with closing(spread(_solve_task, tasks, workers=workers, ray=address, cores=cores)) as ends:
        for done in ends:
            path, output, picture = jobs[done.index]
            try:
                with _blaming(path):
                    if done.error is not None:
                        raise done.error
                report.add(done.value)
                if done.value.status == "infeasible":
                    say(f"{path}: {_left_out(done.value)}")
                    raise typer.Exit(INFEASIBLE)
                with _blaming(path, SOME_FAILED):
                    _save(done.value, output, picture)
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


def _solve_one(
    path: Path,
    output: Path | None,
    picture: Path | None,
    options: SolveOptions,
    report: Report,
    trace: Trace,
) -> None:
    """Read, solve, check, write and report one instance; `typer.Exit` tells what went wrong."""
    with _blaming(path):
        instance = _read_instance(path, options.vehicles)
        start = _start(options.init, instance)
        output = _fitting(output, path, instance)
    with STOP.patient():
        with _blaming(path):
            result = _search(instance, start, options, trace)
        report.add(result)
        if result.status == "infeasible":
            say(f"{path}: {_left_out(result)}")
            raise typer.Exit(INFEASIBLE)
        with _blaming(path, SOME_FAILED):
            _save(result, output, picture)


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

    view = View(instance, options.search["time_limit"], options.quiet)

    def on_improve(point: TracePoint, solution: Solution) -> None:
        trace.add(point, instance.name)
        view.improved(point)

    with view:
        return solver.solve(
            instance, init=start, on_improve=on_improve, should_stop=STOP.requested,
            **options.search,
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
    epilog=_epilog(
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
        Format, typer.Option("-f", "--format", help="How to print the verdict.")
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

    with _blaming(instance):
        task = read(instance)
    if solution is None:
        return task, None
    with _blaming(solution):
        return task, read_solution(solution, task)


@app.command(
    epilog=_epilog(
        [
            ("drhg generate uniform-tsp -n 1000 -s 1 -o cities.tsp", "a thousand random cities"),
            ("drhg generate x-cvrp -n 200 -c 10 -o bench/", "ten plans with seeds 0 to 9"),
        ]
    )
)
def generate(
    kind: Annotated[Kind, typer.Argument(help="What kind of instance.")],
    n: Annotated[int, typer.Option("-n", "--nodes", min=1, help="Cities, or customers.")] = 100,
    seed: Annotated[int, typer.Option("-s", "--seed", min=0, help="The (first) seed.")] = 0,
    count: Annotated[
        int, typer.Option("-c", "--count", min=1, help="How many, with seeds counting up.")
    ] = 1,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="OUT", help="File to write; a folder for many."),
    ] = None,
) -> None:
    """Make random instances; the same kind, size and seed always give the same file."""
    from drhg import generate as generators
    from drhg.io import write_instance

    make: Callable[[int, int], Instance] = getattr(generators, kind.value.replace("-", "_"))
    folder = output if output is not None and (count > 1 or output.is_dir()) else None
    with _blaming(output or Path(".")):
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
        for s in range(seed, seed + count):
            instance = make(n, s)
            suffix = ".vrp" if instance.is_cvrp else ".tsp"
            path = (folder or Path()) / f"{kind.value}-n{n}-s{s}{suffix}"
            if output is not None and folder is None:
                path = output
            write_instance(path, replace(instance, name=path.stem))
            print(path)


@app.command(
    epilog=_epilog(
        [
            ("drhg plot berlin52.tsp -o cities.png", "the nodes alone"),
            ("drhg plot berlin52.tsp berlin52.tour -o tour.pdf", "with a tour, as PDF"),
            ("drhg plot berlin52.tsp --film -o film.png", "one step of destroy and repair"),
            ("drhg plot berlin52.tsp --animate -t 5 -o run.gif", "watch five seconds of search"),
            ("drhg plot --trace run.jsonl -o cost.png", "what `drhg solve --trace` wrote"),
        ]
    )
)
def plot(
    instance: Annotated[
        Path | None, typer.Argument(help="A TSPLIB or CVRPLIB file.", show_default=False)
    ] = None,
    solution: Annotated[
        Path | None, typer.Argument(help="A tour (.tour) or routes (.sol).", show_default=False)
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="PNG",
                     help="Picture to write (.png, .pdf, .svg, or .gif); by default NAME.png."),
    ] = None,
    title: Annotated[str | None, typer.Option("--title", help="Instead of name and cost.")] = None,
    film: Annotated[
        bool, typer.Option("--film", help="Five pictures: a step of destroy and repair.")
    ] = False,
    animate: Annotated[
        bool, typer.Option("--animate", help="Solve, and film the search as a GIF.")
    ] = False,
    time_limit: Annotated[
        float, typer.Option("-t", "--time-limit", min=0, metavar="SECONDS", help="To animate.")
    ] = 5.0,
    seed: Annotated[int, typer.Option("-s", "--seed", min=0, help="Of a film.")] = 0,
    trace: Annotated[
        list[Path] | None,
        typer.Option("--trace", metavar="FILE", help="Cost over time, of one or more runs."),
    ] = None,
) -> None:  # fmt: skip
    """Draw an instance, a solution, a step of the search, a whole search or its cost over time."""
    if film + animate + bool(trace) > 1 or bool(trace) == (instance is not None):
        raise typer.BadParameter("one of: an instance (with --film or --animate), or --trace.")
    from drhg import plotting

    if instance is None:
        assert trace
        picture = output or trace[0].with_suffix(".png")
        runs: dict[str, list[TracePoint]] = {}
        for path in trace:
            with _blaming(path):
                for name, run in read_trace(path).items():
                    runs[f"{path.stem}: {name}" if name in runs else name] = run
        with _blaming(picture):
            plotting.save_convergence(picture, runs, title or "")
    else:
        task, answer = _read_both(instance, solution)
        picture = output or Path(f"{instance.stem}.{'gif' if animate else 'png'}")
        with _blaming(picture):
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


if __name__ == "__main__":
    main()

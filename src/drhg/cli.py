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
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from types import FrameType
from typing import IO, TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from drhg.errors import DrhgError

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from drhg.problem import Instance, Solution
    from drhg.solver import Result, TracePoint

OK, SOME_FAILED, USAGE, BAD_INPUT, INFEASIBLE = 0, 1, 2, 3, 4
DEFAULT_SECONDS = 10.0
PICTURES = (".png", ".pdf", ".svg")
LOG_EVERY = 1.0  # seconds between plain log lines

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
        _say(f"{message} Try '{path} --help'." if message.endswith(".") else message)
        return USAGE
    except BrokenPipeError:
        return SOME_FAILED
    except Exception as error:
        if os.environ.get("DRHG_DEBUG"):
            raise
        _say(f"unexpected {type(error).__name__}: {error} (DRHG_DEBUG=1 shows where)")
        return SOME_FAILED


def _say(message: str) -> None:
    """One line of complaint on stderr."""
    print(f"drhg: {' '.join(message.split())}", file=sys.stderr, flush=True)


def _complain(error: DrhgError | OSError, path: Path) -> None:
    """Report what is wrong with the file at `path` as `file:line: reason`."""
    if os.environ.get("DRHG_DEBUG"):
        raise error
    if isinstance(error, OSError):
        _say(f"{error.filename or path}: {error.strerror or error}")
    elif error.file is not None:
        _say(str(error))
    else:
        line = "" if error.line is None else f"{error.line}: "
        _say(f"{path}: {line}{error.reason}")


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


# --- solve ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SolveOptions:
    """What `drhg solve` was asked to do, the same for every file."""

    limits: dict[str, Any] = field(default_factory=dict)  # keyword arguments of `drhg.solve`
    init: str = "auto"
    vehicles: int | None = None
    output: Path | None = None
    trace: Path | None = None
    plot: Path | None = None
    format: Format = Format.table
    quiet: bool = False


STOPPING, SEARCH, OUTPUT = "When to stop", "How to search", "What to write"


@app.command(
    epilog=_epilog(
        [
            ("drhg solve berlin52.tsp", "ten seconds, result as a table"),
            ("drhg solve X-n101-k25.vrp -t 60 -o best.sol", "one minute, routes to a file"),
            ("drhg solve a280.tsp -n 5000 -s 7", "the same result every time"),
            ("drhg solve a280.tsp -t 60 -i best.tour", "go on from a known tour"),
            ("drhg solve *.vrp -t 30 -o plans/ -f json", "many files, one JSON line each"),
        ],
        "Without any limit the search runs for ten seconds. The first limit that is met ends it.\n"
        "Ctrl-C ends it too: the best solution so far is checked, written and reported.",
    )
)
def solve(
    files: Annotated[list[Path], typer.Argument(help="Instances: TSPLIB or CVRPLIB files.")],
    time_limit: Annotated[
        float | None,
        typer.Option(
            "-t",
            "--time-limit",
            min=0,
            metavar="SECONDS",
            rich_help_panel=STOPPING,
            help="Stop after so many seconds per instance.",
        ),
    ] = None,
    max_iters: Annotated[
        int | None,
        typer.Option(
            "-n",
            "--max-iters",
            min=0,
            metavar="ITERS",
            rich_help_panel=STOPPING,
            help="Stop after so many iterations.",
        ),
    ] = None,
    no_improve: Annotated[
        int | None,
        typer.Option(
            "--no-improve",
            min=1,
            metavar="ITERS",
            rich_help_panel=STOPPING,
            help="Stop after so many iterations without a better solution.",
        ),
    ] = None,
    target: Annotated[
        float | None,
        typer.Option(
            "--target", metavar="COST", rich_help_panel=STOPPING, help="Stop at this cost or below."
        ),
    ] = None,
    seed: Annotated[
        int,
        typer.Option(
            "-s", "--seed", min=0, rich_help_panel=SEARCH, help="Seed of all random choices."
        ),
    ] = 0,
    init: Annotated[
        str,
        typer.Option(
            "-i",
            "--init",
            metavar="NAME|FILE",
            rich_help_panel=SEARCH,
            help="Start: auto, insertion, sweep, savings, space-filling, greedy, "
            "or a file with a tour or routes.",
        ),
    ] = "auto",
    repair: Annotated[
        str,
        typer.Option(
            "--repair",
            metavar="NAME",
            rich_help_panel=SEARCH,
            help="What reconnects the destroyed part: auto, local, insertion.",
        ),
    ] = "auto",
    vehicles: Annotated[
        int | None,
        typer.Option(
            "--vehicles",
            min=1,
            metavar="K",
            rich_help_panel=SEARCH,
            help="At most so many routes (CVRP), whatever the file says.",
        ),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(
            "--threads", min=1, metavar="N", rich_help_panel=SEARCH, help="Number of threads."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="OUT",
            rich_help_panel=OUTPUT,
            help="Write the solution to this file; with several instances, a folder.",
        ),
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option(
            "--trace",
            metavar="FILE",
            rich_help_panel=OUTPUT,
            help="Write one JSON line per improvement, as it happens.",
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot",
            metavar="PNG",
            rich_help_panel=OUTPUT,
            help="Draw the solution; with several instances, into a folder.",
        ),
    ] = None,
    format: Annotated[
        Format,
        typer.Option(
            "-f",
            "--format",
            rich_help_panel=OUTPUT,
            help="How to print the results on standard output.",
        ),
    ] = Format.table,
    quiet: Annotated[
        bool,
        typer.Option("-q", "--quiet", rich_help_panel=OUTPUT, help="No progress, only errors."),
    ] = False,
) -> None:
    """Solve one or more instances and report the best solutions found."""
    _known_names(init, repair)
    if target is not None and math.isnan(target):
        raise typer.BadParameter("nan is not a cost.", param_hint="--target")
    limits = {
        "time_limit": time_limit, "max_iters": max_iters, "no_improve": no_improve,
        "target": target, "seed": seed, "repair": repair, "threads": threads,
    }  # fmt: skip
    if all(limits[name] is None for name in ("time_limit", "max_iters", "no_improve", "target")):
        limits["time_limit"] = DEFAULT_SECONDS
    options = SolveOptions(limits, init, vehicles, output, trace, plot, format, quiet)
    raise typer.Exit(_solve_all(files, options))


def _known_names(init: str, repair: str) -> None:
    """Refuse unknown names before any file is read."""
    from drhg.solver import REPAIRS

    if repair not in REPAIRS:
        raise typer.BadParameter(
            f"no repair is called {repair!r}; known: {', '.join(REPAIRS)}.", param_hint="--repair"
        )
    if init not in _starts() and not Path(init).exists():
        raise typer.BadParameter(
            f"{init!r} is neither a start ({', '.join(_starts())}) nor a file.",
            param_hint="--init",
        )


def _starts() -> tuple[str, ...]:
    from drhg.construct import STARTS

    return ("auto", *(name for name in STARTS if name != "auto"))


def _solve_all(files: Sequence[Path], options: SolveOptions) -> int:
    several = len(files) > 1
    outputs = _destinations(files, options.output, several, None)
    plots = _destinations(files, options.plot, several, ".png")
    report = _Report(options.format)
    codes = []
    with _open_trace(options.trace) as trace:
        for path, output, picture in zip(files, outputs, plots, strict=True):
            try:
                codes.append(_solve_one(path, output, picture, options, report, trace, several))
            except Interrupted:
                break
            if STOP.requested():
                break
    report.close()
    if STOP.requested():
        return STOP.exit_code
    failed = {code for code in codes if code != OK}
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
    report: _Report,
    trace: _Trace,
    several: bool,
) -> int:
    """Read, solve, check, write and report one instance; returns its exit code."""
    try:
        instance = _read_instance(path, options.vehicles)
        start = _start(options.init, instance)
        output = _fitting(output, path, instance)
    except (DrhgError, OSError) as error:
        _complain(error, path)
        return BAD_INPUT
    with STOP.patient():
        try:
            result = _search(instance, start, options, trace, several)
        except DrhgError as error:
            _complain(error, path)
            return BAD_INPUT
        report.add(result)
        if result.status == "infeasible":
            _say(f"{path}: {_left_out(result)}")
            return INFEASIBLE
        try:
            _write(result, output)
            _draw(result, picture)
        except (DrhgError, OSError) as error:
            _complain(error, path)
            return SOME_FAILED
    return OK


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
    instance: Instance, start: str | Solution, options: SolveOptions, trace: _Trace, several: bool
) -> Result:
    import drhg.solver

    view = _View(instance, options.limits["time_limit"], options.quiet)

    def on_improve(point: TracePoint, solution: Solution) -> None:
        trace.add(point, instance.name if several else None)
        view.improved(point)

    with view:
        return drhg.solver.solve(
            instance,
            init=start,
            on_improve=on_improve,
            should_stop=STOP.requested,
            **options.limits,
        )


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


def _write(result: Result, output: Path | None) -> None:
    if output is not None:
        from drhg.io import write_solution

        write_solution(output, result.instance, result.solution, result.cost)


def _draw(result: Result, picture: Path | None) -> None:
    if picture is None:
        return
    if STOP.requested():
        _say(f"{picture}: not drawn, interrupted")
        return
    from drhg.plotting import save_solution

    save_solution(picture, result.instance, result.solution)


# --- what a solve shows -----------------------------------------------------------------------


def _number(value: float) -> str:
    """A cost for people: whole numbers with thousands, others to six digits or two decimals."""
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.2f}" if abs(value) >= 10_000 else f"{value:.6g}"


class _Trace:
    """One JSON line per improvement, flushed line by line; improvements come from any thread."""

    def __init__(self, stream: IO[str] | None) -> None:
        self._stream = stream
        self._lock = threading.Lock()

    def add(self, point: TracePoint, name: str | None) -> None:
        row: dict[str, Any] = {} if name is None else {"name": name}
        row |= {"seconds": point.seconds, "iterations": point.iterations, "cost": point.cost}
        with self._lock:
            if self._stream is not None:
                self._stream.write(json.dumps(row) + "\n")

    def close(self) -> None:
        with self._lock:
            if self._stream is not None:
                self._stream.close()
            self._stream = None


@contextmanager
def _open_trace(path: Path | None) -> Iterator[_Trace]:
    try:
        stream = None if path is None else path.open("w", encoding="utf-8", buffering=1)
    except OSError as error:
        raise typer.BadParameter(f"cannot write {path}: {error.strerror}.") from None
    trace = _Trace(stream)
    try:
        yield trace
    finally:
        trace.close()


class _View:
    """Progress on stderr: one live line on a terminal, a line now and then elsewhere."""

    def __init__(self, instance: Instance, seconds: float | None, quiet: bool) -> None:
        self._instance, self._seconds, self._quiet = instance, seconds, quiet
        self._best: TracePoint | None = None
        self._began = self._logged = time.monotonic()
        self._live: Any = nullcontext()

    def __enter__(self) -> None:
        console = _console(stderr=True)
        if console.is_terminal and not self._quiet:
            from rich.live import Live
            from rich.spinner import Spinner

            spinner = Spinner("dots", style="cyan")
            self._live = Live(
                get_renderable=lambda: self._render(spinner),
                console=console,
                refresh_per_second=8,
                transient=True,
                redirect_stdout=False,
            )
            self._quiet = True  # nothing but the live line
        self._live.__enter__()

    def __exit__(self, *error: object) -> None:
        self._live.__exit__(*error)

    def improved(self, point: TracePoint) -> None:
        first, self._best = self._best is None, point
        now = time.monotonic()
        if not self._quiet and (first or now - self._logged >= LOG_EVERY):
            self._logged = now
            _say(
                f"{self._instance.name}: {point.seconds:.1f} s, "
                f"iteration {point.iterations:,}, cost {_number(point.cost)}"
            )

    def _render(self, spinner: Any) -> RenderableType:
        seconds = f"{time.monotonic() - self._began:.0f}"
        limit = "" if self._seconds is None else f" of {self._seconds:g}"
        from rich.markup import escape

        parts = [f"[bold]{escape(self._instance.name)}[/bold]", f"{seconds}{limit} s"]
        if self._best is not None:
            parts.append(f"cost [bold green]{_number(self._best.cost)}[/bold green]")
            parts.append(f"iteration {self._best.iterations:,}")
        spinner.update(text="[dim] · [/dim]".join(parts))
        return spinner  # type: ignore[no-any-return]


class _Report:
    """Results on stdout: JSON as they come, or one table at the end."""

    def __init__(self, format: Format) -> None:
        self._format = format
        self._results: list[Result] = []

    def add(self, result: Result) -> None:
        if self._format is Format.json:
            print(json.dumps(_as_json(result)), flush=True)
        else:
            self._results.append(result)

    def close(self) -> None:
        if self._results:
            _console().print(_table(self._results))


def _as_json(result: Result) -> dict[str, Any]:
    instance = result.instance
    row: dict[str, Any] = {
        "name": instance.name,
        "problem": instance.problem,
        "n": instance.n,
        "cost": result.cost,
        "status": result.status,
        "seconds": round(result.seconds, 3),
        "iterations": result.iterations,
        "seed": result.seed,
        "repair": result.repair,
    }
    if instance.is_cvrp:
        row["routes"] = [route.tolist() for route in result.solution.routes]
    else:
        row["tour"] = result.solution.tour.tolist()
    if result.status == "infeasible":
        row["unplaced"] = list(result.unplaced)
    return row


def _table(results: Sequence[Result]) -> RenderableType:
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("name", overflow="fold")
    for heading in ("n", "cost", "routes", "time", "iterations"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("status", no_wrap=True)
    for r in results:
        style = {"infeasible": "red", "interrupted": "yellow"}.get(r.status, "")
        table.add_row(
            escape(r.instance.name),
            f"{r.instance.n:,}",
            f"[bold]{_number(r.cost)}[/bold]",
            f"{len(r.solution.routes):,}" if r.instance.is_cvrp else "",
            f"{r.seconds:.1f} s",
            f"{r.iterations:,}",
            f"[{style}]{r.status}[/{style}]" if style else r.status,
        )
    return table


def _console(stderr: bool = False) -> Console:
    from rich.console import Console

    console = Console(stderr=stderr, highlight=False)
    if not console.is_terminal:
        console.width = 200  # a file or a pipe has no edge to wrap at
    return console


# --- check, generate, plot --------------------------------------------------------------------


@contextmanager
def _typed_errors(path: Path) -> Iterator[None]:
    """Turn an expected error into its one line and exit code 3."""
    try:
        yield
    except (DrhgError, OSError) as error:
        _complain(error, path)
        raise typer.Exit(BAD_INPUT) from None


@app.command(
    epilog=_epilog(
        [
            ("drhg check berlin52.tsp berlin52.tour", "cost, or every violation"),
            ("drhg check A-n32-k5.vrp plan.sol -f json", "the same for programs"),
        ]
    )
)
def check(
    instance: Annotated[Path, typer.Argument(help="A TSPLIB or CVRPLIB file.")],
    solution: Annotated[Path, typer.Argument(help="A tour (.tour) or routes (.sol).")],
    format: Annotated[
        Format, typer.Option("-f", "--format", help="How to print the verdict.")
    ] = Format.table,
) -> None:
    """Check a solution against its instance: its cost, or everything that is wrong with it."""
    from drhg import problem
    from drhg.io import read, read_solution

    with _typed_errors(instance):
        task = read(instance)
    with _typed_errors(solution):
        answer = read_solution(solution, task)
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
        _say(f"{solution}: {violation}")
    raise typer.Exit(BAD_INPUT if found else OK)


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
    with _typed_errors(output or Path(".")):
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
        ]
    )
)
def plot(
    instance: Annotated[Path, typer.Argument(help="A TSPLIB or CVRPLIB file.")],
    solution: Annotated[
        Path | None, typer.Argument(help="A tour (.tour) or routes (.sol).")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="PNG",
            help="Picture to write (.png, .pdf, .svg); by default NAME.png.",
        ),
    ] = None,
    title: Annotated[str | None, typer.Option("--title", help="Instead of name and cost.")] = None,
) -> None:
    """Draw an instance, with or without a solution."""
    from drhg.io import read, read_solution
    from drhg.plotting import save_solution

    with _typed_errors(instance):
        task = read(instance)
    answer = None
    if solution is not None:
        with _typed_errors(solution):
            answer = read_solution(solution, task)
    picture = output or Path(f"{instance.stem}.png")
    with _typed_errors(picture):
        save_solution(picture, task, answer, title)
    print(picture)


if __name__ == "__main__":
    main()

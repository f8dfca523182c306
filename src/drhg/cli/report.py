"""What the command line shows of a search: progress, results, the trace of improvements."""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

    from drhg.problem import Instance
    from drhg.session.result import Result, TracePoint

LOG = logging.getLogger("drhg")
LOG_EVERY = 1.0  # seconds between plain log lines, at least
BAR_EVERY = 3.0  # and between those about something of known length
TALLY_EVERY = 60.0  # seconds between those of many searches, at most


def say(message: str) -> None:
    """A complaint on stderr: one line, or a list with a line for each of its parts."""
    lines = [" ".join(line.split()) for line in message.splitlines()]
    with suppress(OSError):  # the reader is gone, which is no reason to stop
        print("drhg: " + "\n  ".join(filter(None, lines)), file=sys.stderr, flush=True)


def _number(value: float) -> str:
    """A cost for people: whole numbers with thousands, others to six digits or two decimals."""
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.2f}" if abs(value) >= 10_000 else f"{value:.6g}"


class Trace:
    """One JSON line per improvement, flushed line by line; improvements come from any thread."""

    def __init__(self, path: Path | None, named: bool = False) -> None:
        self._stream = None if path is None else path.open("w", encoding="utf-8", buffering=1)
        self._named = named  # whether lines say which instance they are about
        self._lock = threading.Lock()

    def __enter__(self) -> Trace:
        return self

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._end()

    def _end(self) -> None:
        if self._stream is not None:
            with suppress(OSError):  # what it could not write, it tries again
                self._stream.close()
        self._stream = None

    def add(self, point: TracePoint, name: str) -> None:
        row: dict[str, Any] = {"name": name} if self._named else {}
        row |= {"seconds": point.seconds, "iterations": point.iterations, "cost": point.cost}
        with self._lock:
            if self._stream is not None:
                try:
                    self._stream.write(json.dumps(row) + "\n")
                except OSError as error:  # a full disk must not end the search
                    say(f"{self._stream.name}: the trace ends here: {error.strerror}")
                    self._end()


class _Progress(logging.Handler):
    """Progress on stderr: one live line on a terminal, a line now and then elsewhere.

    What the package logs is shown the same way.
    """

    def __init__(self, name: str, quiet: bool, live: bool = True) -> None:
        super().__init__(logging.INFO)
        self._name, self._quiet, self._may_live = name, quiet, live
        self._note = ""
        self._began = self._logged = time.monotonic()
        self._live: Any = nullcontext()

    def __enter__(self) -> Self:
        console = _console(stderr=True)
        if console.is_terminal and self._may_live and not self._quiet:
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
        LOG.addHandler(self)
        LOG.setLevel(logging.INFO)
        return self

    def emit(self, record: logging.LogRecord) -> None:
        self._note = record.getMessage()
        if not self._quiet:
            say(f"{self._name}: {self._note}")

    def __exit__(self, *error: object) -> None:
        LOG.removeHandler(self)
        self._live.__exit__(*error)

    def _seconds(self) -> str:
        return f"{time.monotonic() - self._began:.0f}"

    def _parts(self) -> list[str]:
        """What the live line says, as markup."""
        raise NotImplementedError

    def _render(self, spinner: Any) -> RenderableType:
        from rich.markup import escape

        parts = self._parts() + ([escape(self._note)] if self._note else [])
        spinner.update(text="[dim] · [/dim]".join(parts))
        return spinner  # type: ignore[no-any-return]


class View(_Progress):
    """Progress of one search: its best so far."""

    def __init__(self, name: str, limit: float | None, quiet: bool) -> None:
        super().__init__(name, quiet)
        self._limit = "" if limit is None else f" of {limit:g}"
        self._best: TracePoint | None = None

    def improved(self, point: TracePoint) -> None:
        first, self._best = self._best is None, point
        self._note = self._note if point.iterations == 0 else ""
        now = time.monotonic()
        if not self._quiet and (first or now - self._logged >= LOG_EVERY):
            self._logged = now
            say(
                f"{self._name}: {point.seconds:.1f} s, "
                f"iteration {point.iterations:,}, cost {_number(point.cost)}"
            )

    def _parts(self) -> list[str]:
        from rich.markup import escape

        parts = [f"[bold]{escape(self._name)}[/bold]", f"{self._seconds()}{self._limit} s"]
        if self._best is not None:
            parts.append(f"cost [bold green]{_number(self._best.cost)}[/bold green]")
            parts.append(f"iteration {self._best.iterations:,}")
        return parts


class Tally(_Progress):
    """Progress of many searches side by side: how many have ended, and how the last one did."""

    def __init__(self, total: int, quiet: bool, live: bool = True) -> None:
        super().__init__(f"{total} instances", quiet, live)
        self._total, self._done, self._last = total, 0, ""
        self._over = threading.Event()

    def __enter__(self) -> Self:
        super().__enter__()
        if not self._quiet:
            threading.Thread(target=self._say_now_and_then, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        super().__exit__(*error)

    def ended(self, path: Path, result: Result | None) -> None:
        """One more is done; it failed if there is no result."""
        self._done += 1
        cost = "failed" if result is None else f"cost {_number(result.cost)}"
        self._last = f"{path}: {cost}"
        now = time.monotonic()
        if not self._quiet and (now - self._logged >= LOG_EVERY or self._done == self._total):
            self._say()

    def _say_now_and_then(self) -> None:
        while not self._over.wait(LOG_EVERY):
            if time.monotonic() - self._logged >= TALLY_EVERY:
                self._say()

    def _say(self) -> None:
        self._logged = time.monotonic()
        say(", ".join(self._words()))

    def _words(self) -> list[str]:
        words = [f"{self._done} of {self._total} done", f"{self._seconds()} s"]
        return words + ([f"last {self._last}"] if self._last else [])

    def _parts(self) -> list[str]:
        from rich.markup import escape

        first, *rest = map(escape, self._words())
        return [f"[bold]{first}[/bold]", *rest]


class Step(Protocol):
    """How far something of known length has come."""

    @property
    def done(self) -> int: ...
    @property
    def total(self) -> int: ...
    @property
    def what(self) -> str: ...
    @property
    def seconds(self) -> float: ...


class Bar:
    """Progress of known length on stderr: a bar on a terminal, a line now and then elsewhere."""

    def __init__(self, verb: str, quiet: bool) -> None:
        self.done = 0
        self._verb, self._quiet = verb, quiet
        self._logged = time.monotonic()
        self._bar: Any = None

    def __enter__(self) -> Self:
        console = _console(stderr=True)
        if console.is_terminal and not self._quiet:
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
            from rich.progress import TimeElapsedColumn as Elapsed

            words = TextColumn("{task.description}", markup=False)
            self._bar = Progress(
                BarColumn(), MofNCompleteColumn(), Elapsed(), words, console=console, transient=True
            )
            self._bar.__enter__()
            self._task = self._bar.add_task("", total=None)
            self._quiet = True  # nothing but the bar
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.__exit__(*error)

    def __call__(self, step: Step) -> None:
        self.done = step.done
        if self._bar is not None:
            self._bar.update(
                self._task, completed=step.done, total=step.total, description=step.what
            )
        elif not self._quiet and time.monotonic() - self._logged >= BAR_EVERY:
            self._logged = time.monotonic()
            last = f", last {step.what}" if step.what else ""
            say(f"{self._verb} {step.done} of {step.total}, {step.seconds:.0f} s{last}")


class Report:
    """Results on stdout, in the order of their files: as JSON, each as soon as all before it have
    ended, or as one table at the end. The table may go to stderr instead, or nowhere."""

    def __init__(self, as_json: bool, *, stderr: bool = False, silent: bool = False) -> None:
        self._json, self._stderr, self._silent = as_json, stderr, silent
        self._ended: dict[int, tuple[Path, Result | None]] = {}  # by the file's place among all
        self._printed = 0

    def add(self, place: int, path: Path, result: Result | None) -> None:
        """The end of the file at this place, counted from 0; without a result if it failed."""
        self._ended.setdefault(place, (path, result))
        while self._json and self._printed in self._ended:
            self._print(*self._ended[self._printed])
            self._printed += 1

    def close(self) -> None:
        """Print what is left: not all have ended if there was an interrupt."""
        left = [self._ended[place] for place in sorted(self._ended) if place >= self._printed]
        if self._json:
            for path, result in left:
                self._print(path, result)
        results = [result for _, result in left if result is not None]
        if results and not self._json and not self._silent:
            _print_results(results, _console(self._stderr))

    def _print(self, path: Path, result: Result | None) -> None:
        if result is not None:
            print(result.to_json(path), flush=True)


def _print_results(results: Sequence[Result], console: Console) -> None:
    from rich.markup import escape

    headings = ["name", "n", "cost", "routes", "time", "iterations", "status"]
    styles = {"infeasible": "red", "no_search": "red", "interrupted": "yellow"}
    rows = []
    for r in results:
        style = styles.get(r.status, "default")
        rows.append(
            [
                escape(r.instance.name),
                f"{r.instance.n:,}",
                f"[bold]{_number(r.cost)}{' m' if in_metres(r.instance) else ''}[/bold]",
                f"{len(r.solution.routes):,}" if r.instance.is_cvrp else "",
                f"{r.seconds:.1f} s",
                f"{r.iterations:,}",
                f"[{style}]{r.status}[/{style}]",
            ]
        )
    _print_fitting(console, headings, rows, headings[1:-1], ("iterations", "routes", "n", "time"))


def print_routes(result: Result, stderr: bool = False) -> None:
    """A line per route: stops, load, length, time, and where it begins and ends."""
    from rich.markup import escape

    from drhg.files.routes import knows_times, route_rows, shown_time

    instance = result.instance
    timed = knows_times(instance)
    named = result.solution.vehicles is not None
    headings = [
        "route", *(["vehicle"] if named else []), "stops",
        *(["load"] if instance.is_cvrp else []), "length",
        *(["time"] if timed else []), "first", "last",
    ]  # fmt: skip
    rows = [
        [
            f"{row.route}", *([escape(row.vehicle or "")] if named else []),
            f"{row.stops:,}", *([f"{row.load:g}"] if instance.is_cvrp else []),
            _length(instance, row.distance),
            *([str(shown_time(instance, row.duration or 0.0))] if timed else []),
            escape(row.first), escape(row.last),
        ]
        for row in route_rows(instance, result.solution)
    ]  # fmt: skip
    _print_fitting(_console(stderr), headings, rows, headings[:-2], ("last", "first"))


def _length(instance: Instance, value: float) -> str:
    """A distance for people: great circles are in metres, others in who knows what."""
    if not in_metres(instance):
        return _number(value)
    return f"{value / 1000:,.1f} km" if value >= 10_000 else f"{value:,.0f} m"


def in_metres(instance: Instance) -> bool:
    from drhg.problem import Metric

    return instance.metric is Metric.HAVERSINE


def print_table(
    headings: Sequence[str], rows: Sequence[Sequence[str]], least: Sequence[str] = ()
) -> None:
    """Any table on stdout; those columns that matter least go first where there is no room."""
    from rich.markup import escape

    _print_fitting(_console(), headings, [list(map(escape, row)) for row in rows], (), least)


def _print_fitting(
    console: Console,
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    numbers: Sequence[str],
    least: Sequence[str],
) -> None:
    """A table of markup, without those of the least columns for which words would be broken."""
    shown, going = list(headings), list(least)
    endless = console.options.update(width=10_000)
    while True:
        table = _table(headings, rows, shown, numbers)
        fits = console.measure(table, options=endless).minimum <= console.width
        if fits or not going:
            break
        shown.remove(going.pop(0))
    table.columns[0].no_wrap = fits  # names are split only if nothing else helps
    console.print(table)


def _table(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    shown: Sequence[str],
    numbers: Sequence[str],
) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in shown:
        justify: Any = "right" if heading in numbers else "left"
        whole = heading in numbers or heading == "status"
        table.add_column(heading, justify=justify, overflow="fold", no_wrap=whole)
    for row in rows:
        table.add_row(
            *(cell for heading, cell in zip(headings, row, strict=True) if heading in shown)
        )
    return table


def _console(stderr: bool = False) -> Console:
    from rich.console import Console

    console = Console(stderr=stderr, highlight=False)
    if not console.is_terminal:
        console.width = 200  # a file or a pipe has no edge to wrap at
    return console

"""What the command line shows of a search: progress, results, the trace of improvements."""

from __future__ import annotations

import json
import logging
import math
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drhg.errors import DrhgError

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from drhg.solver import Result, TracePoint

LOG = logging.getLogger("drhg")
LOG_EVERY = 1.0  # seconds between plain log lines


def say(message: str) -> None:
    """One line of complaint on stderr."""
    with suppress(OSError):  # nobody listens, which is no reason to stop
        print(f"drhg: {' '.join(message.split())}", file=sys.stderr, flush=True)


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


class View(logging.Handler):
    """Progress on stderr: one live line on a terminal, a line now and then elsewhere.

    What the package logs is shown the same way.
    """

    def __init__(self, name: str, seconds: float | None, quiet: bool) -> None:
        super().__init__(logging.INFO)
        self._name, self._seconds, self._quiet = name, seconds, quiet
        self._note = ""
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
        LOG.addHandler(self)
        LOG.setLevel(logging.INFO)

    def emit(self, record: logging.LogRecord) -> None:
        self._note = record.getMessage()
        if not self._quiet:
            say(f"{self._name}: {self._note}")

    def __exit__(self, *error: object) -> None:
        LOG.removeHandler(self)
        self._live.__exit__(*error)

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

    def _render(self, spinner: Any) -> RenderableType:
        seconds = f"{time.monotonic() - self._began:.0f}"
        limit = "" if self._seconds is None else f" of {self._seconds:g}"
        from rich.markup import escape

        parts = [f"[bold]{escape(self._name)}[/bold]", f"{seconds}{limit} s"]
        if self._best is not None:
            parts.append(f"cost [bold green]{_number(self._best.cost)}[/bold green]")
            parts.append(f"iteration {self._best.iterations:,}")
        parts += [escape(self._note)] if self._note else []
        spinner.update(text="[dim] · [/dim]".join(parts))
        return spinner  # type: ignore[no-any-return]


class Report:
    """Results on stdout: JSON as they come, or one table at the end."""

    def __init__(self, as_json: bool) -> None:
        self._json = as_json
        self._results: list[Result] = []

    def add(self, result: Result) -> None:
        if self._json:
            print(json.dumps(row_of(result)), flush=True)
        else:
            self._results.append(result)

    def close(self) -> None:
        if self._results:
            _console().print(_table(self._results))


def row_of(result: Result) -> dict[str, Any]:
    instance, routes = result.instance, [route.tolist() for route in result.solution.routes]
    row: dict[str, Any] = {
        "name": instance.name, "problem": instance.problem, "n": instance.n,
        "cost": result.cost, "status": result.status, "seconds": round(result.seconds, 3),
        "iterations": result.iterations, "seed": result.seed, "repair": result.repair,
    }  # fmt: skip
    row |= {"routes": routes} if instance.is_cvrp else {"tour": routes[0]}
    return row | ({"unplaced": list(result.unplaced)} if result.status == "infeasible" else {})


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


def print_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Any table on stdout."""
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    table = Table(*headings, box=box.SIMPLE_HEAD, pad_edge=False)
    for row in rows:
        table.add_row(*map(escape, row))
    _console().print(table)


def _console(stderr: bool = False) -> Console:
    from rich.console import Console

    console = Console(stderr=stderr, highlight=False)
    if not console.is_terminal:
        console.width = 200  # a file or a pipe has no edge to wrap at
    return console


def read_trace(path: Path) -> dict[str, list[TracePoint]]:
    """The runs in a file that `drhg solve --trace` wrote, by instance or else by file name."""
    from drhg.solver import TracePoint

    runs: dict[str, list[TracePoint]] = {}
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line)
            point = TracePoint(float(row["seconds"]), int(row["iterations"]), row["cost"] + 0)
            if not math.isfinite(point.seconds + point.cost):
                raise ValueError
        except (ValueError, TypeError, KeyError):
            raise DrhgError("not a line of a trace", file=str(path), line=number) from None
        runs.setdefault(str(row.get("name", path.stem)), []).append(point)
    if not runs:
        raise DrhgError("the trace is empty", file=str(path))
    return runs


def read_log(path: Path) -> list[dict[str, float]]:
    """The lines that `drhg train` wrote to a log."""
    rows: list[dict[str, float]] = []
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    for number, line in enumerate(lines, start=1):
        try:
            row = {str(key): float(value) for key, value in json.loads(line).items()}
            if not {"step", "decisions", "loss"} <= set(row):
                raise ValueError
        except (ValueError, TypeError, AttributeError):
            raise DrhgError("not a line of a training log", file=str(path), line=number) from None
        rows.append(row)
    if not rows:
        raise DrhgError("the log is empty", file=str(path))
    return rows

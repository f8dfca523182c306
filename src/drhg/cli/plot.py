"""`drhg plot`: pictures of instances, solutions, searches and trainings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from drhg.cli.help_pages import App, epilog
from drhg.cli.inputs import (
    Capacity,
    Columns,
    Depot,
    Durations,
    FleetTable,
    Matrix,
    MaxDistance,
    MaxDuration,
    Open,
    Speed,
    read_both,
    table_options,
)
from drhg.cli.logs import read_log, read_trace
from drhg.cli.shell import STOP, blaming
from drhg.cli.targets import PICTURES, name_of, try_file
from drhg.errors import DrhgError

if TYPE_CHECKING:
    from drhg.session.result import TracePoint

app = App()


@app.command(
    epilog=epilog(
        [
            ("drhg plot berlin52.tsp -o cities.png", "the nodes alone"),
            ("drhg plot berlin52.tsp berlin52.tour -o tour.pdf", "with a tour, as PDF"),
            ("drhg plot stops.csv routes.csv --capacity 120 --names", "a spreadsheet's routes"),
            ("drhg plot berlin52.tsp --film -o film.png", "one step of destroy and repair"),
            ("drhg plot berlin52.tsp --animate -t 5 -o run.gif", "watch five seconds of search"),
            ("drhg plot C101.txt plan.sol --gantt", "when every route is where"),
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
    names: Annotated[
        bool, typer.Option("--names", help="Write names beside the nodes where there is room.")
    ] = False,
    capacity: Capacity = None,
    max_distance: MaxDistance = None,
    depot: Depot = None,
    columns: Columns = None,
    matrix: Matrix = None,
    durations: Durations = None,
    speed: Speed = None,
    max_duration: MaxDuration = None,
    open: Open = False,
    fleet: FleetTable = None,
    gantt: Annotated[
        bool, typer.Option("--gantt", help="Routes over time: driving, waiting, serving.")
    ] = False,
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
    if sources != 1 or film + animate + gantt + bool(trace) + bool(training) > 1:
        raise typer.BadParameter(
            "one of: an instance (with --film, --animate or --gantt), --trace, or --training."
        )
    if gantt and solution is None:
        raise typer.BadParameter("--gantt draws a solution: name its file after the instance's.")
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
        table = table_options(
            capacity,
            max_distance,
            depot,
            columns,
            matrix,
            durations,
            speed,
            max_duration,
            open,
            fleet,
        )
        task, answer = read_both(instance, solution, table)
        with blaming(_with_folder(picture)):
            if film:
                plotting.film_strip(picture, task, answer, seed=seed)
            elif gantt:
                assert answer is not None
                plotting.save_gantt(picture, task, answer, title)
            elif animate:
                with STOP.patient():
                    asked = STOP.requested
                    frames = plotting.watch(task, answer, time_limit, seed, should_stop=asked)
                    plotting.save_animation(picture, task, frames)
            else:
                plotting.save_solution(picture, task, answer, title, names=names)
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

"""`drhg replan`: an old plan for a new problem, changed only around what is new."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from drhg.cli.help_pages import App, epilog
from drhg.cli.inputs import (
    Capacity,
    Columns,
    Depot,
    Durations,
    Fleet,
    Matrix,
    MaxDistance,
    MaxDuration,
    Open,
    Speed,
    read_instance,
    table_options,
    with_fleet,
)
from drhg.cli.report import say
from drhg.cli.shell import INFEASIBLE, OK, Format, blaming
from drhg.cli.targets import STANDARD, Destination, apart, try_file
from drhg.errors import SolutionError

if TYPE_CHECKING:
    from drhg.problem import Instance, Solution

app = App()


@app.command(
    epilog=epilog(
        [
            ("drhg replan today.sol more.vrp -o new.sol", "orders more, by number"),
            ("drhg replan routes.csv stops.csv --capacity 120 -o new.csv", "by name"),
            ("drhg replan a.sol b.vrp --old a.vrp", "notices stops that moved, other demands"),
            ("drhg replan a.sol b.vrp --lost 3", "vehicle 3 is gone"),
            ("drhg replan a.sol b.vrp --driven 2:5 --frozen 4", "2 was at 5 stops; 4 stays"),
            ("drhg replan a.sol b.vrp --stability 5 -t 2", "keep the plan familiar; two seconds"),
        ],
        "Nodes are matched by name if both problems have names, else by number. Only routes\n"
        "around what has changed are touched, of a tour the stretches there; all else stays as\n"
        "it is. Exit code 4 if customers are left out.",
    )
)
def replan(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="The plan that was.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="The problem that is.")],
    old_problem: Annotated[
        Path | None,
        typer.Option("--old", metavar="FILE", help="The problem that was, for what has moved."),
    ] = None,
    lost: Annotated[
        list[int] | None,
        typer.Option("--lost", min=1, metavar="VEHICLE",
                     help="A vehicle that is gone, by number; else that of its route."),
    ] = None,
    driven: Annotated[
        list[str] | None,
        typer.Option("--driven", metavar="VEHICLE:STOPS",
                     help="A vehicle under way, and how many stops it was at: its route begins "
                          "so."),
    ] = None,
    frozen: Annotated[
        list[int] | None,
        typer.Option("--frozen", min=1, metavar="VEHICLE", help="A vehicle whose route stays."),
    ] = None,
    stability: Annotated[
        float,
        typer.Option("--stability", min=0, metavar="PRICE",
                     help="What a customer with another vehicle or predecessor costs."),
    ] = 0.0,
    time_limit: Annotated[
        float | None,
        typer.Option("-t", "--time-limit", min=0, metavar="SECONDS",
                     help="To improve the surroundings; else some hundredths of a second."),
    ] = None,
    seed: Annotated[int, typer.Option("-s", "--seed", min=0, metavar="N", help="Seed.")] = 0,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="OUT", help="Write the plan to this file."),
    ] = None,
    vehicles: Fleet = None,
    capacity: Capacity = None,
    max_distance: MaxDistance = None,
    depot: Depot = None,
    columns: Columns = None,
    matrix: Matrix = None,
    durations: Durations = None,
    speed: Speed = None,
    max_duration: MaxDuration = None,
    open: Open = False,
    format: Annotated[
        Format, typer.Option("-f", "--format", metavar="table|json", help="How to print.")
    ] = Format.table,
) -> None:  # fmt: skip
    """Change a plan for a problem that has changed, and only where it has."""
    if [old, new, old_problem].count(STANDARD) > 1:
        raise typer.BadParameter("standard input (-) can be read only once.")
    if output == STANDARD and format is Format.json:
        raise typer.BadParameter("-o - and -f json both write to standard output: choose one.")
    behind = _driven(driven or [])
    apart({old: "the old plan", new: "the problem"}, {"--output": output})
    if output is not None and output != STANDARD:
        try_file(output, "--output")
    table = table_options(
        capacity, max_distance, depot, columns, matrix, durations, speed, max_duration, open
    )
    with blaming(new):
        task = with_fleet(read_instance(new, table), vehicles, new)
    before: Instance | None = None
    if old_problem is not None:
        with blaming(old_problem):
            before = read_instance(old_problem, table if old_problem.suffix == ".csv" else {})
    target = None if output is None else Destination(output, False).of(task)
    with blaming(old):
        plan, names = _old_plan(old, task, before)
    from drhg.plans.replan import replan as replanned

    with blaming(new):
        found = replanned(
            plan, task, old_instance=before, old_names=names, lost=lost or (),
            driven=behind, frozen=frozen or (), stability=stability, time_limit=time_limit,
            seed=seed,
        )  # fmt: skip
    if format is Format.json:
        print(json.dumps(found.to_dict(new)))
    elif output != STANDARD:
        print(f"{task.name}: {found.summary()}")
    if found.unplaced:
        say(f"{new}: no place for {task.called(*found.unplaced[:5])}; nothing written")
        raise typer.Exit(INFEASIBLE)
    if target is not None:
        with blaming(target):
            found.save(target)
    raise typer.Exit(OK)


def _driven(pairs: list[str]) -> dict[int, int]:
    """Vehicles and how many stops each of them was at."""
    found = {}
    for pair in pairs:
        vehicle, colon, stops = pair.partition(":")
        if not (colon and vehicle.isdecimal() and stops.isdecimal()):
            raise typer.BadParameter(f"{pair!r} is not VEHICLE:STOPS, as in 2:5.",
                                     param_hint="--driven")  # fmt: skip
        found[int(vehicle)] = int(stops)
    return found


def _old_plan(
    path: Path, task: Instance, before: Instance | None
) -> tuple[Solution, tuple[str, ...] | None]:
    """The old plan; a table of routes by its names, which the new problem need not know."""
    from drhg.files.paths import suffix
    from drhg.files.registry import read_solution
    from drhg.files.routes import parse_named_plan
    from drhg.files.streams import read_bytes

    if before is None and task.names is not None and suffix(str(path)) == ".csv":
        return parse_named_plan(read_bytes(str(path)), file=str(path))
    try:
        return read_solution(path, before or task), None
    except SolutionError as error:
        if before is not None:
            raise
        hint = "; if the old problem had more nodes, name it: --old FILE"
        raise SolutionError(error.reason + hint, file=error.file, line=error.line) from None

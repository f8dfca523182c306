"""`drhg explain`: what every place costs, where else there is room, and what is in the way."""

from __future__ import annotations

import csv
import io
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from drhg.cli.help_pages import App, epilog
from drhg.cli.inputs import (
    Capacity,
    Columns,
    Depot,
    Durations,
    Fleet,
    InstanceFile,
    Matrix,
    MaxDistance,
    MaxDuration,
    Open,
    Speed,
    read_both,
    table_options,
    with_fleet,
)
from drhg.cli.report import Bar, print_table, say
from drhg.cli.shell import BAD_INPUT, INFEASIBLE, OK, blaming
from drhg.cli.targets import PICTURES, try_file
from drhg.errors import DrhgError

if TYPE_CHECKING:
    from drhg.plans.explain import Explanation, Place, StopFacts
    from drhg.problem import Instance

app = App()
USUAL_TOP = 10
ALL_ROUTES = 50  # so many routes are listed one by one


class Output(StrEnum):
    table = "table"
    json = "json"
    csv = "csv"


@dataclass(frozen=True)
class _Step:
    """How far it is, for the bar."""

    done: int
    seconds: float
    total: int
    what: str = ""


@app.command(
    epilog=epilog(
        [
            ("drhg explain A-n32-k5.vrp plan.sol", "the dearest stops, slack, what is better"),
            ("drhg explain stops.csv routes.csv --capacity 120 -f csv", "a row per stop"),
            ("drhg explain A-n32-k5.vrp plan.sol --region 10 --plot open.png", "look further"),
            ("drhg explain stops.csv routes.csv --capacity 120 --map why.html", "a map of it"),
            ("drhg explain tight.vrp", "why no plan can exist, if that can be shown"),
        ],
        "The cost of a place is what the plan would be shorter without the stop, exactly.\n"
        "The next best place is the cheapest other one that keeps all limits; a cheaper one\n"
        "that does not is shown with the limits in its way. A region is what is left when the\n"
        "edges around a stop are cut and the rest is shrunk; every repair of it is looked at.\n"
        "Exit code 3 if the solution breaks a rule, 4 if there can be none.",
    )
)
def explain(
    instance: InstanceFile,
    solution: Annotated[
        Path | None,
        typer.Argument(metavar="SOLUTION", help="As for `drhg check`; without it, whether there "
                       "can be one.", show_default=False),
    ] = None,
    top: Annotated[
        int, typer.Option("--top", min=0, metavar="N", help="Stops and edges to list.")
    ] = USUAL_TOP,
    region: Annotated[
        int | None,
        typer.Option("--region", min=0, max=12, metavar="NODES",
                     help="Size of the regions that are searched exhaustively, 0 for none; else "
                          "8, or none with time windows, locks and the like."),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="PNG",
                     help="Draw the plan, with the stops marked around which something better "
                          "was found."),
    ] = None,
    map: Annotated[
        Path | None,
        typer.Option("--map", metavar="HTML",
                     help="Write a map on which every stop says what its place costs, with the "
                          "same marks."),
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
        Output, typer.Option("-f", "--format", metavar="table|json|csv", help="How to print.")
    ] = Output.table,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress.")] = False,
) -> None:  # fmt: skip
    """Explain a plan: what each place costs, what else there is, and what is in the way."""
    if plot is not None:
        _known_picture(plot, solution, region)
    if map is not None:
        _known_map(map, solution)
    if solution is None and format is Output.csv:
        raise typer.BadParameter("a table of stops (-f csv) needs a solution.")
    from drhg.plans.explain import explain as explained

    table = table_options(
        capacity, max_distance, depot, columns, matrix, durations, speed, max_duration, open
    )
    task, answer = read_both(instance, solution, table)
    task = with_fleet(task, vehicles, instance)
    began = time.monotonic()
    with Bar("explained", quiet) as bar, blaming(solution or instance):
        found = explained(
            task, answer, region=region,
            on_progress=lambda share: bar(
                _Step(int(task.n * share), time.monotonic() - began, task.n)
            ),
        )  # fmt: skip
    if plot is not None:
        _draw(plot, found)
    if map is not None:
        _write_map(map, found)
    if format is Output.json:
        print(found.to_json())
    elif format is Output.csv:
        _print_csv(found.stop_table())
    else:
        _print(found, top)
    if found.violations:
        for violation in found.violations[:USUAL_TOP]:
            say(f"{solution}: {violation}")
        raise typer.Exit(BAD_INPUT)
    raise typer.Exit(OK if found.conflict is None else INFEASIBLE)


def _known_picture(plot: Path, solution: Path | None, region: int | None) -> None:
    if solution is None or region == 0:
        raise typer.BadParameter("--plot shows the regions of a solution: name one.")
    if plot.suffix.lower() not in PICTURES:
        raise typer.BadParameter(f"{plot} is no picture; it may end in {', '.join(PICTURES)}.")
    try_file(plot, "--plot")


def _draw(path: Path, found: Explanation) -> None:
    from drhg import plotting
    from drhg.problem import not_known

    if found.certificate is None and found.violations:
        raise DrhgError("a plan that breaks rules has no regions to draw", file=str(path))
    if found.certificate is None:
        why = not_known("the search of regions", found.instance, ("fixed",))
        raise DrhgError(f"{why}: there are none to draw", file=str(path))
    assert found.certificate is not None
    marked = found.certificate.open_stops
    with blaming(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        plotting.save_solution(path, found.instance, found.solution, marked=marked)


def _known_map(path: Path, solution: Path | None) -> None:
    if solution is None:
        raise typer.BadParameter("--map shows a solution: name one.")
    if path.suffix.lower() != ".html":
        raise typer.BadParameter(f"{path} is no map; it may end in .html.")
    try_file(path, "--map")


def _write_map(path: Path, found: Explanation) -> None:
    from drhg.files.atomic import atomic_write
    from drhg.files.map import format_map

    assert found.solution is not None
    assert found.cost is not None
    with blaming(path):
        atomic_write(
            path, format_map(found.instance, found.solution, found.cost, found.map_facts())
        )


def _print_csv(table: dict[str, list[Any]]) -> None:
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table)
    writer.writerows(zip(*(map(_cell, column) for column in table.values()), strict=True))
    sys.stdout.write(out.getvalue())


def _cell(value: Any) -> Any:
    return f"{value:.10g}" if isinstance(value, float) else value


def _print(found: Explanation, top: int) -> None:
    """The explanation for people: sentences, then tables."""
    task = found.instance
    if found.solution is None:
        print(f"{task.name}: {_no_plan(found)}")
        return
    count = f", {len(found.routes):,} routes" if task.is_cvrp else ""
    print(f"{task.name}: cost {_number(found.cost)}{count}, {len(found.stops):,} stops")
    if found.violations:
        print(f"the plan breaks {len(found.violations)} rules; {_no_plan(found)}")
    if found.certificate is not None:
        c = found.certificate
        most = float(c.gains.max(initial=0.0))
        print(
            f"{c.share:.1%} of {len(c.stops):,} regions of {c.size} nodes admit no better repair"
            + (f"; the best of any other saves {_number(most)}" if most else "")
        )
    better = found.better
    print(f"{len(better):,} stops would each be cheaper elsewhere" if better else
          "no stop would be cheaper elsewhere")  # fmt: skip
    if top == 0:
        return
    _section("Stops that would be cheaper elsewhere", _stop_rows(better[:top], task), "next")
    _section("Dearest stops", _stop_rows(found.dearest[:top], task), "next")
    edges = [
        [f"{e.first} - {e.second}", *_of_route(task, e.route), _number(e.length)]
        for e in found.edges[:top]
    ]
    _section("Longest edges", [["edge", *_of_route(task, "route"), "length"], *edges])
    if task.is_cvrp:
        _print_slack(found, top)


def _no_plan(found: Explanation) -> str:
    if found.conflict is None:
        return "no proof was found that the limits cannot be kept"
    return f"no plan keeps the limits: {found.conflict.reason}"


def _of_route(task: Instance, what: object) -> list[str]:
    """A cell about routes, which a tour has no use for."""
    return [str(what)] if task.is_cvrp else []


def _stop_rows(stops: Sequence[StopFacts], task: Instance) -> list[list[str]]:
    rows = [["stop", *_of_route(task, "route"), "cost", "next best place", "there", "barred place"]]
    for stop in stops:
        there = "" if stop.next is None else _number(stop.next.cost)
        rows.append(
            [
                stop.name, *_of_route(task, stop.route or "none"), _number(stop.cost),
                _place(stop.next, task), there, _place(stop.barred, task),
            ]
        )  # fmt: skip
    return rows


def _place(place: Place | None, task: Instance) -> str:
    if place is None:
        return ""
    text = f"{place.after} - {place.before}"
    if task.is_cvrp:
        text += f" (route {place.route})"
    if place.breaks:
        text += f" {_number(place.cost)}, {' and '.join(place.breaks)}"
    return text


def _print_slack(found: Explanation, top: int) -> None:
    """What routes have room for: all of a few routes, else those with the least room."""
    task, routes = found.instance, list(found.routes)
    if len(routes) > ALL_ROUTES:
        routes.sort(key=lambda r: (r.free_load or 0.0, r.route))
        routes = routes[:top]
    columns = {
        "route": [f"{r.route}" for r in routes],
        "stops": [f"{r.stops}" for r in routes],
        "load": [f"{r.load:g}" for r in routes],
        "free": [f"{r.free_load or 0.0:g}" for r in routes],
        "length": [_number(r.length) for r in routes],
    }
    if task.max_distance is not None:
        columns["to spare"] = [_number(r.free_length or 0.0) for r in routes]
    if task.windows is not None or task.max_duration is not None:
        columns["time"] = [_clock(task, r.duration) for r in routes]
        columns["may leave later by"] = [_clock(task, r.delay) for r in routes]
    if task.max_duration is not None:
        columns["time to spare"] = [_clock(task, r.free_duration) for r in routes]
    headings, rows = list(columns), [list(row) for row in zip(*columns.values(), strict=True)]
    few = "" if len(routes) == len(found.routes) else " with the least room"
    _section(f"Routes{few}", [headings, *rows])


def _clock(task: Instance, time: float | None) -> str:
    """A time, as tables of routes write it."""
    from drhg.files.routes import shown_time

    if time is None:
        return ""
    shown = shown_time(task, time)
    return shown if isinstance(shown, str) else _number(shown)


def _section(title: str, rows: list[list[str]], least: str = "") -> None:
    if len(rows) > 1:
        print(f"\n{title}")
        print_table(rows[0], rows[1:], ("barred place",) if least else ())


def _number(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"

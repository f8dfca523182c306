"""`drhg check`: the cost of a solution, or everything that is wrong with it."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from drhg.cli.help_pages import App, epilog
from drhg.cli.inputs import (
    Capacity,
    Columns,
    Depot,
    Durations,
    FleetTable,
    InstanceFile,
    Matrix,
    MaxDistance,
    MaxDuration,
    Open,
    SolutionFile,
    Speed,
    read_both,
    table_options,
)
from drhg.cli.report import say
from drhg.cli.shell import BAD_INPUT, OK, Format

app = App()


@app.command(
    epilog=epilog(
        [
            ("drhg check berlin52.tsp berlin52.tour", "cost, or every violation"),
            ("drhg check A-n32-k5.vrp plan.sol -f json", "the same for programs"),
            ("drhg check stops.csv routes.csv --capacity 120", "a spreadsheet's routes"),
        ]
    )
)
def check(
    instance: InstanceFile,
    solution: SolutionFile,
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
    format: Annotated[
        Format,
        typer.Option("-f", "--format", metavar="table|json", help="How to print the verdict."),
    ] = Format.table,
) -> None:
    """Check a solution against its instance: its cost, or everything that is wrong with it."""
    from drhg import problem
    from drhg.files.messages import in_file_numbers

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

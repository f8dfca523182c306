"""The command between formats: `drhg convert`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
    read_instance,
    table_options,
)
from drhg.cli.report import say
from drhg.cli.shell import blaming
from drhg.cli.targets import apart, try_file, try_folder
from drhg.errors import DrhgError

if TYPE_CHECKING:
    from drhg.files.research import Solved
    from drhg.problem import Instance

app = App()

MANY = (".txt", ".npz")  # suffixes of files that hold many problems


@app.command(
    epilog=epilog(
        [
            ("drhg convert cities.tsp cities.json", "a problem in another format"),
            ("drhg convert test_tsp100.txt folder", "every line to a .tsp and a .tour"),
            ("drhg convert test_cvrp100.txt folder --to json", "to other files"),
            ("drhg convert folder/*.tsp all.txt", "problems and the .tour beside each to lines"),
            ("drhg convert lehd.txt kit.txt --to ml4co", "from one research format to another"),
            ("drhg convert stops.csv plan.json --capacity 120", "a table with its limits"),
            ("drhg convert best.sol map.html --of a.vrp", "a solution, here to a map"),
        ],
        "Solutions (--of) come as .tour, .sol, .csv, .json or .geojson, and go to those or .html.\n"
        "Research formats hold many problems: lehd (LEHD, DRHG), ml4co (ML4CO-Kit), rl4co (.npz).\n"
        "A solution travels with its problem where the format has room for it.",
    )
)
def convert(
    inputs: Annotated[list[Path], typer.Argument(metavar="IN", help="Problems, any format.")],
    output: Annotated[
        Path, typer.Argument(metavar="OUT", help="A file; for many problems .txt, .npz, a folder.")
    ],
    to: Annotated[
        str | None,
        typer.Option("--to", metavar="FORMAT", help="lehd, ml4co, rl4co, or a suffix: tsp, json."),
    ] = None,
    of: Annotated[
        Path | None,
        typer.Option("--of", metavar="INSTANCE", help="IN is a solution of this instance."),
    ] = None,
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
) -> None:
    """Convert problems, with their solutions, from one format to another."""
    from drhg.files import stem, write_instance, write_solution
    from drhg.files.research import FORMATS, write_many

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
    apart({path: "read, too" for path in [*inputs, *([of] if of else [])]}, {"OUT": output})
    if of is not None:
        _convert_solution(inputs, output, of, table, to)
        return
    many = to in FORMATS or output.suffix.lower() in MANY
    named: list[tuple[str, Solved]] = []
    for path in inputs:
        with blaming(path):
            found = _read(path, table)
        width = len(str(len(found)))
        named += (
            [(f"{stem(path)}-{i:0{width}}", one) for i, one in enumerate(found, 1)]
            if path.suffix.lower() in MANY and not _holds_one(path)
            else [(stem(path), found[0])]
        )
    solved = [one for _, one in named]
    if many:
        try_file(output, "OUT")
        with blaming(output):
            write_many(output, solved, to or ("rl4co" if output.suffix == ".npz" else "lehd"))
        say(f"{output}: {_count(solved)}")
        return
    single = len(named) == 1 and not output.is_dir() and output.suffix != ""
    if not single:
        try_folder(output, "OUT")
        output.mkdir(parents=True, exist_ok=True)
    for name, (instance, solution) in named:
        kind = f".{to}" if to else ".vrp" if instance.is_cvrp else ".tsp"
        target = output if single else output / f"{name}{kind}"
        with blaming(target):
            write_instance(target, instance)
            _tell_what_is_lost(target, instance)
            if solution is not None:
                beside = target.with_suffix(".sol" if instance.is_cvrp else ".tour")
                write_solution(beside, instance, solution)
    say(f"{output}: {_count(solved)}")


def _convert_solution(
    inputs: list[Path], output: Path, of: Path, table: dict[str, Any], to: str | None
) -> None:
    """One solution to another file; it must be valid."""
    from drhg.files.messages import in_file_numbers
    from drhg.files.registry import check_solution_file, write_solution
    from drhg.problem import validated

    if len(inputs) > 1 or to is not None:
        raise typer.BadParameter("with --of, IN is one solution, and OUT says its format.")
    instance, solution = read_both(of, inputs[0], table)
    assert solution is not None
    check_solution_file(output, instance)
    with blaming(inputs[0]):
        try:
            validated(instance, solution)
        except DrhgError as error:
            raise DrhgError(in_file_numbers(error.reason, inputs[0])) from None
    try_file(output, "OUT")
    with blaming(output):
        output.parent.mkdir(parents=True, exist_ok=True)
        write_solution(output, instance, solution, instance_file=of)
    print(output)


def _tell_what_is_lost(path: Path, instance: Instance) -> None:
    """Warn of what the format cannot hold."""
    from drhg.files.paths import suffix

    if suffix(path) == ".csv" and instance.capacity is not None:
        capacity = instance.capacity / instance.demand_scale
        say(f"{path}: a table has no place for limits; give them with it: --capacity {capacity:g}")
    if suffix(path) in (".tsp", ".vrp") and instance.names is not None:
        say(f"{path}: TSPLIB has no place for names; .json, .csv and .geojson keep them")


def _read(path: Path, table: dict[str, Any]) -> list[Solved]:
    """The problems of a file; of a single one with the solution that lies beside it."""
    from drhg.files import read_solution
    from drhg.files.research import Solved, read_many
    from drhg.problem import validated

    if path.suffix.lower() in MANY and not _holds_one(path):
        return read_many(path)
    instance = read_instance(path, table)
    beside = path.with_suffix(".sol" if instance.is_cvrp else ".tour")
    if not beside.exists():
        return [Solved(instance, None)]
    return [Solved(instance, validated(instance, read_solution(beside, instance)))]


def _holds_one(path: Path) -> bool:
    """Whether a .txt file is one problem, as Solomon wrote them, and not many."""
    from drhg.files.solomon import looks_like_solomon
    from drhg.files.streams import read_bytes

    return path.suffix.lower() == ".txt" and looks_like_solomon(read_bytes(str(path)))


def _count(solved: list[Solved]) -> str:
    problems, solutions = len(solved), sum(solution is not None for _, solution in solved)
    return f"{problems} problem{'s' * (problems > 1)}, {solutions} solved"

"""`drhg solve`: its options, each checked before any file is read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from drhg.cli import solving
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
    table_options,
)
from drhg.cli.shell import Format, blaming, option
from drhg.cli.solving import SolveOptions
from drhg.cli.targets import STANDARD, apart
from drhg.errors import DrhgError

app = App()
STOPPING, SEARCH, OUTPUT = "When to stop", "How to search", "What to write"
CORES = "How many at a time"

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
Start: TypeAlias = Annotated[
    str,
    option(SEARCH, "-i", "--start", metavar="NAME|FILE",
           help="First solution: auto, insertion, sweep, savings, space-filling, greedy, alone "
           "(a route for every customer), or a file with a tour or routes."),
]  # fmt: skip
MethodName: TypeAlias = Annotated[
    str | None,
    option(SEARCH, "-m", "--method", metavar="NAME",
           help="auto (the default), neural (a network repairs), paper (the same to the letter of "
                "the paper), local, insertion, library (other packages), hybrid (neural, then "
                "local)."),
]  # fmt: skip
Config: TypeAlias = Annotated[
    Path | None,
    option(SEARCH, "--config", metavar="TOML", help="A file with settings of the method."),
]
Setting: TypeAlias = Annotated[
    list[str] | None,
    option(SEARCH, "--set", metavar="KEY=VALUE",
           help="One setting, such as destroy.k=20,200; may be repeated. A wrong KEY lists those "
                "that exist."),
]  # fmt: skip
Vehicles: TypeAlias = Annotated[
    int | None,
    option(SEARCH, "--vehicles", min=1, metavar="K",
           help="At most so many routes (CVRP), whatever the file says."),
]  # fmt: skip
Threads: TypeAlias = Annotated[
    int | None,
    option(
        CORES, "--threads", min=1, metavar="N", help="Threads of one search; by default all cores."
    ),
]
Jobs: TypeAlias = Annotated[
    int | None,
    option(CORES, "-j", "--jobs", min=1, metavar="N",
           help="Solve so many instances at a time: each in a process of its own, or with a "
                "network all as one batch."),
]  # fmt: skip
RayAddress: TypeAlias = Annotated[
    str | None,
    option(CORES, "--ray", metavar="ADDRESS|local",
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
Map: TypeAlias = Annotated[
    Path | None,
    option(OUTPUT, "--map", metavar="HTML",
           help="Write a map to open in a browser; with several instances, into a folder."),
]  # fmt: skip
RouteLines: TypeAlias = Annotated[
    bool, option(OUTPUT, "--routes", help="Print a line per route: stops, load, length.")
]
Printed: TypeAlias = Annotated[
    Format,
    option(OUTPUT, "-f", "--format", metavar="table|json", help="How to print the results."),
]
Quiet: TypeAlias = Annotated[
    bool, option(OUTPUT, "-q", "--quiet", help="No progress, only errors.")
]


@app.command(
    epilog=epilog(
        [
            ("drhg solve berlin52.tsp", "ten seconds, result as a table"),
            ("drhg solve X-n101-k25.vrp -t 60 -o best.sol", "one minute, routes to a file"),
            ("drhg solve stops.csv --capacity 120 -o routes.csv --map map.html", "a spreadsheet"),
            ("drhg solve a280.tsp -n 5000 -s 7", "the same result every time"),
            ("drhg solve a280.tsp -t 60 -i best.tour", "go on from a known tour"),
            ("drhg solve *.vrp -t 30 -o plans/ -f json", "many files, one JSON line each"),
            ("drhg solve *.vrp -t 30 -o plans/ -j 8", "the same, eight at a time"),
            ("drhg solve *.vrp -t 30 -o plans/ --ray local", "the same on a Ray cluster"),
            ("drhg solve a280.tsp -m neural -t 60", "a network repairs"),
            ("drhg solve *.tsp -m paper -j 64", "the paper's search, 64 files as one batch"),
            ("drhg solve a.tsp -m local --set destroy.k=9,60", "with settings of your own"),
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
                       help="Instances: TSPLIB, CVRPLIB, JSON or GeoJSON files or tables of stops "
                            "(.csv), perhaps .gz; - is standard input."),
    ],
    time_limit: TimeLimit = None,
    max_iters: MaxIters = None,
    no_improve: NoImprove = None,
    target: Target = None,
    seed: Seed = 0,
    start: Start = "auto",
    method: MethodName = None,
    config: Config = None,
    settings: Setting = None,
    vehicles: Vehicles = None,
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
    threads: Threads = None,
    jobs: Jobs = None,
    ray: RayAddress = None,
    output: Output = None,
    trace: TraceFile = None,
    plot: Picture = None,
    map: Map = None,
    routes: RouteLines = False,
    format: Printed = Format.table,
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """Solve one or more instances and report the best solutions found."""
    if target is not None and math.isnan(target):
        raise typer.BadParameter("nan is not a cost.", param_hint="--target")
    _known_start(start)
    search = {
        "time_limit": time_limit, "max_iters": max_iters, "no_improve": no_improve,
        "target": target, "seed": seed, "threads": threads,
        "method": _method(method, config, settings or []),
    }  # fmt: skip
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
    options = SolveOptions(
        search, start, vehicles, table, output, trace, plot, map, routes, format, quiet
    )
    _known_streams(files, options)
    away = ray is not None or (jobs or 1) > 1
    if away and trace is not None:
        raise typer.BadParameter(
            f"--trace follows one search at a time, not with {'--ray' if ray else '--jobs'}."
        )
    if away:
        raise typer.Exit(solving.solve_at_once(files, options, ray, jobs))
    raise typer.Exit(solving.solve_in_turn(files, options))


def _method(name: str | None, config: Path | None, changes: list[str]) -> Any:
    """The method that the options name, with its settings."""
    from drhg.session.configure import configured, merged, read_settings
    from drhg.session.methods import NAMED

    settings: dict[str, Any] = {}
    if config is not None:
        with blaming(config):
            settings = read_settings(config)
            named = settings.pop("method", "auto")
            configured(named, settings)
            name = name or named
    name = name or "auto"
    if name not in NAMED:
        raise typer.BadParameter(
            f"{name!r} is not one of: {', '.join(NAMED)}.", param_hint="--method"
        )
    if not settings and not changes:
        return name
    try:
        return configured(name, merged(settings, changes))
    except DrhgError as error:
        if error.file is not None:
            raise
        raise typer.BadParameter(f"{error.reason}.", param_hint="--set") from None


def _known_start(start: str) -> None:
    if start not in (*solving.starts(), str(STANDARD)) and not Path(start).exists():
        known = ", ".join(solving.starts())
        raise typer.BadParameter(
            f"{start!r} is neither a start ({known}) nor a file.", param_hint="--start"
        )


def _known_streams(files: Sequence[Path], options: SolveOptions) -> None:
    """Refuse two uses of standard input or output, and to write over what is read."""
    if [*files, Path(options.start)].count(STANDARD) > 1:
        raise typer.BadParameter("standard input (-) can be read only once.")
    if options.start == str(STANDARD) and len(files) > 1:
        raise typer.BadParameter("-i - is for one instance.")
    if options.output == STANDARD and options.format is Format.json:
        raise typer.BadParameter("-o - and -f json both write to standard output: choose one.")
    if STANDARD in (options.trace, options.plot, options.map):
        raise typer.BadParameter("only a solution (-o) goes to standard output (-).")
    written = {
        "--output": options.output, "--plot": options.plot, "--map": options.map,
        "--trace": options.trace,
    }  # fmt: skip
    apart({path: "an instance" for path in files}, written)
    apart({Path(options.start): "the start (--start)"}, {"--trace": options.trace})

"""`drhg matrix`: distances and durations by road, from a routing server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from drhg.cli.help_pages import App, epilog
from drhg.cli.inputs import Columns, columns_of, read_instance, table_options
from drhg.cli.report import Bar, say
from drhg.cli.shell import Interrupted, blaming, option
from drhg.cli.targets import apart, try_file

if TYPE_CHECKING:
    from drhg.roads import RoadMatrix, Server

app = App()
SERVER, OUTPUT = "Which server", "What to write"


@app.command(
    epilog=epilog(
        [
            ("drhg matrix stops.csv --osrm URL -o metres.npy", "distances by road"),
            ("drhg matrix stops.csv --osrm URL -o m.csv --durations s.csv", "seconds as well"),
            ("drhg matrix stops.csv --valhalla URL --profile truck -o metres.npy", "for trucks"),
            ("drhg solve stops.csv --capacity 120 --matrix metres.npy", "then solve with them"),
        ],
        "URL is the address of a server of yours, such as one that listens on port 5000 of this\n"
        "computer; drhg knows none by itself. Every answer is kept, so a run that was interrupted\n"
        "goes on where it was, and new stops cost only their own rows and columns.",
    )
)
def matrix(
    stops: Annotated[
        Path,
        typer.Argument(metavar="STOPS", help="A table of stops (.csv) with latitudes and "
                       "longitudes, or any instance that has them."),
    ],
    osrm: Annotated[
        str | None, option(SERVER, "--osrm", metavar="URL", help="An OSRM server.")
    ] = None,
    valhalla: Annotated[
        str | None, option(SERVER, "--valhalla", metavar="URL", help="A Valhalla server.")
    ] = None,
    profile: Annotated[
        str | None,
        option(SERVER, "--profile", metavar="NAME",
               help="Of OSRM, by default driving; the costing of Valhalla, by default auto."),
    ] = None,
    block: Annotated[
        int,
        option(SERVER, "--block", min=1, metavar="N",
               help="Ask for N x N pairs at a time, fewer if the server wants that."),
    ] = 50,
    columns: Columns = None,
    output: Annotated[
        Path | None,
        option(OUTPUT, "-o", "--output", metavar="FILE",
               help="Distances in metres: .npy, or .csv with names."),
    ] = None,
    durations: Annotated[
        Path | None,
        option(OUTPUT, "--durations", metavar="FILE", help="Durations in seconds, likewise."),
    ] = None,
    cache: Annotated[
        Path | None,
        option(OUTPUT, "--cache", metavar="FOLDER",
               help="Where answers are kept; by default a folder of the user's cache."),
    ] = None,
    fresh: Annotated[
        bool, option(OUTPUT, "--fresh", help="Ask for everything again, whatever was kept.")
    ] = False,
    quiet: Annotated[
        bool, option(OUTPUT, "-q", "--quiet", help="No progress, only errors.")
    ] = False,
) -> None:  # fmt: skip
    """Ask a routing server for the distances and durations between all stops."""
    from drhg.files.matrices import check_matrix_file, write_matrix

    if (osrm is None) == (valhalla is None):
        raise typer.BadParameter("say which server: --osrm URL or --valhalla URL.")
    if output is None and durations is None:
        raise typer.BadParameter("say what to write: -o FILE, --durations FILE or both.")
    targets = {"--output": output, "--durations": durations}
    apart({stops: "the table of stops"}, targets)
    for name, path in targets.items():
        if path is not None:
            with blaming(path):
                check_matrix_file(path)
            try_file(path, name)
    found = _asked(stops, columns, _server(osrm, valhalla, profile), block, cache, fresh, quiet)
    for path, table in ((output, found.distances), (durations, found.durations)):
        if path is not None:
            with blaming(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                write_matrix(path, table, found.names)
            print(path)


def _server(osrm: str | None, valhalla: str | None, profile: str | None) -> Server:
    from drhg.errors import DrhgError
    from drhg.roads import Osrm, Valhalla

    try:
        if osrm is not None:
            return Osrm(osrm, profile or "driving")
        assert valhalla is not None
        return Valhalla(valhalla, profile or "auto")
    except DrhgError as error:
        raise typer.BadParameter(f"{error.reason}.") from None


def _asked(
    stops: Path,
    columns: str | None,
    server: Server,
    block: int,
    cache: Path | None,
    fresh: bool,
    quiet: bool,
) -> RoadMatrix:
    from drhg.files.paths import suffix
    from drhg.files.registry import INSTANCES
    from drhg.files.stops import read_places
    from drhg.roads import RoadParams, road_matrix

    with blaming(stops):
        if suffix(stops) in INSTANCES and suffix(stops) != ".csv":
            places = read_instance(stops, table_options(columns=columns))
        else:
            places = read_places(stops, columns=columns_of(columns))
        try:
            with Bar("asked for", quiet) as bar:
                return road_matrix(
                    places, server, cache=cache, fresh=fresh, params=RoadParams(block=block),
                    on_progress=bar, notice=say,
                )  # fmt: skip
        except Interrupted:
            say(f"{stops}: stopped; what was answered is kept, the same command goes on from there")
            raise

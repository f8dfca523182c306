"""`drhg generate`: random instances."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from drhg.cli.help_pages import App, epilog
from drhg.cli.shell import blaming
from drhg.cli.targets import is_folder

if TYPE_CHECKING:
    from drhg.problem import Instance

app = App()


class Kind(StrEnum):
    uniform_tsp = "uniform-tsp"
    clustered_tsp = "clustered-tsp"
    uniform_cvrp = "uniform-cvrp"
    x_cvrp = "x-cvrp"
    towns_cvrp = "towns-cvrp"
    r1_vrptw = "r1-vrptw"
    r2_vrptw = "r2-vrptw"
    c1_vrptw = "c1-vrptw"
    c2_vrptw = "c2-vrptw"
    rc1_vrptw = "rc1-vrptw"
    rc2_vrptw = "rc2-vrptw"

    @property
    def on_grid(self) -> bool:
        """Whether places are whole numbers in any case."""
        return self is Kind.x_cvrp or self is Kind.towns_cvrp or self.value.endswith("vrptw")


def _maker(kind: Kind) -> Callable[[int, int], Instance]:
    """The generator of a kind: from a size and a seed."""
    from drhg.problem import generate as generators
    from drhg.problem.generate_towns import towns_cvrp
    from drhg.problem.generate_windows import windows_vrp

    if kind is Kind.towns_cvrp:
        return towns_cvrp
    if kind.value.endswith("vrptw"):
        return partial(windows_vrp, kind.value.partition("-")[0].upper())
    make: Callable[[int, int], Instance] = getattr(generators, kind.name)
    return make


@app.command(
    epilog=epilog(
        [
            ("drhg generate uniform-tsp -n 1000 -s 1 -o cities.tsp", "a thousand random cities"),
            ("drhg generate x-cvrp -n 200 -c 10 -o bench/", "ten plans with seeds 0 to 9"),
            ("drhg generate towns-cvrp -n 10000", "a country of towns, large and small"),
            ("drhg generate rc1-vrptw -n 200", "time windows, some customers in clusters"),
            ("drhg generate uniform-cvrp -o - | drhg solve -", "through a pipe"),
        ],
        "Files have whole coordinates from 0 to 1,000,000 (x-cvrp: to 1,000; towns-cvrp: further "
        "with more customers) and rounded distances (EUC_2D). With --unrounded they have the unit "
        "square and distances of type EXACT, which only drhg reads. The vrptw kinds are Solomon's: "
        "places random (r), in clusters (c) or both (rc), small vehicles and short days (1) or "
        "large and long (2), distances cut to a tenth.",
    )
)
def generate(
    kind: Annotated[Kind, typer.Argument(metavar="KIND", help=f"One of {', '.join(Kind)}.")],
    n: Annotated[
        int, typer.Option("-n", "--nodes", min=1, metavar="N", help="Cities, or customers.")
    ] = 100,
    seed: Annotated[
        int, typer.Option("-s", "--seed", min=0, metavar="N", help="The (first) seed.")
    ] = 0,
    count: Annotated[
        int,
        typer.Option("-c", "--count", min=1, metavar="N", help="How many, with seeds counting up."),
    ] = 1,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="OUT", help="File to write; a folder for many."),
    ] = None,
    unrounded: Annotated[
        bool, typer.Option("--unrounded", help="Unit square, distances not rounded.")
    ] = False,
) -> None:
    """Make random instances; the same kind, size and seed always give the same file."""
    from drhg import files as io
    from drhg.problem.generate import rounded

    if unrounded and kind.on_grid:
        raise typer.BadParameter(f"{kind} is on a grid of whole numbers.", param_hint="--unrounded")
    if count > 1 and str(output) == io.STANDARD:
        raise typer.BadParameter("standard output takes one instance.", param_hint="--count")
    make = _maker(kind)
    known = (".tsp", ".vrp", ".json")
    many = output is not None and is_folder(count, output, "--output", known)
    folder = output if many else None
    with blaming(output or Path(".")):
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
        for s in range(seed, seed + count):
            instance = make(n, s) if unrounded else rounded(make(n, s))
            suffix = ".vrp" if instance.is_cvrp else ".tsp"
            path = (folder or Path()) / f"{kind.value}-n{n}-s{s}{suffix}"
            if output is not None and folder is None:
                path = output
            if str(path) == io.STANDARD:
                io.write_instance(path, instance)
            else:
                io.write_instance(path, replace(instance, name=io.stem(path)))
                print(path)

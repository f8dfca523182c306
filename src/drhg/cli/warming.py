"""`drhg warmup`: compile everything before it is needed."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated

import typer

from drhg.cli.help_pages import App, epilog
from drhg.cli.report import Bar

app = App()


@app.command(
    epilog=epilog(
        [
            ("drhg warmup", "everything, once per version and machine"),
            ("drhg warmup tsp cvrp", "only what `drhg solve` needs with the method auto"),
        ],
        "Whatever needs what is not compiled yet compiles it first, before its time limit begins.\n"
        "An interrupted warm-up goes on where it stopped.",
    )
)
def warmup(
    methods: Annotated[
        list[str] | None,
        typer.Argument(metavar="METHOD",
                       help="Only for these: tsp, cvrp (what `drhg solve` does by default), vrp "
                            "(windows, locks), plans (explain), local, neural, paper."),
    ] = None,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress.")] = False,
) -> None:  # fmt: skip
    """Compile everything that `drhg solve` needs, so that no later run has to."""
    warming = import_module("drhg.kernels.warmup")
    unknown = [method for method in methods or () if method not in warming.METHODS]
    if unknown:
        known = ", ".join(warming.METHODS)
        raise typer.BadParameter(f"{unknown[0]!r} is not one of: {known}.", param_hint="METHOD")
    with Bar("compiled", quiet) as bar:
        seconds = warming.warmup(methods or None, on_progress=bar)
    from drhg.kernels.cache import CACHE_FOLDER

    if bar.done:
        print(f"compiled in {seconds:.0f} s; kept in {CACHE_FOLDER}")
    else:
        print(f"everything was compiled before ({CACHE_FOLDER})")

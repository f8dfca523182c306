"""The command line: `drhg solve | check | generate | plot | bench | label | train | models | ...`.

Results go to stdout, everything else to stderr. Nothing heavy is imported before a command needs
it, and the signal handler stands before that, so an interrupt at any moment ends cleanly.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any, NoReturn

import typer

from drhg.cli import (
    bench,
    check,
    convert,
    explain,
    generate,
    matrix,
    mcp,
    plot,
    replan,
    serve,
    solve,
    training,
    warming,
)
from drhg.cli.help_pages import App, epilog
from drhg.cli.report import say
from drhg.cli.shell import BAD_INPUT, OK, SOME_FAILED, STOP, USAGE, Interrupted
from drhg.errors import DrhgError

UsageError: type[Exception] = typer.BadParameter.__mro__[1]


EXIT_CODES = (
    "Exit codes:\n"
    "  0  all went well\n"
    "  1  some of several instances failed, or a result could not be written\n"
    "  2  the command line is wrong\n"
    "  3  an instance or a solution is not valid\n"
    "  4  no feasible solution was found; the customers left out are named\n"
    "  5  no search took place (say, time was up before it began), and the first\n"
    "     plan leaves customers out\n"
    "  130, 143  interrupted (Ctrl-C, SIGTERM), with the best solution written"
)

app = App(
    name="drhg",
    help="Solve travelling salesman (TSP) and capacitated vehicle routing problems (CVRP) "
    "by destroy and repair on hyper-graphs.",
    epilog=epilog(
        [
            ("drhg generate uniform-tsp -n 1000 -o cities.tsp", "make a problem"),
            ("drhg solve cities.tsp -t 10 -o cities.tour", "solve it"),
            ("drhg check cities.tsp cities.tour", "verify the answer"),
            ("drhg plot cities.tsp cities.tour -o cities.png", "look at it"),
            ("drhg models", "the networks in the box"),
        ],
        EXIT_CODES,
    ),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (
    solve, check, explain, replan, convert, matrix, generate, plot, serve, mcp, bench, training,
    warming,
):  # fmt: skip
    app.add_typer(command.app)


def main() -> NoReturn:
    """Entry point: runs the command line and leaves without waiting for compiling threads."""
    STOP.install()
    os.environ["MPLBACKEND"] = "agg"  # pictures go to files; a notebook's setting would not do
    code = _run()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:  # the reader is gone
            code = code or SOME_FAILED
    os._exit(code)


def _run() -> int:
    try:
        return app(prog_name="drhg", standalone_mode=False) or OK
    except Interrupted:
        return STOP.exit_code
    except Exception as error:
        if STOP.raised:  # on its way up Python wrapped it, as it does around `__set_name__`
            return STOP.exit_code
        if os.environ.get("DRHG_DEBUG") and not isinstance(error, (UsageError, BrokenPipeError)):
            raise
        return _explain(error)


def _explain(error: Exception) -> int:
    """One line on stderr, and the exit code."""
    if isinstance(error, UsageError):
        context: Any = getattr(error, "ctx", None)
        if type(error).__name__ == "NoArgsIsHelpError":  # no command at all
            typer.echo(context.get_help(), err=True)
            return USAGE
        told = error.format_message() if hasattr(error, "format_message") else str(error)
        message = " ".join(told.split())
        path = context.command_path if context is not None else "drhg"
        say(f"{message} Try '{path} --help'." if message.endswith(".") else message)
        return USAGE
    if isinstance(error, BrokenPipeError):
        return SOME_FAILED
    if isinstance(error, OSError) and error.filename is not None:
        say(f"{error.filename}: {error.strerror}")
        return BAD_INPUT
    if isinstance(error, DrhgError):
        say(str(error))
        return BAD_INPUT
    say(f"unexpected {type(error).__name__}: {error} (DRHG_DEBUG=1 shows where)")
    return SOME_FAILED


def _version(wanted: bool) -> None:
    if wanted:
        from drhg import __version__

        print(f"drhg {__version__}")
        raise typer.Exit


@app.callback()
def _top(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass

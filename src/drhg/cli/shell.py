"""What all commands share: exit codes, signals, and errors as one line."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from types import FrameType
from typing import Any

import typer

from drhg.cli.report import say
from drhg.errors import DrhgError

OK, SOME_FAILED, USAGE, BAD_INPUT, INFEASIBLE, NO_SEARCH = range(6)


class Interrupted(BaseException):
    """A signal came while there was no solution yet to save."""


class Stop:
    """The first SIGINT or SIGTERM asks to stop, the second one ends the process on the spot.

    While a solver runs (`patient`), the request is a flag that the solver reads; anywhere else it
    is raised as `Interrupted`, because there is nothing to wait for.
    """

    def __init__(self) -> None:
        self.signum = 0
        self.raised = False
        self._patient = False

    def install(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._handle)
        sys.unraisablehook = self._unraisable

    def _unraisable(self, unraisable: sys.UnraisableHookArgs, /) -> None:
        """A callback of compiled code cannot raise: Python would print `Interrupted` and go on."""
        if isinstance(unraisable.exc_value, Interrupted):
            os._exit(self.exit_code)
        sys.__unraisablehook__(unraisable)

    def _handle(self, signum: int, frame: FrameType | None) -> None:
        if self.signum:
            if sys.stderr.isatty():
                os.write(2, b"\x1b[?25h\n")  # a live display may have hidden the cursor
            os._exit(128 + signum)
        self.signum = signum
        if not self._patient:
            self.raised = True
            raise Interrupted

    def requested(self) -> bool:
        return self.signum != 0

    @property
    def exit_code(self) -> int:
        return 128 + self.signum if self.signum else OK

    @contextmanager
    def patient(self) -> Iterator[None]:
        """Finish what is inside, even when a signal arrives meanwhile."""
        self._patient = True
        try:
            yield
        finally:
            self._patient = False


STOP = Stop()


class Format(StrEnum):
    table = "table"
    json = "json"


def option(panel: str | None, *names: str, help: str, **more: Any) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=panel, **more)


@contextmanager
def blaming(path: Path, code: int = BAD_INPUT) -> Iterator[None]:
    """The one way out of an expected error: a line `file:line: reason`, and an exit code."""
    try:
        yield
    except (DrhgError, OSError) as error:
        if os.environ.get("DRHG_DEBUG"):
            raise
        if isinstance(error, OSError):
            say(f"{error.filename or path}: {error.strerror or error}")
        elif error.file is not None:
            say(str(error))
        else:
            line = "" if error.line is None else f"{error.line}: "
            say(f"{path}: {line}{error.reason}")
        raise typer.Exit(code) from None

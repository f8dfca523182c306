"""What can go wrong, as types a caller can catch: every error of this package is a `DrhgError`."""

from __future__ import annotations

from functools import partial
from typing import Any


class DrhgError(Exception):
    """Base of all errors raised on purpose; carries the file and line it is about, if any."""

    def __init__(self, reason: str, *, file: str | None = None, line: int | None = None) -> None:
        super().__init__(reason, file, line)
        self.reason, self.file, self.line = reason, file, line

    def __reduce__(self) -> tuple[Any, ...]:  # errors travel between processes
        return partial(type(self), file=self.file, line=self.line), (self.reason,)

    def __str__(self) -> str:
        if self.file is not None:
            where = self.file if self.line is None else f"{self.file}:{self.line}"
            return f"{where}: {self.reason}"
        return self.reason if self.line is None else f"line {self.line}: {self.reason}"


class InstanceError(DrhgError):
    """The problem itself is malformed, inconsistent or of a kind that is not solved here."""


class SolutionError(DrhgError):
    """A tour or plan does not belong to its instance, or breaks one of its rules."""


class ModelError(DrhgError):
    """Weights that cannot be used: damaged, of another version, or wrong for the instance."""

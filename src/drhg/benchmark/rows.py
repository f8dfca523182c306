"""Rows on disk: one JSON line per instance and solver, with everything needed to run it again."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from drhg.errors import DrhgError

Row: TypeAlias = dict[str, Any]

# How a job ended. All but the last group carry a cost that our checker confirmed.
OK = "ok"
LATE = "late"  # a valid answer, but well after the limit
FAILED = ("crashed", "hung", "garbage", "invalid", "skipped")
NEEDED = (
    "suite", "set", "instance", "n", "solver", "limit", "status", "cost", "gap", "reference",
    "reference_kind", "seconds", "time_limit", "max_iters", "config", "config_hash",
)  # fmt: skip


def digest(value: object) -> str:
    """A short name for a JSON value: the same for equal values, whatever the order of keys."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


@cache
def provenance() -> Row:
    """What all rows of a run have in common: version, commit and machine."""
    from drhg import __version__

    return {
        "version": __version__,
        "commit": _commit(),
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
    }


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _commit() -> str | None:
    """The commit the package was run from, with a + if files differ from it; None if installed."""
    folder = Path(__file__).parent

    def git(*words: str) -> str:
        command = ["git", "-C", str(folder), *words]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
        return ended.stdout.strip()

    try:
        git("ls-files", "--error-unmatch", __file__)  # else somebody else's repository around us
        changed = git("status", "--porcelain", "-uno", "--", str(folder.parent))
        return git("rev-parse", "--short=12", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.SubprocessError):
        return None


def _cpu() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def key_of(row: Row) -> tuple[str, str, str]:
    """The key of a row; a job with the same key is not run again."""
    return row["suite"], row["instance"], row["config_hash"]


def read_rows(paths: Iterable[Path]) -> list[Row]:
    """All rows; of rows with the same key the last one counts. A torn last line is left out."""
    found: dict[tuple[str, str, str], Row] = {}
    for path in paths:
        try:
            lines = path.read_bytes().split(b"\n")
        except OSError as error:
            raise DrhgError(f"cannot read rows: {error.strerror}", file=str(path)) from None
        for number, line in enumerate(lines[:-1], start=1):  # what follows the last \n is torn
            try:
                row = json.loads(line)
            except ValueError:
                row = None
            missing = ["JSON object"]
            if isinstance(row, dict):
                missing = [name for name in NEEDED if name not in row]
            if missing:
                reason = f"not a row of a benchmark (no {missing[0]})"
                raise DrhgError(reason, file=str(path), line=number)
            found.pop(key_of(row), None)
            found[key_of(row)] = row
    return list(found.values())


def make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DrhgError(f"no folder can be made here: {error.strerror}", file=str(folder)) from None


class RowFile:
    """Rows appended one by one, each on disk before the next begins."""

    def __init__(self, path: Path) -> None:
        make_folder(path.parent)
        try:
            self._file = open(path, "ab+")  # noqa: SIM115 - closed by __exit__
        except OSError as error:
            raise DrhgError(f"cannot write rows: {error.strerror}", file=str(path)) from None
        size = self._file.tell()
        if size:  # a run that was killed may have left half a line
            self._file.seek(0)
            whole = self._file.read().rfind(b"\n") + 1
            if whole < size:
                self._file.truncate(whole)
                self._file.seek(0, os.SEEK_END)

    def add(self, row: Row) -> None:
        self._file.write(json.dumps(row).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def __enter__(self) -> RowFile:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

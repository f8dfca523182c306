"""Where results go: names are completed, and tried before any time is spent on a search."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer

from drhg.errors import DrhgError

if TYPE_CHECKING:
    from drhg.problem import Instance

STANDARD = Path("-")  # standard input or output
PICTURES = (".png", ".pdf", ".svg")


@dataclass(frozen=True)
class Destination:
    """Where a solution goes; the problem decides how the name of a file in a folder ends."""

    path: Path
    in_folder: bool

    def of(self, instance: Instance) -> Path:
        """The file to write, its name completed or, before any time is spent, refused."""
        from drhg.files.registry import check_solution_file

        usual = ".sol" if instance.is_cvrp else ".tour"
        path = self.path
        if path == STANDARD:
            return path
        if self.in_folder or not path.suffix:
            path = path.with_name(path.name + usual)
        check_solution_file(path, instance)
        try:
            _refuse_what_is_no_file(path)
        except OSError as error:
            raise DrhgError(f"cannot be written: {error.strerror}", file=str(path)) from None
        return path


def solutions(files: Sequence[Path], out: Path | None) -> list[Destination | None]:
    """Where the solution of each file goes."""
    if out is None:
        return [None] * len(files)
    if out == STANDARD:
        if len(files) > 1:
            _refuse("--output", "several solutions do not go to standard output; name a folder.")
        return [Destination(out, False)]
    from drhg.files.registry import SOLUTIONS

    if is_folder(len(files), out, "--output", SOLUTIONS):
        return [Destination(path, True) for path in _inside(files, out, "--output", "")]
    try_file(out, "--output")
    return [Destination(out, False)]


def pictures(
    files: Sequence[Path],
    out: Path | None,
    option: str = "--plot",
    kinds: Sequence[str] = PICTURES,
) -> list[Path | None]:
    """Where the picture of each file goes, or another file of one of these kinds."""
    if out is None:
        return [None] * len(files)
    if is_folder(len(files), out, option, kinds):
        found = _inside(files, out, option, kinds[0])
        for path in found:
            try_file(path, option)
        return list(found)
    if out.suffix.lower() not in kinds:
        what = "picture" if kinds is PICTURES else "map"
        _refuse(option, f"{out} is no {what}; it may end in {', '.join(kinds)}.")
    try_file(out, option)
    return [out]


def is_folder(count: int, out: Path, option: str, known: Iterable[str]) -> bool:
    """Whether files of so many instances go to a folder; refuses one file for many of them."""
    from drhg.files.paths import suffix

    if os.path.isdir(out):  # unlike `out.is_dir()`, it bears a name that is too long
        return True
    if count > 1 and (os.path.exists(out) or suffix(out) in known):
        _refuse(
            option,
            f"{out} is one file, but there are {count} instances; name a folder to write to, "
            f"such as {out.parent / 'plans'}{os.sep}.",
        )
    return count > 1


def _inside(files: Sequence[Path], folder: Path, option: str, suffix: str) -> list[Path]:
    try_folder(folder, option)
    names = [name_of(path) for path in files]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        _refuse(option, f"two instances are called {twice[0]!r}: they would collide.")
    return [folder / f"{name}{suffix}" for name in names]


def name_of(path: Path) -> str:
    """What the results of an instance are called, if nothing else is said."""
    from drhg.files.paths import stem

    return "stdin" if path == STANDARD else stem(path)


def apart(read: dict[Path, str], written: dict[str, Path | None]) -> None:
    """Refuse to write over what is read, or two things to one file; what is written, by option."""
    taken = {os.path.realpath(path): what for path, what in read.items() if path != STANDARD}
    for option, path in written.items():
        if path is None or path == STANDARD:
            continue
        real = os.path.realpath(path)
        if real in taken:
            _refuse(option, f"{path} is {taken[real]}: it would be overwritten.")
        taken[real] = f"also for {option}"


def try_file(path: Path, option: str) -> None:
    """See whether this file can be written, and leave nothing behind."""
    try:
        _refuse_what_is_no_file(path)
    except OSError as error:
        _refuse(option, f"cannot write {path}: {error.strerror}.")
    try_folder(Path(os.path.realpath(path)).parent, option)  # through a symlink, as writing does


def _refuse_what_is_no_file(path: Path) -> None:
    with suppress(FileNotFoundError):
        mode = path.stat().st_mode  # a name that cannot be raises, too
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(None, "it is a folder")
        if not stat.S_ISREG(mode):
            raise OSError(None, "it is not a regular file")


def try_folder(folder: Path, option: str) -> None:
    """Make a folder and a file in it, and take away what was made.

    Nothing less will do: rights say little to root, or about a file system that is read-only.
    """
    made: list[Path] = []
    try:
        for one in (*reversed(folder.parents), folder):
            if not os.path.exists(one):
                one.mkdir()
                made.append(one)
        descriptor, trial = tempfile.mkstemp(prefix=".drhg-", dir=folder)
        os.close(descriptor)
        os.unlink(trial)
    except OSError as error:
        _refuse(option, f"cannot write to the folder {folder}: {error.strerror}.")
    finally:
        for one in reversed(made):
            with suppress(OSError):
                one.rmdir()


def _refuse(option: str, reason: str) -> NoReturn:
    raise typer.BadParameter(reason, param_hint=option)

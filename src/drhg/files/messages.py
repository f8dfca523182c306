"""Errors that name a file and a line."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Collection, Iterator
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from drhg.errors import DrhgError
from drhg.files.paths import STANDARD, PathLike, suffix
from drhg.problem import Instance, not_known
from drhg.problem.arguments import shown

NO_TEXT = "not a text file (NUL or not UTF-8)"
_FROM_ZERO = re.compile(r"(nodes?) (-?[0-9]+(?:(?:, | and )-?[0-9]+)*) \(counted from 0\)")


def fail(reason: str, line: int | None = None) -> NoReturn:
    raise DrhgError(reason, line=line)


@contextlib.contextmanager
def errors_as(kind: type[DrhgError], file: str | None) -> Iterator[None]:
    """Give every error inside its public type and the name of the file, unless it has one."""
    try:
        yield
    except DrhgError as error:
        raise kind(error.reason, file=error.file or file, line=error.line) from None


def in_file_numbers(message: str, path: PathLike) -> str:
    """A message of `drhg.check` or of an error, with nodes named as this file counts them.

    >>> in_file_numbers("node 4 (counted from 0) is not visited", "berlin52.tour")
    'node 5 of the file is not visited'
    >>> in_file_numbers("node 4 (counted from 0) is not visited", "A-n32-k5.sol")
    'node 4 as .sol files count (5 in a .vrp file) is not visited'
    """
    name = os.fspath(path)
    if name == STANDARD or suffix(name) in (".json", ".jsonl"):
        return message
    plain = suffix(name) != ".sol"

    def renamed(match: re.Match[str]) -> str:
        from_one = re.sub("-?[0-9]+", lambda number: str(int(number[0]) + 1), match[2])
        if plain:
            return f"{match[1]} {from_one} of the file"
        return f"{match[1]} {match[2]} as .sol files count ({from_one} in a .vrp file)"

    return _FROM_ZERO.sub(renamed, message)


def refuse_variants(instance: Instance, where: str, known: Collection[str] = ()) -> None:
    """Refuse to write what a format has no place for."""
    if why := not_known(where, instance, known):
        fail(f"{why}; write the instance as .json")


def name_of(path: Any, argument: str = "path") -> str:
    try:
        name = os.fspath(path)
    except TypeError:
        name = None
    if not (isinstance(name, str) and name):
        fail(f"{argument} must be the name of a file, not {shown(path)}")
    return name


def quoted(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")


def first(mask: npt.NDArray[np.bool_]) -> int | None:
    """Index of the first True."""
    return int(np.argmax(mask)) if mask.any() else None


def one_line(text: str) -> str:
    return re.sub(r"[\0\r\n]", " ", text).strip(" \t")

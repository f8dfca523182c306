"""Types of arrays, and arguments checked with a message that names them."""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from decimal import Decimal
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from drhg.errors import InstanceError

Cost: TypeAlias = int | float
Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]
LARGEST_EXACT = 2**52  # integers up to here (and their sums) are exact in float64


def from_zero(*nodes: int | np.integer[Any]) -> str:
    """How messages name nodes; `files.messages.in_file_numbers` turns it into what a file counts.

    >>> from_zero(4), from_zero(0, 3, 7)
    ('node 4 (counted from 0)', 'nodes 0, 3 and 7 (counted from 0)')
    """
    *some, last = map(str, nodes)
    named = f"nodes {', '.join(some)} and {last}" if some else f"node {last}"
    return f"{named} (counted from 0)"


def shown(value: object) -> str:
    """A wrong argument in an error message: short, whatever it is."""
    try:
        return reprlib.repr(value)
    except Exception:  # somebody else's __repr__, or an int of too many digits
        return f"a {type(value).__name__}"


def _is_number(value: object) -> bool:
    return isinstance(value, (Real, Decimal)) and not isinstance(value, bool)


def whole_number(name: str, value: Any, least: int | None = None) -> int:
    """The argument as an int (2.0 is one, 2.5 and True are not), or an error that names it."""
    try:
        whole = int(value) if _is_number(value) and int(value) == value else None
    except (ValueError, OverflowError):  # nan, infinity
        whole = None
    if whole is None or (least is not None and whole < least):
        bound = "" if least is None else f" of at least {least}"
        raise InstanceError(f"{name} must be a whole number{bound}, not {shown(value)}")
    return whole


def real_number(name: str, value: Any, least: float | None = None) -> float:
    """The argument as a finite float, or an error that names it."""
    try:
        real = float(value) if _is_number(value) else np.nan
    except OverflowError:
        real = np.nan
    if not np.isfinite(real) or (least is not None and real < least):
        bound = "" if least is None else f" >= {least:g}"
        raise InstanceError(f"{name} must be a finite number{bound}, not {shown(value)}")
    return real


def one_of(name: str, value: Any, known: Sequence[str]) -> str:
    """The argument, which must be one of some words, or an error that names them."""
    if not isinstance(value, str) or value not in known:
        raise InstanceError(f"{name} must be one of {', '.join(known)}, not {shown(value)}")
    return value


def text_argument(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise InstanceError(f"{name} must be text, not {shown(value)}")
    return value


def array_argument(name: str, values: Any) -> npt.NDArray[Any]:
    """The argument as an array of numbers of any kind; objects are left to the caller."""
    try:
        array = np.asarray(values)
    except (TypeError, ValueError):  # rows of unequal length
        array = np.asarray("")
    if array.dtype.kind not in "iufO" or (array.dtype.kind == "O" and array.ndim == 0):
        raise InstanceError(f"{name} must be an array of numbers, not {shown(values)}")
    return array


def frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A private read-only copy, C-contiguous."""
    copy = np.array(array, order="C", copy=True)
    copy.flags.writeable = False
    return copy


def is_whole(array: npt.NDArray[Any]) -> bool:
    return array.dtype.kind in "iu" or bool(np.all(array == np.floor(array)))

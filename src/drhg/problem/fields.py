"""Fields of an instance as they are given: checked, and brought to one form."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
import numpy.typing as npt

from drhg.errors import InstanceError
from drhg.problem.arguments import (
    LARGEST_EXACT,
    Floats,
    Ints,
    array_argument,
    from_zero,
    is_whole,
    real_number,
    shown,
    whole_number,
)

ROUNDING_NOISE = 1e-9  # relative: two distances this close are one distance


def node_names(names: Any, n: int) -> tuple[str, ...]:
    """The names of all nodes, or an error that says which one cannot be."""
    if isinstance(names, (str, bytes)) or not isinstance(names, Iterable):
        raise InstanceError(f"names must be a list of texts, one per node, not {shown(names)}")
    found = tuple(names)
    if len(found) != n:
        raise InstanceError(f"{len(found)} names for {n} nodes")
    for i, name in enumerate(found):
        if not isinstance(name, str) or not name.strip():
            raise InstanceError(f"the name of {from_zero(i)} must be text, not {shown(name)}")
    if len(set(found)) < n:
        first: dict[str, int] = {}
        i = next(i for i, name in enumerate(found) if first.setdefault(name, i) != i)
        raise InstanceError(f"{from_zero(first[found[i]], i)} are both called {found[i]!r}")
    return found


def coordinates(xy: npt.ArrayLike) -> Floats:
    try:
        points = array_argument("xy", xy).astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InstanceError(f"xy must be an array of numbers, not {shown(xy)}") from None
    if points.ndim != 2 or points.shape[1] != 2:
        raise InstanceError(f"xy has shape {points.shape}, expected (n, 2)")
    if not np.isfinite(points).all():
        i = int(np.argmax(~np.isfinite(points).all(axis=1)))
        raise InstanceError(f"{from_zero(i)} has the coordinates {points[i, 0]}, {points[i, 1]}")
    return points


def square_matrix(name: str, what: str, values: npt.ArrayLike) -> npt.NDArray[Any]:
    """A matrix of the distances or times between all nodes; whole numbers stay whole."""
    matrix = array_argument(name, values)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InstanceError(f"the {what} matrix has shape {matrix.shape}, expected (n, n)")
    if matrix.dtype.kind == "O":
        raise InstanceError(f"the {what} matrix is not numeric")
    if not np.isfinite(matrix).all():
        raise InstanceError(f"the {what} matrix has a value that is not finite")
    if (matrix < 0).any():
        i, j = np.argwhere(matrix < 0)[0]
        raise InstanceError(f"the {what} of {from_zero(i, j)} is negative")
    if float(matrix.max(initial=0)) >= LARGEST_EXACT:
        raise InstanceError(f"a {what} is too large to be exact")
    matrix = matrix.copy()
    np.fill_diagonal(matrix, 0)  # first: what stands there says nothing about distances
    if not np.array_equal(matrix, matrix.T):
        matrix = _without_noise(matrix)
    return matrix.astype(np.int64 if is_whole(matrix) else np.float64, copy=False)


def _without_noise(matrix: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The mean of a matrix and its transpose, if they differ by rounding noise alone.

    Whole numbers carry no noise, and what differs by more is asymmetric: both stay as they are.
    """
    if (
        is_whole(matrix)
        or (np.abs(matrix - matrix.T) > ROUNDING_NOISE * np.maximum(matrix, matrix.T)).any()
    ):
        return matrix
    wide = matrix.astype(np.float64)
    return (wide + wide.T) / 2


def as_integers(array: npt.NDArray[Any]) -> Ints | None:
    """The same numbers as int64, or None if one of them is not whole, or too large to be exact."""
    if array.dtype.kind == "f":
        array = array.astype(np.float64)
    if array.dtype.kind == "O" or not (np.abs(array) < LARGEST_EXACT).all():  # nan is not, either
        return None
    return array.astype(np.int64) if is_whole(array) else None


def fixed_pairs(edges: Any) -> tuple[tuple[int, int], ...]:
    try:
        pairs = [tuple(edge) for edge in edges]
    except TypeError:
        raise InstanceError(
            f"fixed_edges must be pairs of nodes such as [(0, 1)], not {shown(edges)}"
        ) from None
    if any(len(pair) != 2 for pair in pairs):
        raise InstanceError("fixed_edges: a fixed edge is a pair of nodes")
    node = "a node of fixed_edges"
    return tuple((whole_number(node, a), whole_number(node, b)) for a, b in pairs)


def fixed_edges(pairs: tuple[tuple[int, int], ...], n: int) -> tuple[tuple[int, int], ...]:
    """Sorted, without repeats; must be disjoint paths (or one tour through all nodes)."""
    chosen = sorted({(min(pair), max(pair)) for pair in pairs})
    root = list(range(n))

    def find(i: int) -> int:
        while root[i] != i:
            root[i] = root[root[i]]
            i = root[i]
        return i

    degree = [0] * n
    for count, (a, b) in enumerate(chosen, start=1):
        if a < 0 or b >= n or a == b:
            raise InstanceError(f"the fixed edge of {from_zero(a, b)} does not join two nodes")
        degree[a] += 1
        degree[b] += 1
        if degree[a] > 2 or degree[b] > 2:
            raise InstanceError(
                f"more than two fixed edges at {from_zero(a if degree[a] > 2 else b)}"
            )
        if find(a) == find(b) and not (count == len(chosen) == n):
            raise InstanceError(f"the fixed edges close a cycle at {from_zero(a, b)}")
        root[find(a)] = find(b)
    return tuple(chosen)


def whole_demand(demand: npt.ArrayLike, capacity: float) -> tuple[Ints, int, int]:
    """Demand and capacity as int64, and the power of ten they were multiplied by to get there.

    Decimals such as 0.25 are scaled exactly; what no power of ten up to 10^9 makes whole is not.
    A float32 stands for the shortest decimal that rounds to it, as any float does.
    """
    values = array_argument("demand", demand)
    if values.ndim != 1:
        raise InstanceError(f"demand has shape {values.shape}, expected (n,)")
    is_whole = real_number("capacity", capacity).is_integer()
    whole = as_integers(values)
    if whole is not None and is_whole:
        return whole, int(capacity), 1
    try:
        exact = [_decimal(v) for v in [*values, capacity]]
    except (TypeError, ValueError, OverflowError, InvalidOperation):
        raise InstanceError("demand must be numbers") from None
    if not all(v.is_finite() for v in exact):
        raise InstanceError("demand must be finite")
    exponents = [v.normalize().as_tuple().exponent for v in exact]
    digits = max(0, *(-e for e in exponents if isinstance(e, int)))
    scale = 10 ** min(digits, 9)
    scaled = [v * scale for v in exact]
    if any(v != v.to_integral_value() or abs(v) >= LARGEST_EXACT for v in scaled):
        raise InstanceError("demand or capacity is not a decimal number of at most 9 places")
    numbers = [int(v) for v in scaled]
    return np.array(numbers[:-1], dtype=np.int64), numbers[-1], scale


def _decimal(value: Any) -> Decimal:
    """The shortest decimal that rounds to this number in its own precision."""
    return Decimal(str(value) if isinstance(value, np.floating) else repr(float(value)))

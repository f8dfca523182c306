"""Matrices of distances or durations as files: .npy, or CSV with names or without."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from io import BytesIO, StringIO
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from drhg.errors import InstanceError
from drhg.files.atomic import atomic_write
from drhg.files.messages import errors_as, fail, name_of, quoted
from drhg.files.paths import PathLike, suffix
from drhg.files.streams import read_bytes
from drhg.files.tables import is_number, parse_rows
from drhg.problem import Floats

KINDS = (".npy", ".csv")  # that matrices are written as

Matrix: TypeAlias = tuple[npt.NDArray[Any], tuple[str, ...] | None, str]


def read_matrix(path: PathLike) -> Matrix:
    """A matrix of distances from a .npy file or a CSV, with the names in its header, if any."""
    with errors_as(InstanceError, None):
        name = name_of(path, "matrix")
    with errors_as(InstanceError, name):
        if suffix(name) == ".npy":
            try:
                with open(name, "rb") as stream:
                    found = np.load(BytesIO(stream.read()), allow_pickle=False)
            except OSError as error:
                fail(f"cannot be read: {error.strerror or error}")
            except (ValueError, EOFError) as error:
                fail(f"not a matrix of numbers: {error}")
            names = None
        else:
            found, names = _matrix_of_rows(read_bytes(name))
        if found.ndim != 2 or found.shape[0] != found.shape[1]:
            fail(f"a matrix is square, this one has the shape {found.shape}")
        if found.dtype.kind not in "iuf":
            fail("not a matrix of numbers")
    return found, names, name


def _matrix_of_rows(data: bytes) -> tuple[npt.NDArray[Any], tuple[str, ...] | None]:
    rows, lines, delimiter = parse_rows(data)
    if not rows:
        fail("the file is empty", 1)
    names = None
    corner = rows[0][0].strip()  # blank above the names of the rows
    if not corner or not is_number(rows[0][-1]):  # a header, and perhaps names before each row
        names = tuple(cell.strip() for cell in rows[0])
        rows, lines = rows[1:], lines[1:]
        if rows and len(names) == len(rows) + 1:
            names = names[1:]
            for i, (row, line) in enumerate(zip(rows, lines, strict=True)):
                if row[0].strip() != names[i]:
                    fail(
                        f"row {quoted(row[0])} stands where column {quoted(names[i])} is due", line
                    )
            rows = [row[1:] for row in rows]
    commas = delimiter != ","
    values = []
    for row, line in zip(rows, lines, strict=True):
        if len(row) != len(rows):
            fail(f"{len(row)} distances, but {len(rows)} rows: a matrix is square", line)
        wrong = next((cell for cell in row if not is_number(cell)), None)
        if wrong is not None or (not commas and any("," in cell for cell in row)):
            fail(f"{quoted(wrong or next(c for c in row if ',' in c))} is no number", line)
        values.append([float(cell.replace(",", ".")) for cell in row])
    return np.array(values), names


def fitted(matrix: Matrix, n: int, names: tuple[str, ...] | None) -> npt.NDArray[Any]:
    """The distances in the order of the stops: by names if both have them, else row by row."""
    found, headings, file = matrix
    with errors_as(InstanceError, file):
        if headings is None or names is None:
            if len(found) != n:
                fail(f"{len(found)} rows of distances for {n} stops")
            return found
        missing = [name for name in names if name not in headings]
        if missing:
            fail(f"no row of distances for the stop {quoted(missing[0])}")
        place = {heading: i for i, heading in enumerate(headings)}
        order = np.array([place[name] for name in names])
        fitted: npt.NDArray[Any] = found[np.ix_(order, order)]
        return fitted


def check_matrix_file(path: PathLike) -> None:
    """Raise if a matrix cannot go to a file of this name."""
    if suffix(path) not in KINDS:
        fail(f"a matrix goes to a file that ends in {' or '.join(KINDS)}")


def write_matrix(path: PathLike, table: Floats, names: Sequence[str] | None = None) -> None:
    """Write a matrix as its file's name ends; CSV has the names in its first row and column."""
    check_matrix_file(path)
    if suffix(path) == ".npy":
        buffer = BytesIO()
        np.save(buffer, table)
        atomic_write(path, buffer.getvalue())
        return
    out = StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    rows = [[repr(value).removesuffix(".0") for value in row] for row in table.tolist()]
    if names is not None:
        writer.writerow(["", *names])
        rows = [[name, *row] for name, row in zip(names, rows, strict=True)]
    writer.writerows(rows)
    atomic_write(path, out.getvalue())

"""The formats in which research exchanges many solved problems: one line each, or arrays.

| format  | of tours                           | of routes                                        |
|---------|------------------------------------|--------------------------------------------------|
| `lehd`  | `x1 y1 ... output t1 ... tn t1`    | `depot,x,y,customer,x1,y1,...,capacity,c,demand,` |
|         | (LEHD, DRHG, ML4CO; from 1)        | `d1,...,cost,c,node_flag,` customers, flags      |
| `ml4co` | the same                           | `depots x y points x1 y1 ... demands d1 ...`     |
|         |                                    | `capacity c output 0 3 ... 0` (ML4CO-Kit)        |
| `rl4co` | .npz with `locs` (N, n, 2)         | .npz with `depot`, `locs`, `demand`, `capacity`  |

A flag is 1 where a customer is reached from the depot. What is read is checked: whatever is no
number, no tour or no plan is refused with its line and column. Nothing in a file is ever executed.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from drhg import problem
from drhg.errors import DrhgError, InstanceError
from drhg.files.atomic import atomic_write
from drhg.files.messages import errors_as, fail, name_of, quoted, refuse_variants
from drhg.files.paths import PathLike, suffix
from drhg.files.streams import read_binary, read_bytes
from drhg.problem import Floats, Instance, Ints, Metric, Solution, cvrp, tsp

FORMATS = ("lehd", "ml4co", "rl4co")


class Solved(NamedTuple):
    """A problem and, if it is known, a solution of it."""

    instance: Instance
    solution: Solution | None


# --- reading -------------------------------------------------------------------------------------


def read_many(path: PathLike) -> list[Solved]:
    """All problems of a file in one of the formats above; which one, its content tells."""
    with errors_as(InstanceError, None):
        name = name_of(path)
    with errors_as(InstanceError, name):
        if suffix(name) == ".npz":
            return _from_arrays(read_binary(name))
        data = read_bytes(name)
        if is_tours(data):
            return [Solved(tsp(xy), Solution([tour])) for xy, tour in tour_lines(data)]
        return list(_plan_lines(data))


def is_tours(data: bytes) -> bool:
    """Whether the lines of a file are about tours."""
    start = data[:4096].lstrip()
    if not start:
        fail("the file is empty")
    routes = start.startswith((b"depot,", b"depots "))
    if not routes and not re.match(rb"[-+.0-9]", start):
        fail("lines of tours begin with x1 y1, of routes with depot, or depots", 1)
    return not routes


def tour_lines(data: bytes) -> Iterator[tuple[Floats, Ints]]:
    """Coordinates and tour, counted from 0, of every line."""
    for number, line in _lines(data):
        given, said, tour = line.partition("output")
        if not said:
            fail("there is no `output` with a tour", number)
        xy = _pairs(line, 0, given, number)
        nodes = _numbers(line, len(given) + len(said), tour, number)
        n = len(xy)
        if len(nodes) != n + 1 or nodes[0] != nodes[-1]:
            fail(
                f"column {len(given) + 1}: a closed tour of {n} nodes names {n + 1}, the first one "
                f"again at the end; here are {len(nodes)}",
                number,
            )
        yield xy, _from_one(nodes[:-1], n, line, len(given) + len(said), number)


def _plan_lines(data: bytes) -> Iterator[Solved]:
    for number, line in _lines(data):
        try:
            yield _lehd_plan(line, number) if line.startswith("depot,") else _kit_plan(line, number)
        except DrhgError as error:
            fail(error.reason, number)


def _lehd_plan(line: str, number: int) -> Solved:
    words = ("depot", "customer", "capacity", "demand", "cost", "node_flag")
    part = _parts(line, words, ",", number)
    depot, customers = (_pairs(line, *part[word], number) for word in words[:2])
    n = len(customers)
    demand = _numbers(line, *part["demand"], number)
    capacity, _ = (_one(line, *part[word], number) for word in ("capacity", "cost"))
    if len(demand) == n + 1 and demand[0] == 0:
        demand = demand[1:]
    flagged = _numbers(line, *part["node_flag"], number)
    at = part["node_flag"][0]
    if len(depot) != 1 or len(demand) != n:
        fail(f"one depot and a demand for each of {n} customers expected", number)
    if len(flagged) != 2 * n or not np.isin(flagged[n:], (0, 1)).all():
        fail(
            f"column {at + 1}: after node_flag come {n} customers, then as many flags 0 or 1; here "
            f"are {len(flagged)} numbers",
            number,
        )
    order = _from_one(flagged[:n], n, line, at, number) + 1
    if flagged[n] != 1:
        fail(f"column {at + 1}: the first customer must be reached from the depot", number)
    routes = np.split(order, np.flatnonzero(flagged[n:])[1:])
    return _planned(np.concatenate([depot, customers]), demand, capacity, routes)


def _kit_plan(line: str, number: int) -> Solved:
    words = ("depots", "points", "demands", "capacity", "output")
    part = _parts(line, words, " ", number)
    depot, customers = (_pairs(line, *part[word], number) for word in words[:2])
    demand = _numbers(line, *part["demands"], number)
    capacity = _one(line, *part["capacity"], number)
    sequence = _numbers(line, *part["output"], number)
    n, at = len(customers), part["output"][0]
    if len(depot) != 1 or len(demand) != n:
        fail(f"one depot and a demand for each of {n} customers expected", number)
    if len(sequence) < 2 or sequence[0] != 0 or sequence[-1] != 0:
        fail(f"column {at + 1}: the routes begin and end at the depot 0", number)
    order = _from_one(sequence[sequence != 0], n, line, at, number) + 1
    ends = np.flatnonzero(sequence == 0)
    lengths = np.diff(ends) - 1
    routes = np.split(order, np.cumsum(lengths)[:-1])
    return _planned(
        np.concatenate([depot, customers]), demand, capacity, [r for r in routes if len(r)]
    )


def _planned(
    xy: Floats, demand: Floats, capacity: float, routes: Sequence[npt.NDArray[Any]]
) -> Solved:
    instance = cvrp(xy, np.concatenate([[0.0], demand]), capacity)
    return Solved(instance, problem.validated(instance, Solution(list(routes))))


def _lines(data: bytes) -> Iterator[tuple[int, str]]:
    """Lines that are not empty, with their numbers."""
    for number, raw in enumerate(data.split(b"\n"), 1):
        if raw.strip():
            try:
                yield number, raw.decode("ascii").strip("\r\n ")
            except UnicodeDecodeError as error:
                fail(f"column {error.start + 1}: not a plain text", number)


def _parts(
    line: str, words: Sequence[str], between: str, number: int
) -> dict[str, tuple[int, str]]:
    """Of every word, where what it announces begins, and what that is; in this order."""
    out, at = {}, 0
    for word, following in zip(words, (*words[1:], None), strict=True):
        if not line.startswith(word + between, at):
            fail(f"column {at + 1}: {word} expected, not {quoted(line[at : at + 20])}", number)
        begin = at + len(word) + 1
        end = len(line) if following is None else line.find(following + between, begin)
        if end < 0:
            fail(f"column {begin + 1}: there is no {following} after {word}", number)
        out[word] = begin, line[begin:end].replace(between, " ")
        at = end
    return out


_NO_NUMBER = re.compile(r"[^-+.0-9eE\s]")


def _numbers(line: str, at: int, text: str, number: int) -> Floats:
    """The numbers of a part of a line, which begins at character `at`."""
    try:
        if _NO_NUMBER.search(text):
            raise ValueError
        found = np.array(text.split(), np.float64)
    except ValueError:
        for word in re.finditer(r"\S+", text):
            try:
                if not _NO_NUMBER.search(word[0]):
                    float(word[0])
                    continue
            except ValueError:
                pass
            fail(f"column {at + word.start() + 1}: {quoted(word[0])} is no number", number)
        raise
    if not np.isfinite(found).all():
        fail(f"column {at + 1}: a number is too large", number)
    return found


def _one(line: str, at: int, text: str, number: int) -> float:
    found = _numbers(line, at, text, number)
    if len(found) != 1:
        fail(f"column {at + 1}: one number expected, not {len(found)}", number)
    return float(found[0])


def _pairs(line: str, at: int, text: str, number: int) -> Floats:
    found = _numbers(line, at, text, number)
    if len(found) == 0 or len(found) % 2:
        fail(f"column {at + 1}: pairs of x and y expected; here are {len(found)} numbers", number)
    return found.reshape(-1, 2)


def _from_one(nodes: Floats, n: int, line: str, at: int, number: int) -> Ints:
    """Every number 1 .. n once, less one."""
    whole = nodes.astype(np.int64)
    good = (whole == nodes) & (whole >= 1) & (whole <= n)
    if not good.all():
        fail(f"column {at + 1}: {nodes[~good][0]:g} is none of the nodes 1 to {n}", number)
    count = np.bincount(whole, minlength=n + 1)[1:]
    if (count != 1).any():
        node = int(np.flatnonzero(count != 1)[0])
        fail(f"column {at + 1}: node {node + 1} is visited {count[node]} times", number)
    return whole - 1


def _from_arrays(data: bytes) -> list[Solved]:
    """Problems of an .npz file as rl4co writes it, without solutions."""
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            arrays = {name: np.asarray(file[name]) for name in file.files}
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile) as error:
        fail(f"not an .npz file of plain arrays: {error}")
    locs = arrays.get("locs")
    if locs is None or locs.ndim != 3 or locs.shape[2] != 2:
        fail("there is no array `locs` of the shape (N, n, 2)")
    locs = np.asarray(locs, np.float64)
    if set(arrays) == {"locs"}:
        return [Solved(tsp(xy), None) for xy in locs]
    shapes = {"depot": (len(locs), 2), "demand": locs.shape[:2], "capacity": (len(locs),)}
    for name, shape in shapes.items():
        if name not in arrays or arrays[name].squeeze().shape != tuple(s for s in shape if s != 1):
            fail(f"there is no array `{name}` of the shape {shape}")
        arrays[name] = np.asarray(arrays[name], np.float64).reshape(shape)
    found = []
    for i, xy in enumerate(locs):
        demand, capacity = arrays["demand"][i], float(arrays["capacity"][i])
        if (demand != np.rint(demand)).any():  # shares of the capacity
            demand = demand * capacity
            if np.abs(demand - np.rint(demand)).max() > 1e-3:
                fail(f"instance {i}: demands are neither whole nor shares of the capacity")
        xy = np.concatenate([arrays["depot"][i][None], xy])
        try:
            demand = np.concatenate([[0.0], np.rint(demand)])
            found.append(Solved(cvrp(xy, demand, capacity), None))
        except DrhgError as error:
            fail(f"instance {i}: {error.reason}")
    return found


# --- writing -------------------------------------------------------------------------------------


def write_many(path: PathLike, solved: Sequence[Solved], format: str) -> None:
    """Write problems of one kind, and their solutions, in one of the formats above."""
    with errors_as(InstanceError, None):
        name = name_of(path)
    with errors_as(InstanceError, name):
        if format not in FORMATS:
            fail(f"unknown format {format!r}; known: {', '.join(FORMATS)}")
        if not solved:
            fail("there is nothing to write")
        if len({instance.is_cvrp for instance, _ in solved}) > 1:
            fail("tours and routes cannot be in one file")
        for instance, _ in solved:
            _can_be_said(instance)
        if format == "rl4co":
            content: str | bytes = _as_arrays([instance for instance, _ in solved])
        else:
            content = "".join(_line(one, format) + "\n" for one in solved)
    atomic_write(name, content)


def _can_be_said(instance: Instance) -> None:
    """These formats know points of the plane, exact distances, loads, and nothing else."""
    refuse_variants(instance, "this format")
    if instance.xy is None or instance.metric is not Metric.EXACT:
        fail(
            f"{instance.name}: only points of the plane and their exact distances can be written "
            f"in this format, not the metric {instance.metric.name}"
        )
    limits: dict[str, Any] = {"vehicles": instance.vehicles, "max_distance": instance.max_distance}
    limits |= {"fixed_edges": instance.fixed_edges or None}
    for name, value in limits.items():
        if value is not None:
            fail(f"{instance.name}: {name} cannot be written in this format")
    if instance.is_cvrp and instance.depot != 0:
        fail(f"{instance.name}: in this format the depot is the first node")


def _line(solved: Solved, format: str) -> str:
    instance, solution = solved
    if solution is None:
        fail(f"{instance.name}: this format needs a solution, and there is none")
    problem.validated(instance, solution)
    assert instance.xy is not None
    if not instance.is_cvrp:
        tour = (solution.tour + 1).tolist()
        return " ".join([*_said(instance.xy), "output", *map(str, [*tour, tour[0]])])
    assert instance.demand is not None
    assert instance.capacity is not None
    depot, customers = _said(instance.xy[0]), _said(instance.xy[1:])
    demand = _said(instance.demand[1:] / instance.demand_scale)
    capacity = repr(instance.capacity / instance.demand_scale)
    routes = [route.tolist() for route in solution.routes if len(route)]
    if format == "ml4co":
        sequence = [0, *(node for route in routes for node in (*route, 0))]
        words = ["depots", *depot, "points", *customers, "demands", *demand, "capacity", capacity]
        return " ".join([*words, "output", *map(str, sequence)])
    order = [str(node) for route in routes for node in route]
    flags = [str(int(i == 0)) for route in routes for i in range(len(route))]
    words = ["depot", *depot, "customer", *customers, "capacity", capacity, "demand", *demand]
    cost = repr(float(problem.cost(instance, solution)))
    return ",".join([*words, "cost", cost, "node_flag", *order, *flags])


def _said(numbers: npt.NDArray[Any]) -> list[str]:
    """Numbers as texts that come back exactly."""
    return [repr(number) for number in np.asarray(numbers, np.float64).ravel().tolist()]


def _as_arrays(instances: Iterable[Instance]) -> bytes:
    some = list(instances)
    if len({instance.n for instance in some}) > 1:
        fail("in this format all instances have the same size")
    xy = np.stack([np.asarray(instance.xy, np.float32) for instance in some])
    arrays: dict[str, Any] = {"locs": xy}
    if some[0].is_cvrp:
        demand = np.stack([np.asarray(one.demand) / one.demand_scale for one in some])[:, 1:]
        capacity = np.array([(one.capacity or 0) / one.demand_scale for one in some])
        arrays = {"depot": xy[:, 0], "locs": xy[:, 1:], "demand": demand, "capacity": capacity}
    out = io.BytesIO()
    plain: dict[str, Any] = {name: np.asarray(a, np.float32) for name, a in arrays.items()}
    np.savez(out, **plain)
    return out.getvalue()

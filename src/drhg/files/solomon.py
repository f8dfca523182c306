"""Solomon's and Gehring and Homberger's text: routes with time windows."""

from __future__ import annotations

import re

import numpy as np

from drhg import problem
from drhg.errors import InstanceError
from drhg.files.messages import errors_as, fail, first, one_line, quoted
from drhg.files.sections import NUMBER, plain
from drhg.problem import Floats, Instance, Metric

_HEAD = re.compile(rb"\s*(\S[^\n]*)\n\s*VEHICLE\s*\n\s*NUMBER\s+CAPACITY\s*\n", re.IGNORECASE)
_COLUMNS = ("customer", "x", "y", "demand", "ready time", "due date", "service time")


def looks_like_solomon(data: bytes) -> bool:
    return _HEAD.match(data.replace(b"\r", b"")) is not None


def parse_solomon(text: str | bytes, *, file: str | None = None) -> Instance:
    """The instance of such a text: a name, vehicles and capacity, then a line per node, depot 0.

    The file does not say how distances are rounded. They are cut to one decimal, the rule of the
    DIMACS challenge; `dataclasses.replace(instance, metric=drhg.Metric.EXACT)` has exact ones.
    """
    with errors_as(InstanceError, file):
        data = plain(text)
        head = _HEAD.match(data)
        if head is None:
            fail("expected a name, then VEHICLE, then NUMBER and CAPACITY", 1)
        rows = _rows(data, head.end())
        if not rows or len(rows[0][1]) != 2:
            fail("expected the number of vehicles and their capacity", rows[0][0] if rows else 4)
        vehicles, capacity = rows[0][1]
        nodes = _nodes(rows[1:])
        demand, whole_capacity, scale = problem.whole_demand(nodes[:, 3], capacity)
        try:
            return Instance(
                name=head[1].decode().strip(), metric=Metric.TRUNC1, xy=nodes[:, 1:3],
                demand=demand, capacity=whole_capacity, demand_scale=scale,
                vehicles=vehicles,  # type: ignore[arg-type]
                windows=nodes[:, 4:6], service_time=nodes[:, 6],
            )  # fmt: skip
        except InstanceError as error:  # node i stands in the i-th row
            node = re.search(r"\bnode ([0-9]+) \(counted", error.reason)
            line = rows[1 + int(node[1])][0] if node else None
            fail(error.reason.replace("(counted from 0)", "of the file"), line)


def _rows(data: bytes, begin: int) -> list[tuple[int, list[float]]]:
    """The lines of numbers with their line numbers; headings between them are left out."""
    found = []
    first_line = data.count(b"\n", 0, begin) + 1
    for number, line in enumerate(data[begin:].decode().split("\n"), start=first_line):
        words = line.split()
        if not words or words[0].upper() in ("CUSTOMER", "CUST"):
            continue
        wrong = next((word for word in words if not NUMBER.fullmatch(word)), None)
        if wrong is not None:
            fail(f"{quoted(wrong)} is not a number", number)
        found.append((number, [float(word) for word in words]))
    return found


def _nodes(rows: list[tuple[int, list[float]]]) -> Floats:
    for number, row in rows:
        if len(row) != len(_COLUMNS):
            fail(
                f"expected {len(_COLUMNS)} numbers ({', '.join(_COLUMNS)}), found {len(row)}",
                number,
            )
    if not rows:
        fail("no depot and no customers")
    nodes = np.array([row for _, row in rows])
    if (wrong := first(nodes[:, 0] != np.arange(len(nodes)))) is not None:
        fail(f"node {nodes[wrong, 0]:g} where node {wrong} is due", rows[wrong][0])
    return nodes


def format_solomon(instance: Instance) -> str:
    """An instance as such text, from which `parse_solomon` gives back the same."""
    _can_be_said(instance)
    assert instance.xy is not None
    assert instance.demand is not None
    assert instance.capacity is not None
    assert instance.windows is not None
    scale = instance.demand_scale
    columns = (
        instance.xy[:, 0], instance.xy[:, 1], instance.demand / scale,
        instance.windows[:, 0], instance.windows[:, 1], instance.services,
    )  # fmt: skip
    table = np.stack(columns, axis=1).tolist()
    capacity = _short(instance.capacity / scale)
    out = [one_line(instance.name), "", "VEHICLE", "NUMBER     CAPACITY"]
    out += [f"  {instance.vehicles or instance.n - 1}         {capacity}", "", "CUSTOMER"]
    out += ["CUST NO.  XCOORD.   YCOORD.    DEMAND   READY TIME  DUE DATE   SERVICE TIME", ""]
    out += [f"{i:>5} " + " ".join(f"{_short(v):>9}" for v in row) for i, row in enumerate(table)]
    return "\n".join([*out, ""])


def _short(value: float) -> str:
    return repr(value).removesuffix(".0")


def _can_be_said(instance: Instance) -> None:
    """Refuse what has no place in this text."""
    plain_problem = instance.windows is not None and instance.max_distance is None
    if why := problem.not_known("this kind of file", instance, ("windows", "services")):
        fail(f"{why}; write the instance as .json")
    if not plain_problem or instance.metric is not Metric.TRUNC1 or instance.depot != 0:
        fail(
            "this kind of file has routes with time windows, points of the plane, distances cut to "
            "one decimal and the depot first, and nothing else; write the instance as .json"
        )
    assert instance.windows is not None
    if not np.isfinite(instance.windows).all():
        fail("this kind of file has no place for windows without an end; write it as .json")

"""TSPLIB and VRPLIB text: instances and tours."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np

from drhg import problem
from drhg.errors import InstanceError, SolutionError
from drhg.files.messages import (
    errors_as,
    fail,
    first,
    in_file_numbers,
    one_line,
    quoted,
    refuse_variants,
)
from drhg.files.sections import (
    ROUTE_KEYWORDS,
    ROUTE_SECTIONS,
    SECTIONS,
    Document,
    header_number,
    header_whole,
    node_list,
    scan,
    section_numbers,
    table,
)
from drhg.files.vehicles import depots_of, fleet_of, header_of, sections_of
from drhg.problem import Cost, Floats, Instance, Metric, Solution
from drhg.problem.arguments import LARGEST_EXACT
from drhg.problem.fields import ROUNDING_NOISE

# Types of problems: TSPLIB's, VRPLIB's, and others that files in circulation have.
_TOURS = ("TSP", "ATSP")
_ROUTES = ("CVRP", "VRPTW", "CVRPTW", "ACVRP", "OVRP", "MDVRP", "MDVRPTW", "HFVRP")
_TIMED = ("VRPTW", "CVRPTW", "MDVRPTW")  # where EUC_2D is cut to one decimal

# The half of the matrix that is written row by row, and the first diagonal in it. One half read by
# columns is the other half read by rows.
_HALVES: dict[str, tuple[Callable[..., Any], int]] = {
    "UPPER_ROW": (np.triu_indices, 1), "LOWER_COL": (np.triu_indices, 1),
    "LOWER_ROW": (np.tril_indices, -1), "UPPER_COL": (np.tril_indices, -1),
    "UPPER_DIAG_ROW": (np.triu_indices, 0), "LOWER_DIAG_COL": (np.triu_indices, 0),
    "LOWER_DIAG_ROW": (np.tril_indices, 0), "UPPER_DIAG_COL": (np.tril_indices, 0),
}  # fmt: skip

# Written with distances that are not rounded, and left out when read: it is about the file.
UNROUNDED = "Distances are not rounded. EXACT is a keyword of drhg, which other programs may refuse"

# A word in an error of `Instance`, and the part of the file it is about; the first match counts.
_BLAME = (
    ("vehicles", "VEHICLES"), ("demand", "DEMAND_SECTION"), ("capacity", "CAPACITY"),
    ("fixed edge", "FIXED_EDGES_SECTION"), ("max_distance", "DISTANCE"),
    ("max_duration", "VEHICLES_MAX_DURATION"), ("service_time", "SERVICE_TIME_SECTION"),
    ("service_time", "SERVICE_TIME"), ("release", "RELEASE_TIME_SECTION"),
    ("closes", "TIME_WINDOW_SECTION"), ("window", "TIME_WINDOW_SECTION"),
    ("distance", "EDGE_WEIGHT_SECTION"), ("", "NODE_COORD_SECTION"),
)  # fmt: skip


# --- TSPLIB text: from sections to an instance ----------------------------------------------------


def parse(text: str | bytes, *, file: str | None = None) -> Instance:
    """The instance that a TSPLIB or VRPLIB text describes; `file` is only named in errors.

    No such file says how distances are rounded. EUC_2D is rounded to whole numbers, as TSPLIB says,
    but where there are time windows it is cut to one decimal, the rule of the DIMACS challenge.
    `dataclasses.replace(instance, metric=drhg.Metric.EXACT)` has exact ones.

    >>> from drhg.files import parse
    >>> parse("TYPE: TSP\\nDIMENSION: 2\\nEDGE_WEIGHT_TYPE: EUC_2D\\n"
    ...       "NODE_COORD_SECTION\\n1 0 0\\n2 3 4\\nEOF").distance(0, 1)
    5.0
    """
    with errors_as(InstanceError, file):
        doc = scan(text, (*_TOURS, *_ROUTES))
        doc.require("DIMENSION", "EDGE_WEIGHT_TYPE")
        doc.refuse({"TOUR_SECTION"}, "an instance")
        is_cvrp = doc.values["TYPE"] in _ROUTES
        if is_cvrp:
            doc.require("DEMAND_SECTION", "DEPOT_SECTION")
            if "CAPACITY_SECTION" not in doc.lines:
                doc.require("CAPACITY")
            if doc.values["TYPE"] in _TIMED:
                doc.require("TIME_WINDOW_SECTION")
            else:
                doc.refuse({"TIME_WINDOW_SECTION"}, f"a {doc.values['TYPE']}")
        else:
            doc.refuse(ROUTE_KEYWORDS | ROUTE_SECTIONS, "a TSP")
        try:
            return Instance(
                name=doc.values.get("NAME", Instance.name),
                comment="\n".join(line for line in doc.comments if line != UNROUNDED),
                fixed_edges=_fixed_edges(doc),
                **_geometry(doc),
                **(_vehicles(doc) if is_cvrp else {}),
            )
        except InstanceError as error:  # of problem.py, which knows no lines
            reason = in_file_numbers(error.reason, ".tsp")
            fail(reason, _blamed(doc, reason))


def _geometry(doc: Document) -> dict[str, Any]:
    """The fields that define distances."""
    kind = _one_of(doc, "EDGE_WEIGHT_TYPE", {metric.name for metric in Metric})
    layout = _one_of(doc, "EDGE_WEIGHT_FORMAT", {"FUNCTION", "FULL_MATRIX", *_HALVES})
    coordinates = _one_of(doc, "NODE_COORD_TYPE", {"TWOD_COORDS", "NO_COORDS"})
    _one_of(doc, "DISPLAY_DATA_TYPE", {"COORD_DISPLAY", "TWOD_DISPLAY", "NO_DISPLAY"})
    if coordinates == "NO_COORDS":
        doc.refuse({"NODE_COORD_SECTION"}, "an instance with NO_COORDS")
    display = table(doc, "DISPLAY_DATA_SECTION", 2) if "DISPLAY_DATA_SECTION" in doc.lines else None
    xy = table(doc, "NODE_COORD_SECTION", 2) if "NODE_COORD_SECTION" in doc.lines else display
    if kind == "EXPLICIT":
        return {"metric": Metric.EXPLICIT, "matrix": _matrix(doc, layout), "xy": xy}
    doc.refuse({"EDGE_WEIGHT_SECTION"}, f"an instance with {kind} distances")
    if layout not in ("", "FUNCTION"):
        doc.refuse({"EDGE_WEIGHT_FORMAT"}, f"an instance with {kind} distances")
    doc.require("NODE_COORD_SECTION")
    cut = kind == "EUC_2D" and doc.values["TYPE"] in _TIMED
    return {"metric": Metric.TRUNC1 if cut else Metric[kind], "xy": xy}


def _one_of(doc: Document, key: str, known: set[str]) -> str:
    """The value of a keyword that has a few known values; '' if it is absent."""
    value = doc.values.get(key, "")
    if key in doc.lines and value not in known:
        reason = f"{key} {quoted(value)} is not known; known: {', '.join(sorted(known))}"
        fail(reason, doc.lines[key])
    return value


def _matrix(doc: Document, layout: str) -> Floats:
    key, n = "EDGE_WEIGHT_SECTION", doc.n
    doc.require("EDGE_WEIGHT_FORMAT", key)
    if layout == "FUNCTION":
        doc.refuse({"EDGE_WEIGHT_FORMAT"}, "an EXPLICIT instance if it is FUNCTION")
    half, diagonal = _HALVES.get(layout, (None, 0))
    needed = n * n if half is None else n * (n + 1) // 2 - (n if diagonal else 0)
    values, starts = section_numbers(doc, key)
    if len(values) != needed:  # before anything of that size is allocated
        line = doc.line_at(key, int(starts[needed]) if len(values) > needed else None)
        fail(f"{key} has {len(values)} numbers, {layout} of {n} nodes needs {needed}", line)
    if half is None:
        return _full_matrix(doc, values.reshape(n, n))
    matrix = np.zeros((n, n))
    rows, columns = half(n, diagonal)
    matrix[rows, columns] = matrix[columns, rows] = values
    return matrix


def _full_matrix(doc: Document, matrix: Floats) -> Floats:
    """A matrix as it stands; that of a TSP is symmetric by definition."""
    differ = (matrix != matrix.T) & ~np.isclose(matrix, matrix.T, rtol=ROUNDING_NOISE, atol=0.0)
    if doc.values["TYPE"] == "TSP" and differ.any():
        i, j = (np.argwhere(differ)[0] + 1).tolist()
        fail(
            f"the distance matrix is not symmetric (nodes {i} and {j} of the file)",
            doc.lines["EDGE_WEIGHT_SECTION"],
        )
    return matrix


def _fixed_edges(doc: Document) -> tuple[tuple[int, int], ...]:
    key = "FIXED_EDGES_SECTION"
    if key not in doc.lines:
        return ()
    nodes, ended = node_list(doc, key)
    if not ended or len(nodes) % 2:
        fail(f"{key} must be pairs of nodes, then -1", doc.line_at(key))
    return tuple((a, b) for a, b in nodes.reshape(-1, 2).tolist())


def _vehicles(doc: Document) -> dict[str, Any]:
    """The fields that make a CVRP."""
    depots = depots_of(doc)
    fleet = fleet_of(doc, depots)
    values = table(doc, "DEMAND_SECTION", 1)[:, 0]
    whole = (values == np.floor(values)) & (np.abs(values) < LARGEST_EXACT)
    exact = values.astype(np.int64) if whole.all() else values  # the quick way through whole_demand
    common = header_number(doc, "CAPACITY") if "CAPACITY" in doc.lines else None
    loads = [one.capacity for one in fleet or () if one.capacity is not None]
    demand, capacity, scale = problem.whole_demands(exact, common, loads)
    fields: dict[str, Any] = {"demand": demand, "capacity": capacity, "demand_scale": scale}
    fields |= {"depot": int(depots[0]), "fleet": fleet}
    if "VEHICLES" in doc.lines and fleet is None:
        fields["vehicles"] = header_whole(doc, "VEHICLES")
    for name, key in (
        ("max_distance", "DISTANCE"), ("service_time", "SERVICE_TIME"),
        ("max_duration", "VEHICLES_MAX_DURATION"),
    ):  # fmt: skip
        if key in doc.lines:
            fields[name] = header_number(doc, key)
    if {"SERVICE_TIME", "SERVICE_TIME_SECTION"} <= doc.lines.keys():
        fail("SERVICE_TIME and SERVICE_TIME_SECTION: keep one", doc.lines["SERVICE_TIME_SECTION"])
    for name, key in (
        ("service_time", "SERVICE_TIME_SECTION"),
        ("release", "RELEASE_TIME_SECTION"),
    ):
        if key in doc.lines:
            fields[name] = table(doc, key, 1)[:, 0]
    if "TIME_WINDOW_SECTION" in doc.lines:
        fields["windows"] = table(doc, "TIME_WINDOW_SECTION", 2)
    fields["returns"] = doc.values["TYPE"] != "OVRP"
    return fields


def _blamed(doc: Document, reason: str) -> int:
    """The line that an error of `Instance` is about, as far as its words tell."""
    key = next((k for word, k in _BLAME if word in reason and k in doc.lines), None)
    if key is None:
        return doc.last_line
    width = {
        "DEMAND_SECTION": 2, "NODE_COORD_SECTION": 3, "TIME_WINDOW_SECTION": 3,
        "SERVICE_TIME_SECTION": 2, "RELEASE_TIME_SECTION": 2,
    }.get(key)  # fmt: skip
    node = re.search(r"\bnode ([0-9]+) of the file", reason)
    if node is None or width is None:
        return doc.lines[key]
    values, starts = section_numbers(doc, key)
    row = first(values[::width] == int(node[1])) or 0
    return doc.line_at(key, int(starts[row * width]))


# --- tours and route plans ------------------------------------------------------------------------


def parse_tour(text: str | bytes, instance: Instance, *, file: str | None = None) -> Solution:
    """The tour of a TSPLIB TOUR text; nodes are checked to exist, `problem.check` does the rest."""
    with errors_as(SolutionError, file):
        doc = scan(text, ("TOUR",))
        if instance.is_cvrp:
            fail("a tour is for a TSP, but the instance is a CVRP", 1)
        doc.require("TOUR_SECTION")
        doc.refuse(SECTIONS - {"TOUR_SECTION"}, "a tour")
        doc.values.setdefault("DIMENSION", str(instance.n))
        if doc.n != instance.n:
            reason = f"DIMENSION is {doc.n}, but the instance has {instance.n} nodes"
            fail(reason, doc.lines["DIMENSION"])
        nodes, _ = node_list(doc, "TOUR_SECTION")
        if len(nodes) != instance.n:
            line = doc.line_at("TOUR_SECTION")
            fail(f"TOUR_SECTION has {len(nodes)} nodes, the instance {instance.n}", line)
        return Solution([nodes])


def format_tour(instance: Instance, solution: Solution, cost: Cost | None = None) -> str:
    """A tour as TSPLIB TOUR text; `cost` is recomputed unless given."""
    shown = problem.cost(instance, solution) if cost is None else cost
    head = f"NAME: {one_line(instance.name)}\nCOMMENT: length {shown}\nTYPE: TOUR\n"
    nodes = "\n".join(map(str, (solution.tour + 1).tolist()))
    return f"{head}DIMENSION: {len(solution.tour)}\nTOUR_SECTION\n{nodes}\n-1\nEOF\n"


# --- instances as text ----------------------------------------------------------------------------


def format_instance(instance: Instance) -> str:
    """An instance as TSPLIB or VRPLIB text, from which `parse` gives back the same instance.

    Only the nodes' names and the meaning of coordinates beside a matrix have no place in it.
    """
    _can_be_said(instance)
    explicit, scale = instance.matrix is not None, instance.demand_scale
    out = [f"NAME: {one_line(instance.name)}"]
    if instance.comment:
        out += [f"COMMENT: {one_line(line)}" for line in instance.comment.split("\n")]
    out += [f"COMMENT: {UNROUNDED}"] if instance.metric is Metric.EXACT else []
    kind = instance.problem.upper() if instance.returns else "OVRP"
    cut = instance.windows is not None and instance.metric is Metric.TRUNC1
    out += [f"TYPE: {kind}", f"DIMENSION: {instance.n}"]
    out += [f"EDGE_WEIGHT_TYPE: {'EUC_2D' if cut else instance.metric.name}"]
    layout = "LOWER_DIAG_ROW" if instance.symmetric else "FULL_MATRIX"
    out += [f"EDGE_WEIGHT_FORMAT: {layout}"] if explicit else []
    out += ["DISPLAY_DATA_TYPE: TWOD_DISPLAY"] if explicit and instance.xy is not None else []
    vehicles = sections_of(instance)
    if instance.capacity is not None and "CAPACITY_SECTION" not in vehicles:
        out.append(f"CAPACITY: {_decimal(instance.capacity, scale)}")
    out += header_of(instance)
    if instance.max_distance is not None:
        out.append(f"DISTANCE: {_shortest(instance.max_distance)}")
    if instance.max_duration is not None:
        out.append(f"VEHICLES_MAX_DURATION: {_shortest(instance.max_duration)}")
    if not isinstance(instance.service_time, np.ndarray) and instance.service_time:
        out.append(f"SERVICE_TIME: {_shortest(instance.service_time)}")
    if instance.fixed_edges:
        out += ["FIXED_EDGES_SECTION", *(f"{a + 1} {b + 1}" for a, b in instance.fixed_edges), "-1"]
    if instance.matrix is not None:
        rows = enumerate(instance.matrix.tolist(), start=1)
        width = instance.n if layout == "FULL_MATRIX" else 0
        lines = (" ".join(map(_shortest, row[: width or i])) for i, row in rows)
        out += ["EDGE_WEIGHT_SECTION", *lines]
    if instance.xy is not None:
        points = enumerate(instance.xy.tolist(), start=1)
        out.append("DISPLAY_DATA_SECTION" if explicit else "NODE_COORD_SECTION")
        out += [f"{i} {_shortest(x)} {_shortest(y)}" for i, (x, y) in points]
    if instance.demand is not None:
        demands = enumerate(instance.demand.tolist(), start=1)
        out += ["DEMAND_SECTION", *(f"{i} {_decimal(d, scale)}" for i, d in demands)]
        out += ["DEPOT_SECTION", *(str(depot + 1) for depot in instance.depots), "-1", *vehicles]
        out += _sections_of_times(instance)
    return "\n".join([*out, "EOF", ""])


def _can_be_said(instance: Instance) -> None:
    """Refuse what has no place in this text, or would be read as something else."""
    known = ["fixed", "asymmetric", "services", "windows", "release", "max_duration", "fleet"]
    refuse_variants(instance, "this kind of file", [*known, "open"])
    if instance.windows is None:
        return
    if not instance.returns:
        fail("this kind of file has no type for open routes with windows; write it as .json")
    if instance.metric is Metric.EUC_2D:
        fail(
            "with time windows, EUC_2D means distances that are cut to one decimal, not rounded; "
            "write the instance as .json"
        )
    if not np.isfinite(instance.windows).all():
        fail("this kind of file has no place for windows without an end; write it as .json")


def _sections_of_times(instance: Instance) -> list[str]:
    out = []
    if isinstance(instance.service_time, np.ndarray):
        services = enumerate(instance.service_time.tolist(), start=1)
        out += ["SERVICE_TIME_SECTION", *(f"{i} {_shortest(time)}" for i, time in services)]
    if instance.windows is not None:
        windows = enumerate(instance.windows.tolist(), start=1)
        out.append("TIME_WINDOW_SECTION")
        out += [f"{i} {_shortest(a)} {_shortest(b)}" for i, (a, b) in windows]
    if instance.release is not None:
        released = enumerate(instance.release.tolist(), start=1)
        out += ["RELEASE_TIME_SECTION", *(f"{i} {_shortest(time)}" for i, time in released)]
    return out


def _shortest(value: float) -> str:
    """The shortest text that reads back as the same number."""
    return repr(value).removesuffix(".0")


def _decimal(value: int, scale: int) -> str:
    return f"{Decimal(value) / scale:f}"

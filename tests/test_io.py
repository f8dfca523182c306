"""Reading and writing: real files, round trips, and what is refused where."""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import errno
import functools
import gzip
import json
import os
import random
import re
import stat
import subprocess
import sys
import time
import tracemalloc
import warnings
from collections.abc import Callable
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st

from drhg import files as io
from drhg.errors import DrhgError, InstanceError, SolutionError
from drhg.files import sections, streams, tsplib
from drhg.problem import (
    Instance,
    Metric,
    Solution,
    check,
    cost,
    cvrp,
    from_zero,
    tsp,
)
from drhg.problem.metrics import ALI535

# numpy warns when its text reader stops early; that is exactly what our slow path is for
pytestmark = pytest.mark.filterwarnings(
    "ignore:string or file could not be read:DeprecationWarning"
)

FAULTY = {"B-n50-k8", "B-n57-k7", "E-n30-k3"}  # .sol files whose cost is not that of their routes


def same(a: Instance, b: Instance) -> bool:
    """Whether two instances agree in every field, arrays in every bit."""
    for field in dataclasses.fields(Instance):
        x, y = getattr(a, field.name), getattr(b, field.name)
        if isinstance(x, np.ndarray) and isinstance(y, np.ndarray):
            if x.dtype != y.dtype or x.shape != y.shape or x.tobytes() != y.tobytes():
                return False
        elif type(x) is not type(y) or x != y:
            return False
    return True


# --- real files -----------------------------------------------------------------------------------


def test_all_of_tsplib(data_dir: Path) -> None:
    rows = {row["name"]: row for row in csv.DictReader((data_dir / "tsplib/solutions.csv").open())}
    files = sorted((data_dir / "tsplib").glob("*.tsp"))
    assert len(files) == len(rows) == 111
    for file in files:
        instance = io.read(file)
        assert instance.n == int(rows[file.stem]["n"]), file
        assert instance.metric.name == rows[file.stem]["edge_weight_type"], file
        assert not instance.is_cvrp
        assert same(io.parse(io.format_instance(instance)), instance)
        if instance.n < 1500:
            assert same(io.from_json(io.to_json(instance)), instance)
    displayed = {f.stem for f in files if (i := io.read(f)).matrix is not None and i.xy is not None}
    assert displayed == {"bayg29", "bays29", "dantzig42", "gr120", "pa561"}
    assert io.read(data_dir / "tsplib/linhp318.tsp").fixed_edges == ((0, 213),)


def test_optimal_tours_cost_what_is_known(data_dir: Path) -> None:
    rows = csv.DictReader((data_dir / "tsplib/solutions.csv").open())
    best = {row["name"]: int(row["best_known"]) for row in rows}
    files = sorted((data_dir / "tsplib/opt_tours").glob("*.tour"))
    assert len(files) == 33
    for file in files:
        name = file.name.split(".")[0]
        instance = io.read(data_dir / f"tsplib/{name}.tsp")
        tour = io.read_solution(file, instance)
        assert check(instance, tour) == [], file
        assert cost(instance, tour) == best[name], file


def test_all_of_cvrplib(data_dir: Path) -> None:
    rows = {row["name"]: row for row in csv.DictReader((data_dir / "cvrplib/solutions.csv").open())}
    files = sorted((data_dir / "cvrplib").glob("*/*.vrp"))
    assert len(files) == 195
    faulty = set()
    for file in files:
        instance = io.read(file)
        assert instance.n == int(rows[file.stem]["n"]) + 1, file
        assert instance.vehicles is None  # the k in the name is not a limit
        assert same(io.parse(io.format_instance(instance)), instance)
        solution = io.read_solution(file.with_suffix(".sol"), instance)
        stated = re.search(r"Cost ([0-9.]+)", file.with_suffix(".sol").read_text())
        assert stated is not None
        assert float(stated[1]) == float(rows[file.stem]["best_known"])
        if check(instance, solution) or cost(instance, solution) != float(stated[1]):
            faulty.add(file.stem)
    assert faulty == FAULTY


def test_vrplib_reads_the_same(data_dir: Path) -> None:
    vrplib = pytest.importorskip("vrplib")
    for file in sorted((data_dir / "cvrplib").glob("[ABEFMP]/*.vrp")):
        theirs, ours = vrplib.read_instance(file, compute_edge_weights=False), io.read(file)
        assert theirs["demand"].tolist() == ours.demand.tolist()
        assert theirs["capacity"] == ours.capacity
        assert theirs["depot"].tolist() == [ours.depot]
        if "node_coord" in theirs:
            assert (theirs["node_coord"] == ours.xy).all()
        if "edge_weight" in theirs and isinstance(theirs["edge_weight"], np.ndarray):
            assert (theirs["edge_weight"] == ours.matrix).all()


def test_tsplib95_measures_the_same(data_dir: Path) -> None:
    tsplib95 = pytest.importorskip("tsplib95")
    rng = random.Random(1)
    for name in (
        "a280",
        "att48",
        "bayg29",
        "berlin52",
        "brg180",
        "dsj1000",
        "gr17",
        "si175",
        "pa561",
    ):
        theirs = tsplib95.load(data_dir / f"tsplib/{name}.tsp")
        ours = io.read(data_dir / f"tsplib/{name}.tsp")
        start = min(theirs.get_nodes())
        for _ in range(300):
            i, j = rng.sample(range(ours.n), 2)
            expected = theirs.get_weight(i + start, j + start)
            # its 'nint' is banker's rounding of the same float, wrong at exact halves only
            half = ours.matrix is None and abs(_euclid(ours, i, j) % 1 - 0.5) < 1e-9
            assert half or ours.distance(i, j) == expected, (name, i, j)


def _euclid(instance: Instance, i: int, j: int) -> float:
    assert instance.xy is not None
    return float(np.hypot(*(instance.xy[i] - instance.xy[j])))


# --- what is refused, and where -------------------------------------------------------------------

TSP = """NAME: small
TYPE: TSP
COMMENT: three nodes
DIMENSION: 3
EDGE_WEIGHT_TYPE: EUC_2D
NODE_COORD_SECTION
1 0 0
2 3 0
3 0 4
EOF
"""
CVRP = """NAME : plan
TYPE : CVRP
DIMENSION : 3
EDGE_WEIGHT_TYPE : EUC_2D
CAPACITY : 5
VEHICLES : 2
NODE_COORD_SECTION
1 0 0
2 3 0
3 0 4
DEMAND_SECTION
1 0
2 3
3 4
DEPOT_SECTION
1
-1
EOF
"""
EXPLICIT = """TYPE: TSP
DIMENSION: 3
EDGE_WEIGHT_TYPE: EXPLICIT
EDGE_WEIGHT_FORMAT: UPPER_ROW
EDGE_WEIGHT_SECTION
1 2
3
EOF
"""


def edit(text: str, *changes: tuple[str, str]) -> str:
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    return text


BAD_TEXT: dict[str, tuple[str | bytes, str, int]] = {
    "empty": ("", "the file is empty", 1),
    "blank": (" \n\n\t\n", "the file is empty", 1),
    "nul": (edit(TSP, ("3 0 4", "3 0 \0")), "not a text file", 9),
    "not utf-8": (TSP.encode().replace(b"three", b"\xff\xfe"), "not a text file", 3),
    "surrogate": (edit(TSP, ("three", "\ud800")), "not a text file", 3),
    "gzip": (b"\x1f\x8b\x08\x00", "not a text file", 1),
    "truncated in the last number": (TSP[: TSP.index("4\nEOF") + 1], "cut short", 9),
    "truncated after a row": (TSP[: TSP.index("3 0 4")], "node 3 of 3 (DIMENSION) is missing", 8),
    "truncated in a row": (TSP[: TSP.index(" 4\nEOF")] + "\n", "found 2 number(s)", 9),
    "truncated at a header": (TSP[: TSP.index("1 0 0")], "node 1 of 3 (DIMENSION) is missing", 6),
    "dimension too small": (
        edit(TSP, (": 3", ": 2")),
        "node 3 in NODE_COORD_SECTION is not one",
        9,
    ),
    "dimension too large": (edit(TSP, (": 3", ": 4")), "node 4 of 4 (DIMENSION) is missing", 9),
    "dimension zero": (edit(TSP, (": 3", ": 0")), "DIMENSION must be at least 1", 4),
    "dimension negative": (edit(TSP, (": 3", ": -3")), "DIMENSION must be at least 1", 4),
    "dimension bomb": (edit(TSP, (": 3", ": 1000000000000")), "more than a text of", 4),
    "dimension of digits": (edit(TSP, (": 3", ": " + "9" * 5000)), "is not a whole number", 4),
    "dimension underscore": (edit(TSP, (": 3", ": 1_0")), "'1_0' is not a whole number", 4),
    "dimension unicode": (edit(TSP, (": 3", ": ٣")), "'٣' is not a whole number", 4),
    "dimension decimal": (edit(TSP, (": 3", ": 3.0")), "'3.0' is not a whole number", 4),
    "dimension twice": (edit(TSP, ("EDGE", "DIMENSION: 3\nEDGE")), "DIMENSION occurs twice", 5),
    "dimension missing": (edit(TSP, ("DIMENSION: 3\n", "")), "comes before DIMENSION", 5),
    "dimension late": (
        "TYPE: TSP\nNODE_COORD_SECTION\n1 0 0\nDIMENSION: 1\n",
        "NODE_COORD_SECTION comes before DIMENSION",
        2,
    ),
    "type missing": (edit(TSP, ("TYPE: TSP\n", "")), "TYPE is missing", 9),
    "sop": (edit(TSP, (": TSP", ": SOP")), "TYPE 'SOP' is not solved here", 2),
    "hcp": ("NAME: x\nTYPE: HCP\nEDGE_DATA_FORMAT: EDGE_LIST\n", "'HCP' is not solved here", 2),
    "tour": ("TYPE: TOUR\nTOUR_SECTION\n1\n-1\n", "'TOUR' is not solved here", 1),
    "tour section": (edit(TSP, ("EOF", "TOUR_SECTION\n1\n-1\nEOF")), "in an instance", 10),
    "unknown keyword": (edit(TSP, ("COMMENT", "COMENT")), "'COMENT: three nodes'", 3),
    "lower case": (edit(TSP, ("DIMENSION", "dimension")), "unknown keyword", 4),
    "no colon": (edit(TSP, ("DIMENSION:", "DIMENSION")), "unknown keyword", 4),
    "number before a section": (edit(TSP, ("COMMENT", "7 8\nCOMMENT")), "misplaced text '7 8'", 3),
    "long line": ("x" * 10**6, "unknown keyword or misplaced text 'xxx", 1),
    "section with a value": (edit(TSP, ("SECTION", "SECTION: 3")), "misplaced text", 6),
    "metric unknown": (
        edit(TSP, ("EUC_2D", "EUC_3D")),
        "EDGE_WEIGHT_TYPE 'EUC_3D' is not known",
        5,
    ),
    "metric missing": (edit(TSP, ("EDGE_WEIGHT_TYPE: EUC_2D\n", "")), "_TYPE is missing", 9),
    "section missing": (
        "TYPE: TSP\nDIMENSION: 1\nEDGE_WEIGHT_TYPE: GEO\nEOF\n",
        "NODE_COORD_SECTION is missing",
        4,
    ),
    "section twice": (
        edit(TSP, ("EOF", "NODE_COORD_SECTION\n1 0 0\nEOF")),
        "NODE_COORD_SECTION occurs twice",
        10,
    ),
    "after eof": (TSP + "\n\n4 5 6\n", "text after EOF: '4 5 6'", 13),
    "section after eof": (TSP + "NODE_COORD_SECTION\n", "text after EOF", 11),
    "id twice": (edit(TSP, ("3 0 4", "2 0 4")), "node 2 occurs twice", 9),
    "id zero": (edit(TSP, ("1 0 0", "0 0 0")), "node 0 in NODE_COORD_SECTION is not one", 7),
    "ids from zero": (edit(TSP, ("1 0 0\n2 3 0\n3", "0 0 0\n1 3 0\n2")), "node 0 in", 7),
    "id negative": (edit(TSP, ("1 0 0", "-1 0 0")), "node -1 in", 7),
    "id fraction": (edit(TSP, ("2 3 0", "1.5 3 0")), "node 1.5 in", 8),
    "id huge": (edit(TSP, ("2 3 0", "1e300 3 0")), "node 1e+300 in", 8),
    "nan": (edit(TSP, ("2 3 0", "2 nan 0")), "'nan' in NODE_COORD_SECTION is not a number", 8),
    "inf": (edit(TSP, ("2 3 0", "2 inf 0")), "'inf' in NODE_COORD_SECTION is not a number", 8),
    "infinity": (edit(TSP, ("2 3 0", "2 -Infinity 0")), "'-Infinity' in", 8),
    "1e400": (edit(TSP, ("2 3 0", "2 1e400 0")), "'1e400' in NODE_COORD_SECTION", 8),
    "underscore": (edit(TSP, ("2 3 0", "2 1_000 0")), "'1_000' in", 8),
    "unicode digit": (edit(TSP, ("2 3 0", "2 ٣ 0")), "'٣' in", 8),
    "unicode space": (
        edit(TSP, ("2 3 0", "2\u00a03 0")),
        "in NODE_COORD_SECTION is not a number",
        8,
    ),
    "form feed": (edit(TSP, ("2 3 0", "2\f3 0")), "in NODE_COORD_SECTION is not a number", 8),
    "hexadecimal": (edit(TSP, ("2 3 0", "2 0x3 0")), "'0x3' in", 8),
    "comma": (edit(TSP, ("2 3 0", "2 3,5 0")), "'3,5' in", 8),
    "two dots": (edit(TSP, ("2 3 0", "2 3.4.5")), "'3.4.5' in", 8),
    "glued numbers": (edit(TSP, ("2 3 0", "2 3-0")), "'3-0' in", 8),
    "glued, then stopped": (edit(TSP, ("2 3 0\n3 0 4", "2 3.0.1 0\n3 0 e")), "'3.0.1' in", 8),
    "bare exponent": (edit(TSP, ("2 3 0", "2 3e 0")), "'3e' in", 8),
    "bare sign": (edit(TSP, ("2 3 0", "2 - 0")), "'-' in", 8),
    "fortran exponent": (edit(TSP, ("2 3 0", "2 3d0 0")), "'3d0' in", 8),
    "three dimensions": (edit(TSP, ("2 3 0", "2 3 0 1")), "found 4 number(s)", 8),
    "row over two lines": (edit(TSP, ("2 3 0", "2\n3 0")), "found 1 number(s)", 8),
    "rows on one line": (edit(TSP, ("0 0\n2", "0 0 2")), "found 6 number(s)", 7),
    "shifted rows": (edit(TSP, ("1 0 0\n2 3 0", "1 0\n2 2 3 0")), "found 2 number(s)", 7),
    "too far": (edit(TSP, ("2 3 0", "2 1e300 0")), "too large to add exactly", 6),
    "beyond double": (
        edit(TSP, ("2 3 0", "2 -1e308 0"), ("3 0 4", "3 1e308 0")),
        "too large to add exactly",
        6,
    ),
    "off the globe": (
        edit(TSP, ("EUC_2D", "GEO"), ("2 3", "2 300")),
        "node 2 of the file is not",
        8,
    ),
    "decimal degrees": (
        edit(TSP, ("EUC_2D", "GEO"), ("2 3 0", "2 3.59 12.75")),
        "node 2 of the file has the coordinate 12.75, but metric GEO reads xy as DDD.MM, degrees "
        "and minutes below 60; if these are decimal degrees, write 12.45 for 12.75",
        8,
    ),
    "sixty minutes": (
        edit(TSP, ("EUC_2D", "GEO"), ("3 0 4", "3 -12.60 0")),
        "node 3 of the file has the coordinate -12.6",
        9,
    ),
    "no coords": (edit(TSP, ("NODE", "NODE_COORD_TYPE: NO_COORDS\nNODE")), "with NO_COORDS", 7),
    "3d coords": (edit(TSP, ("NODE", "NODE_COORD_TYPE: THREED_COORDS\nNODE")), "THREED", 6),
    "display type": (edit(TSP, ("NODE", "DISPLAY_DATA_TYPE: ON\nNODE")), "'ON' is not known", 6),
    "bad display": (
        edit(EXPLICIT, ("EOF", "DISPLAY_DATA_SECTION\n1 0 0\n2 0 0\nEOF")),
        "node 3 of 3 (DIMENSION) is missing in DISPLAY_DATA_SECTION",
        10,
    ),
    "tsp with capacity": (edit(TSP, ("NODE", "CAPACITY: 3\nNODE")), "CAPACITY does not belong", 6),
    "tsp with demand": (
        edit(TSP, ("EOF", "DEMAND_SECTION\n1 0\n2 1\n3 1\nEOF")),
        "DEMAND_SECTION does not belong in a TSP",
        10,
    ),
    "tsp with weights": (
        edit(TSP, ("EOF", "EDGE_WEIGHT_SECTION\n1 2 3\nEOF")),
        "EDGE_WEIGHT_SECTION does not belong",
        10,
    ),
    "tsp with format": (
        edit(TSP, ("NODE", "EDGE_WEIGHT_FORMAT: UPPER_ROW\nNODE")),
        "EDGE_WEIGHT_FORMAT does not belong",
        6,
    ),
    "fixed unended": (edit(TSP, ("EOF", "FIXED_EDGES_SECTION\n1 2\nEOF")), "then -1", 11),
    "fixed odd": (edit(TSP, ("EOF", "FIXED_EDGES_SECTION\n1 2 3\n-1\nEOF")), "pairs of nodes", 12),
    "fixed outside": (edit(TSP, ("EOF", "FIXED_EDGES_SECTION\n1 4\n-1\nEOF")), "node 4 in", 11),
    "fixed loop": (edit(TSP, ("EOF", "FIXED_EDGES_SECTION\n2 2\n-1\nEOF")), "2 and 2 of the", 10),
    "fixed star": (
        edit(TSP, ("3\n", "4\n"), ("EOF", "4 1 1\nFIXED_EDGES_SECTION\n1 2 1 3 1 4 -1\nEOF")),
        "more than two fixed edges at node 1 of the file",
        11,
    ),
    "explicit without format": (
        edit(EXPLICIT, ("EDGE_WEIGHT_FORMAT: UPPER_ROW\n", "")),
        "EDGE_WEIGHT_FORMAT is missing",
        7,
    ),
    "explicit without section": (
        EXPLICIT[: EXPLICIT.index("EDGE_WEIGHT_SECTION")],
        "EDGE_WEIGHT_SECTION is missing",
        4,
    ),
    "explicit function": (edit(EXPLICIT, ("UPPER_ROW", "FUNCTION")), "if it is FUNCTION", 4),
    "explicit format": (edit(EXPLICIT, ("UPPER_ROW", "DIAGONAL")), "'DIAGONAL' is not known", 4),
    "few weights": (edit(EXPLICIT, ("3\nEOF", "EOF")), "has 2 numbers, UPPER_ROW of 3", 6),
    "many weights": (edit(EXPLICIT, ("3\nEOF", "3\n4\n5\nEOF")), "has 5 numbers", 8),
    "weight bomb": (edit(EXPLICIT, (": 3", ": 90")), "90 nodes needs 4005", 7),
    "weight negative": (edit(EXPLICIT, ("1 2", "1 -2")), "1 and 3 of the file is negative", 5),
    "weight nan": (edit(EXPLICIT, ("1 2", "1 x")), "'x' in EDGE_WEIGHT_SECTION", 6),
    "asymmetric": (
        edit(EXPLICIT, ("UPPER_ROW", "FULL_MATRIX"), ("1 2\n3", "0 1 2\n1 0 3\n2 4 0")),
        "not symmetric (nodes 2 and 3 of the file)",
        5,
    ),
    "capacity missing": (edit(CVRP, ("CAPACITY : 5\n", "")), "CAPACITY is missing", 17),
    "capacity nan": (edit(CVRP, (": 5", ": nan")), "CAPACITY 'nan' is not a number", 5),
    "capacity 1e400": (edit(CVRP, (": 5", ": 1e400")), "CAPACITY '1e400' is not a number", 5),
    "capacity zero": (edit(CVRP, (": 5", ": 0")), "capacity must be positive", 5),
    "capacity huge": (edit(CVRP, (": 5", ": 1e30")), "capacity must be positive and exact", 5),
    "demand missing": (
        edit(CVRP, ("DEMAND_SECTION\n1 0\n2 3\n3 4\n", "")),
        "DEMAND_SECTION is missing",
        14,
    ),
    "demand row missing": (edit(CVRP, ("3 4\nDEPOT", "DEPOT")), "node 3 of 3", 13),
    "demand negative": (
        edit(CVRP, ("2 3\n", "2 -3\n")),
        "node 2 of the file has the negative demand -3",
        13,
    ),
    "demand above capacity": (
        edit(CVRP, ("3 4\nDEPOT", "3 6\nDEPOT")),
        "node 3 of the file demands 6, more than the capacity 5",
        14,
    ),
    "demand of the depot": (
        edit(CVRP, ("1 0\n2 3\n", "1 1\n2 3\n")),
        "the depot, node 1 of the file, has a demand",
        12,
    ),
    "demand too fine": (edit(CVRP, ("2 3\n", "2 1e-12\n")), "at most 9 places", 11),
    "demand above fleet": (
        edit(CVRP, (": 2\nNODE", ": 1\nNODE")),
        "total demand 7 exceeds 1 vehicles",
        6,
    ),
    "vehicles zero": (edit(CVRP, (": 2\nNODE", ": 0\nNODE")), "vehicles must be positive", 6),
    "vehicles decimal": (edit(CVRP, (": 2\nNODE", ": 2.5\nNODE")), "not a whole number", 6),
    "distance negative": (edit(CVRP, ("NODE", "DISTANCE : -1\nNODE")), "max_distance must be", 7),
    "service negative": (edit(CVRP, ("NODE", "SERVICE_TIME:-1\nNODE")), "service_time must be", 7),
    "depot missing": (edit(CVRP, ("DEPOT_SECTION\n1\n-1\n", "")), "DEPOT_SECTION is missing", 15),
    "depot empty": (edit(CVRP, ("1\n-1\n", "-1\n")), "must be depots, then -1; it names 0", 16),
    "two depots": (edit(CVRP, ("1\n-1\n", "1\n2\n-1\n")), "VEHICLES_DEPOT_SECTION is miss", 19),
    "depot unended": (edit(CVRP, ("1\n-1\n", "1\n")), "it names 1 and has no -1", 16),
    "depot unended, then nothing": (edit(CVRP, ("1\n-1\n", "1\n\n\n")), "has no -1", 16),
    "depot outside": (edit(CVRP, ("1\n-1\n", "4\n-1\n")), "node 4 in DEPOT_SECTION", 16),
    "depot after -1": (edit(CVRP, ("1\n-1\n", "1\n-1\n2\n")), "after the -1 that ends DEPOT", 18),
    "fixed edges at a depot": (
        edit(CVRP, ("EOF", "FIXED_EDGES_SECTION\n1 3\n-1\nEOF")),
        "is at the depot",
        18,
    ),
}


@pytest.mark.parametrize(("text", "words", "line"), BAD_TEXT.values(), ids=BAD_TEXT)
def test_bad_text_is_refused_at_its_line(text: str | bytes, words: str, line: int) -> None:
    start = time.perf_counter()
    with pytest.raises(InstanceError) as caught:
        io.parse(text, file="some.tsp")
    assert words in caught.value.reason
    assert (caught.value.file, caught.value.line) == ("some.tsp", line)
    assert time.perf_counter() - start < 1  # no bomb goes off


@pytest.mark.parametrize("text", [TSP, CVRP, EXPLICIT])
def test_what_is_allowed(text: str) -> None:
    plain = io.parse(text)
    assert same(io.parse(text.encode()), plain)
    assert same(io.parse("\ufeff" + text), plain)
    assert same(io.parse(text.replace("\n", "\r\n")), plain)
    assert same(io.parse(text.replace("\n", "\r")), plain)
    assert same(io.parse(text.replace("\n", " \t\n\n")), plain)
    assert same(io.parse(re.sub(r" *: *", "\t:\t ", text)), plain)
    assert same(io.parse(text.replace("SECTION", "SECTION:")), plain)
    assert same(io.parse(text.replace("EOF\n", "")), plain)
    assert same(io.parse(text.replace("EOF\n", "EOF")), plain)
    assert same(io.parse(text + "\n\n"), plain)
    assert same(io.parse(text.replace(": TSP", ": TSP (M.~Hofmeister)")), plain)


def test_coordinates_may_say_what_they_are() -> None:
    plain = io.parse(TSP)
    assert same(io.parse(edit(TSP, ("NODE_C", "NODE_COORD_TYPE: TWOD_COORDS\nNODE_C"))), plain)


def test_rows_in_any_order_comments_and_names() -> None:
    shuffled = edit(TSP, ("1 0 0\n2 3 0\n3 0 4", "3 0 4\n1 0 0\n+2 3. 0e0"))
    assert same(io.parse(shuffled), io.parse(TSP))
    text = edit(TSP, ("three nodes", "one: two\nCOMMENT :\nCOMMENT:  drei Städte "))
    assert io.parse(text).comment == "one: two\n\ndrei Städte"
    assert io.parse(edit(TSP, ("NAME: small\n", ""))).name == "unnamed"
    plan = io.parse(edit(CVRP, ("NODE", "DISTANCE: 20.5\nSERVICE_TIME: 2\nNODE")))
    assert (plan.max_distance, plan.service_time, plan.vehicles) == (20.5, 2.0, 2)
    assert io.parse(edit(CVRP, ("VEHICLES : 2\n", ""), ("plan", "X-n3-k2"))).vehicles is None
    decimals = io.parse(edit(CVRP, ("2 3\n", "2 2.25\n")))
    assert (decimals.demand.tolist(), decimals.capacity, decimals.demand_scale) == (
        [0, 225, 400],
        500,
        100,
    )


@pytest.mark.parametrize(
    ("layout", "numbers"),
    [
        ("FULL_MATRIX", "0 1 2 1 0 3 2 3 0"),
        ("UPPER_ROW", "1 2 3"),
        ("LOWER_ROW", "1 2 3"),
        ("UPPER_COL", "1 2 3"),
        ("LOWER_COL", "1 2 3"),
        ("UPPER_DIAG_ROW", "0 1 2 0 3 0"),
        ("LOWER_DIAG_ROW", "0 1 0 2 3 0"),
        ("UPPER_DIAG_COL", "0 1 0 2 3 0"),
        ("LOWER_DIAG_COL", "0 1 2 0 3 0"),
    ],
)
def test_matrix_layouts(layout: str, numbers: str) -> None:
    text = edit(EXPLICIT, ("UPPER_ROW", layout), ("1 2\n3", numbers.replace(" ", "\n")))
    assert io.parse(text).matrix.tolist() == [[0, 1, 2], [1, 0, 3], [2, 3, 0]]


def test_layouts_of_four_nodes_follow_their_definition() -> None:
    rng = np.random.default_rng(0)
    half = np.triu(rng.integers(1, 99, (4, 4)), 1)
    matrix = half + half.T
    for layout in tsplib._HALVES:
        side, *diag, order = layout.split("_")
        low = 0 if diag else 1
        cells = [
            (i, j)
            for a in range(4)
            for b in range(4)
            for i, j in [(a, b) if order == "ROW" else (b, a)]
            if (j - i if side == "UPPER" else i - j) >= low
        ]
        numbers = " ".join(str(matrix[cell]) for cell in cells)
        head = (
            f"TYPE: TSP\nDIMENSION: 4\nEDGE_WEIGHT_TYPE: EXPLICIT\nEDGE_WEIGHT_FORMAT: {layout}\n"
        )
        parsed = io.parse(f"{head}EDGE_WEIGHT_SECTION\n{numbers}\n")
        assert (parsed.matrix == matrix).all(), layout


def test_numbers_are_read_as_float_reads_them() -> None:
    rng = random.Random(3)
    words = ["5e-324", "2.2250738585072011e-308", "1e22", "9007199254740993", "0.1", "-0.0", "1.e2"]
    words += [f"{rng.uniform(-1, 1):.{rng.randint(1, 25)}e}"[:-4] for _ in range(2000)]
    words += [repr(rng.random() * 10.0 ** rng.randint(-20, 9)) for _ in range(2000)]
    words += ["0." + "".join(rng.choices("0123456789", k=400)) for _ in range(20)]
    words = [w for w in words if abs(float(w)) < 1e9]
    rows = "\n".join(f"{i} {word} 0" for i, word in enumerate(words, start=1))
    head = f"TYPE: TSP\nDIMENSION: {len(words)}\nEDGE_WEIGHT_TYPE: EXACT\nNODE_COORD_SECTION\n"
    xy = io.parse(f"{head}{rows}\n").xy
    assert xy[:, 0].tobytes() == np.array([float(word) for word in words]).tobytes()
    doc = sections.Document(bodies={"S": ("\n" + rows).encode()}, lines={"S": 1})
    fast = sections.section_numbers(doc, "S")
    original, sections._fast_floats = sections._fast_floats, lambda body: None
    try:
        slow = sections.section_numbers(doc, "S")
    finally:
        sections._fast_floats = original
    assert fast[0].tobytes() == slow[0].tobytes()
    assert (fast[1] == slow[1]).all()


@pytest.mark.parametrize("word", ["3.4.5", "3-0", "3e", "-", "e", "."])
def test_a_lenient_numpy_changes_nothing(monkeypatch, word: str) -> None:
    """Readers of text that stop early, or read one word as two numbers, do not slip anything in."""

    def lenient(text: bytes, dtype: object, sep: str) -> np.ndarray:
        pattern = rb"\s*(nan|[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
        found, at = [], 0
        while match := re.compile(pattern).match(text, at):
            found.append(float(match[1]))
            at = match.end()
        return np.array(found)

    monkeypatch.setattr(np, "fromstring", lenient)
    assert same(io.parse(TSP), THREE)
    for place in ("2 {} 0", "2 3 {}", "2 {}"):
        with pytest.raises(InstanceError) as caught:
            io.parse(edit(TSP, ("2 3 0", place.format(word))))
        assert (repr(word) in caught.value.reason, caught.value.line) == (True, 8)
    with pytest.raises(InstanceError, match=r"'3\.0\.1\.2'"):  # two too many, then two too few
        io.parse(edit(TSP, ("2 3 0\n3 0 4", "2 3.0.1.2 0\n3 0 e")))


@pytest.mark.slow
def test_a_million_nodes_parse_in_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    n = 10**6
    xy = np.random.default_rng(0).random((n, 2)) * 1e6
    rows = "".join(f"{i} {x!r} {y!r}\n" for i, (x, y) in enumerate(xy.tolist(), start=1))
    head = f"TYPE: TSP\nDIMENSION: {n}\nEDGE_WEIGHT_TYPE: EUC_2D\nNODE_COORD_SECTION\n"
    text = f"{head}{rows}EOF\n".encode()
    start = time.process_time()  # what others do on this machine does not count
    instance = io.parse(text)
    seconds = time.process_time() - start
    with capsys.disabled():
        print(f"\n1,000,000 nodes ({len(text) / 1e6:.0f} MB) parsed in {seconds:.2f} s")
    assert (instance.xy == xy).all()
    assert seconds < 4  # 1.1 s on a quiet core


# --- tours and plans ------------------------------------------------------------------------------

THREE = io.parse(TSP)
PLAN = io.parse(CVRP)
TOUR = "NAME: t\nTYPE: TOUR\nDIMENSION: 3\nTOUR_SECTION\n1\n3\n2\n-1\nEOF\n"
SOL = "Route #1: 2\nRoute #2: 1\nCost 14\n"

BAD_TOURS: dict[str, tuple[str | bytes, str, int]] = {
    "empty": ("", "the file is empty", 1),
    "nul": (edit(TOUR, ("3\n2", "3\0\n2")), "not a text file", 6),
    "type": (edit(TOUR, ("TOUR", "TSP")), "TYPE 'TSP'", 2),
    "no type": (edit(TOUR, ("TYPE: TOUR\n", "")), "TYPE is missing", 8),
    "no section": ("TYPE: TOUR\nDIMENSION: 3\nEOF\n", "TOUR_SECTION is missing", 3),
    "dimension": (edit(TOUR, (": 3", ": 4")), "DIMENSION is 4, but the instance has 3", 3),
    "few": (edit(TOUR, ("3\n2\n", "3\n")), "TOUR_SECTION has 2 nodes", 7),
    "many": (edit(TOUR, ("3\n2\n", "3\n2\n1\n")), "TOUR_SECTION has 4 nodes", 9),
    "zero": (edit(TOUR, ("3\n2\n", "0\n2\n")), "node 0 in TOUR_SECTION", 6),
    "outside": (edit(TOUR, ("3\n2\n", "4\n2\n")), "node 4 in TOUR_SECTION", 6),
    "word": (edit(TOUR, ("3\n2\n", "1_0\n2\n")), "'1_0' in TOUR_SECTION", 6),
    "after -1": (edit(TOUR, ("-1\n", "-1\n1\n")), "after the -1", 9),
    "after eof": (TOUR + "1\n", "text after EOF", 10),
    "other section": (
        edit(TOUR, ("EOF", "DEPOT_SECTION\n1\n-1\nEOF")),
        "DEPOT_SECTION does not belong in a tour",
        9,
    ),
}
BAD_SOLS: dict[str, tuple[str | bytes, str, int]] = {
    "empty": ("\n", "the file is empty", 1),
    "not text": (b"Route #1: 1\n\xff", "not a text file", 2),
    "word": (edit(SOL, ("#1: 2", "#1: x")), "'x' is not one of the nodes 0 .. 2 (as .sol", 1),
    "outside": (edit(SOL, ("#2: 1", "#2: 3")), "'3' is not one of", 2),
    "negative": (edit(SOL, ("#2: 1", "#2: -1")), "'-1' is not one of", 2),
    "unicode": (edit(SOL, ("#2: 1", "#2: ١")), "'١' is not one of", 2),
    "route missing": (edit(SOL, ("Route #1: 2\n", "")), "route 2 where route 1 is due", 1),
    "route twice": (edit(SOL, ("#2", "#1")), "route 1 where route 2 is due", 2),
    "cost word": (edit(SOL, ("14", "nan")), "neither 'Route #3: ...' nor 'Cost ...'", 3),
    "text after": (SOL + "Time 3\n", "text after the cost: 'Time 3'", 4),
    "garbage": (edit(SOL, ("Route #2", "Rout #2")), "neither 'Route #2", 2),
    "before": (edit(SOL, ("Route #2", "XRoute #2")), "neither 'Route #2", 2),
    "control": (edit(SOL, ("Route #2", "\x0bRoute #2")), "neither 'Route #2", 2),
}


@pytest.mark.parametrize(("text", "words", "line"), BAD_TOURS.values(), ids=BAD_TOURS)
def test_bad_tours_are_refused_at_their_line(text: str | bytes, words: str, line: int) -> None:
    with pytest.raises(SolutionError) as caught:
        io.parse_tour(text, THREE, file="some.tour")
    assert words in caught.value.reason
    assert (caught.value.file, caught.value.line) == ("some.tour", line)


@pytest.mark.parametrize(("text", "words", "line"), BAD_SOLS.values(), ids=BAD_SOLS)
def test_bad_plans_are_refused_at_their_line(text: str | bytes, words: str, line: int) -> None:
    with pytest.raises(SolutionError) as caught:
        io.parse_sol(text, PLAN, file="some.sol")
    assert words in caught.value.reason
    assert (caught.value.file, caught.value.line) == ("some.sol", line)


def test_tours_and_plans_of_many_hands() -> None:
    for text in (
        TOUR,
        edit(TOUR, ("-1\nEOF\n", "")),
        edit(TOUR, ("-1\nEOF\n", "-1")),
        edit(TOUR, ("-1\n", "-1\n-1\n")),
        edit(TOUR, ("DIMENSION: 3\n", "")),
        edit(TOUR, ("1\n3\n2\n-1", "1 3\t2 -1")),
    ):
        assert io.parse_tour(text, THREE).tour.tolist() == [0, 2, 1]
    for text in (
        SOL,
        SOL.strip(),
        SOL.replace("Cost 14\n", ""),
        edit(SOL, ("Cost 14", "\ncost: 14.5")),
        edit(SOL, ("Route", " \tRoute"), ("14\n", "14\t \n")),
    ):
        assert [r.tolist() for r in io.parse_sol(text, PLAN).routes] == [[2], [1]]
    with pytest.raises(SolutionError, match=r"^line 1: a tour is for a TSP, but .* CVRP$"):
        io.parse_tour(TOUR, PLAN)
    with pytest.raises(SolutionError, match=r"^line 1: a .sol file is for a CVRP, but .* TSP$"):
        io.parse_sol(SOL, THREE)
    invalid = io.parse_sol("Route #1: 1\n", PLAN)  # reading is not checking
    assert check(PLAN, invalid) == ["node 2 (counted from 0) is not visited"]


BAD_JSON = {
    "cut": ('{"format": "drhg-instance",\n', "not JSON", 2),
    "list": ("[1]", "not an object", None),
    "format": ('{"format": "other"}', "not an object with", None),
    "solution": ('{"format": "drhg-solution", "routes": []}', "not an object with", None),
    "twice": ('{"format": "drhg-instance", "xy": 1, "xy": 2}', "occurs twice", None),
    "nesting": ("[" * 100000, "not usable JSON", None),
    "digits": ('{"format": ' + "9" * 5000 + "}", "not usable JSON", None),
    "unknown": ('{"format": "drhg-instance", "extra": 1}', "unknown field 'extra'", None),
    "nan": ('{"format": "drhg-instance", "xy": [[NaN, 0]]}', "xy has a wrong value", None),
    "1e400": ('{"format": "drhg-instance", "xy": [[1e400, 0]]}', "xy has a wrong value", None),
    "bool": ('{"format": "drhg-instance", "xy": [[true, 0]]}', "xy has a wrong value", None),
    "text": ('{"format": "drhg-instance", "xy": [["1", 0]]}', "xy has a wrong value", None),
    "ragged": ('{"format": "drhg-instance", "xy": [[1, 0], [1]]}', "xy has a wrong value", None),
    "no node": ('{"format": "drhg-instance", "xy": []}', "xy has a wrong value", None),
    "metric": ('{"format": "drhg-instance", "metric": "A"}', "metric has a wrong value", None),
    "nothing": ('{"format": "drhg-instance"}', "neither coordinates (xy) nor", None),
    "beyond 64 bits": (
        f'{{"format": "drhg-instance", "capacity": {2**62}}}',
        "capacity has a wrong value",
        None,
    ),
    "nul": ('{"format": \n"\0"}', "not a text file", 2),
}


@pytest.mark.parametrize(("text", "words", "line"), BAD_JSON.values(), ids=BAD_JSON)
def test_bad_json_is_refused(text: str, words: str, line: int | None) -> None:
    with pytest.raises(InstanceError) as caught:
        io.from_json(text, file="some.json")
    assert words in caught.value.reason
    assert (caught.value.file, caught.value.line) == ("some.json", line)


NODES = "routes must be lists of the nodes 0 .. 2 (counted from 0)"
EITHER = 'a solution in JSON has either "tour" or "routes"'
BAD_JSON_SOLUTIONS = {
    "{}": EITHER,
    "[]": "a solution in JSON is an object",
    '{"format": "drhg-solution"}': EITHER,
    '{"routes": [[1, 2]], "tour": [1, 2]}': EITHER,
    '{"routes": [1, 2]}': NODES,
    '{"routes": [[1, 2.0]]}': NODES,
    '{"routes": [[1, 3]]}': NODES,
    '{"routes": [[-1]]}': NODES,
    '{"routes": [[true]]}': NODES,
    '{"routes": null}': NODES,
    '{"routes": [[1, 2]], "cost": "7"}': "cost must be a number",
    '{"routes": [[1, 2]], "cost": NaN}': "cost must be a number",
    '{"routes": [[1, 2]], "n": 4}': "the solution has \"n\": '4', but the instance 3",
    '{"routes": [[1, 2]], "problem": "tsp"}': 'the solution has "problem": ',
    '{"tour": [0, 1, 2]}': "a tour is for a TSP, but the instance is a CVRP",
    '{"routes": [[1]], "routes": [[2]]}': "not usable JSON: a field occurs twice",
    '{"routes": [[1]]}\n{"routes": ': "not JSON",
    '{"routes": [[1]]}\nnonsense': "not JSON: Extra data",
}


@pytest.mark.parametrize(("text", "words"), BAD_JSON_SOLUTIONS.items())
def test_bad_json_solutions_are_refused(text: str, words: str) -> None:
    with pytest.raises(SolutionError) as caught:
        io.solution_from_json(text, PLAN, file="some.json")
    assert caught.value.reason.startswith(words)
    assert caught.value.file == "some.json"
    assert caught.value.line == (2 if "\n" in text else None)


def test_a_solution_in_json_says_what_it_is_about(tmp_path: Path) -> None:
    tour, plan = Solution([[0, 2, 1]]), Solution([[2], [1]])
    io.write_solution(tmp_path / "a.json", THREE, tour)
    assert json.loads((tmp_path / "a.json").read_text()) == {
        "file": None,
        "name": "small",
        "problem": "tsp",
        "n": 3,
        "cost": 12,
        "tour": [0, 2, 1],
    }
    assert io.read_solution(tmp_path / "a.json", THREE) == tour
    io.write_solution(tmp_path / "b.json", PLAN, plan, 99, instance_file=Path("x/plan.vrp"))
    row = json.loads((tmp_path / "b.json").read_text())
    assert row == io.solution_row(PLAN, plan, 99, file="x/plan.vrp")
    assert (row["file"], row["cost"], row["routes"]) == ("x/plan.vrp", 99, [[2], [1]])
    assert io.read_solution(tmp_path / "b.json", PLAN) == plan
    (tmp_path / "b.json").write_text(json.dumps(row | {"status": "time", "unplaced": []}, indent=1))
    assert io.read_solution(tmp_path / "b.json", PLAN) == plan  # many lines, one object


def test_solutions_in_json_of_before_are_still_read() -> None:
    old = '{"format": "drhg-solution", "cost": 14, "routes": [[1], [2]]}'
    assert io.solution_from_json(old, PLAN) == Solution([[1], [2]])
    old = '{"format": "drhg-solution", "cost": null, "routes": [[0, 2, 1]]}'
    assert io.solution_from_json(old, THREE) == Solution([[0, 2, 1]])


def lines_of(*rows: dict[str, object]) -> str:
    full = [{"problem": "tsp", "n": 3, "cost": 12} | row for row in rows]
    return "".join(json.dumps(row) + "\n" for row in full)


def test_of_many_lines_the_one_that_fits_is_read(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    here, there = {"file": "x/a.tsp", "name": "small"}, {"file": "y/a.tsp", "name": "small"}
    other = {"file": "b.tsp", "name": "other", "tour": [2, 1, 0]}

    def tour(of: str | None, *rows: dict[str, object]) -> list[int]:
        path.write_text(lines_of(*rows))
        return io.read_solution(path, THREE, instance_file=of).tour.tolist()

    one, two = here | {"tour": [0, 1, 2]}, there | {"tour": [1, 2, 0]}
    assert tour("x/a.tsp", other, one, two) == [0, 1, 2]  # by the same path,
    assert tour("./y/../y/a.tsp", other, one, two) == [1, 2, 0]  # however it is written,
    assert tour("z/a.tsp", other, two) == [1, 2, 0]  # by the file's name,
    assert tour("c.tsp", other, two) == [1, 2, 0]  # by the instance's name,
    assert tour(None, other, two) == [1, 2, 0]
    assert tour("b.tsp", other, two) == [2, 1, 0]  # and by its file rather than by its name
    assert tour(None, two) == [1, 2, 0]
    failed = {"file": "c.tsp", "name": "failed", "error": "no such file"}
    assert tour("x/a.tsp", failed, one) == [0, 1, 2]

    for of in ("z/a.tsp", None):
        with pytest.raises(SolutionError, match="lines 2 and 3 are both solutions") as caught:
            tour(of, other, one, two)
        assert (caught.value.file, caught.value.line) == (str(path), 3)
    with pytest.raises(SolutionError, match=r"none of its 2 solutions is of 'small' \(c\.tsp\)"):
        tour("c.tsp", other, other)
    with pytest.raises(SolutionError) as caught:
        tour("x/a.tsp", other, here | {"tour": [0, 1, 3]})
    assert caught.value.reason == "tour must be a list of the nodes 0 .. 2 (counted from 0)"
    assert caught.value.line == 2


# --- round trips ----------------------------------------------------------------------------------


def some_instance(seed: int) -> Instance:
    """A small valid instance of any kind, drawn from a seed."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 7))
    metric = Metric(int(rng.integers(0, len(Metric))))
    xy = rng.normal(0, 40, (n, 2)) if rng.random() < 0.5 else rng.integers(0, 90, (n, 2)) / 1.0
    matrix = None
    if metric is Metric.EXPLICIT:
        half = np.triu(rng.integers(0, 99, (n, n)), 1) * rng.choice([1.0, 0.1])
        matrix = half + half.T
    elif metric is Metric.GEO:
        xy = reference.degrees_and_minutes(rng.uniform(-90, 90, (n, 2)))
    elif metric is Metric.HAVERSINE:
        xy = np.stack([rng.uniform(-90, 90, n), rng.uniform(-180, 180, n)], axis=1)
    shown = None if metric is Metric.EXPLICIT and rng.random() < 0.5 else xy
    if rng.random() < 0.5:
        edges = [(i, i + 1) for i in range(n - 1) if rng.random() < 0.2]
        return tsp(shown, matrix=matrix, metric=metric, name=f"tsp {seed}", fixed_edges=edges)
    depot = int(rng.integers(n))
    demand = rng.integers(0, 9, n) / rng.choice([1, 4, 10])
    demand[depot] = 0
    return cvrp(
        shown,
        demand,
        float(rng.choice([9, 12.5])),
        matrix=matrix,
        metric=metric,
        depot=depot,
        vehicles=n if rng.random() < 0.3 else None,
        max_distance=float(rng.random() * 1e4) if rng.random() < 0.3 else None,
        service_time=float(rng.choice([0, 1.5])),
        name=f"Stadt-Ü:{seed}",
    )


def some_solution(instance: Instance, seed: int) -> Solution:
    rng = np.random.default_rng(seed)
    order = rng.permutation(instance.n)
    if not instance.is_cvrp:
        return Solution([order])
    order = order[order != instance.depot]
    return Solution(np.split(order, np.sort(rng.integers(0, len(order) + 1, 2))))


@pytest.mark.parametrize("seed", range(300))
def test_instances_survive_text_and_json(seed: int) -> None:
    instance = some_instance(seed)
    assert same(io.parse(io.format_instance(instance)), instance)
    assert same(io.from_json(io.to_json(instance)), instance)
    named = dataclasses.replace(instance, names=tuple(f'Stopp {i}, "Ö"' for i in range(instance.n)))
    assert same(io.from_json(io.to_json(named)), named)
    noted = dataclasses.replace(instance, comment="one\ntwo: 2")
    assert same(io.parse(io.format_instance(noted)), noted)
    assert same(io.from_json(io.to_json(noted)), noted)


@pytest.mark.parametrize("metric", list(Metric))
@pytest.mark.parametrize("suffix", [".tsp", ".vrp", ".json"])
def test_files_give_back_the_instance(tmp_path: Path, metric: Metric, suffix: str) -> None:
    rng = np.random.default_rng(5)
    xy = reference.degrees_and_minutes(rng.uniform(-80, 80, (9, 2)))
    matrix = np.round(np.hypot(*(xy[:, None] - xy).T), 3) if metric is Metric.EXPLICIT else None
    if suffix == ".tsp":
        instance = tsp(xy, matrix=matrix, metric=metric, fixed_edges=[(3, 5)])
    else:
        instance = cvrp(xy, [0] + [0.5] * 8, 2, matrix=matrix, metric=metric, max_distance=1e5 / 3)
    path = tmp_path / f"instance{suffix}"
    io.write_instance(path, instance)
    assert same(io.read(path), instance)
    assert same(io.read(str(path)), instance)


@pytest.mark.parametrize("seed", range(60))
def test_files_give_back_the_solution(tmp_path: Path, seed: int) -> None:
    instance = some_instance(seed)
    solution = some_solution(instance, seed)
    for suffix in (".sol" if instance.is_cvrp else ".tour", ".json"):
        path = tmp_path / f"solution{suffix}"
        io.write_solution(path, instance, solution)
        assert io.read_solution(path, instance) == solution
        assert str(cost(instance, solution)) in path.read_text()
        io.write_solution(path, instance, solution, cost=123456)
        assert "123456" in path.read_text()


def test_names_that_would_break_a_line_are_made_one(tmp_path: Path) -> None:
    instance = tsp([[0, 0]], name="a\nEOF\r\0b\ud800")
    io.write_instance(tmp_path / "x.tsp", instance)
    assert io.read(tmp_path / "x.tsp").name == "a EOF  b?"
    io.write_instance(tmp_path / "x.json", instance)
    assert io.read(tmp_path / "x.json").name == instance.name


def test_the_suffix_must_fit(tmp_path: Path) -> None:
    with pytest.raises(InstanceError, match=r"a\.vrp: .* must end in \.tsp or \.json"):
        io.write_instance(tmp_path / "a.vrp", THREE)
    with pytest.raises(SolutionError, match=r"a\.tour: .* must end in \.sol or \.json"):
        io.write_solution(tmp_path / "a.tour", PLAN, Solution([[1], [2]]))
    with pytest.raises(SolutionError, match=r"a\.txt: .* must end in \.tour or \.sol or \.json"):
        io.read_solution(tmp_path / "a.txt", PLAN)
    with pytest.raises(SolutionError, match="2 routes are not one tour"):
        io.write_solution(tmp_path / "a.tour", THREE, Solution([[0], [1, 2]]))
    assert list(tmp_path.iterdir()) == []


def test_a_bad_solution_is_named_with_its_file(tmp_path: Path) -> None:
    for name, instance in (("a.tour", THREE), ("a.sol", PLAN), ("a.json", PLAN)):
        (tmp_path / name).write_text("nonsense")
        with pytest.raises(SolutionError) as caught:
            io.read_solution(tmp_path / name, instance)
        assert caught.value.file == str(tmp_path / name)
        with pytest.raises(SolutionError) as caught:
            io.read_solution(tmp_path / f"no-{name}", instance)
        assert caught.value.file == str(tmp_path / f"no-{name}")


def test_long_words_are_shortened() -> None:
    for length, shown in ((40, "x" * 40), (41, "x" * 37 + "...")):
        with pytest.raises(InstanceError) as caught:
            io.parse(TSP + "x" * length)
        assert caught.value.reason == f"text after EOF: {shown!r}"


def test_the_cost_is_computed_unless_given() -> None:
    tour, plan = Solution([[0, 1, 2]]), Solution([[1], [2]])
    assert f"{cost(THREE, tour):g}" in io.format_tour(THREE, tour)
    assert "1234" in io.format_tour(THREE, tour, cost=1234)
    assert io.format_sol(PLAN, plan).endswith(f"Cost {cost(PLAN, plan):g}\n")
    assert io.format_sol(PLAN, plan, cost=1234).endswith("Cost 1234\n")


@pytest.mark.parametrize("name", ["a.json", "a.JSON"])
def test_json_is_known_by_its_name(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(100 * " " + io.to_json(THREE))  # no bracket where one would look for it
    assert same(io.read(path), THREE)


def test_json_is_known_by_its_content_too(tmp_path: Path) -> None:
    (tmp_path / "odd.txt").write_text("\n " + io.to_json(PLAN))
    assert same(io.read(tmp_path / "odd.txt"), PLAN)
    (tmp_path / "odd.txt").write_text("\ufeff" + io.to_json(PLAN), encoding="utf-8")
    assert same(io.read(tmp_path / "odd.txt"), PLAN)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_smallest_files(n: int) -> None:
    rows = "".join(f"{i} {i} 0\n" for i in range(1, n + 1))
    head = f"TYPE: TSP\nDIMENSION: {n}\nEDGE_WEIGHT_TYPE: EUC_2D\n"
    assert io.parse(f"{head}NODE_COORD_SECTION\n{rows}").n == n
    numbers = "1 " * (n * (n - 1) // 2)
    explicit = head.replace("EUC_2D", "EXPLICIT") + "EDGE_WEIGHT_FORMAT: UPPER_ROW\n"
    assert io.parse(f"{explicit}EDGE_WEIGHT_SECTION\n{numbers}\n").n == n


# --- mutated files --------------------------------------------------------------------------------

WORDS = [
    "0", "-1", "1", "2", "99", "1.5", "1e400", "nan", "inf", "1_0", "٣", "x", ":", "EOF", "TSP",
    "CVRP", "GEO", "EXPLICIT", "FULL_MATRIX", "1000000000000", "NODE_COORD_SECTION", "-", "1.2.3",
    "DIMENSION: 2", "DEPOT_SECTION", "[", "{", "}", "null", "true", '"', "1e300", "Cost 3",
]  # fmt: skip


@functools.cache
def real(kind: str) -> list[bytes]:
    """Small library files of a kind; none where there are no data."""
    folder = Path(os.environ.get("DRHG_DATA", "data"))
    where = {".tsp": "tsplib/*.tsp", ".vrp": "cvrplib/[ABEFMP]/*.vrp"}.get(kind, "none")
    files = [path for path in sorted(folder.glob(where)) if path.stat().st_size < 3000]
    return [path.read_bytes() for path in files]


@st.composite
def mutated(draw: st.DrawFn, kind: str) -> tuple[Instance, bytes]:
    """An instance and a file of the given kind for it, changed in one to four places."""
    instance = some_instance(draw(st.integers(0, 499)))
    if kind in (".sol", ".vrp") and not instance.is_cvrp:
        instance = PLAN
    if kind in (".tour", ".tsp", ".jsonl") and instance.is_cvrp:
        instance = THREE
    solution = some_solution(instance, 0)
    text = {
        ".tsp": io.format_instance,
        ".vrp": io.format_instance,
        ".json": io.to_json,
        ".tour": lambda i: io.format_tour(i, solution),
        ".sol": lambda i: io.format_sol(i, solution),
        ".jsonl": lambda i: lines_of(io.solution_row(i, solution), {"name": "x", "tour": [0]}),
    }[kind](instance)
    if kind == ".json":
        text = re.sub(r"(, (?=\")|\], (?=\[))", r"\1\n", text)
    data = text.encode()
    if real(kind) and draw(st.booleans()):
        data = draw(st.sampled_from(real(kind)))
    for _ in range(draw(st.integers(1, 4))):
        data = draw(st.sampled_from([change_line, change_word, change_byte]))(draw, data)
    return instance, data


def change_line(draw: st.DrawFn, data: bytes) -> bytes:
    lines = data.split(b"\n")
    at, other = (draw(st.integers(0, len(lines) - 1)) for _ in range(2))
    match draw(st.sampled_from(["delete", "repeat", "swap", "cut", "word"])):
        case "delete":
            del lines[at]
        case "repeat":
            lines.insert(other, lines[at])
        case "swap":
            lines[at], lines[other] = lines[other], lines[at]
        case "cut":
            del lines[at + 1 :]
        case "word":
            lines.insert(at, draw(st.sampled_from(WORDS)).encode())
    return b"\n".join(lines)


def change_word(draw: st.DrawFn, data: bytes) -> bytes:
    words = re.split(rb"(\s+|[,\[\]:])", data)
    at = draw(st.integers(0, len(words) - 1))
    words[at] = draw(st.sampled_from([*WORDS, "", words[at].decode(errors="replace") * 2])).encode()
    return b"".join(words)


def change_byte(draw: st.DrawFn, data: bytes) -> bytes:
    at = draw(st.integers(0, len(data)))
    byte = draw(st.binary(max_size=1) | st.sampled_from([b"\n", b" ", b"0", b"-", b"e", b"."]))
    return data[:at] + byte + data[at + draw(st.integers(0, 1)) :]


def says_where(error: DrhgError, data: bytes | None) -> None:
    """Names the file, and in a text format one of its lines."""
    assert error.file == "f"
    if data is not None:
        assert error.line is not None
        assert 1 <= error.line <= len(re.split(rb"\r\n|\r|\n", data))


def survives(instance: Instance) -> None:
    """A mutated file that is still accepted must give a sound instance."""
    assert same(io.parse(io.format_instance(instance)), instance)
    grid = np.arange(instance.n)
    assert np.isfinite(instance.distance(grid[:, None], grid)).all()


@given(mutated(".tsp"))
def test_mutated_tsp(case: tuple[Instance, bytes]) -> None:
    _text_or_typed_error(case[1])


@given(mutated(".vrp"))
def test_mutated_vrp(case: tuple[Instance, bytes]) -> None:
    _text_or_typed_error(case[1])


def _text_or_typed_error(data: bytes) -> None:
    try:
        instance = io.parse(data, file="f")
    except InstanceError as error:
        says_where(error, data)
    else:
        survives(instance)
        as_plainly_read(data, instance)


def as_plainly_read(data: bytes, instance: Instance) -> None:
    """An accepted text says, to a reader without any tricks, what the instance holds."""
    rows: dict[str, dict[int, list[float]]] = {}
    key, said = "", {}
    for line in re.split(r"\r\n|\r|\n", data.decode("utf-8-sig")):
        words = line.strip(" \t").split()
        if words and re.match("[A-Za-z_]", words[0]):
            key, _, value = line.strip(" \t").partition(":")
            key = key.split()[0]
            said[key] = value.strip(" \t")
        elif words and key in ("NODE_COORD_SECTION", "DEMAND_SECTION"):
            rows.setdefault(key, {})[int(float(words[0])) - 1] = [float(w) for w in words[1:]]
    assert int(said["DIMENSION"]) == instance.n
    nodes = list(range(instance.n))
    if instance.matrix is None:
        assert [rows["NODE_COORD_SECTION"][i] for i in nodes] == instance.xy.tolist()
    if instance.is_cvrp:
        demand = [rows["DEMAND_SECTION"][i][0] for i in nodes]
        assert demand == pytest.approx((instance.demand / instance.demand_scale).tolist())
    assert all(sorted(found) == nodes for found in rows.values())


@given(mutated(".tour"))
def test_mutated_tour(case: tuple[Instance, bytes]) -> None:
    _solution_or_typed_error(io.parse_tour, *case)


@given(mutated(".sol"))
def test_mutated_sol(case: tuple[Instance, bytes]) -> None:
    _solution_or_typed_error(io.parse_sol, *case)


def _solution_or_typed_error(parser, instance: Instance, data: bytes) -> None:
    try:
        solution = parser(data, instance, file="f")
    except SolutionError as error:
        says_where(error, data)
    else:
        assert not [found for found in check(instance, solution) if "does not exist" in found]


@given(mutated(".jsonl"))
def test_mutated_solutions_in_json(case: tuple[Instance, bytes]) -> None:
    instance, data = case
    try:
        solution = io.solution_from_json(data, instance, file="f")
    except SolutionError as error:
        says_where(error, None)
    else:
        assert not [found for found in check(instance, solution) if "does not exist" in found]


@given(mutated(".json"))
def test_mutated_json(case: tuple[Instance, bytes]) -> None:
    try:
        instance = io.from_json(case[1], file="f")
    except InstanceError as error:
        says_where(error, None)
    else:
        again = io.from_json(io.to_json(instance))
        assert same(again, instance)


@given(st.binary(max_size=60) | st.text(max_size=60))
def test_noise(data: bytes | str) -> None:
    for parser in (io.parse, io.from_json):
        with pytest.raises(InstanceError):
            parser(data)
    for parser in (io.parse_tour, io.solution_from_json):
        with pytest.raises(SolutionError):
            parser(data, THREE)


# --- files ----------------------------------------------------------------------------------------


def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.tsp")
    (tmp_path / "loop.tsp").symlink_to(tmp_path / "loop.tsp")
    (tmp_path / "dangling.tsp").symlink_to(tmp_path / "nowhere")
    cases = {
        tmp_path: "not a regular file",
        tmp_path / "pipe.tsp": "not a regular file",
        Path("/dev/zero"): "not a regular file",
        tmp_path / "missing.tsp": "No such file",
        tmp_path / "dangling.tsp": "No such file",
        tmp_path / "loop.tsp": "symbolic links",
        tmp_path / "missing" / "a.tsp": "No such file",
        tmp_path / ("n" * 300): "name too long",
        tmp_path / "nul\0.tsp": "null byte",
    }
    start = time.perf_counter()
    for path, words in cases.items():
        with pytest.raises(InstanceError, match=words) as caught:
            io.read(path)
        assert caught.value.file == str(path)
    for path in (tmp_path / "missing.sol", tmp_path / "missing.json"):
        with pytest.raises(SolutionError, match="No such file"):
            io.read_solution(path, PLAN)
    assert time.perf_counter() - start < 1


@pytest.mark.parametrize("piece", [1, 4, 100])
@pytest.mark.parametrize(
    ("data", "line"), [(b"\0", 1), (b"a\nb\n\0\n\0\n", 3), (b"abc\n\0", 2), (b"a\0\nb\0", 1)]
)
def test_a_nul_is_found_piece_by_piece(
    data: bytes, line: int, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "_PIECE", piece)
    asked = []

    class Stream(BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            asked.append(size)
            return super().read(size)

    with pytest.raises(DrhgError) as caught:
        streams._refuse_nul(Stream(data))
    assert (caught.value.reason, caught.value.line) == ("not a text file (NUL or not UTF-8)", line)
    assert set(asked) == {piece}  # never the whole
    stream = Stream(data.replace(b"\0", b"0"))
    streams._refuse_nul(stream)
    assert stream.tell() == 0


@pytest.mark.parametrize("name", ["a.tsp", "a.json"])
def test_errors_of_a_file_name_it(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text('{"format": 1}' if name == "a.json" else "TYPE: nothing\n")
    with pytest.raises(InstanceError) as caught:
        io.read(path)
    assert caught.value.file == str(path)


def test_a_huge_file_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "huge.tsp"
    with path.open("wb") as stream:
        stream.truncate(io.LARGEST_FILE + 1)  # sparse
    with pytest.raises(InstanceError, match="larger than"):
        io.read(path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read and write everything")
def test_missing_permission(tmp_path: Path) -> None:
    path = tmp_path / "secret.tsp"
    path.write_text(TSP)
    path.chmod(0)
    with pytest.raises(InstanceError, match="Permission denied"):
        io.read(path)
    tmp_path.chmod(0o500)
    with pytest.raises(DrhgError, match="Permission denied"):
        io.atomic_write(tmp_path / "new.tsp", "x")
    tmp_path.chmod(0o700)


def test_a_denied_open_is_named_even_for_root(tmp_path: Path, monkeypatch) -> None:
    def denied(*_: object, **__: object) -> int:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "open", denied)
    with pytest.raises(InstanceError, match="cannot be read: Permission denied"):
        io.read(tmp_path / "a.tsp")
    with pytest.raises(DrhgError, match=r"a\.tsp: cannot be written: Permission denied"):
        io.write_instance(tmp_path / "a.tsp", THREE)


@pytest.mark.parametrize("step", ["fsync", "replace", "chmod"])
@pytest.mark.parametrize("failure", [OSError(errno.ENOSPC, "No space left"), KeyboardInterrupt()])
def test_a_failed_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch, step: str, failure
) -> None:
    path = tmp_path / "best.sol"
    io.atomic_write(path, "old")

    def broken(*_: object, **__: object) -> None:
        raise failure

    monkeypatch.setattr(os, step, broken)
    expected = DrhgError if isinstance(failure, OSError) else KeyboardInterrupt
    with pytest.raises(expected) as caught:
        io.atomic_write(path, "new")
    if expected is DrhgError:
        assert str(caught.value) == f"{path}: cannot be written: No space left"
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["best.sol"]


def test_writing_keeps_permissions_and_links(tmp_path: Path) -> None:
    real, link = tmp_path / "real.txt", tmp_path / "link.txt"
    old_mask = os.umask(0o027)
    try:
        io.atomic_write(real, b"one")
    finally:
        os.umask(old_mask)
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    real.chmod(0o604)
    link.symlink_to("real.txt")
    io.atomic_write(link, "two")
    assert link.is_symlink()
    assert real.read_text() == "two"
    assert stat.S_IMODE(real.stat().st_mode) == 0o604
    assert sorted(os.listdir(tmp_path)) == ["link.txt", "real.txt"]


def test_a_new_file_may_be_read_and_written_by_whom_the_umask_lets(tmp_path: Path) -> None:
    old_mask = os.umask(0)
    try:
        io.atomic_write(tmp_path / "new.txt", "x")
    finally:
        os.umask(old_mask)
    assert stat.S_IMODE((tmp_path / "new.txt").stat().st_mode) == 0o666


def test_what_is_written_is_made_beside_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the same file system: a rename across two of them fails."""
    places = []
    replace = os.replace
    monkeypatch.setattr(os, "replace", lambda a, b: (places.append((a, b)), replace(a, b)))
    io.atomic_write(tmp_path / "new.txt", "x")
    ((part, target),) = places
    assert os.path.dirname(part) == os.path.dirname(target) == str(tmp_path)


def test_writing_to_what_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", Path("/dev/null")):
        with pytest.raises(DrhgError) as caught:
            io.atomic_write(path, "x")
        assert str(caught.value) == f"{path}: cannot be written: not a regular file"
    with pytest.raises(DrhgError, match="No such file"):
        io.atomic_write(tmp_path / "missing" / "a.txt", "x")
    assert os.listdir(tmp_path) == ["pipe"]


def test_reading_needs_neither_numba_nor_scipy_nor_torch() -> None:
    heavy = "('numba', 'scipy', 'torch')"
    code = f"import sys, drhg.files; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_garbage_is_found_even_if_warnings_are_errors() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InstanceError, match="'3e'"):
            io.parse(edit(TSP, ("2 3 0", "2 3e 0")))


# --- standard streams and compressed files --------------------------------------------------------


def waiting(monkeypatch: pytest.MonkeyPatch, text: str | bytes) -> None:
    """What waits on standard input."""
    data = text.encode() if isinstance(text, str) else text
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(data)))


@pytest.mark.parametrize("text", [TSP, CVRP, EXPLICIT, io.to_json(PLAN)])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_an_instance_comes_from_standard_input(
    text: str, pack: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting(monkeypatch, pack(text.encode()))
    assert io.read("-") == (io.from_json if text[0] == "{" else io.parse)(text)
    monkeypatch.setattr(sys, "stdin", StringIO(text))  # as a notebook or a test may do
    assert io.read("-") == (io.from_json if text[0] == "{" else io.parse)(text)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_solution_from_standard_input_is_recognised(
    pack: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(instance: Instance, text: str) -> Solution:
        waiting(monkeypatch, pack(text.encode()))
        return io.read_solution("-", instance, instance_file="a.tsp")

    assert read(THREE, TOUR) == Solution([[0, 2, 1]])
    assert read(THREE, TOUR.replace("NAME: t\n", "")) == Solution([[0, 2, 1]])
    assert read(PLAN, SOL) == Solution([[2], [1]])
    assert read(PLAN, "\n\n" + SOL) == Solution([[2], [1]])
    assert read(PLAN, '{"routes": [[2], [1]]}') == Solution([[2], [1]])
    assert read(THREE, '\n{"tour": [0, 2, 1]}') == Solution([[0, 2, 1]])
    rows = lines_of({"file": "b.tsp", "tour": [1, 2, 0]}, {"file": "a.tsp", "tour": [0, 2, 1]})
    assert read(THREE, rows) == Solution([[0, 2, 1]])
    wrong = {
        (PLAN, TOUR): "standard input:1: a tour is for a TSP",
        (THREE, SOL): "standard input:1: a .sol file is for a CVRP",
        (PLAN, "nonsense"): "standard input:1: neither 'Route #1",
        (THREE, "nonsense"): "standard input:1: unknown keyword",
        (PLAN, ""): "standard input:1: the file is empty",
    }
    for (instance, text), words in wrong.items():
        with pytest.raises(SolutionError) as caught:
            read(instance, text)
        assert str(caught.value).startswith(words)


def test_standard_input_that_is_no_instance(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(words: str) -> None:
        with pytest.raises(InstanceError, match=words) as caught:
            io.read("-")
        assert caught.value.file == "standard input"

    waiting(monkeypatch, "")
    refused("the file is empty")
    waiting(monkeypatch, "TYPE: TSP\nDIMENSION: x\n")
    refused("standard input:2: DIMENSION 'x'")
    waiting(monkeypatch, b"TYPE: TSP\n\0")
    refused("standard input:2: not a text file")
    monkeypatch.setattr(streams, "LARGEST_FILE", 10)
    waiting(monkeypatch, TSP)
    refused("larger than 10 bytes")
    monkeypatch.setattr(sys, "stdin", None)
    refused("there is none")
    closed = TextIOWrapper(BytesIO(b"x"))
    closed.close()
    monkeypatch.setattr(sys, "stdin", closed)
    refused("cannot be read: ")


def test_results_go_to_standard_output(
    capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    named = dataclasses.replace(THREE, name="Köln")
    print("before")
    io.write_instance("-", named)
    io.write_instance("-", PLAN)
    io.write_solution("-", THREE, Solution([[0, 2, 1]]))
    io.write_solution("-", PLAN, Solution([[2], [1]]), 14)
    expected = [
        "before\n",
        io.format_instance(named),
        io.format_instance(PLAN),
        io.format_tour(THREE, Solution([[0, 2, 1]])),
        io.format_sol(PLAN, Solution([[2], [1]]), 14),
    ]
    assert capfdbinary.readouterr().out == "".join(expected).encode()
    collected = StringIO()
    monkeypatch.setattr(sys, "stdout", collected)
    io.write_instance("-", named)
    assert collected.getvalue() == io.format_instance(named)


def test_standard_output_that_takes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SolutionError, match="standard output: 2 routes are not one tour"):
        io.write_solution("-", THREE, Solution([[0], [1, 2]]))
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        with pytest.raises(DrhgError, match="standard output: cannot be written: No space left"):
            io.write_instance("-", THREE)
        monkeypatch.setattr(sys, "stdout", None)
        with pytest.raises(DrhgError, match="standard output: cannot be written"):
            io.write_instance("-", THREE)
        with contextlib.suppress(OSError):
            full.close()


@pytest.mark.parametrize("suffix", [".gz", ".GZ"])
def test_compressed_files_give_back_what_was_written(tmp_path: Path, suffix: str) -> None:
    tour, plan = Solution([[0, 2, 1]]), Solution([[2], [1]])
    for name in (f"a.tsp{suffix}", f"a.json{suffix}"):
        io.write_instance(tmp_path / name, THREE)
        assert io.read(tmp_path / name) == THREE
        packed = (tmp_path / name).read_bytes()
        io.write_instance(tmp_path / name, THREE)
        assert (tmp_path / name).read_bytes() == packed  # no date inside
    assert gzip.decompress(packed) == io.to_json(THREE).encode()
    for name in (f"b.tour{suffix}", f"b.json{suffix}"):
        io.write_solution(tmp_path / name, THREE, tour)
        assert io.read_solution(tmp_path / name, THREE) == tour
    io.write_solution(tmp_path / f"c.sol{suffix}", PLAN, plan)
    assert io.read_solution(tmp_path / f"c.sol{suffix}", PLAN) == plan
    rows = lines_of({"name": "small", "tour": [0, 2, 1]}, {"name": "big", "tour": [1, 2, 0]})
    (tmp_path / f"d.jsonl{suffix}").write_bytes(gzip.compress(rows.encode()))
    assert io.read_solution(tmp_path / f"d.jsonl{suffix}", THREE) == tour
    with pytest.raises(InstanceError, match=r"must end in \.tsp or \.json"):
        io.write_instance(tmp_path / "a.gz", THREE)
    with pytest.raises(SolutionError, match=r"must end in \.tour or \.json"):
        io.write_solution(tmp_path / f"a.sol{suffix}", THREE, tour)


def test_a_bad_compressed_file_is_named(tmp_path: Path) -> None:
    path, good = tmp_path / "a.tsp.gz", gzip.compress(TSP.encode() * 20)
    bad = {
        b"": "the file is empty",
        TSP.encode(): "not a whole .gz file",
        good[:-9]: "not a whole .gz file",
        good[:30] + b"xxxx" + good[34:]: "not a whole .gz file",
        good[:-5] + bytes([good[-5] ^ 1]) + good[-4:]: "not a whole .gz file",
        good + b"x": "not a whole .gz file",
        gzip.compress(b"NAME: x\nTYPE: nothing\n"): "TYPE 'nothing'",
        gzip.compress(b"NAME: x\n\0"): "not a text file",
    }
    for data, words in bad.items():
        path.write_bytes(data)
        with pytest.raises(InstanceError) as caught:
            io.read(path)
        assert words in caught.value.reason
        assert caught.value.file == str(path)
    assert caught.value.line == 2


@pytest.mark.parametrize("through", ["file", "standard input"])
def test_a_decompression_bomb_is_not_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, through: str
) -> None:
    monkeypatch.setattr(streams, "LARGEST_FILE", 10**7)
    bomb = gzip.compress(b"COMMENT: " + b" " * 10**8)
    assert len(bomb) < 10**6
    (tmp_path / "a.tsp.gz").write_bytes(bomb)
    waiting(monkeypatch, bomb)
    tracemalloc.start()
    with pytest.raises(InstanceError, match="larger than 10000000 bytes when unpacked"):
        io.read(tmp_path / "a.tsp.gz" if through == "file" else "-")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5 * 10**6


def test_names_without_what_io_adds() -> None:
    assert [io.suffix(x) for x in ("a.TSP.gz", "x.d/a", Path("a.sol"), "-")] == [
        ".tsp",
        "",
        ".sol",
        "",
    ]
    assert [io.stem(x) for x in ("x/a.tsp.gz", "a.b.sol", Path("a.GZ"), "a")] == [
        "a",
        "a.b",
        "a",
        "a",
    ]


# --- numbering ------------------------------------------------------------------------------------


def test_messages_count_as_the_file_does() -> None:
    plan = Solution([[0, 1]])
    assert check(PLAN, plan) == [
        "the depot, node 0 (counted from 0), stands inside a route",
        "node 2 (counted from 0) is not visited",
    ]
    for path in ("a.tour", "a.tsp", Path("a.vrp"), "a.TOUR.gz"):
        assert [io.in_file_numbers(found, path) for found in check(PLAN, plan)] == [
            "the depot, node 1 of the file, stands inside a route",
            "node 3 of the file is not visited",
        ]
    for path in ("a.sol", "a.sol.gz"):
        assert [io.in_file_numbers(found, path) for found in check(PLAN, plan)] == [
            "the depot, node 0 as .sol files count (1 in a .vrp file), stands inside a route",
            "node 2 as .sol files count (3 in a .vrp file) is not visited",
        ]
    for path in ("a.json", "a.jsonl.gz", "-"):
        assert [io.in_file_numbers(found, path) for found in check(PLAN, plan)] == check(PLAN, plan)
    left = f"left out: {from_zero(9, 19, 99)}"
    assert io.in_file_numbers(left, "a.vrp") == "left out: nodes 10, 20 and 100 of the file"
    unknown = check(THREE, Solution([[0, 1, 2, -1]]))[0]
    assert io.in_file_numbers(unknown, "a.tour").startswith("route 1 names node 0 of the file, ")


# --- real and misread degrees ---------------------------------------------------------------------


def test_real_coordinates_of_the_globe(data_dir: Path) -> None:
    """All of TSPLIB's are read; the three nodes of ali535 beyond 59 minutes as they stand."""
    names = []
    for file in sorted((data_dir / "tsplib").glob("*.tsp")):
        instance = io.read(file)
        if instance.metric is Metric.GEO:
            names.append(file.stem)
            minutes = np.round(100 * np.abs(instance.xy - np.trunc(instance.xy)))
            beyond = {tuple(x) for x in instance.xy[(minutes >= 60).any(axis=1)].tolist()}
            assert beyond == (set(ALI535) if file.stem == "ali535" else set())
    assert len(names) == 10
    text = (data_dir / "tsplib/ali535.tsp").read_text()
    assert "13.11" in text
    with pytest.raises(InstanceError, match=r"node 501 of the file has the coordinate 40\.62"):
        io.parse(text.replace("13.11", "13.61"))


# --- wrong arguments ------------------------------------------------------------------------------

WRONG_CALLS: dict[str, tuple[Callable[[], object], type[DrhgError], str]] = {
    "read nothing": (lambda: io.read(None), InstanceError, "path must be the name of a file"),
    "read a number": (lambda: io.read(5), InstanceError, "path must be the name of a file, not 5"),
    "read a list": (lambda: io.read(["a.tsp"]), InstanceError, "path must be the name of a file"),
    "read bytes": (lambda: io.read(b"a.tsp"), InstanceError, "path must be the name of a file"),
    "read no name": (lambda: io.read(""), InstanceError, "path must be the name of a file, not ''"),
    "read an instance": (lambda: io.read(THREE), InstanceError, "path must be the name of a file"),
    "swapped": (
        lambda: io.read_solution(THREE, "a.tour"),
        SolutionError,
        "path must be the name of a file, not Instance(",
    ),
    "solution without instance": (
        lambda: io.read_solution("a.tour", None),
        InstanceError,
        "instance must be an Instance, as drhg.read",
    ),
    "instance by its file": (
        lambda: io.read_solution("a.tour", "a.tsp"),
        InstanceError,
        "instance must be an Instance, as drhg.read, drhg.tsp and drhg.cvrp return it, not 'a.tsp'",
    ),
    "instance_file": (
        lambda: io.read_solution("a.tour", THREE, instance_file=5),
        SolutionError,
        "instance_file must be the name of a file, not 5",
    ),
    "write nothing": (
        lambda: io.write_solution(None, THREE, Solution([[0, 1, 2]])),
        SolutionError,
        "path must be the name of a file, not None",
    ),
    "write a list": (
        lambda: io.write_solution("a.tour", THREE, [[0, 1, 2]]),
        SolutionError,
        "solution must be a Solution, such as drhg.Solution([[0, 2, 1]]), not [[0, 1, 2]]",
    ),
    "write of a name": (
        lambda: io.write_solution("a.tour", "a.tsp", Solution([[0, 1, 2]])),
        InstanceError,
        "instance must be an Instance",
    ),
    "write a solution as instance": (
        lambda: io.write_instance("a.tsp", Solution([[0]])),
        InstanceError,
        "instance must be an Instance",
    ),
    "write an instance nowhere": (
        lambda: io.write_instance(5, THREE),
        InstanceError,
        "path must be the name of a file, not 5",
    ),
    "write to an unknown node": (
        lambda: io.write_solution("a.tour", THREE, Solution([[0, 1, 9]])),
        SolutionError,
        "a.tour: route 1 names node 9 (counted from 0), which does not exist",
    ),
}


@pytest.mark.parametrize(("call", "kind", "words"), WRONG_CALLS.values(), ids=WRONG_CALLS)
def test_wrong_arguments_are_named(
    call: Callable[[], object], kind: type[DrhgError], words: str
) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value).startswith(words)


def test_names_travel_with_a_solution() -> None:
    instance = cvrp([[0, 0], [0, 1], [1, 0]], [0, 1, 1], 1, names=["home", "mill", "ford"])
    row = io.solution_row(instance, Solution([[2], [1]]))
    assert row["routes"] == [[2], [1]]
    assert row["names"] == [["ford"], ["mill"]]
    assert io.solution_from_json(json.dumps(row), instance) == Solution([[2], [1]])
    tour = tsp([[0, 0], [0, 1]], names=["here", "there"])
    assert io.solution_row(tour, Solution([[1, 0]]))["names"] == ["there", "here"]

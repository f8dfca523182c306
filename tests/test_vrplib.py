"""VRPLIB and Solomon's text: time windows, directed distances, open routes; ATSP files."""

from __future__ import annotations

import csv
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import reference as ref

import drhg
from drhg import InstanceError, Metric, check, cost, read, read_solution, tsp, vrp
from drhg.files import registry
from drhg.files.solomon import format_solomon, parse_solomon
from drhg.files.tsplib import format_instance, parse

DATA = Path(os.environ.get("DRHG_DATA", "no such folder"))
SQUARE = [[0, 0], [0, 3], [4, 3], [4, 0]]
DAY = [[0, 50], [1.5, 50], [0, 40], [0, 50]]

TIMED = """NAME: shops
TYPE: VRPTW
DIMENSION: 3
VEHICLES: 2
CAPACITY: 9
SERVICE_TIME: 5
EDGE_WEIGHT_TYPE: EUC_2D
NODE_COORD_SECTION
1 0 0
2 1 1
3 4 0
DEMAND_SECTION
1 0
2 3
3 4
TIME_WINDOW_SECTION
1 0 50
2 3 9
3 0 20
DEPOT_SECTION
1
-1
EOF
"""
SOLOMON = """C101

VEHICLE
NUMBER     CAPACITY
  25         200

CUSTOMER
CUST NO.  XCOORD.   YCOORD.    DEMAND   READY TIME  DUE DATE   SERVICE   TIME

    0      40         50          0          0       1236          0
    1      45         68         10        912        967         90
    2      45         70         30        825        870         80
"""


def test_windows_are_read_and_distances_cut_to_one_decimal() -> None:
    shops = parse(TIMED)
    assert shops.metric is Metric.TRUNC1
    assert shops.distance(0, 1) == 1.4
    assert shops.windows is not None
    assert shops.windows.tolist() == [[0, 50], [3, 9], [0, 20]]
    assert (shops.services.tolist(), shops.vehicles) == ([0, 5, 5], 2)
    assert replace(shops, metric=Metric.EXACT).distance(0, 1) == 2**0.5
    several = TIMED.replace("SERVICE_TIME: 5\n", "VEHICLES_MAX_DURATION: 33\n").replace(
        "DEPOT_", "SERVICE_TIME_SECTION\n1 0\n2 1\n3 2\nRELEASE_TIME_SECTION\n1 0\n2 2\n3 1\nDEPOT_"
    )
    assert parse(several).services.tolist() == [0, 1, 2]
    assert parse(several).release.tolist() == [0, 2, 1]  # type: ignore[union-attr]
    assert parse(several).max_duration == 33.0
    windows = TIMED[TIMED.index("TIME_") : TIMED.index("DEPOT_")]
    open_routes = TIMED.replace("VRPTW", "OVRP").replace(windows, "")
    assert not parse(open_routes).returns
    assert parse(open_routes).metric is Metric.EUC_2D


def test_solomon_is_read_from_its_text(tmp_path: Path) -> None:
    instance = parse_solomon(SOLOMON)
    assert (instance.name, instance.vehicles, instance.capacity) == ("C101", 25, 200)
    assert instance.distance(0, 1) == 18.6
    assert instance.services.tolist() == [0, 90, 80]
    assert instance.windows.tolist() == [[0, 1236], [912, 967], [825, 870]]  # type: ignore[union-attr]
    assert parse_solomon(format_solomon(instance)) == instance
    for name in ("C101.txt", "C101.TXT", "C101.vrp", "C101"):
        (tmp_path / name).write_text(SOLOMON.replace("\n", "\r\n"))
        assert read(tmp_path / name) == instance
    registry.write_instance(tmp_path / "again.txt", instance)
    assert read(tmp_path / "again.txt") == instance


WRITTEN = {
    "windows": lambda: vrp(xy=SQUARE, windows=DAY, metric="TRUNC1"),
    "exact": lambda: vrp(xy=SQUARE, windows=DAY, service_time=2),
    "times": lambda: vrp(
        xy=SQUARE, windows=DAY, metric="TRUNC1", release=[0, 1, 2, 0.5], max_duration=40,
        service_time=[0, 1, 2.5, 3],
    ),
    "directed": lambda: vrp(matrix=np.arange(16).reshape(4, 4) / 4, xy=SQUARE),
    "open": lambda: vrp(xy=SQUARE, metric="EUC_2D", returns=False),
    "atsp": lambda: tsp(matrix=np.arange(16).reshape(4, 4)),
}  # fmt: skip


@pytest.mark.parametrize("make", WRITTEN.values(), ids=WRITTEN)
def test_what_is_written_is_read_back(make, tmp_path: Path) -> None:
    instance = make()
    file = tmp_path / ("a.vrp" if instance.is_cvrp else "a.atsp")
    registry.write_instance(file, instance)
    assert read(file) == instance


UNWRITTEN = {
    "rounded": (lambda: vrp(xy=SQUARE, windows=DAY, metric="EUC_2D"), "EUC_2D means distances"),
    "no end": (
        lambda: vrp(xy=SQUARE, windows=[[0, np.inf], *DAY[1:]]),
        "no place for windows without an end",
    ),
    "open windows": (lambda: vrp(xy=SQUARE, windows=DAY, returns=False), "no type for open routes"),
    "durations": (
        lambda: vrp(xy=SQUARE, durations=np.ones((4, 4))),
        "does not know travel times of their own",
    ),
    "path": (lambda: tsp(SQUARE, start=0), "does not know paths"),
}


@pytest.mark.parametrize(("make", "words"), UNWRITTEN.values(), ids=UNWRITTEN)
def test_what_has_no_place_is_refused(make, words: str) -> None:
    with pytest.raises(drhg.DrhgError, match=words):
        format_instance(make())


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: vrp(xy=SQUARE, windows=DAY), "distances cut to one decimal"),
        (lambda: tsp(SQUARE), "routes with time windows"),
        (lambda: vrp(xy=SQUARE, windows=DAY, metric="TRUNC1", release=[0, 1, 1, 1]), "release"),
    ],
)
def test_solomon_has_a_place_for_little(make, words: str) -> None:
    with pytest.raises(drhg.DrhgError, match=words):
        format_solomon(make())


BAD = [
    (TIMED.replace("2 3 9\n", ""), "node 2 of 3 (DIMENSION) is missing in TIME_WINDOW", 18),
    (TIMED.replace("2 3 9", "2 9 3"), "node 2 of the file has a window that opens at 9", 18),
    (TIMED.replace("3 0 20", "3 0 3"), "node 3 of the file cannot be reached before 4", 19),
    (TIMED.replace("3 0 20", "3 46 50"), "the depot cannot be reached before 55", 19),
    (TIMED.replace("2 3 9", "2 3 x"), "'x' in TIME_WINDOW_SECTION is not a number", 18),
    (TIMED.replace("SERVICE_TIME: 5", "SERVICE_TIME: -5"), "service_time must be", 6),
    (TIMED.replace("TIME_WINDOW_SECTION\n1 0 50\n2 3 9\n3 0 20\n", ""), "SECTION is missing", 19),
    (
        TIMED.replace("DEPOT_", "SERVICE_TIME_SECTION\n1 0\n2 1\n3 2\nDEPOT_"),
        "SERVICE_TIME and SERVICE_TIME_SECTION: keep one",
        20,
    ),
    (TIMED.replace("VRPTW", "PDPTW"), "TYPE 'PDPTW' is not solved here", 2),
    (SOLOMON.replace("967 ", "9x7 "), "'9x7' is not a number", 11),
    (SOLOMON.replace("    2      45", "    7      45"), "node 7 where node 2 is due", 12),
    (SOLOMON.replace("         80", ""), "expected 7 numbers", 12),
    (SOLOMON.replace("       967", "       900"), "node 1 of the file has a window that", 11),
    (SOLOMON.replace("  25         200", ""), "expected the number of vehicles", 10),
]


@pytest.mark.parametrize(("text", "words", "line"), BAD, ids=range(len(BAD)))
def test_bad_files_are_refused_with_their_line(text: str, words: str, line: int) -> None:
    with pytest.raises(InstanceError) as caught:
        registry.instance_of_bytes(text.encode(), "a.vrp", ".vrp")
    assert words in str(caught.value)
    assert caught.value.line == line


@pytest.mark.skipif(not (DATA / "atsp").exists(), reason="needs DRHG_DATA/atsp")
def test_every_atsp_file_is_read_and_written_back() -> None:
    for file in sorted((DATA / "atsp").glob("*.atsp")):
        instance = read(file)
        assert instance.problem == "atsp"
        assert parse(format_instance(instance)) == instance


@pytest.mark.skipif(not (DATA / "vrptw").exists(), reason="needs DRHG_DATA/vrptw")
def test_best_known_plans_with_windows_keep_all_rules_at_their_cost() -> None:
    files = sorted((DATA / "vrptw").glob("*.vrp"))
    assert files
    for file in files:
        instance = read(file)
        plan = read_solution(file.with_suffix(".sol"), instance)
        stated = float(file.with_suffix(".sol").read_text().split()[-1])
        assert (check(instance, plan), cost(instance, plan)) == ([], stated), file.name
    assert parse(format_instance(instance)) == instance
    again = parse_solomon(format_solomon(replace(instance, comment="")))
    assert again == replace(instance, comment="")


@pytest.mark.slow
@pytest.mark.skipif(not (DATA / "atsp").exists(), reason="needs DRHG_DATA/atsp")
def test_atsp_optima_are_found() -> None:
    """Three kinds of them: from roads, from machines with many equal times, and a stiff one."""
    with (DATA / "atsp" / "solutions.csv").open() as stream:
        best = {row["name"]: int(row["best_known"]) for row in csv.DictReader(stream)}
    for name in ("ftv47", "p43", "rbg323"):
        instance = read(DATA / "atsp" / f"{name}.atsp")
        result = drhg.solve(instance, max_iters=6000, target=best[name], threads=1)
        assert result.cost == best[name]
        assert result.cost == ref.cost(instance, [result.solution.tour.tolist()])

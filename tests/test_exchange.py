"""Plans as CSV and GeoJSON: there and back, and as others read them."""

from __future__ import annotations

import csv
import dataclasses
import json
import re
from pathlib import Path

import numpy as np
import pytest
import reference as ref
from hypothesis import given, settings
from hypothesis import strategies as st
from soak import cases as length
from soak import upto

import drhg
import drhg.files
from drhg.errors import DrhgError, SolutionError
from drhg.files.cvrplib import format_sol, parse_sol
from drhg.files.geojson import (
    instance_from_geojson,
    instance_to_geojson,
    solution_from_geojson,
    solution_to_geojson,
)
from drhg.files.json import from_json, solution_from_json, solution_row, to_json
from drhg.files.routes import format_routes, parse_routes, route_rows, stop_table
from drhg.files.stops import format_stops, instance_of
from drhg.files.tables import parse_table
from drhg.problem import Metric

Case = tuple[drhg.Instance, drhg.Solution]
LETTERS = st.text(
    st.characters(codec="utf-8", exclude_categories=("C", "Zl", "Zp")), min_size=1, max_size=8
)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Any plan of any instance on the globe or in the plane, with names or without."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(2, 9))
    metric = draw(st.sampled_from(["HAVERSINE", "EXACT", "EUC_2D"]))
    xy = np.stack([rng.uniform(-90, 90, n), rng.uniform(-180, 180, n)], axis=1)
    names = None
    if draw(st.booleans()):
        words = draw(st.lists(LETTERS.map(str.strip).filter(bool), min_size=n, max_size=n))
        names = [f"{word} {i}" for i, word in enumerate(words)]
    order = rng.permutation(n)
    if draw(st.booleans()):
        tour = drhg.tsp(xy, metric=metric, names=names, name="a tour")
        return tour, drhg.Solution([order])
    home = int(rng.integers(n))
    demand = rng.integers(0, 20, n) / draw(st.sampled_from([1, 4, 10]))
    demand[home] = 0
    plan = drhg.cvrp(
        xy, demand, round(float(demand.sum()) + 1.5, 6), depot=home, metric=metric, names=names,
        vehicles=n, max_distance=1e9, service_time=2.5, name="a plan",
    )  # fmt: skip
    order = order[order != home]
    return plan, drhg.Solution(np.split(order, np.sort(rng.integers(0, len(order) + 1, 2))))


@settings(max_examples=upto(length(300, 2000)), deadline=None)
@given(cases())
def test_there_and_back(case: Case) -> None:
    instance, solution = case
    assert parse_routes(format_routes(instance, solution).encode(), instance) == solution
    assert from_json(to_json(instance)) == instance
    row = json.dumps(solution_row(instance, solution)).encode()
    assert solution_from_json(row, instance) == solution
    assert json.loads(row)["cost"] == drhg.cost(instance, solution)
    if instance.is_cvrp and instance.depot == 0:
        sol = format_sol(instance, solution, drhg.cost(instance, solution)).encode()
        assert parse_sol(sol, instance) == solution
    if instance.degrees:
        drawn = solution_to_geojson(instance, solution, drhg.cost(instance, solution))
        assert solution_from_geojson(json.dumps(drawn).encode(), instance) == solution
        assert drawn["cost"] == drhg.cost(instance, solution)
    if instance.metric is drhg.Metric.HAVERSINE:
        again = instance_from_geojson(instance_to_geojson(instance).encode())
        assert again == instance
        assert drhg.cost(again, solution) == drhg.cost(instance, solution)
    if instance.metric is not drhg.Metric.EUC_2D and instance.depot == 0:
        table = parse_table(format_stops(instance).encode())
        limits = {}
        if instance.is_cvrp and instance.demand.any():
            limits = {
                "capacity": instance.capacity / instance.demand_scale,
                "vehicles": instance.vehicles, "max_distance": instance.max_distance,
            }  # fmt: skip
        if limits or not instance.is_cvrp:
            assert instance_of(table, name=instance.name, **limits) == instance


def driven(solution: drhg.Solution) -> dict[int, list[int]]:
    assert solution.vehicles is not None
    routes = (route.tolist() for route in solution.routes)
    return dict(zip(solution.vehicles, routes, strict=True))


@settings(max_examples=upto(length(200, 2000)), deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.2, 0.5, 1.0]), st.booleans())
def test_locks_go_there_and_back(seed: int, share: float, columns: bool) -> None:
    """In JSON, GeoJSON and .sol all of them; in a table of stops those that have a column."""
    rng = np.random.default_rng(seed)
    plain, routes = ref.random_plan(
        rng, int(rng.integers(1, 10)), ref.SHAPES[seed % len(ref.SHAPES)], Metric.EXACT, fleet=True
    )
    globe = np.clip(plain.xy, -80, 80)
    names = [f"stop {i}" for i in range(plain.n)]
    plain = dataclasses.replace(plain, metric=Metric.HAVERSINE, xy=globe, names=names)
    instance, solution = ref.random_locks(rng, plain, routes, share)
    if columns:
        all_locks = instance.locks or drhg.Locks()
        kept = drhg.Locks(pinned=all_locks.pinned, together=all_locks.together[:1])
        instance = dataclasses.replace(instance, locks=kept or None, fixed_edges=())
    assert drhg.check(instance, solution) == []
    assert from_json(to_json(instance)) == instance
    assert instance_from_geojson(instance_to_geojson(instance).encode()) == instance
    cost = drhg.cost(instance, solution)
    drawn = json.dumps(solution_to_geojson(instance, solution, cost)).encode()
    row = json.dumps(solution_row(instance, solution)).encode()
    for again in (
        solution_from_geojson(drawn, instance), solution_from_json(row, instance),
        parse_routes(format_routes(instance, solution).encode(), instance),
    ):  # fmt: skip
        assert again == solution
        assert again.vehicles == solution.vehicles
    again = parse_sol(format_sol(instance, solution, cost).encode(), instance)
    if again.vehicles is None:  # the locks name none
        assert [r.tolist() for r in again.routes] == [r.tolist() for r in solution.routes]
    else:  # in the order of their vehicles
        assert driven(again) == driven(solution)
    if columns and instance.depot == 0 and instance.demand.any():
        limits = {"capacity": instance.capacity / instance.demand_scale,
                  "vehicles": instance.vehicles, "max_distance": instance.max_distance}  # fmt: skip
        table = parse_table(format_stops(instance).encode())
        assert instance_of(table, name=instance.name, **limits) == instance


@settings(max_examples=upto(200), deadline=None)
@given(cases())
def test_tables_add_up(case: Case) -> None:
    instance, solution = case
    rows = route_rows(instance, solution)
    assert sum(row.distance for row in rows) == pytest.approx(
        drhg.cost(dataclasses.replace(instance), solution), rel=1e-9, abs=1e-6
    )
    table = stop_table(instance, solution)
    assert len(table["route"]) == sum(len(route) for route in solution.routes)
    for row, route in zip(rows, solution.routes, strict=True):
        mine = [i for i, number in enumerate(table["route"]) if number == row.route]
        assert [table["position"][i] for i in mine] == list(range(1, len(route) + 1))
        last = instance.distance(int(route[-1]), instance.depot if instance.is_cvrp else route[0])
        assert table["distance"][mine[-1]] + last == pytest.approx(row.distance, abs=1e-5)
        if instance.is_cvrp:
            total = instance.demand[route].sum() / instance.demand_scale
            assert table["load"][mine[-1]] == row.load == pytest.approx(total)


def small_plan() -> Case:
    instance = drhg.cvrp(
        [[48.1, 11.5], [48.2, 11.6], [48.0, 11.4], [48.1, 11.9]], [0, 2, 2.5, 4], 5,
        metric="HAVERSINE", names=["Depot", "Mill", "Ford, the", 'a "b"'], name="four",
    )  # fmt: skip
    return instance, drhg.Solution([[2, 1], [3]])


def test_a_route_sheet_reads_well(tmp_path: Path) -> None:
    instance, solution = small_plan()
    path = tmp_path / "routes.csv"
    drhg.write_solution(path, instance, solution)
    rows = list(csv.DictReader(path.read_text().splitlines()))
    assert [row["name"] for row in rows] == ["Ford, the", "Mill", 'a "b"']
    assert [(row["route"], row["position"], row["load"]) for row in rows] == [
        ("1", "1", "2.5"), ("1", "2", "4.5"), ("2", "1", "4"),
    ]  # fmt: skip
    way = instance.distance(0, 2) + instance.distance(2, 1)
    assert float(rows[1]["distance"]) == pytest.approx(way, abs=1e-5)
    assert drhg.read_solution(path, instance) == solution
    shuffled = 'name;position;route\nMill;2;1\n"a ""b""";1;2\nFord, the;1;1\n'
    path.write_text(shuffled)
    assert drhg.read_solution(path, instance) == solution


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("route,name\n1,Mill\n", ":1: no column 'position'; needed: route, position, and name"),
        ("route,position,name\n1,1,Mil\n", ":2: column 'name': the instance has no stop 'Mil'"),
        ("route,position,name\n1,x,Mill\n", ":2: column 'position': 'x' is no whole number"),
        ("route,position,node\n1,1,4\n", ":2: node 4 is not one of 0 .. 3"),
        ("route,position,node\n1,1,1\n1,1,2\n", ":3: position 1 of route 1 is also on line 2"),
    ],
)
def test_bad_route_sheets_are_refused(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "routes.csv"
    path.write_text(text)
    with pytest.raises(SolutionError, match=re.escape(str(path) + words)):
        drhg.read_solution(path, small_plan()[0])


def test_routes_in_geojson() -> None:
    instance, solution = small_plan()
    found = solution_to_geojson(instance, solution, drhg.cost(instance, solution))
    lines = [one for one in found["features"] if one["geometry"]["type"] == "LineString"]
    assert [one["properties"]["stops"] for one in lines] == [2, 1]
    assert lines[0]["geometry"]["coordinates"] == [
        [11.5, 48.1], [11.4, 48.0], [11.6, 48.2], [11.5, 48.1]
    ]  # fmt: skip
    stops = [one["properties"] for one in found["features"] if one["geometry"]["type"] == "Point"]
    assert [one["name"] for one in stops] == ["Depot", "Ford, the", "Mill", 'a "b"']
    assert stops[2] == {
        "name": "Mill", "node": 1, "demand": 2.0, "kind": "stop", "route": 1, "position": 2,
        "load": 4.5, "distance": pytest.approx(instance.distance(0, 2) + instance.distance(2, 1)),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"name": "Mil"}, "point 1: the instance has no stop 'Mil'"),
        ({"position": 0}, "point 1: route and position must be whole numbers from 1"),
        ({"position": True}, "point 1: route and position must be whole numbers from 1"),
        ({"route": 1, "position": 2}, "point 2: position 2 of route 1 is taken"),
    ],
)
def test_bad_routes_in_geojson_are_refused(tmp_path: Path, change: dict, words: str) -> None:
    instance, _ = small_plan()
    rows = [{"name": "Mill", "route": 1, "position": 1} | change,
            {"name": "Ford, the", "route": 1, "position": 2}]  # fmt: skip
    path = tmp_path / "plan.geojson"
    points = [{"geometry": {"type": "Point", "coordinates": [1, 2]}, "properties": r} for r in rows]
    path.write_text(json.dumps({"type": "FeatureCollection", "features": points}))
    with pytest.raises(SolutionError, match=re.escape(f"{path}: {words}")):
        drhg.read_solution(path, instance)
    for text in ("[1]", '{"features": []}'):
        path.write_text(text)
        with pytest.raises(SolutionError, match=r"no list of features|no point has a route"):
            drhg.read_solution(path, instance)


def test_lines_are_cut_at_the_date_line() -> None:
    fiji = drhg.tsp([[-17, 179], [-18, -179]], metric="HAVERSINE")
    found = solution_to_geojson(fiji, drhg.Solution([[0, 1]]), 1)
    assert found["features"][0]["geometry"] == {
        "type": "MultiLineString",
        "coordinates": [
            [[179, -17], [180, -17.5]], [[-180, -17.5], [-179, -18], [-180, -17.5]],
            [[180, -17.5], [179, -17]],
        ],
    }  # fmt: skip


def test_times_and_open_ends_are_on_the_route_sheet() -> None:
    spots = [[48.0, 11.0], [48.1, 11.0], [48.1, 11.1]]
    far = drhg.tsp(spots, metric="HAVERSINE").distance([[0], [1], [2]], [0, 1, 2])
    instance = drhg.vrp(
        xy=spots, metric="HAVERSINE", durations=far / 10, returns=False,
        windows=[[25200, np.inf], [30600, np.inf], [0, np.inf]], service_time=60,
    )  # fmt: skip
    solution = drhg.Solution([[1, 2]])
    table = stop_table(instance, solution)
    there = round(30660 + far[1, 2] / 10)
    assert table["arrival"] == ["8:30:00", f"{there // 3600}:{there // 60 % 60:02}:{there % 60:02}"]
    row = route_rows(instance, solution)[0]
    assert row.distance == pytest.approx(far[0, 1] + far[1, 2])
    assert row.duration == pytest.approx(120 + far[0, 1] / 10 + far[1, 2] / 10)
    found = solution_to_geojson(instance, solution, drhg.cost(instance, solution))
    assert len(found["features"][0]["geometry"]["coordinates"]) == 3
    assert found["features"][-1]["properties"]["arrival"] == pytest.approx(there, abs=0.5)


def test_times_stay_in_a_table() -> None:
    instance = drhg.vrp(
        xy=[[0, 0], [3, 0], [0, 4]], demand=[0, 1, 2.5], capacity=3, depot=0, name="timed",
        windows=[[0, 100], [5.25, 9], [0, np.inf]], service_time=[0, 1, 2], release=[0, 0, 0.5],
        max_duration=50, returns=False,
    )  # fmt: skip
    table = parse_table(format_stops(instance).encode())
    limits = {"capacity": 3, "max_duration": 50, "returns": False}
    assert instance_of(table, name="timed", **limits) == instance


def test_rounded_distances_have_no_table(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    drhg.files.write_instance(path, drhg.cvrp([[0, 1], [2, 3]], [5, 0], 9, depot=1))
    assert path.read_text() == "x,y,demand\n2.0,3.0,0\n0.0,1.0,5\n"
    with pytest.raises(DrhgError, match="not distances of type EUC_2D"):
        drhg.files.write_instance(tmp_path / "b.csv", drhg.tsp([[0, 1]], metric="EUC_2D"))
    assert not (tmp_path / "b.csv").exists()


def test_the_plane_has_no_geojson(tmp_path: Path) -> None:
    flat = drhg.tsp([[0, 0], [0, 1]])
    with pytest.raises(DrhgError, match="latitude and longitude, which this instance does not"):
        drhg.write_solution(tmp_path / "a.geojson", flat, drhg.Solution([[0, 1]]))
    assert list(tmp_path.iterdir()) == []


def test_geojson_of_others_is_read(tmp_path: Path) -> None:
    points = [(11.5, 48.1), (11.6, 48.2)]
    features = [
        {"type": "Feature", "properties": None, "geometry": {"type": "Point", "coordinates": xy}}
        for xy in points
    ]
    path = tmp_path / "stops.geojson"
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    assert drhg.read(path) == drhg.tsp(
        [[48.1, 11.5], [48.2, 11.6]], metric="HAVERSINE", name="stops"
    )
    for text, words in (
        ('{"type": "Point"}', "no FeatureCollection"),
        ('{"type": "FeatureCollection", "features": []}', "no point"),
        ('{"type": "FeatureCollection", "features": 3}', "no list of features"),
        ('{"type": "FeatureCollection", "features": [], "drhg": 3}', "no list of features"),
        ('{"type":"FeatureCollection","features":[{"geometry":{"type":"Point"}}]}', "point 1: its"),
    ):
        path.write_text(text)
        with pytest.raises(DrhgError, match=words):
            drhg.read(path)

"""From a spreadsheet of stops to a route sheet and a map, as a new user would do it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import drhg

STOPS = Path(__file__).parents[1] / "examples" / "stops.csv"


def run(*words: object, at: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "drhg", *map(str, words)]
    return subprocess.run(command, cwd=at, capture_output=True, text=True, timeout=300)


def test_one_command_from_stops_to_routes_and_a_map(tmp_path: Path) -> None:
    done = run(
        "solve", STOPS, "--capacity", 120, "-n", 2000, "-o", "routes.csv", "--map", "map.html",
        "--routes", at=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Freiburg" in done.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["map.html", "routes.csv"]
    instance = drhg.read_table(STOPS, capacity=120)
    solution = drhg.read_solution(tmp_path / "routes.csv", instance)
    assert drhg.check(instance, solution) == []
    checked = run("check", STOPS, "routes.csv", "--capacity", 120, at=tmp_path)
    assert checked.stdout.startswith("stops: valid, cost ")
    drawn = run(
        "plot", STOPS, "routes.csv", "--capacity", 120, "--names", "-o", "a.png", at=tmp_path
    )
    assert drawn.stdout == "a.png\n", drawn.stderr
    less = run("check", STOPS, "routes.csv", "--capacity", 100, at=tmp_path)
    assert less.returncode == 3
    assert "capacity is 100" in less.stderr
    again = run(
        "solve", STOPS, "--capacity", 120, "-n", 10, "-i", "routes.csv", "-f", "json", at=tmp_path
    )
    row = json.loads(again.stdout)
    assert row["cost"] <= drhg.cost(instance, solution) * (1 + 1e-12)
    assert row["names"][0][0] in instance.names


BAD = {
    "no capacity": (["solve", STOPS], 3, "give capacity (--capacity)"),
    "depot": (["solve", STOPS, "--capacity", 120, "--depot", "Home"], 3, "no stop is called 'Home"),
    "columns": (["solve", STOPS, "--columns", "name"], 2, "'name' is not name=HEADING"),
    "heading": (["solve", STOPS, "--columns", "name=Kunde"], 3, "there is no column 'Kunde'"),
    "map": (["solve", STOPS, "--capacity", 120, "--map", "map.png"], 2, "is no map"),
    "other file": (["solve", "a.tsp", "--capacity", 9], 3, "--capacity: only for a table of stop"),
    "demand": (["solve", STOPS, "--capacity", 9], 3, "12 is more than the capacity 9"),
}  # fmt: skip


@pytest.mark.parametrize(("words", "code", "said"), BAD.values(), ids=BAD)
def test_mistakes_are_told(words: list[object], code: int, said: str, tmp_path: Path) -> None:
    done = run(*words, at=tmp_path)
    assert done.returncode == code
    assert said in " ".join(done.stderr.split())
    assert done.stderr.startswith("drhg: ")
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_written_is_refused_before_the_search(tmp_path: Path) -> None:
    (tmp_path / "plane.csv").write_text("x,y\n0,0\n1,1\n2,0\n")
    done = run("solve", "plane.csv", "-o", "tour.geojson", at=tmp_path)
    assert done.returncode == 3
    assert "tour.geojson: GeoJSON is for latitude and longitude" in done.stderr
    (tmp_path / "far.csv").write_text("0,1,2\n1,0,1\n2,1,0\n")
    (tmp_path / "bare.csv").write_text("name\na\nb\nc\n")
    done = run("solve", "bare.csv", "--matrix", "far.csv", "--map", "map.html", at=tmp_path)
    assert done.returncode == 3
    assert "map.html: bare has distances but no coordinates to draw" in done.stderr
    assert "iteration" not in done.stderr


def test_many_problems_have_a_line_each(tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_text("x,y,demand\n0,0,\n1,?,1\n2,2,many\n")
    lines = run("solve", path, "--capacity", 9, at=tmp_path).stderr.splitlines()
    assert lines == [
        f"drhg: {path}: 2 problems:",
        "  line 3, column 'y': '?' is no number",
        "  line 4, column 'demand': 'many' is no number",
    ]


def test_a_result_saves_itself(tmp_path: Path) -> None:
    instance = drhg.read_table(STOPS, capacity=120)
    result = drhg.solve(instance, max_iters=500, threads=1)
    for ending in ("csv", "geojson", "html", "json", "sol"):
        result.save(tmp_path / f"plan.{ending}")
    for ending in ("csv", "json", "sol"):
        assert drhg.read_solution(tmp_path / f"plan.{ending}", instance) == result.solution
    assert json.loads((tmp_path / "plan.geojson").read_text()) == result.to_geojson()
    table = result.routes_table()
    assert sum(row.stops for row in table) == 60
    assert sum(row.distance for row in table) == pytest.approx(result.cost)
    with pytest.raises(drhg.DrhgError, match="must end in"):
        result.save(tmp_path / "plan.xlsx")
    pytest.importorskip("pandas")
    frame = result.to_dataframe()
    assert list(frame.columns) == [
        "route", "position", "name", "lat", "lon", "demand", "load", "distance"
    ]  # fmt: skip
    assert len(frame) == 60

"""The formats of the field: what is written comes back, what is broken is named."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from drhg import cvrp, tsp
from drhg.construct.starts import construct
from drhg.errors import DrhgError
from drhg.files.research import Solved, read_many, write_many
from drhg.problem import Metric, Solution, cost
from drhg.problem.generate import uniform_cvrp, uniform_tsp

SQUARE = "0.0 0.0 0.0 1.0 1.0 1.0 1.0 0.0 output 1 2 3 4 1"
LEHD = (
    "depot,0.5,0.5,customer,0.0,0.0,0.0,1.0,1.0,1.0,capacity,8.0,demand,{demand}3.0,4.0,5.0,"
    "cost,3.0,node_flag,2,1,3,1,0,1"
)
KIT = "depots 0.5 0.5 points 0.0 0.0 0.0 1.0 1.0 1.0 demands 3 4 5 capacity 8.0 output 0 2 1 0 3 0"


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def some_tours(count: int, n: int) -> list[Solved]:
    rng = np.random.default_rng(1)
    return [Solved(uniform_tsp(n, seed=i), Solution([rng.permutation(n)])) for i in range(count)]


def some_plans(count: int, n: int) -> list[Solved]:
    instances = [uniform_cvrp(n, seed=i) for i in range(count)]
    return [Solved(one, construct(one, "savings", 0)[0]) for one in instances]


@pytest.mark.parametrize("end", ["", " ", "\n", " \r\n"])
def test_a_line_of_a_tour(tmp_path: Path, end: str) -> None:
    (found,) = read_many(written(tmp_path / "a.txt", SQUARE + end))
    assert found.solution is not None
    assert found.solution.tour.tolist() == [0, 1, 2, 3]
    assert cost(found.instance, found.solution) == 4.0


@pytest.mark.parametrize("text", [LEHD.format(demand=""), LEHD.format(demand="0.0,"), KIT])
def test_a_line_of_routes(tmp_path: Path, text: str) -> None:
    (found,) = read_many(written(tmp_path / "a.txt", text + "\n"))
    assert found.solution is not None
    assert [route.tolist() for route in found.solution.routes] == [[2, 1], [3]]
    assert found.instance.capacity == 8
    assert found.instance.demand is not None
    assert found.instance.demand.tolist() == [0, 3, 4, 5]


@pytest.mark.parametrize("format", ["lehd", "ml4co"])
@pytest.mark.parametrize("solved", [some_tours(3, 7), some_plans(3, 9)], ids=["tsp", "cvrp"])
def test_lines_come_back(tmp_path: Path, format: str, solved: list[Solved]) -> None:
    write_many(tmp_path / "a.txt", solved, format)
    again = read_many(tmp_path / "a.txt")
    assert len(again) == len(solved)
    for one, two in zip(solved, again, strict=True):
        assert one.solution is not None
        assert two.solution is not None
        assert np.array_equal(one.instance.xy, two.instance.xy)  # type: ignore[arg-type]
        assert [r.tolist() for r in one.solution.routes] == [
            r.tolist() for r in two.solution.routes
        ]
        assert cost(one.instance, one.solution) == cost(two.instance, two.solution)
        assert one.instance.capacity == two.instance.capacity


@pytest.mark.parametrize("solved", [some_tours(3, 7), some_plans(3, 9)], ids=["tsp", "cvrp"])
def test_arrays_come_back(tmp_path: Path, solved: list[Solved]) -> None:
    write_many(tmp_path / "a.npz", solved, "rl4co")
    for one, two in zip(solved, read_many(tmp_path / "a.npz"), strict=True):
        assert two.solution is None
        np.testing.assert_allclose(one.instance.xy, two.instance.xy, rtol=1e-6)  # type: ignore[arg-type]
        assert np.array_equal(one.instance.demand, two.instance.demand)  # type: ignore[arg-type]


def test_demands_as_shares_of_the_capacity(tmp_path: Path) -> None:
    arrays = {
        "depot": np.zeros((1, 2), np.float32),
        "locs": np.ones((1, 3, 2), np.float32),
        "demand": np.array([[0.1, 0.3, 0.06]], np.float32),
        "capacity": np.array([50], np.float32),
    }
    np.savez(tmp_path / "a.npz", **arrays)
    ((instance, _),) = read_many(tmp_path / "a.npz")
    assert instance.demand is not None
    assert instance.demand.tolist() == [0, 5, 15, 3]
    arrays["demand"][0, 0] = 0.013
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(DrhgError, match="instance 0: demands are neither"):
        read_many(tmp_path / "a.npz")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("hello", ":1: lines of tours begin"),
        (f"{SQUARE}\n0 0 1 1 1 0\n", ":2: there is no `output`"),
        (f"{SQUARE}\n\n0 0 1 x 1 0 output 1 2 3 1", ":3: column 7: 'x' is no number"),
        ("0 0 1 1_0 1 0 output 1 2 3 1", ":1: column 7: '1_0' is no number"),
        ("0 0 1 1 nan 0 output 1 2 3 1", ":1: column 9: 'nan' is no number"),
        ("0 0 1 1e999 1 0 output 1 2 3 1", "too large"),
        ("0 0 1 1 1 output 1 2 3 1", ":1: column 1: pairs of x and y"),
        ("0 0 1 1 1 0 output 1 2 3", ":1: column 13: a closed tour of 3 nodes"),
        ("0 0 1 1 1 0 output 1 2 4 1", ":1: column 19: 4 is none of the nodes 1 to 3"),
        ("0 0 1 1 1 0 output 1 2 2 1", ":1: column 19: node 2 is visited 2 times"),
        (LEHD.format(demand="1.0,"), "a demand for each of 3 customers"),
        (LEHD.format(demand="").replace("1,0,1", "0,0,1"), "reached from the depot"),
        (LEHD.format(demand="").replace("2,1,3,1,0,1", "2,1,3,1,0"), "here are 5 numbers"),
        (LEHD.format(demand="").replace("capacity,8", "capacity,6"), ":1: .*capacity"),
        (LEHD.format(demand="").replace("cost", "price"), ":1: column 68: there is no cost"),
        (KIT.replace("0 2 1 0", "0 2 1"), "capacity"),
        (KIT.replace("3 0", "3"), "begin and end at the depot"),
        (KIT.replace("capacity 8.0", "capacity 8.0 9"), "one number expected"),
    ],
)
def test_broken_lines_are_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DrhgError, match=message) as error:
        read_many(written(tmp_path / "broken.txt", text))
    assert "broken.txt" in str(error.value)


def test_arrays_of_objects_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", locs=np.array([{}], object))
    with pytest.raises(DrhgError, match="plain arrays"):
        read_many(tmp_path / "a.npz")
    (tmp_path / "a.npz").write_bytes(b"PK\x03\x04 cut short")
    with pytest.raises(DrhgError, match="plain arrays"):
        read_many(tmp_path / "a.npz")


def test_what_a_format_cannot_say_is_refused(tmp_path: Path) -> None:
    rounded = tsp([[0, 0], [0, 3], [4, 0]], metric=Metric.EUC_2D)
    three = Solution([np.arange(3)])
    few = cvrp([[0, 0], [0, 3], [4, 0]], [0, 1, 1], 2, vehicles=1)
    cases = [
        ([Solved(rounded, three)], "lehd", "EUC_2D"),
        ([Solved(few, None)], "lehd", "vehicles"),
        ([Solved(tsp([[0, 0], [0, 3], [4, 0]]), None)], "lehd", "needs a solution"),
        ([*some_tours(1, 5), *some_plans(1, 5)], "rl4co", "cannot be in one file"),
        ([*some_tours(1, 5), *some_tours(1, 6)], "rl4co", "same size"),
        ([], "lehd", "nothing"),
        (some_tours(1, 5), "x", "unknown format"),
    ]
    for solved, format, message in cases:
        with pytest.raises(DrhgError, match=message):
            write_many(tmp_path / "a.txt", solved, format)
    assert not (tmp_path / "a.txt").exists()


def test_ten_thousand_lines_take_seconds(tmp_path: Path) -> None:
    line = " ".join(map(repr, np.random.default_rng(0).random(200).tolist()))
    line += " output " + " ".join(map(str, [*range(1, 101), 1])) + "\n"
    path = written(tmp_path / "many.txt", line * 2000)
    began = time.process_time()
    assert len(read_many(path)) == 2000
    assert time.process_time() - began < 4.0

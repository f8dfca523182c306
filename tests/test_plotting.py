"""Pictures: what is drawn where, not how it looks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import drhg
from drhg.plotting import plot_convergence, plot_solution, save_solution


@dataclass(frozen=True)
class Point:
    seconds: float
    iterations: int
    cost: float


@pytest.fixture
def ax() -> Axes:
    return Figure().add_subplot()


def segments(ax: Axes) -> list[list[list[float]]]:
    """All lines drawn as collections, as lists of points."""
    found = []
    for collection in ax.collections:
        if hasattr(collection, "get_segments"):
            found += [np.asarray(s).tolist() for s in collection.get_segments()]
    return found


def test_a_tour_is_closed(ax: Axes) -> None:
    square = drhg.tsp([[0, 0], [0, 1], [1, 1], [1, 0]])
    plot_solution(ax, square, drhg.Solution([[0, 1, 2, 3]]))
    assert segments(ax) == [[[0, 0], [0, 1], [1, 1], [1, 0], [0, 0]]]
    assert ax.get_aspect() == 1.0


def test_routes_have_two_depot_legs_each(ax: Axes) -> None:
    cross = drhg.cvrp([[0, 0], [0, 1], [1, 0], [0, -1]], [0, 1, 1, 1], capacity=2)
    plot_solution(ax, cross, drhg.Solution([[3], [1, 2]]))
    drawn = segments(ax)
    assert len(drawn) == 2 * 2 + 2
    assert all(leg[0] == [0, 0] for leg in drawn[:4])
    assert [[0, 1], [1, 0]] in drawn


def test_an_instance_alone_shows_its_nodes(ax: Axes) -> None:
    plot_solution(ax, drhg.uniform_tsp(50, seed=1))
    assert segments(ax) == []
    assert len(ax.collections[0].get_offsets()) == 50


def test_the_globe_has_north_up(ax: Axes) -> None:
    cities = drhg.tsp([[52.30, 13.25], [48.08, 11.35], [60.0, 25.0]], metric="GEO")
    plot_solution(ax, cities)
    x, y = np.asarray(ax.collections[0].get_offsets())[0]
    assert (x, y) == pytest.approx((13 + 25 / 60, 52.5), abs=1e-4)


def test_a_bare_matrix_cannot_be_drawn(ax: Axes) -> None:
    with pytest.raises(drhg.DrhgError, match="no coordinates"):
        plot_solution(ax, drhg.tsp(matrix=[[0, 1], [1, 0]]))


def test_convergence_is_a_staircase_to_a_common_end(ax: Axes) -> None:
    runs = {"a": [Point(0, 0, 9), Point(2, 5, 7)], "b": [Point(1, 1, 8)], "empty": []}
    plot_convergence(ax, runs)
    stairs = [line for line in ax.lines if line.get_drawstyle() == "steps-post"]
    assert [list(line.get_xdata()) for line in stairs] == [[0, 2, 2], [1, 2]]
    assert [list(line.get_ydata()) for line in stairs] == [[9, 7, 7], [8, 8]]
    assert sorted(text.get_text() for text in ax.texts) == ["a", "b"]


@pytest.mark.parametrize(
    ("suffix", "magic"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<")]
)
def test_save(tmp_path: Path, suffix: str, magic: bytes) -> None:
    path = tmp_path / f"picture.{suffix}"
    save_solution(path, drhg.uniform_tsp(20, seed=1), drhg.Solution([range(20)]))
    assert path.read_bytes().startswith(magic)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("points", [[[0, 0]], [[1, 1], [1, 1]], [[0, 0], [1e6, 0]]])
def test_degenerate_maps(tmp_path: Path, points: list[list[float]]) -> None:
    save_solution(tmp_path / "a.png", drhg.tsp(points), drhg.Solution([range(len(points))]))


def test_an_unknown_ending_is_refused(tmp_path: Path) -> None:
    with pytest.raises(drhg.DrhgError, match=r"\.png"):
        save_solution(tmp_path / "picture.bmp", drhg.uniform_tsp(5))

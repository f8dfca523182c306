"""Pictures: what is drawn where, not how it looks."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from PIL import Image

import drhg
from drhg.plotting.animation import FRAMES, save_animation, watch
from drhg.plotting.drawing import GONE, LEG, NEW, TOUR
from drhg.plotting.gantt import plot_gantt, save_gantt
from drhg.plotting.solutions import plot_convergence, plot_solution, save_solution
from drhg.plotting.step import (
    Step,
    film_strip,
    plot_destroyed,
    plot_hypergraph,
    plot_restored,
    take_step,
)


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


def test_paths_and_open_routes_are_not_closed(ax: Axes) -> None:
    path = drhg.tsp([[0, 0], [0, 1], [1, 1], [1, 0]], returns=False)
    plot_solution(ax, path, drhg.Solution([[0, 1, 2, 3]]))
    assert segments(ax) == [[[0, 0], [0, 1], [1, 1], [1, 0]]]
    routes = Figure().add_subplot()
    shops = drhg.vrp(xy=[[0, 0], [0, 1], [1, 1]], returns=False)
    plot_solution(routes, shops, drhg.Solution([[1, 2]]))
    assert sorted(segments(routes)) == [[[0, 0], [0, 1]], [[0, 1], [1, 1]]]


def test_a_gantt_chart_shows_when_things_happen(ax: Axes, tmp_path: Path) -> None:
    shops = drhg.vrp(
        xy=[[0, 0], [0, 3], [4, 0]],
        windows=[[0, 50], [20, 30], [0, 9]],
        service_time=[0, 2, 5],
    )
    plan = drhg.Solution([[2, 1]])
    plot_gantt(ax, shops, plan)
    bars = [
        (round(float(path.vertices[:, 0].min()), 6), round(float(path.vertices[:, 0].max()), 6))
        for collection in ax.collections
        if not hasattr(collection, "get_segments")
        for path in collection.get_paths()
    ]
    one = drhg.schedule(shops, plan)[0]
    assert one.begin.tolist() == [5.0, 9.0, 20.0, 25.0]
    assert bars == [(19.0, 20.0), (9.0, 14.0), (20.0, 22.0)]  # waiting, then both services
    drives = [line for line in segments(ax) if line[0][1] == 0]
    assert drives == [[[5, 0], [9, 0]], [[14, 0], [19, 0]], [[22, 0], [25, 0]]]
    red = Figure().add_subplot()
    plot_gantt(red, shops, drhg.Solution([[1, 2]]))
    colors = {to_hex(color) for c in red.collections for color in c.get_facecolor()}
    assert GONE in colors
    save_gantt(tmp_path / "day.png", shops, plan)
    assert Image.open(tmp_path / "day.png").size[0] > 1000
    with pytest.raises(drhg.DrhgError, match="no routes from a depot"):
        plot_gantt(ax, drhg.tsp([[0, 0], [1, 1]]), drhg.Solution([[0, 1]]))


def test_films_refuse_what_they_do_not_know(tmp_path: Path) -> None:
    path = drhg.tsp([[0, 0], [0, 1], [1, 1], [1, 0]], returns=False)
    with pytest.raises(drhg.DrhgError, match="a film of one step does not know paths"):
        film_strip(tmp_path / "film.png", path)
    with pytest.raises(drhg.DrhgError, match="a film of a search does not know paths"):
        watch(path)


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


# --- a step of destroy and repair -----------------------------------------------------------------


def edges(instance: drhg.Instance, solution: drhg.Solution) -> list[tuple[int, int]]:
    found = []
    for route in solution.routes:
        stops = [instance.depot, *route.tolist()] if instance.is_cvrp else route.tolist()
        found += [tuple(sorted(e)) for e in zip(stops, stops[1:] + stops[:1], strict=True)]
    return sorted(found)


def drawn(ax: Axes, instance: drhg.Instance, color: str) -> list[tuple[int, int]]:
    """The edges drawn in one colour, as pairs of nodes."""
    assert instance.xy is not None
    node = {tuple(point): i for i, point in enumerate(instance.xy.tolist())}
    found = []
    for collection in ax.collections:
        if hasattr(collection, "get_segments") and to_hex(collection.get_color()[0]) == color:
            found += [tuple(sorted(node[tuple(p)] for p in s)) for s in collection.get_segments()]
    return sorted(found)


@pytest.fixture(params=[drhg.uniform_tsp(60, seed=3), drhg.uniform_cvrp(50, seed=3)], ids=str)
def step(request: pytest.FixtureRequest) -> Step:
    return take_step(request.param, seed=1, k=12)


def test_a_step_is_one_of_the_search(step: Step) -> None:
    before, after = edges(step.instance, step.before), edges(step.instance, step.after)
    assert drhg.check(step.instance, step.after) == []
    assert drhg.cost(step.instance, step.after) < drhg.cost(step.instance, step.before)
    cut = sorted(tuple(sorted(edge)) for edge in step.cut)
    assert set(before) - set(after) <= set(cut)
    assert len(step.destroyed) == 12
    nodes = set(step.graphs.node[0].tolist())
    assert set(step.destroyed.tolist()) <= nodes
    ends = {i for piece in step.pieces for i in (piece[0], piece[-1])}
    assert ends <= nodes | {step.instance.depot}
    for piece in step.pieces:
        pairs = zip(piece.tolist(), piece[1:].tolist(), strict=False)
        assert {tuple(sorted(pair)) for pair in pairs} <= set(before)


def test_what_is_cut_and_what_is_kept(ax: Axes, step: Step) -> None:
    plot_destroyed(ax, step)
    cut = sorted(tuple(sorted(edge)) for edge in step.cut)
    assert drawn(ax, step.instance, GONE) == cut
    kept = drawn(ax, step.instance, TOUR) + drawn(ax, step.instance, LEG)
    assert set(kept) == set(edges(step.instance, step.before)) - set(cut)


def test_the_repair_closes_what_was_cut(ax: Axes, step: Step) -> None:
    """Intact pieces and the edges of the repair are, together, the new solution's touched part."""
    plot_hypergraph(ax, step, repaired=True)
    new = drawn(ax, step.instance, NEW)
    assert set(new) <= set(edges(step.instance, step.after))
    fresh = set(edges(step.instance, step.after)) - set(edges(step.instance, step.before))
    assert fresh <= set(new)
    assert len(ax.patches) == len(step.pieces)
    bare = Figure().add_subplot()
    plot_hypergraph(bare, step)
    assert drawn(bare, step.instance, NEW) == []


def test_what_changed(ax: Axes, step: Step) -> None:
    before, after = edges(step.instance, step.before), edges(step.instance, step.after)
    plot_restored(ax, step)
    assert set(drawn(ax, step.instance, NEW)) == set(after) - set(before)
    assert set(drawn(ax, step.instance, GONE)) == set(before) - set(after)


@pytest.mark.parametrize("n", [3, 4, 8])
def test_films_of_tiny_instances(tmp_path: Path, n: int) -> None:
    film_strip(tmp_path / "a.png", drhg.uniform_tsp(n, seed=1))
    film_strip(tmp_path / "b.png", drhg.uniform_cvrp(n, seed=1))
    film_strip(tmp_path / "c.png", drhg.tsp([[1, 1]] * n), drhg.Solution([range(n)]))


def test_a_film_is_the_same_every_time(tmp_path: Path) -> None:
    for name in ("a", "b"):
        film_strip(tmp_path / f"{name}.png", drhg.uniform_tsp(40, seed=1), seed=2)
    a, b = (Path(tmp_path / f"{name}.png").read_bytes() for name in "ab")
    assert a == b


def test_a_run_as_a_film(tmp_path: Path) -> None:
    instance = drhg.uniform_tsp(40, seed=1)
    frames = watch(instance, seconds=0.3, seed=1)
    costs = [point.cost for point, _ in frames]
    assert costs == sorted(set(costs), reverse=True)
    assert costs == [drhg.cost(instance, solution) for _, solution in frames]
    save_animation(tmp_path / "run.gif", instance, frames * 40)  # more than there is room for
    with Image.open(tmp_path / "run.gif") as picture:
        assert 1 < picture.n_frames <= FRAMES
    with pytest.raises(drhg.DrhgError, match=r"\.gif"):
        save_animation(tmp_path / "run.png", instance, frames)
    with pytest.raises(drhg.DrhgError, match="at least one"):
        save_animation(tmp_path / "run.gif", instance, [])


def test_watching_ends_when_asked() -> None:
    asked = iter([False, True])
    frames = watch(drhg.uniform_cvrp(20, seed=1), seconds=60, should_stop=lambda: next(asked))
    assert 1 <= len(frames) <= 3


def test_names_cover_no_other_name(tmp_path: Path) -> None:
    from matplotlib.figure import Figure

    from drhg.plotting.drawing import draw_names, map_points

    points = [[0, 0], *[[0.001 * i, 0] for i in range(1, 7)], [5, 5], [9, 1]]
    names = ["first", *(f"near {i}" for i in range(1, 7)), "middle", "right"]
    instance = drhg.tsp(points, names=names)
    figure = Figure(figsize=(6, 4))
    ax = figure.add_subplot()
    plot_solution(ax, instance)
    draw_names(ax, instance, map_points(instance))
    shown = [text.get_text() for text in ax.texts]
    assert shown[:2] == ["first", "near 1"]
    assert shown[-2:] == ["middle", "right"]
    assert len(shown) < len(names)  # for the others there was no room
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in ax.texts]
    assert not any(a.overlaps(b) for a, b in itertools.combinations(boxes, 2))
    path = tmp_path / "a.png"
    save_solution(path, instance, drhg.Solution([range(9)]), names=True)
    assert path.stat().st_size > 5000


def test_training_curves_have_a_power_law(tmp_path: Path) -> None:
    from drhg.plotting.solutions import plot_training, power_law, save_training

    sizes = [1e5 * 2**i for i in range(6)]
    factor, exponent = power_law([(x, 7.0 * x**-0.4) for x in sizes]) or (0.0, 0.0)
    assert factor == pytest.approx(7.0)
    assert exponent == pytest.approx(-0.4)
    assert power_law([(1.0, 1.0)] * 9) is None
    rows = [
        {"decisions": x, "rate": 1.0, "loss": 0.5, "loss_held": 0.6, "gap_30": 90 * x**-0.3}
        for x in sizes
    ]
    from matplotlib.figure import Figure

    ax = Figure().add_subplot()
    plot_training(ax, {"run": rows})
    assert ax.get_legend_handles_labels()[1] == ["run: 30 nodes, falls by decisions^-0.30"]
    ax = Figure().add_subplot()
    plot_training(ax, {"run": rows}, "loss")
    assert len(ax.get_legend_handles_labels()[1]) == 2
    save_training(tmp_path / "curve.png", {"run": rows, "other": rows[:2]})
    assert (tmp_path / "curve.png").stat().st_size > 1000

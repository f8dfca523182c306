"""Generators: frozen first values, ranges, determinism."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drhg import files as io
from drhg.errors import InstanceError
from drhg.problem import Instance, Metric
from drhg.problem import generate as g
from drhg.problem.generate_towns import towns_cvrp

FROZEN_CVRP = {  # customers: the first customer of the first instance, its first demands
    100: ([0.5542693865183056, 0.1809782379192011], [0, 1, 3, 1, 4, 4]),
    200: ([0.18326634939267783, 0.7974113080911386], [0, 4, 5, 5, 4, 3]),
    500: ([0.18326634939267783, 0.7974113080911386], [0, 3, 6, 1, 3, 2]),
    1000: ([0.18326634939267783, 0.7974113080911386], [0, 5, 7, 8, 9, 6]),
}


def same(a: Instance, b: Instance) -> bool:
    assert a.xy is not None
    assert b.xy is not None
    demands = (a.demand is None and b.demand is None) or np.array_equal(
        np.asarray(a.demand), np.asarray(b.demand)
    )
    return np.array_equal(a.xy, b.xy) and a.capacity == b.capacity and bool(demands)


@pytest.mark.parametrize(
    "make", [g.uniform_tsp, g.clustered_tsp, g.uniform_cvrp, g.x_cvrp, towns_cvrp]
)
@pytest.mark.parametrize("n", [1, 2, 3, 7, 150])
def test_seed_decides_everything(make, n):  # type: ignore[no-untyped-def]
    one, again, other = make(n, 5), make(n, 5), make(n, 6)
    assert same(one, again)
    assert not same(one, other)
    assert one.n == n + one.is_cvrp


def test_global_generator_is_left_alone() -> None:
    np.random.seed(0)  # noqa: NPY002
    before = np.random.random()  # noqa: NPY002
    np.random.seed(0)  # noqa: NPY002
    g.uniform_tsp(5, 1), g.paper_cvrp(200, 1), g.x_cvrp(20, 1)
    assert np.random.random() == before  # noqa: NPY002


def test_unit_square_and_metric() -> None:
    for instance in (g.uniform_tsp(500, 1), g.clustered_tsp(500, 1), g.uniform_cvrp(500, 1)):
        assert instance.metric is Metric.EXACT
        assert instance.xy is not None
        assert instance.xy.min() >= 0.0
        assert instance.xy.max() <= 1.0
    demand = g.uniform_cvrp(500, 1).demand
    assert demand is not None
    assert demand[0] == 0
    assert set(demand[1:].tolist()) == set(range(1, 10))


def test_clusters_are_clusters() -> None:
    def mean_nearest(instance: Instance) -> float:
        xy = instance.xy
        assert xy is not None
        apart = np.hypot(*(xy[:, None] - xy[None]).transpose(2, 0, 1))
        np.fill_diagonal(apart, np.inf)
        return float(apart.min(axis=1).mean())

    assert mean_nearest(g.clustered_tsp(1000, 1, 5)) < 0.6 * mean_nearest(g.uniform_tsp(1000, 1))


def test_capacities_of_the_paper() -> None:
    assert [g.uniform_cvrp(n).capacity for n in (100, 200, 500, 1000)] == [50, 80, 100, 250]
    assert g.uniform_cvrp(10, capacity=12).capacity == 12


@pytest.mark.parametrize("n", [100, 200, 500, 1000])
def test_paper_cvrp_follows_the_legacy_stream(n: int) -> None:
    first, second = g.paper_cvrp(n, 2)
    assert first.xy is not None
    assert second.xy is not None
    assert first.demand is not None
    # the stream opens with the depots of all instances
    np.testing.assert_array_equal(first.xy[0], [0.1915194503788923, 0.6221087710398319])
    np.testing.assert_array_equal(second.xy[0], [0.4377277390071145, 0.7853585837137692])
    customer, demand = FROZEN_CVRP[n]
    np.testing.assert_array_equal(first.xy[1], customer)
    assert first.demand[:6].tolist() == demand
    assert first.n == n + 1
    assert first.capacity == {100: 50, 200: 80, 500: 100, 1000: 250}[n]


def test_paper_tsp5000_follows_the_legacy_stream() -> None:
    (first,) = g.paper_tsp5000(1)
    assert first.xy is not None
    assert first.xy.shape == (5000, 2)
    np.testing.assert_array_equal(
        first.xy[:2],
        [[0.6964691855978616, 0.28613933495037946], [0.2268514535642031, 0.5513147690828912]],
    )


def test_paper_sets_are_prefixes() -> None:
    assert same(g.paper_tsp(50, 3)[1], g.paper_tsp(50, 7)[1])
    assert same(g.paper_cvrp(200, 3)[2], g.paper_cvrp(200)[2])
    assert len(g.paper_cvrp(200)) == 128
    assert g.paper_tsp5000(0) == []


@pytest.mark.parametrize(
    "call",
    [
        lambda: g.paper_cvrp(150),
        lambda: g.paper_cvrp(200, 129),
        lambda: g.paper_tsp5000(129),
        lambda: g.uniform_tsp(0),
        lambda: g.clustered_tsp(5, 1, 0),
        lambda: g.x_cvrp(10, depot="middle"),
        lambda: g.x_cvrp(10, customers="grid"),
        lambda: g.x_cvrp(10, demand="2-3"),
        lambda: g.x_cvrp(10, route_size=0.5),
        lambda: g.x_cvrp(g.LARGEST_X + 1),
    ],
)
def test_nonsense_is_refused(call) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InstanceError):
        call()


def test_unknown_option_names_the_known_ones() -> None:
    with pytest.raises(InstanceError, match="many-small"):
        g.x_cvrp(10, demand="huge")


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(1, 300),
    seed=st.integers(0, 2**32),
    depot=st.sampled_from((None, *g.DEPOTS)),
    customers=st.sampled_from((None, *g.CUSTOMERS)),
    demand=st.sampled_from((None, *g.DEMANDS)),
)
def test_x_instances_keep_the_rules(
    n: int, seed: int, depot: str | None, customers: str | None, demand: str | None
) -> None:
    instance = g.x_cvrp(n, seed, depot=depot, customers=customers, demand=demand)
    assert instance.n == n + 1
    assert instance.metric is Metric.EUC_2D
    xy, amounts, capacity = instance.xy, instance.demand, instance.capacity
    assert xy is not None
    assert amounts is not None
    assert capacity is not None
    assert len({tuple(p) for p in xy.tolist()}) == n + 1  # nobody on top of another
    assert (xy == np.floor(xy)).all()
    assert xy.min() >= 0
    assert xy.max() <= g.GRID
    if depot in ("centre", "corner"):
        assert xy[0].tolist() == ([500.0, 500.0] if depot == "centre" else [0.0, 0.0])
    total, largest = int(amounts.sum()), int(amounts.max())
    assert capacity >= max(largest, int(3 * total / n))
    assert capacity <= max(largest, int(np.ceil(25 * total / n)))
    low, high = {
        None: (1, 100),
        "unit": (1, 1),
        "1-10": (1, 10),
        "5-10": (5, 10),
        "1-100": (1, 100),
        "50-100": (50, 100),
        "quadrant": (1, 100),
        "many-small": (1, 100),
    }[demand]
    assert low <= amounts[1:].min()
    assert largest <= high
    if demand == "quadrant":
        small = (xy[1:, 0] < 500) == (xy[1:, 1] < 500)
        assert amounts[1:][small].max(initial=1) <= 50
        assert amounts[1:][~small].min(initial=100) >= 51
    if demand == "many-small":
        assert not ((amounts[1:] > 10) & (amounts[1:] < 50)).any()


def test_x_route_size_sets_the_capacity() -> None:
    instance = g.x_cvrp(200, 3, demand="unit", route_size=9.3)
    assert instance.capacity == 10  # ceil(9.3 * 200 / 200)


def test_x_draws_every_option() -> None:
    made = [g.x_cvrp(30, seed) for seed in range(60)]
    depots = {tuple(i.xy[0].tolist()) for i in made if i.xy is not None}
    assert {(0.0, 0.0), (500.0, 500.0)} < depots
    assert len({i.capacity for i in made}) > 20


def test_x_layouts_order_by_clustering() -> None:
    def spread(layout: str) -> float:
        values = []
        for seed in range(5):
            xy = g.x_cvrp(400, seed, customers=layout).xy
            assert xy is not None
            apart = np.hypot(*(xy[1:, None] - xy[None, 1:]).transpose(2, 0, 1))
            np.fill_diagonal(apart, np.inf)
            values.append(apart.min(axis=1).mean())
        return float(np.mean(values))

    assert spread("clustered") < spread("random-clustered") < spread("random")


def test_towns_are_of_very_different_sizes() -> None:
    plan = towns_cvrp(4000, 3, depot="eccentric", route_size=100)
    assert plan.demand is not None
    assert plan.xy is not None
    assert plan.capacity == 170
    assert plan.xy[0].tolist() == [0.0, 0.0]
    shares = np.bincount(plan.demand[1:], minlength=4)[1:] / 4000
    assert np.allclose(shares, [0.5, 0.3, 0.2], atol=0.03)
    side = plan.xy.max()
    cells, _, _ = np.histogram2d(*plan.xy[1:].T, bins=20, range=[[0, side], [0, side]])
    assert cells.max() > 4 * 4000 / 400  # a city
    assert np.mean(cells == 0) > 0.05  # and open country
    central = towns_cvrp(4000, 3, depot="central")
    assert central.xy is not None
    assert np.array_equal(central.xy[1:], plan.xy[1:])
    assert np.abs(central.xy[0] - central.xy[1:].mean(axis=0)).max() <= 1.0
    with pytest.raises(InstanceError, match="depot must be one of central, eccentric"):
        towns_cvrp(10, depot="nowhere")


def test_import_needs_numpy_only() -> None:
    heavy = "{'numba', 'scipy', 'torch'}"
    code = f"import drhg.problem.generate, sys; assert not {heavy} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


# --- files that other programs read ---------------------------------------------------------------


def shell(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "drhg", "generate", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_rounded_is_the_same_map_in_whole_numbers() -> None:
    for make in (g.uniform_tsp, g.clustered_tsp, g.uniform_cvrp):
        plain = make(200, 3)
        made = g.rounded(plain)
        assert made.metric is Metric.EUC_2D
        assert plain.xy is not None
        assert made.xy is not None
        assert (made.xy == np.floor(made.xy)).all()
        assert np.abs(made.xy - plain.xy * 1e6).max() <= 0.5
        assert 0 <= made.xy.min() < made.xy.max() <= 1_000_000
        assert (made.name, made.capacity) == (plain.name, plain.capacity)
        assert np.array_equal(made.demand, plain.demand)  # type: ignore[arg-type]
        assert g.rounded(made) is made
        assert plain.metric is Metric.EXACT  # which the generators keep
    grid = g.x_cvrp(50, 1)
    assert g.rounded(grid) is grid


@pytest.mark.parametrize(
    "kind", ["uniform-tsp", "clustered-tsp", "uniform-cvrp", "x-cvrp", "towns-cvrp"]
)
def test_other_programs_read_what_the_command_writes(kind: str, tmp_path: Path) -> None:
    tsplib95 = pytest.importorskip("tsplib95")
    vrplib = pytest.importorskip("vrplib")
    suffix = ".vrp" if kind.endswith("cvrp") else ".tsp"
    path = tmp_path / f"made{suffix}"
    run = shell(kind, "-n", 30, "-s", 4, "-o", path)
    assert (run.returncode, run.stdout, run.stderr) == (0, f"{path}\n", "")
    make = towns_cvrp if kind == "towns-cvrp" else getattr(g, kind.replace("-", "_"))
    ours = io.read(path)
    assert ours == replace(g.rounded(make(30, 4)), name="made")
    assert ours.metric is Metric.EUC_2D

    theirs = tsplib95.load(path)
    start = min(theirs.get_nodes())
    for i, j in itertools.combinations(range(ours.n), 2):
        assert theirs.get_weight(i + start, j + start) == ours.distance(i, j)
    parts = vrplib.read_instance(path)
    assert (parts["node_coord"] == ours.xy).all()
    grid = np.arange(ours.n)
    assert (np.floor(parts["edge_weight"] + 0.5) == ours.distance(grid[:, None], grid)).all()
    if suffix == ".vrp":
        assert theirs.capacity == parts["capacity"] == ours.capacity
        assert list(theirs.demands.values()) == parts["demand"].tolist() == ours.demand.tolist()
        assert theirs.depots == [1]
        assert parts["depot"].tolist() == [0]


@pytest.mark.parametrize("kind", ["r1", "c2", "rc1"])
def test_windows_by_the_command(kind: str, tmp_path: Path) -> None:
    from drhg.problem.generate_windows import windows_vrp

    run = shell(f"{kind}-vrptw", "-n", 20, "-s", 4, "-o", tmp_path / "made.vrp")
    assert (run.returncode, run.stderr) == (0, "")
    ours = io.read(tmp_path / "made.vrp")
    assert ours == replace(windows_vrp(kind.upper(), 20, 4), name="made")
    assert shell(f"{kind}-vrptw", "--unrounded").returncode == 2


def test_unrounded_files_say_that_they_are(tmp_path: Path) -> None:
    for kind, make in (("uniform-tsp", g.uniform_tsp), ("uniform-cvrp", g.uniform_cvrp)):
        path = tmp_path / ("a.vrp" if kind.endswith("cvrp") else "a.tsp")
        assert shell(kind, "-n", 7, "--unrounded", "-o", path).returncode == 0
        assert io.read(path) == replace(make(7), name="a")  # the comment is about the file
        text = path.read_text()
        assert "EDGE_WEIGHT_TYPE: EXACT\n" in text
        assert "COMMENT: Distances are not rounded. EXACT is a keyword of drhg" in text
    run = shell("x-cvrp", "--unrounded")
    assert run.returncode == 2
    assert "x-cvrp is on a grid" in run.stderr


def test_generated_files_go_to_standard_output_and_gz(tmp_path: Path) -> None:
    run = shell("uniform-cvrp", "-n", 5, "-s", 2, "-o", "-")
    assert (run.returncode, run.stderr) == (0, "")
    assert io.parse(run.stdout) == g.rounded(g.uniform_cvrp(5, 2))
    assert shell("uniform-cvrp", "-c", 2, "-o", "-").returncode == 2
    assert shell("uniform-tsp", "-n", 5, "-o", tmp_path / "a.tsp.gz").returncode == 0
    assert io.read(tmp_path / "a.tsp.gz") == replace(g.rounded(g.uniform_tsp(5)), name="a")


MAKERS = (g.uniform_tsp, g.clustered_tsp, g.uniform_cvrp, g.x_cvrp)
BAD_SIZES = (0, -1, 2.5, "5", None, math.nan, math.inf, True, [5], 10**30, 10**5000)


@pytest.mark.parametrize("make", MAKERS)
def test_wrong_arguments_are_named(make) -> None:  # type: ignore[no-untyped-def]
    for n in BAD_SIZES:
        with pytest.raises(InstanceError, match=r"^n must be"):
            make(n)
    for seed in (-1, 1.5, "x", None, math.nan, [1]):
        with pytest.raises(InstanceError, match=r"^seed must be a whole number of at least 0, not"):
            make(5, seed)
    for name in (5, b"x", ["x"]):
        with pytest.raises(InstanceError, match=r"^name must be text, not"):
            make(5, name=name)
    assert make(np.int64(5), np.uint8(3)) == make(5.0, 3)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: g.clustered_tsp(5, 1, 1.5), "clusters must be a whole number of at least 1"),
        (lambda: g.clustered_tsp(5, 1, "a"), "clusters must be a whole number of at least 1"),
        (lambda: g.uniform_cvrp(5, 1, "a"), "capacity must be a finite number, not 'a'"),
        (lambda: g.uniform_cvrp(5, 1, math.nan), "capacity must be a finite number, not nan"),
        (lambda: g.uniform_cvrp(5, 1, -1), "capacity must be positive"),
        (lambda: g.x_cvrp(5, depot=3), "unknown depot 3; known: centre"),
        (lambda: g.x_cvrp(5, customers=""), "unknown customers ''; known: random"),
        (lambda: g.x_cvrp(5, demand=["unit"]), "unknown demand ['unit']; known: unit"),
        (lambda: g.x_cvrp(5, route_size="a"), "route_size must be a finite number >= 1, not 'a'"),
        (lambda: g.x_cvrp(5, route_size=math.inf), "route_size must be a finite number >= 1"),
        (lambda: g.paper_cvrp("a"), "n must be a whole number of at least 1, not 'a'"),
        (lambda: g.paper_cvrp(100, 1.5), "count must be a whole number of at least 0, not 1.5"),
        (lambda: g.paper_tsp5000("a"), "count must be a whole number of at least 0, not 'a'"),
        (lambda: g.paper_tsp(5, -1), "count must be a whole number of at least 0, not -1"),
        (lambda: g.paper_capacity(None), "n must be a whole number of at least 1, not None"),
        (lambda: g.rounded("x"), "instance must be an Instance"),
    ],
)
def test_wrong_options_are_named(call, words: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InstanceError) as caught:
        call()
    assert str(caught.value).startswith(words)

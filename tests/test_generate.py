"""Generators: frozen first values, ranges, determinism."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drhg import generate as g
from drhg.errors import InstanceError
from drhg.problem import Instance, Metric

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


@pytest.mark.parametrize("make", [g.uniform_tsp, g.clustered_tsp, g.uniform_cvrp, g.x_cvrp])
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


def test_import_needs_numpy_only() -> None:
    code = "import drhg.generate, sys; assert not {'numba', 'scipy', 'torch'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)

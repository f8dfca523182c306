"""Starts: valid on everything, as good as the paper's, the same for the same seed."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from soak import upto

from drhg.construct import starts as c
from drhg.construct.params import StartParams
from drhg.errors import DrhgError
from drhg.hypergraph.nearness import Nearness
from drhg.local_search.candidates import neighbour_lists
from drhg.problem import Instance, Metric, Solution, check, cost, cvrp, from_zero, tsp, vrp
from drhg.problem import generate as g

TSP_STARTS = ["greedy", "insertion", "space-filling"]
CVRP_STARTS = ["insertion", "savings", "space-filling", "sweep"]
PLANAR = ["EXACT", "EUC_2D", "CEIL_2D", "ATT", "MAN_2D", "MAX_2D"]


def valid_tour(
    instance: Instance, name: str, seed: int = 0, params: StartParams | None = None
) -> Solution:
    solution, unplaced = c.construct(instance, name, seed, params or StartParams())
    assert unplaced.dtype == np.int64
    assert unplaced.size == 0
    assert check(instance, solution) == []
    return solution


def valid_plan(
    instance: Instance, name: str, seed: int = 0, params: StartParams | None = None
) -> tuple[Solution, list[int]]:
    """Whatever is left out is named, and only that; every other rule holds."""
    solution, unplaced = c.construct(instance, name, seed, params or StartParams())
    left = unplaced.tolist()
    assert left == sorted(set(left))
    assert sorted(check(instance, solution)) == sorted(
        f"{from_zero(i)} is not visited" for i in left
    )
    return solution, left


@st.composite
def points(draw: st.DrawFn, least: int, most: int) -> np.ndarray:
    """Random, coinciding, collinear, or on a small grid with many ties."""
    n = draw(st.integers(least, most))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    shape = draw(st.sampled_from(["random", "equal", "collinear", "grid", "twins"]))
    if shape == "equal":
        return np.full((n, 2), 3.25)
    if shape == "collinear":
        return np.outer(rng.random(n), [30.0, 40.0])
    if shape == "grid":
        return rng.integers(0, 4, size=(n, 2)).astype(float)
    xy = rng.random((n, 2)) * 85.0
    return xy[rng.integers(0, max(1, n // 3), size=n)] if shape == "twins" else xy


@st.composite
def fixed_paths(draw: st.DrawFn, n: int) -> list[tuple[int, int]]:
    """Disjoint paths through some nodes, now and then a whole path or the whole cycle."""
    order = draw(st.permutations(range(n)))
    kind = draw(st.sampled_from(["none", "some", "path", "cycle"]))
    if kind == "none" or n < 3:
        return []
    edges = [*pairwise(order)]
    if kind == "cycle":
        return [*edges, (order[-1], order[0])]
    return edges if kind == "path" else [e for e in edges if draw(st.booleans())]


@st.composite
def tsps(draw: st.DrawFn) -> Instance:
    xy = draw(points(1, 40))
    fixed = draw(fixed_paths(len(xy)))
    metric = draw(st.sampled_from([*PLANAR, "GEO", "EXPLICIT"]))
    if metric == "EXPLICIT":
        rng = np.random.default_rng(len(xy))
        half = np.triu(rng.integers(0, 9, size=(len(xy), len(xy))), 1)
        return tsp(matrix=half + half.T, fixed_edges=fixed)
    if metric == "GEO":
        xy = reference.degrees_and_minutes(xy)
    return tsp(xy, metric=metric, fixed_edges=fixed)


@st.composite
def cvrps(draw: st.DrawFn) -> Instance:
    xy = draw(points(1, 40))
    n = len(xy)
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    demand = rng.integers(0, 10, size=n)
    depot = draw(st.integers(0, n - 1))
    demand[depot] = 0
    capacity = draw(st.sampled_from([9, 20, 100, 1000]))
    vehicles = None
    if draw(st.booleans()):
        vehicles = max(1, -(-int(demand.sum()) // capacity)) + draw(st.integers(0, 2))
    far = 2.0 * float(np.hypot(*(xy - xy[depot]).T).max(initial=0.0))
    limit = draw(st.sampled_from([None, 0.7, 1.0, 1.5]))
    metric = draw(st.sampled_from([*PLANAR, "GEO"]))
    return cvrp(
        reference.degrees_and_minutes(xy) if metric == "GEO" else xy,
        demand,
        capacity,
        depot=depot,
        vehicles=vehicles,
        max_distance=None if limit is None else limit * far,
        service_time=0.0 if limit is None else draw(st.sampled_from([0.0, 1.5])),
        metric=metric,
    )


BY_ROUNDS = StartParams(
    all_pairs=4,
    greedy_neighbours=3,
    savings_neighbours=3,
    insertion_scan=4,
    insertion_neighbours=3,
    longest_sweep_route=6,
)
"""What large instances need (near candidates, rounds, batches), on small ones."""
ways = pytest.mark.parametrize("params", [StartParams(), BY_ROUNDS], ids=["usual", "by rounds"])


def examples(count: int):  # type: ignore[no-untyped-def]
    return settings(max_examples=upto(count), deadline=None)


@ways
@pytest.mark.parametrize("name", TSP_STARTS)
@examples(120)
@given(instance=tsps(), seed=st.integers(0, 99))
def test_every_tour_is_valid(params: StartParams, name: str, instance: Instance, seed: int) -> None:
    tour = valid_tour(instance, name, seed, params).tour
    np.testing.assert_array_equal(tour, c.construct(instance, name, seed, params)[0].tour)


@ways
@pytest.mark.parametrize("name", CVRP_STARTS)
@examples(120)
@given(instance=cvrps(), seed=st.integers(0, 99))
def test_every_plan_is_valid(params: StartParams, name: str, instance: Instance, seed: int) -> None:
    solution, left = valid_plan(instance, name, seed, params)
    if instance.vehicles is None:  # then only those are left out that cannot be reached at all
        home = 2.0 * instance.distance(instance.depot, np.array(left, dtype=int))
        limit = np.inf if instance.max_distance is None else instance.max_distance
        assert (home + instance.service_time > limit).all()
    again = c.construct(instance, name, seed, params)[0]
    assert [r.tolist() for r in again.routes] == [r.tolist() for r in solution.routes]


@ways
@pytest.mark.parametrize("name", ["insertion", "savings", "space-filling"])
@examples(40)
@given(n=st.integers(1, 25), seed=st.integers(0, 999))
def test_plans_from_a_bare_matrix(params: StartParams, name: str, n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    half = np.triu(rng.integers(0, 50, size=(n, n)), 1)
    demand = np.concatenate(([0], rng.integers(0, 10, size=n - 1)))
    for limit in (None, 60.0):  # the triangle inequality does not hold here
        instance = cvrp(None, demand, 20, matrix=half + half.T, max_distance=limit)
        _, left = valid_plan(instance, name, seed, params)
        assert limit is not None or left == []


@pytest.mark.parametrize("name", TSP_STARTS)
def test_tiny_tours(name: str) -> None:
    assert valid_tour(tsp([[5, 5]]), name).tour.tolist() == [0]
    assert sorted(valid_tour(tsp([[0, 0], [1, 1]]), name).tour.tolist()) == [0, 1]
    triangle = tsp([[0, 0], [0, 3], [4, 0]])
    assert cost(triangle, valid_tour(triangle, name)) == 12.0


@pytest.mark.parametrize("name", TSP_STARTS)
@pytest.mark.parametrize("n", [3, 50, 3000])
def test_points_on_top_of_each_other_and_in_a_line(name: str, n: int) -> None:
    heap = tsp(np.full((n, 2), 7.0))
    assert cost(heap, valid_tour(heap, name)) == 0.0
    line = tsp(np.stack((np.random.default_rng(n).permutation(n), np.zeros(n)), 1))
    length = cost(line, valid_tour(line, name))
    assert 2 * (n - 1) <= length
    if name == "greedy":  # the chain, and one way back
        assert length == 2 * (n - 1)


@pytest.mark.parametrize("name", CVRP_STARTS)
def test_only_a_depot(name: str) -> None:
    solution, left = valid_plan(cvrp([[1, 2]], [0], 5), name)
    assert solution.routes == ()
    assert left == []


@pytest.mark.parametrize("name", CVRP_STARTS)
def test_one_customer_and_no_demand_at_all(name: str) -> None:
    solution, _ = valid_plan(cvrp([[1, 2], [4, 6]], [0, 5], 5), name)
    assert [r.tolist() for r in solution.routes] == [[1]]
    idle = cvrp(np.random.default_rng(0).random((30, 2)), np.zeros(30, dtype=int), 1, vehicles=1)
    assert len(valid_plan(idle, name)[0].routes) == 1


@pytest.mark.parametrize("name", CVRP_STARTS)
def test_too_far_customers_are_named(name: str) -> None:
    xy = [[0, 0], [1, 0], [10, 0], [2, 0], [0, 30]]
    _, left = valid_plan(cvrp(xy, [0, 1, 1, 1, 1], 9, max_distance=8.0), name)
    assert left == [2, 4]


@pytest.mark.parametrize("name", CVRP_STARTS)
def test_a_tight_fleet_is_met_by_exchanging_customers(name: str) -> None:
    """Four routes filled to the last unit: only {6, 4}, {7, 3}, {8, 2} and {5, 5} will do."""
    rng = np.random.default_rng(1)
    demand = [0, 6, 7, 8, 5, 4, 3, 2, 5]
    for _ in range(20):
        instance = cvrp(rng.random((9, 2)), demand, 10, vehicles=4)
        solution, left = valid_plan(instance, name)
        assert len(solution.routes) <= 4
        assert left == []


@pytest.mark.parametrize("name", CVRP_STARTS)
def test_the_fleet_limit_of_the_paper_sized_instances(name: str) -> None:
    unplaced = 0
    for instance in g.paper_cvrp(200, 20):
        assert instance.demand is not None
        assert instance.capacity is not None
        least = -(-int(instance.demand.sum()) // instance.capacity)
        limited = cvrp(instance.xy, instance.demand, instance.capacity, vehicles=least)
        unplaced += len(valid_plan(limited, name)[1])
    assert unplaced == 0


def test_unknown_and_unfitting_names_are_refused_with_the_known_ones() -> None:
    plane, plan = tsp([[0, 0], [1, 1]]), cvrp([[0, 0], [1, 1]], [0, 1], 1)
    with pytest.raises(DrhgError, match="greedy, insertion, space-filling"):
        c.construct(plane, "simulated")
    with pytest.raises(DrhgError, match="'savings' does not apply"):
        c.construct(plane, "savings")
    with pytest.raises(DrhgError, match="'greedy' does not apply"):
        c.construct(plan, "greedy")
    with pytest.raises(DrhgError, match="'sweep' does not apply"):
        c.construct(cvrp(None, [0, 1], 1, matrix=[[0, 1], [1, 0]]), "sweep")
    timed = vrp(xy=[[0, 0], [1, 1]], demand=[0, 1], capacity=1, windows=[[0, 9], [0, 9]])
    fitting = (name for one in (plane, plan, timed) for name in c.starts_for(one))
    assert set(c.STARTS) == set(fitting)


def test_the_space_filling_start_compiles_nothing() -> None:
    code = (
        "import sys, drhg.problem.generate as g, drhg.construct.starts as c;"
        "c.construct(g.uniform_tsp(99), 'space-filling');"
        "c.construct(g.uniform_cvrp(99), 'space-filling');"
        "assert not {'numba', 'scipy', 'torch'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_hilbert_order_steps_from_cell_to_cell() -> None:
    side = np.arange(16)
    cells = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2).astype(float)
    path = cells[c.hilbert_order(cells, bits=4)]
    assert np.abs(np.diff(path, axis=0)).sum(axis=1).tolist() == [1.0] * 255


@examples(40)
@given(seed=st.integers(0, 999), n=st.integers(5, 30))
def test_greedy_takes_the_shortest_edge_that_fits(seed: int, n: int) -> None:
    """Against the obvious version: all edges by length, skipping branches and early cycles."""
    instance = g.uniform_tsp(n, seed)
    root, degree, chosen = list(range(n)), [0] * n, set()

    def find(i: int) -> int:
        while root[i] != i:
            i = root[i]
        return i

    pairs = sorted(
        ((instance.distance(i, j), i, j) for i in range(n) for j in range(i)), key=lambda e: e[0]
    )
    for _, i, j in pairs:
        if degree[i] < 2 and degree[j] < 2 and (find(i) != find(j) or len(chosen) == n - 1):
            root[find(i)] = find(j)
            degree[i] += 1
            degree[j] += 1
            chosen.add((j, i))
    tour = valid_tour(instance, "greedy").tour.tolist()
    edges = {(min(a, b), max(a, b)) for a, b in pairwise([*tour, tour[0]])}
    assert edges == chosen


@examples(30)
@given(seed=st.integers(0, 999), n=st.integers(3, 30))
def test_insertion_takes_the_cheapest_place(seed: int, n: int) -> None:
    """Against the obvious version on a list."""
    instance = g.uniform_tsp(n, seed)
    order = np.random.default_rng(seed).permutation(n).tolist()
    tour = order[:1]
    for node in order[1:]:
        extra = [
            instance.distance(a, node) + instance.distance(node, b) - instance.distance(a, b)
            for a, b in pairwise([*tour, tour[0]])
        ]
        tour.insert(int(np.argmin(extra)) + 1, node)
    assert cost(instance, valid_tour(instance, "insertion", seed)) == pytest.approx(
        cost(instance, Solution([tour])), rel=1e-12
    )


def test_savings_on_a_plan_worked_out_by_hand() -> None:
    """Two customers east, two west, capacity for two: the pairs, never one across the depot."""
    instance = cvrp([[0, 0], [9, 1], [9, -1], [-9, 1], [-9, -1]], [0, 1, 1, 1, 1], 2)
    solution, _ = valid_plan(instance, "savings")
    assert sorted(sorted(r.tolist()) for r in solution.routes) == [[1, 2], [3, 4]]


# --- as good as the paper's (Tables 1 and 3) ----------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "count", "optimal", "gap", "within"),
    [
        (100, 3000, 7.763, 9.66, 0.3),
        # misses the 0.3 of the others: ours is 11.1 +- 0.06, also against fast_tsp's optima; the
        # paper's is one run on 128 instances, standard error 0.19, so three of those above ours
        (200, 1000, 10.704, 11.63, 0.65),
        (500, 200, 16.522, 12.25, 0.3),
        (1000, 100, 23.12, 12.90, 0.3),
    ],
)
def test_random_insertion_has_the_gap_of_table_1(
    n: int, count: int, optimal: float, gap: float, within: float
) -> None:
    lengths = [
        cost(instance, c.insertion(instance, seed)[0])
        for seed, instance in enumerate(g.paper_tsp(n, count))
    ]
    assert 100.0 * (np.mean(lengths) / optimal - 1.0) == pytest.approx(gap, abs=within)


@pytest.mark.slow
def test_near_insertion_is_as_good_as_the_full_scan() -> None:
    """Table 1 at n = 5000 (13.90 %), where only places next to near nodes are tried."""
    instances = g.paper_tsp5000(10)
    lengths = [cost(instance, c.insertion(instance, 1)[0]) for instance in instances]
    assert 100.0 * (np.mean(lengths) / 50.97 - 1.0) == pytest.approx(13.90, abs=0.5)


@pytest.mark.parametrize(
    ("n", "count", "expected"),
    [(100, 500, 19.4), (200, 128, 25.0), (500, 128, 45.7), (1000, 128, 46.1)],
)
def test_sweep_costs_what_it_should(n: int, count: int, expected: float) -> None:
    """Clusters by angle, nearest neighbour inside, on the paper's own instances (FACTS)."""
    costs = [
        cost(instance, c.sweep(instance, seed)[0])
        for seed, instance in enumerate(g.paper_cvrp(n, count))
    ]
    assert np.mean(costs) == pytest.approx(expected, rel=0.015)


def test_savings_beats_sweep_and_greedy_beats_the_curve() -> None:
    for instance in g.paper_cvrp(200, 10):
        assert cost(instance, c.savings(instance)[0]) < cost(instance, c.sweep(instance)[0])
    instance = g.clustered_tsp(20_000, 1)
    curve, edges = (cost(instance, valid_tour(instance, s)) for s in ("space-filling", "greedy"))
    assert edges < 0.9 * curve


@pytest.mark.parametrize("name", ["greedy", "insertion"])
def test_hubs_and_heaps_do_not_make_it_crawl(name: str) -> None:
    """A star as a matrix, and twenty thousand points in ten places, each within seconds."""
    hub = np.full((1200, 1200), 9)
    hub[:5] = hub[:, :5] = 1
    np.fill_diagonal(hub, 0)
    valid_tour(tsp(matrix=hub), name)
    rng = np.random.default_rng(0)
    heaps = tsp(rng.random((10, 2))[rng.integers(10, size=20_000)])
    assert cost(heaps, valid_tour(heaps, name)) < 10.0


def test_a_long_way_round_the_globe() -> None:
    rng = np.random.default_rng(0)
    xy = np.stack((rng.uniform(-80, 80, 800).round(), rng.uniform(-179, 179, 800).round()), 1)
    instance = tsp(xy, metric=Metric.GEO)
    lengths = {name: cost(instance, valid_tour(instance, name)) for name in TSP_STARTS}
    assert lengths["greedy"] < lengths["space-filling"]


@pytest.mark.parametrize("metric", [Metric.EUC_2D, Metric.EXPLICIT, Metric.GEO])
@pytest.mark.parametrize("fixed", [0.0, 0.3])
def test_shaken_greedy_makes_different_sound_tours(metric: Metric, fixed: float) -> None:
    instance, _ = reference.random_tour(np.random.default_rng(1), 60, "uniform", metric, fixed)
    near = neighbour_lists(instance, Nearness(instance), 10)
    make = c.shaken_greedy(instance, near.astype(np.int64))
    made = [make(np.random.default_rng(i)) for i in range(5)]
    for tour in made:
        assert check(instance, Solution([tour])) == []
    assert len({tuple(tour) for tour in made}) > 1
    assert make(np.random.default_rng(0)).tolist() == made[0].tolist()

"""Instances, metrics, solutions and the checker, against the definitions."""

from __future__ import annotations

import copy
import dataclasses
import math
import pickle
import re
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import reference

import drhg
from drhg.errors import InstanceError, SolutionError
from drhg.problem import (
    Instance,
    Metric,
    Solution,
    check,
    cost,
    cvrp,
    tsp,
    validated,
    whole_demand,
)
from drhg.problem.metrics import ALI535

SQUARE = [[0, 0], [0, 3], [4, 3], [4, 0]]


def points(metric: Metric, rng: np.random.Generator) -> np.ndarray:
    """60 points, among them equal ones and many at half-integer distances."""
    if metric is Metric.GEO:
        degrees = np.stack([rng.integers(-89, 90, 60), rng.integers(-179, 180, 60)], axis=1)
        xy = degrees + np.sign(degrees) * rng.integers(0, 60, (60, 2)) / 100
    elif metric is Metric.HAVERSINE:
        xy = np.stack([rng.uniform(-90, 90, 60), rng.uniform(-180, 180, 60)], axis=1)
        xy[10:20] = xy[9] + rng.normal(0, 1e-3, (10, 2))  # some 100 m apart
    else:
        xy = np.concatenate(
            [
                rng.integers(0, 100, (20, 2)) / 2,  # halves, where nint is not banker's rounding
                np.stack([np.arange(20) * 0.5, np.zeros(20)], axis=1),  # 0.5, 1.5, 2.5, ...
                rng.normal(0, 1000, (20, 2)),
            ]
        )
    xy[7] = xy[3]
    return xy


def instance_of(metric: Metric, seed: int) -> Instance:
    rng = np.random.default_rng(seed)
    if metric is Metric.EXPLICIT:
        half = np.triu(rng.integers(0, 100, (60, 60)), 1)
        return tsp(matrix=(half + half.T) / (1 + seed % 2 * 3))
    return tsp(points(metric, rng), metric=metric)


@pytest.mark.parametrize("metric", list(Metric))
@pytest.mark.parametrize("seed", range(4))
def test_distances_match_the_definition(metric: Metric, seed: int) -> None:
    from drhg.kernels.space import distance, space_of

    instance = instance_of(metric, seed)
    n = instance.n
    expected = np.array([[reference.distance(instance, i, j) for j in range(n)] for i in range(n)])
    grid = instance.distance(np.arange(n)[:, None], np.arange(n)[None, :])
    assert all(instance.distance(i, 5) == grid[i, 5] for i in range(n))
    space = space_of(instance)
    compiled = np.array([[distance(space, i, j) for j in range(n)] for i in range(n)])
    for found in (grid, compiled):
        if metric is Metric.HAVERSINE:
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-8)
        else:
            assert (found != expected).sum() == 0


@pytest.mark.parametrize("metric", [Metric.EUC_2D, Metric.MAN_2D, Metric.MAX_2D])
def test_halves_are_rounded_up_not_to_even(metric: Metric) -> None:
    line = tsp([[0, 0], [0.5, 0], [1.5, 0], [2.5, 0]], metric=metric)
    assert line.distance(0, [0, 1, 2, 3]).tolist() == [0, 1, 2, 3]


def test_distance_of_a_node_to_itself_is_zero_in_every_metric() -> None:
    geo = tsp([[10.30, 20.15], [10.30, 20.15]], metric="GEO")
    assert geo.distance(0, 0) == 0
    assert geo.distance(0, 1) == 1  # TSPLIB adds one kilometre to every distance of two nodes


@pytest.mark.parametrize("seed", range(20))
def test_cost_is_the_plain_sum(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for metric in Metric:
        instance = instance_of(metric, seed)
        tour = rng.permutation(60)
        total = cost(instance, Solution([tour]))
        assert total == pytest.approx(reference.cost(instance, [tour.tolist()]), rel=1e-12)
        assert isinstance(total, int) == instance.integral
        plan = cvrp(instance.xy, [0] + [1] * 59, 20, metric=metric, matrix=instance.matrix)
        routes = [r + 1 for r in np.split(rng.permutation(59), [15, 30, 45])]
        assert cost(plan, Solution(routes)) == pytest.approx(reference.cost(plan, routes))
        assert check(plan, Solution(routes)) == []


def test_tiny_optima_of_the_reference() -> None:
    square = tsp(SQUARE)
    assert reference.best_tour(square) == (14.0, [0, 1, 2, 3])
    crossed = tsp(SQUARE, fixed_edges=[(0, 2)])
    assert reference.best_tour(crossed)[0] == 5 + 5 + 3 + 3
    plan = cvrp([[0, 0], [0, 1], [0, 2], [1, 0]], [0, 1, 1, 1], 2)
    total, routes = reference.best_plan(plan)
    assert total == 6
    assert sorted(sorted(route) for route in routes) == [[1, 2], [3]]
    assert len(list(reference.partitions(range(5)))) == 52  # the Bell number
    one = dataclasses.replace(plan, vehicles=2, max_distance=3.0)
    assert reference.best_plan(one)[0] == math.inf


@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_smallest_instances(n: int) -> None:
    instance = tsp(SQUARE[:n])
    assert check(instance, Solution([range(n)])) == []
    assert cost(instance, Solution([range(n)])) == reference.cost(instance, [range(n)])


def test_a_lone_depot_is_a_cvrp_without_routes() -> None:
    lone = cvrp([[0, 0]], [0], 1)
    assert check(lone, Solution([])) == []
    assert cost(lone, Solution([])) == 0


BAD_INSTANCES = {
    "no node": (lambda: tsp(np.zeros((0, 2))), "at least one node"),
    "empty list": (lambda: tsp([]), "xy has shape (0,), expected (n, 2)"),
    "three columns": (lambda: tsp([[1, 2, 3]]), "xy has shape (1, 3)"),
    "ragged": (lambda: tsp([[1, 2], [3]]), "xy must be an array of numbers, not [[1, 2], [3]]"),
    "huge integer": (lambda: tsp([[10**400, 0]]), "xy must be an array of numbers"),
    "words": (lambda: tsp([["a", "b"]]), "xy must be an array of numbers, not [['a', 'b']]"),
    "complex": (lambda: tsp(np.ones((2, 2)) * 1j), "xy must be an array of numbers"),
    "nothing inside": (lambda: tsp([[{}, 1]]), "xy must be an array of numbers"),
    "nan": (
        lambda: tsp([[0, 0], [math.nan, 1]]),
        "node 1 (counted from 0) has the coordinates nan, 1.0",
    ),
    "inf": (lambda: tsp([[0, math.inf]]), "node 0 (counted from 0) has the coordinates 0.0, inf"),
    "too far": (lambda: tsp([[0, 0], [1e308, -1e308]]), "too large to add exactly"),
    "beyond double": (lambda: tsp([[-1.7e308, 0], [1.7e308, 0]]), "too large to add exactly"),
    "nothing": (lambda: tsp(), "neither coordinates (xy) nor a distance matrix"),
    "explicit without": (lambda: tsp(SQUARE, metric="EXPLICIT"), "goes with metric EXPLICIT"),
    "metric name": (lambda: tsp(SQUARE, metric="EUC_9D"), "unknown metric 'EUC_9D'; known: EXACT"),
    "metric number": (lambda: tsp(SQUARE, metric=99), "unknown metric 99; known: EXACT"),
    "off the globe": (lambda: tsp([[91.0, 0.0]], metric="GEO"), "node 0 (counted from 0) is not"),
    "matrix shape": (lambda: tsp(matrix=[[0, 1]]), "has shape (1, 2)"),
    "matrix ragged": (lambda: Instance(metric=7, matrix=[[0, 1], [1]]), "matrix must be an array"),
    "matrix ragged in tsp": (lambda: tsp(matrix=[[0, 1], [1]]), "matrix must be an array"),
    "matrix words": (lambda: tsp(matrix=[["a"]]), "matrix must be an array of numbers"),
    "matrix of objects": (lambda: tsp(matrix=[[None]]), "the distance matrix is not numeric"),
    "matrix nan": (lambda: tsp(matrix=[[0, math.nan], [math.nan, 0]]), "not finite"),
    "matrix negative": (
        lambda: tsp(matrix=[[0, -1], [-1, 0]]),
        "nodes 0 and 1 (counted from 0) is",
    ),
    "matrix too large": (lambda: tsp(matrix=[[0, 2**52], [2**52, 0]]), "too large to be exact"),
    "matrix and xy": (lambda: tsp(SQUARE, matrix=[[0]]), "4 coordinates for a matrix of 1 nodes"),
    "fixed loop": (
        lambda: tsp(SQUARE, fixed_edges=[(1, 1)]),
        "the fixed edge of nodes 1 and 1 (counted from 0) does not join two nodes",
    ),
    "fixed outside": (
        lambda: tsp(SQUARE, fixed_edges=[(0, 4)]),
        "the fixed edge of nodes 0 and 4 (counted from 0) does not join two nodes",
    ),
    "fixed triple": (lambda: tsp(SQUARE, fixed_edges=[(0, 1, 2)]), "is a pair of nodes"),
    "fixed star": (
        lambda: tsp(SQUARE, fixed_edges=[(0, 1), (0, 2), (0, 3)]),
        "more than two fixed edges at node 0 (counted from 0)",
    ),
    "fixed cycle": (
        lambda: tsp(SQUARE, fixed_edges=[(0, 1), (1, 2), (0, 2)]),
        "the fixed edges close a cycle at nodes 1 and 2 (counted from 0)",
    ),
    "fixed at a depot": (
        lambda: dataclasses.replace(cvrp(SQUARE, [0, 1, 1, 1], 3), fixed_edges=((0, 2),)),
        "is at the depot",
    ),
    "capacity without demand": (lambda: Instance(xy=SQUARE, capacity=1), "but no demand"),
    "limit without demand": (lambda: Instance(xy=SQUARE, max_distance=1), "but no demand"),
    "depot without demand": (lambda: Instance(xy=SQUARE, depot=1), "but no demand"),
    "demand without capacity": (lambda: Instance(xy=[[0, 0]], demand=[0]), "but no capacity"),
    "demand shape": (lambda: cvrp(SQUARE, [0, 1], 3), "shape (2,), expected (4,)"),
    "demand fractions": (
        lambda: Instance(xy=[[0, 0]], demand=[0.5], capacity=1),
        "demand must be whole numbers",
    ),
    "demand negative": (
        lambda: cvrp(SQUARE, [0, 1, -1, 1], 3),
        "node 2 (counted from 0) has the negative demand -1",
    ),
    "demand above": (
        lambda: cvrp(SQUARE, [0, 0.5, 3.5, 1], 3),
        "node 2 (counted from 0) demands 3.5, more than the capacity 3",
    ),
    "demand at depot": (
        lambda: cvrp(SQUARE, [1, 1, 1, 1], 3),
        "the depot, node 0 (counted from 0), has a demand",
    ),
    "demand beyond int64 in sum": (
        lambda: cvrp(np.zeros((5000, 2)), [0] + [2**51] * 4999, 2**51),
        "too large to add exactly",
    ),
    "depot outside": (
        lambda: cvrp(SQUARE, [0, 1, 1, 1], 3, depot=4),
        "not one of the nodes 0 .. 3",
    ),
    "capacity zero": (lambda: cvrp(SQUARE, [0, 0, 0, 0], 0), "capacity must be positive"),
    "no vehicles": (lambda: cvrp(SQUARE, [0, 1, 1, 1], 3, vehicles=0), "must be positive"),
    "few vehicles": (
        lambda: cvrp(SQUARE, [0, 1, 1, 1], 2, vehicles=1),
        "total demand 3 exceeds 1 vehicles of capacity 2",
    ),
    "limit negative": (
        lambda: cvrp(SQUARE, [0, 1, 1, 1], 3, max_distance=-1),
        "max_distance must be a finite number >= 0",
    ),
    "service nan": (
        lambda: cvrp(SQUARE, [0, 1, 1, 1], 3, service_time=math.nan),
        "service_time must be a finite number >= 0",
    ),
    "scale": (
        lambda: Instance(xy=[[0, 0]], demand=[0], capacity=1, demand_scale=3),
        "demand_scale must be a power of ten, not 3",
    ),
}


@pytest.mark.parametrize(("make", "words"), BAD_INSTANCES.values(), ids=BAD_INSTANCES)
def test_bad_instances_are_refused_in_words(make, words: str) -> None:
    with pytest.raises(InstanceError) as caught:
        make()
    assert words in str(caught.value)


def test_fixed_edges_are_normalised_and_a_whole_tour_may_be_fixed() -> None:
    assert tsp(SQUARE, fixed_edges=[(3, 1), (1, 3), (0, 1)]).fixed_edges == ((0, 1), (1, 3))
    ring = tsp(SQUARE, fixed_edges=[(0, 1), (1, 2), (2, 3), (3, 0)])
    assert check(ring, Solution([[2, 3, 0, 1]])) == []


def test_check_names_every_violation_of_a_tour() -> None:
    square = tsp(SQUARE, fixed_edges=[(0, 1)])
    assert check(square, Solution([[3, 0, 1, 2]])) == []
    assert check(square, Solution([[0, 1, 2]])) == ["node 3 (counted from 0) is not visited"]
    assert check(square, Solution([[0, 1, 2, 3, 2]])) == [
        "node 2 (counted from 0) is visited 2 times"
    ]
    assert check(square, Solution([[0, 2, 1, 3]])) == [
        "the fixed edge of nodes 0 and 1 (counted from 0) is missing"
    ]
    assert "a tour is one route, not 2" in check(square, Solution([[0, 1], [2, 3]]))
    assert "a tour is one route, not 0" in check(square, Solution([]))
    found = check(square, Solution([[0, 1, 2, 4, -1]]))
    assert "route 1 names node 4 (counted from 0), which does not exist" in found
    assert "route 1 names node -1 (counted from 0), which does not exist" in found
    assert "node 3 (counted from 0) is not visited" in found


def test_check_names_every_violation_of_a_plan() -> None:
    plan = cvrp(SQUARE, [0, 0.5, 1, 1], 2, vehicles=2, max_distance=13.0, service_time=0.25)
    assert check(plan, Solution([[1, 2], [3]])) == []
    assert check(plan, Solution([[1, 2]])) == ["node 3 (counted from 0) is not visited"]
    assert check(plan, Solution([[1], [2], [3]])) == ["3 routes, but only 2 vehicles"]
    assert check(plan, Solution([[0, 1, 2], [3]])) == [
        "the depot, node 0 (counted from 0), stands inside a route"
    ]
    assert check(plan, Solution([[1, 2, 3]])) == [
        "route 1 carries 2.5, capacity is 2",
        "route 1 is 14.75 long, allowed is 13",
    ]
    assert "node 1 (counted from 0) is visited 2 times" in check(plan, Solution([[1, 2], [3, 1]]))


def test_check_names_the_route_of_an_unknown_node() -> None:
    instance = cvrp([[0, 0], [1, 0], [2, 0], [3, 0]], [0, 1, 1, 1], 5)
    for routes in ([[1], [9, 2], [3]], [[1], [2, 9], [3]]):
        assert check(instance, Solution(routes)) == [
            "route 2 names node 9 (counted from 0), which does not exist"
        ]
        with pytest.raises(SolutionError, match=r"route 2 names node 9 \(counted from 0\)"):
            cost(instance, Solution(routes))
    with pytest.raises(SolutionError, match=r"names node -1 \(counted from 0\)"):
        cost(instance, Solution([[-1]]))  # numpy would take the last node


def test_one_distance_is_a_plain_number() -> None:
    assert type(tsp([[0, 0], [3, 4]]).distance(0, 1)) is float


def test_validated_returns_or_names_the_first_five() -> None:
    square = tsp(SQUARE)
    good = Solution([[0, 1, 2, 3]])
    assert validated(square, good) is good
    with pytest.raises(SolutionError, match=r"node 1 \(.*\) is not visited; .*node 3"):
        validated(square, Solution([[0]]))
    missing = [f"node {i} (counted from 0) is not visited" for i in range(1, 11)]
    for n, shown in ((6, "; ".join(missing[:5])), (7, "; ".join(missing[:5]) + " (and 1 more)")):
        with pytest.raises(SolutionError) as caught:
            validated(tsp(np.zeros((n, 2))), Solution([[0]]))
        assert caught.value.reason == shown


@pytest.mark.parametrize(
    ("demand", "capacity", "expected"),
    [
        ([0, 1, 2], 5, ([0, 1, 2], 5, 1)),
        ([0, 1, 2], 5.0, ([0, 1, 2], 5, 1)),
        ([0, 0.1, 0.25], 1, ([0, 10, 25], 100, 100)),
        ([0, 0.3, 0.6], 0.9, ([0, 3, 6], 9, 10)),  # 3 * 0.3 is not 0.9 in floats
        ([0, 1.0, 2.0], 5, ([0, 1, 2], 5, 1)),
        ([0, 1e-9, 0], 1, ([0, 1, 0], 10**9, 10**9)),
        ([0, 1, 2], 2.5, ([0, 10, 20], 25, 10)),
    ],
)
def test_decimal_demand_becomes_whole_exactly(demand, capacity, expected) -> None:
    got, scaled, scale = whole_demand(demand, capacity)
    assert (got.tolist(), scaled, scale) == expected
    assert got.dtype == np.int64


@pytest.mark.parametrize(
    ("demand", "capacity"),
    [
        ([0, 1 / 3], 1),
        ([0, 1e-10], 1),
        ([0, math.nan], 1),
        ([0, 1.0], math.inf),
        ([0, 1], math.nan),
        ([0, 1], math.inf),
        ([0, 1], "much"),
        ([0, 1], None),
        ([0, 10**400], 1),
        ([0, 1e300], 1),
        (["a", "b"], 1),
        ([[0, 1]], 1),
    ],
)
def test_demand_that_is_no_short_decimal_is_refused(demand, capacity) -> None:
    with pytest.raises(InstanceError):
        whole_demand(demand, capacity)


def test_solutions_drop_empty_routes_and_refuse_what_is_no_route() -> None:
    solution = Solution([[1, 2], [], [3]])
    assert [route.tolist() for route in solution.routes] == [[1, 2], [3]]
    assert repr(solution) == "Solution(2 routes, 3 nodes)"
    assert Solution([[2, 0, 1]]).tour.tolist() == [2, 0, 1]
    with pytest.raises(SolutionError, match="2 routes are not one tour"):
        _ = solution.tour
    for bad in ([1, 2], [[1.5]], [["a"]], [[[1, 2]]], [[[1], [2, 3]]], [[True]]):
        with pytest.raises(SolutionError, match="a route is a list of node numbers"):
            Solution(bad)


def test_instances_and_solutions_cannot_be_changed() -> None:
    xy = np.array(SQUARE, dtype=float)
    instance = tsp(xy)
    xy[0] = 99  # the caller's array is not ours
    assert instance.xy is not None
    assert instance.xy[0].tolist() == [0, 0]
    with pytest.raises(ValueError, match="read-only"):
        instance.xy[0] = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        instance.name = "other"
    order = np.arange(4)
    solution = Solution([order])
    order[0] = 3
    assert solution.tour.tolist() == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="read-only"):
        solution.tour[0] = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        solution.routes = ()


def test_whole_matrices_have_integer_costs() -> None:
    assert tsp(matrix=[[9.5, 2.0], [2.0, 9.0]]).integral
    assert tsp(matrix=[[9.0, 2.0], [2.0, 9.0]]).distance(0, 0) == 0  # the diagonal does not count
    assert not tsp(matrix=[[0, 0.5], [0.5, 0]]).integral
    assert drhg.cost(tsp(matrix=[[0, 2], [2, 0]]), Solution([[0, 1]])) == 4


def test_errors_say_where() -> None:
    assert str(InstanceError("odd")) == "odd"
    assert str(InstanceError("odd", line=3)) == "line 3: odd"
    assert str(InstanceError("odd", file="a.tsp")) == "a.tsp: odd"
    assert str(InstanceError("odd", file="a.tsp", line=3)) == "a.tsp:3: odd"


# --- degrees and minutes --------------------------------------------------------------------------


def test_decimal_degrees_are_refused_with_the_remedy() -> None:
    with pytest.raises(InstanceError) as caught:
        tsp([[52.31, 13.24], [48.08, 11.75]], metric="GEO")
    assert str(caught.value) == (
        "node 1 (counted from 0) has the coordinate 11.75, but metric GEO reads xy as DDD.MM, "
        "degrees and minutes below 60; if these are decimal degrees, write 11.45 for 11.75, "
        "or project them to the plane and choose another metric"
    )
    with pytest.raises(InstanceError, match=r"node 0 .* write -24\.48 for -24\.8"):
        cvrp([[-24.8, 0.0], [0.0, 0.0]], [0, 1], 1, metric=Metric.GEO)


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_every_minute_below_sixty_is_read(kind: type) -> None:
    for degrees in (0, 1, 12, 45, 89):
        for sign in (1, -1):
            fine = [[sign * (degrees + m / 100), sign * (2 * degrees + m / 100)] for m in range(60)]
            assert tsp(np.array(fine, kind), metric="GEO").n == 60
            for minutes in (60, 61, 99):
                bad = np.array([[0, sign * (degrees + minutes / 100)]], kind)
                for xy in (bad, bad[:, ::-1]):
                    with pytest.raises(InstanceError, match=r"minutes below 60"):
                        tsp(xy, metric="GEO")


def test_the_slips_of_ali535_count_as_they_stand() -> None:
    slips = tsp(ALI535, metric="GEO")
    distance = reference.distance(slips, 0, 1)
    assert slips.distance(0, 1) == distance > 1000
    with pytest.raises(InstanceError, match="minutes below 60"):
        tsp([(33.57, 45.80)], metric="GEO")


# --- nearly symmetric matrices --------------------------------------------------------------------


def test_rounding_noise_in_a_matrix_is_evened_out() -> None:
    noisy = np.array([[0, 0.1, 2.5], [0.1 + 1e-17 * 2, 0, 7.25], [2.5 * (1 + 9e-10), 7.25, 0]])
    instance = tsp(matrix=noisy)
    assert instance.matrix is not None
    assert np.array_equal(instance.matrix, instance.matrix.T)
    assert instance.distance(0, 2) == pytest.approx(2.5 * (1 + 4.5e-10), rel=1e-15)
    assert instance.distance(1, 2) == 7.25
    assert not instance.integral
    points = np.random.default_rng(0).random((30, 2)).astype(np.longdouble)
    apart = np.hypot(*(points[:, None] - points).transpose(2, 0, 1))
    apart = (apart * (1 + 1e-15 * np.triu(np.ones((30, 30))))).astype(np.float64)
    assert not np.array_equal(apart, apart.T)
    assert tsp(matrix=apart).matrix == pytest.approx(apart, rel=1e-14)


@pytest.mark.parametrize(
    "matrix",
    [
        [[0, 1.5], [1.5 * (1 + 2e-9), 0]],  # more than noise
        [[0, 0.0, 0.5], [1e-12, 0, 0.5], [0.5, 0.5, 0]],
        [[0, 10**10], [10**10 + 1, 0]],  # whole numbers have none
        [[0.0, 1e10], [1e10 + 1, 0.0]],
        np.array([[0, 1], [2, 0]], dtype=np.uint8),
    ],
)
def test_other_differences_are_asymmetric_and_stay(matrix) -> None:
    instance = tsp(matrix=matrix)
    assert np.array_equal(instance.matrix, np.asarray(matrix))
    assert (instance.symmetric, instance.rich, instance.problem) == (False, True, "atsp")


# --- demand in floats -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.longdouble, np.uint64])
def test_whole_demand_in_any_type(kind: type) -> None:
    demand = np.array([0, 3, 1, 2], kind)
    plain = cvrp(SQUARE, [0, 3, 1, 2], 4)
    assert cvrp(SQUARE, demand, 4) == plain
    assert cvrp(SQUARE, demand, kind(4)) == plain
    direct = Instance(xy=np.array(SQUARE), demand=demand, capacity=4, name="cvrp")
    assert direct == plain
    assert direct.demand is not None
    assert direct.demand.dtype == np.int64
    assert type(direct.capacity) is int


def test_a_float32_stands_for_its_shortest_decimal() -> None:
    demand, capacity, scale = whole_demand(np.array([0, 0.1, 2.25], np.float32), np.float32(2.5))
    assert (demand.tolist(), capacity, scale) == ([0, 10, 225], 250, 100)


# --- equality -------------------------------------------------------------------------------------


def some_instances() -> list[Instance]:
    return [
        tsp(SQUARE),
        tsp(SQUARE, metric="EUC_2D"),
        tsp(SQUARE, name="other"),
        tsp([[0, 0], [0, 3], [4, 3], [4, np.nextafter(0, 1)]]),
        tsp(SQUARE[:3]),
        tsp(SQUARE, fixed_edges=[(0, 1)]),
        tsp([[10.3, 20.15], [1.0, 2.0]], metric="GEO"),
        tsp(matrix=[[0, 2], [2, 0]]),
        tsp([[0, 0], [1, 1]], matrix=[[0, 2], [2, 0]]),
        tsp(matrix=[[0, 2.5], [2.5, 0]]),
        cvrp(SQUARE, [0, 1, 1, 1], 3),
        cvrp(SQUARE, [0, 1, 1, 2], 3),
        cvrp(SQUARE, [0, 1, 1, 1], 4),
        cvrp(SQUARE, [0, 1, 1, 1], 3, vehicles=2),
        cvrp(SQUARE, [0, 1, 1, 1], 3, max_distance=99.5),
        cvrp(SQUARE, [0, 1, 1, 1], 3, max_distance=99.5, service_time=1.0),
        cvrp(SQUARE, [1, 0, 1, 1], 3, depot=1),
        cvrp(SQUARE, [0, 0.1, 0.1, 0.1], 0.3),
        dataclasses.replace(tsp(SQUARE), comment="a square"),
        tsp(SQUARE, names=["a", "b", "c", "d"]),
        tsp(SQUARE, names=["a", "b", "d", "c"]),
        tsp(SQUARE, metric="HAVERSINE"),
        dataclasses.replace(tsp(SQUARE, matrix=np.ones((4, 4))), degrees=True),
        tsp(SQUARE, matrix=np.ones((4, 4))),
    ]


def test_equal_instances_are_those_that_agree_in_everything() -> None:
    for i, one in enumerate(some_instances()):
        for j, other in enumerate(some_instances()):  # built again
            assert (one == other) is (i == j), (one, other)
            assert (one != other) is (i != j)
            assert i != j or hash(one) == hash(other)
    assert len({*some_instances(), *some_instances()}) == len(some_instances())
    assert tsp(SQUARE) != SQUARE
    assert tsp(SQUARE) != Solution([[0, 1, 2, 3]])


COPIES = {
    "pickle": lambda value: pickle.loads(pickle.dumps(value)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}


@pytest.mark.parametrize("again", COPIES.values(), ids=COPIES)
def test_copies_are_equal_and_as_hard_to_change(again) -> None:
    for instance in some_instances():
        made = again(instance)
        assert made == instance
        assert hash(made) == hash(instance)
        assert made.distance(0, 1) == instance.distance(0, 1)  # GEO too
        for array in (made.xy, made.matrix, made.demand, made._radians):
            assert array is None or not array.flags.writeable
    for solution in (Solution([[0, 2, 1]]), Solution([[1], [3, 2]]), Solution([])):
        made = again(solution)
        assert made == solution
        assert hash(made) == hash(solution)
        assert not any(route.flags.writeable for route in made.routes)


def test_equal_solutions_have_the_same_routes_in_the_same_order() -> None:
    plan = Solution([[1, 2], [3]])
    assert plan == Solution([np.array([1, 2], np.int16), (3,), []])
    assert hash(plan) == hash(Solution([[1, 2], [3]]))
    others = ([[1, 2], [4]], [[3], [1, 2]], [[2, 1], [3]], [[1, 2, 3]], [[1], [2, 3]], [])
    assert all(plan != Solution(other) for other in others)
    assert plan != [[1, 2], [3]]


# --- wrong arguments ------------------------------------------------------------------------------

FOUR = cvrp(SQUARE, [0, 1, 1, 1], 3)
TOUR = Solution([[0, 1, 2, 3]])


def plan_of(**changes: object) -> Instance:
    given: dict[str, Any] = {"xy": SQUARE, "demand": [0, 1, 1, 1], "capacity": 3} | changes
    return cvrp(given.pop("xy"), given.pop("demand"), given.pop("capacity"), **given)


WRONG_CALLS: dict[str, tuple[Callable[[], object], str]] = {
    "check of a file": (lambda: check("a.tsp", TOUR), "instance must be an Instance, as drhg.read"),
    "check of nothing": (lambda: check(None, TOUR), "instance must be an Instance"),
    "check swapped": (lambda: check(TOUR, FOUR), "instance must be an Instance"),
    "check of lists": (lambda: check(FOUR, [[1, 2, 3]]), "solution must be a Solution, such as"),
    "check of None": (lambda: check(FOUR, None), "solution must be a Solution"),
    "cost of a file": (lambda: cost("a.tsp", TOUR), "instance must be an Instance"),
    "cost of lists": (lambda: cost(FOUR, [[1, 2, 3]]), "solution must be a Solution"),
    "validated": (lambda: validated(FOUR, [[1, 2, 3]]), "solution must be a Solution"),
    "no routes": (lambda: Solution(None), "routes must be a list of lists of node numbers, not N"),
    "a number of routes": (lambda: Solution(3), "routes must be a list of lists of node numbers"),
    "routes as text": (lambda: Solution("0 1 2"), "routes must be a list of lists"),
    "a tour for routes": (lambda: Solution([0, 1]), "routes: a route is a list of node numbers"),
    "a route of None": (lambda: Solution([None]), "routes: a route is a list of node numbers"),
    "xy number": (lambda: tsp(5), "xy has shape (), expected (n, 2)"),
    "xy text": (lambda: tsp("cities.tsp"), "xy must be an array of numbers, not 'cities.tsp'"),
    "xy file": (lambda: tsp(object()), "xy must be an array of numbers, not <object"),
    "xy dict": (lambda: tsp({0: (1, 2)}), "xy must be an array of numbers"),
    "xy bool": (lambda: tsp([[True, False]]), "xy must be an array of numbers"),
    "xy complex": (lambda: tsp([[1j, 0]]), "xy must be an array of numbers"),
    "matrix text": (lambda: tsp(matrix="a"), "matrix must be an array of numbers, not 'a'"),
    "matrix number": (lambda: tsp(matrix=5), "the distance matrix has shape ()"),
    "metric None": (lambda: tsp(SQUARE, metric=None), "unknown metric None; known: EXACT"),
    "metric list": (lambda: tsp(SQUARE, metric=["GEO"]), "unknown metric ['GEO']; known: EXACT"),
    "metric 2.5": (lambda: tsp(SQUARE, metric=2.5), "unknown metric 2.5; known: EXACT"),
    "name": (lambda: tsp(SQUARE, name=5), "name must be text, not 5"),
    "no name": (lambda: tsp(SQUARE, name=None), "name must be text, not None"),
    "comment": (lambda: Instance(xy=SQUARE, comment=5), "comment must be text, not 5"),
    "fixed None": (lambda: tsp(SQUARE, fixed_edges=None), "fixed_edges must be pairs of nodes"),
    "fixed number": (lambda: tsp(SQUARE, fixed_edges=5), "fixed_edges must be pairs of nodes"),
    "fixed flat": (lambda: tsp(SQUARE, fixed_edges=[0, 1]), "fixed_edges must be pairs of nodes"),
    "fixed words": (
        lambda: tsp(SQUARE, fixed_edges=[("a", "b")]),
        "a node of fixed_edges must be a whole number, not 'a'",
    ),
    "fixed half": (
        lambda: tsp(SQUARE, fixed_edges=[(0, 1.5)]),
        "a node of fixed_edges must be a whole number, not 1.5",
    ),
    "demand None": (lambda: plan_of(demand=None), "demand must be an array of numbers, not None"),
    "demand number": (lambda: plan_of(demand=3), "demand has shape ()"),
    "demand text": (lambda: plan_of(demand="a"), "demand must be an array of numbers, not 'a'"),
    "demand ragged": (lambda: plan_of(demand=[[0], [1, 2]]), "demand must be an array of numbers"),
    "demand with None": (lambda: plan_of(demand=[0, None, 1, 1]), "demand must be numbers"),
    "demand nan": (lambda: plan_of(demand=[0, math.nan, 1, 1]), "demand must be finite"),
    "capacity text": (lambda: plan_of(capacity="a"), "capacity must be a finite number, not 'a'"),
    "capacity None": (lambda: plan_of(capacity=None), "capacity must be a finite number, not None"),
    "capacity nan": (lambda: plan_of(capacity=math.nan), "capacity must be a finite number"),
    "capacity huge": (lambda: plan_of(capacity=10**400), "capacity must be a finite number"),
    "capacity list": (lambda: plan_of(capacity=[3]), "capacity must be a finite number, not [3]"),
    "capacity True": (lambda: plan_of(capacity=True), "capacity must be a finite number, not True"),
    "capacity third": (lambda: plan_of(capacity=10 / 3), "demand or capacity is not a decimal"),
    "vehicles half": (lambda: plan_of(vehicles=2.5), "vehicles must be a whole number, not 2.5"),
    "vehicles text": (lambda: plan_of(vehicles="2"), "vehicles must be a whole number, not '2'"),
    "vehicles nan": (lambda: plan_of(vehicles=math.nan), "vehicles must be a whole number"),
    "vehicles digits": (lambda: plan_of(vehicles="9" * 99), "vehicles must be a whole number"),
    "depot text": (lambda: plan_of(depot="a"), "depot must be a whole number, not 'a'"),
    "depot None": (lambda: plan_of(depot=None), "depot must be a whole number, not None"),
    "depot half": (lambda: plan_of(depot=0.5), "depot must be a whole number, not 0.5"),
    "depot negative": (lambda: plan_of(depot=-1), "depot -1 is not one of the nodes 0 .. 3"),
    "limit text": (lambda: plan_of(max_distance="a"), "max_distance must be a finite number >= 0"),
    "limit inf": (lambda: plan_of(max_distance=math.inf), "max_distance must be a finite number"),
    "service None": (lambda: plan_of(service_time=None), "service_time must be a finite number"),
    "service list": (lambda: plan_of(service_time=[1]), "service_time has shape (1,)"),
    "instance demand": (lambda: Instance(xy=SQUARE, demand="a", capacity=3), "demand must be an"),
    "instance capacity": (
        lambda: dataclasses.replace(FOUR, capacity=3.5),
        "capacity must be a whole number, not 3.5",
    ),
    "instance scale": (
        lambda: dataclasses.replace(FOUR, demand_scale="a"),
        "demand_scale must be a whole number, not 'a'",
    ),
    "instance scale of digits": (
        lambda: dataclasses.replace(FOUR, demand_scale=10**5000),
        "demand_scale must be a power of ten, not ",
    ),
    "instance vehicles": (
        lambda: dataclasses.replace(FOUR, vehicles=2.5),
        "vehicles must be a whole number, not 2.5",
    ),
}


@pytest.mark.parametrize(("call", "words"), WRONG_CALLS.values(), ids=WRONG_CALLS)
def test_wrong_arguments_are_named(call: Callable[[], object], words: str) -> None:
    with pytest.raises((InstanceError, SolutionError)) as caught:
        call()
    assert str(caught.value).startswith(words)
    assert len(str(caught.value)) < 300


def test_whole_numbers_come_in_many_types() -> None:
    plain = plan_of(vehicles=2, depot=0, max_distance=50.0, service_time=1.0)
    for kind in (float, np.int8, np.float32, Decimal, Fraction):
        same = plan_of(
            capacity=kind(3),
            vehicles=kind(2),
            depot=kind(0),
            max_distance=kind(50),
            service_time=kind(1),
        )
        assert same == plain
        assert type(same.vehicles) is int
        assert type(same.max_distance) is float


# --- names and the globe --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["a", "b"], "2 names for 4 nodes"),
        (["a", "b", "a", "c"], "nodes 0 and 2 (counted from 0) are both called 'a'"),
        (["a", " ", "b", "c"], "the name of node 1 (counted from 0) must be text, not ' '"),
        ([1, 2, 3, 4], "the name of node 0 (counted from 0) must be text, not 1"),
        ("abcd", "names must be a list of texts"),
    ],
)
def test_names_that_cannot_be_are_refused(names: object, words: str) -> None:
    with pytest.raises(InstanceError, match=re.escape(words)):
        tsp(SQUARE, names=names)


def test_messages_call_nodes_by_their_names() -> None:
    instance = cvrp(SQUARE, [0, 1, 1, 1], 3, names=["depot", "mill", "ford", "church"])
    assert check(instance, Solution([[1, 2, 2]])) == [
        "'church' is not visited",
        "'ford' is visited 2 times",
    ]


def test_degrees_are_refused_off_the_globe_and_where_they_mean_nothing() -> None:
    with pytest.raises(InstanceError, match=r"node 1 .* latitude 95 \(-90 .. 90\)"):
        tsp([[0, 0], [95, 0]], metric="HAVERSINE")
    with pytest.raises(InstanceError, match=r"longitude 181"):
        tsp([[0, 0], [9, 181]], metric="HAVERSINE")
    with pytest.raises(InstanceError, match="not with metric EUC_2D"):
        dataclasses.replace(tsp(SQUARE, metric="EUC_2D"), degrees=True)


@pytest.mark.parametrize("where", [(48.1, 11.6), (-17.0, 180.0), (89.9, 30.0), (0.0, -180.0)])
def test_the_plane_of_a_region_has_its_distances(where: tuple[float, float]) -> None:
    """In a city, at the date line and beside a pole: as good as flat."""
    rng = np.random.default_rng(1)
    step = rng.uniform(-0.08, 0.08, (50, 2))
    latitude = where[0] + step[:, 0]
    longitude = where[1] + step[:, 1] / max(0.01, np.cos(np.radians(where[0])))
    city = tsp(np.stack([latitude, (longitude + 180) % 360 - 180], axis=1), metric="HAVERSINE")
    assert city.plane is not None
    flat = np.hypot(*(city.plane[:, None] - city.plane).transpose(2, 0, 1))
    nodes = np.arange(50)
    np.testing.assert_allclose(flat, city.distance(nodes[:, None], nodes), rtol=1e-4, atol=1e-6)
    north = np.argmax(city.xy[:, 0])
    if where[0] < 80:
        assert north == np.argmax(city.plane[:, 1])

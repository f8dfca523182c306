"""Instances, metrics, solutions and the checker, against the definitions."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import reference

import drhg
from drhg.errors import InstanceError, SolutionError
from drhg.problem import Instance, Metric, Solution, check, cost, cvrp, tsp, validated, whole_demand

SQUARE = [[0, 0], [0, 3], [4, 3], [4, 0]]


def points(metric: Metric, rng: np.random.Generator) -> np.ndarray:
    """60 points, among them equal ones and many at half-integer distances."""
    if metric is Metric.GEO:
        degrees = np.stack([rng.integers(-89, 90, 60), rng.integers(-179, 180, 60)], axis=1)
        xy = degrees + np.sign(degrees) * rng.integers(0, 60, (60, 2)) / 100
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
    from drhg.compiled import distance, space_of

    instance = instance_of(metric, seed)
    n = instance.n
    expected = np.array([[reference.distance(instance, i, j) for j in range(n)] for i in range(n)])
    grid = instance.distance(np.arange(n)[:, None], np.arange(n)[None, :])
    assert (grid != expected).sum() == 0
    assert all(instance.distance(i, 5) == expected[i, 5] for i in range(n))
    space = space_of(instance)
    compiled = np.array([[distance(space, i, j) for j in range(n)] for i in range(n)])
    assert (compiled != expected).sum() == 0


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
    "matrix asymmetric": (
        lambda: tsp(matrix=[[0, 1], [2, 0]]),
        "not symmetric (nodes 0 and 1 (counted from 0))",
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
    "fixed in a cvrp": (
        lambda: dataclasses.replace(cvrp(SQUARE, [0, 1, 1, 1], 3), fixed_edges=((1, 2),)),
        "fixed edges are supported for the TSP only",
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

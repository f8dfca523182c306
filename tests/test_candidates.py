"""Candidate lists: the nearest nodes, those of every quadrant, those of the triangulation."""

from __future__ import annotations

import numpy as np
import pytest
import reference as ref
from hypothesis import given, settings
from hypothesis import strategies as st
from soak import upto

from drhg.hypergraph.nearness import Nearness
from drhg.local_search.candidates import candidate_lists, delaunay_lists, neighbour_lists
from drhg.local_search.params import MoveParams
from drhg.problem import Instance, Metric, cvrp, tsp


@st.composite
def instances(draw: st.DrawFn, least: int = 1) -> Instance:
    n = draw(st.integers(least, 60))
    shape = draw(st.sampled_from(ref.SHAPES))
    metric = draw(st.sampled_from(list(Metric)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    return ref.random_tour(rng, n, shape, metric, 0.0)[0]


@settings(max_examples=upto(300))
@given(instances(), st.integers(1, 12), st.booleans(), st.integers(0, 2**32))
def test_neighbours_are_the_nearest_others(
    instance: Instance, k: int, routes: bool, seed: int
) -> None:
    if routes:
        rng = np.random.default_rng(seed)
        instance, _ = ref.random_plan(rng, instance.n, "twins", instance.metric)
    n = instance.n
    nodes = [i for i in range(n) if not (instance.is_cvrp and i == instance.depot)]
    lists = neighbour_lists(instance, Nearness(instance), k)
    assert lists.dtype == np.int32
    assert lists.shape == (n, min(k, len(nodes) - 1))
    for i, row in enumerate(lists.tolist()):
        assert i not in row
        assert len(set(row)) == len(row)
        assert set(row) <= set(nodes)
        expected = sorted(ref.closeness(instance, i, j) for j in nodes if j != i)[: len(row)]
        far = [ref.closeness(instance, i, j) for j in row]
        assert far == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_routes_have_neighbours_too_and_never_the_depot() -> None:
    instance = cvrp([[0, 0], [1, 0], [2, 0], [4, 0]], [0, 1, 1, 1], 3)
    lists = neighbour_lists(instance, Nearness(instance), 9)
    assert lists.tolist() == [[1, 2], [2, 3], [1, 3], [2, 1]]
    alone = cvrp([[0, 0], [1, 0]], [0, 1], 3)
    assert neighbour_lists(alone, Nearness(alone), 10).shape == (2, 0)


@settings(max_examples=upto(100), deadline=None)
@given(instances(least=2), st.integers(1, 10))
def test_candidates_are_nearest_all_around_and_beside(instance: Instance, k: int) -> None:
    nearness, params = Nearness(instance), MoveParams(candidates=k)
    wide = neighbour_lists(instance, nearness, params.quadrant_candidates * k).tolist()
    beside = [[]] * instance.n
    if instance.metric not in (Metric.GEO, Metric.EXPLICIT):
        beside = [[j for j in row if j >= 0] for row in delaunay_lists(instance, k).tolist()]
    lists = candidate_lists(instance, nearness, params)
    assert lists.shape == (instance.n, min(k, instance.n - 1))
    for i, row in enumerate(lists.tolist()):
        expected = ref.candidates(instance, i, wide[i], beside[i], k)
        assert len(set(row)) == len(row)
        assert set(row) == set(expected)
        far = [ref.distance(instance, i, j) for j in row]
        assert far == pytest.approx([ref.distance(instance, i, j) for j in expected])


@pytest.mark.parametrize("seed", range(20))
def test_beside_are_the_neighbours_of_delaunay(seed: int) -> None:
    rng = np.random.default_rng(seed)
    instance = tsp(rng.random((5 + seed, 2)))
    lists = delaunay_lists(instance, instance.n)
    found = {frozenset((i, j)) for i, row in enumerate(lists.tolist()) for j in row if j >= 0}
    assert found == ref.delaunay_edges(instance.xy)
    for i, row in enumerate(lists.tolist()):
        far = [ref.distance(instance, i, j) for j in row if j >= 0]
        assert far == sorted(far)


def test_points_without_a_triangulation_have_nobody_beside() -> None:
    line = tsp([[x, 2 * x] for x in range(60)])
    assert (delaunay_lists(line, 5) == -1).all()
    same = tsp(np.zeros((60, 2)))
    assert (delaunay_lists(same, 5) == -1).all()
    for instance in (line, same):
        assert candidate_lists(instance, Nearness(instance)).shape == (60, 10)


def test_candidates_leave_a_cluster() -> None:
    """Groups of sixty nodes far apart: nobody's nearest is in another group, yet all join."""
    rng = np.random.default_rng(4)
    middles = 1000.0 * np.array([[0, 0], [1, 0], [0, 1], [1, 1]])
    instance = tsp(np.concatenate([middle + rng.random((60, 2)) for middle in middles]))
    group = np.arange(240) // 60
    lists = candidate_lists(instance, Nearness(instance))
    joined = {(int(group[i]), int(group[j])) for i, row in enumerate(lists) for j in row}
    assert {(0, 1), (0, 2), (1, 3), (2, 3)} <= joined

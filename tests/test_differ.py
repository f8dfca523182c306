"""Where two solutions differ, and parts of one taken over by the other, beside the plain way."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st

import drhg
from drhg.hypergraph.differ import as_in, differences
from drhg.hypergraph.judge import judge
from drhg.hypergraph.plan import plan_of, rules_of, solution_of
from drhg.hypergraph.reduce import reduce
from drhg.hypergraph.restore import restore
from drhg.problem import Metric

SHAPES = ("random", "grid", "twins", "equal")
METRICS = (Metric.EXACT, Metric.EUC_2D, Metric.GEO)


def changed(rng: np.random.Generator, routes: list[list[int]], moves: int) -> list[list[int]]:
    """Routes after some reversals and relocations; no empty ones."""
    found = [list(route) for route in routes]
    for _ in range(moves):
        route = found[rng.integers(len(found))]
        other = found[rng.integers(len(found))]
        if rng.random() < 0.5 or not route:
            a, b = sorted(rng.integers(0, len(route) + 1, 2))
            route[a:b] = route[a:b][::-1]
        else:
            node = route.pop(rng.integers(len(route)))
            other.insert(rng.integers(len(other) + 1), node)
    return [route for route in found if route]


@settings(max_examples=300)
@given(
    seed=st.integers(0, 2**32 - 1), is_cvrp=st.booleans(), moves=st.integers(0, 6),
    shape=st.sampled_from(SHAPES), metric=st.sampled_from(METRICS),
)  # fmt: skip
def test_components_are_those_of_the_plain_way(
    seed: int, is_cvrp: bool, moves: int, shape: str, metric: Metric
) -> None:
    rng = np.random.default_rng(seed)
    if is_cvrp:
        instance, ours = reference.random_plan(rng, int(rng.integers(2, 25)), shape, metric)
    else:
        instance, tour = reference.random_tour(rng, int(rng.integers(4, 30)), shape, metric)
        ours = [tour]
    theirs = changed(rng, ours, moves)
    rules = rules_of(instance)
    plan, other = (plan_of(rules, drhg.Solution([*map(np.array, r)])) for r in (ours, theirs))
    found = differences(rules, plan, other)
    expected = reference.differences(instance, ours, theirs)
    assert len(found) == len(expected)
    for component in range(len(found)):
        cuts = found.of(component)
        ends = plan.order[cuts], plan.order[(cuts + 1) % len(plan.order)]
        gone = Counter(frozenset(map(int, edge)) for edge in zip(*ends, strict=True))
        theirs_here, change = expected[frozenset(gone)]
        assert found.change[component] == pytest.approx(change, abs=1e-9)
        graphs = reduce(rules, plan, cuts[None, :], np.array([len(cuts)], np.int32))
        repaired = as_in(rules, plan, graphs, other)
        wanted = reference.edges_of(instance, ours) - gone + theirs_here
        assert (repaired is not None) == reference.connected(instance, wanted)
        if repaired is None or not judge(rules, plan, graphs, repaired)[0][0]:
            continue  # of routes: too much load
        after = restore(rules, plan, graphs, 0, repaired)
        routes = [route.tolist() for route in solution_of(rules, after).routes]
        assert reference.edges_of(instance, routes) == wanted
        assert judge(rules, plan, graphs, repaired)[1][0] == pytest.approx(change, abs=1e-9)
        assert drhg.check(instance, solution_of(rules, after)) == []


@given(seed=st.integers(0, 2**32 - 1), is_cvrp=st.booleans())
def test_all_components_together_make_the_other_solution(seed: int, is_cvrp: bool) -> None:
    rng = np.random.default_rng(seed)
    if is_cvrp:
        instance, ours = reference.random_plan(rng, 20, "random", Metric.EXACT)
    else:
        instance, tour = reference.random_tour(rng, 20, "random", Metric.EXACT)
        ours = [tour]
    theirs = changed(rng, ours, 8)
    rules = rules_of(instance)
    plan, other = (plan_of(rules, drhg.Solution([*map(np.array, r)])) for r in (ours, theirs))
    found = differences(rules, plan, other)
    cuts = np.sort(found.cuts)[None, :]
    graphs = reduce(rules, plan, cuts, np.array([cuts.shape[1]], np.int32))
    repaired = as_in(rules, plan, graphs, other)
    assert repaired is not None
    after = restore(rules, plan, graphs, 0, repaired)
    routes = [route.tolist() for route in solution_of(rules, after).routes]
    assert reference.edges_of(instance, routes) == reference.edges_of(instance, theirs)

"""Sequences of customers: crossed, cut at the least cost, measured, compared."""

from __future__ import annotations

import numpy as np
import pytest
import reference as ref
from hypothesis import given, settings
from hypothesis import strategies as st
from penalised import SEEDS, Case, laid, lists, problems
from soak import upto

from drhg.kernels.random import random_state
from drhg.search.routes.penalties import Penalties, RouteLimits, penalised_problem
from drhg.search.routes.sequences import broken_pairs, measure, neighbours_of, order_crossover
from drhg.search.routes.split import split


@settings(max_examples=upto(300))
@given(problems(most=9), SEEDS)
def test_a_sequence_is_cut_at_the_least_cost(case: Case, seed: int) -> None:
    problem, penalties, slots, _ = case
    order = np.random.default_rng(seed).permutation(len(problem.demand)).astype(np.int32)
    found = lists(order, split(problem, order, slots, penalties, 1.5))
    assert len(found) <= slots
    assert [i for route in found for i in route] == order.tolist()
    ways = list(ref.splits(order.tolist(), slots))
    most = 1.5 * problem.limits.load
    usual = [w for w in ways if all(problem.demand[r].sum() <= most or len(r) == 1 for r in w)]
    best = min(ref.penalised(problem, way, penalties) for way in usual or ways)
    assert ref.penalised(problem, found, penalties) == pytest.approx(best, rel=1e-9, abs=1e-9)


@settings(max_examples=upto(300))
@given(problems())
def test_what_a_plan_is_beyond_its_limits_is_measured(case: Case) -> None:
    problem, penalties, _, routes = case
    total, load, length = measure(problem, *laid(routes))
    assert total == pytest.approx(ref.penalised(problem, routes, Penalties(0.0, 0.0)))
    whole = total + penalties.load * load + penalties.length * length
    assert whole == pytest.approx(ref.penalised(problem, routes, penalties))


@settings(max_examples=upto(200))
@given(st.integers(1, 20), SEEDS)
def test_a_child_keeps_a_stretch_of_one_and_the_order_of_the_other(m: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    first, second = (rng.permutation(m).astype(np.int32) for _ in range(2))
    child = order_crossover(first, second, random_state(seed)).tolist()
    assert sorted(child) == list(range(m))

    def fits(begin: int, size: int) -> bool:
        kept = [(begin + i) % m for i in range(size)]
        rest = [(begin + size + i) % m for i in range(m - size)]
        inside = {int(first[i]) for i in kept}
        turned = np.roll(second, -(begin + size)).tolist()
        return [child[i] for i in kept] == [int(first[i]) for i in kept] and [
            child[i] for i in rest
        ] == [x for x in turned if x not in inside]

    assert any(fits(begin, size) for begin in range(m) for size in range(1, m + 1))


def test_neighbours_are_mutual_and_sorted() -> None:
    rng = np.random.default_rng(1)
    points = rng.random((31, 2))
    matrix = np.hypot(*(points[:, None] - points[None]).transpose(2, 0, 1))
    near = np.argsort(matrix[:30, :30] + np.diag(np.full(30, np.inf)), axis=1)[:, :4]
    limits = RouteLimits(10.0, np.inf, 0.0)
    problem = penalised_problem(matrix, np.ones(30, np.int64), near.astype(np.int32), limits)
    for u in range(30):
        row = [v for v in problem.near[u].tolist() if v >= 0]
        assert set(row) == set(near[u].tolist()) | {v for v in range(30) if u in near[v]}
        assert row == sorted(row, key=lambda v: matrix[u, v])


@pytest.mark.parametrize("seed", range(50))
def test_differences_are_those_of_the_definition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    m, rows = int(rng.integers(1, 12)), 4
    after, before = np.empty((rows, m), np.int32), np.empty((rows, m), np.int32)
    plans = []
    for row in range(rows):
        order = rng.permutation(m).astype(np.int32)
        ends = np.append(np.flatnonzero(rng.random(m - 1) < 0.4) + 1, m).astype(np.int32)
        plans.append([route.tolist() for route in np.split(order, ends[:-1])])
        after[row], before[row] = neighbours_of(order, ends)
    for row in range(rows):
        expected = [ref.broken_pairs(plans[row], other) for other in plans]
        assert broken_pairs(after, before, row).tolist() == pytest.approx(expected)

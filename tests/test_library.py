"""Library repair: hyper-edges are kept, bad answers dropped, forced matrices whole and in range."""

from __future__ import annotations

import numpy as np
import pytest
import reference as ref
from hypothesis import given, settings
from hypothesis import strategies as st

import drhg
from drhg import library
from drhg.errors import DrhgError
from drhg.hypergraph import (
    Graphs,
    Nearness,
    destroy_nearest,
    judge,
    plan_of,
    present,
    reduce,
    rules_of,
)
from drhg.problem import Instance, Metric, Solution
from drhg.repair import InsertionRepair, LocalSearchRepair

METRICS = [Metric.EXACT, Metric.EUC_2D, Metric.GEO, Metric.EXPLICIT]


def graphs_of(rng: np.random.Generator, n: int, metric: Metric, k: int, rows: int = 2):
    instance, tour = ref.random_tour(rng, n, "uniform", metric, 0.2)
    rules = rules_of(instance)
    plan = plan_of(rules, Solution([tour]))
    ranked = Nearness(instance).around(rng.choice(n, rows), min(k, n))
    return instance, rules, plan, reduce(rules, plan, *destroy_nearest(rules, plan, ranked, k))


def exact_solver(matrix: np.ndarray, seconds: float, threads: int) -> list[int]:
    """All orders of a small matrix."""
    instance = drhg.tsp(matrix=matrix)
    return ref.best_tour(instance)[1]


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32), st.sampled_from(METRICS))
def test_a_perfect_solver_never_makes_a_region_worse(seed: int, metric: Metric) -> None:
    rng = np.random.default_rng(seed)
    _, rules, plan, graphs = graphs_of(rng, 9, metric, 2)
    if graphs.size.max() > 8:
        return
    repair = library.LibraryRepair("fast_tsp")
    repair.solve = exact_solver
    good, change = judge(rules, plan, graphs, repair(rules, graphs, rng))
    assert good.all()
    slack = 1e-3 * graphs.cut_cost  # what rounding to whole numbers may cost
    assert (change <= slack + 1e-9).all()


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32), st.sampled_from(METRICS), st.sampled_from(["twice", "lost", "short"]))
def test_bad_answers_are_dropped(seed: int, metric: Metric, fault: str) -> None:
    rng = np.random.default_rng(seed)
    _, rules, plan, graphs = graphs_of(rng, 40, metric, 12)

    def broken(matrix: np.ndarray, seconds: float, threads: int) -> list[int]:
        order = np.arange(len(matrix))
        if fault == "twice":
            order[0] = order[1]
        return list(order[:-1] if fault == "short" else rng.permutation(order))

    repair = library.LibraryRepair("fast_tsp")
    repair.solve = broken
    good, change = judge(rules, plan, graphs, repair(rules, graphs, rng))
    assert good.all()  # a lost hyper-edge would not be
    if fault != "lost":
        assert np.allclose(change, 0)


@pytest.mark.parametrize("metric", METRICS)
def test_the_matrix_is_whole_and_forces_hyper_edges(metric: Metric) -> None:
    rng = np.random.default_rng(4)
    _, rules, _, graphs = graphs_of(rng, 60, metric, 25, 1)
    m = int(graphs.size[0])
    node, partner = graphs.node[0, :m], graphs.partner[0, :m]
    far = 4.0 * library._longest(rules.space, node, partner)
    matrix = library._matrix(rules.space, node, partner, far)
    assert (matrix == matrix.T).all()
    assert (np.diag(matrix) == 0).all()
    assert matrix.max() <= library.LARGEST
    for i in range(m):
        for j in range(m):
            if i == j or partner[i] == j:
                assert matrix[i, j] == 0
            else:
                assert matrix[i, j] >= library.FORCE


def test_fast_tsp_improves_a_poor_tour() -> None:
    pytest.importorskip("fast_tsp")
    instance = drhg.uniform_tsp(300, seed=1)
    result = drhg.solve(instance, repair="library", k=(80, 120), max_iters=12, seed=1, threads=1)
    assert result.cost < 0.98 * result.trace[0].cost
    assert drhg.check(instance, result.solution) == []


def test_orders_of_one_repairer_are_the_start_of_the_next() -> None:
    rng = np.random.default_rng(2)
    _, rules, plan, graphs = graphs_of(rng, 80, Metric.EXACT, 30, 3)
    made = InsertionRepair()(rules, graphs, np.random.default_rng(1))
    expected = judge(rules, plan, graphs, made)[1]
    chained = library.Polished(InsertionRepair(), lambda rules, graphs, rng: present(graphs))
    same = judge(rules, plan, graphs, chained(rules, graphs, np.random.default_rng(1)))
    assert same[0].all()
    assert np.allclose(same[1], expected)
    polished = library.Polished(InsertionRepair(), LocalSearchRepair())
    good, change = judge(rules, plan, graphs, polished(rules, graphs, np.random.default_rng(1)))
    assert good.all()
    assert (change <= expected + 1e-9).all()
    assert change.sum() < expected.sum() - 1e-6


def test_reordered_graphs_are_the_same_graphs() -> None:
    rng = np.random.default_rng(5)
    _, _, _, graphs = graphs_of(rng, 50, Metric.EXACT, 15, 2)

    def items(graphs: Graphs, row: int) -> set[tuple[int, int, int, int]]:
        size = int(graphs.size[row])
        node, partner = graphs.node[row], graphs.partner[row]
        return {
            (int(node[i]), int(node[partner[i]]), int(graphs.at[row, i]), int(graphs.far[row, i]))
            for i in range(size)
        }

    order = present(graphs).order.copy()
    for row in range(2):
        size = int(graphs.size[row])
        order[row, :size] = rng.permutation(size)
    turned = library.reordered(graphs, order)
    for row in range(2):
        assert items(turned, row) == items(graphs, row)
        size = int(graphs.size[row])
        assert turned.node[row, :size].tolist() == graphs.node[row, order[row, :size]].tolist()


def _routes() -> Instance:
    return drhg.uniform_cvrp(20, seed=1)


@pytest.mark.parametrize("repair", ["library", "hybrid"])
def test_routes_are_refused(repair: str) -> None:
    with pytest.raises(DrhgError, match="tours"):
        drhg.solve(_routes(), repair=repair, max_iters=1)


def test_unknown_and_absent_libraries_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DrhgError, match="known: fast_tsp"):
        library.LibraryRepair("nonsense")
    monkeypatch.setattr(library, "import_module", lambda name: (_ for _ in ()).throw(ImportError))
    with pytest.raises(DrhgError, match="pip install elkai"):
        library.LibraryRepair("elkai")


def test_hybrid_starts_from_the_network() -> None:
    instance = drhg.uniform_tsp(100, seed=3)
    hybrid = drhg.solve(instance, repair="hybrid", max_iters=30, seed=1, threads=1)
    alone = drhg.solve(instance, repair="neural", max_iters=30, seed=1, threads=1)
    assert hybrid.cost < alone.cost

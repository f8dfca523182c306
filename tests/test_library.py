"""Library repair: hyper-edges are kept, bad answers dropped, forced matrices whole and in range."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import reference as ref
from hypothesis import given, settings
from hypothesis import strategies as st

import drhg
from drhg.errors import DrhgError
from drhg.hypergraph.cut import destroy_nearest
from drhg.hypergraph.judge import Repaired, judge, present, walk
from drhg.hypergraph.nearness import Nearness
from drhg.hypergraph.plan import Rules, plan_of, rules_of, solution_of
from drhg.hypergraph.reduce import Graphs, reduce
from drhg.hypergraph.restore import restore
from drhg.problem import Metric, Solution
from drhg.repair import library, solvers
from drhg.repair.combined import RepairSequence, reordered
from drhg.repair.insertion import InsertionRepair
from drhg.repair.local import LocalSearchRepair

METRICS = [Metric.EXACT, Metric.EUC_2D, Metric.GEO, Metric.EXPLICIT]


def graphs_of(rng: np.random.Generator, n: int, metric: Metric, k: int, rows: int = 2):
    instance, tour = ref.random_tour(rng, n, "uniform", metric, 0.2)
    rules = rules_of(instance)
    plan = plan_of(rules, Solution([tour]))
    ranked = Nearness(instance).around(rng.choice(n, rows), min(k, n))
    return instance, rules, plan, reduce(rules, plan, *destroy_nearest(rules, plan, ranked, k))


def plan_graphs(rng: np.random.Generator, n: int, k: int, depot_edges: str, **limits: bool):
    instance, routes = ref.random_plan(rng, n, "uniform", Metric.EXACT, **limits)
    rules = rules_of(instance)
    plan = plan_of(rules, Solution(routes))
    nearness = Nearness(instance)
    ranked = nearness.around(rng.choice(nearness.nodes, 2), k)
    cuts = destroy_nearest(rules, plan, ranked, k, depot_edges=depot_edges)
    return instance, rules, plan, reduce(rules, plan, *cuts)


def answering(solve: Callable[[solvers.SmallProblem], list[list[int]]]) -> library.LibraryRepair:
    """A repairer whose solver is a function."""
    repair = library.LibraryRepair("fast_tsp")
    repair.solver = solvers.Solver(lambda small, *_: lambda: solve(small), True, True)
    return repair


def exact_solver(small: solvers.SmallProblem) -> list[list[int]]:
    """All orders of a small matrix."""
    return [ref.best_tour(drhg.tsp(matrix=small.matrix))[1]]


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32), st.sampled_from(METRICS))
def test_a_perfect_solver_never_makes_a_region_worse(seed: int, metric: Metric) -> None:
    rng = np.random.default_rng(seed)
    _, rules, plan, graphs = graphs_of(rng, 9, metric, 2)
    if graphs.size.max() > 8:
        return
    repair = answering(exact_solver)
    good, change = judge(rules, plan, graphs, repair(rules, graphs, rng))
    assert good.all()
    slack = 1e-3 * graphs.cut_cost  # what rounding to whole numbers may cost
    assert (change <= slack + 1e-9).all()


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32), st.sampled_from(METRICS), st.sampled_from(["twice", "lost", "short"]))
def test_bad_answers_are_dropped(seed: int, metric: Metric, fault: str) -> None:
    rng = np.random.default_rng(seed)
    _, rules, plan, graphs = graphs_of(rng, 40, metric, 12)

    def broken(small: solvers.SmallProblem) -> list[list[int]]:
        order = np.arange(len(small.matrix))
        if fault == "twice":
            order[0] = order[1]
        return [list(order[:-1] if fault == "short" else rng.permutation(order))]

    repair = answering(broken)
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
    assert matrix.max() <= library.LARGEST_NUMBER
    for i in range(m):
        for j in range(m):
            if i == j or partner[i] == j:
                assert matrix[i, j] == 0
            else:
                assert matrix[i, j] >= library.PENALTY


def test_fast_tsp_improves_a_poor_tour() -> None:
    pytest.importorskip("fast_tsp")
    instance = drhg.uniform_tsp(300, seed=1)
    result = drhg.solve(
        instance,
        method=drhg.Regions(drhg.Covering((80, 120)), drhg.Library()),
        max_iters=12,
        seed=1,
        threads=1,
    )
    assert result.cost < 0.98 * result.trace[0].cost
    assert drhg.check(instance, result.solution) == []


def test_orders_of_one_repairer_are_the_start_of_the_next() -> None:
    rng = np.random.default_rng(2)
    _, rules, plan, graphs = graphs_of(rng, 80, Metric.EXACT, 30, 3)
    made = InsertionRepair()(rules, graphs, np.random.default_rng(1))
    expected = judge(rules, plan, graphs, made)[1]
    chained = RepairSequence(InsertionRepair(), lambda rules, graphs, rng: present(graphs))
    same = judge(rules, plan, graphs, chained(rules, graphs, np.random.default_rng(1)))
    assert same[0].all()
    assert np.allclose(same[1], expected)
    polished = RepairSequence(InsertionRepair(), LocalSearchRepair())
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
    turned = reordered(graphs, Repaired(order, graphs.via))
    for row in range(2):
        assert items(turned, row) == items(graphs, row)
        size = int(graphs.size[row])
        assert turned.node[row, :size].tolist() == graphs.node[row, order[row, :size]].tolist()


EDGES = st.sampled_from(["adjacent", "touched", "all"])


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32), EDGES, st.booleans(), st.booleans())
def test_the_small_problem_of_routes_is_the_region(
    seed: int, depot_edges: str, limit: bool, fleet: bool
) -> None:
    """The present routes cost in it what they cost, plus the same for every way to keep pieces."""
    rng = np.random.default_rng(seed)
    _, rules, _, graphs = plan_graphs(rng, 14, 4, depot_edges, limit=limit, fleet=fleet)
    for row in range(len(graphs)):
        m = int(graphs.size[row])
        small, mate = library._small_problem(rules, graphs, row)
        assert small.start is not None
        assert small.demand is not None
        assert (small.matrix == small.matrix.T).all()
        force = 4 * np.rint(solvers.LONGEST_DISTANCE) + 2
        priced = sum(
            int(small.matrix[a, b])
            for route in small.start
            for a, b in zip([0, *route], [*route, 0], strict=True)
        )
        ends = int((mate[1 : m + 1] >= 0).sum())
        scale = (
            solvers.LONGEST_DISTANCE
            / library._between(rules.space, _nodes(rules, graphs, row)).max()
        )
        real = walk(rules, graphs, present(graphs))[1][row]
        assert (priced - ends * (force // 2)) / scale == pytest.approx(real, abs=1e-4 * real + 1e-9)
        assert all(small.demand[route].sum() <= rules.capacity for route in small.start)
        if small.lengths is not None:
            assert small.service is not None
            for route in small.start:
                steps = small.lengths[[0, *route], [*route, 0]].sum()
                assert steps + small.service[route].sum() <= small.max_length
        found = library._with_stubs([list(route) for route in small.start], mate, m)
        assert found is not None
        assert (found[0] == np.arange(m)).all()
        assert (found[1] == graphs.via[row, :m]).all()


def _nodes(rules: Rules, graphs: Graphs, row: int) -> np.ndarray:
    return np.concatenate(([rules.depot], graphs.node[row, : graphs.size[row]]))


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32), EDGES, st.booleans(), st.booleans(),
       st.sampled_from(["shuffled", "lost", "twice", "strange", "dead"]))  # fmt: skip
def test_bad_routes_are_dropped(
    seed: int, depot_edges: str, limit: bool, fleet: bool, fault: str
) -> None:
    rng = np.random.default_rng(seed)
    _, rules, plan, graphs = plan_graphs(rng, 30, 10, depot_edges, limit=limit, fleet=fleet)

    def broken(small: solvers.SmallProblem) -> list[list[int]]:
        assert small.start is not None
        routes = [list(route) for route in small.start]
        if fault == "shuffled":
            places = rng.permutation(np.arange(1, len(small.matrix)))
            return [part.tolist() for part in np.array_split(places, len(routes))]
        if fault == "lost":
            return routes[1:]
        if fault == "twice":
            return [*routes, routes[0]]
        if fault == "strange":
            return [*routes[1:], [0, -3, 999]]
        raise ValueError("no idea")

    good, change = judge(rules, plan, graphs, answering(broken)(rules, graphs, rng))
    assert good.all()
    assert (change <= 1e-9).all()
    if fault != "shuffled":
        assert np.allclose(change, 0)


@pytest.mark.parametrize("name", ["pyvrp", "hygese", "ortools"])
@pytest.mark.parametrize("depot_edges", ["adjacent", "touched"])
def test_libraries_improve_regions_of_poor_routes(name: str, depot_edges: str) -> None:
    pytest.importorskip(name)
    rng = np.random.default_rng(3)
    gained = 0.0
    for limits in ({}, {"limit": True}, {"fleet": True}):
        _, rules, plan, graphs = plan_graphs(rng, 40, 15, depot_edges, **limits)
        repair = library.LibraryRepair(name, seconds=0.05)
        good, change = judge(rules, plan, graphs, repair(rules, graphs, rng))
        assert good.all()
        assert (change <= 1e-9).all()
        gained -= change.sum()
    assert gained > 1e-3


@pytest.mark.parametrize("name", ["pyvrp", "hygese"])
@pytest.mark.parametrize("customers", [1, 2, 3, 4, 5])
def test_tiny_routes_do_not_hang(name: str, customers: int) -> None:
    pytest.importorskip(name)
    instance = drhg.uniform_cvrp(customers, seed=1)
    result = drhg.solve(
        instance, method=drhg.Regions(repair=drhg.Library(name)), max_iters=2, threads=1
    )
    assert drhg.check(instance, result.solution) == []


def test_pyvrp_improves_whole_routes() -> None:
    pytest.importorskip("pyvrp")
    instance = drhg.x_cvrp(80, seed=2)
    result = drhg.solve(
        instance,
        method=drhg.Regions(drhg.WholeRoutes((30, 60)), drhg.Library()),
        max_iters=6,
        seed=1,
        threads=1,
    )
    assert result.cost < 0.97 * result.trace[0].cost
    assert drhg.check(instance, result.solution) == []


def test_a_solver_for_tours_refuses_routes_and_the_other_way_round() -> None:
    with pytest.raises(DrhgError, match="fast_tsp does not solve a CVRP; known: pyvrp"):
        drhg.solve(
            drhg.uniform_cvrp(20, seed=1), method=drhg.Regions(repair=drhg.Library("fast_tsp"))
        )
    pytest.importorskip("pyvrp")
    with pytest.raises(DrhgError, match="pyvrp does not solve a TSP; known: fast_tsp"):
        drhg.solve(drhg.uniform_tsp(20, seed=1), method=drhg.Regions(repair=drhg.Library("pyvrp")))


@pytest.mark.parametrize("depot_edges", ["adjacent", "touched", "all"])
def test_one_repairer_after_another_on_routes(depot_edges: str) -> None:
    rng = np.random.default_rng(7)
    for limits in ({}, {"limit": True}, {"fleet": True}):
        instance, rules, plan, graphs = plan_graphs(rng, 40, 15, depot_edges, **limits)
        made = InsertionRepair()(rules, graphs, np.random.default_rng(1))
        good, first = judge(rules, plan, graphs, made)
        same = RepairSequence(InsertionRepair(), lambda rules, graphs, rng: present(graphs))
        again = judge(rules, plan, graphs, same(rules, graphs, np.random.default_rng(1)))
        assert np.allclose(again[1][good], first[good])
        polished = RepairSequence(InsertionRepair(), LocalSearchRepair())
        answer = polished(rules, graphs, np.random.default_rng(1))
        settled, change = judge(rules, plan, graphs, answer)
        assert (change[good] <= first[good] + 1e-9).all()
        assert settled[good].all()
        for row in np.flatnonzero(settled):
            found = solution_of(rules, restore(rules, plan, graphs, int(row), answer))
            assert drhg.check(instance, found) == []


def test_unknown_and_absent_libraries_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DrhgError, match="known: fast_tsp"):
        library.LibraryRepair("nonsense")
    monkeypatch.setattr(library, "import_module", lambda name: (_ for _ in ()).throw(ImportError))
    with pytest.raises(DrhgError, match="pip install elkai"):
        library.LibraryRepair("elkai")


def test_hybrid_starts_from_the_network() -> None:
    instance = drhg.uniform_tsp(100, seed=3)
    hybrid = drhg.solve(instance, method="hybrid", max_iters=30, seed=1, threads=1)
    alone = drhg.solve(
        instance, method=drhg.Regions(repair=drhg.Neural()), max_iters=30, seed=1, threads=1
    )
    assert hybrid.cost < alone.cost

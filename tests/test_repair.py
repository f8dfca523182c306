"""Repairers: whatever they answer is judged; what is judged good restores to a valid solution."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields

import numpy as np
import pytest
import reference
from hypothesis import example, given, settings
from hypothesis import strategies as st
from soak import upto

import drhg
from drhg import hypergraph as hg
from drhg.problem import Metric
from drhg.repair import route_moves as moves
from drhg.repair.insertion import InsertionRepair
from drhg.repair.local import LocalSearchRepair
from drhg.repair.protocol import Repair

REPAIRERS: dict[str, Callable[[], Repair]] = {
    "insertion": InsertionRepair,
    "local": LocalSearchRepair,
    "local without kicks": lambda: LocalSearchRepair(kicks=0.0),
}
ROWS = 3


@pytest.fixture(params=REPAIRERS.values(), ids=REPAIRERS.keys())
def repair(request: pytest.FixtureRequest) -> Repair:
    return request.param()


def cut(
    instance: drhg.Instance, routes: list[list[int]], rng: np.random.Generator, depot_edges: str
) -> tuple[hg.Rules, hg.Plan, hg.Graphs]:
    """A batch of reduced graphs of one solution, of unequal sizes."""
    rules = hg.rules_of(instance)
    plan = hg.plan_of(rules, drhg.Solution(routes))
    nearness = hg.Nearness(instance)
    top = len(nearness.nodes)
    ranked = nearness.around(rng.choice(nearness.nodes, size=ROWS), top)
    counts = rng.integers(1, top + 1, size=ROWS)
    cuts = hg.destroy_nearest(rules, plan, ranked, counts, depot_edges=depot_edges)
    return rules, plan, hg.reduce(rules, plan, *cuts)


def pieces_stay(graphs: hg.Graphs, row: int, order: list[int]) -> bool:
    """Whether both ends of every hyper-edge follow one another."""
    place = {u: i for i, u in enumerate(order)}
    return all(
        abs(place[u] - place[int(graphs.partner[row, u])]) <= 1
        for u in order
        if graphs.partner[row, u] >= 0
    )


def judged(
    instance: drhg.Instance,
    routes: list[list[int]],
    rng: np.random.Generator,
    repair: Repair,
    depot_edges: str = "adjacent",
) -> list[tuple[bool, float]]:
    """Repair a batch; everything judged good must restore to a valid solution of that cost."""
    rules, plan, graphs = cut(instance, routes, rng, depot_edges)
    repaired = repair(rules, graphs, rng)
    good, change = hg.judge(rules, plan, graphs, repaired)
    before = reference.cost(instance, routes)
    for row in range(len(graphs)):
        m = int(graphs.size[row])
        order = repaired.order[row, :m].tolist()
        assert sorted(order) == list(range(m))
        assert (repaired.order[row, m:] == -1).all()
        assert pieces_stay(graphs, row, order)
        if not good[row]:
            assert change[row] == np.inf
            continue
        solution = hg.solution_of(rules, hg.restore(rules, plan, graphs, row, repaired))
        assert drhg.check(instance, solution) == []
        now = reference.cost(instance, [route.tolist() for route in solution.routes])
        assert now - before == pytest.approx(change[row], abs=1e-6)
    return list(zip(good.tolist(), change.tolist(), strict=True))


SEEDS = st.integers(0, 2**32 - 1)
SHAPES = st.sampled_from(reference.SHAPES)
METRICS = st.sampled_from(list(Metric))


@pytest.mark.parametrize("name", REPAIRERS)
@settings(max_examples=upto(60))
@given(seed=SEEDS, n=st.integers(3, 40), shape=SHAPES, metric=METRICS, fixed=st.booleans())
def test_tours(name: str, seed: int, n: int, shape: str, metric: Metric, fixed: bool) -> None:
    rng = np.random.default_rng(seed)
    instance, tour = reference.random_tour(rng, n, shape, metric, 0.3 if fixed else 0.0)
    verdicts = judged(instance, [tour], rng, REPAIRERS[name]())
    assert all(good for good, _ in verdicts)  # a tour has no limits to break
    if name != "insertion":  # starts from the present order too
        assert all(change <= 1e-9 for _, change in verdicts)


@pytest.mark.parametrize("name", REPAIRERS)
@settings(max_examples=upto(60))
@given(
    seed=SEEDS,
    customers=st.integers(1, 25),
    shape=SHAPES,
    metric=METRICS,
    limit=st.booleans(),
    fleet=st.booleans(),
    depot_edges=st.sampled_from(list(hg.DEPOT_EDGES)),
)
def test_plans(
    name: str,
    seed: int,
    customers: int,
    shape: str,
    metric: Metric,
    limit: bool,
    fleet: bool,
    depot_edges: str,
) -> None:
    rng = np.random.default_rng(seed)
    instance, routes = reference.random_plan(
        rng, customers, shape, metric, limit=limit, fleet=fleet
    )
    verdicts = judged(instance, routes, rng, REPAIRERS[name](), depot_edges)
    if not (limit or fleet) or name != "insertion":  # a route of one's own is allowed
        assert all(good for good, _ in verdicts)
    if name != "insertion":  # starts from the present routes too
        assert all(change <= 1e-9 for _, change in verdicts)


@settings(max_examples=upto(150))
@given(
    seed=SEEDS,
    customers=st.integers(2, 25),
    metric=METRICS,
    limit=st.booleans(),
    fleet=st.booleans(),
    depot_edges=st.sampled_from(list(hg.DEPOT_EDGES)),
)
def test_every_move_is_priced_as_the_walk_prices_it(
    seed: int, customers: int, metric: Metric, limit: bool, fleet: bool, depot_edges: str
) -> None:
    rng = np.random.default_rng(seed)
    instance, routes = reference.random_plan(
        rng, customers, "random", metric, limit=limit, fleet=fleet
    )
    rules, _, graphs = cut(instance, routes, rng, depot_edges)
    for row in range(len(graphs)):
        m = int(graphs.size[row])
        one = hg.Graphs(*(getattr(graphs, f.name)[row : row + 1] for f in fields(graphs)))
        made = hg.present(one)
        parts = one.node[0], one.partner[0], one.load[0], one.length[0]
        pieces = moves.pieces_of(rules.space, rules.depot, moves.ReducedRoutes(m, *parts), 8)
        most = int(one.n_routes[0]) if fleet else m
        limits = moves.RouteMoveLimits(rules.capacity, rules.max_length, most, 3)
        line = moves.line_of(pieces, made.order[0], made.via[0], limits)
        moves.write_back(pieces, line, made.order[0], made.via[0])
        assert (made.order == hg.present(one).order).all()
        assert (made.via == one.via).all()
        move = np.zeros(6, np.int64)
        for p in [*range(len(pieces.head))] * 2:
            before = hg.walk(rules, one, made)[1][0]
            change = moves.best_move(pieces, line, limits, p, move)
            if move[0] == moves.STAY:
                continue
            moves.make_move(pieces, line, limits, move)
            moves.write_back(pieces, line, made.order[0], made.via[0])
            verdict, total, used = hg.walk(rules, one, made)
            assert verdict[0] == hg.OK
            assert used[0] <= most
            assert total[0] - before == pytest.approx(change, abs=1e-6)
            assert change < 0


@settings(max_examples=upto(60))
@example(seed=0, customers=6, limit=False, depot_edges="adjacent")  # a piece turned where it is
@given(
    seed=SEEDS,
    customers=st.integers(2, 8),
    limit=st.booleans(),
    depot_edges=st.sampled_from(list(hg.DEPOT_EDGES)),
)
def test_no_simple_move_is_left(seed: int, customers: int, limit: bool, depot_edges: str) -> None:
    """The slow twin: every relocated or turned piece and every exchange of tails, each judged."""
    rng = np.random.default_rng(seed)
    instance, routes = reference.random_plan(rng, customers, "random", Metric.EXACT, limit=limit)
    rules, _, graphs = cut(instance, routes, rng, depot_edges)
    for row in range(len(graphs)):
        m = int(graphs.size[row])
        one = hg.Graphs(*(getattr(graphs, f.name)[row : row + 1] for f in fields(graphs)))
        made = hg.present(one)
        parts = one.node[0], one.partner[0], one.load[0], one.length[0]
        pieces = moves.pieces_of(rules.space, rules.depot, moves.ReducedRoutes(m, *parts), 8)
        limits = moves.RouteMoveLimits(rules.capacity, rules.max_length * (1 + 1e-12), m, 3)
        line = moves.line_of(pieces, made.order[0], made.via[0], limits)
        moves.improve_routes(pieces, line, limits)
        moves.write_back(pieces, line, made.order[0], made.via[0])
        _, total, _ = hg.walk(rules, one, made)
        order, via = made.order[0, :m].tolist(), made.via[0, :m].tolist()
        for other, through in reference.neighbour_repairs(one.partner[0, :m].tolist(), order, via):
            trial = hg.Repaired(np.array([other], np.int32), np.array([through], np.bool_))
            verdict, cost, _ = hg.walk(rules, one, trial)
            assert verdict[0] != hg.OK or cost[0] >= total[0] - 1e-6


def test_the_same_seed_gives_the_same_repair(repair: Repair) -> None:
    for instance, routes in (
        reference.random_tour(np.random.default_rng(1), 30, "random", Metric.EXACT),
        reference.random_plan(np.random.default_rng(1), 30, "random", Metric.EXACT),
    ):
        solution = [routes] if not instance.is_cvrp else routes
        rules, _, graphs = cut(instance, solution, np.random.default_rng(2), "adjacent")
        first, second = (repair(rules, graphs, np.random.default_rng(3)) for _ in range(2))
        assert np.array_equal(first.order, second.order)
        assert np.array_equal(first.via, second.via)


def test_an_empty_batch(repair: Repair) -> None:
    for instance in (drhg.uniform_tsp(10, seed=1), drhg.uniform_cvrp(10, seed=1)):
        rules = hg.rules_of(instance)
        start = [range(10)] if not instance.is_cvrp else [[i] for i in range(1, 11)]
        plan = hg.plan_of(rules, drhg.Solution(start))
        none = np.zeros((0, 4), dtype=np.int32)
        graphs = hg.reduce(rules, plan, none, np.zeros(0, dtype=np.int32))
        assert repair(rules, graphs, np.random.default_rng(0)).order.shape[0] == 0


def test_insertion_puts_a_node_back_where_it_is_cheapest() -> None:
    """A point of the lower side is visited out of turn; the right side stays a hyper-edge."""
    square = drhg.tsp([[0, 0], [0, 2], [2, 2], [2, 0], [1, 0]])
    rules = hg.rules_of(square)
    plan = hg.plan_of(rules, drhg.Solution([[0, 1, 4, 2, 3]]))
    ranked = np.array([[4, 0]], dtype=np.int32)
    graphs = hg.reduce(rules, plan, *hg.destroy_nearest(rules, plan, ranked, 2))
    assert graphs.node[0].tolist() == [1, 4, 2, 3, 0]
    repaired = InsertionRepair()(rules, graphs, np.random.default_rng(0))
    good, change = hg.judge(rules, plan, graphs, repaired)
    solution = hg.solution_of(rules, hg.restore(rules, plan, graphs, 0, repaired))
    assert good[0]
    assert drhg.cost(square, solution) == 8.0
    assert change[0] == pytest.approx(8.0 - (6.0 + 2 * 5**0.5))


@pytest.mark.parametrize(
    ("demand", "best"),
    [([0, 6, 6, 4, 4], [[1, 4], [2, 3]]), ([0, 5, 5, 5, 5], [[1, 2], [3, 4]])],
    ids=["tails", "heads"],
)
def test_local_search_joins_what_two_routes_are_cut_into(
    demand: list[int], best: list[list[int]]
) -> None:
    """Two routes that cross: no relocation helps. Both near customers on one route is best."""
    xy = [[0, 0], [-1, 4], [1, 4], [1, 8], [-1, 8]]
    cross = drhg.cvrp(xy, demand, capacity=10)
    rules = hg.rules_of(cross)
    plan = hg.plan_of(rules, drhg.Solution([[1, 3], [2, 4]]))
    # cut just the two edges that cross
    cuts = np.array([[p for p in range(len(plan.order)) if plan.order[p] in (1, 2)]], np.int32)
    graphs = hg.reduce(rules, plan, cuts, np.array([2], np.int32))
    repaired = LocalSearchRepair()(rules, graphs, np.random.default_rng(0))
    solution = hg.solution_of(rules, hg.restore(rules, plan, graphs, 0, repaired))
    found = [r.tolist() for r in solution.routes]
    assert reference.undirected(found) == reference.undirected(best)


@pytest.mark.parametrize("seed", range(10))
def test_local_search_finds_the_best_small_tours(seed: int) -> None:
    """All edges cut: the reduced graph is the instance, and kicks get out of local optima."""
    rng = np.random.default_rng(seed)
    instance, tour = reference.random_tour(rng, 7, "random", Metric.EXACT)
    rules = hg.rules_of(instance)
    plan = hg.plan_of(rules, drhg.Solution([tour]))
    ranked = np.arange(7, dtype=np.int32)[None, :]
    graphs = hg.reduce(rules, plan, *hg.destroy_nearest(rules, plan, ranked, 7))
    repaired = LocalSearchRepair(kicks=20.0)(rules, graphs, rng)
    _, change = hg.judge(rules, plan, graphs, repaired)
    best, _ = reference.best_tour(instance)
    assert reference.cost(instance, [tour]) + change[0] == pytest.approx(best)

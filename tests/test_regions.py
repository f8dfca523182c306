"""The region search's options, and several instances as one batch."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import reference

import drhg
from drhg.construct.starts import construct
from drhg.destroy import operators as destroy
from drhg.errors import DrhgError, ModelError
from drhg.hypergraph.nearness import Nearness
from drhg.hypergraph.plan import plan_of, rules_of, solution_of
from drhg.hypergraph.reduce import reduce
from drhg.network import weights
from drhg.network.decode import Compiled
from drhg.network.repairer import NeuralRepair
from drhg.network.weights import ModelConfig
from drhg.problem import Metric
from drhg.repair.local import LocalSearchRepair
from drhg.search.criteria import Improve, Moment
from drhg.search.strategy import Budget, task_of
from drhg.search.walk import Walk
from drhg.search.walks import Sharing, WalkSearch

SMALL = ModelConfig.of("economy", d=16, layers=1, heads=1, hidden=16)


def random_tensors(config: ModelConfig, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    shapes = weights.shapes(config)
    out = {
        name: np.float32(0.2) * rng.normal(size=s).astype(np.float32) for name, s in shapes.items()
    }
    if "nearness" in out:
        out["nearness"] = np.array(
            10.0, np.float32
        )  # mostly the nearest node, so not quite useless
    return out


def small(**options: Any) -> NeuralRepair:
    return NeuralRepair(Compiled(SMALL, random_tensors(SMALL)), **options)


@pytest.fixture
def own(tmp_path: Path) -> str:
    path = tmp_path / "own.safetensors"
    weights.write_weights(path, SMALL, random_tensors(SMALL), {"k": [7, 9]})
    return str(path)


# --- options -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: drhg.Regions(destroy="cluster"), "destroy must be a destroy operator"),
        (lambda: drhg.Regions(destroy=drhg.Cluster), "destroy must be a destroy operator"),
        (lambda: drhg.Regions(repair="local"), "repair must be a repair operator"),
        (lambda: drhg.Regions(repair=drhg.Neural), "repair must be a repair operator"),
        (lambda: drhg.Regions(accept="improve"), "accept must be Improve"),
        (lambda: drhg.Regions(iterations=-1), "iterations must be a whole number"),
        (lambda: drhg.Cluster(k=(9, 5)), "low <= high"),
        (lambda: drhg.Cluster(k=(0, 5)), "1 <= low"),
        (lambda: drhg.Cluster(k=7), "k must be two numbers"),
        (lambda: drhg.Cluster(centres="middle"), "centres must be one of uniform, grid"),
        (lambda: drhg.Cluster(cells=0), "cells must be a whole number"),
        (lambda: drhg.Strings(depot_edges="some"), "depot_edges must be one of adjacent"),
        (lambda: drhg.Strings(split=1.5), "split must be a share"),
        (lambda: drhg.Covering(shrink=2.0), "shrink must be a share"),
        (lambda: drhg.Adaptive(operators=()), "operators must be some destroy operators"),
        (lambda: drhg.Adaptive(operators=("cluster",)), "operators must be some destroy operators"),
        (lambda: drhg.Neural(device="tpu"), "device must be one of auto, cpu, cuda"),
        (lambda: drhg.Neural(alternatives=0), "at least 1"),
        (lambda: drhg.Neural(sample=1), "sample must be True or False"),
        (lambda: drhg.Library("glue"), "name must be one of auto, fast_tsp"),
        (lambda: drhg.Library(seconds=0), "seconds must be above 0"),
        (lambda: drhg.Hybrid(first="neural"), "first must be a repair operator"),
        (lambda: drhg.Anneal(start=0.0), "start must be above 0"),
        (lambda: drhg.Regions(walks=0), "walks must be a whole number"),
        (lambda: drhg.Regions(sharing=True), "sharing must be Sharing"),
        (lambda: Sharing(disagree=2.0), "disagree must be at most 1"),
        (lambda: Sharing(every=-1), "every must be"),
    ],
)
def test_a_wrong_parameter_is_named(make: Any, words: str) -> None:
    with pytest.raises(DrhgError, match=words):
        make()


@pytest.mark.parametrize(
    ("method", "words"),
    [
        (drhg.Regions(drhg.Strings()), "Strings is for routes"),
        (drhg.Regions(drhg.WholeRoutes()), "WholeRoutes is for routes"),
        (drhg.Regions(drhg.Adaptive()), "Strings is for routes"),
        (drhg.Regions(drhg.Cluster(depot_edges="all")), "depot_edges 'all' is for routes"),
        (drhg.Regions(repair=drhg.Library("pyvrp")), "pyvrp does not solve a TSP"),
        (drhg.Regions(repair=drhg.Neural("nobody")), "neither a file nor one of: "),
        (drhg.Regions(repair=drhg.Neural("no/where.safetensors")), "cannot read"),
        (drhg.Regions(repair=drhg.Neural("economy-routes")), "repair routes .CVRP. only"),
        (drhg.Routes(), "Routes is for a CVRP"),
    ],
)
def test_a_method_that_does_not_fit_is_refused(method: Any, words: str) -> None:
    with pytest.raises(DrhgError, match=words):
        drhg.solve(drhg.uniform_tsp(9), max_iters=1, method=method)


def test_a_network_needs_coordinates() -> None:
    bare = drhg.Instance(matrix=np.ones((6, 6)) - np.eye(6), metric=Metric.EXPLICIT)
    with pytest.raises(DrhgError, match="coordinates"):
        drhg.solve(bare, method="neural", max_iters=1)
    with pytest.raises(DrhgError, match="coordinates"):
        drhg.solve_many([bare], method="neural", max_iters=1)
    with pytest.raises(DrhgError, match="plane"):
        drhg.solve(bare, method=drhg.Regions(drhg.Cluster(centres="grid")), max_iters=1)


def test_weights_of_tours_refuse_routes(own: str) -> None:
    with pytest.raises(DrhgError, match="tours"):
        drhg.solve(drhg.uniform_cvrp(9), method=drhg.Regions(repair=drhg.Neural(own)))


@pytest.mark.parametrize("k", [(1, 1), (3, 8), (20, 1000)])
def test_k_nodes_are_destroyed(k: tuple[int, int]) -> None:
    instance = drhg.uniform_tsp(50, seed=1)
    rules, rng = rules_of(instance), np.random.default_rng(0)
    plan = plan_of(rules, drhg.Solution([rng.permutation(50)]))
    found = set()
    for _ in range(60):
        cuts, n_cuts = destroy.Cluster(k)(rules, plan, Nearness(instance), rng)
        graphs = reduce(rules, plan, cuts, n_cuts)
        alone = int((graphs.partner[0, : graphs.size[0]] == np.arange(graphs.size[0])).sum())
        assert alone >= min(k[0], 50)  # every destroyed node is an item of its own
        assert n_cuts[0] <= 2 * min(k[1], 50)
        found.add(int(n_cuts[0]))
    assert len(found) > 1 or k == (1, 1)


def test_a_grid_has_its_centres_in_the_middle_of_its_cells() -> None:
    instance = drhg.tsp(np.array([[x, y] for x in range(10) for y in range(10)]) * [3.0, 1.0])
    asked: list[np.ndarray] = []

    class Spy(Nearness):
        def around_points(self, points: np.ndarray, k: int) -> np.ndarray:
            asked.extend(points)
            return super().around_points(points, k)

    rules, rng = rules_of(instance), np.random.default_rng(0)
    plan = plan_of(rules, drhg.Solution([np.arange(100)]))
    cut = destroy.Cluster((4, 4), centres="grid", cells=2)
    for _ in range(60):
        cut(rules, plan, Spy(instance), rng)
    cells = {(round(x / 27, 9), round(y / 9, 9)) for x, y in asked}
    assert cells == {(x, y) for x in (0.25, 0.75) for y in (0.25, 0.75)}


def test_the_grid_follows_the_iterations() -> None:
    grid = drhg.Cluster(centres="grid")
    assert [grid.begin(limit).cells for limit in (16, None, 1)] == [4, 32, 1]
    assert drhg.Cluster(centres="grid", cells=7).begin(16).cells == 7
    assert drhg.Cluster().begin(16).cells is None


def test_k_comes_from_the_card(own: str) -> None:
    assert drhg.Neural(own).usual_destroy(drhg.uniform_tsp(30)) == drhg.Cluster((7, 9))
    assert drhg.Hybrid(drhg.Neural(own)).usual_destroy(drhg.uniform_tsp(30)) == drhg.Cluster((7, 9))


@pytest.mark.compiled
def test_alternatives_are_one_iteration_and_no_worse() -> None:
    instances = [drhg.uniform_tsp(60, seed=s) for s in range(4)]
    one = drhg.solve_many(instances, method=drhg.Regions(repair=small()), max_iters=20)
    many = drhg.solve_many(
        instances, method=drhg.Regions(repair=small(alternatives=6)), max_iters=20
    )
    sampled = drhg.Regions(repair=small(alternatives=6, greedy=False))
    drawn = drhg.solve_many(instances, method=sampled, max_iters=20)
    assert {r.iterations for r in one + many + drawn} == {20}
    assert sum(r.cost for r in many) < sum(r.cost for r in one)  # luck would not do it four times
    assert [r.cost for r in drawn] != [r.cost for r in many]


def test_paper_weights_run_on_torch(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    config = ModelConfig.of("paper", d=16, layers=1, heads=2, hidden=16)
    path = tmp_path / "paper.safetensors"
    weights.write_weights(path, config, random_tensors(config))
    instance = drhg.uniform_tsp(30, seed=2)
    runs = [
        drhg.solve(
            instance, method=drhg.Regions(repair=drhg.Neural(path, device=device)), max_iters=5
        )
        for device in ("auto", "cpu")
    ]
    assert [r.iterations for r in runs] == [5, 5]
    assert runs[0].cost == runs[1].cost


def test_without_a_gpu_cuda_is_refused(own: str) -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is one")
    method = drhg.Regions(repair=drhg.Neural(own, device="cuda"))
    with pytest.raises(ModelError, match="no CUDA"):
        drhg.solve(drhg.uniform_tsp(9), method=method, max_iters=1)


def test_a_gpu_solves_like_the_cpu() -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    instances = [drhg.uniform_tsp(60, seed=s) for s in range(8)]
    costs = [
        np.mean([r.cost for r in drhg.solve_many(instances, method=method, max_iters=50)])
        for method in (drhg.Regions(repair=drhg.Neural(device=d)) for d in ("cpu", "cuda"))
    ]
    assert costs[1] == pytest.approx(costs[0], rel=0.02)  # rounding turns some decisions


# --- operators for routes ------------------------------------------------------------------------


def cut_nodes(plan: Any, graphs: Any) -> set[int]:
    """Nodes that are items of their own."""
    size = int(graphs.size[0])
    alone = graphs.partner[0, :size] == np.arange(size)
    return set(graphs.node[0, :size][alone].tolist())


@pytest.mark.parametrize("seed", range(20))
def test_whole_routes_are_dissolved(seed: int) -> None:
    instance, routes = reference.random_plan(
        np.random.default_rng(seed), 60, "uniform", Metric.EXACT
    )
    rules, rng = rules_of(instance), np.random.default_rng(seed)
    plan = plan_of(rules, drhg.Solution(routes))
    cut = destroy.WholeRoutes((15, 25))(rules, plan, Nearness(instance), rng)
    graphs = reduce(rules, plan, *cut)
    alone = cut_nodes(plan, graphs)
    assert len(alone) == graphs.size[0] >= 15  # no hyper-edge, no stub
    touched = [route for route in routes if alone & set(route)]
    assert alone == {node for route in touched for node in route}
    assert len(alone) - max(len(route) for route in touched) < 25


@pytest.mark.parametrize("seed", range(20))
def test_strings_are_neighbours_in_their_routes(seed: int) -> None:
    instance, routes = reference.random_plan(
        np.random.default_rng(seed), 60, "uniform", Metric.EXACT
    )
    rules, rng = rules_of(instance), np.random.default_rng(seed)
    plan = plan_of(rules, drhg.Solution(routes))
    cut = destroy.Strings((8, 12))(rules, plan, Nearness(instance), rng)
    alone = cut_nodes(plan, reduce(rules, plan, *cut))
    assert len(alone) >= 1
    for route in routes:
        places = [i for i, node in enumerate(route) if node in alone]
        if places:  # one gap at most, where one is spared; what is between two cuts is alone too
            assert places[-1] - places[0] + 1 - len(places) <= 1
            assert len(places) <= 2 * destroy.Strings().longest + 1


def test_a_cover_goes_where_nothing_was_done_for_longest() -> None:
    instance = drhg.uniform_tsp(400, seed=1)
    work = task_of(instance, construct(instance, "greedy", 0)[0], 0, 1)
    plan = plan_of(work.rules, work.start)
    cover, rng = destroy.Covering((20, 20)).begin(None), np.random.default_rng(0)
    seen = np.zeros(400, np.int64)
    for _ in range(60):  # three times as many nodes as there are
        cover(work.rules, plan, work.nearness, rng)
        seen[cover.ranked] += 1
        cover.learn(0.0)
    plain = np.zeros(400, np.int64)
    for centre in rng.integers(400, size=60):
        plain[work.nearness.around([centre], 20)[0]] += 1
    assert (seen == 0).sum() < (plain == 0).sum() / 2
    assert seen.std() < plain.std()
    again = cover.ranked
    cover.learn(1.0)  # where something was gained there may be more
    assert (cover.done[again] == 0).all()


def test_a_cover_grows_as_gains_dry_up() -> None:
    instance = drhg.uniform_tsp(400, seed=1)
    work = task_of(instance, construct(instance, "greedy", 0)[0], 0, 1)
    plan = plan_of(work.rules, work.start)
    cover, rng = destroy.Covering((20, 100)).begin(None), np.random.default_rng(0)
    sizes = []
    for turn in range(300):
        cover(work.rules, plan, work.nearness, rng)
        sizes.append(len(cover.ranked))
        cover.learn(1.0 if turn < 50 or turn > 200 else 0.0)
    assert set(sizes[:51]) == {20}
    assert sizes[51:200] == sorted(sizes[51:200])
    assert max(sizes) == 100
    assert sizes[-1] == 20


def test_the_choice_follows_the_gain() -> None:
    used = []

    def operator(name: str) -> Any:
        return lambda *_: used.append(name) or (np.zeros((1, 1), np.int32), np.zeros(1, np.int32))

    chooser = destroy.Adaptive(tuple(map(operator, ("good", "poor", "useless")))).begin(None)
    rng = np.random.default_rng(0)
    for _ in range(3000):
        chooser(None, None, None, rng)  # type: ignore[arg-type]
        chooser.learn({"good": 5.0, "poor": 1.0, "useless": -3.0}[used[-1]])
    late = used[1000:]
    assert late.count("good") > 3 * late.count("poor") > 3 * late.count("useless") > 0


def test_a_search_tells_its_operator_what_it_gained() -> None:
    told: list[float] = []

    class Learner:
        def __init__(self) -> None:
            self.cut = destroy.Cluster((5, 9))

        def __call__(self, *what: Any) -> Any:
            return self.cut(*what)

        def learn(self, gain: float) -> None:
            told.append(gain)

    instance = drhg.uniform_cvrp(40, seed=1)
    found = drhg.solve(instance, method=drhg.Regions(Learner()), max_iters=50, threads=1)
    start = drhg.solve(instance, method="local", max_iters=0, threads=1)
    assert len(told) == 50
    assert start.cost - sum(told) == pytest.approx(found.cost)


K = (8, 20)
OPERATORS = [drhg.Cluster(K), drhg.Covering(K), drhg.Strings(K), drhg.WholeRoutes(K)]
OPERATORS.append(drhg.Adaptive((drhg.Cluster(K), drhg.Strings(K), drhg.WholeRoutes(K))))


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: type(operator).__name__)
@pytest.mark.parametrize("repair", ["local", "insertion"])
def test_operators_give_the_same_every_time(operator: Any, repair: str) -> None:
    instance = drhg.x_cvrp(60, seed=4)
    repairs = {"local": drhg.LocalSearch(), "insertion": drhg.Insertion()}
    method = drhg.Regions(operator, repairs[repair])
    runs = [drhg.solve(instance, method=method, seed=3, max_iters=40, threads=1) for _ in range(2)]
    assert drhg.check(instance, runs[0].solution) == []
    assert runs[0].cost == runs[1].cost
    assert repair == "insertion" or runs[0].cost < runs[0].trace[0].cost


def test_an_operator_that_learns_starts_afresh() -> None:
    instance = drhg.x_cvrp(60, seed=4)
    memory = drhg.Adaptive((drhg.Cluster((8, 20)), drhg.Strings((5, 10)))).begin(None)
    method = drhg.Regions(memory)  # with a method `learn` but without `begin`
    runs = [drhg.solve(instance, method=method, max_iters=40, seed=3, threads=1) for _ in range(2)]
    assert runs[0].cost == runs[1].cost
    assert not memory.gains.any()


def test_all_depot_edges_can_be_cut() -> None:
    instance = drhg.x_cvrp(60, seed=4)
    methods = [drhg.Regions(drhg.Cluster((5, 10), depot_edges=e)) for e in destroy.DEPOT_EDGES]
    costs = [drhg.solve(instance, method=m, max_iters=20, threads=1).cost for m in methods]
    assert len(set(costs)) > 1


@pytest.mark.parametrize("accept", [drhg.Improve(), drhg.Anneal(1.0, 0.2)])
@pytest.mark.parametrize("routes", [False, True], ids=["tour", "routes"])
def test_several_regions_of_a_step_add_up(routes: bool, accept: Any) -> None:
    """Regions overlap or cross each other's paths; the costs that were added up stay right."""
    instance = drhg.uniform_cvrp(60, seed=3) if routes else drhg.uniform_tsp(120, seed=3)
    task = task_of(instance, construct(instance, "space-filling", 0)[0], 0, 1)
    cut = drhg.Cluster((4, 12))
    found = Walk(task, Budget(share=0.5), cut, accept, regions_per_step=6)
    repair, crossed = LocalSearchRepair(), 0
    for _ in range(60):
        regions = found.destroyed(6)
        for region in regions:
            crossed += found.changes > region.changes
            found.take(region, repair(task.rules, region.graphs, found.rng))
        solution = solution_of(task.rules, found.plan)
        assert drhg.check(instance, solution) == []
        assert found.cost == pytest.approx(drhg.cost(instance, solution))
    assert crossed > 20
    best = solution_of(task.rules, found.best)
    assert found.best_cost == pytest.approx(drhg.cost(instance, best))


def test_a_step_of_several_regions_counts_each_of_them() -> None:
    instance = drhg.uniform_tsp(300, seed=3)
    method = drhg.Regions(drhg.Cluster((5, 20)), regions_per_step=4)
    found = drhg.solve(instance, method=method, max_iters=101, threads=1)
    assert found.iterations == 101
    again = drhg.solve(instance, method=method, max_iters=101, threads=2)
    assert again.solution == found.solution


# --- several walks --------------------------------------------------------------------------------


@pytest.mark.parametrize("disagree", [0.0, 0.5])
@pytest.mark.parametrize("routes", [False, True], ids=["tour", "routes"])
def test_walks_share_the_best_of_each_part(routes: bool, disagree: float) -> None:
    """What is put together from the walks is valid, costs what it says, and no walk is better."""
    instance = drhg.uniform_cvrp(60, seed=3) if routes else drhg.uniform_tsp(150, seed=3)
    task = task_of(instance, construct(instance, "space-filling", 0)[0], 0, 1)
    sharing = Sharing(every=2, rounds=2, disagree=disagree, most=30)
    budget = Budget(share=0.0)
    search = WalkSearch(task, budget, drhg.Cluster((4, 12)), drhg.Anneal(1.0, 0.5), 3, 2, sharing)
    repair, put_together = LocalSearchRepair(), 0
    for step in range(1, 81):
        budget.share = step / 80
        for walk, region in search.destroyed(6):
            walk.take(region, repair(task.rules, region.graphs, walk.rng))
        found = [walk.best_cost for walk in search.walks]
        search.share()
        if step % 2:
            continue
        assert search.common is not None
        put_together += search.common.cost < min(found) - 1e-9
        for walk in [*search.walks, search.common]:
            solution = solution_of(task.rules, walk.plan)
            assert drhg.check(instance, solution) == []
            assert walk.cost == pytest.approx(drhg.cost(instance, solution))
            assert search.common.cost <= walk.best_cost + 1e-9
        if step in (40, 80):  # a round is over: all go on from the best
            assert {walk.cost for walk in search.walks} == {search.common.cost}
        best = search.snapshot(1)
        assert best.cost == pytest.approx(drhg.cost(instance, best.solution()))
    assert put_together > 0 or routes


def test_there_are_as_many_walks_as_the_budget_allows() -> None:
    instance = drhg.uniform_tsp(30, seed=1)
    task = task_of(instance, construct(instance, "space-filling", 0)[0], 0, 1)
    ways = drhg.Cluster((4, 9)), drhg.Improve(), 4, 2, Sharing(least=2.0)
    for iterations, walks in ((10, 1), (119, 1), (120, 2), (200, 3), (10_000, 4)):
        assert len(WalkSearch(task, Budget(iterations), *ways).walks) == walks
    assert len(WalkSearch(task, Budget(), *ways).walks) == 4  # no end is known
    budget = Budget(share=0.0)  # a limit of time: known only when some of it is over
    search = WalkSearch(task, budget, *ways)
    repair = LocalSearchRepair()
    for share, walks in ((0.02, 4), (0.1, 2), (0.2, 2)):
        for walk, region in search.destroyed(8):
            walk.take(region, repair(task.rules, region.graphs, walk.rng))
        budget.share = share
        costs = sorted(walk.best_cost for walk in search.walks)
        search.share()
        assert len(search.walks) == walks
        assert sorted(walk.best_cost for walk in search.walks) == costs[:walks]


def test_walks_take_turns() -> None:
    instance = drhg.uniform_tsp(30, seed=1)
    task = task_of(instance, construct(instance, "space-filling", 0)[0], 0, 1)
    search = WalkSearch(task, Budget(), drhg.Cluster((4, 9)), drhg.Improve(), 3, 2)
    turns = [walk for count in (1, 6, 2, 4, 5) for walk, _ in search.destroyed(count)]
    assert [turns.count(walk) for walk in search.walks] == [6, 6, 6]


@pytest.mark.parametrize("sharing", [Sharing(), Sharing(every=1, rounds=3, disagree=0.3)])
def test_walks_count_each_region_and_repeat_themselves(sharing: Sharing) -> None:
    instance = drhg.uniform_tsp(120, seed=3)
    method = drhg.Regions(drhg.Cluster((5, 20)), walks=3, regions_per_step=2, sharing=sharing)
    found = drhg.solve(instance, method=method, max_iters=200, threads=1)
    assert found.iterations == 200
    again = drhg.solve(instance, method=method, max_iters=200, threads=2)
    assert again.solution == found.solution
    timed = drhg.solve(instance, method=method, time_limit=0.2, threads=1)
    assert drhg.check(instance, timed.solution) == []


# --- several instances ---------------------------------------------------------------------------


@pytest.mark.compiled
def test_a_batch_solves_like_its_instances() -> None:
    """Sizes may differ; each instance takes exactly the steps it would take alone."""
    instances = [drhg.uniform_tsp(n, seed=n) for n in (40, 25, 60, 3, 40)]
    method = drhg.Regions(repair=drhg.Neural("economy"))
    together = drhg.solve_many(instances, method=method, max_iters=12, seed=5, threads=2)
    for instance, result in zip(instances, together, strict=True):
        alone = drhg.solve(instance, method=method, max_iters=12, seed=5, threads=1)
        assert result.solution.tour.tolist() == alone.solution.tour.tolist()
        assert (result.cost, result.status) == (alone.cost, alone.status)
        points = [[(p.iterations, p.cost) for p in found.trace] for found in (alone, result)]
        assert points[0] == points[1]
        assert (result.iterations, result.method, result.seed) == (alone.iterations, "Regions", 5)


def test_an_instance_that_is_done_leaves_the_batch() -> None:
    instances = [drhg.uniform_tsp(40, seed=s) for s in range(3)]
    batches = []
    repair = small()
    method = drhg.Regions(repair=repair)
    together = repair.together

    def spy(asked: Any) -> Any:
        batches.append(len(asked))
        return together(asked)

    repair.together = spy  # type: ignore[method-assign]
    start = [drhg.cost(i, drhg.solve(i, method="local", max_iters=0).solution) for i in instances]
    easy = max(start)  # some starts are already this short
    found = drhg.solve_many(instances, method=method, target=easy, max_iters=10)
    assert {r.status for r in found} == {"target"}
    assert batches == []
    found = drhg.solve_many(instances, method=method, target=sorted(start)[1], max_iters=10)
    assert batches[0] == 1
    assert all(r.cost <= sorted(start)[1] or r.status == "iterations" for r in found)


def test_improvements_name_their_instance() -> None:
    instances = [drhg.uniform_tsp(30, seed=s) for s in range(2)]
    heard: dict[int, list[float]] = {0: [], 1: []}
    found = drhg.solve_many(
        instances, method=drhg.Regions(repair=small()), max_iters=10,
        on_improve=lambda i, point, solution: heard[i].append(point.cost),
    )  # fmt: skip
    assert heard == {i: [p.cost for p in r.trace] for i, r in enumerate(found)}


def test_a_batch_can_be_interrupted_and_timed() -> None:
    instances = [drhg.uniform_tsp(60, seed=s) for s in range(2)]
    found = drhg.solve_many(instances, method=drhg.Regions(repair=small()), time_limit=0.3)
    assert [r.status for r in found] == ["time", "time"]
    assert all(drhg.check(r.instance, r.solution) == [] for r in found)
    asked = threading.Event()
    threading.Timer(0.3, asked.set).start()
    method = drhg.Regions(repair=small())
    found = drhg.solve_many(instances, method=method, time_limit=60, should_stop=asked.is_set)
    assert [r.status for r in found] == ["interrupted", "interrupted"]
    assert found[0].seconds < 30


@pytest.mark.compiled
def test_tours_and_routes_are_batches_of_their_own() -> None:
    mixed = [drhg.uniform_cvrp(9), drhg.uniform_tsp(9), drhg.uniform_cvrp(12)]
    found = drhg.solve_many(mixed, method="neural", max_iters=3)
    assert [result.instance for result in found] == mixed
    assert [result.iterations for result in found] == [3, 3, 3]
    assert drhg.solve_many([], max_iters=1) == []


@pytest.mark.compiled
def test_sizes_that_get_other_strategies_are_batches_of_their_own() -> None:
    """Each is solved as it would be alone, although the named method chooses walks by the size."""
    instances = [drhg.uniform_tsp(n, seed=n) for n in (160, 30, 170)]
    together = drhg.solve_many(instances, method="neural", max_iters=10, seed=2, threads=1)
    for instance, result in zip(instances, together, strict=True):
        alone = drhg.solve(instance, method="neural", max_iters=10, seed=2, threads=1)
        assert result.solution == alone.solution


@pytest.mark.compiled
def test_jobs_are_the_size_of_a_batch() -> None:
    repair, sizes = small(), []
    together = repair.together

    def spy(asked: Any) -> Any:
        sizes.append(len(asked))
        return together(asked)

    repair.together = spy  # type: ignore[method-assign]
    instances = [drhg.uniform_tsp(20, seed=s) for s in range(5)]
    drhg.solve_many(instances, method=drhg.Regions(repair=repair), jobs=2, max_iters=3)
    assert sizes == [2] * 6 + [1] * 3


def test_an_error_in_the_batch_reaches_the_caller() -> None:
    repair = small()

    def broken(asked: Any) -> Any:
        raise ZeroDivisionError

    repair.together = broken  # type: ignore[method-assign]
    with pytest.raises(ZeroDivisionError):
        drhg.solve_many([drhg.uniform_tsp(30)], method=drhg.Regions(repair=repair), max_iters=3)


# --- which weights -------------------------------------------------------------------------------


def test_auto_chooses_by_size_and_problem(tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    weights.write_weights(path, SMALL, random_tensors(SMALL))
    box = tmp_path / "box"
    for name, card in (("hundred", {"n": 100}), ("thousand", {"n": 1000})):
        weights.release(name, path, card, folder=box)
    paper = ModelConfig.of("paper", d=16, layers=1, heads=2, hidden=16)
    weights.write_weights(path, paper, random_tensors(paper))
    weights.release("paper", path, {"n": 10}, half=True, folder=box)
    assert [weights.fitting(n, False, box) for n in (5, 100, 101, 99999)] == [
        "hundred", "hundred", "thousand", "thousand",
    ]  # fmt: skip
    with pytest.raises(ModelError, match="no weights for routes"):
        weights.fitting(5, True, box)
    half, whole = weights.load("paper", box), random_tensors(paper)
    assert half.bytes < 0.75 * path.stat().st_size  # the header stays
    assert half.parameters == sum(t.size for t in whole.values())
    for name, tensor in half.tensors.items():
        assert tensor.dtype == np.float32
        np.testing.assert_allclose(tensor, whole[name], rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("k", ["20 to 100", [9, 5], [1], {"low": 1}, [0, 5]])
def test_a_card_without_a_range_means_the_usual_one(k: Any, tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    weights.write_weights(path, SMALL, random_tensors(SMALL), {"k": k})
    assert weights.load(str(path)).k == weights.K


def test_the_manifest_agrees_with_its_files() -> None:
    entries = weights.manifest()
    assert entries
    text = json.loads((weights.FOLDER / "manifest.json").read_text())
    for name, entry in entries.items():
        found = weights.load(name)
        assert found.card == entry["card"] == text[name]["card"]
        assert (found.sha256, found.bytes) == (entry["sha256"], entry["bytes"])
        assert {"data", "hours", "hardware", "gaps", "k"} <= set(found.card)


def test_improve_is_the_rule_of_the_loop() -> None:
    """A repair that changes nothing is never accepted, so the start is returned."""
    instance = drhg.uniform_tsp(30)
    never = drhg.Regions(repair=drhg.Insertion(), accept=lambda *_: False)
    result = drhg.solve(instance, method=never, max_iters=5)
    start = drhg.solve(instance, method="insertion", max_iters=0)
    assert result.cost == start.cost
    assert not Improve()(0.0, Moment(0.5, 1.0), np.random.default_rng(0))

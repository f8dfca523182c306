"""The search for routes: every plan is valid, limits are kept, each size gets its loops."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import pytest

import drhg
from drhg.construct.starts import construct
from drhg.problem import Instance
from drhg.search.routes.context import RouteLists
from drhg.search.routes.params import GeneticParams, RouteSizes
from drhg.search.routes.strategy import Routes
from drhg.search.strategy import Budget, Snapshot, Task, task_of

SIZES = RouteSizes(
    genetic=20, genetic_long=30, copies=60, subproblems=300, part_customers=50, part_steps=100,
    subproblem_customers=25, subproblem_children=80,
)  # fmt: skip
SMALL = Routes(sizes=SIZES)


class Sequence(Budget):
    """The share that is over is the next number of a list at every look."""

    def __init__(self, shares: np.ndarray) -> None:
        super().__init__()
        self.shares = iter(shares)

    def fraction(self) -> float:
        return float(next(self.shares))


def task(instance: Instance, threads: int = 2, seed: int = 0) -> Task:
    return task_of(instance, construct(instance, "savings", seed)[0], seed, threads)


def snapshots(
    work: Task, count: int, method: Routes = SMALL, share: float | None = 0.2
) -> list[Snapshot]:
    """The first ones; the same share of the search is over all the time."""
    return list(islice(method.run(work, Budget(10**9, share=share)), count))


@pytest.mark.parametrize("n", [15, 50, 90, 350])
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("share", [0.2, None])
def test_every_snapshot_is_a_valid_plan_of_its_cost(
    n: int, threads: int, share: float | None
) -> None:
    instance = drhg.uniform_cvrp(n, seed=n)
    work = task(instance, threads)
    costs = []
    for found in snapshots(work, 8, share=share):
        plan = found.solution()
        assert drhg.check(instance, plan) == []
        assert found.cost == pytest.approx(float(drhg.cost(instance, plan)), rel=1e-9)
        costs.append(found.cost)
    assert costs == sorted(costs, reverse=True)
    if share is not None:  # else annealing has only begun, and is hot
        assert costs[-1] < drhg.cost(instance, work.start)


@pytest.mark.parametrize("n", [60, 350, 650])
def test_same_seed_and_threads_same_plan(n: int) -> None:
    instance = drhg.uniform_cvrp(n, seed=1)
    runs = [drhg.solve(instance, max_iters=12_001, seed=s, threads=2) for s in (3, 3, 4)]
    routes = [[r.tolist() for r in run.solution.routes] for run in runs]
    assert routes[0] == routes[1] != routes[2]
    assert runs[0].iterations in (12_001, 12_002)


def test_parameters_steer_the_search() -> None:
    """Each room's parameters reach the loop that they belong to."""
    genetic, annealed = task(drhg.uniform_cvrp(18, seed=1)), task(drhg.uniform_cvrp(55, seed=1))
    method = SMALL
    usual = snapshots(genetic, 1, method)[0]
    fewer = replace(method, genetic=GeneticParams(batch=1))
    assert snapshots(genetic, 1, fewer)[0].iterations * 4 == usual.iterations
    shorter = replace(method, sizes=replace(SIZES, part_steps=50))
    assert snapshots(annealed, 1, method)[0].iterations == 200
    assert snapshots(annealed, 1, shorter)[0].iterations == 100
    costs = {
        snapshots(annealed, 3, changed)[-1].cost
        for changed in (
            method,
            replace(method, ruin=replace(method.ruin, average_removed=3.0)),
            replace(method, ruin=replace(method.ruin, longest_string=2.0)),
            replace(method, ruin=replace(method.ruin, blink_rate=0.5)),
            replace(method, ruin=replace(method.ruin, neighbours=3)),
            replace(method, annealing=replace(method.annealing, last_temperature=5.0)),
        )
    }
    assert len(costs) == 6


@pytest.mark.parametrize("n", [50, 90])
def test_annealing_is_followed_by_subproblems(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    starts = []

    def watched(context: object, plan: RouteLists, *_: object) -> Iterator[Snapshot]:
        starts.append(plan.cost)
        yield Snapshot(1, plan.cost, lambda: plan.solution)

    monkeypatch.setattr("drhg.search.routes.subproblems.improve_subproblems", watched)
    budget = Sequence(np.arange(0.0, 1.0, 0.02))
    found = list(SMALL.run(task(drhg.uniform_cvrp(n, seed=1)), budget))
    assert len(found) > 3
    assert SIZES.annealing_share <= budget.fraction() < 1.0
    assert starts == [pytest.approx(min(f.cost for f in found), rel=1e-12)]


def test_small_plans_larger_ones_of_long_routes_and_endless_searches_are_genetic(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun = []

    def watched(task: Task, *_: Any) -> Iterator[Snapshot]:
        begun.append(task.instance.n - 1)
        yield Snapshot(1, 0.0, lambda: task.start)

    monkeypatch.setattr("drhg.search.routes.genetic.genetic_search", watched)
    for long_route, n, share in [
        (1e9, 20, 0.0), (1e9, 21, 0.0), (1e9, 60, None), (1e9, 61, None), (1.0, 30, 0.0),
        (1.0, 31, 0.0),
    ]:  # fmt: skip
        method = replace(SMALL, genetic=GeneticParams(long_route=long_route))
        next(method.run(task(drhg.uniform_cvrp(n, seed=1)), Budget(share=share)))
    assert begun == [20, 60, 30]


@pytest.mark.parametrize("metric", ["EXACT", "EUC_2D", "EXPLICIT"])
@pytest.mark.parametrize("threads", [1, 3])
def test_subproblems_are_improved_in_the_end(metric: str, threads: int) -> None:
    plane = drhg.uniform_cvrp(120, seed=3)
    assert plane.demand is not None
    xy = 1000 * np.asarray(plane.xy)
    limits: dict[str, Any] = {"vehicles": 30, "max_distance": 4000.0, "service_time": 3.0}
    instance = drhg.cvrp(xy, plane.demand, plane.capacity, metric="EUC_2D", **limits)
    if metric == "EXPLICIT":
        i = np.arange(121)
        far = instance.distance(i[:, None], i[None, :])
        instance = drhg.cvrp(None, plane.demand, plane.capacity, matrix=far, **limits)
    elif metric == "EXACT":
        instance = drhg.cvrp(xy, plane.demand, plane.capacity, **limits)
    budget = Budget(10**9, share=0.0)
    costs, iterations = [], 0
    for found in islice(SMALL.run(task(instance, threads), budget), 12):
        assert budget.share is not None
        budget.share += 0.3  # three slices of annealing
        assert drhg.check(instance, found.solution()) == []
        assert found.cost == pytest.approx(float(drhg.cost(instance, found.solution())), rel=1e-9)
        costs.append(found.cost)
        iterations += found.iterations if len(costs) > 3 else 0
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] < costs[2]
    assert iterations >= 9 * SIZES.subproblem_look * 10  # of parts with at least ten customers


def test_a_matrix_is_enough() -> None:
    rng = np.random.default_rng(5)
    plane = drhg.uniform_cvrp(60, seed=5)
    far = np.rint(100 * plane.distance(np.arange(61)[:, None], np.arange(61)[None, :])).astype(int)
    assert plane.demand is not None
    instance = drhg.cvrp(None, plane.demand, plane.capacity, matrix=far, depot=plane.depot)
    shuffled = drhg.solve(instance, max_iters=5_000, threads=2, seed=int(rng.integers(9)))
    start = construct(instance, "savings", 0)[0]
    assert drhg.check(instance, shuffled.solution) == []
    assert shuffled.cost < drhg.cost(instance, start)


def test_fewest_customers_are_left_out() -> None:
    """Nine customers of 6 and one of 4, six vehicles of 10: only one of 6 shares a vehicle."""
    rng = np.random.default_rng(1)
    instance = drhg.cvrp(rng.random((11, 2)), [0] + [6] * 9 + [4], 10, vehicles=6)
    result = drhg.solve(instance, max_iters=4_000, threads=2)
    assert result.status == "infeasible"
    assert len(result.unplaced) == 3


def test_the_fleet_limit_is_kept() -> None:
    free = drhg.uniform_cvrp(120, seed=7)
    assert free.demand is not None
    least = -(-int(free.demand.sum()) // int(free.capacity or 1))
    instance = drhg.cvrp(free.xy, free.demand, free.capacity, vehicles=least + 1)
    for found in snapshots(task(instance), 30, Routes()):
        assert len(found.solution().routes) <= least + 1
    assert found.cost < np.inf


def test_tours_are_refused() -> None:
    assert Routes().supports(drhg.uniform_cvrp(5, seed=1)) is None
    assert "CVRP" in str(Routes().supports(drhg.uniform_tsp(5, seed=1)))


def test_only_what_a_size_needs_is_compiled() -> None:
    def needed(n: int, **limits: float) -> list[str]:
        free = drhg.uniform_cvrp(n, seed=1)
        assert free.demand is not None
        instance = drhg.cvrp(free.xy, free.demand, free.capacity, **limits)
        return [part.what.split()[0] for part in SMALL.parts(instance)]

    assert needed(20) == ["genetic", "local"]
    assert needed(20, max_distance=100.0) == needed(21) == ["genetic", "local", "ruin"]
    assert needed(301) == ["ruin"]

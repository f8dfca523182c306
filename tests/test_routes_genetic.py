"""The genetic search: children are valid plans of their cost, and they get better."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any

import numpy as np
import pytest
import reference as ref

import drhg
from drhg.construct.starts import construct
from drhg.kernels.random import random_state
from drhg.problem import Instance, Metric
from drhg.search.routes.genetic import Genetic, genetic_search
from drhg.search.routes.params import GeneticParams, RouteMoveParams
from drhg.search.routes.penalties import Penalties
from drhg.search.routes.population import Population
from drhg.search.strategy import Snapshot, Task, task_of

PARAMS, MOVES = GeneticParams(), RouteMoveParams()


def task(instance: Instance, threads: int = 2, seed: int = 0) -> Task:
    return task_of(instance, construct(instance, "savings", seed)[0], seed, threads)


def bred(
    work: Task, count: int, max_iters: int | None = None, params: GeneticParams = PARAMS
) -> list[Snapshot]:
    with ThreadPoolExecutor(work.threads) as pool:
        return list(islice(genetic_search(work, params, MOVES, pool, max_iters), count))


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("metric", [Metric.EXACT, Metric.EUC_2D, Metric.EXPLICIT])
def test_every_snapshot_is_a_valid_plan_of_its_cost(threads: int, metric: Metric) -> None:
    rng = np.random.default_rng(5)
    instance, _ = ref.random_plan(rng, 30, "uniform", metric, limit=True, fleet=True)
    work = task(instance, threads)
    costs = []
    for found in bred(work, 60):
        assert drhg.check(instance, found.solution()) == []
        assert found.cost == pytest.approx(float(drhg.cost(instance, found.solution())))
        assert found.iterations == PARAMS.batch * threads * 30
        costs.append(found.cost)
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] <= drhg.cost(instance, work.start)


@pytest.mark.parametrize("seed", range(20))
def test_small_plans_become_optimal(seed: int) -> None:
    rng = np.random.default_rng(seed)
    instance, _ = ref.random_plan(rng, 6, "uniform", Metric.EUC_2D, limit=seed % 2 == 0)
    assert bred(task(instance), 40)[-1].cost == ref.best_plan(instance)[0]


def test_lengths_may_need_more_routes_than_loads_do() -> None:
    free = drhg.uniform_cvrp(60, seed=1)
    assert free.demand is not None
    farthest = float(free.distance(free.depot, np.arange(61)).max())
    instance = drhg.cvrp(free.xy, free.demand, 10**6, max_distance=2.2 * farthest)
    work = task(instance)
    assert len(work.start.routes) > 4
    assert bred(work, 100)[-1].cost < drhg.cost(instance, work.start)


def test_the_scale_of_distances_does_not_matter() -> None:
    small = drhg.uniform_cvrp(40, seed=2)
    assert small.xy is not None
    assert small.demand is not None
    large = drhg.cvrp(1024 * small.xy, small.demand, small.capacity, depot=small.depot)
    costs = [[s.cost for s in bred(task(instance), 150)] for instance in (small, large)]
    assert costs[1] == pytest.approx([1024 * cost for cost in costs[0]], rel=1e-12)


def test_same_seed_and_threads_same_plan() -> None:
    instance = drhg.uniform_cvrp(50, seed=3)
    costs = [[s.cost for s in bred(task(instance, seed=seed), 60)] for seed in (1, 1, 2)]
    assert costs[0] == costs[1] != costs[2]


@pytest.mark.parametrize(("long_route", "share"), [(1.0, 0.25), (20.0, 1.0)])
def test_some_children_have_penalties_of_their_own_or_all_if_routes_are_short(
    long_route: float, share: float
) -> None:
    params = GeneticParams(long_route=long_route, own_price_share=0.25, price_spread=3.0)
    genetic = Genetic(task(drhg.uniform_cvrp(20, seed=1)), params, MOVES)
    paid = [genetic._own_penalties(Penalties(6.0, 2.0), random_state(0, i)) for i in range(240)]
    loads = np.array([penalties.load for penalties in paid])
    usual = loads == 6.0
    assert np.mean(~usual) == pytest.approx(share, abs=0.1)
    assert len(set(loads[~usual])) == sum(~usual)
    assert 2.0 <= loads.min() < 4.0 < 9.0 < loads.max() <= 18.0
    assert [penalties.length for penalties in paid] == pytest.approx((loads / 3.0).tolist())


@pytest.mark.parametrize(("probability", "factor"), [(0.0, 10.0), (1.0, 1.0), (1.0, 100.0)])
def test_infeasible_children_are_repaired_at_higher_penalties(
    probability: float, factor: float
) -> None:
    params = GeneticParams(repair_probability=probability, repair_penalty_factor=factor)
    genetic = Genetic(task(drhg.uniform_cvrp(40, seed=1)), params, MOVES)
    families = [genetic.child(None, Penalties(0.02, 1.0), i) for i in range(12)]
    infeasible = [family for family in families if not family[0].feasible]
    assert infeasible
    repaired = [family for family in infeasible if len(family) == 2]
    assert all(family[1].feasible for family in repaired)
    assert bool(repaired) == (factor > 10.0)
    assert all(len(family) == 1 for family in families if family[0].feasible)


def test_the_last_children_are_no_more_than_asked_for() -> None:
    work = task(drhg.uniform_cvrp(20, seed=1), threads=3)
    batch = PARAMS.batch * 3 * 20
    counts = [found.iterations for found in bred(work, 4, max_iters=2 * batch + 10)]
    assert counts == [batch, batch, 10, 0]


def test_a_stale_population_is_followed_by_a_larger_one(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []

    class Watched(Population):
        def __init__(self, size: int, *others: Any) -> None:
            sizes.append(size)
            super().__init__(size, *others)

    monkeypatch.setattr("drhg.search.routes.genetic.Population", Watched)
    params = GeneticParams(population_size=5, growth=3, largest_population=20, patience=4)
    bred(task(drhg.uniform_cvrp(8, seed=1)), 200, params=params)
    assert sizes[:4] == [5, 15, 20, 20]

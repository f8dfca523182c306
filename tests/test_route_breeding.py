"""A population of plans: who stays, what overload costs, and how good the children get."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import islice

import numpy as np
import pytest
import reference as ref

import drhg
from drhg import route_breeding as rb
from drhg.construct import construct
from drhg.problem import Instance, Metric
from drhg.route_descent import Price, broken_pairs, links
from drhg.search import Snapshot, Task, task_of


def task(instance: Instance, threads: int = 2, seed: int = 0) -> Task:
    return task_of(instance, construct(instance, "savings", seed)[0], seed, threads)


def bred(work: Task, count: int, max_iters: int | None = None) -> list[Snapshot]:
    with ThreadPoolExecutor(work.threads) as pool:
        return list(islice(rb.breed(work, pool, max_iters), count))


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
        assert found.iterations == rb.BATCH * threads * 30
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


def test_plans_differ_where_customers_have_other_neighbours() -> None:
    breeder = rb.Breeder(task(drhg.uniform_cvrp(6, seed=1)))

    def plan(*routes: list[int]) -> rb.Plan:
        order = np.array([i for route in routes for i in route], np.int32)
        return breeder.plan(order, np.cumsum([len(r) for r in routes]).astype(np.int32))

    one = plan([0, 1, 2], [3, 4, 5])
    assert one.after.tolist() == [1, 2, -1, 4, 5, -1]
    assert one.before.tolist() == [-1, 0, 1, -1, 3, 4]
    same, turned = plan([3, 4, 5], [0, 1, 2], []), plan([2, 1, 0], [5, 4, 3])
    joined, mixed = plan([0, 1, 2, 3, 4, 5]), plan([0, 4, 2], [3, 1, 5])
    # joined: 2 is followed by another, and 3 comes no longer first
    # mixed: 0, 1, 3 and 4 are followed by others
    group = rb.Group(rb.GROUP, 6)
    for other in (same, turned, joined, mixed, one):  # seen from the last
        group.add(other, Price(0.0, 0.0))
    found = dict(zip(group.plans, group.apart[group.plans.index(one)], strict=True))
    assert found == {one: np.inf, same: 0.0, turned: 0.0, joined: 2 / 6, mixed: 4 / 6}


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
        after[row], before[row] = links(order, ends)
    for row in range(rows):
        expected = [ref.broken_pairs(plans[row], other) for other in plans]
        assert broken_pairs(after, before, row).tolist() == pytest.approx(expected)


def test_a_group_keeps_the_best_and_no_doubles() -> None:
    breeder = rb.Breeder(task(drhg.uniform_cvrp(30, seed=1)))
    price = Price(1.0, 1.0)
    group = rb.Group(rb.GROUP, 30)
    rng = np.random.default_rng(0)
    plans = []
    for i in range(int((1 + rb.BROOD) * rb.GROUP) + 1):
        order = rng.permutation(30).astype(np.int32)
        if i % 10 == 1:
            order = plans[-1].order
        plans.append(breeder.plan(order, np.array([10, 20, 30], np.int32)))
        group.add(plans[-1], price)
    assert len(group.plans) == rb.GROUP
    costs = [plan.priced(price) for plan in group.plans]
    assert costs == sorted(costs)
    assert costs[0] == min(plan.priced(price) for plan in plans)
    assert len({plan.order.tobytes() for plan in group.plans}) == rb.GROUP
    assert np.argmin(group.fitness) < rb.GROUP // 2


def test_overload_gets_dearer_while_too_many_plans_have_it() -> None:
    breeder = rb.Breeder(task(drhg.uniform_cvrp(30, seed=1)))
    plan = breeder.plan(np.arange(30, dtype=np.int32), np.array([30], np.int32))
    assert plan.over[0] > 0.0
    population = rb.Population(rb.GROUP, 30, Price(10.0, 10.0))
    for _ in range(rb.REVIEW):
        population.judge(plan)
    assert population.price.load == pytest.approx(12.0)
    assert population.price.length == pytest.approx(8.5)


@pytest.mark.parametrize(("long", "share"), [(1, rb.ODD), (20, 1.0)])
def test_some_children_have_a_price_of_their_own_or_all_if_routes_are_short(
    long: int, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    paid = []
    descend = rb.descend

    def watched(land, order, ends, slots, price, settled, state):  # type: ignore[no-untyped-def]
        paid.append(price)
        return descend(land, order, ends, slots, price, settled, state)

    monkeypatch.setattr(rb, "descend", watched)
    monkeypatch.setattr(rb, "MEND", 0.0)
    monkeypatch.setattr(rb, "LONG", long)
    breeder = rb.Breeder(task(drhg.uniform_cvrp(20, seed=1)))
    for stream in range(240):
        breeder.child(None, Price(6.0, 2.0), stream)
    loads = np.array([price.load for price in paid])
    usual = loads == 6.0
    assert np.mean(~usual) == pytest.approx(share, abs=0.1)
    assert len(set(loads[~usual])) == sum(~usual)
    assert 6.0 / rb.SPREAD <= loads.min() < 4.0 < 9.0 < loads.max() <= 6.0 * rb.SPREAD
    assert [price.length for price in paid] == pytest.approx((loads / 3.0).tolist())


def test_the_last_children_are_no_more_than_asked_for() -> None:
    work = task(drhg.uniform_cvrp(20, seed=1), threads=3)
    brood = rb.BATCH * 3 * 20
    counts = [found.iterations for found in bred(work, 4, max_iters=2 * brood + 10)]
    assert counts == [brood, brood, 10, 0]


def test_a_stale_population_is_followed_by_a_larger_one(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []
    made = rb.Population.__init__

    def watched(self: rb.Population, size: int, customers: int, price: Price) -> None:
        sizes.append(size)
        made(self, size, customers, price)

    monkeypatch.setattr(rb.Population, "__init__", watched)
    monkeypatch.setattr(rb, "STALE", 4)
    bred(task(drhg.uniform_cvrp(8, seed=1)), 300)
    assert sizes[:4] == [16, 32, 64, 64]

"""The search for routes: parts fit together, limits are kept, heat follows counts."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any

import numpy as np
import pytest

import drhg
from drhg import route_search as rs
from drhg.construct import construct
from drhg.problem import Instance
from drhg.search import Snapshot, Task, task_of


def task(instance: Instance, threads: int = 2, seed: int = 0, start: str = "savings") -> Task:
    return task_of(instance, construct(instance, start, seed)[0], seed, threads)


def snapshots(work: Task, count: int, max_iters: int = 10**9) -> list[Snapshot]:
    """The first ones; a fifth of the search is over all the time."""
    return list(islice(rs.routes(work, lambda: 0.2, max_iters), count))


@pytest.mark.parametrize("n", [40, rs.MIDDLE + 50, rs.WHOLE + 50, 2 * rs.PART + 500])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_every_snapshot_is_a_valid_plan_of_its_cost(n: int, threads: int) -> None:
    instance = drhg.uniform_cvrp(n, seed=n)
    work = task(instance, threads)
    costs = []
    for found in snapshots(work, 4):
        plan = found.solution()
        assert drhg.check(instance, plan) == []
        assert found.cost == pytest.approx(float(drhg.cost(instance, plan)), rel=1e-9)
        costs.append(found.cost)
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] < drhg.cost(instance, work.start)


@pytest.mark.parametrize("n", [60, rs.MIDDLE + 50, rs.WHOLE + 50])
def test_same_seed_and_threads_same_plan(n: int) -> None:
    instance = drhg.uniform_cvrp(n, seed=1)
    runs = [drhg.solve(instance, max_iters=12_001, seed=s, threads=2) for s in (3, 3, 4)]
    routes = [[r.tolist() for r in run.solution.routes] for run in runs]
    assert routes[0] == routes[1] != routes[2]
    assert runs[0].iterations in (12_001, 12_002)


@pytest.mark.parametrize("threads", [2, 3, 8])
@pytest.mark.parametrize("n", [30, 700, 5_000])
def test_parts_share_no_route(n: int, threads: int) -> None:
    work = task(drhg.uniform_cvrp(n, seed=2), threads)
    plan = rs._lists(work, work.start.routes)
    sizes = np.diff(plan.ends, prepend=0)
    rng = np.random.default_rng(0)
    seen = np.zeros(len(sizes), int)
    for _ in range(20):
        chosen = rs._choose(work, plan, rng, rs.PART)
        together = np.concatenate(chosen)
        assert len(set(together.tolist())) == len(together)
        assert all(sizes[part].sum() < rs.PART + sizes.max() for part in chosen)
        if n <= threads * rs.PART // 2:
            assert len(together) == len(sizes)
        seen[together] += 1
    assert n >= 5_000 or seen.all()


@pytest.mark.parametrize("n", [rs.MIDDLE + 10, rs.WHOLE + 10])
def test_annealing_is_followed_by_breeding_of_parts(
    n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts = []

    def watched(field: object, plan: rs.Lists, *_: object) -> Iterator[Snapshot]:
        starts.append(plan.cost)
        yield Snapshot(1, plan.cost, lambda: rs._solution(plan))

    monkeypatch.setattr(rs, "_bred", watched)
    over = iter(np.arange(0.0, 1.0, 0.02))
    found = list(rs.routes(task(drhg.uniform_cvrp(n, seed=1)), lambda: float(next(over)), None))
    assert len(found) > 3
    assert rs.LATE <= next(over) < 1.0
    assert starts == [pytest.approx(min(f.cost for f in found), rel=1e-12)]


def test_small_plans_larger_ones_of_long_routes_and_endless_searches_breed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun = []

    def watched(task: Task, *_: object) -> Iterator[Snapshot]:
        begun.append(task.instance.n - 1)
        yield Snapshot(1, 0.0, lambda: task.start)

    monkeypatch.setattr(rs, "breed", watched)
    for long, n, over in [
        (False, rs.SMALL, 0.0), (False, rs.SMALL + 1, 0.0), (False, rs.WHOLE, 1.0),
        (True, rs.MIDDLE, 0.0), (True, rs.MIDDLE + 1, 0.0),
    ]:  # fmt: skip
        monkeypatch.setattr(rs, "LONG", 1 if long else n)
        next(rs.routes(task(drhg.uniform_cvrp(n, seed=1)), lambda over=over: over, None))
    assert begun == [rs.SMALL, rs.WHOLE, rs.MIDDLE]


@pytest.mark.parametrize(("anneals", "threads"), [(1, 1), (2, 1), (3, 1), (3, 2)])
def test_middling_plans_are_annealed_from_the_start_as_often_as_there_is_time(
    anneals: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rs, "TURN", 50)
    work = task(drhg.uniform_cvrp(rs.MIDDLE + 10, seed=1), threads)
    turns = 200
    each = rs.TURN * turns / (0.99 * work.instance.n)  # steps of a thread per customer
    monkeypatch.setattr(rs, "ANNEAL", each / anneals**2)
    over = [0.0]
    heats, begun = [], []
    whole, steps = rs._whole, rs.string_slice

    def watched(field: rs._Field, plan: rs.Lists) -> rs.Part:
        begun.append((over[0], plan.cost))
        return whole(field, plan)

    def slice_(*arguments: Any) -> Any:
        heats.append(arguments[3])
        return steps(*arguments)

    monkeypatch.setattr(rs, "_whole", watched)
    monkeypatch.setattr(rs, "string_slice", slice_)
    counter = rs._Counter(work, lambda: over[0], None, 0.99)
    start = rs._lists(work, work.start.routes)
    costs = []
    with ThreadPoolExecutor(threads) as pool:
        for best in rs._own(rs._field_of(work), start, pool, counter):
            costs.append(best.cost)
            over[0] += 0.99 / turns
            if over[0] >= 0.99:
                break
    assert begun == [
        (pytest.approx(0.99 * i / anneals, abs=0.01), start.cost)
        for i in range(anneals)
        for _ in range(threads)
    ]
    rises = [i for i in range(threads, len(heats)) if heats[i] > 1.01 * heats[i - 1]]
    # from the second turn on the length of the search is known
    assert len([i for i in rises if i > 4 * threads]) == anneals - 1
    assert costs == sorted(costs, reverse=True)


def test_anneals_of_an_incomplete_plan_are_not_begun_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who has been left out how often would be forgotten."""
    rng = np.random.default_rng(1)
    instance = drhg.cvrp(rng.random((11, 2)), [0] + [6] * 9 + [4], 10, vehicles=6)
    work = task(instance, 1)
    begun = []
    whole = rs._whole
    monkeypatch.setattr(rs, "_whole", lambda *a: begun.append(1) or whole(*a))
    monkeypatch.setattr(rs, "ANNEAL", 1)
    monkeypatch.setattr(rs, "TURN", 20)
    list(islice(rs.routes(work, iter(np.linspace(0.0, 0.99, 3_000)).__next__, None), 200))
    assert len(begun) == 1


@pytest.mark.parametrize("metric", ["EXACT", "EUC_2D", "EXPLICIT"])
@pytest.mark.parametrize("threads", [1, 3])
def test_parts_are_bred_in_the_end(
    metric: str, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rs, "SMALL", 20)
    monkeypatch.setattr(rs, "MIDDLE", 20)
    monkeypatch.setattr(rs, "WHOLE", 30)
    monkeypatch.setattr(rs, "LITTER", 25)
    monkeypatch.setattr(rs, "TURN", 100)  # so that something is left to do
    monkeypatch.setattr(rs, "CHILDREN", 2 * rs.GLANCE)
    plane = drhg.uniform_cvrp(120, seed=3)
    assert plane.demand is not None
    xy = 1000 * np.asarray(plane.xy)
    limits = {"vehicles": 30, "max_distance": 4000.0, "service_time": 3.0}
    instance = drhg.cvrp(xy, plane.demand, plane.capacity, metric="EUC_2D", **limits)
    if metric == "EXPLICIT":
        i = np.arange(121)
        far = instance.distance(i[:, None], i[None, :])
        instance = drhg.cvrp(None, plane.demand, plane.capacity, matrix=far, **limits)
    elif metric == "EXACT":
        instance = drhg.cvrp(xy, plane.demand, plane.capacity, **limits)
    over = [0.0]
    costs, iterations = [], 0
    for found in islice(rs.routes(task(instance, threads), lambda: over[0], 10**9), 12):
        over[0] += 0.3  # three turns of annealing
        assert drhg.check(instance, found.solution()) == []
        assert found.cost == pytest.approx(float(drhg.cost(instance, found.solution())), rel=1e-9)
        costs.append(found.cost)
        iterations += found.iterations if len(costs) > 3 else 0
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] < costs[2]
    assert iterations >= 9 * rs.GLANCE * 10  # of parts with at least ten customers


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
    for found in snapshots(task(instance), 30):
        assert len(found.solution().routes) <= least + 1
    assert found.cost < np.inf


def test_heat_falls_from_hot_to_cold_and_grows_with_the_time_there_is() -> None:
    work = task(drhg.uniform_cvrp(100, seed=1))
    over = [0.0]
    first = {}
    for rate in (1, 30, 100_000):  # steps per hundredth of the search
        over[0] = 0.0
        counter = rs._Counter(work, lambda: over[0], None, 1.0)
        heats = []
        for i in range(100):
            over[0] = (i + 1) / 100
            counter.count(rate)
            heats.append(counter.heat())
        assert heats == sorted(heats, reverse=True)
        assert heats[-1] == pytest.approx(rs.COLD)
        first[rate] = heats[0]
    assert first[1] < first[30] < first[100_000] <= rs.HOTTEST


def test_without_an_end_the_search_warms_up_again() -> None:
    work = task(drhg.uniform_cvrp(20, seed=1))
    counter = rs._Counter(work, lambda: 1.0, None, 1.0)
    heats = []
    for _ in range(400):
        heats.append(counter.heat())
        counter.count(rs.CYCLE * work.instance.n // 50)
    rises = [i for i in range(1, 400) if heats[i] > heats[i - 1]]
    assert rises[:3] == [50, 100, 200]  # each cycle as long as all before it

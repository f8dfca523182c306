"""Annealing of plans: groups share no route, temperatures follow counts, anneals start anew."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any

import numpy as np
import pytest
from test_routes_strategy import Sequence, task

import drhg
from drhg.search.routes import annealing
from drhg.search.routes.context import SearchContext, route_lists, search_context
from drhg.search.routes.params import AnnealingParams, RouteSizes
from drhg.search.routes.route_groups import route_groups
from drhg.search.routes.schedule import AnnealingSchedule
from drhg.search.routes.strategy import Routes
from drhg.search.strategy import Budget, Task

PARAMS = AnnealingParams()


def schedule(
    work: Task, budget: Budget, end: float = 1.0, params: AnnealingParams = PARAMS, steps: int = 50
) -> AnnealingSchedule:
    return AnnealingSchedule(budget, end, work.threads, work.instance.n, params, steps)


@pytest.mark.parametrize("threads", [2, 3, 8])
@pytest.mark.parametrize("n", [30, 700, 5_000])
def test_groups_share_no_route(n: int, threads: int) -> None:
    most = 1_000
    work = task(drhg.uniform_cvrp(n, seed=2), threads)
    plan = route_lists(work, work.start.routes)
    sizes = np.diff(plan.ends, prepend=0)
    rng = np.random.default_rng(0)
    seen = np.zeros(len(sizes), int)
    for _ in range(20):
        chosen = route_groups(work, plan, rng, most)
        together = np.concatenate(chosen)
        assert len(set(together.tolist())) == len(together)
        assert all(sizes[part].sum() < most + sizes.max() for part in chosen)
        if n <= threads * most // 2:
            assert len(together) == len(sizes)
        seen[together] += 1
    assert n >= 5_000 or seen.all()


def test_temperatures_fall_and_grow_with_the_time_there_is() -> None:
    work = task(drhg.uniform_cvrp(100, seed=1))
    budget = Budget(share=0.0)
    params = AnnealingParams(last_temperature=0.05, highest_temperature=1.5)
    first = {}
    for rate in (1, 30, 100_000):  # steps per hundredth of the search
        budget.share = 0.0
        counter = schedule(work, budget, params=params)
        found = []
        for i in range(100):
            budget.share = (i + 1) / 100
            counter.count(rate)
            found.append(counter.temperature())
        assert found == sorted(found, reverse=True)
        assert found[-1] == pytest.approx(0.05)
        first[rate] = found[0]
    assert first[1] < first[30] < first[100_000] <= 1.5


def test_without_an_end_the_search_warms_up_again() -> None:
    work = task(drhg.uniform_cvrp(20, seed=1))
    params = AnnealingParams(endless_cycle=400)
    counter = schedule(work, Budget(), params=params)
    found = []
    for _ in range(400):
        found.append(counter.temperature())
        counter.count(400 * work.instance.n // 50)
    rises = [i for i in range(1, 400) if found[i] > found[i - 1]]
    assert rises[:3] == [50, 100, 200]  # each cycle as long as all before it


@pytest.mark.parametrize(("anneals", "threads"), [(1, 1), (2, 1), (3, 1), (3, 2)])
def test_copies_are_annealed_from_the_start_as_often_as_there_is_time(
    anneals: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = task(drhg.uniform_cvrp(60, seed=1), threads)
    slices, steps = 200, 50
    each = steps * slices / (0.99 * work.instance.n)  # steps of a thread per customer
    method = Routes(annealing=AnnealingParams(restart_steps=each / anneals**2))
    budget = Budget(share=0.0)
    temperatures, begun = [], []
    whole, run = annealing.whole_part, SearchContext.anneal

    def started(context: Any, plan: Any) -> Any:
        begun.append((budget.share, plan.cost))
        return whole(context, plan)

    def annealed(self: Any, part: Any, temperature: float, *others: Any) -> Any:
        temperatures.append(temperature)
        return run(self, part, temperature, *others)

    monkeypatch.setattr(annealing, "whole_part", started)
    monkeypatch.setattr(SearchContext, "anneal", annealed)
    counter = schedule(work, budget, 0.99, method.annealing, steps)
    start = route_lists(work, work.start.routes)
    costs = []
    with ThreadPoolExecutor(threads) as pool:
        for best in annealing.anneal_copies(search_context(work, method), start, pool, counter):
            costs.append(best.cost)
            assert budget.share is not None
            budget.share += 0.99 / slices
            if budget.share >= 0.99:
                break
    assert begun == [
        (pytest.approx(0.99 * i / anneals, abs=0.01), start.cost)
        for i in range(anneals)
        for _ in range(threads)
    ]
    rises = [
        i for i in range(threads, len(temperatures)) if temperatures[i] > 1.01 * temperatures[i - 1]
    ]
    # from the second slice on the length of the search is known
    assert len([i for i in rises if i > 4 * threads]) == anneals - 1
    assert costs == sorted(costs, reverse=True)


def test_anneals_of_an_incomplete_plan_are_not_begun_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The absence counters would be lost."""
    rng = np.random.default_rng(1)
    instance = drhg.cvrp(rng.random((11, 2)), [0] + [6] * 9 + [4], 10, vehicles=6)
    begun = []
    whole = annealing.whole_part
    monkeypatch.setattr(annealing, "whole_part", lambda *a: begun.append(1) or whole(*a))
    method = Routes(annealing=AnnealingParams(restart_steps=1.0), sizes=RouteSizes(part_steps=20))
    budget = Sequence(np.linspace(0.0, 0.99, 3_000))
    list(islice(method.run(task(instance, 1), budget), 200))
    assert len(begun) == 1

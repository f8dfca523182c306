"""A population of plans: who survives, and what exceeding a limit costs."""

from __future__ import annotations

import numpy as np
import pytest

import drhg
from drhg.construct.starts import construct
from drhg.search.routes.genetic import Genetic
from drhg.search.routes.params import GeneticParams, RouteMoveParams
from drhg.search.routes.penalties import Penalties
from drhg.search.routes.population import Individual, Population, SubPopulation
from drhg.search.strategy import task_of

PARAMS = GeneticParams(population_size=12, generation_size=0.5)
SIZE = PARAMS.population_size


def genetic(customers: int) -> Genetic:
    instance = drhg.uniform_cvrp(customers, seed=1)
    task = task_of(instance, construct(instance, "savings", 0)[0], 0, 1)
    return Genetic(task, PARAMS, RouteMoveParams())


def test_plans_differ_where_customers_have_other_neighbours() -> None:
    maker = genetic(6)

    def plan(*routes: list[int]) -> Individual:
        order = np.array([i for route in routes for i in route], np.int32)
        return maker.individual(order, np.cumsum([len(r) for r in routes]).astype(np.int32))

    one = plan([0, 1, 2], [3, 4, 5])
    assert one.after.tolist() == [1, 2, -1, 4, 5, -1]
    assert one.before.tolist() == [-1, 0, 1, -1, 3, 4]
    same, turned = plan([3, 4, 5], [0, 1, 2], []), plan([2, 1, 0], [5, 4, 3])
    joined, mixed = plan([0, 1, 2, 3, 4, 5]), plan([0, 4, 2], [3, 1, 5])
    # joined: 2 is followed by another, and 3 comes no longer first
    # mixed: 0, 1, 3 and 4 are followed by others
    group = SubPopulation(SIZE, 6, PARAMS)
    for other in (same, turned, joined, mixed, one):  # seen from the last
        group.add(other, Penalties(0.0, 0.0))
    row = group.distances[group.individuals.index(one)]
    found = dict(zip(group.individuals, row, strict=True))
    assert found == {one: np.inf, same: 0.0, turned: 0.0, joined: 2 / 6, mixed: 4 / 6}


def test_survivors_are_the_best_and_no_clones() -> None:
    maker, penalties = genetic(30), Penalties(1.0, 1.0)
    group = SubPopulation(SIZE, 30, PARAMS)
    rng = np.random.default_rng(0)
    plans: list[Individual] = []
    for i in range(int((1 + PARAMS.generation_size) * SIZE) + 1):
        order = rng.permutation(30).astype(np.int32)
        if i % 10 == 1:
            order = plans[-1].order
        plans.append(maker.individual(order, np.array([10, 20, 30], np.int32)))
        assert len(group.individuals) == i
        group.add(plans[-1], penalties)
    assert len(group.individuals) == SIZE
    costs = [plan.penalised(penalties) for plan in group.individuals]
    assert costs == sorted(costs)
    assert costs[0] == min(plan.penalised(penalties) for plan in plans)
    assert len({plan.order.tobytes() for plan in group.individuals}) == SIZE
    assert np.argmin(group.fitness) < SIZE // 2


def test_higher_penalties_sort_anew() -> None:
    maker = genetic(30)
    rng = np.random.default_rng(1)
    group = SubPopulation(SIZE, 30, PARAMS)
    for _ in range(SIZE):
        order = rng.permutation(30).astype(np.int32)
        ends = np.array([int(rng.integers(5, 26)), 30], np.int32)
        group.add(maker.individual(order, ends), Penalties(0.0, 0.0))
    high = Penalties(100.0, 0.0)
    group.sort(high)
    costs = [plan.penalised(high) for plan in group.individuals]
    assert costs == sorted(costs)
    for i, one in enumerate(group.individuals):  # rows follow their plans
        for j, other in enumerate(group.individuals):
            apart = np.mean((one.after != other.after) & (one.after != other.before))
            assert i == j or group.distances[i, j] >= apart


@pytest.mark.parametrize("target", [0.2, 0.9])
def test_penalties_follow_the_share_of_feasible_children(target: float) -> None:
    maker = genetic(30)
    overloaded = maker.individual(np.arange(30, dtype=np.int32), np.array([30], np.int32))
    assert overloaded.excess[0] > 0.0
    assert overloaded.excess[1] == 0.0
    params = GeneticParams(
        target_feasible=target, penalty_interval=7, penalty_increase=2.0, penalty_decrease=0.5,
        lowest_penalty=0.2, highest_penalty=3.0,
    )  # fmt: skip
    population = Population(SIZE, 30, Penalties(10.0, 10.0), params)
    seen = []
    for _ in range(21):
        population.count(overloaded)
        seen.append((population.penalties.load, population.penalties.length))
    assert seen[5] == (10.0, 10.0)
    assert seen[6] == (20.0, 5.0)
    assert seen[13] == (30.0, 2.5)  # no more than three times the first
    assert seen[20] == (30.0, 2.0)  # no less than a fifth

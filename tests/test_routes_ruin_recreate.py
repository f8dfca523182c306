"""Ruin and recreate: plans stay valid, costs are exact, slices compose."""

from __future__ import annotations

import numpy as np
import pytest
import reference as ref
from hypothesis import given, settings
from hypothesis import strategies as st
from soak import upto

from drhg.hypergraph.nearness import Nearness
from drhg.hypergraph.plan import rules_of
from drhg.kernels.random import random_state
from drhg.local_search.candidates import neighbour_lists
from drhg.problem import Instance, Metric, Solution, check, cost, cvrp
from drhg.search.routes.params import RuinParams
from drhg.search.routes.parts import lists_of, merge_lists, part_of, solution_of_lists
from drhg.search.routes.ruin_recreate import anneal

RUIN = RuinParams()
Case = tuple[Instance, list[list[int]]]


class Search:
    """A part with all routes of a plan, on which the kernel runs in place."""

    def __init__(self, instance: Instance, routes: list[list[int]], spare: int = 30) -> None:
        self.instance = instance
        self.rules = rules_of(instance)
        nearness = Nearness(instance)
        self.customers = nearness.nodes
        self.lists = neighbour_lists(instance, nearness, RUIN.neighbours)
        order, ends = lists(routes)
        absent = np.setdiff1d(self.customers, order)
        spare = min(spare, self.rules.vehicles - len(routes))
        self.part = part_of(
            self.rules, self.lists, RUIN.neighbours, order, ends,
            np.arange(len(ends), dtype=np.int32), absent, spare, np.full(instance.n, -1, np.int32),
        )  # fmt: skip
        self.start = self.cost = self.best_cost = float(cost(instance, Solution(routes)))
        self.best_absent, self.best = len(absent), self.present

    def run(self, steps: int, state: np.ndarray, temperature: float = 0.0) -> None:
        change, lowest, left = anneal(self.part, RUIN, temperature, steps, state)
        if (left, self.cost + lowest) <= (self.best_absent, self.best_cost):
            self.best_absent, self.best_cost = left, self.cost + lowest
            self.best = solution_of_lists(*lists_of(self.part, True))
        self.cost += change

    @property
    def present(self) -> Solution:
        return solution_of_lists(*lists_of(self.part, False))

    def sound(self) -> None:
        """Rings, totals and cost are what the plan says; nothing but missing customers is wrong."""
        instance, rules = self.instance, self.rules
        problem, plan = self.part.problem, self.part.routes
        found = [x.tolist() for x in self.present.routes]
        inside = {i for route in found for i in route}
        left = sorted(set(self.customers.tolist()) - inside)
        assert sorted(check(instance, self.present)) == sorted(
            f"node {i} (counted from 0) is not visited" for i in left
        )
        assert close(instance, self.cost, ref.cost(instance, found))
        m = len(problem.near)
        # what is left of a route's length after its customers have gone is rounding
        farthest = max(1.0, float(instance.distance(rules.depot, self.customers).max()))
        assert sorted(problem.node[:m][plan.route[:m] < 0].tolist()) == left
        empty = []
        for r in range(len(plan.load)):
            ring = [m + r]
            while plan.next[ring[-1]] != m + r:
                ring.append(int(plan.next[ring[-1]]))
            assert [int(plan.prev[i]) for i in ring[1:] + ring[:1]] == ring
            assert set(plan.route[ring].tolist()) == {r}
            route = problem.node[ring[1:]].tolist()
            legs = instance.distance(problem.node[ring], np.roll(problem.node[ring], -1))
            assert plan.leg[ring] == pytest.approx(legs, rel=1e-12, abs=1e-12)
            assert plan.stops[r] == len(route)
            assert plan.load[r] == sum(int(rules.demand[i]) for i in route)
            length = ref.route_length(instance, route) + instance.service_time * len(route)
            assert plan.length[r] == pytest.approx(length, rel=1e-9, abs=1e-9 * farthest)
            empty += [] if route else [r]
        assert sorted(plan.empty[: plan.empty[-1]].tolist()) == empty
        assert all("is not visited" in fault for fault in check(instance, self.best))
        assert sum(map(len, self.best.routes)) == len(self.customers) - self.best_absent
        assert close(instance, self.best_cost, float(cost(instance, self.best)))


def lists(routes: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    order = np.array([i for route in routes for i in route], np.int32)
    return order, np.cumsum([len(route) for route in routes]).astype(np.int32)


def close(instance: Instance, a: float, b: float) -> bool:
    return a == b if instance.integral else a == pytest.approx(b, rel=1e-9, abs=1e-9)


@st.composite
def plans(draw: st.DrawFn, most: int = 30) -> Case:
    customers = draw(st.integers(1, most))
    shape = draw(st.sampled_from(ref.SHAPES))
    metric = draw(st.sampled_from(list(Metric)))
    limit, fleet = draw(st.booleans()), draw(st.booleans())
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    return ref.random_plan(rng, customers, shape, metric, limit=limit, fleet=fleet)


seeds = st.integers(0, 2**32)


@settings(max_examples=upto(200))
@given(plans())
def test_linked_lists_hold_the_plan(case: Case) -> None:
    instance, routes = case
    search = Search(instance, routes)
    assert [r.tolist() for r in search.present.routes] == routes
    search.sound()


@settings(max_examples=upto(600))
@given(plans(), seeds, st.sampled_from([0.0, 1.0, 30.0]), st.sampled_from([1, 7, 60]))
def test_slices_keep_plans_valid(case: Case, seed: int, temperature: float, steps: int) -> None:
    instance, routes = case
    search = Search(instance, routes)
    start = search.cost
    search.run(steps, random_state(seed), temperature)
    search.sound()
    assert sum(len(r) for r in search.present.routes) == instance.n - 1
    assert search.best_cost <= min(start, search.cost) + 1e-6
    if temperature == 0:
        assert search.cost <= start + 1e-9


@settings(max_examples=upto(300))
@given(plans(), seeds, st.sampled_from([0.2, 0.6, 1.0]))
def test_plans_with_customers_left_out_stay_sound(case: Case, seed: int, share: float) -> None:
    instance, routes = case
    rng = np.random.default_rng(seed)
    kept = [[i for i in route if rng.random() >= share] for route in routes]
    search = Search(instance, [route for route in kept if route])
    state = random_state(seed)
    for _ in range(3):
        search.run(15, state, 1.0)
        search.sound()


@settings(max_examples=upto(150))
@given(plans(), seeds, st.integers(0, 60), st.booleans())
def test_slices_compose(case: Case, seed: int, first: int, gaps: bool) -> None:
    instance, routes = case
    rng = np.random.default_rng(seed)
    if gaps:
        routes = [[i for i in route if rng.random() < 0.7] for route in routes]
        routes = [route for route in routes if route]
    one, two = Search(instance, routes), Search(instance, routes)
    state, other = random_state(seed), random_state(seed)
    one.run(60, state, 5.0)
    two.run(first, other, 5.0)
    two.run(60 - first, other, 5.0)
    assert state.tolist() == other.tolist()
    assert one.cost == pytest.approx(two.cost)
    for a, b in zip(one.part.routes, two.part.routes, strict=True):
        assert a == pytest.approx(b)


@pytest.mark.parametrize("seed", range(10))
def test_as_many_as_possible_are_served(seed: int) -> None:
    """Ten customers of 6 into six vehicles of 10: four always stay behind."""
    rng = np.random.default_rng(seed)
    instance = cvrp(rng.random((11, 2)), [0] + [6] * 10, 10, vehicles=6)
    search = Search(instance, [])
    search.run(60, random_state(seed))
    search.sound()
    assert search.best_absent == 4


@settings(max_examples=upto(200))
@given(plans(), seeds)
def test_a_part_leaves_the_rest_alone(case: Case, seed: int) -> None:
    """Some routes are taken out, worked on and merged with the others again."""
    instance, routes = case
    rng = np.random.default_rng(seed)
    taken = rng.random(len(routes)) < 0.5
    rules = rules_of(instance)
    near = neighbour_lists(instance, Nearness(instance), RUIN.neighbours)
    order, ends = lists(routes)
    scratch = np.full(instance.n, -1, np.int32)
    spare = min(3, rules.vehicles - len(routes))
    part = part_of(
        rules, near, RUIN.neighbours, order, ends, np.flatnonzero(taken).astype(np.int32),
        np.zeros(0, np.int64), spare, scratch,
    )  # fmt: skip
    assert (scratch == -1).all()
    for i, row in enumerate(part.problem.near):  # nearest first, all in the part, never itself
        found = row[row >= 0]
        far = instance.distance(part.problem.node[i], part.problem.node[found])
        assert i not in found
        assert far == pytest.approx(part.problem.far[i, : len(found)])
        assert (
            len(found)
            == len(set(found.tolist()))
            == min(RUIN.neighbours, len(part.problem.near) - 1)
        )
    change, lowest, _ = anneal(part, RUIN, 3.0, 20, random_state(seed))
    for best, delta in ((False, change), (True, lowest)):
        merged = solution_of_lists(
            *merge_lists(order, ends, taken, *lists_of(part, best)),
        )
        assert check(instance, merged) == []
        total = float(cost(instance, Solution(routes))) + delta
        assert close(instance, total, float(cost(instance, merged)))
        untouched = [route for route, out in zip(routes, taken, strict=True) if not out]
        assert [r.tolist() for r in merged.routes[: len(untouched)]] == untouched


@pytest.mark.parametrize("seed", range(8))
def test_customers_left_out_are_driven_in(seed: int) -> None:
    """Easy packings: unit demands, nearly full routes, no spare vehicle, everyone left out."""
    rng = np.random.default_rng(seed)
    n, capacity = 25, 6
    vehicles = 4 + (seed % 2)
    depot = int(rng.integers(n))
    demand = np.ones(n, dtype=int)
    demand[depot] = 0
    instance = cvrp(rng.random((n, 2)), demand, capacity, depot=depot, vehicles=vehicles)
    search = Search(instance, [])
    search.run(400, random_state(seed))
    search.sound()
    assert check(instance, search.present) == []
    assert check(instance, search.best) == []


@pytest.mark.parametrize("seed", range(6))
def test_a_packing_with_large_and_small_customers_is_found(seed: int) -> None:
    """Three bins of 10 that exactly hold 7 3, 6 4 and 5 5, from a plan that blocks two of them."""
    demand = [0, 7, 3, 6, 4, 5, 5]
    rng = np.random.default_rng(seed)
    instance = cvrp(rng.random((7, 2)), demand, 10, vehicles=3)
    search = Search(instance, [[5, 4], [6, 2], [1]])  # 3 is left out and fits nowhere
    search.run(3000, random_state(seed))
    search.sound()
    assert check(instance, search.best) == []


@pytest.mark.compiled
@pytest.mark.parametrize("seed", range(6))
def test_a_perfect_packing_of_triples_is_found(seed: int) -> None:
    """Not in one step: customers left out must take turns."""
    rng = np.random.default_rng(seed)
    a, b = rng.integers(26, 40, 6), rng.integers(26, 34, 6)
    demand = np.concatenate(([0], a, b, 100 - a - b))
    instance = cvrp(rng.random((19, 2)), demand, 100, vehicles=6)
    search = Search(instance, [])
    search.run(60_000, random_state(seed))
    search.sound()
    assert check(instance, search.best) == []


@pytest.mark.parametrize("seed", range(6))
def test_small_plans_become_optimal(seed: int) -> None:
    rng = np.random.default_rng(seed)
    instance, routes = ref.random_plan(
        rng, 6, "random", Metric.EUC_2D, limit=seed % 2 == 0, fleet=seed % 3 == 0
    )
    search = Search(instance, routes)
    for temperature in (20.0, 5.0, 1.0, 0.1):
        search.run(500, random_state(seed, int(10 * temperature)), temperature)
    search.sound()
    assert search.best_cost == ref.best_plan(instance)[0]


def test_a_string_taken_out_may_make_a_route_longer() -> None:
    """Where triangles do not hold (rounding is enough), a route may need a stop to stay short."""
    matrix = np.full((5, 5), 1)
    matrix[0, 2] = matrix[2, 0] = 12  # 0 1 2 0 is 14 long, without customer 1 it is 24
    matrix[3, 4] = matrix[4, 3] = 20  # where customer 1 would save 18
    matrix[2, 3] = matrix[3, 2] = matrix[2, 4] = matrix[4, 2] = 30
    instance = cvrp(None, [0, 1, 1, 1, 1], 4, matrix=matrix, max_distance=22)
    for seed in range(500):  # a single step, which seldom takes out just that one
        search = Search(instance, [[1, 2], [3, 4]])
        search.run(1, random_state(seed), 5.0)
        search.sound()


def test_nothing_to_do_is_done() -> None:
    instance = cvrp([[0, 0]], [0], 4)
    search = Search(instance, [])
    search.run(5, random_state(1))
    assert search.cost == 0
    assert search.best.routes == ()


def test_steps_improve_a_real_plan() -> None:
    rng = np.random.default_rng(4)
    n = 101
    demand = rng.integers(1, 10, n)
    demand[0] = 0
    instance = cvrp(rng.random((n, 2)), demand, 50)
    search = Search(instance, [[i] for i in range(1, n)])
    for i in range(10):
        search.run(2_000, random_state(4, i), 0.05 * 0.6**i)
    search.sound()
    assert search.best_cost < 0.25 * float(cost(instance, Solution([[i] for i in range(1, n)])))

"""Strings removed and inserted: plans stay valid, costs are exact, slices compose."""

from __future__ import annotations

import numpy as np
import pytest
import reference as ref
from hypothesis import given, settings
from hypothesis import strategies as st

from drhg import strings as s
from drhg.compiled import random_state
from drhg.hypergraph import Nearness, rules_of
from drhg.local_search import neighbour_lists
from drhg.problem import Instance, Metric, Solution, check, cost, cvrp

Case = tuple[Instance, list[list[int]]]


class Search:
    """A plan on which the kernel runs in place, and the best one seen."""

    def __init__(self, instance: Instance, routes: list[list[int]]) -> None:
        self.instance = instance
        self.rules = rules_of(instance)
        nearness = Nearness(instance)
        self.customers = nearness.nodes
        self.lists = neighbour_lists(instance, nearness, s.NEAREST)
        self.plan = s.routes_of(self.rules, Solution(routes))
        self.cost = float(cost(instance, Solution(routes)))
        whole = sum(map(len, routes)) == len(self.customers)
        self.best_cost = self.cost if whole else np.inf
        self.best_next, self.best_first = self.plan.next.copy(), self.plan.first.copy()

    def run(
        self, steps: int, state: np.ndarray, temperature: float = 0.0, cooling: float = 1.0
    ) -> float:
        rules = self.rules
        self.cost, self.best_cost, temperature = s.string_slice(
            rules, self.customers, self.lists, self.plan, self.cost, self.best_cost,
            self.best_next, self.best_first, temperature, cooling, steps, state,
        )  # fmt: skip
        return temperature

    @property
    def present(self) -> Solution:
        return s.solution_of_routes(self.plan.next, self.plan.first, self.rules.depot)

    @property
    def best(self) -> Solution:
        return s.solution_of_routes(self.best_next, self.best_first, self.rules.depot)

    def sound(self) -> None:
        """Lists, totals and cost are what the plan says; nothing but missing customers is wrong."""
        instance, plan, rules = self.instance, self.plan, self.rules
        found = [x.tolist() for x in self.present.routes]
        inside = {i for route in found for i in route}
        left = sorted(set(self.customers.tolist()) - inside)
        assert sorted(check(instance, self.present)) == sorted(
            f"node {i + 1} is not visited" for i in left
        )
        assert close(instance, self.cost, ref.cost(instance, found))
        assert [i for i in self.customers if plan.route[i] < 0] == left
        for r, start in enumerate(plan.first.tolist()):
            route = []
            node = start
            while node != rules.depot:
                route.append(node)
                node = int(plan.next[node])
            assert plan.last[r] == (route[-1] if route else rules.depot)
            back, node = [], int(plan.last[r])
            while node != rules.depot:
                back.append(node)
                node = int(plan.prev[node])
            assert back[::-1] == route
            assert set(plan.route[route].tolist()) <= {r}
            assert plan.stops[r] == len(route)
            assert plan.load[r] == sum(int(rules.demand[i]) for i in route)
            length = ref.route_length(instance, route) + instance.service_time * len(route)
            assert plan.length[r] == pytest.approx(length, rel=1e-9, abs=1e-9)
        if self.best_cost < np.inf:
            assert check(instance, self.best) == []
            assert close(instance, self.best_cost, float(cost(instance, self.best)))


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


@settings(max_examples=200)
@given(plans())
def test_linked_lists_hold_the_plan(case: Case) -> None:
    instance, routes = case
    search = Search(instance, routes)
    assert [r.tolist() for r in search.present.routes] == routes
    search.sound()


@settings(max_examples=600)
@given(plans(), seeds, st.sampled_from([0.0, 1.0, 30.0]), st.sampled_from([1, 7, 60]))
def test_slices_keep_plans_valid(case: Case, seed: int, temperature: float, steps: int) -> None:
    instance, routes = case
    search = Search(instance, routes)
    start = search.cost
    search.run(steps, random_state(seed), temperature)
    search.sound()
    assert sum(len(r) for r in search.present.routes) == instance.n - 1
    assert search.best_cost <= min(start, search.cost + 1e-6)
    if temperature == 0:
        assert search.cost <= start + 1e-9


@settings(max_examples=300)
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


@settings(max_examples=150)
@given(plans(), seeds, st.integers(0, 60), st.booleans(), st.sampled_from([1.0, 0.97]))
def test_slices_compose(case: Case, seed: int, first: int, gaps: bool, cooling: float) -> None:
    instance, routes = case
    rng = np.random.default_rng(seed)
    if gaps:
        routes = [[i for i in route if rng.random() < 0.7] for route in routes]
        routes = [route for route in routes if route]
    one, two = Search(instance, routes), Search(instance, routes)
    state, other = random_state(seed), random_state(seed)
    end = one.run(60, state, 5.0, cooling)
    warm = two.run(first, other, 5.0, cooling)
    assert two.run(60 - first, other, warm, cooling) == end
    assert state.tolist() == other.tolist()
    assert (one.cost, one.best_cost) == (two.cost, two.best_cost)
    for a, b in zip(one.plan, two.plan, strict=True):
        assert a.tolist() == b.tolist()
    assert one.best_next.tolist() == two.best_next.tolist()
    assert one.best_first.tolist() == two.best_first.tolist()


@pytest.mark.parametrize("seed", range(10))
def test_slices_compose_while_customers_are_left_out(seed: int) -> None:
    """Ten customers of 6 into six vehicles of 10: four always stay behind."""
    rng = np.random.default_rng(seed)
    instance = cvrp(rng.random((11, 2)), [0] + [6] * 10, 10, vehicles=6)
    one, two = Search(instance, []), Search(instance, [])
    state, other = random_state(seed), random_state(seed)
    one.run(60, state)
    for _ in range(6):
        two.run(10, other)
    one.sound()
    assert (one.plan.route < 0).sum() == 5  # and the depot
    assert one.cost == two.cost
    assert [a.tolist() for a in one.plan] == [b.tolist() for b in two.plan]
    assert one.best_cost == np.inf


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
    assert search.best_cost < np.inf


@pytest.mark.parametrize("seed", range(6))
def test_a_perfect_packing_of_triples_is_found(seed: int) -> None:
    """Not in one step: customers left out must take turns."""
    rng = np.random.default_rng(seed)
    a, b = rng.integers(26, 40, 6), rng.integers(26, 34, 6)
    demand = np.concatenate(([0], a, b, 100 - a - b))
    instance = cvrp(rng.random((19, 2)), demand, 100, vehicles=6)
    search = Search(instance, [])
    search.run(10_000, random_state(seed))
    search.sound()
    assert check(instance, search.best) == []


@pytest.mark.parametrize("seed", range(6))
def test_small_plans_become_optimal(seed: int) -> None:
    rng = np.random.default_rng(seed)
    instance, routes = ref.random_plan(
        rng, 6, "random", Metric.EUC_2D, limit=seed % 2 == 0, fleet=seed % 3 == 0
    )
    search = Search(instance, routes)
    search.run(2000, random_state(seed), 20.0, 0.995)
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
    search.run(20_000, random_state(4), 0.05, 0.9997)
    search.sound()
    assert search.best_cost < 0.25 * float(cost(instance, Solution([[i] for i in range(1, n)])))

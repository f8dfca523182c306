"""Ruin and recreate over pieces: plans keep all limits, costs and times are exact."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import reference as ref
from hypothesis import given, settings
from hypothesis import strategies as st
from soak import cases, upto

import drhg
from drhg.errors import DrhgError
from drhg.kernels.random import random_state
from drhg.problem import Instance, Solution, check, cost, vrp
from drhg.problem.resources import Resources, join, visit
from drhg.search.routes.context import whole_part
from drhg.search.routes.piece_context import piece_context, piece_table
from drhg.search.routes.pieces import lists_of_part
from drhg.search.routes.strategy import Routes
from drhg.search.strategy import task_of

VARIANTS = ("windows", "open", "asymmetric", "duration", "release", "length", "mixture")


def random_instance(
    rng: np.random.Generator, n: int, variant: str, fleet: bool = False
) -> Instance:
    """An instance of whole numbers with one complication, or with any of them at once.

    Every customer can be served alone.
    """
    whole = ref.random_windows(rng, n)
    xy = rng.integers(0, 40, (n, 2)).astype(float)
    flat = np.hypot(*(xy[:, None] - xy[None]).transpose(2, 0, 1)).round()
    assert whole.demand is not None
    common = {"demand": whole.demand, "capacity": whole.capacity, "vehicles": None}
    if fleet:
        least = -(-int(whole.demand.sum()) // (whole.capacity or 1))
        common["vehicles"] = int(rng.integers(max(1, least), n + 1))
    if variant == "mixture":
        return replace(whole, vehicles=common["vehicles"])
    if variant == "asymmetric":
        return vrp(matrix=whole.matrix, **common)
    if variant == "open":
        return vrp(xy=xy, metric="EUC_2D", returns=False, **common)
    there = flat[0]
    service = rng.integers(0, 9, n) * (np.arange(n) > 0)
    least = float((2 * there + service).max())
    if variant == "duration":
        return vrp(matrix=flat, service_time=service, max_duration=least + 20, **common)
    if variant == "length":
        return vrp(matrix=flat, service_time=service, max_distance=least + 20, **common)
    horizon = least + 90
    release = rng.integers(0, 40, n) * (np.arange(n) > 0) * (variant == "release")
    closes = rng.integers(release + there, horizon - service - there + 1)
    opens = np.maximum(0, closes - rng.integers(0, 50, n))
    windows = np.stack((opens, closes), axis=1).astype(float)
    windows[0] = 0, horizon
    return vrp(matrix=flat, service_time=service, windows=windows,
               release=release if release.any() else None, **common)  # fmt: skip


def best_plan(instance: Instance) -> float:
    """The cost of a cheapest plan, by all partitions and orders; inf if there is none."""
    assert instance.demand is not None
    assert instance.capacity is not None
    customers = [i for i in range(instance.n) if i != instance.depot]
    known: dict[tuple[int, ...], float] = {}

    def best_route(group: tuple[int, ...]) -> float:
        if group not in known:
            fits = sum(int(instance.demand[i]) for i in group) <= instance.capacity
            orders = sorted(
                (ref.route_length(instance, order), order)
                for order in itertools.permutations(group)
                if fits
            )
            known[group] = next(
                (length for length, order in orders if keeps_limits(instance, order)), math.inf
            )
        return known[group]

    most = instance.n if instance.vehicles is None else instance.vehicles
    return min(
        (
            sum(best_route(tuple(group)) for group in groups)
            for groups in ref.partitions(customers)
            if len(groups) <= most
        ),
        default=math.inf,
    )


def keeps_limits(instance: Instance, order: Sequence[int]) -> bool:
    """The slow walk, or without a horizon the checker's."""
    if instance.max_distance is not None:
        length = ref.route_length(instance, order) + sum(ref.service(instance, i) for i in order)
        return length <= instance.max_distance
    if instance.windows is not None:
        return not ref.breaks_time(instance, order)
    if instance.max_duration is not None:
        length = ref.route_length(instance, order) + sum(ref.service(instance, i) for i in order)
        return length <= instance.max_duration
    return True


class Search:
    """A whole plan as one part, on which the kernel runs in place."""

    def __init__(
        self, instance: Instance, start: Solution | None = None, locked: Sequence[list[int]] = ()
    ) -> None:
        self.instance = instance
        task = task_of(instance, start or Solution([]), 0, 1)
        self.context = piece_context(task, Routes(), locked)
        plan = self.context.lists(task.start)
        self.part = whole_part(self.context, plan)
        self.cost, self.best, self.left = plan.cost, plan, len(plan.absent)

    def run(self, steps: int, state: np.ndarray, temperature: float = 0.0) -> None:
        change, lowest, left = self.context.anneal(self.part, temperature, steps, state)
        if (left, self.cost + lowest) <= self.best.rank:
            self.best = self.context.plan_of(self.part, self.cost + lowest, best=True)
        self.cost += change

    def sound(self) -> None:
        """Nothing but missing customers is wrong, and all values are what a walk finds."""
        instance, context = self.instance, self.context
        for plan, total in (
            (context.plan_of(self.part, self.cost, best=False), self.cost),
            (self.best, self.best.cost),
        ):
            solution = context.solution(plan)
            faults = check(instance, solution)
            assert all("is not visited" in fault for fault in faults), (faults, solution.routes)
            whole = float(cost(instance, solution)) + context.inside(plan.absent)
            assert total == pytest.approx(whole, rel=1e-9, abs=1e-9)
        times_are_walked(self)


def times_are_walked(search: Search) -> None:
    """What a part keeps of times, loads and lengths, against joining stop by stop."""
    problem, routes, instance = search.part.problem, search.part.routes, search.instance
    m = len(problem.node)
    for r in range(len(routes.load)):
        ring = [m + r]
        while routes.next[ring[-1]] != m + r:
            ring.append(int(routes.next[ring[-1]]))
        assert [int(routes.prev[i]) for i in ring[1:] + ring[:1]] == ring
        assert routes.stops[r] == len(ring) - 1
        assert routes.load[r] == sum(int(problem.load[i]) for i in ring[1:])
        if len(ring) == 1:
            assert routes.leg[m + r] == 0.0
            continue
        legs, times = [], []
        for a, b in itertools.pairwise([*ring, m + r]):
            tail = problem_tail(search, a)
            head = instance.depot if b >= m else int(problem.node[b])
            there = b < m or instance.returns
            legs.append(instance.distance(tail, head) if there else 0.0)
            times.append(instance.travel_time(tail, head) if there else 0.0)
        assert routes.leg[ring] == pytest.approx(legs)
        total = sum(legs) + sum(float(problem.length[i]) for i in ring[1:])
        assert routes.length[r] == pytest.approx(total, abs=1e-7)
        if not problem.timed:
            continue
        opens, closes = instance.opens[instance.depot], instance.closes[instance.depot]
        stops = [visit(0.0, 0.0, opens, closes)]
        for i in ring[1:]:
            stops.append(visit(0.0, problem.duration[i], problem.opens[i], problem.closes[i]))
        last = visit(0.0, 0.0, -math.inf, closes) if instance.returns else visit(0.0)
        stops.append(last)
        for k, place in enumerate(ring[1:], start=1):
            front, rest = joined(stops[: k + 1], times), joined(stops[k:], times[k:])
            assert routes.ready[place] == pytest.approx(front.earliest + front.duration)
            assert routes.due[place] == pytest.approx(rest.latest, abs=1e-7)
            if problem.ranged:
                assert routes.front[place] == pytest.approx(front.duration)
                assert routes.latest[place] == pytest.approx(front.latest)
                assert routes.rest[place] == pytest.approx(rest.duration)
                assert routes.earliest[place] == pytest.approx(rest.earliest)


def problem_tail(search: Search, place: int) -> int:
    m = len(search.part.problem.node)
    if place >= m:
        return search.instance.depot
    return int(search.context.table.pieces.tail[search.part.problem.node[place]])


def joined(stops: list[Resources], times: list[float]) -> Resources:
    whole = stops[0]
    for stop, time in zip(stops[1:], times, strict=False):
        whole = join(whole, stop, 0.0, time)
    return whole


variants = st.sampled_from(VARIANTS)
seeds = st.integers(0, 2**32)


@settings(max_examples=upto(300))
@given(variants, st.integers(1, 25), seeds, st.sampled_from([0.0, 3.0, 30.0]), st.booleans())
def test_slices_keep_every_limit(
    variant: str, customers: int, seed: int, temperature: float, fleet: bool
) -> None:
    rng = np.random.default_rng(seed)
    search = Search(random_instance(rng, customers + 1, variant, fleet))
    state = random_state(seed)
    for steps in (1, 7, 40):
        search.run(steps, state, temperature)
        search.sound()
    if not fleet:
        assert len(search.best.absent) == 0


@settings(max_examples=upto(150))
@given(variants, st.integers(1, 25), seeds)
def test_a_given_plan_is_taken_up(variant: str, customers: int, seed: int) -> None:
    """The best plan of one search is where another one begins, to the last digit."""
    rng = np.random.default_rng(seed)
    first = Search(random_instance(rng, customers + 1, variant))
    first.run(30, random_state(seed), 3.0)
    again = Search(first.instance, first.context.solution(first.best))
    again.sound()
    assert again.cost == pytest.approx(first.best.cost)
    assert len(again.best.absent) == 0


@settings(max_examples=upto(150))
@given(variants, seeds, st.data())
def test_locked_customers_stay_together(variant: str, seed: int, data: st.DataObject) -> None:
    """Pieces of a plan are never cut, and their first and last customers may have neighbours."""
    rng = np.random.default_rng(seed)
    first = Search(random_instance(rng, 16, variant))
    first.run(60, random_state(seed), 3.0)
    start = first.context.solution(first.best)
    locked = []
    for route in start.routes:
        if len(route) > 1 and data.draw(st.booleans()):
            begin = data.draw(st.integers(0, len(route) - 2))
            end = data.draw(st.integers(begin + 2, len(route)))
            locked.append(route[begin:end].tolist())
    search = Search(first.instance, start, locked)
    search.sound()
    search.run(60, random_state(seed), 10.0)
    search.sound()
    routes = [route.tolist() for route in search.context.solution(search.best).routes]
    for sequence in locked:
        home = next(route for route in routes if sequence[0] in route)
        at = home.index(sequence[0])
        assert home[at : at + len(sequence)] == sequence


def test_an_order_that_nobody_can_drive_is_refused() -> None:
    shops = vrp(xy=[[0, 0], [0, 3], [4, 0]], windows=[[0, 20], [5, 6], [0, 9]])
    with pytest.raises(DrhgError, match=r"nodes 1 and 2 .* in this order: it would be 1 late"):
        piece_table(shops, [[1, 2]])


@settings(max_examples=upto(60))
@given(variants, st.integers(2, 20), seeds, st.integers(0, 40))
def test_slices_compose(variant: str, customers: int, seed: int, first: int) -> None:
    instance = random_instance(np.random.default_rng(seed), customers + 1, variant)
    one, two = Search(instance), Search(instance)
    state, other = random_state(seed), random_state(seed)
    one.run(40, state, 5.0)
    two.run(first, other, 5.0)
    two.run(40 - first, other, 5.0)
    assert state.tolist() == other.tolist()
    assert one.cost == pytest.approx(two.cost)
    assert lists_of_part(one.part, False).order.tolist() == (
        lists_of_part(two.part, False).order.tolist()
    )


@pytest.mark.compiled
@pytest.mark.parametrize("variant", VARIANTS)
def test_small_instances_are_solved_to_the_optimum(variant: str) -> None:
    """By brute force over all partitions and orders; at least 99 % of them."""
    count, found = cases(8, 150), 0
    for seed in range(count):
        rng = np.random.default_rng([seed, len(variant)])
        n = int(rng.integers(3, cases(6, 8) + 1))
        instance = random_instance(rng, n, variant, fleet=seed % 3 == 0)
        known = best_plan(instance)
        result = drhg.solve(instance, max_iters=4_000, threads=1, seed=seed)
        if math.isinf(known):
            assert result.status == "infeasible"
            found += 1
        else:
            assert check(instance, result.solution) == []
            assert result.cost >= known - 1e-9
            found += result.cost <= known + 1e-9
    assert found >= 0.99 * count


@pytest.mark.compiled
@pytest.mark.parametrize("seed", range(cases(40, 1000)))
def test_plans_with_windows_break_no_rule(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 202))
    instance = random_instance(rng, n, VARIANTS[seed % len(VARIANTS)])
    result = drhg.solve(instance, max_iters=2_000, threads=1 + seed % 2, seed=seed)
    assert check(instance, result.solution) == []
    assert result.status != "infeasible"

"""Edge assembly: cycles alternate and cover the difference, children are tours, gains are exact."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import reference as ref
from hypothesis import given, settings
from hypothesis import strategies as st
from soak import upto

from drhg import assembly, local_search
from drhg.compiled import random_state
from drhg.construct import shaken_greedy
from drhg.hypergraph import Nearness, rules_of
from drhg.problem import Instance, Metric, Solution, check, cost, tsp
from drhg.solver import solve


def edges_of(tour: list[int]) -> Counter[frozenset[int]]:
    return Counter(map(frozenset, zip(tour, tour[1:] + tour[:1], strict=True)))


def herd_of(instance: Instance, tours: list[list[int]]) -> tuple[np.ndarray, assembly.Population]:
    near = local_search.neighbour_lists(instance, Nearness(instance))
    population = assembly.population_of(len(tours), near)
    for row, tour in enumerate(tours):
        assembly.admit(population, row, np.array(tour, dtype=np.int32))
    return near, population


@st.composite
def herds(draw: st.DrawFn) -> tuple[Instance, list[list[int]], int]:
    n = draw(st.integers(8, 40))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    metric = draw(st.sampled_from(list(Metric)))
    fixed = draw(st.sampled_from([0.0, 0.0, 0.3]))
    shape = draw(st.sampled_from(ref.SHAPES))
    instance, tour = ref.random_tour(rng, n, shape, metric, fixed)
    near = local_search.neighbour_lists(instance, Nearness(instance), draw(st.integers(1, 10)))
    make = shaken_greedy(instance, near)
    more = [make(rng).tolist() for _ in range(draw(st.integers(1, 5)))]
    return instance, [tour, *more], int(rng.integers(2**31))


@settings(deadline=None, max_examples=upto(150))
@given(herds())
def test_cycles_alternate_and_cover_exactly_the_difference(case: tuple) -> None:
    instance, tours, seed = case
    n = instance.n
    _, herd = herd_of(instance, tours)
    cycles, starts = np.empty(2 * n + 2, np.int32), np.empty(n + 2, np.int32)
    args = (random_state(seed), cycles, starts)
    count = assembly.alternating_cycles(herd.links[0], herd.links[1], *args)
    mine, other = (edges_of(tour) for tour in tours[:2])
    seen: tuple[Counter, Counter] = (Counter(), Counter())
    for i in range(count):
        cycle = cycles[starts[i] : starts[i + 1]].tolist()
        assert len(cycle) >= 4
        assert len(cycle) % 2 == 0
        for j, node in enumerate(cycle):
            seen[j % 2][frozenset((node, cycle[(j + 1) % len(cycle)]))] += 1
    assert seen[0] == mine - other
    assert seen[1] == other - mine


@settings(deadline=None, max_examples=upto(150))
@given(herds(), st.booleans(), st.integers(1, 5))
def test_breeding_keeps_tours_sound_and_gains_exact(case: tuple, spread: bool, kids: int) -> None:
    instance, tours, seed = case
    rules = rules_of(instance)
    near, herd = herd_of(instance, tours)
    before = [float(cost(instance, Solution([tour]))) for tour in tours]
    fathers = np.arange(len(tours))
    mothers = np.append(fathers[1:], -1)
    guests = herd.links[:1].copy()
    assembly.count_shares(near, herd)
    state = random_state(seed)
    args = (herd, fathers, mothers, guests, kids, spread, state)
    gains = assembly.breed(rules.space, rules.fixed, near, *args)
    for row in range(len(tours)):
        tour = herd.tours[row]
        assert check(instance, Solution([tour])) == []  # fixed edges too
        assert gains[row] >= 0
        after = float(cost(instance, Solution([tour])))
        assert after == pytest.approx(before[row] - gains[row], abs=1e-6 * max(1.0, before[row]))
        assert tour[herd.poses[row]].tolist() == list(range(instance.n))
        for p in range(instance.n):
            beside = {int(tour[p - 1]), int(tour[(p + 1) % instance.n])}
            assert set(herd.links[row, tour[p]].tolist()) == beside


@settings(deadline=None, max_examples=upto(50))
@given(herds())
def test_shares_count_tours_with_an_edge(case: tuple) -> None:
    instance, tours, _ = case
    near, herd = herd_of(instance, tours)
    assembly.count_shares(near, herd)
    edges = sum((edges_of(tour) for tour in tours), Counter())
    listed = {frozenset((u, int(v))) for u in range(instance.n) for v in near[u]}
    assert herd.shares.sum() == sum(count for edge, count in edges.items() if edge in listed)
    for edge in listed:
        u, v = sorted(edge)
        node, slot = (u, near[u].tolist()) if v in near[u] else (v, near[v].tolist())
        assert herd.shares[node, slot.index(v if node == u else u)] == edges[edge]


def test_a_child_takes_the_better_edges_of_both() -> None:
    """Two far apart groups, each tour good in one of them: one pair is enough for the optimum."""
    rng = np.random.default_rng(3)
    xy = np.concatenate((rng.random((12, 2)), np.array([40, 0]) + rng.random((12, 2))))
    instance = tsp(xy)
    good = solve(instance, max_iters=2000, seed=1).solution.tour.tolist()
    first = next(i for i in range(24) if good[i] < 12 <= good[i - 1])
    good = good[first:] + good[:first]  # the left group first
    assert max(good[:12]) < 12
    spoiled = [[*good], [*good]]
    spoiled[0][3], spoiled[0][5] = good[5], good[3]
    spoiled[1][15], spoiled[1][18] = good[18], good[15]
    near, herd = herd_of(instance, spoiled)
    rules = rules_of(instance)
    assembly.count_shares(near, herd)
    pair = (np.array([0]), np.array([1]), herd.links[:1].copy(), 1, False, random_state(0))
    assembly.breed(rules.space, rules.fixed, near, herd, *pair)
    assert cost(instance, Solution([herd.tours[0]])) == pytest.approx(
        float(cost(instance, Solution([good])))
    )


@pytest.mark.parametrize("metric", [Metric.EUC_2D, Metric.EXPLICIT, Metric.GEO])
@pytest.mark.parametrize("fixed", [0.0, 0.3])
def test_shaken_greedy_makes_different_sound_tours(metric: Metric, fixed: float) -> None:
    instance, _ = ref.random_tour(np.random.default_rng(1), 60, "uniform", metric, fixed)
    near = local_search.neighbour_lists(instance, Nearness(instance))
    make = shaken_greedy(instance, near)
    made = [make(np.random.default_rng(i)) for i in range(5)]
    for tour in made:
        assert check(instance, Solution([tour])) == []
    assert len({tuple(tour) for tour in made}) > 1
    assert make(np.random.default_rng(0)).tolist() == made[0].tolist()


@pytest.mark.compiled
def test_breeding_beats_local_search_alone() -> None:
    from drhg import generate

    instance = generate.uniform_tsp(200, seed=0)
    best = solve(instance, max_iters=6000, seed=0, threads=2)
    assert best.cost == pytest.approx(10.783127205755257, rel=1e-4)  # fast_tsp, 2 s


def test_more_threads_than_tours() -> None:
    from drhg import generate

    instance = generate.uniform_tsp(40, seed=1)
    result = solve(instance, max_iters=200, seed=0, threads=40)
    assert check(instance, result.solution) == []

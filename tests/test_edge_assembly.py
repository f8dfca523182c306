"""Edge assembly: AB-cycles cover the difference, children are tours, gains are exact."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import reference as ref
from hypothesis import given, settings
from hypothesis import strategies as st
from soak import upto

from drhg.construct.starts import shaken_greedy
from drhg.hypergraph.nearness import Nearness
from drhg.hypergraph.plan import rules_of
from drhg.kernels.random import random_state
from drhg.local_search.candidates import neighbour_lists
from drhg.local_search.kopt import move_context
from drhg.local_search.params import MoveParams
from drhg.problem import Instance, Metric, Solution, check, cost, tsp
from drhg.search.tours import edge_assembly as assembly
from drhg.session.solve import solve


def edges_of(tour: list[int]) -> Counter[frozenset[int]]:
    return Counter(map(frozenset, zip(tour, tour[1:] + tour[:1], strict=True)))


def population_of(
    instance: Instance, tours: list[list[int]]
) -> tuple[np.ndarray, assembly.Population]:
    near = neighbour_lists(instance, Nearness(instance), 10)
    population = assembly.population_of(len(tours), near)
    for row, tour in enumerate(tours):
        assembly.set_tour(population, row, np.array(tour, dtype=np.int32))
    return near, population


def cross(
    instance: Instance,
    near: np.ndarray,
    population: assembly.Population,
    pairs: assembly.Pairs,
    children: int,
    diverse: bool,
    seed: int,
) -> None:
    context = move_context(rules_of(instance), near, MoveParams())
    crossing = assembly.crossing_of(instance.n)
    assembly.cross(context, population, crossing, pairs, children, diverse, random_state(seed))


@st.composite
def populations(draw: st.DrawFn) -> tuple[Instance, list[list[int]], int]:
    n = draw(st.integers(8, 40))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    metric = draw(st.sampled_from(list(Metric)))
    fixed = draw(st.sampled_from([0.0, 0.0, 0.3]))
    shape = draw(st.sampled_from(ref.SHAPES))
    instance, tour = ref.random_tour(rng, n, shape, metric, fixed)
    near = neighbour_lists(instance, Nearness(instance), draw(st.integers(1, 10)))
    make = shaken_greedy(instance, near.astype(np.int64))
    more = [make(rng).tolist() for _ in range(draw(st.integers(1, 5)))]
    return instance, [tour, *more], int(rng.integers(2**31))


@settings(deadline=None, max_examples=upto(150))
@given(populations())
def test_cycles_alternate_and_cover_exactly_the_difference(case: tuple) -> None:
    instance, tours, seed = case
    n = instance.n
    _, population = population_of(instance, tours)
    crossing = assembly.crossing_of(n)
    cycles, starts = crossing.cycles, crossing.starts
    links = population.links
    count = assembly.find_ab_cycles(links[0], links[1], crossing, random_state(seed))
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
@given(populations(), st.booleans(), st.integers(1, 5))
def test_children_are_sound_tours_and_gains_exact(
    case: tuple, diverse: bool, children: int
) -> None:
    instance, tours, seed = case
    near, population = population_of(instance, tours)
    before = [float(cost(instance, Solution([tour]))) for tour in tours]
    first = np.arange(len(tours))
    second = np.append(first[1:], -1)
    gains = np.empty(len(tours))
    pairs = assembly.Pairs(first, second, population.links[:1].copy(), gains)
    assembly.count_edges(near, population)
    cross(instance, near, population, pairs, children, diverse, seed)
    for row in range(len(tours)):
        tour = population.orders[row]
        assert check(instance, Solution([tour])) == []  # fixed edges too
        assert gains[row] >= 0
        after = float(cost(instance, Solution([tour])))
        assert after == pytest.approx(before[row] - gains[row], abs=1e-6 * max(1.0, before[row]))
        assert tour[population.poses[row]].tolist() == list(range(instance.n))
        for p in range(instance.n):
            beside = {int(tour[p - 1]), int(tour[(p + 1) % instance.n])}
            assert set(population.links[row, tour[p]].tolist()) == beside


@settings(deadline=None, max_examples=upto(50))
@given(populations())
def test_edges_are_counted(case: tuple) -> None:
    instance, tours, _ = case
    near, population = population_of(instance, tours)
    assembly.count_edges(near, population)
    edges = sum((edges_of(tour) for tour in tours), Counter())
    listed = {frozenset((u, int(v))) for u in range(instance.n) for v in near[u]}
    assert population.counts.sum() == sum(count for edge, count in edges.items() if edge in listed)
    for edge in listed:
        u, v = sorted(edge)
        node, slot = (u, near[u].tolist()) if v in near[u] else (v, near[v].tolist())
        assert population.counts[node, slot.index(v if node == u else u)] == edges[edge]


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
    near, population = population_of(instance, spoiled)
    assembly.count_edges(near, population)
    guests = population.links[:1].copy()
    pairs = assembly.Pairs(np.array([0]), np.array([1]), guests, np.empty(1))
    cross(instance, near, population, pairs, 1, False, 0)
    assert cost(instance, Solution([population.orders[0]])) == pytest.approx(
        float(cost(instance, Solution([good])))
    )

"""Moves between whole routes: sequences are cut best, nothing that pays is left undone."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import reference as ref
from hypothesis import given, settings
from hypothesis import strategies as st
from soak import upto

from drhg import route_descent as rd
from drhg.compiled import random_state
from drhg.hypergraph import Index

Case = tuple[rd.Land, rd.Price, int, list[list[int]]]


@st.composite
def lands(draw: st.DrawFn, most: int = 14, metric: bool = False) -> Case:
    """A land with prices, a fleet, and routes that may be beyond all limits."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    m = draw(st.integers(1, most))
    points = ref.random_points(rng, m + 1, "uniform" if metric else draw(shapes))
    matrix = np.hypot(*(points[:, None] - points[None]).transpose(2, 0, 1))
    if not metric and draw(st.booleans()):
        matrix = ref.random_matrix(rng, m + 1).astype(float)
    demand = rng.integers(0, 10, m)
    capacity = float(max(1, demand.sum() * rng.choice([0.2, 0.5, 1.0])))
    longest = matrix.mean() * m * rng.choice([0.3, 1.0]) if draw(st.booleans()) else np.inf
    bounds = rd.Bounds(capacity, float(longest), float(rng.choice([0.0, 1.5])))
    k = min(m - 1, draw(st.integers(0, 6)))
    near = np.argsort(matrix[:m, :m] + np.diag(np.full(m, np.inf)), axis=1)[:, :k]
    price = rd.Price(float(rng.choice([0.1, 5.0])), float(rng.choice([0.1, 5.0])))
    slots = draw(st.integers(1, m))
    routes: list[list[int]] = [[] for _ in range(slots)]
    for node in rng.permutation(m).tolist():
        routes[int(rng.integers(slots))].append(node)
    return rd.land_of(matrix, demand, near.astype(np.int32), bounds), price, slots, routes


shapes = st.sampled_from(ref.SHAPES)
seeds = st.integers(0, 2**32)


def laid(routes: list[list[int]]) -> tuple[Index, Index]:
    order = np.array([i for route in routes for i in route], np.int32)
    return order, np.cumsum([len(route) for route in routes]).astype(np.int32)


def lists(order: Index, ends: Index) -> list[list[int]]:
    return [part.tolist() for part in np.split(order, ends[:-1])]


def descend(
    land: rd.Land, routes: list[list[int]], slots: int, price: rd.Price, seed: int
) -> list[list[int]]:
    """A descent of routes of which nothing is known."""
    nothing = np.zeros(slots, np.int64)
    return lists(*rd.descend(land, *laid(routes), slots, price, nothing, random_state(seed)))


def assert_no_move_pays(land: rd.Land, found: list[list[int]], price: rd.Price) -> None:
    reached = ref.priced(land, found, price)
    for u in range(len(land.demand)):
        for v in land.near[u]:
            if v >= 0:
                for other in ref.route_moves(found, u, int(v)):
                    assert ref.priced(land, other, price) > reached - 1e-6
        empty = next((r for r, route in enumerate(found) if not route), None)
        if empty is not None:
            alone = [[x for x in route if x != u] for route in found]
            alone[empty] = [u]
            assert ref.priced(land, alone, price) > reached - 1e-6


def assert_no_trade_pays(land: rd.Land, found: list[list[int]], price: rd.Price) -> None:
    reached = ref.priced(land, found, price)
    for a, b in itertools.permutations(range(len(found)), 2):
        ours, theirs = (
            [u for u in found[r] if any(v in found[s] for v in land.near[u, : rd.MEET])]
            for r, s in ((a, b), (b, a))
        )
        for other in ref.route_trades(found, a, b, ours, theirs):
            assert ref.priced(land, other, price) > reached - 1e-6


@settings(max_examples=upto(300))
@given(lands(most=9), seeds)
def test_a_sequence_is_cut_at_the_least_cost(case: Case, seed: int) -> None:
    land, price, slots, _ = case
    order = np.random.default_rng(seed).permutation(len(land.demand)).astype(np.int32)
    found = lists(order, rd.split(land, order, slots, price))
    assert len(found) <= slots
    assert [i for route in found for i in route] == order.tolist()
    ways = list(ref.splits(order.tolist(), slots))
    most = 1.5 * land.bounds.load
    usual = [w for w in ways if all(land.demand[r].sum() <= most or len(r) == 1 for r in w)]
    best = min(ref.priced(land, way, price) for way in usual or ways)
    assert ref.priced(land, found, price) == pytest.approx(best, rel=1e-9, abs=1e-9)


@settings(max_examples=upto(300))
@given(lands())
def test_what_a_plan_is_beyond_its_limits_is_measured(case: Case) -> None:
    land, price, _, routes = case
    total, load, length = rd.measure(land, *laid(routes))
    assert total == pytest.approx(ref.priced(land, routes, rd.Price(0.0, 0.0)))
    whole = total + price.load * load + price.length * length
    assert whole == pytest.approx(ref.priced(land, routes, price))


@settings(max_examples=upto(300))
@given(lands(), seeds)
def test_a_descent_ends_where_no_move_pays(case: Case, seed: int) -> None:
    land, price, slots, routes = case
    found = descend(land, routes, slots, price, seed)
    assert sorted(i for route in found for i in route) == list(range(len(land.demand)))
    assert len(found) == slots
    assert ref.priced(land, found, price) <= ref.priced(land, routes, price) + 1e-6
    assert_no_move_pays(land, found, price)


@settings(max_examples=upto(100))
@given(lands(most=8, metric=True), seeds)
def test_routes_that_meet_have_nothing_to_trade(case: Case, seed: int) -> None:
    land, price, slots, routes = case
    assert_no_trade_pays(land, descend(land, routes, slots, price, seed), price)


@settings(max_examples=upto(300))
@given(lands(most=12, metric=True), seeds)
def test_a_child_settles_though_routes_of_its_parents_are_not_looked_at(
    case: Case, seed: int
) -> None:
    land, price, slots, routes = case
    parents = [descend(land, routes, slots, price, seed + i) for i in range(2)]
    orders, ends = zip(*(laid(parent) for parent in parents), strict=True)
    order = rd.crossed(orders[0], orders[1], random_state(seed))
    cut = rd.split(land, order, slots, price)
    after, before = (
        np.stack(rows)
        for rows in zip(*(rd.links(*p) for p in zip(orders, ends, strict=True)), strict=True)
    )
    settled = rd.settled_in(order, cut, slots, after, before)
    for r, route in enumerate(lists(order, cut)):
        assert settled[r] == sum(1 << i for i, p in enumerate(parents) if route in p)
    found = lists(*rd.descend(land, order, cut, slots, price, settled, random_state(seed)))
    assert_no_move_pays(land, found, price)
    assert_no_trade_pays(land, found, price)


@settings(max_examples=upto(300))
@given(lands(most=12, metric=True), seeds)
def test_a_dearer_price_leaves_routes_within_their_limits_alone(case: Case, seed: int) -> None:
    land, price, slots, routes = case
    plan = descend(land, routes, slots, price, seed)
    within = rd.within_bounds(land, *laid(plan), slots)
    for r, route in enumerate(plan):
        free = rd.Price(0.0, 0.0)
        assert within[r] == (ref.priced(land, [route], price) == ref.priced(land, [route], free))
    dear = rd.Price(10.0 * price.load, 10.0 * price.length)
    found = lists(*rd.descend(land, *laid(plan), slots, dear, within, random_state(seed)))
    assert_no_move_pays(land, found, dear)
    assert_no_trade_pays(land, found, dear)


@settings(max_examples=upto(200))
@given(st.integers(1, 20), seeds)
def test_a_child_keeps_a_stretch_of_one_and_the_order_of_the_other(m: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    first, second = (rng.permutation(m).astype(np.int32) for _ in range(2))
    child = rd.crossed(first, second, random_state(seed)).tolist()
    assert sorted(child) == list(range(m))

    def fits(begin: int, size: int) -> bool:
        kept = [(begin + i) % m for i in range(size)]
        rest = [(begin + size + i) % m for i in range(m - size)]
        inside = {int(first[i]) for i in kept}
        turned = np.roll(second, -(begin + size)).tolist()
        return [child[i] for i in kept] == [int(first[i]) for i in kept] and [
            child[i] for i in rest
        ] == [x for x in turned if x not in inside]

    assert any(fits(begin, size) for begin in range(m) for size in range(1, m + 1))


def test_neighbours_are_mutual_and_sorted() -> None:
    rng = np.random.default_rng(1)
    points = rng.random((31, 2))
    matrix = np.hypot(*(points[:, None] - points[None]).transpose(2, 0, 1))
    near = np.argsort(matrix[:30, :30] + np.diag(np.full(30, np.inf)), axis=1)[:, :4]
    bounds = rd.Bounds(10.0, np.inf, 0.0)
    land = rd.land_of(matrix, np.ones(30, np.int64), near.astype(np.int32), bounds)
    for u in range(30):
        row = [v for v in land.near[u].tolist() if v >= 0]
        assert set(row) == set(near[u].tolist()) | {v for v in range(30) if u in near[v]}
        assert row == sorted(row, key=lambda v: matrix[u, v])

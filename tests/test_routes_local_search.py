"""The local search on whole routes: nothing that pays is left undone."""

from __future__ import annotations

import itertools

import numpy as np
import reference as ref
from hypothesis import given, settings
from penalised import SEEDS, Case, laid, lists, problems
from soak import upto

from drhg.kernels.random import random_state
from drhg.search.routes.local_search import local_search
from drhg.search.routes.params import RouteMoveParams
from drhg.search.routes.penalties import PenalisedProblem, Penalties
from drhg.search.routes.sequences import inherited, neighbours_of, order_crossover, within_limits
from drhg.search.routes.split import split

MOVES = RouteMoveParams()


def improved(
    problem: PenalisedProblem, routes: list[list[int]], slots: int, penalties: Penalties, seed: int
) -> list[list[int]]:
    """A local search on routes of which nothing is known."""
    nothing = np.zeros(slots, np.int64)
    return lists(
        *local_search(problem, *laid(routes), slots, penalties, nothing, MOVES, random_state(seed))
    )


def assert_no_move_pays(
    problem: PenalisedProblem, found: list[list[int]], penalties: Penalties
) -> None:
    reached = ref.penalised(problem, found, penalties)
    for u in range(len(problem.demand)):
        for v in problem.near[u]:
            if v >= 0:
                for other in ref.route_moves(found, u, int(v)):
                    assert ref.penalised(problem, other, penalties) > reached - 1e-6
        empty = next((r for r, route in enumerate(found) if not route), None)
        if empty is not None:
            alone = [[x for x in route if x != u] for route in found]
            alone[empty] = [u]
            assert ref.penalised(problem, alone, penalties) > reached - 1e-6


def assert_no_swap_star_pays(
    problem: PenalisedProblem, found: list[list[int]], penalties: Penalties
) -> None:
    reached = ref.penalised(problem, found, penalties)
    near = problem.near[:, : MOVES.swap_star_neighbours]
    for a, b in itertools.permutations(range(len(found)), 2):
        ours, theirs = (
            [u for u in found[r] if any(v in found[s] for v in near[u])]
            for r, s in ((a, b), (b, a))
        )
        for other in ref.route_trades(found, a, b, ours, theirs):
            assert ref.penalised(problem, other, penalties) > reached - 1e-6


@settings(max_examples=upto(300))
@given(problems(), SEEDS)
def test_a_local_search_ends_where_no_move_pays(case: Case, seed: int) -> None:
    problem, penalties, slots, routes = case
    found = improved(problem, routes, slots, penalties, seed)
    assert sorted(i for route in found for i in route) == list(range(len(problem.demand)))
    assert len(found) == slots
    assert (
        ref.penalised(problem, found, penalties) <= ref.penalised(problem, routes, penalties) + 1e-6
    )
    assert_no_move_pays(problem, found, penalties)


@settings(max_examples=upto(100))
@given(problems(most=8, metric=True), SEEDS)
def test_routes_that_meet_have_no_swap_star_left(case: Case, seed: int) -> None:
    problem, penalties, slots, routes = case
    assert_no_swap_star_pays(problem, improved(problem, routes, slots, penalties, seed), penalties)


@settings(max_examples=upto(300))
@given(problems(most=12, metric=True), SEEDS)
def test_routes_of_one_parent_need_not_be_tested_together(case: Case, seed: int) -> None:
    problem, penalties, slots, routes = case
    parents = [improved(problem, routes, slots, penalties, seed + i) for i in range(2)]
    orders, ends = zip(*(laid(parent) for parent in parents), strict=True)
    order = order_crossover(orders[0], orders[1], random_state(seed))
    cut = split(problem, order, slots, penalties, 1.5)
    after, before = (
        np.stack(rows)
        for rows in zip(*(neighbours_of(*p) for p in zip(orders, ends, strict=True)), strict=True)
    )
    settled = inherited(order, cut, slots, after, before)
    for r, route in enumerate(lists(order, cut)):
        assert settled[r] == sum(1 << i for i, p in enumerate(parents) if route in p)
    found = lists(
        *local_search(problem, order, cut, slots, penalties, settled, MOVES, random_state(seed))
    )
    assert_no_move_pays(problem, found, penalties)
    assert_no_swap_star_pays(problem, found, penalties)


@settings(max_examples=upto(300))
@given(problems(most=12, metric=True), SEEDS)
def test_a_higher_penalty_leaves_routes_within_their_limits_alone(case: Case, seed: int) -> None:
    problem, penalties, slots, routes = case
    plan = improved(problem, routes, slots, penalties, seed)
    within = within_limits(problem, *laid(plan), slots)
    for r, route in enumerate(plan):
        free = Penalties(0.0, 0.0)
        assert within[r] == (
            ref.penalised(problem, [route], penalties) == ref.penalised(problem, [route], free)
        )
    high = Penalties(10.0 * penalties.load, 10.0 * penalties.length)
    found = lists(
        *local_search(problem, *laid(plan), slots, high, within, MOVES, random_state(seed))
    )
    assert_no_move_pays(problem, found, high)
    assert_no_swap_star_pays(problem, found, high)

"""Routes that were seen are put together to the cheapest plan: brute force finds none cheaper."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from soak import upto
from test_routes_pieces import VARIANTS, Search, random_instance

from drhg.problem import Solution, check, cost
from drhg.search.routes.context import RouteLists
from drhg.search.routes.piece_context import PieceContext, piece_context
from drhg.search.routes.route_pool import RoutePool
from drhg.search.routes.strategy import Routes
from drhg.search.strategy import task_of

seeds = st.integers(0, 2**32)


def seen(context: PieceContext, rng: np.random.Generator, plans: int) -> list[RouteLists]:
    """Plans that keep all limits, each from a few random steps at great heat."""
    found = []
    for _ in range(plans):
        search = Search(context.task.instance)
        search.run(int(rng.integers(5, 30)), np.array([rng.integers(1, 2**62)], np.uint64), 100.0)
        found.append(context.plan_of(search.part, search.cost, best=False))
    return found


def cheapest(routes: dict[frozenset[int], float], left: frozenset[int], vehicles: int) -> float:
    """By trying every route that serves the first of the customers who are left."""
    if not left:
        return 0.0
    if vehicles == 0:
        return np.inf
    first = min(left)
    return min(
        (
            length + cheapest(routes, left - route, vehicles - 1)
            for route, length in routes.items()
            if first in route and route <= left
        ),
        default=np.inf,
    )


@settings(max_examples=upto(60))
@given(st.sampled_from(VARIANTS), st.integers(1, 12), seeds, st.booleans())
def test_no_plan_of_known_routes_is_cheaper(
    variant: str, customers: int, seed: int, fleet: bool
) -> None:
    rng = np.random.default_rng(seed)
    instance = random_instance(rng, customers + 1, variant, fleet)
    context = piece_context(task_of(instance, Solution([]), 0, 1), Routes())
    plans = [plan for plan in seen(context, rng, 6) if not len(plan.absent)]
    if not plans:
        return
    best = min(plans, key=lambda plan: plan.cost)
    pool = RoutePool(context)
    routes: dict[frozenset[int], float] = {}
    for plan in [best, *plans]:
        pool.add(plan)
        if plan.cost <= (1.0 + pool.params.slack) * best.cost:
            for route in np.split(plan.order.astype(np.int64), plan.ends[:-1]):
                key = frozenset(route.tolist())
                length = float(cost(instance, Solution([route])))
                routes[key] = min(length, routes.get(key, np.inf))
    found = pool.cheapest(best)
    solution = context.solution(found)
    assert check(instance, solution) == []
    assert np.isclose(found.cost, float(cost(instance, solution)))
    vehicles = instance.n if instance.vehicles is None else instance.vehicles
    assert np.isclose(found.cost, cheapest(routes, frozenset(map(int, best.order)), vehicles))


def test_the_pool_forgets_what_was_not_seen_for_longest() -> None:
    instance = random_instance(np.random.default_rng(1), 13, "windows")
    method = Routes()
    method = replace(method, pool=replace(method.pool, routes=5))
    context = piece_context(task_of(instance, Solution([]), 0, 1), method)
    pool = RoutePool(context)
    for plan in seen(context, np.random.default_rng(1), 8):
        pool.add(plan)
    assert len(pool._known) == 5

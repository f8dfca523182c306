"""Penalised problems with routes that may exceed all limits, for tests of the genetic search."""

from __future__ import annotations

import numpy as np
import reference as ref
from hypothesis import strategies as st

from drhg.hypergraph.plan import Index
from drhg.search.routes.penalties import (
    PenalisedProblem,
    Penalties,
    RouteLimits,
    penalised_problem,
)

Case = tuple[PenalisedProblem, Penalties, int, list[list[int]]]


@st.composite
def problems(draw: st.DrawFn, most: int = 14, metric: bool = False) -> Case:
    """A problem with penalties, a fleet, and routes that may be beyond all limits."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    m = draw(st.integers(1, most))
    points = ref.random_points(rng, m + 1, "uniform" if metric else draw(SHAPES))
    matrix = np.hypot(*(points[:, None] - points[None]).transpose(2, 0, 1))
    if not metric and draw(st.booleans()):
        matrix = ref.random_matrix(rng, m + 1).astype(float)
    demand = rng.integers(0, 10, m)
    capacity = float(max(1, demand.sum() * rng.choice([0.2, 0.5, 1.0])))
    longest = matrix.mean() * m * rng.choice([0.3, 1.0]) if draw(st.booleans()) else np.inf
    limits = RouteLimits(capacity, float(longest), float(rng.choice([0.0, 1.5])))
    k = min(m - 1, draw(st.integers(0, 6)))
    near = np.argsort(matrix[:m, :m] + np.diag(np.full(m, np.inf)), axis=1)[:, :k]
    penalties = Penalties(float(rng.choice([0.1, 5.0])), float(rng.choice([0.1, 5.0])))
    slots = draw(st.integers(1, m))
    routes: list[list[int]] = [[] for _ in range(slots)]
    for node in rng.permutation(m).tolist():
        routes[int(rng.integers(slots))].append(node)
    problem = penalised_problem(matrix, demand, near.astype(np.int32), limits)
    return problem, penalties, slots, routes


SHAPES = st.sampled_from(ref.SHAPES)
SEEDS = st.integers(0, 2**32)


def laid(routes: list[list[int]]) -> tuple[Index, Index]:
    order = np.array([i for route in routes for i in route], np.int32)
    return order, np.cumsum([len(route) for route in routes]).astype(np.int32)


def lists(order: Index, ends: Index) -> list[list[int]]:
    return [part.tolist() for part in np.split(order, ends[:-1])]

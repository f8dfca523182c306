"""Problems in which loads and lengths may exceed their limits, at a penalty."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from drhg.hypergraph.plan import Index
from drhg.kernels.jit import inner
from drhg.problem import Floats, Ints
from drhg.problem.tolerances import SEARCH_SLACK


class RouteLimits(NamedTuple):
    """What a route may carry, and how long it may be; each customer adds the service to it."""

    load: float
    length: float
    service: float


class Penalties(NamedTuple):
    """What a unit beyond each limit costs."""

    load: float
    length: float


class PenalisedProblem(NamedTuple):
    """What does not change: distances, demands, neighbours and limits."""

    matrix: Floats  # (m + 1, m + 1): the depot is the last
    demand: Floats  # (m,)
    near: Index  # (m, k): nearest customers, and those that one is nearest to; then -1
    limits: RouteLimits


@inner
def penalty(limits, penalties, load, length):
    """What a route pays for exceeding its limits."""
    extra = 0.0
    if load > limits.load:
        extra = penalties.load * (load - limits.load)
    if length > limits.length * (1.0 + SEARCH_SLACK):
        extra += penalties.length * (length - limits.length)
    return extra


def penalised_problem(
    matrix: Floats, demand: Ints, near: Index, limits: RouteLimits
) -> PenalisedProblem:
    """Distances with the depot last, demands, nearest customers (-1 for none), and limits.

    Neighbours are made mutual: who is near me, I am near to.
    """
    m, k = near.shape
    one = np.repeat(np.arange(m), k)
    two = near.ravel()
    one, two = one[two >= 0], two[two >= 0]
    pairs = np.unique(np.concatenate((one * m + two, two * m + one)))
    one, two = pairs // m, pairs % m
    ranked = np.lexsort((two, matrix[one, two], one))
    one, two = one[ranked], two[ranked]
    count = np.bincount(one, minlength=m)
    both = np.full((m, int(count.max(initial=0))), -1, np.int32)
    both[one, np.arange(len(one)) - np.repeat(np.cumsum(count) - count, count)] = two
    return PenalisedProblem(matrix, demand.astype(np.float64), both, limits)

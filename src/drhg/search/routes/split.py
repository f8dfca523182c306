"""Split (Prins 2004): a sequence of customers is cut into routes at the least penalised cost."""

from __future__ import annotations

import numpy as np

from drhg.hypergraph.plan import Index
from drhg.kernels.jit import inner, kernel
from drhg.search.routes.penalties import PenalisedProblem, Penalties, penalty


def split(
    problem: PenalisedProblem, order: Index, slots: int, penalties: Penalties, overload: float
) -> Index:
    """Cut a sequence of customers into at most `slots` routes at the least cost: their ends.

    No route carries more than `overload` capacities, unless there is no other way.
    """
    m = len(order)
    lowest, start = np.empty((slots + 1, m + 1)), np.zeros((slots + 1, m + 1), np.int32)
    ends = np.empty(slots, np.int32)
    most = overload * problem.limits.load
    count = _split(problem, order, penalties, most, lowest, start, ends)
    if count < 0:
        count = _split(problem, order, penalties, np.inf, lowest, start, ends)
    return ends[:count].copy()


@kernel
def _split(problem, order, penalties, most, lowest, start, ends):
    """How many routes there are, -1 if one must carry more than `most`.

    Row r of `lowest` and `start` is for the first customers in r routes.
    """
    m = len(order)
    slots = len(ends)
    # with any number of routes first: often it is small enough
    for j in range(1, m + 1):
        lowest[0, j] = np.inf
    lowest[0, 0] = 0.0
    _add_route(problem, order, penalties, most, lowest[0], lowest[0], start[0])
    count = 0
    j = m
    while j > 0:
        j = start[0, j]
        count += 1
    if count <= slots:
        j = m
        for r in range(count - 1, -1, -1):
            ends[r] = j
            j = start[0, j]
        return count
    for r in range(slots + 1):
        for j in range(m + 1):
            lowest[r, j] = np.inf
    lowest[0, 0] = 0.0
    for r in range(slots):
        _add_route(problem, order, penalties, most, lowest[r], lowest[r + 1], start[r + 1])
    count = 0
    for r in range(1, slots + 1):
        if lowest[r, m] < lowest[count, m]:
            count = r
    if lowest[count, m] == np.inf:
        return -1
    j = m
    for r in range(count, 0, -1):
        ends[r - 1] = j
        j = start[r, j]
    return count


@inner
def _add_route(problem, order, penalties, most, before, after, start):
    """The lowest costs of the first j customers with one more route, and where that one starts.

    `before` and `after` may be the same: then any number of routes is allowed.
    """
    matrix, demand, limits = problem.matrix, problem.demand, problem.limits
    m = len(order)
    for i in range(m):
        if before[i] == np.inf:
            continue
        load = 0.0
        length = 0.0
        last = m  # the depot
        for j in range(i, m):
            node = order[j]
            load += demand[node]
            if load > most and j > i:
                break
            length += matrix[last, node] + limits.service
            last = node
            closed = length + matrix[node, m]
            total = before[i] + closed + penalty(limits, penalties, load, closed)
            if total < after[j + 1]:
                after[j + 1] = total
                start[j + 1] = i

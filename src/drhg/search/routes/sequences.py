"""Plans as sequences of customers: crossover, cost, neighbours, differences."""

from __future__ import annotations

import numpy as np

from drhg.kernels.arrays import stable_order
from drhg.kernels.jit import kernel
from drhg.kernels.random import random_below
from drhg.problem.tolerances import SEARCH_SLACK
from drhg.search.routes.penalties import Penalties, penalty


@kernel
def order_crossover(first, second, state):
    """Order crossover (OX): a stretch of the first sequence, the rest in the second one's order."""
    m = len(first)
    begin, end = random_below(state, m), random_below(state, m)
    child = np.empty(m, np.int32)
    taken = np.zeros(m, np.bool_)
    i = begin
    while True:
        child[i] = first[i]
        taken[first[i]] = True
        if i == end:
            break
        i = (i + 1) % m
    w = (end + 1) % m
    for i in range(m):
        node = second[(end + 1 + i) % m]
        if not taken[node]:
            child[w] = node
            w = (w + 1) % m
    return child


@kernel
def sorted_by_angle(points, order, ends):
    """The routes by the polar angle of their centres; empty ones are left out."""
    routes = len(ends)
    angle = np.empty(routes, np.float64)
    w = 0
    for r in range(routes):
        x, y = 0.0, 0.0
        for i in range(w, ends[r]):
            x += points[order[i], 0]
            y += points[order[i], 1]
        angle[r] = np.arctan2(y, x) if ends[r] > w else np.inf
        w = ends[r]
    found = np.empty(len(order), np.int32)
    found_ends = np.empty(routes, np.int32)
    w = 0
    used = 0
    for r in stable_order(angle):
        for i in range(ends[r - 1] if r > 0 else 0, ends[r]):
            found[w] = order[i]
            w += 1
        if angle[r] < np.inf:
            found_ends[used] = w
            used += 1
    return found, found_ends[:used].copy()


@kernel
def measure(problem, order, ends):
    """(length of all routes, load beyond the limit, length beyond the limit)."""
    total, overload, overlength = 0.0, 0.0, 0.0
    limits = problem.limits
    m = len(order)
    w = 0
    for r in range(len(ends)):
        load, length = 0.0, 0.0
        last = m
        for i in range(w, ends[r]):
            load += problem.demand[order[i]]
            length += problem.matrix[last, order[i]]
            last = order[i]
        length += problem.matrix[last, m]
        total += length
        length += limits.service * (ends[r] - w)
        overload += max(0.0, load - limits.load)
        if length > limits.length * (1.0 + SEARCH_SLACK):
            overlength += length - limits.length
        w = ends[r]
    return total, overload, overlength


@kernel
def neighbours_of(order, ends):
    """The successor and the predecessor of each customer; -1 is the depot."""
    after = np.empty(len(order), np.int32)
    before = np.empty(len(order), np.int32)
    w = 0
    for r in range(len(ends)):
        last = -1
        for i in range(w, ends[r]):
            before[order[i]] = last
            if last >= 0:
                after[last] = order[i]
            last = order[i]
        if last >= 0:
            after[last] = -1
        w = ends[r]
    return after, before


@kernel
def inherited(order, ends, slots, after, before):
    """Which parents have each route: bit i of a route is parent i, a row of `after` and `before`.

    If the parents are local optima, no move between two routes of the same parent pays.
    """
    found = np.zeros(slots, np.int64)
    for i in range(len(after)):
        w = 0
        for r in range(len(ends)):
            same = True
            last = -1
            for j in range(w, ends[r]):
                node = order[j]
                behind = order[j + 1] if j + 1 < ends[r] else -1
                if before[i, node] != last or after[i, node] != behind:
                    same = False
                    break
                last = node
            if same:
                found[r] |= 1 << i
            w = ends[r]
    return found


@kernel
def within_limits(problem, order, ends, slots):
    """1 for every route that keeps its limits, else 0."""
    limits = problem.limits
    within = np.zeros(slots, np.int64)
    m = len(order)
    w = 0
    for r in range(len(ends)):
        load, length = 0.0, limits.service * (ends[r] - w)
        last = m
        for i in range(w, ends[r]):
            load += problem.demand[order[i]]
            length += problem.matrix[last, order[i]]
            last = order[i]
        within[r] = (
            penalty(limits, Penalties(1.0, 1.0), load, length + problem.matrix[last, m]) == 0.0
        )
        w = ends[r]
    return within


@kernel
def broken_pairs(after, before, row):
    """Broken-pairs distances (HGS): from the plan of one row to that of every row."""
    rows, m = after.shape
    apart = np.empty(rows, np.float64)
    for i in range(rows):
        broken = 0
        for j in range(m):
            a, b, c = after[row, j], after[i, j], before[i, j]
            broken += a != b and a != c
            broken += before[row, j] < 0 and b >= 0 and c >= 0
        apart[i] = broken / max(1, m)
    return apart

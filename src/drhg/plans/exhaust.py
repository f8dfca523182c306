"""The cheapest repair of a small reduced graph, by dynamic programming over sets of its pieces.

A route is a path of pieces from depot to depot, and a cheapest path through a set is also a
shortest one, so that one number per set says what it costs and whether it keeps the length limit.
A plan is a cheapest partition into such sets.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from drhg.hypergraph.judge import repair_limits
from drhg.hypergraph.plan import Index, Plan, Rules
from drhg.hypergraph.reduce import Graphs
from drhg.kernels.jit import inner, kernel
from drhg.kernels.space import distance
from drhg.problem import Floats, Ints

MOST_PIECES = 12  # the tables have 2^pieces rows, and partitions take 3^pieces steps


class Rows(NamedTuple):
    """Reduced graphs, one per row (see `Graphs`)."""

    size: Index
    node: Index
    partner: Index
    load: Ints
    length: Floats
    n_routes: Index


class Tables(NamedTuple):
    """Scratch for one graph of m pieces: what is known of each set of them."""

    path: Floats  # (2^m, m, 2): the cheapest path from the depot through a set to an end of a piece
    route: Floats  # (2^m,): the cheapest route
    plan: Floats  # (m + 1, 2^m): the cheapest partition into so many routes
    far: Floats  # (M + 1, M + 1): distances in the row, the depot last
    end: Ints  # (m, 2): both ends of each piece as indices of the row; a stub's are equal
    weight: Ints  # (2^m,): the load of a set
    extent: Floats  # (2^m,): the length inside its pieces


def cheapest_repairs(rules: Rules, plan: Plan, graphs: Graphs) -> Floats:
    """What the free edges of each reduced graph cost at the least, over all repairs allowed.

    Graphs of more than `MOST_PIECES` pieces are not for this; theirs is -inf.
    """
    rows, width = graphs.node.shape
    spare = max(0, rules.vehicles - plan.n_routes)
    pieces = min(MOST_PIECES, width)
    sets = 1 << pieces
    least = np.full(rows, -np.inf)
    graph_rows = Rows(
        graphs.size, graphs.node, graphs.partner, graphs.load, graphs.length, graphs.n_routes
    )
    tables = Tables(
        path=np.empty((sets, pieces, 2)), route=np.empty(sets), plan=np.empty((pieces + 1, sets)),
        far=np.empty((width + 1, width + 1)), end=np.empty((pieces, 2), np.int64),
        weight=np.empty(sets, np.int64), extent=np.empty(sets),
    )  # fmt: skip
    _exhaust_rows(repair_limits(rules), spare, graph_rows, tables, least)
    return least


@kernel
def _exhaust_rows(limits, spare, rows, tables, least):
    space, depot, _, _ = limits
    size, node, partner, load, length, n_routes = rows
    path, route, plan, far, end, weight, extent = tables
    most = path.shape[1]
    stub = np.zeros(most, np.bool_)
    for b in range(len(size)):
        m = 0  # pieces
        u = 0
        while u < size[b] and m <= most:
            other = partner[b, u]
            if m < most:
                end[m, 0] = u
                end[m, 1] = u + 1 if other == u + 1 else u
                stub[m] = other < 0
            m += 1
            u += 2 if other == u + 1 else 1
        if m > most:
            continue
        if m == 0:
            least[b] = 0.0
            continue
        n = size[b]
        for i in range(n):
            for j in range(n):
                far[i, j] = distance(space, node[b, i], node[b, j])
            if depot >= 0:
                far[i, n] = far[n, i] = distance(space, node[b, i], depot)
        sets = 1 << m
        weight[0] = 0
        extent[0] = 0.0
        for mask in range(1, sets):
            low = 0
            while not (mask >> low) & 1:
                low += 1
            weight[mask] = weight[mask & (mask - 1)] + load[b, end[low, 0]]
            extent[mask] = extent[mask & (mask - 1)] + length[b, end[low, 0]]
            route[mask] = np.inf
            for i in range(m):
                path[mask, i, 0] = path[mask, i, 1] = np.inf
        if depot < 0:
            least[b] = _cheapest_tour(m, far, end, path)
            continue
        for i in range(m):
            if stub[i]:
                path[1 << i, i, 0] = 0.0
            else:
                path[1 << i, i, 0] = far[n, end[i, 0]]
                path[1 << i, i, 1] = far[n, end[i, 1]]
        _cheapest_routes(m, n, limits, stub, tables)
        least[b] = _cheapest_partition(m, min(m, n_routes[b] + spare), route, plan)


@inner
def _cheapest_tour(m, far, end, path):
    """The first piece stays as it is; all others come in any order and direction."""
    path[1, 0, 0] = 0.0
    last = (1 << m) - 1
    for mask in range(1, last, 2):
        for i in range(m):
            for way in range(2):
                so_far = path[mask, i, way]
                if so_far == np.inf:
                    continue
                out = end[i, 1 - way]
                for j in range(1, m):
                    if (mask >> j) & 1:
                        continue
                    for turn in range(2):
                        total = so_far + far[out, end[j, turn]]
                        if total < path[mask | (1 << j), j, turn]:
                            path[mask | (1 << j), j, turn] = total
    best = np.inf
    for i in range(m):
        for way in range(2):
            best = min(best, path[last, i, way] + far[end[i, 1 - way], end[0, 0]])
    return best


@inner
def _cheapest_routes(m, n, limits, stub, tables):
    """For every set of pieces the free edges of its cheapest route, inf if none is allowed."""
    path, route, _, far, end, weight, extent = tables
    capacity, max_length = limits.capacity, limits.max_length
    for mask in range(1, 1 << m):
        if weight[mask] > capacity:
            continue
        for i in range(m):
            for way in range(2):
                so_far = path[mask, i, way]
                if so_far == np.inf or so_far + extent[mask] > max_length:
                    continue
                out = end[i, 1 - way]
                closing = so_far + far[out, n]
                if closing < route[mask] and closing + extent[mask] <= max_length:
                    route[mask] = closing
                for j in range(m):
                    if (mask >> j) & 1:
                        continue
                    more = mask | (1 << j)
                    if weight[more] > capacity:
                        continue
                    if stub[j]:  # along it to the depot
                        total = so_far + far[out, end[j, 0]]
                        if total < route[more] and total + extent[more] <= max_length:
                            route[more] = total
                        continue
                    for turn in range(2):
                        total = so_far + far[out, end[j, turn]]
                        if total < path[more, j, turn]:
                            path[more, j, turn] = total


@inner
def _cheapest_partition(m, most, route, plan):
    """The cheapest partition of all pieces into at most so many routes."""
    sets = 1 << m
    for mask in range(sets):
        plan[0, mask] = np.inf if mask else 0.0
    for k in range(1, most + 1):
        plan[k, 0] = 0.0
        for mask in range(1, sets):
            low = mask & -mask
            rest = mask ^ low
            best = np.inf
            part = rest
            while True:  # every set that has the lowest piece
                total = route[part | low] + plan[k - 1, rest ^ part]
                best = min(best, total)
                if part == 0:
                    break
                part = (part - 1) & rest
            plan[k, mask] = best
    return plan[most, sets - 1]

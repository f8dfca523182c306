"""Repair by cheapest insertion."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from drhg.hypergraph.judge import Repaired, repair_limits
from drhg.hypergraph.plan import Flags, Index, Rules
from drhg.hypergraph.reduce import Graphs
from drhg.kernels.jit import inner, kernel
from drhg.kernels.random import random_below, random_state
from drhg.kernels.space import distance
from drhg.problem import Floats, Ints


class InsertionRepair:
    """Leave the intact pieces as they are, insert isolated nodes where they are cheapest."""

    def __call__(self, rules: Rules, graphs: Graphs, rng: np.random.Generator) -> Repaired:
        state = random_state(int(rng.integers(2**63)))
        rows = Rows(
            graphs.size, graphs.node, graphs.partner, graphs.via, graphs.load, graphs.length
        )
        return Repaired(*_insert_rows(repair_limits(rules), rows, state))


class Rows(NamedTuple):
    """Reduced graphs, one per row (see `Graphs`)."""

    size: Index
    node: Index
    partner: Index
    via: Flags
    load: Ints
    length: Floats


class Graph(NamedTuple):
    """One of them."""

    size: int
    node: Index
    partner: Index
    via: Flags
    load: Ints
    length: Floats


class Line(NamedTuple):
    """What is placed so far, in order; the arrays have room for all nodes of the graph."""

    order: Index
    via: Flags  # whether a piece comes first in its route
    start: Ints  # the place at which the route of each place starts
    load: Ints  # of that route, at its start
    length: Floats  # the same


@inner
def _measure(limits, graph, line, count):
    """Load and length of the route that each place belongs to, and where it starts."""
    space, depot, node, partner = limits.space, limits.depot, graph.node, graph.partner
    order, via, start, carried, run = line
    i = 0
    first = 0
    while i < count:
        u = order[i]
        wide = partner[u] >= 0 and partner[u] != u
        if via[i]:
            first = i
            carried[i] = 0
            run[i] = 0.0
        start[i] = first
        carried[first] += graph.load[u]
        run[first] += graph.length[u]
        out = partner[u] if wide else u
        nxt = i + (2 if wide else 1)
        if wide:
            start[i + 1] = first
        if via[i] and partner[u] >= 0:
            run[first] += distance(space, depot, node[u])
        if nxt >= count or via[nxt]:
            if partner[u] >= 0 or via[i]:  # no stub that ends at the depot
                run[first] += distance(space, node[out], depot)
        else:
            run[first] += distance(space, node[out], node[order[nxt]])
        i = nxt


@inner
def _place(line, count, at, u, comes_via):
    """Make room at a place and put the node there; returns how many places are taken."""
    order, via = line.order, line.via
    for j in range(count - 1, at - 1, -1):
        order[j + 1] = order[j]
        via[j + 1] = via[j]
    order[at] = u
    via[at] = comes_via
    return count + 1


@inner
def _insert_into_tour(limits, graph, line, count, u):
    """Insert an isolated node where it is cheapest; returns how many places are taken then."""
    space, node, partner, order = limits.space, graph.node, graph.partner, line.order
    best = np.inf
    best_at = count
    i = 0
    last = node[order[count - 1]] if count > 0 else -1
    while i < count:
        entry = order[i]
        extra = (
            distance(space, last, node[u])
            + distance(space, node[u], node[entry])
            - distance(space, last, node[entry])
        )
        if extra < best:
            best, best_at = extra, i
        wide = partner[entry] != entry
        last = node[partner[entry] if wide else entry]
        i += 2 if wide else 1
    return _place(line, count, best_at, u, False)


@inner
def _insert_into_routes(limits, graph, line, count, u):
    """Insert an isolated node where it is cheapest; returns how many places are taken then.

    Always possible: a route of its own is allowed here, the fleet limit is judged later.
    """
    space, depot, node, partner = limits.space, limits.depot, graph.node, graph.partner
    order, via, start, carried, run = line
    best = distance(space, depot, node[u]) + distance(space, node[u], depot)
    best_at = count
    best_via = True
    fixes_next = False  # whether the piece that follows stops being the first of its route
    _measure(limits, graph, line, count)
    i = 0
    last = -1  # node at the loose end before place i
    last_open = False
    last_start = 0
    while i <= count:
        closing = i == count
        if last_open and (closing or via[i]):  # at the end of the route before
            extra = (
                distance(space, last, node[u])
                + distance(space, node[u], depot)
                - distance(space, last, depot)
            )
            fits = carried[last_start] + graph.load[u] <= limits.capacity
            long = run[last_start] + extra + graph.length[u] > limits.max_length
            if extra < best and fits and not long:
                best, best_at, best_via, fixes_next = extra, i, False, False
        if closing:
            break
        entry = order[i]
        if not via[i] or partner[entry] >= 0:  # nothing comes before a stub that starts its route
            before = depot if via[i] else last
            extra = (
                distance(space, before, node[u])
                + distance(space, node[u], node[entry])
                - distance(space, before, node[entry])
            )
            first = start[i]
            fits = carried[first] + graph.load[u] <= limits.capacity
            long = run[first] + extra + graph.length[u] > limits.max_length
            if extra < best and fits and not long:
                best, best_at, best_via, fixes_next = extra, i, via[i], via[i]
        wide = partner[entry] >= 0 and partner[entry] != entry
        last = node[partner[entry] if wide else entry]
        last_open = partner[entry] >= 0 or via[i]
        last_start = start[i]
        i += 2 if wide else 1
    if fixes_next:
        via[best_at] = False
    return _place(line, count, best_at, u, best_via)


@inner
def _insert_row(limits, graph, line, state):
    """The intact pieces in their present order, isolated nodes inserted in random order."""
    size, partner = graph.size, graph.partner
    waiting = np.empty(size, np.int64)
    n_waiting = 0
    count = 0
    fresh = False  # the route's first piece was dropped: the next one of it comes via the depot
    for i in range(size):
        fresh = fresh or graph.via[i]
        if partner[i] == i:
            waiting[n_waiting] = i
            n_waiting += 1
        else:
            line.order[count] = i
            line.via[count] = fresh
            fresh = False
            count += 1
    for i in range(n_waiting - 1, -1, -1):
        j = random_below(state, i + 1)
        u = waiting[j]
        waiting[j] = waiting[i]
        if limits.depot >= 0:
            count = _insert_into_routes(limits, graph, line, count, u)
        else:
            count = _insert_into_tour(limits, graph, line, count, u)


@kernel
def _insert_rows(limits, rows, state):
    count, width = rows.node.shape
    order = np.full((count, width), -1, np.int32)
    via = np.zeros((count, width), np.bool_)
    for b in range(count):
        size = rows.size[b]
        line = Line(
            np.empty(size + 2, np.int32), np.empty(size + 2, np.bool_),
            np.zeros(size + 2, np.int64), np.zeros(size + 2, np.int64), np.zeros(size + 2),
        )  # fmt: skip
        graph = Graph(
            size, rows.node[b], rows.partner[b], rows.via[b], rows.load[b], rows.length[b]
        )
        _insert_row(limits, graph, line, state)
        order[b, :size] = line.order[:size]
        via[b, :size] = line.via[:size]
    return order, via

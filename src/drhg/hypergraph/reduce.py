"""From cut edges to a reduced graph of single nodes and hyper-edges."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from drhg.hypergraph.plan import Flags, Index, Plan, Rules
from drhg.kernels.jit import inner, kernel
from drhg.kernels.space import distance
from drhg.problem import Floats, Ints


@dataclass(frozen=True)
class Graphs:
    """A batch of B reduced graphs; row b has `size[b]` nodes in the order of the solution.

    Arrays are (B, M) with M the largest size; what lies beyond a row's size has node -1.
    """

    size: Index  # (B,)
    node: Index  # which node of the instance
    partner: Index  # index in the row of the item's other end; itself if isolated; -1 for a stub
    at: Index  # its position in the solution
    far: Index  # position of the item's other end (a depot's for a stub)
    via: Flags  # whether the solution reaches this item through the depot
    load: Ints  # demand of the whole item
    length: Floats  # length of the whole item, service included (what counts for max_length)
    cut_cost: Floats  # (B,): length of all cut edges
    n_routes: Index  # (B,): routes that pass through the reduced graph

    def __len__(self) -> int:
        return len(self.size)


def repeated(graphs: Graphs, times: int) -> Graphs:
    """Every graph so many times in sequence."""
    return Graphs(*(np.repeat(getattr(graphs, f.name), times, axis=0) for f in fields(graphs)))


@inner
def items_of_tour(order, cuts, count, node, partner, at, far):
    """The items between the cuts of a tour, as in `Graphs`; returns how many nodes they have."""
    n, m = len(order), 0
    for i in range(count):  # the item after cut i; the last one goes round the end
        a = cuts[i] + 1 if cuts[i] + 1 < n else 0
        z = cuts[i + 1 if i + 1 < count else 0]
        at[m], far[m], node[m], partner[m] = a, z, order[a], m
        if a != z:
            partner[m] = m + 1
            at[m + 1], far[m + 1], node[m + 1], partner[m + 1] = z, a, order[z], m
            m += 1
        m += 1
    return m


@kernel
def _reduce_rows(space, plan, depot, service, cuts, n_cuts):
    order, route, first, last = plan.order, plan.route, plan.first, plan.last
    load, length = plan.load, plan.length
    rows = len(n_cuts)
    n = len(order)
    width = 2 * max(1, n_cuts.max()) if rows > 0 else 0
    size = np.zeros(rows, np.int32)
    node = np.full((rows, width), -1, np.int32)
    partner = np.full((rows, width), -1, np.int32)
    at = np.full((rows, width), -1, np.int32)
    far = np.full((rows, width), -1, np.int32)
    via = np.zeros((rows, width), np.bool_)
    carried = np.zeros((rows, width), np.int64)
    extent = np.zeros((rows, width), np.float64)
    cut_cost = np.zeros(rows, np.float64)
    n_routes = np.zeros(rows, np.int32)
    for b in range(rows):
        m = 0
        count = n_cuts[b]
        for i in range(count):
            p = cuts[b, i]
            cut_cost[b] += distance(space, order[p], order[p + 1 if p + 1 < n else 0])
        if depot < 0:
            m = items_of_tour(order, cuts[b], count, node[b], partner[b], at[b], far[b])
        else:
            i = 0
            while i < count:  # one touched route after the other
                r = route[cuts[b, i]]
                n_routes[b] += 1
                a = first[r]
                fresh = True  # the next item is the first of its route
                while a <= last[r]:
                    z = last[r]
                    if i < count and route[cuts[b, i]] == r:
                        z = cuts[b, i]
                        i += 1
                    head, tail = order[a] == depot, order[z] == depot
                    if not (head and tail):
                        weight = load[z + 1] - load[a]
                        # of its edges and its customers' service: the last one's is not in `length`
                        extend = length[z] - length[a] + (0.0 if tail else service)
                        x = z if head else a
                        at[b, m], far[b, m] = x, (a if head else z)
                        node[b, m], partner[b, m], via[b, m] = order[x], m, fresh
                        carried[b, m], extent[b, m] = weight, extend
                        if head or tail:
                            partner[b, m] = -1
                        elif a != z:
                            partner[b, m] = m + 1
                            at[b, m + 1], far[b, m + 1] = z, a
                            node[b, m + 1], partner[b, m + 1] = order[z], m
                            carried[b, m + 1], extent[b, m + 1] = weight, extend
                            m += 1
                        m += 1
                        fresh = False
                    a = z + 1
        size[b] = m
    top = max(1, size.max()) if rows > 0 else 0
    return (
        size, node[:, :top].copy(), partner[:, :top].copy(), at[:, :top].copy(),
        far[:, :top].copy(), via[:, :top].copy(), carried[:, :top].copy(),
        extent[:, :top].copy(), cut_cost, n_routes,
    )  # fmt: skip


def reduce(rules: Rules, plan: Plan, cuts: Index, n_cuts: Index) -> Graphs:
    """Shrink what stays intact: the reduced graph of every row of cuts."""
    return Graphs(*_reduce_rows(rules.space, plan, rules.depot, rules.service, cuts, n_cuts))

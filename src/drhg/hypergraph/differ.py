"""Where two solutions differ, and a reduced graph repaired as the other solution has it.

The edges that only one of two solutions has fall into components that share no node. In each of
them the first solution can be given the second's edges instead: a repair of the graph that is left
when its own edges there are cut. This is partition crossover (Whitley, Hains and Howe 2009), told
in hyper-graphs: which component may be exchanged, and what that is worth, is for the judge to say.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from drhg.hypergraph.judge import Repaired
from drhg.hypergraph.plan import Index, Plan, Rules
from drhg.hypergraph.reduce import Graphs
from drhg.kernels.jit import inner, kernel
from drhg.kernels.space import distance
from drhg.problem import Floats, Ints

NOWHERE = -2


class Differences(NamedTuple):
    """Components of the edges in which a plan differs from another one."""

    cuts: Index  # positions in the plan after which an edge is cut, component after component
    begin: Ints  # (C + 1,): where the cuts of each component begin
    change: Floats  # (C,): of the cost, were the component as in the other plan

    def __len__(self) -> int:
        return len(self.change)

    def of(self, component: int) -> Index:
        """The cuts of one component, sorted."""
        return np.sort(self.cuts[self.begin[component] : self.begin[component + 1]])


@inner
def _beside(order, p):
    """The nodes before and after position p of a cyclic order."""
    n = len(order)
    return order[p - 1 if p > 0 else n - 1], order[p + 1 if p + 1 < n else 0]


@inner
def _lacks(a, b, x, y):
    """Whether a, and whether b, is missing in (x, y), as far as each is needed there once."""
    if a == x:
        return False, b != y
    if a == y:
        return False, b != x
    return True, b != x and b != y


@kernel
def differing(rules, plan, another):
    """The components, as in `Differences`; the depot joins nothing."""
    space, depot = rules.space, rules.depot
    order, pos, other, other_pos = plan.order, plan.pos, another.order, another.pos
    n, nodes = len(order), len(pos)
    cuts = np.empty(n, np.int32)
    begin = np.empty(nodes + 1, np.int64)
    change = np.empty(nodes, np.float64)
    seen = np.zeros(nodes, np.bool_)
    stack = np.empty(nodes, np.int64)
    begin[0] = 0
    found, count = 0, 0
    for root in range(nodes):
        if seen[root] or root == depot:
            continue
        seen[root] = True
        stack[0] = root
        height, first, total = 1, count, 0.0
        while height > 0:
            height -= 1
            v = stack[height]
            p = pos[v]
            a = _beside(order, p)
            b = _beside(other, other_pos[v])
            ours = _lacks(a[0], a[1], b[0], b[1])
            theirs = _lacks(b[0], b[1], a[0], a[1])
            for side in range(2):
                if ours[side]:
                    if side == 1 or a[side] == depot:  # every edge once
                        cuts[count] = p if side == 1 else p - 1 if p > 0 else n - 1
                        total -= distance(space, v, a[side])
                        count += 1
                    if a[side] != depot and not seen[a[side]]:
                        seen[a[side]] = True
                        stack[height] = a[side]
                        height += 1
                if theirs[side]:
                    if side == 1 or b[side] == depot:
                        total += distance(space, v, b[side])
                    if b[side] != depot and not seen[b[side]]:
                        seen[b[side]] = True
                        stack[height] = b[side]
                        height += 1
        if count > first:
            change[found] = total
            found += 1
            begin[found] = count
    return cuts[:count].copy(), begin[: found + 1].copy(), change[:found].copy()


def differences(rules: Rules, plan: Plan, other: Plan) -> Differences:
    """Where a plan differs from another plan of the same instance."""
    return Differences(*differing(rules, plan, other))


@inner
def _onward(other, other_pos, node, used):
    """The node beside `node` in the other plan that is not `used`, or NOWHERE."""
    a, b = _beside(other, other_pos[node])
    if a == used:
        return b
    return a if b == used else NOWHERE


@inner
def _inside(order, at, far, partner, u):
    """The node next to node u inside its hyper-edge or stub."""
    n = len(order)
    ahead = far[u] > at[u] if partner[u] < 0 else partner[u] > u
    p = at[u] + 1 if ahead else at[u] - 1
    return order[p - n if p >= n else p + n if p < 0 else p]


@kernel
def _as_in(rules, plan, size, node, partner, at, far, another, new, via):
    """Write the order of one row as the other plan has it; whether there is one."""
    depot, order = rules.depot, plan.order
    other, other_pos = another.order, another.pos
    where = np.full(len(other_pos), -1, np.int32)
    seen = np.zeros(size, np.bool_)
    for u in range(size):
        where[node[u]] = u
    i = 0
    for u0 in range(size if depot >= 0 else 1):
        u, came = u0, depot
        if seen[u]:
            continue
        if depot < 0:
            if partner[u] == u:
                came = _beside(other, other_pos[node[u]])[0]
        elif partner[u] >= 0:  # a route begins here only where the depot is beside it
            used = depot if partner[u] == u else _inside(order, at, far, partner, u)
            then = _onward(other, other_pos, node[u], used)
            if then == NOWHERE or (partner[u] != u and then != depot):
                continue
        through = depot >= 0
        while True:
            stub = partner[u] < 0
            out = u if stub else partner[u]
            seen[u] = seen[out] = True
            new[i], via[i] = u, through
            i += 1
            if out != u:
                new[i] = out
                i += 1
            if stub and not through:  # along it to the depot
                break
            through = False
            used = came if partner[u] == u else _inside(order, at, far, partner, out)
            came = node[out]
            then = _onward(other, other_pos, came, used)
            if then == NOWHERE:
                return False
            if then == depot:
                break
            u = where[then]
            if u < 0:
                return False
            if seen[u]:
                if depot >= 0:
                    return False
                break
    return i == size


def as_in(rules: Rules, plan: Plan, graphs: Graphs, other: Plan) -> Repaired | None:
    """The one reduced graph of a plan repaired by the edges of another plan, if that is a repair.

    It is one if the cuts are some components of `differences` and their exchange leaves one tour,
    or routes that all pass the depot.
    """
    size = int(graphs.size[0])
    new, via = np.full_like(graphs.node, -1), np.zeros(graphs.node.shape, np.bool_)
    row = graphs.node[0], graphs.partner[0], graphs.at[0], graphs.far[0]
    if not _as_in(rules, plan, size, *row, other, new[0], via[0]):
        return None
    return Repaired(new, via)

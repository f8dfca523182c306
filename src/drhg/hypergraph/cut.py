"""Cut edges of a plan: around destroyed nodes, or until a size is reached."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from drhg.hypergraph.plan import EVERYWHERE, Index, Plan, Rules
from drhg.kernels.jit import inner, kernel

DEPOT_EDGES = {"adjacent": 0, "touched": 1, "all": 2}
"""Which depot edges a destroyed plan loses: those next to destroyed customers; all of every
touched route; all there are (the paper)."""


@inner
def is_fixed(fixed, a, b):
    return fixed[a, 0] == b or fixed[a, 1] == b


@inner
def _cut_edge(order, fixed, depot, cut, log, count, p):
    """Cut the edge after position p; returns (edges cut so far, nodes that appear)."""
    n = len(order)
    q = p + 1 if p + 1 < n else 0
    if cut[p]:
        return count, 0
    a, b = order[p], order[q]
    if a == depot and b == depot:
        return count, 0  # a join of two routes (or an empty route): nothing to cut
    if a != depot and b != depot and is_fixed(fixed, a, b):
        return count, 0
    new = 0
    # A node appears when it stops being inner, i.e. when the first of its two edges goes.
    if a != depot and not cut[p - 1 if p > 0 else n - 1]:
        new += 1
    if b != depot and q != p and not cut[q]:
        new += 1
    cut[p] = True
    log[count] = p
    return count + 1, new


@inner
def _cut_around(order, fixed, depot, cut, log, count, p, first, last):
    """Destroy the node at position p: cut its edges, and those after `first` and `last` if any."""
    n = len(order)
    count, new = _cut_edge(order, fixed, depot, cut, log, count, p)
    count, more = _cut_edge(order, fixed, depot, cut, log, count, p - 1 if p > 0 else n - 1)
    new += more
    if first >= 0:
        count, more = _cut_edge(order, fixed, depot, cut, log, count, first)
        new += more
        count, more = _cut_edge(order, fixed, depot, cut, log, count, last)
        new += more
    return count, new


@kernel
def cut_rows(plan, fixed, depot, mode, ranked, counts, sizes, reach):
    """Per row: cut around its first `counts` ranked nodes, or until its graph has `sizes` nodes."""
    order, pos, route, first, last = plan.order, plan.pos, plan.route, plan.first, plan.last
    rows = len(ranked)
    n = len(order)
    width = 4 * ranked.shape[1] + 4 + (2 * len(first) if mode == 2 else 0)
    width = min(n, width + (sizes.max() if rows > 0 else 0))  # topping up cuts one edge per node
    cuts = np.full((rows, width), -1, np.int32)
    n_cuts = np.zeros(rows, np.int32)
    cut = np.zeros(n, np.bool_)
    for b in range(rows):
        log = cuts[b]
        count = 0
        size = 0
        if depot >= 0 and mode == 2:
            for r in range(len(first)):
                count, new = _cut_edge(order, fixed, depot, cut, log, count, first[r])
                size += new
                count, new = _cut_edge(order, fixed, depot, cut, log, count, last[r] - 1)
                size += new
        jumped = ranked.shape[1]  # the ranked node that would have been one too many
        for i in range(ranked.shape[1] if sizes[b] > 0 else counts[b]):
            if ranked[b, i] < 0:
                break
            apart = abs(pos[ranked[b, i]] - pos[ranked[b, 0]])
            if min(apart, n - apart) > reach:
                continue
            if sizes[b] > 0 and size >= sizes[b]:
                break
            before = count
            p = pos[ranked[b, i]]
            a = z = -1
            if depot >= 0 and mode == 1:  # the depot edges of its route go, too
                a, z = first[route[p]], last[route[p]] - 1
            count, new = _cut_around(order, fixed, depot, cut, log, count, p, a, z)
            if sizes[b] > 0 and size + new > sizes[b]:
                for j in range(before, count):  # one too many: take it back and top up instead
                    cut[log[j]] = False
                count = before
                jumped = i
                break
            size += new
        if size < sizes[b]:
            count, missing = _top_up(order, fixed, depot, cut, log, 0, count, sizes[b] - size)
            for i in range(jumped, ranked.shape[1]):
                if missing == 0 or ranked[b, i] < 0:
                    break
                count, missing = _open_up(
                    plan, fixed, depot, mode, cut, log, count, missing, ranked[b, i]
                )
        for j in range(count):
            cut[log[j]] = False
        log[:count].sort()
        log[count:] = -1  # what was taken back
        n_cuts[b] = count
    return cuts, n_cuts


@inner
def _top_up(order, fixed, depot, cut, log, i, count, missing):
    """Cut outermost edges of hyper-edges of three or more nodes: each adds exactly one node.

    Starts at the i-th cut; returns (edges cut so far, nodes still missing).
    """
    n = len(order)
    while i < count and missing > 0:
        for side in range(2):
            p = log[i]
            # the edges just outside the cut one, into the items behind and ahead of it
            p = (p + 1 if p + 1 < n else 0) if side == 0 else (p - 1 if p > 0 else n - 1)
            if missing > 0 and not cut[p]:
                before = count
                count, new = _cut_edge(order, fixed, depot, cut, log, count, p)
                if new == 1:
                    missing -= 1
                elif count > before:  # two nodes or none: not this one
                    count = before
                    cut[p] = False
        i += 1
    return count, missing


@inner
def _open_up(plan, fixed, depot, mode, cut, log, count, missing, node):
    """Cut one edge at a node that lies beside everything cut so far, or at its route's ends.

    Needed where hyper-edges run out: behind fixed edges, and when all touched routes are used up.
    The depot edge of another route adds exactly one customer.
    """
    order, pos, route, first, last = plan.order, plan.pos, plan.route, plan.first, plan.last
    n = len(order)
    p = pos[node]
    together = depot >= 0 and mode == 1  # both depot edges of a touched route go, or none
    for side in range(1 if together else 2 if depot < 0 else 4):
        if together or side == 2:
            q = first[route[p]]
        elif side == 3:
            q = last[route[p]] - 1
        else:
            q = p if side == 0 else (p - 1 if p > 0 else n - 1)
        before = count
        count, new = _cut_edge(order, fixed, depot, cut, log, count, q)
        if together:
            count, more = _cut_edge(order, fixed, depot, cut, log, count, last[route[p]] - 1)
            new += more
        if 0 < new <= missing:
            missing -= new
            count, missing = _top_up(order, fixed, depot, cut, log, before, count, missing)
        else:
            for j in range(before, count):
                cut[log[j]] = False
            count = before
    return count, missing


def destroy_nearest(
    rules: Rules,
    plan: Plan,
    ranked: Index,
    counts: npt.ArrayLike,
    *,
    depot_edges: str = "adjacent",
    reach: int = EVERYWHERE,
) -> tuple[Index, Index]:
    """Cut around the first `counts[b]` nodes of each row of `ranked` (B, K), nearest first.

    Nodes more than `reach` positions from the first are left alone, which bounds what a restore
    has to move whatever the size of the tour. Returns the cut positions of each row, sorted and
    padded with -1, and how many there are.
    """
    k = np.broadcast_to(np.minimum(counts, ranked.shape[1]), len(ranked)).astype(np.int32)
    return _cut(rules, plan, ranked, k, np.zeros(len(ranked), np.int32), depot_edges, reach)


def destroy_to_size(
    rules: Rules, plan: Plan, ranked: Index, sizes: npt.ArrayLike, *, depot_edges: str = "adjacent"
) -> tuple[Index, Index]:
    """Cut nearest first until each reduced graph has exactly `sizes[b]` nodes (Algorithm 1).

    A size that destroying whole nodes would jump over is reached by cutting outermost edges of
    hyper-edges, so nothing is padded or dropped. `ranked` needs at least max(sizes) columns, or n.
    Fixed edges, and whole routes with "touched", may leave a graph smaller; "all" may start larger.
    """
    m = np.broadcast_to(sizes, len(ranked)).astype(np.int32)
    none = np.zeros(len(ranked), np.int32)
    return _cut(rules, plan, ranked, none, m, depot_edges, EVERYWHERE)


def _cut(
    rules: Rules,
    plan: Plan,
    ranked: Index,
    counts: Index,
    sizes: Index,
    depot_edges: str,
    reach: int,
) -> tuple[Index, Index]:
    ranked = np.ascontiguousarray(ranked, dtype=np.int32)
    mode = DEPOT_EDGES[depot_edges]
    cuts, n_cuts = cut_rows(plan, rules.fixed, rules.depot, mode, ranked, counts, sizes, reach)
    return cuts, n_cuts

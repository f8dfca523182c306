"""From a repaired reduced graph back to a plan."""

from __future__ import annotations

import numpy as np

from drhg.hypergraph.judge import Repaired
from drhg.hypergraph.plan import Plan, Rules, indexed
from drhg.hypergraph.reduce import Graphs
from drhg.kernels.jit import kernel


@kernel
def _restore_tour(order, pos, size, partner, at, far, new):
    """Lay the items out in the new order, in place, leaving the longest one where it lies."""
    n = len(order)
    # Find the longest item, and where the repair puts it.
    best = -1
    place = 0
    i = 0
    n_items = 0
    while i < size:
        u = new[i]
        a, z = min(u, partner[u]), max(u, partner[u])
        span = at[z] - at[a]
        span = (span if span >= 0 else span + n) + 1
        if span > best:
            best, place = span, i
        i += 1 if partner[u] == u else 2
        n_items += 1
    u = new[place]
    forward = partner[u] >= u  # entered at the end that comes first in the solution
    keep_a, keep_z = min(u, partner[u]), max(u, partner[u])
    moved = np.empty(n - best, np.int32)
    w = 0
    i = place
    done = 1
    while done < n_items:
        if forward:
            i += 1 if partner[new[i]] == new[i] else 2
            if i >= size:
                i -= size
            u = new[i]
        else:  # walk the repair backwards, so that the kept item still runs forward
            i -= 1
            if i < 0:
                i += size
            u = new[i]
            if partner[u] != u:
                i -= 1
        p, stop = at[u], far[u]
        step = 1 if partner[u] >= u else -1
        while True:
            moved[w] = order[p]
            w += 1
            if p == stop:
                break
            p += step
            if p == n:
                p = 0
            elif p < 0:
                p = n - 1
        done += 1
    p = at[keep_z]
    for j in range(w):
        p = p + 1 if p + 1 < n else 0
        if order[p] != moved[j]:
            order[p] = moved[j]
            pos[moved[j]] = p
    return keep_a


@kernel
def _restore_routes(plan, depot, size, partner, at, far, new, via):
    """A new cyclic order: untouched routes first, then the repaired ones."""
    order, route, first, last = plan.order, plan.route, plan.first, plan.last
    n = len(order)
    out = np.empty(n + 2 * size, np.int32)
    touched = np.zeros(len(first), np.bool_)
    for i in range(size):
        touched[route[at[i]]] = True
    w = 0
    for r in range(len(first)):
        if not touched[r]:
            for p in range(first[r], last[r] + 1):
                out[w] = order[p]
                w += 1
    is_open = False
    i = 0
    while i < size:
        u = new[i]
        stub = partner[u] < 0
        a, z = at[u], far[u]
        if via[i]:
            if is_open:
                out[w] = depot
                w += 1
            if stub:
                a, z = z, a  # from the depot along the stub to its free end
            else:
                out[w] = depot
                w += 1
        step = 1 if z >= a else -1
        p = a
        while True:
            out[w] = order[p]
            w += 1
            if p == z:
                break
            p += step
        is_open = not stub or via[i]
        i += 1 if stub or partner[u] == u else 2
    if is_open:
        out[w] = depot
        w += 1
    return out[:w].copy()


def restore(rules: Rules, plan: Plan, graphs: Graphs, row: int, repaired: Repaired) -> Plan:
    """The plan after one repaired row, which the caller has judged. The old plan is left alone."""
    if rules.depot < 0:
        plan = plan._replace(order=plan.order.copy(), pos=plan.pos.copy())
    return restore_in_place(rules, plan, graphs, row, repaired)


def restore_in_place(
    rules: Rules, plan: Plan, graphs: Graphs, row: int, repaired: Repaired
) -> Plan:
    """The same, but a tour is rewritten where it lies: only what moves is touched."""
    m = int(graphs.size[row])
    if m == 0:
        return plan
    args = graphs.partner[row], graphs.at[row], graphs.far[row], repaired.order[row]
    if rules.depot < 0:
        _restore_tour(plan.order, plan.pos, m, *args)
        return plan
    order = _restore_routes(plan, rules.depot, m, *args, repaired.via[row])
    return indexed(rules, order)

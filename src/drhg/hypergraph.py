"""The hyper-graph: cut edges of a solution, shrink what stays intact, reconnect, put it back.

A solution is one cyclic order of positions. For a CVRP every route is laid out as
`depot, customers, depot`; the join of two routes costs nothing and is always cut. Cutting edges
leaves *items*: isolated nodes, segments with two free ends (hyper-edges), and for routes *stubs*,
which have one free end and the depot at the other. Only free ends enter the reduced graph, so its
size depends on how much is destroyed and not on the instance (paper, section "Hyper-graph
Representation"; sizes by its Algorithm 1).

A repair is an order of the reduced nodes and, for routes, whether each is reached `via` the depot.
Its cost change is known before the solution is touched.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from drhg.compiled import Space, distance, inner, kernel, space_of
from drhg.problem import Floats, Instance, Ints, Metric, Solution

Index: TypeAlias = npt.NDArray[np.int32]
Flags: TypeAlias = npt.NDArray[np.bool_]

DEPOT_EDGES = {"adjacent": 0, "touched": 1, "all": 2}
"""Which depot edges a destroyed plan loses: those next to destroyed customers; all of every
touched route; all there are (the paper)."""

EVERYWHERE = 2**31 - 1


class Rules(NamedTuple):
    """The instance as kernels see it: distances, fixed edges, demand and limits."""

    space: Space
    fixed: Index  # (n, 2): nodes joined to this one by a fixed edge, -1 for none
    depot: int  # -1 for a TSP
    demand: Ints  # (n,), zeros for a TSP
    capacity: int
    max_length: float  # of a route, service included; inf if there is no limit
    service: float
    vehicles: int

    @property
    def n(self) -> int:
        return len(self.fixed)


def rules_of(instance: Instance) -> Rules:
    """Everything about an instance that steers a repair."""
    fixed = np.full((instance.n, 2), -1, dtype=np.int32)
    for a, b in instance.fixed_edges:
        fixed[a, int(fixed[a, 0] >= 0)] = b
        fixed[b, int(fixed[b, 0] >= 0)] = a
    return Rules(
        space=space_of(instance),
        fixed=fixed,
        depot=instance.depot if instance.is_cvrp else -1,
        demand=np.zeros(instance.n, np.int64)
        if instance.demand is None
        else instance.demand.copy(),
        capacity=1 if instance.capacity is None else instance.capacity,
        max_length=np.inf if instance.max_distance is None else instance.max_distance,
        service=instance.service_time,
        vehicles=2**31 - 1 if instance.vehicles is None else instance.vehicles,
    )


@dataclass(frozen=True)
class Plan:
    """A solution as one cyclic order, with what is needed to look things up in it."""

    order: Index  # (N,): nodes; for routes with the depot at both ends of each
    pos: Index  # (n,): position of each node, -1 for the depot
    route: Index  # (N,): number of the route at each position, (0,) for a TSP
    first: Index  # (R,): position of each route's first depot, (0,) for a TSP
    last: Index  # (R,): position of its last
    load: Ints  # (N + 1,): demand of all positions before, (0,) for a TSP
    length: Floats  # (N + 1,): the same for length and service, but anew for every route

    @property
    def n_routes(self) -> int:
        return len(self.first)


def plan_of(rules: Rules, solution: Solution) -> Plan:
    """Lay a valid solution out as one cyclic order."""
    if rules.depot < 0:
        order = solution.tour.astype(np.int32)
    else:
        end = np.array([rules.depot], dtype=np.int64)
        parts = [part for route in solution.routes for part in (end, route, end)]
        order = np.concatenate(parts or [end[:0]]).astype(np.int32)
    return _indexed(rules, order)


def _indexed(rules: Rules, order: Index) -> Plan:
    pos = np.full(rules.n, -1, dtype=np.int32)
    if rules.depot < 0:
        pos[order] = np.arange(len(order), dtype=np.int32)
        none = np.zeros(0, dtype=np.int32)
        return Plan(order, pos, none, none, none, np.zeros(0, np.int64), np.zeros(0))
    return Plan(
        order,
        pos,
        *_index_routes(rules.space, order, pos, rules.depot, rules.demand, rules.service),
    )


@kernel
def _index_routes(space, order, pos, depot, demand, service):
    n = len(order)
    route = np.empty(n, np.int32)
    first = np.empty(n // 2, np.int32)
    last = np.empty(n // 2, np.int32)
    load = np.zeros(n + 1, np.int64)
    length = np.zeros(n + 1, np.float64)
    r = -1
    inside = False
    for p in range(n):
        node = order[p]
        if node == depot:
            if inside:
                last[r] = p
            else:
                r += 1
                first[r] = p
                length[p] = 0.0  # one sum over all routes would lose digits
            inside = not inside
        else:
            pos[node] = p
        route[p] = r
        load[p + 1] = load[p] + demand[node]
        if p + 1 < n:
            step = distance(space, node, order[p + 1])
            length[p + 1] = length[p] + step + (0.0 if node == depot else service)
    return route, first[: r + 1].copy(), last[: r + 1].copy(), load, length


def solution_of(rules: Rules, plan: Plan) -> Solution:
    """The plan as routes again; empty routes vanish."""
    if rules.depot < 0:
        return Solution([plan.order.astype(np.int64)])
    bounds = zip(plan.first.tolist(), plan.last.tolist(), strict=True)
    return Solution([plan.order[a + 1 : b].astype(np.int64) for a, b in bounds])


# --- destroy -----------------------------------------------------------------------------------


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
def _cut_around(order, pos, route, first, last, fixed, depot, mode, cut, log, count, node):
    """Destroy one node: cut its edges, and the depot edges that go with it."""
    p = pos[node]
    n = len(order)
    count, new = _cut_edge(order, fixed, depot, cut, log, count, p)
    count, more = _cut_edge(order, fixed, depot, cut, log, count, p - 1 if p > 0 else n - 1)
    new += more
    if depot >= 0 and mode == 1:
        r = route[p]
        count, more = _cut_edge(order, fixed, depot, cut, log, count, first[r])
        new += more
        count, more = _cut_edge(order, fixed, depot, cut, log, count, last[r] - 1)
        new += more
    return count, new


@kernel
def _cut_rows(order, pos, route, first, last, fixed, depot, mode, ranked, counts, sizes, reach):
    """Per row: cut around its first `counts` ranked nodes, or until its graph has `sizes` nodes."""
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
            count, new = _cut_around(
                order, pos, route, first, last, fixed, depot, mode, cut, log, count, ranked[b, i]
            )
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
                    order, pos, route, first, last, fixed, depot, mode, cut, log, count, missing,
                    ranked[b, i],
                )  # fmt: skip
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
def _open_up(
    order, pos, route, first, last, fixed, depot, mode, cut, log, count, missing, node
):  # fmt: skip
    """Cut one edge at a node that lies beside everything cut so far, or at its route's ends.

    Needed where hyper-edges run out: behind fixed edges, and when all touched routes are used up.
    The depot edge of another route adds exactly one customer.
    """
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
    where = (plan.order, plan.pos, plan.route, plan.first, plan.last, rules.fixed, rules.depot)
    ranked = np.ascontiguousarray(ranked, dtype=np.int32)
    cuts, n_cuts = _cut_rows(*where, DEPOT_EDGES[depot_edges], ranked, counts, sizes, reach)
    return cuts, n_cuts


# --- reduce ------------------------------------------------------------------------------------


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


@kernel
def _reduce_rows(
    space, order, route, first, last, load, length, depot, demand, service, cuts, n_cuts
):
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
            for i in range(count):  # the item after cut i; the last one goes round the end
                a = cuts[b, i] + 1 if cuts[b, i] + 1 < n else 0
                z = cuts[b, i + 1 if i + 1 < count else 0]
                at[b, m], far[b, m], node[b, m], partner[b, m] = a, z, order[a], m
                if a != z:
                    partner[b, m] = m + 1
                    at[b, m + 1], far[b, m + 1] = z, a
                    node[b, m + 1], partner[b, m + 1] = order[z], m
                    m += 1
                m += 1
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
    return Graphs(
        *_reduce_rows(
            rules.space, plan.order, plan.route, plan.first, plan.last, plan.load, plan.length,
            rules.depot, rules.demand, rules.service, cuts, n_cuts,
        )
    )  # fmt: skip


# --- judge and restore -------------------------------------------------------------------------


@dataclass(frozen=True)
class Repaired:
    """What a repairer answers: for each row an order of its nodes, and which come via the depot.

    An order names both ends of a hyper-edge one after the other, so it also says the direction.
    """

    order: Index  # (B, M), a permutation of 0 .. size - 1 in each row, -1 beyond
    via: Flags  # (B, M), by place in `order`; all False for a TSP


def present(graphs: Graphs) -> Repaired:
    """The repair that changes nothing."""
    m = graphs.node.shape[1]
    order = np.broadcast_to(np.arange(m, dtype=np.int32), graphs.node.shape)
    return Repaired(np.where(order < graphs.size[:, None], order, np.int32(-1)), graphs.via.copy())


OK, NOT_A_REPAIR, OVERLOAD, TOO_LONG = 0, 1, 2, 3


@inner
def judge_row(space, depot, capacity, max_length, size, node, partner, load, length, order, via):
    """(verdict, length of the free edges, routes) of one repaired row; walks it once."""
    seen = np.zeros(size, np.bool_)
    total = 0.0
    routes = 0
    here = -1  # node at the loose end of the open route, -1 while at the depot
    carried = 0
    run = 0.0
    i = 0
    while i < size:
        u = order[i]
        if u < 0 or u >= size or seen[u]:
            return NOT_A_REPAIR, 0.0, 0
        seen[u] = True
        out = u
        if partner[u] >= 0 and partner[u] != u:  # a hyper-edge: its other end must follow
            out = partner[u]
            if i + 1 >= size or order[i + 1] != out or seen[out] or (depot >= 0 and via[i + 1]):
                return NOT_A_REPAIR, 0.0, 0
            seen[out] = True
            i += 1
        if depot < 0:
            if here >= 0:
                total += distance(space, here, node[u])
            here = node[out]
        elif via[i if out == u else i - 1]:
            if here >= 0:  # close the open route
                step = distance(space, here, depot)
                total += step
                if run + step > max_length:
                    return TOO_LONG, 0.0, 0
            routes += 1
            carried = load[u]
            run = length[u]
            if partner[u] >= 0:
                step = distance(space, depot, node[u])
                total += step
                run += step
            here = node[out]
        else:
            if here < 0:
                return NOT_A_REPAIR, 0.0, 0  # nothing to go on from
            step = distance(space, here, node[u])
            total += step
            carried += load[u]
            run += step + length[u]
            here = node[out]
            if partner[u] < 0:  # along a stub to the depot: the route ends
                if run > max_length:
                    return TOO_LONG, 0.0, 0
                here = -1
        if carried > capacity:
            return OVERLOAD, 0.0, 0
        i += 1
    if depot < 0:
        if size > 0:
            total += distance(space, here, node[order[0]])
    elif here >= 0:
        step = distance(space, here, depot)
        total += step
        if run + step > max_length:
            return TOO_LONG, 0.0, 0
    return OK, total, routes


@kernel
def _judge_rows(space, depot, capacity, max_length, size, node, partner, load, length, order, via):
    rows = len(size)
    verdict = np.zeros(rows, np.int32)
    total = np.zeros(rows, np.float64)
    routes = np.zeros(rows, np.int32)
    for b in range(rows):
        verdict[b], total[b], routes[b] = judge_row(
            space, depot, capacity, max_length,
            size[b], node[b], partner[b], load[b], length[b], order[b], via[b],
        )  # fmt: skip
    return verdict, total, routes


def walk(rules: Rules, graphs: Graphs, repaired: Repaired) -> tuple[Index, Floats, Index]:
    """(verdict, length of the free edges, routes) of each row; the fleet is not looked at."""
    verdict, total, routes = _judge_rows(
        rules.space, rules.depot, rules.capacity, rules.max_length * (1 + 1e-12),
        graphs.size, graphs.node, graphs.partner, graphs.load, graphs.length,
        repaired.order, repaired.via,
    )  # fmt: skip
    return verdict, total, routes


def judge(rules: Rules, plan: Plan, graphs: Graphs, repaired: Repaired) -> tuple[Flags, Floats]:
    """Whether each row may be restored, and by how much the solution's cost would change.

    The change on the reduced graph equals the change of the full solution, so a repair is accepted
    or dropped before the solution is touched. A repair that breaks a limit is dropped whole.
    """
    verdict, total, routes = walk(rules, graphs, repaired)
    fleet = plan.n_routes - graphs.n_routes + routes
    good = (verdict == OK) & ((fleet <= rules.vehicles) | (routes <= graphs.n_routes))
    return good, np.where(good, total - graphs.cut_cost, np.inf)


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
def _restore_routes(order, route, first, last, depot, size, partner, at, far, new, via):
    """A new cyclic order: untouched routes first, then the repaired ones."""
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
        plan = replace(plan, order=plan.order.copy(), pos=plan.pos.copy())
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
    where = plan.order, plan.route, plan.first, plan.last
    return _indexed(rules, _restore_routes(*where, rules.depot, m, *args, repaired.via[row]))


# --- where to destroy ----------------------------------------------------------------------------


class Nearness:
    """Which nodes lie nearest to a centre: by k-d tree, or by the matrix if there is only that."""

    def __init__(self, instance: Instance) -> None:
        from scipy.spatial import cKDTree

        self._instance = instance
        keep = np.arange(instance.n)
        self._nodes = keep[keep != instance.depot] if instance.is_cvrp else keep
        self._tree = None
        if instance.metric is not Metric.EXPLICIT:
            self._points = _embedded(instance)
            self._tree = cKDTree(self._points[self._nodes])

    @property
    def nodes(self) -> Ints:
        """All nodes that can be destroyed: the depot cannot."""
        return self._nodes

    @cached_property
    def corner(self) -> Floats:
        """Least x and y of all points of the plane."""
        return np.asarray(self._points.min(axis=0))

    @cached_property
    def extent(self) -> Floats:
        """Width and height of the smallest rectangle around them."""
        return np.asarray(np.ptp(self._points, axis=0))

    def around(self, centres: npt.ArrayLike, k: int) -> Index:
        """The k nodes nearest to each centre node, nearest first (B, k).

        The centre is among them unless k others lie at the same point.
        """
        nodes = np.atleast_1d(np.asarray(centres, dtype=np.int64))
        k = min(k, len(self._nodes))
        if self._tree is not None:
            return self._query(self._points[nodes], k)
        assert self._instance.matrix is not None
        far = self._instance.matrix[nodes][:, self._nodes].astype(np.float64)
        far[self._nodes[None, :] == nodes[:, None]] = -1.0
        return self._nodes[np.argsort(far, axis=1, kind="stable")[:, :k]].astype(np.int32)

    def around_points(self, points: Floats, k: int) -> Index:
        """The same for free points of the plane (the paper's centres)."""
        if self._tree is None or not self._instance.metric.planar:
            raise ValueError("free centres need coordinates of the plane")
        return self._query(points, min(k, len(self._nodes)))

    def _query(self, points: Floats, k: int) -> Index:
        assert self._tree is not None
        if k < 1:
            return np.zeros((len(points), 0), dtype=np.int32)
        norm = {Metric.MAN_2D: 1.0, Metric.MAX_2D: np.inf}.get(self._instance.metric, 2.0)
        found: Any = self._tree.query(points, k=list(range(1, k + 1)), p=norm)[1]
        nodes: Index = self._nodes[found].astype(np.int32)
        return nodes


def _embedded(instance: Instance) -> Floats:
    """Points whose nearness is the metric's: of the plane itself, or of the sphere for GEO."""
    if instance.metric is Metric.GEO:
        assert instance._radians is not None
        latitude, longitude = instance._radians.T
        flat = np.cos(latitude)
        return np.stack(
            [flat * np.cos(longitude), flat * np.sin(longitude), np.sin(latitude)], axis=1
        )
    assert instance.xy is not None
    return instance.xy


# --- what a network sees -------------------------------------------------------------------------


def features(rules: Rules, graphs: Graphs) -> npt.NDArray[np.float32]:
    """Equations 1-5: (x, y, partner x, partner y, flag) and for routes the load over capacity.

    Coordinates are shifted to zero, turned so that the long side is x, and scaled to [0, 1] by it
    (float64 throughout, cast at the end); where all points coincide they are not scaled. Of a stub
    the partner is the depot, which may lie far outside. Of routes the depot itself comes as one
    more row, after the nodes. Rows beyond are zero. (B, M, 5) or (B, M + 1, 6)
    """
    inside = graphs.node >= 0
    here = rules.space.points[np.where(inside, graphs.node, 0)]  # (B, M, 2)
    rows = np.arange(len(graphs))
    other = np.where(graphs.partner >= 0, graphs.partner, 0)
    there = here[rows[:, None], other]
    if rules.depot >= 0:
        there = np.where((graphs.partner < 0)[..., None], rules.space.points[rules.depot], there)
    empty = np.reshape(graphs.size == 0, (-1, 1, 1))  # has no corners: leave its zeros alone
    some = inside[..., None] | empty
    low = np.where(some, here, np.inf).min(axis=1, keepdims=True)
    high = np.where(some, here, -np.inf).max(axis=1, keepdims=True)
    side = high - low
    swap = side[..., 1] > side[..., 0]
    scale = side.max(axis=-1, keepdims=True)
    scale = np.where(scale > 0, scale, 1.0)

    def framed(points: Floats) -> Floats:
        scaled = (points - low) / scale
        return np.asarray(np.where(swap[..., None], scaled[..., ::-1], scaled))

    own = np.arange(graphs.node.shape[1], dtype=np.int32)
    end = np.where(graphs.partner == own, 0.0, 1.0)[..., None]
    parts = [framed(here), framed(there), end]
    if rules.depot >= 0:
        parts.append((graphs.load / rules.capacity)[..., None])
    found = (np.concatenate(parts, axis=-1) * inside[..., None]).astype(np.float32)
    if rules.depot < 0:
        return found
    found = np.concatenate([found, np.zeros_like(found[:, :1])], axis=1)
    depot = framed(rules.space.points[rules.depot])[:, 0]  # (B, 2)
    found[rows, graphs.size, :4] = np.tile(depot, 2)
    return found

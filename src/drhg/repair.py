"""Repairers: they take a batch of reduced graphs and answer with orders of their nodes.

Any callable with the signature of `Repair` will do. These two need no training: `InsertionRepair`
puts isolated nodes back one by one, `LocalSearchRepair` also rearranges the intact pieces.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from drhg.compiled import EXPLICIT, Space, distance, inner, kernel, random_below, random_state
from drhg.hypergraph import EVERYWHERE, OK, Graphs, Repaired, Rules, present, walk
from drhg.local_search import BREADTH, DEPTH, REACH, descend, kick_and_settle
from drhg.route_moves import line_of, pieces_of, settle, write_back

NEAREST = 8  # neighbours of a node that local search considers in a reduced graph


class Repair(Protocol):
    """Reconnect every reduced graph of the batch; the caller judges and decides."""

    def __call__(self, rules: Rules, graphs: Graphs, rng: np.random.Generator) -> Repaired: ...


class InsertionRepair:
    """Leave the intact pieces as they are, insert isolated nodes where they are cheapest."""

    def __call__(self, rules: Rules, graphs: Graphs, rng: np.random.Generator) -> Repaired:
        state = random_state(int(rng.integers(2**63)))
        return Repaired(*_insert_rows(*_arguments(rules, graphs), state))


class LocalSearchRepair:
    """Rearrange nodes and intact pieces by local search on the reduced graph.

    For a tour: 2-opt, or-opt and 3-opt moves that respect hyper-edges, from greedy edges and from
    the present order, then `kicks` perturbations per reduced node on the better of the two. For
    routes: moves of one to three pieces (see `route_moves`), from the present routes and with
    isolated nodes inserted anew. With a limited fleet a region keeps its number of routes.
    """

    def __init__(self, kicks: float = 0.5) -> None:
        self.kicks = kicks

    def __call__(self, rules: Rules, graphs: Graphs, rng: np.random.Generator) -> Repaired:
        if rules.depot >= 0:
            return _settled_routes(rules, graphs, rng)
        state = random_state(int(rng.integers(2**63)))
        order = _search_tours(
            rules.space, graphs.size, graphs.node, graphs.partner, BREADTH, DEPTH,
            self.kicks, REACH, state,
        )  # fmt: skip
        return Repaired(order, np.zeros(order.shape, np.bool_))


def _settled_routes(rules: Rules, graphs: Graphs, rng: np.random.Generator) -> Repaired:
    """The best of the present routes, these settled, and settled ones with single nodes moved."""
    most = graphs.size if rules.vehicles >= EVERYWHERE else graphs.n_routes
    limit = rules.max_length * (1 - 5e-13)  # sums of changes are not lengths to the last digit
    answer = present(graphs)
    _, best, _ = walk(rules, graphs, answer)
    for start in (present(graphs), InsertionRepair()(rules, graphs, rng)):
        verdict, _, used = walk(rules, graphs, start)
        for row in np.flatnonzero((verdict == OK) & (used <= most)):
            m = int(graphs.size[row])
            parts = graphs.node[row], graphs.partner[row], graphs.load[row], graphs.length[row]
            pieces = pieces_of(rules.space, rules.depot, m, *parts)
            line = line_of(pieces, start.order[row], start.via[row], most[row])
            settle(pieces, line, rules.capacity, limit, most[row])
            write_back(pieces, line, start.order[row], start.via[row])
        verdict, total, used = walk(rules, graphs, start)
        better = (verdict == OK) & (used <= most) & (total < best)
        answer.order[better], answer.via[better] = start.order[better], start.via[better]
        best = np.where(better, total, best)
    return answer


def _arguments(rules: Rules, graphs: Graphs):  # type: ignore[no-untyped-def]
    """What the kernels for single pieces take."""
    limit = rules.max_length * (1 + 1e-12)
    return (
        rules.space, rules.depot, rules.capacity, limit,
        graphs.size, graphs.node, graphs.partner, graphs.via, graphs.load, graphs.length,
    )  # fmt: skip


@kernel
def _measure(
    space, depot, size, node, partner, load, length, order, via, n_order, start, carried, run
):
    """Load and length of the route that each place belongs to, and where its piece starts."""
    i = 0
    first = 0
    while i < n_order:
        u = order[i]
        wide = partner[u] >= 0 and partner[u] != u
        if depot >= 0 and via[i]:
            first = i
            carried[i] = 0
            run[i] = 0.0
        start[i] = first
        carried[first] += load[u]
        run[first] += length[u]
        out = partner[u] if wide else u
        nxt = i + (2 if wide else 1)
        if wide:
            start[i + 1] = first
        if depot >= 0:
            if via[i] and partner[u] >= 0:
                run[first] += distance(space, depot, node[u])
            ends_here = nxt >= n_order or via[nxt]
            tail_stub = partner[u] < 0 and not via[i]
            if ends_here:
                if not tail_stub:
                    run[first] += distance(space, node[out], depot)
            else:
                run[first] += distance(space, node[out], node[order[nxt]])
        i = nxt


@inner
def _shift_in(order, via, n_order, at, u, w, comes_via):
    """Make room at place `at` and put the piece (u, or u and w) there."""
    wide = 2 if w >= 0 else 1
    for j in range(n_order - 1, at - 1, -1):
        order[j + wide] = order[j]
        via[j + wide] = via[j]
    order[at] = u
    via[at] = comes_via
    if w >= 0:
        order[at + 1] = w
        via[at + 1] = False
    return n_order + wide


@inner
def _insert_piece(
    space,
    depot,
    capacity,
    max_length,
    size,
    node,
    partner,
    load,
    length,
    order,
    via,
    n_order,
    u,
    start,
    carried,
    run,
):
    """Insert the piece of node u (isolated, or a hyper-edge in its better direction) at its best.

    Returns the new length of the order. Always possible: a route of its own is allowed here, the
    fleet limit is judged later.
    """
    w = partner[u] if partner[u] != u else -1
    best = np.inf
    best_at = n_order
    best_turn = False
    best_via = depot >= 0
    fixes_next = False  # whether the piece that follows stops being the first of its route
    if depot >= 0:
        far = u if w < 0 else w
        best = distance(space, depot, node[u]) + distance(space, node[far], depot)
        _measure(space, depot, size, node, partner, load, length,
                 order, via, n_order, start, carried, run)  # fmt: skip
    elif n_order == 0:
        return _shift_in(order, via, n_order, 0, u, w, False)
    i = 0
    last = -1  # node at the loose end before place i
    last_open = False
    last_start = 0
    while i <= n_order:
        closing = i == n_order
        if closing and depot < 0:
            break
        entry = -1 if closing else order[i]
        for turn in range(2 if w >= 0 else 1):
            a = node[u] if turn == 0 else node[w]
            z = node[u] if w < 0 else (node[w] if turn == 0 else node[u])
            if depot < 0:
                before = node[order[n_order - 1]] if i == 0 else last
                extra = (
                    distance(space, before, a)
                    + distance(space, z, node[entry])
                    - distance(space, before, node[entry])
                )
                if extra < best:
                    best, best_at, best_turn, best_via, fixes_next = (
                        extra,
                        i,
                        turn == 1,
                        False,
                        False,
                    )
                continue
            if last_open and (closing or via[i]):  # at the end of the route before
                extra = (
                    distance(space, last, a)
                    + distance(space, z, depot)
                    - distance(space, last, depot)
                )
                fits = carried[last_start] + load[u] <= capacity
                if extra < best and fits and run[last_start] + extra + length[u] <= max_length:
                    best, best_at, best_turn, best_via, fixes_next = (
                        extra,
                        i,
                        turn == 1,
                        False,
                        False,
                    )
            if closing or (via[i] and partner[entry] < 0):
                continue  # nothing comes before a stub that starts its route
            before = depot if via[i] else last
            extra = (
                distance(space, before, a)
                + distance(space, z, node[entry])
                - distance(space, before, node[entry])
            )
            first = start[i]
            fits = carried[first] + load[u] <= capacity
            if extra < best and fits and run[first] + extra + length[u] <= max_length:
                best, best_at, best_turn = extra, i, turn == 1
                best_via, fixes_next = via[i], via[i]
        if not closing:
            wide = partner[entry] >= 0 and partner[entry] != entry
            last = node[partner[entry] if wide else entry]
            last_open = partner[entry] >= 0 or via[i]
            last_start = start[i]
            i += 2 if wide else 1
        else:
            i += 1
    if fixes_next:
        via[best_at] = False
    if best_turn:
        return _shift_in(order, via, n_order, best_at, w, u, best_via)
    return _shift_in(order, via, n_order, best_at, u, w, best_via)


@inner
def _insert_row(
    space, depot, capacity, max_length, size, node, partner, via0, load, length, state, order, via
):
    """The intact pieces in their present order, isolated nodes inserted in random order."""
    waiting = np.empty(size, np.int64)
    start = np.zeros(size + 2, np.int64)
    carried = np.zeros(size + 2, np.int64)
    run = np.zeros(size + 2, np.float64)
    n_waiting = 0
    n_order = 0
    fresh = False  # the route's first piece was dropped: the next one of it comes via the depot
    for i in range(size):
        fresh = fresh or via0[i]
        if partner[i] == i:
            waiting[n_waiting] = i
            n_waiting += 1
        else:
            order[n_order] = i
            via[n_order] = fresh
            fresh = False
            n_order += 1
    for i in range(n_waiting - 1, -1, -1):
        j = random_below(state, i + 1)
        u = waiting[j]
        waiting[j] = waiting[i]
        n_order = _insert_piece(
            space, depot, capacity, max_length, size, node, partner, load, length,
            order, via, n_order, u, start, carried, run,
        )  # fmt: skip


@kernel
def _insert_rows(
    space, depot, capacity, max_length, size, node, partner, via0, load, length, state
):
    rows, width = node.shape
    order = np.full((rows, width), -1, np.int32)
    via = np.zeros((rows, width), np.bool_)
    for b in range(rows):
        line = np.empty(size[b] + 4, np.int32)
        depots = np.zeros(size[b] + 4, np.bool_)
        _insert_row(
            space, depot, capacity, max_length,
            size[b], node[b], partner[b], via0[b], load[b], length[b], state, line, depots,
        )  # fmt: skip
        order[b, : size[b]] = line[: size[b]]
        via[b, : size[b]] = depots[: size[b]]
    return order, via


@inner
def _local_problem(space, size, node, partner):
    """Coordinates (or distances), fixed edges and neighbour lists of one reduced graph."""
    xy = np.empty((size, 2), np.float64)
    near_matrix = np.zeros((size, size) if space.metric == EXPLICIT else (0, 0), np.float64)
    held = np.full((size, 2), -1, np.int32)
    for i in range(size):
        xy[i, 0], xy[i, 1] = space.points[node[i], 0], space.points[node[i], 1]
        if partner[i] != i:
            held[i, 0] = partner[i]
        if space.metric == EXPLICIT:
            for j in range(size):
                near_matrix[i, j] = space.matrix[node[i], node[j]]
    ground = Space(space.metric, xy, near_matrix)
    width = min(NEAREST, size - 1)
    near = np.full((size, max(1, width)), -1, np.int32)
    span = np.empty(size, np.float64)
    for i in range(size):
        for c in range(width):
            span[c] = np.inf
        for j in range(size):
            if j == i or partner[i] == j:
                continue
            d = distance(ground, i, j)
            if d < span[width - 1]:
                c = width - 1
                while c > 0 and span[c - 1] > d:
                    span[c], near[i, c] = span[c - 1], near[i, c - 1]
                    c -= 1
                span[c], near[i, c] = d, j
    return ground, held, near


@inner
def _greedy_tour(space, held, near):
    """Hyper-edges, then the shortest candidate edges; loose ends are joined nearest first."""
    size, width = near.shape
    link = np.full((size, 2), -1, np.int32)
    root = np.arange(size)
    for i in range(size):
        if held[i, 0] >= 0:
            link[i, 0] = held[i, 0]
            root[i] = min(i, held[i, 0])
    key = np.full(size * width, np.inf)
    for i in range(size):
        for c in range(width):
            if near[i, c] >= 0:
                key[i * width + c] = distance(space, i, near[i, c])
    for e in np.argsort(key):
        if key[e] == np.inf:
            break
        i = e // width
        j = near[i, e % width]
        if link[i, 1] >= 0 or link[j, 1] >= 0:
            continue
        a, b = i, j
        while root[a] != a:
            a = root[a]
        while root[b] != b:
            b = root[b]
        if a == b:
            continue
        root[a] = b
        link[i, 0 if link[i, 0] < 0 else 1] = j
        link[j, 0 if link[j, 0] < 0 else 1] = i
    # walk a fragment, hop to the nearest loose end, and so on
    tour = np.empty(size, np.int32)
    seen = np.zeros(size, np.bool_)
    here = 0
    for i in range(size):
        if link[i, 1] < 0:
            here = i
            break
    w = 0
    while True:
        before = -1
        while True:
            seen[here] = True
            tour[w] = here
            w += 1
            onward = -1
            for c in range(2):
                if link[here, c] >= 0 and link[here, c] != before and not seen[link[here, c]]:
                    onward = link[here, c]
            if onward < 0:
                break
            before, here = here, onward
        if w == size:
            return tour
        best = np.inf
        hop = -1
        for j in range(size):
            if not seen[j] and link[j, 1] < 0:
                d = distance(space, here, j)
                if d < best:
                    best, hop = d, j
        here = hop


@inner
def _positions(tour):
    pos = np.empty(len(tour), np.int32)
    for i in range(len(tour)):
        pos[tour[i]] = i
    return pos


@inner
def _length(space, tour):
    total = 0.0
    for i in range(len(tour)):
        total += distance(space, tour[i - 1], tour[i])
    return total


@kernel
def _search_tours(space, size, node, partner, breadth, depth, kicks, reach, state):
    rows, width = node.shape
    order = np.full((rows, width), -1, np.int32)
    for b in range(rows):
        m = size[b]
        if m < 4:
            order[b, :m] = np.arange(m)
            continue
        ground, held, near = _local_problem(space, m, node[b], partner[b])
        tour = _greedy_tour(ground, held, near)
        present = np.arange(m).astype(np.int32)
        pos = _positions(tour)
        where = present.copy()
        greedy = _length(ground, tour) - descend(ground, held, near, breadth, depth, tour, pos)
        kept = _length(ground, present) - descend(
            ground, held, near, breadth, depth, present, where
        )
        if kept < greedy:
            tour, pos = present, where
        kick_and_settle(
            ground, held, near, breadth, depth, tour, pos,
            state, int(kicks * m), reach,
        )  # fmt: skip
        # begin with a whole piece: if the last node's partner comes first, shift by one
        shift = 1 if partner[b, tour[0]] == tour[m - 1] and tour[0] != tour[m - 1] else 0
        if m > 2 and partner[b, tour[0]] == tour[1]:
            shift = 0
        for i in range(m):
            order[b, i] = tour[(i + m - shift) % m]
    return order

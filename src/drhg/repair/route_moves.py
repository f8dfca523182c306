"""Local search on the routes of a reduced graph: moves of pieces, each judged by its change alone.

The routes lie one after the other on a *line* of slots, a depot before each and one at the end. A
slot holds a piece, which is entered at its node `a` and left at its node `z`; of a stub one of the
two is the depot. So every neighbour on the line is joined by an edge, those of depots and stubs
cost nothing, and a move only has to know which joins may not be opened: between a stub and its
depot. With loads and lengths summed up along each route, a move is priced in constant time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from drhg.hypergraph.plan import Flags, Index
from drhg.kernels.jit import inlined, inner, kernel
from drhg.kernels.space import distance
from drhg.problem import Floats, Ints
from drhg.problem.tolerances import GAIN

STAY = 0
RELOCATE = 1  # a stretch of pieces into another join, either way round
SWAP = 2  # two stretches for each other, each either way round
TWO_OPT = 3  # a stretch reversed where it is
TWO_OPT_STAR = 4  # two routes exchange their ends
TWO_OPT_STAR_REVERSED = 5  # both beginnings form one route, both ends the other


class RouteMoveLimits(NamedTuple):
    """What a route may be, how many there may be, and how many pieces move together at most."""

    capacity: int
    max_length: float
    routes: int
    stretch: int


class ReducedRoutes(NamedTuple):
    """A row of reduced graphs of routes, as `pieces_of` takes it."""

    size: int
    node: Index
    partner: Index
    load: Ints
    length: Floats


class Pieces(NamedTuple):
    """What does not change: the pieces of one reduced graph; number m of its nodes is the depot."""

    head: Index  # (P,): one end
    tail: Index  # (P,): the other, m for a stub
    load: Ints  # (P,)
    length: Floats  # (P,)
    far: Floats  # (m + 1, m + 1): distances
    near: Index  # (P, k): nearest other pieces, -1 if there are no more


class Line(NamedTuple):
    """The routes, changed in place; the first slot in use is a depot, and the last."""

    item: Index  # (N,): its piece, -1 for a depot
    flip: Flags  # (N,): whether the piece is entered at its tail
    a: Index  # (N,): node at which a slot is entered
    z: Index  # (N,): and left
    edge: Floats  # (N,): distance to the next slot
    begin: Index  # (N,): the depot before
    end: Index  # (N,): the depot behind; of a depot, the next one
    load: Ints  # (N,): of the route up to here
    length: Floats  # (N,): the same, to the slot's far end
    shut: Flags  # (N,): whether the join to the next slot may not be opened
    slot: Index  # (P,): where each piece lies
    tried: Index  # (P,): how many moves had been made when moves of the piece were last looked at
    moved: Index  # (P,): and when a move changed its route
    counts: Index  # (2,): slots in use, moves made


@kernel
def pieces_of(space, depot, graph, neighbours):
    size, node, partner, load, length = graph
    head = np.empty(size, np.int32)
    tail = np.empty(size, np.int32)
    weight = np.empty(size, np.int64)
    extent = np.empty(size, np.float64)
    count = 0
    for u in range(size):
        if 0 <= partner[u] < u:
            continue
        head[count] = u
        tail[count] = partner[u] if partner[u] >= 0 else size
        weight[count], extent[count] = load[u], length[u]
        count += 1
    far = np.zeros((size + 1, size + 1), np.float64)
    for u in range(size):
        far[u, size] = far[size, u] = distance(space, node[u], depot)
        for w in range(u):
            far[u, w] = far[w, u] = distance(space, node[u], node[w])
    return Pieces(
        head[:count].copy(), tail[:count].copy(), weight[:count].copy(), extent[:count].copy(),
        far, _nearest(head[:count], tail[:count], far, neighbours),
    )  # fmt: skip


@inner
def _nearest(head, tail, far, neighbours):
    """For each piece those whose free ends are nearest to its own."""
    count = len(head)
    depot = len(far) - 1
    width = min(neighbours, max(1, count - 1))
    near = np.full((count, width), -1, np.int32)
    span = np.empty(width, np.float64)
    for p in range(count):
        span[:] = np.inf
        for q in range(count):
            if p == q:
                continue
            d = far[head[p], head[q]]
            if tail[q] != depot:
                d = min(d, far[head[p], tail[q]])
            if tail[p] != depot:
                d = min(d, far[tail[p], head[q]])
                if tail[q] != depot:
                    d = min(d, far[tail[p], tail[q]])
            if d < span[width - 1]:
                c = width - 1
                while c > 0 and span[c - 1] > d:
                    span[c], near[p, c] = span[c - 1], near[p, c - 1]
                    c -= 1
                span[c], near[p, c] = d, q
    return near


@kernel
def line_of(pieces, order, via, limits):
    """Lay the order of a repair out; an empty route is kept at the end if the fleet allows it."""
    count = len(pieces.head)
    room = 2 * count + 3
    line = Line(
        np.full(room, -1, np.int32), np.zeros(room, np.bool_),
        np.zeros(room, np.int32), np.zeros(room, np.int32), np.zeros(room, np.float64),
        np.zeros(room, np.int32), np.zeros(room, np.int32),
        np.zeros(room, np.int64), np.zeros(room, np.float64), np.zeros(room, np.bool_),
        np.zeros(count, np.int32), np.full(count, -1, np.int32), np.zeros(count, np.int32),
        np.zeros(2, np.int32),
    )  # fmt: skip
    depot = len(pieces.far) - 1
    which = np.full(depot, -1, np.int32)  # piece of each node
    for p in range(count):
        which[pieces.head[p]] = p
        if pieces.tail[p] != depot:
            which[pieces.tail[p]] = p
    w = 0
    i = 0
    while i < depot:
        p = which[order[i]]
        if via[i]:
            line.item[w] = -1
            w += 1
        stub = pieces.tail[p] == depot
        line.item[w] = p
        line.flip[w] = via[i] if stub else order[i] != pieces.head[p]
        w += 1
        i += 1 if stub or pieces.head[p] == pieces.tail[p] else 2
    line.item[w] = -1
    line.counts[0] = w + 1
    _sum_up(pieces, line, limits.routes)
    return line


@inner
def _sum_up(pieces, line, most):
    """Drop empty routes, keep one if there are fewer than `most`; bring all sums up to date."""
    item, flip, a, z, edge, begin, end, load, length, shut, slot, _, _, counts = line
    depot = len(pieces.far) - 1
    n = 0
    depots = 0
    for i in range(counts[0]):
        if item[i] < 0:
            if n > 0 and item[n - 1] < 0:
                continue
            depots += 1
        item[n], flip[n] = item[i], flip[i]
        n += 1
    if depots <= most:  # one more than there are routes
        item[n] = -1
        n += 1
    counts[0] = n
    for i in range(n):
        p = item[i]
        if p < 0:
            a[i] = z[i] = depot
            continue
        slot[p] = i
        a[i], z[i] = pieces.head[p], pieces.tail[p]
        if flip[i]:
            a[i], z[i] = z[i], a[i]
    start = 0
    for i in range(n):
        p = item[i]
        if p < 0:
            for j in range(start, i):
                end[j] = i
            start = i
            load[i], length[i] = 0, 0.0
        else:
            load[i] = load[i - 1] + pieces.load[p]
            length[i] = length[i - 1] + edge[i - 1] + pieces.length[p]
        begin[i] = start
        if i + 1 < n:
            edge[i] = pieces.far[z[i], a[i + 1]]
            shut[i] = z[i] == depot and a[i + 1] == depot and max(item[i], item[i + 1]) >= 0


@kernel
def write_back(pieces, line, order, via):
    """The line as the order of a repair."""
    depot = len(pieces.far) - 1
    w = 0
    for i in range(line.counts[0]):
        if line.item[i] < 0:
            continue
        u, v = line.a[i], line.z[i]
        if u == depot or v == depot:
            u = v = pieces.head[line.item[i]]
        order[w] = u
        via[w] = line.item[i - 1] < 0
        w += 1
        if u != v:
            order[w] = v
            via[w] = False
            w += 1


# A move is (kind, i, j, k, l, turned): slots i to j, and where they go or what they change with.
# The functions that price moves are compiled into `best_move`.


@inlined
def _offer(move, kind, i, j, k, l, turned):
    move[0], move[1], move[2], move[3], move[4], move[5] = kind, i, j, k, l, turned


@inlined
def _stretch(pieces, line, i, j):
    """Whether slots i to j are pieces of one route, none of them a stub."""
    item, a, z, begin = line.item, line.a, line.z, line.begin
    depot, count = len(pieces.far) - 1, line.counts[0]
    if i < 0 or j >= count or item[i] < 0 or item[j] < 0:
        return False
    return begin[i] == begin[j] and a[i] != depot and z[j] != depot


@inlined
def _total(line, i):
    """Length of the route of slot i."""
    last = line.end[i] - 1
    return line.length[last] + line.edge[last]


@inlined
def _relocate(pieces, line, limits, i, j, g, saved, best, move):
    """Slots i to j, either way round, into the join behind slot g; `saved` where they leave."""
    far, capacity, limit = pieces.far, limits.capacity, limits.max_length
    _, _, a, z, edge, begin, end, load, length, shut, _, _, _, _ = line
    if shut[g] or i - 1 <= g <= j:
        return best
    within = begin[i] == begin[g]
    if not within and load[end[g] - 1] + load[j] - load[i - 1] > capacity:
        return best
    here = far[z[g], a[i]] + far[z[j], a[g + 1]]
    turned = far[z[g], z[j]] + far[a[i], a[g + 1]]
    extra = min(here, turned) - edge[g]
    if extra - saved >= best:
        return best
    if limit < np.inf:
        extent = 0.0 if within else length[j] - length[i - 1] - edge[i - 1]
        if _total(line, g) + extra + extent - (saved if within else 0.0) > limit:
            return best
        if not within and _total(line, i) - saved - extent > limit:
            return best  # where the triangle inequality does not hold
    _offer(move, RELOCATE, i, j, g, 0, 1 if turned < here else 0)
    return extra - saved


@inlined
def _swap(pieces, line, limits, i, j, k, l, best, move):
    """Slots i to j for slots k to l, each either way round."""
    far, capacity, limit = pieces.far, limits.capacity, limits.max_length
    _, _, a, z, edge, begin, end, load, length, _, _, _, _, _ = line
    if k < i:
        i, j, k, l = k, l, i, j
    if k <= j + 1:
        return best
    within = begin[i] == begin[k]
    if not within:
        more = load[l] - load[k - 1] - load[j] + load[i - 1]
        if load[end[i] - 1] + more > capacity or load[end[k] - 1] - more > capacity:
            return best
    first = far[z[i - 1], a[k]] + far[z[l], a[j + 1]]
    first_turned = far[z[i - 1], z[l]] + far[a[k], a[j + 1]]
    second = far[z[k - 1], a[i]] + far[z[j], a[l + 1]]
    second_turned = far[z[k - 1], z[j]] + far[a[i], a[l + 1]]
    at_i = min(first, first_turned) - edge[i - 1] - edge[j]
    at_k = min(second, second_turned) - edge[k - 1] - edge[l]
    if at_i + at_k >= best:
        return best
    if limit < np.inf:
        longer = length[l] - length[k - 1] - edge[k - 1]
        longer -= length[j] - length[i - 1] - edge[i - 1]
        if within:
            if _total(line, i) + at_i + at_k > limit:
                return best
        elif _total(line, i) + at_i + longer > limit or _total(line, k) + at_k - longer > limit:
            return best
    turned = (1 if second_turned < second else 0) + (2 if first_turned < first else 0)
    _offer(move, SWAP, i, j, k, l, turned)
    return at_i + at_k


@inlined
def _two_opt(pieces, line, limits, i, j, best, move):
    """2-opt: slots i to j, a stretch, the other way round."""
    far, limit, a, z, edge = pieces.far, limits.max_length, line.a, line.z, line.edge
    change = far[z[i - 1], z[j]] + far[a[i], a[j + 1]] - edge[i - 1] - edge[j]
    if change >= best:
        return best
    if limit < np.inf and _total(line, i) + change > limit:
        return best
    _offer(move, TWO_OPT, i, j, 0, 0, 0)
    return change


@inlined
def _two_opt_star(pieces, line, limits, g, h, best, move):
    """2-opt*: two routes are opened behind slots g and h.

    They exchange what follows, or both beginnings form one route and both endings the other.
    """
    far, capacity, limit = pieces.far, limits.capacity, limits.max_length
    _, _, a, z, edge, begin, end, load, length, shut, _, _, _, _ = line
    if shut[g] or shut[h] or begin[g] == begin[h]:
        return best
    gone = edge[g] + edge[h]
    rest_g, rest_h = load[end[g] - 1] - load[g], load[end[h] - 1] - load[h]
    if load[g] + rest_h <= capacity and load[h] + rest_g <= capacity:
        one, two = far[z[g], a[h + 1]], far[z[h], a[g + 1]]
        if one + two - gone < best:
            after_g = _total(line, g) - length[g] - edge[g]
            after_h = _total(line, h) - length[h] - edge[h]
            if length[g] + one + after_h <= limit and length[h] + two + after_g <= limit:
                _offer(move, TWO_OPT_STAR, min(g, h), max(g, h), 0, 0, 0)
                best = one + two - gone
    if load[g] + load[h] <= capacity and rest_g + rest_h <= capacity:
        one, two = far[z[g], z[h]], far[a[g + 1], a[h + 1]]
        if one + two - gone < best:
            after_g = _total(line, g) - length[g] - edge[g]
            after_h = _total(line, h) - length[h] - edge[h]
            if length[g] + one + length[h] <= limit and after_g + two + after_h <= limit:
                _offer(move, TWO_OPT_STAR_REVERSED, min(g, h), max(g, h), 0, 0, 0)
                best = one + two - gone
    return best


@kernel
def best_move(pieces, line, limits, p, move):
    """The best move that brings piece p beside a near one or a depot; returns its change.

    Only what was not seen when the piece was tried before: its route or the other has changed.
    """
    item, _, a, z, edge, begin, end, _, _, _, slot, tried, moved, counts = line
    far, near, stretch = pieces.far, pieces.near, limits.stretch
    count, i = counts[0], slot[p]
    seen = tried[p]
    fresh = moved[p] > seen
    tried[p] = counts[1]
    best = -GAIN
    _offer(move, STAY, 0, 0, 0, 0, 0)
    for way in range(2 * stretch - 1):  # stretches with the piece first, then with it last
        x, y = (i, i + way) if way < stretch else (i - (way - stretch + 1), i)
        if not _stretch(pieces, line, x, y):
            continue
        saved = edge[x - 1] + edge[y] - far[z[x - 1], a[y + 1]]
        for c in range(near.shape[1]):
            q = near[p, c]
            if q < 0:
                break
            k = slot[q]
            if x <= k <= y or not (fresh or moved[q] > seen):
                continue
            for g in range(k - 1, k + 1):
                best = _relocate(pieces, line, limits, x, y, g, saved, best, move)
            for other in range(4 if way < stretch - 1 else 0):
                v, w = k - 1 - other % 2, k - 1  # in the place before the near piece
                if other >= 2:
                    v, w = k + 1, k + 1 + other % 2  # or behind it
                if _stretch(pieces, line, v, w):
                    best = _swap(pieces, line, limits, x, y, v, w, best, move)
        front = 0
        while front < count - 1:
            back = end[front] - 1
            if fresh or (item[back] >= 0 and moved[item[back]] > seen):
                for side in range(2):
                    g = front if side == 0 else back
                    best = _relocate(pieces, line, limits, x, y, g, saved, best, move)
            front = back + 1
    if fresh and _stretch(pieces, line, i, i):  # turned round where it is
        best = _two_opt(pieces, line, limits, i, i, best, move)
    for c in range(near.shape[1]):
        q = near[p, c]
        if q < 0:
            break
        if not (fresh or moved[q] > seen):
            continue
        k = slot[q]
        for side in range(2):
            if begin[i] == begin[k]:
                v, w = min(i, k) + 1 - side, max(i, k) - side
                if v < w and _stretch(pieces, line, v, w):
                    best = _two_opt(pieces, line, limits, v, w, best, move)
                continue
            for h in range(k - 1, k + 1):
                best = _two_opt_star(pieces, line, limits, i - side, h, best, move)
    front = 0
    while front < count - 1:
        back = end[front] - 1
        if fresh or (item[back] >= 0 and moved[item[back]] > seen):
            for side in range(2):
                h = front if side == 0 else back
                best = _two_opt_star(pieces, line, limits, i, h, best, move)
        front = back + 1
    return best if move[0] != STAY else 0.0


@inlined
def _part(parts, at, start, stop, turned):
    parts[at, 0], parts[at, 1], parts[at, 2] = start, stop, turned


@kernel
def make_move(pieces, line, limits, move):
    """Lay the line out anew: what a move leaves of it, in five parts, some of them turned round."""
    kind, i, j, k, l, turned = move[0], move[1], move[2], move[3], move[4], move[5]
    n = line.counts[0]
    line.counts[1] += 1
    for x in (i, k if kind == RELOCATE or kind == SWAP else j):
        for y in range(line.begin[x] + 1, line.end[x]):
            line.moved[line.item[y]] = line.counts[1]
    parts = np.zeros((5, 3), np.int64)  # first slot, one past the last, whether turned
    if kind == RELOCATE and k < i:
        _part(parts, 0, 0, k + 1, 0)
        _part(parts, 1, i, j + 1, turned)
        _part(parts, 2, k + 1, i, 0)
        _part(parts, 3, j + 1, n, 0)
    elif kind == RELOCATE:
        _part(parts, 0, 0, i, 0)
        _part(parts, 1, j + 1, k + 1, 0)
        _part(parts, 2, i, j + 1, turned)
        _part(parts, 3, k + 1, n, 0)
    elif kind == SWAP:
        _part(parts, 0, 0, i, 0)
        _part(parts, 1, k, l + 1, turned // 2)
        _part(parts, 2, j + 1, k, 0)
        _part(parts, 3, i, j + 1, turned % 2)
        _part(parts, 4, l + 1, n, 0)
    elif kind == TWO_OPT:
        _part(parts, 0, 0, i, 0)
        _part(parts, 1, i, j + 1, 1)
        _part(parts, 2, j + 1, n, 0)
    elif kind == TWO_OPT_STAR:
        _part(parts, 0, 0, i + 1, 0)
        _part(parts, 1, j + 1, line.end[j], 0)
        _part(parts, 2, line.end[i], j + 1, 0)
        _part(parts, 3, i + 1, line.end[i], 0)
        _part(parts, 4, line.end[j], n, 0)
    elif kind == TWO_OPT_STAR_REVERSED:
        _part(parts, 0, 0, i + 1, 0)
        _part(parts, 1, line.begin[j] + 1, j + 1, 1)
        _part(parts, 2, line.end[i], line.begin[j] + 1, 0)
        _part(parts, 3, i + 1, line.end[i], 1)
        _part(parts, 4, j + 1, n, 0)
    item = np.empty(n, np.int32)
    flip = np.empty(n, np.bool_)
    w = 0
    for part in range(5):
        start, stop, back = parts[part, 0], parts[part, 1], parts[part, 2] == 1
        for x in range(stop - start):
            y = stop - 1 - x if back else start + x
            item[w] = line.item[y]
            flip[w] = line.flip[y] != back
            w += 1
    line.item[:n] = item
    line.flip[:n] = flip
    _sum_up(pieces, line, limits.routes)


@kernel
def improve_routes(pieces, line, limits):
    """Make improving moves until no piece has one; returns the change of cost."""
    count = len(pieces.head)
    move = np.zeros(6, np.int64)
    total = 0.0
    idle = 0
    p = 0
    while idle < count:
        change = best_move(pieces, line, limits, p, move)
        if move[0] == STAY:
            idle += 1
            p = p + 1 if p + 1 < count else 0
        else:
            idle = 0
            total += change
            make_move(pieces, line, limits, move)
    return total

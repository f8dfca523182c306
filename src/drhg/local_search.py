"""Local search on a tour: k-opt moves along neighbour lists, and kicks that must pay or are undone.

The same kernels serve a whole instance, a stretch of a huge tour and a reduced graph: a hyper-edge
is just a fixed edge, which no move removes. A k-opt move is itself a small destroy and repair: cut
k edges, and the k segments between them are laid out again in another order.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from drhg.compiled import Space, distance, inner, kernel, random_below, sort_first
from drhg.hypergraph import Index, Nearness, is_fixed
from drhg.problem import Floats, Instance

DEPTH = 3  # edges exchanged by the largest move; at most 5
BREADTH = np.array([0, 8, 5, 3, 2, 1], dtype=np.int64)  # candidates tried for each added edge
REACH = 30  # longest segment that a kick moves
WIDE = 3  # times as many neighbours are looked at for some in every quadrant
BLOCK = 20_000  # nodes looked at together
TINY = 1e-9  # gains below this are rounding


def neighbour_lists(instance: Instance, nearness: Nearness, k: int = 10) -> Index:
    """The k nearest nodes of every node, nearest first, without itself (n, min(k, n - 1))."""
    n = instance.n
    k = min(k, len(nearness.nodes) - 1)
    if k < 1:
        return np.zeros((n, 0), dtype=np.int32)
    found = nearness.around(np.arange(n), k + 1)
    own = found == np.arange(n, dtype=np.int32)[:, None]
    own[:, -1] |= ~own.any(axis=1)  # among many equal points a node may not find itself
    return np.ascontiguousarray(found[~own].reshape(n, k))


def candidate_lists(instance: Instance, nearness: Nearness, k: int = 10) -> Index:
    """Neighbours that a tour may want: some nearest, some in each quadrant, those of Delaunay.

    Where nodes stand in clusters or rows, all the nearest lie in the same one, and no edge would
    ever lead out of it: half the places go to the nearest of four quadrants and the nearest at all,
    the others to neighbours in the Delaunay triangulation, which leaves no cluster alone, and what
    is left to the nearest again. Nearest first; (n, min(k, n - 1)).
    """
    near = neighbour_lists(instance, nearness, WIDE * k)
    if not instance.metric.planar or near.shape[1] <= k:
        return np.ascontiguousarray(near[:, :k])
    assert instance.xy is not None
    beside = delaunay_lists(instance, k)
    chosen = np.empty((len(near), k), dtype=np.int32)
    for begin in range(0, len(near), BLOCK):
        rows = near[begin : begin + BLOCK]
        own = np.arange(begin, begin + len(rows))[:, None]
        around = _quadrants_first(instance.xy[rows] - instance.xy[own], rows)[:, : -(-k // 2)]
        wanted = np.concatenate((around, beside[begin : begin + BLOCK], rows[:, :k]), axis=1)
        picked = wanted[_first_distinct(wanted, k)].reshape(len(rows), k)
        order = np.argsort(instance.distance(own, picked), axis=1, kind="stable")
        chosen[begin : begin + BLOCK] = np.take_along_axis(picked, order, axis=1)
    return chosen


def _quadrants_first(offsets: Floats, rows: Index) -> Index:
    """Rows of nodes, nearest first, with the first of every quadrant put before the others."""
    where = 2 * (offsets[..., 0] > 0) + (offsets[..., 1] > 0)
    rank = np.arange(rows.shape[1]) + np.full(rows.shape, rows.shape[1])
    for quadrant in range(4):
        inside = where == quadrant
        first = np.argmax(inside, axis=1)[inside.any(axis=1)]
        rank[np.flatnonzero(inside.any(axis=1)), first] -= rows.shape[1]
    return np.take_along_axis(rows, np.argsort(rank, axis=1), axis=1)


def _first_distinct(rows: Index, k: int) -> npt.NDArray[np.bool_]:
    """Mark the first k different nodes of every row, which has so many; -1 is none."""
    order = np.argsort(rows, axis=1, kind="stable")
    ranked = np.take_along_axis(rows, order, axis=1)
    fresh = ranked >= 0
    fresh[:, 1:] &= ranked[:, 1:] != ranked[:, :-1]
    mask = np.empty_like(fresh)
    np.put_along_axis(mask, order, fresh, axis=1)
    return mask & (np.cumsum(mask, axis=1) <= k)


def delaunay_lists(instance: Instance, k: int) -> Index:
    """The neighbours in the Delaunay triangulation, nearest first, at most k; -1 fills up (n, k).

    Of several nodes at one point a single one has any; of points on one line none has.
    """
    from scipy.spatial import Delaunay, QhullError

    lists = np.full((instance.n, k), -1, dtype=np.int32)
    assert instance.xy is not None
    try:
        starts, others = Delaunay(instance.xy).vertex_neighbor_vertices
    except QhullError:
        return lists
    own = np.repeat(np.arange(instance.n), np.diff(starts))
    order = np.lexsort((others, instance.distance(own, others), own))
    rank = np.arange(len(own)) - starts[own]
    lists[own[rank < k], rank[rank < k]] = others[order][rank < k]
    return lists


@inner
def _walk(mate, k, visit):
    """Follow the segments between k cuts through the added edges; how many come before the start.

    Slot 2 i is the near side of the i-th cut, 2 i + 1 its far side. `visit` gets the slots entered:
    an odd one runs its segment forward, an even one backward.
    """
    slot = 1
    count = 0
    while True:
        visit[count] = slot
        count += 1
        if slot & 1:
            leave = slot + 1 if slot + 1 < 2 * k else 0
        else:
            leave = slot - 1 if slot > 0 else 2 * k - 1
        slot = mate[leave]
        if slot == 1 or count == k:
            return count if slot == 1 else k + 1


@inner
def _segment(cuts, k, slot, n):
    """First position, length and step of the segment entered at a slot."""
    i = slot >> 1
    if slot & 1:
        a = cuts[i] + 1
        z = cuts[i + 1 if i + 1 < k else 0]
    else:
        a = cuts[i - 1 if i > 0 else k - 1] + 1
        z = cuts[i]
    size = z - a + 1
    if size <= 0:
        size += n
    if slot & 1:
        return (a if a < n else 0), size, 1
    return z, size, -1


@inner
def _lay_out(tour, pos, cuts, k, visit, buffer, journal, used):
    """Carry the move out: all segments but the longest are written anew, the old order journalled.

    Returns the new length of the journal, or -1 if it is full (then nothing has been done).
    """
    n = len(tour)
    longest = 0
    best = -1
    for i in range(k):
        _, size, _ = _segment(cuts, k, visit[i], n)
        if size > best:
            best, longest = size, i
    a, size, step = _segment(cuts, k, visit[longest], n)
    start = a + size if step > 0 else a + 1  # the kept segment runs forward, the rest follows it
    if start >= n:
        start -= n
    moved = n - size
    if used >= 0:
        if used + moved + 2 > len(journal):
            return -1
        p = start
        for j in range(moved):
            journal[used + j] = tour[p]
            p = p + 1 if p + 1 < n else 0
        journal[used + moved] = start
        journal[used + moved + 1] = moved
        used += moved + 2
    w = 0
    for i in range(1, k):
        if step > 0:
            p, size, way = _segment(cuts, k, visit[(longest + i) % k], n)
        else:  # the longest one is entered backward: read the whole walk from its other side
            p, size, way = _segment(cuts, k, visit[(longest - i + k) % k], n)
            p = p + way * (size - 1)
            if p < 0:
                p += n
            elif p >= n:
                p -= n
            way = -way
        for _ in range(size):
            buffer[w] = tour[p]
            w += 1
            p += way
            if p == n:
                p = 0
            elif p < 0:
                p = n - 1
    p = start
    for j in range(w):
        node = buffer[j]
        tour[p] = node
        pos[node] = p
        p = p + 1 if p + 1 < n else 0
    return max(used, 0)


@inner
def _undo(tour, pos, journal, used):
    """Take back every journalled move, the latest first."""
    n = len(tour)
    while used > 0:
        moved = journal[used - 1]
        p = journal[used - 2]
        used -= moved + 2
        for j in range(moved):
            node = journal[used + j]
            tour[p] = node
            pos[node] = p
            p = p + 1 if p + 1 < n else 0


@inner
def _feasible(pos, n, t, k, cuts, mate, visit, slot, rank):
    """Whether removing (t0 t1), (t2 t3) .. and adding (t1 t2) .. (t2k-1 t0) leaves one tour."""
    for i in range(k):
        a, b = pos[t[2 * i]], pos[t[2 * i + 1]]
        ahead = a + 1 == b or (a == n - 1 and b == 0)  # t[2 i] is on the near side of its cut
        if n == 2:
            ahead = i == 0
        p = a if ahead else b
        j = i
        while j > 0 and cuts[j - 1] > p:
            cuts[j] = cuts[j - 1]
            rank[j] = rank[j - 1]
            j -= 1
        cuts[j] = p
        rank[j] = 2 * i + (0 if ahead else 1)
    for j in range(k):
        i = rank[j] >> 1
        if rank[j] & 1:
            slot[2 * i], slot[2 * i + 1] = 2 * j + 1, 2 * j
        else:
            slot[2 * i], slot[2 * i + 1] = 2 * j, 2 * j + 1
    for i in range(k):
        a = slot[2 * i + 1]
        b = slot[2 * i + 2] if i + 1 < k else slot[0]
        mate[a] = b
        mate[b] = a
    return _walk(mate, k, visit) == k


@inner
def _improve_node(
    space,
    fixed,
    neighbours,
    breadth,
    depth,
    tour,
    pos,
    t1,
    t,
    cuts,
    mate,
    visit,
    slot,
    rank,
    tried,
    open_gain,
    after_add,
):
    """Look for an improving move of up to `depth` edges that removes an edge at t1.

    Returns (gain, k); t, cuts and visit describe the move. Depth first, along chains whose partial
    gain stays positive (Lin and Kernighan's rule).
    """
    n = len(tour)
    width = neighbours.shape[1]
    for side in range(2):
        p = pos[t1]
        if side == 0:
            t2 = tour[p + 1 if p + 1 < n else 0]
        else:
            t2 = tour[p - 1 if p > 0 else n - 1]
        if is_fixed(fixed, t1, t2):
            continue
        t[0] = t1
        t[1] = t2
        level = 1
        open_gain[1] = distance(space, t1, t2)
        tried[1] = 0
        while level > 0:
            # candidate number tried // 2, its edge to the successor or predecessor by parity
            c = tried[level] >> 1
            which = tried[level] & 1
            tried[level] += 1
            if c >= breadth[level] or c >= width:
                level -= 1
                continue
            end = t[2 * level - 1]
            t3 = neighbours[end, c]
            if t3 < 0:  # a list that ends early
                level -= 1
                continue
            if which == 0:
                after_add[level] = open_gain[level] - distance(space, end, t3)
                if after_add[level] <= TINY:
                    level -= 1
                    continue
            p = pos[t3]
            ahead = tour[p + 1 if p + 1 < n else 0]
            behind = tour[p - 1 if p > 0 else n - 1]
            if end == ahead or end == behind:
                tried[level] = (c + 1) << 1
                continue
            t4 = ahead if which == 0 else behind
            if t4 == t1 or is_fixed(fixed, t3, t4):
                continue
            used = False
            for i in range(level):
                a, b = t[2 * i], t[2 * i + 1]
                if (a == t3 and b == t4) or (a == t4 and b == t3):
                    used = True
                    break
            if used:
                continue
            t[2 * level] = t3
            t[2 * level + 1] = t4
            gain = after_add[level] + distance(space, t3, t4)
            closed = gain - distance(space, t4, t1)
            if closed > TINY and _feasible(pos, n, t, level + 1, cuts, mate, visit, slot, rank):
                return closed, level + 1
            if level + 1 < depth:
                level += 1
                open_gain[level] = gain
                tried[level] = 0
    return 0.0, 0


@inner
def _settle(
    space,
    fixed,
    neighbours,
    breadth,
    depth,
    tour,
    pos,
    queue,
    queued,
    head,
    count,
    buffer,
    journal,
    used,
):
    """Improve around every queued node until none is left; returns (total gain, journal length)."""
    n = len(tour)
    t = np.empty(12, np.int64)
    cuts = np.empty(6, np.int64)
    mate = np.empty(12, np.int64)
    visit = np.empty(6, np.int64)
    slot = np.empty(12, np.int64)
    rank = np.empty(6, np.int64)
    tried = np.empty(6, np.int64)
    open_gain = np.empty(6, np.float64)
    after_add = np.empty(6, np.float64)
    total = 0.0
    while count > 0:
        node = queue[head]
        gain, k = _improve_node(
            space, fixed, neighbours, breadth, depth, tour, pos, node,
            t, cuts, mate, visit, slot, rank, tried, open_gain, after_add,
        )  # fmt: skip
        if k > 0:
            now = _lay_out(tour, pos, cuts, k, visit, buffer, journal, used)
            if now < 0:  # no room to remember more: leave it at that
                k = 0
            else:
                total += gain
                used = now if used >= 0 else used
                for i in range(2 * k):
                    if not queued[t[i]]:
                        queued[t[i]] = True
                        tail = head + count
                        queue[tail if tail < n else tail - n] = t[i]
                        count += 1
        if k == 0:
            queued[node] = False
            head = head + 1 if head + 1 < n else 0
            count -= 1
    return total, used


@kernel
def descend(space, fixed, neighbours, breadth, depth, tour, pos):
    """Improve the whole tour to a local optimum, in place; returns the gain."""
    n = len(tour)
    if n < 4:
        return 0.0
    queue = np.empty(n, np.int32)
    queued = np.empty(n, np.bool_)
    for i in range(n):
        queue[i] = tour[i]
        queued[i] = True
    buffer = np.empty(n, np.int32)
    journal = np.empty(0, np.int32)
    gain, _ = _settle(
        space, fixed, neighbours, breadth, depth, tour, pos,
        queue, queued, 0, n, buffer, journal, -1,
    )  # fmt: skip
    return gain


@kernel
def kick_and_settle(space, fixed, neighbours, breadth, depth, tour, pos, state, kicks, reach):
    """`kicks` times: a double bridge of three short segments, settle, undo if that did not pay.

    In place; returns the total gain. Only nodes near the kick are looked at, so its cost does not
    depend on the size of the tour except for the layout of moves.
    """
    n = len(tour)
    if n < 5:
        return 0.0
    reach = max(1, min(reach, (n - 1) // 3))
    queue = np.empty(n, np.int32)
    queued = np.empty(n, np.bool_)
    for i in range(n):
        queued[i] = False
    buffer = np.empty(n, np.int32)
    journal = np.empty(24 * n + 4096, np.int32)
    cuts = np.empty(4, np.int64)
    visit = np.empty(4, np.int64)  # segments 0 1 2 3 become 0 3 2 1: the double bridge
    visit[0], visit[1], visit[2], visit[3] = 1, 7, 5, 3
    total = 0.0
    for _ in range(kicks):
        # Cuts a few dozen positions apart: the new edges are long, so the search that follows has
        # much to win back and looks far; measured better than cuts that lie close in the plane.
        p = random_below(state, n)
        allowed = True
        for i in range(4):
            cuts[i] = p if p < n else p - n
            p += 1 + random_below(state, reach)
            far = tour[cuts[i] + 1 if cuts[i] + 1 < n else 0]
            allowed = allowed and not is_fixed(fixed, tour[cuts[i]], far)
        if not allowed:
            continue
        sort_first(cuts, 4)
        change = 0.0
        count = 0
        for i in range(4):
            near, far = tour[cuts[i]], tour[cuts[i] + 1 if cuts[i] + 1 < n else 0]
            # segment i + 1 starts at `far`; in the new order it follows the end of segment i + 2
            other = tour[cuts[(i + 2) % 4]]
            change += distance(space, other, far)
            change -= distance(space, near, far)
            for j in range(2):
                node = near if j == 0 else far
                if not queued[node]:
                    queued[node] = True
                    queue[count] = node
                    count += 1
        used = _lay_out(tour, pos, cuts, 4, visit, buffer, journal, 0)
        gain, used = _settle(
            space, fixed, neighbours, breadth, depth, tour, pos,
            queue, queued, 0, count, buffer, journal, used,
        )  # fmt: skip
        if gain - change < -1e-12:
            _undo(tour, pos, journal, used)
        else:
            total += gain - change
    return total


@kernel
def improve_region(
    space,
    fixed,
    neighbours,
    breadth,
    depth,
    tour,
    pos,
    start,
    size,
    members,
    local,
    state,
    kicks,
    reach,
):
    """Work on some nodes of a stretch of the tour as a small problem of their own, in place.

    The stretch is `size` positions from `start`; those `members` that lie in it are kept, in the
    order of the tour, and every path between two of them that runs outside is a hyper-edge. So a
    kick costs the same in a tour of a million nodes, and stretches that do not overlap can be
    worked on at the same time. `local` is scratch of one int32 per node. Returns the gain.
    """
    n = len(tour)
    at = np.empty(len(members), np.int64)  # where in the stretch
    m = 0
    for i in range(len(members)):
        j = pos[members[i]] - start
        if j < 0:
            j += n
        if j < size:
            at[m] = j
            m += 1
    at = at[:m]
    sort_first(at, m)
    if m < 5:
        return 0.0
    nodes = np.empty(m, np.int32)
    xy = np.empty((m, 2), np.float64)
    near = np.empty((m, neighbours.shape[1]), np.int32)
    held = np.empty((m, 2), np.int32)
    order = np.empty(m, np.int32)
    where = np.empty(m, np.int32)
    for i in range(m):
        order[i] = where[i] = i
        held[i, 0] = held[i, 1] = -1
        p = start + at[i]
        nodes[i] = tour[p if p < n else p - n]
        local[nodes[i]] = i + 1  # 0 stands for a node that does not take part
        xy[i, 0], xy[i, 1] = space.points[nodes[i], 0], space.points[nodes[i], 1]
    for i in range(m):
        w = 0
        for c in range(neighbours.shape[1]):
            j = local[neighbours[nodes[i], c]] - 1 if neighbours[nodes[i], c] >= 0 else -1
            if j >= 0:
                near[i, w] = j
                w += 1
        for c in range(w, neighbours.shape[1]):
            near[i, c] = -1
        j = i + 1 if i + 1 < m else 0
        joined = at[j] == at[i] + 1
        if not joined or is_fixed(fixed, nodes[i], nodes[j]):
            held[i, 0 if held[i, 0] < 0 else 1] = j
            held[j, 0 if held[j, 0] < 0 else 1] = i
    ground = Space(space.metric, xy, space.matrix)
    gain = descend(ground, held, near, breadth, depth, order, where)
    gain += kick_and_settle(ground, held, near, breadth, depth, order, where, state, kicks, reach)
    for i in range(m):
        local[nodes[i]] = 0
    if gain > 0.0:
        _write_back(tour, pos, start, at, order, where)
    return gain


@inner
def _write_back(tour, pos, start, at, order, where):
    """Lay a stretch out again after its members at positions `at` have got a new order.

    The path from the last member round the rest of the tour to the first stays where it is.
    """
    n = len(tour)
    m = len(order)
    span = at[m - 1] - at[0] + 1
    old = np.empty(span, np.int32)
    begin = start + at[0]
    for i in range(span):
        p = begin + i
        old[i] = tour[p if p < n else p - n]
    step = 1 if order[where[0] - 1] == m - 1 else -1  # the last member must come last
    p = begin if begin < n else begin - n
    here = where[0]
    for i in range(m):
        a = order[here]
        here += step
        if here == m:
            here = 0
        elif here < 0:
            here = m - 1
        z = order[here]
        # the member itself, and if a path outside leads from it to the next one, that path
        first = at[a] - at[0]
        count = 1
        way = 1
        if i + 1 < m:
            if z == a + 1 and at[z] > at[a] + 1:
                count = at[z] - at[a]
            elif z == a - 1 and at[a] > at[z] + 1:
                count = at[a] - at[z]
                way = -1
        for j in range(count):
            node = old[first + way * j]
            tour[p] = node
            pos[node] = p
            p = p + 1 if p + 1 < n else 0

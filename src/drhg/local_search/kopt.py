"""Local search on a tour: k-opt moves along candidate lists, and kicks that must pay or are undone.

The same kernels serve a whole instance, a stretch of a large tour and a reduced graph: a hyper-edge
is just a fixed edge, which no move removes. A k-opt move is itself a small destroy and repair: cut
k edges, and put the k segments between them together in another order.

The field's notation is kept: a move removes the edges (t1, t2), (t3, t4), ... and adds (t2, t3),
(t4, t5), ... and at last the edge back to t1 (Lin and Kernighan, 1973; Helsgaun, 2000).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from drhg.hypergraph.cut import is_fixed
from drhg.hypergraph.plan import Index, Rules
from drhg.kernels.arrays import sort_first
from drhg.kernels.jit import inlined, inner, kernel
from drhg.kernels.random import random_below
from drhg.kernels.space import Space, distance
from drhg.local_search.params import MoveParams
from drhg.problem import Floats, Ints
from drhg.problem.tolerances import GAIN, TIE


class MoveContext(NamedTuple):
    """What moves need to know about a problem; constant during a search."""

    space: Space
    fixed: Index  # (n, 2) nodes joined to each node by a fixed edge, -1 for none
    near: Index  # (n, candidates) nearest first; a list may end early with -1
    breadth: Ints  # (k,) candidates tried for the i-th added edge of a k-opt move; [0] is unused


class Workspace(NamedTuple):
    """Arrays that a local search writes to; between two calls only `queued` matters, all False.

    Those of a larger tour will do for a smaller one.
    """

    queue: Index  # (n,) ring buffer of nodes around which moves are sought
    queued: npt.NDArray[np.bool_]  # (n,) whether a node is in it
    buffer: Index  # (n,) segments while they are rearranged
    undo: Index  # the former order of what moves changed, see `_rearrange`
    nodes: Ints  # (2k,) t1, t2, ... of a move
    cuts: Ints  # (k,) positions p of removed edges (p, p + 1), sorted
    slots: Ints  # (2k,) which end of which cut each t is, see `_walk`
    mates: Ints  # (2k,) the slot that an added edge leads to
    visits: Ints  # (k,) slots at which the segments are entered in the new order
    ranks: Ints  # (k,) for sorting the cuts
    tried: Ints  # (k,) on each level of the depth-first search, the alternatives tried so far
    gains: npt.NDArray[np.float64]  # (2, k) partial gain after the last removed and added edge


def move_context(rules: Rules, near: Index, params: MoveParams) -> MoveContext:
    """The context of an instance."""
    return MoveContext(rules.space, rules.fixed, near, breadth_of(params))


def breadth_of(params: MoveParams) -> Ints:
    """The breadth of the depth-first search as kernels want it."""
    return np.array((0, *params.breadth), dtype=np.int64)


def workspace_of(n: int, breadth: Ints, kicks: bool = True) -> Workspace:
    """Room to improve a tour of n nodes; without kicks there is no undo log."""
    k = max(4, len(breadth))  # edges of a move, or of a double bridge
    return Workspace(
        queue=np.empty(n, np.int32),
        queued=np.zeros(n, np.bool_),
        buffer=np.empty(n, np.int32),
        undo=np.empty(24 * n + 4096 if kicks else 0, np.int32),
        nodes=np.empty(2 * k, np.int64),
        cuts=np.empty(k, np.int64),
        slots=np.empty(2 * k, np.int64),
        mates=np.empty(2 * k, np.int64),
        visits=np.empty(k, np.int64),
        ranks=np.empty(k, np.int64),
        tried=np.empty(k, np.int64),
        gains=np.empty((2, k), np.float64),
    )


@inlined
def _walk(mates, k, visits):
    """Follow the segments between k cuts through the added edges; how many come before the start.

    Slot 2 i is the near side of the i-th cut, 2 i + 1 its far side. `visits` gets the slots that
    are entered: from an odd one a segment runs forward, from an even one backward.
    """
    slot = 1
    count = 0
    while True:
        visits[count] = slot
        count += 1
        if slot & 1:
            leave = slot + 1 if slot + 1 < 2 * k else 0
        else:
            leave = slot - 1 if slot > 0 else 2 * k - 1
        slot = mates[leave]
        if slot == 1 or count == k:
            return count if slot == 1 else k + 1


@inner
def _segment(cuts, k, slot, n):
    """First position, length and step of the segment that is entered at a slot."""
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
def _rearrange(order, pos, k, work, used):
    """Carry out the move given by `cuts` and `visits`: rewrite all segments but the longest.

    The old order of what is rewritten is appended to the undo log, whose length is `used`, followed
    by its first position and its length. Returns the new length of the log, or -1 if the log is
    full (then nothing has been done). If `used` is negative, no log is kept.
    """
    cuts, visits, buffer, undo = work.cuts, work.visits, work.buffer, work.undo
    n = len(order)
    longest = 0
    best = -1
    for i in range(k):
        _, size, _ = _segment(cuts, k, visits[i], n)
        if size > best:
            best, longest = size, i
    a, size, step = _segment(cuts, k, visits[longest], n)
    start = a + size if step > 0 else a + 1  # the longest stays and runs forward, others follow
    if start >= n:
        start -= n
    moved = n - size
    if used >= 0:
        if used + moved + 2 > len(undo):
            return -1
        p = start
        for j in range(moved):
            undo[used + j] = order[p]
            p = p + 1 if p + 1 < n else 0
        undo[used + moved] = start
        undo[used + moved + 1] = moved
        used += moved + 2
    w = 0
    for i in range(1, k):
        if step > 0:
            p, size, way = _segment(cuts, k, visits[(longest + i) % k], n)
        else:  # the longest is entered backward: read the new order from its end
            p, size, way = _segment(cuts, k, visits[(longest - i + k) % k], n)
            p = p + way * (size - 1)
            if p < 0:
                p += n
            elif p >= n:
                p -= n
            way = -way
        for _ in range(size):
            buffer[w] = order[p]
            w += 1
            p += way
            if p == n:
                p = 0
            elif p < 0:
                p = n - 1
    p = start
    for j in range(w):
        node = buffer[j]
        order[p] = node
        pos[node] = p
        p = p + 1 if p + 1 < n else 0
    return used if used > 0 else 0


@inner
def _undo_all(order, pos, undo, used):
    """Take back every move in the log, the last one first."""
    n = len(order)
    while used > 0:
        moved = undo[used - 1]
        p = undo[used - 2]
        used -= moved + 2
        for j in range(moved):
            node = undo[used + j]
            order[p] = node
            pos[node] = p
            p = p + 1 if p + 1 < n else 0


@inlined
def _is_tour(pos, k, work):
    """Whether removing (t1 t2), (t3 t4), ... and adding (t2 t3), ..., (t2k t1) leaves one tour.

    If so, `cuts` and `visits` describe the move for `_rearrange`.
    """
    nodes, cuts, slots, ranks = work.nodes, work.cuts, work.slots, work.ranks
    n = len(pos)
    for i in range(k):
        a, b = pos[nodes[2 * i]], pos[nodes[2 * i + 1]]
        ahead = a + 1 == b or (a == n - 1 and b == 0)  # the first node is on the cut's near side
        p = a if ahead else b
        j = i
        while j > 0 and cuts[j - 1] > p:
            cuts[j] = cuts[j - 1]
            ranks[j] = ranks[j - 1]
            j -= 1
        cuts[j] = p
        ranks[j] = 2 * i + (0 if ahead else 1)
    for j in range(k):
        i = ranks[j] >> 1
        if ranks[j] & 1:
            slots[2 * i], slots[2 * i + 1] = 2 * j + 1, 2 * j
        else:
            slots[2 * i], slots[2 * i + 1] = 2 * j, 2 * j + 1
    for i in range(k):
        a = slots[2 * i + 1]
        b = slots[2 * i + 2] if i + 1 < k else slots[0]
        work.mates[a] = b
        work.mates[b] = a
    return _walk(work.mates, k, work.visits) == k


@inlined
def _improving_move(context, order, pos, t1, work):
    """Look for an improving move that removes an edge at t1; returns (gain, edges removed).

    A depth-first search over sequences of edges whose partial gain stays positive (Lin and
    Kernighan's rule). `nodes`, `cuts` and `visits` describe the move.
    """
    space, fixed, near, breadth = context
    nodes, tried, gains = work.nodes, work.tried, work.gains
    n = len(order)
    width = near.shape[1]
    for side in range(2):
        p = pos[t1]
        if side == 0:
            t2 = order[p + 1 if p + 1 < n else 0]
        else:
            t2 = order[p - 1 if p > 0 else n - 1]
        if is_fixed(fixed, t1, t2):
            continue
        nodes[0] = t1
        nodes[1] = t2
        level = 1
        gains[0, 1] = distance(space, t1, t2)
        tried[1] = 0
        while level > 0:
            # each candidate has two alternatives: its edge to the successor, or the predecessor
            c = tried[level] >> 1
            which = tried[level] & 1
            tried[level] += 1
            if c >= breadth[level] or c >= width:
                level -= 1
                continue
            end = nodes[2 * level - 1]
            t3 = near[end, c]
            if t3 < 0:  # a list that ends early
                level -= 1
                continue
            if which == 0:
                gains[1, level] = gains[0, level] - distance(space, end, t3)
                if gains[1, level] <= GAIN:
                    level -= 1
                    continue
            p = pos[t3]
            ahead = order[p + 1 if p + 1 < n else 0]
            behind = order[p - 1 if p > 0 else n - 1]
            if end == ahead or end == behind:
                tried[level] = (c + 1) << 1
                continue
            t4 = ahead if which == 0 else behind
            if t4 == t1 or is_fixed(fixed, t3, t4):
                continue
            removed = False
            for i in range(level):
                a, b = nodes[2 * i], nodes[2 * i + 1]
                if (a == t3 and b == t4) or (a == t4 and b == t3):
                    removed = True
                    break
            if removed:
                continue
            nodes[2 * level] = t3
            nodes[2 * level + 1] = t4
            gain = gains[1, level] + distance(space, t3, t4)
            closed = gain - distance(space, t4, t1)
            if closed > GAIN and _is_tour(pos, level + 1, work):
                return closed, level + 1
            if level + 1 < len(breadth):
                level += 1
                gains[0, level] = gain
                tried[level] = 0
    return 0.0, 0


@kernel
def improve_queued(context, order, pos, work, count, used):
    """Local search around the first `count` nodes of the queue, and around what it changes.

    The undo log has the length `used`; if that is negative, none is kept. Returns (gain, length of
    the undo log).
    """
    queue, queued = work.queue, work.queued
    n = len(order)
    if n < 4:
        return 0.0, used
    head = 0
    total = 0.0
    while count > 0:
        node = queue[head]
        gain, k = _improving_move(context, order, pos, node, work)
        if k > 0:
            now = _rearrange(order, pos, k, work, used)
            if now < 0:  # the undo log is full: no further move here
                k = 0
            else:
                total += gain
                used = now if used >= 0 else used
                for i in range(2 * k):
                    t = work.nodes[i]
                    if not queued[t]:
                        queued[t] = True
                        tail = head + count
                        queue[tail if tail < n else tail - n] = t
                        count += 1
        if k == 0:
            queued[node] = False
            head = head + 1 if head + 1 < n else 0
            count -= 1
    return total, used


def descend(context: MoveContext, order: Index, pos: Index, work: Workspace | None = None) -> float:
    """Improve the whole tour to a local optimum, in place; returns the gain."""
    n = len(order)
    work = work or workspace_of(n, context.breadth, kicks=False)
    work.queue[:n] = order
    work.queued[:n] = n >= 4
    gain, _ = improve_queued(context, order, pos, work, n, -1)
    return float(gain)


@kernel
def kick_and_improve(context, order, pos, work, state, kicks, longest):
    """`kicks` times: a double bridge, local search around it, undo both if they did not pay.

    The three segments that a double bridge moves have at most `longest` nodes each. In place;
    returns the total gain. Only nodes near the kick are looked at, so apart from rearranging
    segments the time of a kick does not depend on the size of the tour.
    """
    space, fixed = context.space, context.fixed
    n = len(order)
    if n < 5:
        return 0.0
    if longest > (n - 1) // 3:
        longest = (n - 1) // 3
    cuts, visits, queue, queued = work.cuts, work.visits, work.queue, work.queued
    total = 0.0
    for _ in range(kicks):
        # Cuts are a few dozen positions apart, so the new edges are long and the local search has
        # much to win back and looks far; that measured better than cuts close to each other.
        p = random_below(state, n)
        allowed = True
        for i in range(4):
            cuts[i] = p if p < n else p - n
            p += 1 + random_below(state, longest)
            far = order[cuts[i] + 1 if cuts[i] + 1 < n else 0]
            allowed = allowed and not is_fixed(fixed, order[cuts[i]], far)
        if not allowed:
            continue
        sort_first(cuts, 4)
        change = 0.0
        count = 0
        for i in range(4):
            near, far = order[cuts[i]], order[cuts[i] + 1 if cuts[i] + 1 < n else 0]
            # segment i + 1 starts at `far`; in the new order it follows the end of segment i + 2
            other = order[cuts[(i + 2) % 4]]
            change += distance(space, other, far)
            change -= distance(space, near, far)
            for j in range(2):
                node = near if j == 0 else far
                if not queued[node]:
                    queued[node] = True
                    queue[count] = node
                    count += 1
        visits[0], visits[1], visits[2], visits[3] = 1, 7, 5, 3  # segments 0 1 2 3 -> 0 3 2 1
        used = _rearrange(order, pos, 4, work, 0)
        gain, used = improve_queued(context, order, pos, work, count, used)
        if gain - change < -TIE:  # not even a tie
            _undo_all(order, pos, work.undo, used)
        else:
            total += gain - change
    return total


class Region(NamedTuple):
    """Arrays for a part of a tour as a problem of its own, with room for `most` of its nodes."""

    at: Ints  # (most,) positions of the nodes in a stretch, sorted
    nodes: Index  # (most,) the nodes, numbered anew from 0 in tour order
    number: Index  # (n,) for every node of the tour its new number + 1, or 0; all 0 between calls
    old: Index  # (n,) the stretch before it is written anew
    points: Floats  # (most, 2), and so on: see MoveContext and Workspace
    fixed: Index
    near: Index
    order: Index
    pos: Index
    work: Workspace


def region_of(context: MoveContext, most: int) -> Region:
    """Room to work on so many nodes of a tour at a time."""
    n, width = context.near.shape
    return Region(
        at=np.empty(most, np.int64),
        nodes=np.empty(most, np.int32),
        number=np.zeros(n, np.int32),
        old=np.empty(n, np.int32),
        points=np.empty((most, 2), np.float64),
        fixed=np.empty((most, 2), np.int32),
        near=np.empty((most, width), np.int32),
        order=np.empty(most, np.int32),
        pos=np.empty(most, np.int32),
        work=workspace_of(most, context.breadth),
    )


@inner
def _positions_within(pos, start, size, members, at):
    """Which positions of a stretch, counted from its start, hold members; sorted. How many."""
    n = len(pos)
    m = 0
    for i in range(len(members)):
        j = pos[members[i]] - start
        if j < 0:
            j += n
        if j < size:
            at[m] = j
            m += 1
    sort_first(at, m)
    return m


@kernel
def fill_region(context, order, pos, start, size, members, region):
    """Make those `members` that lie in a stretch of the tour a problem of their own.

    The stretch is `size` positions from `start`. Each path between two of the members, in tour
    order, that is not a single free edge becomes a hyper-edge. Returns how many members there are.
    """
    m = _positions_within(pos, start, size, members, region.at)
    at, nodes, number, fixed = region.at, region.nodes, region.number, region.fixed
    width = context.near.shape[1]
    for i in range(m):
        fixed[i, 0] = fixed[i, 1] = -1
        p = start + at[i]
        nodes[i] = order[p if p < len(order) else p - len(order)]
        number[nodes[i]] = i + 1
        for axis in range(2):
            region.points[i, axis] = context.space.points[nodes[i], axis]
        region.order[i] = region.pos[i] = i
    for i in range(m):
        w = 0
        for c in range(width):
            candidate = context.near[nodes[i], c]
            if candidate >= 0 and number[candidate] > 0:
                region.near[i, w] = number[candidate] - 1
                w += 1
        for c in range(w, width):
            region.near[i, c] = -1
        j = i + 1 if i + 1 < m else 0
        if at[j] != at[i] + 1 or is_fixed(context.fixed, nodes[i], nodes[j]):
            fixed[i, 0 if fixed[i, 0] < 0 else 1] = j
            fixed[j, 0 if fixed[j, 0] < 0 else 1] = i
    for i in range(m):
        number[nodes[i]] = 0
    return m


@kernel
def write_back(order, pos, start, m, region):
    """Rewrite a stretch of the tour after the m nodes of its region have got another order.

    The path from the last node round the rest of the tour to the first stays where it is.
    """
    at, old, part_order, part_pos = region.at, region.old, region.order, region.pos
    n = len(order)
    span = at[m - 1] - at[0] + 1
    begin = start + at[0]
    for i in range(span):
        p = begin + i
        old[i] = order[p if p < n else p - n]
    behind = part_order[part_pos[0] - 1 if part_pos[0] > 0 else m - 1]
    step = 1 if behind == m - 1 else -1  # the last node must come last
    p = begin if begin < n else begin - n
    here = part_pos[0]
    for i in range(m):
        a = part_order[here]
        here += step
        if here == m:
            here = 0
        elif here < 0:
            here = m - 1
        z = part_order[here]
        # the node itself, and if a hyper-edge joins it to the next one, the path of that
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
            order[p] = node
            pos[node] = p
            p = p + 1 if p + 1 < n else 0


def improve_region(
    context: MoveContext,
    order: Index,
    pos: Index,
    start: int,
    size: int,
    members: Index,
    region: Region,
    state: npt.NDArray[np.uint64],
    kicks: int,
    longest: int,
) -> float:
    """Local search and kicks on some nodes of a stretch of the tour, in place; returns the gain.

    Every path between two of the nodes that runs elsewhere is a hyper-edge. So a kick takes the
    same time in a tour of a million nodes, and stretches that do not overlap can be worked on at
    the same time.
    """
    m = fill_region(context, order, pos, start, size, members, region)
    tour = (region.order[:m], region.pos[:m])
    gain = improve_part(part_of_region(context, region, m), *tour, region.work, state, kicks,
                        longest)  # fmt: skip
    if gain > 0.0:
        write_back(order, pos, start, m, region)
    return gain


def part_of_region(context: MoveContext, region: Region, m: int) -> MoveContext:
    """The m nodes of a filled region as a problem of their own."""
    space = Space(context.space.metric, region.points, context.space.matrix)
    return MoveContext(space, region.fixed, region.near, context.breadth)


def improve_part(
    part: MoveContext,
    order: Index,
    pos: Index,
    work: Workspace,
    state: npt.NDArray[np.uint64],
    kicks: int,
    longest: int,
) -> float:
    """Descend, then kick, in place; returns the gain."""
    if len(order) < 5:
        return 0.0
    gain = descend(part, order, pos, work)
    return gain + float(kick_and_improve(part, order, pos, work, state, kicks, longest))

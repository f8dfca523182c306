"""Local search on a tour: 3-opt moves along candidate lists, and kicks that must pay or are undone.

The same kernels serve a whole instance, a stretch of a large tour and a reduced graph: a hyper-edge
is just a fixed edge, which no move removes. A move is itself a small destroy and repair: cut two
or three edges, and put the segments between them together in another order.

The field's notation is kept: a move removes the edges (t1, t2), (t3, t4), (t5, t6) and adds
(t2, t3), (t4, t5) and at last the edge back to t1 (Lin and Kernighan, 1973; Helsgaun, 2000).

Every move is a few reversals of the shorter of a path and the rest of the tour. A log of them is
all that it takes to undo a kick.
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
    breadth: Ints  # (2,) candidates tried for the first and the second added edge of a move


class Workspace(NamedTuple):
    """Arrays that a local search writes to; between two calls only `queued` matters, all False.

    Those of a larger tour will do for a smaller one.
    """

    queue: Index  # (n,) ring buffer of nodes around which moves are sought
    queued: npt.NDArray[np.bool_]  # (n,) whether a node is in it
    log: Index  # (most, 2) first and last position of every reversal


def move_context(rules: Rules, near: Index, params: MoveParams) -> MoveContext:
    """The context of an instance."""
    return MoveContext(rules.space, rules.fixed, near, breadth_of(params))


def breadth_of(params: MoveParams) -> Ints:
    """The breadth of the search for a move as kernels want it; 0 in second place is 2-opt."""
    return np.array((*params.breadth, 0)[:2], dtype=np.int64)


def workspace_of(n: int) -> Workspace:
    """Room to improve a tour of n nodes."""
    return Workspace(np.empty(n, np.int32), np.zeros(n, np.bool_), np.empty((4096, 2), np.int32))


# --- reversals ------------------------------------------------------------------------------------


@inlined
def _beside(order, pos, node, forward):
    """The node after another one, or if not `forward` the one before it."""
    p = pos[node]
    if forward:
        return order[p + 1 if p + 1 < len(order) else 0]
    return order[p - 1 if p > 0 else len(order) - 1]


@inlined
def _reverse_positions(order, pos, i, j):
    """Reverse what is from position i to j, round the end of the array if j < i."""
    n = len(order)
    size = j - i + 1 if i <= j else j - i + 1 + n
    for _ in range(size >> 1):
        a, b = order[i], order[j]
        order[i], order[j] = b, a
        pos[b], pos[a] = i, j
        i = i + 1 if i + 1 < n else 0
        j = j - 1 if j > 0 else n - 1


@inner
def _reverse(order, pos, first, last, forward, log, used):
    """Reverse the path from one node to another, or the rest of the tour if that is shorter.

    The path runs forward or backward. Returns the direction in which the same way round is then:
    the other one if it was the rest that was reversed.
    """
    n = len(order)
    i, j = (pos[first], pos[last]) if forward else (pos[last], pos[first])
    size = j - i + 1 if i <= j else j - i + 1 + n
    rest = 2 * size > n
    if rest:
        i, j = (j + 1 if j + 1 < n else 0), (i - 1 if i > 0 else n - 1)
    _reverse_positions(order, pos, i, j)
    log[used, 0], log[used, 1] = i, j
    return forward != rest


@inner
def _undo(order, pos, log, used):
    """Take back every reversal in the log, the last one first."""
    for i in range(used - 1, -1, -1):
        _reverse_positions(order, pos, log[i, 0], log[i, 1])


@inner
def _exchange(order, pos, a, b, c, d, forward, log, used):
    """Exchange the path a ... b and the path c ... d that follows it."""
    forward = _reverse(order, pos, a, d, forward, log, used)
    forward = _reverse(order, pos, d, c, forward, log, used + 1)
    _reverse(order, pos, b, a, forward, log, used + 2)


# --- moves ----------------------------------------------------------------------------------------

NONE, TWO, THREE, EXCHANGE, BOTH_TURNED = range(5)
"""Kinds of moves, by what becomes of the path t2 ... t1 in the direction from t1 to t2:

TWO: t4 is before t3, and t2 ... t4 is reversed. THREE: after that, the same with t4, t5, t6 in
place of t2, t3, t4. In the others t4 is behind t3, and t5 is on the path t2 ... t3, which they cut
between t5 and t6. EXCHANGE: t6 is behind t5, and t2 ... t5 and t6 ... t3 change places.
BOTH_TURNED: t6 is before t5, and t2 ... t6 and t5 ... t3 are reversed.
"""


@inlined
def _best_move(space, fixed, near, breadth, order, pos, t1, t2, forward):
    """The best move that removes (t1, t2), where t2 is behind t1 in the direction `forward`.

    Partial gains stay positive (Lin and Kernighan's rule). Returns (gain, kind, t3, t5).
    """
    n = len(order)
    best = GAIN
    kind, best3, best5 = NONE, -1, -1
    removed = distance(space, t1, t2)
    p2 = pos[t2]
    for c in range(min(breadth[0], near.shape[1])):
        t3 = near[t2, c]
        if t3 < 0:  # a list that ends early
            break
        g1 = removed - distance(space, t2, t3)
        if g1 <= GAIN:
            break
        if t3 == t1:
            continue
        span = pos[t3] - p2 if forward else p2 - pos[t3]
        if span < 0:
            span += n
        for ahead in range(2):  # t4 is before t3, then behind it
            t4 = _beside(order, pos, t3, forward == (ahead == 1))
            if (ahead == 0 and t4 == t2) or is_fixed(fixed, t3, t4):
                continue
            g2 = g1 + distance(space, t3, t4)
            if ahead == 0:
                gain = g2 - distance(space, t4, t1)
                if gain > best:
                    best, kind, best3, best5 = gain, TWO, t3, -1
            for e in range(min(breadth[1], near.shape[1])):
                t5 = near[t4, e]
                if t5 < 0:
                    break
                g3 = g2 - distance(space, t4, t5)
                if g3 <= best:  # the edges (t5, t6) and (t6, t1) are yet to come
                    break
                if t5 == t3:
                    continue
                from2 = pos[t5] - p2 if forward else p2 - pos[t5]
                if from2 < 0:
                    from2 += n
                inside = from2 < span  # on the path from t2 to t3
                if ahead == 1 and not inside:
                    continue
                for behind in range(2):
                    if ahead == 0 and (behind == 1) != inside:
                        continue
                    if ahead == 1 and behind == 0 and t5 == t2:
                        continue
                    t6 = _beside(order, pos, t5, forward == (behind == 1))
                    if (ahead == 0 and t6 == t4) or is_fixed(fixed, t5, t6):
                        continue
                    gain = g3 + distance(space, t5, t6) - distance(space, t6, t1)
                    if gain > best:
                        best, best3, best5 = gain, t3, t5
                        kind = THREE if ahead == 0 else EXCHANGE if behind else BOTH_TURNED
    return best, kind, best3, best5


@inlined
def _carry_out(order, pos, kind, t1, t2, t3, t5, forward, log, used):
    """Carry out a move; returns (length of the log, t4, t6), t6 being t3 if there is none."""
    t4 = _beside(order, pos, t3, forward == (kind > THREE))
    if kind <= THREE:
        forward = _reverse(order, pos, t2, t4, forward, log, used)
        if kind == TWO:
            return used + 1, t4, t3
        t6 = _beside(order, pos, t5, not forward)
        _reverse(order, pos, t4, t6, forward, log, used + 1)
        return used + 2, t4, t6
    t6 = _beside(order, pos, t5, forward == (kind == EXCHANGE))
    if kind == BOTH_TURNED:
        forward = _reverse(order, pos, t2, t6, forward, log, used)
        _reverse(order, pos, t5, t3, forward, log, used + 1)
        return used + 2, t4, t6
    # any two of the three paths may change places: the longest stays
    n = len(order)
    first, second = abs(pos[t5] - pos[t2]), abs(pos[t3] - pos[t6])
    first = first if (pos[t5] > pos[t2]) == forward or first == 0 else n - first
    second = second if (pos[t3] > pos[t6]) == forward or second == 0 else n - second
    if first >= second and 2 * first + second >= n:
        _exchange(order, pos, t6, t3, t4, t1, forward, log, used)
    elif second > first and 2 * second + first >= n:
        _exchange(order, pos, t4, t1, t2, t5, forward, log, used)
    else:
        _exchange(order, pos, t2, t5, t6, t3, forward, log, used)
    return used + 3, t4, t6


@kernel
def improve_queued(context, order, pos, work, count, used):
    """Local search around the first `count` nodes of the queue, and around what it changes.

    The log of reversals has the length `used`; if that is negative, none is kept. When it is full,
    the search ends. Returns (gain, length of the log).
    """
    space, fixed, near, breadth = context
    queue, queued, log = work
    n = len(order)
    if n < 4:
        return 0.0, used
    head = 0
    total = 0.0
    while count > 0:
        t1 = queue[head]
        found = False
        for side in range(2):
            forward = side == 0
            t2 = _beside(order, pos, t1, forward)
            if is_fixed(fixed, t1, t2) or used + 3 > len(log):
                continue
            gain, kind, t3, t5 = _best_move(
                space, fixed, near, breadth, order, pos, t1, t2, forward
            )
            if kind == NONE:
                continue
            length, t4, t6 = _carry_out(
                order, pos, kind, t1, t2, t3, t5, forward, log, max(used, 0)
            )
            used = length if used >= 0 else used
            total += gain
            for i in range(5):
                t = t2 if i == 0 else t3 if i == 1 else t4 if i == 2 else t5 if i == 3 else t6
                if t >= 0 and not queued[t]:
                    queued[t] = True
                    tail = head + count
                    queue[tail if tail < n else tail - n] = t
                    count += 1
            found = True
            break
        if not found:
            queued[t1] = False
            head = head + 1 if head + 1 < n else 0
            count -= 1
    return total, used


def descend(context: MoveContext, order: Index, pos: Index, work: Workspace | None = None) -> float:
    """Improve the whole tour to a local optimum, in place; returns the gain."""
    n = len(order)
    work = work or workspace_of(n)
    work.queue[:n] = order
    work.queued[:n] = n >= 4
    gain, _ = improve_queued(context, order, pos, work, n, -1)
    return float(gain)


@kernel
def kick_and_improve(context, order, pos, work, state, kicks, longest):
    """`kicks` times: a double bridge, local search around it, undo both if they did not pay.

    The three segments that a double bridge moves have at most `longest` nodes each. In place;
    returns the total gain. Only nodes near the kick are looked at, so apart from reversals the time
    of a kick does not depend on the size of the tour.
    """
    space, fixed = context.space, context.fixed
    queue, queued, log = work
    n = len(order)
    if n < 5:
        return 0.0
    if longest > (n - 1) // 3:
        longest = (n - 1) // 3
    ends = np.empty(8, np.int32)
    total = 0.0
    for _ in range(kicks):
        # Cuts are a few dozen positions apart, so the new edges are long and the local search has
        # much to win back and looks far; that measured better than cuts close to each other.
        p = random_below(state, n)
        allowed = True
        for i in range(4):
            ends[2 * i] = order[p]
            ends[2 * i + 1] = order[p + 1 if p + 1 < n else 0]
            allowed = allowed and not is_fixed(fixed, ends[2 * i], ends[2 * i + 1])
            p += 1 + random_below(state, longest)
            if p >= n:
                p -= n
        if not allowed:
            continue
        change = 0.0
        count = 0
        for i in range(8):
            node = ends[i]
            if i & 1 == 0:  # the first segment is the rest of the tour: 0 1 2 3 -> 0 3 2 1
                change += distance(space, node, ends[(i + 5) & 7]) - distance(
                    space, node, ends[i + 1]
                )
            if not queued[node]:
                queued[node] = True
                queue[count] = node
                count += 1
        forward = _reverse(order, pos, ends[1], ends[6], True, log, 0)
        for i in range(5, 0, -2):
            forward = _reverse(order, pos, ends[i + 1], ends[i], forward, log, (7 - i) >> 1)
        gain, used = improve_queued(context, order, pos, work, count, 4)
        if gain - change < -TIE:  # not even a tie
            _undo(order, pos, log, used)
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
        work=workspace_of(most),
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

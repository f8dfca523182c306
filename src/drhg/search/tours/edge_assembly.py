"""Edge assembly crossover: destroy a tour where it differs from another, repair with its edges.

The edges in which tours A and B differ fall into AB-cycles, which take edges of A and of B in turn.
An E-set is some of these cycles: exchanging its edges changes A only there and brings in what B
does better. If that leaves several sub-tours, they are merged by the cheapest exchange of two edges
found along candidate lists. A child therefore costs as much as its E-set is long, whatever n. This
is the local form ("single") of Nagata and Kobayashi (2013).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from drhg.hypergraph.cut import is_fixed
from drhg.hypergraph.plan import Index
from drhg.kernels.arrays import sort_first
from drhg.kernels.jit import inlined, inner, kernel
from drhg.kernels.random import random_below
from drhg.kernels.space import distance
from drhg.problem import Floats, Ints
from drhg.problem.tolerances import GAIN, NOT_ZERO


class Population(NamedTuple):
    """Tours that are crossed with one another, one per row."""

    orders: Index  # (B, n) nodes in tour order
    poses: Index  # (B, n) the position of every node
    links: Index  # (B, n, 2) the two neighbours of every node
    counts: Index  # (n, candidates) how many tours have each candidate edge
    entropy: Floats  # (B + 2,) of an edge that so many tours have, its part of the population's


class Pairs(NamedTuple):
    """Which tours are crossed with which."""

    first: Ints  # (P,) rows of the tours that take edges of another one
    second: Ints  # (P,) rows of those others; -1 - i is row i of the guests
    guests: npt.NDArray[np.int32]  # (G, n, 2) links of tours as they were before
    gains: Floats  # (P,) how much shorter the first tours became


class Parent(NamedTuple):
    """The first tour of a pair."""

    order: Index  # (n,)
    pos: Index  # (n,)
    links: Index  # (n, 2); changed by an E-set, while `order` and `pos` still show the tour before


class Crossing(NamedTuple):
    """Arrays that a crossing of two tours writes to; nothing in them lasts."""

    ends: npt.NDArray[np.int32]  # (2, n, 2) edges of A, and of B, that are in no AB-cycle yet
    degrees: Index  # (2, n) how many of them there are at each node
    on_path: Index  # (n, 2) index of each node on the present path by parity, -1 if not there
    path: Index  # (2n + 2,)
    differing: Ints  # (n,) nodes at which A and B differ
    cycles: Index  # (2n + 2,) nodes of all AB-cycles, one after the other
    starts: Index  # (n + 2,) where each begins
    cuts: Ints  # (n + 1,) sorted positions p at which the first parent loses the edge (p, p + 1)
    labels: Ints  # (n + 1,) the sub-tour of the path before each cut
    sizes: Ints  # (n + 1,) nodes of each sub-tour
    log: npt.NDArray[np.int32]  # (4n, 3) changed links as (node, old neighbour, new neighbour)
    cycle_order: Ints  # (n + 2,) for trying the cycles in random order
    single: Ints  # (1,) an E-set of one cycle
    chosen: Ints  # (n + 2,) the E-set that is applied in the end


def crossing_of(n: int) -> Crossing:
    """Room to cross tours of n nodes."""
    return Crossing(
        ends=np.empty((2, n, 2), np.int32),
        degrees=np.empty((2, n), np.int32),
        on_path=np.empty((n, 2), np.int32),
        path=np.empty(2 * n + 2, np.int32),
        differing=np.empty(n, np.int64),
        cycles=np.empty(2 * n + 2, np.int32),
        starts=np.empty(n + 2, np.int32),
        cuts=np.empty(n + 1, np.int64),
        labels=np.empty(n + 1, np.int64),
        sizes=np.empty(n + 1, np.int64),
        log=np.empty((4 * n, 3), np.int32),
        cycle_order=np.empty(n + 2, np.int64),
        single=np.empty(1, np.int64),
        chosen=np.empty(n + 2, np.int64),
    )


def population_of(size: int, near: Index) -> Population:
    """Room for so many tours."""
    n = len(near)
    shares = [tours / size for tours in range(1, size + 1)]
    return Population(
        orders=np.empty((size, n), np.int32),
        poses=np.empty((size, n), np.int32),
        links=np.empty((size, n, 2), np.int32),
        counts=np.zeros(near.shape, np.int32),
        entropy=np.array([0.0, *(-share * math.log(share) for share in shares), 0.0]),
    )


def set_tour(population: Population, row: int, order: Index) -> None:
    """Put a tour in a row of the population."""
    population.orders[row] = order
    population.poses[row, order] = np.arange(len(order), dtype=np.int32)
    population.links[row, order, 0] = np.roll(order, 1)
    population.links[row, order, 1] = np.roll(order, -1)


@inner
def _relink(links, node, old, new):
    """Replace one of the two neighbours of a node."""
    if links[node, 0] == old:
        links[node, 0] = new
    else:
        links[node, 1] = new


@inner
def _other_neighbour(links, node, before):
    """The neighbour at which a walk that came from `before` goes on."""
    return links[node, 1] if links[node, 0] == before else links[node, 0]


@inner
def _strike_off(ends, count, node, other):
    """Remove an edge from a node's list."""
    last = count[node] - 1
    if ends[node, 0] == other:
        ends[node, 0] = ends[node, last]
    count[node] = last


@inner
def _draw(items, i, count, state):
    """A random one of items[i:count]; what stood at i takes its place."""
    j = i + random_below(state, count - i)
    drawn = items[j]
    items[j] = items[i]
    return drawn


@kernel
def find_ab_cycles(a, b, crossing, state):
    """Split the edges in which tours a and b (as links) differ into AB-cycles.

    Cycle i is `cycles[starts[i] : starts[i + 1]]`, nodes in order; its first edge is one of a, the
    next one of b, and so on. Random where there is a choice. Returns how many there are.
    """
    ends, count, on_path, path = crossing.ends, crossing.degrees, crossing.on_path, crossing.path
    cycles, starts, differing = crossing.cycles, crossing.starts, crossing.differing
    live = 0
    for v in range(len(a)):
        count[0, v] = count[1, v] = 0
        on_path[v, 0] = on_path[v, 1] = -1
        for i in range(2):
            if a[v, i] != b[v, 0] and a[v, i] != b[v, 1]:
                ends[0, v, count[0, v]] = a[v, i]
                count[0, v] += 1
            if b[v, i] != a[v, 0] and b[v, i] != a[v, 1]:
                ends[1, v, count[1, v]] = b[v, i]
                count[1, v] += 1
        if count[0, v] > 0:
            differing[live] = v
            live += 1
    found = 0
    starts[0] = 0
    for i in range(live):
        v = _draw(differing, i, live, state)
        while count[0, v] > 0:
            path[0] = v
            on_path[v, 0] = 0
            e = 0
            while True:
                kind = e & 1  # even: an edge of a leaves path[e]
                u = path[e]
                w = ends[kind, u, random_below(state, count[kind, u])]
                _strike_off(ends[kind], count[kind], u, w)
                _strike_off(ends[kind], count[kind], w, u)
                e += 1
                j = on_path[w, e & 1]
                if j < 0:
                    path[e] = w
                    on_path[w, e & 1] = e
                    continue
                begin = starts[found]
                size = e - j
                shift = j & 1  # the cycle's first edge is to be one of a
                for s in range(size):
                    cycles[begin + s] = path[j + (s + shift) % size]
                found += 1
                starts[found] = begin + size
                for s in range(j + 1, e):
                    on_path[path[s], s & 1] = -1
                e = j
                if e == 0:
                    on_path[v, 0] = -1
                    break
    return found


@inner
def _path_of(cuts, k, p):
    """Which of the k paths between sorted cuts holds position p."""
    low, high = 0, k
    while low < high:
        middle = (low + high) >> 1
        if cuts[middle] < p:
            low = middle + 1
        else:
            high = middle
    return low if low < k else 0


@inner
def _bounds(cuts, k, i, n):
    """First and last position of the i-th path, and how many nodes it has."""
    a = cuts[i - 1 if i > 0 else k - 1] + 1
    if a >= n:
        a -= n
    z = cuts[i]
    size = z - a + 1
    return a, z, size if size > 0 else size + n


@inlined
def _label_sub_tours(parent, crossing, k):
    """Label the paths between the k cuts by the sub-tour they belong to; returns how many."""
    order, pos, links = parent
    cuts, labels = crossing.cuts, crossing.labels
    n = len(order)
    for i in range(k):
        labels[i] = -1
    found = 0
    for first in range(k):
        if labels[first] >= 0:
            continue
        total = 0
        i = first
        came = -1
        enter = order[_bounds(cuts, k, i, n)[0]]
        while labels[i] < 0:
            labels[i] = found
            a, z, size = _bounds(cuts, k, i, n)
            total += size
            if size == 1:
                leave = enter
                inside = came
            elif enter == order[a]:
                leave = order[z]
                inside = order[z - 1 if z > 0 else n - 1]
            else:
                leave = order[a]
                inside = order[a + 1 if a + 1 < n else 0]
            enter = _other_neighbour(links, leave, inside)
            came = leave
            i = _path_of(cuts, k, pos[enter])
        crossing.sizes[found] = total
        found += 1
    return found


@inlined
def _cheapest_merge(context, parent, crossing, k, begin, own):
    """The cheapest way to merge the sub-tour `own` through node `begin` with another one.

    Returns (gain, u, u', v, v'): remove u u' and v v', add u v and u' v'; u is -1 if there is none.
    """
    space, fixed, near = context.space, context.fixed, context.near
    links = parent.links
    best = -np.inf
    best_u = best_s = best_v = best_w = -1
    u = begin
    before = links[begin, 0]
    while True:
        after = _other_neighbour(links, u, before)
        for c in range(near.shape[1]):
            v = near[u, c]
            if v < 0 or crossing.labels[_path_of(crossing.cuts, k, parent.pos[v])] == own:
                continue
            there = distance(space, u, v)
            for i in range(2):
                w = links[v, i]
                if is_fixed(fixed, v, w):
                    continue
                base = distance(space, v, w) - there
                for j in range(2):
                    s = before if j == 0 else after
                    gain = base + distance(space, u, s) - distance(space, s, w)
                    if gain > best and not is_fixed(fixed, u, s):
                        best, best_u, best_s, best_v, best_w = gain, u, s, v, w
        before = u
        u = after
        if u == begin:
            return best, best_u, best_s, best_v, best_w


@inlined
def _e_set_gain(space, crossing, e_set):
    """How much shorter a tour becomes when it exchanges the edges of these cycles."""
    gain = 0.0
    for which in e_set:
        cycle = crossing.cycles[crossing.starts[which] : crossing.starts[which + 1]]
        size = len(cycle)
        for i in range(0, size, 2):
            gain += distance(space, cycle[i], cycle[i + 1])
            gain -= distance(space, cycle[i + 1], cycle[i + 2 if i + 2 < size else 0])
    return gain


@inlined
def _exchange_edges(parent, crossing, e_set):
    """Exchange the edges of these cycles; returns (cuts, changes), no cuts if the log is full."""
    pos, links, log = parent.pos, parent.links, crossing.log
    n = len(pos)
    k = changes = 0
    for which in e_set:
        cycle = crossing.cycles[crossing.starts[which] : crossing.starts[which + 1]]
        size = len(cycle)
        if changes + size > len(log):
            return 0, changes
        for i in range(0, size, 2):
            p, q = pos[cycle[i]], pos[cycle[i + 1]]
            crossing.cuts[k] = p if q == p + 1 or (q == 0 and p == n - 1) else q
            k += 1
        for i in range(size):
            back = cycle[i - 1 if i > 0 else size - 1]
            onward = cycle[i + 1 if i + 1 < size else 0]
            old, new = (onward, back) if i & 1 == 0 else (back, onward)
            _relink(links, cycle[i], old, new)
            log[changes, 0], log[changes, 1], log[changes, 2] = cycle[i], old, new
            changes += 1
    return k, changes


@inner
def _apply_e_set(context, parent, crossing, e_set):
    """Exchange the edges of some cycles and merge the sub-tours, the smallest first.

    The parent's links are changed, and all changes logged. Returns (gain, changes); the gain is
    -inf if there is none to be had.
    """
    order, pos, links = parent
    cuts, labels, sizes, log = crossing.cuts, crossing.labels, crossing.sizes, crossing.log
    gain = _e_set_gain(context.space, crossing, e_set)
    if gain <= GAIN:  # merging sub-tours costs, as a rule
        return -np.inf, 0
    k, changes = _exchange_edges(parent, crossing, e_set)
    if k == 0:
        return -np.inf, changes
    sort_first(cuts, k)
    found = _label_sub_tours(parent, crossing, k)
    left = found
    while left > 1:
        own = -1
        for i in range(found):
            if sizes[i] > 0 and (own < 0 or sizes[i] < sizes[own]):
                own = i
        i = 0
        while labels[i] != own:
            i += 1
        begin = order[_bounds(cuts, k, i, len(order))[0]]
        more, u, s, v, w = _cheapest_merge(context, parent, crossing, k, begin, own)
        if u < 0 or changes + 4 > len(log) or gain + more <= GAIN:
            return -np.inf, changes
        gain += more
        other = labels[_path_of(cuts, k, pos[v])]
        for node, old, new in ((u, s, v), (s, u, w), (v, w, u), (w, v, s)):
            _relink(links, node, old, new)
            log[changes, 0], log[changes, 1], log[changes, 2] = node, old, new
            changes += 1
        for i in range(k):
            if labels[i] == own:
                labels[i] = other
        sizes[other] += sizes[own]
        sizes[own] = 0
        left -= 1
    return gain, changes


@inner
def _undo(links, log, changes):
    for i in range(changes - 1, -1, -1):
        _relink(links, log[i, 0], log[i, 2], log[i, 1])


@kernel
def count_edges(near, population):
    """Count how many tours have each candidate edge."""
    links, counts = population.links, population.counts
    for u in range(len(counts)):
        for c in range(counts.shape[1]):
            counts[u, c] = 0
    for row in range(len(links)):
        for u in range(links.shape[1]):
            for i in range(2):
                v = links[row, u, i]
                if u < v:
                    node, c = _place_of(near, u, v)
                    if c >= 0:
                        counts[node, c] += 1


@inner
def _place_of(near, u, v):
    """Where an edge is counted: with the lower of its nodes that lists the other one."""
    if u > v:
        u, v = v, u
    for c in range(near.shape[1]):
        if near[u, c] == v:
            return u, c
    for c in range(near.shape[1]):
        if near[v, c] == u:
            return v, c
    return u, -1


@inner
def _count_of(near, counts, u, v):
    """How many tours have an edge; one that is no candidate is taken to be rare."""
    node, c = _place_of(near, u, v)
    return counts[node, c] if c >= 0 and counts[node, c] > 0 else 1


@inner
def _entropy_lost(near, population, log, changes):
    """Entropy that the population loses by these changes; the log has each edge from both ends."""
    counts, entropy = population.counts, population.entropy
    loss = 0.0
    for c in range(changes):
        f = _count_of(near, counts, log[c, 0], log[c, 1])
        loss += 0.5 * (entropy[f] - entropy[f - 1])
        f = _count_of(near, counts, log[c, 0], log[c, 2])
        loss -= 0.5 * (entropy[f + 1] - entropy[f])
    return loss


@kernel
def cross(context, population, crossing, pairs, children, diverse, state):
    """Let the first tour of every pair take edges of the second; notes how much each gains.

    All AB-cycles are tried one by one as E-sets; the best of every `children` of them form the
    E-set that changes the tour. Best means most gain, or if `diverse` most gain per entropy lost,
    the entropy of the edges over the population, so that good edges spread and rare ones are not
    lost early.
    """
    single, chosen, log = crossing.single, crossing.chosen, crossing.log
    for pair in range(len(pairs.first)):
        a, b = pairs.first[pair], pairs.second[pair]
        parent = Parent(population.orders[a], population.poses[a], population.links[a])
        partner = population.links[b] if b >= 0 else pairs.guests[-1 - b]
        pairs.gains[pair] = 0.0
        cycles = find_ab_cycles(parent.links, partner, crossing, state)
        for i in range(cycles):
            crossing.cycle_order[i] = i
        size = 0
        best = 0.0
        for i in range(cycles):
            single[0] = _draw(crossing.cycle_order, i, cycles, state)
            gain, changes = _apply_e_set(context, parent, crossing, single)
            _undo(parent.links, log, changes)
            if gain > GAIN:
                loss = 1.0
                if diverse:
                    loss = _entropy_lost(context.near, population, log, changes)
                value = gain / (loss if loss > NOT_ZERO else NOT_ZERO)
                if value > best:
                    best = value
                    chosen[size] = single[0]
            if best > 0.0 and ((i + 1) % children == 0 or i + 1 == cycles):
                size += 1
                best = 0.0
        if size > 0:
            gain, changes = _apply_e_set(context, parent, crossing, chosen[:size])
            if gain > GAIN:
                pairs.gains[pair] = gain
                _retrace(parent)
            else:
                _undo(parent.links, log, changes)


@inner
def _retrace(parent):
    """Write the order and the positions anew from the links."""
    order, pos, links = parent
    node = 0
    before = links[0, 0]
    for p in range(len(order)):
        order[p] = node
        pos[node] = p
        after = _other_neighbour(links, node, before)
        before = node
        node = after

"""Edge assembly: destroy a tour where it differs from another good one, repair with its edges.

The edges in which tours A and B differ fall into cycles that take an edge of A and an edge of B in
turn. Exchanging the edges of one such cycle changes A only there and brings in what B does better;
if that leaves several subtours, they are joined again in the cheapest way found along neighbour
lists. A child therefore costs as much as its cycle is long, whatever n. Bred over a population of
locally optimal tours (Nagata and Kobayashi, 2013) this finds what no single tour's kicks find.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from drhg.compiled import distance, inner, kernel, random_below, sort_first
from drhg.hypergraph import is_fixed
from drhg.local_search import TINY

KIDS = 30  # children of which the best is taken


class Population(NamedTuple):
    """Tours that live together, one per row."""

    tours: npt.NDArray[np.int32]  # (B, n) nodes in order
    poses: npt.NDArray[np.int32]  # (B, n) the position of every node
    links: npt.NDArray[np.int32]  # (B, n, 2) the two neighbours of every node
    shares: npt.NDArray[np.int32]  # (n, candidates) how many tours have each candidate edge


def population_of(size: int, near: npt.NDArray[np.int32]) -> Population:
    """Room for so many tours."""
    n = len(near)
    return Population(
        np.empty((size, n), np.int32),
        np.empty((size, n), np.int32),
        np.empty((size, n, 2), np.int32),
        np.zeros(near.shape, np.int32),
    )


@kernel
def admit(population, row, tour):
    """Put a tour in a row of the population."""
    n = len(tour)
    for p in range(n):
        node = tour[p]
        population.tours[row, p] = node
        population.poses[row, node] = p
        population.links[row, node, 0] = tour[p - 1 if p > 0 else n - 1]
        population.links[row, node, 1] = tour[p + 1 if p + 1 < n else 0]


@inner
def _rewire(links, node, old, new):
    if links[node, 0] == old:
        links[node, 0] = new
    else:
        links[node, 1] = new


@inner
def _take(open_, count, node, other):
    """Strike an edge off a node's list."""
    last = count[node] - 1
    if open_[node, 0] == other:
        open_[node, 0] = open_[node, last]
    count[node] = last


@kernel
def alternating_cycles(a, b, state, cycles, starts):
    """Split the edges in which tours a and b (as links) differ into alternating cycles.

    Cycle i is `cycles[starts[i] : starts[i + 1]]`, nodes in order; its first edge is one of a, the
    next of b, and so on. Random where there is a choice. Returns how many there are.
    """
    n = len(a)
    open_ = np.empty((2, n, 2), np.int32)
    count = np.empty((2, n), np.int32)
    on_path = np.empty((n, 2), np.int32)  # index on the path by parity
    where = np.empty(n, np.int32)
    live = 0
    for v in range(n):
        count[0, v] = count[1, v] = 0
        on_path[v, 0] = on_path[v, 1] = -1
        for i in range(2):
            if a[v, i] != b[v, 0] and a[v, i] != b[v, 1]:
                open_[0, v, count[0, v]] = a[v, i]
                count[0, v] += 1
            if b[v, i] != a[v, 0] and b[v, i] != a[v, 1]:
                open_[1, v, count[1, v]] = b[v, i]
                count[1, v] += 1
        if count[0, v] > 0:
            where[live] = v
            live += 1
    path = np.empty(2 * n + 2, np.int32)
    found = 0
    starts[0] = 0
    for i in range(live):
        j = i + random_below(state, live - i)
        v = where[j]
        where[j] = where[i]
        while count[0, v] > 0:
            path[0] = v
            on_path[v, 0] = 0
            e = 0
            while True:
                kind = e & 1  # even: an edge of a leaves path[e]
                u = path[e]
                w = open_[kind, u, random_below(state, count[kind, u])]
                _take(open_[kind], count[kind], u, w)
                _take(open_[kind], count[kind], w, u)
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
def _piece(cuts, k, p):
    """Which of the k pieces between sorted cuts holds position p."""
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
    """First and last position of the i-th piece, and how many nodes it has."""
    a = cuts[i - 1 if i > 0 else k - 1] + 1
    if a >= n:
        a -= n
    z = cuts[i]
    size = z - a + 1
    return a, z, size if size > 0 else size + n


@inner
def _subtours(tour, pos, links, cuts, k, label, sizes):
    """Label the pieces between the cuts by the subtour they belong to; returns how many."""
    n = len(tour)
    for i in range(k):
        label[i] = -1
    found = 0
    for first in range(k):
        if label[first] >= 0:
            continue
        total = 0
        i = first
        came = -1
        enter = tour[_bounds(cuts, k, i, n)[0]]
        while label[i] < 0:
            label[i] = found
            a, z, size = _bounds(cuts, k, i, n)
            total += size
            if size == 1:
                leave = enter
                inner = came
            elif enter == tour[a]:
                leave = tour[z]
                inner = tour[z - 1 if z > 0 else n - 1]
            else:
                leave = tour[a]
                inner = tour[a + 1 if a + 1 < n else 0]
            enter = links[leave, 1] if links[leave, 0] == inner else links[leave, 0]
            came = leave
            i = _piece(cuts, k, pos[enter])
        sizes[found] = total
        found += 1
    return found


@inner
def _join(space, fixed, near, pos, links, begin, cuts, k, label, own):
    """The cheapest way to join the subtour through `begin` with another one.

    Returns (gain, u, u', v, v'): remove u u' and v v', add u v and u' v'; u is -1 if there is none.
    """
    best = -np.inf
    best_u = best_s = best_v = best_w = -1
    u = begin
    before = links[begin, 0]
    while True:
        after = links[u, 1] if links[u, 0] == before else links[u, 0]
        for c in range(near.shape[1]):
            v = near[u, c]
            if v < 0 or label[_piece(cuts, k, pos[v])] == own:
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


@inner
def _child(
    space, fixed, near, tour, pos, links, cycles, starts, chosen, cuts, label, sizes, log
):  # fmt: skip
    """Exchange the edges of the chosen cycles and join the subtours.

    `links` is changed; `log` gets (node, old, new) for every change. Returns (gain, changes); the
    gain is -inf if there is none to be had.
    """
    n = len(tour)
    gain = 0.0
    for which in chosen:
        cycle = cycles[starts[which] : starts[which + 1]]
        size = len(cycle)
        for i in range(0, size, 2):
            gain += distance(space, cycle[i], cycle[i + 1])
            gain -= distance(space, cycle[i + 1], cycle[i + 2 if i + 2 < size else 0])
    if gain <= TINY:  # joining subtours costs, as a rule
        return -np.inf, 0
    k = changes = 0
    for which in chosen:
        cycle = cycles[starts[which] : starts[which + 1]]
        size = len(cycle)
        if changes + size > len(log):
            return -np.inf, changes
        for i in range(0, size, 2):
            p, q = pos[cycle[i]], pos[cycle[i + 1]]
            cuts[k] = p if q == p + 1 or (q == 0 and p == n - 1) else q
            k += 1
        for i in range(size):
            back = cycle[i - 1 if i > 0 else size - 1]
            onward = cycle[i + 1 if i + 1 < size else 0]
            old, new = (onward, back) if i & 1 == 0 else (back, onward)
            _rewire(links, cycle[i], old, new)
            log[changes, 0], log[changes, 1], log[changes, 2] = cycle[i], old, new
            changes += 1
    sort_first(cuts, k)
    found = _subtours(tour, pos, links, cuts, k, label, sizes)
    left = found
    while left > 1:
        own = -1
        for i in range(found):
            if sizes[i] > 0 and (own < 0 or sizes[i] < sizes[own]):
                own = i
        i = 0
        while label[i] != own:
            i += 1
        begin = tour[_bounds(cuts, k, i, n)[0]]
        more, u, s, v, w = _join(space, fixed, near, pos, links, begin, cuts, k, label, own)
        if u < 0 or changes + 4 > len(log) or gain + more <= TINY:
            return -np.inf, changes
        gain += more
        other = label[_piece(cuts, k, pos[v])]
        for node, old, new in ((u, s, v), (s, u, w), (v, w, u), (w, v, s)):
            _rewire(links, node, old, new)
            log[changes, 0], log[changes, 1], log[changes, 2] = node, old, new
            changes += 1
        for i in range(k):
            if label[i] == own:
                label[i] = other
        sizes[other] += sizes[own]
        sizes[own] = 0
        left -= 1
    return gain, changes


@inner
def _undo(links, log, changes):
    for i in range(changes - 1, -1, -1):
        _rewire(links, log[i, 0], log[i, 2], log[i, 1])


@kernel
def count_shares(near, population):
    """Count how many tours have each candidate edge."""
    links, shares = population.links, population.shares
    shares[:] = 0
    for row in range(len(links)):
        for u in range(links.shape[1]):
            for i in range(2):
                v = links[row, u, i]
                if u < v:
                    node, c = _slot(near, u, v)
                    if c >= 0:
                        shares[node, c] += 1


@inner
def _slot(near, u, v):
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
def _share(near, shares, u, v):
    """How many tours have an edge; those along no neighbour list count as rare."""
    node, c = _slot(near, u, v)
    return max(1, shares[node, c]) if c >= 0 else 1


@kernel
def breed(space, fixed, near, population, fathers, mothers, guests, kids, spread, state):
    """For every pair try all children by one cycle; the best of every `kids` changes the father.

    Best means most gain, or if `spread` most gain per diversity lost: the entropy of the edges over
    the population, so that good edges spread and rare ones are not lost early. A mother -1 - i is
    row i of `guests`, links of tours as they were before. Returns the gain of every pair.
    """
    tours, poses, links, shares = population
    size, n = tours.shape
    worth = np.empty(size + 2, np.float64)  # entropy of an edge that so many tours have
    worth[0] = worth[size + 1] = 0.0
    for f in range(1, size + 1):
        worth[f] = -f / size * np.log(f / size)
    cycles = np.empty(2 * n + 2, np.int32)
    starts = np.empty(n + 2, np.int32)
    cuts = np.empty(n + 1, np.int64)
    label = np.empty(n + 1, np.int64)
    sizes = np.empty(n + 1, np.int64)
    log = np.empty((4 * n, 3), np.int32)
    gains = np.empty(len(fathers), np.float64)
    order = np.empty(n + 2, np.int64)
    one = np.empty(1, np.int64)
    taken = np.empty(n // kids + 2, np.int64)
    for pair in range(len(fathers)):
        gains[pair] = 0.0
        father, mother = fathers[pair], mothers[pair]
        link = links[father]
        other = links[mother] if mother >= 0 else guests[-1 - mother]
        tour, pos = tours[father], poses[father]
        count = alternating_cycles(link, other, state, cycles, starts)
        for i in range(count):
            order[i] = i
        groups = 0
        best = 0.0
        for i in range(count):
            j = i + random_below(state, count - i)
            one[0] = order[j]
            order[j] = order[i]
            gain, changes = _child(
                space, fixed, near, tour, pos, link, cycles, starts, one, cuts, label, sizes, log
            )
            _undo(link, log, changes)
            if gain > TINY:
                loss = 0.0 if spread else 1.0  # of entropy, each edge seen from both ends
                for c in range(changes if spread else 0):
                    f = _share(near, shares, log[c, 0], log[c, 1])
                    loss += 0.5 * (worth[f] - worth[f - 1])
                    f = _share(near, shares, log[c, 0], log[c, 2])
                    loss -= 0.5 * (worth[f + 1] - worth[f])
                value = gain / max(loss, 1e-9)
                if value > best:
                    best = value
                    taken[groups] = one[0]
            if best > 0.0 and ((i + 1) % kids == 0 or i + 1 == count):
                groups += 1
                best = 0.0
        if groups > 0:
            gain, changes = _child(
                space, fixed, near, tour, pos, link, cycles, starts, taken[:groups],
                cuts, label, sizes, log,
            )  # fmt: skip
            if gain > TINY:
                gains[pair] = gain
                _retrace(link, tour, pos)
            else:
                _undo(link, log, changes)
    return gains


@inner
def _retrace(links, tour, pos):
    """Write a tour and its positions anew from its links."""
    node = 0
    before = links[0, 0]
    for p in range(len(tour)):
        tour[p] = node
        pos[node] = p
        after = links[node, 1] if links[node, 0] == before else links[node, 0]
        before = node
        node = after

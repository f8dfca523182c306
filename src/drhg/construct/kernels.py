"""The compiled halves of the starts in `starts`, which imports this module on demand.

All of them work on undirected `links` (n, 2): the two neighbours of every node, -1 for a free slot,
the depot for an end of a route. Slot 0 is filled first, so a node is an end while slot 1 is -1.
Pieces are reversed for free, because nothing here has a direction until `walk` gives it one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from drhg.kernels.jit import inlined, kernel
from drhg.kernels.space import distance
from drhg.problem import Floats, Ints


class Limits(NamedTuple):
    """What routes must keep."""

    depot: int
    demand: Ints  # (n,)
    capacity: int
    length: float  # of a route, service included; inf if there is no limit
    service: float


class Plan(NamedTuple):
    """Routes while customers are inserted; the number of a route is its first customer."""

    links: Ints  # (n, 2) the two neighbours of every placed customer, -1 otherwise
    route: Ints  # (n,) the route of every placed customer, -1 otherwise
    load: Ints  # (n,) of every route
    length: Floats  # (n,) of every route, service included


@kernel
def candidate_pairs(near):
    """Every pair (i, j) with j in row i of `near` (m, k), once; its entries are rows of itself."""
    m, k = near.shape
    heads = np.empty(m * k, dtype=np.int64)
    feet = np.empty(m * k, dtype=np.int64)
    count = 0
    for i in range(m):
        for s in range(k):
            j = near[i, s]
            fresh = j != i
            if j < i:  # row j came before: did it name i?
                for t in range(k):
                    if near[j, t] == i:
                        fresh = False
                        break
            if fresh:
                heads[count] = i
                feet[count] = j
                count += 1
    return heads[:count], feet[:count]


@inlined
def _link(links, tail, i, j):
    """Join two paths at their ends i and j; returns the ends of the path that they form."""
    links[i, 0 if links[i, 0] < 0 else 1] = j
    links[j, 0 if links[j, 0] < 0 else 1] = i
    a, b = tail[i], tail[j]
    tail[a] = b
    tail[b] = a
    return a, b


@kernel
def join_edges(links, tail, heads, feet):
    """Take edges in order, leaving out those that would branch or close a cycle.

    `tail[i]` is the other end of the path that i is an end of (i itself if it stands alone).
    """
    for e in range(len(heads)):
        i, j = heads[e], feet[e]
        if links[i, 1] >= 0 or links[j, 1] >= 0 or tail[i] == j:
            continue
        _link(links, tail, i, j)


@kernel
def walk(links):
    """The nodes of a closed tour in order, from node 0."""
    n = len(links)
    order = np.empty(n, dtype=np.int64)
    before, here = -1, 0
    for p in range(n):
        order[p] = here
        step = links[here, 0]
        if step == before:
            step = links[here, 1]
        before, here = here, step
    return order


@kernel
def walk_routes(links, depot):
    """The customers of all routes, route after route, and where each route begins."""
    n = len(links)
    order = np.empty(n, dtype=np.int64)
    begins = np.empty(n, dtype=np.int64)
    seen = np.zeros(n, dtype=np.bool_)
    count = routes = 0
    for first in range(n):
        if first == depot or seen[first] or (links[first, 0] != depot and links[first, 1] != depot):
            continue
        begins[routes] = count
        routes += 1
        before, here = depot, first
        while here != depot:
            seen[here] = True
            order[count] = here
            count += 1
            step = links[here, 0]
            if step == before:
                step = links[here, 1]
            before, here = here, step
    return order[:count], begins[:routes]


@kernel
def insert_pieces(space, links, locked, tail, order, begin, end, near):
    """Insert the pieces `order[begin:end]` one by one where they lengthen the tour least.

    A piece is named by one of its ends (a lone node, or a path of fixed edges up to `tail`); those
    before `begin` are in the tour already. Only edges at the placed nodes among row i of `near`
    (for piece begin + i) are tried; where there is none, every edge is.
    """
    for t in range(begin, end):
        a = order[t]
        b = tail[a]
        if t == 0:  # the first piece closes on itself
            links[a, 0 if links[a, 0] < 0 else 1] = b
            links[b, 0 if links[b, 0] < 0 else 1] = a
            continue
        best, at, slot, flipped = np.inf, -1, 0, False
        for c in range(near.shape[1]):
            u = near[t - begin, c]
            if links[u, 1] < 0:
                continue  # not in the tour yet
            to_a = distance(space, u, a)
            to_b = to_a if a == b else distance(space, u, b)
            for s in range(2):
                if locked[u, s]:
                    continue
                w = links[u, s]
                gone = distance(space, u, w)
                value = to_a + distance(space, b, w) - gone
                if value < best:
                    best, at, slot, flipped = value, u, s, False
                if a != b:
                    value = to_b + distance(space, a, w) - gone
                    if value < best:
                        best, at, slot, flipped = value, u, s, True
        if at < 0:  # once around the tour, which begins at the first piece
            u, s = order[0], 0
            to_a = distance(space, u, a)
            to_b = to_a if a == b else distance(space, u, b)
            while True:
                w = links[u, s]
                gone = distance(space, u, w)
                then_a = distance(space, w, a)
                then_b = then_a if a == b else distance(space, w, b)
                if not locked[u, s]:
                    if to_a + then_b - gone < best:
                        best, at, slot, flipped = to_a + then_b - gone, u, s, False
                    if to_b + then_a - gone < best:
                        best, at, slot, flipped = to_b + then_a - gone, u, s, True
                s = 1 if links[w, 0] == u else 0
                u, to_a, to_b = w, then_a, then_b
                if u == order[0]:
                    break
        if flipped:
            a, b = b, a
        w = links[at, slot]
        links[at, slot] = a
        other = 0 if links[w, 0] == at and not locked[w, 0] else 1
        links[w, other] = b
        links[a, 0 if links[a, 0] < 0 else 1] = at
        links[b, 0 if links[b, 0] < 0 else 1] = w


@kernel
def insert_customers(space, limits, plan, order, begin, end, near, opening, samples):
    """Insert the customers `order[begin:end]` where routes with room grow least, or open a route.

    `near` as in `insert_pieces`; but where no near customer has room, `samples` random ones that do
    are tried, not all. The first `opening` customers open a route each.
    """
    depot, demand, capacity, limit, service = limits
    links, route, load, length = plan
    k = near.shape[1]
    for t in range(begin, end):
        a = order[t]
        home = distance(space, depot, a)
        best, at, slot, tried = np.inf, -1, 0, 0
        for c in range(k + t):
            if c == k and at >= 0:
                break  # a near place will do
            if k > 0 and tried >= samples:
                break
            u = near[t - begin, c] if c < k else order[t - 1 - (c - k)]
            r = route[u]
            if r < 0 or load[r] + demand[a] > capacity:
                continue
            tried += c >= k
            to_a = distance(space, u, a)
            for s in range(2):
                w = links[u, s]
                if c >= k and w != depot and w < u:
                    continue
                value = (
                    to_a + (home if w == depot else distance(space, a, w)) - distance(space, u, w)
                )
                if value < best and length[r] + value + service <= limit:
                    best, at, slot = value, u, s
        if t < opening or at < 0 or (best > 2.0 * home and 2.0 * home + service <= limit):
            links[a, 0] = depot
            links[a, 1] = depot
            route[a] = a
            load[a] = demand[a]
            length[a] = 2.0 * home + service
            continue
        w = links[at, slot]
        links[at, slot] = a
        if w != depot:
            links[w, 0 if links[w, 0] == at else 1] = a
        links[a, 0] = at
        links[a, 1] = w
        r = route[at]
        route[a] = r
        load[r] += demand[a]
        length[r] += best + service


@kernel
def merge_routes(links, tail, load, length, heads, feet, savings, capacity, limit):
    """Clarke and Wright: join the ends of two routes in the given order where the limits allow it.

    `load` and `length` are kept at both ends of a route.
    """
    merged = 0
    for e in range(len(heads)):
        i, j = heads[e], feet[e]
        if links[i, 1] >= 0 or links[j, 1] >= 0 or tail[i] == j:
            continue
        total = load[i] + load[j]
        extent = length[i] + length[j] - savings[e]
        if total > capacity or extent > limit:
            continue
        a, b = _link(links, tail, i, j)
        load[a] = total
        load[b] = total
        length[a] = extent
        length[b] = extent
        merged += 1
    return merged


@kernel
def nearest_first(space, start, order, begins):
    """Reorder each group `order[begins[g]:begins[g + 1]]` in place: always the nearest next."""
    for g in range(len(begins)):
        end = begins[g + 1] if g + 1 < len(begins) else len(order)
        here = start
        for p in range(begins[g], end - 1):
            best, at = np.inf, p
            for q in range(p, end):
                d = distance(space, here, order[q])
                if d < best:
                    best, at = d, q
            here = order[at]
            order[at] = order[p]
            order[p] = here


@kernel
def walk_paths(links, ends):
    """All nodes of open paths in order, each path from the given end of it."""
    order = np.empty(len(links), dtype=np.int64)
    count = 0
    for first in ends:
        before = -1
        node = first
        while node >= 0:
            order[count] = node
            count += 1
            after = links[node, 0] if links[node, 0] != before else links[node, 1]
            before = node
            node = after
    return order

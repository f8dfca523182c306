# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False
"""What the network of edges sees of a reduced graph: all of its open ends at once.

While a graph is being repaired its pieces are *paths*: what was a single node or a hyper-edge at
first, and whatever has been joined since. A path matters through its ends, which are the tokens;
for routes the depot is one more. A path of one node is a token that takes two more edges.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from drhg.kernels.jit import inner
from drhg.network.views import Reals, shrunk
from drhg.network.weights import EDGES_INPUTS, EDGES_ROUTE_INPUTS, NEAREST

FAR = np.float32(6.0)  # in units of the usual distance between neighbours: farther is all the same
OWN = EDGES_INPUTS - 3 * NEAREST  # numbers about a token itself, before its neighbours
ROUTE_INPUTS = EDGES_INPUTS + EDGES_ROUTE_INPUTS


class Paths(NamedTuple):
    """The pieces of one graph of m nodes while they are joined."""

    mate: npt.NDArray[np.int32]  # (m,): the other end of the path that ends here, -1 at the depot
    free: npt.NDArray[np.bool_]  # (m,): is an end
    load: npt.NDArray[np.int64]  # (m,): of the whole path, at its ends
    link: npt.NDArray[np.int32]  # (m, 2): new edges, -1 for none; m for the depot


class Survey(NamedTuple):
    """Memory for the tokens of one graph, T at most."""

    token: npt.NDArray[np.int32]  # (T,): which node of the graph; m for the depot
    mate: npt.NDArray[np.int32]  # (T,): which token is the other end of the path
    nodes: Reals  # (T, inputs)
    apart: Reals  # (T, T): distances in units of the usual one; 0 to and from the depot
    near: Reals  # (NEAREST,)


class Around(NamedTuple):
    """What is known of the routes of a graph besides its tokens."""

    capacity: int
    fleet: int  # routes that are still to be made, in the plan that was destroyed


@inner
def survey(feat, paths, around, seen):
    """Write down what the network sees of a graph; returns the number of tokens."""
    token, mate, nodes, apart, near = seen
    m = len(paths.mate)
    routed = nodes.shape[1] == ROUTE_INPUTS
    t = 0
    x = y = 0.0
    for i in range(m):
        if paths.free[i]:
            token[t] = i
            x += feat[i, 0]
            y += feat[i, 1]
            t += 1
    ends = t
    x, y = np.float32(x / max(1, ends)), np.float32(y / max(1, ends))
    if routed:
        token[t] = m
        t += 1
    scale = _distances(feat, paths.mate, token, ends, apart)
    unit = np.float32(1.0) / scale
    for i in range(t):
        apart[i, :t] *= unit
    for i in range(ends):
        u = token[i]
        other = paths.mate[u]
        mate[i] = i if other < 0 else _where(token, ends, other)  # a stub has no other end
        nodes[i, 0], nodes[i, 1] = 2 * (feat[u, 0] - x), 2 * (feat[u, 1] - y)
        px = py = np.float32(0.0)
        if other >= 0:
            px, py = feat[other, 0] - feat[u, 0], feat[other, 1] - feat[u, 1]
        length = np.sqrt(px * px + py * py)
        nodes[i, 2], nodes[i, 3], nodes[i, 4] = 2 * px, 2 * py, 2 * length
        nodes[i, 5] = np.log1p(length * unit)
        nodes[i, 6] = 0.0 if other == u else 1.0
        nodes[i, 7] = np.log(scale)
        _neighbours(feat, token, mate, ends, i, unit, apart, nodes[i], near)
    if routed:
        apart[ends, :t] = 0.0
        apart[:t, ends] = 0.0
        mate[ends] = ends
        _routes(feat, paths, around, token, ends, nodes)
    return t


@inner
def _where(token, ends, node):
    """Which token a node is; tokens are in the order of their nodes."""
    low, high = 0, ends
    while low < high:
        middle = (low + high) // 2
        if token[middle] < node:
            low = middle + 1
        else:
            high = middle
    return low


@inner
def _distances(feat, mate, token, ends, apart):
    """Distances between all ends; returns the mean distance of an end to the nearest other path."""
    total = 0.0
    for i in range(ends):
        u = token[i]
        nearest = np.float32(np.inf)
        for j in range(ends):
            v = token[j]
            dx, dy = feat[u, 0] - feat[v, 0], feat[u, 1] - feat[v, 1]
            d = np.sqrt(dx * dx + dy * dy)
            apart[i, j] = d
            if j != i and mate[u] != v:
                nearest = min(nearest, d)
        total += nearest if nearest < np.inf else 0.0
    return np.float32(max(1e-4, total / max(1, ends)))


@inner
def _neighbours(feat, token, mate, ends, i, unit, apart, row, near):
    """The nearest ends of other paths: their offsets, then their distances."""
    u = token[i]
    count = 0
    for j in range(ends):
        if j == i or j == mate[i]:
            continue
        d = apart[i, j]
        if count == NEAREST and d >= near[count - 1]:
            continue
        k = count if count < NEAREST else NEAREST - 1
        count = k + 1
        while k > 0 and near[k - 1] > d:
            near[k] = near[k - 1]
            row[OWN + 2 * k], row[OWN + 2 * k + 1] = row[OWN + 2 * k - 2], row[OWN + 2 * k - 1]
            k -= 1
        near[k] = d
        v = token[j]
        x, y = (feat[v, 0] - feat[u, 0]) * unit, (feat[v, 1] - feat[u, 1]) * unit
        row[OWN + 2 * k] = min(FAR, max(-FAR, x))
        row[OWN + 2 * k + 1] = min(FAR, max(-FAR, y))
    for k in range(NEAREST):
        if k >= count:
            near[k] = FAR
            row[OWN + 2 * k] = row[OWN + 2 * k + 1] = 0.0
        row[OWN + 2 * NEAREST + k] = min(FAR, near[k])


@inner
def _routes(feat, paths, around, token, ends, nodes):
    """What only routes have: loads, the depot, and how much room the routes to come may waste."""
    m = len(paths.mate)
    left, stubs = 0, 0
    for i in range(ends):
        u = token[i]
        other = paths.mate[u]
        if other <= u:  # every path once
            left += paths.load[u]
            stubs += 1 if other < 0 else 0
    need = left / around.capacity
    spare = around.fleet - need
    for i in range(ends + 1):
        row, u = nodes[i], token[i]
        at = EDGES_INPUTS
        depot = u == m
        if depot:
            row[:EDGES_INPUTS] = 0.0
        row[at] = 0.0 if depot else paths.load[u] / around.capacity
        row[at + 1] = 1.0 if not depot and paths.mate[u] < 0 else 0.0
        row[at + 2] = 1.0 if depot else 0.0
        x, y = feat[m, 0] - feat[u, 0], feat[m, 1] - feat[u, 1]
        row[at + 3], row[at + 4], row[at + 5] = shrunk(x, y)
        row[at + 6] = math.log1p(need)
        row[at + 7] = math.log1p(np.float64(stubs))
        row[at + 8] = math.log1p(max(0.0, np.float64(around.fleet)))
        row[at + 9] = min(1.0, max(-1.0, spare))
        row[at + 10] = min(1.0, max(-1.0, 10.0 * spare))

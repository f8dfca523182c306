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
    """Memory for the tokens of one graph, T at most; S is T in whole vectors."""

    token: npt.NDArray[np.int32]  # (T,): which node of the graph; m for the depot
    mate: npt.NDArray[np.int32]  # (T,): which token is the other end of the path
    nodes: Reals  # (T, inputs)
    apart: Reals  # (T, S): distances in units of the usual one; 0 to and from the depot
    place: Reals  # (2, T): coordinates
    near: Reals  # (NEAREST,)


def survey_of(T: int, inputs: int, S: int) -> Survey:
    """Memory for T tokens."""
    real, index = np.float32, np.int32
    return Survey(
        np.empty(T, index), np.empty(T, index), np.zeros((T, inputs), real),
        np.zeros((T, S), real), np.zeros((2, T), real), np.empty(NEAREST, real),
    )  # fmt: skip


class Around(NamedTuple):
    """What is known of the routes of a graph besides its tokens."""

    capacity: np.int64
    fleet: np.int64  # routes that are still to be made, in the plan that was destroyed


@inner
def survey(feat, paths, around, seen):
    """Write down what the network sees of a graph; returns the number of tokens."""
    token, mate, nodes, apart, place, near = seen
    other_end, free = paths.mate, paths.free
    xs, ys = place[0], place[1]
    routed = nodes.shape[1] == ROUTE_INPUTS
    ends = 0
    x = y = np.float64(0.0)
    for i in range(len(other_end)):
        if free[i]:
            token[ends] = i
            xs[ends], ys[ends] = feat[i, 0], feat[i, 1]
            x += np.float64(feat[i, 0])
            y += np.float64(feat[i, 1])
            ends += 1
    for i in range(ends):
        u = other_end[token[i]]
        mate[i] = i if u < 0 else _where(token, ends, u)  # a stub has no other end
    total = np.float32(0.0)
    for i in range(ends):
        here = apart[i]
        for j in range(ends):
            dx, dy = xs[j] - xs[i], ys[j] - ys[i]
            here[j] = np.sqrt(dx * dx + dy * dy)
        total += _neighbours(place, here, ends, i, mate[i], nodes[i], near)
    x_mean, y_mean = np.float32(x / max(1, ends)), np.float32(y / max(1, ends))
    scale = max(np.float32(1e-4), total / np.float32(max(1, ends)))
    unit, log_scale = np.float32(1.0) / scale, np.log(scale)
    for i in range(ends):
        row, here, j = nodes[i], apart[i], mate[i]
        px, py, length = xs[j] - xs[i], ys[j] - ys[i], here[j]
        row[0], row[1] = 2 * (xs[i] - x_mean), 2 * (ys[i] - y_mean)
        row[2], row[3], row[4] = 2 * px, 2 * py, 2 * length
        row[5] = np.log1p(length * unit)
        row[6] = 0.0 if other_end[token[i]] == token[i] else 1.0
        row[7] = log_scale
        for c in range(OWN, EDGES_INPUTS):
            row[c] = min(FAR, max(-FAR, row[c] * unit))
        for j in range(ends):
            here[j] *= unit
    if not routed:
        return ends
    token[ends], mate[ends] = len(other_end), ends
    apart[ends, : ends + 1] = 0.0
    apart[:ends, ends] = 0.0
    _routes(feat, paths, around, token, ends, nodes)
    return ends + 1


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
def _neighbours(place, here, ends, i, mate, row, near):
    """The nearest ends of other paths: offsets, then distances; returns the least distance."""
    xs, ys = place[0], place[1]
    count = 0
    for j in range(ends):
        d = here[j]
        if (count == NEAREST and d >= near[NEAREST - 1]) or j == i or j == mate:
            continue
        k = count if count < NEAREST else NEAREST - 1
        count = k + 1
        while k > 0 and near[k - 1] > d:
            near[k] = near[k - 1]
            row[OWN + 2 * k], row[OWN + 2 * k + 1] = row[OWN + 2 * k - 2], row[OWN + 2 * k - 1]
            k -= 1
        near[k] = d
        row[OWN + 2 * k], row[OWN + 2 * k + 1] = xs[j] - xs[i], ys[j] - ys[i]
    for k in range(NEAREST):
        if k >= count:
            near[k] = np.float32(1e30)
            row[OWN + 2 * k] = row[OWN + 2 * k + 1] = 0.0
        row[OWN + 2 * NEAREST + k] = near[k]
    return near[0] if count > 0 else np.float32(0.0)


@inner
def _routes(feat, paths, around, token, ends, nodes):
    """What only routes have: loads, the depot, and how much room the routes to come may waste."""
    other_end, load = paths.mate, paths.load
    capacity, fleet = around
    m = len(other_end)
    left, stubs = 0, 0
    for i in range(ends):
        u = token[i]
        other = other_end[u]
        if other <= u:  # every path once
            left += load[u]
            stubs += 1 if other < 0 else 0
    need = left / capacity
    spare = fleet - need
    for i in range(ends + 1):
        row, u = nodes[i], token[i]
        at = EDGES_INPUTS
        depot = u == m
        if depot:
            row[:EDGES_INPUTS] = 0.0
        row[at] = 0.0 if depot else load[u] / capacity
        row[at + 1] = 1.0 if not depot and other_end[u] < 0 else 0.0
        row[at + 2] = 1.0 if depot else 0.0
        x, y = feat[m, 0] - feat[u, 0], feat[m, 1] - feat[u, 1]
        row[at + 3], row[at + 4], row[at + 5] = shrunk(x, y)
        row[at + 6] = math.log1p(need)
        row[at + 7] = math.log1p(np.float64(stubs))
        row[at + 8] = math.log1p(max(0.0, np.float64(fleet)))
        row[at + 9] = min(1.0, max(-1.0, spare))
        row[at + 10] = min(1.0, max(-1.0, 10.0 * spare))

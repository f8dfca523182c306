# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False
"""Decisions one after the other: what is offered, which is chosen, and what follows from it.

A tour is entered at its start. Routes begin at the depot, and `start` is only where one looks
around from first: the network chooses where each route begins.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from drhg.hypergraph.features import LOAD
from drhg.kernels.jit import inner, kernel
from drhg.kernels.random import random_float
from drhg.network.views import Graph, Place, Reals, Seen, Views, see
from drhg.network.weights import ModelConfig


class Decoding(NamedTuple):
    """Rows of a batch while they are being decoded: `Views`, and the answers so far."""

    feat: Reals
    partner: npt.NDArray[np.int32]
    load: npt.NDArray[np.int64]
    capacity: npt.NDArray[np.int64]
    fleet: npt.NDArray[np.int32]
    size: npt.NDArray[np.int32]
    start: npt.NDArray[np.int32]  # (B,)
    free: npt.NDArray[np.bool_]  # (B, M): not connected yet
    order: npt.NDArray[np.int32]  # (B, M)
    via: npt.NDArray[np.bool_]  # (B, M): reached through the depot
    place: npt.NDArray[np.int64]  # (B,): how many nodes of `order` are filled
    room: npt.NDArray[np.int64]  # (B,): what the open route may still load, -1 at the depot


class Offered(NamedTuple):
    """Memory for the decisions that are due in some rows, as in `State`."""

    rows: npt.NDArray[np.int64]  # which rows
    nodes: Reals
    context: Reals
    counts: npt.NDArray[np.int32]
    direct: npt.NDArray[np.bool_]
    chosen: npt.NDArray[np.int32]  # which nodes of the graph are offered
    far: Reals  # (W,)


def begun(views: Views, start: npt.NDArray[np.int32]) -> Decoding:
    """Rows before their first decision."""
    B, M = views.partner.shape
    free = np.arange(M)[None, :] < views.size[:, None]
    order, via = np.full((B, M), -1, np.int32), np.zeros((B, M), np.bool_)
    place, room = np.zeros(B, np.int64), np.full(B, -1, np.int64)
    decoding = Decoding._make((*views.arrays, start, free, order, via, place, room))
    begin(decoding)
    return decoding


def offered(config: ModelConfig, rows: int, width: int) -> Offered:
    """Memory for the decisions of so many rows on so many nodes each."""
    return Offered(
        np.zeros(rows, np.int64), np.zeros((rows, width, config.node_inputs), np.float32),
        np.zeros((rows, config.context_inputs), np.float32), np.zeros(rows, np.int32),
        np.zeros((rows, width), np.bool_), np.zeros((rows, width), np.int32),
        np.zeros(max(1, width), np.float32),
    )  # fmt: skip


@kernel
def begin(decoding):
    """Enter every tour at its start; what needs no network is done."""
    for b in range(len(decoding.size)):
        if decoding.size[b] == 0:
            continue
        if decoding.feat.shape[2] <= LOAD:  # a tour
            decoding.room[b] = decoding.capacity[b]
            _enter(decoding, b, decoding.start[b], False)
        _finish(decoding, b)


@inner
def _enter(decoding, b, node, through):
    """Append the item entered at `node` to row b.

    Through the depot a new route begins; along a stub taken directly the open one ends.
    """
    at, mate, load = decoding.place[b], decoding.partner[b, node], decoding.load[b, node]
    decoding.order[b, at], decoding.via[b, at] = node, through
    decoding.free[b, node] = False
    decoding.place[b] = at + 1
    if through:
        decoding.room[b] = decoding.capacity[b] - load
    else:
        decoding.room[b] = -1 if mate < 0 else decoding.room[b] - load
    if mate >= 0 and mate != node:
        decoding.order[b, at + 1] = mate
        decoding.free[b, mate] = False
        decoding.place[b] = at + 2


@inner
def _here(decoding, b):
    """The node where row b has got to; before the first one, where one looks around from."""
    at = decoding.place[b]
    return decoding.order[b, at - 1] if at > 0 else decoding.start[b]


@inner
def _finish(decoding, b):
    """Append the last item if only one is left, the shortest way: that needs no network."""
    feat, partner, free = decoding.feat[b], decoding.partner[b], decoding.free[b]
    m, room = np.int64(decoding.size[b]), decoding.room[b]
    last = -1
    for i in range(m):
        if free[i]:
            if last >= 0 and partner[i] != last:
                return
            if last < 0:
                last = i
    if last < 0:
        return
    routed = feat.shape[1] > LOAD
    end = m if routed else np.int64(decoding.order[b, 0])  # where it all ends
    here = np.int64(_here(decoding, b))
    other = np.int64(partner[last] if partner[last] >= 0 else last)
    best, entry, through = np.inf, np.int64(last), routed
    for u, z in ((entry, other), (other, entry)):
        onward = 0.0 if partner[u] < 0 else _apart(feat, z, end)
        if decoding.load[b, last] <= room:
            total = _apart(feat, here, u) + onward
            if total < best:
                best, entry, through = total, u, False
        if routed:
            total = _apart(feat, u, end) + (onward if partner[u] >= 0 else 0.0)
            total += _apart(feat, here, end) if room >= 0 else 0.0
            if total < best:
                best, entry, through = total, u, True
    _enter(decoding, b, entry, through)


@inner
def _apart(feat, a, b):
    dx, dy = feat[a, 0] - feat[b, 0], feat[a, 1] - feat[b, 1]
    return math.sqrt(dx * dx + dy * dy)


@inner
def _more_routes(decoding, b):
    """How many more routes the present solution has."""
    return decoding.fleet[b] - decoding.via[b, : decoding.place[b]].sum()


@inner
def _too_full(decoding, b):
    """Whether what is left does not fit into the routes to come, even if cut at will."""
    free, partner, load = decoding.free[b], decoding.partner[b], decoding.load[b]
    left = 0
    for i in range(decoding.size[b]):
        if free[i] and partner[i] <= i:  # every item once
            left += load[i]
    return left > _more_routes(decoding, b) * decoding.capacity[b]


@kernel
def offer(decoding, look, relative, width):
    """Write down the next decision of unfinished rows, as many as `look` takes; how many."""
    due = 0
    for b in range(len(decoding.size)):
        if due == len(look.rows):
            break
        if decoding.place[b] >= decoding.size[b]:
            continue
        feat = decoding.feat[b]
        first = decoding.size[b] if feat.shape[1] > LOAD else decoding.order[b, 0]
        graph = Graph(feat, decoding.partner[b], decoding.load[b], decoding.capacity[b])
        place = Place(
            feat[first], feat[_here(decoding, b)], decoding.room[b], _more_routes(decoding, b)
        )
        seen = Seen(
            look.nodes[due], look.context[due], look.direct[due], look.chosen[due], look.far
        )
        count = see(graph, decoding.free[b], decoding.size[b], place, relative, width, seen)
        look.nodes[due, count:] = 0.0
        look.direct[due, count:] = False
        look.rows[due], look.counts[due] = b, count
        due += 1
    return due


@kernel
def choose(decoding, look, due, scores, draw, state):
    """Take the decisions that were offered; whether all scores that decided were numbers."""
    sound = True
    outputs = scores.shape[2]
    for a in range(due):
        b = look.rows[a]
        onward = outputs > 1 and _too_full(decoding, b)
        i, through = pick(scores[a, : look.counts[a]], look.direct[a], onward, draw, state)
        sound = sound and not math.isnan(scores[a, i, 1 if through else 0])
        _enter(decoding, b, look.chosen[a, i], through)
        _finish(decoding, b)
    return sound


@kernel
def pick(scores, direct, onward, draw, state):
    """(node, through the depot) to choose, given scores (count, outputs) of one decision.

    Greedily the likelier of "close the route" and the best node to go on to; where the next route
    starts is another question, so all starts count together against going on. Or drawn. `onward`
    forbids to close the route while it can go on.
    """
    count, outputs = scores.shape
    onward = onward and direct[:count].any()
    if draw:
        best, best_score, through = -1, -np.inf, False
        for i in range(count):
            for o in range(outputs):
                if (o == 0 and not direct[i]) or (o > 0 and onward):
                    continue
                # the largest of scores with Gumbel noise is a draw from the softmax
                score = scores[i, o] - math.log(-math.log(max(random_float(state), 1e-300)))
                if best < 0 or score > best_score:
                    best, best_score, through = i, score, o > 0
        return best, through
    best, best_score = -1, np.float64(-np.inf)
    for i in range(count):
        if direct[i] and (best < 0 or scores[i, 0] > best_score):
            best, best_score = i, np.float64(scores[i, 0])
    if outputs == 1 or onward:
        return best, False
    top = 0
    for i in range(count):
        if scores[i, 1] > scores[top, 1]:
            top = i
    if best >= 0:
        total = 0.0
        for i in range(count):
            total += math.exp(scores[i, 1] - scores[top, 1])
        if best_score >= scores[top, 1] + math.log(total):
            return best, False
    return top, True


@kernel
def free_lengths(decoding):
    """Length of the free edges of each row, in the scale of the features."""
    out = np.zeros(len(decoding.size), np.float64)
    routed = decoding.feat.shape[2] > LOAD
    for b in range(len(out)):
        feat, partner = decoding.feat[b], decoding.partner[b]
        order, via, m = decoding.order[b], decoding.via[b], decoding.size[b]
        end = m if routed else order[0]
        here = -1  # the loose end; -1 at the depot
        i = 0
        while i < m:
            u = order[i]
            if via[i] and here >= 0:
                out[b] += _apart(feat, here, end)
            if not via[i] and here >= 0:
                out[b] += _apart(feat, here, u)
            elif via[i] and partner[u] >= 0:
                out[b] += _apart(feat, end, u)
            i += 1
            here = u
            if partner[u] < 0:
                here = u if via[i - 1] else -1
            elif partner[u] != u:
                here = partner[u]
                i += 1
        if here >= 0 and m > 0:
            out[b] += _apart(feat, here, end)
    return out

"""What the network sees of a reduced graph before each decision."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from drhg.hypergraph.features import FLAG, LOAD, features
from drhg.hypergraph.plan import Rules
from drhg.hypergraph.reduce import Graphs
from drhg.kernels.jit import inner, kernel
from drhg.network.weights import ModelConfig

Reals = npt.NDArray[np.float32]
ALL = 1 << 30


@dataclass(frozen=True)
class State:
    """A batch of decisions as the network takes them; row b offers `count[b]` nodes, then zeros."""

    nodes: Reals  # (B, W, node_inputs)
    context: Reals  # (B, context_inputs)
    count: npt.NDArray[np.int32]  # (B,)
    direct: npt.NDArray[np.bool_]  # (B, W): may be reached directly; through the depot all may

    def __len__(self) -> int:
        return len(self.count)


@dataclass(frozen=True)
class Views:
    """Reduced graphs, of whatever instances, in the form in which they are decoded."""

    feat: Reals  # (B, M, 5), or (B, M + 1, 6) with the depot after the nodes of each row
    partner: npt.NDArray[np.int32]  # (B, M)
    load: npt.NDArray[np.int64]  # (B, M)
    capacity: npt.NDArray[np.int64]  # (B,)
    fleet: npt.NDArray[np.int32]  # (B,): routes that the solution has there, 0 for a tour
    size: npt.NDArray[np.int32]  # (B,)

    def __len__(self) -> int:
        return len(self.size)

    @property
    def arrays(self) -> tuple[Any, ...]:
        return self.feat, self.partner, self.load, self.capacity, self.fleet, self.size

    def __getitem__(self, rows: slice) -> Views:
        return Views(*(array[rows] for array in self.arrays))


def views_of(rules: Rules, graphs: Graphs) -> Views:
    """Reduced graphs of one instance as the network meets them."""
    capacity = np.full(len(graphs), rules.capacity, np.int64)
    return Views(
        features(rules, graphs), graphs.partner, graphs.load, capacity, graphs.n_routes, graphs.size
    )


class Scorer(Protocol):
    """Anything that scores decisions: a torch network, its compiled twin, or one's own.

    `config` says what is to be seen (`preset`, `window`, `routes`). `logits` returns scores
    (B, W, outputs) of a `State` as float32, minus infinity where there is nothing to choose: beyond
    the count of a row, and directly (the first output) where `direct` forbids it.
    """

    @property
    def config(self) -> ModelConfig: ...

    def logits(self, state: State) -> Any: ...


def joined(views: Sequence[Views]) -> Views:
    """Rows of several instances as one batch."""
    if len(views) == 1:
        return views[0]
    columns = zip(*(one.arrays for one in views), strict=True)
    return Views(*(_stacked(arrays) for arrays in columns))


def _stacked(arrays: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Arrays (B, M, ...) one below the other, filled up with zeros to the widest."""
    if arrays[0].ndim == 1:
        return np.concatenate(arrays)
    width = max(array.shape[1] for array in arrays)
    out = np.zeros((sum(map(len, arrays)), width, *arrays[0].shape[2:]), arrays[0].dtype)
    at = 0
    for array in arrays:
        out[at : at + len(array), : array.shape[1]] = array
        at += len(array)
    return out


class Graph(NamedTuple):
    """One row of `Views`."""

    feat: Reals  # (m, 5), or (m + 1, 6) with the depot last
    partner: npt.NDArray[np.int32]
    load: npt.NDArray[np.int64]
    capacity: Any


class Place(NamedTuple):
    """Where a decision is taken."""

    first: Reals  # features of the first node; for routes of the depot
    here: Reals  # features of the current node
    room: Any  # what the open route may still load, -1 at the depot
    fleet: Any  # how many more routes the present solution would open


class Seen(NamedTuple):
    """Memory for what the network sees of one decision, on up to W nodes."""

    nodes: Reals  # (W, node_inputs)
    context: Reals  # (context_inputs,)
    direct: npt.NDArray[np.bool_]  # (W,): may be reached directly
    chosen: npt.NDArray[np.int32]  # (W,): which nodes of the graph these are
    far: Reals  # (W,): squares of their distances, to sort by


@inner
def remaining_nearest(feat, free, m, here, width, chosen, far):
    """List the `width` free nodes nearest to `here`, nearest first; all free ones if width is 0."""
    count = 0
    if width == 0:
        for i in range(m):
            if free[i]:
                chosen[count] = i
                count += 1
        return count
    x, y = here[0], here[1]
    for i in range(m):
        if not free[i]:
            continue
        dx, dy = feat[i, 0] - x, feat[i, 1] - y
        d = dx * dx + dy * dy
        if count == width:
            if d >= far[count - 1]:
                continue
            j = count - 1
        else:
            j = count
            count += 1
        while j > 0 and far[j - 1] > d:
            far[j] = far[j - 1]
            chosen[j] = chosen[j - 1]
            j -= 1
        far[j] = d
        chosen[j] = i
    return count


@inner
def shrunk(x, y):
    """An offset of length r as one of length log(1 + r): the depot may be any distance away."""
    r = math.sqrt(x * x + y * y)
    factor = math.log1p(r) / r if r > 1e-6 else 1.0
    return x * factor, y * factor, r * factor


@kernel
def see(graph, free, m, place, relative, width, seen):
    """Write what the network sees of one decision into `seen`; returns how many nodes.

    Of the m nodes those that are `free` are seen, at most `width` unless it is 0. Seen relatively,
    a node is its offset from the current node, its partner's, its offset from the first node, the
    three lengths, the flag; for routes the load, the room after it, whether it is a stub, and how
    much farther from the depot it is than the current node. The context tells among other things
    how much room the routes to come could waste.
    """
    feat, partner, load, capacity = graph
    first, here, room, fleet = place
    nodes, context, direct, chosen, far = seen
    count = remaining_nearest(feat, free, m, here, width, chosen, far)
    inputs = feat.shape[1]
    routed = inputs > LOAD
    for j in range(count):
        direct[j] = load[chosen[j]] <= room
    if not relative:
        for j in range(count):
            for c in range(inputs):
                nodes[j, c] = feat[chosen[j], c]
        for c in range(inputs):
            context[c] = first[c]
            context[inputs + c] = here[c]
    else:
        vx, vy = first[0] - here[0], first[1] - here[1]
        away = math.sqrt(vx * vx + vy * vy)
        for j in range(count):
            i = chosen[j]
            ax, ay = feat[i, 0] - here[0], feat[i, 1] - here[1]
            bx, by = feat[i, 2] - here[0], feat[i, 3] - here[1]
            cx, cy = feat[i, 0] - first[0], feat[i, 1] - first[1]
            nodes[j, 0], nodes[j, 1] = ax, ay
            nodes[j, 2], nodes[j, 3] = bx, by
            nodes[j, 4], nodes[j, 5] = cx, cy
            nodes[j, 6] = math.sqrt(ax * ax + ay * ay)
            nodes[j, 7] = math.sqrt(bx * bx + by * by)
            nodes[j, 8] = math.sqrt(cx * cx + cy * cy)
            nodes[j, 9] = feat[i, FLAG]
            if routed:
                nodes[j, 10] = feat[i, LOAD]
                nodes[j, 11] = (room - load[i]) / capacity
                nodes[j, 12] = 1.0 if partner[i] < 0 else 0.0
                nodes[j, 13] = nodes[j, 8] - away
                nodes[j, 4], nodes[j, 5], nodes[j, 8] = shrunk(cx, cy)
                if partner[i] < 0:
                    nodes[j, 2], nodes[j, 3], nodes[j, 7] = shrunk(bx, by)
        context[0], context[1], context[2] = vx, vy, away
        context[3] = count / 50.0
        if routed:
            context[0], context[1], context[2] = shrunk(vx, vy)
            left, stubs = 0, 0
            for i in range(m):
                if free[i] and partner[i] <= i:  # every item once
                    left += load[i]
                    stubs += 1 if partner[i] < 0 else 0
            context[4] = math.log1p(left / capacity)
            context[5] = math.log1p(np.float64(stubs))
            context[6] = 1.0 if room >= 0 else 0.0
            spare = fleet - left / capacity  # what the routes to come could load besides
            context[7] = math.log1p(max(0.0, fleet))
            context[8] = min(1.0, max(-1.0, spare))
            context[9] = min(1.0, max(-1.0, 10.0 * spare))
    if routed:
        context[len(context) - 1] = room / capacity if room >= 0 else 1.0
    return count


@kernel
def orient(feat, m, relative, angle, mirror):
    """Turn the features of one graph by a symmetry, in place; of routes the depot's too.

    What is seen relatively may be turned by any angle and mirrored. The paper's features keep x as
    the long side, so they are mirrored along either axis: by `mirror`, and by the sign of `angle`.
    """
    rows = m + 1 if feat.shape[1] > LOAD else m
    if relative:
        c, s = math.cos(angle), math.sin(angle)
        flip = -1.0 if mirror else 1.0
        for i in range(rows):
            for k in (0, 2):
                x, y = np.float64(feat[i, k]), np.float64(feat[i, k + 1])
                feat[i, k] = c * x - s * y
                feat[i, k + 1] = flip * (s * x + c * y)
        return
    high_x, high_y = feat[0, 0], feat[0, 1]
    for i in range(m):
        high_x, high_y = max(high_x, feat[i, 0]), max(high_y, feat[i, 1])
    for i in range(rows):
        for k in (0, 2):
            if mirror:
                feat[i, k] = high_x - feat[i, k]
            if angle < 0.0:
                feat[i, k + 1] = high_y - feat[i, k + 1]


@kernel
def orient_rows(feat, size, relative, angles, mirrors):
    """`orient` for a batch."""
    for b in range(len(size)):
        orient(feat[b], size[b], relative, angles[b], mirrors[b])

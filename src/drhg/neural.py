# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False
"""The decision process of the network, without torch: what it sees, and what follows from it.

A repair is a sequence of decisions between items. At each, some nodes remain; the network scores
them, seen from the first node and the current one (paper, section "Model Structure"). The one
function that writes down what is seen, `see`, serves training and inference alike.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from drhg.compiled import inner, kernel, random_float, random_state
from drhg.errors import ModelError
from drhg.hypergraph import OK, Graphs, Repaired, Rules, features, repeated, walk
from drhg.network_kernels import (
    LEAD,
    fast_kernel,
    forward,
    layout,
    score_rows,
    turned_weights,
    up,
)
from drhg.network_kernels import compiles as economy_compiles
from drhg.paper_kernels import CompiledPaper
from drhg.paper_kernels import compiles as paper_compiles
from drhg.problem import Metric
from drhg.repair import Repair
from drhg.weights import ModelConfig, read_weights

log = logging.getLogger("drhg")

Reals = npt.NDArray[np.float32]
ALL = 1 << 30
NO_SCORES = "its scores are not numbers"
GROUP = 4  # decisions that pass through the compiled network together; measured
FLAG, LOAD = 4, 5  # columns of the features after x, y, partner's x, partner's y


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
    """Anything that scores decisions: a torch network, or its compiled twin."""

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
def _shrunk(x, y):
    """An offset of length r as one of length log(1 + r): the depot may be any distance away."""
    r = math.sqrt(x * x + y * y)
    factor = math.log1p(r) / r if r > 1e-6 else 1.0
    return x * factor, y * factor, r * factor


@kernel
def see(
    feat, partner, load, capacity, fleet, m, free, first, here, room,
    relative, width, nodes, context, direct, chosen, far,
):  # fmt: skip
    """Write what the network sees of one decision into `nodes` and `context`; how many nodes.

    `feat` (m, 5 or 6) are the features of equations 1-5, `first` and `here` those of the first
    node (for routes: the depot) and the current one. `room` is what the open route may still load,
    -1 at the depot; `direct` says which nodes fit into it. `fleet` is how many more routes the
    present solution would open: it tells how much room may be wasted. Seen relatively, a node is
    its offset from the current node, its partner's, its offset from the first node, the three
    lengths, the flag; for routes the load, the room after it, whether it is a stub, and how much
    farther from the depot it is than the current node.
    """
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
                nodes[j, 4], nodes[j, 5], nodes[j, 8] = _shrunk(cx, cy)
                if partner[i] < 0:
                    nodes[j, 2], nodes[j, 3], nodes[j, 7] = _shrunk(bx, by)
        context[0], context[1], context[2] = vx, vy, away
        context[3] = count / 50.0
        if routed:
            context[0], context[1], context[2] = _shrunk(vx, vy)
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


# --- decoding ------------------------------------------------------------------------------------
# A tour is entered at its start. Routes begin at the depot, and `start` is only where one looks
# around from first: the network chooses where each route begins.


@inner
def _enter(partner, load, capacity, free, order, via, place, room, node, through):
    """Append the item entered at `node`; returns the place after it and the room left (see `see`).

    Through the depot a new route begins; along a stub taken directly the open one ends.
    """
    order[place], via[place] = node, through
    free[node] = False
    if through:
        room = capacity - load[node]
    else:
        room = -1 if partner[node] < 0 else room - load[node]
    if partner[node] < 0 or partner[node] == node:
        return place + 1, room
    order[place + 1] = partner[node]
    free[partner[node]] = False
    return place + 2, room


@kernel
def _apart(feat, a, b):
    dx, dy = feat[a, 0] - feat[b, 0], feat[a, 1] - feat[b, 1]
    return math.sqrt(dx * dx + dy * dy)


@inner
def _finish(feat, partner, load, capacity, m, free, order, via, place, here, room):
    """Append the last item if only one is left, the shortest way: that needs no network.

    Returns the next place and the room left.
    """
    last = -1
    for i in range(m):
        if free[i]:
            if last >= 0 and partner[i] != last:
                return place, room
            if last < 0:
                last = i
    if last < 0:
        return place, room
    routed = feat.shape[1] > LOAD
    end = m if routed else order[0]  # where it all ends: the depot, or the first node
    other = np.int64(partner[last] if partner[last] >= 0 else last)
    best, entry, through = np.inf, np.int64(last), routed
    for u, z in ((entry, other), (other, entry)):
        onward = 0.0 if partner[u] < 0 else _apart(feat, z, end)
        if load[last] <= room:
            total = _apart(feat, here, u) + onward
            if total < best:
                best, entry, through = total, u, False
        if routed:
            total = _apart(feat, u, end) + (onward if partner[u] >= 0 else 0.0)
            total += _apart(feat, here, end) if room >= 0 else 0.0
            if total < best:
                best, entry, through = total, u, True
    return _enter(partner, load, capacity, free, order, via, place, room, entry, through)


@kernel
def _begin(feat, partner, load, capacity, m, free, order, via, start):
    """The place and the room before the first decision."""
    if m == 0:
        return 0, -1
    if feat.shape[1] > LOAD:
        place, room = 0, -1
    else:
        place, room = _enter(partner, load, capacity, free, order, via, 0, capacity, start, False)
    here = order[place - 1] if place > 0 else start
    return _finish(feat, partner, load, capacity, m, free, order, via, place, here, room)


@inner
def _too_full(partner, load, capacity, free, m, more):
    """Whether what is left does not fit into `more` routes, even if cut at will."""
    left = 0
    for i in range(m):
        if free[i] and partner[i] <= i:  # every item once
            left += load[i]
    return left > more * capacity


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
def _begin_rows(feat, partner, load, capacity, fleet, size, start, free, order, via, place, room):
    for b in range(len(size)):
        m = size[b]
        free[b, :m] = True
        place[b], room[b] = _begin(
            feat[b], partner[b], load[b], capacity[b], m, free[b], order[b], via[b], start[b]
        )


@kernel
def _see_rows(
    feat, partner, load, capacity, fleet, size, start, free, order, via, place, room,
    relative, width, rows, nodes, context, count, direct, chosen,
):  # fmt: skip
    """What every unfinished row sees; returns how many there are, listed in `rows`."""
    far = np.empty(max(1, width), np.float32)
    active = 0
    for b in range(len(size)):
        m = size[b]
        if place[b] >= m:
            continue
        a = active
        active += 1
        rows[a] = b
        here = order[b, place[b] - 1] if place[b] > 0 else start[b]
        first = m if feat.shape[2] > LOAD else order[b, 0]
        more = fleet[b] - via[b, : place[b]].sum()
        count[a] = see(
            feat[b], partner[b], load[b], capacity[b], more, m, free[b], feat[b, first],
            feat[b, here], room[b], relative, width,
            nodes[a], context[a], direct[a], chosen[a], far,
        )  # fmt: skip
        nodes[a, count[a] :] = 0.0
        direct[a, count[a] :] = False
    return active


@kernel
def _advance_rows(
    feat, partner, load, capacity, fleet, size, free, order, via, place, room,
    rows, active, scores, count, direct, chosen, draw, state,
):  # fmt: skip
    sound = True
    outputs = scores.shape[2]
    for a in range(active):
        b = rows[a]
        more = fleet[b] - via[b, : place[b]].sum()
        onward = outputs > 1 and _too_full(partner[b], load[b], capacity[b], free[b], size[b], more)
        i, through = pick(scores[a, : count[a]], direct[a], onward, draw, state)
        sound = sound and not math.isnan(scores[a, i, 1 if through else 0])
        place[b], room[b] = _enter(
            partner[b], load[b], capacity[b], free[b], order[b], via[b], place[b], room[b],
            chosen[a, i], through,
        )  # fmt: skip
        place[b], room[b] = _finish(
            feat[b], partner[b], load[b], capacity[b], size[b], free[b], order[b], via[b],
            place[b], order[b, place[b] - 1], room[b],
        )  # fmt: skip
    return sound


def decode(
    model: Scorer,
    views: Views,
    start: npt.NDArray[np.int32],
    rng: np.random.Generator | None = None,
) -> Repaired:
    """Reconnect the items of each row: a tour entered at `start`, or routes, seen from there first.

    Greedy, or with a generator drawn from the network's distribution. All rows take their
    decisions together; a row with one item left is finished without the network.
    """
    if isinstance(model, Compiled):
        return model.decode(views, start, rng)
    B, M = views.partner.shape
    config = model.config
    width = config.window or M
    free = np.zeros((B, M), np.bool_)
    order = np.full((B, M), -1, np.int32)
    via = np.zeros((B, M), np.bool_)
    place, rows, count = np.zeros(B, np.int32), np.empty(B, np.int32), np.zeros(B, np.int32)
    room = np.zeros(B, np.int64)
    nodes = np.zeros((B, width, config.node_inputs), np.float32)
    context = np.zeros((B, config.context_inputs), np.float32)
    direct = np.zeros((B, width), np.bool_)
    chosen = np.zeros((B, width), np.int32)
    state = random_state(0 if rng is None else int(rng.integers(2**63)))
    _begin_rows(*views.arrays, start, free, order, via, place, room)
    while True:
        active = _see_rows(
            *views.arrays, start, free, order, via, place, room, config.relative, config.window,
            rows, nodes, context, count, direct, chosen,
        )  # fmt: skip
        if active == 0:
            return Repaired(order, via)
        widest = int(count[:active].max())
        offered = State(
            nodes[:active, :widest], context[:active], count[:active], direct[:active, :widest]
        )
        scores = np.asarray(model.logits(offered), np.float32)  # (active, widest, outputs)
        sound = _advance_rows(
            *views.arrays, free, order, via, place, room,
            rows, active, scores, count, direct, chosen, rng is not None, state,
        )  # fmt: skip
        if not sound:
            raise FloatingPointError(NO_SCORES)


@kernel
def _free_lengths(feat, partner, load, capacity, fleet, size, order, via):
    out = np.zeros(len(size), np.float64)
    routed = feat.shape[2] > LOAD
    for b in range(len(size)):
        m = size[b]
        end = m if routed else order[b, 0]
        here = -1  # the loose end; -1 at the depot
        i = 0
        while i < m:
            u = order[b, i]
            if via[b, i] and here >= 0:
                out[b] += _apart(feat[b], here, end)
            if not via[b, i] and here >= 0:
                out[b] += _apart(feat[b], here, u)
            elif via[b, i] and partner[b, u] >= 0:
                out[b] += _apart(feat[b], end, u)
            i += 1
            here = u
            if partner[b, u] < 0:
                here = u if via[b, i - 1] else -1
            elif partner[b, u] != u:
                here = partner[b, u]
                i += 1
        if here >= 0 and m > 0:
            out[b] += _apart(feat[b], here, end)
    return out


def free_lengths(views: Views, repaired: Repaired) -> npt.NDArray[np.float64]:
    """Length of the free edges of each repaired row, in the scale of the features."""
    found: npt.NDArray[np.float64] = _free_lengths(*views.arrays, repaired.order, repaired.via)
    return found


# --- the economical network without torch --------------------------------------------------------


@fast_kernel
def _decode_rows(
    w, turned, d, hidden, layers, heads, outputs, window, group,
    feat, partner, load, capacity, fleet, size, start, draw, state,
    order, via, free, nodes, context,
):  # fmt: skip
    """Repairs of all rows, `group` of them side by side; `draw` instead of always the best.

    Returns whether all scores that decided were numbers.
    `nodes` (group * (LEAD + window), inputs) and `context` (group, inputs) are memory to work in.
    """
    rows = len(feat)
    T, S = group * (LEAD + window), up(LEAD + window)
    x, mid = np.empty((1, T, d), np.float32), np.empty((1, T, d), np.float32)
    n1, n2 = np.empty((1, T, d), np.float32), np.empty((1, T, d), np.float32)
    r1, r2 = np.empty((1, T), np.float32), np.empty((1, T), np.float32)
    mixed, qkv = np.empty((1, T, d), np.float32), np.empty((1, T, 3 * d), np.float32)
    share = np.zeros((1, group, heads, S, S), np.float32)
    act = np.empty((1, T, hidden), np.float32)
    last, r_last = np.empty((T, d), np.float32), np.empty(T, np.float32)
    y = np.empty((group, d), np.float32)
    scores = np.empty((T, outputs), np.float32)
    kt = np.zeros((d // heads, S), np.float32)
    begin = np.zeros(group + 1, np.int64)
    direct = np.empty((group, window), np.bool_)
    chosen, far = np.empty((group, window), np.int32), np.empty(window, np.float32)
    place, room = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
    row_of = np.empty(group, np.int64)
    for b in range(rows):
        place[b], room[b] = _begin(
            feat[b], partner[b], load[b], capacity[b], size[b], free[b], order[b], via[b], start[b]
        )
    sound = True
    ahead = 0  # the first row that may be unfinished
    while ahead < rows:
        G = 0
        b = ahead
        while b < rows and group > G:
            if place[b] < size[b]:
                row_of[G] = b
                at = begin[G]
                nodes[at : at + LEAD] = 0.0
                here = order[b, place[b] - 1] if place[b] > 0 else start[b]
                first = size[b] if outputs > 1 else order[b, 0]
                more = fleet[b] - via[b, : place[b]].sum()
                count = see(
                    feat[b], partner[b], load[b], capacity[b], more, size[b], free[b],
                    feat[b, first], feat[b, here], room[b], True, window,
                    nodes[at + LEAD :], context[G], direct[G], chosen[G], far,
                )  # fmt: skip
                G += 1
                begin[G] = at + LEAD + count
            elif b == ahead:
                ahead += 1
            b += 1
        if G == 0:
            break
        forward(
            w, turned, d, hidden, layers, heads, outputs, nodes, context, begin, G, 0,
            x, y, mid, n1, r1, qkv, share, mixed, n2, r2, act, last, r_last, scores, kt,
        )  # fmt: skip
        for g in range(G):
            b = row_of[g]
            offered = scores[begin[g] + LEAD : begin[g + 1]]
            more = fleet[b] - via[b, : place[b]].sum()
            onward = outputs > 1 and _too_full(
                partner[b], load[b], capacity[b], free[b], size[b], more
            )
            i, through = pick(offered, direct[g], onward, draw, state)
            sound = sound and not math.isnan(offered[i, 1 if through else 0])
            place[b], room[b] = _enter(
                partner[b], load[b], capacity[b], free[b], order[b], via[b], place[b], room[b],
                chosen[g, i], through,
            )  # fmt: skip
            place[b], room[b] = _finish(
                feat[b], partner[b], load[b], capacity[b], size[b], free[b], order[b], via[b],
                place[b], order[b, place[b] - 1], room[b],
            )  # fmt: skip
    return sound


class Compiled:
    """The economical network as compiled code; needs no torch. Equal to it up to rounding."""

    def __init__(
        self,
        config: ModelConfig,
        tensors: Mapping[str, npt.NDArray[Any]],
        *,
        threads: int = 1,
        group: int = GROUP,
    ) -> None:
        if not economy_compiles(config) or config.window < 1:
            raise ModelError("this network is not compiled: it needs torch")
        names = layout(config)
        if {name: tuple(tensor.shape) for name, tensor in tensors.items()} != dict(names):
            raise ModelError("the weights do not belong to this network")
        self.config = config
        self.group = group
        parts = [np.asarray(tensors[name], np.float32).ravel() for name, _ in names]
        self.flat = np.concatenate(parts)
        shape = config.d, config.hidden, config.layers
        self.turned = turned_weights(
            self.flat, *shape, config.node_inputs, config.context_inputs, config.outputs
        )
        self.threads = threads
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None

    @property
    def _network(self) -> tuple[Any, ...]:
        c = self.config
        return self.flat, self.turned, c.d, c.hidden, c.layers, c.heads, c.outputs

    def logits(self, state: State) -> Reals:
        """Scores (B, W, outputs), minus infinity where there is nothing to choose."""
        arrays = state.nodes, state.context, state.count, state.direct
        nodes, context, count, direct = (np.ascontiguousarray(array) for array in arrays)
        scores = np.empty((*nodes.shape[:2], self.config.outputs), np.float32)
        score_rows(*self._network, self.group, nodes, context, count, direct, scores)
        return scores

    def decode(
        self,
        views: Views,
        start: npt.NDArray[np.int32],
        rng: np.random.Generator | None = None,
    ) -> Repaired:
        """As the function `decode`, every thread with its share of the rows."""
        B, M = views.partner.shape
        c, group = self.config, self.group
        order = np.full((B, M), -1, np.int32)
        via = np.zeros((B, M), np.bool_)
        free = np.arange(M)[None, :] < views.size[:, None]
        shares = min(self.threads, max(1, B))
        seeds = np.zeros(shares, np.int64) if rng is None else rng.integers(2**63, size=shares)

        def run(i: int) -> bool:
            rows = slice(B * i // shares, B * (i + 1) // shares)
            nodes = np.zeros((group * (LEAD + c.window), c.node_inputs), np.float32)
            context = np.zeros((group, c.context_inputs), np.float32)
            sound: bool = _decode_rows(
                *self._network, c.window, group, *views[rows].arrays, start[rows],
                rng is not None, random_state(int(seeds[i])), order[rows], via[rows], free[rows],
                nodes, context,
            )  # fmt: skip
            return sound

        if self._pool is None or shares == 1:
            sound = [run(0)]
        else:
            sound = list(self._pool.map(run, range(shares)))
        if not all(sound):
            raise FloatingPointError(NO_SCORES)
        return Repaired(order, via)


# --- the repairer --------------------------------------------------------------------------------


class NeuralRepair:
    """Let the network reconnect the pieces: item after item, from a random one, seen at random.

    `greedy` takes the most probable node, else one is drawn. Of `alternatives` repairs of the same
    graph, each from another start and in another symmetry, the shortest is returned.
    """

    def __init__(
        self, model: Scorer, *, greedy: bool = True, alternatives: int = 1, seed: int | None = None
    ) -> None:
        if alternatives < 1:
            raise ValueError("at least one alternative")
        self.model = model
        self.greedy = greedy
        self.alternatives = alternatives
        self.rng = None if seed is None else np.random.default_rng(seed)
        self.at_once = ALL  # rows; fewer once memory ran out

    def __call__(self, rules: Rules, graphs: Graphs, rng: np.random.Generator) -> Repaired:
        return self.together([(rules, graphs, rng)])[0]

    def together(
        self, asked: Sequence[tuple[Rules, Graphs, np.random.Generator]]
    ) -> list[Repaired]:
        """Repair graphs of several instances as one batch; each is seen as it would be alone."""
        times = self.alternatives
        rows = [(rules, repeated(graphs, times)) for rules, graphs, _ in asked]
        rngs = [self.rng or rng for _, _, rng in asked]
        seen = [self._seen(*row, rng) for row, rng in zip(rows, rngs, strict=True)]
        views = joined([views for views, _ in seen])
        start = np.concatenate([start for _, start in seen])
        found = self._decoded(views, start, None if self.greedy else rngs[0])
        out, at = [], 0
        for rules, graphs in rows:
            part = slice(at, at + len(graphs)), slice(0, graphs.node.shape[1])
            at += len(graphs)
            order, via = (
                np.ascontiguousarray(found.order[part]),
                np.ascontiguousarray(found.via[part]),
            )
            repaired = Repaired(order, via)
            if times > 1:
                verdict, total, _ = walk(rules, graphs, repaired)
                total = np.where(verdict == OK, total, np.inf).reshape(-1, times)
                best = np.arange(len(total)) * times + total.argmin(axis=1)
                repaired = Repaired(repaired.order[best], repaired.via[best])
            out.append(repaired)
        return out

    def _decoded(
        self, views: Views, start: npt.NDArray[np.int32], rng: np.random.Generator | None
    ) -> Repaired:
        """All rows, as many at once as memory allows: they do not depend on one another."""
        while True:
            step = max(1, min(len(views), self.at_once))
            parts = [slice(a, a + step) for a in range(0, max(1, len(views)), step)]
            try:
                found = [decode(self.model, views[part], start[part], rng) for part in parts]
                break
            except (MemoryError, RuntimeError) as error:  # torch raises the latter
                if step == 1 or not (isinstance(error, MemoryError) or "memory" in str(error)):
                    raise
                if self.at_once == ALL:
                    log.warning("the network is out of memory: in smaller batches from now on")
                self.at_once = step // 2
        if len(found) == 1:
            return found[0]
        order, via = ([getattr(one, name) for one in found] for name in ("order", "via"))
        return Repaired(np.concatenate(order), np.concatenate(via))

    def _seen(
        self, rules: Rules, graphs: Graphs, rng: np.random.Generator
    ) -> tuple[Views, npt.NDArray[np.int32]]:
        """Every graph in a random symmetry, and where to start."""
        if rules.space.metric == Metric.EXPLICIT:
            raise ModelError("a network needs coordinates; this instance is a bare matrix")
        if self.model.config.routes != (rules.depot >= 0):
            kind = "routes" if self.model.config.routes else "tours"
            raise ModelError(f"these weights repair {kind} only")
        views = views_of(rules, graphs)
        start = rng.integers(np.maximum(views.size, 1)).astype(np.int32)
        turns = rng.uniform(-np.pi, np.pi, len(views))
        mirrors = rng.random(len(views)) < 0.5
        orient_rows(views.feat, views.size, self.model.config.relative, turns, mirrors)
        return views, start


class Guarded:
    """A network and its stand-in, which takes over for good, with a warning, when that fails."""

    def __init__(self, network: NeuralRepair, other: Repair) -> None:
        self.network, self.other = network, other
        self.failed = False

    def __call__(self, rules: Rules, graphs: Graphs, rng: np.random.Generator) -> Repaired:
        return self.together([(rules, graphs, rng)])[0]

    def together(
        self, asked: Sequence[tuple[Rules, Graphs, np.random.Generator]]
    ) -> list[Repaired]:
        if not self.failed:
            try:
                return self.network.together(asked)
            except (MemoryError, RuntimeError, FloatingPointError) as error:
                self.failed = True
                reason = str(error) or type(error).__name__
                log.warning("the network failed, another repair goes on: %s", reason)
        return [self.other(*one) for one in asked]


@kernel
def orient_rows(feat, size, relative, angles, mirrors):
    """`orient` for a batch."""
    for b in range(len(size)):
        orient(feat[b], size[b], relative, angles[b], mirrors[b])


def load_compiled(path: str, *, sha256: str | None = None, threads: int = 1) -> Compiled:
    """The economical network from a weights file, without torch."""
    config, tensors, _ = read_weights(path, sha256=sha256)
    return Compiled(config, tensors, threads=threads)


def compiled(
    config: ModelConfig, tensors: Mapping[str, npt.NDArray[Any]], threads: int = 1
) -> Scorer | None:
    """A network as compiled code, or None where only torch can run it."""
    if config.preset == "paper":
        return CompiledPaper(config, tensors, threads=threads) if paper_compiles(config) else None
    fits = economy_compiles(config) and config.window >= 1
    return Compiled(config, tensors, threads=threads) if fits else None

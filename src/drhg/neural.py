# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False
"""The decision process of the network, without torch: what it sees, and what follows from it.

A repair is a sequence of decisions between items. At each, some nodes remain; the network scores
them, seen from the first node and the current one (paper, section "Model Structure"). The one
function that writes down what is seen, `see`, serves training and inference alike.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from drhg.compiled import distance, kernel, random_float, random_state
from drhg.errors import ModelError
from drhg.hypergraph import Graphs, Repaired, Rules, features
from drhg.network_kernels import (
    LANES,
    LEAD,
    fast_kernel,
    forward,
    layout,
    score_rows,
    turned_weights,
    up,
)
from drhg.paper_kernels import CompiledPaper, compiles
from drhg.problem import Metric
from drhg.weights import ModelConfig, read_weights

Reals = npt.NDArray[np.float32]
GROUP = 4  # decisions that pass through the compiled network together; measured
FLAG, LOAD = 4, 5  # columns of the features after x, y, partner's x, partner's y


@dataclass(frozen=True)
class State:
    """A batch of decisions as the network takes them; row b offers `count[b]` nodes, then zeros."""

    nodes: Reals  # (B, W, node_inputs)
    context: Reals  # (B, context_inputs)
    count: npt.NDArray[np.int32]  # (B,)

    def __len__(self) -> int:
        return len(self.count)


class Scorer(Protocol):
    """Anything that scores decisions: a torch network, or its compiled twin."""

    @property
    def config(self) -> ModelConfig: ...

    def logits(self, state: State) -> Any: ...


@kernel
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


@kernel
def see(feat, free, m, first, here, room, relative, width, nodes, context, chosen, far):
    """Write what the network sees of one decision into `nodes` and `context`; how many nodes.

    `feat` (m, 5 or 6) are the features of equations 1-5, `first` and `here` those of the first
    and the current node. Seen relatively, a node is its offset from the current node, its
    partner's, its offset from the first node, the three lengths, the flag (and the load).
    """
    count = remaining_nearest(feat, free, m, here, width, chosen, far)
    inputs = feat.shape[1]
    if not relative:
        for j in range(count):
            for c in range(inputs):
                nodes[j, c] = feat[chosen[j], c]
        for c in range(inputs):
            context[c] = first[c]
            context[inputs + c] = here[c]
    else:
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
            for c in range(FLAG, inputs):
                nodes[j, 5 + c] = feat[i, c]
        vx, vy = first[0] - here[0], first[1] - here[1]
        context[0], context[1] = vx, vy
        context[2] = math.sqrt(vx * vx + vy * vy)
        context[3] = count / 50.0
    if inputs > LOAD:
        context[len(context) - 1] = room
    return count


@kernel
def orient(feat, m, relative, angle, mirror):
    """Turn the features of one graph by a symmetry, in place.

    What is seen relatively may be turned by any angle and mirrored. The paper's features keep x as
    the long side, so they are mirrored along either axis: by `mirror`, and by the sign of `angle`.
    """
    if relative:
        c, s = math.cos(angle), math.sin(angle)
        flip = -1.0 if mirror else 1.0
        for i in range(m):
            for k in (0, 2):
                x, y = np.float64(feat[i, k]), np.float64(feat[i, k + 1])
                feat[i, k] = c * x - s * y
                feat[i, k + 1] = flip * (s * x + c * y)
        return
    high_x, high_y = feat[0, 0], feat[0, 1]
    for i in range(m):
        high_x, high_y = max(high_x, feat[i, 0]), max(high_y, feat[i, 1])
    for i in range(m):
        for k in (0, 2):
            if mirror:
                feat[i, k] = high_x - feat[i, k]
            if angle < 0.0:
                feat[i, k + 1] = high_y - feat[i, k + 1]


# --- decoding ------------------------------------------------------------------------------------


@kernel
def _enter(partner, free, order, place, node):
    """Append the item entered at `node`; returns the place after it."""
    order[place] = node
    free[node] = False
    if partner[node] == node:
        return place + 1
    order[place + 1] = partner[node]
    free[partner[node]] = False
    return place + 2


@kernel
def _finish(feat, partner, free, m, order, place):
    """Append the last item if only one is left: its direction needs no network. The next place."""
    last = -1
    for i in range(m):
        if free[i]:
            if last >= 0 and partner[i] != last:
                return place
            if last < 0:
                last = i
    if last < 0:
        return place
    other = partner[last]
    if other != last:
        a, z = order[place - 1], order[0]
        straight = _apart(feat, a, last) + _apart(feat, other, z)
        if _apart(feat, a, other) + _apart(feat, last, z) < straight:
            last = other
    return _enter(partner, free, order, place, last)


@kernel
def _apart(feat, a, b):
    dx, dy = feat[a, 0] - feat[b, 0], feat[a, 1] - feat[b, 1]
    return math.sqrt(dx * dx + dy * dy)


@kernel
def _begin_rows(feat, partner, size, start, free, order, place):
    for b in range(len(size)):
        m = size[b]
        free[b, :m] = True
        place[b] = 0
        if m > 0:
            place[b] = _enter(partner[b], free[b], order[b], 0, start[b])
            place[b] = _finish(feat[b], partner[b], free[b], m, order[b], place[b])


@kernel
def _see_rows(feat, size, free, order, place, relative, width, rows, nodes, context, count, chosen):
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
        count[a] = see(
            feat[b], free[b], m, feat[b, order[b, 0]], feat[b, order[b, place[b] - 1]], 0.0,
            relative, width, nodes[a], context[a], chosen[a], far,
        )  # fmt: skip
        nodes[a, count[a] :] = 0.0
    return active


@kernel
def _advance_rows(feat, partner, size, free, order, place, rows, chosen, choice):
    for a in range(len(choice)):
        b = rows[a]
        node = chosen[a, choice[a]]
        place[b] = _enter(partner[b], free[b], order[b], place[b], node)
        place[b] = _finish(feat[b], partner[b], free[b], size[b], order[b], place[b])


def decode(
    model: Scorer,
    feat: Reals,
    partner: npt.NDArray[np.int32],
    size: npt.NDArray[np.int32],
    start: npt.NDArray[np.int32],
    rng: np.random.Generator | None = None,
) -> npt.NDArray[np.int32]:
    """Orders (B, M) of tours through the items of each row, from the items entered at `start`.

    Greedy, or with a generator drawn from the network's distribution. All rows take their
    decisions together; a row with one item left is finished without the network.
    """
    if isinstance(model, Compiled):
        return model.decode(feat, partner, size, start, rng)
    B, M, _ = feat.shape
    config = model.config
    width = config.window or M
    free = np.zeros((B, M), np.bool_)
    order = np.full((B, M), -1, np.int32)
    place = np.zeros(B, np.int32)
    rows = np.empty(B, np.int32)
    nodes = np.zeros((B, width, config.node_inputs), np.float32)
    context = np.zeros((B, config.context_inputs), np.float32)
    count = np.zeros(B, np.int32)
    chosen = np.zeros((B, width), np.int32)
    _begin_rows(feat, partner, size, start, free, order, place)
    while True:
        active = _see_rows(
            feat, size, free, order, place, config.relative, config.window,
            rows, nodes, context, count, chosen,
        )  # fmt: skip
        if active == 0:
            return order
        widest = int(count[:active].max())
        state = State(nodes[:active, :widest], context[:active], count[:active])
        scores = model.logits(state)[..., 0]  # (active, widest)
        if rng is not None:
            scores = scores + rng.gumbel(size=scores.shape)
        choice = scores.argmax(axis=1)
        _advance_rows(feat, partner, size, free, order, place, rows, chosen, choice)


@kernel
def free_lengths(feat, partner, size, order):
    """Length of the free edges of each row's tour, in the scale of the features."""
    out = np.zeros(len(size), np.float64)
    for b in range(len(size)):
        m = size[b]
        for i in range(m):
            a, z = order[b, i], order[b, i + 1 if i + 1 < m else 0]
            if partner[b, a] != z or m <= 2:
                out[b] += _apart(feat[b], a, z)
    return out


# --- the economical network without torch --------------------------------------------------------


@fast_kernel
def _decode_rows(
    w, turned, d, hidden, layers, heads, window, group, feat, partner, size, start,
    draw, state, order, free,
):  # fmt: skip
    """The tours of all rows, `group` of them side by side; `draw` instead of always the best."""
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
    scores = np.empty((T, 1), np.float32)
    kt = np.zeros((d // heads, S), np.float32)
    begin = np.zeros(group + 1, np.int64)
    nodes, context = np.zeros((T, 10), np.float32), np.empty((group, 4), np.float32)
    chosen, far = np.empty((group, window), np.int32), np.empty(window, np.float32)
    place, row_of = np.zeros(rows, np.int32), np.empty(group, np.int64)
    for b in range(rows):
        if size[b] > 0:
            place[b] = _enter(partner[b], free[b], order[b], 0, start[b])
            place[b] = _finish(feat[b], partner[b], free[b], size[b], order[b], place[b])
    ahead = 0  # the first row that may be unfinished
    while ahead < rows:
        G = 0
        b = ahead
        while b < rows and group > G:
            if place[b] < size[b]:
                row_of[G] = b
                at = begin[G]
                nodes[at : at + LEAD] = 0.0
                count = see(
                    feat[b], free[b], size[b], feat[b, order[b, 0]],
                    feat[b, order[b, place[b] - 1]], 0.0, True, window,
                    nodes[at + LEAD :], context[G], chosen[G], far,
                )  # fmt: skip
                G += 1
                begin[G] = at + LEAD + count
            elif b == ahead:
                ahead += 1
            b += 1
        if G == 0:
            break
        forward(
            w, turned, d, hidden, layers, heads, 1, nodes, context, begin, G, 0,
            x, y, mid, n1, r1, qkv, share, mixed, n2, r2, act, last, r_last, scores, kt,
        )  # fmt: skip
        for g in range(G):
            b = row_of[g]
            best, best_score = 0, -np.inf
            for i in range(begin[g] + LEAD, begin[g + 1]):
                score = np.float64(scores[i, 0])
                if draw:  # the largest of scores with Gumbel noise is a draw from the softmax
                    score -= math.log(-math.log(max(random_float(state), 1e-300)))
                if score > best_score:
                    best, best_score = i - begin[g] - LEAD, score
            place[b] = _enter(partner[b], free[b], order[b], place[b], chosen[g, best])
            place[b] = _finish(feat[b], partner[b], free[b], size[b], order[b], place[b])


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
        if config.preset != "economy" or config.d // config.heads % LANES or config.window < 1:
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
        return self.flat, self.turned, c.d, c.hidden, c.layers, c.heads

    def logits(self, state: State) -> Reals:
        """Scores (B, W, outputs), minus infinity beyond each row's count."""
        nodes, context = (np.ascontiguousarray(array) for array in (state.nodes, state.context))
        outputs = self.config.outputs
        scores = np.empty((*nodes.shape[:2], outputs), np.float32)
        score_rows(*self._network, outputs, self.group, nodes, context, state.count, scores)
        return scores

    def decode(
        self,
        feat: Reals,
        partner: npt.NDArray[np.int32],
        size: npt.NDArray[np.int32],
        start: npt.NDArray[np.int32],
        rng: np.random.Generator | None = None,
    ) -> npt.NDArray[np.int32]:
        """As the function `decode`, every thread with its share of the rows."""
        if self.config.routes:
            raise ModelError("routes are not decoded by compiled code")
        B, M, _ = feat.shape
        order = np.full((B, M), -1, np.int32)
        free = np.arange(M)[None, :] < size[:, None]
        shares = min(self.threads, max(1, B))
        seeds = np.zeros(shares, np.int64) if rng is None else rng.integers(2**63, size=shares)

        def run(i: int) -> None:
            rows = slice(B * i // shares, B * (i + 1) // shares)
            _decode_rows(
                *self._network, self.config.window, self.group,
                feat[rows], partner[rows], size[rows], start[rows],
                rng is not None, random_state(int(seeds[i])), order[rows], free[rows],
            )  # fmt: skip

        if self._pool is None or shares == 1:
            run(0)
        else:
            list(self._pool.map(run, range(shares)))
        return order


# --- the repairer --------------------------------------------------------------------------------


@kernel
def _best_rows(space, size, node, partner, order, times):
    """Of each `times` rows in sequence, the one whose free edges are shortest."""
    out = np.empty(len(size) // times, np.int64)
    for b in range(len(out)):
        best = np.inf
        for r in range(b * times, (b + 1) * times):
            m = size[r]
            total = 0.0
            for i in range(m):
                a, z = order[r, i], order[r, i + 1 if i + 1 < m else 0]
                if partner[r, a] != z:
                    total += distance(space, node[r, a], node[r, z])
            if r == b * times or total < best:
                best, out[b] = total, r
    return out


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

    def __call__(self, rules: Rules, graphs: Graphs, rng: np.random.Generator) -> Repaired:
        return self.together([(rules, graphs, rng)])[0]

    def together(
        self, asked: Sequence[tuple[Rules, Graphs, np.random.Generator]]
    ) -> list[Repaired]:
        """Repair graphs of several instances as one batch; each is seen as it would be alone."""
        seen = [self._seen(rules, graphs, self.rng or rng) for rules, graphs, rng in asked]
        width = max(feat.shape[1] for feat, *_ in seen)
        feat = np.concatenate([_widened(one[0], width) for one in seen])
        partner = np.concatenate([_widened(one[1], width) for one in seen])
        size, start = (np.concatenate([one[i] for one in seen]) for i in (2, 3))
        rng = None if self.greedy else self.rng or asked[0][2]
        orders = decode(self.model, feat, partner, size, start, rng)
        out, at = [], 0
        for rules, graphs, _ in asked:
            rows = slice(at, at + self.alternatives * len(graphs))
            order = np.ascontiguousarray(orders[rows, : graphs.node.shape[1]])
            if self.alternatives > 1:
                node = np.repeat(graphs.node, self.alternatives, axis=0)
                best = (size[rows], node, partner[rows], order, self.alternatives)
                order = order[_best_rows(rules.space, *best)]
            out.append(Repaired(order, np.zeros(order.shape, np.bool_)))
            at = rows.stop
        return out

    def _seen(
        self, rules: Rules, graphs: Graphs, rng: np.random.Generator
    ) -> tuple[Reals, npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """Features, partners, sizes and starts of all alternatives, in random symmetries."""
        if rules.space.metric == Metric.EXPLICIT:
            raise ModelError("a network needs coordinates; this instance is a bare matrix")
        if self.model.config.routes != (rules.depot >= 0):
            kind = "routes" if self.model.config.routes else "tours"
            raise ModelError(f"these weights repair {kind} only")
        times = self.alternatives
        feat = np.repeat(features(rules, graphs), times, axis=0)
        size, partner = (np.repeat(a, times, axis=0) for a in (graphs.size, graphs.partner))
        start = rng.integers(np.maximum(size, 1)).astype(np.int32)
        turns = rng.uniform(-np.pi, np.pi, len(size))
        orient_rows(feat, size, self.model.config.relative, turns, rng.random(len(size)) < 0.5)
        return feat, partner, size, start


def _widened(array: npt.NDArray[Any], width: int) -> npt.NDArray[Any]:
    """Rows (B, M, ...) filled up with zeros to (B, width, ...)."""
    more = width - array.shape[1]
    return np.pad(array, [(0, 0), (0, more)] + [(0, 0)] * (array.ndim - 2)) if more else array


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
        return CompiledPaper(config, tensors, threads=threads) if compiles(config) else None
    fits = config.d // config.heads % LANES == 0 and config.window >= 1
    return Compiled(config, tensors, threads=threads) if fits else None

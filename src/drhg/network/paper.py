# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False
"""The paper's network as compiled code, forward only, for use without torch.

Each linear attention module has few representatives (r) and many nodes, so the projections that
would run over all nodes are moved to the side of the representatives, which changes no number:
with q, k, v of head h,  (x Wq) k' = x (Wq k')  and  p (x Wv) = (p x) Wv.  What is left over all
nodes are plain products with matrices of d x (heads r) numbers and the feed-forward layer.

Letters as in `economy`: T tokens of G decisions, one after the other; each decision has its
r representatives first, then its nodes. No padding.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from drhg.errors import ModelError
from drhg.kernels.jit import fast_inner, fast_kernel
from drhg.network.products import LANES, ZERO, Block, block, multiply, softmax, up, whole
from drhg.network.weights import ModelConfig, check_shapes

if TYPE_CHECKING:
    from drhg.network.views import State

Vector = npt.NDArray[np.float32]
PANEL = 64  # columns of a matrix that lie together, as the micro-kernel wants them
ROWS = 96  # rows that go through a feed-forward layer at a time, so that they stay in the cache
GROUP = 8  # decisions that pass through the network together; measured


def compiles(config: ModelConfig) -> bool:
    """Whether a network of the paper's kind has the sizes that the kernels work on."""
    each = (config.d // config.heads, config.hidden, config.from_first + config.from_current)
    plain = config.preset == "paper" and not config.reference
    return plain and all(size % LANES == 0 for size in each)


# --- parameters ----------------------------------------------------------------------------------


class Feed(NamedTuple):
    """Where the parameters of a feed-forward layer begin."""

    up: int
    up_bias: int
    down: int
    down_bias: int


class Shape(NamedTuple):
    """Sizes of a network, and where in the vector of all parameters each of them begins.

    The places of a layer's parameters count from where that layer begins.
    """

    d: int
    hidden: int
    layers: int
    heads: int
    first: int  # representatives made from the first node
    current: int  # and from the current one
    inputs: int
    outputs: int
    routes: int
    encoder: int
    encoder_bias: int
    from_first: int
    from_current: int
    score: int
    score_bias: int
    query: int  # of the representatives, who attend to all
    keys: int
    values: int
    out: int
    feed: Feed
    pair: int  # keys and values of the representatives, to whom all attend
    query_back: int
    out_back: int
    feed_back: Feed
    blocks: int  # where the first layer begins
    block: int  # parameters of a layer


def _panels(matrix: npt.NDArray[Any]) -> Vector:
    """A matrix (k, n) as panels of 64 columns, one after the other."""
    parts = [matrix[:, j : j + PANEL].ravel() for j in range(0, matrix.shape[1], PANEL)]
    return np.concatenate([np.zeros(0, np.float32), *parts]).astype(np.float32)


def packed(config: ModelConfig, tensors: Mapping[str, npt.NDArray[Any]]) -> tuple[Vector, Shape]:
    """All weights in the form in which the kernels read them, and where they lie."""
    d = config.d
    scale = np.float32((d // config.heads) ** -0.5)
    w = {name: np.asarray(tensor, np.float32) for name, tensor in tensors.items()}
    parts: dict[str, npt.NDArray[Any]] = {
        "encoder": w["encoder.weight"].T,
        "encoder_bias": w["encoder.bias"],
        "from_first": _panels(w["first.weight"].T),
        "from_current": _panels(w["current.weight"].T),
        "score": w["score.weight"],
        "score_bias": w["score.bias"],
    }
    for i in range(config.layers):
        q, kv, o = (w[f"aggregate.{i}.{name}.weight"] for name in ("q", "kv", "o"))
        parts |= {f"{i}.query": _panels(q.T * scale), f"{i}.keys": kv[:d]}
        parts |= {f"{i}.values": kv[d:].T, f"{i}.out": _panels(o.T)}
        parts |= {f"{i}.{name}": part for name, part in _feed(w, f"aggregate.{i}.").items()}
        q, kv, o = (w[f"broadcast.{i}.{name}.weight"] for name in ("q", "kv", "o"))
        parts |= {f"{i}.pair": _panels(kv.T), f"{i}.query_back": q * scale}
        parts |= {f"{i}.out_back": o.T}
        parts |= {f"{i}.back.{name}": part for name, part in _feed(w, f"broadcast.{i}.").items()}
    begin, end = {}, 0
    for name, part in parts.items():
        begin[name] = end
        end += part.size
    blocks = begin["0.query"]

    def of_layer(*names: str) -> list[int]:
        return [begin[f"0.{name}"] - blocks for name in names]

    sizes = (d, config.hidden, config.layers, config.heads, config.from_first, config.from_current)
    seen = (config.node_inputs, config.outputs, int(config.routes))
    head = [begin[name] for name in list(parts)[:6]]
    there = (*of_layer("query", "keys", "values", "out"), Feed(*of_layer(*Feed._fields)))
    feed_back = Feed(*of_layer(*(f"back.{name}" for name in Feed._fields)))
    back = (*of_layer("pair", "query_back", "out_back"), feed_back)
    each = (end - blocks) // config.layers
    shape = Shape._make((*sizes, *seen, *head, *there, *back, blocks, each))
    flat = np.concatenate([np.ascontiguousarray(part).ravel() for part in parts.values()])
    return flat, shape


def _feed(w: Mapping[str, npt.NDArray[Any]], at: str) -> dict[str, npt.NDArray[Any]]:
    return {
        "up": _panels(w[f"{at}up.weight"].T),
        "up_bias": w[f"{at}up.bias"],
        "down": _panels(w[f"{at}down.weight"].T),
        "down_bias": w[f"{at}down.bias"],
    }


# --- memory --------------------------------------------------------------------------------------


class Memory(NamedTuple):
    """All that a pass works on: G decisions of T tokens with r representatives each."""

    begin: npt.NDArray[np.int64]  # (G + 1,): where the tokens of each decision begin
    nodes: Vector  # (T, inputs)
    ends: Vector  # (2 G, d, with the room left d + 1): first and current node, embedded
    made: Vector  # (G, d r): representatives before the first layer
    x: Vector  # (T, d)
    reps: Vector  # (G r, d)
    query: Vector  # (G r, d)
    mixed: Vector  # (G r, d)
    pair: Vector  # (G r, 2 d)
    wide: Vector  # (heads r, d): keys folded into the queries of each head
    mean: Vector  # (heads r, d)
    turned: Vector  # (d, S): the tokens of one decision, with S whole vectors
    share: Vector  # (heads r, S)
    turned_keys: Vector  # (d, r)
    keys: Vector  # (d, heads r)
    values: Vector  # (heads r, d)
    share_back: Vector  # (ROWS, heads r)
    act: Vector  # (ROWS, hidden)


def memory(s: Shape, group: int, width: int) -> Memory:
    """Memory for `group` decisions on at most `width` nodes."""
    r, d = s.first + s.current, s.d
    T, S, heads = group * (r + width), -(-(r + width) // LANES) * LANES, s.heads * r
    sizes = (
        (T, s.inputs), (2 * group, d + s.routes), (group, d * r), (T, d), (group * r, d),
        (group * r, d), (group * r, d), (group * r, 2 * d), (heads, d), (heads, d), (d, S),
        (heads, S), (d, r), (d, heads), (heads, d), (ROWS, heads), (ROWS, s.hidden),
    )  # fmt: skip
    return Memory(np.zeros(group + 1, np.int64), *(np.zeros(size, np.float32) for size in sizes))


# --- forward -------------------------------------------------------------------------------------


@fast_inner
def _product(a, w, at, c, m, n, k, add):
    """c (+)= a w for m x k numbers and a matrix k x n in panels, which begins at `at`."""
    for j in range(0, n, PANEL):
        width = min(PANEL, n - j)
        multiply(a, block(w, at + j * k, width), block(c.data, c.at + j, c.row), m, width, k, add)


@fast_inner
def _feed_forward(x, rows, w, at, feed, act):
    """x += down(relu(up(x))), both with a bias; the layer begins at `at`."""
    d, hidden = x.shape[1], act.shape[1]
    for a in range(0, rows, ROWS):
        m = min(ROWS, rows - a)
        part = block(x, a * d, d)
        for i in range(m):
            for c in range(hidden):
                act[i, c] = w[at + feed.up_bias + c]
        _product(part, w, at + feed.up, whole(act), m, hidden, d, True)
        for i in range(m):
            for c in range(hidden):
                act[i, c] = act[i, c] if act[i, c] > ZERO else ZERO
            for c in range(d):
                x[a + i, c] += w[at + feed.down_bias + c]
        _product(whole(act), w, at + feed.down, part, m, d, hidden, True)


@fast_inner
def _aggregate(w, s, at, G, a):
    """a.reps: the representatives after attending to all tokens of their decision."""
    d, r = s.d, s.first + s.current
    hd, rows = d // s.heads, s.heads * r
    x, begin, share, turned, reps = a.x, a.begin, a.share, a.turned, a.reps
    for g in range(G):
        reps[g * r : (g + 1) * r] = x[begin[g] : begin[g] + r]
    _product(whole(a.reps), w, at + s.query, whole(a.query), G * r, d, d, False)
    for g in range(G):
        t = begin[g + 1] - begin[g]
        for h in range(s.heads):
            head = h * hd
            query, keys = block(a.query, g * r * d + head, d), block(w, at + s.keys + head * d, d)
            multiply(query, keys, block(a.wide, h * r * d, d), r, d, hd, False)
        for part in range(0, d, LANES):  # so few rows at a time stay in the cache
            for i in range(t):
                for c in range(part, part + LANES):
                    turned[c, i] = x[begin[g] + i, c]
        multiply(whole(a.wide), whole(turned), whole(share), rows, up(t), d, False)
        for i in range(rows):
            softmax(share, i, 0, t)
        multiply(whole(share), block(x, begin[g] * d, d), whole(a.mean), rows, d, t, False)
        for h in range(s.heads):
            head = h * hd
            mean, values = block(a.mean, h * r * d, d), block(w, at + s.values + head, d)
            multiply(mean, values, block(a.mixed, g * r * d + head, d), r, hd, d, False)
    _product(whole(a.mixed), w, at + s.out, whole(a.reps), G * r, d, d, True)


@fast_inner
def _broadcast(w, s, at, G, a):
    """a.x += attention of all tokens to the representatives of their decision."""
    d, r = s.d, s.first + s.current
    hd, rows = d // s.heads, s.heads * r
    x, begin, share, pair, turned = a.x, a.begin, a.share_back, a.pair, a.turned_keys
    _product(whole(a.reps), w, at + s.pair, whole(a.pair), G * r, 2 * d, d, False)
    for g in range(G):
        t = begin[g + 1] - begin[g]
        for j in range(r):
            for c in range(d):
                turned[c, j] = pair[g * r + j, c]
        for h in range(s.heads):
            head = h * hd
            query = Block(w, at + s.query_back + head * d, np.int64(1), d)
            keys = block(a.turned_keys, head * r, r)
            multiply(query, keys, block(a.keys, h * r, rows), d, r, hd, False)
            values = block(a.pair, g * r * 2 * d + d + head, 2 * d)
            out = block(w, at + s.out_back + head * d, d)
            multiply(values, out, block(a.values, h * r * d, d), r, d, hd, False)
        for i in range(0, t, ROWS):
            m = min(ROWS, t - i)
            part = block(x, (begin[g] + i) * d, d)
            multiply(part, whole(a.keys), whole(share), m, rows, d, False)
            for j in range(m):
                for h in range(s.heads):
                    softmax(share, j, h * r, r)
            multiply(whole(share), whole(a.values), part, m, d, rows, True)


@fast_inner
def _encode(w, s, nodes, context, count, row, G, a):
    """The tokens of rows row .. row + G - 1: representatives, then nodes."""
    d, r, known, f = s.d, s.first + s.current, s.d + s.routes, s.inputs
    begin, packed, ends, made, x = a.begin, a.nodes, a.ends, a.made, a.x
    for g in range(G):
        n = count[row + g]
        begin[g + 1] = begin[g] + r + n
        for i in range(n):
            packed[begin[g] + r + i] = nodes[row + g, i]
        for side in range(2):
            for c in range(d):
                ends[2 * g + side, c] = w[s.encoder_bias + c]
            if s.routes == 1:
                ends[2 * g + side, d] = context[row + g, context.shape[1] - 1]
        for side in range(2):
            for i in range(f):
                value = context[row + g, side * f + i]
                for c in range(d):
                    ends[2 * g + side, c] += value * w[s.encoder + i * d + c]
    T = begin[G]
    for i in range(T):
        for c in range(d):
            x[i, c] = w[s.encoder_bias + c]
    multiply(whole(packed), block(w, s.encoder, d), whole(x), T, d, f, True)
    first, current = block(ends, 0, 2 * known), block(ends, known, 2 * known)
    _product(first, w, s.from_first, whole(made), G, d * s.first, known, False)
    others = block(made, d * s.first, d * r)
    _product(current, w, s.from_current, others, G, d * s.current, known, False)
    for g in range(G):
        for i in range(r):
            for c in range(d):
                x[begin[g] + i, c] = made[g, i * d + c]


@fast_kernel
def _score_rows(w, s, nodes, context, count, a, scores):
    """Scores (B, W, outputs) of a batch, minus infinity beyond each row's count."""
    d, r, begin, x = s.d, s.first + s.current, a.begin, a.x
    group = len(begin) - 1
    for row in range(0, len(nodes), group):
        G = min(group, len(nodes) - row)
        _encode(w, s, nodes, context, count, row, G, a)
        for layer in range(s.layers):
            at = s.blocks + layer * s.block
            _aggregate(w, s, at, G, a)
            _feed_forward(a.reps, G * r, w, at, s.feed, a.act)
            if layer + 1 == s.layers:  # only the nodes are scored
                for g in range(G):
                    for i in range(begin[g + 1] - begin[g] - r):
                        x[begin[g] - g * r + i] = x[begin[g] + r + i]
                for g in range(1, G + 1):
                    begin[g] -= g * r
            _broadcast(w, s, at, G, a)
            _feed_forward(x, begin[G], w, at, s.feed_back, a.act)
        for g in range(G):
            for i in range(nodes.shape[1]):
                for o in range(s.outputs):
                    if i >= count[row + g]:
                        scores[row + g, i, o] = -np.inf
                        continue
                    total = w[s.score_bias + o]
                    for c in range(d):
                        total += x[begin[g] + i, c] * w[s.score + o * d + c]
                    scores[row + g, i, o] = total


class CompiledPaper:
    """The paper's network as compiled code; needs no torch. Equal to it up to rounding."""

    def __init__(
        self,
        config: ModelConfig,
        tensors: Mapping[str, npt.NDArray[Any]],
        *,
        threads: int = 1,
        group: int = GROUP,
    ) -> None:
        if not compiles(config):
            raise ModelError("this network is not compiled: it needs torch")
        check_shapes(config, tensors)
        self.config, self.threads, self.group = config, threads, group
        self._flat, self._shape = packed(config, tensors)
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None

    def logits(self, state: State) -> Vector:
        """Scores (B, W, outputs), minus infinity where there is no node or no direct way to it."""
        c = self.config
        nodes, context = (np.ascontiguousarray(array) for array in (state.nodes, state.context))
        B = len(nodes)
        scores = np.empty((*nodes.shape[:2], c.outputs), np.float32)
        shares = max(1, min(self.threads, -(-B // self.group)))

        def run(i: int) -> None:
            part = slice(B * i // shares, B * (i + 1) // shares)
            work = memory(self._shape, self.group, nodes.shape[1])
            _score_rows(
                self._flat, self._shape, nodes[part], context[part], state.count[part], work,
                scores[part],
            )  # fmt: skip

        if self._pool is None or shares == 1:
            run(0)
        else:
            futures = [self._pool.submit(run, i) for i in range(1, shares)]
            run(0)
            for future in futures:
                future.result()
        scores[..., 0][~state.direct] = -np.inf
        return scores

# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False
"""The paper's network as compiled code, forward only, for use without torch.

Each linear attention module has few representatives (r) and many nodes, so the projections that
would run over all nodes are moved to the side of the representatives, which changes no number:
with q, k, v of head h,  (x Wq) k' = x (Wq k')  and  p (x Wv) = (p x) Wv.  What is left over all
nodes are plain products with matrices of d x (heads r) numbers and the feed-forward layer.

Letters as in `network_kernels`: T tokens of G decisions, one after the other; each decision has its
r representatives first, then its nodes. No padding.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from drhg.errors import ModelError
from drhg.network_kernels import LANES, LOW, ONE, ZERO, _exponentials, fast_kernel, multiply, up
from drhg.weights import ModelConfig, check_shapes

if TYPE_CHECKING:
    from drhg.neural import State

Vector = npt.NDArray[np.float32]
PANEL = 64  # columns of a matrix that lie together, as the micro-kernel wants them
ROWS = 96  # rows that go through a feed-forward layer at a time, so that they stay in the cache
GROUP = 8  # decisions that pass through the network together; measured


def compiles(config: ModelConfig) -> bool:
    """Whether a network of the paper's kind has the sizes that the kernels work on."""
    each = (config.d // config.heads, config.hidden, config.from_first + config.from_current)
    return config.preset == "paper" and all(size % LANES == 0 for size in each)


def _panels(matrix: npt.NDArray[Any]) -> Vector:
    """A matrix (k, n) as panels of 64 columns, one after the other."""
    parts = [matrix[:, j : j + PANEL].ravel() for j in range(0, matrix.shape[1], PANEL)]
    return np.concatenate([np.zeros(0, np.float32), *parts]).astype(np.float32)


def packed(config: ModelConfig, tensors: Mapping[str, npt.NDArray[Any]]) -> Vector:
    """All weights in the order and form in which `_forward` reads them."""
    d = config.d
    scale = np.float32((d // config.heads) ** -0.5)
    w = {name: np.asarray(tensor, np.float32) for name, tensor in tensors.items()}
    parts = [w["encoder.weight"].T, w["encoder.bias"]]
    parts += [_panels(w["first.weight"].T), _panels(w["current.weight"].T)]
    for i in range(config.layers):
        for stack in ("aggregate", "broadcast"):
            at = f"{stack}.{i}."
            q, kv, o = (w[f"{at}{name}.weight"] for name in ("q", "kv", "o"))
            if stack == "aggregate":
                parts += [_panels(q.T * scale), kv[:d], kv[d:].T, _panels(o.T)]
            else:
                parts += [_panels(kv.T), q * scale, o.T]
            parts += [_panels(w[f"{at}up.weight"].T), w[f"{at}up.bias"]]
            parts += [_panels(w[f"{at}down.weight"].T), w[f"{at}down.bias"]]
    parts += [w["score.weight"], w["score.bias"]]
    return np.concatenate([np.ascontiguousarray(part).ravel() for part in parts])


@fast_kernel
def _product(a, a_at, a_row, w, at, c, c_at, c_row, m, n, k, add):
    """c (+)= a w for m x k numbers and a matrix k x n in panels."""
    for j in range(0, n, PANEL):
        width = min(PANEL, n - j)
        multiply(a, a_at, a_row, 1, w, at + j * k, width, c, c_at + j, c_row, m, width, k, add)


@fast_kernel
def _feed_forward(x, rows, w, at, d, hidden, act):
    """x += down(relu(up(x))), both with a bias."""
    down = at + d * hidden + hidden
    for a in range(0, rows, ROWS):
        m = min(ROWS, rows - a)
        for i in range(m):
            for c in range(hidden):
                act[i, c] = w[at + d * hidden + c]
        _product(x, a * d, d, w, at, act, 0, hidden, m, hidden, d, True)
        for i in range(m):
            for c in range(hidden):
                act[i, c] = act[i, c] if act[i, c] > ZERO else ZERO
            for c in range(d):
                x[a + i, c] += w[down + hidden * d + c]
        _product(act, 0, hidden, w, down, x, a * d, d, m, d, hidden, True)


@fast_kernel
def _aggregate(x, begin, G, r, d, heads, w, at, q, wide, turned, share, mean, mixed, reps):
    """reps (G r, d): the representatives after attending to all tokens of their decision."""
    hd, rows = d // heads, heads * r
    keys, values, out = at + d * d, at + 2 * d * d, at + 3 * d * d
    for g in range(G):
        reps[g * r : (g + 1) * r] = x[begin[g] : begin[g] + r]
    _product(reps, 0, d, w, at, q, 0, d, G * r, d, d, False)
    for g in range(G):
        s = begin[g]
        t = begin[g + 1] - s
        width = up(t)
        for h in range(heads):
            head = h * hd
            multiply(
                q, g * r * d + head, d, 1, w, keys + head * d, d, wide, h * r * d, d, r, d, hd,
                False,
            )  # fmt: skip
        for block in range(0, d, LANES):  # so few rows at a time stay in the cache
            for i in range(t):
                for c in range(block, block + LANES):
                    turned[c, i] = x[s + i, c]
        stride = turned.shape[1]
        multiply(wide, 0, d, 1, turned, 0, stride, share, 0, stride, rows, width, d, False)
        for i in range(rows):
            for j in range(t, width):
                share[i, j] = LOW
            scale = ONE / _exponentials(share, i * stride, width // LANES)
            for j in range(t):
                share[i, j] *= scale
        multiply(share, 0, stride, 1, x, s * d, d, mean, 0, d, rows, d, t, False)
        for h in range(heads):
            head = h * hd
            multiply(
                mean, h * r * d, d, 1, w, values + head, d, mixed, g * r * d + head, d, r, hd, d,
                False,
            )  # fmt: skip
    _product(mixed, 0, d, w, out, reps, 0, d, G * r, d, d, True)


@fast_kernel
def _broadcast(x, begin, G, r, d, heads, w, at, kv, k_turned, keys, values, share, reps):
    """x += attention of all tokens to the representatives of their decision."""
    hd, rows = d // heads, heads * r
    query, out = at + 2 * d * d, at + 3 * d * d
    _product(reps, 0, d, w, at, kv, 0, 2 * d, G * r, 2 * d, d, False)
    for g in range(G):
        s = begin[g]
        t = begin[g + 1] - s
        for j in range(r):
            for c in range(d):
                k_turned[c, j] = kv[g * r + j, c]
        for h in range(heads):
            head = h * hd
            multiply(
                w, query + head * d, 1, d, k_turned, head * r, r, keys, h * r, rows, d, r, hd,
                False,
            )  # fmt: skip
            multiply(
                kv, g * r * 2 * d + d + head, 2 * d, 1, w, out + head * d, d, values, h * r * d, d,
                r, d, hd, False,
            )  # fmt: skip
        for a in range(0, t, ROWS):
            m = min(ROWS, t - a)
            multiply(x, (s + a) * d, d, 1, keys, 0, rows, share, 0, rows, m, rows, d, False)
            for i in range(m):
                for h in range(heads):
                    scale = ONE / _exponentials(share, i * rows + h * r, r // LANES)
                    for j in range(h * r, (h + 1) * r):
                        share[i, j] *= scale
            multiply(share, 0, rows, 1, values, 0, d, x, (s + a) * d, d, m, d, rows, True)


@fast_kernel
def _score_rows(
    w, d, hidden, layers, heads, first, current, outputs, routes, group, nodes, context, count,
    scores,
):  # fmt: skip
    """Scores (B, W, outputs) of a batch, minus infinity beyond each row's count."""
    rows, width, f = nodes.shape
    r = first + current
    wide = heads * r
    known = d + routes
    most = group * (r + width)
    x = np.empty((most, d), np.float32)
    packed_nodes = np.zeros((most, f), np.float32)
    ends = np.zeros((2 * group, known), np.float32)
    made = np.empty((group, d * r), np.float32)
    q, mixed = np.empty((group * r, d), np.float32), np.empty((group * r, d), np.float32)
    reps, kv = np.empty((group * r, d), np.float32), np.empty((group * r, 2 * d), np.float32)
    folded, mean = np.empty((wide, d), np.float32), np.empty((wide, d), np.float32)
    turned = np.zeros((d, up(r + width)), np.float32)
    share = np.empty((wide, up(r + width)), np.float32)
    k_turned, keys = np.empty((d, r), np.float32), np.empty((d, wide), np.float32)
    values, to_reps = np.empty((wide, d), np.float32), np.empty((ROWS, wide), np.float32)
    act = np.empty((ROWS, hidden), np.float32)
    begin = np.zeros(group + 1, np.int64)
    block = 4 * d * d + 2 * d * hidden + hidden + d
    for row in range(0, rows, group):
        G = min(group, rows - row)
        for g in range(G):  # encode
            n = count[row + g]
            begin[g + 1] = begin[g] + r + n
            for i in range(n):
                packed_nodes[begin[g] + r + i] = nodes[row + g, i]
            for side in range(2):
                for c in range(d):
                    ends[2 * g + side, c] = w[f * d + c]
                if routes == 1:
                    ends[2 * g + side, d] = context[row + g, context.shape[1] - 1]
            for side in range(2):
                for i in range(f):
                    value = context[row + g, side * f + i]
                    for c in range(d):
                        ends[2 * g + side, c] += value * w[i * d + c]
        T = begin[G]
        for i in range(T):
            for c in range(d):
                x[i, c] = w[f * d + c]
        multiply(packed_nodes, 0, f, 1, w, 0, d, x, 0, d, T, d, f, True)
        at = f * d + d
        _product(ends, 0, 2 * known, w, at, made, 0, d * r, G, d * first, known, False)
        at += known * d * first
        _product(
            ends, known, 2 * known, w, at, made, d * first, d * r, G, d * current, known, False
        )
        at += known * d * current
        for g in range(G):
            for i in range(r):
                for c in range(d):
                    x[begin[g] + i, c] = made[g, i * d + c]
        for layer in range(layers):
            _aggregate(x, begin, G, r, d, heads, w, at, q, folded, turned, share, mean, mixed, reps)
            _feed_forward(reps, G * r, w, at + 4 * d * d, d, hidden, act)
            at += block
            if layer + 1 == layers:  # only the nodes are scored
                for g in range(G):
                    for i in range(begin[g + 1] - begin[g] - r):
                        x[begin[g] - g * r + i] = x[begin[g] + r + i]
                for g in range(1, G + 1):
                    begin[g] -= g * r
            _broadcast(x, begin, G, r, d, heads, w, at, kv, k_turned, keys, values, to_reps, reps)
            _feed_forward(x, begin[G], w, at + 4 * d * d, d, hidden, act)
            at += block
        for g in range(G):
            for i in range(width):
                for o in range(outputs):
                    total = w[at + outputs * d + o]
                    if i >= count[row + g]:
                        scores[row + g, i, o] = -np.inf
                        continue
                    for c in range(d):
                        total += x[begin[g] + i, c] * w[at + o * d + c]
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
        self.flat = packed(config, tensors)
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None

    def logits(self, state: State) -> Vector:
        """Scores (B, W, outputs), minus infinity where there is no node or no direct way to it."""
        c = self.config
        nodes, context = (np.ascontiguousarray(array) for array in (state.nodes, state.context))
        B = len(nodes)
        scores = np.empty((*nodes.shape[:2], c.outputs), np.float32)
        shape = c.d, c.hidden, c.layers, c.heads, c.from_first, c.from_current, c.outputs
        shares = max(1, min(self.threads, -(-B // self.group)))

        def run(i: int) -> None:
            part = slice(B * i // shares, B * (i + 1) // shares)
            _score_rows(
                self.flat, *shape, int(c.routes), self.group,
                nodes[part], context[part], state.count[part], scores[part],
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

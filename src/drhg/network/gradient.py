# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False
"""The way back through the economical network: the loss of a batch and its gradient."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from drhg.hypergraph.plan import Flags
from drhg.kernels.jit import fast_inner, fast_kernel
from drhg.network.economy import (
    DISTANCE,
    GROUP,
    LEAD,
    Activations,
    Shape,
    Sizes,
    forward,
    lay_out,
    memory,
    weights_of,
)
from drhg.network.products import ONE, ZERO, block, multiply, transposed, up, whole
from drhg.network.views import Reals, State


class Slopes(NamedTuple):
    """Gradients of activations, and what else the way back works on."""

    x: Reals  # (T, d)
    n: Reals  # (T, d): of what is normalised or mixed
    qkv: Reals  # (T, 3 d)
    act: Reals  # (T, hidden)
    share: Reals  # (S, S): of one head
    node: Reals  # (inputs, d): of the weight of the nodes, transposed


def slopes(s: Sizes, made: Activations) -> Slopes:
    """Memory for the way back of what `made` is the way forward of."""
    T, S = len(made.last), made.share.shape[3]
    sizes = ((T, s.d), (T, s.d), (T, 3 * s.d), (T, s.hidden), (S, S), (s.inputs, s.d))
    return Slopes(*(np.zeros(size, np.float32) for size in sizes))


@fast_inner
def normalise_back(x, gain, inverse, grad, T, into, into_gain):
    """Add the gradient of the norm's input to `into`, and that of its gain to `into_gain`."""
    d = x.shape[1]
    for i in range(T):
        r = inverse[i]
        mean = ZERO
        for c in range(d):
            g = grad[i, c] * x[i, c] * r
            into_gain[c] += g
            mean += g * gain[c]
        mean *= r * r / np.float32(d)
        for c in range(d):
            into[i, c] += grad[i, c] * gain[c] * r - x[i, c] * mean


@fast_inner
def _attend_back(qkv, begin, G, share, keys, grad, change, back):
    """`back` (T, 3 d): the gradient of qkv, for the gradient `grad` (T, d) of the output."""
    d, heads = grad.shape[1], share.shape[1]
    hd = d // heads
    S = share.shape[3]
    scale = ONE / np.sqrt(np.float32(hd))
    for g in range(G):
        s, t = begin[g], begin[g + 1] - begin[g]
        for h in range(heads):
            p = share[g, h]
            for j in range(t):
                for c in range(hd):
                    keys[c, j] = qkv[s + j, 2 * d + h * hd + c]
            q, wide = s * 3 * d + h * hd, 3 * d
            out, soft, diff = block(grad, s * d + h * hd, d), block(p, 0, S), whole(change)
            multiply(out, whole(keys), diff, t, up(t), hd, False)
            for i in range(t):
                mean = ZERO
                for j in range(t):
                    mean += p[i, j] * change[i, j]
                for j in range(t):
                    change[i, j] = p[i, j] * (change[i, j] - mean) * scale
            multiply(diff, block(qkv, q + d, wide), block(back, q, wide), t, hd, t, False)
            keys_back, values_back = block(back, q + d, wide), block(back, q + 2 * d, wide)
            multiply(transposed(diff), block(qkv, q, wide), keys_back, t, hd, t, False)
            multiply(transposed(soft), out, values_back, t, hd, t, False)


@fast_inner
def add_columns(grad, T, into, at):
    n = grad.shape[1]
    for i in range(T):
        for c in range(n):
            into[at + c] += grad[i, c]


@fast_inner
def linear_back(grad, inputs, w, at, into, dw, T, rows, cols):
    """Of a product with the matrix (rows, cols) at `at`: add its gradient, set its input's."""
    multiply(transposed(whole(grad)), whole(inputs), block(dw, at, cols), rows, cols, T, True)
    multiply(whole(grad), block(w, at, cols), whole(into), T, cols, rows, False)


@fast_inner
def _backward(weights, tokens, G, a, slope, dw):
    """Add to `dw` the gradient of all parameters; a.scores holds the gradient of the scores."""
    w, s, begin = weights.flat, weights.shape, tokens.begin
    d, T = s.d, begin[G]
    dx, dn, last, scores, nodes = slope.x, slope.n, a.last, a.scores, tokens.nodes
    for g in range(G):
        for i in range(begin[g], begin[g + 1]):
            for c in range(d):
                dn[i, c] = ZERO
            if i < begin[g] + LEAD:
                continue
            for o in range(s.outputs):
                grad = scores[i, o]
                dw[s.score_bias + o] += grad
                dw[s.nearness] -= grad * nodes[i, DISTANCE]
                for c in range(d):
                    dw[s.score + o * d + c] += grad * last[i, c]
                    dn[i, c] += grad * w[s.score + o * d + c]
    dx[:T] = ZERO
    norm = slice(s.norm, s.norm + d)
    normalise_back(a.x[s.layers], w[norm], a.inverse, dn, T, dx, dw[norm])
    for back in range(s.layers):
        l = s.layers - 1 - back
        _layer_back(weights, s.blocks + l * s.block, begin, G, l, a, slope, dw)
    _embedding_back(s, tokens, G, slope, dw)


@fast_inner
def _layer_back(weights, at, begin, G, l, a, slope, dw):
    """One layer, whose parameters begin at `at`: slope.x from behind it to before it."""
    T = begin[G]
    feed_forward_back(weights, at, T, l, a, slope, dw)
    _attend_back(a.qkv[l], begin, G, a.share[l], a.keys, slope.n, slope.share, slope.qkv)
    ask_back(weights, at, T, l, a, slope, dw)


@fast_inner
def feed_forward_back(weights, at, T, l, a, slope, dw):
    """The last part of a layer; slope.n is then the gradient of the mixed values."""
    w, s = weights.flat, weights.shape
    d, hidden = s.d, s.hidden
    dx, dn, dact, act = slope.x, slope.n, slope.act, a.act[l]
    add_columns(dx, T, dw, at + s.down_bias)
    linear_back(dx, act, w, at + s.down, dact, dw, T, d, hidden)
    for i in range(T):
        for c in range(hidden):
            dact[i, c] = dact[i, c] if act[i, c] > ZERO else ZERO
    add_columns(dact, T, dw, at + s.up_bias)
    linear_back(dact, a.n2[l], w, at + s.up, dn, dw, T, hidden, d)
    n2 = slice(at + s.n2, at + s.n2 + d)
    normalise_back(a.mid[l], w[n2], a.inverse2[l], dn, T, dx, dw[n2])
    linear_back(dx, a.mixed[l], w, at + s.o, dn, dw, T, d, d)


@fast_inner
def ask_back(weights, at, T, l, a, slope, dw):
    """The first part of a layer, once slope.qkv is known."""
    w, s = weights.flat, weights.shape
    d, dn = s.d, slope.n
    linear_back(slope.qkv, a.n1[l], w, at + s.qkv, dn, dw, T, 3 * d, d)
    n1 = slice(at + s.n1, at + s.n1 + d)
    normalise_back(a.x[l], w[n1], a.inverse1[l], dn, T, slope.x, dw[n1])


@fast_inner
def _embedding_back(s, tokens, G, slope, dw):
    dx, d, known = slope.x, s.d, s.known
    nodes, context, begin = tokens
    for g in range(G):
        i = begin[g]
        for c in range(d):
            dw[s.first_bias + c] += dx[i, c]
            dw[s.current + c] += dx[i + 1, c]
            for j in range(known):
                dw[s.first + c * known + j] += dx[i, c] * context[g, j]
            dx[i, c] = ZERO  # the context tokens have no node behind them
            dx[i + 1, c] = ZERO
    nodes_back(s, nodes, begin[G], slope, dw)


@fast_inner
def nodes_back(s, nodes, T, slope, dw):
    """Where the inputs of T tokens enter the network."""
    dx, dnode, d = slope.x, slope.node, s.d
    add_columns(dx, T, dw, s.node_bias)
    multiply(transposed(whole(nodes)), whole(dx), whole(dnode), s.inputs, d, T, False)
    for i in range(s.inputs):
        for c in range(d):
            dw[s.node + c * s.inputs + i] += dnode[i, c]


class Lesson(NamedTuple):
    """Decisions and their right answers."""

    nodes: Reals
    context: Reals
    counts: npt.NDArray[np.int32]
    direct: Flags
    right: Flags  # (B, W, outputs)


@fast_inner
def _cross_entropy(lesson, b, scores, at, weight):
    """Loss of decision b times `weight`; its scores, from row `at` on, become their gradient."""
    count, outputs = lesson.counts[b], scores.shape[1]
    direct, right = lesson.direct[b], lesson.right[b]
    top = top_right = -np.inf
    for i in range(count):
        for o in range(outputs):
            if o == 0 and not direct[i]:
                scores[at + i, o] = -np.inf
            top = max(top, np.float64(scores[at + i, o]))
            if right[i, o]:
                top_right = max(top_right, np.float64(scores[at + i, o]))
    total = total_right = 0.0
    for i in range(count):
        for o in range(outputs):
            total += np.exp(scores[at + i, o] - top)
            if right[i, o]:
                total_right += np.exp(scores[at + i, o] - top_right)
    for i in range(count):
        for o in range(outputs):
            slope = np.exp(scores[at + i, o] - top) / total
            if right[i, o]:
                slope -= np.exp(scores[at + i, o] - top_right) / total_right
            scores[at + i, o] = weight * slope
    return weight * (np.log(total) + top - np.log(total_right) - top_right)


@fast_kernel
def _learn(weights, lesson, weight, work, slope, dw):
    tokens, made = work.tokens, work.made
    rows, group = len(lesson.counts), len(tokens.context)
    loss = 0.0
    for row in range(0, rows, group):
        G = min(group, rows - row)
        lay_out(lesson.nodes, lesson.context, lesson.counts, row, G, tokens)
        forward(weights, tokens, G, 1, made)
        for g in range(G):
            loss += _cross_entropy(lesson, row + g, made.scores, tokens.begin[g] + LEAD, weight)
        _backward(weights, tokens, G, made, slope, dw)
    return loss


def learn(
    flat: Reals, shape: Shape, state: State, right: Flags, weight: float
) -> tuple[float, Reals]:
    """Cross-entropy of a batch times `weight`, and its gradient as one vector.

    All of `right` (B, W, outputs) count alike: the loss is minus the log of their joint share.
    """
    arrays = state.nodes, state.context, state.count, state.direct, right
    lesson = Lesson._make(np.ascontiguousarray(array) for array in arrays)
    work = memory(shape, GROUP, state.nodes.shape[1], keep=True)
    gradient = np.zeros(len(flat), np.float32)
    loss = _learn(weights_of(flat, shape), lesson, weight, work, slopes(shape, work.made), gradient)
    return float(loss), gradient

# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False
"""The way back through the network of edges: the loss of some graphs and its gradient."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from drhg.kernels.jit import fast_inner, fast_kernel
from drhg.network.economy import Weights
from drhg.network.edges import Shape, forward, memory_of, turned
from drhg.network.gradient import (
    ask_back,
    feed_forward_back,
    linear_back,
    nodes_back,
    normalise_back,
    slopes,
)
from drhg.network.products import ONE, ZERO, block, multiply, transposed, up, whole
from drhg.network.views import Reals


class Lessons(NamedTuple):
    """Graphs as the network takes them, and the edges to learn."""

    nodes: Reals  # (B, T, node_inputs)
    apart: Reals  # (B, T, T)
    mate: npt.NDArray[np.int64]  # (B, T)
    tokens: npt.NDArray[np.int64]  # (B,): how many
    right: npt.NDArray[np.int64]  # (B, T, 2): neighbours in the best repair, -1 for none


@fast_inner
def _cross_entropy(scores, mate, right, t, weight):
    """Loss of a graph times `weight`; its scores become their gradient, row by row."""
    loss = 0.0
    for i in range(t):
        first, second = right[i, 0], right[i, 1]
        if first < 0:
            for j in range(t):
                scores[i, j] = ZERO
            continue
        two = second >= 0 and second != first
        scores[i, i] = scores[i, mate[i]] = np.float32(-np.inf)
        top = scores[i, first]
        for j in range(t):
            top = max(top, scores[i, j])
        total = 0.0
        for j in range(t):
            total += math.exp(scores[i, j] - top)
        chosen = scores[i, first]
        if two:
            chosen = np.float32(0.5) * (chosen + scores[i, second])
            loss -= math.log(2.0)
        loss += math.log(total) + top - chosen
        for j in range(t):
            scores[i, j] = weight * math.exp(scores[i, j] - top) / total
        scores[i, first] -= 0.5 * weight if two else weight
        if two:
            scores[i, second] -= 0.5 * weight
    return weight * loss


@fast_inner
def _attend_back(qkv, t, seen, slopes, bonds, share, keys, grad, change, back):
    """`back` (t, 3 d): the gradient of qkv, for the gradient `grad` (t, d) of the output.

    `slopes` and `bonds` are those of the vector of gradients, and are added to.
    """
    apart, mate = seen.apart, seen.mate
    d, heads = grad.shape[1], share.shape[0]
    hd, wide = d // heads, 3 * d
    S = share.shape[2]
    scale = ONE / np.sqrt(np.float32(hd))
    for h in range(heads):
        p = share[h]
        for j in range(t):
            for c in range(hd):
                keys[c, j] = qkv[j, 2 * d + h * hd + c]
        out, soft, diff = block(grad, h * hd, d), block(p, 0, S), whole(change)
        multiply(out, whole(keys), diff, t, up(t), hd, False)
        slope, bond = ZERO, ZERO
        for i in range(t):
            mean = ZERO
            for j in range(t):
                mean += p[i, j] * change[i, j]
            for j in range(t):
                g = p[i, j] * (change[i, j] - mean)
                slope += g * apart[i, j]
                change[i, j] = g * scale
            bond += change[i, mate[i]] / scale
        slopes[h] -= slope
        bonds[h] += bond
        q, k, v = h * hd, d + h * hd, 2 * d + h * hd
        multiply(diff, block(qkv, k, wide), block(back, q, wide), t, hd, t, False)
        multiply(transposed(diff), block(qkv, q, wide), block(back, k, wide), t, hd, t, False)
        multiply(transposed(soft), out, block(back, v, wide), t, hd, t, False)


@fast_inner
def _head_back(weights, t, work, slope, more, dw):
    """From the gradient of the scores to that of the tokens behind the last norm, slope.n."""
    w, s, a = weights.flat, weights.shape, work.made
    d, scores, apart, dn, dq = s.d, work.scores, work.seen.apart, slope.n, slope.x
    scale = ONE / np.sqrt(np.float32(d))
    far = ZERO
    for i in range(t):
        for j in range(i + 1):
            both = scores[i, j] + scores[j, i]
            far += both * apart[i, j]
            scores[i, j] = both * scale
            scores[j, i] = both * scale
    dw[s.far] -= far
    grad = whole(scores)
    multiply(grad, whole(work.k), whole(dq), t, d, t, False)
    linear_back(dq, a.last, w, s.q, dn, dw, t, d, d)
    multiply(grad, whole(work.q), whole(dq), t, d, t, False)  # it is symmetric
    linear_back(dq, a.last, w, s.k, more, dw, t, d, d)
    for i in range(t):
        for c in range(d):
            dn[i, c] += more[i, c]


@fast_inner
def _backward(weights, t, work, slope, spare, dw):
    """Add to `dw` the gradient of all parameters; work.scores holds that of the scores."""
    w, s, a = weights.flat, weights.shape, work.made
    d, dx = s.d, slope.x
    _head_back(weights, t, work, slope, spare, dw)
    dx[:t] = ZERO
    norm = slice(s.norm, s.norm + d)
    normalise_back(a.x[s.layers], w[norm], a.inverse, slope.n, t, dx, dw[norm])
    for back in range(s.layers):
        l = s.layers - 1 - back
        at = s.blocks + l * s.block
        feed_forward_back(weights, at, t, l, a, slope, dw)
        slopes = dw[at + s.slope : at + s.slope + s.heads]
        bonds = dw[at + s.bond : at + s.bond + s.heads]
        _attend_back(
            a.qkv[l], t, work.seen, slopes, bonds, a.share[l, 0], a.keys, slope.n, slope.share,
            slope.qkv,
        )  # fmt: skip
        ask_back(weights, at, t, l, a, slope, dw)
    nodes_back(s, work.seen.nodes, t, slope, dw)


@fast_kernel
def _learn(weights, lessons, weight, work, slope, spare, dw):
    nodes, apart, mate, tokens, right = lessons
    seen = work.seen
    loss = 0.0
    for b in range(len(tokens)):
        t = tokens[b]
        seen.nodes[:t] = nodes[b, :t]
        seen.apart[:t, :t] = apart[b, :t, :t]
        for i in range(t):
            seen.mate[i] = mate[b, i]
        forward(weights, t, 1, work)
        loss += _cross_entropy(work.scores, seen.mate, right[b], t, weight)
        _backward(weights, t, work, slope, spare, dw)
    return loss


def learn_edges(flat: Reals, shape: Shape, lessons: Lessons, weight: float) -> tuple[float, Reals]:
    """Cross-entropy of some graphs times `weight`, and its gradient as one vector."""
    lessons = Lessons._make(np.ascontiguousarray(array) for array in lessons)
    work = memory_of(shape, lessons.nodes.shape[1], keep=True)
    gradient = np.zeros(len(flat), np.float32)
    weights = Weights(flat, turned(flat, shape), shape)
    slope = slopes(shape, work.made)
    spare = np.empty_like(slope.n)
    loss = _learn(weights, lessons, weight, work, slope, spare, gradient)
    return float(loss), gradient

# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False
"""The network of edges as compiled code: all edges that a reduced graph could get, scored at once.

The layers are those of `economy`, with attention that also depends on distances. What comes out is
a score for each pair of tokens; `joining` makes a repair of them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from drhg.kernels.jit import fast_inner, fast_kernel
from drhg.network.economy import (
    LEAD,
    Activations,
    ask,
    feed_forward,
    memory,
    normalise,
    turn,
    turn_layers,
)
from drhg.network.products import LANES, ONE, ZERO, block, multiply, softmax, up, whole
from drhg.network.survey import Survey, survey_of
from drhg.network.views import Reals
from drhg.network.weights import ModelConfig, shapes


class Shape(NamedTuple):
    """Sizes of a network, and where in the vector of all parameters each of them begins.

    The places of a layer's parameters count from where that layer begins.
    """

    d: int
    hidden: int
    layers: int
    heads: int
    inputs: int
    known: int
    outputs: int
    node: int
    node_bias: int
    norm: int
    q: int
    k: int
    far: int
    n1: int
    qkv: int
    o: int
    n2: int
    up: int
    up_bias: int
    down: int
    down_bias: int
    slope: int
    bond: int
    blocks: int
    block: int


_HEAD = ("node.weight", "node.bias", "norm.weight", "q.weight", "k.weight", "far")
_LAYER = ("n1.weight", "qkv.weight", "o.weight", "n2.weight", "up.weight", "up.bias")
_MORE = ("down.weight", "down.bias", "slope", "bond")


def compiles(config: ModelConfig) -> bool:
    """Whether this is a network of edges; `ModelConfig` sees to sizes that suit the kernels."""
    return config.preset == "edges"


def shape_of(config: ModelConfig) -> Shape:
    """The parameters lie one after the other, in the order of `weights.shapes`."""
    begin, end = {}, 0
    for name, shape in shapes(config).items():
        begin[name] = end
        end += math.prod(shape)
    blocks = begin["blocks.0.n1.weight"]
    head = [begin[name] for name in _HEAD]
    layer = [begin[f"blocks.0.{name}"] - blocks for name in (*_LAYER, *_MORE)]
    sizes = (config.d, config.hidden, config.layers, config.heads, config.node_inputs, 1, 1)
    return Shape._make((*sizes, *head, *layer, blocks, (end - blocks) // config.layers))


@fast_kernel
def turned(flat, s):
    """The matrices transposed, as the forward products want them; other places are not set."""
    out = np.empty(len(flat), np.float32)
    turn(flat, s.node, s.d, s.inputs, out)
    turn(flat, s.q, s.d, s.d, out)
    turn(flat, s.k, s.d, s.d, out)
    turn_layers(flat, s, out)
    return out


class Memory(NamedTuple):
    """All that a pass works on, for T tokens at most; S is T in whole vectors."""

    seen: Survey
    made: Activations
    q: Reals  # (T, d)
    k: Reals  # (T, d)
    keys: Reals  # (d, S): k transposed
    scores: Reals  # (T, S): of pairs; then the shares of each row


def memory_of(s: Shape, width: int, *, keep: bool = False) -> Memory:
    """Memory for graphs of so many nodes, and the depot; `keep` for the way back."""
    T = width + 1
    S = up_to_lanes(T)
    real = np.float32
    seen = survey_of(T, s.inputs, S)
    made = memory(s, 1, T - LEAD, keep=keep).made
    head = np.empty((T, s.d), real), np.empty((T, s.d), real), np.zeros((s.d, S), real)
    return Memory(seen, made, *head, np.zeros((T, S), real))


def up_to_lanes(t: int) -> int:
    return -(-t // LANES) * LANES


@fast_inner
def _attend(qkv, t, survey, slopes, bonds, share, out, keys):
    """Attention among t tokens, nearer ones and the other end of the same path ahead."""
    apart, mate = survey.apart, survey.mate
    d, heads = out.shape[1], share.shape[0]
    hd = d // heads
    S = share.shape[2]
    scale = ONE / np.sqrt(np.float32(hd))
    for h in range(heads):
        p = share[h]
        slope, bond = slopes[h], bonds[h]
        for j in range(t):
            for c in range(hd):
                keys[c, j] = qkv[j, d + h * hd + c] * scale
        for i in range(t):
            for j in range(t):
                p[i, j] = -slope * apart[i, j]
            for j in range(t, up(t)):
                p[i, j] = ZERO
            p[i, mate[i]] += bond
        multiply(block(qkv, h * hd, 3 * d), whole(keys), block(p, 0, S), t, up(t), hd, True)
        for i in range(t):
            softmax(p, i, 0, t)
        values = block(qkv, 2 * d + h * hd, 3 * d)
        multiply(block(p, 0, S), values, block(out, h * hd, d), t, hd, t, False)


@fast_inner
def forward(weights, t, keep, work):
    """Scores of all pairs of t tokens, the same for (i, j) and (j, i); see `economy.forward`."""
    w, turned, s, a = weights.flat, weights.turned, weights.shape, work.made
    d, scores, last, x, apart = s.d, work.scores, a.last, a.x[0], work.seen.apart
    for i in range(t):
        for c in range(d):
            x[i, c] = w[s.node_bias + c]
    multiply(whole(work.seen.nodes), block(turned, s.node, d), whole(x), t, d, s.inputs, True)
    for layer in range(s.layers):
        at, l = s.blocks + layer * s.block, layer * keep
        ask(weights, at, t, l, a)
        slopes = w[at + s.slope : at + s.slope + s.heads]
        bonds = w[at + s.bond : at + s.bond + s.heads]
        _attend(a.qkv[l], t, work.seen, slopes, bonds, a.share[l, 0], a.mixed[l], a.keys)
        feed_forward(weights, at, t, l, keep, a)
    normalise(a.x[s.layers * keep], w[s.norm : s.norm + d], last, a.inverse, t)
    q, k, keys = work.q, work.k, work.keys
    multiply(whole(last), block(turned, s.q, d), whole(q), t, d, d, False)
    multiply(whole(last), block(turned, s.k, d), whole(k), t, d, d, False)
    for j in range(t):
        for c in range(d):
            keys[c, j] = k[j, c]
    multiply(whole(q), whole(keys), whole(scores), t, up(t), d, False)
    scale, far = ONE / np.sqrt(np.float32(d)), w[s.far]
    for i in range(t):
        for j in range(i + 1):
            both = (scores[i, j] + scores[j, i]) * scale - far * apart[i, j]
            scores[i, j] = both
            scores[j, i] = both

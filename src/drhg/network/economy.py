# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False
"""The economical network as compiled code, forward: a few decisions at a time, in the cache.

Letters: T tokens (of G decisions, one after the other, without padding), d channels; two tokens of
context lead each decision. The way back is in `gradient`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from drhg.errors import ModelError
from drhg.kernels.jit import fast_inner, fast_kernel
from drhg.kernels.random import random_state
from drhg.network.decisions import Decoding, choose, offer, offered
from drhg.network.products import LANES, ONE, ZERO, block, multiply, softmax, up, whole
from drhg.network.views import Reals, State
from drhg.network.weights import ModelConfig, shapes

LEAD = 2  # tokens of context before the nodes of a decision
EPS = np.float32(1.1920929e-07)  # what torch's RMSNorm adds to the mean square of float32
GROUP = 4  # decisions that pass through the network together; measured
DISTANCE = 6  # which input of a node is its distance from the current one


def compiles(config: ModelConfig) -> bool:
    """Whether an economical network has the sizes that the kernels work on.

    Heads that are no whole vectors would be written beyond their ends.
    """
    each = (config.d // config.heads, config.hidden)
    return config.preset == "economy" and all(size % LANES == 0 for size in each)


# --- parameters ----------------------------------------------------------------------------------


class Shape(NamedTuple):
    """Sizes of a network, and where in the vector of all parameters each of them begins.

    The places of a layer's parameters count from where that layer begins.
    """

    d: int
    hidden: int
    layers: int
    heads: int
    inputs: int  # numbers per node
    known: int  # numbers of context
    outputs: int
    window: int
    node: int
    node_bias: int
    first: int
    first_bias: int
    current: int
    norm: int
    score: int
    score_bias: int
    nearness: int
    n1: int
    qkv: int
    o: int
    n2: int
    up: int
    up_bias: int
    down: int
    down_bias: int
    blocks: int  # where the first layer begins
    block: int  # parameters of a layer


_HEAD = ("node.weight", "node.bias", "first.weight", "first.bias", "current", "norm.weight")
_SCORE = ("score.weight", "score.bias", "nearness")
_LAYER = ("n1.weight", "qkv.weight", "o.weight", "n2.weight")
_FEED = ("up.weight", "up.bias", "down.weight", "down.bias")


def shape_of(config: ModelConfig) -> Shape:
    """The parameters lie one after the other, in the order of `weights.shapes`."""
    begin, end = {}, 0
    for name, shape in shapes(config).items():
        begin[name] = end
        end += math.prod(shape)
    blocks = begin[f"blocks.0.{_LAYER[0]}"]
    sizes = (config.d, config.hidden, config.layers, config.heads)
    seen = (config.node_inputs, config.context_inputs, config.outputs, config.window)
    head = [begin[name] for name in (*_HEAD, *_SCORE)]
    layer = [begin[f"blocks.0.{name}"] - blocks for name in (*_LAYER, *_FEED)]
    each = (end - blocks) // config.layers
    return Shape._make((*sizes, *seen, *head, *layer, blocks, each))


class Sizes(Protocol):
    """What the layers ask of a shape, whichever network they belong to."""

    @property
    def d(self) -> int: ...
    @property
    def hidden(self) -> int: ...
    @property
    def layers(self) -> int: ...
    @property
    def heads(self) -> int: ...
    @property
    def inputs(self) -> int: ...
    @property
    def known(self) -> int: ...
    @property
    def outputs(self) -> int: ...


class Weights(NamedTuple):
    """All parameters as one vector, and again with every matrix transposed."""

    flat: Reals
    turned: Reals
    shape: Any  # a `Shape`, or that of another network with the same layers


@fast_inner
def turn(source, at, rows, cols, out):
    """Transpose the matrix that begins at `at`."""
    for i in range(rows):
        for j in range(cols):
            out[at + j * rows + i] = source[at + i * cols + j]


@fast_inner
def turn_layers(flat, s, out):
    """Transpose the matrices of all layers."""
    for layer in range(s.layers):
        at = s.blocks + layer * s.block
        turn(flat, at + s.qkv, 3 * s.d, s.d, out)
        turn(flat, at + s.o, s.d, s.d, out)
        turn(flat, at + s.up, s.hidden, s.d, out)
        turn(flat, at + s.down, s.d, s.hidden, out)


@fast_kernel
def turned(flat, s):
    """The matrices transposed, as the forward products want them; other places are not set."""
    out = np.empty(len(flat), np.float32)
    turn(flat, s.node, s.d, s.inputs, out)
    turn(flat, s.first, s.d, s.known, out)
    turn_layers(flat, s, out)
    return out


def weights_of(flat: Reals, shape: Shape) -> Weights:
    """A vector of parameters, ready for `forward`."""
    return Weights(flat, turned(flat, shape), shape)


# --- memory --------------------------------------------------------------------------------------


class Tokens(NamedTuple):
    """Inputs of some decisions, each behind its two tokens of context."""

    nodes: Reals  # (T, inputs)
    context: Reals  # (G, known)
    begin: npt.NDArray[np.int64]  # (G + 1,): where the tokens of each decision begin


class Activations(NamedTuple):
    """What the layers make of T tokens; L is the number of layers, or 1 if none is kept.

    A kernel takes an array out of such a tuple before a loop, never inside: numba counts references
    to all of its arrays each time.
    """

    x: Reals  # (L + 1 or 1, T, d): enters each layer
    mid: Reals  # (L, T, d): between the halves of a layer
    n1: Reals  # (L, T, d): normalised, with the inverse of its length
    inverse1: Reals  # (L, T)
    qkv: Reals  # (L, T, 3 d)
    share: Reals  # (L, G, heads, S, S): the softmax of attention, with S whole vectors
    mixed: Reals  # (L, T, d)
    n2: Reals  # (L, T, d)
    inverse2: Reals  # (L, T)
    act: Reals  # (L, T, hidden)
    last: Reals  # (T, d)
    inverse: Reals  # (T,)
    scores: Reals  # (T, outputs)
    led: Reals  # (G, d): embedded contexts
    keys: Reals  # (d / heads, S): of one head, transposed


class Memory(NamedTuple):
    """All that a pass through the network works on."""

    tokens: Tokens
    made: Activations


def memory(s: Sizes, group: int, width: int, *, keep: bool = False) -> Memory:
    """Memory for `group` decisions on at most `width` nodes; `keep` for the way back."""
    T, S, L = group * (LEAD + width), -(-(LEAD + width) // LANES) * LANES, s.layers if keep else 1
    real = np.float32
    made = Activations(
        np.empty((L + keep, T, s.d), real), np.empty((L, T, s.d), real),
        np.empty((L, T, s.d), real), np.empty((L, T), real), np.empty((L, T, 3 * s.d), real),
        np.zeros((L, group, s.heads, S, S), real), np.empty((L, T, s.d), real),
        np.empty((L, T, s.d), real), np.empty((L, T), real), np.empty((L, T, s.hidden), real),
        np.empty((T, s.d), real), np.empty(T, real), np.empty((T, s.outputs), real),
        np.empty((group, s.d), real), np.zeros((s.d // s.heads, S), real),
    )  # fmt: skip
    nodes, context = np.empty((T, s.inputs), real), np.empty((group, s.known), real)
    return Memory(Tokens(nodes, context, np.zeros(group + 1, np.int64)), made)


# --- forward -------------------------------------------------------------------------------------


@fast_inner
def normalise(x, gain, out, inverse, T):
    """RMS norm of the first T rows; `inverse` is kept for the way back."""
    d = x.shape[1]
    for i in range(T):
        total = ZERO
        for c in range(d):
            total += x[i, c] * x[i, c]
        r = ONE / np.sqrt(total / np.float32(d) + EPS)
        inverse[i] = r
        for c in range(d):
            out[i, c] = x[i, c] * r * gain[c]


@fast_inner
def _attend(qkv, begin, G, share, out, keys):
    """Attention inside each decision; `share` (G, heads, S, S) keeps the softmax."""
    d, heads = out.shape[1], share.shape[1]
    hd = d // heads
    S = share.shape[3]
    scale = ONE / np.sqrt(np.float32(hd))
    for g in range(G):
        s, t = begin[g], begin[g + 1] - begin[g]
        for h in range(heads):
            p = share[g, h]
            q_at = s * 3 * d + h * hd
            for j in range(t):
                for c in range(hd):
                    keys[c, j] = qkv[s + j, d + h * hd + c] * scale
            multiply(block(qkv, q_at, 3 * d), whole(keys), block(p, 0, S), t, up(t), hd, False)
            for i in range(t):
                softmax(p, i, 0, t)
            values = block(qkv, q_at + 2 * d, 3 * d)
            multiply(block(p, 0, S), values, block(out, s * d + h * hd, d), t, hd, t, False)


@fast_inner
def forward(weights, tokens, G, keep, a):
    """Scores of G decisions; with `keep` = 1 all that the way back needs is kept, else 0."""
    w, turned, s = weights.flat, weights.turned, weights.shape
    d, inputs, known = s.d, s.inputs, s.known
    nodes, begin = tokens.nodes, tokens.begin
    T = begin[G]
    x, led, last, scores = a.x[0], a.led, a.last, a.scores  # not in loops: see `Activations`
    multiply(whole(nodes), block(turned, s.node, d), whole(x), T, d, inputs, False)
    multiply(whole(tokens.context), block(turned, s.first, d), whole(led), G, d, known, False)
    for g in range(G):
        i = begin[g]
        for c in range(d):
            x[i, c] = led[g, c] + w[s.first_bias + c]
            x[i + 1, c] = w[s.current + c]
        for i in range(begin[g] + LEAD, begin[g + 1]):
            for c in range(d):
                x[i, c] += w[s.node_bias + c]
    for layer in range(s.layers):
        _layer(weights, s.blocks + layer * s.block, tokens.begin, G, layer * keep, keep, a)
    normalise(a.x[s.layers * keep], w[s.norm : s.norm + d], last, a.inverse, T)
    for g in range(G):
        for i in range(begin[g] + LEAD, begin[g + 1]):
            for o in range(s.outputs):
                total = w[s.score_bias + o]
                for c in range(d):
                    total += last[i, c] * w[s.score + o * d + c]
                scores[i, o] = total - w[s.nearness] * nodes[i, DISTANCE]


@fast_inner
def _layer(weights, at, begin, G, l, keep, a):
    """One layer, whose parameters begin at `at`: from x[l] to x[l + keep]."""
    ask(weights, at, begin[G], l, a)
    _attend(a.qkv[l], begin, G, a.share[l], a.mixed[l], a.keys)
    feed_forward(weights, at, begin[G], l, keep, a)


@fast_inner
def ask(weights, at, T, l, a):
    """The first part of a layer: queries, keys and values of T tokens."""
    w, turned, s = weights.flat, weights.turned, weights.shape
    d = s.d
    normalise(a.x[l], w[at + s.n1 : at + s.n1 + d], a.n1[l], a.inverse1[l], T)
    multiply(whole(a.n1[l]), block(turned, at + s.qkv, 3 * d), whole(a.qkv[l]), T, 3 * d, d, False)


@fast_inner
def feed_forward(weights, at, T, l, keep, a):
    """The last part of a layer, once the values are mixed."""
    w, turned, s = weights.flat, weights.turned, weights.shape
    d, hidden = s.d, s.hidden
    x, mid, act, after = a.x[l], a.mid[l], a.act[l], a.x[l + keep]
    mid[:T] = x[:T]
    multiply(whole(a.mixed[l]), block(turned, at + s.o, d), whole(mid), T, d, d, True)
    normalise(mid, w[at + s.n2 : at + s.n2 + d], a.n2[l], a.inverse2[l], T)
    for i in range(T):
        for c in range(hidden):
            act[i, c] = w[at + s.up_bias + c]
    multiply(whole(a.n2[l]), block(turned, at + s.up, hidden), whole(act), T, hidden, d, True)
    for i in range(T):
        for c in range(hidden):
            act[i, c] = max(ZERO, act[i, c])
        for c in range(d):
            after[i, c] = mid[i, c] + w[at + s.down_bias + c]
    multiply(whole(act), block(turned, at + s.down, d), whole(after), T, d, hidden, True)


@fast_inner
def lay_out(nodes, context, count, row, G, tokens):
    """Lay rows row .. row + G - 1 out one after the other, each behind its two tokens."""
    packed, ahead, begin = tokens
    at = 0
    for g in range(G):
        begin[g] = at
        packed[at : at + LEAD] = ZERO
        at += LEAD
        for i in range(count[row + g]):
            packed[at] = nodes[row + g, i]
            at += 1
        ahead[g] = context[row + g]
    begin[G] = at


@fast_inner
def _score(weights, nodes, context, count, direct, row, G, work, scores):
    """Scores of rows row .. row + G - 1, minus infinity where there is nothing to choose."""
    lay_out(nodes, context, count, row, G, work.tokens)
    forward(weights, work.tokens, G, 0, work.made)
    begin, found = work.tokens.begin, work.made.scores
    for g in range(G):
        at = begin[g] + LEAD
        for i in range(nodes.shape[1]):
            for o in range(found.shape[1]):
                may = i < count[row + g] and (o > 0 or direct[row + g, i])
                scores[row + g, i, o] = found[at + i, o] if may else -np.inf


@fast_kernel
def score_rows(weights, nodes, context, count, direct, work, scores):
    """Scores (B, W, outputs) of a batch."""
    group = len(work.tokens.context)
    for row in range(0, len(nodes), group):
        G = min(group, len(nodes) - row)
        _score(weights, nodes, context, count, direct, row, G, work, scores)


@fast_kernel
def decode_rows(weights, decoding, look, work, scores, draw, state):
    """Decide until all rows are done, a group of them side by side; see `decode.decode`."""
    sound = True
    while True:
        G = offer(decoding, look, True, weights.shape.window)
        if G == 0:
            return sound
        _score(weights, look.nodes, look.context, look.counts, look.direct, 0, G, work, scores)
        sound = choose(decoding, look, G, scores, draw, state) and sound


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
        if not compiles(config) or config.window < 1:
            raise ModelError("this network is not compiled: it needs torch")
        expected = shapes(config)
        if {name: tuple(tensor.shape) for name, tensor in tensors.items()} != expected:
            raise ModelError("the weights do not belong to this network")
        self.config, self.threads, self.group = config, threads, group
        self.flat = np.concatenate([np.asarray(tensors[n], np.float32).ravel() for n in expected])
        self._weights = weights_of(self.flat, shape_of(config))
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None

    def logits(self, state: State) -> Reals:
        """Scores (B, W, outputs), minus infinity where there is nothing to choose."""
        arrays = state.nodes, state.context, state.count, state.direct
        nodes, context, count, direct = (np.ascontiguousarray(array) for array in arrays)
        scores = np.empty((*nodes.shape[:2], self.config.outputs), np.float32)
        work = memory(self._weights.shape, self.group, nodes.shape[1])
        score_rows(self._weights, nodes, context, count, direct, work, scores)
        return scores

    def decide(self, decoding: Decoding, rng: np.random.Generator | None) -> bool:
        """Take all decisions, every thread those of its share of the rows; whether all scores
        that decided were numbers."""
        c, group = self.config, self.group
        shares = shares_of(decoding.size, self.threads)
        seeds = np.zeros(len(shares), np.int64)
        if rng is not None:
            seeds = rng.integers(2**63, size=len(shares))

        def run(i: int, part: Decoding) -> bool:
            work = memory(self._weights.shape, group, c.window)
            scores = np.empty((group, c.window, c.outputs), np.float32)
            state = random_state(int(seeds[i]))
            look = offered(c, group, c.window)
            sound: bool = decode_rows(
                self._weights, part, look, work, scores, rng is not None, state
            )
            return sound

        if self._pool is None or len(shares) == 1:
            return run(0, decoding)
        parts = [Decoding._make(array[rows] for array in decoding) for rows in shares]
        sound = all(list(self._pool.map(run, range(len(shares)), parts)))
        for rows, part in zip(shares, parts, strict=True):
            decoding.order[rows], decoding.via[rows] = part.order, part.via
        return sound


def shares_of(size: npt.NDArray[np.int32], threads: int) -> list[npt.NDArray[np.int64]]:
    """Which rows each thread decodes, so that all have about as many nodes: largest rows first."""
    shares: list[list[int]] = [[] for _ in range(min(threads, max(1, len(size))))]
    nodes = [0] * len(shares)
    for row in np.argsort(-size, kind="stable").tolist():
        least = nodes.index(min(nodes))
        shares[least].append(row)
        nodes[least] += int(size[row])
    return [np.array(sorted(share), np.int64) for share in shares]

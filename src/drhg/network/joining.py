# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False
"""A repair made of scored edges, in rounds.

Each round the network scores all edges that the graph could get, and those that both ends agree on
are fixed: they make hyper-edges, as destroying left them, and the graph shrinks. The next round
sees what is left, so the hardest edges are decided last, when nearly everything else is known.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from drhg.errors import ModelError
from drhg.hypergraph.features import LOAD
from drhg.hypergraph.judge import Repaired
from drhg.kernels.jit import fast_kernel, inner
from drhg.kernels.random import random_float, random_state
from drhg.network.economy import Weights, shares_of
from drhg.network.edges import compiles, forward, memory_of, shape_of, turned
from drhg.network.products import softmax
from drhg.network.survey import Around, Paths, survey
from drhg.network.views import Views
from drhg.network.weights import ModelConfig, shapes

DEPOT = np.int64(-1)
NEVER = np.float32(-1e30)  # the score of what may not be joined
LEAST = np.float32(0.01)  # an edge to which neither end gives so much is not looked at


class Joining(NamedTuple):
    """Rows of a batch: `Views`, and the answers."""

    feat: npt.NDArray[np.float32]
    partner: npt.NDArray[np.int32]
    load: npt.NDArray[np.int64]
    capacity: npt.NDArray[np.int64]
    fleet: npt.NDArray[np.int32]
    size: npt.NDArray[np.int32]
    order: npt.NDArray[np.int32]  # (B, M)
    via: npt.NDArray[np.bool_]  # (B, M)


def joining_of(views: Views, order: npt.NDArray[np.int32], via: npt.NDArray[np.bool_]) -> Joining:
    """Views, with room for their answers."""
    return Joining(
        views.feat, views.partner, views.load, views.capacity, views.fleet, views.size, order, via
    )


class Pairs(NamedTuple):
    """Memory for the edges of a round, best first."""

    a: npt.NDArray[np.int32]
    b: npt.NDArray[np.int32]  # -1 for the depot
    sure: npt.NDArray[np.float64]  # the share that both ends give the edge, multiplied


class Rounds(NamedTuple):
    """How rounds go."""

    share: float  # of what is still to be joined, at least, in each
    sure: float  # edges this sure are fixed in any case
    draw: bool  # scores with noise, so that edges are drawn by their shares


@inner
def begin(partner, load, m, paths):
    for i in range(m):
        paths.mate[i] = partner[i]
        paths.free[i] = True
        paths.load[i] = load[i]
        paths.link[i, 0] = paths.link[i, 1] = -1


@inner
def fits(paths, u, v, capacity):
    """Whether two ends may be joined; v may be the depot, -1."""
    if v < 0:
        return paths.free[u]
    if not (paths.free[u] and paths.free[v]) or u == v or paths.mate[u] == v:
        return False
    return paths.load[u] + paths.load[v] <= capacity


@inner
def closes(paths, u, v):
    """1 if joining these two ends makes a whole route, else 0."""
    return 1 if paths.mate[u] < 0 and (v < 0 or paths.mate[v] < 0) else 0


@inner
def join(paths, u, v, depot):
    """Join the end u to the end v, or to the depot if v is -1; `depot` is what a link calls it."""
    mate, free, load, link = paths
    a = np.int64(mate[u])
    b = np.int64(mate[v]) if v >= 0 else DEPOT
    together = load[u] + (load[v] if v >= 0 else 0)
    link[u, 0 if link[u, 0] < 0 else 1] = v if v >= 0 else depot
    if v >= 0:
        link[v, 0 if link[v, 0] < 0 else 1] = u
        if b != v:
            free[v] = False
    if a != u:
        free[u] = False
    if a >= 0:
        mate[a] = b
        load[a] = together
    if b >= 0:
        mate[b] = a
        load[b] = together


@inner
def _left(paths, m, routed):
    """How many edges are missing: of a tour without the one that closes it."""
    ends = 0
    for i in range(m):
        if paths.free[i]:
            ends += 2 if paths.mate[i] == i else 1
    return (ends + 1) // 2 if routed else ends // 2 - 1


@inner
def _shares(seen, scores, paths, t, capacity, enough, draw, state):
    """Turn scores into the share that each token gives each other one; 0 if they may not join.

    The depot, where there is one, is the last token; once it has `enough` edges, it gets no more.
    """
    routed = seen.token[t - 1] == len(paths.mate)
    token, mate, load = seen.token, seen.mate, paths.load
    ends = t - 1 if routed else t
    for i in range(ends):
        if draw:
            for j in range(i):
                noise = -math.log(-math.log(max(random_float(state), 1e-300)))
                scores[i, j] += np.float32(noise)
                scores[j, i] = scores[i, j]
        if routed:
            room = capacity - load[token[i]]
            for j in range(ends):
                if load[token[j]] > room:
                    scores[i, j] = NEVER
            if enough:
                scores[i, ends] = NEVER
        scores[i, i] = scores[i, mate[i]] = NEVER
    for i in range(ends):
        softmax(scores, i, 0, t)


@inner
def _worth(seen, scores, paths, t, routed, pairs):
    """List the edges worth a thought, surest first; returns how many."""
    token, mate, other_end = seen.token, seen.mate, paths.mate
    a, b, sure = pairs
    ends = t - 1 if routed else t
    count = 0
    for i in range(ends):
        u = token[i]
        two = 2.0 if mate[i] == i and other_end[u] == u else 1.0
        for j in range(i):
            p, q = scores[i, j], scores[j, i]
            if (p < LEAST and q < LEAST) or count == len(a):
                continue
            v = token[j]
            other = 2.0 if other_end[v] == v else 1.0
            a[count], b[count] = u, v
            sure[count] = min(1.0, two * p) * min(1.0, other * q)
            count += 1
        if routed and scores[i, ends] >= LEAST and count < len(a):
            p = min(1.0, two * np.float64(scores[i, ends]))
            a[count], b[count] = u, -1
            sure[count] = p * p
            count += 1
    by = np.argsort(-sure[:count], kind="mergesort")
    a[:count], b[:count], sure[:count] = a[by], b[by], sure[by]
    return count


@inner
def _any(feat, paths, m, routed, capacity):
    """Join the nearest two ends that fit, where no round found any; of routes one to the depot."""
    best_u = best_v = -1
    best = np.inf
    for u in range(m):
        if not paths.free[u]:
            continue
        if routed:
            return u, DEPOT
        for v in range(u):
            if fits(paths, u, v, capacity):
                d = (feat[u, 0] - feat[v, 0]) ** 2 + (feat[u, 1] - feat[v, 1]) ** 2
                if d < best:
                    best, best_u, best_v = d, u, v
    return np.int64(best_u), np.int64(best_v)


@inner
def _walk(paths, partner, m, u, routed, order, via, done, at):
    """Write down the path that begins at u; returns how many nodes are written by now."""
    came = m if routed else -1
    via[at] = routed
    while True:
        order[at] = u
        done[u] = True
        at += 1
        out = u
        stub = partner[u] < 0
        if stub and not via[at - 1]:
            return at  # along the stub to the depot
        if not stub and partner[u] != u:
            out = partner[u]
            order[at] = out
            done[out] = True
            at += 1
            following = paths.link[out, 0]
        elif stub:
            following = paths.link[u, 0]
        else:
            following = paths.link[u, 1 if paths.link[u, 0] == came else 0]
        if following < 0 or following == m or done[following]:
            return at
        came = out
        u = following


@inner
def _answer(paths, partner, m, routed, order, via, done):
    """The joined paths as an order of nodes, and which come through the depot."""
    done[:m] = False
    at = 0
    for u in range(m):
        if done[u]:
            continue
        if routed:
            begins = partner[u] < 0 or paths.link[u, 0] == m or paths.link[u, 1] == m
        else:
            begins = paths.free[u] and at == 0
        if begins:
            at = _walk(paths, partner, m, u, routed, order, via, done, at)


@fast_kernel
def join_rows(weights, joining, rounds, paths, pairs, work, state):
    """Repair every row; whether all scores were numbers."""
    routed = joining.feat.shape[2] > LOAD
    done = np.empty(len(paths.mate), np.bool_)
    sound = True
    for b in range(len(joining.size)):
        feat, partner, m = joining.feat[b], joining.partner[b], np.int64(joining.size[b])
        capacity = np.int64(joining.capacity[b])
        begin(partner, joining.load[b], m, paths)
        fleet = np.int64(joining.fleet[b])
        closed, to_depot = 0, 0  # whole routes, edges to the depot
        for i in range(m):
            to_depot += 1 if partner[i] < 0 else 0
        left = _left(paths, m, routed)
        one = Paths(paths.mate[:m], paths.free[:m], paths.load[:m], paths.link[:m])
        while left > 0:
            around = Around(capacity, fleet - closed)
            t = survey(feat, one, around, work.seen)
            forward(weights, t, 0, work)
            sound = sound and not math.isnan(work.scores[0, t - 1])
            enough = routed and to_depot >= 2 * fleet
            _shares(work.seen, work.scores, one, t, capacity, enough, rounds.draw, state)
            count = _worth(work.seen, work.scores, one, t, routed, pairs)
            target = max(1, math.ceil(rounds.share * left))
            joined = 0
            for i in range(count):
                if joined >= target and pairs.sure[i] < rounds.sure:
                    break
                u, v = np.int64(pairs.a[i]), np.int64(pairs.b[i])
                if v < 0 and to_depot >= 2 * fleet:
                    continue  # a route too many, as long as others can go on
                if fits(one, u, v, capacity):
                    closed += closes(one, u, v)
                    to_depot += 1 if v < 0 else 0
                    join(one, u, v, m)
                    joined += 1
                    if not routed and joined == left:
                        break
            if joined == 0:
                u, v = _any(feat, one, m, routed, capacity)
                closed += closes(one, u, v)
                join(one, u, v, m)
            left = _left(one, m, routed)
        _answer(one, partner, m, routed, joining.order[b], joining.via[b], done)
    return sound


def paths_of(m: int) -> Paths:
    """Memory for the pieces of a graph of m nodes at most."""
    index = np.int32
    return Paths(
        np.empty(m, index), np.empty(m, np.bool_), np.empty(m, np.int64), np.empty((m, 2), index)
    )


class CompiledEdges:
    """The network of edges, and the repairs made of its scores; needs no torch."""

    def __init__(
        self,
        config: ModelConfig,
        tensors: Mapping[str, npt.NDArray[Any]],
        *,
        threads: int = 1,
        per_round: float = 0.34,
        sure: float = 0.9,
    ) -> None:
        if not compiles(config):
            raise ModelError("this is no network of edges")
        expected = shapes(config)
        if {name: tuple(tensor.shape) for name, tensor in tensors.items()} != expected:
            raise ModelError("the weights do not belong to this network")
        self.config, self.threads, self.per_round, self.sure = config, threads, per_round, sure
        self.flat = np.concatenate([np.asarray(tensors[n], np.float32).ravel() for n in expected])
        shape = shape_of(config)
        self._weights = Weights(self.flat, turned(self.flat, shape), shape)
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None

    def repair(self, views: Views, rng: np.random.Generator | None = None) -> Repaired | None:
        """Reconnect the items of each row, or None if the scores are not numbers.

        With a generator edges are drawn by the shares that the network gives them. Every thread
        repairs its share of the rows.
        """
        width = views.partner.shape[1]
        order = np.full(views.partner.shape, -1, np.int32)
        via = np.zeros(views.partner.shape, np.bool_)
        joining = joining_of(views, order, via)
        shares = shares_of(views.size, self.threads)
        seeds = np.zeros(len(shares), np.int64)
        if rng is not None:
            seeds = rng.integers(2**63, size=len(shares))
        rounds = Rounds(self.per_round, self.sure, rng is not None)

        def run(i: int, part: Joining) -> bool:
            pairs = Pairs(
                np.empty(16 * width, np.int32), np.empty(16 * width, np.int32),
                np.empty(16 * width, np.float64),
            )  # fmt: skip
            work = memory_of(self._weights.shape, width)
            state = random_state(int(seeds[i]))
            sound: bool = join_rows(
                self._weights, part, rounds, paths_of(width), pairs, work, state
            )
            return sound

        if self._pool is None or len(shares) == 1:
            return Repaired(order, via) if run(0, joining) else None
        parts = [Joining._make(array[rows] for array in joining) for rows in shares]
        sound = all(list(self._pool.map(run, range(len(shares)), parts)))
        for rows, part in zip(shares, parts, strict=True):
            order[rows], via[rows] = part.order, part.via
        return Repaired(order, via) if sound else None

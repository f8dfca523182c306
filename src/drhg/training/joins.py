# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False
"""Lessons for the network of edges: reduced graphs, and which edges their best repair has.

A graph is cut out of a labelled tour or plan. Most often some of its edges are then joined again,
easy ones first, because that is how far a repair has come when the network is asked again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from drhg.kernels.jit import inner, kernel
from drhg.kernels.random import random_below, random_float, random_state
from drhg.network.edges_gradient import Lessons
from drhg.network.joining import begin, closes, fits, join, joining_of, paths_of
from drhg.network.survey import Around, Paths, survey, survey_of
from drhg.network.views import Reals, orient
from drhg.network.weights import ModelConfig
from drhg.training.recipe import Examples
from drhg.training.routes import cut_some
from drhg.training.shards import Plans, Tours
from drhg.training.tours import cut_graph


@dataclass(frozen=True)
class Joins:
    """Graphs as the network of edges takes them, and the edges to learn."""

    nodes: Reals  # (B, T, node_inputs)
    apart: Reals  # (B, T, T)
    mate: npt.NDArray[np.int64]  # (B, T)
    count: npt.NDArray[np.int64]  # (B,)
    right: npt.NDArray[np.int64]  # (B, T, 2): neighbours in the best repair, -1 for none

    def __len__(self) -> int:
        """How many ends have something to learn."""
        return int((self.right[..., 0] >= 0).sum())

    def parts(self, size: int) -> Iterator[Joins]:
        """So many graphs at a time, each part as wide as its widest."""
        for a in range(0, len(self.count), size):
            rows = slice(a, a + size)
            t = int(self.count[rows].max())
            nodes, apart = self.nodes[rows, :t], self.apart[rows, :t, :t]
            yield Joins(nodes, apart, self.mate[rows, :t], self.count[rows], self.right[rows, :t])

    @property
    def arrays(self) -> Lessons:
        return Lessons(self.nodes, self.apart, self.mate, self.count, self.right)

    def inputs(self, device: torch.device) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """What the network takes."""
        arrays = self.nodes, self.apart, self.mate, self.count
        a, b, c, d = (torch.from_numpy(np.ascontiguousarray(x)).to(device) for x in arrays)
        return a, b, c, d


def loss(scores: Tensor, joins: Joins) -> Tensor:
    """Cross-entropy of the neighbours of every end, summed; 0 where each has its certain share.

    An end does not choose itself, nor the other end of its own path. A single node has two
    neighbours, with half of the share each.
    """
    B, T, _ = scores.shape
    _, _, mate, count = joins.inputs(scores.device)
    right = torch.from_numpy(np.ascontiguousarray(joins.right)).to(scores.device)
    own = torch.arange(T, device=scores.device)
    no = (own >= count[:, None])[:, None, :].expand(B, T, T).clone()
    no[:, own, own] = True
    no.scatter_(2, mate[..., None], True)
    some = right[..., 0] >= 0  # (B, T)
    scores = scores.masked_fill(no, -torch.inf)[some]  # (N, T)
    right = right[some]  # (N, 2)
    shares = F.log_softmax(scores, -1)
    first = shares.gather(1, right[:, :1])[:, 0]
    two = right[:, 1] >= 0
    second = shares.gather(1, right[:, 1:].clamp_min(0))[:, 0]
    half = 0.5 * (first + second) + np.log(2.0)
    same = right[:, 0] == right[:, 1]  # of a route with one customer: the depot twice
    return -torch.where(two & ~same, half, first).sum()


@inner
def _edges(partner, via, m, routed, edges):
    """The edges of a repair that is in the order of its nodes; returns how many. -1: the depot."""
    count = 0
    here = -1  # the loose end; -1 at the depot
    i = 0
    while i < m:
        stub = partner[i] < 0
        if routed and via[i]:
            if here >= 0:
                edges[count, 0], edges[count, 1] = here, -1
                count += 1
            if not stub:
                edges[count, 0], edges[count, 1] = i, -1
                count += 1
        elif i > 0:
            edges[count, 0], edges[count, 1] = here, i
            count += 1
        here = i
        if stub:
            here = i if via[i] else -1
        elif partner[i] != i:
            here = partner[i]
            i += 1
        i += 1
    if routed and here >= 0:
        edges[count, 0], edges[count, 1] = here, -1
        count += 1
    if not routed:
        edges[count, 0], edges[count, 1] = here, 0
        count += 1
    return count


@inner
def _rank(feat, partner, m, u, v):
    """How many nodes of other items are nearer to u than v is."""
    dx, dy = feat[u, 0] - feat[v, 0], feat[u, 1] - feat[v, 1]
    d = dx * dx + dy * dy
    nearer = 0
    for w in range(m):
        if w == u or w == v or w == partner[u]:
            continue
        dx, dy = feat[u, 0] - feat[w, 0], feat[u, 1] - feat[w, 1]
        nearer += 1 if dx * dx + dy * dy < d else 0
    return nearer


@inner
def _ease(feat, partner, m, u, v):
    """How early a repair finds an edge, about, as a share."""
    if v < 0:
        return 0.6
    both = _rank(feat, partner, m, u, v) + _rank(feat, partner, m, v, u)
    return 1.0 if both == 0 else 0.75 if both <= 2 else 0.4


@inner
def _lesson(graph, around, edges, count, untouched, paths, seen, right, state):
    """Join some of the edges, and write down what is seen then; returns the number of tokens."""
    feat, partner, load = graph
    m = len(partner)
    begin(partner, load, m, paths)
    some = 0.0
    if random_float(state) >= untouched:
        some = 0.2 + 0.8 * random_float(state)
    left, closed = 0, 0
    for i in range(count):
        u, v = np.int64(edges[i, 0]), np.int64(edges[i, 1])
        easy = some * _ease(feat, partner, m, u, v) if some > 0.0 else 0.0
        if random_float(state) < easy and fits(paths, u, v, around.capacity):
            closed += closes(paths, u, v)
            join(paths, u, v, m)
            edges[i, 0] = -1
        else:
            left += 1
    t = survey(feat, paths, Around(around.capacity, around.fleet - closed), seen)
    at = np.full(m + 1, -1, np.int32)
    for i in range(t):
        at[seen.token[i]] = i
    right[:t] = -1
    for i in range(count):
        u, v = np.int64(edges[i, 0]), np.int64(edges[i, 1])
        if u < 0:
            continue
        a, b = at[u], at[v if v >= 0 else m]
        right[a, 0 if right[a, 0] < 0 else 1] = b
        if v >= 0:
            right[b, 0 if right[b, 0] < 0 else 1] = a
    return t if left >= 3 else 0


@inner
def _keep(t, seen, rows, b):
    """Copy what is seen into row b; the next row to fill."""
    nodes, apart, mate, count = rows
    nodes[b, :t], apart[b, :t, :t], mate[b, :t] = seen.nodes[:t], seen.apart[:t, :t], seen.mate[:t]
    count[b] = t
    return b + (1 if t > 0 else 0)


@kernel
def _draw_tours(tours, drawing, paths, seen, rows, right, state):
    """Fill a batch with graphs of tours."""
    points, order, offset = tours
    low, share, most, untouched = drawing
    top = len(paths.mate)
    feat, partner = np.empty((top, 5), np.float32), np.empty(top, np.int32)
    load, via = np.zeros(top, np.int64), np.zeros(top, np.bool_)
    edges = np.empty((2 * top, 2), np.int32)
    around = Around(np.int64(1), np.int64(0))
    b = 0
    while b < len(right):
        i = random_below(state, len(offset) - 1)
        a, z = offset[i], offset[i + 1]
        high = max(low, min(most, np.int64(share * (z - a))))
        m = low + random_below(state, high - low + 1)
        m = cut_graph(points[a:z], order[a:z], m, state, feat, partner)
        if m < 6:
            continue
        angle = (2.0 * random_float(state) - 1.0) * np.pi
        orient(feat, m, True, angle, random_below(state, 2) == 1)
        found = _edges(partner, via, m, False, edges)
        graph = feat, partner[:m], load
        one = Paths(paths.mate[:m], paths.free[:m], paths.load[:m], paths.link[:m])
        t = _lesson(graph, around, edges, found, untouched, one, seen, right[b], state)
        b = _keep(t, seen, rows, b)


@kernel
def _draw_routes(joining, fleet, untouched, paths, seen, rows, right, state, b):
    """Fill a batch with graphs of a plan from row b on; returns the next row to fill."""
    edges = np.empty((2 * len(paths.mate), 2), np.int32)
    for g in range(len(joining.size)):
        m = np.int64(joining.size[g])
        if b == len(right) or m < 4:
            continue
        feat, partner = joining.feat[g], joining.partner[g]
        angle = (2.0 * random_float(state) - 1.0) * np.pi
        orient(feat, m, True, angle, random_below(state, 2) == 1)
        found = _edges(partner, joining.via[g], m, True, edges)
        graph = feat, partner[:m], joining.load[g]
        around = Around(np.int64(joining.capacity[g]), np.int64(fleet[g]))
        one = Paths(paths.mate[:m], paths.free[:m], paths.load[:m], paths.link[:m])
        t = _lesson(graph, around, edges, found, untouched, one, seen, right[b], state)
        b = _keep(t, seen, rows, b)
    return b


def draw_joins(
    labels: Tours | Plans,
    examples: Examples,
    config: ModelConfig,
    rows: int,
    seed: int,
    number: int,
) -> Joins:
    """Batch `number` of a run: graphs sorted by how many tokens they have."""
    state = random_state(seed, number)
    T = 2 + 2 * min(examples.most, labels.largest)
    inputs, real = config.node_inputs, np.float32
    seen = survey_of(T, inputs, T)
    nodes, apart = np.zeros((rows, T, inputs), real), np.zeros((rows, T, T), real)
    mate, count = np.zeros((rows, T), np.int64), np.zeros(rows, np.int64)
    filled = nodes, apart, mate, count
    right = np.full((rows, T, 2), -1, np.int64)
    if isinstance(labels, Tours):
        drawing = examples.low, examples.share, examples.most, examples.untouched
        tours = labels.points, labels.order, labels.offset
        _draw_tours(tours, drawing, paths_of(T), seen, filled, right, state)
    else:
        rng = np.random.default_rng(state)
        b = 0
        while b < rows:
            graphs, views = cut_some(labels, examples, rng)
            more = rng.random(len(graphs)) < examples.spare  # as if there were a route more
            joining = joining_of(views, graphs.partner, graphs.via)
            fleet = views.fleet + more
            b = _draw_routes(
                joining, fleet, examples.untouched, paths_of(T), seen, filled, right, state, b
            )
    by, top = np.argsort(count, kind="stable"), int(count.max())
    return Joins(nodes[by, :top], apart[by, :top, :top], mate[by, :top], count[by], right[by, :top])

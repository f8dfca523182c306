# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False
"""Decisions on reduced graphs that are cut out of labelled tours (paper, "Training Scheme").

Each is drawn anew: an instance, a centre, a size met exactly by Algorithm 1, a direction, a first
item, a symmetry, and a place in the tour; the label is the node that comes next.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from drhg.hypergraph.cut import cut_rows
from drhg.hypergraph.plan import EVERYWHERE, Plan
from drhg.hypergraph.reduce import items_of_tour
from drhg.kernels.jit import inner, kernel
from drhg.kernels.random import random_below, random_float, random_state
from drhg.network.gradient import Lesson
from drhg.network.views import Graph, Place, Reals, Seen, orient, see
from drhg.network.weights import ModelConfig
from drhg.training.recipe import Examples
from drhg.training.shards import Tours


class Drawing(NamedTuple):
    """What is drawn of a tour (see `Examples`), and what the network sees of it."""

    low: int
    share: float
    most: int
    per_graph: int
    relative: bool
    width: int


@inner
def _cut(order, ranked, m):
    """Where Algorithm 1 cuts a tour so that m nodes remain; sorted, and how many."""
    n = len(order)
    pos = np.empty(n, np.int32)
    for p in range(n):
        pos[order[p]] = p
    none, one_route = np.empty(0, np.int32), np.zeros(n, np.int32)
    plan = Plan(order, pos, one_route, none, none, np.empty(0, np.int64), np.empty(0, np.float64))
    no_fixed_edges = np.full((n, 2), -1, np.int32)
    cuts, n_cuts = cut_rows(
        plan, no_fixed_edges, -1, 0, ranked, np.zeros(1, np.int32), np.full(1, m, np.int32),
        EVERYWHERE,
    )  # fmt: skip
    return cuts[0], n_cuts[0]


@kernel
def cut_graph(points, order, m, state, feat, partner):
    """Cut a reduced graph of m nodes around a random centre; features and partners in tour order.

    The tour is entered at a random item, in a random direction. Returns m, or 0 if no cut has that
    size. What comes out is what `destroy_to_size`, `reduce` and `features` make of it.
    """
    n = len(order)
    if random_below(state, 2) == 1:
        order = order[::-1].copy()
    centre = random_below(state, n)
    away = np.empty(n, np.float64)
    for p in range(n):
        dx, dy = points[p, 0] - points[centre, 0], points[p, 1] - points[centre, 1]
        away[p] = dx * dx + dy * dy
    away[centre] = -1.0
    ranked = np.empty((1, min(n, m)), np.int32)
    ranked[0] = np.argsort(away)[: min(n, m)]
    cuts, count = _cut(order, ranked, m)
    node, mate = np.empty(2 * count, np.int32), np.empty(2 * count, np.int32)
    at, far = np.empty(2 * count, np.int32), np.empty(2 * count, np.int32)
    if items_of_tour(order, cuts, count, node, mate, at, far) != m:
        return 0
    start = random_below(state, m)
    if mate[start] != start and mate[start] < start:
        start -= 1  # at an item, not inside a hyper-edge
    low_x, low_y, high_x, high_y = np.inf, np.inf, -np.inf, -np.inf
    for i in range(m):
        x, y = points[node[i], 0], points[node[i], 1]
        low_x, high_x = min(low_x, x), max(high_x, x)
        low_y, high_y = min(low_y, y), max(high_y, y)
    side = max(high_x - low_x, high_y - low_y, 1e-300)
    swap = high_y - low_y > high_x - low_x
    for i in range(m):
        j = i + start if i + start < m else i + start - m
        u, v = node[j], node[mate[j]]
        partner[i] = mate[j] - start if mate[j] >= start else mate[j] - start + m
        a = ((points[u, 0] - low_x) / side, (points[u, 1] - low_y) / side)
        b = ((points[v, 0] - low_x) / side, (points[v, 1] - low_y) / side)
        feat[i, 0], feat[i, 1] = (a[1], a[0]) if swap else (a[0], a[1])
        feat[i, 2], feat[i, 3] = (b[1], b[0]) if swap else (b[0], b[1])
        feat[i, 4] = 0.0 if partner[i] == i else 1.0
    return m


@inner
def _write_down(graph, m, t, relative, width, free, seen, lesson, b):
    """The decision at place t of a graph in the order to learn; 1, or 0 if the label is unseen."""
    free[:t] = False
    free[t:m] = True
    place = Place(graph.feat[0], graph.feat[t - 1], np.int64(1), np.int64(0))
    count = see(graph, free, m, place, relative, width, seen)
    for j in range(count):
        if seen.chosen[j] == t:
            lesson.counts[b] = count
            seen.nodes[count:] = 0.0
            seen.direct[count:] = False
            lesson.right[b] = False
            lesson.right[b, j, 0] = True
            return 1
    return 0  # out of sight: cannot be chosen, so cannot be learnt


@kernel
def _draw(points, order, offset, drawing, state, lesson):
    """Fill a batch with decisions."""
    low, share, most, per_graph, relative, width = drawing
    top = 0
    for i in range(len(offset) - 1):
        top = max(top, offset[i + 1] - offset[i])
    feat = np.empty((top, 5), np.float32)
    partner = np.empty(top, np.int32)
    graph = Graph(feat, partner, np.zeros(top, np.int64), np.int64(1))
    free, chosen = np.empty(top, np.bool_), np.empty(top, np.int32)
    far = np.empty(max(1, width), np.float32)
    b = 0
    while b < len(lesson.counts):
        i = random_below(state, len(offset) - 1)
        a, z = offset[i], offset[i + 1]
        high = max(low, min(most, np.int64(share * (z - a))))
        m = low + random_below(state, high - low + 1)
        m = cut_graph(points[a:z], order[a:z], m, state, feat, partner)
        if m < 4:
            continue
        angle = (2.0 * random_float(state) - 1.0) * np.pi
        orient(feat, m, relative, angle, random_below(state, 2) == 1)
        for _ in range(per_graph):
            if b == len(lesson.counts):
                break
            t = 1 + random_below(state, m - 1)
            last = t == m - 1 or (t == m - 2 and partner[t] == t + 1)
            if partner[t] == t - 1 or last:
                continue  # a forced step teaches nothing
            seen = Seen(lesson.nodes[b], lesson.context[b], lesson.direct[b], chosen, far)
            b += _write_down(graph, m, t, relative, width, free, seen, lesson, b)


def draw_tours(
    tours: Tours,
    examples: Examples,
    config: ModelConfig,
    state: npt.NDArray[np.uint64],
    lesson: Lesson,
) -> None:
    """Fill a batch with decisions."""
    drawing = Drawing(
        examples.low, examples.share, examples.most, examples.per_graph, config.relative,
        config.window,
    )  # fmt: skip
    _draw(tours.points, tours.order, tours.offset, drawing, state, lesson)


@kernel
def _cut_each(points, order, offset, m, state, feat, partner):
    for b in range(len(offset) - 1):
        a, z = offset[b], offset[b + 1]
        while cut_graph(points[a:z], order[a:z], m, state, feat[b], partner[b]) != m:
            pass


def cut_each(tours: Tours, m: int, seed: int) -> tuple[Reals, npt.NDArray[np.int32]]:
    """A reduced graph of m nodes of every tour: features and partners, in the order of the tour."""
    feat = np.zeros((len(tours), m, 5), np.float32)
    partner = np.zeros((len(tours), m), np.int32)
    _cut_each(tours.points, tours.order, tours.offset, m, random_state(seed, m), feat, partner)
    return feat, partner

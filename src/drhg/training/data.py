# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False
"""Training data: decisions on reduced graphs cut out of labelled tours (paper, "Training Scheme").

Each decision is drawn anew: an instance, a centre, a size met exactly by Algorithm 1, a direction,
a first item, a symmetry, and a place in the tour. A batch is a pure function of its seed and
number, so that a resumed run sees what an uninterrupted one would have seen.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from drhg.compiled import Space, kernel, random_below, random_float, random_state
from drhg.errors import ModelError
from drhg.hypergraph import Graphs, Index, Rules
from drhg.neural import Reals, State, orient, see
from drhg.problem import Floats, Ints, Metric
from drhg.repair import LocalSearchRepair
from drhg.weights import ModelConfig

HELD_OUT = 256  # instances of the first shard that are kept for validation


@dataclass(frozen=True)
class Tours:
    """Labelled instances of any sizes, one after the other."""

    points: Floats  # (total, 2)
    order: npt.NDArray[np.int32]  # (total,), each tour's nodes counted from 0
    offset: Ints  # (N + 1,)

    def __len__(self) -> int:
        return len(self.offset) - 1

    def part(self, low: int, high: int) -> Tours:
        """Instances low .. high - 1."""
        a, z = self.offset[low], self.offset[high]
        bounds = self.offset[low : high + 1] - a
        return Tours(self.points[a:z].copy(), self.order[a:z].copy(), bounds.copy())


def read_tours(files: Iterable[Path]) -> Tours:
    """Shards as `labels.py` writes them: instances come from their seed, tours from the file."""
    points, order, sizes = [], [], []
    for file in sorted(files):
        with np.load(file, allow_pickle=False) as shard:
            seed, n, count = (int(shard[name]) for name in ("seed", "n", "count"))
            tours = shard["tours"]
        if tours.shape != (count, n) or not (np.sort(tours, axis=1) == np.arange(n)).all():
            raise ModelError("the labels are no tours", file=str(file))
        points.append(np.random.default_rng(seed).random((count, n, 2)).reshape(-1, 2))
        order.append(tours.astype(np.int32).ravel())
        sizes.append(np.full(count, n))
    if not points:
        raise ModelError("no labels found")
    offset = np.concatenate([[0], np.cumsum(np.concatenate(sizes))]).astype(np.int64)
    return Tours(np.concatenate(points), np.concatenate(order), offset)


@kernel
def _cut_edge(cut, log, count, p):
    """Cut the edge after position p of a cycle; (edges cut so far, nodes that appear)."""
    n = len(cut)
    if cut[p]:
        return count, 0
    new = (0 if cut[p - 1 if p > 0 else n - 1] else 1) + (
        0 if cut[p + 1 if p + 1 < n else 0] else 1
    )
    cut[p] = True
    log[count] = p
    return count + 1, new


@kernel
def cut_to_size(pos, ranked, m, cut, log):
    """Algorithm 1 on a tour: cut around the nearest nodes until m remain; how many edges that took.

    The lean twin of `hypergraph.destroy_to_size` for tours without fixed edges; -1 if there is no
    such cut.
    """
    n = len(cut)
    cut[:] = False
    count = size = 0
    for i in range(len(ranked)):
        if size >= m:
            break
        p = pos[ranked[i]]
        before = count
        count, new = _cut_edge(cut, log, count, p)
        count, more = _cut_edge(cut, log, count, p - 1 if p > 0 else n - 1)
        if size + new + more > m:  # one too many: take it back and top up instead
            for j in range(before, count):
                cut[log[j]] = False
            count = before
            break
        size += new + more
    i = 0
    while i < count and size < m:
        for side in range(2):  # the outermost edge of a hyper-edge adds exactly one node
            p = log[i]
            p = (p + 1 if p + 1 < n else 0) if side == 0 else (p - 1 if p > 0 else n - 1)
            if size < m and not cut[p]:
                before = count
                count, new = _cut_edge(cut, log, count, p)
                if new == 1:
                    size += 1
                else:
                    cut[p] = False
                    count = before
        i += 1
    log[:count].sort()
    return count if size == m else -1


@kernel
def items_between(order, log, count, node, mate):
    """The reduced nodes in tour order and the place of each one's partner; how many."""
    n = len(order)
    m = 0
    for i in range(count):
        a = log[i] + 1 if log[i] + 1 < n else 0
        z = log[i + 1 if i + 1 < count else 0]
        node[m], mate[m] = order[a], m
        if a != z:
            mate[m] = m + 1
            node[m + 1], mate[m + 1] = order[z], m
            m += 1
        m += 1
    return m


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
    pos = np.empty(n, np.int32)
    for p in range(n):
        pos[order[p]] = p
        dx, dy = points[p, 0] - points[centre, 0], points[p, 1] - points[centre, 1]
        away[p] = dx * dx + dy * dy
    away[centre] = -1.0
    ranked = np.argsort(away)[: min(n, m)]
    cut, log = np.empty(n, np.bool_), np.empty(n, np.int32)
    count = cut_to_size(pos, ranked, m, cut, log)
    if count < 0:
        return 0
    node, mate = np.empty(m, np.int32), np.empty(m, np.int32)
    items_between(order, log, count, node, mate)
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


@kernel
def _write_down(feat, m, t, relative, width, free, chosen, far, nodes, context, count, target):
    """The decision at place t of a graph in the order to learn; 1, or 0 if the label is unseen."""
    free[:t] = False
    free[t:m] = True
    seen = see(
        feat, free, m, feat[0], feat[t - 1], 0.0, relative, width, nodes, context, chosen, far
    )
    for j in range(seen):
        if chosen[j] == t:
            count[0], target[0] = seen, j
            nodes[seen:] = 0.0
            return 1
    return 0  # out of sight: cannot be chosen, so cannot be learnt


@kernel
def _draw(
    points, order, offset, low, share, most, per_graph, relative, width, state,
    nodes, context, count, target,
):  # fmt: skip
    """Fill the rows of a batch with decisions; the label is the node that comes next."""
    top = 0
    for i in range(len(offset) - 1):
        top = max(top, offset[i + 1] - offset[i])
    feat = np.empty((top, 5), np.float32)
    partner = np.empty(top, np.int32)
    free = np.empty(top, np.bool_)
    chosen = np.empty(top, np.int32)
    far = np.empty(max(1, width), np.float32)
    b = 0
    while b < len(count):
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
            if b == len(count):
                break
            t = 1 + random_below(state, m - 1)
            last = t == m - 1 or (t == m - 2 and partner[t] == t + 1)
            if partner[t] == t - 1 or last:
                continue  # a forced step teaches nothing
            b += _write_down(
                feat, m, t, relative, width, free, chosen, far,
                nodes[b], context[b], count[b : b + 1], target[b : b + 1],
            )  # fmt: skip


@dataclass(frozen=True)
class Recipe:
    """Which decisions to draw."""

    low: int = 20  # smallest reduced graph
    share: float = 0.8  # largest one as a share of the instance
    most: int = 1000  # and at most so many nodes
    per_graph: int = 1  # decisions tried per graph
    own_tours: float = 0.0  # share of decisions on graphs cut from unfinished tours
    per_own_graph: int = 16  # decisions per such graph, since its label takes a search
    kicks: float = 0.5  # of that search per reduced node: 0.04 to 0.17 % over the optimum


def draw(
    tours: Tours, recipe: Recipe, config: ModelConfig, rows: int, seed: int, number: int
) -> tuple[State, Ints]:
    """Batch `number` of a run: decisions sorted by how much they see, and which node comes next."""
    largest = int(np.diff(tours.offset).max())
    width = config.window or min(recipe.most, max(recipe.low, int(recipe.share * largest)))
    nodes = np.empty((rows, width, config.node_inputs), np.float32)
    context = np.empty((rows, config.context_inputs), np.float32)
    count = np.empty(rows, np.int32)
    target = np.empty(rows, np.int64)
    state = random_state(seed, number)
    own = round(recipe.own_tours * rows)
    out = nodes[own:], context[own:], count[own:], target[own:]
    _draw(
        tours.points, tours.order, tours.offset, recipe.low, recipe.share, recipe.most,
        recipe.per_graph, config.relative, config.window, state, *out,
    )  # fmt: skip
    if own > 0:
        graphs = unfinished_graphs(tours, recipe, -(-own // recipe.per_own_graph), state)
        out = nodes[:own], context[:own], count[:own], target[:own]
        _draw_from(*graphs, recipe.per_own_graph, config.relative, config.window, state, *out)
    by_count = np.argsort(count, kind="stable")
    found = State(nodes[by_count], context[by_count], count[by_count])
    return found, target[by_count]


# --- unfinished tours ----------------------------------------------------------------------------


@kernel
def _insert_randomly(points, state):
    """A tour by insertion of nodes in random order, each where it is cheapest."""
    n = len(points)
    todo = np.arange(n)
    after = np.zeros(n, np.int64)
    for i in range(n):
        j = i + random_below(state, n - i)
        todo[i], todo[j] = todo[j], todo[i]
    after[todo[0]] = todo[0]
    for i in range(1, n):
        x, y = points[todo[i], 0], points[todo[i], 1]
        best, where = np.inf, todo[0]
        for j in range(i):
            a = todo[j]
            z = after[a]
            more = (
                np.hypot(points[a, 0] - x, points[a, 1] - y)
                + np.hypot(points[z, 0] - x, points[z, 1] - y)
                - np.hypot(points[a, 0] - points[z, 0], points[a, 1] - points[z, 1])
            )
            if more < best:
                best, where = more, a
        after[todo[i]] = after[where]
        after[where] = todo[i]
    order = np.empty(n, np.int32)
    node = todo[0]
    for i in range(n):
        order[i] = node
        node = after[node]
    return order


@kernel
def _unfinished(points, offset, picked, state, order):
    for b in range(len(picked)):
        a, z = offset[picked[b]], offset[picked[b] + 1]
        order[b, : z - a] = _insert_randomly(points[a:z], state)


@kernel
def _cut_own(points, offset, picked, order, low, share, most, state, feat, partner, size):
    for b in range(len(picked)):
        a, z = offset[picked[b]], offset[picked[b] + 1]
        high = max(low, min(most, np.int64(share * (z - a))))
        size[b] = 0
        while size[b] == 0:
            m = low + random_below(state, high - low + 1)
            size[b] = cut_graph(points[a:z], order[b, : z - a], m, state, feat[b], partner[b])


def searched(points: Floats, graphs: Graphs, kicks: float, seed: int) -> npt.NDArray[np.int32]:
    """Orders of graphs whose nodes are rows of `points`, by local search on the graphs."""
    space = Space(int(Metric.EXACT), points, np.zeros((0, 0)))
    n = len(points)
    fixed, demand = np.full((n, 2), -1, np.int32), np.zeros(n, np.int64)
    rules = Rules(space, fixed, -1, demand, 1, np.inf, 0.0, 1)
    return LocalSearchRepair(kicks)(rules, graphs, np.random.default_rng(seed)).order


def _as_graphs(size: Index, node: Index, partner: Index) -> Graphs:
    flat, none = np.zeros(node.shape, np.int32), np.zeros(node.shape)
    return Graphs(
        size, node, partner, flat, flat, flat > 0, flat.astype(np.int64), none,
        np.zeros(len(size)), np.zeros(len(size), np.int32),
    )  # fmt: skip


def unfinished_graphs(
    tours: Tours, recipe: Recipe, count: int, state: npt.NDArray[np.uint64]
) -> tuple[Reals, Index, Index, Index]:
    """Reduced graphs as a search meets them: features, partners, sizes, and the order to learn.

    Half are cut from tours of random insertion, half from local optima. The paper trains on
    optimal tours only; what surrounds a graph of an unfinished one is not optimal, and neither are
    its hyper-edges. The order comes from a local search on the graph itself.
    """
    rng = np.random.default_rng(state)
    picked = rng.integers(len(tours), size=count)
    sizes = (tours.offset[picked + 1] - tours.offset[picked]).astype(np.int32)
    top = int(sizes.max())
    order = np.full((count, top), -1, np.int32)
    _unfinished(tours.points, tours.offset, picked, state, order)
    half = slice(0, count // 2)
    if count > 1:  # all nodes of a tour, each an item of its own
        node = np.where(order[half] >= 0, order[half] + tours.offset[picked[half], None], -1)
        alone = np.where(node >= 0, np.arange(top, dtype=np.int32), np.int32(-1))
        whole = _as_graphs(sizes[half], node.astype(np.int32), alone.astype(np.int32))
        better = searched(tours.points, whole, 0.0, int(rng.integers(2**62)))
        order[half] = np.where(
            better >= 0, np.take_along_axis(order[half], np.maximum(better, 0), axis=1), -1
        )
    feat = np.zeros((count, top, 5), np.float32)
    partner = np.full((count, top), -1, np.int32)
    size = np.zeros(count, np.int32)
    _cut_own(
        tours.points, tours.offset, picked, order, recipe.low, recipe.share, recipe.most, state,
        feat, partner, size,
    )  # fmt: skip
    node = np.arange(count * top, dtype=np.int32).reshape(count, top)
    inside = np.arange(top)[None, :] < size[:, None]
    graphs = _as_graphs(size, np.where(inside, node, -1).astype(np.int32), partner)
    points = feat[..., :2].reshape(-1, 2).astype(np.float64)
    return feat, partner, size, searched(points, graphs, recipe.kicks, int(rng.integers(2**62)))


@kernel
def _draw_from(
    feat, partner, size, order, per_graph, relative, width, state, nodes, context, count, target
):
    """Fill a batch with decisions along given orders, `per_graph` of each graph."""
    top = feat.shape[1]
    seen, mate = np.empty((top, 5), np.float32), np.empty(top, np.int32)
    place = np.empty(top, np.int32)
    free, chosen = np.empty(top, np.bool_), np.empty(top, np.int32)
    far = np.empty(max(1, width), np.float32)
    b = 0
    while b < len(count):
        g = min(b // per_graph, len(size) - 1)
        m = size[g]
        start = random_below(state, m)
        step = 1 if random_below(state, 2) == 1 else m - 1
        if partner[g, order[g, start]] == order[g, (start - step + m) % m] and m > 2:
            start = (start - step + m) % m  # at an item, not inside a hyper-edge
        for i in range(m):
            place[order[g, (start + i * step) % m]] = i
        for i in range(m):
            seen[place[i]] = feat[g, i]
            mate[place[i]] = place[partner[g, i]]
        angle = (2.0 * random_float(state) - 1.0) * np.pi
        orient(seen, m, relative, angle, random_below(state, 2) == 1)
        t = 1 + random_below(state, m - 1)
        last = t == m - 1 or (t == m - 2 and mate[t] == t + 1)
        if mate[t] == t - 1 or last:
            continue
        b += _write_down(
            seen, m, t, relative, width, free, chosen, far,
            nodes[b], context[b], count[b : b + 1], target[b : b + 1],
        )  # fmt: skip


@kernel
def _held(points, order, offset, m, state, feat, partner):
    for b in range(len(offset) - 1):
        a, z = offset[b], offset[b + 1]
        while cut_graph(points[a:z], order[a:z], m, state, feat[b], partner[b]) != m:
            pass


def held_out_graphs(tours: Tours, m: int, seed: int = 7) -> tuple[Reals, npt.NDArray[np.int32]]:
    """One reduced graph of m nodes per instance, in optimal order: features and partners."""
    feat = np.zeros((len(tours), m, 5), np.float32)
    partner = np.zeros((len(tours), m), np.int32)
    _held(tours.points, tours.order, tours.offset, m, random_state(seed, m), feat, partner)
    return feat, partner

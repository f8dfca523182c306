# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False
"""Training data: decisions on reduced graphs cut out of labelled tours (paper, "Training Scheme").

Each decision is drawn anew: an instance, a centre, a size met exactly by Algorithm 1, a direction,
a first item, a symmetry, and a place in the tour. Of routes: how many customers are destroyed, in
which order the routes are taken, and each in which direction. A batch is a pure function of its
seed and number, so that a resumed run sees what an uninterrupted one would have seen.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from drhg.compiled import Space, inner, kernel, random_below, random_float, random_state
from drhg.errors import DrhgError, ModelError
from drhg.hypergraph import (
    Graphs,
    Index,
    Plan,
    Repaired,
    Rules,
    destroy_nearest,
    plan_of,
    present,
    reduce,
    rules_of,
    solution_of,
)
from drhg.neural import (
    Reals,
    Scorer,
    State,
    Views,
    decode,
    free_lengths,
    orient,
    see,
    views_of,
)
from drhg.problem import Floats, Instance, Ints, Metric, Solution, cvrp, tsp, validated
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

    @property
    def largest(self) -> int:
        return int(np.diff(self.offset).max())

    def known(self, i: int) -> tuple[Instance, Solution]:
        """An instance and its best tour."""
        a, z = self.offset[i], self.offset[i + 1]
        return tsp(self.points[a:z]), Solution([self.order[a:z]])

    def part(self, low: int, high: int) -> Tours:
        """Instances low .. high - 1."""
        a, z = self.offset[low], self.offset[high]
        bounds = self.offset[low : high + 1] - a
        return Tours(self.points[a:z].copy(), self.order[a:z].copy(), bounds.copy())


@dataclass(frozen=True)
class Plans:
    """Labelled CVRPs, each with its best plan."""

    solved: tuple[tuple[Rules, Plan], ...]

    def __len__(self) -> int:
        return len(self.solved)

    @property
    def largest(self) -> int:
        return max(rules.n - 1 for rules, _ in self.solved)

    def known(self, i: int) -> tuple[Instance, Solution]:
        """An instance and its best plan."""
        rules, plan = self.solved[i]
        instance = cvrp(rules.space.points, rules.demand, rules.capacity, depot=rules.depot)
        return instance, solution_of(rules, plan)

    def part(self, low: int, high: int) -> Plans:
        """Instances low .. high - 1."""
        return Plans(self.solved[low:high])


def read_labels(files: Iterable[Path]) -> Tours | Plans:
    """Shards of either kind, told apart by what they hold."""
    found = sorted(files)
    kinds = set()
    for file in found:
        try:
            with np.load(file, allow_pickle=False) as shard:
                names = set(shard)
        except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
            raise ModelError(f"no shard of labels: {error}", file=str(file)) from None
        if not names & {"seq", "tours"}:
            raise ModelError("no shard of labels: neither tours nor routes in it", file=str(file))
        kinds.add("seq" in names)
    if len(kinds) > 1:
        raise ModelError("labels of tours and of routes cannot be mixed")
    return read_plans(found) if kinds == {True} else read_tours(found)


def read_plans(files: Iterable[Path]) -> Plans:
    """Shards of routes: `xy` (N, n, 2), `demand`, `capacity` and `seq`, depots 0 between routes.

    The instances of a shard are shuffled, always in the same way, for some come sorted by kind.
    """
    solved: list[tuple[Rules, Plan]] = []
    for file in sorted(files):
        with np.load(file, allow_pickle=False) as shard:
            arrays = [shard[name] for name in ("xy", "demand", "capacity", "seq")]
        for i in np.random.default_rng(0).permutation(len(arrays[0])):
            xy, demand, capacity, seq = (array[i] for array in arrays)
            try:
                instance = cvrp(xy, demand, int(capacity))
                solved.append(labelled(instance, seq[seq >= 0]))
            except DrhgError as error:
                reason = f"label {i} is no plan: {error.reason}"
                raise ModelError(reason, file=str(file)) from None
    if not solved:
        raise ModelError("no labels found")
    return Plans(tuple(solved))


def labelled(instance: Instance, seq: npt.NDArray[np.integer]) -> tuple[Rules, Plan]:
    """An instance and its routes, written one after the other with the depot 0 between them."""
    routes = np.split(seq.astype(np.int64), np.flatnonzero(seq == 0))
    solution = validated(instance, Solution([r[r > 0] for r in routes if (r > 0).any()]))
    rules = rules_of(instance)
    return rules, plan_of(rules, solution)


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


@inner
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


@inner
def _write_down(
    feat, partner, m, t, relative, width, load, free, chosen, far,
    nodes, context, count, direct, right,
):  # fmt: skip
    """The decision at place t of a graph in the order to learn; 1, or 0 if the label is unseen."""
    free[:t] = False
    free[t:m] = True
    seen = see(
        feat, partner, load, 1, 0, m, free, feat[0], feat[t - 1], 1,
        relative, width, nodes, context, direct, chosen, far,
    )  # fmt: skip
    for j in range(seen):
        if chosen[j] == t:
            count[0] = seen
            nodes[seen:] = 0.0
            direct[seen:] = False
            right[:] = False
            right[j, 0] = True
            return 1
    return 0  # out of sight: cannot be chosen, so cannot be learnt


@kernel
def _draw(
    points, order, offset, low, share, most, per_graph, relative, width, state,
    nodes, context, count, direct, right,
):  # fmt: skip
    """Fill the rows of a batch with decisions; the label is the node that comes next."""
    top = 0
    for i in range(len(offset) - 1):
        top = max(top, offset[i + 1] - offset[i])
    feat = np.empty((top, 5), np.float32)
    partner = np.empty(top, np.int32)
    free, load = np.empty(top, np.bool_), np.zeros(top, np.int64)
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
                feat, partner, m, t, relative, width, load, free, chosen, far,
                nodes[b], context[b], count[b : b + 1], direct[b], right[b],
            )  # fmt: skip


@dataclass(frozen=True)
class Recipe:
    """Which decisions to draw."""

    low: int = 20  # smallest reduced graph
    share: float = 0.8  # largest one as a share of the instance
    most: int = 1000  # and at most so many nodes
    per_graph: int = 1  # decisions tried per graph
    touched: float = 0.2  # share of graphs of routes that lose all depot edges of touched routes
    own_tours: float = 0.0  # share of decisions on graphs cut from unfinished tours
    per_own_graph: int = 16  # decisions per such graph, since its label takes a search
    kicks: float = 0.5  # of that search per reduced node: 0.04 to 0.17 % over the optimum


def draw(
    labels: Tours | Plans, recipe: Recipe, config: ModelConfig, rows: int, seed: int, number: int
) -> tuple[State, npt.NDArray[np.bool_]]:
    """Batch `number` of a run: decisions sorted by how much they see, and which are right.

    The second is (B, W, outputs): of a tour exactly one node, of routes also every node that a
    route may begin with.
    """
    if config.routes != isinstance(labels, Plans):
        raise ModelError("these labels are not of the kind that the network is for")
    width = config.window or labels.largest
    nodes = np.empty((rows, width, config.node_inputs), np.float32)
    context = np.empty((rows, config.context_inputs), np.float32)
    count = np.empty(rows, np.int32)
    direct = np.empty((rows, width), np.bool_)
    right = np.empty((rows, width, config.outputs), np.bool_)
    arrays = nodes, context, count, direct, right
    state = random_state(seed, number)
    if isinstance(labels, Plans):
        _draw_routes(labels, recipe, config, state, arrays)
    else:
        own = round(recipe.own_tours * rows)
        _draw(
            labels.points, labels.order, labels.offset, recipe.low, recipe.share, recipe.most,
            recipe.per_graph, config.relative, config.window, state, *(a[own:] for a in arrays),
        )  # fmt: skip
        if own > 0:
            graphs = unfinished_graphs(labels, recipe, -(-own // recipe.per_own_graph), state)
            how = recipe.per_own_graph, config.relative, config.window
            _draw_from(*graphs, *how, state, *(a[:own] for a in arrays))
    by_count = np.argsort(count, kind="stable")
    top = int(count.max())
    found = State(nodes[by_count, :top], context[by_count], count[by_count], direct[by_count, :top])
    return found, right[by_count, :top]


# --- routes --------------------------------------------------------------------------------------

TOGETHER = 8  # graphs cut from the same plan at once
SPARE = 0.15  # how often a plan pretends to have one route more than the best one needs
ONWARD = 0.75  # how often the next route to learn begins as near as possible


@kernel
def lay_routes(feat, partner, via, m, start, state, entry, leave, through):
    """An order to learn a graph's items in: route after route; returns how many items.

    Of each item where it is entered and left, and whether that is through the depot. As in a
    decoding, the next route mostly begins near where the last one ended, at first near `start`.
    """
    first, last = np.empty(m, np.int32), np.empty(m, np.int32)
    bound = np.empty(m + 1, np.int32)  # where the items of a route begin
    items = routes = i = 0
    while i < m:
        if via[i]:
            bound[routes] = items
            routes += 1
        first[items] = i
        last[items] = partner[i] if partner[i] > i else i
        i = last[items] + 1
        items += 1
    bound[routes] = items
    todo = np.arange(routes)
    here, step = start, 0
    for r in range(routes):
        chosen, side, best = r + random_below(state, routes - r), random_below(state, 2), np.inf
        if random_float(state) < ONWARD:
            for q in range(r, routes):
                a, z = bound[todo[q]], bound[todo[q] + 1] - 1
                for s in range(2):
                    u = first[a] if s == 0 else last[z]
                    dx, dy = feat[u, 0] - feat[here, 0], feat[u, 1] - feat[here, 1]
                    if dx * dx + dy * dy < best:
                        chosen, side, best = q, s, dx * dx + dy * dy
        todo[r], todo[chosen] = todo[chosen], todo[r]
        a, z = bound[todo[r]], bound[todo[r] + 1]
        for j in range(z - a):
            item = a + j if side == 0 else z - 1 - j
            entry[step] = first[item] if side == 0 else last[item]
            leave[step] = last[item] if side == 0 else first[item]
            through[step] = j == 0
            here = leave[step]
            step += 1
    return items


@inner
def _write_routes(
    feat, partner, load, capacity, spare, m, entry, leave, through, items, t, start,
    relative, width,
    free, starts, chosen, far, nodes, context, count, direct, right,
):  # fmt: skip
    """The decision before item t; 1, or 0 if no right answer is in sight.

    Where a route begins, either end of every route that is left to do is right.
    """
    free[:m] = False
    starts[:m] = False
    fleet = spare
    for s in range(t, items):
        free[entry[s]] = True
        free[leave[s]] = True
        if through[s]:
            fleet += 1
            starts[entry[s]] = True
        if s + 1 == items or through[s + 1]:
            starts[leave[s]] = True
    here, room = start, -1
    if t > 0:
        here, s = leave[t - 1], t - 1
        if through[s] or partner[here] >= 0:  # else a stub has ended the route
            room = capacity - load[entry[s]]
            while not through[s]:
                s -= 1
                room -= load[entry[s]]
    seen = see(
        feat, partner, load, capacity, fleet, m, free, feat[m], feat[here], room,
        relative, width, nodes, context, direct, chosen, far,
    )  # fmt: skip
    right[:] = False
    found = 0
    for j in range(seen):
        if through[t] and starts[chosen[j]]:
            right[j, 1] = True
            found = 1
        elif not through[t] and chosen[j] == entry[t]:
            right[j, 0] = True
            found = 1
    count[0] = seen
    nodes[seen:] = 0.0
    direct[seen:] = False
    return found


@kernel
def _draw_from_routes(
    feat, partner, load, capacity, fleet, size, via, per_graph, relative, width, state,
    nodes, context, count, direct, right,
):  # fmt: skip
    """Fill rows with decisions along given routes; how many rows that gave."""
    top = partner.shape[1]
    entry, leave = np.empty(top, np.int32), np.empty(top, np.int32)
    through = np.empty(top, np.bool_)
    free, starts = np.empty(top, np.bool_), np.empty(top, np.bool_)
    chosen, far = np.empty(top, np.int32), np.empty(max(1, width), np.float32)
    b = 0
    for g in range(len(size)):
        m = size[g]
        if m < 2:
            continue
        angle = (2.0 * random_float(state) - 1.0) * np.pi
        orient(feat[g], m, relative, angle, random_below(state, 2) == 1)
        for _ in range(per_graph):
            start = random_below(state, m)
            items = lay_routes(feat[g], partner[g], via[g], m, start, state, entry, leave, through)
            if b == len(count) or items < 2:
                break
            t = random_below(state, items - 1)  # the last item needs no network
            spare = 1 if random_float(state) < SPARE else 0
            b += _write_routes(
                feat[g], partner[g], load[g], capacity[g], spare, m, entry, leave, through,
                items, t, start, relative, width, free, starts, chosen, far,
                nodes[b], context[b], count[b : b + 1], direct[b], right[b],
            )  # fmt: skip
    return b


def cut_plan(
    rules: Rules, plan: Plan, counts: npt.ArrayLike, depot_edges: str, rng: np.random.Generator
) -> Graphs:
    """Reduced graphs of a plan, one per count of customers destroyed around a random one."""
    customers = np.flatnonzero(np.arange(rules.n) != rules.depot)
    points = rules.space.points[customers]
    centres = points[rng.integers(len(customers), size=np.size(counts))]
    away = ((points - centres[:, None]) ** 2).sum(-1)  # (B, n - 1)
    ranked = customers[np.argsort(away, axis=1)].astype(np.int32)
    cuts = destroy_nearest(rules, plan, ranked, counts, depot_edges=depot_edges)
    return reduce(rules, plan, *cuts)


def _draw_routes(
    plans: Plans,
    recipe: Recipe,
    config: ModelConfig,
    state: npt.NDArray[np.uint64],
    arrays: tuple[npt.NDArray[Any], ...],
) -> None:
    rng = np.random.default_rng(state)
    b, rows = 0, len(arrays[0])
    while b < rows:
        rules, plan = plans.solved[rng.integers(len(plans))]
        high = max(recipe.low, min(recipe.most, int(recipe.share * (rules.n - 1))))
        counts = rng.integers(recipe.low, high + 1, size=TOGETHER)
        edges = "touched" if rng.random() < recipe.touched else "adjacent"
        graphs = cut_plan(rules, plan, counts, edges, rng)
        b += _draw_from_routes(
            *views_of(rules, graphs).arrays, graphs.via, recipe.per_graph, config.relative,
            config.window, state, *(a[b:] for a in arrays),
        )  # fmt: skip


# --- unfinished tours ----------------------------------------------------------------------------


@inner
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
    feat, partner, size, order, per_graph, relative, width, state,
    nodes, context, count, direct, right,
):  # fmt: skip
    """Fill a batch with decisions along given orders, `per_graph` of each graph."""
    top = feat.shape[1]
    seen, mate = np.empty((top, 5), np.float32), np.empty(top, np.int32)
    place = np.empty(top, np.int32)
    free, chosen = np.empty(top, np.bool_), np.empty(top, np.int32)
    load, far = np.zeros(top, np.int64), np.empty(max(1, width), np.float32)
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
            seen, mate, m, t, relative, width, load, free, chosen, far,
            nodes[b], context[b], count[b : b + 1], direct[b], right[b],
        )  # fmt: skip


@kernel
def _held(points, order, offset, m, state, feat, partner):
    for b in range(len(offset) - 1):
        a, z = offset[b], offset[b + 1]
        while cut_graph(points[a:z], order[a:z], m, state, feat[b], partner[b]) != m:
            pass


def held_out_graphs(
    labels: Tours | Plans, m: int, seed: int = 7
) -> Iterator[tuple[Views, Repaired]]:
    """One reduced graph per instance and its best repair: of m nodes, or m customers destroyed."""
    if isinstance(labels, Plans):
        rng = np.random.default_rng([seed, m])
        for rules, plan in labels.solved:
            graphs = cut_plan(rules, plan, min(m, rules.n - 1), "adjacent", rng)
            yield views_of(rules, graphs), present(graphs)
        return
    feat = np.zeros((len(labels), m, 5), np.float32)
    partner = np.zeros((len(labels), m), np.int32)
    _held(labels.points, labels.order, labels.offset, m, random_state(seed, m), feat, partner)
    none, one = np.zeros(partner.shape, np.int64), np.ones(len(labels), np.int64)
    best = np.tile(np.arange(m, dtype=np.int32), (len(labels), 1))
    size = np.full(len(labels), m, np.int32)
    yield (
        Views(feat, partner, none, one, none[:, 0].astype(np.int32), size),
        Repaired(best, np.zeros(best.shape, np.bool_)),
    )


def held_out_gap(model: Scorer, labels: Tours | Plans, m: int) -> float:
    """Mean gap in percent of greedy repairs of held-out graphs, on the free edges only."""
    ratios = []
    for views, best in held_out_graphs(labels, m):
        found = decode(model, views, np.zeros(len(views), np.int32))
        ratios.append(free_lengths(views, found) / free_lengths(views, best))
    return 100 * (float(np.concatenate(ratios).mean()) - 1)

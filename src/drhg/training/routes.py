# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False
"""Decisions on reduced graphs that are cut out of labelled plans of routes.

Drawn are besides what is drawn of tours: how many customers are destroyed, in which order the
routes are taken, and each in which direction.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from drhg.hypergraph.cut import destroy_nearest
from drhg.hypergraph.plan import Plan, Rules
from drhg.hypergraph.reduce import Graphs, reduce
from drhg.kernels.jit import inner, kernel
from drhg.kernels.random import random_below, random_float
from drhg.network.gradient import Lesson
from drhg.network.views import Graph, Place, Seen, Views, orient, see, views_of
from drhg.network.weights import ModelConfig
from drhg.training.recipe import Examples
from drhg.training.shards import Plans


class Items(NamedTuple):
    """The items of a graph in an order to learn them in."""

    entry: npt.NDArray[np.int32]  # where each is entered
    leave: npt.NDArray[np.int32]  # and left
    through: npt.NDArray[np.bool_]  # entered through the depot


class Drawing(NamedTuple):
    """What is drawn of a plan (see `Examples`), and what the network sees of it."""

    per_graph: int
    spare: float
    onward: float
    relative: bool
    width: int


class Moment(NamedTuple):
    """A place in an order to learn."""

    items: int  # in that order
    t: int  # of which so many are placed
    start: int  # the current node before the first
    spare: int  # vehicles besides those that the rest needs


class Marks(NamedTuple):
    """Scratch: for each node, whether it is left to do, and whether a route may begin there."""

    free: npt.NDArray[np.bool_]
    starts: npt.NDArray[np.bool_]


def items_of(most: int) -> Items:
    """Memory for so many items."""
    return Items(np.empty(most, np.int32), np.empty(most, np.int32), np.empty(most, np.bool_))


@kernel
def lay_routes(feat, partner, via, m, start, onward, state, items):
    """An order to learn a graph's items in: route after route; returns how many items.

    As in a decoding, the next route begins near where the last one ended, at first near `start`,
    or else, with the probability 1 - `onward`, anywhere.
    """
    entry, leave, through = items
    first, last = np.empty(m, np.int32), np.empty(m, np.int32)
    bound = np.empty(m + 1, np.int32)  # where the items of a route begin
    count = routes = i = 0
    while i < m:
        if via[i]:
            bound[routes] = count
            routes += 1
        first[count] = i
        last[count] = partner[i] if partner[i] > i else i
        i = last[count] + 1
        count += 1
    bound[routes] = count
    todo = np.arange(routes)
    here, step = start, 0
    for r in range(routes):
        chosen, side, best = r + random_below(state, routes - r), random_below(state, 2), np.inf
        if random_float(state) < onward:
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
    return count


@inner
def _write_down(graph, m, items, moment, drawing, marks, seen, right):
    """The decision before item t of `count`: how many nodes it sees, 0 if no right answer is seen.

    Where a route begins, either end of every route that is left to do is right.
    """
    entry, leave, through = items
    count, t, start, fleet = moment
    free, starts = marks
    free[:m] = False
    starts[:m] = False
    for s in range(t, count):
        free[entry[s]] = True
        free[leave[s]] = True
        if through[s]:
            fleet += 1
            starts[entry[s]] = True
        if s + 1 == count or through[s + 1]:
            starts[leave[s]] = True
    here, room = _place(graph, items, t, start)
    place = Place(graph.feat[m], graph.feat[here], room, fleet)
    visible = see(graph, free, m, place, drawing.relative, drawing.width, seen)
    right[:] = False
    found = False
    for j in range(visible):
        if through[t] and starts[seen.chosen[j]]:
            right[j, 1] = found = True
        elif not through[t] and seen.chosen[j] == entry[t]:
            right[j, 0] = found = True
    seen.nodes[visible:] = 0.0
    seen.direct[visible:] = False
    return visible if found else 0


@inner
def _place(graph, items, t, start):
    """The current node before item t, and the room left."""
    if t == 0:
        return np.int64(start), np.int64(-1)
    entry, leave, through = items
    here, s, room = np.int64(leave[t - 1]), t - 1, np.int64(-1)
    if through[s] or graph.partner[here] >= 0:  # else a stub has ended the route
        room = graph.capacity - graph.load[entry[s]]
        while not through[s]:
            s -= 1
            room -= graph.load[entry[s]]
    return here, room


@kernel
def _draw(views, via, drawing, state, items, lesson, begin):
    """Fill the rows of a batch from `begin` on with decisions along given routes; the next row."""
    feat, partner, load, capacity, _, size = views
    per_graph, spare, onward, relative, width = drawing
    top = partner.shape[1]
    marks = Marks(np.empty(top, np.bool_), np.empty(top, np.bool_))
    chosen, far = np.empty(top, np.int32), np.empty(max(1, width), np.float32)
    b = begin
    for g in range(len(size)):
        m = np.int64(size[g])
        if m < 2:
            continue
        graph = Graph(feat[g], partner[g], load[g], capacity[g])
        angle = (2.0 * random_float(state) - 1.0) * np.pi
        orient(feat[g], m, relative, angle, random_below(state, 2) == 1)
        for _ in range(per_graph):
            start = random_below(state, m)
            count = lay_routes(feat[g], partner[g], via[g], m, start, onward, state, items)
            if b == len(lesson.counts) or count < 2:
                break
            t = random_below(state, count - 1)  # the last item needs no network
            more = 1 if random_float(state) < spare else 0
            seen = Seen(lesson.nodes[b], lesson.context[b], lesson.direct[b], chosen, far)
            moment = Moment(count, t, start, more)
            lesson.counts[b] = _write_down(
                graph, m, items, moment, drawing, marks, seen, lesson.right[b]
            )
            b += 1 if lesson.counts[b] > 0 else 0
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


def draw_routes(
    plans: Plans,
    examples: Examples,
    config: ModelConfig,
    state: npt.NDArray[np.uint64],
    lesson: Lesson,
) -> None:
    """Fill a batch with decisions."""
    rng = np.random.default_rng(state)
    drawing = Drawing(
        examples.per_graph, examples.spare, examples.onward, config.relative, config.window
    )
    b = 0
    while b < len(lesson.counts):
        graphs, views = cut_some(plans, examples, rng)
        b = _draw(
            views.arrays, graphs.via, drawing, state, items_of(graphs.node.shape[1]), lesson, b
        )


def cut_some(plans: Plans, examples: Examples, rng: np.random.Generator) -> tuple[Graphs, Views]:
    """Some reduced graphs of a random plan."""
    rules, plan = plans.solved[rng.integers(len(plans))]
    high = max(examples.low, min(examples.most, int(examples.share * (rules.n - 1))))
    counts = rng.integers(examples.low, high + 1, size=examples.together)
    edges = "touched" if rng.random() < examples.touched else "adjacent"
    graphs = cut_plan(rules, plan, counts, edges, rng)
    return graphs, views_of(rules, graphs)

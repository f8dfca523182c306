"""Repair by local search: k-opt on tours, moves between routes."""

from __future__ import annotations

import numpy as np

from drhg.hypergraph.judge import Repaired, present, walk
from drhg.hypergraph.plan import EVERYWHERE, OK, Rules
from drhg.hypergraph.reduce import Graphs
from drhg.kernels.jit import inner, kernel
from drhg.kernels.random import random_state
from drhg.kernels.space import EXPLICIT, Space, distance
from drhg.local_search.kopt import (
    MoveContext,
    breadth_of,
    improve_queued,
    kick_and_improve,
    workspace_of,
)
from drhg.local_search.params import MoveParams
from drhg.problem.tolerances import REPAIR_SLACK
from drhg.repair.insertion import InsertionRepair
from drhg.repair.route_moves import (
    ReducedRoutes,
    RouteMoveLimits,
    improve_routes,
    line_of,
    pieces_of,
    write_back,
)


class LocalSearchRepair:
    """Rearrange nodes and intact pieces by local search on the reduced graph.

    For a tour: 2-opt, or-opt and 3-opt moves that respect hyper-edges, from greedy edges and from
    the present order, then `kicks` perturbations per reduced node on the better of the two. For
    routes: moves of up to `stretch` pieces (see `route_moves`), from the present routes and with
    isolated nodes inserted anew. With a limited fleet a region keeps its number of routes.
    """

    def __init__(
        self,
        kicks: float = 0.5,
        neighbours: int = 8,
        stretch: int = 3,
        moves: MoveParams | None = None,
    ) -> None:
        self.kicks, self.neighbours, self.stretch = kicks, neighbours, stretch
        self.moves = moves or MoveParams()

    def __call__(self, rules: Rules, graphs: Graphs, rng: np.random.Generator) -> Repaired:
        if rules.depot >= 0:
            return _improved_routes(rules, graphs, rng, self.neighbours, self.stretch)
        state = random_state(int(rng.integers(2**63)))
        breadth = breadth_of(self.moves)
        order = _search_tours(
            rules.space, graphs.size, graphs.node, graphs.partner, self.neighbours, breadth,
            workspace_of(graphs.node.shape[1]), self.kicks, self.moves.longest_kick, state,
        )  # fmt: skip
        return Repaired(order, np.zeros(order.shape, np.bool_))


def _improved_routes(
    rules: Rules, graphs: Graphs, rng: np.random.Generator, neighbours: int, stretch: int
) -> Repaired:
    """The best of the present routes, these improved, and improved ones with single nodes moved."""
    most = graphs.size if rules.vehicles >= EVERYWHERE else graphs.n_routes
    limit = rules.max_length * (1 + REPAIR_SLACK)
    answer = present(graphs)
    _, best, _ = walk(rules, graphs, answer)
    for start in (present(graphs), InsertionRepair()(rules, graphs, rng)):
        verdict, _, used = walk(rules, graphs, start)
        for row in np.flatnonzero((verdict == OK) & (used <= most)):
            m = int(graphs.size[row])
            parts = graphs.node[row], graphs.partner[row], graphs.load[row], graphs.length[row]
            pieces = pieces_of(rules.space, rules.depot, ReducedRoutes(m, *parts), neighbours)
            limits = RouteMoveLimits(rules.capacity, limit, int(most[row]), stretch)
            line = line_of(pieces, start.order[row], start.via[row], limits)
            improve_routes(pieces, line, limits)
            write_back(pieces, line, start.order[row], start.via[row])
        verdict, total, used = walk(rules, graphs, start)
        better = (verdict == OK) & (used <= most) & (total < best)
        answer.order[better], answer.via[better] = start.order[better], start.via[better]
        best = np.where(better, total, best)
    return answer


@inner
def _local_problem(space, size, node, partner, neighbours):
    """Coordinates (or distances), fixed edges and neighbour lists of one reduced graph."""
    xy = np.empty((size, 2), np.float64)
    near_matrix = np.zeros((size, size) if space.metric == EXPLICIT else (0, 0), np.float64)
    held = np.full((size, 2), -1, np.int32)
    for i in range(size):
        xy[i, 0], xy[i, 1] = space.points[node[i], 0], space.points[node[i], 1]
        if partner[i] != i:
            held[i, 0] = partner[i]
        if space.metric == EXPLICIT:
            for j in range(size):
                near_matrix[i, j] = space.matrix[node[i], node[j]]
    ground = Space(space.metric, xy, near_matrix)
    width = min(neighbours, size - 1)
    near = np.full((size, max(1, width)), -1, np.int32)
    span = np.empty(size, np.float64)
    for i in range(size):
        for c in range(width):
            span[c] = np.inf
        for j in range(size):
            if j == i or partner[i] == j:
                continue
            d = distance(ground, i, j)
            if d < span[width - 1]:
                c = width - 1
                while c > 0 and span[c - 1] > d:
                    span[c], near[i, c] = span[c - 1], near[i, c - 1]
                    c -= 1
                span[c], near[i, c] = d, j
    return ground, held, near


@inner
def _greedy_tour(space, held, near):
    """Hyper-edges, then the shortest candidate edges; loose ends are joined nearest first."""
    size, width = near.shape
    link = np.full((size, 2), -1, np.int32)
    root = np.arange(size)
    for i in range(size):
        if held[i, 0] >= 0:
            link[i, 0] = held[i, 0]
            root[i] = min(i, held[i, 0])
    key = np.full(size * width, np.inf)
    for i in range(size):
        for c in range(width):
            if near[i, c] >= 0:
                key[i * width + c] = distance(space, i, near[i, c])
    for e in np.argsort(key):
        if key[e] == np.inf:
            break
        i = e // width
        j = near[i, e % width]
        if link[i, 1] >= 0 or link[j, 1] >= 0:
            continue
        a, b = i, j
        while root[a] != a:
            a = root[a]
        while root[b] != b:
            b = root[b]
        if a == b:
            continue
        root[a] = b
        link[i, 0 if link[i, 0] < 0 else 1] = j
        link[j, 0 if link[j, 0] < 0 else 1] = i
    # walk a fragment, hop to the nearest loose end, and so on
    tour = np.empty(size, np.int32)
    seen = np.zeros(size, np.bool_)
    here = 0
    for i in range(size):
        if link[i, 1] < 0:
            here = i
            break
    w = 0
    while True:
        before = -1
        while True:
            seen[here] = True
            tour[w] = here
            w += 1
            onward = -1
            for c in range(2):
                if link[here, c] >= 0 and link[here, c] != before and not seen[link[here, c]]:
                    onward = link[here, c]
            if onward < 0:
                break
            before, here = here, onward
        if w == size:
            return tour
        best = np.inf
        hop = -1
        for j in range(size):
            if not seen[j] and link[j, 1] < 0:
                d = distance(space, here, j)
                if d < best:
                    best, hop = d, j
        here = hop


@inner
def _positions(tour):
    pos = np.empty(len(tour), np.int32)
    for i in range(len(tour)):
        pos[tour[i]] = i
    return pos


@inner
def _length(space, tour):
    total = 0.0
    for i in range(len(tour)):
        total += distance(space, tour[i - 1], tour[i])
    return total


@inner
def _descend(context, tour, pos, work):
    """Improve a tour to a local optimum, in place; returns the gain."""
    for i in range(len(tour)):
        work.queue[i] = tour[i]
        work.queued[i] = True
    gain, _ = improve_queued(context, tour, pos, work, len(tour), -1)
    return gain


@kernel
def _search_tours(space, size, node, partner, neighbours, breadth, work, kicks, longest, state):
    rows, width = node.shape
    order = np.full((rows, width), -1, np.int32)
    for b in range(rows):
        m = size[b]
        if m < 4:
            order[b, :m] = np.arange(m)
            continue
        ground, held, near = _local_problem(space, m, node[b], partner[b], neighbours)
        context = MoveContext(ground, held, near, breadth)
        tour = _greedy_tour(ground, held, near)
        present = np.arange(m).astype(np.int32)
        pos = _positions(tour)
        where = present.copy()
        greedy = _length(ground, tour) - _descend(context, tour, pos, work)
        kept = _length(ground, present) - _descend(context, present, where, work)
        if kept < greedy:
            tour, pos = present, where
        kick_and_improve(context, tour, pos, work, state, int(kicks * m), longest)
        # begin with a whole piece: if the last node's partner comes first, shift by one
        shift = 1 if partner[b, tour[0]] == tour[m - 1] and tour[0] != tour[m - 1] else 0
        if m > 2 and partner[b, tour[0]] == tour[1]:
            shift = 0
        for i in range(m):
            order[b, i] = tour[(i + m - shift) % m]
    return order

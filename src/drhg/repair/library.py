"""Repair by solvers from other packages.

The reduced graph of a region is a small TSP or CVRP in which some edges, the hyper-edges, must be
used. Any solver that takes a matrix of whole numbers can be made to use them: they cost nothing,
and other edges at their ends a large amount more. What comes back is looked at: an answer that
lost a hyper-edge, breaks a limit or is longer than what was there is dropped.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from drhg.errors import DrhgError
from drhg.hypergraph.judge import Repaired, present, walk
from drhg.hypergraph.plan import EVERYWHERE, OK, Index, Rules
from drhg.hypergraph.reduce import Graphs
from drhg.kernels.jit import kernel
from drhg.kernels.space import distance
from drhg.problem import Ints
from drhg.repair.solvers import LONGEST_DISTANCE, SMALLEST, SOLVERS, Routes, SmallProblem

log = logging.getLogger("drhg")

LARGEST_NUMBER = 65_535  # that every one of the solvers of tours takes
PENALTY = 20_000  # what an edge of a tour costs more for not being a hyper-edge


class LibraryRepair:
    """Let a solver from another package reconnect every reduced graph, of a tour or of routes.

    A call lasts `seconds` per graph, so results depend on the machine's speed and are not the same
    every time, unlike those of the other repairers. Distances of a tour are cut off at `cutoff`
    times its longest edge. With a limited fleet a region keeps its number of routes.

    >>> from drhg.repair.library import LibraryRepair
    >>> repair = LibraryRepair("fast_tsp", seconds=0.1)
    """

    def __init__(
        self,
        solver: str = "fast_tsp",
        seconds: float = 0.1,
        threads: int = 1,
        cutoff: float = 4.0,
    ) -> None:
        if solver not in SOLVERS:
            raise DrhgError(f"unknown library {solver!r}; known: {', '.join(SOLVERS)}")
        try:
            import_module(solver)
        except ImportError:
            raise DrhgError(f"{solver} is not installed: pip install {solver}") from None
        self.name, self.solver = solver, SOLVERS[solver]
        self.seconds, self.threads, self.cutoff = seconds, threads, cutoff

    def __call__(self, rules: Rules, graphs: Graphs, rng: np.random.Generator) -> Repaired:
        routes = rules.depot >= 0
        if not (self.solver.routes if routes else self.solver.tours):
            fit = ", ".join(n for n, s in SOLVERS.items() if (s.routes if routes else s.tours))
            raise DrhgError(f"{self.name} does not solve {'routes' if routes else 'tours'}: {fit}")
        answer, before = present(graphs), present(graphs)
        for row in range(len(graphs)):
            if graphs.size[row] >= SMALLEST:
                (self._routes if routes else self._tour)(rules, graphs, row, rng, answer)
        verdict, total, used = walk(rules, graphs, answer)
        worse = (verdict != OK) | (total > walk(rules, graphs, before)[1])
        if rules.vehicles < EVERYWHERE:
            worse |= used > graphs.n_routes
        answer.order[worse], answer.via[worse] = before.order[worse], before.via[worse]
        return answer

    def _solved(self, problem: SmallProblem, rng: np.random.Generator) -> Routes:
        """Its answer; none, with a warning, if it fails: that is no reason to fail ourselves."""
        seed = int(rng.integers(2**31 - 1))
        try:
            return self.solver.prepare(problem, self.seconds, seed, self.threads)()
        except Exception as error:
            log.warning("%s failed: %s: %s", self.name, type(error).__name__, error)
            return []

    def _tour(
        self, rules: Rules, graphs: Graphs, row: int, rng: np.random.Generator, answer: Repaired
    ) -> None:
        m = int(graphs.size[row])
        shuffled = rng.permutation(m)  # solvers start differently then
        back = np.empty(m, np.int32)
        back[shuffled] = np.arange(m, dtype=np.int32)
        node, partner = graphs.node[row, shuffled], back[graphs.partner[row, shuffled]]
        longest = _longest(rules.space, graphs.node[row, :m], graphs.partner[row, :m])
        matrix = _matrix(rules.space, node, partner, self.cutoff * longest)
        found = self._solved(SmallProblem(matrix), rng)
        order = _with_hyper_edges(np.asarray(found[0] if found else []), partner)
        if order is not None:
            answer.order[row, :m] = shuffled[order]

    def _routes(
        self, rules: Rules, graphs: Graphs, row: int, rng: np.random.Generator, answer: Repaired
    ) -> None:
        m = int(graphs.size[row])
        problem, mate = _small_problem(rules, graphs, row)
        if not self.solver.fleet:
            problem = replace(problem, vehicles=None)
        found = _with_stubs(self._solved(problem, rng), mate, m)
        if found is not None:
            answer.order[row, :m], answer.via[row, :m] = found


def _small_problem(rules: Rules, graphs: Graphs, row: int) -> tuple[SmallProblem, Ints]:
    """A reduced graph of routes as a CVRP, and the place that must be beside each, or -1.

    Place 0 is the depot, 1 to m are the nodes. A stub gets one more place, at the depot, on the
    way from its free end. The load of a hyper-edge is at its first end.
    """
    m = int(graphs.size[row])
    partner, load, length = graphs.partner[row, :m], graphs.load[row, :m], graphs.length[row, :m]
    own = np.arange(m)
    stubs = np.flatnonzero(partner < 0)
    outer = 1 + m + np.arange(len(stubs))  # places of stubs at the depot
    n = 1 + m + len(stubs)
    node = np.full(n, rules.depot)
    node[1 : m + 1] = graphs.node[row, :m]
    mate = np.full(n, -1)
    wide = np.flatnonzero((partner >= 0) & (partner != own))
    mate[1 + wide] = 1 + partner[wide]
    mate[1 + stubs], mate[outer] = outer, 1 + stubs
    demand = np.zeros(n, np.int64)
    demand[1 : m + 1] = np.where((partner < 0) | (partner >= own), load, 0)

    far = _between(rules.space, node)
    top = max(float(far[:, 1:].max(initial=0.0)), 1e-300)
    scale = (
        1.0 if (far == np.rint(far)).all() and top < LONGEST_DISTANCE else LONGEST_DISTANCE / top
    )
    matrix = np.rint(far * scale).astype(np.int64)
    force = 4 * int(matrix.max()) + 2
    weight = np.zeros(n, np.int64)  # of all edges at a place but the one that must be used
    weight[mate >= 0], weight[outer] = force // 2, force
    matrix += weight[:, None] + weight[None, :]
    held = np.flatnonzero(mate >= 0)
    matrix[held, mate[held]] = 0
    matrix[outer, 0] = matrix[0, outer] = 0
    np.fill_diagonal(matrix, 0)

    limits: dict[str, Any] = {}
    if rules.max_length < np.inf:  # rounded in its favour: the caller judges
        lengths = np.floor(far * scale).astype(np.int64)
        inside = np.concatenate(([0], length, length[stubs]))
        lengths[held, mate[held]] = np.floor(inside[np.minimum(held, mate[held])] * scale)
        alone = np.zeros(n)
        alone[1 : m + 1] = np.where(partner == own, length, 0.0)
        limits["lengths"], limits["max_length"] = lengths, int(np.ceil(rules.max_length * scale))
        limits["service"] = np.floor(alone * scale).astype(np.int64)
    if rules.vehicles < EVERYWHERE:
        limits["vehicles"] = int(graphs.n_routes[row])
    start: Routes = []
    for u in range(m):
        if graphs.via[row, u]:
            start.append([])
        stub = [int(mate[1 + u])] if partner[u] < 0 else []
        start[-1].extend([*stub, 1 + u] if graphs.via[row, u] else [1 + u, *stub])
    xy = rules.space.points[node]
    return SmallProblem(matrix, demand, rules.capacity, xy=xy, start=start, **limits), mate


def _with_stubs(
    routes: Routes, mate: Ints, m: int
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]] | None:
    """The answer as order and depots; None if it is not a whole one with all hyper-edges."""
    order: list[int] = []
    via: list[bool] = []
    for route in routes:
        for i, place in enumerate(route):
            if not 1 <= place < len(mate):
                return None
            beside = route[max(0, i - 1) : i + 2]
            if mate[place] >= 0 and mate[place] not in beside:
                return None
            if place > m and 0 < i < len(route) - 1:  # the depot in the middle of a route
                return None
        inner = [place - 1 for place in route if place <= m]
        order.extend(inner)
        via.extend(i == 0 for i in range(len(inner)))
    if sorted(order) != list(range(m)):
        return None
    return np.array(order, np.int32), np.array(via, np.bool_)


@kernel
def _between(space, node):
    """All distances between nodes."""
    n = len(node)
    far = np.zeros((n, n), np.float64)
    for i in range(n):
        for j in range(i):
            far[i, j] = far[j, i] = distance(space, node[i], node[j])
    return far


@kernel
def _longest(space, node, partner):
    """The longest edge that the present order has between items."""
    m = len(node)
    longest = 0.0
    for i in range(m):
        j = i + 1 if i + 1 < m else 0
        if partner[i] != j:
            longest = max(longest, distance(space, node[i], node[j]))
    return longest


@kernel
def _matrix(space, node, partner, far):
    """Whole numbers: 0 along hyper-edges, PENALTY and the scaled length elsewhere."""
    m = len(node)
    scale = (LARGEST_NUMBER - PENALTY) / far if far > 0.0 else 0.0
    matrix = np.zeros((m, m), np.int64)
    for i in range(m):
        for j in range(i):
            if partner[i] != j:
                d = min(distance(space, node[i], node[j]), far)
                matrix[i, j] = matrix[j, i] = PENALTY + np.int64(d * scale)
    return matrix


def _with_hyper_edges(order: npt.NDArray[Any], partner: Index) -> Index | None:
    """The order turned so that no hyper-edge straddles its end; None if it is no such order."""
    m = len(partner)
    if order.shape != (m,) or not np.array_equal(np.sort(order), np.arange(m)):
        return None
    place = np.empty(m, np.int64)
    place[order] = np.arange(m)
    wide = np.flatnonzero(partner != np.arange(m))
    apart = (place[wide] - place[partner[wide]]) % m
    if not np.isin(apart, (1, m - 1)).all():
        return None
    straddles = partner[order[-1]] == order[0] and order[-1] != order[0]
    return np.roll(order, 1 if straddles else 0).astype(np.int32)

"""Solvers of small tours from other packages as repairers, and two repairers in sequence.

The reduced graph of a region is a small TSP in which some edges, the hyper-edges, must be used. Any
solver that takes a matrix of whole numbers can be made to use them: they cost nothing, all others
cost a large amount more. What comes back is looked at: an answer that lost a hyper-edge is dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from drhg.compiled import distance, kernel
from drhg.errors import DrhgError
from drhg.hypergraph import Graphs, Index, Repaired, Rules, present
from drhg.repair import Repair

LARGEST = 65_535  # whole numbers that every one of the solvers takes
FORCE = 20_000  # what an edge costs more for not being a hyper-edge
SCALE = 4.0  # times the longest edge of the present tour, distances are cut off

Matrix = npt.NDArray[np.int64]
Solver = Callable[[Matrix, float, int], Any]  # matrix, seconds, threads -> order


def _fast_tsp(matrix: Matrix, seconds: float, threads: int) -> Any:
    import fast_tsp

    return fast_tsp.find_tour(matrix.astype(np.uint16), seconds, max_threads=threads)


def _elkai(matrix: Matrix, seconds: float, threads: int) -> Any:
    """LKH; free for academic use only. It knows no time limit: one run."""
    import elkai

    return elkai.DistanceMatrix(matrix.tolist()).solve_tsp(runs=1)[:-1]


def _ortools(matrix: Matrix, seconds: float, threads: int) -> Any:
    from ortools.constraint_solver import pywrapcp, routing_enums_pb2

    manager = pywrapcp.RoutingIndexManager(len(matrix), 1, 0)
    routing = pywrapcp.RoutingModel(manager)
    far = matrix.tolist()
    length = routing.RegisterTransitMatrix(far)
    routing.SetArcCostEvaluatorOfAllVehicles(length)
    how = pywrapcp.DefaultRoutingSearchParameters()
    guided = routing_enums_pb2.LocalSearchMetaheuristic.GUIDED_LOCAL_SEARCH
    how.local_search_metaheuristic = guided
    how.time_limit.FromMilliseconds(max(1, int(1000 * seconds)))
    found = routing.SolveWithParameters(how)
    order, node = [], routing.Start(0)
    while found is not None and not routing.IsEnd(node):
        order.append(manager.IndexToNode(node))
        node = found.Value(routing.NextVar(node))
    return order


SOLVERS: dict[str, Solver] = {"fast_tsp": _fast_tsp, "elkai": _elkai, "ortools": _ortools}


class LibraryRepair:
    """Let a solver from another package reconnect every reduced graph of a tour.

    A call lasts `seconds` per graph, so results depend on the machine's speed and are not the same
    every time, unlike those of the other repairers.

    >>> from drhg.library import LibraryRepair
    >>> repair = LibraryRepair("fast_tsp", seconds=0.1)
    """

    def __init__(self, solver: str = "fast_tsp", seconds: float = 0.1, threads: int = 1) -> None:
        if solver not in SOLVERS:
            raise DrhgError(f"unknown library {solver!r}; known: {', '.join(SOLVERS)}")
        try:
            import_module(solver)
        except ImportError:
            raise DrhgError(f"{solver} is not installed: pip install {solver}") from None
        self.solve, self.seconds, self.threads = SOLVERS[solver], seconds, threads

    def __call__(self, rules: Rules, graphs: Graphs, rng: np.random.Generator) -> Repaired:
        if rules.depot >= 0:
            raise DrhgError("library repair reconnects tours, not routes")
        answer = present(graphs)
        for row in range(len(graphs)):
            m = int(graphs.size[row])
            if m < 5:
                continue
            shuffled = rng.permutation(m)  # solvers start differently then
            back = np.empty(m, np.int32)
            back[shuffled] = np.arange(m, dtype=np.int32)
            node, partner = graphs.node[row, shuffled], back[graphs.partner[row, shuffled]]
            longest = _longest(rules.space, graphs.node[row, :m], graphs.partner[row, :m])
            matrix = _matrix(rules.space, node, partner, SCALE * longest)
            order = np.asarray(self.solve(matrix, self.seconds, self.threads))
            found = _with_hyper_edges(order, partner)
            if found is not None:
                answer.order[row, :m] = shuffled[found]
        return answer


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
    """Whole numbers up to LARGEST: 0 along hyper-edges, FORCE and the scaled length elsewhere."""
    m = len(node)
    scale = (LARGEST - FORCE) / far if far > 0.0 else 0.0
    matrix = np.zeros((m, m), np.int64)
    for i in range(m):
        for j in range(i):
            if partner[i] != j:
                d = min(distance(space, node[i], node[j]), far)
                matrix[i, j] = matrix[j, i] = FORCE + np.int64(d * scale)
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


class Polished:
    """One repairer after another: the second starts from what the first has made.

    >>> from drhg.repair import InsertionRepair, LocalSearchRepair
    >>> repair = Polished(InsertionRepair(), LocalSearchRepair())
    """

    def __init__(self, first: Repair, second: Repair) -> None:
        self.first, self.second = first, second

    def __call__(self, rules: Rules, graphs: Graphs, rng: np.random.Generator) -> Repaired:
        if rules.depot >= 0:
            raise DrhgError("one repairer after another works on tours, not on routes")
        made = self.first(rules, graphs, rng)
        turned = reordered(graphs, made.order)
        again = self.second(rules, turned, rng)
        inside = again.order >= 0
        order = np.take_along_axis(made.order, np.where(inside, again.order, 0), axis=1)
        return Repaired(np.where(inside, order, np.int32(-1)), again.via)


def reordered(graphs: Graphs, order: Index) -> Graphs:
    """The same reduced graphs of tours with their nodes in another order."""
    inside = order >= 0
    index = np.where(inside, order, 0)
    place = np.zeros_like(order)
    np.put_along_axis(
        place, np.where(inside, order, np.arange(order.shape[1])[None, :]),
        np.broadcast_to(np.arange(order.shape[1], dtype=order.dtype), order.shape), axis=1,
    )  # fmt: skip
    rows = {
        f.name: np.take_along_axis(getattr(graphs, f.name), index, axis=1)
        for f in fields(graphs)
        if getattr(graphs, f.name).ndim == 2
    }
    partner = np.take_along_axis(place, np.maximum(rows["partner"], 0), axis=1)
    rows["partner"] = np.where(rows["partner"] >= 0, partner, np.int32(-1))
    rows["node"] = np.where(inside, rows["node"], np.int32(-1))
    return replace(graphs, **rows)

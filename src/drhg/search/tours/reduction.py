"""Asymmetric tours and paths as symmetric tours, so that one search solves them all, exactly.

A directed tour: every node becomes two, one to arrive at and one to leave from, joined by a fixed
edge (Jonker and Volgenant 1983, who need a large negative length for what the fixed edge does). An
edge between the leaving node of i and the arriving node of j is as long as the way from i to j.
What is no way (two arriving nodes, or into the start of a path) is as long as a whole tour.

Before that, lengths are reduced by the dual prices of the assignment problem: every tour becomes
shorter by the same, what remains tells which ways are dear at their place, and the best candidates
of every node are those of least reduced length. Equal ones are taken at random, or nodes with many
of them would all ask for the same few.

A path: with both ends given a fixed edge joins them. Otherwise a dummy node joins them that is
nowhere: it costs nothing to go there and back. Too large for a matrix, a path is what is left of a
tour when its longest edge, or that at the given end, is taken out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module

import numpy as np

from drhg.construct.paths import as_tour, cut
from drhg.hypergraph.nearness import Nearness
from drhg.hypergraph.plan import Index
from drhg.local_search.candidates import candidate_lists
from drhg.local_search.params import MoveParams
from drhg.problem import Floats, Instance, Ints, Solution, cost, tsp
from drhg.problem.arguments import is_whole
from drhg.search.strategy import Snapshot, Task, task_of
from drhg.search.tours.params import TourSizes


@dataclass(frozen=True)
class Reduction:
    """A task with a symmetric tour, and how its tours are read."""

    original: Task
    task: Task
    back: Callable[[Ints], Ints]  # a tour of the task as one of the original
    near: Index | None = None  # candidate lists, if the usual ones would not do

    def snapshot_back(self, found: Snapshot) -> Snapshot:
        """A snapshot of the symmetric tour as one of the original, its cost recomputed."""
        solution = Solution([self.back(found.solution().tour)])
        known = float(cost(self.original.instance, solution))
        return Snapshot(found.iterations, known, partial(_same, solution))


def _same(solution: Solution) -> Solution:
    return solution


def reduced(task: Task, sizes: TourSizes, moves: MoveParams) -> Reduction:
    """The symmetric tour that a directed tour, or a path, is."""
    instance = task.instance
    if not instance.symmetric:
        return _two_nodes(task, moves)
    both = instance.start is not None and instance.end is not None
    if both or instance.n > sizes.dummy_up_to:
        tour = as_tour(instance)
        start = Solution([np.array(task.start.tour)])
        symmetric = task_of(tour, start, task.seed, task.threads)
        return Reduction(task, symmetric, partial(cut, instance))
    return _with_dummy(task, moves)


# --- a path with a free end -----------------------------------------------------------------------


def _with_dummy(task: Task, moves: MoveParams) -> Reduction:
    """A tour with one node more, after which the path begins and before which it ends."""
    instance = task.instance
    n, nodes = instance.n, np.arange(instance.n)
    matrix = np.zeros((n + 1, n + 1))
    matrix[:n, :n] = instance.distance(nodes[:, None], nodes)
    ends = [node for node in (instance.start, instance.end) if node is not None]
    fixed = (*instance.fixed_edges, *((node, n) for node in ends))
    tour = tsp(matrix=matrix, fixed_edges=fixed)
    start = Solution([np.append(task.start.tour, n)])
    near = np.full((n + 1, min(moves.candidates, n - 1) + 1), n, np.int32)
    near[:n, 1:] = candidate_lists(as_tour(instance), Nearness(as_tour(instance)), moves)
    near[n] = np.random.default_rng([task.seed, 3]).permutation(n)[: near.shape[1]]
    symmetric = task_of(tour, start, task.seed, task.threads)
    return Reduction(task, symmetric, partial(_without_dummy, instance), near)


def _without_dummy(instance: Instance, order: Ints) -> Ints:
    n = instance.n
    path = np.roll(order, -int(np.flatnonzero(order == n)[0]))[1:]
    backwards = (instance.start is not None and path[0] != instance.start) or (
        instance.end is not None and path[-1] != instance.end
    )
    return path[::-1].copy() if backwards else path


# --- a directed tour or path ----------------------------------------------------------------------


def _two_nodes(task: Task, moves: MoveParams) -> Reduction:
    """A symmetric tour through two nodes for every node: i to arrive at, m + i to leave from."""
    instance = task.instance
    ways = _ways(instance)
    m = len(ways)
    lengths, allowed = _reduced_by_prices(ways), np.isfinite(ways)
    near = _directed_candidates(lengths, moves, np.random.default_rng([task.seed, 3]))
    lengths += _usual(lengths, near)
    route = task.start.tour if m == instance.n else np.append(task.start.tour, instance.n)
    forbidden = 1.0 + float(lengths[route, np.roll(route, -1)].sum())  # more than any tour we take
    lengths[~allowed] = forbidden
    matrix = np.full((2 * m, 2 * m), forbidden)
    matrix[m:, :m] = lengths
    matrix[:m, m:] = lengths.T
    nodes = np.arange(m)
    matrix[nodes, m + nodes] = matrix[m + nodes, nodes] = 0.0
    np.fill_diagonal(matrix, 0.0)
    tour = tsp(matrix=matrix, fixed_edges=[(i, m + i) for i in range(m)])
    start = Solution([np.ravel(np.stack([route, m + route], axis=1))])
    symmetric = task_of(tour, start, task.seed, task.threads)
    return Reduction(task, symmetric, partial(_without_doubles, instance.n, m), near)


def _ways(instance: Instance) -> Floats:
    """Lengths from row to column, inf where no tour may go; a path has a dummy node as the last."""
    n = instance.n
    assert instance.matrix is not None
    ways = np.zeros((n + (not instance.returns), n + (not instance.returns)))
    ways[:n, :n] = instance.matrix
    if instance.start is not None:
        ways[n, np.flatnonzero(np.arange(n) != instance.start)] = np.inf
    if instance.end is not None:
        ways[np.flatnonzero(np.arange(n) != instance.end), n] = np.inf
    np.fill_diagonal(ways, np.inf)
    return ways


def load_solver() -> None:
    """Import what `_reduced_by_prices` needs, which takes up to a second."""
    import_module("scipy.optimize")


def _reduced_by_prices(ways: Floats) -> Floats:
    """Lengths less a price for every row and column, so that none is negative and many are 0.

    The prices solve the dual of the assignment problem: those of columns are shortest distances in
    the graph in which the best assignment can be changed (Bellman and Ford).
    """
    from scipy.optimize import linear_sum_assignment

    rows, chosen = linear_sum_assignment(ways)
    over = ways - ways[rows, chosen][:, None]
    columns = np.zeros(len(ways))
    for _ in range(len(ways)):
        cheaper = np.minimum(columns, (columns[chosen][:, None] + over).min(axis=0))
        if np.array_equal(cheaper, columns):
            break
        columns = cheaper
    out = over + columns[chosen][:, None] - columns
    return np.maximum(out, 0.0)  # below by rounding alone


def _directed_candidates(lengths: Floats, moves: MoveParams, rng: np.random.Generator) -> Index:
    """For every arriving node the leaving nodes of least length, and the other way round."""
    m = len(lengths)
    k = min(moves.candidates, m - 1)
    near = np.empty((2 * m, k), np.int32)
    for rows, there in ((slice(m, None), lengths), (slice(None, m), lengths.T)):
        ties = rng.random(there.shape)
        far = np.where(np.eye(m, dtype=np.bool_), np.inf, there)
        order = np.lexsort((ties, far), axis=1)[:, :k]
        near[rows] = order + (0 if rows.start else m)
    return near


def _usual(lengths: Floats, near: Index) -> float:
    """A length that ways have in the mean, whole if all are, to be added to every way.

    Random tours are made by stretching lengths at random, and what is 0 cannot be stretched.
    """
    m = len(lengths)
    candidates = lengths[np.arange(m)[:, None], near[m:]]
    mean = float(candidates[np.isfinite(candidates)].mean())
    usual = np.ceil(mean) if is_whole(lengths[np.isfinite(lengths)]) else mean
    return usual if usual > 0.0 else 1.0


def _without_doubles(n: int, m: int, order: Ints) -> Ints:
    """The order in which the nodes are left, from the first node or from after the dummy node."""
    first = int(np.flatnonzero(order == (0 if n == m else n))[0])
    order = np.roll(order, -first)
    if order[1] != order[0] + m:  # the other way round: the fixed edge comes last
        order = np.roll(order[::-1], 1)
    found = order[::2]
    return found if n == m else found[1:]

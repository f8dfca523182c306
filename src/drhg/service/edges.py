"""What changes from one solution to the next, as edges."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from drhg.problem import Instance, Ints, Solution, depots_of_routes

Pairs: TypeAlias = list[list[int]]


def changed_edges(instance: Instance, old: Solution | None, new: Solution) -> tuple[Pairs, Pairs]:
    """The edges that the new solution adds, and those that it removes; smaller node first.

    An open route or a path has no edge from its last node back. A route of one customer has its
    edge to the depot twice, so an edge may stand here twice.

    >>> import drhg
    >>> square = drhg.tsp([[0, 0], [0, 1], [1, 1], [1, 0]])
    >>> crossed, plain = drhg.Solution([[0, 2, 1, 3]]), drhg.Solution([[0, 1, 2, 3]])
    >>> changed_edges(square, crossed, plain)
    ([[0, 1], [2, 3]], [[0, 2], [1, 3]])
    """
    before = np.zeros(0, np.int64) if old is None else _keys(instance, old)
    after = _keys(instance, new)
    keys, at = np.unique(np.concatenate((before, after)), return_inverse=True)
    net = np.bincount(at[len(before) :], minlength=len(keys))
    net -= np.bincount(at[: len(before)], minlength=len(keys))
    added = np.repeat(keys, np.maximum(net, 0))
    removed = np.repeat(keys, np.maximum(-net, 0))
    return _pairs(added, instance.n), _pairs(removed, instance.n)


def _keys(instance: Instance, solution: Solution) -> Ints:
    """Every edge as one number, smaller * n + larger."""
    found = [np.zeros(0, np.int64)]
    depots = depots_of_routes(instance, solution) if instance.is_cvrp else None
    for r, route in enumerate(solution.routes):
        stops = route if depots is None else np.insert(route, 0, depots[r])
        after = np.roll(stops, -1)
        if not instance.returns:
            stops, after = stops[:-1], after[:-1]
        found.append(np.minimum(stops, after) * instance.n + np.maximum(stops, after))
    return np.concatenate(found)


def _pairs(keys: Ints, n: int) -> Pairs:
    pairs: Pairs = np.stack((keys // n, keys % n), axis=1).tolist()
    return pairs

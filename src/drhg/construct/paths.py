"""Paths as tours and back: a tour that is cut somewhere is a path."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from drhg.problem import Instance, Ints


def as_tour(instance: Instance) -> Instance:
    """The tour whose cuts are the paths of an instance; given ends are held together if possible.

    Distances without direction let a fixed edge join them. Where they have one, `cut` puts the ends
    in their places.
    """
    fixed = instance.fixed_edges
    if instance.start is not None and instance.end is not None and instance.symmetric:
        fixed = (*fixed, (instance.start, instance.end))
    return replace(instance, returns=True, start=None, end=None, fixed_edges=fixed)


def cut(instance: Instance, order: Ints) -> Ints:
    """A tour of `as_tour` as a path of the instance: cut where most is saved.

    >>> import drhg
    >>> cut(drhg.tsp([[0, 0], [0, 1], [5, 1], [6, 0]], returns=False), np.arange(4)).tolist()
    [0, 1, 2, 3]
    >>> cut(drhg.tsp([[0, 0], [0, 1], [5, 1], [5, 0]], start=2), np.arange(4)).tolist()
    [2, 3, 0, 1]
    """
    start, end, n = instance.start, instance.end, len(order)
    if n == 1:
        return order
    if start is not None and end is not None:
        order = _from(order, start)
        if order[1] == end and instance.symmetric and n > 2:
            return np.append(order[:1], order[:0:-1])
        return np.concatenate(([start], order[(order != start) & (order != end)], [end]))
    if start is not None or end is not None:
        return _with_one_end(instance, order)
    fixed = {frozenset(edge) for edge in instance.fixed_edges}
    saved = np.asarray(instance.distance(order, np.roll(order, -1)), np.float64)
    for p in range(n) if fixed else ():
        if frozenset((int(order[p]), int(order[(p + 1) % n]))) in fixed:
            saved[p] = -1.0
    return np.roll(order, -1 - int(np.argmax(saved)))


def _with_one_end(instance: Instance, order: Ints) -> Ints:
    """The tour cut before its start or after its end; in either direction if there is none."""
    start, end = instance.start, instance.end
    if start is not None:
        one, other = _from(order, start), _from(order[::-1], start)
    else:
        assert end is not None
        one, other = _from(order[::-1], end)[::-1], _from(order, end)[::-1]
    if not instance.symmetric:
        return one
    ways = ((one[-1], one[0]), (other[-1], other[0]))  # the edge that each leaves out
    fixed = {frozenset(edge) for edge in instance.fixed_edges}
    saved = [
        -1.0 if frozenset(map(int, way)) in fixed else float(instance.distance(*way))
        for way in ways
    ]
    return one if saved[0] >= saved[1] else other


def _from(order: Ints, node: int) -> Ints:
    """The same tour from a node on."""
    return np.roll(order, -int(np.flatnonzero(order == node)[0]))

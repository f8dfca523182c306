"""Which nodes lie nearest to a centre."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from drhg.hypergraph.plan import Index
from drhg.problem import Floats, Instance, Ints, Metric, on_sphere


class Nearness:
    """Which nodes lie nearest to a centre: by k-d tree, or by the matrix if there is only that."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._nodes = instance.customers if instance.is_cvrp else np.arange(instance.n)
        self._tree = None
        if instance.metric is not Metric.EXPLICIT:
            from scipy.spatial import cKDTree

            self._points = _embedded(instance)
            self._tree = cKDTree(self._points[self._nodes])

    @property
    def nodes(self) -> Ints:
        """All nodes that can be destroyed: the depot cannot."""
        return self._nodes

    @cached_property
    def corner(self) -> Floats:
        """Least x and y of all points of the plane."""
        return np.asarray(self._points.min(axis=0))

    @cached_property
    def extent(self) -> Floats:
        """Width and height of the smallest rectangle around them."""
        return np.asarray(np.ptp(self._points, axis=0))

    def around(self, centres: npt.ArrayLike, k: int) -> Index:
        """The k nodes nearest to each centre node, nearest first (B, k).

        The centre is among them unless k others lie at the same point.
        """
        nodes = np.atleast_1d(np.asarray(centres, dtype=np.int64))
        k = min(k, len(self._nodes))
        if self._tree is not None:
            return self._query(self._points[nodes], k)
        assert self._instance.matrix is not None
        far = self._instance.matrix[nodes][:, self._nodes].astype(np.float64)
        far[self._nodes[None, :] == nodes[:, None]] = -1.0
        return self._nodes[np.argsort(far, axis=1, kind="stable")[:, :k]].astype(np.int32)

    def around_points(self, points: Floats, k: int) -> Index:
        """The same for free points of the plane (the paper's centres)."""
        if self._tree is None or not self._instance.metric.planar:
            raise ValueError("free centres need coordinates of the plane")
        return self._query(points, min(k, len(self._nodes)))

    def _query(self, points: Floats, k: int) -> Index:
        assert self._tree is not None
        if k < 1:
            return np.zeros((len(points), 0), dtype=np.int32)
        norm = {Metric.MAN_2D: 1.0, Metric.MAX_2D: np.inf}.get(self._instance.metric, 2.0)
        found: Any = self._tree.query(points, k=list(range(1, k + 1)), p=norm)[1]
        nodes: Index = self._nodes[found].astype(np.int32)
        return nodes


def _embedded(instance: Instance) -> Floats:
    """Points whose nearness is the metric's: of the plane itself, or of the unit sphere."""
    if instance._radians is not None:
        return on_sphere(instance._radians)
    assert instance.xy is not None
    return instance.xy

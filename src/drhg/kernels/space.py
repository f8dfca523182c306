"""Distances for kernels."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from drhg.kernels.jit import inner, kernel
from drhg.problem import EARTH_RADIUS_KM, SPHERE_RADIUS_M, Instance, Metric


class Space(NamedTuple):
    """How kernels know distances: `distance(space, i, j)`."""

    metric: int
    points: npt.NDArray[np.float64]  # (n, 2); latitude and longitude in radians on the globe
    matrix: npt.NDArray[np.float64]  # (n, n) for EXPLICIT, else (0, 0)


def space_of(instance: Instance) -> Space:
    """The distances of an instance in the form kernels take."""
    points = instance.xy if instance._radians is None else instance._radians
    matrix = np.zeros((0, 0)) if instance.matrix is None else instance.matrix.astype(np.float64)
    if points is None or instance.metric is Metric.EXPLICIT:
        points = np.zeros((instance.n, 2))
    # a fresh copy: kernels are compiled for writeable arrays only, once
    return Space(int(instance.metric), np.array(points, dtype=np.float64, order="C"), matrix)


_EXACT, _EUC, _CEIL, _ATT, _GEO, _MAN, _MAX, EXPLICIT, HAVERSINE, _TRUNC1 = (
    int(metric) for metric in Metric
)


@kernel
def distance(space, i, j):
    """The compiled twin of `Instance.distance` for two nodes.

    Small enough to be inlined, which makes it fifteen times faster: rarer metrics live elsewhere.
    """
    if space.metric > _EUC:
        return _rare_distance(space, i, j)
    dx = space.points[i, 0] - space.points[j, 0]
    dy = space.points[i, 1] - space.points[j, 1]
    d = math.sqrt(dx * dx + dy * dy)
    return d if space.metric == _EXACT else math.floor(d + 0.5)


@inner
def _rare_distance(space, i, j):
    if space.metric == EXPLICIT:
        return space.matrix[i, j]
    if i == j:
        return 0.0
    dx = space.points[i, 0] - space.points[j, 0]
    dy = space.points[i, 1] - space.points[j, 1]
    if space.metric == _CEIL:
        return math.ceil(math.sqrt(dx * dx + dy * dy))
    if space.metric == _TRUNC1:
        return math.floor(10.0 * math.sqrt(dx * dx + dy * dy)) / 10.0
    if space.metric == _ATT:
        r = math.sqrt((dx * dx + dy * dy) / 10.0)
        t = math.floor(r + 0.5)
        return t + 1.0 if t < r else t
    if space.metric == _GEO:
        q1 = math.cos(dy)
        q2 = math.cos(dx)
        q3 = math.cos(space.points[i, 0] + space.points[j, 0])
        cosine = 0.5 * ((1.0 + q1) * q2 - (1.0 - q1) * q3)
        return math.floor(EARTH_RADIUS_KM * math.acos(min(1.0, max(-1.0, cosine))) + 1.0)
    if space.metric == HAVERSINE:
        across = math.sin(0.5 * dx)
        along = math.sin(0.5 * dy)
        cosines = math.cos(space.points[i, 0]) * math.cos(space.points[j, 0])
        a = across * across + cosines * (along * along)
        return 2.0 * SPHERE_RADIUS_M * math.asin(math.sqrt(min(1.0, a)))
    if space.metric == _MAN:
        return math.floor(abs(dx) + abs(dy) + 0.5)
    return max(math.floor(abs(dx) + 0.5), math.floor(abs(dy) + 0.5))

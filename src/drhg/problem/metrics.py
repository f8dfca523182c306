"""How far two points are from one another."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any

import numpy as np

from drhg.errors import InstanceError
from drhg.problem.arguments import Floats, from_zero, shown

EARTH_RADIUS_KM = 6378.388  # TSPLIB's GEO metric, and its PI
TSPLIB_PI = 3.141592
SPHERE_RADIUS_M = 6371008.8  # the Earth's mean radius (IUGG), for HAVERSINE

# Three nodes of TSPLIB's ali535 have 60 minutes or more. Its known optimum, 202339, takes them as
# they stand, so they are let through; everybody else's are decimal degrees.
ALI535 = ((33.56, 45.80), (48.31, -24.80), (40.62, 13.11))


class Metric(IntEnum):
    """How the distance of two nodes follows from their coordinates (names as in TSPLIB)."""

    EXACT = 0  # Euclidean, not rounded
    EUC_2D = 1  # floor(d + 0.5)
    CEIL_2D = 2
    ATT = 3
    GEO = 4
    MAN_2D = 5
    MAX_2D = 6
    EXPLICIT = 7
    HAVERSINE = 8  # great circles in metres, not rounded; (latitude, longitude) in decimal degrees
    TRUNC1 = 9  # Euclidean, cut to one decimal: the usual rule for time windows (DIMACS)

    @property
    def planar(self) -> bool:
        """Whether coordinates are points of the plane (so nearness is Euclidean or close to it)."""
        return self not in (Metric.GEO, Metric.EXPLICIT, Metric.HAVERSINE)

    @property
    def rounded(self) -> bool:
        """Whether distances computed from coordinates are whole numbers."""
        return self not in (Metric.EXACT, Metric.EXPLICIT, Metric.HAVERSINE, Metric.TRUNC1)


def geo_radians(xy: Floats) -> Floats:
    degrees = np.trunc(xy)  # DDD.MM: whole degrees, then minutes
    outside = (np.abs(degrees) > [90, 360]).any(axis=1)
    if outside.any():
        i = int(np.argmax(outside))
        raise InstanceError(
            f"{from_zero(i)} is not on the globe: latitude {xy[i, 0]:g}, longitude {xy[i, 1]:g}"
        )
    minutes = 100 * np.abs(xy - degrees)
    for i in np.flatnonzero((minutes >= 60 - 1e-3).any(axis=1)).tolist():  # float32 has few digits
        if tuple(xy[i].tolist()) not in ALI535:
            value = float(xy[i, int(minutes[i, 0] < 60 - 1e-3)])
            whole = float(np.trunc(value))
            raise InstanceError(
                f"{from_zero(i)} has the coordinate {value:.10g}, but metric GEO reads xy as "
                f"DDD.MM, degrees and minutes below 60; if these are decimal degrees, write "
                f"{whole + 0.6 * (value - whole):.6g} for {value:.10g}, or project them to the "
                "plane and choose another metric"
            )
    return np.asarray(TSPLIB_PI * (degrees + 5.0 * (xy - degrees) / 3.0) / 180.0)


def degrees_to_radians(xy: Floats) -> Floats:
    """Decimal degrees as radians, or an error that names the node that is not on the globe."""
    outside = (np.abs(xy) > [90, 180]).any(axis=1)
    if outside.any():
        i = int(np.argmax(outside))
        raise InstanceError(
            f"{from_zero(i)} is not on the globe: latitude {xy[i, 0]:g} (-90 .. 90), "
            f"longitude {xy[i, 1]:g} (-180 .. 180)"
        )
    return np.asarray(np.radians(xy))


def on_sphere(radians: Floats) -> Floats:
    """Points (..., 3) of the unit sphere: straight lines through it sort as great circles do."""
    latitude, longitude = radians[..., 0], radians[..., 1]
    flat = np.cos(latitude)
    return np.stack([flat * np.cos(longitude), flat * np.sin(longitude), np.sin(latitude)], axis=-1)


def flattened(radians: Floats, centre: Floats) -> Floats:
    """Metres east and north of a centre (..., 2), distances from it kept (azimuthal equidistant).

    Around the centre all distances are nearly right, at the poles and the date line as elsewhere.
    """
    latitude, longitude = radians[..., 0], radians[..., 1]
    middle, turn = centre[..., 0], longitude - centre[..., 1]
    east = np.cos(latitude) * np.sin(turn)
    half = np.sin(0.5 * turn)  # this form of the northward part keeps the digits of small offsets
    north = np.sin(latitude - middle) + 2.0 * np.sin(middle) * np.cos(latitude) * half * half
    sine = np.hypot(east, north)
    cosine = np.cos(latitude - middle) - 2.0 * np.cos(middle) * np.cos(latitude) * half * half
    angle = np.arctan2(sine, cosine)
    scale = SPHERE_RADIUS_M * np.where(sine > 0.0, angle / np.where(sine > 0.0, sine, 1.0), 1.0)
    return np.stack([scale * east, scale * north], axis=-1)


def middle_of(radians: Floats) -> Floats:
    """The latitude and longitude in the middle of some points (..., n, 2)."""
    x, y, z = np.moveaxis(on_sphere(radians).mean(axis=-2), -1, 0)
    return np.stack([np.arctan2(z, np.hypot(x, y)), np.arctan2(y, x)], axis=-1)


def _euclid(p: Floats, q: Floats) -> Floats:
    d = p - q
    return np.asarray(np.sqrt(d[..., 0] * d[..., 0] + d[..., 1] * d[..., 1]))


def _att(p: Floats, q: Floats) -> Floats:
    d = p - q
    r = np.sqrt((d[..., 0] * d[..., 0] + d[..., 1] * d[..., 1]) / 10.0)
    t = np.floor(r + 0.5)
    return np.asarray(np.where(t < r, t + 1.0, t))


def _geo(p: Floats, q: Floats) -> Floats:
    q1 = np.cos(p[..., 1] - q[..., 1])
    q2 = np.cos(p[..., 0] - q[..., 0])
    q3 = np.cos(p[..., 0] + q[..., 0])
    angle = np.arccos(np.clip(0.5 * ((1.0 + q1) * q2 - (1.0 - q1) * q3), -1.0, 1.0))
    return np.asarray(np.floor(EARTH_RADIUS_KM * angle + 1.0))


def _haversine(p: Floats, q: Floats) -> Floats:
    across = np.sin(0.5 * (p[..., 0] - q[..., 0]))
    along = np.sin(0.5 * (p[..., 1] - q[..., 1]))
    a = across * across + np.cos(p[..., 0]) * np.cos(q[..., 0]) * (along * along)
    return np.asarray(2.0 * SPHERE_RADIUS_M * np.arcsin(np.sqrt(np.minimum(1.0, a))))


METRICS: dict[Metric, Callable[[Floats, Floats], Floats]] = {
    Metric.EXACT: _euclid,
    Metric.EUC_2D: lambda p, q: np.floor(_euclid(p, q) + 0.5),
    Metric.CEIL_2D: lambda p, q: np.ceil(_euclid(p, q)),
    Metric.ATT: _att,
    Metric.GEO: _geo,
    Metric.MAN_2D: lambda p, q: np.floor(np.abs(p - q).sum(axis=-1) + 0.5),
    Metric.MAX_2D: lambda p, q: np.floor(np.abs(p - q) + 0.5).max(axis=-1),
    Metric.HAVERSINE: _haversine,
    Metric.TRUNC1: lambda p, q: np.floor(10.0 * _euclid(p, q)) / 10.0,
}


def metric_argument(metric: Any) -> Metric:
    try:
        return Metric[metric.upper()] if isinstance(metric, str) else Metric(metric)
    except (KeyError, ValueError, TypeError):
        known = ", ".join(m.name for m in Metric)
        raise InstanceError(f"unknown metric {shown(metric)}; known: {known}") from None

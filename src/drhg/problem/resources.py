"""Resources of a piece of a route: what joins when pieces are joined.

A piece (a customer, a segment, a stub, a whole route) carries a value of `Resources`. Two pieces
that are joined have the value `join` of both, in constant time, however long they are (Vidal,
Crainic, Gendreau and Prins 2013, "A hybrid genetic algorithm with adaptive diversity management for
a large class of vehicle routing problems with time-windows"). So any move is judged by a few joins.

Time windows are soft within a piece: arriving late is allowed by going back in time to the end of
the window, and the sum of these jumps is the *time warp*. Waiting for a window to open takes time,
but a piece starts as late as it can without a later arrival at its end, so it waits no longer than
it must. The functions are plain arithmetic: kernels compile them as they are.
"""

from __future__ import annotations

import math
from typing import NamedTuple


class Resources(NamedTuple):
    """What a piece of a route needs."""

    load: float
    length: float  # distance
    duration: float  # travel, service and waiting
    time_warp: float
    earliest: float  # starting in between, the piece takes this duration and this time warp:
    latest: float  # none is less, and with this time warp no duration is less


class ResourceLimits(NamedTuple):
    """What a route may need."""

    load: float = math.inf
    length: float = math.inf
    duration: float = math.inf


class Excess(NamedTuple):
    """By how much a route exceeds its limits, each of them zero if it keeps them."""

    load: float
    length: float
    duration: float
    time_warp: float


def visit(
    load: float, service: float = 0.0, opens: float = -math.inf, closes: float = math.inf
) -> Resources:
    """The resources of a single stop, whose service may begin between two times."""
    return Resources(load, 0.0, service, 0.0, opens, closes)


def join(a: Resources, b: Resources, distance: float, time: float) -> Resources:
    """Two pieces one after the other, given the way between them."""
    before = a.duration - a.time_warp + time  # from the start of a to the start of b
    waiting = max(0.0, b.earliest - before - a.latest)
    warp = max(0.0, a.earliest + before - b.latest)
    return Resources(
        a.load + b.load,
        a.length + b.length + distance,
        a.duration + b.duration + time + waiting,
        a.time_warp + b.time_warp + warp,
        max(b.earliest - before, a.earliest) - waiting,
        min(b.latest - before, a.latest) + warp,
    )


def close(a: Resources, depot: Resources, distance: float, time: float, returns: bool) -> Resources:
    """A piece that began at a depot, with its way back; as it is if vehicles do not return."""
    if not returns:
        return a
    return join(a, depot, distance, time)


def excess(a: Resources, limits: ResourceLimits) -> Excess:
    """By how much a closed route exceeds its limits.

    Its duration is what the clock says at the end, so time warp does not count.
    """
    return Excess(
        max(0.0, a.load - limits.load),
        max(0.0, a.length - limits.length),
        max(0.0, a.duration - a.time_warp - limits.duration),
        a.time_warp,
    )

"""Resources: however pieces are joined, they need what a walk along the route needs."""

from __future__ import annotations

import math

import numba
import pytest
import reference as ref
from hypothesis import given
from hypothesis import strategies as st

from drhg.kernels.jit import kernel
from drhg.problem.resources import ResourceLimits, Resources, close, excess, join, visit
from drhg.search.routes import pieces

Route = tuple[list[Resources], list[float], list[float]]
SMALL = st.integers(0, 9).map(float)


@st.composite
def stops(draw: st.DrawFn) -> Resources:
    opens = draw(st.integers(0, 25))
    closes = opens + draw(st.integers(0, 12))
    return visit(draw(SMALL), draw(SMALL), float(opens), float(closes))


@st.composite
def routes(draw: st.DrawFn, most: int = 7) -> Route:
    """Stops, and distances and times between them."""
    found = draw(st.lists(stops(), min_size=1, max_size=most))
    ways = st.lists(SMALL, min_size=len(found) - 1, max_size=len(found) - 1)
    return found, draw(ways), draw(ways)


def joined(route: Route, begin: int, end: int, draw: st.DataObject) -> Resources:
    """The stops from begin to before end, joined in any order of joins."""
    found, distances, times = route
    if end - begin == 1:
        return found[begin]
    cut = draw.draw(st.integers(begin + 1, end - 1))
    front, back = joined(route, begin, cut, draw), joined(route, cut, end, draw)
    return join(front, back, distances[cut - 1], times[cut - 1])


@given(routes(), st.data())
def test_any_joins_equal_the_walk(route: Route, data: st.DataObject) -> None:
    found, distances, times = route
    piece = joined(route, 0, len(found), data)
    assert piece.load == sum(stop.load for stop in found)
    assert piece.length == sum(distances)
    starts = [float(start) for start in range(-80, 60)]
    walks = {start: ref.driven(found, times, start) for start in starts}
    warp = min(walk[1] for walk in walks.values())
    assert piece.time_warp == warp
    assert piece.duration == min(walk[0] for walk in walks.values() if walk[1] == warp)
    assert piece.earliest <= piece.latest
    for start in starts:
        if piece.earliest <= start <= piece.latest:
            assert walks[start] == (piece.duration, piece.time_warp)


@given(routes(), st.data())
def test_without_windows_nothing_is_waited_for(route: Route, data: st.DataObject) -> None:
    found = [visit(stop.load, stop.duration) for stop in route[0]]
    piece = joined((found, *route[1:]), 0, len(found), data)
    assert piece.time_warp == 0.0
    assert piece.duration == sum(stop.duration for stop in found) + sum(route[2])
    assert (piece.earliest, piece.latest) == (-math.inf, math.inf)


@given(routes(), SMALL, SMALL, st.booleans())
def test_a_route_is_closed_by_its_way_back(
    route: Route, distance: float, time: float, returns: bool
) -> None:
    depot = visit(0.0, 0.0, 0.0, 30.0)
    piece = depot
    for stop in route[0]:
        piece = join(piece, stop, 1.0, 2.0)
    closed = close(piece, depot, distance, time, returns)
    if not returns:
        assert closed == piece
        return
    assert closed.length == piece.length + distance
    times = [2.0] * len(route[0]) + [time]
    walked = ref.driven([depot, *route[0], depot], times, closed.latest)
    assert walked == (closed.duration, closed.time_warp)


@given(routes(), st.data())
def test_only_what_is_beyond_a_limit_is_excess(route: Route, data: st.DataObject) -> None:
    piece = joined(route, 0, len(route[0]), data)
    assert excess(piece, ResourceLimits()) == (0.0, 0.0, 0.0, piece.time_warp)
    clock = piece.duration - piece.time_warp
    exact = ResourceLimits(piece.load, piece.length, clock)
    assert excess(piece, exact)[:3] == (0.0, 0.0, 0.0)
    tight = ResourceLimits(piece.load - 1.0, piece.length - 2.0, clock - 3.0)
    assert excess(piece, tight)[:3] == (1.0, 2.0, 3.0)


@pytest.mark.compiled
def test_kernels_compile_them_as_they_are() -> None:
    compiled = numba.njit(join)
    a, b = visit(1.0, 2.0, 3.0, 4.0), visit(5.0, 6.0, 20.0, 30.0)
    assert compiled(a, b, 2.0, 50.0) == join(a, b, 2.0, 50.0)


@pytest.mark.compiled
def test_a_kernel_is_compiled_in_one_way() -> None:
    """The cache has one place per function: another kind of code there would end the process."""
    with pytest.raises(TypeError, match=r"^join has other options, and the cache keeps one kind"):
        kernel(pieces.join.py_func)

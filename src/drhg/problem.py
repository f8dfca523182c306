"""Problems and solutions: what an instance is, what a solution costs, and whether it is valid.

A CVRP is a TSP with demand, capacity and a depot; nothing else in the package asks for the kind of
problem by name. The checker here shares no code with the solver. Nodes count from 0, in messages
too, which say so.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields
from decimal import Decimal, InvalidOperation
from enum import IntEnum
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from drhg.errors import InstanceError, SolutionError

Cost: TypeAlias = int | float
Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]

EARTH_RADIUS_KM = 6378.388  # TSPLIB's GEO metric, and its PI
TSPLIB_PI = 3.141592
LARGEST_EXACT = 2**52  # integers up to here (and their sums) are exact in float64
ROUNDING_NOISE = 1e-9  # relative: two distances this close are one distance

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

    @property
    def planar(self) -> bool:
        """Whether coordinates are points of the plane (so nearness is Euclidean or close to it)."""
        return self not in (Metric.GEO, Metric.EXPLICIT)


def from_zero(*nodes: int | np.integer[Any]) -> str:
    """How messages name nodes; `drhg.io.in_file_numbers` turns it into what a file counts.

    >>> from_zero(4), from_zero(0, 3, 7)
    ('node 4 (counted from 0)', 'nodes 0, 3 and 7 (counted from 0)')
    """
    *some, last = map(str, nodes)
    named = f"nodes {', '.join(some)} and {last}" if some else f"node {last}"
    return f"{named} (counted from 0)"


# --- arguments ----------------------------------------------------------------------------------


def shown(value: object) -> str:
    """A wrong argument in an error message: short, whatever it is."""
    try:
        return reprlib.repr(value)
    except Exception:  # somebody else's __repr__, or an int of too many digits
        return f"a {type(value).__name__}"


def _is_number(value: object) -> bool:
    return isinstance(value, (Real, Decimal)) and not isinstance(value, bool)


def whole_number(name: str, value: Any, least: int | None = None) -> int:
    """The argument as an int (2.0 is one, 2.5 and True are not), or an error that names it."""
    try:
        whole = int(value) if _is_number(value) and int(value) == value else None
    except (ValueError, OverflowError):  # nan, infinity
        whole = None
    if whole is None or (least is not None and whole < least):
        bound = "" if least is None else f" of at least {least}"
        raise InstanceError(f"{name} must be a whole number{bound}, not {shown(value)}")
    return whole


def real_number(name: str, value: Any, least: float | None = None) -> float:
    """The argument as a finite float, or an error that names it."""
    try:
        real = float(value) if _is_number(value) else np.nan
    except OverflowError:
        real = np.nan
    if not np.isfinite(real) or (least is not None and real < least):
        bound = "" if least is None else f" >= {least:g}"
        raise InstanceError(f"{name} must be a finite number{bound}, not {shown(value)}")
    return real


def an_instance(value: Any, name: str = "instance") -> Instance:
    """The argument, if it is an instance; else an error that names it."""
    if not isinstance(value, Instance):
        raise InstanceError(
            f"{name} must be an Instance, as drhg.read, drhg.tsp and drhg.cvrp return it, "
            f"not {shown(value)}"
        )
    return value


def a_solution(value: Any, name: str = "solution") -> Solution:
    """The argument, if it is a solution; else an error that names it."""
    if not isinstance(value, Solution):
        raise SolutionError(
            f"{name} must be a Solution, such as drhg.Solution([[0, 2, 1]]), not {shown(value)}"
        )
    return value


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise InstanceError(f"{name} must be text, not {shown(value)}")
    return value


def _array(name: str, values: Any) -> npt.NDArray[Any]:
    """The argument as an array of numbers of any kind; objects are left to the caller."""
    try:
        array = np.asarray(values)
    except (TypeError, ValueError):  # rows of unequal length
        array = np.asarray("")
    if array.dtype.kind not in "iufO" or (array.dtype.kind == "O" and array.ndim == 0):
        raise InstanceError(f"{name} must be an array of numbers, not {shown(values)}")
    return array


# --- instances ----------------------------------------------------------------------------------


def _frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A private read-only copy, C-contiguous."""
    copy = np.array(array, order="C", copy=True)
    copy.flags.writeable = False
    return copy


@dataclass(frozen=True, eq=False, kw_only=True)
class Instance:
    """A routing problem; build it with `tsp`, `cvrp` or `drhg.read`. Validated, immutable.

    Two instances are equal if all their fields are, name and comment included, numbers exactly;
    equal ones have equal hashes. Pickles and copies are equal to the original.

    >>> import drhg
    >>> drhg.tsp([[0, 0], [0, 3], [4, 0]]).distance(1, 2)
    5.0
    """

    name: str = "unnamed"
    metric: Metric = Metric.EXACT
    xy: Floats | None = None  # (n, 2); None for a bare matrix
    matrix: npt.NDArray[Any] | None = None  # (n, n), symmetric; only with Metric.EXPLICIT
    demand: Ints | None = None  # (n,), the depot's is 0; None for a TSP
    capacity: int | None = None
    demand_scale: int = 1  # demand and capacity are the user's numbers times this power of ten
    depot: int = 0
    vehicles: int | None = None  # at most so many routes
    max_distance: float | None = None  # of a route, service included
    service_time: float = 0.0  # per customer, counts against max_distance, not as cost
    fixed_edges: tuple[tuple[int, int], ...] = ()
    comment: str = ""
    _radians: Floats | None = field(init=False, default=None, repr=False)

    def __post_init__(self) -> None:
        def put(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        for name in ("name", "comment"):
            _text(name, getattr(self, name))
        put("metric", _metric(self.metric))
        if self.xy is not None:
            put("xy", _frozen(_coordinates(self.xy)))
        if (self.metric is Metric.EXPLICIT) != (self.matrix is not None):
            raise InstanceError("a distance matrix goes with metric EXPLICIT, and only with it")
        if self.matrix is not None:
            put("matrix", _frozen(_matrix(self.matrix)))
        elif self.xy is None:
            raise InstanceError("neither coordinates (xy) nor a distance matrix")
        if self.n < 1:
            raise InstanceError("an instance needs at least one node")
        if self.xy is not None and len(self.xy) != self.n:
            raise InstanceError(f"{len(self.xy)} coordinates for a matrix of {self.n} nodes")
        if self.metric is Metric.GEO:
            assert self.xy is not None
            put("_radians", _frozen(_geo_radians(self.xy)))
        self._check_magnitude()
        put("depot", whole_number("depot", self.depot))
        for name in ("max_distance", "service_time"):
            if name == "service_time" or self.max_distance is not None:
                put(name, real_number(name, getattr(self, name), 0.0))
        self._check_demand(put)
        put("fixed_edges", _fixed_edges(_fixed_pairs(self.fixed_edges), self.n))
        if self.fixed_edges and self.is_cvrp:
            raise InstanceError("fixed edges are supported for the TSP only")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Instance):
            return NotImplemented
        names = (f.name for f in fields(self) if f.init)
        return all(_equal(getattr(self, name), getattr(other, name)) for name in names)

    def __hash__(self) -> int:
        return hash((self.name, self.metric, self.n, self.capacity, self.depot))

    def __setstate__(self, state: dict[str, Any]) -> None:  # a pickled array forgets that it is
        for name, value in state.items():  # read-only
            is_array = isinstance(value, np.ndarray)
            object.__setattr__(self, name, _frozen(value) if is_array else value)

    def _check_magnitude(self) -> None:
        if self.matrix is not None:
            largest = float(self.matrix.max(initial=0))
        elif self.metric is Metric.GEO:
            largest = EARTH_RADIUS_KM * TSPLIB_PI + 1
        else:
            assert self.xy is not None
            with np.errstate(over="ignore"):
                largest = float(np.ptp(self.xy, axis=0).sum())
        if not largest * self.n < LARGEST_EXACT:
            raise InstanceError(
                f"distances up to {largest:.3g} between {self.n} nodes are too large to add exactly"
            )

    def _check_demand(self, put: Any) -> None:
        if self.demand is None:
            if self.capacity is not None or self.vehicles is not None:
                raise InstanceError("capacity or vehicles given, but no demand")
            if self.max_distance is not None or self.service_time:
                raise InstanceError("route limits given, but no demand (depot and customers)")
            if self.depot != 0:
                raise InstanceError("a depot given, but no demand")
            return
        demand = _array("demand", self.demand)
        if demand.shape != (self.n,):
            raise InstanceError(f"demand has shape {demand.shape}, expected ({self.n},)")
        whole = _as_integers(demand)
        if whole is None:
            raise InstanceError("demand must be whole numbers (`cvrp` scales decimals)")
        if self.capacity is None:
            raise InstanceError("demand given, but no capacity")
        put("capacity", whole_number("capacity", self.capacity))
        put("demand_scale", whole_number("demand_scale", self.demand_scale))
        if not 0 <= self.depot < self.n:
            raise InstanceError(f"depot {self.depot} is not one of the nodes 0 .. {self.n - 1}")
        if not 1 <= self.capacity < LARGEST_EXACT:
            raise InstanceError(f"capacity must be positive and exact, not {shown(self.capacity)}")
        if self.demand_scale not in [10**p for p in range(10)]:
            raise InstanceError(
                f"demand_scale must be a power of ten, not {shown(self.demand_scale)}"
            )
        put("demand", _frozen(whole))
        assert self.demand is not None
        if (self.demand < 0).any():
            i = int(np.argmax(self.demand < 0))
            raise InstanceError(f"{from_zero(i)} has the negative demand {self._shown(i)}")
        if self.demand[self.depot] != 0:
            raise InstanceError(f"the depot, {from_zero(self.depot)}, has a demand")
        if (self.demand > self.capacity).any():
            i = int(np.argmax(self.demand > self.capacity))
            raise InstanceError(
                f"{from_zero(i)} demands {self._shown(i)}, more than the capacity "
                f"{self.capacity / self.demand_scale:g}"
            )
        total = sum(self.demand.tolist())  # not numpy's sum, which may wrap
        if total >= LARGEST_EXACT:
            raise InstanceError("the demands are too large to add exactly")
        if self.vehicles is not None:
            put("vehicles", whole_number("vehicles", self.vehicles))
            if self.vehicles < 1:
                raise InstanceError(f"vehicles must be positive, not {self.vehicles}")
            if total > self.vehicles * self.capacity:
                raise InstanceError(
                    f"total demand {total / self.demand_scale:g} exceeds {self.vehicles} vehicles "
                    f"of capacity {self.capacity / self.demand_scale:g}"
                )

    def _shown(self, i: int) -> str:
        assert self.demand is not None
        return f"{self.demand[i] / self.demand_scale:g}"

    @property
    def n(self) -> int:
        """Number of nodes, the depot included."""
        shape = self.matrix if self.matrix is not None else self.xy
        assert shape is not None
        return len(shape)

    @property
    def is_cvrp(self) -> bool:
        return self.demand is not None

    @property
    def problem(self) -> str:
        """'cvrp' or 'tsp', for people; code branches on `demand`."""
        return "cvrp" if self.is_cvrp else "tsp"

    @property
    def integral(self) -> bool:
        """Whether every distance is a whole number, so that costs are integers."""
        if self.matrix is not None:
            return bool(np.issubdtype(self.matrix.dtype, np.integer))
        return self.metric is not Metric.EXACT

    def distance(self, i: npt.ArrayLike, j: npt.ArrayLike) -> Any:
        """Distance between nodes; arrays broadcast. Whole numbers are still float64 here."""
        a, b = np.asarray(i), np.asarray(j)
        if self.matrix is not None:
            out = self.matrix[a, b].astype(np.float64)
        else:
            points = self.xy if self._radians is None else self._radians
            assert points is not None
            p, q = points[a], points[b]
            out = np.where(a == b, 0.0, _METRICS[self.metric](p, q))
        return out if out.ndim else float(out)


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return a is not None and b is not None and np.array_equal(a, b)
    return bool(a == b)


def _coordinates(xy: npt.ArrayLike) -> Floats:
    try:
        points = _array("xy", xy).astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InstanceError(f"xy must be an array of numbers, not {shown(xy)}") from None
    if points.ndim != 2 or points.shape[1] != 2:
        raise InstanceError(f"xy has shape {points.shape}, expected (n, 2)")
    if not np.isfinite(points).all():
        i = int(np.argmax(~np.isfinite(points).all(axis=1)))
        raise InstanceError(f"{from_zero(i)} has the coordinates {points[i, 0]}, {points[i, 1]}")
    return points


def _matrix(values: npt.ArrayLike) -> npt.NDArray[Any]:
    matrix = _array("matrix", values)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InstanceError(f"the distance matrix has shape {matrix.shape}, expected (n, n)")
    if matrix.dtype.kind == "O":
        raise InstanceError("the distance matrix is not numeric")
    if not np.isfinite(matrix).all():
        raise InstanceError("the distance matrix has a value that is not finite")
    if (matrix < 0).any():
        i, j = np.argwhere(matrix < 0)[0]
        raise InstanceError(f"the distance of {from_zero(i, j)} is negative")
    if float(matrix.max(initial=0)) >= LARGEST_EXACT:
        raise InstanceError("a distance is too large to be exact")
    matrix = matrix.copy()
    np.fill_diagonal(matrix, 0)  # first: what stands there says nothing about distances
    if not np.array_equal(matrix, matrix.T):
        matrix = _symmetric(matrix)
    return matrix.astype(np.int64 if _is_whole(matrix) else np.float64, copy=False)


def _symmetric(matrix: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The mean of a matrix and its transpose, if they differ by rounding noise alone.

    Whole numbers carry no noise: their matrix must be symmetric as it stands.
    """
    allowed = 0.0 if _is_whole(matrix) else ROUNDING_NOISE
    differ = np.abs(matrix - matrix.T) > allowed * np.maximum(matrix, matrix.T)
    if differ.any():
        i, j = np.argwhere(differ)[0]
        raise InstanceError(
            f"the distance matrix is not symmetric ({from_zero(i, j)}); "
            "asymmetric problems are not solved here"
        )
    wide = matrix.astype(np.float64)
    return (wide + wide.T) / 2


def _is_whole(array: npt.NDArray[Any]) -> bool:
    return array.dtype.kind in "iu" or bool(np.all(array == np.floor(array)))


def _as_integers(array: npt.NDArray[Any]) -> Ints | None:
    """The same numbers as int64, or None if one of them is not whole, or too large to be exact."""
    if array.dtype.kind == "f":
        array = array.astype(np.float64)
    if array.dtype.kind == "O" or not (np.abs(array) < LARGEST_EXACT).all():  # nan is not, either
        return None
    return array.astype(np.int64) if _is_whole(array) else None


def _fixed_pairs(edges: Any) -> tuple[tuple[int, int], ...]:
    try:
        pairs = [tuple(edge) for edge in edges]
    except TypeError:
        raise InstanceError(
            f"fixed_edges must be pairs of nodes such as [(0, 1)], not {shown(edges)}"
        ) from None
    if any(len(pair) != 2 for pair in pairs):
        raise InstanceError("fixed_edges: a fixed edge is a pair of nodes")
    node = "a node of fixed_edges"
    return tuple((whole_number(node, a), whole_number(node, b)) for a, b in pairs)


def _fixed_edges(pairs: tuple[tuple[int, int], ...], n: int) -> tuple[tuple[int, int], ...]:
    """Sorted, without repeats; must be disjoint paths (or one tour through all nodes)."""
    chosen = sorted({(min(pair), max(pair)) for pair in pairs})
    root = list(range(n))

    def find(i: int) -> int:
        while root[i] != i:
            root[i] = root[root[i]]
            i = root[i]
        return i

    degree = [0] * n
    for count, (a, b) in enumerate(chosen, start=1):
        if a < 0 or b >= n or a == b:
            raise InstanceError(f"the fixed edge of {from_zero(a, b)} does not join two nodes")
        degree[a] += 1
        degree[b] += 1
        if degree[a] > 2 or degree[b] > 2:
            raise InstanceError(
                f"more than two fixed edges at {from_zero(a if degree[a] > 2 else b)}"
            )
        if find(a) == find(b) and not (count == len(chosen) == n):
            raise InstanceError(f"the fixed edges close a cycle at {from_zero(a, b)}")
        root[find(a)] = find(b)
    return tuple(chosen)


def _geo_radians(xy: Floats) -> Floats:
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


_METRICS: dict[Metric, Callable[[Floats, Floats], Floats]] = {
    Metric.EXACT: _euclid,
    Metric.EUC_2D: lambda p, q: np.floor(_euclid(p, q) + 0.5),
    Metric.CEIL_2D: lambda p, q: np.ceil(_euclid(p, q)),
    Metric.ATT: _att,
    Metric.GEO: _geo,
    Metric.MAN_2D: lambda p, q: np.floor(np.abs(p - q).sum(axis=-1) + 0.5),
    Metric.MAX_2D: lambda p, q: np.floor(np.abs(p - q) + 0.5).max(axis=-1),
}


def tsp(
    xy: npt.ArrayLike | None = None,
    *,
    matrix: npt.ArrayLike | None = None,
    metric: Metric | str = Metric.EXACT,
    fixed_edges: Iterable[Sequence[int]] = (),
    name: str = "tsp",
) -> Instance:
    """A travelling salesman problem from coordinates (n, 2) or a symmetric matrix (n, n).

    With metric GEO, coordinates are latitude and longitude as DDD.MM: degrees and minutes, so that
    12.75 degrees are 12.45; decimal degrees are refused where minutes show them. A matrix of whole
    numbers must be exactly symmetric; one with decimals may differ from its transpose by a relative
    1e-9, which is taken for rounding noise: the mean of both is used.

    >>> import drhg
    >>> drhg.tsp([[0, 0], [0, 3], [4, 0]]).n
    3
    """
    return Instance(
        name=name,
        metric=_metric(metric) if matrix is None else Metric.EXPLICIT,
        xy=None if xy is None else _coordinates(xy),
        matrix=None if matrix is None else _array("matrix", matrix),
        fixed_edges=_fixed_pairs(fixed_edges),
    )


def cvrp(
    xy: npt.ArrayLike | None,
    demand: npt.ArrayLike,
    capacity: float,
    *,
    matrix: npt.ArrayLike | None = None,
    depot: int = 0,
    vehicles: int | None = None,
    max_distance: float | None = None,
    service_time: float = 0.0,
    metric: Metric | str = Metric.EXACT,
    name: str = "cvrp",
) -> Instance:
    """A capacitated vehicle routing problem; `demand` has one entry per node, the depot's is 0.

    Demand and capacity may be decimals of up to nine places. Coordinates and matrix are as in
    `tsp`.

    >>> import drhg
    >>> drhg.cvrp([[0, 0], [0, 1], [1, 0]], [0, 2, 3], capacity=4).problem
    'cvrp'
    """
    scaled, scaled_capacity, scale = whole_demand(demand, capacity)
    return Instance(
        name=name,
        metric=_metric(metric) if matrix is None else Metric.EXPLICIT,
        xy=None if xy is None else _coordinates(xy),
        matrix=None if matrix is None else _array("matrix", matrix),
        demand=scaled,
        capacity=scaled_capacity,
        demand_scale=scale,
        depot=depot,
        vehicles=vehicles,
        max_distance=max_distance,
        service_time=service_time,
    )


def _metric(metric: Any) -> Metric:
    try:
        return Metric[metric.upper()] if isinstance(metric, str) else Metric(metric)
    except (KeyError, ValueError, TypeError):
        known = ", ".join(m.name for m in Metric)
        raise InstanceError(f"unknown metric {shown(metric)}; known: {known}") from None


def whole_demand(demand: npt.ArrayLike, capacity: float) -> tuple[Ints, int, int]:
    """Demand and capacity as int64, and the power of ten they were multiplied by to get there.

    Decimals such as 0.25 are scaled exactly; what no power of ten up to 10^9 makes whole is not.
    A float32 stands for the shortest decimal that rounds to it, as any float does.
    """
    values = _array("demand", demand)
    if values.ndim != 1:
        raise InstanceError(f"demand has shape {values.shape}, expected (n,)")
    is_whole = real_number("capacity", capacity).is_integer()
    whole = _as_integers(values)
    if whole is not None and is_whole:
        return whole, int(capacity), 1
    try:
        exact = [_decimal(v) for v in [*values, capacity]]
    except (TypeError, ValueError, OverflowError, InvalidOperation):
        raise InstanceError("demand must be numbers") from None
    if not all(v.is_finite() for v in exact):
        raise InstanceError("demand must be finite")
    exponents = [v.normalize().as_tuple().exponent for v in exact]
    digits = max(0, *(-e for e in exponents if isinstance(e, int)))
    scale = 10 ** min(digits, 9)
    scaled = [v * scale for v in exact]
    if any(v != v.to_integral_value() or abs(v) >= LARGEST_EXACT for v in scaled):
        raise InstanceError("demand or capacity is not a decimal number of at most 9 places")
    numbers = [int(v) for v in scaled]
    return np.array(numbers[:-1], dtype=np.int64), numbers[-1], scale


def _decimal(value: Any) -> Decimal:
    """The shortest decimal that rounds to this number in its own precision."""
    return Decimal(str(value) if isinstance(value, np.floating) else repr(float(value)))


# --- solutions ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Solution:
    """Routes as arrays of node numbers from 0, the depot left out; a TSP tour is its only route.

    Two solutions are equal if they have the same routes in the same order: the same tour from
    another node on is another solution. Equal ones have equal hashes.
    """

    routes: tuple[Ints, ...]

    def __init__(self, routes: Iterable[npt.ArrayLike]) -> None:
        if isinstance(routes, (str, bytes)) or not isinstance(routes, Iterable):
            raise SolutionError(
                f"routes must be a list of lists of node numbers, not {shown(routes)}"
            )
        arrays = []
        for route in routes:
            try:
                array = np.asarray(route)
            except (TypeError, ValueError):  # lists of unequal length
                raise SolutionError("routes: a route is a list of node numbers") from None
            if array.ndim != 1 or not (array.size == 0 or np.issubdtype(array.dtype, np.integer)):
                flat = "; a tour is a list of one route: [[0, 2, 1]]" if array.ndim == 0 else ""
                raise SolutionError(
                    f"routes: a route is a list of node numbers, not {shown(route)}{flat}"
                )
            if array.size:
                arrays.append(_frozen(array.astype(np.int64)))
        object.__setattr__(self, "routes", tuple(arrays))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Solution):
            return NotImplemented
        return len(self.routes) == len(other.routes) and all(
            map(np.array_equal, self.routes, other.routes)
        )

    def __hash__(self) -> int:
        return hash(tuple(route.tobytes() for route in self.routes))

    def __setstate__(self, state: dict[str, Any]) -> None:  # a pickled array forgets that it is
        object.__setattr__(self, "routes", tuple(map(_frozen, state["routes"])))  # read-only

    @property
    def tour(self) -> Ints:
        """The only route: the visiting order of a TSP."""
        if len(self.routes) != 1:
            raise SolutionError(f"{len(self.routes)} routes are not one tour")
        return self.routes[0]

    def __repr__(self) -> str:
        nodes = sum(len(route) for route in self.routes)
        return f"Solution({len(self.routes)} routes, {nodes} nodes)"


def _end_to_end(solution: Solution) -> tuple[Ints, Ints]:
    """All routes in one array, and where each begins: plans have thousands of short routes."""
    sizes = [len(route) for route in solution.routes]
    begins = np.cumsum([0, *sizes], dtype=np.int64)[:-1]
    return np.concatenate([np.zeros(0, np.int64), *solution.routes]), begins


def _route_lengths(instance: Instance, solution: Solution) -> Floats:
    """Length of each route: closed for a TSP, from and to the depot for a CVRP."""
    order, begins = _end_to_end(solution)
    if not len(order):
        return np.zeros(0)
    if instance.is_cvrp:
        order = np.insert(order, begins, instance.depot)
        begins = begins + np.arange(len(begins))
    after = np.roll(order, -1)
    after[np.append(begins[1:], len(order)) - 1] = order[begins]
    return np.add.reduceat(np.asarray(instance.distance(order, after), np.float64), begins)


def cost(instance: Instance, solution: Solution) -> Cost:
    """Total length, recomputed from scratch; an `int` for rounded metrics.

    >>> import drhg
    >>> square = drhg.tsp([[0, 0], [0, 1], [1, 1], [1, 0]])
    >>> drhg.cost(square, drhg.Solution([[0, 1, 2, 3]]))
    4.0
    """
    if unknown := _unknown_nodes(an_instance(instance), a_solution(solution)):
        raise SolutionError(unknown[0])
    total = _route_lengths(instance, solution).sum()
    return round(float(total)) if instance.integral else float(total)


def check(instance: Instance, solution: Solution) -> list[str]:
    """Every violation of the instance's rules, in words; empty means the solution is valid.

    Nodes count from 0; `drhg.io.in_file_numbers` makes of it what the reader of a file expects.

    >>> import drhg
    >>> drhg.check(drhg.tsp([[0, 0], [0, 1], [1, 1]]), drhg.Solution([[0, 1]]))
    ['node 2 (counted from 0) is not visited']
    """
    unknown = _unknown_nodes(an_instance(instance), a_solution(solution))
    n, found = instance.n, list(unknown)
    order, _ = _end_to_end(solution)
    visits = np.bincount(order[(order >= 0) & (order < n)], minlength=n)
    if instance.is_cvrp:
        if visits[instance.depot]:
            found.append(f"the depot, {from_zero(instance.depot)}, stands inside a route")
        visits[instance.depot] = 1
    elif len(solution.routes) != 1:
        found.append(f"a tour is one route, not {len(solution.routes)}")
    found += [f"{from_zero(i)} is not visited" for i in np.flatnonzero(visits == 0)]
    found += [f"{from_zero(i)} is visited {visits[i]} times" for i in np.flatnonzero(visits > 1)]
    if unknown:
        return found
    if instance.demand is not None and instance.capacity is not None:
        found += _route_violations(instance, solution)
    else:
        found += _lost_fixed_edges(instance, solution)
    return found


def _unknown_nodes(instance: Instance, solution: Solution) -> list[str]:
    order, begins = _end_to_end(solution)
    outside = np.flatnonzero((order < 0) | (order >= instance.n))
    routes = np.searchsorted(begins, outside, side="right")
    return [
        f"route {r} names {from_zero(order[at])}, which does not exist"
        for at, r in zip(outside, routes, strict=True)
    ]


def _route_violations(instance: Instance, solution: Solution) -> list[str]:
    assert instance.demand is not None
    assert instance.capacity is not None
    found, scale, routes = [], instance.demand_scale, solution.routes
    order, begins = _end_to_end(solution)
    loads = np.add.reduceat(instance.demand[order], begins) if len(begins) else begins
    for r in np.flatnonzero(loads > instance.capacity):
        load, capacity = int(loads[r]) / scale, instance.capacity / scale
        found.append(f"route {r + 1} carries {load:g}, capacity is {capacity:g}")
    if instance.max_distance is not None:
        stops = np.array([len(route) for route in routes], np.int64)
        lengths = _route_lengths(instance, solution) + instance.service_time * stops
        for r in np.flatnonzero(lengths > instance.max_distance * (1 + 1e-9)):
            allowed = f"allowed is {instance.max_distance:g}"
            found.append(f"route {r + 1} is {lengths[r]:g} long, {allowed}")
    if instance.vehicles is not None and len(routes) > instance.vehicles:
        found.append(f"{len(routes)} routes, but only {instance.vehicles} vehicles")
    return found


def _lost_fixed_edges(instance: Instance, solution: Solution) -> list[str]:
    if not instance.fixed_edges:
        return []
    present = set()
    for route in solution.routes:
        for a, b in zip(route.tolist(), np.roll(route, -1).tolist(), strict=True):
            present.add((min(a, b), max(a, b)))
    return [
        f"the fixed edge of {from_zero(a, b)} is missing"
        for a, b in instance.fixed_edges
        if (a, b) not in present
    ]


def validated(instance: Instance, solution: Solution) -> Solution:
    """The same solution, or a `SolutionError` that names what is wrong with it."""
    found = check(instance, solution)
    if found:
        more = f" (and {len(found) - 5} more)" if len(found) > 5 else ""
        raise SolutionError("; ".join(found[:5]) + more)
    return solution

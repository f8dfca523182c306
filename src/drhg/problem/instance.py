"""Instances: validated, immutable, built by `tsp`, `cvrp` or a reader of files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
import numpy.typing as npt

from drhg.errors import InstanceError
from drhg.problem.arguments import (
    LARGEST_EXACT,
    Floats,
    Ints,
    array_argument,
    from_zero,
    frozen,
    is_whole,
    real_number,
    shown,
    text_argument,
    whole_number,
)
from drhg.problem.metrics import (
    EARTH_RADIUS_KM,
    METRICS,
    SPHERE_RADIUS_M,
    TSPLIB_PI,
    Metric,
    degrees_to_radians,
    flattened,
    geo_radians,
    metric_argument,
    middle_of,
)

ROUNDING_NOISE = 1e-9  # relative: two distances this close are one distance


def an_instance(value: Any, name: str = "instance") -> Instance:
    """The argument, if it is an instance; else an error that names it."""
    if not isinstance(value, Instance):
        raise InstanceError(
            f"{name} must be an Instance, as drhg.read, drhg.tsp and drhg.cvrp return it, "
            f"not {shown(value)}"
        )
    return value


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
    names: tuple[str, ...] | None = None  # of the nodes, all different
    degrees: bool = False  # xy is (latitude, longitude) in decimal degrees; with HAVERSINE always
    _radians: Floats | None = field(init=False, default=None, repr=False)

    def __post_init__(self) -> None:
        def put(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        for name in ("name", "comment"):
            text_argument(name, getattr(self, name))
        put("metric", metric_argument(self.metric))
        if self.xy is not None:
            put("xy", frozen(_coordinates(self.xy)))
        if (self.metric is Metric.EXPLICIT) != (self.matrix is not None):
            raise InstanceError("a distance matrix goes with metric EXPLICIT, and only with it")
        if self.matrix is not None:
            put("matrix", frozen(_matrix(self.matrix)))
        elif self.xy is None:
            raise InstanceError("neither coordinates (xy) nor a distance matrix")
        if self.n < 1:
            raise InstanceError("an instance needs at least one node")
        if self.xy is not None and len(self.xy) != self.n:
            raise InstanceError(f"{len(self.xy)} coordinates for a matrix of {self.n} nodes")
        self._check_globe(put)
        if self.names is not None:
            put("names", _node_names(self.names, self.n))
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
            object.__setattr__(self, name, frozen(value) if is_array else value)

    def _check_globe(self, put: Any) -> None:
        put("degrees", self.metric is Metric.HAVERSINE or bool(self.degrees))
        if self.degrees and self.metric not in (Metric.HAVERSINE, Metric.EXPLICIT):
            raise InstanceError(
                f"coordinates in degrees go with HAVERSINE or a distance matrix, not with metric "
                f"{self.metric.name}"
            )
        if self.degrees and self.xy is None:
            raise InstanceError("degrees say what xy means, and there is no xy")
        if self.xy is not None and (self.degrees or self.metric is Metric.GEO):
            to_radians = geo_radians if self.metric is Metric.GEO else degrees_to_radians
            put("_radians", frozen(to_radians(self.xy)))

    def _check_magnitude(self) -> None:
        if self.matrix is not None:
            largest = float(self.matrix.max(initial=0))
        elif self.metric is Metric.GEO:
            largest = EARTH_RADIUS_KM * TSPLIB_PI + 1
        elif self.metric is Metric.HAVERSINE:
            largest = SPHERE_RADIUS_M * np.pi
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
        demand = array_argument("demand", self.demand)
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
        put("demand", frozen(whole))
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
        return self.metric.rounded

    @property
    def plane(self) -> Floats | None:
        """Points (n, 2) of a plane, x to the right and y up, in which near nodes lie close.

        Coordinates as they are, but degrees in metres east and north of the nodes' middle; None
        for a bare matrix. What only looks at directions and neighbourhoods takes these.
        """
        if self._radians is None or not self.degrees:
            return self.xy
        return flattened(self._radians, middle_of(self._radians))

    def called(self, *nodes: int | np.integer[Any]) -> str:
        """How messages speak of nodes: by their names, or else by their numbers from 0.

        >>> import drhg
        >>> drhg.tsp([[0, 0], [0, 3]], names=["mill", "ford"]).called(0, 1)
        "'mill' and 'ford'"
        """
        if self.names is None or not all(0 <= node < self.n for node in nodes):
            return from_zero(*nodes)
        *some, last = (repr(self.names[node]) for node in nodes)
        return f"{', '.join(some)} and {last}" if some else last

    def distance(self, i: npt.ArrayLike, j: npt.ArrayLike) -> Any:
        """Distance between nodes; arrays broadcast. Whole numbers are still float64 here."""
        a, b = np.asarray(i), np.asarray(j)
        if self.matrix is not None:
            out = self.matrix[a, b].astype(np.float64)
        else:
            points = self.xy if self._radians is None else self._radians
            assert points is not None
            p, q = points[a], points[b]
            out = np.where(a == b, 0.0, METRICS[self.metric](p, q))
        return out if out.ndim else float(out)


def _node_names(names: Any, n: int) -> tuple[str, ...]:
    """The names of all nodes, or an error that says which one cannot be."""
    if isinstance(names, (str, bytes)) or not isinstance(names, Iterable):
        raise InstanceError(f"names must be a list of texts, one per node, not {shown(names)}")
    found = tuple(names)
    if len(found) != n:
        raise InstanceError(f"{len(found)} names for {n} nodes")
    for i, name in enumerate(found):
        if not isinstance(name, str) or not name.strip():
            raise InstanceError(f"the name of {from_zero(i)} must be text, not {shown(name)}")
    if len(set(found)) < n:
        first: dict[str, int] = {}
        i = next(i for i, name in enumerate(found) if first.setdefault(name, i) != i)
        raise InstanceError(f"{from_zero(first[found[i]], i)} are both called {found[i]!r}")
    return found


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return a is not None and b is not None and np.array_equal(a, b)
    return bool(a == b)


def _coordinates(xy: npt.ArrayLike) -> Floats:
    try:
        points = array_argument("xy", xy).astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InstanceError(f"xy must be an array of numbers, not {shown(xy)}") from None
    if points.ndim != 2 or points.shape[1] != 2:
        raise InstanceError(f"xy has shape {points.shape}, expected (n, 2)")
    if not np.isfinite(points).all():
        i = int(np.argmax(~np.isfinite(points).all(axis=1)))
        raise InstanceError(f"{from_zero(i)} has the coordinates {points[i, 0]}, {points[i, 1]}")
    return points


def _matrix(values: npt.ArrayLike) -> npt.NDArray[Any]:
    matrix = array_argument("matrix", values)
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
    return matrix.astype(np.int64 if is_whole(matrix) else np.float64, copy=False)


def _symmetric(matrix: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The mean of a matrix and its transpose, if they differ by rounding noise alone.

    Whole numbers carry no noise: their matrix must be symmetric as it stands.
    """
    allowed = 0.0 if is_whole(matrix) else ROUNDING_NOISE
    differ = np.abs(matrix - matrix.T) > allowed * np.maximum(matrix, matrix.T)
    if differ.any():
        i, j = np.argwhere(differ)[0]
        raise InstanceError(
            f"the distance matrix is not symmetric ({from_zero(i, j)}); "
            "asymmetric problems are not solved here"
        )
    wide = matrix.astype(np.float64)
    return (wide + wide.T) / 2


def _as_integers(array: npt.NDArray[Any]) -> Ints | None:
    """The same numbers as int64, or None if one of them is not whole, or too large to be exact."""
    if array.dtype.kind == "f":
        array = array.astype(np.float64)
    if array.dtype.kind == "O" or not (np.abs(array) < LARGEST_EXACT).all():  # nan is not, either
        return None
    return array.astype(np.int64) if is_whole(array) else None


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


def tsp(
    xy: npt.ArrayLike | None = None,
    *,
    matrix: npt.ArrayLike | None = None,
    metric: Metric | str = Metric.EXACT,
    fixed_edges: Iterable[Sequence[int]] = (),
    name: str = "tsp",
    names: Iterable[str] | None = None,
) -> Instance:
    """A travelling salesman problem from coordinates (n, 2) or a symmetric matrix (n, n).

    With metric GEO, coordinates are latitude and longitude as DDD.MM: degrees and minutes, so that
    12.75 degrees are 12.45; decimal degrees are refused where minutes show them. With metric
    HAVERSINE, they are latitude and longitude in decimal degrees, distances are metres along great
    circles of a sphere of radius 6371008.8 m. `names` are the nodes' own. A matrix of whole
    numbers must be exactly symmetric; one with decimals may differ from its transpose by a relative
    1e-9, which is taken for rounding noise: the mean of both is used.

    >>> import drhg
    >>> drhg.tsp([[0, 0], [0, 3], [4, 0]]).n
    3
    """
    return Instance(
        name=name,
        metric=metric_argument(metric) if matrix is None else Metric.EXPLICIT,
        xy=None if xy is None else _coordinates(xy),
        matrix=None if matrix is None else array_argument("matrix", matrix),
        fixed_edges=_fixed_pairs(fixed_edges),
        names=names,  # type: ignore[arg-type]
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
    names: Iterable[str] | None = None,
) -> Instance:
    """A capacitated vehicle routing problem; `demand` has one entry per node, the depot's is 0.

    Demand and capacity may be decimals of up to nine places. Coordinates, matrix and names are as
    in `tsp`.

    >>> import drhg
    >>> drhg.cvrp([[0, 0], [0, 1], [1, 0]], [0, 2, 3], capacity=4).problem
    'cvrp'
    """
    scaled, scaled_capacity, scale = whole_demand(demand, capacity)
    return Instance(
        name=name,
        metric=metric_argument(metric) if matrix is None else Metric.EXPLICIT,
        xy=None if xy is None else _coordinates(xy),
        matrix=None if matrix is None else array_argument("matrix", matrix),
        demand=scaled,
        capacity=scaled_capacity,
        demand_scale=scale,
        depot=depot,
        vehicles=vehicles,
        max_distance=max_distance,
        service_time=service_time,
        names=names,  # type: ignore[arg-type]
    )


def whole_demand(demand: npt.ArrayLike, capacity: float) -> tuple[Ints, int, int]:
    """Demand and capacity as int64, and the power of ten they were multiplied by to get there.

    Decimals such as 0.25 are scaled exactly; what no power of ten up to 10^9 makes whole is not.
    A float32 stands for the shortest decimal that rounds to it, as any float does.
    """
    values = array_argument("demand", demand)
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

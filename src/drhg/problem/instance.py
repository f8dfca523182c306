"""Instances: validated, immutable, built by `tsp`, `cvrp`, `vrp` or a reader of files."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
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
    real_number,
    shown,
    text_argument,
    whole_number,
)
from drhg.problem.fields import (
    as_integers,
    coordinates,
    fixed_edges,
    fixed_pairs,
    node_names,
    square_matrix,
)
from drhg.problem.fleet import VehicleType, counts_of, resolved_fleet
from drhg.problem.locks import Locks, a_locks, resolve
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
from drhg.problem.variants import (
    refuse_impossible_times,
    release_times,
    service_times,
    time_windows,
    variants_of,
)


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
    """A routing problem; build it with `tsp`, `cvrp`, `vrp` or `drhg.read`. Validated, immutable.

    Times begin at the depot: a route leaves it within its window and not before all that it carries
    is released, travels, waits for windows to open, serves, and is back before the depot closes.

    Two instances are equal if all their fields are, name and comment included, numbers exactly;
    equal ones have equal hashes. Pickles and copies are equal to the original.

    >>> import drhg
    >>> drhg.tsp([[0, 0], [0, 3], [4, 0]]).distance(1, 2)
    5.0
    """

    name: str = "unnamed"
    metric: Metric = Metric.EXACT
    xy: Floats | None = None  # (n, 2); None for a bare matrix
    matrix: npt.NDArray[Any] | None = None  # (n, n), from row to column; only with EXPLICIT
    demand: Ints | None = None  # (n,), the depot's is 0; None for a TSP
    capacity: int | None = None
    demand_scale: int = 1  # demand and capacity are the user's numbers times this power of ten
    depot: int = 0
    vehicles: int | None = None  # at most so many routes
    max_distance: float | None = None  # of a route, service included
    service_time: float | Floats = 0.0  # of every customer, or (n,); counts against max_distance
    fixed_edges: tuple[tuple[int, int], ...] = ()
    comment: str = ""
    names: tuple[str, ...] | None = None  # of the nodes, all different
    degrees: bool = False  # xy is (latitude, longitude) in decimal degrees; with HAVERSINE always
    durations: Floats | None = None  # (n, n) travel times; by default times are distances
    windows: Floats | None = None  # (n, 2): earliest and latest start of service; the depot's:
    # leave no earlier, be back no later
    release: Floats | None = None  # (n,): earliest departure of the route that carries it
    max_duration: float | None = None  # of a route: travel, service, waiting
    returns: bool = True  # False: routes are open, a tour is a path; no way back at the end
    start: int | None = None  # of a path
    end: int | None = None
    locks: Locks | None = None  # what every plan must keep
    fleet: tuple[VehicleType, ...] | None = None  # if vehicles differ; then `vehicles` counts them,
    # `capacity` is the largest of theirs, and `depot` that of the first
    _radians: Floats | None = field(init=False, default=None, repr=False)
    _symmetric: bool = field(init=False, default=True, repr=False)

    def __post_init__(self) -> None:
        def put(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        for name in ("name", "comment"):
            text_argument(name, getattr(self, name))
        put("metric", metric_argument(self.metric))
        if self.xy is not None:
            put("xy", frozen(coordinates(self.xy)))
        if (self.metric is Metric.EXPLICIT) != (self.matrix is not None):
            raise InstanceError("a distance matrix goes with metric EXPLICIT, and only with it")
        if self.matrix is not None:
            put("matrix", frozen(square_matrix("matrix", "distance", self.matrix)))
        elif self.xy is None:
            raise InstanceError("neither coordinates (xy) nor a distance matrix")
        if self.n < 1:
            raise InstanceError("an instance needs at least one node")
        if self.xy is not None and len(self.xy) != self.n:
            raise InstanceError(f"{len(self.xy)} coordinates for a matrix of {self.n} nodes")
        self._check_globe(put)
        if self.names is not None:
            put("names", node_names(self.names, self.n))
        self._check_magnitude()
        put("depot", whole_number("depot", self.depot))
        for name in ("max_distance", "max_duration"):
            if getattr(self, name) is not None:
                put(name, real_number(name, getattr(self, name), 0.0))
        self._check_fleet(put)
        self._check_times(put)
        self._check_demand(put)
        self._check_path(put)
        if self._has_times:
            refuse_impossible_times(self)
        put("fixed_edges", fixed_edges(fixed_pairs(self.fixed_edges), self.n))
        self._check_fixed()
        put("locks", a_locks(self.locks))
        self._check_locks()

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

    def _check_fleet(self, put: Any) -> None:
        if self.fleet is None:
            return
        if self.demand is None:
            raise InstanceError("a fleet given, but no demand")
        if self.locks is not None or self.fixed_edges:
            raise InstanceError("locks and fixed edges are for vehicles that are all alike")
        put("fleet", resolved_fleet(self.fleet, self))
        assert self.fleet is not None
        count = int(counts_of(self.fleet, self.n).sum())
        if self.vehicles not in (None, count):
            raise InstanceError(
                f"vehicles is {shown(self.vehicles)}, but the fleet has {count} of them"
            )
        put("vehicles", count)
        put("capacity", round(max(one.capacity or 0 for one in self.fleet) * self.demand_scale))
        put("depot", self.fleet[0].depot)

    def _check_demand(self, put: Any) -> None:
        if self.demand is None:
            if self.capacity is not None or self.vehicles is not None:
                raise InstanceError("capacity or vehicles given, but no demand")
            if self.max_distance is not None or np.any(self.service_time):
                raise InstanceError("route limits given, but no demand (depot and customers)")
            for name in ("durations", "windows", "release", "max_duration"):
                if getattr(self, name) is not None:
                    raise InstanceError(f"{name} given, but no demand: build it with drhg.vrp")
            if self.depot != 0:
                raise InstanceError("a depot given, but no demand")
            return
        demand = array_argument("demand", self.demand)
        if demand.shape != (self.n,):
            raise InstanceError(f"demand has shape {demand.shape}, expected ({self.n},)")
        whole = as_integers(demand)
        if whole is None:
            raise InstanceError("demand must be whole numbers (`cvrp` scales decimals)")
        if self.capacity is None:
            raise InstanceError("demand given, but no capacity")
        put("capacity", whole_number("capacity", self.capacity))
        put("demand_scale", whole_number("demand_scale", self.demand_scale))
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
        for depot in self.depots.tolist():
            if self.demand[depot] != 0:
                raise InstanceError(f"the depot, {from_zero(depot)}, has a demand")
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
            if total > self._room:
                size = "" if self.fleet else f" of capacity {self.capacity / self.demand_scale:g}"
                raise InstanceError(
                    f"total demand {total / self.demand_scale:g} exceeds {self.vehicles} vehicles"
                    f"{size or f', which carry {self._room / self.demand_scale:g} in all'}"
                )

    def _check_times(self, put: Any) -> None:
        n = self.n
        if not 0 <= self.depot < n:
            raise InstanceError(f"depot {self.depot} is not one of the nodes 0 .. {n - 1}")
        put("service_time", service_times(self.service_time, n, self.depots))
        if isinstance(self.service_time, np.ndarray):
            put("service_time", frozen(self.service_time))
        if self.durations is not None:
            times = square_matrix("durations", "travel time", self.durations).astype(np.float64)
            if len(times) != n:
                raise InstanceError(f"durations has shape {times.shape}, expected ({n}, {n})")
            put("durations", frozen(times))
        if self.windows is not None:
            put("windows", frozen(time_windows(self.windows, n)))
        if self.release is not None:
            put("release", frozen(release_times(self.release, n)))
        one_way = (self.matrix, self.durations)
        put("_symmetric", all(m is None or np.array_equal(m, m.T) for m in one_way))
        if not isinstance(self.returns, (bool, np.bool_)):
            raise InstanceError(f"returns must be True or False, not {shown(self.returns)}")
        put("returns", bool(self.returns))

    @property
    def _has_times(self) -> bool:
        given = (self.windows, self.release, self.max_duration, self.fleet)
        return isinstance(self.service_time, np.ndarray) or any(one is not None for one in given)

    def _check_path(self, put: Any) -> None:
        for name in ("start", "end"):
            node = getattr(self, name)
            if node is None:
                continue
            if self.is_cvrp:
                raise InstanceError(f"{name} is for a TSP; routes begin at the depot")
            put(name, whole_number(name, node))
            if not 0 <= getattr(self, name) < self.n:
                raise InstanceError(f"{name} {node} is not one of the nodes 0 .. {self.n - 1}")
            if self.returns:
                raise InstanceError(f"{name} given: a path does not return, set returns=False")
        if self.start is not None and self.start == self.end and self.n > 1:
            raise InstanceError(
                f"the path starts and ends at {self.called(self.start)}; that is a tour, which "
                "needs neither start nor end"
            )

    def _check_fixed(self) -> None:
        if not self.fixed_edges:
            return
        if not self.symmetric:
            raise InstanceError("fixed edges have no direction: the distances must be symmetric")
        if self.returns or self.is_cvrp:
            return
        at = np.bincount(np.ravel(self.fixed_edges), minlength=self.n)
        if len(self.fixed_edges) == self.n:
            raise InstanceError("the fixed edges close a tour, but a path is asked for")
        for name in ("start", "end"):
            node = getattr(self, name)
            if node is not None and at[node] > 1:
                raise InstanceError(f"{name}: {self.called(node)} has two fixed edges")
        if self.start is not None and self.end is not None and self._fixed_shortcut():
            raise InstanceError("the fixed edges lead from start to end, past the other nodes")

    def _check_locks(self) -> None:
        if self.locks is not None and not self.is_cvrp:
            raise InstanceError("locks are for routes; a tour may have fixed edges")
        if self.is_cvrp and (self.locks is not None or self.fixed_edges):
            resolve(self)  # refuses what contradicts itself

    def _fixed_shortcut(self) -> bool:
        """Whether fixed edges alone join the ends of the path without all other nodes."""
        links: dict[int, list[int]] = {}
        for a, b in self.fixed_edges:
            links.setdefault(a, []).append(b)
            links.setdefault(b, []).append(a)
        before, node, steps = None, self.start, 0
        while node is not None and node != self.end:
            following = [other for other in links.get(node, []) if other != before]
            before, node, steps = node, (following[0] if following else None), steps + 1
        return node == self.end and steps < self.n - 1

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
    def depots(self) -> Ints:
        """The nodes where vehicles start, in ascending order.

        >>> import drhg
        >>> two = [drhg.VehicleType(depot=0), drhg.VehicleType(depot=2)]
        >>> drhg.vrp(xy=[[0, 0], [0, 3], [4, 0]], vehicles=two).depots.tolist()
        [0, 2]
        """
        places = [self.depot] if self.fleet is None else [one.depot for one in self.fleet]
        return np.unique(np.array(places, np.int64))

    @property
    def customers(self) -> Ints:
        """All nodes but the depots."""
        return np.setdiff1d(np.arange(self.n), self.depots)

    @property
    def _room(self) -> int:
        """What all vehicles carry together."""
        assert self.capacity is not None
        assert self.vehicles is not None
        if self.fleet is None:
            return self.vehicles * self.capacity
        counts = counts_of(self.fleet, self.n).tolist()
        each = [round((one.capacity or 0) * self.demand_scale) for one in self.fleet]
        return sum(count * room for count, room in zip(counts, each, strict=True))

    @property
    def is_cvrp(self) -> bool:
        return self.demand is not None

    @property
    def problem(self) -> str:
        """'tsp', 'atsp', 'cvrp' or 'vrptw', for people; code branches on the fields."""
        if self.is_cvrp:
            return "cvrp" if self.windows is None else "vrptw"
        return "tsp" if self.symmetric else "atsp"

    @property
    def family(self) -> str:
        """'cvrp' for all that have a depot and routes, 'tsp' for one tour or path."""
        return "cvrp" if self.is_cvrp else "tsp"

    @property
    def symmetric(self) -> bool:
        """Whether every way is as long, and takes as long, as the way back."""
        return self._symmetric

    @property
    def rich(self) -> bool:
        """Whether this is more than a symmetric TSP or CVRP with closed routes.

        >>> import drhg
        >>> drhg.tsp([[0, 0], [0, 3]]).rich, drhg.tsp([[0, 0], [0, 3]], returns=False).rich
        (False, True)
        """
        return bool(variants_of(self))

    @property
    def services(self) -> Floats:
        """The service time of every node (n,), the depot's is 0."""
        if isinstance(self.service_time, np.ndarray):
            return self.service_time
        services = np.full(self.n, self.service_time)
        services[self.depots] = 0.0
        return services

    @property
    def common_service(self) -> float:
        """The service time of every customer; nan if they differ."""
        return np.nan if isinstance(self.service_time, np.ndarray) else self.service_time

    @property
    def opens(self) -> Floats:
        """The earliest start of service at every node (n,), 0 if there are no windows."""
        return np.zeros(self.n) if self.windows is None else self.windows[:, 0]

    @property
    def closes(self) -> Floats:
        """The latest start of service at every node (n,), infinite if there are no windows."""
        return np.full(self.n, np.inf) if self.windows is None else self.windows[:, 1]

    @property
    def integral(self) -> bool:
        """Whether every distance is a whole number, so that costs are integers."""
        if any(not isinstance(one.fixed_cost, int) for one in self.fleet or ()):
            return False
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

    def travel_time(self, i: npt.ArrayLike, j: npt.ArrayLike) -> Any:
        """Time from nodes to nodes; arrays broadcast. The distance, unless there are durations."""
        if self.durations is None:
            return self.distance(i, j)
        out = self.durations[np.asarray(i), np.asarray(j)]
        return out if out.ndim else float(out)

    def distance(self, i: npt.ArrayLike, j: npt.ArrayLike) -> Any:
        """Distance from nodes to nodes; arrays broadcast. Whole numbers are still float64 here."""
        a, b = np.asarray(i), np.asarray(j)
        if self.matrix is not None:
            out = self.matrix[a, b].astype(np.float64)
        else:
            points = self.xy if self._radians is None else self._radians
            assert points is not None
            p, q = points[a], points[b]
            out = np.where(a == b, 0.0, METRICS[self.metric](p, q))
        return out if out.ndim else float(out)


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return a is not None and b is not None and np.array_equal(a, b)
    return bool(a == b)

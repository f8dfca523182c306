"""Instances from arrays: `tsp`, `cvrp`, `vrp`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from drhg.errors import InstanceError
from drhg.problem.arguments import array_argument
from drhg.problem.fields import coordinates, fixed_pairs, whole_demand
from drhg.problem.fleet import VehicleType, a_fleet, whole_demands
from drhg.problem.instance import Instance
from drhg.problem.locks import Locks
from drhg.problem.metrics import Metric, metric_argument


def tsp(
    xy: npt.ArrayLike | None = None,
    *,
    matrix: npt.ArrayLike | None = None,
    metric: Metric | str = Metric.EXACT,
    fixed_edges: Iterable[Sequence[int]] = (),
    returns: bool | None = None,
    start: int | None = None,
    end: int | None = None,
    name: str = "tsp",
    names: Iterable[str] | None = None,
) -> Instance:
    """A travelling salesman problem from coordinates (n, 2) or a matrix (n, n) of distances.

    With metric GEO, coordinates are latitude and longitude as DDD.MM: degrees and minutes, so that
    12.75 degrees are 12.45; decimal degrees are refused where minutes show them. With metric
    HAVERSINE, they are latitude and longitude in decimal degrees, distances are metres along great
    circles of a sphere of radius 6371008.8 m. `names` are the nodes' own.

    A matrix holds the distance from its row's node to its column's and need not be symmetric. One
    with decimals that differs from its transpose by a relative 1e-9 at most is taken for symmetric
    with rounding noise: the mean of both is used.

    start, end: a path from one to the other, or, if only one is given, to or from any node.
    returns: False for a path; by default it is one if start or end is given.

    >>> import drhg
    >>> drhg.tsp([[0, 0], [0, 3], [4, 0]]).n
    3
    >>> path = drhg.tsp([[0, 0], [0, 3], [0, 9]], start=0)
    >>> drhg.cost(path, drhg.Solution([[0, 1, 2]]))
    9.0
    """
    return Instance(
        fixed_edges=fixed_pairs(fixed_edges),
        returns=(start is None and end is None) if returns is None else returns,
        start=start,
        end=end,
        **_places(xy, matrix, metric, name, names),
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
    fixed_edges: Iterable[Sequence[int]] = (),
    locks: Locks | None = None,
    name: str = "cvrp",
    names: Iterable[str] | None = None,
) -> Instance:
    """A capacitated vehicle routing problem; `demand` has one entry per node, the depot's is 0.

    Demand and capacity may be decimals of up to nine places. Coordinates, matrix and names are as
    in `tsp`. The service time of its customers counts against the `max_distance` of a route.
    Every plan keeps the `fixed_edges`, which join customers, and the `locks`.
    `vrp` has what is left out here: time windows, travel times, open routes.

    >>> import drhg
    >>> drhg.cvrp([[0, 0], [0, 1], [1, 0]], [0, 2, 3], capacity=4).problem
    'cvrp'
    """
    scaled, scaled_capacity, scale = whole_demand(demand, capacity)
    return Instance(
        demand=scaled,
        capacity=scaled_capacity,
        demand_scale=scale,
        depot=depot,
        vehicles=vehicles,
        max_distance=max_distance,
        service_time=service_time,
        fixed_edges=fixed_pairs(fixed_edges),
        locks=locks,
        **_places(xy, matrix, metric, name, names),
    )


def vrp(
    *,
    xy: npt.ArrayLike | None = None,
    matrix: npt.ArrayLike | None = None,
    durations: npt.ArrayLike | None = None,
    demand: npt.ArrayLike | None = None,
    capacity: float | None = None,
    windows: npt.ArrayLike | None = None,
    service_time: npt.ArrayLike = 0.0,
    release: npt.ArrayLike | None = None,
    depot: int = 0,
    vehicles: int | Iterable[VehicleType] | None = None,
    max_distance: float | None = None,
    max_duration: float | None = None,
    returns: bool = True,
    metric: Metric | str = Metric.EXACT,
    name: str = "vrp",
    names: Iterable[str] | None = None,
) -> Instance:
    """A vehicle routing problem with any of: time windows, travel times, releases, open routes.

    xy, matrix, metric, names: as in `tsp`; the matrix may be asymmetric. What is driven is the
        cost.
    durations: travel times (n, n) from row to column; by default a way takes as long as it is.
    demand, capacity, vehicles, depot: as in `cvrp`; without demand a route may serve everybody.
    windows: (n, 2), the earliest and the latest start of service; who comes early waits. The
        depot's row is the horizon: leave no earlier, be back no later.
    service_time: one number for all customers, or (n,) with 0 for the depot.
    release: (n,), when a customer's goods are at the depot: its route leaves no earlier.
    max_distance: of a route; service times count against it (CVRPLIB's rule).
    max_duration: of a route, from departure to return: travel, service and waiting. A route leaves
        as late as it must to wait as little as it can.
    returns: False for open routes: they end at their last customer.
    vehicles: how many there are, or a list of `drhg.VehicleType` if they differ in depot, capacity,
        cost, shift or limits. Every node where a type starts is a depot, and no customer. A plan
        then says which vehicle drives each route; they count from 1, type by type.

    Customers who cannot be served in time, however early a route leaves for them alone, are
    refused, all in one error.

    >>> import drhg
    >>> shops = drhg.vrp(xy=[[0, 0], [0, 3], [4, 0]], windows=[[0, 20], [5, 6], [0, 9]])
    >>> shops.problem, drhg.check(shops, drhg.Solution([[1, 2]]))
    ('vrptw', ['route 1 reaches node 2 (counted from 0) at 10, its window closes at 9'])
    >>> drhg.check(shops, drhg.Solution([[2, 1]]))
    ['route 1 reaches node 1 (counted from 0) at 9, its window closes at 6']
    """
    places = _places(xy, matrix, metric, name, names)
    fleet = None
    if vehicles is not None and not isinstance(vehicles, Real):
        fleet = a_fleet(vehicles)
    if demand is None:
        if capacity is not None or any(one.capacity is not None for one in fleet or ()):
            raise InstanceError("capacity given, but no demand")
        known = places["matrix"] if xy is None else places["xy"]
        if known is None:
            raise InstanceError("neither coordinates (xy) nor a distance matrix")
        demand, capacity = np.zeros(len(known), np.int64), 1
    loads = [one.capacity for one in fleet or () if one.capacity is not None]
    if capacity is None and not loads:
        raise InstanceError("demand given, but no capacity")
    scaled, scaled_capacity, scale = whole_demands(demand, capacity, loads)
    return Instance(
        demand=scaled,
        capacity=scaled_capacity,
        demand_scale=scale,
        depot=depot,
        vehicles=vehicles if fleet is None else None,  # type: ignore[arg-type]
        fleet=fleet,
        max_distance=max_distance,
        service_time=service_time,  # type: ignore[arg-type]
        durations=None if durations is None else array_argument("durations", durations),
        windows=None if windows is None else array_argument("windows", windows),
        release=None if release is None else array_argument("release", release),
        max_duration=max_duration,
        returns=returns,
        **places,
    )


def _places(
    xy: npt.ArrayLike | None,
    matrix: npt.ArrayLike | None,
    metric: Metric | str,
    name: str,
    names: Iterable[str] | None,
) -> dict[str, Any]:
    """The fields that say where the nodes are and what they are called."""
    return {
        "name": name,
        "metric": metric_argument(metric) if matrix is None else Metric.EXPLICIT,
        "xy": None if xy is None else coordinates(xy),
        "matrix": None if matrix is None else array_argument("matrix", matrix),
        "names": names,
    }

"""Kinds of vehicles: where they start, what they carry and cost, when they are out, how many."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from drhg.errors import InstanceError, SolutionError
from drhg.problem.arguments import (
    LARGEST_EXACT,
    Floats,
    Ints,
    array_argument,
    real_number,
    shown,
    text_argument,
    whole_number,
)
from drhg.problem.fields import whole_demand

if TYPE_CHECKING:
    from drhg.problem.instance import Instance
    from drhg.problem.solution import Solution


@dataclass(frozen=True, kw_only=True)
class VehicleType:
    """Vehicles that are alike, for `drhg.vrp(..., vehicles=[...])`.

    name: of the type in messages and tables; of several, `van` say, the first is 'van 1'.
    count: how many there are; None if there are enough.
    capacity: what one carries; None for the capacity of the instance.
    fixed_cost: what using one costs, in the unit of distances.
    depot: the node where it starts and, unless routes are open, ends; None for the instance's.
    shift: it leaves its depot no earlier and is back no later; None for the depot's window.
    max_distance, max_duration: of its route, beside those of the instance.

    >>> VehicleType(name="van", count=3, capacity=40, fixed_cost=100, shift=(0, 480)).shift
    (0.0, 480.0)
    """

    name: str = ""
    count: int | None = None
    capacity: float | None = None
    fixed_cost: float = 0.0
    depot: int | None = None
    shift: tuple[float, float] | None = None
    max_distance: float | None = None
    max_duration: float | None = None

    def __post_init__(self) -> None:
        def put(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        put("name", text_argument("name of a vehicle type", self.name).strip())
        for name, least in (("count", 1), ("depot", 0)):
            if getattr(self, name) is not None:
                put(name, whole_number(name, getattr(self, name), least))
        put("fixed_cost", _amount("fixed_cost", self.fixed_cost))
        for name in ("capacity", "max_distance", "max_duration"):
            if getattr(self, name) is not None:
                put(name, _amount(name, getattr(self, name)))
        if self.capacity is not None and not self.capacity > 0:
            raise InstanceError(f"capacity must be positive, not {shown(self.capacity)}")
        if self.shift is not None:
            put("shift", _shift(self.shift))


def _amount(name: str, value: Any) -> float:
    """A number from 0 that is exact; whole ones stay whole."""
    real = real_number(name, value, 0.0)
    if real >= LARGEST_EXACT:
        raise InstanceError(f"{name} is too large to be exact: {shown(value)}")
    return int(real) if real.is_integer() else real


def _shift(value: Any) -> tuple[float, float]:
    try:
        start, end = value
    except (TypeError, ValueError):
        raise InstanceError(f"shift must be two times, such as (0, 480), not {shown(value)}") from (
            None
        )
    start = real_number("the start of a shift", start)
    if not (isinstance(end, float) and end == np.inf):
        end = real_number("the end of a shift", end)
    if end < start:
        raise InstanceError(f"shift must not end before it starts, as {shown(value)} does")
    return start, end


def a_fleet(values: Any) -> tuple[VehicleType, ...]:
    """The argument as types of vehicles, or an error that says what is not one."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise InstanceError(
            f"vehicles must be a number or a list of drhg.VehicleType, not {shown(values)}"
        )
    found = tuple(values)
    for i, one in enumerate(found):
        if not isinstance(one, VehicleType):
            raise InstanceError(f"vehicles[{i}] must be a drhg.VehicleType, not {shown(one)}")
    if not found:
        raise InstanceError("vehicles must have at least one type")
    named = [one.name for one in found if one.name]
    if len(set(named)) < len(named):
        twice = next(name for name in named if named.count(name) > 1)
        raise InstanceError(f"two types of vehicles are called {twice!r}")
    for name in named:
        if name.isdigit() or (name.rpartition(" ")[0] in named and name.split()[-1].isdigit()):
            raise InstanceError(
                f"the name {name!r} of a vehicle type could be that of a vehicle; give it another"
            )
    return found


def whole_demands(
    demand: npt.ArrayLike, capacity: float | None, loads: list[float]
) -> tuple[Ints, int | None, int]:
    """As `whole_demand`, at a scale at which the capacities of all types are whole, too."""
    given = ([] if capacity is None else [capacity]) + loads
    values = array_argument("demand", demand)
    whole, most, scale = whole_demand(
        np.concatenate((values, given)) if values.ndim == 1 and loads else values, given[0]
    )
    return whole[: len(values)], None if capacity is None else most, scale


def resolved_fleet(values: Any, instance: Instance) -> tuple[VehicleType, ...]:
    """The types of an instance, each with its own depot and capacity."""
    found = []
    usual = None if instance.capacity is None else instance.capacity / instance.demand_scale
    for i, one in enumerate(a_fleet(values)):
        depot = instance.depot if one.depot is None else one.depot
        if not 0 <= depot < instance.n:
            raise InstanceError(
                f"vehicles[{i}]: depot {depot} is not one of the nodes 0 .. {instance.n - 1}"
            )
        capacity = usual if one.capacity is None else one.capacity
        if capacity is None:
            raise InstanceError(f"vehicles[{i}] has no capacity, and there is no common one")
        scaled = round(capacity * instance.demand_scale)
        if scaled / instance.demand_scale != capacity or scaled >= LARGEST_EXACT:
            raise InstanceError(
                f"vehicles[{i}]: capacity {capacity:g} is no multiple of "
                f"1/{instance.demand_scale}, as demands are (`vrp` scales decimals)"
            )
        found.append(replace(one, depot=depot, capacity=_amount("capacity", capacity)))
    return tuple(found)


class Kinds(NamedTuple):
    """The types of vehicles of an instance as arrays (K,); one, if all are alike."""

    depot: Ints
    capacity: Ints  # in the instance's scaled units
    opens: Floats  # the depot's window and the shift: it leaves no earlier,
    closes: Floats  # and is back no later
    max_distance: Floats  # inf if there is no limit
    max_duration: Floats
    fixed: Floats
    number: Ints  # how many there are

    @property
    def timed(self) -> bool:
        """Whether any of them must be back in time."""
        return bool(np.isfinite(self.closes).any() or np.isfinite(self.max_duration).any())


def kinds_of(instance: Instance) -> Kinds:
    """The types of vehicles of an instance with all that limits them."""
    assert instance.capacity is not None
    fleet = instance.fleet or (
        VehicleType(
            count=instance.vehicles, capacity=instance.capacity / instance.demand_scale,
            depot=instance.depot,
        ),
    )  # fmt: skip
    depot = np.array([one.depot for one in fleet], np.int64)
    capacity = [round((one.capacity or 0) * instance.demand_scale) for one in fleet]
    shifts = np.array([one.shift or (-np.inf, np.inf) for one in fleet])

    def least(name: str) -> Floats:
        limits = [getattr(one, name) for one in (instance, *fleet)]
        common, *own = (np.inf if limit is None else limit for limit in limits)
        return np.minimum(common, np.array(own, np.float64))

    return Kinds(
        depot=depot,
        capacity=np.array(capacity, np.int64),
        opens=np.maximum(shifts[:, 0], instance.opens[depot]),
        closes=np.minimum(shifts[:, 1], instance.closes[depot]),
        max_distance=least("max_distance"),
        max_duration=least("max_duration"),
        fixed=np.array([one.fixed_cost for one in fleet], np.float64),
        number=counts_of(fleet, instance.n),
    )


def counts_of(fleet: tuple[VehicleType, ...], n: int) -> Ints:
    """How many vehicles of each type there are: as many as nodes, where there are enough."""
    return np.array([n if one.count is None else one.count for one in fleet], np.int64)


def kinds_of_routes(instance: Instance, solution: Solution) -> Ints:
    """The place in the fleet of the vehicle of every route; 0 where all are alike."""
    if instance.fleet is None:
        return np.zeros(len(solution.routes), np.int64)
    if solution.vehicles is None and len(solution.routes):
        raise SolutionError("the plan does not say which vehicle drives which route")
    last = np.cumsum(counts_of(instance.fleet, instance.n))
    vehicles = np.array(solution.vehicles or (), np.int64)
    for r in np.flatnonzero(vehicles > last[-1]):
        raise SolutionError(
            f"vehicle {vehicles[r]} drives route {r + 1}, but there are only {last[-1]}"
        )
    return np.searchsorted(last, vehicles, side="left")


def depots_of_routes(instance: Instance, solution: Solution) -> Ints:
    """The depot of every route of a plan."""
    return kinds_of(instance).depot[kinds_of_routes(instance, solution)]


def vehicle_called(instance: Instance, vehicle: int) -> str:
    """The name of a vehicle, which is its number where its type has none.

    >>> import drhg
    >>> fleet = [VehicleType(name="van", count=2), VehicleType(name="truck", count=1)]
    >>> town = drhg.vrp(xy=[[0, 0], [0, 1]], vehicles=fleet)
    >>> [vehicle_called(town, vehicle) for vehicle in (1, 2, 3)]
    ['van 1', 'van 2', 'truck']
    """
    before = 0
    for one, count in _counted(instance):
        if one.name and before < vehicle <= before + count:
            return one.name if one.count == 1 else f"{one.name} {vehicle - before}"
        before += count
    return str(vehicle)


def vehicle_numbers(instance: Instance) -> dict[str, int]:
    """The vehicles that have a name, by that name."""
    found: dict[str, int] = {}
    before = 0
    for one, count in _counted(instance):
        if one.name and one.count == 1:
            found[one.name] = before + 1
        elif one.name:
            found |= {f"{one.name} {i}": before + i for i in range(1, count + 1)}
        before += count
    return found


def _counted(instance: Instance) -> list[tuple[VehicleType, int]]:
    fleet = instance.fleet or ()
    return list(zip(fleet, counts_of(fleet, instance.n).tolist(), strict=True))


def numbers_of_kinds(instance: Instance, kinds: npt.NDArray[Any]) -> list[int]:
    """Vehicles for routes, given their kinds: the first ones of each type."""
    assert instance.fleet is not None
    counts = counts_of(instance.fleet, instance.n)
    following = np.cumsum(counts) - counts
    vehicles = []
    for kind in kinds.tolist():
        following[kind] += 1
        vehicles.append(int(following[kind]))
    return vehicles

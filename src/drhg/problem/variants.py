"""What a problem asks beyond the symmetric CVRP and TSP, and whether anything can answer it.

Time windows, travel and service times, release times, open routes and paths are fields of an
`Instance`. Here they are checked and named.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from drhg.errors import InstanceError
from drhg.problem.arguments import LARGEST_EXACT, Floats, Ints, array_argument, real_number, shown
from drhg.problem.fleet import Kinds, kinds_of
from drhg.problem.tolerances import CHECK_SLACK

if TYPE_CHECKING:
    from drhg.problem.instance import Instance

Flags: TypeAlias = npt.NDArray[np.bool_]

SHOWN = 20  # faults that one error names

VARIANTS = {
    "asymmetric": "asymmetric distances",
    "durations": "travel times of their own",
    "services": "service times that differ",
    "windows": "time windows",
    "release": "release times",
    "max_duration": "a limit on the duration of routes",
    "open": "open routes",
    "path": "paths",
    "fixed": "fixed edges of routes",
    "locks": "locks",
    "fleet": "several depots or types of vehicles",
}


def variants_of(instance: Instance) -> list[str]:
    """The keys of `VARIANTS` that an instance asks for.

    >>> import drhg
    >>> variants_of(drhg.tsp([[0, 0], [0, 1], [1, 0]], returns=False))
    ['path']
    """
    asked = {
        "asymmetric": not instance.symmetric,
        "durations": instance.durations is not None,
        "services": isinstance(instance.service_time, np.ndarray),
        "windows": instance.windows is not None,
        "release": instance.release is not None,
        "max_duration": instance.max_duration is not None,
        "open": instance.is_cvrp and not instance.returns,
        "path": not instance.is_cvrp and not instance.returns,
        "fixed": instance.is_cvrp and bool(instance.fixed_edges),
        "locks": instance.locks is not None,
        "fleet": instance.fleet is not None,
    }
    return [name for name, present in asked.items() if present]


def not_known(who: str, instance: Instance, known: Collection[str] = ()) -> str | None:
    """What an instance asks for beyond these variants, in words, or None.

    >>> import drhg
    >>> not_known("Regions", drhg.tsp([[0, 0], [0, 1], [1, 0]], returns=False))
    'Regions does not know paths'
    """
    *some, last = [VARIANTS[v] for v in variants_of(instance) if v not in known] or [""]
    if not last:
        return None
    return f"{who} does not know {', '.join(some)}{' and ' if some else ''}{last}"


# --- fields as they are given ---------------------------------------------------------------------


def service_times(values: Any, n: int, depots: Ints) -> float | Floats:
    """One number if all customers have the same, else an array (n,), negative ones included."""
    try:
        is_array = np.ndim(values) > 0
    except (TypeError, ValueError):  # a list of lists of unequal length
        is_array = True
    if not is_array:
        return real_number("service_time", values, 0.0)
    services = _numbers("service_time", values, (n,))
    for service in services[depots]:
        if service != 0.0:
            raise InstanceError(f"service_time of the depot must be 0, not {service:g}")
    others = np.delete(services, depots)
    if len(others) and others[0] >= 0.0 and (others == others[0]).all():
        return float(others[0])
    return services if len(others) else 0.0


def time_windows(values: Any, n: int) -> Floats:
    """Windows (n, 2); the end of one may be infinite."""
    windows = _numbers("windows", values, (n, 2), infinite=True)
    if not np.isfinite(windows[:, 0]).all() or (windows[:, 1] == -np.inf).any():
        raise InstanceError("windows must open at a finite time; only their end may be infinite")
    return windows


def release_times(values: Any, n: int) -> Floats:
    return _numbers("release", values, (n,))


def _numbers(name: str, values: Any, shape: tuple[int, ...], *, infinite: bool = False) -> Floats:
    array = array_argument(name, values)
    if array.shape != shape:
        raise InstanceError(f"{name} has shape {array.shape}, expected {shape}")
    try:
        numbers = array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InstanceError(f"{name} must be an array of numbers, not {shown(values)}") from None
    usable = ~np.isnan(numbers) if infinite else np.isfinite(numbers)
    usable &= (np.abs(numbers) < LARGEST_EXACT) | np.isinf(numbers)
    if not usable.all():
        at = np.argwhere(~usable)[0]
        raise InstanceError(
            f"{name}[{', '.join(map(str, at))}] must be a number, not {numbers[tuple(at)]}"
        )
    return numbers


# --- what cannot be answered ----------------------------------------------------------------------


def refuse_impossible_times(instance: Instance) -> None:
    """One error that names every customer who cannot be served in time, even alone."""
    found = list(_impossible(instance))
    if not found:
        return
    more = f" (and {len(found) - SHOWN} more)" if len(found) > SHOWN else ""
    raise InstanceError("; ".join(found[:SHOWN]) + more)


def _impossible(instance: Instance) -> Iterator[str]:
    """For every node the first reason why it cannot be served."""
    depots, services = instance.depots, instance.services
    bad = services < 0.0
    for i in np.flatnonzero(bad):
        yield f"{instance.called(i)} has the negative service_time {services[i]:g}"
    release = np.zeros(instance.n) if instance.release is None else instance.release
    for i in np.flatnonzero(release < 0.0):
        yield f"{instance.called(i)} has the negative release {release[i]:g}"
    if (release[depots] > 0.0).any():
        yield "release of the depot must be 0: only customers wait for what is released"
    opens, closes = instance.opens, instance.closes
    for i in np.flatnonzero(opens > closes):
        yield f"{instance.called(i)} has a window that opens at {opens[i]:g} and closes at " + (
            f"{closes[i]:g}"
        )
    bad |= (opens > closes) | (release < 0.0)
    if bad[depots].any():
        return
    kinds = kinds_of(instance)
    if instance.fleet is None:
        yield from _beyond_reach(instance, kinds, 0, bad).values()
        return
    outside = [k for k in range(len(kinds.depot)) if kinds.opens[k] > kinds.closes[k]]
    for k in outside:
        yield f"the shift of vehicles[{k}] lies outside the window of its depot"
    if outside:
        return
    reasons = [_beyond_reach(instance, kinds, k, bad) for k in range(len(kinds.depot))]
    for i in [i for i in instance.customers.tolist() if all(i in reason for reason in reasons)]:
        yield f"no vehicle can serve {instance.called(i)}; of the first, {reasons[0][i]}"


def _beyond_reach(instance: Instance, kinds: Kinds, k: int, bad: Flags) -> dict[int, str]:
    """The customers whom vehicles of a kind cannot serve, each with the first reason."""
    opens, closes, services = instance.opens, instance.closes, instance.services
    release = np.zeros(instance.n) if instance.release is None else instance.release
    depot, starts, ends = int(kinds.depot[k]), kinds.opens[k], kinds.closes[k]
    what = "the depot's window" if instance.fleet is None else "its hours"
    horizon = f"{what}, {starts:g} to {ends:g}"
    found: dict[int, str] = {}
    asked = ~bad
    asked[instance.depots] = False

    def note(late: Flags, reason: Callable[[int], str]) -> None:
        found.update({i: reason(i) for i in np.flatnonzero(late & asked).tolist()})
        asked[late] = False

    called = instance.called
    if instance.fleet is not None:
        demand = instance.demand
        assert demand is not None
        room, scale = kinds.capacity[k], instance.demand_scale
        note(
            demand > room,
            lambda i: f"{called(i)} demands {demand[i] / scale:g}, more than its {room / scale:g}",
        )
    note(
        (closes < starts) | (opens > ends),
        lambda i: f"{called(i)} has a window, {opens[i]:g} to {closes[i]:g}, outside {horizon}",
    )
    note(
        beyond(release, ends),
        lambda i: f"{called(i)} has the release {release[i]:g}, beyond {horizon}",
    )
    leaves = np.maximum(starts, release)
    there = instance.travel_time(depot, np.arange(instance.n))
    note(
        beyond(leaves + there, closes),
        lambda i: (
            f"{called(i)} cannot be reached before {leaves[i] + there[i]:g}, its window "
            f"closes at {closes[i]:g}"
        ),
    )
    back = np.zeros(instance.n)
    if instance.returns:
        back = instance.travel_time(np.arange(instance.n), depot)
        done = np.maximum(leaves + there, opens) + services + back
        note(
            beyond(done, ends),
            lambda i: (
                f"from {called(i)} the depot cannot be reached before {done[i]:g}, it closes "
                f"at {ends:g}"
            ),
        )
    longest = kinds.max_duration[k]
    alone = there + services + back
    note(
        beyond(alone, longest),
        lambda i: f"a route to {called(i)} alone takes {alone[i]:g}, max_duration is {longest:g}",
    )
    return found


def beyond(times: Floats, limits: Floats | float) -> Any:
    """Which times are later than a limit by more than rounding."""
    with np.errstate(invalid="ignore"):
        return times > limits + CHECK_SLACK * np.maximum(1.0, np.abs(limits))

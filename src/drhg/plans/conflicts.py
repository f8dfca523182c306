"""Why an instance has no solution: a small set of customers that cannot be served together.

What is found is a proof. Nothing found proves nothing: that a packing exists is a hard question.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from drhg.kernels.jit import kernel
from drhg.kernels.space import Space, distance, space_of
from drhg.problem import Floats, Instance, Ints, Metric
from drhg.problem.tolerances import CHECK_SLACK

# Distances that are rounded to the nearest whole number need not keep the triangle inequality.
TRIANGLES = (Metric.EXACT, Metric.HAVERSINE, Metric.CEIL_2D, Metric.ATT)


@dataclass(frozen=True)
class Conflict:
    """Customers that no plan can serve together, the limit in the way, and why in a sentence."""

    customers: tuple[int, ...]
    limit: str  # "capacity", "max_distance" or "vehicles"
    reason: str


def find_conflict(instance: Instance) -> Conflict | None:
    """A small set of customers that cannot be served together, or None if none was found.

    >>> import drhg
    >>> xy = [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> task = drhg.cvrp(xy, [0, 6, 6, 6], capacity=10, vehicles=2)
    >>> find_conflict(task).reason
    'no two of nodes 1, 2 and 3 (counted from 0) fit in one route, but there are only 2 vehicles'
    """
    if instance.demand is None:
        return None
    return _too_far(instance) or _one_vehicle_each(instance) or _packing(instance)


def _too_far(instance: Instance) -> Conflict | None:
    """A customer that a vehicle cannot visit alone."""
    if instance.max_distance is None:
        return None
    alone = 2.0 * _least_distances(instance, instance.depot) + instance.service_time
    alone[instance.depot] = 0.0
    worst = int(np.argmax(alone))
    if alone[worst] <= _limit(instance):
        return None
    return Conflict(
        (worst,), "max_distance",
        f"{instance.called(worst)} alone needs a route of {alone[worst]:g}, allowed is "
        f"{instance.max_distance:g}",
    )  # fmt: skip


def _limit(instance: Instance) -> float:
    return np.inf if instance.max_distance is None else instance.max_distance * (1 + CHECK_SLACK)


def _least_distances(instance: Instance, node: int) -> Floats:
    """How far all nodes are from one at the least, whatever lies between."""
    everyone = np.arange(instance.n)
    if instance.metric in TRIANGLES:
        return np.asarray(instance.distance(node, everyone), np.float64)
    found: Floats = _shortest_paths(space_of(instance), node, instance.n)
    return found


@kernel
def _shortest_paths(space: Space, start: int, n: int) -> Floats:
    """Dijkstra's algorithm on the complete graph."""
    far = np.full(n, np.inf)
    done = np.zeros(n, np.bool_)
    far[start] = 0.0
    for _ in range(n):
        here = -1
        for i in range(n):
            if not done[i] and (here < 0 or far[i] < far[here]):
                here = i
        done[here] = True
        for i in range(n):
            if not done[i]:
                far[i] = min(far[i], far[here] + distance(space, here, i))
    return far


def _one_vehicle_each(instance: Instance) -> Conflict | None:
    """One customer more than vehicles, no two of which fit in one route (greedily looked for)."""
    demand, fleet = instance.demand, instance.vehicles
    assert demand is not None
    assert instance.capacity is not None
    if fleet is None:
        return None
    out = _least_distances(instance, instance.depot)
    for key in (demand.astype(np.float64), out):
        free = np.ones(instance.n, bool)
        free[instance.depot] = False
        chosen: list[int] = []
        while free.any() and len(chosen) <= fleet:
            one = int(np.argmax(np.where(free, key, -1.0)))
            chosen.append(one)
            ring = out[one] + _least_distances(instance, one) + out + 2 * instance.service_time
            free &= (demand + demand[one] > instance.capacity) | (ring > _limit(instance))
            free[one] = False
        if len(chosen) > fleet:
            return _apart(instance, chosen)
    return None


def _apart(instance: Instance, chosen: list[int]) -> Conflict:
    assert instance.demand is not None
    assert instance.capacity is not None
    chosen = sorted(chosen)
    if len(chosen) == 1:  # of no vehicle at all: an instance has at least one
        raise AssertionError("a fleet without a vehicle")
    least = np.sort(instance.demand[chosen])
    by_load = int(least[0] + least[1]) > instance.capacity
    who = instance.called(*chosen) if len(chosen) <= 12 else f"these {len(chosen)} customers"
    count = f"{instance.vehicles} vehicle{'s' * (instance.vehicles != 1)}"
    return Conflict(
        tuple(chosen), "capacity" if by_load else "max_distance",
        f"no two of {who} fit in one route, but there are only {count}",
    )  # fmt: skip


def _packing(instance: Instance) -> Conflict | None:
    """Customers whose demands alone do not fit, as few as leaving out one by one leads to."""
    demand, capacity, fleet = instance.demand, instance.capacity, instance.vehicles
    assert demand is not None
    assert capacity is not None
    if fleet is None:
        return None
    kept = np.flatnonzero(demand > 0)
    kept = kept[np.argsort(demand[kept], kind="stable")]  # small ones go first
    if vehicles_needed(demand[kept], capacity) <= fleet:
        return None
    step = max(1, len(kept) // 2)
    while True:  # a deletion filter that begins with large bites
        at = 0
        while at < len(kept):
            less = np.delete(kept, slice(at, at + step))
            if vehicles_needed(demand[less], capacity) > fleet:
                kept = less
            else:
                at += step
        if step == 1:
            break
        step = max(1, step // 2)
    chosen = tuple(sorted(kept.tolist()))
    who = instance.called(*chosen) if len(chosen) <= 12 else f"{len(chosen)} customers"
    needed = vehicles_needed(demand[kept], capacity)
    return Conflict(
        chosen, "capacity",
        f"the demands of {who} need {needed} vehicles of capacity "
        f"{capacity / instance.demand_scale:g}, but there are only {fleet}",
    )  # fmt: skip


def vehicles_needed(demand: Ints, capacity: int) -> int:
    """A lower bound on the vehicles that such demands need (L2 of Martello and Toth, 1990).

    Demands above half a vehicle need one each. For every threshold, those that do not even leave
    room for so much cannot be joined by any of at least that size; the rest fills up the others.

    >>> vehicles_needed(np.array([6, 6, 6]), 10)
    3
    """
    sizes = np.sort(demand)
    if not len(sizes):
        return 0
    sums = np.concatenate(([0], np.cumsum(sizes)))
    half = int(np.searchsorted(2 * sizes, capacity, side="right"))  # the first above half
    low = np.concatenate(([0], np.unique(sizes[:half])))  # thresholds
    begin = np.searchsorted(sizes, low, side="left")
    huge = np.searchsorted(sizes, capacity - low, side="right")  # the first that nothing joins
    huge = np.maximum(huge, half)
    large = huge - half
    room = large * capacity - (sums[huge] - sums[half])
    small = np.maximum(0, sums[half] - sums[begin] - room)
    return int((len(sizes) - half + -(-small // capacity)).max())

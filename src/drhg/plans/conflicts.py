"""Why an instance has no solution: a small set of customers that cannot be served together.

What is found is a proof. Nothing found proves nothing: that a packing exists is a hard question.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from drhg.hypergraph.plan import Flags
from drhg.kernels.jit import kernel
from drhg.kernels.space import EXPLICIT, Space, distance, space_of
from drhg.problem import Floats, Instance, Ints, Metric
from drhg.problem.tolerances import CHECK_SLACK
from drhg.problem.variants import beyond

# Distances that are rounded to the nearest whole number need not keep the triangle inequality.
TRIANGLES = (Metric.EXACT, Metric.HAVERSINE, Metric.CEIL_2D, Metric.ATT)


@dataclass(frozen=True)
class Conflict:
    """Customers that no plan can serve together, the limit in the way, and why in a sentence."""

    customers: tuple[int, ...]
    limit: str  # "capacity", "max_distance", "windows", "max_duration", or several
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
    alone = _least(instance, instance.depot) + _home(instance) + instance.services
    alone[instance.depot] = 0.0
    worst = int(np.argmax(alone))
    if alone[worst] <= _limit(instance.max_distance):
        return None
    return Conflict(
        (worst,), "max_distance",
        f"{instance.called(worst)} alone needs a route of {alone[worst]:g}, allowed is "
        f"{instance.max_distance:g}",
    )  # fmt: skip


def _limit(most: float | None) -> float:
    return np.inf if most is None else most + CHECK_SLACK * max(1.0, abs(most))


def _home(instance: Instance, times: bool = False) -> Floats:
    """The least ways back to the depot, which open routes do without."""
    if not instance.returns:
        return np.zeros(instance.n)
    return _least(instance, instance.depot, times, to=True)


def _least(instance: Instance, node: int, times: bool = False, *, to: bool = False) -> Floats:
    """How far all nodes are from one (or it from them) at the least, whatever lies between."""
    everyone = np.arange(instance.n)
    if instance.metric in TRIANGLES and not (times and instance.durations is not None):
        return np.asarray(instance.distance(node, everyone), np.float64)
    space = space_of(instance)
    if times and instance.durations is not None:
        space = space._replace(metric=EXPLICIT, matrix=instance.durations.copy())
    if to and space.metric == EXPLICIT:
        space = space._replace(matrix=np.array(space.matrix.T, order="C"))
    found: Floats = _shortest_paths(space, node, instance.n)
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


class _Pairs:
    """Which customers no route can visit both, and the limits in the way."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._timed = instance.windows is not None or instance.max_duration is not None
        depot = instance.depot
        self.out, self._back = _least(instance, depot), _home(instance)
        if self._timed:
            self._there, self._home = _least(instance, depot, times=True), _home(instance, True)

    def apart_from(self, one: int) -> dict[str, Flags]:
        """For every limit the customers that cannot be with this one because of it."""
        instance = self._instance
        demand, both = instance.demand, instance.services + instance.services[one]
        assert demand is not None
        assert instance.capacity is not None
        found = {"capacity": demand + demand[one] > instance.capacity}
        if instance.max_distance is not None:
            after = self.out[one] + _least(instance, one) + self._back
            before = self.out + _least(instance, one, to=True) + self._back[one]
            ring = np.minimum(after, before) + both
            found["max_distance"] = ring > _limit(instance.max_distance)
        if self._timed:
            everyone, here = np.arange(instance.n), np.full(instance.n, one)
            after, before = (
                _least(instance, one, times=True, to=to) for to in (False, True)
            )  # fmt: skip
            late = self._late(here, everyone, after) & self._late(everyone, here, before)
            found["windows"] = late
            if instance.max_duration is not None:
                round_trip = np.minimum(
                    self._there[one] + after + self._home, self._there + before + self._home[one]
                )
                found["max_duration"] = round_trip + both > _limit(instance.max_duration)
        return found

    def _late(self, a: Ints, b: Ints, way: Floats) -> Flags:
        """Whether a vehicle that visits b some time after a is late there, or home."""
        instance = self._instance
        opens, closes, services = instance.opens, instance.closes, instance.services
        leaves = np.full(instance.n, opens[instance.depot])
        if instance.release is not None:
            leaves = np.maximum(leaves, np.maximum(instance.release[a], instance.release[b]))
        begin = np.maximum(opens[a], leaves + self._there[a])
        late = beyond(begin, closes[a])
        begin = np.maximum(opens[b], begin + services[a] + way)
        late |= beyond(begin, closes[b])
        if instance.returns:
            late |= beyond(begin + services[b] + self._home[b], closes[instance.depot])
        return np.asarray(late, np.bool_)


def _one_vehicle_each(instance: Instance) -> Conflict | None:
    """One customer more than vehicles, no two of which fit in one route (greedily looked for)."""
    demand, fleet = instance.demand, instance.vehicles
    assert demand is not None
    if fleet is None:
        return None
    pairs = _Pairs(instance)
    for key in (demand.astype(np.float64), pairs.out):
        free = np.ones(instance.n, bool)
        free[instance.depot] = False
        chosen: dict[int, dict[str, Flags]] = {}
        while free.any() and len(chosen) <= fleet:
            one = int(np.argmax(np.where(free, key, -1.0)))
            chosen[one] = pairs.apart_from(one)
            free &= np.any(list(chosen[one].values()), axis=0)
            free[one] = False
        if len(chosen) > fleet:
            return _apart(instance, chosen)
    return None


def _apart(instance: Instance, chosen: dict[int, dict[str, Flags]]) -> Conflict:
    nodes = sorted(chosen)
    if len(nodes) == 1:  # of no vehicle at all: an instance has at least one
        raise AssertionError("a fleet without a vehicle")
    others = ~np.eye(len(nodes), dtype=bool)
    limits = []
    for limit in chosen[nodes[0]]:
        broken = np.array([chosen[one][limit][nodes] for one in nodes])[others]
        if broken.all():  # this limit alone is enough
            limits = [limit]
            break
        if broken.any():
            limits.append(limit)
    who = instance.called(*nodes) if len(nodes) <= 12 else f"these {len(nodes)} customers"
    count = f"{instance.vehicles} vehicle{'s' * (instance.vehicles != 1)}"
    return Conflict(
        tuple(nodes), " and ".join(limits),
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

"""What has changed between a plan and the problem that it is to serve now."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from drhg.errors import InstanceError
from drhg.problem import (
    Floats,
    Instance,
    Ints,
    Locks,
    Solution,
    from_zero,
    shown,
    whole_number,
)


@dataclass(frozen=True)
class Changes:
    """What is new, in the numbers of the new instance; `removed` by its old name or number."""

    added: tuple[int, ...]
    removed: tuple[str, ...]
    moved: tuple[int, ...]  # other coordinates; known only if the old instance is
    demand: tuple[int, ...]  # other demand; likewise
    times: tuple[int, ...]  # another window, service or release time; likewise
    lost: tuple[int, ...]  # vehicles

    def summary(self) -> str:
        """In a few words.

        >>> Changes((4, 5), ("a",), (), (), (), (2,)).summary()
        '2 added, 1 removed, vehicle 2 lost'
        """
        counts = [
            (len(self.added), "added"), (len(self.removed), "removed"),
            (len(self.moved), "moved"), (len(self.demand), "with another demand"),
            (len(self.times), "with other times"),
        ]  # fmt: skip
        words = [f"{count:,} {what}" for count, what in counts if count]
        words += [f"vehicle {vehicle} lost" for vehicle in self.lost]
        return ", ".join(words) or "nothing has changed"


@dataclass(frozen=True)
class Inherited:
    """An old plan in the numbers of the new instance: what of it is left, route by route."""

    routes: tuple[Ints, ...]  # may be empty
    vehicles: tuple[int, ...]  # of each route, from 1
    torn: frozenset[int]  # routes that lost a stop, or have one that has changed
    gaps: tuple[Ints, ...]  # of each route: the positions before which stops have left it
    number: Ints  # the new number of every old node, -1 where it is gone
    changes: Changes


def under_way(
    old: Solution, left: Inherited, instance: Instance, driven: Any, frozen: Any
) -> Instance:
    """The instance with locks on what vehicles have behind them, and on routes that stay.

    driven: how many stops of the old plan each of some vehicles has visited.
    frozen: vehicles whose routes stay as they are, but for stops that are gone.
    """
    counts = {
        whole_number("a vehicle of driven", vehicle, 1): whole_number("stops of driven", count, 0)
        for vehicle, count in dict(driven or {}).items()
    }
    stay = {whole_number("a frozen vehicle", vehicle, 1) for vehicle in frozen}
    if (counts or stay) and not instance.is_cvrp:
        raise InstanceError("driven and frozen are for routes, and this is a TSP")
    routes = dict(zip(left.vehicles, old.routes, strict=True))
    for word, vehicles in (("driven", set(counts)), ("frozen", stay)):
        for vehicle in sorted(vehicles - set(routes)):
            raise InstanceError(f"{word}: the old plan has no vehicle {vehicle}")
    for vehicle, count in counts.items():
        if count > len(routes[vehicle]):
            raise InstanceError(
                f"driven: vehicle {vehicle} has {len(routes[vehicle])} stops, not {count}"
            )

    def still(nodes: Ints) -> tuple[int, ...]:
        now = left.number[nodes]
        return tuple(now[now >= 0].tolist())

    given = instance.locks or Locks()
    behind = tuple((v, still(routes[v][:count])) for v, count in counts.items())
    held = tuple((v, still(routes[v])) for v in stay)
    locks = replace(given, driven=(*given.driven, *behind), frozen=(*given.frozen, *held))
    return replace(instance, locks=locks) if counts or stay else instance


def inherited(
    old: Solution,
    new: Instance,
    old_instance: Instance | None = None,
    lost: Iterable[int] = (),
    names: Sequence[str] | None = None,
) -> Inherited:
    """Match an old plan with a new instance: by names if both have them, else by numbers.

    `names` are those of the old nodes if the old instance is not known.
    """
    if names is None and old_instance is not None:
        names = old_instance.names
    number = _numbers(old, new, names)
    vehicles = old.vehicles or tuple(range(1, len(old.routes) + 1))
    gone = _lost(vehicles, lost)
    routes, torn, removed, gaps = [], set(), [], []
    for r, route in enumerate(old.routes):
        now = number[route]
        removed += [str(i) if names is None else names[i] for i in route[now < 0].tolist()]
        if (now < 0).any():
            torn.add(r)
        gaps.append(np.unique(np.cumsum(now >= 0)[now < 0]).astype(np.int64))
        routes.append(now[now >= 0] if vehicles[r] not in gone else now[:0])
        if vehicles[r] in gone:
            torn.add(r)
    visited = np.zeros(new.n, bool)
    for route in old.routes:
        now = number[route]
        visited[now[now >= 0]] = True
    if new.is_cvrp:
        visited[new.depot] = True
    moved, demand, times = _altered(new, old_instance, number)
    altered = np.zeros(new.n, bool)
    altered[[*moved, *demand, *times]] = True
    torn |= {r for r, route in enumerate(routes) if altered[route].any()}
    added = np.flatnonzero(~visited)
    changes = Changes(
        tuple(added.tolist()), tuple(removed), tuple(moved), tuple(demand), tuple(times),
        tuple(sorted(gone)),
    )  # fmt: skip
    return Inherited(tuple(routes), vehicles, frozenset(torn), tuple(gaps), number, changes)


def _numbers(old: Solution, new: Instance, names: Sequence[str] | None) -> Ints:
    """The new number of every old node, -1 where it is gone."""
    highest = max((int(route.max()) for route in old.routes), default=-1)
    least = min((int(route.min()) for route in old.routes), default=0)
    if least < 0 or (names is not None and highest >= len(names)):
        raise InstanceError(
            f"the old plan names {from_zero(least if least < 0 else highest)}, which did not exist"
        )
    if names is not None and new.names is not None:
        place = {name: i for i, name in enumerate(new.names)}
        number = np.array([place.get(name, -1) for name in names], np.int64)
    else:
        count = highest + 1 if names is None else len(names)
        number = np.where(np.arange(count) < new.n, np.arange(count), -1)
    if new.is_cvrp:
        number[number == new.depot] = -1
    return number


def _lost(vehicles: tuple[int, ...], lost: Iterable[int]) -> set[int]:
    gone = {whole_number("a lost vehicle", vehicle, 1) for vehicle in lost}
    for vehicle in sorted(gone - set(vehicles)):
        raise InstanceError(f"lost: the old plan has no vehicle {shown(vehicle)}")
    return gone


def _altered(
    new: Instance, old: Instance | None, number: Ints
) -> tuple[list[int], list[int], list[int]]:
    """Nodes at another place, nodes with another demand, and with other times; no node twice."""
    if old is None:
        return [], [], []
    kept = np.flatnonzero(number[: old.n] >= 0)
    now = number[kept]
    moved = np.zeros(len(kept), bool)
    if old.xy is not None and new.xy is not None:
        moved = (old.xy[kept] != new.xy[now]).any(axis=1)
    demand, times = np.zeros(len(kept), bool), np.zeros(len(kept), bool)
    if old.demand is not None and new.demand is not None:
        was = old.demand[kept] * new.demand_scale
        demand = (was != new.demand[now] * old.demand_scale) & ~moved
        times = (_times(old)[kept] != _times(new)[now]).any(axis=1) & ~moved & ~demand
    return now[moved].tolist(), now[demand].tolist(), now[times].tolist()


def _times(instance: Instance) -> Floats:
    """Window, service and release of all nodes (n, 4)."""
    release = np.zeros(instance.n) if instance.release is None else instance.release
    return np.stack((instance.opens, instance.closes, instance.services, release), axis=1)

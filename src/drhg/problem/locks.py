"""What of a plan must stay: driven and frozen routes, customers tied to vehicles or to each other.

Vehicles count from 1, as routes do. `resolve` brings all locks of an instance, fixed edges of
routes included, into one form and refuses those that contradict each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import numpy as np

from drhg.errors import InstanceError
from drhg.problem.arguments import from_zero, shown, whole_number
from drhg.problem.tolerances import CHECK_SLACK

if TYPE_CHECKING:
    from drhg.problem.instance import Instance

Pair: TypeAlias = tuple[int, int]
Path: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Locks:
    """What every plan of an instance must keep; nodes count from 0, vehicles from 1.

    driven: what a vehicle has already visited, in this order, since it left the depot. Its route
        begins so.
    frozen: whole routes of vehicles, which stay as they are.
    pinned: (customer, vehicle): that vehicle visits it.
    forbidden: (customer, vehicle): any vehicle but that one does.
    together: groups of customers that one vehicle visits, whichever.

    Mappings may be given for the first three, as in `Locks(driven={1: [4, 2]}, pinned={7: 2})`.

    >>> Locks(driven={1: [4, 2]}, pinned={7: 2}).driven
    ((1, (4, 2)),)
    """

    driven: tuple[tuple[int, Path], ...] = ()
    frozen: tuple[tuple[int, Path], ...] = ()
    pinned: tuple[Pair, ...] = ()
    forbidden: tuple[Pair, ...] = ()
    together: tuple[Path, ...] = ()

    def __post_init__(self) -> None:
        for name in ("driven", "frozen"):
            routes = [
                (whole_number(f"a vehicle of {name}", vehicle, 1), _nodes(name, path))
                for vehicle, path in _pairs(name, getattr(self, name))
            ]
            object.__setattr__(self, name, tuple(sorted(route for route in routes if route[1])))
        for name in ("pinned", "forbidden"):
            who, what = f"a customer of {name}", f"a vehicle of {name}"
            pairs = {
                (whole_number(who, a), whole_number(what, b, 1))
                for a, b in _pairs(name, getattr(self, name))
            }
            object.__setattr__(self, name, tuple(sorted(pairs)))
        groups = (
            tuple(sorted(set(_nodes("together", g)))) for g in _listed("together", self.together)
        )
        object.__setattr__(self, "together", tuple(sorted(g for g in groups if len(g) > 1)))

    def __bool__(self) -> bool:
        return any((self.driven, self.frozen, self.pinned, self.forbidden, self.together))

    @property
    def vehicles(self) -> int:
        """The largest number of a vehicle that is named, 0 if none is: then all are alike."""
        named = [vehicle for vehicle, _ in (*self.driven, *self.frozen)]
        named += [vehicle for _, vehicle in (*self.pinned, *self.forbidden)]
        return max(named, default=0)

    def renumbered(self, number: Mapping[int, int]) -> Locks:
        """The same locks with nodes numbered anew; those of nodes that are gone are dropped."""

        def path(nodes: Path) -> Path:
            return tuple(number[node] for node in nodes if node in number)

        return Locks(
            driven=tuple((vehicle, path(nodes)) for vehicle, nodes in self.driven),
            frozen=tuple((vehicle, path(nodes)) for vehicle, nodes in self.frozen),
            pinned=tuple((number[a], b) for a, b in self.pinned if a in number),
            forbidden=tuple((number[a], b) for a, b in self.forbidden if a in number),
            together=tuple(path(nodes) for nodes in self.together),
        )


def a_locks(value: Any) -> Locks | None:
    """The argument, if it is a `Locks` or nothing; else an error."""
    if value is not None and not isinstance(value, Locks):
        raise InstanceError(f"locks must be a drhg.Locks, not {shown(value)}")
    return value or None  # one that locks nothing is none


def _listed(name: str, values: Any) -> list[Any]:
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise InstanceError(f"{name} must be a list, not {shown(values)}")
    return list(values)


def _pairs(name: str, values: Any) -> Iterator[tuple[Any, Any]]:
    for pair in values.items() if isinstance(values, Mapping) else _listed(name, values):
        if not (isinstance(pair, tuple | list) and len(pair) == 2):
            raise InstanceError(f"{name}: {shown(pair)} is not a pair")
        yield pair[0], pair[1]


def _nodes(name: str, values: Any) -> Path:
    values = values.tolist() if hasattr(values, "tolist") else values
    return tuple(whole_number(f"a node of {name}", node) for node in _listed(name, values))


@dataclass
class Chain:
    """Customers that stay in this order, or in the reverse one, and who may visit them."""

    nodes: Path
    vehicle: int = 0  # that must visit it, 0 if no special one must
    barred: frozenset[int] = frozenset()  # vehicles that must not
    group: int = -1  # chains of a group share a vehicle; -1 for none


@dataclass
class Resolved:
    """All locks of an instance: chains of free customers, and what vehicles have behind them."""

    chains: list[Chain] = field(default_factory=list)
    driven: dict[int, Path] = field(default_factory=dict)  # by vehicle
    frozen: dict[int, Path] = field(default_factory=dict)


class _Roots:
    """Customers that one vehicle must visit, and the locks that say so."""

    def __init__(self, n: int) -> None:
        self._root = list(range(n))
        self.why: dict[int, tuple[int, str]] = {}  # vehicle of a root, and the lock that says so

    def of(self, node: int) -> int:
        while self._root[node] != node:
            self._root[node] = self._root[self._root[node]]
            node = self._root[node]
        return node

    def join(self, a: int, b: int, lock: str) -> None:
        """Have two customers on one vehicle; refused if they are tied to different ones."""
        a, b = self.of(a), self.of(b)
        if a == b:
            return
        if a in self.why and b in self.why and self.why[a][0] != self.why[b][0]:
            _contradict(self.why[a][1], f"{self.why[b][1]}, because of {lock}")
        if a in self.why:
            self.why.setdefault(b, self.why[a])
        self._root[a] = b

    def tie(self, node: int, vehicle: int, lock: str) -> None:
        """Have a vehicle visit a customer; refused if another one must."""
        root = self.of(node)
        known, why = self.why.setdefault(root, (vehicle, lock))
        if known != vehicle:
            _contradict(why, lock)


def _contradict(one: str, other: str) -> NoReturn:
    raise InstanceError(f"two locks contradict each other: {one}, and {other}")


def resolve(instance: Instance) -> Resolved:
    """All locks of an instance in one form, or an error that names two that cannot both hold.

    >>> import drhg
    >>> xy = [[0, 0], [0, 1], [1, 0]]
    >>> drhg.cvrp(xy, [0, 1, 1], 2, locks=drhg.Locks(pinned=[(1, 1)], forbidden=[(1, 1)]))
    Traceback (most recent call last):
    ...
    drhg.errors.InstanceError: two locks contradict each other: node 1 (counted from 0) is pinned \
to vehicle 1, and is forbidden to vehicle 1
    """
    locks = instance.locks or Locks()
    _check_numbers(instance, locks)
    roots = _Roots(instance.n)
    place: dict[int, tuple[str, int, Path]] = {}  # of a customer: lock, vehicle, path
    for word, routes in (("driven", locks.driven), ("frozen", locks.frozen)):
        for vehicle, path in routes:
            for node in path:
                lock = f"{instance.called(node)} is in the {word} route of vehicle {vehicle}"
                if node in place:
                    _contradict(place[node][0], f"again in the {word} route of vehicle {vehicle}")
                place[node] = (lock, vehicle, path)
                roots.tie(node, vehicle, lock)
    driven, frozen = dict(locks.driven), dict(locks.frozen)
    for vehicle in driven.keys() & frozen.keys():
        _contradict(f"vehicle {vehicle} has a driven route", "a frozen one")
    for node, vehicle in locks.pinned:
        roots.tie(node, vehicle, f"{instance.called(node)} is pinned to vehicle {vehicle}")
    for group in locks.together:
        for node in group[1:]:
            roots.join(group[0], node, f"{instance.called(group[0], node)} stay together")
    for a, b in instance.fixed_edges:
        _check_edge(instance, place, a, b)
        roots.join(a, b, f"the fixed edge of {instance.called(a, b)}")
    for node, vehicle in locks.forbidden:
        known, why = roots.why.get(roots.of(node), (0, ""))
        if known == vehicle:
            who = "" if why.startswith(instance.called(node)) else f"{instance.called(node)} "
            _contradict(why, f"{who}is forbidden to vehicle {vehicle}")
    _check_frozen(instance, roots, frozen, place)
    found = Resolved(driven=driven, frozen=frozen)
    _chains(instance, locks, roots, place, found)
    _check_room(instance, roots, found)
    return found


def _check_numbers(instance: Instance, locks: Locks) -> None:
    """Nodes that exist and are customers, vehicles that exist; no vehicle twice."""
    most = instance.vehicles
    if most is not None and locks.vehicles > most:
        raise InstanceError(f"a lock names vehicle {locks.vehicles}, but there are only {most}")
    nodes = [node for _, path in (*locks.driven, *locks.frozen) for node in path]
    nodes += [node for node, _ in (*locks.pinned, *locks.forbidden)]
    nodes += [node for group in locks.together for node in group]
    for node in nodes:
        if not 0 <= node < instance.n:
            raise InstanceError(f"a lock names {from_zero(node)}, which does not exist")
        if node == instance.depot:
            raise InstanceError(f"a lock names the depot, {instance.called(node)}")
    for a, b in instance.fixed_edges:
        if instance.depot in (a, b):
            raise InstanceError(
                f"the fixed edge of {instance.called(a, b)} is at the depot; lock a route's "
                "beginning as driven instead"
            )
    for word, routes in (("driven", locks.driven), ("frozen", locks.frozen)):
        vehicles = [vehicle for vehicle, _ in routes]
        for vehicle in set(vehicles):
            if vehicles.count(vehicle) > 1:
                _contradict(f"vehicle {vehicle} has one {word} route", f"another {word} route")


def _check_edge(
    instance: Instance, place: dict[int, tuple[str, int, Path]], a: int, b: int
) -> None:
    """A fixed edge lies along a locked route, or goes on from the last stop of a driven one."""
    edge = f"the fixed edge of {instance.called(a, b)}"
    for one, other in ((a, b), (b, a)):
        if one not in place:
            continue
        lock, _, path = place[one]
        at = path.index(one)
        beside = path[max(0, at - 1) : at + 2]
        if other in beside:
            return
        if other in place or "frozen" in lock or one != path[-1]:
            _contradict(lock, edge)


def _check_frozen(
    instance: Instance,
    roots: _Roots,
    frozen: dict[int, Path],
    place: dict[int, tuple[str, int, Path]],
) -> None:
    """Nobody else can be tied to a vehicle whose route is frozen."""
    if not frozen:
        return
    for node in range(instance.n):
        vehicle, why = roots.why.get(roots.of(node), (0, ""))
        if vehicle in frozen and node not in place:
            _contradict(f"the route of vehicle {vehicle} is frozen", f"{why}, not in it"
                        if why.startswith(instance.called(node))
                        else f"{instance.called(node)} belongs to it: {why}")  # fmt: skip


def _chains(
    instance: Instance,
    locks: Locks,
    roots: _Roots,
    place: dict[int, tuple[str, int, Path]],
    found: Resolved,
) -> None:
    """Follow the fixed edges: those behind a driven route prolong it, the others make chains."""
    beside: dict[int, list[int]] = {}
    for a, b in instance.fixed_edges:
        beside.setdefault(a, []).append(b)
        beside.setdefault(b, []).append(a)
    done = set(place) | {instance.depot}

    def follow(node: int) -> list[int]:
        path = [node]
        while True:
            ahead = [one for one in beside.get(path[-1], ()) if one not in done]
            if not ahead:
                return path
            done.add(ahead[0])
            path.append(ahead[0])

    for vehicle, path in found.driven.items():
        found.driven[vehicle] = (*path[:-1], *follow(path[-1]))
    barred: dict[int, set[int]] = {}
    for node, vehicle in locks.forbidden:
        barred.setdefault(roots.of(node), set()).add(vehicle)
    members: dict[int, int] = {}
    for node in range(instance.n):
        if node in done or len([one for one in beside.get(node, ()) if one not in done]) > 1:
            continue  # inside a chain: one of its ends will lead here
        done.add(node)
        root = roots.of(node)
        vehicle = roots.why.get(root, (0, ""))[0]
        never = frozenset(barred.get(root, ())) | found.frozen.keys()
        found.chains.append(Chain(tuple(follow(node)), vehicle, frozenset(never), root))
        members[root] = members.get(root, 0) + 1
    for chain in found.chains:
        if members[chain.group] == 1 or chain.vehicle:
            chain.group = -1


def _check_room(instance: Instance, roots: _Roots, found: Resolved) -> None:
    """What must be together must fit in a vehicle, and some vehicle must be allowed."""
    demand, capacity = instance.demand, instance.capacity
    assert demand is not None
    assert capacity is not None
    loads: dict[int, int] = {}
    for vehicle, path in (*found.driven.items(), *found.frozen.items()):
        loads[vehicle] = int(demand[list(path)].sum())
    groups: dict[int, list[Chain]] = {}
    for chain in found.chains:
        if chain.vehicle:
            loads[chain.vehicle] = loads.get(chain.vehicle, 0) + int(
                demand[list(chain.nodes)].sum()
            )
        key = chain.group if chain.group >= 0 else -1 - chain.nodes[0]
        groups.setdefault(key, []).append(chain)
    scale = instance.demand_scale
    for vehicle, load in loads.items():
        if load > capacity:
            _contradict(f"vehicle {vehicle} must carry {load / scale:g}",
                        f"its capacity is {capacity / scale:g}")  # fmt: skip
    for chains in groups.values():
        nodes = [node for chain in chains for node in chain.nodes]
        load = int(demand[nodes].sum())
        who = instance.called(*nodes) if len(nodes) <= 12 else f"{len(nodes)} customers"
        if load > capacity:
            _contradict(f"{who} go together and demand {load / scale:g}",
                        f"the capacity is {capacity / scale:g}")  # fmt: skip
        fleet = instance.vehicles
        if fleet is not None and len(chains[0].barred) >= fleet:
            _contradict(f"{who} must be visited", f"all {fleet} vehicles are forbidden or frozen")
    for word, routes in (("driven", found.driven), ("frozen", found.frozen)):
        for vehicle, path in routes.items():
            _check_length(instance, word, vehicle, path)
            _check_times(instance, word, vehicle, path)


def _check_length(instance: Instance, word: str, vehicle: int, path: Path) -> None:
    if instance.max_distance is None:
        return
    back = word == "frozen" and instance.returns
    stops = [instance.depot, *path, *([instance.depot] if back else [])]
    length = float(instance.distance(stops[:-1], stops[1:]).sum())
    length += float(instance.services[list(path)].sum())
    if length > instance.max_distance * (1 + CHECK_SLACK):
        _contradict(f"the {word} route of vehicle {vehicle} is {length:g} long",
                    f"routes may be {instance.max_distance:g} long")  # fmt: skip


def _check_times(instance: Instance, word: str, vehicle: int, path: Path) -> None:
    """A driven or frozen route must be in time; leaving as early as it can, it is if any is."""
    if instance.windows is None and instance.max_duration is None:
        return
    from drhg.problem.solution import Solution
    from drhg.problem.timetable import schedule
    from drhg.problem.variants import beyond

    (times,) = schedule(instance, Solution([path]))
    stops = len(path) + 1 if word == "driven" else len(times.nodes)
    closes = instance.closes[times.nodes]
    for k in np.flatnonzero(beyond(times.begin, closes)[:stops]):
        _contradict(f"the {word} route of vehicle {vehicle} is at "
                    f"{instance.called(times.nodes[k])} at {times.begin[k]:g}",
                    f"its window closes at {closes[k]:g}")  # fmt: skip
    spent = times.departure[stops - 1] - times.departure[0]
    if instance.max_duration is not None and beyond(spent, instance.max_duration):
        _contradict(f"the {word} route of vehicle {vehicle} takes {spent:g}",
                    f"routes may take {instance.max_duration:g}")  # fmt: skip

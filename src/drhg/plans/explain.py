"""Why a plan is as it is: what every place costs, what else there is, and what is in the way."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from drhg.errors import DrhgError, InstanceError, SolutionError
from drhg.files.routes import name_of_node
from drhg.kernels import warmup
from drhg.parallel import cores
from drhg.problem import (
    Cost,
    Instance,
    Ints,
    Solution,
    a_solution,
    an_instance,
    check,
    cost,
    not_known,
    schedule,
    shown,
    whole_number,
)
from drhg.problem.tolerances import GAIN

if TYPE_CHECKING:
    from drhg.plans.certificate import Certificate
    from drhg.plans.conflicts import Conflict
    from drhg.plans.places import Layout, Places

OnShare: TypeAlias = Callable[[float], None]
KNOWN = (
    "asymmetric", "durations", "services", "windows", "release", "max_duration", "open", "path",
    "fixed", "locks",
)  # fmt: skip
USUAL_REGION = 8  # nodes: an exhaustive look at 10,000 regions takes about a second
LARGEST_REGION = 12
BLOCK = 500  # stops that a thread looks at together; changes no result


@dataclass(frozen=True)
class Place:
    """Somewhere a stop could stand, what it would cost there, and which limits it would break."""

    route: int  # from 1; one more than there are for a new route
    after: str  # names of its neighbours there
    before: str
    cost: float
    breaks: tuple[str, ...] = ()  # capacity, max_distance, vehicles, lock, windows, max_duration


@dataclass(frozen=True)
class StopFacts:
    """A stop, what its place costs, and the best place elsewhere."""

    node: int
    name: str
    route: int  # from 1; 0 if no route visits it
    position: int  # in the route, from 1
    cost: float  # what the plan would be shorter without it
    next: Place | None  # the best other place that keeps all limits
    barred: Place | None  # the best other place if no limit were kept, where that is cheaper

    @property
    def extra(self) -> float:
        """What moving it to the next best place would cost; negative if that is better."""
        return np.inf if self.next is None else self.next.cost - self.cost


@dataclass(frozen=True)
class RouteFacts:
    """A route, and what it still has room for."""

    route: int  # from 1
    stops: int
    load: float
    free_load: float | None
    length: float  # service included, if the instance has any
    free_length: float | None
    duration: float | None = None  # of routes with windows or a limit on it, as the next two
    free_duration: float | None = None
    delay: float | None = None  # how much later it could leave without being late; 0 if it is


@dataclass(frozen=True)
class EdgeFacts:
    """A leg of a route."""

    route: int  # from 1
    first: str
    second: str
    length: float


@dataclass(frozen=True)
class Explanation:
    """What `explain` found. All costs are exact: the plan's cost after the change, less before."""

    instance: Instance
    solution: Solution | None
    cost: Cost | None
    violations: tuple[str, ...]
    stops: tuple[StopFacts, ...]
    routes: tuple[RouteFacts, ...]
    edges: tuple[EdgeFacts, ...]  # longest first
    conflict: Conflict | None  # of an instance or a plan that breaks limits
    certificate: Certificate | None  # of a valid plan of which reduced graphs know all rules

    @property
    def dearest(self) -> list[StopFacts]:
        """The stops, those first whose places cost most."""
        return sorted(self.stops, key=lambda stop: -stop.cost)

    @property
    def better(self) -> list[StopFacts]:
        """Stops that would be cheaper elsewhere, most to gain first."""
        least = GAIN * (1.0 + float(self.cost or 0.0))
        return sorted((s for s in self.stops if s.extra < -least), key=lambda stop: stop.extra)

    def to_dict(self, top: int | None = None) -> dict[str, Any]:
        """Everything as plain values; of edges, and of stops by cost, only the first `top`."""
        stops = self.stops if top is None else self.dearest[:top]
        row: dict[str, Any] = {
            "name": self.instance.name,
            "problem": self.instance.problem,
            "n": self.instance.n,
            "cost": self.cost,
            "violations": list(self.violations),
            "stops": [_row(stop) for stop in stops],
            "routes": [asdict(route) for route in self.routes],
            "edges": [asdict(edge) for edge in self.edges[:top]],
            "conflict": None if self.conflict is None else asdict(self.conflict),
        }
        found = self.certificate
        row["certificate"] = None if found is None else {
            "size": found.size, "regions": len(found.stops), "share": found.share,
            "open_stops": found.open_stops.tolist(),
        }  # fmt: skip
        return row

    def to_json(self, top: int | None = None) -> str:
        """`to_dict` as one line of JSON."""
        return json.dumps(self.to_dict(top))

    def map_facts(self) -> dict[str, Any]:
        """What the map tells of stops: costs of places by node, and where regions are open."""
        found = self.certificate
        costs: list[float | None] = [None] * self.instance.n
        places: list[list[float] | None] = [None] * self.instance.n
        for stop in self.stops:
            costs[stop.node] = _short(stop.cost)
            if stop.next is not None:
                places[stop.node] = [stop.next.route, _short(stop.next.cost)]
        pairs = [] if found is None else zip(found.stops.tolist(), found.gains, strict=True)
        return {
            "cost": costs,
            "next": places,
            "size": None if found is None else found.size,
            "share": None if found is None else found.share,
            "gains": [[node, _short(gain)] for node, gain in pairs if gain > 0.0],
        }

    def stop_table(self) -> dict[str, list[Any]]:
        """The columns of a table with a row per stop."""
        stops = self.stops
        gains: dict[int, float] = {}
        if self.certificate is not None:
            pairs = zip(self.certificate.stops, self.certificate.gains, strict=True)
            gains = {int(node): float(gain) for node, gain in pairs}
        table: dict[str, list[Any]] = {
            "route": [s.route or None for s in stops],
            "position": [s.position or None for s in stops],
            "node" if self.instance.names is None else "name": [s.name for s in stops],
            "cost": [s.cost for s in stops],
        }
        for key in ("route", "after", "before", "cost"):
            table[f"next_{key}"] = [s.next and getattr(s.next, key) for s in stops]
        table["extra"] = [None if s.next is None else s.extra for s in stops]
        table["barred_route"] = [s.barred and s.barred.route for s in stops]
        table["barred_cost"] = [s.barred and s.barred.cost for s in stops]
        table["barred_by"] = [s.barred and " ".join(s.barred.breaks) for s in stops]
        if self.certificate is not None:
            table["region_gain"] = [gains.get(s.node) for s in stops]
        return table


def _short(value: float) -> float:
    """A number of few digits, as a picture shows it."""
    return float(f"{value:.6g}")


def _row(stop: StopFacts) -> dict[str, Any]:
    return asdict(stop) | {"extra": None if stop.next is None else stop.extra}


def explain(
    instance: Instance,
    solution: Solution | None = None,
    *,
    region: int | None = None,
    on_progress: OnShare | None = None,
) -> Explanation:
    """Why a plan is as it is: exact costs of every stop's place and of the next best one.

    Without a solution, or if it breaks a rule, a small set of customers is looked for that cannot
    be served together. `region` is the size of the reduced graphs that are searched exhaustively
    around every stop of a valid plan, 0 for none; by default 8, but 0 where windows, locks and the
    like are beyond that search. `on_progress` is told the share that is done.

    >>> import drhg
    >>> square = drhg.tsp([[0, 0], [0, 3], [4, 3], [4, 0]])
    >>> found = drhg.explain(square, drhg.Solution([[0, 2, 1, 3]]))
    >>> found.certificate.share, round(found.better[0].extra, 3)
    (0.0, -4.0)
    """
    an_instance(instance)
    if why := not_known("explain", instance, KNOWN):
        raise InstanceError(why)
    region = _region(instance, region)
    if on_progress is not None and not callable(on_progress):
        raise DrhgError(f"on_progress must be a function, not {shown(on_progress)}")
    if solution is None:
        conflict = _conflict(instance)
        return Explanation(instance, None, None, (), (), (), (), conflict, None)
    total = cost(instance, a_solution(solution))  # refuses nodes that do not exist
    violations = check(instance, solution)
    if any("stands inside" in one for one in violations):
        raise SolutionError(violations[0])
    valid = not violations
    progress = _Progress(instance.n * (2 if valid and region else 1), on_progress)
    warmup.prepare([warmup.EXPLAINING], limit=np.inf)
    stops, lengths = _stops(instance, solution, progress)
    found: Certificate | None = None
    if valid and region:
        from drhg.plans.certificate import certificate

        found = certificate(instance, solution, region, progress.count)
    return Explanation(
        instance, solution, total, tuple(violations), stops,
        _routes(instance, solution, lengths), _edges(instance, solution),
        None if valid else _conflict(instance), found,
    )  # fmt: skip


def _region(instance: Instance, size: int | None) -> int:
    """The size of regions; refused if it is named, and a reduced graph does not know all rules."""
    why = not_known("the search of regions", instance, ("fixed",))
    if size is None:
        return 0 if why else USUAL_REGION
    size = whole_number("region", size, 0)
    if size > LARGEST_REGION:
        raise DrhgError(f"region must be at most {LARGEST_REGION} nodes, not {size}")
    if size and why:
        raise InstanceError(f"{why}; leave region out, or set it to 0")
    return size


class _Progress:
    """Counts what threads have done, and tells the share."""

    def __init__(self, total: int, tell: OnShare | None) -> None:
        self._done, self._total, self._tell = 0, max(1, total), tell
        self._lock = threading.Lock()

    def count(self, more: int) -> None:
        with self._lock:
            self._done += more
            if self._tell is not None:
                self._tell(min(1.0, self._done / self._total))


def _conflict(instance: Instance) -> Conflict | None:
    from drhg.plans.conflicts import find_conflict

    return find_conflict(instance)


def _stops(
    instance: Instance, solution: Solution, progress: _Progress
) -> tuple[tuple[StopFacts, ...], list[float]]:
    """Facts of all stops, those that no route visits last; and the length of every route."""
    from drhg.plans.held import with_locks
    from drhg.plans.places import layout_of, places_of
    from drhg.plans.terms import terms_of

    terms = terms_of(instance)
    layout = layout_of(terms, solution)
    if instance.locks is not None:
        layout = with_locks(instance, solution, layout)
    visited = np.zeros(instance.n, bool)
    visited[layout.order] = True
    if instance.is_cvrp:
        visited[instance.depot] = True
    missing = np.flatnonzero(~visited)
    nodes = np.concatenate((layout.order, missing)).astype(np.int32)
    where = np.concatenate((np.arange(len(layout.order)), np.full(len(missing), -1)))
    blocks = [slice(at, at + BLOCK) for at in range(0, len(nodes), BLOCK)]

    def look(block: slice) -> Places:
        found = places_of(terms, layout, nodes[block], where[block].astype(np.int32))
        progress.count(len(found.cost))
        return found

    facts: list[StopFacts] = []
    names = _Names(instance, layout)
    with ThreadPoolExecutor(cores()) as pool:
        for block, found in zip(blocks, pool.map(look, blocks), strict=True):
            facts += names.facts(nodes[block].tolist(), where[block].tolist(), found)
    return tuple(facts), layout.length.tolist()


class _Names:
    """Turns positions of a layout into what people call them."""

    def __init__(self, instance: Instance, layout: Layout) -> None:
        self._instance = instance
        self._order, self._begins = layout.order.tolist(), layout.begins.tolist()
        self._route = np.repeat(np.arange(len(self._begins) - 1), np.diff(layout.begins)).tolist()

    def facts(self, nodes: list[int], where: list[int], found: Places) -> list[StopFacts]:
        columns = [column.tolist() for column in found]
        facts = []
        for i, (node, at) in enumerate(zip(nodes, where, strict=True)):
            saving, cost, route, before, any_cost, any_route, any_before, broken = (
                column[i] for column in columns
            )
            own = self._route[at] if at >= 0 else -1
            best = None if route < 0 else self._place(route, before, cost, at)
            barred = None
            if any_route >= 0 and broken and any_cost < cost:
                barred = self._place(any_route, any_before, any_cost, at, _limits(broken))
            position = at - self._begins[own] + 1 if at >= 0 else 0
            name = name_of_node(self._instance, node)
            facts.append(StopFacts(node, name, own + 1, position, saving, best, barred))
        return facts

    def _place(
        self, route: int, before: int, cost: float, own: int, breaks: tuple[str, ...] = ()
    ) -> Place:
        """A place between two stops; the stop at `own` itself is no neighbour of its new place."""
        first, end = before, before
        if route < len(self._begins) - 1:
            first, end = self._begins[route], self._begins[route + 1]
        instance = self._instance
        names = []
        for at in (before - 1, before):
            if first <= at < end:
                names.append(name_of_node(instance, self._order[at]))
            elif not instance.returns and (at >= end or not instance.is_cvrp):
                names.append("")  # nobody: the route ends there, or the path begins
            elif instance.is_cvrp:
                names.append(name_of_node(instance, instance.depot))
            else:
                names.append(name_of_node(instance, self._order[end - 1 if at < first else first]))
        return Place(route + 1, names[0], names[1], cost, breaks)


def _limits(broken: int) -> tuple[str, ...]:
    words = ("capacity", "max_distance", "vehicles", "lock", "windows", "max_duration")
    return tuple(word for bit, word in enumerate(words) if broken >> bit & 1)


def _routes(instance: Instance, solution: Solution, lengths: list[float]) -> tuple[RouteFacts, ...]:
    """What every route carries, and what it has room for."""
    facts = []
    for r, route in enumerate(solution.routes):
        load, room, slack = 0.0, None, None
        if instance.demand is not None and instance.capacity is not None:
            carried = int(instance.demand[route].sum())
            load = carried / instance.demand_scale
            room = (instance.capacity - carried) / instance.demand_scale
        if instance.max_distance is not None:
            slack = instance.max_distance - lengths[r]
        times = _times(instance, route)
        facts.append(RouteFacts(r + 1, len(route), load, room, lengths[r], slack, *times))
    return tuple(facts)


def _times(instance: Instance, route: Ints) -> tuple[float | None, float | None, float | None]:
    """How long a route takes, how much longer it might, and how much later it could leave."""
    if instance.windows is None and instance.max_duration is None:
        return None, None, None
    from drhg.search.routes.locked import resources_of

    (walked,) = schedule(instance, Solution([route]))
    spare = None
    if instance.max_duration is not None:
        spare = instance.max_duration - walked.duration
    home = [instance.depot] if instance.returns else []
    whole = resources_of(instance, (*route.tolist(), *home))
    delay = whole.latest - float(walked.departure[0])
    delay = 0.0 if walked.lateness.any() else max(0.0, delay)
    return walked.duration, spare, delay if np.isfinite(delay) else None


def _edges(instance: Instance, solution: Solution) -> tuple[EdgeFacts, ...]:
    """All legs, the longest first."""
    found: list[EdgeFacts] = []
    for r, route in enumerate(solution.routes):
        path = np.insert(route, 0, instance.depot) if instance.is_cvrp else route
        after = np.roll(path, -1)
        if not instance.returns:
            path, after = path[:-1], after[:-1]
        far = np.asarray(instance.distance(path, after), np.float64)
        for a, b, length in zip(path.tolist(), after.tolist(), far.tolist(), strict=True):
            names = name_of_node(instance, a), name_of_node(instance, b)
            found.append(EdgeFacts(r + 1, *names, length))
    return tuple(sorted(found, key=lambda edge: -edge.length))

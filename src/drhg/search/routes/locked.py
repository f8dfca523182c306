"""Routes with locks: what is locked becomes one piece, and who may drive it a kind of vehicle.

A chain of fixed edges is a piece that is never cut. A vehicle that locks name is a kind of its own;
one that is under way starts where it is, with the room that it has left. Frozen routes are left out
altogether. Customers who stay together, on whichever vehicle, are tied to one for the length of a
walk, to another in the next.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from drhg.hypergraph.plan import Flags, Index
from drhg.problem import Instance, Ints, Metric, Resolved, Solution, cost, resolve
from drhg.problem.locks import Chain
from drhg.problem.resources import Resources, join, visit
from drhg.problem.tolerances import TIE
from drhg.search.routes.annealing import anneal_copies, anneal_together
from drhg.search.routes.context import RouteLists
from drhg.search.routes.piece_context import (
    PieceContext,
    heat_unit,
    piece_neighbours,
    piece_table,
)
from drhg.search.routes.pieces import Vehicles
from drhg.search.routes.schedule import AnnealingSchedule
from drhg.search.strategy import Budget, Snapshot, Task, task_of

if TYPE_CHECKING:
    from drhg.search.routes.strategy import Routes


@dataclass(frozen=True)
class LockedContext(PieceContext):
    """What threads know of a task with locks; a plan has neither frozen nor driven stops in it."""

    found: Resolved = field(default_factory=Resolved)
    driver: tuple[int, ...] = ()  # vehicle of each kind, 0 for those that have no number yet

    def plan(self, start: Solution) -> RouteLists:
        """The start without what is frozen or driven, and without who may not be where it is."""
        heads, none = self.table.heads, np.zeros(0, np.int32)
        is_head = np.zeros(self.task.instance.n, np.bool_)
        is_head[heads] = True
        routes: list[Ints] = []
        kinds: list[int] = []
        for vehicle, route in _free_routes(self.found, start):
            pieces = route[is_head[route]]
            kind = self._kind(vehicle, pieces, kinds)
            pieces = pieces[self.table.allowed[pieces, kind]]
            if len(pieces) and kind >= 0:
                routes.append(pieces)
                kinds.append(kind)
        order = np.concatenate([none, *routes]).astype(np.int32)
        ends = np.cumsum([len(route) for route in routes]).astype(np.int32)
        absent = np.setdiff1d(heads, order)
        plan = RouteLists(order, ends, absent, 0.0, np.array(kinds, np.int32))
        total = float(cost(self.task.instance, self.solution(plan)))
        return plan._replace(cost=total + self.inside(absent))

    def _kind(self, vehicle: int, pieces: Ints, used: list[int]) -> int:
        """The kind of a route of the start: of its vehicle, of most groups on board, or any that is
        free; -1 if none is."""
        if vehicle and vehicle in self.driver:
            return self.driver.index(vehicle)
        only = self.table.allowed[pieces]
        tied = np.argmax(only[only.sum(axis=1) == 1], axis=1)
        wanted = [kind for kind, _ in Counter(tied.tolist()).most_common()]
        number = self.table.vehicles.number
        for kind in [*wanted, *range(len(self.driver))]:
            if not self.driver[kind] and used.count(kind) < number[kind]:
                return int(kind)
        return -1

    def solution(self, plan: RouteLists) -> Solution:
        """The routes with all that is locked, each with its vehicle if locks name any."""
        free = PieceContext.solution(self, plan).routes if len(plan.order) else ()
        instance, found = self.task.instance, self.found
        assert instance.locks is not None or instance.fixed_edges
        routes: list[Ints] = []
        vehicles: list[int] = []
        waiting = dict(found.driven)
        for route, kind in zip(free, plan.kinds.tolist(), strict=True):
            vehicle = self.driver[kind]
            begin = np.array(waiting.pop(vehicle, ()), np.int64)
            routes.append(np.concatenate((begin, route)))
            vehicles.append(vehicle)
        for vehicle, path in (*waiting.items(), *found.frozen.items()):
            routes.append(np.array(path, np.int64))
            vehicles.append(vehicle)
        if instance.locks is None or not instance.locks.vehicles:
            return Solution(routes)
        taken = {*self.driver, *found.frozen}
        unnamed = iter(v for v in range(1, len(routes) + len(taken) + 1) if v not in taken)
        return Solution(routes, [vehicle or next(unnamed) for vehicle in vehicles])


def begun(instance: Instance, found: Resolved) -> Solution:
    """The routes that are driven or frozen, and nobody else."""
    routes = (*found.driven.items(), *found.frozen.items())
    named = instance.locks is not None and instance.locks.vehicles > 0
    return Solution([path for _, path in routes], [v for v, _ in routes] if named else None)


def _free_routes(found: Resolved, start: Solution) -> list[tuple[int, Ints]]:
    """The routes of a plan with their vehicles, without what is driven or frozen."""
    vehicles = start.vehicles or (0,) * len(start.routes)
    free = [
        (vehicle, route[len(found.driven.get(vehicle, ())) :])
        for vehicle, route in zip(vehicles, start.routes, strict=True)
        if vehicle not in found.frozen
    ]
    return [(vehicle, route) for vehicle, route in free if len(route)]


# --- kinds of vehicles ----------------------------------------------------------------------------


@dataclass
class _Fleet:
    """The kinds of vehicles of one walk; kind 0 are all that are alike."""

    instance: Instance
    found: Resolved
    driver: list[int] = field(default_factory=lambda: [0])
    room: list[int] = field(default_factory=list)  # capacity left for free customers
    usual: int = 0  # vehicles of kind 0

    def __post_init__(self) -> None:
        instance, found = self.instance, self.found
        assert instance.demand is not None
        assert instance.capacity is not None
        named = set(found.driven)
        for chain in found.chains:
            named |= {chain.vehicle, *chain.barred} - {0}
        named -= set(found.frozen)
        self.driver += sorted(named)
        self.room = [instance.capacity] * len(self.driver)
        for kind, vehicle in enumerate(self.driver):
            path = list(found.driven.get(vehicle, ()))
            self.room[kind] -= int(instance.demand[path].sum())
        most = instance.n if instance.vehicles is None else instance.vehicles
        self.usual = most - len(named) - len(found.frozen)
        if instance.vehicles is None:
            self.usual = instance.n

    def vehicles(self) -> Vehicles:
        """The kinds as kernels see them."""
        instance, found = self.instance, self.found
        count = len(self.driver)
        start = np.full(count, instance.depot, np.int32)
        longest = np.inf if instance.max_distance is None else instance.max_distance
        length, fixed = np.full(count, longest), np.zeros(count)
        departs, front = np.full(count, instance.opens[instance.depot]), np.zeros(count)
        latest = np.full(count, np.inf)
        for kind, vehicle in enumerate(self.driver):
            path = found.driven.get(vehicle)
            if path is None:
                continue
            start[kind] = path[-1]
            length[kind] -= length_of(instance, path)
            begun = resources_of(instance, path)
            departs[kind] = begun.earliest + begun.duration
            front[kind], latest[kind] = begun.duration, begun.latest
            if instance.returns:  # it drives home in any case
                fixed[kind] = -float(instance.distance(path[-1], instance.depot))
        number = np.ones(count, np.int64)
        number[0] = max(0, self.usual)
        duration = np.inf if instance.max_duration is None else instance.max_duration
        return Vehicles(
            start=start, end=np.full(count, instance.depot, np.int32),
            returns=np.full(count, instance.returns), capacity=np.array(self.room, np.int64),
            departs=departs, front=front, latest=latest,
            back=np.full(count, instance.closes[instance.depot]),
            max_length=length, max_duration=np.full(count, duration), fixed=fixed, number=number,
        )  # fmt: skip

    def slot(self) -> int:
        """One more kind of a single vehicle like all others, if there is one; else -1."""
        if self.usual <= 0:
            return -1
        assert self.instance.capacity is not None
        self.usual -= 1
        self.driver.append(0)
        self.room.append(self.instance.capacity)
        return len(self.driver) - 1


def length_of(instance: Instance, path: tuple[int, ...]) -> float:
    """How long it is from the depot along a path, service included."""
    stops = np.array([instance.depot, *path])
    way = float(np.sum(instance.distance(stops[:-1], stops[1:])))
    return way + float(instance.services[list(path)].sum())


def resources_of(instance: Instance, path: tuple[int, ...]) -> Resources:
    """Of a route from leaving the depot until its last stop here is served; loads and ways not."""
    depot, opens, closes = instance.depot, instance.opens, instance.closes
    leaves = opens[depot]
    if instance.release is not None:
        leaves = max(leaves, float(instance.release[list(path)].max()))
    whole, here = visit(0.0, 0.0, leaves, closes[depot]), depot
    for node in path:
        stop = visit(0.0, instance.services[node], opens[node], closes[node])
        whole = join(whole, stop, 0.0, instance.travel_time(here, node))
        here = node
    return whole


def _tied(fleet: _Fleet, rng: np.random.Generator | None, start: Solution | None) -> dict[int, int]:
    """A kind for every group of chains that may be on any vehicle: as in the start, or by chance.

    Without a generator the heaviest groups come first, each to a vehicle of its own if it may. With
    one, and a start, one of its groups goes elsewhere.
    """
    demand = fleet.instance.demand
    assert demand is not None
    loads: dict[int, int] = {}
    barred: dict[int, set[int]] = {}  # vehicles
    wanted = {} if start is None else _as_in(fleet, start)
    left = -1  # the kind that the moving group leaves
    if rng is not None and wanted:
        left = wanted.pop(sorted(wanted)[int(rng.integers(len(wanted)))])
    room = list(fleet.room)
    for chain in fleet.found.chains:
        load = int(demand[list(chain.nodes)].sum())
        if chain.group >= 0:
            loads[chain.group] = loads.get(chain.group, 0) + load
            barred[chain.group] = set(chain.barred)
        elif chain.vehicle:
            room[fleet.driver.index(chain.vehicle)] -= load
    kinds: dict[int, int] = {}
    for group, kind in wanted.items():  # all of them fit, unless the start has groups apart
        if room[kind] >= loads[group] and fleet.driver[kind] not in barred[group]:
            kinds[group] = kind
            room[kind] -= loads[group]
    groups = sorted((g for g in loads if g not in kinds), key=lambda g: (-loads[g], g))
    if rng is not None:
        groups = [groups[i] for i in rng.permutation(len(groups))]
    for group in groups:
        usable = [
            kind
            for kind in range(1, len(fleet.driver))
            if fleet.driver[kind] not in barred[group] and kind != left
        ]
        roomy = [kind for kind in usable if room[kind] >= loads[group]]
        share = rng is not None and roomy and (left > 0 or rng.random() < 0.5)
        kind = -1 if share else fleet.slot()
        if kind >= 0:
            room.append(fleet.room[kind])
        elif roomy and rng is not None:
            kind = roomy[int(rng.integers(len(roomy)))]
        else:  # where there is most room, even if that is too little: then it is left out
            kind = max(usable or [max(left, 0)], key=lambda k: room[k])
        kinds[group] = kind
        room[kind] -= loads[group]
    return kinds


def _as_in(fleet: _Fleet, start: Solution) -> dict[int, int]:
    """The kinds that the routes of a plan give to the groups on board.

    A group that is on several routes goes to the one that has most of it.
    """
    group = {node: chain.group for chain in fleet.found.chains for node in chain.nodes}
    routes = _free_routes(fleet.found, start)
    shares = Counter((group[int(node)], r) for r, (_, route) in enumerate(routes) for node in route)
    best: dict[int, int] = {}
    for (one, r), _ in shares.most_common():
        if one >= 0:
            best.setdefault(one, r)
    kinds: dict[int, int] = {}
    for r, (vehicle, _) in enumerate(routes):
        groups = [one for one, where in best.items() if where == r]
        if groups:
            named = vehicle != 0 and vehicle in fleet.driver
            kind = fleet.driver.index(vehicle) if named else fleet.slot()
            kinds |= dict.fromkeys(groups if kind >= 0 else (), kind)
    return kinds


# --- the search -----------------------------------------------------------------------------------


def locked_context(
    task: Task, params: Routes, rng: np.random.Generator | None, start: Solution | None
) -> LockedContext:
    """A task with locks as a problem of pieces; groups are tied, and chains turned, by chance."""
    instance, found = task.instance, resolve(task.instance)
    fleet = _Fleet(instance, found)
    kinds = _tied(fleet, rng, start)
    chains = [_directed(instance, chain, rng, start) for chain in found.chains]
    allowed: Flags = np.ones((instance.n, len(fleet.driver)), np.bool_)
    for chain, path in zip(found.chains, chains, strict=True):
        row = allowed[path[0]]
        if chain.vehicle or chain.group >= 0:
            only = fleet.driver.index(chain.vehicle) if chain.vehicle else kinds[chain.group]
            row[:] = False
            row[only] = True
        for vehicle in chain.barred & set(fleet.driver):
            row[fleet.driver.index(vehicle)] = False
    hidden = [i for path in (*found.driven.values(), *found.frozen.values()) for i in path]
    locked = [path for path in chains if len(path) > 1]
    table = piece_table(instance, locked, fleet.vehicles(), allowed)
    table = table._replace(heads=np.setdiff1d(table.heads, hidden))
    width = params.pieces.neighbours + params.pieces.spare_neighbours
    near: Index = piece_neighbours(
        table, task, params.pieces, min(width, max(0, len(table.heads) - 1))
    )
    return LockedContext(
        task, params, table, near, heat_unit(task), {p[0]: np.array(p) for p in locked},
        np.full(instance.n, -1, np.int32), found, tuple(fleet.driver),
    )  # fmt: skip


def _directed(
    instance: Instance, chain: Chain, rng: np.random.Generator | None, start: Solution | None
) -> tuple[int, ...]:
    """A chain in the direction of the start, or in any; rarely turned if nothing can break."""
    path = chain.nodes
    if len(path) == 1:
        return path
    free = instance.symmetric and not (start and (instance.max_distance or timed(instance)))
    turned = free and rng is not None and rng.random() < (0.5 if start is None else 0.2)
    for route in () if start is None else start.routes:
        first, last = (np.flatnonzero(route == node) for node in (path[0], path[-1]))
        if len(first) and len(last):
            turned ^= bool(last[0] < first[0])
    return path[::-1] if turned else path


def timed(instance: Instance) -> bool:
    """Whether it matters when somebody is served."""
    given = (instance.windows, instance.release, instance.max_duration)
    return any(one is not None for one in given)


def locked_search(task: Task, params: Routes, budget: Budget, pool: Executor) -> Iterator[Snapshot]:
    """Anneal pieces, in several walks if groups must be tied to vehicles; never ends by itself."""
    found = resolve(task.instance)
    visited = sum(map(len, task.start.routes))
    start = task.start if visited == len(task.nearness.nodes) else None
    hint: Solution | None = None  # of which routes groups belong to, and how chains lie in them
    choices = any(chain.group >= 0 or len(chain.nodes) > 1 for chain in found.chains)
    walks = params.pieces.locked_walks if choices and budget.fraction() is not None else 1
    rng = np.random.default_rng([task.seed, 7])
    low, best, done = np.inf, task.start, 0
    part_steps = params.sizes.part_steps
    if budget.max_iters is not None:  # every walk has its share
        part_steps = max(1, min(part_steps, budget.max_iters // (2 * walks)))
    cold = start is None and walks > 1 and task.instance.n <= params.pieces.all_pairs
    share = params.pieces.loose_share if cold else 0.0
    if share:
        loose, part = _loosened(task, found), Share(budget, share)
        if loose.instance.locks is not None:
            snapshots = locked_search(loose, params, part, pool)
        else:
            snapshots = params.search_pieces(loose, part, pool)
        for snapshot in snapshots:
            part.done += snapshot.iterations
            done += snapshot.iterations
            yield Snapshot(snapshot.iterations, np.inf, partial(begun, task.instance, found))
            if snapshot.cost < np.inf:
                hint = snapshot.solution()
            if part.fraction() >= 1.0:
                break
    for walk in range(walks):
        context = locked_context(task, params, rng if walk else None, start or hint)
        end = 1.0 if walk == walks - 1 else share + (1.0 - share) * (0.5 + 0.5 * walk / walks)
        schedule = AnnealingSchedule(
            budget, end, task.threads, task.instance.n, params.piece_annealing, part_steps
        )
        schedule.done = done
        plan = context.plan(start or hint or Solution([]))
        for better in _annealed(context, plan, pool, schedule, params.sizes.copies):
            here = context.snapshot(schedule.last, better)
            if here.cost < low - TIE or (low == np.inf and walk == 0):
                low, best = here.cost, here.solution()
            yield Snapshot(schedule.last, low, partial(_same, best))
            if end < 1.0 and (budget.fraction() or 0.0) >= end:
                break
        start = best if low < np.inf else None
        done = schedule.done


class Share(Budget):
    """The first part of a budget, as a budget of its own."""

    def __init__(self, whole: Budget, share: float) -> None:
        most = whole.max_iters
        super().__init__(None if most is None else max(1, int(share * most)))
        self._whole, self._share, self.done = whole, share, 0

    def fraction(self) -> float:
        if self.max_iters is not None:
            return min(1.0, self.done / self.max_iters)
        return min(1.0, (self._whole.fraction() or 0.0) / self._share)

    def slice(self, usual: int, least: int = 1) -> int:
        return self._whole.slice(usual, least)


def _loosened(task: Task, found: Resolved) -> Task:
    """The problem without fixed edges, which cost nothing instead, and without groups."""
    instance, locks = task.instance, task.instance.locks
    if locks is not None:  # what is fixed to driven stops is as good as driven
        locks = replace(locks, together=(), driven=tuple(found.driven.items()))
    free = replace(instance, locks=locks, fixed_edges=())
    if instance.fixed_edges:
        nodes = np.arange(instance.n)
        matrix = np.array(instance.distance(nodes[:, None], nodes), np.float64)
        durations = instance.durations
        if durations is None and timed(instance):
            durations = matrix.copy()
        for a, b in instance.fixed_edges:
            matrix[a, b] = matrix[b, a] = 0.0
        free = replace(
            free, metric=Metric.EXPLICIT, xy=None, degrees=False, matrix=matrix,
            durations=durations,
        )  # fmt: skip
    return task_of(free, begun(free, found), task.seed, task.threads)


def _same(solution: Solution) -> Solution:
    return solution


def _annealed(
    context: LockedContext,
    plan: RouteLists,
    pool: Executor,
    schedule: AnnealingSchedule,
    copies: int,
) -> Iterator[RouteLists]:
    """First the whole plan until everybody is on board, then parts of it if it is large."""
    better = plan
    if len(plan.absent) or plan.customers <= copies:
        for better in anneal_copies(context, plan, pool, schedule):
            yield better
            if not len(better.absent) and plan.customers > copies:
                break
    yield from anneal_together(context, better, pool, schedule)

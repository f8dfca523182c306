"""Instances as problems of pieces, and what annealing needs to know of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from drhg.errors import DrhgError
from drhg.hypergraph.plan import Index
from drhg.kernels.space import space_of
from drhg.problem import (
    Floats,
    Instance,
    Ints,
    Solution,
    cost,
    kinds_of,
    kinds_of_routes,
    numbers_of_kinds,
)
from drhg.problem.resources import Resources, join, visit
from drhg.problem.tolerances import CHECK_SLACK
from drhg.search.routes.context import RouteLists
from drhg.search.routes.parts import merge_lists
from drhg.search.routes.pieces import (
    PieceLists,
    PiecePart,
    Pieces,
    PieceTable,
    Vehicles,
    lists_of_part,
    part_of_pieces,
)
from drhg.search.routes.resources_anneal import anneal
from drhg.search.strategy import Snapshot, Task

if TYPE_CHECKING:
    from drhg.search.routes.params import PieceParams
    from drhg.search.routes.strategy import Routes

BLOCK = 256  # pieces looked at together; bounds the memory, changes no result


# --- instances as pieces ------------------------------------------------------------------------


def piece_table(
    instance: Instance,
    locked: Sequence[Sequence[int]] = (),
    vehicles: Vehicles | None = None,
    allowed: npt.NDArray[np.bool_] | None = None,
) -> PieceTable:
    """The routes of an instance as a problem of pieces.

    locked: sequences of customers that stay together, in this order. All other customers are
        pieces of their own.
    vehicles: the kinds of vehicles; by default those of the instance, all alike.
    allowed: (n, K), which kinds may carry the piece that begins with a customer; by default all.

    >>> import drhg
    >>> shops = drhg.vrp(xy=[[0, 0], [0, 3], [4, 0]], windows=[[0, 20], [5, 6], [0, 19]])
    >>> piece_table(shops).heads.tolist(), piece_table(shops, locked=[[1, 2]]).heads.tolist()
    ([1, 2], [1])
    """
    hidden = np.zeros(instance.n, np.bool_)
    hidden[instance.depots] = True
    for sequence in locked:
        hidden[np.asarray(sequence[1:], np.int64)] = True
    times = np.zeros((0, 0)) if instance.durations is None else instance.durations
    return PieceTable(
        space=space_of(instance),
        times=np.array(times, np.float64, order="C"),
        pieces=pieces_of(instance, locked),
        vehicles=vehicles or fleet_of(instance),
        heads=np.flatnonzero(~hidden),
        allowed=np.zeros((0, 0), np.bool_) if allowed is None else np.ascontiguousarray(allowed),
        symmetric=instance.symmetric,
    )


def pieces_of(instance: Instance, locked: Sequence[Sequence[int]] = ()) -> Pieces:
    """What all nodes need, and the locked sequences in the rows of their first nodes."""
    n, demand = instance.n, instance.demand
    release = np.full(n, -np.inf)
    if instance.release is not None:
        waits = instance.release > kinds_of(instance).opens.min()
        release[waits] = instance.release[waits]
    pieces = Pieces(
        tail=np.arange(n, dtype=np.int32),
        load=np.zeros(n, np.int64) if demand is None else demand.copy(),
        length=instance.services.copy(), duration=instance.services.copy(),
        opens=instance.opens.copy(), closes=instance.closes.copy(), release=release,
    )  # fmt: skip
    for sequence in locked:
        _lock(instance, pieces, sequence)
    return pieces


def fleet_of(instance: Instance) -> Vehicles:
    """The vehicles of an instance."""
    kinds = kinds_of(instance)
    count, place = len(kinds.depot), kinds.depot.astype(np.int32)
    return Vehicles(
        start=place, end=place, returns=np.full(count, instance.returns), capacity=kinds.capacity,
        departs=kinds.opens, front=np.zeros(count), latest=np.full(count, np.inf),
        back=kinds.closes, max_length=kinds.max_distance, max_duration=kinds.max_duration,
        fixed=kinds.fixed, number=kinds.number,
    )  # fmt: skip


def _lock(instance: Instance, pieces: Pieces, sequence: Sequence[int]) -> None:
    """Make one piece of several customers, in the row of the first."""

    def alone(node: int) -> Resources:
        load, service = float(pieces.load[node]), float(pieces.duration[node])
        return visit(load, service, float(pieces.opens[node]), float(pieces.closes[node]))

    first, *others = sequence
    whole, here = alone(first), first
    whole = whole._replace(length=float(pieces.length[first]))
    for node in others:
        way, time = instance.distance(here, node), instance.travel_time(here, node)
        whole = join(whole, alone(node), way + float(pieces.length[node]), time)
        here = node
    if whole.time_warp > CHECK_SLACK * max(1.0, abs(whole.latest)):
        raise DrhgError(
            f"no vehicle can serve {instance.called(*sequence)} in this order: it would be "
            f"{whole.time_warp:g} late"
        )
    pieces.tail[first], pieces.load[first] = here, round(whole.load)
    pieces.length[first], pieces.duration[first] = whole.length, whole.duration
    pieces.opens[first], pieces.closes[first] = whole.earliest, max(whole.earliest, whole.latest)
    pieces.release[first] = pieces.release[list(sequence)].max()


# --- who may follow whom -------------------------------------------------------------------------


def piece_neighbours(table: PieceTable, task: Task, params: PieceParams, width: int) -> Index:
    """The likeliest neighbours of every piece (n, width), the likeliest first, padded with -1.

    Likely is what is near, waits little and makes nobody late, in the better one of both orders
    (Vidal et al. 2013).
    """
    n = len(table.pieces.tail)
    near = np.full((n, width), -1, np.int32)
    is_head = np.zeros(n, np.bool_)
    is_head[table.heads] = True
    everybody = len(table.heads) <= params.all_pairs
    for begin in range(0, len(table.heads), BLOCK):
        rows = table.heads[begin : begin + BLOCK]
        others: Ints
        if everybody:
            others = np.broadcast_to(table.heads, (len(rows), len(table.heads)))
        else:
            around = params.near_candidates * width
            others = task.nearness.around(rows, around).astype(np.int64)
            out = table.pieces.tail[rows] != rows
            if out.any():
                tails = task.nearness.around(table.pieces.tail[rows], around)
                others = np.concatenate((others, tails), axis=1)
        far = _proximity(table, task.instance, rows[:, None], others, params)
        far[(others == rows[:, None]) | ~is_head[others]] = np.inf
        order = np.argsort(far, axis=1, kind="stable")
        chosen = np.take_along_axis(others, order, axis=1).astype(np.int32)
        chosen[np.isinf(np.take_along_axis(far, order, axis=1))] = -1
        for i, row in enumerate(chosen):
            if not everybody and out.any():
                row = row[np.sort(np.unique(row, return_index=True)[1])]
            row = row[row >= 0][:width]
            near[rows[i], : len(row)] = row
    return near


def _proximity(
    table: PieceTable, instance: Instance, rows: Ints, others: Ints, params: PieceParams
) -> Floats:
    """How little two pieces like to be neighbours, in the better order."""
    one = _after(table, instance, rows, others, params)
    return np.minimum(one, _after(table, instance, others, rows, params))


def _after(table: PieceTable, instance: Instance, a: Ints, b: Ints, params: PieceParams) -> Floats:
    """The way from the end of piece a to piece b, with the waiting and delay it must cause."""
    pieces = table.pieces
    way = instance.distance(pieces.tail[a], b)
    time = way if instance.durations is None else instance.travel_time(pieces.tail[a], b)
    waiting = pieces.opens[b] - (pieces.closes[a] + pieces.duration[a] + time)
    late = pieces.opens[a] + pieces.duration[a] + time - pieces.closes[b]
    found: Floats = (
        way
        + params.waiting_weight * np.maximum(0.0, waiting)
        + params.lateness_weight * np.maximum(0.0, late)
    )
    return found


# --- for annealing -------------------------------------------------------------------------------


@dataclass(frozen=True)
class PieceContext:
    """What all threads know of a task whose plans consist of pieces."""

    task: Task
    params: Routes
    table: PieceTable
    near: Index  # (n, k)
    scale: float  # unit of temperatures
    sequences: dict[int, Ints] = field(default_factory=dict)  # locked ones, by their first customer
    scratch: Index = field(default_factory=lambda: np.zeros(0, np.int32))  # of `part_of_pieces`

    def plan(self, start: Solution) -> RouteLists:
        """Where the search begins: an empty plan if every route of the start has one stop only."""
        alone = all(len(route) == 1 for route in start.routes)
        return self.lists(Solution([]) if alone else start)

    def lists(self, solution: Solution) -> RouteLists:
        """A plan as lists."""
        known = np.zeros(self.task.instance.n, np.bool_)
        known[self.table.heads] = True
        routes = [route[known[route]] for route in solution.routes]
        order = np.concatenate([np.zeros(0, np.int64), *routes]).astype(np.int32)
        ends = np.cumsum([len(route) for route in routes]).astype(np.int32)
        kinds = kinds_of_routes(self.task.instance, solution).astype(np.int32)
        absent = np.setdiff1d(self.table.heads, order)
        total = float(cost(self.task.instance, solution)) + self.inside(absent)
        return RouteLists(order, ends, absent, total, kinds)

    def inside(self, heads: Ints) -> float:
        """The ways inside of pieces, which the cost of a plan has from the beginning."""
        locked = [self.sequences[i] for i in heads.tolist() if i in self.sequences]
        distance = self.task.instance.distance
        return float(sum(np.sum(distance(one[:-1], one[1:])) for one in locked))

    def snapshot(self, iterations: int, best: RouteLists) -> Snapshot:
        """The best plan after so many iterations more."""
        known = np.inf if len(best.absent) else best.cost
        return Snapshot(iterations, known, partial(self.solution, best))

    def solution(self, plan: RouteLists) -> Solution:
        """A plan with the customers inside its pieces."""
        routes = np.split(plan.order.astype(np.int64), plan.ends[:-1])
        if self.sequences:
            routes = [
                np.concatenate([self.sequences.get(i, np.array([i])) for i in route.tolist()])
                for route in routes
            ]
        if self.task.instance.fleet is None:
            return Solution(routes)
        return Solution(routes, numbers_of_kinds(self.task.instance, plan.kinds))

    def part(self, plan: RouteLists, chosen: Index, absent: Ints, parts: int) -> PiecePart:
        """Some routes as one of so many parts, which share what is left of the fleet."""
        annealing, count = self.params.annealing, self.table.vehicles.number
        used = np.bincount(plan.kinds, minlength=len(count))
        wanted = annealing.spare_routes + int(annealing.spare_share * len(plan.ends)) + len(absent)
        spare = np.clip(count - used, 0, wanted) // parts
        return part_of_pieces(
            self.table, self.near, self.params.pieces.neighbours, _lists(plan), chosen, absent,
            spare, self.scratch,
        )  # fmt: skip

    def anneal(
        self, part: PiecePart, temperature: float, steps: int, state: npt.NDArray[np.uint64]
    ) -> tuple[float, float, int]:
        """Change a part; returns (change of cost, that of the best, pieces that it leaves out)."""
        return anneal(part, self.params.piece_ruin, temperature, steps, state)

    @property
    def annealer(self) -> Callable[..., tuple[float, float, int]]:
        return partial(anneal, params=self.params.piece_ruin)

    def plan_of(self, part: PiecePart, cost: float, best: bool) -> RouteLists:
        """The plan that is one part, as it is or the best that the last slice has seen."""
        order, ends, kinds = lists_of_part(part, best)
        return RouteLists(order, ends, np.setdiff1d(self.table.heads, order), cost, kinds)

    def merged(
        self, plan: RouteLists, chosen: list[Index], parts: list[PiecePart], cost: float, best: bool
    ) -> RouteLists:
        """The plan with its chosen routes replaced by those of the parts."""
        taken = np.zeros(len(plan.ends), np.bool_)
        taken[np.concatenate(chosen)] = True
        order, ends, kinds = plan.order, plan.ends, [plan.kinds[~taken]]
        for part in parts:
            found = lists_of_part(part, best)
            order, ends = merge_lists(order, ends, taken, found.order, found.ends)
            kinds.append(found.kinds)
            taken = np.zeros(len(ends), np.bool_)
        return RouteLists(order, ends, plan.absent, cost, np.concatenate(kinds))


def _lists(plan: RouteLists) -> PieceLists:
    return PieceLists(plan.order, plan.ends, plan.kinds)


def heat_unit(task: Task) -> float:
    """The unit of temperatures: how far apart near customers would be if they were spread evenly.

    That is the mean distance to the fifth nearest of so many uniform points in a square, in which
    two are as far apart as here (the median). In clusters near customers are nearer, but routes do
    not change clusters in the heat of ways within them.
    """
    nodes, n = task.nearness.nodes, len(task.nearness.nodes)
    if n < 2:
        return 1.0
    others = [np.roll(nodes, max(1, k * n // 5)) for k in (1, 2)]
    apart = float(np.median([task.instance.distance(nodes, other) for other in others]))
    return 2.46 * apart / n**0.5 or 1.0


def piece_context(task: Task, params: Routes, locked: Sequence[Sequence[int]] = ()) -> PieceContext:
    """A task as a problem of pieces; some of its customers may be locked together."""
    table = piece_table(task.instance, locked)
    width = params.pieces.neighbours + params.pieces.spare_neighbours
    near = piece_neighbours(table, task, params.pieces, min(width, max(0, len(table.heads) - 1)))
    sequences = {int(one[0]): np.asarray(one, np.int64) for one in locked}
    scratch = np.full(task.instance.n, -1, np.int32)
    return PieceContext(task, params, table, near, heat_unit(task), sequences, scratch)

"""A plan after a change: only the surroundings of what has changed are destroyed and repaired."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from drhg.errors import InstanceError
from drhg.files.json import solution_row
from drhg.files.paths import PathLike
from drhg.files.registry import write_solution
from drhg.kernels import warmup
from drhg.plans.changed_routes import ChangedRoutes
from drhg.plans.changed_tour import ChangedTour
from drhg.plans.changes import Changes, inherited, under_way
from drhg.plans.surroundings import ReplanParams
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
    real_number,
    shown,
    whole_number,
)
from drhg.search.routes.strategy import Routes
from drhg.search.strategy import Strategy
from drhg.search.tours.strategy import Tours

KNOWN = (
    "asymmetric", "durations", "services", "windows", "release", "max_duration", "open", "path",
    "fixed", "locks",
)  # fmt: skip


@dataclass(frozen=True)
class Replanned:
    """What `replan` returns; the plan has passed the checker, unless customers are left out."""

    instance: Instance
    solution: Solution  # with the vehicles of the old plan
    cost: Cost
    changes: Changes
    changed_routes: tuple[int, ...]  # vehicles whose routes differ from the old plan's
    untouched: tuple[int, ...]  # vehicles whose routes are as they were
    moved: tuple[int, ...]  # customers with another vehicle or predecessor than before
    unplaced: tuple[int, ...]
    seconds: float

    def to_dict(self, file: PathLike | None = None) -> dict[str, Any]:
        """Everything as plain values, as the command line prints it; `file` is the instance's."""
        return solution_row(self.instance, self.solution, self.cost, file=file) | {
            "added": list(self.changes.added),
            "removed": list(self.changes.removed),
            "relocated": list(self.changes.moved),
            "demand": list(self.changes.demand),
            "times": list(self.changes.times),
            "lost": list(self.changes.lost),
            "changed_routes": list(self.changed_routes),
            "untouched_routes": list(self.untouched),
            "moved": list(self.moved),
            "unplaced": list(self.unplaced),
            "seconds": round(self.seconds, 4),
        }

    def save(self, path: PathLike) -> None:
        """Write the plan as the file's ending says; one that leaves customers out is refused."""
        if self.unplaced:
            raise InstanceError(
                f"{len(self.unplaced)} customers are left out: nothing written", file=str(path)
            )
        write_solution(path, self.instance, self.solution, self.cost)

    def summary(self) -> str:
        """One line for people."""
        shown_cost = f"{self.cost:,}" if isinstance(self.cost, int) else f"{self.cost:,.8g}"
        left = f", {len(self.unplaced)} customers left out" if self.unplaced else ""
        return (
            f"{self.changes.summary()}: cost {shown_cost}, {len(self.changed_routes)} of "
            f"{len(self.solution.routes)} routes changed, {len(self.moved)} customers with another "
            f"vehicle or predecessor, {self.seconds:.3f} s{left}"
        )


def replan(
    old: Solution,
    instance: Instance,
    *,
    old_instance: Instance | None = None,
    old_names: Sequence[str] | None = None,
    lost: Iterable[int] = (),
    driven: Mapping[int, int] | None = None,
    frozen: Iterable[int] = (),
    stability: float = 0.0,
    time_limit: float | None = None,
    seed: int = 0,
    params: ReplanParams | None = None,
) -> Replanned:
    """A plan for a new instance that is the old plan but for the surroundings of what has changed.

    Nodes are matched by names if both instances have them (or `old_names` are given), else by
    numbers. Stops may be added, removed, moved, or have another demand or other times; the last
    three are noticed if the old instance is given. Where stops leave, routes close up; who is new,
    or no longer fits, goes to its cheapest place, and the routes around every change are improved
    by ruin and recreate. All other routes stay as they are, and so does all of a tour that is not
    near a change. Locks of the new instance are kept.

    lost: vehicles of the old plan (by default numbered as its routes, from 1) that are gone.
    driven: how many stops of the old plan some vehicles have visited: their routes begin so.
    frozen: vehicles of the old plan whose routes stay.
    stability: the price, in units of the cost, of every customer whose vehicle or predecessor
        changes.
    time_limit: seconds to improve the surroundings; by default a tenth of a second or so.

    >>> import drhg
    >>> xy = [[0, 0], [0, 1], [0, 2], [9, 0], [9, 1]]
    >>> old = drhg.Solution([[1], [3]])
    >>> new = drhg.replan(old, drhg.cvrp(xy, [0, 1, 1, 1, 1], 2))
    >>> [route.tolist() for route in new.solution.routes], new.moved
    ([[1, 2], [3, 4]], ())
    """
    an_instance(instance)
    a_solution(old, "old")
    if why := not_known("replan", instance, KNOWN):
        raise InstanceError(f"{why}; solve with the old plan as start")
    stability = real_number("stability", stability, 0.0)
    if time_limit is not None:
        time_limit = real_number("time_limit", time_limit, 0.0)
    seed = whole_number("seed", seed, 0)
    if params is not None and not isinstance(params, ReplanParams):
        raise InstanceError(f"params must be ReplanParams, not {shown(params)}")
    strategy: Strategy = Routes() if instance.is_cvrp else Tours()
    parts = [warmup.EXPLAINING, warmup.ANNEALING] if instance.is_cvrp else [warmup.EXPLAINING]
    parts += [warmup.PIECES] if driven or frozen else []
    warmup.prepare([*parts, *strategy.parts(instance)], limit=np.inf)
    began = time.perf_counter()
    left = inherited(old, instance, old_instance, lost, old_names)
    instance = under_way(old, left, instance, driven, frozen)
    params = params or ReplanParams()
    if not instance.is_cvrp:
        tour = ChangedTour(instance, old, left, stability, params)
        tour.insert()
        tour.improve(time_limit, seed)
        return _replanned(instance, tour, left.changes, began)
    plan = ChangedRoutes(instance, old, left, stability, params)
    changed = left.changes
    seeds = [*changed.added, *changed.moved, *changed.demand, *changed.times]
    seeds += plan.keep_locks()
    seeds += plan.make_room()
    seeds += _beside_the_gaps(old, left.routes, left.torn)
    plan.insert()
    seeds = [node for node in dict.fromkeys(seeds) if node != instance.depot]
    plan.improve(seeds, time_limit, seed)
    return _replanned(instance, plan, left.changes, began)


def _beside_the_gaps(old: Solution, routes: Sequence[Ints], torn: Iterable[int]) -> list[int]:
    """A customer of each route that has lost some."""
    return [
        int(routes[r][len(routes[r]) // 2])
        for r in sorted(torn)
        if 0 < len(routes[r]) < len(old.routes[r])
    ]


def _replanned(
    instance: Instance, plan: ChangedRoutes | ChangedTour, changes: Changes, began: float
) -> Replanned:
    """The new plan, checked, and what is other than before."""
    plan.settle()
    solution = Solution(plan.routes, plan.vehicles if instance.is_cvrp else None)
    if not plan.absent and (found := check(instance, solution)):
        raise AssertionError(f"the new plan breaks a rule, please report it: {found[:3]}")
    driven = [(v, r) for v, r in zip(plan.vehicles, plan.routes, strict=True) if r]
    before = dict(zip(plan.vehicles, plan.old, strict=True))
    same = [vehicle for vehicle, route in driven if route == before[vehicle]]
    moved = plan.familiar.changed(plan.routes, plan.vehicles)
    return Replanned(
        instance, solution, cost(instance, solution), changes,
        tuple(v for v, _ in driven if v not in set(same)), tuple(same), tuple(sorted(moved)),
        tuple(sorted(plan.absent)), time.perf_counter() - began,
    )  # fmt: skip

"""The search for routes: which loop, for which size and which part of the time.

Small plans are the genetic search's. Larger ones are annealed: every thread has a copy, several
times from the start if there is time, and the best goes on. Large ones are shared: all threads
anneal one plan, each some neighbouring routes at a time; what happens in different parts always
fits together. In the end the genetic search improves such parts. Nothing here looks at the clock.

Rich problems (windows, durations, releases, one-way distances, open routes) have annealing only, of
pieces with resources.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from drhg.kernels import warmup
from drhg.problem import not_known, variants_of
from drhg.search.routes.params import (
    AnnealingParams,
    GeneticParams,
    PieceParams,
    PieceRuinParams,
    PoolParams,
    RouteMoveParams,
    RouteSizes,
    RuinParams,
    rich_annealing,
)
from drhg.search.strategy import Strategy

if TYPE_CHECKING:
    from drhg.problem import Instance
    from drhg.search.routes.schedule import AnnealingSchedule
    from drhg.search.strategy import Budget, Snapshot, Task


RICH = (
    "asymmetric",
    "durations",
    "services",
    "windows",
    "release",
    "max_duration",
    "open",
    "fleet",
)
LOCKED = ("fixed", "locks")


@dataclass(frozen=True)
class Routes(Strategy):
    """The search for the routes of a CVRP, by ruin and recreate and by a genetic algorithm.

    >>> Routes(genetic=GeneticParams(target_feasible=0.3)).sizes.genetic
    200
    """

    genetic: GeneticParams = field(default_factory=GeneticParams)
    annealing: AnnealingParams = field(default_factory=AnnealingParams)
    ruin: RuinParams = field(default_factory=RuinParams)
    moves: RouteMoveParams = field(default_factory=RouteMoveParams)
    sizes: RouteSizes = field(default_factory=RouteSizes)
    pieces: PieceParams = field(default_factory=PieceParams)
    piece_annealing: AnnealingParams = field(default_factory=rich_annealing)
    piece_ruin: PieceRuinParams = field(default_factory=PieceRuinParams)
    pool: PoolParams = field(default_factory=PoolParams)

    def run(self, task: Task, budget: Budget) -> Iterator[Snapshot]:
        """Improve the start of the task on all its threads, until nobody asks any more."""
        from drhg.search.routes.locked import locked_search

        with ThreadPoolExecutor(task.threads) as pool:
            if set(variants_of(task.instance)) & set(LOCKED):
                yield from locked_search(task, self, budget, pool)
            elif task.instance.rich:
                yield from self.search_pieces(task, budget, pool)
            else:
                yield from self._search(task, budget, pool)

    def _search(self, task: Task, budget: Budget, pool: Executor) -> Iterator[Snapshot]:
        """Plain routes: the genetic search if they are few, else annealing, then parts of them."""
        from drhg.search.routes.annealing import complete, improve
        from drhg.search.routes.context import search_context
        from drhg.search.routes.genetic import genetic_search
        from drhg.search.routes.subproblems import improve_subproblems

        context = search_context(task, self)
        plan = context.plan(task.start)
        end = self.sizes.end_of_annealing(plan.customers)
        endless = budget.fraction() is None
        schedule = self._schedule(task, budget, end, self.annealing)
        best = plan
        for best in complete(context, plan, pool, schedule):
            yield context.snapshot(schedule.last, best)
        long = self.genetic.has_long_routes(best.customers, len(best.ends))
        if self.sizes.is_genetic(best.customers, long, endless):
            task = replace(task, start=best.solution)
            yield from genetic_search(task, self.genetic, self.moves, pool, schedule.left)
        for better in improve(context, best, pool, schedule):
            yield context.snapshot(schedule.last, better)
            if (budget.fraction() or 0.0) >= end:
                break
        yield from improve_subproblems(context, better, pool, schedule)

    def search_pieces(self, task: Task, budget: Budget, pool: Executor) -> Iterator[Snapshot]:
        """Routes with windows and the like: annealing of pieces to the end."""
        from drhg.search.routes.annealing import complete, improve
        from drhg.search.routes.piece_context import piece_context
        from drhg.search.routes.route_pool import RoutePool

        context = piece_context(task, self)
        plan = context.plan(task.start)
        schedule = self._schedule(task, budget, 1.0, self.piece_annealing)
        best = plan
        for best in complete(context, plan, pool, schedule):
            yield context.snapshot(schedule.last, best)
        for better in improve(context, best, pool, schedule, RoutePool(context)):
            yield context.snapshot(schedule.last, better)

    def _schedule(
        self, task: Task, budget: Budget, end: float, params: AnnealingParams
    ) -> AnnealingSchedule:
        """The annealing of a task, which is cold at `end`, a share of the search."""
        from drhg.search.routes.schedule import AnnealingSchedule

        steps = self.sizes.part_steps if task.cluster is None else self.sizes.part_steps_far
        return AnnealingSchedule(budget, end, task.threads, task.instance.n, params, steps)

    def supports(self, instance: Instance) -> str | None:
        """Why an instance is not for this search, or None."""
        if not instance.is_cvrp:
            return "Routes is for a CVRP, and this is a TSP"
        return not_known("Routes", instance, (*RICH, *LOCKED))

    def spreads(self, instance: Instance) -> str | None:
        """Why a cluster cannot share this instance, or None: small plans are no matter of parts."""
        least = max(self.sizes.copies, self.sizes.subproblems) + 1
        if instance.n > least:
            return None
        return f"Routes shares plans among workers from {least} customers on"

    def parts(self, instance: Instance) -> list[warmup.Part]:
        """The kernels that the search for the routes of this instance may need."""
        if instance.rich:
            return [warmup.PIECES]
        customers = instance.n - 1
        genetic = customers <= self.sizes.subproblems
        needed = [warmup.GENETIC, warmup.LOCAL_SEARCH] if genetic else []
        limited = instance.vehicles is not None or instance.max_distance is not None
        if customers > self.sizes.genetic or limited:
            needed.append(warmup.ANNEALING)
        return needed

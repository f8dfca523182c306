"""The search for routes: which loop, for which size and which part of the time.

Small plans are the genetic search's. Larger ones are annealed: every thread has a copy, several
times from the start if there is time, and the best goes on. Large ones are shared: all threads
anneal one plan, each some neighbouring routes at a time; what happens in different parts always
fits together. In the end the genetic search improves such parts. Nothing here looks at the clock.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from drhg.kernels import warmup
from drhg.problem import not_known
from drhg.search.routes.params import (
    AnnealingParams,
    GeneticParams,
    PieceParams,
    RouteMoveParams,
    RouteSizes,
    RuinParams,
)
from drhg.search.strategy import Strategy

if TYPE_CHECKING:
    from drhg.problem import Instance
    from drhg.search.strategy import Budget, Snapshot, Task


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

    def run(self, task: Task, budget: Budget) -> Iterator[Snapshot]:
        """Improve the start of the task on all its threads, until nobody asks any more.

        A plan that leaves customers out is annealed as a whole until every customer has a route.
        """
        if task.instance.rich:
            yield from self._run_rich(task, budget)
        from drhg.search.routes.annealing import anneal_copies, anneal_together
        from drhg.search.routes.context import route_lists, search_context, snapshot
        from drhg.search.routes.genetic import genetic_search
        from drhg.search.routes.schedule import AnnealingSchedule
        from drhg.search.routes.subproblems import improve_subproblems

        context = search_context(task, self)
        plan = route_lists(task, task.start.routes)
        endless = budget.fraction() is None
        end = self.sizes.end_of_annealing(plan.customers)
        schedule = AnnealingSchedule(
            budget, end, task.threads, task.instance.n, self.annealing, self.sizes.part_steps
        )
        with ThreadPoolExecutor(task.threads) as pool:
            if len(plan.absent):
                for better in anneal_copies(context, plan, pool, schedule):
                    yield snapshot(schedule.last, better)
                    if not len(better.absent):
                        break
                plan = better
            long = self.genetic.has_long_routes(plan.customers, len(plan.ends))
            if self.sizes.is_genetic(plan.customers, long, endless):
                task = replace(task, start=plan.solution)
                yield from genetic_search(task, self.genetic, self.moves, pool, schedule.left)
            anneal = anneal_copies if plan.customers <= self.sizes.copies else anneal_together
            for better in anneal(context, plan, pool, schedule):
                yield snapshot(schedule.last, better)
                if (budget.fraction() or 0.0) >= end:
                    break
            yield from improve_subproblems(context, better, pool, schedule)

    def _run_rich(self, task: Task, budget: Budget) -> Iterator[Snapshot]:
        """The same for time windows and the like: annealing of pieces with resources."""
        from drhg.search.routes.annealing import anneal_copies, anneal_together
        from drhg.search.routes.piece_context import piece_context
        from drhg.search.routes.schedule import AnnealingSchedule

        context = piece_context(task, self)
        plan = context.plan(task.start)
        schedule = AnnealingSchedule(
            budget, 1.0, task.threads, task.instance.n, self.annealing, self.sizes.part_steps
        )
        with ThreadPoolExecutor(task.threads) as pool:
            if len(plan.ends) == len(plan.order):  # everybody alone is no start: insert them all
                plan = context.plan(Solution([]))
            if len(plan.absent):
                for better in anneal_copies(context, plan, pool, schedule):
                    yield context.snapshot(schedule.last, better)
                    if not len(better.absent):
                        break
                plan = better
            anneal = anneal_copies if plan.customers <= self.sizes.copies else anneal_together
            for better in anneal(context, plan, pool, schedule):
                yield context.snapshot(schedule.last, better)

    def supports(self, instance: Instance) -> str | None:
        """Why an instance is not for this search, or None."""
        if not instance.is_cvrp:
            return "Routes is for a CVRP, and this is a TSP"
        return not_known("Routes", instance)

    def parts(self, instance: Instance) -> list[warmup.Part]:
        """The kernels that the search for the routes of this instance may need."""
        customers = instance.n - 1
        genetic = customers <= self.sizes.subproblems
        needed = [warmup.GENETIC, warmup.LOCAL_SEARCH] if genetic else []
        limited = instance.vehicles is not None or instance.max_distance is not None
        if customers > self.sizes.genetic or limited:
            needed.append(warmup.ANNEALING)
        return needed

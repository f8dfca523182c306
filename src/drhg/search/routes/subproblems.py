"""Neighbouring routes of a larger plan as small problems, which the genetic search improves."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import replace

import numpy as np

from drhg.hypergraph.plan import Index
from drhg.problem import Solution, cost
from drhg.search.routes.context import RouteLists, SearchContext, snapshot, with_parts
from drhg.search.routes.genetic import genetic_search
from drhg.search.routes.route_groups import route_groups
from drhg.search.routes.schedule import AnnealingSchedule
from drhg.search.strategy import InThisThread, Snapshot, task_of


def improve_subproblems(
    context: SearchContext, plan: RouteLists, pool: Executor, schedule: AnnealingSchedule
) -> Iterator[Snapshot]:
    """Every thread improves some neighbouring routes of one plan, then others; never ends."""
    task, sizes = context.task, context.params.sizes
    rng = np.random.default_rng([task.seed, 5])
    while True:
        chosen = route_groups(task, plan, rng, sizes.subproblem_customers)
        spare = max(0, task.rules.vehicles - len(plan.ends)) // len(chosen)
        left = schedule.left
        each = left and -(-left // len(chosen))
        seeds = rng.integers(2**31, size=len(chosen)).tolist()
        subproblems = [
            Subproblem(context, plan, group, spare, each, seed)
            for group, seed in zip(chosen, seeds, strict=True)
        ]
        for _ in range(sizes.subproblem_children // sizes.subproblem_look):
            jobs = [pool.submit(one.improve, sizes.subproblem_look) for one in subproblems]
            schedule.count(sum(job.result() for job in jobs))
            total = plan.cost + sum(one.change for one in subproblems)
            better = with_parts(plan, chosen, [one.lists for one in subproblems], total)
            yield snapshot(schedule.last, better)
        plan = better


class Subproblem:
    """Some routes of a plan as a problem of their own."""

    def __init__(
        self, context: SearchContext, plan: RouteLists, routes: Index, spare: int,
        max_iters: int | None, seed: int,
    ) -> None:  # fmt: skip
        whole, rules, params = context.task.instance, context.task.rules, context.params
        parts = [plan.order[plan.ends[r - 1] if r else 0 : plan.ends[r]] for r in routes]
        self.nodes = np.append(rules.depot, np.concatenate(parts))
        local = np.arange(1, len(self.nodes))
        start = Solution(np.split(local, np.cumsum([len(part) for part in parts])[:-1]))
        small = replace(
            whole,
            xy=None if whole.xy is None else whole.xy[self.nodes],
            matrix=None if whole.matrix is None else whole.matrix[np.ix_(self.nodes, self.nodes)],
            demand=rules.demand[self.nodes],
            depot=0,
            vehicles=None if whole.vehicles is None else len(parts) + spare,
            names=None,
        )
        self._before = float(cost(small, start))
        task = task_of(small, start, seed, 1)
        self._search = genetic_search(task, params.genetic, params.moves, InThisThread(), max_iters)
        self._found = Snapshot(0, self._before, lambda: start)

    def improve(self, children: int) -> int:
        """Have so many children, or a few more; returns how many iterations that were."""
        done = 0
        while done < children * (len(self.nodes) - 1):
            self._found = next(self._search)
            done += self._found.iterations
            if self._found.iterations == 0:
                break
        return done

    @property
    def change(self) -> float:
        """The change of the cost: zero or less."""
        return self._found.cost - self._before

    @property
    def lists(self) -> tuple[Index, Index]:
        """The best routes, laid end to end in the plan's numbers."""
        routes = self._found.solution().routes
        ends = np.cumsum([len(route) for route in routes]).astype(np.int32)
        return self.nodes[np.concatenate(routes)].astype(np.int32), ends

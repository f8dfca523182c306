"""How good a new plan is after one order more, beside a search of the whole plan.

A re-solve of the whole plan improves everything, whether it has to do with the order or not. So
what it gains is measured twice, both times from the old plan and for as long: with the new order at
its cheapest place, and without it. The difference is what is due to the order:

    due = re-solve with the order + (old plan - re-solve without it, the mean of several seeds)

All searches have steps instead of seconds, so that a busy machine makes no difference: as many as a
quiet core of ours (AMD EPYC) makes in 100 s for the old plan, in 60 s for a re-solve, and in 2 s
for `replan`. Re-solves begin as cold as `replan` does: as hot as for a new plan, they would first
undo what is good.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from drhg.problem.parameters import Parameters, number

if TYPE_CHECKING:
    from drhg.problem import Instance, Solution


@dataclass(frozen=True)
class ChangeParams(Parameters):
    """What is measured."""

    customers: int = number(10_000, 1)
    """Of a uniform plan."""
    seed: int = number(5, 0)
    """Of that plan, and of the orders."""
    orders: int = number(3, 1)
    """Each is added to the old plan by itself."""
    old_steps: int = number(12_500_000, 1)
    """Steps that make the old plan."""
    steps: int = number(7_500_000, 1)
    """Steps of a re-solve."""
    replan_steps: int = number(220_000, 1)
    """Steps of `replan` with time; without, it has its own default."""
    temperature: float = number(0.03, 0.0)
    """At which a re-solve begins (see `AnnealingParams.first_temperature`)."""


def one_order_more(folder: Path, params: ChangeParams | None = None) -> Iterator[str]:
    """Lines about each order: what `replan` makes of it by default, and with more steps.

    The folder keeps the old plan and what re-solves have found, so that a changed `replan` is
    measured in seconds.
    """
    from drhg.files.registry import read_solution, write_solution
    from drhg.plans.replan import replan
    from drhg.plans.surroundings import ReplanParams
    from drhg.problem import cost
    from drhg.problem.generate import uniform_cvrp
    from drhg.session.solve import solve

    params = params or ChangeParams()
    folder.mkdir(parents=True, exist_ok=True)
    task, plan = uniform_cvrp(params.customers, seed=params.seed), folder / "old.sol"
    if not plan.exists():
        first = solve(task, max_iters=params.old_steps, threads=1)
        write_solution(plan, task, first.solution)
    old = read_solution(plan, task)
    was, resolves = float(cost(task, old)), _Resolves(folder / "resolves.json", params)
    seeds = range(params.orders)
    rest = float(np.mean([was - resolves.cost("without", task, k, old) for k in seeds]))
    yield f"{task.name}: old plan {was:.4f}, re-solves without an order {-rest:+.4f} in the mean"
    replan(old, task)  # loads what is compiled
    usual = ReplanParams()
    farther = replace(usual, customers=usual.most_customers, steps=params.replan_steps)
    gaps: dict[ReplanParams, list[float]] = {usual: [], farther: []}
    for k in seeds:
        new = _with_order(task, np.random.default_rng([params.seed, k]))
        inserted = replan(old, new, params=ReplanParams(steps=0))
        full = resolves.cost(f"with {k}", new, k, inserted.solution)
        due = full + rest
        yield (
            f"order {k}: inserted {inserted.cost - was:+.4f}, re-solve {full - was:+.4f}, due "
            f"{due - was:+.4f}"
        )
        for how in (usual, farther):
            found = replan(old, new, params=how)
            gaps[how].append(found.cost / due - 1.0)
            yield (
                f"  {how.steps:,} steps: {found.cost - was:+.4f}, {found.cost / full - 1:+.3%} "
                f"from the re-solve, {gaps[how][-1]:+.3%} from what is due, "
                f"{len(found.changed_routes)} routes changed"
            )
    for how in (usual, farther):
        yield f"{how.steps:,} steps: {np.mean(gaps[how]):+.3%} from what is due in the mean"


def _with_order(task: Instance, rng: np.random.Generator) -> Instance:
    """The instance with a customer more, somewhere."""
    assert task.xy is not None
    assert task.demand is not None
    demand = np.append(task.demand, rng.integers(1, 10) * task.demand_scale)
    return replace(task, xy=np.vstack((task.xy, rng.random(2))), demand=demand)


class _Resolves:
    """Searches of the whole plan, remembered in a file."""

    def __init__(self, file: Path, params: ChangeParams) -> None:
        self._file, self._params = file, params
        self._known = json.loads(file.read_text()) if file.exists() else {}

    def cost(self, what: str, task: Instance, seed: int, start: Solution) -> float:
        """The cost after a search of so many steps from this start."""
        from drhg.search.routes.params import AnnealingParams
        from drhg.search.routes.strategy import Routes
        from drhg.session.solve import solve

        steps, hot = self._params.steps, self._params.temperature
        key = f"{what}, seed {seed}, {steps} steps, {hot:g}"
        if key not in self._known:
            method = Routes(annealing=AnnealingParams(first_temperature=hot))
            found = solve(task, method=method, max_iters=steps, seed=seed, start=start, threads=1)
            self._known[key] = float(found.cost)
            self._file.write_text(json.dumps(self._known, indent=1))
        return float(self._known[key])

"""How good a new plan is after one order more, beside a search of the whole plan.

    python benchmarks/replan.py --into FOLDER

A re-solve of the whole plan improves everything, whether it has to do with the order or not. So
what it gains is measured twice, both times from the old plan and for as long: with the new order at
its cheapest place, and without it. The difference is what is due to the order:

    due = re-solve with the order + (old plan - re-solve without it)

`plain` is how far `replan` ends above the re-solve with the order, `fair` how far above what is
due. Searches of the whole plan have as many steps as a quiet core of ours (AMD EPYC) makes in 100 s
for the old plan, and in 60 s for a re-solve, so that a busy machine makes no difference. Re-solves
begin as cold as `replan` does: as hot as for a new plan, they would first undo what is good.

The folder keeps the old plan and what re-solves have found, so that a changed `replan` is measured
in seconds.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

import numpy as np

import drhg
from drhg.plans.surroundings import ReplanParams
from drhg.problem import Instance, Solution, cost
from drhg.search.routes.params import AnnealingParams


def with_order(task: Instance, rng: np.random.Generator) -> Instance:
    """The instance with a customer more, somewhere."""
    assert task.xy is not None
    assert task.demand is not None
    demand = np.append(task.demand, rng.integers(1, 10) * task.demand_scale)
    return replace(task, xy=np.vstack((task.xy, rng.random(2))), demand=demand)


class Resolves:
    """Searches of the whole plan, remembered in a file."""

    def __init__(self, folder: Path, steps: int, temperature: float) -> None:
        self._file, self._steps, self._temperature = folder / "resolves.json", steps, temperature
        self._known = json.loads(self._file.read_text()) if self._file.exists() else {}

    def cost(self, what: str, task: Instance, seed: int, start: Solution) -> float:
        """The cost after a search of so many steps from this start."""
        key = f"{what}, seed {seed}, {self._steps} steps, {self._temperature:g}"
        if key not in self._known:
            method = drhg.Routes(annealing=AnnealingParams(first_temperature=self._temperature))
            found = drhg.solve(
                task, method=method, max_iters=self._steps, seed=seed, start=start, threads=1
            )
            self._known[key] = float(found.cost)
            self._file.write_text(json.dumps(self._known, indent=1))
        return float(self._known[key])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--into", type=Path, required=True, help="folder, made if missing")
    parser.add_argument("--customers", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=5, help="of the instance")
    parser.add_argument("--first", type=int, default=12_500_000, help="steps for the old plan")
    parser.add_argument("--steps", type=int, default=7_500_000, help="of a re-solve")
    parser.add_argument("--temperature", type=float, default=ReplanParams().first_temperature)
    parser.add_argument("--orders", type=int, default=3)
    parser.add_argument("--limits", type=float, nargs="*", default=[0.0, 2.0], help="of replan")
    given = parser.parse_args()
    given.into.mkdir(parents=True, exist_ok=True)
    task = drhg.uniform_cvrp(given.customers, seed=given.seed)
    plan = given.into / "old.sol"
    if not plan.exists():
        first = drhg.solve(task, max_iters=given.first, threads=1)
        drhg.write_solution(plan, task, first.solution)
    old = drhg.read_solution(plan, task)
    was, resolves = float(cost(task, old)), Resolves(given.into, given.steps, given.temperature)
    print(f"old plan {was:.4f}")
    drhg.replan(old, task)  # loads what is compiled
    for k in range(given.orders):
        new = with_order(task, np.random.default_rng([given.seed, k]))
        inserted = drhg.replan(old, new, params=ReplanParams(steps=0))
        rest = was - resolves.cost("without", task, k, old)
        full = resolves.cost(f"with {k}", new, k, inserted.solution)
        print(
            f"order {k}: inserted {inserted.cost - was:+.4f}, re-solve {full - was:+.4f}, without "
            f"the order {-rest:+.4f}, due {full + rest - was:+.4f}"
        )
        for limit in given.limits:
            found = drhg.replan(old, new, time_limit=limit or None)
            plain, fair = found.cost / full - 1.0, found.cost / (full + rest) - 1.0
            print(
                f"  {found.seconds:6.3f} s: {found.cost - was:+.4f}, plain {plain:+.3%}, "
                f"fair {fair:+.3%}, {len(found.changed_routes)} routes changed",
                flush=True,
            )


if __name__ == "__main__":
    main()

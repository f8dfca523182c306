"""A destroy operator of one's own: regions around edges that are long for their surroundings.

python examples/destroy_operator.py
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import drhg
from drhg.hypergraph.cut import destroy_nearest
from drhg.hypergraph.nearness import Nearness
from drhg.hypergraph.plan import Index, Plan, Rules


@dataclass(frozen=True)
class LongEdges:
    """Of some random nodes, destroy around the one that lies farthest from its successor.

    k: how many nodes are destroyed.
    tries: how many random nodes are compared.
    """

    k: int = 40
    tries: int = 8

    def supports(self, instance: drhg.Instance) -> str | None:
        """Why this instance is refused, or None. A bare matrix has no coordinates to measure."""
        return "LongEdges needs coordinates" if instance.xy is None else None

    def __call__(
        self, rules: Rules, plan: Plan, nearness: Nearness, rng: np.random.Generator
    ) -> tuple[Index, Index]:
        nodes = rng.choice(nearness.nodes, size=self.tries)
        after = plan.order[(plan.pos[nodes] + 1) % len(plan.order)]
        xy = rules.space.points
        length = np.hypot(*(xy[after] - xy[nodes]).T)
        k = min(self.k, len(nearness.nodes))
        ranked = nearness.around([nodes[np.argmax(length)]], k)  # (1, k), nearest first
        return destroy_nearest(rules, plan, ranked, k)


if __name__ == "__main__":
    cities = drhg.uniform_tsp(300, seed=1)
    for destroy in (drhg.Cluster(k=(40, 40)), LongEdges(k=40)):
        result = drhg.solve(cities, method=drhg.Regions(destroy=destroy), max_iters=300)
        print(f"{type(destroy).__name__}: {result.cost:.4f}")

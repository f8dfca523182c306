"""A repairer of one's own: several insertions in random order, of which the shortest counts.

python examples/repairer.py
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import drhg
from drhg.hypergraph.judge import Repaired, walk
from drhg.hypergraph.plan import OK, Rules
from drhg.hypergraph.reduce import Graphs
from drhg.repair.insertion import InsertionRepair


@dataclass(frozen=True)
class BestInsertion:
    """Insert the destroyed nodes several times and keep the best result of every graph.

    tries: how many times.
    """

    tries: int = 5

    def __call__(self, rules: Rules, graphs: Graphs, rng: np.random.Generator) -> Repaired:
        found = [InsertionRepair()(rules, graphs, rng) for _ in range(self.tries)]
        lengths = []
        for repaired in found:
            verdict, length, _ = walk(rules, graphs, repaired)  # each (B,), one entry per graph
            lengths.append(np.where(verdict == OK, length, np.inf))
        best = np.argmin(lengths, axis=0)  # (B,)
        rows = np.arange(len(graphs))
        order = np.stack([repaired.order for repaired in found])[best, rows]
        via = np.stack([repaired.via for repaired in found])[best, rows]
        return Repaired(order, via)


if __name__ == "__main__":
    deliveries = drhg.uniform_cvrp(100, seed=1)
    for repair in (drhg.Insertion(), BestInsertion()):
        result = drhg.solve(deliveries, method=drhg.Regions(repair=repair), max_iters=300)
        print(f"{type(repair).__name__}: {result.cost:.4f}")

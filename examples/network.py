"""A network of one's own as a repairer: anything that scores the nodes of a decision.

    python examples/network.py

This one has two weights and learns nothing: it likes near nodes, and a little more those that are
the end of a hyper-edge. A torch module with the same method `logits` works in the same way.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

import drhg
from drhg.network.repairer import NeuralRepair
from drhg.network.views import State
from drhg.network.weights import ModelConfig


@dataclass
class TwoWeights:
    """A scorer: `config` says what it wants to see, `logits` scores what it sees."""

    distance: float = -50.0
    hyper_edge: float = 0.1
    config: ModelConfig = field(default_factory=lambda: ModelConfig.of("economy"))

    def logits(self, state: State) -> np.ndarray:
        """(B, W, 1): the score of every remaining node; minus infinity where there is none."""
        there = np.arange(state.nodes.shape[1]) < state.count[:, None]  # (B, W)
        far = np.hypot(state.nodes[..., 0], state.nodes[..., 1])  # seen from the current node
        partner = np.hypot(state.nodes[..., 2], state.nodes[..., 3])
        scores = self.distance * far + self.hyper_edge * (partner != far)
        return np.where(there, scores, -np.inf).astype(np.float32)[..., None]


if __name__ == "__main__":
    cities = drhg.uniform_tsp(200, seed=1)
    repair = NeuralRepair(TwoWeights(), greedy=False)  # draws decisions by their probability
    result = drhg.solve(cities, method=drhg.Regions(repair=repair), max_iters=200)
    print(f"{result.cost:.4f} from {result.trace[1].cost:.4f}")

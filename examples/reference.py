"""A good tour of a TSP instance by another solver (fast_tsp), to measure gaps against.

    python examples/reference.py out/demo.tsp 60

fast_tsp wants whole distances up to 65,535, so distances are scaled and rounded for its search;
the cost printed is that of its tour under the instance's own metric.
"""

from __future__ import annotations

import sys

import fast_tsp
import numpy as np

import drhg

path, seconds = sys.argv[1], float(sys.argv[2])
instance = drhg.read(path)
nodes = np.arange(instance.n)
distances = instance.distance(nodes[:, None], nodes[None, :])
scaled = np.rint(distances * (65_535 / distances.max())).astype(np.int64)
tour = drhg.Solution([fast_tsp.find_tour(scaled, duration_seconds=seconds)])
assert drhg.check(instance, tour) == []
print(drhg.cost(instance, tour))

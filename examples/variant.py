"""A variant of one's own: an open tour, which need not come back to where it began.

    python examples/variant.py

A variant is three things: data that says what is asked, a checker that knows the rule and shares no
code with the search, and a way to solve it. This one is solved as a TSP with one node more, at
distance 0 from all others; the tour is cut open there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

import drhg


@dataclass(frozen=True)
class OpenTour:
    """The data: points, and perhaps the node at which the tour must begin."""

    xy: np.ndarray  # (n, 2)
    first: int | None = None

    def length(self, order: np.ndarray) -> float:
        steps = np.diff(self.xy[order], axis=0)
        return math.fsum(np.hypot(*steps.T))

    def check(self, order: np.ndarray) -> list[str]:
        """Everything that is wrong with an order; the plainest code that can tell."""
        found = [f"node {i} is visited {order.tolist().count(i)} times"
                 for i in range(len(self.xy)) if order.tolist().count(i) != 1]  # fmt: skip
        if self.first is not None and order[0] != self.first:
            found.append(f"it begins at node {order[0]}, not {self.first}")
        return found

    def as_tsp(self) -> drhg.Instance:
        """The same as a tour: the last node is nowhere, next to every other one."""
        n = len(self.xy)
        matrix = np.zeros((n + 1, n + 1))
        matrix[:n, :n] = np.hypot(*(self.xy[:, None] - self.xy[None, :]).T)
        fixed = () if self.first is None else ((n, self.first),)  # an edge that is never cut
        whole = np.rint(matrix * 1e6).astype(np.int64)
        return drhg.tsp(matrix=whole, fixed_edges=fixed, name="open tour")


def solve_open(problem: OpenTour, **limits: object) -> np.ndarray:
    """The best order found; `limits` are those of `drhg.solve`."""
    n = len(problem.xy)
    tour = drhg.solve(problem.as_tsp(), **limits).solution.tour
    order = np.roll(tour, -int(np.flatnonzero(tour == n)[0]))[1:]
    if problem.first is not None and order[0] != problem.first:
        order = order[::-1]
    assert problem.check(order) == []
    return order


if __name__ == "__main__":
    points = np.random.default_rng(1).random((60, 2))
    for first in (None, 0):
        problem = OpenTour(points, first)
        order = solve_open(problem, max_iters=500)
        print(f"from node {order[0]} to node {order[-1]}: {problem.length(order):.4f}")

"""What to cut: operators that the region search calls once per iteration.

Each is made by a function of the numbers of nodes to destroy, low and high, and answers with rows
of cut positions. An operator that has a method `learn` is told after each call what came of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from drhg.errors import DrhgError
from drhg.hypergraph import Index, Nearness, Plan, Rules, destroy_nearest

WINDOW = 10_000  # positions up to which a destroyed cluster may spread along the tour
LONGEST = 10.0  # customers of a string, at most
FLOOR = 0.2  # share of the choices that is the same for every operator
KEEP = 0.98  # of what was learnt stays, each time an operator is used
CHOICES = 16  # centres of which the one left alone for longest is taken
GROW = 1.3  # times as many nodes after a step that gained nothing
SHRINK = 0.95  # after one that did

Destroy: TypeAlias = Callable[[Rules, Plan, Nearness, np.random.Generator], tuple[Index, Index]]
"""Choose what to cut: rows of cut positions and how many each has."""


def nearest_cluster(
    low: int = 20, high: int = 100, depot_edges: str = "adjacent", grid: int = 0
) -> Destroy:
    """Destroy k nodes nearest to a centre, k uniform in [low, high] (paper, "Testing").

    The centre is a random node, or with `grid` a random cell's middle in a grid of so many cells
    per side over the instance (the paper's choice for tours, with grid = sqrt(T)).
    """

    def destroy(
        rules: Rules, plan: Plan, nearness: Nearness, rng: np.random.Generator
    ) -> tuple[Index, Index]:
        k = _drawn(low, high, nearness, rng)
        if grid > 0:
            centre = nearness.corner + (rng.integers(grid, size=2) + 0.5) / grid * nearness.extent
            ranked = nearness.around_points(centre[None, :], k)
        else:
            ranked = nearness.around(rng.choice(nearness.nodes, size=1), k)
        return destroy_nearest(rules, plan, ranked, k, depot_edges=depot_edges, reach=WINDOW)

    return destroy


def adjacent_strings(low: int = 10, high: int = 30, depot_edges: str = "adjacent") -> Destroy:
    """Destroy about k customers, in strings of routes beside one another.

    Slack induction by string removals (Christiaens and Vanden Berghe 2020): one string of each
    route around a random customer, every other one with a customer in its middle spared.
    """

    def destroy(
        rules: Rules, plan: Plan, nearness: Nearness, rng: np.random.Generator
    ) -> tuple[Index, Index]:
        _need_routes(rules)
        k = _drawn(low, high, nearness, rng)
        limit = min(LONGEST, len(nearness.nodes) / max(1, plan.n_routes))
        cut: list[Index] = []
        count = 0
        for node in _neighbours_by_route(plan, nearness, rng, 8 * k):
            if count >= k:
                break
            p = int(plan.pos[node])
            first, last = plan.first[plan.route[p]], plan.last[plan.route[p]]
            there = int(last - first - 1)
            size = min(int(1 + rng.random() * min(there, 2 * limit)), there)
            start = int(rng.integers(max(first + 1, p - size + 1), min(p, last - size) + 1))
            string = plan.order[start : start + size]
            if size > 2 and rng.random() < 0.5:
                string = np.delete(string, rng.integers(1, size - 1))
            cut.append(string)
            count += len(string)
        nodes = np.concatenate(cut)[None, :]
        return destroy_nearest(rules, plan, nodes, count, depot_edges=depot_edges)

    return destroy


def neighbouring_routes(low: int = 100, high: int = 200) -> Destroy:
    """Dissolve whole routes beside one another, as many as make at least k customers."""

    def destroy(
        rules: Rules, plan: Plan, nearness: Nearness, rng: np.random.Generator
    ) -> tuple[Index, Index]:
        _need_routes(rules)
        k = _drawn(low, high, nearness, rng)
        cut: list[Index] = []
        count = 0
        for node in _neighbours_by_route(plan, nearness, rng, 4 * k):
            if count >= k:
                break
            r = plan.route[plan.pos[node]]
            cut.append(plan.order[plan.first[r] + 1 : plan.last[r]])
            count += len(cut[-1])
        return destroy_nearest(rules, plan, np.concatenate(cut)[None, :], count)

    return destroy


def _drawn(low: int, high: int, nearness: Nearness, rng: np.random.Generator) -> int:
    top = min(high, len(nearness.nodes))
    return int(rng.integers(min(low, top), top + 1))


def _need_routes(rules: Rules) -> None:
    if rules.depot < 0:
        raise DrhgError("this way to destroy is for routes; a tour has only one")


def _neighbours_by_route(
    plan: Plan, nearness: Nearness, rng: np.random.Generator, reach: int
) -> Index:
    """Of each route near a random customer the customer nearest to it, nearest first."""
    near = nearness.around(rng.choice(nearness.nodes, size=1), reach)[0]
    _, first = np.unique(plan.route[plan.pos[near]], return_index=True)
    found: Index = near[np.sort(first)]
    return found


class Covering:
    """Clusters that cover the solution: where nothing was done for longest, larger as gains dry up.

    Of some random centres the one is taken whose node was destroyed longest ago; what was repaired
    with a gain counts as not done yet, because there may be more. The number of nodes starts low.
    """

    def __init__(self, low: int, high: int, depot_edges: str = "adjacent") -> None:
        self.low, self.high, self.depot_edges = low, high, depot_edges
        self.size = float(low)
        self.turn = 0
        self.done = np.zeros(0, np.int64)  # (n,): when a node was last destroyed in vain
        self.ranked = np.zeros(0, np.int32)

    def __call__(
        self, rules: Rules, plan: Plan, nearness: Nearness, rng: np.random.Generator
    ) -> tuple[Index, Index]:
        if len(self.done) != rules.n:
            self.done = np.zeros(rules.n, np.int64)
        self.turn += 1
        k = min(round(self.size), len(nearness.nodes))
        few = rng.choice(nearness.nodes, size=CHOICES)
        centre = few[np.argmin(self.done[few])]
        ranked = nearness.around([centre], k)
        self.ranked = ranked[0]
        return destroy_nearest(rules, plan, ranked, k, depot_edges=self.depot_edges, reach=WINDOW)

    def learn(self, gain: float) -> None:
        """What the last call gained; nothing if its repair was not accepted or is no better."""
        gained = gain > 0.0
        self.done[self.ranked] = 0 if gained else self.turn
        size = self.size * (SHRINK if gained else GROW)
        self.size = min(max(size, self.low), self.high)


class Adaptive:
    """Choose among operators, those more often that lately gained more per use."""

    def __init__(self, operators: Sequence[Destroy]) -> None:
        self.operators = list(operators)
        self.gains = np.zeros(len(self.operators))
        self.chosen = 0

    def __call__(
        self, rules: Rules, plan: Plan, nearness: Nearness, rng: np.random.Generator
    ) -> tuple[Index, Index]:
        shares = np.full(len(self.gains), 1.0 / len(self.gains))
        total = self.gains.sum()
        if total > 0:
            shares = FLOOR * shares + (1 - FLOOR) * self.gains / total
        self.chosen = int(rng.choice(len(shares), p=shares))
        return self.operators[self.chosen](rules, plan, nearness, rng)

    def learn(self, gain: float) -> None:
        """What the last call gained; nothing if its repair was not accepted or is no better."""
        self.gains[self.chosen] = KEEP * self.gains[self.chosen] + (1 - KEEP) * max(0.0, gain)


def adaptive(*operators: Destroy) -> Adaptive:
    """A choice between operators that follows what they gain; counts uses, never time.

    >>> destroy = adaptive(nearest_cluster(20, 60), adjacent_strings(10, 30))
    """
    return Adaptive(operators)

"""How good a plan is around each of its stops: regions in which nothing better exists."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from drhg.hypergraph import Nearness, Plan, Rules, destroy_to_size, plan_of, reduce, rules_of
from drhg.parallel import cores
from drhg.plans.exhaust import MOST_PIECES, cheapest_repairs
from drhg.problem import Floats, Instance, Ints, Solution
from drhg.problem.tolerances import GAIN

BLOCK = 500  # regions that a thread looks at together; changes no result


@dataclass(frozen=True)
class Certificate:
    """What an exhaustive look at the surroundings of every stop has found.

    The region of a stop is the reduced graph that cutting edges around it, nearest stops first,
    leaves with `size` nodes. It is *closed* if every repair of it costs at least as much as the
    plan does.
    """

    size: int
    stops: Ints  # (S,): the stops around which was looked
    gains: Floats  # (S,): what the best repair of each region saves; 0 where there is none

    @property
    def share(self) -> float:
        """The share of regions that admit no better repair."""
        return float(np.mean(self.gains == 0.0)) if len(self.stops) else 1.0

    @property
    def open_stops(self) -> Ints:
        """Stops in whose regions something better exists, most to gain first."""
        found = np.flatnonzero(self.gains > 0.0)
        return self.stops[found[np.argsort(-self.gains[found], kind="stable")]]


def certificate(
    instance: Instance,
    solution: Solution,
    size: int,
    told: Callable[[int], None] = lambda count: None,
) -> Certificate:
    """Look exhaustively at the region of every stop of a valid solution; `told` counts them."""
    rules, nearness = rules_of(instance), Nearness(instance)
    plan = plan_of(rules, solution)
    stops = nearness.nodes
    blocks = [stops[at : at + BLOCK] for at in range(0, len(stops), BLOCK)]

    def look(block: Ints) -> Floats:
        gains = _gains(rules, plan, nearness, block, size)
        told(len(block))
        return gains

    with ThreadPoolExecutor(cores()) as pool:
        found = list(pool.map(look, blocks))
    return Certificate(size, stops, np.concatenate([np.zeros(0), *found]))


def _gains(rules: Rules, plan: Plan, nearness: Nearness, stops: Ints, size: int) -> Floats:
    ranked = nearness.around(stops, max(size, MOST_PIECES))
    graphs = reduce(rules, plan, *destroy_to_size(rules, plan, ranked, size))
    gain = graphs.cut_cost - cheapest_repairs(rules, plan, graphs)
    return np.where(gain > GAIN * (1.0 + graphs.cut_cost), gain, 0.0)

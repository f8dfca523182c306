"""Parameters of the search for tours: every number that steers it, with its unit and its source.

Where no source is named, a value was chosen on the instances that `docs/benchmarks.md` lists for
that purpose. `MoveParams` is shared with the repair by local search.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from drhg.local_search.params import MoveParams
from drhg.problem.parameters import Parameters, number

__all__ = ["KickParams", "MoveParams", "PopulationParams", "TourSizes"]


@dataclass(frozen=True)
class TourSizes(Parameters):
    """Which search suits a tour of which size, in nodes."""

    population_from: int = number(8, 2)
    """From here on a population is evolved, if there is time; smaller tours are kicked."""
    population_up_to: int = number(200_000, 1)
    """Larger tours are kicked region by region from the start on."""
    shared_from: int = number(3_000, 5)
    """From here on nodes are renumbered along a space-filling curve, so that neighbours are close
    in memory, and threads kick one tour in common; below, each kicks a tour of its own."""
    dummy_up_to: int = number(2_000, 0)
    """Paths with a free end are exact tours with one node more up to here, which needs a matrix;
    larger ones are tours without one edge, which costs them about one edge."""
    directed_up_to: int = number(3_000, 1)
    """Largest asymmetric instance: its symmetric matrix has four times as many entries."""

    def evolves(self, n: int) -> bool:
        """Whether a population is evolved."""
        return self.population_from <= n <= self.population_up_to

    def is_large(self, n: int) -> bool:
        """Whether even a descent of the whole tour takes too long."""
        return n > self.population_up_to


@dataclass(frozen=True)
class PopulationParams(Parameters):
    """A population of locally optimal tours, crossed by edge assembly (EAX).

    EAX is Nagata and Kobayashi (2013), "A powerful genetic algorithm using edge assembly crossover
    for the traveling salesman problem". Theirs has 300 tours at any size; here the size follows
    the time, since a search may have a tenth of a second or an hour.
    """

    smallest: int = number(8, 2)
    """Tours of any population, at least."""
    largest_first: int = number(32, 2)
    """Tours of the first population, at most."""
    first_nodes: int = number(160_000, 1)
    """Nodes of the first population in all its tours, between those two bounds."""
    most_nodes: int = number(6_000_000, 1)
    """Nodes of any later population in all its tours, at most; bounds the memory."""
    growth: float = number(5.0, 1.0)
    """Times as many tours as before in the next population, at most."""
    growth_unlimited: float = number(2.0, 1.0)
    """The same if it is not known how much of the search the last population took."""
    time_share: float = number(0.6, 0.0, 1.0)
    """Share of the time left that the next population may take if it takes as long per tour."""
    kicks_per_node: float = number(0.1, 0.0)
    """Kicks per node that improve every new tour after its descent."""
    course_factor: float = number(0.03, 0.0)
    """Tours with n nodes are crossed until they have converged for `course_factor *
    n ** course_exponent` times as long as making them took."""
    course_exponent: float = number(0.5, 0.0)
    """See `course_factor`; both fitted to runs with 200 to 5,000 nodes. A population gets as many
    tours as will converge in time by this rule, or is given up if those are too few."""
    children: int = number(30, 1)
    """Children of which the best replaces its first parent (EAX: 30)."""
    patience: int = number(10, 1)
    """Generations after which the mean or the best tour must have become shorter (EAX: 30 for the
    best of all)."""
    least_progress: float = number(1e-4, 0.0)
    """Relative decrease of the mean length over these generations that counts."""
    greedy_from: float = number(0.85, 0.0, 1.0)
    """Share of the search after which children are chosen by length alone, not by diversity."""
    nodes_per_slice: int = number(20_000, 1)
    """Nodes of the pairs that a thread crosses between two looks at the search."""

    def first_size(self, n: int) -> int:
        """Tours of the first population."""
        return max(self.smallest, min(self.largest_first, self.first_nodes // n))

    def affordable(self, n: int, left: float, made: int, used: float) -> float:
        """Tours that converge in the share of the search that was left before the first was made.

        `used` is what making the first `made` ones took of it.
        """
        if used <= 0.0:
            return math.inf
        course = float(self.course_factor * n**self.course_exponent)
        return left * made / (used * (1.0 + course))

    def next_size(self, n: int, size: int, begun: float, now: float) -> int:
        """Tours of the next population, after one of `size` tours from share `begun` to `now`."""
        growth = self.growth_unlimited
        if now > begun:
            growth = min(self.growth, self.time_share * (1 - now) / (now - begun))
        return max(self.first_size(n), min(int(size * growth), self.most_nodes // n))


@dataclass(frozen=True)
class KickParams(Parameters):
    """Kicks: a double bridge of short segments, then local search around it."""

    per_slice: int = number(5_000, 1)
    """Kicks of a thread between two looks at the search."""
    per_sync: int = number(20, 1)
    """Kicks per node after which threads that kick copies go on from the best of them."""
    region_nodes: int = number(10_000, 5)
    """Nodes of a large tour that a thread works on at a time."""
    per_region_node: float = number(0.1, 0.0)
    """Kicks per node and visit of a region."""
    per_region_node_far: float = number(0.5, 0.0)
    """The same for a worker of a cluster, to which the region has to travel."""
    regions_per_stretch: int = number(4, 1)
    """A thread leaves its stretch of the tour for another after as many visits as the stretch has
    nodes per `region_nodes`, divided by this number."""

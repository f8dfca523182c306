"""Parameters of the search for routes: every number that steers it, with its unit and its source.

HGS is Vidal (2022), "Hybrid genetic search for the CVRP: Open-source implementation and SWAP*
neighborhood"; SISR is Christiaens and Vanden Berghe (2020), "Slack induction by string removals for
vehicle routing problems". Where a value differs from theirs, or has no source, it was chosen on the
instances of `docs/benchmarks.md`.
"""

from __future__ import annotations

from dataclasses import dataclass

from drhg.problem.parameters import Parameters, number


@dataclass(frozen=True)
class GeneticParams(Parameters):
    """The population of the genetic search (HGS), for small plans and for parts of larger ones."""

    # Sizes. HGS: 25 plans, 40 children, 100 plans in the beginning, and never a larger population.
    population_size: int = number(16, 2)
    """Plans that each subpopulation (feasible, infeasible) keeps when survivors are selected."""
    generation_size: float = number(0.6, 0.0)
    """Children between two selections of survivors, as a multiple of the population size."""
    initial_children: float = number(3.0, 0.0)
    """Children made from random sequences before parents are chosen, as such a multiple."""
    patience: float = number(150.0, 0.1)
    """Children without a better plan after which a new population begins, as such a multiple."""
    growth: int = number(2, 1)
    """Times as many plans in the next population."""
    largest_population: int = number(64, 2)
    """Plans up to which populations grow."""
    batch: int = number(4, 1)
    """Children that a thread makes before the population takes them up."""

    # Survivors.
    elite: int = number(4, 0)
    """Plans that are safe because of their cost (HGS: 4)."""
    closest: int = number(5, 1)
    """Nearest plans whose mean distance says how diverse a plan is (HGS: 5)."""

    # Penalties for loads and lengths beyond their limits.
    target_feasible: float = number(0.2, 0.0, 1.0)
    """Share of children that should keep each limit (HGS: 0.2)."""
    target_tolerance: float = number(0.05, 0.0, 1.0)
    """How far the share may be from the target without a change of the penalty (HGS: 0.05)."""
    penalty_interval: int = number(100, 1)
    """Children between two changes of the penalties (HGS: 100)."""
    penalty_increase: float = number(1.2, 1.0)
    """Factor if too few children keep the limit (HGS: 1.2)."""
    penalty_decrease: float = number(0.85, 0.0, 1.0)
    """Factor if too many do (HGS: 0.85)."""
    lowest_penalty: float = number(1e-3, 0.0)
    """Lower bound, in first penalties."""
    highest_penalty: float = number(1e4, 0.0)
    """Upper bound, in first penalties."""
    assumed_feasible: int = number(20, 0)
    """Children that are taken to have kept all limits before the first was made (HGS: 100)."""
    own_price_share: float = number(0.25, 0.0, 1.0)
    """Share of children with penalties of their own in plans of long routes; in others all have."""
    price_spread: float = number(3.0, 1.0)
    """A child's own penalties are the population's, times or divided by up to this factor."""
    repair_probability: float = number(0.5, 0.0, 1.0)
    """Probability that an infeasible child gets a second local search (HGS: 0.5)."""
    repair_penalty_factor: float = number(10.0, 1.0)
    """Times the penalties in that second search (HGS: 10)."""

    # Routes of a child.
    long_route: float = number(15.0, 0.0)
    """Customers per route, on average, from which on routes count as long."""
    split_overload: float = number(1.5, 1.0)
    """Capacities that a route of the split may carry (HGS: 1.5)."""
    fleet_factor: float = number(1.3, 1.0)
    """Routes that a plan may have, in vehicles that the whole demand fills (HGS: 1.3) ..."""
    fleet_margin: int = number(3, 0)
    """... and so many more (HGS: 3), if the fleet is not limited."""

    def has_long_routes(self, customers: int, routes: int) -> bool:
        """Whether a plan has long routes on average."""
        return customers >= self.long_route * routes


@dataclass(frozen=True)
class RouteMoveParams(Parameters):
    """The local search of the genetic search: which moves it tries."""

    neighbours: int = number(20, 1)
    """Nearest customers beside which a customer may be moved (HGS: 20)."""
    swap_star_neighbours: int = number(8, 0)
    """Nearest customers of which one must be in the other route for a SWAP* move to it."""
    swap_star_places: int = number(3, 1)
    """Cheapest places in a route that SWAP* remembers for a customer (HGS: 3)."""


@dataclass(frozen=True)
class RuinParams(Parameters):
    """One step of ruin and recreate (SISR)."""

    average_removed: float = number(10.0, 1.0)
    """Customers removed by a step, on average (SISR: 10)."""
    longest_string: float = number(10.0, 1.0)
    """Customers removed from one route, at most (SISR: 10)."""
    split_probability: float = number(0.5, 0.0, 1.0)
    """Probability that a string spares some customers in its middle (SISR: 0.5)."""
    split_growth: float = number(0.01, 0.0, 0.99)
    """Probability that it spares one more (SISR's beta: 0.01)."""
    blink_rate: float = number(0.01, 0.0, 0.99)
    """Probability that a place for a customer is overlooked (SISR: 0.01)."""
    random_order: int = number(4, 0)
    """Weight of inserting the removed customers in random order (SISR: 4) ..."""
    heavy_first: int = number(4, 0)
    """... those of large demand first (SISR: 4) ..."""
    far_first: int = number(2, 0)
    """... those far from the depot first (SISR: 2) ..."""
    near_first: int = number(1, 1)
    """... those near it first (SISR: 1) ..."""
    narrow_first: int = number(2, 0)
    """... and where there are time windows, those with a short window first (SISR: 2) ..."""
    early_first: int = number(2, 0)
    """... those whose window opens early first (SISR: 2) ..."""
    late_first: int = number(2, 0)
    """... those whose window closes late first (SISR: 2)."""
    neighbours: int = number(40, 1)
    """Nearest customers beside which a customer may be inserted (SISR: everywhere)."""
    spare_neighbours: int = number(20, 0)
    """Further ones that take the place of those that are not in the part."""


@dataclass(frozen=True)
class PieceRuinParams(RuinParams):
    """One step of ruin and recreate where there are windows and the like."""

    longest_string: float = number(40.0, 1.0)
    """Customers removed from one route, at most (SISR: 10)."""
    strings: float = number(0.7, 0.0)
    """Customers removed by a step, on average, at least so many times the longest string: where
    routes are long, more than one of them loses a good part (SISR: no such rule)."""
    change_vehicle: float = number(0.4, 0.0, 1.0)
    """Probability that a route that lost customers changes its vehicle, if there are types."""
    skip_type: float = number(0.1, 0.0, 0.99)
    """Probability that a type of vehicles is overlooked when a customer may open a route."""


@dataclass(frozen=True)
class PieceParams(Parameters):
    """What is different for routes with windows, durations, one-way distances or open ends."""

    neighbours: int = number(40, 1)
    """Likeliest neighbours beside which a customer may be inserted (SISR: everywhere)."""
    spare_neighbours: int = number(20, 0)
    """Further ones that take the place of those that are not in the part."""
    waiting_weight: float = number(0.2, 0.0)
    """What waiting between two customers counts, in distance, when neighbours are ranked (Vidal,
    Crainic, Gendreau and Prins 2013: 0.2)."""
    lateness_weight: float = number(1.0, 0.0)
    """The same for being late (theirs: 1.0)."""
    locked_walks: int = number(10, 1)
    """Anneals of a problem with groups to keep together or chains: the first has half of the time,
    in each of the others one group goes to another vehicle and some chains are turned."""
    loose_share: float = number(0.2, 0.0, 0.9)
    """Share of a search for such a problem, if no start is given, that goes without them: its plan
    tells which vehicles suit the groups, and in which direction chains are driven. None is for more
    than `all_pairs` customers."""
    all_pairs: int = number(2000, 1)
    """Customers up to which all pairs are ranked; beyond, only those that are near ..."""
    near_candidates: int = number(4, 1)
    """... so many times as many as are wanted."""


@dataclass(frozen=True)
class PoolParams(Parameters):
    """Routes of good plans, of which the cheapest plan is put together (set partitioning)."""

    begin: float = number(0.9, 0.0, 1.0)
    """Share of an anneal after which that is done; the rest goes on with what was found."""
    slack: float = number(0.1, 0.0)
    """Routes are taken from plans that are at most so much dearer than the best, as a share."""
    routes: int = number(5000, 1)
    """Routes that are remembered."""
    columns: int = number(600, 1)
    """Routes that branch and bound may choose from, those of lowest reduced cost."""
    nodes: int = number(20, 1)
    """Nodes of branch and bound."""


@dataclass(frozen=True)
class AnnealingParams(Parameters):
    """Temperatures of simulated annealing, and how many times it starts anew.

    Temperatures count in mean distances from a customer to its fifth nearest neighbour.
    """

    last_temperature: float = number(0.07, 1e-9)
    """Temperature at the end."""
    first_temperature: float = number(0.1, 0.0)
    """Temperature at the beginning, times the root of the steps per customer of the anneal."""
    highest_temperature: float = number(2.0, 1e-9)
    """Temperature that the beginning does not exceed."""
    scale_neighbour: int = number(5, 1)
    """The nearest neighbour whose mean distance is the unit of temperatures."""
    restart_steps: float = number(3000.0, 1.0)
    """Steps per customer that make up one anneal; k anneals take k * k times as many."""
    restart_decision: float = number(0.02, 0.0, 1.0)
    """Share of the annealing after which the number of anneals is fixed."""
    endless_cycle: int = number(1000, 1)
    """Steps per customer of the first cycle from hot to cold in a search without an end."""
    spare_routes: int = number(10, 0)
    """Empty routes beside those of the plan ..."""
    spare_share: float = number(0.5, 0.0)
    """... and so many more, as a share of them."""


def rich_annealing() -> AnnealingParams:
    """Temperatures where there are windows and the like."""
    return AnnealingParams(
        first_temperature=0.1, highest_temperature=3.0, last_temperature=0.02, restart_steps=200.0
    )


@dataclass(frozen=True)
class RouteSizes(Parameters):
    """Which search for which number of customers, and how large the parts are."""

    genetic: int = number(200, 0)
    """Customers up to which the genetic search is all that is needed."""
    genetic_long: int = number(300, 0)
    """The same for plans of long routes."""
    copies: int = number(600, 0)
    """Customers up to which every thread anneals a copy of the plan; beyond, all share one plan.

    Up to so many the genetic search is also the one that never ends.
    """
    subproblems: int = number(2000, 0)
    """Customers up to which the genetic search improves parts of the plan in the end."""
    annealing_share: float = number(0.75, 0.0, 1.0)
    """Share of the search that belongs to annealing before that."""
    part_customers: int = number(1000, 1)
    """Customers that a thread anneals at a time, at most, if threads share a plan."""
    part_steps: int = number(5000, 1)
    """Steps between two looks at what threads have found; parts are chosen anew then."""
    part_steps_far: int = number(10_000, 1)
    """The same for a worker of a cluster, to which the part has to travel."""
    subproblem_customers: int = number(200, 1)
    """Customers of a part that the genetic search improves."""
    subproblem_children: int = number(1000, 1)
    """Children of such a part before another is chosen."""
    subproblem_look: int = number(40, 1)
    """Children between two looks at what threads have found there."""

    def is_genetic(self, customers: int, long_routes: bool, endless: bool) -> bool:
        """Whether the genetic search is all that a plan needs."""
        if endless:
            return customers <= self.copies
        return customers <= (self.genetic_long if long_routes else self.genetic)

    def end_of_annealing(self, customers: int) -> float:
        """The share of the search after which subproblems follow, 1 if none do."""
        return self.annealing_share if customers <= self.subproblems else 1.0

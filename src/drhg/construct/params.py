"""Parameters of the first solutions, chosen so that a million nodes take seconds."""

from __future__ import annotations

from dataclasses import dataclass

from drhg.problem.parameters import Parameters, number


@dataclass(frozen=True)
class StartParams(Parameters):
    """Where the starts stop looking at everything and look at near nodes instead."""

    all_pairs: int = number(512, 2)
    """Path ends up to which greedy edges considers every pair; for savings, half the customers."""
    all_pairs_if_stuck: int = number(8_000, 2)
    """The same for greedy edges after a round that joined less than a quarter of the ends."""
    greedy_neighbours: int = number(8, 1)
    """Near nodes to which greedy edges considers an edge."""
    savings_neighbours: int = number(100, 1)
    """Near customers with which savings considers a pair (as in most codes of the field)."""
    least_savings_neighbours: int = number(10, 1)
    """The same in a plan so large that `savings_pairs` is reached."""
    savings_pairs: int = number(10_000_000, 1)
    """Pairs that savings sorts, at most; bounds the memory."""
    insertion_scan: int = number(1_500, 2)
    """Nodes up to which random insertion tries every place; then only those next to near nodes."""
    insertion_neighbours: int = number(16, 1)
    """Near nodes next to which random insertion tries places."""
    insertion_samples: int = number(500, 1)
    """Customers with room that are tried where no near one has any."""
    longest_sweep_route: int = number(5_000, 1)
    """Customers of a route up to which a sweep visits the nearest customer next, which takes
    quadratic time; longer routes follow a space-filling curve."""


USUAL = StartParams()

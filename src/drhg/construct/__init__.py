"""First solutions."""

from drhg.construct.curves import (
    hilbert_order,
    space_filling,
)
from drhg.construct.params import StartParams
from drhg.construct.starts import (
    STARTS,
    construct,
    greedy,
    insertion,
    savings,
    shaken_greedy,
    starts_for,
    sweep,
)

__all__ = [
    "STARTS",
    "StartParams",
    "construct",
    "greedy",
    "hilbert_order",
    "insertion",
    "savings",
    "shaken_greedy",
    "space_filling",
    "starts_for",
    "sweep",
]

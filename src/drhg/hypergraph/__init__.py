"""The idea: cut edges of a plan, reduce what stays to hyper-edges, judge a repair, restore."""

from drhg.hypergraph.cut import (
    DEPOT_EDGES,
    destroy_nearest,
    destroy_to_size,
    is_fixed,
)
from drhg.hypergraph.features import (
    features,
)
from drhg.hypergraph.judge import (
    Repaired,
    judge,
    judge_row,
    present,
    walk,
)
from drhg.hypergraph.nearness import (
    Nearness,
)
from drhg.hypergraph.plan import (
    EVERYWHERE,
    NOT_A_REPAIR,
    OK,
    OVERLOAD,
    TOO_LONG,
    Flags,
    Index,
    Plan,
    Rules,
    indexed,
    plan_of,
    rules_of,
    solution_of,
)
from drhg.hypergraph.reduce import (
    Graphs,
    reduce,
    repeated,
)
from drhg.hypergraph.restore import (
    restore,
    restore_in_place,
)

__all__ = [
    "DEPOT_EDGES",
    "EVERYWHERE",
    "NOT_A_REPAIR",
    "OK",
    "OVERLOAD",
    "TOO_LONG",
    "Flags",
    "Graphs",
    "Index",
    "Nearness",
    "Plan",
    "Repaired",
    "Rules",
    "destroy_nearest",
    "destroy_to_size",
    "features",
    "indexed",
    "is_fixed",
    "judge",
    "judge_row",
    "plan_of",
    "present",
    "reduce",
    "repeated",
    "restore",
    "restore_in_place",
    "rules_of",
    "solution_of",
    "walk",
]

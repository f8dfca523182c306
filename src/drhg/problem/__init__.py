"""What is asked: instances, metrics, solutions, the checker."""

from drhg.problem.arguments import (
    Cost,
    Floats,
    Ints,
    from_zero,
    one_of,
    real_number,
    shown,
    whole_number,
)
from drhg.problem.checker import (
    check,
    cost,
    validated,
)
from drhg.problem.instance import (
    Instance,
    an_instance,
    cvrp,
    tsp,
    whole_demand,
)
from drhg.problem.metrics import (
    EARTH_RADIUS_KM,
    SPHERE_RADIUS_M,
    Metric,
    flattened,
    middle_of,
    on_sphere,
)
from drhg.problem.solution import (
    Solution,
    a_solution,
)

__all__ = [
    "EARTH_RADIUS_KM",
    "SPHERE_RADIUS_M",
    "Cost",
    "Floats",
    "Instance",
    "Ints",
    "Metric",
    "Solution",
    "a_solution",
    "an_instance",
    "check",
    "cost",
    "cvrp",
    "flattened",
    "from_zero",
    "middle_of",
    "on_sphere",
    "one_of",
    "real_number",
    "shown",
    "tsp",
    "validated",
    "whole_demand",
    "whole_number",
]

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
from drhg.problem.build import cvrp, tsp, vrp
from drhg.problem.checker import (
    check,
    cost,
    validated,
)
from drhg.problem.fields import whole_demand
from drhg.problem.fleet import (
    VehicleType,
    a_fleet,
    depots_of_routes,
    kinds_of,
    kinds_of_routes,
    numbers_of_kinds,
    vehicle_called,
    vehicle_numbers,
    whole_demands,
)
from drhg.problem.instance import (
    Instance,
    an_instance,
)
from drhg.problem.locks import Locks, Resolved, resolve
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
from drhg.problem.timetable import RouteSchedule, schedule
from drhg.problem.variants import not_known, variants_of

__all__ = [
    "EARTH_RADIUS_KM",
    "SPHERE_RADIUS_M",
    "Cost",
    "Floats",
    "Instance",
    "Ints",
    "Locks",
    "Metric",
    "Resolved",
    "RouteSchedule",
    "Solution",
    "VehicleType",
    "a_fleet",
    "a_solution",
    "an_instance",
    "check",
    "cost",
    "cvrp",
    "depots_of_routes",
    "flattened",
    "from_zero",
    "kinds_of",
    "kinds_of_routes",
    "middle_of",
    "not_known",
    "numbers_of_kinds",
    "on_sphere",
    "one_of",
    "real_number",
    "resolve",
    "schedule",
    "shown",
    "tsp",
    "validated",
    "variants_of",
    "vehicle_called",
    "vehicle_numbers",
    "vrp",
    "whole_demand",
    "whole_demands",
    "whole_number",
]

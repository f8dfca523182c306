"""drhg: routing problems solved by destroy and repair on hyper-graphs.

>>> import drhg
>>> result = drhg.solve(drhg.uniform_tsp(50, seed=1), max_iters=100)
>>> drhg.check(result.instance, result.solution)
[]
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from drhg.errors import DrhgError, InstanceError, ModelError, SolutionError

if TYPE_CHECKING:
    from drhg.destroy.operators import Adaptive, Cluster, Covering, Strings, WholeRoutes
    from drhg.files.registry import read, read_solution, write_solution
    from drhg.files.stops import read_table
    from drhg.kernels.warmup import WarmupProgress, warmup
    from drhg.plans.explain import Explanation, explain
    from drhg.plans.replan import Replanned, replan
    from drhg.plans.surroundings import ReplanParams
    from drhg.problem import (
        Instance,
        Locks,
        Metric,
        RouteSchedule,
        Solution,
        VehicleType,
        check,
        cost,
        cvrp,
        schedule,
        tsp,
        vrp,
    )
    from drhg.problem.generate import clustered_tsp, uniform_cvrp, uniform_tsp, x_cvrp
    from drhg.roads import Osrm, RoadMatrix, RoadParams, Valhalla, road_matrix
    from drhg.search.criteria import Anneal, Improve, Progress
    from drhg.search.regions import Regions
    from drhg.search.repairers import Hybrid, Insertion, Library, LocalSearch, Neural
    from drhg.search.routes.params import (
        AnnealingParams,
        GeneticParams,
        PieceParams,
        PieceRuinParams,
        PoolParams,
        RouteMoveParams,
        RouteSizes,
        RuinParams,
    )
    from drhg.search.routes.strategy import Routes
    from drhg.search.strategy import Strategy
    from drhg.search.tours.params import KickParams, MoveParams, PopulationParams, TourSizes
    from drhg.search.tours.strategy import Tours
    from drhg.search.walks import Sharing
    from drhg.session.result import Result, TracePoint
    from drhg.session.solve import solve, solve_many

__version__ = "0.1.0"

# Loaded on first use, so that `import drhg` and `drhg --help` are quick.
_LAZY = {
    "Instance": "problem",
    "Locks": "problem",
    "Metric": "problem",
    "Solution": "problem",
    "VehicleType": "problem",
    "check": "problem",
    "cost": "problem",
    "cvrp": "problem",
    "tsp": "problem",
    "Explanation": "plans.explain",
    "explain": "plans.explain",
    "Replanned": "plans.replan",
    "replan": "plans.replan",
    "ReplanParams": "plans.surroundings",
    "vrp": "problem",
    "schedule": "problem",
    "RouteSchedule": "problem",
    "read": "files",
    "read_solution": "files",
    "read_table": "files",
    "write_solution": "files",
    "Osrm": "roads",
    "RoadMatrix": "roads",
    "RoadParams": "roads",
    "Valhalla": "roads",
    "road_matrix": "roads",
    "uniform_tsp": "problem.generate",
    "clustered_tsp": "problem.generate",
    "uniform_cvrp": "problem.generate",
    "x_cvrp": "problem.generate",
    "Adaptive": "destroy.operators",
    "Cluster": "destroy.operators",
    "Covering": "destroy.operators",
    "Strings": "destroy.operators",
    "WholeRoutes": "destroy.operators",
    "Hybrid": "search.repairers",
    "Insertion": "search.repairers",
    "Library": "search.repairers",
    "LocalSearch": "search.repairers",
    "Neural": "search.repairers",
    "Anneal": "search.criteria",
    "Improve": "search.criteria",
    "Regions": "search.regions",
    "Routes": "search.routes.strategy",
    "AnnealingParams": "search.routes.params",
    "GeneticParams": "search.routes.params",
    "PieceParams": "search.routes.params",
    "PieceRuinParams": "search.routes.params",
    "PoolParams": "search.routes.params",
    "RouteMoveParams": "search.routes.params",
    "RouteSizes": "search.routes.params",
    "RuinParams": "search.routes.params",
    "Sharing": "search.walks",
    "Tours": "search.tours.strategy",
    "KickParams": "search.tours.params",
    "MoveParams": "search.tours.params",
    "PopulationParams": "search.tours.params",
    "TourSizes": "search.tours.params",
    "Strategy": "search.strategy",
    "Progress": "search.criteria",
    "Result": "session.result",
    "TracePoint": "session.result",
    "solve": "session.solve",
    "solve_many": "session.solve",
    "WarmupProgress": "kernels.warmup",
    "warmup": "kernels.warmup",
}

__all__ = [
    "Adaptive",
    "Anneal",
    "AnnealingParams",
    "Cluster",
    "Covering",
    "DrhgError",
    "Explanation",
    "GeneticParams",
    "Hybrid",
    "Improve",
    "Insertion",
    "Instance",
    "InstanceError",
    "KickParams",
    "Library",
    "LocalSearch",
    "Locks",
    "Metric",
    "ModelError",
    "MoveParams",
    "Neural",
    "Osrm",
    "PieceParams",
    "PieceRuinParams",
    "PoolParams",
    "PopulationParams",
    "Progress",
    "Regions",
    "ReplanParams",
    "Replanned",
    "Result",
    "RoadMatrix",
    "RoadParams",
    "RouteMoveParams",
    "RouteSchedule",
    "RouteSizes",
    "Routes",
    "RuinParams",
    "Sharing",
    "Solution",
    "SolutionError",
    "Strategy",
    "Strings",
    "TourSizes",
    "Tours",
    "TracePoint",
    "Valhalla",
    "VehicleType",
    "WarmupProgress",
    "WholeRoutes",
    "check",
    "clustered_tsp",
    "cost",
    "cvrp",
    "explain",
    "read",
    "read_solution",
    "read_table",
    "replan",
    "road_matrix",
    "schedule",
    "solve",
    "solve_many",
    "tsp",
    "uniform_cvrp",
    "uniform_tsp",
    "vrp",
    "warmup",
    "write_solution",
    "x_cvrp",
]


if not TYPE_CHECKING:  # type checkers know the names from above, and that there are no others

    def __getattr__(name: str) -> Any:
        if name not in _LAZY:
            raise AttributeError(f"module 'drhg' has no attribute {name!r}")
        return getattr(importlib.import_module(f"drhg.{_LAZY[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])

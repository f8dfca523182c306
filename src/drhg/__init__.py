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
    from drhg.generate import clustered_tsp, uniform_cvrp, uniform_tsp, x_cvrp
    from drhg.io import read, read_solution, write_solution
    from drhg.problem import Instance, Metric, Solution, check, cost, cvrp, tsp
    from drhg.solver import Result, solve, solve_many

__version__ = "0.1.0"

# Loaded on first use, so that `import drhg` and `drhg --help` are quick.
_LAZY = {
    "Instance": "problem",
    "Metric": "problem",
    "Solution": "problem",
    "check": "problem",
    "cost": "problem",
    "cvrp": "problem",
    "tsp": "problem",
    "read": "io",
    "read_solution": "io",
    "write_solution": "io",
    "uniform_tsp": "generate",
    "clustered_tsp": "generate",
    "uniform_cvrp": "generate",
    "x_cvrp": "generate",
    "Result": "solver",
    "solve": "solver",
    "solve_many": "solver",
}

__all__ = [
    "DrhgError",
    "Instance",
    "InstanceError",
    "Metric",
    "ModelError",
    "Result",
    "Solution",
    "SolutionError",
    "check",
    "clustered_tsp",
    "cost",
    "cvrp",
    "read",
    "read_solution",
    "solve",
    "solve_many",
    "tsp",
    "uniform_cvrp",
    "uniform_tsp",
    "write_solution",
    "x_cvrp",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'drhg' has no attribute {name!r}")
    return getattr(importlib.import_module(f"drhg.{_LAZY[name]}"), name)

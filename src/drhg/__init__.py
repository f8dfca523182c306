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
    from drhg.criteria import Progress
    from drhg.generate import clustered_tsp, uniform_cvrp, uniform_tsp, x_cvrp
    from drhg.io import read, read_solution, write_solution
    from drhg.precompile import WarmupProgress, warmup
    from drhg.problem import Instance, Metric, Solution, check, cost, cvrp, tsp
    from drhg.solver import Result, TracePoint, solve, solve_many

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
    "Progress": "criteria",
    "Result": "solver",
    "TracePoint": "solver",
    "solve": "solver",
    "solve_many": "solver",
    "WarmupProgress": "precompile",
    "warmup": "precompile",
}

__all__ = [
    "DrhgError",
    "Instance",
    "InstanceError",
    "Metric",
    "ModelError",
    "Progress",
    "Result",
    "Solution",
    "SolutionError",
    "TracePoint",
    "WarmupProgress",
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

"""What a solve returns."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from drhg.errors import SolutionError
from drhg.files.geojson import solution_to_geojson
from drhg.files.json import solution_row
from drhg.files.paths import PathLike
from drhg.files.registry import write_solution
from drhg.files.routes import RouteRow, route_rows, stop_table
from drhg.problem import Cost, Instance, Solution


@dataclass(frozen=True)
class TracePoint:
    """When a new best was found."""

    seconds: float  # since the clock started, which is when the kernels were ready
    iterations: int
    cost: Cost


@dataclass(frozen=True)
class Result:
    """What `solve` returns.

    The solution has passed the checker, unless the status is `infeasible` or `no_search`: then
    customers are left out. `no_search` says that there was no search that could have placed them.

    >>> import drhg
    >>> drhg.solve(drhg.tsp([[0, 0], [0, 1], [1, 0]], name="three"), max_iters=9).summary()
    'three: cost 3.41421, 3 nodes, 0.0 s, 0 iterations, ended by iterations'
    """

    instance: Instance
    solution: Solution
    cost: Cost
    status: str  # target, time, iterations, no_improve, interrupted, memory, infeasible, no_search
    seconds: float  # of the search, from the moment when the kernels were ready
    iterations: int
    seed: int
    method: str  # its name, or the class of the strategy
    trace: tuple[TracePoint, ...]
    unplaced: tuple[int, ...] = ()  # customers left out, counted from 0
    compile_seconds: float = 0.0  # before the search: loading kernels, or compiling them
    warnings: tuple[str, ...] = ()  # what a reader of the result should know

    def to_dict(self, file: PathLike | None = None) -> dict[str, Any]:
        """Everything but the trace, as the command line prints it; `file` is the instance's."""
        row = solution_row(self.instance, self.solution, self.cost, file=file)
        return row | {
            "status": self.status,
            "seconds": round(self.seconds, 3),
            "compile_seconds": round(self.compile_seconds, 3),
            "iterations": self.iterations,
            "seed": self.seed,
            "method": self.method,
            "unplaced": list(self.unplaced),
            "warnings": list(self.warnings),
        }

    def to_json(self, file: PathLike | None = None) -> str:
        """`to_dict` as one line of JSON, which `drhg check`, `plot` and `solve -i` can read."""
        return json.dumps(self.to_dict(file))

    def routes_table(self) -> list[RouteRow]:
        """Every route in a line: its stops, load and length, the first and the last stop."""
        return route_rows(self.instance, self.solution)

    def to_dataframe(self) -> Any:
        """A pandas DataFrame with a row per stop: route, position, name, load, distance so far."""
        import pandas

        return pandas.DataFrame(stop_table(self.instance, self.solution))

    def to_geojson(self) -> dict[str, Any]:
        """Routes as lines and stops as points, of an instance with latitudes and longitudes."""
        return solution_to_geojson(self.instance, self.solution, self.cost)

    def save(self, path: PathLike) -> None:
        """Write the solution as the file's ending says: .tour, .sol, .json, .csv, .geojson, .html.

        A plan that leaves customers out is refused.
        """
        if self.unplaced:
            left = self.instance.called(*self.unplaced[:5])
            raise SolutionError(
                f"{len(self.unplaced)} customers are left out, among them {left}: nothing written",
                file=str(path),
            )
        write_solution(path, self.instance, self.solution, self.cost)

    def summary(self) -> str:
        """One line for people."""
        routes = f"{len(self.solution.routes)} routes, " if self.instance.is_cvrp else ""
        left = f", {len(self.unplaced)} customers left out" if self.unplaced else ""
        shown = f"{self.cost:,}" if isinstance(self.cost, int) else f"{self.cost:g}"
        return (
            f"{self.instance.name}: cost {shown}, {routes}{self.instance.n:,} nodes, "
            f"{self.seconds:.1f} s, {self.iterations:,} iterations, ended by {self.status}{left}"
        )

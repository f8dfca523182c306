"""Solutions: tours and sets of routes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from drhg.errors import InstanceError, SolutionError
from drhg.problem.arguments import Ints, frozen, shown, whole_number


def a_solution(value: Any, name: str = "solution") -> Solution:
    """The argument, if it is a solution; else an error that names it."""
    if not isinstance(value, Solution):
        raise SolutionError(
            f"{name} must be a Solution, such as drhg.Solution([[0, 2, 1]]), not {shown(value)}"
        )
    return value


@dataclass(frozen=True, eq=False)
class Solution:
    """Routes as arrays of node numbers from 0, the depot left out; a TSP tour is its only route.

    Two solutions are equal if they have the same routes in the same order: the same tour from
    another node on is another solution. Equal ones have equal hashes.

    `vehicles` says which vehicle drives each route, counted from 1; None where all are alike.

    >>> Solution([[3, 1], [], [2]], vehicles=[1, 2, 4]).vehicles
    (1, 4)
    """

    routes: tuple[Ints, ...]
    vehicles: tuple[int, ...] | None

    def __init__(
        self, routes: Iterable[npt.ArrayLike], vehicles: Iterable[int] | None = None
    ) -> None:
        if isinstance(routes, (str, bytes)) or not isinstance(routes, Iterable):
            raise SolutionError(
                f"routes must be a list of lists of node numbers, not {shown(routes)}"
            )
        arrays: list[Ints] = []
        used: list[bool] = []
        for route in routes:
            try:
                array = np.asarray(route)
            except (TypeError, ValueError):  # lists of unequal length
                raise SolutionError("routes: a route is a list of node numbers") from None
            if array.ndim != 1 or not (array.size == 0 or np.issubdtype(array.dtype, np.integer)):
                flat = "; a tour is a list of one route: [[0, 2, 1]]" if array.ndim == 0 else ""
                raise SolutionError(
                    f"routes: a route is a list of node numbers, not {shown(route)}{flat}"
                )
            used.append(array.size > 0)
            if array.size:
                arrays.append(frozen(array.astype(np.int64)))
        object.__setattr__(self, "routes", tuple(arrays))
        object.__setattr__(self, "vehicles", _numbers_of(vehicles, used))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Solution):
            return NotImplemented
        same = len(self.routes) == len(other.routes) and self.vehicles == other.vehicles
        return same and all(map(np.array_equal, self.routes, other.routes))

    def __hash__(self) -> int:
        return hash(tuple(route.tobytes() for route in self.routes))

    def __setstate__(self, state: dict[str, Any]) -> None:  # a pickled array forgets that it is
        object.__setattr__(self, "routes", tuple(map(frozen, state["routes"])))  # read-only
        object.__setattr__(self, "vehicles", state["vehicles"])

    @property
    def tour(self) -> Ints:
        """The only route: the visiting order of a TSP."""
        if len(self.routes) != 1:
            raise SolutionError(f"{len(self.routes)} routes are not one tour")
        return self.routes[0]

    def __repr__(self) -> str:
        nodes = sum(len(route) for route in self.routes)
        return f"Solution({len(self.routes)} routes, {nodes} nodes)"


def _numbers_of(vehicles: Any, used: list[bool]) -> tuple[int, ...] | None:
    """The vehicles of those routes that visit anything, each one once."""
    if vehicles is None:
        return None
    if isinstance(vehicles, (str, bytes)) or not isinstance(vehicles, Iterable):
        raise SolutionError(f"vehicles must be a list of numbers, not {shown(vehicles)}")
    numbers = list(vehicles)
    if len(numbers) != len(used):
        raise SolutionError(f"{len(numbers)} vehicles for {len(used)} routes")
    try:
        numbers = [whole_number("a vehicle", vehicle, 1) for vehicle in numbers]
    except InstanceError as error:
        raise SolutionError(error.reason) from None
    kept = tuple(number for number, visits in zip(numbers, used, strict=True) if visits)
    if len(set(kept)) < len(kept):
        twice = next(number for number in kept if kept.count(number) > 1)
        raise SolutionError(f"vehicle {twice} has two routes")
    return kept

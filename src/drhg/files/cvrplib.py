"""CVRPLIB text: plans of routes."""

from __future__ import annotations

import re

import numpy as np

from drhg import problem
from drhg.errors import SolutionError
from drhg.files.messages import errors_as, fail, quoted
from drhg.files.sections import NUMBER, WHOLE, plain
from drhg.problem import Cost, Instance, Solution

_ROUTE = re.compile(r"Route[ \t]*#([0-9]{1,9})[ \t]*:(.*)")
_COST = re.compile(r"[Cc]ost[ \t]*:?[ \t]*(.*)")


def parse_sol(text: str | bytes, instance: Instance, *, file: str | None = None) -> Solution:
    """The routes of a CVRPLIB .sol text ('Route #1: 3 1', 'Cost 12'); nodes count from 0.

    Where vehicles differ or locks name them, a route has its vehicle's number, and may be empty.
    """
    routes: list[list[int]] = []
    ended = False
    with errors_as(SolutionError, file):
        lines = plain(text).decode().split("\n")
        if not instance.is_cvrp:
            fail("a .sol file is for a CVRP, but the instance is a TSP", 1)
        for number, line in enumerate((line.strip(" \t") for line in lines), start=1):
            route, cost = _ROUTE.fullmatch(line), _COST.fullmatch(line)
            if ended and line:
                fail(f"text after the cost: {quoted(line)}", number)
            elif route:
                if int(route[1]) != len(routes) + 1:
                    fail(f"route {int(route[1])} where route {len(routes) + 1} is due", number)
                routes.append([_sol_node(word, instance.n, number) for word in route[2].split()])
            elif cost and NUMBER.fullmatch(cost[1]):
                ended = True
            elif line:
                fail(f"neither 'Route #{len(routes) + 1}: ...' nor 'Cost ...'", number)
    return Solution(routes, range(1, len(routes) + 1) if _named(instance) else None)


def _named(instance: Instance) -> bool:
    """Whether it matters which vehicle drives which route."""
    locked = instance.locks is not None and instance.locks.vehicles > 0
    return locked or instance.fleet is not None


def _sol_node(word: str, n: int, line: int) -> int:
    if not WHOLE.fullmatch(word) or not 0 <= int(word) < n:
        fail(f"{quoted(word)} is not one of the nodes 0 .. {n - 1} (as .sol files count)", line)
    return int(word)


def format_sol(instance: Instance, solution: Solution, cost: Cost | None = None) -> str:
    """Routes as CVRPLIB .sol text; `cost` is recomputed unless given."""
    shown = problem.cost(instance, solution) if cost is None else cost
    vehicles = (_named(instance) and solution.vehicles) or range(1, len(solution.routes) + 1)
    driven = dict(zip(vehicles, solution.routes, strict=True))
    nothing = np.zeros(0, np.int64)
    every = (driven.get(vehicle, nothing) for vehicle in range(1, max(vehicles, default=0) + 1))
    routes = (" ".join(map(str, route.tolist())) for route in every)
    rows = [f"Route #{r}: {route}\n" for r, route in enumerate(routes, start=1)]
    return "".join(rows) + f"Cost {shown}\n"

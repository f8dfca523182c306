"""When a route is where: arrivals, waiting, departures, loads, by walking it stop by stop."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from drhg.errors import SolutionError
from drhg.problem.arguments import Floats, Ints, from_zero
from drhg.problem.fleet import kinds_of, kinds_of_routes
from drhg.problem.instance import Instance, an_instance
from drhg.problem.solution import Solution, a_solution


@dataclass(frozen=True)
class RouteSchedule:
    """One route, stop by stop; a CVRP's begins at the depot and, unless it is open, ends there.

    All fields are arrays with one entry per stop. Who arrives late still starts the service then.
    """

    nodes: Ints
    arrival: Floats  # at the first stop: the departure
    begin: Floats  # of the service
    departure: Floats
    waiting: Floats
    lateness: Floats  # start of the service after the window has closed
    load: Floats  # delivered so far
    distance: Floats  # travelled so far

    @property
    def duration(self) -> float:
        """From departure to the end: travel, service and waiting."""
        return float(self.departure[-1] - self.departure[0])


def schedule(instance: Instance, solution: Solution) -> list[RouteSchedule]:
    """When every route is where.

    A route leaves as early as any that takes no longer and is no later anywhere: it does not wait
    on the way where it could wait at the depot. A tour or path leaves at 0.

    >>> import drhg
    >>> shops = drhg.vrp(xy=[[0, 0], [0, 3], [4, 0]], windows=[[0, 20], [5, 6], [0, 19]])
    >>> route = drhg.schedule(shops, drhg.Solution([[1, 2]]))[0]
    >>> route.nodes.tolist(), route.arrival.tolist(), route.duration
    ([0, 1, 2, 0], [2.0, 5.0, 10.0, 14.0], 12.0)
    """
    an_instance(instance)
    for number, route in enumerate(a_solution(solution).routes, start=1):
        outside = route[(route < 0) | (route >= instance.n)]
        if len(outside):
            raise SolutionError(
                f"route {number} names {from_zero(int(outside[0]))}, which does not exist"
            )
    services, opens, closes = instance.services, instance.opens.copy(), instance.closes.copy()
    if not instance.is_cvrp:
        return [_walked(instance, route, services, opens, closes) for route in solution.routes]
    kinds = kinds_of(instance)
    found = []
    for route, k in zip(solution.routes, kinds_of_routes(instance, solution), strict=True):
        depot = int(kinds.depot[k])
        opens[depot], closes[depot] = kinds.opens[k], kinds.closes[k]
        found.append(_walked(instance, route, services, opens, closes, depot))
    return found


def _walked(
    instance: Instance,
    route: Ints,
    services: Floats,
    opens: Floats,
    closes: Floats,
    depot: int | None = None,
) -> RouteSchedule:
    home = route[:1] if depot is None else np.array([depot])
    front = home[:0] if depot is None else home
    nodes = np.concatenate([front, route, home if instance.returns else home[:0]])
    legs = np.asarray(instance.distance(nodes[:-1], nodes[1:]), np.float64)
    times = np.asarray(instance.travel_time(nodes[:-1], nodes[1:]), np.float64).tolist()
    first, last = opens[nodes].tolist(), closes[nodes].tolist()
    service = services[nodes].tolist()
    leave = first[0] if instance.is_cvrp else 0.0
    if instance.release is not None:
        leave = max(leave, float(instance.release[route].max(initial=0.0)))
    if instance.is_cvrp:
        leave += _delay(leave, times, first, last, service)
    arrivals, begins, departures = [leave], [leave], [leave + service[0]]
    for k, time in enumerate(times, start=1):
        arrivals.append(departures[-1] + time)
        begins.append(max(arrivals[-1], first[k]))
        departures.append(begins[-1] + service[k])
    arrival, begin = np.array(arrivals), np.array(begins)
    demand = np.zeros(instance.n, np.int64) if instance.demand is None else instance.demand
    return RouteSchedule(
        nodes=nodes,
        arrival=arrival,
        begin=begin,
        departure=np.array(departures),
        waiting=begin - arrival,
        lateness=np.maximum(0.0, begin - closes[nodes]),
        load=np.cumsum(demand[nodes]) / instance.demand_scale,
        distance=np.concatenate([[0.0], np.cumsum(legs)]),
    )


def _delay(
    leave: float, times: list[float], first: list[float], last: list[float], service: list[float]
) -> float:
    """How much later than this to leave, so that nothing is later but less time is waited.

    Up to every stop, the departure may slip by what is waited on the way there and by what is left
    until the window closes.
    """
    clock, waited, allowed = leave, 0.0, max(0.0, last[0] - leave)
    for k, time in enumerate(times, start=1):
        clock += service[k - 1] + time
        waited += max(0.0, first[k] - clock)
        clock = max(clock, first[k])
        allowed = min(allowed, waited + max(0.0, last[k] - clock))
    return min(allowed, waited)

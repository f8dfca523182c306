"""What a repaired reduced graph would change, before the plan is touched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from drhg.hypergraph.plan import NOT_A_REPAIR, OK, OVERLOAD, TOO_LONG, Flags, Index, Plan, Rules
from drhg.hypergraph.reduce import Graphs
from drhg.kernels.jit import inner, kernel
from drhg.kernels.space import Space, distance
from drhg.problem import Floats
from drhg.problem.tolerances import JUDGE_SLACK


class RepairLimits(NamedTuple):
    """Distances, and what a route of a repaired graph may be."""

    space: Space
    depot: int  # -1 for a tour
    capacity: int
    max_length: float


def repair_limits(rules: Rules) -> RepairLimits:
    longest = rules.max_length * (1 + JUDGE_SLACK)
    return RepairLimits(rules.space, rules.depot, rules.capacity, longest)


@dataclass(frozen=True)
class Repaired:
    """What a repairer answers: for each row an order of its nodes, and which come via the depot.

    An order names both ends of a hyper-edge one after the other, so it also says the direction.
    """

    order: Index  # (B, M), a permutation of 0 .. size - 1 in each row, -1 beyond
    via: Flags  # (B, M), by place in `order`; all False for a TSP


def present(graphs: Graphs) -> Repaired:
    """The repair that changes nothing."""
    m = graphs.node.shape[1]
    order = np.broadcast_to(np.arange(m, dtype=np.int32), graphs.node.shape)
    return Repaired(np.where(order < graphs.size[:, None], order, np.int32(-1)), graphs.via.copy())


@inner
def judge_row(limits, size, node, partner, load, length, order, via):
    """(verdict, length of the free edges, routes) of one repaired row; walks it once."""
    space, depot, capacity, max_length = limits
    seen = np.zeros(size, np.bool_)
    total = 0.0
    routes = 0
    here = -1  # node at the loose end of the open route, -1 while at the depot
    carried = 0
    run = 0.0
    i = 0
    while i < size:
        u = order[i]
        if u < 0 or u >= size or seen[u]:
            return NOT_A_REPAIR, 0.0, 0
        seen[u] = True
        out = u
        if partner[u] >= 0 and partner[u] != u:  # a hyper-edge: its other end must follow
            out = partner[u]
            if i + 1 >= size or order[i + 1] != out or seen[out] or (depot >= 0 and via[i + 1]):
                return NOT_A_REPAIR, 0.0, 0
            seen[out] = True
            i += 1
        if depot < 0:
            if here >= 0:
                total += distance(space, here, node[u])
            here = node[out]
        elif via[i if out == u else i - 1]:
            if here >= 0:  # close the open route
                step = distance(space, here, depot)
                total += step
                if run + step > max_length:
                    return TOO_LONG, 0.0, 0
            routes += 1
            carried = load[u]
            run = length[u]
            if partner[u] >= 0:
                step = distance(space, depot, node[u])
                total += step
                run += step
            here = node[out]
        else:
            if here < 0:
                return NOT_A_REPAIR, 0.0, 0  # nothing to go on from
            step = distance(space, here, node[u])
            total += step
            carried += load[u]
            run += step + length[u]
            here = node[out]
            if partner[u] < 0:  # along a stub to the depot: the route ends
                if run > max_length:
                    return TOO_LONG, 0.0, 0
                here = -1
        if carried > capacity:
            return OVERLOAD, 0.0, 0
        i += 1
    if depot < 0:
        if size > 0:
            total += distance(space, here, node[order[0]])
    elif here >= 0:
        step = distance(space, here, depot)
        total += step
        if run + step > max_length:
            return TOO_LONG, 0.0, 0
    return OK, total, routes


@kernel
def _judge_rows(limits, size, node, partner, load, length, order, via):
    rows = len(size)
    verdict = np.zeros(rows, np.int32)
    total = np.zeros(rows, np.float64)
    routes = np.zeros(rows, np.int32)
    for b in range(rows):
        verdict[b], total[b], routes[b] = judge_row(
            limits, size[b], node[b], partner[b], load[b], length[b], order[b], via[b]
        )
    return verdict, total, routes


def walk(rules: Rules, graphs: Graphs, repaired: Repaired) -> tuple[Index, Floats, Index]:
    """(verdict, length of the free edges, routes) of each row; the fleet is not looked at."""
    verdict, total, routes = _judge_rows(
        repair_limits(rules), graphs.size, graphs.node, graphs.partner, graphs.load, graphs.length,
        repaired.order, repaired.via,
    )  # fmt: skip
    return verdict, total, routes


def judge(rules: Rules, plan: Plan, graphs: Graphs, repaired: Repaired) -> tuple[Flags, Floats]:
    """Whether each row may be restored, and by how much the solution's cost would change.

    The change on the reduced graph equals the change of the full solution, so a repair is accepted
    or dropped before the solution is touched. A repair that breaks a limit is dropped whole.
    """
    verdict, total, routes = walk(rules, graphs, repaired)
    fleet = plan.n_routes - graphs.n_routes + routes
    good = (verdict == OK) & ((fleet <= rules.vehicles) | (routes <= graphs.n_routes))
    return good, np.where(good, total - graphs.cut_cost, np.inf)

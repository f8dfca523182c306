"""Parts of a plan: some of its routes, copied into arrays of their own.

Customers are numbered anew, route by route, and every route has a depot of its own that closes it
to a ring, so that no place in a route is special. Parts that share no route can be worked on at the
same time, and what a step costs depends on neither the part nor the plan.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from drhg.hypergraph.plan import Index, Rules
from drhg.kernels.jit import kernel
from drhg.kernels.space import EXPLICIT, Space, distance
from drhg.problem import Floats, Ints, Solution


class PartProblem(NamedTuple):
    """What does not change in a part: places 0 .. m - 1 are customers, the rest are depots."""

    space: Space
    node: Ints  # (N,): the instance's number of each place
    demand: Ints  # (N,)
    near: Index  # (m, k): nearest customers of the part, nearest first, then -1
    far: Floats  # (m, k): their distances
    capacity: int
    max_length: float
    service: float


class PartRoutes(NamedTuple):
    """The routes of a part as rings, changed in place; route r goes through depot m + r."""

    next: Index  # (N,)
    prev: Index  # (N,)
    leg: Floats  # (N,): distance to the next place
    route: Index  # (N,): route of each place, -1 for a customer in none
    load: Ints  # (R,)
    length: Floats  # (R,): depot to depot, service included
    stops: Index  # (R,): customers
    empty: Index  # (R + 1,): a stack of the empty routes; last, how many they are
    absences: Ints  # (m,): how often a step left a customer out (SISR), for scarce fleets


class Part(NamedTuple):
    """Routes to work on, and the best that a slice of annealing made of them."""

    problem: PartProblem
    routes: PartRoutes
    best: Index  # (N,): `next` of the best routes that the last slice has seen


def solution_of_lists(order: Index, ends: Index) -> Solution:
    """Routes laid end to end as a solution."""
    return Solution(np.split(order.astype(np.int64), ends[:-1]))


def part_of(
    rules: Rules, near: Index, width: int, order: Index, ends: Index, chosen: Index, absent: Ints,
    spare: int, local: Index,
) -> Part:  # fmt: skip
    """Copy the chosen ones of the routes (laid end to end) and `absent` customers into a part.

    A customer's nearest ones are the first `width` of its row of `near` that are in the part.
    `spare` empty routes are added; `local` is scratch, (n,) and -1 everywhere.
    """
    m = len(absent) + int(np.diff(ends, prepend=0)[chosen].sum())
    slots = len(chosen) + spare
    size, width = m + slots, min(width, near.shape[1])
    explicit = rules.space.metric == EXPLICIT
    problem = PartProblem(
        Space(
            rules.space.metric,
            np.empty((size, 2)),
            np.empty((size, size) if explicit else (0, 0)),
        ),
        np.full(size, rules.depot, np.int64),
        np.zeros(size, np.int64),
        np.full((m, width), -1, np.int32),
        np.full((m, width), np.inf),
        rules.capacity,
        rules.max_length,
        rules.service,
    )
    routes = PartRoutes(
        next=np.empty(size, np.int32), prev=np.empty(size, np.int32), leg=np.zeros(size),
        route=np.full(size, -1, np.int32), load=np.zeros(slots, np.int64), length=np.zeros(slots),
        stops=np.zeros(slots, np.int32), empty=np.zeros(slots + 1, np.int32),
        absences=np.zeros(m, np.int64),
    )  # fmt: skip
    _lay_out(rules, near, order, ends, chosen, absent, local, problem, routes)
    return Part(problem, routes, routes.next.copy())


def lists_of(part: Part, best: bool) -> tuple[Index, Index]:
    """The part's routes, present or best, laid end to end in the instance's numbers."""
    order, ends = _flatten(
        part.problem.node, part.best if best else part.routes.next, part.routes.load
    )
    return order, ends


@kernel
def _flatten(node, next, load):
    slots = len(load)
    m = len(node) - slots
    order = np.empty(m, np.int32)
    ends = np.empty(slots, np.int32)
    w = 0
    used = 0
    for r in range(slots):
        here = next[m + r]
        if here == m + r:
            continue
        while here != m + r:
            order[w] = node[here]
            w += 1
            here = next[here]
        ends[used] = w
        used += 1
    return order[:w].copy(), ends[:used].copy()


@kernel
def merge_lists(order, ends, taken, parts_order, parts_ends):
    """The routes that are not taken, then those of the parts."""
    kept = 0
    routes = 0
    begin = 0
    for r in range(len(ends)):
        if not taken[r]:
            kept += ends[r] - begin
            routes += 1
        begin = ends[r]
    new_order = np.empty(kept + len(parts_order), np.int32)
    new_ends = np.empty(routes + len(parts_ends), np.int32)
    w = 0
    routes = 0
    begin = 0
    for r in range(len(ends)):
        if not taken[r]:
            for p in range(begin, ends[r]):
                new_order[w] = order[p]
                w += 1
            new_ends[routes] = w
            routes += 1
        begin = ends[r]
    for i in range(len(parts_order)):
        new_order[w + i] = parts_order[i]
    for r in range(len(parts_ends)):
        new_ends[routes + r] = w + parts_ends[r]
    return new_order, new_ends


@kernel
def _lay_out(rules, near, order, ends, chosen, absent, local, problem, routes):
    """Fill the arrays of a part, which come with their first values."""
    node, demand, beside, far = problem.node, problem.demand, problem.near, problem.far
    points, matrix = problem.space.points, problem.space.matrix
    next, prev, leg, route, load, length, stops, empty, _ = routes
    m, width = beside.shape
    slots = len(load)
    size = m + slots
    w = 0
    for c in range(len(chosen)):
        r = chosen[c]
        last = m + c
        for p in range(ends[r - 1] if r > 0 else 0, ends[r]):
            node[w] = order[p]
            local[order[p]] = w
            route[w] = c
            load[c] += rules.demand[order[p]]
            length[c] += rules.service
            next[last], prev[w] = w, last
            stops[c] += 1
            last = w
            w += 1
        next[last], prev[m + c] = m + c, last
    for c in range(slots):
        route[m + c] = c
        if c >= len(chosen):
            next[m + c] = prev[m + c] = m + c
    for i in range(len(absent)):
        node[w] = absent[i]
        local[absent[i]] = w
        next[w] = prev[w] = w
        w += 1
    for i in range(size):
        points[i, 0] = rules.space.points[node[i], 0]
        points[i, 1] = rules.space.points[node[i], 1]
        if i < m:
            demand[i] = rules.demand[node[i]]
    n_empty = 0
    for c in range(slots - 1, -1, -1):
        if stops[c] == 0:
            empty[n_empty] = c
            n_empty += 1
    empty[slots] = n_empty
    for i in range(m):
        k = 0
        for j in range(near.shape[1]):
            other = local[near[node[i], j]]
            if other >= 0:
                beside[i, k] = other
                far[i, k] = distance(rules.space, node[i], node[other])
                k += 1
                if k == width:
                    break
    for i in range(m):
        local[node[i]] = -1
    for i in range(size):
        if route[i] >= 0:
            leg[i] = distance(rules.space, node[i], node[next[i]])
            length[route[i]] += leg[i]
    if rules.space.metric == EXPLICIT:
        for i in range(size):
            for j in range(size):
                matrix[i, j] = rules.space.matrix[node[i], node[j]]

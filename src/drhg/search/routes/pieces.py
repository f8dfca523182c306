"""Plans of pieces with resources, and parts of them: what routes with time windows are made of.

A *piece* is a customer, or a locked sequence of customers that is never cut: a hyper-edge with a
first node, a last node and the resources of everything between. It has the number of its first
node, so a plan of pieces is a list of such numbers per route. Pieces are driven in one direction
only.

Routes belong to *kinds* of vehicles. All vehicles of a kind are alike: where they start and end,
what they carry, when they may be out, what using one costs. A vehicle that is special in any way
(pieces are pinned to it, it is already under way) is a kind with a single vehicle.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from drhg.hypergraph.plan import Flags, Index
from drhg.kernels.jit import inner, kernel
from drhg.kernels.space import EXPLICIT, Space, distance
from drhg.problem import Floats, Ints
from drhg.problem.resources import Resources
from drhg.problem.resources import join as join_resources
from drhg.problem.tolerances import SEARCH_SLACK


def lent(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compiled into its callers, which keep all arrays alive: no references are counted.

    Counting took ten times as long as the search itself.
    """
    return inner(function, forceinline=True, _nrt=False)


join = lent(join_resources)


class Pieces(NamedTuple):
    """What pieces need, by the number of their first node; other rows mean nothing."""

    tail: Index  # (n,): last node
    load: Ints  # (n,)
    length: Floats  # (n,): of the way inside, and service if that counts against a length limit
    duration: Floats  # (n,): from the first service to the end of the last
    opens: Floats  # (n,): the service at its first node begins between these two times, and then
    closes: Floats  # (n,): the whole piece takes `duration` and keeps all its windows
    release: Floats  # (n,): its vehicle leaves no earlier; -inf if it need not wait


class Vehicles(NamedTuple):
    """The kinds of vehicles."""

    start: Index  # (K,): node where it starts
    end: Index  # (K,): node where it ends, if it returns
    returns: Flags  # (K,): whether the way to the end node counts at all
    capacity: Ints  # (K,)
    departs: Floats  # (K,): it leaves its start node no earlier
    front: Floats  # (K,): time on the road before it is there, of one that is under way
    latest: Floats  # (K,): leaving the depot later, one under way would be late somewhere
    back: Floats  # (K,): it is at the end node no later
    max_length: Floats  # (K,): inf if there is no limit
    max_duration: Floats  # (K,): from leaving to coming back, or to the end of the last service
    fixed: Floats  # (K,): cost of using a vehicle
    number: Ints  # (K,): how many there are


class PieceTable(NamedTuple):
    """A problem of routes over pieces."""

    space: Space  # distances between nodes; they need not be symmetric
    times: Floats  # (n, n): durations of ways; (0, 0) if they equal distances
    pieces: Pieces
    vehicles: Vehicles
    heads: Ints  # the pieces' numbers
    allowed: Flags  # (n, K): which kinds may carry a piece; (0, 0) if all may
    symmetric: bool  # whether distances are

    @property
    def timed(self) -> bool:
        """Whether anything depends on when a piece is served."""
        found = np.isfinite(self.pieces.closes[self.heads]).any()
        return bool(found or np.isfinite(self.vehicles.back).any() or self.ranged)

    @property
    def ranged(self) -> bool:
        """Whether it matters when a route begins: durations are limited, or goods are released."""
        released = np.isfinite(self.pieces.release[self.heads]).any()
        return bool(released or np.isfinite(self.vehicles.max_duration).any())


class PieceLists(NamedTuple):
    """A plan that may be incomplete: routes of pieces laid end to end, and their kinds."""

    order: Index
    ends: Index  # (R,): where each route ends in the order
    kinds: Index  # (R,)


class PieceProblem(NamedTuple):
    """What does not change in a part: places 0 .. m - 1 are pieces, m + r ends and begins route r.

    A depot's place has the end node as its head and the start node as its tail.
    """

    space: Space  # by place for coordinates (tails, then heads), by head and tail for a matrix
    times: Floats
    head: Index  # (N,): row of the matrices
    tail: Index  # (N,)
    node: Index  # (m,): the number of each piece
    load: Ints  # (m,)
    length: Floats  # (m,)
    duration: Floats  # (m,)
    opens: Floats  # (m,)
    closes: Floats  # (m,)
    shut: Floats  # (m,): the same with allowance for rounding
    release: Floats  # (m,)
    near: Index  # (m, k): pieces that may be neighbours, the likeliest first, then -1
    before: Floats  # (m, k): distance from that one to this
    behind: Floats  # (m, k): distance from this one to that
    kind: Index  # (R,)
    open: Flags  # (R,): the way back is free
    capacity: Ints  # (R,)
    max_length: Floats  # (R,)
    max_duration: Floats  # (R,)
    fixed: Floats  # (R,)
    allowed: Flags  # (m, K) or (0, 0)
    spread: Floats  # (2, m): by which pieces are ordered: distance from a depot, width of window
    timed: int
    ranged: int
    bound: float  # a place may be passed over if one way is so many times the best cost too long


class PieceRoutes(NamedTuple):
    """The routes of a part as rings, changed in place; route r goes through place m + r.

    Times are those of the route as it is: what comes before a place decides when it is ready, what
    comes behind decides when it is due. With `ranged`, (front, latest) and (rest, earliest) add
    what `join` needs of the pieces before and behind.
    """

    next: Index  # (N,)
    prev: Index  # (N,)
    leg: Floats  # (N,): distance to the next place; of an empty route zero
    route: Index  # (N,): -1 for a piece in none
    load: Ints  # (R,)
    length: Floats  # (R,)
    stops: Index  # (R,): pieces
    empty: Index  # (K, R + 1): a stack of the empty routes of each kind; last, how many they are
    ready: Floats  # (N,): the vehicle can leave here then
    due: Floats  # (N,): it must begin here by then
    front: Floats  # (N,): duration from leaving the depot until it is done here
    latest: Floats  # (N,): it may leave the depot so late
    rest: Floats  # (N,): duration from beginning here to the end
    earliest: Floats  # (N,): beginning here earlier would mean waiting later
    release: Floats  # (R,)
    absences: Ints  # (m,): how often a step left a piece out (SISR), for scarce fleets


class PiecePart(NamedTuple):
    """Routes to work on, and the best that a slice of annealing made of them."""

    problem: PieceProblem
    routes: PieceRoutes
    best: Index  # (N,): `next` of the best routes that the last slice has seen


@lent
def way(problem, p, q):
    """Distance from the end of place p to the beginning of place q."""
    m = len(problem.node)
    if q >= m and problem.open[q - m]:
        return 0.0
    if problem.space.metric == EXPLICIT:
        return problem.space.matrix[problem.tail[p], problem.head[q]]
    return distance(problem.space, p, len(problem.head) + q)


@lent
def drive(problem, p, q, way):
    """Time from the end of place p to the beginning of place q, which are so far apart."""
    if problem.times.shape[0] == 0:
        return way
    m = len(problem.node)
    if q >= m and problem.open[q - m]:
        return 0.0
    return problem.times[problem.tail[p], problem.head[q]]


@lent
def time_route(problem, routes, r):
    """Bring the times of a route up to date."""
    depot = len(problem.node) + r
    time_front(problem, routes, depot, False)
    time_back(problem, routes, depot, False)
    if problem.ranged:
        range_route(problem, routes, r)


@lent
def time_front(problem, routes, a, stop):
    """Times at which places behind `a` are ready; with `stop` until one has not changed."""
    next, leg, ready = routes.next, routes.leg, routes.ready
    m = len(problem.node)
    here = next[a]
    while here < m:
        begin = max(ready[a] + drive(problem, a, here, leg[a]), problem.opens[here])
        done = begin + problem.duration[here]
        if stop and done == ready[here]:
            break
        ready[here] = done
        a = here
        here = next[here]


@lent
def time_back(problem, routes, b, stop):
    """Times at which places before `b` are due; with `stop` until one has not changed."""
    prev, leg, due = routes.prev, routes.leg, routes.due
    m = len(problem.node)
    here = prev[b]
    while here < m:
        last = due[b] - drive(problem, here, b, leg[here]) - problem.duration[here]
        last = min(last, problem.shut[here])
        if last < problem.opens[here]:  # a stop was taken out, and now the way is longer: too late
            last = -np.inf
        if stop and last == due[here]:
            break
        due[here] = last
        b = here
        here = prev[here]


@lent
def range_route(problem, routes, r):
    """Bring up to date what depends on when a route begins."""
    next, prev, leg, release = routes.next, routes.prev, routes.leg, problem.release
    depot = len(problem.node) + r
    routes.release[r] = -np.inf
    a = depot
    here = next[a]
    while here < len(problem.node):
        front = join(before(routes, a), alone(problem, here), 0.0, drive(problem, a, here, leg[a]))
        routes.front[here] = front.duration
        routes.latest[here] = front.latest
        routes.release[r] = max(routes.release[r], release[here])
        a = here
        here = next[here]
    b = depot
    here = prev[b]
    while here < len(problem.node):
        rest = join(
            alone(problem, here), behind(routes, b), 0.0, drive(problem, here, b, leg[here])
        )
        routes.rest[here] = rest.duration
        routes.earliest[here] = rest.earliest
        b = here
        here = prev[here]


@lent
def alone(problem, p):
    """The resources of a piece."""
    return Resources(0.0, 0.0, problem.duration[p], 0.0, problem.opens[p], problem.closes[p])


@lent
def before(routes, a):
    """The resources of a route from its depot to a place."""
    front = routes.front[a]
    return Resources(0.0, 0.0, front, 0.0, routes.ready[a] - front, routes.latest[a])


@lent
def behind(routes, b):
    """The resources of a route from a place to its end."""
    return Resources(0.0, 0.0, routes.rest[b], 0.0, routes.earliest[b], routes.due[b])


def part_of_pieces(
    table: PieceTable, near: Index, width: int, lists: PieceLists, chosen: Index, absent: Ints,
    spare: Ints, local: Index,
) -> PiecePart:  # fmt: skip
    """Copy the chosen ones of the routes and `absent` pieces into a part.

    A piece's neighbours are the first `width` of its row of `near` that are in the part. `spare`
    (K,) empty routes of each kind are added; `local` is scratch, (n,) and -1 everywhere.
    """
    pieces, vehicles = table.pieces, table.vehicles
    sizes = np.diff(lists.ends, prepend=0)
    taken = np.zeros(len(sizes), np.bool_)
    taken[chosen] = True
    inside = lists.order[np.repeat(taken, sizes)]
    node = np.concatenate((inside, absent)).astype(np.int32)
    kinds = len(vehicles.start)
    empty = np.repeat(np.arange(kinds), spare)
    kind: Index = np.concatenate((lists.kinds[taken], empty)).astype(np.int32)
    m, slots = len(node), len(kind)
    size, width = m + slots, min(width, near.shape[1])
    tail = np.concatenate((pieces.tail[node], vehicles.start[kind]))
    head = np.concatenate((node, vehicles.end[kind]))
    space, times, tail, head = _space_of_part(table, tail, head)
    back = vehicles.back[kind]
    problem = PieceProblem(
        space=space, times=times, head=head, tail=tail, node=node, load=pieces.load[node],
        length=pieces.length[node], duration=pieces.duration[node], opens=pieces.opens[node],
        closes=pieces.closes[node], shut=_relaxed(pieces.closes[node]),
        release=pieces.release[node],
        near=np.full((m, width), -1, np.int32), before=np.full((m, width), np.inf),
        behind=np.full((m, width), np.inf), kind=kind, open=~vehicles.returns[kind],
        capacity=vehicles.capacity[kind], max_length=vehicles.max_length[kind],
        max_duration=_relaxed(vehicles.max_duration[kind]), fixed=vehicles.fixed[kind],
        allowed=table.allowed[node] if len(table.allowed) else table.allowed,
        spread=np.stack((np.zeros(m), pieces.closes[node] - pieces.opens[node])),
        timed=int(table.timed), ranged=int(table.ranged),
        bound=0.5 if table.symmetric else 1.0,
    )  # fmt: skip
    never = np.full(m, np.inf)
    routes = PieceRoutes(
        next=np.empty(size, np.int32), prev=np.empty(size, np.int32), leg=np.zeros(size),
        route=np.full(size, -1, np.int32), load=np.zeros(slots, np.int64), length=np.zeros(slots),
        stops=np.zeros(slots, np.int32), empty=np.zeros((kinds, slots + 1), np.int32),
        ready=np.concatenate((never, vehicles.departs[kind])),
        due=np.concatenate((-never, np.where(problem.open, np.inf, _relaxed(back)))),
        front=np.concatenate((np.zeros(m), vehicles.front[kind])),
        latest=np.concatenate((never, np.minimum(back, vehicles.latest[kind]))),
        rest=np.zeros(size),
        earliest=np.full(size, -np.inf), release=np.full(slots, -np.inf),
        absences=np.zeros(m, np.int64),
    )  # fmt: skip
    _lay_out(near, np.cumsum(sizes[taken]), local, problem, routes)
    return PiecePart(problem, routes, routes.next.copy())


def _relaxed(limits: Floats) -> Floats:
    """Limits with allowance for rounding."""
    return limits + SEARCH_SLACK * np.maximum(1.0, np.abs(limits))


def _space_of_part(
    table: PieceTable, tail: Index, head: Index
) -> tuple[Space, Floats, Index, Index]:
    """Distances and durations of places, and their rows there: copied if the part is small."""
    space, times = table.space, table.times
    points = np.concatenate((space.points[tail], space.points[head]))
    explicit = space.metric == EXPLICIT
    if (explicit or len(times)) and 2 * len(head) < len(space.points):
        nodes, row = np.unique(np.concatenate((tail, head)), return_inverse=True)
        matrix = space.matrix[np.ix_(nodes, nodes)] if explicit else space.matrix
        times = times[np.ix_(nodes, nodes)] if len(times) else times
        row_of: Index = row.astype(np.int32)
        tail, head = row_of[: len(tail)], row_of[len(tail) :]
        return Space(space.metric, points, matrix), times, tail, head
    return Space(space.metric, points, space.matrix), times, tail, head


def lists_of_part(part: PiecePart, best: bool) -> PieceLists:
    """The part's routes, present or best, laid end to end."""
    order, ends, used = _flatten(part.problem.node, part.best if best else part.routes.next)
    return PieceLists(order, ends, part.problem.kind[used])


@kernel
def _flatten(node, next):
    m = len(node)
    slots = len(next) - m
    order = np.empty(m, np.int32)
    ends = np.empty(slots, np.int32)
    used = np.empty(slots, np.int32)
    w = 0
    n_used = 0
    for r in range(slots):
        here = next[m + r]
        if here == m + r:
            continue
        while here != m + r:
            order[w] = node[here]
            w += 1
            here = next[here]
        ends[n_used] = w
        used[n_used] = r
        n_used += 1
    return order[:w].copy(), ends[:n_used].copy(), used[:n_used].copy()


@kernel
def _lay_out(near, ends, local, problem, routes):
    """Fill the arrays of a part, which come with their first values."""
    node, beside, kind = problem.node, problem.near, problem.kind
    next, prev, leg, route, empty = (
        routes.next, routes.prev, routes.leg, routes.route, routes.empty
    )  # fmt: skip
    m, width = beside.shape
    slots = len(kind)
    w = 0
    for r in range(slots):
        last = m + r
        route[last] = r
        while r < len(ends) and w < ends[r]:
            route[w] = r
            routes.load[r] += problem.load[w]
            routes.length[r] += problem.length[w]
            routes.stops[r] += 1
            next[last], prev[w] = w, last
            last = w
            w += 1
        next[last], prev[m + r] = m + r, last
    for i in range(w, m):
        next[i] = prev[i] = i
    for r in range(slots - 1, -1, -1):
        if routes.stops[r] == 0:
            empty[kind[r], empty[kind[r], slots]] = r
            empty[kind[r], slots] += 1
            continue
        here = m + r
        while True:
            leg[here] = way(problem, here, next[here])
            routes.length[r] += leg[here]
            here = next[here]
            if here == m + r:
                break
        if problem.timed:
            time_route(problem, routes, r)
    for i in range(m):
        local[node[i]] = i
        if slots > 0:
            problem.spread[0, i] = way(problem, m, i)
    for i in range(m):
        k = 0
        for j in range(near.shape[1]):
            other = local[near[node[i], j]] if near[node[i], j] >= 0 else -1
            if other >= 0:
                beside[i, k] = other
                problem.before[i, k] = way(problem, other, i)
                problem.behind[i, k] = way(problem, i, other)
                k += 1
                if k == width:
                    break
    for i in range(m):
        local[node[i]] = -1

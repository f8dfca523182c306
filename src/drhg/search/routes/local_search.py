"""The local search of HGS on whole routes: every move that pays, limits exceeded at a penalty.

Moves of a customer to one of its neighbours are in `moves`, those of two routes in `swap_star`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from drhg.hypergraph.plan import Index
from drhg.kernels.jit import inlined, inner, kernel
from drhg.kernels.random import random_below
from drhg.problem import Floats, Ints
from drhg.problem.tolerances import PENALISED_GAIN
from drhg.search.routes.moves import (
    NO_MOVE,
    context_of,
    first_that_pays,
    link_route,
    make_move,
    route_state,
    update_route,
)
from drhg.search.routes.params import RouteMoveParams
from drhg.search.routes.penalties import PenalisedProblem, Penalties
from drhg.search.routes.swap_star import (
    find_meeting,
    join_meeting,
    swap_star,
    swap_star_of,
)


class History(NamedTuple):
    """What was tested and changed when; times are numbers of moves made."""

    changed: Ints  # (slots,) the last move that changed a route
    tested: Ints  # (m,) when a customer's moves were last tested
    paired: Ints  # (slots, slots) when two routes were last tested for SWAP*
    # what moves of a pair add to all lengths, at least, and when that was found: as long as both
    # have the same neighbours it holds, and only a lower penalty can make a move pay
    least: Floats  # (m, k)
    known: Index  # (m, k)


class Scratch(NamedTuple):
    """Arrays of one local search."""

    queue: Index  # (m,) the customers in the order in which they are tested
    listed: Index  # (m,)
    other: Index  # (m,)
    order: Index  # (m,) the result: routes laid end to end,
    ends: Index  # (slots,) and where each ends


def local_search(
    problem: PenalisedProblem, order: Index, ends: Index, slots: int, penalties: Penalties,
    settled: Ints, params: RouteMoveParams, state: npt.NDArray[np.uint64],
) -> tuple[Index, Index]:  # fmt: skip
    """The routes (laid end to end) after all moves that pay: (order, ends of `slots` routes).

    Customers are taken in random order; a pair is tested again only after one of its routes has
    changed, and for the first time only if their routes have no bit of `settled` in common (see
    `sequences.inherited`).
    """
    m, near = len(order), problem.near.shape
    routes, swaps = route_state(m, slots), swap_star_of(m, slots, params)
    history = History(
        np.zeros(slots, np.int64), np.full(m, -1, np.int64), np.full((slots, slots), -1, np.int64),
        np.empty(near), np.full(near, -1, np.int32),
    )  # fmt: skip
    scratch = Scratch(
        np.arange(m, dtype=np.int32), np.empty(m, np.int32), np.empty(m, np.int32),
        np.empty(m, np.int32), np.empty(slots, np.int32),
    )  # fmt: skip
    _local_search(
        problem, order, ends, penalties, settled, state, routes, history, swaps, scratch
    )  # fmt: skip
    return scratch.order, scratch.ends


@kernel
def _local_search(
    problem, order, ends, penalties, settled, state, routes, history, swaps, scratch
):  # fmt: skip
    near = problem.near
    next, prev, route, moved, paid = (
        routes.next, routes.prev, routes.route, routes.moved, routes.penalty
    )  # fmt: skip
    changed, tested, paired, least, known = history
    queue, listed, other, _, _ = scratch
    m = len(order)
    slots = len(changed)
    _read_routes(problem, penalties, routes, order, ends)
    vacant = _vacant(routes)
    moves = 0
    turn = 0
    searching = True
    while searching:
        searching = turn == 0  # an empty route is tried in the second turn
        if turn <= 1:  # afterwards the same order will do
            for i in range(m - 1, 0, -1):
                j = random_below(state, i + 1)
                queue[i], queue[j] = queue[j], queue[i]
        for q in range(m):
            u = queue[q]
            since = tested[u]
            tested[u] = moves
            context = context_of(problem, routes, u)
            for c in range(near.shape[1] + 1):
                to_empty = c == near.shape[1]  # not in the first turn
                v = near[u, c] if not to_empty else m + vacant if turn > 0 and vacant >= 0 else -1
                if v < 0:
                    continue
                latest = max(changed[route[u]], changed[route[v]])
                if turn > to_empty and latest <= since:
                    continue
                if latest == 0 and not to_empty and settled[route[u]] & settled[route[v]]:
                    continue
                for side in range(2):
                    if side == 1:  # to the front of the neighbour's route
                        v = prev[v]
                        if to_empty or v < m:
                            break
                    ru, rv = route[u], route[v]
                    if v < m:
                        lately = max(moved[u], moved[v], moved[context.x], moved[next[v]])
                        if (
                            lately <= known[u, c]
                            and least[u, c] >= paid[ru] + paid[rv] - PENALISED_GAIN
                        ):
                            continue
                    kind, lowest = first_that_pays(problem, penalties, routes, u, v, context)
                    if kind == NO_MOVE:
                        if v < m:
                            least[u, c], known[u, c] = lowest, moves
                        continue
                    make_move(routes, kind, u, v, listed, other)
                    moves += 1
                    searching = True
                    for r in (ru, rv):
                        update_route(problem, penalties, routes, r, moves)
                        changed[r] = moves
                    context = context_of(problem, routes, u)
                    vacant = _vacant(routes)
        if turn > 0:
            find_meeting(problem, routes, swaps)
            for a in range(slots):
                for b in range(a + 1, slots):
                    latest = max(changed[a], changed[b])
                    if latest <= paired[a, b] or not (swaps.meeting[a, b] or swaps.meeting[b, a]):
                        continue
                    if latest == 0 and settled[a] & settled[b]:
                        continue
                    paired[a, b] = moves
                    if swap_star(
                        problem, penalties, routes, changed, moves, swaps, a, b, listed, other
                    ):
                        moves += 1
                        searching = True
                        for r in (a, b):
                            update_route(problem, penalties, routes, r, moves)
                            changed[r] = moves
                        join_meeting(swaps, a, b)
            vacant = _vacant(routes)
        turn += 1
    _write_routes(routes, scratch)


@inner
def _read_routes(problem, penalties, routes, order, ends):
    """The routes of a plan, the last ones empty if it has fewer."""
    m = len(order)
    w = 0
    for r in range(len(routes.load)):
        routes.route[m + r] = r
        end = ends[r] if r < len(ends) else w
        link_route(routes, m + r, order[w:end], end - w)
        w = max(w, end)
        update_route(problem, penalties, routes, r, 0)


@inner
def _write_routes(routes, scratch):
    """Lay the routes end to end."""
    next, order, ends = routes.next, scratch.order, scratch.ends
    m = len(order)
    w = 0
    for r in range(len(ends)):
        here = next[m + r]
        while here < m:
            order[w] = here
            w += 1
            here = next[here]
        ends[r] = w


@inlined
def _vacant(routes):
    """The first empty route, or -1."""
    stops = routes.stops
    for r in range(len(stops)):
        if stops[r] == 0:
            return r
    return -1

"""First solutions without compilation: nodes along a space-filling curve."""

from __future__ import annotations

import numpy as np

from drhg.construct.fleet import (
    as_plan,
    cut_routes,
    none_left_out,
    reachable,
    routes_cost,
    sectors,
)
from drhg.construct.params import USUAL, StartParams
from drhg.problem import Floats, Instance, Ints, Solution


def space_filling(
    instance: Instance, seed: int = 0, params: StartParams = USUAL
) -> tuple[Solution, Ints]:
    """Nodes in the order of a Hilbert curve; a bare matrix keeps the order of its rows.

    For a CVRP the curve is cut into routes where one is full; sectors around the depot, each in
    the curve's order, are the other candidate, and the cheaper plan is returned. Deterministic:
    neither the seed nor the parameters are used.
    """
    del seed, params
    curve = along_curve(instance)
    if not instance.is_cvrp:
        return Solution([_with_fixed_paths(instance, curve)]), none_left_out()
    near, far = reachable(instance, curve[curve != instance.depot])
    plans = [cut_routes(instance, near)]
    if instance.xy is not None and len(near):
        plans.append(sectors(instance, near, 0.0))
    return as_plan(instance, min(plans, key=lambda routes: routes_cost(instance, routes)), far)


def hilbert_order(points: Floats, bits: int = 20) -> Ints:
    """The points' order along a Hilbert curve over their bounding square, 2^bits cells wide."""
    shifted = points - points.min(axis=0)
    span = float(shifted.max(initial=0.0)) or 1.0
    cells = (shifted / span * (2**bits - 1)).astype(np.int64)
    x, y = cells[:, 0], cells[:, 1]
    key = np.zeros(len(points), dtype=np.int64)
    for bit in range(bits - 1, -1, -1):
        right, up = (x >> bit) & 1, (y >> bit) & 1
        key = (key << 2) | ((3 * right) ^ up)
        # lower quadrants are transposed, the right one of them mirrored as well
        mirror = -(right & (1 - up))  # all bits set where mirrored
        x, y = x ^ mirror, y ^ mirror
        swap = (x ^ y) & (up - 1)
        x, y = x ^ swap, y ^ swap
    return np.argsort(key, kind="stable")


def along_curve(instance: Instance) -> Ints:
    """All nodes in an order that keeps neighbours together as well as it can be had for free."""
    points = instance.plane
    return np.arange(instance.n) if points is None else hilbert_order(points)


def _with_fixed_paths(instance: Instance, order: Ints) -> Ints:
    """The order with every path of fixed edges pulled together where its first node stands."""
    if not instance.fixed_edges:
        return order
    beside: dict[int, list[int]] = {}
    for a, b in instance.fixed_edges:
        beside.setdefault(a, []).append(b)
        beside.setdefault(b, []).append(a)
    tour: list[int] = []
    done: set[int] = set()
    ends = [i for i in order.tolist() if len(beside.get(i, ())) < 2]
    for first in ends or order.tolist():  # no ends: the fixed edges are the whole tour
        here: int | None = first
        while here is not None and here not in done:
            done.add(here)
            tour.append(here)
            here = next((j for j in beside.get(here, ()) if j not in done), None)
    return np.array(tour, dtype=np.int64)

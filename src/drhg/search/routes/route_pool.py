"""Routes of good plans, and the cheapest plan that can be put together of them.

A route that keeps its limits keeps them in any plan, so plans may share routes: which ones visit
every piece once at the lowest cost is a set partitioning problem (Rochat and Taillard 1995,
"Probabilistic diversification and intensification in local search for vehicle routing"). Its
linear relaxation says which routes cannot be in a better plan; what is left goes to branch and
bound.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from drhg.problem import Floats, Ints
from drhg.problem.tolerances import GAIN
from drhg.search.routes.context import RouteLists

if TYPE_CHECKING:
    from drhg.hypergraph.plan import Index
    from drhg.search.routes.piece_context import PieceContext


class RoutePool:
    """The cheapest route seen for each set of pieces and kind of vehicle."""

    def __init__(self, context: PieceContext) -> None:
        self.context, self.params = context, context.params.pool
        self._known: dict[tuple[int, bytes], tuple[float, Index]] = {}
        self._lowest = np.inf

    def add(self, plan: RouteLists) -> None:
        """Take up the routes of a plan that leaves nobody out, unless it is much too dear."""
        self._lowest = min(self._lowest, np.inf if len(plan.absent) else plan.cost)
        if len(plan.absent) or plan.cost > (1.0 + self.params.slack) * self._lowest:
            return
        routes = np.split(plan.order, plan.ends[:-1])
        for route, kind, cost in zip(
            routes, plan.kinds.tolist(), self.costs(plan).tolist(), strict=True
        ):
            key = kind, np.sort(route).tobytes()
            known = self._known.pop(key, None)
            self._known[key] = (cost, route) if known is None or cost < known[0] else known
        for key in list(self._known)[: len(self._known) - self.params.routes]:
            del self._known[key]  # those not seen for longest

    def costs(self, plan: RouteLists) -> Floats:
        """The cost of each route, without the ways inside of its pieces."""
        instance, table = self.context.task.instance, self.context.table
        vehicles, order, kinds = table.vehicles, plan.order, plan.kinds
        tails = table.pieces.tail[order]
        before, behind = vehicles.start[kinds].astype(np.int64), tails[plan.ends - 1]
        begins = np.concatenate(([0], plan.ends[:-1])).astype(np.int64)
        legs = np.concatenate(([0.0], instance.distance(tails[:-1], order[1:])))
        legs[begins] = instance.distance(before, order[begins])
        back = instance.distance(behind, vehicles.end[kinds].astype(np.int64))
        found: Floats = np.add.reduceat(legs, begins) + np.where(vehicles.returns[kinds], back, 0.0)
        return found + vehicles.fixed[kinds]

    def cheapest(self, best: RouteLists) -> RouteLists:
        """The cheapest plan of known routes, or `best` if none is found that costs less."""
        self.add(best)
        if len(best.absent) or len(self._known) <= len(best.ends):
            return best
        routes = list(self._known.items())
        costs = np.array([cost for _, (cost, _) in routes])
        kinds = np.array([kind for (kind, _), _ in routes])
        visits = self._visits([route for _, (_, route) in routes])
        picked = self._solved(costs, kinds, visits, float(self.costs(best).sum()))
        if picked is None:
            return best
        chosen = [routes[i][1][1] for i in picked]
        return RouteLists(
            np.concatenate(chosen).astype(np.int32),
            np.cumsum([len(route) for route in chosen]).astype(np.int32),
            best.absent,
            best.cost + float(costs[picked].sum() - self.costs(best).sum()),
            kinds[picked].astype(np.int32),
        )

    def _visits(self, routes: list[Index]) -> Any:
        """Which piece (row) is in which route (column)."""
        from scipy.sparse import csc_array

        heads = self.context.table.heads
        rows = np.searchsorted(heads, np.concatenate(routes))
        columns = np.repeat(np.arange(len(routes)), [len(route) for route in routes])
        ones = np.ones(len(rows))
        return csc_array((ones, (rows, columns)), shape=(len(heads), len(routes)))

    def _solved(self, costs: Floats, kinds: Ints, visits: Any, most: float) -> Ints | None:
        """The columns of the cheapest plan that costs less than `most`, or None."""
        from scipy.optimize import Bounds, LinearConstraint, linprog, milp
        from scipy.sparse import csr_array

        number = self.context.table.vehicles.number
        fleet: Any = csr_array((np.ones(len(kinds)), (kinds, np.arange(len(kinds)))),
                          shape=(len(number), len(kinds)))  # fmt: skip
        relaxed: Any = linprog(
            costs, A_ub=fleet, b_ub=number, A_eq=visits, b_eq=np.ones(visits.shape[0])
        )
        if relaxed.status != 0 or relaxed.fun > most - GAIN:
            return None
        reduced = costs - visits.T @ relaxed.eqlin.marginals - fleet.T @ relaxed.ineqlin.marginals
        useful = np.flatnonzero(relaxed.fun + reduced < most - GAIN)
        useful = np.sort(useful[np.argsort(reduced[useful], kind="stable")][: self.params.columns])
        found: Any = milp(
            costs[useful],
            integrality=np.ones(len(useful), np.int64),
            bounds=Bounds(0, 1),
            constraints=[
                LinearConstraint(visits[:, useful], 1, 1),
                LinearConstraint(fleet[:, useful], -np.inf, number),
            ],
            options={"node_limit": self.params.nodes, "mip_rel_gap": 0.0},
        )
        if found.x is None or found.fun > most - GAIN:
            return None
        picked: Ints = useful[found.x > 0.5]
        whole = np.asarray(visits[:, picked].sum(axis=1)).ravel()
        return picked if (whole == 1.0).all() else None

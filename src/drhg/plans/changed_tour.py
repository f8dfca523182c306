"""A tour or path after a change: who leaves, who comes, and the surroundings that are repaired.

Around a change the nodes are loose; every stretch of the tour between them is a hyper-edge. Where
ways have no direction it is its two ends with a fixed edge between them, else a node to arrive at
which is left elsewhere. All of this is a small tour, which the usual search improves.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from drhg.errors import InstanceError
from drhg.hypergraph import Nearness
from drhg.plans.changes import Inherited
from drhg.plans.places import layout_of, places_of
from drhg.plans.surroundings import (
    Clock,
    ReplanParams,
    distances_of,
    each_around,
    familiar_with,
    half_prices,
)
from drhg.plans.terms import terms_of, with_chain
from drhg.problem import Instance, Metric, Solution, cost, tsp
from drhg.problem.tolerances import GAIN
from drhg.search.strategy import task_of
from drhg.search.tours.params import KickParams, TourSizes
from drhg.search.tours.strategy import Tours

LEAST = 5  # nodes: there is nothing to improve in smaller tours


class ChangedTour:
    """A tour that is being changed, as the only route of vehicle 1."""

    def __init__(
        self, instance: Instance, old: Solution, left: Inherited, price: float, params: ReplanParams
    ) -> None:
        if len(old.routes) != 1:
            raise InstanceError(f"the old tour is one route, not {len(old.routes)}")
        if left.changes.lost:
            raise InstanceError("lost: a tour has no vehicles to lose")
        self.instance, self.params = instance, params
        self.terms, self.nearness = terms_of(instance), Nearness(instance)
        self.familiar = familiar_with(instance, replace(left, vehicles=(1,)), price)
        self.vehicles, self.absent = [1], list[int]()
        self._tour: list[int] = left.routes[0].tolist()
        self._first = self._tour[0] if self._tour else -1
        self.old = [[] if left.changes.removed else list(self._tour)]
        self._seeds = [*left.changes.added, *left.changes.moved]
        if self._tour:
            self._seeds += [self._tour[at % len(self._tour)] for at in left.gaps[0].tolist()]

    @property
    def routes(self) -> list[list[int]]:
        return [self._tour]

    # --- who comes ------------------------------------------------------------------------------

    def insert(self) -> None:
        """Put everybody who is not in the tour, or not where locks want it, where it costs least.

        Fixed edges make chains, which move as a whole.
        """
        chains = self._chains()
        place = {node: at for at, node in enumerate(self._tour)}
        wrong = [path for path in chains if not self._stands(path, place)]
        ends = (self.instance.start, self._tour[:1]), (self.instance.end, self._tour[-1:])
        for node, here in ends:
            if node is not None and here != [node]:
                wrong += [path for path in chains if node in path and path not in wrong]
        taken = {node for path in wrong for node in path}
        self._tour = [node for node in self._tour if node not in taken]
        self._seeds += [path[0] for path in wrong]
        first, last = self.instance.start, self.instance.end
        wrong.sort(key=lambda path: (first not in path, last not in path))
        for path in wrong:
            self._insert(path)

    def _insert(self, path: list[int]) -> None:
        """Put a chain at one end of a path that it must make, else where it costs least."""
        if self.instance.start in path:
            self._tour = [*(path if path[0] == self.instance.start else path[::-1]), *self._tour]
            return
        if self.instance.end in path:
            self._tour = [*self._tour, *(path if path[-1] == self.instance.end else path[::-1])]
            return
        if not self._tour:
            self._tour = path
            return
        best: tuple[float, int, list[int]] = (np.inf, 0, path)
        for way in [path, path[::-1]][: min(2, len(path))]:
            terms = self.terms if len(way) == 1 else with_chain(self.terms, self.instance, way)
            layout = layout_of(terms, Solution([self._tour]))
            head = np.array([way[0]], np.int32)
            found = places_of(terms, layout, head, np.full(1, -1, np.int32))
            best = min(best, (float(found.cost[0]), int(found.before[0]), way))
        _, at, way = best
        self._tour[at:at] = way

    def _chains(self) -> list[list[int]]:
        """Nodes along fixed edges, and every other node by itself."""
        fixed = self.terms.fixed
        done = np.zeros(self.instance.n, np.bool_)
        ends = np.flatnonzero(fixed[:, 1] < 0)
        chains = []
        for first in (*ends.tolist(), *range(self.instance.n)):  # a ring has no ends
            path: list[int] = []
            node = first
            while node >= 0 and not done[node]:
                done[node] = True
                path.append(node)
                node = next((int(one) for one in fixed[node] if one >= 0 and not done[one]), -1)
            if path:
                chains.append(path)
        return chains

    def _stands(self, path: list[int], place: dict[int, int]) -> bool:
        """Whether a chain is in the tour as it must be."""
        if any(node not in place for node in path):
            return False
        steps = np.diff([place[node] for node in path])
        if self.instance.returns:
            steps = np.mod(steps, len(place))
            return bool((steps == 1).all() or (steps == len(place) - 1).all())
        return bool((steps == 1).all() or (steps == -1).all())

    # --- the surroundings -----------------------------------------------------------------------

    def improve(self, time_limit: float | None, seed: int) -> None:
        """Improve the tour around every change; then, if there is time, farther around."""
        params = self.params
        end = None if time_limit is None else time.perf_counter() + time_limit
        seeds = list(dict.fromkeys(self._seeds))

        def look(node: int, nodes: int, seconds: float | None) -> set[int]:
            return self._improve_around(node, nodes, seconds, seed)

        around = each_around(seeds, partial(look, nodes=params.customers), None, end)
        if end is not None:
            each_around(around, partial(look, nodes=params.most_customers), end, end)

    def _improve_around(self, node: int, nodes: int, seconds: float | None, seed: int) -> set[int]:
        """Improve the tour where it passes the nodes around one; returns those."""
        loose = set(self.nearness.around([node], nodes)[0].tolist()) | {node}
        stretches = self._stretches(loose)
        small = self._directed(stretches) if self._one_way else self._undirected(stretches)
        if small.instance.n >= LEAST and (seconds is not None or self.params.steps > 0):
            tour = small.improved(self.params, seconds, seed)
            if self._price(tour) < self._price(self._tour) - GAIN:
                self._tour = tour
        return loose

    @property
    def _one_way(self) -> bool:
        return not self.instance.symmetric

    def _stretches(self, loose: set[int]) -> list[list[int]]:
        """The tour in pieces: loose nodes by themselves, others as long as they follow another."""
        tour = self._tour
        if self.instance.returns:  # no stretch across the ends
            first = next(at for at, node in enumerate(tour) if node in loose)
            tour = tour[first:] + tour[:first]
        found: list[list[int]] = []
        joined = False
        for node in tour:
            if node not in loose and joined:
                found[-1].append(node)
            else:
                found.append([node])
            joined = node not in loose
        return found

    def _undirected(self, stretches: list[list[int]]) -> _Small:
        """Both ends of every stretch, which a fixed edge joins."""
        whole, familiar = self.instance, self.familiar
        order = [node for path in stretches for node in dict.fromkeys((path[0], path[-1]))]
        nodes = np.array(order, np.int64)
        local = {node: i for i, node in enumerate(order)}
        fixed = {(local[path[0]], local[path[-1]]) for path in stretches if len(path) > 1}
        for a, b in whole.fixed_edges:
            if a in local and b in local and (local[b], local[a]) not in fixed:
                fixed.add((local[a], local[b]))
        start = None if whole.start is None else local[whole.start]
        end = None if whole.end is None else local[whole.end]
        small = replace(
            whole, xy=None if whole.xy is None else whole.xy[nodes],
            matrix=None if whole.matrix is None else whole.matrix[np.ix_(nodes, nodes)],
            fixed_edges=tuple(fixed), start=start, end=end, names=None, comment="",
        )  # fmt: skip
        if familiar.price:
            extra = half_prices(familiar, nodes)
            matrix = distances_of(small) + extra
            np.fill_diagonal(matrix, 0.0)
            small = replace(small, metric=Metric.EXPLICIT, xy=None, degrees=False, matrix=matrix)
        return _Small(small, stretches, order)

    def _directed(self, stretches: list[list[int]]) -> _Small:
        """A node for every stretch."""
        whole, familiar = self.instance, self.familiar
        heads = np.array([path[0] for path in stretches], np.int64)
        tails = np.array([path[-1] for path in stretches], np.int64)
        matrix = np.array(whole.distance(tails[:, None], heads[None, :]), np.float64)
        if familiar.price:
            known = familiar.vehicle[heads] > 0
            matrix += familiar.price * (known & (familiar.before[heads] != tails[:, None]))
        np.fill_diagonal(matrix, 0.0)
        place = {node: i for i, path in enumerate(stretches) for node in (path[0], path[-1])}
        small = tsp(
            matrix=matrix, returns=whole.returns,
            start=None if whole.start is None else place[whole.start],
            end=None if whole.end is None else place[whole.end],
        )  # fmt: skip
        return _Small(small, stretches, [])

    def _price(self, tour: list[int]) -> float:
        """The cost of a tour, with the price of what is no longer as it was."""
        total = float(cost(self.instance, Solution([tour])))
        if self.familiar.price:
            total += self.familiar.price * len(self.familiar.changed([self._best_way(tour)], [1]))
        return total

    def _best_way(self, tour: list[int]) -> list[int]:
        """The tour in the direction in which more nodes keep their predecessors."""
        if self._one_way or self.instance.start is not None or self.instance.end is not None:
            return tour
        return min((tour, tour[::-1]), key=lambda way: len(self.familiar.changed([way], [1])))

    def settle(self) -> None:
        """Let the tour run as it did, and begin where it did."""
        if not self._tour:
            return
        self._tour = self._best_way(self._tour)
        if self.instance.returns and self._first in self._tour:
            at = self._tour.index(self._first)
            self._tour = self._tour[at:] + self._tour[:at]


@dataclass(frozen=True)
class _Small:
    """The surroundings as a tour of their own, which begins as it is."""

    instance: Instance
    stretches: list[list[int]]
    nodes: list[int]  # by number here; none if every stretch is a node

    def improved(self, params: ReplanParams, seconds: float | None, seed: int) -> list[int]:
        """The whole tour after a search of the small one."""
        start = Solution([range(self.instance.n)])
        best, low = start, float(cost(self.instance, start))
        steps = params.steps if seconds is None else None
        clock = Clock(steps, seconds, params.slices)
        search = Tours()
        if steps is not None:  # a population takes longer than that
            sizes = TourSizes(population_up_to=1)
            kicks = KickParams(per_slice=max(1, steps // params.slices))
            search = Tours(sizes=sizes, kicks=kicks)
        for found in search.run(task_of(self.instance, start, seed, 1), clock):
            clock.done += found.iterations
            if found.cost < low - GAIN:
                best, low = found.solution(), found.cost
            if clock.over:
                break
        return self._whole(best.tour.tolist())

    def _whole(self, tour: list[int]) -> list[int]:
        """A small tour with what lies within the stretches."""
        if not self.nodes:
            return [node for i in tour for node in self.stretches[i]]
        ends = {path[0]: path for path in self.stretches}
        ends |= {path[-1]: path[::-1] for path in self.stretches if len(path) > 1}
        order = [self.nodes[i] for i in tour]
        if len(ends[order[0]]) > 1 and ends[order[0]][-1] != order[1]:
            order = [order[-1], *order[:-1]]  # the first stretch began at the end of the list
        found: list[int] = []
        for node in order:
            if not found or node != found[-1] or len(ends[node]) == 1:
                found += ends[node]
        return found

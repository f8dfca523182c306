"""The default search for tours: a population if the size and the time allow it, else kicks."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from drhg.kernels import warmup
from drhg.problem import Instance, Metric, not_known
from drhg.search.strategy import InThisThread, Strategy
from drhg.search.tours.params import KickParams, MoveParams, PopulationParams, TourSizes

if TYPE_CHECKING:
    from drhg.hypergraph.plan import Index
    from drhg.search.strategy import Budget, Snapshot, Task


@dataclass(frozen=True)
class Tours(Strategy):
    """Descend to a local optimum, evolve populations of tours, or kick one tour for ever.

    population: tours crossed by edge assembly.
    kicks: for tours too large or times too short for a population.
    moves: the local search that both use.
    sizes: which of them for which number of nodes.
    """

    population: PopulationParams = field(default_factory=PopulationParams)
    kicks: KickParams = field(default_factory=KickParams)
    moves: MoveParams = field(default_factory=MoveParams)
    sizes: TourSizes = field(default_factory=TourSizes)

    def supports(self, instance: Instance) -> str | None:
        if instance.is_cvrp:
            return "Tours is for a TSP, and this is a CVRP"
        if not instance.symmetric and instance.n > self.sizes.directed_up_to:
            return (
                f"Tours solves asymmetric distances up to {self.sizes.directed_up_to:,} nodes, "
                f"not {instance.n:,}"
            )
        return not_known("Tours", instance, ("asymmetric", "path"))

    def run(self, task: Task, budget: Budget) -> Iterator[Snapshot]:
        """Improve the start of the task for ever; yields the best tour after every slice."""
        from drhg.search.tours.reduction import reduced
        from drhg.search.tours.tour import along_a_curve, numbered_back

        if task.instance.rich:
            symmetric = reduced(task, self.sizes, self.moves)
            if symmetric.near is None:
                found_back = self.run(symmetric.task, budget)
            else:
                found_back = self._search(symmetric.task, budget, symmetric.near)
            yield from map(symmetric.snapshot_back, found_back)
            return
        if not self._shared(task.instance):
            yield from self._search(task, budget)
            return
        renumbered, old = along_a_curve(task)
        for found in self._search(renumbered, budget):
            yield numbered_back(found, old)

    def _search(self, task: Task, budget: Budget, near: Index | None = None) -> Iterator[Snapshot]:
        from drhg.search.tours.kicks import kick_copies, kick_regions
        from drhg.search.tours.population import evolve
        from drhg.search.tours.tour import snapshot_of, subject_of, tour_of

        n, large = task.instance.n, self.sizes.is_large(task.instance.n)
        subject = subject_of(task, self.moves, quick=large, near=near)
        if large:
            tour = tour_of(task.start.tour)
        else:
            tour = subject.local_optimum(task.start.tour)
            best = snapshot_of(task, 0, tour.order)
            yield best
        alone = task.threads == 1
        with InThisThread() if alone else ThreadPoolExecutor(task.threads) as pool:
            if self.sizes.evolves(n):
                found = best
                for found in evolve(subject, best, self.population, pool, budget):
                    yield found
                tour = tour_of(found.solution().tour)  # the time is too short for a population
            small = alone and n <= self.kicks.region_nodes
            if self._shared(task.instance) and not small:
                yield from kick_regions(subject, tour, self.kicks, pool)
            else:
                yield from kick_copies(subject, tour, self.kicks, pool, budget)

    def _shared(self, instance: Instance) -> bool:
        """Whether threads kick one tour in common, its nodes renumbered along a curve."""
        return instance.n >= self.sizes.shared_from and instance.metric is not Metric.EXPLICIT

    def spreads(self, instance: Instance) -> str | None:
        if why := not_known("Tours among workers", instance):
            return why
        least = max(self.sizes.shared_from, self.sizes.population_up_to + 1)
        if self._shared(instance) and instance.n >= least:
            return None
        return f"Tours shares tours among workers from {least} nodes with coordinates on"

    def parts(self, instance: Instance) -> list[warmup.Part]:
        needed = [warmup.MOVES]
        if not instance.symmetric:
            from drhg.search.tours.reduction import load_solver

            load_solver()  # as with kernels, not in the user's time
        largest = 2 * instance.n + 2 if instance.rich else instance.n  # see `reduction`
        if self.sizes.evolves(instance.n) or self.sizes.evolves(largest):
            needed += [warmup.CROSSING, warmup.POPULATION]
        if self._shared(instance):
            needed.append(warmup.REGIONS)
        return needed

"""The search for tours: which part runs when, and that its tours are sound and shorter."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, pairwise

import numpy as np
import pytest

from drhg import DrhgError, solve
from drhg.construct.starts import construct
from drhg.problem import Solution, check, cost, tsp
from drhg.problem.generate import uniform_tsp
from drhg.search.strategy import Budget, task_of
from drhg.search.tours.params import KickParams, MoveParams, PopulationParams, TourSizes
from drhg.search.tours.strategy import Tours

LARGE = Tours(
    sizes=TourSizes(population_up_to=49, shared_from=30), kicks=KickParams(region_nodes=40)
)
"""Tours of 50 nodes count as very large."""


@pytest.mark.parametrize("threads", [1, 2])
def test_large_tours_are_kicked_region_by_region(threads: int) -> None:
    """Those that fit into a region whole, and those that do not."""
    for n in (60, 300):
        plane = uniform_tsp(n, seed=n)
        start = construct(plane, "space-filling", 0)[0]
        edges = [(int(a), int(b)) for a, b in pairwise(start.tour[: n // 5])]
        instance = tsp(plane.xy, fixed_edges=edges)
        runs = []
        for _ in range(2):
            task = task_of(instance, start, 3, threads)
            found = list(islice(LARGE.run(task, Budget(share=0.5, each=1)), 40))
            for snapshot in found:
                assert check(instance, snapshot.solution()) == []
                assert snapshot.cost == pytest.approx(cost(instance, snapshot.solution()))
                assert snapshot.iterations > 0
            costs = [snapshot.cost for snapshot in found]
            assert all(b <= a + 1e-9 for a, b in pairwise(costs))
            assert costs[-1] < 0.95 * cost(instance, start)
            runs.append((costs, found[-1].solution().tour.tolist()))
        assert runs[0] == runs[1]


def test_a_large_tour_that_cannot_move_reaches_its_last_iteration() -> None:
    plane = uniform_tsp(60, seed=1)
    start = construct(plane, "greedy", 0)[0]
    tour = start.tour.tolist()
    instance = tsp(plane.xy, fixed_edges=list(zip(tour, tour[1:] + tour[:1], strict=True)))
    found = solve(instance, method=LARGE, start=start, max_iters=50, time_limit=30, threads=2)
    assert (found.status, found.cost) == ("iterations", cost(instance, start))


@pytest.mark.compiled
def test_a_population_beats_local_search_alone() -> None:
    instance = uniform_tsp(200, seed=0)
    best = solve(instance, max_iters=6000, seed=0, threads=2)
    assert best.cost == pytest.approx(10.783127205755257, rel=1e-4)  # fast_tsp, 2 s


def test_more_threads_than_tours() -> None:
    instance = uniform_tsp(40, seed=1)
    result = solve(instance, max_iters=200, seed=0, threads=40)
    assert check(instance, result.solution) == []


@pytest.mark.parametrize(("share", "tours"), [(1 / 60, 32), (1 / 25, 19), (1 / 9, 1)])
def test_a_population_is_as_large_as_can_be_finished(share: float, tours: int) -> None:
    """Of 100 nodes it takes 1.3 times as long as making its tours, a `share` of the search each.

    If that leaves less than the smallest one, the start is kicked.
    """
    task = task_of(uniform_tsp(100, seed=0), Solution([np.arange(100)]), 0, 1)

    class Clock(Budget):
        clock: Iterator[float] = iter(np.arange(0.0, 9.0, share).tolist())

        def fraction(self) -> float:
            return next(self.clock)

    found = [one.iterations for one in islice(Tours().run(task, Clock(each=8)), 40)]
    assert found[: 2 + tours] == [0] + [1] * tours + [8]


def test_parameters_steer_the_search() -> None:
    """Another value of each object leads elsewhere, the same value to the same place."""
    instance = uniform_tsp(120, seed=4)

    def costs(method: Tours) -> list[float]:
        result = solve(instance, method=method, max_iters=60, seed=1, threads=1)
        return [point.cost for point in result.trace]

    usual = costs(Tours())
    assert costs(Tours(PopulationParams(), KickParams(), MoveParams(), TourSizes())) == usual
    assert costs(Tours(population=PopulationParams(children=1, largest_first=8))) != usual
    assert costs(Tours(moves=MoveParams(breadth=(3,)))) != usual
    assert costs(Tours(sizes=TourSizes(population_from=121))) != usual


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: MoveParams(breadth=()), "breadth"),
        (lambda: MoveParams(breadth=(8, 0)), "breadth"),
        (lambda: MoveParams(breadth=(8, 5, 3)), "breadth"),
        (lambda: MoveParams(breadth=8), "breadth"),
        (lambda: MoveParams(candidates=0), "candidates"),
        (lambda: PopulationParams(greedy_from=1.5), "greedy_from"),
        (lambda: PopulationParams(smallest=2.5), "smallest"),
        (lambda: KickParams(per_slice="many"), "per_slice"),
        (lambda: TourSizes(shared_from=0), "shared_from"),
    ],
)
def test_wrong_parameters_are_refused_by_name(make: object, named: str) -> None:
    assert callable(make)
    with pytest.raises(DrhgError, match=named):
        make()


def test_the_size_of_a_population_follows_the_time() -> None:
    params = PopulationParams()
    assert [params.first_size(n) for n in (100, 10_000, 100_000)] == [32, 16, 8]
    assert params.next_size(1000, 32, 0.0, 0.1) == 32 * 5  # 5.4 times would fit
    assert params.next_size(1000, 32, 0.2, 0.5) == 32  # never smaller than the first
    assert params.next_size(100_000, 8, 0.0, 0.01) == 40
    assert params.next_size(1_000_000, 8, 0.0, 0.01) == 8
    assert params.next_size(1000, 32, 0.0, 0.0) == 64  # it is not known how long the last took
    assert params.affordable(100, 0.5, 3, 0.0) == np.inf
    assert params.affordable(100, 0.5, 3, 0.1) == pytest.approx(0.5 * 3 / (0.1 * 1.3))

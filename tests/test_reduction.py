"""Asymmetric tours and paths are solved as symmetric tours, and read back rightly."""

from __future__ import annotations

import numpy as np
import pytest
import reference as ref

import drhg
from drhg import Solution, check, solve, tsp
from drhg.construct.starts import construct, starts_for
from drhg.problem import Instance
from drhg.search.strategy import task_of
from drhg.search.tours.params import MoveParams, TourSizes
from drhg.search.tours.reduction import reduced

KINDS = ("tour", "free", "start", "end", "both")


def small(rng: np.random.Generator, n: int, kind: str, directed: bool) -> Instance:
    """A random instance of one kind; of whole or other numbers, with many equal ones or few."""
    top = int(rng.choice([3, 99]))
    matrix = rng.integers(0, top, (n, n)) * (1 if rng.integers(2) else 0.37)
    matrix = matrix if directed else np.minimum(matrix, matrix.T)
    a, b = rng.permutation(n)[:2].tolist()
    ends = {"start": {"start": a}, "end": {"end": a}, "both": {"start": a, "end": b}}
    fixed = []
    if not directed and n > 4 and rng.integers(2):
        fixed = [tuple(pair) for pair in rng.permutation(n)[:4].reshape(2, 2).tolist()]
        fixed = [pair for pair in fixed if set(pair) != {a, b}]  # a path past the others is none
    return tsp(matrix=matrix, returns=kind == "tour", fixed_edges=fixed, **ends.get(kind, {}))


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_small_ones_are_solved_to_the_optimum(kind: str, directed: bool) -> None:
    rng = np.random.default_rng(KINDS.index(kind))
    for _ in range(12):
        instance = small(rng, int(rng.integers(2, 7)), kind, directed)
        for start in ("auto", "space-filling"):
            result = solve(instance, max_iters=200, threads=1, start=start)
            assert check(instance, result.solution) == []
            assert result.cost == pytest.approx(ref.best_order(instance))


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("kind", KINDS[1:])
def test_starts_keep_the_ends(kind: str, directed: bool) -> None:
    rng = np.random.default_rng(7)
    for n in (2, 3, 5, 30):
        instance = small(rng, n, kind, directed)
        for name in starts_for(instance):
            solution, unplaced = construct(instance, name, 1)
            assert (check(instance, solution), len(unplaced)) == ([], 0)


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_a_reduced_tour_costs_the_same_but_for_a_constant(kind: str, directed: bool) -> None:
    """Any tour of the reduction that it allows, and the tour that is read from it."""
    rng = np.random.default_rng(11)
    for _ in range(20):
        instance = small(rng, 6, kind, directed)
        if not instance.rich:
            return
        start = construct(instance, "space-filling")[0]
        form = reduced(task_of(instance, start, 0, 1), TourSizes(), MoveParams())
        symmetric, found = form.task.instance, form.task.start.tour
        assert symmetric.symmetric
        assert check(symmetric, form.task.start) == []
        constant = drhg.cost(symmetric, form.task.start) - drhg.cost(instance, start)
        for _ in range(5):
            turned = np.roll(found, int(rng.integers(len(found))))[:: rng.choice([1, -1])]
            assert form.back(turned.copy()).tolist() == start.tour.tolist() or not directed
            same = Solution([form.back(turned.copy())])
            assert check(instance, same) == []
            cost = drhg.cost(instance, same)
            assert cost == pytest.approx(drhg.cost(symmetric, form.task.start) - constant)


def test_large_paths_are_tours_without_an_edge() -> None:
    points = np.random.default_rng(3).random((300, 2))
    for ends in ({"returns": False}, {"start": 5}, {"end": 7}, {"start": 5, "end": 7}):
        instance = tsp(points, **ends)
        exact = solve(instance, max_iters=3000, threads=1)
        cut = solve(
            instance, max_iters=3000, threads=1, method=drhg.Tours(sizes=TourSizes(dummy_up_to=9))
        )
        assert check(instance, cut.solution) == check(instance, exact.solution) == []
        assert exact.cost <= cut.cost + 1e-9 <= 1.02 * exact.cost
    many = tsp(np.random.default_rng(3).random((4000, 2)), start=5)
    result = solve(many, max_iters=2000, threads=2)
    assert check(many, result.solution) == []


def test_too_many_nodes_with_directions_are_refused() -> None:
    sizes = TourSizes(directed_up_to=3)
    directed = tsp(matrix=np.arange(16).reshape(4, 4))
    with pytest.raises(drhg.DrhgError, match="asymmetric distances up to 3 nodes, not 4"):
        solve(directed, max_iters=1, method=drhg.Tours(sizes=sizes))

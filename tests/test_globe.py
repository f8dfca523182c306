"""Latitude and longitude: great circles through every search, compared with their matrix."""

from __future__ import annotations

import numpy as np
import pytest
from soak import cases

import drhg
from drhg.problem.generate import as_matrix

PLACES = {
    "a city": ((48.14, 11.58), 0.1),
    "a country": ((47.0, 8.0), 2.0),
    "the date line": ((-17.0, 179.98), 1.0),
    "a pole": ((89.6, 10.0), 0.3),
}


def points_near(where: tuple[float, float], spread: float, n: int, seed: int) -> np.ndarray:
    """Points in a patch of so many degrees, wherever on the globe it lies."""
    step = np.random.default_rng(seed).uniform(-spread, spread, (n, 2))
    latitude = np.minimum(where[0] + step[:, 0], 90.0)
    longitude = where[1] + step[:, 1] / np.cos(np.radians(where[0]))
    return np.stack([latitude, (longitude + 180) % 360 - 180], axis=1)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("seed", range(cases(2, 7)))  # 56 instances in `make soak`
@pytest.mark.parametrize("routes", [False, True], ids=["tsp", "cvrp"])
def test_as_good_as_the_matrix_of_the_same_distances(place: str, seed: int, routes: bool) -> None:
    xy = points_near(*PLACES[place], 24, seed)
    demand = [0, *np.random.default_rng(seed).integers(1, 9, 23).tolist()]
    globe = (
        drhg.cvrp(xy, demand, 30, metric="HAVERSINE")
        if routes
        else drhg.tsp(xy, metric="HAVERSINE")
    )
    iterations = 10_000 if routes else 300
    ways = [
        drhg.solve(one, max_iters=iterations, seed=seed, threads=1)
        for one in (globe, as_matrix(globe))
    ]
    assert ways[0].cost == pytest.approx(ways[1].cost, rel=1e-9)
    assert drhg.check(globe, ways[0].solution) == []


@pytest.mark.parametrize("place", PLACES)
def test_a_repairer_walks_the_same_way_on_the_globe_and_on_its_matrix(place: str) -> None:
    globe = drhg.tsp(points_near(*PLACES[place], 40, 5), metric="HAVERSINE")
    start = drhg.Solution([np.arange(40)])
    runs = [
        drhg.solve(one, start=start, method="insertion", max_iters=60, seed=1, threads=1)
        for one in (globe, as_matrix(globe))
    ]
    assert runs[0].solution == runs[1].solution
    assert runs[0].cost == pytest.approx(runs[1].cost, rel=1e-12)


def test_the_network_sees_a_plane_wherever_the_nodes_lie() -> None:
    """A patch at the date line is seen as the same patch elsewhere on the same latitude."""
    from drhg import hypergraph as h

    seen = []
    for longitude in (10.0, 179.99):
        xy = points_near((40.0, longitude), 0.5, 30, 7)
        instance = drhg.tsp(xy, metric="HAVERSINE")
        rules = h.rules_of(instance)
        plan = h.plan_of(rules, drhg.Solution([np.arange(30)]))
        ranked = h.Nearness(instance).around([3], 30)
        cuts = h.destroy_nearest(rules, plan, ranked, np.array([12]))
        seen.append(h.features(rules, h.reduce(rules, plan, *cuts)))
    np.testing.assert_allclose(seen[0], seen[1], atol=1e-5)

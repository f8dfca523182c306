"""Random instances as pure functions of their arguments: uniform, clustered, X-style, the paper's.

Nothing here draws from a global generator. The paper's test sets (Section 5) are rebuilt draw by
draw with the legacy `RandomState`, whose stream NumPy guarantees not to change.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from drhg.errors import InstanceError
from drhg.problem import (
    Floats,
    Instance,
    Ints,
    Metric,
    an_instance,
    cvrp,
    real_number,
    shown,
    tsp,
    whole_number,
)

# customers -> capacity: the paper's four sizes, and the usual values for smaller ones
_CAPACITY_AT = {20: 30, 50: 40, 100: 50, 200: 80, 500: 100, 1000: 250}
PAPER_CVRP_SIZES = (100, 200, 500, 1000)
LARGEST = 10**8  # nodes
SIDE = 1_000_000  # of the square in files: coordinates are whole numbers in 0 .. SIDE


def rounded(instance: Instance) -> Instance:
    """A generated instance as other programs read it: whole coordinates, distances rounded.

    The unit square becomes 0 .. 1,000,000 and the metric EUC_2D, as in the DIMACS challenge. What
    is rounded already, as `x_cvrp` is, stays as it is.

    >>> from drhg.problem.generate import rounded, uniform_tsp
    >>> rounded(uniform_tsp(2, seed=1)).xy.tolist()
    [[511822.0, 950464.0], [144160.0, 948649.0]]
    """
    if an_instance(instance).metric is not Metric.EXACT:
        return instance
    assert instance.xy is not None
    comment = f"The unit square times {SIDE}, rounded to whole numbers"
    return replace(instance, xy=np.rint(instance.xy * SIDE), metric=Metric.EUC_2D, comment=comment)


def as_matrix(instance: Instance) -> Instance:
    """The same with all distances in a matrix, and without coordinates."""
    nodes = np.arange(instance.n)
    matrix = instance.distance(nodes[:, None], nodes)
    return replace(instance, xy=None, degrees=False, metric=Metric.EXPLICIT, matrix=matrix)


def uniform_tsp(n: int, seed: int = 0, *, name: str | None = None) -> Instance:
    """n points, uniform in the unit square.

    >>> from drhg.problem.generate import uniform_tsp
    >>> uniform_tsp(5, seed=1).name
    'uniform-tsp5-s1'
    """
    n, seed = _size(n), whole_number("seed", seed, 0)
    points = np.random.default_rng(seed).random((n, 2))
    return tsp(points, name=f"uniform-tsp{n}-s{seed}" if name is None else name)


def clustered_tsp(
    n: int, seed: int = 0, clusters: int | None = None, *, name: str | None = None
) -> Instance:
    """n points scattered normally around uniform centres, as in the DIMACS challenge.

    One centre per hundred points unless `clusters` says otherwise; the spread is 1 / sqrt(n), and
    what falls outside the unit square is mirrored back into it.
    """
    n, seed = _size(n), whole_number("seed", seed, 0)
    rng = np.random.default_rng(seed)
    count = max(1, n // 100) if clusters is None else _size(clusters, "clusters")
    centres = rng.random((count, 2))
    points = centres[rng.integers(count, size=n)] + rng.normal(size=(n, 2)) / math.sqrt(n)
    folded = np.abs((points + 1.0) % 2.0 - 1.0)  # a mirror at every whole number
    return tsp(folded, name=f"clustered-tsp{n}-s{seed}" if name is None else name)


def paper_capacity(n: int) -> int:
    """Vehicle capacity for n customers: the paper's at its four sizes, linear in between.

    >>> from drhg.problem.generate import paper_capacity
    >>> [paper_capacity(n) for n in (20, 100, 150, 1000, 5000)]
    [30, 50, 65, 250, 250]
    """
    n = _size(n)
    return round(float(np.interp(n, list(_CAPACITY_AT), list(_CAPACITY_AT.values()))))


def uniform_cvrp(
    n: int, seed: int = 0, capacity: int | None = None, *, name: str | None = None
) -> Instance:
    """A depot (node 0) and n customers, uniform in the unit square, demands 1 to 9."""
    n, seed = _size(n), whole_number("seed", seed, 0)
    rng = np.random.default_rng(seed)
    points = rng.random((n + 1, 2))
    demand = np.concatenate(([0], rng.integers(1, 10, size=n)))
    return cvrp(
        points,
        demand,
        paper_capacity(n) if capacity is None else capacity,
        name=f"uniform-cvrp{n}-s{seed}" if name is None else name,
    )


# --- the paper's test sets ---------------------------------------------------------------------


def paper_cvrp(n: int, count: int | None = None) -> list[Instance]:
    """The first `count` instances of the paper's CVRP test set with n customers (Section 5).

    n is 100 (10,000 instances), 200, 500 or 1000 (128 each). All depots are drawn first, then all
    customers, then all demands, so the whole set is drawn whatever `count` is.
    """
    n = _size(n)
    if n not in PAPER_CVRP_SIZES:
        known = ", ".join(map(str, PAPER_CVRP_SIZES))
        raise InstanceError(f"the paper has no CVRP set of {n} customers; known sizes: {known}")
    size = 10_000 if n == 100 else 128
    count = _count(count, size)
    rng = np.random.RandomState(1234)  # the set is defined by this stream
    depots = rng.uniform(size=(size, 2))
    customers = rng.uniform(size=(size, n, 2))
    demand = rng.randint(1, 10, size=(size, n))
    return [
        cvrp(
            np.vstack((depots[i], customers[i])),
            np.concatenate(([0], demand[i])),
            _CAPACITY_AT[n],
            name=f"paper-cvrp{n}-{i}",
        )
        for i in range(count)
    ]


def paper_tsp5000(count: int | None = None) -> list[Instance]:
    """The first `count` of the 128 instances of the paper's TSP5000 test set (inferred stream)."""
    count = _count(count, 128)
    points = np.random.RandomState(123).uniform(size=(count, 5000, 2))
    return [tsp(points[i], name=f"paper-tsp5000-{i}") for i in range(count)]


def paper_tsp(n: int, count: int = 128) -> list[Instance]:
    """Uniform instances for the paper's other TSP sizes: fixed sets of **our own**.

    The paper's files for these sizes cannot be rebuilt from a seed, so only the distribution is
    the same: compare mean gaps, never instances. A smaller `count` is a prefix of a larger one.
    """
    n, count = _size(n), whole_number("count", count, 0)
    points = np.random.default_rng([2025, n]).random((count, n, 2))
    return [tsp(points[i], name=f"our-tsp{n}-{i}") for i in range(count)]


# --- X-style instances -------------------------------------------------------------------------

GRID = 1000  # coordinates are whole numbers in 0 .. GRID
LARGEST_X = 100_000  # beyond, clusters run out of free grid points
DEPOTS = ("centre", "corner", "random")
CUSTOMERS = ("random", "clustered", "random-clustered")
DEMANDS = ("unit", "1-10", "5-10", "1-100", "50-100", "quadrant", "many-small")


def x_cvrp(
    n: int,
    seed: int = 0,
    *,
    depot: str | None = None,
    customers: str | None = None,
    demand: str | None = None,
    route_size: float | None = None,
    name: str | None = None,
) -> Instance:
    """An instance like those of CVRPLIB's set X (Uchoa et al. 2017, Section 4).

    A depot (node 0) and n customers on distinct points of the grid, distances rounded. What is not
    given is drawn from the seed: `depot` (one of DEPOTS), `customers` (CUSTOMERS), `demand`
    (DEMANDS) and `route_size`, the wanted mean number of customers of a route, triangular on
    3 .. 25 with mode 6. Capacity is that size times the mean demand, rounded up.
    """
    n, seed = _size(n, most=LARGEST_X), whole_number("seed", seed, 0)
    rng = np.random.default_rng(seed)
    # always drawn, so that fixing one option leaves the others of this seed as they were
    drawn = [options[rng.integers(len(options))] for options in (DEPOTS, CUSTOMERS, DEMANDS)]
    drawn_size = float(rng.triangular(3.0, 6.0, 25.0))
    place = _one_of("depot", drawn[0] if depot is None else depot, DEPOTS)
    layout = _one_of("customers", drawn[1] if customers is None else customers, CUSTOMERS)
    law = _one_of("demand", drawn[2] if demand is None else demand, DEMANDS)
    size = drawn_size if route_size is None else real_number("route_size", route_size, 1.0)

    points = _grid_points(rng, n, place, layout)  # (n + 1, 2), the depot first
    amounts = _demands(rng, law, points[1:])
    capacity = max(math.ceil(size * int(amounts.sum()) / n), int(amounts.max()))
    return cvrp(
        points,
        np.concatenate(([0], amounts)),
        capacity,
        metric=Metric.EUC_2D,
        name=f"x-cvrp{n}-s{seed}" if name is None else name,
    )


def _grid_points(rng: np.random.Generator, n: int, place: str, layout: str) -> Floats:
    """Distinct grid points: the depot, then the uniform customers, then the clustered ones."""
    side = GRID + 1
    taken = np.zeros(side * side, dtype=np.bool_)
    chosen: list[Ints] = []  # cells, as x * side + y

    def take(cells: Ints, wanted: int) -> int:
        _, first = np.unique(cells, return_index=True)
        cells = cells[np.sort(first)]  # in the order drawn, without repeats
        cells = cells[~taken[cells]][:wanted]
        taken[cells] = True
        chosen.append(cells)
        return len(cells)

    if place == "random":
        take(rng.integers(side * side, size=1), 1)
    else:
        corner = 0 if place == "corner" else GRID // 2
        take(np.array([corner * side + corner]), 1)

    seeds = 0 if layout == "random" else int(rng.integers(3, 9))
    clustered = {"random": 0, "clustered": n, "random-clustered": n // 2}[layout]
    seeds = min(seeds, clustered)
    missing = n - clustered + seeds
    while missing:
        missing -= take(rng.integers(side * side, size=missing), missing)
    if clustered == 0:
        return _unravel(chosen, side)

    # the seeds of the clusters are customers themselves: the last ones placed so far
    centres = _unravel(chosen, side)[-seeds:]
    missing = clustered - seeds
    while missing:
        cells = rng.integers(side * side, size=1000 + 16 * missing)
        apart = _unravel([cells], side)[:, None, :] - centres[None, :, :]  # (cells, seeds, 2)
        attraction = np.exp(-np.hypot(apart[..., 0], apart[..., 1]) / 40.0).sum(axis=1)
        missing -= take(cells[rng.random(len(cells)) <= attraction], missing)
    return _unravel(chosen, side)


def _unravel(cells: list[Ints], side: int) -> Floats:
    return np.stack(np.divmod(np.concatenate(cells), side), axis=1).astype(np.float64)


def _demands(rng: np.random.Generator, law: str, points: Floats) -> Ints:
    n = len(points)
    if law == "unit":
        return np.ones(n, dtype=np.int64)
    if law == "quadrant":  # small north-east and south-west of the middle, large elsewhere
        small = (points[:, 0] < GRID / 2) == (points[:, 1] < GRID / 2)
        return np.where(small, rng.integers(1, 51, size=n), rng.integers(51, 101, size=n))
    if law == "many-small":
        share = rng.uniform(0.70, 0.95)
        small = rng.random(n) < share
        return np.where(small, rng.integers(1, 11, size=n), rng.integers(50, 101, size=n))
    low, high = map(int, law.split("-"))
    return rng.integers(low, high + 1, size=n)


def _one_of(what: str, value: Any, known: tuple[str, ...]) -> str:
    if not isinstance(value, str) or value not in known:
        raise InstanceError(f"unknown {what} {shown(value)}; known: {', '.join(known)}")
    return value


def _size(n: Any, name: str = "n", most: int = LARGEST) -> int:
    whole = whole_number(name, n, 1)
    if whole > most:
        raise InstanceError(f"{name} must be at most {most}, not {shown(n)}")
    return whole


def _count(count: int | None, size: int) -> int:
    wanted = size if count is None else whole_number("count", count, 0)
    if wanted > size:
        raise InstanceError(f"the set has {size} instances, but count is {shown(count)}")
    return wanted

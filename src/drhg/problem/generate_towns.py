"""Random plans of a whole country: towns of very different sizes, and one depot.

Very large instances of the literature look like this: those of Arnold, Gendreau and Sörensen (2019,
"Efficiently solving very large-scale routing problems") have customers where Belgians live, demands
of 1, 2 or 3, a depot in the middle or far outside, and routes that are short or very long.
"""

from __future__ import annotations

import math

import numpy as np

from drhg.errors import InstanceError
from drhg.problem.arguments import Floats, one_of, real_number, shown, whole_number
from drhg.problem.build import cvrp
from drhg.problem.instance import Instance
from drhg.problem.metrics import Metric

DEPOTS = ("central", "eccentric")
ROUTES = {"short": (8.0, 16.0), "long": (60.0, 120.0)}  # mean customers of a route, from .. to
LARGEST = 10**6  # customers

_PER_TOWN = 40  # customers of a town, on average
_RANK = 0.9  # the town of rank r has a share of customers in proportion to r ** -_RANK
_SPACING = 60.0  # side of the square that a customer has for itself
_SPREAD = 0.25  # of a town, in sides of the square that its customers have together


def towns_cvrp(
    n: int,
    seed: int = 0,
    *,
    depot: str | None = None,
    route_size: float | None = None,
    name: str | None = None,
) -> Instance:
    """A depot (node 0) and n customers in towns, distances rounded.

    What is not given is drawn from the seed: `depot` ("central" or "eccentric", in a corner of the
    country) and `route_size`, the wanted mean number of customers of a route, 8 to 16 or 60 to 120.

    >>> from drhg.problem.generate_towns import towns_cvrp
    >>> country = towns_cvrp(3000, seed=1, depot="eccentric", route_size=80)
    >>> country.n, country.capacity
    (3001, 136)
    """
    n, seed = whole_number("n", n, 1), whole_number("seed", seed, 0)
    if n > LARGEST:
        raise InstanceError(f"n must be at most {LARGEST}, not {shown(n)}")
    if depot is not None:
        one_of("depot", depot, DEPOTS)
    rng = np.random.default_rng(seed)
    # always drawn, so that fixing one option leaves the others of this seed as they were
    drawn_depot = DEPOTS[rng.integers(len(DEPOTS))]
    drawn_size = float(rng.uniform(*list(ROUTES.values())[rng.integers(len(ROUTES))]))
    size = drawn_size if route_size is None else real_number("route_size", route_size, 1.0)
    demand = rng.choice(3, size=n, p=[0.5, 0.3, 0.2]) + 1
    side = _SPACING * math.sqrt(n)
    customers = _customers(rng, n, side)
    eccentric = (depot or drawn_depot) == "eccentric"
    place = np.zeros(2) if eccentric else customers.mean(axis=0)
    return cvrp(
        np.rint(np.vstack((place, customers))),
        np.concatenate(([0], demand)),
        max(3, math.ceil(size * 1.7)),  # 1.7 is the mean demand
        metric=Metric.EUC_2D,
        name=f"towns-cvrp{n}-s{seed}" if name is None else name,
    )


def _customers(rng: np.random.Generator, n: int, side: float) -> Floats:
    """Points in towns, half of which lie in the surroundings of larger ones."""
    towns = max(1, n // _PER_TOWN)
    share = np.arange(1, towns + 1) ** -_RANK
    share /= share.sum()
    centres = rng.random((towns, 2)) * side
    small = np.flatnonzero((rng.random(towns) < 0.5) & (np.arange(towns) >= 1))
    larger = (rng.random(len(small)) ** 2 * small).astype(np.int64)  # rather the largest
    centres[small] = centres[larger] + rng.normal(size=(len(small), 2)) * 0.08 * side
    home = rng.choice(towns, size=n, p=share)
    spread = _SPREAD * _SPACING * np.sqrt(share * n)
    points = centres[home] + rng.normal(size=(n, 2)) * spread[home, None]
    folded: Floats = side * np.abs((points / side + 1.0) % 2.0 - 1.0)  # a mirror at the borders
    return folded

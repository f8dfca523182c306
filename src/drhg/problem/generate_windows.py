"""Random instances with time windows, of the six kinds that Solomon (1987) made usual."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from drhg.errors import InstanceError
from drhg.problem import Floats, Instance, Metric, real_number, shown, vrp, whole_number


class _Law(NamedTuple):
    """What makes a kind, for a hundred customers; horizons grow with the square they live in."""

    clustered: float  # share of the customers that live in clusters
    horizon: float  # when the depot closes
    capacity: int
    service: float
    narrowest: float  # windows are this wide ...
    widest: float  # ... to that, most of the time


LAWS = {
    "R1": _Law(0.0, 230.0, 200, 10.0, 10.0, 120.0),
    "R2": _Law(0.0, 1000.0, 1000, 10.0, 60.0, 500.0),
    "C1": _Law(1.0, 1236.0, 200, 90.0, 25.0, 300.0),
    "C2": _Law(1.0, 3390.0, 700, 90.0, 150.0, 1250.0),
    "RC1": _Law(0.5, 240.0, 200, 10.0, 10.0, 120.0),
    "RC2": _Law(0.5, 960.0, 1000, 10.0, 60.0, 500.0),
}
"""Random places, clusters or both; a short horizon and small vehicles (1) or long and large (2)."""
DENSITIES = (0.5, 0.75, 1.0, 1.0)  # shares of customers that have a window at all


def windows_vrp(
    kind: str, n: int, seed: int = 0, *, density: float | None = None, name: str | None = None
) -> Instance:
    """An instance with time windows like those of Solomon: n customers, distances cut to a tenth.

    kind: R1, R2, C1, C2, RC1 or RC2. density: the share of customers with a window, by default
    drawn from the seed. Every customer can be served in time; what else a window says is random.

    >>> from drhg.problem.generate_windows import windows_vrp
    >>> windows_vrp("RC1", 20, seed=3).name
    'RC1-20-s3'
    """
    if kind not in LAWS:
        raise InstanceError(f"kind must be one of {', '.join(LAWS)}, not {shown(kind)}")
    law, n, seed = LAWS[kind], whole_number("n", n, 1), whole_number("seed", seed, 0)
    rng = np.random.default_rng([seed, n, list(LAWS).index(kind)])
    drawn = DENSITIES[rng.integers(len(DENSITIES))]
    density = drawn if density is None else real_number("density", density, 0.0)
    scale = max(1.0, math.sqrt(n / 100))
    xy = _places(rng, n, 100.0 * scale, law.clustered)
    there = np.hypot(*(xy[1:] - xy[0]).T) + 0.1  # a little more than it takes
    horizon = max(math.floor(law.horizon * scale), math.ceil(2 * there.max() + law.service + 2))
    last = horizon - law.service - there
    middle = there + rng.random(n) * (last - there)
    half = rng.uniform(law.narrowest, law.widest, n) / 2
    opens = np.ceil(np.maximum(there, np.minimum(middle - half, last - 2)))
    closes = np.maximum(opens, np.floor(np.minimum(last, middle + half)))
    free = rng.random(n) >= density
    opens[free], closes[free] = 0.0, horizon
    return vrp(
        xy=xy,
        metric=Metric.TRUNC1,
        demand=np.concatenate(([0], rng.integers(5, 41, n))),
        capacity=law.capacity,
        windows=np.vstack(([0.0, horizon], np.stack((opens, closes), axis=1))),
        service_time=law.service,
        name=f"{kind}-{n}-s{seed}" if name is None else name,
    )


def _places(rng: np.random.Generator, n: int, side: float, clustered: float) -> Floats:
    """The depot in the middle of a square, then customers on whole coordinates."""
    inside = round(clustered * n)
    xy = [np.full((1, 2), side / 2), rng.random((n - inside, 2)) * side]
    if inside:
        centres = side * (0.1 + 0.8 * rng.random((max(1, inside // 10), 2)))
        around = rng.normal(0.0, 4.0, (inside, 2))
        xy.append(np.clip(centres[rng.integers(len(centres), size=inside)] + around, 0.0, side))
    return np.concatenate(xy).round()

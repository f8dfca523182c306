"""Tours of uniform nodes: how good after how long, beside fast_tsp; and what each part brings.

    python benchmarks/tours.py sizes                   100 to 100,000 nodes, about 25 minutes
    python benchmarks/tours.py sizes --only 1000       one row
    python benchmarks/tours.py ablation                parts taken away at equal time, 8 minutes
    python benchmarks/tours.py million                 1,000,000 nodes for 600 s

All cores are used; run it on an idle machine. Instances are `drhg.uniform_tsp(n, seed=0, 1, ..)`.
Up to 5,000 nodes gaps are against fast_tsp on all cores for much longer (so they can be negative),
beyond against the expected length of an optimal tour.
"""

from __future__ import annotations

import argparse
import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

import drhg
from drhg import local_search, search
from drhg.benchmark.references import expected_optimum

# nodes, seconds, instances, seconds of fast_tsp for the reference
SIZES = (
    (100, 1, 8, 1),
    (200, 1, 8, 2),
    (500, 2, 8, 5),
    (1_000, 5, 8, 15),
    (5_000, 30, 8, 60),
    (10_000, 60, 8, 0),
    (100_000, 180, 1, 0),
)


def reference(instance: drhg.Instance, seconds: float) -> float:
    if not seconds:
        return expected_optimum(instance.n)
    import fast_tsp

    i = np.arange(instance.n)
    scaled = np.round(instance.distance(i[:, None], i[None, :]) * 45_000).astype(np.uint16)
    tour = fast_tsp.find_tour(scaled, duration_seconds=seconds, max_threads=os.cpu_count())
    return float(drhg.cost(instance, drhg.Solution([tour])))


def warm_up(n: int, **how: Any) -> None:
    drhg.solve(drhg.uniform_tsp(n, seed=999), max_iters=200, **how)


def gaps(
    n: int,
    seconds: float,
    known: list[float],
    make: Callable[..., drhg.Instance] = drhg.uniform_tsp,
    **how: Any,
) -> np.ndarray:
    found = []
    for seed in range(len(known)):
        instance = make(n, seed=seed)
        found.append(drhg.solve(instance, time_limit=seconds, seed=seed, **how).cost)
    return 100 * (np.array(found) / known - 1)


def memory() -> str:
    return f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB at most so far"


def line(label: str, gap: np.ndarray) -> None:
    error = gap.std(ddof=1) / np.sqrt(len(gap)) if len(gap) > 1 else float("nan")
    print(f"{label}: {gap.mean():+.4f} % (s.e. {error:.4f}, worst {gap.max():+.4f})", flush=True)


def sizes(only: int | None, count: int | None) -> None:
    for n, seconds, instances, long in SIZES:
        if only not in (None, n):
            continue
        warm_up(min(n, 20_000))
        seeds = range(count or instances)
        known = [reference(drhg.uniform_tsp(n, seed=seed), long) for seed in seeds]
        against = f"fast_tsp {long} s" if long else "the expected optimum"
        line(f"n = {n}, {seconds} s, {len(known)} x, over {against}", gaps(n, seconds, known))
        print(f"    {memory()}", flush=True)


@contextmanager
def changed(values: dict[tuple[Any, str], Any]) -> Iterator[None]:
    """Parts of the search replaced for a while."""
    before = {(module, name): getattr(module, name) for module, name in values}
    try:
        for (module, name), value in values.items():
            setattr(module, name, value)
        yield
    finally:
        for (module, name), value in before.items():
            setattr(module, name, value)


def _nobody(instance: drhg.Instance, k: int) -> np.ndarray:
    return np.full((instance.n, k), -1, np.int32)


PARTS: tuple[tuple[str, dict[str, Any], dict[tuple[Any, str], Any]], ...] = (
    ("auto: a population, crossed where tours differ", {}, {}),
    ("the same on one core", {"threads": 1}, {}),
    ("no Delaunay neighbours among candidates", {}, {(local_search, "delaunay_lists"): _nobody}),
    ("nearest neighbours alone as candidates", {},
     {(search, "candidate_lists"): local_search.neighbour_lists}),
    ("children by length alone, no diversity", {}, {(search, "FINISH"): 0.0}),
    ("kicks only, no population", {}, {(search, "BREED"): 10**9}),
    ("regions repaired by fast_tsp, k 200 to 800", {"repair": "library"}, {}),
    ("regions repaired by fast_tsp, no memory of regions",
     {"repair": "library", "destroy": "cluster"}, {}),
    ("regions repaired by local search, k 20 to 100", {"repair": "local"}, {}),
    ("regions repaired by the network, k 20 to 100", {"repair": "neural"}, {}),
    ("regions repaired by the network, then local search", {"repair": "hybrid"}, {}),
)  # fmt: skip


def ablation(part: str, n: int = 1_000, seconds: float = 5.0, count: int = 4) -> None:
    """What each part brings at equal time, on uniform nodes and on a few dense clusters."""
    kinds = {"uniform": drhg.uniform_tsp, "clustered": partial(drhg.clustered_tsp, clusters=5)}
    known = {
        kind: [reference(make(n, seed=seed), 15) for seed in range(count)]
        for kind, make in kinds.items()
    }
    for label, how, parts in PARTS:
        if part not in label:
            continue
        with changed(parts):
            warm_up(n, **({} if how.get("repair") == "library" else how))
            for kind, make in kinds.items():
                line(f"{label}, {kind}", gaps(n, seconds, known[kind], make, **how))


def million() -> None:
    n = 1_000_000
    warm_up(20_000)
    result = drhg.solve(drhg.uniform_tsp(n, seed=0), time_limit=600)
    for point in result.trace[:: max(1, len(result.trace) // 12)]:
        print(f"{point.seconds:6.1f} s  {100 * (point.cost / expected_optimum(n) - 1):6.2f} %")
    gap = 100 * (result.cost / expected_optimum(n) - 1)
    print(f"n = {n}, {result.seconds:.1f} s: {gap:.2f} % over the expected optimum, {memory()}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("sizes", "ablation", "million"))
    parser.add_argument("--only", type=int, help="of the sizes, this one")
    parser.add_argument("--part", default="", help="of the ablation, rows with this word")
    parser.add_argument("--count", type=int, help="instances per size")
    options = parser.parse_args()
    chosen: dict[str, Callable[[], None]] = {
        "sizes": lambda: sizes(options.only, options.count),
        "ablation": lambda: ablation(options.part),
        "million": million,
    }
    chosen[options.what]()


if __name__ == "__main__":
    main()

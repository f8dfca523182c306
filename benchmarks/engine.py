"""Figures of the search engine without a network; prints one line per measurement.

    python benchmarks/engine.py tsp       mean of 8 uniform TSP1000, 10 s each, beside fast_tsp
    python benchmarks/engine.py cvrp      X-n502-k39 and X-n1001-k43, 10 s each (needs $DRHG_DATA)
    python benchmarks/engine.py huge      100,000 uniform nodes for 60 s, with peak memory
    python benchmarks/engine.py regions   batched destroy, reduce, restore; cost per region over n
    python benchmarks/engine.py kicks     kicks per second for n = 1e3 to 1e6

All cores are used; run it on an idle machine.
"""

from __future__ import annotations

import os
import resource
import sys
import time
from pathlib import Path

import numpy as np

import drhg

DATA = Path(os.environ.get("DRHG_DATA", "data"))
BEST_KNOWN = {"X-n502-k39": 69226, "X-n1001-k43": 72355}  # CVRPLIB


def expected_optimum(n: int) -> float:
    """Mean length of an optimal tour of n uniform points in the unit square."""
    return float(0.7124 * np.sqrt(n) * (1 + 0.8 / np.sqrt(n)))


def warm_up(instance: drhg.Instance) -> None:
    """Load kernels from the cache, or compile them, before the clock counts."""
    drhg.solve(instance, max_iters=20)


def tsp(n: int = 1000, count: int = 8, seconds: float = 10.0) -> None:
    import fast_tsp

    warm_up(drhg.uniform_tsp(n, seed=999))
    gaps = []
    for seed in range(count):
        instance = drhg.uniform_tsp(n, seed=seed)
        ours = drhg.solve(instance, time_limit=seconds, seed=seed).cost
        i = np.arange(n)
        scaled = np.round(instance.distance(i[:, None], i[None, :]) * 40_000).astype(int)
        tour = fast_tsp.find_tour(scaled, duration_seconds=seconds)
        theirs = drhg.cost(instance, drhg.Solution([tour]))
        gaps.append(100 * (ours / theirs - 1))
        print(f"seed {seed}: drhg {ours:.5f}, fast_tsp {theirs:.5f}, {gaps[-1]:+.3f} %", flush=True)
    error = np.std(gaps, ddof=1) / np.sqrt(count)
    print(f"TSP{n}, {seconds:g} s: {np.mean(gaps):+.3f} % of fast_tsp (standard error {error:.3f})")


def cvrp(seconds: float = 10.0) -> None:
    warm_up(drhg.uniform_cvrp(100, seed=1))
    for name, best in BEST_KNOWN.items():
        instance = drhg.read(DATA / "cvrplib" / "X" / f"{name}.vrp")
        result = drhg.solve(instance, time_limit=seconds)
        gap = 100 * (result.cost / best - 1)
        print(f"{name}: {result.cost} after {result.seconds:.1f} s, {gap:.2f} % over {best}")


def huge(n: int = 100_000, seconds: float = 60.0) -> None:
    warm_up(drhg.uniform_tsp(20_000, seed=1))
    result = drhg.solve(drhg.uniform_tsp(n, seed=1), time_limit=seconds)
    for point in result.trace[:: max(1, len(result.trace) // 10)]:
        print(f"{point.seconds:6.1f} s  {100 * (point.cost / expected_optimum(n) - 1):6.2f} %")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    gap = 100 * (result.cost / expected_optimum(n) - 1)
    print(
        f"{n} nodes, {result.seconds:.1f} s: {gap:.2f} % over the expected optimum, {memory:.0f} MB"
    )


def regions(k: int = 100, count: int = 64) -> None:
    from drhg.construct import construct
    from drhg.hypergraph import (
        Nearness,
        destroy_nearest,
        judge,
        plan_of,
        present,
        reduce,
        restore_in_place,
        rules_of,
    )
    from drhg.search import WINDOW

    for n in (10_000, 100_000, 1_000_000):
        instance = drhg.uniform_tsp(n, seed=1)
        rules, nearness = rules_of(instance), Nearness(instance)
        plan = plan_of(rules, construct(instance, "greedy", 0)[0])
        rng = np.random.default_rng(0)
        best = np.full(4, np.inf)
        for _ in range(8):
            t0 = time.perf_counter()
            ranked = nearness.around(rng.choice(n, count), k)
            t1 = time.perf_counter()
            graphs = reduce(rules, plan, *destroy_nearest(rules, plan, ranked, k, reach=WINDOW))
            t2 = time.perf_counter()
            judge(rules, plan, graphs, present(graphs))
            t3 = time.perf_counter()
            for row in range(count):
                restore_in_place(rules, plan, graphs, row, present(graphs))
            t4 = time.perf_counter()
            best = np.minimum(best, 1000 * np.diff([t0, t1, t2, t3, t4]))
        names = ("nearest", "destroy + reduce", "judge", "restore")
        parts = ", ".join(f"{name} {ms:.2f}" for name, ms in zip(names, best, strict=True))
        print(f"n = {n:>9,}, {count} regions of k = {k}: {parts} ms; sum {best.sum():.2f} ms")


def kicks() -> None:
    for n in (1_000, 10_000, 100_000, 1_000_000):
        instance = drhg.uniform_tsp(n, seed=1)
        warm_up(drhg.uniform_tsp(min(n, 20_000), seed=2))
        result = drhg.solve(instance, time_limit=10 if n < 1_000_000 else 60)
        since = next(p.seconds for p in result.trace if p.iterations > 0)
        print(f"n = {n:>9,}: {result.iterations / (result.seconds - since):,.0f} kicks/s")


if __name__ == "__main__":
    chosen = sys.argv[1:] or ["tsp", "cvrp", "huge", "regions", "kicks"]
    for name in chosen:
        {"tsp": tsp, "cvrp": cvrp, "huge": huge, "regions": regions, "kicks": kicks}[name]()

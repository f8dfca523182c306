"""Neural repair alone from random insertion: mean gap after 10 .. T iterations.

    python benchmarks/neural_solve.py 100 --count 32 --iterations 1000

References are tours by fast_tsp on the same instances, 0.1 s per 100 nodes.
"""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ThreadPoolExecutor

import fast_tsp
import numpy as np

import drhg


def reference(instance: drhg.Instance) -> float:
    i = np.arange(instance.n)
    scaled = np.round(instance.distance(i[:, None], i[None, :]) * 40_000).astype(int)
    tour = fast_tsp.find_tour(scaled, duration_seconds=instance.n / 1000)
    return float(drhg.cost(instance, drhg.Solution([tour])))


def gaps(n: int, seed: int, marks: list[int]) -> list[float]:
    instance = drhg.uniform_tsp(n, seed=seed)
    best = reference(instance)
    result = drhg.solve(instance, repair="neural", max_iters=marks[-1], seed=seed, threads=1)
    starts_at = next(p.cost for p in result.trace[1:])  # after the space-filling curve: insertion
    costs = [
        min([p.cost for p in result.trace[1:] if p.iterations <= mark], default=starts_at)
        for mark in marks
    ]
    return [100 * (cost / best - 1) for cost in costs]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("n", type=int)
    parser.add_argument("--count", type=int, default=32)
    parser.add_argument("--iterations", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1_000_000)
    options = parser.parse_args()
    marks = [m for m in (0, 10, 100, 200, 500) if m < options.iterations] + [options.iterations]
    drhg.solve(drhg.uniform_tsp(50), repair="neural", max_iters=2)  # compile
    began = time.perf_counter()
    with ThreadPoolExecutor(2) as pool:
        seeds = range(options.seed, options.seed + options.count)
        rows = list(pool.map(lambda seed: gaps(options.n, seed, marks), seeds))
    seconds = (time.perf_counter() - began) / options.count
    mean, error = np.mean(rows, axis=0), np.std(rows, axis=0) / np.sqrt(len(rows))
    for mark, gap, spread in zip(marks, mean, error, strict=True):
        print(f"TSP{options.n}, {mark:5d} iterations: {gap:7.3f} % (standard error {spread:.3f})")
    print(f"{options.count} instances, two at a time, {seconds:.1f} s each")


if __name__ == "__main__":
    main()

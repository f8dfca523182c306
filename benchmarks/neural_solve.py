"""Neural repair alone from random insertion: mean gap after 10 .. T iterations, as one batch.

    python benchmarks/neural_solve.py 100 --count 32 --iterations 1000
    python benchmarks/neural_solve.py 1000 --model run/weights.safetensors --k 20,200

References are tours by fast_tsp on the same instances, 0.1 s per 100 nodes.
"""

from __future__ import annotations

import argparse
import time

import fast_tsp
import numpy as np

import drhg


def reference(instance: drhg.Instance) -> float:
    i = np.arange(instance.n)
    scaled = np.round(instance.distance(i[:, None], i[None, :]) * 40_000).astype(int)
    tour = fast_tsp.find_tour(scaled, duration_seconds=instance.n / 1000)
    return float(drhg.cost(instance, drhg.Solution([tour])))


def cost_after(result: drhg.Result, iterations: int) -> float:
    points = result.trace[1:]  # the first is the space-filling curve, the second insertion
    return float(min(p.cost for p in points if p.iterations <= iterations))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("n", type=int)
    parser.add_argument("--count", type=int, default=32)
    parser.add_argument("--iterations", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1_000_000)
    parser.add_argument("--model", default="auto")
    parser.add_argument("--k", help="LOW,HIGH")
    parser.add_argument("--centres", default="uniform")
    parser.add_argument("--alternatives", type=int, default=1)
    options = parser.parse_args()
    marks = [m for m in (0, 10, 100, 200, 500) if m < options.iterations] + [options.iterations]
    seeds = range(options.seed, options.seed + options.count)
    instances = [drhg.uniform_tsp(options.n, seed=seed) for seed in seeds]
    how = {
        "model": options.model,
        "k": tuple(int(part) for part in options.k.split(",")) if options.k else None,
        "centres": options.centres,
        "alternatives": options.alternatives,
    }
    drhg.solve_many(instances[:2], max_iters=2, **how)  # compile
    began = time.perf_counter()
    results = drhg.solve_many(instances, max_iters=options.iterations, seed=options.seed, **how)
    seconds = time.perf_counter() - began
    best = np.array([reference(instance) for instance in instances])
    for mark in marks:
        gaps = 100 * (np.array([cost_after(result, mark) for result in results]) / best - 1)
        error = gaps.std() / np.sqrt(len(gaps))
        print(f"TSP{options.n}, {mark:5d} iterations: {gaps.mean():7.3f} % (s.e. {error:.3f})")
    each = seconds / options.count
    print(f"{options.count} instances as one batch, {seconds:.1f} s, {each:.1f} s each")


if __name__ == "__main__":
    main()

"""Neural repair alone, from the paper's starts: mean gap after 10 .. T iterations.

    python benchmarks/neural_solve.py 100 --count 32 --iterations 1000
    python benchmarks/neural_solve.py 200 --routes --count 32

Tours are uniform, from random insertion; references are tours by fast_tsp, 0.1 s per 100 nodes.
With --routes: the first instances of the paper's CVRP sets, from clusters by angle with nearest
neighbours, paired with LKH3's costs (`cvrp_lkh_costs.csv` in $DRHG_DATA) where these are known,
else with hygese, if --hygese says for how many seconds.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

import drhg
from drhg.generate import paper_cvrp


def by_fast_tsp(instance: drhg.Instance) -> float:
    import fast_tsp

    i = np.arange(instance.n)
    scaled = np.round(instance.distance(i[:, None], i[None, :]) * 40_000).astype(int)
    tour = fast_tsp.find_tour(scaled, duration_seconds=instance.n / 1000)
    return float(drhg.cost(instance, drhg.Solution([tour])))


def by_hygese(instance: drhg.Instance, seconds: float) -> float:
    from drhg.training.labels import plan_of

    seq = plan_of(instance, seconds)
    routes = np.split(seq, np.flatnonzero(seq <= 0))
    solution = drhg.Solution([r[r > 0] for r in routes if (r > 0).any()])
    return float(drhg.cost(instance, solution))


def by_lkh(n: int) -> dict[int, float]:
    """LKH3's costs of the paper's set, by instance."""
    path = Path(os.environ.get("DRHG_DATA", ".")) / "cvrp_lkh_costs.csv"
    if not path.exists():
        return {}
    with open(path, encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if int(row["n"]) == n]
    return {int(row["index"]): float(row["lkh3_cost"]) for row in rows}


def costs(instance: drhg.Instance, seed: int, marks: list[int], how: dict[str, Any]) -> list[float]:
    """The best cost after so many iterations each."""
    result = drhg.solve(instance, repair="neural", max_iters=marks[-1], seed=seed, threads=1, **how)
    # The first two points are the space-filling curve and the start, unless that was no better.
    start = drhg.solve(instance, repair="neural", max_iters=0, seed=seed, threads=1, **how).cost
    return [
        min([p.cost for p in result.trace[1:] if p.iterations <= mark], default=start)
        for mark in marks
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("n", type=int)
    parser.add_argument("--routes", action="store_true", help="the paper's CVRP set of n customers")
    parser.add_argument("--count", type=int, default=32)
    parser.add_argument("--iterations", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1_000_000)
    parser.add_argument("--model", default="auto", help="weights: a name in the box or a file")
    parser.add_argument("--alternatives", type=int, default=1)
    parser.add_argument("--k", type=int, nargs=2, help="least and most destroyed nodes")
    parser.add_argument("--hygese", type=float, help="seconds per instance for a reference")
    parser.add_argument("--threads", type=int, default=2, help="instances at a time")
    options = parser.parse_args()
    marks = [m for m in (0, 10, 100, 200, 500) if m < options.iterations] + [options.iterations]
    how: dict[str, Any] = {"model": options.model, "alternatives": options.alternatives}
    if options.k:
        how["k"] = tuple(options.k)
    seeds = [options.seed + i for i in range(options.count)]
    if options.routes:
        name, instances = "CVRP", paper_cvrp(options.n, options.count)
        small = drhg.uniform_cvrp(30)
    else:
        name, instances = "TSP", [drhg.uniform_tsp(options.n, seed=seed) for seed in seeds]
        small = drhg.uniform_tsp(50)
    drhg.solve(small, repair="neural", max_iters=2, model=options.model)  # compile
    began = time.perf_counter()
    with ThreadPoolExecutor(options.threads) as pool:
        jobs = zip(instances, seeds, strict=True)
        found = np.array(list(pool.map(lambda job: costs(*job, marks, how), jobs)))
        seconds = (time.perf_counter() - began) / options.count
        by, reference = references(options, instances, pool)
    for i, mark in enumerate(marks):
        gap = ""
        if by:
            gaps = 100 * (found[:, i] / reference - 1)
            gap = f", {gaps.mean():7.3f} % (standard error {gaps.std() / np.sqrt(len(gaps)):.3f})"
        print(f"{name}{options.n}, {mark:5d} iterations: {found[:, i].mean():8.4f}{gap}")
    if by:
        print(f"reference: {by}, {reference.mean():.4f}")
    print(f"{options.count} instances, {options.threads} at a time, {seconds:.1f} s each")


def references(
    options: argparse.Namespace, instances: list[drhg.Instance], pool: ThreadPoolExecutor
) -> tuple[str, Any]:
    """What to compare with, and its costs."""
    if not options.routes:
        return "fast_tsp", np.array(list(pool.map(by_fast_tsp, instances)))
    known = by_lkh(options.n)
    if known:
        return "LKH3", np.array([known[i] for i in range(options.count)])
    if options.hygese is None:
        return "", np.zeros(0)
    found = pool.map(lambda instance: by_hygese(instance, options.hygese), instances)
    return f"hygese, {options.hygese:g} s", np.array(list(found))


if __name__ == "__main__":
    main()

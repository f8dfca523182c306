"""Neural repair alone, from the paper's starts: mean gap after 10 .. T iterations, as one batch.

    python benchmarks/neural_solve.py 100 --count 32 --iterations 1000
    python benchmarks/neural_solve.py 1000 --model run/weights.safetensors --k 20,200
    python benchmarks/neural_solve.py 200 --routes --count 32

Tours are uniform, from random insertion; references are tours by drhg's own best mode, 0.5 s per
100 nodes and at least 1 s (within 0.01 % of the best known, see `tours.py sizes`), or above 5,000
nodes the expected optimum.
With --routes: the first instances of the paper's CVRP sets, from clusters by angle with nearest
neighbours, paired with LKH3's costs (`cvrp_lkh_costs.csv` in $DRHG_DATA) where these are known,
else with hygese, if --hygese says for how many seconds each.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

import drhg
from drhg.generate import paper_cvrp


def by_best_mode(instance: drhg.Instance) -> float:
    from drhg.benchmark.references import expected_optimum

    if instance.n > 5_000:
        return expected_optimum(instance.n)
    return float(drhg.solve(instance, time_limit=max(1.0, instance.n / 200)).cost)


def by_hygese(instance: drhg.Instance, seconds: float) -> float:
    from drhg.training.labels import plan_of

    seq = plan_of(instance, seconds)
    routes = np.split(seq, np.flatnonzero(seq <= 0))
    return float(drhg.cost(instance, drhg.Solution([r[r > 0] for r in routes if (r > 0).any()])))


def by_lkh(n: int) -> dict[int, float]:
    """LKH3's costs of the paper's set, by instance; empty where they are not known."""
    path = Path(os.environ.get("DRHG_DATA", ".")) / "cvrp_lkh_costs.csv"
    if not path.exists():
        return {}
    with open(path, encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if int(row["n"]) == n]
    return {int(row["index"]): float(row["lkh3_cost"]) for row in rows}


def references(options: argparse.Namespace, instances: list[drhg.Instance]) -> tuple[str, Any]:
    """Who to compare with, and their costs."""
    if not options.routes:
        drhg.solve(instances[0], max_iters=2_000)  # compile
        return "drhg, auto", np.array([by_best_mode(instance) for instance in instances])
    known = by_lkh(options.n)
    if known:
        return "LKH3", np.array([known[i] for i in range(options.count)])
    if options.hygese is None:
        return "", None
    cores = len(os.sched_getaffinity(0))  # processes: hygese counts the processor's seconds
    with ProcessPoolExecutor(cores, mp_context=get_context("spawn")) as pool:
        costs = list(pool.map(partial(by_hygese, seconds=options.hygese), instances))
    return f"hygese, {options.hygese:g} s", np.array(costs)


def cost_after(result: drhg.Result, iterations: int) -> float:
    points = result.trace[1:]  # the first is a space-filling curve, the second the start
    found = [p.cost for p in points if p.iterations <= iterations]
    return float(min(found, default=result.trace[0].cost))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("n", type=int)
    parser.add_argument("--routes", action="store_true", help="the paper's CVRPs of n customers")
    parser.add_argument("--count", type=int, default=32)
    parser.add_argument("--iterations", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1_000_000)
    parser.add_argument("--model", default="auto")
    parser.add_argument("--k", help="LOW,HIGH")
    parser.add_argument("--centres", default="uniform")
    parser.add_argument("--destroy", default="auto", help="see `drhg solve --help`")
    parser.add_argument("--alternatives", type=int, default=1)
    parser.add_argument("--hygese", type=float, help="seconds per instance for a reference")
    options = parser.parse_args()
    marks = [m for m in (0, 10, 100, 200, 500) if m < options.iterations] + [options.iterations]
    if options.routes:
        name, instances = f"CVRP{options.n}", paper_cvrp(options.n, options.count)
    else:
        seeds = range(options.seed, options.seed + options.count)
        name, instances = f"TSP{options.n}", [drhg.uniform_tsp(options.n, seed=s) for s in seeds]
    how = {
        "model": options.model,
        "k": tuple(int(part) for part in options.k.split(",")) if options.k else None,
        "centres": options.centres,
        "destroy": options.destroy,
        "alternatives": options.alternatives,
    }
    drhg.solve_many(instances[:2], max_iters=2, **how)  # compile
    began = time.perf_counter()
    results = drhg.solve_many(instances, max_iters=options.iterations, seed=options.seed, **how)
    seconds = time.perf_counter() - began
    by, best = references(options, instances)
    for mark in marks:
        costs = np.array([cost_after(result, mark) for result in results])
        line = f"{name}, {mark:5d} iterations: {costs.mean():8.4f}"
        if best is not None:
            gaps = 100 * (costs / best - 1)
            line += f", {gaps.mean():7.3f} % (s.e. {gaps.std() / np.sqrt(len(gaps)):.3f})"
        print(line)
    if best is not None:
        print(f"reference: {by}, {best.mean():.4f}")
    each = seconds / options.count
    print(f"{options.count} instances as one batch, {seconds:.1f} s, {each:.1f} s each")


if __name__ == "__main__":
    main()

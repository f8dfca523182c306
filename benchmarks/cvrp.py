"""Routes: drhg beside pyvrp and hygese on the same machine, instance by instance.

    python benchmarks/cvrp.py x20                       20 X instances, a tenth of a second per node
    python benchmarks/cvrp.py x100 --solvers drhg       all of X
    python benchmarks/cvrp.py classic --seconds 5       A B E F M P with k vehicles
    python benchmarks/cvrp.py paper100 --seconds 2 --rival-seconds 5 --count 32
    python benchmarks/cvrp.py paper500 --seconds 60 --rival-seconds 120 --count 2
    python benchmarks/cvrp.py uniform5000 --seconds 120 --solvers drhg,pyvrp
    python benchmarks/cvrp.py ablation --seconds 10     ways to search routes, at equal time
    python benchmarks/cvrp.py speed                     removal and insertion steps per second

Every solver has the same cores: drhg as threads, a rival as that many processes with seeds of
their own, of which the best counts. Every answer passes the checker and is measured by the
instance's own metric; gaps are over the best known cost where there is one. X and classic need
$DRHG_DATA. Rows go to --out as JSON lines. Run it on an idle machine.
"""

from __future__ import annotations

import argparse
import csv
import json
import multiprocessing
import os
import resource
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import drhg
from drhg.benchmark.rivals import RIVALS

DATA = Path(os.environ.get("DRHG_DATA", "data"))
X20 = [
    "X-n106-k14",
    "X-n129-k18",
    "X-n153-k22",
    "X-n190-k8",
    "X-n214-k11",
    "X-n256-k16",
    "X-n284-k15",
    "X-n317-k53",
    "X-n344-k43",
    "X-n393-k38",
    "X-n439-k37",
    "X-n491-k59",
    "X-n524-k153",
    "X-n573-k30",
    "X-n627-k43",
    "X-n701-k44",
    "X-n783-k48",
    "X-n856-k95",
    "X-n936-k151",
    "X-n979-k58",
]
ABLATION = ["X-n200-k36", "X-n303-k21", "X-n502-k39", "X-n701-k44"]
WAYS: list[tuple[str, dict[str, Any]]] = [
    ("auto: strings, and populations", {}),
    ("regions: pyvrp, whole routes", {"repair": "library"}),
    ("regions: pyvrp, clusters, hyper-edges kept", {"repair": "library", "destroy": "cluster"}),
    ("regions: hygese, whole routes", {"repair": "library", "library": "hygese"}),
    ("regions: local search, clusters", {"repair": "local", "destroy": "cluster"}),
    ("regions: local search, clusters, all depot edges",
     {"repair": "local", "destroy": "cluster", "depot_edges": "all"}),
    ("regions: local search, strings", {"repair": "local", "destroy": "strings"}),
    ("regions: local search, whole routes", {"repair": "local", "destroy": "routes"}),
    ("regions: local search, adaptive", {"repair": "local", "destroy": "adaptive"}),
    ("regions: insertion, clusters", {"repair": "insertion", "destroy": "cluster"}),
    ("regions: insertion, strings", {"repair": "insertion", "destroy": "strings"}),
    ("regions: the network", {"repair": "neural"}),
    ("regions: the network, then local search", {"repair": "hybrid"}),
]  # fmt: skip


def best_known() -> dict[str, int]:
    with open(DATA / "cvrplib" / "solutions.csv", newline="") as file:
        return {row["name"]: int(row["best_known"]) for row in csv.DictReader(file)}


def library(sets: str) -> Iterator[drhg.Instance]:
    for name in sets.split():
        for path in sorted((DATA / "cvrplib" / name).glob("*.vrp")):
            yield drhg.read(path)


def paper_set(n: int) -> Iterator[drhg.Instance]:
    """The paper's test set of that size, rebuilt from its seed."""
    capacity, count = {100: (50, 10_000), 200: (80, 128), 500: (100, 128), 1000: (250, 128)}[n]
    rng = np.random.RandomState(1234)
    depots = rng.uniform(size=(count, 2))
    customers = rng.uniform(size=(count, n, 2))
    demands = rng.randint(1, 10, size=(count, n))
    for i in range(count):
        xy = np.vstack((depots[i], customers[i]))
        demand = np.concatenate(([0], demands[i]))
        yield drhg.cvrp(xy, demand, capacity, name=f"CVRP{n}-{i}")


def suite(name: str) -> Iterator[drhg.Instance]:
    if name == "x20":
        return (drhg.read(DATA / "cvrplib" / "X" / f"{x}.vrp") for x in X20)
    if name == "x100":
        return library("X")
    if name == "classic":  # k vehicles, as the names say and the best known solutions use
        found = library("A B E F M P")
        return (replace(x, vehicles=int(x.name.rsplit("-k", 1)[1])) for x in found)
    if name.startswith("paper"):
        return paper_set(int(name.removeprefix("paper")))
    n = int(name.removeprefix("uniform"))
    return (drhg.uniform_cvrp(n, seed=seed) for seed in range(1, 100))


def run_drhg(instance: drhg.Instance, seconds: float, cores: int) -> drhg.Solution | None:
    result = drhg.solve(instance, time_limit=seconds, threads=cores)
    return None if result.status == "infeasible" else result.solution


def _rival(name: str, instance: drhg.Instance, seconds: float, seed: int) -> list[list[int]] | None:
    try:
        return RIVALS[name].prepare(instance, seconds, seed, 1)() or None
    except drhg.DrhgError:
        return None  # found nothing feasible


def run_rival(
    pool: ProcessPoolExecutor, name: str, instance: drhg.Instance, seconds: float, cores: int
) -> drhg.Solution | None:
    jobs = [pool.submit(_rival, name, instance, seconds, seed) for seed in range(cores)]
    found = [routes for job in jobs if (routes := job.result()) is not None]
    plans = [drhg.Solution([r for r in routes if r]) for routes in found]
    return min(plans, key=lambda plan: drhg.cost(instance, plan), default=None)


def compare(options: argparse.Namespace) -> None:
    solvers = options.solvers.split(",")
    only = options.only.split(",") if options.only else None
    known = best_known() if options.suite in ("x20", "x100", "classic") else {}
    for n in (100, 300, 700):  # each way to search, compiled before clocks count
        drhg.solve(drhg.uniform_cvrp(n, seed=999), max_iters=20_000, threads=options.cores)
    gaps: dict[str, list[float]] = {name: [] for name in solvers}
    failed = 0
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.cores, mp_context=context) as pool:
        done = 0
        for instance in suite(options.suite):
            if only is not None and instance.name not in only:
                continue
            if options.count is not None and done >= options.count:
                break
            done += 1
            seconds = options.seconds or instance.n / 10
            costs: dict[str, float] = {}
            for name in solvers:
                limit = seconds if name == "drhg" else options.rival_seconds or seconds
                began = time.perf_counter()
                if name == "drhg":
                    plan = run_drhg(instance, limit, options.cores)
                else:
                    plan = run_rival(pool, name, instance, limit, options.cores)
                spent = time.perf_counter() - began
                wrong = plan is None or bool(drhg.check(instance, plan))
                failed += wrong
                costs[name] = np.inf if wrong or plan is None else float(drhg.cost(instance, plan))
                if options.out:
                    row = {
                        "suite": options.suite,
                        "instance": instance.name,
                        "solver": name,
                        "cost": costs[name],
                        "limit": limit,
                        "seconds": round(spent, 2),
                        "cores": options.cores,
                        "best_known": known.get(instance.name),
                    }
                    with open(options.out, "a") as file:
                        file.write(json.dumps(row) + "\n")
            base = known.get(instance.name) or costs[solvers[-1]]
            for name in solvers:
                gaps[name].append(100.0 * (costs[name] / base - 1.0))
            cells = "  ".join(
                f"{name} {costs[name]:>11.6g} {gaps[name][-1]:+7.3f} %" for name in solvers
            )
            print(f"{instance.name:<14} {seconds:>6.1f} s  {cells}", flush=True)
    over = "the best known" if known else solvers[-1]
    for name in solvers:
        values = np.array(gaps[name])
        error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
        print(
            f"{name}: mean {values.mean():+.3f} % over {over} (standard error {error:.3f}), "
            f"worst {values.max():+.3f} %, {len(values)} instances"
        )
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"infeasible or missing answers: {failed}; drhg: at most {memory:,.0f} MB")


def ablation(options: argparse.Namespace) -> None:
    """Gaps over the best known cost of every way to search, each with the same time."""
    seconds, known = options.seconds or 10.0, best_known()
    names = options.only.split(",") if options.only else ABLATION[: options.count]
    print(f"gap over the best known cost (%), {seconds:g} s each, {options.cores} threads")
    print(f"{'':<50}" + "".join(f"{name:>13}" for name in names) + f"{'mean':>9}")
    small = drhg.uniform_cvrp(30, seed=1)
    for title, how in WAYS:
        gaps = []
        try:
            drhg.solve(small, max_iters=3, **how)  # compiled before clocks count
            for name in names:
                instance = drhg.read(DATA / "cvrplib" / "X" / f"{name}.vrp")
                found = drhg.solve(instance, time_limit=seconds, threads=options.cores, **how)
                assert not drhg.check(instance, found.solution)
                gaps.append(100.0 * (found.cost / known[name] - 1.0))
        except drhg.DrhgError as error:
            print(f"{title:<50}  left out: {error}")
            continue
        cells = "".join(f"{gap:>13.2f}" for gap in gaps)
        print(f"{title:<50}{cells}{np.mean(gaps):>9.2f}", flush=True)


def speed(steps: int = 40_000) -> None:
    """String removal and insertion on one core, ten customers removed on average."""
    from drhg.compiled import random_state
    from drhg.construct import construct
    from drhg.route_search import COLD, start_of
    from drhg.search import task_of
    from drhg.strings import REMOVED, string_slice

    for instance in (drhg.read(DATA / "cvrplib" / "X" / "X-n502-k39.vrp"), next(paper_set(1000))):
        task = task_of(instance, construct(instance, "savings", 0)[0], 0, 1)
        part, unit = start_of(task)
        state = random_state(1)
        string_slice(*part, COLD * unit, REMOVED, 1_000, state)
        began = time.perf_counter()
        string_slice(*part, COLD * unit, REMOVED, steps, state)
        print(f"{instance.name}: {steps / (time.perf_counter() - began):,.0f} steps/s and core")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "suite", help="x20, x100, classic, paper100/200/500/1000, uniformN, ablation, speed"
    )
    parser.add_argument("--seconds", type=float, help="per instance (default: nodes / 10)")
    parser.add_argument("--rival-seconds", type=float, help="the same for rivals, if different")
    parser.add_argument("--solvers", default="drhg,pyvrp,hygese")
    parser.add_argument("--cores", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--count", type=int, help="only so many instances")
    parser.add_argument("--only", help="names, with commas between them")
    parser.add_argument("--out", help="file to which rows are added, one JSON object each")
    options = parser.parse_args()
    if options.suite == "speed":
        speed()
    elif options.suite == "ablation":
        ablation(options)
    else:
        compare(options)


if __name__ == "__main__":
    main()

"""Golden trajectories: what every search does with a fixed seed, iterations and threads.

A pure move or rename of code reproduces each of them to the last bit. After a change of behaviour
that is meant, write them anew and say why in the commit:

    python tests/golden/cases.py
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import drhg
from drhg.problem.generate_windows import windows_vrp

FILE = Path(__file__).with_name("trajectories.json")


def _matrix(n: int) -> drhg.Instance:
    xy = np.random.default_rng(n).integers(0, 1000, (n, 2))
    d = np.abs(xy[:, None, :] - xy[None, :, :]).sum(axis=2)
    return drhg.tsp(matrix=d)


def _globe(n: int) -> drhg.Instance:
    rng = np.random.default_rng(n)
    degrees = rng.integers(0, 80, (n, 2)) + rng.integers(0, 60, (n, 2)) / 100
    return drhg.tsp(degrees, metric="GEO")


def _grid(n: int, metric: str) -> drhg.Instance:
    return drhg.tsp(np.random.default_rng(n).integers(0, 500, (n, 2)), metric=metric)


def _fixed(n: int) -> drhg.Instance:
    edges = [(i, i + 1) for i in range(0, n - 1, 7)]
    return replace(drhg.uniform_tsp(n, seed=n), fixed_edges=tuple(edges))


def _limited(n: int) -> drhg.Instance:
    """A fleet that is just enough and routes of limited length, with service."""
    instance = drhg.x_cvrp(n, seed=n)
    assert instance.demand is not None
    assert instance.capacity is not None
    fleet = -(-int(instance.demand.sum()) // instance.capacity)
    return replace(instance, vehicles=fleet + 2, max_distance=4000.0, service_time=10.0)


def _one_way(n: int) -> drhg.Instance:
    """Distances that depend on the direction."""
    flat = _cvrp_matrix(n)
    assert flat.matrix is not None
    uphill = np.triu(np.ones((flat.n, flat.n), np.int64))
    return replace(flat, matrix=flat.matrix + uphill * (flat.matrix // 3))


def _shifts(n: int) -> drhg.Instance:
    """Windows, goods that are released during the day, and routes of limited duration."""
    instance = windows_vrp("R2", n, seed=n)
    release = np.where(np.arange(instance.n) % 4 == 1, instance.opens / 2, 0.0)
    return replace(instance, release=release, max_duration=400.0)


def _cvrp_matrix(n: int) -> drhg.Instance:
    flat = drhg.x_cvrp(n, seed=n)
    nodes = np.arange(flat.n)
    matrix = flat.distance(nodes[:, None], nodes[None, :])
    return replace(flat, xy=None, metric=drhg.Metric.EXPLICIT, matrix=matrix)


NEURAL = drhg.Regions(repair=drhg.Neural())

CASES: dict[str, tuple[Callable[[], drhg.Instance], dict[str, Any]]] = {
    "tours-5": (lambda: drhg.uniform_tsp(5, seed=1), {"max_iters": 200}),
    "tours-60": (lambda: drhg.uniform_tsp(60, seed=1), {"max_iters": 500}),
    "tours-300": (lambda: drhg.uniform_tsp(300, seed=2), {"max_iters": 700}),
    "tours-300-two-threads": (
        lambda: drhg.uniform_tsp(300, seed=2),
        {"max_iters": 700, "threads": 2},
    ),
    "tours-1500-clustered": (lambda: drhg.clustered_tsp(1500, seed=3), {"max_iters": 400}),
    "tours-300-no-improve": (lambda: drhg.uniform_tsp(300, seed=4), {"no_improve": 900}),
    "tours-5000-regions": (
        lambda: drhg.uniform_tsp(5000, seed=5),
        {"max_iters": 8000, "threads": 2},
    ),
    "tours-matrix": (lambda: _matrix(120), {"max_iters": 400}),
    "tours-geo": (lambda: _globe(90), {"max_iters": 400}),
    "tours-att": (lambda: _grid(80, "ATT"), {"max_iters": 300}),
    "tours-ceil": (lambda: _grid(80, "CEIL_2D"), {"max_iters": 300}),
    "tours-fixed-edges": (lambda: _fixed(200), {"max_iters": 400}),
    "routes-8": (lambda: drhg.x_cvrp(8, seed=1), {"max_iters": 400}),
    "routes-100": (lambda: drhg.x_cvrp(100, seed=1), {"max_iters": 20_000}),
    "routes-100-two-threads": (
        lambda: drhg.x_cvrp(100, seed=1),
        {"max_iters": 20_000, "threads": 2},
    ),
    "routes-250-uniform": (lambda: drhg.uniform_cvrp(250, seed=2), {"max_iters": 40_000}),
    "routes-450": (lambda: drhg.x_cvrp(450, seed=3), {"max_iters": 60_000}),
    "routes-450-no-improve": (lambda: drhg.x_cvrp(450, seed=4), {"no_improve": 60_000}),
    "routes-800-shared": (lambda: drhg.x_cvrp(800, seed=5), {"max_iters": 60_000, "threads": 2}),
    "routes-2500-large": (
        lambda: drhg.uniform_cvrp(2500, seed=6),
        {"max_iters": 40_000, "threads": 2},
    ),
    "routes-limited": (lambda: _limited(120), {"max_iters": 30_000}),
    "routes-matrix": (lambda: _cvrp_matrix(90), {"max_iters": 20_000}),
    "routes-windows-100": (lambda: windows_vrp("RC1", 100, 2), {"max_iters": 20_000}),
    "routes-windows-700-shared": (
        lambda: windows_vrp("R2", 700, 3),
        {"max_iters": 20_000, "threads": 2},
    ),
    "routes-one-way": (lambda: _one_way(80), {"max_iters": 20_000}),
    "routes-open": (lambda: replace(drhg.x_cvrp(90, seed=2), returns=False), {"max_iters": 20_000}),
    "routes-shifts": (lambda: _shifts(80), {"max_iters": 20_000}),
    "regions-local": (lambda: drhg.uniform_tsp(300, seed=7), {"method": "local", "max_iters": 150}),
    "regions-insertion": (
        lambda: drhg.uniform_tsp(300, seed=7),
        {"method": "insertion", "max_iters": 150},
    ),
    "regions-covering": (
        lambda: drhg.uniform_tsp(300, seed=7),
        {"method": drhg.Regions(drhg.Covering()), "max_iters": 150},
    ),
    "regions-grid": (
        lambda: drhg.uniform_tsp(300, seed=7),
        {"method": drhg.Regions(drhg.Cluster(centres="grid")), "max_iters": 150},
    ),
    "regions-routes-local": (
        lambda: drhg.x_cvrp(150, seed=8),
        {"method": "local", "max_iters": 150},
    ),
    "regions-routes-insertion": (
        lambda: drhg.x_cvrp(150, seed=8),
        {"method": "insertion", "max_iters": 150},
    ),
    "regions-routes-adaptive": (
        lambda: drhg.x_cvrp(150, seed=8),
        {"method": drhg.Regions(drhg.Adaptive()), "max_iters": 150},
    ),
    "regions-routes-all-depot-edges": (
        lambda: drhg.x_cvrp(150, seed=8),
        {"method": drhg.Regions(drhg.Cluster(depot_edges="all")), "max_iters": 60},
    ),
    "neural-200": (lambda: drhg.uniform_tsp(200, seed=9), {"method": NEURAL, "max_iters": 40}),
    "neural-large-600": (
        lambda: drhg.uniform_tsp(600, seed=9),
        {"method": drhg.Regions(repair=drhg.Neural(alternatives=2)), "max_iters": 20},
    ),
    "neural-sampled": (
        lambda: drhg.uniform_tsp(200, seed=9),
        {"method": drhg.Regions(repair=drhg.Neural(sample=True)), "max_iters": 20},
    ),
    "neural-paper": (
        lambda: drhg.uniform_tsp(100, seed=9),
        {"method": drhg.Regions(repair=drhg.Neural("paper")), "max_iters": 4},
    ),
    "neural-routes": (
        lambda: drhg.uniform_cvrp(120, seed=9),
        {"method": NEURAL, "max_iters": 30},
    ),
    "hybrid-200": (lambda: drhg.uniform_tsp(200, seed=9), {"method": "hybrid", "max_iters": 30}),
    "hybrid-routes": (
        lambda: drhg.uniform_cvrp(120, seed=9),
        {"method": "hybrid", "max_iters": 30},
    ),
    **{
        f"start-{start}": (
            lambda: drhg.uniform_tsp(300, seed=7),
            {"method": "local", "start": start, "max_iters": 5},
        )
        for start in ("insertion", "greedy", "space-filling")
    },
    **{
        f"start-routes-{start}": (
            lambda: drhg.x_cvrp(150, seed=8),
            {"method": "local", "start": start, "max_iters": 5},
        )
        for start in ("insertion", "sweep", "savings", "space-filling")
    },
}


def trajectory(name: str) -> dict[str, Any]:
    """Every improvement of a case, and where it ends."""
    make, options = CASES[name]
    result = drhg.solve(make(), seed=11, **{"threads": 1} | options)
    digest = hashlib.sha256()
    for route in result.solution.routes:
        digest.update(np.asarray(route, np.int64).tobytes() + b"|")
    for point in result.trace:
        digest.update(f"{point.iterations} {point.cost!r}".encode())
    return {
        "cost": result.cost, "iterations": result.iterations,
        "improvements": len(result.trace), "digest": digest.hexdigest()[:16],
    }  # fmt: skip


if __name__ == "__main__":
    wanted = sys.argv[1:] or list(CASES)
    known = json.loads(FILE.read_text()) if FILE.exists() else {}
    for name in wanted:
        known[name] = trajectory(name)
        print(name, known[name], flush=True)
    FILE.write_text(json.dumps({name: known[name] for name in CASES}, indent=1) + "\n")

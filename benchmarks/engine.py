"""Speed of the engine's parts; prints one line per measurement.

    python benchmarks/engine.py regions   batched destroy, reduce, restore; cost per region over n
    python benchmarks/engine.py rates     kicks, pairs bred and regions per second, n = 1e3 to 1e6

All cores are used; run it on an idle machine. How good results are, `tours.py` and `cvrp.py` say.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import drhg


def regions(k: int = 100, count: int = 64) -> None:
    from drhg.construct import construct
    from drhg.destroy import WINDOW
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


def rates() -> None:
    from drhg import search

    bred = search.BREED
    for name, least, repair in (
        ("kicks", 10**9, "auto"), ("pairs", bred, "auto"), ("regions", bred, "local")
    ):  # fmt: skip
        search.BREED = least
        for n in (1_000, 10_000, 100_000, 1_000_000):
            if name == "pairs" and n > search.WHOLE:
                continue
            drhg.solve(drhg.uniform_tsp(min(n, 20_000), seed=2), max_iters=200, repair=repair)
            limit = 10 if n < 100_000 else 60
            result = drhg.solve(drhg.uniform_tsp(n, seed=1), time_limit=limit, repair=repair)
            since = next(p.seconds for p in result.trace if p.iterations > 0)
            rate = result.iterations / (result.seconds - since)
            print(f"n = {n:>9,}: {rate:,.0f} {name} per second", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="+", choices=("regions", "rates"))
    for name in parser.parse_args().parts:
        {"regions": regions, "rates": rates}[name]()


if __name__ == "__main__":
    main()

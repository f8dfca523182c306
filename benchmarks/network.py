"""Speed of the networks: repairs of 100 reduced nodes, half of them ends of hyper-edges.

    python benchmarks/network.py [--threads 2] [--seconds 5]

Prints milliseconds per repair at batch 64 and batch 1, by compiled code and by torch, also as a
share of the machine's measured matrix-product peak, and decisions per second in training. Weights
are random, which is no slower. Other load on the machine slows torch's threads out of proportion.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable

import numpy as np
import torch

from drhg.model import Network, build
from drhg.neural import Scorer, Views, compiled, decode
from drhg.training.data import Recipe, Tours, draw
from drhg.training.trainer import Config, Trainer
from drhg.weights import ModelConfig

M = 100
GOALS = {"paper": (80, 200), "economy": (20, 45)}  # ms per repair at batch 64 and batch 1
REFERENCE = (149, 445)  # the paper's public code on a machine like the goals'


def graphs(rows: int, seed: int = 0) -> Views:
    """Random graphs of a tour: 50 isolated nodes, 25 hyper-edges."""
    rng = np.random.default_rng(seed)
    partner = np.tile(np.arange(M, dtype=np.int32), (rows, 1))
    partner[:, 50:] ^= 1
    xy = rng.random((rows, M, 2))
    feat = np.zeros((rows, M, 5), np.float32)
    feat[..., :2] = xy
    feat[..., 2:4] = np.take_along_axis(xy, partner[..., None].astype(np.int64), axis=1)
    feat[..., 4] = np.arange(M) >= 50
    load, capacity = np.zeros(partner.shape, np.int64), np.ones(rows, np.int64)
    fleet = np.zeros(rows, np.int32)
    return Views(feat, partner, load, capacity, fleet, np.full(rows, M, np.int32))


def best(work: Callable[[], object], seconds: float) -> float:
    """Least wall time of several runs."""
    work()
    end = time.perf_counter() + seconds
    times = []
    while not times or time.perf_counter() < end:
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return min(times)


def flops(config: ModelConfig) -> float:
    """Arithmetic of one repair: 73 decisions, the remaining nodes falling from 99 to 3."""
    total, d = 0.0, config.d
    for left in np.linspace(M - 1, 3, 73):
        if config.preset == "economy":
            t = 2 + min(config.window, left)
            total += config.layers * t * (2 * (4 * d * d + 2 * d * config.hidden) + 4 * t * d)
        else:
            r = config.from_first + config.from_current
            one = 2 * (2 * d * d + 2 * d * config.hidden)  # query, output, feed-forward
            both = r * one + (r + left) * 4 * d * d + (r + left) * one + r * 4 * d * d
            total += config.layers * (both + 8 * r * (r + left) * d)
    return total


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=5.0)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    a = torch.randn(2048, 2048)
    peak = 2 * 2048**3 / best(lambda: a @ a, 2)
    print(f"threads {options.threads}, peak {peak / 1e9:.0f} GFLOP/s in large products")
    print(
        f"{'network':10} {'by':8} {'batch':>5} {'ms/repair':>9} {'goal':>5} {'ref.':>5} {'peak':>5}"
    )
    for preset in ("economy", "paper"):
        config = ModelConfig.of(preset)
        torch.manual_seed(0)
        network: Network = build(config)
        tensors = {name: t.numpy() for name, t in network.state_dict().items()}
        quick = compiled(config, tensors, options.threads)
        assert quick is not None
        models: dict[str, Scorer] = {"compiled": quick, "torch": network}
        for by, model in models.items():
            for i, batch in enumerate((64, 1)):
                views, start = graphs(batch), np.zeros(batch, np.int32)
                spent = best(lambda v=views, s=start, m=model: decode(m, v, s), options.seconds)
                share = flops(config) * batch / spent / peak
                print(
                    f"{preset:10} {by:8} {batch:5} {1e3 * spent / batch:9.1f} "
                    f"{GOALS[preset][i]:5} {REFERENCE[i]:5} {share:5.0%}"
                )
    rng = np.random.default_rng(0)
    count, n = 512, 100
    order = np.concatenate([rng.permutation(n) for _ in range(count)]).astype(np.int32)
    tours = Tours(rng.random((count * n, 2)), order, np.arange(count + 1) * n)
    config = ModelConfig.of("economy")
    seconds = best(lambda: draw(tours, Recipe(), config, 768, 0, 1), 1)
    print(f"sampling: {768 / seconds:.0f} decisions/s")
    torch.set_num_threads(1)
    trainer = Trainer(Config(config), tours, options.threads)
    seconds = best(trainer.train_step, options.seconds)
    print(f"training: {768 / seconds:.0f} decisions/s (goal 1500), sampling included")


if __name__ == "__main__":
    main()

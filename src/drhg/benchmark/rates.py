"""How fast the engine and the networks are: iterations and repairs per second.

Run it on an idle machine; all cores are used unless `threads` says otherwise.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from drhg.network.decode import Model
    from drhg.network.views import Scorer, Views
    from drhg.network.weights import ModelConfig
    from drhg.problem import Instance

TOUR_SIZES = (1_000, 10_000, 100_000, 1_000_000)
PLAN_SIZES = (100, 500, 1_000, 10_000)
REGION = 100  # nodes destroyed at a time where the parts of a step are timed
BATCH = 64  # regions of such a step, and graphs that a network repairs at once


def tours(seconds: float, threads: int, sizes: Sequence[int] = TOUR_SIZES) -> Iterator[str]:
    """Iterations of the default search for tours, and of the paper's loop with local search."""
    from drhg.problem.generate import uniform_tsp

    for method in ("auto", "local"):
        for n in sizes:
            yield _rate(uniform_tsp(n, seed=1), method, seconds, threads)


def routes(seconds: float, threads: int, sizes: Sequence[int] = PLAN_SIZES) -> Iterator[str]:
    """Iterations of the default search for routes, and of the paper's loop with local search."""
    from drhg.problem.generate import uniform_cvrp

    for method in ("auto", "local"):
        for n in sizes:
            yield _rate(uniform_cvrp(n, seed=1), method, seconds, threads)


def _rate(instance: Instance, method: str, seconds: float, threads: int) -> str:
    """Iterations per second, counted from the first one on."""
    from drhg.session.solve import solve

    begun: list[float] = []
    at: list[int] = []

    def note(progress: Any) -> None:
        if progress.iterations > 0:
            begun.append(progress.seconds)
            at.append(progress.iterations)

    result = solve(
        instance, time_limit=seconds, threads=threads, method=method, on_progress=note
    )  # fmt: skip
    since, before = (begun[0], at[0]) if begun else (0.0, 0)
    rate = (result.iterations - before) / max(1e-9, result.seconds - since)
    return f"{instance.name}, {method}, {threads} threads: {rate:,.0f} iterations/s"


def regions(seconds: float, threads: int, sizes: Sequence[int] = TOUR_SIZES[1:]) -> Iterator[str]:
    """Milliseconds for the parts of a step of the paper's loop, over the size of the tour."""
    from drhg.construct.starts import construct
    from drhg.destroy.operators import Cluster
    from drhg.hypergraph.cut import destroy_nearest
    from drhg.hypergraph.judge import judge, present
    from drhg.hypergraph.nearness import Nearness
    from drhg.hypergraph.plan import plan_of, rules_of
    from drhg.hypergraph.reduce import reduce
    from drhg.hypergraph.restore import restore_in_place
    from drhg.problem.generate import uniform_tsp

    reach = Cluster().reach
    for n in sizes:
        instance = uniform_tsp(n, seed=1)
        rules, nearness = rules_of(instance), Nearness(instance)
        plan = plan_of(rules, construct(instance, "greedy", 0)[0])
        rng = np.random.default_rng(0)
        best = np.full(4, np.inf)
        end = time.perf_counter() + seconds
        while time.perf_counter() < end or np.isinf(best).any():
            t0 = time.perf_counter()
            ranked = nearness.around(rng.choice(n, BATCH), REGION)
            t1 = time.perf_counter()
            graphs = reduce(rules, plan, *destroy_nearest(rules, plan, ranked, REGION, reach=reach))
            t2 = time.perf_counter()
            judge(rules, plan, graphs, present(graphs))
            t3 = time.perf_counter()
            for row in range(BATCH):
                restore_in_place(rules, plan, graphs, row, present(graphs))
            t4 = time.perf_counter()
            best = np.minimum(best, 1000 * np.diff([t0, t1, t2, t3, t4]))
        names = ("nearest", "destroy and reduce", "judge", "restore")
        parts = ", ".join(f"{name} {ms:.2f}" for name, ms in zip(names, best, strict=True))
        yield f"{instance.name}, {BATCH} regions of {REGION} nodes: {parts} ms"


def networks(
    seconds: float, threads: int, presets: Sequence[str] = ("economy", "edges", "paper")
) -> Iterator[str]:
    """Milliseconds per repair of 100 reduced nodes, compiled and by torch; decisions learnt."""
    from drhg.network.decode import compiled, decode
    from drhg.network.weights import ModelConfig, shapes

    square = np.random.default_rng(0).random((2048, 2048), np.float32)
    peak = 2 * 2048**3 / _least(lambda: square @ square, 1.0)
    yield f"peak of large matrix products: {peak / 1e9:.0f} GFLOP/s"
    for preset in presets:
        config = ModelConfig.of(preset)
        rng = np.random.default_rng(0)
        tensors = {  # random weights are no slower than trained ones
            name: rng.normal(0, 0.05, shape).astype(np.float32)
            for name, shape in shapes(config).items()
        }
        models: dict[str, Model | None] = {
            "compiled": compiled(config, tensors, threads),
            "torch": _by_torch(config, tensors, threads),
        }
        for by, model in models.items():
            if model is None:
                yield f"{preset}, {by}: left out, it is not available here"
                continue
            for batch in (BATCH, 1):
                views, first = _graphs(batch), np.zeros(batch, np.int32)
                spent = _least(partial(decode, model, views, first), seconds)
                share = _arithmetic(config) * batch / spent / peak
                each = f"{1e3 * spent / batch:.1f} ms per repair"
                yield f"{preset}, {by}, batch {batch}: {each}, {share:.0%} of the peak"
    yield _learning(seconds, threads)


def _by_torch(config: ModelConfig, tensors: Any, threads: int) -> Scorer | None:
    if config.preset == "edges":  # torch scores its edges, but makes no repairs of them
        return None
    try:
        from drhg.network.torch_model import filled
    except ModuleNotFoundError:
        return None
    return filled(config, tensors, "cpu", threads)


def _learning(seconds: float, threads: int) -> str:
    """Decisions per second of a training step of the economical network."""
    try:
        from drhg.training.trainer import Trainer
    except ModuleNotFoundError:
        return "training: left out, torch is not installed"
    from drhg.network.weights import ModelConfig
    from drhg.training.recipe import Recipe
    from drhg.training.shards import Tours

    rng = np.random.default_rng(0)
    count, n = 512, 100
    order = np.concatenate([rng.permutation(n) for _ in range(count)]).astype(np.int32)
    tours = Tours(rng.random((count * n, 2)), order, np.arange(count + 1) * n)
    recipe = Recipe(ModelConfig.of("economy"))
    spent = _least(Trainer(recipe, tours, threads).train_step, seconds)
    return f"training, economy, {threads} threads: {recipe.batch / spent:,.0f} decisions/s"


def _graphs(rows: int, seed: int = 0) -> Views:
    """Random reduced graphs of a tour: 50 single nodes, 25 hyper-edges."""
    from drhg.network.views import Views

    rng = np.random.default_rng(seed)
    partner = np.tile(np.arange(REGION, dtype=np.int32), (rows, 1))
    partner[:, REGION // 2 :] ^= 1
    xy = rng.random((rows, REGION, 2))
    feat = np.zeros((rows, REGION, 5), np.float32)
    feat[..., :2] = xy
    feat[..., 2:4] = np.take_along_axis(xy, partner[..., None].astype(np.int64), axis=1)
    feat[..., 4] = np.arange(REGION) >= REGION // 2
    load, capacity = np.zeros(partner.shape, np.int64), np.ones(rows, np.int64)
    fleet, size = np.zeros(rows, np.int32), np.full(rows, REGION, np.int32)
    return Views(feat, partner, load, capacity, fleet, size)


def _least(work: Callable[[], object], seconds: float) -> float:
    """The shortest of several runs in seconds; the first run is not counted."""
    work()
    end = time.perf_counter() + seconds
    times: list[float] = []
    while not times or time.perf_counter() < end:
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return min(times)


def _arithmetic(config: ModelConfig) -> float:
    """Floating-point operations of a repair: 73 decisions, with 99 remaining nodes down to 3."""
    total, d = 0.0, config.d
    for left in np.linspace(REGION - 1, 3, 73):
        if config.preset == "economy":
            t = 2 + min(config.window, left)
            total += config.layers * t * (2 * (4 * d * d + 2 * d * config.hidden) + 4 * t * d)
        else:
            r = config.from_first + config.from_current
            one = 2 * (2 * d * d + 2 * d * config.hidden)  # query, output, feed-forward
            both = r * one + (r + left) * 4 * d * d + (r + left) * one + r * 4 * d * d
            total += config.layers * (both + 8 * r * (r + left) * d)
    return total

"""Decoding: decisions one after the other until everything is connected."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from drhg.hypergraph.judge import Repaired
from drhg.kernels.random import random_state
from drhg.network import decisions, economy, paper
from drhg.network.decisions import Decoding, begun, choose, offer, offered
from drhg.network.economy import Compiled
from drhg.network.joining import CompiledEdges
from drhg.network.paper import CompiledPaper
from drhg.network.views import Scorer, State, Views
from drhg.network.weights import ModelConfig, read_weights

Model: TypeAlias = Scorer | CompiledEdges


def decode(
    model: Model,
    views: Views,
    start: npt.NDArray[np.int32],
    rng: np.random.Generator | None = None,
) -> Repaired:
    """Reconnect the items of each row: a tour entered at `start`, or routes, seen from there first.

    Greedy, or with a generator drawn from the network's distribution. A row with one item left is
    finished without the network.
    """
    if isinstance(model, CompiledEdges):  # not one decision after the other
        repaired = model.repair(views, rng)
        if repaired is None:
            raise FloatingPointError("its scores are not numbers")
        return repaired
    decoding = begun(views, start)
    if isinstance(model, Compiled):  # the same loop inside its kernel
        sound = model.decide(decoding, rng)
    else:
        sound = _decide(model, decoding, rng)
    if not sound:
        raise FloatingPointError("its scores are not numbers")
    return Repaired(decoding.order, decoding.via)


def _decide(model: Scorer, decoding: Decoding, rng: np.random.Generator | None) -> bool:
    """Take the decisions of all rows together; whether all scores that decided were numbers."""
    config = model.config
    look = offered(config, len(decoding.size), config.window or decoding.free.shape[1])
    state = random_state(0 if rng is None else int(rng.integers(2**63)))
    sound = True
    while sound and (due := offer(decoding, look, config.relative, config.window)):
        wide = int(look.counts[:due].max())
        nodes, direct = look.nodes[:due, :wide], look.direct[:due, :wide]
        scores = model.logits(State(nodes, look.context[:due], look.counts[:due], direct))
        scores = np.asarray(scores, np.float32)  # (due, wide, outputs)
        sound = choose(decoding, look, due, scores, rng is not None, state)
    return sound


def free_lengths(views: Views, repaired: Repaired) -> npt.NDArray[np.float64]:
    """Length of the free edges of each repaired row, in the scale of the features."""
    none = np.zeros(len(views), np.int32)
    decoding = begun(views, none)._replace(order=repaired.order, via=repaired.via)
    found: npt.NDArray[np.float64] = decisions.free_lengths(decoding)
    return found


def load_compiled(path: str, *, sha256: str | None = None, threads: int = 1) -> Compiled:
    """The economical network from a weights file, without torch."""
    config, tensors, _ = read_weights(path, sha256=sha256)
    return Compiled(config, tensors, threads=threads)


def compiled(
    config: ModelConfig, tensors: Mapping[str, npt.NDArray[Any]], threads: int = 1
) -> Model | None:
    """A network as compiled code, or None where only torch can run it."""
    if config.preset == "paper":
        return CompiledPaper(config, tensors, threads=threads) if paper.compiles(config) else None
    if config.preset == "edges":
        return CompiledEdges(config, tensors, threads=threads)
    fits = economy.compiles(config) and config.window >= 1
    return Compiled(config, tensors, threads=threads) if fits else None

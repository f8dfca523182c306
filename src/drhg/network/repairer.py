"""The network as a repairer."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from drhg.errors import ModelError
from drhg.hypergraph.judge import Repaired, walk
from drhg.hypergraph.plan import OK, Rules
from drhg.hypergraph.reduce import Graphs, repeated
from drhg.network.decode import Model, decode
from drhg.network.views import ALL, Views, joined, orient_rows, views_of
from drhg.problem import Metric
from drhg.repair.protocol import Repair

log = logging.getLogger("drhg")


class NeuralRepair:
    """Let the network reconnect the pieces: item after item, from a random one, seen at random.

    `greedy` takes the most probable node, else one is drawn. Of `alternatives` repairs of the same
    graph, each from another start and in another symmetry, the shortest is returned.
    """

    def __init__(
        self, model: Model, *, greedy: bool = True, alternatives: int = 1, seed: int | None = None
    ) -> None:
        if alternatives < 1:
            raise ValueError("at least one alternative")
        self.model = model
        self.greedy = greedy
        self.alternatives = alternatives
        self.rng = None if seed is None else np.random.default_rng(seed)
        self.at_once = ALL  # rows; fewer once memory ran out

    def __call__(self, rules: Rules, graphs: Graphs, rng: np.random.Generator) -> Repaired:
        return self.together([(rules, graphs, rng)])[0]

    def together(
        self, asked: Sequence[tuple[Rules, Graphs, np.random.Generator]]
    ) -> list[Repaired]:
        """Repair graphs of several instances as one batch; each is seen as it would be alone."""
        times = self.alternatives
        rows = [(rules, repeated(graphs, times)) for rules, graphs, _ in asked]
        rngs = [self.rng or rng for _, _, rng in asked]
        seen = [self._seen(*row, rng) for row, rng in zip(rows, rngs, strict=True)]
        views = joined([views for views, _ in seen])
        start = np.concatenate([start for _, start in seen])
        found = self._decoded(views, start, None if self.greedy else rngs[0])
        out, at = [], 0
        for rules, graphs in rows:
            part = slice(at, at + len(graphs)), slice(0, graphs.node.shape[1])
            at += len(graphs)
            order, via = (
                np.ascontiguousarray(found.order[part]),
                np.ascontiguousarray(found.via[part]),
            )
            repaired = Repaired(order, via)
            if times > 1:
                verdict, total, _ = walk(rules, graphs, repaired)
                total = np.where(verdict == OK, total, np.inf).reshape(-1, times)
                best = np.arange(len(total)) * times + total.argmin(axis=1)
                repaired = Repaired(repaired.order[best], repaired.via[best])
            out.append(repaired)
        return out

    def _decoded(
        self, views: Views, start: npt.NDArray[np.int32], rng: np.random.Generator | None
    ) -> Repaired:
        """All rows, as many at once as memory allows: they do not depend on one another."""
        while True:
            step = max(1, min(len(views), self.at_once))
            parts = [slice(a, a + step) for a in range(0, max(1, len(views)), step)]
            try:
                found = [decode(self.model, views[part], start[part], rng) for part in parts]
                break
            except (MemoryError, RuntimeError) as error:  # torch raises the latter
                if step == 1 or not (isinstance(error, MemoryError) or "memory" in str(error)):
                    raise
                if self.at_once == ALL:
                    log.warning("the network is out of memory: in smaller batches from now on")
                self.at_once = step // 2
        if len(found) == 1:
            return found[0]
        order, via = ([getattr(one, name) for one in found] for name in ("order", "via"))
        return Repaired(np.concatenate(order), np.concatenate(via))

    def _seen(
        self, rules: Rules, graphs: Graphs, rng: np.random.Generator
    ) -> tuple[Views, npt.NDArray[np.int32]]:
        """Every graph in a random symmetry, and where to start."""
        if rules.space.metric == Metric.EXPLICIT:
            raise ModelError("a network needs coordinates; this instance is a bare matrix")
        if self.model.config.routes != (rules.depot >= 0):
            kind = "routes" if self.model.config.routes else "tours"
            raise ModelError(f"these weights repair {kind} only")
        views = views_of(rules, graphs)
        start = rng.integers(np.maximum(views.size, 1)).astype(np.int32)
        turns = rng.uniform(-np.pi, np.pi, len(views))
        mirrors = rng.random(len(views)) < 0.5
        orient_rows(views.feat, views.size, self.model.config.relative, turns, mirrors)
        return views, start


class Guarded:
    """A network and its stand-in, which takes over for good, with a warning, when that fails."""

    def __init__(self, network: NeuralRepair, other: Repair) -> None:
        self.network, self.other = network, other
        self.failed = False

    def __call__(self, rules: Rules, graphs: Graphs, rng: np.random.Generator) -> Repaired:
        return self.together([(rules, graphs, rng)])[0]

    def together(
        self, asked: Sequence[tuple[Rules, Graphs, np.random.Generator]]
    ) -> list[Repaired]:
        if not self.failed:
            try:
                return self.network.together(asked)
            except (MemoryError, RuntimeError, FloatingPointError) as error:
                self.failed = True
                reason = str(error) or type(error).__name__
                log.warning("the network failed, another repair goes on: %s", reason)
        return [self.other(*one) for one in asked]

"""Batches of examples, and graphs to validate on.

A batch is a pure function of its seed and number, so that a resumed run sees what an uninterrupted
one would have seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from drhg.errors import ModelError
from drhg.hypergraph.judge import Repaired, present
from drhg.hypergraph.plan import Flags
from drhg.kernels.random import random_state
from drhg.network.decode import Model, decode, free_lengths
from drhg.network.gradient import Lesson
from drhg.network.views import Scorer, State, Views, views_of
from drhg.network.weights import ModelConfig
from drhg.training.joins import Joins, draw_joins
from drhg.training.recipe import Examples
from drhg.training.routes import cut_plan, draw_routes
from drhg.training.shards import Plans, Tours
from drhg.training.tours import cut_each, draw_tours


@dataclass(frozen=True)
class Decisions:
    """Decisions sorted by how much they see, and which answers (B, W, outputs) are right."""

    state: State
    right: Flags

    def __len__(self) -> int:
        return len(self.state)

    def parts(self, size: int) -> Iterator[Decisions]:
        """So many decisions at a time, each part as wide as its widest."""
        state = self.state
        for a in range(0, len(state), size):
            rows = slice(a, a + size)
            width = int(state.count[rows].max())
            nodes, direct = state.nodes[rows, :width], state.direct[rows, :width]
            part = State(nodes, state.context[rows], state.count[rows], direct)
            yield Decisions(part, self.right[rows, :width])


Batch: TypeAlias = Decisions | Joins


def draw(
    labels: Tours | Plans,
    examples: Examples,
    config: ModelConfig,
    rows: int,
    seed: int,
    number: int,
) -> Batch:
    """Batch `number` of a run, of so many decisions, or graphs for the network of edges.

    Right is of a tour exactly one node, of routes also every node that a route may begin with.
    """
    if config.routes != isinstance(labels, Plans):
        raise ModelError("these labels are not of the kind that the network is for")
    if config.preset == "edges":
        return draw_joins(labels, examples, config, rows, seed, number)
    width = config.window or labels.largest
    lesson = Lesson(
        np.empty((rows, width, config.node_inputs), np.float32),
        np.empty((rows, config.context_inputs), np.float32),
        np.empty(rows, np.int32),
        np.empty((rows, width), np.bool_),
        np.empty((rows, width, config.outputs), np.bool_),
    )
    state = random_state(seed, number)
    if isinstance(labels, Plans):
        draw_routes(labels, examples, config, state, lesson)
    else:
        draw_tours(labels, examples, config, state, lesson)
    by_count, top = np.argsort(lesson.counts, kind="stable"), int(lesson.counts.max())
    nodes, context, counts, direct, right = Lesson._make(array[by_count] for array in lesson)
    state_of_all = State(nodes[:, :top], context, counts, direct[:, :top])
    return Decisions(state_of_all, right[:, :top])


def held_out_graphs(
    labels: Tours | Plans, m: int, seed: int = 7
) -> Iterator[tuple[Views, Repaired]]:
    """One reduced graph per instance and its best repair: of m nodes, or m customers destroyed."""
    if isinstance(labels, Plans):
        rng = np.random.default_rng([seed, m])
        for rules, plan in labels.solved:
            graphs = cut_plan(rules, plan, min(m, rules.n - 1), "adjacent", rng)
            yield views_of(rules, graphs), present(graphs)
        return
    feat, partner = cut_each(labels, m, seed)
    none, one = np.zeros(partner.shape, np.int64), np.ones(len(labels), np.int64)
    best = np.tile(np.arange(m, dtype=np.int32), (len(labels), 1))
    size = np.full(len(labels), m, np.int32)
    yield (
        Views(feat, partner, none, one, none[:, 0].astype(np.int32), size),
        Repaired(best, np.zeros(best.shape, np.bool_)),
    )


def held_out_gap(model: Model, labels: Tours | Plans, m: int) -> float:
    """Mean gap in percent of greedy repairs of held-out graphs, on the free edges only."""
    ratios = []
    for views, best in held_out_graphs(labels, m):
        found = decode(model, views, np.zeros(len(views), np.int32))
        ratios.append(free_lengths(views, found) / free_lengths(views, best))
    return 100 * (float(np.concatenate(ratios).mean()) - 1)


def held_out_loss(model: Scorer, decisions: Decisions, chunk: int) -> float:
    """Mean cross-entropy of decisions: minus the log of the share of all right answers."""
    total = 0.0
    for part in decisions.parts(chunk):
        rows = len(part)
        scores = np.asarray(model.logits(part.state), np.float64).reshape(rows, -1)
        scores -= scores.max(axis=1, keepdims=True)
        shares = np.exp(scores)
        hits = np.where(part.right.reshape(rows, -1), shares, 0.0).sum(axis=1)
        total += float((np.log(shares.sum(axis=1)) - np.log(hits)).sum())
    return total / len(decisions)

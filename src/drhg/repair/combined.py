"""Repairers made of others."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np

from drhg.hypergraph.judge import Repaired, present, walk
from drhg.hypergraph.plan import OK, Rules
from drhg.hypergraph.reduce import Graphs
from drhg.repair.protocol import Repair


class RepairSequence:
    """One repairer after another: the second starts from what the first has made.

    >>> from drhg.repair.insertion import InsertionRepair
    >>> from drhg.repair.local import LocalSearchRepair
    >>> repair = RepairSequence(InsertionRepair(), LocalSearchRepair())
    """

    def __init__(self, first: Repair, second: Repair) -> None:
        self.first, self.second = first, second

    def __call__(self, rules: Rules, graphs: Graphs, rng: np.random.Generator) -> Repaired:
        made = self.first(rules, graphs, rng)
        broken = walk(rules, graphs, made)[0] != OK
        if broken.any():  # nothing to start from: what was there
            before = present(graphs)
            made = Repaired(
                np.where(broken[:, None], before.order, made.order),
                np.where(broken[:, None], before.via, made.via),
            )
        again = self.second(rules, reordered(graphs, made), rng)
        inside = again.order >= 0
        order = np.take_along_axis(made.order, np.where(inside, again.order, 0), axis=1)
        return Repaired(np.where(inside, order, np.int32(-1)), again.via)


def reordered(graphs: Graphs, made: Repaired) -> Graphs:
    """The same reduced graphs with their nodes in the order of a repair, as if it were present."""
    order = made.order
    inside = order >= 0
    index = np.where(inside, order, 0)
    place = np.zeros_like(order)
    np.put_along_axis(
        place, np.where(inside, order, np.arange(order.shape[1])[None, :]),
        np.broadcast_to(np.arange(order.shape[1], dtype=order.dtype), order.shape), axis=1,
    )  # fmt: skip
    rows = {
        f.name: np.take_along_axis(getattr(graphs, f.name), index, axis=1)
        for f in fields(graphs)
        if getattr(graphs, f.name).ndim == 2
    }
    partner = np.take_along_axis(place, np.maximum(rows["partner"], 0), axis=1)
    rows["partner"] = np.where(rows["partner"] >= 0, partner, np.int32(-1))
    rows["node"] = np.where(inside, rows["node"], np.int32(-1))
    return replace(graphs, **rows | {"via": made.via})

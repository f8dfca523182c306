"""Instances in the form that explaining needs, whatever they ask."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from drhg.hypergraph import rules_of
from drhg.plans.places import Terms
from drhg.problem import Floats, Instance
from drhg.problem.tolerances import SEARCH_SLACK
from drhg.search.routes.piece_context import pieces_of


def terms_of(instance: Instance, slack: float = SEARCH_SLACK) -> Terms:
    """What routes of an instance must keep, with so much allowance for rounding."""
    rules, pieces = rules_of(instance), pieces_of(instance)
    times = np.zeros((0, 0)) if instance.durations is None else instance.durations
    longest = np.inf if instance.max_duration is None else instance.max_duration
    return Terms(
        space=rules.space, times=np.array(times, np.float64, order="C"), fixed=rules.fixed,
        tail=pieces.tail, load=pieces.load, length=pieces.length, duration=pieces.duration,
        opens=pieces.opens, closes=_relaxed(pieces.closes, slack), release=pieces.release,
        depot=rules.depot, start=_node(instance.start), end=_node(instance.end),
        returns=instance.returns, symmetric=instance.symmetric,
        timed=instance.windows is not None or instance.max_duration is not None,
        capacity=rules.capacity, max_length=rules.max_length * (1.0 + slack),
        max_duration=float(_relaxed(np.array(longest), slack)), vehicles=rules.vehicles,
    )  # fmt: skip


def with_chain(terms: Terms, instance: Instance, chain: Sequence[int]) -> Terms:
    """The same with some nodes, in this order, as one piece in the row of the first."""
    pieces = pieces_of(instance, [chain])
    return terms._replace(
        tail=pieces.tail, load=pieces.load, length=pieces.length, duration=pieces.duration,
        opens=pieces.opens, closes=_relaxed(pieces.closes, SEARCH_SLACK), release=pieces.release,
    )  # fmt: skip


def _relaxed(limits: Floats, slack: float) -> Floats:
    """Limits with allowance for rounding."""
    return limits + slack * np.maximum(1.0, np.abs(limits))


def _node(node: int | None) -> int:
    return -1 if node is None else node

"""What a repairer is."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from drhg.hypergraph.judge import Repaired
from drhg.hypergraph.plan import Rules
from drhg.hypergraph.reduce import Graphs


class Repair(Protocol):
    """Reconnect every reduced graph of the batch; the caller judges and decides."""

    def __call__(self, rules: Rules, graphs: Graphs, rng: np.random.Generator) -> Repaired: ...

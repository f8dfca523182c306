"""What a network sees of a reduced graph."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from drhg.hypergraph.plan import Rules
from drhg.hypergraph.reduce import Graphs
from drhg.kernels.space import HAVERSINE
from drhg.problem import Floats, flattened

FLAG, LOAD = 4, 5  # columns after x, y, partner's x, partner's y


def features(rules: Rules, graphs: Graphs) -> npt.NDArray[np.float32]:
    """Equations 1-5: (x, y, partner x, partner y, flag) and for routes the load over capacity.

    Coordinates are shifted to zero, turned so that the long side is x, and scaled to [0, 1] by it
    (float64 throughout, cast at the end); where all points coincide they are not scaled. Of a stub
    the partner is the depot, which may lie far outside. Of routes the depot itself comes as one
    more row, after the nodes. Rows beyond are zero. Degrees are laid flat first, in metres.
    (B, M, 5) or (B, M + 1, 6)
    """
    inside = graphs.node >= 0
    here = rules.space.points[np.where(inside, graphs.node, 0)]  # (B, M, 2)
    depot = rules.space.points[rules.depot]
    if rules.space.metric == HAVERSINE:  # each row in metres around its first node
        centre = here[:, :1]
        here, depot = flattened(here, centre), flattened(depot, centre)
    rows = np.arange(len(graphs))
    other = np.where(graphs.partner >= 0, graphs.partner, 0)
    there = here[rows[:, None], other]
    if rules.depot >= 0:
        there = np.where((graphs.partner < 0)[..., None], depot, there)
    empty = np.reshape(graphs.size == 0, (-1, 1, 1))  # has no corners: leave its zeros alone
    some = inside[..., None] | empty
    low = np.where(some, here, np.inf).min(axis=1, keepdims=True)
    high = np.where(some, here, -np.inf).max(axis=1, keepdims=True)
    side = high - low
    swap = side[..., 1] > side[..., 0]
    scale = side.max(axis=-1, keepdims=True)
    scale = np.where(scale > 0, scale, 1.0)

    def framed(points: Floats) -> Floats:
        scaled = (points - low) / scale
        return np.asarray(np.where(swap[..., None], scaled[..., ::-1], scaled))

    own = np.arange(graphs.node.shape[1], dtype=np.int32)
    end = np.where(graphs.partner == own, 0.0, 1.0)[..., None]
    parts = [framed(here), framed(there), end]
    if rules.depot >= 0:
        parts.append((graphs.load / rules.capacity)[..., None])
    found = (np.concatenate(parts, axis=-1) * inside[..., None]).astype(np.float32)
    if rules.depot < 0:
        return found
    found = np.concatenate([found, np.zeros_like(found[:, :1])], axis=1)
    found[rows, graphs.size, :4] = np.tile(framed(depot)[:, 0], 2)
    return found

"""Candidate lists: the few nodes that a tour may want beside each node."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from drhg.hypergraph.nearness import Nearness
from drhg.hypergraph.plan import Index
from drhg.local_search.params import MoveParams
from drhg.problem import Floats, Instance, Metric

BLOCK = 20_000  # nodes looked at together; bounds the memory, changes no result


def neighbour_lists(instance: Instance, nearness: Nearness, k: int) -> Index:
    """The k nearest other nodes of every node, nearest first (n, min(k, n - 1))."""
    n = instance.n
    k = min(k, len(nearness.nodes) - 1)
    if k < 1:
        return np.zeros((n, 0), dtype=np.int32)
    found = nearness.around(np.arange(n), k + 1)
    own = found == np.arange(n, dtype=np.int32)[:, None]
    own[:, -1] |= ~own.any(axis=1)  # among many coinciding points a node may not find itself
    return np.ascontiguousarray(found[~own].reshape(n, k))


def candidate_lists(
    instance: Instance, nearness: Nearness, params: MoveParams | None = None
) -> Index:
    """Candidates by distance, by quadrant and by Delaunay triangulation (n, min(k, n - 1)).

    In an instance of clusters all the nearest nodes lie in the same cluster, and edges between them
    would lead nowhere else. So half of the k places go to the nearest node of each quadrant and
    then to the nearest nodes; the others go to neighbours in the Delaunay triangulation, which
    connects all clusters. Places left over go to the nearest again. Rows are sorted by distance.
    """
    params = params or MoveParams()
    k = params.candidates
    near = neighbour_lists(instance, nearness, params.quadrant_candidates * k)
    flat = instance.metric.planar or instance.metric is Metric.HAVERSINE
    points = instance.plane if flat else None
    if points is None or near.shape[1] <= k:
        return np.ascontiguousarray(near[:, :k])
    beside = delaunay_lists(instance, k)
    chosen = np.empty((len(near), k), dtype=np.int32)
    for begin in range(0, len(near), BLOCK):
        rows = near[begin : begin + BLOCK]
        own = np.arange(begin, begin + len(rows))[:, None]
        around = _quadrants_first(points[rows] - points[own], rows)[:, : -(-k // 2)]
        wanted = np.concatenate((around, beside[begin : begin + BLOCK], rows[:, :k]), axis=1)
        picked = wanted[_first_distinct(wanted, k)].reshape(len(rows), k)
        order = np.argsort(instance.distance(own, picked), axis=1, kind="stable")
        chosen[begin : begin + BLOCK] = np.take_along_axis(picked, order, axis=1)
    return chosen


def _quadrants_first(offsets: Floats, rows: Index) -> Index:
    """Rows of nodes, nearest first, with the first of each quadrant moved to the front."""
    where = 2 * (offsets[..., 0] > 0) + (offsets[..., 1] > 0)
    rank = np.arange(rows.shape[1]) + np.full(rows.shape, rows.shape[1])
    for quadrant in range(4):
        inside = where == quadrant
        first = np.argmax(inside, axis=1)[inside.any(axis=1)]
        rank[np.flatnonzero(inside.any(axis=1)), first] -= rows.shape[1]
    return np.take_along_axis(rows, np.argsort(rank, axis=1), axis=1)


def _first_distinct(rows: Index, k: int) -> npt.NDArray[np.bool_]:
    """Mark the first k different nodes of every row, which must have so many; -1 is no node."""
    order = np.argsort(rows, axis=1, kind="stable")
    ranked = np.take_along_axis(rows, order, axis=1)
    fresh = ranked >= 0
    fresh[:, 1:] &= ranked[:, 1:] != ranked[:, :-1]
    mask = np.empty_like(fresh)
    np.put_along_axis(mask, order, fresh, axis=1)
    return mask & (np.cumsum(mask, axis=1) <= k)


def delaunay_lists(instance: Instance, k: int) -> Index:
    """Neighbours in the Delaunay triangulation, nearest first, at most k, padded with -1 (n, k).

    Of several nodes at one point only one has neighbours; points on one line have none.
    """
    from scipy.spatial import Delaunay, QhullError

    lists = np.full((instance.n, k), -1, dtype=np.int32)
    points = instance.plane
    assert points is not None
    try:
        starts, others = Delaunay(points).vertex_neighbor_vertices
    except QhullError:
        return lists
    own = np.repeat(np.arange(instance.n), np.diff(starts))
    order = np.lexsort((others, instance.distance(own, others), own))
    rank = np.arange(len(own)) - starts[own]
    lists[own[rank < k], rank[rank < k]] = others[order][rank < k]
    return lists

"""Kicks: a local optimum is perturbed at one place, and improved again around it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from drhg.hypergraph.plan import Index
from drhg.kernels.random import random_state
from drhg.local_search.kopt import (
    MoveContext,
    Region,
    fill_region,
    improve_part,
    improve_region,
    kick_and_improve,
    part_of_region,
    region_of,
    workspace_of,
    write_back,
)
from drhg.search.strategy import Budget, Snapshot
from drhg.search.tours.params import KickParams
from drhg.search.tours.tour import Subject, Tour, snapshot_of, tour_of

if TYPE_CHECKING:
    from drhg.parallel import Cluster


def kick_copies(
    subject: Subject, tour: Tour, params: KickParams, pool: Executor, budget: Budget
) -> Iterator[Snapshot]:
    """Every thread kicks a tour of its own; now and then all go on from the best."""
    task, context = subject.task, subject.context
    longest = subject.moves.longest_kick
    threads = range(task.threads)
    copies = [tour.copy() for _ in threads]
    spaces = [workspace_of(task.instance.n) for _ in threads]
    states = [random_state(task.seed, i) for i in threads]
    until_sync = params.per_sync * task.instance.n
    while True:
        usual = params.per_slice * task.threads
        each = max(1, min(-(-budget.slice(usual) // task.threads), until_sync))
        jobs = [
            pool.submit(kick_and_improve, context, *copies[i], spaces[i], states[i], each, longest)
            for i in threads
        ]
        for job in jobs:
            job.result()
        # by exact costs, not by sums of gains, whose last digits depend on the slices
        found = [snapshot_of(task, each * task.threads, copy.order) for copy in copies]
        best = min(threads, key=lambda i: found[i].cost)
        yield found[best]
        until_sync -= each
        if until_sync == 0:
            until_sync = params.per_sync * task.instance.n
            for copy in copies:
                copy.become(copies[best])


def kick_regions(
    subject: Subject, tour: Tour, params: KickParams, pool: Executor
) -> Iterator[Snapshot]:
    """All threads work on one tour: each has a stretch of it, and in that one region at a time.

    What is done in different stretches always fits together. Their bounds move every round. On a
    cluster its workers take the place of threads.
    """
    task, context = subject.task, subject.context
    longest = subject.moves.longest_kick
    n, threads = task.instance.n, task.threads
    rng = np.random.default_rng([task.seed, 1])
    sizes = np.diff(np.linspace(0, n, threads + 1).astype(np.int64))
    most = min(params.region_nodes, int(sizes.max()))
    per_node = params.per_region_node if task.cluster is None else params.per_region_node_far
    regions = [region_of(context, most) for _ in range(threads)]
    visits = max(1, n // (params.region_nodes * threads * params.regions_per_stretch))
    for round_ in range(2**31):
        starts = np.mod(int(rng.integers(n)) + np.cumsum(sizes) - sizes, n)
        for visit in range(visits):
            jobs: list[Callable[[], object]] = []
            done = 0
            for i in range(threads):
                start, size = int(starts[i]), int(sizes[i])
                members = _members(subject, tour, start, size, most, rng)
                kicks = int(len(members) * per_node)
                state = random_state(task.seed, 2 + (round_ * n + visit) * threads + i)
                what = (context, *tour, start, size, members, regions[i], state, kicks, longest)
                if task.cluster is None:
                    jobs.append(pool.submit(improve_region, *what).result)
                else:
                    jobs.append(_improve_far_away(task.cluster, *what))
                done += kicks
            for job in jobs:
                job()
            yield snapshot_of(task, done, tour.order)


def _improve_far_away(
    cluster: Cluster, context: MoveContext, order: Index, pos: Index, start: int, size: int,
    members: Index, region: Region, state: npt.NDArray[np.uint64], kicks: int, longest: int,
) -> Callable[[], None]:  # fmt: skip
    """What `improve_region` does, the search in it by a worker; returns what waits for that.

    Only the region travels, whatever the size of the tour, and its order comes back.
    """
    m = fill_region(context, order, pos, start, size, members, region)
    whole = part_of_region(context, region, m)
    space = whole.space._replace(points=region.points[:m])
    part = whole._replace(space=space, fixed=region.fixed[:m], near=region.near[:m])
    answer = cluster.submit(kick_part, part, state, kicks, longest)

    def take_up() -> None:
        found = answer()
        if found is not None and found[0] > 0.0:
            region.order[:m] = found[1]
            region.pos[region.order[:m]] = np.arange(m, dtype=np.int32)
            write_back(order, pos, start, m, region)

    return take_up


def kick_part(
    part: MoveContext, state: npt.NDArray[np.uint64], kicks: int, longest: int
) -> tuple[float, Index]:
    """Improve the tour 0, 1, 2, ... of a small problem; returns the gain and the tour."""
    tour = tour_of(np.arange(len(part.near)))
    work = workspace_of(len(part.near))
    return improve_part(part, *tour, work, state, kicks, longest), tour.order


def _members(
    subject: Subject, tour: Tour, start: int, size: int, most: int, rng: np.random.Generator
) -> Index:
    """All nodes of a stretch if they are few, else those around one of them."""
    if size <= most:
        return np.take(tour.order, start + np.arange(size), mode="wrap")
    centre = tour.order[(start + int(rng.integers(size))) % len(tour.order)]
    around: Index = subject.task.nearness.around([centre], most)[0]
    return around

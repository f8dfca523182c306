"""Labelled instances: tours and plans to learn from, and the files that they come in."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from drhg.errors import DrhgError, ModelError
from drhg.files.messages import errors_as
from drhg.files.paths import suffix
from drhg.files.research import is_tours, read_many, tour_lines
from drhg.files.streams import read_bytes
from drhg.hypergraph.plan import Plan, Rules, plan_of, rules_of, solution_of
from drhg.problem import Floats, Instance, Ints, Solution, cvrp, tsp, validated


@dataclass(frozen=True)
class Tours:
    """Labelled instances of any sizes, one after the other."""

    points: Floats  # (total, 2)
    order: npt.NDArray[np.int32]  # (total,), each tour's nodes counted from 0
    offset: Ints  # (N + 1,)

    def __len__(self) -> int:
        return len(self.offset) - 1

    @property
    def largest(self) -> int:
        return int(np.diff(self.offset).max())

    def known(self, i: int) -> tuple[Instance, Solution]:
        """An instance and its best tour."""
        a, z = self.offset[i], self.offset[i + 1]
        return tsp(self.points[a:z]), Solution([self.order[a:z]])

    def part(self, low: int, high: int) -> Tours:
        """Instances low .. high - 1."""
        a, z = self.offset[low], self.offset[high]
        bounds = self.offset[low : high + 1] - a
        return Tours(self.points[a:z].copy(), self.order[a:z].copy(), bounds.copy())


@dataclass(frozen=True)
class Plans:
    """Labelled CVRPs, each with its best plan."""

    solved: tuple[tuple[Rules, Plan], ...]

    def __len__(self) -> int:
        return len(self.solved)

    @property
    def largest(self) -> int:
        return max(rules.n - 1 for rules, _ in self.solved)

    def known(self, i: int) -> tuple[Instance, Solution]:
        """An instance and its best plan."""
        rules, plan = self.solved[i]
        instance = cvrp(rules.space.points, rules.demand, rules.capacity, depot=rules.depot)
        return instance, solution_of(rules, plan)

    def part(self, low: int, high: int) -> Plans:
        """Instances low .. high - 1."""
        return Plans(self.solved[low:high])


def read_labels(files: Iterable[Path]) -> Tours | Plans:
    """Shards of either kind, or one text file of the field's formats (see `files.research`)."""
    found = sorted(files)
    texts = [file for file in found if suffix(file) == ".txt"]
    if texts:
        if len(texts) < len(found):
            raise ModelError("labels in shards and in texts cannot be mixed", file=str(texts[0]))
        return read_texts(texts)
    kinds = set()
    for file in found:
        try:
            with np.load(file, allow_pickle=False) as shard:
                names = set(shard)
        except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
            raise ModelError(f"no shard of labels: {error}", file=str(file)) from None
        if not names & {"seq", "tours"}:
            raise ModelError("no shard of labels: neither tours nor routes in it", file=str(file))
        kinds.add("seq" in names)
    if len(kinds) > 1:
        raise ModelError("labels of tours and of routes cannot be mixed")
    return read_plans(found) if kinds == {True} else read_tours(found)


def read_texts(files: Iterable[Path]) -> Tours | Plans:
    """Tours, or routes, that come with their own coordinates."""
    points, order, solved = [], [], []
    for file in files:
        with errors_as(ModelError, str(file)):
            data = read_bytes(str(file))
            if is_tours(data):
                for xy, tour in tour_lines(data):
                    points.append(xy)
                    order.append(tour.astype(np.int32))
                continue
        for instance, solution in read_many(file):
            assert solution is not None
            rules = rules_of(instance)
            solved.append((rules, plan_of(rules, solution)))
    if points and solved:
        raise ModelError("labels of tours and of routes cannot be mixed")
    if solved:
        return Plans(tuple(solved))
    offset = np.concatenate([[0], np.cumsum([len(xy) for xy in points])]).astype(np.int64)
    return Tours(np.concatenate(points), np.concatenate(order), offset)


def read_plans(files: Iterable[Path]) -> Plans:
    """Shards of routes: `xy` (N, n, 2), `demand`, `capacity` and `seq`, depots 0 between routes.

    The instances of a shard are shuffled, always in the same way, for some come sorted by kind.
    """
    solved: list[tuple[Rules, Plan]] = []
    for file in sorted(files):
        with np.load(file, allow_pickle=False) as shard:
            arrays = [shard[name] for name in ("xy", "demand", "capacity", "seq")]
        for i in np.random.default_rng(0).permutation(len(arrays[0])):
            xy, demand, capacity, seq = (array[i] for array in arrays)
            try:
                instance = cvrp(xy, demand, int(capacity))
                solved.append(labelled(instance, seq[seq >= 0]))
            except DrhgError as error:
                reason = f"label {i} is no plan: {error.reason}"
                raise ModelError(reason, file=str(file)) from None
    if not solved:
        raise ModelError("no labels found")
    return Plans(tuple(solved))


def labelled(instance: Instance, seq: npt.NDArray[np.integer]) -> tuple[Rules, Plan]:
    """An instance and its routes, written one after the other with the depot 0 between them."""
    routes = np.split(seq.astype(np.int64), np.flatnonzero(seq == 0))
    solution = validated(instance, Solution([r[r > 0] for r in routes if (r > 0).any()]))
    rules = rules_of(instance)
    return rules, plan_of(rules, solution)


def read_tours(files: Iterable[Path]) -> Tours:
    """Shards as `labels.py` writes them: instances come from their seed, tours from the file."""
    points, order, sizes = [], [], []
    for file in sorted(files):
        with np.load(file, allow_pickle=False) as shard:
            seed, n, count = (int(shard[name]) for name in ("seed", "n", "count"))
            tours = shard["tours"]
        if tours.shape != (count, n) or not (np.sort(tours, axis=1) == np.arange(n)).all():
            raise ModelError("the labels are no tours", file=str(file))
        points.append(np.random.default_rng(seed).random((count, n, 2)).reshape(-1, 2))
        order.append(tours.astype(np.int32).ravel())
        sizes.append(np.full(count, n))
    if not points:
        raise ModelError("no labels found")
    offset = np.concatenate([[0], np.cumsum(np.concatenate(sizes))]).astype(np.int64)
    return Tours(np.concatenate(points), np.concatenate(order), offset)

"""Labels: good tours and plans of uniform random instances, in shards that can be extended.

A shard `tsp{n}-seed{S}.npz` holds `seed`, `n`, `count` and `tours`, by fast_tsp; its instances are
`default_rng(S).random((20000, n, 2))[:count]` and are not stored. A shard `cvrp{n}-seed{S}.npz`
holds instances, `xy`, `demand`, `capacity`, and `seq`, their routes by hygese with the depot 0
between them; instance i is `uniform_cvrp(n, 20000 S + i)`. Shards are rewritten, whole, every few
minutes, so that an interrupted run goes on where it stopped.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from drhg.errors import DrhgError, ModelError
from drhg.files import atomic_write
from drhg.parallel import spread
from drhg.problem import Instance, Solution, validated
from drhg.problem.generate import uniform_cvrp
from drhg.repair.solvers import LONGEST_DISTANCE, SOLVERS, SmallProblem

SHARD = 20_000  # instances per shard
LARGEST = 65_535  # what fast_tsp takes as a distance
SAVE_EVERY = 120.0  # seconds


def seconds_for(n: int, routes: bool = False) -> float:
    """Time per instance that leaves next to nothing to gain: 0.02 s for TSP100, 5 s for TSP1000.

    Routes take longer: 1 s for CVRP100, which leaves 0.25 %.
    """
    return (1.0 if routes else 0.02) * float(max(1.0, n / 100) ** (1.5 if routes else 2.4))


def tour_of(points: npt.NDArray[np.float64], seconds: float) -> npt.NDArray[np.int64]:
    """A near-optimal tour by fast_tsp, on distances rounded to 1 / 46,000 of the square's side."""
    import fast_tsp

    apart = np.linalg.norm(points[:, None] - points[None], axis=-1)
    matrix = np.rint(apart * (LARGEST / max(np.sqrt(2), apart.max()))).astype(np.int64)
    tour = np.array(fast_tsp.find_tour(matrix.tolist(), duration_seconds=seconds))
    if not (np.sort(tour) == np.arange(len(points))).all():
        raise ModelError("the labelling solver returned no tour")
    return tour


def plan_of(instance: Instance, seconds: float) -> npt.NDArray[np.int64]:
    """Near-optimal routes by hygese, one after the other with the depot 0 between them, then -1."""
    i = np.arange(instance.n)
    apart = instance.distance(i[:, None], i[None, :])
    matrix = np.rint(apart * (LONGEST_DISTANCE / max(1e-9, apart.max()))).astype(np.int64)
    small = SmallProblem(matrix, instance.demand, instance.capacity or 0, xy=instance.xy)
    found = SOLVERS["hygese"].prepare(small, seconds, 0, 1)()
    try:
        routes = validated(instance, Solution(found)).routes
    except DrhgError as error:
        raise ModelError(f"the labelling solver returned no plan: {error.reason}") from None
    seq = [0, *(node for route in routes for node in (*route.tolist(), 0))]
    return np.pad(np.array(seq), (0, 2 * instance.n - len(seq)), constant_values=-1)


Problem: TypeAlias = npt.NDArray[np.float64] | Instance
"""What is labelled: the points of a tour, or a CVRP."""


Job: TypeAlias = tuple[Sequence[Problem], float]
"""Some instances, and the seconds for each."""


def _label(job: Job) -> list[npt.NDArray[np.int64]]:
    problems, seconds = job
    return [
        plan_of(problem, seconds) if isinstance(problem, Instance) else tour_of(problem, seconds)
        for problem in problems
    ]


def _labelled(
    jobs: Sequence[Job],
    workers: int,
    ray: str | None,
    patience: float,
    should_stop: Callable[[], bool],
) -> Iterator[list[npt.NDArray[np.int64]]]:
    """The labels of each job, in turn; jobs are done side by side, in processes or on a cluster."""
    longest = patience * (1.0 + max(seconds * len(some) for some, seconds in jobs))
    heard = time.monotonic()

    def stopped() -> bool:
        if time.monotonic() - heard > longest:
            raise ModelError("the labelling solver does not come back")
        return should_stop()

    ready: dict[int, list[npt.NDArray[np.int64]]] = {}
    turn = 0
    answers = spread(_label, jobs, workers=workers, ray=ray, stopped=stopped, apart=True)
    with closing(answers):
        for done in answers:
            heard = time.monotonic()
            if done.error is not None:
                raise done.error
            ready[done.index] = done.value
            while turn in ready:
                yield ready.pop(turn)
                turn += 1


def _problems(number: int, size: int, n: int, routes: bool) -> Sequence[Problem]:
    """The instances of a shard."""
    if routes:
        return [uniform_cvrp(n, SHARD * number + i) for i in range(size)]
    return list(np.random.default_rng(number).random((size, n, 2)))


def _save(
    path: Path, seed: int, n: int, rows: npt.NDArray[np.int64], problems: Sequence[Problem]
) -> None:
    data = io.BytesIO()
    named: dict[str, Any] = {}
    solved = [problem for problem in problems if isinstance(problem, Instance)][: len(rows)]
    if solved:
        named["xy"] = np.stack([np.asarray(instance.xy) for instance in solved])
        named["demand"] = np.stack([np.asarray(instance.demand) for instance in solved])
        named["capacity"] = np.array([instance.capacity for instance in solved])
        named["seq"] = rows.astype(np.int16 if n < 2**15 else np.int32)
    else:
        kind = np.uint8 if n <= 256 else np.uint16 if n <= 65_536 else np.uint32
        named["tours"] = rows.astype(kind)
    counts: dict[str, Any] = {"seed": seed, "n": n, "count": len(rows)}
    np.savez_compressed(data, **counts, **named)
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic_write(path, data.getvalue())


def label(
    folder: Path,
    n: int,
    count: int,
    *,
    routes: bool = False,
    seed: int = 0,
    seconds: float | None = None,
    workers: int = 2,
    ray: str | None = None,
    patience: float = 60.0,
    show_every: float = 10.0,
    report: Callable[[str], None] = print,
    should_stop: Callable[[], bool] = lambda: False,
) -> list[Path]:
    """Label `count` instances of n nodes in shards seed, seed + 1, ...; returns their files.

    With `routes` these are CVRPs of n customers. What is there already is kept. `seconds` is per
    instance (see `seconds_for`). Asked to stop, it saves what is done and returns. A solver that
    needs `patience` times as long as it was asked to take (hygese on two customers) ends the run
    with what was saved. `ray` is the address of a cluster, or "local". `show_every` is in
    seconds.
    """
    if n < (5 if routes else 3) or count < 1:
        raise ModelError(f"cannot label {count} instances of {n} nodes")
    spent = seconds_for(n, routes) if seconds is None else seconds
    shards = [(seed + i, min(SHARD, count - i * SHARD)) for i in range(-(-count // SHARD))]
    kind = "cvrp" if routes else "tsp"
    paths = [folder / f"{kind}{n}-seed{number}.npz" for number, _ in shards]
    todo = sum(max(0, size - _have(p, n)) for p, (_, size) in zip(paths, shards, strict=True))
    begin, done = time.monotonic(), 0
    for path, (number, size) in zip(paths, shards, strict=True):
        fresh = list(_read(path, number, n)[:SHARD])
        if len(fresh) >= size or should_stop():
            continue
        problems = _problems(number, size, n, routes)
        saved, shown, kept = time.monotonic(), time.monotonic(), len(fresh)
        few = max(1, min(64, int(1 / spent)))  # what is begun is lost when it stops
        jobs = [(problems[at : at + few], spent) for at in range(len(fresh), size, few)]
        for rows in _labelled(jobs, workers, ray, patience, should_stop):
            fresh += rows
            done += len(rows)
            now = time.monotonic()
            if now - saved > SAVE_EVERY:
                _save(path, number, n, np.stack(fresh), problems)
                saved, kept = now, len(fresh)
            if now - shown > show_every or len(fresh) == size:
                left = (todo - done) * (now - begin) / done
                report(f"{path.name}: {len(fresh)} of {size}, {left / 60:.0f} min to go")
                shown = now
            if should_stop():
                break
        if len(fresh) > kept:
            _save(path, number, n, np.stack(fresh), problems)
    return [path for path in paths if path.exists()]


def _have(path: Path, n: int) -> int:
    if not path.exists():
        return 0
    with np.load(path, allow_pickle=False) as shard:
        return int(shard["count"])


def _read(path: Path, seed: int, n: int) -> npt.NDArray[np.int64]:
    """The labels of a shard so far."""
    if not path.exists():
        return np.zeros((0, n), np.int64)
    with np.load(path, allow_pickle=False) as shard:
        if (int(shard["seed"]), int(shard["n"])) != (seed, n):
            raise ModelError("the shard belongs to other instances", file=str(path))
        rows: npt.NDArray[np.int64] = shard["seq" if "seq" in shard else "tours"].astype(np.int64)
        return rows

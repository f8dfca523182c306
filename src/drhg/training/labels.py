"""Labels: good tours of uniform random instances, by fast_tsp, in shards that can be extended.

A shard `tsp{n}-seed{S}.npz` holds `seed`, `n`, `count` and `tours`; its instances are
`default_rng(S).random((20000, n, 2))[:count]` and are not stored. It is rewritten, whole, every few
minutes, so that an interrupted run goes on where it stopped.
"""

from __future__ import annotations

import io
import signal
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import numpy.typing as npt

from drhg.errors import ModelError
from drhg.weights import write_bytes

SHARD = 20_000  # instances per shard
LARGEST = 65_535  # what fast_tsp takes as a distance
SAVE_EVERY = 120.0  # seconds
SHOW_EVERY = 10.0


def seconds_for(n: int) -> float:
    """Time per instance that leaves next to nothing to gain: 0.02 s for TSP100, 5 s for TSP1000."""
    return 0.02 * float(max(1.0, n / 100) ** 2.4)


def tour_of(points: npt.NDArray[np.float64], seconds: float) -> npt.NDArray[np.int64]:
    """A near-optimal tour by fast_tsp, on distances rounded to 1 / 46,000 of the square's side."""
    import fast_tsp

    apart = np.linalg.norm(points[:, None] - points[None], axis=-1)
    matrix = np.rint(apart * (LARGEST / max(np.sqrt(2), apart.max()))).astype(np.int64)
    tour = np.array(fast_tsp.find_tour(matrix.tolist(), duration_seconds=seconds))
    if not (np.sort(tour) == np.arange(len(points))).all():
        raise ModelError("the labelling solver returned no tour")
    return tour


def _label(job: tuple[npt.NDArray[np.float64], float]) -> npt.NDArray[np.int64]:
    return tour_of(*job)


def _save(path: Path, seed: int, n: int, tours: npt.NDArray[np.int64]) -> None:
    small = tours.astype(np.uint8 if n <= 256 else np.uint16 if n <= 65_536 else np.uint32)
    data = io.BytesIO()
    np.savez_compressed(data, seed=seed, n=n, count=len(small), tours=small)
    write_bytes(path, data.getvalue())


def label(
    folder: Path,
    n: int,
    count: int,
    *,
    seed: int = 0,
    seconds: float | None = None,
    workers: int = 2,
    report: Callable[[str], None] = print,
    should_stop: Callable[[], bool] = lambda: False,
) -> list[Path]:
    """Label `count` instances of n nodes in shards seed, seed + 1, ...; returns their files.

    What is there already is kept. `seconds` is per instance (see `seconds_for`). Asked to stop, it
    saves what is done and returns.
    """
    if n < 3 or count < 1:
        raise ModelError(f"cannot label {count} instances of {n} nodes")
    spent = seconds_for(n) if seconds is None else seconds
    shards = [(seed + i, min(SHARD, count - i * SHARD)) for i in range(-(-count // SHARD))]
    paths = [folder / f"tsp{n}-seed{number}.npz" for number, _ in shards]
    todo = sum(max(0, size - _have(p, n)) for p, (_, size) in zip(paths, shards, strict=True))
    begin, done = time.monotonic(), 0
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_calm) as pool:
        for path, (number, size) in zip(paths, shards, strict=True):
            tours = _read(path, number, n)[:SHARD]
            if len(tours) >= size or should_stop():
                continue
            points = np.random.default_rng(number).random((size, n, 2))
            saved = shown = time.monotonic()
            fresh = list(tours)
            # a few at a time, for what is handed to the pool is labelled before it can stop
            ahead = workers * max(1, min(64, int(1 / spent)))
            for at in range(len(tours), size, ahead):
                jobs = [(points[i], spent) for i in range(at, min(size, at + ahead))]
                fresh += pool.map(_label, jobs, chunksize=max(1, ahead // workers))
                done += len(jobs)
                now = time.monotonic()
                stop = should_stop()
                if now - saved > SAVE_EVERY or len(fresh) == size or stop:
                    _save(path, number, n, np.stack(fresh))
                    saved = now
                if now - shown > SHOW_EVERY or len(fresh) == size or stop:
                    left = (todo - done) * (now - begin) / done
                    report(f"{path.name}: {len(fresh)} of {size}, {left / 60:.0f} min to go")
                    shown = now
                if stop:
                    break
    return [path for path in paths if path.exists()]


def _calm() -> None:
    """Workers finish what they have: signals are for the process that started them."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


def _have(path: Path, n: int) -> int:
    if not path.exists():
        return 0
    with np.load(path, allow_pickle=False) as shard:
        return int(shard["count"])


def _read(path: Path, seed: int, n: int) -> npt.NDArray[np.int64]:
    """The tours of a shard so far."""
    if not path.exists():
        return np.zeros((0, n), np.int64)
    with np.load(path, allow_pickle=False) as shard:
        if (int(shard["seed"]), int(shard["n"])) != (seed, n):
            raise ModelError("the shard belongs to other instances", file=str(path))
        tours: npt.NDArray[np.int64] = shard["tours"].astype(np.int64)
        return tours

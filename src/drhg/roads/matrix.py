"""A whole matrix from many requests: in blocks, each kept on disk, so that a run can be resumed."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from drhg.errors import DrhgError, InstanceError
from drhg.files.atomic import atomic_write
from drhg.files.messages import quoted
from drhg.files.paths import PathLike
from drhg.files.routes import name_of_node, positions
from drhg.files.tables import MOST_PROBLEMS
from drhg.problem import Floats, Instance, an_instance
from drhg.problem.parameters import Parameters, number
from drhg.roads.fetch import fetch
from drhg.roads.servers import Block, Place, Server, TooBig, Unreachable


@dataclass(frozen=True)
class RoadParams(Parameters):
    """How a server is asked.

    The default block is within what servers allow as they come: OSRM 100 places per request
    (`--max-table-size`), Valhalla 2,500 pairs (`max_matrix_location_pairs`).
    """

    block: int = number(50, 1)  # stops on either side of a request; halved if the server objects
    attempts: int = number(5, 1)  # for each request
    wait: float = number(0.5, 0.0)  # seconds before the second attempt, doubled for each one after
    timeout: float = number(60.0, 0.001)  # seconds without a byte


@dataclass(frozen=True)
class RoadMatrix:
    """Distances and durations between all stops, by road and therefore not symmetric."""

    distances: Floats  # (n, n) metres, from row to column
    durations: Floats  # (n, n) seconds
    names: tuple[str, ...] | None
    asked: int  # pairs that the server was asked for
    kept: int  # pairs that were on disk


@dataclass(frozen=True)
class RoadProgress:
    """How far a matrix is, in pairs of stops."""

    done: int
    total: int
    what: str
    seconds: float


Span: TypeAlias = tuple[range, range]


def road_matrix(
    instance: Instance,
    server: Server,
    *,
    cache: PathLike | None = None,
    fresh: bool = False,
    params: RoadParams | None = None,
    on_progress: Callable[[RoadProgress], None] | None = None,
    notice: Callable[[str], None] | None = None,
) -> RoadMatrix:
    """The distances and durations by road between all nodes of an instance on the globe.

    Every answer is kept in the folder `cache` (by default one of the user's cache), so a run that
    was interrupted goes on where it was, and stops that are added later cost only their own rows
    and columns. `fresh` asks for everything again.

    >>> import drhg
    >>> stops = drhg.tsp([[48.1, 11.5], [48.2, 11.6]], metric="HAVERSINE")
    >>> server = drhg.Osrm("https://osrm.example.org")
    >>> road_matrix(stops, server).distances  # doctest: +SKIP
    array([[    0. , 15421.3], [15398.7,     0. ]])
    """
    found = positions(an_instance(instance))
    if found is None or not found[1]:
        raise InstanceError("roads are between latitudes and longitudes, which there are none of")
    spots: list[Place] = [(lat, lon) for lon, lat in np.round(found[0], 6).tolist()]
    first: dict[Place, int] = {}  # several stops may be at one place, which is asked for once
    for node, spot in enumerate(spots):
        first.setdefault(spot, node)
    names = [quoted(name_of_node(instance, node)) for node in first.values()]
    collector = _Collector(
        list(first), names, server, params or RoadParams(), _folder(cache), fresh,
        on_progress or (lambda step: None), notice or (lambda text: None),
    )  # fmt: skip
    distances, durations = collector.collect()
    _refuse_gaps(names, distances, server)
    place = {spot: i for i, spot in enumerate(first)}
    every = np.ix_(*[[place[spot] for spot in spots]] * 2)
    return RoadMatrix(
        distances[every], durations[every], instance.names, collector.asked, collector.kept
    )


def _folder(cache: PathLike | None) -> Path:
    if cache is not None:
        return Path(cache)
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(home) / "drhg" / "roads"


@dataclass
class _Collector:
    """Collects the blocks of one matrix."""

    places: Sequence[Place]
    names: Sequence[str]
    server: Server
    params: RoadParams
    folder: Path
    fresh: bool
    on_progress: Callable[[RoadProgress], None]
    notice: Callable[[str], None]
    asked: int = 0
    kept: int = 0
    began: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.side = self.params.block  # of a request, until the server wants smaller ones

    def collect(self) -> Block:
        n, side = len(self.places), self.params.block
        whole = np.full((n, n), np.nan), np.full((n, n), np.nan)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DrhgError(
                f"cannot be used to keep answers: {error.strerror}", file=str(self.folder)
            ) from None
        for top in range(0, n, side):
            for left in range(0, n, side):
                span = range(top, min(n, top + side)), range(left, min(n, left + side))
                self._fill(whole, span)
        return whole

    def _fill(self, whole: Block, span: Span) -> None:
        """One block, or its four quarters if the server takes no more."""
        rows, columns = span
        where = np.ix_(rows, columns)
        if rows == columns and len(rows) == 1:  # servers refuse a table of one place
            whole[0][where] = whole[1][where] = 0.0
            return
        path = self._path(span)
        block = None if self.fresh else _read_block(path, (len(rows), len(columns)))
        if block is not None:
            self.kept += len(rows) * len(columns)
        else:
            block = self._ask(span) if max(map(len, span)) <= self.side else None
            if block is None:
                for part in _quarters(span):
                    self._fill(whole, part)
                return
            self.asked += len(rows) * len(columns)
            buffer = BytesIO()
            np.save(buffer, np.stack(block))
            atomic_write(path, buffer.getvalue())
        for table, found in zip(whole, block, strict=True):
            table[where] = found
        done, n = self.asked + self.kept, len(self.places)
        seconds = time.monotonic() - self.began
        self.on_progress(RoadProgress(done, n * n, f"from {self.names[rows[0]]}", seconds))

    def _ask(self, span: Span) -> Block | None:
        """The server's answer, or nothing if it wants smaller requests."""
        sources, targets = ([self.places[i] for i in side] for side in span)
        params = self.params
        try:
            told = fetch(
                self.server, self.server.request(sources, targets), attempts=params.attempts,
                wait=params.wait, timeout=params.timeout, notice=self.notice,
            )  # fmt: skip
            return self.server.answer(told, (len(sources), len(targets)))
        except TooBig as error:
            longest = max(map(len, span))
            if longest == 1:
                raise DrhgError(f"{self.server.label}: {error.reason}") from None
            self.side = longest // 2
            self.notice(f"{self.server.label} takes less at a time: blocks of {self.side}")
            return None
        except Unreachable as error:
            raise DrhgError(f"{self._blamed(error, span)}: {error.reason}") from None
        except DrhgError as error:
            raise DrhgError(
                f"{error.reason} What has been answered is kept: the same command goes on from "
                "there"
            ) from None

    def _blamed(self, error: Unreachable, span: Span) -> str:
        """The stop without a road, or the stops among which it is."""
        among = list(dict.fromkeys([*span[0], *span[1]]))
        if error.place is not None and error.place < len(among):
            return f"stop {self.names[among[error.place]]}"
        return f"one of the stops {self.names[among[0]]} .. {self.names[among[-1]]}"

    def _path(self, span: Span) -> Path:
        """The file of a block: named after what was asked, whatever else the table holds."""
        asked: list[Any] = [self.server.label]
        asked += [[self.places[i] for i in side] for side in span]
        key = hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:32]
        return self.folder / f"{key}.npy"


def _quarters(span: Span) -> list[Span]:
    halves = [
        [side] if len(side) == 1 else [side[: len(side) // 2], side[len(side) // 2 :]]
        for side in span
    ]
    return [(rows, columns) for rows in halves[0] for columns in halves[1]]


def _read_block(path: Path, shape: tuple[int, int]) -> Block | None:
    """What was kept, or nothing if there is none or it is damaged."""
    try:
        found = np.load(BytesIO(path.read_bytes()), allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    if found.shape != (2, *shape) or found.dtype != np.float64:
        return None
    return found[0], found[1]


def _refuse_gaps(names: Sequence[str], distances: Floats, server: Server) -> None:
    """Name all stops without roads, and all pairs without a way from one to the other."""
    missing = np.isnan(distances)
    if not missing.any():
        return
    alone = missing.sum(axis=1) + missing.sum(axis=0) > len(names) - 1  # most ways are missing
    told = [f"no road to or from {names[i]}" for i in np.flatnonzero(alone).tolist()]
    pairs = np.argwhere(missing & ~alone[:, None] & ~alone[None, :]).tolist()
    told += [f"no road from {names[i]} to {names[j]}" for i, j in pairs]
    more = len(told) - MOST_PROBLEMS
    raise InstanceError(
        "\n".join(
            [
                f"{server.label} knows no way between some stops; correct their coordinates or "
                "leave them out:",
                *told[:MOST_PROBLEMS],
                *([f"and {more} more"] if more > 0 else []),
            ]
        )
    )

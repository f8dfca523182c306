"""The optional store: solves in SQLite, so that a restart loses none that is finished."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
import zlib
from pathlib import Path
from typing import Any

from drhg.errors import DrhgError
from drhg.problem import Solution
from drhg.service.jobs import Best, Job, Order
from drhg.service.limits import ServiceLimits

VERSION = 1
_TABLE = """
CREATE TABLE IF NOT EXISTS solves (
    id TEXT PRIMARY KEY, state TEXT NOT NULL, created REAL NOT NULL, ended REAL,
    key TEXT UNIQUE, digest TEXT NOT NULL, asked BLOB NOT NULL, found BLOB
)"""


class Store:
    """Solves on disk; every call may wait for the disk, so none belongs into the event loop."""

    def __init__(self, path: Path, limits: ServiceLimits) -> None:
        self._limits, self._lock = limits, threading.Lock()
        try:
            self._db = sqlite3.connect(path, check_same_thread=False, timeout=10.0)
            self._db.execute("PRAGMA journal_mode=WAL")
            version = self._db.execute("PRAGMA user_version").fetchone()[0]
            if version not in (0, VERSION):
                raise DrhgError(
                    f"a store of version {version}, not {VERSION}: name another file",
                    file=str(path),
                )
            self._db.execute(_TABLE)
            self._db.execute(f"PRAGMA user_version={VERSION}")
            self._db.commit()
        except sqlite3.Error as error:
            raise DrhgError(f"cannot be used as a store: {error}", file=str(path)) from None

    def add(self, job: Job) -> None:
        asked = zlib.compress(job.order.to_json().encode(), 1)
        row = (job.id, job.state, job.created, job.order.key, job.order.digest, asked)
        with self._lock, self._db:
            self._db.execute(
                "INSERT INTO solves (id, state, created, key, digest, asked) "
                "VALUES (?, ?, ?, ?, ?, ?)", row,
            )  # fmt: skip

    def save(self, id: str, state: str, ended: float | None, found: bytes) -> None:
        """What became of a solve so far."""
        with self._lock, self._db:
            self._db.execute(
                "UPDATE solves SET state = ?, ended = ?, found = ? WHERE id = ?",
                (state, ended, found, id),
            )

    def load(self, id: str) -> Job | None:
        return self._one("id = ?", id)

    def by_key(self, key: str) -> Job | None:
        return self._one("key = ?", key)

    def recover(self) -> list[Job]:
        """Call what was running interrupted, and return what was still waiting, oldest first."""
        with self._lock, self._db:
            self._db.execute(
                "UPDATE solves SET state = 'interrupted', ended = ? WHERE state = 'running'",
                (time.time(),),
            )
            rows = self._db.execute(
                "SELECT id FROM solves WHERE state = 'queued' ORDER BY created"
            ).fetchall()
        return [job for (id,) in rows if (job := self.load(id)) is not None]

    def expire(self) -> None:
        """Forget what ended long ago."""
        before = time.time() - self._limits.keep_seconds
        with self._lock, self._db:
            self._db.execute("DELETE FROM solves WHERE ended < ?", (before,))

    def close(self) -> None:
        with self._lock:
            self._db.close()

    def _one(self, where: str, value: str) -> Job | None:
        with self._lock:
            row = self._db.execute(
                "SELECT id, state, created, ended, key, digest, asked, found FROM solves "
                f"WHERE {where}", (value,),
            ).fetchone()  # fmt: skip
        if row is None:
            return None
        id, state, created, ended, key, digest, asked, found = row
        order = Order.from_json(zlib.decompress(asked).decode(), digest, key)
        job = Job(order, self._limits, id=id, created=created, state=state, ended=ended)
        if found is not None:
            _take(job, json.loads(zlib.decompress(found)))
        if job.over:
            job.last_id = 1  # its changes are forgotten: who asks gets all of the best
            job.announce_end()
        return job


def packed(job: Job) -> bytes:
    """What became of a solve, for the store."""
    best = None
    if job.best is not None:
        routes = [route.tolist() for route in job.best.solution.routes]
        best = [job.best.cost, job.best.seconds, job.best.iterations, routes]
    found = {"best": best, "result": job.result, "problem": job.problem, "trace": job.trace}
    return zlib.compress(json.dumps(found).encode(), 1)


def _take(job: Job, found: dict[str, Any]) -> None:
    if found["best"] is not None:
        cost, seconds, iterations, routes = found["best"]
        job.best = Best(cost, seconds, iterations, Solution(routes))
    job.result, job.problem = found["result"], found["problem"]
    job.trace = [(seconds, cost) for seconds, cost in found["trace"]]

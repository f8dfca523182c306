"""The solves of a service: who waits, who runs, what is kept."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import OrderedDict, deque
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from drhg.errors import DrhgError
from drhg.service.jobs import Job, Order
from drhg.service.limits import ServiceLimits
from drhg.service.problems import Refused, problem_of
from drhg.service.store import Store, packed
from drhg.service.tasks import NICENESS, Ended, Task
from drhg.service.workers import Questions, Worker

log = logging.getLogger("drhg")

SOLVING = ("tsp", "cvrp", "vrp", "local", "neural", "paper")  # compiled when a worker is ready
SHORT = ("plans", "local", "neural")  # what one for short questions has
QUESTIONS = ("/steps", "/explain", "/replan")  # are answered while the client waits
SWEEP_SECONDS = 0.5


class Desk:
    """All solves, and the workers; lives in the event loop."""

    def __init__(self, limits: ServiceLimits, workers: int, store: Store | None = None) -> None:
        self.limits, self.store = limits, store
        self.waiting: deque[Job] = deque()
        self.jobs: OrderedDict[str, Job] = OrderedDict()
        self.keys: dict[str, str] = {}  # Idempotency-Key -> id
        self.rejected = 0
        self.ended: dict[str, int] = {}  # by state
        self.searched = 0.0  # seconds
        self._asked: asyncio.Queue[None] = asyncio.Queue()
        self._running: dict[str, Worker] = {}
        self._ends: set[asyncio.Task[None]] = set()
        self._disk = ThreadPoolExecutor(1)
        self.workers = [Worker(SOLVING, self._dispatch) for _ in range(workers)]
        self._short = Questions(SHORT)
        self._reader = Questions((), NICENESS // 2)
        self._reading = self._asking = 0  # solves that are read; questions
        self._sweeper: asyncio.Task[None] | None = None
        self.closing = False

    async def open(self) -> None:
        if self.store is not None:
            for job in await self._on_disk(self.store.recover):
                self._keep(job)
                self.waiting.append(job)
        self._sweeper = asyncio.create_task(self._sweep())

    @property
    def ready(self) -> int:
        return sum(worker.ready for worker in self.workers)

    @property
    def running(self) -> int:
        return len(self._running)

    async def submit(self, order: Order) -> Job:
        """Queue a solve; refused if the queue is full. One with a known key is that one."""
        if order.key is not None and (job := await self.known(order.key)) is not None:
            return self.same(job, order.digest)
        self.check_queue()
        job = Job(order, self.limits)
        self._keep(job)
        self.waiting.append(job)
        try:
            if self.store is not None:  # nothing is accepted that a restart would lose
                await self._on_disk(self.store.add, job)
        except Exception:
            self._drop(job)
            raise
        job.tell("state", {"state": job.state})
        self._dispatch()
        return job

    def check_room(self, method: str, path: str) -> None:
        """Refuse a request that there is no room for; quick, before anything of it is read."""
        if method == "POST" and path == "/solves":
            self.check_queue()
        elif method == "POST" and path in QUESTIONS:
            self._check_questions()

    def check_queue(self) -> None:
        """Refuse a solve while the queue is full."""
        free = sum(worker.free for worker in self.workers)
        if self.closing or len(self.waiting) + self._reading >= self.limits.queue + free:
            self.rejected += 1
            raise Refused(
                429, "The queue is full",
                f"{len(self.waiting)} solves wait already; try again later",
                {"Retry-After": str(self._retry_after())},
            )  # fmt: skip

    def _check_questions(self) -> None:
        if self._asking > self.limits.queue:
            self.rejected += 1
            raise Refused(429, "The queue is full", "too many questions", {"Retry-After": "1"})

    def _retry_after(self) -> int:
        """Seconds until a place in the queue is free, more or less."""
        seconds = [self.jobs[id].order.seconds for id in self._running if id in self.jobs]
        return max(1, math.ceil(min(seconds, default=1.0) / 2))

    async def known(self, key: str) -> Job | None:
        """The solve that an Idempotency-Key was used for."""
        if (id := self.keys.get(key)) in self.jobs:
            return self.jobs[str(id)]
        return None if self.store is None else await self._on_disk(self.store.by_key, key)

    def same(self, job: Job, digest: str) -> Job:
        """The solve of a key, if it was asked for by the same request."""
        if job.order.digest != digest:
            raise Refused(
                422, "Idempotency-Key was used before",
                "another request had this Idempotency-Key: take a new one for a new request",
            )  # fmt: skip
        return job

    async def find(self, id: str) -> Job:
        job = self.jobs.get(id)
        if job is None and self.store is not None:
            job = await self._on_disk(self.store.load, id)
        if job is None:
            kept = f"{self.limits.keep_seconds:g} s after its end"
            raise Refused(404, "Not found", f"there is no solve {id!r}; each is kept for {kept}")
        return job

    def ahead(self, job: Job) -> int | None:
        return self.waiting.index(job) if job in self.waiting else None

    async def stop(self, job: Job) -> None:
        """Stop a solve and wait until its best is there."""
        if job in self.waiting:
            self.waiting.remove(job)
            await self._over(job, "stopped")
        elif job.id in self._running:
            job.stopping = True
            self._running[job.id].stop(job.id)
        while not job.over:
            await job.news()

    async def ask(self, kind: str, what: str, sent: Any) -> Any:
        """A question that takes a while; refused if many wait."""
        self._check_questions()
        self._asking += 1
        try:
            return await self._short.ask(kind, await self.read(what, sent))
        finally:
            self._asking -= 1

    async def read_order(self, sent: Any) -> Any:
        """What a solve is asked for; while that is read, its place in the queue is kept."""
        self.check_queue()
        self._reading += 1
        try:
            return await self.read("solve", sent)
        finally:
            self._reading -= 1

    async def read(self, what: str, sent: Any) -> Any:
        """What a request asks for, read by a process of its own (`asking`)."""
        arguments = {"what": what, "sent": sent, "limits": self.limits}
        return await self._reader.ask("read", arguments)

    def _dispatch(self) -> None:
        for worker in getattr(self, "workers", ()):
            if self.waiting and worker.free and not self.closing:
                job = self.waiting.popleft()
                arguments = {"instance": job.order.instance, **job.order.options}
                done = worker.do(Task(job.id, "solve", arguments), job.improve)
                self._running[job.id] = worker
                job.begin()
                if self.store is not None:
                    job.saved = False
                end = asyncio.create_task(self._await_end(job, done))
                self._ends.add(end)
                end.add_done_callback(self._ends.discard)

    async def _await_end(self, job: Job, done: asyncio.Future[Ended]) -> None:
        ended = await done
        if job.over:  # the service is closing
            return
        if ended.error is None:
            self.searched += ended.value["seconds"]
            await self._over(job, "stopped" if job.stopping else "finished", ended.value)
        elif isinstance(ended.error, DrhgError) or job.best is None:
            await self._over(job, "failed", problem=problem_of(ended.error))
        else:  # its process died
            await self._over(job, "interrupted", problem=problem_of(ended.error))

    async def _over(
        self, job: Job, state: str, result: dict[str, Any] | None = None,
        problem: dict[str, Any] | None = None,
    ) -> None:  # fmt: skip
        """End a solve: first on disk, then for those who wait for it."""
        before = job.state
        job.end(state, result, problem)
        if self.store is not None:
            job.state = before
            try:
                found = packed(job)
                await self._on_disk(self.store.save, job.id, state, job.ended, found)
            except Exception as error:
                log.error("the store lost solve %s: %s", job.id, error)
            job.state = state
        self._running.pop(job.id, None)
        self.ended[state] = self.ended.get(state, 0) + 1
        job.announce_end()

    async def _sweep(self) -> None:
        """Now and then: save what runs, forget what is old."""
        next_save = 0.0
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            self._forget()
            if self.store is None or time.monotonic() < next_save:
                continue
            next_save = time.monotonic() + self.limits.save_seconds
            try:
                for job in [self.jobs[id] for id in self._running if id in self.jobs]:
                    if not job.saved:
                        job.saved = True
                        found = await self._on_disk(packed, job)
                        if job.ended is None:  # else its end is on the way to the disk
                            await self._on_disk(self.store.save, job.id, job.state, None, found)
                await self._on_disk(self.store.expire)
            except Exception as error:
                log.error("the store cannot be written: %s", error)

    def _forget(self) -> None:
        """Drop what ended long ago, and the oldest of too many; the changes of all that ended."""
        now = time.time()
        over = [job for job in self.jobs.values() if job.over]
        for i, job in enumerate(sorted(over, key=lambda job: job.ended or 0.0)):
            since = now - (job.ended or 0.0)
            if since > self.limits.keep_seconds or len(over) - i > self.limits.keep_results:
                self._drop(job)
            elif since > 30.0:
                job.forget_changes()

    def _keep(self, job: Job) -> None:
        self.jobs[job.id] = job
        if job.order.key is not None:
            self.keys[job.order.key] = job.id

    def _drop(self, job: Job) -> None:
        self.jobs.pop(job.id, None)
        if job in self.waiting:
            self.waiting.remove(job)
        if job.order.key is not None:
            self.keys.pop(job.order.key, None)

    async def _on_disk(self, function: Any, *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._disk, function, *arguments)

    def begin_closing(self) -> None:
        """Let those who follow events go, so that their connections close."""
        self.closing = True
        for job in self.jobs.values():
            job.wake()

    async def close(self) -> None:
        """End the workers; what runs is interrupted, with its best."""
        self.begin_closing()
        if self._sweeper is not None:
            self._sweeper.cancel()
        for id in list(self._running):
            if id in self.jobs:
                await self._over(self.jobs[id], "interrupted")
        for worker in self.workers:
            worker.close()
        self._short.close()
        self._reader.close()
        if self.store is not None:
            await self._on_disk(self.store.close)
        self._disk.shutdown(wait=False)

"""Worker processes, as the event loop sees them."""

from __future__ import annotations

import asyncio
import itertools
import logging
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing import get_context
from typing import Any

from drhg.service.tasks import NICENESS, Ended, Improved, Ready, Stop, Task, work

log = logging.getLogger("drhg")

OnImproved = Callable[[Improved], None]
LONGEST_PAUSE = 30.0  # seconds before a process that keeps dying at its start is tried again


class Worker:
    """A process that does one task after the other, and is replaced if it dies."""

    def __init__(
        self, methods: tuple[str, ...], on_free: Callable[[], None], niceness: int = NICENESS
    ) -> None:
        self._methods, self._on_free, self._niceness = methods, on_free, niceness
        self._loop = asyncio.get_running_loop()
        self.ready = self._closed = False
        self._task: Task | None = None
        self._done: asyncio.Future[Ended] | None = None
        self._on_improved: OnImproved | None = None
        self._sender = ThreadPoolExecutor(1)  # a pipe may be full
        self._pause = 0.1
        self._start()

    @property
    def free(self) -> bool:
        return self.ready and self._task is None and not self._closed

    def _start(self) -> None:
        context = get_context("spawn")  # numba's threads and locks do not survive a fork
        self._pipe, far = context.Pipe()
        self._process = context.Process(
            target=work, args=(far, self._methods, self._niceness), daemon=True
        )
        self._process.start()
        far.close()
        threading.Thread(target=self._read, args=(self._pipe,), daemon=True).start()

    def _read(self, pipe: Any) -> None:
        """The thread that reads what the process says."""
        try:
            while True:
                self._post(self._take, pipe.recv())
        except (EOFError, OSError):
            self._post(self._died, pipe)

    def _post(self, function: Callable[[Any], None], value: Any) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(function, value)

    def _take(self, message: object) -> None:
        if isinstance(message, Ready):
            self.ready, self._pause = True, 0.1
            for warning in message.warnings:
                log.warning("a worker is not warm: %s", warning)
            log.info("a worker is ready after %.1f s", message.seconds)
            self._on_free()
        elif isinstance(message, Improved):
            if self._on_improved is not None and self._task and self._task.id == message.id:
                self._on_improved(message)
        elif isinstance(message, Ended):
            self._end(message)

    def _end(self, ended: Ended) -> None:
        done, self._task, self._done, self._on_improved = self._done, None, None, None
        if done is not None and not done.done():
            done.set_result(ended)
        self._on_free()

    def _died(self, pipe: Any) -> None:
        if self._closed or pipe is not self._pipe:
            return
        self.ready = False
        self._process.join(1.0)
        log.error("a worker process died (exit code %s)", self._process.exitcode)
        if self._task is not None:
            error = RuntimeError("the process that worked on it died")
            self._end(Ended(self._task.id, error=error))
        self._loop.call_later(self._pause, self._restart)
        self._pause = min(2 * self._pause, LONGEST_PAUSE)

    def _restart(self) -> None:
        if not self._closed:
            self._start()

    def do(self, task: Task, on_improved: OnImproved | None = None) -> asyncio.Future[Ended]:
        """Give it a task; only if it is free."""
        assert self.free
        self._task, self._on_improved = task, on_improved
        self._done = self._loop.create_future()
        self._send(task)
        return self._done

    def stop(self, id: str) -> None:
        """Have it end a task with the best so far."""
        self._send(Stop(id))

    def _send(self, message: object) -> None:
        pipe = self._pipe

        def send() -> None:
            with suppress(OSError, ValueError):  # it is dead, which is noticed elsewhere
                pipe.send(message)

        self._sender.submit(send)

    def close(self) -> None:
        self._closed = True
        self._process.terminate()
        self._sender.shutdown(wait=False)


class Questions:
    """A worker that answers one question after the other while clients wait."""

    def __init__(self, methods: tuple[str, ...], niceness: int = NICENESS) -> None:
        self._free, self._turn = asyncio.Event(), asyncio.Lock()
        self._numbers = itertools.count()
        self._worker = Worker(methods, self._free.set, niceness)
        self.close = self._worker.close

    async def ask(self, kind: str, arguments: Mapping[str, Any]) -> Any:
        """The answer; raises what went wrong."""
        async with self._turn:
            while not self._worker.free:
                self._free.clear()
                await self._free.wait()
            task = Task(f"{kind}-{next(self._numbers)}", kind, arguments)
            ended = await asyncio.shield(self._worker.do(task))
        if ended.error is not None:
            raise ended.error
        return ended.value

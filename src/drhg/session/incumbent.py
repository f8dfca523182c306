"""The best solution so far, shared by the searching and the waiting thread."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable

import numpy as np

from drhg.problem import Instance, Solution, cost
from drhg.problem.tolerances import GAIN
from drhg.search.criteria import Limits, Progress
from drhg.session.pace import Pace
from drhg.session.result import TracePoint

OnImprove = Callable[[TracePoint, Solution], None]
OnProgress = Callable[[Progress], None]


class Incumbent:
    """The best solution so far: where the worker leaves it and reads that it should stop."""

    def __init__(self, instance: Instance, limits: Limits, pace: Pace) -> None:
        self.pace = pace
        self.called = time.perf_counter()
        self.clock: float | None = None  # when the kernels were ready
        self.instance, self.limits = instance, limits
        self.best: Solution | None = None
        self.cost: float = np.inf  # of the best; inf while customers are left out
        self.trace: list[TracePoint] = []
        self.iterations = self.improved_at = 0
        self.looking = 0.0  # seconds spent on looking at what the search has
        self.status: str | None = None
        self.error: BaseException | None = None
        self.warnings: list[str] = []
        self.stop = False  # set under the lock: nothing is offered after it
        self.lock = threading.Lock()
        self.finished = threading.Event()
        self.callbacks: Callbacks | None = None

    def start_clock(self) -> None:
        self.clock = time.perf_counter()

    @property
    def seconds(self) -> float:
        return 0.0 if self.clock is None else time.perf_counter() - self.clock

    def progress(self) -> Progress:
        since = self.iterations - self.improved_at
        return Progress(self.seconds, self.iterations, since, self.cost)

    def offer(self, found: float, solution: Callable[[], Solution]) -> None:
        """Take a solution as the best if it is better (or the first at all).

        Of equally good ones the last is kept: which one was found first depends on how often
        Python looks, where the search ends does not.
        """
        slack = GAIN * max(1.0, abs(self.cost)) if self.cost < np.inf else 0.0
        if self.best is not None and not found <= self.cost + slack:
            return
        best = solution()
        better = self.best is None or found < self.cost - slack
        exact = cost(self.instance, best) if better and found < np.inf else None
        with self.lock:
            if self.stop:
                return
            self.best = best
            if better:
                self.cost, self.improved_at = found, self.iterations
            if exact is not None:
                self.cost = float(exact)
                self.trace.append(TracePoint(self.seconds, self.iterations, exact))
                if self.callbacks is not None:
                    self.callbacks.queue.put((self.trace[-1], best))


class Callbacks:
    """Calls the user's functions from a thread of their own, so that they never delay a limit."""

    def __init__(
        self, incumbent: Incumbent, on_improve: OnImprove | None, on_progress: OnProgress | None
    ) -> None:
        self.queue: queue.SimpleQueue[tuple[TracePoint, Solution] | None] = queue.SimpleQueue()
        self._incumbent, self._on_improve, self._on_progress = incumbent, on_improve, on_progress
        self._heartbeat, self._grace = incumbent.pace.heartbeat, incumbent.pace.grace
        self._closed = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        beat = time.monotonic() + self._heartbeat
        try:
            while True:
                try:
                    news = self.queue.get(timeout=max(0.0, beat - time.monotonic()))
                except queue.Empty:
                    beat += self._heartbeat
                    if self._on_progress is not None and not self._closed:
                        self._on_progress(self._incumbent.progress())
                    continue
                if news is None or self._closed:
                    return
                if self._on_improve is not None:
                    self._on_improve(*news)
        except BaseException as error:
            self._incumbent.error = error

    def close(self) -> None:
        """Tell what is still to be told if that is quick, and nothing later."""
        self.queue.put(None)
        self._thread.join(self._grace)
        self._closed = True

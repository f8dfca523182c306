"""Many tasks at once: here, on processes of this machine, or on a Ray cluster.

A worker that dies costs a second attempt, never a task; a task that raises is reported, and the
others go on.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from multiprocessing import connection, get_context, parent_process
from typing import Any

from drhg.errors import DrhgError

log = logging.getLogger("drhg")

ATTEMPTS = 3  # how often a task is tried whose worker dies
GRACE = 10.0  # seconds that tasks on a cluster have to end after they are told to


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class Done:
    """The end of a task: its value, or the error that it ended with."""

    index: int
    value: Any = None
    error: Exception | None = None


def spread(
    function: Callable[[Any], Any],
    tasks: Sequence[Any],
    *,
    workers: int = 1,
    ray: str | None = None,
    cores: int = 1,
    attempts: int = ATTEMPTS,
    stopped: Callable[[], bool] | None = None,
    apart: bool = False,
) -> Generator[Done, None, None]:
    """Apply a function to all tasks and yield each end as it comes, in any order.

    One worker means this process, unless it is to be `apart`. `ray` is the address of a cluster, or
    "local" for a new one on this machine; a task there takes `cores` cores. Function, tasks and
    values must be picklable. Once `stopped` says so, no more tasks begin, and KeyboardInterrupt is
    raised in those that run elsewhere: what they still return is yielded.

    >>> [done.value for done in spread(abs, [-1, 2])]
    [1, 2]
    """
    if ray is not None:
        return _on_ray(function, tasks, ray, workers, cores, attempts, stopped)
    if workers > 1 or apart:
        return _on_processes(function, tasks, workers, attempts, stopped)
    return _here(function, tasks)


def _here(function: Callable[[Any], Any], tasks: Sequence[Any]) -> Generator[Done, None, None]:
    for index, task in enumerate(tasks):
        try:
            done = Done(index, function(task))
        except Exception as error:
            done = Done(index, error=error)
        yield done


def _serve(pipe: connection.Connection, function: Callable[[Any], Any]) -> None:
    """A worker: answers one task after the other until it is given no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the one who started us,
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # who then says so like this
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with suppress(KeyboardInterrupt, EOFError):
        while True:
            index, task = pipe.recv()
            try:
                done = Done(index, function(task))
            except DrhgError as error:
                done = Done(index, error=error)
            except Exception as error:  # of a type that may not survive the journey
                done = Done(index, error=RuntimeError(f"{type(error).__name__}: {error}"))
            pipe.send(done)


def _end_with_parent() -> None:
    """A parent that is gone, killed perhaps, wants no answer: do not work on until the limit."""
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _on_processes(
    function: Callable[[Any], Any],
    tasks: Sequence[Any],
    workers: int,
    attempts: int,
    stopped: Callable[[], bool] | None,
) -> Generator[Done, None, None]:
    context = get_context("spawn")  # numba's threads and locks do not survive a fork
    todo = list(range(len(tasks)))[::-1]
    tries = [0] * len(tasks)
    busy: dict[connection.Connection, tuple[Any, int]] = {}  # pipe -> (process, task)
    every: list[Any] = []
    idle: list[tuple[Any, connection.Connection]] = []
    told = False
    try:
        while todo or busy:
            if stopped is not None and not told and stopped():
                told = True
                todo.clear()
                for process, _ in busy.values():
                    process.terminate()
            while todo and len(busy) < workers:
                if not idle:
                    near, far = context.Pipe()
                    process = context.Process(target=_serve, args=(far, function))
                    process.start()
                    far.close()
                    every.append(process)
                    idle.append((process, near))
                process, pipe = idle.pop()
                index = todo.pop()
                busy[pipe] = process, index
                with suppress(OSError):  # already dead, which is noticed below
                    pipe.send((index, tasks[index]))
            ready = connection.wait(list(busy), timeout=None if stopped is None else 0.05)
            for pipe in [pipe for pipe in busy if pipe in ready]:
                process, index = busy.pop(pipe)
                try:
                    done = pipe.recv()
                    idle.append((process, pipe))
                except (EOFError, OSError):
                    pipe.close()
                    process.join()
                    if told:  # it had nothing yet
                        continue
                    tries[index] += 1
                    if tries[index] < attempts:
                        todo.append(index)
                        continue
                    done = Done(index, error=_died(tries[index], f"exit {process.exitcode}"))
                yield done
    finally:
        for process in every:
            process.kill()
        for process in every:
            process.join()


def _died(times: int, how: str) -> DrhgError:
    return DrhgError(f"its worker died {times} times ({how})")


def _on_ray(
    function: Callable[[Any], Any],
    tasks: Sequence[Any],
    address: str,
    workers: int,
    cores: int,
    attempts: int,
    stopped: Callable[[], bool] | None,
) -> Generator[Done, None, None]:
    ray, ours = _connected(address, max(1, workers) * cores)
    remote = ray.remote(num_cpus=cores, max_retries=attempts - 1)(function)
    return _from_ray(ray, remote, tasks, cores, attempts, stopped, ours)


def _connected(address: str, cpus: int) -> tuple[Any, bool]:
    """The module `ray`, connected, and whether it is for us to shut it down."""
    try:
        ray: Any = import_module("ray")
    except ImportError:
        raise DrhgError(
            "Ray is not installed: install the extra `ray` (pip install '.[ray]' in a checkout "
            "of drhg)"
        ) from None
    if ray.is_initialized():
        return ray, False
    size = {"num_cpus": cpus} if address == "local" else {}
    handler = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(
            address, include_dashboard=False, log_to_driver=False, logging_level="ERROR", **size
        )
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise DrhgError(f"no Ray cluster at {address}: {error}") from None
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)  # Ray sets one of its own
    return ray, True


def _from_ray(
    ray: Any,
    remote: Any,
    tasks: Sequence[Any],
    cores: int,
    attempts: int,
    stopped: Callable[[], bool] | None,
    ours: bool,
) -> Generator[Done, None, None]:
    """The ends of all tasks on a cluster that is there; `ours` is shut down after them."""
    try:
        window = 2 * max(1, int(ray.cluster_resources().get("CPU", 1)) // cores)
        todo = list(range(len(tasks)))[::-1]
        pending: dict[Any, int] = {}
        told: float | None = None  # when tasks were told to end
        while todo or pending:
            if stopped is not None and told is None and stopped():
                told = time.monotonic()
                todo.clear()
                for task in pending:
                    ray.cancel(task)  # raises KeyboardInterrupt in it
            if told is not None and time.monotonic() - told > GRACE:
                return
            while todo and len(pending) < window:
                index = todo.pop()
                pending[remote.remote(tasks[index])] = index
            if not pending:
                return
            finished, _ = ray.wait(
                list(pending), num_returns=1, timeout=None if stopped is None else 0.1
            )
            for task in finished:
                index = pending.pop(task)
                try:
                    done = Done(index, ray.get(task))
                except ray.exceptions.TaskCancelledError:  # it had nothing yet
                    continue
                except ray.exceptions.RayTaskError as error:  # the function raised
                    cause = error.cause
                    if told is not None and isinstance(cause, KeyboardInterrupt):
                        continue  # it had hardly begun
                    done = Done(index, error=cause if isinstance(cause, Exception) else error)
                except ray.exceptions.RayError as error:  # the worker or its machine is gone
                    done = Done(index, error=_died(attempts, type(error).__name__))
                yield done
    finally:
        if ours:
            ray.shutdown()


class Cluster:
    """The workers of a Ray cluster, for the parts of one search.

    address: of the cluster, or "local" for a new one of so many `workers` on this machine.
    """

    def __init__(self, address: str, workers: int = 1) -> None:
        self._ray, self._ours = _connected(address, max(1, workers))
        self.workers = max(1, int(self._ray.cluster_resources().get("CPU", 1)))
        self._remote = self._ray.remote(num_cpus=1, max_retries=ATTEMPTS - 1)(_with_copies)
        self._running: set[Any] = set()
        self._cancelled = False

    def submit(self, function: Callable[..., Any], *args: Any) -> Callable[[], Any]:
        """Begin a task on a worker; what is returned waits for its value.

        Arguments travel as copies. A task whose worker dies is done again; one whose workers die
        every time has the value None, like one that is cancelled.
        """
        task = self._remote.remote(function, args)
        self._running.add(task)
        if self._cancelled:
            self.cancel()
        return partial(self._value, task)

    def _value(self, task: Any) -> Any:
        try:
            return self._ray.get(task)
        except self._ray.exceptions.TaskCancelledError:
            return None
        except self._ray.exceptions.RayTaskError as error:  # the function raised
            raise error.cause if isinstance(error.cause, Exception) else error from None
        except self._ray.exceptions.RayError as error:
            if not self._cancelled:
                lost = _died(ATTEMPTS, type(error).__name__)
                log.warning("part of the search is lost: %s", lost)
            return None
        finally:
            self._running.discard(task)

    def cancel(self) -> None:
        """Have done with all tasks, those to come included."""
        self._cancelled = True
        for task in list(self._running):
            self._ray.cancel(task, force=True)

    def close(self) -> None:
        """Leave the cluster; one that was made for us ends."""
        self._running.clear()  # before Ray ends, which knows what these are
        if self._ours:
            self._ray.shutdown()


def _with_copies(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """On a worker: arrays from afar cannot be written to, and kernels are compiled for others."""
    return function(*deepcopy(args))

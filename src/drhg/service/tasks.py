"""What a worker process does: the messages between it and the service, and the work itself."""

from __future__ import annotations

import json
import math
import os
import queue
import signal
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

from drhg.errors import DrhgError
from drhg.problem import Instance, Solution
from drhg.service.limits import ServiceLimits

NICENESS = 5  # the process that answers requests comes first, then the one that reads them


class Told(Exception):
    """An error that is put into words already, perhaps by another process."""

    def __init__(self, problem: dict[str, Any]) -> None:
        super().__init__(problem)
        self.problem = problem


@dataclass(frozen=True)
class Task:
    """Work for a process: a kind of `KINDS`, and its arguments."""

    id: str
    kind: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class Stop:
    """End the task of this id and return the best so far."""

    id: str


@dataclass(frozen=True)
class Ready:
    """The kernels are loaded."""

    seconds: float
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Improved:
    """A better solution, as what changed since the last one."""

    id: str
    seconds: float
    iterations: int
    cost: int | float
    solution: Solution
    changes: str  # the edges added and removed, as JSON
    edges: int  # how many they are


@dataclass(frozen=True)
class Ended:
    """The end of a task: its value, or its error."""

    id: str
    value: Any = None
    error: Exception | None = None


@dataclass
class Desk:
    """What a running task may use: how it tells of improvements, and whether it should stop."""

    id: str
    send: Callable[[object], None]
    stopped: Callable[[], bool]
    last: Solution | None = field(default=None)


def solve(desk: Desk, instance: Instance, **options: Any) -> dict[str, Any]:
    """A solve that tells of every improvement."""
    from drhg.service.edges import changed_edges
    from drhg.session.result import TracePoint
    from drhg.session.solve import solve as solve_here

    def tell(point: TracePoint, solution: Solution) -> None:
        added, removed = changed_edges(instance, desk.last, solution)
        desk.last = solution
        changes = json.dumps({"added": added, "removed": removed}, separators=(",", ":"))
        edges = len(added) + len(removed)
        point_of = (point.seconds, point.iterations, point.cost)
        desk.send(Improved(desk.id, *point_of, solution, changes, edges))

    found = solve_here(instance, threads=1, on_improve=tell, should_stop=desk.stopped, **options)
    if not found.unplaced and desk.last != found.solution:
        tell(TracePoint(found.seconds, found.iterations, found.cost), found.solution)
    row = found.to_dict()
    kept = ("status", "seconds", "compile_seconds", "iterations", "unplaced", "warnings")
    return {key: row[key] for key in kept}


def read(desk: Desk, what: str, sent: Any, limits: ServiceLimits) -> Any:
    """What a request asks for, or the words for what is wrong with it."""
    from drhg.service import asking, problems

    try:
        return asking.READERS[what](sent, limits)
    except problems.Refused as error:
        raise Told(problems.problem_of(error)) from None


def film(desk: Desk, instance: Instance, **options: Any) -> bytes:
    """One step of destroy and repair, stage by stage."""
    from drhg.service.film import step_film

    return _json(step_film(instance, **options))


def explain(
    desk: Desk, instance: Instance, solution: Solution | None, region: int, top: int | None
) -> bytes:
    """Why a solution is as it is."""
    from drhg.plans.explain import explain as explain_here

    return _json(explain_here(instance, solution, region=region).to_dict(top))


def replan(
    desk: Desk, old: Solution, instance: Instance, old_instance: Instance | None, **options: Any
) -> bytes:
    """A plan changed only where its problem has."""
    from drhg.plans.replan import replan as replan_here

    return _json(replan_here(old, instance, old_instance=old_instance, **options).to_dict())


def _json(value: Any) -> bytes:
    return json.dumps(plain_numbers(value), allow_nan=False).encode()


def plain_numbers(value: Any) -> Any:
    """The same without infinities, which JSON does not know: they become null."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: plain_numbers(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain_numbers(one) for one in value]
    return value


KINDS: dict[str, Callable[..., Any]] = {
    "solve": solve,
    "read": read,
    "film": film,
    "explain": explain,
    "replan": replan,
}


def work(pipe: Connection, methods: tuple[str, ...], niceness: int) -> None:
    """The life of a worker process: load the kernels, then one task after the other."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the service, which tells us
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with suppress(OSError, AttributeError):
        os.nice(niceness)
    lock = threading.Lock()

    def send(message: object) -> None:
        with lock, suppress(OSError):  # the service is gone, and so are we in a moment
            pipe.send(message)

    todo: queue.SimpleQueue[Task] = queue.SimpleQueue()
    stopped: set[str] = set()
    threading.Thread(target=_listen, args=(pipe, todo, stopped), daemon=True).start()
    send(_warm(methods))
    while True:
        task = todo.get()
        desk = Desk(task.id, send, lambda id=task.id: id in stopped)  # type: ignore[misc]
        try:
            ended = Ended(task.id, KINDS[task.kind](desk, **task.arguments))
        except DrhgError as error:
            ended = Ended(task.id, error=error)
        except Told as error:
            ended = Ended(task.id, error=error)
        except Exception as error:  # of a type that may not survive the journey
            ended = Ended(task.id, error=RuntimeError(f"{type(error).__name__}: {error}"))
        stopped.discard(task.id)
        send(ended)


def _warm(methods: tuple[str, ...]) -> Ready:
    from drhg.kernels import warmup

    began = time.perf_counter()
    if not methods:  # only to read requests
        from drhg.service import asking  # noqa: F401

    parts = dict.fromkeys(part for name in methods for part in warmup.METHODS[name])
    failure = warmup.prepare(list(parts), limit=600.0)
    return Ready(time.perf_counter() - began, () if failure is None else (failure,))


def _listen(pipe: Connection, todo: queue.SimpleQueue[Task], stopped: set[str]) -> None:
    """Take orders; a service that is gone, killed perhaps, wants no answer any more."""
    try:
        while True:
            message = pipe.recv()
            if isinstance(message, Stop):
                stopped.add(message.id)
            else:
                todo.put(message)
    except (EOFError, OSError):
        os._exit(1)

"""A solve of the service: its state, its best, and the events that clients follow."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from drhg.files.json import instance_from_fields, to_json
from drhg.files.registry import kinds_for
from drhg.problem import Cost, Instance, Solution
from drhg.service.limits import ServiceLimits
from drhg.service.tasks import Improved

ENDED = ("finished", "stopped", "interrupted", "failed")


@dataclass(frozen=True)
class Order:
    """What a client asked for, checked."""

    instance: Instance
    options: Mapping[str, Any]  # of `drhg.solve`
    digest: str = ""  # of the request, to compare those with the same key
    key: str | None = None  # Idempotency-Key

    @property
    def seconds(self) -> float:
        return float(self.options["time_limit"])

    @cached_property
    def files(self) -> tuple[str, ...]:
        """The suffixes of files that its solutions can go to."""
        return kinds_for(self.instance)

    def to_json(self) -> str:
        options = {k: v for k, v in self.options.items() if not isinstance(v, Solution)}
        start = self.options.get("start")
        routes = [r.tolist() for r in start.routes] if isinstance(start, Solution) else None
        return json.dumps([json.loads(to_json(self.instance)), options, routes])

    @classmethod
    def from_json(cls, text: str, digest: str, key: str | None) -> Order:
        fields, options, routes = json.loads(text)
        if routes is not None:
            options["start"] = Solution(routes)
        return cls(instance_from_fields(fields), options, digest, key)


class Best(NamedTuple):
    cost: Cost
    seconds: float
    iterations: int
    solution: Solution


class Event(NamedTuple):
    id: int
    name: str
    data: str  # JSON, which takes a small part of the memory of what it says
    edges: int = 0  # how much it weighs


@dataclass(eq=False)
class Job:
    """A solve; changed only by the thread of the event loop."""

    order: Order
    limits: ServiceLimits
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    created: float = field(default_factory=time.time)
    state: str = "queued"
    ended: float | None = None
    best: Best | None = None
    result: dict[str, Any] | None = None
    problem: dict[str, Any] | None = None
    trace: list[tuple[float, Cost]] = field(default_factory=list)
    stopping: bool = False
    saved: bool = True  # whether the store has the present best
    events: deque[Event] = field(default_factory=deque)
    last_id: int = 0
    _edges: int = 0  # in `events`
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def over(self) -> bool:
        return self.state in ENDED

    def tell(self, name: str, data: dict[str, Any], changes: str = "{}", edges: int = 0) -> None:
        """Add an event, and forget the oldest if there are too many."""
        self.last_id += 1
        text = _json(data)
        if changes != "{}":
            text = f"{text[:-1]}, {changes[1:]}"
        self.events.append(Event(self.last_id, name, text, edges))
        self._edges += edges
        while len(self.events) > 1 and (
            len(self.events) > self.limits.log_events or self._edges > self.limits.log_edges
        ):
            self._edges -= self.events.popleft().edges
        self.wake()

    def wake(self) -> None:
        """Have whoever waits look again."""
        self._news.set()
        self._news = asyncio.Event()

    async def news(self) -> None:
        await self._news.wait()

    def begin(self) -> None:
        self.state = "running"
        self.tell("state", {"state": self.state})

    def improve(self, found: Improved) -> None:
        self.best = Best(found.cost, found.seconds, found.iterations, found.solution)
        self.saved = False
        self.trace.append((round(found.seconds, 4), found.cost))
        if len(self.trace) > self.limits.trace_points:  # every other one of the older half
            half = len(self.trace) // 2
            self.trace = self.trace[:half:2] + self.trace[half:]
        data = {
            "cost": found.cost, "seconds": round(found.seconds, 4),
            "iterations": found.iterations,
        }  # fmt: skip
        self.tell("improvement", data, found.changes, found.edges)

    def end(
        self, state: str, result: dict[str, Any] | None = None,
        problem: dict[str, Any] | None = None,
    ) -> None:  # fmt: skip
        self.state, self.result, self.problem = state, result, problem
        self.ended = time.time()

    def announce_end(self) -> None:
        """Tell the end; whoever comes later gets the whole solution instead of all changes."""
        data: dict[str, Any] = {"state": self.state, "result": self.result, "problem": self.problem}
        data["cost"] = None if self.best is None else self.best.cost
        self.tell("end", data)

    def forget_changes(self) -> None:
        while len(self.events) > 1:
            self.events.popleft()
        self._edges = 0

    def since(self, after: int) -> list[Event] | None:
        """The events after one, or None if some of them are forgotten or never were."""
        if after > self.last_id or (self.events and self.events[0].id > after + 1):
            return None
        return [event for event in self.events if event.id > after]

    def snapshot(self) -> Event:
        """All that the events so far have told, as one event."""
        data: dict[str, Any] = {"state": self.state, "trace": self.trace}
        data["best"] = self.shown_best()
        return Event(self.last_id, "snapshot", _json(data))

    def shown_best(self) -> dict[str, Any] | None:
        if self.best is None:
            return None
        cost, seconds, iterations, solution = self.best
        shown: dict[str, Any] = {
            "cost": cost, "seconds": round(seconds, 4), "iterations": iterations,
        }  # fmt: skip
        if self.order.instance.is_cvrp:
            if solution.vehicles is not None:
                shown["vehicles"] = list(solution.vehicles)
            return shown | {"routes": [route.tolist() for route in solution.routes]}
        return shown | {"tour": solution.tour.tolist()}

    def shown(self, ahead: int | None, files: Mapping[str, str]) -> dict[str, Any]:
        """What `GET /solves/{id}` answers."""
        instance = self.order.instance
        return {
            "id": self.id,
            "state": self.state,
            "instance": {"name": instance.name, "problem": instance.problem, "n": instance.n},
            "method": self.order.options["method"],
            "seed": self.order.options["seed"],
            "seconds": self.order.seconds,
            "created": self.created,
            "ahead": ahead,
            "best": self.shown_best(),
            "result": self.result,
            "problem": self.problem,
            "trace": self.trace,
            "files": dict(files) if self.best is not None else {},
        }


def _json(data: Mapping[str, Any]) -> str:
    return json.dumps(data, separators=(",", ":"), allow_nan=False)

"""`drhg mcp`: the solver as tools of a language model, by the Model Context Protocol over stdio.

Messages are JSON-RPC 2.0, one per line. Instances and solutions come as text or as JSON, as in the
requests of the service; nothing is read from a path.
"""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import IO, Any, TypeAlias

from pydantic import BaseModel, ValidationError

import drhg
from drhg.errors import DrhgError
from drhg.plans.explain import explain
from drhg.problem import Solution, check, cost
from drhg.service.limits import ServiceLimits
from drhg.service.models import CheckRequest, ExplainRequest, SolveRequest, StartedRequest
from drhg.service.reading import instance_from, solution_from
from drhg.session.result import Result, TracePoint
from drhg.session.solve import solve

VERSIONS = ("2025-06-18", "2025-03-26", "2024-11-05")  # of the protocol, the newest first
LONGEST_SOLVE = 30.0  # seconds that a model waits for; longer ones are started and asked about
LONGEST_START = 3600.0
MOST_STARTED = 8  # at a time
Answer: TypeAlias = dict[str, Any]
TOOLS: dict[str, type[BaseModel]] = {  # the methods of `Tools`, and what each is asked
    "check": CheckRequest, "solve": SolveRequest, "start": SolveRequest, "status": StartedRequest,
    "stop": StartedRequest, "explain": ExplainRequest,
}  # fmt: skip


@dataclass
class Started:
    """A solve that goes on in a thread."""

    stop: threading.Event = field(default_factory=threading.Event)
    best: tuple[TracePoint, Solution] | None = None
    result: Future[Result] = field(default_factory=Future)

    def shown(self) -> Answer:
        if self.result.done():
            return {"running": False, **self.result.result().to_dict()}
        if self.best is None:
            return {"running": True, "cost": None}
        point, solution = self.best
        routes = [route.tolist() for route in solution.routes]
        return {"running": True, "cost": point.cost, "seconds": point.seconds, "routes": routes}


class Tools:
    """What a model may ask for."""

    def __init__(self) -> None:
        self.limits = ServiceLimits()
        self.pool = ThreadPoolExecutor(MOST_STARTED)
        self.started: dict[str, Started] = {}

    def check(self, asked: CheckRequest, cancelled: threading.Event) -> Answer:
        """The cost of a solution, or everything that is wrong with it."""
        instance = instance_from(asked, self.limits)
        solution = solution_from(asked.solution, instance)
        found = check(instance, solution)
        return {"valid": not found, "cost": cost(instance, solution), "violations": found}

    def solve(self, asked: SolveRequest, cancelled: threading.Event) -> Answer:
        """Solve a TSP or CVRP within at most 30 seconds and return the checked solution."""
        return self._solve(asked, LONGEST_SOLVE, cancelled.is_set, None).to_dict()

    def start(self, asked: SolveRequest, cancelled: threading.Event) -> Answer:
        """Start a longer solve and return its id, for `status` and `stop`."""
        if sum(not one.result.done() for one in self.started.values()) >= MOST_STARTED:
            raise DrhgError(f"{MOST_STARTED} solves run already: stop one of them")
        instance_from(asked, self.limits)  # refused now rather than later
        one, id = Started(), uuid.uuid4().hex[:8]

        def tell(point: TracePoint, solution: Solution) -> None:
            one.best = point, solution

        one.result = self.pool.submit(self._solve, asked, LONGEST_START, one.stop.is_set, tell)
        self.started[id] = one
        return {"id": id}

    def status(self, asked: StartedRequest, cancelled: threading.Event) -> Answer:
        """The best that a started solve has found so far."""
        return self._started(asked).shown()

    def stop(self, asked: StartedRequest, cancelled: threading.Event) -> Answer:
        """Stop a started solve and return its best solution."""
        one = self._started(asked)
        one.stop.set()
        one.result.exception()  # waits
        return one.shown()

    def explain(self, asked: ExplainRequest, cancelled: threading.Event) -> Answer:
        """Why a solution is as it is: what each stop costs, and what else there is."""
        instance, given = instance_from(asked, self.limits), asked.solution
        solution = None if given is None else solution_from(given, instance)
        return explain(instance, solution).to_dict(top=20)

    def _started(self, asked: StartedRequest) -> Started:
        if asked.id not in self.started:
            raise DrhgError(f"there is no solve {asked.id!r}; known: {', '.join(self.started)}")
        return self.started[asked.id]

    def _solve(self, asked: SolveRequest, most: float, stopped: Any, tell: Any) -> Result:
        instance, start = instance_from(asked, self.limits), asked.start
        return solve(
            instance, time_limit=min(asked.seconds or self.limits.default_seconds, most),
            max_iters=asked.iterations, no_improve=asked.no_improve, target=asked.target,
            seed=asked.seed, method=asked.method, on_improve=tell, should_stop=stopped,
            start="auto" if start is None else solution_from(start, instance, "start"),
        )  # fmt: skip


class McpServer:
    """Answers what comes in line by line; each call has a thread, so that none waits."""

    def __init__(self, tools: Tools, out: IO[str]) -> None:
        self.tools, self._out, self._lock = tools, out, threading.Lock()
        self._pool = ThreadPoolExecutor(8)
        self._running: dict[Any, threading.Event] = {}

    def run(self, lines: IO[str]) -> None:
        for line in lines:
            try:
                message = json.loads(line)
            except (ValueError, RecursionError):
                self._fail(None, -32700, "not JSON")
                continue
            if isinstance(message, dict) and isinstance(message.get("method"), str):
                self._take(message, message["method"], message.get("params") or {})
            else:
                self._fail(None, -32600, "not a request")
        for one in (*self._running.values(), *(s.stop for s in self.tools.started.values())):
            one.set()

    def _take(self, message: Answer, method: str, params: Any) -> None:
        if method == "notifications/cancelled" and isinstance(params, dict):
            self._running.get(str(params.get("requestId")), threading.Event()).set()
        if "id" not in message:
            return
        known: dict[str, Callable[[Answer], Answer]] = {"initialize": self._initialize}
        known |= {"ping": lambda _: {}, "tools/list": self._list}
        if method == "tools/call":
            cancelled = self._running[str(message["id"])] = threading.Event()
            self._pool.submit(self._call, message["id"], params, cancelled)
        elif method in known and isinstance(params, dict):
            self._send({"id": message["id"], "result": known[method](params)})
        else:
            self._fail(message["id"], -32601, f"unknown method {method}")

    def _initialize(self, params: Answer) -> Answer:
        asked = params.get("protocolVersion")
        version = asked if asked in VERSIONS else VERSIONS[0]
        about = {"name": "drhg", "version": drhg.__version__}
        return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}

    def _list(self, params: Answer) -> Answer:
        return {"tools": [
            {"name": name, "description": getattr(Tools, name).__doc__,
             "inputSchema": model.model_json_schema()} for name, model in TOOLS.items()
        ]}  # fmt: skip

    def _call(self, id: Any, params: Any, cancelled: threading.Event) -> None:
        try:
            asked = TOOLS[params["name"]].model_validate(params.get("arguments") or {})
            found = getattr(self.tools, params["name"])(asked, cancelled)
            result: Answer = {"structuredContent": found, "isError": False}
            text = json.dumps(found)
        except (KeyError, TypeError):
            self._fail(id, -32602, f"known tools: {', '.join(TOOLS)}")
            return
        except Exception as error:
            result, text = {"isError": True}, _told(error)
        finally:
            self._running.pop(str(id), None)
        self._send({"id": id, "result": {"content": [{"type": "text", "text": text}], **result}})

    def _fail(self, id: Any, code: int, message: str) -> None:
        self._send({"id": id, "error": {"code": code, "message": message}})

    def _send(self, message: Answer) -> None:
        with self._lock:
            print(json.dumps({"jsonrpc": "2.0", **message}), file=self._out, flush=True)


def _told(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()[:5])
    return str(error) if isinstance(error, DrhgError) else f"{type(error).__name__}: {error}"

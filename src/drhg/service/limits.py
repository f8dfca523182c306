"""What a service allows; `GET /limits` shows it."""

from __future__ import annotations

from dataclasses import dataclass

from drhg.errors import DrhgError

METHODS = ("auto", "local", "neural", "paper", "insertion", "hybrid")
"""The methods that may be asked for by name; `library` runs foreign code and is left out."""


@dataclass(frozen=True)
class ServiceLimits:
    """What a service allows.

    nodes: of an instance.
    question_nodes: of an instance that a step is taken on, or that is explained.
    seconds: of a solve; one that names no limit takes `default_seconds`.
    body: bytes of a request.
    body_seconds: how long a client may take to send a request, its headers and its body each.
    queue: solves that wait for a worker; more are refused with 429.
    keep_seconds: how long a result is kept after its end.
    keep_results: ended solves that are kept at a time; the oldest go first.
    streams: clients that follow events at a time.
    log_events, log_edges: how far back a client that reconnects is told every change, per solve;
        one that was away for longer gets the whole solution.
    trace_points: points of the curve of costs that are kept per solve.
    save_seconds: how often the best of a running solve goes to the store.

    >>> ServiceLimits(nodes=500).nodes
    500
    """

    nodes: int = 100_000
    question_nodes: int = 10_000
    seconds: float = 300.0
    default_seconds: float = 10.0
    body: int = 8_000_000
    body_seconds: float = 20.0
    queue: int = 32
    keep_seconds: float = 3600.0
    keep_results: int = 500
    streams: int = 256
    log_events: int = 4000
    log_edges: int = 400_000
    trace_points: int = 2000
    save_seconds: float = 1.0

    def __post_init__(self) -> None:
        names = (
            "nodes", "question_nodes", "seconds", "body", "body_seconds", "keep_seconds",
            "keep_results", "streams", "log_events", "log_edges", "trace_points",
        )  # fmt: skip
        for name in names:
            if not getattr(self, name) > 0:
                raise DrhgError(f"{name} must be above 0, not {getattr(self, name)}")
        if self.queue < 0:
            raise DrhgError(f"queue must be at least 0, not {self.queue}")

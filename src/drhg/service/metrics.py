"""`GET /metrics`: the numbers of a service as Prometheus reads them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from drhg.service.desk import Desk
from drhg.service.guard import Counts


def metrics_text(desk: Desk, counts: Counts, streams: int) -> str:
    return "\n".join(_lines(desk, counts, streams)) + "\n"


def _lines(desk: Desk, counts: Counts, streams: int) -> Iterator[str]:
    yield from _head("drhg_requests_total", "counter", "Requests, by method and status")
    for (method, status), count in sorted(counts.requests.items()):
        name = method if method in ("GET", "POST", "DELETE", "HEAD", "OPTIONS") else "other"
        yield f'drhg_requests_total{{method="{name}",status="{status}"}} {count}'
    yield from _one("drhg_request_seconds_total", "counter", "Until answers began", counts.seconds)
    yield from _head("drhg_solves_total", "counter", "Solves that ended, by state")
    for state, count in sorted(desk.ended.items()):
        yield f'drhg_solves_total{{state="{state}"}} {count}'
    gauges = (
        ("drhg_solves_running", "Solves that run", desk.running),
        ("drhg_queue_length", "Solves that wait", len(desk.waiting)),
        ("drhg_solves_kept", "Solves in memory", len(desk.jobs)),
        ("drhg_workers", "Worker processes", len(desk.workers)),
        ("drhg_workers_ready", "Worker processes with all kernels loaded", desk.ready),
        ("drhg_event_streams", "Clients that follow events", streams),
    )
    for name, what, value in gauges:
        yield from _one(name, "gauge", what, value)
    yield from _one("drhg_rejected_total", "counter", "Refused for a full queue", desk.rejected)
    yield from _one("drhg_search_seconds_total", "counter", "Spent searching", desk.searched)
    with suppress(OSError, ValueError):  # only Linux says so
        resident = int(Path("/proc/self/statm").read_text().split()[1]) * 4096
        yield from _one("process_resident_memory_bytes", "gauge", "Of this process", resident)


def _one(name: str, kind: str, what: str, value: float) -> Iterator[str]:
    yield from _head(name, kind, what)
    yield f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"


def _head(name: str, kind: str, what: str) -> Iterator[str]:
    yield f"# HELP {name} {what}."
    yield f"# TYPE {name} {kind}"

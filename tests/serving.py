"""A service of its own for tests: `drhg serve` as a process, and a client of it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

import drhg

LONGEST_START = 300.0  # seconds, if kernels must be compiled first


class Service:
    """A running `drhg serve`."""

    def __init__(self, *options: str | Path) -> None:
        command = [sys.executable, "-m", "drhg", "serve", *map(str, options)]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.lines: list[str] = []
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line)
            if found := re.search(r"listening on (http\S+)/", line):
                self.url = found[1]
                break
        else:
            raise AssertionError(f"it did not start: {self.lines}")
        threading.Thread(target=self._drain, daemon=True).start()
        self.client = httpx.Client(base_url=self.url, timeout=60, trust_env=False)

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def _drain(self) -> None:
        assert self.process.stderr is not None
        self.lines += self.process.stderr

    def wait_until_ready(self) -> None:
        until = time.monotonic() + LONGEST_START
        while time.monotonic() < until:
            try:
                health = self.client.get("/readyz").json()
                if health["ready"] == health["workers"]:
                    return
            except httpx.TransportError:
                assert self.process.poll() is None, self.lines
            time.sleep(0.1)
        raise AssertionError(f"not ready: {self.lines}")

    def solve(self, instance: drhg.Instance | str, **more: Any) -> dict[str, Any]:
        """What POST /solves answers."""
        answer = self.client.post("/solves", json={"instance": sent(instance), **more})
        assert answer.status_code == 202, answer.text
        found: dict[str, Any] = answer.json()
        assert answer.headers["location"] == f"/solves/{found['id']}"
        return found

    def wait(self, id: str, seconds: float = 60.0) -> dict[str, Any]:
        """A solve after its end."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            found: dict[str, Any] = self.client.get(f"/solves/{id}").json()
            if found["state"] not in ("queued", "running"):
                return found
            time.sleep(0.05)
        raise AssertionError(f"solve {id} did not end")

    def events(self, id: str, after: int | None = None) -> Iterator[tuple[int, str, Any]]:
        """The events of a solve: id, name, data."""
        headers = {} if after is None else {"Last-Event-ID": str(after)}
        with self.client.stream("GET", f"/solves/{id}/events", headers=headers) as answer:
            assert answer.status_code == 200
            event: dict[str, str] = {}
            for line in answer.iter_lines():
                name, _, value = line.partition(": ")
                if line:
                    event[name] = value
                elif "data" in event:
                    yield int(event["id"]), event["event"], json.loads(event["data"])
                    event = {}

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(10)

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        self.client.close()
        return self.process.wait(20)


def sent(instance: drhg.Instance | str) -> Any:
    """An instance as requests have it."""
    if isinstance(instance, str):
        return instance
    from drhg.files import to_json

    return json.loads(to_json(instance))


@contextmanager
def service(*options: str | Path, ready: bool = True) -> Iterator[Service]:
    running = Service("-p", "0", *options)
    try:
        if ready:
            running.wait_until_ready()
        yield running
    finally:
        if running.process.poll() is None:
            running.kill()
        running.client.close()


def resident(pid: int) -> int:
    """Bytes of memory that a process has."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

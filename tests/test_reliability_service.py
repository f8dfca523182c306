"""The service under load, and under requests that nobody would send on purpose."""

from __future__ import annotations

import itertools
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
import pytest
from soak import SOAK, cases

import drhg

pytest.importorskip("fastapi")
httpx = pytest.importorskip("httpx")
schemathesis = pytest.importorskip("schemathesis")

from hypothesis import HealthCheck, given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from serving import Service, resident, sent, service  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.compiled]
CLIENTS = 32
REQUESTS = cases(64, 1000)  # at least
SECONDS = cases(0.0, 120.0)  # at least
QUICK = cases(5.0, 0.05)  # seconds for 99 of 100 rejections; the short form may run beside others
GROWTH = 0.05  # of the memory
KEPT = 20.0  # seconds that results are kept
LONGEST = 60.0  # seconds that a load may take beyond that
EXAMPLES = cases(6, 440)  # at most, per operation, of which there are 16: 5,000 in all
MODES = tuple(schemathesis.GenerationMode)


@pytest.fixture(scope="module")
def running() -> Iterator[Service]:
    options = ("-w", "2", "--queue", "8", "--keep", str(KEPT), "--max-seconds", "0.3")
    with service(*options) as found:
        yield found


@dataclass
class Tally:
    """What a load of requests was answered."""

    statuses: Counter[int] = field(default_factory=Counter)
    rejections: list[float] = field(default_factory=list)  # seconds
    lost: list[str] = field(default_factory=list)
    ended: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, answer: Any, seconds: float) -> None:
        with self.lock:
            self.statuses[answer.status_code] += 1
            if answer.status_code == 429:
                self.rejections.append(seconds)


def make_instances() -> list[Any]:
    sizes = (20, 100, 400, 2000)
    made: list[Any] = [sent(drhg.uniform_tsp(n, seed=n)) for n in sizes]
    made += [sent(drhg.uniform_cvrp(n, seed=n)) for n in sizes[:3]]
    return [*made, "x,y\n1,2\n3,oops\n"]


def one_client(
    running: Service, instances: list[Any], seed: int, count: int, until: float, tally: Tally
) -> None:
    """One request after the other without a pause: so many, and more until the time is over."""
    random = Random(seed)
    with httpx.Client(base_url=running.url, timeout=60, trust_env=False) as client:

        def ask(method: str, path: str, **more: Any) -> Any:
            began = time.perf_counter()
            answer = client.request(method, path, **more)
            tally.add(answer, time.perf_counter() - began)
            return answer

        for i in itertools.count():
            if i >= count and time.monotonic() >= until:
                break
            instance = random.choice(instances)
            kind = random.choice(("solve", "solve", "solve", "check", "describe", "step", "look"))
            if kind == "solve":
                body = {"instance": instance, "seconds": random.choice((0, 0.05, 0.3))}
                answer = ask("POST", "/solves", json=body)
                if answer.status_code == 202:
                    follow(ask, answer.json()["id"], random, tally)
            elif kind == "check":
                ask("POST", "/check", json={"instance": instance, "solution": {"tour": [0, 1]}})
            elif kind == "describe":
                ask("POST", "/describe", json={"instance": instance})
            elif kind == "step":
                ask("POST", "/steps", json={"instance": instance, "seed": seed})
            else:
                ask("GET", random.choice(("/limits", "/metrics", "/healthz", "/", "/solves/x")))


def follow(ask: Any, id: str, random: Random, tally: Tally) -> None:
    """Wait for the end of a solve that was accepted, or stop it."""
    if random.random() < 0.2:
        ask("DELETE", f"/solves/{id}")
    for _ in range(400):
        answer = ask("GET", f"/solves/{id}")
        if answer.status_code != 200:
            tally.lost.append(id)
            return
        state = answer.json()["state"]
        if state not in ("queued", "running"):
            tally.ended[state] += 1
            return
        time.sleep(0.1)
    tally.lost.append(id)


def load(running: Service, seed: int, seconds: float = 0.0) -> Tally:
    tally, instances = Tally(), make_instances()
    each, until = -(-REQUESTS // CLIENTS), time.monotonic() + seconds
    with ThreadPoolExecutor(CLIENTS) as pool:
        clients = [
            pool.submit(one_client, running, instances, 100 * seed + i, each, until, tally)
            for i in range(CLIENTS)
        ]
        for client in clients:
            client.result()
    return tally


def memory_at_rest(running: Service) -> int:
    """Of the process that answers, after it has forgotten the solves."""
    time.sleep(KEPT + 5)
    return resident(running.process.pid)


def test_many_requests_at_once(running: Service, capsys: pytest.CaptureFixture[str]) -> None:
    before = 0
    if SOAK:
        load(running, 1, SECONDS / 4)  # what is allocated once
        before = memory_at_rest(running)
    began = time.monotonic()
    tally = load(running, 2, SECONDS)
    seconds = time.monotonic() - began
    growth = memory_at_rest(running) / before - 1 if before else 0.0
    slowest = float(np.quantile(tally.rejections, 0.99)) if tally.rejections else 0.0
    with capsys.disabled():
        print(
            f"\n{sum(tally.statuses.values())} requests of {CLIENTS} clients in {seconds:.0f} s: "
            f"{dict(sorted(tally.statuses.items()))}, solves {dict(tally.ended)}, "
            f"{len(tally.lost)} lost; p99 of {len(tally.rejections)} rejections "
            f"{1000 * slowest:.0f} ms; memory {100 * growth:+.1f} %"
        )
    assert max(tally.statuses) < 500
    assert tally.lost == []
    assert set(tally.ended) <= {"finished", "stopped"}
    assert sum(tally.ended.values()) == tally.statuses[202] > 0
    assert slowest < QUICK
    assert growth < GROWTH
    assert seconds < SECONDS + LONGEST


def test_clients_that_do_not_read(running: Service) -> None:
    """They follow events, or ask for a large page, and never take a byte."""
    id = running.wait(running.solve(drhg.uniform_tsp(2000, seed=1), seconds=0.1)["id"])["id"]
    lazy = []
    for i in range(40):
        one = socket.create_connection(("127.0.0.1", running.port))
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        path = f"/solves/{id}/events" if i % 2 else f"/solves/{id}/instance"
        one.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        lazy.append(one)
    seconds = []
    for _ in range(20):
        began = time.perf_counter()
        assert running.client.get("/limits").status_code == 200
        seconds.append(time.perf_counter() - began)
    for one in lazy:
        one.close()
    assert sorted(seconds)[10] < 0.5


@pytest.mark.soak
def test_who_says_nothing_is_let_go(running: Service) -> None:
    silent = [socket.create_connection(("127.0.0.1", running.port), 40) for _ in range(2)]
    silent[1].sendall(b"GET /limits HTTP/1.1\r\nHost: loc")
    for one in silent:
        assert one.recv(1000) == b""
    half = socket.create_connection(("127.0.0.1", running.port), 40)
    half.sendall(b"POST /check HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{")
    assert b" 408 " in half.recv(1000)


def test_whatever_is_sent_is_answered(running: Service) -> None:
    """Requests that follow the description, and many that do not."""
    schema = schemathesis.openapi.from_url(running.url + "/openapi.json")
    statuses: Counter[int] = Counter()
    for found in schema.get_all_operations():
        operation = found.ok()

        @given(case=st.one_of(*(operation.as_strategy(generation_mode=mode) for mode in MODES)))
        @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
        def ask(case: Any) -> None:
            answer = case.call(timeout=60)
            statuses[answer.status_code] += 1
            assert answer.status_code < 500, answer.text
            if answer.status_code >= 400 and case.method != "HEAD":
                assert answer.headers["content-type"] == ["application/problem+json"]
                assert answer.json()["status"] == answer.status_code

        ask()
    print(f"\n{sum(statuses.values())} cases: {dict(sorted(statuses.items()))}")
    assert statuses[200] > 0
    assert statuses[422] > 0

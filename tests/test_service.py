"""The service: what is answered, in which order, and what is refused."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from serving import Service, sent, service
from soak import cases, upto

import drhg
from drhg.files import to_json
from drhg.service.edges import changed_edges
from drhg.service.limits import ServiceLimits

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")
pytest.importorskip("httpx")
pytestmark = [pytest.mark.slow, pytest.mark.compiled]

TSP = drhg.uniform_tsp(200, seed=4)
CVRP = drhg.uniform_cvrp(40, seed=4)
STOPS = "name,x,y,demand\ndepot,0,0,0\nmill,2,3,4\nford,5,1,3\ninn,1,6,5\n"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    store = tmp_path_factory.mktemp("service") / "solves.db"
    with service("-w", "1", "--queue", "2", "--store", store, "--max-nodes", "2000") as found:
        yield found


def solution_of(best: dict[str, Any]) -> drhg.Solution:
    return drhg.Solution(best["routes"] if best["tour"] is None else [best["tour"]])


# --- solves ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("instance", [TSP, CVRP], ids=["tsp", "cvrp"])
@pytest.mark.parametrize("method", ["auto", "local", "neural"])
def test_a_solve_from_its_order_to_its_result(
    running: Service, instance: drhg.Instance, method: str
) -> None:
    begun = running.solve(instance, seconds=0.3, method=method, seed=3)
    found = running.wait(begun["id"])
    assert found["state"] == "finished"
    assert found["result"]["status"] == "time"
    best = solution_of(found["best"])
    assert drhg.check(instance, best) == []
    assert found["best"]["cost"] == pytest.approx(drhg.cost(instance, best))
    assert found["trace"][-1][1] == found["best"]["cost"]
    costs = [cost for _, cost in found["trace"]]
    assert all(b <= a * (1 + 1e-9) for a, b in pairwise(costs))  # of ties the last one is kept


KINDS = {
    "path": drhg.tsp([[i, i * i % 17] for i in range(12)], returns=False),
    "atsp": drhg.tsp(matrix=[[abs(3 * i - j) for j in range(9)] for i in range(9)]),
    "open": drhg.vrp(
        xy=[[i, i * i % 17] for i in range(12)], demand=[0, *[1] * 11], capacity=4, returns=False
    ),
    "vrptw": drhg.vrp(
        xy=[[i, i * i % 17] for i in range(12)], demand=[0, *[1] * 11], capacity=4,
        windows=[[0, 200], *([5 * i, np.inf if i % 3 else 5 * i + 60] for i in range(1, 12))],
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_problem(running: Service, kind: str) -> None:
    instance = KINDS[kind]
    drawn = running.client.post("/describe", json={"instance": sent(instance)}).json()
    assert (drawn["problem"], drawn["methods"]) == (instance.problem, ["auto"])
    assert (drawn["windows"] is None) == (instance.windows is None)
    found = running.wait(running.solve(instance, iterations=50)["id"])
    assert found["instance"]["problem"] == instance.problem
    best = solution_of(found["best"])
    assert drhg.check(instance, best) == []
    assert all(running.client.get(file).status_code == 200 for file in found["files"].values())
    rows = running.client.get(f"/solves/{found['id']}/routes").json()
    if instance.windows is not None:
        walks = drhg.schedule(instance, best)
        assert [row["duration"] for row in rows] == [walk.duration for walk in walks]
        assert [row["arrivals"] for row in rows] == [walk.arrival[1:-1].tolist() for walk in walks]
    refused = running.client.post("/solves", json={"instance": sent(instance), "method": "local"})
    assert refused.status_code == 422
    assert "does not know" in refused.json()["detail"]


def test_the_same_result_as_in_python(running: Service) -> None:
    found = running.wait(running.solve(TSP, iterations=200, seed=7, seconds=60)["id"])
    here = drhg.solve(TSP, max_iters=200, seed=7, threads=1)
    assert solution_of(found["best"]) == here.solution


def test_the_changes_add_up_to_the_solution(running: Service) -> None:
    for instance in (TSP, CVRP):
        id = running.solve(instance, seconds=0.5, method="local")["id"]
        edges: Counter[tuple[int, int]] = Counter()
        costs, names, ids = [], [], []
        for number, name, data in running.events(id):
            names.append(name)
            ids.append(number)
            if name == "improvement":
                edges.update(map(tuple, data["added"]))
                edges.subtract(map(tuple, data["removed"]))
                assert min(edges.values()) >= 0
                costs.append(data["cost"])
        assert names[-1] == "end"
        assert ids == list(range(1, len(ids) + 1))
        found = running.wait(id)
        best = solution_of(found["best"])
        added, _ = changed_edges(instance, None, best)
        assert +edges == Counter(map(tuple, added))
        assert costs[-1] == found["best"]["cost"]
        assert len(costs) > 1


def test_whoever_was_away_is_told_what_was_missed(running: Service) -> None:
    id = running.solve(TSP, seconds=0.4, method="local")["id"]
    everything = list(running.events(id))
    middle = everything[len(everything) // 2][0]
    assert list(running.events(id, middle)) == everything[-(len(everything) - middle) :]
    strange = [name for _, name, _ in running.events(id, 10**9)]
    assert strange == ["snapshot", "end"]
    assert [name for _, name, _ in running.events(id, everything[-1][0])] == ["end"]


def test_delete_stops_and_returns_the_best(running: Service) -> None:
    id = running.solve(TSP, seconds=60)["id"]
    for _, name, _ in running.events(id):
        if name == "improvement":
            break
    began = time.monotonic()
    found = running.client.delete(f"/solves/{id}").json()
    assert time.monotonic() - began < 5
    assert found["state"] == "stopped"
    assert drhg.check(TSP, solution_of(found["best"])) == []
    assert running.client.delete(f"/solves/{id}").json()["state"] == "stopped"


def test_the_queue_has_an_end(running: Service) -> None:
    ids = [running.solve(TSP, seconds=60)["id"] for _ in range(3)]  # one runs, two wait
    body = {"instance": sent(TSP), "seconds": 60}
    refused = running.client.post("/solves", json=body)
    assert refused.status_code == 429
    assert int(refused.headers["retry-after"]) >= 1
    assert refused.json()["title"] == "The queue is full"
    states = [running.client.get(f"/solves/{id}").json() for id in ids]
    assert [state["ahead"] for state in states] == [None, 0, 1]
    stopped = [running.client.delete(f"/solves/{id}").json() for id in reversed(ids)]
    assert [one["state"] for one in stopped] == ["stopped"] * 3
    assert [one["best"] is None for one in stopped] == [True, True, False]


def test_a_key_gives_the_same_solve(running: Service) -> None:
    body = {"instance": sent(CVRP), "seconds": 0.1}
    answers = [
        running.client.post("/solves", json=body, headers={"Idempotency-Key": "a key"})
        for _ in range(2)
    ]
    assert [answer.status_code for answer in answers] == [202, 202]
    assert answers[0].json()["id"] == answers[1].json()["id"]
    assert answers[1].headers["idempotent-replayed"] == "true"
    other = running.client.post(
        "/solves", json=body | {"seed": 1}, headers={"Idempotency-Key": "a key"}
    )
    assert other.status_code == 422
    assert "Idempotency-Key" in other.json()["title"]


def test_bare_text_with_parameters(running: Service) -> None:
    answer = running.client.post(
        "/solves", params={"seconds": "0.1", "capacity": "8"}, content=STOPS,
        headers={"Content-Type": "text/csv"},
    )  # fmt: skip
    found = running.wait(answer.json()["id"])
    assert found["instance"] == {"name": "instance", "problem": "cvrp", "n": 4}
    assert sorted(node for route in found["best"]["routes"] for node in route) == [1, 2, 3]


def test_a_start_is_gone_on_from(running: Service) -> None:
    start = drhg.solve(TSP, max_iters=300, threads=1)
    asked = {"start": {"tour": start.solution.tour.tolist()}, "iterations": 0}
    found = running.wait(running.solve(TSP, **asked)["id"])
    assert found["best"]["cost"] == start.cost


def test_every_download(running: Service) -> None:
    found = running.wait(running.solve(CVRP, seconds=0.1)["id"])
    assert set(found["files"]) == {".sol", ".json", ".csv", ".html"}
    lines = running.client.get(f"/solves/{found['id']}/files/solution.geojson")
    assert lines.status_code == 422  # there are no degrees
    for suffix, address in found["files"].items():
        answer = running.client.get(address)
        assert answer.status_code == 200
        assert answer.headers["content-disposition"].endswith(f'{suffix}"')
    routes = running.client.get(found["files"][".sol"]).text
    verdict = running.client.post("/check", json={"instance": sent(CVRP), "solution": routes})
    assert verdict.json() == {"valid": True, "cost": found["best"]["cost"], "violations": []}
    table = running.client.get(found["files"][".csv"]).text
    again = running.client.post("/check", json={"instance": sent(CVRP), "solution": table})
    assert again.json()["valid"]


# --- questions ------------------------------------------------------------------------------------


def test_check_names_what_is_wrong(running: Service) -> None:
    body = {"instance": sent(drhg.tsp([[0, 0], [0, 1], [1, 1]])), "solution": {"tour": [0, 1]}}
    verdict = running.client.post("/check", json=body).json()
    assert verdict["valid"] is False
    assert verdict["violations"] == ["node 2 (counted from 0) is not visited"]


def test_describe(running: Service) -> None:
    found = running.client.post("/describe", json={"instance": STOPS, "table": {"capacity": 8}})
    drawing = found.json()
    assert drawing["names"] == ["depot", "mill", "ford", "inn"]
    assert (drawing["x"][1], drawing["y"][1]) == (2, 3)
    assert (drawing["depot"], drawing["capacity"]) == (0, 8)


@pytest.mark.parametrize("repair", ["local", "neural", "insertion"])
@pytest.mark.parametrize("instance", [TSP, CVRP], ids=["tsp", "cvrp"])
def test_a_step_is_a_step(running: Service, instance: drhg.Instance, repair: str) -> None:
    body = {"instance": sent(instance), "repair": repair, "k": 10, "candidates": 4, "seed": 2}
    answer = running.client.post("/steps", json=body)
    assert answer.status_code == 200, answer.text
    film = answer.json()
    before, after = (drhg.Solution(film[stage]["routes"]) for stage in ("before", "after"))
    assert drhg.check(instance, before) == drhg.check(instance, after) == []
    assert film["change"] == pytest.approx(drhg.cost(instance, after) - drhg.cost(instance, before))
    assert film["accepted"] == (film["change"] < -1e-9)
    added, removed = changed_edges(instance, before, after)
    assert (film["added"], film["removed"]) == (added, removed)
    cut = {tuple(sorted(edge)) for edge in film["cut"]}
    assert {tuple(edge) for edge in removed} <= cut
    inside = {node for piece in film["pieces"] for node in piece}
    assert inside.isdisjoint(film["isolated"])


def test_explain(running: Service) -> None:
    answer = running.client.post("/explain", json={"instance": sent(CVRP), "top": 3})
    assert answer.status_code == 200
    solution = running.wait(running.solve(CVRP, seconds=0.2)["id"])["best"]
    asked = {"instance": sent(CVRP), "solution": {"routes": solution["routes"]}, "region": 4}
    found = running.client.post("/explain", json=asked).json()
    assert found["cost"] == pytest.approx(solution["cost"])
    assert sorted(stop["node"] for stop in found["stops"]) == list(range(1, 41))
    assert found["certificate"]["size"] == 4


def test_replan(running: Service) -> None:
    old = running.wait(running.solve(CVRP, seconds=0.2)["id"])["best"]["routes"]
    fields = sent(CVRP)
    fields["xy"].append([x + 1 for x in fields["xy"][5]])
    fields["demand"].append(2)
    asked = {"instance": fields, "old": {"routes": old}, "old_instance": sent(CVRP)}
    answer = running.client.post("/replan", json=asked)
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert found["added"] == [41]
    assert all(old[vehicle - 1] in found["routes"] for vehicle in found["untouched_routes"])
    assert sorted(node for route in found["routes"] for node in route) == list(range(1, 42))
    wrong = running.client.post("/replan", json=asked | {"old": {"routes": [[99]]}})
    assert wrong.status_code == 422


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "status", "word"),
    [
        ("{", 400, "JSON"),
        ('{"instance": 7}', 422, "instance"),
        ('{"instance": "what is this"}', 422, "instance"),
        ('{"instance": {"format": "drhg-instance"}}', 422, "coordinates"),
        ('{"instance": "x,y\\n1,2\\n3,oops"}', 422, "instance:3: column 'y'"),
        ('{"instance": "x,y\\n1,2\\n3,4", "method": "library"}', 422, "method"),
        ('{"instance": "x,y\\n1,2\\n3,4", "seconds": 1e9}', 422, "at most 300"),
        ('{"instance": "x,y\\n1,2\\n3,4", "settings": {"repair.model": "/etc"}}', 422, "set"),
        ('{"instance": "x,y\\n1,2\\n3,4", "start": {"tour": [0, 0]}}', 422, "start"),
        ('{"instance": "x,y\\n1,2\\n3,4", "seed": NaN}', 422, "seed"),
    ],
)  # fmt: skip
def test_bad_requests_are_explained(running: Service, body: str, status: int, word: str) -> None:
    answer = running.client.post(
        "/solves", content=body, headers={"Content-Type": "application/json"}
    )
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["status"] == status
    assert word in problem["detail"]


def test_what_is_not_there(running: Service) -> None:
    for address in ("/solves/none", "/solves/none/events", "/nothing", "/page/../app.py"):
        answer = running.client.get(address)
        assert answer.status_code == 404
        assert answer.headers["content-type"] == "application/problem+json"


def test_too_many_nodes(running: Service) -> None:
    points = "x,y\n" + "".join(f"{i},{i * i % 7919}\n" for i in range(2001))
    answer = running.client.post("/solves", json={"instance": points})
    assert answer.status_code == 422
    assert "2,001 nodes" in answer.json()["detail"]


def test_ten_megabytes_are_refused_at_once(running: Service) -> None:
    body, seconds = b"x" * 10_000_000, []
    for _ in range(5):
        began = time.perf_counter()
        answer = running.client.post("/solves", content=body)
        seconds.append(time.perf_counter() - began)
        assert answer.status_code == 413
    print(f"\n10 MB refused within {1000 * min(seconds):.0f} ms")
    assert min(seconds) < cases(0.25, 0.05)

    def pieces() -> Iterator[bytes]:
        for _ in range(10):
            yield body[:1_000_000]

    assert running.client.post("/solves", content=pieces()).status_code == 413


def test_foreign_pages_and_names_are_refused(running: Service) -> None:
    foreign = {"Origin": "https://example.org"}
    assert running.client.post("/check", json={}, headers=foreign).status_code == 403
    assert running.client.get("/limits", headers={"Host": "example.org"}).status_code == 421
    own = {"Origin": running.url}
    assert running.client.get("/limits", headers=own).status_code == 200


def test_half_open_clients_do_not_block_others(running: Service) -> None:
    half = [socket.create_connection(("127.0.0.1", running.port)) for _ in range(50)]
    for i, one in enumerate(half):
        one.sendall(
            b"POST /solves HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"
            if i % 2
            else b"GET /limi"
        )
    began = time.perf_counter()
    assert running.client.get("/limits").status_code == 200
    assert time.perf_counter() - began < 1
    for one in half:
        one.close()


# --- the service itself ---------------------------------------------------------------------------


def test_metrics_and_limits(running: Service) -> None:
    limits = running.client.get("/limits").json()
    assert (limits["nodes"], limits["queue"], limits["workers"]) == (2000, 2, 1)
    text = running.client.get("/metrics").text
    values = dict(line.rsplit(" ", 1) for line in text.splitlines() if line[0] != "#")
    assert values["drhg_workers_ready"] == "1"
    assert int(values['drhg_requests_total{method="GET",status="200"}']) > 0
    assert running.client.get("/healthz").json()["status"] == "ready"


def test_the_description_has_examples_that_work(running: Service) -> None:
    described = running.client.get("/openapi.json").json()
    schemas = described["components"]["schemas"]
    for path, kind, status in (("/solves", "SolveRequest", 202), ("/check", "CheckRequest", 200),
                               ("/steps", "StepRequest", 200),
                               ("/explain", "ExplainRequest", 200),
                               ("/replan", "ReplanRequest", 200),
                               ("/describe", "InstanceRequest", 200)):  # fmt: skip
        assert path in described["paths"]
        for example in schemas[kind]["examples"]:
            answer = running.client.post(path, json=example)
            assert answer.status_code == status, answer.text
            if status == 202:
                running.wait(answer.json()["id"])


def test_a_restart_loses_nothing_that_is_finished(tmp_path: Path) -> None:
    store = tmp_path / "solves.db"
    with service("-w", "1", "--store", store) as first:
        done = first.wait(first.solve(TSP, seconds=0.2)["id"])
        key = {"Idempotency-Key": "once"}
        kept = first.client.post(
            "/solves", json={"instance": sent(TSP), "seconds": 60}, headers=key
        )
        cut = kept.json()["id"]
        waiting = first.solve(CVRP, seconds=0.2)["id"]
        until = time.monotonic() + 20
        while not first.client.get(f"/solves/{cut}").json()["best"] and time.monotonic() < until:
            time.sleep(0.1)
        time.sleep(2.5)  # the best of what runs is saved every second
        first.kill()
    with service("-w", "1", "--store", store) as second:
        assert second.client.get(f"/solves/{done['id']}").json() == done
        found = second.client.get(f"/solves/{cut}").json()
        assert found["state"] == "interrupted"
        assert drhg.check(TSP, solution_of(found["best"])) == []
        for after in (None, 40):
            assert [name for _, name, _ in second.events(cut, after)] == ["snapshot", "end"]
        assert second.wait(waiting)["state"] == "finished"
        again = second.client.post(
            "/solves", json={"instance": sent(TSP), "seconds": 60}, headers=key
        )
        assert again.json()["id"] == cut
        running = second.solve(TSP, seconds=60)["id"]
        for _, name, _ in second.events(running):
            if name == "improvement":
                break
        assert second.end() == 128 + signal.SIGTERM
    with service("-w", "1", "--store", store, ready=False) as third:
        assert third.client.get(f"/solves/{running}").json()["state"] == "interrupted"


def test_a_worker_that_dies_is_replaced(running: Service) -> None:
    id = running.solve(TSP, seconds=60)["id"]
    for _, name, _ in running.events(id):
        if name == "improvement":
            break
    children = Path(f"/proc/{running.process.pid}/task/{running.process.pid}/children")
    workers = [int(pid) for pid in children.read_text().split()]
    busy = max(workers, key=lambda pid: sum(map(int, Path(f"/proc/{pid}/stat").read_text()
                                                .rpartition(")")[2].split()[11:13])))  # fmt: skip
    os.kill(busy, signal.SIGKILL)
    found = running.wait(id)
    assert found["state"] == "interrupted"
    assert drhg.check(TSP, solution_of(found["best"])) == []
    running.wait_until_ready()
    assert running.wait(running.solve(TSP, seconds=0.1)["id"])["state"] == "finished"


def test_a_token_is_asked_for(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("0123456789abcdef\n")
    with service("-w", "1", "--token-file", token, ready=False) as guarded:
        assert guarded.client.get("/healthz").status_code == 200
        assert guarded.client.get("/").status_code == 200
        refused = guarded.client.get("/limits")
        assert refused.status_code == 401
        assert refused.headers["www-authenticate"] == "Bearer"
        headers = {"Authorization": "Bearer 0123456789abcdef"}
        assert guarded.client.get("/limits", headers=headers).status_code == 200


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--host", "0.0.0.0", "-p", "0"], "give it a token"),
        (["--token-file", "none"], "none: cannot read the token"),
        (["--host", "192.0.2.1", "-p", "0"], "cannot listen on 192.0.2.1"),
        (["-p", "0", "--store", "/proc/none.db"], "cannot be used as a store"),
    ],
)
def test_what_cannot_be_served_is_said(options: list[str], said: str) -> None:
    command = [sys.executable, "-m", "drhg", "serve", *options]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert run.returncode == 3
    assert said in run.stderr
    assert "Traceback" not in run.stderr


# --- parts ----------------------------------------------------------------------------------------


@settings(max_examples=upto(60), deadline=None)
@given(st.randoms(use_true_random=False), st.integers(1, 12), st.booleans())
def test_changed_edges_are_those_of_a_plain_count(random: Any, n: int, routes: bool) -> None:
    def plan() -> drhg.Solution:
        nodes = random.sample(range(1, n + 1), n)
        if not routes:
            return drhg.Solution([[0, *nodes]])
        cuts = sorted(random.sample(range(1, n), random.randrange(n)) if n > 1 else [])
        return drhg.Solution([nodes[a:b] for a, b in zip([0, *cuts], [*cuts, n], strict=True)])

    def edges(solution: drhg.Solution) -> Counter[tuple[int, int]]:
        found: Counter[tuple[int, int]] = Counter()
        for route in solution.routes:
            stops = ([0] if routes else []) + route.tolist()
            for a, b in zip(stops, stops[1:] + stops[:1], strict=True):
                found[min(a, b), max(a, b)] += 1
        return found

    points = np.zeros((n + 1, 2))
    demand = [0] + [1] * n
    instance = drhg.cvrp(points, demand, n) if routes else drhg.tsp(points)
    old, new = plan(), plan()
    added, removed = changed_edges(instance, old, new)
    assert Counter(map(tuple, added)) == edges(new) - edges(old)
    assert Counter(map(tuple, removed)) == edges(old) - edges(new)


def test_open_routes_have_no_way_back() -> None:
    path = drhg.tsp([[0, 0], [0, 1], [0, 2]], returns=False)
    assert changed_edges(path, None, drhg.Solution([[0, 1, 2]])) == ([[0, 1], [1, 2]], [])
    plan = replace(drhg.cvrp([[0, 0], [0, 1], [0, 2]], [0, 1, 1], 2), returns=False)
    assert changed_edges(plan, None, drhg.Solution([[2, 1]])) == ([[0, 2], [1, 2]], [])


def test_instances_survive_the_store() -> None:
    from drhg.service.jobs import Order

    for instance in (TSP, CVRP):
        order = Order(instance, {"time_limit": 1.0, "start": drhg.Solution([[0, 1]])}, "d", "k")
        again = Order.from_json(order.to_json(), "d", "k")
        assert to_json(again.instance) == to_json(instance)
        assert json.dumps(again.options["time_limit"]) == "1.0"
        assert again.options["start"] == order.options["start"]


def test_limits_are_checked() -> None:
    with pytest.raises(drhg.DrhgError, match="nodes must be above 0"):
        ServiceLimits(nodes=0)

"""`drhg mcp`: the tools of the Model Context Protocol, over stdio."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from serving import sent

import drhg

pytest.importorskip("pydantic")
pytestmark = [pytest.mark.slow, pytest.mark.compiled]
TSP = drhg.uniform_tsp(60, seed=3)


class Client:
    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "drhg", "mcp"], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        self.last = 0

    def send(self, text: str) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def ask(self, method: str, **params: Any) -> Any:
        self.last += 1
        message = {"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}
        answer = self.send(json.dumps(message))
        assert (answer["jsonrpc"], answer["id"]) == ("2.0", self.last)
        return answer

    def call(self, name: str, **arguments: Any) -> Any:
        result = self.ask("tools/call", name=name, arguments=arguments)["result"]
        if result["isError"]:
            return result["content"][0]["text"]
        assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
        return result["structuredContent"]


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    found = Client()
    yield found
    assert found.process.stdin is not None
    found.process.stdin.close()
    assert found.process.wait(20) == 0


def test_hello(client: Client) -> None:
    told = client.ask("initialize", protocolVersion="2025-03-26", capabilities={})["result"]
    assert told["protocolVersion"] == "2025-03-26"
    assert told["serverInfo"] == {"name": "drhg", "version": drhg.__version__}
    tools = {tool["name"]: tool for tool in client.ask("tools/list")["result"]["tools"]}
    assert sorted(tools) == ["check", "explain", "solve", "start", "status", "stop"]
    assert all(tool["description"] and tool["inputSchema"]["type"] == "object"
               for tool in tools.values())  # fmt: skip


def test_solve_check_explain(client: Client) -> None:
    found = client.call("solve", instance=sent(TSP), seconds=0.3)
    solution = {"tour": found["tour"]}
    assert drhg.check(TSP, drhg.Solution([found["tour"]])) == []
    verdict = client.call("check", instance=sent(TSP), solution=solution)
    assert verdict == {"valid": True, "cost": found["cost"], "violations": []}
    why = client.call("explain", instance=sent(TSP), solution=solution)
    assert why["cost"] == pytest.approx(found["cost"])


def test_start_status_stop(client: Client) -> None:
    id = client.call("start", instance=sent(TSP), seconds=600)["id"]
    assert client.call("status", id=id)["running"]
    stopped = client.call("stop", id=id)
    assert not stopped["running"]
    assert drhg.check(TSP, drhg.Solution([stopped["tour"]])) == []


def test_what_is_wrong_is_said(client: Client) -> None:
    assert "'oops' is no number" in client.call("solve", instance="x,y\n1,2\n3,oops\n")
    assert "seconds" in client.call("solve", instance=sent(TSP), seconds=-1)
    assert "no solve 'x'" in client.call("stop", id="x")
    assert "known tools: check" in client.ask("tools/call", name="fly")["error"]["message"]
    assert client.ask("resources/list")["error"]["code"] == -32601
    assert client.send("{")["error"]["code"] == -32700
    assert client.send("[]")["error"]["code"] == -32600
    assert client.ask("ping")["result"] == {}


def test_it_stays_thin() -> None:
    from drhg.service import mcp

    assert len(inspect.getsource(mcp).splitlines()) < 200

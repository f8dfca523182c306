"""Files that are bombs, writes that are killed, disks that are full, and batches with bad files."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from drhg import io
from drhg.errors import InstanceError

HEAD = "TYPE: TSP\nDIMENSION: 2\nEDGE_WEIGHT_TYPE: EUC_2D\nNODE_COORD_SECTION\n"
ROWS = "1 0 0\n2 3 4\n"
MANY = 10**6
LARGEST_EXTRA = 50 * 10**6  # bytes


def shell(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "drhg", *map(str, arguments)]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    return subprocess.run(command, text=True, timeout=120, **streams)  # type: ignore[call-overload]


# --- resource bombs -------------------------------------------------------------------------------


def measured(act: Callable[[], object]) -> tuple[float, int]:
    """Seconds that a refusal takes, and the bytes that it needs besides; best of three."""
    seconds = []
    for _ in range(3):
        began = time.perf_counter()
        with pytest.raises(InstanceError):
            act()
        seconds.append(time.perf_counter() - began)
    tracemalloc.start()
    with pytest.raises(InstanceError):
        act()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return min(seconds), peak


BOMBS = {
    "dimension": HEAD.replace("2\n", "1000000000000\n"),
    "dimension of a matrix": HEAD.replace("2\n", "90\n").replace("EUC_2D", "EXPLICIT"),
    "sections": HEAD + ROWS + "NODE_COORD_SECTION\n" * MANY,
    "unknown keywords": "A: 1\n" * MANY,
    "a word of digits": HEAD + "1 0 " + "1" * MANY + "x\n",
    "a capacity of digits": "TYPE: CVRP\nCAPACITY: " + "1" * MANY + "x\n" + HEAD[10:] + ROWS,
    "a type of blanks": "TYPE: TSP" + " " * MANY + "x\n",
    "a type of brackets": "TYPE: TSP" + "(" * MANY + "x\n",
    "nested lists": '{"format": "drhg-instance", "xy": ' + "[" * MANY,
    "a number of digits": '{"format": "drhg-instance", "depot": ' + "1" * MANY + "}",
}


@pytest.mark.parametrize("text", BOMBS.values(), ids=BOMBS)
def test_a_bomb_is_refused_at_once(text: str) -> None:
    data = text.encode()
    parse = io.from_json if text.startswith("{") else io.parse
    seconds, extra = measured(lambda: parse(data))
    assert seconds < 0.1
    assert extra < LARGEST_EXTRA


def test_many_comments_are_read_in_linear_time() -> None:
    began = time.perf_counter()
    found = io.parse(f"COMMENT: {200 * 'x'}\n" * 100_000 + HEAD + ROWS)
    assert found.comment.count("\n") == 99_999
    assert time.perf_counter() - began < 10  # less than 1, and minutes if each is copied again


def test_empty_comments_come_back() -> None:
    found = io.parse("COMMENT: a\nCOMMENT:\nCOMMENT: b\nCOMMENT:\n" + HEAD + ROWS)
    assert found.comment == "a\n\nb\n"
    assert io.parse(io.format_instance(found)).comment == found.comment


@pytest.mark.parametrize("head", ["", HEAD], ids=["nothing", "a head"])
def test_a_gigabyte_without_a_line_end_is_not_read(tmp_path: Path, head: str) -> None:
    path = tmp_path / "line.tsp"
    with path.open("w") as stream:
        stream.write(head)
        stream.truncate(10**9)  # sparse: NULs up to the end
    seconds, extra = measured(lambda: io.read(path))
    assert seconds < 0.1
    assert extra < LARGEST_EXTRA


def test_no_socket_leaves_this_machine() -> None:
    with socket.socket() as outside, pytest.raises(PermissionError, match="do not talk"):
        outside.connect(("192.0.2.1", 80))
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname()[:2], timeout=5).close()

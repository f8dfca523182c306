"""Ctrl-C and SIGTERM at random moments: the best solution is kept, and the end comes soon.

Moments count from the start of the process, so they fall into imports, reading, the first
solution, loading weights, compiling (with an empty cache) and searching.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from soak import cases
from test_cli import wait_for_handler

import drhg
from drhg.construct.starts import construct
from drhg.files.registry import read_solution, write_instance

AIM, PATIENCE = 0.5, 1.5  # seconds to the end: the promise, and what a busy machine is given
MAKERS = {
    "tsp": lambda: drhg.uniform_tsp(1000, seed=1),
    "cvrp": lambda: drhg.uniform_cvrp(500, seed=1),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("signals")
    found = {}
    for kind, make in MAKERS.items():
        found[kind] = folder / f"{kind}.{'vrp' if kind == 'cvrp' else 'tsp'}"
        write_instance(found[kind], make())
    return found


def command_of(path: Path, out: Path, *more: str) -> list[str]:
    solve = [sys.executable, "-m", "drhg", "solve", str(path), "-t", "60", "-o", str(out)]
    return [*solve, "-q", "--threads", "1", *more]


def no_worse_than_the_start(path: Path, out: Path) -> None:
    instance = drhg.read(path)
    solution = read_solution(out, instance)
    assert drhg.check(instance, solution) == []
    start, _ = construct(instance, "space-filling", 0)
    assert drhg.cost(instance, solution) <= drhg.cost(instance, start)


def moments() -> Iterator[tuple[str, signal.Signals, float, bool, bool]]:
    """Which problem, which signal, after how many seconds, with an empty cache, with a network."""
    chance = random.Random(5)
    for i in range(cases(4, 50)):
        kind = ("tsp", "cvrp")[i % 2]
        number = (signal.SIGINT, signal.SIGTERM)[i // 2 % 2]
        delay = chance.choice([0.3, 1.0, 3.0, 5.0]) * chance.random()
        yield kind, number, delay, chance.random() < 0.4, kind == "tsp" and chance.random() < 0.4


def test_a_signal_at_any_moment_keeps_the_best(
    files: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seconds, written = [], 0
    for i, (kind, number, delay, cold, network) in enumerate(moments()):
        out = tmp_path / f"{i}{'.sol' if kind == 'cvrp' else '.tour'}"
        more = ["--method", "neural"] if network else []
        env = os.environ | ({"NUMBA_CACHE_DIR": str(tmp_path / f"cache{i}")} if cold else {})
        with subprocess.Popen(
            command_of(files[kind], out, *more), env=env,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        ) as process:  # fmt: skip
            wait_for_handler(process.pid)
            time.sleep(delay)
            sent = time.perf_counter()
            process.send_signal(number)
            said, complaints = process.communicate(timeout=30)
            seconds.append(time.perf_counter() - sent)
        assert process.returncode == 128 + number, complaints
        assert complaints == ""
        if out.exists():
            written += 1
            assert "interrupted" in said
            no_worse_than_the_start(files[kind], out)
        else:  # there was nothing yet
            assert said == ""
        assert list(tmp_path.glob(".drhg-*")) == []
    late = float(np.quantile(seconds, 0.99))
    with capsys.disabled():
        print(
            f"\n{len(seconds)} signals, {written} solutions: 99 % within {late:.2f} s (aim {AIM})"
        )
    assert late < PATIENCE


def test_the_second_one_ends_at_once(files: dict[str, Path], tmp_path: Path) -> None:
    out = tmp_path / "a.tour"
    process = subprocess.Popen(command_of(files["tsp"], out), stdout=subprocess.DEVNULL)
    wait_for_handler(process.pid)
    time.sleep(1.0)
    os.kill(process.pid, signal.SIGSTOP)  # so that both are waiting
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    began = time.perf_counter()
    os.kill(process.pid, signal.SIGCONT)
    assert process.wait(10) in (130, 143)
    assert time.perf_counter() - began < PATIENCE


# A shell starts what runs in its background with Ctrl-C ignored, tests included.
CALL = """
import signal, sys, drhg
from drhg.files.registry import write_solution
signal.signal(signal.SIGINT, signal.default_int_handler)
instance = drhg.read(sys.argv[1])
print("ready", flush=True)
result = drhg.solve(instance, time_limit=60, threads=1)
write_solution(sys.argv[2], instance, result.solution)
print(result.status, flush=True)
"""


@pytest.mark.parametrize("kind", list(MAKERS))
def test_ctrl_c_in_python_returns_the_best(
    files: dict[str, Path], tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    chance, seconds = random.Random(kind), []
    out = tmp_path / f"a{'.sol' if kind == 'cvrp' else '.tour'}"
    for i in range(cases(1, 25)):
        env = os.environ | ({} if i % 2 else {"NUMBA_CACHE_DIR": str(tmp_path / f"{i}")})
        process = subprocess.Popen(
            [sys.executable, "-c", CALL, str(files[kind]), str(out)], env=env,
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.1 + 3 * chance.random())  # a first solution takes some hundredths
        sent = time.perf_counter()
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "interrupted\n"
        seconds.append(time.perf_counter() - sent)
        assert process.wait(30) == 0
        no_worse_than_the_start(files[kind], out)
    with capsys.disabled():
        print(f"\n{len(seconds)} times Ctrl-C, {kind}: at most {max(seconds):.2f} s (aim {AIM})")
    assert max(seconds) < PATIENCE

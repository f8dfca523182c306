"""The first run on a machine, with an empty kernel cache, is as good as any later one."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import drhg
from drhg import files as io
from drhg.kernels import warmup as precompile

pytestmark = pytest.mark.compiled

COUNT = """
import json, sys
from numba.core import event
compiled = []
class Count(event.Listener):
    def on_start(self, happened):
        compiled.append(happened.data["dispatcher"].py_func.__name__)
    def on_end(self, happened):
        pass
"""


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment whose kernel cache is empty at first."""
    return {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path_factory.mktemp("cold"))}


def run(
    environment: dict[str, str], *arguments: str, code: int = 0
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "drhg", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=240)
    assert done.returncode == code, done.stderr
    return done


@pytest.mark.slow
def test_the_first_tour_is_as_short_as_the_second(cache: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "cities.tsp"
    io.write_instance(file, drhg.uniform_tsp(200, seed=1))
    first = run(cache, "solve", str(file), "-t", "2", "-f", "json")
    second = run(cache, "solve", str(file), "-t", "2", "-f", "json")
    cold, warm = json.loads(first.stdout), json.loads(second.stdout)
    assert cold["cost"] <= 1.001 * warm["cost"]
    assert cold["iterations"] > 0
    assert 1.9 < cold["seconds"] < 4.0  # compiling is not the user's time,
    assert cold["compile_seconds"] > warm["compile_seconds"]  # and is told apart
    assert "compiling kernels" in first.stderr
    assert "compiling" not in second.stderr


@pytest.mark.slow
def test_an_interrupted_compilation_goes_on(cache: dict[str, str], tmp_path: Path) -> None:
    """Ctrl-C returns the first solution at once; a short limit is enough the next time."""
    flat = drhg.x_cvrp(60, seed=1)
    assert flat.demand is not None
    assert flat.capacity is not None
    fleet = -(-int(flat.demand.sum()) // flat.capacity) + 1
    file = tmp_path / "tight.vrp"
    io.write_instance(file, replace(flat, vehicles=fleet, max_distance=4000.0, service_time=5.0))
    command = [sys.executable, "-m", "drhg", "solve", str(file), "-t", "1", "-f", "json"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=cache
    )
    assert process.stderr is not None
    assert "compiling" in process.stderr.readline() + process.stderr.readline()
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert time.monotonic() - began < 3.0
    assert process.returncode in (130, 5), process.returncode
    assert json.loads(out)["status"] in ("interrupted", "no_search")
    assert "no search took place" in json.loads(out)["warnings"][0]
    found = json.loads(run(cache, "solve", str(file), "-t", "1", "-f", "json").stdout)
    assert found["iterations"] > 0
    assert found["unplaced"] == []


@pytest.mark.slow
def test_two_processes_do_not_compile_the_same(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    part = precompile.start("cvrp", "sweep")
    command = [sys.executable, "-m", "drhg.kernels.warmup"]
    command.append(json.dumps([(part.what, part.function, part.arguments)]))
    both = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        for _ in range(2)
    ]
    lines = sorted(process.communicate(timeout=120)[0].count("+") for process in both)
    assert lines[0] == 0
    assert lines[1] > 1


@pytest.mark.slow
def test_nothing_is_left_to_compile_after_the_warm_up() -> None:
    """Every method, kind and size of problem: all kernels are those that `drhg.warmup` loads."""
    code = (
        COUNT
        + f"""
sys.path.insert(0, {str(Path(__file__).parent)!r})
import drhg
from golden.cases import CASES
drhg.warmup()
event.register("numba:compile", Count())
short = {{"no_improve": None, "max_iters": 3}}
for name, (make, options) in CASES.items():
    more = {{}} if options.get("method") else {{"max_iters": 400}}
    result = drhg.solve(make(), seed=1, **{{"threads": 1}} | options | short | more)
    assert result.iterations > 0, name
    if compiled:
        print(name, compiled)
        break
"""
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""


def test_the_key_of_the_cache_follows_every_source(tmp_path: Path) -> None:
    from drhg.kernels.cache import Sources

    package = Path(drhg.__file__).parent
    copy = tmp_path / "drhg"
    shutil.copytree(package, copy, ignore=shutil.ignore_patterns("__pycache__", "*.safetensors"))
    sources = Sources(copy).of_kernels()
    names = {str(path.relative_to(copy)) for path in sources}
    decorated = re.compile(r"^@(kernel|inner|inlined|fast_kernel)$", re.MULTILINE)
    with_kernels = {
        str(path.relative_to(copy))
        for path in copy.rglob("*.py")
        if decorated.search(path.read_text())
    }
    rooms = {name.split("/")[0] for name in with_kernels}
    assert {"network", "training", "search", "local_search", "construct"} <= rooms
    assert with_kernels <= names
    assert "problem/metrics.py" in names  # whose constants kernels freeze
    assert not any(name.startswith("cli") for name in names)
    seen = {Sources(copy).key(sources)}
    for path in sources:
        path.write_text(path.read_text() + "# edited\n")
        key = Sources(copy).key(sources)
        assert key not in seen, path
        seen.add(key)


def test_an_edit_recompiles_what_it_may_have_changed_and_nothing_else(tmp_path: Path) -> None:
    from drhg.kernels.cache import Sources

    copy = tmp_path / "drhg"
    (copy / "kernels").mkdir(parents=True)
    uses = {"a": ["b"], "b": ["c"], "c": ["b"], "d": [], "kernels/jit": []}  # b and c: a circle
    for name, imported in uses.items():
        lines = [f"from drhg.{other} import thing" for other in imported]
        (copy / f"{name}.py").write_text("\n".join(lines))

    def keys() -> dict[str, str]:
        sources = Sources(copy)
        return {name: sources.key(sources.closure(copy / f"{name}.py")) for name in uses}

    before = keys()
    (copy / "c.py").write_text((copy / "c.py").read_text() + "\n# edited\n")
    changed = {name for name, key in keys().items() if key != before[name]}
    assert changed == {"a", "b", "c"}
    (copy / "kernels" / "jit.py").write_text("# compiles everything in another way\n")
    assert all(key != before[name] for name, key in keys().items())


def test_a_search_that_is_stopped_at_once_leaves_no_threads() -> None:
    drhg.warmup(["tsp"])
    before = threading.active_count()
    for _ in range(12):
        result = drhg.solve(drhg.uniform_tsp(30, seed=1), time_limit=5, should_stop=lambda: True)
        assert result.status == "interrupted"
    deadline = time.monotonic() + 10.0
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() <= before


def test_waiting_for_kernels_ends_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """While another thread prepares, one that no longer wants to wait is let go."""
    part = precompile.Part("nothing", "builtins:int")
    with precompile._lock:
        assert precompile.prepare([part], stopped=lambda: True) == "interrupted"
    assert part not in precompile._loaded


def test_compiling_has_an_upper_bound(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A search starts all the same, and its result says what happened."""
    monkeypatch.setattr(precompile, "LIMIT", 0.2)
    monkeypatch.setattr(precompile, "_loaded", set())
    monkeypatch.setattr(precompile, "_running", [])
    monkeypatch.setattr(precompile.Part, "compiled", property(lambda part: False))
    monkeypatch.setattr(precompile._Compiler, "finished", lambda compiler: False)
    result = drhg.solve(drhg.uniform_tsp(30, seed=1), max_iters=20)
    assert result.iterations == 20
    assert "compiling took more than 0.2 s" in result.warnings[0]


def test_without_processes_this_one_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any, **options: Any) -> None:
        raise OSError("no processes here")

    monkeypatch.setattr(precompile, "_loaded", set())
    monkeypatch.setattr(precompile.Part, "compiled", property(lambda part: False))
    monkeypatch.setattr(precompile.subprocess, "Popen", refuse)
    assert drhg.solve(drhg.uniform_tsp(30, seed=1), max_iters=20).iterations == 20


def test_an_unknown_method_is_refused() -> None:
    with pytest.raises(drhg.DrhgError, match="methods: unknown method 'tps'"):
        drhg.warmup(["tps"])

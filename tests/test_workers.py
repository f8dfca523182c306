"""Many tasks at once: nothing is lost when workers raise or die, here and on Ray."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from drhg.errors import DrhgError
from drhg.parallel import spread


def square(x: int) -> int:
    return x * x


def troubled(x: int) -> int:
    if x == 2:
        raise DrhgError("two is too much")
    return x


def mortal(task: tuple[int, str]) -> int:
    """Dies the first time it is asked about 3."""
    x, folder = task
    mark = Path(folder) / "died"
    if x == 3 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return x


def doomed(x: int) -> int:
    if x == 1:
        os._exit(7)
    return x


def slow(x: int) -> int:
    time.sleep(0.3)
    return os.getpid()


def patient(task: tuple[int, str]) -> str:
    """The first one ends at once, the others leave a mark and would take a minute."""
    x, folder = task
    if x == 0:
        return "whole"
    try:
        (Path(folder) / "busy").touch()
        for _ in range(600):
            time.sleep(0.1)
    except KeyboardInterrupt:
        return "interrupted"
    return "too late"


@pytest.mark.parametrize("workers", [1, 2])
def test_every_task_is_answered_once(workers: int) -> None:
    ends = sorted((d.index, d.value) for d in spread(square, list(range(7)), workers=workers))
    assert ends == [(i, i * i) for i in range(7)]


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_is_one_tasks_own(workers: int) -> None:
    ends = {d.index: d for d in spread(troubled, list(range(5)), workers=workers)}
    assert isinstance(ends[2].error, DrhgError)
    assert [ends[i].value for i in (0, 1, 3, 4)] == [0, 1, 3, 4]


def test_a_dead_workers_task_is_tried_again(tmp_path: Path) -> None:
    tasks = [(i, str(tmp_path)) for i in range(6)]
    ends = {d.index: d for d in spread(mortal, tasks, workers=2)}
    assert (tmp_path / "died").exists()
    assert [ends[i].value for i in range(6)] == list(range(6))


def test_a_task_that_always_kills_is_given_up() -> None:
    ends = {d.index: d for d in spread(doomed, [0, 1, 2], workers=2)}
    assert "died 3 times (exit 7)" in str(ends[1].error)
    assert (ends[0].value, ends[2].value) == (0, 2)


def test_workers_end_with_the_loop() -> None:
    ends = spread(slow, list(range(8)), workers=2)
    process = next(ends).value
    ends.close()
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


def test_no_tasks() -> None:
    assert list(spread(square, [], workers=2)) == []


def test_without_ray_one_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(DrhgError, match="install the extra `ray`"):
        list(spread(square, [1], ray="local"))


@pytest.fixture(scope="module")
def two_workers() -> Iterator[None]:
    """A local Ray of two workers, which can import this file."""
    ray = pytest.importorskip("ray")
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    before = dict(os.environ)
    os.environ.update({"PYTHONPATH": path, "RAY_USAGE_STATS_ENABLED": "0"})
    ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False,
             _node_ip_address="127.0.0.1")  # fmt: skip
    yield
    ray.shutdown()
    os.environ.clear()
    os.environ.update(before)


@pytest.mark.slow
def test_ray_with_a_worker_killed(two_workers: None, tmp_path: Path) -> None:
    tasks = [(i, str(tmp_path)) for i in range(6)]
    ends = {d.index: d for d in spread(mortal, tasks, ray="local")}
    assert (tmp_path / "died").exists()
    assert [ends[i].value for i in range(6)] == list(range(6))


@pytest.mark.slow
def test_ray_reports_errors(two_workers: None) -> None:
    ends = {d.index: d for d in spread(troubled, list(range(4)), ray="local")}
    assert isinstance(ends[2].error, DrhgError)
    assert ends[3].value == 3


@pytest.mark.slow
def test_ray_gives_up_a_task_that_always_kills(two_workers: None) -> None:
    ends = {d.index: d for d in spread(doomed, [0, 1], ray="local", attempts=2)}
    assert "died 2 times" in str(ends[1].error)
    assert ends[0].value == 0


@pytest.mark.slow
def test_ray_keeps_what_is_there_when_stopped(two_workers: None, tmp_path: Path) -> None:
    """What ended before is there, what runs says its last words, the rest does not begin.

    A busy machine may lose last words, but not every time.
    """
    words: set[object] = set()
    for i in range(3):
        folder = tmp_path / str(i)
        folder.mkdir()
        ends: dict[int, str] = {}

        def stopped(ends: dict[int, str] = ends, folder: Path = folder) -> bool:
            return 0 in ends and (folder / "busy").exists()

        tasks = [(i, str(folder)) for i in range(8)]
        for done in spread(patient, tasks, ray="local", stopped=stopped):
            ends[done.index] = done.value or repr(done.error)
        assert ends.pop(0) == "whole"
        assert len(ends) < 7
        words |= set(ends.values())
        if words == {"interrupted"}:
            break
    assert "interrupted" in words, words


@pytest.mark.slow
def test_ray_leaves_the_handler_of_signals_alone(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    program = """
import os, signal
from drhg.parallel import spread
own = lambda *_: None
signal.signal(signal.SIGTERM, own)
ends = list(spread(os.path.basename, ["a/b", "c/d"], ray="local"))
assert sorted(d.value for d in ends) == ["b", "d"], ends
assert signal.getsignal(signal.SIGTERM) is own
"""
    environment = os.environ | {"RAY_USAGE_STATS_ENABLED": "0"}
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment
    )
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.slow
def test_a_bench_on_ray(two_workers: None, tmp_path: Path) -> None:
    from drhg.benchmark.rows import read_rows
    from drhg.benchmark.run import run_suite
    from drhg.benchmark.suites import SUITES, Choice

    choice = Choice(instances=2, only=("TSP100",), max_iters=20, rivals=())
    ran = run_suite(SUITES["tsp"], choice, tmp_path, ray="local")
    assert (ran.new, ran.failed) == (4, 0)
    assert {row["status"] for row in read_rows([ran.path])} == {"ok"}


@pytest.mark.slow
def test_one_plan_on_ray(two_workers: None) -> None:
    """Parts of a large plan are tasks, whatever the rules of its routes."""
    import drhg
    from drhg.search.routes.params import RouteSizes
    from drhg.search.routes.strategy import Routes

    method = Routes(sizes=RouteSizes(copies=200, subproblems=200, part_steps_far=2000))
    plain = drhg.x_cvrp(400, seed=1)
    for instance in (plain, replace(plain, returns=False)):
        start = drhg.solve(instance, method=method, max_iters=4000, threads=2)
        result = drhg.solve(
            instance, method=method, start=start.solution, ray="local", max_iters=20_000
        )
        assert drhg.check(instance, result.solution) == []
        assert result.iterations >= 20_000
        assert result.cost < start.cost
    with pytest.raises(DrhgError, match=r"ray: Routes shares plans .* from 201 customers"):
        drhg.solve(drhg.x_cvrp(100), method=method, ray="local")


def _title(process: Path) -> str:
    try:
        return (process / "cmdline").read_bytes().split(b"\0")[0].decode()
    except OSError:  # it has ended
        return ""


@pytest.mark.slow
def test_one_tour_on_ray_with_a_worker_killed(two_workers: None) -> None:
    """Regions of one large tour are tasks; one whose worker dies is done again."""
    import drhg
    from drhg.search.tours.params import KickParams, TourSizes
    from drhg.search.tours.strategy import Tours

    kicks = KickParams(region_nodes=1000, per_region_node_far=2.0)
    method = Tours(sizes=TourSizes(population_up_to=3000), kicks=kicks)
    instance = drhg.uniform_tsp(4000, seed=1)
    start = drhg.solve(instance, method=method, max_iters=0, start="greedy")
    killed: list[int] = []

    def kill(point: object, solution: object) -> None:
        until = time.monotonic() + 5.0
        while not killed and time.monotonic() < until:
            processes = Path("/proc").glob("[0-9]*")
            at_work = [p for p in processes if _title(p).startswith("ray::_with_copies")]
            if at_work:
                killed.append(int(at_work[0].name))
                os.kill(killed[0], signal.SIGKILL)

    result = drhg.solve(
        instance, method=method, start="greedy", ray="local", max_iters=60_000, on_improve=kill
    )
    assert killed
    assert drhg.check(instance, result.solution) == []
    assert result.iterations >= 60_000
    assert result.cost < 0.95 * start.cost
    with pytest.raises(
        DrhgError, match=r"ray: Tours shares tours .* from 3001 nodes .* has 100 nodes"
    ):
        drhg.solve(drhg.uniform_tsp(100), method=method, ray="local")


@pytest.mark.slow
def test_solving_many_files_on_ray(
    two_workers: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import json

    import drhg
    from drhg.cli import app
    from drhg.files.registry import write_instance

    files = []
    for seed in range(3):
        files.append(tmp_path / f"t{seed}.tsp")
        write_instance(files[-1], drhg.uniform_tsp(30, seed=seed))
    (tmp_path / "bad.tsp").write_text("nonsense")
    names = [*map(str, files), str(tmp_path / "bad.tsp")]
    words = ["-n", "30", "-f", "json", "-o", str(tmp_path / "out"), "--ray", "local"]
    assert app(["solve", *names, *words], standalone_mode=False) == 1  # some failed
    shown = capsys.readouterr()
    rows = [json.loads(line) for line in shown.out.splitlines()]
    assert sorted(row["n"] for row in rows) == [30, 30, 30]
    assert "bad.tsp" in shown.err
    for path in files:
        instance = drhg.read(path)
        found = drhg.read_solution(tmp_path / "out" / f"{path.stem}.tour", instance)
        assert drhg.check(instance, found) == []
        # the same as here, since iterations and threads are the same
        here = drhg.solve(instance, max_iters=30, threads=1).cost
        assert drhg.cost(instance, found) == here


def test_errors_survive_the_journey() -> None:
    import pickle

    from drhg.errors import InstanceError

    error = pickle.loads(pickle.dumps(InstanceError("no nodes", file="a.tsp", line=3)))
    assert type(error) is InstanceError
    assert str(error) == "a.tsp:3: no nodes"


def test_labels_on_ray(two_workers: None, tmp_path: Path) -> None:
    pytest.importorskip("fast_tsp", reason="labels are made by fast_tsp")
    from drhg.training.labels import label

    (path,) = label(tmp_path, 20, 5, seconds=0.01, ray="local", report=lambda _: None)
    with np.load(path) as shard:
        assert (np.sort(shard["tours"], axis=1) == np.arange(20)).all()
        assert shard["count"] == 5

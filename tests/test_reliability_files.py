"""Files that are bombs, writes that are killed, disks that are full, and batches with bad files."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from soak import cases

import drhg
from drhg import files as io
from drhg.errors import DrhgError, InstanceError

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


# --- writes that are killed -----------------------------------------------------------------------

WRITERS = {
    "solution": ("from drhg.files import atomic_write as write", io.atomic_write),
}
CONTENTS = [letter * 300_000 for letter in (b"a", b"b")]
FOREVER = """
import sys
from pathlib import Path
{load}
path = Path(sys.argv[1])
while True:
    for letter in (b"a", b"b"):
        write(path, letter * 300_000)
"""


@pytest.mark.parametrize(("load", "write"), WRITERS.values(), ids=WRITERS)
def test_kill_9_leaves_the_old_file_or_the_new(
    tmp_path: Path, load: str, write: Callable[[Path, bytes], None]
) -> None:
    path, moment = tmp_path / "file.tour", random.Random(1)
    write(path, CONTENTS[0])
    for _ in range(cases(4, 200)):
        began = path.stat().st_mtime_ns
        writer = subprocess.Popen([sys.executable, "-c", FOREVER.format(load=load), str(path)])
        while path.stat().st_mtime_ns == began:  # it is at work
            time.sleep(0.001)
        time.sleep(moment.random() * 0.02)
        writer.kill()
        writer.wait()
        assert path.read_bytes() in CONTENTS
        write(path, CONTENTS[0])  # what it left behind is in nobody's way


def crippled(limit: int) -> Callable[[], None]:
    """In a child: files cannot grow beyond `limit` bytes, so a write fails half way."""

    def limited() -> None:
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    return limited


@pytest.mark.skipif(sys.platform == "win32", reason="needs limits on a process")
@pytest.mark.parametrize(("load", "write"), WRITERS.values(), ids=WRITERS)
def test_a_write_that_fails_half_way_leaves_the_old_file(
    tmp_path: Path, load: str, write: Callable[[Path, bytes], None]
) -> None:
    path = tmp_path / "file.tour"
    write(path, b"old")
    command = [sys.executable, "-c", FOREVER.format(load=load), str(path)]
    failed = subprocess.run(
        command, preexec_fn=crippled(100_000), capture_output=True, text=True, timeout=60
    )
    assert "File too large" in failed.stderr
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file.tour"]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 kB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("only root may mount")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("write", [w for _, w in WRITERS.values()], ids=WRITERS)
def test_a_full_or_read_only_disk_leaves_the_old_file(
    small_disk: Path, write: Callable[[Path, bytes], None]
) -> None:
    path = small_disk / "file.tour"
    write(path, b"old")
    with pytest.raises((DrhgError, OSError), match="No space left"):
        write(path, CONTENTS[0])
    assert path.read_bytes() == b"old"
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises((DrhgError, OSError), match="Read-only"):
        write(path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(small_disk) == ["file.tour"]


# --- the command line, when output fails ----------------------------------------------------------


@pytest.fixture
def cities(tmp_path: Path) -> Path:
    path = tmp_path / "cities.tsp"
    io.write_instance(path, drhg.uniform_tsp(300, seed=1))
    return path


def test_a_result_that_cannot_be_written_is_still_reported(cities: Path) -> None:
    out = cities.with_suffix(".tour")
    run = shell("solve", cities, "-n", 0, "-f", "json", "-o", out, preexec_fn=crippled(100))
    assert run.returncode == 1
    assert "File too large" in run.stderr
    assert "Traceback" not in run.stderr
    assert len(json.loads(run.stdout)["tour"]) == 300
    assert not out.exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("which", ["stdout", "stderr", "trace"])
def test_a_full_stream_does_not_lose_the_solution(cities: Path, which: str) -> None:
    out = cities.with_suffix(".tour")
    more = ["--trace", "/dev/full"] if which == "trace" else []
    with open("/dev/full", "w") as full:
        streams = {} if which == "trace" else {which: full}
        run = shell("solve", cities, "-n", 0, "-f", "json", "-o", out, *more, **streams)
    assert run.returncode == (1 if which == "stdout" else 0)
    instance = drhg.read(cities)
    assert drhg.check(instance, io.read_solution(out, instance)) == []
    if which == "trace":
        assert "the trace ends here: No space left" in run.stderr


def test_a_batch_with_bad_files_is_complete(tmp_path: Path) -> None:
    """Of 100 files 5 are bad, each in its own way: 95 results, 5 errors, exit code 1."""
    files = []
    for i in range(100):
        files.append(tmp_path / f"f{i:02}.{'vrp' if i % 2 else 'tsp'}")
        make = drhg.uniform_cvrp if i % 2 else drhg.uniform_tsp
        io.write_instance(files[-1], make(10 + i % 7, seed=i))
    bad = [files[i] for i in (0, 13, 37, 64, 99)]
    bad[0].write_bytes(b"\0\1")
    bad[1].write_text("")
    bad[2].write_text(bad[2].read_text().replace("CAPACITY", "KAPACITY"))
    bad[3].unlink()
    bad[4].write_text(bad[4].read_text()[:150])
    run = shell("solve", *files, "-n", 3, "--threads", 1, "-q", "-f", "json", "-o", tmp_path / "o")
    assert run.returncode == 1
    rows = [json.loads(line) for line in run.stdout.splitlines()]
    good = [path for path in files if path not in bad]
    assert len(rows) == 95
    errors = run.stderr.splitlines()
    assert len(errors) == 5
    for path, line in zip(bad, errors, strict=True):
        assert line.startswith(f"drhg: {path}:")
    for path, row in zip(good, rows, strict=True):
        instance = drhg.read(path)
        assert row["name"] == instance.name
        written = tmp_path / "o" / f"{path.stem}.{'sol' if instance.is_cvrp else 'tour'}"
        solution = io.read_solution(written, instance)
        assert drhg.check(instance, solution) == []
        assert drhg.cost(instance, solution) == row["cost"]


@pytest.mark.skipif(not Path("/proc").exists(), reason="needs /proc")
def test_workers_end_with_the_one_who_started_them(tmp_path: Path) -> None:
    """A second Ctrl-C, or kill -9, leaves no process working on until its limit."""
    files = []
    for i in range(2):
        files.append(tmp_path / f"{i}.tsp")
        io.write_instance(files[-1], drhg.uniform_tsp(1000, seed=i))
    command = [sys.executable, "-m", "drhg", "solve", *map(str, files), "-t", "60", "-j", "2", "-q"]
    run = subprocess.Popen(command)
    while len(workers := children(run.pid)) < 2 and run.poll() is None:
        time.sleep(0.05)
    time.sleep(1)  # the second one may still be starting
    workers |= children(run.pid)
    run.send_signal(signal.SIGKILL)
    run.wait()
    for _ in range(100):
        if not any(alive(pid) for pid in workers):
            return
        time.sleep(0.1)
    raise AssertionError(f"still there: {[pid for pid in workers if alive(pid)]}")


def children(pid: int) -> set[int]:
    """Of a process, but not multiprocessing's own tracker of resources, which ends by itself."""
    found = set()
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        found |= {int(word) for word in task.read_text().split()}
    return {p for p in found if b"spawn_main" in Path(f"/proc/{p}/cmdline").read_bytes()}


def alive(pid: int) -> bool:
    try:
        return " Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False

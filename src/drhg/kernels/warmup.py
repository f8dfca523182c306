"""Compiling ahead: kernels are ready before anybody's clock starts.

Kernels are compiled for this very processor on first use and kept on disk. `prepare` sees to it
that those of some *parts* are in memory. What is not on disk yet is compiled by processes of their
own, on two cores, so that whoever waits can stop waiting at any moment, and what was begun is
finished and kept all the same. A part is compiled, and later loaded, by running what needs it on a
tiny problem.
"""

from __future__ import annotations

import gc
import hashlib
import importlib
import json
import logging
import math
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drhg.errors import DrhgError
from drhg.parallel import cores

log = logging.getLogger("drhg")

LIMIT = 180.0  # seconds that compiling may take before a search starts without it
LOG_EVERY = 1.0  # seconds between two lines of the log
PROCESSES = 2  # that compile side by side; more would mostly repeat each other's work


@dataclass(frozen=True)
class Part:
    """Kernels that are compiled together."""

    what: str  # for people
    function: str  # "module:function" that runs all of them once
    arguments: tuple[Any, ...] = ()  # for it
    kernels: int = 40  # about how many compilations that takes

    @property
    def module(self) -> str:
        return self.function.partition(":")[0]

    def run(self) -> None:
        name = self.function.partition(":")[2]
        getattr(importlib.import_module(self.module), name)(*self.arguments)

    def _file(self, suffix: str) -> Path:
        from drhg.kernels.cache import folder_of_all

        digest = hashlib.sha256(json.dumps([self.function, self.arguments]).encode())
        return Path(folder_of_all()) / f"{digest.hexdigest()[:16]}.{suffix}"

    @property
    def compiled(self) -> bool:
        """Whether it is on disk."""
        from drhg.kernels.cache import folder_of_all

        return bool(folder_of_all()) and self._file("ready").exists()

    def keep(self) -> None:
        """Remember that it is on disk now."""
        from drhg.kernels.cache import folder_of_all

        if folder_of_all():
            with suppress(OSError):
                self._file("ready").touch()

    @contextmanager
    def locked(self, seconds: float) -> Iterator[bool]:
        """One process compiles it; whether this one may, after waiting at most so many seconds."""
        try:
            import fcntl
        except ImportError:  # not on this system: at worst something is compiled twice
            yield True
            return
        until = time.monotonic() + seconds
        with self._file("lock").open("w") as handle:
            mine = False
            while not mine:
                with suppress(OSError):
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    mine = True
                if not mine:
                    if time.monotonic() >= until:
                        break
                    time.sleep(0.05)
            yield mine


MOVES = Part("k-opt moves of tours", "drhg.search.tours.rehearsal:rehearse_moves", kernels=26)
REGIONS = Part("regions of large tours", "drhg.search.tours.rehearsal:rehearse_regions", kernels=30)
CROSSING = Part(
    "edge assembly of tours", "drhg.search.tours.rehearsal:rehearse_crossing", kernels=28
)
POPULATION = Part(
    "populations of tours", "drhg.search.tours.rehearsal:rehearse_population", kernels=8
)
ANNEALING = Part(
    "ruin and recreate of routes", "drhg.search.routes.rehearsal:rehearse_annealing", kernels=30
)
PIECES = Part(
    "ruin and recreate of routes with windows",
    "drhg.search.routes.rehearsal:rehearse_pieces",
    kernels=40,
)
GENETIC = Part(
    "genetic search of routes", "drhg.search.routes.rehearsal:rehearse_population", kernels=35
)
LOCAL_SEARCH = Part(
    "local search of routes", "drhg.search.routes.rehearsal:rehearse_local_search", kernels=28
)
EXPLAINING = Part("explaining plans", "drhg.plans.rehearsal:rehearse_explaining", kernels=25)


def start(problem: str, name: str) -> Part:
    """A start for a problem, "tsp" or "cvrp"."""
    return Part(f"{name} start", "drhg.construct.starts:rehearse", (problem, name), kernels=14)


def regions(problem: str, repair: str, model: str) -> Part:
    """The paper's loop with a repairer by its name, and the weights of a network."""
    what = f"{repair} repair of {'tours' if problem == 'tsp' else 'routes'}"
    return Part(what, "drhg.search.regions:rehearse", (problem, repair, model), kernels=75)


METHODS: dict[str, tuple[Part, ...]] = {
    "tsp": (start("tsp", "greedy"), MOVES, CROSSING, POPULATION, REGIONS),
    "cvrp": (start("cvrp", "savings"), ANNEALING, GENETIC, LOCAL_SEARCH),
    "vrp": (PIECES,),
    "local": (
        start("tsp", "insertion"),
        start("cvrp", "sweep"),
        regions("tsp", "local", "auto"),
        regions("cvrp", "local", "auto"),
    ),
    "neural": (
        start("tsp", "insertion"),
        start("cvrp", "sweep"),
        regions("tsp", "neural", "auto"),
        regions("cvrp", "neural", "auto"),
    ),
    "paper": (start("tsp", "insertion"), regions("tsp", "neural", "paper")),
    "plans": (EXPLAINING,),
}
"""What the methods need, by names for `drhg warmup`; `tsp`, `cvrp` and `vrp` are the default
searches, the last one for time windows and the like."""


@dataclass(frozen=True)
class WarmupProgress:
    """How far compiling is."""

    done: int
    total: int  # estimated
    what: str  # the kernel that was finished last
    seconds: float

    def __str__(self) -> str:
        if self.done == self.total:
            return f"compiled {self.total} kernels in {self.seconds:.0f} s (this happens once)"
        left = self.seconds * (self.total - self.done) / max(1, self.done)
        about = f", about {left:.0f} s left" if self.done > 3 else ""
        return f"compiling kernels, {self.done} of {self.total}{about} (this happens once)"


def warmup(
    methods: Sequence[str] | None = None,
    *,
    on_progress: Callable[[WarmupProgress], None] | None = None,
) -> float:
    """Compile the kernels of these methods (by default of all) and keep them; returns the seconds.

    >>> import drhg
    >>> drhg.warmup(["tsp"]) >= 0.0
    True
    """
    known = tuple(METHODS)
    wanted = known if methods is None else methods
    if isinstance(wanted, str) or not isinstance(wanted, Sequence):
        raise DrhgError(f"methods must be a list of names, such as ['tsp'], not {wanted!r}")
    for name in wanted:
        if name not in known:
            raise DrhgError(f"methods: unknown method {name!r}; known: {', '.join(known)}")
    if on_progress is not None and not callable(on_progress):
        raise DrhgError(f"on_progress must be a function, not {on_progress!r}")
    began = time.perf_counter()
    parts = [part for name in wanted for part in METHODS[name]]
    prepare(list(dict.fromkeys(parts)), on_progress=on_progress, limit=math.inf)
    return time.perf_counter() - began


_lock = threading.Lock()  # one preparation at a time in this process
_loaded: set[Part] = set()
_running: list[_Compiler] = []  # of a preparation that was not waited for


def prepare(
    parts: Sequence[Part],
    stopped: Callable[[], bool] = lambda: False,
    on_progress: Callable[[WarmupProgress], None] | None = None,
    limit: float | None = None,
) -> str | None:
    """Have the kernels of these parts in memory; returns why not, or None.

    Returns early once `stopped` says so, or after `limit` seconds (by default LIMIT). What was
    begun goes on, and is taken up next time.
    """
    todo = [part for part in parts if part not in _loaded]
    if not todo:
        return None
    while not _lock.acquire(timeout=0.02):
        if stopped():
            return "interrupted"
    try:
        missing = [part for part in todo if not part.compiled]
        if missing and _can_compile_apart():
            tell = on_progress or _LogProgress()
            failure = _compile_apart(missing, stopped, tell, LIMIT if limit is None else limit)
            if failure is not None:
                return failure
        for part in todo:
            if stopped():
                return "interrupted"
            part.run()
            part.keep()
            _loaded.add(part)
    finally:
        _lock.release()
    return None


def _can_compile_apart() -> bool:
    from drhg.kernels.cache import folder_of_all

    interpreted = os.environ.get("NUMBA_DISABLE_JIT", "0") != "0"
    return bool(folder_of_all() and sys.executable) and not interpreted


class _LogProgress:
    """A line at once, which everybody sees, and one now and then for those who listen."""

    def __init__(self) -> None:
        self._next = 0.0  # seconds since the beginning

    def __call__(self, progress: WarmupProgress) -> None:
        if progress.seconds >= self._next:
            log.log(logging.INFO if self._next else logging.WARNING, "%s", progress)
            self._next = progress.seconds + LOG_EVERY


class _Compiler:
    """A process that compiles those of some parts that no other process is at."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = parts
        self.progress = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115
        here = str(Path(__file__).parents[2])
        path = os.pathsep.join([here, *filter(None, [os.environ.get("PYTHONPATH")])])
        what = json.dumps([(p.what, p.function, p.arguments) for p in parts])
        self.process = subprocess.Popen(
            [sys.executable, "-m", "drhg.kernels.warmup", what],
            stdin=subprocess.DEVNULL, stdout=self.progress, stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONPATH": path}, start_new_session=True,
        )  # fmt: skip

    def finished(self) -> bool:
        return self.process.poll() is not None

    def lines(self) -> list[str]:
        """The kernels that it has compiled so far."""
        self.progress.seek(0)
        return [line[1:].strip() for line in self.progress if line.startswith("+")]


def _compile_apart(
    parts: Sequence[Part],
    stopped: Callable[[], bool],
    on_progress: Callable[[WarmupProgress], None],
    limit: float,
) -> str | None:
    """Compile in processes of their own and wait; returns why not to the end, or None."""
    began = time.monotonic()
    begun = {part for compiler in _running for part in compiler.parts}
    left = sorted((part for part in parts if part not in begun), key=lambda part: -part.kernels)
    try:
        _running.extend(_Compiler(left) for _ in range(min(PROCESSES, cores(), len(left))))
    except OSError as error:  # no processes here: this one compiles when it loads
        log.info("compiling in this process, because no other can be started: %s", error)
        return None
    _make_numba_ready()
    total = sum(part.kernels for part in begun.union(left))
    shown = -1
    while not all(compiler.finished() for compiler in _running):
        lines = [line for compiler in _running for line in compiler.lines()]
        if len(lines) > shown:
            shown = len(lines)
            what = lines[-1] if lines else ""
            done = min(shown, total - 1)
            on_progress(WarmupProgress(done, total, what, time.monotonic() - began))
        if stopped():
            return "interrupted"
        if time.monotonic() - began > limit:
            return f"compiling took more than {limit:g} s"
        time.sleep(0.02)
    on_progress(WarmupProgress(total, total, "", time.monotonic() - began))
    for compiler in _running:
        compiler.progress.close()
    _running.clear()
    return None


def _make_numba_ready() -> None:
    """Import it and all that it knows, while others compile: about a second."""
    from numba.core.registry import cpu_target

    cpu_target.typing_context.refresh()
    cpu_target.target_context.refresh()


def _compile(parts: Sequence[Part]) -> None:
    """The work of a compiling process; every kernel that is finished is a line on its output."""
    gc.disable()  # a sixth of the time, and nothing here lives long
    from numba.core import event

    class Tell(event.Listener):
        def on_start(self, happened: Any) -> None:
            pass

        def on_end(self, happened: Any) -> None:
            print("+", happened.data["dispatcher"].py_func.__name__, flush=True)

    event.register("numba:compile", Tell())
    for patience in (0.0, LIMIT):  # first what no other process compiles
        for part in parts:
            if part.compiled:
                continue
            with part.locked(patience) as mine:
                if (mine or patience) and not part.compiled:
                    part.run()
                    part.keep()


if __name__ == "__main__":
    # the module of this name, not `__main__`, so that parts are of one class
    own: Any = importlib.import_module("drhg.kernels.warmup")
    own._compile([Part(what, name, tuple(given)) for what, name, given in json.loads(sys.argv[1])])

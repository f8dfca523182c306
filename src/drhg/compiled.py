"""What every compiled kernel shares: the decorator, distances, random numbers.

Importing this module imports numba, so only modules that the solver loads lazily may do it.
The cache folder is keyed by a hash of all kernel sources, because numba itself does not notice an
edit of a kernel that is called from another file. `drhg.precompile` fills the cache ahead of time.
"""

from __future__ import annotations

import hashlib
import logging
import math
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, cast

import llvmlite.binding as llvm
import numba
import numpy as np
import numpy.typing as npt
from numba import types
from numba.core import event

from drhg.problem import EARTH_RADIUS_KM, Instance, Metric

log = logging.getLogger("drhg")


def kernel_sources(package: Path) -> list[Path]:
    """The files that can hold a kernel, and every file of the package that those import from.

    A kernel freezes what it finds in other modules: functions, and the values of constants.
    """
    texts = {path: path.read_text(encoding="utf-8") for path in package.rglob("*.py")}
    found = {path for path, text in texts.items() if _HOLDS_KERNELS.search(text)}
    found.add(package / "compiled.py")
    new = found
    while new:
        names = {name for path in new for name in _imported(texts[path])}
        paths = {package.joinpath(*name.split(".")) for name in names}
        reached = {p.with_suffix(".py") for p in paths} | {p / "__init__.py" for p in paths}
        new = (reached & texts.keys()) - found
        found = found | new
    return sorted(found)


_HOLDS_KERNELS = re.compile(r"^from drhg\.compiled import", re.MULTILINE)
_IMPORT = re.compile(r"^from drhg(?:\.([\w.]+))? import (.*)", re.MULTILINE)


def _imported(text: str) -> list[str]:
    """Modules of the package that a file imports at its top."""
    found = []
    for module, names in _IMPORT.findall(text):
        found += [module] if module else re.findall(r"\w+", names)
    return found


def cache_key(package: Path) -> str:
    """Changes whenever compiled code may no longer fit: sources, numba, Python or processor."""
    digest = hashlib.sha256()
    for path in kernel_sources(package):
        stamp = path.stat()  # numba drops code whose source has another time or size
        digest.update(f"{path.relative_to(package)} {stamp.st_mtime_ns} {stamp.st_size}\n".encode())
        digest.update(path.read_bytes())
    machine = (numba.__version__, sys.version, llvm.get_host_cpu_name())
    digest.update(repr(machine).encode())
    digest.update(llvm.get_host_cpu_features().flatten().encode())
    return digest.hexdigest()[:16]


def _cache_folder() -> str:
    name = f"drhg-{cache_key(Path(__file__).parent)}"
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    for root in (
        os.environ.get("NUMBA_CACHE_DIR"),
        os.path.join(home, "drhg"),
        tempfile.gettempdir(),
    ):
        if not root:
            continue
        folder = os.path.join(root, name)
        try:
            os.makedirs(folder, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK):
            return folder
    return ""  # numba falls back to __pycache__, or compiles every time


CACHE_FOLDER = _cache_folder()


class _Announcer(event.Listener):
    """Says that kernels are being compiled, wherever that happens in this process."""

    def __init__(self) -> None:
        self._said = -math.inf

    def on_start(self, happened: Any) -> None:
        now = time.monotonic()
        if now - self._said > 10.0:  # seconds
            self._said = now
            name = happened.data["dispatcher"].py_func.__name__
            log.warning("compiling %s and what it needs; kept for later runs", name)

    def on_end(self, happened: Any) -> None:
        pass


event.register("numba:compile", _Announcer())


def kernel(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Compile on first call, without the GIL, cached on disk in the package's own folder."""
    config: Any = numba.config
    njit: Any = numba.njit
    before = config.CACHE_DIR
    config.CACHE_DIR = CACHE_FOLDER or before
    try:
        dispatcher = njit(
            cache=True, nogil=True, error_model="numpy", no_cfunc_wrapper=True, **options
        )(function)
    finally:
        config.CACHE_DIR = before
    if not config.DISABLE_JIT:
        dispatcher.get_call_template = partial(_call_template, dispatcher)
        dispatcher._cache.save_overload = partial(_save, dispatcher._cache.save_overload)
    return cast(Callable[..., Any], dispatcher)


def _call_template(dispatcher: Any, args: Sequence[Any], kws: dict[str, Any]) -> Any:
    """What kernels call one another with: whole numbers as int64, literals as plain values.

    Left alone, numba compiles a callee anew for every mixture of int32, int64 and literals.
    """
    wide = [_widened(one) for one in args]
    return type(dispatcher).get_call_template(
        dispatcher, wide, {key: _widened(one) for key, one in kws.items()}
    )


def _save(save: Callable[[Any, Any], None], signature: Any, compiled: Any) -> None:
    """A full disk costs the time to compile again, not a solution."""
    with suppress(OSError):
        save(signature, compiled)


def _widened(given: Any) -> Any:
    plain = types.unliteral(given)
    return types.int64 if plain in (types.int32, types.int16, types.int8) else plain


def inner(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """A kernel that only kernels call: Python cannot, which spares compiling an entry for it."""
    return kernel(function, no_cpython_wrapper=True, **options)


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compiled into its callers: a call would pass every array that it takes."""
    return inner(function, forceinline=True)


class Space(NamedTuple):
    """How kernels know distances: `distance(space, i, j)`."""

    metric: int
    points: npt.NDArray[np.float64]  # (n, 2); latitude and longitude in radians for GEO
    matrix: npt.NDArray[np.float64]  # (n, n) for EXPLICIT, else (0, 0)


def space_of(instance: Instance) -> Space:
    """The distances of an instance in the form kernels take."""
    points = instance.xy if instance._radians is None else instance._radians
    matrix = np.zeros((0, 0)) if instance.matrix is None else instance.matrix.astype(np.float64)
    if points is None or instance.metric is Metric.EXPLICIT:
        points = np.zeros((instance.n, 2))
    # a fresh copy: kernels are compiled for writeable arrays only, once
    return Space(int(instance.metric), np.array(points, dtype=np.float64, order="C"), matrix)


_EXACT, _EUC, _CEIL, _ATT, _GEO, _MAN, _MAX, EXPLICIT = (int(metric) for metric in Metric)


@kernel
def distance(space, i, j):
    """The compiled twin of `Instance.distance` for two nodes.

    Small enough to be inlined, which makes it fifteen times faster: rarer metrics live elsewhere.
    """
    if space.metric > _EUC:
        return _rare_distance(space, i, j)
    dx = space.points[i, 0] - space.points[j, 0]
    dy = space.points[i, 1] - space.points[j, 1]
    d = math.sqrt(dx * dx + dy * dy)
    return d if space.metric == _EXACT else math.floor(d + 0.5)


@inner
def _rare_distance(space, i, j):
    if space.metric == EXPLICIT:
        return space.matrix[i, j]
    if i == j:
        return 0.0
    dx = space.points[i, 0] - space.points[j, 0]
    dy = space.points[i, 1] - space.points[j, 1]
    if space.metric == _CEIL:
        return math.ceil(math.sqrt(dx * dx + dy * dy))
    if space.metric == _ATT:
        r = math.sqrt((dx * dx + dy * dy) / 10.0)
        t = math.floor(r + 0.5)
        return t + 1.0 if t < r else t
    if space.metric == _GEO:
        q1 = math.cos(dy)
        q2 = math.cos(dx)
        q3 = math.cos(space.points[i, 0] + space.points[j, 0])
        cosine = 0.5 * ((1.0 + q1) * q2 - (1.0 - q1) * q3)
        return math.floor(EARTH_RADIUS_KM * math.acos(min(1.0, max(-1.0, cosine))) + 1.0)
    if space.metric == _MAN:
        return math.floor(abs(dx) + abs(dy) + 0.5)
    return max(math.floor(abs(dx) + 0.5), math.floor(abs(dy) + 0.5))


def random_state(seed: int, stream: int = 0) -> npt.NDArray[np.uint64]:
    """State of one worker's generator; streams of one seed are independent."""
    return np.random.SeedSequence([seed, stream]).generate_state(2, np.uint64) | np.uint64(1)


@inner
def random_bits(state):
    """Next 64 random bits (xorshift128+); `state` is advanced in place."""
    a, b = state[0], state[1]
    state[0] = b
    a ^= a << np.uint64(23)
    a ^= a >> np.uint64(17)
    a ^= b ^ (b >> np.uint64(26))
    state[1] = a
    return a + b


@kernel
def random_float(state):
    """Uniform in [0, 1)."""
    return np.float64(random_bits(state) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@kernel
def random_below(state, n):
    """Uniform in 0 .. n - 1."""
    return np.int64(random_float(state) * n)


# What NumPy also offers, but takes numba a second or more to compile.


@inner
def sort_first(values, count):
    """Sort the first `count` values in place."""
    if count <= 32:  # by insertion
        for i in range(1, count):
            value = values[i]
            j = i
            while j > 0 and values[j - 1] > value:
                values[j] = values[j - 1]
                j -= 1
            values[j] = value
        return
    left, right = count >> 1, count - 1  # by a heap: build it, then take the largest out
    while right > 0:
        if left > 0:
            left -= 1
            value = values[left]
        else:
            value = values[right]
            values[right] = values[0]
            right -= 1
        at = left
        child = 2 * at + 1
        while child <= right:
            if child < right and values[child + 1] > values[child]:
                child += 1
            if values[child] <= value:
                break
            values[at] = values[child]
            at = child
            child = 2 * at + 1
        values[at] = value


@inner
def stable_order(values):
    """Places of the values in ascending order, equal ones as they stand; for a few hundred."""
    order = np.empty(len(values), np.int64)
    for i in range(len(values)):
        j = i
        while j > 0 and values[order[j - 1]] > values[i]:
            order[j] = order[j - 1]
            j -= 1
        order[j] = i
    return order


@inner
def copy_into(source, target):
    """Copy all values."""
    for i in range(len(source)):
        target[i] = source[i]

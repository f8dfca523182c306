"""How kernels are compiled.

Importing this module imports numba, so only modules that the solver loads lazily may do it.
`drhg.kernels.warmup` compiles ahead of time.
"""

from __future__ import annotations

import logging
import math
import operator
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, cast

import numba
from numba import types
from numba.core import event
from numba.core.caching import CacheImpl, _CacheLocator

from drhg.kernels.cache import folder_of, folder_of_all

log = logging.getLogger("drhg")


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


class _Folder(_CacheLocator):
    """Tells numba where a kernel is kept; the folder's name says which sources it was made of."""

    def __init__(self, folder: str, line: int, stamp: object) -> None:
        self._folder, self._line, self._stamp = folder, line, stamp

    def get_cache_path(self) -> str:
        return self._folder

    def get_source_stamp(self) -> object:
        return self._stamp

    def get_disambiguator(self) -> str:
        return str(self._line)

    @classmethod
    def from_function(cls, function: Any, file: str) -> _Folder | None:
        if not hasattr(function, "drhg_kernel"):
            return None  # somebody else's, so numba's own business
        ours = function.__module__.startswith("drhg.")
        folder = folder_of(function.__module__) if ours else folder_of_all()
        stamp = "" if ours else Path(file).read_bytes()
        return cls(folder, function.__code__.co_firstlineno, stamp) if folder else None


_locators: list[Any] = CacheImpl._locator_classes
_locators.insert(0, _Folder)


def _remember_operators() -> None:
    """Let numba find out only once what `a + b` or `a[i]` means for each combination of types.

    It looks through all that it knows for each occurrence, a quarter of the time to compile.
    """
    operators = frozenset(one for one in vars(operator).values() if callable(one))
    look_up = types.BaseFunction.get_call_type
    known: dict[tuple[Any, Any], Any] = {}

    def get_call_type(self: Any, context: Any, args: Any, kws: Any) -> Any:
        if kws or self.typing_key not in operators:
            return look_up(self, context, args, kws)
        if (self, args) not in known:
            known[self, args] = look_up(self, context, args, kws)
        return known[self, args]

    setattr(types.BaseFunction, "get_call_type", get_call_type)  # noqa: B010


_remember_operators()


def kernel(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Compile on first call, without the GIL, cached on disk in the package's own folder."""
    njit: Any = numba.njit
    options = {"cache": True, "nogil": True, "error_model": "numpy", **options}
    if vars(function).setdefault("drhg_kernel", options) != options:  # a crash, sooner or later
        raise TypeError(f"{function.__qualname__} has other options, and the cache keeps one kind")
    dispatcher = njit(no_cfunc_wrapper=True, **options)(function)
    config: Any = numba.config
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


_FAST = frozenset({"contract", "reassoc", "nsz"})


def fast_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel whose sums may be fused and reordered (no assumption about NaN or infinity)."""
    return kernel(function, fastmath=set(_FAST))


def fast_inner(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same, for kernels only."""
    return inner(function, fastmath=set(_FAST))

"""Where compiled kernels are kept.

Every module's kernels have a folder of their own, keyed by a hash of the module and all that it
imports, because numba itself does not notice an edit of a kernel that is called from another file.
What an edit cannot have changed stays compiled. This module does not import numba, which takes a
while.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import tempfile
from collections.abc import Iterable
from functools import cache
from importlib import metadata
from pathlib import Path

import llvmlite.binding as llvm


class Sources:
    """The source files of a package, and what each of them is compiled with.

    A kernel freezes what it finds in other modules: functions, and the values of constants.
    """

    def __init__(self, package: Path) -> None:
        self._package = package
        self._texts = {path: path.read_bytes() for path in package.rglob("*.py")}
        self._digests = {path: hashlib.sha256(text).digest() for path, text in self._texts.items()}
        self._always = package / "kernels" / "jit.py"  # says how everything is compiled

    def closure(self, *paths: Path) -> list[Path]:
        """Some files, and every file of the package that those import from."""
        new = found = {*paths, self._always}
        while new:
            new = {one for path in new for one in self._imported(path)} - found
            found = found | new
        return sorted(found)

    def of_kernels(self) -> list[Path]:
        """The files that can hold a kernel, and all that they import from."""
        return self.closure(*(p for p, text in self._texts.items() if _HOLDS_KERNELS.search(text)))

    def key(self, paths: Iterable[Path]) -> str:
        """Changes whenever code compiled from these files may no longer fit."""
        digest = hashlib.sha256(_MACHINE)
        for path in paths:
            digest.update(f"{path.relative_to(self._package)} ".encode() + self._digests[path])
        return digest.hexdigest()[:16]

    def _imported(self, path: Path) -> set[Path]:
        """The files of the package that a file imports at its top."""
        names: list[str] = []
        for module, what in _IMPORT.findall(self._texts[path].decode()):
            names += [module] if module else re.findall(r"\w+", what)
        paths = {self._package.joinpath(*name.split(".")) for name in names}
        reached = {p.with_suffix(".py") for p in paths} | {p / "__init__.py" for p in paths}
        return reached & self._texts.keys()


_HOLDS_KERNELS = re.compile(rb"^from drhg\.kernels\.jit import", re.MULTILINE)
_IMPORT = re.compile(r"^from drhg(?:\.([\w.]+))? import (.*)", re.MULTILINE)
_MACHINE = repr(
    (
        metadata.version("numba"), sys.version, llvm.get_host_cpu_name(),
        llvm.get_host_cpu_features().flatten(),
    )
).encode()  # fmt: skip

PACKAGE = Path(__file__).parents[1]
SOURCES = Sources(PACKAGE)


def _cache_folder() -> str:
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    for root in (
        os.environ.get("NUMBA_CACHE_DIR"),
        os.path.join(home, "drhg"),
        tempfile.gettempdir(),
    ):
        if not root:
            continue
        folder = os.path.join(root, "drhg-kernels")
        try:
            os.makedirs(folder, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK):
            return folder
    return ""  # numba falls back to __pycache__, or compiles every time


CACHE_FOLDER = _cache_folder()


@cache
def folder_of_all() -> str:
    """A folder for what depends on every kernel of the package."""
    return _folder("all", SOURCES.of_kernels())


@cache
def folder_of(module: str) -> str:
    """The folder for the kernels of a module of the package, "" if there is none to write to."""
    path = PACKAGE.joinpath(*module.split(".")[1:])
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return _folder(module, SOURCES.closure(file))


def _folder(name: str, paths: Iterable[Path]) -> str:
    if not CACHE_FOLDER:
        return ""
    folder = os.path.join(CACHE_FOLDER, f"{name}-{SOURCES.key(paths)}")
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError:
        return ""
    return folder

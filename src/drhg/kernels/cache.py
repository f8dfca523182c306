"""Where compiled kernels are kept.

The folder is keyed by a hash of all kernel sources, because numba itself does not notice an edit of
a kernel that is called from another file. This module does not import numba, which takes a while.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import tempfile
from importlib import metadata
from pathlib import Path

import llvmlite.binding as llvm


def kernel_sources(package: Path) -> list[Path]:
    """The files that can hold a kernel, and every file of the package that those import from.

    A kernel freezes what it finds in other modules: functions, and the values of constants.
    """
    texts = {path: path.read_text(encoding="utf-8") for path in package.rglob("*.py")}
    found = {path for path, text in texts.items() if _HOLDS_KERNELS.search(text)}
    found.add(package / "kernels" / "jit.py")
    new = found
    while new:
        names = {name for path in new for name in _imported(texts[path])}
        paths = {package.joinpath(*name.split(".")) for name in names}
        reached = {p.with_suffix(".py") for p in paths} | {p / "__init__.py" for p in paths}
        new = (reached & texts.keys()) - found
        found = found | new
    return sorted(found)


_HOLDS_KERNELS = re.compile(r"^from drhg\.kernels\.jit import", re.MULTILINE)
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
    machine = (metadata.version("numba"), sys.version, llvm.get_host_cpu_name())
    digest.update(repr(machine).encode())
    digest.update(llvm.get_host_cpu_features().flatten().encode())
    return digest.hexdigest()[:16]


def _cache_folder() -> str:
    name = f"drhg-{cache_key(Path(__file__).parents[1])}"
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

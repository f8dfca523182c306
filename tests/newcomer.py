"""The way of a newcomer, by the clock: a fresh clone, an install, 60 addresses to routes and a map.

    python tests/newcomer.py [SECONDS]

Everything is as on a new machine: an empty environment, an empty cache of kernels. What pip loads
comes from wherever it is set up to look. Fails if it takes longer than SECONDS (90), two threads
used at most.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
LIMIT = 90.0
SOLVE = (
    "solve examples/stops.csv --capacity 120 -t 5 --threads 2 -o routes.csv --map map.html --quiet"
)


def main(words: list[str]) -> None:
    limit = float(words[0]) if words else LIMIT
    with tempfile.TemporaryDirectory(prefix="drhg-newcomer-") as folder:
        clone = Path(folder) / "drhg"
        python = str(clone / ".venv/bin/python")
        pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
        steps = [
            ("clone", ["git", "clone", "--quiet", str(ROOT), str(clone)], Path(folder)),
            ("environment", [sys.executable, "-m", "venv", ".venv"], clone),
            ("install", [*pip, "."], clone),
            ("solve", [python, "-m", "drhg", *SOLVE.split()], clone),
        ]
        clean = {n: v for n, v in os.environ.items() if n not in ("PYTHONPATH", "NUMBA_CACHE_DIR")}
        clean["XDG_CACHE_HOME"] = folder
        began = time.perf_counter()
        for name, command, where in steps:
            before = time.perf_counter()
            ended = subprocess.run(command, cwd=where, env=clean, capture_output=True, text=True)
            if ended.returncode:
                sys.exit(f"{name} failed:\n{ended.stderr}")
            print(f"{name:12}{time.perf_counter() - before:6.1f} s", flush=True)
        took = time.perf_counter() - began
        assert (clone / "routes.csv").stat().st_size > 1000, "the route sheet is empty"
        assert (clone / "map.html").stat().st_size > 10_000, "the map is empty"
    print(f"{'in all':12}{took:6.1f} s, at most {limit:g} allowed")
    if took > limit:
        sys.exit("too slow")


if __name__ == "__main__":
    main(sys.argv[1:])

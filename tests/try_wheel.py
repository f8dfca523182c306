"""Install a wheel in an empty environment and solve with it, offline.

    python tests/try_wheel.py dist/drhg-*.whl             # dependencies of this Python
    python tests/try_wheel.py dist/drhg-*.whl --index     # dependencies as pip finds them

Says what it did; ends with an error if anything is missing or wrong.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src/drhg"


def shipped() -> set[str]:
    """Every file that the package has, as a wheel names it."""
    files = {path.relative_to(ROOT / "src") for path in SOURCE.rglob("*") if path.is_file()}
    return {path.as_posix() for path in files if "__pycache__" not in path.parts}


def missing(wheel: Path) -> set[str]:
    """What the package has and the wheel has not."""
    with zipfile.ZipFile(wheel) as archive:
        return shipped() - set(archive.namelist())


def environment(folder: Path, wheel: Path, index: bool) -> Path:
    """An environment with this wheel, and its Python."""
    venv.create(folder, with_pip=False)
    python = folder / "bin/python"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(python)]
    more = [] if index else ["--no-deps", "--no-index"]
    subprocess.run([*pip, "install", "--quiet", *more, str(wheel)], check=True)
    if not index:  # everything else from the Python that runs this
        [packages] = folder.glob("lib/python*/site-packages")
        outside = [path for path in sys.path if Path(path).name == "site-packages"]
        (packages / "outside.pth").write_text("\n".join(outside) + "\n", encoding="utf-8")
    return python


def without_network() -> list[str]:
    """What to put before a command so that it has no network, if this machine allows that."""
    words = ["unshare", "--net", "--map-root-user"]
    if shutil.which("unshare") is None or subprocess.run([*words, "true"], check=False).returncode:
        return []
    return words


def commands(stops: Path) -> list[list[str]]:
    tour = ["generate", "uniform-tsp", "-n", "60", "-o", "cities.tsp"]
    return [
        ["--version"],
        ["solve", str(stops), "--capacity", "120", "-n", "2000",
         "-o", "routes.csv", "--map", "map.html"],
        ["check", str(stops), "routes.csv", "--capacity", "120"],
        ["models"],
        tour,
        ["solve", "cities.tsp", "-m", "neural", "-n", "5", "-o", "cities.tour"],
        ["check", "cities.tsp", "cities.tour"],
    ]  # fmt: skip


FROM_WHEEL = """
import drhg, pathlib, sys
from drhg.training.recipe import names, read_recipe
home = pathlib.Path(drhg.__file__)
assert pathlib.Path(sys.prefix) in home.parents, home
assert len([read_recipe(name) for name in names()]) >= 5
"""


def main(words: list[str]) -> None:
    wheel, index = Path(words[0]).resolve(), "--index" in words
    if gone := missing(wheel):
        sys.exit(f"not in the wheel: {', '.join(sorted(gone))}")
    print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB, holds every file of the package")
    with tempfile.TemporaryDirectory(prefix="drhg-wheel-") as folder:
        python = environment(Path(folder) / "venv", wheel, index)
        alone = without_network()
        clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        calls = [["-c", FROM_WHEEL]]
        calls += [["-m", "drhg", *command] for command in commands(ROOT / "examples/stops.csv")]
        for call in calls:
            run = [*alone, str(python), *call]
            ended = subprocess.run(run, cwd=folder, env=clean, capture_output=True, text=True)
            if ended.returncode:
                sys.exit(f"exit code {ended.returncode}: {' '.join(call)}\n{ended.stderr}")
            if call[0] == "-m":
                print("fine:", *call[1:])
        page = Path(folder) / "map.html"
        assert page.stat().st_size > 10_000, "the map is empty"
    print("no network was there" if alone else "this machine cannot take the network away")


if __name__ == "__main__":
    main(sys.argv[1:])

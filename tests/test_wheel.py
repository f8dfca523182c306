"""The wheel: it holds every file of the package, and solves in an environment of its own."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import try_wheel

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--wheel-dir", str(folder), str(ROOT)], check=True)
    [found] = folder.glob("drhg-*.whl")
    return found


@pytest.mark.slow
def test_the_wheel_solves_alone(wheel: Path, capsys: pytest.CaptureFixture[str]) -> None:
    try_wheel.main([str(wheel)])
    assert "fine: drhg check cities.tsp cities.tour" in capsys.readouterr().out


@pytest.mark.slow
def test_a_file_that_is_missing_is_noticed(wheel: Path, tmp_path: Path) -> None:
    smaller = tmp_path / wheel.name
    with zipfile.ZipFile(wheel) as whole, zipfile.ZipFile(smaller, "w") as part:
        for name in whole.namelist():
            if not name.endswith("economy.safetensors"):
                part.writestr(name, whole.read(name))
    assert try_wheel.missing(wheel) == set()
    assert try_wheel.missing(smaller) == {"drhg/network/models/economy.safetensors"}

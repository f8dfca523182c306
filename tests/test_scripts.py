"""Scripts outside the package: they import what is there, and say how they are called."""

from __future__ import annotations

import ast
import importlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import drhg
from drhg.files.registry import write_instance

ROOT = Path(__file__).parent.parent
SCRIPTS = sorted(p for name in ("examples", "docs") for p in (ROOT / name).glob("*.py"))
GUARDED = [path for path in SCRIPTS if "__main__" in path.read_text(encoding="utf-8")]


def run(path: Path, *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(path), *words]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120)


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def exists(module: str, name: str) -> bool:
    if hasattr(importlib.import_module(module), name):
        return True
    try:
        importlib.import_module(f"{module}.{name}")
    except ModuleNotFoundError:
        return False
    return True


def absent(path: Path) -> Iterator[str]:
    """Names of this package that a script uses anywhere, in functions, too, and that are not."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    modules = {"drhg": "drhg"}  # by the name that they have in the script
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "drhg":
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                if not exists(str(node.module), alias.name):
                    yield f"line {node.lineno}: {whole}"
                elif whole in sys.modules:
                    modules[alias.asname or alias.name] = whole
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module = modules.get(node.value.id)
            if module is not None and not exists(module, node.attr):
                yield f"line {node.lineno}: {module}.{node.attr}"


def test_there_are_scripts() -> None:
    assert {"reference.py", "pictures.py"} <= {path.name for path in SCRIPTS}


@pytest.mark.parametrize("path", SCRIPTS, ids=name_of)
def test_everything_that_a_script_names_exists(path: Path) -> None:
    assert list(absent(path)) == []


def test_a_name_that_moved_is_noticed(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import drhg\nfrom drhg.search import strategy as s\n"
        "def f():\n    from drhg.search.strategy import Task, gone\n"
        "    drhg.solve(s.Budget, s.gone)\n"
        "    drhg.gone()\n"
    )
    assert list(absent(script)) == [
        "line 4: drhg.search.strategy.gone",
        "line 5: drhg.search.strategy.gone",
        "line 6: drhg.gone",
    ]


@pytest.mark.parametrize("path", GUARDED, ids=name_of)
def test_a_script_can_be_imported(path: Path, tmp_path: Path) -> None:
    code = f"import runpy; runpy.run_path({str(path)!r}, run_name='imported')"
    command = [sys.executable, "-c", code]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == ""


def test_a_reference_and_a_gap(tmp_path: Path) -> None:
    """What `make demo` does, in small."""
    instance = drhg.uniform_tsp(40, seed=1)
    write_instance(tmp_path / "x.tsp", instance)
    best = run(ROOT / "examples/reference.py", "x.tsp", "0.2", cwd=tmp_path)
    assert best.returncode == 0, best.stderr
    reference = float(best.stdout)
    assert reference > 0
    line = {"name": "x", "n": 40, "cost": 1.5 * reference, "seconds": 1.0, "iterations": 7}
    cost = f"{line['cost']:,.10g}"
    (tmp_path / "x.json").write_text(json.dumps(line))
    shown = run(ROOT / "examples/gap.py", "x.json", best.stdout.strip(), cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert "50.00 % over" in shown.stdout
    assert f"cost       {cost}\n" in shown.stdout


def test_the_reference_of_the_demo_is_that_of_its_instance(tmp_path: Path) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    words = re.search(r"drhg (generate .*) -o out/demo.tsp", makefile)
    best = re.search(r"^DEMO_REFERENCE \?= (\d+)$", makefile, re.MULTILINE)
    assert words is not None
    assert best is not None
    path = tmp_path / "demo.tsp"
    command = [sys.executable, "-m", "drhg", *words[1].split(), "-o", str(path)]
    subprocess.run(command, capture_output=True, check=True, timeout=60)
    found = drhg.solve(drhg.read(path), max_iters=300, seed=1).cost
    assert 1.0 <= found / int(best[1]) < 1.1


@pytest.mark.slow
def test_the_python_page_runs(tmp_path: Path) -> None:
    ended = run(ROOT / "examples/python_api.py", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert "route 1: depot -> " in ended.stdout
    assert (tmp_path / "deliveries.sol").exists()


def test_the_citation_is_that_of_the_proceedings() -> None:
    """The same in README.md and CITATION.cff."""
    cff = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "Zhengkun" not in cff + readme
    bibtex = readme.split("```bibtex")[1].split("```")[0]
    assert "Li, Ke and Liu, Fei and Wang, Zhenkun and Zhang, Qingfu" in bibtex
    assert "pages     = {18341--18349}" in bibtex
    for fact in ("Zhenkun", "18341", "18349", "2025", "2502.16170"):
        assert fact in cff
        assert fact in bibtex
    version = drhg.__version__
    assert f"\nversion: {version}\n" in cff

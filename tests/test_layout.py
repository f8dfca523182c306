"""How the package hangs together: who imports whom, what stays lazy, what is never called."""

from __future__ import annotations

import ast
import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import drhg
from drhg.problem import tolerances

SOURCE = Path(drhg.__file__).parent
ORDER = [
    "errors",
    "parallel",
    "problem",
    "files",
    "roads",
    "kernels",
    "construct",
    "hypergraph",
    "destroy",
    "local_search",
    "repair",
    "network",
    "search",
    "session",
    "plans",
    "training",
    "plotting",
    "benchmark",
    "service",
    "cli",
]  # imports point only upward, that is, to the left
HEAVY = ("numba", "scipy", "torch", "matplotlib")
FORBIDDEN = {"torch.load", "eval", "exec", "os.system", "os.popen", "__import__"}
FORBIDDEN_MODULES = {"pickle", "marshal", "shelve", "dill"}


def sources() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def module_of(path: Path) -> str:
    return path.relative_to(SOURCE).with_suffix("").parts[0]


def type_checking_lines(tree: ast.AST) -> set[int]:
    """Lines under `if TYPE_CHECKING:`, which never run."""
    lines: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for child in node.body:
                lines |= set(range(child.lineno, (child.end_lineno or child.lineno) + 1))
    return lines


def imported(path: Path) -> Iterator[tuple[int, str]]:
    """Modules of this package that a file imports, at the top or inside functions."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    never_run = type_checking_lines(tree)
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            base = node.module or ""
            names = [f"drhg.{a.name}" for a in node.names] if base == "drhg" else [base]
        for name in names:
            parts = name.split(".")
            inside = parts[0] == "drhg" and len(parts) > 1 and parts[1] in ORDER
            if inside and node.lineno not in never_run:
                yield node.lineno, parts[1]


def test_every_module_has_its_place() -> None:
    names = {module_of(path) for path in sources()} - {"__init__", "__main__"}
    assert names <= set(ORDER), f"not in the list of modules: {sorted(names - set(ORDER))}"


@pytest.mark.parametrize("path", sources(), ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_point_upward(path: Path) -> None:
    here = module_of(path)
    if here in ("__init__", "__main__"):
        return
    wrong = [
        f"{path.name}:{line}: {here} imports {name}"
        for line, name in imported(path)
        if name != here and ORDER.index(name) > ORDER.index(here)
    ]
    assert wrong == []


def test_only_model_and_training_touch_torch() -> None:
    for path in sources():
        if module_of(path) == "training" or path.stem == "torch_model":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not any(n.split(".")[0] == "torch" for n in names), path


@pytest.mark.parametrize("path", sources(), ids=lambda p: str(p.relative_to(SOURCE)))
def test_nothing_dangerous_is_called(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [a.name for a in node.names] + [getattr(node, "module", None) or ""]
            assert not FORBIDDEN_MODULES & {n.split(".")[0] for n in names}, node.lineno
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            assert "http://" not in node.value, f"{path}:{node.lineno}"
        if isinstance(node, ast.Call):
            assert ast.unparse(node.func) not in FORBIDDEN, f"{path}:{node.lineno}"
            shell = [k for k in node.keywords if k.arg == "shell"]
            assert not any(ast.unparse(k.value) == "True" for k in shell), f"{path}:{node.lineno}"


COMPILERS = {"kernel", "inner", "inlined", "fast_kernel", "fast_inner", "lent"}
MOST_ARGUMENTS = 10  # of a kernel: what always travels together is one NamedTuple


@pytest.mark.parametrize("path", sources(), ids=lambda p: str(p.relative_to(SOURCE)))
def test_kernels_take_few_arguments(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.FunctionDef):
            continue
        if COMPILERS & {ast.unparse(one) for one in node.decorator_list}:
            assert len(node.args.args) <= MOST_ARGUMENTS, f"{path}:{node.lineno}: {node.name}"


SEARCHING = {"construct", "hypergraph", "destroy", "local_search", "repair", "search", "session"}


@pytest.mark.parametrize("path", sources(), ids=lambda p: str(p.relative_to(SOURCE)))
def test_tolerances_are_on_one_page(path: Path) -> None:
    """A number this small in a search is a tolerance: its name says which, its page in what order.

    1e-300 only keeps a divisor from being zero, and parameters have bounds of their own.
    """
    if module_of(path) not in SEARCHING or path.name == "params.py":
        return
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, float):
            assert not 1e-299 < node.value < 1e-6, f"{path}:{node.lineno}: {node.value}"


def test_tolerances_have_an_order() -> None:
    """What one step takes for allowed, every later one does, too."""
    slacks = (
        tolerances.REPAIR_SLACK, tolerances.JUDGE_SLACK, tolerances.SEARCH_SLACK,
        tolerances.START_SLACK, tolerances.CHECK_SLACK,
    )  # fmt: skip
    assert sorted(set(slacks)) == list(slacks)
    assert tolerances.TIE < tolerances.GAIN < tolerances.PENALISED_GAIN


def loaded_after(code: str) -> set[str]:
    """The heavy modules in `sys.modules` after running `code` in a fresh interpreter."""
    probe = f"{code}\nimport sys\nprint('LOADED', *[m for m in {HEAVY!r} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    return set(run.stdout.splitlines()[-1].split()[1:])


def test_import_is_light() -> None:
    assert loaded_after("import drhg") == set()


@pytest.mark.parametrize("arguments", [["--help"], ["solve", "--help"], ["--version"]])
def test_help_is_light(arguments: list[str]) -> None:
    code = f"import drhg.cli\ndrhg.cli.app({arguments!r}, standalone_mode=False)"
    assert loaded_after(code) == set()


def test_methods_and_their_settings_are_light() -> None:
    code = (
        "import drhg\nfrom drhg.session.configure import configured, merged\n"
        "drhg.Regions(drhg.Covering(), drhg.Hybrid(), drhg.Anneal())\n"
        "configured('library', merged({}, ['destroy.k=9,50']))"
    )
    assert loaded_after(code) == set()


@pytest.mark.skipif("COVERAGE_RUN" in os.environ, reason="counting lines takes time itself")
def test_help_is_fast(capsys: pytest.CaptureFixture[str]) -> None:
    command = [sys.executable, "-m", "drhg", "--help"]
    seconds = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, capture_output=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    median = statistics.median(seconds)
    with capsys.disabled():
        print(f"\ndrhg --help: {median:.2f} s of a core (median of 5; aim 0.3)")
    assert median < 0.5  # a busy machine is slower per instruction, too

"""What the documentation shows runs: docstrings, Python blocks, shell blocks.

A block that takes too long, or needs what is not there, has a line `<!-- not run: WHY -->` above.
"""

from __future__ import annotations

import doctest
import importlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import drhg
from drhg.files import write_instance

ROOT = Path(__file__).parent.parent
SOURCE = Path(drhg.__file__).parent
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
BLOCK = re.compile(
    r"^(?:<!-- not run: (?P<why>[^>]+) -->\n)?```(?P<language>sh|python)\n(?P<body>.*?)^```",
    re.MULTILINE | re.DOTALL,
)
SECONDS = "0.3"  # instead of every time limit
# What sets up a machine or goes on for ever is tested elsewhere, or by the workflows.
ELSEWHERE = {"pip", "pipx", "uvx", "make", "git", "cd", "docker", "torchrun", "curl", "openssl"}
FOR_EVER = {"serve", "mcp"}

# --- docstrings ----------------------------------------------------------------------------------

WITH_EXAMPLES = [
    path for path in sorted(SOURCE.rglob("*.py")) if ">>> " in path.read_text(encoding="utf-8")
]


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=name_of)
def test_examples_in_docstrings(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    parts = ("drhg", *path.relative_to(SOURCE).with_suffix("").parts)
    module = importlib.import_module(".".join(part for part in parts if part != "__init__"))
    ran = doctest.testmod(module, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert ran.failed == 0
    assert ran.attempted > 0


# --- blocks of pages -----------------------------------------------------------------------------


def blocks(page: Path, language: str) -> Iterator[str]:
    """The blocks of a page that are to be run."""
    for found in BLOCK.finditer(page.read_text(encoding="utf-8")):
        if found["language"] == language and found["why"] is None:
            yield found["body"]


def with_blocks(language: str) -> list[Path]:
    return [page for page in PAGES if any(blocks(page, language))]


@pytest.fixture(scope="session")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the pages speak of."""
    folder = tmp_path_factory.mktemp("pages")
    shutil.copytree(ROOT / "examples", folder / "examples")
    shutil.copy(ROOT / "examples/stops.csv", folder)
    cities = drhg.uniform_tsp(52, seed=1)
    found = drhg.solve(cities, max_iters=50)
    for name in ("cities", "berlin52"):
        write_instance(folder / f"{name}.tsp", cities)
        found.save(folder / f"{name}.tour")
    found.save(folder / "known.tour")
    day = [[0, 900], *[[30 * i, 30 * i + 200] for i in range(1, 20)]]
    shops = drhg.vrp(xy=cities.xy[:20], windows=day, metric="TRUNC1", service_time=10)
    write_instance(folder / "C101.txt", shops)
    deliveries = drhg.x_cvrp(31, seed=1)
    write_instance(folder / "A-n32-k5.vrp", deliveries)
    drhg.solve(deliveries, max_iters=50).save(folder / "plan.sol")
    stops = drhg.read_table(folder / "stops.csv", capacity=120)
    drhg.solve(stops, max_iters=50).save(folder / "routes.csv")
    today = drhg.uniform_cvrp(20, seed=1)
    drhg.solve(today, max_iters=50).save(folder / "today.sol")
    write_instance(folder / "more.vrp", drhg.uniform_cvrp(23, seed=1))
    return folder


@pytest.fixture
def here(workplace: Path, tmp_path: Path) -> Path:
    return shutil.copytree(workplace, tmp_path / "pages")


def python(script: str, cwd: Path, given: str = "") -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(SOURCE.parent), *sys.path])}
    return subprocess.run(
        [sys.executable, "-c", script], cwd=cwd, input=given, env=environment,
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip


@pytest.mark.parametrize("page", with_blocks("python"), ids=name_of)
def test_python_blocks(page: Path, here: Path) -> None:
    ended = python("\n".join(blocks(page, "python")), here)
    assert ended.returncode == 0, ended.stderr


TUTORIALS = ROOT / "docs/tutorials"
CELL = re.compile(r"^```\{code-cell\}\n(?::[^\n]*\n)?(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(
    ("name", "needs"),
    [
        ("first-tour", ()),
        ("deliveries", ("pandas", "IPython")),
        ("replan", ("pandas",)),
        ("repairer", ()),
    ],
)
def test_cells_of_tutorials(name: str, needs: tuple[str, ...], here: Path) -> None:
    """`make docs` runs all of them, in a notebook; this runs their Python alone."""
    for module in needs:
        pytest.importorskip(module)
    cells = CELL.findall((TUTORIALS / f"{name}.md").read_text(encoding="utf-8"))
    assert len(cells) >= 5
    lines = [line for body in cells for line in body.splitlines()]
    script = "\n".join(line for line in lines if not line.startswith(("!", "%")))
    ended = python(f"import matplotlib\nmatplotlib.use('Agg')\n{script}", here)
    assert ended.returncode == 0, ended.stderr


def arguments(body: str, folder: Path) -> Iterator[list[str]]:
    """The words after `drhg` of every command in a block, with short limits and files by name."""
    for line in body.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if not words or words[0] in ELSEWHERE:
            continue
        assert words[0] == "drhg", f"neither run nor marked: {line}"
        if words[1] in FOR_EVER:
            continue
        if ">" in words:  # what is printed is not looked at
            words = words[: words.index(">")]
        assert not {"|", "&&", ";"} & set(words), f"one command on a line: {line}"
        yield [found for word in words[1:] for found in _files(word, folder)]


def _files(word: str, folder: Path) -> list[str]:
    if "*" not in word:
        return [word]
    return [str(path.relative_to(folder)) for path in sorted(folder.glob(word))]


def shortened(words: list[str]) -> list[str]:
    """The same with a time limit of a moment."""
    return [
        SECONDS if before in ("-t", "--time-limit") else word
        for before, word in zip(["", *words], words, strict=False)
    ]


RUN_ALL = """
import json, sys
from drhg.cli import app
for words in json.load(sys.stdin):
    if code := app(words, standalone_mode=False):
        sys.exit(f"exit code {code}: drhg {' '.join(words)}")
"""


@pytest.mark.parametrize("page", with_blocks("sh"), ids=name_of)
def test_shell_blocks(page: Path, here: Path) -> None:
    lines = [
        shortened(words) for body in blocks(page, "sh") for words in arguments(body, here)
    ]  # fmt: skip
    ended = python(RUN_ALL, here, json.dumps(lines))
    assert ended.returncode == 0, ended.stderr


def test_blocks_that_fail_are_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "```sh\ndrhg check gone.tsp -t 9  # no\n```\n<!-- not run: slow -->\n```sh\nrm x\n```\n"
    )
    [body] = blocks(page, "sh")
    [words] = arguments(body, tmp_path)
    assert shortened(words) == ["check", "gone.tsp", "-t", SECONDS]
    ended = python(RUN_ALL, tmp_path, json.dumps([["check", "gone.tsp", "gone.tour"]]))
    assert ended.returncode != 0
    with pytest.raises(AssertionError, match="neither run nor marked"):
        list(arguments("ls | wc\n", tmp_path))

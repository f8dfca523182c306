"""The documentation: commands that parse, links and names that exist, examples that run."""

from __future__ import annotations

import importlib
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.core import TyperGroup

import drhg
from drhg.cli import app
from drhg.files import write_instance
from drhg.session.configure import configured, merged

ROOT = Path(__file__).parent.parent
UsageError: Any = typer.BadParameter.__mro__[1]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
WORDS_FOR = {  # placeholders of the pages, by something that parses
    "SECONDS": "1", "K": "20,100", "S": "30-70", "...": "",
}  # fmt: skip


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def commands(text: str) -> Iterator[str]:
    """Every command of drhg in a block of code, an inline span or a table."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    shell = "\n".join(block for language, block in blocks if language in ("sh", "console"))
    lines = shell.replace("\\\n", " ").splitlines()
    spans = re.findall(r"`(drhg [^`]+)`", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S))
    for line in [*lines, *(" ".join(span.split()) for span in spans)]:
        line = line.strip().removeprefix("$ ")
        line = re.sub(r"^torchrun .* -m (?=drhg )", "", line)
        if line.startswith("drhg "):
            yield line


def problem_of(line: str) -> str | None:
    """Why the command line would refuse this, or None."""
    words = shlex.split(line, comments=True)
    for end in ("|", "&&", ";", ">"):
        words = words[: words.index(end)] if end in words else words
    command: Any = typer.main.get_command(app)
    words = [word for word in (WORDS_FOR.get(word, word) for word in words[1:]) if word]
    context = typer.Context(command, info_name="drhg")
    while isinstance(command, TyperGroup) and words and not words[0].startswith("-"):
        name = words.pop(0)
        found = command.get_command(context, name)
        if found is None:
            return f"there is no command {name}"
        command, context = found, typer.Context(found, info_name=name, parent=context)
    known = {o for p in command.get_params(context) for o in (*p.opts, *p.secondary_opts)}
    short = {option for option in known if not option.startswith("--")}
    for word in words:
        option = word.split("=")[0]
        if option.startswith("--") and option not in known | {"--help", "--version"}:
            return f"there is no option {option}"
        if re.fullmatch(r"-[a-zA-Z]", word) and word not in short | {"-h"}:
            return f"there is no option {word}"
    try:
        given, _, _ = command.make_parser(context).parse_args(
            args=[word for word in words if word != "--help"]
        )
    except UsageError as error:
        return str(error.format_message())
    return _wrong_settings(given)


def _wrong_settings(given: dict[str, Any]) -> str | None:
    """Why the settings of --set do not fit the method, or None."""
    changes = given.get("settings") or given.get("changes") or []
    for method in str(given.get("method") or "auto").split(","):
        try:
            configured(method, merged({}, changes))
        except drhg.DrhgError as error:
            return error.reason
    return None


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_command_parses(page: Path) -> None:
    wrong = {line: problem_of(line) for line in commands(page.read_text(encoding="utf-8"))}
    assert {line: why for line, why in wrong.items() if why is not None} == {}


def test_wrong_commands_are_noticed() -> None:
    assert problem_of("drhg solve x.tsp -t 10 -o x.tour  # fine") is None
    assert problem_of("drhg solve x.tsp --haste 9") == "there is no option --haste"
    assert problem_of("drhg dissolve x.tsp") == "there is no command dissolve"
    assert problem_of("drhg bench tsp --repair neural") == "there is no option --repair"
    assert "no such setting" in str(problem_of("drhg solve x.tsp -m local --set speed=9"))
    assert "unknown name" in str(problem_of("drhg bench tsp --method magic"))
    assert "requires an argument" in str(problem_of("drhg solve x.tsp -t"))
    text = "```sh\ndrhg solve a\nls\n```\nand `drhg check\na b` or `drhg`\n"
    assert list(commands(text)) == ["drhg solve a", "drhg check a b"]


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_relative_link_resolves(page: Path) -> None:
    wrong = []
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if re.match(r"[a-z]+:", link):
            continue
        file, _, anchor = link.partition("#")
        target = (page.parent / file) if file else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            wrong.append(link)
    assert wrong == []


def exists(name: str) -> bool:
    """Whether a dotted name is a module, or what a module holds."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_name_of_the_package_exists(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    names = set(re.findall(r"`(drhg(?:\.\w+)+)(?:\([^`]*\))?`", text))
    assert sorted(name for name in names if not exists(name)) == []
    files = re.findall(
        r"`((?:src/drhg|tests|docs|examples|benchmarks|search|session|cli|hypergraph|network"
        r"|training|files|problem|repair|destroy|kernels)/[a-z_\d/*.]+)`",
        text,
    )
    roots = (ROOT, ROOT / "src/drhg")
    gone = [file for file in files if not any(list(root.glob(file)) for root in roots)]
    assert gone == []


def test_a_name_that_is_gone_is_noticed() -> None:
    assert exists("drhg.solve")
    assert exists("drhg.hypergraph.judge.walk")
    assert not exists("drhg.hypergraph.judge.gone")
    assert not exists("drhg.gone.walk")


# --- examples ------------------------------------------------------------------------------------


def run(name: str, *words: str, cwd: Path) -> str:
    command = [sys.executable, str(ROOT / "examples" / f"{name}.py"), *words]
    ended = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def numbers(text: str) -> list[float]:
    return [float(number) for number in re.findall(r"\d+\.\d+", text)]


def test_a_destroy_operator_of_ones_own(tmp_path: Path) -> None:
    theirs, ours = numbers(run("destroy_operator", cwd=tmp_path))
    assert ours < 1.2 * theirs


def test_a_repairer_of_ones_own(tmp_path: Path) -> None:
    once, best = numbers(run("repairer", cwd=tmp_path))
    assert best < once


def test_a_network_of_ones_own(tmp_path: Path) -> None:
    after, before = numbers(run("network", cwd=tmp_path))
    assert after < before


def test_a_file_format_of_ones_own(tmp_path: Path) -> None:
    solved, refused = run("file_format", cwd=tmp_path).splitlines()
    assert solved.startswith("five: cost ")
    assert refused == "refused: .../five.points:2: not two numbers"


def test_a_command_of_ones_own(tmp_path: Path) -> None:
    plan = drhg.uniform_cvrp(12, seed=1)
    result = drhg.solve(plan, max_iters=200)
    write_instance(tmp_path / "plan.vrp", plan)
    drhg.write_solution(tmp_path / "plan.sol", plan, result.solution)
    lines = run("command", "routes", "plan.vrp", "plan.sol", cwd=tmp_path).splitlines()
    assert len(lines) == len(result.solution.routes)
    assert sum(numbers("\n".join(lines))) == pytest.approx(result.cost)


def test_a_variant_of_ones_own(tmp_path: Path) -> None:
    free, given = run("variant", cwd=tmp_path).splitlines()
    assert given.startswith("from node 0 to ")
    assert numbers(free)[0] <= numbers(given)[0] * 1.001


# --- the README ----------------------------------------------------------------------------------

README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_readme_is_short() -> None:
    assert len(README.split()) <= 700


def test_the_table_of_the_readme_is_that_of_the_results() -> None:
    """Every gap is a line of RESULTS.md; its solvers have rows of one version in both suites."""
    solvers = ("drhg", "fast_tsp", "hygese", "pyvrp", "ortools")
    commits = set()
    for suite in ("tsp", "cvrp"):
        rows = (ROOT / f"benchmarks/rows/{suite}.jsonl").read_text(encoding="utf-8").splitlines()
        made = [json.loads(row) for row in rows]
        commits |= {row["commit"] for row in made if row["solver"] in solvers}
    assert len(commits) == 1
    results = (ROOT / "RESULTS.md").read_text(encoding="utf-8")
    table = re.search(r"^\| set .*\n\|-.*\n((?:\|.*\n)+)", README, re.MULTILINE)
    assert table is not None
    for line in table[1].splitlines():
        cells = [cell.strip().replace("*", "") for cell in line.strip("|").split("|")]
        name, seconds, gaps = cells[0].split()[0], cells[1], cells[3:]
        assert any(gaps)
        for solver, gap in zip(solvers, gaps, strict=True):
            row = re.search(rf"^\| {name} \| {solver} \| {seconds} s, .*$", results, re.MULTILINE)
            if gap:
                assert row is not None
                found = [cell.strip() for cell in row[0].strip("|").split("|")]
                assert gap.split()[0] == (found[6] or "failed"), (name, solver)
                assert ("failed" in gap) == ("failed" in found[3]), (name, solver)


def test_every_page_is_in_the_site() -> None:
    """A page that no `toctree` of docs/index.md lists would be an error of `make docs`."""
    index = (ROOT / "docs/index.md").read_text(encoding="utf-8")
    trees = re.findall(r"^```\{toctree\}\n((?:.*\n)*?)```", index, re.MULTILINE)
    listed = {line for tree in trees for line in tree.splitlines() if line and line[0] != ":"}
    pages = [path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")]
    assert listed == {page.with_suffix("").as_posix() for page in pages} - {"index"}

"""What is shipped beside the package: the container, the compose file, the workflows."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from test_docs import problem_of

ROOT = Path(__file__).parent.parent
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")


def instructions(text: str) -> list[tuple[str, str]]:
    """Instruction and arguments of every line of a Dockerfile, continued lines joined."""
    plain = re.sub(r"^#.*\n", "", text, flags=re.MULTILINE).replace("\\\n", " ")
    lines = [line.strip() for line in plain.splitlines() if line.strip()]
    return [(line.split(maxsplit=1)[0], line.split(maxsplit=1)[1]) for line in lines]


def stages(text: str) -> list[list[tuple[str, str]]]:
    found: list[list[tuple[str, str]]] = []
    for name, rest in instructions(text):
        if name == "FROM":
            found.append([])
        found[-1].append((name, rest))
    return found


def complaints(text: str) -> list[str]:
    """The rules of hadolint that apply here, by their numbers where they have one."""
    last = stages(text)[-1]
    wrong = []
    for stage in stages(text):
        image = stage[0][1].split()[0]
        if ":" not in image or image.endswith(":latest"):
            wrong.append(f"DL3006, DL3007: {image} is no fixed version")
    users = [rest for name, rest in last if name == "USER"]
    if not users or users[-1] in ("root", "0"):
        wrong.append("DL3002: the last user is root")
    for name, rest in instructions(text):
        if name == "WORKDIR" and not rest.startswith("/"):
            wrong.append(f"DL3000: {rest} is not absolute")
        if name == "RUN" and re.search(r"\b(sudo|cd)\b", rest):
            wrong.append(f"DL3003, DL3004: {rest}")
        if name == "ADD":
            wrong.append("DL3020: COPY instead of ADD")
        if name in ("CMD", "ENTRYPOINT") and not isinstance(json.loads(rest), list):
            wrong.append(f"DL3025: {rest}")
        if name == "RUN" and "pip install" in rest and "PIP_NO_CACHE_DIR=1" not in text:
            wrong.append(f"DL3042: {rest}")
    if "HEALTHCHECK" not in text and sum(name == "ENTRYPOINT" for name, _ in last) != 1:
        wrong.append("DL4004: one entry point")
    return wrong


def test_the_container() -> None:
    assert complaints(DOCKERFILE) == []
    copied = [rest for name, rest in instructions(DOCKERFILE) if name == "COPY"]
    allowed = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    for words in (shlex.split(rest) for rest in copied):
        if not words[0].startswith("--from"):
            for source in words[:-1]:
                assert (ROOT / source).exists(), source
                assert f"!{source}" in allowed, f"{source} is not let in"
    used = set(re.search(r"'\.\[([\w,]+)\]'", DOCKERFILE)[1].split(","))  # type: ignore[index]
    assert used <= extras()


def test_a_careless_container_is_noticed() -> None:
    text = 'FROM python\nWORKDIR here\nADD . /x\nRUN cd /x && pip install .\nCMD "drhg"\n'
    rules = {number for line in complaints(text) for number in re.findall(r"DL\d+", line)}
    expected = {"DL3000", "DL3002", "DL3003", "DL3006", "DL3020", "DL3025", "DL3042"}
    assert expected <= rules


def extras() -> set[str]:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return set(project["optional-dependencies"])


def test_the_compose_file() -> None:
    services = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["services"]
    service = services["drhg"]
    assert problem_of(shlex.join(["drhg", *service["command"]])) is None
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    where = {volume.split(":")[1] for volume in service["volumes"]} | set(service["tmpfs"])
    store = Path(service["command"][service["command"].index("--store") + 1])
    kernels = re.search(r"NUMBA_CACHE_DIR=(\S+)", DOCKERFILE)
    assert kernels is not None
    assert {str(store.parent), kernels[1]} <= where


def targets() -> set[str]:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z][\w-]*):", makefile, re.MULTILINE))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_run_what_is_there(path: Path) -> None:
    workflow: dict[Any, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    made = [step["run"].split()[1] for step in steps if step.get("run", "").startswith("make ")]
    assert made
    assert set(made) <= targets()
    assert all(job["timeout-minutes"] for job in workflow["jobs"].values())
    assert all(re.search(r"@v\d+$", step["uses"]) for step in steps if "uses" in step)


def test_every_target_is_told() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    told = set(re.findall(r'^\t@echo "make ([\w-]+)', makefile, re.MULTILINE))
    declared = re.search(r"^\.PHONY:((?:.*\\\n)*.*)$", makefile, re.MULTILINE)
    assert declared is not None
    names = set(declared[1].replace("\\", " ").split())
    assert names - told == {"help"}
    assert names <= targets()

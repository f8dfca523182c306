"""VRPTW files: windows and service times come and go, and faults are told with their line."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import drhg
from drhg.errors import DrhgError, InstanceError
from drhg.files.tsplib import format_instance, parse
from drhg.problem.generate_windows import LAWS, windows_vrp

DATA = Path(os.environ.get("DRHG_DATA", "none")) / "vrptw"
TEXT = format_instance(windows_vrp("R1", 5, 1, density=1.0))


@given(st.sampled_from(list(LAWS)), st.integers(1, 30), st.integers(0, 10**6), st.booleans())
def test_what_is_written_is_read(kind: str, n: int, seed: int, differ: bool) -> None:
    instance = windows_vrp(kind, n, seed)
    if differ:
        instance = replace(instance, service_time=np.arange(instance.n) % 4 * 1.0)
    assert parse(format_instance(instance)) == instance


def edited(*changes: tuple[str, str]) -> str:
    text = TEXT
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


def row_of(node: int, text: str = TEXT) -> tuple[str, int]:
    """A node's line in the section of windows, and its number in the file."""
    lines = text.split("\n")
    at = lines.index("TIME_WINDOW_SECTION") + node
    return lines[at], at + 1


@pytest.mark.parametrize(
    ("text", "words", "line"),
    [
        (edited(("TYPE: VRPTW", "TYPE: CVRP")), "TIME_WINDOW_SECTION does not belong in a CVRP",
         row_of(1)[1] - 1),
        (TEXT.partition("TIME_WINDOW_SECTION")[0] + "EOF\n", "TIME_WINDOW_SECTION is missing",
         row_of(1)[1] - 1),
        (edited((row_of(3)[0], "3 50 20")), "node 3 of the file has a window that opens at 50",
         row_of(3)[1]),
        (edited((row_of(4)[0], "4 0 1")), "node 4 of the file cannot be reached before",
         row_of(4)[1]),
        (edited((row_of(2)[0], "2 7")), "expected a node and 2", row_of(2)[1]),
    ],
)  # fmt: skip
def test_faults_are_told_with_their_line(text: str, words: str, line: int) -> None:
    with pytest.raises(InstanceError, match=words) as caught:
        parse(text)
    assert caught.value.line == line


def test_windows_without_an_end_are_refused_when_written() -> None:
    shops = drhg.vrp(xy=[[0, 0], [0, 3]], windows=[[0, np.inf], [5, np.inf]])
    with pytest.raises(DrhgError, match=r"windows without an end; .*json"):
        format_instance(shops)


@pytest.mark.skipif(not DATA.is_dir(), reason="needs the folder vrptw in $DRHG_DATA")
def test_best_known_plans_are_valid_at_their_cost() -> None:
    for name in ("C1_10_1", "R2_10_3"):
        instance = replace(drhg.read(DATA / f"{name}.vrp"), metric="TRUNC1")
        plan = drhg.read_solution(DATA / f"{name}.sol", instance)
        assert drhg.check(instance, plan) == []
        known = (DATA / f"{name}.sol").read_text().split()[-1]
        assert drhg.cost(instance, plan) == float(known)

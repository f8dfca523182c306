"""Every search repeats its golden trajectory, see `golden/cases.py`."""

from __future__ import annotations

import json

import pytest
from golden.cases import CASES, FILE, trajectory

KNOWN = json.loads(FILE.read_text(encoding="utf-8"))


def test_every_case_is_recorded() -> None:
    assert list(KNOWN) == list(CASES)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.compiled
def test_trajectory(name: str) -> None:
    assert trajectory(name) == KNOWN[name]

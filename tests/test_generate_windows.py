"""Instances with time windows: anybody can be served alone, and a kind is what its name says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import drhg
from drhg.errors import InstanceError
from drhg.problem.generate_windows import LAWS, windows_vrp


@given(st.sampled_from(list(LAWS)), st.integers(1, 150), st.integers(0, 10**6))
def test_everybody_can_be_served_alone(kind: str, n: int, seed: int) -> None:
    instance = windows_vrp(kind, n, seed)
    alone = drhg.Solution([[i] for i in range(1, instance.n)])
    assert drhg.check(instance, alone) == []
    assert instance == windows_vrp(kind, n, seed)


def test_kinds_differ_as_their_names_say() -> None:
    made = {kind: windows_vrp(kind, 200, 1, density=1.0) for kind in LAWS}
    horizon = {kind: instance.closes[0] for kind, instance in made.items()}
    width = {kind: np.mean(i.closes[1:] - i.opens[1:]) for kind, i in made.items()}
    for place in ("R", "C", "RC"):
        assert horizon[f"{place}2"] > 2 * horizon[f"{place}1"]
        assert width[f"{place}2"] > 2 * width[f"{place}1"]
    free = windows_vrp("R1", 200, 1, density=0.25)
    assert 30 <= np.count_nonzero(free.closes[1:] < free.closes[0]) <= 70


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(InstanceError, match="kind must be one of R1, R2, C1, C2, RC1, RC2"):
        windows_vrp("R3", 10)

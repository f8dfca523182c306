"""Parameters of the search for routes: light, checked by name, and each of them counts."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import FrozenInstanceError, fields, replace

import pytest

from drhg.errors import DrhgError
from drhg.search.routes.params import (
    AnnealingParams,
    GeneticParams,
    PieceParams,
    PieceRuinParams,
    PoolParams,
    RouteMoveParams,
    RouteSizes,
    RuinParams,
)
from drhg.search.routes.strategy import Routes

KINDS = [GeneticParams, AnnealingParams, RuinParams, RouteMoveParams, RouteSizes, PieceParams,
         PieceRuinParams, PoolParams]  # fmt: skip


def test_parameters_do_without_kernels() -> None:
    code = (
        "import sys; from drhg.search.routes.strategy import Routes; Routes(); "
        "assert not {'numba', 'scipy', 'torch'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("kind", KINDS)
def test_a_wrong_value_names_its_field(kind: type) -> None:
    for field in fields(kind):
        name = field.name
        for wrong in (field.metadata["least"] - 1, "many", None, float("nan"), True):
            with pytest.raises(DrhgError, match=f"^{name} must be"):
                kind(**{name: wrong})
        if field.metadata["most"] < float("inf"):
            with pytest.raises(DrhgError, match=f"^{name} must be at most"):
                kind(**{name: 2.0})


def test_numbers_are_of_the_kind_of_their_field() -> None:
    params = GeneticParams(elite=3.0, patience=20)  # type: ignore[arg-type]
    assert isinstance(params.elite, int)
    assert isinstance(params.patience, float)
    assert params == GeneticParams(elite=3, patience=20.0)


def test_methods_are_values() -> None:
    method = Routes(genetic=GeneticParams(target_feasible=0.3))
    assert method == replace(Routes(), genetic=GeneticParams(target_feasible=0.3)) != Routes()
    assert {field.name for field in fields(Routes)} == {
        "genetic", "annealing", "ruin", "moves", "sizes", "pieces", "piece_annealing",
        "piece_ruin", "pool",
    }  # fmt: skip
    with pytest.raises(FrozenInstanceError):
        method.genetic = GeneticParams()  # type: ignore[misc]


def test_which_search_for_which_size() -> None:
    sizes = RouteSizes(genetic=20, genetic_long=30, copies=60, subproblems=100)
    for customers, long, endless, expected in [
        (20, False, False, True), (21, False, False, False),
        (30, True, False, True), (31, True, False, False),
        (60, False, True, True), (61, True, True, False),
    ]:  # fmt: skip
        assert sizes.is_genetic(customers, long, endless) == expected
    assert sizes.end_of_annealing(100) == sizes.annealing_share < 1.0
    assert sizes.end_of_annealing(101) == 1.0

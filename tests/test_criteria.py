"""When to stop and what to accept: pure functions, so every case is a literal."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from drhg.search.criteria import Anneal, Improve, Limits, Moment, Progress


def progress(
    seconds: float = 0.0, iterations: int = 0, unimproved: int = 0, cost: float = 100
) -> Progress:
    return Progress(seconds, iterations, unimproved, cost)


@dataclass
class Dice:
    """Stands in for a generator: always draws the same number."""

    value: float

    def random(self) -> float:
        return self.value


@pytest.mark.parametrize(
    ("limits", "at", "status"),
    [
        (Limits(), progress(1e9, 10**9, 10**9, -1e9), None),
        (Limits(time_limit=2.0), progress(1.999), None),
        (Limits(time_limit=2.0), progress(2.0), "time"),
        (Limits(time_limit=0.0), progress(0.0), "time"),
        (Limits(max_iters=5), progress(1e9, 4), None),
        (Limits(max_iters=5), progress(0.0, 5), "iterations"),
        (Limits(max_iters=5), progress(0.0, 6), "iterations"),
        (Limits(max_iters=0), progress(), "iterations"),
        (Limits(no_improve=3), progress(0.0, 9, 2), None),
        (Limits(no_improve=3), progress(0.0, 9, 3), "no_improve"),
        (Limits(target=100), progress(cost=100.5), None),
        (Limits(target=100), progress(cost=100), "target"),
        (Limits(target=100.0), progress(cost=math.inf), None),
    ],
)
def test_one_limit(limits: Limits, at: Progress, status: str | None) -> None:
    assert limits.reached(at) == status


@pytest.mark.parametrize(
    ("limits", "left"),
    [
        (Limits(time_limit=2.0, target=1), None),
        (Limits(max_iters=50), 10),
        (Limits(no_improve=20), 13),
        (Limits(max_iters=50, no_improve=20), 10),
        (Limits(max_iters=90, no_improve=20), 13),
    ],
)
def test_iterations_left(limits: Limits, left: int | None) -> None:
    assert limits.left(progress(1.0, 40, 7)) == left


def test_the_best_news_first_when_limits_are_met_together() -> None:
    everything = progress(9.0, 9, 9, 9)
    assert Limits(1, 1, 1, 10).reached(everything) == "target"
    assert Limits(1, 1, 1, 8).reached(everything) == "iterations"
    assert Limits(1, None, 1).reached(everything) == "no_improve"
    assert Limits(1).reached(everything) == "time"


@pytest.mark.parametrize(
    ("limits", "at", "share"),
    [
        (Limits(time_limit=8.0), progress(2.0), 0.25),
        (Limits(time_limit=8.0), progress(9.0), 1.0),
        (Limits(time_limit=0.0), progress(0.0), 0.0),
        (Limits(time_limit=0.5), progress(0.25), 0.5),
        (Limits(time_limit=8.0, max_iters=10), progress(7.0, 5), 0.5),
        (Limits(max_iters=10), progress(7.0, 12), 1.0),
        (Limits(max_iters=0), progress(), 0.0),
        (Limits(max_iters=1), progress(0.0, 1), 1.0),
        (Limits(target=3), progress(), None),
    ],
)
def test_the_fraction_counts_iterations_before_seconds(
    limits: Limits, at: Progress, share: float | None
) -> None:
    assert limits.fraction(at) == share


@pytest.mark.parametrize(
    ("delta", "taken"), [(-1.0, True), (-1e-6, True), (-1e-9, False), (0.0, False), (1.0, False)]
)
def test_improve_takes_only_what_is_better(delta: float, taken: bool) -> None:
    assert Improve()(delta, Moment(0.0, 1.0), np.random.default_rng(0)) is taken


@pytest.mark.parametrize(
    ("delta", "over", "dice", "taken"),
    [
        (-0.001, 0.0, 0.0, True),  # better: whatever the dice say
        (-0.001, 1.0, 0.0, True),
        (0.0, 0.0, 0.0, False),  # equal: only by luck
        (0.0, 0.0, 0.5, True),
        # worse by d is taken with probability exp(-d / temperature): here 10, then 1, then 0.1
        (10 * math.log(2), 0.0, 0.501, True),
        (10 * math.log(2), 0.0, 0.499, False),
        (1 * math.log(2), 0.5, 0.501, True),
        (1 * math.log(2), 0.5, 0.499, False),
        (0.1 * math.log(2), 1.0, 0.501, True),
        (0.1 * math.log(2), 1.0, 0.499, False),
    ],
)
def test_anneal(delta: float, over: float, dice: float, taken: bool) -> None:
    rng: Any = Dice(dice)
    assert Anneal(10.0, 0.1)(delta, Moment(over, 1.0), rng) is taken
    assert Anneal(5.0, 0.05)(delta, Moment(over, 2.0), rng) is taken  # in mean edges


def test_anneal_is_cold_if_the_end_is_not_known() -> None:
    rng: Any = Dice(0.5)
    assert not Anneal(100.0, 0.1)(1.0, Moment(None, 1.0), rng)

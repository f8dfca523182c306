"""Rivals: what a misbehaving one becomes, and that the adapters speak their packages' language."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import drhg
from drhg.benchmark.rivals import RIVALS, Outcome, Rival, chosen, distances, judged, run_guarded
from drhg.errors import DrhgError
from drhg.problem import Instance
from drhg.problem.generate_windows import windows_vrp

TOUR = drhg.uniform_tsp(12, seed=3)


# Adapters that misbehave; they run in another process, so they are functions of this file.


def good(instance: Instance, seconds: float, seed: int, threads: int) -> Callable[[], Any]:
    return lambda: [np.roll(np.arange(instance.n), seed)]


def crashing(instance: Instance, seconds: float, seed: int, threads: int) -> Callable[[], Any]:
    return lambda: os.kill(os.getpid(), 11)


def raising(instance: Instance, seconds: float, seed: int, threads: int) -> Callable[[], Any]:
    return lambda: [[]][7]


def importing(instance: Instance, seconds: float, seed: int, threads: int) -> Callable[[], Any]:
    raise ImportError("no such library")


def hanging(instance: Instance, seconds: float, seed: int, threads: int) -> Callable[[], Any]:
    return lambda: time.sleep(3600)


def overshooting(instance: Instance, seconds: float, seed: int, threads: int) -> Callable[[], Any]:
    def run() -> Any:
        time.sleep(3 * seconds + 0.2)
        return [list(range(instance.n))]

    return run


def incomplete(instance: Instance, seconds: float, seed: int, threads: int) -> Callable[[], Any]:
    return lambda: [list(range(instance.n - 1))]


def talking(instance: Instance, seconds: float, seed: int, threads: int) -> Callable[[], Any]:
    return lambda: "a very good tour"


def floating(instance: Instance, seconds: float, seed: int, threads: int) -> Callable[[], Any]:
    return lambda: [[0.5] * instance.n]


def odd(instance: Instance, seconds: float, seed: int, threads: int) -> Callable[[], Any]:
    return lambda: [object()]


def half(instance: Instance, seconds: float, seed: int, threads: int) -> Callable[[], Any]:
    """Good with one seed, dead with another."""
    return good(instance, seconds, 0, 1) if seed else crashing(instance, seconds, 0, 1)


def injected(prepare: Any, **more: Any) -> Rival:
    return Rival("injected", "json", prepare, tours=True, **more)


@pytest.mark.parametrize(
    ("prepare", "status", "word"),
    [
        (good, "ok", ""),
        (crashing, "crashed", "-11"),
        (raising, "crashed", "IndexError"),
        (importing, "crashed", "no such library"),
        (overshooting, "late", ""),
        (incomplete, "invalid", "node 11 (counted from 0) is not visited"),
        (talking, "garbage", ""),
        (floating, "garbage", "node numbers"),
        (odd, "garbage", ""),
    ],
)
def test_whatever_a_rival_does_becomes_an_outcome(prepare: Any, status: str, word: str) -> None:
    outcome = run_guarded(injected(prepare), TOUR, 0.1)
    assert outcome.status == status
    assert word in outcome.error
    assert (outcome.cost is not None) == (status in ("ok", "late"))


def test_a_hanging_rival_is_ended() -> None:
    began = time.monotonic()
    outcome = run_guarded(injected(hanging), TOUR, 0.1, wait=0.5)
    assert outcome.status == "hung"
    assert time.monotonic() - began < 20
    assert "0.5 s after its limit" in outcome.error


def test_the_best_of_several_seeds_counts() -> None:
    outcome = run_guarded(injected(half, seeded=True), TOUR, 0.1, seed=0, threads=2)
    assert outcome.status == "ok"  # seed 0 died, seed 1 answered
    assert run_guarded(injected(half, seeded=True), TOUR, 0.1, seed=0).status == "crashed"


def test_our_checker_prices_the_answer() -> None:
    outcome = run_guarded(injected(good), TOUR, 0.1)
    assert outcome.cost == drhg.cost(TOUR, drhg.Solution([np.arange(12)]))


@pytest.mark.parametrize(
    "message",
    [b"", b"[]", b"null", b"{}", b'{"routes": 3, "seconds": 1}', b'{"routes": [[0]]}', b"\xff\xfe",
     b'{"routes": [[99999999999999999999]], "seconds": 1}', b'{"routes": [[true]], "seconds": 1}',
     b'{"routes": [["0"]], "seconds": "soon"}'],
)  # fmt: skip
def test_no_message_is_trusted(message: bytes) -> None:
    assert judged(message, TOUR, 1.0).status == "garbage"


def test_numbers_outside_are_invalid() -> None:
    assert judged(b'{"routes": [[0, 1, 77]], "seconds": 0.1}', TOUR, 1.0).status == "invalid"


def test_unfit_instances_are_skipped_with_a_reason() -> None:
    plan = drhg.uniform_cvrp(10, seed=1)
    rival = injected(good, most=20)
    assert "CVRP" in run_guarded(rival, plan, 0.1).error
    assert "at most 20" in run_guarded(rival, drhg.uniform_tsp(21), 0.1).error
    fixed = drhg.tsp(TOUR.xy, fixed_edges=[(0, 5)])
    assert run_guarded(rival, fixed, 0.1) == Outcome("skipped", error="knows no fixed edges")
    limited = replace(plan, max_distance=5.0)
    assert "length" in run_guarded(RIVALS["hygese"], limited, 0.1).error


def test_absent_packages_are_named_and_unknown_ones_refused() -> None:
    here, absent = chosen("fast_tsp, elkai,fast_tsp")
    assert [r.name for r in here if r.name == "fast_tsp"] == ["fast_tsp"]
    assert all(not RIVALS[name].installed for name in absent)
    with pytest.raises(DrhgError, match="unknown rival 'lkh'"):
        chosen("fast_tsp,lkh")


def test_academic_rivals_say_so() -> None:
    assert RIVALS["elkai"].licence


def test_distances_are_exact_or_fine() -> None:
    whole = drhg.x_cvrp(15, seed=2)
    i = np.arange(whole.n)
    exact = whole.distance(i[:, None], i[None, :])
    assert np.array_equal(distances(whole), exact)
    assert np.array_equal(distances(whole, 65_535), exact)
    assert distances(whole, 100).max() == 100  # scaled down
    fine = distances(TOUR, 65_535)
    assert fine.max() == 65_535
    i = np.arange(TOUR.n)
    scaled = TOUR.distance(i[:, None], i[None, :])
    assert np.allclose(fine / 65_535, scaled / scaled.max(), atol=1e-5)


SMALL = (
    drhg.uniform_tsp(30, 1), drhg.x_cvrp(20, 1), drhg.uniform_cvrp(20, 1),
    windows_vrp("RC1", 20, 1),
    drhg.tsp(matrix=np.random.default_rng(3).integers(1, 1000, (20, 20)), name="directed"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("rival", "instance"),
    [
        pytest.param(rival, instance, id=f"{rival.name}-{instance.name}")
        for rival in RIVALS.values()
        for instance in SMALL
        if rival.unfit(instance) is None
    ],
)
def test_adapters_give_valid_answers(rival: Rival, instance: Instance) -> None:
    if rival.licence:  # not everybody may install it; all others must be there
        pytest.importorskip(rival.package)
    outcome = run_guarded(rival, instance, 0.3, threads=2, wait=30.0)
    assert outcome.status in ("ok", "late"), outcome.error
    ours = drhg.solve(instance, max_iters=300, seed=1).cost
    assert outcome.cost is not None
    assert outcome.cost <= 1.1 * ours  # the adapter did not lose the problem on the way


def test_a_depot_in_the_middle_is_found() -> None:
    plan = drhg.uniform_cvrp(15, seed=4)
    assert plan.xy is not None
    assert plan.demand is not None
    assert plan.capacity is not None
    order = np.roll(np.arange(plan.n), 5)
    moved = drhg.cvrp(plan.xy[order], plan.demand[order], plan.capacity, depot=5)
    for name in ("pyvrp", "hygese"):
        outcome = run_guarded(RIVALS[name], moved, 0.2, wait=30.0)
        assert outcome.status in ("ok", "late"), outcome.error

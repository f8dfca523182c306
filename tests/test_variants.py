"""Variants: what may be asked, what is refused, and whether the checker walks as we do."""

from __future__ import annotations

import copy
import math
import pickle
import re
from dataclasses import replace

import numpy as np
import pytest
import reference as ref

import drhg
from drhg import InstanceError, Solution, check, cost, schedule, tsp, vrp
from drhg.files import from_json, to_json
from drhg.problem import not_known, variants_of

SQUARE = [[0, 0], [0, 3], [4, 3], [4, 0]]
DAY = [[0, 50], [0, 50], [0, 50], [0, 50]]


def day(**changed: object) -> drhg.Instance:
    return vrp(**({"xy": SQUARE, "windows": DAY} | changed))  # type: ignore[arg-type]


# --- the checker against a slow walk --------------------------------------------------------------


@pytest.mark.parametrize("seed", range(10))
def test_checker_and_schedule_agree_with_the_walk(seed: int) -> None:
    rng = np.random.default_rng(seed)
    late_routes = 0
    for _ in range(100):
        instance = ref.random_windows(rng, int(rng.integers(2, 9)))
        order = 1 + rng.permutation(instance.n - 1)
        cuts = np.flatnonzero(rng.random(instance.n - 2) < 0.4) + 1
        plan = Solution(np.split(order, cuts))
        assert cost(instance, plan) == ref.cost(instance, [r.tolist() for r in plan.routes])
        found = check(instance, plan)
        timetable = schedule(instance, plan)
        for number, (route, one) in enumerate(zip(plan.routes, timetable, strict=True), start=1):
            late, duration, leave = ref.best_departure(instance, route.tolist())
            assert (one.lateness.sum(), one.duration, one.departure[0]) == (late, duration, leave)
            walked = ref.walk(instance, route.tolist(), leave)
            assert one.nodes[1:].tolist() == [node for node, _, _ in walked]
            assert one.arrival[1:].tolist() == [arrival for _, arrival, _ in walked]
            assert one.begin[1:].tolist() == [begin for _, _, begin in walked]
            assert one.distance[-1] == ref.route_length(instance, route.tolist())
            said = [w for w in found if re.match(rf"route {number} (reaches|is back|takes)", w)]
            assert bool(said) == ref.breaks_time(instance, route.tolist())
            late_routes += bool(said)
    assert 50 < late_routes < 350


def test_violations_are_named() -> None:
    shops = day(windows=[[0, 20], [0, 50], [0, 8], [0, 50]], max_duration=14)
    assert check(shops, Solution([[1, 2, 3]])) == []
    assert check(shops, Solution([[3, 2, 1]])) == []
    assert check(shops, Solution([[1, 3, 2]])) == [
        "route 1 reaches node 2 (counted from 0) at 11, its window closes at 8",
        "route 1 takes 16, allowed is 14",
    ]
    slow = replace(shops, windows=[[0, 15], [0, 50], [0, 50], [0, 50]], max_duration=None)
    assert check(slow, Solution([[1, 3, 2]])) == [
        "route 1 is back at 16, the depot closes at 15",
    ]
    assert check(replace(slow, returns=False), Solution([[1, 3, 2]])) == []


def test_a_route_waits_at_the_depot_and_not_on_the_way() -> None:
    shops = day(windows=[[0, 99], [20, 30], [0, 99], [0, 99]], max_duration=14)
    assert check(shops, Solution([[1, 2, 3]])) == []
    assert schedule(shops, Solution([[1, 2, 3]]))[0].departure[0] == 17.0
    early = replace(shops, release=[0, 0, 25, 0])
    assert schedule(early, Solution([[1, 2, 3]]))[0].departure[0] == 25.0
    fixed = replace(shops, windows=[[0, 99], [20, 30], [0, 99], [0, 9]])
    one = schedule(fixed, Solution([[3, 1, 2]]))[0]
    assert (one.departure[0], one.waiting.tolist()) == (5.0, [0.0, 0.0, 6.0, 0.0, 0.0])
    assert check(fixed, Solution([[3, 1, 2]])) == ["route 1 takes 24, allowed is 14"]


def test_service_times_count_against_the_length_as_before() -> None:
    shops = vrp(xy=SQUARE, service_time=[0, 1, 2, 3], max_distance=19)
    assert check(shops, Solution([[1, 2, 3]])) == ["route 1 is 20 long, allowed is 19"]
    assert check(replace(shops, max_distance=20), Solution([[1, 2, 3]])) == []


def test_open_routes_and_paths_have_no_way_back() -> None:
    ways = [[0, 1, 9, 9], [9, 0, 2, 9], [9, 9, 0, 4], [8, 9, 9, 0]]
    assert cost(tsp(matrix=ways), Solution([[0, 1, 2, 3]])) == 15
    assert cost(tsp(matrix=ways, returns=False), Solution([[0, 1, 2, 3]])) == 7
    assert cost(vrp(matrix=ways, returns=False), Solution([[1], [2, 3]])) == 14
    assert cost(vrp(matrix=ways), Solution([[1], [2, 3]])) == 31
    path = tsp(matrix=ways, start=0, end=2)
    assert check(path, Solution([[0, 1, 3, 2]])) == []
    assert check(path, Solution([[0, 1, 2, 3]])) == [
        "the path must end at node 2 (counted from 0), not at node 3 (counted from 0)"
    ]
    assert check(tsp(SQUARE, start=1), Solution([[0, 1, 2, 3]])) == [
        "the path must start at node 1 (counted from 0), not at node 0 (counted from 0)"
    ]
    held = tsp(SQUARE, fixed_edges=[(0, 3)], returns=False)
    assert check(held, Solution([[1, 2, 3, 0]])) == []
    assert len(check(held, Solution([[0, 1, 2, 3]]))) == 1  # a path has no closing edge


# --- what an instance says of itself --------------------------------------------------------------


def test_variants_are_named_and_strategies_refuse_them() -> None:
    plain = drhg.uniform_cvrp(8, seed=1)
    assert not plain.rich
    assert (plain.problem, plain.family, plain.symmetric) == ("cvrp", "cvrp", True)
    shops = day(release=[0, 1, 0, 0])
    assert (shops.problem, shops.family, variants_of(shops)) == (
        "vrptw", "cvrp", ["windows", "release"]
    )  # fmt: skip
    assert not_known("Regions", shops) == "Regions does not know time windows and release times"
    assert not_known("Regions", shops, ("windows", "release")) is None
    for method in ("local", "insertion", "neural", "paper", "library", "hybrid"):
        with pytest.raises(drhg.DrhgError, match="Regions does not know time windows and release"):
            drhg.solve(shops, method=method, max_iters=1)
    with pytest.raises(drhg.DrhgError, match="Regions does not know paths; use method auto"):
        drhg.solve(tsp(SQUARE, start=0), method="local", max_iters=1)

    class Mine(drhg.Strategy):
        pass

    with pytest.raises(drhg.DrhgError, match="Mine does not know time windows"):
        drhg.solve(shops, method=Mine(), max_iters=1)


def test_equal_service_times_are_one_number() -> None:
    assert vrp(xy=SQUARE, service_time=[0, 5, 5, 5]).service_time == 5.0
    assert not vrp(xy=SQUARE, service_time=[0, 5, 5, 5]).rich
    some = vrp(xy=SQUARE, service_time=[0, 5, 5, 6])
    assert some.services.tolist() == [0, 5, 5, 6]
    assert math.isnan(some.common_service)
    assert vrp(xy=SQUARE, service_time=2).services.tolist() == [0, 2, 2, 2]


def test_distances_cut_to_one_decimal() -> None:
    points = np.random.default_rng(0).integers(0, 99, (40, 2))
    instance = vrp(xy=points, metric="TRUNC1")
    for i, j in np.ndindex(40, 40):
        assert instance.distance(i, j) == ref.distance(instance, i, j)
    assert cost(instance, Solution([np.arange(1, 40)])) == round(
        ref.cost(instance, [list(range(1, 40))]), 1
    )


EVERYTHING = {
    "windows": lambda: day(windows=[[0, math.inf], [1.5, 40], [0, 50], [0, 50]]),
    "all times": lambda: day(
        release=[0, 1, 2, 3], service_time=[0, 1, 2, 3], max_duration=40, returns=False
    ),
    "matrices": lambda: vrp(
        matrix=np.arange(9).reshape(3, 3), durations=np.arange(9).reshape(3, 3) / 2
    ),
    "path": lambda: tsp(SQUARE, start=1, end=2),
    "atsp": lambda: tsp(matrix=[[0, 1, 2], [3, 0, 4], [5, 6, 0]]),
    "cut": lambda: vrp(xy=SQUARE, metric="TRUNC1"),
}


@pytest.mark.parametrize("make", EVERYTHING.values(), ids=EVERYTHING)
def test_copies_and_json_give_back_the_same(make) -> None:
    instance = make()
    for same in (
        pickle.loads(pickle.dumps(instance)),
        copy.deepcopy(instance),
        replace(instance, name="vrp") if instance.name == "vrp" else replace(instance),
        from_json(to_json(instance)),
    ):
        assert same == instance
        assert variants_of(same) == variants_of(instance)
        for array in (same.windows, same.durations, same.release):
            assert array is None or not array.flags.writeable


# --- bad input ------------------------------------------------------------------------------------

BAD = {
    "windows shape": (lambda: day(windows=DAY[:3]), "windows has shape (3, 2), expected (4, 2)"),
    "windows words": (lambda: day(windows="nine to five"), "windows must be an array of numbers"),
    "windows nan": (lambda: day(windows=[[0, math.nan], *DAY[1:]]), "windows[0, 1] must be a num"),
    "windows open never": (
        lambda: day(windows=[[-math.inf, 9], *DAY[1:]]),
        "windows must open at a finite time",
    ),
    "window reversed": (
        lambda: day(windows=[*DAY[:3], [9, 8]]),
        "node 3 (counted from 0) has a window that opens at 9 and closes at 8",
    ),
    "window after the horizon": (
        lambda: day(windows=[*DAY[:3], [60, 70]]),
        "node 3 (counted from 0) has a window, 60 to 70, outside the depot's window, 0 to 50",
    ),
    "unreachable": (
        lambda: day(windows=[*DAY[:2], [0, 4.9], DAY[3]]),
        "node 2 (counted from 0) cannot be reached before 5, its window closes at 4.9",
    ),
    "no way back": (
        lambda: day(windows=[*DAY[:2], [46, 50], DAY[3]]),
        "from node 2 (counted from 0) the depot cannot be reached before 51, it closes at 50",
    ),
    "depot reversed": (
        lambda: day(windows=[[9, 8], *DAY[1:]]),
        "node 0 (counted from 0) has a window that opens at 9 and closes at 8",
    ),
    "service shape": (lambda: day(service_time=[1, 2]), "service_time has shape (2,), expected"),
    "service negative": (
        lambda: day(service_time=[0, 1, -2, 1]),
        "node 2 (counted from 0) has the negative service_time -2",
    ),
    "all service negative": (
        lambda: day(service_time=[0, -2, -2, -2]),
        "node 1 (counted from 0) has the negative service_time -2; node 2",
    ),
    "service at the depot": (
        lambda: day(service_time=[1, 1, 1, 1]),
        "service_time of the depot must be 0, not 1",
    ),
    "release shape": (lambda: day(release=[1]), "release has shape (1,), expected (4,)"),
    "release late": (
        lambda: day(release=[0, 51, 0, 0]),
        "node 1 (counted from 0) has the release 51, beyond the depot's window, 0 to 50",
    ),
    "release negative": (lambda: day(release=[0, -1, 0, 0]), "has the negative release -1"),
    "release at the depot": (lambda: day(release=[1, 1, 0, 0]), "release of the depot must be 0"),
    "duration": (
        lambda: day(max_duration=9.5),
        "a route to node 2 (counted from 0) alone takes 10, max_duration is 9.5",
    ),
    "duration text": (lambda: day(max_duration="long"), "max_duration must be a finite number"),
    "durations shape": (
        lambda: day(durations=[[0]]),
        "durations has shape (1, 1), expected (4, 4)",
    ),
    "durations negative": (
        lambda: day(durations=np.eye(4) - 1),
        "the travel time of nodes 0 and 1 (counted from 0) is negative",
    ),
    "returns": (lambda: day(returns=None), "returns must be True or False, not None"),
    "depot": (lambda: day(depot=4), "depot 4 is not one of the nodes 0 .. 3"),
    "demand": (lambda: day(demand=[0, 1]), "demand given, but no capacity"),
    "capacity": (lambda: day(capacity=3), "capacity given, but no demand"),
    "nowhere": (lambda: vrp(windows=DAY), "neither coordinates (xy) nor a distance matrix"),
    "windows of a tour": (
        lambda: replace(tsp(SQUARE), windows=DAY),
        "windows given, but no demand",
    ),
    "start outside": (lambda: tsp(SQUARE, start=4), "start 4 is not one of the nodes 0 .. 3"),
    "end text": (lambda: tsp(SQUARE, end="a"), "end must be a whole number, not 'a'"),
    "start of a tour": (lambda: tsp(SQUARE, start=1, returns=True), "a path does not return"),
    "start at the end": (lambda: tsp(SQUARE, start=1, end=1), "the path starts and ends at node 1"),
    "start of a plan": (lambda: replace(day(), start=1), "start is for a TSP"),
    "fixed and directed": (
        lambda: tsp(matrix=[[0, 1, 1], [2, 0, 1], [1, 1, 0]], fixed_edges=[(0, 1)]),
        "fixed edges have no direction",
    ),
    "fixed inside": (
        lambda: tsp(SQUARE, start=1, fixed_edges=[(0, 1), (1, 2)]),
        "start: node 1 (counted from 0) has two fixed edges",
    ),
    "fixed shortcut": (
        lambda: tsp(SQUARE, start=0, end=2, fixed_edges=[(0, 1), (1, 2)]),
        "the fixed edges lead from start to end, past the other nodes",
    ),
    "fixed ring": (
        lambda: tsp(SQUARE, returns=False, fixed_edges=[(0, 1), (1, 2), (2, 3), (0, 3)]),
        "the fixed edges close a tour, but a path is asked for",
    ),
}


@pytest.mark.parametrize(("make", "words"), BAD.values(), ids=BAD)
def test_bad_variants_are_refused_in_words(make, words: str) -> None:
    with pytest.raises(InstanceError) as caught:
        make()
    assert words in str(caught.value)


def test_all_faults_are_named_at_once_up_to_twenty() -> None:
    with pytest.raises(InstanceError) as caught:
        day(
            windows=[[0, 50], [9, 8], [60, 70], [0, 1]],
            service_time=[0, 1, 2, -1],
            release=[0, 0, 0, 0],
        )
    assert str(caught.value).split("; ") == [
        "node 3 (counted from 0) has the negative service_time -1",
        "node 1 (counted from 0) has a window that opens at 9 and closes at 8",
        "node 2 (counted from 0) has a window, 60 to 70, outside the depot's window, 0 to 50",
    ]
    with pytest.raises(InstanceError) as caught:
        vrp(xy=[[0, 0], *[[9, 9]] * 30], windows=[[0, 5]] * 31)
    assert str(caught.value).count("cannot be reached") == 20
    assert str(caught.value).endswith(" (and 10 more)")

"""Plans for changed problems: valid, matched right, and the same wherever nothing has changed."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import reference as ref
from hypothesis import given, settings
from hypothesis import strategies as st
from soak import upto
from typer.testing import CliRunner

import drhg
from drhg.cli import app
from drhg.construct.starts import construct
from drhg.errors import InstanceError
from drhg.files.registry import write_instance
from drhg.plans.surroundings import ReplanParams
from drhg.problem import Instance, Metric, Solution, check, cost, cvrp

CITY = 400


@pytest.fixture(scope="module")
def city() -> tuple[Instance, Solution]:
    task = drhg.uniform_cvrp(CITY, seed=4)
    return task, drhg.solve(task, max_iters=20_000, threads=1).solution


def with_stops(task: Instance, xy: Any, demand: Any) -> Instance:
    assert task.xy is not None
    assert task.demand is not None
    more = np.concatenate((task.demand, np.asarray(demand) * task.demand_scale))
    return replace(task, xy=np.concatenate((task.xy, xy)), demand=more)


def by_vehicle(solution: Solution) -> dict[int, list[int]]:
    numbers = solution.vehicles or range(1, len(solution.routes) + 1)
    return {v: r.tolist() for v, r in zip(numbers, solution.routes, strict=True)}


def familiar(task: Instance, old: Solution, new: Solution) -> set[int]:
    """Customers with another vehicle or predecessor, one by one."""
    where: dict[int, tuple[int, int]] = {}
    for vehicle, route in by_vehicle(old).items():
        for before, node in zip([task.depot, *route], route, strict=False):
            where[node] = vehicle, before
    return {
        node
        for vehicle, route in by_vehicle(new).items()
        for before, node in zip([task.depot, *route], route, strict=False)
        if node in where and where[node] != (vehicle, before)
    }


def test_one_order_more_touches_only_its_surroundings(city: tuple[Instance, Solution]) -> None:
    task, old = city
    new = with_stops(task, [[0.9, 0.9]], [1])
    found = drhg.replan(old, new)
    assert found.changes.summary() == "1 added"
    assert check(new, found.solution) == []
    assert found.cost == cost(new, found.solution)
    now, was = by_vehicle(found.solution), by_vehicle(old)
    assert found.untouched
    assert set(found.untouched) | set(found.changed_routes) == set(now)
    assert all(now[v] == was[v] for v in found.untouched)
    assert all(now[v] != was.get(v) for v in found.changed_routes)
    assert set(found.moved) == familiar(new, old, found.solution)
    # never worse than the cheapest place
    home = np.inf
    for route in old.routes:
        if task.demand is not None and task.demand[route].sum() + 1 <= (task.capacity or 0):
            for at in range(len(route) + 1):
                path = [task.depot, *route.tolist(), task.depot]
                a, b = path[at], path[at + 1]
                extra = new.distance(a, CITY + 1) + new.distance(CITY + 1, b) - new.distance(a, b)
                home = min(home, float(extra))
    home = min(home, 2 * float(new.distance(task.depot, CITY + 1)))
    assert found.cost <= cost(task, old) + home + 1e-9


@settings(max_examples=upto(40))
@given(st.integers(0, 2**32))
def test_any_change_is_answered_with_a_valid_plan(seed: int) -> None:
    rng = np.random.default_rng(seed)
    metric = [Metric.EXACT, Metric.EUC_2D][int(rng.integers(2))]
    task, routes = ref.random_plan(
        rng, int(rng.integers(2, 25)), "uniform", metric,
        limit=bool(rng.random() < 0.3), fleet=bool(rng.random() < 0.5),
    )  # fmt: skip
    assert task.demand is not None
    assert task.capacity is not None
    task = replace(task, names=tuple(f"s{i}" for i in range(task.n)))
    old = Solution(routes)
    keep = rng.random(task.n) < 0.9
    keep[task.depot] = True
    demand = task.demand.copy()
    altered = (rng.random(task.n) < 0.1) & (np.arange(task.n) != task.depot)
    demand[altered] = np.minimum(demand[altered] + 3, task.capacity)
    assert task.xy is not None
    xy = task.xy + np.where(rng.random(task.n) < 0.1, 2.0, 0.0)[:, None]
    added = int(rng.integers(0, 4))
    kept = np.flatnonzero(keep)
    names = [f"s{i}" for i in kept] + [f"n{i}" for i in range(added)]
    order = rng.permutation(len(names))
    new = cvrp(
        np.concatenate((xy[kept], rng.random((added, 2)) * 80))[order],
        np.concatenate((demand[kept], rng.integers(0, 5, added).clip(max=task.capacity)))[order],
        task.capacity, depot=int(np.flatnonzero(order == np.flatnonzero(kept == task.depot)[0])[0]),
        metric=task.metric, names=[names[i] for i in order],
        vehicles=None if rng.random() < 0.5 else len(routes) + 3,
        max_distance=task.max_distance and task.max_distance + 300,
    )  # fmt: skip
    lost = [int(rng.integers(1, len(routes) + 1))] if rng.random() < 0.3 else []
    price = float(rng.choice([0.0, 5.0]))
    found = drhg.replan(old, new, old_instance=task, lost=lost, stability=price, seed=1)
    broken = [one for one in check(new, found.solution) if "is not visited" not in one]
    assert broken == []
    visited = sorted(int(i) for route in found.solution.routes for i in route)
    assert sorted([*visited, *found.unplaced]) == [i for i in range(new.n) if i != new.depot]
    assert {new.names[i] for i in found.changes.added} == {f"n{i}" for i in range(added)}  # type: ignore[index]
    assert set(found.changes.removed) == {f"s{i}" for i in np.flatnonzero(~keep)}
    assert not set(lost) & set(found.solution.vehicles or ())
    renumbered = {i: new.names.index(f"s{i}") for i in kept.tolist()}  # type: ignore[union-attr]
    was = {
        v: [renumbered[i] for i in route if i in renumbered]
        for v, route in by_vehicle(old).items()
        if v not in lost
    }
    now = by_vehicle(found.solution)
    assert all(now[v] == was[v] for v in found.untouched)


def test_stability_has_its_price(city: tuple[Instance, Solution]) -> None:
    task, old = city
    rng = np.random.default_rng(0)
    new = with_stops(task, rng.random((5, 2)), [3] * 5)
    free, dear = (drhg.replan(old, new, stability=price) for price in (0.0, 1.0))
    assert len(dear.moved) <= len(free.moved)
    assert dear.cost + len(dear.moved) <= free.cost + len(free.moved) + 1e-9
    assert set(dear.moved) == familiar(new, old, dear.solution)


def test_a_lost_vehicle_and_a_smaller_fleet(city: tuple[Instance, Solution]) -> None:
    task, old = city
    found = drhg.replan(old, task, lost=[2])
    assert check(task, found.solution) == []
    assert 2 not in (found.solution.vehicles or ())
    assert found.changes.summary() == "vehicle 2 lost"
    assert task.demand is not None
    least = -(-int(task.demand.sum()) // (task.capacity or 1))
    fewer = drhg.replan(old, replace(task, vehicles=least + 1), time_limit=1.0)
    assert fewer.unplaced or len(fewer.solution.routes) <= least + 1
    if fewer.unplaced:
        with pytest.raises(InstanceError, match="left out: nothing written"):
            fewer.save("nowhere.sol")


def test_the_same_seed_gives_the_same_plan(city: tuple[Instance, Solution]) -> None:
    task, old = city
    new = with_stops(task, [[0.3, 0.3]], [4])
    assert drhg.replan(old, new, seed=3).solution == drhg.replan(old, new, seed=3).solution


def test_time_is_used(city: tuple[Instance, Solution]) -> None:
    task, old = city
    new = with_stops(task, [[0.5, 0.1]], [4])
    quick = drhg.replan(old, new)
    slow = drhg.replan(old, new, time_limit=0.6)
    assert slow.cost <= quick.cost + 1e-9
    assert 0.4 < slow.seconds < 3.0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"lost": [99]}, "no vehicle 99"),
        ({"stability": -1}, "stability must be"),
        ({"time_limit": "x"}, "time_limit must be"),
        ({"seed": 1.5}, "seed must be"),
        ({"params": 3}, "params must be ReplanParams"),
    ],
)
def test_wrong_arguments_are_refused(options: dict[str, Any], words: str) -> None:
    task = cvrp([[0, 0], [0, 1]], [0, 1], 1)
    with pytest.raises(drhg.DrhgError, match=words):
        drhg.replan(Solution([[1]]), task, **options)


@settings(max_examples=upto(40))
@given(st.integers(0, 2**32), st.booleans())
def test_windows_and_other_times_are_kept(seed: int, altered: bool) -> None:
    """Some customers of a timed plan were not in the old one, or not at these times."""
    rng = np.random.default_rng(seed)
    new, routes = ref.random_timed_plan(rng, int(rng.integers(2, 20)))
    added = set(rng.choice(np.arange(1, new.n), min(new.n - 1, 3), replace=False).tolist())
    old = Solution([[node for node in route if node not in added] for route in routes])
    before = replace(new, windows=None, release=None, max_duration=None) if altered else None
    price = float(rng.choice([0.0, 5.0]))
    found = drhg.replan(old, new, old_instance=before, stability=price, seed=1)
    assert found.unplaced == ()
    assert check(new, found.solution) == []
    assert set(found.changes.added) == added
    now, was = by_vehicle(found.solution), by_vehicle(old)
    assert all(now[v] == was[v] for v in found.untouched)
    assert set(found.moved) == familiar(new, old, found.solution)
    # the cheapest places alone, by trying them all; where ways are odd, others may have to leave
    kept = not [one for one in check(new, old) if "is not visited" not in one]
    if kept and not price and not altered and new.vehicles is None:
        plan = [route.tolist() for route in old.routes]
        for node in sorted(added, key=lambda i: (-new.demand[i], i)):  # type: ignore[index]
            plan = cheapest(new, plan, node)
        assert found.cost <= ref.cost(new, plan) + 1e-9


def cheapest(task: Instance, routes: list[list[int]], node: int) -> list[list[int]]:
    """The cheapest plan with one more customer somewhere."""
    tried = []
    for r, route in enumerate([*routes, []]):
        others = [one for k, one in enumerate(routes) if k != r]
        for at in range(len(route) + 1):
            plan = [*others, [*route[:at], node, *route[at:]]]
            one_by_one = [f for f in check(task, Solution(plan)) if "is not visited" not in f]
            if not one_by_one:
                tried.append((ref.cost(task, plan), plan))
    return min(tried)[1]


@settings(max_examples=upto(60))
@given(st.integers(0, 2**32), st.booleans())
def test_locks_are_kept_or_brought_about(seed: int, kept: bool) -> None:
    """The old plan keeps all locks of the new problem, or is any."""
    rng = np.random.default_rng(seed)
    free, routes = ref.random_plan(
        rng, int(rng.integers(2, 20)), "uniform", Metric.EXACT, fleet=bool(rng.random() < 0.5)
    )
    new, keeps = ref.random_locks(rng, free, routes, 0.6)
    gone = int(rng.choice(np.concatenate(routes)))
    if kept:
        old = Solution([[i for i in route if i != gone] for route in routes], keeps.vehicles)
    else:
        old = Solution([rng.permutation(route) for route in routes])
    found = drhg.replan(old, new, stability=float(rng.choice([0.0, 5.0])), seed=1)
    if kept:
        assert found.unplaced == ()
    if not found.unplaced:
        assert check(new, found.solution) == []
        assert not ref.locks_broken(new, found.solution)
    now, was = by_vehicle(found.solution), by_vehicle(old)
    assert all(now[v] == was[v] for v in found.untouched)


def test_vehicles_under_way_go_on_and_frozen_routes_stay(
    city: tuple[Instance, Solution],
) -> None:
    task, old = city
    new = with_stops(task, [[0.9, 0.9], [0.5, 0.5]], [1, 1])
    counts = {v: len(route) // 2 for v, route in by_vehicle(old).items()}
    found = drhg.replan(old, new, driven=counts)
    now, was = by_vehicle(found.solution), by_vehicle(old)
    assert check(new, found.solution) == []
    assert all(now[v][:k] == was[v][:k] for v, k in counts.items())
    assert found.cost < drhg.replan(old, new, driven=counts, params=ReplanParams(steps=0)).cost
    stays = drhg.replan(old, new, frozen=list(counts))
    assert set(stays.untouched) == set(counts)
    assert len(stays.solution.routes) == len(old.routes) + 1
    without = replace(task, xy=task.xy[:-1], demand=task.demand[:-1])  # type: ignore[index]
    gone = next(v for v, route in was.items() if CITY in route)
    closed = by_vehicle(drhg.replan(old, without, frozen=[gone]).solution)[gone]
    assert closed == [node for node in was[gone] if node != CITY]
    for wrong, words in (
        ({"driven": {1: 999}}, "vehicle 1 has .* stops, not 999"),
        ({"driven": {99: 1}}, "driven: the old plan has no vehicle 99"),
        ({"frozen": [99]}, "frozen: the old plan has no vehicle 99"),
        ({"frozen": [1], "lost": [1]}, "vehicle 1 is lost, but locks say"),
    ):
        with pytest.raises(InstanceError, match=words):
            drhg.replan(old, new, **wrong)  # type: ignore[arg-type]


@settings(max_examples=upto(60))
@given(st.integers(0, 2**32), st.sampled_from(["tour", "one way", "path"]))
def test_tours_and_paths_are_changed_too(seed: int, kind: str) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 30))
    tour, returns = rng.permutation(n).tolist(), kind == "tour" or bool(rng.integers(2))
    if kind == "one way":
        new = drhg.tsp(matrix=rng.integers(1, 30, (n, n)), returns=returns)
    else:
        pairs = zip(tour, [*tour[1:], *tour[:1]][: n if returns else n - 1], strict=False)
        held = [(a, b) for a, b in pairs if a != b and rng.random() < 0.3]
        new = drhg.tsp(rng.random((n, 2)), fixed_edges=held, returns=returns)
    if not new.returns and rng.random() < 0.5:
        new = replace(new, start=tour[0], end=tour[-1] if rng.random() < 0.5 else None)
    order = tour if rng.random() < 0.5 else rng.permutation(n).tolist()
    old = Solution([[node for node in order if rng.random() < 0.8] or tour[:1]])
    price = float(rng.choice([0.0, 5.0]))
    found = drhg.replan(old, new, stability=price, seed=1)
    assert check(new, found.solution) == []
    assert found.cost == cost(new, found.solution)
    assert found.solution.vehicles is None
    assert set(found.changes.added) == set(range(n)) - set(old.tour.tolist())


def test_one_stop_more_in_a_long_tour_changes_its_surroundings_only() -> None:
    task = drhg.uniform_tsp(2001, seed=3)
    assert task.xy is not None
    before = replace(task, xy=task.xy[:-1])
    old, _ = construct(before, "greedy", 0)
    found = drhg.replan(old, task)
    assert check(task, found.solution) == []
    assert found.cost < cost(before, old)  # the surroundings of a greedy tour have room for that
    near = set(np.argsort(task.distance(2000, np.arange(2001)))[:122].tolist())
    was, now = (ref.edges_of(task, [one.tour.tolist()]) for one in (old, found.solution))
    assert all(edge & near for edge in was - now)  # nothing else has been cut
    assert drhg.replan(old, task).solution == found.solution
    price = drhg.replan(old, task, stability=100.0)
    assert len(price.moved) <= 1
    longer = drhg.replan(old, task, time_limit=0.5)
    assert longer.cost <= found.cost + 1e-9


def test_what_is_not_known_is_refused() -> None:
    with pytest.raises(InstanceError, match="a tour has no vehicles to lose"):
        drhg.replan(Solution([[0, 1]]), drhg.tsp([[0, 0], [0, 1]]), lost=[1])
    with pytest.raises(InstanceError, match="the old tour is one route, not 2"):
        drhg.replan(Solution([[0], [1]]), drhg.tsp([[0, 0], [0, 1]]))
    held = cvrp([[0, 0], [0, 1], [1, 0]], [0, 1, 1], 2, locks=drhg.Locks(pinned={1: 2}))
    with pytest.raises(InstanceError, match="vehicle 2 is lost, but locks say what it does"):
        drhg.replan(Solution([[2], [1]]), held, lost=[2])


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(one) for one in arguments])


def test_the_command_matches_names_in_tables(tmp_path: Path) -> None:
    old = tmp_path / "routes.csv"
    old.write_text("route,position,name\n1,1,mill\n1,2,ford\n2,1,inn\n")
    new = tmp_path / "stops.csv"
    new.write_text("name,x,y,demand\nhub,0,0,\ninn,9,0,1\nfarm,9,1,1\nmill,0,1,1\n")
    out = tmp_path / "new.csv"
    done = run("replan", old, new, "--capacity", 2, "-o", out)
    assert done.exit_code == 0, done.stderr
    assert "1 added, 1 removed" in done.stdout
    rows = [line.split(",")[:4] for line in out.read_text().splitlines()]
    assert rows[0][:4] == ["route", "vehicle", "position", "name"]
    assert {(*row[:2], row[3]) for row in rows[1:]} == {
        ("1", "1", "mill"), ("2", "2", "inn"), ("2", "2", "farm"),
    }  # fmt: skip
    told = json.loads(run("replan", old, new, "--capacity", 2, "-f", "json").stdout)
    assert told["removed"] == ["ford"]
    assert told["untouched_routes"] == []


def test_the_command_keeps_times_and_together(tmp_path: Path) -> None:
    old = tmp_path / "routes.csv"
    old.write_text("route,position,name\n1,1,mill\n1,2,ford\n")
    new = tmp_path / "stops.csv"
    new.write_text(
        "name,x,y,demand,earliest,latest,together\nhub,0,0,,0,99,\nmill,0,5,1,0,9,\n"
        "ford,0,9,1,0,12,\ninn,1,5,1,20,40,A\nfarm,5,1,1,0,60,A\n"
    )
    out = tmp_path / "new.csv"
    done = run("replan", old, new, "--capacity", 9, "--vehicles", 2, "-o", out)
    assert done.exit_code == 0, done.stderr
    checked = run("check", new, out, "--capacity", 9)
    assert checked.exit_code == 0, checked.stderr
    rows = [line.split(",") for line in out.read_text().splitlines()]
    route = {row[rows[0].index("name")]: row[0] for row in rows[1:]}
    assert route["inn"] == route["farm"]
    assert run("replan", old, new, "--capacity", 9, "--max-duration", "0:30").exit_code == 0


def test_the_command_by_numbers_and_its_refusals(tmp_path: Path) -> None:
    task = cvrp([[0, 0], [0, 1], [0, 2], [5, 0]], [0, 1, 1, 1], 2, metric="EUC_2D", vehicles=2)
    write_instance(tmp_path / "old.json", task)
    write_instance(tmp_path / "new.json", cvrp([[0, 0], [0, 1], [0, 2]], [0, 1, 1], 2))
    (tmp_path / "a.sol").write_text("Route #1: 1 2\nRoute #2: 3\nCost 14\n")
    names = tmp_path / "a.sol", tmp_path / "new.json"
    refused = run("replan", *names)
    assert refused.exit_code == 3
    assert "name it: --old FILE" in refused.stderr
    done = run("replan", *names, "--old", tmp_path / "old.json", "-o", tmp_path / "b.sol")
    assert done.exit_code == 0, done.stderr
    assert (tmp_path / "b.sol").read_text() == "Route #1: 1 2\nCost 4.0\n"
    files = tmp_path / "a.sol", tmp_path / "old.json"
    stays = run("replan", *files, "--driven", "1:1", "--frozen", 2, "-f", "json")
    assert json.loads(stays.stdout)["untouched_routes"] == [1, 2]
    assert "is not VEHICLE:STOPS" in run("replan", *files, "--driven", "x").stderr
    none = run("replan", *files, "--lost", 9)
    assert none.exit_code == 3
    assert "no vehicle 9" in none.stderr


@pytest.mark.slow
@pytest.mark.compiled
def test_one_order_more_in_ten_thousand_is_answered_in_a_tenth_of_a_second() -> None:
    """Of processor time, which other work on the machine leaves as it is."""
    task = drhg.uniform_cvrp(10_001, seed=5)
    assert task.xy is not None
    assert task.demand is not None
    before = replace(task, xy=task.xy[:-1], demand=task.demand[:-1])
    old, _ = construct(before, "sweep", 0)
    drhg.replan(old, task)
    spent, seconds = [], []
    for _ in range(7):
        began = time.process_time()
        found = drhg.replan(old, task, old_instance=before)
        spent.append(time.process_time() - began)
        seconds.append(found.seconds)
    print(
        f"\none order more: {np.median(seconds):.3f} s in the median, {min(seconds):.3f} s at "
        f"best, {np.median(spent):.3f} s of processor time"
    )
    assert min(spent) < 0.1
    assert check(task, found.solution) == []
    assert len(found.changed_routes) < 20

"""Explanations: exact costs of places, conflicts that are proofs, regions searched to the end."""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
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
from drhg.hypergraph import Nearness, destroy_to_size, plan_of, reduce, rules_of
from drhg.plans.conflicts import find_conflict, vehicles_needed
from drhg.plans.exhaust import cheapest_repairs
from drhg.plans.explain import Place
from drhg.problem import Instance, Metric, Solution, check, cost, cvrp, tsp


@st.composite
def plans(draw: st.DrawFn, most: int = 9) -> tuple[Instance, list[list[int]]]:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    return ref.random_plan(
        rng, draw(st.integers(1, most)), draw(st.sampled_from(ref.SHAPES)),
        draw(st.sampled_from(list(Metric))), limit=draw(st.booleans()), fleet=draw(st.booleans()),
    )  # fmt: skip


@st.composite
def tours(draw: st.DrawFn, most: int = 8) -> tuple[Instance, list[list[int]]]:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    instance, tour = ref.random_tour(
        rng, draw(st.integers(1, most)), draw(st.sampled_from(ref.SHAPES)),
        draw(st.sampled_from(list(Metric))), draw(st.sampled_from([0.0, 0.3])),
    )  # fmt: skip
    return instance, [tour]


@st.composite
def timed_plans(draw: st.DrawFn, most: int = 8) -> tuple[Instance, list[list[int]]]:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    return ref.random_timed_plan(rng, draw(st.integers(2, most)))


@st.composite
def odd_tours(draw: st.DrawFn, most: int = 8) -> tuple[Instance, list[list[int]]]:
    """Tours of one-way distances, and paths, which may have to begin or end somewhere."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, path = draw(st.integers(2, most)), draw(st.booleans())
    tour = rng.permutation(n).tolist()
    return tsp(
        matrix=rng.integers(1, 30, (n, n)), returns=not path,
        start=tour[0] if path and draw(st.booleans()) else None,
        end=tour[-1] if path and draw(st.booleans()) else None,
    ), [tour]  # fmt: skip


def near(a: float, b: float) -> bool:
    return a == b or abs(a - b) <= 1e-6 * max(1.0, abs(a), abs(b))


def elsewhere(instance: Instance, routes: list[list[int]], node: int) -> dict[Any, float]:
    """What putting a stop into every other place costs, by the plan that this makes."""
    rest = [[stop for stop in route if stop != node] for route in routes]
    without = ref.cost(instance, [route for route in rest if route])
    alone = any(not route for route in rest)
    found = {}
    for r, route in enumerate([*rest, []] if instance.is_cvrp else rest):
        own = routes[r].index(node) if r < len(routes) and node in routes[r] else -1
        gaps = len(route) + 1
        if not instance.is_cvrp and instance.returns:  # behind the last stop is before the first
            gaps, own = len(route), own % len(route)
        for at in range(gaps):
            if at == own or (r == len(rest) and alone):
                continue  # where it stands already
            new = [*route[:at], node, *route[at:]]
            changed = [one for k, one in enumerate(rest) if k != r and one] + [new]
            found[r, at] = (changed, ref.cost(instance, changed) - without)
    return found


@settings(max_examples=upto(200))
@given(st.one_of(plans(), tours(), timed_plans(), odd_tours()))
def test_places_cost_what_trying_them_all_says(case: tuple[Instance, list[list[int]]]) -> None:
    instance, routes = case
    solution = Solution(routes)
    found = drhg.explain(instance, solution, region=0)
    assert found.violations == ()
    glued = {node for edge in instance.fixed_edges for node in edge}
    glued |= {instance.start, instance.end} - {None}
    for stop in found.stops:
        rest = [[node for node in route if node != stop.node] for route in routes]
        without = ref.cost(instance, [route for route in rest if route])
        assert near(stop.cost, ref.cost(instance, routes) - without)
        if not instance.is_cvrp and len(routes[0]) < 2:
            continue  # nowhere else
        tried = elsewhere(instance, routes, stop.node)
        feasible = [extra for new, extra in tried.values() if not check(instance, Solution(new))]
        if stop.node in glued:
            assert stop.next is None
            continue
        least = min(feasible, default=math.inf)
        assert near(math.inf if stop.next is None else stop.next.cost, least)
        cheapest = min((extra for _, extra in tried.values()), default=math.inf)
        if stop.barred is not None:
            assert near(stop.barred.cost, cheapest)
            assert stop.barred.cost <= least + 1e-9 * max(1.0, abs(cheapest))
            assert stop.barred.breaks
        else:
            assert least <= cheapest + 1e-6 * max(1.0, abs(cheapest))


@settings(max_examples=upto(60))
@given(st.one_of(plans(), timed_plans(), odd_tours()))
def test_the_next_best_place_is_where_it_says(case: tuple[Instance, list[list[int]]]) -> None:
    instance, routes = case
    found = drhg.explain(instance, Solution(routes), region=0)
    for stop in found.stops:
        if stop.next is None:
            continue
        new = moved(instance, routes, stop.node, stop.next)
        assert check(instance, Solution(new)) == []
        change = float(cost(instance, Solution(new))) - float(cost(instance, Solution(routes)))
        assert near(change, stop.extra)


@settings(max_examples=upto(80))
@given(st.integers(0, 2**32), st.integers(1, 8), st.booleans())
def test_locks_are_kept_by_the_next_best_place(seed: int, customers: int, fleet: bool) -> None:
    rng = np.random.default_rng(seed)
    free, routes = ref.random_plan(rng, customers, "uniform", Metric.EXACT, fleet=fleet)
    instance, solution = ref.random_locks(rng, free, routes, 0.6)
    found = drhg.explain(instance, solution, region=0)
    vehicles = list(solution.vehicles or ())
    idle = set(range(1, (instance.vehicles or len(routes) + 1) + 1)) - set(vehicles)
    for stop in found.stops:
        tried = []
        for (r, _), (new, extra) in elsewhere(free, routes, stop.node).items():
            for vehicle in idle if r == len(routes) else (None,):
                order = arranged(routes, vehicles, new, stop.node, r, vehicle)
                if check(instance, order) == []:
                    tried.append(extra)
        least = min(tried, default=math.inf)
        assert near(math.inf if stop.next is None else stop.next.cost, least)


def arranged(
    routes: list[list[int]], vehicles: list[int], new: list[list[int]], node: int, r: int,
    vehicle: int | None,
) -> Solution:  # fmt: skip
    """Routes after a stop has moved, each with the vehicle it had."""
    target = new[-1]
    by = {v: [i for i in route if i != node] for v, route in zip(vehicles, routes, strict=True)}
    by[vehicles[r] if vehicle is None else vehicle] = target
    return Solution(by.values(), by.keys())


def moved(instance: Instance, routes: list[list[int]], node: int, place: Place) -> list[list[int]]:
    """The plan after a stop has moved between the two stops that a place names."""
    new = [list(route) for route in routes] + [[]]
    target = new[place.route - 1]
    after, before = (int(name) if name else -1 for name in (place.after, place.before))
    if instance.is_cvrp:
        path = [instance.depot, *target, instance.depot if instance.returns else -1]
    else:
        path = [target[-1], *target] if instance.returns else [-1, *target, -1]
    gaps = [g for g, pair in enumerate(itertools.pairwise(path)) if pair == (after, before)]
    gap = gaps[0]  # of an empty route the only one
    marked = [*target[:gap], -1, *target[gap:]]
    new[place.route - 1] = marked
    rest = [[stop for stop in route if stop != node] for route in new]
    return [[node if stop == -1 else stop for stop in route] for route in rest if route]


@settings(max_examples=upto(60))
@given(st.one_of(plans(5), tours(5)), st.integers(2, 6))
def test_the_cheapest_repair_is_that_of_brute_force(
    case: tuple[Instance, list[list[int]]], size: int
) -> None:
    instance, routes = case
    rules = rules_of(instance)
    plan, nearness = plan_of(rules, Solution(routes)), Nearness(instance)
    centres = nearness.nodes[:2]
    cuts, counts = destroy_to_size(rules, plan, nearness.around(centres, 12), size)
    graphs = reduce(rules, plan, cuts, counts)
    found = cheapest_repairs(rules, plan, graphs)
    line = ref.laid_out(instance, routes)
    present = ref.cost(instance, routes)
    for b in range(len(centres)):
        cut = set(cuts[b, : counts[b]].tolist())
        best = best_repair(instance, line, cut)
        assert near(found[b] - graphs.cut_cost[b], best - present)


def best_repair(instance: Instance, line: list[int], cut: set[int]) -> float:
    """The cost of the cheapest plan that keeps all uncut edges, among all plans."""
    limit = instance.max_distance
    limit = None if limit is None else limit * (1 + 1e-9)
    items = ref.items_of(instance, line, cut)
    kept = [tuple(line[p] for p in item.at) for item in items]
    stubs = [item.stub for item in items]
    touched = {node for piece in kept for node in piece}
    if not instance.is_cvrp:
        if not cut:
            return ref.cost(instance, [line])
        ways = itertools.product(*(({p, p[::-1]}) for p in kept[1:]))
        tours_found = [
            [*kept[0], *itertools.chain(*order)]
            for way in ways
            for order in itertools.permutations(way)
        ] or [list(kept[0])]
        return min(ref.cost(instance, [tour]) for tour in tours_found)
    untouched = [
        [line[p] for p in stretch[1:-1]]
        for stretch in ref.stretches(instance, line)
        if not touched & {line[p] for p in stretch}
    ]
    best = math.inf
    for groups in ref.partitions(range(len(kept))):
        per_group = []
        for group in groups:
            options = []
            for order in itertools.permutations(group):
                sides = [[kept[i], kept[i][::-1]] for i in order]
                for way in itertools.product(*sides):
                    fits = True
                    for place, (i, piece) in enumerate(zip(order, way, strict=True)):
                        if stubs[i]:
                            # the end at the depot: the first of a head, the last of a tail
                            turned = piece != kept[i]
                            head = (stubs[i] == "head") != turned
                            if len(piece) == 1:  # either direction
                                fits &= place in (0, len(order) - 1)
                            else:
                                fits &= place == (0 if head else len(order) - 1)
                    if fits:
                        options.append([node for piece in way for node in piece])
            feasible = [one for one in options if ref.allowed(instance, [one], limit)]
            per_group.append(min((ref.cost(instance, [one]) for one in feasible), default=math.inf))
        fleet = len(untouched) + len(groups)
        if instance.vehicles is None or fleet <= instance.vehicles:
            best = min(best, sum(per_group) + ref.cost(instance, untouched))
    return best


def test_an_optimal_plan_has_only_closed_regions() -> None:
    rng = np.random.default_rng(3)
    for _ in range(5):
        task = cvrp(rng.random((7, 2)), [0, *rng.integers(1, 5, 6)], 8)
        _, routes = ref.best_plan(task)
        found = drhg.explain(task, Solution(routes)).certificate
        assert found is not None
        assert found.share == 1.0
        worse = Solution([[node] for node in range(1, 7)])
        open_regions = drhg.explain(task, worse).certificate
        assert open_regions is not None
        assert open_regions.share < 1.0
        assert set(open_regions.open_stops) <= set(range(1, 7))


# --- what cannot be -------------------------------------------------------------------------------


@settings(max_examples=upto(150))
@given(st.integers(0, 2**32), st.integers(1, 6), st.booleans())
def test_a_conflict_is_a_proof(seed: int, customers: int, limit: bool) -> None:
    """Whatever is found, its customers alone have no plan, and no fewer than named are needed."""
    rng = np.random.default_rng(seed)
    metric = [Metric.EXACT, Metric.EUC_2D, Metric.EXPLICIT][int(rng.integers(3))]
    n = customers + 1
    capacity = int(rng.integers(5, 12))
    demand = np.concatenate(([0], rng.integers(0, capacity + 1, customers)))
    fleet = max(1, -(-int(demand.sum()) // capacity))
    task = cvrp(
        None if metric is Metric.EXPLICIT else rng.random((n, 2)) * 9, demand, capacity,
        matrix=ref.random_matrix(rng, n) if metric is Metric.EXPLICIT else None,
        metric=metric, vehicles=fleet, max_distance=float(rng.uniform(5, 25)) if limit else None,
        service_time=float(rng.choice([0.0, 1.0])) if limit else 0.0,
    )  # fmt: skip
    best, _ = ref.best_plan(task)
    found = find_conflict(task)
    if found is None:
        return
    assert best == math.inf
    assert 0 < len(found.customers) <= customers
    assert set(found.limit.split(" and ")) <= {"capacity", "max_distance"}


def test_a_packing_conflict_is_minimal() -> None:
    demand = [0, 5, 5, 5, 4, 4, 4, 1, 1]
    task = cvrp(np.zeros((9, 2)), demand, 9, vehicles=4)
    assert find_conflict(task) is None
    tight = cvrp(np.zeros((8, 2)), [0, 6, 6, 5, 5, 5, 5, 1], 9, vehicles=5)
    found = find_conflict(tight)
    assert found is not None
    assert found.customers == (1, 2, 3, 4, 5, 6)
    assert "only 5 vehicles" in found.reason
    odd = cvrp(np.zeros((6, 2)), [0, 4, 4, 4, 4, 4], 9, vehicles=3)
    assert find_conflict(odd) is None


@given(st.lists(st.integers(1, 12), max_size=7), st.integers(12, 20))
def test_the_bound_on_vehicles_never_exceeds_what_is_needed(sizes: list[int], room: int) -> None:
    fits = min(
        len(groups)
        for groups in ref.partitions(sizes)
        if all(sum(group) <= room for group in groups)
    )
    assert -(-sum(sizes) // room) <= vehicles_needed(np.array(sizes, np.int64), room) <= fits


def test_too_far_is_named() -> None:
    task = cvrp([[0, 0], [0, 1], [0, 9]], [0, 1, 1], 5, max_distance=10, names=["hub", "a", "far"])
    found = find_conflict(task)
    assert found is not None
    assert found.customers == (2,)
    assert "'far' alone needs a route of 18, allowed is 10" in found.reason


# --- as people see it -----------------------------------------------------------------------------


def test_a_customer_left_out_is_told_where_it_would_go() -> None:
    task = cvrp([[0, 0], [0, 1], [0, 2], [1, 0]], [0, 1, 1, 1], 2)
    found = drhg.explain(task, Solution([[1, 2]]))
    left = found.stops[-1]
    assert (left.node, left.route, left.position) == (3, 0, 0)
    assert left.next is not None
    assert (left.next.route, left.next.cost) == (2, 2.0)
    assert left.barred is not None
    assert left.barred.breaks == ("capacity",)
    assert found.certificate is None
    assert found.violations == ("node 3 (counted from 0) is not visited",)


def test_slack_and_edges() -> None:
    task = cvrp(
        [[0, 0], [0, 3], [4, 0]], [0, 0.5, 1.25], 2, max_distance=30, service_time=2,
        names=["hub", "north", "east"],
    )  # fmt: skip
    found = drhg.explain(task, Solution([[1, 2]]))
    (route,) = found.routes
    assert (route.load, route.free_load) == (1.75, 0.25)
    assert (route.length, route.free_length) == (16.0, 14.0)
    assert [edge.length for edge in found.edges] == [5.0, 4.0, 3.0]
    assert {found.edges[0].first, found.edges[0].second} == {"north", "east"}


@settings(max_examples=upto(60))
@given(timed_plans())
def test_how_much_later_a_route_could_leave(case: tuple[Instance, list[list[int]]]) -> None:
    instance, routes = case
    found = drhg.explain(instance, Solution(routes))
    assert found.certificate is None  # not known with windows
    for route, facts in zip(routes, found.routes, strict=True):
        _, duration, leave = ref.best_departure(instance, route)
        assert facts.duration == duration
        if instance.max_duration is not None:
            assert facts.free_duration == instance.max_duration - duration
        closes = ref.window(instance, instance.depot)[1]
        in_time = [
            later
            for later in range(int(closes - leave) + 1)
            if all(
                begin <= ref.window(instance, node)[1]
                for node, _, begin in ref.walk(instance, route, leave + later)
            )
        ]
        assert facts.delay == max(in_time)


def test_regions_are_refused_by_name_where_they_are_not_known() -> None:
    shops = drhg.vrp(xy=[[0, 0], [0, 3], [4, 0]], windows=[[0, 20], [5, 6], [0, 19]])
    plan = Solution([[1, 2]])
    with pytest.raises(drhg.InstanceError, match="regions does not know time windows"):
        drhg.explain(shops, plan, region=5)
    late = drhg.explain(shops, Solution([[2, 1]]))
    assert late.violations
    assert late.routes[0].delay == 0.0
    first, second = drhg.explain(shops, plan).stops
    assert first.next == Place(2, "0", "0", 6.0)
    assert first.barred == Place(1, "2", "0", 4.0, ("windows",))
    assert second.next == Place(2, "0", "0", 8.0)


@settings(max_examples=upto(60))
@given(st.integers(0, 2**32))
def test_a_conflict_of_times_is_a_proof(seed: int) -> None:
    rng = np.random.default_rng(seed)
    instance = ref.random_windows(rng, int(rng.integers(3, 7)))
    demand = np.zeros(instance.n, np.int64)
    task = replace(instance, demand=demand, vehicles=int(rng.integers(1, 3)))
    found = find_conflict(task)
    if found is None:
        return
    assert task.vehicles is not None
    fits = (
        all(
            any(not ref.breaks_time(task, order) for order in itertools.permutations(part))
            for part in parts
        )
        for parts in ref.partitions(range(1, task.n))
        if len(parts) <= task.vehicles
    )
    assert found.limit
    assert not any(fits)


@pytest.mark.parametrize("wrong", [-1, 13, 2.5, "many"])
def test_a_wrong_region_is_refused(wrong: Any) -> None:
    with pytest.raises(drhg.DrhgError, match="region must be"):
        drhg.explain(tsp([[0, 0], [0, 1]]), Solution([[0, 1]]), region=wrong)


def test_progress_ends_at_one() -> None:
    shares: list[float] = []
    drhg.explain(tsp(np.random.default_rng(0).random((30, 2))), Solution([range(30)]),
                 on_progress=shares.append)  # fmt: skip
    assert shares[-1] == 1.0
    assert shares == sorted(shares)


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(one) for one in arguments])


def test_the_command_prints_what_python_finds(tmp_path: Path) -> None:
    task = drhg.uniform_cvrp(12, seed=1)
    solution = drhg.solve(task, max_iters=50).solution
    files = tmp_path / "a.json", tmp_path / "a.sol"
    drhg.files.registry.write_instance(files[0], task)
    drhg.write_solution(files[1], task, solution)
    found = drhg.explain(task, solution)
    told = json.loads(run("explain", *files, "-f", "json").stdout)
    assert told == json.loads(found.to_json())
    assert len(told["stops"]) == 12
    rows = list(csv.DictReader(io.StringIO(run("explain", *files, "-f", "csv").stdout)))
    assert [float(row["cost"]) for row in rows] == pytest.approx([s.cost for s in found.stops])
    assert {"next_route", "barred_by", "region_gain", "extra"} <= set(rows[0])
    text = run("explain", *files).stdout
    assert "admit no better repair" in text
    assert "Dearest stops" in text
    assert run("explain", *files, "--plot", tmp_path / "p.png").exit_code == 0
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    assert run("explain", *files, "--map", tmp_path / "why.html").exit_code == 0
    assert json.dumps(found.map_facts(), separators=(",", ":")) in (
        (tmp_path / "why.html").read_text()
    )
    refused = run("explain", *files, "--map", tmp_path / "why.png")
    assert refused.exit_code == 2
    assert "it may end in .html" in refused.stderr


def test_the_command_refuses_and_reports(tmp_path: Path) -> None:
    task = cvrp(np.zeros((4, 2)), [0, 6, 6, 6], 10, vehicles=2)
    path = tmp_path / "tight.json"
    drhg.files.registry.write_instance(path, task)
    none = run("explain", path)
    assert none.exit_code == 4
    assert "no two of nodes 1, 2 and 3" in none.stdout
    assert run("explain", path, "-f", "csv").exit_code == 2
    (tmp_path / "bad.sol").write_text("Route #1: 1 2\nRoute #2: 3\nCost 0\n")
    bad = run("explain", path, tmp_path / "bad.sol")
    assert bad.exit_code == 3
    assert "carries 12" in bad.stderr
    assert "no plan keeps the limits" in bad.stdout
    refused = run("explain", path, tmp_path / "bad.sol", "--plot", tmp_path / "p.txt")
    assert refused.exit_code == 2
    assert "is no picture" in refused.stderr


def test_large_plans_are_explained_too() -> None:
    task = drhg.uniform_cvrp(1500, seed=1)
    solution, _ = construct(task, "sweep", 0)
    found = drhg.explain(task, solution)
    assert len(found.stops) == 1500
    assert found.certificate is not None
    assert 0.0 < found.certificate.share < 1.0
    assert found.better[0].extra < 0.0

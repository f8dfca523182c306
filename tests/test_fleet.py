"""Several depots and types of vehicles: fields, the checker against a slow walk, the search."""

from __future__ import annotations

import copy
import itertools
import pickle
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

import drhg
from drhg import (
    InstanceError,
    Solution,
    SolutionError,
    VehicleType,
    check,
    cost,
    read_solution,
    read_table,
    schedule,
    vrp,
    write_solution,
)
from drhg.files import from_json, parse, to_json
from drhg.files.geojson import instance_from_geojson, instance_to_geojson
from drhg.files.map import _facts as map_facts
from drhg.files.stops import format_stops
from drhg.files.tsplib import format_instance
from drhg.plotting.gantt import plot_gantt
from drhg.plotting.solutions import save_solution
from drhg.problem import Instance, kinds_of_routes, variants_of, vehicle_called

TOWN = [[0, 0], [100, 0], [0, 30], [40, 30], [100, 40], [60, 0]]
VAN = VehicleType(name="van", count=2, capacity=10, fixed_cost=50)
TRUCK = VehicleType(name="truck", count=1, capacity=25, fixed_cost=90, depot=1, shift=(10, 400))


def town(*fleet: VehicleType, **more: object) -> Instance:
    given = {"xy": TOWN, "demand": [0, 0, 6, 6, 7, 8], "vehicles": fleet or (VAN, TRUCK)}
    return vrp(**(given | more))  # type: ignore[arg-type]


def random_fleet(rng: np.random.Generator, n: int) -> Instance:
    """Up to three types at up to two depots; every customer can be served by some of them."""
    xy = rng.integers(0, 60, (n, 2)).astype(float)
    depots = int(rng.integers(1, 3)) if n > 2 else 1
    demand = rng.integers(0, 10, n)
    demand[:depots] = 0
    timed = rng.random() < 0.5
    fleet = []
    for i in range(int(rng.integers(depots, 4))):
        fleet.append(
            VehicleType(
                name=f"type{i}" if rng.random() < 0.5 else "",
                count=None if i == 0 else int(rng.integers(1, 4)),
                capacity=int(rng.integers(10, 26)),
                fixed_cost=int(rng.integers(0, 60)) if rng.random() < 0.7 else 0.0,
                depot=i % depots,
                shift=(int(rng.integers(0, 40)), int(rng.integers(250, 400))) if timed else None,
                max_distance=int(rng.integers(180, 300)) if i and rng.random() < 0.3 else None,
                max_duration=int(rng.integers(200, 300)) if i and rng.random() < 0.3 else None,
            )
        )
    windows = None
    if timed:
        opens = rng.integers(0, 100, n)
        windows = np.stack((opens, opens + rng.integers(150, 200, n)), axis=1)
        windows[:depots] = 0, 500
    return vrp(
        xy=xy, metric="EUC_2D", demand=demand, vehicles=fleet, windows=windows,
        service_time=np.where(np.arange(n) < depots, 0, rng.integers(0, 9, n)),
        returns=bool(rng.random() < 0.8),
    )  # fmt: skip


def type_of(instance: Instance, vehicle: int) -> VehicleType:
    """The type of a vehicle, by counting."""
    assert instance.fleet is not None
    every = [one for one in instance.fleet for _ in range(one.count or instance.n)]
    return every[vehicle - 1]


def walked(instance: Instance, route: Sequence[int], one: VehicleType) -> float:
    """What a route of a vehicle costs, by walking it at every departure; inf if not allowed."""
    demand = instance.demand
    assert demand is not None
    assert one.depot is not None
    stops = [one.depot, *route, *([one.depot] if instance.returns else [])]
    legs = [float(instance.distance(a, b)) for a, b in itertools.pairwise(stops)]
    service = instance.services.tolist()
    opens, closes = instance.opens.tolist(), instance.closes.tolist()
    way, served = sum(legs), sum(service[i] for i in route)
    if sum(int(demand[i]) for i in route) > (one.capacity or 0):
        return np.inf
    if one.max_distance is not None and way + served > one.max_distance:
        return np.inf
    starts, ends = one.shift or (0.0, np.inf)
    starts, ends = max(starts, opens[one.depot]), min(ends, closes[one.depot])
    for leave in itertools.count(starts):
        time = leave
        for leg, b in zip(legs, stops[1:], strict=True):
            time += leg
            if b != one.depot:
                time = max(time, opens[b])
            if time > (ends if b == one.depot else closes[b]):
                return np.inf  # and later, too
            time += service[b]
        if one.max_duration is None or time - leave <= one.max_duration:
            return way + one.fixed_cost
        if leave > max(opens):
            return np.inf  # it waits nowhere, so it does not get shorter
    raise AssertionError


def best_cost(instance: Instance) -> float:
    """The cost of a cheapest plan: every set of customers in its best order, on every type."""
    assert instance.fleet is not None
    customers = instance.customers.tolist()
    found: dict[tuple[tuple[int, ...], int], float] = {}
    for size in range(1, len(customers) + 1):
        for group in itertools.combinations(customers, size):
            for k, one in enumerate(instance.fleet):
                orders = itertools.permutations(group)
                found[group, k] = min(walked(instance, order, one) for order in orders)

    def rest(left: tuple[int, ...], counts: tuple[int, ...]) -> float:
        if not left:
            return 0.0
        best = np.inf
        for size in range(len(left)):
            for others in itertools.combinations(left[1:], size):
                group = (left[0], *others)
                behind = tuple(i for i in left if i not in group)
                for k, count in enumerate(counts):
                    if count and found[group, k] < best:
                        fewer = (*counts[:k], count - 1, *counts[k + 1 :])
                        best = min(best, found[group, k] + rest(behind, fewer))
        return best

    return rest(tuple(customers), tuple(one.count or 9 for one in instance.fleet))


# --- fields ---------------------------------------------------------------------------------------


def test_a_fleet_says_depots_capacities_and_numbers() -> None:
    here = town()
    assert here.depots.tolist() == [0, 1]
    assert here.customers.tolist() == [2, 3, 4, 5]
    assert (here.vehicles, here.capacity, here.depot) == (3, 25, 0)
    assert variants_of(here) == ["fleet"]
    assert [vehicle_called(here, v) for v in (1, 2, 3)] == ["van 1", "van 2", "truck"]
    plan = Solution([[4, 5], [2], [3]], vehicles=[3, 1, 2])
    assert kinds_of_routes(here, plan).tolist() == [1, 0, 0]
    assert check(here, plan) == []
    assert (
        from_json(to_json(here)) == here == copy.deepcopy(here) == pickle.loads(pickle.dumps(here))
    )
    assert replace(here, name="again").fleet == here.fleet
    common = vrp(xy=TOWN, demand=[0, 0, 1, 1, 1, 0.5], capacity=2.5, depot=1,
                 vehicles=[VehicleType(count=1), VehicleType(depot=0, capacity=1.25)])  # fmt: skip
    assert common.fleet is not None
    assert [(one.depot, one.capacity) for one in common.fleet] == [(1, 2.5), (0, 1.25)]
    assert (common.demand_scale, common.capacity, common.vehicles) == (100, 250, 7)


def test_wrong_fields_are_named() -> None:
    for field, value, words in (
        ("count", 0, "count must be a whole number of at least 1"),
        ("capacity", 0, "capacity must be positive"),
        ("capacity", "big", "capacity must be a finite number"),
        ("fixed_cost", -1, "fixed_cost must be a finite number >= 0"),
        ("depot", -1, "depot must be a whole number of at least 0"),
        ("shift", 5, "shift must be two times"),
        ("shift", (9, 5), "shift must not end before it starts"),
        ("shift", (float("nan"), 5), "the start of a shift must be a finite number"),
        ("max_distance", -2, "max_distance must be"),
        ("max_duration", float("inf"), "max_duration must be"),
        ("name", 3, "name of a vehicle type must be text"),
    ):
        with pytest.raises(InstanceError, match=words):
            VehicleType(**{field: value})  # type: ignore[arg-type]
    for given, words in (
        ({"vehicles": [3]}, r"vehicles\[0\] must be a drhg.VehicleType"),
        ({"vehicles": []}, "vehicles must have at least one type"),
        ({"vehicles": "van"}, "vehicles must be a number or a list"),
        ({"vehicles": [VAN, VAN]}, "two types of vehicles are called 'van'"),
        ({"vehicles": [VehicleType()]}, "demand given, but no capacity"),
        ({"vehicles": [replace(VAN, depot=9)]}, r"vehicles\[0\]: depot 9 is not one of"),
        ({"vehicles": [replace(VAN, depot=2)]}, r"the depot, node 2 .* has a demand"),
        ({"vehicles": [VAN]}, "total demand 27 exceeds 2 vehicles, which carry 20 in all"),
        ({"demand": [0, 0, 26, 1, 1, 1]}, "demands 26, more than the capacity 25"),
        ({"service_time": [0, 3, 1, 1, 1, 1]}, "service_time of the depot must be 0, not 3"),
    ):
        with pytest.raises(InstanceError, match=words):
            town(**given)  # type: ignore[arg-type]
    with pytest.raises(InstanceError, match="vehicles is 4, but the fleet has 3"):
        replace(town(), vehicles=4)
    with pytest.raises(InstanceError, match="locks and fixed edges are for vehicles that are all"):
        replace(town(), fixed_edges=((2, 3),))


def test_customers_whom_no_vehicle_can_serve_are_named() -> None:
    day = np.array([[0, 500]] * 6)
    day[4] = [0, 30]
    with pytest.raises(InstanceError, match=r"no vehicle can serve node 4 .*; of the first"):
        town(windows=day)
    with pytest.raises(InstanceError, match=r"the shift of vehicles\[0\] lies outside the window"):
        town(replace(VAN, shift=(600, 700)), TRUCK, windows=np.array([[0, 500]] * 6))
    with pytest.raises(InstanceError, match=r"no vehicle can serve node 2 .* demands 12"):
        town(VAN, replace(TRUCK, shift=(0, 90)), demand=[0, 0, 12, 1, 1, 1])


# --- the checker ----------------------------------------------------------------------------------


def test_violations_are_named_with_their_vehicle() -> None:
    here = town()
    assert cost(here, Solution([[2]], [1])) == 60 + 50
    assert cost(here, Solution([[4, 5]], [3])) == pytest.approx(40 + np.hypot(40, 40) + 40 + 90)
    assert check(here, Solution([[2, 3], [4, 5]], [2, 3])) == [
        "route 1 of vehicle van 2 carries 12, capacity is 10"
    ]
    assert "the plan does not say which vehicle" in check(here, Solution([[2], [3], [4, 5]]))[0]
    with pytest.raises(SolutionError, match="the plan does not say which vehicle"):
        cost(here, Solution([[2]]))
    assert "vehicle 4 drives route 1, but there are only 3" in (
        check(here, Solution([[2], [3], [4, 5]], [4, 1, 3]))
    )
    assert check(here, Solution([[2, 1], [3], [4, 5]], [2, 1, 3])) == [
        "the depot, node 1 (counted from 0), stands inside a route"
    ]
    late = town(VAN, replace(TRUCK, shift=(10, 130), max_distance=120, max_duration=115))
    assert check(late, Solution([[2], [3], [4, 5]], [1, 2, 3])) == [
        "route 3 of vehicle truck is 136.569 long, allowed is 120",
        "route 3 of vehicle truck is back at 146.569, the depot closes at 130",
        "route 3 of vehicle truck takes 136.569, allowed is 115",
    ]
    assert schedule(late, Solution([[4]], [3]))[0].departure[0] == 10.0
    assert schedule(late, Solution([[4]], [3]))[0].nodes.tolist() == [1, 4, 1]


@pytest.mark.parametrize("seed", range(6))
def test_the_checker_agrees_with_the_walk(seed: int) -> None:
    rng = np.random.default_rng(seed)
    broken = 0
    for _ in range(40):
        here = random_fleet(rng, int(rng.integers(2, 9)))
        order = rng.permutation(here.customers)
        routes = np.split(order, np.flatnonzero(rng.random(len(order) - 1) < 0.2) + 1)
        assert here.vehicles is not None
        drivers = rng.choice(np.arange(1, here.vehicles + 1), len(routes), replace=False)
        plan = Solution(routes, drivers.tolist())
        prices = [
            walked(here, route.tolist(), type_of(here, vehicle))
            for route, vehicle in zip(plan.routes, plan.vehicles or (), strict=True)
        ]
        found = check(here, plan)
        assert bool(found) == np.isinf(prices).any(), found
        if not found:
            assert cost(here, plan) == sum(prices)
        broken += bool(found)
    assert 5 < broken < 38


# --- the search -----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_small_instances_are_solved_to_the_optimum(seed: int) -> None:
    rng = np.random.default_rng(100 + seed)
    for _ in range(6):
        here = random_fleet(rng, int(rng.integers(3, 7)))
        best = best_cost(here)
        found = drhg.solve(here, max_iters=1500, threads=1)
        assert (found.cost == best and not found.unplaced) or (found.unplaced and best == np.inf)
        assert found.unplaced or check(here, found.solution) == []


@pytest.mark.parametrize("seed", range(4))
def test_plans_keep_every_rule(seed: int) -> None:
    rng = np.random.default_rng(200 + seed)
    for _ in range(6):
        here = random_fleet(rng, int(rng.integers(8, 60)))
        found = drhg.solve(here, max_iters=600, threads=int(rng.integers(1, 3)))
        if not found.unplaced:
            assert check(here, found.solution) == []
            again = drhg.solve(here, max_iters=300, start=found.solution, threads=1)
            assert again.cost <= found.cost
            assert check(here, again.solution) == []


def test_a_route_changes_its_vehicle() -> None:
    """A plan with the dear vehicle on a short way is mended by an exchange."""
    far = [[50, 50 + i] for i in range(12)]
    near = [[1, i] for i in range(12)]
    fleet = [VehicleType(count=1, capacity=12), VehicleType(count=1, capacity=12, depot=1)]
    here = vrp(xy=[[0, 0], [50, 40], *near, *far], demand=[0, 0] + [1] * 24, vehicles=fleet)
    wrong = Solution([np.arange(2, 14), np.arange(14, 26)], [2, 1])
    found = drhg.solve(here, max_iters=3000, start=wrong, threads=1)
    assert found.solution.vehicles == (1, 2) or found.solution.vehicles == (2, 1)
    assert found.cost < 0.4 * cost(here, wrong)


# --- files ----------------------------------------------------------------------------------------

STOPS = """name,lat,lon,demand
north,48.10,7.80,
south,47.90,7.80,
a,48.09,7.82,4
b,48.08,7.79,5
c,47.92,7.81,6
d,47.93,7.78,3
"""
VEHICLES = """type,count,capacity,fixed cost,depot,start,end,max distance
van,2,8,500,north,8:00,16:00,
truck,,20,1500,south,,,90000
"""


def stops_with_fleet(folder: Path, fleet: str = VEHICLES, stops: str = STOPS) -> Instance:
    (folder / "stops.csv").write_text(stops)
    (folder / "fleet.csv").write_text(fleet)
    return read_table(folder / "stops.csv", fleet=folder / "fleet.csv", speed=50)


def test_a_table_of_vehicles_is_a_fleet(tmp_path: Path) -> None:
    here = stops_with_fleet(tmp_path)
    assert here.fleet == (
        VehicleType(name="van", count=2, capacity=8, fixed_cost=500, depot=0, shift=(28800, 57600)),
        VehicleType(name="truck", capacity=20, fixed_cost=1500, depot=1, max_distance=90000),
    )
    assert here.customers.tolist() == [2, 3, 4, 5]
    one_depot = STOPS.replace("south,47.90,7.80,", "south,47.90,7.80,1")
    plain = stops_with_fleet(tmp_path, "count,capacity\n2,12\n1,9\n", one_depot)
    assert [vehicle_called(plain, 3), plain.depots.tolist()] == ["3", [0]]


@pytest.mark.parametrize(
    ("fleet", "words"),
    [
        (VEHICLES.replace("south", "west"), "fleet.csv:3: column 'depot': 'west': no stop has"),
        (VEHICLES.replace(",8,", ",eight,"), "fleet.csv:2: column 'capacity': 'eight' is no numb"),
        (VEHICLES.replace("16:00", "7:00"), "fleet.csv:2: shift must not end before it starts"),
        (VEHICLES.replace("van,2", "van,0"), "fleet.csv:2: count must be a whole number of at le"),
        (VEHICLES.replace("van", "truck"), "fleet.csv: two types of vehicles are called 'truck'"),
        ("type,speed\nvan,50\n", "fleet.csv:2: column 'speed': speeds are not supported"),
        ("type,capacity\n", "fleet.csv:1: there is a header, but no vehicle"),
        (VEHICLES.replace(",8,", ",5,"), ""),
    ],
)
def test_wrong_tables_of_vehicles_are_refused(tmp_path: Path, fleet: str, words: str) -> None:
    if not words:
        assert stops_with_fleet(tmp_path, fleet).capacity == 20
        return
    with pytest.raises(InstanceError) as error:
        stops_with_fleet(tmp_path, fleet)
    assert words in str(error.value)


@pytest.mark.parametrize("ending", ["json", "csv", "sol", "geojson"])
def test_plans_say_who_drives_in_every_file(tmp_path: Path, ending: str) -> None:
    here = stops_with_fleet(tmp_path)
    plan = Solution([[4, 5], [2], [3]], [4, 2, 1])
    path = tmp_path / f"plan.{ending}"
    write_solution(path, here, plan)
    again = read_solution(path, here)
    routes = [route.tolist() for route in again.routes]
    driven = dict(zip(again.vehicles or (), routes, strict=True))
    assert driven == {4: [4, 5], 2: [2], 1: [3]}
    assert cost(here, again) == pytest.approx(cost(here, plan))
    assert check(here, again) == []
    if ending == "csv":
        assert "1,truck 2,1,c" in path.read_text()


def test_fleets_go_through_geojson_and_vrplib(tmp_path: Path) -> None:
    here = stops_with_fleet(tmp_path)
    again = instance_from_geojson(instance_to_geojson(replace(here, durations=None)).encode())
    assert again == replace(here, durations=None)
    text = format_instance(town(VAN, replace(TRUCK, shift=None)))
    assert "VEHICLES: 3" in text
    assert "VEHICLES_DEPOT_SECTION\n1 1\n2 1\n3 2\n" in text
    found = parse(text)
    assert found.fleet == (replace(VAN, name="", depot=0), replace(TRUCK, name="", shift=None))
    several = town(VehicleType(capacity=9), VehicleType(capacity=9, depot=1))
    assert "VEHICLES" not in format_instance(several)
    assert parse(format_instance(several)).fleet == several.fleet
    for broken, words in (
        (text.replace("3 2\nCAP", "3 4\nCAP"), "4 is no depot of DEPOT_SECTION"),
        (text.replace("3 2\nCAP", "CAP"), "VEHICLES_DEPOT_SECTION has 2 rows, VEHICLES is 3"),
        (text.replace("VEHICLES: 3", "VEHICLES: 999999999999"), "has 3 rows, VEHICLES is 9999"),
        (text.replace("1 1\n2 1\n3 2\n", "1 1\n2 1\n3 1\n"), "no vehicle starts at depot 2"),
    ):
        with pytest.raises(InstanceError, match=words):
            parse(broken)
    with pytest.raises(drhg.DrhgError, match="no place for shifts of vehicles"):
        format_instance(town())


def test_pages_and_charts_show_fleets(tmp_path: Path) -> None:
    here = stops_with_fleet(tmp_path)
    plan = Solution([[4, 5], [2], [3]], [4, 2, 1])
    facts = map_facts(here, plan, cost(here, plan))
    assert facts["depots"] == [0, 1]
    assert facts["vehicles"] == ["truck 2", "van 2", "van 1"]
    assert [(one["depot"], one["capacity"]) for one in facts["routes"]] == [(1, 20), (0, 8), (0, 8)]
    figure = Figure()
    plot_gantt(figure.add_subplot(), here, plan)
    assert [t.get_text() for t in figure.axes[0].get_yticklabels()] == ["truck 2", "van 2", "van 1"]
    save_solution(tmp_path / "plan.svg", here, plan)


# --- who does not know them -----------------------------------------------------------------------


def test_what_does_not_know_fleets_says_so() -> None:
    here = town()
    for method in ("local", "insertion", "neural", "paper", "library", "hybrid"):
        with pytest.raises(drhg.DrhgError, match="several depots or types of vehicles"):
            drhg.solve(here, method=method, max_iters=1)
    plan = Solution([[2], [3], [4, 5]], [1, 2, 3])
    with pytest.raises(drhg.DrhgError, match="replan does not know several depots"):
        drhg.replan(plan, here)
    with pytest.raises(drhg.DrhgError, match="explain does not know several depots"):
        drhg.explain(here, plan)
    with pytest.raises(drhg.DrhgError, match="a table of stops does not know several depots"):
        format_stops(here)

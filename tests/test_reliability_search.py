"""What a search promises: valid, rightly priced, optimal when tiny, the same again, never worse."""

from __future__ import annotations

import itertools
import json
import logging
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import reference
from soak import cases
from test_solver import best_of_three, checked

import drhg
from drhg.files.registry import write_instance
from drhg.hypergraph.judge import Repaired
from drhg.hypergraph.plan import Rules
from drhg.hypergraph.reduce import Graphs
from drhg.network import weights
from drhg.network.decode import Compiled
from drhg.network.repairer import Guarded, NeuralRepair
from drhg.network.views import State
from drhg.problem import Metric, from_zero
from drhg.repair.local import LocalSearchRepair
from drhg.session.methods import NAMED

SEARCHED = [name for name in NAMED if name != "paper"]  # whose large network takes its time


def some_problem(seed: int, tour: bool, n: int) -> tuple[drhg.Instance, drhg.Solution]:
    """A random TSP or CVRP of any metric and shape, perhaps with fixed edges or tight limits."""
    rng = np.random.default_rng([seed, tour, n])
    metric = list(Metric)[int(rng.integers(len(Metric)))]
    shape = reference.SHAPES[int(rng.integers(len(reference.SHAPES)))]
    if tour:
        share = float(rng.choice([0.0, 0.0, 0.3]))
        instance, order = reference.random_tour(rng, n, shape, metric, share)
        return instance, drhg.Solution([order])
    limit, fleet = (bool(rng.random() < 0.3) for _ in range(2))
    instance, routes = reference.random_plan(rng, n - 1, shape, metric, limit=limit, fleet=fleet)
    return instance, drhg.Solution(routes)


def some_size(seed: int, most: int) -> int:
    """Small sizes as often as large ones."""
    return int(np.exp(np.random.default_rng(seed).uniform(0, np.log(most + 1))))


# --- valid, priced, optimal -----------------------------------------------------------------------


@pytest.mark.parametrize("repair", SEARCHED)
@pytest.mark.parametrize("tour", [True, False], ids=["tsp", "cvrp"])
def test_whatever_is_returned_is_valid_and_rightly_priced(repair: str, tour: bool) -> None:
    iterations = 2 if repair == "library" else 30  # which takes its time each time
    for seed in range(cases(15, 900)):  # twelve combinations, some without networks: over 10,000
        instance, _ = some_problem(seed, tour, some_size(seed, 200))
        if instance.metric is Metric.EXPLICIT and repair in ("neural", "hybrid"):
            continue
        result = drhg.solve(instance, method=repair, max_iters=iterations, seed=seed, threads=1)
        if result.status != "infeasible":
            checked(result)
        else:  # a tight fleet or length limit: what is there is right, what is not is named
            assert result.unplaced
            rest = [found for found in drhg.check(instance, result.solution)]
            assert rest == [f"{from_zero(i)} is not visited" for i in result.unplaced]


@pytest.mark.parametrize("tour", [True, False], ids=["tsp", "cvrp"])
def test_tiny_instances_are_solved_to_optimality(
    tour: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """Against all orders of up to nine nodes, and all plans of up to seven customers."""
    count, most = cases((20, 7), (1000, 9)) if tour else cases((20, 6), (1000, 8))
    best_of = reference.best_tour if tour else reference.best_plan
    optimal = 0
    for seed in range(count):
        instance, _ = some_problem(seed, tour, 2 + seed % (most - 1))
        best, _ = best_of(instance)
        result = drhg.solve(instance, max_iters=cases(2000, 3000), seed=seed, threads=1)
        right = result.status != "infeasible" and result.cost <= best + 1e-9 * max(1.0, best)
        optimal += right
        if result.status != "infeasible":
            assert checked(result).cost >= best - 1e-9 * max(1.0, best)
    with capsys.disabled():
        print(f"\n{optimal} of {count} {'tours' if tour else 'plans'} are optimal")
    assert optimal >= 0.99 * count


# --- evaluation does not depend on names, places or directions ------------------------------------


def renamed(instance: drhg.Instance, new: np.ndarray) -> drhg.Instance:
    """The same problem with node i called new[i]."""
    old = np.argsort(new)
    return replace(
        instance,
        xy=None if instance.xy is None else instance.xy[old],
        matrix=None if instance.matrix is None else instance.matrix[np.ix_(old, old)],
        demand=None if instance.demand is None else instance.demand[old],
        depot=int(new[instance.depot]) if instance.is_cvrp else 0,
        fixed_edges=tuple((int(new[a]), int(new[b])) for a, b in instance.fixed_edges),
    )


def broken(rng: np.random.Generator, instance: drhg.Instance, solution: drhg.Solution) -> Any:
    """A solution with one thing wrong: a node left out, named twice, unknown, or in a new place."""
    routes = [route.tolist() for route in solution.routes]
    route = routes[int(rng.integers(len(routes)))]
    at = int(rng.integers(len(route)))
    match int(rng.integers(5)):
        case 0:
            del route[at]
        case 1:
            route.insert(at, int(rng.integers(instance.n)))
        case 2:
            route[at] = int(rng.choice([-1, instance.n, instance.n + 7]))
        case 3:
            routes.append([route.pop(at)] if instance.is_cvrp and len(route) > 1 else [0])
        case _:
            routes = [list(itertools.chain(*routes))]
    return drhg.Solution(routes)


@pytest.mark.parametrize("seed", range(cases(60, 1000)))
def test_evaluation_is_invariant(seed: int) -> None:
    rng = np.random.default_rng(seed)
    instance, solution = some_problem(seed, seed % 2 == 0, int(rng.integers(3, 40)))
    if seed % 3 == 0:
        solution = broken(rng, instance, solution)
    known, violations = drhg.check(instance, solution), len(drhg.check(instance, solution))
    if any("does not exist" in found for found in known):
        return
    price = drhg.cost(instance, solution)

    def same(other: drhg.Instance, routes: list[np.ndarray], factor: float = 1.0) -> None:
        moved = drhg.Solution(routes)
        assert drhg.cost(other, moved) == pytest.approx(factor * price, rel=1e-9, abs=1e-9)
        assert len(drhg.check(other, moved)) == violations

    routes = list(solution.routes)
    same(instance, [route[::-1] for route in routes])
    same(instance, routes[::-1])
    if not instance.is_cvrp:
        same(instance, [np.roll(route, 1) for route in routes])
    new = rng.permutation(instance.n)
    same(renamed(instance, new), [new[route] for route in routes])
    if instance.xy is None or not instance.metric.planar:
        return
    turn = np.array([[0.0, -1.0], [1.0, 0.0]])
    same(replace(instance, xy=instance.xy @ turn), routes)
    if instance.metric is Metric.EXACT:
        same(replace(instance, xy=instance.xy + rng.uniform(-100, 100, 2)), routes)
        c = float(rng.uniform(0.1, 10))
        more = {} if instance.max_distance is None else {
            "max_distance": c * instance.max_distance, "service_time": c * instance.service_time
        }  # fmt: skip
        same(replace(instance, xy=c * instance.xy, **more), routes, c)


# --- warm starts ----------------------------------------------------------------------------------


def test_a_valid_start_is_never_made_worse() -> None:
    repairs = itertools.cycle(["auto", "local", "insertion"])
    for seed, repair in zip(range(cases(60, 1000)), repairs, strict=False):
        instance, start = some_problem(seed, seed % 2 == 0, 2 + some_size(seed, 60))
        assert drhg.check(instance, start) == []
        result = drhg.solve(instance, start=start, method=repair, max_iters=5, seed=seed, threads=1)
        assert checked(result).cost <= drhg.cost(instance, start) * (1 + 1e-9)


def test_a_broken_start_is_refused_with_its_reason() -> None:
    refused = 0
    for seed in itertools.count():
        rng = np.random.default_rng(seed)
        instance, good = some_problem(seed, seed % 2 == 0, int(rng.integers(4, 40)))
        start = broken(rng, instance, good)
        if not (reasons := drhg.check(instance, start)):
            continue
        with pytest.raises(drhg.SolutionError) as caught:
            drhg.solve(instance, start=start, max_iters=5)
        assert caught.value.reason.startswith(
            f"start is no solution of {instance.name}: {reasons[0]}"
        )
        refused += 1
        if refused == 200:
            return


# --- the same again -------------------------------------------------------------------------------

AGAIN = """
import hashlib, itertools, drhg
seen = []
problems = drhg.uniform_tsp({n}, seed=5), drhg.uniform_cvrp({n}, seed=5)
for instance, threads in itertools.product(problems, (1, 2)):
    for repair, iterations in (("auto", {auto}), ("local", 100), ("neural", 20)):
        if repair == "neural" and instance.is_cvrp:
            continue
        found = drhg.solve(
            instance, max_iters=iterations, seed=3, threads=threads, method=repair
        )
        seen.append((found.cost, found.iterations, [r.tolist() for r in found.solution.routes]))
        seen.append([(point.iterations, point.cost) for point in found.trace])
print(hashlib.sha256(repr(seen).encode()).hexdigest())
"""


@pytest.mark.parametrize("n", cases([60], [60, 3500]))
def test_fresh_processes_find_the_same(n: int) -> None:
    """Whatever the hash seed: cost, iterations, every route and every point of the trace but for
    its seconds, by the sha256 of their text.
    """
    script, digests = AGAIN.format(n=n, auto=cases(1000, 5000)), set()
    for i in range(cases(3, 20)):
        env = os.environ | {"PYTHONHASHSEED": str(i)}
        run = subprocess.run(
            [sys.executable, "-c", script], env=env, capture_output=True, text=True, timeout=600
        )
        assert run.returncode == 0, run.stderr
        digests.add(run.stdout)
    assert len(digests) == 1


# --- a network that fails -------------------------------------------------------------------------


class Failing:
    """A network that works for some decisions and then does what `fail` does."""

    def __init__(self, fail: Callable[[State], Any], good: int) -> None:
        found = weights.load("economy")
        self.config = found.config
        self.inner = Compiled(found.config, found.tensors)
        self.fail, self.left = fail, good

    def logits(self, state: State) -> Any:
        self.left -= 1
        answer = None if self.left >= 0 else self.fail(state)
        return self.inner.logits(state) if answer is None else answer


def guarded(network: Any, alternatives: int = 1) -> drhg.Regions:
    """The search with a network for which local search stands in when it fails."""
    repair = NeuralRepair(network, alternatives=alternatives)
    return drhg.Regions(repair=Guarded(repair, LocalSearchRepair()))


def nan(state: State) -> Any:
    return np.full((*state.nodes.shape[:2], 1), np.nan, np.float32)


def no_memory(state: State) -> None:
    raise MemoryError


def torchs_no_memory(state: State) -> None:
    raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB")


def memory_for_two(state: State) -> None:
    if len(state) > 2:
        raise MemoryError


FAILURES = {
    "nan": (nan, "not numbers"),
    "memory": (no_memory, "MemoryError"),
    "torch": (torchs_no_memory, "CUDA out of memory"),
    "small": (memory_for_two, "smaller batches"),
}


@pytest.mark.parametrize("together", [False, True], ids=["one", "several"])
@pytest.mark.parametrize(("fail", "words"), FAILURES.values(), ids=FAILURES)
def test_a_network_that_fails_costs_nothing_but_a_warning(
    fail: Callable[[State], Any], words: str, together: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    network = Failing(fail, 100)
    drhg.warmup(["neural"])  # which asks the real network
    caplog.set_level(logging.WARNING, "drhg")
    instances = [drhg.uniform_tsp(40, seed=s) for s in range(2)]
    options: dict[str, Any] = {"method": guarded(network, 4), "max_iters": 12}
    if together:
        results = drhg.solve_many(instances, **options)
    else:
        results = [drhg.solve(instances[0], **options)]
    assert network.left < 0
    for result in results:
        assert checked(result).iterations == 12
        assert result.cost < result.trace[0].cost
    said = [record.getMessage() for record in caplog.records]
    warnings = [message for message in said if not message.startswith("compiling")]
    # a batch of one row that still does not fit is the second and last thing to say
    assert len(warnings) == (2 if "emory" in words and fail is not memory_for_two else 1)
    assert words in warnings[-1]


def test_smaller_batches_change_nothing() -> None:
    found = []
    drhg.warmup(["neural"])
    for fail in (lambda _: None, memory_for_two):
        instance = drhg.uniform_tsp(40, seed=1)
        result = drhg.solve(instance, method=guarded(Failing(fail, 0), 5), max_iters=8)
        found.append(result.solution.tour.tolist())
    assert found[0] == found[1]


def test_compiled_weights_that_go_bad_are_noticed(caplog: pytest.LogCaptureFixture) -> None:
    found = weights.load("economy")
    network = Compiled(found.config, found.tensors)
    network.flat[:] = np.nan
    drhg.warmup(["neural"])  # which asks the real network
    result = drhg.solve(drhg.uniform_tsp(60, seed=1), method=guarded(network), max_iters=20)
    assert checked(result).iterations == 20
    said = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert [message for message in said if not message.startswith("compiling")] == [
        "the network failed, another repair goes on: its scores are not numbers"
    ]


def test_memory_that_runs_out_ends_the_search_with_the_best() -> None:
    def fail(rules: Rules, graphs: Graphs, rng: np.random.Generator) -> Repaired:
        raise MemoryError

    result = drhg.solve(
        drhg.uniform_tsp(30, seed=1), time_limit=60, method=drhg.Regions(repair=fail)
    )
    assert checked(result).status == "memory"


def test_a_target_that_is_no_number_is_refused() -> None:
    with pytest.raises(drhg.DrhgError, match="target must be a number, not nan"):
        drhg.solve(drhg.uniform_tsp(30, seed=1), target=float("nan"))


# --- time and memory, long forms only -------------------------------------------------------------


@pytest.mark.soak
@pytest.mark.parametrize("make", [drhg.uniform_tsp, drhg.uniform_cvrp], ids=["tsp", "cvrp"])
@pytest.mark.parametrize("n", [100, 1000, 10_000, 100_000])
@pytest.mark.parametrize("limit", [0.1, 1.0, 10.0])
def test_time_limits(
    make: Callable[..., drhg.Instance], n: int, limit: float, capsys: pytest.CaptureFixture[str]
) -> None:
    """Once everything is loaded and compiled; above 10,000 nodes the figure is only shown."""
    instance = make(n, seed=1)
    drhg.solve(make(100, seed=2), max_iters=100)

    def overshoot() -> float:
        began = time.perf_counter()
        result = drhg.solve(instance, time_limit=limit)
        over = time.perf_counter() - began - limit
        assert checked(result).status == "time"
        with capsys.disabled():
            print(f"\n{instance.problem} {n:,}, {limit:g} s: {over:.3f} s over")
        return over

    best_of_three(overshoot, max(0.2, 0.02 * limit) if n <= 10_000 else np.inf)


ADDRESSES = 2 * 2**30  # bytes


@pytest.mark.soak
@pytest.mark.parametrize(("kind", "n"), [("tsp", 100_000), ("cvrp", 10_000)])
def test_two_gigabytes_are_enough(
    tmp_path: Path, kind: str, n: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """An address space of 2 GB, with two threads; what is really used is shown."""
    path = tmp_path / f"a.{'vrp' if kind == 'cvrp' else 'tsp'}"
    write_instance(path, getattr(drhg, f"uniform_{kind}")(n, seed=1))
    code = (
        "import resource, sys, drhg\n"
        "found = drhg.solve(drhg.read(sys.argv[1]), time_limit=20, threads=2)\n"
        "print(found.status, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, timeout=300,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES)),
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    status, megabytes = run.stdout.split()
    with capsys.disabled():
        print(f"\n{kind} {n:,}: {megabytes} MB at most")
    assert status == "time"


@pytest.mark.soak
def test_memory_does_not_grow(capsys: pytest.CaptureFixture[str]) -> None:
    """Solve after solve for DRHG_SOAK_MINUTES (30): resident memory rises by less than 2 %."""
    end = time.monotonic() + 60 * float(os.environ.get("DRHG_SOAK_MINUTES", "30"))
    problems = itertools.cycle([drhg.uniform_tsp(1000, seed=1), drhg.uniform_cvrp(500, seed=1)])
    seen = []
    for seed, instance in zip(itertools.count(), problems, strict=False):
        checked(drhg.solve(instance, time_limit=2, seed=seed))
        seen.append(int(Path("/proc/self/statm").read_text().split()[1]) * 4 // 1024)
        if time.monotonic() > end:
            break
    quarter = max(1, len(seen) // 4)
    early, late = max(seen[quarter : 2 * quarter] or seen), max(seen[-quarter:])
    with capsys.disabled():
        print(f"\n{len(seen)} solves: {early} MB in the second quarter, {late} MB in the last")
    assert late <= 1.02 * early


def test_the_record_of_a_result_is_plain_json() -> None:
    """Costs and routes are numbers of JSON, not of NumPy, and never NaN or infinite."""
    for tour in (True, False):
        instance, _ = some_problem(1, tour, 12)
        row = drhg.solve(instance, max_iters=5, threads=1).to_dict()
        assert json.loads(json.dumps(row, allow_nan=False)) == row

"""Benchmarks: rows that last, references, statistics, suites, the report and the gate."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import drhg
from drhg import cli
from drhg.benchmark import TITLES, gate, results, run, statistics
from drhg.benchmark.jobs import Job, Solver, run_job, weights_hash
from drhg.benchmark.published import published
from drhg.benchmark.references import (
    BEST_RIVAL,
    EXPECTED,
    HERE,
    Reference,
    References,
    expected_optimum,
    measure,
)
from drhg.benchmark.rivals import RIVALS, Outcome, unrounded
from drhg.benchmark.rows import NEEDED, Row, RowFile, digest, key_of, read_rows
from drhg.benchmark.suites import SUITES, X20, Choice, net_file, paper_tsplib
from drhg.cli import app
from drhg.errors import DrhgError

ROOT = Path(__file__).parent.parent
DATA = os.environ.get("DRHG_DATA")
needs_data = pytest.mark.skipif(DATA is None, reason="TSPLIB and CVRPLIB are not at hand")
SMALL = Choice(instances=2, only=("TSP100",), max_iters=30, rivals=())


def made(**more: Any) -> Row:
    row: Row = {
        "suite": "tsp", "set": "TSP100", "instance": "a", "n": 100, "solver": "drhg",
        "limit": "1 s", "status": "ok", "cost": 10.0, "gap": 0.0, "reference": 10.0,
        "reference_kind": HERE, "seconds": 1.0, "iterations": 5, "seed": 0, "threads": 1,
        "time_limit": 1.0, "max_iters": None, "config": {"time_limit": 1.0}, "config_hash": "c",
        "cpu": "x", "cores": 2,
        "commit": "abc", "when": "2026-01-01T00:00:00+00:00",
    }  # fmt: skip
    return row | more


# --- rows ----------------------------------------------------------------------------------------


def test_rows_come_back_and_the_last_of_a_key_counts(tmp_path: Path) -> None:
    path = tmp_path / "sub" / "rows.jsonl"
    with RowFile(path) as file:
        file.add(made(cost=3.0))
        file.add(made(instance="b"))
        file.add(made(cost=2.0))
    assert [(r["instance"], r["cost"]) for r in read_rows([path])] == [("b", 10.0), ("a", 2.0)]


def test_a_torn_line_is_dropped_and_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    with RowFile(path) as file:
        file.add(made())
    with path.open("a") as torn:
        torn.write('{"suite": "tsp", "ins')
    assert len(read_rows([path])) == 1
    with RowFile(path) as file:
        file.add(made(instance="b"))
    assert [r["instance"] for r in read_rows([path])] == ["a", "b"]


@pytest.mark.parametrize("line", ["nonsense", "[]", "{}", "null", '{"suite": 1}'])
def test_what_is_no_row_is_refused_with_its_line(tmp_path: Path, line: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(made()) + "\n" + line + "\n")
    with pytest.raises(DrhgError, match=r"rows.jsonl:2: not a row"):
        read_rows([path])


def test_the_hash_names_the_configuration() -> None:
    one = Solver("drhg", time_limit=1.0)
    assert digest(one.config) == digest(Solver("drhg", time_limit=1.0, limit="other words").config)
    others = [Solver("drhg", time_limit=2.0), Solver("drhg", time_limit=1.0, seed=1),
              Solver("drhg", time_limit=1.0, method="local"), Solver("fast_tsp", time_limit=1.0),
              Solver("drhg", time_limit=1.0, changes=(("destroy.k", "20,100"),))]  # fmt: skip
    assert len({digest(m.config) for m in [one, *others]}) == 6
    # a rival's rows stay valid when our options change
    rival = Solver("fast_tsp", time_limit=1.0)
    assert digest(rival.config) == digest(Solver("fast_tsp", 1.0, method="local").config)


def test_a_row_says_everything(tmp_path: Path) -> None:
    instance = drhg.uniform_tsp(40, seed=1)
    solver = Solver("drhg", max_iters=20, seed=3, limit="20 iterations")
    row = run_job(Job("tsp", "TSP40", instance, solver, Reference(5.0, HERE)))
    assert set(NEEDED) < set(row)
    assert row["status"] == "ok"
    assert row["gap"] == pytest.approx(100 * (row["cost"] / 5.0 - 1))
    assert (row["reference"], row["reference_kind"], row["seed"]) == (5.0, HERE, 3)
    assert row["iterations"] == 20
    assert row["cpu"]
    assert len(row["config_hash"]) == 12
    assert row["weights_hash"] is None  # no network took part
    assert len(weights_hash(replace(solver, method="neural")) or "") == 12
    assert run_job(Job("tsp", "TSP40", instance, solver))["cost"] == row["cost"]  # reproduces
    json.dumps(row)


def test_our_own_failures_are_rows_too() -> None:
    bare = drhg.tsp(matrix=np.ones((9, 9), int) - np.eye(9, dtype=int))
    row = run_job(Job("tsp", "T", bare, Solver("drhg", max_iters=5, method="neural")))
    assert row["status"] == "skipped"
    assert "coordinates" in row["error"]
    with pytest.raises(DrhgError, match="cannot read weights"):
        Solver("drhg", method="neural", model="/no/such/file").config  # noqa: B018


# --- references ----------------------------------------------------------------------------------


def test_expected_optimum_is_near_the_papers_means() -> None:
    for n, mean in ((1000, 23.12), (5000, 50.97), (10_000, 71.78)):
        assert expected_optimum(n) == pytest.approx(mean, rel=2e-3)
    assert expected_optimum(100, area=4.0) == pytest.approx(2 * expected_optimum(100))


def test_large_uniform_tours_have_an_expected_reference() -> None:
    from drhg.problem.generate import paper_tsp

    known = References().of(paper_tsp(10_000, 1)[0])
    assert known is not None
    assert known.kind == EXPECTED
    assert References().of(drhg.uniform_tsp(50, seed=77)) is None


def test_long_runs_are_kept_and_only_improve(tmp_path: Path) -> None:
    path = tmp_path / "references.json"
    instance = drhg.uniform_tsp(30, seed=1)
    path.write_text(json.dumps({"other-1": {"cost": 5.0, "by": "x", "seconds": 1}}))
    assert measure([instance], path, seconds=0.1) == 0
    first = json.loads(path.read_text())
    assert first["other-1"]["cost"] == 5.0
    best = first[instance.name]["cost"]
    assert References(None, path).of(instance) == Reference(best, HERE)
    first[instance.name]["cost"] = 1.0
    path.write_text(json.dumps(first))
    measure([instance], path, seconds=0.1)
    assert json.loads(path.read_text())[instance.name]["cost"] == 1.0


def test_a_damaged_file_of_references_is_refused(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text('{"a": 3}')
    with pytest.raises(DrhgError, match="not a file of references"):
        References(None, tmp_path / "r.json")


@needs_data
def test_library_references() -> None:
    data = Path(str(DATA))
    known = References(data)
    berlin = drhg.read(data / "tsplib" / "berlin52.tsp")
    assert known.of(berlin) == Reference(7542.0, "optimal")
    assert known.unrounded(berlin) == Reference(7542.0, "optimal")  # the paper's way
    fixed = drhg.read(data / "tsplib" / "linhp318.tsp")
    assert known.of(fixed) == Reference(45_214.0, "optimal")
    assert fixed.fixed_edges
    edge = fixed.distance(*fixed.fixed_edges[0])
    assert 41_345 + edge == 45_214
    plan = drhg.read(data / "cvrplib" / "A" / "A-n32-k5.vrp")
    exact = known.unrounded(plan)
    assert exact is not None
    assert exact.cost == pytest.approx(787.808, abs=1e-3)  # 784 when rounded
    faulty = drhg.read(data / "cvrplib" / "B" / "B-n50-k8.vrp")
    assert known.of(faulty) is not None
    assert known.unrounded(faulty) is None
    from drhg.problem.generate import paper_cvrp

    lkh = paper_cvrp(200, 1)[0]
    assert known.of(lkh) == Reference(18.863726, "LKH3")


def test_unrounded_length() -> None:
    square = drhg.tsp([[0, 0], [0, 1.4], [1.4, 1.4], [1.4, 0]], metric="EUC_2D")
    solution = drhg.Solution([[0, 1, 2, 3]])
    assert drhg.cost(square, solution) == 4
    assert unrounded(square, solution) == pytest.approx(5.6)
    assert unrounded(drhg.uniform_tsp(5), drhg.Solution([[0, 1, 2, 3, 4]])) is None


# --- statistics ----------------------------------------------------------------------------------


def test_statistics_by_hand_and_by_scipy() -> None:
    values = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]
    assert statistics.mean(values) == 5.0
    assert statistics.spread(values) == pytest.approx(math.sqrt(32 / 7))
    assert statistics.spread(values) == pytest.approx(np.std(values, ddof=1))
    # three against three, fully apart: 2 of the 20 ways to rank them are so extreme
    assert statistics.rank_sum([1, 2, 3], [4, 5, 6]) == pytest.approx(0.1)
    # 4 against 4, rank sum 11: 2 ways of 70 give 10 or 11 -> both tails 4 / 70
    assert statistics.rank_sum([1, 2, 3, 5], [4, 6, 7, 8]) == pytest.approx(4 / 70)
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=40), rng.normal(0.5, size=40)
    exact = stats.ranksums(a, b).pvalue
    assert statistics.rank_sum(list(a), list(b)) == pytest.approx(exact, rel=0.05)
    assert statistics.rank_sum([0.0] * 5, [0.0] * 5) == 1.0
    assert math.isnan(statistics.rank_sum([1, 2], [3, 4]))


def test_only_common_instances_are_compared() -> None:
    rows = [made(instance=i, gap=g) for i, g in (("a", 1.0), ("b", 2.0))]
    rows += [made(instance=i, gap=g, solver="rival") for i, g in (("b", 5.0), ("c", 9.0))]
    rows.append(made(instance="a", gap=None, cost=None, solver="rival", status="hung"))
    ours, theirs = statistics.lines_of(rows)
    assert statistics.paired(ours, theirs) == ([2.0], [5.0])
    assert statistics.verdict([2.0], [5.0]) == "+"
    assert statistics.verdict([5.0], [2.0]) == "-"
    assert statistics.verdict([5.0], [5.0]) == "="
    assert len(theirs.marked) == 1
    assert statistics.counterpart(theirs, [ours, theirs]) is ours


BARE: Row = {"reference": None, "reference_kind": None, "gap": None}


def test_a_row_better_than_a_long_run_becomes_the_reference() -> None:
    rows = [
        made(cost=9.0, **BARE),
        made(cost=11.0, solver="fast_tsp"),  # with a long run of 10
        made(cost=50.0, instance="z", reference=40.0, reference_kind="optimal", gap=25.0),
        made(cost=44.0, instance="z", **BARE),  # made where nothing published was at hand
    ]
    first, second, third, fourth = statistics.with_references(rows)
    assert (first["gap"], second["gap"]) == (0.0, pytest.approx(200 / 9))
    assert {first["reference_kind"], second["reference_kind"]} == {HERE}
    assert (third["gap"], third["reference_kind"]) == (25.0, "optimal")
    assert (fourth["gap"], fourth["reference_kind"]) == (10.0, "optimal")
    assert rows[0]["gap"] is None  # the rows themselves stay as they were


def test_ours_is_never_measured_against_ours() -> None:
    alone = [
        made(cost=9.0, **BARE),
        made(cost=9.5, solver="drhg local", **BARE),
        made(cost=12.0, solver="random insertion", limit="start", **BARE),
        made(cost=None, solver="fast_tsp", status="crashed", **BARE),
    ]
    for row in statistics.with_references(alone):
        assert (row["reference"], row["reference_kind"], row["gap"]) == (None, None, None)
    rivals = [
        made(cost=10.0, solver="fast_tsp", **BARE),
        made(cost=20.0, solver="ortools", **BARE),
    ]
    found = statistics.with_references([*alone, *rivals])
    assert {row["reference_kind"] for row in found} == {BEST_RIVAL}
    assert [row["gap"] for row in found] == [-10.0, -5.0, 20.0, None, 0.0, 100.0]


def test_a_report_without_references_says_why_gaps_are_blank() -> None:
    for suite in ("tsp", "equal-time", "cvrp", "tsplib", "cvrplib", "non-optimal"):
        rows = [made(suite=suite, instance=f"t{i}", cost=10.0 + i, **BARE) for i in range(7)]
        text = results.results(rows)
        line = next(li for li in text.splitlines() if li.startswith("| TSP100 | drhg"))
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        assert cells[3:5] == ["7", "13.0000"]
        assert cells[6:8] == ["", ""]
        assert cells[10:] in ([], [""])  # of how many not optimal: of none
        assert "References: none (TSP100" in text
        assert "nobody else's cost is known of t0, t1, t2, t3, t4 and 2 more. " in text
        assert f"`drhg bench references {suite}` finds such costs" in text
        assert "No gap:" not in results.results([made(suite=suite)])
    some = [made(instance="known", cost=10.2, gap=2.0), made(instance="bare", cost=11.0, **BARE)]
    text = results.results(some)
    assert "No gap: nobody else's cost is known of bare." in text
    assert "| 2 | 10.6000 | 0.5657 | 2.000 |" in text


def test_no_picture_is_drawn_of_rows_without_references(tmp_path: Path) -> None:
    rows = [made(suite=suite, **BARE) for suite in ("tsp", "cvrp", "tsplib", "cvrplib")]
    assert results.draw(rows, tmp_path) == []


def test_a_long_run_completes_rows_that_were_made_before_it(tmp_path: Path) -> None:
    path = tmp_path / "references.json"
    path.write_text(json.dumps({"a": {"cost": 8.0, "by": "fast_tsp", "seconds": 1}}))
    known = References(None, path)
    row = known.completed(made(**BARE))
    assert (row["reference"], row["reference_kind"], row["gap"]) == (8.0, HERE, 25.0)
    assert known.completed(made()) == made()
    assert known.completed(made(instance="b", **BARE)) == made(instance="b", **BARE)


def test_non_optimal_counts_by_its_tolerance() -> None:
    rows = [made(instance=str(i), gap=g) for i, g in enumerate((0.0, 5e-5, 2e-4, 1.0))]
    assert statistics.lines_of(rows)[0].non_optimal(1e-4) == 2


# --- suites --------------------------------------------------------------------------------------


def test_every_suite_has_a_title_and_a_command() -> None:
    assert list(SUITES) == list(TITLES)


def test_quick_is_a_subset_with_the_same_limits() -> None:
    suite, known = SUITES["tsp"], References()
    rivals = (RIVALS["fast_tsp"],)
    quick = suite.jobs(Choice(quick=True, rivals=rivals), known)
    some = suite.jobs(Choice(instances=10, rivals=rivals), known)
    assert {job.key for job in quick} < {job.key for job in some}


@pytest.mark.parametrize("name", ["tsp", "equal-time", "cvrp", "non-optimal"])
def test_quick_fits_into_fifteen_minutes_with_three_rivals(name: str) -> None:
    three = [r for r in RIVALS.values() if (r.routes if name == "cvrp" else r.tours)]
    assert len(three) == 3
    jobs = SUITES[name].jobs(Choice(quick=True, rivals=tuple(three)), References())
    limits = sum(job.solver.time_limit or 0 for job in jobs)
    overhead = 0.7 * sum(job.solver.name in RIVALS for job in jobs)  # starting a process
    assert limits + overhead < 15 * 60


@needs_data
@pytest.mark.parametrize("name", ["tsplib", "cvrplib"])
def test_quick_libraries_fit_too(name: str) -> None:
    choice = Choice(quick=True, rivals=tuple(RIVALS.values()), data=Path(str(DATA)))
    jobs = SUITES[name].jobs(choice, References())
    assert sum(job.solver.time_limit or 0 for job in jobs) < 14 * 60


@needs_data
def test_libraries_have_the_papers_sizes() -> None:
    choice = Choice(rivals=(), data=Path(str(DATA)))
    known = References(Path(str(DATA)))
    jobs = SUITES["tsplib"].jobs(choice, known)
    ours = [job for job in jobs if job.solver.name == "drhg"]
    assert len(ours) == len(paper_tsplib()) == 77
    assert all(job.reference and job.reference.kind == "optimal" for job in ours)
    edges = {"<100": (0, 99), "100-200": (100, 199), "200-500": (200, 499), "500-1k": (500, 999)}
    for job in ours:
        low, high = edges.get(job.set, (1000, 10**6))
        assert low <= job.instance.n <= high
    plans = SUITES["cvrplib"].jobs(choice, known)
    ours = [job for job in plans if job.solver.name == "drhg"]
    assert sum(job.set == "X" for job in ours) == 100
    assert sum(job.set == "E" for job in ours) == 11
    named = replace(choice, only=("X20",))
    assert {i.name for _, i in SUITES["cvrplib"].instances(named)} == set(X20)
    assert all(job.instance.metric.name != "EXPLICIT" for job in ours)


def test_without_data_one_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("DRHG_DATA", raising=False)
    with pytest.raises(DrhgError, match="--data or"):
        SUITES["tsplib"].jobs(Choice(), References())
    with pytest.raises(DrhgError, match="does not exist"):
        SUITES["cvrplib"].jobs(Choice(data=tmp_path / "none"), References())


def test_missing_networks_are_named_with_their_recipe(tmp_path: Path) -> None:
    with pytest.raises(DrhgError, match=r"size-30-70, size-20-80, size-10-90.*drhg train"):
        SUITES["train-size"].jobs(Choice(quick=True, nets=tmp_path), References())


def test_train_size_uses_the_networks(tmp_path: Path) -> None:
    from drhg.network.weights import shipped

    data = shipped("economy")[0].read_bytes()
    for low, high in ((30, 70), (20, 80), (10, 90)):
        net_file(tmp_path, low, high).write_bytes(data)
    choice = Choice(instances=1, only=("TSP100",), max_iters=2, nets=tmp_path)
    jobs = SUITES["train-size"].jobs(choice, References())
    # the same weights in three files are one configuration
    assert [job.solver.label for job in jobs] == ["drhg neural size-10-90 k 20-100"]


def test_degrees_fit_the_instance() -> None:
    jobs = SUITES["destroy-degree"].jobs(Choice(quick=True), References())
    by_set: dict[str, set[str]] = {}
    for job in jobs:
        by_set.setdefault(job.set, set()).add(dict(job.solver.changes)["destroy.k"])
        assert job.solver.max_iters == 200
    assert by_set["TSP100"] == {"20,100"}
    assert by_set["TSP1K"] == {"20,100", "20,200", "20,500", "20,1000"}


def test_the_network_gets_the_papers_iterations_or_its_time() -> None:
    """Where the caller sets no limit: T = 1000 for `paper`, the published seconds for `neural`."""
    asked = {"instances": 1, "methods": ("paper", "neural", "auto"), "rivals": ()}
    for name, by_set in (
        ("tsp", {"TSP100": 2.73, "TSP10K": 217.8}),
        ("cvrp", {"CVRP100": 2.37, "CVRP1K": 12.8}),
    ):
        jobs = [j for j in SUITES[name].jobs(Choice(**asked), References()) if j.set in by_set]
        limits = {(j.set, j.solver.method): j.solver for j in jobs if j.solver.name == "drhg"}
        for part, seconds in by_set.items():
            paper, neural = limits[part, "paper"], limits[part, "neural"]
            assert (paper.max_iters, paper.time_limit) == (1000, None)
            assert (neural.max_iters, neural.time_limit) == (None, seconds)
            assert limits[part, "auto"].time_limit != seconds
    jobs = SUITES["tsp"].jobs(Choice(**asked, time_limit=3.0, only=("TSP100",)), References())
    assert {job.solver.time_limit for job in jobs if job.solver.name == "drhg"} == {3.0}


def test_changes_and_weights_reach_the_solver() -> None:
    from drhg.network.weights import shipped

    instance = drhg.uniform_tsp(60, seed=1)
    here = Solver(
        "drhg", max_iters=3, method="neural", changes=(("destroy.k", "5,9"),), model="economy"
    )
    row = run_job(Job("tsp", "T", instance, here))
    assert (row["solver"], row["iterations"]) == ("drhg neural economy k 5-9", 3)
    assert row["config"]["changes"] == {"destroy.k": "5,9"}
    file = replace(here, model=str(shipped("economy")[0]))
    assert weights_hash(file) == weights_hash(here)  # the same weights by name and by file
    for change, reason in (
        (("destroy.k", "many"), "destroy.k must be a list"),
        (("speed", "9"), "speed: Regions has no such setting"),
    ):
        row = run_job(Job("tsp", "T", instance, replace(here, changes=(change,))))
        assert row["status"] == "skipped"
        assert reason in row["error"]


def test_nothing_matches() -> None:
    with pytest.raises(DrhgError, match="no instances called TSP3"):
        SUITES["tsp"].jobs(Choice(quick=True, only=("TSP3",)), References())


def test_an_interrupted_run_repeats_nothing(tmp_path: Path) -> None:
    suite = SUITES["tsp"]
    said: list[str] = []

    class Ctrl(BaseException):
        pass

    def interrupt(text: str) -> None:
        said.append(text)
        if text.startswith("2/"):
            raise Ctrl

    with pytest.raises(Ctrl):
        run.run_suite(suite, SMALL, tmp_path, say=interrupt)
    before = read_rows([tmp_path / "tsp.jsonl"])
    assert len(before) == 2
    ran = run.run_suite(suite, SMALL, tmp_path)
    assert (ran.new, ran.before, ran.failed) == (2, 2, 0)
    after = read_rows([ran.path])
    assert after[:2] == before
    assert run.run_suite(suite, SMALL, tmp_path).new == 0
    again = run.run_suite(suite, SMALL, tmp_path, fresh=True)
    assert again.new == 4
    costs = {key_of(row): row["cost"] for row in after}
    assert {key_of(row): row["cost"] for row in read_rows([again.path])} == costs


def test_processes_give_the_same_rows(tmp_path: Path) -> None:
    one = run.run_suite(SUITES["tsp"], SMALL, tmp_path / "1")
    two = run.run_suite(SUITES["tsp"], SMALL, tmp_path / "2", workers=2)
    costs = [{key_of(r): r["cost"] for r in read_rows([ran.path])} for ran in (one, two)]
    assert costs[0] == costs[1]


def test_a_row_in_a_line() -> None:
    assert run.described(made(gap=-1e-9)) == "TSP100 a drhg: 10, gap 0.000 %, 1.00 s"
    assert run.described(made(gap=None)) == "TSP100 a drhg: 10, 1.00 s"
    assert run.described(made(gap=-2.0, status="late")).endswith("gap -2.000 %, 1.00 s (late)")


def test_a_row_repeats(tmp_path: Path) -> None:
    ran = run.run_suite(SUITES["tsp"], SMALL, tmp_path)
    row = read_rows([ran.path])[-1]
    assert row["solver"] == "drhg"
    assert run.repeat(row, SUITES["tsp"], Choice())["cost"] == row["cost"]
    timed = made(config={"time_limit": 3.0})
    with pytest.raises(DrhgError, match="ran for a time"):
        run.repeat(timed, SUITES["tsp"], Choice())


# --- the report ----------------------------------------------------------------------------------


def test_published_numbers_have_a_source() -> None:
    assert all(row["source"] and row["solver"] and row["set"] for row in published())
    paper = {(r["set"], r["solver"]): r for r in published() if r["table"] == "tsp"}
    assert paper["TSP10K", "DRHG-FT (T=1000)"]["gap"] == "1.33"
    assert paper["TSP100", "random insertion"]["gap"] == "9.662"
    logs = [float(r["gap"]) for r in published()
            if r["table"] == "tsplib-instances" and r["source"].startswith("independent")
            and r["solver"] == "DRHG-FT (T=1000)" and r["set"] != "linhp318"]  # fmt: skip
    assert statistics.mean(logs) == pytest.approx(0.368, abs=5e-4)


def test_the_report_says_what_the_rows_say(tmp_path: Path) -> None:
    rows = []
    for i, (ours, theirs) in enumerate(((10.0, 10.1), (11.0, 11.3), (12.0, 12.0))):
        best = 10.0 + i
        common = {"instance": f"t{i}", "reference": best}
        rows.append(made(**common, cost=ours, gap=100 * (ours / best - 1)))
        rows.append(made(**common, cost=theirs, gap=100 * (theirs / best - 1), solver="fast_tsp"))
    rows.append(made(instance="t9", solver="fast_tsp", status="crashed", cost=None, gap=None,
                     seconds=None, error="exit | 1"))  # fmt: skip
    text = results.results(rows)
    expected = statistics.mean([1.0, 100 * (11.3 / 11 - 1), 0.0])
    line = next(li for li in text.splitlines() if li.startswith("| TSP100 | fast_tsp"))
    cells = [cell.strip() for cell in line.split("|")[1:-1]]
    assert cells[2:4] == ["1 s, 1 thread", "3 (+1 failed)"]
    assert cells[6] == f"{expected:.3f}"
    p = statistics.rank_sum([0.0, 0.0, 0.0], [1.0, 100 * (11.3 / 11 - 1), 0.0])
    assert cells[9] == f"+ {p:.2g}"
    assert "not measured here" in text
    two = [row | {"threads": 2, "gap": 7.0} for row in rows[:2]]
    lines = [li for li in results.results([*rows, *two]).splitlines() if "| TSP100 | drhg" in li]
    assert ["2 threads" in line for line in lines] == [False, True]  # apart from each other
    assert "| tsp | t9 | fast_tsp | 1 s, 1 thread | crashed | exit / 1 |" in text


def test_pictures_are_drawn(tmp_path: Path) -> None:
    rows = [made(suite=suite, instance=f"{suite}{i}", solver=solver, time_limit=t, limit=f"{t} s",
                 n=100 * (i + 1), gap=1.0 / t, set=f"S{i}")
            for suite in ("tsp", "equal-time", "tsplib", "cvrplib")
            for i in range(2) for solver in ("drhg", "fast_tsp") for t in (1.0, 5.0)]  # fmt: skip
    drawn = results.draw(rows, tmp_path / "p")
    assert [path.name for _, path in drawn] == [
        "gap-over-time.png",
        "gap-over-n-tsp.png",
        "tsplib-instances.png",
        "cvrplib-instances.png",
    ]
    assert all(path.stat().st_size > 5000 for _, path in drawn)
    text = results.results(rows, [(caption, path.name) for caption, path in drawn])
    assert "![Mean gap over time, per solver](gap-over-time.png)" in text


# --- the gate ------------------------------------------------------------------------------------


def gate_rows(*gaps: float) -> dict[str, Row]:
    return {f"c{i}": made(gap=gap) for i, gap in enumerate(gaps)}


def test_the_gate_opens_and_shuts() -> None:
    base = {"mean_gap": 1.0, "gaps": {"c0": 0.5, "c1": 1.5}}
    assert gate.verdict(gate_rows(0.5, 1.5), base) == []
    assert gate.verdict(gate_rows(0.6, 1.59), base) == []
    worse = gate.verdict(gate_rows(0.5, 1.75), base)
    assert len(worse) == 1
    assert "c1 1.50 -> 1.75" in worse[0]
    broken = gate_rows(0.1, 0.1)
    broken["c1"] |= {"status": "invalid", "gap": None, "error": "node 3 is not visited"}
    assert "c1: invalid: node 3 is not visited" in gate.verdict(broken, base)
    assert gate.verdict(gate_rows(0.1), base)  # a case is missing
    assert gate.verdict(gate_rows(0.5, 1.75), base, allowed=0.2) == []


def test_the_committed_baseline_fits_the_cases() -> None:
    base = gate.read_baseline(ROOT / gate.BASELINE)
    names = {gate.name_of(case, case.make()) for case in gate.cases()}
    assert names == set(base["gaps"])
    assert statistics.mean(list(base["gaps"].values())) == pytest.approx(base["mean_gap"])
    assert min(base["gaps"].values()) >= 0.0


@pytest.fixture
def small_gate(monkeypatch: pytest.MonkeyPatch) -> list[gate.Case]:
    found = [
        gate.Case(partial(drhg.uniform_tsp, 40, 1), 60),
        gate.Case(partial(drhg.uniform_tsp, 40, 1), 5, "local"),
        gate.Case(partial(drhg.uniform_cvrp, 20, 1), 500),
    ]
    monkeypatch.setattr(gate, "cases", lambda: found)
    return found


def test_references_of_the_gate_are_made_once(small_gate: list[gate.Case]) -> None:
    known: dict[str, float] = {}
    made = dict(gate.references(known, 0.3))
    assert made == known
    assert set(known) == {"uniform-tsp40-s1", "uniform-cvrp20-s1"}
    for name, row in gate.measure(known):
        assert row["status"] == "ok"
        assert row["gap"] > -1.0, name  # nothing is much shorter than such a reference
    assert list(gate.references(known, 0.3)) == []


def test_a_reference_that_cannot_be_made_is_named(
    small_gate: list[gate.Case], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "run_guarded", lambda *_, **__: Outcome("crashed", error="exit 9"))
    with pytest.raises(DrhgError, match="uniform-tsp40-s1: fast_tsp: crashed exit 9"):
        list(gate.references({}, 0.1))


def test_the_gate_by_command(
    small_gate: list[gate.Case], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A baseline is made, repeats exactly, and shuts when it was better than what there is now."""
    path = tmp_path / "gate.json"
    known = {"uniform-tsp40-s1": 100.0, "uniform-cvrp20-s1": 100.0, "of-old": 1.0}  # far too long
    path.write_text(json.dumps({"mean_gap": 0.0, "gaps": {}, "references": known}))
    ours = ["bench", "gate", "--baseline", str(path)]
    assert app([*ours, "--update"], standalone_mode=False) is None
    base = gate.read_baseline(path)
    assert len(base["gaps"]) == 3
    assert min(base["gaps"].values()) == 0.0  # what is found is a better reference
    assert base["references"]["uniform-tsp40-s1"] < 10
    assert set(base["references"]) == set(known) - {"of-old"}  # which no case needs any more
    capsys.readouterr()
    assert app(ours, standalone_mode=False) == 0
    shown = capsys.readouterr()
    average = base["mean_gap"]
    assert shown.out == f"mean gap {average:.3f} % of 3 cases; baseline {average:.3f} %\n"
    path.write_text(json.dumps(base | {"mean_gap": average - 0.2}))
    assert app(ours, standalone_mode=False) == 1
    assert "more than 0.1 points worse" in capsys.readouterr().err


def test_no_baseline_is_made_from_failures(
    small_gate: list[gate.Case], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "gate.json"
    known = {"uniform-tsp40-s1": 5.0, "uniform-cvrp20-s1": 6.0}
    text = json.dumps({"mean_gap": 0.0, "gaps": {}, "references": known})
    path.write_text(text)
    failed = made(status="crashed", cost=None, gap=None)
    monkeypatch.setattr(gate, "measure", lambda _: iter([("c0", failed)]))
    with pytest.raises(DrhgError, match="failed cases: c0"):
        app(["bench", "gate", "--baseline", str(path), "--update"], standalone_mode=False)
    assert path.read_text() == text


# --- the command line ----------------------------------------------------------------------------


def bench(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "drhg", "bench", *words]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120)


def test_from_rows_to_results(tmp_path: Path) -> None:
    words = ["--instances", "1", "--only", "TSP100", "-n", "20", "--against", "", "--threads", "1"]
    first = bench("tsp", *words, cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    assert "2 new rows, 0 kept, 0 failed" in first.stderr
    assert "0 new rows, 2 kept" in bench("tsp", *words, cwd=tmp_path).stderr
    again = bench("repeat", "benchmarks/rows/tsp.jsonl", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert "the same" in again.stdout
    path = tmp_path / "benchmarks/rows/tsp.jsonl"
    text = path.read_text()
    other = [json.dumps(json.loads(line) | {"cost": 1.0}) + "\n" for line in text.splitlines()]
    path.write_text("".join(other))
    again = bench("repeat", "benchmarks/rows/tsp.jsonl", cwd=tmp_path)
    assert again.returncode == 1
    assert "then 1.0, now " in again.stdout
    path.write_text(text)
    done = bench("report", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "RESULTS.md").read_text()
    assert "| TSP100 | drhg | 20 iterations, 1 thread | 1 |" in text


@pytest.mark.parametrize(
    ("words", "code", "reason"),
    [
        (["tsp", "--against", "nobody"], 3, "unknown rival 'nobody'"),
        (["tsp", "--method", "magic"], 2, "'magic' is not one of"),
        (["tsp", "-t", "inf", "--quick"], 2, "--time-limit: inf s is no time to measure in"),
        (["tsp", "-t", "0", "--quick"], 2, "--time-limit: 0 s is no time to measure in"),
        (["tsp", "-t", "soon"], 2, "--time-limit"),
        (["tsp", "--instances", "0"], 2, "--instances"),
        (["tsp", "--quick", "--only", "TSP3"], 3, "no instances called TSP3"),
        (
            ["tsp", "--instances", "1", "--only", "TSP100", "-n", "5", "-o", "file"],
            2,
            "file is no f",
        ),
        (["tsplib", "--data", "none"], 3, "none: this folder does not exist"),
        (["tsplib", "--data", "."], 3, "berlin52.tsp"),
        (["cvrplib", "--data", "."], 3, "cvrplib has no instances"),
        (["tsp", "one-too-many"], 2, "one-too-many"),
        (["no-suite"], 2, "no-suite"),
        (["report"], 3, "no rows"),
        (["report", "none.jsonl"], 3, "none.jsonl: cannot read rows: No such file"),
        (["report", "."], 3, ".: cannot read rows: Is a directory"),
        (["report", "rows.jsonl", "-o", "none/x.md", "--plots", "p"], 3, "none/x.md: cannot be"),
        (["report", "rows.jsonl", "--plots", "file"], 3, "file: no folder can be made here"),
        (["repeat", "none.jsonl"], 3, "none.jsonl: cannot read rows: No such file"),
        (["repeat", "file"], 3, "file:1: not a row of a benchmark (no JSON object)"),
        (["repeat", "rows.jsonl"], 3, "rows.jsonl: there is no suite 'sudoku'"),
        (["repeat", "rows.jsonl", "--count", "0"], 2, "--count"),
        (["train-size", "--quick"], 3, "size-30-70"),
        (["gate", "--baseline", "none.json"], 3, "no baseline"),
        (["gate", "--baseline", "half.json"], 3, "half.json: no baseline of the gate: it has no g"),
        (["gate", "--baseline", "file"], 3, "file: no baseline of the gate"),
        (["gate", "--update", "--baseline", "none/x.json"], 3, "none/x.json: the folder of this"),
        (["references", "nothing"], 2, "'nothing' is not one of"),
        (["references", "tsp", "-t", "inf"], 2, "inf s is no time"),
        (["references", "tsp", "--quick", "--only", "TSP3"], 3, "no instances called TSP3"),
        (["tsp", "--set", "k"], 2, "'k' is not KEY=VALUE"),
        (["rates", "magic"], 2, "'magic' is not one of"),
        (["rates", "tours", "-t", "0"], 2, "0 s is no time"),
    ],
)
def test_complaints_are_one_line(
    words: list[str],
    code: int,
    reason: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "file").write_text("no folder\n")
    (tmp_path / "half.json").write_text('{"mean_gap": 1}')
    (tmp_path / "rows.jsonl").write_text(json.dumps(made(suite="sudoku", max_iters=5)) + "\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["drhg", "bench", *words])
    assert cli._run() == code
    said = [line for line in capsys.readouterr().err.splitlines() if "rows to make" not in line]
    assert len(said) == 1, said
    assert reason in said[0]


def test_a_wrong_file_of_rows_ends_the_process_with_a_line(tmp_path: Path) -> None:
    ended = bench("repeat", "none.jsonl", cwd=tmp_path)
    assert ended.returncode == 3
    assert ended.stderr == "drhg: none.jsonl: cannot read rows: No such file or directory\n"


def test_references_by_command(tmp_path: Path) -> None:
    """Of CVRP100 the first six are in the box, the seventh is not."""
    words = ["references", "cvrp", "--instances", "7", "--only", "CVRP100", "-t", "0.2"]
    first = bench(*words, "-o", "rows", cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    assert "1 of 7 references to make" in first.stderr
    found = json.loads((tmp_path / "rows/references.json").read_text())
    assert list(found) == ["paper-cvrp100-6"]
    assert "0 of 7 references to make" in bench(*words, "-o", "rows", cwd=tmp_path).stderr
    words = [word.replace("CVRP100", "paper-cvrp100-6") for word in words]
    again = bench(*words, "-o", "rows", "--again", cwd=tmp_path)
    assert "1 of 1 references to make" in again.stderr


def test_references_complete_a_report(tmp_path: Path) -> None:
    """Gaps are blank without a reference, and there once it is found; rows are not made again."""
    words = ["cvrp", "--instances", "7", "--only", "paper-cvrp100-6", "-n", "500", "--against", ""]
    ran = bench(*words, "--threads", "1", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "1 instances have no reference: their gaps stay blank" in ran.stderr
    assert ", gap " not in ran.stderr
    report = ["report", "--plots", "p"]
    bench(*report, cwd=tmp_path)
    text = (tmp_path / "RESULTS.md").read_text()
    assert "No gap: nobody else's cost is known of paper-cvrp100-6." in text
    known = {"paper-cvrp100-6": {"cost": 1.0, "by": "hygese", "seconds": 1.0}}
    (tmp_path / "benchmarks/rows/references.json").write_text(json.dumps(known))
    bench(*report, cwd=tmp_path)
    text = (tmp_path / "RESULTS.md").read_text()
    assert "No gap" not in text
    assert "References: best known here (CVRP100)." in text


def test_rates_are_printed() -> None:
    from drhg.benchmark import RATES, rates

    assert all(callable(getattr(rates, name)) for name in RATES)
    lines = [*rates.tours(0.1, 1, [100, 200]), *rates.routes(0.1, 1, [50])]
    assert sum("iterations/s" in line for line in lines) == len(lines) == 6
    (line,) = rates.regions(0.1, 1, [200])
    assert line.startswith("uniform-tsp200-s1, 64 regions of 100 nodes: nearest ")
    lines = list(rates.networks(0.05, 1, ["economy"]))
    assert any(line.startswith("economy, compiled, batch 64: ") for line in lines)
    assert any(line.startswith("training, economy, 1 threads: ") for line in lines)


def test_one_order_more_is_measured_beside_a_search_of_the_whole_plan(tmp_path: Path) -> None:
    from drhg.benchmark.change import ChangeParams, one_order_more

    params = ChangeParams(60, seed=1, orders=1, old_steps=500, steps=300, replan_steps=200)
    first, order, quick, *_, mean = lines = list(one_order_more(tmp_path, params))
    assert first.startswith("uniform-cvrp60-s1: old plan ")
    assert order.startswith("order 0: inserted +")
    assert " from what is due, " in quick
    assert mean.startswith("200 steps: ")
    kept = (tmp_path / "resolves.json").read_text()
    assert list(one_order_more(tmp_path, params)) == lines
    assert (tmp_path / "resolves.json").read_text() == kept

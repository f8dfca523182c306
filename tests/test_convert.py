"""`drhg convert`, `drhg import-weights`, and a network of one's own: the field's daily work."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import drhg
from drhg import cli, files
from drhg.construct import space_filling
from drhg.files.research import Solved as Pair
from drhg.files.research import read_many, write_many
from drhg.problem import Solution, cost
from drhg.problem.generate import uniform_cvrp, uniform_tsp

OWN = Path(__file__).parent.parent / "examples" / "own_network.py"


def run(*words: object) -> Result:
    return CliRunner().invoke(cli.app, [str(word) for word in words])


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    """Three solved tours in one file."""
    rng = np.random.default_rng(0)
    solved = [Pair(uniform_tsp(6, seed=i), Solution([rng.permutation(6)])) for i in range(3)]
    write_many(tmp_path / "three.txt", solved, "lehd")
    return tmp_path / "three.txt"


def test_lines_to_files_and_back(lines: Path, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    result = run("convert", lines, folder)
    assert result.exit_code == 0, result.stderr
    assert result.stderr == f"drhg: {folder}: 3 problems, 3 solved\n"
    assert sorted(path.name for path in folder.iterdir()) == [
        f"three-{i}.{kind}" for i in (1, 2, 3) for kind in ("tour", "tsp")
    ]
    back = tmp_path / "back.txt"
    result = run("convert", *sorted(folder.glob("*.tsp")), back)
    assert result.exit_code == 0, result.stderr
    assert back.read_text() == lines.read_text()


def test_one_file_to_another(tmp_path: Path) -> None:
    instance = uniform_cvrp(6, seed=1)
    files.write_instance(tmp_path / "a.vrp", instance)
    assert run("convert", tmp_path / "a.vrp", tmp_path / "b.json").exit_code == 0
    again = files.read(tmp_path / "b.json")
    assert np.array_equal(again.xy, instance.xy)  # type: ignore[arg-type]
    result = run("convert", tmp_path / "a.vrp", tmp_path / "all.txt")
    assert result.exit_code == 3
    assert "needs a solution" in result.stderr
    solution = Solution([[i] for i in range(1, 7)])
    files.write_solution(tmp_path / "a.sol", instance, solution)
    assert run("convert", tmp_path / "a.vrp", tmp_path / "all.txt", "--to", "ml4co").exit_code == 0
    ((found, routes),) = read_many(tmp_path / "all.txt")
    assert routes is not None
    assert cost(found, routes) == pytest.approx(cost(instance, solution))
    assert run("convert", tmp_path / "all.txt", tmp_path / "all.npz").exit_code == 0
    assert len(read_many(tmp_path / "all.npz")) == 1


def test_what_cannot_be_converted_is_named(lines: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.txt").write_text("0 0 1 1 output 1 2 3")
    cases = [
        (("missing.tsp", "out.json"), "missing.tsp"),
        ((tmp_path / "bad.txt", tmp_path / "out"), "bad.txt:1: column 9: a closed tour of 2"),
        ((lines, tmp_path / "out", "--to", "docx"), "must end in"),
    ]
    for words, message in cases:
        result = run("convert", *words)
        assert result.exit_code == 3
        assert message in " ".join(result.stderr.split())


def test_a_checkpoint_becomes_weights(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="torch writes the file")
    from drhg.network.torch_model import build
    from drhg.network.weights import ModelConfig, load

    network = build(ModelConfig.of("paper", d=32, layers=1, hidden=32))
    torch.save({"model_state_dict": network.state_dict()}, tmp_path / "theirs.pt")
    result = run("import-weights", tmp_path / "theirs.pt", tmp_path / "ours.safetensors")
    assert result.exit_code == 0, result.stderr
    assert "1 layers" in result.stderr
    assert load(tmp_path / "ours.safetensors").config == network.config
    (tmp_path / "bad.pt").write_bytes(b"PK")
    result = run("import-weights", tmp_path / "bad.pt", tmp_path / "no.safetensors")
    assert result.exit_code == 3
    assert "bad.pt: no checkpoint of torch" in result.stderr
    assert not (tmp_path / "no.safetensors").exists()


RECIPE = """
labels = "*.txt"
batch = 32
warmup = 2
every = 4
solves = 2
solve_iters = 3
[network]
preset = "pairs"
d = 16
[data]
low = 10
"""


@pytest.mark.slow
def test_a_network_of_ones_own_is_trained_and_used(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="it is one of torch")
    rng = np.random.default_rng(0)
    solved = [Pair(uniform_tsp(40, seed=i), Solution([rng.permutation(40)])) for i in range(12)]
    write_many(tmp_path / "labels.txt", solved, "lehd")
    files.write_instance(tmp_path / "a.tsp", uniform_tsp(30, seed=99))
    (tmp_path / "own.toml").write_text(RECIPE)

    def own(*words: str) -> str:
        command = [sys.executable, str(OWN), *words]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        return done.stderr

    said = own("train", "own.toml", "--data", ".", "--out", "run", "--steps", "4", "--threads", "1")
    assert "step 4" in said
    weights = str(Path("run") / "weights.safetensors")
    said = own(
        "solve",
        "a.tsp",
        "-m",
        "neural",
        "--set",
        f"repair.model={weights}",
        "-n",
        "3",
        "-o",
        "a.tour",
    )
    assert "failed" not in said
    instance = files.read(tmp_path / "a.tsp")
    assert drhg.check(instance, files.read_solution(tmp_path / "a.tour", instance)) == []
    result = run("models", "--model", tmp_path / weights)
    assert result.exit_code == 3
    assert "unknown network 'pairs'" in " ".join(result.stderr.split())


STOPS = Path(__file__).parent.parent / "examples" / "stops.csv"


def test_a_table_becomes_a_whole_problem(tmp_path: Path) -> None:
    told = run("convert", STOPS, tmp_path / "a.json", "--capacity", 120, "--max-distance", 1e5)
    assert told.exit_code == 0, told.stderr
    again = drhg.read(tmp_path / "a.json")
    assert again == drhg.read_table(STOPS, capacity=120, max_distance=1e5, name="stops")
    told = run("convert", tmp_path / "a.json", tmp_path / "b.csv")
    assert "give them with it: --capacity 120" in told.stderr
    assert drhg.read_table(tmp_path / "b.csv", capacity=120).names == again.names
    told = run("convert", tmp_path / "a.json", tmp_path / "b.vrp")
    assert "TSPLIB has no place for names" in told.stderr
    told = run("convert", STOPS, STOPS, "--capacity", 120)
    assert told.exit_code == 2
    assert "would be overwritten" in told.stderr


def test_a_solution_goes_from_format_to_format(tmp_path: Path) -> None:
    instance = drhg.read_table(STOPS, capacity=120)
    solution = space_filling(instance)[0]
    drhg.write_solution(tmp_path / "0.sol", instance, solution)
    chain = ("csv", "geojson", "json", "sol", "html")
    for i, kind in enumerate(chain):
        before = tmp_path / f"{i}.{('sol', *chain)[i]}"
        told = run("convert", before, tmp_path / f"{i + 1}.{kind}", "--of", STOPS,
                   "--capacity", 120)  # fmt: skip
        assert told.exit_code == 0, told.stderr
    for i, kind in enumerate(chain[:-1], start=1):
        assert drhg.read_solution(tmp_path / f"{i}.{kind}", instance) == solution
    assert (tmp_path / "5.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    late = run("convert", tmp_path / "0.sol", tmp_path / "9.csv", "--of", STOPS, "--capacity", 60)
    assert late.exit_code == 3
    assert "0.sol: " in late.stderr
    assert not (tmp_path / "9.csv").exists()
    two = run("convert", tmp_path / "0.sol", tmp_path / "1.csv", tmp_path / "9.csv", "--of", STOPS)
    assert two.exit_code == 2

"""Training: what is drawn, that it is learnt, and that a run survives being killed."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import reference as ref
from soak import cases

from drhg import hypergraph, tsp
from drhg.construct.starts import construct
from drhg.errors import ModelError
from drhg.hypergraph.plan import Flags
from drhg.kernels.random import random_below, random_state
from drhg.network.economy import compiles
from drhg.network.weights import ModelConfig, load, shapes
from drhg.problem import Solution, cost
from drhg.problem.generate import uniform_cvrp

torch = pytest.importorskip("torch", reason="training needs torch")

from drhg.network.decode import decode  # noqa: E402
from drhg.network.torch_model import build, load_model, tensors_of  # noqa: E402
from drhg.network.views import State, Views, views_of  # noqa: E402
from drhg.training import checkpoints, labels  # noqa: E402
from drhg.training import trainer as trainers  # noqa: E402
from drhg.training.examples import Decisions, draw, held_out_graphs  # noqa: E402
from drhg.training.optimisers import rate_at  # noqa: E402
from drhg.training.recipe import Examples, Recipe, names, read_recipe  # noqa: E402
from drhg.training.routes import cut_plan, items_of, lay_routes  # noqa: E402
from drhg.training.run import train  # noqa: E402
from drhg.training.shards import Plans, Tours, labelled, read_labels, read_tours  # noqa: E402
from drhg.training.step import flatten, gradient  # noqa: E402
from drhg.training.tours import cut_graph  # noqa: E402
from drhg.training.trainer import Trainer  # noqa: E402

torch.set_num_threads(1)  # small products; and two threads that wait for each other are slow

ECONOMY = ModelConfig.of("economy")
ROUTES = ModelConfig.of("economy", routes=True)
TINY = ModelConfig.of("economy", d=32, layers=2, heads=2, hidden=64)
NARROW = ModelConfig.of("economy", d=32, layers=2, heads=4, hidden=64)  # heads of 8: torch's turn
CONFIGS = Path(__file__).parent.parent / "configs"


def some_tours(count: int = 40, n: int = 60, seed: int = 0) -> Tours:
    """Instances with tours along a curve that fills the square: not optimal, but not silly."""
    rng = np.random.default_rng(seed)
    points = rng.random((count, n, 2))
    order = np.stack(
        [np.lexsort((p[:, 1] * (-1) ** (p[:, 0] * 6 // 1), p[:, 0] * 6 // 1)) for p in points]
    )
    return Tours(points.reshape(-1, 2), order.astype(np.int32).ravel(), np.arange(count + 1) * n)


def some_plans(count: int = 20, n: int = 60, seed: int = 0) -> Plans:
    """Instances with plans by savings: not optimal, but not silly."""
    solved = []
    for i in range(count):
        instance = uniform_cvrp(n, seed=seed + i)
        solution, unplaced = construct(instance, "savings", 0)
        assert not len(unplaced)
        seq = [node for route in solution.routes for node in (0, *route)]
        solved.append(labelled(instance, np.array(seq)))
    return Plans(tuple(solved))


def decisions(*what: Any) -> tuple[State, Flags]:
    drawn = draw(*what)
    assert isinstance(drawn, Decisions)
    return drawn.state, drawn.right


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    folder = tmp_path / "labels"
    folder.mkdir()
    rng = np.random.default_rng(3)
    tours = np.stack([rng.permutation(40) for _ in range(64)]).astype(np.uint8)
    np.savez(folder / "tsp40-seed3.npz", seed=3, n=40, count=64, tours=tours)
    return folder


# --- data ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(10))
def test_features_equal_those_of_the_solver(seed: int) -> None:
    """Training and inference see the same numbers of the same graph."""
    rng = np.random.default_rng(seed)
    n, m = 50, int(rng.integers(10, 40))
    points, order = rng.random((n, 2)), rng.permutation(n).astype(np.int32)
    feat, partner = np.zeros((m, 5), np.float32), np.zeros(m, np.int32)
    state = random_state(seed)
    assert cut_graph(points, order, m, state.copy(), feat, partner) == m
    # replay its draws: direction, centre
    if random_below(state, 2) == 1:
        order = order[::-1].copy()
    instance = tsp(points)
    rules = hypergraph.rules_of(instance)
    plan = hypergraph.plan_of(rules, Solution([order.astype(np.int64)]))
    ranked = hypergraph.Nearness(instance).around([int(random_below(state, n))], n)
    graphs = hypergraph.reduce(rules, plan, *hypergraph.destroy_to_size(rules, plan, ranked, m))
    expected = hypergraph.features(rules, graphs)[0]
    shifts = [s for s in range(m) if (np.roll(expected, -s, axis=0) == feat).all()]
    assert len(shifts) == 1
    mates = (np.roll(graphs.partner[0], -shifts[0]) - shifts[0]) % m
    assert partner.tolist() == mates.tolist()


@pytest.mark.parametrize("preset", ["paper", "economy"])
def test_a_batch_is_a_function_of_its_number(preset: str) -> None:
    config = ModelConfig.of(preset)
    tours, recipe = some_tours(), Examples(low=10)
    one, right = decisions(tours, recipe, config, 50, 1, 7)
    two, again = decisions(tours, recipe, config, 50, 1, 7)
    other, _ = decisions(tours, recipe, config, 50, 1, 8)
    assert (one.nodes == two.nodes).all()
    assert (right == again).all()
    assert one.nodes.shape != other.nodes.shape or (one.nodes != other.nodes).any()
    assert (np.diff(one.count) >= 0).all()
    assert (right.sum((1, 2)) == 1).all()
    assert (one.direct | ~right[..., 0]).all()
    assert (one.direct == (np.arange(one.nodes.shape[1]) < one.count[:, None])).all()
    assert (one.count >= 2).all()


def test_labels_are_what_comes_next_in_the_tour() -> None:
    """The network is asked for the tour's next node: of a tour along a line, the nearest one."""
    n = 40
    points = np.stack([np.linspace(0, 1, n), np.zeros(n)], axis=1)
    order = np.arange(n, dtype=np.int32)
    state, right = decisions(
        Tours(points, order, np.array([0, n])), Examples(low=10, share=0.5), ECONOMY, 200, 0, 0
    )
    near = state.nodes[..., 6][right[..., 0]]
    nearest = np.where(state.direct, state.nodes[..., 6], np.inf).min(1)
    assert np.mean(near == nearest) > 0.5  # not where the tour jumps back along the line


def test_held_out_graphs_have_their_size() -> None:
    ((views, best),) = held_out_graphs(some_tours(), 30)
    assert views.feat.shape == (40, 30, 5)
    back = np.take_along_axis(views.partner, views.partner.astype(np.int64), 1)
    assert (back == np.arange(30)).all()
    assert (best.order == np.arange(30)).all()


@pytest.mark.parametrize("depot_edges", ["adjacent", "touched", "all"])
def test_routes_are_learnt_in_an_order_that_rebuilds_them(depot_edges: str) -> None:
    """Whatever the order and the directions, the pieces join up to the plan they were cut from."""
    rng = np.random.default_rng(0)
    for seed, (rules, plan) in enumerate(some_plans(6).solved):
        graphs = cut_plan(rules, plan, [10, 25, 60], depot_edges, rng)
        views, state = views_of(rules, graphs), random_state(seed)
        order = np.full(graphs.node.shape, -1, np.int32)
        via = np.zeros(order.shape, np.bool_)
        for b, m in enumerate(graphs.size):
            items = items_of(int(m))
            entry, leave, through = items
            count = lay_routes(
                views.feat[b], graphs.partner[b], graphs.via[b], m, 0, 0.75, state, items
            )
            place = 0
            for i in range(count):
                order[b, place], via[b, place] = entry[i], through[i]
                place += 1
                if leave[i] != entry[i]:
                    order[b, place] = leave[i]
                    place += 1
            assert place == m
        good, change = hypergraph.judge(rules, plan, graphs, hypergraph.Repaired(order, via))
        assert good.all()
        assert change == pytest.approx(0, abs=1e-9)


def test_decisions_of_routes_replay_a_decoding() -> None:
    """A network that always gives the right answer rebuilds the plan, and sees what was drawn.

    The oracle is asked by `decode`; its answers are the edges of the plan. So states and labels of
    training agree with what happens at inference, step by step.
    """
    plans = some_plans(4)
    for rules, plan in plans.solved:
        graphs = cut_plan(rules, plan, [12, 30], "adjacent", np.random.default_rng(1))
        views = views_of(rules, graphs)
        for b in range(len(graphs)):
            m = int(graphs.size[b])
            oracle = Oracle(graphs, b)
            row = Views(*(array[b : b + 1] for array in views.arrays))
            row = dataclasses.replace(row, feat=tagged(row.feat, m))
            found = decode(oracle, row, np.zeros(1, np.int32))
            one = hypergraph.Graphs(
                *(getattr(graphs, f.name)[b : b + 1] for f in dataclasses.fields(graphs))
            )
            good, change = hypergraph.judge(rules, plan, one, found)
            assert good.all()
            assert change == pytest.approx(0, abs=1e-9)


def tagged(feat: np.ndarray, m: int) -> np.ndarray:
    """Features whose loads are numbers of nodes, so that an oracle knows whom it is asked about."""
    out = feat.copy()
    out[0, :m, 5] = np.arange(m)
    return out


class Oracle:
    """Answers with the plan itself: which edges it has, and where its routes begin."""

    config = ModelConfig.of("economy", routes=True, window=200)

    def __init__(self, graphs: hypergraph.Graphs, b: int) -> None:
        m = int(graphs.size[b])
        partner, via = graphs.partner[b, :m], graphs.via[b, :m]
        first = [i for i in range(m) if not (0 <= partner[i] < i)]  # of every item
        last = [max(i, int(partner[i])) for i in first]
        self.begins = {i for i in first if via[i]}
        self.begins |= {z for z, i in zip(last, [*first[1:], -1], strict=True) if i < 0 or via[i]}
        joined = {(z, i) for z, i in zip(last, first[1:], strict=False) if not via[i]}
        self.joined = joined | {(i, z) for z, i in joined}
        self.at: int | None = None
        self.partner = partner

    def logits(self, state: State) -> np.ndarray:
        names = state.nodes[0, :, 10].astype(int).tolist()
        scores = np.full((1, len(names), 2), -50.0, np.float32)
        pick = (0, 1)
        if self.at is not None:
            onward = [j for j, u in enumerate(names) if (self.at, u) in self.joined]
            if onward:
                assert state.context[0, 6] == 1.0  # the route is open
                assert state.direct[0, onward[0]]
                pick = (onward[0], 0)
        if pick == (0, 1):
            pick = (next(j for j, u in enumerate(names) if u in self.begins), 1)
        scores[0][pick] = 0.0
        node = names[pick[0]]
        self.at = node if self.partner[node] < 0 else int(self.partner[node])
        if self.partner[node] < 0 and pick[1] == 0:
            self.at = None
        return scores


def test_labels_of_routes_are_right() -> None:
    """Through the depot every end of a route is right; directly one node is, and it fits."""
    state, right = decisions(some_plans(), Examples(low=10), ROUTES, 400, 3, 0)
    direct, via = right[..., 0], right[..., 1]
    assert (state.direct | ~direct).all()
    assert (direct.sum(1) <= 1).all()
    assert (direct.any(1) ^ via.any(1)).all()
    assert (via.sum(1) > 1).any()
    stub = state.nodes[..., 12] > 0
    inside = np.arange(stub.shape[1]) < state.count[:, None]
    assert (via | ~(stub & inside) | ~via.any(1)[:, None]).all()  # a stub is always a route's end
    at_depot = state.context[:, 6] == 0
    assert at_depot.any()
    assert not state.direct[at_depot].any()


def test_plans_are_read_and_checked(tmp_path: Path) -> None:
    instances = [uniform_cvrp(12, seed=i) for i in range(5)]
    seq = np.full((5, 30), -1, np.int16)
    for row, instance in zip(seq, instances, strict=True):
        routes = construct(instance, "savings", 0)[0].routes
        nodes = [node for route in routes for node in (0, *route)] + [0]
        row[: len(nodes)] = nodes
    arrays = {
        "xy": np.stack([i.xy for i in instances]),
        "demand": np.stack([i.demand for i in instances]),
        "capacity": np.array([i.capacity for i in instances]),
    }
    path = tmp_path / "plans.npz"
    np.savez(path, seq=seq, **arrays)
    plans = read_labels([path])
    assert isinstance(plans, Plans)
    assert len(plans) == 5
    assert plans.largest == 12
    found = sorted(float(rules.space.points.sum()) for rules, _ in plans.solved)
    assert found == pytest.approx(sorted(float(i.xy.sum()) for i in instances))
    seq[2, 1] = seq[2, 2]
    np.savez(path, seq=seq, **arrays)
    with pytest.raises(ModelError, match="label 2 is no plan"):
        read_labels([path])


def test_tours_do_not_train_a_network_for_routes() -> None:
    with pytest.raises(ModelError, match="kind"):
        draw(some_tours(), Examples(), ROUTES, 8, 0, 0)


def test_shards_are_checked(shards: Path) -> None:
    tours = read_tours(shards.glob("*.npz"))
    assert len(tours) == 64
    expected = np.random.default_rng(3).random((20_000, 40, 2))[:64].reshape(-1, 2)
    assert (tours.points == expected).all()
    np.savez(shards / "tsp40-seed4.npz", seed=4, n=40, count=1, tours=np.zeros((1, 40), np.uint8))
    with pytest.raises(ModelError, match="no tours"):
        read_tours(shards.glob("*.npz"))
    with pytest.raises(ModelError, match="no labels"):
        read_tours([])


def test_labels_of_small_instances_are_optimal() -> None:
    pytest.importorskip("fast_tsp", reason="labels are made by fast_tsp")
    pytest.importorskip("hygese", reason="labels of routes are made by hygese")
    points = np.random.default_rng(1).random((8, 2))
    instance = tsp(points)
    found = Solution([labels.tour_of(points, 0.05)])
    assert cost(instance, found) == pytest.approx(ref.best_tour(instance)[0], rel=1e-9)
    routes = uniform_cvrp(7, seed=1)
    seq = labels.plan_of(routes, 0.2)
    assert len(seq) == 2 * routes.n
    best = hypergraph.solution_of(*labelled(routes, seq[seq >= 0]))
    assert cost(routes, best) == pytest.approx(ref.best_plan(routes)[0], rel=1e-9)


def test_labelling_goes_on_where_it_stopped(tmp_path: Path) -> None:
    pytest.importorskip("fast_tsp", reason="labels are made by fast_tsp")
    said: list[str] = []
    first = labels.label(tmp_path, 30, 3, seed=9, seconds=0.01, workers=1, report=said.append)
    before = read_tours(first)
    (path,) = labels.label(tmp_path, 30, 5, seed=9, seconds=0.01, workers=1, report=said.append)
    assert path.name == "tsp30-seed9.npz"
    after = read_tours([path])
    assert len(after) == 5
    assert (after.order[: 3 * 30] == before.order).all()
    assert "5 of 5" in said[-1]


def test_routes_are_labelled_and_extended(tmp_path: Path) -> None:
    pytest.importorskip("hygese", reason="labels of routes are made by hygese")
    said: list[str] = []
    how = {"routes": True, "seed": 2, "seconds": 0.05, "workers": 1, "report": said.append}
    first = labels.label(tmp_path, 12, 2, **how)
    before = np.load(first[0])["seq"]
    (path,) = labels.label(tmp_path, 12, 3, **how)
    assert path.name == "cvrp12-seed2.npz"
    after = np.load(path)["seq"]
    assert (after[:2] == before).all()
    plans = read_labels([path])
    assert len(plans) == 3
    for i in range(3):
        instance, best = plans.known(i)
        assert instance.n == 13
        assert cost(instance, best) <= cost(instance, construct(instance, "savings", 0)[0]) + 1e-9
    with pytest.raises(ModelError, match="cannot label"):
        labels.label(tmp_path, 2, 1, routes=True)


def test_a_stop_saves_what_is_labelled(tmp_path: Path) -> None:
    pytest.importorskip("fast_tsp", reason="labels are made by fast_tsp")
    said: list[str] = []
    (path,) = labels.label(
        tmp_path,
        20,
        50,
        seconds=0.2,
        workers=1,
        show_every=0.0,
        report=said.append,
        should_stop=lambda: bool(said),
    )
    with np.load(path) as shard:
        assert 0 < shard["count"] < 50
        assert len(shard["tours"]) == shard["count"]


def test_a_solver_that_hangs_is_given_up(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="does not come back"):
        labels.label(tmp_path, 12, 1, routes=True, seconds=2.0, patience=0.0, workers=1)


# --- learning ------------------------------------------------------------------------------------


@pytest.mark.compiled
@pytest.mark.parametrize("preset", ["paper", "economy"])
@pytest.mark.parametrize("routes", [False, True])
def test_two_layers_learn_eight_graphs_by_heart(preset: str, routes: bool) -> None:
    begin = time.process_time()  # of one thread or two: the machine may be busy
    config = ModelConfig.of(preset, layers=2, routes=routes)
    labels = some_plans(8, 40) if routes else some_tours(8, 40)
    lesson = draw(labels, Examples(low=20, per_graph=4), config, 24, 5, 0)
    torch.manual_seed(0)
    network = build(config)
    flat = flatten(network)
    rate = 3e-4 if preset == "paper" else 2e-3  # without norms a larger one diverges
    optimiser = torch.optim.AdamW([torch.nn.Parameter(flat)], lr=rate, weight_decay=0.0)
    (vector,) = optimiser.param_groups[0]["params"]
    assert vector.data_ptr() == flat.data_ptr()  # so a step moves the network
    for _ in range(600):
        loss, vector.grad = gradient(network, flat, lesson, 1 / len(lesson))
        torch.nn.utils.clip_grad_norm_([vector], 1.0)
        optimiser.step()
        if loss < 0.05:
            break
    assert loss < 0.05
    assert time.process_time() - begin < 60


@pytest.mark.parametrize("config", [ECONOMY, ROUTES, TINY, NARROW])
def test_gradients_equal_autograd_in_double(config: ModelConfig) -> None:
    """The hand-written way back (where sizes fit it) against torch in float64."""
    labels = some_plans() if config.routes else some_tours()
    state, right = decisions(labels, Examples(low=10), config, 30, 2, 0)
    lesson = Decisions(state, right)
    torch.manual_seed(0)
    network = build(config)
    with torch.no_grad():
        for p in network.parameters():
            p.add_(0.05 * torch.randn_like(p))
    flat = flatten(network)
    loss, found = gradient(network, flat, lesson, 1 / 30)
    double = build(config)
    double.load_state_dict(network.state_dict())
    double.double()
    nodes, context, count, direct = tensors_of(state)
    scores = double(nodes.double(), context.double(), count, direct).flatten(1)
    shares = torch.where(torch.from_numpy(right).flatten(1), scores.softmax(1), 0.0).sum(1)
    exact = -shares.log().mean()
    flatten(double)
    named = dict(double.named_parameters())
    order = list(shapes(config) if compiles(config) else named)
    parts = torch.autograd.grad(exact, [named[name] for name in order])
    assert loss == pytest.approx(float(exact.detach()), abs=1e-5)
    at = 0
    for name, part in zip(order, parts, strict=True):
        mine = found[at : at + part.numel()].view(part.shape).double()
        at += part.numel()
        # the bias of the score moves all logits alike, so its gradient is zero, but for rounding
        least = 0.0 if name != "score.bias" else 1e-3
        scale = max(float(part.abs().max()), least)
        assert float((mine - part).abs().max()) < 2e-4 * scale, name


@pytest.mark.compiled
def test_chunks_and_threads_do_not_change_the_step() -> None:
    runs = []
    for threads in (1, 2):
        trainer = Trainer(Recipe(TINY, Examples(low=10), batch=64, chunk=16), some_tours(), threads)
        for _ in range(3):
            trainer.train_step()
        trainer.pool.shutdown()
        runs.append(trainer.flat.clone())
    assert torch.equal(*runs)


@pytest.mark.compiled
@pytest.mark.parametrize("optimiser", ["adamw", "adam", "muon"])
def test_the_loss_falls(optimiser: str) -> None:
    config = Recipe(TINY, Examples(low=10), batch=64, chunk=32, warmup=5, optimiser=optimiser)
    trainer = Trainer(config, some_tours(), 1)
    losses = [trainer.train_step() for _ in range(60)]
    trainer.pool.shutdown()
    assert np.mean(losses[-10:]) < 0.9 * np.mean(losses[:5])


def test_a_loss_that_is_no_number_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = Trainer(Recipe(TINY, Examples(low=10), batch=16), some_tours(), 1)
    trainer.train_step()
    before = trainer.flat.clone()
    for broken in ((math.nan, 0.0), (1.0, math.nan)):
        monkeypatch.setattr(
            trainers, "gradient", lambda *_, b=broken: (b[0], torch.full_like(trainer.flat, b[1]))
        )
        with pytest.raises(ModelError, match="step 2: the loss or its gradient is not a number"):
            trainer.train_step()
    trainer.pool.shutdown()
    assert torch.equal(trainer.flat, before)


def test_the_rate_rises_stays_and_decays() -> None:
    config = Recipe(TINY, warmup=10, decay=100, gamma=0.5, epoch=1000)
    assert rate_at(config, 0, 0, None) == 0.1
    assert rate_at(config, 500, 0, None) == 1.0
    assert rate_at(config, 500, 2500, None) == 0.25
    assert rate_at(config, 550, 0, 500) == 0.5
    assert rate_at(config, 600, 0, 500) == 0.0


def test_the_recipes_in_the_box_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paper = read_recipe("paper")
    assert (paper.rate, paper.gamma, paper.batch, paper.optimiser) == (1e-4, 0.97, 1024, "adam")
    assert (paper.data.low, paper.data.share, paper.network.preset) == (20, 0.8, "paper")
    assert read_recipe("economy").network == ECONOMY
    assert read_recipe("economy-routes").network == ROUTES
    assert all(read_recipe(name) for name in names())
    for sizes in ("30-70", "20-80", "10-90"):
        assert compiles(read_recipe(CONFIGS / f"size-{sizes}.toml").network)
    with pytest.raises(ModelError, match=r"neither a file nor one of: economy, .*paper"):
        read_recipe("econmy")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "economy").mkdir()  # a run's folder hides no recipe
    assert read_recipe("economy").network == ECONOMY
    wrong = tmp_path / "wrong.toml"
    for text in ("[network]\npreset = 'economy'\nx = 1", "a = 1", "[network]\npreset = 1", "["):
        wrong.write_text(text)
        with pytest.raises(ModelError):
            read_recipe(wrong)


# --- resuming ------------------------------------------------------------------------------------

TOML = """
labels = "tsp40-*.npz"
batch = 32
chunk = 16
every = 5
warmup = 3
solves = 0
[network]
preset = "economy"
d = 32
layers = 1
heads = 2
hidden = 32
[data]
low = 10
"""


@pytest.fixture
def config(tmp_path: Path) -> Recipe:
    path = tmp_path / "tiny.toml"
    path.write_text(TOML)
    return read_recipe(path)


def newest(folder: Path) -> bytes:
    return sorted(folder.glob("step-*.safetensors"))[-1].read_bytes()


@pytest.mark.compiled
@pytest.mark.parametrize("optimiser", ["adamw", "muon"])
def test_a_resumed_run_repeats_an_uninterrupted_one(
    config: Recipe, optimiser: str, shards: Path, tmp_path: Path
) -> None:
    config = dataclasses.replace(config, optimiser=optimiser)
    train(config, shards, tmp_path / "a", steps=20)
    train(config, shards, tmp_path / "b", steps=7)
    train(config, shards, tmp_path / "b", steps=20, resume=True)
    assert newest(tmp_path / "a") == newest(tmp_path / "b")
    assert len(list((tmp_path / "a").glob("step-*.json"))) == 2
    network = load_model(tmp_path / "a" / "weights.safetensors")
    assert network.config == config.network
    with pytest.raises(ModelError, match="--resume"):
        train(config, shards, tmp_path / "a", steps=30)


@pytest.mark.compiled
def test_a_killed_run_repeats_an_uninterrupted_one(
    config: Recipe, shards: Path, tmp_path: Path
) -> None:
    steps = cases(400, 4000)
    train(config, shards, tmp_path / "a", steps=steps)
    out, moment, killed = tmp_path / "b", random.Random(1), 0
    command = [sys.executable, "-m", "drhg", "train", tmp_path / "tiny.toml", "--threads", "1"]
    command += ["--data", shards, "--out", out, "--steps", str(steps), "--resume"]
    kills = cases(2, 20)
    for _ in range(kills):
        before = sorted(out.glob("step-*.json"))
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        while process.poll() is None and sorted(out.glob("step-*.json")) == before:
            time.sleep(0.002)
        time.sleep(0.1 * moment.random())  # some steps, and perhaps in the middle of a checkpoint
        os.kill(process.pid, signal.SIGKILL)
        killed += process.wait() == -signal.SIGKILL
    assert killed == kills
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    assert newest(tmp_path / "a") == newest(out)
    curves = [[(entry["step"], entry["loss"]) for entry in log_of(tmp_path / run)] for run in "ab"]
    assert curves[0] == curves[1]


@pytest.mark.compiled
@pytest.mark.parametrize("moment", ["before", "after"])
def test_the_log_has_every_line_once_wherever_a_run_dies(
    config: Recipe, moment: str, shards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save = checkpoints.save

    def die(trainer: Trainer, folder: Path) -> None:
        if moment == "after" or trainer.step < 10:
            save(trainer, folder)
        if trainer.step == 10:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(checkpoints, "save", die)
        with pytest.raises(KeyboardInterrupt):
            train(config, shards, tmp_path / "run", steps=20)
    with open(tmp_path / "run" / "log.jsonl", "a") as log:
        log.write('{"step": 1')  # and in the middle of a line
    train(config, shards, tmp_path / "run", steps=20, resume=True)
    train(config, shards, tmp_path / "whole", steps=20)
    curves = [
        [(entry["step"], entry["loss"]) for entry in log_of(tmp_path / run)]
        for run in ("run", "whole")
    ]
    assert curves[0] == curves[1]
    assert [step for step, _ in curves[0]] == [5, 10, 15, 20]


@pytest.mark.compiled
@pytest.mark.parametrize("what", ["flipped", "truncated", "missing", "no counters"])
def test_a_damaged_newest_checkpoint_falls_back(
    config: Recipe, what: str, shards: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    train(config, shards, out, steps=10)
    path = out / "step-000000010.safetensors"
    data = bytearray(path.read_bytes())
    if what == "flipped":
        data[-1] ^= 1
        path.write_bytes(data)
    elif what == "truncated":
        path.write_bytes(data[:100])
    elif what == "missing":
        path.unlink()
    else:
        path.with_suffix(".json").write_text('{"step": 10')
    trainer = Trainer(config, read_tours(shards.glob("*.npz")))
    assert checkpoints.resume(trainer, out)
    assert trainer.step == 5
    shutil.rmtree(out)
    assert not checkpoints.resume(trainer, out)


@pytest.mark.compiled
def test_the_decay_branch_ends_at_rate_zero(config: Recipe, shards: Path, tmp_path: Path) -> None:
    config = dataclasses.replace(config, decay=6)
    train(config, shards, tmp_path / "run", steps=5)
    trainer = train(config, shards, tmp_path / "run", resume=True, decay=True)
    assert (trainer.step, trainer.decay_from) == (11, 5)


@pytest.mark.compiled
def test_a_run_can_start_from_weights(config: Recipe, shards: Path, tmp_path: Path) -> None:
    train(config, shards, tmp_path / "a", steps=5)
    init = tmp_path / "a" / "weights.safetensors"
    still = dataclasses.replace(config, rate=0.0)
    trainer = train(still, shards, tmp_path / "b", steps=1, init=str(init))
    expected = load_model(init).state_dict()
    for name, tensor in trainer.network.state_dict().items():
        torch.testing.assert_close(tensor, expected[name], rtol=0, atol=1e-6)
    other = dataclasses.replace(config, network=TINY)
    with pytest.raises(ModelError, match="do not belong"):
        train(other, shards, tmp_path / "c", steps=1, init=str(init))


@pytest.mark.compiled
def test_a_second_run_in_the_same_folder_is_refused(
    config: Recipe, shards: Path, tmp_path: Path
) -> None:
    pytest.importorskip("fcntl", reason="no locks on this system")
    refused = []

    def meanwhile() -> bool:
        with pytest.raises(ModelError, match="another run"):
            train(config, shards, tmp_path / "run", steps=9, resume=True)
        refused.append(True)
        return False

    train(config, shards, tmp_path / "run", steps=2, should_stop=meanwhile)
    assert refused
    assert train(config, shards, tmp_path / "run", steps=3, resume=True).step == 3


def log_of(folder: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


def command_of(tmp_path: Path, shards: Path, out: Path, *more: str) -> list[str]:
    files = ["train", str(tmp_path / "tiny.toml"), "--data", str(shards), "--out", str(out)]
    return [*files, "--threads", "1", *more]


@pytest.mark.compiled
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_saves_and_ends(
    config: Recipe, number: signal.Signals, shards: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    config = dataclasses.replace(config, every=10**6)
    (tmp_path / "tiny.toml").write_text(TOML.replace("every = 5", "every = 1000000"))
    command = [sys.executable, "-m", "drhg", *command_of(tmp_path, shards, out)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while not out.exists():
        time.sleep(0.05)
    time.sleep(1.0)
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert "Traceback" not in said
    (saved,) = out.glob("step-*.json")
    step = json.loads(saved.read_text())["step"]
    train(config, shards, tmp_path / "whole", steps=step)
    assert newest(out) == newest(tmp_path / "whole")
    assert log_of(out)[-1]["step"] == step


@pytest.mark.compiled
def test_two_processes_train_what_one_does(config: Recipe, shards: Path, tmp_path: Path) -> None:
    """Processes share each batch: the loss of one process that takes twice as much."""
    launch = ["torch.distributed.run", "--nproc-per-node", "2", "--master-port", "29611", "-m"]
    command = [sys.executable, "-m", *launch, "drhg"]
    command += command_of(tmp_path, shards, tmp_path / "two", "--steps", "10")
    one_thread = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run(command, check=True, capture_output=True, timeout=240, env=one_thread)
    trainer = train(config, shards, tmp_path / "one", steps=10)
    one, two = log_of(tmp_path / "one"), log_of(tmp_path / "two")
    assert [entry["step"] for entry in two] == [5, 10]
    for a, b in zip(one, two, strict=True):
        assert a["loss"] == pytest.approx(b["loss"], abs=2e-5)
    network = load_model(tmp_path / "two" / "weights.safetensors")
    for name, tensor in trainer.average.state_dict().items():
        torch.testing.assert_close(network.state_dict()[name], tensor, rtol=1e-3, atol=1e-4)
    alone = dataclasses.replace(config, batch=16)  # half of every batch is another run
    train(alone, shards, tmp_path / "half", steps=10)
    assert log_of(tmp_path / "half")[-1]["loss"] != pytest.approx(two[-1]["loss"], abs=1e-3)


@pytest.mark.compiled
def test_validation_solves_held_out_instances(config: Recipe, shards: Path, tmp_path: Path) -> None:
    config = dataclasses.replace(config, solves=3, solve_iters=4, k=(5, 20))
    heard: list[dict[str, float]] = []
    trainer = train(config, shards, tmp_path / "a", steps=5, report=heard.append)
    train(config, shards, tmp_path / "b", steps=5)
    (a,), (b,) = log_of(tmp_path / "a"), log_of(tmp_path / "b")
    assert a["gap_solve"] == b["gap_solve"] == heard[-1]["gap_solve"]
    assert a["loss_held"] == b["loss_held"] > 0
    assert a["gap_solve"] < 0  # the labels of this test are random orders: anything is shorter
    card = load(str(tmp_path / "a" / "weights.safetensors")).card
    assert card["gaps"] == {"30": a["gap_30"], "solve": a["gap_solve"]}
    assert (card["k"], card["n"], card["steps"]) == ([5, 20], 40, 5)
    assert card["data"].startswith("32 labelled tours")
    assert "1 x 1 threads" in card["hardware"]
    assert trainer.gaps["gap_30"] == a["gap_30"]


@pytest.mark.compiled
def test_tensorboard_is_written_or_named(
    config: Recipe, shards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as missing:
        missing.setitem(sys.modules, "torch.utils.tensorboard", None)
        with pytest.raises(ModelError, match="tensorboard"):
            train(config, shards, tmp_path / "a", steps=5, tensorboard=True)
    pytest.importorskip("tensorboard")
    train(config, shards, tmp_path / "b", steps=5, tensorboard=True)
    (events,) = (tmp_path / "b").glob("events.out.tfevents.*")
    data = events.read_bytes()
    assert all(tag in data for tag in (b"loss", b"gap_30", b"per_second"))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("preset", ["economy", "paper"])
def test_cuda_trains_like_the_cpu(preset: str) -> None:
    config = Recipe(ModelConfig.of(preset, layers=2), Examples(low=10), batch=64, chunk=32)
    losses = []
    for device in ("cpu", "cuda"):
        trainer = Trainer(config, some_tours(), 1, device)
        losses.append([trainer.train_step() for _ in range(5)])
        trainer.pool.shutdown()
    np.testing.assert_allclose(*losses, rtol=1e-2)


def test_state_is_plain_arrays() -> None:
    state = State(
        np.zeros((2, 3, 10), np.float32), np.zeros((2, 4), np.float32), np.ones(2, np.int32),
        np.ones((2, 3), np.bool_),
    )  # fmt: skip
    assert len(state) == 2

"""The network of edges: what it sees, how its scores become repairs, and how it learns."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import reference as ref
from hypothesis import given, settings
from hypothesis import strategies as st
from soak import upto
from test_training import some_plans, some_tours

import drhg
from drhg import hypergraph
from drhg.construct.starts import construct
from drhg.errors import DrhgError, ModelError
from drhg.hypergraph.judge import walk
from drhg.hypergraph.plan import OK
from drhg.kernels.jit import kernel
from drhg.network.decode import compiled, decode
from drhg.network.joining import CompiledEdges, begin, fits, join, paths_of
from drhg.network.survey import Around, Paths, survey, survey_of
from drhg.network.views import Views, views_of
from drhg.network.weights import ModelConfig, shapes, write_weights
from drhg.problem.generate import uniform_cvrp, uniform_tsp

torch = pytest.importorskip("torch", reason="random weights are made by torch")

from drhg.network.torch_model import build  # noqa: E402
from drhg.training.joins import Joins, draw_joins, loss  # noqa: E402
from drhg.training.recipe import Examples  # noqa: E402
from drhg.training.routes import cut_plan  # noqa: E402
from drhg.training.step import flatten, gradient, in_order  # noqa: E402

torch.set_num_threads(1)
TOURS = ModelConfig.of("edges", layers=2)
ROUTES = ModelConfig.of("edges", layers=2, routes=True)


@kernel
def see(feat, paths, around, seen):  # type: ignore[no-untyped-def]
    return survey(feat, paths, around, seen)


@kernel
def may(paths, u, v, capacity):  # type: ignore[no-untyped-def]
    return fits(paths, u, v, capacity)


@kernel
def tie(paths, u, v, depot):  # type: ignore[no-untyped-def]
    join(paths, u, v, depot)


@kernel
def fresh(partner, load, paths):  # type: ignore[no-untyped-def]
    begin(partner, load, len(partner), paths)


def network_of(config: ModelConfig, seed: int = 0) -> torch.nn.Module:
    torch.manual_seed(seed)
    network = build(config)
    with torch.no_grad():
        for p in network.parameters():
            p.add_(0.1 * torch.randn_like(p))
    return network.eval()


def compiled_of(config: ModelConfig, seed: int = 0, **options: float) -> CompiledEdges:
    tensors = {name: t.numpy() for name, t in network_of(config, seed).state_dict().items()}
    return CompiledEdges(config, tensors, **options)  # type: ignore[arg-type]


def random_paths(
    rng: np.random.Generator, routed: bool
) -> tuple[Paths, list[list[int]], list[int]]:
    """Pieces of a graph as arrays, as lists of nodes (-1 first for a stub), and their loads."""
    partner: list[int] = []
    pieces: list[list[int]] = []
    for _ in range(int(rng.integers(2, 9))):
        m = len(partner)
        kind = int(rng.integers(3 if routed else 2))
        partner += [[m], [m + 1, m], [-1]][kind]
        pieces.append([[m], [m, m + 1], [-1, m]][kind])
    weight = rng.integers(1, 9, len(pieces)).tolist()
    load = np.zeros(len(partner), np.int64)
    for piece, carried in zip(pieces, weight, strict=True):
        load[[u for u in piece if u >= 0]] = carried
    paths = paths_of(len(partner))
    fresh(np.array(partner, np.int32), load, paths)
    return paths, pieces, weight


@given(st.integers(0, 2**32 - 1), st.booleans())
@settings(max_examples=upto(60), deadline=None)
def test_joining_and_what_is_seen_equal_their_twins(seed: int, routed: bool) -> None:
    rng = np.random.default_rng(seed)
    paths, pieces, weight = random_paths(rng, routed)
    m, capacity = len(paths.mate), int(rng.integers(8, 30))
    feat = rng.random((m + 1, 6)).astype(np.float32)
    loads = dict(zip(map(tuple, pieces), weight, strict=True))
    for _ in range(int(rng.integers(0, 2 * m))):
        u, v = (int(i) for i in rng.integers(0, m, 2))
        ends = {i for piece in pieces for i in (piece[0], piece[-1]) if i >= 0}
        of = {i: tuple(piece) for piece in pieces for i in (piece[0], piece[-1]) if i >= 0}
        good = u in ends and v in ends and of[u] != of[v]
        good = good and loads[of[u]] + loads[of[v]] <= capacity
        assert may(paths, u, v, capacity) == good
        stubs = good and of[u][0] == of[v][0] == -1
        if not good or stubs or len(pieces) < 3:
            continue  # two stubs make a whole route: it is gone then
        both = loads.pop(of[u]) + loads.pop(of[v])
        pieces = ref.joined(pieces, u, v)
        if pieces[-1][-1] == -1:
            pieces[-1].reverse()
        loads[tuple(pieces[-1])] = both
        tie(paths, u, v, m)
    around = Around(np.int64(capacity), np.int64(3))
    inputs = (ROUTES if routed else TOURS).node_inputs
    seen = survey_of(m + 1, inputs, m + 1)
    t = see(feat, paths, around, seen)
    nodes, apart, mate = ref.survey(
        feat[:, :2].astype(float),
        [(piece[0], piece[-1]) for piece in pieces],
        [loads[tuple(piece)] for piece in pieces],
        feat[m, :2].astype(float) if routed else None,
        capacity,
        3,
    )
    assert t == len(nodes)
    np.testing.assert_allclose(seen.nodes[:t], nodes, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(seen.apart[:t, :t], apart, rtol=1e-4, atol=1e-5)
    assert seen.mate[:t].tolist() == mate


def some_graphs(routed: bool, seed: int) -> tuple[hypergraph.Rules, hypergraph.Graphs]:
    rng = np.random.default_rng(seed)
    make = uniform_cvrp if routed else uniform_tsp
    instance = make(int(rng.integers(8, 50)), seed=seed)
    start, _ = construct(instance, "sweep" if routed else "insertion", seed)
    rules = hypergraph.rules_of(instance)
    plan = hypergraph.plan_of(rules, start)
    edges = ("adjacent", "touched", "all")[int(rng.integers(3))]
    return rules, cut_plan(rules, plan, rng.integers(1, instance.n, 3), edges, rng)


@pytest.mark.parametrize("drawn", [False, True])
@pytest.mark.parametrize("routed", [False, True])
def test_every_repair_is_one(routed: bool, drawn: bool) -> None:
    model = compiled_of(ROUTES if routed else TOURS)
    for seed in range(40):
        rules, graphs = some_graphs(routed, seed)
        rng = np.random.default_rng(seed) if drawn else None
        repaired = decode(model, views_of(rules, graphs), np.zeros(len(graphs), np.int32), rng)
        verdict, _, _ = walk(rules, graphs, repaired)
        assert (verdict == OK).all()


def test_rows_are_repaired_alike_alone_and_together() -> None:
    one, two = compiled_of(TOURS), compiled_of(TOURS, threads=2)
    rules, graphs = some_graphs(False, 3)
    views = views_of(rules, graphs)
    together, halves = one.repair(views), two.repair(views)
    assert together is not None
    assert halves is not None
    assert (together.order == halves.order).all()
    for row in range(len(views)):
        alone = one.repair(Views(*(array[row : row + 1] for array in views.arrays)))
        assert alone is not None
        assert (alone.order[0] == together.order[row]).all()


def test_scores_that_are_no_numbers_are_noticed() -> None:
    nothing = {name: np.full(shape, np.nan, np.float32) for name, shape in shapes(TOURS).items()}
    model = CompiledEdges(TOURS, nothing)
    rules, graphs = some_graphs(False, 5)
    with pytest.raises(FloatingPointError, match="not numbers"):
        decode(model, views_of(rules, graphs), np.zeros(len(graphs), np.int32))


@pytest.mark.parametrize("config", [TOURS, ROUTES])
def test_lessons_name_the_edges_of_the_label(config: ModelConfig) -> None:
    labels = some_plans(6) if config.routes else some_tours(6)
    examples = Examples(low=8, share=0.6)
    one = draw_joins(labels, examples, config, 30, 1, 7)
    two = draw_joins(labels, examples, config, 30, 1, 7)
    other = draw_joins(labels, examples, config, 30, 1, 8)
    assert all((a == b).all() for a, b in zip(one.arrays, two.arrays, strict=True))
    assert one.nodes.shape != other.nodes.shape or (one.nodes != other.nodes).any()
    for b in range(30):
        t = int(one.count[b])
        right, mate = one.right[b, :t], one.mate[b, :t]
        ends = t - 1 if config.routes else t
        for i in range(ends):
            single = mate[i] == i and not one.nodes[b, i, 6]
            asked = [j for j in right[i].tolist() if j >= 0]
            assert len(asked) == (2 if single else 1)
            for j in asked:
                assert j != i
                assert j != mate[i] or config.routes
                assert j == t - 1 or not config.routes or i in right[j]
        if not config.routes:  # the edges to learn close one tour together with the paths
            here, came, steps = 0, -1, 0
            while steps == 0 or here != 0:
                single = mate[here] == here
                out = here if single else int(mate[here])
                following = [int(j) for j in right[out] if j >= 0]
                came, here = out, following[-1] if single and following[0] == came else following[0]
                steps += 1
            assert steps == sum(1 if mate[i] == i else 0.5 for i in range(t))


@pytest.mark.parametrize("config", [TOURS, ROUTES])
def test_gradients_equal_autograd_in_double(config: ModelConfig) -> None:
    labels = some_plans(6) if config.routes else some_tours(6)
    joins = draw_joins(labels, Examples(low=8, share=0.6), config, 12, 2, 0)
    network = network_of(config).train()
    flat = flatten(network)
    found, slope = gradient(network, flat, joins, 1 / len(joins))
    double = build(config)
    double.load_state_dict(network.state_dict())
    double.double()
    nodes, apart, mate, count = joins.inputs(torch.device("cpu"))
    exact = loss(double(nodes.double(), apart.double(), mate, count), joins) / len(joins)
    slopes = torch.autograd.grad(exact, in_order(double))
    expected = torch.cat([s.reshape(-1) for s in slopes])
    assert found == pytest.approx(float(exact.detach()), rel=1e-5)
    torch.testing.assert_close(
        slope.double(), expected, rtol=1e-3, atol=1e-5 * float(expected.abs().max())
    )


def test_torch_scores_a_batch_as_its_rows() -> None:
    joins = draw_joins(some_tours(6), Examples(low=8, share=0.6), TOURS, 5, 2, 0)
    network = network_of(TOURS)
    device = torch.device("cpu")
    with torch.no_grad():
        together = network(*joins.inputs(device))
        for b, part in enumerate(joins.parts(1)):
            alone = network(*part.inputs(device))[0]
            t = len(alone)
            torch.testing.assert_close(together[b, :t, :t], alone, rtol=1e-4, atol=1e-4)


def test_it_learns() -> None:
    labels = some_tours(8, 40)
    joins = draw_joins(labels, Examples(low=12, share=0.6), TOURS, 8, 5, 0)
    assert isinstance(joins, Joins)
    torch.manual_seed(0)
    network = build(TOURS)
    flat = flatten(network)
    optimiser = torch.optim.AdamW([torch.nn.Parameter(flat)], lr=2e-3, weight_decay=0.0)
    (vector,) = optimiser.param_groups[0]["params"]
    first = None
    for _ in range(300):
        found, vector.grad = gradient(network, flat, joins, 1 / len(joins))
        first = first or found
        torch.nn.utils.clip_grad_norm_([vector], 1.0)
        optimiser.step()
        if found < 0.1:
            break
    assert found < 0.1 < first


def test_it_solves_by_name_and_says_what_it_cannot(tmp_path: Path) -> None:
    path = tmp_path / "mine.safetensors"
    tensors = {name: t.numpy() for name, t in build(TOURS).state_dict().items()}
    write_weights(path, TOURS, tensors)
    instance = drhg.uniform_tsp(60, seed=1)
    found = drhg.solve(
        instance, method=drhg.Regions(repair=drhg.Neural(path)), max_iters=40, seed=1
    )
    start = drhg.solve(instance, method="insertion", max_iters=1, seed=1)
    assert found.cost < start.cost
    assert not found.warnings
    assert not drhg.check(instance, found.solution)
    with pytest.raises(ModelError, match="runs on the CPU only"):
        drhg.Neural(path, device="cuda").begin(instance, 1)
    with pytest.raises(DrhgError, match="per_round must be above 0"):
        drhg.Neural(path, per_round=0.0)
    with pytest.raises(ModelError, match="multiples of 16"):
        ModelConfig.of("edges", heads=8)
    assert compiled(TOURS, tensors) is not None

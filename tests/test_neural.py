"""The neural repairer: whole decodings, by torch and compiled alike, and what it refuses."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numba
import numpy as np
import pytest
import reference as ref
from hypothesis import given, settings
from hypothesis import strategies as st
from soak import upto

from drhg import hypergraph, tsp
from drhg.construct.starts import construct
from drhg.errors import ModelError
from drhg.hypergraph.plan import Plan, Rules
from drhg.hypergraph.reduce import Graphs
from drhg.kernels.random import random_state
from drhg.kernels.space import distance
from drhg.network import products
from drhg.network.decisions import pick
from drhg.network.decode import Compiled, compiled, decode, load_compiled
from drhg.network.paper import CompiledPaper
from drhg.network.repairer import NeuralRepair
from drhg.network.views import Graph, Place, Scorer, Seen, State, Views, orient, see, views_of
from drhg.network.weights import ModelConfig, write_weights
from drhg.problem import Instance, Metric, Solution
from drhg.problem.generate import uniform_cvrp, uniform_tsp

torch = pytest.importorskip("torch", reason="random weights are made by torch")

from drhg.network.torch_model import Network, build  # noqa: E402

torch.set_num_threads(1)
ECONOMY = ModelConfig.of("economy")
ROUTES = ModelConfig.of("economy", routes=True)


def network_of(config: ModelConfig, seed: int = 0) -> Network:
    torch.manual_seed(seed)
    network = build(config)
    with torch.no_grad():
        for p in network.parameters():
            p.add_((0.01 if config.preset == "paper" else 0.1) * torch.randn_like(p))
    return network.eval()


def tensors_of(network: Network) -> dict[str, np.ndarray]:
    return {name: t.numpy() for name, t in network.state_dict().items()}


def compiled_of(network: Network, **options: int) -> Compiled:
    return Compiled(network.config, tensors_of(network), **options)


def some_graphs(instance: Instance, sizes: list[int], seed: int = 0) -> tuple[Rules, Plan, Graphs]:
    rng = np.random.default_rng(seed)
    rules = hypergraph.rules_of(instance)
    plan = hypergraph.plan_of(rules, Solution([rng.permutation(instance.n)]))
    centres = rng.integers(instance.n, size=len(sizes))
    ranked = hypergraph.Nearness(instance).around(centres, instance.n)
    cuts = hypergraph.destroy_to_size(rules, plan, ranked, sizes)
    return rules, plan, hypergraph.reduce(rules, plan, *cuts)


@pytest.mark.compiled
@pytest.mark.parametrize("vectors", [1, 2, 4])
@pytest.mark.parametrize("rows", [1, 2, 6])
def test_a_tile_is_a_product(rows: int, vectors: int) -> None:
    """Compiled here and now, never from the cache: the instructions and their plain twin."""
    tile = products._tile(rows, vectors)

    @numba.njit
    def product(a, i, b, j, c, n, add):  # type: ignore[no-untyped-def]
        tile(a, i, b, j, c, n, add)

    rng = np.random.default_rng(rows)
    a, b, c = (rng.normal(size=shape).astype(np.float32) for shape in ((9, 11), (12, 70), (8, 80)))
    for n, add, turned in ((9, False, False), (5, True, True), (1, True, False), (0, False, False)):
        left = products.Block(a, 3, *((1, 11) if turned else (11, 1)))
        right, out = products.Block(b, 4, 70, 1), products.Block(c.copy(), 2, 80, 1)
        twin = out._replace(data=c.copy())
        product(left, 1, right, 2, out, n, add)
        ref.tile(rows, vectors)(left, 1, right, 2, twin, n, add)
        np.testing.assert_allclose(out.data, twin.data, rtol=1e-5, atol=1e-5)
        assert (out.data != c).sum() == rows * 16 * vectors


@pytest.mark.compiled
def test_exponentials_are_those_of_numpy() -> None:
    exponentials = products.intrinsic(products._vector_exponentials)

    @numba.njit
    def replaced(s, at, vectors):  # type: ignore[no-untyped-def]
        return exponentials(s, at, vectors)

    rng = np.random.default_rng(1)
    for spread in (0.01, 1.0, 30.0):
        s = (spread * rng.normal(size=(4, 64))).astype(np.float32)
        found, expected = s.copy(), s.copy()
        total = replaced(found, 80, 3)
        assert total == pytest.approx(ref.exponentials(expected, 80, 3), rel=1e-6)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-30)
        assert (found != s).sum() in (47, 48)


def test_compiled_scores_equal_torch() -> None:
    rng = np.random.default_rng(0)
    for window, d, heads, layers in ((24, 64, 4, 6), (7, 32, 1, 2), (33, 48, 3, 3)):
        config = ModelConfig.of(
            "economy", window=window, d=d, heads=heads, layers=layers, hidden=2 * d
        )
        network = network_of(config)
        nodes = rng.random((37, window, 10)).astype(np.float32)
        count = rng.integers(1, window + 1, 37).astype(np.int32)
        direct = np.arange(window) < count[:, None]
        state = State(nodes, rng.random((37, 4)).astype(np.float32), count, direct)
        expected, found = network.logits(state), compiled_of(network).logits(state)
        inside = np.isfinite(expected)
        assert (inside == np.isfinite(found)).all()
        scale = np.abs(expected[inside]).max()
        np.testing.assert_allclose(found[inside], expected[inside], atol=1e-5 * max(1, scale))


def test_compiled_scores_of_routes_equal_torch() -> None:
    network = network_of(ModelConfig.of("economy", routes=True))
    rng = np.random.default_rng(1)
    shape = (9, 24, network.config.node_inputs)
    context = rng.random((9, network.config.context_inputs)).astype(np.float32)
    direct = rng.random((9, 24)) < 0.5
    state = State(rng.random(shape).astype(np.float32), context, np.full(9, 24, np.int32), direct)
    found, expected = compiled_of(network).logits(state), network.logits(state)
    np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(expected[..., 1]).max())
    assert (np.isfinite(found[..., 0]) == direct).all()


@pytest.mark.parametrize("routes", [False, True])
@pytest.mark.parametrize(
    "changes",
    [
        {"layers": 6},
        {"d": 32, "heads": 1, "layers": 2, "hidden": 48, "from_first": 2, "from_current": 14},
        {"d": 96, "heads": 3, "layers": 1, "from_first": 7, "from_current": 25},
    ],
)
def test_the_papers_network_compiled_equals_torch(changes: dict[str, int], routes: bool) -> None:
    network = network_of(ModelConfig.of("paper", routes=routes, **changes))
    rng, config = np.random.default_rng(0), network.config
    count = np.array([1, 70, 33, 2, 16, 17, 48, 5, 64], np.int32)
    shape = (len(count), 70, config.node_inputs)
    context = rng.random((len(count), config.context_inputs)).astype(np.float32)
    direct = (rng.random(shape[:2]) < 0.5) | (not routes)
    direct &= np.arange(70) < count[:, None]
    state = State(rng.random(shape).astype(np.float32), context, count, direct)
    expected = network.logits(state)
    inside = np.isfinite(expected)
    scale = max(1.0, float(np.abs(expected[inside]).max()))
    found = []
    for options in ({}, {"threads": 3}, {"group": 1}, {"group": 5}):
        model = CompiledPaper(config, tensors_of(network), **options)
        found.append(model.logits(state))
        assert (inside == np.isfinite(found[-1])).all()
        np.testing.assert_allclose(found[-1][inside], expected[inside], atol=1e-5 * scale)
    model = CompiledPaper(config, tensors_of(network))
    for b, c in enumerate(count):
        row = slice(b, b + 1)
        alone = State(state.nodes[row, :c], context[row], count[row], direct[row, :c])
        np.testing.assert_allclose(model.logits(alone)[0], found[0][b, :c], atol=2e-6 * scale)


@pytest.mark.compiled
@pytest.mark.parametrize("by", ["paper", "torch", "compiled", "compiled paper"])
def test_every_decoding_is_a_repair(by: str) -> None:
    network = network_of(ModelConfig.of("paper" if "paper" in by else "economy", layers=2))
    model: Scorer = network
    if "compiled" in by:
        found = compiled(network.config, tensors_of(network), threads=2)
        assert found is not None
        model = found
    rules, plan, graphs = some_graphs(uniform_tsp(60, seed=1), [4, 5, 20, 37, 59, 60, 6, 33])
    for greedy in (True, False):
        for alternatives in (1, 3):
            repair = NeuralRepair(model, greedy=greedy, alternatives=alternatives)
            repaired = repair(rules, graphs, np.random.default_rng(2))
            good, delta = hypergraph.judge(rules, plan, graphs, repaired)
            assert good.all()
            assert np.isfinite(delta).all()


def cropped(views: Views, b: int) -> Views:
    """One row of a batch, without its padding."""
    row, m = slice(b, b + 1), int(views.size[b])
    extra = views.feat.shape[1] - views.partner.shape[1]  # the depot
    return Views(
        views.feat[row, : m + extra].copy(), views.partner[row, :m].copy(),
        views.load[row, :m].copy(), views.capacity[row], views.fleet[row], views.size[row],
    )  # fmt: skip


@pytest.mark.compiled
def test_a_batch_decodes_like_its_rows() -> None:
    network = network_of(ECONOMY)
    rules, _, graphs = some_graphs(uniform_tsp(80, seed=3), [10, 50, 30, 70, 80, 22, 41])
    views = views_of(rules, graphs)
    start = np.zeros(len(graphs), np.int32)
    rows = [network, compiled_of(network), compiled_of(network, group=1)]
    rows += [compiled_of(network, group=5), compiled_of(network, threads=3)]
    orders = [decode(model, views, start).order for model in rows]
    for order in orders[1:]:
        assert np.mean(order == orders[0]) > 0.95  # rounding may turn a tie
    for order in orders[2:]:
        assert (order == orders[1]).all()
    for b, m in enumerate(graphs.size):
        row = slice(b, b + 1)
        alone = decode(rows[1], cropped(views, b), start[row]).order
        assert (alone[0] == orders[1][b, :m]).all()


# --- routes --------------------------------------------------------------------------------------


@st.composite
def cut_plans(draw: st.DrawFn) -> tuple[Rules, Plan, Graphs]:
    """Random plans, good and bad, within fleet and length limits or none, cut at random."""
    customers = draw(st.integers(1, 40))
    shape = draw(st.sampled_from(ref.SHAPES))
    metric = draw(st.sampled_from([m for m in Metric if m is not Metric.EXPLICIT]))
    limit, fleet = draw(st.booleans()), draw(st.booleans())
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    instance, routes = ref.random_plan(rng, customers, shape, metric, limit=limit, fleet=fleet)
    rules = hypergraph.rules_of(instance)
    plan = hypergraph.plan_of(rules, Solution(routes))
    near = hypergraph.Nearness(instance)
    counts = rng.integers(0, len(near.nodes) + 1, 4)
    ranked = near.around(rng.choice(near.nodes, 4), len(near.nodes))
    edges = draw(st.sampled_from(sorted(hypergraph.DEPOT_EDGES)))
    cuts = hypergraph.destroy_nearest(rules, plan, ranked, counts, depot_edges=edges)
    return rules, plan, hypergraph.reduce(rules, plan, *cuts)


@pytest.fixture(scope="module")
def routers() -> list[Scorer]:
    """Networks for routes: the paper's, and the economical one by torch and compiled."""
    paper = network_of(ModelConfig.of("paper", layers=1, routes=True))
    economy = network_of(ROUTES)
    return [paper, economy, compiled_of(economy, threads=2)]


@pytest.mark.compiled
@settings(max_examples=upto(150), deadline=None)
@given(case=cut_plans(), greedy=st.booleans(), seed=st.integers(0, 2**32))
def test_every_decoding_of_routes_is_a_repair(
    routers: list[Scorer], case: tuple[Rules, Plan, Graphs], greedy: bool, seed: int
) -> None:
    """Whatever the network says, all is visited once and nothing overloaded; limits may break."""
    rules, plan, graphs = case
    for model in routers:
        rng = np.random.default_rng(seed)
        repaired = NeuralRepair(model, greedy=greedy)(rules, graphs, rng)
        verdict, _, _ = hypergraph.walk(rules, graphs, repaired)
        assert np.isin(verdict, (hypergraph.OK, hypergraph.TOO_LONG)).all()
        if rules.max_length == np.inf:
            assert (verdict == hypergraph.OK).all()
        good, change = hypergraph.judge(rules, plan, graphs, repaired)
        for b in np.flatnonzero(good):
            after = hypergraph.restore(rules, plan, graphs, int(b), repaired)
            visited = np.sort(after.order[after.order != rules.depot])
            assert visited.tolist() == [i for i in range(rules.n) if i != rules.depot]
            moved = free_cost(rules, after) - free_cost(rules, plan)
            assert moved == pytest.approx(change[b], abs=1e-6 * max(1.0, abs(moved)))


def free_cost(rules: Rules, plan: Plan) -> float:
    """Length of a whole plan."""
    return sum(distance(rules.space, a, z) for a, z in pairwise(plan.order.tolist()))


@pytest.mark.compiled
@settings(max_examples=upto(60), deadline=None)
@given(case=cut_plans(), seed=st.integers(0, 2**32))
def test_a_batch_of_routes_decodes_like_its_rows(
    routers: list[Scorer], case: tuple[Rules, Plan, Graphs], seed: int
) -> None:
    rules, _, graphs = case
    views = views_of(rules, graphs)
    start = np.random.default_rng(seed).integers(np.maximum(graphs.size, 1)).astype(np.int32)
    compiled = routers[2]
    together = decode(compiled, views, start)
    for b, m in enumerate(graphs.size):
        alone = decode(compiled, cropped(views, b), start[b : b + 1])
        assert (alone.order[0, :m] == together.order[b, :m]).all()
        assert (alone.via[0, :m] == together.via[b, :m]).all()


@pytest.mark.compiled
def test_routes_by_torch_and_compiled_agree(routers: list[Scorer]) -> None:
    rules, _, graphs = some_routes(80, [20, 40, 60, 80] * 4)
    views = views_of(rules, graphs)
    start = np.zeros(len(graphs), np.int32)
    one, two = (decode(model, views, start) for model in routers[1:])
    same = (one.order == two.order).all(1) & (one.via == two.via).all(1)
    assert same.mean() > 0.8  # rounding may turn a tie


def some_routes(
    customers: int, counts: list[int], depot_edges: str = "adjacent", seed: int = 0
) -> tuple[Rules, Plan, Graphs]:
    instance = uniform_cvrp(customers, seed=seed)
    rules = hypergraph.rules_of(instance)
    plan = hypergraph.plan_of(rules, construct(instance, "savings", 0)[0])
    near = hypergraph.Nearness(instance)
    centres = np.random.default_rng(seed).choice(near.nodes, len(counts))
    ranked = near.around(centres, customers)
    cuts = hypergraph.destroy_nearest(rules, plan, ranked, counts, depot_edges=depot_edges)
    return rules, plan, hypergraph.reduce(rules, plan, *cuts)


def test_what_does_not_fit_is_not_offered() -> None:
    """Directly only what the open route can load; at the depot nothing; through it everything."""
    rules, _, graphs = some_routes(60, [40])
    model = Recorder(ModelConfig.of("economy", routes=True, window=100))
    decode(model, views_of(rules, graphs), np.zeros(1, np.int32))
    states = model.seen
    assert not states[0].direct.any()
    assert states[0].context[0, 6] == 0
    shut = 0
    for state in states:
        loads, room = state.nodes[0, :, 10], state.context[0, -1]
        is_open = state.context[0, 6] > 0
        fits = is_open & (loads <= room + 1e-6)
        assert (state.direct[0] == fits).all()
        np.testing.assert_allclose(
            state.nodes[0, :, 11], (room if is_open else -1 / rules.capacity) - loads, atol=1e-6
        )
        shut += int((~fits).sum())
    assert shut > 0
    opened = [round(float(np.expm1(state.context[0, 7]))) for state in states]
    assert opened[0] == graphs.n_routes[0]
    assert all(a - z in (0, 1) or z == 0 for a, z in pairwise(opened))
    assert opened[-1] < opened[0]


def test_no_route_is_closed_that_the_fleet_cannot_spare() -> None:
    """While what is left needs more routes than the plan has, an open route goes on if it can."""
    direct = np.array([True, False])
    scores = np.log(np.array([[0.01, 0.9], [0.05, 0.04]], np.float32))
    for draw in (False, True):
        assert pick(scores, direct, True, draw, random_state(1)) == (0, False)
        assert pick(scores, direct & False, True, draw, random_state(1))[1]
    kept = 0
    for seed in range(12):
        rules, _, graphs = some_routes(60, [40], seed=seed)
        views = views_of(rules, graphs)
        model = Recorder(ModelConfig.of("economy", routes=True, window=100))
        found = decode(model, views, np.zeros(1, np.int32))
        order, via, partner = found.order[0], found.via[0], graphs.partner[0]
        left, room, fleet = 0, -1, int(graphs.n_routes[0])
        m = int(graphs.size[0])
        items = [i for i in range(m) if i == 0 or partner[order[i]] != order[i - 1]]
        loads = [int(graphs.load[0, order[i]]) for i in items]
        left = sum(loads)
        for at, (i, load) in enumerate(zip(items, loads, strict=True)):
            tight = left > fleet * rules.capacity
            could = room >= 0 and min(loads[at:]) <= room
            if via[i]:
                last = at == len(items) - 1  # chosen by length, without the network
                assert not (tight and could) or last
                fleet -= 1
                room = rules.capacity
            kept += tight and could and not via[i]
            room = -1 if partner[order[i]] < 0 and not via[i] else room - load
            left -= load
    assert kept > 0


def test_far_depots_stay_in_sight() -> None:
    """What is seen of a depot grows slowly with its distance; of the region nothing changes."""
    base = uniform_cvrp(40, seed=1)
    seen = []
    for away in (1.0, 30.0, 1000.0):
        xy = base.xy.copy()
        xy[0] = [away, 0.3]
        instance = Instance(xy=xy, demand=base.demand, capacity=base.capacity)
        rules = hypergraph.rules_of(instance)
        order = np.arange(1, 41).reshape(-1, 4)
        plan = hypergraph.plan_of(rules, Solution(list(order)))
        ranked = hypergraph.Nearness(instance).around([7], 20)
        cuts = hypergraph.destroy_nearest(rules, plan, ranked, 20)
        model = Recorder(ROUTES)
        decode(model, views_of(rules, hypergraph.reduce(rules, plan, *cuts)), np.zeros(1, np.int32))
        seen.append(model.seen[0])
    for one, two in pairwise(seen):
        np.testing.assert_allclose(one.nodes[..., [0, 1, 6]], two.nodes[..., [0, 1, 6]], atol=1e-5)
        assert two.context[0, 2] > one.context[0, 2]
    assert np.abs(seen[-1].nodes).max() < 10


def test_starts_of_routes_count_together() -> None:
    """Closing a route is as likely as all starts of the next one together."""
    direct = np.ones(3, np.bool_)
    state = random_state(0)
    scores = np.log(np.array([[0.4, 0.2], [0.0001, 0.2], [0.0001, 0.1999]], np.float32))
    assert pick(scores, direct, False, False, state) == (0, True)
    scores[0, 0] = np.log(0.7)
    assert pick(scores, direct, False, False, state) == (0, False)
    direct[0] = False
    scores[2, 1] = np.log(0.3)
    assert pick(scores, direct, False, False, state) == (2, True)
    drawn = [pick(scores, np.ones(3, np.bool_), False, True, state) for _ in range(4000)]
    share = np.exp(scores) / np.exp(scores).sum()
    for i in range(3):
        for o in range(2):
            found = np.mean([d == (i, o == 1) for d in drawn])
            assert found == pytest.approx(share[i, o], abs=0.03)


@pytest.mark.parametrize("kind", ["single", "stub"])
def test_the_last_item_of_routes_goes_the_shorter_way(kind: str) -> None:
    """Directly if it fits, else through the depot; no network is asked."""
    feat = np.zeros((1, 3, 6), np.float32)
    feat[0, :2, :2] = [[1, 0], [1, 0.1]]  # the depot is at the origin
    partner = np.array([[0, 1 if kind == "single" else -1]], np.int32)
    for capacity, expected in ((4, [True, False]), (3, [True, True])):
        load = np.array([[2, 2]])
        one, two = np.array([1], np.int32), np.array([2], np.int32)
        views = Views(feat, partner, load, np.array([capacity]), one, two)
        model = Recorder(ROUTES)
        repaired = decode(model, views, np.zeros(1, np.int32))
        assert repaired.via[0].tolist() == expected
        assert len(model.seen) == 1


class Recorder:
    """Scores by nearness, and remembers what it was shown."""

    def __init__(self, config: ModelConfig) -> None:
        self.config = config
        self.seen: list[State] = []

    def logits(self, state: State) -> np.ndarray:
        arrays = state.nodes, state.context, state.count, state.direct
        self.seen.append(State(*(array.copy() for array in arrays)))
        scores = np.repeat(-state.nodes[..., 6:7], self.config.outputs, axis=2)
        scores[..., 0] = np.where(state.direct, scores[..., 0], -np.inf)
        return scores


def test_forced_steps_never_run_the_network() -> None:
    rules, _, graphs = some_graphs(uniform_tsp(50, seed=2), [30])
    model = Recorder(ECONOMY)
    NeuralRepair(model)(rules, graphs, np.random.default_rng(0))
    items = 30 - int((graphs.partner[0] != np.arange(30)).sum()) // 2
    assert len(model.seen) == items - 2  # the first is drawn, the last needs no choice


def test_the_last_hyper_edge_is_entered_the_shorter_way() -> None:
    feat = np.zeros((1, 4, 5), np.float32)
    feat[0, :, :2] = [[0, 0], [1, 0], [0, 1], [1, 1]]  # 0 alone, 1 alone, a hyper-edge 2-3
    partner = np.array([[0, 1, 3, 2]], np.int32)
    size, start = np.array([4], np.int32), np.zeros(1, np.int32)
    views = Views(feat, partner, np.zeros((1, 4), np.int64), np.ones(1, np.int64), start, size)
    order = decode(Recorder(ECONOMY), views, start).order
    assert order.tolist() == [[0, 1, 3, 2]]


def test_training_and_inference_see_the_same() -> None:
    """Replaying a decoded order through `see`, as training does, gives the recorded states."""
    rules, _, graphs = some_graphs(uniform_tsp(50, seed=4), [40])
    views = views_of(rules, graphs)
    feat = views.feat
    model = Recorder(ECONOMY)
    order = decode(model, views, np.zeros(1, np.int32)).order[0]
    mate = graphs.partner[0]
    shown = feat[0][order]  # the graph in the order of its tour, as training has it
    step = 0
    for t in range(1, 40):
        if mate[order[t]] == order[t - 1] or step == len(model.seen):
            continue
        free = np.arange(40) >= t
        nodes, context = np.zeros((24, 10), np.float32), np.zeros(4, np.float32)
        chosen, far = np.empty(24, np.int32), np.empty(24, np.float32)
        mates, load, direct = np.argsort(order)[mate[order]], views.load[0], np.empty(24, bool)
        graph = Graph(shown, mates.astype(np.int32), load, 1)
        place = Place(shown[0], shown[t - 1], 1, 0)
        view = Seen(nodes, context, direct, chosen, far)
        count = see(graph, free, 40, place, True, 24, view)
        seen = model.seen[step]
        assert count == seen.count[0]
        np.testing.assert_array_equal(nodes[:count], seen.nodes[0, :count])
        np.testing.assert_array_equal(context, seen.context[0])
        assert chosen[:count].tolist().index(t) == int((-seen.nodes[0, :count, 6]).argmax())
        step += 1
    assert step == len(model.seen)


def test_symmetries_change_no_length() -> None:
    rng = np.random.default_rng(0)
    feat = rng.random((9, 5)).astype(np.float32)

    def lengths(f: np.ndarray) -> np.ndarray:
        return np.linalg.norm(f[:, None, :2] - f[None, :, :2], axis=-1)

    for relative in (True, False):
        for angle, mirror in ((0.3, True), (-2.0, False), (-1.0, True)):
            turned = feat.copy()
            orient(turned, 9, relative, angle, mirror)
            np.testing.assert_allclose(lengths(turned), lengths(feat), atol=1e-5)
            if not relative:
                assert turned[:, :2].min() >= 0


@pytest.mark.compiled
def test_best_of_several_is_no_worse() -> None:
    model = compiled_of(network_of(ECONOMY))
    rules, plan, graphs = some_graphs(uniform_tsp(80, seed=5), [60] * 10)
    totals = []
    for alternatives in (1, 8):
        repair = NeuralRepair(model, alternatives=alternatives)
        repaired = repair(rules, graphs, np.random.default_rng(1))
        totals.append(hypergraph.judge(rules, plan, graphs, repaired)[1].sum())
    assert totals[1] < totals[0]


@pytest.mark.compiled
def test_the_same_seed_repeats_itself() -> None:
    model = compiled_of(network_of(ECONOMY))
    rules, _, graphs = some_graphs(uniform_tsp(60, seed=6), [40, 50])
    runs = [
        NeuralRepair(model, greedy=False, seed=3)(rules, graphs, np.random.default_rng(i)).order
        for i in range(2)
    ]
    assert (runs[0] == runs[1]).all()


def test_what_cannot_be_repaired_is_refused() -> None:
    model = compiled_of(network_of(ECONOMY))
    matrix = np.ones((6, 6)) - np.eye(6)
    bare = Instance(matrix=matrix, metric=Metric.EXPLICIT)
    rules, _, graphs = some_graphs(bare, [5])
    with pytest.raises(ModelError, match="coordinates"):
        NeuralRepair(model)(rules, graphs, np.random.default_rng(0))
    routed = hypergraph.rules_of(uniform_cvrp(6, seed=0))
    with pytest.raises(ModelError, match="tours only"):
        NeuralRepair(model)(routed, graphs, np.random.default_rng(0))
    with pytest.raises(ModelError, match="needs torch"):
        compiled_of(network_of(ModelConfig.of("paper", layers=1)))
    narrow = network_of(ModelConfig.of("paper", d=16, layers=1, heads=2, hidden=16))
    with pytest.raises(ModelError, match="needs torch"):
        CompiledPaper(narrow.config, tensors_of(narrow))
    assert compiled(narrow.config, tensors_of(narrow)) is None


def test_weights_are_used_without_torch(tmp_path: Path) -> None:
    network = network_of(ECONOMY)
    path = tmp_path / "w.safetensors"
    tensors = {name: t.numpy() for name, t in network.state_dict().items()}
    write_weights(path, ECONOMY, tensors)
    model = load_compiled(str(path))
    assert (model.flat == compiled_of(network).flat).all()
    del tensors["nearness"]
    write_weights(path, ECONOMY, tensors)
    with pytest.raises(ModelError):
        load_compiled(str(path))


@pytest.mark.compiled
def test_points_that_coincide() -> None:
    instance = tsp(np.zeros((12, 2)))
    rules, plan, graphs = some_graphs(instance, [9])
    repaired = NeuralRepair(compiled_of(network_of(ECONOMY)))(
        rules, graphs, np.random.default_rng(0)
    )
    assert hypergraph.judge(rules, plan, graphs, repaired)[0].all()

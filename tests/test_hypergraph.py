"""Cut, reduce, repair, restore: against twins that are slow and obvious (tests/reference.py)."""

from __future__ import annotations

import itertools
import math
import time
from dataclasses import fields

import numpy as np
import pytest
import reference as ref
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from soak import upto

from drhg import hypergraph as h
from drhg.problem import Instance, Metric, Solution, check, cvrp, flattened, tsp

Case = tuple[Instance, list[list[int]]]


@st.composite
def tours(draw: st.DrawFn, most: int = 60, least: int = 1, fixed: bool = True) -> Case:
    n = draw(st.integers(least, most))
    shape = draw(st.sampled_from(ref.SHAPES))
    metric = draw(st.sampled_from(list(Metric)))
    share = draw(st.sampled_from([0.0, 0.3, 0.8, 1.0])) if fixed else 0.0
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    instance, tour = ref.random_tour(rng, n, shape, metric, share)
    return instance, [tour]


@st.composite
def plans(draw: st.DrawFn, most: int = 40, least: int = 1) -> Case:
    customers = draw(st.integers(least, most))
    shape = draw(st.sampled_from(ref.SHAPES))
    metric = draw(st.sampled_from(list(Metric)))
    limit, fleet = draw(st.booleans()), draw(st.booleans())
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    return ref.random_plan(rng, customers, shape, metric, limit=limit, fleet=fleet)


@st.composite
def cut_cases(draw: st.DrawFn, cases: st.SearchStrategy[Case]) -> tuple[Instance, list, set[int]]:
    """A solution and any set of edges that may be cut."""
    instance, routes = draw(cases)
    share = draw(st.sampled_from([0.0, 0.1, 0.3, 0.6, 1.0]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    allowed = ref.cuttable(instance, ref.laid_out(instance, routes))
    return instance, routes, {p for p in allowed if rng.random() < share}


def laid(instance: Instance, routes: list[list[int]]) -> tuple[h.Rules, h.Plan]:
    rules = h.rules_of(instance)
    return rules, h.plan_of(rules, Solution(routes))


def as_rows(*cuts: set[int]) -> tuple[np.ndarray, np.ndarray]:
    width = max(1, *(len(cut) for cut in cuts), 1)
    rows = np.full((len(cuts), width), -1, dtype=np.int32)
    for row, cut in zip(rows, cuts, strict=True):
        row[: len(cut)] = sorted(cut)
    return rows, np.array([len(cut) for cut in cuts], dtype=np.int32)


def cut_sets(cuts: np.ndarray, n_cuts: np.ndarray) -> list[set[int]]:
    """What a destroy returned, as sets; sorted, distinct and padded with -1 on the way."""
    found = []
    for row, count in zip(cuts.tolist(), n_cuts.tolist(), strict=True):
        assert row[:count] == sorted(set(row[:count]))
        assert set(row[count:]) <= {-1}
        found.append(set(row[:count]))
    return found


def same_plan(a: h.Plan, b: h.Plan) -> None:
    for name, x, y in zip(h.Plan._fields, a, b, strict=True):
        assert x.dtype == y.dtype, name
        assert np.array_equal(x, y), name


def rotated(tour: list[int], start: int) -> list[int]:
    i = tour.index(start)
    return tour[i:] + tour[:i]


def close(instance: Instance, a: float, b: float, scale: float) -> bool:
    """Exact for whole numbers, else up to 1e-9 of what was added."""
    return a == b if instance.integral else abs(a - b) <= 1e-9 * max(1.0, scale)


def routes_in(solution: Solution) -> list[list[int]]:
    return [route.tolist() for route in solution.routes]


# --- layout ---------------------------------------------------------------------------------------


@settings(max_examples=upto(400))
@given(st.one_of(tours(), plans()))
def test_a_solution_survives_being_laid_out(case: Case) -> None:
    instance, routes = case
    rules, plan = laid(instance, routes)
    line = ref.laid_out(instance, routes)
    assert plan.order.tolist() == line
    assert routes_in(h.solution_of(rules, plan)) == routes
    for node in range(instance.n):
        if instance.is_cvrp and node == instance.depot:
            assert plan.pos[node] == -1
        else:
            assert line[plan.pos[node]] == node
    if instance.is_cvrp:
        stretches = ref.stretches(instance, line)
        assert plan.first.tolist() == [s[0] for s in stretches]
        assert plan.last.tolist() == [s[-1] for s in stretches]
        assert plan.route.tolist() == [r for r, s in enumerate(stretches) for _ in s]
        assert plan.n_routes == len(routes)


def test_a_plan_without_customers_is_nothing_to_destroy() -> None:
    instance = cvrp([[1, 2]], [0], 5)
    rules, plan = laid(instance, [])
    assert h.Nearness(instance).around([0], 3).shape == (1, 0)
    cuts = h.destroy_nearest(rules, plan, np.zeros((1, 0), np.int32), 4)
    graphs = h.reduce(rules, plan, *cuts)
    good, delta = h.judge(rules, plan, graphs, h.present(graphs))
    assert (graphs.size.tolist(), good.tolist(), delta.tolist()) == ([0], [True], [0.0])
    assert h.restore(rules, plan, graphs, 0, h.present(graphs)).order.size == 0


# --- destroy --------------------------------------------------------------------------------------


@settings(max_examples=upto(500))
@given(st.one_of(tours(), plans()), st.sampled_from(list(h.DEPOT_EDGES)), st.data())
def test_destroying_cuts_the_edges_at_the_nearest(
    case: Case, depot_edges: str, data: st.DataObject
) -> None:
    instance, routes = case
    rules, plan = laid(instance, routes)
    line = ref.laid_out(instance, routes)
    nodes = sorted(i for route in routes for i in route)
    centres = data.draw(st.lists(st.sampled_from(nodes), min_size=1, max_size=3))
    k = data.draw(st.integers(1, len(nodes)))
    ranked = h.Nearness(instance).around(centres, k)
    counts = np.array([data.draw(st.integers(0, k + 2)) for _ in centres])
    found = cut_sets(*h.destroy_nearest(rules, plan, ranked, counts, depot_edges=depot_edges))
    for b in range(len(centres)):
        destroyed = ranked[b, : min(counts[b], k)].tolist()
        assert found[b] == ref.cut_around(instance, routes, destroyed, depot_edges)
        assert found[b] <= set(ref.cuttable(instance, line))
        if instance.is_cvrp and depot_edges == "adjacent":
            assert len(ref.free_nodes(instance, line, found[b])) <= 3 * len(destroyed)


def sized(
    instance: Instance, routes: list[list[int]], ranked: np.ndarray, sizes, depot_edges: str
) -> list[tuple[set[int], int]]:
    """(cuts, size) per row; the sizes are those of the reduced graphs too."""
    rules, plan = laid(instance, routes)
    line = ref.laid_out(instance, routes)
    cuts, n_cuts = h.destroy_to_size(rules, plan, ranked, sizes, depot_edges=depot_edges)
    graphs = h.reduce(rules, plan, cuts, n_cuts)
    found = cut_sets(cuts, n_cuts)
    counted = [len(ref.free_nodes(instance, line, cut)) for cut in found]
    assert graphs.size.tolist() == counted
    for cut in found:
        assert cut <= set(ref.cuttable(instance, line))
    return list(zip(found, counted, strict=True))


def whole_nodes(
    instance: Instance, routes: list[list[int]], ranked: list[int], size: int, depot_edges: str
) -> set[int]:
    """Cuts of whole nodes, nearest first, until the size is there or the next would be too many."""
    line = ref.laid_out(instance, routes)
    best: set[int] = set()
    for k in range(len(ranked) + 1):
        cut = ref.cut_around(instance, routes, ranked[:k], depot_edges)
        count = len(ref.free_nodes(instance, line, cut))
        if k and count > size:
            break
        best = cut
        if count >= size:
            break
    return best


@settings(max_examples=upto(250))
@given(tours(fixed=False, least=3, most=40), st.integers(0, 2**32))
def test_every_size_of_a_tour_is_hit(case: Case, seed: int) -> None:
    instance, routes = case
    n = instance.n
    centre = int(np.random.default_rng(seed).integers(n))
    ranked = np.repeat(h.Nearness(instance).around([centre], n), n - 2, axis=0)
    sizes = np.arange(3, n + 1)
    for b, (cut, size) in enumerate(sized(instance, routes, ranked, sizes, "adjacent")):
        assert size == sizes[b]
        near = ranked[b].tolist()
        assert cut >= whole_nodes(instance, routes, near, size, "adjacent")


@settings(max_examples=upto(5))
@given(tours(fixed=False, least=200, most=300))
def test_every_size_of_a_larger_tour_is_hit(case: Case) -> None:
    instance, routes = case
    n = instance.n
    ranked = np.repeat(h.Nearness(instance).around([n // 2], n), n - 2, axis=0)
    found = sized(instance, routes, ranked, np.arange(3, n + 1), "adjacent")
    assert [size for _, size in found] == list(range(3, n + 1))


@settings(max_examples=upto(400))
@given(st.one_of(tours(), plans()), st.sampled_from(list(h.DEPOT_EDGES)), st.integers(0, 2**32))
def test_a_size_is_missed_only_when_nothing_more_fits(
    case: Case, depot_edges: str, seed: int
) -> None:
    """With fixed edges and with routes."""
    instance, routes = case
    line = ref.laid_out(instance, routes)
    nodes = [i for route in routes for i in route]
    rng = np.random.default_rng(seed)
    ranked = h.Nearness(instance).around([rng.choice(nodes)], len(nodes))
    target = int(rng.integers(1, len(nodes) + 3))
    ((cut, size),) = sized(instance, routes, ranked, target, depot_edges)
    near = ranked[0].tolist()
    assert cut >= whole_nodes(instance, routes, near, target, depot_edges)
    at_depots = ref.cut_around(instance, routes, [], depot_edges)
    if size > target:  # only "all" starts with many nodes, and then nothing is added
        assert cut == at_depots
        return
    edges = ref.cuttable(instance, line)
    ways = [{p} for p in edges]
    if instance.is_cvrp and depot_edges == "touched":
        # where a route is cut, its depot edges go too
        for p in cut:
            node = line[p] if line[p] != instance.depot else line[p + 1]
            assert cut >= ref.cut_around(instance, routes, [node], "touched") & {
                q for q in edges if instance.depot in (line[q], line[(q + 1) % len(line)])
            }
        stretches = ref.stretches(instance, line)
        ways = [{p, *(q for s in stretches if p in s for q in (s[0], s[-1] - 1))} for p in edges]
    for way in ways:
        more = len(ref.free_nodes(instance, line, cut | way)) - size
        assert not 0 < more <= target - size, f"{way} would still fit"


@settings(max_examples=upto(300))
@given(plans(), st.integers(0, 2**32))
def test_every_size_of_a_plan_is_hit_with_adjacent_depot_edges(case: Case, seed: int) -> None:
    """A depot edge of another route adds exactly one customer, so there is always a way."""
    instance, routes = case
    nodes = [i for route in routes for i in route]
    centre = int(np.random.default_rng(seed).choice(nodes))
    ranked = np.repeat(h.Nearness(instance).around([centre], len(nodes)), len(nodes), axis=0)
    sizes = np.arange(1, len(nodes) + 1)
    found = sized(instance, routes, ranked, sizes, "adjacent")
    assert [size for _, size in found] == sizes.tolist()


def test_few_ranked_nodes_are_topped_up_far() -> None:
    instance = tsp(np.random.default_rng(1).random((50, 2)))
    ((_, size),) = sized(instance, [list(range(50))], np.array([[7]], np.int32), 45, "adjacent")
    assert size == 45


CIRCLE = tsp([[math.cos(i), math.sin(i)] for i in range(12)])


@pytest.mark.parametrize(
    ("destroyed", "new"),
    [
        ([], {4, 5, 6}),  # 1: two end points and an isolated node
        ([3], {5, 6}),  # 2: 4 is an end already
        ([3, 7], {5}),  # 3: a middle node becomes isolated
        ([4], {6}),  # 4: see below
        ([4, 7], set()),  # 5: an end point becomes isolated
        ([4, 6], set()),  # 6: isolated already
    ],
)
def test_the_six_cases_of_the_paper(destroyed: list[int], new: set[int]) -> None:
    """Appendix "Sample Size Alignment": what appears when node 5 of a tour 0 1 .. 11 goes too.

    In cases 1 to 3 node 5 was inner and both its edges are cut; in 4 and 5 it was an end already.
    """
    rules, plan = laid(CIRCLE, [list(range(12))])
    both = np.array([[*destroyed, 5]], dtype=np.int32)
    before, after = (
        h.reduce(rules, plan, *h.destroy_nearest(rules, plan, both, k))
        for k in (len(destroyed), len(destroyed) + 1)
    )
    known = set(before.node[0, : before.size[0]].tolist())
    assert set(after.node[0, : after.size[0]].tolist()) - known == new
    assert after.size[0] - before.size[0] == len(new)
    relevant = {(3, 4), (4, 5), (5, 6), (6, 7)}  # undestroyed edges around it, minus one
    left = [e for e in relevant if not set(e) & set(destroyed)]
    assert max(0, len(left) - 1) == len(new)


# --- reduce ---------------------------------------------------------------------------------------


@settings(max_examples=upto(500))
@given(cut_cases(st.one_of(tours(), plans())), st.booleans())
def test_reduced_graphs_are_the_items(case: tuple, second: bool) -> None:
    instance, routes, cut = case
    rules, plan = laid(instance, routes)
    line = ref.laid_out(instance, routes)
    rows = [cut, set(ref.cuttable(instance, line))] if second else [cut]
    graphs = h.reduce(rules, plan, *as_rows(*rows))
    assert len(graphs) == len(rows)
    for b, row in enumerate(rows):
        items = ref.items_of(instance, line, row)
        node, partner, at, far, via, load, length = [], [], [], [], [], [], []
        for item in items:
            m = len(node)
            two = len(item.ends) == 2
            for e, p in enumerate(item.ends):
                node.append(line[p])
                at.append(p)
                partner.append(-1 if item.stub else m + 1 - e if two else m)
                other = item.ends[1 - e] if two else p
                far.append({"head": item.at[0] - 1, "tail": item.at[-1] + 1}.get(item.stub, other))
                via.append(item.first and e == 0)
                load.append(ref.item_load(instance, line, item) if instance.is_cvrp else 0)
                length.append(ref.item_length(instance, line, item) if instance.is_cvrp else 0.0)
        m = len(node)
        assert graphs.size[b] == m
        assert set(node) == ref.free_nodes(instance, line, row)
        for name, expected in (
            ("node", node), ("partner", partner), ("at", at), ("far", far), ("via", via),
            ("load", load),
        ):  # fmt: skip
            assert getattr(graphs, name)[b, :m].tolist() == expected, name
        assert graphs.length[b, :m] == pytest.approx(length, rel=1e-12, abs=1e-12)
        assert set(graphs.node[b, m:].tolist()) <= {-1}
        lost = sum(ref.distance(instance, line[p], line[(p + 1) % len(line)]) for p in row)
        assert close(instance, graphs.cut_cost[b], lost, lost)
        if instance.is_cvrp:
            touched = [s for s in ref.stretches(instance, line) if row & set(s)]
            assert graphs.n_routes[b] == len(touched)


def test_lengths_of_late_routes_are_as_exact_as_of_early_ones() -> None:
    """A prefix sum over all routes would lose digits: here 20,000 routes come before."""
    rng = np.random.default_rng(3)
    n = 40_001
    xy = rng.random((n, 2)) * 1e6
    xy[0] = 5e5
    xy[-2:] = [[5e5 + 0.1, 5e5], [5e5 + 0.1, 5e5 + 0.1]]
    instance = cvrp(xy, [0] + [1] * (n - 1), 2, max_distance=1e9)
    routes = np.arange(1, n).reshape(-1, 2).tolist()
    rules, plan = laid(instance, routes)
    line = plan.order.tolist()
    edge = len(line) - 2
    graphs = h.reduce(rules, plan, *as_rows({edge}))
    item = ref.Item((edge - 1, edge), "head", True)
    assert graphs.length[0, 0] == pytest.approx(ref.item_length(instance, line, item), rel=1e-13)


# --- judge and restore ----------------------------------------------------------------------------


@settings(max_examples=upto(400))
@given(cut_cases(st.one_of(tours(), plans())))
def test_the_present_repair_changes_nothing(case: tuple) -> None:
    instance, routes, cut = case
    rules, plan = laid(instance, routes)
    before = plan._replace(order=plan.order.copy(), pos=plan.pos.copy())
    graphs = h.reduce(rules, plan, *as_rows(cut))
    present = h.present(graphs)
    good, delta = h.judge(rules, plan, graphs, present)
    assert good.all()
    assert close(instance, delta[0], 0.0, graphs.cut_cost[0])
    after = h.restore(rules, plan, graphs, 0, present)
    found = routes_in(h.solution_of(rules, after))
    if instance.is_cvrp:
        assert ref.undirected(found) == ref.undirected(routes)
    else:
        assert rotated(found[0], 0) == rotated(routes[0], 0)
    same_plan(plan, before)


def test_rows_are_repeated_and_padded() -> None:
    instance = tsp(np.random.default_rng(3).random((9, 2)))
    rules, plan = laid(instance, [list(range(9))])
    graphs = h.reduce(rules, plan, *as_rows({0, 4}, {0, 2, 3, 6}))
    assert graphs.size.tolist() == [4, 7]
    present = h.present(graphs)
    assert present.order.dtype == np.int32
    assert present.order[0].tolist() == [0, 1, 2, 3] + [-1] * (present.order.shape[1] - 4)
    twice = h.repeated(graphs, 2)
    for field in fields(graphs):
        found, once = getattr(twice, field.name), getattr(graphs, field.name)
        assert np.array_equal(found[[0, 2]], once)
        assert np.array_equal(found[[1, 3]], once)


def random_repair(
    rng: np.random.Generator, graphs: h.Graphs, row: int, direct: float
) -> tuple[list[int], list[bool]]:
    """Items in any order and direction; reached directly with that probability if possible."""
    m = int(graphs.size[row])
    partner = graphs.partner[row].tolist()
    starts = [u for u in range(m) if partner[u] <= u]  # one end of each item
    order, via, is_open = [], [], False
    for u in rng.permutation(np.array(starts, dtype=int)).tolist():
        through = not is_open or rng.random() >= direct
        pair = [u] if partner[u] in (u, -1) else [u, partner[u]]
        if rng.random() < 0.5:
            pair = pair[::-1]
        order += pair
        via += [through, *([False] * (len(pair) - 1))]
        is_open = through or partner[u] >= 0
    return order, via


def answer(graphs: h.Graphs, rows: list[tuple[list[int], list[bool]]]) -> h.Repaired:
    order = np.full(graphs.node.shape, -1, dtype=np.int32)
    via = np.zeros(graphs.node.shape, dtype=np.bool_)
    for b, (o, v) in enumerate(rows):
        order[b, : len(o)], via[b, : len(v)] = o, v
    return h.Repaired(order, via)


def spoil(rng: np.random.Generator, order: list[int], via: list[bool]) -> None:
    """One accident in a repair; it may be harmless."""
    if not order:
        return
    i, j = rng.integers(len(order), size=2)
    match rng.integers(5):
        case 0:
            order[i], order[j] = order[j], order[i]
        case 1:
            order[i] = order[j]
        case 2:
            via[i] = not via[i]
        case 3:
            order[i] = int(rng.choice([-1, len(order), len(order) + 3]))
        case 4:
            order.append(order.pop(0))
            via.append(via.pop(0))


@settings(max_examples=upto(1200))
@given(
    cut_cases(st.one_of(tours(most=30), plans(most=25))),
    st.integers(0, 2**32),
    st.sampled_from([0.3, 0.8, 0.97]),
)
def test_repairs_are_judged_and_restored_as_they_say(case: tuple, seed: int, direct: float) -> None:
    """Good exactly if it describes a plan that keeps all limits; then the change is the cost's."""
    instance, routes, cut = case
    rules, plan = laid(instance, routes)
    line = ref.laid_out(instance, routes)
    rng = np.random.default_rng(seed)
    graphs = h.reduce(rules, plan, *as_rows(*[cut] * 4))
    repairs = [random_repair(rng, graphs, b, direct) for b in range(4)]
    if not instance.is_cvrp:
        repairs = [(order, [False] * len(via)) for order, via in repairs]
    spoil(rng, *repairs[2])
    spoil(rng, *repairs[3])
    if not instance.is_cvrp:
        repairs[2] = (repairs[2][0], [False] * len(repairs[2][1]))
    repaired = answer(graphs, repairs)
    good, delta = h.judge(rules, plan, graphs, repaired)
    before = ref.cost(instance, routes)
    for b, (order, via) in enumerate(repairs):
        expected = ref.rebuilt(instance, line, cut, order, via)
        if expected is None:
            assert not good[b]
            assert delta[b] == np.inf
            continue
        if instance.is_cvrp:
            limit = instance.max_distance
            fits = ref.allowed(instance, expected, limit and limit * (1 + 1e-13))
            if limit is not None and fits != ref.allowed(instance, expected, limit * (1 + 1e-9)):
                continue  # within rounding of the limit
            assert good[b] == fits
        else:
            assert good[b]
        if not good[b]:
            assert delta[b] == np.inf
            continue
        after = h.restore(rules, plan, graphs, b, repaired)
        solution = h.solution_of(rules, after)
        assert check(instance, solution) == []
        same_plan(after, h.plan_of(rules, solution))
        found = routes_in(solution)
        if instance.is_cvrp:
            assert found == expected
        else:
            way = rotated(expected[0], 0)
            assert rotated(found[0], 0) in (way, [0, *way[:0:-1]])
        change = ref.cost(instance, expected) - before
        assert close(instance, delta[b], change, before + abs(change))


def test_accidents_are_told_apart_from_repairs() -> None:
    """Literal: a route 1 2 3 4 and a route 5, all cut except 2 - 3."""
    instance = cvrp([[i, i % 2] for i in range(6)], [0, 2, 2, 2, 2, 2], 8, vehicles=3)
    rules, plan = laid(instance, [[1, 2, 3, 4], [5]])
    graphs = h.reduce(rules, plan, *as_rows({0, 1, 3, 4, 6, 7}))
    assert graphs.node[0].tolist() == [1, 2, 3, 4, 5]
    assert graphs.partner[0].tolist() == [0, 2, 1, 3, 4]

    def is_good(order: list[int], via: list[int]) -> bool:
        return bool(
            h.judge(rules, plan, graphs, answer(graphs, [(order, [*map(bool, via)])]))[0][0]
        )

    assert is_good([0, 1, 2, 3, 4], [1, 0, 0, 0, 1])
    assert is_good([4, 2, 1, 3, 0], [1, 0, 0, 0, 1])
    assert is_good([4, 2, 1, 3, 0], [1, 1, 0, 0, 1])
    assert not is_good([4, 2, 1, 3, 0], [1, 0, 0, 0, 0])  # five times 2 into 8
    assert not is_good([4, 2, 1, 3, 0], [1, 1, 0, 1, 1])  # four routes, three vehicles
    assert not is_good([0, 1, 3, 2, 4], [1, 0, 0, 0, 1])  # a hyper-edge split
    assert not is_good([0, 1, 2, 3, 4], [1, 0, 1, 0, 1])  # or left through the depot
    assert not is_good([0, 1, 2, 3, 3], [1, 0, 0, 0, 1])  # twice
    assert not is_good([0, 1, 2, 3, 4], [0, 0, 0, 0, 1])  # from nowhere
    assert not is_good([0, 1, 2, 3, -1], [1, 0, 0, 0, 1])
    assert not is_good([0, 1, 2, 3, 5], [1, 0, 0, 0, 1])
    tight = rules._replace(max_length=10.0)
    assert not h.judge(tight, plan, graphs, h.present(graphs))[0][0]


def test_a_stub_ends_a_route_and_nothing_goes_on_from_it() -> None:
    instance = cvrp([[i, 0] for i in range(4)], [0, 1, 1, 1], 3)
    rules, plan = laid(instance, [[1, 2], [3]])
    graphs = h.reduce(rules, plan, *as_rows({1, 4}))  # 0-1 | 2-0 and 0 | 3-0
    assert graphs.partner[0].tolist() == [-1, -1, -1]
    rows = [([0, 1, 2], via) for via in itertools.product([False, True], repeat=3)]
    for order, via in rows:
        good, _ = h.judge(rules, plan, graphs, answer(graphs, [(order, [*via])]))
        assert good[0] == (via[0] and (via[1] or via[2]))


# --- every plan that contains the pieces can be said ----------------------------------------------


def every_repair(graphs: h.Graphs) -> h.Repaired:
    """All orders and ways through the depot of row 0, good or not."""
    m = int(graphs.size[0])
    orders = np.array([*itertools.permutations(range(m))], np.int32).reshape(math.factorial(m), m)
    vias = np.array([*itertools.product([False, True], repeat=m)], np.bool_).reshape(2**m, m)
    # the first must come via the depot, which halves the work; the rule itself is tested above
    vias = vias[vias[:, 0]] if m else vias
    return h.Repaired(np.repeat(orders, len(vias), axis=0), np.tile(vias, (len(orders), 1)))


def repeated(graphs: h.Graphs, rows: int) -> h.Graphs:
    m = int(graphs.size[0])
    parts = {}
    for f in fields(h.Graphs):
        value = getattr(graphs, f.name)
        parts[f.name] = np.repeat(value if value.ndim == 1 else value[:, :m], rows, axis=0)
    return h.Graphs(**parts)


def said_and_possible(instance: Instance, routes: list, cut: set[int]) -> tuple[set, set]:
    rules, plan = laid(instance, routes)
    line = ref.laid_out(instance, routes)
    graphs = h.reduce(rules, plan, *as_rows(cut))
    repaired = every_repair(graphs)
    graphs = repeated(graphs, len(repaired.order))
    good, _ = h.judge(rules, plan, graphs, repaired)
    said = {
        ref.undirected(routes_in(h.solution_of(rules, h.restore(rules, plan, graphs, b, repaired))))
        for b in np.flatnonzero(good)
    }
    gone = [(line[p], line[p + 1]) for p in cut]
    intact = ref.edges_of(instance, routes)
    intact.subtract(frozenset(edge) for edge in gone)
    intact = +intact
    limit = instance.max_distance
    possible = {
        p
        for p in ref.all_plans([i for route in routes for i in route])
        if intact <= ref.edges_of(instance, p)
        and ref.allowed(instance, list(p), limit and limit * (1 + 1e-12))
    }
    return said, possible


@settings(max_examples=upto(150))
@given(cut_cases(plans(most=5)))
def test_every_plan_that_contains_the_pieces_is_reachable(case: tuple) -> None:
    said, possible = said_and_possible(*case)
    assert ref.undirected(case[1]) in said
    assert said == possible


@pytest.mark.slow
@settings(max_examples=upto(25))
@given(cut_cases(plans(least=6, most=7)))
def test_every_plan_of_up_to_seven_customers_is_reachable(case: tuple) -> None:
    instance, routes, cut = case
    assume(len(ref.free_nodes(instance, ref.laid_out(instance, routes), cut)) <= 5)
    said, possible = said_and_possible(*case)
    assert said == possible


@pytest.mark.parametrize(
    ("routes", "edges", "wanted"),
    [
        ([[1, 2], [3, 4]], [(1, 2), (3, 4)], [[1, 4], [3, 2]]),  # swapped tails
        ([[1, 2], [3, 4]], [(1, 2), (3, 4)], [[1, 3], [2, 4]]),  # heads joined, tails joined
        ([[1, 2], [3, 4]], [(1, 2), (3, 4)], [[1], [2], [3], [4]]),  # routes of one customer
        ([[1, 2], [3]], [(0, 3), (3, 0), (1, 2)], [[1, 3, 2]]),  # a route emptied
        ([[1, 3, 2]], [(1, 3), (3, 2)], [[1, 2], [3]]),  # both stubs of a route rejoined
        ([[1, 2], [3]], [(0, 3), (1, 2)], [[1, 3], [2]]),  # a one-customer stub
    ],
)
def test_moves_that_must_be_expressible(routes: list, edges: list, wanted: list) -> None:
    n = 1 + sum(map(len, routes))
    instance = cvrp([[i, i * i] for i in range(n)], [0] + [1] * (n - 1), 4)
    line = ref.laid_out(instance, routes)
    cut = {p for p in range(len(line) - 1) if (line[p], line[p + 1]) in edges}
    assert len(cut) == len(edges)
    said, possible = said_and_possible(instance, routes, cut)
    assert ref.undirected(wanted) in said
    assert said == possible


# --- nearness -------------------------------------------------------------------------------------


@settings(max_examples=upto(400))
@given(st.one_of(tours(), plans()), st.integers(1, 70), st.booleans())
def test_nearest_nodes_are_the_nearest(case: Case, k: int, half: bool) -> None:
    instance, routes = case
    nodes = sorted(i for route in routes for i in route)
    nearness = h.Nearness(instance)
    assert nearness.nodes.tolist() == nodes
    centres = range(0, instance.n, 7 if half else 1)
    found = nearness.around(np.array(centres), k)
    assert found.shape == (len(centres), min(k, len(nodes)))
    assert found.dtype == np.int32
    for centre, row in zip(centres, found.tolist(), strict=True):
        assert len(set(row)) == len(row)
        assert set(row) <= set(nodes)
        expected = sorted(ref.closeness(instance, centre, i) for i in nodes)[:k]
        far = [ref.closeness(instance, centre, i) for i in row]
        assert far == pytest.approx(expected, rel=1e-9, abs=1e-9)
        exact = sorted(ref.distance(instance, centre, i) for i in nodes if i != centre)
        others = [ref.distance(instance, centre, i) for i in row if i != centre]
        slack = 1 if instance.metric is Metric.GEO else 0  # acos near 0 has few digits
        assert all(
            abs(a - b) <= slack + 1e-9 for a, b in zip(others, exact[: len(others)], strict=True)
        )
    one = nearness.around(nodes[0], k)
    assert one.shape == (1, min(k, len(nodes)))


def test_free_centres_need_the_plane() -> None:
    rng = np.random.default_rng(5)
    flat = tsp(rng.random((30, 2)))
    at = rng.random((4, 2))
    found = h.Nearness(flat).around_points(at, 6)
    far = np.linalg.norm(flat.xy[None] - at[:, None], axis=-1)
    assert found.tolist() == np.argsort(far, axis=1)[:, :6].tolist()
    for instance in (tsp(rng.random((5, 2)) / 2, metric="GEO"), tsp(matrix=np.ones((4, 4)))):
        with pytest.raises(ValueError, match="plane"):
            h.Nearness(instance).around_points(at, 3)


# --- features -------------------------------------------------------------------------------------


def laid_flat(rules: h.Rules, graphs: h.Graphs, b: int) -> np.ndarray:
    """All points as the features of a row are computed from; degrees in metres from its first."""
    points = rules.space.points
    if rules.space.metric != Metric.HAVERSINE or graphs.size[b] == 0:
        return points
    return flattened(points, points[graphs.node[b, 0]])


def expected_depot(rules: h.Rules, graphs: h.Graphs, b: int) -> list[float]:
    """The depot in the frame of a row's customers, which may be far outside of it."""
    points = laid_flat(rules, graphs, b)
    nodes = points[graphs.node[b, : graphs.size[b]]]
    low, side = nodes.min(0), np.ptp(nodes, axis=0)
    x, y = (points[rules.depot] - low) / (side.max() or 1.0)
    return [y, x] if side[1] > side[0] else [x, y]


@settings(max_examples=upto(400))
@given(cut_cases(st.one_of(tours(), plans())), st.booleans())
def test_features_are_the_equations(case: tuple, empty: bool) -> None:
    instance, routes, cut = case
    rules, plan = laid(instance, routes)
    line = ref.laid_out(instance, routes)
    rows = [cut, set() if empty else set(ref.cuttable(instance, line))]
    graphs = h.reduce(rules, plan, *as_rows(*rows))
    found = h.features(rules, graphs)
    assert found.dtype == np.float32
    extra = int(instance.is_cvrp)
    assert found.shape == (2, graphs.node.shape[1] + extra, 5 + extra)
    for b, row in enumerate(rows):
        items = ref.items_of(instance, line, row)
        expected = ref.features(laid_flat(rules, graphs, b).tolist(), instance, line, items)
        m = len(expected)
        assert np.isfinite(found[b]).all()
        assert not found[b, m + extra :].any()
        if m:
            if instance.is_cvrp:
                depot = expected_depot(rules, graphs, b)
                assert found[b, m] == pytest.approx(np.array([*depot, *depot, 0, 0]), rel=1e-5)
            assert found[b, :m] == pytest.approx(np.array(expected), rel=1e-5, abs=1e-6)
            assert found[b, :m, :2].min() >= 0
            assert found[b, :m, :2].max() <= 1 + 1e-6


# --- speed ----------------------------------------------------------------------------------------


def timed(call, times: int = 5) -> tuple[float, object]:
    """The least of a few runs, in seconds, and the last result."""
    best, result = math.inf, call()  # the first run compiles
    for _ in range(times):
        start = time.perf_counter()
        result = call()
        best = min(best, time.perf_counter() - start)
    return best, result


def regions(n: int, batch: int, k: int) -> dict[str, float]:
    from drhg.construct.starts import construct

    rng = np.random.default_rng(n)
    instance = tsp(rng.random((n, 2)))
    solution, _ = construct(instance, "space-filling")
    rules = h.rules_of(instance)
    plan = h.plan_of(rules, solution)
    spent = {}
    nearness = h.Nearness(instance)
    centres = rng.integers(n, size=batch)
    spent["nearest"], ranked = timed(lambda: nearness.around(centres, k), 3)
    spent["destroy"], cuts = timed(lambda: h.destroy_nearest(rules, plan, ranked, k))
    spent["reduce"], graphs = timed(lambda: h.reduce(rules, plan, *cuts))
    repaired = answer(graphs, [random_repair(rng, graphs, b, 1.0) for b in range(batch)])
    spent["judge"], (good, _) = timed(lambda: h.judge(rules, plan, graphs, repaired))
    assert good.all()
    few = range(batch if n <= 10_000 else 4)
    spent["restore"], _ = timed(
        lambda: [h.restore(rules, plan, graphs, b, repaired) for b in few], 3
    )
    spent["restore"] *= batch / len(few)
    return {name: 1e3 * seconds for name, seconds in spent.items()}


@pytest.mark.slow
def test_what_a_batch_costs_does_not_depend_on_the_tour(capsys: pytest.CaptureFixture) -> None:
    spent = {n: regions(n, 64, 100) for n in (10_000, 100_000, 1_000_000)}
    with capsys.disabled():
        for n, row in spent.items():
            shown = "  ".join(f"{name} {ms:.2f}" for name, ms in row.items())
            print(f"\n{n:>9,} nodes, 64 regions of k=100, ms: {shown}", end="")
    small = spent[10_000]
    assert small["reduce"] + small["restore"] < 40
    per_region = [row["destroy"] + row["reduce"] + row["judge"] for row in spent.values()]
    assert per_region[2] < 6 * per_region[0] + 1

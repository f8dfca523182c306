"""Local search: tours stay tours, gains are exact, and what should be optimal is."""

from __future__ import annotations

from itertools import islice, pairwise

import numpy as np
import pytest
import reference as ref
from hypothesis import given, settings
from hypothesis import strategies as st
from soak import upto

from drhg import local_search as ls
from drhg import search, solve
from drhg.compiled import random_state
from drhg.construct import construct
from drhg.generate import uniform_tsp
from drhg.hypergraph import Nearness, rules_of
from drhg.problem import Instance, Metric, Solution, check, cost, cvrp, tsp


class Search:
    """A tour on which the kernels run in place."""

    def __init__(self, instance: Instance, tour: list[int], k: int = 10) -> None:
        self.instance = instance
        rules = rules_of(instance)
        self.lists = ls.neighbour_lists(instance, Nearness(instance), k)
        self.fixed = rules.fixed
        self.tour = np.array(tour, dtype=np.int32)
        self.pos = np.empty(len(tour), dtype=np.int32)
        self.pos[self.tour] = np.arange(len(tour), dtype=np.int32)
        self._args = (
            rules.space,
            rules.fixed,
            self.lists,
            ls.BREADTH,
            ls.DEPTH,
            self.tour,
            self.pos,
        )

    def descend(self) -> float:
        return float(ls.descend(*self._args))

    def kick(self, state: np.ndarray, kicks: int, reach: int = ls.REACH) -> float:
        return float(ls.kick_and_settle(*self._args, state, kicks, reach))

    @property
    def cost(self) -> float:
        return float(cost(self.instance, Solution([self.tour])))

    def sound(self) -> None:
        assert check(self.instance, Solution([self.tour])) == []  # fixed edges too
        assert self.tour[self.pos].tolist() == list(range(len(self.tour)))


@st.composite
def searches(draw: st.DrawFn, most: int = 60, least: int = 1) -> Search:
    n = draw(st.integers(least, most))
    shape = draw(st.sampled_from(ref.SHAPES))
    metric = draw(st.sampled_from(list(Metric)))
    fixed = draw(st.sampled_from([0.0, 0.0, 0.3, 0.8, 1.0]))
    k = draw(st.sampled_from([1, 5, 10]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    return Search(*ref.random_tour(rng, n, shape, metric, fixed), k)


def exact(instance: Instance, a: float, b: float, scale: float) -> bool:
    return a == b if instance.integral else abs(a - b) <= 1e-9 * max(1.0, scale)


@settings(max_examples=upto(300))
@given(searches(), st.integers(1, 12), st.booleans(), st.integers(0, 2**32))
def test_neighbours_are_the_nearest_others(search: Search, k: int, routes: bool, seed: int) -> None:
    instance = search.instance
    if routes:
        rng = np.random.default_rng(seed)
        instance, _ = ref.random_plan(rng, instance.n, "twins", instance.metric)
    n = instance.n
    nodes = [i for i in range(n) if not (instance.is_cvrp and i == instance.depot)]
    lists = ls.neighbour_lists(instance, Nearness(instance), k)
    assert lists.dtype == np.int32
    assert lists.shape == (n, min(k, len(nodes) - 1))
    for i, row in enumerate(lists.tolist()):
        assert i not in row
        assert len(set(row)) == len(row)
        assert set(row) <= set(nodes)
        expected = sorted(ref.closeness(instance, i, j) for j in nodes if j != i)[: len(row)]
        far = [ref.closeness(instance, i, j) for j in row]
        assert far == pytest.approx(expected, rel=1e-9, abs=1e-9)


@settings(max_examples=upto(600))
@given(searches())
def test_descending_gains_what_it_says(search: Search) -> None:
    before = search.cost
    gain = search.descend()
    search.sound()
    assert gain >= 0
    assert exact(search.instance, before - search.cost, gain, before)


@settings(max_examples=upto(400))
@given(searches(), st.integers(0, 2**32), st.sampled_from([1, 3, 30]), st.booleans())
def test_kicking_gains_what_it_says(search: Search, seed: int, reach: int, settled: bool) -> None:
    if settled:
        search.descend()
    before = search.cost
    gain = search.kick(random_state(seed), 40, reach)
    search.sound()
    assert gain >= -1e-9
    assert exact(search.instance, before - search.cost, gain, before)
    assert search.cost <= before + (0 if search.instance.integral else 1e-9 * before)


def test_no_single_kick_makes_a_tour_worse() -> None:
    """Not even by the little that others would make up for."""
    rng = np.random.default_rng(6)
    for n in (8, 30):
        search = Search(tsp(rng.random((n, 2))), rng.permutation(n).tolist())
        state = random_state(n)
        search.descend()
        for _ in range(400):
            before = search.cost
            search.kick(state, 1)
            assert search.cost <= before + 1e-11


@settings(max_examples=upto(100))
@given(searches(), st.integers(0, 2**32), st.integers(0, 100))
def test_slices_compose(search: Search, seed: int, first: int) -> None:
    tour = search.tour.tolist()
    other, again = Search(search.instance, tour, 10), Search(search.instance, tour, 10)
    search = Search(search.instance, tour, 10)
    one, two, three = random_state(seed), random_state(seed), random_state(seed)
    gain = search.kick(one, 100)
    assert gain == again.kick(three, 100)
    assert again.tour.tolist() == search.tour.tolist()
    halves = other.kick(two, first) + other.kick(two, 100 - first)
    assert other.tour.tolist() == search.tour.tolist()
    assert one.tolist() == two.tolist() == three.tolist()
    assert halves == pytest.approx(gain, rel=1e-9, abs=1e-9)


def improving_exchange(search: Search) -> tuple[float, str] | None:
    """A 2-opt move that pays, whose new edges both join nodes near each other in the lists."""
    instance, tour, n = search.instance, search.tour.tolist(), search.instance.n
    near = [set(row[: int(ls.BREADTH[1])]) for row in search.lists.tolist()]
    fixed = {frozenset(edge) for edge in instance.fixed_edges}
    d = lambda a, b: ref.distance(instance, a, b)  # noqa: E731
    for i in range(n):
        for j in range(i + 2, n if i else n - 1):
            a, b, c, e = tour[i], tour[i + 1], tour[j], tour[(j + 1) % n]
            if frozenset((a, b)) in fixed or frozenset((c, e)) in fixed:
                continue
            known = all(x in near[y] and y in near[x] for x, y in ((a, c), (b, e)))
            gain = d(a, b) + d(c, e) - d(a, c) - d(b, e)
            if known and gain > 1e-7:
                return gain, f"{a}-{b} {c}-{e}"
    return None


@settings(max_examples=upto(300))
@given(searches(least=4, most=40))
def test_no_exchange_of_two_edges_is_left(search: Search) -> None:
    while search.descend() > 0:  # a turned segment may open a move at nodes already looked at
        pass
    assert improving_exchange(search) is None


def test_most_tours_are_settled_in_one_descent() -> None:
    again = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        search = Search(tsp(rng.random((200, 2))), rng.permutation(200).tolist())
        search.descend()
        before = search.cost
        again.append(search.descend() / before)
    assert np.mean(again) < 1e-2


def test_small_tours_become_optimal() -> None:
    """Up to 8 nodes, with kicks: the best of all permutations; fixed edges kept."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        metric = Metric(seed % len(Metric))
        n = int(rng.integers(5, 9))
        instance, tour = ref.random_tour(rng, n, "random", metric, 0.3 * (seed % 3 == 2))
        search = Search(instance, tour)
        search.descend()
        search.kick(random_state(seed), 300)
        best, _ = ref.best_tour(instance)
        assert search.cost <= best * (1 + (0.05 if instance.fixed_edges else 0)) + 1e-9


@pytest.mark.compiled
def test_kicks_are_worth_their_time() -> None:
    """1,000 uniform nodes: a descent within 8 % of the usual constant, kicks gain 2 % more."""
    rng = np.random.default_rng(1)
    search = Search(tsp(rng.random((1000, 2))), rng.permutation(1000).tolist())
    search.descend()
    expected = 0.7124 * np.sqrt(1000) * (1 + 0.33 / 1000) + 0.55  # with the border's share
    settled = search.cost
    assert settled < 1.08 * expected
    search.kick(random_state(1), 20_000)
    assert search.cost < 0.98 * settled


@pytest.fixture
def large_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tours of 50 nodes count as very large."""
    for name, value in (("WHOLE", 49), ("SPLIT", 30), ("REGION", 40)):
        monkeypatch.setattr(search, name, value)


@pytest.mark.parametrize("threads", [1, 2])
def test_large_tours_are_kicked_region_by_region(large_ones: None, threads: int) -> None:
    """Those that fit into a region whole, and those that do not."""
    for n in (60, 300):
        plane = uniform_tsp(n, seed=n)
        start = construct(plane, "space-filling", 0)[0]
        edges = [(int(a), int(b)) for a, b in pairwise(start.tour[: n // 5])]
        instance = tsp(plane.xy, fixed_edges=edges)
        runs = []
        for _ in range(2):
            task = search.task_of(instance, start, 3, threads)
            found = list(islice(search.tours(task, lambda _: 1, lambda: 0.5), 40))
            for snapshot in found:
                assert check(instance, snapshot.solution()) == []
                assert snapshot.cost == pytest.approx(cost(instance, snapshot.solution()))
                assert snapshot.iterations > 0
            costs = [snapshot.cost for snapshot in found]
            assert all(b <= a + 1e-9 for a, b in pairwise(costs))
            assert costs[-1] < 0.95 * cost(instance, start)
            runs.append((costs, found[-1].solution().tour.tolist()))
        assert runs[0] == runs[1]


def test_a_large_tour_that_cannot_move_reaches_its_last_iteration(large_ones: None) -> None:
    plane = uniform_tsp(60, seed=1)
    start = construct(plane, "greedy", 0)[0]
    tour = start.tour.tolist()
    instance = tsp(plane.xy, fixed_edges=list(zip(tour, tour[1:] + tour[:1], strict=True)))
    found = solve(instance, init=start, max_iters=50, time_limit=30, threads=2)
    assert (found.status, found.cost) == ("iterations", cost(instance, start))


def test_a_fixed_tour_cannot_move() -> None:
    rng = np.random.default_rng(2)
    tour = rng.permutation(30).tolist()
    edges = list(zip(tour, tour[1:] + tour[:1], strict=True))
    search = Search(tsp(rng.random((30, 2)), fixed_edges=edges), tour)
    assert search.descend() == 0
    assert search.kick(random_state(3), 200) == 0
    assert search.tour.tolist() == tour


def test_routes_have_neighbours_too_and_never_the_depot() -> None:
    instance = cvrp([[0, 0], [1, 0], [2, 0], [4, 0]], [0, 1, 1, 1], 3)
    lists = ls.neighbour_lists(instance, Nearness(instance), 9)
    assert lists.tolist() == [[1, 2], [2, 3], [1, 3], [2, 1]]
    alone = cvrp([[0, 0], [1, 0]], [0, 1], 3)
    assert ls.neighbour_lists(alone, Nearness(alone)).shape == (2, 0)


@settings(max_examples=upto(100), deadline=None)
@given(searches(least=2), st.integers(1, 10))
def test_candidates_are_nearest_all_around_and_beside(search: Search, k: int) -> None:
    instance = search.instance
    nearness = Nearness(instance)
    wide = ls.neighbour_lists(instance, nearness, ls.WIDE * k).tolist()
    beside = [[]] * instance.n
    if instance.metric.planar:
        beside = [[j for j in row if j >= 0] for row in ls.delaunay_lists(instance, k).tolist()]
    lists = ls.candidate_lists(instance, nearness, k)
    assert lists.shape == (instance.n, min(k, instance.n - 1))
    for i, row in enumerate(lists.tolist()):
        expected = ref.candidates(instance, i, wide[i], beside[i], k)
        assert len(set(row)) == len(row)
        assert set(row) == set(expected)
        far = [ref.distance(instance, i, j) for j in row]
        assert far == pytest.approx([ref.distance(instance, i, j) for j in expected])


@pytest.mark.parametrize("seed", range(20))
def test_beside_are_the_neighbours_of_delaunay(seed: int) -> None:
    rng = np.random.default_rng(seed)
    instance = tsp(rng.random((5 + seed, 2)))
    lists = ls.delaunay_lists(instance, instance.n)
    found = {frozenset((i, j)) for i, row in enumerate(lists.tolist()) for j in row if j >= 0}
    assert found == ref.delaunay_edges(instance.xy)
    for i, row in enumerate(lists.tolist()):
        far = [ref.distance(instance, i, j) for j in row if j >= 0]
        assert far == sorted(far)


def test_points_without_a_triangulation_have_nobody_beside() -> None:
    line = tsp([[x, 2 * x] for x in range(60)])
    assert (ls.delaunay_lists(line, 5) == -1).all()
    same = tsp(np.zeros((60, 2)))
    assert (ls.delaunay_lists(same, 5) == -1).all()
    for instance in (line, same):
        assert ls.candidate_lists(instance, Nearness(instance)).shape == (60, 10)


def test_candidates_leave_a_cluster() -> None:
    """Groups of sixty nodes far apart: nobody's nearest is in another group, yet all join."""
    rng = np.random.default_rng(4)
    middles = 1000.0 * np.array([[0, 0], [1, 0], [0, 1], [1, 1]])
    instance = tsp(np.concatenate([middle + rng.random((60, 2)) for middle in middles]))
    group = np.arange(240) // 60
    lists = ls.candidate_lists(instance, Nearness(instance))
    joined = {(int(group[i]), int(group[j])) for i, row in enumerate(lists) for j in row}
    assert {(0, 1), (0, 2), (1, 3), (2, 3)} <= joined

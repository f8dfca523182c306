"""A population of plans: children of two of them, each brought down by `route_descent`.

A child keeps a stretch of one plan's sequence of customers and takes the rest in the order of the
other; cut into routes at the least cost, it is improved by moves that may overload vehicles at a
price. Plans that keep the limits and plans that do not live in two groups; who stays depends on
cost and on how much a plan differs from the others (Vidal 2022). The price of overload follows how
many children keep the limits.

As in `search`, nothing here looks at the clock.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest

import numpy as np

from drhg.compiled import random_float, random_state
from drhg.generate import x_cvrp
from drhg.hypergraph import Index
from drhg.local_search import neighbour_lists
from drhg.problem import Floats, Ints, Solution
from drhg.route_descent import (
    Bounds,
    Land,
    Price,
    broken_pairs,
    crossed,
    descend,
    in_circle,
    land_of,
    links,
    measure,
    settled_in,
    split,
    within_bounds,
)
from drhg.search import Snapshot, Task, task_of
from drhg.strings import solution_of_lists

NEAREST = 20  # neighbours of a customer that moves look at
GROUP = 16  # plans of a group after a selection
BROOD = 0.6  # children until the next one, per plan of a group
FIRST = 3  # random plans in the beginning, per plan of a group
GROWTH = 2  # times as many plans in the next population
LARGEST = 64  # plans of a group at most
ELITE = 4  # plans of a group that are safe because of their cost
CLOSE = 5  # nearest plans of its group that say how different a plan is
WANTED = 0.2  # share of children that keep the limits
REVIEW = 100  # children between two looks at that share
LONG = 15  # customers of a route, on average, that make it a long one
ODD = 0.25  # share of children that pay a price of their own if routes are long, else all do
SPREAD = 3.0  # times the price, or divided by it: how far a child's own price may be from it
MEND = 0.5  # probability that a child beyond the limits gets a second descent
DEAR = 10.0  # times the price there
CHEAPEST, DEAREST = 1e-3, 1e4  # times the first price
STALE = 150  # children per plan of a group without anything better, then all is begun anew
BATCH = 4  # children of a thread between two looks at the population


@dataclass(frozen=True, eq=False)
class Plan:
    """A plan in the population: its routes laid end to end, and what it costs."""

    order: Index  # (m,)
    ends: Index  # (R,): no route is empty
    cost: float
    over: tuple[float, float]  # load and length beyond the limits
    after: Index  # (m,): the next customer, -1 for the depot
    before: Index
    settled: bool  # by a descent: no move pays (at the price of its time)

    @property
    def legal(self) -> bool:
        return self.over == (0.0, 0.0)

    def priced(self, price: Price) -> float:
        return self.cost + price.load * self.over[0] + price.length * self.over[1]


class Group:
    """Plans by rising cost, and how far they are from each other."""

    def __init__(self, size: int, customers: int) -> None:
        self.size = size
        self.plans: list[Plan] = []
        most = int((1.0 + BROOD) * size) + 2
        self._rows: list[int] = []  # of each plan in the arrays below
        self._free = list(range(most))
        self._after = np.zeros((most, customers), np.int32)
        self._before = np.zeros((most, customers), np.int32)
        self._apart: Floats = np.full((most, most), np.inf)
        self._fitness: Floats | None = None

    def add(self, plan: Plan, price: Price) -> None:
        row = self._free.pop()
        self._after[row], self._before[row] = plan.after, plan.before
        far = broken_pairs(self._after, self._before, row)
        self._apart[row] = self._apart[:, row] = far
        self._apart[row, row] = np.inf
        at = bisect_left(self.plans, plan.priced(price), key=lambda p: p.priced(price))
        self.plans.insert(at, plan)
        self._rows.insert(at, row)
        self._fitness = None
        if len(self.plans) > (1.0 + BROOD) * self.size:
            while len(self.plans) > self.size:
                self._drop_worst()

    def sort(self, price: Price) -> None:
        """After the price has changed."""
        ranked = np.argsort([p.priced(price) for p in self.plans], kind="stable")
        self.plans = [self.plans[i] for i in ranked]
        self._rows = [self._rows[i] for i in ranked]
        self._fitness = None

    @property
    def apart(self) -> Floats:
        """The share of customers whose neighbours are others in another plan; inf for itself."""
        return self._apart[np.ix_(self._rows, self._rows)]

    def _drop_worst(self) -> None:
        double = self.apart.min(axis=1) == 0.0
        worth = self.fitness + 1e3 * double
        worst = 1 + int(np.argmax(worth[1:]))  # never the best
        del self.plans[worst]
        self._free.append(self._rows.pop(worst))
        self._fitness = None

    @property
    def fitness(self) -> Floats:
        """Lower is better: the rank by cost, and that by difference."""
        if self._fitness is None:
            size = len(self.plans)
            if size == 1:
                self._fitness = np.zeros(1)
            else:
                close = min(CLOSE, size - 1)
                nearest = np.partition(self.apart, close - 1, axis=1)[:, :close].mean(axis=1)
                rank = np.empty(size)
                rank[np.argsort(-nearest, kind="stable")] = np.arange(size)
                weight = max(0.0, 1.0 - ELITE / size)
                self._fitness = (np.arange(size) + weight * rank) / (size - 1)
        return self._fitness


class Population:
    """Both groups, and the price that plans beyond the limits pay."""

    def __init__(self, size: int, customers: int, price: Price) -> None:
        self.price = self._first = price
        self.legal, self.beyond = Group(size, customers), Group(size, customers)
        self._kept = (deque([True] * 20, REVIEW), deque([True] * 20, REVIEW))
        self._born = 0

    def add(self, plan: Plan) -> None:
        (self.legal if plan.legal else self.beyond).add(plan, self.price)

    def judge(self, child: Plan) -> None:
        """Count whether a child keeps each limit, and set the price now and then."""
        for kept, over in zip(self._kept, child.over, strict=True):
            kept.append(over == 0.0)
        self._born += 1
        if self._born % REVIEW == 0:
            prices = []
            for kept, price, first in zip(self._kept, self.price, self._first, strict=True):
                share = sum(kept) / len(kept)
                factor = 1.2 if share < WANTED - 0.05 else 0.85 if share > WANTED + 0.05 else 1.0
                prices.append(min(DEAREST * first, max(CHEAPEST * first, price * factor)))
            self.price = Price(*prices)
            self.beyond.sort(self.price)

    def pair(self, rng: np.random.Generator) -> tuple[Plan, Plan]:
        return self._parent(rng), self._parent(rng)

    def _parent(self, rng: np.random.Generator) -> Plan:
        """The fitter one of two."""
        picks = []
        for i in rng.integers(len(self.legal.plans) + len(self.beyond.plans), size=2):
            group = self.legal if i < len(self.legal.plans) else self.beyond
            j = int(i) if group is self.legal else int(i) - len(self.legal.plans)
            picks.append((group.fitness[j], group.plans[j]))
        return picks[0][1] if picks[0][0] < picks[1][0] else picks[1][1]


class Breeder:
    """Makes plans for one task; the customers are numbered 0 .. m - 1."""

    def __init__(self, task: Task) -> None:
        rules, instance = task.rules, task.instance
        self.task = task
        self.nodes = task.nearness.nodes
        m = len(self.nodes)
        local = np.full(instance.n, -1, np.int32)
        local[self.nodes] = np.arange(m, dtype=np.int32)
        self.local = local
        near = neighbour_lists(instance, task.nearness, NEAREST)[self.nodes]
        places = np.append(self.nodes, rules.depot)
        matrix = instance.distance(places[:, None], places[None, :]).astype(np.float64)
        demand = rules.demand[self.nodes]
        bounds = Bounds(float(rules.capacity), rules.max_length, rules.service)
        self.land: Land = land_of(matrix, demand, local[near], bounds)
        least = -(-int(demand.sum()) // max(1, rules.capacity))
        # lengths or large demands may need more routes than all demand together does
        wanted = max(int(1.3 * least), len(task.start.routes)) + 3
        self.slots = max(1, min(rules.vehicles, wanted, m))
        xy = np.zeros((instance.n, 2)) if instance.xy is None else instance.xy
        self.points: Floats = np.ascontiguousarray(xy[self.nodes] - xy[rules.depot])
        top = float(demand.max(initial=1)) or 1.0
        self.price = Price(float(matrix.max()) / top, 1.0)
        self.long = m >= LONG * len(task.start.routes)

    def plan(self, order: Index, ends: Index, settled: bool = True) -> Plan:
        """Routes as a plan: round the depot, so that a stretch of it is a sector."""
        order, ends = in_circle(self.points, order, ends)
        total, load, length = measure(self.land, order, ends)
        after, before = links(order, ends)
        return Plan(order, ends, total, (load, length), after, before, settled)

    def start(self) -> Plan:
        """The task's start as it is."""
        routes = [self.local[route] for route in self.task.start.routes]
        order = np.concatenate(routes).astype(np.int32)
        ends = np.cumsum([len(route) for route in routes]).astype(np.int32)
        return self.plan(order, ends, settled=False)

    def child(self, pair: tuple[Plan, Plan] | None, price: Price, stream: int) -> list[Plan]:
        """A child of two plans, or of chance; if beyond a limit, perhaps mended at a high price.

        Some or all have a price of their own, about the population's: plans just beyond a limit and
        plans that keep it are both looked for.
        """
        state = random_state(self.task.seed, stream)
        factor = 1.0
        if not self.long or random_float(state) < ODD:
            factor = SPREAD ** (2.0 * random_float(state) - 1.0)
        price = Price(factor * price.load, factor * price.length)
        if pair is None:
            rng = np.random.default_rng([self.task.seed, stream])
            order = rng.permutation(len(self.nodes)).astype(np.int32)
        else:
            order = crossed(pair[0].order, pair[1].order, state)
        land, slots = self.land, self.slots
        ends = split(land, order, slots, price)
        settled = self._settled(order, ends, [p for p in pair or () if p.settled])
        plan = self.plan(*descend(land, order, ends, slots, price, settled, state))
        if plan.legal or random_float(state) >= MEND:
            return [plan]
        dear = Price(price.load * DEAR, price.length * DEAR)
        # at a higher price nothing pays between routes that keep their limits, either
        settled = within_bounds(land, plan.order, plan.ends, slots)
        mended = self.plan(*descend(land, plan.order, plan.ends, slots, dear, settled, state))
        return [plan, mended] if mended.legal else [plan]

    def _settled(self, order: Index, ends: Index, parents: list[Plan]) -> Ints:
        """Which routes of a child are its parents', so that they need not be looked at together."""
        m = len(order)
        after = np.array([p.after for p in parents], np.int32).reshape(-1, m)
        before = np.array([p.before for p in parents], np.int32).reshape(-1, m)
        found: Ints = settled_in(order, ends, self.slots, after, before)
        return found

    def children(
        self, pairs: list[tuple[Plan, Plan] | None], price: Price, stream: int
    ) -> list[list[Plan]]:
        threads = self.task.threads
        return [self.child(pair, price, stream + i * threads) for i, pair in enumerate(pairs)]

    def solution(self, plan: Plan) -> Solution:
        return solution_of_lists(self.nodes[plan.order].astype(np.int32), plan.ends)


def breed(task: Task, pool: Executor, max_iters: int | None) -> Iterator[Snapshot]:
    """Children and children's children, all threads at once; never ends by itself.

    A population that brings nothing better any more is followed by a larger one, which the best
    plan of those before joins once it is at its end, too. A child counts as one iteration per
    customer: each is moved, or tried to be, at least once.
    """
    breeder = Breeder(task)
    m = len(breeder.nodes)
    most = None if max_iters is None else -(-max_iters // m)  # children
    rng = np.random.default_rng([task.seed, 4])
    best = start = breeder.start()
    size, asked, done = GROUP, 0, 0
    while True:
        population = Population(size, m, breeder.price)
        if best is start:
            population.add(start)
        low, begun, stale = np.inf, asked, 0
        waiting: deque[list[Future[list[list[Plan]]]]] = deque()
        while waiting or stale < STALE * size:
            # while one brood is looked at, the threads are busy with the next
            while len(waiting) < 2 and stale < STALE * size:
                count = BATCH * task.threads
                count = count if most is None else min(count, most - asked)
                first = asked - begun < FIRST * size
                pairs = [None if first else population.pair(rng) for _ in range(count)]
                waiting.append(
                    [
                        pool.submit(
                            breeder.children, pairs[i :: task.threads], population.price, asked + i
                        )
                        for i in range(task.threads)
                    ]
                )
                asked += count
            brood = list(_in_turn([job.result() for job in waiting.popleft()]))
            for plans in brood:
                stale += 1
                population.judge(plans[0])
                for plan in plans:
                    population.add(plan)
                    if plan.legal and plan.cost < low - 1e-9:
                        low, stale = plan.cost, 0
                        best = min(best, plan, key=lambda p: p.cost)
            if stale >= STALE * size and low > best.cost:
                population.add(best)
                low, stale = best.cost, 0
            count = len(brood) * m if max_iters is None else min(len(brood) * m, max_iters - done)
            done += count
            yield Snapshot(count, best.cost, partial(breeder.solution, best))
        size = min(GROWTH * size, LARGEST)


def _in_turn(brood: list[list[list[Plan]]]) -> Iterator[list[Plan]]:
    """The children of all threads, in the order in which they were asked for."""
    for several in zip_longest(*brood):
        yield from (plans for plans in several if plans is not None)


def _rehearsal() -> Breeder:
    instance = x_cvrp(20, seed=0)
    start = Solution([np.array([node]) for node in range(1, instance.n)])
    return Breeder(task_of(instance, start, 0, 1))


def rehearse_population() -> None:
    """Use every kernel of the genetic search but its descent once, to have them compiled."""
    breeder, state = _rehearsal(), random_state(0)
    plan = breeder.start()
    order = crossed(plan.order, plan.order, state)
    ends = split(breeder.land, order, breeder.slots, breeder.price)
    breeder._settled(order, ends, [plan])
    within_bounds(breeder.land, plan.order, plan.ends, breeder.slots)
    population = Population(2, len(breeder.nodes), breeder.price)
    population.add(plan)
    random_float(state)


def rehearse_descent() -> None:
    """Use the descent of the genetic search once, to have it compiled."""
    breeder = _rehearsal()
    order = np.arange(len(breeder.nodes), dtype=np.int32)
    settled = np.zeros(breeder.slots, np.int64)
    descend(
        breeder.land, order, order + np.int32(1), breeder.slots, breeder.price, settled,
        random_state(0),
    )  # fmt: skip

"""The search for routes: a population of small plans, annealed string removal on large ones.

Small plans are bred (`route_breeding`). Larger ones are annealed: every thread has a plan of its
own, several times from the start if there is time, and the best goes on. Large ones are shared: all
threads anneal one plan, each some neighbouring routes at a time; what happens in different parts
always fits together. In the end such parts are bred, too. As in `search`, nothing here looks at the
clock.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from drhg import precompile
from drhg.compiled import random_state
from drhg.generate import x_cvrp
from drhg.hypergraph import Index
from drhg.local_search import neighbour_lists
from drhg.problem import Instance, Ints, Solution, cost
from drhg.route_breeding import LONG, breed
from drhg.search import Elapsed, Here, Snapshot, Task, task_of
from drhg.strings import (
    NEAREST,
    REMOVED,
    Part,
    lists_of,
    merge_lists,
    part_of,
    solution_of_lists,
    string_slice,
)

COLD = 0.07  # the last temperature, in mean distances to the fifth neighbour
HOT = 0.1  # the first one, times the root of the steps per customer that there will be time for
HOTTEST = 2.0
PART = 1_000  # customers that a thread works on at a time, at most
TURN = 5_000  # steps on a part before another is chosen
ANNEAL = 3_000  # steps per customer that make one anneal; for k of them it takes k * k times that
GUESS = 0.02  # share of the annealing after which their number is fixed
SMALL = 200  # up to so many customers a population is all that is needed
MIDDLE = 300  # the same if routes are long
WHOLE = 600  # up to so many threads anneal plans of their own; beyond, one plan together
LARGE = 2_000  # up to so many parts are bred in the end; beyond, annealing takes all the time
LATE = 0.75  # share of the search before that
LITTER = 200  # customers of such a part
CHILDREN = 1_000  # of a part before another is chosen
GLANCE = 40  # of these between two looks
CYCLE = 1_000  # steps per customer from hot to cold if nothing says how long the search will last


class Lists(NamedTuple):
    """A plan that may be incomplete: its routes laid end to end, and who is in none."""

    order: Index
    ends: Index  # (R,): where each route ends in the order
    absent: Ints
    cost: float

    @property
    def rank(self) -> tuple[int, float]:
        """Fewer customers left out are better at any cost."""
        return len(self.absent), self.cost


class _Field(NamedTuple):
    """What all threads know of a task."""

    task: Task
    near: Index  # (n, k)
    unit: float  # of temperatures
    local: Index  # scratch of `part_of`


def routes(task: Task, elapsed: Elapsed, max_iters: int | None) -> Iterator[Snapshot]:
    """The search that fits the size, on all threads.

    Plans that leave customers out are annealed whole, until somebody has them all on board.
    """
    field = _field_of(task)
    plan = best = _lists(task, task.start.routes)
    size = len(plan.order) + len(plan.absent)
    endless = elapsed() >= 1.0
    late = LATE if size <= LARGE else 1.0
    counter = _Counter(task, elapsed, max_iters, late)
    with ThreadPoolExecutor(task.threads) as pool:
        if len(plan.absent):
            for best in _own(field, plan, pool, counter):
                yield _snapshot(best, counter)
                if not len(best.absent):
                    break
        long = size >= LONG * len(best.ends)
        if size <= (WHOLE if endless else MIDDLE if long else SMALL):
            yield from breed(replace(task, start=_solution(best)), pool, counter.left)
        start = best
        for best in (_own if size <= WHOLE else _shared)(field, start, pool, counter):
            yield _snapshot(best, counter)
            if elapsed() >= late and not endless:
                break
        yield from _bred(field, best, pool, counter)


def start_of(task: Task) -> tuple[Part, float]:
    """The whole start as one part, and the unit of temperatures (for benchmarks)."""
    field = _field_of(task)
    return _whole(field, _lists(task, task.start.routes)), field.unit


def _field_of(task: Task) -> _Field:
    near = neighbour_lists(task.instance, task.nearness, NEAREST + NEAREST // 2)
    nodes = task.nearness.nodes
    unit = 0.0
    if near.shape[1] > 0:
        fifth = near[nodes, min(4, near.shape[1] - 1)]
        unit = float(np.mean(task.instance.distance(nodes, fifth)))
    if unit == 0.0:  # a single customer, or many at a few places
        unit = float(cost(task.instance, task.start)) / task.instance.n
    return _Field(task, near, unit, np.full(task.instance.n, -1, np.int32))


def _lists(task: Task, routes: Sequence[Ints]) -> Lists:
    order = np.concatenate([np.zeros(0, np.int64), *routes]).astype(np.int32)
    ends = np.cumsum([len(route) for route in routes]).astype(np.int32)
    absent = np.setdiff1d(task.nearness.nodes, order)
    return Lists(order, ends, absent, float(cost(task.instance, Solution(routes))))


class _Counter:
    """Turns: how many steps the next one has, and how hot; cold at a given share of the search."""

    def __init__(self, task: Task, elapsed: Elapsed, max_iters: int | None, late: float) -> None:
        self.task, self._elapsed, self._max_iters = task, elapsed, max_iters
        self._anneals = 1
        self.turns = self.done = self.last = 0
        self._early, self._late = elapsed(), late

    @property
    def left(self) -> int | None:
        """Iterations, if they are limited."""
        return None if self._max_iters is None else max(0, self._max_iters - self.done)

    def _schedule(self) -> tuple[float, float]:
        """The share of the annealing that is over, and how many steps it will have in all.

        A search without an end has cycles, each as long as all before it.
        """
        if self._early < 1.0:
            length = max(1e-9, self._late - self._early)
            over = min(1.0, (self._elapsed() - self._early) / length)
            return over, self.done / max(1e-9, over)
        cycle = CYCLE * self.task.instance.n
        while self.done >= 2 * cycle:
            cycle *= 2
        return (self.done % cycle) / cycle, cycle

    @property
    def anneal(self) -> int:
        """Which of the anneals this is."""
        return min(self._anneals - 1, int(self._schedule()[0] * self._anneals))

    def divide(self) -> None:
        """Have several anneals instead of one, if there is time for them.

        One ends in this valley or that; the best of a few is better than a slower one.
        """
        over, steps = self._schedule()
        if over < GUESS:
            each = steps / (self.task.threads * self.task.instance.n)
            self._anneals = max(1, round(float(each / ANNEAL) ** 0.5))

    def steps(self, parts: int) -> int:
        """Steps of every part in this turn."""
        left = TURN if self.left is None else -(-self.left // parts)
        return max(1, min(TURN, left))

    def count(self, steps: int) -> None:
        self.turns += 1
        self.last = steps
        self.done += steps

    def heat(self) -> float:
        """The temperature: the more time there is, the hotter the beginning."""
        over, steps = self._schedule()
        over = over * self._anneals - self.anneal
        steps /= self._anneals
        hot = min(HOTTEST, max(COLD, HOT * float(steps / self.task.instance.n) ** 0.5))
        return float(hot * (COLD / hot) ** over)


def _snapshot(best: Lists, counter: _Counter) -> Snapshot:
    known = np.inf if len(best.absent) else best.cost
    return Snapshot(counter.last, known, partial(_solution, best))


def _solution(plan: Lists) -> Solution:
    return solution_of_lists(plan.order, plan.ends)


def _whole(field: _Field, plan: Lists) -> Part:
    everything = np.arange(len(plan.ends), dtype=np.int32)
    return _part(field, plan, everything, plan.absent, 1)


def _part(field: _Field, plan: Lists, chosen: Index, absent: Ints, parts: int) -> Part:
    rules = field.task.rules
    spare = min(rules.vehicles - len(plan.ends), 10 + len(plan.ends) // 2, rules.n)
    return part_of(
        rules, field.near, plan.order, plan.ends, chosen, absent,
        max(0, spare) // parts, field.local,
    )  # fmt: skip


def _own(field: _Field, plan: Lists, pool: Executor, counter: _Counter) -> Iterator[Lists]:
    """Every thread anneals a plan of its own, and then again; yields the best of all."""
    task, best = field.task, plan
    states = [random_state(task.seed, i) for i in range(task.threads)]
    plans = [plan for _ in states]
    parts = [_whole(field, plan) for _ in states]
    anneal = 0
    while True:
        counter.divide()
        if counter.anneal > anneal and not len(best.absent):
            anneal = counter.anneal
            plans = [plan for _ in states]
            parts = [_whole(field, plan) for _ in states]
        heat, steps = field.unit * counter.heat(), counter.steps(task.threads)
        jobs = [
            pool.submit(string_slice, *part, heat, REMOVED, steps, state)
            for part, state in zip(parts, states, strict=True)
        ]
        for i, job in enumerate(jobs):
            change, lowest, left = job.result()
            if (left, plans[i].cost + lowest) <= best.rank:
                best = _read(field, parts[i], plans[i].cost + lowest, True)
            plans[i] = _read(field, parts[i], plans[i].cost + change, False)
        counter.count(steps * task.threads)
        yield best


def _read(field: _Field, part: Part, total: float, best: bool) -> Lists:
    order, ends = lists_of(part, best)
    absent = np.setdiff1d(part.ground.node[: len(part.ground.near)], order)
    return Lists(order, ends, absent, total)


def _shared(field: _Field, plan: Lists, pool: Executor, counter: _Counter) -> Iterator[Lists]:
    """All threads anneal one plan; every turn each has other routes of it. Yields the best."""
    task, best = field.task, plan
    rng = np.random.default_rng([task.seed, 2])
    nobody = np.zeros(0, np.int64)
    while True:
        chosen = _choose(task, plan, rng, PART)
        parts = [_part(field, plan, routes, nobody, len(chosen)) for routes in chosen]
        heat, steps = field.unit * counter.heat(), counter.steps(len(parts))
        jobs = [
            pool.submit(
                string_slice, *part, heat, REMOVED, steps,
                random_state(task.seed, task.threads * (counter.turns + 1) + i),
            )
            for i, part in enumerate(parts)
        ]  # fmt: skip
        changes = [job.result() for job in jobs]
        # the best of every part together make the best plan of this turn
        low = plan.cost + sum(change[1] for change in changes)
        if low <= best.cost:
            best = _merged(plan, chosen, [lists_of(part, True) for part in parts], low)
        total = plan.cost + sum(change[0] for change in changes)
        plan = _merged(plan, chosen, [lists_of(part, False) for part in parts], total)
        counter.count(steps * len(parts))
        yield best


def _bred(field: _Field, plan: Lists, pool: Executor, counter: _Counter) -> Iterator[Snapshot]:
    """Every thread breeds some neighbouring routes of one plan, then others."""
    task = field.task
    rng = np.random.default_rng([task.seed, 5])
    while True:
        chosen = _choose(task, plan, rng, LITTER)
        spare = max(0, task.rules.vehicles - len(plan.ends)) // len(chosen)
        left = counter.left
        litters = [
            _Litter(task, plan, routes, spare, left and -(-left // len(chosen)), seed)
            for routes, seed in zip(chosen, rng.integers(2**31, size=len(chosen)), strict=True)
        ]
        for _ in range(CHILDREN // GLANCE):
            jobs = [pool.submit(litter.grow, GLANCE) for litter in litters]
            counter.count(sum(job.result() for job in jobs))
            total = plan.cost + sum(litter.gain for litter in litters)
            better = _merged(plan, chosen, [litter.lists for litter in litters], total)
            yield _snapshot(better, counter)
        plan = better


class _Litter:
    """Some routes of a plan as a small problem of their own, which is bred."""

    def __init__(
        self, task: Task, plan: Lists, routes: Index, spare: int, max_iters: int | None, seed: int
    ) -> None:
        whole, rules = task.instance, task.rules
        parts = [plan.order[plan.ends[r - 1] if r else 0 : plan.ends[r]] for r in routes]
        self.nodes = np.append(rules.depot, np.concatenate(parts))
        local = np.arange(1, len(self.nodes))
        start = Solution(np.split(local, np.cumsum([len(part) for part in parts])[:-1]))
        small = replace(
            whole,
            xy=None if whole.xy is None else whole.xy[self.nodes],
            matrix=None if whole.matrix is None else whole.matrix[np.ix_(self.nodes, self.nodes)],
            demand=rules.demand[self.nodes],
            depot=0,
            vehicles=None if whole.vehicles is None else len(parts) + spare,
        )
        self._before = float(cost(small, start))
        self._search = breed(task_of(small, start, seed, 1), Here(), max_iters)
        self._found = Snapshot(0, self._before, lambda: start)

    def grow(self, children: int) -> int:
        """Have so many children, or a few more; returns how many iterations that were."""
        done = 0
        while done < children * (len(self.nodes) - 1):
            self._found = next(self._search)
            done += self._found.iterations
            if self._found.iterations == 0:
                break
        return done

    @property
    def gain(self) -> float:
        """By how much the routes have got shorter, as a change of the cost."""
        return self._found.cost - self._before

    @property
    def lists(self) -> tuple[Index, Index]:
        """The best routes, laid end to end in the plan's numbers."""
        routes = self._found.solution().routes
        ends = np.cumsum([len(route) for route in routes]).astype(np.int32)
        return self.nodes[np.concatenate(routes)].astype(np.int32), ends


def _merged(
    plan: Lists, chosen: list[Index], parts: list[tuple[Index, Index]], total: float
) -> Lists:
    """The plan with its chosen routes replaced by those of the parts."""
    taken = np.zeros(len(plan.ends), np.bool_)
    taken[np.concatenate(chosen)] = True
    order, ends = plan.order, plan.ends
    for part in parts:
        order, ends = merge_lists(order, ends, taken, *part)
        taken = np.zeros(len(ends), np.bool_)
    return Lists(order, ends, plan.absent, total)


def _choose(task: Task, plan: Lists, rng: np.random.Generator, most: int) -> list[Index]:
    """Routes for every thread: those around a random customer, none twice; or simply the rest."""
    n = len(plan.order)
    target = min(most, -(-n // task.threads))
    routes = np.arange(len(plan.ends), dtype=np.int32)
    sizes = np.diff(plan.ends, prepend=0)
    free = np.ones(len(routes), np.bool_)
    chosen: list[Index] = []
    for i in range(task.threads):
        left = routes[free]
        if len(left) == 0:
            break
        if i == task.threads - 1 and sizes[left].sum() <= most:
            chosen.append(left)
            break
        at = rng.integers(plan.ends[left] - sizes[left], plan.ends[left])
        seed = plan.order[at[rng.choice(len(left), p=sizes[left] / sizes[left].sum())]]
        chosen.append(_around(task, plan, seed, target, free))
        free[chosen[-1]] = False
    return chosen


def _around(task: Task, plan: Lists, seed: int, target: int, free: npt.NDArray[np.bool_]) -> Index:
    """Free routes around a customer, nearest first: so many that they have `target` customers."""
    sizes = np.diff(plan.ends, prepend=0)
    route = np.full(task.instance.n, -1, np.int32)
    route[plan.order] = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
    near = route[task.nearness.around([seed], target)[0]]
    near = near[free[near]]
    ranked: Index = near[np.sort(np.unique(near, return_index=True)[1])]
    enough = int(np.searchsorted(np.cumsum(sizes[ranked]), target)) + 1
    return ranked[:enough]


def parts(instance: Instance) -> list[precompile.Part]:
    """The kernels that the search for the routes of this instance may need."""
    size = instance.n - 1
    needed = [precompile.GENETIC, precompile.DESCENT] if size <= LARGE else []
    if size > SMALL or instance.vehicles is not None or instance.max_distance is not None:
        needed.append(precompile.ANNEALING)
    return needed


def rehearse_annealing() -> None:
    """Use every kernel of ruin and recreate once, to have them compiled or loaded."""
    instance = x_cvrp(20, seed=0)
    start = Solution([np.array([node]) for node in range(1, instance.n)])
    task = task_of(instance, start, 0, 1)
    field, counter = _field_of(task), _Counter(task, lambda: 0.5, 10, 1.0)
    plan = _lists(task, task.start.routes)
    next(_own(field, plan, Here(), counter))
    next(_shared(field, plan, Here(), counter))

"""What to cut: destroy operators, which the search by regions calls once per iteration.

An operator is a frozen object with its parameters and a callable: it is given the rules, the plan,
a finder of near nodes and random numbers, and returns rows of cut positions. One that remembers
something has a method `begin`, which returns a fresh callable for one search; if that has a method
`learn`, it is told after each call by how much the cost fell (0 if the repair was not accepted).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np

from drhg.errors import DrhgError
from drhg.problem import Instance, one_of, real_number, shown, whole_number

if TYPE_CHECKING:
    from drhg.hypergraph.nearness import Nearness
    from drhg.hypergraph.plan import Index, Plan, Rules

CENTRES = ("uniform", "grid")
DEPOT_EDGES = ("adjacent", "touched", "all")
PAPER_ITERATIONS = 1000  # T in the paper's tables


class Destroy(Protocol):
    """Choose what to cut: rows of cut positions, padded with -1, and how many each has."""

    def __call__(
        self, rules: Rules, plan: Plan, nearness: Nearness, rng: np.random.Generator
    ) -> tuple[Index, Index]: ...


class Remembering(Protocol):
    """A destroy operator with a memory: `begin` returns a callable for a search of its own."""

    def begin(self, max_iters: int | None) -> Destroy: ...


DestroyOperator: TypeAlias = Destroy | Remembering


def _check_range(operator: Cluster | Strings | WholeRoutes | Covering) -> None:
    """Refuse a k that is no range; a list becomes a tuple."""
    k = operator.k
    if not isinstance(k, tuple | list) or len(k) != 2:
        raise DrhgError(f"k must be two numbers, 1 <= low <= high, not {shown(k)}")
    low, high = (whole_number("k", number) for number in k)
    if not 1 <= low <= high:
        raise DrhgError(f"k must be two numbers, 1 <= low <= high, not {shown(k)}")
    object.__setattr__(operator, "k", (low, high))


def _check_share(name: str, value: float) -> None:
    if real_number(name, value, 0.0) > 1.0:
        raise DrhgError(f"{name} must be a share from 0 to 1, not {shown(value)}")


def _needs_routes(operator: object, instance: Instance) -> str | None:
    if instance.is_cvrp:
        return None
    return f"{type(operator).__name__} is for routes, and this is a tour"


def _needs_routes_for_edges(depot_edges: str, instance: Instance) -> str | None:
    if depot_edges == "adjacent" or instance.is_cvrp:
        return None
    return f"depot_edges {depot_edges!r} is for routes, and this is a tour"


@dataclass(frozen=True)
class Cluster:
    """Destroy the k nodes nearest to a centre (the paper, "Testing").

    k: how many nodes, drawn uniformly from (low, high).
    centres: "uniform", a random node; or "grid", the middle of a random cell of a square grid over
        the instance (the paper's choice for tours).
    cells: of that grid, per side; by default the root of the iteration limit, as in the paper, or
        of the paper's 1000 iterations if there is none.
    depot_edges: for routes, which depot edges are cut, too: those beside destroyed customers
        ("adjacent"), those of their routes ("touched"), or all of them ("all", as in the paper).
    reach: positions along the order beyond which a near node is left alone; it bounds what an
        iteration has to move, whatever the size of the instance.
    """

    k: tuple[int, int] = (20, 100)
    centres: str = "uniform"
    cells: int | None = None
    depot_edges: str = "adjacent"
    reach: int = 10_000

    def __post_init__(self) -> None:
        _check_range(self)
        one_of("centres", self.centres, CENTRES)
        one_of("depot_edges", self.depot_edges, DEPOT_EDGES)
        whole_number("reach", self.reach, 1)
        if self.cells is not None:
            whole_number("cells", self.cells, 1)

    def supports(self, instance: Instance) -> str | None:
        if self.centres == "grid" and not instance.metric.planar:
            return "a grid of centres needs coordinates of the plane"
        return _needs_routes_for_edges(self.depot_edges, instance)

    def begin(self, max_iters: int | None) -> Cluster:
        """The operator for a search of so many iterations, which give the size of the grid."""
        if self.centres == "uniform" or self.cells is not None:
            return self
        return replace(self, cells=max(1, round(math.sqrt(max_iters or PAPER_ITERATIONS))))

    def __call__(
        self, rules: Rules, plan: Plan, nearness: Nearness, rng: np.random.Generator
    ) -> tuple[Index, Index]:
        from drhg.hypergraph.cut import destroy_nearest

        k = _drawn(self.k, nearness, rng)
        if self.centres == "grid":
            cells = self.cells or round(math.sqrt(PAPER_ITERATIONS))
            centre = nearness.corner + (rng.integers(cells, size=2) + 0.5) / cells * nearness.extent
            ranked = nearness.around_points(centre[None, :], k)
        else:
            ranked = nearness.around(rng.choice(nearness.nodes, size=1), k)
        return destroy_nearest(
            rules, plan, ranked, k, depot_edges=self.depot_edges, reach=self.reach
        )


@dataclass(frozen=True)
class Strings:
    """Destroy strings of customers in routes beside one another (SISR).

    Slack induction by string removals (Christiaens and Vanden Berghe 2020): one string of each
    route around a random customer; with probability `split` one customer in its middle is spared.

    k: about how many customers in all, drawn uniformly from (low, high).
    longest: customers of a string, at most (L max in that paper).
    split: probability that a string is split (alpha in that paper).
    near: customers around the centre whose routes may lose a string, as a multiple of k.
    depot_edges: as of `Cluster`.
    """

    k: tuple[int, int] = (20, 100)
    longest: float = 10.0
    split: float = 0.5
    near: int = 8
    depot_edges: str = "adjacent"

    def __post_init__(self) -> None:
        _check_range(self)
        real_number("longest", self.longest, 1.0)
        _check_share("split", self.split)
        whole_number("near", self.near, 1)
        one_of("depot_edges", self.depot_edges, DEPOT_EDGES)

    def supports(self, instance: Instance) -> str | None:
        return _needs_routes(self, instance)

    def __call__(
        self, rules: Rules, plan: Plan, nearness: Nearness, rng: np.random.Generator
    ) -> tuple[Index, Index]:
        from drhg.hypergraph.cut import destroy_nearest

        k = _drawn(self.k, nearness, rng)
        limit = min(self.longest, len(nearness.nodes) / max(1, plan.n_routes))
        cut: list[Index] = []
        count = 0
        for node in _neighbours_by_route(plan, nearness, rng, self.near * k):
            if count >= k:
                break
            p = int(plan.pos[node])
            first, last = plan.first[plan.route[p]], plan.last[plan.route[p]]
            there = int(last - first - 1)
            size = min(int(1 + rng.random() * min(there, 2 * limit)), there)
            start = int(rng.integers(max(first + 1, p - size + 1), min(p, last - size) + 1))
            string = plan.order[start : start + size]
            if size > 2 and rng.random() < self.split:
                string = np.delete(string, rng.integers(1, size - 1))
            cut.append(string)
            count += len(string)
        nodes = np.concatenate(cut)[None, :]
        return destroy_nearest(rules, plan, nodes, count, depot_edges=self.depot_edges)


@dataclass(frozen=True)
class WholeRoutes:
    """Dissolve whole routes beside one another, as many as have at least k customers.

    k: how many customers, drawn uniformly from (low, high).
    near: customers around the centre whose routes may be dissolved, as a multiple of k.
    """

    k: tuple[int, int] = (80, 160)
    near: int = 4

    def __post_init__(self) -> None:
        _check_range(self)
        whole_number("near", self.near, 1)

    def supports(self, instance: Instance) -> str | None:
        return _needs_routes(self, instance)

    def __call__(
        self, rules: Rules, plan: Plan, nearness: Nearness, rng: np.random.Generator
    ) -> tuple[Index, Index]:
        from drhg.hypergraph.cut import destroy_nearest

        k = _drawn(self.k, nearness, rng)
        cut: list[Index] = []
        count = 0
        for node in _neighbours_by_route(plan, nearness, rng, self.near * k):
            if count >= k:
                break
            r = plan.route[plan.pos[node]]
            cut.append(plan.order[plan.first[r] + 1 : plan.last[r]])
            count += len(cut[-1])
        return destroy_nearest(rules, plan, np.concatenate(cut)[None, :], count)


@dataclass(frozen=True)
class Covering:
    """Clusters that cover the solution: where nothing was done for longest, larger as gains dry up.

    Of some random centres the one is taken whose node was destroyed longest ago; what was repaired
    with a gain counts as not done yet, because there may be more.

    k: the number of nodes starts low and stays within (low, high).
    choices: random centres to choose from.
    grow, shrink: factors of k after a step without and with a gain.
    depot_edges, reach: as of `Cluster`.
    """

    k: tuple[int, int] = (20, 100)
    choices: int = 16
    grow: float = 1.3
    shrink: float = 0.95
    depot_edges: str = "adjacent"
    reach: int = 10_000

    def __post_init__(self) -> None:
        _check_range(self)
        whole_number("choices", self.choices, 1)
        real_number("grow", self.grow, 1.0)
        _check_share("shrink", self.shrink)
        one_of("depot_edges", self.depot_edges, DEPOT_EDGES)
        whole_number("reach", self.reach, 1)

    def supports(self, instance: Instance) -> str | None:
        return _needs_routes_for_edges(self.depot_edges, instance)

    def begin(self, max_iters: int | None) -> CoveringMemory:
        return CoveringMemory(self)


class CoveringMemory:
    """`Covering` in one search: when each node was last destroyed in vain, and the present k."""

    def __init__(self, params: Covering) -> None:
        self.params = params
        self.size = float(params.k[0])
        self.turn = 0
        self.done = np.zeros(0, np.int64)  # (n,): when a node was last destroyed in vain
        self.ranked = np.zeros(0, np.int32)

    def __call__(
        self, rules: Rules, plan: Plan, nearness: Nearness, rng: np.random.Generator
    ) -> tuple[Index, Index]:
        from drhg.hypergraph.cut import destroy_nearest

        params = self.params
        if len(self.done) != rules.n:
            self.done = np.zeros(rules.n, np.int64)
        self.turn += 1
        k = min(round(self.size), len(nearness.nodes))
        few = rng.choice(nearness.nodes, size=params.choices)
        centre = few[np.argmin(self.done[few])]
        ranked = nearness.around([centre], k)
        self.ranked = ranked[0]
        return destroy_nearest(
            rules, plan, ranked, k, depot_edges=params.depot_edges, reach=params.reach
        )

    def learn(self, gain: float) -> None:
        """By how much the last call made the cost fall; 0 if its repair was not accepted."""
        gained = gain > 0.0
        self.done[self.ranked] = 0 if gained else self.turn
        size = self.size * (self.params.shrink if gained else self.params.grow)
        self.size = min(max(size, self.params.k[0]), self.params.k[1])


@dataclass(frozen=True)
class Adaptive:
    """Choose among operators, more often those that gained more per use of late.

    operators: what to choose from; it counts uses, never time.
    floor: share of the choices that is the same for every operator.
    keep: share of an operator's remembered gain that stays each time it is used.
    """

    operators: tuple[DestroyOperator, ...] = (Cluster(), Strings(), WholeRoutes((20, 100)))
    floor: float = 0.2
    keep: float = 0.98

    def __post_init__(self) -> None:
        given = self.operators
        if not isinstance(given, Sequence) or not given or not all(usable(o) for o in given):
            raise DrhgError(
                f"operators must be some destroy operators, such as (Cluster(), Strings()), "
                f"not {shown(given)}"
            )
        object.__setattr__(self, "operators", tuple(given))
        _check_share("floor", self.floor)
        _check_share("keep", self.keep)

    def supports(self, instance: Instance) -> str | None:
        whys = (supports(operator, instance) for operator in self.operators)
        return next((why for why in whys if why is not None), None)

    def begin(self, max_iters: int | None) -> AdaptiveMemory:
        return AdaptiveMemory(self, max_iters)


class AdaptiveMemory:
    """`Adaptive` in one search: what each operator has gained."""

    def __init__(self, params: Adaptive, max_iters: int | None) -> None:
        self.params = params
        self.operators = [fresh(operator, max_iters) for operator in params.operators]
        self.gains = np.zeros(len(self.operators))
        self.chosen = 0

    def __call__(
        self, rules: Rules, plan: Plan, nearness: Nearness, rng: np.random.Generator
    ) -> tuple[Index, Index]:
        shares = np.full(len(self.gains), 1.0 / len(self.gains))
        total = self.gains.sum()
        if total > 0:
            floor = self.params.floor
            shares = floor * shares + (1 - floor) * self.gains / total
        self.chosen = int(rng.choice(len(shares), p=shares))
        return self.operators[self.chosen](rules, plan, nearness, rng)

    def learn(self, gain: float) -> None:
        """By how much the last call made the cost fall; 0 if its repair was not accepted."""
        keep = self.params.keep
        self.gains[self.chosen] = keep * self.gains[self.chosen] + (1 - keep) * max(0.0, gain)
        learn = getattr(self.operators[self.chosen], "learn", None)
        if learn is not None:
            learn(gain)


OPERATORS: dict[str, type] = {
    "cluster": Cluster,
    "covering": Covering,
    "strings": Strings,
    "routes": WholeRoutes,
    "adaptive": Adaptive,
}


# --- what the search by regions asks of any operator ----------------------------------------------


def usable(operator: object) -> bool:
    """Whether it can be used as a destroy operator: a function, or an object that can begin."""
    able = callable(operator) or callable(getattr(operator, "begin", None))
    return able and not isinstance(operator, type)


def fresh(operator: DestroyOperator, max_iters: int | None) -> Destroy:
    """The operator for one search, of so many iterations if they are limited.

    What it learns there is nothing to another search.
    """
    begin: Callable[[int | None], Destroy] | None = getattr(operator, "begin", None)
    if begin is not None:
        return begin(max_iters)
    assert callable(operator)
    return deepcopy(operator) if hasattr(operator, "learn") else operator


def supports(operator: object, instance: Instance) -> str | None:
    """Why an operator cannot be used for this instance, or None."""
    ask = getattr(operator, "supports", None)
    why: str | None = None if ask is None else ask(instance)
    return why


# --- helpers --------------------------------------------------------------------------------------


def _drawn(k: tuple[int, int], nearness: Nearness, rng: np.random.Generator) -> int:
    top = min(k[1], len(nearness.nodes))
    return int(rng.integers(min(k[0], top), top + 1))


def _neighbours_by_route(
    plan: Plan, nearness: Nearness, rng: np.random.Generator, reach: int
) -> Index:
    """Of each route near a random customer the customer nearest to it, nearest first."""
    near = nearness.around(rng.choice(nearness.nodes, size=1), reach)[0]
    _, first = np.unique(plan.route[plan.pos[near]], return_index=True)
    found: Index = near[np.sort(first)]
    return found

"""The methods that have a name, and the strategy that each of them is for an instance."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from drhg.destroy.operators import PAPER_ITERATIONS, Cluster
from drhg.errors import DrhgError
from drhg.kernels import warmup
from drhg.problem import Instance, shown
from drhg.search.criteria import Anneal, Improve
from drhg.search.regions import Regions
from drhg.search.repairers import Hybrid, Insertion, Library, LocalSearch, Neural
from drhg.search.routes.strategy import Routes
from drhg.search.strategy import Strategy
from drhg.search.tours.strategy import Tours
from drhg.search.walks import Sharing

if TYPE_CHECKING:
    from drhg.kernels.warmup import Part

Method: TypeAlias = str | Strategy | Callable[[Instance], Strategy]
"""A name, a strategy such as `Regions`, or a function that chooses one for an instance."""


def _auto(instance: Instance) -> Strategy:
    return Routes() if instance.is_cvrp else Tours()


def _neural(instance: Instance) -> Strategy:
    """Walks side by side, as many as the budget allows, whose best parts are put together.

    For tours they anneal. Regions of a small instance would overlap: fewer are one batch.
    """
    return Regions(
        repair=Neural(),
        accept=Improve() if instance.is_cvrp else Anneal(),
        walks=4 if instance.is_cvrp or instance.n <= 150 else 8,
        sharing=Sharing(every=4, least=2.5),
    )


def _paper(instance: Instance) -> Strategy:
    """The paper to the letter: its T, its k and centres, strict improvement, its network."""
    if instance.is_cvrp:
        destroy = Cluster((20, 200), depot_edges="all")
    else:
        destroy = Cluster((20, 1000), centres="grid" if instance.metric.planar else "uniform")
    return Regions(destroy, Neural(model="paper"), Improve(), iterations=PAPER_ITERATIONS)


NAMED: dict[str, Callable[[Instance], Strategy]] = {
    "auto": _auto,
    "neural": _neural,
    "paper": _paper,
    "local": lambda instance: Regions(repair=LocalSearch()),
    "insertion": lambda instance: Regions(repair=Insertion()),
    "library": lambda instance: Regions(repair=Library()),
    "hybrid": lambda instance: Regions(repair=Hybrid()),
}


def check_method(method: object) -> None:
    """Refuse what is no method, whatever the instance."""
    if isinstance(method, str):
        if method not in NAMED:
            raise DrhgError(f"method: unknown name {method!r}; known: {', '.join(NAMED)}")
    elif isinstance(method, type):
        raise DrhgError(f"method: {method.__name__} is a class; pass an object, as in "
                        f"{method.__name__}()")  # fmt: skip
    elif not callable(getattr(method, "run", method)):
        raise DrhgError(
            f"method must be a name ({', '.join(NAMED)}) or a strategy such as drhg.Regions(...), "
            f"not {shown(method)}"
        )


def strategy_of(method: Method, instance: Instance) -> Strategy:
    """What a method is for this instance; refused if it cannot solve it."""
    check_method(method)
    choose: Any = NAMED[method] if isinstance(method, str) else method
    strategy: Strategy = choose if hasattr(choose, "run") else choose(instance)
    why = strategy.supports(instance)
    if why is not None:
        raise DrhgError(f"method: {why}")
    return strategy


def name_of(method: Method) -> str:
    """What a result says of its method."""
    if isinstance(method, str):
        return method
    if hasattr(method, "run"):
        return type(method).__name__
    return str(getattr(method, "name", getattr(method, "__name__", type(method).__name__)))


def parts_of(strategy: Strategy, instance: Instance, start: str | None) -> list[Part]:
    """The kernels that a search needs, the start of that name included."""
    parts = (
        []
        if start in (None, "alone", "space-filling")
        else [warmup.start(instance.family, str(start))]
    )
    return parts + strategy.parts(instance)

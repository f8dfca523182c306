"""Repair operators by their parameters: what reconnects the reduced graphs of a search by regions.

Each is a frozen object that says what it is for (`supports`), what it needs compiled (`parts`) and
which destroy operator suits it (`usual_destroy`); `begin` returns the callable of `repair.protocol`
for one search. Any callable of that kind can be used instead.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

from drhg.destroy.operators import Cluster, Covering, DestroyOperator, WholeRoutes
from drhg.errors import DrhgError, ModelError
from drhg.kernels import warmup
from drhg.network import weights
from drhg.problem import Instance, Metric, one_of, real_number, shown, whole_number
from drhg.problem.parameters import Parameters, number

if TYPE_CHECKING:
    from drhg.kernels.warmup import Part
    from drhg.network.decode import Model
    from drhg.repair.protocol import Repair

    RepairOperator: TypeAlias = Repair | "Declared"

DEVICES = ("auto", "cpu", "cuda")
LIBRARIES = {  # the solvers from other packages, and what they solve
    "fast_tsp": ("tsp",),
    "pyvrp": ("cvrp",),
    "hygese": ("cvrp",),
    "ortools": ("tsp", "cvrp"),
    "elkai": ("tsp",),
}


class Declared(Protocol):
    """A repair operator by its parameters: `begin` returns the callable for one search."""

    def begin(self, instance: Instance, threads: int) -> Repair: ...


@dataclass(frozen=True)
class Insertion:
    """Put destroyed nodes back one by one where they cost least."""

    def begin(self, instance: Instance, threads: int) -> Repair:
        from drhg.repair.insertion import InsertionRepair

        return InsertionRepair()

    def parts(self, instance: Instance) -> list[Part]:
        return [warmup.regions(instance.family, "insertion", "auto")]


@dataclass(frozen=True)
class LocalSearch(Parameters):
    """Greedy edges, then 2-opt and or-opt (for routes also exchanges) that keep hyper-edges."""

    kicks: float = number(0.5, 0.0)
    """Perturbations of a tour, per node of the reduced graph."""
    neighbours: int = number(8, 1)
    """Nearest nodes, or pieces of routes, beside which something may go."""
    stretch: int = number(3, 1)
    """Pieces of a route that move together at most."""

    def begin(self, instance: Instance, threads: int) -> Repair:
        from drhg.repair.local import LocalSearchRepair

        return LocalSearchRepair(self.kicks, self.neighbours, self.stretch)

    def parts(self, instance: Instance) -> list[Part]:
        return [warmup.regions(instance.family, "local", "auto")]


@dataclass(frozen=True)
class Library:
    """A solver from another package.

    name: "fast_tsp" or "elkai" for tours, "pyvrp" or "hygese" for routes, "ortools" for both; by
        default fast_tsp and pyvrp.
    seconds: per reduced graph; by default 0.1 for a tour and 0.3 for routes.
    cutoff: for tours, longer edges than so many times the longest present one are as bad as that;
        the solvers take distances of 16 bits, which are the finer the less they have to span.
    """

    name: str = "auto"
    seconds: float | None = None
    cutoff: float = 4.0

    def __post_init__(self) -> None:
        one_of("name", self.name, ("auto", *LIBRARIES))
        if self.seconds is not None and real_number("seconds", self.seconds) <= 0.0:
            raise DrhgError(f"seconds must be above 0, not {shown(self.seconds)}")
        real_number("cutoff", self.cutoff, 1.0)

    def supports(self, instance: Instance) -> str | None:
        if self.name == "auto" or instance.family in LIBRARIES[self.name]:
            return None
        fit = ", ".join(name for name, kinds in LIBRARIES.items() if instance.family in kinds)
        return f"{self.name} does not solve a {instance.problem.upper()}; known: {fit}"

    def usual_destroy(self, instance: Instance) -> DestroyOperator:
        """Slow but strong: whole routes, or parts of a tour where nothing was done for longest."""
        return WholeRoutes() if instance.is_cvrp else Covering((200, 800))

    def begin(self, instance: Instance, threads: int) -> Repair:
        from drhg.repair.library import LibraryRepair
        from drhg.repair.solvers import usual_solver

        name = usual_solver(instance.is_cvrp) if self.name == "auto" else self.name
        seconds = self.seconds or (0.3 if instance.is_cvrp else 0.1)
        return LibraryRepair(name, seconds, threads, self.cutoff)

    def parts(self, instance: Instance) -> list[Part]:
        return [warmup.regions(instance.family, "insertion", "auto")]


@dataclass(frozen=True)
class Neural:
    """A network, which reconnects the pieces one decision after the other.

    model: a name that `drhg models` lists, or a file; by default the weights meant for the size.
    alternatives: repairs of each graph, of which the shortest counts; all are one iteration.
    sample: draw decisions by their probabilities instead of taking the most probable.
    per_round: the share of the missing edges that a network of edges fixes at least before it
        looks again; a smaller one takes longer and repairs better.
    sure: edges that it is surer of than this are fixed in any case.
    device: "cpu", "cuda", or by default compiled code where there is some.
    """

    model: str | os.PathLike[str] = "auto"
    alternatives: int = 1
    sample: bool = False
    per_round: float = 0.34
    sure: float = 0.9
    device: str = "auto"

    batches: ClassVar[bool] = True  # graphs of several instances are repaired as one batch

    def __post_init__(self) -> None:
        if isinstance(self.model, os.PathLike):
            object.__setattr__(self, "model", os.fspath(self.model))
        if not isinstance(self.model, str) or not self.model:
            raise DrhgError(f"model must be a name or a file, not {shown(self.model)}")
        whole_number("alternatives", self.alternatives, 1)
        if not isinstance(self.sample, bool):
            raise DrhgError(f"sample must be True or False, not {shown(self.sample)}")
        for name in ("per_round", "sure"):
            if not 0.0 < real_number(name, getattr(self, name)) <= 1.0:
                raise DrhgError(f"{name} must be above 0 and at most 1")
        one_of("device", self.device, DEVICES)

    def weights(self, instance: Instance) -> weights.Weights:
        fitting = self.model == "auto"
        return weights.load(
            weights.fitting(instance.n, instance.is_cvrp) if fitting else self.model
        )

    def supports(self, instance: Instance) -> str | None:
        if instance.metric is Metric.EXPLICIT:
            return "a network needs coordinates; this instance is a bare matrix"
        found = self.weights(instance)
        if found.config.routes != instance.is_cvrp:
            kind = "routes (CVRP)" if found.config.routes else "tours (TSP)"
            return f"the weights {found.name} repair {kind} only"
        return None

    def usual_destroy(self, instance: Instance) -> DestroyOperator:
        """As many nodes as the model card advises, but at most half of them all."""
        low, high = self.weights(instance).k
        return Cluster((low, max(low, min(high, instance.n // 2))))

    def begin(self, instance: Instance, threads: int) -> Repair:
        from drhg.network.joining import CompiledEdges
        from drhg.network.repairer import Guarded, NeuralRepair
        from drhg.repair.local import LocalSearchRepair

        model = _scorer(self.weights(instance), self.device, threads)
        if isinstance(model, CompiledEdges):
            model.per_round, model.sure = self.per_round, self.sure
        repair = NeuralRepair(model, greedy=not self.sample, alternatives=self.alternatives)
        return Guarded(repair, LocalSearchRepair())

    def parts(self, instance: Instance, repair: str = "neural") -> list[Part]:
        if self.device == "cuda":
            return []
        usual = weights.load(weights.fitting(instance.n, instance.is_cvrp)).config.preset
        like_usual = self.weights(instance).config.preset == usual
        model = "auto" if like_usual else os.fspath(self.model)
        return [warmup.regions(instance.family, repair, model)]


def _scorer(found: weights.Weights, device: str, threads: int) -> Model:
    """Compiled code where there is some, which needs no torch; else torch, on the device asked."""
    from drhg.network.decode import compiled

    if device == "cuda" and found.config.preset == "edges":
        raise ModelError("the network of edges runs on the CPU only", file=str(found.path))
    network = None if device == "cuda" else compiled(found.config, found.tensors, threads)
    if network is not None:
        return network
    try:
        from drhg.network import torch_model as model
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "torch":
            raise
        raise ModelError(
            "these weights, on this device, need torch: install drhg with its extra `neural`",
            file=str(found.path),
        ) from None
    return model.filled(found.config, found.tensors, device, threads)


@dataclass(frozen=True)
class Hybrid:
    """One repair after another: the second starts from what the first has made.

    first, second: repair operators; by default a network, then local search.
    """

    first: RepairOperator = field(default_factory=Neural)
    second: RepairOperator = field(default_factory=LocalSearch)

    def __post_init__(self) -> None:
        for name in ("first", "second"):
            check_repair(name, getattr(self, name))

    def supports(self, instance: Instance) -> str | None:
        return supports(self.first, instance) or supports(self.second, instance)

    def usual_destroy(self, instance: Instance) -> DestroyOperator:
        return usual_destroy(self.first, instance)

    def begin(self, instance: Instance, threads: int) -> Repair:
        from drhg.repair.combined import RepairSequence

        return RepairSequence(*(begun(one, instance, threads) for one in (self.first, self.second)))

    def parts(self, instance: Instance) -> list[Part]:
        if isinstance(self.first, Neural) and isinstance(self.second, LocalSearch):
            return self.first.parts(instance, "hybrid")
        return [*parts(self.first, instance), *parts(self.second, instance)]


OPERATORS: dict[str, type] = {
    "neural": Neural,
    "local": LocalSearch,
    "insertion": Insertion,
    "library": Library,
    "hybrid": Hybrid,
}


# --- what the search by regions asks of any repair ------------------------------------------------


def check_repair(name: str, repair: object) -> None:
    usable = callable(repair) or callable(getattr(repair, "begin", None))
    if not usable or isinstance(repair, type):
        raise DrhgError(
            f"{name} must be a repair operator, such as LocalSearch() or Neural(), or a function, "
            f"not {shown(repair)}"
        )


def begun(repair: Any, instance: Instance, threads: int) -> Repair:
    """The callable for one search."""
    begin: Callable[[Instance, int], Repair] | None = getattr(repair, "begin", None)
    fresh: Repair = repair if begin is None else begin(instance, threads)
    return fresh


def supports(repair: object, instance: Instance) -> str | None:
    """Why a repair cannot be used for this instance, or None."""
    ask = getattr(repair, "supports", None)
    why: str | None = None if ask is None else ask(instance)
    return why


def usual_destroy(repair: object, instance: Instance) -> DestroyOperator:
    """The destroy operator that suits a repair."""
    ask = getattr(repair, "usual_destroy", None)
    destroy: DestroyOperator = Cluster() if ask is None else ask(instance)
    return destroy


def parts(repair: object, instance: Instance) -> list[Part]:
    """The kernels that a search with this repair needs; what others bring along is theirs."""
    ask = getattr(repair, "parts", None)
    needed: list[Part] = Insertion().parts(instance) if ask is None else ask(instance)
    return needed


def batches(repair: object) -> bool:
    """Whether graphs of several instances can be repaired as one batch."""
    return getattr(repair, "batches", False) or hasattr(repair, "together")

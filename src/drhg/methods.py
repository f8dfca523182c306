"""What the names of methods stand for: repairers, destroys and starts of the search by regions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from drhg import precompile, weights
from drhg.criteria import Limits, improve
from drhg.errors import DrhgError, ModelError
from drhg.problem import Instance, Metric, Solution, shown, whole_number

if TYPE_CHECKING:
    from drhg import neural
    from drhg.destroy import Destroy
    from drhg.repair import Repair

REPAIRS = ("auto", "local", "insertion", "library", "neural", "hybrid")
NETWORK = ("neural", "hybrid")  # those of them that use one
LIBRARY_K = 200, 800  # nodes destroyed for a solver from another package
ROUTES_K = 80, 160  # customers of whole routes for one
DESTROYS = ("auto", "cluster", "covering", "strings", "routes", "adaptive")
DEPOT_EDGES = ("adjacent", "touched", "all")
CENTRES = ("uniform", "grid")
DEVICES = ("auto", "cpu", "cuda")
LIBRARIES = {  # the solvers from other packages, and what they solve
    "fast_tsp": ("tsp",),
    "pyvrp": ("cvrp",),
    "hygese": ("cvrp",),
    "ortools": ("tsp", "cvrp"),
    "elkai": ("tsp",),
}
GRID_ITERS = 1000  # the grid of centres has sqrt(T) cells per side; this is T without a limit


@dataclass(frozen=True)
class RegionOptions:
    """Options of the region search: what is cut, which library, then those of the network."""

    k: tuple[int, int] | None = None
    centres: str = "uniform"
    destroy: str = "auto"
    depot_edges: str = "adjacent"
    library: str = "auto"
    model: str = "auto"
    alternatives: int = 1
    sample: bool = False
    device: str = "auto"

    def check(self, repair: str | Repair, destroy: Destroy | None) -> None:
        """Refuse what is wrong, and what the chosen search would not use."""
        if self.centres not in CENTRES:
            raise DrhgError(f"unknown centres {self.centres!r}; known: {', '.join(CENTRES)}")
        if self.destroy not in DESTROYS:
            raise DrhgError(f"unknown destroy {self.destroy!r}; known: {', '.join(DESTROYS)}")
        if self.depot_edges not in DEPOT_EDGES:
            known = ", ".join(DEPOT_EDGES)
            raise DrhgError(f"unknown depot_edges {self.depot_edges!r}; known: {known}")
        if self.device not in DEVICES:
            raise DrhgError(f"unknown device {self.device!r}; known: {', '.join(DEVICES)}")
        if self.library not in ("auto", *LIBRARIES):
            raise DrhgError(f"unknown library {self.library!r}; known: {', '.join(LIBRARIES)}")
        if not isinstance(self.model, str) or not self.model:
            raise DrhgError(f"model must be a name or a file, not {shown(self.model)}")
        if not isinstance(self.sample, bool):
            raise DrhgError(f"sample must be True or False, not {shown(self.sample)}")
        whole_number("alternatives", self.alternatives, 1)
        if self.k is not None:
            if not isinstance(self.k, tuple | list) or len(self.k) != 2:
                raise DrhgError(f"k must be two numbers, 1 <= low <= high, not {shown(self.k)}")
            low, high = (whole_number("k", number) for number in self.k)
            if not 1 <= low <= high:
                raise DrhgError(f"k must be two numbers, 1 <= low <= high, not {self.k}")
        given = [f.name for f in fields(self) if getattr(self, f.name) != f.default]
        cuts = [name for name in given if name in ("k", "centres", "destroy", "depot_edges")]
        if cuts and destroy is not None:
            raise DrhgError(f"{cuts[0]} is for the built-in destroy, and one is given")
        if cuts and repair == "auto":
            raise DrhgError(f"{cuts[0]} is for a search by regions: name a repair other than auto")
        if self.centres == "grid" and self.destroy not in ("auto", "cluster"):
            raise DrhgError(f"centres is for destroy 'cluster', not {self.destroy!r}")
        if self.library != "auto" and repair != "library":
            raise DrhgError("library is for repair 'library' only")
        if set(given) - {*cuts, "library"} and repair not in NETWORK:
            name = next(name for name in given if name not in (*cuts, "library"))
            raise DrhgError(f"{name} is for repair 'neural' and 'hybrid' only")


def refuse_nonsense(
    instances: Sequence[Instance],
    repair: str | Repair,
    destroy: Destroy | None,
    options: RegionOptions,
) -> None:
    """Refuse what cannot work before any time is spent on it."""
    if not isinstance(repair, str) and not callable(repair):
        raise DrhgError(f"repair must be a name or a function, not {shown(repair)}")
    if isinstance(repair, str) and repair not in REPAIRS:
        raise DrhgError(f"unknown repair {repair!r}; known: {', '.join(REPAIRS)}")
    options.check(repair, destroy)
    for instance in instances if options.library != "auto" else ():
        if instance.problem not in LIBRARIES[options.library]:
            fit = ", ".join(name for name, kinds in LIBRARIES.items() if instance.problem in kinds)
            raise DrhgError(
                f"library: {options.library} does not solve a {instance.problem.upper()}; "
                f"known: {fit}"
            )
    if not all(i.is_cvrp for i in instances):
        if options.destroy not in ("auto", "cluster", "covering"):
            raise DrhgError(f"destroy {options.destroy!r} is for routes")
        if options.depot_edges != "adjacent":
            raise DrhgError("depot_edges is for routes")
    if repair in NETWORK:
        found = None if options.model == "auto" else weights.load(options.model)
        for instance in instances:
            if instance.metric is Metric.EXPLICIT:
                raise ModelError("a network needs coordinates; this instance is a bare matrix")
            if found is None:
                weights.fitting(instance.n, instance.is_cvrp)
            elif found.config.routes != instance.is_cvrp:
                kind = "routes (CVRP)" if found.config.routes else "tours (TSP)"
                raise ModelError(f"these weights repair {kind} only", file=found.name)
    if options.centres == "grid" and not all(i.metric.planar for i in instances):
        raise DrhgError("a grid of centres needs coordinates of the plane")


def repairer_of(
    repair: str | Repair, instance: Instance, options: RegionOptions, threads: int
) -> tuple[Any, tuple[int, int]]:
    """The repairer of a name, and how many nodes to destroy for it."""
    from drhg import neural
    from drhg.library import LibraryRepair, Polished, usual
    from drhg.repair import InsertionRepair, LocalSearchRepair

    if repair == "library":
        name = usual(instance.is_cvrp) if options.library == "auto" else options.library
        return LibraryRepair(name, threads=threads), ROUTES_K if instance.is_cvrp else LIBRARY_K
    if repair == "hybrid":
        network, k = repairer_of("neural", instance, options, threads)
        return Polished(network, LocalSearchRepair()), k
    if repair == "neural":
        name = options.model
        if name == "auto":
            name = weights.fitting(instance.n, instance.is_cvrp)
        found = weights.load(name)
        model = _network(found, options.device, threads)
        greedy, times = not options.sample, options.alternatives
        repairer = neural.NeuralRepair(model, greedy=greedy, alternatives=times)
        return neural.Guarded(repairer, LocalSearchRepair()), found.k
    known: dict[Any, Any] = {"insertion": InsertionRepair, "local": LocalSearchRepair}
    return known[repair]() if isinstance(repair, str) else repair, weights.K


def _network(found: weights.Weights, device: str, threads: int) -> neural.Scorer:
    """Compiled code where there is some, which needs no torch; else torch, on the device asked."""
    from drhg import neural

    network = None if device == "cuda" else neural.compiled(found.config, found.tensors, threads)
    if network is not None:
        return network
    try:
        from drhg import model
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "torch":
            raise
        raise ModelError(
            "these weights, on this device, need torch: install drhg with its extra `neural`",
            file=str(found.path),
        ) from None
    return model.filled(found.config, found.tensors, device, threads)


def destroy_of(
    options: RegionOptions, repair: str | Repair, routes: bool, k: tuple[int, int], limits: Limits
) -> Destroy:
    """The destroy of a name; by default the paper's, k nodes around a centre.

    A library is slow: of routes it gets whole ones, of a tour what was left alone for longest.
    """
    from drhg import destroy

    name, low_high, edges = options.destroy, options.k or k, options.depot_edges
    if name == "auto":
        name = "cluster"
        if repair == "library" and options.centres == "uniform":
            name = "routes" if routes else "covering"
    side = 0
    if options.centres == "grid":
        side = max(1, round(math.sqrt(limits.max_iters or GRID_ITERS)))
    cluster = destroy.nearest_cluster(*low_high, depot_edges=edges, grid=side)
    if name == "cluster":
        return cluster
    if name == "covering":
        return destroy.Covering(*low_high, depot_edges=edges)
    strings = destroy.adjacent_strings(*low_high, depot_edges=edges)
    whole = destroy.neighbouring_routes(*low_high)
    known: dict[str, Destroy] = {"strings": strings, "routes": whole}
    return destroy.adaptive(cluster, strings, whole) if name == "adaptive" else known[name]


def default_start(instance: Instance, by_region: bool) -> str:
    """The paper's starts for its own loop, better ones for the compiled searches."""
    if instance.is_cvrp:
        return "sweep" if by_region and instance.xy is not None else "savings"
    return "insertion" if by_region else "greedy"


def parts_of(
    instance: Instance, repair: str | Repair, start: str | Solution, options: RegionOptions
) -> list[precompile.Part]:
    """The kernels that a search needs."""
    problem, by_region = instance.problem, repair != "auto"
    parts = []
    if isinstance(start, str):
        name = default_start(instance, by_region) if start == "auto" else start
        if name != "space-filling":
            parts.append(precompile.start(problem, name))
    if not by_region:
        from drhg import route_search, search

        needed = route_search.parts if instance.is_cvrp else search.parts
        return parts + needed(instance)
    if instance.is_cvrp and (instance.vehicles or instance.max_distance):
        parts.append(precompile.ANNEALING)  # it places the customers that a start leaves out
    if repair in NETWORK:
        economy = options.model == "auto" or weights.load(options.model).config.preset == "economy"
        if options.device != "cuda":
            parts.append(
                precompile.regions(problem, str(repair), "auto" if economy else options.model)
            )
    else:  # what others bring along is theirs to compile
        known = repair if repair in ("local", "insertion") else "insertion"
        parts.append(precompile.regions(problem, str(known), "auto"))
    return parts


def rehearse(problem: str, repair: str, model: str) -> None:
    """A few steps of the loop on a tiny instance, to have its kernels compiled or loaded."""
    from drhg import construct, generate, search

    make = generate.uniform_tsp if problem == "tsp" else generate.uniform_cvrp
    instance = make(40, seed=0)
    start, _ = construct.construct(instance, "space-filling", 0)
    options = RegionOptions(model=model)
    repairer, _ = repairer_of(repair, instance, options, 1)
    task = search.task_of(instance, start, 0, 1)
    for name in ("cluster", "covering") if problem == "tsp" else ("cluster", "adaptive"):
        cut = destroy_of(
            RegionOptions(destroy=name), repair, instance.is_cvrp, (5, 15), Limits(max_iters=1)
        )
        steps = search.regions(task, repairer, cut, improve, lambda moment: 3, lambda: 0.5)
        next(steps)

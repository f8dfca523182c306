"""One step of destroy and repair as JSON: every stage that the page draws."""

from __future__ import annotations

from typing import Any

from drhg.errors import DrhgError
from drhg.problem import Instance, Solution, cost, not_known

REPAIRERS = ("local", "neural", "insertion")


def step_film(
    instance: Instance,
    *,
    solution: Solution | None = None,
    repair: str = "local",
    k: int | None = None,
    candidates: int = 1,
    seed: int = 0,
) -> dict[str, Any]:
    """Take a step from a solution, or from a first one, and tell all its stages.

    Of so many candidates, regions at random places, it is the one that gains most. A step is
    accepted if it makes the solution better.

    >>> import drhg
    >>> film = step_film(drhg.uniform_tsp(40, seed=1), k=8)
    >>> sorted(film)[:4]
    ['accepted', 'added', 'after', 'before']
    """
    from drhg.plotting.step import repaired_edges, take_step
    from drhg.search import repairers
    from drhg.service.edges import changed_edges

    if why := not_known("a step of this loop", instance):
        raise DrhgError(why)
    operator = repairers.OPERATORS[repair]()
    step = take_step(
        instance, solution, seed=seed, k=k, candidates=candidates,
        repair=repairers.begun(operator, instance, 1),
    )  # fmt: skip
    size = int(step.graphs.size[0])
    node, partner = step.graphs.node[0, :size].tolist(), step.graphs.partner[0, :size].tolist()
    old, new = cost(instance, step.before), cost(instance, step.after)
    added, removed = changed_edges(instance, step.before, step.after)
    return {
        "before": {"cost": old, "routes": [route.tolist() for route in step.before.routes]},
        "destroyed": step.destroyed.tolist(),
        "cut": [list(edge) for edge in step.cut],
        "isolated": [u for i, u in enumerate(node) if partner[i] == i],
        "pieces": [piece.tolist() for piece in step.pieces],
        "reduced_nodes": size,
        "repair": [list(edge) for edge in repaired_edges(step)],
        "after": {"cost": new, "routes": [route.tolist() for route in step.after.routes]},
        "added": added,
        "removed": removed,
        "change": new - old,
        "accepted": bool(new < old - 1e-9),
    }

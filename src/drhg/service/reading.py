"""From the text of requests to instances and solutions; nothing is ever read from a path."""

from __future__ import annotations

from math import isfinite
from typing import Any

from drhg.errors import InstanceError, SolutionError
from drhg.files.json import instance_from_fields, solution_from_fields
from drhg.files.messages import errors_as, fail
from drhg.files.paths import stem, suffix
from drhg.files.registry import INSTANCES, instance_of_bytes, kind_of_instance, solution_of_bytes
from drhg.files.routes import parse_routes, positions
from drhg.files.stops import instance_of
from drhg.files.tables import parse_table
from drhg.problem import Instance, Metric, Solution
from drhg.service.limits import METHODS, ServiceLimits
from drhg.service.models import GivenInstance, GivenSolution, InstanceRequest, Table
from drhg.session.methods import NAMED


def instance_from(asked: InstanceRequest, limits: ServiceLimits) -> Instance:
    """The instance of a request, within the limits."""
    instance = _instance(asked.instance, asked.name, asked.table)
    if instance.n > limits.nodes:
        raise InstanceError(
            f"{instance.n:,} nodes are more than the {limits.nodes:,} that this service takes"
        )
    return instance


def _instance(given: GivenInstance, name: str | None, table: Table) -> Instance:
    label = name or "instance"
    options = {key: value for key, value in table if value is not None}
    if isinstance(given, dict):
        if options:
            raise InstanceError("table is for a CSV, and the instance is an object")
        return instance_from_fields(given, file="instance")
    data = _bytes(given)
    named = suffix(label) if suffix(label) in INSTANCES else ""
    kind = kind_of_instance(data, named)
    if kind != ".csv":
        if options:
            raise InstanceError(f"table is for a CSV, and the instance is {INSTANCES[kind].what}")
        return instance_of_bytes(data, label, named)
    with errors_as(InstanceError, label):
        return instance_of(parse_table(data), name=stem(label), **options)


def solution_from(given: GivenSolution, instance: Instance, label: str = "solution") -> Solution:
    """The solution of a request; what is wrong with it the checker tells."""
    if isinstance(given, dict):
        return solution_from_fields(given, instance, file=label)
    data = _bytes(given)
    first = data[:1000].split(b"\n")[0].lower()
    if b"route" in first and b"position" in first:
        return parse_routes(data, instance, file=label)
    with errors_as(SolutionError, label):
        if not data.strip():
            fail("the text is empty")
        return solution_of_bytes(data, instance, label)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


_told: dict[tuple[str, str, bool], str | None] = {}


def why_not(method: str, instance: Instance) -> str | None:
    """Why a method cannot solve an instance, or None.

    A network is asked once for each kind of instance, because its weights must be read for that.
    """
    plain = NAMED["auto" if method == "auto" else "local"](instance).supports(instance)
    if plain is not None or method == "auto":
        return plain
    kind = method, instance.family, instance.metric is Metric.EXPLICIT
    if kind not in _told:
        _told[kind] = NAMED[method](instance).supports(instance)
    return _told[kind]


def drawing_of(instance: Instance) -> dict[str, Any]:
    """What a page needs to draw an instance and to name its stops."""
    if instance.is_cvrp and len(instance.depots) > 1:
        fail("several depots are not drawn here; the solution can be had as JSON, CSV or a map")
    known = positions(instance)
    spots = instance.plane if instance.degrees or known is None else known[0]
    scale = instance.demand_scale
    demand, capacity, windows = instance.demand, instance.capacity, instance.windows
    return {
        "name": instance.name,
        "problem": instance.problem,
        "n": instance.n,
        "x": None if spots is None else spots[:, 0].tolist(),
        "y": None if spots is None else spots[:, 1].tolist(),
        "depot": instance.depot if instance.is_cvrp else None,
        "demand": None if demand is None else (demand / scale).tolist(),
        "capacity": None if capacity is None else capacity / scale,
        "names": None if instance.names is None else list(instance.names),
        "integral": instance.integral,
        "returns": instance.returns,
        "windows": None if windows is None else [
            [early, late if isfinite(late) else None] for early, late in windows.tolist()
        ],
        "clock": instance.degrees,
        "methods": [name for name in METHODS if why_not(name, instance) is None],
    }  # fmt: skip

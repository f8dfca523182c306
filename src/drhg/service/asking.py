"""What requests ask for, read and checked, so that nothing fails later.

This runs in a process of its own: to read a large request holds up Python, and those who ask for
something else meanwhile are answered at once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pydantic import ValidationError

from drhg.errors import DrhgError, InstanceError, SolutionError
from drhg.files.messages import errors_as
from drhg.problem import Instance, check, cost, validated
from drhg.service import models
from drhg.service.limits import ServiceLimits
from drhg.service.problems import Refused, invalid
from drhg.service.reading import drawing_of, instance_from, solution_from, why_not
from drhg.service.tasks import Told

Asked = TypeVar("Asked", bound=models.InstanceRequest)
JSON = "application/json"
SMALLEST_STEP = 5  # nodes


@dataclass(frozen=True)
class Sent:
    """A request as it came."""

    body: bytes
    media: str  # its type
    query: Mapping[str, str]


def asked_of(sent: Sent, kind: type[Asked]) -> Asked:
    """A request as JSON, or as the bare text of an instance with everything else as parameters."""
    try:
        if sent.media.startswith("text/") or sent.media == "application/octet-stream":
            return kind.model_validate(_from_text(sent), strict=False)
        return kind.model_validate_json(sent.body)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        if any(one["type"] == "json_invalid" for one in found):
            raise Refused(400, "The body is not JSON", found[0]["msg"]) from None
        raise Told(invalid(found)) from None


def _from_text(sent: Sent) -> dict[str, Any]:
    given: dict[str, Any] = dict(sent.query)
    table = {key: given.pop(key) for key in list(given) if key in models.Table.model_fields}
    try:
        text = sent.body.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = sent.body.decode("cp1252", "replace")  # as spreadsheets write
    return {**given, "instance": text, "table": table}


def solve(sent: Sent, limits: ServiceLimits) -> tuple[Instance, dict[str, Any]]:
    """The instance, and how to solve it: options of `drhg.solve`."""
    asked = asked_of(sent, models.SolveRequest)
    instance = instance_from(asked, limits)
    seconds = limits.default_seconds if asked.seconds is None else asked.seconds
    if seconds > limits.seconds:
        raise Refused(
            422, "Too many seconds",
            f"seconds must be at most {limits.seconds:g} here, not {seconds:g}",
        )  # fmt: skip
    if why := why_not(asked.method, instance):
        raise DrhgError(f"method: {why}")
    options: dict[str, Any] = {
        "time_limit": seconds, "max_iters": asked.iterations, "no_improve": asked.no_improve,
        "target": asked.target, "seed": asked.seed, "method": asked.method,
    }  # fmt: skip
    if asked.start is not None:
        with errors_as(SolutionError, "start"):
            options["start"] = validated(instance, solution_from(asked.start, instance, "start"))
    return instance, options


def verdict(sent: Sent, limits: ServiceLimits) -> dict[str, Any]:
    """What the checker says."""
    asked = asked_of(sent, models.CheckRequest)
    instance = instance_from(asked, limits)
    solution = solution_from(asked.solution, instance)
    found = check(instance, solution)
    return {"valid": not found, "cost": cost(instance, solution), "violations": found[:100]}


def drawing(sent: Sent | Instance, limits: ServiceLimits) -> bytes:
    """An instance as one draws it, as JSON."""
    if isinstance(sent, Sent):
        sent = instance_from(asked_of(sent, models.InstanceRequest), limits)
    return json.dumps(drawing_of(sent)).encode()


def step(sent: Sent, limits: ServiceLimits) -> dict[str, Any]:
    asked = asked_of(sent, models.StepRequest)
    instance = _small_instance(asked, limits)
    if instance.n < SMALLEST_STEP:
        raise InstanceError(f"a step needs at least {SMALLEST_STEP} nodes, not {instance.n}")
    found: dict[str, Any] = {"instance": instance}
    if asked.solution is not None:
        found["solution"] = validated(instance, solution_from(asked.solution, instance))
    names = ("repair", "k", "candidates", "seed")
    return found | {name: getattr(asked, name) for name in names}


def explanation(sent: Sent, limits: ServiceLimits) -> dict[str, Any]:
    asked = asked_of(sent, models.ExplainRequest)
    instance, given = _small_instance(asked, limits), asked.solution
    solution = None if given is None else solution_from(given, instance)
    more = {"region": asked.region, "top": asked.top}
    return {"instance": instance, "solution": solution, **more}


def change(sent: Sent, limits: ServiceLimits) -> dict[str, Any]:
    asked = asked_of(sent, models.ReplanRequest)
    instance, before = _small_instance(asked, limits), None
    if asked.old_instance is not None:
        update = {"instance": asked.old_instance}
        before = _small_instance(asked.model_copy(update=update), limits)
    found: dict[str, Any] = {"instance": instance, "old_instance": before}
    found["old"] = solution_from(asked.old, before or instance, "old")
    found["time_limit"] = asked.seconds
    return found | {name: getattr(asked, name) for name in ("lost", "stability", "seed")}


def _small_instance(asked: models.InstanceRequest, limits: ServiceLimits) -> Instance:
    """An instance of a question that is answered while the client waits."""
    return instance_from(asked, replace(limits, nodes=min(limits.nodes, limits.question_nodes)))


READERS: dict[str, Callable[[Any, ServiceLimits], Any]] = {
    "solve": solve, "verdict": verdict, "drawing": drawing, "step": step,
    "explanation": explanation, "change": change,
}  # fmt: skip

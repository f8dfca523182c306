"""The endpoints."""

from __future__ import annotations

import asyncio
import hashlib
import math
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, Header, Path, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from fastapi.sse import EventSourceResponse, ServerSentEvent
from pydantic import ValidationError

import drhg
from drhg.errors import InstanceError, SolutionError
from drhg.files.json import to_json
from drhg.files.messages import errors_as
from drhg.files.registry import SOLUTIONS, written_as
from drhg.files.routes import route_rows
from drhg.problem import Instance, check, cost, validated
from drhg.problem.solution import Solution
from drhg.service import models, problems
from drhg.service.desk import Desk
from drhg.service.jobs import Job, Order
from drhg.service.limits import METHODS
from drhg.service.metrics import metrics_text
from drhg.service.problems import Refused
from drhg.service.reading import drawing_of, instance_from, solution_from
from drhg.session.methods import strategy_of

Asked = TypeVar("Asked", bound=models.InstanceRequest)
JSON, TEXT = "application/json", "text/plain"
MEDIA_TYPES = {
    ".json": JSON, ".csv": "text/csv", ".geojson": "application/geo+json", ".html": "text/html",
}  # fmt: skip

PROBLEM: dict[str, Any] = {
    "content": {problems.MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
}
REFUSALS: dict[int | str, dict[str, Any]] = {
    400: {"description": "The body is not JSON", **PROBLEM},
    401: {"description": "A token is needed", **PROBLEM},
    408: {"description": "The request took too long to arrive", **PROBLEM},
    413: {"description": "The request is too large", **PROBLEM},
    422: {"description": "The instance, the solution or a field is not valid", **PROBLEM},
    429: {"description": "The queue is full; Retry-After says when to try again", **PROBLEM},
}
UNKNOWN: dict[int | str, dict[str, Any]] = {404: {"description": "Not found", **PROBLEM}}

SMALLEST_STEP = 5  # nodes

router = APIRouter()


async def desk_of(request: Request) -> Desk:
    desk: Desk = request.app.state.desk
    return desk


TheDesk = Annotated[Desk, Depends(desk_of)]


async def job_of(
    desk: TheDesk, id: Annotated[str, Path(description="As POST /solves returned it.")]
) -> Job:
    return await desk.find(id)


TheJob = Annotated[Job, Depends(job_of)]


def body_of(kind: type[models.InstanceRequest], text: bool = False) -> dict[str, Any]:
    """How the description says what a request holds, as the endpoints read bodies themselves."""
    content: dict[str, Any] = {JSON: {"schema": {"$ref": f"#/components/schemas/{kind.__name__}"}}}
    if text:
        content["text/csv"] = {"schema": {"type": "string"}, "example": models.PLACES}
    return {"requestBody": {"required": True, "content": content}}


async def read_body(request: Request, kind: type[Asked]) -> tuple[Asked, bytes]:
    """A request as JSON, or as the bare text of an instance with everything else as parameters."""
    body = await request.body()
    media = request.headers.get("content-type", JSON).partition(";")[0].strip().lower()
    try:
        if media.startswith("text/") or media in ("application/octet-stream",):
            return kind.model_validate(_from_text(request, body), strict=False), body
        return await asyncio.to_thread(kind.model_validate_json, body), body
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        if any(one["type"] == "json_invalid" for one in found):
            raise Refused(400, "The body is not JSON", found[0]["msg"]) from None
        raise RequestValidationError(found) from None


def _from_text(request: Request, body: bytes) -> dict[str, Any]:
    given: dict[str, Any] = dict(request.query_params)
    table = {key: given.pop(key) for key in list(given) if key in models.Table.model_fields}
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = body.decode("cp1252", "replace")  # as spreadsheets write
    return {**given, "instance": text, "table": table}


@router.post(
    "/solves",
    status_code=202,
    response_model=models.SolveState,
    responses=REFUSALS,
    openapi_extra=body_of(models.SolveRequest, text=True),
    tags=["solve"],
)
async def begin_a_solve(
    request: Request,
    response: Response,
    desk: TheDesk,
    idempotency_key: Annotated[
        str | None, Header(max_length=200, description="The same key gives the same solve.")
    ] = None,
) -> dict[str, Any]:
    """Queue a solve.

    The body is JSON, or the bare text of an instance, with the other fields as parameters of the
    query: `curl --data-binary @stops.csv -H 'content-type: text/csv'
    'localhost:8000/solves?seconds=5&capacity=20'`.
    """
    if idempotency_key is None:
        desk.check_room()
    asked, body = await read_body(request, models.SolveRequest)
    digest = hashlib.sha256(body + str(request.query_params).encode()).hexdigest()
    job = None if idempotency_key is None else await desk.known(idempotency_key)
    if job is None:
        desk.check_room()
        order = await asyncio.to_thread(order_of, asked, desk, digest, idempotency_key)
        job = await desk.submit(order)
    else:
        desk.same(job, digest)
        response.headers["Idempotent-Replayed"] = "true"
    response.headers["Location"] = f"/solves/{job.id}"
    return shown(desk, job)


def order_of(asked: models.SolveRequest, desk: Desk, digest: str, key: str | None) -> Order:
    """What a request asks, all of it checked, so that nothing fails later."""
    limits = desk.limits
    instance = instance_from(asked, limits)
    seconds = limits.default_seconds if asked.seconds is None else asked.seconds
    if seconds > limits.seconds:
        raise Refused(
            422, "Too many seconds",
            f"seconds must be at most {limits.seconds:g} here, not {seconds:g}",
        )  # fmt: skip
    strategy_of(asked.method, instance)
    options: dict[str, Any] = {
        "time_limit": seconds, "max_iters": asked.iterations, "no_improve": asked.no_improve,
        "target": asked.target, "seed": asked.seed, "method": asked.method,
    }  # fmt: skip
    if asked.start is not None:
        with errors_as(SolutionError, "start"):
            options["start"] = validated(instance, solution_from(asked.start, instance, "start"))
    return Order(instance, options, digest, key)


def shown(desk: Desk, job: Job) -> dict[str, Any]:
    kinds = written_as(SOLUTIONS, job.order.instance.problem)
    files = {kind: f"/solves/{job.id}/files/solution{kind}" for kind in kinds}
    return job.shown(desk.ahead(job), files)


@router.get("/solves/{id}", response_model=models.SolveState, responses=UNKNOWN, tags=["solve"])
async def look_at_a_solve(desk: TheDesk, job: TheJob) -> dict[str, Any]:
    """Its state, and the best so far."""
    return shown(desk, job)


@router.delete("/solves/{id}", response_model=models.SolveState, responses=UNKNOWN, tags=["solve"])
async def stop_a_solve(desk: TheDesk, job: TheJob) -> dict[str, Any]:
    """Stop it, and return the best so far. One that has ended stays as it is."""
    await desk.stop(job)
    return shown(desk, job)


@router.get(
    "/solves/{id}/instance", response_model=models.Drawing, responses=UNKNOWN, tags=["solve"]
)
async def instance_of_a_solve(job: TheJob) -> Response:
    """The instance, as one draws it."""
    return JSONResponse(await asyncio.to_thread(drawing_of, job.order.instance))


@router.get(
    "/solves/{id}/files/{name}",
    responses={**UNKNOWN, 200: {"content": {"*/*": {}}, "description": "The file"}},
    response_class=Response,
    tags=["solve"],
)
async def download(
    job: TheJob,
    name: Annotated[str, Path(description="solution.csv, solution.json, solution.html, ...")],
) -> Response:
    """The best solution as a file, or the instance as `instance.json`."""
    suffix = "." + name.rpartition(".")[2]
    instance = job.order.instance
    if name == "instance.json":
        return Response(await asyncio.to_thread(to_json, instance), media_type=JSON)
    if suffix not in written_as(SOLUTIONS, instance.problem):
        kinds = ", ".join(written_as(SOLUTIONS, instance.problem))
        raise Refused(404, "Not found", f"no such file; solutions end in {kinds}")
    if job.best is None:
        raise Refused(404, "Not found", "there is no solution yet")
    text = await asyncio.to_thread(_file, instance, job.best.solution, suffix)
    label = re.sub(r"[^A-Za-z0-9_.-]+", "_", instance.name)[:80].strip("._") or "solution"
    headers = {"Content-Disposition": f'attachment; filename="{label}{suffix}"'}
    return Response(text, headers=headers, media_type=MEDIA_TYPES.get(suffix, TEXT))


def _file(instance: Instance, solution: Solution, suffix: str) -> bytes:
    write = SOLUTIONS[suffix].write
    assert write is not None
    return write(instance, solution, cost(instance, solution), None).encode("utf-8", "replace")


@router.get(
    "/solves/{id}/routes", response_model=list[models.RouteShown], responses=UNKNOWN, tags=["solve"]
)
async def routes_of_a_solve(job: TheJob) -> list[dict[str, Any]]:
    """What each route of the best carries and how long it is."""
    return [] if job.best is None else await asyncio.to_thread(_rows, job)


def _rows(job: Job) -> list[dict[str, Any]]:
    assert job.best is not None
    solution = job.best.solution
    rows = zip(route_rows(job.order.instance, solution), solution.routes, strict=True)
    return [vars(row) | {"nodes": route[[0, -1]].tolist()} for row, route in rows]


async def place_in_the_audience(request: Request, desk: TheDesk) -> AsyncIterator[None]:
    """One of the streams that may be open at a time."""
    state = request.app.state
    if state.streams >= desk.limits.streams:
        raise Refused(429, "Too many followers", "try again later", {"Retry-After": "5"})
    state.streams += 1
    try:
        yield
    finally:
        state.streams -= 1


@router.get(
    "/solves/{id}/events",
    response_class=EventSourceResponse,
    responses={**UNKNOWN, 429: REFUSALS[429]},
    tags=["solve"],
)
async def follow_a_solve(
    request: Request,
    desk: TheDesk,
    job: TheJob,
    place: Annotated[None, Depends(place_in_the_audience)],
    last_event_id: Annotated[str | None, Header(description="Go on after this event.")] = None,
) -> AsyncIterator[ServerSentEvent]:
    """Everything that happens, as server-sent events.

    `state`: it begins. `improvement`: a better solution, as its cost, the seconds, and the edges
    added and removed since the last one. `snapshot`: the whole best solution and the trace, for
    those who come late or were away for too long. `end`: how it ended; the stream closes.
    """
    given = last_event_id or ""
    after = int(given) if given.isascii() and given.isdecimal() and len(given) < 16 else 0
    while True:
        events = job.since(after)
        if events is None:
            events = [job.snapshot()]
        if job.over and not (events and events[-1].name == "end"):
            events += list(job.events)[-1:]
        for event in events:
            yield ServerSentEvent(data=event.data, event=event.name, id=str(event.id), retry=500)
            after = event.id
            if event.name == "end":
                return
        if desk.closing:
            return
        if job.last_id == after:
            await job.news()


@router.post(
    "/check",
    response_model=models.Verdict,
    responses=REFUSALS,
    openapi_extra=body_of(models.CheckRequest),
    tags=["look"],
)
async def check_a_solution(request: Request, desk: TheDesk) -> dict[str, Any]:
    """The cost of a solution, or everything that is wrong with it."""
    asked, _ = await read_body(request, models.CheckRequest)
    return await asyncio.to_thread(_verdict, asked, desk)


def _verdict(asked: models.CheckRequest, desk: Desk) -> dict[str, Any]:
    instance = instance_from(asked, desk.limits)
    solution = solution_from(asked.solution, instance)
    found = check(instance, solution)
    return {"valid": not found, "cost": cost(instance, solution), "violations": found[:100]}


@router.post(
    "/describe",
    response_model=models.Drawing,
    responses=REFUSALS,
    openapi_extra=body_of(models.InstanceRequest, text=True),
    tags=["look"],
)
async def describe_an_instance(request: Request, desk: TheDesk) -> Response:
    """Read an instance and return it as one draws it, without solving it."""
    asked, _ = await read_body(request, models.InstanceRequest)
    instance = await asyncio.to_thread(instance_from, asked, desk.limits)
    return JSONResponse(await asyncio.to_thread(drawing_of, instance))


@router.post(
    "/steps",
    response_model=models.Film,
    responses=REFUSALS,
    openapi_extra=body_of(models.StepRequest),
    tags=["look"],
)
async def take_a_step(request: Request, desk: TheDesk) -> Response:
    """One step of destroy and repair, stage by stage."""
    asked, _ = await read_body(request, models.StepRequest)
    arguments = await asyncio.to_thread(_step_of, asked, desk)
    return JSONResponse(await desk.ask("film", arguments))


def _small_instance(asked: models.InstanceRequest, desk: Desk) -> Instance:
    """An instance of a question that is answered while the client waits."""
    limits = desk.limits
    return instance_from(asked, replace(limits, nodes=min(limits.nodes, limits.question_nodes)))


def _step_of(asked: models.StepRequest, desk: Desk) -> dict[str, Any]:
    instance = _small_instance(asked, desk)
    if instance.n < SMALLEST_STEP:
        raise InstanceError(f"a step needs at least {SMALLEST_STEP} nodes, not {instance.n}")
    found: dict[str, Any] = {"instance": instance}
    if asked.solution is not None:
        found["solution"] = validated(instance, solution_from(asked.solution, instance))
    names = ("repair", "k", "candidates", "seed")
    return found | {name: getattr(asked, name) for name in names}


@router.post(
    "/explain",
    response_model=dict[str, Any],
    responses=REFUSALS,
    openapi_extra=body_of(models.ExplainRequest),
    tags=["look"],
)
async def explain_a_solution(request: Request, desk: TheDesk) -> Response:
    """What each stop costs, what else there is, and what is in the way; as `drhg explain` says."""
    asked, _ = await read_body(request, models.ExplainRequest)
    arguments = await asyncio.to_thread(_explanation_of, asked, desk)
    return JSONResponse(plain_numbers(await desk.ask("explain", arguments)))


def _explanation_of(asked: models.ExplainRequest, desk: Desk) -> dict[str, Any]:
    instance, given = _small_instance(asked, desk), asked.solution
    solution = None if given is None else solution_from(given, instance)
    more = {"region": asked.region, "top": asked.top}
    return {"instance": instance, "solution": solution, **more}


@router.post(
    "/replan",
    response_model=dict[str, Any],
    responses=REFUSALS,
    openapi_extra=body_of(models.ReplanRequest),
    tags=["solve"],
)
async def change_a_plan(request: Request, desk: TheDesk) -> Response:
    """Change a plan for a problem that has changed, and only where it has; as `drhg replan`."""
    asked, _ = await read_body(request, models.ReplanRequest)
    arguments = await asyncio.to_thread(_change_of, asked, desk)
    return JSONResponse(plain_numbers(await desk.ask("replan", arguments)))


def _change_of(asked: models.ReplanRequest, desk: Desk) -> dict[str, Any]:
    instance, before = _small_instance(asked, desk), None
    if asked.old_instance is not None:
        before = _small_instance(asked.model_copy(update={"instance": asked.old_instance}), desk)
    found: dict[str, Any] = {"instance": instance, "old_instance": before}
    found["old"] = solution_from(asked.old, before or instance, "old")
    found["time_limit"] = asked.seconds
    return found | {name: getattr(asked, name) for name in ("lost", "stability", "seed")}


def plain_numbers(value: Any) -> Any:
    """The same without infinities, which JSON does not know: they become null."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: plain_numbers(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain_numbers(one) for one in value]
    return value


@router.get("/healthz", response_model=models.Health, tags=["service"])
async def health(desk: TheDesk) -> dict[str, Any]:
    """Whether the service is alive; `status` is `warming` until a worker has its kernels."""
    return {
        "status": "ready" if desk.ready else "warming", "workers": len(desk.workers),
        "ready": desk.ready, "version": drhg.__version__,
    }  # fmt: skip


@router.get(
    "/readyz",
    response_model=models.Health,
    responses={503: {"model": models.Health, "description": "Kernels are being loaded"}},
    tags=["service"],
)
async def readiness(desk: TheDesk, response: Response) -> dict[str, Any]:
    """The same with status 503 until a worker has its kernels. Solves may be queued before."""
    response.status_code = 200 if desk.ready else 503
    return await health(desk)


@router.get("/limits", response_model=models.LimitsShown, tags=["service"])
async def limits(desk: TheDesk) -> dict[str, Any]:
    """What may be asked for."""
    names = ("nodes", "seconds", "default_seconds", "body", "queue", "keep_seconds", "keep_results")
    found = {name: getattr(desk.limits, name) for name in names}
    more = {"workers": len(desk.workers), "store": desk.store is not None}
    return found | more | {"methods": list(METHODS)}


@router.get("/metrics", response_class=PlainTextResponse, tags=["service"])
async def metrics(request: Request, desk: TheDesk) -> PlainTextResponse:
    """Numbers for Prometheus."""
    state = request.app.state
    text = metrics_text(desk, state.counts, state.streams)
    return PlainTextResponse(text, media_type="text/plain; version=0.0.4")

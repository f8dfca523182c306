"""The endpoints."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, Header, Path, Request
from fastapi.responses import PlainTextResponse, Response
from fastapi.sse import EventSourceResponse, ServerSentEvent

import drhg
from drhg.files.json import to_json
from drhg.files.registry import SOLUTIONS, written_as
from drhg.files.routes import knows_times, route_rows, stops_of
from drhg.problem import Instance, cost
from drhg.problem.solution import Solution
from drhg.service import models, problems
from drhg.service.asking import Sent
from drhg.service.desk import Desk
from drhg.service.jobs import Job, Order
from drhg.service.limits import METHODS
from drhg.service.metrics import metrics_text
from drhg.service.problems import Refused

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


async def sent_in(request: Request) -> Sent:
    media = request.headers.get("content-type", JSON).partition(";")[0].strip().lower()
    return Sent(await request.body(), media, dict(request.query_params))


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
    sent = await sent_in(request)
    digest = hashlib.sha256(sent.body + str(request.query_params).encode()).hexdigest()
    job = None if idempotency_key is None else await desk.known(idempotency_key)
    if job is None:
        instance, options = await desk.read_order(sent)
        job = await desk.submit(Order(instance, options, digest, idempotency_key))
    else:
        desk.same(job, digest)
        response.headers["Idempotent-Replayed"] = "true"
    response.headers["Location"] = f"/solves/{job.id}"
    return shown(desk, job)


def shown(desk: Desk, job: Job) -> dict[str, Any]:
    files = {kind: f"/solves/{job.id}/files/solution{kind}" for kind in job.order.files}
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
async def instance_of_a_solve(desk: TheDesk, job: TheJob) -> Response:
    """The instance, as one draws it."""
    return Response(await desk.read("drawing", job.order.instance), media_type=JSON)


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
    if suffix not in written_as(SOLUTIONS, instance.family):
        kinds = ", ".join(written_as(SOLUTIONS, instance.family))
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
    instance = job.order.instance
    rows = [vars(row) for row in route_rows(instance, solution)]
    for row, route in zip(rows, solution.routes, strict=True):
        row["nodes"] = route[[0, -1]].tolist()
    if knows_times(instance):
        for row in rows:
            row["arrivals"] = []
        for stop in stops_of(instance, solution):
            rows[stop.route - 1]["arrivals"].append(stop.arrival)
    return rows


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
            id = str(event.id)
            yield ServerSentEvent(raw_data=event.data, event=event.name, id=id, retry=500)
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
    found: dict[str, Any] = await desk.read("verdict", await sent_in(request))
    return found


@router.post(
    "/describe",
    response_model=models.Drawing,
    responses=REFUSALS,
    openapi_extra=body_of(models.InstanceRequest, text=True),
    tags=["look"],
)
async def describe_an_instance(request: Request, desk: TheDesk) -> Response:
    """Read an instance and return it as one draws it, without solving it."""
    return Response(await desk.read("drawing", await sent_in(request)), media_type=JSON)


@router.post(
    "/steps",
    response_model=models.Film,
    responses=REFUSALS,
    openapi_extra=body_of(models.StepRequest),
    tags=["look"],
)
async def take_a_step(request: Request, desk: TheDesk) -> Response:
    """One step of destroy and repair, stage by stage."""
    found = await desk.ask("film", "step", await sent_in(request))
    return Response(found, media_type=JSON)


@router.post(
    "/explain",
    response_model=dict[str, Any],
    responses=REFUSALS,
    openapi_extra=body_of(models.ExplainRequest),
    tags=["look"],
)
async def explain_a_solution(request: Request, desk: TheDesk) -> Response:
    """What each stop costs, what else there is, and what is in the way; as `drhg explain` says."""
    found = await desk.ask("explain", "explanation", await sent_in(request))
    return Response(found, media_type=JSON)


@router.post(
    "/replan",
    response_model=dict[str, Any],
    responses=REFUSALS,
    openapi_extra=body_of(models.ReplanRequest),
    tags=["solve"],
)
async def change_a_plan(request: Request, desk: TheDesk) -> Response:
    """Change a plan for a problem that has changed, and only where it has; as `drhg replan`."""
    found = await desk.ask("replan", "change", await sent_in(request))
    return Response(found, media_type=JSON)


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

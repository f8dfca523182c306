"""The application: endpoints, errors, the guard and the page, put together."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from importlib import resources
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.responses import Response

import drhg
from drhg.service import models, problems, routes
from drhg.service.desk import Desk
from drhg.service.guard import Counts, Guard
from drhg.service.limits import ServiceLimits
from drhg.service.store import Store

PAGE_TYPES = {
    ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml", ".csv": "text/csv; charset=utf-8",
}  # fmt: skip
READERS = 2  # threads
SWITCH_SECONDS = 0.0005  # after which a thread lets others go on
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def create_app(
    limits: ServiceLimits | None = None,
    *,
    workers: int = 1,
    store: Path | None = None,
    token: str | None = None,
    hosts: frozenset[str] | None = None,
) -> FastAPI:
    """The service as an application of ASGI; its workers begin with it."""
    limits = limits or ServiceLimits()
    kept = None if store is None else Store(store, limits)

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        # few threads read requests, and they give way often, so that answers do not wait for them
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(READERS))
        sys.setswitchinterval(SWITCH_SECONDS)
        app.state.desk = desk = Desk(limits, workers, kept)
        await desk.open()
        try:
            yield
        finally:
            await desk.close()

    app = FastAPI(
        title="drhg",
        version=drhg.__version__,
        summary="Tours and routes by destroy and repair on hyper-graphs.",
        lifespan=life,
        docs_url=None,  # its pages load scripts from elsewhere
        redoc_url=None,
    )
    app.state.counts, app.state.streams = Counts(), 0
    app.include_router(routes.router)
    problems.install(app)
    files = page_files()

    @app.get("/", include_in_schema=False)
    @app.get("/page/{name}", include_in_schema=False)
    async def page(name: str = "index.html") -> Response:
        if name not in files:
            raise problems.Refused(404, "Not found", "the page has no such file")
        kind = PAGE_TYPES["." + name.rpartition(".")[2]]
        headers = {"Content-Security-Policy": POLICY, "Cache-Control": "no-cache"}
        return Response(files[name], headers=headers, media_type=kind)

    app.add_middleware(
        Guard, limits=limits, counts=app.state.counts, token=token, hosts=hosts,
        is_page=lambda path: path == "/" or path.startswith("/page/"),
        check_room=lambda method, path: app.state.desk.check_room(method, path),
    )  # fmt: skip
    _describe(app)
    return app


def page_files() -> dict[str, bytes]:
    """The files of the page, by name."""
    folder = resources.files("drhg.service").joinpath("page")
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


def _describe(app: FastAPI) -> None:
    """The OpenAPI description, with the models that endpoints read by themselves."""
    usual = app.openapi
    kinds = (
        models.SolveRequest, models.CheckRequest, models.StepRequest, models.ExplainRequest,
        models.ReplanRequest, models.InstanceRequest, models.Problem,
    )  # fmt: skip

    def described() -> dict[str, Any]:
        if app.openapi_schema is None:
            found = usual()
            schemas = found["components"]["schemas"]
            for kind in kinds:
                schema = kind.model_json_schema(ref_template="#/components/schemas/{model}")
                schemas.update(schema.pop("$defs", {}))
                schemas[kind.__name__] = schema
        schema_of: dict[str, Any] = usual()
        return schema_of

    app.openapi = described  # type: ignore[method-assign]

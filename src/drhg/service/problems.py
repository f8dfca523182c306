"""Errors as RFC 9457 has them, all of one kind: `application/problem+json`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from drhg.errors import DrhgError, InstanceError, ModelError, SolutionError
from drhg.service.tasks import Told

MEDIA_TYPE = "application/problem+json"
TITLES = {
    InstanceError: "The instance is not valid",
    SolutionError: "The solution is not valid",
    ModelError: "The network cannot be used",
    DrhgError: "The request cannot be done",
}


class Refused(Exception):
    """A request that is refused with a status of HTTP."""

    def __init__(
        self, status: int, title: str, detail: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.status, self.title, self.detail = status, title, detail
        self.headers = dict(headers or {})


def problem_of(error: Exception) -> dict[str, Any]:
    """What is said of an error, with its kind, its line and its remedy."""
    if isinstance(error, Refused):
        name = error.title.lower().replace(" ", "-")
        return _problem(name, error.title, error.status, error.detail)
    if isinstance(error, Told):
        return error.problem
    if isinstance(error, DrhgError):
        kind = next(kind for kind in TITLES if isinstance(error, kind))
        found = _problem(kind.__name__, TITLES[kind], 422, str(error))
        return found if error.line is None else found | {"line": error.line}
    return _problem("internal", "Unexpected error", 500, f"{type(error).__name__}: {error}")


def _problem(name: str, title: str, status: int, detail: str) -> dict[str, Any]:
    return {
        "type": f"urn:drhg:problem:{name}", "title": title, "status": status, "detail": detail,
    }  # fmt: skip


def answer(problem: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> Response:
    text = json.dumps(problem, ensure_ascii=False).encode("utf-8", "replace")
    return Response(text, problem["status"], headers, media_type=MEDIA_TYPE)


def install(app: FastAPI) -> None:
    """Have every error of the application answered in this form."""

    async def expected(request: Request, error: Exception) -> Response:
        headers = error.headers if isinstance(error, Refused) else None
        return answer(problem_of(error), headers)

    async def wrong(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return answer(invalid(error.errors()))

    async def plain(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        title = str(error.detail).capitalize()
        what = f"{request.method} {request.url.path}"[:200]
        detail = f"{what} is not known here; /openapi.json lists all that is"
        found = _problem(title.lower().replace(" ", "-"), title, error.status_code, detail)
        return answer(found, error.headers)

    app.add_exception_handler(Refused, expected)
    app.add_exception_handler(DrhgError, expected)
    app.add_exception_handler(Told, expected)
    app.add_exception_handler(Exception, expected)
    app.add_exception_handler(RequestValidationError, wrong)
    app.add_exception_handler(HTTPException, plain)


EITHER = ("str", "dict[str,any]")  # where an instance or a solution may be a text or an object


def invalid(errors: Sequence[Any]) -> dict[str, Any]:
    """Which fields of a request are wrong; the values themselves are not repeated."""
    reasons: dict[str, str] = {}
    for one in errors:
        plain = [str(part) for part in one["loc"] if part not in EITHER]
        either = len(plain) < len(one["loc"])
        reasons.setdefault(".".join(plain), "must be a text or an object" if either else one["msg"])
    found = [{"field": field, "reason": reason} for field, reason in reasons.items()][:20]
    first = found[0] if found else {"field": "request", "reason": "not valid"}
    detail = f"{first['field']}: {first['reason']}"
    if len(reasons) > 1:
        detail += f" (and {len(reasons) - 1} more)"
    return _problem("invalid-request", "The request is not valid", 422, detail) | {"errors": found}

"""What every request passes first: who may ask, how large a request may be, how long it may take.

It is written for the server's interface (ASGI) and not for FastAPI, so that a request that is too
large is refused before anybody reads it.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import time
from collections import Counter
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from drhg.service.limits import ServiceLimits
from drhg.service.problems import MEDIA_TYPE, Refused, problem_of

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

OPEN = ("/healthz", "/readyz")  # asked by those who have no token
DRAINED = 8  # bodies' worth of a request that is too large are read and dropped
HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
]


@dataclass
class Counts:
    """Requests so far."""

    requests: Counter[tuple[str, int]] = field(default_factory=Counter)  # by method and status
    seconds: float = 0.0  # until the answer began


class Guard:
    """Refuses what is not for this service, and counts."""

    def __init__(
        self, app: App, limits: ServiceLimits, counts: Counts,
        token: str | None = None, hosts: frozenset[str] | None = None, *,
        is_page: Callable[[str], bool] = lambda path: False,
        check_room: Callable[[str, str], None] = lambda method, path: None,
    ) -> None:  # fmt: skip
        """`check_room` refuses what there is no room for, by method and path."""
        self.app, self.limits, self.counts = app, limits, counts
        self.token, self.hosts = token, hosts
        self.is_page, self.check_room = is_page, check_room

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status = time.perf_counter(), 0

        async def counted(message: MutableMapping[str, Any]) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), *HEADERS]
                self.counts.requests[scope["method"], status] += 1
                self.counts.seconds += time.perf_counter() - began
            await send(message)

        try:
            headers = {name.lower(): value for name, value in scope["headers"]}
            self._check(scope, headers)
            await self.app(scope, self._limited(receive), counted)
        except Refused as refused:
            if not status:
                await self._refuse(refused, receive, counted)

    def _check(self, scope: Scope, headers: dict[bytes, bytes]) -> None:
        host = headers.get(b"host", b"").decode("latin-1")
        if self.hosts is not None and _name(host) not in self.hosts:
            raise Refused(421, "Unknown host", f"this service is not called {host[:80]!r}")
        origin = headers.get(b"origin", b"").decode("latin-1")
        if origin and urlsplit(origin).netloc != host:
            raise Refused(403, "Foreign origin", "requests from other sites' pages are refused")
        path = scope["path"]
        if self.token is not None and path not in OPEN and not self.is_page(path):
            given = headers.get(b"authorization", b"").decode("latin-1").removeprefix("Bearer ")
            if not hmac.compare_digest(given.encode(), self.token.encode()):
                raise Refused(
                    401, "A token is needed", "send the header Authorization: Bearer TOKEN",
                    {"WWW-Authenticate": "Bearer"},
                )  # fmt: skip
        length = headers.get(b"content-length", b"0")
        if length.isdigit() and int(length) > self.limits.body:
            raise self._too_large()
        if b"idempotency-key" not in headers:  # else it may have been let in before
            self.check_room(scope["method"], path)

    def _too_large(self) -> Refused:
        return Refused(
            413, "The request is too large", f"at most {self.limits.body:,} bytes are taken",
            {"Connection": "close"},
        )  # fmt: skip

    def _limited(self, receive: Receive) -> Receive:
        """The body, as long as it is neither too large nor too slow."""
        left, until = self.limits.body, time.monotonic() + self.limits.body_seconds
        whole = False

        async def limited() -> MutableMapping[str, Any]:
            nonlocal left, whole
            if whole:  # only the end of the connection is still to come
                return await receive()
            try:
                async with asyncio.timeout(max(0.0, until - time.monotonic())):
                    message = await receive()
            except TimeoutError:
                raise Refused(
                    408, "The request is too slow",
                    f"a request must arrive within {self.limits.body_seconds:g} s",
                    {"Connection": "close"},
                ) from None  # fmt: skip
            if message["type"] == "http.request":
                left -= len(message.get("body", b""))
                whole = not message.get("more_body", False)
                if left < 0:
                    raise self._too_large()
            return message

        return limited

    async def _refuse(self, refused: Refused, receive: Receive, send: Send) -> None:
        """Answer at once; then read on for a while, or many clients never see the answer."""
        body = json.dumps(problem_of(refused)).encode()
        headers = [(b"content-type", MEDIA_TYPE.encode()), (b"content-length", b"%d" % len(body))]
        headers += [(k.lower().encode(), v.encode()) for k, v in refused.headers.items()]
        start = {"type": "http.response.start", "status": refused.status, "headers": headers}
        await send(start)
        await send({"type": "http.response.body", "body": body, "more_body": True})
        if refused.status == 413:
            left = DRAINED * self.limits.body
            with suppress(TimeoutError):
                async with asyncio.timeout(self.limits.body_seconds):
                    while left > 0:
                        message = await receive()
                        left -= len(message.get("body", b""))
                        if not message.get("more_body", False):
                            break
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def _name(host: str) -> str:
    """The name in a Host header, without the port."""
    return (
        host.rpartition(":")[0].lower()
        if not host.endswith("]") and ":" in host
        else (host.lower())
    )

"""The server that listens: uvicorn, with patience for clients limited."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from drhg.errors import DrhgError
from drhg.service.app import create_app
from drhg.service.limits import ServiceLimits

LOOPBACK = ("127.0.0.1", "::1", "localhost")
GOODBYE = 2  # seconds that connections have to close at the end
BACKLOG = 512


class PatientProtocol(H11Protocol):
    """HTTP/1.1 in which headers, too, must arrive in time: half-open clients are let go."""

    patience = 20.0  # seconds

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._idle_since: object = self  # the last request when it was last looked at
        self._watch = self.loop.call_later(self.patience / 2, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        self._watch.cancel()
        super().connection_lost(exc)

    def _look(self) -> None:
        """Close a connection on which no request has begun since the last look."""
        idle = self.cycle is None or self.cycle.response_complete
        if idle and self._idle_since is self.cycle:
            self.transport.close()
            return
        self._idle_since = self.cycle if idle else self
        self._watch = self.loop.call_later(self.patience / 2, self._look)


class Server(uvicorn.Server):
    """Lets go of those who follow events as soon as it is told to end."""

    def __init__(self, config: uvicorn.Config, app: FastAPI) -> None:
        super().__init__(config)
        self._app = app

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        desk = getattr(self._app.state, "desk", None)
        if desk is not None:
            desk.begin_closing()


def bound(host: str, port: int) -> socket.socket:
    """A socket that listens there, or why there is none."""
    kind = socket.AF_INET6 if ":" in host else socket.AF_INET
    # named, or asyncio does not know that it is TCP and leaves small packets waiting for 40 ms
    listening = socket.socket(kind, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(BACKLOG)  # who comes early waits
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise DrhgError(f"cannot listen on {host} port {port}: {reason}") from None
    return listening


def read_token(path: Path) -> str:
    """The token in a file: its only line."""
    try:
        token = path.read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a text file"
        raise DrhgError(f"cannot read the token: {reason}", file=str(path)) from None
    if len(token) < 16 or not token.isascii() or len(token.split()) != 1:
        raise DrhgError(
            "a token is one line of at least 16 letters and digits, such as "
            "`openssl rand -hex 32` prints", file=str(path),
        )  # fmt: skip
    return token


def serve(
    listening: socket.socket,
    limits: ServiceLimits,
    *,
    workers: int,
    store: Path | None = None,
    token: str | None = None,
    quiet: bool = False,
    **more: Any,
) -> None:
    """Listen until a signal comes."""
    host = str(listening.getsockname()[0])
    loopback = host in LOOPBACK
    if not loopback and token is None:
        raise DrhgError(
            f"on {host} others can reach this service: give it a token (--token-file), or listen "
            "on 127.0.0.1"
        )
    hosts = frozenset((*LOOPBACK, "[::1]")) if loopback and token is None else None
    app = create_app(limits, workers=workers, store=store, token=token, hosts=hosts)
    config = uvicorn.Config(
        app, http=PatientProtocol, ws="none", lifespan="on", backlog=BACKLOG, server_header=False,
        log_level="error" if quiet else "warning", access_log=False,
        timeout_keep_alive=15, timeout_graceful_shutdown=GOODBYE,
    )  # fmt: skip
    PatientProtocol.patience = limits.body_seconds
    Server(config, app).run(sockets=[listening])

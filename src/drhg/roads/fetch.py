"""One request to a server over HTTP, tried again where that may help."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from drhg.errors import DrhgError
from drhg.roads.servers import Server

PASSING = (429, 500, 502, 503, 504)  # too many requests, or a server that is not well just now
LONGEST_WAIT = 60.0  # seconds, whatever the server says
LARGEST_ANSWER = 256 * 2**20  # bytes


def fetch(
    server: Server,
    request: Request,
    *,
    attempts: int,
    wait: float,
    timeout: float,
    notice: Callable[[str], None],
    sleep: Callable[[float], None] = time.sleep,
) -> Any:
    """The JSON of the server's answer; connection errors and busy servers are tried again."""
    request.add_header("User-Agent", "drhg")
    request.add_header("Accept", "application/json")
    for attempt in range(1, attempts + 1):
        pause = wait * 2 ** (attempt - 1)
        try:
            with urlopen(request, timeout=timeout) as stream:
                return _json_of(stream.read(LARGEST_ANSWER + 1))
        except HTTPError as error:
            with error:
                told = _json_or_none(error.read(65536))
            if error.code not in PASSING:
                server.refuse(error.code, told)
            reason = f"HTTP {error.code}"
            after = error.headers.get("Retry-After", "")
            pause = max(pause, float(after)) if after.isdigit() else pause
        except (URLError, OSError, http.client.HTTPException, _Unreadable) as error:
            reason = _reason(error)
        if attempt < attempts:
            pause = min(pause, LONGEST_WAIT)
            notice(f"no answer from {server.label} ({reason}); again in {pause:g} s")
            sleep(pause)
    raise DrhgError(
        f"no answer from {server.label} in {attempts} attempts ({reason}). Is it running, and is "
        "the address right?"
    )


class _Unreadable(Exception):
    """An answer that is cut short, or of something else than a routing server."""


def _json_of(data: bytes) -> Any:
    if len(data) > LARGEST_ANSWER:
        raise DrhgError(f"the answer has more than {LARGEST_ANSWER} bytes")
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise _Unreadable("the answer is no JSON") from None


def _json_or_none(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _reason(error: Exception) -> str:
    inner = getattr(error, "reason", None)
    found = inner if isinstance(inner, Exception) else error
    if isinstance(found, TimeoutError):
        return "timed out"
    return getattr(found, "strerror", None) or str(found) or type(found).__name__

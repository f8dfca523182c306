"""How routing servers are asked for a table of distances and durations, and what they answer."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol, TypeAlias
from urllib.parse import urlencode, urlsplit, urlunsplit
from urllib.request import Request

import numpy as np

from drhg.errors import DrhgError
from drhg.problem import Floats
from drhg.problem.arguments import shown

Place: TypeAlias = tuple[float, float]  # latitude and longitude in decimal degrees
Block: TypeAlias = tuple[Floats, Floats]  # metres and seconds; nan where there is no road


class TooBig(DrhgError):
    """The server takes fewer stops per request."""


class Unreachable(DrhgError):
    """The server found no road near one of the places of a request, counted from 0 if it says."""

    def __init__(self, reason: str, place: int | None = None) -> None:
        super().__init__(reason)
        self.place = place


class Server(Protocol):
    """A routing server: how to ask it, and how to read what it says."""

    @property
    def label(self) -> str:
        """What it is called in messages and in the cache; without the user's key, if any."""

    def request(self, sources: Sequence[Place], targets: Sequence[Place]) -> Request: ...

    def answer(self, data: Any, shape: tuple[int, int]) -> Block:
        """Metres and seconds in the JSON of an answer."""

    def refuse(self, status: int, data: Any) -> NoReturn:
        """Raise what the JSON of an error says."""


@dataclass(frozen=True)
class Osrm:
    """A server of the Open Source Routing Machine; the profile is often driving, cycling, foot.

    >>> Osrm("https://osrm.example.org/").label
    'osrm osrm.example.org driving'
    """

    url: str
    profile: str = "driving"

    def __post_init__(self) -> None:
        _address(self.url)
        if not (isinstance(self.profile, str) and re.fullmatch(r"[\w.-]+", self.profile)):
            raise DrhgError(f"profile must be a word such as driving, not {shown(self.profile)}")

    @property
    def label(self) -> str:
        return f"osrm {_where(self.url)} {self.profile}"

    def request(self, sources: Sequence[Place], targets: Sequence[Place]) -> Request:
        places = list(dict.fromkeys([*sources, *targets]))
        spots = ";".join(f"{lon:.6f},{lat:.6f}" for lat, lon in places)
        at = {place: str(i) for i, place in enumerate(places)}
        asked = {
            "sources": ";".join(at[place] for place in sources),
            "destinations": ";".join(at[place] for place in targets),
            "annotations": "duration,distance",
            "generate_hints": "false",
        }
        path = f"/table/v1/{self.profile}/{spots}"
        return Request(_joined(self.url, path, urlencode(asked, safe=";,")))

    def answer(self, data: Any, shape: tuple[int, int]) -> Block:
        if not isinstance(data, dict) or data.get("code") != "Ok":
            raise DrhgError("the answer is not that of an OSRM table service")
        if "distances" not in data:
            raise DrhgError(
                "the answer has durations only: this OSRM is older than 5.22, or its profile has "
                "no distances"
            )
        return _floats(data["distances"], shape), _floats(data.get("durations"), shape)

    def refuse(self, status: int, data: Any) -> NoReturn:
        code = data.get("code") if isinstance(data, dict) else None
        told = data.get("message") if isinstance(data, dict) else None
        if code == "TooBig" or status in (413, 414):
            raise TooBig(str(told or "too many places in one request"))
        if code == "NoSegment":
            place = re.search(r"coordinate (\d+)", str(told))
            raise Unreachable(str(told or code), int(place[1]) if place else None)
        raise DrhgError(_refusal(status, code, told))


@dataclass(frozen=True)
class Valhalla:
    """A Valhalla server; the costing is often auto, truck, bicycle or pedestrian.

    >>> Valhalla("https://valhalla.example.org", costing="truck").label
    'valhalla valhalla.example.org truck'
    """

    url: str
    costing: str = "auto"

    def __post_init__(self) -> None:
        _address(self.url)
        if not (isinstance(self.costing, str) and re.fullmatch(r"\w+", self.costing)):
            raise DrhgError(f"costing must be a word such as auto, not {shown(self.costing)}")

    @property
    def label(self) -> str:
        return f"valhalla {_where(self.url)} {self.costing}"

    def request(self, sources: Sequence[Place], targets: Sequence[Place]) -> Request:
        ends = {
            name: [{"lat": round(lat, 6), "lon": round(lon, 6)} for lat, lon in places]
            for name, places in (("sources", sources), ("targets", targets))
        }
        body = json.dumps({**ends, "costing": self.costing, "units": "kilometers"})
        return Request(
            _joined(self.url, "/sources_to_targets"),
            data=body.encode(),
            headers={"Content-Type": "application/json"},
        )

    def answer(self, data: Any, shape: tuple[int, int]) -> Block:
        rows = data.get("sources_to_targets") if isinstance(data, dict) else None
        if isinstance(rows, dict):  # the terse form of newer servers
            found = _floats(rows.get("distances"), shape), _floats(rows.get("durations"), shape)
        elif isinstance(rows, list):
            found = tuple(  # type: ignore[assignment]
                _floats([[_cell(one, key) for one in _listed(row)] for row in rows], shape)
                for key in ("distance", "time")
            )
        else:
            raise DrhgError("the answer is not that of a Valhalla matrix service")
        return found[0] * 1000.0, found[1]

    def refuse(self, status: int, data: Any) -> NoReturn:
        code = data.get("error_code") if isinstance(data, dict) else None
        told = data.get("error") if isinstance(data, dict) else None
        if code == 150 or status in (413, 414):
            raise TooBig(str(told or "too many places in one request"))
        if code == 171:
            raise Unreachable(str(told or code))
        raise DrhgError(_refusal(status, code, told))


def _address(url: Any) -> None:
    parts = urlsplit(url) if isinstance(url, str) else None
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        raise DrhgError(
            f"{shown(url)} is not the address of a server: it begins with http or https, then "
            "://, a host and perhaps a port"
        )


def _where(url: str) -> str:
    """Host, port and path: no user, password or key."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    port = "" if parts.port is None else f":{parts.port}"
    return f"{host}{port}{parts.path.rstrip('/')}"


def _joined(url: str, path: str, query: str = "") -> str:
    """The address of a service; what the user's address asks for, such as a key, stays in it."""
    parts = urlsplit(url)
    asked = "&".join(filter(None, (parts.query, query)))
    return urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/") + path, asked, ""))


def _refusal(status: int, code: Any, told: Any) -> str:
    detail = ": ".join(str(one) for one in (code, told) if one not in (None, ""))
    return f"the server refused the request (HTTP {status}{', ' + detail if detail else ''})"


def _listed(row: Any) -> list[Any]:
    if not isinstance(row, list):
        raise DrhgError("the table in the answer has rows that are no lists")
    return row


def _cell(one: Any, key: str) -> Any:
    return one.get(key) if isinstance(one, dict) else None


def _floats(rows: Any, shape: tuple[int, int]) -> Floats:
    """A table of numbers, nan where there is none."""
    found = np.full(shape, math.nan)
    rows = _listed(rows)
    if len(rows) != shape[0] or any(len(_listed(row)) != shape[1] for row in rows):
        raise DrhgError(f"the table in the answer is not {shape[0]} x {shape[1]}")
    for i, row in enumerate(rows):
        for j, value in enumerate(row):
            if value is not None:
                if type(value) not in (int, float) or not 0 <= value < 1e12:
                    raise DrhgError(f"the table in the answer has the entry {shown(value)}")
                found[i, j] = value
    return found

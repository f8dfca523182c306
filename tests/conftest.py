"""What all tests share: where real data is, how long hypothesis may look, and no network."""

from __future__ import annotations

import itertools
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import reference
from hypothesis import HealthCheck, settings
from soak import LEAST, SOAK, cases

INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT", "0") != "0"  # kernels are

_CALM = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("least", max_examples=LEAST, **_CALM)
settings.register_profile("few", max_examples=5, **_CALM)
settings.register_profile("quick", max_examples=100, **_CALM)
settings.register_profile("ci", max_examples=500, **_CALM)
settings.register_profile("soak", max_examples=20000, **_CALM)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", cases("ci", "soak")))


if "mutmut" in sys.modules:  # its version 3.8 asks pytest 9 for a name that is gone
    pytest.Item._nodeid = property(lambda item: item.nodeid)  # type: ignore[attr-defined]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("soak") and not SOAK:
            item.add_marker(pytest.mark.skip(reason="long: run by `make soak`"))
        if item.get_closest_marker("compiled") and INTERPRETED:
            item.add_marker(pytest.mark.skip(reason="needs compiled kernels"))


@pytest.fixture(scope="session", autouse=True)
def no_network() -> Iterator[None]:
    """Whatever is tested may talk to this machine only."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("connect", "connect_ex", "sendto"):
            patch.setattr(socket.socket, name, _at_home(getattr(socket.socket, name)))
        yield


def _at_home(method: Any) -> Any:
    def guarded(self: socket.socket, *arguments: Any) -> Any:
        address = arguments[-1]
        host = address[0] if isinstance(address, tuple) else None  # a path, of a UNIX socket
        if host is not None and not (str(host).startswith("127.") or host in ("localhost", "::1")):
            raise PermissionError(f"tests do not talk to {host}")
        return method(self, *arguments)

    return guarded


@pytest.fixture(scope="session", autouse=True)
def plain_vectors() -> Iterator[None]:
    """Vector instructions cannot be interpreted: their plain twins are, if kernels are."""
    if not INTERPRETED:
        yield
        return
    from drhg.network import products

    with pytest.MonkeyPatch.context() as patch:
        for rows, vectors in itertools.product((6, 2, 1), (4, 2, 1)):
            name = f"_t{rows}{vectors}"
            patch.setattr(products, name, reference.tile(rows, vectors))
        patch.setattr(products, "_exponentials", reference.exponentials)
        yield


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder with TSPLIB and CVRPLIB; named by DRHG_DATA, else 'data'."""
    folder = Path(os.environ.get("DRHG_DATA", "data"))
    if not (folder / "tsplib").is_dir():
        pytest.skip(f"no benchmark data in {folder.absolute()} (set DRHG_DATA)")
    return folder

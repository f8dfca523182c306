"""How long tests look: the same test is short in `make test` and long in `make soak`."""

from __future__ import annotations

import os
from typing import TypeVar

T = TypeVar("T")

SOAK = os.environ.get("DRHG_SOAK", "0") != "0"


def cases(short: T, long: T) -> T:
    """What a test takes in `make test`, or in `make soak` (DRHG_SOAK=1)."""
    return long if SOAK else short

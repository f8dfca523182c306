"""How long tests look: the same test is short in `make test` and long in `make soak`.

In the second half of `make coverage`, where kernels are interpreted, it has next to no examples.
"""

from __future__ import annotations

import os
from typing import TypeVar

T = TypeVar("T")

SOAK = os.environ.get("DRHG_SOAK", "0") != "0"
LEAST = 10  # examples of hypothesis in its profile `least`


def cases(short: T, long: T) -> T:
    """What a test takes in `make test`, or in `make soak` (DRHG_SOAK=1)."""
    return long if SOAK else short


def upto(count: int) -> int:
    """Examples of a test that has a number of its own, which only the profile `least` lowers."""
    return min(count, LEAST) if os.environ.get("HYPOTHESIS_PROFILE") == "least" else count

"""Random numbers for kernels."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from drhg.kernels.jit import inner, kernel


def random_state(seed: int, stream: int = 0) -> npt.NDArray[np.uint64]:
    """State of one worker's generator; streams of one seed are independent."""
    return np.random.SeedSequence([seed, stream]).generate_state(2, np.uint64) | np.uint64(1)


@inner
def random_bits(state):
    """Next 64 random bits (xorshift128+); `state` is advanced in place."""
    a, b = state[0], state[1]
    state[0] = b
    a ^= a << np.uint64(23)
    a ^= a >> np.uint64(17)
    a ^= b ^ (b >> np.uint64(26))
    state[1] = a
    return a + b


@kernel
def random_float(state):
    """Uniform in [0, 1)."""
    return np.float64(random_bits(state) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@kernel
def random_below(state, n):
    """Uniform in 0 .. n - 1."""
    return np.int64(random_float(state) * n)

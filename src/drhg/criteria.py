"""When to stop and what to accept: small callables on the state of a search, nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from drhg.problem import Cost


@dataclass(frozen=True)
class Progress:
    """How far a search is."""

    seconds: float  # since `solve` was called
    iterations: int
    unimproved: int  # iterations since the best cost last fell
    cost: Cost  # the best so far


Stop: TypeAlias = Callable[[Progress], str | None]
"""Why to stop now (a status), or None to go on."""

Accept: TypeAlias = Callable[[float, float, np.random.Generator], bool]
"""Whether to take a change of cost, given how much of the search is over (0 to 1)."""


@dataclass(frozen=True)
class Limits:
    """The usual reasons to stop; a field that is None does not count.

    >>> Limits(max_iters=5)(Progress(0.0, 5, 0, 1.0))
    'iterations'
    """

    time_limit: float | None = None
    max_iters: int | None = None
    no_improve: int | None = None
    target: float | None = None

    def __call__(self, progress: Progress) -> str | None:
        if self.target is not None and progress.cost <= self.target:
            return "target"
        if self.max_iters is not None and progress.iterations >= self.max_iters:
            return "iterations"
        if self.no_improve is not None and progress.unimproved >= self.no_improve:
            return "no_improve"
        if self.time_limit is not None and progress.seconds >= self.time_limit:
            return "time"
        return None

    def left(self, progress: Progress) -> int | None:
        """Iterations until a limit of them can be reached, if there is one."""
        left = []
        if self.max_iters is not None:
            left.append(self.max_iters - progress.iterations)
        if self.no_improve is not None:
            left.append(self.no_improve - progress.unimproved)
        return min(left, default=None)

    def elapsed(self, progress: Progress) -> float:
        """The share of the search that is over: by iterations if they are limited, else by time.

        With an iteration limit everything that steers must follow from counts alone, so that the
        same seed gives the same result on any machine.
        """
        if self.max_iters is not None:
            return min(1.0, progress.iterations / max(1, self.max_iters))
        if self.time_limit is not None:
            return min(1.0, progress.seconds / max(1e-9, self.time_limit))
        return 1.0


def improve(delta: float, elapsed: float, rng: np.random.Generator) -> bool:
    """The paper's rule: only what is strictly better."""
    return delta < -1e-9


def anneal(start: float, end: float) -> Accept:
    """Also what is worse, by chance: temperature falls from `start` to `end`, in units of cost."""

    def accept(delta: float, elapsed: float, rng: np.random.Generator) -> bool:
        temperature = start * (end / start) ** elapsed
        return bool(delta < -temperature * math.log(1.0 - rng.random()))

    return accept

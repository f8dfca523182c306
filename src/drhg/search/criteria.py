"""When to stop and what to accept: small pure functions of the state of a search."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from drhg.errors import DrhgError
from drhg.problem import Cost, real_number
from drhg.problem.tolerances import GAIN, NOT_ZERO


@dataclass(frozen=True)
class Progress:
    """How far a search is."""

    seconds: float  # since the clock of the time limit started
    iterations: int
    unimproved: int  # iterations since the best cost last fell
    cost: Cost  # the best so far


@dataclass(frozen=True)
class Limits:
    """When to stop; a field that is None does not count.

    >>> Limits(max_iters=5).reached(Progress(0.0, 5, 0, 1.0))
    'iterations'
    """

    time_limit: float | None = None  # seconds
    max_iters: int | None = None
    no_improve: int | None = None  # iterations in a row without a better solution
    target: float | None = None  # cost

    def reached(self, progress: Progress) -> str | None:
        """Which limit is reached, as the status of a result, or None."""
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

    def fraction(self, progress: Progress) -> float | None:
        """The share of the search that is over: by iterations if they are limited, else by time.

        With an iteration limit everything that steers must follow from counts alone, so that the
        same seed gives the same result on any machine.
        """
        if self.max_iters is not None:
            return min(1.0, progress.iterations / max(1, self.max_iters))
        if self.time_limit is not None:
            return min(1.0, progress.seconds / max(NOT_ZERO, self.time_limit))
        return None


class Moment(NamedTuple):
    """What a rule of acceptance may know besides the change of cost."""

    fraction: float | None  # of the search that is over, 0 to 1; None if its end is not known
    mean_edge: float  # length of an edge of the current solution, on average


class Accept(Protocol):
    """Whether to go on from a repaired solution whose cost differs by `change`."""

    def __call__(self, change: float, moment: Moment, rng: np.random.Generator) -> bool: ...


@dataclass(frozen=True)
class Improve:
    """Accept only what is strictly better: the paper's rule."""

    def __call__(self, change: float, moment: Moment, rng: np.random.Generator) -> bool:
        return change < -GAIN


@dataclass(frozen=True)
class Anneal:
    """Simulated annealing: what is worse by `d` is accepted with probability exp(-d / temperature).

    The temperature falls geometrically from `start` to `end` over the budget of the search. Both
    are in mean edges of the current solution, so that they fit instances of any size and scale.
    Where the end of the search is not known, the temperature is `end` throughout.
    """

    start: float = 0.2
    end: float = 0.02

    def __post_init__(self) -> None:
        for name in ("start", "end"):
            if real_number(name, getattr(self, name)) <= 0.0:
                raise DrhgError(f"{name} must be above 0, not {getattr(self, name)}")

    def __call__(self, change: float, moment: Moment, rng: np.random.Generator) -> bool:
        over = 1.0 if moment.fraction is None else moment.fraction
        temperature = moment.mean_edge * self.start * (self.end / self.start) ** over
        return bool(change < -temperature * math.log(1.0 - rng.random()))

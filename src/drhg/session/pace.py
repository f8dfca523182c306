"""How often a session looks at its search, and the budget that follows from its limits."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from drhg.search.strategy import Budget

if TYPE_CHECKING:
    from drhg.session.incumbent import Incumbent


@dataclass(frozen=True)
class Pace:
    """How often a session looks at its search; nothing here changes what a search finds.

    default_seconds: time limit of a solve that is given no limit at all.
    poll: seconds between two looks of the waiting thread at limits, signals and `should_stop`.
    heartbeat: seconds between two calls of `on_progress`.
    grace: seconds that callbacks have after the end for what they have not been told yet.
    slice_seconds: how long a search runs between two looks, with a time limit.
    looks: a slice lasts so many times as long as a look, at least, with a time limit; a look takes
        time in proportion to the size of the instance.
    share: without a time limit a slice has at most one in so many of the iterations done so far,
        because repairs are of any speed.
    """

    default_seconds: float = 10.0
    poll: float = 0.005
    heartbeat: float = 0.5
    grace: float = 0.2
    slice_seconds: float = 0.03
    looks: float = 4.0
    share: int = 16


class SessionBudget(Budget):
    """The budget of a session: slices never have more iterations than can be left.

    With a time limit a slice has as many iterations as fit into the time between two looks.
    Without one nothing looks at the clock, so that traces repeat: a slice has the usual number of
    iterations, or fewer in the beginning.
    """

    def __init__(self, incumbent: Incumbent) -> None:
        super().__init__(incumbent.limits.max_iters)
        self.incumbent = incumbent
        self.size = 1
        self.last = (time.perf_counter(), incumbent.iterations, incumbent.looking)

    def fraction(self) -> float | None:
        return self.incumbent.limits.fraction(self.incumbent.progress())

    def slice(self, usual: int, least: int = 1) -> int:
        if self.incumbent.limits.time_limit is not None:
            self._measure()
        else:
            self.size = max(1, min(usual, self.incumbent.iterations // self.incumbent.pace.share))
        left = self.incumbent.limits.left(self.incumbent.progress())
        size = max(self.size, least)
        return size if left is None else max(1, min(size, left))

    def _measure(self) -> None:
        pace = self.incumbent.pace
        present = (time.perf_counter(), self.incumbent.iterations, self.incumbent.looking)
        spent, iterations, looking = (a - b for a, b in zip(present, self.last, strict=True))
        if iterations > 0:
            rate = iterations / max(spent - looking, 1e-6)
            wanted = rate * max(pace.slice_seconds, pace.looks * looking)
            self.size = int(max(1, min(2 * self.size, wanted)))
        self.last = present

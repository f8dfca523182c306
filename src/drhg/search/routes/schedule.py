"""How annealing uses a search's time: temperatures, and how many anneals there are."""

from __future__ import annotations

from drhg.problem.tolerances import NOT_ZERO
from drhg.search.routes.params import AnnealingParams
from drhg.search.strategy import Budget


class AnnealingSchedule:
    """How many steps the next slice has, and how hot it is; cold at `end`, a share of the search.

    A step is an iteration: one ruin and recreate. `part_steps` is how many a part gets in a slice.
    """

    def __init__(
        self, budget: Budget, end: float, threads: int, nodes: int, params: AnnealingParams,
        part_steps: int,
    ) -> None:  # fmt: skip
        self.params, self.part_steps = params, part_steps
        self._budget, self._threads, self._nodes = budget, threads, nodes
        self._anneals = 1
        self.slices = self.done = self.last = 0
        self._begin, self._end = budget.fraction(), end

    @property
    def left(self) -> int | None:
        """Iterations, if they are limited."""
        most = self._budget.max_iters
        return None if most is None else max(0, most - self.done)

    def _progress(self) -> tuple[float, float]:
        """The share of the annealing that is over, and how many steps it will have in all.

        A search without an end has cycles, each as long as all before it.
        """
        now = self._budget.fraction()
        if self._begin is not None and now is not None:
            length = max(NOT_ZERO, self._end - self._begin)
            over = min(1.0, (now - self._begin) / length)
            return over, self.done / max(NOT_ZERO, over)
        cycle = self.params.endless_cycle * self._nodes
        while self.done >= 2 * cycle:
            cycle *= 2
        return (self.done % cycle) / cycle, cycle

    @property
    def anneal(self) -> int:
        """Which of the anneals this is."""
        return min(self._anneals - 1, int(self.position))

    @property
    def position(self) -> float:
        """How many anneals are over, with the share of the one that is not."""
        return self._progress()[0] * self._anneals

    def divide(self) -> None:
        """Have several anneals instead of one, if there is time for them.

        Where an anneal ends is largely chance; the best of a few is better than a slower one.
        """
        over, steps = self._progress()
        if over < self.params.restart_decision:
            each = steps / (self._threads * self._nodes)
            self._anneals = max(1, round(float(each / self.params.restart_steps) ** 0.5))

    def steps(self, parts: int) -> int:
        """Steps of every part in the next slice."""
        left = self.part_steps if self.left is None else -(-self.left // parts)
        return max(1, min(self.part_steps, left))

    def count(self, iterations: int) -> None:
        """A slice is over."""
        self.slices += 1
        self.last = iterations
        self.done += iterations

    def temperature(self) -> float:
        """The more time there is, the hotter the beginning."""
        over, steps = self._progress()
        over = over * self._anneals - self.anneal
        steps /= self._anneals
        cold, most = self.params.last_temperature, self.params.highest_temperature
        hot = self.params.first_temperature * float(steps / self._nodes) ** 0.5
        hot = min(most, max(cold, hot))
        return float(hot * (cold / hot) ** over)

"""Parameters of the local search on tours; see `docs/benchmarks.md` for how they were chosen."""

from __future__ import annotations

from dataclasses import dataclass

from drhg.errors import DrhgError
from drhg.problem import shown, whole_number
from drhg.problem.parameters import Parameters, number


@dataclass(frozen=True)
class MoveParams(Parameters):
    """k-opt moves on a tour (Lin and Kernighan, 1973), along candidate lists (Helsgaun, 2000)."""

    breadth: tuple[int, ...] = (8, 5)
    """Candidates tried for each added edge but the last, which closes the tour: two numbers make
    3-opt moves, one makes 2-opt moves. LKH tries five each time, for 5-opt moves."""
    candidates: int = number(10, 1)
    """Length of the candidate lists (LKH: 5 by alpha-nearness; ours are by distance)."""
    quadrant_candidates: int = number(3, 1)
    """The nearest nodes of the four quadrants are sought among so many times as many nodes."""
    longest_kick: int = number(50, 1)
    """Nodes of the longest segment that a double bridge moves."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.breadth, str) or not hasattr(self.breadth, "__iter__"):
            raise DrhgError(f"breadth must be numbers, not {shown(self.breadth)}")
        breadth = tuple(whole_number("breadth", one, 1) for one in self.breadth)
        if len(breadth) not in (1, 2):
            raise DrhgError("breadth must be one number, for 2-opt moves, or two, for 3-opt moves")
        object.__setattr__(self, "breadth", breadth)

"""Parameter objects: frozen dataclasses whose fields know which values make sense."""

from __future__ import annotations

import math
from dataclasses import field, fields
from typing import Any

from drhg.errors import DrhgError
from drhg.problem.arguments import real_number, whole_number


def number(default: Any, least: float, most: float = math.inf) -> Any:
    """A field for a number between these bounds, whole if the default is."""
    return field(default=default, metadata={"least": least, "most": most})


class Parameters:
    """Refuses values out of range by the name of their field; keeps ints and floats apart.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Annealing(Parameters):
    ...     cooling: float = number(0.5, 0.0, 1.0)
    >>> Annealing(cooling=2.0)
    Traceback (most recent call last):
    ...
    drhg.errors.DrhgError: cooling must be at most 1, not 2
    """

    def __post_init__(self) -> None:
        for one in fields(self):  # type: ignore[arg-type]
            if "least" not in one.metadata:
                continue
            name, least, most = one.name, one.metadata["least"], one.metadata["most"]
            convert = whole_number if isinstance(one.default, int) else real_number
            value = convert(name, getattr(self, name), least)
            if value > most:
                raise DrhgError(f"{name} must be at most {most:g}, not {value:g}")
            object.__setattr__(self, name, value)

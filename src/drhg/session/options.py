"""Arguments of a solve, checked."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

from drhg.construct.starts import starts_for
from drhg.errors import DrhgError, SolutionError
from drhg.parallel import cores
from drhg.problem import Instance, Solution, shown, validated, whole_number
from drhg.search.criteria import Limits


def limits_of(
    time_limit: float | None, max_iters: int | None, no_improve: int | None, target: float | None
) -> Limits:
    """The limits of a solve, each checked; all None if none is given."""
    time_limit, target = _number("time_limit", time_limit), _number("target", target)
    if time_limit is not None and time_limit < 0:
        raise DrhgError(f"time_limit must be at least 0, not {time_limit}")
    if max_iters is not None:
        max_iters = whole_number("max_iters", max_iters, 0)
    if no_improve is not None:
        no_improve = whole_number("no_improve", no_improve, 0)
    return Limits(time_limit, max_iters, no_improve, target)


def _number(name: str, given: Any) -> float | None:
    """The argument as a float, which may be infinite, or an error that names it."""
    if given is None:
        return None
    is_real = isinstance(given, Real) and not isinstance(given, bool)
    try:
        number = float(given) if is_real else math.nan
    except OverflowError:
        number = math.nan
    if math.isnan(number):
        raise DrhgError(f"{name} must be a number, not {shown(given)}")
    return number


def threads_of(wanted: int | None) -> int:
    return cores() if wanted is None else whole_number("threads", wanted, 1)


def check_calls(**functions: Any) -> None:
    for name, function in functions.items():
        if function is not None and not callable(function):
            raise DrhgError(f"{name} must be a function, not {shown(function)}")


def check_start(instance: Instance, start: str | Solution) -> None:
    if isinstance(start, Solution):
        try:
            validated(instance, start)
        except SolutionError as error:
            raise SolutionError(
                f"start is no solution of {instance.name}: {error.reason}"
            ) from None
        return
    if not isinstance(start, str):
        raise DrhgError(
            f"start must be the name of a start or a Solution, such as drhg.Solution([[0, 2, 1]]), "
            f"not {shown(start)}"
        )
    known = ["auto", *starts_for(instance)]
    if start not in known:
        raise DrhgError(
            f"start: {start!r} is no start of {instance.name}; known: {', '.join(known)}"
        )

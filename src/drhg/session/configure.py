"""Methods by their settings: a TOML file and `--set KEY=VALUE` build what Python builds.

    method = "neural"           # the named method that the settings change

    [destroy]                   # a field that holds parameters or an operator is a table
    operator = "cluster"        # another operator than the method's own
    k = [20, 200]

On the command line the same is `--method neural --set destroy=cluster --set destroy.k=20,200`.
"""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from drhg.destroy import operators as destroys
from drhg.errors import DrhgError
from drhg.problem import Instance, cvrp, shown, tsp
from drhg.search import criteria, repairers
from drhg.search.regions import Regions
from drhg.search.strategy import Strategy
from drhg.session.methods import NAMED, check_method

Settings: TypeAlias = dict[str, Any]

ACCEPTS: dict[str, type] = {"improve": criteria.Improve, "anneal": criteria.Anneal}
OPERATORS = {  # by the field that holds one
    "destroy": destroys.OPERATORS,
    "operators": destroys.OPERATORS,
    "repair": repairers.OPERATORS,
    "first": repairers.OPERATORS,
    "second": repairers.OPERATORS,
    "accept": ACCEPTS,
}


@dataclass(frozen=True)
class Configured:
    """A named method with some settings changed: a function from an instance to its strategy."""

    name: str
    settings: Settings

    def __call__(self, instance: Instance) -> Strategy:
        settings = self.settings
        if self.name == "auto":  # those of the other kind of problem are for other instances
            theirs = _names(NAMED["auto"](_sample(not instance.is_cvrp)))
            ours = _names(NAMED["auto"](instance))
            settings = {k: v for k, v in settings.items() if k in ours or k not in theirs}
        strategy: Strategy = _changed(NAMED[self.name](instance), settings, "", instance)
        return strategy


def configured(name: str, settings: Settings) -> Configured:
    """The method of that name with these settings, which must fit tours or routes, or both."""
    check_method(name)
    if name == "auto":
        kinds = [NAMED["auto"](_sample(is_cvrp)) for is_cvrp in (False, True)]
        for key, value in settings.items():
            having = [is_cvrp for is_cvrp in (False, True) if key in _names(kinds[is_cvrp])]
            if not having:
                known = "; ".join(f"{', '.join(_names(k))} ({type(k).__name__})" for k in kinds)
                raise DrhgError(f"{key}: the method auto has no such setting; known: {known}")
            _fits_one(Configured(name, {key: value}), having)
    else:
        _fits_one(Configured(name, settings), (False, True))
    return Configured(name, settings)


def _fits_one(method: Configured, kinds: Iterable[bool]) -> None:
    """Refuse settings that fit none of these kinds of problems (whether routes are asked for)."""
    refused = []
    for is_cvrp in kinds:
        try:
            method(_sample(is_cvrp))
        except DrhgError as error:
            refused.append(error)
        else:
            return
    raise refused[0]


def read_settings(path: str | os.PathLike[str]) -> Settings:
    """The settings in a TOML file."""
    try:
        return tomllib.loads(Path(path).read_bytes().decode())
    except OSError as error:
        raise DrhgError(f"cannot read: {error.strerror}", file=str(path)) from None
    except ValueError as error:  # of TOML, or of UTF-8
        raise DrhgError(f"not a TOML file: {error}", file=str(path)) from None


def merged(settings: Settings, changes: Iterable[str]) -> Settings:
    """Settings with some changed, each given as KEY=VALUE; dots in the key go into tables.

    >>> merged({"destroy": {"k": [5, 9]}}, ["destroy.k=20,200", "repair=neural"])
    {'destroy': {'k': [20, 200]}, 'repair': 'neural'}
    """
    found = {key: dict(value) if isinstance(value, dict) else value
             for key, value in settings.items()}  # fmt: skip
    for change in changes:
        key, equals, text = change.partition("=")
        *tables, last = key.strip().split(".")
        if not equals or not all([*tables, last]):
            raise DrhgError(f"{change!r} is not KEY=VALUE, such as destroy.k=20,200")
        inner = found
        for table in tables:
            value = inner.get(table, {})
            inner[table] = dict(value) if isinstance(value, dict) else {"operator": value}
            inner = inner[table]
        inner[last] = _value(text.strip())
    return found


def _value(text: str) -> Any:
    """A number, a flag, a list of values, or a word."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return [_value(part.strip()) for part in text.split(",")] if "," in text else text


def _sample(is_cvrp: bool) -> Instance:
    points = [[0, 0], [0, 1], [1, 1]]
    return cvrp(points, [0, 1, 1], 2) if is_cvrp else tsp(points)


def _names(parameters: Any) -> list[str]:
    return [field.name for field in fields(parameters)]


def _changed(base: Any, settings: Mapping[str, Any], where: str, instance: Instance) -> Any:
    """A frozen object with some of its fields changed."""
    known = _names(base)
    changes: Settings = {}
    for key in sorted(settings, key=lambda key: key == "destroy"):  # which depends on the repair
        if key not in known:
            kind, names = type(base).__name__, ", ".join(known) or "none"
            raise DrhgError(f"{where}{key}: {kind} has no such setting; known: {names}")
        present = getattr(base, key)
        if key == "destroy" and present is None and isinstance(base, Regions):
            repair = changes.get("repair", base.repair)
            if isinstance(settings[key], dict) and "operator" not in settings[key]:
                present = repairers.usual_destroy(repair, instance)
        changes[key] = _field(key, present, settings[key], where + key, instance)
    try:
        return replace(base, **changes)
    except DrhgError as error:
        begins = error.reason.split()[0] in known
        raise DrhgError(f"{where}{error.reason}" if begins else error.reason) from None


def _field(key: str, present: Any, value: Any, where: str, instance: Instance) -> Any:
    if key == "operators":
        if not isinstance(value, list):
            raise DrhgError(f"{where} must be a list of operators, not {shown(value)}")
        return tuple(_operator(key, None, one, where, instance) for one in value)
    if key in OPERATORS:
        return _operator(key, present, value, where, instance)
    if is_dataclass(present):
        if not isinstance(value, dict):
            kind = type(present).__name__
            raise DrhgError(
                f"{where} is a table of settings ({', '.join(_names(present))} of {kind}), not "
                f"{shown(value)}"
            )
        return _changed(present, value, f"{where}.", instance)
    return _of_kind(present, value, where)


def _operator(key: str, present: Any, value: Any, where: str, instance: Instance) -> Any:
    """An operator by its name, with settings of its own, or the present one with some changed."""
    settings = dict(value) if isinstance(value, dict) else {"operator": value}
    name = settings.pop("operator", None)
    if name is not None:
        known = OPERATORS[key]
        if not isinstance(name, str) or name not in known:
            raise DrhgError(f"{where}: unknown operator {shown(name)}; known: {', '.join(known)}")
        present = known[name]()
    if present is None:
        raise DrhgError(f"{where}: name an operator; known: {', '.join(OPERATORS[key])}")
    return _changed(present, settings, f"{where}.", instance)


def _of_kind(present: Any, value: Any, where: str) -> Any:
    """The value, if it is of the same kind as the present one; lists become tuples."""
    if isinstance(value, float) and not math.isfinite(value):
        raise DrhgError(f"{where} must be finite, not {value}")
    wrong = ""
    if isinstance(present, bool):
        wrong = "" if isinstance(value, bool) else "true or false"
    elif isinstance(present, int):
        wrong = "" if type(value) is int else "a whole number"
    elif isinstance(present, float):
        wrong = "" if type(value) in (int, float) else "a number"
        value = float(value) if not wrong else value
    elif isinstance(present, str):
        wrong = "" if isinstance(value, str) else "text"
    elif isinstance(present, tuple):
        wrong = "" if isinstance(value, list) else f"a list, such as {list(present)}"
        value = value if wrong else tuple(value)
    if wrong:
        raise DrhgError(f"{where} must be {wrong}, not {shown(value)}")
    return value

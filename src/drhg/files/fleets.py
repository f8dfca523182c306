"""Tables of vehicles: a row for each type, with its depot, capacity, cost, hours and limits."""

from __future__ import annotations

import math
from collections.abc import Mapping

from drhg.errors import InstanceError
from drhg.files.messages import fail, quoted
from drhg.files.tables import Problems, Table, has_decimal_commas, numbers
from drhg.files.times import times_in
from drhg.problem import VehicleType, a_fleet

SYNONYMS: dict[str, tuple[str, ...]] = {
    "name": ("name", "type", "vehicletype", "vehicle", "id", "fahrzeug", "fahrzeugtyp", "typ"),
    "count": ("count", "number", "available", "vehicles", "anzahl"),
    "capacity": ("capacity", "load", "payload", "kapazität", "kapazitaet", "zuladung"),
    "fixed_cost": ("fixedcost", "fixed", "cost", "fixkosten", "kosten"),
    "depot": ("depot", "base", "standort"),
    "start": ("start", "earliest", "shiftstart", "from", "von", "beginn", "ab"),
    "end": ("end", "latest", "shiftend", "until", "bis", "ende"),
    "max_distance": ("maxdistance", "maxlength", "range", "reichweite"),
    "max_duration": ("maxduration", "maxtime", "höchstdauer"),
}
UNSUPPORTED: dict[str, tuple[str, ...]] = {
    "costs per distance or time": (
        "costperkm", "costperdistance", "unitdistancecost", "costperhour", "unitdurationcost",
    ),
    "speeds": ("speed", "speedfactor", "geschwindigkeit"),
    "skills": ("skill", "skills", "fähigkeiten"),
    "other places to end": ("enddepot", "enddepotname", "endat"),
    "breaks": ("break", "breaks", "pause", "pausen"),
}  # fmt: skip


def fleet_of(
    table: Table, at: Mapping[str, int], names: tuple[str, ...] | None, home: int
) -> tuple[VehicleType, ...]:
    """The types in a table; a depot is the name of a stop, by default the row `home`."""
    problems = Problems(table.counted, list(table.left_out))
    if not len(table):
        problems.raise_any()
        fail("there is a header, but no vehicle below it", table.headed or None)
    commas = has_decimal_commas(
        table, [i for what, i in at.items() if what not in ("name", "depot")]
    )
    found: dict[str, list[float]] = {}
    for what in ("count", "capacity", "fixed_cost", "max_distance"):
        if what in at:
            found[what] = numbers(table, at[what], commas, problems, blank=math.nan)
    for what in ("start", "end", "max_duration"):
        if what in at:
            found[what] = times_in(table, at[what], commas, math.nan, problems)
    places = _depots(table, at, names, home, problems)
    fleet = []
    for row, line in enumerate(table.lines):
        given = {what: cells[row] for what, cells in found.items() if not math.isnan(cells[row])}
        start, end = given.pop("start", 0.0), given.pop("end", math.inf)
        shift = None if (start, end) == (0.0, math.inf) else (start, end)
        name = table.columns[at["name"]][row] if "name" in at else ""
        try:
            fleet.append(
                VehicleType(name=name, depot=places[row], shift=shift, **given)  # type: ignore[arg-type]
            )
        except InstanceError as error:
            problems.note(error.reason, line)
    problems.raise_any()
    return a_fleet(fleet)


def _depots(
    table: Table,
    at: Mapping[str, int],
    names: tuple[str, ...] | None,
    home: int,
    problems: Problems,
) -> list[int]:
    """The row of stops where each type starts."""
    if "depot" not in at:
        return [home] * len(table)
    places = {} if names is None else {name: i for i, name in enumerate(names)}
    found = []
    for cell, line in zip(table.columns[at["depot"]], table.lines, strict=True):
        text = cell.strip()
        if text and text not in places:
            reason = (
                "no column of the stops has names" if names is None else "no stop has that name"
            )
            problems.add(line, table.header[at["depot"]], f"{quoted(text)}: {reason}")
        found.append(places.get(text, home) if text else home)
    return found

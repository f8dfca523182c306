"""Columns of a table that tie stops: to a vehicle, or to one another."""

from __future__ import annotations

from collections.abc import Mapping

from drhg.files.messages import fail, quoted
from drhg.files.tables import Problems, Table
from drhg.problem import Instance, Locks

SYNONYMS: dict[str, tuple[str, ...]] = {
    "vehicle": ("vehicle", "vehicleid", "fahrzeug"),
    "together": ("together", "group", "gruppe"),
}


def columns_of_locks(instance: Instance) -> dict[str, list[str]]:
    """The columns that `locks_of` reads: who serves a stop, and which stops go together."""
    locks = instance.locks
    if locks is None:
        return {}
    if locks.driven or locks.frozen or locks.forbidden or len(
        {node for group in locks.together for node in group}
    ) < sum(map(len, locks.together)):  # fmt: skip
        fail("a table of stops knows pinned stops and those that go together, no other locks; "
             "write the instance as .json or .geojson")  # fmt: skip
    table: dict[str, list[str]] = {}
    if locks.pinned:
        table["vehicle"] = [""] * instance.n
        for node, vehicle in locks.pinned:
            table["vehicle"][node] = str(vehicle)
    for number, group in enumerate(locks.together, start=1):
        cells = table.setdefault("together", [""] * instance.n)
        for node in group:
            cells[node] = str(number)
    return table


def locks_of(table: Table, at: Mapping[str, int], routes: bool, problems: Problems) -> Locks | None:
    """Stops that have a vehicle, counted from 1, and stops that share a word go together."""
    pinned: dict[int, int] = {}
    groups: dict[str, list[int]] = {}
    for meaning in ("vehicle", "together"):
        cells = table.columns[at[meaning]] if meaning in at else ()
        heading = table.header[at[meaning]] if meaning in at else ""
        for i, cell in enumerate(map(str.strip, cells)):
            number = cell.removesuffix(".0")  # as pandas has it where a cell is empty
            if cell and not routes:
                problems.add(table.lines[i], heading, "vehicles are for stops with demands")
                break
            if cell and meaning == "together":
                groups.setdefault(cell, []).append(i)
            elif cell and number.isascii() and number.isdigit() and int(number[:9]) > 0:
                pinned[i] = int(number[:9])
            elif cell:
                problems.add(
                    table.lines[i], heading, f"{quoted(cell)} is no vehicle: they count from 1"
                )
    found = Locks(pinned=tuple(pinned.items()), together=tuple(map(tuple, groups.values())))
    return found or None

"""Vehicles that differ, in VRPLIB text: sections with a row for each vehicle."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np

from drhg.files.messages import fail
from drhg.files.sections import Document, header_number, header_whole, node_list, table
from drhg.problem import Instance, Ints, VehicleType, kinds_of

SECTIONS = {  # a field of `VehicleType`, and where it stands
    "depot": "VEHICLES_DEPOT_SECTION", "capacity": "CAPACITY_SECTION",
    "fixed_cost": "VEHICLES_FIXED_COST_SECTION", "max_duration": "VEHICLES_MAX_DURATION_SECTION",
}  # fmt: skip


def depots_of(doc: Document) -> Ints:
    depots, ended = node_list(doc, "DEPOT_SECTION")
    if not ended or not len(depots):
        reason = f"DEPOT_SECTION must be depots, then -1; it names {len(depots)}"
        fail(reason + ("" if ended else " and has no -1"), doc.line_at("DEPOT_SECTION"))
    return depots


def fleet_of(doc: Document, depots: Ints) -> list[VehicleType] | None:
    """The types of vehicles of a text, each of neighbouring ones; None if all are alike."""
    given = {field: key for field, key in SECTIONS.items() if key in doc.lines}
    cost = header_number(doc, "VEHICLES_FIXED_COST") if "VEHICLES_FIXED_COST" in doc.lines else 0.0
    if not given and len(depots) == 1 and cost == 0.0:
        return None
    if not given and "VEHICLES" not in doc.lines:  # enough at every depot
        return [VehicleType(depot=int(depot), fixed_cost=cost) for depot in depots]
    doc.require("VEHICLES")
    if len(depots) > 1:
        doc.require("VEHICLES_DEPOT_SECTION")
    count = header_whole(doc, "VEHICLES")
    if not given:
        return [VehicleType(count=count, depot=int(depots[0]), fixed_cost=cost)]
    columns = {field: table(doc, key, 1, count)[:, 0].tolist() for field, key in given.items()}
    rows: list[dict[str, Any]] = [{"depot": int(depots[0]), "fixed_cost": cost}] * count
    for field, values in columns.items():
        if field == "depot":
            values = [_depot(doc, given[field], value, depots) for value in values]
        rows = [row | {field: value} for row, value in zip(rows, values, strict=True)]
    for depot in depots.tolist():
        if all(row["depot"] != depot for row in rows):
            fail(f"no vehicle starts at depot {depot + 1}", doc.lines["DEPOT_SECTION"])
    return [VehicleType(count=len(list(alike)), **row) for row, alike in itertools.groupby(rows)]


def _depot(doc: Document, key: str, value: float, depots: Ints) -> int:
    if value - 1 not in depots:
        fail(f"{key}: {value:g} is no depot of DEPOT_SECTION", doc.lines[key])
    return int(value) - 1


def header_of(instance: Instance) -> list[str]:
    """The line that says how many vehicles there are."""
    plain = instance.fleet is not None and _only_depots(instance.fleet)
    return [] if instance.vehicles is None or plain else [f"VEHICLES: {instance.vehicles}"]


def sections_of(instance: Instance) -> list[str]:
    """The sections that say how vehicles differ."""
    fleet = instance.fleet
    if fleet is None or _only_depots(fleet):
        return []
    for one in fleet:
        if one.shift is not None or one.max_distance is not None:
            what = "shifts" if one.shift is not None else "limits of distance"
            fail(f"this kind of file has no place for {what} of vehicles; write it as .json")
    out: list[str] = []
    for field, key in SECTIONS.items():
        values = [getattr(one, field) for one in fleet]
        if field == "depot":
            values = [value + 1 for value in values]
        if field == "max_duration" and None in values:
            if any(value is not None for value in values):
                fail("this kind of file has limits of duration for all vehicles or none; "
                     "write it as .json")  # fmt: skip
            continue
        every = np.repeat(np.array(values), kinds_of(instance).number).tolist()
        out += [key, *(f"{i} {repr(v).removesuffix('.0')}" for i, v in enumerate(every, start=1))]
    return out


def _only_depots(fleet: tuple[VehicleType, ...]) -> bool:
    """Whether there are enough vehicles at every depot, which differ in nothing else."""
    alike = VehicleType(capacity=fleet[0].capacity)
    depots = {one.depot for one in fleet}
    return len(depots) == len(fleet) and all(
        replace(one, name="", depot=None) == alike for one in fleet
    )

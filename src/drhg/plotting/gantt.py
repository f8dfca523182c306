"""When every route is where: a bar chart of driving, waiting and serving."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from drhg.errors import DrhgError
from drhg.files.paths import PathLike
from drhg.plotting.drawing import (
    FAINT,
    GONE,
    INK,
    MUTED,
    PALETTE,
    plain_axes,
    save_figure,
    title_of,
)
from drhg.problem import Instance, Solution, schedule, vehicle_called

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HEIGHT = 0.62  # of a bar, where rows are 1 apart


def plot_gantt(ax: Axes, instance: Instance, solution: Solution) -> None:
    """A row per route: a line while it drives, pale while it waits, a bar while it serves.

    Services that begin after their window has closed are red; where there are few enough stops a
    thin line above the bars shows each one's window, the first stop's on top.
    """
    if not instance.is_cvrp:
        raise DrhgError(f"{instance.name} has no routes from a depot to draw over time")
    walks = schedule(instance, solution)
    few = sum(len(one.nodes) for one in walks) <= 80
    end = max((float(one.departure[-1]) for one in walks), default=1.0)
    for row, one in enumerate(walks):
        color = PALETTE[row % len(PALETTE)]
        ax.hlines([row] * (len(one.nodes) - 1), one.departure[:-1], one.arrival[1:], INK, lw=0.9)
        waits = one.waiting > 0.0
        spans = list(zip(one.arrival[waits], one.waiting[waits], strict=True))
        ax.broken_barh(spans, (row - HEIGHT / 2, HEIGHT), facecolor=FAINT)
        for k in range(len(one.nodes)):
            if one.nodes[k] == one.nodes[0]:  # its depot
                continue
            late = one.lateness[k] > 0.0
            took = float(one.departure[k] - one.begin[k])
            ax.broken_barh(
                [(float(one.begin[k]), max(took, 0.002 * end))],
                (row - HEIGHT / 2, HEIGHT),
                facecolor=GONE if late else color,
            )
            if few and instance.windows is not None:
                opens, closes = instance.windows[one.nodes[k]]
                step = (k - 1) / max(1, len(one.nodes) - 3)  # one above the other, in their order
                above = row - HEIGHT / 2 - 0.05 - 0.26 * (1.0 - step)
                ax.hlines(above, max(0.0, opens), min(end, closes), color, lw=1.2, alpha=0.6)
    named = solution.vehicles or ()
    drivers = [vehicle_called(instance, vehicle) for vehicle in named if instance.fleet]
    ax.set_yticks(range(len(walks)), drivers or [str(row + 1) for row in range(len(walks))])
    ax.set_ylim(len(walks) - 0.4, -0.75)
    plain_axes(ax)
    ax.grid(axis="y", visible=False)
    ax.grid(axis="x", color=FAINT, linewidth=0.5, alpha=0.6)
    ax.set_xlabel("time", color=MUTED)
    ax.set_ylabel("vehicle" if drivers else "route", color=MUTED)


def save_gantt(
    path: PathLike, instance: Instance, solution: Solution, title: str | None = None
) -> None:
    """Write when every route is where; the ending of `path` decides the format."""
    from matplotlib.figure import Figure

    height = float(np.clip(1.2 + 0.28 * len(solution.routes), 2.5, 40.0))
    figure = Figure(figsize=(9, height), layout="constrained")
    ax = figure.add_subplot()
    plot_gantt(ax, instance, solution)
    head = title_of(instance, solution)[0] if title is None else title
    ax.set_title(head, loc="left", fontsize=14, fontweight="bold", color=INK, pad=10)
    save_figure(path, figure)

"""Pictures of solutions, of searches and of trainings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from drhg.files.paths import PathLike
from drhg.plotting.drawing import (
    INK,
    MUTED,
    PALETTE,
    draw_depot,
    draw_names,
    draw_nodes,
    draw_plan,
    draw_rings,
    draw_tour,
    map_points,
    name_ends,
    new_figure,
    plain_axes,
    prepare_axes,
    save_figure,
    title_of,
)
from drhg.problem import Instance, Solution

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from drhg.session.result import TracePoint


def plot_solution(ax: Axes, instance: Instance, solution: Solution | None = None) -> None:
    """Draw the nodes and, if given, the routes; the title is the caller's."""
    points = map_points(instance)
    prepare_axes(ax, instance)
    if solution is not None and instance.is_cvrp:
        draw_plan(ax, instance, solution, points)
    elif solution is not None:
        draw_tour(ax, instance, solution, points)
    draw_nodes(ax, instance, solution, points)
    draw_depot(ax, instance)


def plot_convergence(ax: Axes, traces: Mapping[str, Sequence[TracePoint]]) -> None:
    """Draw best cost over seconds, one staircase per run, each named at its end."""
    shown = {name: trace for name, trace in traces.items() if trace}
    end = max((trace[-1].seconds for trace in shown.values()), default=1.0)
    for i, trace in enumerate(shown.values()):
        color = PALETTE[i % len(PALETTE)]
        seconds = [point.seconds for point in trace] + [end]
        costs = [point.cost for point in trace] + [trace[-1].cost]
        ax.plot(seconds, costs, drawstyle="steps-post", color=color, linewidth=1.6)
        ax.plot(seconds[-1], costs[-1], "o", color=color, markersize=4)
    name_ends(ax, {name: trace[-1].cost for name, trace in shown.items()}, end)
    plain_axes(ax)
    ax.set_xlabel("seconds", color=MUTED)
    ax.set_ylabel("best cost", color=MUTED)
    ax.margins(x=0.02)


def save_solution(
    path: PathLike,
    instance: Instance,
    solution: Solution | None = None,
    title: str | None = None,
    *,
    names: bool = False,
    marked: npt.ArrayLike = (),
) -> None:
    """Write a picture of an instance, by default titled with its name, size and cost.

    The ending of `path` decides the format: .png, .pdf or .svg. With `names`, nodes bear theirs;
    the `marked` ones stand in a ring.
    """
    figure = new_figure(instance)
    ax = figure.add_subplot()
    plot_solution(ax, instance, solution)
    head, sub = title_of(instance, solution)
    if title is not None:
        head, sub = title, ""
    ax.set_title(head, loc="left", fontsize=14, fontweight="bold", color=INK, pad=22 if sub else 10)
    ax.text(0, 1.015, sub, transform=ax.transAxes, fontsize=10.5, color=MUTED, va="bottom")
    if names:
        draw_names(ax, instance, map_points(instance))
    draw_rings(ax, map_points(instance)[np.asarray(marked, np.int64)])
    save_figure(path, figure)


def save_convergence(
    path: PathLike, traces: Mapping[str, Sequence[TracePoint]], title: str = ""
) -> None:
    """Write the best cost over time of one or more runs."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    ax = figure.add_subplot()
    plot_convergence(ax, traces)
    ax.set_title(title, loc="left", fontsize=14, fontweight="bold", color=INK, pad=10)
    save_figure(path, figure)


def plot_training(
    ax: Axes, logs: Mapping[str, Sequence[Mapping[str, float]]], what: str = "gap"
) -> None:
    """Gaps, or losses (`what`), of training runs over decisions, on logarithmic axes.

    Dashed is the power law that fits the steps at a constant rate best, drawn on to four times as
    many decisions.
    """
    lines = 0
    for run, rows in logs.items():
        for key in sorted({key for row in rows for key in row if key.startswith(what)}):
            known = [row for row in rows if row.get(key, 0) > 0 and row["decisions"] > 0]
            if not known:
                continue
            color = PALETTE[lines % len(PALETTE)]
            lines += 1
            name = key.removeprefix(what).removeprefix("_") or "training"
            label = f"{run}: {name} nodes" if name.isdigit() else f"{run}: {name}"
            law = power_law([(r["decisions"], r[key]) for r in known if r.get("rate", 1.0) == 1.0])
            xs = np.array([row["decisions"] for row in known])
            if law is not None:
                factor, exponent = law
                label += f", falls by decisions^{exponent:.2f}"
                ends = np.array([xs[0], 4 * xs[-1]])
                ax.plot(ends, factor * ends**exponent, "--", color=color, linewidth=0.9)
            ax.plot(xs, [row[key] for row in known], color=color, label=label, linewidth=1.6)
    plain_axes(ax)
    ax.set(xscale="log", yscale="log")
    ax.yaxis.set_major_formatter("{x:g}")
    ax.set_xlabel("decisions", color=MUTED)
    ax.set_ylabel("gap (%)" if what == "gap" else "cross-entropy", color=MUTED)
    if lines:
        ax.legend(frameon=False, fontsize=8, labelcolor=INK)


def power_law(points: Sequence[tuple[float, float]]) -> tuple[float, float] | None:
    """(factor, exponent) of y = factor x^exponent by least squares of the logarithms.

    None if fewer than four points, or x within a factor of two, say nothing about it.
    """
    if len(points) < 4:
        return None
    xs, ys = np.log(np.array(points, np.float64)).T
    if np.ptp(xs) < np.log(2):
        return None
    exponent, factor = np.polyfit(xs, ys, 1)
    return float(np.exp(factor)), float(exponent)


def save_training(
    path: PathLike, logs: Mapping[str, Sequence[Mapping[str, float]]], title: str = ""
) -> None:
    """Write the curves of training runs: gaps above, losses below, over decisions."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 8), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    plot_training(above, logs)
    plot_training(below, logs, "loss")
    above.set_xlabel("")
    above.set_title(title, loc="left", fontsize=14, fontweight="bold", color=INK, pad=10)
    save_figure(path, figure)

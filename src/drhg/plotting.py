"""Pictures: a solution on the map, the cost over time. Every `plot_*` draws on a given Axes.

matplotlib is imported inside the functions, and never through pyplot, so pictures can be made
without a screen and from any thread.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from drhg.errors import DrhgError
from drhg.io import PathLike, atomic_write
from drhg.problem import Floats, Instance, Metric, Solution, cost

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from drhg.solver import TracePoint

INK, MUTED, FAINT = "#1f2933", "#7b8794", "#cbd2d9"
TOUR = "#2f6db5"
DEPOT = "#d64545"
# neighbours in this list contrast, because neighbouring routes get neighbouring colours
PALETTE = (
    "#2f6db5", "#e8871e", "#3a9d5d", "#c2407f", "#7a5cc4",
    "#1f9e9e", "#b5892b", "#d1495b", "#5b7c99", "#7fa428",
)  # fmt: skip


def plot_solution(ax: Axes, instance: Instance, solution: Solution | None = None) -> None:
    """Draw the nodes and, if given, the routes; the title is the caller's."""
    points = _map(instance)
    _prepare(ax, instance)
    if solution is not None and instance.is_cvrp:
        _draw_plan(ax, instance, solution, points)
    elif solution is not None:
        _draw_tour(ax, solution, points)
    _draw_nodes(ax, instance, solution, points)
    if instance.is_cvrp:
        x, y = points[instance.depot]
        ax.scatter(x, y, s=90, marker="s", color=DEPOT, edgecolor="white", linewidth=1.4, zorder=5)
    ax.autoscale_view()


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
    _name_ends(ax, {name: trace[-1].cost for name, trace in shown.items()}, end)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(FAINT)
    ax.tick_params(colors=MUTED, labelsize=9)
    ax.grid(axis="y", color=FAINT, linewidth=0.5, alpha=0.6)
    ax.set_axisbelow(True)
    ax.set_xlabel("seconds", color=MUTED)
    ax.set_ylabel("best cost", color=MUTED)
    ax.margins(x=0.02)


def save_solution(
    path: PathLike, instance: Instance, solution: Solution | None = None, title: str | None = None
) -> None:
    """Write a picture of an instance, by default titled with its name, size and cost.

    The ending of `path` decides the format: .png, .pdf or .svg.
    """
    figure = _figure(instance)
    ax = figure.add_subplot()
    plot_solution(ax, instance, solution)
    head, sub = _title(instance, solution)
    if title is not None:
        head, sub = title, ""
    ax.set_title(head, loc="left", fontsize=14, fontweight="bold", color=INK, pad=22 if sub else 10)
    ax.text(0, 1.015, sub, transform=ax.transAxes, fontsize=10.5, color=MUTED, va="bottom")
    save_figure(path, figure)


def save_figure(path: PathLike, figure: Figure) -> None:
    """Write a figure atomically, in the format its ending names."""
    suffix = Path(path).suffix.lower().lstrip(".")
    if suffix not in ("png", "pdf", "svg"):
        raise DrhgError("a picture ends in .png, .pdf or .svg", file=str(path))
    data = io.BytesIO()
    figure.savefig(data, format=suffix, dpi=160, facecolor="white")
    atomic_write(path, data.getvalue())


def _map(instance: Instance) -> Floats:
    """Where each node is on the page, (n, 2): x to the right, y up."""
    if instance.xy is None:
        raise DrhgError(f"{instance.name} has a distance matrix but no coordinates to draw")
    if instance.metric is Metric.GEO:  # TSPLIB lists latitude first
        assert instance._radians is not None
        return np.asarray(np.degrees(instance._radians)[:, ::-1])
    return instance.xy


def _prepare(ax: Axes, instance: Instance) -> None:
    """An empty page: equal scales (on the globe: equal at its middle latitude), no frame."""
    aspect = 1.0
    if instance.metric is Metric.GEO:
        middle = float(np.radians(np.mean(_map(instance)[:, 1])))
        aspect = 1 / max(0.2, float(np.cos(middle)))
    ax.set_aspect(aspect, adjustable="box")
    ax.margins(0.02)
    ax.set_axis_off()


def _weight(n: int) -> float:
    """Line width in points: thinner the more there is to draw."""
    return float(np.clip(1.9 * (100 / max(n, 1)) ** 0.3, 0.15, 1.9))


def _draw_tour(ax: Axes, solution: Solution, points: Floats) -> None:
    from matplotlib.collections import LineCollection

    closed = [points[np.append(route, route[:1])] for route in solution.routes]
    ax.add_collection(_round(LineCollection(closed, colors=TOUR, linewidths=_weight(len(points)))))


def _draw_plan(ax: Axes, instance: Instance, solution: Solution, points: Floats) -> None:
    """Each route in its colour; its two depot legs fainter, so that the shapes are seen."""
    from matplotlib.collections import LineCollection

    width, depot = _weight(len(points)), points[instance.depot]
    routes = _clockwise(solution, points, depot)
    colors = [PALETTE[i % len(PALETTE)] for i in range(len(routes))]
    legs = [np.stack([depot, points[end]]) for r in routes for end in (r[0], r[-1])]
    leg_colors = [color for color in colors for _ in range(2)]
    ax.add_collection(LineCollection(legs, colors=leg_colors, linewidths=0.5 * width, alpha=0.35))
    paths = [points[route] for route in routes]
    ax.add_collection(_round(LineCollection(paths, colors=colors, linewidths=width)))


def _clockwise(solution: Solution, points: Floats, depot: Floats) -> list[Any]:
    """Routes in the order of their direction from the depot."""
    centres = np.array([points[route].mean(axis=0) for route in solution.routes]).reshape(-1, 2)
    angle = np.arctan2(centres[:, 0] - depot[0], centres[:, 1] - depot[1])
    return [solution.routes[i] for i in np.argsort(angle, kind="stable")]


def _round(lines: Any) -> Any:
    lines.set_capstyle("round")
    lines.set_joinstyle("round")
    return lines


def _draw_nodes(ax: Axes, instance: Instance, solution: Solution | None, points: Floats) -> None:
    n = len(points)
    size = float(np.clip(14 * (100 / max(n, 1)) ** 0.6, 0.3, 14))
    if solution is not None and n > 5000:  # the line says it all
        size = 0.0
    customers = np.delete(points, instance.depot, axis=0) if instance.is_cvrp else points
    ax.scatter(customers[:, 0], customers[:, 1], s=size, color=INK, linewidth=0, zorder=3)


def _figure(instance: Instance) -> Figure:
    """A page shaped like the instance, its long side 8 inches."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    width, height = np.maximum(np.ptp(_map(instance), axis=0), 1e-12)
    if instance.metric is Metric.GEO:
        width *= np.cos(np.radians(np.mean(_map(instance)[:, 1])))
    ratio = float(np.clip(height / width, 0.35, 1.4))
    wide = 8.0 if ratio <= 1 else 8.0 / ratio
    air = ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.15)
    return Figure(figsize=(wide, wide * ratio + 0.7), layout=air)


def _title(instance: Instance, solution: Solution | None) -> tuple[str, str]:
    parts = [f"{instance.n:,} nodes"]
    if solution is not None:
        total = cost(instance, solution)
        parts.insert(0, f"cost {total:,}" if isinstance(total, int) else f"cost {total:,.4f}")
        if instance.is_cvrp:
            parts.insert(1, f"{len(solution.routes):,} routes")
    return instance.name, "  ·  ".join(parts)


def _name_ends(ax: Axes, last: Mapping[str, float], x: float) -> None:
    """Write each name right of its curve's end, moved apart where they would overlap."""
    low, high = ax.get_ylim()
    gap, floor = 0.045 * (high - low), -np.inf
    for name, value in sorted(last.items(), key=lambda item: item[1]):
        floor = max(value, floor + gap)
        color = PALETTE[list(last).index(name) % len(PALETTE)]
        ax.annotate(
            name,
            (x, floor),
            xytext=(8, 0),
            textcoords="offset points",
            color=color,
            fontsize=10,
            va="center",
            annotation_clip=False,
        )

"""Maps, axes and files that all pictures share."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from drhg.errors import DrhgError
from drhg.files.atomic import atomic_write
from drhg.files.paths import PathLike
from drhg.problem import Floats, Instance, Ints, Metric, Solution, cost, depots_of_routes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


INK, MUTED, FAINT = "#1f2933", "#7b8794", "#cbd2d9"
TOUR, LEG = "#2f6db5", "#b9cde4"
DEPOT = "#d64545"
GONE, NEW, HYPER = "#d64545", "#2b9348", "#7a5cc4"  # destroyed, repaired, hyper-edges
# neighbours in this list contrast, because neighbouring routes get neighbouring colours
PALETTE = (
    "#2f6db5", "#e8871e", "#3a9d5d", "#c2407f", "#7a5cc4",
    "#1f9e9e", "#b5892b", "#d1495b", "#5b7c99", "#7fa428",
)  # fmt: skip


def plain_axes(ax: Axes) -> None:
    """Two thin axes and a faint grid."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(FAINT)
    ax.tick_params(colors=MUTED, labelsize=9)
    ax.grid(axis="y", color=FAINT, linewidth=0.5, alpha=0.6)
    ax.set_axisbelow(True)


def format_of(path: PathLike) -> str:
    """What kind of picture the name of a file asks for."""
    suffix = Path(path).suffix.lower().lstrip(".")
    if suffix not in ("png", "pdf", "svg"):
        raise DrhgError("a picture ends in .png, .pdf or .svg", file=str(path))
    return suffix


def save_figure(path: PathLike, figure: Figure, dpi: int = 160) -> None:
    """Write a figure atomically, in the format its ending names."""
    data = io.BytesIO()
    figure.savefig(data, format=format_of(path), dpi=dpi, facecolor="white")
    atomic_write(path, data.getvalue())


def draw_depot(ax: Axes, instance: Instance) -> None:
    if instance.is_cvrp:
        x, y = map_points(instance)[instance.depots].T
        ax.scatter(x, y, s=90, marker="D", color=DEPOT, edgecolor="white", linewidth=1.4, zorder=5)
    ax.autoscale_view()


def map_points(instance: Instance) -> Floats:
    """Where each node is on the page, (n, 2): x to the right, y up."""
    if instance.xy is None:
        raise DrhgError(f"{instance.name} has a distance matrix but no coordinates to draw")
    if instance.metric is Metric.GEO:  # TSPLIB lists latitude first
        assert instance._radians is not None
        return np.asarray(np.degrees(instance._radians)[:, ::-1])
    assert instance.plane is not None
    return instance.plane


def prepare_axes(ax: Axes, instance: Instance) -> None:
    """An empty page: equal scales (on the globe: equal at its middle latitude), no frame."""
    aspect = 1.0
    if instance.metric is Metric.GEO:
        middle = float(np.radians(np.mean(map_points(instance)[:, 1])))
        aspect = 1 / max(0.2, float(np.cos(middle)))
    ax.set_aspect(aspect, adjustable="box")
    ax.margins(0.02)
    ax.set_axis_off()


def line_width(n: int) -> float:
    """Line width in points: thinner the more there is to draw."""
    return float(np.clip(1.9 * (100 / max(n, 1)) ** 0.3, 0.15, 1.9))


def dot_size(n: int) -> float:
    """Area of a node in square points."""
    return float(np.clip(14 * (100 / max(n, 1)) ** 0.6, 0.3, 14))


def draw_tour(ax: Axes, instance: Instance, solution: Solution, points: Floats) -> None:
    """A tour, or a path, which is not closed."""
    from matplotlib.collections import LineCollection

    back = 1 if instance.returns else 0
    lines = [points[np.append(route, route[:back])] for route in solution.routes]
    ax.add_collection(
        rounded_lines(LineCollection(lines, colors=TOUR, linewidths=line_width(len(points))))
    )


def draw_plan(ax: Axes, instance: Instance, solution: Solution, points: Floats) -> None:
    """Each route in its colour; its depot legs fainter, so that the shapes are seen."""
    from matplotlib.collections import LineCollection

    width, homes = line_width(len(points)), points[depots_of_routes(instance, solution)]
    order = _clockwise(solution, points, homes)
    routes = [solution.routes[i] for i in order]
    colors = [PALETTE[i % len(PALETTE)] for i in range(len(routes))]
    ends = [0, -1] if instance.returns else [0]
    legs = [
        np.stack([home, points[route[end]]])
        for home, route in zip(homes[order], routes, strict=True)
        for end in ends
    ]
    leg_colors = [color for color in colors for _ in ends]
    ax.add_collection(LineCollection(legs, colors=leg_colors, linewidths=0.5 * width, alpha=0.35))
    paths = [points[route] for route in routes]
    ax.add_collection(rounded_lines(LineCollection(paths, colors=colors, linewidths=width)))


def _clockwise(solution: Solution, points: Floats, homes: Floats) -> Ints:
    """The order of routes by their direction from their depots."""
    centres = np.array([points[route].mean(axis=0) for route in solution.routes]).reshape(-1, 2)
    return np.argsort(np.arctan2(*(centres - homes).T), kind="stable")


def rounded_lines(lines: Any) -> Any:
    lines.set_capstyle("round")
    lines.set_joinstyle("round")
    return lines


def draw_nodes(ax: Axes, instance: Instance, solution: Solution | None, points: Floats) -> None:
    size = dot_size(len(points))
    if solution is not None and len(points) > 5000:  # the line says it all
        size = 0.0
    customers = points[instance.customers] if instance.is_cvrp else points
    ax.scatter(customers[:, 0], customers[:, 1], s=size, color=INK, linewidth=0, zorder=3)


def draw_rings(ax: Axes, points: Floats) -> None:
    """A ring around each of some points."""
    if len(points):
        size = 4.0 * dot_size(len(points)) + 6.0
        ax.scatter(
            points[:, 0],
            points[:, 1],
            s=size,
            facecolor="none",
            edgecolor=GONE,
            linewidth=0.9,
            zorder=4,
        )


def draw_names(ax: Axes, instance: Instance, points: Floats, size: float = 7.0) -> None:
    """Each node's name beside it, in points of `size`, where it covers no other name and no node.

    Without names the numbers from 0. The depot comes first, then the nodes in their order; a name
    stands right of its node if it can, else left, above or below.
    """
    figure = ax.get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()  # decides how large the map is on the page
    _draw_names(ax, figure, instance, points, size)
    figure.draw_without_rendering()  # names at the edge have made the map smaller: once more
    figure.set_layout_engine("none")
    for name in list(ax.texts):
        if name.get_gid() == _NAME:
            name.remove()
    _draw_names(ax, figure, instance, points, size, page=72.0 * figure.get_figwidth())


def _draw_names(
    ax: Axes, figure: Figure, instance: Instance, points: Floats, size: float,
    page: float = math.inf,
) -> None:  # fmt: skip
    """What `draw_names` does for the map as large as it is now, on a page of this width."""
    from matplotlib.patheffects import withStroke

    at = ax.transData.transform(points) * 72.0 / figure.dpi  # in points, as letters are measured
    names = instance.names or tuple(map(str, range(instance.n)))
    spots = (at / (0.5 * size)).astype(int)  # on a grid of half a letter by half a line
    nodes = set(map(tuple, spots.tolist()))
    taken: set[tuple[int, int]] = set()
    first = instance.depots.tolist() if instance.is_cvrp else []
    for node in [*first, *(i for i in range(instance.n) if i not in first)]:
        wide = int(1.25 * len(names[node])) + 1
        for side in _SIDES:
            left, line = spots[node] + [side.cells(wide), side.line]
            cells = {(left + x, line + up) for x in range(wide) for up in (-1, 0, 1)}
            on_page = page == math.inf or (left >= 0 and 0.5 * size * (left + wide) <= page)
            if on_page and not cells & (taken | (nodes - {tuple(spots[node].tolist())})):
                taken |= cells
                ax.annotate(
                    names[node], points[node], xytext=side.offset, textcoords="offset points",
                    fontsize=size, color=INK, ha=side.align, va="center", zorder=6,
                    annotation_clip=False, gid=_NAME,
                    path_effects=[withStroke(linewidth=2, foreground="white")],
                )  # fmt: skip
                break


_NAME = "name"  # marks the texts that are names of nodes


@dataclass(frozen=True)
class _Side:
    """Where a name stands beside its node."""

    align: Literal["left", "center", "right"]
    offset: tuple[float, float]  # in points
    line: int  # in half lines, up

    def cells(self, wide: int) -> int:
        """Where a name of so many half letters begins, in half letters from its node."""
        return {"left": 1, "center": -(wide // 2), "right": -wide - 1}[self.align]


_SIDES = (
    _Side("left", (4, 0), 0),
    _Side("right", (-4, 0), 0),
    _Side("center", (0, 7), 2),
    _Side("center", (0, -7), -2),
)


def aspect_ratio(instance: Instance) -> float:
    """Height over width of the map, within reason."""
    width, height = np.maximum(np.ptp(map_points(instance), axis=0), 1e-12)
    if instance.metric is Metric.GEO:
        width *= np.cos(np.radians(np.mean(map_points(instance)[:, 1])))
    return float(np.clip(height / width, 0.35, 1.4))


def new_figure(instance: Instance) -> Figure:
    """A page shaped like the instance, its long side 8 inches."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    ratio = aspect_ratio(instance)
    wide = 8.0 if ratio <= 1 else 8.0 / ratio
    air = ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.15)
    return Figure(figsize=(wide, wide * ratio + 0.7), layout=air)


def title_of(instance: Instance, solution: Solution | None) -> tuple[str, str]:
    parts = [f"{instance.n:,} nodes"]
    if solution is not None:
        parts.insert(0, f"cost {shown_number(cost(instance, solution))}")
        if instance.is_cvrp:
            parts.insert(1, f"{len(solution.routes):,} routes")
    return instance.name, "  ·  ".join(parts)


def shown_number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4f}"


def name_ends(ax: Axes, last: Mapping[str, float], x: float) -> None:
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

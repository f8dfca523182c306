"""Charts of benchmarks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from drhg.plotting.drawing import GONE, INK, MUTED, PALETTE, TOUR, plain_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# --- benchmarks ----------------------------------------------------------------------------------


def plot_series(
    ax: Axes, series: Mapping[str, Sequence[tuple[float, float]]], x: str, y: str
) -> None:
    """Points joined by lines, one colour per name, on logarithmic scales; y is linear about 0."""
    ax.set_xscale("log")
    ax.set_yscale("symlog", linthresh=0.01)
    for i, (name, points) in enumerate(series.items()):
        xs, ys = zip(*sorted(points), strict=True)
        color = PALETTE[i % len(PALETTE)]
        ax.plot(xs, ys, "o-", color=color, label=name, linewidth=1.6, markersize=4)
    plain_axes(ax)
    ax.yaxis.set_major_formatter("{x:g}")
    ax.set_xlabel(x, color=MUTED)
    ax.set_ylabel(y, color=MUTED)
    ax.legend(frameon=False, fontsize=9, labelcolor=INK)


def plot_bars(
    ax: Axes,
    bars: Mapping[str, float],
    marks: Mapping[str, float],
    bar_label: str,
    mark_label: str,
    y: str,
) -> None:
    """A bar per name and, where there is one, a mark to compare it with."""
    names = list(bars)
    ax.bar(range(len(names)), list(bars.values()), color=TOUR, width=0.7, label=bar_label)
    at = [i for i, name in enumerate(names) if name in marks]
    if at:
        values = [marks[names[i]] for i in at]
        ax.plot(at, values, "_", color=GONE, markersize=7, markeredgewidth=1.8, label=mark_label)
    plain_axes(ax)
    ax.set_xticks(range(len(names)), names, rotation=90, fontsize=7)
    ax.set_xlim(-0.8, len(names) - 0.2)
    ax.set_ylabel(y, color=MUTED)
    ax.set_yscale("symlog", linthresh=0.1)
    ax.legend(frameon=False, fontsize=9, labelcolor=INK)

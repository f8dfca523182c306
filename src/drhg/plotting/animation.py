"""A run as a film."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from drhg.errors import DrhgError
from drhg.files.atomic import atomic_write
from drhg.files.paths import PathLike
from drhg.plotting.drawing import FAINT, INK, MUTED, TOUR, aspect_ratio, plain_axes, shown_number
from drhg.plotting.solutions import plot_solution
from drhg.plotting.step import start_of
from drhg.problem import Instance, Solution, cost, not_known

if TYPE_CHECKING:
    from drhg.session.result import TracePoint

FRAMES = 60  # pictures in an animation, at most


# --- a run as a film -----------------------------------------------------------------------------


def watch(
    instance: Instance,
    start: Solution | None = None,
    seconds: float = 5.0,
    seed: int = 0,
    *,
    should_stop: Callable[[], bool] = lambda: False,
) -> list[tuple[TracePoint, Solution]]:
    """Run the region search in small steps from a poor start; every improvement is a frame."""
    from drhg.destroy.operators import Cluster
    from drhg.search.regions import Regions
    from drhg.search.repairers import LocalSearch
    from drhg.search.strategy import Budget, task_of
    from drhg.session.result import TracePoint

    if why := not_known("a film of a search", instance):
        raise DrhgError(why)
    start = start or start_of(instance, "space-filling", seed)
    task = task_of(instance, start, seed, threads=1)
    strategy = Regions(Cluster((4, 12)), LocalSearch())
    frames = [(TracePoint(0.0, 0, cost(instance, start)), start)]
    iterations, began = 0, time.perf_counter()
    for snapshot in strategy.run(task, Budget(each=1)):
        iterations += snapshot.iterations
        now = time.perf_counter() - began
        if snapshot.cost < frames[-1][0].cost - 1e-9:
            solution = snapshot.solution()
            frames.append((TracePoint(now, iterations, cost(instance, solution)), solution))
        if now >= seconds or should_stop():
            break
    return frames


def save_animation(
    path: PathLike, instance: Instance, frames: Sequence[tuple[TracePoint, Solution]]
) -> None:
    """Write the improvements of a run (as `on_improve` reports them) as an animated GIF."""
    from PIL import Image

    if Path(path).suffix.lower() != ".gif":
        raise DrhgError("an animation ends in .gif", file=str(path))
    if not frames:
        raise DrhgError("an animation needs at least one solution", file=str(path))
    chosen = np.unique(np.linspace(0, len(frames) - 1, FRAMES).round().astype(int))
    trace = [point for point, _ in frames]
    pictures = [
        Image.fromarray(_frame(instance, trace, int(i), frames[i][1])).convert(
            "P", palette=Image.Palette.ADAPTIVE, colors=64
        )
        for i in chosen
    ]
    data = io.BytesIO()
    pictures[0].save(
        data, format="GIF", save_all=True, append_images=pictures[1:], loop=0, disposal=1,
        duration=[120] * (len(pictures) - 1) + [2500],
    )  # fmt: skip
    atomic_write(path, data.getvalue())


def _frame(instance: Instance, trace: Sequence[TracePoint], i: int, solution: Solution) -> Any:
    """One picture of a run, (height, width, 3): the solution above, the cost so far below."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    wide, below, above = 5.4, 1.5, 0.45  # inches
    side = wide * aspect_ratio(instance)
    tall = below + side + above
    figure = Figure(figsize=(wide, tall), dpi=100, facecolor="white")
    ax = figure.add_axes((0.02, below / tall, 0.96, side / tall))
    plot_solution(ax, instance, solution)
    point, top = trace[i], 1 - 0.12 / tall
    figure.text(0.04, top, instance.name, fontsize=12, fontweight="bold", color=INK, va="top")
    where = f"cost {shown_number(point.cost)}  ·  iteration {point.iterations:,}"
    figure.text(0.96, top, where, fontsize=11, color=MUTED, va="top", ha="right")
    lower = figure.add_axes((0.13, 0.3 / tall, 0.83, (below - 0.55) / tall))
    steps, costs = [p.iterations for p in trace], [p.cost for p in trace]
    lower.plot(steps, costs, drawstyle="steps-post", color=FAINT, linewidth=1.2)
    lower.plot(steps[: i + 1], costs[: i + 1], drawstyle="steps-post", color=TOUR, linewidth=1.8)
    lower.plot(point.iterations, point.cost, "o", color=TOUR, markersize=4)
    plain_axes(lower)
    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()

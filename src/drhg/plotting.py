"""Pictures: a solution, a step of destroy and repair, the cost over time. `plot_*` take an Axes.

matplotlib is imported inside the functions, and never through pyplot, so pictures can be made
without a screen and from any thread.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from drhg.errors import DrhgError
from drhg.io import PathLike, atomic_write
from drhg.problem import Floats, Instance, Ints, Metric, Solution, cost

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from drhg.hypergraph import Graphs, Repaired
    from drhg.repair import Repair
    from drhg.solver import TracePoint

INK, MUTED, FAINT = "#1f2933", "#7b8794", "#cbd2d9"
TOUR, LEG = "#2f6db5", "#b9cde4"
DEPOT = "#d64545"
GONE, NEW, HYPER = "#d64545", "#2b9348", "#7a5cc4"  # destroyed, repaired, hyper-edges
CANDIDATES = 64  # steps tried for a film strip, of which the best is shown
FRAMES = 60  # pictures in an animation, at most
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
    _draw_depot(ax, instance)


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
    _plain_axes(ax)
    ax.set_xlabel("seconds", color=MUTED)
    ax.set_ylabel("best cost", color=MUTED)
    ax.margins(x=0.02)


def _plain_axes(ax: Axes) -> None:
    """Two thin axes and a faint grid."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(FAINT)
    ax.tick_params(colors=MUTED, labelsize=9)
    ax.grid(axis="y", color=FAINT, linewidth=0.5, alpha=0.6)
    ax.set_axisbelow(True)


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


def plot_training(ax: Axes, logs: Mapping[str, Sequence[Mapping[str, float]]]) -> None:
    """Gaps of one or more training runs over decisions, on logarithmic axes."""
    for run, rows in logs.items():
        for key in sorted({key for row in rows for key in row if key.startswith("gap_")}):
            points = [(row["decisions"], row[key]) for row in rows if row.get(key, 0) > 0]
            if points:
                what = key.removeprefix("gap_")
                label = f"{run}: {what if what == 'solve' else f'{what} nodes'}"
                ax.plot(*zip(*points, strict=True), label=label, linewidth=1.6)
    ax.set(xscale="log", yscale="log", xlabel="decisions", ylabel="gap (%)")
    ax.grid(True, which="both", alpha=0.25)
    if ax.get_legend_handles_labels()[0]:
        ax.legend(frameon=False)


def save_training(
    path: PathLike, logs: Mapping[str, Sequence[Mapping[str, float]]], title: str = ""
) -> None:
    """Write the curves of training runs: gaps over decisions."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    ax = figure.add_subplot()
    plot_training(ax, logs)
    ax.set_title(title, loc="left", fontsize=14, fontweight="bold", color=INK, pad=10)
    save_figure(path, figure)


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


# --- one step of destroy and repair --------------------------------------------------------------

Edge: TypeAlias = tuple[int, int]


@dataclass(frozen=True)
class Step:
    """One step of the search: what was there, what was cut, how it was reconnected."""

    instance: Instance
    before: Solution
    after: Solution
    destroyed: Ints  # nodes
    cut: tuple[Edge, ...]  # edges of `before`
    graphs: Graphs  # a batch of one
    repaired: Repaired  # of it
    pieces: tuple[Ints, ...]  # the nodes of each hyper-edge and stub, from end to end


def take_step(
    instance: Instance,
    solution: Solution | None = None,
    *,
    seed: int = 0,
    k: int | None = None,
    repair: Repair | None = None,
) -> Step:
    """Destroy k nodes at several places, repair each, and return the step that gains most.

    By default a fifth of the nodes, at most 25; local search; the paper's starts.
    """
    from drhg import hypergraph
    from drhg.repair import LocalSearchRepair

    paper = "sweep" if instance.is_cvrp and instance.xy is not None else "insertion"
    solution = solution or _start(instance, paper, seed)
    rng = np.random.default_rng(seed)
    rules, nearness = hypergraph.rules_of(instance), hypergraph.Nearness(instance)
    plan = hypergraph.plan_of(rules, solution)
    k = min(max(3, instance.n // 5), 25) if k is None else k
    ranked = nearness.around(rng.choice(nearness.nodes, size=CANDIDATES), k)
    cuts, n_cuts = hypergraph.destroy_nearest(rules, plan, ranked, k)
    graphs = hypergraph.reduce(rules, plan, cuts, n_cuts)
    repaired = (repair or LocalSearchRepair())(rules, graphs, rng)
    good, change = hypergraph.judge(rules, plan, graphs, repaired)
    if not good.any():
        raise DrhgError(f"{instance.name}: no repair can be restored")
    row = int(np.argmin(change))
    order = plan.order
    after = hypergraph.restore(rules, plan, graphs, row, repaired)
    one = slice(row, row + 1)
    return Step(
        instance=instance,
        before=solution,
        after=hypergraph.solution_of(rules, after),
        destroyed=ranked[row].astype(np.int64),
        cut=tuple(
            (int(order[p]), int(order[p + 1 - len(order)])) for p in cuts[row][: n_cuts[row]]
        ),
        graphs=hypergraph.Graphs(**{name: value[one] for name, value in vars(graphs).items()}),
        repaired=hypergraph.Repaired(repaired.order[one], repaired.via[one]),
        pieces=_pieces(order, graphs, row),
    )


def _start(instance: Instance, name: str, seed: int) -> Solution:
    from drhg.construct import construct

    solution, unplaced = construct(instance, name, seed)
    if len(unplaced):
        raise DrhgError(f"{instance.name}: no start places all customers")
    return solution


def _pieces(order: Any, graphs: Graphs, row: int) -> tuple[Ints, ...]:
    """The nodes of each hyper-edge and stub, in the order of the solution."""
    found = []
    for i in range(int(graphs.size[row])):
        if graphs.partner[row, i] > i or graphs.partner[row, i] < 0:
            a, z = int(graphs.at[row, i]), int(graphs.far[row, i])
            if graphs.partner[row, i] < 0:
                a, z = min(a, z), max(a, z)  # a stub never runs past the end of the order
            found.append(order[np.arange(a, z + 1 if z >= a else z + 1 + len(order)) % len(order)])
    return tuple(found)


def plot_destroyed(ax: Axes, step: Step) -> None:
    """The solution with its cut edges dashed and the destroyed nodes marked."""
    gone = {_key(edge) for edge in step.cut}
    kept = [edge for edge in _edges(step.instance, step.before) if _key(edge) not in gone]
    points = _map(step.instance)
    _prepare(ax, step.instance)
    _draw_kept(ax, step.instance, kept)
    _draw_edges(ax, points, step.cut, GONE, 1.0, dashed=True)
    _draw_dots(ax, points, _others(step.instance, step.destroyed), INK, 0.7)
    _draw_dots(ax, points, step.destroyed, GONE, 2.2)
    _draw_depot(ax, step.instance)


def plot_hypergraph(ax: Axes, step: Step, *, repaired: bool = False) -> None:
    """The reduced graph: isolated nodes, ends, hyper-edges; if wanted, the edges of the repair."""
    points = _map(step.instance)
    _prepare(ax, step.instance)
    _draw_dots(ax, points, np.arange(step.instance.n), FAINT, 0.5)
    for piece in step.pieces:
        _draw_piece(ax, points, piece)
    if repaired:
        _draw_edges(ax, points, _repaired_edges(step), NEW, 1.3)
    row, partner = step.graphs.node[0], step.graphs.partner[0]
    inside = np.arange(len(row)) < step.graphs.size[0]
    alone = inside & (partner == np.arange(len(row)))
    _draw_dots(ax, points, row[inside & ~alone], HYPER, 2.0, marker="s")
    _draw_dots(ax, points, row[alone], GONE, 2.2)
    _draw_depot(ax, step.instance)


def plot_restored(ax: Axes, step: Step) -> None:
    """The solution after the step, its new edges highlighted and those that went dashed."""
    old = {_key(edge) for edge in _edges(step.instance, step.before)}
    now = _edges(step.instance, step.after)
    kept = {_key(edge) for edge in now}
    points = _map(step.instance)
    _prepare(ax, step.instance)
    lost = sorted(old - kept)
    _draw_edges(ax, points, lost, GONE, 0.7, dashed=True)
    _draw_kept(ax, step.instance, [edge for edge in now if _key(edge) in old])
    fresh = [edge for edge in now if _key(edge) not in old]
    _draw_edges(ax, points, fresh, NEW, 1.7)
    _draw_dots(ax, points, np.arange(step.instance.n), INK, 0.7)
    _draw_depot(ax, step.instance)


def film_strip(
    path: PathLike,
    instance: Instance,
    solution: Solution | None = None,
    *,
    seed: int = 0,
    k: int | None = None,
    repair: Repair | None = None,
) -> Step:
    """Write one step as five pictures in a row: solution, cuts, hyper-graph, repair, solution."""
    step = take_step(instance, solution, seed=seed, k=k, repair=repair)
    save_figure(path, _film(step), dpi=110)
    return step


def _film(step: Step) -> Figure:
    from matplotlib.figure import Figure

    instance = step.instance
    old, new = cost(instance, step.before), cost(instance, step.after)
    m, pieces = int(step.graphs.size[0]), len(step.pieces)
    shown = (
        ("a  current", f"cost {_shown(old)}"),
        ("b  destroy", f"{len(step.destroyed)} nodes, {len(step.cut)} edges"),
        ("c  reduce", f"{m} of {instance.n:,} nodes, {pieces} hyper-edges"),
        ("d  repair", f"change {_shown(new - old)}"),
        ("e  restore", f"cost {_shown(new)}"),
    )
    side, gap, above, below = 3.2, 0.2, 0.75, 0.55  # inches
    wide = len(shown) * (side + gap) + gap
    tall = side * _ratio(instance) + above + below
    figure = Figure(figsize=(wide, tall))
    axes = []
    for i, (head, sub) in enumerate(shown):
        left = gap + i * (side + gap)
        box = (left / wide, below / tall, side / wide, (tall - above - below) / tall)
        axes.append(figure.add_axes(box))
        style: dict[str, Any] = {"color": INK, "fontsize": 16, "fontweight": "bold", "va": "top"}
        figure.text(left / wide, 1 - 0.14 / tall, head, **style)
        figure.text(left / wide, 1 - 0.44 / tall, sub, color=MUTED, fontsize=12.5, va="top")
    plot_solution(axes[0], instance, step.before)
    plot_destroyed(axes[1], step)
    plot_hypergraph(axes[2], step)
    plot_hypergraph(axes[3], step, repaired=True)
    plot_restored(axes[4], step)
    for ax in axes:
        ax.set(xlim=axes[0].get_xlim(), ylim=axes[0].get_ylim())
    _film_legend(figure, instance.is_cvrp)
    return figure


def _film_legend(figure: Figure, depot: bool) -> None:
    from matplotlib.lines import Line2D

    def entry(label: str, color: str, **style: Any) -> Line2D:
        return Line2D([], [], color=color, label=label, **style)

    entries = [
        entry("destroyed or isolated node", GONE, marker="o", linestyle="", markersize=7),
        entry("cut edge", GONE, linestyle=(0, (2.5, 2)), linewidth=1.6),
        entry("end of a hyper-edge", HYPER, marker="s", linestyle="", markersize=6),
        entry("hyper-edge" + (" or stub to the depot" if depot else ""), HYPER, linewidth=4,
              alpha=0.55),
        entry("new edge", NEW, linewidth=2.6),
    ]  # fmt: skip
    if depot:
        entries.append(entry("depot", DEPOT, marker="D", linestyle="", markersize=8))
    figure.legend(
        handles=entries, loc="lower center", ncol=len(entries), frameon=False, fontsize=12,
        labelcolor=INK, handlelength=2.2, columnspacing=2.4,
    )  # fmt: skip


def _edges(instance: Instance, solution: Solution) -> list[Edge]:
    """The edges of a solution; those to the depot run from it."""
    found: list[Edge] = []
    for route in solution.routes:
        stops = [instance.depot, *route.tolist()] if instance.is_cvrp else route.tolist()
        found += zip(stops, stops[1:] + stops[:1], strict=True)
    return found


def _key(edge: Edge) -> Edge:
    return min(edge), max(edge)


def _repaired_edges(step: Step) -> list[Edge]:
    """The edges that a repair adds to the intact pieces."""
    order, via = step.repaired.order[0], step.repaired.via[0]
    node, partner = step.graphs.node[0], step.graphs.partner[0]
    depot, size = step.instance.depot, int(step.graphs.size[0])
    found: list[Edge] = []
    here = -1  # the loose end
    i = 0
    while i < size:
        u = int(order[i])
        wide = partner[u] >= 0 and partner[u] != u
        stub = partner[u] < 0
        if step.instance.is_cvrp and via[i]:
            found += [(here, depot)] if here >= 0 else []
            found += [] if stub else [(depot, int(node[u]))]
        elif here >= 0:
            found.append((here, int(node[u])))
        here = -1 if stub and not via[i] else int(node[partner[u] if wide else u])
        i += 2 if wide else 1
    if here >= 0:
        found.append((here, depot if step.instance.is_cvrp else int(node[order[0]])))
    return found


def _others(instance: Instance, nodes: Ints) -> Ints:
    return np.setdiff1d(np.arange(instance.n), nodes)


def _draw_kept(ax: Axes, instance: Instance, edges: Iterable[Edge]) -> None:
    """Edges that stay; those to the depot fainter, so that the shapes are seen."""
    points, edges = _map(instance), list(edges)
    legs = [edge for edge in edges if instance.is_cvrp and instance.depot in edge]
    _draw_edges(ax, points, legs, LEG, 0.6)
    _draw_edges(ax, points, [edge for edge in edges if edge not in legs], TOUR, 1.0)


def _draw_edges(
    ax: Axes,
    points: Floats,
    edges: Iterable[Edge],
    color: str,
    scale: float,
    dashed: bool = False,
) -> None:
    from matplotlib.collections import LineCollection

    lines = [points[[a, b]] for a, b in edges]
    style: Any = (0, (2.5, 2)) if dashed else "solid"
    width = scale * _weight(len(points))
    drawn = LineCollection(lines, colors=color, linewidths=width, linestyles=style)
    ax.add_collection(drawn if dashed else _round(drawn))


def _draw_dots(
    ax: Axes, points: Floats, nodes: Any, color: str, scale: float, marker: str = "o"
) -> None:
    x, y = points[nodes].T
    size = scale * _dot(len(points))
    ax.scatter(x, y, s=size, color=color, linewidth=0, marker=marker, zorder=4)


def _draw_depot(ax: Axes, instance: Instance) -> None:
    if instance.is_cvrp:
        x, y = _map(instance)[instance.depot]
        ax.scatter(x, y, s=90, marker="D", color=DEPOT, edgecolor="white", linewidth=1.4, zorder=5)
    ax.autoscale_view()


def _draw_piece(ax: Axes, points: Floats, piece: Ints) -> None:
    """A hyper-edge as an arc between its ends, bent to the side where its nodes lie."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path as Curve

    way = points[piece]
    start, end = way[0], way[-1]
    chord = end - start
    normal = np.array([-chord[1], chord[0]])
    reach = float(np.hypot(*chord)) or 1.0
    aside = (way - start) @ normal / reach  # how far each node lies beside the chord
    bow = float(np.clip(np.mean(aside), -0.3 * reach, 0.3 * reach)) if len(way) > 2 else 0.0
    middle = (start + end) / 2 + 2 * bow * normal / reach
    curve = Curve([start, middle, end], [Curve.MOVETO, Curve.CURVE3, Curve.CURVE3])
    ax.plot(way[:, 0], way[:, 1], color=FAINT, linewidth=0.6 * _weight(len(points)), zorder=1)
    width = 2.4 * _weight(len(points))
    arc = PathPatch(curve, facecolor="none", edgecolor=HYPER, linewidth=width, alpha=0.55, zorder=2)
    arc.set_capstyle("round")
    ax.add_patch(arc)


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
    from drhg import search
    from drhg.criteria import improve
    from drhg.destroy import nearest_cluster
    from drhg.repair import LocalSearchRepair
    from drhg.solver import TracePoint

    start = start or _start(instance, "space-filling", seed)
    task = search.task_of(instance, start, seed, threads=1)
    parts = LocalSearchRepair(), nearest_cluster(4, 12), improve
    frames = [(TracePoint(0.0, 0, cost(instance, start)), start)]
    iterations, began = 0, time.perf_counter()
    for snapshot in search.regions(task, *parts, lambda _: 1, lambda: 0.0):
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
    side = wide * _ratio(instance)
    tall = below + side + above
    figure = Figure(figsize=(wide, tall), dpi=100, facecolor="white")
    ax = figure.add_axes((0.02, below / tall, 0.96, side / tall))
    plot_solution(ax, instance, solution)
    point, top = trace[i], 1 - 0.12 / tall
    figure.text(0.04, top, instance.name, fontsize=12, fontweight="bold", color=INK, va="top")
    figure.text(
        0.96, top, f"cost {_shown(point.cost)}  ·  iteration {point.iterations:,}", fontsize=11,
        color=MUTED, va="top", ha="right",
    )  # fmt: skip
    lower = figure.add_axes((0.13, 0.3 / tall, 0.83, (below - 0.55) / tall))
    steps, costs = [p.iterations for p in trace], [p.cost for p in trace]
    lower.plot(steps, costs, drawstyle="steps-post", color=FAINT, linewidth=1.2)
    lower.plot(steps[: i + 1], costs[: i + 1], drawstyle="steps-post", color=TOUR, linewidth=1.8)
    lower.plot(point.iterations, point.cost, "o", color=TOUR, markersize=4)
    _plain_axes(lower)
    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()


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


def _dot(n: int) -> float:
    """Area of a node in square points."""
    return float(np.clip(14 * (100 / max(n, 1)) ** 0.6, 0.3, 14))


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
    size = _dot(len(points))
    if solution is not None and len(points) > 5000:  # the line says it all
        size = 0.0
    customers = np.delete(points, instance.depot, axis=0) if instance.is_cvrp else points
    ax.scatter(customers[:, 0], customers[:, 1], s=size, color=INK, linewidth=0, zorder=3)


def _ratio(instance: Instance) -> float:
    """Height over width of the map, within reason."""
    width, height = np.maximum(np.ptp(_map(instance), axis=0), 1e-12)
    if instance.metric is Metric.GEO:
        width *= np.cos(np.radians(np.mean(_map(instance)[:, 1])))
    return float(np.clip(height / width, 0.35, 1.4))


def _figure(instance: Instance) -> Figure:
    """A page shaped like the instance, its long side 8 inches."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    ratio = _ratio(instance)
    wide = 8.0 if ratio <= 1 else 8.0 / ratio
    air = ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.15)
    return Figure(figsize=(wide, wide * ratio + 0.7), layout=air)


def _title(instance: Instance, solution: Solution | None) -> tuple[str, str]:
    parts = [f"{instance.n:,} nodes"]
    if solution is not None:
        parts.insert(0, f"cost {_shown(cost(instance, solution))}")
        if instance.is_cvrp:
            parts.insert(1, f"{len(solution.routes):,} routes")
    return instance.name, "  ·  ".join(parts)


def _shown(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4f}"


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
    _plain_axes(ax)
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
    _plain_axes(ax)
    ax.set_xticks(range(len(names)), names, rotation=90, fontsize=7)
    ax.set_xlim(-0.8, len(names) - 0.2)
    ax.set_ylabel(y, color=MUTED)
    ax.set_yscale("symlog", linthresh=0.1)
    ax.legend(frameon=False, fontsize=9, labelcolor=INK)

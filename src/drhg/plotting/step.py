"""One step of destroy and repair, as a strip of pictures."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from drhg.errors import DrhgError
from drhg.files.paths import PathLike
from drhg.plotting.drawing import (
    DEPOT,
    FAINT,
    GONE,
    HYPER,
    INK,
    LEG,
    MUTED,
    NEW,
    TOUR,
    aspect_ratio,
    dot_size,
    draw_depot,
    line_width,
    map_points,
    prepare_axes,
    rounded_lines,
    save_figure,
    shown_number,
)
from drhg.plotting.solutions import plot_solution
from drhg.problem import Floats, Instance, Ints, Solution, cost, not_known

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from drhg.hypergraph.judge import Repaired
    from drhg.hypergraph.reduce import Graphs
    from drhg.repair.protocol import Repair

CANDIDATES = 64  # steps tried for a film strip, of which the best is shown


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
    candidates: int = CANDIDATES,
) -> Step:
    """Destroy k nodes at several places, repair each, and return the step that gains most.

    By default a fifth of the nodes, at most 25; local search; the paper's starts.
    """
    from drhg import hypergraph
    from drhg.repair.local import LocalSearchRepair

    if why := not_known("a film of one step", instance):
        raise DrhgError(why)
    paper = "sweep" if instance.is_cvrp and instance.xy is not None else "insertion"
    solution = solution or start_of(instance, paper, seed)
    rng = np.random.default_rng(seed)
    rules, nearness = hypergraph.rules_of(instance), hypergraph.Nearness(instance)
    plan = hypergraph.plan_of(rules, solution)
    k = min(max(3, instance.n // 5), 25) if k is None else k
    ranked = nearness.around(rng.choice(nearness.nodes, size=candidates), k)
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


def start_of(instance: Instance, name: str, seed: int) -> Solution:
    from drhg.construct.starts import construct

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
    points = map_points(step.instance)
    prepare_axes(ax, step.instance)
    _draw_kept(ax, step.instance, kept)
    _draw_edges(ax, points, step.cut, GONE, 1.0, dashed=True)
    _draw_dots(ax, points, _others(step.instance, step.destroyed), INK, 0.7)
    _draw_dots(ax, points, step.destroyed, GONE, 2.2)
    draw_depot(ax, step.instance)


def plot_hypergraph(ax: Axes, step: Step, *, repaired: bool = False) -> None:
    """The reduced graph: isolated nodes, ends, hyper-edges; if wanted, the edges of the repair."""
    points = map_points(step.instance)
    prepare_axes(ax, step.instance)
    _draw_dots(ax, points, np.arange(step.instance.n), FAINT, 0.5)
    for piece in step.pieces:
        _draw_piece(ax, points, piece)
    if repaired:
        _draw_edges(ax, points, repaired_edges(step), NEW, 1.3)
    row, partner = step.graphs.node[0], step.graphs.partner[0]
    inside = np.arange(len(row)) < step.graphs.size[0]
    alone = inside & (partner == np.arange(len(row)))
    _draw_dots(ax, points, row[inside & ~alone], HYPER, 2.0, marker="s")
    _draw_dots(ax, points, row[alone], GONE, 2.2)
    draw_depot(ax, step.instance)


def plot_restored(ax: Axes, step: Step) -> None:
    """The solution after the step, its new edges highlighted and those that went dashed."""
    old = {_key(edge) for edge in _edges(step.instance, step.before)}
    now = _edges(step.instance, step.after)
    kept = {_key(edge) for edge in now}
    points = map_points(step.instance)
    prepare_axes(ax, step.instance)
    lost = sorted(old - kept)
    _draw_edges(ax, points, lost, GONE, 0.7, dashed=True)
    _draw_kept(ax, step.instance, [edge for edge in now if _key(edge) in old])
    fresh = [edge for edge in now if _key(edge) not in old]
    _draw_edges(ax, points, fresh, NEW, 1.7)
    _draw_dots(ax, points, np.arange(step.instance.n), INK, 0.7)
    draw_depot(ax, step.instance)


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
        ("a  current", f"cost {shown_number(old)}"),
        ("b  destroy", f"{len(step.destroyed)} nodes, {len(step.cut)} edges"),
        ("c  reduce", f"{m} of {instance.n:,} nodes, {pieces} hyper-edges"),
        ("d  repair", f"change {shown_number(new - old)}"),
        ("e  restore", f"cost {shown_number(new)}"),
    )
    side, gap, above, below = 3.2, 0.2, 0.75, 0.55  # inches
    wide = len(shown) * (side + gap) + gap
    tall = side * aspect_ratio(instance) + above + below
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


def repaired_edges(step: Step) -> list[Edge]:
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
    points, edges = map_points(instance), list(edges)
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
    width = scale * line_width(len(points))
    drawn = LineCollection(lines, colors=color, linewidths=width, linestyles=style)
    ax.add_collection(drawn if dashed else rounded_lines(drawn))


def _draw_dots(
    ax: Axes, points: Floats, nodes: Any, color: str, scale: float, marker: str = "o"
) -> None:
    x, y = points[nodes].T
    size = scale * dot_size(len(points))
    ax.scatter(x, y, s=size, color=color, linewidth=0, marker=marker, zorder=4)


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
    ax.plot(way[:, 0], way[:, 1], color=FAINT, linewidth=0.6 * line_width(len(points)), zorder=1)
    width = 2.4 * line_width(len(points))
    arc = PathPatch(curve, facecolor="none", edgecolor=HYPER, linewidth=width, alpha=0.55, zorder=2)
    arc.set_capstyle("round")
    ax.add_patch(arc)

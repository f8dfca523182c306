"""Draw the figures of the documentation: python docs/pictures.py FOLDER

Steps and counts are computed by the package, not drawn from memory: the pipeline is a real step of
the search, and the nodes that emerge in the six cases come from reducing real tours.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

import drhg
from drhg import hypergraph, plotting
from drhg.files.atomic import atomic_write
from drhg.network.weights import PRESETS
from drhg.plotting.drawing import FAINT, GONE, HYPER, INK, MUTED, NEW, TOUR

# What the six cases of the paper's appendix B had destroyed before node 5 of a path is.
BEFORE = {1: (), 2: (3,), 3: (3, 7), 4: (4,), 5: (4, 7), 6: (4, 6)}
CENTRE, AROUND = 5, range(2, 9)  # the node destroyed now, and what is drawn


def blank(width: float, height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(width, height))
    ax = figure.add_axes((0, 0, 1, 1))
    ax.set_xlim(0, width)
    ax.set_ylim(0, height)
    ax.set_axis_off()
    return figure, ax


def box(ax: Axes, x: float, y: float, w: float, h: float, text: str, color: str = TOUR) -> None:
    shape = FancyBboxPatch(
        (x, y), w, h, boxstyle="round,pad=0,rounding_size=0.08",
        facecolor=color + "22", edgecolor=color, linewidth=1.3,
    )  # fmt: skip
    ax.add_patch(shape)
    ax.text(x + w / 2, y + h / 2, text, ha="center", va="center", fontsize=9.5, color=INK)


def arrow(ax: Axes, start: tuple[float, float], end: tuple[float, float], bend: float = 0) -> None:
    style: dict[str, Any] = {"arrowstyle": "-|>", "mutation_scale": 12, "shrinkA": 2, "shrinkB": 2}
    style |= {"color": MUTED, "linewidth": 1.2, "connectionstyle": f"arc3,rad={bend}"}
    ax.add_patch(FancyArrowPatch(start, end, **style))


def note(ax: Axes, x: float, y: float, text: str, **style: Any) -> None:
    ax.text(x, y, text, **{"color": MUTED, "fontsize": 9, "va": "center", **style})


# --- the round of the search ---------------------------------------------------------------------


def pipeline() -> Figure:
    """Destroy, reduce, repair, judge, restore, around and around, on a real tour."""
    step = plotting.take_step(drhg.uniform_tsp(60, seed=8), seed=8, k=12)
    old, new = (drhg.cost(step.instance, s) for s in (step.before, step.after))
    p, m, n = plotting, step.graphs.size[0], step.instance.n
    stages: tuple[tuple[str, str, Callable[[Axes], None]], ...] = (
        ("incumbent", f"length {old:.3f}",
         lambda ax: p.plot_solution(ax, step.instance, step.before)),
        ("destroy", f"{len(step.destroyed)} nodes, {len(step.cut)} edges",
         lambda ax: p.plot_destroyed(ax, step)),
        ("reduce", f"{m} of {n} nodes remain", lambda ax: p.plot_hypergraph(ax, step)),
        ("repair", f"change {new - old:+.3f}",
         lambda ax: p.plot_hypergraph(ax, step, repaired=True)),
        ("restore", f"length {new:.3f}", lambda ax: p.plot_restored(ax, step)),
    )  # fmt: skip
    side, gap, low = 2.3, 0.55, 1.05
    width = len(stages) * (side + gap) + 0.25
    figure, page = blank(width, side + low + 0.75)
    for i, (name, what, draw) in enumerate(stages):
        x = 0.4 + i * (side + gap)
        draw(figure.add_axes((x / width, low / (side + low + 0.75), side / width,
                              side / (side + low + 0.75))))  # fmt: skip
        page.text(x, side + low + 0.5, name, fontsize=12.5, fontweight="bold", color=INK)
        note(page, x, side + low + 0.25, what)
        if i:
            arrow(page, (x - gap + 0.02, low + side / 2), (x - 0.02, low + side / 2))
    x = 0.4 + side / 2
    y = 0.45
    end = x + (len(stages) - 1) * (side + gap)
    page.plot([end, end, x, x], [low - 0.08, y, y, low - 0.25], color=MUTED, linewidth=1.2)
    arrow(page, (x, y), (x, low - 0.05))
    why = "accepted if the reduced graph got shorter: the tour changes by the same amount"
    page.text((x + end) / 2, y, f"  {why}  ",
              fontsize=9.5, color=INK, ha="center", va="center",
              bbox={"facecolor": "white", "edgecolor": "none"})  # fmt: skip
    return figure


# --- the network ---------------------------------------------------------------------------------


def model() -> Figure:
    """A light encoder and a heavy decoder that runs once per decision."""
    p = PRESETS["paper"]
    figure, ax = blank(9.4, 4.6)
    box(ax, 0.3, 3.2, 2.0, 0.9, "reduced nodes\nx, y, partner x, y, kind\n(m, 5)", HYPER)
    box(ax, 0.3, 1.7, 2.0, 0.7, f"linear\n(m, {p['d']})")
    arrow(ax, (1.3, 3.2), (1.3, 2.4))
    note(ax, 0.3, 4.3, "encoder, once per graph", color=INK, fontweight="bold")
    note(ax, 3.1, 4.3, "decoder, once per decision", color=INK, fontweight="bold")
    r = p["from_first"] + p["from_current"]
    split = f"{p['from_first']} + {p['from_current']} representatives"
    box(ax, 3.1, 3.2, 2.3, 0.9, f"first and current node\n{split}\n({r}, {p['d']})", NEW)
    box(ax, 3.1, 1.7, 2.3, 0.7, f"remaining nodes\n(m - t, {p['d']})")
    arrow(ax, (2.3, 2.2), (3.1, 3.4), 0.1)
    arrow(ax, (2.3, 2.05), (3.1, 2.05))
    box(
        ax,
        6.2,
        2.0,
        1.9,
        1.8,
        f"linear attention\n× {p['layers']}\n\n{p['heads']} heads\nfeed-forward {p['hidden']}",
    )
    arrow(ax, (5.4, 3.6), (6.2, 3.3))
    arrow(ax, (5.4, 2.05), (6.2, 2.4))
    box(ax, 6.2, 0.5, 1.9, 0.8, "linear, softmax\nP(next node)", GONE)
    arrow(ax, (7.15, 2.0), (7.15, 1.3))
    arrow(ax, (6.2, 0.9), (4.25, 1.65), -0.25)
    note(
        ax,
        3.0,
        0.7,
        "the chosen node becomes current;\nan end leads to its other end\nwithout asking",
        ha="left",
    )
    note(ax, 8.25, 2.9, "no normalisation\nlayers", ha="left", fontsize=8.5)
    return figure


def linear_attention() -> Figure:
    """Representatives gather from all nodes, then all nodes read from the representatives."""
    figure, ax = blank(7.6, 5.0)
    box(ax, 0.4, 0.3, 2.6, 0.7, "representatives\n(r, d)", NEW)
    box(ax, 4.6, 0.3, 2.6, 0.7, "remaining nodes\n(m - t, d)")
    box(ax, 0.4, 1.9, 2.6, 0.8, "aggregate: attention\nfrom representatives to all", NEW)
    box(ax, 4.6, 3.2, 2.6, 0.8, "broadcast: attention\nfrom all to the aggregates")
    arrow(ax, (1.7, 1.0), (1.7, 1.9))
    note(ax, 1.8, 1.5, "queries", fontsize=8)
    arrow(ax, (5.2, 1.0), (3.0, 2.2), 0.15)
    note(ax, 3.6, 1.35, "keys, values", fontsize=8)
    arrow(ax, (3.0, 2.5), (4.6, 3.4), -0.1)
    note(ax, 3.1, 3.15, "keys, values", fontsize=8)
    arrow(ax, (6.3, 1.0), (6.3, 3.2))
    note(ax, 6.4, 2.2, "queries", fontsize=8)
    arrow(ax, (5.9, 4.0), (5.9, 4.7))
    note(ax, 6.1, 4.5, "to the next module", fontsize=8)
    note(
        ax,
        0.4,
        4.4,
        "r is fixed, so the work grows with\nr × m and not with m × m",
        color=INK,
        fontsize=10,
    )
    note(ax, 0.4, 3.75, "both with residuals and a\nfeed-forward layer after them", fontsize=8.5)
    return figure


# --- which nodes emerge --------------------------------------------------------------------------


def seen(destroyed: tuple[int, ...]) -> tuple[set[int], set[int]]:
    """Nodes of the reduced graph and those among them that stand alone, of a tour 0, 1, 2, ..."""
    n = 14
    angle = 2 * np.pi * np.arange(n) / n
    instance = drhg.tsp(np.stack((np.cos(angle), np.sin(angle)), axis=1))
    rules = hypergraph.rules_of(instance)
    plan = hypergraph.plan_of(rules, drhg.Solution([np.arange(n)]))
    if not destroyed:
        return set(), set()
    ranked = np.array([destroyed], dtype=np.int32)
    cuts, count = hypergraph.destroy_nearest(rules, plan, ranked, len(destroyed))
    graphs = hypergraph.reduce(rules, plan, cuts, count)
    size = int(graphs.size[0])
    node, partner = graphs.node[0][:size], graphs.partner[0][:size]
    return set(node.tolist()), set(node[partner == np.arange(size)].tolist())


def emergence(ax: Axes, case: int, y: float, after: bool) -> int:
    """One row of a case, before or after node 5 is destroyed; how many nodes are new."""
    before, alone = seen(BEFORE[case])
    destroyed = BEFORE[case]
    now, alone_now = seen((*destroyed, CENTRE))
    shown, single = (now, alone_now) if after else (before, alone)
    gone = {*destroyed, CENTRE} if after else set(destroyed)
    for a in list(AROUND)[:-1]:
        cut = a in gone or a + 1 in gone
        style = {"color": GONE, "linestyle": (0, (2, 2))} if cut else {"color": TOUR}
        ax.plot([a, a + 1], [y, y], linewidth=1.6, zorder=1, alpha=0.5 if cut else 1.0, **style)
    for a in AROUND:
        fresh = after and a in now and a not in before
        color = GONE if fresh else HYPER if a in shown else FAINT
        marker = "o" if a in single or a not in shown else "s"
        size = 90 if a in shown else 30
        ax.scatter([a], [y], s=size, marker=marker, color=color, zorder=2, linewidth=0)
    if not after:
        look = {"arrowstyle": "-|>", "color": INK}
        ax.annotate("", (CENTRE, y + 0.13), (CENTRE, y + 0.42), arrowprops=look)
    return len(now - before)


def node_emergence() -> Figure:
    """The first of the cases alone: one more node destroyed, three nodes appear."""
    figure = Figure(figsize=(5.6, 2.3), layout="constrained")
    ax = figure.add_subplot()
    _case(ax, 1)
    return figure


def six_cases() -> Figure:
    figure = Figure(figsize=(11.5, 4.6), layout="constrained")
    for ax, case in zip(figure.subplots(2, 3).ravel(), BEFORE, strict=True):
        _case(ax, case)
    return figure


def _case(ax: Axes, case: int) -> None:
    emergence(ax, case, 1.0, after=False)
    new = emergence(ax, case, 0.0, after=True)
    ax.set_axis_off()
    ax.set_xlim(0.6, 8.6)
    ax.set_ylim(-0.45, 1.75)
    ax.set_title(f"case {case}: {new} new", loc="left", fontsize=11, color=INK, fontweight="bold")
    for y, word in ((1.0, "before"), (0.0, "after")):
        ax.text(0.65, y, word, fontsize=9, color=MUTED, va="center")
    ax.text(CENTRE, 1.5, "destroyed next", fontsize=8.5, color=INK, ha="center")


# --- the search, moving --------------------------------------------------------------------------


def frames(steps: int = 5) -> Iterator[tuple[Figure, int]]:
    """Several real steps in sequence, four pictures each, and how many milliseconds each stays."""
    cities = drhg.uniform_tsp(100, seed=5)
    step = plotting.take_step(cities, seed=5)
    yield frame("start", step.before, step.instance), 900
    for number in range(steps):
        p = plotting
        m = step.graphs.size[0]
        for name, draw, stay in (
            (f"destroy {len(step.destroyed)} nodes", p.plot_destroyed, 900),
            (f"reduce to {m} nodes", p.plot_hypergraph, 900),
            ("repair", partial(p.plot_hypergraph, repaired=True), 900),
            ("restore", p.plot_restored, 700),
        ):
            before = name != "restore"
            yield frame(name, step.before if before else step.after, cities, draw, step), stay
        step = plotting.take_step(cities, step.after, seed=number + 1)
    yield frame("and so on", step.before, cities), 2000


def frame(
    name: str,
    solution: drhg.Solution,
    instance: drhg.Instance,
    draw: Callable[[Axes, plotting.Step], None] | None = None,
    step: plotting.Step | None = None,
) -> Figure:
    figure = Figure(figsize=(4.4, 4.75), facecolor="white")
    ax = figure.add_axes((0.02, 0.02, 0.96, 0.96 * 4.4 / 4.75))
    if draw is None or step is None:
        plotting.plot_solution(ax, instance, solution)
    else:
        draw(ax, step)
    figure.text(0.04, 0.955, name, fontsize=12.5, fontweight="bold", color=INK, va="center")
    length = f"length {drhg.cost(instance, solution):.3f}"
    figure.text(0.96, 0.955, length, fontsize=11, color=MUTED, va="center", ha="right")
    return figure


def moving(path: Path) -> None:
    """The steps as an animated GIF with few colours, which a page loads at once."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from PIL import Image

    shown, stays = [], []
    for figure, stay in frames():
        canvas: Any = FigureCanvasAgg(figure)
        canvas.draw()
        picture = Image.fromarray(np.asarray(canvas.buffer_rgba())[..., :3].copy())
        shown.append(picture.quantize(32, dither=Image.Dither.NONE))
        stays.append(stay)
    data = io.BytesIO()
    shown[0].save(
        data, "GIF", save_all=True, append_images=shown[1:], loop=0, duration=stays, optimize=True
    )
    atomic_write(path, data.getvalue())


PICTURES = {
    "pipeline": pipeline,
    "model": model,
    "linear-attention": linear_attention,
    "node-emergence": node_emergence,
    "six-cases": six_cases,
}

if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "docs")
    for name, draw in PICTURES.items():
        plotting.save_figure(folder / f"{name}.png", draw(), dpi=110)
        print(folder / f"{name}.png")
    moving(folder / "steps.gif")
    print(folder / "steps.gif")

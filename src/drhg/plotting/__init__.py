"""Pictures, each drawn on an Axes that it is given."""

from drhg.plotting.animation import (
    FRAMES,
    save_animation,
    watch,
)
from drhg.plotting.charts import (
    plot_bars,
    plot_series,
)
from drhg.plotting.drawing import (
    DEPOT,
    PALETTE,
    format_of,
    save_figure,
)
from drhg.plotting.gantt import (
    plot_gantt,
    save_gantt,
)
from drhg.plotting.solutions import (
    plot_convergence,
    plot_solution,
    plot_training,
    save_convergence,
    save_solution,
    save_training,
)
from drhg.plotting.step import (
    CANDIDATES,
    Step,
    film_strip,
    plot_destroyed,
    plot_hypergraph,
    plot_restored,
    take_step,
)

__all__ = [
    "CANDIDATES",
    "DEPOT",
    "FRAMES",
    "PALETTE",
    "Step",
    "film_strip",
    "format_of",
    "plot_bars",
    "plot_convergence",
    "plot_destroyed",
    "plot_gantt",
    "plot_hypergraph",
    "plot_restored",
    "plot_series",
    "plot_solution",
    "plot_training",
    "save_animation",
    "save_convergence",
    "save_figure",
    "save_gantt",
    "save_solution",
    "save_training",
    "take_step",
    "watch",
]

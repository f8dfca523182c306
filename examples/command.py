"""A command of one's own, beside those of drhg: the length of every route.

    python examples/command.py routes plan.vrp plan.sol

In the package it would be `cli/routes.py`, named in the list of `cli/__init__.py`.
"""

from __future__ import annotations

import drhg.cli
from drhg.cli.help_pages import App, epilog
from drhg.cli.inputs import InstanceFile, SolutionFile, read_both

app = App()


@app.command(epilog=epilog([("drhg routes plan.vrp plan.sol", "a line per route")]))
def routes(instance: InstanceFile, solution: SolutionFile) -> None:
    """Print the length of every route of a plan."""
    import numpy as np

    task, answer = read_both(instance, solution)
    assert answer is not None
    for number, route in enumerate(answer.routes, start=1):
        stops = np.concatenate(([task.depot], route, [task.depot]))
        length = task.distance(stops[:-1], stops[1:]).sum()
        print(f"route {number}: {len(route)} customers, {length:,.10g}")


drhg.cli.app.add_typer(app)

if __name__ == "__main__":
    drhg.cli.main()  # wrong files and wrong options get the same messages as those of drhg

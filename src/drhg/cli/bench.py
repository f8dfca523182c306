"""`drhg bench`: a command for every suite, and those that turn rows into results."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from drhg.benchmark import RATES, TITLES
from drhg.cli.help_pages import App, epilog
from drhg.cli.report import say
from drhg.cli.shell import blaming
from drhg.errors import DrhgError
from drhg.parallel import cores

ROWS = Path("benchmarks/rows")

app = App(
    name="bench",
    help="Measure drhg beside other solvers: one command for every table of the paper.",
    epilog=epilog(
        [
            ("drhg bench tsp --quick", "a fixed subset, some minutes"),
            ("drhg bench tsp --against fast_tsp,ortools", "the whole table, hours, resumable"),
            ("drhg bench tsp --method paper,neural", "the network alone"),
            ("drhg bench cvrplib --only X --data DIR", "one set of a library"),
            ("drhg bench rates tours", "iterations per second"),
            ("drhg bench report", "rows to RESULTS.md"),
        ]
    ),
    no_args_is_help=True,
)

Rows: TypeAlias = Annotated[
    Path, typer.Option("-o", "--rows", metavar="DIR", help="Folder of the rows (JSONL).")
]
Quick: TypeAlias = Annotated[
    bool, typer.Option("--quick", help="A fixed subset, under 15 minutes on two cores.")
]
Instances: TypeAlias = Annotated[
    int | None, typer.Option("--instances", min=1, metavar="N", help="The first N of each set.")
]
Only: TypeAlias = Annotated[
    str, typer.Option("--only", metavar="NAMES", help="Only these sets or instances, by commas.")
]
Data: TypeAlias = Annotated[
    Path | None,
    typer.Option("--data", metavar="DIR", help="TSPLIB and CVRPLIB; by default $DRHG_DATA."),
]
Seed: TypeAlias = Annotated[
    int, typer.Option("-s", "--seed", min=0, metavar="N", help="Of every solver.")
]
Jobs: TypeAlias = Annotated[
    int, typer.Option("-j", "--jobs", min=1, metavar="N", help="Instances solved at a time.")
]
Ray: TypeAlias = Annotated[
    str | None,
    typer.Option("--ray", metavar="ADDRESS|local", help="Run on a Ray cluster (extra `ray`)."),
]


def _measurable(seconds: float | None) -> None:
    if seconds is not None and not 0 < seconds < math.inf:
        reason = f"{seconds:g} s is no time to measure in."
        raise typer.BadParameter(reason, param_hint="--time-limit")


def _by_commas(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _changes(given: list[str]) -> tuple[tuple[str, str], ...]:
    """The parameters of --set, as names and values."""
    found = []
    for text in given:
        name, equals, value = text.partition("=")
        if not (name.strip() and equals and value.strip()):
            raise typer.BadParameter(f"{text!r} is not KEY=VALUE.", param_hint="--set")
        found.append((name.strip(), value.strip()))
    return tuple(found)


def _suite_command(name: str) -> Callable[..., None]:
    def command(
        quick: Quick = False,
        instances: Instances = None,
        only: Only = "",
        method: Annotated[
            str,
            typer.Option("--method", metavar="NAMES",
                         help="Methods of drhg, by commas: auto, neural, paper, local, insertion, "
                              "library, hybrid. Without a limit, paper does 1,000 iterations and "
                              "neural takes the time of the paper's own run."),
        ] = "",
        changes: Annotated[
            list[str] | None,
            typer.Option("--set", metavar="KEY=VALUE",
                         help="Change a setting of the methods, such as destroy.k=20,200."),
        ] = None,
        model: Annotated[
            str | None,
            typer.Option("--model", metavar="NAME|FILE", help="Weights for the network."),
        ] = None,
        time_limit: Annotated[
            float | None,
            typer.Option("-t", "--time-limit", min=0, metavar="SECONDS",
                         help="Per instance, instead of the suite's limits."),
        ] = None,
        max_iters: Annotated[
            int | None,
            typer.Option("-n", "--max-iters", min=1, metavar="ITERS",
                         help="Of drhg, instead of seconds; such rows repeat exactly."),
        ] = None,
        against: Annotated[
            str | None,
            typer.Option("--against", metavar="NAMES",
                         help="Rivals, by commas: fast_tsp, ortools, pyvrp, hygese, elkai."),
        ] = None,
        seed: Seed = 0,
        threads: Annotated[
            int | None,
            typer.Option("--threads", min=1, metavar="N",
                         help="Per instance, for every solver; by default all cores over --jobs."),
        ] = None,
        jobs: Jobs = 1,
        ray: Ray = None,
        data: Data = None,
        nets: Annotated[
            Path | None,
            typer.Option("--nets", metavar="DIR", help="Networks of `train-size`."),
        ] = None,
        rows: Rows = ROWS,
        fresh: Annotated[
            bool, typer.Option("--fresh", help="Make rows again that are there already.")
        ] = False,
    ) -> None:  # fmt: skip
        from drhg.benchmark import rivals, run, suites
        from drhg.session.methods import NAMED

        unknown = [name for name in _by_commas(method) if name not in NAMED]
        if unknown:
            known = ", ".join(NAMED)
            raise typer.BadParameter(f"{unknown[0]!r} is not one of: {known}.")
        _measurable(time_limit)
        nearest = next(path for path in (rows, *rows.absolute().parents) if path.exists())
        if not nearest.is_dir():
            raise typer.BadParameter(f"{nearest} is no folder.", param_hint="--rows")
        here = None
        if against is not None:
            chosen, absent = rivals.chosen(against)
            here = tuple(chosen)
            for package in absent:
                say(f"{package} is not installed and is left out")
        choice = suites.Choice(
            quick=quick, instances=instances, only=_by_commas(only), data=data,
            nets=nets or suites.NETS, methods=_by_commas(method), changes=_changes(changes or []),
            model=model, time_limit=time_limit, max_iters=max_iters, seed=seed,
            threads=threads or max(1, cores() // jobs), rivals=here,
        )  # fmt: skip
        ran = run.run_suite(
            suites.SUITES[name], choice, rows, workers=jobs, ray=ray, fresh=fresh, say=say
        )
        say(f"{name}: {ran.new} new rows, {ran.before} kept, {ran.failed} failed")
        print(ran.path)

    return command


for _name, _help in TITLES.items():
    app.command(_name, help=_help)(_suite_command(_name))


@app.command()
def rates(
    what: Annotated[
        list[str] | None,
        typer.Argument(metavar="WHAT", help="tours, routes, regions or networks; all by default."),
    ] = None,
    seconds: Annotated[
        float,
        typer.Option("-t", "--time-limit", min=0, metavar="SECONDS", help="Per measurement."),
    ] = 10.0,
    threads: Annotated[
        int | None, typer.Option("--threads", min=1, metavar="N", help="By default all cores.")
    ] = None,
) -> None:
    """Measure how fast the engine and the networks are, in iterations and repairs per second."""
    unknown = [name for name in what or () if name not in RATES]
    if unknown:
        raise typer.BadParameter(f"{unknown[0]!r} is not one of: {', '.join(RATES)}.")
    _measurable(seconds)
    from drhg.benchmark import rates as measured

    for name in what or RATES:
        for line in getattr(measured, name)(seconds, threads or cores()):
            print(line, flush=True)


@app.command()
def replan(
    folder: Annotated[
        Path,
        typer.Argument(metavar="FOLDER", help="Keeps the old plan and what re-solves have found."),
    ],
    customers: Annotated[
        int, typer.Option("--customers", min=1, metavar="N", help="Of the plan.")
    ] = 10_000,
    orders: Annotated[
        int, typer.Option("--orders", min=1, metavar="N", help="Each is added by itself.")
    ] = 3,
    steps: Annotated[
        int,
        typer.Option("-n", "--max-iters", min=1, metavar="N",
                     help="Steps of a re-solve; by default those of 60 s on a quiet core."),
    ] = 7_500_000,
    old_steps: Annotated[
        int, typer.Option("--old-iters", min=1, metavar="N", help="Steps for the old plan.")
    ] = 12_500_000,
    replan_steps: Annotated[
        int,
        typer.Option("--replan-iters", min=1, metavar="N",
                     help="Steps of `replan`; by default those of 2 s on a quiet core."),
    ] = 220_000,
    seed: Annotated[int, typer.Option("-s", "--seed", min=0, metavar="N", help="Seed.")] = 5,
) -> None:  # fmt: skip
    """Measure how good a plan is after one order more, beside a search of the whole plan."""
    from drhg.benchmark.change import ChangeParams, one_order_more

    params = ChangeParams(customers, seed, orders, old_steps, steps, replan_steps)
    with blaming(folder):
        for line in one_order_more(folder, params):
            print(line, flush=True)


@app.command()
def references(
    suite: Annotated[
        str, typer.Argument(metavar="SUITE", help="Whose instances: tsp, equal-time, cvrp, ...")
    ],
    quick: Quick = False,
    instances: Instances = None,
    only: Only = "",
    time_limit: Annotated[
        float | None,
        typer.Option("-t", "--time-limit", min=0.1, metavar="SECONDS", help="Per instance."),
    ] = None,
    jobs: Jobs = 1,
    data: Data = None,
    rows: Rows = ROWS,
    again: Annotated[
        bool, typer.Option("--again", help="Also for instances that have one; the best is kept.")
    ] = False,
) -> None:
    """Find costs to compare with, by long runs of fast_tsp and hygese; kept beside the rows."""
    from drhg.benchmark import references as known
    from drhg.benchmark import run, suites
    from drhg.benchmark.rows import make_folder

    if suite not in TITLES:
        raise typer.BadParameter(f"{suite!r} is not one of: {', '.join(TITLES)}.")
    _measurable(time_limit)
    choice = suites.Choice(quick=quick, instances=instances, only=_by_commas(only), data=data)
    have = run.known_references(choice, rows)
    found = [instance for _, instance in suites.SUITES[suite].instances(choice)]
    todo = [
        i for i in found
        if have.of(i) is None or (again and have.of(i).kind == known.HERE)  # type: ignore[union-attr]
    ]  # fmt: skip
    seconds = sum(time_limit or known.long_seconds(i) for i in todo) / jobs
    say(f"{suite}: {len(todo)} of {len(found)} references to make, about {seconds / 60:.0f} min")
    path = rows / "references.json"
    make_folder(rows)
    failed = known.measure(todo, path, seconds=time_limit, workers=jobs, say=say)
    print(path)
    raise typer.Exit(1 if failed else 0)


@app.command()
def report(
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILE", help="Rows; by default all of benchmarks/rows."),
    ] = None,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="What to write.")
    ] = Path("RESULTS.md"),
    plots: Annotated[
        Path | None, typer.Option("--plots", metavar="DIR", help="Draw pictures into this folder.")
    ] = Path("docs/results"),
) -> None:
    """Turn rows into RESULTS.md: tables, spreads, rank-sum tests, pictures, and the bad rows."""
    from drhg.benchmark import results, rows
    from drhg.benchmark.references import References
    from drhg.files.atomic import atomic_write

    paths = files or sorted(ROWS.glob("*.jsonl"))
    if not paths:
        raise DrhgError("no rows; make some with: drhg bench tsp --quick", file=str(ROWS))
    known = References(None, *{path.parent / "references.json" for path in paths})
    found = [known.completed(row) for row in rows.read_rows(paths)]
    if not found:
        raise DrhgError("no rows in it", file=str(paths[0]))
    pictures = []
    if plots is not None:
        for caption, path in results.draw(found, plots):
            pictures.append((caption, os.path.relpath(path, output.parent)))
    atomic_write(output, results.results(found, pictures))
    say(f"{len(found)} rows, {len(pictures)} pictures")
    print(output)


@app.command()
def repeat(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Rows of one suite.")],
    count: Annotated[
        int, typer.Option("--count", min=1, metavar="N", help="How many rows, evenly.")
    ] = 3,
    data: Data = None,
) -> None:
    """Run rows again that were made with -n, and compare their costs: they must be the same."""
    from drhg.benchmark import rows, run, suites

    found = [row for row in rows.read_rows([file]) if row["max_iters"] and row["cost"] is not None]
    if not found:
        raise DrhgError("no row in it was made with -n", file=str(file))
    different = 0
    for row in found[:: max(1, len(found) // count)][:count]:
        if row["suite"] not in suites.SUITES:
            raise DrhgError(f"there is no suite {row['suite']!r}", file=str(file))
        again = run.repeat(row, suites.SUITES[row["suite"]], suites.Choice(data=data))
        same = again["cost"] == row["cost"]
        different += not same
        word = "the same" if same else f"then {row['cost']}, now {again['cost']}"
        print(f"{row['instance']} {row['solver']}, {row['limit']}: {word}")
    raise typer.Exit(1 if different else 0)


@app.command()
def gate(
    update: Annotated[bool, typer.Option("--update", help="Make this the new baseline.")] = False,
    baseline: Annotated[
        Path | None,
        typer.Option("--baseline", metavar="FILE", help="Instead of benchmarks/gate.json."),
    ] = None,
) -> None:
    """Solve a small fixed set; fail if the mean gap is 0.1 points above that of the baseline."""
    from drhg.benchmark import gate as gates
    from drhg.benchmark.run import described
    from drhg.benchmark.statistics import mean
    from drhg.files.atomic import atomic_write

    path = baseline or gates.BASELINE
    if update and not path.parent.is_dir():
        raise DrhgError("the folder of this file does not exist", file=str(path))
    base: dict[str, Any] = {"references": {}}
    if path.exists() or not update:
        base = gates.read_baseline(path)
    if update:
        for name, best in gates.references(base["references"], 5.0):
            say(f"{name}: reference {best:.6g}")
    made = {}
    for name, row in gates.measure(base["references"]):
        made[name] = row
        say(described(row))
    if update:
        bad = [name for name, row in made.items() if row["cost"] is None]
        if bad:
            raise DrhgError(f"no baseline from failed cases: {', '.join(bad)}")
        atomic_write(path, gates.new_baseline(base["references"], made))
        print(path)
        return
    wrong = gates.verdict(made, base)
    average = mean(list(gates.gaps_of(made).values()))
    print(f"mean gap {average:.3f} % of {len(made)} cases; baseline {base['mean_gap']:.3f} %")
    for reason in wrong:
        say(reason)
    raise typer.Exit(1 if wrong else 0)

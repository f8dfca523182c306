"""RESULTS.md and its pictures, from rows alone."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from drhg.benchmark.published import published
from drhg.benchmark.rivals import RIVALS
from drhg.benchmark.rows import OK, Row, make_folder
from drhg.benchmark.statistics import (
    START,
    Line,
    counterpart,
    lines_of,
    mean,
    paired,
    rank_sum,
    spread,
    verdict,
    with_references,
)
from drhg.benchmark.suites import SUITES, Suite

TOTAL = {"tsplib": "all", "cvrplib": "all"}  # suites whose sets add up to a last line
HEADINGS = ("set", "solver", "limit", "instances", "objective", "±", "gap %", "±", "time s", "p")


def results(rows: Sequence[Row], pictures: Sequence[tuple[str, str]] = ()) -> str:
    """The whole of RESULTS.md; `pictures` are captions and paths relative to it."""
    rows = [_with_threads(row) for row in with_references(rows)]
    parts = [_head(rows)]
    for name, suite in SUITES.items():
        mine = [row for row in rows if row["suite"] == name]
        if mine:
            parts.append(_section(suite, mine))
    if pictures:
        shown = "\n\n".join(f"![{caption}]({path})" for caption, path in pictures)
        parts.append(f"## Pictures\n\n{shown}")
    parts.append(_marked(rows))
    return "\n\n".join(parts) + "\n"


def _with_threads(row: Row) -> Row:
    """Add the number of threads to the limit, so that only rows with equal numbers are compared."""
    if row["limit"] == START or "threads" not in row:
        return row
    several = "s" if row["threads"] != 1 else ""
    return row | {"limit": f"{row['limit']}, {row['threads']} thread{several}"}


def table(headings: Sequence[str], body: Iterable[Sequence[str]], left: int = 1) -> str:
    """A Markdown table; the first `left` columns are words, the rest numbers."""
    rules = [":---" if i < left else "---:" for i in range(len(headings))]
    lines = [headings, rules, *body]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _head(rows: Sequence[Row]) -> str:
    machines = sorted({f"{row.get('cpu')}, {row.get('cores')} cores" for row in rows})
    commits = sorted({str(row.get("commit")) for row in rows})
    days = sorted({str(row.get("when"))[:10] for row in rows})
    licences = [f"{r.name} ({r.licence})" for r in RIVALS.values() if r.licence]
    return "\n".join(
        [
            "# Results",
            "",
            "Made by `drhg bench report` from the rows in `benchmarks/rows`; every row holds its "
            "seed, configuration, commit and machine.",
            "",
            f"- Rows: {len(rows)}, made {_span(days)}, commits {', '.join(commits)}.",
            f"- Machine: {'; '.join(machines)}. Limits name the threads, which are processes of a "
            "rival that uses one core each.",
            "- Gap: percent above the reference, the mean over instances; blank where nobody "
            "else's cost is known. ±: sample standard deviation over instances. Time: mean "
            "seconds per instance, compilation excluded.",
            "- Rivals ran with the same limit and cores, each in its own process (rows say when, "
            "and at which commit); those that use one core ran once per core with different seeds, "
            "and the best counts. All answers are checked and costed by drhg's checker.",
            "- p: two-sided rank-sum test of a solver's gaps against drhg's under the same limit, "
            "on the instances both solved; below 0.05 they differ. In front of it, + says that "
            "drhg's mean gap is the lower one, - that it is the higher one.",
            f"- For comparison only, never a dependency: {', '.join(licences)}.",
        ]
    )


def _span(days: Sequence[str]) -> str:
    return days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"


def _section(suite: Suite, rows: list[Row]) -> str:
    lines = lines_of(rows, TOTAL.get(suite.name))
    lines.sort(key=lambda line: _place(suite, line))
    parts = [f"## {suite.title}", "\n".join(suite.notes)] if suite.notes else [f"## {suite.title}"]
    paper = any(line.values("unrounded_gap") for line in lines)
    extra = ["paper's gap %"] if paper else []
    if suite.name == "non-optimal":
        extra.append("not optimal")
    body = []
    for line in lines:
        cells = _cells(line, lines)
        if paper:
            cells.append(_number(mean(line.values("unrounded_gap")), 3))
        if suite.name == "non-optimal":
            known = len(line.values("gap"))
            cells.append(f"{line.non_optimal(suite.tolerance)} of {known}" if known else "")
        body.append(cells)
    parts.append(table((*HEADINGS, *extra), body, left=3))
    parts.append(f"References: {_kinds(lines)}.")
    parts.append(_blanks(suite, rows))
    if suite.name in TOTAL:
        parts.append(_instances(suite, rows))
    parts.append(_published(suite))
    return "\n\n".join(part for part in parts if part)


def _place(suite: Suite, line: Line) -> tuple[int, float, int, list[int], str]:
    """Sort key: sets in the order of the suite, then limits, then drhg before its rivals."""
    names = [part.name for part in suite.parts]
    place = names.index(line.set) if line.set in names else len(names)
    rivals = list(RIVALS)
    rank = rivals.index(line.solver) if line.solver in rivals else -1
    row = line.rows[0]
    amount = -1.0 if line.limit == START else float(row["max_iters"] or row["time_limit"] or 0)
    amount = amount if len({r["time_limit"] for r in line.rows}) == 1 else 0.0
    numbers = [int(digits) for digits in re.findall(r"\d+", line.solver)]
    return place, amount, rank, numbers, line.solver


def _cells(line: Line, lines: Sequence[Line]) -> list[str]:
    gaps, costs = line.values("gap"), line.values("cost")
    bad = len(line.rows) - len(line.valid)
    late = len(line.marked) - bad
    count = f"{len(line.valid)}" + (f" (+{bad} failed)" if bad else "")
    count += f" ({late} late)" if late else ""
    ours = counterpart(line, lines)
    p = ""
    if ours is not None:
        a, b = paired(ours, line)
        chance = rank_sum(a, b)
        p = f"{verdict(a, b)} {chance:.2g}" if math.isfinite(chance) else verdict(a, b)
    mixed = len({row["n"] for row in line.valid}) > 1  # objectives of other sizes do not add up
    return [
        line.set, line.solver, line.limit, count,
        "" if mixed else _number(mean(costs), 4), "" if mixed else _number(spread(costs), 4),
        _number(mean(gaps), 3), _number(spread(gaps), 3),
        _number(mean(line.values("seconds")), 2), p,
    ]  # fmt: skip


def _number(value: float, digits: int) -> str:
    return "" if math.isnan(value) else f"{value:,.{digits}f}"


def _kinds(lines: Sequence[Line]) -> str:
    by_set: dict[str, set[str]] = {}
    for line in lines:
        by_set.setdefault(line.set, set()).update(line.kinds)
    shown: dict[str, list[str]] = {}
    for name, kinds in by_set.items():
        shown.setdefault(" and ".join(sorted(kinds)) or "none", []).append(name)
    return "; ".join(f"{kinds} ({', '.join(names)})" for kinds, names in shown.items())


def _blanks(suite: Suite, rows: Sequence[Row]) -> str:
    """Explain why some costs have no gap."""
    bare = [row for row in rows if row["cost"] is not None and row["gap"] is None]
    names = list(dict.fromkeys(row["instance"] for row in bare))
    if not names:
        return ""
    shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    return (
        f"No gap: nobody else's cost is known of {shown}. "
        f"`drhg bench references {suite.name}` finds such costs by long runs of rivals."
    )


def _instances(suite: Suite, rows: Sequence[Row]) -> str:
    """A line per instance: the gap of each solver, and the published one where there is one."""
    solvers = list(dict.fromkeys((r["solver"], r["limit"]) for r in rows if r["limit"] != START))
    theirs: dict[str, dict[str, str]] = {}
    for entry in published():
        if entry["table"] == f"{suite.name}-instances" and entry["solver"].startswith("DRHG"):
            short = "paper" if "AAAI" in entry["source"] else "logs"
            column = f"{entry['solver'].split()[0]} ({short}, {entry['note'] or 'gap'}) %"
            theirs.setdefault(column, {})[entry["set"]] = entry["gap"]
    names: dict[str, dict[tuple[str, str], Row]] = {}
    for row in rows:
        names.setdefault(row["instance"], {})[row["solver"], row["limit"]] = row
    head = ["instance", "n", "reference"]
    for solver, limit in solvers:
        short = (
            f"{solver}, {limit}" if len({lim for s, lim in solvers if s == solver}) > 1 else solver
        )
        head += [f"{short} cost", "gap %", "unrounded gap %", "s"] if solver == "drhg" else []
        head += [f"{short} gap %"] if solver != "drhg" else []
    body = []
    for name, found in sorted(
        names.items(), key=lambda item: (next(iter(item[1].values()))["n"], item[0])
    ):
        first = next(iter(found.values()))
        cells = [
            name,
            str(first["n"]),
            "" if first["reference"] is None else f"{first['reference']:g}",
        ]
        for key in solvers:
            one = found.get(key)
            gap = "" if one is None else _gap(one)
            if key[0] != "drhg":
                cells.append(gap)
            elif one is None or one["cost"] is None:
                cells += ["", gap, "", ""]
            else:
                plain = _number(one.get("unrounded_gap", math.nan), 3)
                cells += [f"{one['cost']}", gap, plain, f"{one['seconds']:.1f}"]
        body.append(cells + [column.get(name, "") for column in theirs.values()])
    note = "Columns in brackets are published, not measured here." if theirs else ""
    return f"### {suite.name}: every instance\n\n{note}\n\n" + table([*head, *theirs], body)


def _gap(row: Row) -> str:
    if row["gap"] is None:
        return str(row["status"]) if row["cost"] is None else ""
    return f"{row['gap']:.3f}" + ("" if row["status"] == OK else f" ({row['status']})")


def _published(suite: Suite) -> str:
    """What others published for the same table: a line per solver, a column per set."""
    mine = [entry for entry in published() if entry["table"] == suite.name]
    if not mine:
        return ""
    sets = list(dict.fromkeys(entry["set"] for entry in mine))
    solvers: dict[tuple[str, str], dict[str, str]] = {}
    for entry in mine:
        value = f"{entry['gap']} %" if entry["gap"] not in ("", "OOM") else entry["gap"]
        if entry["objective"]:
            value = f"{entry['objective']} ({value})" if value else entry["objective"]
        source = entry["source"] + (f"; {entry['note']}" if entry["note"] else "")
        solvers.setdefault((entry["solver"], source), {})[entry["set"]] = value
    body = [
        [solver, *(cells.get(name, "") for name in sets), source]
        for (solver, source), cells in solvers.items()
    ]
    head = "### Published by others, not measured here\n\n"
    return head + table(["solver", *sets, "source"], body)


def _marked(rows: Sequence[Row]) -> str:
    """Every row that failed or came late, with the reason."""
    bad = [row for row in rows if row["status"] != OK]
    if not bad:
        return "## Marked rows\n\nNone: every answer came in time and was valid."
    body = [
        [row["suite"], row["instance"], row["solver"], row["limit"], row["status"],
         str(row.get("error") or f"{row['seconds']:.2f} s").replace("|", "/")]
        for row in bad
    ]  # fmt: skip
    head = ("suite", "instance", "solver", "limit", "status", "why")
    return "## Marked rows\n\n" + table(head, body, left=6)


# --- pictures ------------------------------------------------------------------------------------


def draw(rows: Sequence[Row], folder: Path) -> list[tuple[str, Path]]:
    """Draw the pictures for which there are rows; returns their captions and files."""
    from matplotlib.figure import Figure

    from drhg import plotting

    rows = with_references(rows)
    make_folder(folder)
    made: list[tuple[str, Path]] = []

    def save(figure: Figure, name: str, caption: str) -> None:
        plotting.save_figure(folder / name, figure, dpi=110)
        made.append((caption, folder / name))

    timed = [row for row in rows if row["suite"] == "equal-time"]
    if timed:
        sets = list(dict.fromkeys(row["set"] for row in timed))
        figure = Figure(figsize=(4.6 * len(sets), 4), layout="constrained")
        for ax, name in zip(figure.subplots(1, len(sets), squeeze=False)[0], sets, strict=True):
            series: dict[str, list[tuple[float, float]]] = {}
            for line in lines_of(row for row in timed if row["set"] == name):
                gaps = line.values("gap")
                if gaps:
                    at = (float(line.rows[0]["time_limit"]), mean(gaps))
                    series.setdefault(line.solver, []).append(at)
            plotting.plot_series(ax, series, "seconds", "mean gap, %")
            ax.set_title(name, loc="left")
        save(figure, "gap-over-time.png", "Mean gap over time, per solver")
    for suite, what in (("tsp", "tours"), ("cvrp", "plans")):
        series = {}
        for line in lines_of(row for row in rows if row["suite"] == suite):
            gaps = line.values("gap")
            if gaps and line.limit != START:
                at = (mean(line.values("n")), mean(gaps))
                series.setdefault(line.solver, []).append(at)
        if series:
            figure = Figure(figsize=(7, 4), layout="constrained")
            ax = figure.add_subplot()
            plotting.plot_series(ax, series, "nodes", "mean gap, %")
            save(figure, f"gap-over-n-{suite}.png", f"Mean gap over the size of uniform {what}")
    for suite in ("tsplib", "cvrplib"):
        ours = [r for r in rows if r["suite"] == suite and r["gap"] is not None]
        groups = sorted((li for li in lines_of(ours, "all") if li.ours and li.set == "all"),
                        key=lambda li: -len(li.rows))  # fmt: skip
        if groups:
            best = sorted(groups[0].rows, key=lambda row: (row["n"], row["instance"]))
            bars = {row["instance"]: float(row["gap"]) for row in best}
            marks = {
                entry["set"]: float(entry["gap"])
                for entry in published()
                if entry["table"] == f"{suite}-instances"
                and entry["source"].startswith("independent")
                and entry["solver"].startswith("DRHG") and entry["gap"]
            }  # fmt: skip
            figure = Figure(figsize=(max(6.0, 0.19 * len(bars) + 1.5), 4), layout="constrained")
            plotting.plot_bars(figure.add_subplot(), bars, marks, groups[0].solver,
                               "DRHG, independent logs (not measured here)", "gap, %")  # fmt: skip
            save(figure, f"{suite}-instances.png", f"{suite.upper()}: gap of every instance")
    return made

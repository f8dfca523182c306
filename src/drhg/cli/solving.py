"""What `drhg solve` does with its files: reads, solves, writes and reports each of them."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import typer

from drhg.cli.inputs import read_instance, with_fleet
from drhg.cli.report import Report, Tally, Trace, View, print_routes, say
from drhg.cli.shell import (
    BAD_INPUT,
    INFEASIBLE,
    NO_SEARCH,
    OK,
    SOME_FAILED,
    STOP,
    Format,
    Interrupted,
    blaming,
)
from drhg.cli.targets import STANDARD, Destination, pictures, solutions
from drhg.errors import DrhgError

if TYPE_CHECKING:
    from drhg.problem import Instance, Solution
    from drhg.session.result import Result, TracePoint

Codes: TypeAlias = list[int]


@dataclass(frozen=True)
class Job:
    """An instance's file, its place among all, and where its solution and its pictures go."""

    place: int
    path: Path
    target: Destination | None
    picture: Path | None
    map: Path | None


@dataclass(frozen=True)
class Prepared:
    """A job that has been read: its instance, the start of its search, the file to write."""

    job: Job
    instance: Instance
    start: str | Solution
    output: Path | None


@dataclass(frozen=True)
class SolveOptions:
    """What `drhg solve` was asked to do, the same for every file."""

    search: dict[str, Any]  # keyword arguments of `drhg.solve`
    start: str
    vehicles: int | None
    table: dict[str, Any]  # keyword arguments of `drhg.read_table`
    output: Path | None
    trace: Path | None
    plot: Path | None
    map: Path | None
    routes: bool
    format: Format
    quiet: bool


def solve_in_turn(files: Sequence[Path], options: SolveOptions) -> int:
    """Solve all files, one after the other; the exit code."""
    jobs = _jobs(files, options)
    report = _report(options)
    try:
        if options.trace is not None:
            options.trace.parent.mkdir(parents=True, exist_ok=True)
        opened = Trace(options.trace, len(files) > 1)
    except OSError as error:
        raise typer.BadParameter(f"cannot write {options.trace}: {error.strerror}.") from None
    with opened as trace:
        codes = _solve_each(jobs, options, report, trace)
    report.close()
    return _exit_code(codes)


def solve_at_once(
    files: Sequence[Path], options: SolveOptions, address: str | None, workers: int | None
) -> int:
    """Solve several files at a time: in processes, on a Ray cluster, or as batches of a network."""
    report = _report(options)
    codes: Codes = []
    tasks: list[Prepared] = []
    for job in _jobs(files, options):
        with _failing_alone(job, codes, report):
            tasks.append(_prepared(job, options))
    if address is not None and len(files) == len(tasks) == 1 and _spreads(tasks[0], options):
        options.search["ray"] = address
        return solve_in_turn(files, options)
    if address is None and tasks and _batches(tasks, options):
        _solve_batches(tasks, options, workers, codes, report)
    else:
        _solve_apart(tasks, options, address, workers, codes, report)
    report.close()
    return _exit_code(codes)


def _spreads(task: Prepared, options: SolveOptions) -> bool:
    """Whether the workers of a cluster can share one instance."""
    from drhg.session.methods import strategy_of

    with blaming(task.job.path):
        return strategy_of(options.search["method"], task.instance).spreads(task.instance) is None


def _batches(tasks: Sequence[Prepared], options: SolveOptions) -> bool:
    from drhg.session.methods import strategy_of

    method = options.search["method"]
    try:
        ours = [strategy_of(method, task.instance) for task in tasks]
    except DrhgError:  # told by the search of the file that it is about
        return False
    return all(getattr(strategy, "batches", False) for strategy in ours) and all(
        isinstance(task.start, str) for task in tasks
    )


def _solve_batches(
    tasks: Sequence[Prepared],
    options: SolveOptions,
    size: int | None,
    codes: Codes,
    report: Report,
) -> None:
    """The files in batches of a network, in this process."""
    with STOP.patient():
        try:
            with blaming(tasks[0].job.path):
                results = _search_together([task.instance for task in tasks], options, size)
        except typer.Exit as failure:
            codes.append(failure.exit_code)
            return
        for task, result in zip(tasks, results, strict=True):
            with _failing_alone(task.job, codes, report):
                _deliver(task, result, options, report)
                codes.append(OK)


def _solve_apart(
    tasks: Sequence[Prepared],
    options: SolveOptions,
    address: str | None,
    workers: int | None,
    codes: Codes,
    report: Report,
) -> None:
    """The files in processes, or on a Ray cluster; reported in their order."""
    from drhg.parallel import cores, spread

    threads = options.search["threads"] or 1
    ends = spread(
        _solve_task,
        [(task.instance, task.start, options.search) for task in tasks],
        workers=workers or max(1, cores() // threads),
        ray=address,
        cores=threads,
        stopped=STOP.requested,
    )
    in_the_way = options.format is Format.json and sys.stdout.isatty()  # rows on the same terminal
    tally = Tally(len(tasks), options.quiet, live=not in_the_way)
    with STOP.patient(), closing(ends), tally:
        for done in ends:
            task = tasks[done.index]
            tally.ended(task.job.path, done.value)
            with _failing_alone(task.job, codes, report):
                with blaming(task.job.path):
                    if done.error is not None:
                        raise _expected(done.error)
                _deliver(task, done.value, options, report)
                codes.append(OK)


def _expected(error: Exception) -> Exception:
    """An error of one task, as one that does not end the others."""
    if isinstance(error, (DrhgError, OSError)):
        return error
    return DrhgError(f"unexpected error: {error}")


def _solve_task(task: tuple[Instance, str | Solution, dict[str, Any]]) -> Result:
    """On a worker: one instance, on as many threads as it was given cores."""
    from drhg.session.solve import solve

    instance, start, search = task
    return solve(instance, start=start, **search | {"threads": search["threads"] or 1})


def _exit_code(codes: Sequence[int]) -> int:
    """Of several instances: theirs if they agree, else that some failed."""
    if STOP.requested():
        return STOP.exit_code
    failed = set(codes) - {OK}
    if not failed:
        return OK
    if OK in codes:
        return SOME_FAILED
    return failed.pop() if len(failed) == 1 else BAD_INPUT


@contextmanager
def _failing_alone(job: Job, codes: Codes, report: Report) -> Iterator[None]:
    """A job that fails has an exit code and no result, and the others go on."""
    try:
        yield
    except typer.Exit as failure:
        codes.append(failure.exit_code)
        report.add(job.place, job.path, None)


def _prepared(job: Job, options: SolveOptions) -> Prepared:
    from drhg.files.registry import check_solution_file

    with blaming(job.path):
        instance = _read_instance(job.path, options)
        start = _start(options.start, instance, job.path)
        output = None if job.target is None else job.target.of(instance)
        if job.map is not None:
            check_solution_file(job.map, instance)
        return Prepared(job, instance, start, output)


def _solve_each(jobs: Sequence[Job], options: SolveOptions, report: Report, trace: Trace) -> Codes:
    """One instance after the other; the exit code of each."""
    codes: Codes = []
    for job in jobs:
        with suppress(Interrupted), _failing_alone(job, codes, report):
            task = _prepared(job, options)
            with STOP.patient():
                with blaming(job.path):
                    result = _search(task.instance, task.start, options, trace)
                _deliver(task, result, options, report)
            codes.append(OK)
        if STOP.requested():
            break
    return codes


def _deliver(task: Prepared, result: Result, options: SolveOptions, report: Report) -> None:
    """Write and report a result, each even if the other fails; `typer.Exit` tells what did."""
    job, output = task.job, task.output
    if not STOP.requested():  # who interrupts knows that the search was short
        for warning in result.warnings:
            say(f"{job.path}: {warning}")
    code = {"infeasible": INFEASIBLE, "no_search": NO_SEARCH}.get(result.status)
    try:
        if code is not None:
            say(f"{job.path}: {_left_out(result, job.path)}")
            raise typer.Exit(code)
        with blaming(job.path, SOME_FAILED):
            _save(result, job, output)
        if options.routes and options.format is not Format.json:
            print_routes(result, stderr=options.output == STANDARD)
    finally:
        report.add(job.place, job.path, result)


def _left_out(result: Result, path: Path) -> str:
    """Names the customers that no route could take."""
    from drhg.files.messages import in_file_numbers

    shown, more = result.unplaced[:20], len(result.unplaced) - 20
    searched = result.status == "infeasible"
    reason = "no feasible solution found" if searched else "the first plan is not feasible"
    nodes = in_file_numbers(result.instance.called(*shown), path) + (
        f" and {more} more" if more > 0 else ""
    )
    return f"{reason}; left out: {nodes}"


def _read_instance(path: Path, options: SolveOptions) -> Instance:
    return with_fleet(read_instance(path, options.table), options.vehicles, path)


def _start(given: str, instance: Instance, path: Path) -> str | Solution:
    """The name of a start, or the warm start read from a file and found valid."""
    if given in starts():
        return given
    from drhg.files.messages import in_file_numbers
    from drhg.files.registry import read_solution
    from drhg.problem import validated

    found = read_solution(given, instance, instance_file=path)
    try:
        return validated(instance, found)
    except DrhgError as error:
        raise type(error)(in_file_numbers(error.reason, given), file=given) from None


def _search(
    instance: Instance, start: str | Solution, options: SolveOptions, trace: Trace
) -> Result:
    from drhg.session.solve import solve

    view = View(instance.name, options.search["time_limit"], options.quiet)

    def on_improve(point: TracePoint, solution: Solution) -> None:
        trace.add(point, instance.name)
        view.improved(point)

    with view:
        return solve(
            instance, start=start, on_improve=on_improve, should_stop=STOP.requested,
            **options.search,
        )  # fmt: skip


def _search_together(
    instances: Sequence[Instance], options: SolveOptions, size: int | None
) -> list[Result]:
    from drhg.session.solve import solve_many

    name = f"mean of {len(instances)}"
    view = View(name, options.search["time_limit"], options.quiet)
    costs: dict[int, float] = {}

    def on_improve(i: int, point: TracePoint, solution: Solution) -> None:
        costs[i] = point.cost
        if len(costs) == len(instances):
            view.improved(replace(point, cost=sum(costs.values()) / len(costs)))

    with view:
        return solve_many(
            instances, start=options.start, jobs=size, on_improve=on_improve,
            should_stop=STOP.requested, **options.search,
        )  # fmt: skip


def _save(result: Result, job: Job, output: Path | None) -> None:
    for target in (output, job.picture, job.map):
        if target is not None:
            target.parent.mkdir(parents=True, exist_ok=True)
    for written in (output, job.map):
        if written is not None:
            from drhg.files.registry import write_solution

            write_solution(
                written, result.instance, result.solution, result.cost, instance_file=job.path
            )
    if job.picture is not None and STOP.requested():
        say(f"{job.picture}: not drawn, interrupted")
    elif job.picture is not None:
        from drhg.plotting.solutions import save_solution

        save_solution(job.picture, result.instance, result.solution)


def _jobs(files: Sequence[Path], options: SolveOptions) -> list[Job]:
    """All files with where their results go, which has been tried."""
    targets = solutions(files, options.output)
    drawn = pictures(files, options.plot)
    maps = pictures(files, options.map, "--map", (".html",))
    return [Job(*job) for job in zip(range(len(files)), files, targets, drawn, maps, strict=True)]


def _report(options: SolveOptions) -> Report:
    if options.output != STANDARD:
        return Report(options.format is Format.json)
    return Report(False, silent=options.quiet, stderr=True)


def starts() -> tuple[str, ...]:
    from drhg.construct.starts import STARTS

    return ("auto", *(name for name in STARTS if name != "auto"))

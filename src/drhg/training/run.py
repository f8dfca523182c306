"""A training run from its first step to its last: limits, signals, log, checkpoints."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO

import numpy as np
import torch

from drhg.errors import ModelError
from drhg.files import atomic_write
from drhg.network import weights
from drhg.network.torch_model import fill
from drhg.training import checkpoints
from drhg.training.optimisers import rate_at
from drhg.training.recipe import Recipe
from drhg.training.shards import read_labels
from drhg.training.trainer import Trainer

SHOW_EVERY = 10.0  # seconds between signs of life

Entry = dict[str, float]


def _board(out: Path) -> Callable[[Entry], None]:
    """Writes entries of the log as events for TensorBoard."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ModuleNotFoundError:
        raise ModelError(
            "TensorBoard is missing: install drhg with its extra `tensorboard`"
        ) from None
    writer = SummaryWriter(str(out))

    def write(entry: Entry) -> None:
        for key, value in entry.items():
            writer.add_scalar(key, value, int(entry["step"]))
        writer.flush()

    return write


def _hold(out: Path) -> IO[bytes]:
    """Two runs in one folder would overwrite each other's checkpoints: the second is refused.

    The system lets go of the folder when the file is closed or the process ends, however it does.
    """
    lock = open(out / ".lock", "wb")  # noqa: SIM115
    try:
        import fcntl  # not on every system; without it nobody is refused

        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        raise ModelError("another run is at work in this folder", file=str(out)) from None
    except ModuleNotFoundError:
        pass
    return lock


def _no_shards(pattern: str, folder: Path) -> str:
    """What was looked for, and what is there instead."""
    if not folder.is_dir():
        return f"there is no folder {folder} with labels; `drhg label` makes them"
    there = sorted(path.name for path in folder.iterdir())
    more = f" and {len(there) - 5} more" if len(there) > 5 else ""
    held = f"it holds {', '.join(there[:5])}{more}" if there else "it is empty"
    return f"no labels {pattern} in the folder {folder}: {held}; `drhg label` makes them"


def train(
    recipe: Recipe,
    data: Path,
    out: Path,
    *,
    resume: bool = False,
    minutes: float | None = None,
    steps: int | None = None,
    init: str | None = None,
    decay: bool = False,
    threads: int = 1,
    device: str = "cpu",
    tensorboard: bool = False,
    should_stop: Callable[[], bool] = lambda: False,
    report: Callable[[Entry], None] = lambda entry: None,
) -> Trainer:
    """Train until the time, the steps or the decay branch end, or until asked to stop.

    Logs to `out/log.jsonl` at every validation; `report` also hears of what happens between.
    """
    torch.set_num_threads(1)  # threads take chunks instead
    shards = sorted(data.glob(recipe.labels))
    if not shards:
        raise ModelError(_no_shards(recipe.labels, data))
    trainer = Trainer(recipe, read_labels(shards), threads, device)
    leads = trainer.team.rank == 0
    if not resume and any(out.glob("step-*.json")):
        raise ModelError("there is a run in this folder: use --resume, or another folder")
    out.mkdir(parents=True, exist_ok=True)
    held = _hold(out) if leads else None
    found = resume and checkpoints.resume(trainer, out)
    log = out / "log.jsonl"
    if resume and leads:
        _rewind(log, trainer.step)
    if not found and init is not None:
        start = weights.load(init)
        for network in (trainer.network, trainer.average):
            fill(network, start.tensors, str(start.path))
    if decay and trainer.decay_from is None:
        trainer.decay_from = trainer.step
    also = [_board(out)] if tensorboard and leads else []
    last = steps
    if trainer.decay_from is not None:
        end = trainer.decay_from + recipe.decay
        last = end if last is None else min(last, end)
    losses: list[float] = []
    begin = before = shown = time.perf_counter()
    mark = trainer.decisions
    asked = False
    while last is None or trainer.step < last:
        asked = asked or should_stop()
        over = minutes is not None and time.perf_counter() - begin > 60 * minutes
        losses.append(trainer.train_step(stop=asked or over))
        now = time.perf_counter()
        trainer.seconds += now - before
        before = now
        finished = trainer.step == last or trainer.stopping
        due = trainer.step % recipe.every == 0 or finished
        entry: Entry = {
            "step": trainer.step,
            "decisions": trainer.decisions,
            "hours": round(trainer.seconds / 3600, 4),
            "rate": rate_at(recipe, trainer.step, trainer.decisions, trainer.decay_from),
            "loss": round(float(np.mean(losses)), 5),
            "per_second": round((trainer.decisions - mark) / (now - begin), 1),
        }
        if leads and due:
            entry |= {} if asked else trainer.validate()  # asked to stop: be quick
            with open(log, "a", encoding="utf-8") as lines:  # first: `_rewind` drops it again
                lines.write(json.dumps(entry) + "\n")
            checkpoints.save(trainer, out)
            for write in also:
                write(entry)
        if leads and (due or now - shown > SHOW_EVERY):
            report(entry)
            shown = now
        if due:
            losses.clear()
            spent = time.perf_counter() - now
            begin += spent  # validation is no training time
            before += spent
        if finished:
            break
    trainer.pool.shutdown(cancel_futures=True)
    trainer.team.close()
    if held is not None:
        held.close()
    return trainer


def _rewind(log: Path, step: int) -> None:
    """Drop what a log says of steps after a checkpoint, since they will be taken again."""
    if not log.exists():
        return
    lines = log.read_bytes().splitlines(keepends=True)
    kept = []
    for line in lines:
        with suppress(ValueError):  # cut off by a kill
            if json.loads(line)["step"] <= step:
                kept.append(line)
    if kept != lines:
        atomic_write(log, b"".join(kept))

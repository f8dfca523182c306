"""Supervised training of a network that repairs: one loop, resumable at any moment.

A step draws `batch` decisions, cuts them into chunks, lets every worker thread take chunks, and
adds the gradients up in the order of the chunks: the result does not depend on how many threads
there are. Everything random is a function of the seed and the step, so a checkpoint is weights,
optimiser, average and counters, and a resumed run on a CPU repeats an uninterrupted one bit by bit.
Several processes (`torchrun`) share the chunks of every batch, so they train the same network.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import os
import platform
import time
import tomllib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import torch
import torch.distributed
from torch import Tensor

from drhg import weights
from drhg.errors import ModelError
from drhg.hypergraph import Flags
from drhg.model import ModelConfig, Network, build, device_of, fill, save_model, tensors_of
from drhg.network_kernels import compiles, layout, learn_rows
from drhg.neural import GROUP, NeuralRepair, Scorer, State, compiled
from drhg.problem import cost, shown
from drhg.solver import solve_many
from drhg.training.data import HELD_OUT, Plans, Recipe, Tours, draw, held_out_gap, read_labels

HELD_OUT_SIZES = (30, 50, 80)
SHOW_EVERY = 10.0  # seconds between signs of life
OPTIMISERS = ("adamw", "adam", "muon")


@dataclass(frozen=True)
class Config:
    """A training run, as in `configs/*.toml`."""

    network: ModelConfig
    data: Recipe = field(default_factory=Recipe)
    labels: str = "tsp100-*.npz"  # which shards of the data folder
    seed: int = 1
    batch: int = 768  # decisions per step
    chunk: int = 64  # decisions that go through the network at once
    optimiser: str = "adamw"  # adamw | adam | muon (which leaves all but hidden matrices to adamw)
    rate: float = 2e-3
    rate_muon: float = 1e-2
    betas: tuple[float, float] = (0.9, 0.98)
    weight_decay: float = 0.01
    clip: float = 1.0
    warmup: int = 300  # steps of rising rate
    gamma: float = 1.0  # factor on the rate per `epoch` decisions (the paper: 0.97 per 1 M)
    epoch: int = 1_000_000
    decay: int = 4000  # steps of the branch that brings the rate to zero (`--decay`)
    average: float = 0.999  # of the exponential moving average of weights; 0 for none
    every: int = 500  # steps between validations and checkpoints
    k: tuple[int, int] = (20, 100)  # destroyed nodes in validation solves, and in the model card
    solves: int = 16  # held-out instances solved at each validation
    solve_iters: int = 50  # iterations of each, from the paper's start


def read_config(path: str | os.PathLike[str]) -> Config:
    """A TOML file as a `Config`; unknown keys and values that make no sense are errors."""
    try:
        raw = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except TypeError:
        raise ModelError(f"path must be the name of a file, not {shown(path)}") from None
    except OSError as error:
        raise ModelError(f"cannot read: {error.strerror}", file=str(path)) from None
    except ValueError as error:  # TOMLDecodeError, UnicodeDecodeError, a NUL in the path
        raise ModelError(f"not a TOML file: {error}", file=str(path)) from None
    try:
        return _config(raw)
    except ModelError as error:
        raise ModelError(error.reason, file=str(path)) from None


def _config(raw: dict[str, Any]) -> Config:
    """A configuration as TOML has it, checked."""
    for table in ("network", "data"):
        if not isinstance(raw.get(table, {}), dict):
            raise ModelError(f"{table} must be a table: write [{table}]")
    network, data = raw.pop("network", {}), raw.pop("data", {})
    if "preset" not in network:
        raise ModelError("[network] must name a preset")
    for where, given, kind in (("", raw, Config), ("[data] ", data, Recipe)):
        known = {f.name: f.default for f in fields(kind)}
        for name, value in given.items():
            if name not in known:
                names = ", ".join(name for name in known if name not in ("network", "data"))
                raise ModelError(f"{where}unknown key {name!r}; known: {names}")
            if not _is_like(value, known[name]):
                raise ModelError(
                    f"{where}{name} = {shown(value)} is of the wrong kind or negative; the default "
                    f"is {known[name]!r}"
                )
    if raw.get("optimiser", "adam") not in OPTIMISERS:
        raise ModelError(f"unknown optimiser {raw['optimiser']!r}; known: {', '.join(OPTIMISERS)}")
    for name in ("batch", "chunk", "epoch", "decay", "every"):
        if raw.get(name, 1) < 1:
            raise ModelError(f"{name} must be at least 1, not {raw[name]}")
    low, high = raw.get("k", Config.k)
    if not 1 <= low <= high:
        raise ModelError(f"k must be two numbers, 1 <= low <= high, not {raw['k']}")
    if max(raw.get("betas", Config.betas)) >= 1:
        raise ModelError(f"betas must be two numbers below 1, not {raw['betas']}")
    raw |= {pair: tuple(raw[pair]) for pair in ("betas", "k") if pair in raw}
    return Config(ModelConfig.of(network.pop("preset"), **network), Recipe(**data), **raw)


def _is_like(value: Any, usual: Any) -> bool:
    """Whether a value from TOML can take the place of a default: its kind, finite, not negative."""
    if isinstance(usual, tuple):
        pair = isinstance(value, list) and len(value) == len(usual)
        return pair and all(map(_is_like, value, usual))
    if isinstance(usual, str):
        return isinstance(value, str)
    kinds = (int, float) if isinstance(usual, float) else (int,)
    return type(value) in kinds and 0 <= value < math.inf


# --- optimiser -----------------------------------------------------------------------------------


class Muon(torch.optim.Optimizer):
    """Momentum whose steps are orthogonal matrices (five Newton-Schulz iterations, in float32).

    torch has one too, but in bfloat16, which some CPUs announce and then refuse to run.
    """

    def __init__(self, matrices: list[Tensor], config: Config) -> None:
        super().__init__(matrices, {"lr": config.rate_muon, "decay": config.weight_decay})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            alike: dict[torch.Size, list[Tensor]] = {}
            for p in group["params"]:
                alike.setdefault(p.shape, []).append(p)
            for shape, matrices in alike.items():
                for p in matrices:
                    if not self.state[p]:
                        self.state[p]["momentum"] = torch.zeros_like(p)
                    self.state[p]["momentum"].lerp_(p.grad, 0.05)
                ahead = torch.stack([self.state[p]["momentum"] for p in matrices])
                now = torch.stack([p.grad for p in matrices if p.grad is not None])
                x = now.lerp(ahead, 0.95)  # (N, rows, columns)
                if shape[0] > shape[1]:
                    x = x.mT
                x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
                for _ in range(5):
                    a = x @ x.mT
                    x = 3.4445 * x + (2.0315 * a @ a - 4.7750 * a) @ x
                if shape[0] > shape[1]:
                    x = x.mT
                size = group["lr"] * max(1.0, shape[0] / shape[1]) ** 0.5
                for p, update in zip(matrices, x, strict=True):
                    p.mul_(1 - group["lr"] * group["decay"]).add_(update, alpha=-size)


def optimisers(network: Network, config: Config) -> list[torch.optim.Optimizer]:
    """AdamW for all parameters, or Muon for the hidden matrices and AdamW for the rest."""
    named = dict(network.named_parameters())
    hidden = {
        name
        for name, p in named.items()
        if config.optimiser == "muon" and p.ndim == 2 and min(p.shape) >= 32
    }
    rest = [p for name, p in named.items() if name not in hidden]
    decay = 0.0 if config.optimiser == "adam" else config.weight_decay
    out: list[torch.optim.Optimizer] = [
        torch.optim.AdamW(rest, lr=config.rate, betas=config.betas, weight_decay=decay)
    ]
    if hidden:
        out.append(Muon([named[name] for name in named if name in hidden], config))
    for optimiser in out:
        for group in optimiser.param_groups:
            group["peak"] = group["lr"]
    return out


def rate_at(config: Config, step: int, decisions: int, decay_from: int | None) -> float:
    """Share of the peak rate: warm-up, then stable (or a factor per epoch), then decay to zero."""
    share = min(1.0, (step + 1) / max(1, config.warmup))
    share *= config.gamma ** (decisions // config.epoch)
    if decay_from is not None:
        share *= max(0.0, 1.0 - (step - decay_from) / config.decay)
    return share


# --- one step ------------------------------------------------------------------------------------


def chunks(state: State, right: Flags, size: int) -> Iterator[tuple[State, Flags]]:
    """Cut a batch sorted by count into parts, each as wide as its widest row."""
    for a in range(0, len(state), size):
        part = slice(a, a + size)
        width = int(state.count[part].max())
        nodes, direct = state.nodes[part, :width], state.direct[part, :width]
        yield State(nodes, state.context[part], state.count[part], direct), right[part, :width]


def flatten(network: Network) -> Tensor:
    """Move all parameters into one vector, of which they become views; returns the vector."""
    parameters = in_order(network)
    flat = torch.cat([p.detach().reshape(-1) for p in parameters])
    for p, part in zip(parameters, split(flat, parameters), strict=True):
        p.data = part
    return flat


def in_order(network: Network) -> list[Tensor]:
    """The parameters in the order of the vector."""
    named = dict(network.named_parameters())
    return [named[name] for name, _ in layout(network.config)]


def split(flat: Tensor, like: Iterable[Tensor]) -> Iterator[Tensor]:
    """Views of a vector in the shapes of some tensors."""
    at = 0
    for tensor in like:
        yield flat[at : at + tensor.numel()].view(tensor.shape)
        at += tensor.numel()


def gradient(
    network: Network, flat: Tensor, state: State, right: Flags, share: float
) -> tuple[float, Tensor]:
    """Cross-entropy of one chunk (its sum times `share`), and its gradient as one vector.

    `right` (B, W, outputs) may name several answers of a decision; their joint share counts.
    """
    config = network.config
    if compiles(config) and flat.is_cpu:  # by hand: see `network_kernels`
        out = torch.empty_like(flat)
        shape = config.d, config.hidden, config.layers, config.heads, config.outputs, GROUP
        arrays = state.nodes, state.context, state.count, state.direct, right
        batch = (np.ascontiguousarray(array) for array in arrays)
        return float(learn_rows(flat.numpy(), *shape, *batch, share, out.numpy())), out
    scores = network(*(t.to(flat.device) for t in tensors_of(state)))  # (B, W, outputs)
    wrong = torch.from_numpy(~right).to(flat.device)
    hits = scores.masked_fill(wrong, -torch.inf)
    loss = (scores.flatten(1).logsumexp(1) - hits.flatten(1).logsumexp(1)).sum() * share
    parts = torch.autograd.grad(loss, in_order(network))
    return float(loss.detach()), torch.cat([part.reshape(-1) for part in parts])


class Team:
    """The processes of a run: this one, or as many as `torchrun` started."""

    def __init__(self, device: torch.device) -> None:
        self.rank, self.size = (
            int(os.environ.get(k, d)) for k, d in (("RANK", 0), ("WORLD_SIZE", 1))
        )
        if self.size > 1 and not torch.distributed.is_initialized():
            torch.distributed.init_process_group("gloo" if device.type == "cpu" else "nccl")

    def add_up(self, vector: Tensor) -> None:
        """The sum over all processes, in place."""
        if self.size > 1:
            torch.distributed.all_reduce(vector)

    def close(self) -> None:
        if self.size > 1:
            torch.distributed.destroy_process_group()


class Trainer:
    """The state of a run: network, optimisers, average, counters."""

    def __init__(
        self, config: Config, labels: Tours | Plans, threads: int = 1, device: str = "cpu"
    ) -> None:
        torch.manual_seed(config.seed)
        self.config = config
        self.device = device_of(device)
        self.team = Team(self.device)
        self.network = build(config.network).to(self.device)
        self.average = build(config.network).to(self.device)
        self.average.load_state_dict(self.network.state_dict())
        self.flat = flatten(self.network)
        self.flat_average = flatten(self.average)
        self.sums = torch.zeros(len(self.flat) + 2, device=self.device)  # gradient, loss, stop
        self.optimisers = optimisers(self.network, config)
        self.held = labels.part(0, min(HELD_OUT, len(labels) // 2))
        self.labels = labels.part(len(self.held), len(labels))
        self.step = 0
        self.decisions = 0
        self.seconds = 0.0
        self.decay_from: int | None = None
        self.gaps: dict[str, float] = {}  # of the last validation
        self.stopping = False
        self.threads = threads
        self.pool = ThreadPoolExecutor(threads)
        self._next: tuple[int, Future[tuple[State, Flags]]] | None = None

    def _batch(self, step: int) -> Future[tuple[State, Flags]]:
        c = self.config
        return self.pool.submit(draw, self.labels, c.data, c.network, c.batch, c.seed, step)

    def train_step(self, stop: bool = False) -> float:
        """One step; returns its loss. `stop` of any process makes all `stopping`."""
        config = self.config
        if self._next is None or self._next[0] != self.step:
            self._next = (self.step, self._batch(self.step))
        state, right = self._next[1].result()
        parts = list(chunks(state, right, config.chunk))[self.team.rank :: self.team.size]
        futures = [
            self.pool.submit(gradient, self.network, self.flat, *part, 1 / config.batch)
            for part in reversed(parts)  # the widest first, so that workers end together
        ]
        self._next = (self.step + 1, self._batch(self.step + 1))
        loss = 0.0
        self.sums.zero_()
        for future in futures:
            part_loss, part_gradient = future.result()
            loss += part_loss
            self.sums[:-2] += part_gradient
        if self.team.size > 1:
            self.sums[-2], self.sums[-1] = loss, stop
            self.team.add_up(self.sums)
            loss, stop = float(self.sums[-2]), bool(self.sums[-1] > 0)
        self.stopping = stop
        parameters = in_order(self.network)
        for p, part in zip(parameters, split(self.sums, parameters), strict=True):
            p.grad = part
        norm = torch.nn.utils.clip_grad_norm_(self.network.parameters(), config.clip)
        if not (math.isfinite(loss) and math.isfinite(norm)):
            raise ModelError(
                f"step {self.step + 1}: the loss or its gradient is not a number; go on from the "
                "last checkpoint with a lower rate, or with more steps of warm-up"
            )
        share = rate_at(config, self.step, self.decisions, self.decay_from)
        for optimiser in self.optimisers:
            for group in optimiser.param_groups:
                group["lr"] = group["peak"] * share
            optimiser.step()
        self.step += 1
        self.decisions += len(state)
        keep = min(config.average, (self.step + 1) / (self.step + 10))
        self.flat_average.lerp_(self.flat, 1 - keep)
        return loss

    def validate(self) -> dict[str, float]:
        """Gaps in percent of the averaged weights: greedy on held-out graphs, and of solves.

        `gap_M` is on the free edges of reduced graphs of M nodes, or of M destroyed customers;
        `gap_solve` of whole solutions after `solve_iters` iterations from the paper's start. Both
        are against the labels.
        """
        tensors = {name: t.cpu().numpy() for name, t in self.average.state_dict().items()}
        quick = compiled(self.config.network, tensors, self.threads) if self.flat.is_cpu else None
        model: Scorer = quick or self.average
        out = {}
        for m in (m for m in HELD_OUT_SIZES if m < self.held.largest):
            out[f"gap_{m}"] = round(held_out_gap(model, self.held, m), 3)
        if self.config.solves > 0 and self.config.solve_iters > 0:
            out["gap_solve"] = round(self._solve_gap(model), 3)
        self.gaps = out
        return out

    def _solve_gap(self, model: Scorer) -> float:
        count = min(self.config.solves, len(self.held))
        known = [self.held.known(i) for i in range(count)]
        found = solve_many(
            [instance for instance, _ in known], repair=NeuralRepair(model), k=self.config.k,
            max_iters=self.config.solve_iters,
        )  # fmt: skip
        pairs = zip(found, known, strict=True)
        ratios = [result.cost / cost(instance, best) for result, (instance, best) in pairs]
        return 100 * (float(np.mean(ratios)) - 1)

    # --- checkpoints -----------------------------------------------------------------------------

    def save(self, folder: Path) -> None:
        """Write `step-N.safetensors`, then `step-N.json` with its hash; keep the two newest."""
        tensors = {f"network/{k}": t.cpu().numpy() for k, t in self.network.state_dict().items()}
        tensors |= {f"average/{k}": t.cpu().numpy() for k, t in self.average.state_dict().items()}
        for key, value in self._moments():
            tensors[key] = value.cpu().numpy()
        data = weights.encode(tensors, {"format": weights.FORMAT})
        name = f"step-{self.step:09d}"
        weights.write_bytes(folder / f"{name}.safetensors", data)
        counters = {
            "step": self.step,
            "decisions": self.decisions,
            "seconds": self.seconds,
            "decay_from": self.decay_from,
            "torch_rng": torch.get_rng_state().numpy().tobytes().hex(),
            "config": dataclasses.asdict(self.config),
            "sha256": hashlib.sha256(data).hexdigest(),
        }
        weights.write_bytes(folder / f"{name}.json", json.dumps(counters, indent=1).encode())
        save_model(self.average, folder / "weights.safetensors", self.card())
        for old in sorted(folder.glob("step-*.json"))[:-2]:
            old.with_suffix(".safetensors").unlink(missing_ok=True)
            old.unlink()

    def card(self) -> dict[str, Any]:
        """What the weights are, for whoever finds them."""
        c = self.config
        kind = "plans" if c.network.routes else "tours"
        sizes = f"{c.data.low} to {c.data.share} n, at most {c.data.most} nodes"
        return {
            "data": f"{len(self.labels):,} labelled {kind} ({c.labels}), reduced graphs of {sizes}",
            "n": self.held.largest,
            "decisions": self.decisions,
            "steps": self.step,
            "hours": round(self.seconds / 3600, 2),
            "hardware": f"{_processor()}, {self.team.size} x {self.threads} threads"
            if self.device.type == "cpu"
            else f"{torch.cuda.get_device_name(self.device)}, {self.team.size}",
            "optimiser": f"{c.optimiser}, {c.rate:g}",
            "gaps": {key.removeprefix("gap_"): gap for key, gap in self.gaps.items()},
            "k": list(c.k),
        }

    def resume(self, folder: Path) -> bool:
        """Go on from the newest checkpoint that is whole; False if there is none."""
        for path in sorted(folder.glob("step-*.json"), reverse=True):
            with suppress(ModelError, OSError, ValueError, KeyError):
                self._load(path)
                return True
        return False

    def _load(self, path: Path) -> None:
        counters = json.loads(path.read_text(encoding="utf-8"))
        data = path.with_suffix(".safetensors").read_bytes()
        if hashlib.sha256(data).hexdigest() != counters["sha256"]:
            raise ModelError("the checkpoint is damaged", file=str(path))
        tensors, _ = weights.decode(data)
        for name, network in (("network/", self.network), ("average/", self.average)):
            own = {k.removeprefix(name): t for k, t in tensors.items() if k.startswith(name)}
            fill(network, own, str(path))
        for optimiser in self.optimisers:
            optimiser.state.clear()
        names: dict[Tensor, str] = {p: name for name, p in self.network.named_parameters()}
        for i, optimiser in enumerate(self.optimisers):
            for group in optimiser.param_groups:
                for p in group["params"]:
                    prefix = f"optimiser{i}/{names[p]}/"
                    optimiser.state[p] = {
                        key.removeprefix(prefix): self._placed(key, value)
                        for key, value in tensors.items()
                        if key.startswith(prefix)
                    }
        torch.set_rng_state(
            torch.frombuffer(bytearray.fromhex(counters["torch_rng"]), dtype=torch.uint8)
        )
        self.step, self.decisions = counters["step"], counters["decisions"]
        self.seconds, self.decay_from = counters["seconds"], counters["decay_from"]

    def _placed(self, key: str, value: npt.NDArray[Any]) -> Tensor:
        tensor = torch.from_numpy(value)
        return tensor if key.endswith("/step") else tensor.to(self.device)  # Adam counts on the CPU

    def _moments(self) -> Iterator[tuple[str, Tensor]]:
        names: dict[Tensor, str] = {p: name for name, p in self.network.named_parameters()}
        for i, optimiser in enumerate(self.optimisers):
            for p, state in optimiser.state.items():
                for key, value in state.items():
                    yield f"optimiser{i}/{names[p]}/{key}", value


def _processor() -> str:
    """The name of the CPU, as far as the system tells."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


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
    config: Config,
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
    shards = sorted(data.glob(config.labels))
    if not shards:
        raise ModelError(_no_shards(config.labels, data))
    trainer = Trainer(config, read_labels(shards), threads, device)
    leads = trainer.team.rank == 0
    if not resume and any(out.glob("step-*.json")):
        raise ModelError("there is a run in this folder: use --resume, or another folder")
    out.mkdir(parents=True, exist_ok=True)
    held = _hold(out) if leads else None
    found = resume and trainer.resume(out)
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
        end = trainer.decay_from + config.decay
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
        due = trainer.step % config.every == 0 or finished
        entry: Entry = {
            "step": trainer.step,
            "decisions": trainer.decisions,
            "hours": round(trainer.seconds / 3600, 4),
            "rate": rate_at(config, trainer.step, trainer.decisions, trainer.decay_from),
            "loss": round(float(np.mean(losses)), 5),
            "per_second": round((trainer.decisions - mark) / (now - begin), 1),
        }
        if leads and due:
            entry |= {} if asked else trainer.validate()  # asked to stop: be quick
            with open(log, "a", encoding="utf-8") as lines:  # first: `_rewind` drops it again
                lines.write(json.dumps(entry) + "\n")
            trainer.save(out)
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
        weights.write_bytes(log, b"".join(kept))

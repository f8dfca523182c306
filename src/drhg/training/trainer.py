"""Supervised training of a network that repairs: one loop, resumable at any moment.

A step draws `batch` decisions, cuts them into chunks, lets every worker thread take chunks, and
adds the gradients up in the order of the chunks: the result does not depend on how many threads
there are. Everything random is a function of the seed and the step, so a checkpoint is weights,
optimiser, average and counters, and a resumed run on a CPU repeats an uninterrupted one bit by bit.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import time
import tomllib
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from drhg import weights
from drhg.errors import ModelError
from drhg.hypergraph import Flags
from drhg.model import ModelConfig, Network, build, fill, save_model, tensors_of
from drhg.network_kernels import layout, learn_rows
from drhg.neural import GROUP, Compiled, Scorer, State
from drhg.training.data import HELD_OUT, Plans, Recipe, Tours, draw, held_out_gap, read_labels

HELD_OUT_SIZES = (30, 50, 80)


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


def read_config(path: Path) -> Config:
    """A TOML file as a `Config`; unknown keys are errors."""
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
        network = dict(raw.pop("network"))
        recipe = Recipe(**raw.pop("data", {}))
        if "betas" in raw:
            raw["betas"] = tuple(raw["betas"])
        return Config(ModelConfig.of(network.pop("preset"), **network), recipe, **raw)
    except (OSError, tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise ModelError(f"cannot use this configuration: {error}", file=str(path)) from None


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
    named = dict(network.named_parameters())
    if network.config.preset == "economy":
        named = {name: named[name] for name, _ in layout(network.config)}
    flat = torch.cat([p.detach().reshape(-1) for p in named.values()])
    for p, part in zip(named.values(), split(flat, named.values()), strict=True):
        p.data = part
    return flat


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
    if config.preset == "economy":  # compiled by hand: see `network_kernels`
        out = torch.empty_like(flat)
        shape = config.d, config.hidden, config.layers, config.heads, config.outputs, GROUP
        arrays = state.nodes, state.context, state.count, state.direct, right
        batch = (np.ascontiguousarray(array) for array in arrays)
        return float(learn_rows(flat.numpy(), *shape, *batch, share, out.numpy())), out
    scores = network(*tensors_of(state))  # (B, W, outputs)
    hits = scores.masked_fill(~torch.from_numpy(right), -torch.inf)
    loss = (scores.flatten(1).logsumexp(1) - hits.flatten(1).logsumexp(1)).sum() * share
    parts = torch.autograd.grad(loss, list(network.parameters()))
    return float(loss.detach()), torch.cat([part.reshape(-1) for part in parts])


class Trainer:
    """The state of a run: network, optimisers, average, counters."""

    def __init__(self, config: Config, labels: Tours | Plans, threads: int = 1) -> None:
        torch.manual_seed(config.seed)
        self.config = config
        self.network = build(config.network)
        self.average = build(config.network)
        self.average.load_state_dict(self.network.state_dict())
        self.flat = flatten(self.network)
        self.flat_average = flatten(self.average)
        self.total = torch.zeros_like(self.flat)
        self.optimisers = optimisers(self.network, config)
        self.held = labels.part(0, min(HELD_OUT, len(labels) // 2))
        self.labels = labels.part(len(self.held), len(labels))
        self.step = 0
        self.decisions = 0
        self.seconds = 0.0
        self.decay_from: int | None = None
        self.pool = ThreadPoolExecutor(threads)
        self._next: tuple[int, Future[tuple[State, Flags]]] | None = None

    def _batch(self, step: int) -> Future[tuple[State, Flags]]:
        c = self.config
        return self.pool.submit(draw, self.labels, c.data, c.network, c.batch, c.seed, step)

    def train_step(self) -> float:
        """One step; returns its loss."""
        config = self.config
        if self._next is None or self._next[0] != self.step:
            self._next = (self.step, self._batch(self.step))
        state, right = self._next[1].result()
        parts = list(chunks(state, right, config.chunk))
        futures = [
            self.pool.submit(gradient, self.network, self.flat, *part, 1 / config.batch)
            for part in reversed(parts)  # the widest first, so that workers end together
        ]
        self._next = (self.step + 1, self._batch(self.step + 1))
        loss = 0.0
        self.total.zero_()
        for future in futures:
            part_loss, part_gradient = future.result()
            loss += part_loss
            self.total += part_gradient
        self._hand_out()
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), config.clip)
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

    def _hand_out(self) -> None:
        """Give every parameter its part of the gradient."""
        named = dict(self.network.named_parameters())
        if self.config.network.preset == "economy":
            named = {name: named[name] for name, _ in layout(self.config.network)}
        for p, part in zip(named.values(), split(self.total, named.values()), strict=True):
            p.grad = part

    def validate(self) -> dict[str, float]:
        """Greedy gap in percent on held-out reduced graphs, free edges only, averaged weights."""
        out = {}
        model: Scorer = self.average
        if self.config.network.preset == "economy":
            tensors = {name: t.numpy() for name, t in self.average.state_dict().items()}
            model = Compiled(self.config.network, tensors)
        for m in (m for m in HELD_OUT_SIZES if m < self.held.largest):
            out[f"gap_{m}"] = round(held_out_gap(model, self.held, m), 3)
        return out

    # --- checkpoints -----------------------------------------------------------------------------

    def save(self, folder: Path) -> None:
        """Write `step-N.safetensors`, then `step-N.json` with its hash; keep the two newest."""
        tensors = {f"network/{k}": t.numpy() for k, t in self.network.state_dict().items()}
        tensors |= {f"average/{k}": t.numpy() for k, t in self.average.state_dict().items()}
        for key, value in self._moments():
            tensors[key] = value.numpy()
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
        low, share, most = self.config.data.low, self.config.data.share, self.config.data.most
        return {
            "decisions": self.decisions,
            "steps": self.step,
            "hours": round(self.seconds / 3600, 2),
            "labels": self.config.labels,
            "sizes": f"{low} to {share} n, at most {most}",
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
                        key.removeprefix(prefix): torch.from_numpy(value)
                        for key, value in tensors.items()
                        if key.startswith(prefix)
                    }
        torch.set_rng_state(
            torch.frombuffer(bytearray.fromhex(counters["torch_rng"]), dtype=torch.uint8)
        )
        self.step, self.decisions = counters["step"], counters["decisions"]
        self.seconds, self.decay_from = counters["seconds"], counters["decay_from"]

    def _moments(self) -> Iterator[tuple[str, Tensor]]:
        names: dict[Tensor, str] = {p: name for name, p in self.network.named_parameters()}
        for i, optimiser in enumerate(self.optimisers):
            for p, state in optimiser.state.items():
                for key, value in state.items():
                    yield f"optimiser{i}/{names[p]}/{key}", value


def train(
    config: Config,
    data: Path,
    out: Path,
    *,
    resume: bool = False,
    minutes: float | None = None,
    steps: int | None = None,
    init: Path | None = None,
    decay: bool = False,
    threads: int = 1,
) -> Trainer:
    """Train until the time, the steps or the decay branch end; logs to `out/log.jsonl`."""
    torch.set_num_threads(1)  # threads take chunks instead
    trainer = Trainer(config, read_labels(data.glob(config.labels)), threads)
    if not resume and any(out.glob("step-*.json")):
        raise ModelError("there is a run in this folder: use --resume, or another folder")
    found = resume and trainer.resume(out)
    if not found and init is not None:
        _, tensors, _ = weights.read_weights(init)
        for network in (trainer.network, trainer.average):
            fill(network, tensors, str(init))
    if decay and trainer.decay_from is None:
        trainer.decay_from = trainer.step
    out.mkdir(parents=True, exist_ok=True)
    last = None if steps is None else steps
    if trainer.decay_from is not None:
        end = trainer.decay_from + config.decay
        last = end if last is None else min(last, end)
    losses: list[float] = []
    begin = before = time.perf_counter()
    mark = trainer.decisions
    while last is None or trainer.step < last:
        losses.append(trainer.train_step())
        now = time.perf_counter()
        trainer.seconds += now - before
        before = now
        finished = trainer.step == last or (minutes is not None and now - begin > 60 * minutes)
        if trainer.step % config.every == 0 or finished:
            entry = {
                "step": trainer.step,
                "decisions": trainer.decisions,
                "hours": round(trainer.seconds / 3600, 4),
                "rate": rate_at(config, trainer.step, trainer.decisions, trainer.decay_from),
                "loss": round(float(np.mean(losses)), 5),
                "per_second": round((trainer.decisions - mark) / (now - begin), 1),
                **trainer.validate(),
            }
            trainer.save(out)
            with open(out / "log.jsonl", "a", encoding="utf-8") as log:
                log.write(json.dumps(entry) + "\n")
            print(json.dumps(entry), flush=True)
            spent = time.perf_counter() - now
            begin += spent  # validation is no training time
            before += spent
            losses.clear()
        if finished:
            break
    trainer.pool.shutdown(cancel_futures=True)
    return trainer

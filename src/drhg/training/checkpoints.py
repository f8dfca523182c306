"""Checkpoints: everything that a run needs to go on as if it had never stopped.

One is two files, `step-N.safetensors` and `step-N.json`. The second holds the hash of the first and
is written last, both atomically, so a run may be killed at any moment.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy.typing as npt
import torch
from torch import Tensor

from drhg.errors import ModelError
from drhg.files import atomic_write
from drhg.network import weights
from drhg.network.torch_model import fill, save_model
from drhg.training.trainer import Trainer


def save(trainer: Trainer, folder: Path) -> None:
    """Write a checkpoint, and `weights.safetensors`; the two newest checkpoints are kept."""
    tensors = {f"network/{k}": t.cpu().numpy() for k, t in trainer.network.state_dict().items()}
    tensors |= {f"average/{k}": t.cpu().numpy() for k, t in trainer.average.state_dict().items()}
    for key, value in _moments(trainer):
        tensors[key] = value.cpu().numpy()
    data = weights.encode(tensors, {"format": weights.FORMAT})
    name = f"step-{trainer.step:09d}"
    atomic_write(folder / f"{name}.safetensors", data)
    counters = {
        "step": trainer.step,
        "decisions": trainer.decisions,
        "seconds": trainer.seconds,
        "decay_from": trainer.decay_from,
        "torch_rng": torch.get_rng_state().numpy().tobytes().hex(),
        "config": dataclasses.asdict(trainer.recipe),
        "sha256": hashlib.sha256(data).hexdigest(),
    }
    atomic_write(folder / f"{name}.json", json.dumps(counters, indent=1).encode())
    save_model(trainer.average, folder / "weights.safetensors", trainer.card())
    for old in sorted(folder.glob("step-*.json"))[:-2]:
        old.with_suffix(".safetensors").unlink(missing_ok=True)
        old.unlink()


def resume(trainer: Trainer, folder: Path) -> bool:
    """Go on from the newest checkpoint that is whole; False if there is none."""
    for path in sorted(folder.glob("step-*.json"), reverse=True):
        with suppress(ModelError, OSError, ValueError, KeyError):
            _load(trainer, path)
            return True
    return False


def _load(trainer: Trainer, path: Path) -> None:
    counters = json.loads(path.read_text(encoding="utf-8"))
    data = path.with_suffix(".safetensors").read_bytes()
    if hashlib.sha256(data).hexdigest() != counters["sha256"]:
        raise ModelError("the checkpoint is damaged", file=str(path))
    tensors, _ = weights.decode(data)
    for name, network in (("network/", trainer.network), ("average/", trainer.average)):
        own = {k.removeprefix(name): t for k, t in tensors.items() if k.startswith(name)}
        fill(network, own, str(path))
    for optimiser in trainer.optimisers:
        optimiser.state.clear()
    names: dict[Tensor, str] = {p: name for name, p in trainer.network.named_parameters()}
    for i, optimiser in enumerate(trainer.optimisers):
        for group in optimiser.param_groups:
            for p in group["params"]:
                prefix = f"optimiser{i}/{names[p]}/"
                optimiser.state[p] = {
                    key.removeprefix(prefix): _placed(trainer, key, value)
                    for key, value in tensors.items()
                    if key.startswith(prefix)
                }
    torch.set_rng_state(
        torch.frombuffer(bytearray.fromhex(counters["torch_rng"]), dtype=torch.uint8)
    )
    trainer.step, trainer.decisions = counters["step"], counters["decisions"]
    trainer.seconds, trainer.decay_from = counters["seconds"], counters["decay_from"]


def _placed(trainer: Trainer, key: str, value: npt.NDArray[Any]) -> Tensor:
    tensor = torch.from_numpy(value)
    return tensor if key.endswith("/step") else tensor.to(trainer.device)  # Adam counts on the CPU


def _moments(trainer: Trainer) -> Iterator[tuple[str, Tensor]]:
    names: dict[Tensor, str] = {p: name for name, p in trainer.network.named_parameters()}
    for i, optimiser in enumerate(trainer.optimisers):
        for p, state in optimiser.state.items():
            for key, value in state.items():
                yield f"optimiser{i}/{names[p]}/{key}", value

"""Optimisers, and how their rate changes."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from drhg.network.torch_model import Network
from drhg.training.recipe import Recipe


class Muon(torch.optim.Optimizer):
    """Momentum whose steps are orthogonal matrices (five Newton-Schulz iterations, in float32).

    torch has one too, but in bfloat16, which some CPUs announce and then refuse to run.
    """

    def __init__(self, matrices: list[Tensor], recipe: Recipe) -> None:
        super().__init__(matrices, {"lr": recipe.rate_muon, "decay": recipe.weight_decay})
        self._momentum = recipe.momentum

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
                    self.state[p]["momentum"].lerp_(p.grad, 1 - self._momentum)
                ahead = torch.stack([self.state[p]["momentum"] for p in matrices])
                now = torch.stack([p.grad for p in matrices if p.grad is not None])
                x = now.lerp(ahead, self._momentum)  # (N, rows, columns)
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


def optimisers(network: Network, recipe: Recipe) -> list[torch.optim.Optimizer]:
    """AdamW for all parameters, or Muon for the hidden matrices and AdamW for the rest."""
    named = dict(network.named_parameters())
    hidden = {
        name
        for name, p in named.items()
        if recipe.optimiser == "muon" and p.ndim == 2 and min(p.shape) >= 32
    }
    rest = [p for name, p in named.items() if name not in hidden]
    decay = 0.0 if recipe.optimiser == "adam" else recipe.weight_decay
    out: list[torch.optim.Optimizer] = [
        torch.optim.AdamW(rest, lr=recipe.rate, betas=recipe.betas, weight_decay=decay)
    ]
    if hidden:
        out.append(Muon([named[name] for name in named if name in hidden], recipe))
    for optimiser in out:
        for group in optimiser.param_groups:
            group["peak"] = group["lr"]
    return out


def rate_at(recipe: Recipe, step: int, decisions: int, decay_from: int | None) -> float:
    """Share of the peak rate: warm-up, then stable (or a factor per epoch), then decay to zero."""
    share = min(1.0, (step + 1) / max(1, recipe.warmup))
    share *= recipe.gamma ** (decisions // recipe.epoch)
    if decay_from is not None:
        share *= max(0.0, 1.0 - (step - decay_from) / recipe.decay)
    return share

"""The gradient of a step: chunks of its batch, in threads and processes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

import torch
import torch.distributed
from torch import Tensor

from drhg.hypergraph.plan import Flags
from drhg.network import weights
from drhg.network.economy import compiles, shape_of
from drhg.network.gradient import learn
from drhg.network.torch_model import Network, tensors_of
from drhg.network.views import State


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
    order = weights.shapes(network.config) if compiles(network.config) else named
    return [named[name] for name in order]


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
    if compiles(config) and flat.is_cpu:  # compiled by hand
        loss, found = learn(flat.numpy(), shape_of(config), state, right, share)
        return loss, torch.from_numpy(found)
    scores = network(*(t.to(flat.device) for t in tensors_of(state)))  # (B, W, outputs)
    wrong = torch.from_numpy(~right).to(flat.device)
    hits = scores.masked_fill(wrong, -torch.inf)
    total = (scores.flatten(1).logsumexp(1) - hits.flatten(1).logsumexp(1)).sum() * share
    parts = torch.autograd.grad(total, in_order(network))
    return float(total.detach()), torch.cat([part.reshape(-1) for part in parts])


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

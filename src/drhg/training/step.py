"""The gradient of a step: chunks of its batch, in threads and processes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

import torch
import torch.distributed
from torch import Tensor

from drhg.network import economy, edges, weights
from drhg.network.edges_gradient import learn_edges
from drhg.network.gradient import learn
from drhg.network.torch_model import Network, tensors_of
from drhg.training.examples import Batch
from drhg.training.joins import Joins, loss


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
    fixed = economy.compiles(network.config) or edges.compiles(network.config)
    order = weights.shapes(network.config) if fixed else named
    return [named[name] for name in order]


def split(flat: Tensor, like: Iterable[Tensor]) -> Iterator[Tensor]:
    """Views of a vector in the shapes of some tensors."""
    at = 0
    for tensor in like:
        yield flat[at : at + tensor.numel()].view(tensor.shape)
        at += tensor.numel()


def gradient(network: Network, flat: Tensor, part: Batch, share: float) -> tuple[float, Tensor]:
    """Cross-entropy of one chunk (its sum times `share`), and its gradient as one vector.

    Several answers of a decision may be right; their joint share counts.
    """
    config = network.config
    if isinstance(part, Joins) and edges.compiles(config) and flat.is_cpu:  # compiled by hand
        value, found = learn_edges(flat.numpy(), edges.shape_of(config), part.arrays, share)
        return value, torch.from_numpy(found)
    elif isinstance(part, Joins):
        total = loss(network(*part.inputs(flat.device)), part) * share
    elif economy.compiles(config) and flat.is_cpu:
        value, found = learn(flat.numpy(), economy.shape_of(config), part.state, part.right, share)
        return value, torch.from_numpy(found)
    else:
        scores = network(*(t.to(flat.device) for t in tensors_of(part.state)))  # (B, W, outputs)
        wrong = torch.from_numpy(~part.right).to(flat.device)
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

"""The networks, in torch: which remaining node comes next (paper, section "Model Structure").

Both presets answer the same question about the same `State`. `Paper` is the paper's network to the
letter: a light encoder, then modules of linear attention through representative nodes. `Economy`
looks only at the nearest remaining nodes, seen from the current one, and costs a tenth.
A model knows nothing of training; sums over padding are exact zeros, so a batch equals its rows.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from drhg.errors import ModelError
from drhg.network import weights
from drhg.network.views import State
from drhg.network.weights import ModelConfig

__all__ = [
    "Economy",
    "ModelConfig",
    "Network",
    "Paper",
    "build",
    "load_model",
    "mask",
    "padding",
    "register",
    "save_model",
]

Kind = TypeVar("Kind", bound="type[Network]")


class Network(nn.Module):
    """What all networks share: their configuration, and scores for a `State`.

    One of one's own needs `forward`, and a name (`register`).
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config

    def forward(self, nodes: Tensor, context: Tensor, count: Tensor, direct: Tensor) -> Tensor:
        """Scores (B, W, outputs), minus infinity where there is nothing to choose.

        Of each decision, `count` of the W nodes (B, W, node_inputs) are offered; `context` is
        (B, context_inputs); `direct` (B, W) says which nodes may be reached directly (the first
        output), and for routes any node may be reached through the depot (the second). See `mask`.
        """
        raise NotImplementedError

    def logits(self, state: State) -> Any:
        """Scores of a NumPy state as a NumPy array, without gradients."""
        device = next(self.parameters()).device
        with torch.inference_mode():
            return self(*(t.to(device) for t in tensors_of(state))).cpu().numpy()


def tensors_of(state: State) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The same memory as torch tensors, in the order `forward` takes them."""
    arrays = state.nodes, state.context, state.count, state.direct
    a, b, c, d = (torch.from_numpy(np.ascontiguousarray(array)) for array in arrays)
    return a, b, c, d


def padding(count: Tensor, width: int) -> Tensor | None:
    """Which places lie beyond their row's count (B, W); None if there are none."""
    if int(count.min()) >= width:
        return None
    return torch.arange(width, device=count.device) >= count[:, None]


def attend(q: Tensor, k: Tensor, v: Tensor, heads: int, pad: Tensor | None) -> Tensor:
    """Equation (Attn) with heads: (B, p, d), (B, s, d), (B, s, d) -> (B, p, d).

    Plain products, for on a CPU torch's fused attention is half as fast for so short sequences.
    """
    B, p, d = q.shape
    q, k, v = (t.view(B, -1, heads, d // heads).transpose(1, 2) for t in (q, k, v))
    scores = (q * (d // heads) ** -0.5) @ k.transpose(-1, -2)  # (B, heads, p, s)
    if pad is not None:
        scores = scores.masked_fill(pad[:, None, None, :], -torch.inf)
    mixed: Tensor = scores.softmax(-1) @ v
    return mixed.transpose(1, 2).reshape(B, p, d)


# --- the paper's network -------------------------------------------------------------------------


class Attention(nn.Module):
    """One attention layer of a linear attention module with its feed-forward layer, residuals."""

    def __init__(self, d: int, heads: int, hidden: int, bias: bool = False) -> None:
        super().__init__()
        self.heads = heads
        self.q = nn.Linear(d, d, bias=False)
        self.kv = nn.Linear(d, 2 * d, bias=False)
        self.o = nn.Linear(d, d, bias=bias)
        self.up, self.down = nn.Linear(d, hidden), nn.Linear(hidden, d)

    def forward(self, x: Tensor, source: Tensor, pad: Tensor | None) -> Tensor:
        k, v = self.kv(source).chunk(2, -1)  # (B, s, d)
        x = x + self.o(attend(self.q(x), k, v, self.heads, pad))  # (B, p, d)
        more: Tensor = self.down(F.relu(self.up(x)))
        return x + more


class Paper(Network):
    """Section "Model Structure" and appendix "Model Structure Details".

    With `reference` as in the public code, for weights that come from there: more biases, and what
    the representatives have gathered goes on to the next module as it is, beside the tokens that
    they began as.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        d, routes = config.d, int(config.routes)
        self.encoder = nn.Linear(config.node_inputs, d)
        # For routes the room left in the vehicle joins both embeddings before W_f and W_c.
        self.first = nn.Linear(d + routes, d * config.from_first, bias=config.reference)
        self.current = nn.Linear(d + routes, d * config.from_current, bias=config.reference)
        layer = (d, config.heads, config.hidden, config.reference)
        self.aggregate = nn.ModuleList(Attention(*layer) for _ in range(config.layers))
        self.broadcast = nn.ModuleList(Attention(*layer) for _ in range(config.layers))
        self.score = nn.Linear(d, config.outputs)

    def forward(self, nodes: Tensor, context: Tensor, count: Tensor, direct: Tensor) -> Tensor:
        B, W, f = nodes.shape
        d = self.config.d
        ends = self.encoder(context[:, : 2 * f].view(B, 2, f))  # (B, 2, d)
        if self.config.routes:
            ends = torch.cat([ends, context[:, -1:, None].expand(B, 2, 1)], -1)
        representatives = torch.cat([self.first(ends[:, 0]), self.current(ends[:, 1])], -1)
        x = torch.cat([representatives.view(B, -1, d), self.encoder(nodes)], 1)  # (B, r + W, d)
        r = x.shape[1] - W
        pad = padding(count, W)
        gone = None if pad is None else F.pad(pad, (r, 0))  # representatives are always there
        representatives = x[:, :r]
        for i, (aggregate, broadcast) in enumerate(
            zip(self.aggregate, self.broadcast, strict=True)
        ):
            gathered = aggregate(representatives, x, gone)  # (B, r, d)
            if i + 1 == self.config.layers:
                x = x[:, r:]  # only the remaining nodes are scored
            x = broadcast(x, gathered, None)
            representatives = gathered if self.config.reference else x[:, :r]
        return mask(self.score(x), pad, direct)  # (B, W, outputs)


def mask(scores: Tensor, pad: Tensor | None, direct: Tensor) -> Tensor:
    """No score beyond the count of a row, nor for going directly where one may not."""
    closed = ~direct[..., None]
    if scores.shape[-1] > 1:
        via = torch.zeros_like(closed) if pad is None else pad[..., None]
        closed = torch.cat([closed, via], -1)
    return scores.masked_fill(closed, -torch.inf)


# --- the economical network ----------------------------------------------------------------------


class Block(nn.Module):
    """Self-attention among the nodes in view and a feed-forward layer, each after an RMS norm."""

    def __init__(self, d: int, heads: int, hidden: int) -> None:
        super().__init__()
        self.heads = heads
        self.n1, self.n2 = nn.RMSNorm(d), nn.RMSNorm(d)
        self.qkv, self.o = nn.Linear(d, 3 * d, bias=False), nn.Linear(d, d, bias=False)
        self.up, self.down = nn.Linear(d, hidden), nn.Linear(hidden, d)
        nn.init.zeros_(self.o.weight)  # a fresh network is "nearest first"
        nn.init.zeros_(self.down.weight)

    def forward(self, x: Tensor, pad: Tensor | None) -> Tensor:
        q, k, v = self.qkv(self.n1(x)).chunk(3, -1)  # (B, s, d)
        x = x + self.o(attend(q, k, v, self.heads, pad))
        more: Tensor = self.down(F.relu(self.up(self.n2(x))))
        return x + more


class Economy(Network):
    """Nodes relative to the current one, two context tokens, pre-norm, a learnt distance term."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        d = config.d
        self.node = nn.Linear(config.node_inputs, d)
        self.first = nn.Linear(config.context_inputs, d)
        self.current = nn.Parameter(torch.randn(d) * 0.1)
        self.blocks = nn.ModuleList(
            Block(d, config.heads, config.hidden) for _ in range(config.layers)
        )
        self.norm = nn.RMSNorm(d)
        self.score = nn.Linear(d, config.outputs)
        self.nearness = nn.Parameter(torch.tensor(5.0))

    def forward(self, nodes: Tensor, context: Tensor, count: Tensor, direct: Tensor) -> Tensor:
        B, W, _ = nodes.shape
        here = self.current.expand(B, 1, -1)
        x = torch.cat([self.first(context)[:, None], here, self.node(nodes)], 1)  # (B, 2 + W, d)
        pad = padding(count, W)
        gone = None if pad is None else F.pad(pad, (2, 0))
        for block in self.blocks:
            x = block(x, gone)
        scores = self.score(self.norm(x[:, 2:])) - self.nearness * nodes[..., 6:7]
        return mask(scores, pad, direct)


# --- the network of edges ------------------------------------------------------------------------


class EdgesBlock(Block):
    """The same layer, with attention that also depends on distances."""

    def __init__(self, d: int, heads: int, hidden: int) -> None:
        super().__init__(d, heads, hidden)
        self.slope = nn.Parameter(torch.linspace(0.0, 1.5, heads))
        self.bond = nn.Parameter(torch.zeros(heads))

    def among(self, x: Tensor, apart: Tensor, bound: Tensor, pad: Tensor | None) -> Tensor:
        """All tokens (B, T, d) among themselves; `apart` and `bound` are (B, 1, T, T)."""
        B, T, d = x.shape
        h = self.heads
        q, k, v = (
            t.view(B, T, h, d // h).transpose(1, 2) for t in self.qkv(self.n1(x)).chunk(3, -1)
        )
        scores = (q * (d // h) ** -0.5) @ k.transpose(-1, -2)  # (B, heads, T, T)
        scores = scores - self.slope.view(1, h, 1, 1) * apart + self.bond.view(1, h, 1, 1) * bound
        if pad is not None:
            scores = scores.masked_fill(pad[:, None, None, :], -torch.inf)
        mixed = scores.softmax(-1) @ v
        x = x + self.o(mixed.transpose(1, 2).reshape(B, T, d))
        more: Tensor = self.down(F.relu(self.up(self.n2(x))))
        return x + more


class Edges(Network):
    """All edges that a reduced graph could get, scored at once; see `network.survey`."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        d = config.d
        self.node = nn.Linear(config.node_inputs, d)
        layers = [EdgesBlock(d, config.heads, config.hidden) for _ in range(config.layers)]
        self.blocks = nn.ModuleList(layers)
        self.norm = nn.RMSNorm(d)
        self.q, self.k = nn.Linear(d, d, bias=False), nn.Linear(d, d, bias=False)
        nn.init.zeros_(self.k.weight)  # a fresh network is "nearest first"
        self.far = nn.Parameter(torch.tensor(1.5))

    def forward(self, nodes: Tensor, apart: Tensor, mate: Tensor, count: Tensor) -> Tensor:  # type: ignore[override]
        """Scores (B, T, T) of pairs of tokens, of which each row has `count`.

        nodes: (B, T, node_inputs); apart: distances (B, T, T); mate: (B, T), which token is the
        other end of the same path.
        """
        pad = padding(count, nodes.shape[1])
        bound = torch.zeros_like(apart).scatter_(2, mate[..., None], 1.0)
        x = self.node(nodes)
        for block in self.blocks:
            assert isinstance(block, EdgesBlock)
            x = block.among(x, apart[:, None], bound[:, None], pad)
        x = self.norm(x)
        scores = self.q(x) @ self.k(x).transpose(1, 2)
        both: Tensor = (scores + scores.transpose(1, 2)) * self.config.d**-0.5 - self.far * apart
        return both


# --- build, save, load ---------------------------------------------------------------------------


def build(config: ModelConfig) -> Network:
    """A network with fresh weights, drawn from torch's generator."""
    return _NETWORKS[config.preset](config)


_NETWORKS: dict[str, type[Network]] = {"paper": Paper, "economy": Economy, "edges": Edges}


def register(preset: str, *, relative: bool = True, **usual: Any) -> Callable[[Kind], Kind]:
    """Make a network of one's own known as a preset of recipes and weights files.

    A decorator for a subclass of `Network`. `relative` says whether nodes are seen from the current
    one or as in the paper, and `usual` are the fields of `ModelConfig` where a recipe gives none.
    """

    def known(network: Kind) -> Kind:
        weights.register(preset, relative, usual)
        _NETWORKS[preset] = network
        return network

    return known


def device_of(name: str) -> torch.device:
    """`cpu`, `cuda` (under torchrun each process its own), or `auto`: CUDA if there is any."""
    if name not in ("auto", "cpu", "cuda"):
        raise ModelError(f"unknown device {name!r}; known: auto, cpu, cuda")
    available = torch.cuda.is_available()
    if name == "cuda" and not available:
        raise ModelError("there is no CUDA device here; use --device cpu")
    if name == "cpu" or not available:
        return torch.device("cpu")
    return torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))


def fill(network: Network, tensors: Mapping[str, Any], file: str | None = None) -> None:
    """Put tensors into a network; names and shapes must agree exactly."""
    own = network.state_dict()
    weights.compare_shapes({name: tuple(t.shape) for name, t in own.items()}, tensors, file)
    for name, tensor in network.state_dict().items():
        tensor.copy_(torch.as_tensor(tensors[name]))


def save_model(
    network: Network, path: str | os.PathLike[str], card: Mapping[str, Any] | None = None
) -> str:
    """Write weights, configuration and card to a safetensors file; returns its sha256."""
    tensors = {name: t.detach().cpu().numpy() for name, t in network.state_dict().items()}
    return weights.write_weights(path, network.config, tensors, card)


def load_model(path: str | os.PathLike[str], *, sha256: str | None = None) -> Network:
    """A network from a file; `ModelError` if it is damaged, a pickle, or of another shape."""
    config, tensors, _ = weights.read_weights(path, sha256=sha256)
    return filled(config, tensors)


def filled(
    config: ModelConfig, tensors: Mapping[str, Any], device: str = "cpu", threads: int | None = None
) -> Network:
    """A network with these tensors, ready to score; `threads` is for all of torch."""
    network = build(config)
    fill(network, tensors)
    if threads is not None:
        torch.set_num_threads(threads)
    return network.to(device_of(device)).eval()

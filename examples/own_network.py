"""A network of one's own, trained and used by the same commands as those in the box.

    python examples/own_network.py train own.toml --data labels --out run
    python examples/own_network.py solve cities.tsp -m neural \
        --set repair.model=run/weights.safetensors

with a recipe `own.toml` that names it: `[network]` and below it `preset = "pairs"`.
"""

import torch
from torch import Tensor, nn

from drhg.network.torch_model import ModelConfig, Network, mask, padding, register


@register("pairs", d=64, layers=1, heads=1, hidden=128, window=24)
class Pairs(Network):
    """Scores every node in view by itself, knowing the mean of all: no attention."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.node = nn.Linear(config.node_inputs + config.context_inputs, config.d)
        self.hidden = nn.Linear(2 * config.d, config.hidden)
        self.score = nn.Linear(config.hidden, config.outputs)

    def forward(self, nodes: Tensor, context: Tensor, count: Tensor, direct: Tensor) -> Tensor:
        wide = context[:, None].expand(-1, nodes.shape[1], -1)
        x = torch.relu(self.node(torch.cat([nodes, wide], -1)))  # (B, W, d)
        pad = padding(count, nodes.shape[1])
        inside = torch.ones_like(direct) if pad is None else ~pad
        mean = (x * inside[..., None]).sum(1, keepdim=True) / count[:, None, None]
        both = torch.cat([x, mean.expand_as(x)], -1)
        return mask(self.score(torch.relu(self.hidden(both))), pad, direct)


if __name__ == "__main__":
    from drhg.__main__ import main

    main()

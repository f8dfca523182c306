"""Supervised training of a network that repairs: one loop, resumable at any moment.

A step draws `batch` decisions, cuts them into chunks, lets every worker thread take chunks, and
adds the gradients up in the order of the chunks: the result does not depend on how many threads
there are. Everything random is a function of the seed and the step, so a checkpoint is weights,
optimiser, average and counters, and a resumed run on a CPU repeats an uninterrupted one bit by bit.
Several processes (`torchrun`) share the chunks of every batch, so they train the same network.
"""

from __future__ import annotations

import math
import platform
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch

from drhg.destroy.operators import Cluster
from drhg.errors import ModelError
from drhg.network.decode import compiled
from drhg.network.repairer import NeuralRepair
from drhg.network.torch_model import build, device_of
from drhg.problem import cost
from drhg.search.regions import Regions
from drhg.session.solve import solve_many
from drhg.training.examples import Batch, draw, held_out_gap, held_out_loss
from drhg.training.joins import Joins, loss
from drhg.training.optimisers import optimisers, rate_at
from drhg.training.recipe import Recipe
from drhg.training.shards import Plans, Tours
from drhg.training.step import Team, flatten, gradient, in_order, split


class Trainer:
    """The state of a run: network, optimisers, average, counters."""

    def __init__(
        self, recipe: Recipe, labels: Tours | Plans, threads: int = 1, device: str = "cpu"
    ) -> None:
        torch.manual_seed(recipe.seed)
        self.recipe = recipe
        self.device = device_of(device)
        self.team = Team(self.device)
        self.network = build(recipe.network).to(self.device)
        self.average = build(recipe.network).to(self.device)
        self.average.load_state_dict(self.network.state_dict())
        self.flat = flatten(self.network)
        self.flat_average = flatten(self.average)
        self.sums = torch.zeros(len(self.flat) + 2, device=self.device)  # gradient, loss, stop
        self.optimisers = optimisers(self.network, recipe)
        self.held = labels.part(0, min(recipe.held_out, len(labels) // 2))
        self.labels = labels.part(len(self.held), len(labels))
        self.step = 0
        self.decisions = 0
        self.seconds = 0.0
        self.decay_from: int | None = None
        self.gaps: dict[str, float] = {}  # of the last validation
        self.stopping = False
        self.threads = threads
        self.pool = ThreadPoolExecutor(threads)
        self._next: tuple[int, Future[Batch]] | None = None

    def _batch(self, step: int) -> Future[Batch]:
        c = self.recipe
        return self.pool.submit(draw, self.labels, c.data, c.network, c.batch, c.seed, step)

    def train_step(self, stop: bool = False) -> float:
        """One step; returns its loss. `stop` of any process makes all `stopping`."""
        recipe = self.recipe
        if self._next is None or self._next[0] != self.step:
            self._next = (self.step, self._batch(self.step))
        batch = self._next[1].result()
        every: list[Batch] = list(batch.parts(recipe.chunk))
        parts = every[self.team.rank :: self.team.size]
        futures = [
            self.pool.submit(gradient, self.network, self.flat, part, 1 / len(batch))
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
        norm = torch.nn.utils.clip_grad_norm_(self.network.parameters(), recipe.clip)
        if not (math.isfinite(loss) and math.isfinite(norm)):
            raise ModelError(
                f"step {self.step + 1}: the loss or its gradient is not a number; go on from the "
                "last checkpoint with a lower rate, or with more steps of warm-up"
            )
        share = rate_at(recipe, self.step, self.decisions, self.decay_from)
        for optimiser in self.optimisers:
            for group in optimiser.param_groups:
                group["lr"] = group["peak"] * share
            optimiser.step()
        self.step += 1
        self.decisions += len(batch)
        keep = min(recipe.average, (self.step + 1) / (self.step + 10))
        self.flat_average.lerp_(self.flat, 1 - keep)
        return loss

    def validate(self) -> dict[str, float]:
        """How good the averaged weights are on held-out instances.

        `loss_held` is the loss on their decisions, without those on which the network is trained.
        Gaps are in percent, against the labels: `gap_M` on the free edges of reduced graphs of M
        nodes, or of M destroyed customers; `gap_solve` of whole solutions after `solve_iters`
        iterations from the paper's start.
        """
        tensors = {name: t.cpu().numpy() for name, t in self.average.state_dict().items()}
        quick = compiled(self.recipe.network, tensors, self.threads) if self.flat.is_cpu else None
        model: Any = quick or self.average
        out = {"loss_held": round(self._held_loss(model), 5)}
        for m in (m for m in self.recipe.held_out_sizes if m < self.held.largest):
            out[f"gap_{m}"] = round(held_out_gap(model, self.held, m), 3)
        if self.recipe.solves > 0 and self.recipe.solve_iters > 0:
            out["gap_solve"] = round(self._solve_gap(model), 3)
        self.gaps = {name: gap for name, gap in out.items() if name.startswith("gap")}
        return out

    def _held_loss(self, model: Any) -> float:
        """The loss on decisions of held-out instances, always the same ones."""
        c = self.recipe
        batch = draw(self.held, c.data, c.network, c.held_out_decisions, c.seed, 0)
        if isinstance(batch, Joins):
            with torch.inference_mode():
                parts = [(part, part.inputs(self.device)) for part in batch.parts(c.chunk)]
                losses = [float(loss(self.average(*inputs), part)) for part, inputs in parts]
            return sum(losses) / len(batch)
        return held_out_loss(model, batch, c.chunk)

    def _solve_gap(self, model: Any) -> float:
        count = min(self.recipe.solves, len(self.held))
        known = [self.held.known(i) for i in range(count)]
        found = solve_many(
            [instance for instance, _ in known],
            method=Regions(Cluster(self.recipe.k), NeuralRepair(model)),
            max_iters=self.recipe.solve_iters,
        )
        pairs = zip(found, known, strict=True)
        ratios = [result.cost / cost(instance, best) for result, (instance, best) in pairs]
        return 100 * (float(np.mean(ratios)) - 1)

    def card(self) -> dict[str, Any]:
        """What the weights are, for whoever finds them."""
        c = self.recipe
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


def _processor() -> str:
    """The name of the CPU, as far as the system tells."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()

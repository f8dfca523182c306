"""Recipes: everything that decides how a network is trained, as TOML files have it."""

from __future__ import annotations

import math
import os
import tomllib
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from drhg.errors import ModelError
from drhg.network.weights import ModelConfig
from drhg.problem import shown

FOLDER = Path(__file__).parent / "recipes"
OPTIMISERS = ("adamw", "adam", "muon")


@dataclass(frozen=True)
class Examples:
    """Which decisions to draw: the table `[data]` of a recipe."""

    low: int = 20  # smallest reduced graph, or fewest destroyed customers (paper: 20)
    share: float = 0.8  # largest one as a share of the instance (paper: 0.8)
    most: int = 1000  # and at most so many nodes
    per_graph: int = 1  # decisions tried per graph
    touched: float = 0.2  # share of graphs of routes that lose all depot edges of touched routes
    together: int = 8  # graphs cut from the same plan at once, to save time
    spare: float = 0.15  # how often a plan pretends to have one route more than the best one needs
    onward: float = 0.75  # how often the next route to learn begins as near as possible
    untouched: float = 0.4  # share of graphs of `edges` of which no edge is joined beforehand


@dataclass(frozen=True)
class Recipe:
    """A training run."""

    network: ModelConfig
    data: Examples = field(default_factory=Examples)
    labels: str = "tsp100-*.npz"  # which files of the data folder
    seed: int = 1
    batch: int = 768  # decisions per step; of `edges` whole graphs
    chunk: int = 64  # of these, how many go through the network at once
    optimiser: str = "adamw"  # adamw | adam | muon (which leaves all but hidden matrices to adamw)
    rate: float = 2e-3
    rate_muon: float = 1e-2
    betas: tuple[float, float] = (0.9, 0.98)  # of Adam
    momentum: float = 0.95  # of Muon
    weight_decay: float = 0.01
    clip: float = 1.0  # largest norm of the gradient
    warmup: int = 300  # steps of rising rate
    gamma: float = 1.0  # factor on the rate per `epoch` decisions (the paper: 0.97 per 1 M)
    epoch: int = 1_000_000
    decay: int = 4000  # steps of the branch that brings the rate to zero (`--decay`)
    average: float = 0.999  # of the exponential moving average of weights; 0 for none
    every: int = 500  # steps between validations and checkpoints
    held_out: int = 256  # instances kept for validation, at most half of all
    held_out_decisions: int = 2048  # of these, for `loss_held`
    held_out_sizes: tuple[int, int, int] = (30, 50, 80)  # of the graphs of `gap_30` and so on
    k: tuple[int, int] = (20, 100)  # destroyed nodes in validation solves, and in the model card
    solves: int = 16  # held-out instances solved at each validation
    solve_iters: int = 50  # iterations of each, from the paper's start


def names(folder: Path = FOLDER) -> list[str]:
    """The recipes in the box."""
    return sorted(path.stem for path in folder.glob("*.toml"))


def find(name: str | os.PathLike[str], folder: Path = FOLDER) -> Path:
    """The file of a recipe: in the box by its name, or any path.

    >>> find("economy").name
    'economy.toml'
    """
    path = Path(name)
    if path.suffix or os.sep in os.fspath(name) or path.is_file():
        return path
    if path.name not in names(folder):
        if path.exists():  # a folder, which reading will say
            return path
        raise ModelError(
            f"no recipe named {os.fspath(name)!r}: neither a file nor one of: "
            f"{', '.join(names(folder))}"
        )
    return folder / f"{path.name}.toml"


def read_recipe(path: str | os.PathLike[str]) -> Recipe:
    """A TOML file, or a recipe in the box by its name.

    Unknown keys and values that make no sense are errors.
    """
    try:
        path = find(path)
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except TypeError:
        raise ModelError(f"path must be the name of a file, not {shown(path)}") from None
    except OSError as error:
        raise ModelError(f"cannot read: {error.strerror}", file=str(path)) from None
    except ValueError as error:  # TOMLDecodeError, UnicodeDecodeError, a NUL in the path
        raise ModelError(f"not a TOML file: {error}", file=str(path)) from None
    try:
        return _recipe(raw)
    except ModelError as error:
        raise ModelError(error.reason, file=str(path)) from None


def _recipe(raw: dict[str, Any]) -> Recipe:
    """A recipe as TOML has it, checked."""
    for table in ("network", "data"):
        if not isinstance(raw.get(table, {}), dict):
            raise ModelError(f"{table} must be a table: write [{table}]")
    network, data = raw.pop("network", {}), raw.pop("data", {})
    if "preset" not in network:
        raise ModelError("[network] must name a preset")
    for where, given, kind in (("", raw, Recipe), ("[data] ", data, Examples)):
        known = {f.name: f.default for f in fields(kind)}
        for name, value in given.items():
            if name not in known:
                others = ", ".join(name for name in known if name not in ("network", "data"))
                raise ModelError(f"{where}unknown key {name!r}; known: {others}")
            if not _is_like(value, known[name]):
                raise ModelError(
                    f"{where}{name} = {shown(value)} is of the wrong kind or negative; the default "
                    f"is {known[name]!r}"
                )
    if raw.get("optimiser", "adam") not in OPTIMISERS:
        raise ModelError(f"unknown optimiser {raw['optimiser']!r}; known: {', '.join(OPTIMISERS)}")
    for name in ("batch", "chunk", "epoch", "decay", "every", "held_out_decisions"):
        if raw.get(name, 1) < 1:
            raise ModelError(f"{name} must be at least 1, not {raw[name]}")
    low, high = raw.get("k", Recipe.k)
    if not 1 <= low <= high:
        raise ModelError(f"k must be two numbers, 1 <= low <= high, not {raw['k']}")
    if max(raw.get("betas", Recipe.betas)) >= 1:
        raise ModelError(f"betas must be two numbers below 1, not {raw['betas']}")
    raw |= {name: tuple(value) for name, value in raw.items() if isinstance(value, list)}
    return Recipe(ModelConfig.of(network.pop("preset"), **network), Examples(**data), **raw)


def _is_like(value: Any, usual: Any) -> bool:
    """Whether a value from TOML can take the place of a default: its kind, finite, not negative."""
    if isinstance(usual, tuple):
        pair = isinstance(value, list) and len(value) == len(usual)
        return pair and all(map(_is_like, value, usual))
    if isinstance(usual, str):
        return isinstance(value, str)
    kinds = (int, float) if isinstance(usual, float) else (int,)
    return type(value) in kinds and 0 <= value < math.inf

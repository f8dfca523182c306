"""Weights: the configuration of a network and its tensors in one safetensors file, verified.

The format is safetensors (eight bytes of header length, a JSON header, raw little-endian numbers);
it is read and written here in NumPy, so that a plain install can use the shipped weights. Nothing
in such a file is ever executed. `manifest.json` beside the shipped files holds their sha256 and
model cards.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from drhg.errors import ModelError
from drhg.files import atomic_write

Tensors: TypeAlias = dict[str, npt.NDArray[Any]]

FOLDER = Path(__file__).parent / "models"
FORMAT = "drhg-1"  # changes when old weights stop being readable
_DTYPES = {"F16": "<f2", "F32": "<f4", "F64": "<f8", "I64": "<i8", "U8": "|u1"}
_NAMES = {np.dtype(code): name for name, code in _DTYPES.items()}
_LARGEST_HEADER = 1 << 24
K = (20, 100)  # destroyed nodes, where the card does not say
NEAREST = 5  # ends of other paths that a token of `edges` is told of
EDGES_INPUTS = 8 + 3 * NEAREST  # numbers per token of `edges`, see `network.survey`
EDGES_ROUTE_INPUTS = 11  # and more for routes


@dataclass(frozen=True)
class ModelConfig:
    """Everything that shapes a network; stored with its weights.

    >>> ModelConfig.of("paper").d
    128
    """

    preset: str  # which network: one of PRESETS
    d: int  # channels
    layers: int
    heads: int
    hidden: int  # channels inside the feed-forward layers
    window: int = 0  # nearest remaining nodes that a decision looks at; 0 means all
    from_first: int = 0  # representative nodes made from the first node (paper, appendix A)
    from_current: int = 0  # and from the current one
    routes: bool = False  # CVRP: loads, room left in the vehicle, and "via the depot" as a choice
    reference: bool = False  # preset "paper" as its public code has it, see `torch_model.Paper`

    def __post_init__(self) -> None:
        if self.preset not in PRESETS:
            raise ModelError(f"unknown network {self.preset!r}; known: {', '.join(PRESETS)}")
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.name in ("preset", "routes", "reference"):
                good = isinstance(value, str if field.name == "preset" else bool)
            else:
                good = type(value) is int and 0 <= value <= 1 << 16
            if not good:
                raise ModelError(f"{field.name} = {value!r} makes no network")
        if min(self.d, self.layers, self.heads, self.hidden) < 1 or self.d % self.heads:
            raise ModelError(f"d = {self.d} channels do not split into {self.heads} heads")
        if self.preset == "edges" and (self.d // self.heads % 16 or self.hidden % 16):
            raise ModelError("heads and hidden layers of `edges` have multiples of 16 channels")
        if self.preset == "paper" and self.from_first + self.from_current < 1:
            raise ModelError("the paper's network needs representative nodes")

    @classmethod
    def of(cls, preset: str, **changes: Any) -> ModelConfig:
        """A preset, with changes."""
        if preset not in PRESETS:
            raise ModelError(f"unknown network {preset!r}; known: {', '.join(PRESETS)}")
        known = [field.name for field in dataclasses.fields(cls)]
        unknown = [name for name in changes if name not in known]
        if unknown:
            raise ModelError(f"unknown key {unknown[0]!r} of a network; known: {', '.join(known)}")
        return cls(**{"preset": preset, **PRESETS[preset], **changes})

    @property
    def relative(self) -> bool:
        """Whether any rotation is a symmetry; else coordinates are as in the paper."""
        return self.preset in _RELATIVE

    @property
    def node_inputs(self) -> int:
        """Numbers per remaining node that enter the network (equations 1-5 for `paper`)."""
        if self.preset == "edges":
            return EDGES_INPUTS + EDGES_ROUTE_INPUTS * self.routes
        if self.relative:
            return 14 if self.routes else 10
        return 6 if self.routes else 5

    @property
    def context_inputs(self) -> int:
        """Numbers per decision: what is known of the first and the current node, and of room."""
        if self.relative:
            return 11 if self.routes else 4
        return 2 * self.node_inputs + self.routes

    @property
    def outputs(self) -> int:
        """Scores per node: go there directly, and for routes go there via the depot."""
        return 2 if self.routes else 1


PRESETS: dict[str, dict[str, Any]] = {
    # Section "Implementing Details"; how the 16 representatives split is not said there.
    "paper": {
        "d": 128,
        "layers": 6,
        "heads": 8,
        "hidden": 512,
        "from_first": 1,
        "from_current": 15,
    },
    "economy": {"d": 64, "layers": 6, "heads": 4, "hidden": 256, "window": 24},
    "edges": {"d": 64, "layers": 6, "heads": 4, "hidden": 256},
}
_RELATIVE = {"economy", "edges"}  # presets to which any rotation is the same
_OWN: set[str] = set()  # presets that somebody registered; only torch knows their tensors


def register(preset: str, relative: bool, usual: Mapping[str, Any]) -> None:
    """Make a kind of network known in this process, with its usual configuration.

    See `torch_model.register`. A weights file names its preset; its code never comes from a file.
    """
    if preset in PRESETS and preset not in _OWN:
        raise ModelError(f"the network {preset!r} is one of the package's own: take another name")
    PRESETS[preset] = dict(usual)
    _OWN.add(preset)
    (_RELATIVE.add if relative else _RELATIVE.discard)(preset)
    ModelConfig.of(preset)


def shapes(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """Names and shapes of all tensors of a network, in a fixed order."""
    d, hidden = config.d, config.hidden
    feed = {"up.weight": (hidden, d), "up.bias": (hidden,), "down.weight": (d, hidden)}
    feed_forward: dict[str, tuple[int, ...]] = {**feed, "down.bias": (d,)}
    score = {"score.weight": (config.outputs, d), "score.bias": (config.outputs,)}
    out: dict[str, tuple[int, ...]] = {}
    layer: dict[str, tuple[int, ...]]
    if config.preset == "economy":
        out |= {"node.weight": (d, config.node_inputs), "node.bias": (d,)}
        out |= {"first.weight": (d, config.context_inputs), "first.bias": (d,)}
        out |= {"current": (d,), "norm.weight": (d,), **score, "nearness": ()}
        layer = {"n1.weight": (d,), "qkv.weight": (3 * d, d), "o.weight": (d, d)}
        layer |= {"n2.weight": (d,), **feed_forward}
        stacks = ["blocks"]
    elif config.preset == "edges":
        out |= {"node.weight": (d, config.node_inputs), "node.bias": (d,), "norm.weight": (d,)}
        out |= {"q.weight": (d, d), "k.weight": (d, d), "far": ()}
        layer = {"n1.weight": (d,), "qkv.weight": (3 * d, d), "o.weight": (d, d)}
        layer |= {"n2.weight": (d,), **feed_forward}
        layer |= {"slope": (config.heads,), "bond": (config.heads,)}
        stacks = ["blocks"]
    else:
        known = d + config.routes
        out |= {"encoder.weight": (d, config.node_inputs), "encoder.bias": (d,)}
        out |= {"first.weight": (d * config.from_first, known)}
        out |= {"current.weight": (d * config.from_current, known), **score}
        if config.reference:
            out |= {"first.bias": (d * config.from_first,)}
            out |= {"current.bias": (d * config.from_current,)}
        layer = {"q.weight": (d, d), "kv.weight": (2 * d, d), "o.weight": (d, d), **feed_forward}
        layer |= {"o.bias": (d,)} if config.reference else {}
        stacks = ["aggregate", "broadcast"]
    for stack in stacks:
        for i in range(config.layers):
            out |= {f"{stack}.{i}.{name}": shape for name, shape in layer.items()}
    return out


def check_shapes(config: ModelConfig, tensors: Mapping[str, Any], file: str | None = None) -> None:
    """Refuse tensors whose names and shapes are not exactly the network's."""
    if config.preset not in _OWN:  # else torch compares them, once it has built the network
        compare_shapes(shapes(config), tensors, file)


def compare_shapes(
    expected: Mapping[str, tuple[int, ...]], tensors: Mapping[str, Any], file: str | None = None
) -> None:
    """Refuse tensors that have not exactly these names and shapes."""
    if set(expected) != set(tensors):
        odd = ", ".join(sorted(set(expected) ^ set(tensors))[:3])
        raise ModelError(f"the weights do not belong to this network: {odd}", file=file)
    for name, shape in expected.items():
        found = tuple(tensors[name].shape)
        if found != shape:
            raise ModelError(f"{name} has the shape {found}, not {shape}", file=file)


# --- files ---------------------------------------------------------------------------------------


def encode(tensors: Mapping[str, npt.NDArray[Any]], metadata: Mapping[str, str]) -> bytes:
    """Tensors and texts as the bytes of a safetensors file; equal inputs give equal bytes."""
    header: dict[str, Any] = {"__metadata__": dict(sorted(metadata.items()))}
    parts = []
    offset = 0
    for name in sorted(tensors):
        array = np.asarray(tensors[name])
        if array.dtype not in _NAMES:
            raise ModelError(f"tensor {name!r} has the type {array.dtype}, which is not stored")
        data = array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
        span = [offset, offset + len(data)]
        header[name] = {
            "dtype": _NAMES[array.dtype],
            "shape": list(array.shape),
            "data_offsets": span,
        }
        parts.append(data)
        offset += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # so that the numbers are aligned
    return b"".join([len(text).to_bytes(8, "little"), text, *parts])


def decode(data: bytes, file: str | None = None) -> tuple[Tensors, dict[str, str]]:
    """The reverse of `encode`; anything but a whole, gapless safetensors file is refused."""

    def refuse(reason: str) -> ModelError:
        return ModelError(f"not usable as weights: {reason}", file=file)

    size = int.from_bytes(data[:8], "little")
    if len(data) < 8 or size > min(len(data) - 8, _LARGEST_HEADER):
        raise refuse("this is no safetensors file, or it is cut short")
    try:
        header = json.loads(data[8 : 8 + size])
        metadata = header.pop("__metadata__", {})
        tensors: Tensors = {}
        body = memoryview(data)[8 + size :]
        end = 0
        for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
            dtype = np.dtype(_DTYPES[entry["dtype"]])
            shape = tuple(entry["shape"])
            a, z = entry["data_offsets"]
            whole = all(type(i) is int and i >= 0 for i in (*shape, a, z))
            if not whole or a != end or z - a != math.prod(shape) * dtype.itemsize:
                raise refuse(f"the place of tensor {name!r} does not fit its shape")
            if z > len(body):
                raise refuse("the file is cut short")
            tensors[name] = np.frombuffer(body[a:z], dtype).reshape(shape).copy()
            end = z
        if end != len(body):
            raise refuse("there is more in the file than its header says")
        if not all(isinstance(text, str) for text in metadata.values()):
            raise refuse("its metadata are no texts")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise refuse(f"its header is damaged ({error})") from None
    return tensors, metadata


def _digest(tensors: Mapping[str, npt.NDArray[Any]]) -> str:
    return hashlib.sha256(encode(tensors, {})).hexdigest()


def _words_digest(metadata: Mapping[str, str]) -> str:
    words = [metadata.get(key, "") for key in ("config", "card")]
    return hashlib.sha256("\n".join(words).encode("utf-8", "surrogatepass")).hexdigest()


def write_weights(
    path: str | os.PathLike[str],
    config: ModelConfig,
    tensors: Mapping[str, npt.NDArray[Any]],
    card: Mapping[str, Any] | None = None,
) -> str:
    """Write weights with their configuration and card; returns the file's sha256."""
    words = {
        "config": json.dumps(dataclasses.asdict(config), sort_keys=True),
        "card": json.dumps(dict(card or {}), sort_keys=True),
    }
    # hashes of the numbers and of the words, so that one flipped bit is noticed
    hashes = {"sha256": _digest(tensors), "words": _words_digest(words)}
    data = encode(tensors, {"format": FORMAT, **words, **hashes})
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    atomic_write(path, data)
    return hashlib.sha256(data).hexdigest()


def read_weights(
    path: str | os.PathLike[str], *, sha256: str | None = None
) -> tuple[ModelConfig, Tensors, dict[str, Any]]:
    """(configuration, tensors, card) of a file; `ModelError` if anything about it is wrong.

    Half-precision tensors come back as float32.
    """
    name = os.fspath(path)
    try:
        data = Path(path).read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = getattr(error, "strerror", None) or error
        raise ModelError(f"cannot read weights: {reason}", file=name) from None
    if sha256 is not None and hashlib.sha256(data).hexdigest() != sha256:
        raise ModelError("the file is not the one its manifest describes (sha256)", file=name)
    tensors, metadata = decode(data, name)
    if metadata.get("format") != FORMAT:
        found = metadata.get("format", "none")
        raise ModelError(f"weights of format {FORMAT} expected, found {found}", file=name)
    words = _words_digest(metadata)
    if metadata.get("sha256") != _digest(tensors) or metadata.get("words", words) != words:
        raise ModelError("the weights are damaged (sha256)", file=name)
    try:
        config = ModelConfig(**json.loads(metadata["config"]))
        card = dict(json.loads(metadata.get("card", "{}")))
    except (ValueError, KeyError, TypeError) as error:
        raise ModelError(f"wrong configuration in the file: {error}", file=name) from None
    except ModelError as error:
        raise ModelError(f"wrong configuration in the file: {error.reason}", file=name) from None
    check_shapes(config, tensors, name)
    for key, array in tensors.items():
        if not np.isfinite(array).all():
            raise ModelError(f"tensor {key!r} holds numbers that are not finite", file=name)
        if array.dtype == np.float16:
            tensors[key] = array.astype(np.float32)
    return config, tensors, card


# --- what is in the box --------------------------------------------------------------------------


def manifest(folder: Path = FOLDER) -> dict[str, dict[str, Any]]:
    """Name -> {file, sha256, card, ...} of the weights shipped with the package."""
    path = folder / "manifest.json"
    if not path.exists():
        return {}
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
        return {str(name): dict(entry) for name, entry in entries.items()}
    except (ValueError, AttributeError, TypeError):
        raise ModelError("the manifest of weights is damaged", file=str(path)) from None


def shipped(name: str, folder: Path = FOLDER) -> tuple[Path, str]:
    """Path and sha256 of weights in the box."""
    entries = manifest(folder)
    if name not in entries:
        known = ", ".join(sorted(entries)) or "none"
        raise ModelError(f"no weights named {name!r} in the package; there are: {known}")
    return folder / str(entries[name]["file"]), str(entries[name]["sha256"])


@dataclass(frozen=True)
class Weights:
    """A file of weights that was read and found whole."""

    name: str  # in the box, or the path
    path: Path
    sha256: str
    bytes: int
    config: ModelConfig
    tensors: Tensors
    card: dict[str, Any]

    @property
    def parameters(self) -> int:
        return sum(tensor.size for tensor in self.tensors.values())

    @property
    def k(self) -> tuple[int, int]:
        """How many nodes to destroy, as the card advises."""
        return _k_of(self.card)


def _k_of(card: Mapping[str, Any]) -> tuple[int, int]:
    try:
        low, high = (int(number) for number in card["k"])
        return (low, high) if 1 <= low <= high else K
    except (KeyError, TypeError, ValueError):
        return K


def load(name: str | os.PathLike[str], folder: Path = FOLDER) -> Weights:
    """Weights by their name in the box, or from a file, verified.

    >>> load("economy").config.preset
    'economy'
    """
    name = os.fspath(name) if isinstance(name, os.PathLike) else name
    if not isinstance(name, str) or not name:
        raise ModelError(f"weights have a name or a file, not {name!r}")
    if name in manifest(folder):
        path, sha256 = shipped(name, folder)
    elif os.sep in name or Path(name).suffix or Path(name).exists():
        path, sha256 = Path(name), None
    else:
        known = ", ".join(sorted(manifest(folder))) or "none"
        raise ModelError(f"no weights named {name!r}: neither a file nor one of: {known}")
    config, tensors, card = read_weights(path, sha256=sha256)
    data = path.read_bytes()
    return Weights(name, path, hashlib.sha256(data).hexdigest(), len(data), config, tensors, card)


def fitting(n: int, routes: bool, folder: Path = FOLDER) -> str:
    """The weights in the box for an instance of n nodes: those meant for the next larger size.

    Networks of edges come first, else the economical one. A card without `n` fits any size.
    """
    sizes: dict[str, float] = {}
    for preset in ("edges", "economy"):
        sizes = sizes or {
            name: float(entry["card"].get("n", math.inf))
            for name, entry in manifest(folder).items()
            if entry["config"]["routes"] == routes and entry["config"]["preset"] == preset
        }
    if not sizes:
        kind = "routes (CVRP)" if routes else "tours (TSP)"
        raise ModelError(f"the network in the box has no weights for {kind}; use another repair")
    enough = [name for name in sizes if sizes[name] >= n]
    if enough:
        return min(enough, key=lambda name: (sizes[name], name))
    return max(sizes, key=lambda name: (sizes[name], name))


def release(
    name: str,
    path: str | os.PathLike[str],
    card: Mapping[str, Any] | None = None,
    *,
    half: bool = False,
    folder: Path = FOLDER,
) -> Path:
    """Take a weights file into the box under a name; `card` adds facts, `half` stores float16."""
    config, tensors, facts = read_weights(path)
    if half:
        tensors = {key: tensor.astype(np.float16) for key, tensor in tensors.items()}
    facts |= dict(card or {})
    target = folder / f"{name}.safetensors"
    sha256 = write_weights(target, config, tensors, facts)
    entries = manifest(folder)
    entries[name] = {
        "file": target.name,
        "sha256": sha256,
        "bytes": target.stat().st_size,
        "config": dataclasses.asdict(config),
        "card": facts,
    }
    text = json.dumps(entries, indent=2, sort_keys=True) + "\n"
    atomic_write(folder / "manifest.json", text)
    return target

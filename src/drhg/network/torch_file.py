"""Checkpoints of torch, read without torch and without executing anything.

A file of `torch.save` is a zip archive: raw numbers, and a pickle that says which tensors they are.
A pickle is a program; here only the few instructions that build plain values are followed, and a
name from a module stays a name, which nothing ever calls, except that of a tensor's layout. What
else a checkpoint holds (an optimiser, a log) is passed over.
"""

from __future__ import annotations

import math
import os
import pickletools
import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from drhg.errors import ModelError
from drhg.network.weights import ModelConfig, Tensors, check_shapes

_LARGEST = 1 << 32  # bytes of an archive when unpacked
_STORAGES = {
    "FloatStorage": "<f4",
    "DoubleStorage": "<f8",
    "HalfStorage": "<f2",
    "LongStorage": "<i8",
    "IntStorage": "<i4",
    "ByteStorage": "|u1",
    "BoolStorage": "|b1",
}


def read_state_dict(path: str | os.PathLike[str]) -> Tensors:
    """The tensors of a state dict, or of the one named `model_state_dict` in a checkpoint."""
    name = os.fspath(path)
    try:
        with zipfile.ZipFile(name) as archive:
            if sum(member.file_size for member in archive.infolist()) > _LARGEST:
                raise ModelError(f"larger than {_LARGEST} bytes when unpacked", file=name)
            (pickled,) = (m for m in archive.namelist() if re.fullmatch(r"[^/]+/data\.pkl", m))
            folder = pickled.removesuffix("data.pkl")
            order = folder + "byteorder"
            if order in archive.namelist() and archive.read(order) != b"little":
                raise ModelError("written on a machine of another byte order", file=name)
            found = _built(archive.read(pickled))
            if isinstance(found, dict) and isinstance(found.get("model_state_dict"), dict):
                found = found["model_state_dict"]
            if not isinstance(found, dict) or not found:
                raise ModelError("there is no state dict in it", file=name)
            tensors: Tensors = {}
            for key, value in found.items():
                if not isinstance(key, str) or not isinstance(value, _Tensor):
                    raise ModelError(f"no plain state dict: {key!r} is no tensor", file=name)
                tensors[key] = value.read(archive.read(f"{folder}data/{value.storage.key}"))
            return tensors
    except OSError as error:
        raise ModelError(f"cannot be read: {error.strerror or error}", file=name) from None
    except (ValueError, KeyError, IndexError, TypeError, zipfile.BadZipFile) as error:
        raise ModelError(f"no checkpoint of torch, or a damaged one: {error}", file=name) from None


@dataclass(frozen=True)
class _Name:
    """Something of a module, by its name only."""

    text: str


@dataclass
class _Unknown:
    """Whatever a call would have made."""

    state: list[Any] = field(default_factory=list)


@dataclass(frozen=True)
class _Storage:
    kind: str
    key: str
    count: int


@dataclass(frozen=True)
class _Tensor:
    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def read(self, data: bytes) -> npt.NDArray[Any]:
        """The tensor, from the bytes of its storage."""
        numbers = np.frombuffer(data, _STORAGES[self.storage.kind])
        whole = (self.offset, *self.shape, *self.strides)
        if any(type(i) is not int or i < 0 for i in whole) or len(self.shape) != len(self.strides):
            raise ValueError("a tensor of an impossible shape")
        size = math.prod(self.shape)
        last = self.offset + sum(
            (n - 1) * stride for n, stride in zip(self.shape, self.strides, strict=True)
        )
        if size > len(numbers) or (size > 0 and last >= len(numbers)):
            raise ValueError("a tensor reaches beyond its storage")
        if size == 0:
            return np.zeros(self.shape, numbers.dtype)
        steps = tuple(stride * numbers.itemsize for stride in self.strides)
        view = np.lib.stride_tricks.as_strided(numbers[self.offset :], self.shape, steps)
        return np.ascontiguousarray(view).reshape(self.shape)


_MARK = object()
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_VALUES = {
    "BININT", "BININT1", "BININT2", "INT", "LONG", "LONG1", "LONG4", "BINFLOAT", "FLOAT",
    "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "UNICODE", "BINBYTES", "SHORT_BINBYTES",
    "BINSTRING", "SHORT_BINSTRING", "STRING",
}  # fmt: skip
_EMPTY: dict[str, Any] = {"EMPTY_DICT": dict, "EMPTY_LIST": list, "EMPTY_TUPLE": tuple}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


def _built(program: bytes) -> Any:
    """What a pickle describes, in plain values, names and tensors."""
    stack: list[Any] = []
    memo: dict[int, Any] = {}

    def marked() -> list[Any]:
        at = max(i for i, one in enumerate(stack) if one is _MARK)
        items = stack[at + 1 :]
        del stack[at:]
        return items

    for opcode, argument, _ in pickletools.genops(program):
        code = opcode.name
        if code in ("PROTO", "FRAME"):
            continue
        if code == "STOP":
            (found,) = stack
            return found
        if code in _VALUES:
            stack.append(argument)
        elif code in _CONSTANTS:
            stack.append(_CONSTANTS[code])
        elif code in _EMPTY:
            stack.append(_EMPTY[code]())
        elif code == "MARK":
            stack.append(_MARK)
        elif code in ("BINPUT", "LONG_BINPUT", "PUT"):
            memo[int(argument or 0)] = stack[-1]
        elif code == "MEMOIZE":
            memo[len(memo)] = stack[-1]
        elif code in ("BINGET", "LONG_BINGET", "GET"):
            stack.append(memo[int(argument or 0)])
        elif code in _TUPLES:
            items = stack[-_TUPLES[code] :]
            del stack[-_TUPLES[code] :]
            stack.append(tuple(items))
        elif code == "TUPLE":
            stack.append(tuple(marked()))
        elif code == "LIST":
            stack.append(marked())
        elif code == "DICT":
            items = marked()
            stack.append(dict(zip(items[::2], items[1::2], strict=True)))
        elif code in ("APPEND", "APPENDS"):
            items = marked() if code == "APPENDS" else [stack.pop()]
            if isinstance(stack[-1], list):
                stack[-1].extend(items)
        elif code in ("SETITEM", "SETITEMS"):
            items = marked() if code == "SETITEMS" else [stack.pop(-2), stack.pop()]
            if isinstance(stack[-1], dict):
                stack[-1].update(zip(items[::2], items[1::2], strict=True))
        elif code == "GLOBAL":
            stack.append(_Name(str(argument).replace(" ", ".")))
        elif code == "STACK_GLOBAL":
            name, module = stack.pop(), stack.pop()
            stack.append(_Name(f"{module}.{name}"))
        elif code in ("REDUCE", "NEWOBJ"):
            arguments, function = stack.pop(), stack.pop()
            stack.append(_made(function, arguments))
        elif code == "BUILD":
            stack.pop()  # the state of a module or of a class: of no use here
        elif code == "BINPERSID":
            stack.append(_storage(stack.pop()))
        else:
            raise ValueError(f"its pickle uses {code}, which a state dict has no need of")
    raise ValueError("its pickle has no end")


def _made(function: Any, arguments: Any) -> Any:
    """What a call would make: only a dict or a tensor is known."""
    known = function.text if isinstance(function, _Name) else ""
    if known == "collections.OrderedDict":
        return {}
    if known == "torch._utils._rebuild_tensor_v2":
        storage, offset, shape, strides, *_ = arguments
        if isinstance(storage, _Storage):
            return _Tensor(storage, offset, tuple(shape), tuple(strides))
    if known == "torch._utils._rebuild_parameter" and isinstance(arguments[0], _Tensor):
        return arguments[0]
    return _Unknown()


def _storage(described: Any) -> Any:
    """What a persistent id of torch says: ("storage", class, key, device, count)."""
    what, kind, key, _, count = described
    name = kind.text.removeprefix("torch.") if isinstance(kind, _Name) else ""
    if what != "storage" or name not in _STORAGES or not re.fullmatch(r"\d+", str(key)):
        return _Unknown()
    return _Storage(name, str(key), int(count))


# --- the paper's checkpoints ---------------------------------------------------------------------


def paper_weights(tensors: Mapping[str, npt.NDArray[Any]]) -> tuple[ModelConfig, Tensors]:
    """The network of the paper's public code for tours, as preset `paper` with `reference`.

    Taken are its own names (`encoder.embedding`, `decoder.layers.0.Wq`, ...) or those of
    `torch_model.Paper`. That code makes one representative from the first node and all others from
    the current one; its scores of the first, `Linear_REC`, are those of all remaining nodes.
    """
    theirs = "encoder.embedding.weight" in tensors
    source = _renamed(tensors) if theirs else dict(tensors)
    layers = {int(m[1]) for key in source if (m := re.match(r"aggregate\.(\d+)\.", key))}
    try:
        d, inputs = source["encoder.weight"].shape
        first, current = (len(source[f"{name}.weight"]) // d for name in ("first", "current"))
        hidden = len(source["aggregate.0.up.weight"])
    except (KeyError, ValueError) as error:
        raise ModelError(f"not the paper's network: {error} is missing") from None
    config = ModelConfig.of(
        "paper", d=d, layers=len(layers), hidden=hidden, from_first=first, from_current=current,
        routes=inputs == 6, reference="first.bias" in source,
    )  # fmt: skip
    check_shapes(config, source)
    return config, {name: np.asarray(tensor, np.float32) for name, tensor in source.items()}


def _renamed(theirs: Mapping[str, npt.NDArray[Any]]) -> Tensors:
    """Tensors of the public code under the names of `torch_model.Paper`."""
    left = dict(theirs)

    def take(name: str) -> npt.NDArray[Any]:
        if name not in left:
            raise ModelError(f"not the paper's network: {name} is missing")
        return left.pop(name)

    out = {}
    for kind in ("weight", "bias"):
        out[f"encoder.{kind}"] = take(f"encoder.embedding.{kind}")
        out[f"score.{kind}"] = take(f"decoder.Linear_REC.{kind}")
        out[f"first.{kind}"] = take(f"decoder.embedding_first_node.{kind}")
        last = "decoder.embedding_last_node"
        others = [int(m[1]) for name in left if (m := re.fullmatch(rf"{last}_(\d+)\.{kind}", name))]
        parts = [take(f"{last}_{i}.{kind}") for i in sorted(others)]
        out[f"current.{kind}"] = np.concatenate([*parts, take(f"{last}.{kind}")])
    count = len({name.split(".")[2] for name in left if name.startswith("decoder.layers.")})
    for i in range(count):
        for stack, end in (("aggregate", ""), ("broadcast", "_2")):
            at, to = f"decoder.layers.{i}.", f"{stack}.{i}."
            q, k, v = (take(f"{at}W{letter}{end}.weight") for letter in "qkv")
            out |= {f"{to}q.weight": q, f"{to}kv.weight": np.concatenate([k, v])}
            for kind in ("weight", "bias"):
                out[f"{to}o.{kind}"] = take(f"{at}multi_head_combine{end}.{kind}")
                out[f"{to}up.{kind}"] = take(f"{at}feedForward{end}.W1.{kind}")
                out[f"{to}down.{kind}"] = take(f"{at}feedForward{end}.W2.{kind}")
    if left:
        raise ModelError(f"not the paper's network: what is {min(left)}?")
    return out

"""Checkpoints of torch are read without executing anything in them, and mean what torch says."""

from __future__ import annotations

import collections
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch writes the files that are read here")

from drhg.errors import ModelError  # noqa: E402
from drhg.network.torch_file import paper_weights, read_state_dict  # noqa: E402
from drhg.network.torch_model import build, filled  # noqa: E402
from drhg.network.views import State  # noqa: E402
from drhg.network.weights import ModelConfig  # noqa: E402

D, HIDDEN, LAYERS = 16, 32, 2
REPRESENTATIVES = 17  # one from the first node, the others from the current one


def reference_tensors() -> dict[str, Any]:
    """Random tensors under the names and in the shapes of the paper's public code."""
    torch.manual_seed(0)
    shapes = {"encoder.embedding": (D, 5), "decoder.Linear_REC": (1, D)}
    shapes |= {"decoder.embedding_first_node": (D, D), "decoder.embedding_last_node": (D, D)}
    shapes |= {f"decoder.embedding_last_node_{i}": (D, D) for i in range(2, REPRESENTATIVES)}
    bare = []
    for i in range(LAYERS):
        for end in ("", "_2"):
            at = f"decoder.layers.{i}."
            bare += [f"{at}W{letter}{end}" for letter in "qkv"]
            shapes |= {f"{at}multi_head_combine{end}": (D, D)}
            shapes |= {f"{at}feedForward{end}.W1": (HIDDEN, D)}
            shapes |= {f"{at}feedForward{end}.W2": (D, HIDDEN)}
    out = {f"{name}.weight": 0.3 * torch.randn(D, D) for name in bare}
    for name, (rows, columns) in shapes.items():
        out[f"{name}.weight"] = 0.3 * torch.randn(rows, columns)
        out[f"{name}.bias"] = 0.3 * torch.randn(rows)
    return out


def reference_scores(t: dict[str, Any], nodes: Any, first: Any, current: Any) -> Any:
    """Scores of the remaining nodes (W, 5) of one decision, by the equations of the paper."""

    def linear(name: str, x: Any) -> Any:
        return x @ t[f"{name}.weight"].T + t.get(f"{name}.bias", 0.0)

    def module(i: int, end: str, x: Any, source: Any) -> Any:
        at = f"decoder.layers.{i}."
        q, k, v = (
            linear(f"{at}W{letter}{end}", y).view(len(y), 8, D // 8).transpose(0, 1)
            for letter, y in (("q", x), ("k", source), ("v", source))
        )
        mixed = (q @ k.mT / (D // 8) ** 0.5).softmax(-1) @ v
        x = x + linear(f"{at}multi_head_combine{end}", mixed.transpose(0, 1).reshape(len(x), D))
        hidden = linear(f"{at}feedForward{end}.W1", x).relu()
        return x + linear(f"{at}feedForward{end}.W2", hidden)

    a, b = (linear("encoder.embedding", x) for x in (first, current))
    numbers = [f"_{i}" for i in range(2, REPRESENTATIVES)] + [""]
    reps = [linear("decoder.embedding_first_node", a)]
    reps += [linear(f"decoder.embedding_last_node{number}", b) for number in numbers]
    out = torch.stack(reps)
    inter = torch.cat([out, linear("encoder.embedding", nodes)])
    for i in range(LAYERS):
        out = module(i, "", out, inter)
        inter = module(i, "_2", inter, out)
    return linear("decoder.Linear_REC", inter[REPRESENTATIVES:])[:, 0]


def test_a_checkpoint_of_the_public_code_gives_its_scores(tmp_path: Path) -> None:
    tensors = reference_tensors()
    parameters = [torch.nn.Parameter(tensors["encoder.embedding.weight"].clone())]
    optimiser = torch.optim.Adam(parameters)
    parameters[0].sum().backward()
    optimiser.step()
    checkpoint = {
        "epoch": 100,
        "model_state_dict": collections.OrderedDict(tensors),
        "optimizer_state_dict": optimiser.state_dict(),
        "result_log": {"train_loss": [[1, 0.5], [2, np.float64(0.4)]]},
    }
    torch.save(checkpoint, tmp_path / "checkpoint-100.pt")
    found = read_state_dict(tmp_path / "checkpoint-100.pt")
    assert set(found) == set(tensors)
    for name, tensor in tensors.items():
        assert np.array_equal(found[name], tensor.numpy())
    config, ours = paper_weights(found)
    assert (config.from_first, config.from_current, config.reference) == (1, 16, True)
    network = filled(config, ours)
    rng = np.random.default_rng(0)
    nodes, context = (rng.random(s).astype(np.float32) for s in ((1, 9, 5), (1, 10)))
    state = State(nodes, context, np.array([9], np.int32), np.ones((1, 9), np.bool_))
    expected = reference_scores(
        tensors, torch.from_numpy(nodes[0]), *torch.from_numpy(context[0]).view(2, 5)
    )
    np.testing.assert_allclose(network.logits(state)[0, :, 0], expected.numpy(), atol=1e-4)


def test_our_own_state_dict_comes_back(tmp_path: Path) -> None:
    network = build(ModelConfig.of("paper", d=32, layers=1, hidden=32))
    torch.save(network.state_dict(), tmp_path / "own.pt")
    config, tensors = paper_weights(read_state_dict(tmp_path / "own.pt"))
    assert config == network.config
    for name, tensor in network.state_dict().items():
        assert np.array_equal(tensors[name], tensor.numpy())


def test_tensors_that_share_and_stride(tmp_path: Path) -> None:
    base = torch.arange(24.0).view(4, 6)
    kinds = {"half": base.half(), "whole": base.long(), "turned": base.T, "part": base[1:3, ::2]}
    kinds |= {"none": base[:0], "number": torch.tensor(3.0), "parameter": torch.nn.Parameter(base)}
    torch.save(kinds, tmp_path / "a.pt")
    found = read_state_dict(tmp_path / "a.pt")
    for name, tensor in kinds.items():
        assert found[name].shape == tuple(tensor.shape)
        assert np.array_equal(found[name], tensor.detach().numpy())


class Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (Path("evil-was-here"),)


def test_nothing_is_executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save({"model_state_dict": {"a": torch.ones(2)}, "log": Evil()}, "beside.pt")
    assert read_state_dict("beside.pt")["a"].tolist() == [1, 1]
    torch.save({"a": torch.ones(2), "b": Evil()}, "inside.pt")
    with pytest.raises(ModelError, match="'b' is no tensor"):
        read_state_dict("inside.pt")
    assert not Path("evil-was-here").exists()


def archive(path: Path, program: bytes, storage: bytes = b"\0" * 16) -> Path:
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("archive/data.pkl", program)
        file.writestr("archive/data/0", storage)
    return path


def test_what_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.pt").write_text("hello")
    with pytest.raises(ModelError, match=r"text\.pt: no checkpoint"):
        read_state_dict(tmp_path / "text.pt")
    with pytest.raises(ModelError, match="cannot be read"):
        read_state_dict(tmp_path / "missing.pt")
    cases = [
        (b"garbage", "damaged"),
        (pickle.dumps([1, 2]), "no state dict"),
        (pickle.dumps({"a": 1}), "'a' is no tensor"),
        (pickle.dumps({"a": {1}}), "EMPTY_SET"),
        (pickle.dumps({})[:-1], "damaged"),
    ]
    for i, (program, message) in enumerate(cases):
        with pytest.raises(ModelError, match=message):
            read_state_dict(archive(tmp_path / f"{i}.pt", program))
    torch.save({"a": torch.ones(4)}, tmp_path / "whole.pt")
    data = (tmp_path / "whole.pt").read_bytes()
    (tmp_path / "cut.pt").write_bytes(data[: len(data) // 2])
    with pytest.raises(ModelError, match="damaged"):
        read_state_dict(tmp_path / "cut.pt")


def test_tensors_stay_inside_their_storage(tmp_path: Path) -> None:
    torch.save({"a": torch.ones(4)}, tmp_path / "a.pt")
    with zipfile.ZipFile(tmp_path / "a.pt") as file:
        (name,) = (name for name in file.namelist() if name.endswith("data.pkl"))
        program = file.read(name)
    with pytest.raises(ModelError, match="beyond its storage"):
        read_state_dict(archive(tmp_path / "b.pt", program, b"\0" * 12))


def test_other_networks_are_named(tmp_path: Path) -> None:
    tensors = {name: t.numpy() for name, t in reference_tensors().items()}
    with pytest.raises(ModelError, match="what is extra"):
        paper_weights({**tensors, "extra": np.zeros(1)})
    del tensors["decoder.layers.1.Wk_2.weight"]
    with pytest.raises(ModelError, match=r"decoder\.layers\.1\.Wk_2\.weight is missing"):
        paper_weights(tensors)
    with pytest.raises(ModelError, match="not the paper's network"):
        paper_weights({"a": np.zeros(1)})

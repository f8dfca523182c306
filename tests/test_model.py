"""The networks: the paper's to the letter, both exact about padding, and files that are refused."""

from __future__ import annotations

import json
import math
import pickle
from pathlib import Path

import numpy as np
import pytest
from soak import cases

from drhg.errors import ModelError
from drhg.network import weights
from drhg.network.weights import ModelConfig

torch = pytest.importorskip("torch", reason="the networks need torch")

from drhg.network.torch_model import Attention, Block, attend, build, load_model, save_model  # noqa: E402
from drhg.network.views import State  # noqa: E402

torch.set_num_threads(1)
PRESETS = ("paper", "economy")


def some_state(config: ModelConfig, rows: int = 5, width: int = 9, seed: int = 0) -> State:
    rng = np.random.default_rng(seed)
    count = rng.integers(2, width + 1, rows).astype(np.int32)
    count[0] = width
    nodes = rng.random((rows, width, config.node_inputs)).astype(np.float32)
    nodes[np.arange(width)[None, :] >= count[:, None]] = 0.0
    context = rng.random((rows, config.context_inputs)).astype(np.float32)
    return State(nodes, context, count, np.arange(width) < count[:, None])


def stirred(config: ModelConfig, seed: int = 0) -> torch.nn.Module:
    """A network whose every weight matters (fresh ones have zero matrices)."""
    torch.manual_seed(seed)
    network = build(config)
    with torch.no_grad():
        for p in network.parameters():
            p.add_((0.01 if config.preset == "paper" else 0.1) * torch.randn_like(p))
    return network.eval()


def test_the_paper_has_as_many_parameters_as_it_says() -> None:
    count = sum(p.numel() for p in build(ModelConfig.of("paper")).parameters())
    assert abs(count / 2.64e6 - 1) < 0.02
    assert sum(p.numel() for p in build(ModelConfig.of("economy")).parameters()) < 0.31e6


@pytest.mark.parametrize("routes", [False, True])
def test_the_paper_has_no_normalisation_and_eight_heads(routes: bool) -> None:
    network = build(ModelConfig.of("paper", routes=routes))
    kinds = {type(module).__name__ for module in network.modules()}
    assert kinds == {"Paper", "Linear", "ModuleList", "Attention"}
    assert network.encoder.in_features == (6 if routes else 5)
    assert [layer.heads for layer in network.aggregate] == [8] * 6
    assert network.first.out_features + network.current.out_features == 16 * 128


def naive_attention(layer: Attention, x: np.ndarray, source: np.ndarray) -> np.ndarray:
    """Equation (Attn) for every head and query in turn, then output, feed-forward and residuals."""
    q, kv, o = (layer.get_parameter(f"{n}.weight").numpy() for n in ("q", "kv", "o"))
    p, d = x.shape
    hd = d // layer.heads
    mixed = np.zeros((p, d))
    for h in range(layer.heads):
        part = slice(h * hd, (h + 1) * hd)
        for i in range(p):
            query = q[part] @ x[i]
            scores = [query @ (kv[:d][part] @ s) / math.sqrt(hd) for s in source]
            shares = np.exp(scores) / np.exp(scores).sum()
            for share, s in zip(shares, source, strict=True):
                mixed[i, part] += share * (kv[d:][part] @ s)
    x = x + mixed @ o.T
    up, down = layer.up, layer.down
    hidden = np.maximum(x @ up.weight.numpy().T + up.bias.numpy(), 0)
    return x + hidden @ down.weight.numpy().T + down.bias.numpy()


def test_attention_modules_agree_with_a_naive_loop() -> None:
    torch.manual_seed(0)
    layer = Attention(32, 8, 64).double().requires_grad_(False)
    x, source = torch.randn(1, 5, 32).double(), torch.randn(1, 7, 32).double()
    expected = naive_attention(layer, x[0].numpy(), source[0].numpy())
    np.testing.assert_allclose(layer(x, source, None)[0].numpy(), expected, atol=1e-9)
    pad = torch.zeros(1, 9, dtype=torch.bool)
    pad[0, 7:] = True
    wide = torch.cat([source, torch.randn(1, 2, 32).double()], 1)
    np.testing.assert_allclose(layer(x, wide, pad)[0].numpy(), expected, atol=1e-9)


def test_blocks_agree_with_a_naive_loop() -> None:
    torch.manual_seed(0)
    block = Block(32, 2, 64).double().requires_grad_(False)
    for p in block.parameters():
        p.add_(0.1 * torch.randn_like(p))
    x = torch.randn(1, 6, 32).double()

    def norm(a: np.ndarray, gain: torch.Tensor) -> np.ndarray:
        eps = torch.finfo(torch.float64).eps
        return a / np.sqrt((a**2).mean(-1, keepdims=True) + eps) * gain.numpy()

    a = x[0].numpy()
    q, k, v = np.split(norm(a, block.n1.weight) @ block.qkv.weight.numpy().T, 3, axis=-1)
    mixed = np.zeros_like(a)
    for h in range(2):
        part = slice(16 * h, 16 * h + 16)
        for i in range(6):
            scores = np.array([q[i, part] @ k[j, part] / 4.0 for j in range(6)])
            shares = np.exp(scores) / np.exp(scores).sum()
            mixed[i, part] = sum(shares[j] * v[j, part] for j in range(6))
    a = a + mixed @ block.o.weight.numpy().T
    hidden = norm(a, block.n2.weight) @ block.up.weight.numpy().T + block.up.bias.numpy()
    a = a + np.maximum(hidden, 0) @ block.down.weight.numpy().T + block.down.bias.numpy()
    np.testing.assert_allclose(block(x, None)[0].numpy(), a, atol=1e-9)


def test_attend_is_softmax_of_products() -> None:
    q = torch.tensor([[[1.0, 0.0]]])
    k = torch.tensor([[[math.log(3) * math.sqrt(2), 0.0], [0.0, 5.0]]])
    v = torch.tensor([[[4.0, 0.0], [0.0, 8.0]]])
    assert attend(q, k, v, 1, None).tolist() == [[[pytest.approx(3.0), pytest.approx(2.0)]]]


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("routes", [False, True])
def test_a_batch_equals_its_rows_and_padding_is_nothing(preset: str, routes: bool) -> None:
    config = ModelConfig.of(preset, routes=routes)
    network = stirred(config)
    state = some_state(config)
    together = network.logits(state)
    assert together.shape == (5, 9, 2 if routes else 1)
    for b, count in enumerate(state.count):
        row = slice(b, b + 1)
        nodes, direct = state.nodes[row, :count], state.direct[row, :count]
        alone = network.logits(State(nodes, state.context[row], state.count[row], direct))
        np.testing.assert_allclose(together[b, :count], alone[0], rtol=1e-5, atol=2e-5)
        assert np.isneginf(together[b, count:]).all()


def test_a_fresh_economical_network_prefers_the_nearest() -> None:
    config = ModelConfig.of("economy")
    torch.manual_seed(1)
    network = build(config)
    with torch.no_grad():
        network.score.weight.zero_()
    state = some_state(config)
    nearest = np.where(np.arange(9) < state.count[:, None], state.nodes[..., 6], np.inf).argmin(1)
    assert (network.logits(state)[..., 0].argmax(1) == nearest).all()


def test_cuda_equals_cpu() -> None:
    if not torch.cuda.is_available():
        pytest.skip("no GPU here")
    for preset in PRESETS:
        config = ModelConfig.of(preset)
        network, state = stirred(config), some_state(config)
        expected = network.logits(state)
        found = network.to("cuda").logits(state)
        inside = np.isfinite(expected)
        np.testing.assert_allclose(found[inside], expected[inside], atol=1e-3)


# --- files ---------------------------------------------------------------------------------------


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.safetensors"
    config = ModelConfig.of("economy", d=16, layers=1, heads=1, hidden=16)
    save_model(stirred(config), path, {"hours": 0})
    return path


@pytest.mark.parametrize("preset", PRESETS)
def test_saved_weights_come_back(preset: str, tmp_path: Path) -> None:
    config = ModelConfig.of(preset)
    network = stirred(config)
    digest = save_model(network, tmp_path / "w.safetensors")
    again = load_model(tmp_path / "w.safetensors", sha256=digest)
    assert again.config == config
    for name, tensor in network.state_dict().items():
        assert torch.equal(tensor, again.state_dict()[name])


def test_the_format_is_safetensors(saved: Path) -> None:
    library = pytest.importorskip("safetensors.numpy", reason="the library is the oracle here")
    _, tensors, _ = weights.read_weights(saved)
    theirs = library.load_file(saved)
    assert set(theirs) == set(tensors)
    for name, tensor in theirs.items():
        np.testing.assert_array_equal(tensor, tensors[name])
    ours, metadata = weights.decode(library.save(tensors, {"a": "b"}))
    assert metadata == {"a": "b"}
    for name, tensor in ours.items():
        np.testing.assert_array_equal(tensor, tensors[name])


def test_every_flipped_byte_is_noticed(saved: Path) -> None:
    data = saved.read_bytes()
    header = 8 + int.from_bytes(data[:8], "little")
    rng = np.random.default_rng(0)
    times = cases(60, 500)
    places = [*range(8), *rng.integers(8, header, times), *rng.integers(header, len(data), times)]
    for place in places:
        damaged = bytearray(data)
        damaged[place] ^= 0x11
        saved.write_bytes(damaged)
        try:
            load_model(saved)
        except ModelError:
            continue
        # only the name of the hash of the words may: without that hash it is an older file
        before, after = (json.loads(d[8:header])["__metadata__"] for d in (data, damaged))
        assert {k for k in before if before[k] != after.get(k)} <= {"words"}


def test_a_truncated_file_is_refused(saved: Path) -> None:
    data = saved.read_bytes()
    for size in (0, 4, 8, 20, len(data) // 2, len(data) - 1):
        saved.write_bytes(data[:size])
        with pytest.raises(ModelError):
            load_model(saved)
    saved.write_bytes(data + b"\0")
    with pytest.raises(ModelError):
        load_model(saved)


def test_a_pickle_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    path.write_bytes(pickle.dumps({"net": np.zeros(4)}))
    with pytest.raises(ModelError, match="safetensors"):
        load_model(path)
    torch.save({"net": torch.zeros(4)}, path)
    with pytest.raises(ModelError, match="safetensors"):
        load_model(path)


def test_a_wrong_configuration_is_refused(saved: Path) -> None:
    config, tensors, _ = weights.read_weights(saved)
    other = ModelConfig.of("economy", d=16, layers=2, heads=1, hidden=16)
    weights.write_weights(saved, other, tensors)
    with pytest.raises(ModelError, match="do not belong"):
        load_model(saved)
    wide = ModelConfig.of("economy", d=16, layers=1, heads=1, hidden=32)
    weights.write_weights(saved, wide, tensors)
    with pytest.raises(ModelError, match="shape"):
        load_model(saved)
    tensors["nearness"] = np.array(np.nan, np.float32)
    weights.write_weights(saved, config, tensors)
    with pytest.raises(ModelError, match="finite"):
        load_model(saved)
    for text in ("{}", '{"preset": "economy"}', "[]", '{"preset": "other"}', "x"):
        good, _ = weights.decode(weights.encode({}, {}))
        digest = weights._digest(good)
        meta = {"format": weights.FORMAT, "config": text, "card": "{}", "sha256": digest}
        saved.write_bytes(weights.encode(good, meta))
        with pytest.raises(ModelError, match="configuration"):
            load_model(saved)


def test_another_version_is_refused(saved: Path) -> None:
    _, tensors, _ = weights.read_weights(saved)
    _, metadata = weights.decode(saved.read_bytes())
    for version in ("drhg-0", "drhg-2", "", "pt"):
        saved.write_bytes(weights.encode(tensors, metadata | {"format": version}))
        with pytest.raises(ModelError, match="format drhg-1 expected"):
            load_model(saved)


def test_another_file_than_the_manifest_says_is_refused(saved: Path, tmp_path: Path) -> None:
    box = tmp_path / "box"
    weights.release("tiny", saved, folder=box)
    path, digest = weights.shipped("tiny", box)
    assert load_model(path, sha256=digest).config.d == 16
    save_model(stirred(ModelConfig.of("economy", d=16, layers=1, heads=1, hidden=16), 1), path)
    with pytest.raises(ModelError, match="manifest"):
        load_model(path, sha256=digest)
    with pytest.raises(ModelError, match="no weights named"):
        weights.shipped("other", box)


def test_what_is_in_the_box_is_whole() -> None:
    for name in weights.manifest():
        path, digest = weights.shipped(name)
        load_model(path, sha256=digest)


def test_half_precision_is_widened(saved: Path) -> None:
    config, tensors, _ = weights.read_weights(saved)
    half = {name: tensor.astype(np.float16) for name, tensor in tensors.items()}
    weights.write_weights(saved, config, half)
    network = load_model(saved)
    assert all(p.dtype == torch.float32 for p in network.parameters())


@pytest.mark.parametrize(
    "changes",
    [{"d": 0}, {"heads": 7}, {"layers": "6"}, {"d": 1 << 20}, {"from_first": -1}, {"x": 1}],
)
def test_impossible_configurations_are_refused(changes: dict[str, object]) -> None:
    with pytest.raises(ModelError):
        ModelConfig.of("paper", **changes)

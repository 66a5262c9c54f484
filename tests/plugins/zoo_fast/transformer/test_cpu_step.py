"""Decoding steps with packed weights against the reference step."""

import pytest
import torch
from torch import nn

import zoo
from zoo.plugin import Declined, Memory
from zoo_fast.device.packed_linear import PackedWeights
from zoo_fast.transformer.cpu_step import PackedDecoding
from zoo_fast.transformer.fused_step import why_not_blocks

ATTENTION = {"scorer": "scaled-dot", "align": "soft", "heads": 2, "head_dim": 32}
PARTS = {
    "post-norm, source": {"position": "sinusoidal", "output": {"tied": True}},
    "layer before the logits": {"output": {"tied": True, "transform": {"activation": "relu"}}},
    "no bias of keys": {"position": "sinusoidal", "attention": {**ATTENTION, "bias": "qvo"}},
    "pre-norm, grouped heads, rotary": {
        "position": "rotary",
        "norm": {"kind": "rms", "place": "pre"},
        "attention": {**ATTENTION, "kv_heads": 1, "bias": False},
        "feed_forward": {"hidden": 6, "gated": True, "bias": False},
    },
    "norms of outputs, of queries and of keys": {
        "position": {"type": "rotary", "part": 0.5, "scaling": {"type": "linear", "factor": 2.0}},
        "norm": {"place": "output"},
        "attention": {**ATTENTION, "kv_heads": 1, "norm": {"over": "all"}},
    },
    "windows, and layers without positions": {
        "position": "rotary",
        "pattern": [{"window": 2}, {"no_position": True}],
    },
    "norms on both sides, of each head": {
        "norm": {"place": "both", "kind": "rms"},
        "output": {"cap": 2.0},
        "attention": {**ATTENTION, "norm": {"kind": "layer"}},
    },
    "weights plus one, windows with other positions": {
        "position": {"type": "rotary", "theta": 1000000.0},
        "norm": {"place": "both", "kind": "rms-plus-one"},
        "attention": {**ATTENTION, "kv_heads": 1, "norm": {"kind": "rms-plus-one"}},
        "pattern": [{"window": 2, "position": {"type": "rotary", "theta": 100.0}}, {}],
    },
}


@pytest.fixture(autouse=True)
def mkldnn():
    """torch disables oneDNN after a product in bfloat16 on CPUs without its instructions."""
    before = torch.backends.mkldnn.enabled
    torch._C._set_mkldnn_enabled(True)
    yield
    torch._C._set_mkldnn_enabled(before)


def build(parts):
    torch.manual_seed(0)
    block = {"type": "transformer", "layers": 2, "attention": ATTENTION}
    block |= {"feed_forward": {"hidden": 6}}
    source = {"type": "token", "vocab": 9, "dim": 64}
    model = {"type": "seq2seq", "source": source, "encoder": block, "decoder": {**block, **parts}}
    composed = zoo.compose({"zoo": 1, "name": "test", "model": model}).eval()
    for parameter in composed.decoder.parameters():
        parameter.data.add_(0.1 * torch.randn_like(parameter))
    return zoo.accelerate(composed)


@pytest.fixture
def lean_steps(monkeypatch):
    """Count the steps that do not use the reference path."""
    calls = []
    step = PackedDecoding.step

    def count(*args):
        output = step(*args)
        calls.extend([1] if not isinstance(output, Declined) else [])
        return output

    monkeypatch.setattr(PackedDecoding, "step", count)
    return calls


@torch.no_grad()
def decode(decoder, memory: Memory, packed: PackedWeights | None):
    tokens = torch.randint(1, 9, (3, 5), generator=torch.Generator().manual_seed(0))
    state, logits = decoder.start(memory, steps=5), []
    for t in range(5):
        if packed is None:
            found, state = decoder.step(tokens[:, t, None], state)
        else:
            with packed.use():
                found, state = decoder.step(tokens[:, t, None], state)
        logits.append(found)
        state = state.reorder(torch.tensor([1, 2, 0])) if t == 2 else state
    return torch.cat(logits, dim=1)


@pytest.mark.parametrize("parts", PARTS.values(), ids=PARTS)
def test_logits_equal_the_reference_step(parts, lean_steps):
    model = build(parts)
    memory = model.encode(torch.tensor([[3, 4, 5], [6, 7, 0], [8, 0, 0]]))
    expected = decode(model.decoder, memory, None)

    found = decode(model.decoder, memory, PackedWeights())

    torch.testing.assert_close(found, expected)
    assert len(lean_steps) == 5


@pytest.mark.parametrize("head_dim", [6, 16, 48, 80, 112])
def test_heads_of_any_width_equal_the_reference_step(head_dim, lean_steps):
    attention = {**ATTENTION, "head_dim": head_dim, "kv_heads": 1}
    test_logits_equal_the_reference_step({"position": "rotary", "attention": attention}, lean_steps)


@pytest.mark.parametrize("sublayers", ["parallel", "parallel-shared"])
def test_parallel_sublayers_equal_the_reference_step(sublayers, lean_steps):
    decoder = {"type": "transformer", "layers": 2, "attention": ATTENTION, "sublayers": sublayers}
    decoder |= {"feed_forward": {"hidden": 6}, "norm": {"place": "pre"}}
    model = {"type": "language-model", "embedding": {"type": "token", "vocab": 9, "dim": 64}}
    spec = {"zoo": 1, "name": "test", "model": {**model, "decoder": decoder}}
    built, memory = zoo.accelerate(zoo.compose(spec).eval()).decoder, Memory.empty(3)
    expected = decode(built, memory, None)

    torch.testing.assert_close(decode(built, memory, PackedWeights()), expected)
    assert len(lean_steps) == 5


@pytest.mark.parametrize(
    "position", [{"type": "disentangled", "max_distance": 3}, {"type": "gated", "position": "t5"}]
)
def test_a_bias_of_queries_and_keys_uses_the_reference_step(position, lean_steps):
    model = build({"position": position})
    memory = model.encode(torch.tensor([[3, 4], [6, 7], [8, 0]]))
    expected = decode(model.decoder, memory, None)

    torch.testing.assert_close(decode(model.decoder, memory, PackedWeights()), expected)

    assert not lean_steps
    reason = "the attention has a bias that depends on its queries or keys"
    assert why_not_blocks(model.decoder) == reason


def test_a_bias_of_each_layer_uses_the_reference_step(lean_steps):
    model = build({"pattern": [{"position": "t5"}]})
    memory = model.encode(torch.tensor([[3, 4, 5], [6, 7, 0], [8, 0, 0]]))
    expected = decode(model.decoder, memory, None)

    assert torch.equal(decode(model.decoder, memory, PackedWeights()), expected)
    assert not lean_steps


@pytest.mark.parametrize(
    "parts",
    [
        {"dropout": 0.5},
        {"attention": {**ATTENTION, "align": {"type": "soft", "dropout": 0.5}}},
        {"cross": {**ATTENTION, "align": {"type": "soft", "dropout": 0.5}}},
    ],
    ids=["of outputs", "of weights", "of weights of the source"],
)
def test_monte_carlo_dropout_uses_the_reference_step(parts, lean_steps):
    model = build(parts)
    memory = model.encode(torch.tensor([[3, 4], [6, 7], [8, 0]]))
    for block in model.decoder.blocks:
        for part in block.modules():
            part.train(isinstance(part, nn.Dropout))

    first, second = (decode(model.decoder, memory, PackedWeights()) for _ in range(2))

    assert not torch.equal(first, second)
    assert not lean_steps


def test_hooks_use_the_reference_step(lean_steps):
    model = build({})
    memory = model.encode(torch.tensor([[3, 4], [6, 7], [8, 0]]))
    calls = []
    model.decoder.blocks[1].attention.out.register_forward_hook(lambda *args: calls.append(1))

    decode(model.decoder, memory, PackedWeights())

    assert not lean_steps
    assert len(calls) == 5

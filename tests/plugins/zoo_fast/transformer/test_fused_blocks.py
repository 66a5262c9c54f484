"""Blocks with residual sums and norms in kernels, against the reference path; relative errors below
1e-4 in float32."""

from itertools import pairwise

import pytest
import torch

import zoo
from zoo.plugin import Mask
from zoo_fast.transformer.fused_blocks import DecoderBlocks, EncoderBlocks, FusedBlock
from zoo_positions.disentangled import Disentangled
from zoo_positions.rotary import Rotary
from zoo_transformer.layer_scale import LayerScale

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.fixture(autouse=True)
def interpreter(monkeypatch):
    pytest.importorskip("triton")
    monkeypatch.setenv("ZOO_TRITON", "interpret")
    with torch.device(DEVICE):
        yield


def make_model(place="post", kind="layer"):
    torch.manual_seed(0)
    norm = {"norm": {"place": place, "kind": kind}}
    spec = {"extends": "transformer-tiny", "model": {"encoder": norm, "decoder": norm}}
    return zoo.accelerate(zoo.compose(spec).to(DEVICE))


def test_hooks_of_the_norm_run():
    block, calls = make_model().encoder.blocks[0], []
    block.attention_norm.register_forward_hook(lambda *_: calls.append(1))
    block(torch.zeros(1, 2, block.dim), Mask(), position=None)
    assert calls == [1]


@pytest.mark.parametrize(("place", "kind"), [("post", "layer"), ("pre", "layer"), ("pre", "rms")])
@pytest.mark.parametrize("name", ["encoder", "decoder"])
def test_a_block_equals_its_reference_path(name, place, kind, monkeypatch):
    """With all kernels of training, in float32 without dropout."""
    monkeypatch.setattr("zoo_fast.attention.joint_linear.replaces_calls", lambda *_: True)
    monkeypatch.setattr("zoo_fast.attention.projections.replaces_calls", lambda *_: True)
    part = getattr(make_model(place, kind), name)
    block, x = part.blocks[0], torch.randn(2, 3, part.blocks[0].dim, requires_grad=True)
    memory = torch.randn(2, 4, block.dim) if name == "decoder" else None
    leaves, upper = [x, *block.parameters()], torch.randn(2, 3, block.dim)
    results = []
    for switch in ("on", "off"):
        monkeypatch.setenv("ZOO_FAST", switch)
        out = block(x, Mask(causal=True), position=None, memory=memory, memory_mask=Mask())
        results.append([out, *torch.autograd.grad(out, leaves, upper)])
    torch.testing.assert_close(*results, rtol=1e-4, atol=1e-4)


def test_options_of_a_block_are_not_ignored(monkeypatch):
    """Window, own position, norms of queries and keys, a bias of them, with all kernels."""
    monkeypatch.setattr("zoo_fast.attention.joint_linear.replaces_calls", lambda *_: True)
    monkeypatch.setattr("zoo_fast.attention.projections.replaces_calls", lambda *_: True)
    block = make_model().encoder.blocks[0]
    attention, x = block.attention, torch.randn(2, 4, block.dim)

    def outputs():
        results = []
        for switch in ("on", "off"):
            monkeypatch.setenv("ZOO_FAST", switch)
            results.append(block(x, Mask(causal=True), position=None))
        torch.testing.assert_close(*results, rtol=1e-4, atol=1e-4)
        return results[0]

    before = [outputs()]
    block.window = 2
    before.append(outputs())
    block.position = Rotary(head_dim=attention.head_dim)
    before.append(outputs())
    for name in ("query_norm", "key_norm"):
        setattr(attention, name, torch.nn.RMSNorm(attention.heads * attention.head_dim))
    before.append(outputs())
    widths = {"dim": block.dim, "heads": attention.heads, "head_dim": attention.head_dim}
    block.position = Disentangled(**widths, max_distance=3)
    torch.nn.init.normal_(block.position.table.weight)
    attention.set_position(block.position)
    before.append(outputs())
    for first, second in pairwise(before):
        assert not torch.allclose(first, second, atol=1e-3)


@pytest.mark.parametrize(("place", "kind"), [("post", "layer"), ("pre", "layer"), ("pre", "rms")])
def test_a_training_step_equals_the_reference_path(place, kind, monkeypatch):
    """With all kernels of training: encoder and decoder pass the output of a block on twice, and
    the memories of all blocks are one product."""
    for module in ("joint_linear", "joint_memory", "projections"):
        monkeypatch.setattr(f"zoo_fast.attention.{module}.replaces_calls", lambda *_: True)
    model = make_model(place, kind).eval()
    parameters = list(model.parameters())
    source, targets = torch.tensor([[3, 4, 5], [6, 0, 0]]), torch.tensor([[1, 2], [3, 4]])
    results = []
    for switch in ("on", "off"):
        monkeypatch.setenv("ZOO_FAST", switch)
        logits = model.decoder(targets, model.encode(source))
        grads = torch.autograd.grad(logits.square().sum(), parameters, allow_unused=True)
        results.append([logits, *(grad for grad in grads if grad is not None)])
    torch.testing.assert_close(*results, rtol=1e-3, atol=1e-3)


def test_reasons():
    model, device = make_model(), torch.device(DEVICE)
    assert EncoderBlocks().why_not(model.encoder, device) is None
    assert DecoderBlocks().why_not(model.decoder, device) is None
    block = model.encoder.blocks[0]
    for place in ("output", "both"):
        block.place = place
        reason = f"the place of the norms is '{place}', not 'pre' or 'post'"
        assert FusedBlock().why_not(block, device) == reason
    block.place, block.sublayers = "pre", "parallel"
    reason = "the sublayers are 'parallel', not 'sequential'"
    assert FusedBlock().why_not(block, device) == reason
    block.place, block.sublayers = "post", "sequential"
    block.attention_scale = LayerScale(block.dim, 1.0)
    reason = "the sublayers have a layer scale"
    assert EncoderBlocks().why_not(model.encoder, device) == reason
    block.attention_scale, block.attention_norm = None, torch.nn.RMSNorm(block.dim)
    reason = "the norm is neither RMSNorm nor LayerNorm with weight and bias"
    assert EncoderBlocks().why_not(model.encoder, device) == reason

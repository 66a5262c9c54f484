"""Adapters of accelerated models: the results of the reference path, in each mode."""

import copy

import pytest
import torch

import zoo

SPECS = [
    "bahdanau-reversal",
    "bert-tiny",
    "gat-tiny",
    "gpt2-tiny",
    "llama-tiny",
    "skip-gram-tiny",
    "transformer-tiny",
]

GENERATING = ["bahdanau-reversal", "gpt2-tiny", "llama-tiny", "transformer-tiny"]


DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


def _models(spec, *adapters, device="cpu"):
    """Return an accelerated and a plain model with the same trained adapters."""
    model = zoo.compose(spec).eval()
    for index, adapter in enumerate(adapters):
        zoo.adapt(model, adapter, name=f"a{index}")
    zoo.use_adapters(model, *(f"a{index}" for index in range(len(adapters))))
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.adapters.parameters():
            parameter += 0.2 * torch.randn(parameter.shape, generator=generator)
    model.to(device)
    return (zoo.accelerate(copy.deepcopy(model), enabled=fast) for fast in (True, False))


def _run(model, batch):
    outputs = model(batch)
    gradient = None
    if torch.is_grad_enabled():
        outputs.logits.square().mean().backward()
        gradient = torch.cat([p.grad.flatten() for p in model.adapters.parameters()])
    return outputs.logits, gradient


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("spec", SPECS)
def test_accelerated_outputs_and_gradients_contain_the_adapters(spec, grad, device):
    fast, plain = _models(spec, {"type": "lora", "rank": 2, "targets": ["*"]}, device=device)
    batch = plain.example(3, 6, torch.Generator().manual_seed(0))
    with torch.set_grad_enabled(grad):
        found, expected = _run(fast, batch), _run(plain, batch)
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
        with zoo.without_adapters(fast):
            assert not torch.allclose(fast(batch).logits, expected[0], atol=1e-2)


@pytest.mark.parametrize(
    "spec", ["bahdanau-reversal", "gpt2-tiny", "llama-tiny", "transformer-tiny"]
)
def test_accelerated_generation_contains_the_adapters(spec):
    fast, plain = _models(spec, {"type": "lora", "rank": 2, "alpha": 40, "targets": ["*"]})
    batch = plain.example(3, 4, torch.Generator().manual_seed(0))
    sampler = zoo.load_spec(spec).sections.sampler.build()
    runs = [model.generate(batch, sampler, max_length=8) for model in (fast, plain)]
    assert torch.equal(runs[0].tokens, runs[1].tokens)
    torch.testing.assert_close(runs[0].scores, runs[1].scores, rtol=1e-4, atol=1e-4)
    with zoo.without_adapters(fast):
        assert not torch.equal(fast.generate(batch, sampler, max_length=8).scores, runs[0].scores)


def test_fused_attention_is_used_with_adapted_projections():
    from zoo.acceleration.conditions import why_not
    from zoo_fast.attention.fused_attention import InnerProductAttention

    (fast, _) = _models("gpt2-tiny", {"type": "lora", "targets": ["*.{query,value}"]})
    attention = fast.decoder.blocks[0].attention
    assert why_not(InnerProductAttention(), attention, torch.device("cpu")) is None

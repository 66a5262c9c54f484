"""Every tiny spec of a Transformer runs in bfloat16, on the CPU, near its float32 self."""

import pytest
import torch

import zoo
from zoo import recording

TINY = [
    "transformer-tiny",
    "bert-tiny",
    "gpt2-tiny",
    "llama-tiny",
    "vit-tiny",
    "sketch-tiny",
]


def both(spec: str) -> tuple[torch.Tensor, torch.Tensor, zoo.Model]:
    """The logits in float32 and in bfloat16, and the model in bfloat16."""
    wide, short = zoo.compose(spec), zoo.compose(spec, dtype="bfloat16")
    batch = wide.example(3, 6, torch.Generator().manual_seed(1))
    halved = {k: v.bfloat16() if v.is_floating_point() else v for k, v in batch.items()}
    return wide(batch).logits, short(halved).logits, short


@pytest.mark.parametrize("spec", TINY)
def test_forward_and_backward_run_near_float32(spec):
    expected, logits, model = both(spec)

    logits.float().square().mean().backward()

    assert logits.dtype is torch.bfloat16
    assert logits.isfinite().all()
    assert (logits.float() - expected).norm() < 0.1 * expected.norm()
    for name, parameter in model.named_parameters():
        assert parameter.grad.dtype is torch.bfloat16, name
        assert parameter.grad.isfinite().all(), name


@pytest.mark.parametrize("spec", TINY)
def test_the_reference_path_runs_too(spec):
    model = zoo.compose(spec, dtype="bfloat16")
    batch = model.example(3, 6, torch.Generator().manual_seed(1))
    fused = model(batch).logits

    with recording(model) as log:
        reference = model(batch).logits

    assert all(weights[0].dtype is torch.bfloat16 for weights in log.values())
    assert (reference.float() - fused.float()).norm() < 0.1 * fused.float().norm()


@pytest.mark.parametrize("position", ["sinusoidal", "rotary", "alibi", "t5"])
def test_every_position_steps_in_bfloat16_as_it_is_forced(position):
    model = zoo.compose(
        "gpt2-tiny", dtype="bfloat16", overrides=["model.decoder.position=" + position]
    )
    decoder = model.decoder
    tokens = torch.tensor([[1, 4, 2, 6], [5, 5, 1, 2]])
    states = torch.zeros(2, 0, 1, dtype=torch.bfloat16)
    nothing = zoo.plugin.Memory(states, torch.zeros(2, 0, dtype=torch.bool), states[..., 0])
    whole = decoder(tokens, nothing)

    with torch.no_grad():
        state, pieces = decoder.start(nothing, steps=4), []
        for token in tokens.split(1, dim=1):
            logits, state = decoder.step(token, state)
            pieces.append(logits)

    assert whole.dtype is torch.bfloat16
    difference = torch.cat(pieces, dim=1).float() - whole.float()
    assert difference.norm() < 0.05 * whole.float().norm()

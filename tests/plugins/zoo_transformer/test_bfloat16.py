"""Transformer specs in bfloat16 on the CPU, compared with float32."""

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


# torch warns once on CPUs without bfloat16 instructions and uses another kernel.
pytestmark = pytest.mark.filterwarnings("ignore:mkldnn_matmul failed:UserWarning")


def compute_logits(spec: str) -> tuple[torch.Tensor, torch.Tensor, zoo.Model]:
    """Return the logits in float32 and in bfloat16, and the model in bfloat16."""
    full, half = zoo.compose(spec), zoo.compose(spec, dtype="bfloat16")
    batch = full.example(3, 6, torch.Generator().manual_seed(1))
    half_batch = {k: v.bfloat16() if v.is_floating_point() else v for k, v in batch.items()}
    return full(batch).logits, half(half_batch).logits, half


@pytest.mark.parametrize("spec", TINY)
def test_forward_and_backward_are_close_to_float32(spec):
    expected, logits, model = compute_logits(spec)

    logits.float().square().mean().backward()

    assert logits.dtype is torch.bfloat16
    assert logits.isfinite().all()
    assert (logits.float() - expected).norm() < 0.1 * expected.norm()
    for name, parameter in model.named_parameters():
        assert parameter.grad.dtype is torch.bfloat16, name
        assert parameter.grad.isfinite().all(), name


@pytest.mark.parametrize("spec", TINY)
def test_reference_path_matches_fused_path(spec):
    model = zoo.compose(spec, dtype="bfloat16")
    batch = model.example(3, 6, torch.Generator().manual_seed(1))
    fused = model(batch).logits

    with recording(model) as log:
        reference = model(batch).logits

    assert all(weights[0].dtype is torch.bfloat16 for weights in log.values())
    assert (reference.float() - fused.float()).norm() < 0.1 * fused.float().norm()


@pytest.mark.parametrize("position", ["sinusoidal", "rotary", "alibi", "t5"])
def test_bfloat16_steps_match_forward_with_every_position(position):
    model = zoo.compose(
        "gpt2-tiny", dtype="bfloat16", overrides=["model.decoder.position=" + position]
    )
    decoder = model.decoder
    tokens = torch.tensor([[1, 4, 2, 6], [5, 5, 1, 2]])
    memory = zoo.plugin.Memory.empty(2, dtype=torch.bfloat16)
    expected = decoder(tokens, memory)

    with torch.no_grad():
        state, pieces = decoder.start(memory, steps=4), []
        for token in tokens.split(1, dim=1):
            logits, state = decoder.step(token, state)
            pieces.append(logits)

    assert expected.dtype is torch.bfloat16
    difference = torch.cat(pieces, dim=1).float() - expected.float()
    assert difference.norm() < 0.05 * expected.float().norm()

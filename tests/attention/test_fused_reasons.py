import pytest
import torch
from attention_kit import build, randn
from torch import nn

from zoo import recording
from zoo.device import triton_support
from zoo.plugin import Blueprint, FromParent, RecordsAttention, Scorer
from zoo_alignment.sparsemax import Sparsemax
from zoo_gat.gatv2 import GatV2
from zoo_transformer.scaled_dot import ScaledDot

CPU = torch.device("cpu")


class GpuOnly(ScaledDot):
    """Scaled dot whose kernel needs a GPU and has no dropout."""

    name = "gpu-only"

    def why_not_fused(self, device: torch.device, *, dropout_p: float = 0.0) -> str | None:
        if device.type != "cuda":
            return "the kernel needs a GPU"
        return "the kernel has no dropout" if dropout_p else None


class Own(ScaledDot):
    """Scaled dot with a parameter, so that each head has its own scorer."""

    name = "own"

    def __init__(self, *, query_dim: FromParent[int], key_dim: FromParent[int]) -> None:
        super().__init__(query_dim=query_dim, key_dim=key_dim)
        self.gain = nn.Parameter(torch.ones(()))


@pytest.mark.parametrize("scorer", ["dot", "scaled-dot", "general"])
def test_inner_products_are_fused(scorer):
    assert build(scorer).why_not_fused(CPU) is None


@pytest.mark.parametrize(
    ("form", "reason"),
    [
        ({"scorer": "concat"}, "the device is 'cpu', not 'cuda'"),
        ({"scorer": Blueprint.of(GatV2)}, "scorer 'gatv2' has no fused path"),
        ({"scorer": Blueprint.of(Own), "heads": 2}, "each of the 2 heads has its own scorer 'own'"),
        ({"align": Blueprint.of(Sparsemax)}, "alignment 'sparsemax' is not a softmax"),
    ],
)
def test_the_reason_names_the_part(form, reason, monkeypatch):
    monkeypatch.setattr(triton_support, "_is_installed", lambda: True)
    assert build(**form).why_not_fused(CPU) == reason


def test_recording_and_hooks_are_reasons():
    attention = build(heads=2)
    with recording(attention):
        assert attention.why_not_fused(CPU) == "the attention weights are recorded"
    handle = attention.align.register_forward_hook(lambda *_: None)
    assert attention.why_not_fused(CPU) == "the alignment has module hooks"
    handle.remove()
    attention.scorers[0].register_forward_hook(lambda *_: None)
    assert attention.why_not_fused(CPU) == "the scorer has module hooks"


def test_a_scorer_decides_by_device_and_dropout():
    attention = build(Blueprint.of(GpuOnly))
    states = randn(2, 3, 6)

    assert attention.why_not_fused(CPU) == "the kernel needs a GPU"
    assert attention.why_not_fused(torch.device("cuda")) is None
    scorer: Scorer = attention.scorers.first
    assert scorer.why_not_fused(torch.device("cuda"), dropout_p=0.1) == "the kernel has no dropout"
    with recording(attention):
        reference = attention(states, states)
    assert torch.equal(attention(states, states), reference)


def test_an_attention_without_a_fused_path_is_named():
    assert RecordsAttention().why_not_fused(CPU) == "RecordsAttention has no fused path"

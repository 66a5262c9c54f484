"""The description of the path of an attention, and the conditions of Triton kernels."""

import pytest
import torch

from zoo.attention import Attention, RecordsAttention
from zoo.interfaces import triton_support
from zoo.plugin import Blueprint, why_not_triton, why_not_triton_on
from zoo_alignment.soft import Soft
from zoo_alignment.sparsemax import Sparsemax
from zoo_bahdanau.additive import Additive
from zoo_gat.edge_attention import EdgeAttention
from zoo_gat.gat import Gat
from zoo_gat.gatv2 import GatV2
from zoo_luong.general import General
from zoo_transformer.scaled_dot import ScaledDot


@pytest.fixture(autouse=True)
def installed(monkeypatch):
    """Paths do not depend on whether Triton is installed on this machine."""
    monkeypatch.setattr(triton_support, "_is_installed", lambda: True)
    monkeypatch.delenv("ZOO_TRITON", raising=False)


def path(scorer, device="cpu", align=None, **params):
    attention = Attention(
        query_dim=4,
        key_dim=4,
        scorer=Blueprint.of(scorer),
        align=align or Blueprint.of(Soft),
        **params,
    )
    training = attention.align.training
    description = attention.describe_path(device)
    assert attention.align.training == training
    return description


def test_paths_of_scorers_with_a_fused_path():
    assert path(ScaledDot, heads=2) == "fused"
    assert path(ScaledDot, align=Blueprint.of(Sparsemax)) == (
        "reference: alignment 'sparsemax' is not a softmax"
    )
    assert path(ScaledDot, align=Blueprint.of(Soft, dropout=0.1)) == (
        "fused; reference in training: alignment 'soft' has dropout"
    )
    assert path(General, heads=2) == "reference: each head has its own scorer 'general'"
    assert path(GatV2) == "reference: scorer 'gatv2' has no kernel"


def test_paths_of_additive_scorers():
    assert path(Additive, "cuda") == "Triton: additive scores"
    assert path(Additive) == "chunks: no Triton kernel, because the device is 'cpu', not 'cuda'"
    assert path(Additive, "mps").startswith("reference: no Triton kernel")


def test_paths_over_edges():
    def edge_path(scorer, device="cuda", **params):
        layer = EdgeAttention(
            input_dim=4, head_dim=2, heads=2, merge="mean", scorer=Blueprint.of(scorer), **params
        )
        return layer.describe_path(device)

    assert edge_path(Gat) == "Triton"
    assert edge_path(Gat, dropout=0.6) == "Triton; reference in training: weights have dropout"
    assert edge_path(Gat, "cpu") == "reference: the device is 'cpu', not 'cuda'"
    assert edge_path(GatV2) == "reference: scorer 'gatv2' has no kernel for edges"
    assert RecordsAttention().describe_path("cuda") == "reference"


def test_reasons_against_triton(monkeypatch):
    values = torch.zeros(1)
    assert why_not_triton(values) == "the device is 'cpu', not 'cuda'"
    assert why_not_triton_on("cuda") is None
    monkeypatch.setenv("ZOO_TRITON", "interpret")
    assert why_not_triton(values, values.bfloat16(), values.long()) is None
    assert why_not_triton(values.double()) == "the dtype is torch.float64"
    assert why_not_triton(values.to("meta")) == "the device is 'meta', not 'cuda'"
    monkeypatch.setenv("ZOO_TRITON", "off")
    assert why_not_triton(values) == "ZOO_TRITON is 'off'"
    monkeypatch.delenv("ZOO_TRITON")
    monkeypatch.setattr(triton_support, "_is_installed", lambda: False)
    assert why_not_triton_on("cuda") == "Triton is not installed"

"""The conditions of Triton kernels, and of the kernels over edges."""

import pytest
import torch

from zoo.plugin import Blueprint
from zoo_fast.device import triton_support
from zoo_fast.device.triton_support import float32_products, why_not_triton, why_not_triton_on
from zoo_fast.gat.edge_attentions import EdgeAttentionFused
from zoo_gat.edge_attention import EdgeAttention
from zoo_gat.gat import Gat
from zoo_gat.gatv2 import GatV2
from zoo_luong.general import General
from zoo_transformer.scaled_dot import ScaledDot


@pytest.fixture(autouse=True)
def installed(monkeypatch):
    """Paths do not depend on whether Triton is installed on this machine."""
    monkeypatch.setattr(triton_support, "is_installed", lambda: True)
    monkeypatch.delenv("ZOO_TRITON", raising=False)


def test_paths_over_edges():
    def reason(scorer, device="cuda", training=False, **params):
        layer = EdgeAttention(
            input_dim=4, head_dim=2, heads=2, merge="mean", scorer=Blueprint.of(scorer), **params
        )
        return EdgeAttentionFused().why_not(layer.train(training), torch.device(device))

    for scorer in (Gat, GatV2, ScaledDot):
        assert reason(scorer) is None
        assert reason(scorer, dropout=0.6, training=True) is None
    assert reason(Gat, "cpu") is None
    assert reason(GatV2, "cpu") == "the device is 'cpu', not 'cuda'"
    assert reason(General) == "scorer 'general' has no kernel for edges"


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
    monkeypatch.setattr(triton_support, "is_installed", lambda: False)
    assert why_not_triton_on("cuda") == "Triton is not installed"


def test_the_precision_of_products_is_read_whichever_way_it_was_set():
    matmul = torch.backends.cuda.matmul
    before = matmul.fp32_precision
    try:
        matmul.fp32_precision = "tf32"
        assert float32_products() == "tf32"
        matmul.fp32_precision = "ieee"
        torch.set_float32_matmul_precision("high")
        assert float32_products() == "tf32"
        torch.set_float32_matmul_precision("highest")
        assert float32_products() != "tf32"
    finally:
        matmul.fp32_precision = before

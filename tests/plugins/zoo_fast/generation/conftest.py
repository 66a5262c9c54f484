"""Settings of the tests of generation."""

import pytest
import torch


@pytest.fixture
def interpreter(monkeypatch):
    """Triton kernels, in the interpreter without a GPU."""
    pytest.importorskip("triton")
    monkeypatch.setenv("ZOO_TRITON", "interpret")
    if not torch.cuda.is_available():
        from zoo_fast.transformer.kernels import linear_layers

        # The interpreter takes time for each program.
        def tiles(M, N, K, dtype, half_head=64, paired=False):
            blocks = {"BM": 1 if M == 1 else 16, "BN": half_head, "BK": 64}
            return blocks | {"NORM_BK": 0, "SLICES": 1, "STAGES": 1, "LINES": 0, "num_warps": 4}

        monkeypatch.setattr(linear_layers, "linear_tiles", tiles)

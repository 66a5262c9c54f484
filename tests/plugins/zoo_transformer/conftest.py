"""Copies of weights to the Transformer layers of torch."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from zoo.plugin import Attention
from zoo_transformer.block import Block


def _copy_attention(ours: Attention, theirs: nn.MultiheadAttention) -> None:
    parts = (ours.query, ours.key, ours.value)
    theirs.in_proj_weight.copy_(torch.cat([part.weight for part in parts]))
    theirs.in_proj_bias.copy_(torch.cat([part.bias for part in parts]))
    theirs.out_proj.load_state_dict(ours.out.state_dict())


@torch.no_grad()
def _copy_block(ours: Block, theirs: nn.Module) -> None:
    """Copy the weights of a block to a layer of torch's encoder or decoder."""
    _copy_attention(ours.attention, theirs.self_attn)
    norms = [ours.attention_norm, ours.feed_forward_norm]
    if hasattr(ours, "cross"):
        _copy_attention(ours.cross, theirs.multihead_attn)
        norms.insert(1, ours.cross_norm)
    theirs.linear1.load_state_dict(ours.feed_forward.up.state_dict())
    theirs.linear2.load_state_dict(ours.feed_forward.down.state_dict())
    for number, norm in enumerate(norms, start=1):
        getattr(theirs, f"norm{number}").load_state_dict(norm.state_dict())


@torch.no_grad()
def _perturb(module: nn.Module) -> nn.Module:
    generator = torch.Generator().manual_seed(5)
    for parameter in module.parameters():
        parameter.add_(0.2 * torch.randn(parameter.shape, generator=generator).to(parameter))
    return module


@pytest.fixture
def copy_to_torch_layer() -> Callable[[Block, nn.Module], None]:
    return _copy_block


@pytest.fixture
def copy_to_torch_attention() -> Callable[[Attention, nn.MultiheadAttention], None]:
    return torch.no_grad()(_copy_attention)


@pytest.fixture
def perturb() -> Callable[[nn.Module], nn.Module]:
    """Return a function that changes every parameter, so that no bias is 0 and no scale is 1."""
    return _perturb


@pytest.fixture
def causal() -> Tensor:
    """Causal mask of five steps in the convention of torch, True where a pair is masked."""
    return torch.ones(5, 5, dtype=torch.bool).triu(1)

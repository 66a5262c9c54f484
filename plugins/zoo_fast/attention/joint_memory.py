"""Keys and values of several attentions to the same states, in one product."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch import Tensor, nn

from zoo.attention.attention import Attention
from zoo.attention.heads import split_heads
from zoo_fast.attention.joint_linear import joint_linear, replaces_calls


def prepare_memories(
    attentions: Sequence[Attention], states: Tensor
) -> Sequence[Tensor | Mapping[str, Tensor]]:
    """Return the memory of each attention to the states [B, S, key_dim], for its `forward`.

    In training on a GPU it is the output of `prepare`, with one product for all attentions;
    otherwise the states, so that the keys of one attention at a time are in memory.
    """
    layers = [layer for each in attentions if each.project == "qkv" for layer in _layers(each)]
    if len(layers) < 2 * len(attentions) or not replaces_calls(states, layers):
        return [states] * len(attentions)
    parts = iter(joint_linear(states, layers))
    prepared = []
    for attention in attentions:
        keys, values = (split_heads(next(parts), attention.kv_heads) for _ in range(2))
        prepared.append(attention.prepare_heads(keys, values, None, 0))
    return prepared


def _layers(attention: Attention) -> tuple[nn.Module, nn.Module]:
    return attention.key, attention.value

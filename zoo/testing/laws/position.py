"""Laws of position encodings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from zoo.attention import Attention
from zoo.interfaces import Position
from zoo.registry.blueprint import Blueprint
from zoo.testing.configuration import Configuration
from zoo.testing.law import Law
from zoo.testing.laws.helpers import assert_close, randn
from zoo.testing.tiny import TinyAlignment, TinyScorer


def offset(config: Configuration) -> None:
    """Positions computed from an offset equal a slice of those computed from 0."""
    position = config.build()
    for length in (1, *(switch + 1 for switch in position.switch_lengths)):
        _offset(position.for_length(length), config.parent_values())


def _offset(position: Position, parent_values: Mapping[str, Any]) -> None:
    states = randn(2, 7, parent_values["dim"])
    heads = randn(2, parent_values["heads"], 7, parent_values["head_dim"])
    assert_close(
        position.add(states[:, 3:6], offset=3), position.add(states)[:, 3:6], "add at an offset"
    )
    rotated = position.rotate(heads)
    assert_close(
        position.rotate(heads[:, :, 3:6], offset=3), rotated[:, :, 3:6], "rotate at an offset"
    )
    device = states.device
    full = position.bias(7, 7, device=device)
    part = position.bias(3, 7, offset=3, device=device)
    assert (full is None) == (part is None), "whether there is a bias depends on the offset"
    if full is not None and part is not None:
        assert_close(part, full[:, 3:6], "bias at an offset")


def restarted_positions(config: Configuration) -> None:
    """With an offset of each state, `add` restarts the positions inside of a row."""
    position = config.build()
    states = randn(2, 7, config.parent_values()["dim"])
    offsets = torch.tensor([[0, 0, 0, -3, -3, -3, -3], [0, -1, -1, -1, -1, -1, -6]])
    expected = torch.stack(
        [
            torch.cat([position.add(part[None])[0] for part in row.split(sizes)])
            for row, sizes in zip(states, ([3, 4], [1, 5, 1]), strict=True)
        ]
    )
    assert_close(position.add(states, offset=offsets), expected, "add with restarted positions")


def score_bias(config: Configuration) -> None:
    """The bias of an attention depends on each pair of query and key alone, and on the offset."""
    position, values = config.build(), config.parent_values()
    dim, heads = values["dim"], values["heads"]
    bias = position.build_score_bias(dim)
    assert (bias is not None) == position.has_score_bias, "has_score_bias is not correct"
    if bias is None:
        return
    bias, attention = bias.double().eval(), _attention(dim, heads).double()
    states = randn(2, 7, dim)
    queries, keys = attention.project_queries(states), attention.project_keys(states)
    full = bias(attention, position, states, queries, keys)
    assert full.shape == (2, heads, 7, 7), f"the bias is {list(full.shape)}, not [B, H, T, S]"
    middle = (states[:, 3:6], queries[:, :, 3:6])
    part = bias(attention, position, *middle, keys, offset=3)
    assert_close(part, full[:, :, 3:6], "the bias at an offset")
    fewer = bias(attention, position, states, queries, keys[:, :, :5])
    assert_close(fewer, full[..., :5], "the bias of fewer keys")
    alone = bias(attention, position, states[1:], queries[1:], keys[1:])
    assert_close(alone, full[1:], "the bias of an item alone")


def _attention(dim: int, heads: int) -> Attention:
    scorer, align = Blueprint.of(TinyScorer), Blueprint.of(TinyAlignment)
    return Attention(
        query_dim=dim, key_dim=dim, scorer=scorer, align=align, heads=heads, project="qkv"
    )


LAWS = (
    Law("offset", offset),
    Law("restarted-positions", restarted_positions),
    Law("score-bias", score_bias),
)

import math

import pytest
import torch
from torch import Tensor

from zoo import SpecError, ZooError, recording
from zoo.plugin import Attention, Blueprint, Mask
from zoo_alignment.soft import Soft
from zoo_bahdanau.additive import Additive
from zoo_luong.dot import Dot
from zoo_positions.rotary import Rotary
from zoo_transformer.feed_forward import FeedForward
from zoo_transformer.scaled_dot import ScaledDot
from zoo_transformer.transformer_encoder import TransformerEncoder

LAYOUTS = ["halves", "interleaved"]


def randn(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def by_hand(states: Tensor, theta: float, layout: str, offset: int) -> Tensor:
    """Apply the rotation matrix of the paper to one pair at a time."""
    out = torch.zeros_like(states)
    d = states.shape[-1]
    for t in range(states.shape[2]):
        for i in range(d // 2):
            angle = (t + offset) * theta ** (-2 * i / d)
            m, n = (2 * i, 2 * i + 1) if layout == "interleaved" else (i, i + d // 2)
            x, y = states[:, :, t, m], states[:, :, t, n]
            out[:, :, t, m] = x * math.cos(angle) - y * math.sin(angle)
            out[:, :, t, n] = x * math.sin(angle) + y * math.cos(angle)
    return out


def test_rotation_has_known_values():
    # theta^(-2/4) = 1/2: pair 0 is rotated by t, pair 1 by t / 2.
    position = Rotary(head_dim=4, theta=4.0, layout="interleaved")
    states = torch.tensor([[[[1.0, 0, 0, 2]]]], dtype=torch.float64)

    rotated = position.rotate(states, offset=1)

    expected = [math.cos(1), math.sin(1), -2 * math.sin(0.5), 2 * math.cos(0.5)]
    expected = torch.tensor(expected, dtype=torch.float64)
    torch.testing.assert_close(rotated[0, 0, 0], expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("offset", [0, 3, torch.tensor(3)])
def test_rotation_matches_the_matrix_as_loops(layout, offset):
    states = randn(2, 3, 5, 6)

    rotated = Rotary(head_dim=6, theta=100.0, layout=layout).rotate(states, offset=offset)

    expected = by_hand(states, 100.0, layout, int(offset))
    torch.testing.assert_close(rotated, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_rotation_preserves_norms(layout):
    states = randn(2, 3, 9, 8)

    rotated = Rotary(head_dim=8, layout=layout).rotate(states, offset=1000)

    torch.testing.assert_close(rotated.norm(dim=-1), states.norm(dim=-1), rtol=0, atol=1e-12)
    assert (rotated != states).any()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_inner_products_depend_on_relative_positions(layout):
    position = Rotary(head_dim=8, layout=layout)
    query, key = randn(1, 2, 5, 8, seed=1), randn(1, 2, 7, 8, seed=2)

    def scores(query_at: int, key_at: int) -> Tensor:
        keys = position.rotate(key, offset=key_at)
        return position.rotate(query, offset=query_at) @ keys.transpose(-1, -2)

    torch.testing.assert_close(scores(500, 503), scores(0, 3), rtol=0, atol=1e-10)
    assert not torch.allclose(scores(1, 3), scores(0, 3), rtol=0, atol=1e-3)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("form", [{}, {"heads": 2}, {"heads": 4, "kv_heads": 2}, {"project": "kv"}])
@pytest.mark.parametrize("scorer", [Dot, ScaledDot])
def test_shifting_all_positions_does_not_change_attention(scorer, form, layout):
    torch.manual_seed(0)
    attention = Attention(
        query_dim=8, key_dim=8, scorer=Blueprint.of(scorer), align=Blueprint.of(Soft), **form
    ).double()
    position = Rotary(head_dim=attention.head_dim, layout=layout)
    states = randn(2, 5, 8)

    def attend(offset: int) -> tuple[Tensor, Tensor]:
        with recording(attention) as log:
            context = attention(states, states, Mask(), position=position, offset=offset).context
        return context, log[""][0]

    (context, weights), (shifted_context, shifted_weights) = attend(0), attend(100)

    torch.testing.assert_close(shifted_weights, weights, rtol=0, atol=1e-10)
    torch.testing.assert_close(shifted_context, context, rtol=0, atol=1e-10)


def test_an_odd_head_dim_raises():
    with pytest.raises(ZooError, match=r"'rotary'.*head_dim.*3$"):
        Rotary(head_dim=3)


def test_a_scorer_without_rotary_support_raises():
    encoder = Blueprint.of(
        TransformerEncoder,
        layers=1,
        attention=Blueprint.of(
            Attention, scorer=Blueprint.of(Additive, hidden=4), align=Blueprint.of(Soft), heads=2
        ),
        feed_forward=Blueprint.of(FeedForward, hidden=4),
        position=Blueprint.of(Rotary),
    )

    with pytest.raises(SpecError, match=r"position 'rotary'.*scorer 'additive'"):
        encoder.build(input_dim=8)


def test_state_dict_is_empty_and_dtype_is_preserved():
    position = Rotary(head_dim=4)

    assert position.state_dict() == {}
    rotated = position.rotate(torch.ones(1, 1, 2, 4, dtype=torch.bfloat16))
    assert rotated.dtype is torch.bfloat16


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_part_of_each_head_is_rotated(layout):
    states = randn(2, 3, 5, 12)
    rotated = Rotary(head_dim=12, theta=100.0, layout=layout, part=0.5).rotate(states, offset=2)
    torch.testing.assert_close(rotated[..., :6], by_hand(states[..., :6], 100.0, layout, 2))
    assert torch.equal(rotated[..., 6:], states[..., 6:])


def test_the_rotated_part_has_an_even_width():
    assert Rotary(head_dim=80, part=0.4).dim == 32
    assert Rotary(head_dim=98, part=2 / 98).dim == 2
    with pytest.raises(ZooError, match=r"even number of rotated dimensions, 0.25 of each"):
        Rotary(head_dim=12, part=0.25)

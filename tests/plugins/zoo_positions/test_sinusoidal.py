import math
from typing import Any

import pytest
import torch
from transformers.models.m2m_100 import modeling_m2m_100 as m2m_100
from transformers.models.marian import modeling_marian as marian
from transformers.models.pegasus import modeling_pegasus as pegasus
from transformers.models.speech_to_text import modeling_speech_to_text as speech_to_text

from zoo import ZooError
from zoo_positions.sinusoidal import Sinusoidal


def table_by_hand(length: int, dim: int, theta: float, layout: str) -> torch.Tensor:
    table = torch.zeros(length, dim, dtype=torch.float64)
    for t in range(length):
        for i in range(dim // 2):
            angle = t / theta ** (2 * i / dim)
            sine, cosine = (2 * i, 2 * i + 1) if layout == "interleaved" else (i, i + dim // 2)
            table[t, sine], table[t, cosine] = math.sin(angle), math.cos(angle)
    return table


def test_two_frequencies_have_known_values():
    position = Sinusoidal(dim=4, theta=100.0)
    states = torch.tensor([[[1.0, 0, 0, 0], [0, 0, 0, 2]]], dtype=torch.float64)

    # 100^(2i/4): the angles are t and t / 10
    expected = torch.tensor(
        [[[1.0, 1, 0, 1], [math.sin(1), math.cos(1), math.sin(0.1), 2 + math.cos(0.1)]]],
        dtype=torch.float64,
    )
    torch.testing.assert_close(position.add(states), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("theta", [10000.0, 50.0])
@pytest.mark.parametrize("layout", ["interleaved", "halves"])
def test_positions_match_the_formula_as_loops(layout, theta):
    torch.manual_seed(0)
    states = torch.randn(2, 40, 6, dtype=torch.float64)

    added = Sinusoidal(dim=6, theta=theta, layout=layout).add(states)

    expected = states + table_by_hand(40, 6, theta, layout)
    torch.testing.assert_close(added, expected, rtol=0, atol=1e-12)


def added(length: int, **parameters: Any) -> torch.Tensor:
    """Return the table [length, dim] that the position adds."""
    dim = parameters["dim"]
    return Sinusoidal(**parameters).add(torch.zeros(1, length, dim, dtype=torch.float64))[0]


def test_exponents_of_tensor2tensor_have_known_values():
    table = added(2, dim=6, theta=100.0, exponents="tensor2tensor", layout="halves", start=3)

    # 100^(i/2): the angles are t, t / 10 and t / 100, for t = 3 and 4.
    expected = [
        [*(math.sin(t / 10**i) for i in range(3)), *(math.cos(t / 10**i) for i in range(3))]
        for t in (3, 4)
    ]
    torch.testing.assert_close(table, torch.tensor(expected, dtype=torch.float64))


@pytest.mark.parametrize("padding", [0, 1, 5])
@pytest.mark.parametrize("dim", [4, 10])
def test_positions_match_fairseq_models_of_transformers(dim, padding):
    """The first token of a sequence without padding has position padding + 1."""
    fairseq = {"layout": "halves", "exponents": "tensor2tensor", "start": padding + 1}

    table = added(20, dim=dim, **fairseq).float()

    for module in (
        m2m_100.M2M100SinusoidalPositionalEmbedding(30, dim, padding),
        speech_to_text.Speech2TextSinusoidalPositionalEmbedding(30, dim, padding),
    ):
        tokens = torch.full((1, 20), padding + 1)
        torch.testing.assert_close(table, module(tokens)[0], rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    "module",
    [
        marian.MarianSinusoidalPositionalEmbedding(20, 6),
        pegasus.PegasusSinusoidalPositionalEmbedding(20, 6),
    ],
)
def test_positions_match_marian_and_pegasus(module):
    module.weight = torch.nn.Parameter(module.create_weight(), requires_grad=False)

    table = added(20, dim=6, layout="halves").float()

    torch.testing.assert_close(table, module(torch.Size([1, 20])), rtol=0, atol=1e-6)


def test_the_authors_layout_matches_tensor2tensor():
    """As in tensor2tensor's add_timing_signal_1d, with increments of the logarithm."""
    count = 4
    increment = math.log(10000.0) / (count - 1)
    timescales = torch.exp(-increment * torch.arange(count, dtype=torch.float64))
    scaled = torch.arange(12, dtype=torch.float64)[:, None] * timescales
    signal = torch.cat([scaled.sin(), scaled.cos()], dim=1)

    torch.testing.assert_close(added(12, dim=8, layout="halves", exponents="tensor2tensor"), signal)


def test_a_width_of_two_has_one_frequency():
    expected = torch.tensor([[math.sin(t), math.cos(t)] for t in range(4)], dtype=torch.float64)

    for exponents in ("paper", "tensor2tensor"):
        torch.testing.assert_close(added(4, dim=2, exponents=exponents), expected)


@pytest.mark.parametrize("offset", [5, torch.tensor(5)])
def test_start_shifts_the_positions_of_every_step(offset):
    shifted = Sinusoidal(dim=6, start=3).add(torch.zeros(1, 2, 6), offset=offset)

    assert torch.equal(shifted, Sinusoidal(dim=6).add(torch.zeros(1, 2, 6), offset=8))


@pytest.mark.parametrize("offset", [5, torch.tensor(5)])
def test_positions_at_an_offset_are_a_slice(offset):
    position = Sinusoidal(dim=6)

    later = position.add(torch.zeros(1, 3, 6), offset=offset)

    assert torch.equal(later, position.add(torch.zeros(1, 8, 6))[:, 5:])


def test_large_positions_are_exact():
    added = Sinusoidal(dim=2).add(torch.zeros(1, 1, 2), offset=1_000_003)

    expected = torch.tensor([[[math.sin(1_000_003), math.cos(1_000_003)]]])
    torch.testing.assert_close(added, expected, rtol=0, atol=1e-6)


def test_dtype_is_preserved():
    assert Sinusoidal(dim=2).add(torch.zeros(1, 2, 2, dtype=torch.bfloat16)).dtype is torch.bfloat16


def test_an_odd_width_raises():
    with pytest.raises(ZooError, match=r"'sinusoidal'.*dim.*5$"):
        Sinusoidal(dim=5)


def test_state_dict_is_empty_and_length_unlimited():
    position = Sinusoidal(dim=4)

    assert position.state_dict() == {}
    assert position.max_positions is None

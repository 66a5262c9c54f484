import math

import pytest
import torch

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

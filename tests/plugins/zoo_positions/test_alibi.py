import math

import pytest
import torch

from zoo import recording
from zoo.plugin import Attention, Blueprint
from zoo_alignment.soft import Soft
from zoo_positions.alibi import ALiBi
from zoo_transformer.scaled_dot import ScaledDot

CPU = torch.device("cpu")


def reference_slopes(n: int) -> list[float]:
    """`get_slopes` of github.com/ofirpress/attention_with_linear_biases, as published."""

    def power_of_two(n: int) -> list[float]:
        start = 2 ** (-(2 ** -(math.log2(n) - 3)))
        return [start * start**i for i in range(n)]

    if math.log2(n).is_integer():
        return power_of_two(n)
    closest = 2 ** math.floor(math.log2(n))
    return power_of_two(closest) + reference_slopes(2 * closest)[0::2][: n - closest]


def test_eight_heads_have_the_slopes_of_the_paper():
    # Section 3: for 8 heads, 1/2, 1/4, ... 1/256.
    bias = ALiBi(heads=8).bias(1, 2, offset=1, device=CPU)

    assert bias[:, 0, 0].tolist() == [-(0.5**h) for h in range(1, 9)]
    assert torch.count_nonzero(bias[:, 0, 1]) == 0


def test_bias_of_one_head_has_known_values():
    # One head: slope 2^-8.
    bias = ALiBi(heads=1).bias(2, 3, offset=1, device=CPU) * 2**8

    assert bias.tolist() == [[[-1, 0, -1], [-2, -1, 0]]]


@pytest.mark.parametrize("heads", [1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 20, 48])
def test_slopes_match_the_authors_code(heads):
    slopes = -ALiBi(heads=heads).bias(1, 2, offset=1, device=CPU)[:, 0, 0]

    torch.testing.assert_close(slopes, torch.tensor(reference_slopes(heads)), rtol=1e-6, atol=0)


@pytest.mark.parametrize("offset", [0, 4, torch.tensor(4)])
def test_bias_matches_the_formula_as_loops(offset):
    bias = ALiBi(heads=6).bias(3, 9, offset=offset, device=CPU)

    slopes = reference_slopes(6)
    assert bias.shape == (6, 3, 9)
    for h in range(6):
        for t in range(3):
            for s in range(9):
                assert abs(bias[h, t, s].item() + slopes[h] * abs(t + int(offset) - s)) < 1e-6


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_reference_path_supports_every_dtype(dtype):
    torch.manual_seed(0)
    attention = Attention(
        query_dim=8,
        key_dim=8,
        heads=2,
        scorer=Blueprint.of(ScaledDot),
        align=Blueprint.of(Soft),
    ).to(dtype)
    position, states = ALiBi(heads=2), torch.randn(1, 4, 8, dtype=dtype)
    prepared = attention.prepare(states, position=position)

    fused = attention(states, prepared, position=position).context
    with recording(attention):
        reference = attention(states, prepared, position=position).context

    assert reference.dtype is fused.dtype is dtype
    torch.testing.assert_close(reference, fused, rtol=0, atol=0.02)


def test_state_dict_is_empty():
    assert ALiBi(heads=4).state_dict() == {}

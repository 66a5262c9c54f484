"""Scalings of rotary angles: known values, and parity with transformers."""

import math

import pytest
import torch
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from zoo import SpecError
from zoo.plugin import Blueprint
from zoo_positions.rotary import Rotary
from zoo_positions.scaling.linear import LinearScaling
from zoo_positions.scaling.llama3 import Llama3Scaling
from zoo_positions.scaling.longrope import LongRopeScaling
from zoo_positions.scaling.yarn import YarnScaling

CPU = torch.device("cpu")
SHORT, LONG = [1.0 + 0.1 * i for i in range(8)], [1.0 + i for i in range(8)]
PARITY = {
    "linear": (LinearScaling, {"factor": 2.5}, {"factor": 2.5}),
    "llama3": (
        Llama3Scaling,
        {"factor": 8.0, "original_length": 64, "low": 1.0, "high": 4.0},
        {"factor": 8.0, "original_max_position_embeddings": 64, "low_freq_factor": 1.0,
         "high_freq_factor": 4.0},
    ),
    "yarn": (
        YarnScaling,
        {"factor": 4.0, "original_length": 512},
        {"factor": 4.0, "original_max_position_embeddings": 512},
    ),
    "yarn-options": (
        YarnScaling,
        {"factor": 4.0, "original_length": 512, "fast": 16.0, "slow": 2.0, "truncate": False,
         "magnitude": 1.5},
        {"factor": 4.0, "original_max_position_embeddings": 512, "beta_fast": 16, "beta_slow": 2,
         "truncate": False, "attention_factor": 1.5},
    ),
    "yarn-one-index": (
        YarnScaling,
        {"factor": 0.5, "original_length": 6, "fast": 1.0, "slow": 1.0},
        {"factor": 0.5, "original_max_position_embeddings": 6, "beta_fast": 1},
    ),
    "longrope": (
        LongRopeScaling,
        {"short": SHORT, "long": LONG, "original_length": 512, "length": 2048},
        {"short_factor": SHORT, "long_factor": LONG, "original_max_position_embeddings": 512},
    ),
    "longrope-short": (
        LongRopeScaling,
        {"short": SHORT, "long": LONG, "original_length": 2048, "length": 2048},
        {"short_factor": SHORT, "long_factor": LONG, "original_max_position_embeddings": 2048},
    ),
}  # fmt: skip


@pytest.mark.parametrize("part", [1.0, 0.5])
@pytest.mark.parametrize("name", PARITY)
def test_frequencies_and_magnitude_are_those_of_transformers(name, part):
    cls, ours, theirs = PARITY[name]
    rope_type = name.partition("-")[0]
    head_dim = round(16 / part)
    config = LlamaConfig(
        hidden_size=4 * head_dim, num_attention_heads=4, max_position_embeddings=2048,
        rope_parameters={"rope_type": rope_type, "rope_theta": 500.0,
                         "partial_rotary_factor": part, **theirs},
    )  # fmt: skip
    expected, magnitude = ROPE_INIT_FUNCTIONS[rope_type](config, CPU, seq_len=2048)

    scaling = Blueprint.of(cls, **ours)
    position = Rotary(head_dim=head_dim, theta=500.0, part=part, scaling=scaling)
    position = position.for_length(2048)

    frequencies = position.scaling.frequencies(500.0, CPU)
    torch.testing.assert_close(frequencies.float(), expected, rtol=1e-6, atol=0)
    assert math.isclose(position.scaling.magnitude, magnitude)


def test_scaled_angles_have_known_values():
    # The only angle, 1, is divided by 2; the magnitude multiplies queries and keys.
    linear = Rotary(head_dim=2, scaling=Blueprint.of(LinearScaling, factor=2.0))
    states = torch.tensor([[[[1.0, 0.0]]]], dtype=torch.float64)
    rotated = linear.rotate(states, offset=1).flatten().tolist()
    assert rotated == pytest.approx([math.cos(0.5), math.sin(0.5)])
    factors = {"short": [1.0], "long": [4.0], "original_length": 2, "length": 16}
    longrope = Rotary(head_dim=2, scaling=Blueprint.of(LongRopeScaling, **factors))
    # m = sqrt(1 + ln 8 / ln 2) = 2
    for length, angle in ((1, 1.0), (2, 1.0), (3, 0.25), (64, 0.25)):
        rotated = longrope.for_length(length).rotate(states, offset=1).flatten().tolist()
        assert rotated == pytest.approx([2 * math.cos(angle), 2 * math.sin(angle)])


@pytest.mark.parametrize("length", [2, 16])
def test_longrope_of_version_1_has_the_same_factors_for_all_texts(length):
    params = {"short": [1.0], "long": [4.0], "original_length": 2, "length": length}
    migrated, _ = LongRopeScaling.migrate(1, dict(params), {})
    factors = [4.0] if length > 2 else [1.0]
    assert migrated == params | {"short": factors, "long": factors}


@pytest.mark.parametrize(
    ("cls", "params", "reason"),
    [
        (LongRopeScaling, {"short": [1.0], "long": [1.0] * 4, "original_length": 4, "length": 8},
         "short has 1 factors, but 8 rotated dimensions need 4"),
        (Llama3Scaling, {"factor": 2.0, "original_length": 4, "low": 4.0},
         r"high \(4.0\) must be above low \(4.0\)"),
    ],
)  # fmt: skip
def test_invalid_parameters_are_rejected(cls, params, reason):
    with pytest.raises(SpecError, match=reason):
        Rotary(head_dim=8, scaling=Blueprint.of(cls, **params))

import pytest
import torch
from attention_kit import build
from hf_models import MODELS

import zoo
from zoo.plugin import Blueprint
from zoo_positions.alibi import ALiBi
from zoo_positions.gated import Gated
from zoo_positions.learned import Learned
from zoo_positions.t5 import T5

WIDTHS = {"dim": 8, "heads": 2, "head_dim": 4, "causal": False}


def test_known_values():
    position = Gated(**WIDTHS, position=Blueprint.of(ALiBi))
    bias = position.build_score_bias(8)
    with torch.no_grad():
        bias.gates.weight.zero_()
        bias.gates.bias.zero_()  # both gates are 1/2
        bias.factor.copy_(torch.tensor([1.0, 3.0]).view(1, 2, 1, 1))
    states, queries = torch.randn(1, 3, 8), torch.randn(1, 2, 3, 4)

    found = bias(build("scaled-dot", 8, 8, heads=2), position, states, queries, queries)

    # 2 + (1/2) (w / 2 - 1) is 1.75 and 2.25.
    plain = position.position("bias", queries, queries)
    factors = torch.tensor([1.75, 2.25]).view(1, 2, 1, 1)
    torch.testing.assert_close(found, factors * plain)


def test_bias_is_that_of_wavlm_for_long_audio():
    cls, config = MODELS["wavlm"]
    published = {"num_buckets": 320, "max_bucket_distance": 800}
    theirs = cls(type(config)(**config.to_diff_dict() | published)).wavlm.encoder.eval()
    layer = theirs.layers[0].attention
    position = Gated(**WIDTHS, position=Blueprint.of(T5, buckets=320, max_distance=800))
    bias = position.build_score_bias(8)
    with torch.no_grad():
        layer.rel_attn_embed.weight.normal_()
        layer.gru_rel_pos_const.normal_()
        position.position.table.weight.copy_(layer.rel_attn_embed.weight)
        bias.gates.load_state_dict(layer.gru_rel_pos_linear.state_dict())
        bias.factor.copy_(layer.gru_rel_pos_const)
        states = torch.randn(1, 900, 8)
        received = []
        layer.torch_multi_head_self_attention = lambda *args: (
            received.append(args[2])
            or (
                states,
                None,
            )
        )
        layer(states)
        queries = states.unflatten(-1, (2, 4)).transpose(1, 2)
        found = bias(build("scaled-dot", 8, 8, heads=2), position, states, queries, queries)
    torch.testing.assert_close(found.flatten(0, 1), received[0], atol=1e-6, rtol=1e-6)


def test_a_position_without_a_bias_raises():
    with pytest.raises(zoo.ZooError, match="'learned' has no bias that gates can scale"):
        Gated(**WIDTHS, position=Blueprint.of(Learned, length=4))


def test_states_that_are_no_heads_raise():
    position = Gated(**WIDTHS, position=Blueprint.of(ALiBi))
    with pytest.raises(zoo.ZooError, match=r"width \(6\) must be heads x head_dim \(2 x 4\)"):
        position.build_score_bias(6)


def test_state_dict_keys():
    position = Gated(**WIDTHS, position=Blueprint.of(T5))
    shapes = {k: tuple(v.shape) for k, v in position.state_dict().items()}
    assert shapes == {"position.table.weight": (32, 2)}
    own = {k: tuple(v.shape) for k, v in position.build_score_bias(8).state_dict().items()}
    assert own == {"factor": (1, 2, 1, 1), "gates.weight": (8, 4), "gates.bias": (8,)}

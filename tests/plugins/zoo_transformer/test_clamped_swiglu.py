import math

import pytest
import torch
from transformers import GptOssConfig
from transformers.models.gpt_oss.modeling_gpt_oss import GptOssExperts

from zoo_transformer.clamped_swiglu import ClampedSwiGLU


@pytest.mark.parametrize(
    ("x", "gate", "linear"),
    [(1.0, 1.0, 0.5), (10.0, 7.0, 5.0), (-20.0, -20.0, -7.0)],  # bounded above, and on both sides
)
def test_output_has_known_values(x, gate, linear):
    network = ClampedSwiGLU(dim=1, hidden=1, bias=False).double()
    state = {"gate.weight": 1.0, "up.weight": 0.5, "down.weight": 2.0}
    network.load_state_dict({name: torch.tensor([[value]]) for name, value in state.items()})
    expected = 2 * (gate / (1 + math.exp(-1.702 * gate))) * (linear + 1)
    output = network(torch.tensor([[[x]]], dtype=torch.float64))
    assert output.item() == pytest.approx(expected, abs=1e-12)


def test_equals_an_expert_of_transformers():
    torch.manual_seed(0)
    config = GptOssConfig(
        hidden_size=4, intermediate_size=5, num_local_experts=1, swiglu_limit=0.5, swiglu_alpha=1.2
    )
    theirs = GptOssExperts(config)
    for parameter in theirs.parameters():
        torch.nn.init.normal_(parameter)
    ours = ClampedSwiGLU(dim=4, hidden=5, alpha=1.2, bound=0.5)
    weight, bias = theirs.gate_up_proj[0].T, theirs.gate_up_proj_bias[0]
    ours.load_state_dict({
        "gate.weight": weight[::2], "gate.bias": bias[::2], "up.weight": weight[1::2],
        "up.bias": bias[1::2], "down.weight": theirs.down_proj[0].T,
        "down.bias": theirs.down_proj_bias[0],
    })  # fmt: skip
    x = torch.randn(6, 4)
    indices, weights = torch.zeros(6, 1, dtype=torch.long), torch.ones(6, 1)
    torch.testing.assert_close(ours(x), theirs(x, indices, weights), rtol=0, atol=1e-6)

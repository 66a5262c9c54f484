import pytest
import torch
from attention_kit import build, randn
from torch import nn

from zoo import ZooError, accelerate
from zoo.attention.heads import OffsetRMSNorm, QueryKeyNorm, norm_heads
from zoo.plugin import Blueprint, Mask
from zoo_positions.rotary import Rotary
from zoo_transformer.norm import Norm


def norm(**params):
    return Blueprint.of(QueryKeyNorm, **params)


def test_known_values_of_a_head_and_of_all_heads():
    states = torch.tensor([3.0, 4.0, 0.0, 12.0]).view(1, 2, 1, 2)  # two heads, one position
    each = norm_heads(states, nn.RMSNorm(2, eps=0.0))
    # Mean squares: 12.5 and 72; of all four values 42.25.
    expected = [3 / 12.5**0.5, 4 / 12.5**0.5, 0, 2**0.5]
    torch.testing.assert_close(each.flatten(), torch.tensor(expected))
    together = norm_heads(states, nn.RMSNorm(4, eps=0.0))
    torch.testing.assert_close(together.flatten(), torch.tensor([3, 4, 0, 12]) / 6.5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_weights_plus_one_are_those_of_the_norm_of_a_block(dtype):
    own, other = OffsetRMSNorm(3, eps=0.25), Norm(kind="rms-plus-one", eps=0.25).build(3)
    assert own.weight.tolist() == [0, 0, 0]
    own.weight.data.copy_(torch.tensor([1.0, 2**-9, -0.5]))
    other.load_state_dict(own.state_dict())
    x = torch.tensor([[1.0, 2.0, 3.0]], dtype=dtype)
    # The mean square is 14 / 3; 1 + 2**-9 is not rounded to half precision.
    expected = x.float() * (14 / 3 + 0.25) ** -0.5 * torch.tensor([2.0, 1 + 2**-9, 0.5])
    for norm_module in (own, other):
        torch.testing.assert_close(norm_module.to(dtype)(x), expected.to(dtype))


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("over", ["head", "all"])
@pytest.mark.parametrize("kind", ["rms", "layer", "rms-plus-one"])
def test_queries_and_keys_are_normalised_before_they_are_rotated(kind, over, fast):
    norms = norm(kind=kind, over=over)
    attention = build(heads=4, kv_heads=2, query_dim=16, key_dim=16, norm=norms)
    for index, parameter in enumerate(attention.parameters()):
        parameter.data += 0.3 * randn(*parameter.shape, seed=index)
    x, position = randn(2, 5, 16), Rotary(head_dim=4)

    def projected(name, heads):
        states = attention.get_submodule(name)(x)
        if over == "head":
            states = states.view(2, 5, heads, 4)
        states = attention.get_submodule(f"{name}_norm")(states)
        return position.rotate(states.view(2, 5, heads, 4).transpose(1, 2))

    queries, keys = projected("query", 4), projected("key", 2).repeat_interleave(2, dim=1)
    values = attention.value(x).view(2, 5, 2, 4).transpose(1, 2).repeat_interleave(2, dim=1)
    weights = (queries @ keys.transpose(-1, -2) / 2).softmax(dim=-1)
    expected = attention.out((weights @ values).transpose(1, 2).flatten(2))
    attention = accelerate(attention) if fast else attention
    context = attention(x, x, Mask(), position=position).context
    torch.testing.assert_close(context, expected)


def test_names_and_widths_of_the_weights():
    each = build(heads=4, kv_heads=2, query_dim=16, key_dim=16, norm=norm(kind="layer"))
    shapes = {name: tuple(p.shape) for name, p in each.named_parameters() if "norm" in name}
    assert shapes == {f"{n}_norm.{w}": (4,) for n in ("query", "key") for w in ("weight", "bias")}
    wide = build(heads=4, kv_heads=2, query_dim=16, key_dim=16, norm=norm(over="all"))
    shapes = {name: tuple(p.shape) for name, p in wide.named_parameters() if "norm" in name}
    assert shapes == {"query_norm.weight": (16,), "key_norm.weight": (8,)}


@pytest.mark.parametrize("project", ["none", "kv"])
def test_a_norm_requires_projections(project):
    with pytest.raises(ZooError, match=r"^norm requires projections .*project: qkv$"):
        build("general", project=project, norm=norm())

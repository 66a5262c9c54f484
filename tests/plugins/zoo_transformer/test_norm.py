import pytest
import torch
from torch import nn

from zoo import ZooError
from zoo_transformer.norm import Norm, RMSNorm, RMSNormPlusOne


def test_rms_norm_has_known_values():
    norm = RMSNorm(2, eps=0.5)
    norm.load_state_dict({"weight": torch.tensor([1.0, 10.0])})

    # mean square (1 + 6) / 2 = 3.5, plus eps = 4
    normed = norm(torch.tensor([[1.0, -(6**0.5)]]))

    torch.testing.assert_close(normed, torch.tensor([[0.5, -5 * 6**0.5]]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("eps", [1e-6, 0.1])
def test_matches_torch_rms_norm(eps, dtype):
    torch.manual_seed(0)
    norm, other = RMSNorm(6, eps).to(dtype), nn.RMSNorm(6, eps=eps).to(dtype)
    with torch.no_grad():
        norm.weight.normal_()
    other.load_state_dict(norm.state_dict())
    x = torch.randn(2, 3, 6, dtype=dtype)

    torch.testing.assert_close(norm(x), other(x), rtol=0, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_squared_in_float32(dtype):
    large = torch.tensor([[300.0, -300.0]], dtype=dtype)  # the square exceeds the range of float16

    normed = RMSNorm(2, eps=1e-6).to(dtype)(large)

    assert normed.dtype is dtype
    assert normed.tolist() == [[1, -1]]


def test_build_returns_the_kind_of_norm():
    layer = Norm(eps=0.25).build(3)
    rms = Norm(kind="rms", eps=0.25).build(3)

    assert isinstance(layer, nn.LayerNorm)
    assert isinstance(rms, RMSNorm)
    assert layer.eps == rms.eps == 0.25
    # (1, 2, 3) has mean 2, variance 2/3 and mean square 14/3.
    x = torch.tensor([[1.0, 2.0, 3.0]])
    torch.testing.assert_close(layer(x)[0, 2].item(), (2 / 3 + 0.25) ** -0.5)
    torch.testing.assert_close(rms(x)[0, 2].item(), 3 * (14 / 3 + 0.25) ** -0.5)


def test_default_place_is_post():
    assert Norm().place == "post"
    assert not Norm().embedding


def test_a_final_norm_belongs_to_all_places_but_post_if_not_set():
    assert not Norm().final
    assert all(Norm(place=place).final for place in ("pre", "output", "both"))
    assert Norm(final=True).final
    assert not Norm(place="pre", final=False).final


def test_state_dict_keys():
    def names(norm: Norm) -> dict[str, tuple[int, ...]]:
        return {k: tuple(v.shape) for k, v in norm.build(4).state_dict().items()}

    assert names(Norm()) == {"weight": (4,), "bias": (4,)}
    assert names(Norm(kind="rms")) == {"weight": (4,)}


def test_a_layer_norm_without_a_bias():
    assert list(Norm(bias=False).build(3).state_dict()) == ["weight"]


@pytest.mark.parametrize("place", ["post", "output", "both"])
def test_only_norms_before_sublayers_can_lack_the_first(place):
    with pytest.raises(ZooError, match=rf"^first: false requires .* 'pre', not '{place}'$"):
        Norm(place=place, first=False)


def test_weights_plus_one_have_the_values_of_rms_norm():
    norm, other = Norm(kind="rms-plus-one", eps=0.25).build(3), RMSNorm(3, 0.25)
    assert isinstance(norm, RMSNormPlusOne)
    x = torch.tensor([[1.0, 2.0, 3.0]])
    torch.testing.assert_close(norm(x), other(x))
    with torch.no_grad():
        norm.weight.copy_(torch.tensor([1.0, 0.0, -0.5]))
        other.weight.copy_(torch.tensor([2.0, 1.0, 0.5]))
    torch.testing.assert_close(norm(x), other(x))
    # 1 + w is not rounded to half precision: 2**-9 would be lost.
    half = norm.bfloat16()
    half.weight.data.fill_(2**-9)
    x = torch.full((1, 3), 256.0, dtype=torch.bfloat16)
    expected = (256 * (256.0**2 + 0.25) ** -0.5) * (1 + 2**-9)
    assert half(x).dtype == torch.bfloat16
    torch.testing.assert_close(half(x)[0, 0], torch.tensor(expected).bfloat16())

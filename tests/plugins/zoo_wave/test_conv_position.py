import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.parametrizations import weight_norm

from zoo import ZooError
from zoo_wave.conv_position import ConvPosition


@pytest.mark.parametrize("kernel", [3, 4])
def test_matches_torch_convolution_with_weight_norm(kernel):
    torch.manual_seed(0)
    position = ConvPosition(dim=6, kernel=kernel, groups=2).double()
    expected = nn.Conv1d(6, 6, kernel, padding=kernel // 2, groups=2).double()
    with torch.no_grad():
        position.length.mul_(1.5)
        position.bias.normal_()
        expected.weight.copy_(position.direction)
        expected.bias.copy_(position.bias)
    expected = weight_norm(expected, dim=2)
    with torch.no_grad():
        expected.parametrizations.weight.original0.copy_(position.length)
    frames = torch.randn(2, 5, 6).double()

    convolved = expected(frames.transpose(1, 2))[..., :5].transpose(1, 2)

    torch.testing.assert_close(position(frames), frames + F.gelu(convolved), rtol=0, atol=1e-12)


def test_groups_that_do_not_divide_dim_raise():
    with pytest.raises(ZooError, match=r"groups \(4\).*dim \(6\)"):
        ConvPosition(dim=6, groups=4)


def test_reset_parameters_repeats_the_initialisation():
    torch.manual_seed(0)
    position = ConvPosition(dim=6, kernel=3, groups=2)
    initial = {name: weight.clone() for name, weight in position.state_dict().items()}
    with torch.no_grad():
        for weight in position.parameters():
            weight.add_(1.0)

    torch.manual_seed(0)
    position.reset_parameters()

    assert all(torch.equal(w, initial[name]) for name, w in position.state_dict().items())

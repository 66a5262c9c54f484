import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.parametrizations import weight_norm

from zoo import ZooError
from zoo_wave.conv_position import ConvPosition


@pytest.mark.parametrize("kernel", [3, 4])
def test_it_equals_torchs_convolution_with_weight_norm(kernel):
    torch.manual_seed(0)
    ours = ConvPosition(dim=6, kernel=kernel, groups=2).double()
    theirs = nn.Conv1d(6, 6, kernel, padding=kernel // 2, groups=2).double()
    with torch.no_grad():
        ours.length.mul_(1.5)
        ours.bias.normal_()
        theirs.weight.copy_(ours.direction)
        theirs.bias.copy_(ours.bias)
    theirs = weight_norm(theirs, dim=2)
    with torch.no_grad():
        theirs.parametrizations.weight.original0.copy_(ours.length)
    frames = torch.randn(2, 5, 6).double()

    seen = theirs(frames.transpose(1, 2))[..., :5].transpose(1, 2)

    torch.testing.assert_close(ours(frames), frames + F.gelu(seen), rtol=0, atol=1e-12)


def test_groups_that_do_not_divide_the_width_are_refused():
    with pytest.raises(ZooError, match=r"^groups \(4\) must divide dim \(6\)$"):
        ConvPosition(dim=6, groups=4)

import torch
from torch import nn

from zoo_wave.masked_group_norm import MaskedGroupNorm


def test_padding_is_ignored():
    norm = MaskedGroupNorm(3).double()
    with torch.no_grad():
        norm.weight.normal_()
        norm.bias.normal_()
    expected = nn.GroupNorm(3, 3).double()
    expected.load_state_dict(norm.state_dict())
    states = torch.randn(2, 3, 7, generator=torch.Generator().manual_seed(0)).double()

    normalized = norm(states, torch.tensor([7, 4]))

    torch.testing.assert_close(normalized[:1], expected(states[:1]))
    torch.testing.assert_close(normalized[1:, :, :4], expected(states[1:, :, :4]))


def test_reset_parameters_restores_the_identity():
    norm = MaskedGroupNorm(3)
    with torch.no_grad():
        norm.weight.zero_()
        norm.bias.fill_(1.0)

    norm.reset_parameters()

    assert norm.weight.tolist() == [1.0] * 3
    assert norm.bias.tolist() == [0.0] * 3

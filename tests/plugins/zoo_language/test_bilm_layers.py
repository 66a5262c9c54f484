import pytest
import torch

from zoo_language.bilm_layers import BiLMLayers


@pytest.mark.filterwarnings("ignore:LSTM with projections is not supported with")
def test_the_layers_equal_stacks_of_torch_lstms_with_a_residual_after_the_first(torch_lstm):
    torch.manual_seed(0)
    layers = BiLMLayers(dim=3, hidden=5, layers=3)
    inputs = torch.randn(2, 4, 3)
    mask = torch.tensor([[True] * 4, [True, True, False, False]])
    states = layers(inputs, mask)
    assert states.shape == (2, 4, 4, 6)
    assert not states[1, 2:].any()

    for item, length in enumerate((4, 2)):
        x = inputs[item : item + 1, :length]
        for stack, flip, half in (
            (layers.forwards, [], slice(3)),
            (layers.backwards, [1], slice(3, 6)),
        ):
            h = [x.flip(flip)]
            for j, layer in enumerate(stack):
                output, _ = torch_lstm(layer)(h[-1])
                h.append(output + h[-1] if j else output)
            expected = torch.stack([state.flip(flip)[0] for state in h], dim=1)
            torch.testing.assert_close(states[item, :length, :, half], expected)


def test_without_residual_the_second_layer_differs():
    torch.manual_seed(0)
    layers = BiLMLayers(dim=3, hidden=5)
    inputs, mask = torch.randn(1, 4, 3), torch.ones(1, 4, dtype=torch.bool)
    with_residual = layers(inputs, mask)
    layers.residual = False
    without = layers(inputs, mask)
    torch.testing.assert_close(with_residual[:, :, :2], without[:, :, :2])
    torch.testing.assert_close(with_residual[:, :, 2], without[:, :, 2] + without[:, :, 1])

import pytest
import torch

from zoo_language.projected_lstm import ProjectedLSTM

pytestmark = pytest.mark.filterwarnings("ignore:LSTM with projections is not supported with")


def build(dim, hidden, **options):
    torch.manual_seed(0)
    return ProjectedLSTM(dim, hidden, **options)


@pytest.mark.parametrize(("dim", "hidden"), [(3, 5), (512, 4096)])
def test_each_step_equals_torch_lstm_with_a_projection(dim, hidden, torch_lstm):
    layer = build(dim, hidden)
    other = torch_lstm(layer)
    inputs = torch.randn(2, 4, dim)
    mask = torch.ones(2, 4, dtype=torch.bool)
    state = None
    with torch.no_grad():
        outputs = layer(inputs, mask)
        for t in range(4):
            expected, state = other(inputs[:, t : t + 1], state)
            torch.testing.assert_close(outputs[:, t], expected[:, 0], atol=2e-6, rtol=1e-5)


def test_the_backward_layer_equals_torch_lstm_on_each_reversed_sequence(torch_lstm):
    layer = build(3, 5, backward=True)
    other = torch_lstm(layer)
    inputs = torch.randn(2, 4, 3)
    outputs = layer(inputs, torch.tensor([[True] * 4, [True, True, False, False]]))
    for item, length in enumerate((4, 2)):
        expected, _ = other(inputs[item : item + 1, :length].flip(1))
        torch.testing.assert_close(outputs[item, :length], expected[0].flip(0))


def test_cells_and_projections_are_clipped_before_they_are_used():
    layer = build(2, 3, cell_clip=0.3, projection_clip=0.1).double()
    inputs = 5 * torch.randn(1, 6, 2, dtype=torch.float64)
    outputs = layer(inputs, torch.ones(1, 6, dtype=torch.bool))

    h, c = torch.zeros(2, dtype=torch.float64), torch.zeros(3, dtype=torch.float64)
    clipped = 0
    for x, output in zip(inputs[0], outputs[0], strict=True):
        gates = layer.weight_ih @ x + layer.weight_hh @ h + layer.bias
        i, f, g, o = gates[:3].sigmoid(), gates[3:6].sigmoid(), gates[6:9].tanh(), gates[9:]
        unclipped = i * g + f * c
        c = torch.minimum(torch.maximum(unclipped, torch.tensor(-0.3)), torch.tensor(0.3))
        unclipped_h = layer.weight_hr @ (o.sigmoid() * c.tanh())
        h = torch.minimum(torch.maximum(unclipped_h, torch.tensor(-0.1)), torch.tensor(0.1))
        clipped += int((c != unclipped).sum()) * int((h != unclipped_h).sum())
        torch.testing.assert_close(output, h)
    assert clipped


def test_a_known_value():
    layer = build(1, 1)
    with torch.no_grad():
        for weight in layer.parameters():
            weight.zero_()
        layer.bias.copy_(torch.tensor([0.0, 0.0, 100.0, 0.0]))  # i, f, o = 1/2, candidate 1
        layer.weight_hr.fill_(2.0)
    outputs = layer(torch.zeros(1, 2, 1), torch.ones(1, 2, dtype=torch.bool))
    cells = torch.tensor([0.5, 0.75])
    torch.testing.assert_close(outputs[0, :, 0], 2 * 0.5 * cells.tanh())


def test_names_and_shapes_of_the_parameters():
    shapes = {name: list(weight.shape) for name, weight in build(2, 3).named_parameters()}
    assert shapes == {
        "weight_ih": [12, 2],
        "weight_hh": [12, 2],
        "bias": [12],
        "weight_hr": [2, 3],
    }
    assert build(2, 3).bias.tolist() == [0.0] * 3 + [1.0] * 3 + [0.0] * 6

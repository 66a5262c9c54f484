"""Orthogonal: the initial values of Bahdanau et al. 2015, appendix B.1."""

import pytest
import torch

import zoo
from zoo.plugin import Weight
from zoo_init.orthogonal import Orthogonal


@pytest.fixture(scope="module")
def model():
    overrides = [
        "model.source={vocab: 200, dim: 60}",
        "model.encoder.hidden=50",
        "model.decoder={hidden: 40, readout: 30, attention: {scorer: {hidden: 70}}}",
    ]
    return zoo.compose("bahdanau-2015", overrides=overrides)


def test_the_recurrent_matrix_of_each_gate_is_orthogonal(model):
    cells = [*model.encoder.stack.layers[0], *model.decoder.cells.cells]
    for cell in cells:
        for gate in cell.weight_hh.detach().chunk(3):
            torch.testing.assert_close(gate.T @ gate, torch.eye(len(gate)), atol=1e-5, rtol=0)


def test_other_weights_have_the_standard_deviations_of_the_paper(model):
    (scorer,) = model.decoder.attention.scorers
    stds = {
        model.source.table.weight[1:]: 0.01,
        model.decoder.cells.cells[0].weight_ih: 0.01,
        model.decoder.out.weight: 0.01,
        scorer.W.weight: 0.001,
        scorer.U.weight: 0.001,
    }
    for weight, std in stds.items():
        assert weight.std().item() == pytest.approx(std, rel=0.05)
    assert (scorer.v == 0).all()
    assert all((p == 0).all() for name, p in model.named_parameters() if "bias" in name)


def test_a_recurrent_matrix_that_is_not_made_of_squares_has_orthonormal_columns():
    weight = torch.empty(7, 4)
    Orthogonal()(Weight("w", weight, "recurrent"))
    torch.testing.assert_close(weight.T @ weight, torch.eye(4), atol=1e-5, rtol=0)

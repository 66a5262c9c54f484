"""Xavier uniform: equal to torch.nn.init with the same seed."""

import pytest
import torch
from torch import nn

import zoo
from zoo.plugin import Weight
from zoo_init.xavier_uniform import XavierUniform


@pytest.mark.parametrize(
    ("shape", "role"), [((7, 5), "linear"), ((6, 4, 3), "convolution"), ((12, 4), "recurrent")]
)
def test_weights_equal_those_of_torch_with_the_same_seed(shape, role):
    ours, theirs = torch.empty(shape), torch.empty(shape)
    torch.manual_seed(5)
    XavierUniform(gain=1.5)(Weight("w", ours, role))
    torch.manual_seed(5)
    nn.init.xavier_uniform_(theirs, gain=1.5)
    assert torch.equal(ours, theirs)


def test_the_bound_of_a_vector_is_that_of_a_layer_with_one_output():
    vector = torch.empty(10_000)
    XavierUniform()(Weight("v", vector, "vector"))
    bound = (6 / 10_001) ** 0.5
    assert 0.99 * bound < vector.abs().max() <= bound


def test_biases_are_zero_and_embeddings_are_sampled_on_request():
    bias, table = torch.ones(3), torch.ones(3, 2)
    XavierUniform()(Weight("b", bias, "bias"))
    XavierUniform()(Weight("t", table, "embedding"))
    assert bias.tolist() == [0.0, 0.0, 0.0]
    assert (table == 1).all()
    XavierUniform(embeddings=True)(Weight("t", table, "embedding", padding=1))
    assert (table[1] == 0).all()
    assert (table[[0, 2]].abs() <= (6 / 5) ** 0.5).all()


def test_the_weights_of_transformer_base_have_the_bounds_of_the_paper():
    model = zoo.compose("transformer-base", overrides=["model.source.vocab=50"])
    block = model.decoder.blocks[3]
    for layer, fan_sum in (
        (block.attention.query, 1024),
        (block.cross.out, 1024),
        (block.feed_forward.up, 2560),
    ):
        bound = (6 / fan_sum) ** 0.5
        assert 0.999 * bound < layer.weight.abs().max() <= bound
        assert (layer.bias == 0).all()
    assert (block.cross_norm.weight == 1).all()
    std = model.source.table.weight[1:].std().item()
    assert std == pytest.approx(512**-0.5, rel=0.02)

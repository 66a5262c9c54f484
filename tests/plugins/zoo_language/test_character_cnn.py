import pytest
import torch

import zoo
from zoo.plugin import Blueprint
from zoo_language.character_cnn import CharacterCNN


def build(**changes):
    torch.manual_seed(0)
    params = {
        "characters": 12,
        "dim": 3,
        "character_dim": 2,
        "filters": [[1, 2], [3, 4]],
        "length": 5,
    }
    return Blueprint.of(CharacterCNN, **{**params, **changes}).build().double()


def word_vector(cnn, characters):
    """Compute the vector of one word with loops over filters and positions."""
    c = cnn.table.weight[characters]  # [C, 2]
    features = []
    for conv in cnn.convolutions:
        for kernel, bias in zip(conv.weight, conv.bias, strict=True):  # kernel [2, width]
            width = kernel.shape[1]
            scores = [(kernel * c[t : t + width].T).sum() + bias for t in range(len(c) - width + 1)]
            features.append(max(0, *scores))
    f = torch.stack([torch.as_tensor(feature, dtype=torch.float64) for feature in features])
    for layer in cnn.highways:
        t = 1 / (1 + torch.exp(-(layer.gate.weight @ f + layer.gate.bias)))
        f = t * (layer.transform.weight @ f + layer.transform.bias).clamp(min=0) + (1 - t) * f
    return cnn.projection.weight @ f + cnn.projection.bias


@torch.no_grad()
def test_vectors_equal_an_independent_computation_of_each_word():
    cnn = build()
    ids = cnn.example(2, 3, torch.Generator().manual_seed(0))
    vectors = cnn(ids)
    for b in range(2):
        for s in range(3):
            torch.testing.assert_close(vectors[b, s], word_vector(cnn, ids[b, s]))


@torch.no_grad()
def test_a_known_value():
    cnn = build(character_dim=1, filters=[[2, 1]], highway=0, dim=1)
    cnn.table.weight.copy_(torch.arange(12.0)[:, None])
    cnn.convolutions[0].weight.copy_(torch.tensor([[[1.0, -2.0]]]))
    cnn.convolutions[0].bias.fill_(0.5)
    cnn.projection.weight.fill_(3.0)
    cnn.projection.bias.fill_(-1.0)
    ids = torch.tensor([[[7, 2, 9, 9, 9], [1, 2, 3, 4, 5]]])
    # the maximum is 7 - 2 * 2 + 0.5 = 3.5 for the first word, negative for the second
    assert cnn(ids).flatten().tolist() == [9.5, -1.0]


def test_the_released_sizes_have_the_released_number_of_parameters():
    filters = [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256], [6, 512], [7, 1024]]
    with torch.device("meta"):
        cnn = CharacterCNN(characters=262, dim=512, filters=filters)
    assert sum(p.numel() for p in cnn.parameters()) == 4_192 + 199_168 + 16_785_408 + 1_049_088


def test_inputs_and_filters_that_do_not_fit_raise():
    with pytest.raises(zoo.ZooError, match=r"width 6 need words of at least 6 .* length is 5"):
        build(filters=[[6, 2]])
    with pytest.raises(zoo.ZooError, match=r"\[1, 2, 4\], expected \[B, S, 5\]"):
        build()(torch.ones(1, 2, 4, dtype=torch.long))


def test_characters_start_between_minus_and_plus_one_and_padding_at_zero():
    weight = CharacterCNN(characters=262, dim=3, filters=[(1, 2)]).table.weight
    assert not weight[0].any()
    assert 0.99 < weight.abs().max() <= 1

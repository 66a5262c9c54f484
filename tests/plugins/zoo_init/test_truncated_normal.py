"""Truncated normal: the initial values of BERT."""

import pytest
import torch
import transformers
from scipy import stats
from torch import nn

import zoo
from zoo.plugin import Weight
from zoo_init.truncated_normal import TruncatedNormal

OVERRIDES = ["model.source={vocab: 400, dim: 96}", "model.encoder.layers=2"]


@pytest.mark.parametrize("cutoff", [0.5, 2.0, 3.0])
def test_the_declared_std_is_that_of_scipy(cutoff):
    declared = TruncatedNormal(std=0.3, cutoff=cutoff).initial_std(
        Weight("w", torch.empty(1, 1), "linear")
    )
    assert declared == pytest.approx(stats.truncnorm.std(-cutoff, cutoff, scale=0.3), rel=1e-6)


def test_weights_equal_those_of_torch_with_the_same_seed():
    ours, theirs = torch.empty(40, 30), torch.empty(40, 30)
    torch.manual_seed(5)
    TruncatedNormal(std=0.1)(Weight("w", ours, "linear"))
    torch.manual_seed(5)
    nn.init.trunc_normal_(theirs, std=0.1, a=-0.2, b=0.2)
    assert torch.equal(ours, theirs)


def test_bert_is_truncated_at_two_standard_deviations():
    model = zoo.compose("bert-base", overrides=OVERRIDES)
    tables = (model.source.table, model.source.segments, model.encoder.position.table)
    layers = (*(b.feed_forward.up for b in model.encoder.blocks), model.transform)
    for layer in (*tables, *layers):
        assert 0.03 < layer.weight.abs().max() <= 0.04
    std = model.encoder.blocks[0].feed_forward.up.weight.std().item()
    assert std == pytest.approx(0.02 * 0.87963, rel=0.01)  # 0.8796: a standard normal, truncated


def test_the_same_parameters_of_bert_are_zero_or_one_as_in_transformers():
    model = zoo.compose("bert-base", overrides=OVERRIDES)
    config = transformers.BertConfig(vocab_size=400, hidden_size=96, num_hidden_layers=2)
    theirs = transformers.BertForMaskedLM(config)

    def constants(module):
        values = [p.detach() for p in module.parameters() if (p == p.flatten()[0]).all()]
        return sorted((p.numel(), p.flatten()[0].item()) for p in values)

    assert constants(model) == constants(theirs)
    assert (model.source.table.weight[0] == 0).all()
    assert (theirs.bert.embeddings.word_embeddings.weight[config.pad_token_id] == 0).all()

"""Normal: the statistics of GPT-2 and wav2vec 2.0 as initialised by transformers."""

import pytest
import torch
import transformers

import zoo

LAYERS, WIDTH = 6, 96


def _std(tensor):
    return tensor.detach().std().item()


def test_gpt2_has_the_statistics_of_transformers():
    overrides = [
        f"model.embedding={{vocab: 500, dim: {WIDTH}}}",
        "model.bos=1",
        "model.eos=1",
        f"model.decoder={{layers: {LAYERS}, feed_forward: {{hidden: {4 * WIDTH}}}}}",
        "model.decoder.position.length=200",
    ]
    ours = zoo.compose("gpt2-small", overrides=overrides)
    torch.manual_seed(0)
    theirs = transformers.GPT2LMHeadModel(
        transformers.GPT2Config(vocab_size=500, n_embd=WIDTH, n_layer=LAYERS, n_positions=200)
    )
    block, their_block = ours.decoder.blocks[2], theirs.transformer.h[2]
    pairs = {
        "attention.out": (block.attention.out, their_block.attn.c_proj),
        "feed_forward.down": (block.feed_forward.down, their_block.mlp.c_proj),
        "attention.query": (block.attention.query, their_block.attn.c_attn),
        "feed_forward.up": (block.feed_forward.up, their_block.mlp.c_fc),
    }
    for name, (layer, their_layer) in pairs.items():
        assert _std(layer.weight) == pytest.approx(_std(their_layer.weight), rel=0.03), name
        assert (layer.bias == 0).all(), name
        assert (their_layer.bias == 0).all(), name
    assert _std(block.attention.out.weight) == pytest.approx(0.02 / 12**0.5, rel=0.03)
    tables = (ours.embedding.table, ours.decoder.position.table)
    their_tables = (theirs.transformer.wte, theirs.transformer.wpe)
    for table, their_table in zip(tables, their_tables, strict=True):
        assert _std(table.weight) == pytest.approx(_std(their_table.weight), rel=0.03)
    assert (block.attention_norm.weight == 1).all()


def test_the_convolutions_of_wav2vec2_have_the_statistics_of_transformers():
    ours = zoo.compose("wav2vec2-base", overrides=["model.encoder.layers=1"])
    torch.manual_seed(0)
    theirs = transformers.Wav2Vec2ForCTC(transformers.Wav2Vec2Config(num_hidden_layers=1))
    layers = theirs.wav2vec2.feature_extractor.conv_layers
    for conv, their_layer in zip(ours.source.convolutions, layers, strict=True):
        assert _std(conv.weight) == pytest.approx(_std(their_layer.conv.weight), rel=0.03)
    their_linear = theirs.wav2vec2.encoder.layers[0].feed_forward.intermediate_dense
    linear = ours.encoder.blocks[0].feed_forward.up
    assert _std(linear.weight) == pytest.approx(_std(their_linear.weight), rel=0.03)

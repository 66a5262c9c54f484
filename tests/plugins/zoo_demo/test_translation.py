import pytest
import torch
from demo_kit import compose_translator

import zoo
from zoo.data.tokenizer import Tokenizer
from zoo_demo.translation import align, clean_sentences, translate


@pytest.fixture(scope="module", params=["bahdanau-small", "transformer-small"])
def model(request):
    return compose_translator(request.param)


def test_weights_are_merged_to_words(model):
    """Columns of a word are the sum over its tokens, rows the mean; checked on one module."""
    tokenizer = Tokenizer(model.tokenizer["source"])
    (source,) = tokenizer.encode(["casa branca?"])
    (output,) = tokenizer.encode(["casa casa"])
    heatmap = align(model, "casa branca?", output)
    assert (heatmap.rows, heatmap.columns) == (["casa", "casa"], ["casa", "branca", "?"])
    batch = {
        "source": torch.tensor([source]),
        "target": torch.tensor([[model.bos, *output, model.eos]]),
    }
    with zoo.recording(model.decoder) as log, torch.no_grad():
        model(batch)
    calls = list(log.values())[-1]  # the attention of the last block to the source
    weights = torch.cat(calls, dim=2)[0].mean(dim=0)  # [T, S]
    first = len(tokenizer.encode(["casa"])[0])
    torch.testing.assert_close(heatmap.weights[0, 0], weights[:first, :first].sum(dim=1).mean())
    torch.testing.assert_close(heatmap.weights[:, -1], _means(weights[:, -1], first, len(output)))


def _means(values, first, last):
    return torch.stack([values[:first].mean(), values[first:last].mean()])


def test_a_source_as_long_as_the_output_is_aligned_to_the_source(model):
    (ids,) = Tokenizer(model.tokenizer["source"]).encode(["casa branca"])
    lengths = []
    handle = model.source.register_forward_hook(lambda _, x, __: lengths.append(x[0].shape[1]))
    heatmap = align(model, "casa branca", ids[:-1])
    handle.remove()
    torch.testing.assert_close(heatmap.weights.sum(dim=1), torch.ones(len(heatmap.rows)))
    assert max(lengths) == len(ids)  # no padding beyond the positions of the model


def test_characters_outside_the_training_data_are_translated(model):
    sentences = ["日本 👍🏽 ﷽", "x"]
    for sentence, translation in zip(sentences, translate(model, sentences), strict=True):
        assert translation.source == sentence
        assert translation.alignment.weights.shape[1] == len(sentence.split())


def test_an_empty_output_has_no_alignment(model):
    assert align(model, "casa", []) is None


def test_sentences_are_cleaned():
    assert clean_sentences(["  Onde \n fica? "]) == ["Onde fica?"]


@pytest.mark.parametrize("sentence", ["", " \t"])
def test_empty_sentences_raise(sentence):
    with pytest.raises(zoo.ZooError, match=r"sentence 2 is empty; expected .* zoo demo 'Onde fica"):
        clean_sentences(["Sim.", sentence])


def test_long_sentences_raise():
    with pytest.raises(zoo.ZooError, match=r"sentence 1 has 1,001 characters; .* at most 400"):
        clean_sentences(["a" * 1001])

"""What `zoo.attend` shows: known weights, and the weights of the winning hypothesis."""

import pytest
import torch
from torch.testing import assert_close

import zoo
from zoo_inspect.axes import token_labels
from zoo_inspect.layers import record_pass

G2P = "g2p-bahdanau"


@pytest.fixture(scope="module")
def g2p():
    return zoo.load(G2P)


def _forced(model, word, tokens):
    """The weights [H, T, S] of an attention whose decoder reads the tokens one by one."""
    source = torch.tensor([zoo.plugin.Tokenizer(model.tokenizer["source"]).encode([word])[0]])
    log, _ = record_pass(model, {"source": source, "target": torch.tensor([[1, *tokens, 2]])})
    return torch.cat(log["decoder.attention"], dim=2)[0]


@pytest.mark.parametrize("sampler", ["greedy", {"type": "beam", "width": 4}])
def test_the_weights_are_those_of_the_winning_hypothesis(g2p, sampler):
    view = zoo.attend(g2p, "attention", sampler=sampler)
    best = zoo.generate(g2p, ["attention"], sampler=sampler)[0][0]
    assert view.output == best.text
    assert view.provenance["output"] == best.tokens
    (layer,) = view.layers
    assert_close(layer.weights, _forced(g2p, "attention", best.tokens))
    assert layer.kind == "cross"
    assert layer.columns.labels == list("ATTENTION")
    assert layer.rows.labels == [*best.text.split(), "</s>"]


def test_stepwise_greedy_decoding_records_the_same_weights(g2p):
    view = zoo.attend(g2p, "zoo", sampler="greedy")
    with zoo.recording(g2p) as log:
        zoo.generate(g2p, ["zoo"], sampler="greedy")
    steps = torch.cat(log["decoder.attention"], dim=2)[0]
    T = view.layers[0].weights.shape[1]
    assert_close(view.layers[0].weights, steps[:, :T])


def test_a_forced_output_is_shown_instead_of_a_generated_one(g2p):
    view = zoo.attend(g2p, "zoo", output="K AE T")
    assert view.output == "K AE T"
    assert not view.provenance["generated"]
    assert view.layers[0].rows.labels == ["K", "AE", "T", "</s>"]
    ids = zoo.attend(g2p, "zoo", output=view.provenance["output"])
    assert_close(ids.layers[0].weights, view.layers[0].weights)


def test_unknown_tokens_of_a_forced_output_are_named(g2p):
    with pytest.warns(zoo.ZooWarning, match="does not know 'XX', which are unknown tokens"):
        assert "<unk>" in zoo.attend(g2p, "zoo", output="K XX").layers[0].rows.labels


def test_a_text_of_spaces_is_empty(g2p):
    for text in ("", "  "):
        with pytest.raises(zoo.ZooError, match="it is empty"):
            zoo.attend(g2p, text)


def test_bytes_have_the_character_that_they_are_parts_of():
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {letter: number for number, letter in enumerate([*alphabet, "<unk>"])}
    backend = Tokenizer(models.BPE(vocab, [], unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    tokenizer = zoo.plugin.Tokenizer(backend.to_str())
    (ids,) = tokenizer.encode(["a é🙂"])
    parts = ["é 1/2", "é 2/2", "🙂 1/4", "🙂 2/4", "🙂 3/4", "🙂 4/4"]
    assert token_labels(tokenizer, ids) == ["a", "▁", *parts]
    assert token_labels(tokenizer, ids[3:5])[0] != "é 1/2"  # not whole


def test_an_output_without_end_token_has_a_row_for_each_token(g2p):
    view = zoo.attend(g2p, "attention", sampler="greedy", max_length=3)
    assert len(view.provenance["output"]) == 3
    assert view.layers[0].rows.labels == view.output.split()


def test_source_and_output_of_equal_length_are_told_apart():
    model = zoo.compose("transformer-tiny", seed=0)
    view = zoo.attend(model, [5, 6, 7, 8], output=[9, 10, 11])
    kinds = {layer.path: layer.kind for layer in view.layers}
    assert {k: v for k, v in kinds.items() if "cross" in k} == dict.fromkeys(
        (k for k in kinds if k.endswith("cross")), "cross"
    )
    assert {v for k, v in kinds.items() if not k.endswith("cross")} == {"self"}
    cross = next(layer for layer in view.layers if layer.kind == "cross")
    assert cross.weights.shape[1:] == (4, 4)
    assert (cross.rows.name, cross.rows.labels) == ("output", ["9", "10", "11", "2"])
    assert (cross.columns.name, cross.columns.labels) == ("source", ["5", "6", "7", "8"])
    own = [layer for layer in view.layers if layer.kind == "self"]
    assert own[0].rows.labels == own[0].columns.labels == ["5", "6", "7", "8"]
    assert own[-1].rows.labels == own[-1].columns.labels == ["1", "9", "10", "11"]
    assert own[-1].columns.name == "output"


def test_a_language_model_shows_its_prompt_and_continues_it_if_asked():
    model = zoo.compose("gpt2-tiny", seed=0)
    view = zoo.attend(model, [5, 6, 7])
    assert view.output is None
    assert {layer.kind for layer in view.layers} == {"self"}
    assert view.layers[0].columns.labels[-3:] == ["5", "6", "7"]
    longer = zoo.attend(model, [5, 6, 7], sampler="greedy", max_length=4)
    assert len(longer.layers[0].columns.labels) > len(view.layers[0].columns.labels)


def test_an_encoder_shows_self_attention():
    view = zoo.attend(zoo.compose("bert-tiny", seed=0), [5, 6, 7, 8, 9])
    assert {layer.kind for layer in view.layers} == {"self"}
    assert view.layers[0].rows.labels == ["5", "6", "7", "8", "9"]
    assert_close(view.layers[0].weights.sum(-1), torch.ones(view.layers[0].weights.shape[:2]))


def test_a_model_without_attention_says_so():
    with pytest.raises(zoo.ZooError, match="no attention weights"):
        zoo.attend(zoo.compose("gru-lm", seed=0), [5, 6, 7])


def test_a_classifier_has_no_output():
    with pytest.raises(zoo.ZooError, match="does not generate"):
        zoo.attend(zoo.compose("bert-tiny", seed=0), [5, 6], output=[3])


def test_captions_are_those_of_the_components(g2p):
    scorer, alignment = zoo.attend(g2p, "zoo", output="Z").layers[0].equations
    assert (scorer.kind, scorer.name, scorer.parameters["hidden"]) == ("scorer", "additive", 160)
    assert scorer.text == r"a(q, k) = v^\top \tanh(W q + U k)"
    assert "1409.0473" in scorer.paper
    assert alignment.parameters == {}  # without defaults
    assert (alignment.kind, alignment.name) == ("alignment", "soft")


def test_known_weights_of_a_causal_decoder():
    """Without queries all scores are 0, so a token attends to those before it equally."""
    model = zoo.compose("gpt2-tiny", seed=0)
    with torch.no_grad():
        for block in model.decoder.blocks:
            block.attention.query.weight.zero_()
            block.attention.query.bias.zero_()
    view = zoo.attend(model, [5, 6, 7, 8])
    T = len(view.layers[0].rows.labels)
    expected = torch.ones(T, T).tril() / torch.arange(1, T + 1)[:, None]
    for layer in view.layers:
        assert_close(layer.weights, expected.expand_as(layer.weights))


def test_known_weights_of_an_additive_scorer(g2p):
    """Without its vector an additive scorer gives all positions the same score."""
    scorer = g2p.decoder.attention.scorers[0]
    before = {name: value.clone() for name, value in scorer.state_dict().items()}
    with torch.no_grad():
        for parameter in scorer.parameters():
            parameter.zero_()
    try:
        (layer,) = zoo.attend(g2p, "zoo", output="Z UW").layers
    finally:
        scorer.load_state_dict(before)
    assert_close(layer.weights, torch.full((1, 3, 3), 1 / 3))

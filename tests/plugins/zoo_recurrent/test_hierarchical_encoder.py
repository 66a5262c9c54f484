import torch

from zoo.plugin import Blueprint
from zoo_recurrent.gru import GRU
from zoo_recurrent.hierarchical_encoder import HierarchicalEncoder


def _encoder(span=3, states="words"):
    torch.manual_seed(0)
    return HierarchicalEncoder(
        input_dim=4,
        words=Blueprint.of(GRU, hidden=5, bidirectional=True),
        sentences=Blueprint.of(GRU, hidden=6),
        span=span,
        states=states,
    ).eval()


def test_states_match_separate_runs_over_words_and_sentences():
    encoder = _encoder()
    inputs = torch.randn(1, 8, 4, generator=torch.Generator().manual_seed(1))
    memory = encoder(inputs, torch.ones(1, 8, dtype=torch.bool))
    assert memory.states.shape == (1, 8, encoder.output_dim) == (1, 8, 16)

    words, summaries = [], []
    for sentence in inputs.split(3, dim=1):  # the last has two words
        word_memory = encoder.words(sentence, torch.ones(sentence.shape[:2], dtype=torch.bool))
        words.append(word_memory.states)
        summaries.append(word_memory.summary)
    text = encoder.sentences(torch.stack(summaries, dim=1), torch.ones(1, 3, dtype=torch.bool))
    torch.testing.assert_close(memory.states[..., :10], torch.cat(words, dim=1))
    repeated = torch.cat([text.states[:, k : k + 1].expand(-1, 3, -1) for k in range(3)], dim=1)
    torch.testing.assert_close(memory.states[..., 10:], repeated[:, :8])
    torch.testing.assert_close(memory.summary, text.summary)
    torch.testing.assert_close(memory.carry["h"], text.carry["h"])


def test_parameter_names():
    prefixes = {key.rpartition(".")[0] for key in _encoder().state_dict()}
    assert prefixes == {
        "words.stack.layers.0.0",
        "words.stack.layers.0.1",
        "sentences.stack.layers.0.0",
    }


def test_sentence_states_are_repeated_for_each_word():
    with_words, sentences = _encoder(), _encoder(states="sentences")
    sentences.load_state_dict(with_words.state_dict())
    inputs, mask = torch.randn(1, 8, 4), torch.ones(1, 8, dtype=torch.bool)
    memory = sentences(inputs, mask)
    assert memory.states.shape == (1, 8, sentences.output_dim) == (1, 8, 6)
    torch.testing.assert_close(memory.states, with_words(inputs, mask).states[..., 10:])

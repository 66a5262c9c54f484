import pytest
import torch
from torch import nn

import zoo

END = 3
SOURCE = torch.tensor([[4, 5, 6, 7, 8, 0], [9, 0, 0, 0, 0, 0]])  # two words a sentence
TARGET = torch.tensor([[1, 4, 5, END, 6, 7, END, 2], [1, 8, END, END, 9, END, 2, 0]])


def torch_cells(stack):
    cells = nn.ModuleList()
    for cell in stack.cells:
        other = nn.LSTMCell(cell.input_dim, cell.hidden)
        other.load_state_dict(cell.state_dict())
        cells.append(other)
    return cells


def lstm(cells, x, state):
    updated = []
    for cell, pair in zip(cells, state, strict=True):
        updated.append(cell(x, pair))
        x = updated[-1][0]
    return updated


def document_logits(decoder, sentence_states, final, sentences):
    """Compute the logits of one document with a loop over its sentences and words.

    sentence_states [K, D] are those of the encoder; final are pairs (h, c) of each layer; sentences
    are lists of token IDs that end with END. The logits of each word and of what follows the last
    sentence are returned.
    """
    words, sentence = torch_cells(decoder.cells), torch_cells(decoder.sentence_cells)
    scorer = decoder.attention.scorers[0]
    g, logits = final, []
    for tokens in sentences:
        s = g
        for token in tokens:
            logits.append(decoder.out(s[-1][0]))
            s = lstm(words, decoder.embedding.table.weight[token], s)
        hidden = torch.tanh(scorer.W(g[-1][0]) + scorer.U(sentence_states))
        m = (hidden @ scorer.v).softmax(dim=0) @ sentence_states
        g = lstm(sentence, torch.cat([s[-1][0], m]), g)
    return torch.stack([*logits, decoder.out(g[-1][0])])


@torch.no_grad()
def test_logits_equal_a_loop_over_sentences_and_words():
    model = zoo.compose("hierarchical-tiny").eval()
    logits = model({"source": SOURCE, "target": TARGET}).logits
    for item, (count, sentences) in enumerate(
        [(3, [[4, 5, END], [6, 7, END]]), (1, [[8, END], [END], [9, END]])]
    ):
        words = model.source.table.weight
        summaries = []
        for pair in SOURCE[item, : 2 * count].split(2):
            valid = words[pair[pair > 0]][None]
            mask = torch.ones(valid.shape[:2], dtype=torch.bool)
            summaries.append(model.encoder.words(valid, mask).summary)
        mask = torch.ones(1, count, dtype=torch.bool)
        memory = model.encoder.sentences(torch.stack(summaries, dim=1), mask)
        final = [(memory.carry["h"][0, n], memory.carry["c"][0, n]) for n in (0, 1)]
        expected = document_logits(model.decoder, memory.states[0], final, sentences)
        torch.testing.assert_close(logits[item, : len(expected)], expected)


def test_attention_is_restricted_to_the_sentences_of_the_source():
    model = zoo.compose("hierarchical-tiny").eval()
    with zoo.recording(model) as log:
        model({"source": SOURCE, "target": TARGET})
    (calls,) = log.values()
    weights = torch.cat(calls, dim=2)[:, 0]  # [B, T, S]
    assert (weights[0, :, ::2] > 0).all()
    assert not weights[0, :, 1::2].any()
    assert (weights[1, :, 0] == 1).all()


def test_a_trained_model_generates_sentences_and_the_end_of_the_document():
    model = zoo.compose(
        "hierarchical-tiny",
        overrides=[
            "model.decoder.hidden=16",
            "model.encoder={words: {hidden: 16}, sentences: {hidden: 16}}",
        ],
    )
    objective = zoo.objective("hierarchical-tiny")
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(60):
        optimizer.zero_grad()
        objective(model({"source": SOURCE, "target": TARGET})).backward()
        optimizer.step()
    sampler = zoo.load_spec("hierarchical-tiny").sections.sampler.build()
    tokens = model.eval().generate({"source": SOURCE}, sampler, max_length=12).tokens[:, 0]
    assert tokens.tolist() == TARGET[:, 1:].tolist()


def test_a_sentence_end_outside_the_vocabulary_raises():
    with pytest.raises(zoo.SpecError, match=r"sentence_end \(16\) must be less than vocab \(16\)"):
        zoo.check("hierarchical-tiny", overrides=["model.decoder.sentence_end=16"])


def test_parameter_names():
    prefixes = {
        key.rpartition(".")[0] for key in zoo.compose("hierarchical-tiny").decoder.state_dict()
    }
    assert prefixes == {
        "embedding.table",
        "cells.cells.0",
        "cells.cells.1",
        "sentence_cells.cells.0",
        "sentence_cells.cells.1",
        "attention.scorers.0",
        "attention.scorers.0.W",
        "attention.scorers.0.U",
        "out",
    }

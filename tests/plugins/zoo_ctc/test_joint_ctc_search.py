import itertools
import math

import pytest
import torch

import zoo
from zoo import ZooError
from zoo.plugin import Blueprint
from zoo_ctc.ctc_greedy import CtcGreedy
from zoo_ctc.joint_ctc_search import JointCtcSearch
from zoo_sampling.beam import Beam
from zoo_sampling.greedy import Greedy
from zoo_sampling.top_k import TopK

BLANK, BOS, EOS = 0, 1, 2
SOURCE = torch.tensor([[3, 4, 5, 6], [7, 8, 3, 0], [4, 0, 0, 0]])


def compose(vocab: int = 6, seed: int = 0) -> zoo.Model:
    """Return a model whose two heads are far from uniform."""
    torch.manual_seed(seed)
    spec = {
        "type": "ctc-attention",
        "source": {"type": "token", "vocab": 9, "dim": 4},
        "encoder": {"type": "gru", "hidden": 3, "bidirectional": True},
        "target": {"type": "token", "vocab": vocab, "dim": 5},
        "decoder": {
            "type": "attentive-rnn",
            "hidden": 4,
            "readout": 3,
            "attention": {"scorer": {"type": "additive", "hidden": 3}, "align": "soft"},
        },
    }
    model = zoo.compose({"zoo": 1, "name": "test", "model": spec}).eval()
    for module in (model.ctc, model.decoder.out):
        torch.nn.init.normal_(module.weight, std=1.5)
    return model


def label_ids(model):
    return [label for label in range(model.ctc.out_features) if label not in model.excluded_ids]


def search(weight: float, width: int = 5, **params) -> JointCtcSearch:
    return JointCtcSearch(search=Blueprint.of(Beam, width=width, **params), weight=weight)


@pytest.mark.parametrize("width", [1, 2, 5])
def test_with_weight_zero_it_equals_beam_search(width):
    model = compose()
    joint = model.generate({"source": SOURCE}, search(0.0, width), max_length=6)
    beam = model.generate({"source": SOURCE}, Beam(width=width), max_length=6)
    assert torch.equal(joint.tokens, beam.tokens)
    assert torch.equal(joint.scores, beam.scores)


def labelling_probabilities(model, item):
    """Probability of every labelling of an item's frames, by enumerating all paths."""
    with torch.no_grad():
        logits, mask = model.frame_logits(SOURCE)
    rows = logits[item][mask[item]].double().softmax(dim=-1).tolist()
    sums = {}
    for path in itertools.product(range(len(rows[0])), repeat=len(rows)):
        labels = tuple(label for label, _ in itertools.groupby(path) if label != BLANK)
        probability = math.prod(row[label] for row, label in zip(rows, path, strict=True))
        sums[labels] = sums.get(labels, 0.0) + probability
    return sums


def attention_logprob(model, item, tokens):
    """Log-probability of the tokens after bos."""
    inputs = torch.tensor([[BOS, *tokens[:-1]]])
    with torch.no_grad():
        logits = model.decoder(inputs, model.encode(SOURCE[item : item + 1]))
    logprobs = logits[0].double().log_softmax(dim=-1)
    return sum(logprobs[t, token].item() for t, token in enumerate(tokens))


def enumerated(model, item, weight, max_length):
    """All hypotheses of at most max_length tokens, best first; the longest may be unfinished."""
    sums = labelling_probabilities(model, item)
    ranked = []
    for length in range(max_length + 1):
        for labels in itertools.product([BOS, *label_ids(model)], repeat=length):
            if length < max_length:
                ctc, tokens = sums.get(labels, 0.0), [*labels, EOS]
            else:  # without eos: the probability of all labellings that start with the labels
                ctc = sum(p for y, p in sums.items() if y[:length] == labels)
                tokens = list(labels)
            if ctc > 0:
                attention = attention_logprob(model, item, tokens)
                ranked.append((weight * math.log(ctc) + (1 - weight) * attention, tokens))
    return sorted(ranked, reverse=True)


@pytest.mark.parametrize("weight", [0.1, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_the_best_hypotheses_match_a_brute_force_enumeration(weight, seed):
    """The beam holds every prefix, so the search is exact."""
    model = compose(vocab=5, seed=seed)
    sampler = search(weight, width=5, length_penalty=0.0, early_stopping="never")
    output = model.generate({"source": SOURCE}, sampler, max_length=2)
    for item in range(len(SOURCE)):
        expected = enumerated(model, item, weight, 2)
        for rank in range(3):
            score, tokens = expected[rank]
            assert output.scores[item, rank].item() == pytest.approx(score, abs=1e-4)
            row = output.tokens[item, rank].tolist()
            assert row[: len(tokens)] == tokens
            assert not any(row[len(tokens) :])


def test_the_ctc_score_changes_the_result():
    model = compose()
    best = [
        model.generate({"source": SOURCE}, search(weight), max_length=5).tokens[:, 0].tolist()
        for weight in (0.0, 0.3, 1.0)
    ]
    assert best[0] != best[1]
    assert best[0] != best[2]


def test_padding_and_other_items_have_no_effect():
    model = compose()
    together = model.generate({"source": SOURCE}, search(0.4, length_penalty=0.0), max_length=5)
    for item, length in enumerate([4, 3, 1]):
        source = SOURCE[item : item + 1, :length]
        alone = model.generate({"source": source}, search(0.4, length_penalty=0.0), max_length=5)
        torch.testing.assert_close(alone.scores[0], together.scores[item])
        width = alone.tokens.shape[-1]
        assert torch.equal(alone.tokens[0], together.tokens[item, :, :width])


def test_greedy_search_selects_the_best_next_label():
    model = compose()
    sampler = JointCtcSearch(search=Blueprint.of(Greedy), weight=0.5)
    output = model.generate({"source": SOURCE}, sampler, max_length=5)
    for item in range(len(SOURCE)):
        tokens = [token for token in output.tokens[item, 0].tolist() if token]
        sums = labelling_probabilities(model, item)
        for t, token in enumerate(tokens):
            prefix = tokens[:t]
            scores = {}
            for label in [BOS, EOS, *label_ids(model)]:
                y = (*prefix, label)
                ctc = sum(p for labels, p in sums.items() if labels[: len(y)] == y)
                ctc = sums.get(tuple(prefix), 0.0) if label == EOS else ctc
                if ctc > 0:
                    score = attention_logprob(model, item, [*prefix, label])
                    scores[label] = 0.5 * score + 0.5 * math.log(ctc)
            assert token == max(scores, key=scores.get)


def test_a_random_search_samples_only_labels_with_a_path():
    sampler = JointCtcSearch(search=Blueprint.of(TopK, k=6), weight=0.1)
    model = compose()
    for seed in range(20):
        generator = torch.Generator().manual_seed(seed)
        output = model.generate({"source": SOURCE}, sampler, max_length=5, generator=generator)
        for item in range(len(SOURCE)):
            tokens = [token for token in output.tokens[item, 0].tolist() if token]
            labels = tuple(token for token in tokens if token != EOS)
            possible = labelling_probabilities(model, item)
            assert any(y[: len(labels)] == labels for y in possible)


def test_a_batch_that_does_not_fit_the_model_is_rejected():
    with pytest.raises(ZooError, match=r"'source'.*IDs from 0 to 8"):
        compose().generate({"source": SOURCE + 9}, search(0.3), max_length=4)


def test_a_frame_sampler_as_search_is_rejected():
    with pytest.raises(ZooError, match=r"'ctc-greedy'.*beam"):
        JointCtcSearch(search=Blueprint.of(CtcGreedy))


def test_a_model_without_a_ctc_head_is_rejected():
    spec = {
        "type": "seq2seq",
        "source": {"type": "token", "vocab": 9, "dim": 4},
        "encoder": {"type": "gru", "hidden": 3},
        "decoder": {"type": "plain-rnn", "hidden": 3},
    }
    model = zoo.compose({"zoo": 1, "name": "test", "model": spec})
    with pytest.raises(ZooError, match=r"'joint-ctc-search'.*CTC head.*ctc-attention"):
        model.generate({"source": SOURCE}, search(0.3), max_length=4)

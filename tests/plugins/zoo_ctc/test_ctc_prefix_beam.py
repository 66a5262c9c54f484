"""Prefix beam search compared with enumeration of all paths."""

import itertools
import math

import numpy as np
import pytest
import torch
from arpa_kit import ARPA

import zoo
from zoo import ZooError
from zoo_ctc.arpa import read_arpa
from zoo_ctc.ctc_greedy import CtcGreedy
from zoo_ctc.ctc_prefix_beam import CtcPrefixBeam

FULL_WIDTH = 200
RECOGNISER = {
    "type": "ctc-recogniser",
    "source": {"type": "token", "vocab": 6, "dim": 4},
    "encoder": {"type": "gru", "hidden": 3},
    "vocab": 3,
}


def rank_all(logprobs, blank, score_fn=lambda labels: 0.0):
    """Return all label sequences of frames [T, V] with their scores, best first."""
    sums = {}
    for path in itertools.product(range(logprobs.shape[1]), repeat=len(logprobs)):
        labels = tuple(s for s, _ in itertools.groupby(path) if s != blank)
        score = sum(logprobs[t, s].item() for t, s in enumerate(path))
        sums[labels] = np.logaddexp(sums.get(labels, -math.inf), score)
    results = [(score + score_fn(labels), labels) for labels, score in sums.items()]
    return [(labels, score) for score, labels in sorted(results, reverse=True)]


def frames(T, seed, V=3):
    torch.manual_seed(seed)
    return torch.randn(1, T, V, dtype=torch.float64).log_softmax(dim=-1)


def decode(sampler, logprobs, blank=0):
    mask = torch.ones(logprobs.shape[:2], dtype=torch.bool)
    decoded = sampler.decode_frames(logprobs, mask, blank=blank, pad=9)
    return [
        (tuple(k for k in row if k != 9), score)
        for row, score in zip(decoded.tokens[0].tolist(), decoded.scores[0].tolist(), strict=True)
        if score > -math.inf
    ]


def assert_same(results, expected):
    assert [labels for labels, _ in results] == [labels for labels, _ in expected]
    for (_, score), (_, exact) in zip(results, expected, strict=True):
        assert score == pytest.approx(exact, abs=1e-9)


@pytest.mark.parametrize("blank", [0, 1])
@pytest.mark.parametrize("T", [1, 2, 3, 4, 5, 6])
def test_a_wide_beam_matches_enumeration(T, blank):
    for seed in range(5):
        logprobs = frames(T, seed)
        assert_same(
            decode(CtcPrefixBeam(width=FULL_WIDTH), logprobs, blank),
            rank_all(logprobs[0], blank),
        )


def arpa_score_fn(path, weight, length_bonus):
    arpa = read_arpa(path)

    def score_fn(labels):
        words, total = ["<s>"], 0.0
        for word in [*map(str, labels), "</s>"]:
            total += arpa.logprob(word, tuple(words))
            words.append(word)
        return weight * total + length_bonus * len(labels)

    return score_fn


@pytest.mark.parametrize("T", [1, 3, 5])
def test_a_wide_beam_with_an_arpa_file_matches_enumeration(T, tmp_path):
    path = tmp_path / "small.arpa"
    path.write_text(ARPA)
    sampler = CtcPrefixBeam(
        width=FULL_WIDTH, language_model=str(path), weight=0.7, length_bonus=0.4
    )
    for seed in range(3):
        logprobs = frames(T, seed)
        expected = rank_all(logprobs[0], 0, arpa_score_fn(path, 0.7, 0.4))
        assert_same(decode(sampler, logprobs), expected)


@pytest.fixture
def ngram(tmp_path):
    """An n-gram model fitted to three sequences, and its file; bos is 3, eos is 4."""
    model = zoo.compose(
        {
            "zoo": 1,
            "name": "counts",
            "model": {
                "type": "language-model",
                "embedding": {"type": "token", "vocab": 5, "dim": 1},
                "decoder": {"type": "ngram", "order": 3, "capacity": 50},
                "bos": 3,
                "eos": 4,
            },
        }
    )
    sequences = torch.tensor([[3, 1, 2, 1, 4], [3, 1, 1, 4, 0], [3, 2, 1, 4, 0]])
    model.decoder.fit(sequences, sequences != 0)
    return model, zoo.save(model, tmp_path / "counts.safetensors")


def model_score_fn(model, weight, length_bonus):
    """Return a function that scores a full sequence with the model."""

    def score_fn(labels):
        target = torch.tensor([[model.bos, *labels, model.eos]])
        outputs = model.eval()({"target": target})
        logprobs = outputs.logits.double().log_softmax(dim=-1)
        total = logprobs.gather(2, target[:, 1:, None]).sum().item()
        return weight * total + length_bonus * len(labels)

    return score_fn


@pytest.mark.parametrize("T", [1, 3, 5])
def test_a_wide_beam_with_a_zoo_ngram_matches_enumeration(T, ngram):
    model, path = ngram
    sampler = CtcPrefixBeam(
        width=FULL_WIDTH, language_model=str(path), weight=1.5, length_bonus=-0.2
    )
    for seed in range(3):
        logprobs = frames(T, seed)
        expected = rank_all(logprobs[0], 0, model_score_fn(model, 1.5, -0.2))
        results = decode(sampler, logprobs)
        assert [labels for labels, _ in results[:10]] == [labels for labels, _ in expected[:10]]
        for (_, score), (_, exact) in zip(results, expected, strict=True):
            assert score == pytest.approx(exact, abs=1e-5)


@pytest.mark.parametrize("spec", ["gpt2-tiny", "rnn-lm"])
def test_other_zoo_language_models_match_enumeration(spec, tmp_path):
    small = {"rnn-lm": ["model.embedding={vocab: 9, dim: 4}", "model.decoder.hidden=5"]}
    model = zoo.compose(spec, overrides=small.get(spec, [])).eval()
    path = zoo.save(model, tmp_path / "other.safetensors")
    sampler = CtcPrefixBeam(width=FULL_WIDTH, language_model=str(path), weight=0.5)
    logprobs = frames(4, 0)
    results = dict(decode(sampler, logprobs))
    for labels, score in rank_all(logprobs[0], 0, model_score_fn(model, 0.5, 0.0)):
        assert results[labels] == pytest.approx(score, abs=1e-5)


def test_a_language_model_changes_the_best_labels(ngram):
    # Label 2 is more probable in the frames; label 1 is the more frequent first label.
    logprobs = torch.tensor([[[0.02, 0.48, 0.5]]]).log()
    assert decode(CtcPrefixBeam(width=9), logprobs)[0][0] == (2,)
    sampler = CtcPrefixBeam(width=9, language_model=str(ngram[1]))
    assert decode(sampler, logprobs)[0][0] == (1,)


def test_paths_are_summed_unlike_in_greedy_decoding():
    # Graves 2012, figure 7.5: the most probable path is empty, the most probable labels are 'a'.
    logprobs = torch.tensor([[[0.6, 0.4]] * 2], dtype=torch.float64).log()
    assert decode(CtcGreedy(), logprobs) == [((), pytest.approx(math.log(0.36)))]
    assert decode(CtcPrefixBeam(width=2), logprobs)[0] == ((1,), pytest.approx(math.log(0.64)))


def test_narrow_beams_and_pruning_give_lower_bounds():
    for seed in range(10):
        logprobs = frames(6, seed, V=4)
        exact = dict(rank_all(logprobs[0], 0))
        for sampler in (CtcPrefixBeam(width=2), CtcPrefixBeam(width=FULL_WIDTH, prune=0.3)):
            for labels, score in decode(sampler, logprobs):
                assert score <= exact[labels] + 1e-9


def test_pruning_keeps_the_most_probable_label():
    logprobs = torch.tensor([[[0.1, 0.3, 0.25, 0.35]]]).log()
    results = {labels for labels, _ in decode(CtcPrefixBeam(width=9, prune=0.28), logprobs)}
    assert results == {(), (1,), (3,)}
    results = {labels for labels, _ in decode(CtcPrefixBeam(width=9, prune=0.9), logprobs)}
    assert results == {(), (3,)}


def test_n_best_with_fewer_hypotheses():
    logprobs = torch.tensor([[[0.5, 0.3, 0.2]], [[0.0, 1.0, 0.0]]]).log()
    mask = torch.ones(2, 1, dtype=torch.bool)
    decoded = CtcPrefixBeam(width=4, n_best=2).decode_frames(logprobs, mask, blank=0, pad=0)
    assert decoded.tokens.tolist() == [[[0], [1]], [[1], [0]]]
    assert decoded.scores[1].tolist() == [0.0, -math.inf]


def test_generate_with_a_spec(ngram):
    spec = {
        "zoo": 1,
        "name": "test",
        "model": RECOGNISER,
        "sampler": {"type": "ctc-prefix-beam", "width": 3, "language_model": str(ngram[1])},
    }
    model = zoo.compose(spec)
    results = zoo.generate(model, [[1, 2, 3], [4]])
    assert [len(each) for each in results] == [3, 3]
    assert all(a.score >= b.score for each in results for a, b in itertools.pairwise(each))


def test_unsuitable_language_models_raise(ngram, tmp_path):
    sampler = CtcPrefixBeam(language_model=str(ngram[1]))
    with pytest.raises(ZooError, match=r"5 tokens.*6 labels"):
        decode(sampler, frames(2, 0, V=6))
    other = zoo.save(zoo.compose("vit-tiny"), tmp_path / "vit.safetensors")
    with pytest.raises(ZooError, match=r"'classifier'.*language model"):
        decode(CtcPrefixBeam(language_model=str(other)), frames(2, 0))


def test_no_valid_labels_raise(tmp_path):
    path = tmp_path / "one.arpa"
    path.write_text("\\data\\\nngram 1=2\n\\1-grams:\n-0.5 1\n-99999 </s>\n\\end\\\n")
    model = zoo.compose({"zoo": 1, "name": "test", "model": RECOGNISER})
    with torch.no_grad():
        model.out.bias.copy_(torch.tensor([-math.inf, -math.inf, 0.0]))
    sampler = CtcPrefixBeam(language_model=str(path))
    with pytest.raises(ZooError, match=r"item 0.*-inf"):
        model.generate({"source": torch.tensor([[1, 2]])}, sampler, max_length=3)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"width": 2, "n_best": 3}, r"n_best \(3\).*width \(2\)"),
        ({"length_bonus": 0.5}, r"length_bonus \(0.5\).*language_model"),
        ({"symbols": "x"}, r"symbols \(x\).*language_model.*not set"),
        ({"language_model": "absent.arpa"}, r"language_model.*absent\.arpa"),
    ],
)
def test_invalid_parameters_raise(params, message):
    with pytest.raises(ZooError, match=message):
        CtcPrefixBeam(**params)

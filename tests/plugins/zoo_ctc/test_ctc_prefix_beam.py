"""Prefix beam search against scoring every labelling by every path."""

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


def rank_labellings(logprobs, blank, score_fn=lambda labels: 0.0):
    """Every labelling of frames [T, V] with its score, best first."""
    sums = {}
    for path in itertools.product(range(logprobs.shape[1]), repeat=len(logprobs)):
        labels = tuple(s for s, _ in itertools.groupby(path) if s != blank)
        score = sum(logprobs[t, s].item() for t, s in enumerate(path))
        sums[labels] = np.logaddexp(sums.get(labels, -math.inf), score)
    found = [(score + score_fn(labels), labels) for labels, score in sums.items()]
    return [(labels, score) for score, labels in sorted(found, reverse=True)]


def frames(T, seed, V=3):
    torch.manual_seed(seed)
    return torch.randn(1, T, V, dtype=torch.float64).log_softmax(dim=-1)


def read(sampler, logprobs, blank=0):
    mask = torch.ones(logprobs.shape[:2], dtype=torch.bool)
    decoded = sampler.decode_frames(logprobs, mask, blank=blank, pad=9)
    return [
        (tuple(k for k in row if k != 9), score)
        for row, score in zip(decoded.tokens[0].tolist(), decoded.scores[0].tolist(), strict=True)
        if score > -math.inf
    ]


def assert_same(found, expected):
    assert [labels for labels, _ in found] == [labels for labels, _ in expected]
    for (_, score), (_, exact) in zip(found, expected, strict=True):
        assert score == pytest.approx(exact, abs=1e-9)


@pytest.mark.parametrize("blank", [0, 1])
@pytest.mark.parametrize("T", [1, 2, 3, 4, 5, 6])
def test_a_wide_beam_finds_every_labelling_and_its_probability(T, blank):
    for seed in range(5):
        logprobs = frames(T, seed)
        assert_same(
            read(CtcPrefixBeam(width=FULL_WIDTH), logprobs, blank),
            rank_labellings(logprobs[0], blank),
        )


def arpa_score_fn(path, weight, bonus):
    arpa = read_arpa(path)

    def score_fn(labels):
        words, total = ["<s>"], 0.0
        for word in [*map(str, labels), "</s>"]:
            total += arpa.logprob(word, tuple(words))
            words.append(word)
        return weight * total + bonus * len(labels)

    return score_fn


@pytest.mark.parametrize("T", [1, 3, 5])
def test_a_wide_beam_with_an_arpa_file_finds_the_best_of_all(T, tmp_path):
    path = tmp_path / "small.arpa"
    path.write_text(ARPA)
    sampler = CtcPrefixBeam(width=FULL_WIDTH, language=str(path), weight=0.7, bonus=0.4)
    for seed in range(3):
        logprobs = frames(T, seed)
        expected = rank_labellings(logprobs[0], 0, arpa_score_fn(path, 0.7, 0.4))
        assert_same(read(sampler, logprobs), expected)


@pytest.fixture
def ngram(tmp_path):
    """A model file of an n-gram model that has read a few sequences; 3 begins, 4 ends."""
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


def model_score_fn(model, weight, bonus):
    """Scores by what the model says of the whole sequence at once."""

    def score_fn(labels):
        target = torch.tensor([[model.bos, *labels, model.eos]])
        outputs = model.eval()({"target": target})
        logprobs = outputs.logits.double().log_softmax(dim=-1)
        total = logprobs.gather(2, target[:, 1:, None]).sum().item()
        return weight * total + bonus * len(labels)

    return score_fn


@pytest.mark.parametrize("T", [1, 3, 5])
def test_a_wide_beam_with_the_zoos_ngrams_finds_the_best_of_all(T, ngram):
    model, path = ngram
    sampler = CtcPrefixBeam(width=FULL_WIDTH, language=str(path), weight=1.5, bonus=-0.2)
    for seed in range(3):
        logprobs = frames(T, seed)
        expected = rank_labellings(logprobs[0], 0, model_score_fn(model, 1.5, -0.2))
        found = read(sampler, logprobs)
        assert [labels for labels, _ in found[:10]] == [labels for labels, _ in expected[:10]]
        for (_, score), (_, exact) in zip(found, expected, strict=True):
            assert score == pytest.approx(exact, abs=1e-5)


@pytest.mark.parametrize("spec", ["gpt2-tiny", "rnn-lm"])
def test_any_other_language_model_will_do(spec, tmp_path):
    small = {"rnn-lm": ["model.embedding={vocab: 9, dim: 4}", "model.decoder.hidden=5"]}
    model = zoo.compose(spec, overrides=small.get(spec, [])).eval()
    path = zoo.save(model, tmp_path / "other.safetensors")
    sampler = CtcPrefixBeam(width=FULL_WIDTH, language=str(path), weight=0.5)
    logprobs = frames(4, 0)
    found = dict(read(sampler, logprobs))
    for labels, score in rank_labellings(logprobs[0], 0, model_score_fn(model, 0.5, 0.0)):
        assert found[labels] == pytest.approx(score, abs=1e-5)


def test_a_language_model_changes_the_answer(ngram):
    # By the frames alone '2' is a little likelier; the counts have seen '1' begin more often.
    logprobs = torch.tensor([[[0.02, 0.48, 0.5]]]).log()
    assert read(CtcPrefixBeam(width=9), logprobs)[0][0] == (2,)
    sampler = CtcPrefixBeam(width=9, language=str(ngram[1]))
    assert read(sampler, logprobs)[0][0] == (1,)


def test_paths_count_together_where_greedy_sees_the_best_alone():
    # Graves 2012, figure 7.5: the likeliest path is empty, the likeliest labelling is 'a'.
    logprobs = torch.tensor([[[0.6, 0.4]] * 2], dtype=torch.float64).log()
    assert read(CtcGreedy(), logprobs) == [((), pytest.approx(math.log(0.36)))]
    assert read(CtcPrefixBeam(width=2), logprobs)[0] == ((1,), pytest.approx(math.log(0.64)))


def test_narrow_beams_and_pruning_only_lose():
    for seed in range(10):
        logprobs = frames(6, seed, V=4)
        exact = dict(rank_labellings(logprobs[0], 0))
        for sampler in (CtcPrefixBeam(width=2), CtcPrefixBeam(width=FULL_WIDTH, prune=0.3)):
            for labels, score in read(sampler, logprobs):
                assert score <= exact[labels] + 1e-9


def test_pruning_leaves_out_what_is_unlikely_but_never_the_likeliest():
    logprobs = torch.tensor([[[0.1, 0.3, 0.25, 0.35]]]).log()
    found = {labels for labels, _ in read(CtcPrefixBeam(width=9, prune=0.28), logprobs)}
    assert found == {(), (1,), (3,)}
    found = {labels for labels, _ in read(CtcPrefixBeam(width=9, prune=0.9), logprobs)}
    assert found == {(), (3,)}


def test_n_best_and_places_that_nothing_fills():
    logprobs = torch.tensor([[[0.5, 0.3, 0.2]], [[0.0, 1.0, 0.0]]]).log()
    mask = torch.ones(2, 1, dtype=torch.bool)
    decoded = CtcPrefixBeam(width=4, n_best=2).read(logprobs, mask, blank=0, pad=0)
    assert decoded.tokens.tolist() == [[[0], [1]], [[1], [0]]]
    assert decoded.scores[1].tolist() == [0.0, -math.inf]


def test_a_spec_names_it(ngram):
    spec = {
        "zoo": 1,
        "name": "test",
        "model": {
            "type": "ctc-recogniser",
            "source": {"type": "token", "vocab": 6, "dim": 4},
            "encoder": {"type": "gru", "hidden": 3},
            "vocab": 3,
        },
        "sampler": {"type": "ctc-prefix-beam", "width": 3, "language": str(ngram[1])},
    }
    model = zoo.compose(spec)
    answers = zoo.generate(model, [[1, 2, 3], [4]])
    assert [len(each) for each in answers] == [3, 3]
    assert all(a.score >= b.score for each in answers for a, b in itertools.pairwise(each))


def test_a_language_of_too_few_symbols_and_a_model_that_is_none_are_refused(ngram, tmp_path):
    sampler = CtcPrefixBeam(language=str(ngram[1]))
    with pytest.raises(ZooError, match="the language model has 5 symbols, the frames 6"):
        read(sampler, frames(2, 0, V=6))
    other = zoo.save(zoo.compose("vit-tiny"), tmp_path / "vit.safetensors")
    with pytest.raises(ZooError, match="'classifier' goes on with no prompt"):
        read(CtcPrefixBeam(language=str(other)), frames(2, 0))


def test_what_no_language_allows_is_said(tmp_path):
    path = tmp_path / "one.arpa"
    path.write_text("\\data\\\nngram 1=2\n\\1-grams:\n-0.5 1\n-99999 </s>\n\\end\\\n")
    model = zoo.compose(
        {
            "zoo": 1,
            "name": "test",
            "model": {
                "type": "ctc-recogniser",
                "source": {"type": "token", "vocab": 6, "dim": 4},
                "encoder": {"type": "gru", "hidden": 3},
                "vocab": 3,
            },
        }
    )
    with torch.no_grad():
        model.out.bias.copy_(torch.tensor([-math.inf, -math.inf, 0.0]))
    sampler = CtcPrefixBeam(language=str(path))
    with pytest.raises(ZooError, match="nothing can be said for item 0: every labelling is imp"):
        model.generate({"source": torch.tensor([[1, 2]])}, sampler, max_length=3)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"width": 2, "n_best": 3}, r"n_best \(3\) must not be above width \(2\)"),
        ({"bonus": 0.5}, r"bonus \(0.5\) makes up for a language model, but there is none"),
        ({"symbols": "x"}, "'symbols' names the words of an ARPA file, but 'language' is none"),
        ({"language": "absent.arpa"}, "there is no file absent.arpa"),
    ],
)
def test_settings_that_cannot_be_are_refused(params, message):
    with pytest.raises(ZooError, match=message):
        CtcPrefixBeam(**params)

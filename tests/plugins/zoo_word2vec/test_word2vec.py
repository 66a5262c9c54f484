"""Skip-gram and CBOW: their logits by hand, the written-out gradient against autograd's."""

import pytest
import torch
import torch.nn.functional as F

import zoo
from zoo import ZooError
from zoo_word2vec.corpus import PADDING, Corpus
from zoo_word2vec.training import (
    NUM_NOISE,
    Chunk,
    EmbeddingTable,
    TrainingConfig,
    _cbow_step,
    _chunks,
    _skip_gram_step,
    learn,
)

TEXT = [["a", "b", "a", "c"], ["b", "d", "a"], ["e"]]


def _model(kind, negatives=2, vocab=6, **token):
    source = {"type": "token", "vocab": vocab, "dim": 4, **token}
    spec = {"zoo": 1, "name": "w", "model": {"type": kind, "source": source}}
    return zoo.compose(spec, overrides=[f"model.negatives={negatives}"])


def test_skip_gram_scores_pairs_by_inner_products():
    model = _model("skip-gram")
    batch = {
        "source": torch.tensor([3]),
        "target": torch.tensor([[4, 0]]),
        "noise": torch.tensor([[[1, 2], [1, 1]]]),
    }
    outputs = model(batch)
    v, u = model.source.table.weight, model.output.weight
    expected = torch.stack([v[3] @ u[4], v[3] @ u[1], v[3] @ u[2]])
    torch.testing.assert_close(outputs.logits[0, 0], expected)
    assert outputs.mask.tolist() == [[True, False]]
    assert outputs.targets.tolist() == [[0, 0]]


def test_the_full_softmax_is_that_of_all_words():
    model = _model("skip-gram", negatives=0)
    batch = {"source": torch.tensor([3]), "target": torch.tensor([[4, 2]])}
    v, u = model.source.table.weight, model.output.weight
    by_hand = -(v[3] @ u.T).log_softmax(dim=-1)[[4, 2]].mean()
    spec = zoo.load_spec("skip-gram-tiny", overrides=["objective=cross-entropy"])
    loss = spec.sections.objective.build()(model(batch))
    torch.testing.assert_close(loss, by_hand)


def test_cbow_takes_the_mean_of_the_words_that_are_there():
    model = _model("cbow", negatives=0)
    batch = {"source": torch.tensor([[3, 0, 5], [0, 0, 0]]), "target": torch.tensor([1, 2])}
    outputs = model(batch)
    v, u = model.source.table.weight, model.output.weight
    torch.testing.assert_close(outputs.logits[0, 0], (v[3] + v[5]) / 2 @ u.T)
    assert outputs.mask.tolist() == [[True], [False]]  # nothing around, nothing to learn


def test_missing_or_misshapen_noise_is_refused():
    model = _model("skip-gram")
    batch = {"source": torch.tensor([3]), "target": torch.tensor([[4, 1]])}
    with pytest.raises(ZooError, match="negatives: 2 needs as many drawn words under 'noise'"):
        model(batch)
    with pytest.raises(ZooError, match=r"'noise' is \[1, 2, 3\], should be \[1, 2, 2\]"):
        model(batch | {"noise": torch.ones(1, 2, 3, dtype=torch.long)})


def test_a_corpus_counts_sorts_and_leaves_out():
    corpus = Corpus.of(TEXT, min_count=2)
    assert list(corpus.words) == [PADDING, "a", "b"]
    assert corpus.counts.tolist() == [0, 3, 2]
    assert corpus.ids.tolist() == [1, 2, 1, 2, 1]
    assert corpus.sentences.tolist() == [0, 0, 0, 1, 1]
    share = 3**0.75 / (3**0.75 + 2**0.75)
    torch.testing.assert_close(corpus.noise(), torch.tensor([0, share, 1], dtype=torch.float64))


def test_frequent_words_are_thinned_out_as_often_as_stated():
    corpus = Corpus.of([["the"] * 9000 + ["cat"] * 1000], min_count=1)
    ids, _ = corpus.subsample(0.01, torch.Generator().manual_seed(0))
    kept = [(ids == word).sum().item() / n for word, n in ((1, 9000), (2, 1000))]
    for share, f in zip(kept, (0.9, 0.1), strict=True):
        expected = (0.01 / f) ** 0.5 + 0.01 / f
        assert share == pytest.approx(expected, abs=4 * (expected / 1000) ** 0.5)
    assert corpus.subsample(0.0, torch.Generator())[0] is corpus.ids


def test_bad_corpora_and_models_are_refused_in_words():
    with pytest.raises(ZooError, match="vocabulary is empty: none of 5 words comes 9 times"):
        Corpus.of(TEXT, min_count=9)
    with pytest.raises(ZooError, match="vocabulary is empty: none of 0 words"):
        Corpus.of([])
    with pytest.raises(ZooError, match="'<pad>' stands for nothing"):
        Corpus.of([["<pad>"]])
    with pytest.raises(ZooError, match="a sentence is a list of words, not a text as 'a cat'"):
        Corpus.of(["a cat"])
    for wrong in ({"window": 0}, {"epochs": 0}, {"rate": 0.0}, {"min_lr": -1.0}, {"sample": -1}):
        with pytest.raises(ZooError, match="epochs and window must be at least 1, both rates"):
            TrainingConfig(**wrong)
    corpus = Corpus.of(TEXT, min_count=1)
    with pytest.raises(ZooError, match="the model has 9 words, the corpus 6"):
        learn(_model("skip-gram", vocab=9), corpus)
    with pytest.raises(ZooError, match="only a model with negatives"):
        learn(_model("skip-gram", negatives=0), corpus)
    with pytest.raises(ZooError, match="embedding 'token' is more than a table"):
        learn(_model("skip-gram", scaled=True), corpus)


@pytest.mark.parametrize("kind", ["skip-gram", "cbow"])
@pytest.mark.parametrize("text", [[["a"]], [["a"] * 50, [], ["a"]]], ids=["once", "often"])
def test_a_language_of_one_word_is_learned_too(kind, text):
    learned = learn(_model(kind, vocab=2), Corpus.of(text, min_count=1), TrainingConfig(sample=0.0))
    assert list(learned.words) == ["a"]
    assert torch.from_numpy(learned.matrix).isfinite().all()


def _make_chunk():
    generator = torch.Generator().manual_seed(0)
    spans = torch.randint(1, 300, (2, 7), generator=generator)
    near = torch.rand(2, 3, 7, generator=generator).round()
    noise = torch.randint(1, 300, (2, NUM_NOISE), generator=generator)
    return Chunk(spans, spans[:, 2:5], near, noise)


def _loss(kind, words, output, chunk, k):
    """Negative sampling, pair by pair, each drawn word weighing k / DRAWN."""
    loss = torch.zeros(())
    for c in range(2):
        for m in range(3):
            u = output[chunk.centers[c, m]]
            around = [words[chunk.spans[c, s]] for s in range(7) if chunk.near[c, m, s]]
            if kind == "cbow" and around:
                around = [torch.stack(around).mean(dim=0)]
            for v in around:
                loss = loss - F.logsigmoid(v @ u)
                for drawn in chunk.noise[c]:
                    loss = loss - k / NUM_NOISE * F.logsigmoid(-(v @ output[drawn]))
    return loss


@pytest.mark.parametrize(("kind", "step"), [("skip-gram", _skip_gram_step), ("cbow", _cbow_step)])
def test_the_written_out_step_is_a_step_down_autograds_gradient(kind, step):
    generator = torch.Generator().manual_seed(1)
    words, output = (torch.randn(300, 4, generator=generator).requires_grad_() for _ in range(2))
    chunk = _make_chunk()
    _loss(kind, words, output, chunk, k=3).backward()
    moved, moved_output = words.detach().clone(), output.detach().clone()
    step(EmbeddingTable(moved), EmbeddingTable(moved_output), chunk, 3, 0.1)
    torch.testing.assert_close(moved, words.detach() - 0.1 * words.grad)
    torch.testing.assert_close(moved_output, output.detach() - 0.1 * output.grad)


def test_many_pairs_of_one_word_weigh_no_more_than_the_rate_allows():
    table = EmbeddingTable(torch.zeros(3, 2))
    which, ones = torch.tensor([1] * 32 + [2]), torch.ones(33)
    table.add(0.2, (which, ones, torch.ones(33, 2)))  # 3.2 / 0.2 = 16 pairs
    assert table.rows.tolist() == [[0, 0], [16, 16], [1, 1]]
    assert not table.pairs.any()


def test_pairs_stay_within_the_window_and_the_sentence():
    sentences = [[f"w{i}" for i in range(n)] for n in (3, 40, 1, 700)]
    corpus = Corpus.of(sentences, min_count=1)
    plan = TrainingConfig(epochs=1, window=4, sample=0.0)
    pairs, possible = set(), set()
    place = torch.arange(len(corpus.ids))
    numbered = Corpus(corpus.words, corpus.counts, place + 1, corpus.sentences)
    for _, chunk in _chunks(numbered, plan, torch.device("cpu")):
        for c, m, s in chunk.near.nonzero().tolist():
            pairs.add((chunk.centers[c, m].item() - 1, chunk.spans[c, s].item() - 1))
    start = 0
    for sentence in sentences:
        for i in range(len(sentence)):
            for j in range(max(0, i - 4), min(len(sentence), i + 5)):
                if i != j:
                    possible.add((start + i, start + j))
        start += len(sentence)
    assert pairs <= possible
    nearest = {(i, j) for i, j in possible if abs(i - j) == 1}
    assert nearest <= pairs  # whatever the reach, the next word is in it
    assert 0.5 < len(pairs) / len(possible) < 0.75  # the mean reach of 1..4 is 2.5


def test_one_seed_learns_the_same_vectors_and_padding_stays_nothing():
    corpus = Corpus.of(TEXT * 50, min_count=1)
    seen = []
    first, second = (
        learn(_model("skip-gram"), corpus, TrainingConfig(epochs=2), progress=seen.append)
        for _ in range(2)
    )
    assert (first.matrix == second.matrix).all()
    assert seen[0] == 0.0
    assert max(seen) < 1
    model = _model("skip-gram")
    learn(model, corpus, TrainingConfig(epochs=1))
    assert not model.source.table.weight[0].any()

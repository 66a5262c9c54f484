"""Training: the gradients against autograd, chunks, and topics that are separated."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import zoo
from zoo import ZooError
from zoo_word2vec.corpus import Corpus
from zoo_word2vec.gradients import EmbeddingTable, WindowChunk, cbow_gradients, skip_gram_gradients
from zoo_word2vec.training import NUM_NOISE, TrainingConfig, _chunks, train

TEXT = [["a", "b", "a", "c"], ["b", "d", "a"], ["e"]]
TOPICS, WORDS, SENTENCES = 5, 20, 2000


def test_invalid_settings_and_models_are_rejected(compose_model):
    for wrong in ({"window": 0}, {"epochs": 0}, {"lr": 0.0}, {"min_lr": -1.0}, {"sample": -1}):
        with pytest.raises(ZooError, match="TrainingConfig"):
            TrainingConfig(**wrong)
    corpus = Corpus.from_sentences(TEXT, min_count=1)
    with pytest.raises(ZooError, match=r"vocabulary of 9,.* 6 words"):
        train(compose_model("skip-gram", vocab=9), corpus)
    with pytest.raises(ZooError, match="negatives: 0"):
        train(compose_model("skip-gram", negatives=0), corpus)
    with pytest.raises(ZooError, match="embedding 'token' is not a single table"):
        train(compose_model("skip-gram", scaled=True), corpus)


@pytest.mark.parametrize("kind", ["skip-gram", "cbow"])
@pytest.mark.parametrize("text", [[["a"]], [["a"] * 50, [], ["a"]]], ids=["once", "often"])
def test_training_with_one_word(compose_model, kind, text):
    vectors = train(
        compose_model(kind, vocab=2),
        Corpus.from_sentences(text, min_count=1),
        TrainingConfig(sample=0.0),
    )
    assert list(vectors.words) == ["a"]
    assert torch.from_numpy(vectors.matrix).isfinite().all()


def _make_chunk():
    generator = torch.Generator().manual_seed(0)
    spans = torch.randint(1, 300, (2, 7), generator=generator)
    window_mask = torch.rand(2, 3, 7, generator=generator).round()
    noise = torch.randint(1, 300, (2, NUM_NOISE), generator=generator)
    return WindowChunk(spans, spans[:, 2:5], window_mask, noise)


def _loss(kind, words, output, chunk, k):
    """Negative sampling loss, pair by pair; each noise word has weight k / NUM_NOISE."""
    loss = torch.zeros(())
    for c in range(2):
        for m in range(3):
            u = output[chunk.centers[c, m]]
            context = [words[chunk.spans[c, s]] for s in range(7) if chunk.window_mask[c, m, s]]
            if kind == "cbow" and context:
                total = torch.stack(context).sum(dim=0)
                # The value of the mean, with the gradient of the sum.
                context = [total + (total / len(context) - total).detach()]
            for v in context:
                loss = loss - F.logsigmoid(v @ u)
                for noise in chunk.noise[c]:
                    loss = loss - k / NUM_NOISE * F.logsigmoid(-(v @ output[noise]))
    return loss


@pytest.mark.parametrize(
    ("kind", "compute"), [("skip-gram", skip_gram_gradients), ("cbow", cbow_gradients)]
)
def test_the_gradients_match_autograd(kind, compute):
    generator = torch.Generator().manual_seed(1)
    words, output = (torch.randn(300, 4, generator=generator).requires_grad_() for _ in range(2))
    chunk = _make_chunk()
    _loss(kind, words, output, chunk, k=3).backward()
    tables = [EmbeddingTable(weight.detach().clone()) for weight in (words, output)]
    for table, updates in zip(tables, compute(*tables, chunk, 3), strict=True):
        table.add(0.1, *updates)
    for table, weight in zip(tables, (words, output), strict=True):
        torch.testing.assert_close(table.rows, weight.detach() - 0.1 * weight.grad)


@pytest.mark.parametrize(("kind", "lr"), [("skip-gram", 0.025), ("cbow", 0.05)])
def test_the_default_learning_rate_is_that_of_the_authors(compose_model, kind, lr):
    corpus = Corpus.from_sentences(TEXT * 50, min_count=1)
    default, explicit, other = (
        train(compose_model(kind), corpus, TrainingConfig(epochs=1, lr=rate))
        for rate in (None, lr, 0.01)
    )
    assert (default.matrix == explicit.matrix).all()
    assert (default.matrix != other.matrix).any()


def test_updates_of_many_pairs_are_scaled_down():
    table = EmbeddingTable(torch.zeros(3, 2))
    rows, ones = torch.tensor([1] * 32 + [2]), torch.ones(33)
    table.add(0.25, (rows, ones, torch.ones(33, 2)))  # 3.2 / 0.25 = 12.8 pairs
    torch.testing.assert_close(table.rows, torch.tensor([[0.0], [3.2], [0.25]]).expand(3, 2))
    assert not table.pairs.any()


def test_pairs_stay_within_the_window_and_the_sentence():
    sentences = [[f"w{i}" for i in range(n)] for n in (3, 40, 1, 700)]
    corpus = Corpus.from_sentences(sentences, min_count=1)
    config = TrainingConfig(epochs=1, window=4, sample=0.0)
    pairs, possible = set(), set()
    place = torch.arange(len(corpus.ids))
    numbered = Corpus(corpus.words, corpus.counts, place + 1, corpus.sentences)
    for _, chunk in _chunks(numbered, config, torch.device("cpu")):
        for c, m, s in chunk.window_mask.nonzero().tolist():
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
    assert nearest <= pairs  # any radius includes the next word
    assert 0.5 < len(pairs) / len(possible) < 0.75  # the mean radius of 1..4 is 2.5


def test_training_is_deterministic_and_padding_stays_zero(compose_model):
    corpus = Corpus.from_sentences(TEXT * 50, min_count=1)
    progress = []
    first, second = (
        train(
            compose_model("skip-gram"), corpus, TrainingConfig(epochs=2), progress=progress.append
        )
        for _ in range(2)
    )
    assert (first.matrix == second.matrix).all()
    assert progress[0] == 0.0
    assert max(progress) < 1
    model = compose_model("skip-gram")
    train(model, corpus, TrainingConfig(epochs=1))
    assert not model.source.table.weight[0].any()


@pytest.mark.parametrize("kind", ["skip-gram", "cbow"])
def test_the_number_of_threads_does_not_change_the_vectors(compose_model, kind):
    corpus, before = Corpus.from_sentences(TEXT * 50, min_count=1), torch.get_num_threads()
    trained = []
    try:
        for threads in (1, 3):
            torch.set_num_threads(threads)
            trained.append(train(compose_model(kind), corpus, TrainingConfig(epochs=1)).matrix)
    finally:
        torch.set_num_threads(before)
    np.testing.assert_allclose(*trained, rtol=1e-5)


def _sentences(seed):
    """Yield sentences of one of five topics; one word in five is of a random topic."""
    rng = np.random.default_rng(seed)
    for _ in range(SENTENCES):
        topic = rng.integers(TOPICS)
        is_random = rng.random(12) < 0.2
        topics = np.where(is_random, rng.integers(TOPICS, size=12), topic)
        yield [f"{t}-{rng.integers(WORDS)}" for t in topics]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("kind", ["skip-gram", "cbow"])
def test_nearest_words_have_the_same_topic(kind, seed):
    """Of the ten nearest words, 95 % have the same topic (chance: 19 %)."""
    corpus = Corpus.from_sentences(_sentences(seed), min_count=1)
    source = {"type": "token", "vocab": len(corpus.words), "dim": 24}
    spec = {"zoo": 1, "name": "topics", "model": {"type": kind, "source": source}}
    model = zoo.compose(spec, seed=seed)
    vectors = train(model, corpus, TrainingConfig(epochs=10, sample=0.0, lr=0.05, seed=seed))
    correct = [
        word.split("-")[0] == near.split("-")[0]
        for word in vectors.words
        for near, _ in vectors.most_similar(word, 10)
    ]
    assert np.mean(correct) >= 0.95, np.mean(correct)

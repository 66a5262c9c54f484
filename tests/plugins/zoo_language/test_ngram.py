import math
from collections import Counter

import pytest
import torch
from nltk.lm import KneserNeyInterpolated, Vocabulary

import zoo
from zoo.plugin import Memory
from zoo_language.ngram import NGram
from zoo_tokens.token import Token


def _decoder(order, capacity=64, vocab=5, smoothing="witten-bell"):
    embedding = Token(vocab=vocab, dim=1)
    return NGram(embedding=embedding, order=order, capacity=capacity, smoothing=smoothing)


def _empty_memory(batch):
    empty = torch.zeros(batch, 0)
    return Memory(empty[:, :, None], empty.bool(), empty)


def _logits(decoder, tokens):
    return decoder(torch.tensor(tokens), _empty_memory(len(tokens)))


def test_a_known_bigram():
    # 1 a b a c, with a=2, b=3, c=4: a is followed by b once and c once, 1 by a.
    decoder = _decoder(order=2)
    sequence = torch.tensor([[1, 2, 3, 2, 4]])
    decoder.fit(sequence, torch.ones_like(sequence, dtype=torch.bool))
    # Predicted tokens: a b a c, four tokens of three types; the uniform probability is 1/5.
    unigram = {v: (c + 3 / 5) / 7 for v, c in {0: 0, 1: 0, 2: 2, 3: 1, 4: 1}.items()}
    after_a = {v: (c + 2 * unigram[v]) / 4 for v, c in {0: 0, 1: 0, 2: 0, 3: 1, 4: 1}.items()}
    expected = torch.tensor([[math.log(after_a[v]) for v in range(5)]])
    torch.testing.assert_close(_logits(decoder, [[2]])[0], expected, atol=1e-6, rtol=0)


def _reference_probability(sequences, order, vocab, context, word):
    """Compute the formula with dictionaries and recursion."""
    counts = Counter()
    for sequence in sequences:
        padded = [-1] * (order - 1) + sequence
        for t in range(order, len(padded)):
            for n in range(1, order + 1):
                counts[tuple(padded[t - n + 1 : t + 1])] += 1

    def p(word, head):
        lower = 1 / vocab if not head else p(word, head[1:])
        following = {g: c for g, c in counts.items() if len(g) == len(head) + 1 and g[:-1] == head}
        if not following:
            return lower
        distinct = len(following)
        count = following.get((*head, word), 0)
        return (count + distinct * lower) / (sum(following.values()) + distinct)

    full = ([-1] * order + context)[-(order - 1) :] if order > 1 else []
    return p(word, tuple(full))


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_every_probability_matches_the_formula(order):
    generator = torch.Generator().manual_seed(order)
    lengths = [7, 4, 6]
    rows = [torch.randint(1, 5, (n,), generator=generator).tolist() for n in lengths]
    tokens = torch.tensor([row + [0] * (7 - len(row)) for row in rows])
    decoder = _decoder(order)
    decoder.fit(tokens[:2], tokens[:2] != 0)
    decoder.fit(tokens[2:], tokens[2:] != 0)  # counts accumulate
    logits = _logits(decoder, [rows[0]])[0]
    torch.testing.assert_close(logits.exp().sum(-1), torch.ones(7), atol=1e-5, rtol=0)
    for t in range(7):
        for word in range(5):
            expected = _reference_probability(rows, order, 5, rows[0][: t + 1], word)
            assert logits[t, word].exp().item() == pytest.approx(expected, abs=1e-6)


def test_a_known_kneser_ney_bigram():
    # As above; the bigrams are 1a, ab, ba, ac, each once: D = 1, shared over all continuations.
    decoder = _decoder(order=2, smoothing="kneser-ney")
    sequence = torch.tensor([[1, 2, 3, 2, 4]])
    decoder.fit(sequence, torch.ones_like(sequence, dtype=torch.bool))
    assert decoder.discounts.tolist() == [pytest.approx(2 / 4), 1]
    # a is preceded by 1 and b, b by a, c by a; the discount of unigrams is 1/2.
    unigram = {v: (max(c - 0.5, 0) + 1.5 / 5) / 4 for v, c in enumerate([0, 0, 2, 1, 1])}
    expected = torch.tensor([[math.log(unigram[v]) for v in range(5)]])
    torch.testing.assert_close(_logits(decoder, [[2]])[0], expected, atol=1e-6, rtol=0)


def _with_uniform_base(estimator, vocab):
    """Let an nltk model of Kneser-Ney interpolate unigrams with the uniform distribution."""

    def unigram_score(word):
        count, total = estimator._continuation_counts(word)
        known = [w for w in map(str, range(vocab)) if estimator._continuation_counts(w)[0]]
        kept = max(count - estimator.discount, 0)
        return (kept + estimator.discount * len(known) / vocab) / total

    estimator.unigram_score = unigram_score


@pytest.mark.parametrize("order", [2, 3, 4])
def test_kneser_ney_matches_nltk(order):
    generator = torch.Generator().manual_seed(order)
    rows = torch.randint(1, 5, (3, 9), generator=generator)
    decoder = _decoder(order, smoothing="kneser-ney")
    decoder.fit(rows, rows > 0)
    decoder.discounts.fill_(0.4)  # nltk has one discount for all lengths
    padded = [["-"] * (order - 1) + [str(token) for token in row] for row in rows.tolist()]
    grams = [
        tuple(row[t - n + 1 : t + 1])
        for row in padded
        for t in range(order, len(row))
        for n in range(1, order + 1)
    ]
    words = Vocabulary([*map(str, range(5)), "-"])
    model = KneserNeyInterpolated(order, 0.4, vocabulary=words)
    _with_uniform_base(model.estimator, 5)
    model.counts.update([grams])
    logits = _logits(decoder, rows.tolist())
    torch.testing.assert_close(logits.exp().sum(-1), torch.ones(3, 9), atol=1e-5, rtol=0)
    for t in range(9):
        context = tuple(padded[0][t + 1 : t + order])
        for word in range(5):
            expected = model.score(str(word), context)
            assert logits[0, t, word].exp().item() == pytest.approx(expected, abs=1e-6)


@torch.no_grad()
def test_kneser_ney_without_counts_of_one_gives_every_token_a_probability():
    # Every bigram occurs twice; the preceding tokens of unigrams are counted as above.
    decoder = _decoder(order=2, smoothing="kneser-ney")
    tokens = torch.tensor([[1, 2, 3, 2, 4]] * 2)
    decoder.fit(tokens, tokens > 0)
    assert decoder.discounts.tolist() == [0.5, 0.5]
    logits = _logits(decoder, [[2]])[0, 0]
    assert logits.isfinite().all()
    assert logits.exp().sum().item() == pytest.approx(1)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("smoothing", ["witten-bell", "kneser-ney"])
def test_counts_beyond_the_range_of_half_precision(smoothing, dtype):
    decoder = _decoder(order=2, smoothing=smoothing)
    tokens = torch.tensor([[1, 2, 3]]).repeat(70_000, 1)
    tokens[:20_000, 2] = 4
    decoder.fit(tokens, tokens > 0)
    expected = _logits(decoder, [[1, 2]])
    logits = _logits(decoder.to(dtype), [[1, 2]])
    assert logits.dtype == dtype
    torch.testing.assert_close(logits.float(), expected, atol=0.05, rtol=0.01)


def test_kneser_ney_prefers_words_with_many_contexts():
    # "3" follows only 2, five times; "4" follows 1, 2 and 5, once each.
    decoder = _decoder(order=2, vocab=8, smoothing="kneser-ney")
    tokens = torch.tensor([[6, 2, 3], [6, 2, 3], [6, 2, 3], [6, 2, 3], [6, 2, 3]])
    decoder.fit(tokens, tokens > 0)
    tokens = torch.tensor([[6, 1, 4], [6, 2, 4], [6, 5, 4]])
    decoder.fit(tokens, tokens > 0)
    after_unseen = _logits(decoder, [[7]])[0, 0]
    assert after_unseen[4] > after_unseen[3]
    smoothed = _decoder(order=2, vocab=8)
    for row in ([[6, 2, 3]] * 5, [[6, 1, 4], [6, 2, 4], [6, 5, 4]]):
        smoothed.fit(torch.tensor(row), torch.tensor(row) > 0)
    after_unseen = _logits(smoothed, [[7]])[0, 0]
    assert after_unseen[3] > after_unseen[4]


def test_steps_equal_teacher_forcing_and_a_state_can_be_reordered():
    decoder = _decoder(order=3)
    tokens = torch.tensor([[1, 2, 3, 2, 4, 3], [1, 4, 4, 2, 2, 3]])
    decoder.fit(tokens, tokens > 0)
    state, pieces = decoder.start(_empty_memory(2), steps=6), []
    for t in range(6):
        logits, state = decoder.step(tokens[:, t : t + 1], state)
        pieces.append(logits)
    torch.testing.assert_close(torch.cat(pieces, dim=1), decoder(tokens, _empty_memory(2)))
    swapped, _ = decoder.step(tokens[:, :1], state.reorder(torch.tensor([1, 0])))
    plain, _ = decoder.step(tokens[:, :1], state)
    torch.testing.assert_close(swapped, plain.flip(0))


def test_counts_are_saved_and_loaded(tmp_path):
    spec = {
        "zoo": 1,
        "name": "ngram",
        "model": {
            "type": "language-model",
            "embedding": {"type": "token", "vocab": 5, "dim": 1},
            "decoder": {"type": "ngram", "order": 3, "capacity": 32},
        },
    }
    model = zoo.compose(spec)
    batch = {"target": torch.tensor([[1, 2, 3, 2, 4, 2]])}
    before = model(batch).logits
    model.decoder.fit(batch["target"], batch["target"] > 0)
    after = model(batch).logits
    assert not torch.equal(before, after)
    loaded = zoo.load(zoo.save(model, tmp_path / "ngram.safetensors"))
    assert torch.equal(loaded(batch).logits, after)


def test_too_many_ngrams_and_a_too_large_order_raise():
    decoder = _decoder(order=2, capacity=2)
    tokens = torch.tensor([[1, 2, 3, 4]])
    with pytest.raises(zoo.ZooError, match=r"3 distinct.*capacity is 2"):
        decoder.fit(tokens, tokens > 0)
    with pytest.raises(zoo.ZooError, match=r"order \(8\).*vocab \(30000\)"):
        _decoder(order=8, vocab=30000)


def test_buffer_names():
    assert list(_decoder(order=2).state_dict()) == ["codes", "counts", "embedding.table.weight"]

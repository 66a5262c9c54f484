import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import zoo
from zoo_objectives.cross_entropy import CrossEntropy
from zoo_objectives.mean_squared_error import MeanSquaredError

TEXTS = torch.tensor([[4, 5, 6, 2], [3, 2, 0, 0], [6, 0, 0, 0]])


def compose(**changes: Any) -> zoo.Model:
    model = {
        "type": "sentence-encoder",
        "source": {"type": "token", "vocab": 7, "dim": 4},
        "encoder": {
            "type": "transformer",
            "layers": 1,
            "attention": {"scorer": "scaled-dot", "align": "soft", "heads": 2},
            "feed_forward": {"hidden": 8},
        },
    }
    return zoo.compose({"zoo": 1, "name": "test", "model": model | changes}).eval()


def states(model: zoo.Model, text: torch.Tensor) -> torch.Tensor:
    return model.encoder(model.source(text), model.source.mask(text)).states[0]


@pytest.mark.parametrize(
    ("pooling", "pooled"),
    [
        ("mean", lambda states: states.mean(dim=0)),
        ("first", lambda states: states[0]),
        ("last", lambda states: states[-1]),
        ("max", lambda states: states.max(dim=0).values),
    ],
)
def test_a_padded_text_is_pooled_over_its_valid_tokens(pooling, pooled):
    model = compose(pooling=pooling, normalise=False)

    vectors = model.embed({"source": TEXTS})

    for text, length, vector in zip(TEXTS, [4, 2, 1], vectors, strict=True):
        expected = pooled(states(model, text[None, :length]))
        torch.testing.assert_close(vector, expected, atol=1e-6, rtol=0)


def test_projections_follow_the_pooling_in_training_too():
    projections = [{"dim": 3}, {"dim": 5, "activation": "none", "bias": False}]
    model = compose(pooling="first", normalise=False, projections=projections)
    first, second = model.projections
    first_states = model.encode(TEXTS).states[:, 0]
    expected = torch.tanh(first_states @ first.map.weight.T + first.map.bias) @ second.map.weight.T

    vectors = model.embed({"source": TEXTS})
    logits = model({"source": TEXTS, "target": TEXTS}).logits[:, 0]

    torch.testing.assert_close(vectors, expected)
    torch.testing.assert_close(logits.diagonal(), torch.full((3,), 20.0))


def test_normalise_scales_vectors_to_length_one():
    model = compose()
    other = compose(normalise=False)
    other.load_state_dict(model.state_dict())

    vectors, plain = model.embed({"source": TEXTS}), other.embed({"source": TEXTS})

    torch.testing.assert_close(vectors.norm(dim=1), torch.ones(3))
    torch.testing.assert_close(F.cosine_similarity(vectors, plain), torch.ones(3))


@torch.no_grad()
def test_logits_are_scaled_cosines_of_all_pairs_in_the_batch():
    model = compose(scale=3.0, normalise=False)
    targets = TEXTS.flip(0)

    outputs = model({"source": TEXTS, "target": targets})

    for i in range(3):
        for j in range(3):
            u = model.embed({"source": TEXTS[i : i + 1]})[0]
            v = model.embed({"source": targets[j : j + 1]})[0]
            cosine = float(u @ v) / (math.sqrt(float(u @ u)) * math.sqrt(float(v @ v)))
            assert float(outputs.logits[i, 0, j]) == pytest.approx(3 * cosine, abs=1e-5)
    assert outputs.targets.tolist() == [[0], [1], [2]]
    assert outputs.mask.all()


@torch.no_grad()
def test_negatives_are_further_candidates():
    model = compose(scale=3.0)
    outputs = model({"source": TEXTS, "target": TEXTS.flip(0), "negative": TEXTS})
    assert outputs.logits.shape == (3, 1, 6)
    vectors = model.embed({"source": TEXTS})
    torch.testing.assert_close(outputs.logits[:, 0, 3:], 3 * vectors @ vectors.T)


@torch.no_grad()
def test_losses_are_those_of_sentence_transformers():
    losses = pytest.importorskip("sentence_transformers.losses")
    targets, scores = TEXTS.flip(0), torch.tensor([0.1, 0.9, 0.5])
    model = compose(scores=True)
    batch = {"source": TEXTS, "target": targets, "score": scores}
    pair = [model.embed({"source": side}) for side in (TEXTS, targets)]
    cosine = losses.CosineSimilarityLoss(None)
    expected = cosine.compute_loss_from_embeddings(pair, scores)
    torch.testing.assert_close(MeanSquaredError()(model(batch)), expected)

    model = compose()
    texts = {"source": TEXTS, "target": targets, "negative": TEXTS.roll(1, 0)}
    vectors = [model.embed({"source": side}) for side in texts.values()]
    ranking = losses.MultipleNegativesRankingLoss(None)
    expected = ranking.compute_loss_from_embeddings(vectors, None)
    torch.testing.assert_close(CrossEntropy()(model(texts)), expected)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_training_matches_texts_with_the_same_words(seed):
    """The two texts of a pair are permutations of each other; 90 % of 64 new pairs match."""
    generator = torch.Generator().manual_seed(seed)
    model = zoo.compose("minilm-tiny", seed=seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

    def pairs(count: int) -> dict[str, torch.Tensor]:
        texts = torch.randint(1, 31, (count, 6), generator=generator)
        order = torch.rand(count, 6, generator=generator).argsort(dim=1)
        return {"source": texts, "target": texts.gather(1, order)}

    for _ in range(300):
        optimizer.zero_grad()
        CrossEntropy()(model.train()(pairs(32))).backward()
        optimizer.step()
    outputs = model.eval()(pairs(64))
    accuracy = (outputs.logits.argmax(dim=-1) == outputs.targets).float().mean()
    assert accuracy >= 0.9

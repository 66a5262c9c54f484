"""Memory networks against transcriptions of the papers, padding, and errors."""

import pytest
import torch
import torch.nn.functional as F

import zoo
from zoo_memory.memory_network import position_weights


def _model(name, *changes):
    return zoo.compose(name, overrides=changes).eval()


def _batch():
    return {
        "story": torch.tensor(
            [[[3, 4, 0], [5, 6, 7], [0, 0, 0]], [[3, 9, 2], [8, 0, 0], [4, 4, 0]]]
        ),
        "question": torch.tensor([[5, 1], [8, 0]]),
        "target": torch.tensor([7, 3]),
    }


def test_position_weights_match_the_formula():
    mask = torch.tensor([[True, True, False]])
    weights = position_weights(mask, torch.zeros(1, 3, 4))
    for j in (1, 2):
        for k in (1, 2, 3, 4):
            expected = (1 - j / 2) - (k / 4) * (1 - 2 * j / 2)
            assert weights[0, j - 1, k - 1].item() == pytest.approx(expected)


def _reference_memory_network(model, batch, item, tying, linear=False):
    """Compute Sukhbaatar et al. 2015, section 2, for one item; linear leaves out the softmax."""
    tables = [embedding.table.weight for embedding in model.embeddings]

    def sentence(words, table):
        words = [w for w in words if w]
        total, J, d = 0, len(words), table.shape[1]
        k = torch.arange(1, d + 1) / d
        for j, word in enumerate(words, 1):
            total = total + ((1 - j / J) - k * (1 - 2 * j / J)) * table[word]
        return total

    facts = [row for row in batch["story"][item].tolist() if any(row)]
    u = sentence(batch["question"][item].tolist(), tables[0])
    for hop in range(model.hops):
        row = hop if tying == "adjacent" else 0
        age = [len(facts) - 1 - i for i in range(len(facts))]
        m = [
            sentence(f, tables[row]) + model.times[row][t] for f, t in zip(facts, age, strict=True)
        ]
        c = [
            sentence(f, tables[row + 1]) + model.times[row + 1][t]
            for f, t in zip(facts, age, strict=True)
        ]
        scores = torch.stack([u @ fact for fact in m])
        if model.empty_memories:
            scores = F.pad(scores, (0, model.memory_size - len(facts)))
        p = (scores if linear else scores.softmax(dim=0))[: len(facts)]
        o = sum(weight * fact for weight, fact in zip(p, c, strict=True))
        u = o + (u if tying == "adjacent" else model.map.weight @ u)
    return (tables[-1] if tying == "adjacent" else model.out.weight) @ u


@pytest.mark.parametrize("tying", ["adjacent", "layerwise"])
@pytest.mark.parametrize("empty", ["true", "false"])
def test_memory_network_matches_the_paper(tying, empty):
    overrides = (f"model.tying={tying}", f"model.empty_memories={empty}")
    model = _model("memory-network-tiny", *overrides)
    logits = model(_batch()).logits
    for item in range(2):
        torch.testing.assert_close(
            logits[item, 0],
            _reference_memory_network(model, _batch(), item, tying),
            atol=1e-5,
            rtol=1e-5,
        )


@pytest.mark.parametrize("tying", ["adjacent", "layerwise"])
def test_linear_start_leaves_out_the_softmax_of_the_hops_until_it_ends(tying, tmp_path):
    overrides = (f"model.tying={tying}", "model.linear_start=true")
    model = _model("memory-network-tiny", *overrides)

    def assert_matches(model, linear):
        assert model.is_linear == linear
        logits = model(_batch()).logits
        for item in range(2):
            expected = _reference_memory_network(model, _batch(), item, tying, linear)
            torch.testing.assert_close(logits[item, 0], expected, atol=1e-5, rtol=1e-5)

    assert_matches(model, linear=True)
    assert_matches(zoo.load(zoo.save(model, tmp_path / "linear.safetensors")), linear=True)
    model.end_linear_start()
    assert_matches(model, linear=False)
    assert_matches(zoo.load(zoo.save(model, tmp_path / "softmax.safetensors")), linear=False)


def test_linear_start_is_the_setting_of_the_published_spec():
    published, tiny = zoo.compose("memory-network-2015"), zoo.compose("memory-network-tiny")
    assert published.is_linear
    assert not tiny.is_linear
    tiny.end_linear_start()
    assert not tiny.is_linear
    assert published.state_dict().keys() - tiny.state_dict().keys() == {
        "attention.align.linear",
        "embeddings.3.table.weight",
        "times.3",
    }


@pytest.mark.parametrize("linear_start", ["true", "false"])
def test_sampled_facts_are_rejected(linear_start):
    overrides = ["model.attention.align=hard", f"model.linear_start={linear_start}"]
    with pytest.raises(zoo.SpecError, match=r"'hard' samples.*the hops"):
        zoo.check("memory-network-tiny", overrides=overrides)


def test_dynamic_memory_matches_the_paper():
    model = _model("dynamic-memory-tiny")
    batch = _batch()
    logits = model(batch).logits
    for item in range(2):
        facts_words = [[w for w in row if w] for row in batch["story"][item].tolist() if any(row)]
        flat = torch.tensor([[w for row in facts_words for w in row]])
        states = model.encoder(model.source(flat), flat > 0).states[0]
        ends = torch.tensor([len(row) for row in facts_words]).cumsum(0) - 1
        question = torch.tensor([[w for w in batch["question"][item].tolist() if w]])
        q = model.encoder(model.source(question), question > 0).summary[0]
        m = q
        for _ in range(model.episodes):
            h = torch.zeros_like(q)
            for c in states[ends]:
                z = [c, m, q, c * q, c * m, (c - q).abs(), (c - m).abs()]
                z += [(c @ model.likeness.weight.T @ other)[None] for other in (q, m)]
                g = model.gate(torch.cat(z)).sigmoid()
                h = g * model.episode(c[None], h[None])[0] + (1 - g) * h
            m = model.update(h[None], m[None])[0]
        expected = model.out(model.answer(q[None], m[None]))
        torch.testing.assert_close(logits[item], expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", ["memory-network-tiny", "dynamic-memory-tiny"])
def test_padding_words_and_facts_have_no_effect(name):
    model, batch = _model(name), _batch()
    wider = {
        "story": F.pad(batch["story"], (0, 2, 0, 3)),
        "question": F.pad(batch["question"], (0, 2)),
        "target": batch["target"],
    }
    torch.testing.assert_close(model(wider).logits, model(batch).logits, atol=1e-6, rtol=1e-6)


def test_an_empty_story_gives_finite_logits():
    for name in ("memory-network-tiny", "dynamic-memory-tiny"):
        model, batch = _model(name), _batch()
        batch["story"] = torch.zeros_like(batch["story"])
        assert model(batch).logits.isfinite().all()


def test_attention_weights_over_the_facts_are_recorded():
    model = _model("memory-network-tiny")
    with zoo.recording(model) as attention:
        model(_batch())
    (weights,) = attention.values()
    assert len(weights) == 2  # hops
    assert weights[0].shape == (2, 1, 1, model.memory_size)
    assert (weights[0] > 0).all()  # empty memories have a weight


def test_without_empty_memories_padding_has_no_weight():
    model = _model("memory-network-tiny", "model.empty_memories=false")
    with zoo.recording(model) as attention:
        model(_batch())
    (weights,) = attention.values()
    assert weights[0].shape == (2, 1, 1, 3)
    assert weights[0][0, 0, 0, 2] == 0


def test_invalid_stories_and_models_raise():
    model, batch = _model("memory-network-tiny"), _batch()
    with pytest.raises(zoo.ZooError, match=r"'story'.*\[2, 9\].*\[B, N, W\]"):
        model(batch | {"story": batch["story"].flatten(1)})
    for name in ("memory-network-tiny", "dynamic-memory-tiny"):
        for empty in (
            {"story": batch["story"][:, :0]},
            {"story": batch["story"][:, :, :0]},
            {"question": batch["question"][:, :0]},
        ):
            with pytest.raises(zoo.ZooError, match="so its examples are empty"):
                _model(name)(batch | empty)
    with pytest.raises(zoo.ZooError, match=r"12 facts.*memory_size is 10"):
        model(batch | {"story": torch.ones(2, 12, 3, dtype=torch.long)})
    with pytest.raises(zoo.SpecError, match=r"output_dim is 16.*dim is 8"):
        _model("memory-network-tiny", "model.attention={heads: 2, project: none, scorer: general}")
    with pytest.raises(zoo.SpecError, match=r"'patches'.*vocabulary"):
        _model("memory-network-tiny", "model.source={type: patches, size: 2, dim: 8}")


def test_reset_parameters_initialises_the_temporal_encodings():
    model = _model("memory-network-tiny")
    with torch.no_grad():
        for temporal in model.times:
            temporal.fill_(torch.nan)

    torch.manual_seed(0)
    model.reset_parameters()

    for temporal in model.times:
        assert 0.03 < temporal.std().item() < 0.3


def test_validation_that_does_not_improve_ends_the_linear_start():
    model = zoo.compose("memory-network-tiny", overrides=["model.linear_start=true"])
    assert not model.observe_validation(is_best=True)
    assert model.is_linear
    assert model.observe_validation(is_best=False)
    assert not model.is_linear
    assert not model.observe_validation(is_best=False)


def test_the_linear_start_can_last_for_a_number_of_validations(tmp_path):
    model = zoo.compose("memory-network-tiny", overrides=["model.linear_start=3"])
    for is_best in (True, False):
        model.observe_validation(is_best=is_best)
        assert model.is_linear
    model = zoo.load(zoo.save(model, tmp_path / "model.safetensors"))
    model.observe_validation(is_best=True)
    assert not model.is_linear
    model.observe_validation(is_best=True)
    assert not model.is_linear


def test_the_scale_of_the_position_encoding_is_that_of_the_words():
    batch = _batch()
    model, scaled = (
        zoo.compose("memory-network-tiny", overrides=[f"model.position_scale={scale}"]).eval()
        for scale in (1, 2)
    )
    scaled.load_state_dict(model.state_dict())
    torch.testing.assert_close(
        scaled._sentences(batch["story"], 1), 2 * model._sentences(batch["story"], 1)
    )
    assert not torch.equal(scaled(batch).logits, model(batch).logits)


def test_noise_makes_facts_older_in_training_only():
    model = zoo.compose("memory-network-tiny", overrides=["model.noise=0.5"])
    mask = torch.tensor([[True] * 6, [True] * 3 + [False] * 3])
    plain = model.eval()._ages(mask)
    assert plain.tolist() == [[5, 4, 3, 2, 1, 0], [2, 1, 0, 0, 0, 0]]
    torch.manual_seed(0)
    noisy = model.train()._ages(mask)
    assert (noisy >= plain).all()
    assert (noisy > plain).any()
    assert noisy.max() < model.memory_size

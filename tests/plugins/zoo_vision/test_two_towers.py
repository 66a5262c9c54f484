import pytest
import torch
import torch.nn.functional as F

import zoo
from zoo import SpecError, ZooError

ENCODER = {
    "type": "transformer",
    "layers": 2,
    "attention": {"scorer": "scaled-dot", "align": "soft", "heads": 2},
    "feed_forward": {"hidden": 12, "activation": "quick-gelu"},
    "norm": {"place": "pre"},
}
IMAGES = {
    "embedding": {"type": "patches", "size": 4, "dim": 8, "image_size": 8},
    "encoder": ENCODER,
    "pooling": "first",
    "dim": 6,
}
TEXTS = {
    "embedding": {"type": "token", "vocab": 20, "dim": 8, "padding": None},
    "encoder": {**ENCODER, "causal": True},
    "pooling": "eos",
    "eos": 3,
    "dim": 6,
}
TOKENS = torch.tensor([[4, 5, 3, 0], [7, 3, 0, 0], [9, 8, 6, 3]])


def compose(source=IMAGES, target=TEXTS, **changes):
    model = {"type": "two-towers", "source": source, "target": target, **changes}
    return zoo.compose({"zoo": 1, "name": "test", "model": model}, seed=0).eval()


@torch.no_grad()
def test_logits_are_scaled_cosines():
    model = compose(scale=3.0, bias=-2.0)
    images = torch.randn(3, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    outputs = model({"source": images, "target": TOKENS})
    u, v = model.embed({"source": images}), model.embed({"target": TOKENS})
    torch.testing.assert_close(u.norm(dim=-1), torch.ones(3))
    for i in range(3):
        for j in range(3):
            expected = 3 * F.cosine_similarity(u[i], v[j], dim=0) - 2
            torch.testing.assert_close(outputs.logits[i, 0, j], expected)
    assert outputs.targets[:, 0].tolist() == [0, 1, 2]
    assert torch.equal(outputs.extras["target_vectors"], v)


@torch.no_grad()
def test_tokens_after_the_end_have_no_effect():
    model, changed = compose(), TOKENS.clone()
    changed[0, 3], changed[1, 2] = 11, 12
    torch.testing.assert_close(model.embed({"target": changed}), model.embed({"target": TOKENS}))
    changed[0, 0] = 11
    assert not torch.allclose(model.embed({"target": changed}), model.embed({"target": TOKENS}))


@torch.no_grad()
@pytest.mark.parametrize(
    ("pooling", "index"), [("first", [0, 0, 0]), ("last", [3, 3, 3]), ("eos", [1, 0, 0])]
)
def test_pooling_selects_a_state(pooling, index):
    """Without an end token, pooling 'eos' uses the highest token."""
    model = compose(target={**TEXTS, "pooling": pooling, "eos": None, "dim": None}, source=TEXTS | {
        "dim": None
    })  # fmt: skip
    tower = model.target
    states = tower.encoder(tower.embedding(TOKENS), tower.embedding.mask(TOKENS)).states
    assert torch.equal(tower(TOKENS), states[torch.arange(3), torch.tensor(index)])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"target": {**TEXTS, "dim": 7}}, "vectors of 6 and 7 features; set the same 'dim'"),
        ({"target": {**TEXTS, "eos": 20}}, r"eos \(20\) must be less than vocab \(20\)"),
        ({"target": {**TEXTS, "pooling": "last"}}, "eos requires pooling 'eos', not 'last'"),
        ({"source": {**IMAGES, "pooling": "eos"}}, "requires tokens, not embedding 'patches'"),
    ],
)
def test_towers_that_do_not_fit_are_rejected(changes, message):
    with pytest.raises(SpecError, match=message):
        compose(**changes)


def test_embed_takes_one_side():
    model = compose()
    with pytest.raises(ZooError, match="either 'source' or 'target'"):
        model.embed(model.example(2, 3))

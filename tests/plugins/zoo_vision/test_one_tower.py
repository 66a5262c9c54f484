import pytest
import torch

import zoo

ATTENTION = {"scorer": "scaled-dot", "align": "soft", "heads": 2}
ENCODER = {
    "type": "transformer",
    "layers": 1,
    "attention": ATTENTION,
    "feed_forward": {"hidden": 8},
}
TEXTS = torch.tensor([[4, 5, 6, 2], [3, 2, 0, 0]])


def build(**changes):
    source = {"embedding": {"type": "token", "vocab": 7, "dim": 4}, "encoder": ENCODER} | changes
    model = {"type": "one-tower", "source": source}
    return zoo.compose({"zoo": 1, "name": "test", "model": model}, seed=0).eval()


@torch.no_grad()
def test_states_and_a_known_vector():
    model = build(pooling="eos", eos=2, dim=3)
    outputs = model({"source": TEXTS})
    expected = model.source.encoder(model.source.embedding(TEXTS), TEXTS != 0).states
    assert torch.equal(outputs.logits, expected)
    pooled = torch.stack([expected[0, 3], expected[1, 1]])
    vectors = pooled @ model.source.projection.weight.T
    torch.testing.assert_close(outputs.extras["vectors"], vectors)
    torch.testing.assert_close(model.embed({"source": TEXTS}), vectors)


def test_no_objective_fits():
    spec = {**build().spec, "objective": "cross-entropy"}
    with pytest.raises(zoo.SpecError, match="no objective fits"):
        zoo.check(spec)


def test_names_of_the_weights():
    names = {".".join(name.split(".")[:2]) for name, _ in build(dim=3).named_parameters()}
    assert names == {"source.embedding", "source.encoder", "source.projection"}

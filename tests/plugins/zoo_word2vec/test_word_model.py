"""Skip-gram and CBOW: known logits, and the noise words of a batch."""

import pytest
import torch

import zoo
from zoo import ZooError


def test_skip_gram_logits_are_inner_products(compose_model):
    model = compose_model("skip-gram")
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


@pytest.mark.parametrize("name", ["skip-gram-2013", "cbow-2013"])
def test_vectors_start_as_in_the_authors_program(name):
    model = zoo.compose(name, overrides=["model.source.vocab=500"])
    weight = model.source.table.weight
    bound = 0.5 / model.source.dim
    assert not weight[0].any()  # padding
    assert 0.99 * bound < weight.abs().max() <= bound
    assert weight[1:].std().item() == pytest.approx(bound / 3**0.5, rel=0.02)


def test_without_negatives_the_softmax_is_over_all_words(compose_model):
    model = compose_model("skip-gram", negatives=0)
    batch = {"source": torch.tensor([3]), "target": torch.tensor([[4, 2]])}
    v, u = model.source.table.weight, model.output.weight
    expected = -(v[3] @ u.T).log_softmax(dim=-1)[[4, 2]].mean()
    spec = zoo.load_spec("skip-gram-tiny", overrides=["objective=cross-entropy"])
    loss = spec.sections.objective.build()(model(batch))
    torch.testing.assert_close(loss, expected)


def test_cbow_averages_the_words_that_are_not_padding(compose_model):
    model = compose_model("cbow", negatives=0)
    batch = {"source": torch.tensor([[3, 0, 5], [0, 0, 0]]), "target": torch.tensor([1, 2])}
    outputs = model(batch)
    v, u = model.source.table.weight, model.output.weight
    torch.testing.assert_close(outputs.logits[0, 0], (v[3] + v[5]) / 2 @ u.T)
    assert outputs.mask.tolist() == [[True], [False]]  # no context words


def test_missing_or_misshapen_noise_is_rejected(compose_model):
    model = compose_model("skip-gram")
    batch = {"source": torch.tensor([3]), "target": torch.tensor([[4, 1]])}
    with pytest.raises(ZooError, match=r"'noise'.*is missing.*\[B, W, 2\]"):
        model(batch)
    with pytest.raises(ZooError, match=r"'noise'.*\[1, 2, 3\].*\[B, W, 2\]"):
        model(batch | {"noise": torch.ones(1, 2, 3, dtype=torch.long)})

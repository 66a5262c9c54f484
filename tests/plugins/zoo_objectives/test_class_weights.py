import pytest
import torch
import torch.nn.functional as F

from zoo import Outputs, ZooError
from zoo_objectives.class_weights import balanced, by_name
from zoo_objectives.cross_entropy import CrossEntropy


class Targets:
    names = ("bad", "good", "rare")

    def ids(self):
        return iter([0, 0, 0, 1])


def test_balanced_weights_are_those_of_sklearn():
    # n_samples / (n_classes * count): 4 / (2 * 3) and 4 / (2 * 1); a class without targets has 0.
    assert balanced(Targets.names, Targets().ids()) == [4 / 6, 2.0, 0.0]


def test_weights_by_name_and_unknown_names():
    assert by_name(Targets.names, {"good": 3.0}) == [1.0, 3.0, 1.0]
    with pytest.raises(ZooError, match=r"class_weights names the class 'god'.*good"):
        by_name(Targets.names, {"god": 3.0})


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_is_that_of_torch(smoothing):
    generator = torch.Generator().manual_seed(0)
    logits, weights = torch.randn(6, 3, generator=generator), torch.tensor([0.5, 2.0, 3.0])
    targets = torch.tensor([0, 1, 2, 0, 0, 1])
    outputs = Outputs(logits[:, None], targets[:, None], torch.ones(6, 1, dtype=torch.bool))
    objective = CrossEntropy(class_weights=weights.tolist(), smoothing=smoothing)
    expected = F.cross_entropy(logits, targets, weight=weights, label_smoothing=smoothing)
    torch.testing.assert_close(objective(outputs), expected)
    assert objective.weight(outputs).item() == pytest.approx(weights[targets].sum().item())
    assert not objective.state_dict()


def test_fit_replaces_names_and_balanced_by_a_list():
    assert CrossEntropy().fit(Targets()) == {}
    assert CrossEntropy(class_weights="balanced").fit(Targets()) == {
        "class_weights": [4 / 6, 2.0, 0.0]
    }
    assert CrossEntropy(class_weights={"bad": 2.0}).fit(Targets()) == {
        "class_weights": [2.0, 1.0, 1.0]
    }
    assert CrossEntropy(class_weights=[1.0, 2.0]).fit(Targets()) == {}


@pytest.mark.parametrize("weights", [[1.0, -1.0], [0.0, 0.0], {"a": float("nan")}])
def test_invalid_weights_raise(weights):
    with pytest.raises(ZooError, match="weights must be finite, at least 0, and not all 0"):
        CrossEntropy(class_weights=weights)


def test_another_number_of_weights_than_of_classes_raises():
    outputs = Outputs(
        torch.zeros(1, 1, 3), torch.zeros(1, 1).long(), torch.ones(1, 1, dtype=torch.bool)
    )
    with pytest.raises(ZooError, match="has 2 weights, but the model has 3 classes"):
        CrossEntropy(class_weights=[1.0, 2.0])(outputs)


def test_weights_that_are_not_fitted_raise():
    outputs = Outputs(
        torch.zeros(1, 1, 2), torch.zeros(1, 1).long(), torch.ones(1, 1, dtype=torch.bool)
    )
    with pytest.raises(ZooError, match="'balanced', which 'zoo train' replaces"):
        CrossEntropy(class_weights="balanced")(outputs)

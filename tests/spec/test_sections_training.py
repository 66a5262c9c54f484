"""`zoo.optimiser` and `zoo.schedule`, and errors in these parts of the section `train`."""

import pytest
import torch
from torch import nn

import zoo
from zoo.plugin import Dataset, Field, TensorSchema
from zoo.registry.component_registry import default_registry
from zoo.spec.initialisation import model_weights

SPEC = """\
extends: gpt2-tiny
name: mine
train:
  data: tokens-under-test
  optimiser: {type: adamw, lr: 0.01, weight_decay: 0.1}
  schedule:
    type: linear
    warmup: 10
  steps: 50
"""


class Tokens(Dataset):
    name = "tokens-under-test"

    def fields(self):
        return {"target": Field("array", TensorSchema(("B", "T"), "integer"))}

    def open(self, *, evaluation=False):
        raise AssertionError("the dataset was opened")

    @classmethod
    def write_example(cls, folder):
        raise AssertionError("no example is needed")


REGISTRY = default_registry().with_components([Tokens], plugin="mine")


@pytest.fixture
def read(tmp_path):
    def read(text=SPEC, overrides=()):
        path = tmp_path / "spec.yaml"
        path.write_text(text)
        return zoo.load_spec(path, overrides=overrides, registry=REGISTRY)

    return read


@pytest.fixture
def check(tmp_path):
    def check(text):
        path = tmp_path / "spec.yaml"
        path.write_text(text)
        return zoo.check(path, registry=REGISTRY)

    return check


def test_the_optimiser_has_all_parameters_once_and_the_values_of_the_spec(read):
    model = zoo.compose("gpt2-tiny")
    optimiser = zoo.optimiser(read(), model)
    assert isinstance(optimiser, torch.optim.AdamW)
    assert [(g["lr"], g["weight_decay"]) for g in optimiser.param_groups] == [
        (0.01, 0.1),
        (0.01, 0),
    ]
    names = [name for group in optimiser.param_groups for name in group["param_names"]]
    assert sorted(names) == sorted(name for name, _ in model.named_parameters())
    assert all(
        ("norm" in name or "bias" in name) for name in optimiser.param_groups[1]["param_names"]
    )


def test_a_model_that_the_zoo_did_not_compose_can_be_trained(read):
    layer = nn.Linear(2, 2)
    layer.bias.requires_grad_(False)
    (group,) = zoo.optimiser(read(), layer).param_groups
    assert group["param_names"] == ["weight"]


def test_a_model_without_trainable_parameters_raises(read):
    with pytest.raises(zoo.ZooError, match="no parameter of this Linear requires a gradient"):
        zoo.optimiser(read(), nn.Linear(2, 2).requires_grad_(False))


def test_steps_of_a_schedule_are_those_of_the_training(read):
    schedule = zoo.schedule(read())
    found = [schedule.factor(step) for step in (1, 10, 11, 31, 50)]
    assert found == pytest.approx([0.1, 1.0, 1.0, 0.5, 1 / 40])
    assert zoo.schedule(read(), steps=20).factor(16) == 0.5


def test_epochs_need_the_number_of_steps(read):
    spec = read(SPEC.replace("steps: 50", "epochs: 2"))
    with pytest.raises(zoo.ZooError, match=r"train.epochs.*pass steps"):
        zoo.schedule(spec)
    assert zoo.schedule(spec, steps=50).factor(50) == pytest.approx(1 / 40)


def test_a_spec_without_the_part_raises(read):
    with pytest.raises(zoo.ZooError, match="'gpt2-tiny' has no section 'train'"):
        zoo.optimiser("gpt2-tiny", nn.Linear(1, 1))
    with pytest.raises(zoo.ZooError, match="has no schedule"):
        zoo.schedule(read(overrides=["train.schedule=null"]))


def test_a_valid_spec_passes_the_check_and_no_dataset_is_opened(check):
    check(SPEC)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "lr: 0.01",
            "lr: -0.01",
            r"spec.yaml:5:32: train.optimiser.lr: is -0.01, but .* greater than 0",
        ),
        ("adamw", "adamv", r"spec.yaml:5:21: train.optimiser: .*'adamv'.*adamw"),
        ("linear", "linar", r"spec.yaml:7:11: train.schedule.*'linar'.*'linear'"),
        ("warmup: 10", "warmup: -1", r"spec.yaml:8:13: train.schedule.warmup: .*"),
        ("warmup: 10", "warmups: 10", r"spec.yaml:8:5: train.schedule.warmups: .*'warmup'"),
        (
            "type: adamw, lr: 0.01, weight_decay: 0.1",
            "type: sgd, lr: 0.01, nesterov: true",
            r"spec.yaml:5:46: train.optimiser.nesterov: nesterov is true, but momentum is 0",
        ),
        (
            "warmup: 10",
            "warmup: 500",
            r"spec.yaml:8:13: train.schedule.warmup: warmup is 500, but the training has 50 steps",
        ),
    ],
)
def test_an_error_has_the_line_of_its_value(check, old, new, message):
    with pytest.raises(zoo.SpecError, match=message):
        check(SPEC.replace(old, new))


@pytest.mark.parametrize("setting", ["patience: 2", "monitor: perplexity"])
def test_early_stopping_without_validation_data_raises(check, setting):
    with pytest.raises(zoo.SpecError, match=r"spec\.yaml:10:\d+: train\.evaluate: .*validation"):
        check(f"{SPEC}  evaluate: {{{setting}}}\n")


def test_model_weights_have_shared_parameters_once_and_only_those_that_are_trained():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(5, 2, padding_idx=0)
            self.out = nn.Linear(2, 5)
            self.out.weight = self.table.weight
            self.norm = nn.LayerNorm(2).requires_grad_(False)
            self.register_buffer("count", torch.zeros(1))

    weights = model_weights(Tied())
    assert [(w.name, w.role) for w in weights] == [
        ("table.weight", "embedding"),
        ("out.bias", "bias"),
    ]
    assert weights[0].padding == 0


def test_a_training_loop_of_your_own(read):
    spec, model = read(), zoo.compose("gpt2-tiny")
    objective, optimiser, schedule = (
        zoo.objective(spec),
        zoo.optimiser(spec, model),
        zoo.schedule(spec),
    )
    batch = model.example(4, 6, torch.Generator().manual_seed(0))
    model.eval()  # without dropout
    before = objective(model(batch)).item()
    for step in range(1, 21):
        for group in optimiser.param_groups:
            group["lr"] = 0.01 * schedule.factor(step)
        optimiser.zero_grad()
        objective(model(batch)).backward()
        optimiser.step()
    assert objective(model(batch)).item() < 0.8 * before


def test_an_error_of_a_preprocessor_is_reported_once_in_its_own_words(tmp_path):
    path = tmp_path / "spec.yaml"
    path.write_text(
        "extends: vit-tiny\nname: digits\npreprocessing: {source: image, target: label}\n"
        "train:\n  data: {type: idx, images: a, labels: b}\n  optimiser: adamw\n  steps: 1\n"
    )
    with pytest.raises(zoo.SpecError) as caught:
        zoo.check(path)
    (problem,) = caught.value.problems
    assert problem.message.startswith("size is required, because the model takes images of any")
    assert (problem.place.line, problem.path) == (3, "preprocessing.source")

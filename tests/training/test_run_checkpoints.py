"""A model that could not be saved is found before the first step."""

import pytest
import torch
from artifact_kit import rewrite
from training_kit import make_spec, write_files

import zoo
from zoo.registry.component_registry import default_registry
from zoo.training.callback import Callback
from zoo_tokens import Token


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return write_files(tmp_path_factory.mktemp("texts"))


class Steps(Callback):
    """Counts the steps of a run."""

    count = 0

    def on_step(self, step):
        self.count += 1


class Unsaved(Token):
    """Multiplies the vectors by a random number that is not saved."""

    name = "unsaved"

    def __init__(self, *, vocab: int, dim: int) -> None:
        super().__init__(vocab=vocab, dim=dim)
        self.register_buffer("factor", torch.randn(()), persistent=False)

    def forward(self, inputs):
        return super().forward(inputs) * self.factor


def _train(spec, folder):
    """Return the error of a training, and how many steps it made."""
    steps = Steps()
    registry = default_registry().with_components([Unsaved], plugin="tests")
    with pytest.raises(zoo.ZooError) as caught:
        zoo.train(spec, output=folder, device="cpu", callbacks=[steps], registry=registry)
    return str(caught.value), steps.count


def test_a_model_whose_file_would_compute_other_outputs_is_not_trained(files, tmp_path):
    spec = make_spec(files, steps=2)
    spec["model"]["source"] = {"type": "unsaved", "vocab": 12, "dim": 16}
    message, steps = _train(spec, tmp_path)
    assert steps == 0
    assert "cannot be saved" in message
    assert "computes other outputs" in message


def test_a_base_that_cannot_be_pinned_is_found_before_the_first_step(files, tmp_path):
    spec = make_spec(files, steps=2)
    model = {key: value for key, value in spec.items() if key != "train"}
    base = zoo.save(zoo.compose(model), tmp_path / "base.safetensors")
    rewrite(base, zoo="1", **dict.fromkeys(("hashes", "digest", "probe", "places")))
    spec["train"]["start"] = str(base)
    spec["adapters"] = {"a": {"type": "lora", "targets": ["*.query"]}}
    message, steps = _train(spec, tmp_path / "run")
    assert steps == 0
    assert "format 1, which has no hashes; save it again" in message

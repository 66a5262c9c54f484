"""`zoo.check` and `zoo.compose` of specs whose training starts from a model."""

import pytest
import torch
from train_command_kit import write_spec
from training_kit import make_spec, weights
from typer.testing import CliRunner

import zoo
from zoo import SpecError
from zoo.cli.main import app


@pytest.fixture(scope="module")
def base(files, tmp_path_factory):
    """The file of a model with preprocessing and tokenizers."""
    path = tmp_path_factory.mktemp("base")
    zoo.train(make_spec(files, steps=1, validation=None), output=path, device="cpu")
    return path / "model.safetensors"


def _spec(files, base, **changes):
    spec = make_spec(files, steps=1, validation=None)
    del spec["preprocessing"]
    return {**spec, **changes, "train": {**spec["train"], "start": str(base)}}


def test_preprocessing_and_tokenizers_are_those_of_the_base(files, base):
    spec, expected = _spec(files, base), zoo.load(base)
    assert zoo.check(spec).parameters == sum(p.numel() for p in expected.parameters())
    model = zoo.compose(spec, seed=3)
    assert model.tokenizer == expected.tokenizer
    assert model.spec["preprocessing"] == expected.spec["preprocessing"]
    fresh = zoo.compose({**make_spec(files), "train": None}, seed=3)
    for found, other in zip(model.parameters(), fresh.parameters(), strict=True):
        assert torch.equal(found, other)
    (update, *_) = zoo.batches(spec, model).epoch(0)
    (same, *_) = zoo.batches(make_spec(files, steps=1), fresh).epoch(0)
    assert torch.equal(update.batches[0]["source"], same.batches[0]["source"])


def test_a_spec_that_extends_a_model_has_its_tokenizers(files, base):
    spec = {
        "extends": str(base),
        "name": "more",
        "train": {**make_spec(files)["train"], "validation": None},
    }
    zoo.check(spec)
    assert zoo.compose(spec).tokenizer == zoo.load(base).tokenizer


def test_a_base_that_is_missing_or_does_not_fit_raises(files, base, tmp_path):
    for function in (zoo.check, zoo.compose):
        with pytest.raises(SpecError, match=r"train\.start: .*none\.safetensors"):
            function(_spec(files, tmp_path / "none.safetensors"))
        wider = {"encoder": {"layers": 1, "feed_forward": {"hidden": 12}}, "decoder": {"layers": 1}}
        with pytest.raises(SpecError, match=r"train\.start: .* does not fit the model"):
            function(_spec(files, base, model=wider))


def test_the_command_composes_the_same_model(files, base, tmp_path):
    path = write_spec(tmp_path, _spec(files, base))
    output = tmp_path / "model.safetensors"
    done = CliRunner().invoke(app, ["compose", str(path), "-o", str(output)])
    assert done.exit_code == 0, done.output
    model = zoo.compose(path)
    assert zoo.load(output).tokenizer == model.tokenizer
    expected, found = model.state_dict(), weights(output)
    assert all(torch.equal(tensor, expected[name]) for name, tensor in found.items())


def test_a_monitored_value_that_no_evaluation_has_is_an_error(files):
    spec = make_spec(files, steps=1)
    spec["train"]["evaluate"] = {"monitor": "blue"}
    with pytest.raises(SpecError, match=r"train.evaluate.monitor: 'blue' is not a result"):
        zoo.check(spec)

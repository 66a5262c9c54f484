"""Checkpoints of adapters, without the weights of the base."""

import pytest
import torch
from training_kit import Stop, assert_equal_weights, make_spec, weights

import zoo
from zoo import ZooError
from zoo.artifact import read_header

ADAPTER = {"type": "lora", "rank": 2, "dropout": 0.1, "targets": ["*.{query,value}"]}


@pytest.fixture
def base(files, tmp_path):
    """The file of a model with the shapes of the specs."""
    spec = {key: value for key, value in make_spec(files).items() if key != "train"}
    return zoo.save(zoo.compose(spec, seed=1), tmp_path / "base.safetensors")


def _spec(files, base, steps, **train):
    settings = {"steps": steps, "validation": None, "start": str(base), **train}
    return {**make_spec(files, **settings), "adapters": {"style": ADAPTER}}


def _checkpoint(run):
    return max((run / "checkpoints").iterdir())


def _train(spec, run, **options):
    zoo.train(spec, output=run, device="cpu", **options)
    return run / "model.safetensors"


def _stop(spec, run, step):
    with pytest.raises(KeyboardInterrupt):
        _train(spec, run, resume=True, callbacks=[Stop(step)])
    return _checkpoint(run) / "model.safetensors"


def test_a_checkpoint_has_the_adapters_and_loads_as_a_model(files, base, tmp_path):
    final = _train(_spec(files, base, 2), tmp_path / "run")
    file = _checkpoint(tmp_path / "run") / "model.safetensors"
    assert all(name.startswith("adapters.") for name in weights(file))
    assert read_header(file).base["name"] == "../../../base.safetensors"
    assert file.stat().st_size < base.stat().st_size
    found, expected = zoo.load(file).state_dict(), zoo.load(final).state_dict()
    assert all(torch.equal(tensor, expected[name]) for name, tensor in found.items())


@pytest.mark.parametrize("average", [None, {"ema": 0.9}])
def test_what_is_unfrozen_is_saved_from_then_on(files, base, tmp_path, average):
    spec = _spec(
        files,
        base,
        6,
        average=average,
        checkpoints={"every": 1},
        freeze=["decoder.blocks.0.feed_forward"],
        unfreeze=[{"at": 3, "match": ["decoder.blocks.0.feed_forward.up"]}],
    )
    whole, run = _train(spec, tmp_path / "whole"), tmp_path / "run"
    for step, more in ((3, 0), (4, 2)):
        names = weights(_stop(spec, run, step))
        trained = [name for name in names if not name.startswith("adapters.")]
        assert len(trained) == more
        others = weights(_checkpoint(run) / "optimiser.safetensors")
        stored = [name for name in others if name.startswith("weights/")]
        assert len(stored) == (len(names) if average else 0)
    assert_equal_weights(whole, _train(spec, run, resume=True))


def test_a_base_that_is_missing_or_has_changed_is_refused(files, base, tmp_path):
    spec, run = _spec(files, base, 4, checkpoints={"every": 1}), tmp_path / "run"
    _stop(spec, run, 2)
    content = base.read_bytes()
    base.unlink()
    message = r"its base is missing; expected .*base\.safetensors, model hash .* --from"
    with pytest.raises(ZooError, match=message):
        _train(spec, run, resume=True)
    other = {key: value for key, value in make_spec(files).items() if key != "train"}
    zoo.save(zoo.compose(other, seed=2), base)
    with pytest.raises(ZooError, match=r"another version of its base: .*; restore the base"):
        _train(spec, run, resume=True)
    base.write_bytes(content[:-4] + b"spam")
    with pytest.raises(ZooError, match=r"base\.safetensors.*; restore the base"):
        _train(spec, run, resume=True)
    base.write_bytes(content)
    _train(spec, run, resume=True)


def test_a_run_is_continued_with_the_new_place_of_its_base(files, base, tmp_path):
    spec = _spec(files, base, 4, checkpoints={"every": 1}, average={"last": 3})
    run = tmp_path / "run"
    whole = _train(spec, tmp_path / "whole")
    _stop(spec, run, 2)
    (tmp_path / "there").mkdir()
    moved = base.rename(tmp_path / "there" / base.name)
    other = {key: value for key, value in make_spec(files).items() if key != "train"}
    zoo.save(zoo.compose(other, seed=2), tmp_path / "other.safetensors")
    with pytest.raises(ZooError, match="its base is missing"):
        _train(spec, run, resume=True, start=str(tmp_path / "other.safetensors"))
    final = _train(spec, run, resume=True, start=str(moved))
    assert_equal_weights(whole, final)
    for file in (final, _checkpoint(run) / "model.safetensors"):
        assert read_header(file).base["name"].endswith("../there/base.safetensors")
        zoo.load(file)
    # Checkpoints before are also found there, when the run is continued again.
    _train(spec, run, resume=True, start=str(moved), overrides=["train.steps=5"])


def test_a_checkpoint_with_all_weights_is_continued(files, base, tmp_path, monkeypatch):
    """Previous versions saved all weights."""
    spec, run = _spec(files, base, 4, checkpoints={"every": 1}), tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr("zoo.training.run_checkpoints.find_pinned", lambda *_: None)
        assert any(name.startswith("encoder.") for name in weights(_stop(spec, run, 2)))
    whole = _train(spec, tmp_path / "whole")
    assert_equal_weights(whole, _train(spec, run, resume=True))
    assert read_header(_checkpoint(run) / "model.safetensors").base is not None

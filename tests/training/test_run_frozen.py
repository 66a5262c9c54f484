"""Training of parts of a model: frozen, and trained later."""

import pytest
import torch
from training_kit import (
    Messages,
    Stop,
    assert_equal_weights,
    make_spec,
    read_log,
    set_dropout,
    weights,
)

import zoo
from zoo.acceleration.binding import bound_accelerations
from zoo.training.setup import Setup

TRAIN = {
    "steps": 8,
    "validation": None,
    "log": {"every": 1},
    "clip": 1.0,
    "freeze": ["source", "encoder", "decoder.blocks.0.feed_forward"],
    "unfreeze": [{"at": 3, "match": ["encoder"]}],
    "groups": [{"match": ["decoder.blocks.0.attention"], "lr_factor": 0.5, "weight_decay": 0.1}],
    "optimiser": {"type": "adamw", "lr": 0.01},
    "schedule": {"type": "linear", "warmup": 2},
}


@pytest.fixture
def spec(files):
    return set_dropout(make_spec(files, **TRAIN), 0.1)


def _changed(spec, folder):
    start = zoo.compose(spec).state_dict()
    found = weights(folder / "model.safetensors")
    return {name for name, tensor in found.items() if not torch.equal(tensor, start[name])}


def test_frozen_parts_do_not_change_until_they_are_unfrozen(spec, tmp_path):
    messages = Messages()
    zoo.train(spec, output=tmp_path / "run", device="cpu", callbacks=[messages])
    assert messages.texts == ["step 3: 4,496 parameters are trained, before 2,272"]
    changed = _changed(spec, tmp_path / "run")
    assert not any(
        name.startswith(("source", "decoder.blocks.0.feed_forward.")) for name in changed
    )
    assert any(name.startswith("encoder.") for name in changed)
    never = {**spec, "train": {**spec["train"], "unfreeze": []}}
    zoo.train(never, output=tmp_path / "never", device="cpu")
    assert not any(name.startswith("encoder.") for name in _changed(never, tmp_path / "never"))


def test_a_run_that_ends_and_is_resumed_equals_an_uninterrupted_one(spec, tmp_path):
    spec = {**spec, "train": {**spec["train"], "checkpoints": {"every": 1}}}
    zoo.train(spec, output=tmp_path / "whole", device="cpu")
    for step in (2, 3, 6):
        with pytest.raises(KeyboardInterrupt):
            zoo.train(
                spec, output=tmp_path / "run", device="cpu", resume=True, callbacks=[Stop(step)]
            )
    zoo.train(spec, output=tmp_path / "run", device="cpu", resume=True)
    assert_equal_weights(*(tmp_path / name / "model.safetensors" for name in ("whole", "run")))
    assert read_log(tmp_path / "whole") == read_log(tmp_path / "run")


def test_an_unfrozen_step_is_built_again_with_the_state_of_its_optimiser(
    spec, tmp_path, monkeypatch
):
    """A captured step has the parameters that it was captured with."""
    seen, original = [], Setup.unfreeze

    def unfreeze(setup, step):
        before = setup.step
        original(setup, step)
        seen.append((before, setup.step))

    monkeypatch.setattr(Setup, "unfreeze", unfreeze)
    zoo.train(spec, output=tmp_path / "run", device="cpu")
    ((old, new),) = seen
    assert old.local is not new.local
    for first, second in zip(
        bound_accelerations(old.local), bound_accelerations(new.local), strict=True
    ):
        assert first is not second
    trained = set(old.local.parameters)
    assert trained < set(new.local.parameters)
    for parameter in trained:
        assert new.local.optimiser.state[parameter] is old.local.optimiser.state[parameter]


def test_evaluations_do_not_change_the_mode_of_frozen_parts(files, tmp_path, monkeypatch):
    settings = {**TRAIN, "validation": make_spec(files)["train"]["validation"], "unfreeze": []}
    modes, original = [], Setup.close

    def close(setup):
        modes.append((setup.model.encoder.training, setup.model.decoder.training))
        original(setup)

    monkeypatch.setattr(Setup, "close", close)
    spec = make_spec(files, **{**settings, "evaluate": {"every": 2}})
    zoo.train(spec, output=tmp_path / "run", device="cpu")
    assert modes == [(False, True)]

"""Signals, losses that are not finite, and full disks."""

import os
import resource
import signal

import pytest
from training_kit import assert_equal_weights, make_spec, read_log

import zoo
from zoo import ZooError
from zoo.training.callback import Callback
from zoo.training.interruption import Interrupted


class SignalAt(Callback):
    """Sends a signal to this process after a step, once or several times."""

    def __init__(self, step, number, times=1):
        self.step, self.number, self.times = step, number, times

    def on_step(self, step):
        if step == self.step:
            for _ in range(self.times):
                os.kill(os.getpid(), self.number)


def _checkpoints(folder):
    return sorted(path.name for path in (folder / "checkpoints").iterdir())


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_saves_a_checkpoint_from_which_the_run_continues(files, tmp_path, number, code):
    spec = make_spec(files, steps=6, validation=None)
    with pytest.raises(Interrupted, match=r"stopped at step 4; continue from .*step-00000004"):
        zoo.train(spec, output=tmp_path / "a", device="cpu", callbacks=[SignalAt(3, number)])
    with pytest.raises(Interrupted) as caught:
        zoo.train(spec, output=tmp_path / "b", device="cpu", callbacks=[SignalAt(1, number)])
    assert caught.value.exit_code == code
    assert _checkpoints(tmp_path / "a") == ["step-00000004"]
    zoo.train(spec, output=tmp_path / "a", device="cpu", resume=True)
    zoo.train(spec, output=tmp_path / "whole", device="cpu")
    assert_equal_weights(tmp_path / "a/model.safetensors", tmp_path / "whole/model.safetensors")
    assert read_log(tmp_path / "a") == read_log(tmp_path / "whole")


def test_a_second_interrupt_ends_the_run_without_a_new_checkpoint(files, tmp_path):
    spec = make_spec(files, checkpoints={"every": 2})
    twice = SignalAt(3, signal.SIGINT, times=2)
    with pytest.raises(KeyboardInterrupt):
        zoo.train(spec, output=tmp_path, device="cpu", callbacks=[twice])
    assert _checkpoints(tmp_path) == ["step-00000002"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_loss_that_is_not_finite_names_step_batch_and_checkpoint(files, tmp_path):
    optimiser = {"type": "sgd", "lr": 1e20}
    spec = make_spec(files, optimiser=optimiser, checkpoints={"every": 1}, log={"every": 1})
    with pytest.raises(ZooError) as caught:
        zoo.train(spec, output=tmp_path, device="cpu")
    message = str(caught.value)
    bad = len([entry for entry in read_log(tmp_path) if "loss" in entry]) + 1
    assert f"the loss of step {bad} is nan" in message
    assert f"(epoch 0, batch {bad - 1}: {files / 'train.source'}:" in message
    newest = _checkpoints(tmp_path)[-1]
    assert f"the last checkpoint is {tmp_path / 'checkpoints' / newest}" in message
    assert newest < f"step-{bad:08d}"
    assert not (tmp_path / "model.safetensors").exists()


def test_the_first_bad_step_is_named_if_losses_are_read_later(files, tmp_path):
    optimiser = {"type": "sgd", "lr": 1e20}
    messages = []
    for every in (1, 12):
        spec = make_spec(files, optimiser=optimiser, log={"every": every}, validation=None)
        with pytest.raises(ZooError) as caught:
            zoo.train(spec, output=tmp_path / str(every), device="cpu")
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


class LimitFileSize(Callback):
    """Limits the size of files after the first checkpoint, as a full disk does."""

    def __init__(self):
        self.limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    def on_checkpoint(self, path):
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, self.limits[1]))

    def remove(self):
        resource.setrlimit(resource.RLIMIT_FSIZE, self.limits)


def test_a_disk_without_space_keeps_the_last_checkpoint(files, tmp_path):
    spec = make_spec(files, steps=6, checkpoints={"every": 2}, validation=None)
    limit = LimitFileSize()
    try:
        with pytest.raises(ZooError) as caught:
            zoo.train(spec, output=tmp_path, device="cpu", callbacks=[limit])
    finally:
        limit.remove()
    folder = tmp_path / "checkpoints"
    assert f"{folder / 'step-00000004'} could not be written: " in str(caught.value)
    assert f"continue from {folder / 'step-00000002'} with --resume" in str(caught.value)
    assert _checkpoints(tmp_path) == ["step-00000002"]
    assert zoo.train(spec, output=tmp_path, device="cpu", resume=True).step == 6


def test_early_stopping_ends_after_evaluations_without_a_better_value(files, tmp_path):
    optimiser = {"type": "sgd", "lr": 1e-12}
    evaluate = {"every": 1, "patience": 2}
    spec = make_spec(files, optimiser=optimiser, evaluate=evaluate)
    result = zoo.train(spec, output=tmp_path, device="cpu")
    assert result.step == 3
    assert result.best["step"] == 1


def test_a_run_with_two_monitored_values_is_resumed_with_the_same_best(files, tmp_path):
    spec = make_spec(
        files,
        optimiser={"type": "adam", "lr": 0.1},
        steps=7,
        evaluate={"every": 1, "monitor": ["loss", "accuracy"], "max_length": 6},
        checkpoints={"every": 100},
    )
    spec = {**spec, "metrics": ["accuracy"]}
    whole = zoo.train(spec, output=tmp_path / "whole", device="cpu")
    stop = SignalAt(5, signal.SIGINT)
    with pytest.raises(Interrupted, match="stopped at step 6"):
        zoo.train(spec, output=tmp_path / "a", device="cpu", callbacks=[stop])
    resumed = zoo.train(spec, output=tmp_path / "a", device="cpu", resume=True)
    losses = [e["validation_loss"] for e in read_log(tmp_path / "a") if "validation_loss" in e]
    assert min(losses) == losses[6] < resumed.best["value"]
    assert resumed.best == whole.best
    assert resumed.best["step"] == 5
    assert _checkpoints(tmp_path / "a") == ["step-00000005", "step-00000007"]
    assert_equal_weights(tmp_path / "a/model.safetensors", tmp_path / "whole/model.safetensors")


def test_validation_uses_the_first_examples(files, tmp_path):
    results = {}
    for limit in (None, 1, 10):
        spec = make_spec(files, steps=1, evaluate={"limit": limit})
        results[limit] = zoo.train(spec, output=tmp_path / str(limit), device="cpu").values["loss"]
    assert results[10] == results[None] != results[1]

"""Runs of training from a spec, and their continuation."""

import json
import random
import time

import pytest
import torch
from training_kit import (
    Messages,
    assert_equal_weights,
    make_spec,
    read_log,
    set_dropout,
    start_server,
    start_training,
    weights,
)

import zoo
from zoo import ZooError
from zoo.artifact import load, read_header


def test_a_run_trains_evaluates_and_saves(files, tmp_path):
    spec = make_spec(files, clip=1.0)
    result = zoo.train(spec, output=tmp_path / "run", device="cpu")
    losses = [entry["loss"] for entry in read_log(tmp_path / "run") if "loss" in entry]
    assert result.step == 12
    assert result.epoch == 1
    assert losses[-1] < losses[0]
    assert result.best["value"] == result.values["loss"]
    stored = read_header(result.path).provenance["train"]
    assert stored["step"] == 12
    assert stored["results"] == result.values
    assert stored["section"]["optimiser"]["lr"] == 0.01
    model = load(result.path)
    assert "train" not in model.spec
    assert [zoo.generate(model, ["a b c"])[0][0].text is not None] == [True]


def test_the_first_steps_equal_a_loop_written_by_hand(files, tmp_path):
    spec = make_spec(files, steps=5, log={"every": 1}, validation=None)
    zoo.train(spec, output=tmp_path / "run", device="cpu")
    model, objective = zoo.accelerate(zoo.compose(spec, seed=0)), zoo.objective(spec)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01, fused=True)
    losses = []
    for update in _training_batches(spec, model).epoch(0):
        if len(losses) == 5:
            break
        loss = objective(model(update.batches[0]))
        loss.backward()
        optimiser.step()
        optimiser.zero_grad()
        losses.append(loss.item())
    assert [entry["loss"] for entry in read_log(tmp_path / "run")] == losses


def _training_batches(spec, model):
    from zoo.data.batches import open_batches
    from zoo.data.preprocessing import fit_preprocessors
    from zoo.spec.spec import load_spec

    read = load_spec(spec)
    training = read.sections.train.build()
    preprocessors = fit_preprocessors(read, model)
    return open_batches(training.data, model, preprocessors, training.batch, seed=0)


def test_a_run_that_the_time_limit_ended_says_so(files, tmp_path):
    spec = make_spec(files, steps=2, evaluate={"every": 1}, validation=None)
    first = zoo.train(spec, output=tmp_path, device="cpu", max_seconds=1e-6)
    assert (first.step, first.out_of_time) == (1, True)
    assert read_header(first.path).provenance["train"]["seconds"] >= 1e-6
    again = zoo.train(spec, output=tmp_path, device="cpu", max_seconds=1e-6, resume=True)
    assert (again.step, again.out_of_time) == (1, True)
    whole = zoo.train(spec, output=tmp_path, device="cpu", resume=True)
    assert (whole.step, whole.out_of_time) == (2, False)


def test_a_run_that_ends_by_itself_is_not_out_of_time(files, tmp_path):
    spec = make_spec(files, steps=1)
    complete = zoo.train(spec, output=tmp_path / "steps", device="cpu", max_seconds=1e-6)
    assert (complete.step, complete.out_of_time) == (1, False)
    optimiser, evaluate = {"type": "sgd", "lr": 1e-30}, {"every": 1, "patience": 1}
    spec = make_spec(files, steps=9, optimiser=optimiser, evaluate=evaluate)
    early = zoo.train(spec, output=tmp_path / "patience", device="cpu", max_seconds=1e9)
    assert (early.step, early.out_of_time) == (2, False)
    limit = {"device": "cpu", "max_seconds": 1e-6, "resume": True}
    assert not zoo.train(spec, output=tmp_path / "patience", **limit).out_of_time


def _resumable_spec(files, steps=30):
    spec = make_spec(
        files,
        steps=steps,
        average={"ema": 0.9},
        schedule={"type": "inverse-sqrt", "warmup": 5},
        checkpoints={"every": 4},
        evaluate={"every": 10},
        log={"every": 3},
        clip=1.0,
    )
    return set_dropout(spec, 0.1)


def _kill_and_resume(spec, output, kills, rng, seconds):
    """Train in child processes that are killed at random moments, then to the end."""
    for _ in range(kills):
        child = start_training(spec, output)
        time.sleep(rng.uniform(0.0, seconds))
        child.kill()
        child.join()
    child = start_training(spec, output)
    child.join()
    assert child.exitcode == 0


@pytest.mark.parametrize("kills", [1, pytest.param(50, marks=pytest.mark.slow)])
def test_a_killed_run_continues_bit_for_bit(files, tmp_path, kills):
    spec = _resumable_spec(files)
    start_server()
    started = time.monotonic()
    whole = start_training(spec, tmp_path / "whole")
    whole.join()
    seconds = time.monotonic() - started
    _kill_and_resume(spec, tmp_path / "killed", kills, random.Random(kills), seconds)
    assert_equal_weights(
        tmp_path / "whole" / "model.safetensors", tmp_path / "killed" / "model.safetensors"
    )
    last = "checkpoints/step-00000030/optimiser.safetensors"
    assert_equal_weights(tmp_path / "whole" / last, tmp_path / "killed" / last)
    assert read_log(tmp_path / "whole") == read_log(tmp_path / "killed")
    left = [path.name for path in (tmp_path / "killed" / "checkpoints").iterdir()]
    assert [name for name in left if name.startswith(".")] == []


def test_a_resumed_run_equals_one_of_more_steps(files, tmp_path):
    longer, shorter = _resumable_spec(files, steps=9), _resumable_spec(files, steps=6)
    zoo.train(longer, output=tmp_path / "whole", device="cpu")
    zoo.train(shorter, output=tmp_path / "parts", device="cpu")
    zoo.train(longer, output=tmp_path / "parts", device="cpu", resume=True)
    assert_equal_weights(
        tmp_path / "whole" / "model.safetensors", tmp_path / "parts" / "model.safetensors"
    )


def test_a_folder_with_a_run_is_not_overwritten(files, tmp_path):
    spec = make_spec(files, steps=1)
    zoo.train(spec, output=tmp_path, device="cpu")
    with pytest.raises(ZooError, match="contains a run; continue it with --resume"):
        zoo.train(spec, output=tmp_path, device="cpu")


def test_resuming_a_finished_run_reports_it(files, tmp_path):
    from zoo.training.callback import Callback

    messages = []

    class Messages(Callback):
        def on_message(self, text):
            messages.append(text)

    spec = make_spec(files, steps=2)
    first = zoo.train(spec, output=tmp_path, device="cpu")
    again = zoo.train(spec, output=tmp_path, device="cpu", resume=True, callbacks=[Messages()])
    assert messages == [f"the run in {tmp_path} is finished: step 2"]
    assert again == first


def test_allowed_changes_are_reported_and_others_are_rejected(files, tmp_path):
    from zoo.training.callback import Callback

    messages = []

    class Messages(Callback):
        def on_message(self, text):
            messages.append(text)

    zoo.train(make_spec(files, steps=2), output=tmp_path, device="cpu")
    longer = make_spec(files, steps=3, optimiser={"type": "adam", "lr": 0.02})
    zoo.train(longer, output=tmp_path, device="cpu", resume=True, callbacks=[Messages()])
    assert messages == [
        "changed: train.optimiser.lr: 0.01 -> 0.02",
        "changed: train.steps: 2 -> 3",
    ]
    other = make_spec(files, steps=4, batch={"items": 4})
    with pytest.raises(ZooError, match=r"train.batch.items: 8 -> 4: the position in the data"):
        zoo.train(other, output=tmp_path, device="cpu", resume=True)


def test_a_parameter_that_was_added_since_has_its_default(files, tmp_path):
    zoo.train(make_spec(files, steps=2), output=tmp_path, device="cpu")
    (checkpoint,) = (tmp_path / "checkpoints").iterdir()
    state = json.loads((checkpoint / "state.json").read_text())
    del state["spec"]["train"]["data"]["delimiter"]  # as written by an earlier version
    del state["sha256"], state["format"]
    (checkpoint / "state.json").write_text(json.dumps(state))
    result = zoo.train(make_spec(files, steps=3), output=tmp_path, device="cpu", resume=True)
    assert result.step == 3


def test_training_does_not_change_the_random_state_of_the_caller(files, tmp_path):
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    zoo.train(make_spec(files, steps=1), output=tmp_path, device="cpu")
    assert torch.equal(torch.rand(2), expected)


def test_the_log_is_json_lines(files, tmp_path):
    zoo.train(make_spec(files, steps=10), output=tmp_path, device="cpu")
    entries = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [entry["step"] for entry in entries] == [5, 8, 10, 10]
    assert {"loss", "lr", "tokens_per_second"} <= entries[0].keys()
    assert "validation_loss" in entries[1]


def test_a_spec_without_training_is_rejected(files, tmp_path):
    spec = make_spec(files)
    del spec["train"]
    with pytest.raises(ZooError, match="has no section 'train'"):
        zoo.train(spec, output=tmp_path)


@pytest.mark.parametrize("average", ["last", "best"])
@pytest.mark.parametrize(("every", "found"), [(6, 1), (3, 2), (2, 3)])
def test_an_average_of_fewer_checkpoints_is_reported(files, tmp_path, average, every, found):
    messages = Messages()
    spec = make_spec(files, steps=6, average={average: 3}, evaluate={"every": every})
    result = zoo.train(spec, output=tmp_path, device="cpu", callbacks=[messages])
    assert len(result.checkpoints) == found
    assert read_header(result.path).provenance["train"]["checkpoints"] == result.checkpoints
    expected = f"train.average asks for 3 checkpoints, but the run has {found}; "
    assert [text.startswith(expected) for text in messages.texts] == [True] * (found < 3)


def test_averages_of_the_last_checkpoints(files, tmp_path):
    spec = make_spec(files, steps=6, average={"last": 2}, checkpoints={"every": 3})
    result = zoo.train(spec, output=tmp_path, device="cpu")
    final = weights(result.path)
    parts = [weights(path) for path in sorted(tmp_path.glob("checkpoints/*/model.safetensors"))]
    assert len(parts) == 2
    for name, tensor in final.items():
        mean = (parts[0][name].double() + parts[1][name].double()) / 2
        torch.testing.assert_close(tensor, mean.float(), rtol=0, atol=0)

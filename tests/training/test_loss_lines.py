"""When lines of the log are written."""

import re
import time

import pytest
from training_kit import make_spec, read_log

import zoo
from zoo import ZooError
from zoo.training import loss_lines as loss_record
from zoo.training.callback import Callback


class Arrival:
    """The arrival of values that are copied from a GPU."""

    def __init__(self, arrived):
        self.arrived = arrived

    def query(self):
        return self.arrived

    def synchronize(self):
        self.arrived = True


class Events(Callback):
    """Notes steps and lines; waits or raises an error after a step."""

    def __init__(self, *, error_at=None, wait_at=None, seconds=0.0):
        self.events = []
        self.times = {}
        self.seconds_of_lines = []
        self.error_at, self.wait_at, self.seconds = error_at, wait_at, seconds

    def on_step(self, step):
        self.events.append(step)
        self.times[step] = time.monotonic()
        if step == self.wait_at:
            time.sleep(self.seconds)
        if step == self.error_at:
            raise RuntimeError("a test")

    def on_log(self, entry):
        self.events.append(f"line {entry['step']}")
        self.seconds_of_lines.append(entry["seconds"])


def delay(monkeypatch, *, arrived=False):
    """Let values arrive later than they are copied, as from a GPU."""
    monkeypatch.setattr(loss_record, "_record_arrival", lambda values: Arrival(arrived))


@pytest.fixture(params=["at once", "later", pytest.param("gpu", marks=pytest.mark.gpu)])
def device(request, monkeypatch):
    """A device, and whether the losses of a step arrive with its end."""
    if request.param == "later":
        delay(monkeypatch)
    return "cuda" if request.param == "gpu" else "cpu"


@pytest.fixture
def is_later(request, device):
    return request.node.callspec.params["device"] != "at once"


def steps_of_lines(folder):
    return [line["step"] for line in read_log(folder)]


def test_a_line_that_is_copied_is_written_when_the_next_step_was_started(
    files, tmp_path, device, is_later
):
    events = Events()
    spec = make_spec(files, steps=5, log={"every": 2}, validation=None)
    zoo.train(spec, output=tmp_path, device=device, callbacks=[events])
    written_later = [1, 2, "line 2", 3, 4, "line 4", "line 5", 5]
    written_at_once = [1, "line 2", 2, 3, "line 4", 4, "line 5", 5]
    assert events.events == (written_later if is_later else written_at_once)
    assert steps_of_lines(tmp_path) == [2, 4, 5]


def test_lines_are_those_of_losses_that_are_read_at_once(files, tmp_path, monkeypatch):
    spec = make_spec(
        files, steps=9, log={"every": 1}, evaluate={"every": 3}, checkpoints={"every": 2}, clip=1.0
    )
    zoo.train(spec, output=tmp_path / "at-once", device="cpu")
    delay(monkeypatch)
    zoo.train(spec, output=tmp_path / "later", device="cpu")
    assert read_log(tmp_path / "later") == read_log(tmp_path / "at-once")


def test_a_line_is_written_although_an_error_follows(files, tmp_path, device):
    spec = make_spec(files, steps=5, log={"every": 2}, validation=None)
    with pytest.raises(RuntimeError, match="a test"):
        zoo.train(spec, output=tmp_path, device=device, callbacks=[Events(error_at=2)])
    assert steps_of_lines(tmp_path) == [2]


def test_a_checkpoint_has_the_line_of_its_step(files, tmp_path, device):
    spec = make_spec(files, steps=6, log={"every": 2}, checkpoints={"every": 2}, validation=None)
    with pytest.raises(RuntimeError, match="a test"):
        zoo.train(spec, output=tmp_path, device=device, callbacks=[Events(error_at=5)])
    zoo.train(spec, output=tmp_path, device=device, resume=True)
    assert steps_of_lines(tmp_path) == [2, 4, 6]


def test_a_run_without_further_time_ends_with_a_checkpoint_and_a_line(files, tmp_path, device):
    spec = make_spec(files, steps=1000, log={"every": 1}, validation=None)
    events = Events(wait_at=1, seconds=0.3)
    result = zoo.train(spec, output=tmp_path, device=device, callbacks=[events], max_seconds=0.25)
    assert result.step in (1, 2)
    assert steps_of_lines(tmp_path) == list(range(1, result.step + 1))
    assert result.path.exists()
    assert result.out_of_time


def test_a_loss_that_is_not_finite_ends_the_run(files, tmp_path, device):
    optimiser = {"type": "sgd", "lr": 1e20}
    spec = make_spec(files, steps=9, optimiser=optimiser, log={"every": 2}, validation=None)
    with pytest.raises(ZooError, match=r"the loss of step \d is (nan|inf)"):
        zoo.train(spec, output=tmp_path, device=device)
    assert steps_of_lines(tmp_path) == []


def test_an_error_after_a_loss_that_is_not_finite_names_it(files, tmp_path, monkeypatch):
    delay(monkeypatch)
    optimiser = {"type": "sgd", "lr": 1e20}
    spec = make_spec(files, steps=9, optimiser=optimiser, log={"every": 2}, validation=None)
    with pytest.raises(RuntimeError, match="a test") as caught:
        zoo.train(spec, output=tmp_path, device="cpu", callbacks=[Events(error_at=2)])
    (note,) = caught.value.__notes__
    assert re.fullmatch(r"the loss of step \d is (nan|inf)", note)


def test_the_wait_for_the_next_batch_is_not_in_the_time_of_a_line(files, tmp_path, monkeypatch):
    delay(monkeypatch, arrived=True)
    spec = make_spec(files, steps=3, log={"every": 2}, validation=None)
    start, events = time.monotonic(), Events(wait_at=2, seconds=0.2)
    zoo.train(spec, output=tmp_path, device="cpu", callbacks=[events])
    assert events.seconds_of_lines[0] <= events.times[2] - start

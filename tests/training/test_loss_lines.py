"""When lines of the log are written."""

import pytest
from training_kit import make_spec, read_log

import zoo
from zoo.training.callback import Callback

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


class Events(Callback):
    """Notes steps and lines, and raises an error after a step."""

    def __init__(self, error_at=None):
        self.events = []
        self.error_at = error_at

    def on_step(self, step):
        self.events.append(step)
        if step == self.error_at:
            raise RuntimeError("a test")

    def on_log(self, entry):
        self.events.append(f"line {entry['step']}")


@pytest.mark.parametrize("device", DEVICES)
def test_the_line_of_a_step_on_a_gpu_is_written_when_the_next_one_was_started(
    files, tmp_path, device
):
    events = Events()
    spec = make_spec(files, steps=5, log={"every": 2}, validation=None)
    zoo.train(spec, output=tmp_path, device=device, callbacks=[events])
    written_later = [1, 2, "line 2", 3, 4, "line 4", "line 5", 5]
    written_at_once = [1, "line 2", 2, 3, "line 4", 4, "line 5", 5]
    assert events.events == (written_later if device == "cuda" else written_at_once)
    lines = read_log(tmp_path)
    assert [line["step"] for line in lines] == [2, 4, 5]
    assert all(line["loss"] > 0 for line in lines)


@pytest.mark.parametrize("device", DEVICES)
def test_a_line_is_written_although_an_error_follows(files, tmp_path, device):
    spec = make_spec(files, steps=5, log={"every": 2}, validation=None)
    with pytest.raises(RuntimeError, match="a test"):
        zoo.train(spec, output=tmp_path, device=device, callbacks=[Events(error_at=2)])
    assert [line["step"] for line in read_log(tmp_path)] == [2]


@pytest.mark.parametrize("device", DEVICES)
def test_a_checkpoint_has_the_line_of_its_step(files, tmp_path, device):
    spec = make_spec(files, steps=4, log={"every": 2}, checkpoints={"every": 2}, validation=None)
    events = Events(error_at=3)
    with pytest.raises(RuntimeError, match="a test"):
        zoo.train(spec, output=tmp_path, device=device, callbacks=[events])
    zoo.train(spec, output=tmp_path, device=device, resume=True)
    assert [line["step"] for line in read_log(tmp_path)] == [2, 4]

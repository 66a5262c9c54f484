"""The plot of a log."""

import json

import pytest

from zoo import plotting
from zoo.training.run_log import plot_log

Image = pytest.importorskip("PIL.Image")
pytest.importorskip("matplotlib")

LOSSES = [{"step": step, "loss": 3 / step, "lr": 0.01 * step} for step in range(1, 6)]
RESULT = {"step": 5, "validation_loss": 1.0}


@pytest.fixture(autouse=True)
def draw(monkeypatch):
    """Draw the pictures, unlike the other tests."""
    monkeypatch.setattr("zoo.training.run_log.write_png", plotting.write_png)


def _plot(folder, entries):
    log = folder / "log.jsonl"
    log.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    plot_log(log, folder / "loss.png", "title")
    with Image.open(folder / "loss.png") as picture:
        return picture.size, len(picture.convert("RGB").getcolors(maxcolors=2**24))


def test_losses_results_and_the_learning_rate_are_drawn(tmp_path):
    size, colours = _plot(tmp_path, [*LOSSES, RESULT])
    assert size == (1120, 832)
    assert colours > 3


def test_each_metric_has_a_row(tmp_path):
    (_, height), _ = _plot(tmp_path, [*LOSSES, {**RESULT, "validation_bleu": 3.0}])
    assert height == 1123


def test_a_log_without_losses_has_no_plot(tmp_path):
    with pytest.raises(FileNotFoundError):
        _plot(tmp_path, [])

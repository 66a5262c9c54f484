"""The plot has a curve for each seed, and the target if it is that of the same metric."""

import math
from xml.etree import ElementTree

import pytest
from recipe_kit import make_reproduction

from zoo_lab.reproduce.curve_plot import plot_curves
from zoo_lab.reproduce.recipe_schema import Figure

CURVE = [
    {"step": step, "validation_accuracy": value, "validation_loss": 2 * value}
    for step, value in ((100, 0.1), (500, 0.6), (1000, 0.8))
]
TARGET = "target, test accuracy: at least 90 %"


def _figure(**changes):
    keys = {"value": "test/accuracy", "label": "test accuracy", "unit": "%", "at_least": 90}
    return Figure(**keys | changes)


def _plot(*figures, seeds=1, curve=CURVE, test=0.7):
    values = [{figure.value: test for figure in figures}] * seeds
    return plot_curves(make_reproduction(figures, values, curve=curve))


def _elements(picture, tag):
    return [element for element in ElementTree.fromstring(picture).iter() if tag in element.tag]


def _texts(picture):
    return [element.text for element in _elements(picture, "text")]


def _heights(picture):
    """Return the positions of the points of the first curve, and of the ticks by their value."""
    points = _elements(picture, "polyline")[0].get("points").split()
    ticks = {
        float(element.text): float(element.get("y")) - 4
        for element in _elements(picture, "text")
        if element.get("text-anchor") == "end"
    }
    return [float(point.split(",")[1]) for point in points], ticks


def test_values_and_target_are_on_one_axis():
    picture = _plot(_figure())
    heights, ticks = _heights(picture)
    assert min(ticks) == 60  # the first value, 10 %, is in the first fifth of the steps
    assert max(ticks) == 90
    assert heights[1:] == pytest.approx([ticks[60], ticks[80]])
    assert heights[0] > ticks[60]
    (target,) = (
        e
        for e in _elements(picture, "line")
        if e.get("x1") == "56.0" and "6 4" in e.attrib.values()
    )
    assert float(target.get("y1")) == pytest.approx(ticks[90])
    assert "letters: accuracy on the validation data, %" in _texts(picture)
    assert TARGET in _texts(picture)


def test_errors_are_shown_as_such():
    picture = _plot(_figure(unit="% error", at_least=None, at_most=15, label="error"))
    heights, ticks = _heights(picture)
    assert heights[1:] == pytest.approx([ticks[40], ticks[20]])
    assert "letters: error (1 − accuracy) on the validation data, %" in _texts(picture)


def test_a_figure_of_other_data_has_no_target():
    texts = _texts(_plot(_figure(value="test-length-60/accuracy")))
    assert "letters: accuracy on the validation data, %" in texts
    assert not any(text.startswith("target") for text in texts if text)


def test_a_metric_that_training_does_not_compute_is_replaced_by_the_loss():
    picture = _plot(_figure(value="test/bound", unit="", at_least=100))
    heights, ticks = _heights(picture)
    assert heights[-1] == pytest.approx(ticks[1.6])
    assert "letters: loss on the validation data" in _texts(picture)
    assert not any("target" in text for text in _texts(picture))


def test_the_first_missed_figure_with_values_is_shown():
    reached, without = _figure(value="test/loss", unit="", at_least=0.5), _figure(value="test/bleu")
    assert TARGET in _texts(_plot(reached, without, _figure()))


def test_at_most_five_seeds_are_shown():
    picture = _plot(_figure(), seeds=7)
    assert len(_elements(picture, "polyline")) == 5
    assert "letters: accuracy on the validation data, %; 5 of 7 seeds" in _texts(picture)


def test_equal_values_are_on_the_axis_with_the_first_ones():
    curve = [{"step": 100, "validation_accuracy": 0.5}]
    curve += [{"step": step, "validation_accuracy": 1.0} for step in (600, 1000)]
    heights, ticks = _heights(_plot(_figure(value="test-length-60/accuracy"), curve=curve))
    assert heights == pytest.approx([ticks[50], ticks[100], ticks[100]])


def test_values_that_are_not_finite_are_left_out():
    curve = [*CURVE, {"step": 1100, "validation_accuracy": math.nan}]
    assert len(_heights(_plot(_figure(), curve=curve))[0]) == 3


def test_there_is_no_plot_without_missed_targets_or_values():
    assert _plot(_figure(), test=0.95) is None
    assert _plot(_figure(at_least=None)) is None
    assert _plot(_figure(), curve=[{"step": 50, "loss": 1.0}]) is None

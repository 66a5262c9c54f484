"""The plot has a curve for each seed, and the target if it is that of the same metric."""

import math
from xml.etree import ElementTree

import pytest
from recipe_kit import make_reproduction

from zoo_lab.reproduce.curve_plot import curve_figure, plot_curves
from zoo_lab.reproduce.recipe_schema import Figure

CURVE = [
    {"step": step, "validation_accuracy": value, "validation_loss": 2 * value}
    for step, value in ((100, 0.1), (500, 0.6), (1000, 0.8))
]
TARGET = "target, test accuracy: at least 90 %"


def _figure(**changes):
    keys = {"value": "test/accuracy", "label": "test accuracy", "unit": "%", "at_least": 90}
    return Figure(**keys | changes)


def _reproduction(*figures, seeds=1, curve=CURVE, test=0.7):
    values = [{figure.value: test for figure in figures}] * seeds
    return make_reproduction(figures, values, curve=curve)


def _plot(*figures, **changes):
    return curve_figure(_reproduction(*figures, **changes))


def _texts(picture):
    """Return the title and the labels of the legend."""
    (legend,) = picture.legends
    return [text.get_text() for text in (*picture.texts, *legend.get_texts())]


def _curves(picture):
    """Return the values of each curve, and of the target as the last one, if there is one."""
    (axes,) = picture.axes
    return [list(line.get_ydata()) for line in axes.lines]


def test_values_and_target_are_on_one_axis():
    picture = _plot(_figure())
    values, target = _curves(picture)
    low, high = picture.axes[0].get_ylim()
    assert values == pytest.approx([10, 60, 80])
    assert target == [90, 90]
    assert 10 < low < 60  # the first value is in the first fifth of the steps
    assert high > 90
    assert _texts(picture) == ["letters: accuracy on the validation data, %", "seed 1", TARGET]


def test_the_title_has_the_name_of_the_value():
    picture = _plot(_figure(metric_label="phoneme accuracy"))
    assert _texts(picture)[0] == "letters: phoneme accuracy on the validation data, %"


def test_errors_are_shown_as_such():
    picture = _plot(_figure(unit="% error", at_least=None, at_most=15, label="error"))
    assert _curves(picture)[0] == pytest.approx([90, 40, 20])
    assert "letters: error (1 − accuracy) on the validation data, %" in _texts(picture)


def test_a_figure_of_other_data_has_no_target():
    picture = _plot(_figure(value="test-length-60/accuracy"))
    assert _texts(picture) == ["letters: accuracy on the validation data, %", "seed 1"]
    assert len(_curves(picture)) == 1


def test_a_metric_that_training_does_not_compute_is_replaced_by_the_loss():
    picture = _plot(_figure(value="test/bound", unit="", at_least=100))
    assert _curves(picture) == [[0.2, 1.2, 1.6]]
    assert _texts(picture) == ["letters: loss on the validation data", "seed 1"]


def test_the_first_missed_figure_with_values_is_shown():
    reached, without = _figure(value="test/loss", unit="", at_least=0.5), _figure(value="test/bleu")
    assert TARGET in _texts(_plot(reached, without, _figure()))


def test_at_most_five_seeds_are_shown():
    picture = _plot(_figure(), seeds=7)
    assert len(_curves(picture)) == 5 + 1
    assert "letters: accuracy on the validation data, %; 5 of 7 seeds" in _texts(picture)


def test_equal_values_are_on_the_axis_with_the_first_ones():
    curve = [{"step": 100, "validation_accuracy": 0.5}]
    curve += [{"step": step, "validation_accuracy": 1.0} for step in (600, 1000)]
    picture = _plot(_figure(value="test-length-60/accuracy"), curve=curve)
    assert _curves(picture) == [[50, 100, 100]]
    low, high = picture.axes[0].get_ylim()
    assert low < 50
    assert high > 100


def test_values_that_are_not_finite_are_left_out():
    curve = [*CURVE, {"step": 1100, "validation_accuracy": math.nan}]
    assert len(_curves(_plot(_figure(), curve=curve))[0]) == 3


def test_the_picture_is_the_same_in_every_call():
    picture = plot_curves(_reproduction(_figure()))
    assert picture == plot_curves(_reproduction(_figure()))
    texts = [element.text for element in ElementTree.fromstring(picture).iter()]
    assert TARGET in texts


def test_there_is_no_plot_without_missed_targets_or_values():
    assert _plot(_figure(), test=0.95) is None
    assert _plot(_figure(at_least=None)) is None
    assert _plot(_figure(), curve=[{"step": 50, "loss": 1.0}]) is None
    assert plot_curves(_reproduction(_figure(), test=0.95)) is None

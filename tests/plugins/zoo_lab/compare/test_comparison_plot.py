"""The plot has the values of all variants at their places."""

import re
from xml.etree import ElementTree

import pytest
from comparison_kit import make_comparison

from zoo_lab.compare.comparison_plot import comparison_figure, plot_comparison


def _points(figure, name):
    """Return the row and the values of the lines of a name."""
    lines = [line for line in figure.axes[0].lines if line.get_gid() == name]
    return [(line.get_ydata()[0], list(line.get_xdata())) for line in lines]


def test_means_and_spreads_are_on_one_axis():
    figure = comparison_figure(make_comparison({"dot": [19.0, 21.0], "gat": []}, base=[9.0, 11.0]))
    quality, *bars = figure.axes
    spread = 2**0.5
    assert _points(figure, "seeds") == [(1, [9.0, 11.0]), (2, [19.0, 21.0])]
    assert _points(figure, "mean") == [(1, [10.0]), (2, [20.0])]
    ends = [values for _, values in _points(figure, "spread")]
    assert ends[0] == pytest.approx([10 - spread, 10 + spread])
    assert ends[1] == pytest.approx([20 - spread, 20 + spread])
    low, high = quality.get_xlim()
    assert low < 10 - spread
    assert high > 20 + spread
    assert list(quality.get_yticks()) == [1, 2, 3]
    assert [len(panel.patches) for panel in bars] == [2, 2, 2]


def test_names_and_numbers_are_text():
    comparison = make_comparison({"dot <&>": [19.0, 21.0], "gat $x": []}, base=[9.0, 11.0])
    root = ElementTree.fromstring(plot_comparison(comparison))
    texts = {element.text for element in root.iter() if element.tag.endswith("text")}
    assert {"A small task", "dot <&>", "gat $x", "not run yet"} <= texts
    assert {"25 k", "300 MB", "1.23 M"} <= texts


def test_a_comparison_without_results_has_a_plot():
    picture = plot_comparison(make_comparison({"dot": []}, base=[]))
    assert len(re.findall(">not run yet<", picture)) == 2

"""The plot has the values of all variants at their places."""

import re
from xml.etree import ElementTree

from comparison_kit import make_comparison

from zoo_lab.compare.comparison_plot import plot_comparison


def test_means_and_spreads_are_on_one_scale():
    comparison = make_comparison({"dot <&>": [19.0, 21.0], "gat": []}, base=[9.0, 11.0])
    root = ElementTree.fromstring(plot_comparison(comparison))
    texts = [element.text for element in root.iter() if element.tag.endswith("text")]
    assert {"A small task", "dot <&>", "not run yet", "25 k", "300 MB", "1.23 M"} <= set(texts)
    ticks = {
        float(element.text): float(element.get("x"))
        for element in root.iter()
        if element.get("text-anchor") == "middle"
    }
    low, high = min(ticks), max(ticks)
    assert low <= 9.0 - 1.0
    assert high >= 21.0

    def place(value):
        return ticks[low] + (ticks[high] - ticks[low]) * (value - low) / (high - low)

    circles = [e for e in root.iter() if e.tag.endswith("circle")]
    means = [float(e.get("cx")) for e in circles if e.get("r") == "4.5"]
    assert [round(x) for x in means] == [round(place(10.0)), round(place(20.0))]
    seeds = [float(e.get("cx")) for e in circles if e.get("r") == "2.5"]
    assert [round(x) for x in seeds] == [round(place(v)) for v in (9.0, 11.0, 19.0, 21.0)]


def test_a_comparison_without_results_has_a_plot():
    picture = plot_comparison(make_comparison({"dot": []}, base=[]))
    assert len(re.findall("not run yet", picture)) == 2

"""Patterns for the paths of parameters."""

import pytest

from zoo import ZooError
from zoo.interfaces.path_pattern import PathPattern, select_paths

PATHS = [
    "source.table.weight",
    *(f"encoder.blocks.{n}.attention.{p}.weight" for n in range(12) for p in ("query", "value")),
    "out.weight",
    "out.bias",
]


@pytest.mark.parametrize(
    ("pattern", "count"),
    [
        ("encoder.blocks.{0..5}.*", 12),
        ("encoder.blocks.{0..1}", 4),
        ("encoder", 24),
        ("*.query", 12),
        ("*.{query,value}.weight", 24),
        ("out.bias", 1),
        ("*", 27),
        ("encoder.blocks.1.*", 2),
        ("encoder.{x,blocks}.{1,11}.*{y,on.que}*", 2),
        ("encoder.blocks.{1, 11}*.query", 3),
    ],
)
def test_patterns_select_paths(pattern, count):
    assert len(select_paths([pattern], PATHS)) == count


def test_selected_paths_have_the_order_of_the_model_and_occur_once():
    selected = select_paths(["out", "*.bias", "source"], PATHS)
    assert selected == ["source.table.weight", "out.weight", "out.bias"]


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("encoder.block.0", "'encoder.block.0' matches nothing in the model"),
        ("encoder.blocks.{0..5", "has a brace"),
        ("encoder.blocks.{5..0}", "should be a range"),
        ("encoder.blocks.{0..99999}", "should be a range"),
        ("", "should be a path of 1 to"),
        ("encoder.[ab]", "should be a path of 1 to"),
        ("{0..100}.{0..100}", "stands for more than"),
        ("out.weigh", "did you mean"),
        ("encoder.blokcs", r"did you mean 'encoder\.blocks'\?"),
        ("encoder.blokcs.{0..1}", r"did you mean 'encoder\.blocks\.[01]'\?"),
    ],
)
def test_patterns_that_select_nothing_are_rejected(pattern, message):
    with pytest.raises(ZooError, match=message):
        select_paths([pattern], PATHS)


@pytest.mark.parametrize("text", ["*a" * 490, "{0..4095}." + "a*" * 490])
def test_many_stars_and_words_take_little_time(text):
    assert not PathPattern(text).matches("a" * 300 + "b")

"""Pictures of matplotlib: SVG text and PNG files."""

import re
import subprocess
import sys
from xml.etree import ElementTree

import pytest

from zoo import ZooError

pytest.importorskip("matplotlib")

from zoo.plotting import new_figure, render_svg, style_axes, write_png

DRAW = """
from zoo.plotting import new_figure, render_svg, style_axes

figure = new_figure(2, 1, layout=None)
axes = figure.subplots()
axes.plot([0, 1 / 3, 1], [2, 1 / 7, 3])
axes.axhline(1, label="1 & 2")
style_axes(axes)
"""


def test_svg_is_the_same_in_another_process():
    code = (
        f"{DRAW}import sys; sys.stdout.reconfigure(newline=''); print(render_svg(figure), end='')"
    )
    printed = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout
        for _ in range(2)
    ]
    assert printed[0] == printed[1]
    assert b"<dc:date>" not in printed[0]


def test_text_is_text_and_numbers_have_two_decimals():
    figure = new_figure(2, 1, layout=None)
    axes = figure.subplots()
    axes.plot([0, 1 / 3], [0, 1])
    axes.set_title("a < b & $c", parse_math=False)
    style_axes(axes, grid="x")
    picture = render_svg(figure)
    assert "a < b & $c" in [element.text for element in ElementTree.fromstring(picture).iter()]
    assert re.search(r"\d\.\d{3}", picture) is None
    assert picture.endswith("</svg>\n")


def test_a_png_file_that_cannot_be_written_is_an_error(tmp_path):
    write_png(new_figure(1, 1), tmp_path / "picture.png")
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ZooError, match="cannot be written"):
        write_png(new_figure(1, 1), tmp_path / "missing" / "picture.png")


def test_svg_rounds_coordinates_and_not_texts():
    figure = new_figure(2, 1)
    figure.text(0.123456, 0.5, "arXiv:1706.03762", parse_math=False)
    text = render_svg(figure)
    assert "arXiv:1706.03762" in text
    assert not re.search(r'"[^"]*\d\.\d{3,}[^"]*"', text)
    assert "scale(0.015625)" in render_svg(figure, text_as_paths=True)

import numpy as np
import pytest

from zoo.generation.prediction import Prediction
from zoo_demo.glimpse_view import render_digit, save_glimpses
from zoo_demo.glimpses import Digit


def _digit(locations):
    image = np.zeros((8, 8), dtype=np.uint8)
    image[2, 2] = image[3, 3] = 255  # a pixel of the upper and one of the lower half
    image[4:6, 5] = 255
    return Digit("1", image, Prediction("1", 0.9, [("1", 0.9)]), locations, 4)


def test_two_pixels_are_one_character_and_glimpses_are_numbers():
    text = render_digit(_digit([(2.5, 4.5), (2.9, 5.5), (7.9, 0.0)]))
    assert text.plain.splitlines() == ["▀▄ 3", "12 █"]  # the third is outside and at the edge


def test_a_picture_is_saved(tmp_path):
    pytest.importorskip("matplotlib")
    save_glimpses([_digit([(4.0, 4.0), (5.0, 2.0)])], tmp_path / "g.png", title="glimpses")
    assert (tmp_path / "g.png").read_bytes().startswith(b"\x89PNG")

import numpy as np
import pytest

from zoo_demo.digits import STROKES, draw_digit


@pytest.mark.parametrize("label", STROKES)
def test_digits_have_the_format_of_mnist(label):
    """The ink is inside the margins, and its centre of mass in the centre of the image."""
    image = draw_digit(label)
    assert (image.shape, image.dtype, image.max()) == ((28, 28), np.uint8, 255)
    assert image[2:-2, 2:-2].sum() == image.sum(dtype=np.int64)
    y, x = np.indices(image.shape) + 0.5
    assert (image * x).sum() / image.sum() == pytest.approx(14, abs=0.2)
    assert (image * y).sum() / image.sum() == pytest.approx(14, abs=0.2)


def test_every_digit_is_drawn():
    assert list(STROKES) == list("0123456789")
    assert len({draw_digit(label).tobytes() for label in STROKES}) == 10

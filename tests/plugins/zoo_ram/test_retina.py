import re

import pytest
import torch
import torch.nn.functional as F

from zoo import ZooError
from zoo_ram.retina import Retina


def images(height: int, width: int, channels: int = 2, batch: int = 1) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.rand(batch, channels, height, width, generator=generator, dtype=torch.float64)


def place(x: float, y: float, height: int, width: int) -> torch.Tensor:
    """The point x pixels from the left and y from the top, as a location [1, 2]."""
    return torch.tensor([[2 * x / width - 1, 2 * y / height - 1]], dtype=torch.float64)


def reference_crop(image, x, y, size, cell):
    """The square around (x, y) by padding, slicing and pooling; its corner must be a pixel's."""
    side = size * cell
    left, top = x - side / 2, y - side / 2
    assert left == int(left)
    assert top == int(top)
    padded = F.pad(image, [side] * 4)
    rows = slice(int(top) + side, int(top) + 2 * side)
    columns = slice(int(left) + side, int(left) + 2 * side)
    return F.avg_pool2d(padded[..., rows, columns], cell)


def test_the_middle_and_the_surroundings_of_a_small_image():
    image = torch.arange(16.0).view(1, 1, 4, 4)

    near, far = Retina(channels=1, size=2, scales=2)(image, torch.zeros(1, 2))[0, :, 0]

    assert near.tolist() == [[5, 6], [9, 10]]
    assert far.tolist() == [[2.5, 4.5], [10.5, 12.5]]


def test_a_look_at_a_corner_sees_zeros_outside():
    image = torch.arange(1.0, 17).view(1, 1, 4, 4)
    retina = Retina(channels=1, size=2, scales=2)

    near, far = retina(image, torch.tensor([[-1.0, -1.0]]))[0, :, 0]
    assert near.tolist() == [[0, 0], [0, 1]]
    assert far.tolist() == [[0, 0], [0, (1 + 2 + 5 + 6) / 4]]
    # x comes first: the top right corner.
    assert retina(image, torch.tensor([[1.0, -1.0]]))[0, 0, 0].tolist() == [[0, 0], [4, 0]]


@pytest.mark.parametrize(("size", "scales", "ratio"), [(4, 3, 2), (2, 2, 3), (3, 3, 3), (8, 1, 2)])
def test_on_whole_pixels_it_is_crop_and_pool_everywhere(size, scales, ratio):
    height, width = 9, 12
    image = images(height, width)
    retina = Retina(channels=2, size=size, scales=scales, ratio=ratio)
    half = size % 2 / 2  # the centre of an odd square is the middle of a pixel
    for x in range(width + (not half)):
        for y in range(height + (not half)):
            seen = retina(image, place(x + half, y + half, height, width))
            for scale in range(scales):
                expected = reference_crop(image, x + half, y + half, size, ratio**scale)
                torch.testing.assert_close(seen[:, scale], expected, rtol=0, atol=1e-12)


def test_between_pixels_the_first_scale_is_bilinear():
    height, width, size = 7, 9, 4
    image = images(height, width).expand(50, -1, -1, -1)
    generator = torch.Generator().manual_seed(1)
    locations = torch.rand(50, 2, generator=generator, dtype=torch.float64) * 2 - 1

    seen = Retina(channels=2, size=size)(image, locations)[:, 0]

    steps = torch.arange(size, dtype=torch.float64) - size / 2 + 0.5
    x = locations[:, :1] + steps * 2 / width
    y = locations[:, 1:] + steps * 2 / height
    grid = torch.stack(
        [x[:, None, :].expand(-1, size, -1), y[:, :, None].expand(-1, -1, size)], dim=-1
    )
    expected = F.grid_sample(image, grid, mode="bilinear", align_corners=False)
    torch.testing.assert_close(seen, expected, rtol=0, atol=1e-12)


def test_between_pixels_a_larger_scale_is_the_mean_over_the_area():
    height, width, fine = 6, 5, 4
    image = images(height, width)
    finer = image.repeat_interleave(fine, dim=2).repeat_interleave(fine, dim=3)
    retina = Retina(channels=2, size=2, scales=2)
    for x, y in [(0.25, 0.5), (2.75, 3.25), (4.5, 5.75)]:
        seen = retina(image, place(x, y, height, width))[:, 1]
        expected = reference_crop(finer, x * fine, y * fine, 2, 2 * fine)
        torch.testing.assert_close(seen, expected, rtol=0, atol=1e-12)


def test_gradients_reach_pixels_and_place():
    image = images(5, 6, channels=1, batch=2).requires_grad_()
    locations = torch.tensor([[0.13, -0.41], [0.77, 0.94]], dtype=torch.float64, requires_grad=True)

    assert torch.autograd.gradcheck(Retina(channels=1, size=3, scales=2), (image, locations))


def test_in_bfloat16_the_place_keeps_its_precision():
    image = images(60, 60, channels=1)
    retina, where = Retina(channels=1, size=8, scales=2), place(31, 17, 60, 60)

    seen = retina(image.bfloat16(), where.float())

    assert seen.dtype is torch.bfloat16
    torch.testing.assert_close(seen.double(), retina(image, where), rtol=0, atol=0.01)


@pytest.mark.parametrize("shape", [(7, 12), (12, 7)])
def test_an_image_smaller_than_the_glimpse_is_refused(shape):
    message = (
        f"^images of {shape[0]} x {shape[1]} pixels are smaller than the glimpse's smallest square "
        "of 8 x 8$"
    )
    with pytest.raises(ZooError, match=message):
        Retina(channels=2, size=8, scales=2)(torch.zeros(1, 2, *shape), torch.zeros(1, 2))


@pytest.mark.parametrize("shape", [[1, 3, 9, 9], [2, 9, 9]])
def test_an_image_of_other_channels_or_none_is_refused(shape):
    message = f"images are {shape}, but should be [batch, 2 channels, height, width]"
    with pytest.raises(ZooError, match=f"^{re.escape(message)}$"):
        Retina(channels=2, size=8)(torch.zeros(shape), torch.zeros(1, 2))


def test_pixels_in_bytes_are_refused():
    message = "^images are of torch.uint8, but should be floating-point numbers$"
    with pytest.raises(ZooError, match=message):
        Retina(channels=1, size=2)(torch.zeros(1, 1, 4, 4).byte(), torch.zeros(1, 2))

import re

import pytest
import torch
import torch.nn.functional as F

from zoo import ZooError
from zoo_ram.retina import Retina


def images(height: int, width: int, channels: int = 2, batch: int = 1) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.rand(batch, channels, height, width, generator=generator, dtype=torch.float64)


def location(x: float, y: float, height: int, width: int) -> torch.Tensor:
    """Return the point x pixels from the left and y from the top as a location [1, 2]."""
    return torch.tensor([[2 * x / width - 1, 2 * y / height - 1]], dtype=torch.float64)


def reference_crop(image, x, y, size, cell):
    """Pad, slice and pool the square around (x, y); its corner must be the corner of a pixel."""
    side = size * cell
    left, top = x - side / 2, y - side / 2
    assert left == int(left)
    assert top == int(top)
    padded = F.pad(image, [side] * 4)
    rows = slice(int(top) + side, int(top) + 2 * side)
    columns = slice(int(left) + side, int(left) + 2 * side)
    return F.avg_pool2d(padded[..., rows, columns], cell)


def test_known_values():
    image = torch.arange(16.0).view(1, 1, 4, 4)

    near, far = Retina(channels=1, size=2, scales=2)(image, torch.zeros(1, 2))[0, :, 0]

    assert near.tolist() == [[5, 6], [9, 10]]
    assert far.tolist() == [[2.5, 4.5], [10.5, 12.5]]


def test_pixels_outside_the_image_are_zero():
    image = torch.arange(1.0, 17).view(1, 1, 4, 4)
    retina = Retina(channels=1, size=2, scales=2)

    near, far = retina(image, torch.tensor([[-1.0, -1.0]]))[0, :, 0]
    assert near.tolist() == [[0, 0], [0, 1]]
    assert far.tolist() == [[0, 0], [0, (1 + 2 + 5 + 6) / 4]]
    # x is first: the top right corner.
    assert retina(image, torch.tensor([[1.0, -1.0]]))[0, 0, 0].tolist() == [[0, 0], [4, 0]]


@pytest.mark.parametrize(("size", "scales", "ratio"), [(4, 3, 2), (2, 2, 3), (3, 3, 3), (8, 1, 2)])
def test_matches_crop_and_pool_at_integer_offsets(size, scales, ratio):
    height, width = 9, 12
    image = images(height, width)
    retina = Retina(channels=2, size=size, scales=scales, ratio=ratio)
    half = size % 2 / 2  # the centre of an odd square is the centre of a pixel
    for x in range(width + (not half)):
        for y in range(height + (not half)):
            patches = retina(image, location(x + half, y + half, height, width))
            for scale in range(scales):
                expected = reference_crop(image, x + half, y + half, size, ratio**scale)
                torch.testing.assert_close(patches[:, scale], expected, rtol=0, atol=1e-12)


def test_first_scale_matches_bilinear_interpolation():
    height, width, size = 7, 9, 4
    image = images(height, width).expand(50, -1, -1, -1)
    generator = torch.Generator().manual_seed(1)
    locations = torch.rand(50, 2, generator=generator, dtype=torch.float64) * 2 - 1

    patches = Retina(channels=2, size=size)(image, locations)[:, 0]

    steps = torch.arange(size, dtype=torch.float64) - size / 2 + 0.5
    x = locations[:, :1] + steps * 2 / width
    y = locations[:, 1:] + steps * 2 / height
    grid = torch.stack(
        [x[:, None, :].expand(-1, size, -1), y[:, :, None].expand(-1, -1, size)], dim=-1
    )
    expected = F.grid_sample(image, grid, mode="bilinear", align_corners=False)
    torch.testing.assert_close(patches, expected, rtol=0, atol=1e-12)


def test_larger_scales_match_the_mean_over_the_area():
    height, width, fine = 6, 5, 4
    image = images(height, width)
    finer = image.repeat_interleave(fine, dim=2).repeat_interleave(fine, dim=3)
    retina = Retina(channels=2, size=2, scales=2)
    for x, y in [(0.25, 0.5), (2.75, 3.25), (4.5, 5.75)]:
        patches = retina(image, location(x, y, height, width))[:, 1]
        expected = reference_crop(finer, x * fine, y * fine, 2, 2 * fine)
        torch.testing.assert_close(patches, expected, rtol=0, atol=1e-12)


def test_gradients_flow_to_pixels_and_location():
    image = images(5, 6, channels=1, batch=2).requires_grad_()
    locations = torch.tensor([[0.13, -0.41], [0.77, 0.94]], dtype=torch.float64, requires_grad=True)

    assert torch.autograd.gradcheck(Retina(channels=1, size=3, scales=2), (image, locations))


def test_bfloat16_images_keep_the_precision_of_the_location():
    image = images(60, 60, channels=1)
    retina, centre = Retina(channels=1, size=8, scales=2), location(31, 17, 60, 60)

    patches = retina(image.bfloat16(), centre.float())

    assert patches.dtype is torch.bfloat16
    torch.testing.assert_close(patches.double(), retina(image, centre), rtol=0, atol=0.01)


def test_autocast_does_not_change_the_squares():
    image, centre = images(60, 60, channels=1).float(), location(31, 17, 60, 60).float()
    retina = Retina(channels=1, size=8, scales=2)

    with torch.autocast("cpu", dtype=torch.bfloat16):
        patches = retina(image, centre)

    assert patches.dtype is torch.float32
    assert torch.equal(patches, retina(image, centre))


@pytest.mark.parametrize("shape", [(7, 12), (12, 7)])
def test_images_smaller_than_the_retina_raise(shape):
    with pytest.raises(ZooError, match=f"{shape[0]} x {shape[1]}.*8 x 8"):
        Retina(channels=2, size=8, scales=2)(torch.zeros(1, 2, *shape), torch.zeros(1, 2))


@pytest.mark.parametrize("shape", [[1, 3, 9, 9], [2, 9, 9]])
def test_images_of_another_shape_raise(shape):
    expected = r"\[batch, 2, height, width\]"
    with pytest.raises(ZooError, match=f"{re.escape(str(shape))}.*{expected}"):
        Retina(channels=2, size=8)(torch.zeros(shape), torch.zeros(1, 2))


def test_integer_images_raise():
    message = "uint8.*floating-point"
    with pytest.raises(ZooError, match=message):
        Retina(channels=1, size=2)(torch.zeros(1, 1, 4, 4).byte(), torch.zeros(1, 2))


@pytest.mark.parametrize(("size", "scales", "ratio"), [(4, 3, 2), (3, 2, 3)])
def test_whole_pixels_are_cropped_where_the_location_is_rounded_down(size, scales, ratio):
    height, width = 9, 12
    image = images(height, width)
    retina = Retina(channels=2, size=size, scales=scales, ratio=ratio, crop="pixel")
    for x, y in [(0.0, 0.0), (3.2, 4.9), (11.99, 0.5), (12.0, 9.0)]:
        patches = retina(image, location(x, y, height, width))
        for scale in range(scales):
            side = size * ratio**scale
            middle_x, middle_y = (int(v) - side // 2 + side / 2 for v in (x, y))
            expected = reference_crop(image, middle_x, middle_y, size, ratio**scale)
            torch.testing.assert_close(patches[:, scale], expected, rtol=0, atol=1e-12)

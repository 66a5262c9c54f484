import numpy as np
import pytest
from PIL import Image

from zoo import DataError
from zoo.plugin import read_image

PIXELS = np.random.default_rng(0).integers(0, 256, (3, 5, 3), dtype=np.uint8)


@pytest.mark.parametrize(
    ("mode", "channels"), [("RGB", 3), ("L", 1), ("1", 1), ("P", 3), ("RGBA", 3), ("LA", 1)]
)
def test_an_image_is_grey_or_rgb(tmp_path, mode, channels):
    image = Image.fromarray(PIXELS).convert(mode)
    image.save(tmp_path / "a.png")
    found = read_image(tmp_path / "a.png")
    expected = np.asarray(image.convert("RGB" if channels == 3 else "L"))
    assert found.dtype == np.uint8
    np.testing.assert_array_equal(found, expected.reshape(3, 5, channels))


def test_the_content_of_a_file_is_read_like_the_file(tmp_path):
    Image.fromarray(PIXELS).save(tmp_path / "a.png")
    np.testing.assert_array_equal(read_image((tmp_path / "a.png").read_bytes()), PIXELS)
    with pytest.raises(DataError, match=r"image: it is not a valid PNG, JPEG"):
        read_image(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n")


def test_16_bits_become_8(tmp_path):
    Image.fromarray(np.array([[0, 256, 65535]], np.uint16)).save(tmp_path / "a.png")
    assert read_image(tmp_path / "a.png").tolist() == [[[0], [1], [255]]]


def test_16_bits_of_a_grey_map_become_8(tmp_path):
    (tmp_path / "a.pgm").write_bytes(b"P5 3 1 65535\n" + np.array([0, 256, 65535], ">u2").tobytes())
    assert read_image(tmp_path / "a.pgm").tolist() == [[[0], [1], [255]]]


@pytest.mark.parametrize("dtype", [np.int32, np.float32])
def test_pixels_of_an_unknown_range_are_rejected(tmp_path, dtype):
    Image.fromarray(np.array([[0, 1, 1]], dtype)).save(tmp_path / "a.tif")
    with pytest.raises(DataError, match=r"a\.tif: .*32-bit pixels is unknown; convert it to 8 or"):
        read_image(tmp_path / "a.tif")


def test_the_orientation_of_exif_is_applied(tmp_path):
    image = Image.fromarray(PIXELS)
    exif = image.getexif()
    exif[0x0112] = 6
    image.save(tmp_path / "a.png", exif=exif)
    np.testing.assert_array_equal(read_image(tmp_path / "a.png"), np.rot90(PIXELS, -1))


def test_files_that_are_not_images_are_rejected(tmp_path):
    with pytest.raises(DataError, match=r"a\.png: cannot be read: no such file"):
        read_image(tmp_path / "a.png")
    (tmp_path / "a.png").write_bytes(b"no image")
    with pytest.raises(DataError, match=r"a\.png: it is not a valid PNG, JPEG, .* or PPM image"):
        read_image(tmp_path / "a.png")
    Image.fromarray(PIXELS).save(tmp_path / "b.png")
    (tmp_path / "b.png").write_bytes((tmp_path / "b.png").read_bytes()[:60])
    with pytest.raises(DataError, match=r"b\.png: "):
        read_image(tmp_path / "b.png")


def test_formats_that_start_other_programs_are_not_read(tmp_path):
    eps = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\nshowpage\n"
    (tmp_path / "a.png").write_bytes(eps)
    with pytest.raises(DataError, match=r"a\.png: it is not a valid PNG, JPEG, .* image"):
        read_image(tmp_path / "a.png")

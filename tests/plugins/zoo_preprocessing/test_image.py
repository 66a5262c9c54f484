import numpy as np
import pytest
from PIL import Image as Picture, ImageOps

from zoo import DataError, ZooError
from zoo.plugin import TensorSchema
from zoo_preprocessing.image import Image

RGB = TensorSchema(("B", 3, 4, 6), "float")
GREY = TensorSchema(("B", 1, 4, 6), "float")
ANY_SIZE = TensorSchema(("B", 3, "H", "W"), "float")
LINES = TensorSchema(("B", 1, 4, "W"), "float")
PIXELS = np.random.default_rng(0).integers(0, 256, (9, 7, 3), dtype=np.uint8)


def test_known_value():
    pixels = np.full((4, 6, 3), [0, 51, 255], dtype=np.uint8)
    array = Image(schema=RGB, mean=[0.0, 0.1, 0.5], std=[1.0, 0.5, 0.25]).encode(pixels)
    assert array.shape == (3, 4, 6)
    assert array.dtype == np.float32
    np.testing.assert_allclose(array[:, 0, 0], [0, 0.2, 2], rtol=1e-6)


def _unchanged(array):
    return (array * 255).round().astype(np.uint8).transpose(1, 2, 0)


def test_stretch_and_crop_are_those_of_pillow():
    picture = Picture.fromarray(PIXELS)
    stretched = np.asarray(picture.resize((6, 4), Picture.Resampling.BILINEAR))
    np.testing.assert_array_equal(_unchanged(Image(schema=RGB).encode(PIXELS)), stretched)
    scaled = np.asarray(picture.resize((6, 8), Picture.Resampling.BILINEAR))
    cropped = _unchanged(Image(schema=RGB, resize="crop").encode(PIXELS))
    np.testing.assert_array_equal(cropped, scaled[2:6])


@pytest.mark.parametrize("resample", ["nearest", "bicubic", "lanczos", "box", "hamming"])
def test_the_filter_is_that_of_pillow(resample):
    expected = Picture.fromarray(PIXELS).resize((6, 4), Picture.Resampling[resample.upper()])
    found = _unchanged(Image(schema=RGB, resample=resample).encode(PIXELS))
    np.testing.assert_array_equal(found, np.asarray(expected))


@pytest.mark.parametrize(("scale_to", "scaled"), [(6, (6, 7)), ((8, 6), (6, 8))])
def test_images_are_scaled_before_the_crop(scale_to, scaled):
    image = Image(schema=RGB, resize="crop", scale_to=scale_to)  # 9 x 7 pixels: 6 / 7 * 9 = 7.7
    expected = np.asarray(Picture.fromarray(PIXELS).resize(scaled, Picture.Resampling.BILINEAR))
    top = (expected.shape[0] - 4) // 2
    np.testing.assert_array_equal(_unchanged(image.encode(PIXELS)), expected[top : top + 4])
    batch = np.stack([PIXELS[:4, :6]] * 2)  # of the size of the result, but scaled too
    np.testing.assert_array_equal(image.encode_many(batch)[0], image.encode(PIXELS[:4, :6]))


def test_scale_to_requires_a_crop():
    with pytest.raises(ZooError, match="scale_to requires resize: crop, not stretch"):
        Image(schema=RGB, scale_to=8).outputs("source")


def test_pad_is_that_of_pillow():
    expected = ImageOps.pad(Picture.fromarray(PIXELS), (6, 4), Picture.Resampling.BILINEAR)
    found = _unchanged(Image(schema=RGB, resize="pad").encode(PIXELS))
    np.testing.assert_array_equal(found, np.asarray(expected))


def test_grey_and_rgb_are_converted_as_by_pillow():
    pixels = PIXELS[:4, :6]
    expected = np.asarray(Picture.fromarray(pixels).convert("L"))
    found = _unchanged(Image(schema=GREY).encode(pixels))
    np.testing.assert_array_equal(found[..., 0], expected)
    grey = Image(schema=RGB).encode(expected)
    np.testing.assert_array_equal(_unchanged(grey), np.stack([expected] * 3, axis=-1))


def test_an_image_of_another_size_raises_without_resizing():
    with pytest.raises(DataError, match=r"image is 9 x 7 \(height x width\), .* takes 4 x 6"):
        Image(schema=RGB, resize="none").encode(PIXELS)


def test_the_size_is_required_if_the_model_takes_any():
    with pytest.raises(ZooError, match="size is required"):
        Image(schema=ANY_SIZE).outputs("source")
    assert Image(schema=ANY_SIZE, size=5).encode(PIXELS).shape == (3, 5, 5)
    assert Image(schema=ANY_SIZE, size=(5, 2)).encode(PIXELS).shape == (3, 5, 2)
    assert Image(schema=ANY_SIZE, resize="none").encode(PIXELS).shape == (3, 9, 7)
    with pytest.raises(ZooError, match="size sets W to 5, but the model takes W = 6"):
        Image(schema=RGB, size=(4, 5)).outputs("source")


def test_a_fixed_height_keeps_the_aspect_ratio():
    assert Image(schema=LINES).encode(PIXELS[:8, :6]).shape == (1, 4, 3)


def test_binarised_pixels_are_0_or_1():
    pixels = np.array([[127, 128] * 3] * 4, dtype=np.uint8)
    assert np.unique(Image(schema=GREY, binarise=True).encode(pixels)[0, :, 0]).tolist() == [0]
    assert np.unique(Image(schema=GREY, binarise=True).encode(pixels)[0, :, 1]).tolist() == [1]


def test_flips_and_shifts_move_pixels_and_fill_with_black():
    image = Image(schema=GREY, flip=True, shift=1, mean=0.5)
    array = np.arange(24, dtype=np.float32).reshape(1, 4, 6)
    seen = set()
    for seed in range(150):
        (moved,) = image.transform("source", array, np.random.default_rng(seed))["source"]
        flipped = bool(moved[1, 2] > moved[1, 3])
        source = array[0, :, ::-1] if flipped else array[0]
        padded = np.pad(source, 1, constant_values=-0.5)
        places = [
            (y - 1, x - 1)
            for y in range(3)
            for x in range(3)
            if np.array_equal(padded[y : y + 4, x : x + 6], moved)
        ]
        assert len(places) == 1
        seen.add((flipped, places[0]))
    assert len(seen) == 18
    assert np.array_equal(
        Image(schema=GREY).transform("source", array, np.random.default_rng(0))["source"], array
    )


def test_a_batch_is_encoded_and_transformed_as_image_by_image():
    rng = np.random.default_rng(0)
    batch = rng.integers(0, 256, (5, 4, 6, 1), dtype=np.uint8)
    for options in ({}, {"binarise": True}, {"mean": 0.1, "std": [0.3], "flip": True, "shift": 5}):
        image = Image(schema=GREY, **options)
        encoded = image.encode_many(batch)
        made = image.transform_many("x", encoded, map(np.random.default_rng, range(5)))["x"]
        for number, pixels in enumerate(batch):
            array = image.encode(pixels)
            assert np.array_equal(encoded[number], array)
            alone = image.transform("x", array, np.random.default_rng(number))["x"]
            assert np.array_equal(made[number], alone)


def test_a_file_is_read(tmp_path):
    Picture.fromarray(PIXELS).save(tmp_path / "a.png")
    image = Image(schema=RGB)
    np.testing.assert_array_equal(image.read(tmp_path / "a.png"), PIXELS)


@pytest.mark.parametrize("value", [PIXELS / 255, PIXELS[None], PIXELS[..., :2], PIXELS[:0], "a"])
def test_values_that_are_not_images_raise(value):
    with pytest.raises(DataError, match="expected an image"):
        Image(schema=RGB).encode(value)


def test_other_schemas_and_means_are_rejected():
    with pytest.raises(ZooError, match=r"makes float \[B, C, H, W\].*integer \[B, S\]"):
        Image(schema=TensorSchema(("B", "S"), "integer")).outputs("source")
    with pytest.raises(ZooError, match="mean has 2 values, but the model takes 3 channels"):
        Image(schema=RGB, mean=[0.1, 0.2]).outputs("source")


def test_sampled_pixels_are_1_with_the_probability_of_their_intensity():
    pixels = np.full((2, 64, 64, 1), 64, np.uint8)
    pixels[0, 0], pixels[0, 1], pixels[1, 5, 5] = 0, 255, 65
    schema = TensorSchema(("B", 1, "H", "W"), "float")
    image = Image(schema=schema, binarise="sample", resize="none")
    first, second = image.encode_many(pixels)
    assert first[0, 0].max() == 0
    assert first[0, 1].min() == 1
    assert np.unique(first).tolist() == [0, 1]
    assert first[0, 2:].mean() == pytest.approx(64 / 255, abs=0.03)
    assert (first != second).any()
    assert (image.encode(pixels[0]) == first).all()


ANY_SIZE = TensorSchema(("B", 3, "H", "W"), "float")


def test_images_that_are_not_resized_have_the_size_of_the_training_images():
    training = [np.zeros((6, 8, 3), np.uint8)] * 3
    assert Image(schema=ANY_SIZE, resize="none").fit(training) == {"size": [6, 8]}
    fitted = Image(schema=ANY_SIZE, resize="none", size=(6, 8))
    assert fitted.encode(training[0]).shape == (3, 6, 8)
    with pytest.raises(DataError, match=r"is 8 x 6 .* takes 6 x 8; resize the image"):
        fitted.encode(np.zeros((8, 6, 3), np.uint8))


def test_images_of_several_sizes_or_that_are_resized_have_no_fitted_size():
    training = [np.zeros((6, 8, 3), np.uint8), np.zeros((7, 8, 3), np.uint8)]
    assert Image(schema=ANY_SIZE, resize="none").fit(training) == {}
    assert Image(schema=ANY_SIZE, resize="none", size=4).fit(training[:1]) == {}
    assert Image(schema=ANY_SIZE, size=4).fit(training[:1]) == {}
    assert Image(schema=RGB, resize="none").fit(training[:1]) == {}
    assert Image(schema=ANY_SIZE, resize="none").fit([]) == {}

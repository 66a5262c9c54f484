import lzma

import numpy as np
import pytest
from PIL import Image

from zoo import DataError, ZooError
from zoo_datasets.captions import Captions

IMAGES = np.arange(2 * 4 * 5 * 3, dtype=np.uint8).reshape(2, 4, 5, 3)


@pytest.fixture
def folder(tmp_path):
    for name, image in zip(("b.png", "a.png"), IMAGES, strict=True):
        Image.fromarray(image).save(tmp_path / name)
    np.save(tmp_path / "stack.npy", IMAGES)
    (tmp_path / "stack.npy.xz").write_bytes(lzma.compress((tmp_path / "stack.npy").read_bytes()))
    return tmp_path


@pytest.mark.parametrize("images", ["", "stack.npy", "stack.npy.xz"])
@pytest.mark.parametrize(
    "lines", ["b.png\tone\ttwo\na.png\tthree\n", "b.png#0\tone\nb.png#1\ttwo\na.png#0\tthree\n"]
)
def test_each_caption_is_an_example_in_training_and_each_image_in_evaluation(
    folder, read_all, images, lines
):
    (folder / "captions").write_text(lines)
    dataset = Captions(images=str(folder / images), captions=str(folder / "captions"))
    examples = read_all(dataset.open())
    assert [example["target"] for example in examples] == ["one", "two", "three"]
    for example, image in zip(examples, IMAGES[[0, 0, 1]], strict=True):
        np.testing.assert_array_equal(example["source"], image)
    evaluated = read_all(dataset.open(evaluation=True))
    assert [example["target"] for example in evaluated] == [["one", "two"], ["three"]]
    np.testing.assert_array_equal(evaluated[1]["source"], IMAGES[1])


def test_grey_stacks_have_one_channel(folder):
    np.save(folder / "grey.npy", IMAGES[..., 0])
    (folder / "captions").write_text("b\tone\na\ttwo\n")
    dataset = Captions(images=str(folder / "grey.npy"), captions=str(folder / "captions"))
    assert dataset.open()[1]["source"].shape == (4, 5, 1)


@pytest.mark.parametrize("line", ["a.png", "a.png\t", "\tone", "a.png\tone\t ", ""])
def test_a_wrong_line_raises_with_file_and_line(folder, line):
    (folder / "captions").write_text(f"b.png\tone\n{line}\n")
    with pytest.raises(DataError, match="captions:2: expected a name and one or more captions"):
        Captions(images=str(folder), captions=str(folder / "captions")).open()


def test_another_number_of_images_raises_with_both_files(folder):
    (folder / "captions").write_text("b.png\tone\n")
    with pytest.raises(DataError, match=r"stack\.npy has 2 images, but .*captions names 1"):
        Captions(images=str(folder / "stack.npy"), captions=str(folder / "captions")).open()


def test_other_arrays_raise(folder):
    np.save(folder / "other.npy", IMAGES.astype(np.float32))
    (folder / "captions").write_text("b.png\tone\na.png\ttwo\n")
    with pytest.raises(DataError, match=r"other\.npy: expected images, uint8.*float32"):
        Captions(images=str(folder / "other.npy"), captions=str(folder / "captions")).open()


def test_a_missing_image_raises_with_its_file(folder):
    (folder / "captions").write_text("c.png\tone\n")
    examples = Captions(images=str(folder), captions=str(folder / "captions")).open()
    with pytest.raises(DataError, match=r"c\.png: cannot be read: no such file"):
        examples[0]


def test_flickr8k_has_five_captions_per_image(published, tmp_path):
    captions = published("flickr8k") / "dev.captions.tsv.xz"
    dataset = Captions(images=str(tmp_path), captions=str(captions))
    assert len(dataset.open()) == 5000
    assert len(dataset.open(evaluation=True)) == 1000


def test_a_line_without_a_tab_is_the_caption_of_the_image_with_its_number(folder):
    (folder / "labels.txt").write_text("226md\n22d5n\n", encoding="utf-8")
    files = {"images": str(folder / "stack.npy.xz"), "captions": str(folder / "labels.txt")}
    for evaluation, expected in ((False, "22d5n"), (True, ["22d5n"])):
        examples = Captions(**files).open(evaluation=evaluation)
        assert examples[1]["target"] == expected
        assert np.array_equal(examples[1]["source"], IMAGES[1])
    (folder / "labels.txt").write_text("226md\n\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"labels\.txt:2: expected a name and one or more captions"):
        Captions(**files).open()
    with pytest.raises(DataError, match=r"labels\.txt:1: expected a name and one or more captions"):
        Captions(images=str(folder), captions=files["captions"]).open()


def test_images_are_tiles_of_sheets(tmp_path):
    tiles = np.arange(6, dtype=np.uint8).reshape(2, 3, 1, 1) * np.ones((1, 1, 4, 5), np.uint8)
    for row in range(2):  # one sheet of three tiles for each row
        Image.fromarray(np.concatenate(list(tiles[row]), axis=1)).save(tmp_path / f"{row}.png")
    (tmp_path / "captions.tsv").write_text("".join(f"{i}.jpg\tnumber {i}\n" for i in range(5)))
    sheets = [str(tmp_path / f"{row}.png") for row in range(2)]
    examples = Captions(images=sheets, captions=str(tmp_path / "captions.tsv"), tile=(4, 5)).open()
    assert [int(examples[i]["source"][0, 0, 0]) for i in range(5)] == [0, 1, 2, 3, 4]
    assert examples[3]["source"].shape == (4, 5, 1)
    with pytest.raises(DataError, match=r"the sheets have 3 tiles, but .* names 5 images"):
        Captions(images=sheets[:1], captions=str(tmp_path / "captions.tsv"), tile=(4, 5)).open()
    with pytest.raises(DataError, match="a sheet of 4 x 15 pixels does not consist of 3 x 5"):
        Captions(images=sheets, captions=str(tmp_path / "captions.tsv"), tile=(3, 5)).open()
    with pytest.raises(ZooError, match="a list of sheets needs 'tile'"):
        Captions(images=sheets, captions="captions.tsv")

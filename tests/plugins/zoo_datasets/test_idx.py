import gzip
import struct

import numpy as np
import pytest

from zoo import DataError
from zoo_datasets.idx import Idx


def _idx(array, code=8):
    return struct.pack(f">4B{array.ndim}I", 0, 0, code, array.ndim, *array.shape) + array.tobytes()


@pytest.fixture
def files(tmp_path):
    images = np.arange(2 * 3 * 4, dtype=np.uint8).reshape(2, 3, 4)
    (tmp_path / "images.gz").write_bytes(gzip.compress(_idx(images)))
    (tmp_path / "labels").write_bytes(_idx(np.array([7, 300], ">i4"), code=0x0C))
    return {"images": str(tmp_path / "images.gz"), "labels": str(tmp_path / "labels")}


def test_images_and_labels_are_read(files):
    examples = Idx(**files).open()
    assert len(examples) == 2
    assert examples[1]["target"] == 300
    np.testing.assert_array_equal(examples[1]["source"][..., 0], np.arange(12, 24).reshape(3, 4))
    assert examples.origin(1) == f"{files['images']}[1]"


def test_mnist(published):
    folder = published("mnist")
    examples = Idx(
        images=str(folder / "t10k-images-idx3-ubyte.xz"),
        labels=str(folder / "t10k-labels-idx1-ubyte.xz"),
    ).open()
    assert len(examples) == 10_000
    assert [examples[i]["target"] for i in range(5)] == [7, 2, 1, 0, 4]
    assert examples[0]["source"].shape == (28, 28, 1)
    # The mean of the published test images is 33.79.
    mean = np.mean([examples[i]["source"].mean() for i in range(10_000)])
    assert mean == pytest.approx(33.7912, abs=1e-3)


@pytest.mark.parametrize(
    ("images", "labels", "message"),
    [
        (_idx(np.zeros((2, 3, 4), np.uint8)), _idx(np.zeros(3, np.uint8)), "2 images.* 3 labels"),
        (_idx(np.zeros((2, 3), np.uint8)), b"", r"images: expected images.*uint8 \[2, 3\]"),
        (_idx(np.zeros((2, 3, 4), np.uint8)), _idx(np.zeros((2, 1), np.uint8)), "expected labels"),
        (b"\x89PNG", b"", "images: it is not an IDX file"),
        (b"", b"", "images: it is not an IDX file"),
        (b"\0\0\x08\x03\0", b"", "images: the header of the IDX file is incomplete"),
        (_idx(np.zeros((2, 3, 4), np.uint8))[:-1], b"", r"shape \[2, 3, 4\], 40 bytes.* 39 bytes"),
    ],
)
def test_wrong_files_raise_with_their_names(tmp_path, images, labels, message):
    (tmp_path / "images").write_bytes(images)
    (tmp_path / "labels").write_bytes(labels or _idx(np.zeros(2, np.uint8)))
    with pytest.raises(DataError, match=message):
        Idx(images=str(tmp_path / "images"), labels=str(tmp_path / "labels")).open()


def test_an_array_without_pixels_raises(tmp_path):
    (tmp_path / "images").write_bytes(struct.pack(">4B3I", 0, 0, 8, 3, 0, 3, 4))
    (tmp_path / "labels").write_bytes(struct.pack(">4BI", 0, 0, 8, 1, 0))
    with pytest.raises(DataError, match=r"images: the array \[0, 3, 4\] has no pixels"):
        Idx(images=str(tmp_path / "images"), labels=str(tmp_path / "labels")).open()

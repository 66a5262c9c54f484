import io
import lzma
import pickle
import zipfile

import numpy as np
import pytest

from zoo import DataError
from zoo.data import bounds
from zoo_datasets.array_rows import open_npy
from zoo_datasets.arrays import Arrays

FEATURES = np.arange(12, dtype=np.float64).reshape(3, 2, 2)
FIELDS = {
    "source": {"array": "x", "dims": ["S", 2]},
    "target": {"array": "y", "dims": [], "dtype": "integer"},
}


def _open(folder, fields=FIELDS, **arrays):
    np.savez(folder / "a.npz", **arrays)
    return Arrays(file=str(folder / "a.npz"), fields=fields).open()


def test_examples_are_rows(tmp_path):
    examples = _open(tmp_path, x=FEATURES, y=np.array([3, 1, 2], np.int16))
    assert len(examples) == 3
    np.testing.assert_array_equal(examples[1]["source"], [[4, 5], [6, 7]])
    assert (examples[1]["source"].dtype, examples[1]["target"].dtype) == (np.float32, np.int64)
    assert examples[1]["target"] == 1
    assert examples.origin(1) == f"{tmp_path}/a.npz[1]"


@pytest.mark.parametrize("suffix", ["", ".xz"])
@pytest.mark.parametrize("dtype", ["<f4", ">f8", "<i2"])
def test_a_npy_file_has_one_array(tmp_path, suffix, dtype):
    np.save(tmp_path / "a.npy", FEATURES.astype(dtype))
    (tmp_path / "a.npy.xz").write_bytes(lzma.compress((tmp_path / "a.npy").read_bytes()))
    fields = {"source": {"dims": [2, 2]}}
    examples = Arrays(file=str(tmp_path / f"a.npy{suffix}"), fields=fields).open()
    assert len(pickle.dumps(examples)) < 2000 or suffix
    for index, row in enumerate(FEATURES):
        np.testing.assert_array_equal(examples[index]["source"], row)


def test_the_fields_declare_the_schema():
    source, target = Arrays(file="a.npz", fields=FIELDS).fields().values()
    assert (source.schema.dims, source.schema.dtype) == (("B", "S", 2), "float")
    assert (target.schema.dims, target.schema.dtype) == (("B",), "integer")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_not_finite_raise_with_the_index(tmp_path, value):
    features = FEATURES.copy()
    features[2, 1, 0] = value
    examples = _open(tmp_path, x=features, y=np.zeros(3, int))
    examples[1]
    with pytest.raises(DataError, match=rf"a\.npz\[2\]: 'source' contains {value} at \[1, 0\]"):
        examples[2]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"xs": FEATURES, "y": np.zeros(3, int)}, "no array 'x'.*available: xs, y"),
        ({"x": FEATURES[0], "y": np.zeros(2, int)}, r"'x' is float64 \[2, 2\].*float \[N, S, 2\]"),
        ({"x": FEATURES, "y": np.zeros(3)}, r"'y' is float64 \[3\], but expected integer \[N\]"),
        ({"x": FEATURES, "y": np.zeros(2, int)}, r"same number of rows: 'source' 3, 'target' 2"),
        ({"x": FEATURES[:0], "y": np.zeros(0, int)}, r"same number of rows: 'source' 0"),
    ],
)
def test_arrays_that_do_not_fit_raise(tmp_path, arrays, message):
    with pytest.raises(DataError, match=rf"a\.npz: .*{message}"):
        _open(tmp_path, **arrays)


def test_pickled_objects_are_not_read(tmp_path):
    objects = np.array([{"a": 1}], dtype=object)
    with pytest.raises(DataError, match=r"a\.npz: .*not a valid \.npz file.*Python objects"):
        _open(tmp_path, x=objects, y=np.zeros(1, int))
    np.save(tmp_path / "a.npy", objects, allow_pickle=True)
    with pytest.raises(DataError, match=r"a\.npy: .*the array has Python objects"):
        open_npy(str(tmp_path / "a.npy"))


def test_other_npy_files_raise(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, np.asfortranarray(np.zeros((2, 3))))
    with pytest.raises(DataError, match=r"a\.npy: the array has Fortran order"):
        open_npy(str(path))
    np.save(path, np.zeros(()))
    with pytest.raises(DataError, match=r"a\.npy: the array has one value"):
        open_npy(str(path))
    path.write_bytes(b"not an array")
    with pytest.raises(DataError, match=r"a\.npy: it is not a valid \.npy file"):
        open_npy(str(path))
    np.save(path, np.zeros((2, 3)))
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DataError, match=r"a\.npy: the header declares an array of shape \[2, 3\]"):
        open_npy(str(path))


def test_arrays_much_larger_than_their_file_are_rejected(tmp_path, monkeypatch):
    monkeypatch.setattr(bounds, "MAX_BYTES", 1000)
    np.savez_compressed(tmp_path / "a.npz", source=np.zeros((10**5, 2)))
    with pytest.raises(DataError, match=r"a\.npz: .*its arrays have 1,600,128 bytes; the limit"):
        Arrays(file=str(tmp_path / "a.npz"), fields={"source": {"dims": [2]}}).open()


def test_headers_with_wrong_shapes_are_rejected(tmp_path):
    for shape in ((-5,), (2**40,)):
        header = io.BytesIO()
        data = {"descr": "<f4", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(header, data)
        (tmp_path / "a.npy").write_bytes(header.getvalue())
        with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
            archive.writestr("x.npy", header.getvalue())
        for name in ("a.npy", "a.npz"):
            with pytest.raises(DataError, match=rf"{name}: "):
                Arrays(file=str(tmp_path / name), fields={"x": {"dims": []}}).open()

import io
import pickle
import sys
from importlib.util import find_spec

import numpy as np
import pytest
import soundfile
from PIL import Image

from zoo import DataError
from zoo_datasets.hf_datasets import HfDatasets

if find_spec("datasets"):
    import datasets

installed = pytest.mark.skipif(not find_spec("datasets"), reason="needs the library datasets")

FIELDS = {"source": {"column": "text"}, "target": {"column": "label", "content": "label"}}


PACKAGED = {
    "arrow", "audiofolder", "cache", "conll", "csv", "eval", "fasta", "fastq",
    "folder_based_builder", "genbank", "generator", "harbor", "hdf5", "iceberg",
    "imagefolder", "json", "lance", "meshfolder", "mmcif", "niftifolder", "pandas",
    "parquet", "pdb", "pdffolder", "spark", "sql", "text", "tsfile", "videofolder",
    "vortex", "webdataset", "xml",
}  # fmt: skip


class _Marker:
    """Creates a file when it is unpickled."""

    def __reduce__(self):
        return open, ("marker", "w")


@pytest.mark.parametrize("path", sorted(PACKAGED))
def test_readers_of_the_library_are_not_datasets(tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "datasets", None)  # rejected before the library is imported
    (tmp_path / "train.pkl").write_bytes(pickle.dumps(_Marker()))
    with pytest.raises(
        DataError, match=rf"^{path}: it is neither an existing file or folder nor org/name"
    ):
        HfDatasets(path=path, fields=FIELDS).open()
    assert not (tmp_path / "marker").exists()


@installed
def test_all_readers_of_the_installed_version_are_tested():
    from datasets.packaged_modules import _PACKAGED_DATASETS_MODULES

    assert _PACKAGED_DATASETS_MODULES.keys() <= PACKAGED


@pytest.mark.parametrize(
    "path",
    ["imdb", "a/b/c", "./json", "json/", "/json", "~/json", "../a", "a/..", "s3://a", "hf://a/b",
     "a@b/c", "a/b.py\n", "C:\\a"],
)  # fmt: skip
def test_other_paths_are_neither_folders_nor_repositories(tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(DataError, match="neither an existing file or folder nor org/name"):
        HfDatasets(path=path, fields=FIELDS).open()


@pytest.fixture
def saved(tmp_path, capsys):
    def save(columns, features=None, splits=()):
        rows = datasets.Dataset.from_dict(columns, features=features)
        saved = datasets.DatasetDict(dict.fromkeys(splits, rows)) if splits else rows
        saved.save_to_disk(str(tmp_path / "a"))
        return str(tmp_path / "a")

    return save


@installed
def test_values_are_those_of_the_rows(saved, read_all):
    features = datasets.Features(
        {
            "text": datasets.Value("string"),
            "label": datasets.ClassLabel(names=["no", "yes"]),
            "pair": {"en": datasets.Value("string")},
        }
    )
    columns = {"text": ["a", "b"], "label": [1, 0], "pair": [{"en": "x"}, {"en": "y"}]}
    path = saved(columns, features)
    fields = {**FIELDS, "other": {"column": "pair.en"}}
    examples = HfDatasets(path=path, fields=fields).open()
    assert read_all(examples) == [
        {"source": "a", "target": "yes", "other": "x"},
        {"source": "b", "target": "no", "other": "y"},
    ]
    assert examples.origin(1) == f"{path}[train][1]"


@installed
def test_a_split_is_selected(saved):
    path = saved({"text": ["a"], "label": [3]}, splits=("train", "test"))
    assert HfDatasets(path=path, fields=FIELDS, split="test").open()[0]["target"] == 3
    with pytest.raises(DataError, match=r"no split 'dev'; the dataset has train, test"):
        HfDatasets(path=path, fields=FIELDS, split="dev").open()


@installed
def test_images_and_audio_are_read(saved):
    sound = io.BytesIO()
    soundfile.write(sound, np.array([0.0, 0.5]), 8000, format="WAV")
    # The library writes the type Audio with torchcodec only; the columns are the same.
    stored = {"bytes": datasets.Value("binary"), "path": datasets.Value("string")}
    features = datasets.Features({"image": datasets.Image(), "sound": stored})
    image = Image.fromarray(np.full((2, 3), 9, np.uint8))
    columns = {"image": [image], "sound": [{"bytes": sound.getvalue(), "path": None}]}
    fields = {
        "source": {"column": "image", "content": "image"},
        "sound": {"column": "sound", "content": "audio"},
    }
    example = HfDatasets(path=saved(columns, features), fields=fields).open()[0]
    np.testing.assert_array_equal(example["source"], np.full((2, 3, 1), 9))
    np.testing.assert_allclose(example["sound"].samples, [0, 0.5], atol=1e-4)
    assert example["sound"].rate == 8000


def _png(size):
    content = io.BytesIO()
    Image.new("1", size).save(content, "PNG")
    return content.getvalue()


EPS = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\nshowpage\n"
IMAGE_FIELDS = {"source": {"column": "image", "content": "image"}}


@installed
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (lambda: EPS, r"it is not a valid PNG, JPEG"),
        (lambda: _png((13_000, 13_000)), r"the image has more than .* pixels"),
        (lambda: b"none", r"it is not a valid PNG, JPEG"),
    ],
    ids=["eps", "bomb", "text"],
)
def test_images_are_read_by_the_bounded_reader(saved, content, message):
    features = datasets.Features({"image": datasets.Image()})
    path = saved({"image": [{"bytes": content(), "path": None}]}, features)
    with pytest.raises(DataError, match=rf"\[train\]\[0\]: {message}"):
        HfDatasets(path=path, fields=IMAGE_FIELDS).open()[0]


@installed
def test_columns_that_are_not_used_are_not_decoded(saved):
    inner = {"image": datasets.Image()}
    features = datasets.Features(
        {"text": datasets.Value("string"), "image": datasets.Image(), "nested": inner}
    )
    eps = {"bytes": EPS, "path": None}
    path = saved({"text": ["a"], "image": [eps], "nested": [{"image": eps}]}, features)
    examples = HfDatasets(path=path, fields={"source": {"column": "text"}}).open()
    assert examples[0] == {"source": "a"}
    fields = {"source": {"column": "nested.image", "content": "image"}}
    with pytest.raises(DataError, match=r"\[train\]\[0\]: it is not a valid PNG, JPEG"):
        HfDatasets(path=path, fields=fields).open()[0]


@installed
def test_audio_that_is_not_valid_raises_with_the_index(saved):
    stored = {"bytes": datasets.Value("binary"), "path": datasets.Value("string")}
    columns = {
        "sound": [{"bytes": b"RIFF none", "path": None}, {"bytes": b"none", "path": "a.mp3"}]
    }
    path = saved(columns, datasets.Features({"sound": stored}))
    fields = {"source": {"column": "sound", "content": "audio"}}
    examples = HfDatasets(path=path, fields=fields).open()
    with pytest.raises(DataError, match=r"\[train\]\[0\]: it is not a WAV file"):
        examples[0]
    with pytest.raises(DataError, match=r"\[train\]\[1\]: it is not valid audio"):
        examples[1]


@installed
def test_a_missing_column_raises_with_the_columns(saved):
    path = saved({"texts": ["a"], "label": [1]})
    with pytest.raises(DataError, match=r"no column 'text'; did you mean 'texts'\?.*label, texts"):
        HfDatasets(path=path, fields=FIELDS).open()


@installed
def test_a_wrong_value_raises_with_the_index(saved):
    path = saved({"text": ["a", " "], "label": [1, 2]})
    examples = HfDatasets(path=path, fields=FIELDS).open()
    with pytest.raises(DataError, match=r"\[train\]\[1\]: column 'text' contains ' '"):
        examples[1]


@installed
def test_a_folder_that_was_not_saved_by_the_library_raises(tmp_path):
    with pytest.raises(DataError, match="cannot be loaded"):
        HfDatasets(path=str(tmp_path), fields=FIELDS).open()

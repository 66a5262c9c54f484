import io

import numpy as np
import pytest
import soundfile
from PIL import Image

from zoo import DataError
from zoo_datasets.hf_datasets import HfDatasets

datasets = pytest.importorskip("datasets")

FIELDS = {"source": {"column": "text"}, "target": {"column": "label", "content": "label"}}


@pytest.fixture
def saved(tmp_path, capsys):
    def save(columns, features=None, splits=()):
        rows = datasets.Dataset.from_dict(columns, features=features)
        saved = datasets.DatasetDict(dict.fromkeys(splits, rows)) if splits else rows
        saved.save_to_disk(str(tmp_path / "a"))
        return str(tmp_path / "a")

    return save


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


def test_a_split_is_selected(saved):
    path = saved({"text": ["a"], "label": [3]}, splits=("train", "test"))
    assert HfDatasets(path=path, fields=FIELDS, split="test").open()[0]["target"] == 3
    with pytest.raises(DataError, match=r"no split 'dev'; the dataset has train, test"):
        HfDatasets(path=path, fields=FIELDS, split="dev").open()


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


def test_a_missing_column_raises_with_the_columns(saved):
    path = saved({"texts": ["a"], "label": [1]})
    with pytest.raises(DataError, match=r"no column 'text'; did you mean 'texts'\?.*label, texts"):
        HfDatasets(path=path, fields=FIELDS).open()


def test_a_wrong_value_raises_with_the_index(saved):
    path = saved({"text": ["a", " "], "label": [1, 2]})
    examples = HfDatasets(path=path, fields=FIELDS).open()
    with pytest.raises(DataError, match=r"\[train\]\[1\]: column 'text' contains ' '"):
        examples[1]


def test_a_folder_that_was_not_saved_by_the_library_raises(tmp_path):
    with pytest.raises(DataError, match="cannot be loaded"):
        HfDatasets(path=str(tmp_path), fields=FIELDS).open()

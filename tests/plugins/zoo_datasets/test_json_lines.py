import gzip
import json

import numpy as np
import pytest
import soundfile
from PIL import Image

import zoo
from zoo import DataError
from zoo_datasets.json_lines import JsonLines

FIELDS = {
    "source": {"column": "en"},
    "target": {"column": "label", "content": "label"},
}


def _open(folder, *lines, fields=FIELDS):
    (folder / "a.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return JsonLines(file=str(folder / "a.jsonl"), fields=fields).open()


def test_values_are_those_of_the_objects(tmp_path, read_all):
    examples = _open(tmp_path, '{"en": "a cat", "label": "x"}', '{"label": 3, "en": "ü", "z": 0}')
    assert read_all(examples) == [
        {"source": "a cat", "target": "x"},
        {"source": "ü", "target": 3},
    ]
    assert examples.origin(1) == f"{tmp_path}/a.jsonl:2"


def test_lists_and_nested_objects_are_read(tmp_path):
    fields = {
        "story": {"column": "facts", "content": "texts"},
        "target": {"column": "translation.de"},
        "tags": {"column": "tags", "content": "labels"},
    }
    row = {"facts": ["a", "b"], "translation": {"de": "c"}, "tags": [1, "x"]}
    examples = _open(tmp_path, json.dumps(row), fields=fields)
    assert examples[0] == {"story": ["a", "b"], "target": "c", "tags": [1, "x"]}


def test_images_and_audio_are_read_relative_to_the_table(tmp_path):
    Image.fromarray(np.full((2, 3), 9, np.uint8)).save(tmp_path / "a.png")
    soundfile.write(tmp_path / "a.wav", np.array([0.0, 0.5]), 8000)
    fields = {
        "source": {"column": "image", "content": "image"},
        "sound": {"column": "wav", "content": "audio"},
    }
    example = _open(tmp_path, '{"image": "a.png", "wav": "a.wav"}', fields=fields)[0]
    assert example["source"].shape == (2, 3, 1)
    np.testing.assert_allclose(example["sound"].samples, [0, 0.5], atol=1e-4)


def test_a_compressed_file_is_read(tmp_path):
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(b'{"en": "a"}\n'))
    fields = {"source": {"column": "en"}}
    assert JsonLines(file=str(tmp_path / "a.jsonl.gz"), fields=fields).open()[0] == {"source": "a"}


def test_a_missing_column_raises_with_the_columns_when_opened(tmp_path):
    with pytest.raises(DataError, match=r"a\.jsonl:1: no column 'en'; did you mean 'eng'\?.*label"):
        _open(tmp_path, '{"eng": "a", "label": 1}')


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"label": 1}', r"no column 'en'.*available: label"),
        ('{"en": "a", "label": 1.5}', r"column 'label' contains 1\.5; expected an integer, or"),
        ('{"en": "a", "label": true}', r"column 'label' contains True"),
        ('{"en": " ", "label": 1}', r"column 'en' contains ' '; expected a text that is not empty"),
        ('{"en": null, "label": 1}', r"column 'en' contains None"),
        ('{"en": "a"', r"not valid JSON: Expecting ',' delimiter"),
        ("[1]", r"expected a JSON object, but found list"),
        ("", r"the line is empty"),
    ],
)
def test_a_wrong_line_raises_with_file_and_line(tmp_path, line, message):
    examples = _open(tmp_path, '{"en": "a", "label": "x"}', line)
    with pytest.raises(DataError, match=rf"a\.jsonl:2: {message}"):
        examples[1]


def test_a_wrong_first_line_raises_when_it_is_read(tmp_path):
    examples = _open(tmp_path, "{", '{"en": "a", "label": "x"}')
    assert examples[1] == {"source": "a", "target": "x"}
    with pytest.raises(DataError, match=r"a\.jsonl:1: not valid JSON"):
        examples[0]


def test_an_unreadable_image_raises_with_its_file(tmp_path):
    fields = {"source": {"column": "image", "content": "image"}}
    with pytest.raises(DataError, match=r"missing\.png: cannot be read: no such file"):
        _open(tmp_path, '{"image": "missing.png"}', fields=fields)[0]


def test_an_unknown_key_of_a_field_is_rejected_in_a_spec(tmp_path):
    data = "{type: json-lines, file: a.jsonl, fields: {source: {colum: en}}}"
    text = f"zoo: 1\nname: a\nextends: gat-tiny\ntrain:\n  data: {data}\n"
    (tmp_path / "spec.yaml").write_text(text)
    with pytest.raises(zoo.SpecError, match=r"fields\.source\.colum"):
        zoo.check(tmp_path / "spec.yaml")

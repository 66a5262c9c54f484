"""Parquet and Arrow files are tables."""

import json

import numpy as np
import pytest

from zoo import DataError
from zoo_datasets.hf_datasets import HfDatasets

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

ROWS = {"text": ["a cat", "zwei"], "label": ["red", "blue"], "in": [{"x": [1]}, {"x": [2, 3]}]}
FIELDS = {
    "source": {"column": "text"},
    "target": {"column": "label", "content": "label"},
    "numbers": {"column": "in.x", "content": "numbers"},
}


def write(path, table, *, stream=False):
    if path.suffix.lower() == ".parquet":
        parquet.write_table(table, path)
    else:
        new = pyarrow.ipc.new_stream if stream else pyarrow.ipc.new_file
        with new(str(path), table.schema) as writer:
            writer.write_table(table)
    return str(path)


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "stream.arrow", "a [1]*.PARQUET"])
def test_files_are_tables(tmp_path, name):
    path = write(tmp_path / name, pyarrow.table(ROWS), stream=name.startswith("stream"))
    examples = HfDatasets(path=path, fields=FIELDS).open()
    assert len(examples) == 2
    found = examples[1]
    assert (found["source"], found["target"]) == ("zwei", "blue")
    np.testing.assert_array_equal(found["numbers"], [2, 3])
    assert examples.origin(1) == f"{path}[1]"


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
def test_labels_of_the_library_have_names(tmp_path, name):
    features = {"label": {"names": ["no", "yes"], "_type": "ClassLabel"}}
    metadata = {"huggingface": json.dumps({"info": {"features": features}})}
    table = pyarrow.table({"label": [1, 0]}).replace_schema_metadata(metadata)
    path = write(tmp_path / name, table)
    examples = HfDatasets(path=path, fields={"target": FIELDS["target"]}).open()
    assert [examples[0]["target"], examples[1]["target"]] == ["yes", "no"]


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
def test_missing_columns_and_damaged_files_raise(tmp_path, name):
    path = write(tmp_path / name, pyarrow.table(ROWS))
    with pytest.raises(DataError, match=r"no column 'txt'.*text"):
        HfDatasets(path=path, fields={"source": {"column": "txt"}}).open()
    content = (tmp_path / name).read_bytes()
    for damaged in (content[: len(content) // 2], b"a,b\n", b""):
        (tmp_path / name).write_bytes(damaged)
        with pytest.raises(DataError, match="cannot be loaded") as error:
            HfDatasets(path=path, fields=FIELDS).open()
        assert error.value.origin == path


@pytest.mark.parametrize(
    ("name", "hint"), [("a.csv.gz", "csv"), ("a.jsonl", "json-lines"), ("a.pkl", None)]
)
def test_other_files_name_their_dataset(tmp_path, name, hint):
    (tmp_path / name).write_text("a")
    expected = f"; use the dataset {hint}$" if hint else "a folder$"
    with pytest.raises(DataError, match=rf"expected a .parquet or .arrow file.*{expected}"):
        HfDatasets(path=str(tmp_path / name), fields=FIELDS).open()

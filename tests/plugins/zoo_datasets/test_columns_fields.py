import numpy as np
import pytest

from zoo import DataError, ZooError
from zoo_datasets.csv import Csv
from zoo_datasets.json_lines import JsonLines

NUMBER = {"source": {"columns": ["a", "b"]}, "target": {"column": "score", "content": "number"}}


def test_pairs_of_texts_and_numbers(tmp_path):
    (tmp_path / "a.tsv").write_text("a\tb\tscore\none\ttwo\t3.5\nx\ty\t-1e2\n")
    (tmp_path / "a.jsonl").write_text('{"a": "one", "b": "two", "score": 3.5}\n')
    for dataset in (
        Csv(file=str(tmp_path / "a.tsv"), fields=NUMBER),
        JsonLines(file=str(tmp_path / "a.jsonl"), fields=NUMBER),
    ):
        assert {name: field.content for name, field in dataset.fields().items()} == {
            "source": "texts",
            "target": "array",
        }
        assert dataset.open()[0] == {"source": ["one", "two"], "target": 3.5}
        assert dataset.open()[0]["target"].dtype == np.float32


def test_several_numbers(tmp_path):
    fields = {"target": {"column": "x", "content": "numbers"}}
    (tmp_path / "a.csv").write_text("x\n1 2.5\n")
    (tmp_path / "a.jsonl").write_text('{"x": [1, 2.5]}\n')
    for dataset in (
        Csv(file=str(tmp_path / "a.csv"), fields=fields),
        JsonLines(file=str(tmp_path / "a.jsonl"), fields=fields),
    ):
        np.testing.assert_array_equal(dataset.open()[0]["target"], np.float32([1, 2.5]))


@pytest.mark.parametrize("cell", ["many", "nan", "inf", ""])
def test_what_is_not_a_number_is_named_with_its_line(tmp_path, cell):
    (tmp_path / "a.tsv").write_text(f"a\tb\tscore\none\ttwo\t3\nx\ty\t{cell}\n")
    examples = Csv(file=str(tmp_path / "a.tsv"), fields=NUMBER).open()
    with pytest.raises(DataError, match=r"a\.tsv:3.*column 'score' contains.*a finite number"):
        examples[1]


def test_missing_columns_of_a_pair_are_named(tmp_path):
    (tmp_path / "a.tsv").write_text("a\tc\tscore\none\ttwo\t3\n")
    with pytest.raises(DataError, match=r"a\.tsv:1.*no column 'b'"):
        Csv(file=str(tmp_path / "a.tsv"), fields=NUMBER).open()
    with pytest.raises(ZooError, match="field 'x' needs either 'column' or 'columns'"):
        Csv(file="a.csv", fields={"x": {}})
    with pytest.raises(ZooError, match=r"has both 'column' and 'columns'; set the one of an"):
        Csv(file="a.csv", fields={"x": {"column": "a", "columns": ["a"]}})
    fields = {"x": {"column": None, "columns": ["a", "c"]}}
    assert Csv(file=str(tmp_path / "a.tsv"), fields=fields).open()[0] == {"x": ["one", "two"]}
    with pytest.raises(
        ZooError, match="field 'x' has several columns, so its content is texts or messages"
    ):
        JsonLines(file="a", fields={"x": {"columns": ["a", "b"], "content": "label"}})


@pytest.mark.parametrize("content", ["image", "audio"])
def test_a_file_that_cannot_be_read_is_named_with_the_line_of_the_table(tmp_path, content):
    (tmp_path / "a.csv").write_text("path\nnowhere.bin\n")
    fields = {"source": {"column": "path", "content": content}}
    examples = Csv(file=str(tmp_path / "a.csv"), fields=fields).open()
    with pytest.raises(DataError, match=r"a\.csv:2: .*nowhere\.bin: cannot be read") as found:
        examples[0]
    assert found.value.message == "cannot be read: no such file or directory"  # counted if skipped


@pytest.mark.parametrize("separator", [None, ","])
def test_an_item_may_have_no_labels(tmp_path, separator):
    fields = {"target": {"column": "y", "content": "labels"}}
    if separator:
        fields["target"]["separator"] = separator
    (tmp_path / "a.csv").write_text('x,y\na,\nb,"p"\n')
    (tmp_path / "a.jsonl").write_text('{"y": []}\n{"y": ["p"]}\n')
    for dataset in (
        Csv(file=str(tmp_path / "a.csv"), fields=fields),
        JsonLines(file=str(tmp_path / "a.jsonl"), fields=fields),
    ):
        assert [dataset.open()[index]["target"] for index in range(2)] == [[], ["p"]]


def test_a_separator_is_between_labels_and_numbers(tmp_path):
    fields = {
        "target": {"column": "y", "content": "labels", "separator": ","},
        "n": {"column": "n", "content": "numbers", "separator": ";"},
    }
    (tmp_path / "a.csv").write_text('n,y\n1;2.5,"science fiction, drama"\n1;2,"a,,b"\n')
    (tmp_path / "a.jsonl").write_text('{"y": "science fiction, drama", "n": "1;2.5"}\n')
    for dataset in (
        Csv(file=str(tmp_path / "a.csv"), fields=fields),
        JsonLines(file=str(tmp_path / "a.jsonl"), fields=fields),
    ):
        example = dataset.open()[0]
        assert example["target"] == ["science fiction", "drama"]
        np.testing.assert_array_equal(example["n"], np.float32([1, 2.5]))
    with pytest.raises(DataError, match=r"a\.csv:3: column 'y' contains 'a,,b'"):
        Csv(file=str(tmp_path / "a.csv"), fields=fields).open()[1]
    with pytest.raises(ZooError, match="field 'x' has a separator, so its content must be labels"):
        Csv(file="a.csv", fields={"x": {"column": "a", "separator": ","}})

import csv
import random

import pytest

from zoo import DataError, ZooError
from zoo_datasets.csv import Csv
from zoo_datasets.csv_rows import CsvRows

FIELDS = {"source": {"column": "en"}, "target": {"column": "label", "content": "label"}}


def _open(folder, text, *, name="a.csv", fields=FIELDS, **params):
    (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return Csv(file=str(folder / name), fields=fields, **params).open()


def test_values_are_those_of_the_rows(tmp_path, read_all):
    examples = _open(tmp_path, 'label,en\r\nx,"a, ""cat"""\r\n\r\ny,ü\r\n')
    assert read_all(examples) == [
        {"source": 'a, "cat"', "target": "x"},
        {"source": "ü", "target": "y"},
    ]
    assert [examples.origin(i) for i in range(2)] == [f"{tmp_path}/a.csv:2", f"{tmp_path}/a.csv:4"]


def test_a_value_may_have_line_breaks(tmp_path, read_all):
    examples = _open(tmp_path, 'en,label\n"a\n\ncat",x\nb,y\n')
    assert [example["source"] for example in read_all(examples)] == ["a\n\ncat", "b"]
    assert examples.origin(1) == f"{tmp_path}/a.csv:5"


def test_the_delimiter_of_a_tsv_file_is_a_tab(tmp_path):
    assert _open(tmp_path, "en\tlabel\na, b\tx\n", name="a.tsv")[0]["source"] == "a, b"
    assert _open(tmp_path, "en;label\na, b;x\n", delimiter=";")[0]["source"] == "a, b"


def test_columns_without_a_header_are_numbers(tmp_path):
    fields = {"source": {"column": "1"}, "tags": {"column": "0", "content": "labels"}}
    examples = _open(tmp_path, "x y,a\nz,b\n", fields=fields, header=False)
    assert len(examples) == 2
    assert examples[0] == {"source": "a", "tags": ["x", "y"]}


def test_quotes_are_characters_without_quoting(tmp_path):
    assert _open(tmp_path, 'en,label\n"a,x\n', quoting=False)[0]["source"] == '"a'


@pytest.mark.parametrize("seed", range(5))
def test_rows_are_those_of_the_csv_module(tmp_path, seed):
    rng = random.Random(seed)
    words = ["", "a", 'b"c', "d,e", "f\ng", "ü", "\n", " x ", '"']
    rows = [[rng.choice(words) for _ in range(3)] for _ in range(40)]
    with open(tmp_path / "a.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator=rng.choice(["\n", "\r\n"]))
        writer.writerows([["x", "y", "z"], *rows])
    found = CsvRows(str(tmp_path / "a.csv"))
    assert [list(row.values()) for row in found] == rows
    order = rng.sample(range(40), 40)
    assert [list(found[i].values()) for i in order] == [rows[i] for i in order]


def test_a_missing_column_raises_with_the_columns(tmp_path):
    with pytest.raises(DataError, match=r"a\.csv:1: no column 'en'; did you mean 'eng'\?.*label"):
        _open(tmp_path, "eng,label\na,x\n")


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_another_delimiter_is_named(tmp_path, delimiter):
    text = delimiter.join(["en", "label"]) + "\n" + delimiter.join(["a", "x"]) + "\n"
    with pytest.raises(DataError, match=r"a\.csv:1: no column 'en'.* set delimiter: ") as caught:
        _open(tmp_path, text)
    assert repr(delimiter) in str(caught.value)
    assert _open(tmp_path, text, delimiter=delimiter)[0] == {"source": "a", "target": "x"}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("a", "the row has 1 values, but there are 2 columns"),
        ("a,b,c", "the row has 3 values, but there are 2 columns"),
        (",x", "column 'en' contains ''; expected a text that is not empty"),
        ("a,", "column 'label' contains ''; expected an integer, or a text that is not empty"),
        ("a,x ", "column 'label' contains 'x '; expected .* has no spaces at its ends"),
        (b"\xff,x", "byte 0xff at position 1 is not valid UTF-8"),
    ],
)
def test_a_wrong_row_raises_with_file_and_line(tmp_path, row, message):
    row = row if isinstance(row, bytes) else row.encode()
    examples = _open(tmp_path, b"en,label\nb,y\n" + row + b"\nc,z\n")
    assert examples[2] == {"source": "c", "target": "z"}
    with pytest.raises(DataError, match=rf"a\.csv:3: {message}"):
        examples[1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('en,label\na,x\n"b,y\nc,z\n', r"a\.csv:3: not valid CSV: .*quoting: false"),
        ("en,label\n", "a.csv: the file has no rows"),
        ("", "a.csv: the file has no rows"),
        ("en,en\na,b\n", r"a\.csv:1: column 'en' occurs twice"),
    ],
)
def test_a_wrong_file_raises_when_opened(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        _open(tmp_path, text)


def test_lists_of_texts_are_rejected():
    with pytest.raises(ZooError, match="'story' is a list, which a column of a CSV file"):
        Csv(file="a.csv", fields={"story": {"column": "a", "content": "texts"}})


def test_a_table_with_many_columns_has_a_short_message(tmp_path):
    names = [f"c{number}" for number in range(50_000)]
    (tmp_path / "wide.csv").write_text(",".join(names) + "\n" + ",".join(names) + "\n")
    fields = {"target": {"column": "c7"}}
    assert Csv(file=str(tmp_path / "wide.csv"), fields=fields).open()[0] == {"target": "c7"}
    with pytest.raises(DataError, match=r"no column 'none' .* and 49,970 more\)") as caught:
        Csv(file=str(tmp_path / "wide.csv"), fields={"target": {"column": "none"}}).open()
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize(
    ("text", "hint"), [("a,b\n" + "x" * 140_000, "json-lines"), ("a,b\r1,2\r", "line feeds")]
)
def test_errors_of_the_parser_say_what_to_do(tmp_path, text, hint):
    (tmp_path / "a.csv").write_bytes(text.encode())
    with pytest.raises(DataError, match=rf"a\.csv:\d: not valid CSV: .*{hint}"):
        Csv(file=str(tmp_path / "a.csv"), fields={"target": {"column": "a"}}).open()

import pytest

import zoo
from zoo import DataError, ZooError
from zoo_datasets.plain_text import PlainText

TEXT = "\none\ntwo\n\n\nthree\n \nfour"


@pytest.fixture
def files(tmp_path):
    (tmp_path / "a.txt").write_text(TEXT)
    (tmp_path / "b.txt").write_text("five\n\n")
    return [str(tmp_path / "a.txt"), str(tmp_path / "b.txt")]


@pytest.mark.parametrize(
    ("unit", "texts", "lines"),
    [
        ("line", ["one", "two", "three", "four", "five"], ["a:2", "a:3", "a:6", "a:8", "b:1"]),
        ("paragraph", ["one\ntwo", "three", "four", "five"], ["a:2", "a:6", "a:8", "b:1"]),
        ("document", [TEXT.strip("\n"), "five"], ["a:2", "b:1"]),
    ],
)
def test_examples_are_the_units_of_all_files(files, tmp_path, unit, texts, lines):
    examples = PlainText(files=files, unit=unit).open()
    assert [examples[i] for i in range(len(examples))] == [{"target": text} for text in texts]
    origins = [examples.origin(i) for i in range(len(examples))]
    assert origins == [f"{tmp_path}/{line.replace(':', '.txt:')}" for line in lines]


def test_the_field_has_the_given_name(files):
    dataset = PlainText(files=files[0], field="tokens")
    assert list(dataset.fields()) == ["tokens"]
    assert dataset.open()[0] == {"tokens": "one"}


def test_undecodable_bytes_raise_with_file_and_line(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"one\n\xff\xfe\n")
    examples = PlainText(files=str(tmp_path / "a.txt")).open()
    with pytest.raises(DataError, match=r"a\.txt:2: byte 0xff"):
        examples[1]


def test_a_file_without_text_raises(tmp_path):
    (tmp_path / "a.txt").write_text("\n \n")
    with pytest.raises(DataError, match=r"a\.txt: the file has no text"):
        PlainText(files=str(tmp_path / "a.txt")).open()


def test_a_list_without_files_is_an_error_of_the_spec():
    data = "train.data={type: plain-text, files: []}"
    overrides = [data, "train.optimiser=adamw", "train.steps=1"]
    with pytest.raises(zoo.SpecError, match=r"files.*at least 1"):
        zoo.load_spec("gpt2-tiny", overrides=overrides)


def test_empty_lines_are_examples_on_request(tmp_path):
    (tmp_path / "a.txt").write_text("one\n \ntwo\n\n")
    examples = PlainText(files=str(tmp_path / "a.txt"), empty=True).open()
    assert [examples[i]["target"] for i in range(len(examples))] == ["one", "", "two", ""]


def test_a_document_is_cut_by_its_characters(tmp_path):
    (tmp_path / "a.txt").write_text("abc\n\ndefgh")
    parts = [
        PlainText(files=str(tmp_path / "a.txt"), unit="document", part=part).open()[0]["target"]
        for part in ((0, 0.9), (0.9, 1))
    ]
    assert parts == ["abc\n\ndefg", "h"]


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"empty": True, "unit": "document"}, "empty: true needs unit: line"),
        ({"part": (0, 0.5)}, "part needs unit: document"),
        ({"part": (0.5, 0.5), "unit": "document"}, "the first share must be less"),
    ],
)
def test_parameters_that_do_not_fit_the_unit_are_rejected(params, message):
    with pytest.raises(ZooError, match=message):
        PlainText(files="a.txt", **params)

import lzma

import pytest

from zoo import DataError, ZooError
from zoo_datasets.parallel_text import ParallelText


def _write(folder, **texts):
    for name, text in texts.items():
        (folder / name).write_bytes(text.encode() if isinstance(text, str) else text)
    return {name: str(folder / name) for name in texts}


def test_examples_are_pairs_of_lines(tmp_path):
    paths = _write(tmp_path, en="a cat\na dog\n", de="eine Katze\nein Hund")
    examples = ParallelText(source=paths["en"], target=paths["de"]).open()
    assert len(examples) == 2
    assert examples[1] == {"source": "a dog", "target": "ein Hund"}
    assert examples.origin(1) == f"{tmp_path}/en:2"


def test_compressed_files_are_read(tmp_path):
    (tmp_path / "en.xz").write_bytes(lzma.compress(b"a\nb\n"))
    paths = _write(tmp_path, de="c\nd\n")
    examples = ParallelText(source=str(tmp_path / "en.xz"), target=paths["de"]).open()
    assert examples[0] == {"source": "a", "target": "c"}


def test_several_targets_are_references_in_evaluation(tmp_path):
    paths = _write(tmp_path, en="a\n", de1="b\n", de2="c\n")
    dataset = ParallelText(source=paths["en"], target=[paths["de1"], paths["de2"]])
    assert dataset.open()[0] == {"source": "a", "target": "b"}
    assert dataset.open(evaluation=True)[0] == {"source": "a", "target": ["b", "c"]}


def test_columns_of_a_file_are_read(tmp_path):
    paths = _write(tmp_path, tsv="1\ta cat\teine Katze\n2\ta dog\tein Hund\n")
    examples = ParallelText(file=paths["tsv"], columns=(1, 2)).open()
    assert examples[1] == {"source": "a dog", "target": "ein Hund"}
    assert examples.origin(1) == f"{tmp_path}/tsv:2"


def test_columns_with_another_delimiter_are_read(tmp_path):
    paths = _write(tmp_path, txt="ABADIE  AH B AE D IY\r\nABATES AH\r\n")
    examples = ParallelText(file=paths["txt"], delimiter="  ").open()
    assert examples[0] == {"source": "ABADIE", "target": "AH B AE D IY"}
    with pytest.raises(DataError, match=r"txt:2: the line has 1 columns, separated by '  ', but"):
        examples[1]


def test_unequal_numbers_of_lines_raise_with_both_files(tmp_path):
    paths = _write(tmp_path, en="a\nb\n", de="c\n")
    with pytest.raises(DataError, match=r"/en has 2 lines, but .*/de has 1;"):
        ParallelText(source=paths["en"], target=paths["de"]).open()


def test_an_empty_line_raises_with_file_and_line(tmp_path):
    paths = _write(tmp_path, en="a\nb\n", de="c\n\n")
    examples = ParallelText(source=paths["en"], target=paths["de"]).open()
    with pytest.raises(DataError, match=r"/de:2: the line is empty") as caught:
        examples[1]
    assert caught.value.origin == f"{tmp_path}/de:2"


def test_undecodable_bytes_raise_with_file_and_line(tmp_path):
    paths = _write(tmp_path, en=b"a\n\xff\n", de="c\nd\n")
    examples = ParallelText(source=paths["en"], target=paths["de"]).open()
    with pytest.raises(DataError, match=r"/en:2: byte 0xff .* not valid UTF-8"):
        examples[1]


@pytest.mark.parametrize(
    ("row", "message"),
    [("b", "1 columns.*column 1 .*'target'"), ("b\t ", r"column 1 \('target'\) is empty")],
)
def test_a_line_without_the_column_raises(tmp_path, row, message):
    paths = _write(tmp_path, tsv=f"a\tb\n{row}\n")
    with pytest.raises(DataError, match=f"/tsv:2: .*{message}"):
        ParallelText(file=paths["tsv"]).open()[1]


def test_files_without_lines_raise(tmp_path):
    paths = _write(tmp_path, en="", de="")
    with pytest.raises(DataError, match=r"/en: the file has no lines"):
        ParallelText(source=paths["en"], target=paths["de"]).open()


@pytest.mark.parametrize(
    "params", [{}, {"source": "a"}, {"source": "a", "target": "b", "file": "c"}, {"target": "a"}]
)
def test_other_combinations_of_files_raise(params):
    with pytest.raises(ZooError, match="either 'source' and 'target', or 'file'"):
        ParallelText(**params)


def test_multi30k_has_29_000_pairs(published):
    folder = published("multi30k")
    files = {"source": str(folder / "train.en.xz"), "target": str(folder / "train.de.xz")}
    examples = ParallelText(**files).open()
    assert len(examples) == 29_000
    assert examples[0]["source"] == "Two young, White males are outside near many bushes."
    assert examples[0]["target"].startswith("Zwei junge weiße Männer")


def test_lines_with_the_same_source_are_references_in_evaluation(tmp_path):
    (tmp_path / "g2p.txt").write_text("READ  R EH D\nA  AH\nREAD  R IY D\n")
    params = {"file": str(tmp_path / "g2p.txt"), "delimiter": "  ", "merge": True}
    examples = ParallelText(**params).open(evaluation=True)
    assert [examples[i] for i in range(len(examples))] == [
        {"source": "READ", "target": ["R EH D", "R IY D"]},
        {"source": "A", "target": ["AH"]},
    ]
    assert examples.origin(1).endswith("g2p.txt:2")
    assert len(ParallelText(**params).open()) == 3

import pytest

from zoo import DataError
from zoo_datasets.conll import Conll

TEXT = "-DOCSTART- -X- O\n\n# id 1\nAda\tNNP\tB-PER\nwrote\tVBD\tO\n\n\nin IN O\nNew NNP B-LOC"


def test_sentences_and_their_lines(tmp_path):
    (tmp_path / "a.conll").write_text(TEXT)
    examples = Conll(file=str(tmp_path / "a.conll")).open()
    assert [examples[index] for index in range(len(examples))] == [
        {"source": ["Ada", "wrote"], "target": ["B-PER", "O"]},
        {"source": ["in", "New"], "target": ["O", "B-LOC"]},
    ]
    assert examples.origin(1).endswith("a.conll:8")
    other = Conll(file=str(tmp_path / "a.conll"), word=1, tag=0).open()
    assert other[0] == {"source": ["NNP", "VBD"], "target": ["Ada", "wrote"]}


def test_a_line_without_tag_is_named(tmp_path):
    (tmp_path / "a.conll").write_text("Ada B-PER\nwrote\n")
    with pytest.raises(DataError, match=r"a\.conll:2: expected a word and its tag, found 'wrote'"):
        Conll(file=str(tmp_path / "a.conll")).open()[0]
    (tmp_path / "a.conll").write_text("\n\n")
    with pytest.raises(DataError, match="the file has no words"):
        Conll(file=str(tmp_path / "a.conll")).open()


def test_a_number_sign_in_a_sentence_is_a_word(tmp_path):
    (tmp_path / "a.conll").write_text("# id 7\nabout IN O\n# # B-NP\n450 CD I-NP\n")
    examples = Conll(file=str(tmp_path / "a.conll")).open()
    assert [examples[index] for index in range(len(examples))] == [
        {"source": ["about", "#", "450"], "target": ["O", "B-NP", "I-NP"]}
    ]

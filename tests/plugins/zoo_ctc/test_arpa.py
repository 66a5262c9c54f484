import math

import numpy as np
import pytest
from arpa_kit import ARPA

from zoo import ZooError
from zoo_ctc.arpa import ArpaLanguageModel, read_arpa
from zoo_ctc.language_models import load_language_model


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "small.arpa"
    file.write_text(ARPA)
    return file


# Computed by hand, in log10.
KNOWN = [
    ("1", (), -0.4),
    ("1", ("<s>",), -0.2),
    ("2", ("<s>",), -0.3 - 0.8),  # backs off from <s>
    ("2", ("<s>", "1"), -0.15 - 0.9),  # backs off to the bigram '1 2'
    ("1", ("<s>", "1"), -0.15 - 0.2 - 0.4),  # backs off twice, to '1'
    ("</s>", ("<s>", "1"), -0.1),
    ("</s>", ("1", "2"), -0.3),  # '1 2' has no back-off weight, which means 0
    ("1", ("9", "8", "1", "2"), -0.5),  # only the last two words are used
    ("never", ("2",), -0.1 - 0.7),  # as <unk>
    ("2", ("never",), -0.05),  # '<unk> 2' is listed
]


@pytest.mark.parametrize(("word", "history", "expected"), KNOWN)
def test_known_values(path, word, history, expected):
    assert read_arpa(path).logprob(word, history) == pytest.approx(expected * math.log(10))


def test_labels_are_words_by_id_or_by_name(path, tmp_path):
    model = load_language_model(str(path), None)
    rows, ends = model.next_logprobs([(), (1,)], 3)
    np.testing.assert_allclose(rows[0] / math.log(10), [-0.3 - 0.7, -0.2, -1.1])
    np.testing.assert_allclose(ends / math.log(10), [-0.3 - 0.6, -0.1])

    names = tmp_path / "names.txt"
    names.write_text("blank\n2\n1\n")
    swapped, _ = load_language_model(str(path), str(names)).next_logprobs([()], 3)
    np.testing.assert_allclose(swapped[0], rows[0][[0, 2, 1]])
    with pytest.raises(ZooError, match=r"3 words.*4 labels"):
        load_language_model(str(path), str(names)).next_logprobs([()], 4)


def test_without_unk_and_end_in_the_file(tmp_path):
    file = tmp_path / "bare.arpa"
    file.write_text("\\data\\\nngram 1=1\n\\1-grams:\n-0.5 1\n\\end\\\n")
    rows, ends = ArpaLanguageModel(read_arpa(file)).next_logprobs([(1,)], 3)
    assert rows[0].tolist() == [-math.inf, pytest.approx(-0.5 * math.log(10)), -math.inf]
    assert ends.tolist() == [0.0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nothing", r"ARPA.*\\data\\"),
        ("\\data\\\nngram 1=5\n", "no n-grams"),
        ("\\data\\\nngrams: 5\n", ":2: 'ngrams: 5'"),
        (ARPA.replace("\\end\\", ""), r"\\end\\"),
        (ARPA.replace("ngram 2=5", "ngram 2=9"), r"5 2-grams.*\\data\\.*9"),
        (ARPA.replace("ngram 3=1\n", ""), r":21:.*\\data\\.*3-grams"),
        (ARPA.replace("-0.9 1 2", "-0.9 1"), ":17: '-0.9 1'.*2-gram"),
        (ARPA.replace("-0.9 1 2", "x 1 2"), ":17: 'x 1 2'.*number"),
        (ARPA.replace("-0.9 1 2", "nan 1 2"), ":17: 'nan 1 2'.*number"),
        (ARPA.replace("-0.9 1 2", "inf 1 2"), ":17: 'inf 1 2'.*number"),
        ("\\data\\\nngram 0=1\n", ":2: 'ngram 0=1'.*count"),
        (f"\\data\\\nngram 1={'9' * 5000}\n", ":2: 'ngram 1=9+'.*count"),
    ],
)
def test_an_invalid_file_raises_with_its_line(tmp_path, text, message):
    file = tmp_path / "invalid.arpa"
    file.write_text(text)
    with pytest.raises(ZooError, match=message):
        read_arpa(file)


def test_a_file_that_cannot_be_read_raises(tmp_path):
    with pytest.raises(ZooError, match=r"absent\.arpa.*no such file"):
        read_arpa(tmp_path / "absent.arpa")
    file = tmp_path / "binary.arpa"
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ZooError, match=r"ARPA.*UTF-8"):
        read_arpa(file)
    with pytest.raises(ZooError, match=r"labels.*UTF-8"):
        load_language_model(str(_write_arpa(tmp_path)), str(file))


def _write_arpa(folder):
    file = folder / "valid.arpa"
    file.write_text(ARPA)
    return file

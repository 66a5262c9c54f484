import tarfile

import pytest

from zoo import DataError
from zoo_datasets.stories import Stories

TEXT = """1 Mary went home.
2 Where is Mary? \thome\t1
3 John ran.
4 Who ran?\tJohn\t3
1 Sandra slept.
2 Who slept?\tSandra\t1
"""


@pytest.fixture
def file(tmp_path):
    def write(text, name="qa.txt"):
        (tmp_path / name).write_text(text)
        return str(tmp_path / name)

    return write


def test_each_question_has_the_sentences_before_it(file, read_all, tmp_path):
    examples = Stories(files=file(TEXT)).open()
    assert read_all(examples) == [
        {"story": ["Mary went home."], "question": "Where is Mary?", "target": "home"},
        {"story": ["Mary went home.", "John ran."], "question": "Who ran?", "target": "John"},
        {"story": ["Sandra slept."], "question": "Who slept?", "target": "Sandra"},
    ]
    assert examples.origin(1) == f"{tmp_path}/qa.txt:4"


def test_several_files_are_read_as_one(file):
    examples = Stories(files=[file(TEXT), file(TEXT, "qa2.txt")]).open()
    assert len(examples) == 6
    assert examples[3]["question"] == "Where is Mary?"
    assert examples.origin(3).endswith("qa2.txt:2")


def test_the_last_sentences_are_kept(file):
    examples = Stories(files=file(TEXT), max_sentences=1).open()
    assert examples[1]["story"] == ["John ran."]


def test_the_content_of_the_target_is_a_parameter():
    assert Stories(files="a").fields()["target"].content == "label"
    assert Stories(files="a", target="text").fields()["target"].content == "text"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 Where?\thome\n", r"qa\.txt:1: the question has no sentence before it"),
        ("1 Mary left.\n2 Where?\t \n", r"qa\.txt:2: the question has no answer"),
        ("Mary left.\n2 Where?\thome\n", r"qa\.txt:1: expected a number and a sentence"),
        ("1 Mary left.\n\n2 Where?\thome\n", r"qa\.txt:2: expected a number and a sentence"),
    ],
)
def test_a_wrong_line_raises_with_file_and_line(file, text, message):
    examples = Stories(files=file(text)).open()
    with pytest.raises(DataError, match=message):
        examples[0]


def test_a_file_without_questions_raises(file):
    with pytest.raises(DataError, match=r"qa\.txt: no line is a question"):
        Stories(files=file("1 Mary went home.\n")).open()


def test_babi_has_the_published_numbers_of_questions(published, tmp_path):
    with tarfile.open(published("babi") / "en-valid.tar.xz") as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # since Python 3.11.4
        archive.extractall(tmp_path)
    counts = {"train": 900, "valid": 100, "test": 1000}
    for split, count in counts.items():
        name = tmp_path / "en-valid" / f"qa1_{split}.txt"
        assert len(Stories(files=str(name)).open()) == count
    train = Stories(files=str(tmp_path / "en-valid" / "qa1_train.txt")).open()
    assert train[0] == {
        "story": ["Mary moved to the bathroom.", "John went to the hallway."],
        "question": "Where is Mary?",
        "target": "bathroom",
    }
    files = [str(tmp_path / "en-valid" / f"qa{task}_test.txt") for task in range(1, 21)]
    assert len(Stories(files=files).open()) == 20_000


def test_the_punctuation_at_the_end_of_sentences_can_be_removed(tmp_path):
    (tmp_path / "qa.txt").write_text("1 Mary left.\n2 Who left?\tMary\t1\n")
    examples = Stories(files=str(tmp_path / "qa.txt"), punctuation=False).open()
    assert examples[0] == {"story": ["Mary left"], "question": "Who left", "target": "Mary"}

"""Dataset 'split'."""

import pytest

from zoo import DataError
from zoo.plugin import Blueprint
from zoo_datasets.plain_text import PlainText
from zoo_datasets.split import Split


@pytest.fixture
def data(tmp_path):
    (tmp_path / "all.txt").write_text("".join(f"line {i}\n" for i in range(50)))
    return Blueprint.of(PlainText, files=str(tmp_path / "all.txt"))


def _texts(data, **params):
    examples = Split(data=data, **params).open()
    return [examples[index]["target"] for index in range(len(examples))]


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize(("fraction", "held_out"), [(0.1, 5), (0.5, 25), (0.001, 1), (0.999, 49)])
def test_the_parts_are_disjoint_and_complete(data, shuffle, fraction, held_out):
    options = {"fraction": fraction, "shuffle": shuffle}
    train, rest = (_texts(data, part=part, **options) for part in ("train", "held-out"))
    assert len(rest) == held_out
    assert sorted([*train, *rest]) == sorted(f"line {i}" for i in range(50))


def test_without_shuffle_the_last_examples_are_held_out(data):
    assert _texts(data, part="held-out", shuffle=False) == [f"line {i}" for i in range(45, 50)]


def test_the_seed_selects_the_examples(data):
    parts = [_texts(data, part="held-out", seed=seed) for seed in (0, 0, 1)]
    assert parts[0] == parts[1] != parts[2]


def test_origins_are_those_of_the_dataset(data):
    examples = Split(data=data, part="held-out", shuffle=False).open()
    assert examples.origin(0).endswith("all.txt:46")


def test_one_example_cannot_be_split(tmp_path):
    (tmp_path / "one.txt").write_text("one\n")
    data = Blueprint.of(PlainText, files=str(tmp_path / "one.txt"))
    with pytest.raises(DataError, match="has 1 example, too few to split"):
        Split(data=data, part="train").open()

"""Dataset 'split'."""

import pytest

from zoo import DataError, ZooError
from zoo.plugin import Blueprint
from zoo_datasets.csv import Csv
from zoo_datasets.graph import GraphDataset
from zoo_datasets.json_lines import JsonLines
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


@pytest.fixture
def pairs(tmp_path):
    """Sentences with one to four translations each."""
    lines = [f"sentence {n}\ttranslation {n} {m}\n" for n in range(40) for m in range(n % 4 + 1)]
    (tmp_path / "all.tsv").write_text("source\ttarget\n" + "".join(lines))
    fields = {"source": {"column": "source"}, "target": {"column": "target"}}
    return Blueprint.of(Csv, file=str(tmp_path / "all.tsv"), fields=fields)


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("fraction", [0.01, 0.1, 0.5, 0.99])
def test_a_group_is_in_one_part(pairs, shuffle, fraction):
    options = {"fraction": fraction, "shuffle": shuffle, "group": "source"}
    parts = [Split(data=pairs, part=part, **options).open() for part in ("train", "held-out")]
    train, rest = ([part[i] for i in range(len(part))] for part in parts)
    assert not {e["source"] for e in train} & {e["source"] for e in rest}
    assert len({e["target"] for e in [*train, *rest]}) == len(train) + len(rest) == 100
    assert train
    assert abs(len(rest) - 100 * fraction) <= 3
    again = Split(data=pairs, part="held-out", **options).open()
    assert [again[i] for i in range(len(again))] == rest


def test_without_a_group_a_sentence_is_in_both_parts(pairs):
    parts = [Split(data=pairs, part=part, fraction=0.5).open() for part in ("train", "held-out")]
    sources = [{part[i]["source"] for i in range(len(part))} for part in parts]
    assert sources[0] & sources[1]


def test_a_wrong_group_is_an_error(pairs, data, tmp_path):
    with pytest.raises(ZooError, match="has no field 'sorce'; did you mean 'source'"):
        Split(data=pairs, part="train", group="sorce")
    graph = Blueprint.of(GraphDataset, file=str(tmp_path / "a.npz"))
    with pytest.raises(ZooError, match="grouped by text or label"):
        Split(data=graph, part="train", group="features")
    (tmp_path / "same.txt").write_text("one\none\n")
    same = Blueprint.of(PlainText, files=str(tmp_path / "same.txt"))
    with pytest.raises(DataError, match=r"same.txt:1: all 2 examples have the same 'target'"):
        Split(data=same, part="train", group="target").open()


def test_a_group_with_an_example_that_cannot_be_read(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"x": "a"}\n{"x": 3}\n{"x": "b"}\n{"x": "a"}\n')
    fields = {"target": {"column": "x"}}
    data = Blueprint.of(JsonLines, file=str(tmp_path / "a.jsonl"), fields=fields)
    parts = [Split(data=data, part=p, group="target").open() for p in ("train", "held-out")]
    assert sum(map(len, parts)) == 4

"""Evaluation of text files, and errors for invalid files and names."""

from typing import ClassVar

import pytest

from zoo.errors import RegistryError, SpecError, ZooError
from zoo.evaluation import evaluate_files as evaluate
from zoo.interfaces import Metric
from zoo.registry.component_registry import default_registry


class Counts(Metric):
    """Count pairs and references."""

    name: ClassVar[str] = "counts"

    def __init__(self, *, times: int = 1) -> None:
        self.times = times
        self.pairs: list[tuple[str, list[str]]] = []

    def update(self, predictions, references):
        self.pairs += zip(predictions, references, strict=True)

    def merge(self, other):
        self.pairs += other.pairs

    def compute(self):
        return {"pairs": self.times * len(self.pairs), "references": len(self.pairs[0][1])}

    def signature(self):
        return repr(self.pairs)

    def reference(self, predictions, references):
        return {}

    def example(self, count, rng):
        return [], []


class CountsToo(Counts):
    name: ClassVar[str] = "counts-too"


@pytest.fixture
def registry():
    return default_registry().with_components([Counts, CountsToo], plugin="mine")


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Return a function that writes files to the working directory."""
    monkeypatch.chdir(tmp_path)

    def write(**contents):
        for name, content in contents.items():
            raw = content if isinstance(content, bytes) else content.encode()
            (tmp_path / name).write_bytes(raw)

    return write


def test_each_line_is_scored_against_all_its_references(files, registry):
    files(h="one\ntwo\n", r1="eins\nzwei\n", r2="un\ndeux\n")

    (score,) = evaluate("h", ["r1", "r2"], ["counts"], registry=registry)

    assert score.metric == "counts"
    assert score.values == {"pairs": 2, "references": 2}
    assert score.signature == "[('one', ['eins', 'un']), ('two', ['zwei', 'deux'])]"


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"a\nb\n", ["a", "b"]),
        (b"a\nb", ["a", "b"]),
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"\xef\xbb\xbfa\nb\n", ["a", "b"]),
        (b"a\n\n", ["a", ""]),
        (b"\n\n", ["", ""]),
        ("a\u2028b\x85c\x0b\n \n".encode(), ["a\u2028b\x85c\x0b", " "]),
    ],
    ids=[
        "usual",
        "no last line feed",
        "windows",
        "bom",
        "empty line",
        "only empty",
        "other breaks",
    ],
)
def test_only_line_feeds_end_lines(content, lines, files, registry):
    files(h=content, r="x\ny\n")

    (score,) = evaluate("h", ["r"], ["counts"], registry=registry)

    assert score.signature == repr([(line, [r]) for line, r in zip(lines, "xy", strict=True)])


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        ({"h": "a\n"}, r"^r cannot be read: no such file or directory$"),
        ({"r": "a\n"}, r"^h cannot be read: no such file or directory$"),
        ({"h": "a\n", "r": b""}, r"^r is empty"),
        ({"h": "a\n", "r": b"\xef\xbb\xbf"}, r"^r is empty"),
        ({"h": b"a\nb\xe9\n", "r": "a\nb"}, r"^h is not UTF-8 text: byte 0xe9 in line 2$"),
        (
            {"h": "a\nb\n", "r": "a\n"},
            r"^r has 1 line, but h has 2 lines",
        ),
    ],
)
def test_invalid_files_raise(contents, message, files):
    files(**contents)
    with pytest.raises(ZooError, match=message):
        evaluate("h", ["r"], ["bleu"])


def test_folders_and_invalid_names_raise(files, tmp_path):
    files(h="a\n")
    with pytest.raises(ZooError, match=r"cannot be read: is a directory$"):
        evaluate("h", [tmp_path], ["bleu"])
    with pytest.raises(ZooError, match=r"cannot be read: "):
        evaluate("h", ["a\0b"], ["bleu"])


def test_every_reference_file_must_have_as_many_lines(files):
    files(h="a\nb\n", r="a\nb\n", s="a\nb\nc\n")
    with pytest.raises(ZooError, match=r"^s has 3 lines, but h has 2 lines"):
        evaluate("h", ["r", "s"], ["bleu"])


def test_overrides_are_validated_as_in_a_spec(files, registry):
    files(h="one\n", r="eins\n")

    def values(*overrides):
        (score,) = evaluate("h", ["r"], ["counts"], overrides=overrides, registry=registry)
        return score.values["pairs"]

    assert values("counts.times=3") == 3
    assert values("counts.times=3", "counts.times=4") == 4
    with pytest.raises(SpecError, match=r"counts\.times: is 'many', but should be"):
        values("counts.times=many")
    with pytest.raises(SpecError, match=r"unknown key 'tims'; did you mean 'times'\?"):
        values("counts.tims=3")
    with pytest.raises(SpecError, match=r"KEY\.KEY=VALUE.*bleu\.tokenize="):
        values("counts")
    with pytest.raises(RegistryError, match=r"'count' is not one of.*did you mean 'counts'"):
        values("count.times=3")
    for wrong in ("counts=bleu", "counts.type=bleu"):
        with pytest.raises(ZooError, match=r"counts\.PARAMETER=VALUE$"):
            values(wrong)


def test_qualified_names(files, registry):
    files(h="one\n", r="eins\n")

    scores = evaluate(
        "h", ["r"], ["mine:counts"], overrides=["mine:counts.times=2"], registry=registry
    )

    assert [(score.metric, score.values["pairs"]) for score in scores] == [("mine:counts", 2)]


def test_a_metric_named_twice_is_computed_once(files):
    files(h="a b c d\n", r="a b c d\n")

    assert [score.metric for score in evaluate("h", ["r"], ["bleu", "ter", "bleu"])] == [
        "bleu",
        "ter",
    ]


def test_metrics_with_values_of_the_same_name_raise(files, registry):
    files(h="one\n", r="eins\n")
    message = r"'counts' and 'counts-too' .* 'pairs'"
    with pytest.raises(ZooError, match=message):
        evaluate("h", ["r"], ["counts", "counts-too"], registry=registry)


def test_metrics_that_do_not_take_text_raise(files):
    files(h="one\n", r="eins\n")
    for name, inputs in (
        ("accuracy", "token IDs"),
        ("sequence-accuracy", "token IDs"),
        ("perplexity", "log-probabilities"),
    ):
        message = rf"^metric '{name}' takes {inputs}.*bleu"
        with pytest.raises(ZooError, match=message):
            evaluate("h", ["r"], ["bleu", name])


def test_no_metric_and_unknown_metrics_raise(files):
    files(h="one\n", r="eins\n")
    with pytest.raises(ZooError, match=r"^metrics is empty"):
        evaluate("h", ["r"], [])
    with pytest.raises(RegistryError, match=r"no metric named 'blue'; did you mean 'bleu'\?"):
        evaluate("h", ["r"], ["blue"])
    with pytest.raises(RegistryError, match=r"'additive' is a scorer"):
        evaluate("h", ["r"], ["additive"])

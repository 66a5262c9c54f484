"""Validation: all problems of a spec, each with its line, column and a suggestion."""

from pathlib import Path
from typing import Annotated, ClassVar

import pytest
import spec_kit
import torch
from pydantic import Field
from torch import Tensor

import zoo
from zoo.errors import Problem, SpecError
from zoo.registry.component_registry import default_registry

SPEC = spec_kit.SPEC.replace("SCORER", "additive").replace("ALIGN", "soft")

# Case; change to SPEC; line, column and path; message.
INVALID = [
    (
        "misspelt component, by its bare name",
        ("scorer: additive", "scorer: aditive"),
        (10, 25, "model.decoder.attention.scorer"),
        "no scorer named 'aditive'; did you mean 'additive'? (available: additive, ",
    ),
    (
        "misspelt component, as a mapping",
        ("type: gru", "type: gruu"),
        (6, 19, "model.encoder"),
        "no encoder named 'gruu'; did you mean 'gru'? (available: attention-pooling, dnc, elmo, ",
    ),
    (
        "misspelt plugin",
        ("type: gru", "type: recurent:gru"),
        (6, 19, "model.encoder"),
        "no plugin named 'recurent' has components; did you mean 'recurrent'?",
    ),
    (
        "misspelt key",
        ("    hidden: 16", "    hiden: 16"),
        (9, 5, "model.decoder.hiden"),
        "unknown key 'hiden'; did you mean 'hidden'? (available: attention, hidden, ",
    ),
    (
        "misspelt section",
        ("name: tiny", "name: tiny\nsampelr: greedy"),
        (3, 1, "sampelr"),
        "unknown key 'sampelr'; did you mean 'sampler'? (available: zoo, name, description, ",
    ),
    (
        "unknown section",
        ("name: tiny", "name: tiny\nbudget: {steps: 3}"),
        (3, 1, "budget"),
        "unknown key 'budget' (available: zoo, name, description, ",
    ),
    (
        "missing key",
        ("type: gru, hidden: 8", "type: gru"),
        (6, 12, "model.encoder"),
        "key 'hidden' is missing",
    ),
    ("missing section", ("zoo: 1\n", ""), (1, 1, ""), "key 'zoo' is missing"),
    (
        "missing type",
        ("{type: gru, hidden: 8}", "{hidden: 8}"),
        (6, 12, "model.encoder"),
        "key 'type', the name of the encoder, is missing (available: attention-pooling, dnc, ",
    ),
    (
        "type that is not a string",
        ("type: gru", "type: 3"),
        (6, 19, "model.encoder.type"),
        "encoder, but is 3",
    ),
    (
        "part that is a list",
        ("{type: gru, hidden: 8}", "[gru]"),
        (6, 12, "model.encoder"),
        "encoder, but is a list",
    ),
    (
        "string for a number",
        ("hidden: 16", "hidden: many"),
        (9, 13, "model.decoder.hidden"),
        "is 'many', but should be a valid integer",
    ),
    (
        "quoted number",
        ("hidden: 16", 'hidden: "16"'),
        (9, 13, "model.decoder.hidden"),
        "is '16', but should be a valid integer",
    ),
    (
        "boolean for a number",
        ("hidden: 16", "hidden: true"),
        (9, 13, "model.decoder.hidden"),
        "is True, but should be a valid integer",
    ),
    ("boolean for the version", ("zoo: 1", "zoo: true"), (1, 6, "zoo"), "is True, but should be"),
    (
        "float for an integer",
        ("hidden: 16", "hidden: 16.5"),
        (9, 13, "model.decoder.hidden"),
        "is 16.5, but should be a valid integer",
    ),
    (
        "null for a number",
        ("hidden: 16", "hidden:"),
        (9, 12, "model.decoder.hidden"),
        "is empty, but should be a valid integer",
    ),
    (
        "number below its limit",
        ("hidden: 8", "hidden: 0"),
        (6, 32, "model.encoder.hidden"),
        "is 0, but should be greater than or equal to 1",
    ),
    (
        "number above its limit",
        ("hidden: 8", "hidden: 8, dropout: 1.5"),
        (6, 44, "model.encoder.dropout"),
        "is 1.5, but should be less than 1",
    ),
    (
        "invalid choice",
        ("    hidden: 16", "    hidden: 16\n    cell: gruu"),
        (10, 11, "model.decoder.cell"),
        "is 'gruu', but should be 'rnn', 'lstm', 'gru' or 'gru-cho'",
    ),
    ("name with a space", ("name: tiny", "name: my spec"), (2, 7, "name"), "is 'my spec', but"),
    (
        "duplicate key",
        ("    hidden: 16", "    hidden: 16\n    hidden: 16"),
        (10, 5, "model.decoder.hidden"),
        "duplicate key 'hidden'; the first is in line 9",
    ),
    (
        "wrong kind in a slot",
        ("scorer: additive", "scorer: soft"),
        (10, 25, "model.decoder.attention.scorer"),
        "'soft' is an alignment, but this slot takes a scorer (available: additive, ",
    ),
    (
        "key that the parent sets",
        ("type: gru, ", "type: gru, input_dim: 4, "),
        (6, 24, "model.encoder.input_dim"),
        "key 'input_dim' is set by the parent",
    ),
    (
        "string for a list",
        ("name: tiny", "name: tiny\nmetrics: bleu"),
        (3, 10, "metrics"),
        "should be a list, but is 'bleu'",
    ),
    (
        "misspelt name in a list",
        ("name: tiny", "name: tiny\nmetrics: [bleu, acuracy]"),
        (3, 17, "metrics[1]"),
        "no metric named 'acuracy'; did you mean 'accuracy'?",
    ),
    ("spec that is a list", (SPEC, "- a\n"), (1, 1, ""), "should be a mapping, but is a list"),
    ("spec that is a string", (SPEC, "hello\n"), (1, 1, ""), "should be a mapping, but is 'hello'"),
    (
        "part that fails while it is built",
        ("vocab: 16", "vocab: 16, padding: 16"),
        (5, 11, "model.source"),
        "padding (16) must be below vocab (16)",
    ),
]


def problems_of(source: Path | str, **options: object) -> list[Problem]:
    with pytest.raises(SpecError) as caught:
        zoo.check(source, **options)
    return caught.value.problems


@pytest.mark.parametrize("case", INVALID, ids=lambda case: case[0])
def test_a_problem_has_line_column_path_and_suggestion(tmp_path, case):
    _, change, where, message = case
    assert SPEC.count(change[0]) == 1
    file = tmp_path / "spec.yaml"
    file.write_text(SPEC.replace(*change))
    (problem,) = problems_of(file)
    assert problem.place.file == str(file)
    assert (problem.place.line, problem.place.column, problem.path) == where
    assert message in problem.message
    path = f"{problem.path}: " if problem.path else ""
    assert str(problem) == f"{file}:{where[0]}:{where[1]}: {path}{problem.message}"


def test_all_problems_of_a_spec_are_reported_together(tmp_path):
    file = tmp_path / "spec.yaml"
    file.write_text("""\
zoo: "1"
name: tiny
name: tiny
trian: {}
model:
  type: seq2seq
  source: {type: token, vocab: 1}
  encoder: {type: gruu, hidden: 8}
  decoder:
    type: attentive-rnn
    hiden: 16
    attention: {scorer: soft, align: soft, query_dim: 3}
sampler: {type: greedy, width: 3}
metrics: [blue, accuracy, 3]
""")
    found = {(p.place.line, p.place.column, p.path) for p in problems_of(file)}
    assert found == {
        (1, 6, "zoo"),
        (3, 1, "name"),
        (4, 1, "trian"),
        (7, 11, "model.source"),  # dim is missing
        (7, 32, "model.source.vocab"),
        (8, 19, "model.encoder"),
        (11, 5, "model.decoder.hiden"),
        (12, 25, "model.decoder.attention.scorer"),
        (12, 44, "model.decoder.attention.query_dim"),
        (13, 25, "sampler.width"),
        (14, 11, "metrics[0]"),
        (14, 27, "metrics[2]"),
    }


def test_an_unknown_key_does_not_hide_a_width_conflict(tmp_path):
    file = tmp_path / "spec.yaml"
    file.write_text(SPEC.replace("additive", "dot") + "extra: 1\n")
    assert [p.path for p in problems_of(file)] == ["model.decoder.attention.scorer", "extra"]


def test_a_misspelt_key_is_not_also_reported_as_missing(tmp_path):
    file = tmp_path / "spec.yaml"
    file.write_text(SPEC.replace("hidden: 8", "hiden: 8"))
    assert [p.path for p in problems_of(file)] == ["model.encoder.hiden"]


def test_messages_use_the_article_of_the_kind(tmp_path):
    file = tmp_path / "spec.yaml"
    file.write_text(SPEC.replace("{type: gru, hidden: 8}", "3"))
    (problem,) = problems_of(file)
    assert "an encoder" in problem.message


@pytest.mark.parametrize(
    ("key", "shown"), [(1, "1"), (None, "None"), (True, "True"), ((1, 2), "(1, 2)"), (2.5, "2.5")]
)
def test_a_key_that_is_not_a_string_is_an_unknown_key(key, shown):
    (problem, *_) = problems_of({key: 1})
    assert "unknown key" in problem.message
    assert shown in problem.message


def test_an_integer_too_long_to_print_is_rejected():
    (problem, *_) = problems_of({"zoo": 10**5000})
    assert problem.path == "zoo"


class Weighted(zoo.plugin.Scorer):
    """Scorer with a list parameter."""

    name: ClassVar[str] = "weighted"

    def __init__(self, *, weights: list[Annotated[int, Field(ge=0)]]) -> None:
        super().__init__()
        self.weights = weights

    def score(self, query: Tensor, prepared: Tensor) -> Tensor:
        return torch.zeros(*query.shape[:-1], prepared.shape[-2], device=query.device)

    def score_pairs(self, query: Tensor, key: Tensor) -> Tensor:
        return torch.zeros(query.shape[:-1], device=query.device)


def test_problems_inside_a_list_have_the_place_of_the_item(tmp_path):
    registry = default_registry().with_components([Weighted], plugin="third-party")
    file = tmp_path / "spec.yaml"
    text = SPEC.replace("additive", "{type: weighted, weights: [1, two, -3]}")
    file.write_text(text)
    found = [(p.path, p.place.column, p.message) for p in problems_of(file, registry=registry)]
    path = "model.decoder.attention.scorer.weights"
    assert found == [
        (f"{path}[1]", 55, "is 'two', but should be a valid integer"),
        (f"{path}[2]", 60, "is -3, but should be greater than or equal to 0"),
    ]
    file.write_text(text.replace("[1, two, -3]", "[1, 2, 3]"))
    assert zoo.check(file, registry=registry).name == "tiny"

"""Swapped values: how they are written, and paths that do not exist."""

import pytest

from zoo import SpecError
from zoo.errors import Place
from zoo_lab.compare.swap import as_change, describe_value, find_path, is_current, parse_swap

RESOLVED = {
    "name": "small",
    "model": {"decoder": {"type": "x:rnn", "attention": {"scorer": {"type": "x:dot"}}}},
    "train": {"steps": 3},
}


def test_commas_in_braces_brackets_and_quotes_do_not_separate():
    text = 'decoder.scorer=dot,{type: additive, hidden: [8, 9]},"a,b",4'
    path, values = parse_swap(text)
    assert path == "decoder.scorer"
    assert values == ["dot", {"type": "additive", "hidden": [8, 9]}, "a,b", 4]


@pytest.mark.parametrize("text", ["decoder.scorer", "=dot", "a..b=dot", "a=dot,,general", "a="])
def test_other_texts_are_errors(text):
    with pytest.raises(SpecError, match=r"--swap .*should be PATH=VALUE,VALUE, for example"):
        parse_swap(text)


def test_a_path_may_start_in_the_model():
    assert find_path("decoder.attention.scorer", RESOLVED, None) == "model.decoder.attention.scorer"
    assert find_path("train.steps", RESOLVED, None) == "train.steps"


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("decodr.attention", "the spec has no key 'decodr'; did you mean 'decoder'"),
        ("decoder.attention.scorre", "'model.decoder.attention' has no key 'scorre'; did you mean"),
        ("train.steps.more", "'train.steps' has no keys, because its value is 3"),
    ],
)
def test_a_path_that_does_not_exist_is_reported_with_its_place(path, message):
    with pytest.raises(SpecError) as error:
        find_path(path, RESOLVED, Place("study.yaml", 4, 7))
    assert str(error.value).startswith(f"study.yaml:4:7: {path}: {message}")


def test_a_name_selects_the_type_of_a_component():
    path = "model.decoder.attention.scorer"
    assert as_change(path, "dot", RESOLVED) == f'{path}={{"type": "dot"}}'
    assert as_change("train.steps", 5, RESOLVED) == "train.steps=5"
    assert is_current(path, "dot", RESOLVED)
    assert not is_current(path, "general", RESOLVED)
    assert is_current("train.steps", 3, RESOLVED)


def test_values_have_short_names():
    values = ["dot", 8, {"type": "additive", "hidden": 8}, {"heads": 4}, True]
    names = ["dot", "8", "additive (hidden 8)", "heads 4", "true"]
    assert [describe_value(value) for value in values] == names

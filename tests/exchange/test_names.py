"""Names with open places, and the arithmetic in them."""

import pytest

from zoo.errors import ZooError
from zoo.exchange.mapping.expression import Expression
from zoo.exchange.mapping.pattern import Pattern, paired_patterns


@pytest.mark.parametrize(
    ("text", "value"),
    [("3*n+2", 14), ("n", 4), ("n + 1", 5), ("(n-1)//2", 1), ("2*(n+m)", 18)],
)
def test_arithmetic(text, value):
    assert Expression(text).value({"n": 4, "m": 5}) == value


@pytest.mark.parametrize(
    "text",
    ["n**9", "f(n)", "n.real", "[n]", "1.5*n", "n and 1", "", "True", "n if n else 1", "'a'"],
)
def test_what_is_no_arithmetic_is_refused(text):
    with pytest.raises(ZooError) as caught:
        Expression(text)
    assert str(caught.value) == (f"'{text}' is no arithmetic of whole numbers and names, as 3*n+2")


def test_a_name_without_a_value_and_a_division_by_zero():
    with pytest.raises(ZooError, match=r"^'k' has no value here \(available: n\)$"):
        Expression("k").value({"n": 1})
    with pytest.raises(ZooError, match=r"^'n//0' divides by zero$"):
        Expression("n//0").value({"n": 1})
    with pytest.raises(ZooError, match="at most 200 characters"):
        Expression("1+" * 200 + "1")


@pytest.mark.parametrize(
    ("pattern", "name", "binding"),
    [
        ("layers.{n}.w", "layers.12.w", {"n": 12}),
        ("layers.{n}.w", "layers.012.w", None),
        ("layers.{n}.w", "layers.12.wx", None),
        ("layers.{n}.w", "layersX12.w", None),
        ("conv_{3*n+2}/w", "conv_8/w", {"n": 2}),
        ("conv_{3*n+2}/w", "conv_9/w", None),
        ("conv_{n+1}", "conv_0", None),
        ("a.{n}.b.{n}", "a.1.b.1", {"n": 1}),
        ("a.{n}.b.{n}", "a.1.b.2", None),
        ("a.{n}.b.{n+1}", "a.1.b.2", {"n": 1}),
        ("conv{h:|_3|_6}/w", "conv/w", {"h": 0}),
        ("conv{h:|_3|_6}/w", "conv_6/w", {"h": 2}),
        ("x.{e:2..5}", "x.4", {"e": 2}),
        ("x.{e:2..5}", "x.5", None),
        ("norm+(1)", "norm+(1)", {}),
    ],
)
def test_matching(pattern, name, binding):
    assert Pattern(pattern).match(name) == binding
    if binding is not None:
        assert Pattern(pattern).format_name(binding) == name


def test_a_choice_that_is_left_open_stands_for_all_its_words():
    pattern = Pattern("{n}.{e:0..2}.{p:a|b}")
    assert pattern.expand({"n": 7, "p": 1}) == ["7.0.b", "7.1.b"]
    assert pattern.expand({"n": 7}) == ["7.0.a", "7.0.b", "7.1.a", "7.1.b"]


def test_words_of_both_sides_correspond_by_order():
    (ours,), (theirs,) = paired_patterns(["b.{n}.{p:query|key}"], ["l.{n}.{p:q|k}"])
    assert ours.format_name(theirs.match("l.3.k")) == "b.3.key"
    (ours,), (theirs,) = paired_patterns(["b.{p:q|k}"], ["l.{p}"])
    assert ours.format_name(theirs.match("l.k")) == "b.k"


@pytest.mark.parametrize(
    ("ours", "theirs", "message"),
    [
        ("a.{n", "b", "'a.{n' has a brace without its other half"),
        ("a.{p:x|y}", "b.{p:x|y|z}", "'p' stands for 2 words of ours and 3 of theirs"),
        ("a.{n}", "b", "'{n}' stands on one side alone; list its numbers, as {n:0..8}"),
        ("a.{n+m}", "b.{n}.{m}", "'{n+m}' should speak of one index"),
        ("a.{3}", "b", "'{3}' names no index"),
        ("a.{p:x|x}", "b", "'{p:x|x}' lists a word twice"),
        ("a.{p:4..2}", "b", "'{p:4..2}' should count from a number to a higher one"),
        ("", "b", "a tensor's name is empty"),
        (
            "a.{p:0..999}.{q:0..999}",
            "b",
            "'a.{p:0..999}.{q:0..999}' stands for more than 100,000 names",
        ),
    ],
)
def test_names_that_cannot_be_read(ours, theirs, message):
    with pytest.raises(ZooError) as caught:
        paired_patterns([ours], [theirs])
    assert str(caught.value) == message

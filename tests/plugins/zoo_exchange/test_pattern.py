"""Patterns for tensor names, and the expressions in them."""

import pytest

from zoo.errors import ZooError
from zoo_exchange.mapping.expression import Expression
from zoo_exchange.mapping.pattern import Pattern, paired_patterns


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
def test_invalid_expressions_raise(text):
    with pytest.raises(ZooError, match=r"3\*n\+2") as caught:
        Expression(text)
    assert str(caught.value).startswith(f"'{text}' ")


def test_unknown_names_division_by_zero_and_long_expressions_raise():
    with pytest.raises(ZooError, match=r"'k'.*available: n\)"):
        Expression("k").value({"n": 1})
    with pytest.raises(ZooError, match=r"'n//0'.*zero"):
        Expression("n//0").value({"n": 1})
    with pytest.raises(ZooError, match=r"401.*200"):
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


def test_expand_returns_a_name_for_each_unbound_word():
    pattern = Pattern("{n}.{e:0..2}.{p:a|b}")
    assert pattern.expand({"n": 7, "p": 1}) == ["7.0.b", "7.1.b"]
    assert pattern.expand({"n": 7}) == ["7.0.a", "7.0.b", "7.1.a", "7.1.b"]


def test_words_of_both_sides_correspond_by_order():
    (ours,), (theirs,) = paired_patterns(["b.{n}.{p:query|key}"], ["l.{n}.{p:q|k}"])
    assert ours.format_name(theirs.match("l.3.k")) == "b.3.key"
    (ours,), (theirs,) = paired_patterns(["b.{p:q|k}"], ["l.{p}"])
    assert ours.format_name(theirs.match("l.k")) == "b.k"


@pytest.mark.parametrize(
    ("ours", "theirs", "names"),
    [
        ("heads.{h:0..3}", "conv_{3*h+1}", ["conv_1", "conv_4", "conv_7"]),
        ("heads.{h:2|5}", "conv_{h-2}", ["conv_0", "conv_3"]),
        ("heads", "conv_{h:1..3}.after_{h+1}", ["conv_1.after_2", "conv_2.after_3"]),
        ("heads", "before_{h-1}.conv_{h:1..3}", ["before_0.conv_1", "before_1.conv_2"]),
    ],
)
def test_an_expression_may_use_an_index_whose_values_are_listed(ours, theirs, names):
    (ours,), (theirs,) = paired_patterns([ours], [theirs])
    assert theirs.expand({}) == names
    for index, name in enumerate(names):
        assert theirs.match(name) == {"h": index}
    if ours.names:
        assert ours.match("heads.2") == {"h": 2 if len(names) == 3 else 0}


@pytest.mark.parametrize(
    ("ours", "theirs", "message"),
    [
        ("a.{n", "b", r"'a\.\{n'.*brace"),
        ("a.{p:x|y}", "b.{p:x|y|z}", "'p'.* 2 .* 3 "),
        ("a.{p:x|y}.{p:x|y|z}", "b", "'p'.* 2 .* 3 "),
        ("a.{n}", "b", r"'n'.*one side.*\{n\}.*\{n:0\|1\|2\}.*convert.*split.*join"),
        ("a", "b.{3*n+1}", r"'n'.*one side.*\{n\}.*\{n:1\|4\|7\}.*convert.*split.*join"),
        ("a.{p:x|y}", "b.{p+1}", r"'\{p\+1\}'.*integers.*'p'.*'x'"),
        ("a.{n:0..4}", "b.{n//2}", r"'\{n//2\}'.*same value.*'n'"),
        ("a.{n+m}", "b.{n}.{m}", r"'\{n\+m\}'.*one index"),
        ("a.{3}", "b", r"'\{3\}'.*no index"),
        ("a.{p:x|x}", "b", r"'\{p:x\|x\}'.*twice"),
        ("a.{p:4..2}", "b", r"'\{p:4\.\.2\}'.*range"),
        ("", "b", "empty"),
        ("a.{p:0..999}.{q:0..999}", "b", r"'a\.\{p:0\.\.999\}.*100,000"),
    ],
)
def test_invalid_names_raise(ours, theirs, message):
    with pytest.raises(ZooError, match=message):
        paired_patterns([ours], [theirs])

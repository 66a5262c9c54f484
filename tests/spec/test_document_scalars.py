"""Plain scalars: the core schema of YAML 1.2."""

import math

import pytest

from zoo.spec.document import read_text, resolve_scalar

SCALARS = [
    ("1e-4", 1e-4),
    ("1E3", 1000.0),
    ("+1.5e+2", 150.0),
    (".5", 0.5),
    ("1.", 1.0),
    ("-7", -7),
    ("+7", 7),
    ("010", 10),
    ("0", 0),
    (".inf", math.inf),
    ("+.Inf", math.inf),
    ("-.inf", -math.inf),
    ("-.INF", -math.inf),
    ("~", None),
    ("null", None),
    ("", None),
    ("true", True),
    ("False", False),
    ("0x1F", 31),
    ("0o17", 15),
]
WORDS = "no yes on off y n tRUE nUll 1_000 1:30 2015-05-09 2015-05-09T10:00:00Z 1e e3 . - + 1.2.3"


@pytest.mark.parametrize(("text", "value"), SCALARS)
def test_plain_scalars_follow_the_core_schema_of_yaml_1_2(text, value):
    resolved = resolve_scalar(text)
    assert (resolved, type(resolved)) == (value, type(value))
    assert read_text(f"a: {text}\n", "x").data == {"a": value}


@pytest.mark.parametrize("text", [".nan", ".NaN", ".NAN"])
def test_nan_is_a_float(text):
    assert math.isnan(resolve_scalar(text))


@pytest.mark.parametrize("word", WORDS.split())
def test_words_with_a_meaning_in_yaml_1_1_are_strings(word):
    assert resolve_scalar(word) == word


@pytest.mark.parametrize("text", ["1" * 41, "-" + "1" * 40, "0x" + "f" * 39])
def test_integers_with_too_many_digits_raise(text):
    with pytest.raises(ValueError, match="40 digits"):
        resolve_scalar(text)
    assert resolve_scalar("1" * 40) == int("1" * 40)

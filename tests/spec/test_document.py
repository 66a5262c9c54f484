"""YAML documents: places, invalid files, and limits against malicious input."""

import os
import threading

import pytest
from timing_kit import assert_fast

import zoo
from zoo.errors import Place, SpecError
from zoo.spec.document import (
    Document,
    document_from_data,
    format_path,
    read_file,
    read_text,
)
from zoo.spec.spec import draft_spec

HEAD = "zoo: 1\nname: tiny\n"

# Case; file content; line and column; message.
INVALID = [
    ("tab for indentation", b"zoo: 1\nmodel:\n\ttype: x\n", (3, 1), "tab in the indent"),
    ("tab after spaces", b"model:\n  type: x\n  \tfoo: 1\n", (3, 3), "tab in the indent"),
    ("invalid UTF-8", b"zoo: 1\nname: \xff\n", (2, 7), "byte 0xff"),
    ("invalid UTF-8 after non-ASCII", "name: é".encode() + b"\xff\n", (1, 8), "byte 0xff"),
    ("invalid UTF-8 after a BOM", b"\xef\xbb\xbfname: \xff\n", (1, 7), "byte 0xff"),
    ("UTF-16", "zoo: 1\n".encode("utf-16"), (1, 1), "is not UTF-8 text"),
    ("empty file", b"", (), "is empty"),
    ("comments only", b"# zoo: 1\n\n", (), "is empty"),
    ("null", b"~\n", (), "is empty"),
    ("merge key", b"a: &a {b: 1}\nc:\n  <<: *a\n", (3, 3), "merge key '<<'"),
    ("second document", b"zoo: 1\n---\nzoo: 1\n", (2, 1), "second document ('---')"),
    ("list for a key", b"zoo: 1\n? [a, b]\n: c\n", (2, 3), "a key must be a plain scalar"),
    ("mapping for a key", b"zoo: 1\n{a: 1}: c\n", (2, 1), "a key must be a plain scalar"),
    ("alias for a key", b"a: &a b\n*a : c\n", (2, 1), "a key must be a plain scalar"),
    ("alias before its anchor", b"a: *b\nb: &b 1\n", (1, 4), "alias '*b' has no anchor"),
    ("unclosed bracket", b"zoo: 1\nmetrics: [a, b\n", (3, 1), "invalid YAML: "),
    (
        "unclosed quote",
        b'zoo: 1\nname: "mine\nmodel: x\n',
        (4, 1),
        "found unexpected end of stream (while scanning a quoted scalar that starts in line 2)",
    ),
    ("bad indentation", b"a: 1\n  b: 2\n", (2, 4), "invalid YAML: mapping values are not allowed"),
    ("null byte", b"zoo: 1\nname: a\0b\n", (2, 8), "character '\\x00' is not allowed in YAML"),
    ("control character", b"zoo: 1\nname: \x01\n", (2, 7), "character '\\x01' is not allowed"),
    (
        "control after non-ASCII",
        "é: é\nb: é\x01\n".encode(),
        (2, 5),
        "character '\\x01' is not",
    ),
    ("integer too long", b"zoo: 1\nname: " + b"1" * 41, (2, 7), "more than 40 digits"),
]


@pytest.mark.parametrize(
    ("raw", "where", "message"), [case[1:] for case in INVALID], ids=[case[0] for case in INVALID]
)
def test_invalid_yaml_raises_with_line_and_column(tmp_path, raw, where, message):
    file = tmp_path / "spec.yaml"
    file.write_bytes(raw)
    with pytest.raises(SpecError) as caught:
        read_file(file)
    (problem,) = caught.value.problems
    assert problem.place == Place(str(file), *where)
    assert problem.path == ""
    assert message in problem.message


def test_a_tab_after_the_indentation_is_not_reported():
    with pytest.raises(SpecError, match="mapping values are not allowed"):
        read_text("a:\tb: c\n", "x")


def test_a_directory_raises(tmp_path):
    with pytest.raises(SpecError, match="is a directory; expected a spec file") as caught:
        read_file(tmp_path)
    assert caught.value.problems[0].place == Place(str(tmp_path))


@pytest.mark.parametrize("name", ["a" * 5000 + ".yaml", "nul\0.yaml"])
def test_a_file_that_cannot_be_opened_raises(tmp_path, name):
    with pytest.raises(SpecError, match="cannot be read") as caught:
        read_file(tmp_path / name)
    assert caught.value.problems[0].place == Place(str(tmp_path / name))


def test_a_missing_file_has_no_line(tmp_path):
    with pytest.raises(SpecError) as caught:
        read_file(tmp_path / "missing.yaml")
    assert str(caught.value) == f"{tmp_path / 'missing.yaml'}: no such file"
    assert caught.value.problems[0].as_json()["line"] is None


def test_problems_before_a_fatal_one_are_reported():
    with pytest.raises(SpecError) as caught:
        read_text("a: 1\na: 2\nb: !x 3\n", "x")
    assert [p.place.line for p in caught.value.problems] == [2, 3]


@pytest.mark.parametrize("text", ["'1'", '"1e-4"', "'true'", '"~"', "'null'", '".inf"', "''"])
def test_quoted_scalars_are_strings(text):
    assert read_text(f"a: {text}\n", "x").data == {"a": text[1:-1]}


def test_keys_are_strings():
    assert read_text("1: a\ntrue: b\n~: c\n", "x").data == {"1": "a", "true": "b", "~": "c"}


def test_every_key_and_value_has_its_place():
    document = read_text("a:\n  b: [1, {c: 2}]\n  é: 3\n", "x")
    assert document.data == {"a": {"b": [1, {"c": 2}], "é": 3}}
    assert document.key(("a", "b")) == Place("x", 2, 3)
    assert document.place(("a", "b")) == Place("x", 2, 6)
    assert document.place(("a", "b", 1, "c")) == Place("x", 2, 14)
    assert document.key(("a", "b", 1, "c")) == Place("x", 2, 11)
    assert document.place(("a", "é")) == Place("x", 3, 6)


def test_the_place_of_a_missing_value_is_that_of_the_innermost_value_around_it():
    document = read_text("a:\n  b: {c: 1}\n", "x")
    assert document.place(("a", "b", "nope", "deeper")) == Place("x", 2, 6)
    assert document.key(("a", "nope")) == Place("x", 2, 3)
    assert document_from_data({"a": 1}).place(("a",)) is None


def test_an_alias_is_a_copy_whose_values_keep_their_places():
    document = read_text("a: &a {b: 1}\nc: *a\n", "x")
    assert document.data == {"a": {"b": 1}, "c": {"b": 1}}
    assert document.data["c"] is not document.data["a"]
    assert document.place(("c", "b")) == Place("x", 1, 11)
    assert document.place(("c",)) == Place("x", 2, 4)


def test_a_bom_and_windows_line_endings_are_ignored(tmp_path):
    text = "zoo: 1\nname: tiny\nmetrics: [a]\n"
    plain, windows = tmp_path / "plain.yaml", tmp_path / "windows.yaml"
    plain.write_text(text)
    windows.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    one, other = read_file(plain), read_file(windows)
    assert one.data == other.data
    assert other.place(("metrics", 0)) == Place(str(windows), 3, 11)


def test_format_path_uses_dots_and_brackets():
    assert format_path(("model", "layers", 2, "scorer")) == "model.layers[2].scorer"
    assert format_path(()) == ""


def billion_laughs() -> str:
    lines = ["a0: &a0 [ha, ha, ha, ha, ha, ha, ha, ha, ha]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 10)]
    return "{" + ", ".join(lines) + "}"


MALICIOUS = {
    "billion laughs": billion_laughs(),
    "quadratic aliases": "{a: &a [" + "x, " * 5000 + "], b: [" + "*a, " * 5000 + "]}",
    "list that contains itself": "&a [*a]",
    "mapping that contains itself": "&a {b: *a}",
    "deep flow lists": "[" * 10_000 + "]" * 10_000,
    "deep unclosed flow lists": "[" * 10_000,
    "deep flow mappings": "{a: " * 10_000 + "}" * 10_000,
    "deep block lists": "- " * 10_000 + "x",
    "deep block mappings": "".join(f"{' ' * i}a:\n" for i in range(1_400)),
    "deep keys": "? " * 10_000 + "x",
    "deep aliases": "{a0: &a0 [x], "
    + ", ".join(f"a{i}: &a{i} [*a{i - 1}]" for i in range(1, 99))
    + "}",
    "long flat list": "[" + "1," * 499_990 + "]",
    "long scalar": "x" * 990_000,
    "long quoted scalar": '"' + "x" * 990_000 + '"',
    "number of 5,000 digits": "{zoo: " + "1" * 5_000 + "}",
    "negative number of 5,000 digits": "{zoo: -" + "1" * 5_000 + "}",
    "fraction of 900,000 digits": "{zoo: 0." + "1" * 900_000 + "}",
    "exponent of 900,000 digits": "{zoo: 1e" + "9" * 900_000 + "}",
    "long simple key": "{" + "k" * 900_000 + ": 1}",
    "long complex key": "{? " + "k" * 900_000 + " : 1}",
    "key of 1,000 letters": "{" + "k" * 1_000 + ": 1}",
    "long tag": "!" + "t" * 900_000 + " x",
    "long alias": "*" + "a" * 900_000,
    "20,000 keys": "{" + ", ".join(f"key{i}: 1" for i in range(20_000)) + "}",
    "5,000 unknown keys": "{" + ", ".join(f"metric{i}: 1" for i in range(5_000)) + "}",
    "one key 9,900 times": "{" + "a: 1, " * 9_900 + "}",
    "null bytes": "{a: \0\0\0}",
    "control characters": "{a: \x01\x02\x1b[31m}",
    "directive of another YAML version": "%YAML 9.9\n--- {}",
}


@pytest.fixture(scope="module", autouse=True)
def _warm():
    zoo.check("bahdanau-reversal")


def assert_rejected_quickly(source, overrides=()) -> None:
    """Check that reading reports short problems in less than a second."""
    problems = assert_fast(lambda: draft_spec(source, overrides=overrides).problems)
    assert problems
    assert max(len(problem.message) for problem in problems) < 2_000


@pytest.mark.parametrize("source", ["file", "base", "override"])
@pytest.mark.parametrize("text", MALICIOUS.values(), ids=MALICIOUS)
def test_malicious_yaml_is_rejected_quickly_with_short_messages(tmp_path, text, source):
    (tmp_path / "file.yaml").write_text(text)
    (tmp_path / "base.yaml").write_text("extends: file.yaml\n")
    if source == "override":
        assert_rejected_quickly("bahdanau-reversal", [f"model={text}"])
    else:
        assert_rejected_quickly(tmp_path / f"{source}.yaml")


def test_a_long_override_is_truncated_in_messages():
    (problem, *_) = draft_spec("bahdanau-reversal", overrides=["zoo=" + "1" * 5_000]).problems
    assert "--set zoo=111" in str(problem)
    assert len(str(problem)) < 1_000


def test_a_lone_surrogate_in_an_override_is_rejected():
    (problem,) = draft_spec("bahdanau-reversal", overrides=["description=a\udcff"]).problems
    assert "is not allowed in YAML" in problem.message
    assert problem.place.line is None


TAGS = [
    "!!python/object/apply:os.system ['touch {marker}']",
    "!!python/object/new:os.system ['touch {marker}']",
    "!!python/object/apply:pathlib.Path.touch [!!python/object/apply:pathlib.Path ['{marker}']]",
    "!!python/name:os.system",
    "!!python/module:antigravity",
    "!!python/tuple [1, 2]",
    "!<tag:yaml.org,2002:python/object/apply:os.system> ['touch {marker}']",
    "!!binary aGVsbG8=",
    "!!int '3'",
    "!custom {{a: 1}}",
    "! x",
]


@pytest.mark.parametrize("template", TAGS)
def test_tags_are_rejected_and_nothing_is_executed(tmp_path, template):
    marker = tmp_path / "marker"
    text = template.format(marker=marker)
    file = tmp_path / "spec.yaml"
    for line in (f"model: {text}\n", f"? {text}\n: 1\n", f"metrics: [{text} ]\n"):
        file.write_text(HEAD + line)
        (problem,) = draft_spec(file).problems
        assert problem.place.line == 3
        assert "tag '" in problem.message
    (problem,) = draft_spec("bahdanau-reversal", overrides=[f"model={text}"]).problems
    assert "tag '" in problem.message
    assert not marker.exists()


def test_a_file_of_50_megabytes_is_rejected_by_its_size(tmp_path):
    file = tmp_path / "spec.yaml"
    file.write_bytes(b"a: " + b"x" * 50_000_000)
    assert_rejected_quickly(file)
    (problem,) = draft_spec(file).problems
    assert "50,000,003" in problem.message
    assert "1,000,000" in problem.message


def test_a_file_without_an_end_raises():
    with pytest.raises(SpecError, match="1,000,000 bytes"):
        read_file("/dev/zero")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_read_once(tmp_path):
    pipe = tmp_path / "spec.yaml"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(HEAD,))
    writer.start()
    assert read_file(pipe).data == {"zoo": 1, "name": "tiny"}
    writer.join()


def test_a_document_of_python_data_has_no_places():
    assert document_from_data([1], "x") == Document([1], "x")

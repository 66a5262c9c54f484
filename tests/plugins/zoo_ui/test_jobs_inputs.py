"""Inputs that a page sends."""

import base64
import tempfile
from pathlib import Path

import pytest

from zoo.errors import ZooError

pytest.importorskip("starlette", reason="starlette is not installed")
from zoo_ui.jobs.inputs import open_dataset, open_line


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("a/b.png", "b.png"),
        ("..", "input"),
        ("", "input"),
        ("a\\b.png", "b.png"),
        ("a\0.png", "a.png"),
        ("漢" * 300 + ".png", "漢" * 38 + ".png"),
    ],
)
def test_a_file_keeps_its_name_without_folders(name, kept):
    with open_line({"file": name, "content": base64.b64encode(b"abc").decode()}) as line:
        assert Path(line).name == kept
        assert Path(line).read_bytes() == b"abc"
    assert not Path(line).exists()


@pytest.mark.parametrize("content", ["@@", "abc"])
def test_content_that_is_not_base64_is_rejected(content):
    message = "the content of b.png is not valid base64"
    with pytest.raises(ZooError, match=message), open_line({"file": "b.png", "content": content}):
        pass


def test_errors_name_the_file_without_its_folder():
    def fail(line):
        raise ZooError(f"{line} is not an image")

    with pytest.raises(ZooError, match=r"^b\.png is not an image$"):  # noqa: SIM117
        with open_line({"file": "b.png", "content": ""}) as line:
            fail(line)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({}, "the request has no key 'file'"),
        ({"text": ["a"]}, "'text' should be a text"),
        ({"file": None, "content": ""}, "'file' should be a text"),
        ({"file": "a", "content": None}, "'content' should be a text"),
    ],
)
def test_inputs_of_another_type_are_rejected(value, message):
    with pytest.raises(ZooError, match=message), open_line(value):
        pass


@pytest.mark.parametrize("key", ["../../../x", "/tmp/x", ".", "", "nodes/../../x", "split"])
def test_files_have_the_keys_of_files_only(key, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    file = {"file": "x", "content": ""}
    value = {"data": "type: graph", "files": {key: file}}
    with pytest.raises(ZooError, match=r"is not a file of a dataset; files are 'file', 'nodes'"):  # noqa: SIM117
        with open_dataset("gat-cora", value):
            pass
    assert list(tmp_path.rglob("*")) == []


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"data": ["a"]}, "'data' should be a text"),
        ({"data": "a", "files": [1]}, "'files' should be a mapping"),
        (
            {"data": "type: graph", "files": {"nodes": 1}},
            "the request has an integer in place of a mapping",
        ),
        ({"data": "type: graph", "example": 1.5}, "'example' should be an integer"),
        ({"data": "type: graph", "example": True}, "'example' should be an integer"),
    ],
)
def test_datasets_of_another_type_are_rejected(value, message):
    with pytest.raises(ZooError, match=message), open_dataset("gat-cora", value):
        pass

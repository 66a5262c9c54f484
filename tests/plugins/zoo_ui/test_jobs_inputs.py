"""Inputs that a page sends."""

import base64
from pathlib import Path

import pytest

from zoo.errors import ZooError

pytest.importorskip("starlette", reason="starlette is not installed")
from zoo_ui.jobs.inputs import open_line


@pytest.mark.parametrize(("name", "kept"), [("a/b.png", "b.png"), ("..", "input"), ("", "input")])
def test_a_file_keeps_its_name_without_folders(name, kept):
    with open_line({"file": name, "content": base64.b64encode(b"abc").decode()}) as line:
        assert Path(line).name == kept
        assert Path(line).read_bytes() == b"abc"
    assert not Path(line).exists()


@pytest.mark.parametrize("content", ["@@", "abc", None])
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

"""One server for all tests of the room."""

import pytest

pytest.importorskip("starlette", reason="starlette is not installed")
pytest.importorskip("uvicorn", reason="uvicorn is not installed")
from ui_kit import UiServer


@pytest.fixture(scope="session")
def server():
    started = UiServer()
    yield started
    code, _, errors = started.interrupt()
    assert (code, errors) == (0, "")

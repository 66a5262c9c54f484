"""Kernels run in Triton's interpreter, which is most of the time of these tests."""

from importlib.util import find_spec

import pytest


@pytest.fixture(scope="session", autouse=True)
def fast_interpreter():
    if find_spec("triton") is None:
        yield
        return
    from interpreter_kit import speed_up

    with pytest.MonkeyPatch.context() as patch:
        speed_up(patch)
        yield

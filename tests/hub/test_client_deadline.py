"""A server that sends a byte from time to time does not keep the client waiting forever."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

import pytest
from hub_kit import NAME, WEIGHTS, list_files
from hub_server import Hub, Response
from huggingface_hub import constants

import zoo
from zoo.errors import HubError
from zoo.hub import fetch
from zoo.hub.client import open_response
from zoo.hub.models import read_header

SECONDS = 0.02
"""Between two bytes, much less than the timeout."""


@pytest.fixture(autouse=True)
def timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_DOWNLOAD_TIMEOUT", 0.5)


def drip(part: str) -> Callable[[Response], Response]:
    return lambda answer: replace(answer, drip=(part, SECONDS))


@pytest.mark.parametrize("part", [pytest.param("headers", marks=pytest.mark.slow), "body"])
@pytest.mark.parametrize(
    ("pattern", "port"),
    [
        pytest.param("/revision/", "hub", marks=pytest.mark.slow),
        pytest.param("/tree/", "hub", marks=pytest.mark.slow),
        pytest.param("config.json", "hub", marks=pytest.mark.slow),
        ("/objects/", "cdn"),
    ],
    ids=["commit", "file list", "small file", "large file"],
)
def test_dripping_response_raises(
    hub: Hub, cache: Path, pattern: str, port: str, part: str
) -> None:
    hub.repo(NAME).add({WEIGHTS: bytes(300), "config.json": b" " * 300})
    hub.fault(pattern, drip(part), port=port)
    with pytest.raises(HubError, match="failed after 4 attempts"):
        fetch(NAME, ["*"])
    assert not [path for path in list_files(cache) if ".part" in path]


def test_dripping_header_of_a_model_raises(hub: Hub, saved: Path) -> None:
    hub.repo(NAME).add({WEIGHTS: saved.read_bytes()})
    hub.fault("/objects/", drip("body"), port="cdn")
    with pytest.raises(HubError, match="failed after 4 attempts"):
        read_header(NAME)


def test_ctrl_c_at_the_moment_the_headers_arrive_is_not_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wait = Future.exception
    closed: list[bool] = []

    def interrupted(self: Future[None], timeout: float | None = None) -> BaseException | None:
        wait(self, timeout)
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(Future, "exception", interrupted)
    response = contextlib.ExitStack()
    response.callback(closed.append, True)
    with pytest.raises(KeyboardInterrupt), open_response(response, timeout=5):
        pytest.fail("the response was used")
    assert closed == [True]


def test_temporary_drip_is_resumed(hub: Hub, saved: Path) -> None:
    hub.repo(NAME).add({WEIGHTS: saved.read_bytes()})
    hub.fault("/objects/", drip("body"), port="cdn", times=1)
    assert zoo.load(NAME).spec == zoo.load(saved).spec
    assert len(hub.requests_to("/objects/", "cdn")) > 1

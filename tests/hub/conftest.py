"""A test hub for every test, and a client that uses it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hub_server import Hub
from huggingface_hub import constants
from huggingface_hub.utils import close_session

import zoo
from zoo.hub import client


@pytest.fixture(scope="session")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved model. Tests must not change the file."""
    model = zoo.compose("bahdanau-reversal", seed=3)
    return zoo.save(model, tmp_path_factory.mktemp("saved") / "model.safetensors")


@pytest.fixture(scope="session", autouse=True)
def session() -> Iterator[None]:
    """One HTTP session for all tests, because creating one is slow."""
    yield
    close_session()


@pytest.fixture
def cache(hub: Hub) -> Path:
    """The cache directory in HF_HOME."""
    return Path(constants.HF_HUB_CACHE)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub, with an empty cache, no token and an empty current directory."""
    for name in list(os.environ):
        if name.startswith(("HF_", "HUGGING")):
            monkeypatch.delenv(name)
    home = tmp_path / "home"
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setattr(client, "RETRY_DELAYS", (0.01, 0.02, 0.03))
    with Hub() as running:
        for name, value in {
            "ENDPOINT": running.url,
            "HF_HOME": str(home),
            "HF_HUB_CACHE": str(home / "hub"),
            "HF_TOKEN_PATH": str(home / "token"),
            "HF_STORED_TOKENS_PATH": str(home / "stored_tokens"),
            "HF_HUB_OFFLINE": False,
            "HF_HUB_DISABLE_XET": True,
            "HF_HUB_DISABLE_TELEMETRY": True,
        }.items():
            monkeypatch.setattr(constants, name, value)
        yield running

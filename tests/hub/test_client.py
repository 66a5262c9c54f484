"""The records that downloads log."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from hub_kit import BYTES, NAME, WEIGHTS
from hub_server import Hub, Response

from zoo.hub import fetch


def test_downloads_and_retries_are_logged(
    hub: Hub, cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    hub.repo(NAME).add({WEIGHTS: BYTES})
    hub.fault("objects", lambda _: Response.error(503), port="cdn", times=1)
    with caplog.at_level(logging.INFO, logger="zoo"):
        fetch(NAME, [WEIGHTS])
    records = [(record.levelname, record.getMessage()) for record in caplog.records]
    started, retried = records
    assert started == ("INFO", f"downloading {WEIGHTS} of {NAME} ({len(BYTES)} bytes)")
    assert retried[0] == "WARNING"
    assert "status 503" in retried[1]
    assert WEIGHTS in retried[1]

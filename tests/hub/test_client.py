"""The records that downloads log."""

from __future__ import annotations

from pathlib import Path
from unittest import TestCase

from hub_kit import BYTES, NAME, WEIGHTS
from hub_server import Hub, Response

from zoo.hub import fetch


def test_downloads_and_retries_are_logged(hub: Hub, cache: Path) -> None:
    hub.repo(NAME).add({WEIGHTS: BYTES})
    hub.fault("objects", lambda _: Response.error(503), port="cdn", times=1)
    with TestCase().assertLogs("zoo", "INFO") as log:
        fetch(NAME, [WEIGHTS])
    records = [(record.levelname, record.getMessage()) for record in log.records]
    started, retried = records
    assert started == ("INFO", f"downloading {WEIGHTS} of {NAME} ({len(BYTES)} bytes)")
    assert retried[0] == "WARNING"
    assert "status 503" in retried[1]
    assert WEIGHTS in retried[1]

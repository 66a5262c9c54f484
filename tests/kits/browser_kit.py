"""Pages in a real browser: what they log and request, their accessibility, and screenshots."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = [
    "--no-sandbox",  # Chromium rejects its sandbox if the tests run as root
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SCREENSHOTS = "ZOO_SCREENSHOTS"
"""Environment variable: the directory of screenshots; by default that of the test."""


def find_chromium() -> str:
    """Return the path of the browser, or skip the test with the reason."""
    pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    for name in NAMES:
        if path := shutil.which(name):
            return path
    pytest.skip("Chromium is not installed (Debian: apt-get install chromium)")


@contextmanager
def chromium() -> Iterator[Any]:
    """Start Chromium, or skip the test if it is not installed."""
    path = find_chromium()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


class Visit:
    """A tab of the browser.

    Args:
        browser: a running browser of playwright.
        screenshots: directory of the screenshots.
        options: options of the browser's context, such as `color_scheme` and `viewport`.

    Attributes:
        page: the tab, a `Page` of playwright.
        problems: errors and warnings of the console, and exceptions of scripts.
        requests: the address of each request.
    """

    def __init__(self, browser: Any, screenshots: Path, options: dict[str, Any]) -> None:
        self.context = browser.new_context(**options)
        self.screenshots = screenshots
        self.page = self.context.new_page()
        self.page.set_default_timeout(10_000)
        self.problems: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", self._log)
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("requestfailed", lambda one: self.problems.append(f"failed: {one.url}"))
        self.page.on("request", lambda one: self.requests.append(one.url))

    def _log(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.problems.append(message.text)

    def hosts(self) -> set[str]:
        """Return the hosts that the page has sent requests to; "file" for local files."""
        urls = [urlsplit(url) for url in self.requests]
        return {url.hostname or url.scheme for url in urls if url.scheme not in ("data", "blob")}

    def violations(self) -> list[str]:
        """Return the serious and critical problems of accessibility that axe-core finds."""
        from axe_playwright_python.sync_playwright import Axe

        # The elements that pass are not described, which takes half of the time.
        options = {"resultTypes": ["violations"]}
        found = Axe().run(self.page, options=options).response["violations"]
        return [
            f"{one['id']}: {node['target']} {node['failureSummary']}"
            for one in found
            if one["impact"] in ("serious", "critical")
            for node in one["nodes"]
        ]

    def screenshot(self, name: str, *, full: bool = True) -> Path:
        """Save a picture of the page; return its path."""
        path = self.screenshots / f"{name}.png"
        self.page.screenshot(path=path, full_page=full)
        return path


def screenshot_folder(default: Path) -> Path:
    """Return the directory of screenshots, which exists."""
    folder = Path(os.environ.get(SCREENSHOTS) or default)
    folder.mkdir(parents=True, exist_ok=True)
    return folder

"""Searches of the documentation site, by the script that its pages load."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

_SCRIPT = """
const [site, ...queries] = process.argv.slice(1);
global.window = {};
require(`${site}/assets/search-index.js`);
const { searchPages } = require(`${site}/assets/search.js`);
const { pages } = window.zooSearch;
const find = (query) => searchPages(window.zooSearch, query).map((page) => pages[page][0]);
console.log(JSON.stringify(queries.map(find)));
"""


def search(site: Path, queries: Sequence[str]) -> list[list[str]]:
    """Return the names of the pages that each query finds, best first."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    command = [node, "-e", _SCRIPT, str(site), *queries]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [[page.removesuffix(".html") for page in pages] for pages in json.loads(done.stdout)]

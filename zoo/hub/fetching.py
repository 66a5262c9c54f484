"""Download of selected files of any repository."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from zoo.errors import HubError
from zoo.hub.checkout import Checkout, Options
from zoo.hub.reference import parse_reference


def fetch(
    source: str,
    patterns: Sequence[str],
    *,
    revision: str | None = None,
    token: str | bool | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
    local_files_only: bool = False,
    force_download: bool = False,
) -> Path:
    """Download the matching files of a repository and check their hashes. Return the directory.

    All files are from one commit, which is the name of the directory. Only data files are
    downloaded, no code and no pickles.

    Args:
        source: `org/name` or `hub:org/name@revision`.
        patterns: file names or globs, such as `config.json` or `*.safetensors`. At least one must
            match. `*` does not match `/`.
    """
    options = Options(token, cache_dir, local_files_only, force_download)
    checkout = Checkout(parse_reference(source, revision), options)
    matches = checkout.match_files(patterns)
    if not matches:
        raise HubError(
            f"{checkout.repo} at {checkout.commit[:12]} has no data file matching "
            f"{', '.join(patterns)}{checkout.describe_files()}"
        )
    checkout.fetch(matches)
    return checkout.folder

"""Chosen files of any repository, for those who read other formats than the zoo's."""

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
    """A folder with the files of any repository that match, at one commit, every byte checked.

    The folder is named by the commit. Only data is fetched, never code or pickles.

    Args:
        source: ``org/name`` or ``hub:org/name@revision``.
        patterns: names or globs, as ``config.json`` or ``*.safetensors``, of which at least one
            has to match; ``*`` stays within one folder.
    """
    options = Options(token, cache_dir, local_files_only, force_download)
    checkout = Checkout(parse_reference(source, revision), options)
    wanted = checkout.match_files(patterns)
    if not wanted:
        raise HubError(
            f"{checkout.repo} at {checkout.commit[:12]} has no data file that matches "
            f"{', '.join(patterns)}{checkout.describe_files()}"
        )
    checkout.fetch(wanted)
    return checkout.folder

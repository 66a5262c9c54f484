"""An index of what installed plugins provide, so that commands print it without importing torch."""

from __future__ import annotations

import logging
import os
import sys
import time
from pathlib import Path

from zoo.cli.index.fingerprint import Fingerprint, distributions, environment, is_current, times
from zoo.cli.index.records import ComponentRecord, Index, PartRecord, PluginRecord
from zoo.cli.index.store import index_file, read_data, write_data

__all__ = ["ComponentRecord", "Index", "PartRecord", "PluginRecord", "load_index"]

_log = logging.getLogger(__name__)

_SETTLE_NS = 2_000_000_000
"""A file changed less than this before the build may have been imported before the change."""


_COMPLETING = "_ZOO_COMPLETE"
"""Set by the script of a shell that completes a word."""


def load_index() -> Index:
    """Return the index of this environment, built again if anything has changed.

    While a shell completes a word, an older index is used as it is, because a new one takes
    seconds.
    """
    file = index_file(environment())
    data = read_data(file) if file else None
    try:
        if data is not None and (_COMPLETING in os.environ or is_current(data["fingerprint"])):
            return Index.from_json(data["index"])
    except (KeyError, TypeError, AttributeError):
        _log.info("%s has another format", file)
    return _rebuild(file)


def _rebuild(file: Path | None) -> Index:
    _log.info("building the index of plugins, which imports all of them")
    loaded, installed, started = set(sys.modules), distributions(), time.time_ns()
    from zoo.cli.index.build import build_index
    from zoo.cli.index.watched import fingerprint_of

    index, registry = build_index()
    targets = {plugin.target.partition(":")[0].strip() for plugin in registry.plugins}
    if file is None or loaded & {"zoo.interfaces", *targets}:
        return index  # modules imported before may be older than their files
    fingerprint = fingerprint_of(registry.plugins)
    if installed == fingerprint["distributions"] and not _changed(fingerprint, started):
        written = write_data(file, {"fingerprint": fingerprint, "index": index.to_json()})
        _log.info("%s %s", "wrote" if written else "cannot write", file)
    return index


def _changed(fingerprint: Fingerprint, started: int) -> bool:
    """Return whether a file was changed shortly before or during the build."""
    now = time.time_ns()
    return any(started - _SETTLE_NS <= changed <= now for changed in times(fingerprint))

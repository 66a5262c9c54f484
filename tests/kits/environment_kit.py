"""The environment variables that tests run with, which are not those of the caller."""

from __future__ import annotations

import re
from collections.abc import MutableMapping

KEPT = ("ZOO_DATA", "ZOO_SCREENSHOTS", "ZOO_WEIGHTS")
"""Read by tests: folders of data sets, of screenshots, and of published weights."""

CLEARED = re.compile(
    "(ZOO|HF|HUGGING|HUGGINGFACE|TRANSFORMERS|ACCELERATE|FSDP)_.*|XDG_CACHE_HOME"
    "|COLUMNS|LINES|CLICOLOR.*|NO_COLOR|FORCE_COLOR|PY_COLORS|TTY_.*|_TYPER_.*|GITHUB_ACTIONS"
    "|PYTHON(IOENCODING|UTF8|OPTIMIZE|WARNINGS)|LC_.*|LANG|LANGUAGE|TZ"
    "|(LOCAL_)?(RANK|WORLD_SIZE)|MASTER_(ADDR|PORT)|(PMI|OMPI_COMM_WORLD|MV2_COMM_WORLD)_SIZE"
)
"""Change what commands print, where they read and write, or whether they use a network or group."""


def clear_variables(environ: MutableMapping[str, str]) -> None:
    """Remove the variables that change the results of tests."""
    for name in list(environ):
        if CLEARED.fullmatch(name) and name not in KEPT:
            del environ[name]
    environ["LANG"] = "C.UTF-8"
    # Ignore third-party plugins that are installed in the environment.
    environ["ZOO_PLUGINS"] = "none"

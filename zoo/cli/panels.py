"""The names of the commands of the zoo itself, in the panels of ``zoo --help``.

Names only: the index of plugins reserves them, and the commands read that index.
"""

from __future__ import annotations

PANELS: dict[str, tuple[str, ...]] = {
    "Components and specs": ("list", "show", "check", "schema"),
    "Data": ("tokenizer",),
    "Models": ("compose", "train", "info", "verify", "generate", "predict", "embed", "eval"),
    "Exchange": ("merge", "catalogue", "pull", "push"),
    "Plugins": ("plugins", "new-plugin", "test-plugin"),
}
COMMAND_NAMES = tuple(name for panel in PANELS.values() for name in panel)

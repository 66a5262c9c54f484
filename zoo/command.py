"""The interface for authors of commands, which a plugin adds with the hook ``zoo_commands``.

Names are imported on first use.
"""

from typing import TYPE_CHECKING

from zoo.lazy import lazy_exports

if TYPE_CHECKING:
    from zoo.cli.output import (
        JsonOption as JsonOption,
        print_json as print_json,
        print_rows as print_rows,
    )
    from zoo.registry.command import Command as Command
else:
    __getattr__, __dir__, __all__ = lazy_exports(__name__)

"""``zoo ui``: components, specs and models in a web browser, served on this machine only.

The command is imported when it runs, so that composing and loading models does not import it.
"""

from collections.abc import Sequence

from zoo.command import Command
from zoo.plugin import hookimpl


@hookimpl
def zoo_commands() -> Sequence[Command]:
    return [
        Command(
            "ui",
            "zoo_ui.ui_command:command",
            "Browse components, build specs and look inside models in a web browser.",
            example="zoo ui bahdanau-2015",
        )
    ]

"""Looking inside models: what their attention does on an input, and pictures of it.

``zoo.attend`` and ``zoo attend`` are imported when they are used.
"""

from collections.abc import Sequence

from zoo.command import Command
from zoo.plugin import hookimpl


@hookimpl
def zoo_commands() -> Sequence[Command]:
    return [
        Command(
            "attend",
            "zoo_inspect.attend_command:command",
            "Show what a model attends to: heat maps, overlays on images, glimpses, graphs and "
            "memories.",
            example="zoo attend tatoeba-por-eng-transformer 'A casa é bonita.' -o attention.html",
            panel="Models",
        )
    ]

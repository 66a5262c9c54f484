"""Demos: shipped models on sentences and digits; training on sequence reversal."""

from collections.abc import Sequence

from zoo.command import Command
from zoo.plugin import hookimpl


@hookimpl
def zoo_commands() -> Sequence[Command]:
    return [
        Command(
            "demo",
            "zoo_demo.demo_command:command",
            "Translate sentences and recognise digits with the shipped models.",
            example="zoo demo 'Onde fica a estação?'",
            panel="Models",
        )
    ]

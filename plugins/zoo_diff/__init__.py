"""Differences between two models or specs: settings, tensors and outputs."""

from collections.abc import Sequence

from zoo.command import Command
from zoo.plugin import hookimpl


@hookimpl
def zoo_commands() -> Sequence[Command]:
    return [
        Command(
            "diff",
            "zoo_diff.diff_command:command",
            "Compare two specs or models: settings, tensors, and outputs on one example.",
            example="zoo diff bahdanau-2015 bahdanau-small",
            panel="Models",
        )
    ]

"""The modules of the commands of the zoo itself."""

from __future__ import annotations

from types import ModuleType

from zoo.cli import (
    catalogue,
    check,
    compose,
    embed,
    eval,
    generate,
    info,
    list_command,
    merge,
    new_plugin,
    plugins,
    predict,
    pull,
    push,
    schema,
    show,
    test_plugin,
    tokenizer,
    train,
    verify,
)
from zoo.cli.panels import COMMAND_NAMES

_MODULES = (
    catalogue,
    check,
    compose,
    embed,
    eval,
    generate,
    info,
    list_command,
    merge,
    new_plugin,
    plugins,
    predict,
    pull,
    push,
    schema,
    show,
    test_plugin,
    tokenizer,
    train,
    verify,
)


def _command_name(module: ModuleType) -> str:
    """Return the command of a module: `list` of `list_command`, `new-plugin` of `new_plugin`."""
    name = module.__name__.rpartition(".")[2]
    return name.removesuffix("_command").replace("_", "-")


COMMANDS: dict[str, ModuleType] = {_command_name(module): module for module in _MODULES}
assert set(COMMANDS) == set(COMMAND_NAMES)

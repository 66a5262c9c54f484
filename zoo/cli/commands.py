"""The commands of the zoo itself, in the panels of ``zoo --help``."""

from __future__ import annotations

from types import ModuleType

from zoo.cli import (
    catalogue,
    check,
    compose,
    demo,
    eval,
    export,
    generate,
    import_command,
    info,
    list_command,
    new_plugin,
    plugins,
    pull,
    push,
    schema,
    show,
    test_plugin,
    tokenizer,
    train,
    verify,
)

PANELS: dict[str, dict[str, ModuleType]] = {
    "Components and specs": {"list": list_command, "show": show, "check": check, "schema": schema},
    "Data": {"tokenizer": tokenizer},
    "Models": {
        "demo": demo,
        "compose": compose,
        "train": train,
        "info": info,
        "verify": verify,
        "generate": generate,
        "eval": eval,
    },
    "Exchange": {
        "import": import_command,
        "export": export,
        "catalogue": catalogue,
        "pull": pull,
        "push": push,
    },
    "Plugins": {"plugins": plugins, "new-plugin": new_plugin, "test-plugin": test_plugin},
}
COMMANDS = {name: module for panel in PANELS.values() for name, module in panel.items()}

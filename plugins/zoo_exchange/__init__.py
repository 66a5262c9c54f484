"""Import and export of other libraries' weights, through maps between tensor names.

Its modules are imported when a command runs, or a model of another library is loaded.
"""

from collections.abc import Sequence

from zoo.command import Command
from zoo.plugin import hookimpl


@hookimpl
def zoo_folder_importers() -> Sequence[str]:
    return ["zoo_exchange.imported"]


@hookimpl
def zoo_importer_laws() -> Sequence[str]:
    return ["zoo_exchange.importer_laws"]


@hookimpl
def zoo_commands() -> Sequence[Command]:
    return [
        Command(
            "import",
            "zoo_exchange.import_command:command",
            "Convert a model of another library to a model file.",
            example="zoo import weights.safetensors --spec spec.yaml --map map.yaml "
            "-o model.safetensors",
            panel="Exchange",
        ),
        Command(
            "export",
            "zoo_exchange.export_command:command",
            "Export a model's weights and config to the format of another library.",
            example="zoo export model.safetensors folder --to llama",
            panel="Exchange",
        ),
    ]

"""Options of the commands that run a model on a device."""

from typing import Annotated

import typer

DeviceOption = Annotated[
    str | None, typer.Option(help="Device, for example cpu; default: a GPU if there is one.")
]

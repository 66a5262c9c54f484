"""Options of the commands that train and evaluate recipes."""

from pathlib import Path
from typing import Annotated

import typer

DataOption = Annotated[
    Path | None,
    typer.Option(
        help="Folder of the data sets; default: the environment variable ZOO_DATA, or ./data."
    ),
]
ExamplesOption = Annotated[
    int | None, typer.Option(min=1, help="Evaluate on the first examples only, this many.")
]
LimitOption = Annotated[
    float | None, typer.Option("--limit", min=0.001, help="Seconds of training of each run.")
]

"""Running a page of docs/: writes its YAML files, runs its Python and its commands."""

import re
import shlex
from pathlib import Path

from typer.testing import CliRunner

from zoo.cli.main import app

DOCS = Path(__file__).parents[2] / "docs"
_PIECE = re.compile(r"```(python|yaml)\n(.*?)```|^    (zoo [^\n]*)$", re.S | re.M)


def run_page(page, skip=(), outputs=None):
    """Run a page in the current folder, except commands that contain a word of `skip`.

    Sets the printed text of each command in `outputs`.
    """
    namespace = {}
    outputs = {} if outputs is None else outputs
    steps = 0
    for language, block, command in _PIECE.findall((DOCS / page).read_text(encoding="utf-8")):
        if language == "python":
            exec(compile(block, page, "exec"), namespace)
        elif language == "yaml":
            Path(re.match(r"# (\S+)\n", block)[1]).write_text(block)
        elif not any(word in command for word in skip):
            result = CliRunner().invoke(app, shlex.split(command, comments=True)[1:])
            assert result.exit_code == 0, f"{command}\n{result.output}\n{result.exception}"
            outputs[command] = result.output
        steps += 1
    return steps

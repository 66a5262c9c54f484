"""Running a page of docs/: writes its YAML files, runs its Python and its commands."""

import re
import shlex
from pathlib import Path

from typer.testing import CliRunner

from zoo.cli.main import app

DOCS = Path(__file__).parents[2] / "docs"
_PIECE = re.compile(r"```(python|yaml)\n(.*?)```|^    (zoo [^\n]*)$", re.S | re.M)


def read_page(page, max_updates=None):
    """Return the text of a page, with short trainings if there is a maximum of steps."""
    text = (DOCS / page).read_text(encoding="utf-8")
    if max_updates is None:
        return text
    text = re.sub(r"^  epochs: \d+$", "  epochs: 1", text, flags=re.M)
    text = re.sub(r"warmup: \d+", "warmup: 1", text)

    def shorten(match):
        return f"  steps: {min(int(match[1]), max_updates)}"

    return re.sub(r"^  steps: (\d+)$", shorten, text, flags=re.M)


def run_page(page, skip=(), outputs=None, max_updates=None):
    """Run a page in the current folder, except commands that contain a word of `skip`.

    Sets the printed text of each command in `outputs`. Trainings of more than `max_updates` steps
    have that many, and those of several epochs one.
    """
    namespace = {}
    outputs = {} if outputs is None else outputs
    steps = 0
    for language, block, command in _PIECE.findall(read_page(page, max_updates)):
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

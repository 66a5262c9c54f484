"""Commands print to streams of any encoding."""

import json
import os
import subprocess
import sys

RUN = """
import json
import typer
from zoo.cli.index import load_index
from zoo.cli.main import app
from zoo.cli.terminal import escape_output

def paths(command, path=()):
    yield path
    for name in sorted(getattr(command, "commands", ())):
        yield from paths(command.commands[name], (*path, name))

escape_output()
group = typer.main.get_command(app)
names = group.list_commands(typer.Context(group))
commands = {name: group.get_command(typer.Context(group), name) for name in names}
helps = [path for name in names for path in paths(commands[name], (name,))]
components = load_index().components("scorer")
lists = ["list", "list --specs", "list --maps", "list --importers", "plugins", "catalogue"]
calls = [(*path, "--help") for path in ((), *helps)]
calls += [tuple(line.split()) for line in lists]
calls += [("show", f"{part.plugin}:{part.name}") for part in components]
failed = []
for call in calls:
    try:
        app(list(call), standalone_mode=False)
    except Exception as error:
        failed.append([call, repr(error)])
print("\\n" + json.dumps({"calls": len(calls), "failed": failed}))
"""


def test_every_command_prints_to_a_stream_without_unicode():
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([sys.executable, "-c", RUN], capture_output=True, env=environment)
    assert done.returncode == 0, done.stderr.decode()
    *output, report = done.stdout.decode("ascii").splitlines()
    result = json.loads(report)
    assert result["failed"] == []
    assert result["calls"] > 40
    assert any("\\u" in line for line in output)


def test_json_stays_valid():
    code = "import sys; from zoo.cli.main import main; sys.argv = ['zoo', 'list', '--json']; main()"
    outputs = [
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            env={**os.environ, "PYTHONIOENCODING": encoding},
            check=True,
        ).stdout
        for encoding in ("ascii", "utf-8")
    ]
    assert outputs[0].isascii()
    assert not outputs[1].isascii()
    assert json.loads(outputs[0]) == json.loads(outputs[1])

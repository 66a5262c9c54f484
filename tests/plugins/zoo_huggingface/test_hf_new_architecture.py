"""The tutorial docs/new-architecture.md, followed as written by a new plugin."""

import os
import re
import subprocess
import sys
import tomllib

import pytest
from docs_kit import DOCS
from plugin_kit import declare

PAGE = "new-architecture.md"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    """A folder with the files of the page, whose plugin is installed."""
    folder = tmp_path_factory.mktemp("tutorial")
    text = (DOCS / PAGE).read_text(encoding="utf-8")
    blocks = re.findall(r"```(?:python|yaml|toml)\n# (\S+)\n(.*?)```", text, re.S)
    for name, content in blocks:
        path = folder / ("." if name == "compare.py" else "site") / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    assert {name for name, _ in blocks} == {
        "zoo_biogpt/__init__.py", "zoo_biogpt/biogpt.yaml", "pyproject.toml", "compare.py"
    }  # fmt: skip
    project = tomllib.loads((folder / "site" / "pyproject.toml").read_text())["project"]
    ((point, module),) = project["entry-points"]["zoo"].items()
    declare(folder / "site", project["name"], f"[zoo]\n{point} = {module}\n")
    return folder


def run(workspace, *command):
    env = {
        **{name: value for name, value in os.environ.items() if name != "ZOO_PLUGINS"},
        "PYTHONPATH": str(workspace / "site"),
        "HF_HOME": str(workspace / "home"),
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
    }
    return subprocess.run(
        [sys.executable, *command], cwd=workspace, env=env, capture_output=True, text=True
    )


def test_the_importer_has_the_outputs_of_transformers(workspace):
    done = run(workspace, "compare.py")
    assert done.returncode == 0, done.stderr
    label, _, difference = done.stdout.partition(": ")
    assert label == "relative difference of the logits"
    assert float(difference) < 1e-5


def test_the_plugin_obeys_the_laws(workspace):
    (command,) = re.findall(r"^    zoo (.*)$", (DOCS / PAGE).read_text(), re.M)
    done = run(workspace, "-m", "zoo", *command.split())
    assert done.returncode == 0, done.stdout + done.stderr
    assert "biogpt" in done.stdout

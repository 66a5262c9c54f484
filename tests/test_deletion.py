"""Delete any one plugin's folder with its entry-point line, and the rest still works."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PLUGINS = sorted(path.name.removeprefix("zoo_") for path in (ROOT / "plugins").glob("zoo_*"))

# Run in the mutilated installation: every remaining component builds (and obeys its laws, if
# thorough), every remaining spec (every tiny one, if not) checks or says what is missing.
PROBE = """
import json, sys
import zoo
from zoo.registry.component_registry import default_registry
from zoo.testing import examine
from zoo.testing.configuration import subjects
import torch
torch.set_num_threads(1)
thorough = sys.argv[1] == "thorough"
registry = default_registry()
broken = []
for entry in registry.components():
    if thorough:
        broken += [f"{o.component}: {o.law}: {o.message}"
                   for o in examine(entry.cls) if o.status == "failed"]
    else:
        try:
            next(subjects(entry.cls)).part()
        except Exception as error:
            broken += [] if "is not installed" in str(error) else [f"{entry.name}: {error!r}"]
refused = {}
for name in registry.specs:
    if not thorough and not name.endswith("-tiny"):
        continue
    try:
        zoo.check(name)
    except zoo.SpecError as error:
        refused[name] = str(error)
print(json.dumps({
    "home": zoo.__file__,
    "plugins": {p.name: p.status for p in registry.plugins},
    "specs": list(registry.specs),
    "broken": broken,
    "refused": refused,
}))
"""


@pytest.mark.parametrize("gone", PLUGINS)
@pytest.mark.parametrize("how", ["quick", pytest.param("thorough", marks=pytest.mark.slow)])
def test_the_rest_works_without(gone, how, tmp_path):
    project, site = tmp_path / "project", tmp_path / "site"
    project.mkdir()
    for name in ("zoo", "plugins"):
        shutil.copytree(ROOT / name, project / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("README.md", "LICENSE", "registry.yaml", "hatch_build.py"):
        shutil.copy(ROOT / name, project)
    shutil.rmtree(project / "plugins" / f"zoo_{gone}")
    text = (ROOT / "pyproject.toml").read_text()
    lines, count = re.subn(rf'^{gone} = "zoo_{gone}"\n', "", text, flags=re.M)
    assert count == 1
    (project / "pyproject.toml").write_text(lines)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run(
        [*pip, "--no-deps", "--no-build-isolation", "--target", site, project],
        check=True,
        capture_output=True,
    )

    done = subprocess.run(
        [sys.executable, "-c", PROBE, how],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(site)},
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["home"].startswith(str(site))
    assert found["plugins"] == {name: "ok" for name in PLUGINS if name != gone}
    assert found["broken"] == []
    for name, message in found["refused"].items():
        assert re.search(r"no (\w+) named '[\w-]+'", message), f"{name}: {message}"
    untouched = set(found["specs"]) - set(found["refused"])
    assert untouched or gone in (
        "tokens",
        "seq2seq",
        "recurrent",
        "sampling",
        "objectives",
        "metrics",
    )

"""The other plugins work after a plugin's folder and entry point are deleted."""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from packaging_kit import build

ROOT = Path(__file__).parents[1]
PLUGINS = sorted(path.name.removeprefix("zoo_") for path in (ROOT / "plugins").glob("zoo_*"))

# Alignments, which fill slots; the fast lane, which only the laboratory imports. Together, because
# most of the time is that of a process whose modules are not compiled.
SAMPLE = ("alignment", "fast")
WITHOUT_SPECS = ("tokens", "seq2seq", "recurrent", "sampling", "objectives", "metrics")
"""Plugins that every shipped spec needs a part of."""

# Runs in the reduced installation. Quick: every component builds, and every tiny spec checks or
# names the missing component. Thorough: every component satisfies its laws, and all specs.
PROBE = """
import contextlib, json, sys
import zoo
from zoo.registry.component_registry import default_registry
from zoo.testing import run_laws
from zoo.spec.meta import skip_dynamo_import
from zoo.testing.configuration import configurations
import torch
torch.set_num_threads(1)
thorough = sys.argv[1] == "thorough"  # its laws compile models
imports = contextlib.nullcontext() if thorough else skip_dynamo_import()
imports.__enter__()
registry = default_registry()
broken = []
for entry in registry.components():
    if thorough:
        broken += [f"{o.component}: {o.law}: {o.message}"
                   for o in run_laws(entry.cls) if o.status == "failed"]
    else:
        try:
            next(configurations(entry.cls)).build()
        except Exception as error:
            broken += [] if "is not installed" in str(error) else [f"{entry.name}: {error!r}"]
rejected = {}
for name in registry.specs:
    if not thorough and not name.endswith("-tiny"):
        continue
    try:
        zoo.check(name)
    except zoo.SpecError as error:
        rejected[name] = str(error)
print(json.dumps({
    "home": zoo.__file__,
    "plugins": {p.name: p.status for p in registry.plugins},
    "specs": list(registry.specs),
    "broken": broken,
    "rejected": rejected,
}))
"""


@pytest.mark.parametrize(
    ("deleted", "probe"),
    [
        (SAMPLE, "quick"),
        *(pytest.param((plugin,), "thorough", marks=pytest.mark.slow) for plugin in PLUGINS),
    ],
    ids=lambda value: value if isinstance(value, str) else "+".join(value),
)
def test_other_plugins_work_after_deletion(deleted, probe, tmp_path):
    if not set(deleted) <= set(PLUGINS):
        pytest.skip(f"a plugin of {deleted} is not there")
    project, site = tmp_path / "project", tmp_path / "site"
    project.mkdir()
    for name in ("zoo", "plugins"):
        shutil.copytree(ROOT / name, project / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("README.md", "LICENSE", "registry.yaml", "hatch_build.py"):
        shutil.copy(ROOT / name, project)
    text = (ROOT / "pyproject.toml").read_text()
    for plugin in deleted:
        shutil.rmtree(project / "plugins" / f"zoo_{plugin}")
        text, count = re.subn(rf'^{plugin} = "zoo_{plugin}"\n', "", text, flags=re.M)
        assert count == 1
    (project / "pyproject.toml").write_text(text)
    with zipfile.ZipFile(build("wheel", project, tmp_path / "dist")) as wheel:
        wheel.extractall(site)

    done = subprocess.run(
        [sys.executable, "-c", PROBE, probe],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(site)},
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["home"].startswith(str(site))
    assert found["plugins"] == {name: "ok" for name in PLUGINS if name not in deleted}
    assert found["broken"] == []
    for name, message in found["rejected"].items():
        assert re.search(r"no (\w+) named '[\w-]+'", message), f"{name}: {message}"
    assert set(found["specs"]) - set(found["rejected"]) or set(deleted) <= set(WITHOUT_SPECS)

"""A third-party plugin from `zoo new-plugin` to its removal, in its own environment."""

import json
import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


class Environment:
    """Virtual environment with the zoo installed by pip; other libraries come from this one."""

    def __init__(self, folder):
        venv.create(folder)
        self.bin = folder / "bin"
        (site,) = folder.glob("lib/python*/site-packages")
        outer = [path for path in sys.path if path.endswith("site-packages")]
        # Appended to the path, so that the zoo installed here is imported and not an editable one.
        (site / "outer.pth").write_text("\n".join(outer) + "\n")
        self.pip("install", "--no-deps", str(ROOT))

    def pip(self, *arguments):
        command = [sys.executable, "-m", "pip", "--python", str(self.bin / "python"), *arguments]
        flags = ["--quiet", "--disable-pip-version-check"]
        if arguments[0] == "install":
            flags.append("--no-build-isolation")
        self._run([*command, *flags])

    def zoo(self, *arguments, code=0):
        done = self._run([str(self.bin / "python"), "-m", "zoo", *map(str, arguments)], code=code)
        return done.stdout + done.stderr

    def _run(self, command, code=0):
        environ = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "ZOO"))}
        done = subprocess.run(
            command, capture_output=True, text=True, cwd=self.bin, env=environ, timeout=300
        )
        assert done.returncode == code, f"{command}\n{done.stdout}\n{done.stderr}"
        return done


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    return Environment(tmp_path_factory.mktemp("fresh") / "venv")


SPEC = """
zoo: 1
name: third-party
model:
  type: seq2seq
  source: {type: token, vocab: 9, dim: 4}
  encoder: {type: gru, hidden: 3}
  decoder:
    type: luong-rnn
    hidden: 5
    attention: {scorer: {type: cosine, hidden: 7}, align: soft}
"""


def test_a_new_plugin_can_be_installed_used_and_removed(environment, tmp_path):
    environment.zoo("new-plugin", "cosine", "--kind", "scorer", "-o", tmp_path)
    environment.pip("install", "--no-deps", str(tmp_path / "zoo-cosine"))

    rows = json.loads(environment.zoo("list", "--json", "--kind", "scorer"))
    (row,) = [row for row in rows if row["name"] == "cosine"]
    assert (row["plugin"], row["distribution"]) == ("cosine", "zoo-cosine")
    laws = json.loads(environment.zoo("test-plugin", "cosine", "--json"))
    assert laws["faults"] == []
    assert {outcome["status"] for outcome in laws["outcomes"]} == {"passed", "skipped"}

    spec, model = tmp_path / "spec.yaml", tmp_path / "model.safetensors"
    spec.write_text(SPEC)
    assert json.loads(environment.zoo("check", spec, "--json"))["ok"] is True
    environment.zoo("compose", spec, "-o", model)
    load = f"import zoo; m = zoo.load({str(model)!r}); print(sum(p.sum() for p in m.parameters()))"
    environment._run([str(environment.bin / "python"), "-c", load])
    environment._run(
        [
            str(environment.bin / "python"),
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            str(tmp_path / "zoo-cosine"),
        ]
    )

    environment.pip("uninstall", "--yes", "zoo-cosine")
    assert "cosine" not in environment.zoo("list")
    done = environment._run([str(environment.bin / "python"), "-c", load], code=1)
    assert "pip install 'zoo-cosine==0.1.0'" in done.stderr
    assert "no scorer named 'cosine'" in environment.zoo("check", spec, code=1)

"""A third-party plugin from `zoo new-plugin` to its removal, in its own environment."""

import json

import pytest
from packaging_kit import ROOT, Environment


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    return Environment(tmp_path_factory.mktemp("fresh") / "venv", ROOT)


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
    attention: {scorer: {type: angular, hidden: 7}, align: soft}
"""


def test_a_new_plugin_can_be_installed_used_and_removed(environment, tmp_path):
    environment.zoo("new-plugin", "angular", "--kind", "scorer", "-o", tmp_path)
    environment.install(tmp_path / "zoo-angular")

    rows = json.loads(environment.zoo("list", "--json", "--kind", "scorer"))
    (row,) = [row for row in rows if row["name"] == "angular"]
    assert (row["plugin"], row["distribution"]) == ("angular", "zoo-angular")
    laws = json.loads(environment.zoo("test-plugin", "angular", "--json"))
    assert laws["faults"] == []
    assert {outcome["status"] for outcome in laws["outcomes"]} == {"passed", "skipped"}

    spec, model = tmp_path / "spec.yaml", tmp_path / "model.safetensors"
    spec.write_text(SPEC)
    assert json.loads(environment.zoo("check", spec, "--json"))["ok"] is True
    environment.zoo("compose", spec, "-o", model)
    load = f"import zoo; m = zoo.load({str(model)!r}); print(sum(p.sum() for p in m.parameters()))"
    environment.python("-c", load)
    environment.python(
        "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path / "zoo-angular")
    )

    environment.uninstall("zoo-angular")
    assert "angular" not in environment.zoo("list", "--kind", "scorer")
    assert "pip install 'zoo-angular==0.1.0'" in environment.python("-c", load, code=1)
    assert "no scorer named 'angular'" in environment.zoo("check", spec, code=1)

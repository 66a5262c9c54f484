"""Lookup of names in the component registry, and its error messages."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from plugin_kit import Site, scorer
from safetensors.torch import save_file

from zoo.artifact import load
from zoo.errors import ArtifactError, RegistryError, SpecError, ZooError
from zoo.interfaces import KINDS
from zoo.registry.component_registry import ComponentRegistry
from zoo.spec.extending import find_spec
from zoo.training.composing import check
from zoo_luong.dot import Dot

SPEC = """\
extends: bahdanau-reversal
name: {name}
model: {{decoder: {{attention: {{scorer: {scorer}}}}}}}
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    return Site(tmp_path / "site", monkeypatch)


@pytest.fixture(scope="module")
def registry() -> ComponentRegistry:
    """The zoo's own components, used once, so that torch has finished its lazy imports."""
    registry = ComponentRegistry.from_environment({"ZOO_PLUGINS": "none"})
    check("bahdanau-reversal", registry=registry)
    return registry


def reversal(reference: object) -> dict[str, Any]:
    """Return a small shipped spec with another scorer."""
    attention = {"scorer": reference}
    return {
        "extends": "bahdanau-reversal",
        "name": "x",
        "model": {"decoder": {"attention": attention}},
    }


def test_every_registered_component_is_found_by_name_and_by_reference(
    registry: ComponentRegistry,
) -> None:
    assert len(registry.entries) >= 15
    for entry in registry.entries:
        assert registry.get(entry.kind, entry.name) is entry
        assert registry.get(entry.kind, entry.reference) is entry
        assert entry.distribution == "attention-zoo"


def test_components_are_sorted_by_kind_and_name(registry: ComponentRegistry) -> None:
    kinds = list(KINDS)
    keys = [(kinds.index(e.kind), e.name) for e in registry.components()]
    assert keys == sorted(keys)
    assert {e.kind for e in registry.components("scorer")} == {"scorer"}
    with pytest.raises(RegistryError, match=r"no kind named 'scorers'; did you mean 'scorer'\?"):
        registry.components("scorers")


def test_an_unknown_name_gets_a_suggestion_and_the_list(
    registry: ComponentRegistry,
) -> None:
    with pytest.raises(RegistryError) as caught:
        registry.get("scorer", "aditive")
    assert str(caught.value).startswith("no scorer named 'aditive'; did you mean 'additive'? (")
    assert "additive, concat, dot, gat, gatv2, general" in str(caught.value)


def test_a_name_of_another_kind_is_reported_as_such(registry: ComponentRegistry) -> None:
    with pytest.raises(RegistryError, match=r"'dot' is a scorer, but this slot takes an alignment"):
        registry.get("alignment", "dot")


def test_an_unknown_plugin_in_a_reference_is_reported(registry: ComponentRegistry) -> None:
    with pytest.raises(RegistryError, match=r"no plugin named 'luonk'.*did you mean 'luong'\?"):
        registry.get("scorer", "luonk:dot")
    with pytest.raises(RegistryError, match=r"no scorer named 'bahdanau:dot'"):
        registry.get("scorer", "bahdanau:dot")


def test_a_name_of_two_plugins_is_ambiguous_unless_qualified(site: Site) -> None:
    site.add("kit-one", scorer("kit-same"), point="one")
    site.add("kit-two", scorer("kit-same"), point="two")
    registry = site.registry()
    with pytest.raises(RegistryError) as caught:
        registry.get("scorer", "kit-same")
    assert str(caught.value) == (
        "scorer 'kit-same' is provided by plugin 'one' (distribution kit-one) and "
        "plugin 'two' (distribution kit-two); use 'one:kit-same' or 'two:kit-same'"
    )
    with pytest.raises(SpecError, match=r"kit-one.*kit-two.*'one:kit-same' or 'two:kit-same'"):
        check(reversal("kit-same"), registry=registry)
    for plugin in ("one", "two"):
        assert registry.get("scorer", f"{plugin}:kit-same").distribution == f"kit-{plugin}"
        parts = check(reversal(f"{plugin}:kit-same"), registry=registry).tree.walk()
        assert plugin in [part.plugin for part in parts]


def test_a_plugin_cannot_replace_a_shipped_component(site: Site) -> None:
    site.add("kit-other", scorer("additive"), point="other")
    registry = site.registry()
    with pytest.raises(SpecError, match=r"attention-zoo.*kit-other.*'bahdanau:additive'"):
        check(reversal("additive"), registry=registry)
    parts = check("bahdanau-reversal", registry=registry).tree.walk()
    assert "bahdanau" in [part.plugin for part in parts if part.type == "additive"]
    assert check(reversal("bahdanau:additive"), registry=registry).parameters > 0
    assert check("luong-2015", registry=registry).parameters > 0


def test_a_failed_lookup_mentions_plugins_with_problems(site: Site) -> None:
    site.add("kit-bad", "raise RuntimeError('no')", point="bad", specs={"kit-missing": "zoo: 1"})
    registry = site.registry()
    hint = re.escape("plugins with problems: 'bad' (kit-bad), see 'zoo plugins'")
    with pytest.raises(RegistryError, match=hint):
        registry.get("scorer", "kit-missing")
    with pytest.raises(RegistryError, match=hint):
        registry.get("scorer", "bad:kit-missing")
    with pytest.raises(RegistryError, match=hint):
        registry.spec("kit-missing")


def test_specs_of_a_plugin_are_found_by_file_name(site: Site) -> None:
    text = SPEC.format(name="kit-model", scorer="kit-mine")
    module = site.add("kit-mine", scorer("kit-mine"), specs={"kit-model": text})
    registry = site.registry()
    assert registry.spec("kit-model") == site.folder / module / "specs" / "kit-model.yaml"
    report = check("kit-model", registry=registry)
    assert report.name == "kit-model"
    assert "kit-mine" in [part.plugin for part in report.tree.walk()]
    with pytest.raises(
        RegistryError, match=r"no spec or file named 'kit-modal'; did you mean 'kit-model'"
    ):
        registry.spec("kit-modal")


def test_a_spec_name_of_two_plugins_is_ambiguous(site: Site) -> None:
    text = SPEC.format(name="kit-model", scorer="additive")
    site.add("kit-one", scorer("kit-of-one"), point="one", specs={"kit-model": text})
    site.add("kit-two", scorer("kit-of-two"), point="two", specs={"kit-model": text})
    registry = site.registry()
    with pytest.raises(RegistryError, match=r"'kit-model' is provided by plugin 'one' and .*'two'"):
        registry.spec("kit-model")
    with pytest.raises(SpecError, match=r"plugin 'one' and plugin 'two'; use the file's path"):
        check("kit-model", registry=registry)
    path = registry.specs["kit-model"][0].path
    assert check(path, registry=registry).name == "kit-model"


def test_with_components_does_not_change_the_registry(registry: ComponentRegistry) -> None:
    class Mine(Dot):
        """A scorer defined in a test."""

        name = "mine"

    more = registry.with_components([Mine], plugin="here")
    assert more.get("scorer", "here:mine").cls is Mine
    assert more.get("scorer", "dot") is registry.get("scorer", "dot")
    with pytest.raises(RegistryError, match="no scorer named 'mine'"):
        registry.get("scorer", "mine")


def test_shipped_specs_are_named_like_their_files(registry: ComponentRegistry) -> None:
    assert len(registry.specs) >= 4
    for name in registry.specs:
        path = find_spec(name, registry)
        assert path.stem == name
        assert f"\nname: {name}\n" in path.read_text()


FOREIGN = (
    "os.system",
    "os:system",
    "builtins:eval",
    "zoo_luong.dot.Dot",
    "zoo_luong.dot:Dot",
    "luong.dot",
    "../x",
    "/etc/passwd",
    "__import__('os')",
    "dot()",
    "dot\n",
    "",
    ":",
    ":dot:",
    "DECOY",
    "DECOY.run",
    "DECOY:run",
)


@pytest.fixture
def decoy(site: Site) -> str:
    """A module that must not be imported."""
    module = f"decoy_{site.folder.parent.name}"
    marker = site.folder / "imported"
    (site.folder / f"{module}.py").write_text(f"open({str(marker)!r}, 'w').close()\nrun = print\n")
    return module


def _imported() -> set[str]:
    """Return the imported modules, without the codecs that Python loads when it needs them."""
    return {name for name in sys.modules if not name.startswith("encodings.")}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_name_in_a_spec_never_imports_a_module(
    registry: ComponentRegistry, site: Site, decoy: str, name: str
) -> None:
    before = _imported()
    with pytest.raises(SpecError, match="no scorer named"):
        check(reversal(name.replace("DECOY", decoy)), registry=registry)
    assert _imported() == before
    assert not (site.folder / "imported").exists()


@pytest.mark.parametrize("name", FOREIGN)
def test_a_name_in_an_artifact_never_imports_a_module(
    registry: ComponentRegistry, site: Site, decoy: str, tmp_path: Path, name: str
) -> None:
    plugin, _, short = name.replace("DECOY", decoy).rpartition(":")
    row = {"kind": "scorer", "name": short, "version": 1, "plugin": plugin}
    row |= {"distribution": decoy, "distribution_version": "1"}
    spec = {"zoo": 1, "name": "x", "model": {"type": name.replace("DECOY", decoy)}}
    before = _imported()
    for lock in ([row], []):
        file = tmp_path / "x.safetensors"
        header = {"zoo": "1", "spec": json.dumps(spec), "lock": json.dumps(lock)}
        save_file({}, file, header)
        with pytest.raises(ArtifactError):
            load(file, registry=registry)
    assert _imported() == before
    assert not (site.folder / "imported").exists()


def test_extends_never_imports_a_module(registry: ComponentRegistry, decoy: str) -> None:
    with pytest.raises(ZooError):  # imports what looks for models by name
        check({"extends": "no-such-spec", "name": "x"}, registry=registry)
    before = set(sys.modules)
    for name in ("os.system", "builtins:eval", "../x", decoy, f"{decoy}.py", "/etc"):
        with pytest.raises(ZooError):
            check({"extends": name, "name": "x"}, registry=registry)
    assert set(sys.modules) == before

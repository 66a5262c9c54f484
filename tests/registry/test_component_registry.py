"""Names resolve through the registry and nowhere else; a miss says what would help."""

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
from zoo.spec.composition import check
from zoo.spec.spec import find_spec
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
    """The zoo's own parts, used once, so that torch has imported all that it imports late."""
    registry = ComponentRegistry.from_environment({"ZOO_PLUGINS": "none"})
    check("bahdanau-reversal", registry=registry)
    return registry


def reversal(reference: object) -> dict[str, Any]:
    """The small shipped spec with another scorer."""
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


def test_components_come_by_kind_then_name(registry: ComponentRegistry) -> None:
    kinds = list(KINDS)
    shown = [(kinds.index(e.kind), e.name) for e in registry.components()]
    assert shown == sorted(shown)
    assert {e.kind for e in registry.components("scorer")} == {"scorer"}
    with pytest.raises(RegistryError, match=r"no kind named 'scorers'; did you mean 'scorer'\?"):
        registry.components("scorers")


def test_a_miss_suggests_the_nearest_name_and_lists_what_there_is(
    registry: ComponentRegistry,
) -> None:
    with pytest.raises(RegistryError) as caught:
        registry.get("scorer", "aditive")
    assert str(caught.value).startswith("no scorer named 'aditive'; did you mean 'additive'? (")
    assert "additive, concat, dot, gat, gatv2, general" in str(caught.value)


def test_a_name_of_another_kind_is_told_apart_from_a_miss(registry: ComponentRegistry) -> None:
    with pytest.raises(RegistryError, match=r"'dot' is a scorer, but this slot takes an alignment"):
        registry.get("alignment", "dot")


def test_an_unknown_plugin_before_the_colon_is_named(registry: ComponentRegistry) -> None:
    with pytest.raises(RegistryError, match=r"no plugin named 'luonk'.*did you mean 'luong'\?"):
        registry.get("scorer", "luonk:dot")
    with pytest.raises(RegistryError, match=r"no scorer named 'bahdanau:dot'"):
        registry.get("scorer", "bahdanau:dot")


def test_one_name_from_two_plugins_is_ambiguous_until_the_plugin_is_named(site: Site) -> None:
    site.add("kit-one", scorer("kit-same"), point="one")
    site.add("kit-two", scorer("kit-same"), point="two")
    registry = site.registry()
    with pytest.raises(RegistryError) as caught:
        registry.get("scorer", "kit-same")
    assert str(caught.value) == (
        "scorer 'kit-same' is offered by plugin 'one' (distribution kit-one) and "
        "plugin 'two' (distribution kit-two); write 'one:kit-same' or 'two:kit-same'"
    )
    with pytest.raises(SpecError, match=r"kit-one.*kit-two.*'one:kit-same' or 'two:kit-same'"):
        check(reversal("kit-same"), registry=registry)
    for plugin in ("one", "two"):
        assert registry.get("scorer", f"{plugin}:kit-same").distribution == f"kit-{plugin}"
        parts = check(reversal(f"{plugin}:kit-same"), registry=registry).tree.walk()
        assert plugin in [part.plugin for part in parts]


def test_taking_a_shipped_name_makes_it_ambiguous_but_never_replaces_it(site: Site) -> None:
    site.add("kit-thief", scorer("additive"), point="thief")
    registry = site.registry()
    with pytest.raises(SpecError, match=r"attention-zoo.*kit-thief.*'bahdanau:additive'"):
        check("bahdanau-reversal", registry=registry)
    assert check(reversal("bahdanau:additive"), registry=registry).parameters > 0
    assert check("luong-2015", registry=registry).parameters > 0


def test_a_lookup_that_fails_mentions_the_plugins_with_faults(site: Site) -> None:
    site.add("kit-bad", "raise RuntimeError('no')", point="bad", specs={"kit-lost": "zoo: 1"})
    registry = site.registry()
    mention = re.escape("plugins with faults: 'bad' (kit-bad), see 'zoo plugins'")
    with pytest.raises(RegistryError, match=mention):
        registry.get("scorer", "kit-lost")
    with pytest.raises(RegistryError, match=mention):
        registry.get("scorer", "bad:kit-lost")
    with pytest.raises(RegistryError, match=mention):
        registry.spec("kit-lost")


def test_a_plugins_specs_are_offered_by_file_name(site: Site) -> None:
    text = SPEC.format(name="kit-model", scorer="kit-mine")
    module = site.add("kit-mine", scorer("kit-mine"), specs={"kit-model": text})
    registry = site.registry()
    assert registry.spec("kit-model") == site.folder / module / "specs" / "kit-model.yaml"
    report = check("kit-model", registry=registry)
    assert report.name == "kit-model"
    assert "kit-mine" in [part.plugin for part in report.tree.walk()]
    with pytest.raises(RegistryError, match=r"no spec named 'kit-modal'; did you mean 'kit-model'"):
        registry.spec("kit-modal")


def test_a_spec_name_offered_by_two_plugins_is_an_error_that_names_both(site: Site) -> None:
    text = SPEC.format(name="kit-model", scorer="additive")
    site.add("kit-one", scorer("kit-of-one"), point="one", specs={"kit-model": text})
    site.add("kit-two", scorer("kit-of-two"), point="two", specs={"kit-model": text})
    registry = site.registry()
    with pytest.raises(RegistryError, match=r"'kit-model' is offered by plugin 'one' and .*'two'"):
        registry.spec("kit-model")
    with pytest.raises(SpecError, match=r"plugin 'one' and plugin 'two'; give the file's path"):
        check("kit-model", registry=registry)
    path = registry.specs["kit-model"][0].path
    assert check(path, registry=registry).name == "kit-model"


def test_plus_adds_to_a_new_registry_and_leaves_the_old_alone(registry: ComponentRegistry) -> None:
    class Mine(Dot):
        """A scorer made here."""

        name = "mine"

    more = registry.with_components([Mine], plugin="here")
    assert more.get("scorer", "here:mine").cls is Mine
    assert more.get("scorer", "dot") is registry.get("scorer", "dot")
    with pytest.raises(RegistryError, match="no scorer named 'mine'"):
        registry.get("scorer", "mine")


def test_the_shipped_specs_have_their_own_name_as_file_name(registry: ComponentRegistry) -> None:
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
    """A module that could be imported, and must not be."""
    module = f"decoy_{site.folder.parent.name}"
    marker = site.folder / "imported"
    (site.folder / f"{module}.py").write_text(f"open({str(marker)!r}, 'w').close()\nrun = print\n")
    return module


@pytest.mark.parametrize("name", FOREIGN)
def test_a_name_in_a_spec_imports_nothing_whatever_it_says(
    registry: ComponentRegistry, site: Site, decoy: str, name: str
) -> None:
    before = set(sys.modules)
    with pytest.raises(SpecError, match="no scorer named"):
        check(reversal(name.replace("DECOY", decoy)), registry=registry)
    assert set(sys.modules) == before
    assert not (site.folder / "imported").exists()


@pytest.mark.parametrize("name", FOREIGN)
def test_a_name_in_an_artifact_imports_nothing_whatever_it_says(
    registry: ComponentRegistry, site: Site, decoy: str, tmp_path: Path, name: str
) -> None:
    plugin, _, short = name.replace("DECOY", decoy).rpartition(":")
    row = {"kind": "scorer", "name": short, "version": 1, "plugin": plugin}
    row |= {"distribution": decoy, "distribution_version": "1"}
    spec = {"zoo": 1, "name": "x", "model": {"type": name.replace("DECOY", decoy)}}
    before = set(sys.modules)
    for lock in ([row], []):
        file = tmp_path / "x.safetensors"
        header = {"zoo": "1", "spec": json.dumps(spec), "lock": json.dumps(lock)}
        save_file({}, file, header)
        with pytest.raises(ArtifactError):
            load(file, registry=registry)
    assert set(sys.modules) == before
    assert not (site.folder / "imported").exists()


def test_a_spec_cannot_extend_what_is_no_spec(registry: ComponentRegistry, decoy: str) -> None:
    before = set(sys.modules)
    for name in ("os.system", "builtins:eval", "../x", decoy, f"{decoy}.py", "/etc"):
        with pytest.raises(ZooError):
            check({"extends": name, "name": "x"}, registry=registry)
    assert set(sys.modules) == before

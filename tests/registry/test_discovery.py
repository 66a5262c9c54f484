"""Plugins of every bad sort: each is recorded with its cause, and the rest works on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from plugin_kit import BROKEN, INVALID_ITEMS, Site, scorer

from zoo.errors import ZooError
from zoo.registry.component_registry import ComponentRegistry
from zoo.registry.discovery import Plugin
from zoo.spec.composition import check
from zoo.spec.spec import load_spec

SHIPPED = "bahdanau-2015", "bahdanau-reversal", "luong-2015", "sutskever-2014"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    return Site(tmp_path / "site", monkeypatch)


def plugin_of(registry: ComponentRegistry, distribution: str) -> Plugin:
    (found,) = (p for p in registry.plugins if p.distribution == distribution)
    return found


def assert_the_rest_works(registry: ComponentRegistry) -> None:
    """The zoo's own plugins have nothing to complain of, and good strangers compose."""
    own = [p for p in registry.plugins if p.distribution == "attention-zoo"]
    assert len(own) >= 10
    assert [(p.name, p.faults) for p in own if p.faults] == []
    assert plugin_of(registry, "kit-good").status == "ok"
    mixed = ["model.decoder.attention.scorer=kit-good"]
    spec = load_spec("bahdanau-reversal", overrides=mixed, registry=registry)
    assert "kit-good" in [row["distribution"] for row in spec.providers()]


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_plugin_is_recorded_with_its_cause_and_the_rest_works(
    site: Site, fault: str
) -> None:
    source, cause = BROKEN[fault]
    site.add("kit-good", scorer("kit-good"))
    site.add("Kit_Bad", source, point="bad", version="0.3")
    registry = site.registry()
    plugin = plugin_of(registry, "kit-bad")
    assert (plugin.name, plugin.version, plugin.status) == ("bad", "0.3", "faulty")
    assert cause in " ".join(plugin.faults)
    assert plugin.entries == []
    assert_the_rest_works(registry)


@pytest.mark.parametrize("fault", INVALID_ITEMS)
def test_rubbish_in_a_plugins_list_is_recorded_and_its_good_parts_stay_usable(
    site: Site, fault: str
) -> None:
    more, item, cause = INVALID_ITEMS[fault]
    site.add("kit-good", scorer("kit-good"))
    site.add("kit-half", scorer("kit-half", more + "\n", answer=f"[Plain, {item}]"))
    registry = site.registry()
    plugin = plugin_of(registry, "kit-half")
    assert plugin.status == "faulty"
    assert len(plugin.faults) == 1
    assert cause in plugin.faults[0]
    assert [entry.name for entry in plugin.entries] == ["kit-half"]
    assert registry.get("scorer", "kit-half").distribution == "kit-half"
    assert_the_rest_works(registry)


def test_all_bad_plugins_at_once_leave_every_shipped_spec_whole(site: Site) -> None:
    site.add("kit-good", scorer("kit-good"))
    site.add("gone", None)
    for name in BROKEN:
        site.add(name, BROKEN[name][0])
    registry = site.registry()
    for name in SHIPPED:
        assert check(name, registry=registry).name == name
    assert_the_rest_works(registry)
    assert sum(p.status == "faulty" for p in registry.plugins) == len(BROKEN) + 1


def test_a_cause_says_where_it_happened_and_the_traceback_is_kept(site: Site) -> None:
    module = site.add("kit-bad", "x = 1\n\nraise RuntimeError('first line\\nsecond line')")
    plugin = plugin_of(site.registry(), "kit-bad")
    assert plugin.faults == [f"RuntimeError: first line ({site.folder / module / '__init__.py'}:3)"]
    assert "second line" in plugin.trace


def test_a_plugin_whose_module_is_missing_is_recorded(site: Site) -> None:
    module = site.add("kit-gone", None)
    site.add("kit-good", scorer("kit-good"))
    registry = site.registry()
    (fault,) = plugin_of(registry, "kit-gone").faults
    assert f"No module named '{module}'" in fault
    assert_the_rest_works(registry)


@pytest.mark.parametrize(
    "entry_points",
    [
        "[zoo]\nbad = not a module!\n",
        "[zoo]\nbad = json:no.such.attribute\n",
        "[zoo]\nbad =\n",
        "[zoo]\nthis line says nothing\n",
    ],
)
def test_a_malformed_entry_point_hurts_nobody_else(site: Site, entry_points: str) -> None:
    site.declare("kit-bad", entry_points)
    site.add("kit-good", scorer("kit-good"))
    registry = site.registry()
    assert_the_rest_works(registry)
    assert plugin_of(registry, "kit-bad").faults


@pytest.mark.parametrize("file", ["METADATA", "entry_points.txt"])
def test_metadata_that_is_missing_or_no_text_hurts_nobody_else(site: Site, file: str) -> None:
    site.add("kit-good", scorer("kit-good"))
    (site.declare("kit-lacking", "[zoo]\na = kit_lacking\n") / file).unlink()
    (site.declare("kit-binary", "[zoo]\nb = kit_binary\n") / file).write_bytes(b"\xff\xfe\x00")
    assert_the_rest_works(site.registry())


def test_a_plugin_may_be_a_single_module_or_a_submodule(site: Site) -> None:
    site.add("kit-good", scorer("kit-good"))
    package = site.add("kit-package", "")
    (site.folder / package / "plugin.py").write_text(scorer("kit-inner"))
    (site.folder / f"{package}_alone.py").write_text(scorer("kit-alone"))
    site.declare("kit-sub", f"[zoo]\nsub = {package}.plugin\nalone = {package}_alone\n")
    registry = site.registry()
    assert registry.get("scorer", "sub:kit-inner").distribution == "kit-sub"
    assert registry.get("scorer", "alone:kit-alone").distribution == "kit-sub"
    assert_the_rest_works(registry)


def test_a_bare_sequence_in_a_constructor_takes_nobody_down(site: Site) -> None:
    odd = (
        "import typing\n"
        "class Other(Plain):\n    name = 'o'\n"
        "    def __init__(self, *, sizes: typing.Sequence = ()): super().__init__()\n"
    )
    site.add("kit-good", scorer("kit-good"))
    site.add("kit-odd", scorer("kit-odd", odd, answer="[Plain, Other]"))
    registry = site.registry()
    assert registry.get("scorer", "kit-odd").plugin == "kit-odd"
    assert_the_rest_works(registry)


def test_a_hook_may_go_by_another_name_when_its_marker_says_which_it_is(site: Site) -> None:
    renamed = scorer("kit-named").replace("@hookimpl", "@hookimpl(specname='zoo_components')")
    site.add("kit-named", renamed.replace("def zoo_components", "def zoo_scorers"))
    plugin = plugin_of(site.registry(), "kit-named")
    assert plugin.faults == []
    assert [entry.name for entry in plugin.entries] == ["kit-named"]


def test_what_a_plugin_prints_stays_off_stdout(
    site: Site, capfd: pytest.CaptureFixture[str]
) -> None:
    site.add(
        "kit-loud", "print('hello from import')\n" + scorer("loud", answer="print('hi') or []")
    )
    site.registry()
    out, err = capfd.readouterr()
    assert out == ""
    assert "hello from import" in err
    assert "hi" in err


def test_two_distributions_with_one_entry_point_name_both_stay_and_both_say_so(site: Site) -> None:
    site.add("kit-one", scorer("kit-of-one"), point="twin")
    site.add("kit-two", scorer("kit-of-two"), point="twin")
    registry = site.registry()
    one, two = plugin_of(registry, "kit-one"), plugin_of(registry, "kit-two")
    assert (one.status, two.status) == ("clash", "clash")
    assert "distribution kit-two" in one.conflicts[0]
    assert "distribution kit-one" in two.conflicts[0]
    assert registry.get("scorer", "twin:kit-of-one").distribution == "kit-one"
    assert registry.get("scorer", "twin:kit-of-two").distribution == "kit-two"


def test_choosing_one_of_two_twins_ends_the_clash(site: Site) -> None:
    site.add("kit-one", scorer("kit-same"), point="twin")
    site.add("kit-two", scorer("kit-same"), point="twin")
    with pytest.raises(ZooError, match=r"kit-one.*kit-two.*choose with ZOO_PLUGINS"):
        site.registry().get("scorer", "kit-same")
    registry = site.registry("kit-two")
    assert registry.get("scorer", "kit-same").distribution == "kit-two"
    assert plugin_of(registry, "kit-one").status == "off"
    assert plugin_of(registry, "kit-two").status == "ok"


def test_two_distributions_offering_one_component_both_say_so(site: Site) -> None:
    site.add("kit-one", scorer("kit-same"), point="one")
    site.add("kit-two", scorer("kit-same"), point="two")
    registry = site.registry()
    one, two = plugin_of(registry, "kit-one"), plugin_of(registry, "kit-two")
    assert (one.status, two.status) == ("clash", "clash")
    assert (
        "by plugin 'two' (distribution kit-two); specs must say 'one:kit-same'" in one.conflicts[0]
    )
    assert (
        "by plugin 'one' (distribution kit-one); specs must say 'two:kit-same'" in two.conflicts[0]
    )


@pytest.mark.parametrize(
    ("allowed", "loaded"),
    [
        (None, {"kit-one", "kit-two"}),
        ("none", set()),
        ("", set()),
        ("first", {"kit-one"}),
        ("kit-two", {"kit-two"}),
        ("Kit_Two", {"kit-two"}),
        (" first , kit-two ", {"kit-one", "kit-two"}),
        ("nobody", set()),
    ],
)
def test_zoo_plugins_allows_by_entry_point_or_distribution_and_imports_nothing_else(
    site: Site, allowed: str | None, loaded: set[str]
) -> None:
    touch = "from pathlib import Path\nPath(__file__).with_name('imported').touch()\n"
    modules = {
        "kit-one": site.add("kit-one", touch + scorer("kit-of-one"), point="first"),
        "kit-two": site.add("kit-two", touch + scorer("kit-of-two"), point="second"),
    }
    registry = site.registry(allowed)
    for distribution, module in modules.items():
        plugin, wanted = plugin_of(registry, distribution), distribution in loaded
        assert (plugin.status, len(plugin.entries)) == (("ok", 1) if wanted else ("off", 0))
        assert (module in sys.modules) == wanted
        assert (site.folder / module / "imported").exists() == wanted
    own = [p for p in registry.plugins if p.distribution == "attention-zoo"]
    assert {p.status for p in own} == {"ok"}


def test_a_distribution_found_twice_on_the_path_counts_once(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.add("kit-old", "raise RuntimeError('the shadowed one was imported')", version="1.0")
    nearer = Site(tmp_path / "nearer", monkeypatch)
    nearer.add("Kit.Old", scorer("kit-old"), version="2.0")
    plugin = plugin_of(nearer.registry(), "kit-old")
    assert (plugin.version, plugin.status, plugin.conflicts) == ("2.0", "ok", [])


def test_a_fresh_process_reads_zoo_plugins_and_keeps_its_stdout_clean(site: Site) -> None:
    site.add("kit-loud", "print('noise')\n" + scorer("kit-loud"))
    site.add("kit-off", "raise RuntimeError('imported although switched off')")
    ask = (
        "import json; from zoo.registry import Registry; "
        "print(json.dumps({p.distribution: p.status for p in ComponentRegistry.from_environment().plugins}))"
    )
    environ = {**os.environ, "PYTHONPATH": str(site.folder), "ZOO_PLUGINS": "kit-loud"}
    ran = subprocess.run(
        [sys.executable, "-c", ask], env=environ, capture_output=True, text=True, check=True
    )
    assert json.loads(ran.stdout) == {"attention-zoo": "ok", "kit-loud": "ok", "kit-off": "off"}
    assert "noise" in ran.stderr

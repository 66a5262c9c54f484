"""Discovery of plugins: problems are recorded, and all other plugins keep working."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from plugin_kit import BROKEN, COMMAND, INVALID_ITEMS, Site, command, scorer

from zoo.errors import ZooError
from zoo.registry.component_registry import ComponentRegistry
from zoo.registry.plugin_data import Plugin
from zoo.spec.spec import load_spec
from zoo.training.composing import check

SHIPPED = "bahdanau-2015", "bahdanau-reversal", "luong-2015", "sutskever-2014"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    return Site(tmp_path / "site", monkeypatch)


def plugin_of(registry: ComponentRegistry, distribution: str) -> Plugin:
    (found,) = (p for p in registry.plugins if p.distribution == distribution)
    return found


def assert_others_work(registry: ComponentRegistry) -> None:
    """Check that the zoo's own plugins have no problems, and that ``kit-good`` can be used."""
    own = [p for p in registry.plugins if p.distribution == "attention-zoo"]
    assert len(own) >= 10
    assert [(p.name, p.errors) for p in own if p.errors] == []
    assert plugin_of(registry, "kit-good").status == "ok"
    mixed = ["model.decoder.attention.scorer=kit-good"]
    spec = load_spec("bahdanau-reversal", overrides=mixed, registry=registry)
    assert "kit-good" in [row["distribution"] for row in spec.providers()]


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_plugin_is_recorded(site: Site, case: str) -> None:
    source, problem = BROKEN[case]
    site.add("kit-good", scorer("kit-good"))
    site.add("Kit_Bad", source, point="bad", version="0.3")
    registry = site.registry()
    plugin = plugin_of(registry, "kit-bad")
    assert (plugin.name, plugin.version, plugin.status) == ("bad", "0.3", "error")
    assert problem in " ".join(plugin.errors)
    assert plugin.entries == []
    assert_others_work(registry)


@pytest.mark.parametrize("case", INVALID_ITEMS)
def test_an_invalid_component_is_recorded_and_the_others_stay_usable(site: Site, case: str) -> None:
    more, item, problem = INVALID_ITEMS[case]
    site.add("kit-good", scorer("kit-good"))
    site.add("kit-half", scorer("kit-half", more + "\n", result=f"[Plain, {item}]"))
    registry = site.registry()
    plugin = plugin_of(registry, "kit-half")
    assert plugin.status == "error"
    assert len(plugin.errors) == 1
    assert problem in plugin.errors[0]
    assert [entry.name for entry in plugin.entries] == ["kit-half"]
    assert registry.get("scorer", "kit-half").distribution == "kit-half"
    assert_others_work(registry)


def test_shipped_specs_work_beside_all_broken_plugins(site: Site) -> None:
    site.add("kit-good", scorer("kit-good"))
    site.add("gone", None)
    for name in BROKEN:
        site.add(name, BROKEN[name][0])
    registry = site.registry()
    for name in SHIPPED:
        assert check(name, registry=registry).name == name
    assert_others_work(registry)
    assert sum(p.status == "error" for p in registry.plugins) == len(BROKEN) + 1


def test_a_problem_has_file_and_line_and_the_traceback_is_kept(site: Site) -> None:
    module = site.add("kit-bad", "x = 1\n\nraise RuntimeError('first line\\nsecond line')")
    plugin = plugin_of(site.registry(), "kit-bad")
    assert plugin.errors == [f"RuntimeError: first line ({site.folder / module / '__init__.py'}:3)"]
    assert "second line" in plugin.traceback


def test_a_plugin_whose_module_is_missing_is_recorded(site: Site) -> None:
    module = site.add("kit-gone", None)
    site.add("kit-good", scorer("kit-good"))
    registry = site.registry()
    (problem,) = plugin_of(registry, "kit-gone").errors
    assert f"No module named '{module}'" in problem
    assert_others_work(registry)


@pytest.mark.parametrize(
    "entry_points",
    [
        "[zoo]\nbad = not a module!\n",
        "[zoo]\nbad = json:no.such.attribute\n",
        "[zoo]\nbad =\n",
        "[zoo]\nnot a key and value\n",
    ],
)
def test_a_malformed_entry_point_does_not_affect_others(site: Site, entry_points: str) -> None:
    site.declare("kit-bad", entry_points)
    site.add("kit-good", scorer("kit-good"))
    registry = site.registry()
    assert_others_work(registry)
    assert plugin_of(registry, "kit-bad").errors


@pytest.mark.parametrize("file", ["METADATA", "entry_points.txt"])
def test_missing_or_binary_metadata_does_not_affect_others(site: Site, file: str) -> None:
    site.add("kit-good", scorer("kit-good"))
    (site.declare("kit-lacking", "[zoo]\na = kit_lacking\n") / file).unlink()
    (site.declare("kit-binary", "[zoo]\nb = kit_binary\n") / file).write_bytes(b"\xff\xfe\x00")
    assert_others_work(site.registry())


def test_a_plugin_may_be_a_single_module_or_a_submodule(site: Site) -> None:
    site.add("kit-good", scorer("kit-good"))
    package = site.add("kit-package", "")
    (site.folder / package / "plugin.py").write_text(scorer("kit-inner"))
    (site.folder / f"{package}_alone.py").write_text(scorer("kit-alone"))
    site.declare("kit-sub", f"[zoo]\nsub = {package}.plugin\nalone = {package}_alone\n")
    registry = site.registry()
    assert registry.get("scorer", "sub:kit-inner").distribution == "kit-sub"
    assert registry.get("scorer", "alone:kit-alone").distribution == "kit-sub"
    assert_others_work(registry)


def test_a_bare_sequence_in_a_constructor_does_not_affect_others(site: Site) -> None:
    odd = (
        "import typing\n"
        "class Other(Plain):\n    name = 'o'\n"
        "    def __init__(self, *, sizes: typing.Sequence = ()): super().__init__()\n"
    )
    site.add("kit-good", scorer("kit-good"))
    site.add("kit-odd", scorer("kit-odd", odd, result="[Plain, Other]"))
    registry = site.registry()
    assert registry.get("scorer", "kit-odd").plugin == "kit-odd"
    assert_others_work(registry)


def test_a_hook_function_may_have_another_name_with_specname(site: Site) -> None:
    renamed = scorer("kit-named").replace("@hookimpl", "@hookimpl(specname='zoo_components')")
    site.add("kit-named", renamed.replace("def zoo_components", "def zoo_scorers"))
    plugin = plugin_of(site.registry(), "kit-named")
    assert plugin.errors == []
    assert [entry.name for entry in plugin.entries] == ["kit-named"]


def test_output_of_a_plugin_goes_to_stderr(site: Site, capfd: pytest.CaptureFixture[str]) -> None:
    site.add("kit-loud", "print('imported')\n" + scorer("loud", result="print('hi') or []"))
    site.registry()
    out, err = capfd.readouterr()
    assert out == ""
    assert "imported" in err
    assert "hi" in err


def test_two_distributions_with_one_entry_point_name_conflict(site: Site) -> None:
    site.add("kit-one", scorer("kit-of-one"), point="twin")
    site.add("kit-two", scorer("kit-of-two"), point="twin")
    registry = site.registry()
    one, two = plugin_of(registry, "kit-one"), plugin_of(registry, "kit-two")
    assert (one.status, two.status) == ("conflict", "conflict")
    assert "distribution kit-two" in one.conflicts[0]
    assert "distribution kit-one" in two.conflicts[0]
    assert registry.get("scorer", "twin:kit-of-one").distribution == "kit-one"
    assert registry.get("scorer", "twin:kit-of-two").distribution == "kit-two"


def test_selecting_one_of_two_conflicting_plugins(site: Site) -> None:
    site.add("kit-one", scorer("kit-same"), point="twin")
    site.add("kit-two", scorer("kit-same"), point="twin")
    with pytest.raises(ZooError, match=r"kit-one.*kit-two.*ZOO_PLUGINS"):
        site.registry().get("scorer", "kit-same")
    registry = site.registry("kit-two")
    assert registry.get("scorer", "kit-same").distribution == "kit-two"
    assert plugin_of(registry, "kit-one").status == "off"
    assert plugin_of(registry, "kit-two").status == "ok"


def test_two_distributions_with_one_component_name_conflict(site: Site) -> None:
    site.add("kit-one", scorer("kit-same"), point="one")
    site.add("kit-two", scorer("kit-same"), point="two")
    registry = site.registry()
    one, two = plugin_of(registry, "kit-one"), plugin_of(registry, "kit-two")
    assert (one.status, two.status) == ("conflict", "conflict")
    assert (
        "by plugin 'two' (distribution kit-two); specs must write 'one:kit-same'"
        in one.conflicts[0]
    )
    assert (
        "by plugin 'one' (distribution kit-one); specs must write 'two:kit-same'"
        in two.conflicts[0]
    )


@pytest.mark.parametrize(
    ("enabled", "loaded"),
    [
        (None, {"kit-one", "kit-two"}),
        ("none", set()),
        ("", set()),
        ("first", {"kit-one"}),
        ("kit-two", {"kit-two"}),
        ("Kit_Two", {"kit-two"}),
        (" first , kit-two ", {"kit-one", "kit-two"}),
        ("no-such-plugin", set()),
    ],
)
def test_zoo_plugins_enables_by_entry_point_or_distribution(
    site: Site, enabled: str | None, loaded: set[str]
) -> None:
    touch = "from pathlib import Path\nPath(__file__).with_name('imported').touch()\n"
    modules = {
        "kit-one": site.add("kit-one", touch + scorer("kit-of-one"), point="first"),
        "kit-two": site.add("kit-two", touch + scorer("kit-of-two"), point="second"),
    }
    registry = site.registry(enabled)
    for distribution, module in modules.items():
        plugin, expected = plugin_of(registry, distribution), distribution in loaded
        assert (plugin.status, len(plugin.entries)) == (("ok", 1) if expected else ("off", 0))
        assert (module in sys.modules) == expected
        assert (site.folder / module / "imported").exists() == expected
    own = [p for p in registry.plugins if p.distribution == "attention-zoo"]
    assert {p.status for p in own} == {"ok"}


def test_the_first_distribution_of_a_name_on_the_path_is_used(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.add("kit-old", "raise RuntimeError('the hidden distribution was imported')", version="1.0")
    nearer = Site(tmp_path / "nearer", monkeypatch)
    nearer.add("Kit.Old", scorer("kit-old"), version="2.0")
    plugin = plugin_of(nearer.registry(), "kit-old")
    assert (plugin.version, plugin.status, plugin.conflicts) == ("2.0", "ok", [])


def test_a_new_process_reads_zoo_plugins_and_keeps_stdout_clean(site: Site) -> None:
    site.add("kit-loud", "print('noise')\n" + scorer("kit-loud"))
    site.add("kit-off", "raise RuntimeError('imported although disabled')")
    code = (
        "import json; from zoo.registry.component_registry import ComponentRegistry; "
        "plugins = ComponentRegistry.from_environment().plugins; "
        "print(json.dumps({p.distribution: p.status for p in plugins}))"
    )
    path = os.pathsep.join([str(site.folder), os.environ.get("PYTHONPATH", "")])
    environ = {**os.environ, "PYTHONPATH": path, "ZOO_PLUGINS": "kit-loud"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == {"attention-zoo": "ok", "kit-loud": "ok", "kit-off": "off"}
    assert "noise" in done.stderr


COMMANDS = {
    "not-a-command": ("['hello']", "'hello' is not a zoo.command.Command"),
    "not-a-list": ("Command('a', 'm:f', 'Help.')", "not a list of commands"),
    "capital-name": ("[Command('Hello', 'm:f', 'Help.')]", "'Hello'"),
    "option-name": ("[Command('--json', 'm:f', 'Help.')]", "'--json'"),
    "no-function": ("[Command('hello', 'm', 'Help.')]", "'module:function'"),
    "no-help": ("[Command('hello', 'm:f', ' ')]", "'hello' has no help"),
    "number": ("[Command('hello', 7, 'Help.')]", "'hello': target is not a string"),
}


@pytest.mark.parametrize("case", COMMANDS)
def test_an_invalid_command_is_recorded(site: Site, case: str) -> None:
    result, problem = COMMANDS[case]
    site.add("kit-bad", COMMAND.format(result=result))
    plugin = plugin_of(site.registry(), "kit-bad")
    assert plugin.commands == []
    assert len(plugin.errors) == 1
    assert problem in plugin.errors[0]


def test_commands_are_recorded_without_importing_their_target(site: Site) -> None:
    site.add("kit-hello", command("hello", "no_such_module:run"))
    plugin = plugin_of(site.registry(), "kit-hello")
    assert plugin.status == "ok"
    assert [c.target for c in plugin.commands] == ["no_such_module:run"]

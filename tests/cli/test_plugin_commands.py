"""Commands of plugins: listed, run, and reported if they are broken or their name is taken."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from cli_kit import Shell, age
from plugin_kit import COMMAND, Site, command
from typer.testing import CliRunner

from zoo.cli.main import app
from zoo.errors import ZooError

GREET = '''
import logging, sys, warnings
from typing import Annotated
import typer

def greet(name: Annotated[str, typer.Argument(help="Whom to greet.")], loud: bool = False) -> None:
    """Print a greeting for a name."""
    print(f"hello {name.upper() if loud else name}")

def report() -> None:
    """Log and warn at every level."""
    from zoo import ZooWarning
    log = logging.getLogger("zoo.kit")
    log.debug("a detail")
    log.info("a step")
    warnings.warn("a risk", ZooWarning)
    log.error("a failure")
    print("done")

def invalid(value: "Nowhere") -> None:
    """Has a parameter of an unknown type."""
'''


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("ZOO_PLUGINS", raising=False)
    monkeypatch.delitem(sys.modules, "kit_greet", raising=False)
    site = Site(tmp_path / "site", monkeypatch)
    (site.folder / "kit_greet.py").write_text(GREET)
    return site


def run(*arguments: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, list(arguments))
    assert done.exit_code == code, done.output
    return done.output


def plugins() -> dict[str, dict[str, object]]:
    return {row["distribution"]: row for row in json.loads(run("plugins", "--json"))}


def test_a_command_is_listed_with_its_plugin_and_runs(site: Site) -> None:
    site.add("kit-hello", command("hello", "kit_greet:greet"), point="hello-plugin")
    text = run("--help")
    assert "Plugin hello-plugin" in text
    assert "Print a greeting." in text
    assert "Print a greeting for a name." in run("hello", "--help")
    assert run("hello", "world") == "hello world\n"
    assert run("hello", "world", "--loud", "-q") == "hello WORLD\n"
    run("hello", "--no-such-option", code=2)
    assert plugins()["kit-hello"]["commands"] == ["hello"]
    assert "command hello" in run("plugins")


def test_an_unknown_command_suggests_commands_of_plugins(site: Site) -> None:
    site.add("kit-hello", command("hello", "kit_greet:greet"))
    assert "'hello'" in run("helo", code=2)


@pytest.mark.parametrize("name", ["list", "vectors", "test-plugin"])
def test_a_name_in_use_is_reported_and_not_replaced(site: Site, name: str) -> None:
    site.add("kit-other", command(name, "kit_greet:greet"), point="aaa")
    row = plugins()["kit-other"]
    assert row["status"] == "conflict"
    assert row["commands"] == []
    assert f"command '{name}'" in row["conflicts"][0]
    assert "Print a greeting" not in run(name, "--help")


def test_the_first_of_two_plugins_with_one_command_has_it(site: Site) -> None:
    site.add("kit-one", command("hello", "kit_greet:greet"))
    site.add("kit-two", command("hello", "kit_greet:report"))
    assert plugins()["kit-one"]["commands"] == ["hello"]
    assert "plugin 'kit-one'" in plugins()["kit-two"]["conflicts"][0]
    assert run("hello", "world") == "hello world\n"


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        ("kit_no_such_module:run", "No module named 'kit_no_such_module'"),
        ("kit_greet:no_such_function", "no_such_function"),
        ("kit_greet:typer", "typer"),
        ("kit_greet:invalid", "Nowhere"),
    ],
)
def test_a_broken_command_is_reported_and_the_rest_works(
    site: Site, target: str, problem: str
) -> None:
    site.add("kit-bad", command("broken", target))
    row = plugins()["kit-bad"]
    assert row["status"] == "error"
    assert "command 'broken'" in row["errors"][0]
    assert problem in row["errors"][0]
    assert "Traceback" in run("plugins", "--verbose")
    assert "broken" in run("--help")
    assert "additive" in run("list", "--kind", "scorer")
    failed = CliRunner().invoke(app, ["broken"])
    assert isinstance(failed.exception, ZooError)
    assert problem in str(failed.exception)


@pytest.fixture
def shell(site: Site, tmp_path: Path) -> Shell:
    """A shell in which the commands ``hello`` and ``report`` are installed and indexed."""
    result = (
        "[Command('hello', 'kit_greet:greet', 'Print a greeting.'),"
        " Command('report', 'kit_greet:report', 'Log and warn.')]"
    )
    site.add("kit-hello", COMMAND.format(result=result))
    age(site.folder)
    shell = Shell(tmp_path, site.folder)
    shell.run("--help")
    return shell


def test_verbosity_and_imports_of_a_command(shell: Shell) -> None:
    result = shell.run("hello", "world")
    assert result.stdout == "hello world\n"
    assert not result.modules & {"torch", "zoo.cli.index.build"}
    default = ["warning: a risk", "error: a failure"]
    for options, expected in (
        (["report"], default),
        (["-v", "report"], ["info: a step", *default]),
        (["report", "--verbose"], ["info: a step", *default]),
        (["-q", "report"], ["error: a failure"]),
        (["report", "--quiet"], ["error: a failure"]),
    ):
        result = shell.run(*options)
        assert result.stdout == "done\n"
        assert result.stderr.splitlines() == expected, options
    assert "cannot be combined" in shell.run("-q", "-v", "report", code=2).stderr

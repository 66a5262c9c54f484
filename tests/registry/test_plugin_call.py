"""Plugin code that exits or interrupts is reported; a signal of the user ends the program."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FrameType
from typing import Any, ClassVar

import pytest
import torch
from artifact_kit import REGISTRY, TIED, Tied
from plugin_kit import COMMAND, Site

from zoo.errors import SpecError
from zoo.registry.plugin_call import PluginCall, PluginExit
from zoo.training.composing import check

ENDINGS = {"exit": SystemExit(3), "interrupt": KeyboardInterrupt("stop")}


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """Handlers that raise, as in a program; they must be the same after each test."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise SystemExit("stopped")

    before = {
        signal.SIGINT: signal.signal(signal.SIGINT, signal.default_int_handler),
        signal.SIGTERM: signal.signal(signal.SIGTERM, stop),
    }
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.getsignal(signal.SIGTERM) is stop
    for number, handler in before.items():
        signal.signal(number, handler)


def call(ending: BaseException) -> None:
    with PluginCall():
        raise ending


@pytest.mark.parametrize("ending", ENDINGS)
def test_plugin_code_does_not_end_the_program(ending: str) -> None:
    with pytest.raises(PluginExit, match=type(ENDINGS[ending]).__name__) as caught:
        call(ENDINGS[ending])
    assert caught.value.__cause__ is ENDINGS[ending]


@pytest.mark.parametrize("ending", ENDINGS)
def test_plugin_code_in_another_thread_does_not_end_the_program(ending: str) -> None:
    with ThreadPoolExecutor(1) as pool:
        error = pool.submit(call, ENDINGS[ending]).exception()
    assert isinstance(error, PluginExit)


@pytest.mark.parametrize(
    ("number", "expected"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)]
)
def test_signal_ends_the_program(number: signal.Signals, expected: type[BaseException]) -> None:
    with pytest.raises(expected), PluginCall(), PluginCall():
        signal.raise_signal(number)


def test_exit_of_a_plugin_that_handles_a_signal_ends_the_program() -> None:
    def clean_up() -> None:
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            sys.exit("cleaned up")

    with pytest.raises(SystemExit, match="cleaned up"), PluginCall():
        clean_up()


def test_signals_before_a_call_inside_of_another_do_not_count() -> None:
    with PluginCall():
        with pytest.raises(KeyboardInterrupt), PluginCall():
            signal.raise_signal(signal.SIGINT)
        with pytest.raises(PluginExit, match="SystemExit"):
            call(ENDINGS["exit"])


def test_errors_are_unchanged() -> None:
    with pytest.raises(ValueError, match="wrong"):
        call(ValueError("wrong"))


class Ending(Tied):
    """Ends the program where `where` says."""

    name: ClassVar[str] = "kit-ending"

    def __init__(self, *, where: str = "build", ending: str = "exit") -> None:
        super().__init__()
        self.where, self.ending = where, ending
        self.end("build")

    def end(self, where: str) -> None:
        if where == self.where:
            raise ENDINGS[self.ending]

    def forward(self, batch: Any) -> Any:
        self.end("forward")
        return super().forward(batch)

    def example(self, *arguments: Any) -> dict[str, torch.Tensor]:
        self.end("example")
        return super().example(*arguments)


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("where", ["build", "forward", "example"])
def test_component_that_ends_the_program_is_a_problem_of_the_spec(where: str, ending: str) -> None:
    registry = REGISTRY.with_components([Ending], plugin="kit")
    model = {"type": "kit-ending", "where": where, "ending": ending}
    with pytest.raises(SpecError, match=type(ENDINGS[ending]).__name__):
        check({**TIED, "model": model}, registry=registry)


@pytest.mark.slow
@pytest.mark.parametrize(
    "ending", [pytest.param("SystemExit(3)", marks=pytest.mark.slow), "KeyboardInterrupt"]
)
def test_command_that_ends_the_program_cannot_be_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    site = Site(tmp_path / "site", monkeypatch)
    (site.folder / "kit_ending.py").write_text(f"raise {ending}")
    monkeypatch.delitem(sys.modules, "kit_ending", raising=False)
    site.add("kit-commands", COMMAND.format(result="[Command('end', 'kit_ending:end', 'End.')]"))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    environment |= {"ZOO_PLUGINS": "kit-commands", "XDG_CACHE_HOME": str(tmp_path / "cache")}

    def zoo(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "zoo", *arguments],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    name = ending.partition("(")[0]
    listed = zoo("plugins")
    assert listed.returncode == 0
    assert f"cannot be loaded: {name}" in " ".join(listed.stdout.split())
    ran = zoo("end")
    assert ran.returncode == 1
    assert f"command 'end' of plugin 'kit-commands' cannot be loaded: {name}" in ran.stderr


def test_interrupt_of_the_user_while_a_plugin_is_imported_ends_the_command(tmp_path: Path) -> None:
    site, started = tmp_path / "site", tmp_path / "started"
    os.mkfifo(started)
    info = site / "kit_slow-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: kit-slow\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[zoo]\nslow = kit_slow\n")
    (site / "kit_slow.py").write_text(
        f"import time\nopen({str(started)!r}, 'w').close()\ntime.sleep(100)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(site), *sys.path])}
    environment |= {"ZOO_PLUGINS": "kit-slow", "XDG_CACHE_HOME": str(tmp_path / "cache")}
    with subprocess.Popen(
        [sys.executable, "-m", "zoo", "plugins"], env=environment, stderr=subprocess.PIPE, text=True
    ) as process:
        started.read_text()  # waits until the plugin is imported
        process.send_signal(signal.SIGINT)
        assert process.communicate()[1].endswith("interrupted\n")
        assert process.returncode == 130

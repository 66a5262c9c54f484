"""Progress is shown on terminals only, not with --quiet, and its control codes are not escaped."""

import io
import sys

import pytest

from zoo.cli.progress import activity, task_progress
from zoo.cli.terminal import EscapingStream
from zoo.cli.verbosity import reset_verbosity, set_verbosity, shows_progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    screen = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    yield screen
    reset_verbosity()


def _run(monkeypatch, stream):
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", EscapingStream(stream))
        with activity("reading"):
            pass
        with task_progress() as progress:
            if progress is not None:
                progress("steps", 1, 3)
                print("a\x1b[2Jmessage", file=sys.stderr)
    return stream.getvalue()


def test_bars_and_spinners_on_a_terminal(terminal, monkeypatch):
    text = _run(monkeypatch, terminal)
    assert "reading" in text
    assert "1/3" in text
    assert "\x1b[2K" in text
    assert "\\u001b" not in text
    assert "message" in text
    assert "\x1b[2J" not in text


def test_quiet_pipes_and_dumb_terminals_show_nothing(terminal, monkeypatch):
    assert _run(monkeypatch, io.StringIO()) == ""
    set_verbosity(verbose=False, quiet=True)
    assert _run(monkeypatch, terminal) == ""
    reset_verbosity()
    monkeypatch.setenv("TERM", "dumb")
    assert _run(monkeypatch, terminal) == ""
    monkeypatch.setattr(sys, "stderr", terminal)
    assert not shows_progress()

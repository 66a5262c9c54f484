"""Tables fit a terminal of 80 columns; in a pipe, a row is a line without padding."""

import contextlib
import io
import json
import re

import pytest
from typer.testing import CliRunner

from zoo.cli.main import app
from zoo.cli.output import print_rows


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    """A terminal of 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return Terminal()


def _run(*arguments):
    done = CliRunner().invoke(app, list(arguments))
    assert done.exit_code == 0, done.output
    return done.stdout


def _on(terminal, *arguments):
    """Return what a command prints on a terminal, without styles."""
    with contextlib.redirect_stdout(terminal):
        assert not app(list(arguments), standalone_mode=False)
    return re.sub(r"\x1b\[[0-9;]*m", "", terminal.getvalue())


def _print(terminal, *arguments, **options):
    with contextlib.redirect_stdout(terminal):
        print_rows(*arguments, **options)
    return re.sub(r"\x1b\[[0-9;]*m", "", terminal.getvalue()).splitlines()


LISTINGS = {
    "list": ("name", "summary"),
    "list --kind acceleration": ("name", "serves", "summary"),
    "list --specs": ("name", "description"),
    "list --maps": ("name",),
    "list --importers": ("name", "summary"),
    "catalogue": ("name", "paper"),
    "plugins": ("name", "distribution"),
    "bench --list": ("name", "summary"),
    "reproduce --list": ("name", "targets"),
}


@pytest.mark.parametrize("line", LISTINGS)
def test_a_listing_fits_80_columns_and_cuts_no_word(line, terminal):
    text = _on(terminal, *line.split())
    assert len(text.splitlines()) > 2
    words = set(text.split())
    assert [each for each in text.splitlines() if len(each.rstrip()) > 80] == []
    option = ["--json", "-"] if line.startswith("bench") else ["--json"]
    for row in json.loads(_run(*line.split(), *option)):
        missing = [word for key in LISTINGS[line] for word in row[key].split() if word not in words]
        assert missing == [], row["name"]


@pytest.mark.parametrize("name", ["additive", "transformer", "classifier", "train", "gru"])
def test_the_documentation_of_a_component_fits_80_columns(name, terminal):
    text = _on(terminal, "show", name)
    assert [line for line in text.splitlines() if len(line.rstrip()) > 80] == []


@pytest.mark.parametrize("line", ["list", "list --specs", "catalogue", "plugins"])
def test_a_pipe_gets_a_line_for_each_row_without_padding_and_styles(line):
    text = _run(*line.split())
    assert len(text.splitlines()) == 1 + len(json.loads(_run(*line.split(), "--json")))
    assert all(each == each.rstrip() for each in text.splitlines())
    assert "\x1b" not in text
    assert "\t" not in text


def test_a_wide_column_is_printed_below_its_row(terminal):
    rows = [("a-name-of-twenty-six-chars", "kind" * 8, "some words " * 9 + "the end")]
    lines = _print(terminal, ("name", "kind", "summary"), rows, no_wrap=("name", "kind"))
    assert lines[0].split() == ["name", "kind"]
    assert lines[1] == f"{rows[0][0]}  {rows[0][1]}"
    assert lines[2].startswith("    some words")
    assert lines[-1].endswith("the end")


def test_a_column_gets_the_width_that_others_leave(terminal):
    lines = _print(terminal, ("name", "text"), [("short", "word " * 40)], no_wrap=("name",))
    assert lines[1].rstrip().endswith("word")
    assert 74 <= len(lines[1].rstrip()) <= 80


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_output_is_plain_without_colours(terminal, monkeypatch, name, value):
    _on(terminal, "list", "--kind", "scorer")
    assert "\x1b" in terminal.getvalue()
    monkeypatch.setenv(name, value)
    plain = Terminal()
    _on(plain, "list", "--kind", "scorer")
    assert "\x1b" not in plain.getvalue()

"""Hostile text, and the check that a command prints it escaped."""

import copy
import re
import sys

import pytest

from zoo.cli.main import main

HOSTILE = "\x1b]0;title\x07\x1b[2J\r\nforged: ok\x9b31m\x7f\u202e\u2066[red]text[/red]"
CONTROL = re.compile(r"[^\t\n\x20-\x7e\xa0-\u2027\u202f-\u2065\u206a-\ud7ff\ue000-\U000dffff]")


def assert_clean(text):
    found = CONTROL.search(text)
    assert not found, ascii(text[max(0, found.start() - 200) : found.end() + 50])
    assert "\nforged" not in text


def run_clean(capsys, monkeypatch, *arguments, multiline=False):
    """Run a command in this process and return its output, which must be clean."""
    monkeypatch.setattr(sys, "argv", ["zoo", *map(str, arguments)])
    with pytest.raises(SystemExit):
        main()
    output = "".join(capsys.readouterr())
    assert_clean(output.replace("\nforged", "") if multiline else output)
    return output


def string_variants(data):
    """Yield copies of the data, each with hostile text in one string or key."""
    stack = [()]
    while stack:
        path = stack.pop()
        node = data
        for key in path:
            node = node[key]
        if isinstance(node, dict):
            stack.extend((*path, key) for key in node)
            yield _with(data, path, lambda node: {**node, HOSTILE: HOSTILE})
        elif isinstance(node, list):
            stack.extend((*path, index) for index in range(len(node)))
        elif isinstance(node, str):
            yield _with(data, path, lambda text: f"{text}{HOSTILE}")


def _with(data, path, change):
    copied = {"root": copy.deepcopy(data)}
    node = copied
    for key in (steps := ["root", *path])[:-1]:
        node = node[key]
    node[steps[-1]] = change(node[steps[-1]])
    return copied["root"]

"""The demo with shipped weights, and its training: over 95 % of unseen sequences are reversed in
under 60 seconds, with every scorer."""

import re
import shlex
import subprocess
import sys

import pytest

from zoo.errors import ZooError
from zoo.hub.models import find
from zoo_demo.models import READER, TRANSLATORS

SCORERS = ["additive", "dot", "general", "concat", "scaled-dot"]


@pytest.mark.slow
@pytest.mark.parametrize("scorer", SCORERS)
def test_the_demo_reaches_its_accuracy(scorer, tmp_path):
    override = f"model.decoder.attention.scorer={scorer}"
    done = subprocess.run(
        [sys.executable, "-m", "zoo", "demo", "--train", "--set", override],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    share, seconds = re.search(
        r"([\d.]+)% of 500 unseen sequences.*?in (\d+) s", done.stdout, re.S
    ).groups()
    assert float(share) > 95
    assert int(seconds) < 60
    assert "identical logits" in " ".join(done.stdout.split())  # long lines are wrapped


def _zoo(folder, *arguments):
    command = [sys.executable, "-m", "zoo", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_demo_of_shipped_models(tmp_path):
    """It translates, recognises the digits, and ends with commands that work."""
    try:
        for name in (READER, *TRANSLATORS.values()):
            find(name)
    except ZooError as error:
        pytest.skip(str(error))
    text = _zoo(tmp_path, "demo")
    (row,) = re.findall(r"^Onde fica a estação\?.*", text, re.M)
    assert row.lower().count("station") == 2
    correct = re.search(r"^(\d+) of 10 digits recognised correctly", text, re.M)[1]
    assert int(correct) >= 9
    assert "the reloaded model computes the same translations and scores" in text
    commands = [shlex.split(line) for line in text.partition("Next\n")[2].splitlines() if line]
    assert len(commands) == 6
    for _, *arguments in commands[1:-1]:
        _zoo(tmp_path, *arguments)
    _zoo(tmp_path, *commands[-1][1:], "--steps", "1")

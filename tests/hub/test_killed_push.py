"""A push that is killed leaves no files after the next push."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hub_kit import NAME, environment, list_files
from hub_server import TOKEN, Hub, Response

PUSHES = {
    "saved model": "zoo.push({saved!r}, {name!r})",
    "model": "zoo.push(zoo.compose('bahdanau-reversal'), {name!r})",
}
FAULTS = {"upload": ("/upload/", "cdn"), "commit": ("/commit/", "hub")}


def stall(answer: Response) -> Response:
    return replace(answer, cut=0, end="stall")


@pytest.mark.parametrize(("what", "where"), [("saved model", "upload"), ("model", "commit")])
def test_next_push_removes_the_files_of_a_killed_one(
    hub: Hub, saved: Path, tmp_path: Path, what: str, where: str
) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    pattern, port = FAULTS[where]
    code = "import zoo; " + PUSHES[what].format(saved=str(saved), name=NAME)
    env = environment(hub, tmp_path / "home", HF_TOKEN=TOKEN, TMPDIR=str(temporary))
    hub.fault(pattern, stall, port=port)
    with subprocess.Popen([sys.executable, "-c", code], env=env, stderr=subprocess.PIPE) as process:
        deadline = time.monotonic() + 120
        while not hub.requests_to(pattern, port):
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
    assert os.listdir(temporary) != []
    hub.faults.clear()
    subprocess.run([sys.executable, "-c", code], env=env, check=True)
    assert list_files(temporary) == {}
    assert os.listdir(temporary) == []

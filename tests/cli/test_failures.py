"""Errors of the command line: one message, exit code 1, no traceback."""

import os
import signal
import subprocess
import sys
import time

import pytest

ZOO = [sys.executable, "-m", "zoo"]


def run(*arguments, **options):
    return subprocess.run(
        [*ZOO, *map(str, arguments)], capture_output=True, text=True, timeout=120, **options
    )


def test_the_installed_command_and_the_module_print_the_same():
    script = os.path.join(os.path.dirname(sys.executable), "zoo")
    by_command = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
    assert by_command.stdout == run("--version").stdout


@pytest.mark.parametrize(
    "verb",
    [
        "list --json",
        pytest.param("schema", marks=pytest.mark.slow),
        pytest.param("check bahdanau-reversal", marks=pytest.mark.slow),
    ],
)
def test_a_closed_pipe_is_not_an_error(verb, shell):
    command = f"{sys.executable} -m zoo {verb} | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=shell.env)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_full_disk_is_reported_in_one_line(shell):
    command = f"{sys.executable} -m zoo list > /dev/full"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=shell.env)
    assert (done.returncode, done.stderr) == (1, "no space left on device\n")


@pytest.mark.slow
def test_a_command_works_with_closed_streams(tmp_path):
    model = tmp_path / "m.safetensors"
    command = f"{sys.executable} -m zoo compose bahdanau-reversal -o {model} <&- >&- 2>&-"
    assert subprocess.run(["bash", "-c", command]).returncode == 0
    assert run("info", model).stdout.startswith(f"{model}: 23 tensors")


@pytest.mark.slow
def test_ctrl_c_in_the_demo_leaves_no_files(tmp_path):
    demo = subprocess.Popen(
        [*ZOO, "demo", "--train"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    time.sleep(8)
    demo.send_signal(signal.SIGINT)
    _, errors = demo.communicate(timeout=30)
    assert (demo.returncode, errors) == (130, "interrupted\n")
    assert not list(tmp_path.iterdir())

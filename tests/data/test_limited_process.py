"""Functions run in processes that end at a limit, with Ctrl-C and with the program."""

import signal
import subprocess
import sys
import time

import psutil
import pytest
from template_kit import HOSTILE

from zoo.data.limited_process import LimitedFunction
from zoo.errors import ZooError

RENDERER = ("zoo.data.template_sandbox:Renderer", ("jinja2", "markupsafe"))
ENDLESS = HOSTILE["key of shared tuples"]


def _text(function, template):
    return function({"template": template, "variables": {}})


@pytest.fixture
def started():
    """Return a function that returns the processes that the test has started."""
    before = psutil.Process().children()
    return lambda: [child for child in psutil.Process().children() if child not in before]


def test_a_process_is_kept_and_ends_with_the_function(started, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "secret")
    function = LimitedFunction(*RENDERER)
    assert [_text(function, f"{{{{ {i} }}}}") for i in range(3)] == ["0", "1", "2"]
    [process] = started()
    assert "HF_TOKEN" not in process.environ()
    del function
    assert not process.is_running()


def test_a_call_over_a_limit_ends_its_process_and_the_next_call_starts_another_one(started):
    function = LimitedFunction(*RENDERER, max_seconds=0.5)
    with pytest.raises(ZooError, match=r"^takes longer than 0\.5 seconds$"):
        _text(function, ENDLESS)
    assert started() == []
    assert _text(function, "{{ 1 }}") == "1"
    [process] = started()
    process.kill()
    process.wait()
    assert _text(function, "{{ 2 }}") == "2"


def test_a_crash_and_a_long_result_are_errors():
    function = LimitedFunction(*RENDERER, max_seconds=60)
    with pytest.raises(ZooError, match=r"^crashes \(exit code|recursion depth"):
        _text(function, HOSTILE["crash"])
    with pytest.raises(ZooError, match=r"^returns more than 8,000,4.. bytes$"):
        _text(function, "{{ 'a' * 8000500 }}")


@pytest.mark.parametrize("size", [0, 1_000_000])
def test_the_limits_of_time_and_memory_depend_on_the_size_of_the_arguments(size):
    variables = {"x": "a" * size}
    with pytest.raises(ZooError, match=rf"takes longer than {0.2 + size / 10**6} seconds"):
        LimitedFunction(*RENDERER, max_seconds=0.2)({"template": ENDLESS, "variables": variables})
    if sys.platform == "linux":  # the memory is not limited elsewhere
        arguments = {"template": "{{ 'a' * 999999999 }}", "variables": variables}
        with pytest.raises(ZooError, match=f"takes more than {200 + 16 * size // 10**6} MB of mem"):
            LimitedFunction(*RENDERER)(arguments)


START = f"""
import os, sys, time
from zoo.data.limited_process import LimitedFunction

def render(template, **options):
    return function({{"template": template, "variables": {{}}}})

function = LimitedFunction(*{RENDERER!r}, max_seconds=float(sys.argv[1]))
"""
FORK = """
os.close(0)
parts = [render("{{ 1 }}")]
reader, writer = os.pipe()
if os.fork() == 0:
    os.write(writer, render("{{ 2 }}").encode())
    sys.exit()
parts.append(os.read(reader, 9).decode())
os.wait()
print(*parts, render("{{ 3 }}"))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="without fork")
def test_a_fork_has_a_process_of_its_own_and_standard_input_may_be_closed():
    command = [sys.executable, "-W", "error", "-c", START + FORK, "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == ("1 2 3\n", "")


@pytest.mark.skipif(sys.platform == "win32", reason="without signals")
@pytest.mark.parametrize(
    ("number", "template", "seconds"),
    [(signal.SIGINT, ENDLESS, 600), (signal.SIGKILL, ENDLESS, 2), (signal.SIGKILL, "", 600)],
)
def test_no_process_outlives_the_program(number, template, seconds):
    script = f"{START}render({template!r})\ntime.sleep(600)"
    command = [sys.executable, "-c", script, str(seconds)]
    program = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while not (found := psutil.Process(program.pid).children()):
        time.sleep(0.01)
    while template and found[0].cpu_times().user < 0.3:
        time.sleep(0.01)
    program.send_signal(number)
    _, error = program.communicate(timeout=60)
    assert error.count("Traceback") == (number == signal.SIGINT)
    assert psutil.wait_procs(found, timeout=60)[1] == []

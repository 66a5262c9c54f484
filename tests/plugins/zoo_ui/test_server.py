"""The server process: its address, its port, and its end."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest
from ui_kit import UiServer

import zoo_ui


def _zoo_ui(*arguments):
    command = [sys.executable, "-m", "zoo", "ui", "--no-browser", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_it_listens_on_the_loopback_interface_only(server):
    with socket.socket() as other:
        other.settimeout(2)
        address = socket.gethostbyname(socket.gethostname())
        if address.startswith("127."):
            pytest.skip("this machine has no other address")
        with pytest.raises(OSError, match=r"refused|timed out"):
            other.connect((address, server.port))


def test_a_port_in_use_is_an_error_without_a_traceback(server):
    result = _zoo_ui("--port", str(server.port))
    assert result.returncode == 1
    assert result.stderr == (
        f"port {server.port} of 127.0.0.1 cannot be used: address already in use; choose another "
        "one with --port, or --port 0 for a free one\n"
    )


def test_an_unknown_target_is_an_error_with_a_suggestion():
    result = _zoo_ui("bahdanau-2016")
    assert result.returncode == 1
    assert "no file, spec or model named 'bahdanau-2016'; did you mean 'bahdanau-2015'?" in (
        result.stderr
    )


def test_the_address_names_the_target_and_ctrl_c_ends_the_server_and_its_processes():
    server = UiServer("bahdanau-2015")
    assert server.address.endswith("#/build?spec=bahdanau-2015")
    assert server.hint == "Ctrl-C ends the server.\n"
    workers = _children(server.process.pid)
    code, output, errors = server.interrupt()
    assert (code, output, errors) == (0, "ended\n", "")
    assert [pid for pid in workers if _is_running(pid)] == []


def test_it_starts_without_importing_torch():
    code = "import sys, zoo_ui.server; print('torch' in sys.modules)"
    command = [sys.executable, "-c", code]
    assert subprocess.run(command, capture_output=True, text=True).stdout == "False\n"


def test_the_files_of_the_page_have_at_most_150_kb_beside_katex():
    static = Path(zoo_ui.__file__).parent / "static"
    files = [path for path in static.rglob("*") if path.is_file() and "katex" not in path.parts]
    assert sum(path.stat().st_size for path in files) <= 150_000


def _children(pid):
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True)
    return found.stdout.split()


def _is_running(pid):
    return subprocess.run(["ps", "-p", pid], capture_output=True).returncode == 0

"""What a person sees when something is wrong: plain words, exit code 1, no traceback."""

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


def test_many_faulty_files_in_one_go_never_print_a_traceback(tmp_path):
    """One process per file costs seconds of importing torch, so a script runs them all."""
    files = {
        "tab.yaml": b"zoo: 1\nmodel:\n\ttype: seq2seq\n",
        "latin.yaml": "zoo: 1\nname: caf\xe9\n".encode("latin-1"),
        "empty.yaml": b"",
        "tag.yaml": b"zoo: !!python/object/apply:os.system ['true']\n",
        "deep.yaml": b"zoo: " + b"[" * 10_000,
        "big.yaml": b"# " + b"x" * 50_000_000,
        "list.yaml": b"- 1\n- 2\n",
        "unknown.yaml": b"zoo: 1\nname: x\nmodle: {type: seq2seq}\n",
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    script = (
        "import sys\nfrom zoo.cli.main import main\n"
        "for path in sys.argv[1:]:\n"
        "    sys.argv = ['zoo', 'check', path]\n"
        "    try: main()\n"
        "    except SystemExit as stop: print(path, stop.code)\n"
    )
    paths = [str(tmp_path / name) for name in files] + [str(tmp_path), str(tmp_path / "no.yaml")]
    done = subprocess.run(
        [sys.executable, "-c", script, *paths], capture_output=True, text=True, timeout=120
    )
    assert done.stdout.split() == [word for path in paths for word in (path, "1")]
    assert "Traceback" not in done.stderr
    for path in paths:
        assert f"{path}:" in done.stderr


def test_the_installed_command_and_the_module_say_the_same():
    script = os.path.join(os.path.dirname(sys.executable), "zoo")
    by_command = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
    assert by_command.stdout == run("--version").stdout


@pytest.mark.parametrize("arguments", [["list", "--json"], ["catalogue", "nothing-has-this"]])
def test_a_reader_that_goes_away_is_no_error(arguments):
    """Whether it goes in the middle of a long output or before a short one."""
    with subprocess.Popen(
        [*ZOO, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
    ) as running:
        if arguments[0] == "list":
            assert running.stdout.read(1) == b"["
        running.stdout.close()
        assert running.stderr.read() == b""
        assert running.wait(60) == 0


@pytest.mark.slow
def test_ctrl_c_in_the_demo_leaves_nothing_broken(tmp_path):
    demo = subprocess.Popen(
        [*ZOO, "demo"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    time.sleep(8)
    demo.send_signal(signal.SIGINT)
    _, errors = demo.communicate(timeout=30)
    assert demo.returncode == 130
    assert "Traceback" not in errors
    assert not list(tmp_path.rglob("*.part"))
